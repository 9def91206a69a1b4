//! The store: definitions in one transactional file.
//!
//! The store knows tables and durability, and no rules of IDL. A [`Change`] keeps the tables by which
//! definitions are found consistent with the records. A change is on disk when `commit` returns, or has no
//! effect.

use std::ops::Bound as End;
use std::path::Path;

use ironorb::giop::{ByteOrder, CharSet, Encoding, Reader, Writer};
use ironorb::ifr::corba::PrimitiveKind;
use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageBackend,
    TableDefinition, WriteTransaction,
};

use super::record::{Body, DefinitionNumber, FIRST_FREE_NUMBER, Record};
use crate::database::{self, During as _, damaged};
use crate::store_error::StoreError;

/// The definitions of one interface repository, in a file or in memory.
#[derive(Debug)]
pub struct Store {
    db: Database,
}

impl Store {
    /// Most memory for cached parts of the file, in bytes.
    pub const CACHE_BYTES_MAX: usize = database::CACHE_BYTES_MAX;

    /// Opens the store in this file; creates the file if it does not exist. The folder must exist. Blocks
    /// while it compares the whole file with its checksums.
    ///
    /// A file that a killed process left behind is repaired first. While the store is open, no other process
    /// can open it.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, StoreError> {
        Ok(Store { db: database::open(path.as_ref(), &FORMAT)? })
    }

    /// A store in memory. It is lost when the process ends.
    pub fn in_memory() -> Result<Store, StoreError> {
        Store::with_backend(redb::backends::InMemoryBackend::new())
    }

    pub(super) fn with_backend(backend: impl StorageBackend) -> Result<Store, StoreError> {
        Ok(Store { db: database::with_backend(backend, &FORMAT)? })
    }

    /// A view of everything that is committed now. Later changes do not show in it.
    pub(super) fn read(&self) -> Result<View, StoreError> {
        const DOING: &str = "starting to read";
        let txn = self.db.begin_read().during(DOING)?;
        Ok(View {
            definitions: txn.open_table(DEFINITIONS).during(DOING)?,
            ids: txn.open_table(IDS).during(DOING)?,
            names: txn.open_table(NAMES).during(DOING)?,
            contents: txn.open_table(CONTENTS).during(DOING)?,
            uses: txn.open_table(USES).during(DOING)?,
        })
    }

    /// Begins a change. Blocks until the change in progress has ended. Dropping the result changes nothing.
    pub(super) fn change(&self) -> Result<Change, StoreError> {
        Ok(Change { txn: database::begin(&self.db)? })
    }
}

/// Look-ups that work within a change and in a view.
pub(super) trait Lookup {
    /// The record of a definition.
    fn get(&self, number: DefinitionNumber) -> Result<Option<Record>, StoreError>;
    /// The definition with a repository id.
    fn by_id(&self, id: &str) -> Result<Option<DefinitionNumber>, StoreError>;
    /// The definition of a name in a container. Names that differ only in case are equal.
    fn by_name(
        &self,
        container: DefinitionNumber,
        name: &str,
    ) -> Result<Option<DefinitionNumber>, StoreError>;
    /// The definitions in a container, in the order of their creation.
    fn contents(&self, container: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError>;
    /// The definitions that refer to one.
    fn users(&self, used: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError>;
}

/// The store's contents at one moment.
pub(super) struct View {
    definitions: ReadOnlyTable<u64, &'static [u8]>,
    ids: ReadOnlyTable<&'static str, u64>,
    names: ReadOnlyTable<(u64, &'static str), u64>,
    contents: ReadOnlyTable<(u64, u64), ()>,
    uses: ReadOnlyTable<(u64, u64), ()>,
}

impl Lookup for View {
    fn get(&self, number: DefinitionNumber) -> Result<Option<Record>, StoreError> {
        get(&self.definitions, number)
    }

    fn by_id(&self, id: &str) -> Result<Option<DefinitionNumber>, StoreError> {
        by_id(&self.ids, id)
    }

    fn by_name(
        &self,
        container: DefinitionNumber,
        name: &str,
    ) -> Result<Option<DefinitionNumber>, StoreError> {
        by_name(&self.names, container, name)
    }

    fn contents(&self, container: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        seconds(&self.contents, container)
    }

    fn users(&self, used: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        seconds(&self.uses, used)
    }
}

/// A transaction that changes the store. Readers see nothing of it before `commit`.
pub(super) struct Change {
    txn: WriteTransaction,
}

impl Change {
    /// Adds a definition under a new number.
    pub(super) fn insert(&self, record: &Record) -> Result<DefinitionNumber, StoreError> {
        let number =
            self.meta(NEXT_NUMBER_KEY)?.ok_or_else(|| damaged("the next definition's number is missing"))?;
        let next = number.checked_add(1).ok_or_else(|| damaged("the numbers are used up"))?;
        database::set_meta(&self.txn, META, NEXT_NUMBER_KEY, next)?;
        let number = DefinitionNumber::from_number(number);
        self.write(number, record)?;
        self.index(number, record)?;
        Ok(number)
    }

    /// Replaces a record; `before` is the record in the store.
    pub(super) fn update(
        &self,
        number: DefinitionNumber,
        before: &Record,
        record: &Record,
    ) -> Result<(), StoreError> {
        self.unindex(number, before)?;
        self.write(number, record)?;
        self.index(number, record)
    }

    /// Removes a definition. The caller handles its contents and users.
    pub(super) fn remove(&self, number: DefinitionNumber, record: &Record) -> Result<(), StoreError> {
        const DOING: &str = "removing a definition";
        self.unindex(number, record)?;
        self.txn.open_table(DEFINITIONS).during(DOING)?.remove(number.number()).during(DOING)?;
        Ok(())
    }

    /// The number of definitions, anonymous and basic types included.
    pub(super) fn count(&self) -> Result<u64, StoreError> {
        const DOING: &str = "counting definitions";
        self.txn.open_table(DEFINITIONS).during(DOING)?.len().during(DOING)
    }

    /// Makes the change durable. When this returns, it survives a crash and a power cut.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        self.txn.commit().during("committing a change")
    }

    fn meta(&self, key: &str) -> Result<Option<u64>, StoreError> {
        database::meta(&self.txn, META, key)
    }

    fn write(&self, number: DefinitionNumber, record: &Record) -> Result<(), StoreError> {
        const DOING: &str = "writing a definition";
        let bytes = encode(record)?;
        let mut table = self.txn.open_table(DEFINITIONS).during(DOING)?;
        table.insert(number.number(), bytes.as_slice()).during(DOING)?;
        Ok(())
    }

    fn index(&self, number: DefinitionNumber, record: &Record) -> Result<(), StoreError> {
        const DOING: &str = "writing a definition";
        let (n, container) = (number.number(), record.container.number());
        if !record.name.is_empty() {
            self.txn.open_table(IDS).during(DOING)?.insert(record.id.as_str(), n).during(DOING)?;
            let name = folded(&record.name);
            let mut names = self.txn.open_table(NAMES).during(DOING)?;
            names.insert((container, name.as_str()), n).during(DOING)?;
            self.txn.open_table(CONTENTS).during(DOING)?.insert((container, n), ()).during(DOING)?;
        }
        let mut uses = self.txn.open_table(USES).during(DOING)?;
        for used in record.body.uses() {
            if !used.is_permanent() {
                uses.insert((used.number(), n), ()).during(DOING)?;
            }
        }
        Ok(())
    }

    fn unindex(&self, number: DefinitionNumber, record: &Record) -> Result<(), StoreError> {
        const DOING: &str = "removing a definition";
        let (n, container) = (number.number(), record.container.number());
        if !record.name.is_empty() {
            self.txn.open_table(IDS).during(DOING)?.remove(record.id.as_str()).during(DOING)?;
            let name = folded(&record.name);
            let mut names = self.txn.open_table(NAMES).during(DOING)?;
            // While definitions are replaced, the name may belong to a new definition already.
            if names.get((container, name.as_str())).during(DOING)?.is_some_and(|row| row.value() == n) {
                names.remove((container, name.as_str())).during(DOING)?;
            }
            self.txn.open_table(CONTENTS).during(DOING)?.remove((container, n)).during(DOING)?;
        }
        let mut uses = self.txn.open_table(USES).during(DOING)?;
        for used in record.body.uses() {
            uses.remove((used.number(), n)).during(DOING)?;
        }
        Ok(())
    }
}

impl Lookup for Change {
    fn get(&self, number: DefinitionNumber) -> Result<Option<Record>, StoreError> {
        get(&self.txn.open_table(DEFINITIONS).during(LOOKING)?, number)
    }

    fn by_id(&self, id: &str) -> Result<Option<DefinitionNumber>, StoreError> {
        by_id(&self.txn.open_table(IDS).during(LOOKING)?, id)
    }

    fn by_name(
        &self,
        container: DefinitionNumber,
        name: &str,
    ) -> Result<Option<DefinitionNumber>, StoreError> {
        by_name(&self.txn.open_table(NAMES).during(LOOKING)?, container, name)
    }

    fn contents(&self, container: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        seconds(&self.txn.open_table(CONTENTS).during(LOOKING)?, container)
    }

    fn users(&self, used: DefinitionNumber) -> Result<Vec<DefinitionNumber>, StoreError> {
        seconds(&self.txn.open_table(USES).during(LOOKING)?, used)
    }
}

fn get(
    table: &impl ReadableTable<u64, &'static [u8]>,
    number: DefinitionNumber,
) -> Result<Option<Record>, StoreError> {
    let row = table.get(number.number()).during(LOOKING)?;
    row.map(|row| decode(row.value())).transpose()
}

fn by_id(
    table: &impl ReadableTable<&'static str, u64>,
    id: &str,
) -> Result<Option<DefinitionNumber>, StoreError> {
    Ok(table.get(id).during(LOOKING)?.map(|row| DefinitionNumber::from_number(row.value())))
}

fn by_name(
    table: &impl ReadableTable<(u64, &'static str), u64>,
    container: DefinitionNumber,
    name: &str,
) -> Result<Option<DefinitionNumber>, StoreError> {
    let name = folded(name);
    let row = table.get((container.number(), name.as_str())).during(LOOKING)?;
    Ok(row.map(|row| DefinitionNumber::from_number(row.value())))
}

/// The second numbers of the pairs that begin with this number, ascending.
fn seconds(
    table: &impl ReadableTable<(u64, u64), ()>,
    first: DefinitionNumber,
) -> Result<Vec<DefinitionNumber>, StoreError> {
    let first = first.number();
    let range = (End::Included((first, 0)), End::Included((first, u64::MAX)));
    let mut found = Vec::new();
    for row in table.range::<(u64, u64)>(range).during(LOOKING)? {
        found.push(DefinitionNumber::from_number(row.during(LOOKING)?.0.value().1));
    }
    Ok(found)
}

/// The key of a name. Identifiers that differ only in case collide (IDL 4.2, 7.2.3).
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

pub(super) fn encode(record: &Record) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, ENCODING);
    w.write_bool(ENCODING.order == ByteOrder::Little);
    match w.put(record) {
        Ok(()) => Ok(bytes),
        Err(fault) => {
            Err(StoreError::Failed { doing: "writing a definition", source: fault.to_string().into() })
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Record, StoreError> {
    Reader::encapsulated(bytes, ENCODING)
        .and_then(|mut r| r.get())
        .map_err(|_| damaged("a definition cannot be read"))
}

/// Creates the tables of a new store, with the repository and the basic types.
fn make_tables(txn: WriteTransaction) -> Result<WriteTransaction, StoreError> {
    database::set_meta(&txn, META, NEXT_NUMBER_KEY, FIRST_FREE_NUMBER)?;
    let change = Change { txn };
    let permanent = |body| Record {
        id: String::new(),
        name: String::new(),
        version: String::new(),
        container: DefinitionNumber::REPOSITORY,
        body,
    };
    change.write(DefinitionNumber::REPOSITORY, &permanent(Body::Repository {}))?;
    for kind in PRIMITIVES {
        change.write(DefinitionNumber::primitive(kind), &permanent(Body::Primitive { kind }))?;
    }
    change.txn.open_table(IDS).during("making a table")?;
    change.txn.open_table(NAMES).during("making a table")?;
    change.txn.open_table(CONTENTS).during("making a table")?;
    change.txn.open_table(USES).during("making a table")?;
    Ok(change.txn)
}

const LOOKING: &str = "looking for a definition";

/// The encoding of records: CDR with the byte order in front, so that a store can be moved to another
/// machine.
const ENCODING: Encoding = Encoding { char_set: CharSet::Utf8, ..Encoding::NATIVE };

/// Increased with every change of the meaning of a table or record.
const FORMAT_VERSION: u64 = 1;
const FORMAT: database::Format = database::Format { meta: META, version: FORMAT_VERSION, make: make_tables };
const NEXT_NUMBER_KEY: &str = "next_number";

const META: database::MetaTable = TableDefinition::new("ironorb.ifr.meta");
const DEFINITIONS: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("ironorb.ifr.definitions");
const IDS: TableDefinition<'static, &'static str, u64> = TableDefinition::new("ironorb.ifr.ids");
/// Definitions, by container and name in lower case.
const NAMES: TableDefinition<'static, (u64, &'static str), u64> = TableDefinition::new("ironorb.ifr.names");
/// Pairs of a container and a definition in it.
const CONTENTS: TableDefinition<'static, (u64, u64), ()> = TableDefinition::new("ironorb.ifr.contents");
/// Pairs of a used definition and its user.
const USES: TableDefinition<'static, (u64, u64), ()> = TableDefinition::new("ironorb.ifr.uses");

/// The basic types of `get_primitive`.
pub(super) const PRIMITIVES: [PrimitiveKind; 22] = [
    PrimitiveKind::PkNull,
    PrimitiveKind::PkVoid,
    PrimitiveKind::PkShort,
    PrimitiveKind::PkLong,
    PrimitiveKind::PkUshort,
    PrimitiveKind::PkUlong,
    PrimitiveKind::PkFloat,
    PrimitiveKind::PkDouble,
    PrimitiveKind::PkBoolean,
    PrimitiveKind::PkChar,
    PrimitiveKind::PkOctet,
    PrimitiveKind::PkAny,
    PrimitiveKind::PkTypeCode,
    PrimitiveKind::PkPrincipal,
    PrimitiveKind::PkString,
    PrimitiveKind::PkObjref,
    PrimitiveKind::PkLonglong,
    PrimitiveKind::PkUlonglong,
    PrimitiveKind::PkLongdouble,
    PrimitiveKind::PkWchar,
    PrimitiveKind::PkWstring,
    PrimitiveKind::PkValueBase,
];
