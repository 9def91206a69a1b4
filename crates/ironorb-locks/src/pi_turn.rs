//! The turn to use something, without a value.

use std::marker::PhantomData;
use std::time::Duration;

use crate::turn::{Circle, TimedTurn, Turn, Waits, Watch, thread_id};

/// The turn to use something: four bytes. The thread that has it runs at the priority of the most urgent one that waits for
/// it ([`Waits::Lending`]). The thread that takes it releases it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct PiTurn(Turn);

impl PiTurn {
    /// A turn that no thread has.
    pub const fn new() -> PiTurn {
        PiTurn(Turn::new())
    }

    /// Whether the calling thread has the turn.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.0.is_held_by(thread_id())
    }

    /// Takes the turn. Blocks while another thread has it.
    ///
    /// # Panics
    ///
    /// If the calling thread has it.
    #[inline]
    #[track_caller]
    pub fn take(&self, watch: impl Watch) {
        self.0.take(thread_id(), Waits::Lending, watch);
    }

    /// Takes the turn as [`take`](Self::take) does, but waits for `at_most` this time, measured on a clock that nobody sets.
    #[cold]
    #[track_caller]
    pub fn take_within(&self, at_most: Duration, watch: impl Watch) -> TimedTurn {
        self.0.take_within(thread_id(), at_most, watch)
    }

    /// Releases the turn that the calling thread has.
    #[inline]
    pub fn release(&self) {
        self.0.release(thread_id(), Waits::Lending);
    }

    /// Takes the turn as [`take`](Self::take) does, until the result is dropped.
    #[inline]
    #[track_caller]
    pub fn hold(&self, watch: impl Watch) -> HeldTurn<'_> {
        let me = thread_id();
        self.0.take(me, Waits::Lending, watch);
        HeldTurn::new(&self.0, me)
    }

    /// Takes the turn as [`hold`](Self::hold) does. Fails where the threads would wait in a circle, if the system lends priorities:
    /// it follows chains of waits for that. Elsewhere they wait.
    ///
    /// # Panics
    ///
    /// If the calling thread has it.
    #[inline]
    #[track_caller]
    pub fn hold_outside_circles(&self, watch: impl Watch) -> Result<HeldTurn<'_>, Circle> {
        let me = thread_id();
        if !self.0.try_take(me) {
            self.0.take_outside_circles(me, watch)?;
        }
        Ok(HeldTurn::new(&self.0, me))
    }

    /// Takes the turn until the result is dropped, if no thread has it.
    #[inline]
    pub fn try_hold(&self) -> Option<HeldTurn<'_>> {
        let me = thread_id();
        self.0.try_take(me).then(|| HeldTurn::new(&self.0, me))
    }
}

/// The turn, as long as the calling thread has it. Dropping it releases the turn.
#[derive(Debug)]
#[must_use = "the turn is released when this is dropped"]
pub struct HeldTurn<'t> {
    turn: &'t Turn,
    /// The calling thread's id.
    me: u32,
    /// The thread that takes the turn releases it.
    _stays: PhantomData<*const ()>,
}

impl<'t> HeldTurn<'t> {
    #[inline]
    fn new(turn: &'t Turn, me: u32) -> HeldTurn<'t> {
        HeldTurn { turn, me, _stays: PhantomData }
    }
}

impl Drop for HeldTurn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turn.release(self.me, Waits::Lending);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_turn_is_held_until_the_hold_is_dropped() {
        let turn = PiTurn::new();
        let held = turn.hold(());
        assert!(turn.is_ours() && turn.try_hold().is_none());
        thread::scope(|scope| {
            scope.spawn(|| assert!(turn.try_hold().is_none() && !turn.is_ours()));
        });
        drop(held);
        assert!(!turn.is_ours() && turn.try_hold().is_some());
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn threads_do_not_wait_in_a_circle() {
        use std::sync::Barrier;

        for threads in [2, 3] {
            let turns: Vec<_> = (0..threads).map(|_| PiTurn::new()).collect();
            let all_have_one = Barrier::new(threads);
            let waits = |nth: usize| {
                let _own = turns[nth].hold(());
                all_have_one.wait();
                turns[(nth + 1) % threads].hold_outside_circles(()).map(drop)
            };
            let waited: Vec<_> = thread::scope(|scope| {
                let waits = &waits;
                let all: Vec<_> = (0..threads).map(|nth| scope.spawn(move || waits(nth))).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            // The thread that closes the circle leaves it, so that the others have their turns.
            // Of two that close it at once the system may tell both.
            assert!(waited.contains(&Err(Circle)), "{waited:?}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn the_thread_that_has_the_turn_runs_at_the_priority_of_the_one_that_waits() {
        use std::time::Instant;

        use ironorb_threads::{Class, Thread};

        static TURN: PiTurn = PiTurn::new();
        if thread::spawn(|| Thread::CALLING.set_class(Class::Fifo(10))).join().unwrap().is_err() {
            println!("no SCHED_FIFO here (RLIMIT_RTPRIO, CAP_SYS_NICE): nothing is shown");
            return;
        }
        // Field 18 of proc(5), with what others lend: -1 less the priority of a real-time class.
        let priority = || -> i32 {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, rest) = stat.rsplit_once(") ").unwrap();
            rest.split(' ').nth(15).unwrap().parse().unwrap()
        };
        let own = priority();
        let held = TURN.hold(());
        let high = thread::spawn(|| {
            Thread::CALLING.set_class(Class::Fifo(10)).unwrap();
            drop(TURN.hold(()));
        });
        let started = Instant::now();
        while priority() != -11 && started.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        let lent = priority();
        drop(held);
        high.join().unwrap();
        assert_eq!((lent, priority()), (-11, own));
    }
}
