//! The slots of an adapter's objects. A request finds a slot by its index without any lock. Each slot has a
//! lock of its own, which a thread holds only while it counts a request in. A request is counted out without it.
//!
//! Knows neither ids nor what happens to objects.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::key::Slot;
use crate::base::lease::{Activation, Incarnation};
use crate::base::locks::{SmallPiGuard, SmallPiLock};
use crate::poa::servant::ServantHandle;

/// Object slots by index.
#[derive(Default)]
pub(super) struct ObjectSlots(SlotArray<ObjectSlot>);

/// The slot of one object.
#[derive(Default)]
pub(super) struct ObjectSlot {
    /// From the lowest bit on: the number of requests, the [`Incarnation`], [`BOUND`], [`TAKEN`], [`LISTED`], and the
    /// generation. A thread that holds the lock changes it. A thread that counts a request out does so without the lock.
    state: AtomicU64,
    /// The servant of the active object. A slot without one has no requests.
    servant: SmallPiLock<Option<ServantHandle>>,
}

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

/// The content of a slot, locked.
pub(super) struct OpenSlot<'s> {
    state: &'s AtomicU64,
    servant: SmallPiGuard<'s, Option<ServantHandle>>,
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
const REQUESTS_MASK: u64 = REQUESTS_MAX as u64;
const INCARNATION_SHIFT: u32 = 21;
const INCARNATION_MASK: u64 = 0xff << INCARNATION_SHIFT;
/// Threads may hold leases of the object.
const BOUND: u64 = 1 << 29;
/// An id has the slot, active or not.
const TAKEN: u64 = 1 << 30;
/// The slot is in the list of free slots, taken or not.
const LISTED: u64 = 1 << 31;
const GENERATION_SHIFT: u32 = 32;
const GENERATION_MASK: u64 = (u32::MAX as u64) << GENERATION_SHIFT;

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
    pub(super) fn open(&self, index: u32) -> Option<OpenSlot<'_>> {
        self.place(index).map(ObjectSlot::open)
    }

    /// The content of a slot, locked; the slot is made if it does not exist.
    pub(super) fn make(&self, index: u32) -> OpenSlot<'_> {
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
        let Some(entry) = self.open(activation.index) else { return false };
        let is_there = entry.has(activation) && entry.requests() < REQUESTS_MAX;
        if is_there {
            entry.state.fetch_add(1, Ordering::AcqRel);
        }
        is_there
    }
}

impl ObjectSlot {
    /// The content, locked.
    #[inline]
    pub(super) fn open(&self) -> OpenSlot<'_> {
        OpenSlot { state: &self.state, servant: self.servant.lock() }
    }

    /// Admits and counts a request for the object of `slot`, if it is active here.
    #[inline]
    pub(super) fn enter(&self, slot: Slot) -> Option<(Activation, ServantHandle)> {
        let entry = self.open();
        if entry.generation() != slot.generation {
            return None;
        }
        entry.enter(slot.index)
    }

    /// Counts a request out; false when its object is no longer active. Takes no lock: it is done at the latest when no
    /// other request of the object comes or goes at the same time.
    #[inline]
    pub(super) fn leave(&self, activation: Activation) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        // An object that is no longer active has no requests here.
        while is_of(state, activation) && state & REQUESTS_MASK > 0 {
            match self.state.compare_exchange_weak(state, state - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }
}

#[inline]
fn is_of(state: u64, activation: Activation) -> bool {
    let Activation { generation, incarnation, .. } = activation;
    let wanted = u64::from(generation) << GENERATION_SHIFT | u64::from(incarnation.0) << INCARNATION_SHIFT;
    state & (GENERATION_MASK | INCARNATION_MASK) == wanted
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

impl OpenSlot<'_> {
    /// The servant of the object that is active here.
    #[inline]
    pub(super) fn servant(&self) -> Option<&ServantHandle> {
        self.servant.as_ref()
    }

    #[inline]
    pub(super) fn generation(&self) -> u32 {
        (self.state() >> GENERATION_SHIFT) as u32
    }

    /// Whether an id has this slot.
    pub(super) fn is_taken(&self) -> bool {
        self.state() & TAKEN != 0
    }

    #[inline]
    pub(super) fn requests(&self) -> u32 {
        self.state() as u32 & REQUESTS_MAX
    }

    #[inline]
    pub(super) fn activation(&self, index: u32) -> Activation {
        Activation { index, generation: self.generation(), incarnation: self.incarnation() }
    }

    /// Admits and counts a request, if an object is active here.
    #[inline]
    pub(super) fn enter(&self, index: u32) -> Option<(Activation, ServantHandle)> {
        let servant = self.servant.clone()?;
        if self.requests() == REQUESTS_MAX {
            return None;
        }
        self.state.fetch_add(1, Ordering::AcqRel);
        Some((self.activation(index), servant))
    }

    /// Gives the slot to an id, without a servant; false when an id has it already.
    pub(super) fn take(&mut self) -> bool {
        self.change(|state| state | TAKEN) & TAKEN == 0
    }

    /// Gives the slot back to the id whose object has just been deactivated here; false when it has been used
    /// since.
    pub(super) fn take_again(&mut self, generation: u32) -> bool {
        let is_next = self.generation() == generation.wrapping_add(1);
        if is_next && self.take() {
            self.set_generation(generation);
            return true;
        }
        false
    }

    /// Frees the slot: no id has it any more.
    pub(super) fn give_up(&mut self) {
        self.set_generation(self.generation().wrapping_add(1));
        self.change(|state| state & !TAKEN);
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
        let kept = TAKEN | LISTED | GENERATION_MASK;
        self.change(|state| state & kept | u64::from(incarnation.0) << INCARNATION_SHIFT);
        *self.servant = Some(servant);
    }

    /// Deactivates the object.
    pub(super) fn empty(&mut self) -> Option<VacatedSlot> {
        let servant = self.servant.take()?;
        let before = self.change(|state| state & !(REQUESTS_MASK | BOUND));
        Some(VacatedSlot { servant, requests: before as u32 & REQUESTS_MAX, is_bound: before & BOUND != 0 })
    }

    /// Records that threads may hold leases of the object from now on; false when it is no longer active.
    pub(super) fn bind(&mut self, activation: Activation) -> bool {
        let is_there = self.has(activation);
        if is_there {
            self.change(|state| state | BOUND);
        }
        is_there
    }

    /// Records whether the slot is in the list of free slots. Returns whether it was.
    pub(super) fn set_listed(&mut self, is_listed: bool) -> bool {
        let listed = |state| if is_listed { state | LISTED } else { state & !LISTED };
        self.change(listed) & LISTED != 0
    }

    #[inline]
    pub(super) fn has(&self, activation: Activation) -> bool {
        self.servant.is_some() && is_of(self.state(), activation)
    }

    #[inline]
    fn incarnation(&self) -> Incarnation {
        Incarnation(((self.state() & INCARNATION_MASK) >> INCARNATION_SHIFT) as u8)
    }

    #[inline]
    fn state(&self) -> u64 {
        self.state.load(Ordering::Relaxed)
    }

    fn set_generation(&mut self, generation: u32) {
        self.change(|state| state & !GENERATION_MASK | u64::from(generation) << GENERATION_SHIFT);
    }

    /// Changes the state while other threads count requests out, and returns the state before.
    fn change(&mut self, next: impl Fn(u64) -> u64) -> u64 {
        let changed = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| Some(next(state)));
        changed.unwrap_or_else(|state| state) // never: there is always a next state
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
