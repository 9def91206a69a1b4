//! Idle connections, and messages that never end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ironorb::{Orb, ServerConcurrency, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

const ALL: [ServerConcurrency; 3] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 2 },
    ServerConcurrency::Hybrid { threads_max: 2 },
];

/// A server with short timeouts, which `set_timeouts` sets.
fn server(concurrency: ServerConcurrency, set_timeouts: impl Fn(&mut ironorb::OrbConfig)) -> (Orb, u16) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    set_timeouts(builder.config());
    let orb = builder.build().unwrap();
    let port = orb.published_addresses()[0].rsplit_once(':').unwrap().1.parse().unwrap();
    (orb, port)
}

/// The bytes that arrive until the server closes the connection.
fn rest_of(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut rest = Vec::new();
    // A reset ends the connection too: the server does not read what follows the rejected bytes.
    let _ = stream.read_to_end(&mut rest);
    rest
}

#[test]
fn a_server_closes_idle_connections_and_calls_go_on() {
    for concurrency in ALL {
        let (server, port) = server(concurrency, |config| {
            config.server_idle_timeout = Some(Duration::from_millis(60));
        });
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(rest_of(silent)[7], raw::CLOSE, "{concurrency:?}");

        let client = Orb::builder().no_endpoint().build().unwrap();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        for _ in 0..3 {
            remote.ping().unwrap();
            // The server closes what has been idle for longer, too.
            assert_eq!(rest_of(TcpStream::connect(("127.0.0.1", port)).unwrap())[7], raw::CLOSE);
        }
        let closed = || server.status().total_where("connections_idle_closed_total", "direction", "in");
        assert!(closed() >= 4, "{concurrency:?}: each silent connection counts");
        // A connection whose servant takes long is not idle.
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| remote.block());
            eventually("the servant blocks", || probe.blocked().unwrap() == 1);
            assert_eq!(rest_of(TcpStream::connect(("127.0.0.1", port)).unwrap())[7], raw::CLOSE);
            probe.release().unwrap();
            blocked.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_client_closes_idle_connections_and_connects_again() {
    let (listener, port) = raw::listen();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_idle_timeout = Some(Duration::from_millis(60));
    let client = builder.build().unwrap();
    let probe: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let (ended, has_ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let request = raw::read_message(&mut stream);
                raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[]));
                // Nothing but the end comes, and it comes from the client.
                assert_eq!(rest_of(stream), b"");
                ended.send(()).unwrap();
            }
        });
        for _ in 0..2 {
            probe.ping().unwrap();
            has_ended.recv().unwrap();
        }
    });
    let seen = client.status();
    assert_eq!(seen.total_where("connections_idle_closed_total", "direction", "out"), 2);
    assert_eq!((seen.total("connections_opened_total"), seen.total("reconnects_total")), (2, 1));
}

#[test]
fn a_message_that_never_ends_closes_its_connection() {
    // A header, part of a body, and a first fragment.
    let mut fragment = raw::message(0, &[0, 0, 0, 7, 3, 0, 0, 0]);
    fragment[6] = 2;
    for begun in [&b"GI"[..], b"GIOP\x01\x02\x00\x00\x00\x00\x10\x00abc", &fragment] {
        for concurrency in ALL {
            let (server, port) = server(concurrency, |config| {
                config.message_timeout = Some(Duration::from_millis(60));
            });
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(begun).unwrap();
            assert_eq!(rest_of(stream), b"", "{begun:?}, {concurrency:?}");
            assert_eq!(server.status().total("messages_unfinished_total"), 1, "{begun:?}, {concurrency:?}");
            // One byte now and then does not help.
            let mut slow = TcpStream::connect(("127.0.0.1", port)).unwrap();
            slow.write_all(begun).unwrap();
            eventually("the drip ends", || slow.write_all(&[0]).is_err());
        }
    }
}
