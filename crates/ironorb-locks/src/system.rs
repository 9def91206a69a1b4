//! Waits for a word (futex(2)). Where the system has no futexes, and under Miri, threads wait for all words at one condition of
//! the process.

pub(crate) use imp::{Deadline, deadline_after, is_over, lock, lock_until, thread_id, unlock};
pub use imp::{sleep_while, wake_all, wake_one};

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::io::{Errno, Result};
    use rustix::thread::futex::{self, Flags};
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// A time on the clock by which waits with priorities end.
    pub(crate) type Deadline = Timespec;

    /// The time after which a wait of this length ends; `None` if that is beyond the clock.
    pub(crate) fn deadline_after(at_most: Duration) -> Option<Deadline> {
        clock_gettime(ClockId::Monotonic).checked_add(Timespec::try_from(at_most).ok()?)
    }

    pub(crate) fn is_over(deadline: &Deadline) -> bool {
        clock_gettime(ClockId::Monotonic) >= *deadline
    }

    /// Waits for the turn and takes it.
    pub(crate) fn lock(word: &AtomicU32) -> Result<()> {
        futex::lock_pi(word, Flags::PRIVATE, None)
    }

    /// Waits for the turn until the deadline, and takes it. Needs Linux 5.14: `FUTEX_LOCK_PI` has a clock that can be set.
    pub(crate) fn lock_until(word: &AtomicU32, deadline: &Deadline) -> Result<()> {
        futex::lock_pi2(word, Flags::PRIVATE, Some(deadline))
    }

    /// Passes the turn to the most urgent thread that waits.
    pub(crate) fn unlock(word: &AtomicU32) -> Result<()> {
        futex::unlock_pi(word, Flags::PRIVATE)
    }

    /// Sleeps while the word has this value, for `at_most` this time. May also return without any reason. True when the time
    /// is over.
    pub fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) -> bool {
        let at_most = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
        // Whatever else ends the sleep, the caller looks again.
        futex::wait(word, Flags::PRIVATE, value, at_most.as_ref()) == Err(Errno::TIMEDOUT)
    }

    /// Wakes one thread that sleeps at the word: the most urgent one with a real-time priority, else the first.
    pub fn wake_one(word: &AtomicU32) {
        wake(word, 1);
    }

    /// Wakes all threads that sleep at the word.
    pub fn wake_all(word: &AtomicU32) {
        wake(word, i32::MAX as u32);
    }

    fn wake(word: &AtomicU32, threads: u32) {
        let woken = futex::wake(word, Flags::PRIVATE, threads);
        debug_assert!(woken.is_ok(), "{woken:?}");
    }

    pub(crate) fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use rustix::io::{Errno, Result};

    pub(crate) type Deadline = ();

    pub(crate) fn deadline_after(_: Duration) -> Option<Deadline> {
        Some(())
    }

    pub(crate) fn is_over(_: &Deadline) -> bool {
        true
    }

    pub(crate) fn lock(_: &AtomicU32) -> Result<()> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn lock_until(_: &AtomicU32, _: &Deadline) -> Result<()> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn unlock(_: &AtomicU32) -> Result<()> {
        Err(Errno::NOSYS)
    }

    static CHANGING: Mutex<()> = Mutex::new(());
    static CHANGED: Condvar = Condvar::new();

    /// Sleeps while the word has this value, for `at_most` this time. True when the time is over.
    pub fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) -> bool {
        let changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        if word.load(Ordering::SeqCst) != value {
            return false;
        }
        match at_most {
            None => {
                drop(CHANGED.wait(changing).unwrap_or_else(PoisonError::into_inner));
                false
            }
            Some(at_most) => {
                let waited = CHANGED.wait_timeout(changing, at_most);
                waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
            }
        }
    }

    /// All threads sleep at one condition: which of them is meant, they see for themselves.
    pub fn wake_one(word: &AtomicU32) {
        wake_all(word);
    }

    /// Wakes all threads.
    pub fn wake_all(_: &AtomicU32) {
        // A thread that has just seen the old value sleeps before this lock is to be had.
        drop(CHANGING.lock().unwrap_or_else(PoisonError::into_inner));
        CHANGED.notify_all();
    }

    pub(crate) fn thread_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
