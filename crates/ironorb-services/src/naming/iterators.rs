//! The table of live binding iterators.
//!
//! An iterator stores its position and no bindings. It therefore costs little, and returns the bindings that
//! exist at the time of the call. This module does not read the store.

use std::collections::{BTreeMap, HashMap};

use super::binding::ContextId;
use ironorb::naming::NameComponent;

/// The number of a binding iterator. It is never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IteratorId(u64);

impl IteratorId {
    /// The iterator with this number, which need not exist.
    pub const fn from_number(number: u64) -> Self {
        IteratorId(number)
    }

    /// The number, as in the object key.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The position of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) context: ContextId,
    /// The last binding that was returned.
    pub(super) after: Option<NameComponent>,
}

#[derive(Debug)]
pub(super) struct IteratorTable {
    live_max: usize,
    next: u64,
    /// Counts uses. The smallest count in `by_use` is that of the least recently used iterator.
    clock: u64,
    live: HashMap<IteratorId, Live>,
    /// Has exactly one entry for each entry of `live`.
    by_use: BTreeMap<u64, IteratorId>,
}

#[derive(Debug)]
struct Live {
    cursor: Cursor,
    used: u64,
}

impl IteratorTable {
    pub(super) fn new(live_max: usize) -> Self {
        IteratorTable { live_max, next: 0, clock: 0, live: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// Creates an iterator. Also returns the iterator that was reclaimed if the table was full.
    pub(super) fn create(&mut self, cursor: Cursor) -> (IteratorId, Option<IteratorId>) {
        let evicted = if self.live.len() >= self.live_max { self.evict() } else { None };
        let id = IteratorId(self.next);
        self.next += 1;
        let used = self.tick();
        self.live.insert(id, Live { cursor, used });
        self.by_use.insert(used, id);
        (id, evicted)
    }

    /// The iterator's cursor, for reading and moving. Counts as a use.
    pub(super) fn touch(&mut self, id: IteratorId) -> Option<&mut Cursor> {
        let used = self.tick();
        let live = self.live.get_mut(&id)?;
        self.by_use.remove(&live.used);
        self.by_use.insert(used, id);
        live.used = used;
        Some(&mut live.cursor)
    }

    /// Removes an iterator; false if it does not exist.
    pub(super) fn remove(&mut self, id: IteratorId) -> bool {
        match self.live.remove(&id) {
            Some(live) => self.by_use.remove(&live.used).is_some(),
            None => false,
        }
    }

    fn evict(&mut self) -> Option<IteratorId> {
        let (_, id) = self.by_use.pop_first()?;
        self.live.remove(&id);
        Some(id)
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor() -> Cursor {
        Cursor { context: ContextId::ROOT, after: None }
    }

    #[test]
    fn the_one_unused_for_longest_is_given_up() {
        let mut table = IteratorTable::new(2);
        let (first, evicted) = table.create(cursor());
        assert_eq!(evicted, None);
        let (second, evicted) = table.create(cursor());
        assert_eq!(evicted, None);
        assert!(table.touch(first).is_some());
        let (third, evicted) = table.create(cursor());
        assert_eq!(evicted, Some(second));
        assert!(table.touch(second).is_none());
        assert!(table.touch(first).is_some() && table.touch(third).is_some());
        assert_eq!(table.live.len(), table.by_use.len());
    }

    #[test]
    fn destroying_makes_room() {
        let mut table = IteratorTable::new(1);
        let (first, _) = table.create(cursor());
        assert!(table.remove(first));
        assert!(!table.remove(first));
        let (second, evicted) = table.create(cursor());
        assert_eq!(evicted, None);
        assert_ne!(first, second);
        assert_eq!((table.live.len(), table.by_use.len()), (1, 1));
    }
}
