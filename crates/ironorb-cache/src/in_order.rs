//! A set that knows the order in which its members came.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Every operation takes time in proportion to the logarithm of the number of members. Two sets are equal when they have the same
/// members in the same order, however they came to it.
#[derive(Debug, Clone)]
pub(crate) struct InOrder<K> {
    places: BTreeMap<K, u64>,
    members: BTreeMap<u64, K>,
    next: u64,
}

impl<K> Default for InOrder<K> {
    fn default() -> Self {
        InOrder { places: BTreeMap::new(), members: BTreeMap::new(), next: 0 }
    }
}

impl<K: PartialEq> PartialEq for InOrder<K> {
    fn eq(&self, other: &Self) -> bool {
        self.members.values().eq(other.members.values())
    }
}

impl<K: Eq> Eq for InOrder<K> {}

impl<K: Hash> Hash for InOrder<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.len().hash(state);
        self.members.values().for_each(|member| member.hash(state));
    }
}

impl<K: Ord + Clone> InOrder<K> {
    /// The member that came first.
    pub(crate) fn first(&self) -> Option<&K> {
        self.members.first_key_value().map(|(_, member)| member)
    }

    /// The members, the first that came first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.members.values()
    }

    /// Adds a member, or has it come anew.
    pub(crate) fn move_to_end(&mut self, member: &K) {
        let place = self.next;
        self.next += 1;
        if let Some(before) = self.places.insert(member.clone(), place) {
            self.members.remove(&before);
        }
        self.members.insert(place, member.clone());
    }

    pub(crate) fn remove(&mut self, member: &K) {
        if let Some(place) = self.places.remove(member) {
            self.members.remove(&place);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.members.clear();
    }
}
