//! Locks between lanes, with the kernel's inheritance of priorities.

use std::fmt;
use std::time::Duration;

use ironorb_locks::{Circle, Locked, Waits};

use super::LockGuard;
use crate::base::watch::Here;

/// Data that threads of several lanes change. A thread that holds the lock runs at the priority of the most urgent
/// thread that waits for it.
///
/// The thread that locks also unlocks. It runs no application code and waits for nothing but other locks meanwhile, unless
/// the lock is the application's own ([`RtMutex`](crate::rt::RtMutex)).
pub(crate) struct PiLock<T>(Locked<T>);

impl<T> PiLock<T> {
    pub(crate) const fn new(value: T) -> PiLock<T> {
        PiLock(Locked::new(Waits::Lending, value))
    }

    /// Locks. Blocks while another thread holds the lock. Panics if the calling thread holds it.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        self.0.lock(Here::of_caller())
    }

    /// Locks as [`lock`](Self::lock) does. Calls `leave` where threads would wait for one another in a circle.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_outside_circles(&self, leave: fn(Circle) -> !) -> LockGuard<'_, T> {
        self.0.lock_outside_circles(Here::of_caller(), leave)
    }

    /// Locks if no thread holds the lock.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.0.try_lock()
    }

    /// Locks if that takes at most this time; zero does not wait at all. `None` if another thread holds the lock for longer,
    /// and if the calling thread holds it. Where the system lends no priorities in waits with a limit, it asks again and
    /// again, and the holder inherits nothing.
    #[track_caller]
    pub(crate) fn lock_within(&self, at_most: Duration) -> Option<LockGuard<'_, T>> {
        self.0.lock_within(at_most, Here::of_caller())
    }
}

impl<T: Default> Default for PiLock<T> {
    fn default() -> PiLock<T> {
        PiLock::new(T::default())
    }
}

impl<T> fmt::Debug for PiLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PiLock").field(&self.0).finish()
    }
}
