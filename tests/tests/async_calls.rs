//! Asynchronous calls: futures, deferred waiting and callbacks, without an async runtime.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ironorb::{
    CompletionStatus, Deferred, MinorCode, Orb, Reply, SystemException, SystemExceptionKind, TypedRef,
    Version,
};
use ironorb_tests::executor::run;
use ironorb_tests::testing::{
    DeferredUnrelated, Probe, ProbeAsync, ProbeRef, UnrelatedAsync, UnrelatedRef, probe::RefuseError,
};
use ironorb_tests::{Probing, eventually, raw};

fn server() -> (Orb, ProbeRef) {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = server.root_poa().activate(Probing::default()).unwrap();
    (server, probe)
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere(client: &Orb, reference: &ProbeRef) -> ProbeRef {
    client.resolve(&reference.object().to_ior_string()).unwrap()
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
fn a_call_is_completed_by_a_future_a_wait_or_a_callback() {
    let (_server, local) = server();
    let client = client();
    for probe in [&local, &elsewhere(&client, &local)] {
        assert_eq!(run(probe.add_async(20, 3)).unwrap(), 23);
        assert_eq!(run(async { probe.echo_async("żółw 🐢").await }).unwrap(), "żółw 🐢");
        assert_eq!(probe.add_async(1, 2).wait().unwrap(), 3);
        match probe.refuse_async("no").wait() {
            Err(RefuseError::Refused(e)) => assert_eq!(e.why, "no"),
            other => panic!("{other:?}"),
        }
        let pending = probe.add_async(5, 6);
        eventually("the reply comes without a waiting thread", || pending.is_ready());
        assert_eq!(pending.wait().unwrap(), 11);
        let (sender, receiver) = mpsc::channel();
        probe.add_async(7, 8).on_reply(move |result| sender.send(result).unwrap());
        assert_eq!(receiver.recv().unwrap().unwrap(), 15);
    }
}

#[test]
fn many_outstanding_calls_share_a_connection() {
    const CALLS: i32 = 20_000;
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .unwrap()
        .concurrency(ironorb::ServerConcurrency::LeaderFollowers { threads: 2 })
        .build()
        .unwrap();
    let local: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connection.calls_in_flight_max = CALLS as usize;
    let client = builder.build().unwrap();
    let remote = elsewhere(&client, &local);
    let pending: Vec<_> = (0..CALLS).map(|i| (i, remote.add_async(i, 1))).collect();
    for (i, pending) in pending {
        assert_eq!(pending.wait().unwrap(), i + 1);
    }
    // Synchronous and asynchronous calls work side by side.
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let remote = remote.clone();
            scope.spawn(move || {
                for i in 0..300 {
                    let text = format!("{thread}/{i}").repeat(i % 50);
                    let pending: Vec<_> = (0..i % 7).map(|_| remote.echo_async(&text)).collect();
                    assert_eq!(remote.add(thread, 1).unwrap(), thread + 1);
                    for pending in pending {
                        assert_eq!(run(pending).unwrap(), text);
                    }
                }
            });
        }
    });
}

#[test]
fn calls_above_the_limit_of_a_connection_fail_at_once() {
    let (listener, port) = raw::listen();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connection.calls_in_flight_max = 10;
    let client = builder.build().unwrap();
    let probe = at(&client, port);
    let mut pending: Vec<_> = (0..11).map(|_| probe.block_async()).collect();
    let e = pending.pop().unwrap().wait().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::NoResources, CompletionStatus::No), "{e}");
    // Abandoned calls leave room for new ones.
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..10 {
        raw::read_message(&mut stream);
    }
    drop(pending);
    let pending = probe.add_async(1, 1);
    let request = raw::read_message(&mut stream);
    raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
    assert_eq!(pending.wait().unwrap(), 42);
}

#[test]
fn deadlines_expire_without_a_waiting_thread() {
    let (_server, local) = server();
    let client = client();
    let hasty = elsewhere(&client, &local).with_timeout(Some(Duration::from_millis(500)));
    let (sender, receiver) = mpsc::channel();
    hasty.block_async().on_reply(move |result| sender.send(result).unwrap());
    let timed_out = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
    assert_eq!(kind_of(receiver.recv().unwrap()), timed_out);
    assert_eq!(kind_of(run(hasty.block_async())), timed_out);
    assert_eq!(kind_of(hasty.block_async().wait()), timed_out);
    // A later deadline does not delay an earlier one that is set after it.
    let patient = elsewhere(&client, &local).block_async();
    assert_eq!(kind_of(hasty.block_async().wait()), timed_out);
    eventually("all block", || local.blocked().unwrap() == 5);
    local.release().unwrap();
    patient.wait().unwrap();
    assert_eq!(elsewhere(&client, &local).add_async(1, 1).wait().unwrap(), 2, "a late reply is dropped");
}

#[test]
fn the_end_of_a_connection_ends_all_calls() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let pending: Vec<_> = (0..100).map(|i| probe.add_async(i, i)).collect();
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..100 {
        raw::read_message(&mut stream);
    }
    drop(stream);
    for pending in pending {
        assert_eq!(kind_of(pending.wait()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    }
}

#[test]
fn calls_on_a_closed_connection_are_sent_on_a_new_one() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let pending: Vec<_> = (0..5).map(|i| probe.add_async(i, i)).collect();
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..5 {
        raw::read_message(&mut stream);
    }
    raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
    drop(stream);
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..5 {
        let request = raw::read_message(&mut stream);
        raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
    }
    for pending in pending {
        assert_eq!(pending.wait().unwrap(), 42);
    }
}

#[test]
fn a_call_to_a_closed_port_fails() {
    let (listener, port) = raw::listen();
    drop(listener);
    let client = client();
    let pending = at(&client, port).add_async(1, 1);
    let e = run(pending).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = e.to_string();
    assert!(
        text.contains(&port.to_string()) && text.contains("add"),
        "the error names the port and the operation: {text}"
    );
}

#[test]
fn arguments_that_cannot_be_sent_end_the_call() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    for _ in 0..2 {
        let e = remote.echo_async("a\0b").wait().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No), "{e}");
        remote.ping().unwrap();
    }
}

#[test]
fn a_panicking_callback_does_no_harm_and_waiting_in_a_callback_is_refused() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    remote.add_async(1, 1).on_reply(|_| panic!("contained"));
    let (sender, receiver) = mpsc::channel();
    // The listener does not accept, so that the reply cannot come too soon.
    let (_listener, port) = raw::listen();
    let (again, silent) = (remote.clone(), at(&client, port));
    remote.add_async(1, 1).on_reply(move |_| {
        let nested = silent.block_async().wait().unwrap_err();
        let synchronous = again.add(2, 2);
        sender.send((nested, synchronous)).unwrap();
    });
    let (nested, synchronous) = receiver.recv().unwrap();
    assert_eq!(nested.minor, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK);
    assert_eq!(synchronous.unwrap(), 4);
    assert_eq!(remote.add_async(1, 1).wait().unwrap(), 2);
}

#[test]
fn a_shutdown_ends_pending_calls() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    let (sender, receiver) = mpsc::channel();
    remote.block_async().on_reply(move |result| sender.send(result).unwrap());
    let pending = remote.block_async();
    eventually("both block", || local.blocked().unwrap() == 2);
    client.shutdown(true).unwrap();
    assert_eq!(kind_of(pending.wait()).0, SystemExceptionKind::BadInvOrder);
    assert_eq!(kind_of(receiver.recv().unwrap()).0, SystemExceptionKind::BadInvOrder);
    assert_eq!(
        kind_of(remote.add_async(1, 1).wait()),
        (SystemExceptionKind::BadInvOrder, CompletionStatus::No)
    );
    local.release().unwrap();
}

#[test]
fn large_requests_do_not_wait_for_the_caller() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    let data: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    let pending: Vec<_> = (0..8).map(|_| remote.reflect_async(&data)).collect();
    for pending in pending {
        assert!(pending.wait().unwrap() == data);
    }
}

#[test]
fn retries_with_older_giop_versions_send_the_same_arguments() {
    for version in ["1.0", "1.1"] {
        let (listener, port) = raw::listen();
        let client = client();
        let url = format!("corbaloc:iiop:{version}@127.0.0.1:{port}/x");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        let pending = probe.echo_async("text");
        let (mut stream, _) = listener.accept().unwrap();
        let first = raw::read_message(&mut stream);
        raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        let second = raw::read_message(&mut stream);
        assert_eq!(first, second);
        drop(stream);
        assert_eq!(kind_of(pending.wait()), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    }
}

/// Replies when the test asks for it.
#[derive(Clone, Default)]
struct Answering(Arc<Mutex<Vec<Reply<(), SystemException>>>>);

impl DeferredUnrelated for Answering {
    fn nothing(&self, reply: Reply<(), SystemException>) {
        self.0.lock().unwrap().push(reply);
    }
}

#[test]
fn deferred_replies_occupy_no_thread_of_asynchronous_callers() {
    const CALLS: usize = 100;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let answering = Answering::default();
    let local: UnrelatedRef = server.root_poa().activate(Deferred(answering.clone())).unwrap();
    let client = client();
    let remote: UnrelatedRef = client.resolve(&local.object().to_ior_string()).unwrap();
    for unrelated in [&local, &remote] {
        let pending: Vec<_> = (0..CALLS).map(|_| unrelated.nothing_async()).collect();
        eventually("all requests have arrived", || answering.0.lock().unwrap().len() == CALLS);
        assert!(pending.iter().all(|pending| !pending.is_ready()));
        let mut replies = std::mem::take(&mut *answering.0.lock().unwrap());
        drop(replies.split_off(CALLS / 2)); // dropped without a reply
        replies.into_iter().for_each(|reply| reply.send(Ok(())));
        let answered = pending.into_iter().map(|pending| pending.wait());
        assert_eq!(answered.filter(Result::is_ok).count(), CALLS / 2);
    }
}

/// Passes bytes on in both directions, until it cuts the connection at the given counts of bytes, in the
/// middle of messages.
fn unreliable(to: String, cuts: &'static [usize]) -> u16 {
    let (listener, port) = raw::listen();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let (Ok(client), Ok(server)) = (stream, TcpStream::connect(&to)) else { return };
            let cut = cuts[n % cuts.len()];
            let (mut from, mut into) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut into);
                let _ = into.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut Read::take(&client, cut as u64), &mut &server);
                let _ = server.shutdown(Shutdown::Both);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

#[test]
fn every_call_ends_once_on_an_unreliable_connection() {
    const CALLS: usize = 300;
    let (_server, local) = server();
    let profile = local.object().ior().iiop_profiles().next().unwrap().clone();
    let port = unreliable(format!("127.0.0.1:{}", profile.port()), &[700, 5_000, 90, 20_000, 1_333]);
    let ior = ironorb::giop::ior::IiopProfile::new(
        ironorb::Version::V1_2,
        "127.0.0.1",
        port,
        profile.object_key(),
        &[],
    )
    .unwrap();
    let client = client();
    let ior = ironorb::giop::ior::Ior::with_profile(ProbeRef::REPOSITORY_ID, ior);
    let probe: ProbeRef = client.ior_to_object(ior).unwrap().narrow_unchecked();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (probe, sender) = (probe.clone(), sender.clone());
            scope.spawn(move || {
                let mut pending = Vec::new();
                for n in 0..CALLS {
                    let (a, b) = (thread * 1000, n as i32);
                    match n % 4 {
                        0 => sender.send((a + b, probe.add(a, b))).unwrap(),
                        1 => pending.push((a + b, probe.add_async(a, b))),
                        2 => drop(probe.add_async(a, b)),
                        _ => {
                            let sender = sender.clone();
                            probe
                                .add_async(a, b)
                                .on_reply(move |result| sender.send((a + b, result)).unwrap());
                        }
                    }
                }
                for (sum, pending) in pending {
                    sender.send((sum, run(pending))).unwrap();
                }
            });
        }
    });
    drop(sender);
    let (mut ended, mut succeeded) = (0, 0);
    for (sum, result) in receiver {
        ended += 1;
        match result {
            Ok(value) => {
                assert_eq!(value, sum);
                succeeded += 1;
            }
            Err(e) => assert!(
                matches!(e.kind, SystemExceptionKind::CommFailure | SystemExceptionKind::Transient),
                "{e}"
            ),
        }
    }
    assert_eq!(ended, 4 * CALLS * 3 / 4);
    assert!(succeeded > 0 && succeeded < ended, "{succeeded} of {ended}");
}

#[test]
fn calls_are_sent_in_the_order_in_which_they_began() {
    // This includes calls that begin while the connection is being made and others wait for it.
    for _ in 0..50 {
        let (listener, port) = raw::listen();
        let client = client();
        let probe = at(&client, port);
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let read = (0..100).map(|_| raw::read_message(&mut stream));
            read.map(|request| request[request.len() - 8..].to_vec()).collect::<Vec<_>>()
        });
        let pending: Vec<_> = (0..100).map(|i| probe.add_async(i, 7)).collect();
        for (i, arguments) in server.join().unwrap().into_iter().enumerate() {
            assert_eq!(arguments[..4], (i as i32).to_ne_bytes());
        }
        drop(pending);
    }
}

#[test]
fn a_waiting_thread_receives_until_its_deadline() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let first = probe.add_async(1, 1);
    let (mut stream, _) = listener.accept().unwrap();
    let mut ask = || raw::read_message(&mut stream);
    let first_request = ask();
    let hasty = probe.with_timeout(Some(Duration::from_millis(300))).add_async(2, 2);
    let hasty_request = ask();
    let timed_out = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
    assert_eq!(kind_of(hasty.wait()), timed_out);
    // The call has left the connection, and no call gets its late reply.
    raw::write(&mut stream, &raw::reply(raw::id_of(&hasty_request), 0, &[0, 0, 0, 4]));
    raw::write(&mut stream, &raw::reply(raw::id_of(&first_request), 0, &[0, 0, 0, 2]));
    eventually("another thread receives", || first.is_ready());
    assert_eq!(first.wait().unwrap(), 2);
}

/// Makes calls from one thread, so that they share a connection, and answers them in the given order. Each
/// call's first argument is its number, and `begin` reports the number when the call ends.
fn answered_in_order(order: &[usize], begin: impl FnOnce(&ProbeRef, &mpsc::Sender<i32>) + Send) {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let (ended, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            probe.ping().unwrap(); // makes the connection
            begin(&probe, &ended);
        });
        let (mut stream, _) = listener.accept().unwrap();
        let ping = raw::read_message(&mut stream);
        raw::write(&mut stream, &raw::reply(raw::id_of(&ping), 0, &[]));
        let requests: Vec<_> = order.iter().map(|_| raw::read_message(&mut stream)).collect();
        for n in order {
            let argument = (*n as i32).to_ne_bytes();
            let request = requests.iter().find(|request| request[request.len() - 8..][..4] == argument);
            let id = raw::id_of(request.expect("the request has arrived"));
            raw::write(&mut stream, &raw::reply(id, 0, &[0, 0, 0, *n as u8]));
            assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(*n as i32), "of {order:?}");
        }
    });
}

#[test]
fn one_waiting_thread_receives_for_all() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        answered_in_order(&order, |probe, ended| {
            let pending = [0, 1, 2].map(|n| probe.add_async(n, 0));
            std::thread::scope(|scope| {
                for pending in pending {
                    scope.spawn(|| ended.send(pending.wait().unwrap()).unwrap());
                }
            });
        });
    }
}

#[test]
fn calls_of_every_kind_complete_beside_a_waiting_thread() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        answered_in_order(&order, |probe, ended| {
            let waited = probe.add_async(0, 0);
            let future = probe.add_async(1, 0);
            let sender = ended.clone();
            probe.add_async(2, 0).on_reply(move |result| sender.send(result.unwrap()).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| ended.send(waited.wait().unwrap()).unwrap());
                scope.spawn(|| ended.send(run(future).unwrap()).unwrap());
                ended.send(probe.add(3, 0).unwrap()).unwrap();
            });
        });
    }
}

/// Answers `ping` with no result and `add` with the sum, in the order of the requests, until the client
/// closes the connection.
fn answer_one_by_one(stream: &mut TcpStream) {
    loop {
        let request = raw::read_message(stream);
        if request.is_empty() || request[7] == raw::CLOSE {
            return;
        }
        let is_ping = request.windows(5).any(|bytes| bytes == b"ping\0");
        let number = |from_end: usize| {
            let at = request.len() - from_end;
            i32::from_ne_bytes(request[at..at + 4].try_into().unwrap())
        };
        let sum = (!is_ping).then(|| (number(8) + number(4)).to_be_bytes());
        raw::write(stream, &raw::reply(raw::id_of(&request), 0, sum.as_ref().map_or(&[], |sum| &sum[..])));
    }
}

#[test]
fn callbacks_run_in_the_order_of_the_replies() {
    const CALLS: i32 = 200;
    let (listener, port) = raw::listen();
    let client = client();
    let remote = at(&client, port);
    // Not an IronORB server: if a connection's thread gets no processor time, that one lets another thread
    // take over the connection, and then replies can change places.
    let serving = std::thread::spawn(move || answer_one_by_one(&mut listener.accept().unwrap().0));
    let (sender, receiver) = mpsc::channel();
    for n in 0..CALLS {
        let sender = sender.clone();
        remote.add_async(n, 0).on_reply(move |result| sender.send(result.unwrap()).unwrap());
        if n % 3 == 0 {
            assert_eq!(remote.add_async(n, 1).wait().unwrap(), n + 1);
        } else if n % 7 == 0 {
            remote.ping().unwrap();
        }
    }
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), (0..CALLS).collect::<Vec<_>>());
    client.shutdown(true).unwrap();
    serving.join().unwrap();
}

#[test]
fn a_waiting_thread_follows_its_call_to_a_new_connection() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let pending = [probe.add_async(1, 1), probe.add_async(2, 2)];
    let waiting = pending.map(|pending| std::thread::spawn(move || pending.wait()));
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..2 {
        raw::read_message(&mut stream);
    }
    raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
    drop(stream);
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..2 {
        let request = raw::read_message(&mut stream);
        raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
    }
    for waiting in waiting {
        assert_eq!(waiting.join().unwrap().unwrap(), 42);
    }
}

/// No thread waits for the reply. The server executes the operation all the same.
#[test]
fn a_call_with_a_dropped_reply_is_sent_all_the_same() {
    let (_server, local) = server();
    for round in 0..20 {
        let client = client(); // its connection does not exist yet
        let label = round.to_string();
        drop(elsewhere(&client, &local).set_label_async(&label));
        eventually("it is carried out", || local.label().unwrap() == label);
    }
}

#[test]
fn a_synchronous_call_does_not_overtake_calls_that_wait_for_its_connection() {
    let (_server, local) = server();
    for round in 0..50 {
        let client = client();
        let probe = elsewhere(&client, &local);
        let first = probe.set_label_async("first");
        probe.set_label("second").unwrap();
        assert_eq!(local.label().unwrap(), "second", "{round}");
        assert!(first.is_ready());
        first.wait().unwrap();
    }
}

/// Arguments that are kept for a retry do not record where numbers lie in them. GIOP 1.1 allows no cut
/// within a number.
#[test]
fn arguments_kept_for_a_retry_are_not_fragmented_in_giop_1_1() {
    let builder = Orb::builder().no_endpoint().fragment_bytes(200).fragments_in_giop_1_1(true);
    let client = builder.giop_version(Version::V1_1).build().unwrap();
    let (listener, port) = raw::listen();
    let url = format!("corbaloc:iiop:1.1@127.0.0.1:{port}/x");
    let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
    let pending = probe.reflect_async(&[7; 1000]);
    let (mut stream, _) = listener.accept().unwrap();
    let request = raw::read_message(&mut stream);
    assert_eq!(request[..6], *b"GIOP\x01\x01");
    assert_eq!(request[6] & 2, 0, "the request is not fragmented");
    assert!(request.ends_with(&[7; 1000]));
    drop(pending);
}
