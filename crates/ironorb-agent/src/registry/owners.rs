//! Owners, and when their leases end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use super::entry::OwnerKey;
use super::error::RegistryError;

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) token: u128,
    pub(super) lease: Duration,
    pub(super) ends: Duration,
    pub(super) renewals: u64,
    /// The requests that its process had not answered at the last renewal, if it has said so.
    pub(super) requests: Option<u32>,
    /// The names that it has entries under.
    pub(super) names: BTreeSet<Arc<str>>,
}

/// An owner, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerSeen {
    /// Its number.
    pub id: u64,
    /// How long its lease lasts from each renewal on.
    pub lease: Duration,
    /// How long it still lasts.
    pub left: Duration,
    /// How often it has been renewed.
    pub renewals: u64,
    /// The requests that its process had not answered at the last renewal, if it has said so.
    pub requests: Option<u32>,
    /// How many names it has entries under.
    pub names_count: usize,
    /// The first of them, in their order, and [`NAMES_MAX`](Self::NAMES_MAX) at most.
    pub names: Vec<Arc<str>>,
}

impl OwnerSeen {
    /// How many of an owner's names are shown.
    pub const NAMES_MAX: usize = 4;
}

/// All owners. A renewal writes one number: the queue of ends has one item an owner, and a look at an item that is due
/// moves it to the end that has been renewed meanwhile.
#[derive(Debug, Default)]
pub(super) struct Owners {
    by_id: HashMap<u64, Owner>,
    ends: BinaryHeap<Reverse<(Duration, u64)>>,
}

impl Owners {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn insert(&mut self, id: u64, token: u128, lease: Duration, now: Duration) {
        let ends = now + lease;
        let owner = Owner { token, lease, ends, renewals: 0, requests: None, names: BTreeSet::new() };
        self.by_id.insert(id, owner);
        self.ends.push(Reverse((ends, id)));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Owner)> {
        self.by_id.iter().map(|(id, owner)| (*id, owner))
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Owner> {
        self.by_id.get_mut(&id)
    }

    /// The owner, if the token is its own and its lease has not ended. A lease that has ended has ended, even if nothing
    /// has taken the owner away yet.
    pub(super) fn check(&mut self, key: OwnerKey, now: Duration) -> Result<&mut Owner, RegistryError> {
        match self.by_id.get_mut(&key.id) {
            Some(owner) if are_equal(owner.token, key.token) && now < owner.ends => Ok(owner),
            _ => Err(RegistryError::UnknownOwner),
        }
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Owner> {
        self.by_id.remove(&id)
    }

    /// An owner whose lease has ended. Items of owners that have renewed are moved before they are due, so that nobody has to
    /// wake up for each of them.
    pub(super) fn take_ended(&mut self, now: Duration) -> Option<(u64, Owner)> {
        loop {
            let Reverse((due, id)) = *self.ends.peek()?;
            if due > now + AHEAD {
                return None;
            }
            match self.by_id.get(&id).map(|owner| owner.ends) {
                Some(ends) if ends > now && ends == due => return None,
                Some(ends) if ends > now => {
                    self.ends.pop();
                    self.ends.push(Reverse((ends, id)));
                }
                Some(_) => {
                    self.ends.pop();
                    return self.by_id.remove(&id).map(|owner| (id, owner));
                }
                None => drop(self.ends.pop()),
            }
        }
    }

    /// A time before which no lease ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.ends.peek().map(|Reverse((due, _))| *due)
    }

    pub(super) fn prolong(&mut self, by: Duration) {
        for owner in self.by_id.values_mut() {
            owner.ends += by;
        }
    }
}

/// Compares secrets in a time that does not depend on where they differ.
fn are_equal(a: u128, b: u128) -> bool {
    let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
    let difference = a.iter().zip(&b).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    black_box(difference) == 0
}

/// How long before they are due items are moved.
const AHEAD: Duration = Duration::from_millis(500);
