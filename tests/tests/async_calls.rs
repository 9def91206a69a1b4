//! Calls whose caller does not wait: futures, deferred waiting and callbacks, without any async runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ironorb::generated::{Operation, invoke_async};
use ironorb::{CompletionStatus, MinorCode, Orb, Pending, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef, probe::RefuseError};
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

fn add(probe: &ProbeRef, a: i32, b: i32) -> Pending<i32, SystemException> {
    static ADD: Operation = Operation::twoway("add");
    invoke_async(
        probe,
        &ADD,
        |servant: &dyn Probe| servant.add(a, b),
        |w| {
            w.put(&a)?;
            w.put(&b)
        },
        |r| r.get(),
    )
}

fn echo(probe: &ProbeRef, text: &str) -> Pending<String, SystemException> {
    static ECHO: Operation = Operation::twoway("echo");
    invoke_async(probe, &ECHO, |servant: &dyn Probe| servant.echo(text), |w| w.write_str(text), |r| r.get())
}

fn block(probe: &ProbeRef) -> Pending<(), SystemException> {
    static BLOCK: Operation = Operation::twoway("block");
    invoke_async(probe, &BLOCK, |servant: &dyn Probe| servant.block(), |_| Ok(()), |_| Ok(()))
}

fn refuse(probe: &ProbeRef, why: &str) -> Pending<(), RefuseError> {
    static REFUSE: Operation = Operation::twoway("refuse");
    invoke_async(probe, &REFUSE, |servant: &dyn Probe| servant.refuse(why), |w| w.write_str(why), |_| Ok(()))
}

/// The smallest executor: a thread that sleeps until its one future is worth another look.
fn run<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn kind_of<T: std::fmt::Debug>(
    result: Result<T, SystemException>,
) -> (SystemExceptionKind, CompletionStatus) {
    let e = result.unwrap_err();
    (e.kind, e.completed)
}

#[test]
fn a_future_a_wait_and_a_callback() {
    let (_server, local) = server();
    let client = client();
    for probe in [&local, &elsewhere(&client, &local)] {
        assert_eq!(run(add(probe, 20, 3)).unwrap(), 23);
        assert_eq!(run(async { echo(probe, "żółw 🐢").await }).unwrap(), "żółw 🐢");
        assert_eq!(add(probe, 1, 2).wait().unwrap(), 3);
        match refuse(probe, "no").wait() {
            Err(RefuseError::Refused(e)) => assert_eq!(e.why, "no"),
            other => panic!("{other:?}"),
        }
        let pending = add(probe, 5, 6);
        eventually("the reply comes without anybody's help", || pending.is_ready());
        assert_eq!(pending.wait().unwrap(), 11);
        let (sender, receiver) = mpsc::channel();
        add(probe, 7, 8).on_reply(move |result| sender.send(result).unwrap());
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
    let pending: Vec<_> = (0..CALLS).map(|i| (i, add(&remote, i, 1))).collect();
    for (i, pending) in pending {
        assert_eq!(pending.wait().unwrap(), i + 1);
    }
    // Synchronous calls and asynchronous ones do not disturb each other.
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let remote = remote.clone();
            scope.spawn(move || {
                for i in 0..300 {
                    let text = format!("{thread}/{i}").repeat(i % 50);
                    let pending: Vec<_> = (0..i % 7).map(|_| echo(&remote, &text)).collect();
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
fn more_calls_than_a_connection_takes_end_at_once() {
    let (listener, port) = raw::listen();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().connection.calls_in_flight_max = 10;
    let client = builder.build().unwrap();
    let probe = at(&client, port);
    let mut pending: Vec<_> = (0..11).map(|_| block(&probe)).collect();
    let e = pending.pop().unwrap().wait().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::NoResources, CompletionStatus::No), "{e}");
    // Those given up leave room for others.
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..10 {
        raw::read_message(&mut stream);
    }
    drop(pending);
    let pending = add(&probe, 1, 1);
    let request = raw::read_message(&mut stream);
    raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[0, 0, 0, 42]));
    assert_eq!(pending.wait().unwrap(), 42);
}

#[test]
fn deadlines_hold_without_anybody_waiting() {
    let (_server, local) = server();
    let client = client();
    let hasty = elsewhere(&client, &local).with_timeout(Some(Duration::from_millis(30)));
    let (sender, receiver) = mpsc::channel();
    block(&hasty).on_reply(move |result| sender.send(result).unwrap());
    let timed_out = (SystemExceptionKind::Timeout, CompletionStatus::Maybe);
    assert_eq!(kind_of(receiver.recv().unwrap()), timed_out);
    assert_eq!(kind_of(run(block(&hasty))), timed_out);
    assert_eq!(kind_of(block(&hasty).wait()), timed_out);
    // The later deadline is not in the way of a nearer one that comes after it.
    let patient = block(&elsewhere(&client, &local));
    assert_eq!(kind_of(block(&hasty).wait()), timed_out);
    eventually("all block", || local.blocked().unwrap() == 5);
    local.release().unwrap();
    patient.wait().unwrap();
    assert_eq!(add(&hasty, 1, 1).wait().unwrap(), 2, "late replies do no harm");
}

#[test]
fn the_end_of_a_connection_ends_all_calls() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let pending: Vec<_> = (0..100).map(|i| add(&probe, i, i)).collect();
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
fn a_connection_closed_in_order_is_made_anew() {
    let (listener, port) = raw::listen();
    let client = client();
    let probe = at(&client, port);
    let pending: Vec<_> = (0..5).map(|i| add(&probe, i, i)).collect();
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
fn nobody_listens() {
    let (listener, port) = raw::listen();
    drop(listener);
    let client = client();
    let pending = add(&at(&client, port), 1, 1);
    let e = run(pending).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = e.to_string();
    assert!(text.contains(&port.to_string()) && text.contains("add"), "says where and what: {text}");
}

#[test]
fn arguments_that_cannot_be_sent_end_the_call() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    for _ in 0..2 {
        let e = echo(&remote, "a\0b").wait().unwrap_err();
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No), "{e}");
        remote.ping().unwrap();
    }
}

#[test]
fn a_panicking_callback_is_contained_and_a_waiting_one_told() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    add(&remote, 1, 1).on_reply(|_| panic!("contained"));
    let (sender, receiver) = mpsc::channel();
    let (again, to_block) = (remote.clone(), remote.clone());
    add(&remote, 1, 1).on_reply(move |_| {
        let nested = block(&to_block).wait().unwrap_err();
        let synchronous = again.add(2, 2);
        sender.send((nested, synchronous)).unwrap();
    });
    let (nested, synchronous) = receiver.recv().unwrap();
    assert_eq!(nested.minor, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK);
    assert_eq!(synchronous.unwrap(), 4);
    eventually("it blocks", || local.blocked().unwrap() == 1);
    local.release().unwrap();
    assert_eq!(add(&remote, 1, 1).wait().unwrap(), 2);
}

#[test]
fn a_shutdown_ends_what_is_pending() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    let (sender, receiver) = mpsc::channel();
    block(&remote).on_reply(move |result| sender.send(result).unwrap());
    let pending = block(&remote);
    eventually("both block", || local.blocked().unwrap() == 2);
    client.shutdown(true).unwrap();
    assert_eq!(kind_of(pending.wait()).0, SystemExceptionKind::BadInvOrder);
    assert_eq!(kind_of(receiver.recv().unwrap()).0, SystemExceptionKind::BadInvOrder);
    assert_eq!(kind_of(add(&remote, 1, 1).wait()), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
    local.release().unwrap();
}

#[test]
fn large_requests_do_not_wait_for_the_caller() {
    let (_server, local) = server();
    let client = client();
    let remote = elsewhere(&client, &local);
    static REFLECT: Operation = Operation::twoway("reflect");
    let data: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    let pending: Vec<Pending<Vec<u8>, SystemException>> = (0..8)
        .map(|_| {
            invoke_async(
                &remote,
                &REFLECT,
                |servant: &dyn Probe| servant.reflect(&data),
                |w| w.write_octets(&data),
                |r| Ok(r.read_octets()?.to_vec()),
            )
        })
        .collect();
    for pending in pending {
        assert!(pending.wait().unwrap() == data);
    }
}

#[test]
fn old_versions_send_again_what_was_written_down() {
    for version in ["1.0", "1.1"] {
        let (listener, port) = raw::listen();
        let client = client();
        let url = format!("corbaloc:iiop:{version}@127.0.0.1:{port}/x");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        let pending = echo(&probe, "text");
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
