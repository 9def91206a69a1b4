//! Who holds what: for each object the slots of the sessions that hold it, and for each session the order in which it came to hold
//! objects.
//!
//! A million objects that a thousand sessions hold are a billion pairs, and 256 MB for them are two bits each. So a pair is one
//! bit, in the set of its object, and a session has no list of what it holds.

use std::collections::VecDeque;
use std::hash::Hash;

use crate::index::{Index, PLACES_MAX, hash_of};
use crate::message::{Members, Position};

/// The place of a session in the sets of holders. Slots of sessions that have ended are given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionSlot(pub(crate) u32);

/// The place of an object that is held. Slots of objects that nobody holds any more are given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectSlot(u32);

/// The objects that are held, and by whom. Memory: some 70 bytes an object and its name, twice that where many have just come, and a
/// bit for each slot of a session where more than three hold it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Books<K> {
    index: Index,
    objects: Vec<Object<K>>,
    free: Vec<ObjectSlot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Object<K> {
    name: K,
    /// Empty where the slot is free.
    holders: Holders,
    /// The position of the last write, and how many have been counted, since the slot was given.
    written: Position,
    writes: u64,
    noted: Noted,
}

/// What each holder of an object has noted and not been told. Another write of no more changes nothing of what holders have noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Noted {
    /// None if a holder has noted nothing, or has been told.
    members: Members,
    is_news: bool,
}

impl<K> Object<K> {
    fn new(name: K) -> Object<K> {
        let (holders, written, noted) = (Holders::NONE, Position::START, Noted::default());
        Object { name, holders, written, writes: 0, noted }
    }
}

impl<K> Default for Books<K> {
    fn default() -> Self {
        Books { index: Index::default(), objects: Vec::new(), free: Vec::new() }
    }
}

impl<K> Books<K> {
    fn at(&mut self, slot: ObjectSlot) -> &mut Object<K> {
        &mut self.objects[slot.0 as usize]
    }

    /// The last write of an object that is held, and how many have been counted.
    pub(crate) fn written(&self, slot: ObjectSlot) -> (Position, u64) {
        let object = &self.objects[slot.0 as usize];
        (object.written, object.writes)
    }

    /// A holder of an object has come, or has been told of it, or has taken that: it has to note the next write.
    pub(crate) fn end_noted(&mut self, slot: ObjectSlot) {
        self.at(slot).noted = Noted::default();
    }

    /// Each holder has noted this now.
    pub(crate) fn note(&mut self, slot: ObjectSlot, members: Members, is_news: bool) {
        let noted = &mut self.at(slot).noted;
        *noted = Noted { members: noted.members.and(members), is_news: noted.is_news || is_news };
    }

    /// Counts a write. Says how many there are, and whether its holders have noted all that there is to note of it.
    #[inline]
    pub(crate) fn write(
        &mut self,
        slot: ObjectSlot,
        at: Position,
        members: Members,
        is_news: bool,
    ) -> (u64, bool) {
        let object = self.at(slot);
        object.written = at;
        object.writes += 1;
        let Noted { members: noted, is_news: is_noted_as_news } = object.noted;
        let is_noted =
            noted != Members::NONE && noted.and(members) == noted && (is_noted_as_news || !is_news);
        (object.writes, is_noted)
    }

    /// The holders of an object in a slot.
    pub(crate) fn holders_at(&self, slot: ObjectSlot) -> &Holders {
        &self.objects[slot.0 as usize].holders
    }
}

impl<K: Ord + Clone + Hash> Books<K> {
    /// The slot of an object. `None` if nobody holds it.
    #[inline]
    pub(crate) fn slot_of(&self, object: &K) -> Option<ObjectSlot> {
        let at = self.index.find(object, |at| self.objects[at].name == *object)?;
        Some(ObjectSlot(at as u32))
    }

    /// Who holds an object. `None` if nobody does.
    pub(crate) fn holders(&self, object: &K) -> Option<&Holders> {
        self.slot_of(object).map(|slot| self.holders_at(slot))
    }

    /// The object in a slot, if the session holds that.
    pub(crate) fn held_at(&self, at: ObjectSlot, by: SessionSlot) -> Option<&K> {
        let object = self.objects.get(at.0 as usize)?;
        object.holders.has(by).then_some(&object.name)
    }

    /// Has a session hold an object. `None` if it held it before.
    pub(crate) fn add(&mut self, object: &K, holder: SessionSlot) -> Option<ObjectSlot> {
        let slot = match self.slot_of(object) {
            Some(slot) => slot,
            None => self.take_slot(object)?,
        };
        self.at(slot).holders.insert(holder).then(|| {
            self.end_noted(slot);
            slot
        })
    }

    /// A slot for a new object. `None` if 2³² - 1 objects are held.
    fn take_slot(&mut self, object: &K) -> Option<ObjectSlot> {
        let new = Object::new(object.clone());
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.at(slot) = new;
                slot
            }
            None if self.objects.len() < PLACES_MAX => {
                self.objects.push(new);
                ObjectSlot(self.objects.len() as u32 - 1)
            }
            None => return None,
        };
        let objects = &self.objects;
        self.index.add(slot.0 as usize, |at| hash_of(&objects[at].name));
        Some(slot)
    }

    /// Has a session hold an object no more. `None` if it did not.
    pub(crate) fn remove(&mut self, object: &K, holder: SessionSlot) -> Option<ObjectSlot> {
        let slot = self.slot_of(object)?;
        let holders = &mut self.at(slot).holders;
        let was_among = holders.remove(holder);
        if holders.is_empty() {
            self.free_slot(slot);
        }
        was_among.then_some(slot)
    }

    /// Has nobody hold an object any more, and says who did.
    pub(crate) fn release(&mut self, object: &K) -> Option<(ObjectSlot, Holders)> {
        let slot = self.slot_of(object)?;
        Some((slot, self.free_slot(slot)))
    }

    /// Frees the slot of an object that nobody holds any more, and says who did last.
    fn free_slot(&mut self, slot: ObjectSlot) -> Holders {
        let objects = &self.objects;
        self.index.remove(slot.0 as usize, |at| hash_of(&objects[at].name));
        self.free.push(slot);
        let object = self.at(slot);
        (object.written, object.writes, object.noted) = Default::default();
        std::mem::replace(&mut object.holders, Holders::NONE)
    }

    /// About how many bytes its tables take.
    pub(crate) fn bytes(&self) -> usize {
        let sets: usize = self.objects.iter().map(|object| object.holders.bytes()).sum();
        let objects = self.objects.capacity() * size_of::<Object<K>>();
        let free = self.free.capacity() * size_of::<ObjectSlot>();
        sets + objects + free + self.index.bytes()
    }
}

/// About how many bytes a tree takes. Its leaves have room for eleven entries, and half of that is used where they come in order.
pub(crate) fn bytes_of_tree<Entry>(entries: usize) -> usize {
    entries * size_of::<Entry>() * 2
}

/// A set of sessions, by their slots.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holders {
    /// The first so many of these, in order.
    Few { count: u8, slots: [SessionSlot; FEW] },
    /// A bit for each slot.
    Many(Box<[u64]>),
}

/// As many as take no more room than the pointer to a bitmap does.
const FEW: usize = 3;

impl Holders {
    const NONE: Holders = Holders::Few { count: 0, slots: [SessionSlot(0); FEW] };

    pub(crate) fn has(&self, slot: SessionSlot) -> bool {
        match self {
            Holders::Few { count, slots } => slots[..usize::from(*count)].contains(&slot),
            Holders::Many(words) => words.get(word_of(slot)).is_some_and(|word| word & bit_of(slot) != 0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Holders::Few { count, .. } => *count == 0,
            Holders::Many(words) => words.iter().all(|word| *word == 0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Holders::Few { count, .. } => (*count).into(),
            Holders::Many(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The slots in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SessionSlot> {
        let (few, many): (&[SessionSlot], &[u64]) = match self {
            Holders::Few { count, slots } => (&slots[..usize::from(*count)], &[]),
            Holders::Many(words) => (&[], words),
        };
        few.iter().copied().chain((0u32..).zip(many).flat_map(|(place, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(SessionSlot(64 * place + bit))
            })
        }))
    }

    /// False if it was there.
    fn insert(&mut self, slot: SessionSlot) -> bool {
        if self.has(slot) {
            return false;
        }
        match self {
            Holders::Few { count, slots } if usize::from(*count) < FEW => {
                slots[usize::from(*count)] = slot;
                *count += 1;
                slots[..usize::from(*count)].sort_unstable();
            }
            Holders::Few { slots, .. } => {
                let mut all = slots.to_vec();
                all.push(slot);
                *self = Holders::many(&all);
            }
            Holders::Many(words) => {
                if words.len() <= word_of(slot) {
                    let mut longer = vec![0; word_of(slot) + 1];
                    longer[..words.len()].copy_from_slice(words);
                    *words = longer.into_boxed_slice();
                }
                words[word_of(slot)] |= bit_of(slot);
            }
        }
        true
    }

    fn many(slots: &[SessionSlot]) -> Holders {
        let last = slots.iter().map(|slot| word_of(*slot)).max().unwrap_or_default();
        let mut words = vec![0; last + 1];
        slots.iter().for_each(|slot| words[word_of(*slot)] |= bit_of(*slot));
        Holders::Many(words.into_boxed_slice())
    }

    /// False if it was not there.
    fn remove(&mut self, slot: SessionSlot) -> bool {
        let was_there = self.has(slot);
        match self {
            _ if !was_there => {}
            Holders::Few { count, slots } => {
                let place = slots.iter().position(|other| *other == slot).unwrap_or_default();
                slots[place..usize::from(*count)].rotate_left(1);
                *count -= 1;
                slots[usize::from(*count)] = SessionSlot(0);
            }
            Holders::Many(words) => words[word_of(slot)] &= !bit_of(slot),
        }
        was_there
    }

    fn bytes(&self) -> usize {
        match self {
            Holders::Few { .. } => 0,
            Holders::Many(words) => size_of_val::<[u64]>(words),
        }
    }
}

const fn word_of(slot: SessionSlot) -> usize {
    slot.0 as usize / 64
}

const fn bit_of(slot: SessionSlot) -> u64 {
    1 << (slot.0 % 64)
}

/// How many objects a session holds, and in which order it came to hold them.
///
/// The order is kept as runs of slots that follow one another, which are few where a client fills objects in the order in which others
/// did. Beyond [`RUNS_MAX`] it is no longer kept: the objects go round in the order of their slots then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HeldOrder {
    count: usize,
    order: Order,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Order {
    /// Disjoint runs: the first slot of each, and how many there are.
    Runs(VecDeque<(u32, u32)>),
    Round(Round),
}

/// The slots in their order, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Round {
    /// Where the one begins that goes next.
    next: u32,
    /// How many are held of each [`BLOCK`] of slots, so that what a session does not hold is passed over quickly.
    blocks: Vec<u16>,
}

/// The most runs of a session: 8 KB.
pub(crate) const RUNS_MAX: usize = 1_024;

/// So many slots are looked at, one after another, where one of them is held.
const BLOCK: u32 = 1_024;

impl Round {
    fn of(runs: &VecDeque<(u32, u32)>) -> Round {
        let mut round = Round { next: runs.front().map_or(0, |(first, _)| *first), blocks: Vec::new() };
        runs.iter().flat_map(|(first, count)| *first..*first + *count).for_each(|slot| round.push(slot));
        round
    }

    fn push(&mut self, slot: u32) {
        let block = (slot / BLOCK) as usize;
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, 0);
        }
        self.blocks[block] += 1;
    }

    fn remove(&mut self, slot: u32) {
        self.blocks[(slot / BLOCK) as usize] -= 1;
    }

    /// The slots of blocks that have some, from one slot on to the end.
    fn from(&self, first: u32) -> impl Iterator<Item = u32> {
        let blocks = (0u32..).zip(&self.blocks).skip((first / BLOCK) as usize);
        let held = blocks.filter(|(_, count)| **count > 0);
        held.flat_map(|(block, _)| block * BLOCK..=block * BLOCK + (BLOCK - 1))
            .filter(move |slot| *slot >= first)
    }
}

impl Default for HeldOrder {
    fn default() -> Self {
        HeldOrder { count: 0, order: Order::Runs(VecDeque::new()) }
    }
}

impl HeldOrder {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// A session has come to hold an object.
    pub(crate) fn push(&mut self, ObjectSlot(slot): ObjectSlot) {
        self.count += 1;
        match &mut self.order {
            Order::Round(round) => round.push(slot),
            Order::Runs(runs) => {
                match runs.back_mut() {
                    Some((first, count)) if *first + *count == slot => *count += 1,
                    _ => runs.push_back((slot, 1)),
                }
                self.end_runs_beyond_limit();
            }
        }
    }

    /// A session has come to hold an object no more.
    pub(crate) fn remove(&mut self, ObjectSlot(slot): ObjectSlot) {
        self.count -= 1;
        let runs = match &mut self.order {
            Order::Round(round) => return round.remove(slot),
            Order::Runs(runs) => runs,
        };
        let is_in = |(first, count): &(u32, u32)| (*first..*first + *count).contains(&slot);
        let Some(place) = runs.iter().position(is_in) else { return };
        let (first, count) = runs[place];
        let (before, after) = (slot - first, first + count - slot - 1);
        match (before, after) {
            (0, 0) => drop(runs.remove(place)),
            (0, after) => runs[place] = (slot + 1, after),
            (before, 0) => runs[place] = (first, before),
            (before, after) => {
                runs[place] = (first, before);
                runs.insert(place + 1, (slot + 1, after));
            }
        }
        self.end_runs_beyond_limit();
    }

    fn end_runs_beyond_limit(&mut self) {
        if let Order::Runs(runs) = &self.order
            && runs.len() > RUNS_MAX
        {
            self.order = Order::Round(Round::of(runs));
        }
    }

    /// The object that a session has held for the longest time, or whose turn it is; not the newest one. Where the order is not kept
    /// it takes time for each block of slots that there are, and for the slots of two or three blocks.
    pub(crate) fn first<K: Ord + Clone + Hash>(
        &mut self,
        of: SessionSlot,
        newest: ObjectSlot,
        books: &Books<K>,
    ) -> Option<K> {
        match &mut self.order {
            Order::Runs(runs) => books.held_at(ObjectSlot(runs.front()?.0), of).cloned(),
            Order::Round(round) => {
                let slots = round.from(round.next).chain(round.from(0)).map(ObjectSlot);
                let mut held = slots.filter(|slot| *slot != newest && books.held_at(*slot, of).is_some());
                let slot = held.next()?;
                drop(held);
                round.next = slot.0 + 1;
                books.held_at(slot, of).cloned()
            }
        }
    }

    /// All objects that a session holds.
    pub(crate) fn objects<K: Ord + Clone + Hash>(&self, of: SessionSlot, books: &Books<K>) -> Vec<K> {
        let held = |slot| books.held_at(ObjectSlot(slot), of).cloned();
        match &self.order {
            Order::Runs(runs) => {
                runs.iter().flat_map(|(first, count)| *first..*first + *count).filter_map(held).collect()
            }
            Order::Round(round) => round.from(0).filter_map(held).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match &self.order {
            Order::Runs(runs) => runs.capacity() * size_of::<(u32, u32)>(),
            Order::Round(round) => round.blocks.capacity() * size_of::<u16>(),
        }
    }
}
