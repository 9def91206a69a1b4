//! The server that a call goes to: with several addresses, forwards, and the policies of the caller.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use ironorb::giop::cdr::Marshal;
use ironorb::giop::ior::{Ior, Profile};
use ironorb::giop::{ByteOrder, Encoding, Writer};
use ironorb::{
    CompletionStatus, InvocationPolicies, Orb, Rebind, ServerConcurrency, SyncScope, SystemException,
    SystemExceptionKind, TypedRef, set_thread_policies,
};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually, raw};

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn server() -> (Orb, ProbeRef) {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = server.root_poa().activate(Probing::default()).unwrap();
    (server, probe)
}

/// A reference to an object with several addresses, each with a server of its own.
fn at(orb: &Orb, ports: &[u16]) -> ProbeRef {
    let addresses: Vec<String> = ports.iter().map(|port| format!("iiop:1.2@127.0.0.1:{port}")).collect();
    orb.string_to_object(&format!("corbaloc:{}/x", addresses.join(","))).unwrap().narrow_unchecked()
}

fn ior_at(port: u16) -> Ior {
    at(&client(), &[port]).object().ior().clone()
}

/// Values in the form of raw replies, big-endian.
fn bytes_of(value: &impl Marshal) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };
    value.marshal(&mut Writer::new(&mut bytes, encoding)).unwrap();
    bytes
}

fn exception(kind: SystemExceptionKind, completed: CompletionStatus) -> Vec<u8> {
    bytes_of(&SystemException::new(kind, ironorb::MinorCode(5), completed))
}

fn answer(stream: &mut TcpStream, status: u32, contents: &[u8]) -> Vec<u8> {
    let request = raw::read_message(stream);
    assert!(!request.is_empty(), "the client has closed the connection");
    raw::write(stream, &raw::reply(raw::id_of(&request), status, contents));
    request
}

const FORTY_TWO: &[u8] = &[0, 0, 0, 42];
const RESULT: u32 = 0;
const SYSTEM_EXCEPTION: u32 = 2;
const FORWARD: u32 = 3;
const FORWARD_PERM: u32 = 4;
const NEEDS_ADDRESSING_MODE: u32 = 5;

/// No process listens at this port, and no test gets it.
const CLOSED_PORT: u16 = 1;

/// The end of the stream, or the client's CloseConnection before it.
fn is_close(message: &[u8]) -> bool {
    message.is_empty() || message[7] == raw::CLOSE
}

fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().unwrap().0
}

fn is_not_called(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the client has connected");
    listener.set_nonblocking(false).unwrap();
}

/// An address of this machine that only one test uses, so that its ports stay free when they are closed.
fn listen_alone(last_octet: u8) -> (TcpListener, String) {
    let listener = TcpListener::bind(format!("127.0.79.{last_octet}:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn a_failed_address_is_tried_last_for_a_while() {
    let (first, first_address) = listen_alone(1);
    let (second, second_port) = raw::listen();
    drop(first);
    let orb = client();
    let both = || -> ProbeRef {
        let url = format!("corbaloc:iiop:1.2@{first_address},iiop:1.2@127.0.0.1:{second_port}/x");
        orb.string_to_object(&url).unwrap().narrow_unchecked()
    };
    let probe = both();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = accept(&second);
            (0..3).for_each(|_| drop(answer(&mut stream, RESULT, FORTY_TWO)));
        });
        assert_eq!(probe.add(1, 1).unwrap(), 42);
        // The first server is back, but the call need not find that out by trying.
        let first = TcpListener::bind(&first_address).unwrap();
        assert_eq!(probe.add(1, 1).unwrap(), 42);
        is_not_called(&first);
        // A reference that has not called the first server skips it too.
        assert_eq!(both().add(1, 1).unwrap(), 42);
        is_not_called(&first);
    });
}

/// A listener whose queue is full, so that the system leaves attempts to connect unanswered, and what fills it.
fn silent_listener() -> (TcpListener, Vec<TcpStream>, u16) {
    let (listener, port) = raw::listen();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let attempt = || TcpStream::connect_timeout(&address, Duration::from_millis(100));
    let queued = std::iter::from_fn(|| attempt().ok()).collect();
    (listener, queued, port)
}

#[test]
fn a_silent_address_leaves_time_for_the_next() {
    let (_silent, _queued, silent_port) = silent_listener();
    let (listener, port) = raw::listen();
    std::thread::spawn(move || {
        for calls in [1, 2] {
            let mut stream = accept(&listener);
            (0..calls).for_each(|_| drop(answer(&mut stream, RESULT, FORTY_TWO)));
        }
    });
    let limit = Some(Duration::from_secs(2));
    let of = |orb: &Orb| -> ProbeRef {
        at(orb, &[silent_port, port]).object().with_timeout(limit).narrow_unchecked()
    };
    assert_eq!(of(&client()).add(1, 1).unwrap(), 42);
    let orb = client();
    let calls: Vec<_> = (0..2).map(|_| ProbeAsync::add_async(&of(&orb), 1, 1)).collect();
    // The calls share the attempts, and one connection.
    let mut outcomes = calls.into_iter().map(ironorb::Pending::wait);
    assert!(outcomes.all(|outcome| outcome.unwrap() == 42));
}

#[test]
fn the_first_address_is_preferred_again_after_a_while() {
    let (second, second_port) = raw::listen();
    let (first, first_address) = listen_alone(2);
    drop(first);
    let mut builder = Orb::builder().no_endpoint();
    builder.config().failed_address_pause = Duration::ZERO;
    let orb = builder.build().unwrap();
    let url = format!("corbaloc:iiop:1.2@{first_address},iiop:1.2@127.0.0.1:{second_port}/x");
    let probe: ProbeRef = orb.string_to_object(&url).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(answer(&mut accept(&second), RESULT, FORTY_TWO)));
        assert_eq!(probe.add(1, 1).unwrap(), 42);
        let first = TcpListener::bind(&first_address).unwrap();
        scope.spawn(move || drop(answer(&mut accept(&first), RESULT, &[0, 0, 0, 7])));
        assert_eq!(probe.add(1, 1).unwrap(), 7);
    });
}

#[test]
fn a_server_that_refuses_with_completed_no_is_passed_over() {
    for kind in [SystemExceptionKind::Transient, SystemExceptionKind::ObjAdapter] {
        let (first, first_port) = raw::listen();
        let (second, second_port) = raw::listen();
        let probe = at(&client(), &[first_port, second_port]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let refusal = exception(kind, CompletionStatus::No);
                answer(&mut accept(&first), SYSTEM_EXCEPTION, &refusal);
            });
            scope.spawn(|| drop(answer(&mut accept(&second), RESULT, FORTY_TWO)));
            assert_eq!(probe.add(1, 1).unwrap(), 42);
        });
    }
}

#[test]
fn a_call_that_may_have_been_executed_is_not_sent_to_another_server() {
    for completed in [CompletionStatus::Maybe, CompletionStatus::Yes] {
        let (first, first_port) = raw::listen();
        let (second, second_port) = raw::listen();
        let probe = at(&client(), &[first_port, second_port]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                answer(
                    &mut accept(&first),
                    SYSTEM_EXCEPTION,
                    &exception(SystemExceptionKind::Transient, completed),
                );
            });
            let e = probe.add(1, 1).unwrap_err();
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, completed));
            is_not_called(&second);
        });
    }
}

#[test]
fn when_all_servers_refuse_the_caller_gets_the_last_refusal() {
    let (first, first_port) = raw::listen();
    let (second, second_port) = raw::listen();
    let probe = at(&client(), &[first_port, second_port]);
    std::thread::scope(|scope| {
        for listener in [&first, &second] {
            scope.spawn(|| {
                let refusal = exception(SystemExceptionKind::Transient, CompletionStatus::No);
                answer(&mut accept(listener), SYSTEM_EXCEPTION, &refusal);
            });
        }
        let e = probe.add(1, 1).unwrap_err();
        assert_eq!(
            (e.kind, e.minor.0, e.completed),
            (SystemExceptionKind::Transient, 5, CompletionStatus::No)
        );
    });
}

#[test]
fn a_failed_forward_falls_back_to_the_permanent_one() {
    let (original, original_port) = raw::listen();
    let (lasting, lasting_port) = raw::listen();
    let orb = client();
    let probe = at(&orb, &[original_port]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = accept(&original);
            answer(&mut stream, FORWARD_PERM, &bytes_of(&ior_at(lasting_port)));
            assert!(is_close(&raw::read_message(&mut stream)), "nothing more is asked here");
        });
        scope.spawn(|| {
            let mut stream = accept(&lasting);
            answer(&mut stream, RESULT, FORTY_TWO);
            answer(&mut stream, FORWARD, &bytes_of(&ior_at(CLOSED_PORT)));
            answer(&mut stream, RESULT, FORTY_TWO);
        });
        assert_eq!(probe.add(1, 1).unwrap(), 42);
        assert_eq!(probe.add(1, 1).unwrap(), 42);
        orb.shutdown(true).unwrap();
    });
}

#[test]
fn the_requested_addressing_mode_is_remembered() {
    for (disposition, tag) in [(1u16, [0, 1]), (2, [0, 2])] {
        let (listener, port) = raw::listen();
        let orb = client();
        let probe = at(&orb, &[port]);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut stream = accept(&listener);
                let wanted = disposition.to_be_bytes();
                let first = answer(&mut stream, NEEDS_ADDRESSING_MODE, &wanted);
                let second = answer(&mut stream, RESULT, FORTY_TWO);
                let third = answer(&mut stream, RESULT, FORTY_TWO);
                (first, second, third)
            });
            assert_eq!(probe.add(1, 1).unwrap(), 42);
            assert_eq!(probe.add(1, 1).unwrap(), 42);
            let (first, second, third) = server.join().unwrap();
            let mode = |request: &[u8]| {
                let mut mode: [u8; 2] = request[20..22].try_into().unwrap();
                if request[6] & 1 != 0 {
                    mode.reverse();
                }
                mode
            };
            assert_eq!((mode(&first), mode(&second), mode(&third)), ([0, 0], tag, tag));
            assert!(second.len() > first.len());
        });
    }
}

#[test]
fn requests_for_another_addressing_mode_are_bounded() {
    let (listener, port) = raw::listen();
    let orb = client();
    let probe = at(&orb, &[port]);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut stream = accept(&listener);
            let mut asked = 0;
            loop {
                let request = raw::read_message(&mut stream);
                if is_close(&request) {
                    return asked;
                }
                asked += 1;
                let wanted = (asked % 3u16).to_be_bytes();
                raw::write(&mut stream, &raw::reply(raw::id_of(&request), NEEDS_ADDRESSING_MODE, &wanted));
            }
        });
        let e = probe.add(1, 1).unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
        orb.shutdown(true).unwrap();
        assert_eq!(server.join().unwrap(), 17);
    });
}

fn rebinding(rebind: Rebind) -> InvocationPolicies {
    InvocationPolicies { rebind: Some(rebind), ..InvocationPolicies::NONE }
}

#[test]
fn a_call_without_rebind_refuses_a_forward() {
    for rebind in [Rebind::Transparent, Rebind::NoRebind, Rebind::NoReconnect] {
        let (listener, port) = raw::listen();
        let (other, other_port) = raw::listen();
        let orb = client();
        let object = at(&orb, &[port]).object().with_policies(rebinding(rebind));
        let probe = ProbeRef::from_object(object);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = accept(&listener);
                answer(&mut stream, RESULT, FORTY_TWO);
                answer(&mut stream, FORWARD, &bytes_of(&ior_at(other_port)));
                if rebind == Rebind::Transparent {
                    return;
                }
                // An explicit rebind sends a LocateRequest.
                let request = raw::read_message(&mut stream);
                assert_eq!(request[7], 3, "LocateRequest");
                let mut body = raw::id_of(&request).to_vec();
                body.extend(2u32.to_be_bytes()); // OBJECT_FORWARD
                body.extend(bytes_of(&ior_at(other_port)));
                raw::write(&mut stream, &raw::message(4, &body));
            });
            scope.spawn(|| {
                let mut stream = accept(&other);
                if rebind != Rebind::Transparent {
                    let request = raw::read_message(&mut stream);
                    let mut body = raw::id_of(&request).to_vec();
                    body.extend(1u32.to_be_bytes()); // OBJECT_HERE
                    raw::write(&mut stream, &raw::message(4, &body));
                }
                answer(&mut stream, RESULT, FORTY_TWO);
            });
            assert_eq!(probe.add(1, 1).unwrap(), 42, "the first call may bind");
            match rebind {
                Rebind::Transparent => assert_eq!(probe.add(1, 1).unwrap(), 42),
                _ => {
                    let e = probe.add(1, 1).unwrap_err();
                    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Rebind, CompletionStatus::No));
                    assert!(probe.object().validate_connection().unwrap());
                    assert_eq!(probe.add(1, 1).unwrap(), 42, "at the new address");
                }
            }
        });
    }
}

#[test]
fn a_call_without_reconnect_refuses_a_new_connection() {
    for rebind in [Rebind::NoRebind, Rebind::NoReconnect] {
        let (listener, port) = raw::listen();
        let orb = client();
        let probe = at(&orb, &[port]);
        set_thread_policies(rebinding(rebind));
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut stream = accept(&listener);
                answer(&mut stream, RESULT, FORTY_TWO);
                raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
                drop(stream);
                if rebind == Rebind::NoRebind {
                    answer(&mut accept(&listener), RESULT, FORTY_TWO);
                }
            });
            assert_eq!(probe.add(1, 1).unwrap(), 42);
            if rebind == Rebind::NoRebind {
                assert_eq!(probe.add(1, 1).unwrap(), 42);
            } else {
                server.join().unwrap();
                let e = probe.add(1, 1).unwrap_err();
                assert_eq!((e.kind, e.completed), (SystemExceptionKind::Rebind, CompletionStatus::No));
                // The policy of the reference overrides that of the thread.
                let free = probe.object().with_policies(rebinding(Rebind::Transparent));
                scope.spawn(|| drop(answer(&mut accept(&listener), RESULT, FORTY_TWO)));
                assert_eq!(ProbeRef::from_object(free).add(1, 1).unwrap(), 42);
            }
        });
        set_thread_policies(InvocationPolicies::NONE);
    }
}

#[test]
fn a_restarted_server_is_found_again() {
    // An address that no other test uses, so that the port stays free meanwhile.
    let server = Orb::builder().endpoint("iiop://127.0.79.3:0").unwrap().build().unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let port = local.object().ior().iiop_profiles().next().unwrap().port();
    server.bind_key("Probe", local.object()).unwrap();
    let orb = client();
    let probe: ProbeRef = orb
        .string_to_object(&format!("corbaloc:iiop:1.2@127.0.79.3:{port}/Probe"))
        .unwrap()
        .narrow_unchecked();
    probe.ping().unwrap();
    server.shutdown(true).unwrap();
    let e = probe.ping().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let again = Orb::builder().endpoint(&format!("iiop://127.0.79.3:{port}")).unwrap().build().unwrap();
    let local: ProbeRef = again.root_poa().activate(Probing::default()).unwrap();
    again.bind_key("Probe", local.object()).unwrap();
    probe.ping().unwrap();
}

fn scoped(scope: SyncScope) -> InvocationPolicies {
    InvocationPolicies { sync_scope: Some(scope), ..InvocationPolicies::NONE }
}

#[test]
fn a_oneway_waits_as_its_sync_scope_says() {
    let flags = |scope| {
        let (listener, port) = raw::listen();
        let orb = client();
        let probe = ProbeRef::from_object(at(&orb, &[port]).object().with_policies(scoped(scope)));
        std::thread::scope(|threads| {
            let server = threads.spawn(|| {
                let mut stream = accept(&listener);
                let request = raw::read_message(&mut stream);
                if request[16] != 0 {
                    raw::write(&mut stream, &raw::reply(raw::id_of(&request), RESULT, &[]));
                }
                request[16]
            });
            probe.tick().unwrap();
            server.join().unwrap()
        })
    };
    assert_eq!(flags(SyncScope::None), 0);
    assert_eq!(flags(SyncScope::WithTransport), 0);
    assert_eq!(flags(SyncScope::WithServer), 1);
    assert_eq!(flags(SyncScope::WithTarget), 3);
}

#[test]
fn an_unreachable_oneway_fails_in_the_scopes_that_wait() {
    let orb = client();
    let probe = at(&orb, &[CLOSED_PORT]);
    let tick = |scope| ProbeRef::from_object(probe.object().with_policies(scoped(scope))).tick();
    tick(SyncScope::None).unwrap();
    for scope in [SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget] {
        assert_eq!(tick(scope).unwrap_err().kind, SystemExceptionKind::Transient);
    }
}

#[test]
fn oneways_of_every_scope_arrive() {
    let (server, local) = server();
    let orb = client();
    let remote: ProbeRef = orb.resolve(&local.object().to_ior_string()).unwrap();
    let mut sent = 0;
    for scope in [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget] {
        let probe = ProbeRef::from_object(remote.object().with_policies(scoped(scope)));
        for _ in 0..100 {
            probe.tick().unwrap();
        }
        sent += 100;
        if scope == SyncScope::WithTarget {
            assert_eq!(local.ticks().unwrap(), sent, "the call has waited for the servant");
        }
        eventually("all arrive", || local.ticks().unwrap() == sent);
    }
    // An ORB-wide setting. The servant's exception comes back.
    orb.set_policies(scoped(SyncScope::WithTarget));
    let gone: ProbeRef = orb.resolve(&local.object().to_ior_string()).unwrap();
    gone.tick().unwrap();
    server.root_poa().deactivate(&server.root_poa().reference_to_id(local.object()).unwrap()).unwrap();
    assert_eq!(gone.tick().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
}

#[test]
fn operations_of_every_object_work() {
    let (_server, local) = server();
    let orb = client();
    let remote: ProbeRef = orb.resolve(&local.object().to_ior_string()).unwrap();
    for probe in [&local, &remote] {
        let object = probe.object();
        assert_eq!(object.repository_id().unwrap(), ProbeRef::REPOSITORY_ID);
        assert_eq!(object.component().unwrap(), None);
        assert_eq!(object.interface().unwrap_err().kind, SystemExceptionKind::IntfRepos);
        assert!(object.validate_connection().unwrap());
    }
    let profiles = remote.object().ior().profiles.len();
    assert!(matches!(remote.object().ior().profiles[0], Profile::Iiop(_)) && profiles == 1);
}

#[test]
fn old_servers_are_asked_by_the_old_name_of_non_existent() {
    let (listener, port) = raw::listen();
    let orb = client();
    let probe = at(&orb, &[port]);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut stream = accept(&listener);
            let unknown = exception(SystemExceptionKind::BadOperation, CompletionStatus::No);
            answer(&mut stream, SYSTEM_EXCEPTION, &unknown);
            answer(&mut stream, RESULT, &[1])
        });
        assert!(probe.object().non_existent().unwrap());
        let second = server.join().unwrap();
        assert!(second.windows(13).any(|part| part == b"_not_existent"));
    });
}

#[test]
fn all_addresses_of_a_host_name_are_tried() {
    // `localhost` is the IPv6 address first where there is one. No process listens there.
    let (listener, port) = raw::listen();
    let orb = client();
    let probe: ProbeRef =
        orb.string_to_object(&format!("corbaloc:iiop:1.2@localhost:{port}/x")).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(answer(&mut accept(&listener), RESULT, FORTY_TWO)));
        assert_eq!(probe.add(1, 1).unwrap(), 42);
    });
}

#[test]
fn a_new_connection_above_the_limit_closes_an_unused_one() {
    let servers: Vec<_> = (0..4).map(|_| server()).collect();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_connections_max = 2;
    let orb = builder.build().unwrap();
    let probes: Vec<ProbeRef> =
        servers.iter().map(|(_, local)| orb.resolve(&local.object().to_ior_string()).unwrap()).collect();
    for round in 0..3 {
        for probe in &probes {
            assert_eq!(probe.add(round, 1).unwrap(), round + 1);
        }
    }
    std::thread::scope(|scope| {
        for probe in &probes[..2] {
            scope.spawn(|| probe.block().unwrap());
        }
        eventually("two block", || servers[..2].iter().all(|(_, local)| local.blocked().unwrap() == 1));
        let e = probes[2].ping().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::NoResources, CompletionStatus::No), "{e}");
        servers[..2].iter().for_each(|(_, local)| local.release().unwrap());
    });
    probes[2].ping().unwrap();
}

#[test]
fn threads_share_a_connection_at_the_limit() {
    let server = {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        builder.config().concurrency = ServerConcurrency::LeaderFollowers { threads: 8 };
        builder.build().unwrap()
    };
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().client_connections_max = 2;
    let orb = builder.build().unwrap();
    let probe: ProbeRef = orb.resolve(&local.object().to_ior_string()).unwrap();
    std::thread::scope(|scope| {
        // Each call overlaps with the others, so every connection is in use.
        for _ in 0..5 {
            scope.spawn(|| probe.block().unwrap());
        }
        eventually("five block", || local.blocked().unwrap() == 5);
        local.release().unwrap();
    });
}

#[test]
fn references_in_files() {
    let (_server, local) = server();
    let orb = client();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.ior");
    std::fs::write(&file, format!("{}\n", local.object().to_ior_string())).unwrap();
    let probe: ProbeRef = orb.resolve(&format!("file://{}", file.display())).unwrap();
    probe.ping().unwrap();
    std::fs::write(&file, format!("file:{}", file.display())).unwrap();
    for url in [format!("file:{}", file.display()), "file:/nowhere/at/all".to_owned()] {
        assert_eq!(orb.string_to_object(&url).unwrap_err().kind, SystemExceptionKind::BadParam);
    }
    std::fs::write(&file, [0xFF, 0xFE]).unwrap();
    assert!(orb.string_to_object(&format!("file:{}", file.display())).is_err());
}
