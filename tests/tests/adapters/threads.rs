//! The thread that makes an upcall, by thread policy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use ironorb::poa::{PoaPolicies, ServantActivator, ThreadModel, Unavailable};
use ironorb::{
    Deferred, MinorCode, Orb, Poa, Reply, Servant, ServerConcurrency, SystemException, SystemExceptionKind,
    TypedRef, with_timeout,
};
use ironorb_tests::testing::{DeferredUnrelated, Probe, ProbeRef, Unrelated, UnrelatedRef};
use ironorb_tests::{Hooked, Probing, eventually};

use super::activators::{ACTIVATED, reference};
use super::{client, elsewhere, server};

const SINGLE: PoaPolicies = PoaPolicies { thread: ThreadModel::SingleThread, ..PoaPolicies::PERSISTENT };
const MAIN: PoaPolicies = PoaPolicies { thread: ThreadModel::MainThread, ..PoaPolicies::PERSISTENT };

/// Checks that no other upcall is in progress.
#[derive(Clone, Default)]
struct Alone(Arc<AtomicUsize>);

impl Alone {
    fn check(&self) {
        assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "two upcalls at once");
        for _ in 0..20 {
            std::thread::yield_now();
        }
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServantActivator for Alone {
    fn incarnate(&self, _: &ironorb::poa::ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        self.check();
        let alone = self.clone();
        let hooked = Hooked::new(move || {
            alone.check();
            Ok(())
        });
        Ok(ironorb::servant::<ProbeRef, _>(Arc::new(hooked)))
    }

    fn etherealize(&self, _: &ironorb::poa::ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.check();
    }
}

/// Makes calls of every kind from many threads. A servant's panic would come back as an exception.
fn crowd(orb: &Orb, thread: ThreadModel) {
    let poa = orb.root_poa().create_poa("crowd", None, PoaPolicies { thread, ..ACTIVATED }).unwrap();
    poa.set_servant_activator(Arc::new(Alone::default())).unwrap();
    let clients = [client(), client()];
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (poa, client) = (&poa, &clients[n % 2]);
            scope.spawn(move || {
                let local = reference(poa, &(n % 3).to_string());
                let remote = elsewhere(client, &local);
                for round in 0..30 {
                    let probe = if n < 2 { &local } else { &remote };
                    probe.ping().unwrap();
                    if round % 10 == n {
                        let _ = poa.deactivate(&(n % 3).to_string().into());
                    }
                }
            });
        }
    });
    poa.destroy(true, true).unwrap();
}

#[test]
fn a_single_threaded_adapter_never_makes_two_upcalls_at_once() {
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 4 },
        ServerConcurrency::Reactor,
        ServerConcurrency::Hybrid { threads_max: 4 },
    ] {
        let orb =
            Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency).build().unwrap();
        crowd(&orb, ThreadModel::SingleThread);
    }
}

#[test]
fn a_main_thread_makes_one_upcall_at_a_time() {
    let server = server();
    let running = server.clone();
    let main = std::thread::spawn(move || running.run());
    crowd(&server, ThreadModel::MainThread);
    server.shutdown(true).unwrap();
    main.join().unwrap().unwrap();
}

#[test]
fn a_servant_may_call_its_single_threaded_adapter_s_other_servants_locally() {
    let (server, client) = (server(), client());
    let poa = server.root_poa().create_poa("single", None, SINGLE).unwrap();
    let inner: ProbeRef = poa.activate_with_id("inner", Probing::default()).unwrap();
    let back = elsewhere(&client, &inner);
    let outer: ProbeRef = poa
        .activate_with_id(
            "outer",
            Hooked::new(move || {
                assert_eq!(inner.whoami()?, "inner");
                // A call over the network waits for the single-thread lock like any other, and runs into
                // its deadline.
                let e = with_timeout(Some(Duration::from_millis(20)), || back.ping()).unwrap_err();
                assert_eq!(e.kind, SystemExceptionKind::Timeout);
                Ok(())
            }),
        )
        .unwrap();
    outer.ping().unwrap();
    elsewhere(&client, &outer).ping().unwrap();
}

fn recording_thread(threads: &Arc<Mutex<Vec<ThreadId>>>) -> Hooked {
    let threads = threads.clone();
    Hooked::new(move || {
        threads.lock().unwrap().push(std::thread::current().id());
        Ok(())
    })
}

#[test]
fn upcalls_are_made_by_the_thread_that_runs_the_orb() {
    let (server, client) = (server(), client());
    let threads = Arc::new(Mutex::new(Vec::new()));
    let poa = server.root_poa().create_poa("main", None, MAIN).unwrap();
    let local: ProbeRef = poa.activate_with_id("object", recording_thread(&threads)).unwrap();
    let remote = elsewhere(&client, &local);
    let running = server.clone();
    let main = std::thread::spawn(move || {
        running.run().unwrap();
        std::thread::current().id()
    });
    local.ping().unwrap();
    remote.ping().unwrap();
    remote.tick().unwrap();
    eventually("oneways come as well", || remote.ticks().unwrap() == 1);
    assert!(remote.object().is_a("IDL:testing/Probe:1.0").unwrap());
    assert!(!remote.object().non_existent().unwrap());
    server.shutdown(true).unwrap();
    let main = main.join().unwrap();
    assert_eq!(*threads.lock().unwrap(), [main, main]);
}

#[test]
fn work_is_performed_piece_by_piece() {
    let (server, client) = (server(), client());
    let threads = Arc::new(Mutex::new(Vec::new()));
    let root = server.root_poa();
    let poa = root.create_poa("main", None, MAIN).unwrap();
    let other = root.create_poa("other", None, MAIN).unwrap();
    let local: ProbeRef = poa.activate_with_id("object", recording_thread(&threads)).unwrap();
    let held: ProbeRef = other.activate_with_id("held", recording_thread(&threads)).unwrap();
    let (remote, held) = (elsewhere(&client, &local), elsewhere(&client, &held));
    assert!(!server.work_pending());
    assert!(!server.perform_work());
    // This thread is the main thread only while it performs work. Its own calls do not wait.
    local.ping().unwrap();
    assert_eq!(std::mem::take(&mut *threads.lock().unwrap()), [std::thread::current().id()]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| held.ping());
        eventually("it has arrived", || server.work_pending());
        other.manager().hold_requests(false).unwrap();
        assert!(!server.work_pending(), "a manager holds the request");
        assert!(!server.perform_work());
        let second = scope.spawn(|| remote.ping());
        eventually("it has arrived", || server.work_pending());
        assert!(threads.lock().unwrap().is_empty());
        assert!(server.perform_work());
        second.join().unwrap().unwrap();
        assert!(!first.is_finished());
        other.manager().activate().unwrap();
        assert!(server.work_pending());
        assert!(server.perform_work());
        first.join().unwrap().unwrap();
        let me = std::thread::current().id();
        assert_eq!(*threads.lock().unwrap(), [me, me]);
        // A shutdown refuses work that no thread will perform any more.
        let abandoned = scope.spawn(|| remote.ping());
        eventually("it has arrived", || server.work_pending());
        server.shutdown(true).unwrap();
        let e = abandoned.join().unwrap().unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::Transient);
        assert!(!server.work_pending());
    });
}

#[test]
fn no_more_requests_wait_for_the_main_thread_than_its_limit() {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().held_requests_max = 2;
    // No other thread reads on while one is stopped.
    builder.config().threads_per_connection_max = 1;
    let server = builder.build().unwrap();
    let client = client();
    let poa = server.root_poa().create_poa("main", None, MAIN).unwrap();
    let local: ProbeRef = poa.activate_with_id("object", Probing::default()).unwrap();
    let remote = elsewhere(&client, &local);
    remote.tick().unwrap();
    remote.tick().unwrap();
    let e = remote.ping().unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED));
    assert!(server.perform_work() && server.perform_work() && !server.perform_work());
    std::thread::scope(|scope| {
        let ticks = scope.spawn(|| remote.ticks());
        eventually("it has arrived", || server.work_pending());
        assert!(server.perform_work());
        assert_eq!(ticks.join().unwrap().unwrap(), 2);
    });
}

struct Parking(Arc<Mutex<Vec<Reply<(), SystemException>>>>);

impl DeferredUnrelated for Parking {
    fn nothing(&self, reply: Reply<(), SystemException>) {
        self.0.lock().unwrap().push(reply);
    }
}

#[test]
fn a_deferred_reply_does_not_hold_the_single_thread_lock() {
    let (server, client) = (server(), client());
    let running = server.clone();
    let main = std::thread::spawn(move || running.run());
    for policies in [SINGLE, MAIN] {
        let poa = server.root_poa().create_poa("later", None, policies).unwrap();
        let parked = Arc::new(Mutex::new(Vec::new()));
        let local: UnrelatedRef = poa.activate_with_id("later", Deferred(Parking(parked.clone()))).unwrap();
        let remote: UnrelatedRef =
            client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
        let other: ProbeRef = poa.activate_with_id("other", Probing::default()).unwrap();
        std::thread::scope(|scope| {
            let calls = [scope.spawn(|| local.nothing()), scope.spawn(|| remote.nothing())];
            eventually("both have arrived", || parked.lock().unwrap().len() == 2);
            other.ping().unwrap();
            for reply in std::mem::take(&mut *parked.lock().unwrap()) {
                reply.send(Ok(()));
            }
            for call in calls {
                call.join().unwrap().unwrap();
            }
        });
        poa.destroy(true, true).unwrap();
    }
    server.shutdown(true).unwrap();
    main.join().unwrap().unwrap();
}

/// A servant activator whose servants reply later.
struct ParkingAll(Arc<Mutex<Vec<Reply<(), SystemException>>>>);

impl ServantActivator for ParkingAll {
    fn incarnate(&self, _: &ironorb::poa::ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        Ok(ironorb::servant::<UnrelatedRef, _>(Arc::new(Deferred(Parking(self.0.clone())))))
    }
}

#[test]
fn a_thread_that_waits_for_an_etherealisation_does_not_block_it() {
    let (server, client) = (server(), client());
    let running = server.clone();
    let main = std::thread::spawn(move || running.run());
    for thread in [ThreadModel::OrbControl, ThreadModel::SingleThread, ThreadModel::MainThread] {
        let policies = PoaPolicies { thread, ..ACTIVATED };
        let poa = server.root_poa().create_poa("going", None, policies).unwrap();
        let parked = Arc::new(Mutex::new(Vec::new()));
        poa.set_servant_activator(Arc::new(ParkingAll(parked.clone()))).unwrap();
        let local: UnrelatedRef = reference(&poa, "one").object().narrow_unchecked();
        let remote: UnrelatedRef =
            client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
        let take = || {
            eventually("it has arrived", || parked.lock().unwrap().len() == 1);
            parked.lock().unwrap().pop().unwrap()
        };
        for round in 0..20 {
            std::thread::scope(|scope| {
                let first = scope.spawn(|| remote.nothing());
                let reply = take();
                poa.deactivate(&"one".into()).unwrap();
                // The second call waits until the first is answered and etherealised, which may need this
                // call's thread.
                let second = scope.spawn(|| if round % 2 == 0 { remote.nothing() } else { local.nothing() });
                for _ in 0..round * 20 {
                    std::thread::yield_now();
                }
                assert!(!second.is_finished());
                reply.send(Ok(()));
                first.join().unwrap().unwrap();
                take().send(Ok(()));
                second.join().unwrap().unwrap();
            });
        }
        poa.destroy(true, true).unwrap();
    }
    server.shutdown(true).unwrap();
    main.join().unwrap().unwrap();
}
