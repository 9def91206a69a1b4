//! What calls of different lanes share. A thread of one lane is held inside something that all lanes use, and a call of another
//! lane completes all the same.
//!
//! The lanes are those of the calling threads. These tests use hooks that only builds with debug assertions have, and are
//! left out of others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ironorb::poa::{AdapterActivator, IdUniqueness, ManagerState, PoaPolicies, RequestProcessing};
use ironorb::testing::{self, Point};
use ironorb::{InvocationPolicies, Orb, Poa, Rebind, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::testing::{Unrelated, UnrelatedRef};
use ironorb_tests::{ThreadNumber, eventually};

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

/// Whether `call` completes in one lane while a thread of another lane is held at `point` of its `work`.
fn passes(point: Point, work: impl FnOnce() + Send, call: impl FnOnce() + Send) -> bool {
    let (held, is_held) = channel();
    let (let_go, is_let_go) = channel::<()>();
    let hook = move || {
        held.send(()).unwrap();
        let _call_is_over = is_let_go.recv();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            testing::in_lane(1, || {
                testing::at(point, hook);
                work();
            });
        });
        is_held.recv().expect("the work comes to this point");
        let (done, is_done) = channel();
        scope.spawn(move || {
            testing::in_lane(2, call);
            done.send(()).unwrap();
        });
        let has_passed = is_done.recv_timeout(FOR_LONG).is_ok();
        drop(let_go);
        has_passed
    })
}

struct Plain(Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>);

impl Unrelated for Plain {
    fn nothing(&self) -> Result<(), SystemException> {
        (self.0)()
    }
}

fn plain() -> Plain {
    Plain(Box::new(|| Ok(())))
}

fn orb() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

fn adapter(orb: &Orb, name: &str) -> Poa {
    let poa = orb.root_poa().create_poa(name, None, PoaPolicies::PERSISTENT).unwrap();
    poa.manager().activate().unwrap();
    poa
}

/// Calls an object by a reference that nobody has used.
fn call_anew(orb: &Orb, object: &UnrelatedRef) {
    let reference = orb.string_to_object(&object.object().to_ior_string()).unwrap();
    UnrelatedRef::from_object(reference).nothing().unwrap();
}

#[test]
fn requests_find_their_adapters_while_another_lane_makes_one() {
    let orb = orb();
    let by_slot: UnrelatedRef = orb.root_poa().activate(plain()).unwrap();
    let by_path: UnrelatedRef = adapter(&orb, "old").activate_with_id("one", plain()).unwrap();
    let passed = passes(
        Point::SnapshotChange,
        || drop(orb.root_poa().create_poa("new", None, PoaPolicies::PERSISTENT).unwrap()),
        || [&by_slot, &by_path].into_iter().for_each(|object| call_anew(&orb, object)),
    );
    assert!(passed, "a call waits for the thread that makes an adapter");
    orb.shutdown(true).unwrap();
}

fn set_default(poa: &Poa, servant: impl Unrelated) {
    poa.set_default_servant(ironorb::servant::<UnrelatedRef, _>(Arc::new(servant))).unwrap();
}

/// An adapter with a default servant, and one of the objects that it serves.
fn served_by_default(orb: &Orb, servant: impl Unrelated) -> (Poa, UnrelatedRef) {
    let policies = PoaPolicies {
        id_uniqueness: IdUniqueness::Multiple,
        request_processing: RequestProcessing::DefaultServant,
        ..PoaPolicies::PERSISTENT
    };
    let poa = orb.root_poa().create_poa("default", None, policies).unwrap();
    set_default(&poa, servant);
    let object = poa.create_reference_with_id("any", UnrelatedRef::REPOSITORY_ID).unwrap();
    (poa, object.narrow_unchecked())
}

#[test]
fn requests_reach_a_default_servant_while_another_lane_replaces_it() {
    let orb = orb();
    let (poa, object) = served_by_default(&orb, plain());
    let passed = passes(Point::SnapshotChange, || set_default(&poa, plain()), || object.nothing().unwrap());
    assert!(passed, "a call waits for the thread that sets the default servant");
    orb.shutdown(true).unwrap();
}

#[test]
fn policies_and_references_are_read_while_another_lane_changes_them() {
    let orb = orb();
    let object: UnrelatedRef = orb.root_poa().activate(plain()).unwrap();
    let policies = InvocationPolicies { rebind: Some(Rebind::NoRebind), ..InvocationPolicies::NONE };
    orb.set_policies(policies);
    orb.register_initial_reference("Known", object.object());
    let changes: [(&str, &(dyn Fn() + Sync)); 3] = [
        ("policies", &|| orb.set_policies(policies)),
        ("initial references", &|| orb.register_initial_reference("New", object.object())),
        ("servers", &|| drop(orb.string_to_object("corbaloc::192.0.2.1:9/new").unwrap())),
    ];
    for (what, change) in changes {
        let passed = passes(Point::SnapshotChange, change, || {
            call_anew(&orb, &object);
            assert_eq!(object.effective_policies().rebind, Some(Rebind::NoRebind));
            orb.resolve_initial_references("Known").unwrap();
        });
        assert!(passed, "a call waits for the thread that changes {what}");
    }
    orb.shutdown(true).unwrap();
}

/// Makes no adapter before it is told.
struct Slow {
    begun: Sender<()>,
    may_end: Mutex<Receiver<()>>,
}

impl AdapterActivator for Slow {
    fn unknown_adapter(&self, _: &Poa, _: &str) -> Result<bool, SystemException> {
        self.begun.send(()).unwrap();
        let _test_goes_on = self.may_end.lock().unwrap().recv();
        Ok(false)
    }
}

#[test]
fn a_slow_adapter_activator_delays_no_call_of_another_lane() {
    let orb = orb();
    let object: UnrelatedRef = adapter(&orb, "old").activate_with_id("one", plain()).unwrap();
    let (begun, has_begun) = channel();
    let (end, may_end) = channel::<()>();
    let activator = Slow { begun, may_end: Mutex::new(may_end) };
    orb.root_poa().set_adapter_activator(Some(Arc::new(activator)));
    let root = orb.root_poa();
    let passed = thread::scope(|scope| {
        scope.spawn(|| testing::in_lane(1, || root.find_poa("new", true).unwrap_err()));
        has_begun.recv().unwrap();
        let (done, is_done) = channel();
        let (orb, object) = (&orb, &object);
        scope.spawn(move || {
            testing::in_lane(2, || {
                call_anew(orb, object);
                orb.root_poa().create_poa("other", None, PoaPolicies::PERSISTENT).unwrap();
            });
            done.send(()).unwrap();
        });
        let has_passed = is_done.recv_timeout(FOR_LONG).is_ok();
        drop(end);
        has_passed
    });
    assert!(passed, "a call waits for an adapter activator of another lane");
    orb.shutdown(true).unwrap();
}

/// A servant whose destructor tells the name of its thread.
struct Told(Sender<Option<String>>);

impl Unrelated for Told {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.send(thread::current().name().map(str::to_owned)).unwrap();
    }
}

#[test]
fn servants_of_other_lanes_are_dropped_by_a_thread_of_the_default_lane() {
    let orb = orb();
    let poa = adapter(&orb, "dropping");
    let (tell, told) = channel();
    let deactivated_in = |lane, id: &str| {
        let _object: UnrelatedRef = poa.activate_with_id(id, Told(tell.clone())).unwrap();
        testing::in_lane(lane, || poa.deactivate(&id.into()).unwrap());
        told.recv_timeout(FOR_LONG).expect("the servant is dropped")
    };
    let own = thread::current().name().map(str::to_owned);
    assert_eq!(deactivated_in(0, "one lane"), own, "as ever in an ORB with one lane");
    assert_eq!(deactivated_in(3, "other lane").as_deref(), Some("ironorb-drop"));
    orb.shutdown(true).unwrap();
}

#[test]
fn a_default_servant_that_is_replaced_during_a_request_of_another_lane_is_dropped_by_the_default_lane() {
    /// Blocks its only request.
    struct Blocks(Sender<()>, Mutex<Receiver<()>>, Told);
    impl Unrelated for Blocks {
        fn nothing(&self) -> Result<(), SystemException> {
            self.0.send(()).unwrap();
            let _may_go_on = self.1.lock().unwrap().recv();
            self.2.nothing()
        }
    }
    let orb = orb();
    let (begin, begun) = channel();
    let (end, may_end) = channel();
    let (tell, told) = channel();
    let blocks = Blocks(begin, Mutex::new(may_end), Told(tell));
    let (poa, object) = served_by_default(&orb, blocks);
    thread::scope(|scope| {
        scope.spawn(|| testing::in_lane(3, || object.nothing().unwrap()));
        begun.recv_timeout(FOR_LONG).expect("the request begins");
        set_default(&poa, plain());
        assert!(told.try_recv().is_err(), "its request is in progress");
        end.send(()).unwrap();
    });
    let by = told.recv_timeout(FOR_LONG).expect("the servant is dropped");
    assert_eq!(by.as_deref(), Some("ironorb-drop"));
    orb.shutdown(true).unwrap();
}

/// Enough calls to make a binding.
const OFTEN: usize = 20;

#[test]
fn a_change_of_one_manager_leaves_the_leases_of_another_in_force() {
    static BY_LEASE: AtomicUsize = AtomicUsize::new(0);
    let orb = orb();
    let count = || {
        BY_LEASE.store(testing::upcalls_by_lease(), Ordering::SeqCst);
        Ok(())
    };
    let (first, second) = (adapter(&orb, "first"), adapter(&orb, "second"));
    let ends: UnrelatedRef = first.activate_with_id("one", Plain(Box::new(count))).unwrap();
    let stays: UnrelatedRef = second.activate_with_id("one", Plain(Box::new(count))).unwrap();
    for object in [&ends, &stays] {
        (0..OFTEN).for_each(|_| object.nothing().unwrap());
        assert_eq!(BY_LEASE.load(Ordering::SeqCst), 1);
    }
    let is_by_lease = |object: &UnrelatedRef| {
        object.nothing().unwrap();
        BY_LEASE.load(Ordering::SeqCst) == 1
    };
    first.manager().hold_requests(true).unwrap();
    first.manager().activate().unwrap();
    assert!(is_by_lease(&stays), "a change of another manager ends no lease");
    assert!(!is_by_lease(&ends), "the change of its own manager does");
    orb.shutdown(true).unwrap();
}

#[test]
fn a_thread_with_a_real_time_priority_calls_by_no_lease_and_interrupts_no_processor() {
    static BY_LEASE: AtomicUsize = AtomicUsize::new(usize::MAX);
    static IS_ENDED: AtomicBool = AtomicBool::new(false);
    struct Ends;
    impl Unrelated for Ends {
        fn nothing(&self) -> Result<(), SystemException> {
            BY_LEASE.store(testing::upcalls_by_lease(), Ordering::SeqCst);
            Ok(())
        }
    }
    impl Drop for Ends {
        fn drop(&mut self) {
            IS_ENDED.store(true, Ordering::SeqCst);
        }
    }
    let orb = orb();
    let poa = adapter(&orb, "shared");
    let object: UnrelatedRef = poa.activate_with_id("one", Ends).unwrap();
    (0..OFTEN).for_each(|_| object.nothing().unwrap());
    assert_eq!(BY_LEASE.load(Ordering::SeqCst), 1);
    let (tell, told) = channel();
    testing::spawn_real_time(move || {
        (0..OFTEN).for_each(|_| object.nothing().unwrap());
        let by_lease = BY_LEASE.load(Ordering::SeqCst);
        // With debug assertions, this thread would panic where it has the processors catch up.
        poa.deactivate(&"one".into()).unwrap();
        tell.send((by_lease, object.nothing().unwrap_err().kind)).unwrap();
    });
    let outcome = told.recv().expect("the thread does not panic");
    assert_eq!(outcome, (0, SystemExceptionKind::ObjectNotExist));
    eventually("the object ends", || IS_ENDED.load(Ordering::SeqCst));
    orb.shutdown(true).unwrap();
}

#[test]
fn a_full_queue_of_held_requests_refuses_none_of_another_lane() {
    let mut builder = Orb::builder().no_endpoint();
    builder.config().held_requests_max = 1;
    let orb = builder.build().unwrap();
    let poa = adapter(&orb, "held");
    let object: UnrelatedRef = poa.activate_with_id("one", plain()).unwrap();
    poa.manager().hold_requests(false).unwrap();
    thread::scope(|scope| {
        let (tell, told) = channel();
        let calls: Vec<_> = (0..3)
            .map(|lane| {
                let (object, tell) = (&object, tell.clone());
                scope.spawn(move || {
                    tell.send(ThreadNumber::own()).unwrap();
                    testing::in_lane(lane, || object.nothing())
                })
            })
            .collect();
        let threads: Vec<ThreadNumber> = told.iter().take(calls.len()).collect();
        eventually("each call waits or is refused", || {
            threads.iter().all(|thread| thread.is_asleep()) || calls.iter().any(|call| call.is_finished())
        });
        poa.manager().activate().unwrap();
        for call in calls {
            call.join().unwrap().unwrap();
        }
    });
    assert_eq!(poa.manager().state(), ManagerState::Active);
    orb.shutdown(true).unwrap();
}

#[test]
fn a_request_is_refused_while_a_thread_of_another_lane_is_in_its_own_queue() {
    let orb = orb();
    let poa = adapter(&orb, "discarding");
    let object: UnrelatedRef = poa.activate_with_id("one", plain()).unwrap();
    poa.manager().discard_requests(true).unwrap();
    let is_refused = || {
        assert_eq!(object.nothing().unwrap_err().kind, SystemExceptionKind::Transient);
    };
    assert!(passes(Point::HeldQueue, is_refused, is_refused), "a call waits for the queue of another lane");
    orb.shutdown(true).unwrap();
}
