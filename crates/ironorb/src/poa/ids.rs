//! Maps object ids to slots and back, where ids are not made from slots. The table has parts with a lock
//! each, so that requests for different objects rarely contend.
//!
//! An id of up to 16 octets takes 17 bytes, and 6 to 12 bytes in the hash table. A thread inserts and removes
//! ids, and asks for the id of a slot, only while it holds the lock of the object map. A thread that looks up
//! an id holds the lock of its part instead. A thread that changes the table holds both.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use hashbrown::HashTable;

use super::ObjectId;
use super::slots::SlotArray;
use crate::base::config::ObjectLookup;
use crate::base::locks::PiLock;
use crate::base::randomness::{HashKeys, Randomness};

/// Ids and slots.
pub(super) struct Ids {
    by_slot: BySlot,
    index: Index,
}

enum Index {
    Hash { hasher: IdHasher, parts: Box<[Part; PARTS]> },
    Linear(PiLock<Vec<(ObjectId, u32)>>),
}

/// Slots by their ids' hashes.
type Part = PiLock<HashTable<u32>>;

/// The number of parts: this many ids can be looked up at once.
const PARTS: usize = 16;

impl Ids {
    pub(super) fn new(lookup: ObjectLookup, randomness: &Randomness) -> Ids {
        let index = match lookup {
            ObjectLookup::Active | ObjectLookup::Hash => {
                Index::Hash { hasher: IdHasher::new(randomness), parts: Box::default() }
            }
            ObjectLookup::Linear => Index::Linear(PiLock::default()),
        };
        Ids { by_slot: BySlot::default(), index }
    }

    /// Calls `look` with the slot of an id. The id keeps its slot during that call.
    #[inline]
    pub(super) fn find<T>(&self, id: &[u8], look: impl FnOnce(u32) -> T) -> Option<T> {
        match &self.index {
            Index::Hash { hasher, parts } => {
                let id = Id::of(id);
                let hash = hasher.hash(&id);
                let part = parts[part_of(hash)].lock();
                part.find(hash, |index| self.by_slot.is_in(&id, *index)).map(|index| look(*index))
            }
            Index::Linear(ids) => {
                let ids = ids.lock();
                ids.iter().find(|(known, _)| known.as_bytes() == id).map(|(_, index)| look(*index))
            }
        }
    }

    /// The id that has a slot.
    pub(super) fn in_slot(&self, index: u32) -> Option<ObjectId> {
        self.by_slot.with(index, |id| ObjectId::from(id))
    }

    pub(super) fn insert(&self, id: &ObjectId, index: u32) {
        match &self.index {
            Index::Hash { hasher, parts } => {
                let hash = hasher.hash(&Id::of(id.as_bytes()));
                let mut part = parts[part_of(hash)].lock();
                self.by_slot.set(index, id.as_bytes());
                let hash_of =
                    |index: &u32| self.by_slot.with(*index, |id| hasher.hash(&Id::of(id))).unwrap_or(0);
                part.insert_unique(hash, index, hash_of);
            }
            Index::Linear(ids) => {
                self.by_slot.set(index, id.as_bytes());
                ids.lock().push((id.clone(), index));
            }
        }
    }

    pub(super) fn remove(&self, id: &ObjectId, index: u32) {
        match &self.index {
            Index::Hash { hasher, parts } => {
                let hash = hasher.hash(&Id::of(id.as_bytes()));
                let mut part = parts[part_of(hash)].lock();
                if let Ok(found) = part.find_entry(hash, |other| *other == index) {
                    found.remove();
                }
                self.by_slot.clear(index);
            }
            Index::Linear(ids) => {
                ids.lock().retain(|(_, other)| *other != index);
                self.by_slot.clear(index);
            }
        }
    }
}

/// The part of a hash, from bits that the hash table of the part does not use.
#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> 48) as usize % PARTS
}

/// The ids of slots. A slot's id has no lock of its own: the module's comment says which locks protect it.
#[derive(Default)]
struct BySlot {
    short: SlotArray<Block>,
    /// The ids that are longer than [`SHORT`].
    long: PiLock<HashMap<u32, Box<[u8]>>>,
}

/// The ids of neighbouring slots.
#[derive(Default)]
struct Block {
    /// The number of octets of each id, plus one; or [`LONG`], or [`NO_ID`].
    lengths: [AtomicU8; BLOCK],
    octets: [[AtomicU64; 2]; BLOCK],
}

/// Ids in a block: their lengths fill one word.
const BLOCK: usize = 8;

/// The most octets of an id that is stored in a block.
const SHORT: usize = 16;

/// A value in place of a length.
const NO_ID: u8 = 0;
const LONG: u8 = u8::MAX;

impl BySlot {
    /// Whether a slot has this id.
    #[inline]
    fn is_in(&self, id: &Id<'_>, index: u32) -> bool {
        let Some(block) = self.short.get(index / BLOCK as u32) else { return false };
        let place = index as usize % BLOCK;
        match (id, block.lengths[place].load(Ordering::Relaxed)) {
            (Id::Short { length, words: [first, second] }, known) => {
                let octets = &block.octets[place];
                known == *length
                    && octets[0].load(Ordering::Relaxed) == *first
                    && octets[1].load(Ordering::Relaxed) == *second
            }
            (Id::Long(id), LONG) => self.long.lock().get(&index).is_some_and(|known| **known == **id),
            (Id::Long(_), _) => false,
        }
    }

    /// Looks at the id of a slot, if it has one.
    fn with<T>(&self, index: u32, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let block = self.short.get(index / BLOCK as u32)?;
        let place = index as usize % BLOCK;
        match block.lengths[place].load(Ordering::Relaxed) {
            NO_ID => None,
            LONG => self.long.lock().get(&index).map(|id| look(id)),
            length => {
                let mut octets = [0; SHORT];
                for (eight, word) in octets.chunks_exact_mut(8).zip(&block.octets[place]) {
                    eight.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
                }
                octets.get(..usize::from(length - 1)).map(look)
            }
        }
    }

    fn set(&self, index: u32, id: &[u8]) {
        let block = self.short.make(index / BLOCK as u32);
        let place = index as usize % BLOCK;
        let length = match Id::of(id) {
            Id::Short { length, words } => {
                for (octets, word) in block.octets[place].iter().zip(words) {
                    octets.store(word, Ordering::Relaxed);
                }
                length
            }
            Id::Long(id) => {
                self.long.lock().insert(index, id.into());
                LONG
            }
        };
        block.lengths[place].store(length, Ordering::Relaxed);
    }

    fn clear(&self, index: u32) {
        let Some(block) = self.short.get(index / BLOCK as u32) else { return };
        if block.lengths[index as usize % BLOCK].swap(NO_ID, Ordering::Relaxed) == LONG {
            self.long.lock().remove(&index);
        }
    }
}

/// An id in the form in which it is looked up.
enum Id<'i> {
    /// The form in which it is stored: its length plus one, and its octets, padded with zeros, little-endian.
    Short {
        length: u8,
        words: [u64; 2],
    },
    Long(&'i [u8]),
}

impl<'i> Id<'i> {
    #[inline]
    fn of(id: &'i [u8]) -> Id<'i> {
        let words = match id.len() {
            // The two words overlap in equal octets.
            9..=SHORT => match (id.first_chunk(), id.last_chunk()) {
                (Some(first), Some(last)) => {
                    [u64::from_le_bytes(*first), u64::from_le_bytes(*last) >> (8 * (SHORT - id.len()))]
                }
                _ => return Id::Long(id),
            },
            4..=8 => match (id.first_chunk(), id.last_chunk()) {
                (Some(first), Some(last)) => {
                    let last = u64::from(u32::from_le_bytes(*last)) << (8 * (id.len() - 4));
                    [u64::from(u32::from_le_bytes(*first)) | last, 0]
                }
                _ => return Id::Long(id),
            },
            0..=3 => [id.iter().rev().fold(0, |word, octet| word << 8 | u64::from(*octet)), 0],
            _ => return Id::Long(id),
        };
        Id::Short { length: id.len() as u8 + 1, words }
    }
}

/// Hashes ids in a way that an attacker cannot foresee: clients may choose ids where servants are made on
/// demand.
struct IdHasher {
    /// For short ids, by multiplication and shift (Dietzfelbinger). Two different ids have the same hash for
    /// one in 2^64 choices of these numbers.
    factors: Factors,
    long: HashKeys,
}

/// Random numbers.
struct Factors([u128; 4]);

impl IdHasher {
    fn new(randomness: &Randomness) -> IdHasher {
        let draw = || u128::from(randomness.draw());
        IdHasher { factors: Factors([(); 4].map(|()| draw() << 64 | draw())), long: randomness.hash_keys() }
    }

    #[inline]
    fn hash(&self, id: &Id<'_>) -> u64 {
        match id {
            Id::Short { length, words: [first, second] } => {
                let Factors([begin, of_length, of_first, of_second]) = &self.factors;
                let sum = begin
                    .wrapping_add(of_length.wrapping_mul(u128::from(*length)))
                    .wrapping_add(of_first.wrapping_mul(u128::from(*first)))
                    .wrapping_add(of_second.wrapping_mul(u128::from(*second)));
                (sum >> 64) as u64
            }
            Id::Long(id) => self.long.hash_one(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn id(number: u8) -> ObjectId {
        // Ids of all lengths around the longest short one, which differ only in their length and number.
        ObjectId::from(vec![number; usize::from(number)])
    }

    proptest! {
        #[test]
        fn ids_are_found_by_octets_and_by_slot(
            steps in prop::collection::vec((any::<bool>(), 0..40_u8, 0..60_u32), 0..300),
            is_linear in any::<bool>(),
        ) {
            let ids = Ids::new(if is_linear { ObjectLookup::Linear } else { ObjectLookup::Hash }, &Randomness::new(None));
            let mut known: HashMap<u32, u8> = HashMap::new();
            for (is_put, number, slot) in steps {
                let is_new = !known.contains_key(&slot) && !known.values().any(|other| *other == number);
                if is_put && is_new {
                    ids.insert(&id(number), slot);
                    known.insert(slot, number);
                } else if !is_put && let Some(number) = known.remove(&slot) {
                    ids.remove(&id(number), slot);
                }
                for slot in 0..60 {
                    prop_assert_eq!(ids.in_slot(slot), known.get(&slot).map(|number| id(*number)));
                }
                for number in 0..40 {
                    let slot = known.iter().find(|(_, other)| **other == number).map(|(slot, _)| *slot);
                    prop_assert_eq!(ids.find(id(number).as_bytes(), |found| found), slot);
                }
            }
            prop_assert_eq!(ids.by_slot.long.lock().len(), known.values().filter(|n| **n > 16).count());
        }
    }

    #[test]
    fn an_id_takes_seventeen_bytes() {
        assert_eq!(size_of::<Block>(), 17 * BLOCK);
    }
}
