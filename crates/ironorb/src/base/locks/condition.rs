//! Waits until data behind a lock has changed.

use std::time::Duration;

use super::LockGuard;
use crate::base::watch::Here;

/// Where threads wait for a change of what a [`LaneLock`](super::LaneLock), [`PiLock`](super::PiLock) or
/// [`ColdLock`](super::ColdLock) protects. All wait with one and the same lock.
#[derive(Debug, Default)]
pub(crate) struct Condition(ironorb_locks::Condition);

impl Condition {
    pub(crate) const fn new() -> Condition {
        Condition(ironorb_locks::Condition::new())
    }

    /// Unlocks, blocks until a thread notifies, and locks again. May also return without any reason.
    #[track_caller]
    pub(crate) fn wait<'l, T>(&self, guard: LockGuard<'l, T>) -> LockGuard<'l, T> {
        self.0.wait(guard, Here::of_caller())
    }

    /// Waits as [`wait`](Self::wait) does, for `at_most` this time. True when the time is over.
    #[track_caller]
    pub(crate) fn wait_for<'l, T>(
        &self,
        guard: LockGuard<'l, T>,
        at_most: Duration,
    ) -> (LockGuard<'l, T>, bool) {
        self.0.wait_for(guard, at_most, Here::of_caller())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
