//! What the stores of all services share: one transactional file, opened or made, and what is wrong with it.
//!
//! Nothing here knows what a store holds. A file belongs to one kind of store, by the name of its table of own records.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use redb::{
    Builder, Database, DatabaseError, Durability, ReadableTable, StorageBackend, StorageError,
    TableDefinition, TableHandle, WriteTransaction,
};

use crate::store_error::StoreError;

/// A kind of store.
pub(crate) struct Format {
    /// The store's own records; its name tells this kind from others.
    pub(crate) meta: MetaTable,
    /// Raised whenever a table or a row changes its meaning.
    pub(crate) version: u64,
    /// Fills a new store.
    pub(crate) make: fn(WriteTransaction) -> Result<WriteTransaction, StoreError>,
}

pub(crate) type MetaTable = TableDefinition<'static, &'static str, u64>;

/// Opens the store in this file, and makes it when there is none.
pub(crate) fn open(path: &Path, format: &Format) -> Result<Database, StoreError> {
    if !path.try_exists().map_err(|source| io_error(path, source))? {
        make_file(path, format)?;
    }
    let db = whole(path, || builder().create(path))?;
    prepare(db, path, format)
}

pub(crate) fn with_backend(backend: impl StorageBackend, format: &Format) -> Result<Database, StoreError> {
    let path = Path::new("(memory)");
    let db = whole(path, || builder().create_with_backend(backend))?;
    prepare(db, path, format)
}

/// Opens a file and compares all of it with its checksums, so that damage is told now and not when a client happens to
/// read there. (A store of 100,000 definitions is 67 MB, which takes a fifth of a second.)
fn whole(
    path: &Path,
    open: impl FnOnce() -> Result<Database, DatabaseError>,
) -> Result<Database, StoreError> {
    // The database asserts much about its file, before it has compared anything.
    let opened = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut db = open()?;
        db.check_integrity().map(|_| db)
    }));
    match opened {
        Ok(opened) => opened.map_err(|fault| open_error(path, fault)),
        Err(_) => {
            let why = "its pages contradict each other".to_owned();
            Err(StoreError::Damaged { path: path.to_owned(), why })
        }
    }
}

/// Begins a change that is on disk when it is committed, or never happened.
pub(crate) fn begin(db: &Database) -> Result<WriteTransaction, StoreError> {
    let mut txn = db.begin_write().during("starting a change")?;
    // Also the library's default, but our promise to clients hangs on it.
    txn.set_durability(Durability::Immediate).during("starting a change")?;
    Ok(txn)
}

pub(crate) fn meta(txn: &WriteTransaction, table: MetaTable, key: &str) -> Result<Option<u64>, StoreError> {
    const DOING: &str = "reading the store's own records";
    let table = txn.open_table(table).during(DOING)?;
    let row = table.get(key).during(DOING)?;
    Ok(row.map(|row| row.value()))
}

pub(crate) fn set_meta(
    txn: &WriteTransaction,
    table: MetaTable,
    key: &str,
    value: u64,
) -> Result<(), StoreError> {
    const DOING: &str = "writing the store's own records";
    let mut table = txn.open_table(table).during(DOING)?;
    table.insert(key, value).during(DOING)?;
    Ok(())
}

/// Puts "what was being done" beside a fault of the database.
pub(crate) trait During<T> {
    fn during(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T, E: Into<redb::Error>> During<T> for Result<T, E> {
    fn during(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|fault| StoreError::Failed { doing, source: Box::new(fault.into()) })
    }
}

pub(crate) fn damaged(why: &'static str) -> StoreError {
    StoreError::Failed { doing: "reading a record", source: why.into() }
}

fn prepare(db: Database, path: &Path, format: &Format) -> Result<Database, StoreError> {
    let txn = begin(&db)?;
    let is_new = txn.list_tables().during("reading the list of tables")?.next().is_none();
    let written = match is_new {
        true => None,
        false if has_meta(&txn, format)? => meta(&txn, format.meta, FORMAT_VERSION_KEY)?,
        false => return Err(StoreError::NotAStore { path: path.to_owned() }),
    };
    match written {
        Some(found) if found == format.version => txn.abort().during("giving up a change")?,
        Some(found) => {
            return Err(StoreError::FormatVersion { path: path.to_owned(), found, expected: format.version });
        }
        None if !is_new => return Err(StoreError::NotAStore { path: path.to_owned() }),
        // One commit: a process killed here leaves a file without tables, which is new again.
        None => {
            set_meta(&txn, format.meta, FORMAT_VERSION_KEY, format.version)?;
            (format.make)(txn)?.commit().during("committing a change")?;
        }
    }
    Ok(db)
}

fn has_meta(txn: &WriteTransaction, format: &Format) -> Result<bool, StoreError> {
    let mut tables = txn.list_tables().during("reading the list of tables")?;
    Ok(tables.any(|table| table.name() == format.meta.name()))
}

/// Makes a new store under another name first, so that a process killed meanwhile, or a power cut, leaves no half of a
/// store under this one. (It may leave the other file, which is not needed.)
fn make_file(path: &Path, format: &Format) -> Result<(), StoreError> {
    let unique = RandomState::new().build_hasher().finish();
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".new-{unique:016x}"));
    let unfinished = PathBuf::from(unfinished);

    let made = builder()
        .create(&unfinished)
        .map_err(|fault| open_error(path, fault))
        .and_then(|db| prepare(db, path, format).map(drop))
        .and_then(|()| publish(&unfinished, path).map_err(|source| io_error(path, source)));
    // Also when it was not made: what is wrong then is said by the first fault.
    let _ = fs::remove_file(&unfinished);
    made?;
    // The file is safe only when its folder's entry is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| io_error(path, source))
}

/// Gives the file its name, unless another process has just made a store of that name, which is as good.
fn publish(unfinished: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Not every file system has links; there, two processes that start at once may both think they won.
        Err(_) => fs::rename(unfinished, path),
        Ok(()) => Ok(()),
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES_MAX);
    builder
}

fn open_error(path: &Path, fault: DatabaseError) -> StoreError {
    let path = path.to_owned();
    match fault {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path },
        // How the database says that its magic number is missing.
        DatabaseError::Storage(StorageError::Io(source)) if source.kind() == io::ErrorKind::InvalidData => {
            StoreError::NotAStore { path }
        }
        DatabaseError::Storage(StorageError::Io(source)) => io_error(&path, source),
        other => StoreError::Damaged { path, why: other.to_string() },
    }
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Open { path: path.to_owned(), source }
}

pub(crate) const FORMAT_VERSION_KEY: &str = "format_version";

/// Most memory taken to keep parts of a store's file at hand, in bytes.
pub(crate) const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;
