//! The store: owners and entries in one transactional file.
//!
//! Requests that change names at one time share a commit: a request that finds a commit in progress waits, and one of
//! those that wait commits for all. The order in the file is that of the registry. Renewals are not stored.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironorb_services::StoreError;
use ironorb_services::database::{self, During as _, Format, MetaTable, damaged};
use redb::{Database, ReadableTable as _, ReadableTableMetadata as _, TableDefinition, WriteTransaction};

use crate::registry::{Entry, OwnerKey, Property, Record, Restored, Start};

/// The owners and entries of one agent, in a file.
#[derive(Debug)]
pub(crate) struct Store {
    db: Database,
    queue: Mutex<Queue>,
    committed: Condvar,
}

/// What is to be committed.
#[derive(Debug, Default)]
struct Queue {
    records: Vec<Record>,
    /// How many records were appended, and how many of them are on disk.
    appended: u64,
    done: u64,
    is_committing: bool,
    /// Why nothing is committed any more.
    failure: Option<String>,
}

/// Records that are on disk once [`Store::commit`] has returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(u64);

impl Store {
    /// Opens the store and reads all of it. Counts the start, so that revisions only grow.
    pub(crate) fn open(path: &Path) -> Result<(Store, Restored, Start), StoreError> {
        let db = database::open(path, &FORMAT)?;
        let txn = database::begin(&db)?;
        let starts = database::meta(&txn, META, STARTS_KEY)?
            .ok_or_else(|| damaged("the number of starts is missing"))?;
        database::set_meta(&txn, META, STARTS_KEY, starts + 1)?;
        let restored = read_all(&txn)?;
        txn.commit().during("counting a start")?;
        let start =
            Start { life: 0, revision: (starts + 1) << REVISION_BITS, has_store: true, is_shared: false };
        let store = Store { db, queue: Mutex::new(Queue::default()), committed: Condvar::new() };
        Ok((store, restored, start))
    }

    /// Appends records, in the registry's order: the caller has the registry locked. Does not block.
    pub(crate) fn append(&self, records: Vec<Record>) -> Ticket {
        let mut queue = self.queue();
        queue.appended += records.len() as u64;
        queue.records.extend(records);
        Ticket(queue.appended)
    }

    /// Blocks until the records are on disk. An error is final: nothing that comes later is stored.
    pub(crate) fn commit(&self, Ticket(number): Ticket) -> Result<(), StoreError> {
        let mut queue = self.queue();
        loop {
            if queue.done >= number {
                return Ok(());
            }
            if let Some(why) = &queue.failure {
                return Err(StoreError::Failed { doing: "committing a change", source: why.as_str().into() });
            }
            if queue.is_committing {
                queue = self.committed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_committing = true;
            let records = std::mem::take(&mut queue.records);
            drop(queue);
            let outcome = write(&self.db, &records);
            queue = self.queue();
            queue.is_committing = false;
            match outcome {
                Ok(()) => queue.done += records.len() as u64,
                Err(fault) => queue.failure = Some(fault.to_string()),
            }
            self.committed.notify_all();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a new store with all these records: a copy of another.
pub(crate) fn write_copy(path: &Path, revision: u64, records: &[Record]) -> Result<(), StoreError> {
    let db = database::open(path, &FORMAT)?;
    let txn = database::begin(&db)?;
    database::set_meta(&txn, META, STARTS_KEY, revision >> REVISION_BITS)?;
    apply(&txn, records)?;
    txn.commit().during("committing a copy")
}

fn write(db: &Database, records: &[Record]) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let txn = database::begin(db)?;
    apply(&txn, records)?;
    txn.commit().during("committing a change")
}

fn apply(txn: &WriteTransaction, records: &[Record]) -> Result<(), StoreError> {
    const DOING: &str = "writing a change";
    let mut owners = txn.open_table(OWNERS).during(DOING)?;
    let mut entries = txn.open_table(ENTRIES).during(DOING)?;
    for record in records {
        match record {
            Record::Owner { key, lease } => {
                let (high, low) = split(key.token);
                let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
                owners.insert(key.id, (high, low, lease)).during(DOING)?;
            }
            Record::OwnerGone(id) => drop(owners.remove(id).during(DOING)?),
            Record::Put(name, entry) => {
                let key = (&**name, entry.owner, &*entry.reference);
                let properties = write_properties(&entry.properties);
                entries.insert(key, (entry.revision, entry.is_exclusive, &*properties)).during(DOING)?;
            }
            Record::Gone(name, entry) => {
                entries.remove((&**name, entry.owner, &*entry.reference)).during(DOING)?;
            }
        }
    }
    Ok(())
}

fn read_all(txn: &WriteTransaction) -> Result<Restored, StoreError> {
    const DOING: &str = "reading the names";
    let owners = txn.open_table(OWNERS).during(DOING)?;
    let entries = txn.open_table(ENTRIES).during(DOING)?;
    let mut restored = Restored::default();
    restored.owners.reserve(usize::try_from(owners.len().during(DOING)?).unwrap_or_default());
    for row in owners.iter().during(DOING)? {
        let (id, owner) = row.during(DOING)?;
        let (high, low, lease) = owner.value();
        let key = OwnerKey { id: id.value(), token: join(high, low) };
        restored.owners.push((key, Duration::from_millis(lease)));
    }
    for row in entries.iter().during(DOING)? {
        let (key, value) = row.during(DOING)?;
        let ((name, owner, reference), (revision, is_exclusive, properties)) = (key.value(), value.value());
        let properties =
            read_properties(properties).ok_or_else(|| damaged("properties of an entry are cut off"))?;
        let entry = Entry { reference: reference.into(), properties, owner, revision, is_exclusive };
        restored.entries.push((name.to_owned(), entry));
    }
    Ok(restored)
}

/// Names and values, each with its length before it.
fn write_properties(properties: &[Property]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in properties.iter().flat_map(|property| [&property.name, &property.value]) {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

fn read_properties(mut bytes: &[u8]) -> Option<Box<[Property]>> {
    let mut text = || -> Option<Box<str>> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        std::str::from_utf8(text).ok().map(Into::into)
    };
    let mut properties = Vec::new();
    while let Some(name) = text() {
        properties.push(Property { name, value: text()? });
    }
    bytes.is_empty().then(|| properties.into())
}

fn make_tables(txn: WriteTransaction) -> Result<WriteTransaction, StoreError> {
    const DOING: &str = "making a table";
    database::set_meta(&txn, META, STARTS_KEY, 0)?;
    txn.open_table(OWNERS).during(DOING)?;
    txn.open_table(ENTRIES).during(DOING)?;
    Ok(txn)
}

pub(crate) fn split(token: u128) -> (u64, u64) {
    ((token >> 64) as u64, token as u64)
}

pub(crate) fn join(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The lower bits of a revision count changes; the upper ones count the starts on a store. A change that was told and
/// then lost in a crash thus shares its revision with no other.
const REVISION_BITS: u32 = 40;

/// Increased with every change of the meaning of a table or row.
const FORMAT_VERSION: u64 = 1;
const FORMAT: Format = Format { meta: META, version: FORMAT_VERSION, make: make_tables };
const STARTS_KEY: &str = "starts";

const META: MetaTable = TableDefinition::new("ironorb.agent.meta");
/// By number: the halves of the token, and the lease in milliseconds.
const OWNERS: TableDefinition<'static, u64, (u64, u64, u64)> = TableDefinition::new("ironorb.agent.owners");
/// By name, owner and reference: the revision, whether it is exclusive, and the properties.
const ENTRIES: TableDefinition<'static, EntryKey<'static>, EntryRow<'static>> =
    TableDefinition::new("ironorb.agent.entries");

type EntryKey<'a> = (&'a str, u64, &'a str);
type EntryRow<'a> = (u64, bool, &'a [u8]);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_was_committed_is_there_again_and_what_went_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let key = OwnerKey { id: 3, token: u128::MAX - 5 };
        let lease = Duration::from_millis(2500);
        let property = |name: &str| Property { name: name.into(), value: "é".into() };
        let entry = Arc::new(Entry {
            reference: "IOR:00".into(),
            properties: [property("a"), property("b")].into(),
            owner: 3,
            revision: 9,
            is_exclusive: true,
        });
        let first = {
            let (store, restored, start) = Store::open(&path).unwrap();
            assert!(restored.owners.is_empty() && restored.entries.is_empty());
            let records = vec![
                Record::Owner { key, lease },
                Record::Owner { key: OwnerKey { id: 4, token: 1 }, lease },
                Record::Put("n".into(), entry.clone()),
                Record::Put("gone".into(), entry.clone()),
                Record::Gone("gone".into(), entry.clone()),
                Record::OwnerGone(4),
            ];
            let ticket = store.append(records);
            store.commit(ticket).unwrap();
            store.append(vec![Record::Put("never committed".into(), entry.clone())]);
            start.revision
        };
        let (_, restored, start) = Store::open(&path).unwrap();
        assert!(start.revision > first);
        assert_eq!(restored.owners, [(key, lease)]);
        assert_eq!(restored.entries, [("n".to_owned(), (*entry).clone())]);
    }

    #[test]
    fn properties_that_are_cut_off_are_noticed() {
        let bytes = write_properties(&[Property { name: "name".into(), value: "value".into() }]);
        assert!(read_properties(&bytes).is_some());
        for end in 1..bytes.len() {
            assert_eq!(read_properties(&bytes[..end]), None, "{end}");
        }
    }
}
