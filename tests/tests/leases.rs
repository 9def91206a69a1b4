//! Calls within a process use collocated bindings, which references keep. A binding may contain a servant
//! that has no destructor. Such a servant must not be called after its object's deactivation, through any
//! clone of the reference.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use ironorb::poa::{ManagerState, PoaCurrent, PoaError, PoaPolicies};
use ironorb::{Orb, Poa, SystemException, SystemExceptionKind};
use ironorb_tests::testing::{Unrelated, UnrelatedRef};

/// A servant without a destructor.
struct Plain(fn() -> Result<(), SystemException>);

impl Unrelated for Plain {
    fn nothing(&self) -> Result<(), SystemException> {
        (self.0)()
    }
}

fn server() -> (Orb, Poa) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let poa = orb.root_poa().create_poa("plain", None, PoaPolicies::PERSISTENT).unwrap();
    poa.manager().activate().unwrap();
    (orb, poa)
}

fn current_id() -> Option<String> {
    PoaCurrent.object_id().map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
}

/// Enough calls to make a binding.
const OFTEN: usize = 20;

#[test]
fn a_reactivated_object_is_served_by_its_new_servant() {
    static ODD: AtomicU32 = AtomicU32::new(0);
    static EVEN: AtomicU32 = AtomicU32::new(0);
    fn odd() -> Result<(), SystemException> {
        ODD.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn even() -> Result<(), SystemException> {
        EVEN.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    let (orb, poa) = server();
    let first: UnrelatedRef = poa.activate_with_id("one", Plain(even)).unwrap();
    let mut clones = vec![first.clone()];
    let ordinary: UnrelatedRef = first.clone();
    for round in 0..30 {
        clones.push(clones[round / 2].clone());
        for reference in clones.iter().chain([&ordinary]) {
            (0..OFTEN).for_each(|_| reference.nothing().unwrap());
        }
        let (right, wrong) = if round % 2 == 0 { (&EVEN, &ODD) } else { (&ODD, &EVEN) };
        let calls = OFTEN * (clones.len() + 1);
        assert_eq!(
            (right.swap(0, Ordering::SeqCst), wrong.load(Ordering::SeqCst)),
            (calls as u32, 0),
            "{round}"
        );
        poa.deactivate(&"one".into()).unwrap();
        for reference in clones.iter().chain([&ordinary]) {
            let gone = reference.nothing().unwrap_err();
            assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist, "{round}");
        }
        let next = Plain(if round % 2 == 0 { odd } else { even });
        let _: UnrelatedRef = poa.activate_with_id("one", next).unwrap();
    }
    orb.shutdown(true).unwrap();
}

#[test]
fn bound_calls_nest_and_survive_a_panic() {
    static ITSELF: OnceLock<UnrelatedRef> = OnceLock::new();
    static LEFT: AtomicU32 = AtomicU32::new(0);
    static ENDS_WELL: AtomicBool = AtomicBool::new(true);
    fn nested() -> Result<(), SystemException> {
        assert_eq!(current_id().as_deref(), Some("itself"));
        let left = LEFT.load(Ordering::SeqCst);
        if left == 0 {
            assert!(ENDS_WELL.load(Ordering::SeqCst), "on purpose");
            return Ok(());
        }
        LEFT.store(left - 1, Ordering::SeqCst);
        let ended = ITSELF.get().unwrap().nothing();
        assert_eq!(current_id().as_deref(), Some("itself"), "{left}");
        ended
    }
    let (orb, poa) = server();
    let itself = poa.activate_with_id("itself", Plain(nested)).unwrap();
    let itself = ITSELF.get_or_init(|| itself);
    for round in 0..OFTEN as u32 {
        // More nested calls than there are activity slots.
        LEFT.store(2 * round, Ordering::SeqCst);
        itself.nothing().unwrap();
        assert_eq!(current_id(), None);
    }
    ENDS_WELL.store(false, Ordering::SeqCst);
    for round in [0, 1, 40] {
        LEFT.store(round, Ordering::SeqCst);
        let e = itself.nothing().unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::Unknown);
        assert_eq!(current_id(), None);
    }
    orb.shutdown(true).unwrap();
}

#[test]
fn holding_requests_waits_for_bound_calls_while_other_calls_go_on() {
    static HELD: Mutex<()> = Mutex::new(());
    static ENTERED: AtomicU32 = AtomicU32::new(0);
    static BLOCKS: AtomicBool = AtomicBool::new(false);
    fn held() -> MutexGuard<'static, ()> {
        HELD.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn block() -> Result<(), SystemException> {
        if BLOCKS.load(Ordering::SeqCst) {
            ENTERED.fetch_add(1, Ordering::SeqCst);
            drop(held());
        }
        Ok(())
    }
    fn enter(reference: &UnrelatedRef) {
        let before = ENTERED.load(Ordering::SeqCst);
        assert_eq!(before, 0);
        reference.nothing().unwrap();
    }
    let (orb, poa) = server();
    let slow: UnrelatedRef = poa.activate_with_id("slow", Plain(block)).unwrap();
    let apart = orb.root_poa().create_poa("apart", None, PoaPolicies::PERSISTENT).unwrap();
    apart.manager().activate().unwrap();
    let quick: UnrelatedRef = apart.activate_with_id("quick", Plain(|| Ok(()))).unwrap();
    (0..OFTEN).for_each(|_| slow.nothing().unwrap());
    let (is_over, waits) = (AtomicBool::new(false), 20);
    thread::scope(|scope| {
        // Renews its binding all the time, whenever the binding has ended.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                quick.nothing().unwrap();
            }
        });
        for _ in 0..waits {
            let hold = held();
            ENTERED.store(0, Ordering::SeqCst);
            BLOCKS.store(true, Ordering::SeqCst);
            let clone = slow.clone();
            let call = scope.spawn(move || enter(&clone));
            while ENTERED.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let wait = scope.spawn(|| poa.manager().hold_requests(true));
            while poa.manager().state() != ManagerState::Holding {
                thread::yield_now();
            }
            assert!(!wait.is_finished());
            // Active again, so that later calls make new bindings.
            drop(hold);
            wait.join().unwrap().unwrap();
            call.join().unwrap();
            BLOCKS.store(false, Ordering::SeqCst);
            poa.manager().activate().unwrap();
            (0..OFTEN).for_each(|_| slow.nothing().unwrap());
        }
        let hold = held();
        ENTERED.store(0, Ordering::SeqCst);
        BLOCKS.store(true, Ordering::SeqCst);
        let call = scope.spawn(|| enter(&slow));
        while ENTERED.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        let end = scope.spawn(|| poa.destroy(false, true));
        while poa.deactivate(&"slow".into()) != Err(PoaError::ObjectNotActive) {
            thread::yield_now();
        }
        assert!(!end.is_finished());
        drop(hold);
        call.join().unwrap();
        end.join().unwrap().unwrap();
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(slow.nothing().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    orb.shutdown(true).unwrap();
}
