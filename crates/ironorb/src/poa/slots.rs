//! The places of an adapter's objects: what a request touches. A place is found by its number without any lock, and has one
//! of its own, which is held for as long as it takes to count a request in or out.
//!
//! Knows neither ids nor what happens to objects.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::key::Slot;
use crate::servant::ServantHandle;
use crate::sync::lock;

/// Objects by the numbers of their places.
#[derive(Default)]
pub(super) struct ObjectSlots(SlotArray<ObjectSlot>);

/// The place of an object.
#[derive(Default)]
pub(super) struct ObjectSlot(Mutex<Entry>);

/// Places by their numbers. Memory is taken a sixteenth of what there is at a time, never moved, and kept.
pub(super) struct SlotArray<T> {
    groups: [OnceLock<Box<Group<T>>>; GROUPS],
}

/// Places that double what was there before, in parts.
type Group<T> = [OnceLock<Box<[T]>>; PARTS];

const PARTS: usize = 16;

/// The places of the group before the first, were there one.
const BASE: u64 = 64;

/// In a part of the first group.
const PLACES_FIRST: usize = BASE as usize / PARTS;

/// For all numbers of 32 bits.
const GROUPS: usize = 27;

/// What is in a place.
#[derive(Default)]
pub(super) struct Entry {
    /// Of the object that is active there.
    servant: Option<ServantHandle>,
    generation: u32,
    /// Requests in the lowest bits, above them the [`Incarnation`], then [`BOUND`], [`TAKEN`] and [`LISTED`].
    state: u32,
}

/// How often a place has been filled, so that requests of an object which has ended are told from those of one that has
/// come back under its old key. Among those that have not all left it is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Incarnation(u8);

impl Incarnation {
    pub(super) fn all() -> impl Iterator<Item = Incarnation> {
        (0..=u8::MAX).map(Incarnation)
    }
}

/// A request's object: a place, which object of those that have been there, and which of its stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Activation {
    pub(super) index: u32,
    pub(super) generation: u32,
    pub(super) incarnation: Incarnation,
}

/// A place for a visit that a thread notes for itself alone.
#[derive(Debug, Default)]
pub(crate) struct AtomicActivation {
    index: AtomicU32,
    generation: AtomicU32,
    incarnation: AtomicU8,
}

impl AtomicActivation {
    #[inline(always)] // a step of many calls
    pub(crate) fn set(&self, activation: Activation) {
        self.index.store(activation.index, Ordering::Relaxed);
        self.generation.store(activation.generation, Ordering::Relaxed);
        self.incarnation.store(activation.incarnation.0, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn get(&self) -> Activation {
        Activation {
            index: self.index.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
            incarnation: Incarnation(self.incarnation.load(Ordering::Relaxed)),
        }
    }
}

/// What was in a place.
pub(super) struct VacatedSlot {
    pub(super) servant: ServantHandle,
    /// Those that it still has.
    pub(super) requests: u32,
    pub(super) is_bound: bool,
}

/// Requests of one object at a time, those included that are answered later; more are not let in. Worst case: what these
/// many outstanding answers hold.
pub(super) const REQUESTS_MAX: u32 = (1 << INCARNATION_SHIFT) - 1;
const INCARNATION_SHIFT: u32 = 21;
const INCARNATION_MASK: u32 = 0xff << INCARNATION_SHIFT;
/// Threads may have leases of the object.
const BOUND: u32 = 1 << 29;
/// An id has the place, active or not.
const TAKEN: u32 = 1 << 30;
/// It stands in the list of free places, taken or not.
const LISTED: u32 = 1 << 31;

impl<T> Default for SlotArray<T> {
    fn default() -> Self {
        SlotArray { groups: [const { OnceLock::new() }; GROUPS] }
    }
}

impl<T: Default> SlotArray<T> {
    /// The place of this number, if there has ever been one.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (group, part, place) = locate(index);
        self.groups.get(group)?.get()?[part].get()?.get(place)
    }

    /// The place of this number, made if it is not there.
    pub(super) fn make(&self, index: u32) -> &T {
        let (group, part, place) = locate(index);
        let parts = self.groups[group].get_or_init(Box::default);
        let size = PLACES_FIRST << group;
        &parts[part].get_or_init(|| (0..size).map(|_| T::default()).collect())[place]
    }
}

impl ObjectSlots {
    /// The place of this number, if there has ever been one.
    #[inline]
    pub(super) fn place(&self, index: u32) -> Option<&ObjectSlot> {
        self.0.get(index)
    }

    /// What is in it; locked.
    #[inline]
    pub(super) fn open(&self, index: u32) -> Option<MutexGuard<'_, Entry>> {
        self.place(index).map(ObjectSlot::open)
    }

    /// The same; made if it is not there.
    pub(super) fn make(&self, index: u32) -> MutexGuard<'_, Entry> {
        self.0.make(index).open()
    }

    /// The address of the servant in a place.
    pub(super) fn servant_at(&self, index: u32) -> Option<usize> {
        self.open(index)?.servant().map(ServantHandle::address)
    }

    /// Counts a request out; false when its object is not there any more.
    #[inline]
    pub(super) fn leave(&self, activation: Activation) -> bool {
        self.place(activation.index).is_some_and(|place| place.leave(activation))
    }

    /// Counts another share of a request in; false when its object is not there any more.
    pub(super) fn enter_again(&self, activation: Activation) -> bool {
        let Some(mut entry) = self.open(activation.index) else { return false };
        let is_there = entry.has(activation) && entry.requests() < REQUESTS_MAX;
        if is_there {
            entry.state += 1;
        }
        is_there
    }
}

impl ObjectSlot {
    /// What is in it; locked.
    #[inline]
    pub(super) fn open(&self) -> MutexGuard<'_, Entry> {
        lock(&self.0)
    }

    /// Counts a request in for the object of a slot, whose place this is, if it is active.
    #[inline]
    pub(super) fn enter(&self, slot: Slot) -> Option<(Activation, ServantHandle)> {
        let mut entry = self.open();
        if entry.generation != slot.generation {
            return None;
        }
        entry.enter(slot.index)
    }

    /// Counts a request out; false when its object is not there any more.
    #[inline]
    pub(super) fn leave(&self, activation: Activation) -> bool {
        let mut entry = self.open();
        let is_there = entry.has(activation);
        if is_there {
            entry.state -= 1;
        }
        is_there
    }
}

/// The group, the part and the place in it: places 0 to 63 are the first group, 64 to 191 the second, and so on.
#[inline]
fn locate(index: u32) -> (usize, usize, usize) {
    let position = u64::from(index) + BASE;
    let log = u64::BITS - 1 - position.leading_zeros();
    let log_of_part = log - PARTS.ilog2();
    let part = (position >> log_of_part) as usize % PARTS;
    let place = position & ((1 << log_of_part) - 1);
    ((log - BASE.ilog2()) as usize, part, place as usize)
}

impl Entry {
    /// The servant of the object that is active here.
    #[inline]
    pub(super) fn servant(&self) -> Option<&ServantHandle> {
        self.servant.as_ref()
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether an id has this place.
    pub(super) fn is_taken(&self) -> bool {
        self.state & TAKEN != 0
    }

    pub(super) fn requests(&self) -> u32 {
        self.state & REQUESTS_MAX
    }

    pub(super) fn activation(&self, index: u32) -> Activation {
        Activation { index, generation: self.generation, incarnation: self.incarnation() }
    }

    /// Counts a request in, if an object is active here.
    #[inline]
    pub(super) fn enter(&mut self, index: u32) -> Option<(Activation, ServantHandle)> {
        let servant = self.servant.clone()?;
        if self.requests() == REQUESTS_MAX {
            return None;
        }
        self.state += 1;
        Some((self.activation(index), servant))
    }

    /// Gives the place to an id, without a servant; false when one has it.
    pub(super) fn take(&mut self) -> bool {
        let is_free = !self.is_taken();
        self.state |= TAKEN;
        is_free
    }

    /// The same in place of the object that has just ended here.
    pub(super) fn take_again(&mut self, generation: u32) -> bool {
        let is_next = self.generation == generation.wrapping_add(1);
        if is_next && self.take() {
            self.generation = generation;
            return true;
        }
        false
    }

    /// Nobody has the place any more.
    pub(super) fn give_up(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.state &= !TAKEN;
    }

    /// An object is active from now on. `is_elsewhere` tells stays whose requests have not all left, of which there are not as
    /// many as stays.
    pub(super) fn fill(&mut self, servant: ServantHandle, is_elsewhere: impl Fn(Incarnation) -> bool) {
        let mut incarnation = self.incarnation();
        loop {
            incarnation = Incarnation(incarnation.0.wrapping_add(1));
            if !is_elsewhere(incarnation) {
                break;
            }
        }
        self.state = self.state & (TAKEN | LISTED) | u32::from(incarnation.0) << INCARNATION_SHIFT;
        self.servant = Some(servant);
    }

    /// The object is not active any more.
    pub(super) fn empty(&mut self) -> Option<VacatedSlot> {
        let servant = self.servant.take()?;
        let emptied = VacatedSlot { servant, requests: self.requests(), is_bound: self.state & BOUND != 0 };
        self.state &= !(REQUESTS_MAX | BOUND);
        Some(emptied)
    }

    /// Notes that threads may have leases of the object from now on; false when it is not there any more.
    pub(super) fn bind(&mut self, activation: Activation) -> bool {
        let is_there = self.has(activation);
        if is_there {
            self.state |= BOUND;
        }
        is_there
    }

    /// Notes whether the list of free places has it; gives whether it had.
    pub(super) fn set_listed(&mut self, is_listed: bool) -> bool {
        let was_listed = self.state & LISTED != 0;
        self.state = if is_listed { self.state | LISTED } else { self.state & !LISTED };
        was_listed
    }

    #[inline]
    pub(super) fn has(&self, activation: Activation) -> bool {
        self.servant.is_some()
            && self.generation == activation.generation
            && self.incarnation() == activation.incarnation
    }

    #[inline]
    fn incarnation(&self) -> Incarnation {
        Incarnation(((self.state & INCARNATION_MASK) >> INCARNATION_SHIFT) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_place_of_its_own() {
        let mut next = (0, 0, 0);
        for index in 0..100_000 {
            let place = locate(index);
            assert_eq!(place, next, "{index}");
            let size = PLACES_FIRST << place.0;
            next = match place {
                (group, 15, last) if last + 1 == size => (group + 1, 0, 0),
                (group, part, last) if last + 1 == size => (group, part + 1, 0),
                (group, part, place) => (group, part, place + 1),
            };
        }
        assert!(locate(u32::MAX).0 < GROUPS);
    }

    #[test]
    fn two_places_are_a_cache_line() {
        assert_eq!(size_of::<ObjectSlot>(), 32);
    }
}
