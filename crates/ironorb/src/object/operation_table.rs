//! Maps the name of an operation to its position in the interface: by a hash table for which the generator
//! has found a seed, or, for comparison, by the methods of other ORBs.

use std::cell::Cell;
use std::collections::HashMap;
use std::ptr;
use std::sync::OnceLock;

use crate::base::config::OperationLookup;
use crate::base::probe::{self, Stage};

/// The operations of one interface, its own and the inherited ones, in a hash table.
///
/// `SLOTS` is a power of two. No two names share a slot, so one comparison decides: the generator finds a
/// seed that separates the names. With too many names for that, the names are divided into groups, and the
/// generator finds for each group an offset that moves its slots.
#[derive(Debug)]
pub struct OperationTable<const SLOTS: usize> {
    multiplier: u64,
    /// The offsets of the groups; empty without groups.
    moves: &'static [u16],
    names: &'static [&'static str],
    /// Positions in `names`; [`NO_OPERATION`] where a slot is empty.
    slots: [u16; SLOTS],
}

impl<const SLOTS: usize> OperationTable<SLOTS> {
    /// Makes a table in which each name has its position in `names`.
    ///
    /// # Panics
    ///
    /// At compile time when two names share a slot: generated code holds its tables in statics.
    pub const fn new(seed: u64, moves: &'static [u16], names: &'static [&'static str]) -> Self {
        assert!(SLOTS.is_power_of_two(), "the number of slots is a power of two");
        assert!(names.len() < NO_OPERATION as usize, "each name has a number");
        let multiplier = operation_multiplier(seed);
        let mut slots = [NO_OPERATION; SLOTS];
        let mut position = 0;
        while position < names.len() {
            let slot = operation_slot(names[position].as_bytes(), multiplier, moves, SLOTS);
            assert!(slots[slot] == NO_OPERATION, "each name has a slot of its own");
            slots[slot] = position as u16;
            position += 1;
        }
        OperationTable { multiplier, moves, names, slots }
    }

    /// The position of a name, or `None` when the interface has no such operation.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<u16> {
        let _probe = probe::enter(Stage::OperationLookup);
        let position = self.slots[operation_slot(name, self.multiplier, self.moves, SLOTS)];
        let known = self.names.get(usize::from(position))?;
        (known.as_bytes() == name).then_some(position)
    }
}

/// The result of the last lookup of an operation, for cached requests, which name the same operation again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// The address of the table; 0 when nothing was found.
    table: usize,
    position: u16,
}

impl<const SLOTS: usize> OperationTable<SLOTS> {
    /// Returns the position of a name, from an earlier lookup if there was one.
    #[inline(always)] // a step of every call
    pub(crate) fn find_again(&'static self, name: &[u8], found: &Cell<Found>) -> Option<u16> {
        let Found { table, position } = found.get();
        if table == ptr::from_ref(self).addr() {
            let _probe = probe::enter(Stage::OperationLookup);
            return Some(position);
        }
        let position = self.find(name)?;
        found.set(Found { table: ptr::from_ref(self).addr(), position });
        Some(position)
    }
}

/// The slot of a name in an [`OperationTable`]. `ironorb-build` computes the same slot to find seeds.
///
/// It folds the name in chunks of eight bytes, little-endian, the last one padded with zeros. The highest
/// bits, which every bit of the name reaches, select the slot. The highest bits of the lower half select the
/// group.
#[inline]
pub const fn operation_slot(name: &[u8], multiplier: u64, moves: &[u16], slots: usize) -> usize {
    let mut hash = name.len() as u64;
    let mut rest = name;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        hash = fold(hash, u64::from_le_bytes(*chunk), multiplier);
        rest = tail;
    }
    if !rest.is_empty() {
        let mut last = 0;
        let mut at = 0;
        while at < rest.len() {
            last |= (rest[at] as u64) << (8 * at);
            at += 1;
        }
        hash = fold(hash, last, multiplier);
    }
    // For powers of two this is one shift.
    let first = (((hash >> 32) * slots as u64) >> 32) as usize;
    if moves.is_empty() {
        return first;
    }
    let group = ((hash & u32::MAX as u64) * moves.len() as u64) >> 32;
    (first + moves[group as usize] as usize) % slots
}

/// The odd multiplier of a seed. It is mixed, so that seeds may be small.
pub const fn operation_multiplier(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ (mixed >> 32)) | 1
}

#[inline]
const fn fold(hash: u64, chunk: u64, multiplier: u64) -> u64 {
    let hash = (hash ^ chunk).wrapping_mul(multiplier);
    hash ^ (hash >> 29)
}

/// Finds operation names by the other lookup methods. Allocates when one is first used.
#[derive(Debug)]
pub struct OperationSearch {
    names: &'static [&'static str],
    /// Positions in `names`, in the order of the names.
    sorted: OnceLock<Box<[u16]>>,
    hashed: OnceLock<HashMap<&'static [u8], u16>>,
}

impl OperationSearch {
    /// Makes the search for the names of an [`OperationTable`].
    pub const fn new(names: &'static [&'static str]) -> Self {
        OperationSearch { names, sorted: OnceLock::new(), hashed: OnceLock::new() }
    }

    /// The position of a name, or `None` when the interface has no such operation. A lookup by perfect hash
    /// is done here by an ordinary hash.
    pub fn find(&self, lookup: OperationLookup, name: &[u8]) -> Option<u16> {
        let _probe = probe::enter(Stage::OperationLookup);
        match lookup {
            OperationLookup::Linear => {
                self.names.iter().position(|known| known.as_bytes() == name).map(|position| position as u16)
            }
            OperationLookup::Binary => {
                let sorted = self.sorted.get_or_init(|| self.sort());
                let found = sorted.binary_search_by_key(&name, |position| self.name_at(*position));
                found.ok().map(|place| sorted[place])
            }
            OperationLookup::Hash | OperationLookup::PerfectHash => {
                self.hashed.get_or_init(|| self.hash()).get(name).copied()
            }
        }
    }

    fn name_at(&self, position: u16) -> &'static [u8] {
        self.names[usize::from(position)].as_bytes()
    }

    #[cold]
    fn sort(&self) -> Box<[u16]> {
        let mut positions: Box<[u16]> = (0..self.names.len() as u16).collect();
        positions.sort_unstable_by_key(|position| self.name_at(*position));
        positions
    }

    #[cold]
    fn hash(&self) -> HashMap<&'static [u8], u16> {
        (0..self.names.len() as u16).map(|position| (self.name_at(position), position)).collect()
    }
}

/// The mark of an empty slot.
const NO_OPERATION: u16 = u16::MAX;
