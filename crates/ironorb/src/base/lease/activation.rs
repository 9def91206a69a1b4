//! What a thread records of the object that it is in.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// How often a slot has been filled, modulo 256. It tells requests of a deactivated object from those of an
/// object reactivated under the same key. It is unique among the incarnations that still have requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Incarnation(pub(crate) u8);

impl Incarnation {
    pub(crate) fn all() -> impl Iterator<Item = Incarnation> {
        (0..=u8::MAX).map(Incarnation)
    }
}

/// Identifies the object of a request: a slot, its generation, and the incarnation of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Activation {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    pub(crate) incarnation: Incarnation,
}

/// An activation that a thread records for itself.
#[derive(Debug)]
pub(super) struct AtomicActivation {
    index: AtomicU32,
    generation: AtomicU32,
    incarnation: AtomicU8,
}

impl AtomicActivation {
    pub(super) const fn new() -> AtomicActivation {
        AtomicActivation {
            index: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            incarnation: AtomicU8::new(0),
        }
    }

    #[inline(always)] // a step of many calls
    pub(super) fn set(&self, activation: Activation) {
        self.index.store(activation.index, Ordering::Relaxed);
        self.generation.store(activation.generation, Ordering::Relaxed);
        self.incarnation.store(activation.incarnation.0, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn get(&self) -> Activation {
        Activation {
            index: self.index.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
            incarnation: Incarnation(self.incarnation.load(Ordering::Relaxed)),
        }
    }
}
