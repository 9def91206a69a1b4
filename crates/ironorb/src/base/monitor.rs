//! A place at which threads wait until something is so.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::locks::system;
use super::watch::OwnWait;

/// What threads wait at. Code that decides only says that something has [`changed`](Self::changed). Only drivers wait.
///
/// There is no lock that a waiting thread could hold while a more urgent one tells of a change. All threads that wait are
/// woken, and those with the highest priorities run first.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// Counts changes that a waiting thread was told of. Wraps around.
    changes: AtomicU32,
    waiting: AtomicUsize,
}

impl Monitor {
    /// Has the waiting threads ask again. The caller holds no lock that their questions take. Never waits. Costs one load
    /// when no thread waits.
    #[inline]
    pub(crate) fn changed(&self) {
        // sync: waiter-or-change.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changes.fetch_add(1, Ordering::SeqCst);
            system::wake_all(&self.changes);
        }
    }

    /// Blocks until `is_over`, for `at_most` this time, and for ever if that is `None`. Returns whether it is over.
    pub(crate) fn wait(&self, is_over: &dyn Fn() -> bool, at_most: Option<Duration>) -> bool {
        // sync: waiter-or-change. Either this thread sees the change, or the thread that makes it sees that this one
        // waits.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let is_over = self.wait_counted(is_over, at_most);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        is_over
    }

    fn wait_counted(&self, is_over: &dyn Fn() -> bool, at_most: Option<Duration>) -> bool {
        let end = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        loop {
            // A change after this keeps the thread from sleeping.
            let seen = self.changes.load(Ordering::SeqCst);
            if is_over() {
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let _watched = OwnWait::begin();
            system::sleep_while(&self.changes, seen, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_change_ends_a_wait_and_time_does_too() {
        let (monitor, over) = (Monitor::default(), AtomicBool::new(false));
        assert!(!monitor.wait(&|| over.load(Ordering::SeqCst), Some(Duration::from_millis(1))));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| monitor.wait(&|| over.load(Ordering::SeqCst), None));
            over.store(true, Ordering::SeqCst);
            monitor.changed();
            assert!(waiter.join().unwrap());
        });
    }

    #[test]
    fn a_thread_that_asks_whether_its_wait_is_over_delays_none_that_tells_of_a_change() {
        let monitor = Monitor::default();
        let (asks, is_asking) = mpsc::channel();
        let (let_go, is_let_go) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let monitor = &monitor;
            scope.spawn(move || {
                let held = || {
                    asks.send(()).unwrap();
                    is_let_go.recv().is_err()
                };
                assert!(monitor.wait(&held, None));
            });
            is_asking.recv().unwrap();
            let (done, is_done) = mpsc::channel();
            scope.spawn(move || {
                monitor.changed();
                done.send(()).unwrap();
            });
            let has_told = is_done.recv_timeout(Duration::from_secs(20));
            drop(let_go);
            has_told.expect("it does not wait for the thread that asks");
        });
    }
}
