//! The adapters of an ORB: by slot, by hint and by path for requests, and those in the making. Calls no application code.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashTable;

use super::ROOT_PATH;
use crate::base::gate::Gate;
use crate::base::locks::{PiLock, Snapshot, SnapshotMap};
use crate::poa::PoaInner;
use crate::poa::key::{self, Hint, Slot};

/// What requests read of the adapters. Only the thread that holds the lock of the [`Table`] changes it. Each way to an
/// adapter is either read without a lock, or behind a lock that lends priorities and is held for a few instructions.
#[derive(Default)]
pub(super) struct Directory {
    slots: [PiLock<Vec<SlotEntry>>; PARTS],
    /// For each hint, one of the adapters that have it.
    by_hint: [PiLock<HashTable<Arc<PoaInner>>>; PARTS],
    by_path: SnapshotMap<Arc<[u8]>, Arc<PoaInner>>,
    /// There is or was an adapter at a path.
    has_been_used: AtomicBool,
    /// Keys of the application's choice, such as `NameService`, and the keys that they stand for.
    pub(super) aliases: SnapshotMap<Vec<u8>, Vec<u8>>,
    /// The adapter for keys that no adapter here has made.
    pub(super) default_adapter: Snapshot<Arc<PoaInner>>,
}

/// The generation of a slot, and its adapter.
type SlotEntry = (u32, Option<Arc<PoaInner>>);

/// The parts in which slots and hints are looked up.
const PARTS: usize = 32;

/// What a change of the directory has replaced. It may hold adapters, and these servants: it is dropped while no lock is
/// held.
pub(super) type Replaced = Vec<Arc<dyn Any + Send + Sync>>;

impl Directory {
    /// The adapter in a slot, if the slot still has this generation.
    #[inline]
    pub(super) fn in_slot(&self, slot: Slot) -> Option<Arc<PoaInner>> {
        let (part, place) = place_of(slot.index);
        match self.slots[part].lock().get(place) {
            Some((generation, poa)) if *generation == slot.generation => poa.clone(),
            _ => None,
        }
    }

    /// The adapter at a path, if it is made. Its keys have this hint.
    #[inline]
    pub(super) fn at(&self, hint: Hint, path: &[u8]) -> Option<Arc<PoaInner>> {
        let found = self.part_of(hint).lock().find(hint.hash(), |poa| poa.hint() == hint).cloned();
        match found {
            Some(found) if found.path() == path => Some(found),
            _ => self.at_path(path),
        }
    }

    /// The adapter at a path, if it is made.
    pub(super) fn at_path(&self, path: &[u8]) -> Option<Arc<PoaInner>> {
        self.by_path.get(path)
    }

    /// Whether there is or was an adapter at any path. None is in the making before.
    #[inline]
    pub(super) fn has_been_used(&self) -> bool {
        self.has_been_used.load(Ordering::Acquire)
    }

    /// The generation of a slot.
    pub(super) fn generation(&self, index: u32) -> u32 {
        let (part, place) = place_of(index);
        self.slots[part].lock().get(place).map_or(0, |(generation, _)| *generation)
    }

    /// Puts an adapter into its slot.
    pub(super) fn fill(&self, slot: Slot, poa: &Arc<PoaInner>) {
        let (part, place) = place_of(slot.index);
        let mut slots = self.slots[part].lock();
        if slots.len() <= place {
            slots.resize(place + 1, (0, None));
        }
        slots[place] = (slot.generation, Some(poa.clone()));
    }

    /// Frees a slot. False if it had another generation.
    pub(super) fn vacate(&self, slot: Slot, replaced: &mut Replaced) -> bool {
        let (part, place) = place_of(slot.index);
        let mut slots = self.slots[part].lock();
        let found = slots.get_mut(place).filter(|(generation, _)| *generation == slot.generation);
        let before = found.and_then(|(generation, poa)| {
            let before = poa.take()?;
            *generation = generation.wrapping_add(1);
            Some(before)
        });
        drop(slots);
        let is_there = before.is_some();
        keep(before, replaced);
        is_there
    }

    /// Makes an adapter visible at its path. Adapters with equal hints are rare, unless a peer seeks them. The second one is
    /// found by its path.
    pub(super) fn publish(&self, poa: &Arc<PoaInner>, replaced: &mut Replaced) {
        self.has_been_used.store(true, Ordering::Release);
        keep(self.by_path.insert(poa.path().into(), poa.clone()), replaced);
        let hint = poa.hint();
        let mut adapters = self.part_of(hint).lock();
        if adapters.find(hint.hash(), |other| other.hint() == hint).is_none() {
            adapters.insert_unique(hint.hash(), poa.clone(), |poa| poa.hint().hash());
        }
    }

    /// Makes the adapter at a path invisible, if there is one.
    pub(super) fn withdraw(&self, path: &[u8], replaced: &mut Replaced) {
        let Some(poa) = self.by_path.remove(path.into()) else { return };
        let hint = poa.hint();
        let mut adapters = self.part_of(hint).lock();
        let found = adapters.find_entry(hint.hash(), |other| Arc::ptr_eq(other, &poa));
        let before = found.ok().map(|found| found.remove().0);
        drop(adapters);
        keep(before, replaced);
        replaced.push(poa);
    }

    #[inline]
    fn part_of(&self, hint: Hint) -> &PiLock<HashTable<Arc<PoaInner>>> {
        // Bits that the table of a part does not use.
        &self.by_hint[(hint.hash() >> 40) as usize % PARTS]
    }
}

/// The part of a slot, and its place there.
#[inline]
fn place_of(index: u32) -> (usize, usize) {
    (index as usize % PARTS, index as usize / PARTS)
}

fn keep<T: Send + Sync + 'static>(before: Option<Arc<T>>, replaced: &mut Replaced) {
    replaced.extend(before.map(|before| -> Arc<dyn Any + Send + Sync> { before }));
}

/// The adapters in the making, and what gives out slots.
#[derive(Default)]
pub(super) struct Table {
    /// The number of slots that were ever given out.
    slots: u32,
    /// Slots without an adapter.
    free: Vec<u32>,
    next_instance: u32,
    /// Paths at which adapter activators are making adapters, each with the gate that opens when it is done.
    in_the_making: BTreeMap<Vec<u8>, Arc<Gate>>,
    /// Adapters at and below these paths, which only the threads that make them may see yet.
    unfinished: BTreeMap<Vec<u8>, Arc<PoaInner>>,
}

/// The next step on the way to a path.
pub(super) enum Step {
    Found(Arc<PoaInner>),
    /// A different thread makes an adapter on the way.
    Wait(Arc<Gate>),
    /// The parent's adapter activator may make the next adapter, whose path ends at `end`.
    Ask {
        parent: Arc<PoaInner>,
        name: String,
        end: usize,
    },
    /// No adapter exists at the path, and none can be made.
    Nowhere,
}

impl Table {
    /// Adds an adapter, which `make` makes for a slot and an instance number; `None` when its path is taken.
    pub(super) fn add(
        &mut self,
        directory: &Directory,
        path: Vec<u8>,
        make: impl FnOnce(Slot, u32) -> Arc<PoaInner>,
        replaced: &mut Replaced,
    ) -> Option<Arc<PoaInner>> {
        if directory.at_path(&path).is_some() || self.unfinished.contains_key(&path) {
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.next_instance = self.next_instance.wrapping_add(1);
        let slot = Slot { index, generation: directory.generation(index) };
        let poa = make(slot, self.next_instance);
        directory.fill(slot, &poa);
        if self.in_the_making.keys().any(|making| path.starts_with(making)) {
            self.unfinished.insert(path, poa.clone());
        } else {
            directory.publish(&poa, replaced);
        }
        Some(poa)
    }

    /// Removes the adapter of a slot and a path.
    pub(super) fn remove(&mut self, directory: &Directory, slot: Slot, path: &[u8], replaced: &mut Replaced) {
        if !directory.vacate(slot, replaced) {
            return;
        }
        self.free.push(slot.index);
        directory.withdraw(path, replaced);
        keep(self.unfinished.remove(path), replaced);
        let is_it = |default: &Arc<PoaInner>| default.slot == slot;
        if directory.default_adapter.with(|default| default.is_some_and(is_it)) {
            keep(directory.default_adapter.set(None), replaced);
        }
    }

    /// The adapter at a path, if this thread may see it.
    pub(super) fn visible(&self, directory: &Directory, path: &[u8]) -> Option<Arc<PoaInner>> {
        directory.at_path(path).or_else(|| {
            let found = self.unfinished.get(path)?;
            let is_ours = |(making, gate): (&Vec<u8>, &Arc<Gate>)| path.starts_with(making) && gate.is_ours();
            self.in_the_making.iter().any(is_ours).then(|| found.clone())
        })
    }

    pub(super) fn next_step(&self, directory: &Directory, path: &[u8]) -> Step {
        if let Some(found) = self.visible(directory, path) {
            return Step::Found(found);
        }
        let Some(mut parent) = directory.at_path(ROOT_PATH) else { return Step::Nowhere };
        let mut at = 0;
        while let Some((name, end)) = key::name_at(path, at) {
            if let Some(child) = self.visible(directory, &path[..end]) {
                (parent, at) = (child, end);
                continue;
            }
            return match (self.in_the_making.get(&path[..end]), std::str::from_utf8(name)) {
                (Some(gate), _) if gate.is_ours() => Step::Nowhere,
                (Some(gate), _) => Step::Wait(gate.clone()),
                (None, Ok(name)) if parent.has_adapter_activator() => {
                    Step::Ask { parent, name: name.to_owned(), end }
                }
                (None, _) => Step::Nowhere,
            };
        }
        Step::Nowhere
    }

    /// Begins the making of the adapters at and below a path. False where another thread does that, or has done it.
    pub(super) fn begin(&mut self, directory: &Directory, path: &[u8], gate: &Arc<Gate>) -> bool {
        let is_needed = !self.in_the_making.contains_key(path) && directory.at_path(path).is_none();
        if is_needed {
            self.in_the_making.insert(path.to_vec(), gate.clone());
        }
        is_needed
    }

    /// Ends the making of the adapters at and below a path and makes them visible. Returns whether there is an adapter at
    /// the path.
    pub(super) fn finish(&mut self, directory: &Directory, path: &[u8], replaced: &mut Replaced) -> bool {
        self.in_the_making.remove(path);
        // Adapters below another path in the making stay invisible.
        let still: Vec<Vec<u8>> = self.in_the_making.keys().cloned().collect();
        let done: Vec<Vec<u8>> = self
            .unfinished
            .keys()
            .filter(|key| key.starts_with(path) && !still.iter().any(|making| key.starts_with(making)))
            .cloned()
            .collect();
        for path in done {
            if let Some(poa) = self.unfinished.remove(&path) {
                directory.publish(&poa, replaced);
            }
        }
        self.visible(directory, path).is_some()
    }
}
