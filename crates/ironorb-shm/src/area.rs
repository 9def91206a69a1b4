//! The memory that two ends have in common, wherever it is.

use std::time::Duration;

use crate::sync::{AtomicU32, AtomicUsize};

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that has made the memory.
    Server,
    /// The one that has been given it.
    Client,
}

impl Side {
    /// The other end.
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
    /// Where the ends tell each other how far they are.
    fn control(&self) -> &Control;

    /// The ring into which this side writes. Both have the same number of words, a power of two.
    fn ring(&self, writer: Side) -> &[AtomicUsize];

    /// Sleeps while the word has this value, at most for this long; perhaps shorter.
    fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration);

    /// Wakes all that sleep at the word, in whatever process.
    fn wake(&self, word: &AtomicU32);
}

/// Bytes in front of the rings.
pub const CONTROL_BYTES: usize = 4096;

/// How far the ends are, and whether they sleep. Every bit pattern is one that the other end could have written.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    server: Told,
    client: Told,
}

/// What one end tells the other. Written by that end, but for `sleep`, which both write.
///
/// Each on lines of its own: an end that looks at one of them takes nothing from the other end's cache but what it wants.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Told {
    /// Bytes that it has written so far, modulo 2^32.
    pub(crate) written: Line<AtomicU32>,
    /// Bytes that it has taken so far; told late.
    pub(crate) taken: Line<AtomicU32>,
    pub(crate) sleep: Line<Sleep>,
}

/// How an end is woken.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Sleep {
    /// What it wants to be woken for, and by which means; bits of `end`.
    pub(crate) wanted: AtomicU32,
    /// Counts what it has been woken for. It sleeps at this word.
    pub(crate) signal: AtomicU32,
}

/// Two cache lines: processors fetch them in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Line<T>(pub(crate) T);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES && align_of::<Control>() <= CONTROL_BYTES);

impl Control {
    /// For ends that have exchanged so many bytes each way; a connection begins at 0.
    fn at(position: u32) -> Control {
        let told = || Told {
            written: Line(AtomicU32::new(position)),
            taken: Line(AtomicU32::new(position)),
            sleep: Line(Sleep { wanted: AtomicU32::new(0), signal: AtomicU32::new(0) }),
        };
        Control { server: told(), client: told() }
    }

    #[inline]
    pub(crate) fn told_by(&self, side: Side) -> &Told {
        match side {
            Side::Server => &self.server,
            Side::Client => &self.client,
        }
    }
}

/// An area in ordinary memory, for ends in one process: tests, and the checkers of this crate.
#[derive(Debug)]
pub struct Heap {
    control: Control,
    rings: [Box<[AtomicUsize]>; 2],
    sleepers: sleepers::Sleepers,
}

impl Heap {
    /// Rings of so many words, a power of two, whose ends have exchanged `position` bytes each way.
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

/// What a futex does, by other means: the word is looked at and the thread put to sleep in one step.
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

/// The same for the model checker, in which nothing happens by time: who is not woken sleeps for ever, and is found.
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
