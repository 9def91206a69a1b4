//! From an object's id to its slot and back, where ids are not made from slots. Each part has a lock of its own, so that
//! requests for different objects mostly do not meet.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, RwLock};

use super::ObjectId;
use super::numbers::Numbers;
use super::slots::Places;
use crate::config::ObjectLookup;
use crate::sync::{lock, read, write};

/// Ids and slots.
pub(super) struct Ids {
    by_slot: Places<Mutex<Option<ObjectId>>>,
    index: Index,
}

enum Index {
    Hash { hasher: RandomState, parts: Box<[Mutex<Numbers>; PARTS]> },
    Linear(RwLock<Vec<(ObjectId, u32)>>),
}

/// So many ids can be looked for at once.
const PARTS: usize = 16;

impl Ids {
    pub(super) fn new(lookup: ObjectLookup) -> Ids {
        let index = match lookup {
            ObjectLookup::Active | ObjectLookup::Hash => {
                Index::Hash { hasher: RandomState::new(), parts: Box::default() }
            }
            ObjectLookup::Linear => Index::Linear(RwLock::default()),
        };
        Ids { by_slot: Places::default(), index }
    }

    /// Looks at the slot that an id has, which keeps it while it is looked at.
    #[inline]
    pub(super) fn find<T>(&self, id: &[u8], look: impl FnOnce(u32) -> T) -> Option<T> {
        match &self.index {
            Index::Hash { hasher, parts } => {
                let hash = hasher.hash_one(id);
                let part = lock(&parts[part_of(hash)]);
                part.find(hash as u32, |index| self.is_in_slot(id, index)).map(look)
            }
            Index::Linear(ids) => {
                let ids = read(ids);
                ids.iter().find(|(known, _)| known.as_bytes() == id).map(|(_, index)| look(*index))
            }
        }
    }

    /// The id that has a slot.
    pub(super) fn in_slot(&self, index: u32) -> Option<ObjectId> {
        lock(self.by_slot.get(index)?).clone()
    }

    pub(super) fn insert(&self, id: &ObjectId, index: u32) {
        *lock(self.by_slot.make(index)) = Some(id.clone());
        match &self.index {
            Index::Hash { hasher, parts } => {
                let hash = hasher.hash_one(id.as_bytes());
                lock(&parts[part_of(hash)]).insert(hash as u32, index);
            }
            Index::Linear(ids) => write(ids).push((id.clone(), index)),
        }
    }

    pub(super) fn remove(&self, id: &ObjectId, index: u32) {
        match &self.index {
            Index::Hash { hasher, parts } => {
                let hash = hasher.hash_one(id.as_bytes());
                lock(&parts[part_of(hash)]).remove(hash as u32, index);
            }
            Index::Linear(ids) => write(ids).retain(|(_, other)| *other != index),
        }
        if let Some(place) = self.by_slot.get(index) {
            *lock(place) = None;
        }
    }

    #[inline]
    fn is_in_slot(&self, id: &[u8], index: u32) -> bool {
        let Some(place) = self.by_slot.get(index) else { return false };
        lock(place).as_ref().is_some_and(|known| known.as_bytes() == id)
    }
}

/// By bits that the part itself does not go by.
#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> 60) as usize % PARTS
}
