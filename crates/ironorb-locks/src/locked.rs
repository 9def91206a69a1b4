//! A value that the thread with a turn uses.

// The value is reached through a guard alone. A guard exists while its thread has the turn, which one thread has at a time:
// nobody else has a reference into the value then. A guard that is leaked keeps the turn for ever: where the kernel passes on
// the turn of a thread that has ended, the next thread panics before it has a guard (`Turn::take_from_kernel`).
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use crate::turn::{Circle, TimedTurn, Turn, Waits, Watch, thread_id};

/// A value with its turn.
pub struct Locked<T> {
    /// Private to this module, so that none but a guard releases it.
    turn: Turn,
    waits: Waits,
    value: UnsafeCell<T>,
}

const _: () = assert!(size_of::<Locked<u64>>() == 16);

// SAFETY: threads that share it use the value one after another: it moves between them, and is never used by two at once.
// What one wrote the next one sees, by the acquire and release of the turn.
unsafe impl<T: Send> Sync for Locked<T> {}

/// What a thread holds of a lock. Dropping it unlocks.
#[must_use = "the lock is free when this is dropped"]
pub struct LockGuard<'l, T> {
    locked: &'l Locked<T>,
    /// The calling thread's id.
    me: u32,
    /// The thread that locks unlocks: a guard stays with its thread.
    _stays: PhantomData<*const ()>,
}

// As with locks that know poison: a panic leaves nothing unlocked.
impl<T> UnwindSafe for Locked<T> {}
impl<T> RefUnwindSafe for Locked<T> {}

// SAFETY: threads that share a guard only get shared references to the value from it.
unsafe impl<T: Sync> Sync for LockGuard<'_, T> {}

impl<T> Locked<T> {
    /// A lock that no thread holds, and how threads wait for it.
    #[inline]
    pub const fn new(waits: Waits, value: T) -> Locked<T> {
        Locked { turn: Turn::new(), waits, value: UnsafeCell::new(value) }
    }

    /// Locks. Blocks while another thread holds the lock. Panics if the calling thread holds it.
    #[inline]
    #[track_caller]
    pub fn lock(&self, watch: impl Watch) -> LockGuard<'_, T> {
        let me = thread_id();
        self.turn.take(me, self.waits, watch);
        self.guard(me)
    }

    /// Locks as [`lock`](Self::lock) does, with waits that lend priorities. Where the threads would wait in a circle, `leave` does not
    /// return, if the system lends priorities: it follows chains of waits for that. Elsewhere they wait.
    #[inline]
    #[track_caller]
    pub fn lock_outside_circles(&self, watch: impl Watch, leave: fn(Circle) -> !) -> LockGuard<'_, T> {
        let me = thread_id();
        if !self.turn.try_take(me)
            && let Err(circle) = self.turn.take_outside_circles(me, watch)
        {
            leave(circle);
        }
        self.guard(me)
    }

    /// Locks if no thread holds the lock.
    #[inline]
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        let me = thread_id();
        self.turn.try_take(me).then(|| self.guard(me))
    }

    /// Locks, with waits that lend priorities, if that takes at most this time. `None` if another thread holds the lock for
    /// longer, and if the calling thread holds it. Where the system lends no priorities in waits with a limit, it asks again and
    /// again, and the holder inherits nothing.
    #[track_caller]
    pub fn lock_within(&self, at_most: Duration, watch: impl Watch) -> Option<LockGuard<'_, T>> {
        assert_eq!(self.waits, Waits::Lending, "threads wait in one way for one lock");
        let me = thread_id();
        let is_taken = self.turn.try_take(me)
            || !at_most.is_zero()
                && !self.turn.is_held_by(me)
                && match self.turn.take_within(me, at_most, watch) {
                    TimedTurn::Taken => true,
                    TimedTurn::Late => false,
                    TimedTurn::NotLent => self.ask_again_and_again(me, at_most),
                };
        is_taken.then(|| self.guard(me))
    }

    #[cold]
    fn ask_again_and_again(&self, me: u32, at_most: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < at_most {
            thread::sleep(PAUSE.min(at_most));
            if self.turn.try_take(me) {
                return true;
            }
        }
        false
    }

    /// The guard of the calling thread, which has taken the turn.
    #[inline]
    fn guard(&self, me: u32) -> LockGuard<'_, T> {
        LockGuard { locked: self, me, _stays: PhantomData }
    }

    /// Whether the calling thread holds the lock.
    #[cfg(test)]
    fn is_ours(&self) -> bool {
        self.turn.is_held_by(thread_id())
    }
}

impl<'l, T> LockGuard<'l, T> {
    /// Unlocks, waits, and locks again.
    #[track_caller]
    pub(crate) fn unlocked_while<R>(
        self,
        watch: impl Watch,
        wait: impl FnOnce() -> R,
    ) -> (LockGuard<'l, T>, R) {
        let locked = self.locked;
        drop(self);
        let result = wait();
        (locked.lock(watch), result)
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the thread has the turn while the guard exists, and a guard that is borrowed lends no `&mut`.
        unsafe { &*self.locked.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the thread has the turn while the guard exists, and the guard is borrowed by this reference alone.
        unsafe { &mut *self.locked.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.locked.turn.release(self.me, self.locked.waits);
    }
}

impl<T> fmt::Debug for Locked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// The pause between two attempts where the system lends nothing in waits with a limit.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };

    const BOTH: [Waits; 2] = [Waits::Lending, Waits::Plainly];

    #[test]
    fn a_lock_protects_its_value_and_knows_its_holder() {
        for waits in BOTH {
            // A vector grows: two threads in it at once would be found out by more than a lost addition.
            let locked = Locked::new(waits, Vec::new());
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| (0..ROUNDS).for_each(|round| locked.lock(()).push(round)));
                }
            });
            let held = locked.lock(());
            assert!(locked.is_ours() && locked.try_lock().is_none());
            assert!(!thread::scope(|scope| scope.spawn(|| locked.is_ours()).join().unwrap()));
            assert_eq!(held.len(), THREADS * ROUNDS);
            assert_eq!(held.iter().sum::<usize>(), THREADS * (0..ROUNDS).sum::<usize>());
            drop(held);
            assert!(!locked.is_ours() && locked.try_lock().is_some());
        }
    }

    /// Each release wakes one, as long as any sleeps.
    #[test]
    fn all_threads_that_sleep_get_the_lock() {
        for waits in BOTH {
            let locked = Locked::new(waits, 0);
            let mut held = locked.lock(());
            thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| *locked.lock(()) += 1)).collect();
                thread::sleep(Duration::from_millis(50)); // mostly, all of them sleep by then
                *held += 1;
                drop(held);
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
            assert_eq!(*locked.lock(()), 1 + THREADS);
        }
    }

    #[test]
    fn a_panic_leaves_a_lock_free() {
        let locked = Locked::new(Waits::Plainly, 1);
        let panicked = thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _held = locked.lock(());
                panic!("as the test wants");
            });
            panics.join()
        });
        assert!(panicked.is_err());
        assert_eq!(*locked.lock(()), 1);
    }

    #[test]
    #[should_panic(expected = "a lock that it holds")]
    fn a_thread_does_not_wait_for_itself() {
        let locked = Locked::new(Waits::Plainly, ());
        let _held = locked.lock(());
        drop(locked.lock(()));
    }

    /// Else a reference into the value that the leaked guard has given out, and a new guard, would be there at once.
    #[test]
    fn nobody_gets_the_lock_of_a_thread_that_has_ended_with_it() {
        let locked = Locked::new(Waits::Lending, 1);
        thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let locked = &locked;
            scope.spawn(move || {
                std::mem::forget(locked.lock(()));
                told.recv().unwrap();
                thread::sleep(Duration::from_millis(20)); // mostly, the other one waits by then
            });
            while locked.turn.holder() == 0 {
                thread::yield_now();
            }
            let waits = scope.spawn(move || {
                tell.send(()).unwrap();
                locked.lock_within(Duration::from_millis(200), ()).is_some()
            });
            // It panics, or its time is over.
            assert_ne!(waits.join().ok(), Some(true));
        });
        assert!(locked.try_lock().is_none());
    }

    #[test]
    fn a_lock_with_a_limit_is_given_up() {
        let locked = Locked::new(Waits::Lending, 1);
        let held = locked.lock_within(Duration::ZERO, ()).unwrap();
        assert!(locked.lock_within(Duration::from_secs(600), ()).is_none(), "it is ours");
        thread::scope(|scope| {
            let late = scope.spawn(|| locked.lock_within(Duration::from_millis(1), ()).is_none());
            assert!(late.join().unwrap());
        });
        drop(held);
        assert_eq!(locked.lock_within(Duration::ZERO, ()).as_deref(), Some(&1));
    }
}
