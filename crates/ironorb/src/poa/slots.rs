//! The slots of an adapter's objects. A request finds a slot by its index without any lock. Each slot has a
//! lock of its own, which a thread holds only while it counts a request in or out.
//!
//! Knows neither ids nor what happens to objects.

use std::sync::OnceLock;

use super::key::Slot;
use crate::base::lease::{Activation, Incarnation};
use crate::base::locks::{LockGuard, SharedLock};
use crate::poa::servant::ServantHandle;

/// Object slots by index.
#[derive(Default)]
pub(super) struct ObjectSlots(SlotArray<ObjectSlot>);

/// The slot of one object.
#[derive(Default)]
pub(super) struct ObjectSlot(SharedLock<Entry>);

/// An array of slots that grows by a sixteenth of its size at a time. Its memory is never moved and never
/// given back.
pub(super) struct SlotArray<T> {
    groups: [OnceLock<Box<Group<T>>>; GROUPS],
}

/// A group of slots, in parts. Each group doubles the array.
type Group<T> = [OnceLock<Box<[T]>>; PARTS];

const PARTS: usize = 16;

/// The size of the group before the first, if there were one.
const BASE: u64 = 64;

/// The slots in one part of the first group.
const PLACES_FIRST: usize = BASE as usize / PARTS;

/// Enough groups for all 32-bit indices.
const GROUPS: usize = 27;

/// The content of a slot.
#[derive(Default)]
pub(super) struct Entry {
    /// The servant of the active object.
    servant: Option<ServantHandle>,
    generation: u32,
    /// The number of requests in the lowest bits, above them the [`Incarnation`], then [`BOUND`], [`TAKEN`]
    /// and [`LISTED`].
    state: u32,
}

/// What a slot held before it was vacated.
pub(super) struct VacatedSlot {
    pub(super) servant: ServantHandle,
    /// Requests that the object still has.
    pub(super) requests: u32,
    pub(super) is_bound: bool,
}

/// The most requests that one object may have at a time, including those whose replies come later. Further
/// requests are refused. Worst case: the memory that these outstanding replies hold.
pub(super) const REQUESTS_MAX: u32 = (1 << INCARNATION_SHIFT) - 1;
const INCARNATION_SHIFT: u32 = 21;
const INCARNATION_MASK: u32 = 0xff << INCARNATION_SHIFT;
/// Threads may hold leases of the object.
const BOUND: u32 = 1 << 29;
/// An id has the slot, active or not.
const TAKEN: u32 = 1 << 30;
/// The slot is in the list of free slots, taken or not.
const LISTED: u32 = 1 << 31;

impl<T> Default for SlotArray<T> {
    fn default() -> Self {
        SlotArray { groups: [const { OnceLock::new() }; GROUPS] }
    }
}

impl<T: Default> SlotArray<T> {
    /// The slot with this index, if it has ever existed.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (group, part, place) = locate(index);
        self.groups.get(group)?.get()?[part].get()?.get(place)
    }

    /// The slot with this index, made if it does not exist.
    pub(super) fn make(&self, index: u32) -> &T {
        let (group, part, place) = locate(index);
        let parts = self.groups[group].get_or_init(Box::default);
        let size = PLACES_FIRST << group;
        &parts[part].get_or_init(|| (0..size).map(|_| T::default()).collect())[place]
    }
}

impl ObjectSlots {
    /// The slot with this index, if it has ever existed.
    #[inline]
    pub(super) fn place(&self, index: u32) -> Option<&ObjectSlot> {
        self.0.get(index)
    }

    /// The content of a slot, locked.
    #[inline]
    pub(super) fn open(&self, index: u32) -> Option<LockGuard<'_, Entry>> {
        self.place(index).map(ObjectSlot::open)
    }

    /// The content of a slot, locked; the slot is made if it does not exist.
    pub(super) fn make(&self, index: u32) -> LockGuard<'_, Entry> {
        self.0.make(index).open()
    }

    /// The address of the servant in a slot.
    pub(super) fn servant_at(&self, index: u32) -> Option<usize> {
        self.open(index)?.servant().map(ServantHandle::address)
    }

    /// Counts a request out; false when its object is no longer active.
    #[inline]
    pub(super) fn leave(&self, activation: Activation) -> bool {
        self.place(activation.index).is_some_and(|place| place.leave(activation))
    }

    /// Counts a further share of a request; false when its object is no longer active.
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
    /// The content, locked.
    #[inline]
    pub(super) fn open(&self) -> LockGuard<'_, Entry> {
        self.0.lock()
    }

    /// Admits and counts a request for the object of `slot`, if it is active here.
    #[inline]
    pub(super) fn enter(&self, slot: Slot) -> Option<(Activation, ServantHandle)> {
        let mut entry = self.open();
        if entry.generation != slot.generation {
            return None;
        }
        entry.enter(slot.index)
    }

    /// Counts a request out; false when its object is no longer active.
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

/// The group of an index, the part, and the position in the part: indices 0 to 63 are the first group, 64 to
/// 191 the second, and so on.
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

    /// Whether an id has this slot.
    pub(super) fn is_taken(&self) -> bool {
        self.state & TAKEN != 0
    }

    pub(super) fn requests(&self) -> u32 {
        self.state & REQUESTS_MAX
    }

    pub(super) fn activation(&self, index: u32) -> Activation {
        Activation { index, generation: self.generation, incarnation: self.incarnation() }
    }

    /// Admits and counts a request, if an object is active here.
    #[inline]
    pub(super) fn enter(&mut self, index: u32) -> Option<(Activation, ServantHandle)> {
        let servant = self.servant.clone()?;
        if self.requests() == REQUESTS_MAX {
            return None;
        }
        self.state += 1;
        Some((self.activation(index), servant))
    }

    /// Gives the slot to an id, without a servant; false when an id has it already.
    pub(super) fn take(&mut self) -> bool {
        let is_free = !self.is_taken();
        self.state |= TAKEN;
        is_free
    }

    /// Gives the slot back to the id whose object has just been deactivated here; false when it has been used
    /// since.
    pub(super) fn take_again(&mut self, generation: u32) -> bool {
        let is_next = self.generation == generation.wrapping_add(1);
        if is_next && self.take() {
            self.generation = generation;
            return true;
        }
        false
    }

    /// Frees the slot: no id has it any more.
    pub(super) fn give_up(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.state &= !TAKEN;
    }

    /// Activates an object here. `is_elsewhere` reports incarnations that still have requests; at least one
    /// incarnation must be free.
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

    /// Deactivates the object.
    pub(super) fn empty(&mut self) -> Option<VacatedSlot> {
        let servant = self.servant.take()?;
        let emptied = VacatedSlot { servant, requests: self.requests(), is_bound: self.state & BOUND != 0 };
        self.state &= !(REQUESTS_MAX | BOUND);
        Some(emptied)
    }

    /// Records that threads may hold leases of the object from now on; false when it is no longer active.
    pub(super) fn bind(&mut self, activation: Activation) -> bool {
        let is_there = self.has(activation);
        if is_there {
            self.state |= BOUND;
        }
        is_there
    }

    /// Records whether the slot is in the list of free slots. Returns whether it was.
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
