//! A list of values by keys that only grows. Readers and writers never wait for one another.

use std::fmt;

use once_cell::race::OnceBox;

/// Few values by keys. A value stays where it is until the list is dropped. Looks at all values in turn.
pub(crate) struct GrowingList<K, T>(OnceBox<Node<K, T>>);

struct Node<K, T> {
    key: K,
    value: T,
    rest: GrowingList<K, T>,
}

impl<K: Copy + Eq, T> GrowingList<K, T> {
    pub(crate) const fn new() -> GrowingList<K, T> {
        GrowingList(OnceBox::new())
    }

    /// The value of a key, if there is one.
    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&T> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// The value of a key, made by `make` if there is none. Of two threads that make it at once, one drops what it has made.
    pub(crate) fn get_or_init(&self, key: K, make: impl FnOnce() -> T) -> &T {
        let mut make = Some(make);
        let mut made = None;
        let mut place = &self.0;
        loop {
            match place.get() {
                Some(node) if node.key == key => return &node.value,
                Some(node) => place = &node.rest.0,
                None => {
                    let mut made_now = || Some(Node { key, value: make.take()?(), rest: GrowingList::new() });
                    let new = made.take().or_else(|| made_now().map(Box::new));
                    // Another thread may have been quicker, for this key or for one more.
                    made = new.and_then(|new| place.set(new).err());
                }
            }
        }
    }

    /// All values with their keys, in the order in which they were made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let nodes = std::iter::successors(self.0.get(), |node| node.rest.0.get());
        nodes.map(|node| (node.key, &node.value))
    }
}

impl<K, T> Default for GrowingList<K, T> {
    fn default() -> GrowingList<K, T> {
        GrowingList(OnceBox::new())
    }
}

impl<K: Copy + Eq + fmt::Debug, T: fmt::Debug> fmt::Debug for GrowingList<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn threads_find_one_value_for_each_key() {
        let counts: GrowingList<usize, AtomicUsize> = GrowingList::new();
        assert!(counts.get(3).is_none());
        std::thread::scope(|scope| {
            for key in (0..8).chain(0..8) {
                let counts = &counts;
                let count =
                    move || counts.get_or_init(key, AtomicUsize::default).fetch_add(1, Ordering::Relaxed);
                scope.spawn(move || (0..1000).map(|_| count()).max());
            }
        });
        assert_eq!(counts.iter().count(), 8);
        assert!((0..8).all(|key| counts.get(key).unwrap().load(Ordering::Relaxed) == 2000));
    }
}
