//! Failures raise the standard exception with the right completion status, and no operation runs twice.

use std::io::Read;
use std::time::Duration;

use ironorb::{CompletionStatus, Orb, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn at(orb: &Orb, port: u16) -> ProbeRef {
    orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked()
}

fn kind_of<T: std::fmt::Debug>(
    result: Result<T, SystemException>,
) -> (SystemExceptionKind, CompletionStatus) {
    let e = result.unwrap_err();
    (e.kind, e.completed)
}

#[test]
fn a_call_to_a_closed_port_fails() {
    let (listener, port) = raw::listen();
    drop(listener);
    let e = at(&client(), port).ping().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = e.to_string();
    assert!(
        text.contains(&port.to_string()) && text.contains("ping"),
        "the error names the port and the operation: {text}"
    );
    // A oneway that cannot be sent fails too.
    assert_eq!(kind_of(at(&client(), port).tick()).0, SystemExceptionKind::Transient);
}

#[test]
fn a_connection_lost_during_a_call_raises_comm_failure() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            drop(stream);
            request
        });
        assert_eq!(
            kind_of(at(&client(), port).ping()),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
        );
        assert!(!server.join().unwrap().is_empty());
        // The call is over, so nothing of it comes any more.
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "sent again");
    });
}

#[test]
fn a_request_is_sent_again_after_close_connection() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
            drop(stream);
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
        });
        assert_eq!(at(&client(), port).add(1, 1).unwrap(), 42);
    });
}

#[test]
fn a_call_to_a_silent_server_times_out_and_is_cancelled() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            let cancel = raw::read_message(&mut stream);
            (request, cancel)
        });
        let mut builder = Orb::builder().no_endpoint();
        builder.config().connection.cancel_requests = true;
        let probe = at(&builder.build().unwrap(), port).with_timeout(Some(Duration::from_millis(300)));
        assert_eq!(kind_of(probe.ping()), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
        let (request, cancel) = server.join().unwrap();
        assert_eq!(cancel[7], 2, "CancelRequest");
        assert_eq!(raw::id_of(&cancel), raw::id_of(&request));
    });
}

#[test]
fn garbage_instead_of_a_reply_raises_comm_failure() {
    let cases: [(&[u8], SystemExceptionKind); 4] = [
        // The magic of compressed GIOP: the peer is an ORB, and may have executed the request.
        (b"ZIOP\x01\x02\x00\x01\x00\x00\x00\x00", SystemExceptionKind::CommFailure),
        (b"GIOP\x09\x09\x00\x01\x00\x00\x00\x00", SystemExceptionKind::CommFailure),
        // Too large, and in fragments: the client could not tell the rest of it from the next message.
        (b"GIOP\x01\x02\x02\x01\xff\xff\xff\xff", SystemExceptionKind::CommFailure),
        (b"GIOP\x01\x02\x00\x06\x00\x00\x00\x00", SystemExceptionKind::CommFailure), // MessageError
    ];
    for (answer, kind) in cases {
        let (listener, port) = raw::listen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                raw::read_message(&mut stream);
                raw::write(&mut stream, answer);
                let _ = stream.read_to_end(&mut Vec::new());
            });
            assert_eq!(kind_of(at(&client(), port).ping()), (kind, CompletionStatus::Maybe));
        });
    }
}

/// The exception of a call to a server that sends `banner` at once, and `answer` after the request.
fn error_from_a_foreign_server(banner: &[u8], answer: &[u8]) -> SystemException {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            raw::write(&mut stream, banner);
            raw::read_message(&mut stream);
            raw::write(&mut stream, answer);
            let _ = stream.shutdown(std::net::Shutdown::Write); // the client may have closed
            let _ = stream.read_to_end(&mut Vec::new());
        });
        at(&client(), port).ping().unwrap_err()
    })
}

#[test]
fn a_server_of_another_protocol_is_named() {
    // The server sends its bytes at once or after the request. A few bytes are enough.
    let cases: [(&[u8], &[u8], &str); 6] = [
        (b"", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "HTTP it seems"),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", b"", "SSH it seems"),
        (b"", b"\x15\x03\x01\0\x02\x02\x46", "TLS it seems"),
        (b"", b"\x15\x03\x03\0\x02\x02\x0a", "TLS it seems"),
        (b"220 mail.example.org ESMTP ready\r\n", b"", "SMTP or FTP it seems"),
        (b"220 FTP\r\n", b"500 ?\r\n", "SMTP or FTP it seems"),
    ];
    for (banner, answer, words) in cases {
        let e = error_from_a_foreign_server(banner, answer);
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::No), "{e}");
        let text = e.to_string();
        assert!(text.contains(words) && text.contains("the peer does not speak GIOP"), "{text}");
        assert!(text.contains("127.0.0.1:") && text.contains("was not carried out"), "{text}");
    }
}

/// A faulty ORB may have sent such bytes after it has executed the request.
#[test]
fn bytes_of_an_unknown_protocol_mean_completed_maybe() {
    for answer in [&b"-ERR unknown command\r\n"[..], b"\x4a\0\0\0\x0a8.0.36\0\x0b\0\0\0"] {
        let e = error_from_a_foreign_server(b"", answer);
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{e}");
        assert!(e.to_string().contains("does not start with GIOP"), "{e}");
    }
}

#[test]
fn a_connection_closed_without_a_reply_means_completed_maybe() {
    let e = error_from_a_foreign_server(b"", b"");
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    assert!(e.to_string().contains("had not sent anything"), "{e}");
    assert!(e.to_string().contains("may have been carried out"), "{e}");
}

/// A peer that has sent GIOP before is an ORB, whatever it sends now.
#[test]
fn garbage_from_an_orb_means_completed_maybe() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[]));
            raw::read_message(&mut stream);
            raw::write(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let probe = at(&client(), port);
        probe.ping().unwrap();
        let e = probe.ping().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
        assert!(e.to_string().contains("does not start with GIOP"), "{e}");
    });
}

/// CORBA 3.3 part 2, 9.4.1 and 9.4.8: a server that does not know a version replies in the highest one that
/// it knows.
#[test]
fn unknown_versions_are_answered_with_message_error_of_1_2() {
    use std::io::Write;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let key = probe.object().ior().iiop_profiles().next().unwrap().object_key().to_vec();
    let address = server.published_addresses()[0].clone();
    for (major, minor) in [(1, 3), (1, 4), (1, 7), (1, 255), (0, 2), (2, 0), (2, 2)] {
        // A body that would be valid in GIOP 1.2.
        let mut body =
            [&[0, 0, 0, 7, 3, 0, 0, 0, 0, 0, 0, 0][..], &(key.len() as u32).to_be_bytes()].concat();
        body.extend_from_slice(&key);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(b"\0\0\0\x05ping\0\0\0\0\0\0\0\0");
        let mut request = [&b"GIOP"[..], &[major, minor, 0, 0], &(body.len() as u32).to_be_bytes()].concat();
        request.extend_from_slice(&body);
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(&request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap(); // the server closes the connection
        assert_eq!(answer[..6], *b"GIOP\x01\x02", "GIOP {major}.{minor}");
        assert_eq!((answer.len(), answer[7]), (12, 6), "GIOP {major}.{minor}: a MessageError");
        // The client reports the unknown version.
        let mut reply = b"GIOP".to_vec();
        reply.extend_from_slice(&[major, minor, 0, 1, 0, 0, 0, 0]);
        let e = error_from_a_foreign_server(b"", &reply);
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
        assert!(e.to_string().contains("the GIOP version is none of 1.0, 1.1 and 1.2"), "{e}");
    }
}

#[test]
fn a_reply_that_is_too_short_raises_marshal() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[1]));
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 7]));
        });
        let client = client();
        let probe = at(&client, port);
        assert_eq!(kind_of(probe.add(1, 2)), (SystemExceptionKind::Marshal, CompletionStatus::Yes));
        assert_eq!(probe.add(1, 2).unwrap(), 7, "the connection is still in use");
    });
}

#[test]
fn an_undeclared_exception_becomes_unknown() {
    let (listener, port) = raw::listen();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&request), 1, b"\0\0\0\x0aIDL:X:1.0\0"));
        });
        let e = at(&client(), port).ping().unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::Unknown);
        assert!(e.to_string().contains("IDL:X:1.0"), "{e}");
    });
}

#[test]
fn garbage_sent_to_a_server_does_not_harm_others() {
    use std::io::Write;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let address = server.published_addresses()[0].clone();
    let client = client();
    let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
    let cases: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GIOP\x01\x02\x00\x00\xff\xff\xff\xff",
        b"GIOP\x01\x02\x00\x00\x00\x00\x00\x04\0\0\0\x01",
        b"GIOP\x01\x02\x00\x01\x00\x00\x00\x0c\0\0\0\x01\0\0\0\0\0\0\0\0", // a Reply
        b"GIOP\x01\x02\x02\x07\x00\x00\x00\x04\0\0\0\x01",                 // a Fragment of nothing
        b"GIOP",
    ];
    for bytes in cases {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap(); // the server closes the connection
        assert!(answer.is_empty() || answer.starts_with(b"GIOP"));
        remote.ping().unwrap();
    }
}

#[test]
fn peers_that_do_not_read_do_not_stop_others() {
    use std::io::Write;
    const THREADS: usize = 2;
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .unwrap()
        .concurrency(ironorb::ServerConcurrency::LeaderFollowers { threads: THREADS })
        .build()
        .unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let key = probe.object().ior().iiop_profiles().next().unwrap().object_key().to_vec();
    // Calls of reflect() with more data than the sockets hold, from peers that send all of it and read
    // nothing.
    let mut body = [0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0].to_vec();
    body.extend((key.len() as u32).to_be_bytes());
    body.extend(&key);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(b"\0\0\0\x08reflect\0\0\0\0\0");
    body.resize((12 + body.len()).next_multiple_of(8) - 12, 0);
    body.extend((20u32 << 20).to_be_bytes());
    body.resize(body.len() + (20 << 20), 7);
    let request = raw::message(0, &body);
    let address = server.published_addresses()[0].clone();
    let mut deaf: Vec<_> = (0..2 * THREADS)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            stream.write_all(&request).unwrap();
            stream
        })
        .collect();
    let client = client();
    let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
    for i in 0..20 {
        assert_eq!(remote.with_timeout(Some(Duration::from_secs(10))).add(i, 1).unwrap(), i + 1);
    }
    // A peer that reads after all gets the whole reply, and is served again.
    let stream = &mut deaf[0];
    assert_eq!(raw::read_message(stream).len(), 24 + 4 + (20 << 20));
    stream.write_all(&request).unwrap();
    assert_eq!(raw::read_message(stream).len(), 24 + 4 + (20 << 20));
    drop(deaf);
    server.shutdown(true).unwrap();
}

#[test]
fn a_shutdown_finishes_requests_in_progress() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let client = client();
    let remote: ProbeRef = client.resolve(&local.object().to_ior_string()).unwrap();
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| remote.block());
        eventually("it blocks", || local.blocked().unwrap() == 1);
        let run = scope.spawn(|| server.run());
        let stop = scope.spawn(|| server.shutdown(true));
        local.release().unwrap();
        blocked.join().unwrap().unwrap();
        stop.join().unwrap().unwrap();
        run.join().unwrap().unwrap();
    });
    assert_eq!(kind_of(remote.ping()), (SystemExceptionKind::Transient, CompletionStatus::No));
    client.shutdown(true).unwrap();
    assert_eq!(kind_of(remote.ping()), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
    assert_eq!(kind_of(local.ping()), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
    assert!(server.root_poa().activate::<ProbeRef, _>(Probing::default()).is_err());
}

#[test]
fn dropping_the_orb_stops_serving() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let client = client();
    let remote: ProbeRef = client.resolve(&local.object().to_ior_string()).unwrap();
    remote.ping().unwrap();
    drop(server);
    assert_eq!(kind_of(remote.ping()), (SystemExceptionKind::Transient, CompletionStatus::No));
}

#[test]
fn a_server_sends_exception_details_only_where_configured() {
    for allowed in [false, true] {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        builder.config().connection.exception_details = allowed;
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let client = client();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        // The servant's result exceeds the bound of its type, which only the server notices.
        let e = remote.shorten("far too long for it").unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::BadParam);
        let says = e.detail().unwrap_or_default().contains("exceeds its bound");
        assert_eq!(says, allowed, "{e}");
    }
}

#[test]
fn a_request_that_cannot_be_read_ends_its_connection_and_no_other() {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 4 },
        ServerConcurrency::Hybrid { threads_max: 64 },
    ] {
        let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let mut other = raw::connect(probe.object());
        let good = raw::request(probe.object(), "tick", &[]);
        // An addressing disposition that GIOP does not have.
        let mut bad = good.clone();
        bad[20] = 1;
        let mut stream = raw::connect(probe.object());
        // Requests that follow it are not carried out. In a pool another thread may have taken them before.
        let is_in_order =
            matches!(concurrency, ServerConcurrency::ThreadPerConnection | ServerConcurrency::Reactor);
        let following = if is_in_order { [good.clone(), good].concat() } else { Vec::new() };
        raw::write(&mut stream, &[bad, following].concat());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!((answer.len(), answer[7]), (12, 6), "MessageError, {concurrency:?}");
        raw::write(&mut other, &raw::request(probe.object(), "ping", &[]));
        assert_eq!(raw::read_message(&mut other)[7], 1, "a Reply, {concurrency:?}");
        assert_eq!(probe.ticks().unwrap(), 0, "{concurrency:?}");
    }
}

#[test]
fn a_protocol_error_behind_a_blocked_servant_ends_the_connection() {
    for concurrency in [ServerConcurrency::ThreadPerConnection, ServerConcurrency::Hybrid { threads_max: 64 }]
    {
        let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let mut stream = raw::connect(probe.object());
        let blocked = raw::request(probe.object(), "block", &[]);
        // A reply to no request: another thread takes it while the servant blocks.
        raw::write(&mut stream, &[blocked, raw::reply([0, 0, 0, 1], 0, &[])].concat());
        assert_eq!(raw::read_message(&mut stream)[7], 6, "MessageError, {concurrency:?}");
        raw::write(&mut stream, &raw::request(probe.object(), "tick", &[]));
        probe.release().unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
        assert_eq!(rest.len(), 0, "no reply follows, {concurrency:?}");
        assert_eq!(probe.ticks().unwrap(), 0, "nothing that follows is carried out, {concurrency:?}");
        server.shutdown(true).unwrap();
    }
}
