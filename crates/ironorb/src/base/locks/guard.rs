//! What a thread holds of a lock that is a plain mutex.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use crate::base::watch::LockHolder;

/// What a thread holds of a [`LaneLock`](super::LaneLock) or a [`ColdLock`](super::ColdLock). Dropping it unlocks.
pub(crate) struct LockGuard<'l, T> {
    value: MutexGuard<'l, T>,
    /// Where the lock notes its holder, if it does.
    #[cfg(feature = "watch")]
    holder: Option<&'l LockHolder>,
}

impl<'l, T> LockGuard<'l, T> {
    /// Of a lock that notes nothing.
    #[inline]
    pub(super) fn unnoted(value: MutexGuard<'l, T>) -> LockGuard<'l, T> {
        LockGuard {
            value,
            #[cfg(feature = "watch")]
            holder: None,
        }
    }

    /// Of a lock that notes its holder here.
    #[inline]
    #[cfg_attr(not(feature = "watch"), expect(unused_variables))]
    pub(super) fn of(value: MutexGuard<'l, T>, holder: &'l LockHolder) -> LockGuard<'l, T> {
        LockGuard {
            value,
            #[cfg(feature = "watch")]
            holder: Some(holder),
        }
    }

    /// Notes that the calling thread has the lock, while an ORB of the process watches.
    #[inline]
    pub(crate) fn note(&self) {
        #[cfg(feature = "watch")]
        if let Some(holder) = self.holder {
            holder.note();
        }
    }

    /// Gives the mutex to `wait`, which unlocks and locks again.
    pub(super) fn waiting<R>(
        self,
        wait: impl FnOnce(MutexGuard<'l, T>) -> (MutexGuard<'l, T>, R),
    ) -> (LockGuard<'l, T>, R) {
        let (value, result) = wait(self.value);
        let guard = LockGuard {
            value,
            #[cfg(feature = "watch")]
            holder: self.holder,
        };
        guard.note();
        (guard, result)
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
