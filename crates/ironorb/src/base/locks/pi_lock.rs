//! Locks between lanes, with the kernel's inheritance of priorities.
//!
//! A word holds the holder's thread id, as futex(2) wants it. A thread that finds it zero takes the lock without the
//! kernel. Any other asks the kernel, which lends the holder the priority of the most urgent thread that waits, along
//! chains of locks. Where the kernel has no such futexes, threads wait without inheritance.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use rustix::io::{Errno, Result};

use super::system;
use crate::base::sync::lock;
use crate::base::watch::LockWait;

/// Data that threads of several lanes change. A thread that holds the lock runs at the priority of the most urgent
/// thread that waits for it.
///
/// The thread that locks also unlocks. It runs no application code and waits for nothing but other locks meanwhile, unless
/// the lock is the application's own ([`RtMutex`](crate::rt::RtMutex)).
#[derive(Default)]
pub(crate) struct PiLock<T> {
    turn: PiTurn,
    /// Free whenever a thread has the turn.
    value: Mutex<T>,
}

/// Data as a [`PiLock`] has it, which threads could share as well. To take it costs some 15 instructions less.
#[derive(Default)]
pub(crate) struct PiCell<T> {
    turn: PiTurn,
    /// Not borrowed whenever a thread has the turn.
    value: AtomicRefCell<T>,
}

/// What a thread holds of a [`PiCell`]. Dropping it unlocks: the value first, by the order of the fields.
pub(crate) struct PiCellGuard<'l, T> {
    value: AtomicRefMut<'l, T>,
    _held: HeldTurn<'l>,
}

impl<T> PiCell<T> {
    /// Locks, as [`PiLock::lock`] does.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> PiCellGuard<'_, T> {
        let held = HeldTurn::take(&self.turn);
        PiCellGuard { value: self.value.borrow_mut(), _held: held }
    }
}

impl<T> std::ops::Deref for PiCellGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::DerefMut for PiCellGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// What a thread holds of a [`PiLock`]. Dropping it unlocks: the value first, by the order of the fields.
pub(crate) struct PiGuard<'l, T> {
    value: MutexGuard<'l, T>,
    _held: HeldTurn<'l>,
}

pub(super) struct HeldTurn<'l> {
    turn: &'l PiTurn,
    /// The calling thread's id.
    me: u32,
}

impl<'l> HeldTurn<'l> {
    #[inline]
    #[track_caller]
    pub(super) fn take(turn: &'l PiTurn) -> HeldTurn<'l> {
        let me = own_id();
        turn.take_as(me);
        HeldTurn { turn, me }
    }

    #[inline]
    fn try_take(turn: &'l PiTurn) -> Option<HeldTurn<'l>> {
        let me = own_id();
        turn.try_take_as(me).then(|| HeldTurn { turn, me })
    }

    /// The hold of a turn that the calling thread has taken.
    fn taken(turn: &'l PiTurn) -> HeldTurn<'l> {
        HeldTurn { turn, me: own_id() }
    }
}

/// The lock of a [`PiLock`] alone, without a value and a guard: four bytes. The thread that takes it releases it.
#[derive(Default)]
pub(crate) struct PiTurn {
    /// The thread id of the holder, or 0. [`WAITERS`] tells the holder that it must not release it by itself.
    word: AtomicU32,
}

/// How a wait with a limit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedTurn {
    /// The calling thread has the turn.
    Taken,
    /// The time is over.
    Late,
    /// The system lends no priorities in waits with a limit, or the calling thread has the turn already. The thread has
    /// not waited.
    NotLent,
}

/// Where threads of the process wait if the kernel cannot lend priorities.
struct PlainQueue {
    asking: Mutex<()>,
    freed: Condvar,
}

static PLAIN: PlainQueue = PlainQueue { asking: Mutex::new(()), freed: Condvar::new() };

impl<T> PiLock<T> {
    pub(crate) const fn new(value: T) -> PiLock<T> {
        PiLock { turn: PiTurn::new(), value: Mutex::new(value) }
    }

    /// Locks. Blocks while another thread holds the lock. Panics if the calling thread holds it.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> PiGuard<'_, T> {
        let held = HeldTurn::take(&self.turn);
        PiGuard { value: lock(&self.value), _held: held }
    }

    /// Locks if no thread holds the lock.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<PiGuard<'_, T>> {
        let held = HeldTurn::try_take(&self.turn)?;
        Some(PiGuard { value: lock(&self.value), _held: held })
    }

    /// Locks if that takes at most this time; zero does not wait at all. `None` if another thread holds the lock for longer,
    /// and if the calling thread holds it. Where the system lends no priorities in waits with a limit, it asks again and
    /// again, and the holder inherits nothing.
    #[track_caller]
    pub(crate) fn lock_within(&self, at_most: Duration) -> Option<PiGuard<'_, T>> {
        let is_taken = self.turn.try_take()
            || !at_most.is_zero()
                && !self.turn.is_ours()
                && match self.turn.take_within(at_most) {
                    TimedTurn::Taken => true,
                    TimedTurn::Late => false,
                    TimedTurn::NotLent => self.turn.ask_again_and_again(at_most),
                };
        is_taken.then(|| {
            let held = HeldTurn::taken(&self.turn);
            PiGuard { value: lock(&self.value), _held: held }
        })
    }

    /// Whether the calling thread holds the lock.
    #[cfg(test)]
    pub(crate) fn is_ours(&self) -> bool {
        self.turn.is_ours()
    }
}

impl PiTurn {
    pub(crate) const fn new() -> PiTurn {
        PiTurn { word: AtomicU32::new(FREE) }
    }

    /// Whether the calling thread has the turn.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ID == own_id()
    }

    /// Takes the turn. Blocks while another thread has it. Panics if the calling thread has it.
    #[inline]
    #[track_caller]
    pub(crate) fn take(&self) {
        self.take_as(own_id());
    }

    #[inline]
    #[track_caller]
    fn take_as(&self, me: u32) {
        // sync: turn-passed
        if self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait(me, system::lock);
        }
    }

    /// Takes the turn if no thread has it.
    fn try_take(&self) -> bool {
        self.try_take_as(own_id())
    }

    #[inline]
    fn try_take_as(&self, me: u32) -> bool {
        // sync: turn-passed
        self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn ask_again_and_again(&self, at_most: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < at_most {
            thread::sleep(PAUSE.min(at_most));
            if self.try_take() {
                return true;
            }
        }
        false
    }

    /// Takes the turn as [`take`](Self::take) does, but waits for `at_most` this time, measured on a clock that nobody sets.
    #[cold]
    #[track_caller]
    pub(crate) fn take_within(&self, at_most: Duration) -> TimedTurn {
        let me = own_id();
        // sync: turn-passed
        if self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return TimedTurn::Taken;
        }
        if self.is_ours() {
            return TimedTurn::NotLent;
        }
        match system::deadline_after(at_most) {
            Some(deadline) => {
                let watched = LockWait::begin(self.holder());
                let outcome = self.wait_until(&deadline);
                if let Some(watched) = watched {
                    watched.end(Location::caller());
                }
                outcome
            }
            None => {
                self.wait(me, system::lock);
                TimedTurn::Taken
            }
        }
    }

    fn wait_until(&self, deadline: &system::Deadline) -> TimedTurn {
        loop {
            match system::lock_until(&self.word, deadline) {
                Ok(()) => {
                    std::sync::atomic::fence(Ordering::Acquire);
                    return TimedTurn::Taken;
                }
                Err(Errno::TIMEDOUT) => return TimedTurn::Late,
                // As in a wait without a limit.
                Err(Errno::DEADLK) => thread::sleep(DEADLOCK_PAUSE),
                Err(Errno::AGAIN | Errno::INTR | Errno::SRCH) => {}
                Err(_) => return TimedTurn::NotLent,
            }
        }
    }

    #[cold]
    #[track_caller]
    fn wait(&self, me: u32, lock: impl Fn(&AtomicU32) -> Result<()>) {
        let holder = self.holder();
        assert!(holder != me, "a thread waits for a lock that it holds");
        let watched = LockWait::begin(holder);
        self.wait_for_turn(me, lock);
        if let Some(watched) = watched {
            watched.end(Location::caller());
        }
    }

    /// The thread that has the turn; 0 if none has.
    fn holder(&self) -> u32 {
        self.word.load(Ordering::Relaxed) & ID
    }

    fn wait_for_turn(&self, me: u32, lock: impl Fn(&AtomicU32) -> Result<()>) {
        loop {
            match lock(&self.word) {
                Ok(()) => {
                    // The kernel has written the word; the former holder's writes are to be seen.
                    std::sync::atomic::fence(Ordering::Acquire);
                    return;
                }
                Err(Errno::NOSYS) => return self.wait_plainly(me),
                // The application waits for itself in a circle of several threads. It would wait for ever in any
                // case: a circle that a time limit breaks goes on.
                Err(Errno::DEADLK) => thread::sleep(DEADLOCK_PAUSE),
                // The holder is ending, or a signal came.
                Err(_) => {}
            }
        }
    }

    /// Waits without inheritance of priorities.
    fn wait_plainly(&self, me: u32) {
        let mut asking = lock(&PLAIN.asking);
        loop {
            // Others may wait too, and only the kernel would know: the release must look.
            // sync: turn-passed
            match self.word.compare_exchange(FREE, me | WAITERS, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return,
                Err(holder) => {
                    let marked = self.word.compare_exchange(
                        holder,
                        holder | WAITERS,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if marked.is_ok() {
                        asking = PLAIN.freed.wait(asking).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        }
    }

    /// Releases the turn that the calling thread has.
    #[inline]
    pub(crate) fn release(&self) {
        self.release_as(own_id());
    }

    #[inline]
    fn release_as(&self, me: u32) {
        debug_assert!(self.is_ours(), "a thread releases a lock that it does not hold");
        // sync: turn-passed
        if self.word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.pass_on(system::unlock);
        }
    }

    #[cold]
    fn pass_on(&self, unlock: impl Fn(&AtomicU32) -> Result<()>) {
        std::sync::atomic::fence(Ordering::Release);
        loop {
            match unlock(&self.word) {
                Ok(()) => return,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => {
                    debug_assert_eq!(e, Errno::NOSYS, "the calling thread is the holder");
                    let _asking = lock(&PLAIN.asking);
                    self.word.store(FREE, Ordering::Release);
                    PLAIN.freed.notify_all();
                    return;
                }
            }
        }
    }
}

impl Drop for HeldTurn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turn.release_as(self.me);
    }
}

impl<T> std::ops::Deref for PiGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::DerefMut for PiGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> fmt::Debug for PiLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiLock").field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl fmt::Debug for PiTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PiTurn").field("holder", &(self.word.load(Ordering::Relaxed) & ID)).finish()
    }
}

/// Whether the system lends a lock's holder the priority of those that wait; else why not.
pub(crate) fn lends_priorities() -> std::result::Result<(), String> {
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

/// The pause between two attempts where the system lends nothing in waits with a limit.
const PAUSE: Duration = Duration::from_millis(1);

/// The calling thread's id: never 0. The system gives it, where it has such ids.
#[inline]
pub(crate) fn own_id() -> u32 {
    thread_local! {
        static OWN_ID: Cell<u32> = const { Cell::new(FREE) };
    }
    match OWN_ID.try_with(Cell::get) {
        Ok(FREE) | Err(_) => {
            let id = system::thread_id();
            // A thread that is ending asks the system each time.
            let _ = OWN_ID.try_with(|own| own.set(id));
            id
        }
        Ok(id) => id,
    }
}

const FREE: u32 = 0;

/// Threads wait in the kernel, or plainly.
const WAITERS: u32 = 1 << 31;

/// The bits of a thread id. The kernel uses the two highest bits of the word.
const ID: u32 = (1 << 30) - 1;

/// How long a thread of a circle waits before it asks the kernel again.
const DEADLOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };

    /// Has threads take turns, with given ways to wait and to pass on. Counts without an atomic addition: lost
    /// additions would show that two threads had the turn at once.
    fn stress(take: impl Fn(&PiTurn) + Sync, release: impl Fn(&PiTurn) + Sync) {
        let (turn, count) = (PiTurn::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        take(&turn);
                        assert!(turn.is_ours());
                        let before = count.load(Ordering::Relaxed);
                        if round % 64 == 0 {
                            thread::yield_now(); // the others find it taken
                        }
                        count.store(before + 1, Ordering::Relaxed);
                        release(&turn);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), THREADS * ROUNDS);
        assert_eq!(turn.word.into_inner(), FREE);
    }

    #[test]
    fn one_thread_at_a_time_has_the_turn() {
        stress(PiTurn::take, PiTurn::release);
    }

    #[test]
    fn one_thread_at_a_time_has_the_turn_where_the_kernel_lends_no_priorities() {
        let refuse = |_: &AtomicU32| Err(Errno::NOSYS);
        stress(
            |turn| {
                if turn.word.compare_exchange(FREE, own_id(), Ordering::Acquire, Ordering::Relaxed).is_err() {
                    turn.wait(own_id(), refuse);
                }
            },
            |turn| {
                if turn.word.compare_exchange(own_id(), FREE, Ordering::Release, Ordering::Relaxed).is_err() {
                    turn.pass_on(refuse);
                }
            },
        );
    }

    #[test]
    fn a_wait_with_a_limit_ends_with_the_turn_or_with_its_time() {
        let turn = PiTurn::new();
        assert_eq!(turn.take_within(Duration::ZERO), TimedTurn::Taken);
        thread::scope(|scope| {
            if scope.spawn(|| turn.take_within(Duration::from_millis(1))).join().unwrap()
                == TimedTurn::NotLent
            {
                return; // an old kernel
            }
            assert_eq!(scope.spawn(|| turn.take_within(Duration::ZERO)).join().unwrap(), TimedTurn::Late);
            for at_most in [Duration::from_secs(600), Duration::MAX] {
                let turn = &turn;
                let waiter = scope.spawn(move || (turn.take_within(at_most), turn.release()).0);
                turn.release();
                assert_eq!(waiter.join().unwrap(), TimedTurn::Taken);
                turn.take();
            }
        });
    }

    #[test]
    fn a_lock_protects_its_value_and_knows_its_holder() {
        let lock = PiLock::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..ROUNDS).for_each(|_| *lock.lock() += 1));
            }
        });
        let held = lock.lock();
        assert!(lock.is_ours());
        assert!(!thread::scope(|scope| scope.spawn(|| lock.is_ours()).join().unwrap()));
        assert_eq!(*held, THREADS * ROUNDS);
        drop(held);
        assert!(!lock.is_ours());
    }

    #[test]
    fn a_panic_leaves_a_lock_free() {
        let lock = PiLock::new(1);
        let panicked = thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _held = lock.lock();
                panic!("as the test wants");
            });
            panics.join()
        });
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }

    #[test]
    #[should_panic(expected = "a lock that it holds")]
    fn a_thread_does_not_wait_for_itself() {
        let lock = PiLock::new(());
        let _held = lock.lock();
        drop(lock.lock());
    }
}
