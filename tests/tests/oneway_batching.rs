//! Batched oneways: what sends them, in which order, and what happens to them when an ORB or a connection
//! ends.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::{
    InvocationPolicies, MinorCode, OnewayBatching, Orb, SyncScope, SystemException, SystemExceptionKind,
    TypedRef, set_thread_policies, thread_policies,
};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, Listener, ListenerRef};
use ironorb_tests::{Exchanging, Probing, eventually, raw};

/// So long that a test that waits for it would not end.
const NEVER: Duration = Duration::from_secs(24 * 3600);

const UNTIL_FLUSHED: OnewayBatching =
    OnewayBatching { bytes_max: 1 << 20, count_max: usize::MAX, delay_max: NEVER };

fn batched(batching: OnewayBatching) -> InvocationPolicies {
    InvocationPolicies { oneway_batching: Some(Some(batching)), ..InvocationPolicies::NONE }
}

fn with<R: TypedRef>(reference: &R, policies: InvocationPolicies) -> R {
    R::from_object(reference.object().with_policies(policies))
}

fn server() -> (Orb, ProbeRef) {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn seen_by<R: TypedRef>(client: &Orb, reference: &R) -> R {
    client.string_to_object(&reference.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// The GIOP message type Request.
const REQUEST: u8 = 0;

/// A server without an ORB: the test decides when it reads.
fn plain_server(orb: &Orb) -> (std::net::TcpListener, ProbeRef) {
    // An address of these tests alone: a client of another test that tries the port of a server which has gone must not
    // be taken for theirs.
    let listener = std::net::TcpListener::bind("127.0.80.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let probe = orb.string_to_object(&format!("corbaloc:iiop:1.2@{address}/Probe")).unwrap();
    (listener, probe.narrow_unchecked())
}

fn accept(listener: &std::net::TcpListener) -> TcpStream {
    listener.accept().unwrap().0
}

/// True when no bytes have arrived. One look is enough: what the calling thread has sent is there by then.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn batched_oneways_wait_until_they_are_flushed() {
    let orb = client();
    let (listener, probe) = plain_server(&orb);
    let probe = with(&probe, batched(UNTIL_FLUSHED));
    let flushes: [&dyn Fn(); 2] = [&|| orb.flush().unwrap(), &|| probe.object().flush().unwrap()];
    probe.tick().unwrap();
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    for flush in flushes {
        assert!(is_silent(&mut stream));
        flush();
        for _ in 0..2 {
            assert_eq!(raw::read_message(&mut stream)[7], REQUEST);
        }
        probe.tick().unwrap();
        probe.tick().unwrap();
    }
}

#[test]
fn each_bound_sends_batched_oneways() {
    let orb = client();
    let (listener, probe) = plain_server(&orb);
    // The first call is not batched. It shows how long a request is, and that it is sent at once.
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    let bytes = raw::read_message(&mut stream).len();
    let bounds = [
        (OnewayBatching { count_max: 5, ..UNTIL_FLUSHED }, 5),
        (OnewayBatching { bytes_max: 3 * bytes, ..UNTIL_FLUSHED }, 3),
        (OnewayBatching { bytes_max: 3 * bytes + 1, ..UNTIL_FLUSHED }, 4),
        (OnewayBatching { count_max: 1, ..UNTIL_FLUSHED }, 1),
        (OnewayBatching { bytes_max: 0, ..UNTIL_FLUSHED }, 1),
    ];
    for (batching, count) in bounds {
        let probe = with(&probe, batched(batching));
        for round in 0..3 {
            for _ in 1..count {
                probe.tick().unwrap();
                assert!(is_silent(&mut stream), "{batching:?} {round}");
            }
            probe.tick().unwrap();
            for _ in 0..count {
                raw::read_message(&mut stream);
            }
            assert!(is_silent(&mut stream));
        }
    }
}

#[test]
fn the_delay_sends_oneways_without_further_calls() {
    let (_server, local) = server();
    let orb = client();
    let remote = seen_by(&orb, &local);
    for delay_max in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(40)] {
        let probe = with(&remote, batched(OnewayBatching { delay_max, ..UNTIL_FLUSHED }));
        // After a pause the receiver thread has stopped polling. The delay works then too.
        for count in [1, 3, 200] {
            let before = local.ticks().unwrap();
            (0..count).for_each(|_| probe.tick().unwrap());
            eventually("they have arrived", || local.ticks().unwrap() == before + count);
        }
    }
    // A oneway with a short delay sends those before it that would wait longer.
    let before = local.ticks().unwrap();
    with(&remote, batched(UNTIL_FLUSHED)).tick().unwrap();
    let soon = OnewayBatching { delay_max: Duration::from_millis(1), ..UNTIL_FLUSHED };
    with(&remote, batched(soon)).tick().unwrap();
    eventually("both have arrived", || local.ticks().unwrap() == before + 2);
}

/// Records its `notify` calls in order.
#[derive(Default, Clone)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Noting {
    fn notified(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Listener for Noting {
    fn nested_call(&self, _back: Option<&ExchangeRef>, depth: i32) -> Result<i32, SystemException> {
        Ok(depth)
    }

    fn notify(&self, what: &str) -> Result<(), SystemException> {
        self.0.lock().unwrap().push(what.to_owned());
        Ok(())
    }

    fn filled(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }
}

#[test]
fn calls_do_not_overtake_batched_oneways() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    // A thread that helps where a servant looks blocked would overtake it.
    builder.config().threads_per_connection_max = 1;
    let server = builder.build().unwrap();
    let noting = Noting::default();
    let local: ListenerRef = server.root_poa().activate(noting.clone()).unwrap();
    let orb = client();
    let remote = seen_by(&orb, &local);
    let listener = with(&remote, batched(UNTIL_FLUSHED));
    let mut expected = Vec::new();
    for round in 0..5 {
        for i in 0..100 {
            let what = format!("{round}.{i}");
            // Long arguments use gather writes, short ones are copied. A call that is not batched is sent
            // at once.
            let what = if i == 50 { what + &"x".repeat(20_000) } else { what };
            if i == 70 {
                remote.notify(&what).unwrap()
            } else {
                listener.notify(&what).unwrap()
            }
            expected.push(what);
        }
        remote.filled(&[]).unwrap();
        assert!(noting.notified() == expected, "after round {round}");
    }
}

#[test]
fn a_shutdown_sends_batched_oneways() {
    for wait in [true, false] {
        let (_server, local) = server();
        let orb = client();
        let probe = with(&seen_by(&orb, &local), batched(UNTIL_FLUSHED));
        (0..1000).for_each(|_| probe.tick().unwrap());
        assert_eq!(local.ticks().unwrap(), 0);
        orb.shutdown(wait).unwrap();
        eventually("all have arrived", || local.ticks().unwrap() == 1000);
    }
}

#[test]
fn dropping_the_orb_sends_batched_oneways() {
    let (_server, local) = server();
    let orb = client();
    let probe = with(&seen_by(&orb, &local), batched(UNTIL_FLUSHED));
    (0..100).for_each(|_| probe.tick().unwrap());
    drop(orb);
    eventually("all have arrived", || local.ticks().unwrap() == 100);
    // The reference still works, and the last one to be dropped sends the waiting oneways.
    (0..100).for_each(|_| probe.tick().unwrap());
    drop(probe);
    eventually("all have arrived", || local.ticks().unwrap() == 200);
}

#[test]
fn the_next_flush_reports_lost_oneways() {
    let orb = client();
    let (listener, probe) = plain_server(&orb);
    let probe = with(&probe, batched(UNTIL_FLUSHED));
    probe.object().flush().unwrap();
    (0..3).for_each(|_| probe.tick().unwrap());
    let mut stream = accept(&listener);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // The client notices the end while the oneways wait, and closes.
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "nothing has been sent");
    let e = probe.object().flush().unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::CommFailure, MinorCode::ONEWAYS_LOST));
    orb.flush().unwrap();
    // The next oneway uses a new connection.
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    orb.flush().unwrap();
    assert_eq!(raw::read_message(&mut stream)[7], REQUEST);
}

#[test]
fn oneways_with_a_sync_scope_are_not_batched() {
    let orb = client();
    let (listener, probe) = plain_server(&orb);
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    raw::read_message(&mut stream);
    let scoped = |scope| InvocationPolicies { sync_scope: Some(scope), ..batched(UNTIL_FLUSHED) };
    with(&probe, scoped(SyncScope::WithTransport)).tick().unwrap();
    raw::read_message(&mut stream);
    // A scope that a farther level sets applies too.
    orb.set_policies(InvocationPolicies {
        sync_scope: Some(SyncScope::WithTransport),
        ..InvocationPolicies::NONE
    });
    with(&probe, batched(UNTIL_FLUSHED)).tick().unwrap();
    raw::read_message(&mut stream);
    with(&probe, scoped(SyncScope::None)).tick().unwrap();
    assert!(is_silent(&mut stream));
    orb.flush().unwrap();
    raw::read_message(&mut stream);
}

#[test]
fn every_level_can_enable_and_disable_batching() {
    let mut builder = Orb::builder().no_endpoint();
    builder = builder.oneway_batching(Some(UNTIL_FLUSHED));
    let orb = builder.build().unwrap();
    let (listener, probe) = plain_server(&orb);
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    assert!(is_silent(&mut stream), "the setting");
    let never = InvocationPolicies { oneway_batching: Some(None), ..InvocationPolicies::NONE };
    with(&probe, never).tick().unwrap();
    (0..2).for_each(|_| drop(raw::read_message(&mut stream)));
    let before = thread_policies();
    set_thread_policies(never);
    probe.tick().unwrap();
    raw::read_message(&mut stream);
    set_thread_policies(before);
    orb.set_policies(never);
    probe.tick().unwrap();
    raw::read_message(&mut stream);
    assert_eq!(probe.object().effective_policies().oneway_batching, Some(None));
    set_thread_policies(batched(OnewayBatching::DEFAULT));
    assert_eq!(probe.object().effective_policies().oneway_batching, Some(Some(OnewayBatching::DEFAULT)));
    set_thread_policies(before);
}

#[test]
fn a_flood_of_oneways_arrives_and_does_not_pile_up() {
    let (server, local) = server();
    let mut builder = Orb::builder().no_endpoint().oneway_batching(Some(OnewayBatching::DEFAULT));
    builder.config().transmit_bytes_max = 64 << 10;
    let orb = builder.build().unwrap();
    let remote = seen_by(&orb, &local);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..50_000).for_each(|_| remote.tick().unwrap()));
        }
    });
    orb.flush().unwrap();
    eventually("all have arrived", || local.ticks().unwrap() == 150_000);
    server.shutdown(true).unwrap();
}

#[test]
fn a_oneway_that_may_not_block_fails_when_the_queue_is_full() {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().transmit_bytes_max = 64 << 10;
    let orb = builder.build().unwrap();
    let (listener, probe) = plain_server(&orb);
    let policies =
        InvocationPolicies { sync_scope: Some(SyncScope::None), ..batched(OnewayBatching::DEFAULT) };
    probe.tick().unwrap();
    let mut stream = accept(&listener);
    let probe = with(&probe, policies);
    let mut sent = 1;
    // The server does not read.
    let e = loop {
        match probe.tick() {
            Ok(()) => sent += 1,
            Err(e) => break e,
        }
    };
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::NoResources, MinorCode::TOO_MANY_CALLS));
    // Every accepted oneway arrives, and no more.
    (0..sent).for_each(|_| drop(raw::read_message(&mut stream)));
    orb.flush().unwrap();
    assert!(is_silent(&mut stream));
}

#[test]
fn oneways_over_a_bidirectional_connection_are_not_batched() {
    let bidirectional = |builder: ironorb::OrbBuilder| {
        let mut builder = builder.oneway_batching(Some(UNTIL_FLUSHED));
        builder.config().bidirectional = true;
        builder.build().unwrap()
    };
    let server = bidirectional(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap());
    let exchange: ExchangeRef = server.root_poa().activate(Exchanging::default()).unwrap();
    let client = bidirectional(Orb::builder().no_endpoint());
    let noting = Noting::default();
    let listener: ListenerRef = client.root_poa().activate(noting.clone()).unwrap();
    let remote = seen_by(&client, &exchange);
    remote.keep(Some(&listener)).unwrap();
    remote.notify_listener("all").unwrap();
    eventually("the call has arrived", || noting.notified() == ["all"]);
}
