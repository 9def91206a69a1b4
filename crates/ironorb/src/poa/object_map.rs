//! The active object map of one adapter.

use std::collections::HashMap;
use std::sync::Arc;

use super::key::Slot;
use super::{ActiveObject, ObjectId};
use crate::servant::Servant;

/// Objects by slot, id and servant.
#[derive(Default)]
pub(super) struct ObjectMap {
    slots: Vec<Entry>,
    free: Vec<u32>,
    by_id: HashMap<ObjectId, u32>,
    /// Ids of a servant by its address; kept only where a servant is one object.
    by_servant: HashMap<usize, u32>,
}

struct Entry {
    generation: u32,
    state: State,
}

enum State {
    Free,
    /// A reference exists, a servant does not yet.
    Reserved(ObjectId),
    Active(Arc<ActiveObject>),
}

impl ObjectMap {
    /// The object in a slot, if it is still the one that the slot was given out for.
    #[inline]
    pub(super) fn in_slot(&self, slot: Slot) -> Option<&Arc<ActiveObject>> {
        match self.slots.get(slot.index as usize) {
            Some(Entry { generation, state: State::Active(object) }) if *generation == slot.generation => {
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
            State::Reserved(id) => Some(id),
            State::Active(object) => Some(&object.id),
        }
    }

    #[inline]
    pub(super) fn by_id(&self, id: &[u8]) -> Option<&Arc<ActiveObject>> {
        match &self.slots.get(*self.by_id.get(id)? as usize)?.state {
            State::Active(object) => Some(object),
            _ => None,
        }
    }

    /// The slot that an id has, active or reserved.
    pub(super) fn slot_of(&self, id: &[u8]) -> Option<Slot> {
        let index = *self.by_id.get(id)?;
        Some(Slot { index, generation: self.slots[index as usize].generation })
    }

    pub(super) fn by_servant(&self, servant: &Arc<dyn Servant>) -> Option<&Arc<ActiveObject>> {
        match &self.slots.get(*self.by_servant.get(&servant.address())? as usize)?.state {
            State::Active(object) => Some(object),
            _ => None,
        }
    }

    /// Gives a slot to an id made from the slot.
    pub(super) fn reserve_with(&mut self, id: impl FnOnce(Slot) -> ObjectId) -> (Slot, ObjectId) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Entry { generation: 0, state: State::Free });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[index as usize];
        let slot = Slot { index, generation: entry.generation };
        let id = id(slot);
        entry.state = State::Reserved(id.clone());
        self.by_id.insert(id.clone(), index);
        (slot, id)
    }

    /// Puts an object into the slot of its id, which is reserved.
    pub(super) fn activate(&mut self, slot: Slot, object: Arc<ActiveObject>, unique: bool) {
        if unique {
            self.by_servant.insert(object.servant.address(), slot.index);
        }
        self.slots[slot.index as usize].state = State::Active(object);
    }

    /// Takes an object out; its slot and generation are never given out together again.
    pub(super) fn remove(&mut self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        let index = *self.by_id.get(id)?;
        let entry = &mut self.slots[index as usize];
        if !matches!(entry.state, State::Active(_)) {
            return None;
        }
        let State::Active(object) = std::mem::replace(&mut entry.state, State::Free) else { return None };
        entry.generation = entry.generation.wrapping_add(1);
        self.by_id.remove(id);
        self.by_servant.remove(&object.servant.address());
        self.free.push(index);
        Some(object)
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

    /// True when another object has the same servant.
    pub(super) fn has_servant(&self, servant: &Arc<dyn Servant>) -> bool {
        let address = servant.address();
        self.slots.iter().any(|entry| match &entry.state {
            State::Active(object) => object.servant.address() == address,
            _ => false,
        })
    }
}
