//! Locks of the application, with the kernel's inheritance of priorities.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::pi_lock::{HeldTurn, own_id};
use super::{LockGuard, PiTurn, TimedTurn, system};
use crate::base::sync::lock;

/// Data as a [`PiLock`](super::PiLock) has it, for the application: its threads may hold it for any time, and wait with a
/// limit.
#[derive(Default)]
pub(crate) struct LentLock<T> {
    turn: PiTurn,
    /// Free whenever a thread has the turn.
    value: Mutex<T>,
}

/// The calling thread's hold of a [`LentLock`]. Dropping it unlocks: the value first, by the order of the fields.
pub(crate) struct HeldByThread<'l, T> {
    value: LockGuard<'l, T>,
    _held: HeldTurn<'l>,
}

/// How a wait with a limit has ended.
pub(crate) enum WaitOutcome<'l, T> {
    /// The calling thread holds the lock.
    Taken(HeldByThread<'l, T>),
    /// The time is over, or the calling thread holds the lock already.
    Late,
}

/// The pause between two attempts where the system lends nothing in waits with a limit.
const PAUSE: Duration = Duration::from_millis(1);

impl<T> LentLock<T> {
    pub(crate) const fn new(value: T) -> LentLock<T> {
        LentLock { turn: PiTurn::new(), value: Mutex::new(value) }
    }

    /// Locks. Panics if the calling thread holds the lock.
    #[track_caller]
    pub(crate) fn lock(&self) -> HeldByThread<'_, T> {
        self.held(HeldTurn::take(&self.turn))
    }

    /// Locks if that takes at most this time.
    pub(crate) fn lock_within(&self, at_most: Duration) -> WaitOutcome<'_, T> {
        if self.turn.try_take() {
            return WaitOutcome::Taken(self.held(HeldTurn::taken(&self.turn)));
        }
        if at_most.is_zero() || self.turn.is_ours() {
            return WaitOutcome::Late;
        }
        match self.turn.take_within(at_most) {
            TimedTurn::Taken => WaitOutcome::Taken(self.held(HeldTurn::taken(&self.turn))),
            TimedTurn::Late => WaitOutcome::Late,
            TimedTurn::NotLent => self.ask_again_and_again(at_most),
        }
    }

    #[cold]
    fn ask_again_and_again(&self, at_most: Duration) -> WaitOutcome<'_, T> {
        let begun = Instant::now();
        while begun.elapsed() < at_most {
            std::thread::sleep(PAUSE.min(at_most));
            if self.turn.try_take() {
                return WaitOutcome::Taken(self.held(HeldTurn::taken(&self.turn)));
            }
        }
        WaitOutcome::Late
    }

    fn held<'l>(&'l self, held: HeldTurn<'l>) -> HeldByThread<'l, T> {
        HeldByThread { value: lock(&self.value), _held: held }
    }
}

impl<T> Deref for HeldByThread<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for HeldByThread<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Whether the system lends a lock's holder the priority of those that wait; else why not.
pub(crate) fn lends_priorities() -> Result<(), String> {
    let word = AtomicU32::new(own_id());
    // The calling thread is the holder: the kernel releases the word, or says that it has no such futexes.
    match system::unlock(&word) {
        Err(Errno::NOSYS) => {
            Err("the kernel has no futexes with inheritance of priorities (CONFIG_FUTEX_PI): run one that \
                                  is built with it, or keep a mutex among threads of one priority"
                .to_owned())
        }
        Err(e) => Err(format!("the kernel refuses futexes with inheritance of priorities ({e})")),
        Ok(()) => Ok(()),
    }
}
