//! The lock within one lane.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb_locks::{Locked, Waits};

use super::LockGuard;
use crate::base::lane::{self, LaneId};
#[cfg(debug_assertions)]
use crate::base::spawner;
use crate::base::watch::Here;

/// Data that only threads of one lane change, so that no thread waits for one of a lower priority range.
///
/// A build with debug assertions panics when a thread of another lane takes the lock. Threads of the application belong to
/// no lane and may take every lock, as may threads that serve one ORB and call through another, which lacks their lane.
///
/// Threads of one lane may have different priorities for all that: those of the application in one ORB, upcalls at their
/// clients' priorities, demoted ones. So these locks lend priorities in a process with a
/// [real-time ORB](lane_locks_lend_from_now_on). Others wait plainly, which wastes less where many threads want a lock.
pub(crate) struct LaneLock<T> {
    owner: Owner,
    locked: Locked<T>,
}

/// The lane whose threads may take a lock, in builds with debug assertions.
#[derive(Debug, Clone, Copy)]
struct Owner(#[cfg(debug_assertions)] LaneId);

/// Whether the locks of lanes lend priorities that are made now.
static LEND: AtomicBool = AtomicBool::new(false);

/// Has the locks of lanes lend priorities that the process makes from now on. Called before a real-time ORB is made.
pub(crate) fn lane_locks_lend_from_now_on() {
    LEND.store(true, Ordering::Relaxed);
}

impl<T> LaneLock<T> {
    /// A lock of the calling thread's lane.
    #[inline]
    pub(crate) fn new(value: T) -> LaneLock<T> {
        LaneLock::of(Owner::default(), value)
    }

    /// A lock of a lane.
    #[inline]
    pub(crate) fn in_lane(lane: LaneId, value: T) -> LaneLock<T> {
        LaneLock::of(Owner::of(lane), value)
    }

    #[inline]
    fn of(owner: Owner, value: T) -> LaneLock<T> {
        let waits = if LEND.load(Ordering::Relaxed) { Waits::Lending } else { Waits::Plainly };
        LaneLock { owner, locked: Locked::new(waits, value) }
    }

    /// Locks. Blocks while another thread of the lane holds the lock. Panics if the calling thread holds it.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        self.owner.check();
        self.locked.lock(Here::of_caller())
    }

    /// Locks, unless a thread holds the lock. Never blocks.
    #[inline]
    #[track_caller]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.owner.check();
        self.locked.try_lock()
    }
}

impl<T: Default> Default for LaneLock<T> {
    #[inline]
    fn default() -> LaneLock<T> {
        LaneLock::new(T::default())
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
