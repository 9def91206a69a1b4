//! Waits until data behind a lock has changed.

use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use super::LockGuard;

/// Where threads wait for a change of what a [`LaneLock`](super::LaneLock) or a [`ColdLock`](super::ColdLock) protects. All wait with one and the same lock.
#[derive(Debug, Default)]
pub(crate) struct Condition(Condvar);

impl Condition {
    pub(crate) const fn new() -> Condition {
        Condition(Condvar::new())
    }

    /// Unlocks, blocks until a thread notifies, and locks again. May also return without any reason.
    pub(crate) fn wait<'l, T>(&self, guard: LockGuard<'l, T>) -> LockGuard<'l, T> {
        guard.waiting(|value| (self.0.wait(value).unwrap_or_else(PoisonError::into_inner), ())).0
    }

    /// Waits as [`wait`](Self::wait) does, for `at_most` this time. True when the time is over.
    pub(crate) fn wait_for<'l, T>(
        &self,
        guard: LockGuard<'l, T>,
        at_most: Duration,
    ) -> (LockGuard<'l, T>, bool) {
        guard.waiting(|value| {
            let waited = self.0.wait_timeout(value, at_most);
            let (value, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            (value, waited.timed_out())
        })
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
