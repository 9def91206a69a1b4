//! The active object map of one adapter (CORBA 3.3 part 1, 15.2.3): objects by slot, id and servant.
//!
//! Nothing here waits or calls anybody: what is in progress is a gate at which the caller may wait.

use std::collections::HashMap;
use std::sync::Arc;

use super::gate::{Gate, GateKeeper};
use super::key::Slot;
use super::{ActiveObject, ObjectId, PoaPolicies, RequestProcessing};
use crate::servant::Servant;

/// Objects by slot, id and servant.
pub(crate) struct ObjectMap {
    slots: Vec<Entry>,
    /// Slots to be given out; those that are not [`State::Free`] any more are skipped.
    free: Vec<u32>,
    by_id: HashMap<ObjectId, u32>,
    /// The slot of a servant by its address, where a servant is one object.
    by_servant: Option<HashMap<usize, u32>>,
    /// Objects that each servant is, until they are etherealised, where that is asked.
    uses: Option<HashMap<usize, usize>>,
}

struct Entry {
    generation: u32,
    /// Whether `free` has it.
    is_listed: bool,
    state: State,
}

enum State {
    Free,
    /// A reference exists, a servant does not yet.
    Reserved(ObjectId),
    /// The object is being incarnated, or is on its way out and will be etherealised.
    Busy(ObjectId, Arc<Gate>),
    Active(Arc<ActiveObject>),
}

/// What a map has for an id.
pub(super) enum Found<'m> {
    Active(&'m Arc<ActiveObject>),
    /// Somebody is at it: wait, then look again.
    Busy(&'m Arc<Gate>),
    Nothing,
}

impl ObjectMap {
    pub(super) fn new(policies: &PoaPolicies) -> ObjectMap {
        let is_asked = policies.request_processing == RequestProcessing::ServantManager;
        let is_unique = policies.is_unique();
        ObjectMap {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            by_servant: is_unique.then(HashMap::new),
            uses: (is_asked && !is_unique).then(HashMap::new),
        }
    }

    /// The object in a slot, if it is still the one that the slot was given out for.
    #[inline]
    pub(crate) fn in_slot(&self, slot: Slot) -> Option<&Arc<ActiveObject>> {
        match self.slots.get(slot.index as usize) {
            Some(Entry { generation, state: State::Active(object), .. })
                if *generation == slot.generation =>
            {
                Some(object)
            }
            _ => None,
        }
    }

    /// The id in a slot, active or not.
    pub(super) fn id_in_slot(&self, slot: Slot) -> Option<&ObjectId> {
        let entry =
            self.slots.get(slot.index as usize).filter(|entry| entry.generation == slot.generation)?;
        match &entry.state {
            State::Free => None,
            State::Reserved(id) | State::Busy(id, _) => Some(id),
            State::Active(object) => Some(&object.id),
        }
    }

    #[inline]
    pub(crate) fn by_id(&self, id: &[u8]) -> Option<&Arc<ActiveObject>> {
        match &self.slots.get(*self.by_id.get(id)? as usize)?.state {
            State::Active(object) => Some(object),
            _ => None,
        }
    }

    pub(super) fn find(&self, id: &[u8]) -> Found<'_> {
        match self.by_id.get(id).map(|index| &self.slots[*index as usize].state) {
            Some(State::Active(object)) => Found::Active(object),
            Some(State::Busy(_, gate)) => Found::Busy(gate),
            _ => Found::Nothing,
        }
    }

    /// The slot that an id has, active or reserved.
    pub(super) fn slot_of(&self, id: &[u8]) -> Option<Slot> {
        let index = *self.by_id.get(id)?;
        Some(Slot { index, generation: self.slots[index as usize].generation })
    }

    /// The object of a servant that is one object.
    pub(super) fn by_servant(&self, servant: &Arc<dyn Servant>) -> Option<&Arc<ActiveObject>> {
        let index = *self.by_servant.as_ref()?.get(&servant.address())?;
        match &self.slots.get(index as usize)?.state {
            State::Active(object) => Some(object),
            _ => None,
        }
    }

    /// Gives a slot to an id made from the slot.
    pub(super) fn reserve_with(&mut self, id: impl FnOnce(Slot) -> ObjectId) -> (Slot, ObjectId) {
        let index = self.take_free();
        let entry = &mut self.slots[index as usize];
        let slot = Slot { index, generation: entry.generation };
        let id = id(slot);
        entry.state = State::Reserved(id.clone());
        self.by_id.insert(id.clone(), index);
        (slot, id)
    }

    /// Gives the slot back to an id that was made from it and whose object has ended; `None` when it is another's by
    /// now.
    pub(super) fn reserve_again(&mut self, id: &ObjectId, slot: Slot) -> Option<Slot> {
        let entry = self.slots.get_mut(slot.index as usize)?;
        if !matches!(entry.state, State::Free) || entry.generation != slot.generation.wrapping_add(1) {
            return None;
        }
        entry.generation = slot.generation;
        entry.state = State::Reserved(id.clone());
        self.by_id.insert(id.clone(), slot.index);
        Some(slot)
    }

    fn take_free(&mut self) -> u32 {
        while let Some(index) = self.free.pop() {
            let entry = &mut self.slots[index as usize];
            entry.is_listed = false;
            if matches!(entry.state, State::Free) {
                return index;
            }
        }
        self.slots.push(Entry { generation: 0, is_listed: false, state: State::Free });
        (self.slots.len() - 1) as u32
    }

    /// Puts an object into the slot of its id.
    pub(super) fn activate(&mut self, slot: Slot, object: Arc<ActiveObject>) {
        if let Some(by_servant) = &mut self.by_servant {
            by_servant.insert(object.servant.address(), slot.index);
        }
        if let Some(uses) = &mut self.uses {
            *uses.entry(object.servant.address()).or_default() += 1;
        }
        self.slots[slot.index as usize].state = State::Active(object);
    }

    /// Says that a thread incarnates the object of an id that is not active, until it calls
    /// [`activate`](Self::activate) or [`end_busy`](Self::end_busy).
    pub(super) fn begin_busy(&mut self, id: &ObjectId, keeper: &GateKeeper) -> Slot {
        let slot = match self.slot_of(id.as_bytes()) {
            Some(slot) => slot,
            None => self.reserve_with(|_| id.clone()).0,
        };
        self.slots[slot.index as usize].state = State::Busy(id.clone(), keeper.gate().clone());
        slot
    }

    /// Forgets an id that was busy.
    pub(super) fn end_busy(&mut self, id: &ObjectId) {
        if let Some(index) = self.by_id.get(id.as_bytes()).copied()
            && matches!(self.slots[index as usize].state, State::Busy(..))
        {
            self.free(id, index);
        }
    }

    /// Takes an object out; its slot and generation are never given out together again, unless to its id. With a gate,
    /// the id is busy until [`end_busy`](Self::end_busy).
    pub(super) fn remove(&mut self, id: &[u8], keeper: Option<&GateKeeper>) -> Option<Arc<ActiveObject>> {
        let index = *self.by_id.get(id)?;
        let entry = &mut self.slots[index as usize];
        if !matches!(entry.state, State::Active(_)) {
            return None;
        }
        let State::Active(object) = std::mem::replace(&mut entry.state, State::Free) else { return None };
        if let Some(by_servant) = &mut self.by_servant {
            by_servant.remove(&object.servant.address());
        }
        match keeper {
            Some(keeper) => {
                let busy = State::Busy(object.id.clone(), keeper.gate().clone());
                self.slots[index as usize].state = busy;
            }
            None => self.free(&object.id, index),
        }
        Some(object)
    }

    fn free(&mut self, id: &ObjectId, index: u32) {
        self.by_id.remove(id.as_bytes());
        let entry = &mut self.slots[index as usize];
        entry.state = State::Free;
        entry.generation = entry.generation.wrapping_add(1);
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.free.push(index);
        }
    }

    /// Takes all objects out.
    pub(super) fn remove_all(&mut self) -> Vec<Arc<ActiveObject>> {
        self.ids().iter().filter_map(|id| self.remove(id.as_bytes(), None)).collect()
    }

    pub(super) fn ids(&self) -> Vec<ObjectId> {
        self.slots
            .iter()
            .filter_map(|entry| match &entry.state {
                State::Active(object) => Some(object.id.clone()),
                _ => None,
            })
            .collect()
    }

    /// An object that was taken out is done; true when its servant is another object as well.
    pub(super) fn release(&mut self, servant: &Arc<dyn Servant>) -> bool {
        let Some(uses) = &mut self.uses else { return false };
        let Some(count) = uses.get_mut(&servant.address()) else { return false };
        *count -= 1;
        let remains = *count > 0;
        if !remains {
            uses.remove(&servant.address());
        }
        remains
    }
}
