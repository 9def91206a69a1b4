//! The binding iterators that are alive, as plain state.
//!
//! An iterator keeps where it stopped and no bindings, so it costs little and shows what is bound when it is asked.
//! Nothing here reads the store.

use std::collections::{BTreeMap, HashMap};

use super::binding::ContextId;
use ironorb::naming::NameComponent;

/// The number of a binding iterator; never given to a second one in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IteratorId(u64);

impl IteratorId {
    /// The iterator of this number, if it is alive.
    pub const fn from_number(number: u64) -> Self {
        IteratorId(number)
    }

    /// The number: what an object key holds.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Where a listing stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) context: ContextId,
    /// The last binding that was given out.
    pub(super) after: Option<NameComponent>,
}

#[derive(Debug)]
pub(super) struct IteratorTable {
    live_max: usize,
    next: u64,
    /// Counts uses; the smallest in `by_use` is that of the iterator unused for longest.
    clock: u64,
    live: HashMap<IteratorId, Live>,
    /// Exactly one entry for each entry of `live`.
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

    /// A new iterator, and the one given up for it if the table was full.
    pub(super) fn create(&mut self, cursor: Cursor) -> (IteratorId, Option<IteratorId>) {
        let evicted = if self.live.len() >= self.live_max { self.evict() } else { None };
        let id = IteratorId(self.next);
        self.next += 1;
        let used = self.tick();
        self.live.insert(id, Live { cursor, used });
        self.by_use.insert(used, id);
        (id, evicted)
    }

    /// The iterator's cursor, to be read and moved on.
    pub(super) fn touch(&mut self, id: IteratorId) -> Option<&mut Cursor> {
        let used = self.tick();
        let live = self.live.get_mut(&id)?;
        self.by_use.remove(&live.used);
        self.by_use.insert(used, id);
        live.used = used;
        Some(&mut live.cursor)
    }

    /// False when there was no such iterator.
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
