//! Calls within a process go by leases that references keep. Servants that have nothing to drop are in them, so these must
//! never be called once their object has ended, whoever has which clone of the reference.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use ironorb::poa::{ManagerState, PoaCurrent, PoaError, PoaPolicies};
use ironorb::{Orb, Poa, SystemException, SystemExceptionKind};
use ironorb_tests::testing::{Unrelated, UnrelatedRef};

/// A servant without anything to drop.
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

/// Enough for a lease.
const OFTEN: usize = 20;

#[test]
fn an_object_that_comes_back_is_its_new_servant_each_time() {
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
fn calls_nest_in_themselves_and_end_with_a_panic() {
    static ITSELF: OnceLock<UnrelatedRef> = OnceLock::new();
    static LEFT: AtomicU32 = AtomicU32::new(0);
    static ENDS_WELL: AtomicBool = AtomicBool::new(true);
    fn further_in() -> Result<(), SystemException> {
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
    let itself = poa.activate_with_id("itself", Plain(further_in)).unwrap();
    let itself = ITSELF.get_or_init(|| itself);
    for round in 0..OFTEN as u32 {
        // Further in than marks have places.
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
fn whoever_ends_something_waits_for_such_calls_while_others_go_on() {
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
        // Makes its lease new whenever it has ended, all the time.
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
            // Active again for those who come: also these leases are new then.
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
