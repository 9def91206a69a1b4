//! Entries of other agents, as a store that agents share tells them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::entry::{Entry, Property};

/// Which entry of which agent. The store has one key for each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedKey {
    /// The name.
    pub name: Arc<str>,
    /// The life of the agent that holds it.
    pub agent: u64,
    /// The number of the owner at that agent.
    pub owner: u64,
    /// The stringified reference.
    pub reference: Box<str>,
    /// Whether the owner has the name for itself.
    pub is_exclusive: bool,
}

/// An entry in a store that agents share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEntry {
    /// Which one.
    pub key: SharedKey,
    /// The properties.
    pub properties: Box<[Property]>,
}

/// What a store tells of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is new, or has other properties.
    Put(SharedEntry),
    /// It is gone.
    Removed(SharedKey),
}

/// The owner of entries of other agents, as this agent's watchers see it. Its own owners begin at 1.
pub(super) const OTHERS: u64 = 0;

/// All entries of other agents. One server may stand under several agents; one of its entries is shown.
#[derive(Debug, Default)]
pub(super) struct Others {
    by_name: HashMap<Arc<str>, Vec<Other>>,
    count: usize,
}

#[derive(Debug)]
struct Other {
    agent: u64,
    owner: u64,
    entry: Arc<Entry>,
}

impl Other {
    fn is(&self, key: &SharedKey) -> bool {
        self.agent == key.agent
            && self.owner == key.owner
            && self.entry.is_exclusive == key.is_exclusive
            && self.entry.reference == key.reference
    }
}

impl Others {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How many entries of others a name has.
    pub(super) fn servers(&self, name: &str) -> usize {
        self.by_name.get(name).map_or(0, Vec::len)
    }

    pub(super) fn has(&self, key: &SharedKey) -> bool {
        self.by_name.get(&key.name).is_some_and(|others| others.iter().any(|other| other.is(key)))
    }

    pub(super) fn put(&mut self, SharedEntry { key, properties }: SharedEntry) {
        let others = self.by_name.entry(key.name.clone()).or_default();
        let known = others.iter().position(|other| other.is(&key));
        let SharedKey { agent, owner, reference, is_exclusive, .. } = key;
        let entry = Arc::new(Entry { reference, properties, owner: OTHERS, revision: 0, is_exclusive });
        match known {
            Some(at) => others[at].entry = entry,
            None => {
                others.push(Other { agent, owner, entry });
                self.count += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, key: &SharedKey) -> bool {
        let Some(others) = self.by_name.get_mut(&key.name) else { return false };
        let Some(at) = others.iter().position(|other| other.is(key)) else { return false };
        others.swap_remove(at);
        if others.is_empty() {
            self.by_name.remove(&key.name);
        }
        self.count -= 1;
        true
    }

    /// The entry of a server that is shown: an exclusive one first, and for all agents the same.
    pub(super) fn best(&self, name: &str, reference: &str) -> Option<&Arc<Entry>> {
        let others = self.by_name.get(name)?.iter().filter(|other| &*other.entry.reference == reference);
        others
            .min_by_key(|other| (!other.entry.is_exclusive, other.agent, other.owner))
            .map(|other| &other.entry)
    }

    /// Has the shown entry stand for equal ones of others, so that its texts are in memory once.
    pub(super) fn adopt(&mut self, name: &str, shown: &Arc<Entry>) {
        for other in self.by_name.get_mut(name).into_iter().flatten() {
            let entry = &mut other.entry;
            if entry.reference == shown.reference
                && entry.properties == shown.properties
                && entry.is_exclusive == shown.is_exclusive
            {
                *entry = shown.clone();
            }
        }
    }

    /// The keys that are not among these.
    pub(super) fn all_but(&self, keys: &std::collections::HashSet<&SharedKey>) -> Vec<SharedKey> {
        let all = self.by_name.iter().flat_map(|(name, others)| {
            others.iter().map(|Other { agent, owner, entry }| SharedKey {
                name: name.clone(),
                agent: *agent,
                owner: *owner,
                reference: entry.reference.clone(),
                is_exclusive: entry.is_exclusive,
            })
        });
        all.filter(|key| !keys.contains(key)).collect()
    }
}

/// The agent's own entries that the shared store does not know as they are. An entry that is not there any more is to be
/// removed from it.
#[derive(Debug, Default)]
pub(super) struct Unshared {
    keys: BTreeSet<SharedKey>,
}

impl Unshared {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
    }

    pub(super) fn add(&mut self, key: SharedKey) {
        self.keys.insert(key);
    }

    pub(super) fn remove(&mut self, key: &SharedKey) {
        self.keys.remove(key);
    }

    pub(super) fn take(&mut self, count_max: usize) -> Vec<SharedKey> {
        let mut taken = Vec::new();
        while taken.len() < count_max
            && let Some(key) = self.keys.pop_first()
        {
            taken.push(key);
        }
        taken
    }

    /// Takes those of a name.
    pub(super) fn take_of(&mut self, name: &Arc<str>, count_max: usize) -> Vec<SharedKey> {
        let first =
            SharedKey { name: name.clone(), agent: 0, owner: 0, reference: "".into(), is_exclusive: false };
        let of_name = self.keys.range(first..).take_while(|key| key.name == *name);
        let taken: Vec<_> = of_name.take(count_max).cloned().collect();
        taken.iter().for_each(|key| self.remove(key));
        taken
    }
}
