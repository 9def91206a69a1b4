//! The lock of an area: the kernel lends its holder the priority of the most urgent thread that waits (futex(2),
//! `FUTEX_LOCK_PI`).

use std::sync::atomic::{AtomicU32, Ordering};

/// A lock without a value. It allocates nothing, which no lock of an allocator may.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The system's number of the holder, or 0. The kernel adds a bit for threads that wait.
    word: AtomicU32,
}

/// The turn, as long as the calling thread has it.
#[derive(Debug)]
pub(crate) struct Held<'t> {
    turn: &'t Turn,
    me: u32,
}

impl Turn {
    pub(crate) const fn new() -> Turn {
        Turn { word: AtomicU32::new(FREE) }
    }

    /// Takes the turn. Blocks while another thread has it. The calling thread does not have it.
    #[inline]
    pub(crate) fn take(&self) -> Held<'_> {
        let me = system::own_number();
        if self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait(me);
        }
        Held { turn: self, me }
    }

    /// Takes the turn if no thread has it.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Held<'_>> {
        let me = system::own_number();
        let taken = self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then(|| Held { turn: self, me })
    }

    #[cold]
    fn wait(&self, me: u32) {
        while !system::lock(&self.word) {
            // The kernel has no such locks, or a signal has come.
            if self.word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            // A yield would not let a lower priority go on.
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        let word = &self.turn.word;
        if word.compare_exchange(self.me, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            system::unlock(word);
        }
    }
}

const FREE: u32 = 0;

/// The pause between looks at a turn where the kernel does not lend priorities.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(50);

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::cell::Cell;
    use std::sync::atomic::AtomicU32;

    use rustix::thread::futex::{self, Flags};

    /// Whether the calling thread has the lock now.
    pub(super) fn lock(word: &AtomicU32) -> bool {
        futex::lock_pi(word, Flags::PRIVATE, None).is_ok()
    }

    pub(super) fn unlock(word: &AtomicU32) {
        let passed = futex::unlock_pi(word, Flags::PRIVATE);
        debug_assert!(passed.is_ok(), "{passed:?}");
    }

    thread_local! {
        // Without a destructor and with a constant, so that it allocates nothing.
        static OWN: Cell<u32> = const { Cell::new(0) };
    }

    #[inline]
    pub(super) fn own_number() -> u32 {
        match OWN.get() {
            0 => {
                let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                OWN.set(own);
                own
            }
            own => own,
        }
    }
}

/// Without the kernel's locks, threads ask again and again: nothing is lent.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::sync::atomic::AtomicU32;

    pub(super) fn lock(_: &AtomicU32) -> bool {
        false
    }

    pub(super) fn unlock(_: &AtomicU32) {
        unreachable!("no kernel marks the word");
    }

    pub(super) fn own_number() -> u32 {
        1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_has_the_turn() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };
        let (turn, number) = (Turn::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let _held = turn.take();
                        assert!(turn.try_take().is_none());
                        number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(number.load(Ordering::Relaxed), 4 * ROUNDS);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn the_thread_that_has_the_turn_runs_at_the_priority_of_the_one_that_waits() {
        use std::time::{Duration, Instant};

        use ironorb_threads::{Class, Thread};

        static TURN: Turn = Turn::new();
        if thread::spawn(|| Thread::CALLING.set_class(Class::Fifo(10))).join().unwrap().is_err() {
            println!("no SCHED_FIFO here (RLIMIT_RTPRIO, CAP_SYS_NICE): nothing is shown");
            return;
        }
        // Field 18 of proc(5), with what others lend: -1 less the priority of a real-time class.
        let priority = || -> i32 {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, rest) = stat.rsplit_once(") ").unwrap();
            rest.split(' ').nth(15).unwrap().parse().unwrap()
        };
        let own = priority();
        let held = TURN.take();
        let high = thread::spawn(|| {
            Thread::CALLING.set_class(Class::Fifo(10)).unwrap();
            drop(TURN.take());
        });
        let started = Instant::now();
        while priority() != -11 && started.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        let lent = priority();
        drop(held);
        high.join().unwrap();
        assert_eq!((lent, priority()), (-11, own));
    }
}
