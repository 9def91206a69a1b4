//! A thread that others wait for runs at their priority, wherever the kernel lends it. Where the system gives the process no
//! real-time priorities, these tests show nothing.

use std::fs;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{LaneLock, PiLock, PiTurn, SmallPiLock, lane_locks_lend_from_now_on, thread_id};
use crate::base::gate::Gate;
use crate::base::scheduling::become_real_time;
use crate::base::single_thread_lock::SingleThreadLock;
use crate::base::spawner::NativePriority;

const LOW: u8 = 1;
const MIDDLE: u8 = 2;
const HIGH: u8 = 5;

/// Bounds a hang.
const FOR_LONG: Duration = Duration::from_secs(20);

/// The priority at which the system runs a thread now, whatever it has of its own (proc(5): field 18 of `stat`).
fn effective_priority(thread: u32) -> u8 {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let priority: i32 = fields.split(' ').nth(15).unwrap().parse().unwrap();
    u8::try_from(-1 - priority).unwrap_or(0)
}

/// Gives the calling thread a real-time priority; false where the system refuses.
fn has_priority(number: u8) -> bool {
    let outcome = become_real_time(NativePriority::new(number).unwrap());
    assert!(
        outcome.as_ref().err().is_none_or(|e| e.kind() == io::ErrorKind::PermissionDenied),
        "{outcome:?}"
    );
    outcome.is_ok()
}

/// What a thread does that calls its argument while it holds something.
type Hold<L> = fn(&L, &dyn Fn());

/// Asserts that the thread in `hold` runs at the priority of that in `wait`. `hold` calls its argument while it holds what
/// `wait` waits for. `wait_between`, where there is one, waits for the first and holds what `wait` waits for.
fn assert_lent<L: Sync>(lock: &L, hold: Hold<L>, wait_between: Option<Hold<L>>, wait: fn(&L)) {
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if has_priority(LOW) {
                hold(lock, &|| {
                    tell.send(thread_id()).unwrap();
                    let _test_is_over = released.recv();
                });
            }
        });
        let Ok(holder) = told.recv() else { return }; // no real-time priorities here
        if let Some(between) = wait_between {
            let (tell, told) = mpsc::channel();
            scope.spawn(move || {
                assert!(has_priority(MIDDLE));
                between(lock, &|| tell.send(()).unwrap());
            });
            told.recv().unwrap();
        }
        scope.spawn(|| {
            assert!(has_priority(HIGH));
            wait(lock);
        });
        let begun = Instant::now();
        let is_lent = || effective_priority(holder) == HIGH;
        while !is_lent() && begun.elapsed() < FOR_LONG {
            thread::sleep(Duration::from_millis(1));
        }
        let was_lent = is_lent();
        drop(release);
        assert!(was_lent, "the holder runs at the priority of the thread that waits");
    });
}

#[test]
fn locks_of_all_kinds_lend_priorities() {
    assert_lent(
        &PiLock::new(()),
        |lock, held| {
            let _guard = lock.lock();
            held();
        },
        None,
        |lock| drop(lock.lock()),
    );
    lane_locks_lend_from_now_on();
    assert_lent(
        &LaneLock::new(()),
        |lock, held| {
            let _guard = lock.lock();
            held();
        },
        None,
        |lock| drop(lock.lock()),
    );
}

#[test]
fn a_lock_of_the_application_lends_priorities_in_waits_with_and_without_a_limit() {
    let waits: [fn(&PiLock<()>); 2] =
        [|lock| drop(lock.lock()), |lock| assert!(lock.lock_within(Duration::from_secs(600)).is_some())];
    for wait in waits {
        assert_lent(
            &PiLock::new(()),
            |lock, held| {
                let _guard = lock.lock();
                held();
            },
            None,
            wait,
        );
    }
}

#[test]
fn a_small_lock_lends_priorities() {
    assert_lent(
        &SmallPiLock::<()>::default(),
        |lock, held| {
            let _guard = lock.lock();
            held();
        },
        None,
        |lock| drop(lock.lock()),
    );
}

#[test]
fn the_thread_that_opens_a_gate_is_lent_the_priority_of_those_that_wait_with_and_without_a_limit() {
    let waits: [fn(&Gate); 2] =
        [|gate| assert!(gate.wait(None)), |gate| assert!(gate.wait(Some(Duration::from_secs(600))))];
    for wait in waits {
        // The gate belongs to the thread that makes it.
        let place = std::sync::OnceLock::new();
        struct Place<'p>(&'p std::sync::OnceLock<std::sync::Arc<Gate>>, fn(&Gate));
        assert_lent(
            &Place(&place, wait),
            |place, held| {
                let keeper = Gate::of_this_thread();
                place.0.set(keeper.gate().clone()).unwrap();
                held();
            },
            None,
            |place| place.1(place.0.get().unwrap()),
        );
    }
}

#[test]
fn an_upcall_that_others_wait_for_is_lent_the_priority_of_all_of_them_in_a_chain() {
    assert_lent(
        &(SingleThreadLock::default(), PiTurn::new()),
        |(upcall, _), held| {
            upcall.take();
            held();
            upcall.release();
        },
        Some(|(upcall, outer), held| {
            outer.take(());
            held();
            upcall.take();
            upcall.release();
            outer.release();
        }),
        |(_, outer)| {
            outer.take(());
            outer.release();
        },
    );
}
