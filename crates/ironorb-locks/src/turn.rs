//! Which thread has a lock, and how others wait for it.
//!
//! A word holds the holder's thread id, as futex(2) wants it. A thread that finds it zero takes the turn without the
//! kernel, and gives it back so while nobody waits. Threads wait in one of two ways: a turn is waited for in one of them
//! always.

use std::cell::Cell;
use std::fmt;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::{self, Errno};

use crate::system;

/// How threads wait for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// The kernel lends the holder the priority of the most urgent thread that waits, along chains of turns, and passes
    /// the turn to that thread. Where it has no such futexes, threads wait plainly.
    Lending,
    /// A thread looks again for a moment, then sleeps. Whoever comes first takes a free turn. The holder inherits nothing.
    Plainly,
}

/// Sees how long threads wait.
pub trait Watch {
    /// A wait. Dropped when the thread has the turn, or has given up.
    type Wait;

    /// The calling thread is about to wait for a turn that this thread has, or had a moment ago; 0 if it is free again.
    fn begin(self, holder: u32) -> Self::Wait;
}

/// Sees nothing.
impl Watch for () {
    type Wait = ();

    fn begin(self, _holder: u32) {}
}

/// The turn to use something. The thread that takes it releases it.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Turn {
    /// The thread id of the holder, or 0. [`WAITERS`] tells the holder that it must not release it by itself.
    word: AtomicU32,
}

/// How a wait with a limit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedTurn {
    /// The calling thread has the turn.
    Taken,
    /// The time is over.
    Late,
    /// The system lends no priorities in waits with a limit, or the calling thread has the turn already. The thread has
    /// not waited.
    NotLent,
}

/// A thread would wait for itself: for a thread that waits, perhaps by way of others, for what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circle;

impl Turn {
    /// A turn that no thread has.
    pub(crate) const fn new() -> Turn {
        Turn { word: AtomicU32::new(FREE) }
    }

    /// Takes the turn for the calling thread, whose id is `me`. Blocks while another thread has it. Panics if this one has it.
    #[inline]
    #[track_caller]
    pub(crate) fn take(&self, me: u32, waits: Waits, watch: impl Watch) {
        if !self.try_take(me) {
            self.wait(me, waits, watch);
        }
    }

    /// Takes the turn as [`take`](Self::take) does, with priorities lent. Fails where the calling thread would wait for itself: by
    /// way of threads that wait for one another.
    #[cold]
    #[track_caller]
    pub(crate) fn take_outside_circles(&self, me: u32, watch: impl Watch) -> Result<(), Circle> {
        let holder = self.holder();
        assert!(holder != me, "a thread waits for a lock that it holds");
        let _watched = watch.begin(holder);
        self.wait_outside_circles(me, system::lock)
    }

    /// Takes the turn if no thread has it.
    #[inline]
    pub(crate) fn try_take(&self, me: u32) -> bool {
        // sync: turn-passed
        self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the turn, waiting with priorities lent for `at_most` this time, measured on a clock that nobody sets.
    #[cold]
    #[track_caller]
    pub(crate) fn take_within(&self, me: u32, at_most: Duration, watch: impl Watch) -> TimedTurn {
        if self.try_take(me) {
            return TimedTurn::Taken;
        }
        if self.is_held_by(me) {
            return TimedTurn::NotLent;
        }
        let Some(deadline) = system::deadline_after(at_most) else {
            self.wait(me, Waits::Lending, watch);
            return TimedTurn::Taken;
        };
        let _watched = watch.begin(self.holder());
        self.wait_until(&deadline)
    }

    /// Releases the turn, which the calling thread has.
    #[inline]
    pub(crate) fn release(&self, me: u32, waits: Waits) {
        debug_assert!(self.is_held_by(me), "a thread releases a lock that it does not hold");
        // sync: turn-passed
        if self.word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.pass_on(waits);
        }
    }

    /// Whether the thread with this id has the turn.
    #[inline]
    pub(crate) fn is_held_by(&self, thread: u32) -> bool {
        self.holder() == thread
    }

    /// The thread that has the turn; 0 if none has.
    #[inline]
    pub(crate) fn holder(&self) -> u32 {
        self.word.load(Ordering::Relaxed) & ID
    }

    #[cold]
    #[track_caller]
    fn wait(&self, me: u32, waits: Waits, watch: impl Watch) {
        let holder = self.holder();
        assert!(holder != me, "a thread waits for a lock that it holds");
        let _watched = watch.begin(holder);
        match waits {
            Waits::Lending => self.wait_lending(me, system::lock),
            Waits::Plainly => self.wait_plainly(me),
        }
    }

    fn wait_lending(&self, me: u32, lock: impl Fn(&AtomicU32) -> io::Result<()>) {
        // The application waits for itself in a circle of several threads. It would wait for ever in any
        // case: a circle that a time limit breaks goes on.
        while let Err(Circle) = self.wait_outside_circles(me, &lock) {
            thread::sleep(DEADLOCK_PAUSE);
        }
    }

    fn wait_outside_circles(
        &self,
        me: u32,
        lock: impl Fn(&AtomicU32) -> io::Result<()>,
    ) -> Result<(), Circle> {
        loop {
            match lock(&self.word) {
                Ok(()) => self.take_from_kernel(),
                Err(Errno::NOSYS) => self.wait_plainly(me),
                Err(Errno::DEADLK) => return Err(Circle),
                // The holder has ended with the lock, and nobody can release it.
                Err(Errno::SRCH) => {
                    thread::sleep(DEADLOCK_PAUSE);
                    continue;
                }
                // The holder is ending, or a signal came.
                Err(_) => continue,
            }
            return Ok(());
        }
    }

    /// Goes on as the holder, which the kernel has made of the calling thread.
    fn take_from_kernel(&self) {
        // The kernel has written the word; the former holder's writes are to be seen.
        std::sync::atomic::fence(Ordering::Acquire);
        // A thread that has leaked its guard may have lent what is locked to others.
        let has_leaked = self.word.load(Ordering::Relaxed) & OWNER_DIED != 0;
        assert!(!has_leaked, "a thread has ended with a lock: its guard was leaked");
    }

    fn wait_until(&self, deadline: &system::Deadline) -> TimedTurn {
        loop {
            match system::lock_until(&self.word, deadline) {
                Ok(()) => {
                    self.take_from_kernel();
                    return TimedTurn::Taken;
                }
                Err(Errno::TIMEDOUT) => return TimedTurn::Late,
                // As in a wait without a limit; the kernel does not look at the time then.
                Err(Errno::DEADLK | Errno::SRCH) if system::is_over(deadline) => return TimedTurn::Late,
                Err(Errno::DEADLK | Errno::SRCH) => thread::sleep(DEADLOCK_PAUSE),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return TimedTurn::NotLent,
            }
        }
    }

    fn wait_plainly(&self, me: u32) {
        let mut taken = me;
        loop {
            let held = self.look();
            if held == FREE {
                // sync: turn-passed
                if self.word.compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
                continue;
            }
            let marked = held | WAITERS;
            let is_marked = held == marked
                || self.word.compare_exchange(held, marked, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if is_marked {
                system::sleep_while(&self.word, marked, None);
                // Others may sleep too, which nobody counts: the release must look.
                taken = me | WAITERS;
            }
        }
    }

    /// Looks for a moment whether the turn is free, unless threads sleep: whoever takes it now comes before those.
    fn look(&self) -> u32 {
        for _ in 0..LOOKS {
            let held = self.word.load(Ordering::Relaxed);
            if held == FREE || held & WAITERS != 0 {
                return held;
            }
            hint::spin_loop();
        }
        self.word.load(Ordering::Relaxed)
    }

    #[cold]
    fn pass_on(&self, waits: Waits) {
        match waits {
            Waits::Lending => self.pass_on_lent(system::unlock),
            Waits::Plainly => self.pass_on_plainly(),
        }
    }

    fn pass_on_lent(&self, unlock: impl Fn(&AtomicU32) -> io::Result<()>) {
        std::sync::atomic::fence(Ordering::Release);
        loop {
            match unlock(&self.word) {
                Ok(()) => return,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS) => return self.pass_on_plainly(),
                // Threads wait in the kernel, which alone can wake them.
                Err(e) => panic!("the kernel does not release a lock of this thread: {e}"),
            }
        }
    }

    fn pass_on_plainly(&self) {
        // sync: turn-passed
        self.word.store(FREE, Ordering::Release);
        system::wake_one(&self.word);
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("holder", &self.holder()).finish()
    }
}

thread_local! {
    static OWN_ID: Cell<u32> = const { Cell::new(FREE) };
}

/// Has the calling thread ask for its id again. For the thread of a child of a fork: it is another one than its parent's.
pub fn forget_thread_id() {
    let _ends = OWN_ID.try_with(|own| own.set(FREE));
}

/// The calling thread's id: never 0. The system gives it, where it has such ids.
#[inline]
pub fn thread_id() -> u32 {
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

/// Whether the system lends a lock's holder the priority of those that wait; else why not.
pub fn lends_priorities() -> std::result::Result<(), String> {
    let word = AtomicU32::new(thread_id());
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

const FREE: u32 = 0;

/// Threads wait in the kernel.
const WAITERS: u32 = 1 << 31;

/// The holder has ended with the turn, says the kernel.
const OWNER_DIED: u32 = 1 << 30;

/// The bits of a thread id. The kernel uses the two highest bits of the word.
const ID: u32 = (1 << 30) - 1;

/// How often a thread looks whether a turn is free before it sleeps: less than a microsecond.
const LOOKS: u32 = 100;

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
    fn stress(take: impl Fn(&Turn) + Sync, release: impl Fn(&Turn) + Sync) {
        let (turn, count) = (Turn::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        take(&turn);
                        assert!(turn.is_held_by(thread_id()));
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
        for waits in [Waits::Lending, Waits::Plainly] {
            stress(|turn| turn.take(thread_id(), waits, ()), |turn| turn.release(thread_id(), waits));
        }
    }

    #[test]
    fn one_thread_at_a_time_has_the_turn_where_the_kernel_lends_no_priorities() {
        let refuse = |_: &AtomicU32| Err(Errno::NOSYS);
        stress(
            |turn| {
                if !turn.try_take(thread_id()) {
                    turn.wait_lending(thread_id(), refuse);
                }
            },
            |turn| {
                let (me, word) = (thread_id(), &turn.word);
                if word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
                    turn.pass_on_lent(refuse);
                }
            },
        );
    }

    #[test]
    fn a_wait_with_a_limit_ends_with_the_turn_or_with_its_time() {
        let take_within = |turn: &Turn, at_most| turn.take_within(thread_id(), at_most, ());
        let release = |turn: &Turn| turn.release(thread_id(), Waits::Lending);
        let turn = Turn::new();
        assert_eq!(take_within(&turn, Duration::ZERO), TimedTurn::Taken);
        thread::scope(|scope| {
            if scope.spawn(|| take_within(&turn, Duration::from_millis(1))).join().unwrap()
                == TimedTurn::NotLent
            {
                return; // an old kernel
            }
            assert_eq!(scope.spawn(|| take_within(&turn, Duration::ZERO)).join().unwrap(), TimedTurn::Late);
            for at_most in [Duration::from_secs(600), Duration::MAX] {
                let turn = &turn;
                let waiter = scope.spawn(move || (take_within(turn, at_most), release(turn)).0);
                release(turn);
                assert_eq!(waiter.join().unwrap(), TimedTurn::Taken);
                turn.take(thread_id(), Waits::Lending, ());
            }
        });
    }
}
