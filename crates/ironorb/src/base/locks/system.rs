//! The calls of the system that locks make: futexes (futex(2)) and thread ids. Where the system has no futexes, and under
//! Miri, threads wait for words at one condition of the process.

pub(in crate::base) use imp::*;

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::io::Result;
    use rustix::thread::futex::{self, Flags};
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// A time on the clock by which waits with priorities end.
    pub(in crate::base) type Deadline = Timespec;

    /// The time after which a wait of this length ends; `None` if that is beyond the clock.
    pub(in crate::base) fn deadline_after(at_most: Duration) -> Option<Deadline> {
        clock_gettime(ClockId::Monotonic).checked_add(Timespec::try_from(at_most).ok()?)
    }

    /// Waits for the turn and takes it.
    pub(in crate::base) fn lock(word: &AtomicU32) -> Result<()> {
        futex::lock_pi(word, Flags::PRIVATE, None)
    }

    /// Waits for the turn until the deadline, and takes it. Needs Linux 5.14: `FUTEX_LOCK_PI` has a clock that can be set.
    pub(in crate::base) fn lock_until(word: &AtomicU32, deadline: &Deadline) -> Result<()> {
        futex::lock_pi2(word, Flags::PRIVATE, Some(deadline))
    }

    /// Passes the turn to the most urgent thread that waits.
    pub(in crate::base) fn unlock(word: &AtomicU32) -> Result<()> {
        futex::unlock_pi(word, Flags::PRIVATE)
    }

    /// Sleeps while the word has this value, for `at_most` this time. May also return without any reason.
    pub(in crate::base) fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
        let at_most = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
        // Whatever ends the sleep, the caller looks again.
        let _ = futex::wait(word, Flags::PRIVATE, value, at_most.as_ref());
    }

    /// Wakes all threads that sleep at the word.
    pub(in crate::base) fn wake_all(word: &AtomicU32) {
        let woken = futex::wake(word, Flags::PRIVATE, i32::MAX as u32);
        debug_assert!(woken.is_ok(), "{woken:?}");
    }

    pub(in crate::base) fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use rustix::io::{Errno, Result};

    use crate::base::sync::lock as lock_mutex;

    pub(in crate::base) type Deadline = ();

    pub(in crate::base) fn deadline_after(_: Duration) -> Option<Deadline> {
        Some(())
    }

    pub(in crate::base) fn lock(_: &AtomicU32) -> Result<()> {
        Err(Errno::NOSYS)
    }

    pub(in crate::base) fn lock_until(_: &AtomicU32, _: &Deadline) -> Result<()> {
        Err(Errno::NOSYS)
    }

    pub(in crate::base) fn unlock(_: &AtomicU32) -> Result<()> {
        Err(Errno::NOSYS)
    }

    static CHANGING: Mutex<()> = Mutex::new(());
    static CHANGED: Condvar = Condvar::new();

    pub(in crate::base) fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
        let changing = lock_mutex(&CHANGING);
        if word.load(Ordering::SeqCst) != value {
            return;
        }
        match at_most {
            None => drop(CHANGED.wait(changing).unwrap_or_else(PoisonError::into_inner)),
            Some(at_most) => {
                drop(CHANGED.wait_timeout(changing, at_most).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    pub(in crate::base) fn wake_all(_: &AtomicU32) {
        // A thread that has just seen the old value sleeps before this lock is to be had.
        drop(lock_mutex(&CHANGING));
        CHANGED.notify_all();
    }

    pub(in crate::base) fn thread_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
