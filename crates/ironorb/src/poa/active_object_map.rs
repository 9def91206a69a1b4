//! The active object map of one adapter (CORBA 3.3 part 1, 15.2.3): objects by slot, id and servant.
//!
//! A request locks only the slot of its object and, if ids are not made from slots, one part of the id table.
//! All other state is under one lock, which no request takes. Nothing here waits or calls application code: a
//! thread that must wait for work in progress gets a gate at which it may wait.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hashbrown::HashTable;

use super::ids::Ids;
use super::key::Slot;
use super::lookup::ObjectSelector;
use super::slots::{ObjectSlot, ObjectSlots, OpenSlot, VacatedSlot};
use super::upcall::Deactivation;
use super::{ObjectId, PoaPolicies, RequestProcessing};
use crate::base::config::ObjectLookup;
use crate::base::gate::{Gate, GateGuard};
use crate::base::lease::{Activation, BindingEpoch, Incarnation, Token};
use crate::base::locks::{LockGuard, PiLock};
use crate::base::randomness::Randomness;
use crate::object::priority::Priority;
use crate::poa::servant::ServantHandle;

/// Objects by slot, id and servant.
pub(crate) struct ActiveObjectMap {
    slots: ObjectSlots,
    /// `None` where ids are made from slots.
    ids: Option<Ids>,
    state: PiLock<MapState>,
    binding_epoch: Arc<BindingEpoch>,
}

/// The state that changes when objects are activated and deactivated.
struct MapState {
    /// The number of slots that exist.
    slots: u32,
    /// Slots to give out. A slot that has been taken again meanwhile is skipped.
    free: Vec<u32>,
    by_servant: ServantIndex,
    /// How many objects each servant incarnates, counted until they are etherealised. `None` where no servant
    /// activator needs it.
    uses: Option<HashMap<usize, usize>>,
    /// The priorities of active objects that have their own, by slot.
    priorities: HashMap<u32, Priority>,
    /// Slots whose object is being incarnated, or is being deactivated and will be etherealised.
    busy: HashMap<u32, Arc<Gate>>,
    /// Deactivated objects that still have requests.
    leaving: BTreeMap<Activation, DeactivatingObject>,
    /// Active objects that threads may hold leases of, by slot.
    bound: HashMap<u32, Token>,
}

/// From a servant to its slot.
enum ServantIndex {
    /// A servant may incarnate several objects.
    NotUnique,
    /// The index has not been needed yet. A servant to which the adapter holds the only handle incarnates no
    /// other object.
    NotAsked,
    /// Slots by the addresses of their servants.
    Known(HashTable<u32>),
}

struct DeactivatingObject {
    object: DeactivatedObject,
    /// Counted requests. Calls by lease come on top.
    requests: u32,
    token: Option<Token>,
    /// A thread must still look for calls by lease, which it does without the lock.
    is_unsettled: bool,
}

/// What has become of an object that was deactivated.
pub(super) enum Removal {
    /// The object has no request: the caller finishes the deactivation at once.
    Idle(DeactivatedObject),
    /// The object's last request finishes the deactivation.
    InUse,
    /// Calls by lease may be in progress: [`ActiveObjectMap::settle`] is to be called.
    Unsettled(Activation),
}

/// A deactivated object that has no request left, and what is to be done about it.
pub(super) struct DeactivatedObject {
    pub(super) id: ObjectId,
    pub(super) servant: ServantHandle,
    pub(super) deactivation: Deactivation,
}

/// A request that has been admitted to an object and counted there.
pub(super) struct AdmittedRequest<'m> {
    /// The slot in which the request is counted.
    pub(super) place: &'m ObjectSlot,
    pub(super) activation: Activation,
    pub(super) servant: ServantHandle,
}

/// The map, locked for changes.
pub(super) struct MapGuard<'m> {
    map: &'m ActiveObjectMap,
    state: LockGuard<'m, MapState>,
}

/// What the map knows about an id.
pub(super) enum IdState {
    Active,
    /// A thread incarnates or etherealises the object. Wait at the gate, then look again.
    Busy(Arc<Gate>),
    Nothing,
}

impl ActiveObjectMap {
    /// Makes an empty map. With `ids_are_slots` it needs no id table.
    pub(super) fn new(
        policies: &PoaPolicies,
        ids_are_slots: bool,
        lookup: ObjectLookup,
        binding_epoch: Arc<BindingEpoch>,
        randomness: &Randomness,
    ) -> ActiveObjectMap {
        let is_asked = policies.request_processing == RequestProcessing::ServantManager;
        let is_unique = policies.is_unique();
        ActiveObjectMap {
            slots: ObjectSlots::default(),
            ids: (!ids_are_slots).then(|| Ids::new(lookup, randomness)),
            state: PiLock::new(MapState {
                slots: 0,
                free: Vec::new(),
                by_servant: if is_unique { ServantIndex::NotAsked } else { ServantIndex::NotUnique },
                uses: (is_asked && !is_unique).then(HashMap::new),
                priorities: HashMap::new(),
                busy: HashMap::new(),
                leaving: BTreeMap::new(),
                bound: HashMap::new(),
            }),
            binding_epoch,
        }
    }

    pub(super) fn open(&self) -> MapGuard<'_> {
        MapGuard { map: self, state: self.state.lock() }
    }

    /// Admits a request to an object and counts it, if the object is active. If a slot names the object, the
    /// slot must still have the same generation.
    #[inline]
    pub(super) fn enter(&self, naming: ObjectSelector<'_>) -> Option<AdmittedRequest<'_>> {
        match (naming, &self.ids) {
            (ObjectSelector::Slot(slot), _) => self.enter_slot(slot),
            (ObjectSelector::Id(id), None) => self.enter_slot(ObjectId::slot_in(id)?),
            // The lookup must enter the slot while it holds the id: afterwards the slot may belong to another
            // object.
            (ObjectSelector::Id(id), Some(ids)) => ids.find(id, |index| {
                let place = self.slots.place(index)?;
                let (activation, servant) = place.open().enter(index)?;
                Some(AdmittedRequest { place, activation, servant })
            })?,
        }
    }

    #[inline]
    fn enter_slot(&self, slot: Slot) -> Option<AdmittedRequest<'_>> {
        let place = self.slots.place(slot.index)?;
        let (activation, servant) = place.enter(slot)?;
        Some(AdmittedRequest { place, activation, servant })
    }

    /// Counts a request out of the slot in which it was admitted, as [`leave`](Self::leave) does.
    #[inline]
    pub(super) fn leave_place(
        &self,
        place: &ObjectSlot,
        activation: Activation,
    ) -> Option<DeactivatedObject> {
        if place.leave(activation) { None } else { self.leave_deactivating(activation) }
    }

    /// Counts a request out. The last request of a deactivated object returns what is left to do.
    #[inline]
    pub(super) fn leave(&self, activation: Activation) -> Option<DeactivatedObject> {
        if self.slots.leave(activation) { None } else { self.leave_deactivating(activation) }
    }

    #[cold]
    fn leave_deactivating(&self, activation: Activation) -> Option<DeactivatedObject> {
        let mut state = self.state.lock();
        let leaving = state.leaving.get_mut(&activation)?;
        leaving.requests -= 1;
        if leaving.is_in_use(&self.binding_epoch) {
            return None;
        }
        state.leaving.remove(&activation).map(|leaving| leaving.object)
    }

    /// Ends a call by lease. The last call of a deactivated object returns what is left to do.
    #[cold]
    pub(super) fn leave_binding(&self, token: Token) -> Option<DeactivatedObject> {
        let mut state = self.state.lock();
        // The lock orders two calls that end at the same time: the second sees that both have ended.
        let mut leaving = state.leaving.iter();
        let (activation, leaving) = leaving.find(|(_, leaving)| leaving.token == Some(token))?;
        if leaving.is_in_use(&self.binding_epoch) {
            return None;
        }
        let activation = *activation;
        state.leaving.remove(&activation).map(|leaving| leaving.object)
    }

    /// Looks for calls by lease of an object that was left [`Unsettled`](Removal::Unsettled). Without any, returns what is
    /// left to do. May interrupt all processors.
    #[cold]
    pub(super) fn settle(&self, activation: Activation) -> Option<DeactivatedObject> {
        let token = self.state.lock().leaving.get(&activation)?.token;
        // All processors catch up before the lock is taken, so that no other thread waits for that.
        let _seen = token.is_some_and(|token| self.binding_epoch.any(|other| other == token));
        let mut state = self.state.lock();
        let leaving = state.leaving.get_mut(&activation)?;
        leaving.is_unsettled = false;
        if leaving.is_in_use(&self.binding_epoch) {
            return None;
        }
        state.leaving.remove(&activation).map(|leaving| leaving.object)
    }

    /// Lets threads call the object by lease from now on; `None` when it is no longer active.
    #[cold]
    pub(super) fn bind(&self, activation: Activation, manager: u64) -> Option<Token> {
        let mut state = self.state.lock();
        self.slots
            .open(activation.index)?
            .bind(activation)
            .then(|| *state.bound.entry(activation.index).or_insert_with(|| Token::new(manager)))
    }

    /// The servant of an object that has a request.
    #[cold]
    pub(super) fn servant_in(&self, activation: Activation) -> Option<ServantHandle> {
        let state = self.state.lock();
        if let Some(leaving) = state.leaving.get(&activation) {
            return Some(leaving.object.servant.clone());
        }
        self.slots.open(activation.index).filter(|entry| entry.has(activation))?.servant().cloned()
    }

    /// Counts a further share of an admitted request.
    pub(super) fn enter_again(&self, activation: Activation) {
        if !self.slots.enter_again(activation)
            && let Some(leaving) = self.state.lock().leaving.get_mut(&activation)
        {
            leaving.requests += 1;
        }
    }

    /// The id of an object that has a request.
    #[cold]
    pub(super) fn id_of(&self, activation: Activation) -> Option<ObjectId> {
        let slot = Slot { index: activation.index, generation: activation.generation };
        let Some(ids) = &self.ids else { return Some(ObjectId::of_slot(slot)) };
        // The lock keeps the slot from passing to another object.
        let state = self.state.lock();
        match state.leaving.get(&activation) {
            Some(leaving) => Some(leaving.object.id.clone()),
            None => ids.in_slot(activation.index),
        }
    }

    /// Whether an object is active, without counting a request.
    pub(super) fn has_slot(&self, slot: Slot) -> bool {
        self.in_slot(slot, |entry| entry.servant().is_some()).unwrap_or(false)
    }

    /// Whether the object of an id is active, without counting a request.
    pub(super) fn has_id(&self, id: &[u8]) -> bool {
        self.servant_of(id).is_some()
    }

    /// The servant of an active object.
    pub(super) fn servant_of(&self, id: &[u8]) -> Option<ServantHandle> {
        let slot = self.slot_of(id)?;
        self.servant_in_slot(slot)
    }

    /// The servant of the active object in a slot.
    pub(super) fn servant_in_slot(&self, slot: Slot) -> Option<ServantHandle> {
        self.in_slot(slot, |entry| entry.servant().cloned()).flatten()
    }

    /// The id in a slot, active or not.
    pub(super) fn id_in_slot(&self, slot: Slot) -> Option<ObjectId> {
        let _state = self.state.lock();
        self.in_slot(slot, |entry| entry.is_taken()).filter(|is_taken| *is_taken)?;
        self.id_at(slot.index, slot.generation)
    }

    /// The priority with which the object of an id was activated, if it has its own.
    pub(super) fn priority_of(&self, id: &[u8]) -> Option<Priority> {
        let state = self.state.lock();
        state.priorities.get(&self.slot_of(id)?.index).copied()
    }

    /// The slot that an id has, active or reserved.
    pub(super) fn slot_of(&self, id: &[u8]) -> Option<Slot> {
        let slot = match &self.ids {
            None => ObjectId::slot_in(id)?,
            Some(ids) => {
                let of = |index| Some(Slot { index, generation: self.slots.open(index)?.generation() });
                ids.find(id, of)??
            }
        };
        self.in_slot(slot, |entry| entry.is_taken()).filter(|is_taken| *is_taken)?;
        Some(slot)
    }

    fn in_slot<T>(&self, slot: Slot, look: impl FnOnce(&OpenSlot<'_>) -> T) -> Option<T> {
        let entry = self.slots.open(slot.index).filter(|entry| entry.generation() == slot.generation)?;
        Some(look(&entry))
    }

    fn id_at(&self, index: u32, generation: u32) -> Option<ObjectId> {
        match &self.ids {
            None => Some(ObjectId::of_slot(Slot { index, generation })),
            Some(ids) => ids.in_slot(index),
        }
    }
}

impl MapGuard<'_> {
    pub(super) fn find(&self, id: &[u8]) -> IdState {
        let Some(slot) = self.map.slot_of(id) else { return IdState::Nothing };
        if let Some(gate) = self.state.busy.get(&slot.index) {
            return IdState::Busy(gate.clone());
        }
        if self.map.has_slot(slot) { IdState::Active } else { IdState::Nothing }
    }

    /// The slot that an id has, active or reserved.
    pub(super) fn slot_of(&self, id: &[u8]) -> Option<Slot> {
        self.map.slot_of(id)
    }

    /// Whether a servant that may incarnate only one object incarnates one already.
    pub(super) fn is_object(&mut self, servant: &ServantHandle) -> bool {
        !servant.has_single_owner() && self.by_servant(servant.address()).is_some()
    }

    /// The object of a servant that may incarnate only one object.
    pub(super) fn by_servant(&mut self, address: usize) -> Option<ObjectId> {
        if let ServantIndex::NotAsked = self.state.by_servant {
            self.state.by_servant = ServantIndex::Known(self.all_by_servant());
        }
        let ServantIndex::Known(by_servant) = &self.state.by_servant else { return None };
        let slots = &self.map.slots;
        let index = *by_servant.find(hash_of(address), |index| slots.servant_at(*index) == Some(address))?;
        let generation = slots.open(index)?.generation();
        self.map.id_at(index, generation)
    }

    #[cold]
    fn all_by_servant(&self) -> HashTable<u32> {
        let slots = &self.map.slots;
        let mut all = HashTable::new();
        for index in 0..self.state.slots {
            if let Some(address) = slots.servant_at(index) {
                all.insert_unique(hash_of(address), index, |index| hash_at(slots, *index));
            }
        }
        all
    }

    /// Gives a slot to an id made from the slot. `None` when 4,294,967,295 slots are in use.
    pub(super) fn reserve_with(&mut self, id: impl FnOnce(Slot) -> ObjectId) -> Option<(Slot, ObjectId)> {
        let (index, generation) = self.take_free()?;
        let slot = Slot { index, generation };
        let id = id(slot);
        if let Some(ids) = &self.map.ids {
            ids.insert(&id, index);
        }
        Some((slot, id))
    }

    /// Gives a slot back to the id that was made from it and whose object has been deactivated; `None` when
    /// another id has the slot by now.
    pub(super) fn reserve_again(&mut self, slot: Slot) -> Option<Slot> {
        self.map.slots.open(slot.index)?.take_again(slot.generation).then_some(slot)
    }

    /// Whether every incarnation number of the slot still has unfinished requests. Then no new incarnation
    /// could be told apart from them.
    pub(super) fn has_no_incarnation_left(&self, slot: Slot) -> bool {
        let Slot { index, generation } = slot;
        Incarnation::all().all(|incarnation| {
            self.state.leaving.contains_key(&Activation { index, generation, incarnation })
        })
    }

    fn take_free(&mut self) -> Option<(u32, u32)> {
        while let Some(index) = self.state.free.pop() {
            let Some(mut entry) = self.map.slots.open(index) else { continue };
            entry.set_listed(false);
            if entry.take() {
                return Some((index, entry.generation()));
            }
        }
        if self.state.slots == u32::MAX {
            return None;
        }
        let index = self.state.slots;
        self.state.slots += 1;
        let mut entry = self.map.slots.make(index);
        entry.take();
        Some((index, entry.generation()))
    }

    /// Activates an object in the slot of its id.
    pub(super) fn activate(&mut self, slot: Slot, servant: ServantHandle) {
        let address = servant.address();
        let slots = &self.map.slots;
        if let ServantIndex::Known(by_servant) = &mut self.state.by_servant {
            by_servant.insert_unique(hash_of(address), slot.index, |index| hash_at(slots, *index));
        }
        if let Some(uses) = &mut self.state.uses {
            *uses.entry(address).or_default() += 1;
        }
        if !self.state.busy.is_empty() {
            self.state.busy.remove(&slot.index);
        }
        if let Some(mut entry) = self.map.slots.open(slot.index) {
            let activation =
                |incarnation| Activation { index: slot.index, generation: slot.generation, incarnation };
            entry.fill(servant, |incarnation| self.state.leaving.contains_key(&activation(incarnation)));
        }
    }

    /// Activates an object, with a priority of its own if there is one.
    pub(super) fn activate_at(&mut self, slot: Slot, servant: ServantHandle, priority: Option<Priority>) {
        self.activate(slot, servant);
        self.state.priorities.extend(priority.map(|priority| (slot.index, priority)));
    }

    /// Records that a thread incarnates the inactive object of an id, until it calls
    /// [`activate`](Self::activate) or [`end_busy`](Self::end_busy).
    pub(super) fn begin_busy(&mut self, id: &ObjectId, keeper: &GateGuard) -> Option<Slot> {
        let slot = match self.slot_of(id.as_bytes()) {
            Some(slot) => slot,
            None => self.reserve_with(|_| id.clone())?.0,
        };
        self.state.busy.insert(slot.index, keeper.gate().clone());
        Some(slot)
    }

    /// Forgets an id that was busy.
    pub(super) fn end_busy(&mut self, id: &ObjectId) {
        if let Some(slot) = self.slot_of(id.as_bytes())
            && self.state.busy.remove(&slot.index).is_some()
        {
            self.free(id, slot.index);
        }
    }

    /// Deactivates an object. Its slot and generation are never given out together again, unless to its id.
    /// If its deactivation has a gate, the id is busy until [`end_busy`](Self::end_busy). `None` when there is no such
    /// object.
    pub(super) fn remove(&mut self, id: &[u8], deactivation: Deactivation) -> Option<Removal> {
        let slot = self.slot_of(id)?;
        let mut entry = self.map.slots.open(slot.index)?;
        let activation = entry.activation(slot.index);
        let VacatedSlot { servant, requests, is_bound } = entry.empty()?;
        drop(entry);
        let token = if is_bound { self.state.bound.remove(&slot.index) } else { None };
        if token.is_some() {
            self.map.binding_epoch.end_epoch();
        }
        if let ServantIndex::Known(by_servant) = &mut self.state.by_servant
            && let Ok(found) = by_servant.find_entry(hash_of(servant.address()), |index| *index == slot.index)
        {
            found.remove();
        }
        let object = DeactivatedObject { id: ObjectId::from(id), servant, deactivation };
        match object.deactivation.gate() {
            Some(gate) => {
                self.state.busy.insert(slot.index, gate.clone());
            }
            None => self.free(&object.id, slot.index),
        }
        if requests == 0 && token.is_none() {
            return Some(Removal::Idle(object));
        }
        let is_unsettled = token.is_some();
        self.state.leaving.insert(activation, DeactivatingObject { object, requests, token, is_unsettled });
        Some(if is_unsettled { Removal::Unsettled(activation) } else { Removal::InUse })
    }

    fn free(&mut self, id: &ObjectId, index: u32) {
        if let Some(ids) = &self.map.ids {
            ids.remove(id, index);
        }
        self.state.priorities.remove(&index);
        let Some(mut entry) = self.map.slots.open(index) else { return };
        entry.give_up();
        if !entry.set_listed(true) {
            self.state.free.push(index);
        }
    }

    pub(super) fn ids(&self) -> Vec<ObjectId> {
        (0..self.state.slots)
            .filter_map(|index| {
                let entry = self.map.slots.open(index)?;
                let generation = entry.servant().map(|_| entry.generation())?;
                drop(entry);
                self.map.id_at(index, generation)
            })
            .collect()
    }

    /// Records that a deactivated object is done. True when its servant still incarnates another object.
    pub(super) fn release(&mut self, servant: &ServantHandle) -> bool {
        let Some(uses) = &mut self.state.uses else { return false };
        let address = servant.address();
        let Some(count) = uses.get_mut(&address) else { return false };
        *count -= 1;
        let remains = *count > 0;
        if !remains {
            uses.remove(&address);
        }
        remains
    }
}

impl DeactivatingObject {
    /// Whether the object still has requests.
    fn is_in_use(&self, binding_epoch: &BindingEpoch) -> bool {
        let is_called = |token| binding_epoch.any_left(|other| other == token);
        self.is_unsettled || self.requests > 0 || self.token.is_some_and(is_called)
    }
}

/// Hashes an address. Addresses differ by the size of the values there, so their lowest bits tell little,
/// while a hash table uses the lowest and the highest bits.
fn hash_of(address: usize) -> u64 {
    let product = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

fn hash_at(slots: &ObjectSlots, index: u32) -> u64 {
    slots.servant_at(index).map_or(0, hash_of)
}
