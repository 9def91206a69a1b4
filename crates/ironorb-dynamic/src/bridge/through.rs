//! References that have been passed on and lead through the bridge: a bounded table from keys of our own to what they
//! stand for.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ironorb::giop::ior::Ior;

use super::target::Target;

/// What keys of our own stand for.
pub(super) struct Through {
    max: usize,
    /// New in every process, so that no client can make up a key.
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

/// Of all our keys.
const PREFIX: &[u8] = b"IObridge";

impl Through {
    pub(super) fn new(max: usize) -> Through {
        Through {
            max: max.max(1),
            hashers: [RandomState::new(), RandomState::new()],
            table: Mutex::default(),
        }
    }

    /// The key for a reference: always the same for the same, also after it has been forgotten.
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

    /// What a key of ours stands for.
    pub(super) fn ior(&self, key: &[u8]) -> Option<Ior> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.entries.get(key).map(|entry| entry.ior.clone())
    }

    /// This object as a target, which `make` makes the first time; it is called under a lock.
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
