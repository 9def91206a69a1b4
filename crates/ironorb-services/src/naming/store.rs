//! The store: contexts and bindings in one transactional file.
//!
//! The store knows tables and durability, and neither compound names nor the rules of CosNaming. A change is
//! on disk when `commit` returns, or has no effect.

use std::ops::Bound as End;
use std::path::Path;

use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageBackend,
    TableDefinition, WriteTransaction,
};

use super::binding::{Binding, Bound, ContextId, ContextRef, Reference};
use crate::database::{self, During as _, damaged};
use crate::store_error::StoreError;
use ironorb::naming::NameComponent;

/// The contexts and bindings of one naming service, in a file or in memory.
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
            contexts: txn.open_table(CONTEXTS).during(DOING)?,
            bindings: txn.open_table(BINDINGS).during(DOING)?,
        })
    }

    /// Begins a change. Blocks until the change in progress has ended. Dropping the result changes nothing.
    pub(super) fn change(&self) -> Result<Change, StoreError> {
        Change::begin(&self.db)
    }
}

/// Look-ups that work within a change and in a view.
pub(super) trait Lookup {
    fn has_context(&self, context: ContextId) -> Result<bool, StoreError>;
    fn get(&self, context: ContextId, component: &NameComponent) -> Result<Option<Bound>, StoreError>;
}

/// The store's contents at one moment.
pub(super) struct View {
    contexts: ReadOnlyTable<u64, ()>,
    bindings: ReadOnlyTable<BindingKey<'static>, BoundRow<'static>>,
}

/// Some bindings of a context in the order of the store: by id, then kind, both as bytes.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) bindings: Vec<Binding>,
    pub(super) more: bool,
}

impl View {
    /// The bindings after `after`, at most so many and of so many bytes, but at least one unless `count_max`
    /// is 0.
    pub(super) fn list(
        &self,
        context: ContextId,
        after: Option<&NameComponent>,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Page, StoreError> {
        const DOING: &str = "listing a context";
        let start = match after {
            Some(last) => End::Excluded(key(context, last)),
            None => End::Included((context.number(), "", "")),
        };
        let mut page = Page { bindings: Vec::new(), more: false };
        let mut bytes = 0;
        let rows = self.bindings.range::<BindingKey<'_>>((start, context_end(context))).during(DOING)?;
        for row in rows {
            let (key, value) = row.during(DOING)?;
            let (_, id, kind) = key.value();
            bytes += id.len() + kind.len() + BINDING_OVERHEAD_BYTES;
            let is_full =
                page.bindings.len() >= count_max || (bytes > bytes_max && !page.bindings.is_empty());
            if is_full {
                page.more = true;
                break;
            }
            let binding_type = read_row(value.value())?.binding_type();
            page.bindings.push(Binding { component: NameComponent::new(id, kind), binding_type });
        }
        Ok(page)
    }
}

impl Lookup for View {
    fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        Ok(self.contexts.get(context.number()).during("looking for a context")?.is_some())
    }

    fn get(&self, context: ContextId, component: &NameComponent) -> Result<Option<Bound>, StoreError> {
        let row = self.bindings.get(key(context, component)).during("looking for a binding")?;
        row.map(|row| read_row(row.value())).transpose()
    }
}

/// A transaction that changes the store. Readers see nothing of it before `commit`.
pub(super) struct Change {
    txn: WriteTransaction,
}

impl Change {
    fn begin(db: &Database) -> Result<Change, StoreError> {
        Ok(Change { txn: database::begin(db)? })
    }

    /// Adds or replaces a binding.
    pub(super) fn put(
        &self,
        context: ContextId,
        component: &NameComponent,
        bound: &Bound,
    ) -> Result<(), StoreError> {
        const DOING: &str = "writing a binding";
        let mut table = self.txn.open_table(BINDINGS).during(DOING)?;
        table.insert(key(context, component), write_row(bound)).during(DOING)?;
        Ok(())
    }

    /// Removes a binding; false if there was none.
    pub(super) fn remove(&self, context: ContextId, component: &NameComponent) -> Result<bool, StoreError> {
        const DOING: &str = "removing a binding";
        let mut table = self.txn.open_table(BINDINGS).during(DOING)?;
        let removed = table.remove(key(context, component)).during(DOING)?;
        Ok(removed.is_some())
    }

    /// Creates an empty context with a new number.
    pub(super) fn create_context(&self) -> Result<ContextId, StoreError> {
        const DOING: &str = "making a context";
        let number =
            self.meta(NEXT_CONTEXT_KEY)?.ok_or_else(|| damaged("the next context number is missing"))?;
        let next = number.checked_add(1).ok_or_else(|| damaged("the context numbers are used up"))?;
        self.set_meta(NEXT_CONTEXT_KEY, next)?;
        let mut table = self.txn.open_table(CONTEXTS).during(DOING)?;
        table.insert(number, ()).during(DOING)?;
        Ok(ContextId::from_number(number))
    }

    /// Removes a context. Its bindings must have been removed before.
    pub(super) fn remove_context(&self, context: ContextId) -> Result<(), StoreError> {
        const DOING: &str = "removing a context";
        let mut table = self.txn.open_table(CONTEXTS).during(DOING)?;
        table.remove(context.number()).during(DOING)?;
        Ok(())
    }

    pub(super) fn is_context_empty(&self, context: ContextId) -> Result<bool, StoreError> {
        const DOING: &str = "looking into a context";
        let table = self.txn.open_table(BINDINGS).during(DOING)?;
        let start = End::Included((context.number(), "", ""));
        let mut rows = table.range::<BindingKey<'_>>((start, context_end(context))).during(DOING)?;
        Ok(rows.next().transpose().during(DOING)?.is_none())
    }

    pub(super) fn contexts_count(&self) -> Result<u64, StoreError> {
        const DOING: &str = "counting contexts";
        self.txn.open_table(CONTEXTS).during(DOING)?.len().during(DOING)
    }

    pub(super) fn bindings_count(&self) -> Result<u64, StoreError> {
        const DOING: &str = "counting bindings";
        self.txn.open_table(BINDINGS).during(DOING)?.len().during(DOING)
    }

    /// Makes the change durable. When this returns, it survives a crash and a power cut.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        self.txn.commit().during("committing a change")
    }

    fn meta(&self, key: &str) -> Result<Option<u64>, StoreError> {
        database::meta(&self.txn, META, key)
    }

    fn set_meta(&self, key: &str, value: u64) -> Result<(), StoreError> {
        database::set_meta(&self.txn, META, key, value)
    }
}

impl Lookup for Change {
    fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        const DOING: &str = "looking for a context";
        let table = self.txn.open_table(CONTEXTS).during(DOING)?;
        Ok(table.get(context.number()).during(DOING)?.is_some())
    }

    fn get(&self, context: ContextId, component: &NameComponent) -> Result<Option<Bound>, StoreError> {
        const DOING: &str = "looking for a binding";
        let table = self.txn.open_table(BINDINGS).during(DOING)?;
        let row = table.get(key(context, component)).during(DOING)?;
        row.map(|row| read_row(row.value())).transpose()
    }
}

/// Creates the tables of a new store, with a root context without bindings.
fn make_tables(txn: WriteTransaction) -> Result<WriteTransaction, StoreError> {
    let change = Change { txn };
    change.set_meta(NEXT_CONTEXT_KEY, ContextId::ROOT.number())?;
    change.create_context()?;
    change.txn.open_table(BINDINGS).during("making a table")?;
    Ok(change.txn)
}

fn key(context: ContextId, component: &NameComponent) -> BindingKey<'_> {
    (context.number(), &component.id, &component.kind)
}

fn context_end(context: ContextId) -> End<BindingKey<'static>> {
    match context.number().checked_add(1) {
        Some(next) => End::Excluded((next, "", "")),
        None => End::Unbounded,
    }
}

fn write_row(bound: &Bound) -> BoundRow<'_> {
    match bound {
        Bound::Object(reference) => (OBJECT, 0, reference.as_bytes()),
        Bound::Context(ContextRef::Local(context)) => (LOCAL_CONTEXT, context.number(), &[]),
        Bound::Context(ContextRef::Foreign(reference)) => (FOREIGN_CONTEXT, 0, reference.as_bytes()),
    }
}

fn read_row((tag, context, reference): BoundRow<'_>) -> Result<Bound, StoreError> {
    match tag {
        OBJECT => Ok(Bound::Object(Reference::new(reference))),
        LOCAL_CONTEXT => Ok(Bound::Context(ContextRef::Local(ContextId::from_number(context)))),
        FOREIGN_CONTEXT => Ok(Bound::Context(ContextRef::Foreign(Reference::new(reference)))),
        _ => Err(damaged("a binding is neither an object nor a context")),
    }
}

/// Context, id and kind, which is the order of `list`.
type BindingKey<'a> = (u64, &'a str, &'a str);
/// One of the tags below, the local context's number or 0, and the reference or nothing.
type BoundRow<'a> = (u8, u64, &'a [u8]);

const OBJECT: u8 = 0;
const LOCAL_CONTEXT: u8 = 1;
const FOREIGN_CONTEXT: u8 = 2;

/// Increased with every change of the meaning of a table or row.
const FORMAT_VERSION: u64 = 1;
const FORMAT: database::Format = database::Format { meta: META, version: FORMAT_VERSION, make: make_tables };
const NEXT_CONTEXT_KEY: &str = "next_context";

const META: TableDefinition<'static, &str, u64> = TableDefinition::new("ironorb.naming.meta");
const CONTEXTS: TableDefinition<'static, u64, ()> = TableDefinition::new("ironorb.naming.contexts");
const BINDINGS: TableDefinition<'static, BindingKey<'static>, BoundRow<'static>> =
    TableDefinition::new("ironorb.naming.bindings");

/// Bytes of a binding in a message and in memory besides its text: two lengths, two terminators, padding, a
/// type.
const BINDING_OVERHEAD_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::database::FORMAT_VERSION_KEY;

    fn object(text: &str) -> Bound {
        Bound::Object(Reference::new(text.as_bytes()))
    }

    fn file_in(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("naming.db")
    }

    #[test]
    fn what_was_committed_is_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let a = NameComponent::new("a", "");
        let foreign = Bound::Context(ContextRef::Foreign(Reference::new(*b"IOR:00")));
        let made = {
            let store = Store::open(file_in(&folder)).unwrap();
            let change = store.change().unwrap();
            let made = change.create_context().unwrap();
            change.put(ContextId::ROOT, &a, &Bound::Context(ContextRef::Local(made))).unwrap();
            change.put(made, &a, &object("o")).unwrap();
            change.put(made, &NameComponent::new("f", "k"), &foreign).unwrap();
            change.commit().unwrap();
            made
        };
        let store = Store::open(file_in(&folder)).unwrap();
        let view = store.read().unwrap();
        assert!(view.has_context(ContextId::ROOT).unwrap() && view.has_context(made).unwrap());
        let context = view.get(ContextId::ROOT, &a).unwrap();
        assert_eq!(context, Some(Bound::Context(ContextRef::Local(made))));
        assert_eq!(view.get(made, &a).unwrap(), Some(object("o")));
        assert_eq!(view.get(made, &NameComponent::new("f", "k")).unwrap(), Some(foreign));
        assert_eq!(view.get(made, &NameComponent::new("f", "")).unwrap(), None);
    }

    #[test]
    fn a_dropped_change_never_happened() {
        let store = Store::in_memory().unwrap();
        let a = NameComponent::new("a", "");
        let change = store.change().unwrap();
        change.put(ContextId::ROOT, &a, &object("o")).unwrap();
        let made = change.create_context().unwrap();
        drop(change);
        let view = store.read().unwrap();
        assert_eq!(view.get(ContextId::ROOT, &a).unwrap(), None);
        assert!(!view.has_context(made).unwrap());
    }

    #[test]
    fn context_numbers_are_not_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = {
            let store = Store::open(file_in(&folder)).unwrap();
            let change = store.change().unwrap();
            let first = change.create_context().unwrap();
            change.remove_context(first).unwrap();
            change.commit().unwrap();
            first
        };
        let store = Store::open(file_in(&folder)).unwrap();
        assert!(store.change().unwrap().create_context().unwrap() > first);
    }

    #[test]
    fn a_listing_is_ordered_and_stays_in_its_context() {
        let store = Store::in_memory().unwrap();
        let change = store.change().unwrap();
        let other = change.create_context().unwrap();
        let parts = [("b", ""), ("", ""), ("a", "y"), ("a", "x"), ("", "k"), ("ab", "")];
        for (id, kind) in parts {
            change.put(ContextId::ROOT, &NameComponent::new(id, kind), &object("o")).unwrap();
        }
        change.put(other, &NameComponent::new("", ""), &object("o")).unwrap();
        change.commit().unwrap();
        let view = store.read().unwrap();
        let names = |page: Page| page.bindings.iter().map(|b| b.component.to_string()).collect::<Vec<_>>();

        let all = view.list(ContextId::ROOT, None, usize::MAX, usize::MAX).unwrap();
        assert!(!all.more);
        assert_eq!(names(all), [".", ".k", "a.x", "a.y", "ab", "b"]);

        let after = NameComponent::new("a", "w");
        let two = view.list(ContextId::ROOT, Some(&after), 2, usize::MAX).unwrap();
        assert!(two.more);
        assert_eq!(names(two), ["a.x", "a.y"]);

        let by_bytes = view.list(ContextId::ROOT, None, usize::MAX, 1).unwrap();
        assert!(by_bytes.more);
        assert_eq!(names(by_bytes), ["."]);

        let none = view.list(ContextId::ROOT, None, 0, usize::MAX).unwrap();
        assert!(none.more && none.bindings.is_empty());
    }

    #[test]
    fn a_file_in_use_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let _open = Store::open(file_in(&folder)).unwrap();
        let fault = Store::open(file_in(&folder)).unwrap_err();
        assert!(matches!(&fault, StoreError::InUse { path } if *path == file_in(&folder)), "{fault}");
        assert!(fault.to_string().contains("naming.db is in use by another process"), "{fault}");
    }

    #[test]
    fn another_format_version_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        {
            let store = Store::open(file_in(&folder)).unwrap();
            let change = store.change().unwrap();
            change.set_meta(FORMAT_VERSION_KEY, 7).unwrap();
            change.commit().unwrap();
        }
        for _ in 0..2 {
            let fault = Store::open(file_in(&folder)).unwrap_err();
            assert!(matches!(fault, StoreError::FormatVersion { found: 7, expected: 1, .. }), "{fault}");
        }
    }

    #[test]
    fn other_files_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let text = b"not a database\n".repeat(1000);
        std::fs::write(file_in(&folder), &text).unwrap();
        let fault = Store::open(file_in(&folder)).unwrap_err();
        assert!(matches!(fault, StoreError::NotAStore { .. }), "{fault:?}");
        assert_eq!(std::fs::read(file_in(&folder)).unwrap(), text);

        std::fs::remove_file(file_in(&folder)).unwrap();
        {
            let db = Database::create(file_in(&folder)).unwrap();
            let txn = db.begin_write().unwrap();
            txn.open_table(TableDefinition::<u64, u64>::new("other")).unwrap();
            txn.commit().unwrap();
        }
        let fault = Store::open(file_in(&folder)).unwrap_err();
        assert!(matches!(fault, StoreError::NotAStore { .. }), "{fault:?}");
    }

    #[test]
    fn making_a_store_leaves_one_file() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            Store::open(file_in(&folder)).unwrap();
        }
        let files: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, ["naming.db"]);
    }

    #[test]
    fn an_empty_file_becomes_a_store() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(file_in(&folder), b"").unwrap();
        let store = Store::open(file_in(&folder)).unwrap();
        assert!(store.read().unwrap().has_context(ContextId::ROOT).unwrap());
    }

    #[test]
    fn a_cut_off_file_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(file_in(&folder)).unwrap());
        let whole = fs::read(file_in(&folder)).unwrap();
        for length in [1, 9, 63, 64, 320, 511, 4096, whole.len() / 2, whole.len() - 1] {
            fs::write(file_in(&folder), &whole[..length]).unwrap();
            let fault = Store::open(file_in(&folder)).expect_err("it lacks a part");
            assert!(fault.to_string().contains("naming.db"), "{length} of {} bytes: {fault}", whole.len());
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let fault = Store::open(folder.path().join("missing/naming.db")).unwrap_err();
        assert!(matches!(fault, StoreError::Open { .. }), "{fault:?}");
        assert!(fault.to_string().contains("missing/naming.db"), "{fault}");
    }
}
