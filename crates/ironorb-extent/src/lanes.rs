//! What makes an update survive the end of the process at any instruction: before elements change, their new states stand in
//! a lane of the file. Whoever opens the file finishes what stands there.
//!
//! A process that ends leaves what it has written in the file, as far as it came. So the order of the writes is what counts:
//! the states, then their number, then the elements, then the number zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use bytemuck::Pod;

use crate::elements::Change;
use crate::memory::{LockedRow, Memory, Row};

/// Lanes: so many updates go on at once.
pub(crate) const LANES: usize = 16;
/// Elements of one update.
pub(crate) const CHANGES_MAX: usize = 16;

/// The part of a file that the lanes take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    filled: usize,
    indices: usize,
    marks: usize,
    states: usize,
    pub(crate) end: usize,
}

impl Layout {
    /// Lanes from an offset on, which is a multiple of eight.
    pub(crate) fn at(offset: usize, state_bytes: usize) -> Layout {
        let indices = offset + LANES * size_of::<u64>();
        let marks = indices + LANES * CHANGES_MAX * size_of::<u64>();
        let states = marks + LANES * CHANGES_MAX * size_of::<u64>();
        let end = states + LANES * CHANGES_MAX * state_bytes;
        Layout { filled: offset, indices, marks, states, end }
    }
}

/// The lanes of a file.
pub(crate) struct Lanes<T> {
    /// How many states of a lane count. Zero when no update is under way there.
    filled: Row<AtomicU64>,
    indices: Row<AtomicU64>,
    marks: Row<AtomicU32>,
    states: LockedRow<[T; CHANGES_MAX]>,
}

impl<T: Pod + Send> Lanes<T> {
    pub(crate) fn new(memory: &Arc<Memory>, layout: Layout, turns: Row<ironorb_locks::PiTurn>) -> Lanes<T> {
        let places = LANES * CHANGES_MAX;
        Lanes {
            filled: Row::at(memory, layout.filled, LANES),
            indices: Row::at(memory, layout.indices, places),
            marks: Row::at(memory, layout.marks, places),
            states: LockedRow::new(turns, Row::at(memory, layout.states, LANES)),
        }
    }

    /// The turns that lanes need.
    pub(crate) const TURNS: usize = LANES;

    /// Carries out an update: `store` puts the states where they belong.
    pub(crate) fn carry_out(&self, changes: &mut [Change<'_, T>], store: impl FnOnce(&mut [Change<'_, T>])) {
        self.carry_out_in(ironorb_locks::thread_id() as usize % LANES, changes, store);
    }

    /// Carries out an update by this lane.
    pub(crate) fn carry_out_in(
        &self,
        lane: usize,
        changes: &mut [Change<'_, T>],
        store: impl FnOnce(&mut [Change<'_, T>]),
    ) {
        // A thread has one update under way at most: closures have ended by now.
        let (Ok(mut states), Some(filled)) = (self.states.hold(lane), self.filled.get(lane)) else {
            return store(changes);
        };
        for ((change, state), place) in changes.iter().zip(&mut *states).zip(lane * CHANGES_MAX..) {
            *state = change.state;
            if let (Some(index), Some(mark)) = (self.indices.get(place), self.marks.get(place)) {
                index.store(change.index, Ordering::Relaxed);
                mark.store(change.mark, Ordering::Relaxed);
            }
        }
        filled.store(changes.len() as u64, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        store(changes);
        compiler_fence(Ordering::SeqCst);
        filled.store(0, Ordering::Release);
    }

    /// Finishes what a process has left under way: `store` gets each element's index, mark and state.
    pub(crate) fn finish(&self, mut store: impl FnMut(u64, u32, T)) {
        for lane in 0..LANES {
            let (Ok(states), Some(filled)) = (self.states.hold(lane), self.filled.get(lane)) else {
                continue;
            };
            let count = usize::try_from(filled.load(Ordering::Acquire)).unwrap_or(CHANGES_MAX);
            for (state, place) in states.iter().take(count).zip(lane * CHANGES_MAX..) {
                if let (Some(index), Some(mark)) = (self.indices.get(place), self.marks.get(place)) {
                    store(index.load(Ordering::Relaxed), mark.load(Ordering::Relaxed), *state);
                }
            }
            compiler_fence(Ordering::SeqCst);
            filled.store(0, Ordering::Release);
        }
    }
}
