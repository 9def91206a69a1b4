//! Which thread has a lock whose word does not say so.

#[cfg(feature = "watch")]
use std::sync::atomic::{AtomicU32, Ordering};

/// The thread that has taken a lock last, as far as that was noted: while an ORB of the process watches. Takes no memory in
/// builds without the feature `watch`.
#[derive(Debug, Default)]
pub(crate) struct LockHolder(#[cfg(feature = "watch")] AtomicU32);

impl LockHolder {
    /// Notes that the calling thread has taken the lock. It costs the look at one word while no ORB of the process watches.
    #[cfg(feature = "watch")]
    #[inline]
    pub(crate) fn note(&self) {
        if super::bound_ns().is_some() {
            self.note_now();
        }
    }

    #[cfg(feature = "watch")]
    #[cold]
    fn note_now(&self) {
        self.0.store(crate::base::locks::thread_id(), Ordering::Relaxed);
    }

    /// Notes that nobody knows who has the lock.
    #[inline]
    pub(crate) fn forget(&self) {
        #[cfg(feature = "watch")]
        self.0.store(0, Ordering::Relaxed);
    }

    /// The system's number of the thread; 0 if none was noted. For the thread that has taken the lock and not noted it yet: it
    /// finds the one before it.
    pub(crate) fn id(&self) -> u32 {
        #[cfg(feature = "watch")]
        return self.0.load(Ordering::Relaxed);
        #[cfg(not(feature = "watch"))]
        0
    }
}
