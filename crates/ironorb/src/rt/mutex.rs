//! Mutexes whose holder inherits the priority of the threads that wait (`RTCORBA::Mutex`; RTCORBA 1.2, 5.16).

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::time::Duration;

use crate::base::locks::{LockGuard, PiLock, lends_priorities};
use crate::base::watch::named_wait;

/// Data that one thread at a time changes. The holder runs at the priority of the most urgent thread that waits, by the
/// kernel's inheritance of priorities (`RTCORBA::Mutex`; RTCORBA 1.2, 5.16).
///
/// The thread that locks also unlocks, by dropping the guard. Where nobody waits, neither calls the system. A servant may
/// hold one over calls of its own; the server that it calls does not inherit the priority.
///
/// ```
/// use std::time::Duration;
///
/// use ironorb::rt::RtMutex;
///
/// let position = RtMutex::new((0, 0));
/// position.lock().0 = 7;
/// let seen = position.try_lock(Duration::ZERO).expect("no other thread has it");
/// assert_eq!(*seen, (7, 0));
/// ```
#[derive(Default)]
pub struct RtMutex<T> {
    lock: PiLock<T>,
    /// For records of waits; may be empty.
    name: Cow<'static, str>,
}

/// The calling thread's hold of an [`RtMutex`]. Dropping it unlocks.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct RtMutexGuard<'m, T> {
    held: LockGuard<'m, T>,
}

impl<T> RtMutex<T> {
    /// A mutex that no thread holds.
    pub const fn new(value: T) -> RtMutex<T> {
        RtMutex { lock: PiLock::new(value), name: Cow::Borrowed("") }
    }

    /// A mutex that no thread holds, with a name for those that look: an ORB that watches ([`WatchConfig`](super::WatchConfig))
    /// records waits for it by the name.
    pub const fn named(name: &'static str, value: T) -> RtMutex<T> {
        RtMutex { lock: PiLock::new(value), name: Cow::Borrowed(name) }
    }

    /// A mutex with a name that is not known before.
    pub(super) fn with_name(name: &str, value: T) -> RtMutex<T> {
        RtMutex { lock: PiLock::new(value), name: Cow::Owned(name.to_owned()) }
    }

    /// Locks (`lock`). Blocks while another thread holds the mutex, without limit. Allocates nothing.
    ///
    /// # Panics
    ///
    /// If the calling thread holds the mutex: it would wait for itself.
    #[track_caller]
    pub fn lock(&self) -> RtMutexGuard<'_, T> {
        let held = match self.lock.try_lock() {
            Some(held) => held,
            None => self.lock_slowly(), // not in a closure, which would be the place that locks
        };
        RtMutexGuard { held }
    }

    #[cold]
    #[track_caller]
    fn lock_slowly(&self) -> LockGuard<'_, T> {
        let place = Location::caller();
        named_wait(&self.name, place, || self.lock.lock())
    }

    /// Locks if that takes at most `max_wait` (`try_lock`); zero does not wait at all. `None` if another thread holds the
    /// mutex for longer, and if the calling thread holds it. Allocates nothing.
    ///
    /// Before Linux 5.14 the kernel cannot lend priorities in waits with a limit. There a call with another limit than zero
    /// asks again every millisecond, and the holder inherits nothing meanwhile.
    #[track_caller]
    pub fn try_lock(&self, max_wait: Duration) -> Option<RtMutexGuard<'_, T>> {
        let held = match self.lock.try_lock() {
            Some(held) => held,
            None => named_wait(&self.name, Location::caller(), || self.lock.lock_within(max_wait))?,
        };
        Some(RtMutexGuard { held })
    }
}

/// Whether the kernel lends the holder of a mutex the priority of the threads that wait. Without that, an [`RtMutex`]
/// excludes threads as any mutex does, and a thread of a middle priority can delay an urgent one for as long as it likes.
/// The error says what the kernel lacks.
///
/// Calls the system once or twice.
pub fn priority_inheritance() -> Result<(), String> {
    lends_priorities()
}

impl<T> Deref for RtMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for RtMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T> fmt::Debug for RtMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtMutex").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for RtMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RtMutexGuard").field(&**self).finish()
    }
}
