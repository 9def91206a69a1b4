//! The request cache. A request whose bytes repeat earlier ones reaches its servant without a lookup. A
//! request that differs in its object alone reaches its adapter so. The next request must see everything
//! that ends this, and operations that wait for requests must wait for cached ones too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;

use ironorb::poa::{IdAssignment, ManagerState, ObjectId, PoaCurrent, PoaPolicies};
use ironorb::{Demultiplexing, MinorCode, Orb, Poa, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

use super::{GONE, client, elsewhere, kind_of, server};

/// So many calls that requests are known.
const MANY: usize = 300;

fn ping_often(probe: &ProbeRef) {
    (0..MANY).for_each(|_| probe.ping().unwrap());
}

/// How the test calls an object so that the request cache holds its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// One object, many times.
    Repeated,
    /// The object in turn with another of its adapter.
    InTurn,
}

impl Calls {
    const BOTH: [Calls; 2] = [Calls::Repeated, Calls::InTurn];

    fn make(self, probe: &ProbeRef, fellow: &ProbeRef) {
        for _ in 0..MANY {
            probe.ping().unwrap();
            if self == Calls::InTurn {
                fellow.ping().unwrap();
            }
        }
    }
}

/// Whether the request that this thread carries out was found in the cache.
fn is_request_cached() -> bool {
    #[cfg(debug_assertions)]
    return ironorb::testing::is_request_cached();
    #[cfg(not(debug_assertions))]
    panic!("only a build with debug assertions tells which requests the cache holds: test without --release");
}

/// Else all of these tests would be about requests that are looked up each time.
#[test]
fn repeated_requests_are_found_in_the_cache() {
    for (calls, demultiplexing) in Calls::BOTH
        .iter()
        .flat_map(|calls| [(calls, Demultiplexing::Delayered), (calls, Demultiplexing::Layered)])
    {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
        builder.config().demultiplexing = demultiplexing;
        // A thread that helps where a servant looks blocked has a cache of its own.
        builder.config().threads_per_connection_max = 1;
        let (server, client) = (builder.build().unwrap(), client());
        let poa = user(&server.root_poa());
        let known = Arc::new(AtomicUsize::new(0));
        let count = known.clone();
        let servant = Hooked::new(move || {
            count.fetch_add(usize::from(is_request_cached()), Ordering::SeqCst);
            Ok(())
        });
        let probe: ProbeRef = poa.activate_with_id("object", servant).unwrap();
        let (remote, fellow) = (elsewhere(&client, &probe), fellow(&client, &poa));
        calls.make(&remote, &fellow);
        let first = known.swap(0, Ordering::SeqCst);
        calls.make(&remote, &fellow);
        let expected = if demultiplexing == Demultiplexing::Delayered { MANY } else { 0 };
        assert_eq!(known.load(Ordering::SeqCst), expected, "{calls:?}, {demultiplexing:?}, {first} before");
        assert_eq!(first > 0, expected > 0, "often enough for the other tests: {calls:?}");
        probe.ping().unwrap();
        assert_eq!(known.load(Ordering::SeqCst), expected, "a call within the process is no request");
    }
}

/// The other object of an adapter whose object is called "object".
fn fellow(client: &Orb, poa: &Poa) -> ProbeRef {
    elsewhere(client, &poa.activate_with_id("fellow", Probing::default()).unwrap())
}

fn user(poa: &Poa) -> Poa {
    let policies = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::default() };
    poa.create_poa("user", None, policies).unwrap()
}

/// Counts calls, and sets a flag when it is dropped.
struct Counted(Arc<AtomicUsize>, Arc<AtomicBool>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

fn counted(count: &Arc<AtomicUsize>, is_dropped: &Arc<AtomicBool>) -> Hooked {
    let counted = Counted(count.clone(), is_dropped.clone());
    Hooked::new(move || {
        counted.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
}

#[test]
fn deactivation_ends_cached_requests_and_drops_the_servant() {
    let (server, client) = (server(), client());
    let adapters = [server.root_poa(), user(&server.root_poa())];
    for (poa, calls) in adapters.iter().flat_map(|poa| Calls::BOTH.map(|calls| (poa, calls))) {
        let (count, is_dropped) = (Arc::default(), Arc::default());
        let is_user = poa.name() == "user";
        let activate = |servant| -> ProbeRef {
            match is_user {
                true => poa.activate_with_id(format!("{calls:?}"), servant).unwrap(),
                false => poa.activate(servant).unwrap(),
            }
        };
        let probe = activate(counted(&count, &is_dropped));
        let remote = elsewhere(&client, &probe);
        let fellow: ProbeRef = match is_user {
            true => poa.activate_with_id(format!("{calls:?}").to_lowercase(), Probing::default()).unwrap(),
            false => poa.activate(Probing::default()).unwrap(),
        };
        calls.make(&remote, &elsewhere(&client, &fellow));
        assert_eq!(count.swap(0, Ordering::SeqCst), MANY);
        poa.deactivate(&poa.reference_to_id(probe.object()).unwrap()).unwrap();
        eventually("the servant is dropped", || is_dropped.load(Ordering::SeqCst));
        assert_eq!(kind_of(remote.ping()), GONE);
        let (other_count, other_is_dropped) = (Arc::default(), Arc::default());
        let other = activate(counted(&other_count, &other_is_dropped));
        // An adapter with user ids serves the new object under the old id and key.
        assert_eq!(remote.ping().is_ok(), is_user);
        ping_often(&elsewhere(&client, &other));
        assert_eq!(count.load(Ordering::SeqCst), 0);
        assert_eq!(other_count.load(Ordering::SeqCst), MANY + usize::from(is_user));
    }
}

#[test]
fn ending_an_adapter_or_a_manager_waits_for_cached_requests() {
    type End = fn(&Poa);
    let ends: [End; 4] = [
        |poa| poa.destroy(true, true).unwrap(),
        |poa| poa.manager().hold_requests(true).unwrap(),
        |poa| poa.manager().discard_requests(true).unwrap(),
        |poa| poa.manager().deactivate(true, true).unwrap(),
    ];
    for (end, calls) in ends.into_iter().flat_map(|end| Calls::BOTH.map(|calls| (end, calls))) {
        let (server, client) = (server(), client());
        let poa = user(&server.root_poa());
        let (entered, has_entered) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let blocks = Arc::new(AtomicBool::new(false));
        let (is_blocking, channels) = (blocks.clone(), Mutex::new((entered, may_go_on)));
        let servant = Hooked::new(move || {
            if is_blocking.load(Ordering::SeqCst) {
                let channels = channels.lock().unwrap();
                channels.0.send(()).unwrap();
                channels.1.recv().unwrap();
            }
            Ok(())
        });
        let probe: ProbeRef = poa.activate_with_id("object", servant).unwrap();
        let remote = elsewhere(&client, &probe);
        let fellow = fellow(&client, &poa);
        thread::scope(|scope| {
            // Uses one thread, which keeps its connection.
            let call = scope.spawn(|| {
                calls.make(&remote, &fellow);
                blocks.store(true, Ordering::SeqCst);
                remote.ping()
            });
            has_entered.recv().unwrap();
            let ending = scope.spawn(|| end(&poa));
            // New requests are refused once `end` has begun. From then on `end` must not return before the
            // blocked request.
            let is_active = || poa.manager().state() == ManagerState::Active;
            let is_alive = || poa.create_reference_with_id("new", ProbeRef::REPOSITORY_ID).is_ok();
            eventually("it has begun", || !(is_active() && is_alive()));
            for _ in 0..1000 {
                thread::yield_now();
                assert!(!ending.is_finished(), "`end` waits for the request");
            }
            go_on.send(()).unwrap();
            call.join().unwrap().unwrap();
            ending.join().unwrap();
        });
    }
}

#[test]
fn a_manager_s_state_applies_to_the_next_cached_request() {
    let (server, client) = (server(), client());
    let poa = user(&server.root_poa());
    let probe: ProbeRef = poa.activate_with_id("object", Probing::default()).unwrap();
    let remote = elsewhere(&client, &probe);
    let fellow = fellow(&client, &poa);
    for calls in Calls::BOTH.repeat(2) {
        calls.make(&remote, &fellow);
        poa.manager().discard_requests(false).unwrap();
        let e = remote.ping().unwrap_err();
        assert_eq!((e.kind, e.minor), (SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED));
        poa.manager().hold_requests(false).unwrap();
        thread::scope(|scope| {
            let held = scope.spawn(|| remote.ping());
            poa.manager().activate().unwrap();
            held.join().unwrap().unwrap();
        });
    }
    ping_often(&remote);
    poa.manager().deactivate(false, false).unwrap();
    assert_eq!(kind_of(remote.ping()).0, SystemExceptionKind::ObjAdapter);
}

/// On demand a servant deactivates itself, calls another one in its process, and asks for its object id.
struct Asking {
    ends: Arc<AtomicBool>,
    other: ProbeRef,
}

impl Asking {
    fn ask(&self) -> Result<(), SystemException> {
        let id = PoaCurrent.object_id().expect("this is an upcall");
        assert_eq!(id, ObjectId::from("object"));
        let poa = PoaCurrent.poa().expect("this is an upcall");
        assert_eq!(poa.name(), "user");
        assert_eq!(self.other.whoami()?, "fellow");
        assert_eq!(PoaCurrent.object_id(), Some(id.clone()), "again");
        if self.ends.load(Ordering::SeqCst) {
            poa.deactivate(&id)?;
            assert_eq!(PoaCurrent.object_id(), Some(id), "until it returns");
            assert!(poa.manager().hold_requests(true).is_err(), "the upcall would wait for itself");
        }
        Ok(())
    }
}

#[test]
fn a_servant_reached_by_a_cached_request_knows_its_object_and_may_deactivate_itself() {
    for calls in Calls::BOTH {
        let (server, client) = (server(), client());
        let poa = user(&server.root_poa());
        let other: ProbeRef = poa.activate_with_id("fellow", Probing::default()).unwrap();
        let fellow = elsewhere(&client, &other);
        let ends = Arc::new(AtomicBool::new(false));
        let asking = Asking { ends: ends.clone(), other };
        let servant = Hooked::new(move || asking.ask());
        let probe: ProbeRef = poa.activate_with_id("object", servant).unwrap();
        let remote = elsewhere(&client, &probe);
        calls.make(&remote, &fellow);
        ends.store(true, Ordering::SeqCst);
        remote.ping().unwrap();
        assert_eq!(kind_of(remote.ping()), GONE);
        assert_eq!(PoaCurrent.object_id(), None);
        fellow.ping().unwrap();
    }
}

/// Each servant calls the next in its process, through collocated bindings and without, deeper than
/// bindings nest.
#[test]
fn collocated_calls_within_cached_requests_know_their_objects() {
    const IDS: [&str; 3] = ["a", "b", "c"];
    let id = || PoaCurrent.object_id().map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    for calls in Calls::BOTH {
        let (server, client) = (server(), client());
        let poa = user(&server.root_poa());
        let objects = Arc::new(OnceLock::<Vec<ProbeRef>>::new());
        let left = Arc::new(AtomicUsize::new(0));
        let activate = |n: usize| -> ProbeRef {
            let (objects, left) = (objects.clone(), left.clone());
            let servant = Hooked::new(move || {
                assert_eq!(id().as_deref(), Some(IDS[n]));
                let further = left.load(Ordering::SeqCst);
                if further > 0 {
                    left.store(further - 1, Ordering::SeqCst);
                    let next = (n + 1) % IDS.len();
                    match further % 4 {
                        0 => {
                            let poa = PoaCurrent.poa().expect("this is an upcall");
                            let is_new = poa.id_to_reference(&IDS[next].into()).unwrap();
                            is_new.narrow_unchecked::<ProbeRef>().ping()?;
                        }
                        _ => objects.get().unwrap()[next].ping()?,
                    }
                    assert_eq!(id().as_deref(), Some(IDS[n]), "again, with {further} further in");
                }
                Ok(())
            });
            poa.activate_with_id(IDS[n], servant).unwrap()
        };
        let objects = objects.get_or_init(|| (0..IDS.len()).map(activate).collect());
        let remotes: Vec<_> = objects.iter().map(|object| elsewhere(&client, object)).collect();
        objects.iter().for_each(ping_often);
        calls.make(&remotes[0], &remotes[1]);
        for depth in 0..40 {
            for remote in &remotes {
                left.store(depth, Ordering::SeqCst);
                remote.ping().unwrap();
                assert_eq!(left.load(Ordering::SeqCst), 0);
            }
        }
        assert_eq!(id(), None);
    }
}

/// Ids of all lengths, and so keys of all lengths, in adapters that are created again under their names.
#[test]
fn a_recreated_adapter_serves_its_new_objects() {
    let (server, client) = (server(), client());
    // Lengths with every remainder of the words that a comparison takes.
    let ids: Vec<String> = (1..40).step_by(3).flat_map(|n| ["a", "b"].map(|octet| octet.repeat(n))).collect();
    let mut remotes: Vec<ProbeRef> = Vec::new();
    for round in 0..3 {
        let policies = PoaPolicies::PERSISTENT;
        let poa = server.root_poa().create_poa("again", None, policies).unwrap();
        let probes = ids.iter().map(|id| -> ProbeRef {
            let probe: ProbeRef = poa.activate_with_id(&**id, Probing::default()).unwrap();
            probe.set_label(&format!("{id} {round}")).unwrap();
            elsewhere(&client, &probe)
        });
        let probes: Vec<_> = probes.collect();
        if remotes.is_empty() {
            remotes = probes;
        }
        for (pair, ids) in remotes.chunks(2).zip(ids.chunks(2)) {
            for _ in 0..MANY {
                for (probe, id) in pair.iter().zip(ids) {
                    assert_eq!(probe.label().unwrap(), format!("{id} {round}"));
                }
            }
        }
        poa.destroy(true, true).unwrap();
        assert_eq!(kind_of(remotes[ids.len() - 1].label()), GONE);
    }
}

#[test]
fn alternating_operations_and_objects_are_not_confused() {
    let (server, client) = (server(), client());
    let probes: Vec<ProbeRef> = (0..20)
        .map(|_| elsewhere(&client, &server.root_poa().activate(Probing::default()).unwrap()))
        .collect();
    for (number, probe) in (0..).zip(&probes) {
        probe.set_label(&format!("{number}")).unwrap();
        // The request repeats often enough to be cached, with other arguments each time.
        for a in 0..MANY as i32 {
            assert_eq!(probe.add(a, number).unwrap(), a + number);
        }
    }
    for round in 0..100 {
        for (number, probe) in (0..).zip(&probes) {
            assert_eq!(probe.label().unwrap(), format!("{number}"));
            assert_eq!(probe.add(round, number).unwrap(), round + number);
            probe.tick().unwrap();
            assert_eq!(probe.echo("echo").unwrap(), "echo");
        }
    }
    for probe in &probes {
        assert_eq!(probe.ticks().unwrap(), 100);
    }
}

/// A cached request raises its exception each time, with the right contents.
#[test]
fn cached_requests_raise_their_exceptions_each_time() {
    let (server, client) = (server(), client());
    let remote = elsewhere(&client, &server.root_poa().activate(Probing::default()).unwrap());
    for _ in 0..MANY {
        assert!(remote.refuse("why").is_err());
        assert_eq!(kind_of(remote.fall_over()).0, SystemExceptionKind::Unknown);
    }
    remote.ping().unwrap();
}
