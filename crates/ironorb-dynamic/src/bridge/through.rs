//! References that have been passed on and lead through the bridge: a bounded table from the bridge's own
//! keys to the original references.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ironorb::giop::ior::Ior;

use super::target::Target;

/// The original references, by the bridge's own keys.
pub(super) struct Through {
    max: usize,
    /// Random in every process, so that no client can guess a key.
    hashers: [RandomState; 2],
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<Vec<u8>, Entry>,
    in_order: VecDeque<Vec<u8>>,
}

struct Entry {
    ior: Ior,
    target: Option<Arc<Target>>,
}

/// The prefix of all the bridge's own keys.
const PREFIX: &[u8] = b"IObridge";

impl Through {
    pub(super) fn new(max: usize) -> Through {
        Through {
            max: max.max(1),
            hashers: [RandomState::new(), RandomState::new()],
            table: Mutex::default(),
        }
    }

    /// The key for a reference. Equal references always get the same key, also after the table has forgotten
    /// them.
    pub(super) fn key(&self, ior: &Ior) -> Vec<u8> {
        let mut key = PREFIX.to_vec();
        for hasher in &self.hashers {
            key.extend(hasher.hash_one(ior).to_be_bytes());
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.entries.contains_key(&key) {
            if table.in_order.len() >= self.max
                && let Some(oldest) = table.in_order.pop_front()
            {
                table.entries.remove(&oldest);
            }
            table.entries.insert(key.clone(), Entry { ior: ior.clone(), target: None });
            table.in_order.push_back(key.clone());
        }
        key
    }

    /// The original reference for a key of the bridge's own.
    pub(super) fn ior(&self, key: &[u8]) -> Option<Ior> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.entries.get(key).map(|entry| entry.ior.clone())
    }

    /// The target for a key. `make` creates it at first use, and is called with the table's lock held.
    pub(super) fn target(
        &self,
        key: &[u8],
        make: impl FnOnce(&Ior) -> Option<Arc<Target>>,
    ) -> Option<Arc<Target>> {
        if !key.starts_with(PREFIX) {
            return None;
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = table.entries.get_mut(key)?;
        if entry.target.is_none() {
            entry.target = make(&entry.ior);
        }
        entry.target.clone()
    }
}

pub(super) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
