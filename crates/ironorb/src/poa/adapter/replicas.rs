//! The adapters by slot and by path, for requests. Each group of threads has a copy of the table of all
//! adapters, so that threads that serve at the same time write to no common cache line. A change takes all
//! copies in turn, since adapters come and go rarely.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::base::locks::{ReadGuard, SharedTable};
use crate::poa::key::{Hint, Slot};
use crate::poa::{PoaInner, STRIPES, Stripe};

/// The copies of the table, one for each [`Stripe`].
#[derive(Default)]
pub(super) struct AdapterReplicas([AdapterReplica; STRIPES]);

#[derive(Default)]
#[repr(align(64))]
struct AdapterReplica(SharedTable<Adapters>);

/// The content of one copy.
#[derive(Default)]
pub(super) struct Adapters {
    slots: Vec<Option<(u32, Arc<PoaInner>)>>,
    by_path: HashMap<Arc<[u8]>, Arc<PoaInner>>,
    /// For each hint, one of the adapters that have it.
    by_hint: HashTable<Arc<PoaInner>>,
}

impl AdapterReplicas {
    /// The copy of this thread's group.
    #[inline]
    pub(super) fn read(&self) -> ReadGuard<'_, Adapters> {
        self.0[Stripe::of_this_thread().index()].0.read()
    }

    /// Sets the adapter of a slot, in all copies.
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

    /// Sets the adapter of a path, in all copies.
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
                adapters.record_hint(poa);
            }
            before
        });
    }

    /// Changes all copies. A replaced adapter is dropped after the lock is released.
    fn for_each(&self, change: impl Fn(&mut Adapters) -> Option<Arc<PoaInner>>) {
        for copy in &self.0 {
            let before = change(&mut copy.0.write());
            drop(before);
        }
    }
}

impl Adapters {
    /// The adapter in a slot, if the slot still has this generation.
    #[inline]
    pub(super) fn in_slot(&self, slot: Slot) -> Option<&Arc<PoaInner>> {
        match self.slots.get(slot.index as usize) {
            Some(Some((generation, found))) if *generation == slot.generation => Some(found),
            _ => None,
        }
    }

    /// The visible adapter at a path, found by the hint in the keys of its objects.
    #[inline]
    pub(super) fn at(&self, hint: Hint, path: &[u8]) -> Option<&Arc<PoaInner>> {
        match self.by_hint.find(hint.hash(), |poa| poa.hint() == hint) {
            Some(found) if found.path() == path => Some(found),
            _ => self.at_path(path),
        }
    }

    /// The visible adapter at a path.
    #[inline]
    pub(super) fn at_path(&self, path: &[u8]) -> Option<&Arc<PoaInner>> {
        self.by_path.get(path)
    }

    /// Records an adapter under its hint. Adapters with equal hints are rare, unless a peer seeks them. The
    /// second one is found by its path.
    fn record_hint(&mut self, poa: &Arc<PoaInner>) {
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
