//! The lock within one lane.

use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

use super::LockGuard;
use crate::base::lane::{self, LaneId};
#[cfg(debug_assertions)]
use crate::base::spawner;
use crate::base::sync::{lock, try_lock};
use crate::base::watch::{self, LockHolder, LockWait};

/// A mutex that only threads of one lane take, so that no thread waits for one of a lower priority range.
///
/// A build with debug assertions panics when a thread of another lane takes it. Threads of the application belong to
/// no lane and may take every lock, as may threads that serve one ORB and call through another, which lacks their lane. A release build has a plain mutex.
///
/// Threads of one lane may have different priorities for a time: an upcall at its client's priority, one that was demoted, a
/// thread of the application. So a build with the feature `watch` notes who has the lock while an ORB watches, and records waits.
#[derive(Default)]
pub(crate) struct LaneLock<T> {
    owner: Owner,
    holder: LockHolder,
    mutex: Mutex<T>,
}

/// The lane whose threads may take a lock, in builds with debug assertions.
#[derive(Debug, Clone, Copy)]
struct Owner(#[cfg(debug_assertions)] LaneId);

#[cfg(not(any(debug_assertions, feature = "watch")))]
const _: () = assert!(size_of::<LaneLock<u64>>() == size_of::<Mutex<u64>>());

impl<T> LaneLock<T> {
    /// A lock of the calling thread's lane.
    #[inline]
    pub(crate) fn new(value: T) -> LaneLock<T> {
        LaneLock { owner: Owner::default(), holder: LockHolder::default(), mutex: Mutex::new(value) }
    }

    /// A lock of a lane.
    #[inline]
    pub(crate) fn in_lane(lane: LaneId, value: T) -> LaneLock<T> {
        LaneLock { owner: Owner::of(lane), holder: LockHolder::default(), mutex: Mutex::new(value) }
    }

    /// Locks. Blocks while another thread of the lane holds the lock.
    #[inline]
    #[cfg_attr(any(debug_assertions, feature = "watch"), track_caller)]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        if watch::is_on() {
            return self.lock_watched();
        }
        self.owner.check();
        LockGuard::of(lock(&self.mutex), &self.holder)
    }

    /// A function of its own, so that others keep no registers for it.
    #[cold]
    #[inline(never)]
    #[cfg_attr(any(debug_assertions, feature = "watch"), track_caller)]
    fn lock_watched(&self) -> LockGuard<'_, T> {
        let guard = self.lock_in_call();
        guard.note();
        guard
    }

    /// Locks as [`lock`](Self::lock) does, in the short way of a call: the caller [notes](LockGuard::note) who has the lock on
    /// the long way, which watched connections take.
    #[inline]
    #[cfg_attr(any(debug_assertions, feature = "watch"), track_caller)]
    pub(crate) fn lock_in_call(&self) -> LockGuard<'_, T> {
        self.owner.check();
        let guard = match watch::ENABLED {
            false => lock(&self.mutex),
            true => match try_lock(&self.mutex) {
                Some(guard) => guard,
                None => self.wait(Location::caller()),
            },
        };
        if watch::is_on() {
            self.holder.forget(); // whoever waits must not take an earlier thread for this one
        }
        LockGuard::of(guard, &self.holder)
    }

    #[cold]
    fn wait(&self, place: &'static Location<'static>) -> MutexGuard<'_, T> {
        let watched = LockWait::begin(0);
        let guard = lock(&self.mutex);
        if let Some(watched) = watched {
            watched.end_after(self.holder.id(), place);
        }
        guard
    }

    /// Locks, unless a thread holds the lock. Never blocks.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.owner.check();
        let guard = LockGuard::of(try_lock(&self.mutex)?, &self.holder);
        guard.note();
        Some(guard)
    }
}

impl<T> fmt::Debug for LaneLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneLock").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Default for Owner {
    #[inline]
    fn default() -> Owner {
        Owner::of(lane::current_lane())
    }
}

impl Owner {
    #[inline]
    #[cfg_attr(not(debug_assertions), expect(unused_variables))]
    fn of(lane: LaneId) -> Owner {
        Owner(
            #[cfg(debug_assertions)]
            lane,
        )
    }

    #[inline]
    #[track_caller]
    fn check(self) {
        #[cfg(debug_assertions)]
        assert!(
            spawner::current_class().is_none() || lane::current_lane() == self.0 || lane::is_guest(),
            "a thread of {:?} takes a lock of {:?}",
            lane::current_lane(),
            self.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::outcome_of;
    use super::*;
    use crate::base::spawner::{NewThread, ThreadClass};

    #[test]
    fn threads_of_its_lane_and_of_no_lane_take_a_lock() {
        let lock = Arc::new(LaneLock::new(1));
        *lock.lock() += 1;
        let shared = lock.clone();
        let in_lane = NewThread::new("ironorb-test", ThreadClass::Worker);
        assert!(outcome_of(in_lane, move || *shared.lock() += 1));
        let held = lock.lock();
        assert_eq!(*held, 3);
        assert!(lock.try_lock().is_none());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_thread_of_another_lane_may_not_wait_for_a_lock() {
        let lock = Arc::new(LaneLock::new(()));
        let elsewhere = NewThread::new("ironorb-test", ThreadClass::Worker).in_lane(LaneId::new(7).unwrap());
        assert!(!outcome_of(elsewhere, move || drop(lock.lock())), "the lock refuses it");
    }
}
