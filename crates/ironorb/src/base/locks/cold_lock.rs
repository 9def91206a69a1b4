//! The lock of rare work.

use std::fmt;

use ironorb_locks::{Locked, Waits};

use super::LockGuard;
use crate::base::spawner;
use crate::base::watch::Here;

/// A mutex for the start and the end of an ORB and for other rare work. A thread may hold it for long, make threads
/// and call the system meanwhile.
///
/// A build with debug assertions panics when a thread with a real-time priority from the ORB takes it.
pub(crate) struct ColdLock<T>(Locked<T>);

impl<T> ColdLock<T> {
    pub(crate) const fn new(value: T) -> ColdLock<T> {
        ColdLock(Locked::new(Waits::Plainly, value))
    }

    /// Locks. Blocks while another thread holds the lock.
    #[track_caller]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        debug_assert!(
            !spawner::is_real_time(),
            "a thread with a real-time priority takes a lock of rare work"
        );
        self.0.lock(Here::of_caller())
    }
}

impl<T: Default> Default for ColdLock<T> {
    fn default() -> ColdLock<T> {
        ColdLock::new(T::default())
    }
}

impl<T> fmt::Debug for ColdLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdLock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::outcome_of;
    use super::*;
    use crate::base::spawner::{NativePriority, NewThread, ThreadClass};

    #[test]
    fn only_threads_without_a_real_time_priority_take_a_cold_lock() {
        let cold = Arc::new(ColdLock::new(0));
        let background = NewThread::new("ironorb-test", ThreadClass::Background);
        let shared = cold.clone();
        assert!(outcome_of(background, move || *shared.lock() += 1));
        assert_eq!(*cold.lock(), 1);
        let shared = cold.clone();
        let urgent = background.with_priority(NativePriority::new(1).unwrap());
        let is_taken = outcome_of(urgent, move || *shared.lock() += 1);
        assert_eq!(is_taken, !cfg!(debug_assertions));
    }
}
