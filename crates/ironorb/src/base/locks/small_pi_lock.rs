//! A lock with the kernel's inheritance of priorities for data of which there are very many.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use ironorb_locks::{HeldTurn, PiTurn};

use crate::base::watch::Here;

/// Data that threads of several lanes change, in a lock as small as a mutex. A thread that holds the lock runs at the
/// priority of the most urgent thread that waits for it.
///
/// All such locks of the process share 64 turns, by their addresses. So a thread may wait for one that holds another lock: it
/// holds it for a few instructions only, runs no application code meanwhile, and takes no other lock of this kind.
#[derive(Default)]
pub(crate) struct SmallPiLock<T>(
    /// Not borrowed whenever a thread has the turn.
    AtomicRefCell<T>,
);

const _: () = assert!(size_of::<SmallPiLock<u64>>() <= 16);

/// What a thread holds of a [`SmallPiLock`]. Dropping it unlocks: the value first, by the order of the fields.
pub(crate) struct SmallPiGuard<'l, T> {
    value: AtomicRefMut<'l, T>,
    _held: HeldTurn<'static>,
}

/// Each is alone in its cache line.
#[repr(align(64))]
struct Turn(PiTurn);

const TURNS: usize = 64;

static ALL: [Turn; TURNS] = [const { Turn(PiTurn::new()) }; TURNS];

impl<T> SmallPiLock<T> {
    /// Locks. Blocks while another thread holds a lock with the same turn. Panics if the calling thread holds one.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> SmallPiGuard<'_, T> {
        // Neighbours in an array have different turns.
        let turn = ptr::from_ref(self).addr() / size_of::<Self>().next_power_of_two() % TURNS;
        let held = ALL[turn].0.hold(Here::of_caller());
        SmallPiGuard { value: self.0.borrow_mut(), _held: held }
    }
}

impl<T> Deref for SmallPiGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for SmallPiGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> fmt::Debug for SmallPiLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallPiLock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_change_values_of_many_locks_with_few_turns() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };
        let numbers: [SmallPiLock<usize>; 2 * TURNS] = std::array::from_fn(|_| SmallPiLock::default());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let numbers = &numbers;
                scope.spawn(move || {
                    (0..ROUNDS).for_each(|round| *numbers[(round * thread) % numbers.len()].lock() += 1)
                });
            }
        });
        assert_eq!(numbers.iter().map(|number| *number.lock()).sum::<usize>(), 4 * ROUNDS);
    }
}
