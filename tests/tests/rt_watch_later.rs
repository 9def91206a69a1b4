//! What an ORB that watches tells of requests that are answered after their upcalls, of those that wait for their upcalls
//! without a thread, and of those that wait in a socket.

use std::mem;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ironorb::poa::ThreadModel;
use ironorb::rt::WatchConfig;
use ironorb::status::WatchSnapshot;
use ironorb::{
    Deferred, Orb, Poa, PoaPolicies, Reply, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef,
};
use ironorb_tests::gate::Gate;
use ironorb_tests::real_time::{real_time, server_of};
use ironorb_tests::testing::{
    DeferredUnrelated, Probe as _, ProbeAsync as _, ProbeRef, UnrelatedAsync as _, UnrelatedRef,
};
use ironorb_tests::watch::{eventually_counted, interval};
use ironorb_tests::{Hooked, Probing, eventually};

const BOUND: Duration = Duration::from_millis(5);

const CALLS: u64 = 20;

fn server() -> Orb {
    server_of(real_time().watch(WatchConfig::new().wait_bound(BOUND))).build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn elsewhere<T: TypedRef>(client: &Orb, local: &T) -> T {
    client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// Keeps the replies that it owes.
#[derive(Clone, Default)]
struct Owing(Arc<Mutex<Vec<Reply<(), SystemException>>>>);

impl Owing {
    fn eventually_owes(&self, replies: u64) {
        eventually("the requests have arrived", || self.0.lock().unwrap().len() as u64 == replies);
    }

    fn answer(&self) {
        mem::take(&mut *self.0.lock().unwrap()).into_iter().for_each(|reply| reply.send(Ok(())));
    }
}

impl DeferredUnrelated for Owing {
    fn nothing(&self, reply: Reply<(), SystemException>) {
        self.0.lock().unwrap().push(reply);
    }
}

fn activate(poa: &Poa) -> (Owing, UnrelatedRef) {
    let owing = Owing::default();
    let object = poa.activate::<UnrelatedRef, _>(Deferred(owing.clone())).unwrap();
    (owing, object)
}

#[test]
fn a_deferred_reply_is_measured_from_its_answer() {
    let (server, client) = (server(), client());
    let (owing, local) = activate(&server.root_poa());
    let remote = elsewhere(&client, &local);
    let pending: Vec<_> = (0..CALLS).map(|_| remote.nothing_async()).collect();
    owing.eventually_owes(CALLS);
    eventually_counted(&server, 0, CALLS, 0);
    let begun = Instant::now();
    owing.answer();
    let at_most = begun.elapsed();
    pending.into_iter().for_each(|pending| pending.wait().unwrap());
    eventually_counted(&server, 0, CALLS, CALLS);
    let seen = server.watched(0);
    let replies = interval(&seen, 0, "reply");
    assert!(u128::from(replies.sum_ns_total) <= at_most.as_nanos(), "{replies:?}, not {at_most:?}");
    let dropped: Vec<_> = (0..2).map(|_| remote.nothing_async()).collect();
    owing.eventually_owes(2);
    owing.0.lock().unwrap().clear();
    let unanswered = dropped.into_iter().map(|pending| pending.wait().unwrap_err().kind);
    assert!(unanswered.into_iter().all(|kind| kind == SystemExceptionKind::Unknown));
    eventually_counted(&server, 0, CALLS + 2, CALLS + 2);
}

/// An upcall that answers an earlier request goes on: what it waits for afterwards is still its own.
#[test]
fn an_answer_to_another_request_does_not_end_an_upcall() {
    let (server, client) = (server(), client());
    let (owing, local) = activate(&server.root_poa());
    let answers = owing.clone();
    let local_probe: ProbeRef = server
        .root_poa()
        .activate(Hooked::new(move || {
            answers.answer();
            thread::sleep(2 * BOUND);
            Ok(())
        }))
        .unwrap();
    let pending = elsewhere(&client, &local).nothing_async();
    owing.eventually_owes(1);
    elsewhere(&client, &local_probe).ping().unwrap();
    pending.wait().unwrap();
    eventually_counted(&server, 0, 2, 2);
    let waits = server.watched(0).waits;
    let of_upcall = |kind: &str, what: &str| kind == "not the ORB's" && what == "ping";
    assert!(waits.iter().any(|wait| of_upcall(&wait.kind, &wait.what)), "{waits:?}");
}

#[test]
fn requests_that_a_manager_holds_are_queueing() {
    let (server, client) = (server(), client());
    let poa = server.root_poa().create_poa("held", None, PoaPolicies::default()).unwrap();
    let local: ProbeRef = poa.activate(Probing::default()).unwrap();
    let (owing, deferred) = activate(&poa);
    let remote = elsewhere(&client, &local);
    poa.manager().hold_requests(false).unwrap();
    let pending: Vec<_> = (0..CALLS).map(|_| remote.add_async(1, 2)).collect();
    let later = elsewhere(&client, &deferred).nothing_async();
    remote.tick().unwrap();
    eventually("all are held", || server.status().total("held_requests_total") == CALLS + 2);
    eventually_counted(&server, 0, 0, 0);
    let begun = Instant::now();
    thread::sleep(BOUND);
    let held = begun.elapsed();
    poa.manager().activate().unwrap();
    pending.into_iter().for_each(|pending| assert_eq!(pending.wait(), Ok(3)));
    owing.eventually_owes(1);
    eventually_counted(&server, 0, CALLS + 2, CALLS);
    let seen = server.watched(0);
    let queueing = interval(&seen, 0, "queueing");
    let at_least = held.as_nanos() * u128::from(CALLS + 2);
    assert!(u128::from(queueing.sum_ns_total) >= at_least, "{queueing:?}, not {held:?} each");
    owing.answer();
    later.wait().unwrap();
    eventually_counted(&server, 0, CALLS + 2, CALLS + 1);
}

#[test]
fn requests_that_a_manager_discards_are_in_no_interval() {
    let (server, client) = (server(), client());
    let poa = server.root_poa().create_poa("held", None, PoaPolicies::default()).unwrap();
    let local: ProbeRef = poa.activate(Probing::default()).unwrap();
    let remote = elsewhere(&client, &local);
    poa.manager().hold_requests(false).unwrap();
    let pending: Vec<_> = (0..CALLS).map(|_| remote.add_async(1, 2)).collect();
    eventually("all are held", || server.status().total("held_requests_total") == CALLS);
    poa.manager().discard_requests(false).unwrap();
    let refused = pending.into_iter().map(|pending| pending.wait().unwrap_err().kind);
    assert!(refused.into_iter().all(|kind| kind == SystemExceptionKind::Transient));
    poa.manager().activate().unwrap();
    assert_eq!(remote.add(1, 2), Ok(3));
    eventually_counted(&server, 0, 1, 1);
}

#[test]
fn requests_for_the_main_thread_count_when_it_carries_them_out() {
    let (server, client) = (server(), client());
    let policies = PoaPolicies { thread: ThreadModel::MainThread, ..PoaPolicies::default() };
    let poa = server.root_poa().create_poa("main", None, policies).unwrap();
    let local: ProbeRef = poa.activate(Probing::default()).unwrap();
    let remote = elsewhere(&client, &local);
    let pending: Vec<_> = (0..CALLS).map(|_| remote.add_async(1, 2)).collect();
    eventually("a request waits", || server.work_pending());
    eventually_counted(&server, 0, 0, 0);
    eventually("all are carried out", || {
        server.perform_work();
        pending.iter().all(|pending| pending.is_ready())
    });
    pending.into_iter().for_each(|pending| assert_eq!(pending.wait(), Ok(3)));
    eventually_counted(&server, 0, CALLS, CALLS);
}

/// The server's only thread is in an upcall, so that the next request stays in its socket.
#[test]
fn what_waits_in_a_socket_is_in_the_time_since_sending() {
    let builder = server_of(real_time().watch(WatchConfig::new().wait_bound(BOUND)));
    let server = builder.concurrency(ServerConcurrency::LeaderFollowers { threads: 1 }).build().unwrap();
    let gate = Gate::closed();
    let held = gate.clone();
    let servant = Hooked::new(move || {
        held.pass();
        Ok(())
    });
    let local: ProbeRef = server.root_poa().activate(servant).unwrap();
    let telling = || Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
    let (first, second, silent) = (telling(), telling(), client());
    let [first, second, silent] = [&first, &second, &silent].map(|client| elsewhere(client, &local));
    // Connections are made before the thread is busy.
    assert!([&first, &second, &silent].iter().all(|remote| remote.add(1, 2) == Ok(3)));
    let count = |seen: &WatchSnapshot| interval(seen, 0, "since_sending").count_total;
    eventually_counted(&server, 0, 3, 3);
    assert_eq!(count(&server.watched(0)), 2, "one caller tells no deadline");
    thread::scope(|scope| {
        scope.spawn(|| first.ping().unwrap());
        eventually("the thread is in the upcall", || gate.held() == 1);
        let waiting = second.add_async(1, 2);
        let begun = Instant::now();
        thread::sleep(2 * BOUND);
        let waited = begun.elapsed();
        gate.open();
        assert_eq!(waiting.wait(), Ok(3));
        assert_eq!(silent.add(1, 2), Ok(3));
        eventually_counted(&server, 0, 6, 6);
        let seen = server.watched(0);
        assert_eq!(count(&seen), 4, "and one more of each that tells it");
        let since_sending = interval(&seen, 0, "since_sending");
        assert!(u128::from(since_sending.max_ns) >= waited.as_nanos(), "{since_sending:?}, not {waited:?}");
    });
}
