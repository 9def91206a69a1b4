//! What all lanes read on the way of their calls, and what changes rarely.
//!
//! A reader uses the value as it is at that moment. It takes no lock and waits for no thread, however long a thread takes
//! to change the value. A thread that changes it makes a new value, puts it in place of the old one, and gives the old one
//! to its caller, which drops it when it holds no lock. Threads that change a value take turns, with the kernel's
//! inheritance of priorities.
//!
//! A reader that is at it when a value is replaced may be the last to have the old one, and then drops it.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hashbrown::HashTable;

use super::PiLock;
#[cfg(debug_assertions)]
use crate::base::testing::{self, Point};

/// A value, or nothing, that calls of all lanes read and that changes rarely.
pub(crate) struct Snapshot<T> {
    current: ArcSwapOption<T>,
    /// Held by the thread that changes the value.
    changing: PiLock<()>,
}

impl<T> Snapshot<T> {
    /// Nothing yet.
    pub(crate) const fn nothing() -> Snapshot<T> {
        Snapshot { current: ArcSwapOption::const_empty(), changing: PiLock::new(()) }
    }

    /// Looks at the value. Never waits.
    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
        look(self.current.load().as_deref())
    }

    /// The value. Never waits. Costs more than [`with`](Self::with), since it counts.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.current.load_full()
    }

    /// Whether there is a value. Never waits.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.with(|value| value.is_some())
    }

    /// Puts a value in place of the one before, which is returned. Waits for threads that change the value.
    pub(crate) fn set(&self, value: Option<T>) -> Option<Arc<T>> {
        match self.change(|_| Ok::<_, Infallible>(value)) {
            Ok(before) => before,
            Err(never) => match never {},
        }
    }

    /// Makes a value of the one before, and puts it in its place. Returns the one before. Waits for threads that change the
    /// value; `next` must not wait. An error leaves the value as it is.
    pub(crate) fn change<E>(
        &self,
        next: impl FnOnce(Option<&Arc<T>>) -> Result<Option<T>, E>,
    ) -> Result<Option<Arc<T>>, E> {
        self.change_shared(|before| Ok(next(before)?.map(Arc::new)), || {})
    }

    /// Changes the value as [`change`](Self::change) does, to one that may be shared already. Then calls `done`, before
    /// another thread may change the value.
    pub(crate) fn change_shared<E>(
        &self,
        next: impl FnOnce(Option<&Arc<T>>) -> Result<Option<Arc<T>>, E>,
        done: impl FnOnce(),
    ) -> Result<Option<Arc<T>>, E> {
        let _changing = self.changing.lock();
        #[cfg(debug_assertions)]
        testing::reached(Point::SnapshotChange);
        let next = next(self.current.load().as_ref())?;
        let before = self.current.swap(next);
        done();
        Ok(before)
    }
}

impl<T: Clone> Snapshot<T> {
    /// A copy of the value. Never waits.
    #[inline]
    pub(crate) fn cloned(&self) -> Option<T> {
        self.with(|value| value.cloned())
    }
}

impl<T> Default for Snapshot<T> {
    fn default() -> Snapshot<T> {
        Snapshot::nothing()
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("is_some", &self.is_some()).finish_non_exhaustive()
    }
}

/// Values by keys, in parts. A change copies one part.
pub(crate) struct SnapshotMap<K, V> {
    hasher: RandomState,
    parts: Box<[Snapshot<Part<K, V>>; PARTS]>,
}

type Part<K, V> = HashTable<(K, V)>;

/// The number of parts. An empty one takes 24 bytes.
pub(crate) const PARTS: usize = 32;

impl<K: Hash + Eq + Clone, V: Clone> SnapshotMap<K, V> {
    /// Looks at the value of a key. Never waits.
    pub(crate) fn with<Q, R>(&self, key: &Q, look: impl FnOnce(Option<&V>) -> R) -> R
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        self.part(hash).with(|part| {
            let found = part.and_then(|part| part.find(hash, |(known, _)| known.borrow() == key));
            look(found.map(|(_, value)| value))
        })
    }

    /// A copy of the value of a key. Never waits.
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.with(key, |value| value.cloned())
    }

    /// Sets the value of a key, and returns the one before. Waits for threads that change the same part.
    pub(crate) fn insert(&self, key: K, value: V) -> Option<V> {
        let before = self.replace(key, |_| Some(value));
        before.map(|(_, before)| before)
    }

    /// Sets the value of a key that has none. Waits for threads that change the same part.
    pub(crate) fn insert_if_absent(&self, key: K, value: impl FnOnce() -> V) {
        let _present = self.replace(key, |before| match before {
            Some(before) => Some(before.clone()),
            None => Some(value()),
        });
    }

    /// Removes a key, and returns its value. Waits for threads that change the same part.
    pub(crate) fn remove(&self, key: K) -> Option<V> {
        let before = self.replace(key, |_| None);
        before.map(|(_, before)| before)
    }

    /// Replaces the value of a key, and returns the entry before.
    fn replace(&self, key: K, next: impl FnOnce(Option<&V>) -> Option<V>) -> Option<(K, V)> {
        let hash = self.hasher.hash_one(&key);
        let mut entry = None;
        let next = |part: Option<&Arc<Part<K, V>>>| {
            let mut part = part.map(|part| HashTable::clone(part)).unwrap_or_default();
            if let Ok(found) = part.find_entry(hash, |(known, _)| *known == key) {
                entry = Some(found.remove().0);
            }
            if let Some(value) = next(entry.as_ref().map(|(_, value)| value)) {
                part.insert_unique(hash, (key, value), |(key, _)| self.hasher.hash_one(key));
            }
            Ok::<_, Infallible>((!part.is_empty()).then_some(part))
        };
        let before = self.part(hash).change(next);
        drop(before);
        entry
    }

    #[inline]
    fn part(&self, hash: u64) -> &Snapshot<Part<K, V>> {
        // Bits that the table of a part does not use.
        &self.parts[(hash >> 40) as usize % PARTS]
    }
}

impl<K, V> Default for SnapshotMap<K, V> {
    fn default() -> Self {
        SnapshotMap { hasher: RandomState::new(), parts: Box::new([const { Snapshot::nothing() }; PARTS]) }
    }
}

impl<K, V> fmt::Debug for SnapshotMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotMap").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn readers_see_the_value_before_or_after_a_change_and_wait_for_none() {
        let number = Snapshot::nothing();
        assert!(number.get().is_none());
        let (held, holds) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        thread::scope(|scope| {
            let number = &number;
            let changes = scope.spawn(move || {
                number.change(|before| {
                    assert!(before.is_none());
                    held.send(()).unwrap();
                    // Bounds a hang.
                    goes_on.recv_timeout(Duration::from_secs(20))?;
                    Ok::<_, mpsc::RecvTimeoutError>(Some(1))
                })
            });
            holds.recv().unwrap();
            assert_eq!(number.cloned(), None, "the thread that changes it is still at it");
            let _ = go_on.send(());
            assert_eq!(changes.join().unwrap(), Ok(None), "this thread reads while the other one changes");
        });
        assert_eq!(number.cloned(), Some(1));
        assert_eq!(number.change(|before| Err(**before.unwrap())), Err(1));
        assert_eq!(number.set(None).as_deref(), Some(&1));
        assert!(!number.is_some());
    }

    #[test]
    fn no_change_is_lost() {
        let count = Snapshot::nothing();
        count.set(Some(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let more =
                            |count: Option<&Arc<u32>>| Ok::<_, Infallible>(count.map(|count| **count + 1));
                        count.change(more).unwrap();
                    }
                });
            }
        });
        assert_eq!(count.cloned(), Some(2_000));
    }

    proptest! {
        #[test]
        fn a_map_in_parts_is_a_map(steps in prop::collection::vec((0..4_u8, 0..50_u16, any::<u32>()), 0..300)) {
            let map: SnapshotMap<u16, u32> = SnapshotMap::default();
            let mut known = HashMap::new();
            for (kind, key, value) in steps {
                match kind {
                    0 => prop_assert_eq!(map.remove(key), known.remove(&key)),
                    1 => {
                        map.insert_if_absent(key, || value);
                        known.entry(key).or_insert(value);
                    }
                    _ => prop_assert_eq!(map.insert(key, value), known.insert(key, value)),
                }
                for key in 0..50 {
                    prop_assert_eq!(map.get(&key), known.get(&key).copied());
                }
            }
        }
    }
}
