//! Waits until data behind a lock has changed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{LockGuard, Watch, system};

/// Where threads wait for a change of what a lock protects. All wait with one and the same lock.
#[derive(Debug, Default)]
pub struct Condition {
    /// Counts what was notified of; wraps around. Changed by threads that hold the lock, or have held it for the change: a
    /// thread that has seen none of it before it unlocks does not sleep after it.
    notified: AtomicU32,
}

impl Condition {
    /// A condition for which no thread waits.
    pub const fn new() -> Condition {
        Condition { notified: AtomicU32::new(0) }
    }

    /// Unlocks, blocks until a thread notifies, and locks again. May also return without any reason.
    #[track_caller]
    pub fn wait<'l, T>(&self, guard: LockGuard<'l, T>, watch: impl Watch) -> LockGuard<'l, T> {
        self.wait_at_most(guard, None, watch).0
    }

    /// Waits as [`wait`](Self::wait) does, for `at_most` this time. True when the time is over.
    #[track_caller]
    pub fn wait_for<'l, T>(
        &self,
        guard: LockGuard<'l, T>,
        at_most: Duration,
        watch: impl Watch,
    ) -> (LockGuard<'l, T>, bool) {
        self.wait_at_most(guard, Some(at_most), watch)
    }

    #[track_caller]
    fn wait_at_most<'l, T>(
        &self,
        guard: LockGuard<'l, T>,
        at_most: Option<Duration>,
        watch: impl Watch,
    ) -> (LockGuard<'l, T>, bool) {
        let seen = self.notified.load(Ordering::Relaxed);
        guard.unlocked_while(watch, || system::sleep_while(&self.notified, seen, at_most))
    }

    /// Wakes one of the threads that wait: on Linux the most urgent one with a real-time priority, else the first.
    pub fn notify_one(&self) {
        self.notified.fetch_add(1, Ordering::Relaxed);
        system::wake_one(&self.notified);
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.notified.fetch_add(1, Ordering::Relaxed);
        system::wake_all(&self.notified);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{Locked, Waits};

    /// No notice is lost, whoever waits and however many do.
    #[test]
    fn threads_pass_a_value_round_in_order() {
        const THREADS: usize = 4;
        const ROUNDS: usize = if cfg!(miri) { 5 } else { 500 };
        let (turn, changed) = (Locked::new(Waits::Plainly, 0), Condition::new());
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (turn, changed) = (&turn, &changed);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut guard = turn.lock(());
                        while *guard != round * THREADS + thread {
                            guard = changed.wait(guard, ());
                        }
                        *guard += 1;
                        drop(guard);
                        changed.notify_all();
                    }
                });
            }
        });
        assert_eq!(*turn.lock(()), THREADS * ROUNDS);
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over() {
        let (lock, changed) = (Locked::new(Waits::Lending, ()), Condition::new());
        let mut guard = lock.lock(());
        let mut is_over = false;
        while !is_over {
            (guard, is_over) = changed.wait_for(guard, Duration::from_millis(1), ());
        }
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
