//! What the registry decides.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::changes::{Change, ChangeKind, Changes, Selection, TooOld};
use super::entry::{Entry, Offer, OwnerKey, Property};
use super::error::RegistryError;
use super::filter::Condition;
use super::limits::Limits;
use super::others::{OTHERS, Others, SharedEntry, SharedKey, Told, Unshared};
use super::owners::{Owner, OwnerSeen, Owners};
use super::sharing::Write;

/// Names, the servers behind them, and the leases of their owners. `now` is always the time since some fixed moment.
#[derive(Debug)]
pub struct Registry {
    limits: Limits,
    life: u64,
    names: HashMap<Arc<str>, Name>,
    /// The same names for lists. A search here would touch a dozen names, which are in no cache where there are many.
    order: BTreeSet<Arc<str>>,
    entries: usize,
    owners: Owners,
    next_owner: u64,
    changes: Changes,
    /// What a store has to learn; `None` without one.
    records: Option<Vec<Record>>,
    others: Others,
    /// Entries of others that were left out, because they are no entries or beyond a limit.
    others_ignored: u64,
    /// What a store that agents share has to learn; `None` without one.
    unshared: Option<Unshared>,
}

#[derive(Debug)]
struct Name {
    revision: u64,
    entries: Vec<Arc<Entry>>,
}

/// With what a registry begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start {
    /// Tells the registry's life from all others: revisions of two lives cannot be compared.
    pub life: u64,
    /// The revision before the first change. Larger than any of an earlier life on the same store.
    pub revision: u64,
    /// Whether [`Registry::take_records`] is to give what a store has to learn.
    pub has_store: bool,
    /// Whether the registry is to note what a store that agents share has to learn.
    pub is_shared: bool,
}

/// A change as a store learns it.
#[derive(Debug, Clone)]
pub enum Record {
    /// A new owner.
    Owner {
        /// What it proves itself with.
        key: OwnerKey,
        /// Its lease.
        lease: Duration,
    },
    /// An owner without entries is gone. Its entries went before.
    OwnerGone(u64),
    /// An entry is new or has changed.
    Put(Arc<str>, Arc<Entry>),
    /// An entry is gone.
    Gone(Arc<str>, Arc<Entry>),
}

/// What a store remembers.
#[derive(Debug, Default)]
pub struct Restored {
    /// Owners and their leases.
    pub owners: Vec<(OwnerKey, Duration)>,
    /// Entries and their names.
    pub entries: Vec<(String, Entry)>,
}

impl Registry {
    /// A registry without names.
    pub fn new(start: Start, limits: Limits) -> Self {
        Registry {
            life: start.life,
            names: HashMap::new(),
            order: BTreeSet::new(),
            entries: 0,
            owners: Owners::default(),
            next_owner: 1,
            changes: Changes::new(start.revision, limits.changes_max),
            records: start.has_store.then(Vec::new),
            others: Others::default(),
            others_ignored: 0,
            unshared: start.is_shared.then(Unshared::default),
            limits,
        }
    }

    /// A registry with what a store remembers. All leases begin anew. Entries of owners that the store does not know are
    /// left out.
    pub fn restore(start: Start, limits: Limits, restored: Restored, now: Duration) -> Self {
        let mut registry = Registry::new(start, limits);
        for (key, lease) in restored.owners {
            registry.owners.insert(key.id, key.token, lease, now);
            registry.next_owner = registry.next_owner.max(key.id + 1);
        }
        for (name, entry) in restored.entries {
            let name: Arc<str> = name.into();
            let Some(owner) = registry.owners.get_mut(entry.owner) else { continue };
            owner.names.insert(name.clone());
            registry.order.insert(name.clone());
            let place = registry.names.entry(name).or_insert(Name { revision: 0, entries: Vec::new() });
            place.revision = place.revision.max(entry.revision);
            place.entries.push(Arc::new(entry));
            registry.entries += 1;
        }
        registry
    }

    /// Tells this life from all others.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.changes.revision()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many names there are.
    pub fn names_count(&self) -> usize {
        self.names.len()
    }

    /// How many entries all names have.
    pub fn entries_count(&self) -> usize {
        self.entries
    }

    /// How many owners there are.
    pub fn owners_count(&self) -> usize {
        self.owners.len()
    }

    /// What a store has to learn since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// All that a store has to know to restore the registry.
    pub fn all_records(&self) -> Vec<Record> {
        let owners = self.owners.iter().map(|(id, owner)| Record::Owner {
            key: OwnerKey { id, token: owner.token },
            lease: owner.lease,
        });
        let entries = self.names.iter().flat_map(|(name, place)| {
            let own = place.entries.iter().filter(|entry| entry.owner != OTHERS);
            own.map(|entry| Record::Put(name.clone(), entry.clone()))
        });
        owners.chain(entries).collect()
    }

    /// A new owner, with a token that nobody can guess, and the lease that it gets.
    pub fn open(
        &mut self,
        token: u128,
        asked: Duration,
        now: Duration,
    ) -> Result<(OwnerKey, Duration), RegistryError> {
        at_most("owners", self.owners.len() + 1, self.limits.owners_max)?;
        let key = OwnerKey { id: self.next_owner, token };
        let lease = self.limits.lease(asked);
        self.next_owner += 1;
        self.owners.insert(key.id, token, lease, now);
        self.record(|| Record::Owner { key, lease });
        Ok((key, lease))
    }

    /// Renews the owner's lease, and with it all that it has registered. Returns the lease.
    pub fn renew(&mut self, key: OwnerKey, now: Duration) -> Result<Duration, RegistryError> {
        self.renew_loaded(key, None, now)
    }

    /// Renews the owner's lease, and notes how many requests its process has not answered.
    pub fn renew_loaded(
        &mut self,
        key: OwnerKey,
        requests: Option<u32>,
        now: Duration,
    ) -> Result<Duration, RegistryError> {
        let owner = self.owners.check(key, now)?;
        owner.ends = now + owner.lease;
        owner.renewals += 1;
        owner.requests = requests;
        Ok(owner.lease)
    }

    /// The owners with ids after this one, in their order; at most so many. Those whose leases have ended are left out.
    pub fn owners_after(&self, after: u64, count_max: usize, now: Duration) -> Vec<OwnerSeen> {
        let is_wanted = |(id, owner): &(u64, &Owner)| *id > after && now < owner.ends;
        let mut found: Vec<(u64, &Owner)> = self.owners.iter().filter(is_wanted).collect();
        if found.len() > count_max {
            found.select_nth_unstable_by_key(count_max, |(id, _)| *id);
            found.truncate(count_max);
        }
        found.sort_unstable_by_key(|(id, _)| *id);
        let seen = |(id, owner): (u64, &Owner)| OwnerSeen {
            id,
            lease: owner.lease,
            left: owner.ends.saturating_sub(now),
            renewals: owner.renewals,
            requests: owner.requests,
            names_count: owner.names.len(),
            names: owner.names.iter().take(OwnerSeen::NAMES_MAX).cloned().collect(),
        };
        found.into_iter().map(seen).collect()
    }

    /// Ends an owner and removes all its entries.
    pub fn close(&mut self, key: OwnerKey, now: Duration) -> Result<(), RegistryError> {
        self.owners.check(key, now)?;
        if let Some(owner) = self.owners.remove(key.id) {
            self.forget(key.id, owner.names);
        }
        Ok(())
    }

    /// Registers all or none. An entry of the same owner, name and reference is replaced, so a request may be repeated.
    /// Returns the revision after it.
    pub fn register(
        &mut self,
        key: OwnerKey,
        offers: Vec<Offer>,
        now: Duration,
    ) -> Result<u64, RegistryError> {
        self.owners.check(key, now)?;
        self.check_offers(key.id, &offers)?;
        for offer in offers {
            self.put(key.id, offer, false);
        }
        Ok(self.revision())
    }

    /// Registers the only server of a name, if the name's revision is the expected one: 0 if nothing is registered
    /// under it. Entries of the same owner are replaced; those of others are a reason to refuse, whatever is expected.
    pub fn register_exclusive(
        &mut self,
        key: OwnerKey,
        offer: Offer,
        expected: u64,
        now: Duration,
    ) -> Result<u64, RegistryError> {
        self.check_exclusive(key, &offer, expected, now)?;
        if let Some(place) = self.names.get(&*offer.name) {
            let others = place.entries.iter().filter(|entry| *entry.reference != *offer.reference);
            for reference in others.map(|entry| entry.reference.clone()).collect::<Vec<_>>() {
                self.take_entry(key.id, &offer.name, &reference);
            }
        }
        self.put(key.id, offer, true);
        Ok(self.revision())
    }

    /// Whether [`Registry::register_exclusive`] would take this. With the reference that an owner has registered exclusively
    /// at another agent it is the same owner.
    pub fn check_exclusive(
        &mut self,
        key: OwnerKey,
        offer: &Offer,
        expected: u64,
        now: Duration,
    ) -> Result<(), RegistryError> {
        self.owners.check(key, now)?;
        let taken = |revision| RegistryError::Taken { revision, name: offer.name.clone() };
        let Some(place) = self.names.get(&*offer.name) else {
            self.check_offers(key.id, std::slice::from_ref(offer))?;
            return if expected == 0 { Ok(()) } else { Err(taken(0)) };
        };
        let is_elsewhere = |entry: &Entry| {
            entry.owner == OTHERS && entry.is_exclusive && entry.reference.as_ref() == offer.reference
        };
        let is_own = place.entries.iter().all(|entry| entry.owner == key.id || is_elsewhere(entry));
        // The answer to the same request may have been lost.
        let is_repeated = match &*place.entries {
            [only] => only.is_exclusive && only.reference.as_ref() == offer.reference,
            _ => false,
        };
        if !is_own || !(is_repeated || place.revision == expected) {
            return Err(taken(place.revision));
        }
        if !is_repeated {
            self.check_offers(key.id, std::slice::from_ref(offer))?;
        }
        self.check_texts(&offer.name, &offer.reference, &offer.properties)
    }

    /// Whether the owner has registered exactly this exclusively.
    pub fn has_exclusive(&self, key: OwnerKey, offer: &Offer) -> bool {
        let is_it = |entry: &Arc<Entry>| {
            entry.owner == key.id
                && entry.is_exclusive
                && entry.reference.as_ref() == offer.reference
                && entry.properties.len() == offer.properties.len()
                && offer.properties.iter().all(|property| entry.properties.contains(property))
        };
        self.names.get(&*offer.name).is_some_and(|place| place.entries.iter().any(is_it))
    }

    /// Removes an entry of the owner. False if there was none.
    pub fn remove(
        &mut self,
        key: OwnerKey,
        name: &str,
        reference: &str,
        now: Duration,
    ) -> Result<bool, RegistryError> {
        self.owners.check(key, now)?;
        Ok(self.take_entry(key.id, name, reference))
    }

    /// The servers of a name that meet all conditions, and the name's revision; 0 if nothing is registered.
    pub fn resolve(&self, name: &str, filter: &[Condition]) -> (u64, impl Iterator<Item = &Arc<Entry>>) {
        let place = self.names.get(name);
        let entries = place.map(|place| &*place.entries).unwrap_or_default();
        let met = move |entry: &&Arc<Entry>| filter.iter().all(|condition| condition.is_met_by(entry));
        (place.map_or(0, |place| place.revision), entries.iter().filter(met))
    }

    /// Names with a prefix, in their order, after a name; at most so many.
    pub fn list<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        count_max: usize,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.order
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(move |name| name.starts_with(prefix))
            .take(count_max)
    }

    /// The selected changes after a revision, oldest first and at most so many, and the revision up to which they are
    /// complete.
    pub fn changes_since(
        &self,
        revision: u64,
        selection: &Selection,
        count_max: usize,
    ) -> Result<(Vec<Change>, u64), TooOld> {
        self.changes.since(revision, selection, count_max)
    }

    /// Removes the owners whose leases have ended, and all their entries. Returns how many owners.
    pub fn expire(&mut self, now: Duration) -> usize {
        let mut ended = 0;
        while let Some((id, owner)) = self.owners.take_ended(now) {
            self.forget(id, owner.names);
            ended += 1;
        }
        ended
    }

    /// A time before which no lease ends.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.owners.next_end()
    }

    /// Prolongs all leases: for so long the agent did not run, and could not hear a renewal.
    pub fn prolong(&mut self, by: Duration) {
        self.owners.prolong(by);
    }

    /// Takes what the shared store tells of an entry. Its own entries tell an agent nothing.
    pub fn tell(&mut self, told: Told) {
        let (name, reference) = match told {
            Told::Put(entry) if entry.key.agent != self.life => {
                let (name, reference) = (entry.key.name.clone(), entry.key.reference.clone());
                if !self.has_room_for(&entry) {
                    self.others_ignored += 1;
                    return;
                }
                self.others.put(entry);
                (name, reference)
            }
            Told::Removed(key) if self.others.remove(&key) => (key.name, key.reference),
            _ => return,
        };
        self.show(&name, &reference);
    }

    /// Takes all entries that the shared store has. Those that it has not are gone.
    pub fn tell_all(&mut self, all: Vec<SharedEntry>) {
        let gone = self.others.all_but(&all.iter().map(|entry| &entry.key).collect());
        gone.into_iter().for_each(|key| self.tell(Told::Removed(key)));
        self.others_ignored = 0;
        all.into_iter().for_each(|entry| self.tell(Told::Put(entry)));
    }

    /// How many entries other agents have.
    pub fn others_count(&self) -> usize {
        self.others.len()
    }

    /// How many entries of others were left out, because they are no entries or beyond a limit.
    pub fn others_ignored(&self) -> u64 {
        self.others_ignored
    }

    /// How many own entries the shared store does not know as they are.
    pub fn unshared_count(&self) -> usize {
        self.unshared.as_ref().map_or(0, Unshared::len)
    }

    /// Notes that the shared store knows none of the own entries.
    pub(super) fn unshare_all(&mut self) {
        let Some(mut unshared) = self.unshared.take() else { return };
        unshared.clear();
        for (name, place) in &self.names {
            for entry in place.entries.iter().filter(|entry| entry.owner != OTHERS) {
                unshared.add(shared_key(self.life, name, entry));
            }
        }
        self.unshared = Some(unshared);
    }

    /// Takes what the shared store has to learn, at most so much; of one name, or of all.
    pub(super) fn take_writes(&mut self, of: Option<&Arc<str>>, count_max: usize) -> Vec<Write> {
        let Some(unshared) = &mut self.unshared else { return Vec::new() };
        let keys = match of {
            Some(name) => unshared.take_of(name, count_max),
            None => unshared.take(count_max),
        };
        keys.into_iter().map(|key| self.write_of(key)).collect()
    }

    /// What the shared store has to learn of a key: what the entry is now.
    fn write_of(&self, key: SharedKey) -> Write {
        match self.own_entry(&key) {
            Some(entry) => Write::Put(SharedEntry { properties: entry.properties.clone(), key }),
            None => Write::Remove(key),
        }
    }

    fn own_entry(&self, key: &SharedKey) -> Option<&Arc<Entry>> {
        self.names.get(&key.name)?.entries.iter().find(|entry| {
            entry.owner == key.owner
                && entry.is_exclusive == key.is_exclusive
                && entry.reference == key.reference
        })
    }

    /// Notes whether the shared store knows an own entry as it is.
    pub(super) fn note_shared(&mut self, key: SharedKey, is_known: bool) {
        match &mut self.unshared {
            Some(unshared) if is_known => unshared.remove(&key),
            Some(unshared) => unshared.add(key),
            None => {}
        }
    }

    /// Ends the owner of an entry that the shared store refuses, if the entry is still there. Its process hears that it is
    /// unknown, registers anew, and learns which name is taken.
    pub(super) fn end_refused(&mut self, key: &SharedKey) -> bool {
        if self.own_entry(key).is_none() {
            return false;
        }
        match self.owners.remove(key.owner) {
            Some(owner) => {
                self.forget(key.owner, owner.names);
                true
            }
            None => false,
        }
    }

    /// Whether an entry of another agent is one, and within the limits.
    fn has_room_for(&self, SharedEntry { key, properties }: &SharedEntry) -> bool {
        let limits = &self.limits;
        self.check_texts(&key.name, &key.reference, properties).is_ok()
            && (self.others.has(key)
                || self.others.len() < limits.others_max
                    && self.others.servers(&key.name) < limits.servers_per_name_max
                    && (self.names.contains_key(&key.name) || self.names.len() < limits.names_max))
    }

    fn check_offers(&self, owner: u64, offers: &[Offer]) -> Result<(), RegistryError> {
        let limits = &self.limits;
        let mut new_names = HashSet::new();
        let mut new_entries: HashMap<&str, usize> = HashMap::new();
        for Offer { name, reference, properties } in offers {
            self.check_texts(name, reference, properties)?;
            let entries = match self.names.get(&**name) {
                Some(place) => {
                    if place.entries.iter().any(|entry| entry.is_exclusive && entry.owner != owner) {
                        return Err(RegistryError::Taken { name: name.clone(), revision: place.revision });
                    }
                    let is_known =
                        |entry: &Arc<Entry>| entry.owner == owner && *entry.reference == **reference;
                    place.entries.len() - usize::from(place.entries.iter().any(is_known))
                }
                None => {
                    new_names.insert(name);
                    0
                }
            };
            let new = new_entries.entry(name).or_default();
            *new += 1;
            at_most("servers of a name", entries + *new, limits.servers_per_name_max)?;
        }
        at_most("names", self.names.len() + new_names.len(), limits.names_max)
    }

    fn check_texts(&self, name: &str, reference: &str, properties: &[Property]) -> Result<(), RegistryError> {
        let limits = &self.limits;
        check_name(name, limits.name_bytes_max)?;
        at_most("properties", properties.len(), limits.properties_max)?;
        let described = properties.iter().map(|property| property.name.len() + property.value.len());
        at_most("bytes of an entry", reference.len() + described.sum::<usize>(), limits.entry_bytes_max)
    }

    fn put(&mut self, owner: u64, offer: Offer, is_exclusive: bool) {
        let revision = self.changes.revision() + 1;
        let mut properties: Box<[Property]> = offer.properties.into();
        properties.sort_unstable();
        let reference: Box<str> = offer.reference.into();
        let name: Arc<str> = match self.names.get_key_value(&*offer.name) {
            Some((name, _)) => name.clone(),
            None => {
                let name: Arc<str> = offer.name.into();
                self.order.insert(name.clone());
                name
            }
        };
        let place = self.names.entry(name.clone()).or_insert(Name { revision, entries: Vec::new() });
        let known = place.entries.iter_mut().find(|e| e.owner == owner && e.reference == reference);
        if known.as_ref().is_some_and(|e| e.properties == properties && e.is_exclusive == is_exclusive) {
            return;
        }
        let before = known.as_ref().map(|known| Arc::clone(known));
        let entry = Arc::new(Entry { reference, properties, owner, revision, is_exclusive });
        match known {
            Some(known) => *known = entry.clone(),
            None => {
                place.entries.reserve_exact(1);
                place.entries.push(entry.clone());
                self.entries += 1;
            }
        }
        place.revision = revision;
        if let Some(owner) = self.owners.get_mut(owner) {
            owner.names.insert(name.clone());
        }
        if owner == OTHERS {
            self.others.adopt(&name, &entry);
        } else {
            if let Some(before) = before {
                self.unshare(&name, &before);
            }
            self.unshare(&name, &entry);
            self.record(|| Record::Put(name.clone(), entry.clone()));
        }
        self.changes.push(Change {
            revision,
            name: name.clone(),
            kind: ChangeKind::Put,
            entry: entry.clone(),
        });
        if owner != OTHERS && self.others.len() > 0 {
            self.show(&name, &entry.reference);
        }
    }

    fn take_entry(&mut self, owner: u64, name: &str, reference: &str) -> bool {
        let Some((name, place)) = self.names.get_key_value(name) else { return false };
        let name = name.clone();
        let Some(at) = place.entries.iter().position(|e| e.owner == owner && &*e.reference == reference)
        else {
            return false;
        };
        self.take_at(&name, at);
        let has_more =
            self.names.get(&name).is_some_and(|place| place.entries.iter().any(|e| e.owner == owner));
        if !has_more && let Some(owner) = self.owners.get_mut(owner) {
            owner.names.remove(&name);
        }
        true
    }

    fn take_at(&mut self, name: &Arc<str>, at: usize) {
        let revision = self.changes.revision() + 1;
        let Some(place) = self.names.get_mut(name) else { return };
        let entry = place.entries.remove(at);
        place.revision = revision;
        if place.entries.is_empty() {
            self.names.remove(name);
            self.order.remove(name);
        }
        self.entries -= 1;
        if entry.owner != OTHERS {
            self.unshare(name, &entry);
            self.record(|| Record::Gone(name.clone(), entry.clone()));
        }
        self.changes.push(Change {
            revision,
            name: name.clone(),
            kind: ChangeKind::Removed,
            entry: entry.clone(),
        });
        if entry.owner != OTHERS && self.others.len() > 0 {
            self.show(name, &entry.reference);
        }
    }

    /// Shows the entry that others have of a server, unless an own owner has registered the same.
    fn show(&mut self, name: &Arc<str>, reference: &str) {
        let entries = self.names.get(name).map(|place| &*place.entries).unwrap_or_default();
        let mut of_server = entries.iter().filter(|entry| *entry.reference == *reference);
        let is_own = of_server.any(|entry| entry.owner != OTHERS);
        let best = self.others.best(name, reference).filter(|_| !is_own).cloned();
        match best {
            Some(best) => {
                let (name, reference) = (name.to_string(), reference.to_owned());
                let offer = Offer { name, reference, properties: best.properties.to_vec() };
                self.put(OTHERS, offer, best.is_exclusive);
            }
            None => {
                let at = entries.iter().position(|e| e.owner == OTHERS && *e.reference == *reference);
                if let Some(at) = at {
                    self.take_at(name, at);
                }
            }
        }
    }

    /// Notes that the shared store does not know an own entry as it is.
    fn unshare(&mut self, name: &Arc<str>, entry: &Entry) {
        if let Some(unshared) = &mut self.unshared {
            unshared.add(shared_key(self.life, name, entry));
        }
    }

    fn forget(&mut self, owner: u64, names: impl IntoIterator<Item = Arc<str>>) {
        for name in names {
            while let Some(at) = self
                .names
                .get(&name)
                .and_then(|place| place.entries.iter().position(|entry| entry.owner == owner))
            {
                self.take_at(&name, at);
            }
        }
        self.record(|| Record::OwnerGone(owner));
    }

    fn record(&mut self, record: impl FnOnce() -> Record) {
        if let Some(records) = &mut self.records {
            records.push(record());
        }
    }
}

pub(super) fn shared_key(agent: u64, name: &Arc<str>, entry: &Entry) -> SharedKey {
    SharedKey {
        name: name.clone(),
        agent,
        owner: entry.owner,
        reference: entry.reference.clone(),
        is_exclusive: entry.is_exclusive,
    }
}

fn check_name(name: &str, bytes_max: usize) -> Result<(), RegistryError> {
    let why = if name.len() > bytes_max {
        "it is too long"
    } else if name.split('/').any(str::is_empty) {
        "it has an empty component"
    } else if name.chars().any(char::is_control) {
        "it has a control character"
    } else {
        return Ok(());
    };
    Err(RegistryError::InvalidName { name: name.chars().take(64).collect(), why })
}

fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), RegistryError> {
    if count > max { Err(RegistryError::Limit { what, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn offer(name: &str, reference: &str) -> Offer {
        Offer { name: name.into(), reference: reference.into(), properties: Vec::new() }
    }

    fn with_property(mut offer: Offer, name: &str, value: &str) -> Offer {
        offer.properties.push(Property { name: name.into(), value: value.into() });
        offer
    }

    fn registry() -> Registry {
        Registry::new(Start::default(), Limits::default())
    }

    fn references(registry: &Registry, name: &str, filter: &[Condition]) -> Vec<String> {
        registry.resolve(name, filter).1.map(|entry| entry.reference.to_string()).collect()
    }

    #[test]
    fn a_name_has_the_servers_that_meet_the_filter() {
        let mut registry = registry();
        let (key, _) = registry.open(1, Duration::ZERO, NOW).unwrap();
        let offers = vec![
            with_property(offer("p", "a"), "zone", "east"),
            with_property(offer("p", "b"), "zone", "west"),
            offer("p", "c"),
        ];
        registry.register(key, offers, NOW).unwrap();
        let east = Condition::Equals("zone".into(), "east".into());
        let not_east = Condition::Differs("zone".into(), "east".into());
        let zoned = Condition::Exists("zone".into());
        assert_eq!(references(&registry, "p", std::slice::from_ref(&east)), ["a"]);
        assert_eq!(references(&registry, "p", std::slice::from_ref(&not_east)), ["b", "c"]);
        assert_eq!(references(&registry, "p", &[zoned, not_east]), ["b"]);
        assert_eq!(references(&registry, "p", &[]), ["a", "b", "c"]);
        assert_eq!(references(&registry, "q", &[]), [""; 0]);
    }

    #[test]
    fn owners_are_seen_in_pages_with_their_leases_and_loads() {
        let mut registry = registry();
        let second = Duration::from_secs(1);
        let keys: Vec<OwnerKey> = (0..5).map(|token| registry.open(token, second, NOW).unwrap().0).collect();
        registry.register(keys[1], (0..9).map(|n| offer(&n.to_string(), "a")).collect(), NOW).unwrap();
        let later = NOW + second * 3 / 4;
        for key in &keys[..3] {
            registry.renew_loaded(*key, Some(7), later).unwrap();
        }
        registry.renew(keys[0], later).unwrap();
        registry.renew_loaded(OwnerKey { token: 99, ..keys[3] }, Some(1), later).unwrap_err();
        let page = registry.owners_after(0, 2, later);
        let facts = |seen: &OwnerSeen| (seen.id, seen.left, seen.renewals, seen.requests, seen.names_count);
        assert_eq!(
            page.iter().map(facts).collect::<Vec<_>>(),
            [(keys[0].id, second, 2, None, 0), (keys[1].id, second, 1, Some(7), 9)]
        );
        assert_eq!(page[1].names.iter().map(|name| &**name).collect::<Vec<_>>(), ["0", "1", "2", "3"]);
        let rest = registry.owners_after(page[1].id, 10, later);
        assert_eq!(rest.iter().map(|seen| seen.requests).collect::<Vec<_>>(), [Some(7), None, None]);
        assert_eq!((rest[1].left, rest[1].renewals), (second / 4, 0));
        // A lease that has ended has ended, before anything has taken its owner away.
        assert_eq!(registry.owners_after(0, 10, NOW + second).len(), 3);
    }

    #[test]
    fn a_wrong_token_neither_renews_nor_registers_nor_removes() {
        let mut registry = registry();
        let (key, _) = registry.open(7, Duration::ZERO, NOW).unwrap();
        registry.register(key, vec![offer("p", "a")], NOW).unwrap();
        for wrong in [OwnerKey { token: 7 ^ (1 << 127), ..key }, OwnerKey { id: key.id + 1, ..key }] {
            assert_eq!(registry.renew(wrong, NOW), Err(RegistryError::UnknownOwner));
            assert_eq!(registry.close(wrong, NOW), Err(RegistryError::UnknownOwner));
            assert_eq!(registry.remove(wrong, "p", "a", NOW), Err(RegistryError::UnknownOwner));
            let registered = registry.register(wrong, vec![offer("p", "b")], NOW);
            assert_eq!(registered, Err(RegistryError::UnknownOwner));
        }
        assert_eq!(references(&registry, "p", &[]), ["a"]);
        // Another owner with a token of its own cannot touch it either.
        let (other, _) = registry.open(8, Duration::ZERO, NOW).unwrap();
        assert_eq!(registry.remove(other, "p", "a", NOW), Ok(false));
    }

    #[test]
    fn one_renewal_keeps_all_names_of_an_owner() {
        let mut registry = registry();
        let (key, lease) = registry.open(1, Duration::from_secs(2), NOW).unwrap();
        let offers = (0..1000).map(|n| offer(&format!("n{n}"), "a")).collect();
        registry.register(key, offers, NOW).unwrap();
        registry.renew(key, NOW + lease / 2).unwrap();
        assert_eq!(registry.expire(NOW + lease), 0);
        assert_eq!(registry.names_count(), 1000);
        assert_eq!(registry.next_expiry(), Some(NOW + lease * 3 / 2));
        assert_eq!(registry.expire(NOW + lease * 3 / 2), 1);
        assert_eq!((registry.names_count(), registry.entries_count(), registry.owners_count()), (0, 0, 0));
        assert_eq!(registry.next_expiry(), None);
    }

    #[test]
    fn an_ended_lease_is_not_renewed_even_before_it_is_noticed() {
        let mut registry = registry();
        let (key, lease) = registry.open(1, Duration::ZERO, NOW).unwrap();
        assert_eq!(registry.renew(key, NOW + lease), Err(RegistryError::UnknownOwner));
    }

    #[test]
    fn an_exclusive_name_is_taken_once_and_by_its_revision() {
        let mut registry = registry();
        let (first, lease) = registry.open(1, Duration::ZERO, NOW).unwrap();
        let (second, _) = registry.open(2, Duration::from_secs(30), NOW).unwrap();
        assert_eq!(
            registry.register_exclusive(first, offer("m", "a"), 9, NOW),
            Err(RegistryError::Taken { name: "m".into(), revision: 0 })
        );
        let taken = registry.register_exclusive(first, offer("m", "a"), 0, NOW).unwrap();
        // The answer was lost.
        assert_eq!(registry.register_exclusive(first, offer("m", "a"), 0, NOW), Ok(taken));
        let refused = Err(RegistryError::Taken { name: "m".into(), revision: taken });
        assert_eq!(registry.register_exclusive(second, offer("m", "b"), 0, NOW), refused);
        assert_eq!(registry.register_exclusive(second, offer("m", "b"), taken, NOW), refused);
        assert_eq!(registry.register(second, vec![offer("x", "b"), offer("m", "b")], NOW), refused);
        assert_eq!(references(&registry, "x", &[]), [""; 0], "all or none");
        // The owner itself replaces it.
        registry.register_exclusive(first, offer("m", "c"), taken, NOW).unwrap();
        assert_eq!(references(&registry, "m", &[]), ["c"]);
        registry.expire(NOW + lease);
        registry.register_exclusive(second, offer("m", "b"), 0, NOW + lease).unwrap();
        assert_eq!(references(&registry, "m", &[]), ["b"]);
    }

    #[test]
    fn limits_hold_and_a_refused_request_changes_nothing() {
        let limits = Limits { names_max: 2, servers_per_name_max: 2, properties_max: 1, ..Limits::default() };
        let mut registry = Registry::new(Start::default(), limits);
        let (key, _) = registry.open(1, Duration::ZERO, NOW).unwrap();
        let mut refused = |offers: Vec<Offer>| {
            let revision = registry.revision();
            let outcome = registry.register(key, offers, NOW);
            assert_eq!(registry.revision(), revision);
            outcome.unwrap_err()
        };
        let limit = |what, max| RegistryError::Limit { what, max };
        assert_eq!(refused(vec![offer("a", "r"), offer("b", "r"), offer("c", "r")]), limit("names", 2));
        let three = vec![offer("a", "1"), offer("a", "2"), offer("a", "3")];
        assert_eq!(refused(three), limit("servers of a name", 2));
        let two = with_property(with_property(offer("a", "r"), "k", "v"), "l", "v");
        assert_eq!(refused(vec![two]), limit("properties", 1));
        let large = "x".repeat(17 * 1024);
        assert_eq!(refused(vec![offer("a", &large)]), limit("bytes of an entry", 16 * 1024));
        for wrong in ["", "/a", "a/", "a//b", "a\n"] {
            assert!(
                matches!(refused(vec![offer(wrong, "r")]), RegistryError::InvalidName { .. }),
                "{wrong:?}"
            );
        }
        registry.register(key, vec![offer("a", "1"), offer("a", "2")], NOW).unwrap();
        registry.register(key, vec![offer("a", "1"), offer("b", "1")], NOW).unwrap();
    }

    #[test]
    fn names_are_listed_by_prefix_in_pages() {
        let mut registry = registry();
        let (key, _) = registry.open(1, Duration::ZERO, NOW).unwrap();
        let offers = ["a", "b/1", "b/2", "b/3", "c"].map(|name| offer(name, "r")).to_vec();
        registry.register(key, offers, NOW).unwrap();
        let list =
            |prefix, after, max| registry.list(prefix, after, max).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(list("b/", None, 2), ["b/1", "b/2"]);
        assert_eq!(list("b/", Some("b/2"), 2), ["b/3"]);
        assert_eq!(list("", Some("b/3"), 9), ["c"]);
        assert_eq!(list("b/", Some("a"), 1), ["b/1"]);
    }

    #[test]
    fn changes_are_told_since_a_revision_or_said_to_be_forgotten() {
        let limits = Limits { changes_max: 3, ..Limits::default() };
        let mut registry = Registry::new(Start { revision: 10, ..Start::default() }, limits);
        let (key, _) = registry.open(1, Duration::ZERO, NOW).unwrap();
        for n in 0..4 {
            registry.register(key, vec![offer(&format!("n{n}"), "r")], NOW).unwrap();
        }
        registry.register(key, vec![offer("n3", "r")], NOW).unwrap();
        assert_eq!(registry.revision(), 14, "the same again is no change");
        let all = Selection::Prefix(String::new());
        assert_eq!(registry.changes_since(10, &all, 9), Err(TooOld));
        assert_eq!(registry.changes_since(15, &all, 9), Err(TooOld));
        let (changes, up_to) = registry.changes_since(11, &all, 2).unwrap();
        let names: Vec<_> = changes.iter().map(|change| &*change.name).collect();
        assert_eq!((names, up_to), (vec!["n1", "n2"], 13));
        let (changes, up_to) =
            registry.changes_since(up_to, &Selection::Names(vec!["n1".into()]), 2).unwrap();
        assert_eq!((changes.len(), up_to), (0, 14));
    }

    #[test]
    fn what_a_store_has_learned_restores_the_registry() {
        let start = Start { has_store: true, ..Start::default() };
        let mut registry = Registry::new(start, Limits::default());
        let (key, lease) = registry.open(5, Duration::ZERO, NOW).unwrap();
        registry.register(key, vec![offer("a", "1"), offer("b", "1")], NOW).unwrap();
        registry.remove(key, "b", "1", NOW).unwrap();
        assert_eq!(registry.take_records().len(), 4);
        assert_eq!(registry.take_records().len(), 0);
        let mut restored = Restored::default();
        for record in registry.all_records() {
            match record {
                Record::Owner { key, lease } => restored.owners.push((key, lease)),
                Record::Put(name, entry) => restored.entries.push((name.to_string(), (*entry).clone())),
                Record::OwnerGone(_) | Record::Gone(..) => panic!("nothing is gone"),
            }
        }
        let later = NOW * 2;
        let start = Start { revision: 1 << 32, ..start };
        let mut registry = Registry::restore(start, Limits::default(), restored, later);
        assert_eq!(references(&registry, "a", &[]), ["1"]);
        assert_eq!(registry.expire(later + lease / 2), 0, "a whole lease again");
        registry.renew(key, later + lease / 2).unwrap();
        let (other, _) = registry.open(6, Duration::ZERO, later + lease / 2).unwrap();
        assert_ne!(other.id, key.id);
        registry.expire(later + lease * 3);
        assert_eq!(registry.names_count(), 0);
    }
}
