//! A place at which threads wait until something is so.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::sync::lock;

/// What threads wait at. Code that decides only says that something has [`changed`](Self::changed). Only drivers wait.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// Held while a thread asks whether its wait is over.
    asking: Mutex<()>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl Monitor {
    /// Has the waiting threads ask again. The caller holds no lock that their questions take. Costs one load when no
    /// thread waits.
    #[inline]
    pub(crate) fn changed(&self) {
        // sync: waiter-or-change.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _asking = lock(&self.asking);
            self.changed.notify_all();
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
        let mut asking = lock(&self.asking);
        match at_most {
            None => {
                while !is_over() {
                    asking = self.changed.wait(asking).unwrap_or_else(PoisonError::into_inner);
                }
                true
            }
            Some(at_most) => {
                let waited = self.changed.wait_timeout_while(asking, at_most, |()| !is_over());
                !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

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
}
