//! The adapters that requests are for, by slot and by path: copies of what the table of all adapters has, one for each of
//! some groups of threads, so that threads that serve at the same time write to no common place. Changing them takes all
//! copies in turn; adapters come and go rarely.

use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use hashbrown::HashTable;

use crate::poa::key::{Hint, Slot};
use crate::poa::{PoaInner, STRIPES, Stripe};
use crate::sync::{read, write};

/// All copies.
#[derive(Default)]
pub(super) struct AdapterReplicas([AdapterReplica; STRIPES]);

#[derive(Default)]
#[repr(align(64))]
struct AdapterReplica(RwLock<Adapters>);

/// One copy.
#[derive(Default)]
pub(super) struct Adapters {
    slots: Vec<Option<(u32, Arc<PoaInner>)>>,
    by_path: HashMap<Arc<[u8]>, Arc<PoaInner>>,
    /// Of these, one for each hint.
    by_hint: HashTable<Arc<PoaInner>>,
}

impl AdapterReplicas {
    /// The copy of this thread's group.
    #[inline]
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Adapters> {
        read(&self.0[Stripe::of_this_thread().index()].0)
    }

    /// What a slot leads to from now on.
    pub(super) fn set_slot(&self, slot: Slot, poa: Option<&Arc<PoaInner>>) {
        self.for_each(|adapters| {
            let index = slot.index as usize;
            if adapters.slots.len() <= index {
                adapters.slots.resize(index + 1, None);
            }
            std::mem::replace(&mut adapters.slots[index], poa.map(|poa| (slot.generation, poa.clone())))
                .map(|(_, before)| before)
        });
    }

    /// What a path leads to from now on.
    pub(super) fn set_path(&self, path: &[u8], poa: Option<&Arc<PoaInner>>) {
        let shared: Arc<[u8]> = path.into();
        self.for_each(|adapters| {
            let before = match poa {
                Some(poa) => adapters.by_path.insert(shared.clone(), poa.clone()),
                None => adapters.by_path.remove(path),
            };
            if let Some(before) = &before {
                adapters.forget_hint(before);
            }
            if let Some(poa) = poa {
                adapters.keep_hint(poa);
            }
            before
        });
    }

    /// What is replaced is dropped after the lock.
    fn for_each(&self, change: impl Fn(&mut Adapters) -> Option<Arc<PoaInner>>) {
        for copy in &self.0 {
            let before = change(&mut write(&copy.0));
            drop(before);
        }
    }
}

impl Adapters {
    /// The adapter in a slot, if it is still the one that the slot was given out for.
    #[inline]
    pub(super) fn in_slot(&self, slot: Slot) -> Option<&Arc<PoaInner>> {
        match self.slots.get(slot.index as usize) {
            Some(Some((generation, found))) if *generation == slot.generation => Some(found),
            _ => None,
        }
    }

    /// The adapter at a path that everybody may see, by the hint that keys of its objects have.
    #[inline]
    pub(super) fn at(&self, hint: Hint, path: &[u8]) -> Option<&Arc<PoaInner>> {
        match self.by_hint.find(hint.hash(), |poa| poa.hint() == hint) {
            Some(found) if found.path() == path => Some(found),
            _ => self.at_path(path),
        }
    }

    /// The same without a hint.
    #[inline]
    pub(super) fn at_path(&self, path: &[u8]) -> Option<&Arc<PoaInner>> {
        self.by_path.get(path)
    }

    /// Adapters whose paths make the same hint are rare, unless somebody seeks them: they are found by their paths.
    fn keep_hint(&mut self, poa: &Arc<PoaInner>) {
        let hint = poa.hint();
        if self.by_hint.find(hint.hash(), |other| other.hint() == hint).is_none() {
            self.by_hint.insert_unique(hint.hash(), poa.clone(), |poa| poa.hint().hash());
        }
    }

    fn forget_hint(&mut self, poa: &Arc<PoaInner>) {
        if let Ok(found) = self.by_hint.find_entry(poa.hint().hash(), |other| Arc::ptr_eq(other, poa)) {
            found.remove();
        }
    }
}
