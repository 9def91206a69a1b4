//! The system's locks without poison, for the locks of [`base::locks`](super::locks) and for transports.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

/// Locks a mutex. The ORB catches a servant's panic before it can leave data half changed, so poison says
/// nothing.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex, unless a thread holds it. Ignores poison.
#[inline]
pub(crate) fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Whether this thread is being unwound by a panic.
pub(crate) fn is_panicking() -> bool {
    thread::panicking()
}

/// Tells a thread from the others of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadMark(ThreadId);

impl ThreadMark {
    /// The mark of the calling thread.
    pub(crate) fn of_this_thread() -> ThreadMark {
        ThreadMark(thread::current().id())
    }
}
