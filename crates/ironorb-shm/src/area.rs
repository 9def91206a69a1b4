//! The memory that two ends share.

use std::time::Duration;

use crate::sync::{AtomicU32, AtomicUsize};

/// Identifies an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that created the memory.
    Server,
    /// The end that received it.
    Client,
}

impl Side {
    /// The opposite end.
    #[inline]
    pub fn other(self) -> Side {
        match self {
            Side::Server => Side::Client,
            Side::Client => Side::Server,
        }
    }
}

/// Memory with a control block and two rings, and a way to sleep at one of its words.
pub trait Area {
    /// The block through which the ends exchange their positions.
    fn control(&self) -> &Control;

    /// The ring that this side writes. Both rings have the same number of words, a power of two.
    fn ring(&self, writer: Side) -> &[AtomicUsize];

    /// Sleeps while the word has this value, for at most `at_most`. May return early.
    fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration);

    /// Wakes all threads of all processes that sleep at the word. Does not block.
    fn wake(&self, word: &AtomicU32);
}

/// Bytes before the rings.
pub const CONTROL_BYTES: usize = 4096;

/// The positions of both ends, and whether they sleep. Every pattern of bits is valid, because the peer can
/// write any.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    server: Published,
    client: Published,
}

/// The words that one end publishes. That end writes them, except for `sleep`, which both ends write.
///
/// Each word has cache lines of its own. So an end that reads one word evicts nothing else from the other
/// processor's cache.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Published {
    /// Bytes that the end has written so far, modulo 2^32.
    pub(crate) written: Line<AtomicU32>,
    /// Bytes that the end has taken so far, modulo 2^32. Published with a delay.
    pub(crate) taken: Line<AtomicU32>,
    pub(crate) sleep: Line<Sleep>,
}

/// How an end is woken.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Sleep {
    /// What the end waits for, and how it wants to be woken; the bits are in `end`.
    pub(crate) wanted: AtomicU32,
    /// Counts wake-ups. The end sleeps at this word.
    pub(crate) signal: AtomicU32,
}

/// Two cache lines, because processors fetch lines in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES && align_of::<Control>() <= CONTROL_BYTES);

impl Control {
    /// For ends that have exchanged `position` bytes each way. A connection starts at 0.
    fn at(position: u32) -> Control {
        let published = || Published {
            written: Line(AtomicU32::new(position)),
            taken: Line(AtomicU32::new(position)),
            sleep: Line(Sleep { wanted: AtomicU32::new(0), signal: AtomicU32::new(0) }),
        };
        Control { server: published(), client: published() }
    }

    #[inline]
    pub(crate) fn published_by(&self, side: Side) -> &Published {
        match side {
            Side::Server => &self.server,
            Side::Client => &self.client,
        }
    }
}

/// An area in ordinary memory, for both ends in one process: used by tests and the checkers of this crate.
#[derive(Debug)]
pub struct Heap {
    control: Control,
    rings: [Box<[AtomicUsize]>; 2],
    sleepers: sleepers::Sleepers,
}

impl Heap {
    /// Rings of `words` words each, whose ends have exchanged `position` bytes each way. Panics unless
    /// `words` is a power of two.
    pub fn new(words: usize, position: u32) -> Heap {
        assert!(words.is_power_of_two(), "a ring has a power of two of words");
        let ring = || (0..words).map(|_| AtomicUsize::new(0)).collect();
        Heap { control: Control::at(position), rings: [ring(), ring()], sleepers: Default::default() }
    }
}

impl Area for Heap {
    fn control(&self) -> &Control {
        &self.control
    }

    fn ring(&self, writer: Side) -> &[AtomicUsize] {
        &self.rings[writer as usize]
    }

    fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration) {
        self.sleepers.sleep(word, value, at_most);
    }

    fn wake(&self, _word: &AtomicU32) {
        self.sleepers.wake();
    }
}

/// A replacement for a futex: checks the word and starts to sleep in one step.
#[cfg(not(loom))]
mod sleepers {
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use crate::sync::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    pub(super) struct Sleepers {
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Sleepers {
        pub(super) fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration) {
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            if word.load(Ordering::Relaxed) == value {
                let _ = self.woken.wait_timeout(guard, at_most);
            }
        }

        pub(super) fn wake(&self) {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.woken.notify_all();
        }
    }
}

/// A replacement for a futex in the model checker. There are no timeouts there: a thread that is never woken
/// sleeps forever, and the checker reports it.
#[cfg(loom)]
mod sleepers {
    use std::time::Duration;

    use loom::sync::{Condvar, Mutex};

    use crate::sync::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    pub(super) struct Sleepers {
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Sleepers {
        pub(super) fn sleep(&self, word: &AtomicU32, value: u32, _at_most: Duration) {
            let guard = self.lock.lock().unwrap();
            if word.load(Ordering::Relaxed) == value {
                drop(self.woken.wait(guard));
            }
        }

        pub(super) fn wake(&self) {
            let _guard = self.lock.lock().unwrap();
            self.woken.notify_all();
        }
    }
}
