//! The parts that the stores of all services share: opening, creating and checking one transactional file.
//!
//! This module does not know what a store holds. The name of the table of a store's own records identifies
//! its kind. It is public for the stores of other crates of IronORB, and no API for programs.

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
pub struct Format {
    /// The table of the store's own records. Its name identifies the kind of store.
    pub meta: MetaTable,
    /// Increased with every change of the meaning of a table or row.
    pub version: u64,
    /// Creates the tables of a new store.
    pub make: fn(WriteTransaction) -> Result<WriteTransaction, StoreError>,
}

pub type MetaTable = TableDefinition<'static, &'static str, u64>;

/// Opens the store in this file; creates the file if it does not exist.
pub fn open(path: &Path, format: &Format) -> Result<Database, StoreError> {
    if !path.try_exists().map_err(|source| io_error(path, source))? {
        make_file(path, format)?;
    }
    let db = whole(path, || builder().create(path))?;
    prepare(db, path, format)
}

pub fn with_backend(backend: impl StorageBackend, format: &Format) -> Result<Database, StoreError> {
    let path = Path::new("(memory)");
    let db = whole(path, || builder().create_with_backend(backend))?;
    prepare(db, path, format)
}

/// Opens a file and compares all of it with its checksums. Damage is thus reported at the start, and not when
/// a client happens to read the damaged part. (A store of 100,000 definitions is 67 MB, which takes a fifth
/// of a second.)
fn whole(
    path: &Path,
    open: impl FnOnce() -> Result<Database, DatabaseError>,
) -> Result<Database, StoreError> {
    // The database makes assertions about its file before it compares checksums.
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

/// Begins a change. It is on disk once it is committed, or has no effect.
pub fn begin(db: &Database) -> Result<WriteTransaction, StoreError> {
    let mut txn = db.begin_write().during("starting a change")?;
    // This is the library's default too, but the promise to clients depends on it.
    txn.set_durability(Durability::Immediate).during("starting a change")?;
    Ok(txn)
}

pub fn meta(txn: &WriteTransaction, table: MetaTable, key: &str) -> Result<Option<u64>, StoreError> {
    const DOING: &str = "reading the store's own records";
    let table = txn.open_table(table).during(DOING)?;
    let row = table.get(key).during(DOING)?;
    Ok(row.map(|row| row.value()))
}

pub fn set_meta(txn: &WriteTransaction, table: MetaTable, key: &str, value: u64) -> Result<(), StoreError> {
    const DOING: &str = "writing the store's own records";
    let mut table = txn.open_table(table).during(DOING)?;
    table.insert(key, value).during(DOING)?;
    Ok(())
}

/// Adds the step in progress to an error of the database.
pub trait During<T> {
    fn during(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T, E: Into<redb::Error>> During<T> for Result<T, E> {
    fn during(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|fault| StoreError::Failed { doing, source: Box::new(fault.into()) })
    }
}

pub fn damaged(why: &'static str) -> StoreError {
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
        // One commit: if the process is killed here, the file has no tables and counts as new.
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

/// Creates a new store under another name first. A process that is killed meanwhile, or a power cut, leaves
/// no partial store under the final name. (The other file may remain; it is not needed.)
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
    // Also after a failure. The error of the failure is the one that is returned.
    let _ = fs::remove_file(&unfinished);
    made?;
    // The file is durable only once its folder's entry is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| io_error(path, source))
}

/// Gives the file its final name. A store of that name that another process has just created is equally good,
/// and is kept.
fn publish(unfinished: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no links. There, two processes that start at one time may both replace the
        // file.
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
        // The database reports a missing magic number in this way.
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

pub const FORMAT_VERSION_KEY: &str = "format_version";

/// Most memory for cached parts of a store's file, in bytes.
pub const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;
