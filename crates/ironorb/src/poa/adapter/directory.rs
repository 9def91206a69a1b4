//! The adapters of an ORB: by slot, by hint and by path for requests, which read them without a lock, and those in the
//! making behind a lock. Calls no application code.

use std::any::Any;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use hashbrown::HashTable;

use super::ROOT_PATH;
use crate::base::gate::Gate;
use crate::base::locks::{PARTS, Snapshot, SnapshotMap};
use crate::poa::PoaInner;
use crate::poa::key::{self, Hint, Slot};

/// What requests read of the adapters. Only the thread that holds the lock of the [`Table`] changes it. A change copies a
/// part of what it changes, and adapters come and go rarely.
#[derive(Default)]
pub(super) struct Directory {
    /// Adapters by the indices of their slots: that of index `i` is in part `i % PARTS`, at `i / PARTS`.
    slots: [Snapshot<Vec<SlotEntry>>; PARTS],
    /// For each hint, one of the adapters that have it.
    by_hint: [Snapshot<HashTable<Arc<PoaInner>>>; PARTS],
    by_path: SnapshotMap<Arc<[u8]>, Arc<PoaInner>>,
    /// Keys of the application's choice, such as `NameService`, and the keys that they stand for.
    pub(super) aliases: SnapshotMap<Vec<u8>, Vec<u8>>,
    /// The adapter for keys that no adapter here has made.
    pub(super) default_adapter: Snapshot<Arc<PoaInner>>,
}

/// The generation of a slot, and its adapter.
type SlotEntry = (u32, Option<Arc<PoaInner>>);

/// What a change of the directory has replaced. It may hold adapters, and these servants: it is dropped while no lock is
/// held.
pub(super) type Replaced = Vec<Arc<dyn Any + Send + Sync>>;

impl Directory {
    /// Calls `look` with the adapter in a slot, if the slot still has this generation.
    #[inline]
    pub(super) fn in_slot<R>(&self, slot: Slot, look: impl FnOnce(Option<&Arc<PoaInner>>) -> R) -> R {
        let index = slot.index as usize;
        self.slots[index % PARTS].with(|part| {
            look(match part.and_then(|part| part.get(index / PARTS)) {
                Some((generation, Some(found))) if *generation == slot.generation => Some(found),
                _ => None,
            })
        })
    }

    /// The adapter at a path, if it is made. Its keys have this hint.
    #[inline]
    pub(super) fn at<R>(&self, hint: Hint, path: &[u8], look: impl FnOnce(Option<&Arc<PoaInner>>) -> R) -> R {
        self.part_of(hint).with(|part| {
            match part.and_then(|part| part.find(hint.hash(), |poa| poa.hint() == hint)) {
                Some(found) if found.path() == path => look(Some(found)),
                _ => self.by_path.with(path, look),
            }
        })
    }

    /// The adapter at a path, if it is made.
    pub(super) fn at_path(&self, path: &[u8]) -> Option<Arc<PoaInner>> {
        self.by_path.get(path)
    }

    /// The next generation of a slot.
    pub(super) fn generation(&self, index: usize) -> u32 {
        self.slots[index % PARTS].with(|part| {
            part.and_then(|part| part.get(index / PARTS)).map_or(0, |(generation, _)| *generation)
        })
    }

    /// Puts an adapter into its slot.
    pub(super) fn fill(&self, slot: Slot, poa: &Arc<PoaInner>, replaced: &mut Replaced) {
        self.set_slot(slot.index, (slot.generation, Some(poa.clone())), replaced);
    }

    /// Frees a slot, and returns whether it had this generation.
    pub(super) fn vacate(&self, slot: Slot, replaced: &mut Replaced) -> bool {
        let is_there = self.in_slot(slot, |found| found.is_some());
        if is_there {
            self.set_slot(slot.index, (slot.generation.wrapping_add(1), None), replaced);
        }
        is_there
    }

    fn set_slot(&self, index: u32, entry: SlotEntry, replaced: &mut Replaced) {
        let place = index as usize / PARTS;
        change(&self.slots[index as usize % PARTS], replaced, |slots: &mut Vec<SlotEntry>| {
            if slots.len() <= place {
                slots.resize(place + 1, (0, None));
            }
            slots[place] = entry;
        });
    }

    /// Makes an adapter visible at its path. Adapters with equal hints are rare, unless a peer seeks them. The second one is
    /// found by its path.
    pub(super) fn publish(&self, poa: &Arc<PoaInner>, replaced: &mut Replaced) {
        keep(self.by_path.insert(poa.path().into(), poa.clone()), replaced);
        let hint = poa.hint();
        change(self.part_of(hint), replaced, |adapters: &mut HashTable<Arc<PoaInner>>| {
            if adapters.find(hint.hash(), |other| other.hint() == hint).is_none() {
                adapters.insert_unique(hint.hash(), poa.clone(), |poa| poa.hint().hash());
            }
        });
    }

    /// Makes the adapter at a path invisible, if there is one.
    pub(super) fn withdraw(&self, path: &[u8], replaced: &mut Replaced) {
        let Some(poa) = self.by_path.remove(path.into()) else { return };
        let hint = poa.hint();
        change(self.part_of(hint), replaced, |adapters: &mut HashTable<Arc<PoaInner>>| {
            if let Ok(found) = adapters.find_entry(hint.hash(), |other| Arc::ptr_eq(other, &poa)) {
                found.remove();
            }
        });
        replaced.push(poa);
    }

    #[inline]
    fn part_of(&self, hint: Hint) -> &Snapshot<HashTable<Arc<PoaInner>>> {
        // Bits that the table of a part does not use.
        &self.by_hint[(hint.hash() >> 40) as usize % PARTS]
    }
}

/// Changes a copy of a part and puts it in its place.
fn change<T: Clone + Default + Send + Sync + 'static>(
    part: &Snapshot<T>,
    replaced: &mut Replaced,
    edit: impl FnOnce(&mut T),
) {
    let next = |before: Option<&Arc<T>>| {
        let mut next = before.map(|before| T::clone(before)).unwrap_or_default();
        edit(&mut next);
        Ok::<_, Infallible>(Some(next))
    };
    keep(part.change(next).ok().flatten(), replaced);
}

fn keep<T: Send + Sync + 'static>(before: Option<Arc<T>>, replaced: &mut Replaced) {
    replaced.extend(before.map(|before| -> Arc<dyn Any + Send + Sync> { before }));
}

/// The adapters in the making, and what gives out slots.
#[derive(Default)]
pub(super) struct Table {
    /// The number of slots that were ever given out.
    slots: usize,
    /// Slots without an adapter.
    free: Vec<usize>,
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
        let slot = Slot { index: index as u32, generation: directory.generation(index) };
        let poa = make(slot, self.next_instance);
        directory.fill(slot, &poa, replaced);
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
        self.free.push(slot.index as usize);
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
