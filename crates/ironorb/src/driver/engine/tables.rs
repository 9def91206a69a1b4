//! Tables by number whose order is that of every run, and connections that wait to be looked at.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::ConnectionId;

/// A table by numbers that the engine or its driver gives, and no peer chooses. Its order hangs on nothing but what was
/// entered and removed; nothing of the engine hangs on that order.
pub(super) type NumberTable<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Mixes numbers.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// Connections to be looked at, each once, in the order of their numbers. Mostly there is none or one.
#[derive(Debug, Default)]
pub(super) struct ConnectionQueue {
    /// The next one is the last.
    descending: Vec<ConnectionId>,
}

impl ConnectionQueue {
    pub(super) fn insert(&mut self, connection: ConnectionId) {
        let at = self.descending.partition_point(|other| *other > connection);
        if self.descending.get(at) != Some(&connection) {
            self.descending.insert(at, connection);
        }
    }

    pub(super) fn pop_first(&mut self) -> Option<ConnectionId> {
        self.descending.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.descending.is_empty()
    }

    pub(super) fn extend(&mut self, connections: impl IntoIterator<Item = ConnectionId>) {
        self.descending.extend(connections);
        self.descending.sort_unstable_by(|one, other| other.cmp(one));
        self.descending.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_looked_at_once_and_in_order() {
        let mut queue = ConnectionQueue::default();
        [5, 3, 9, 3, 5].into_iter().for_each(|number| queue.insert(ConnectionId(number)));
        queue.extend([4, 9, 4].map(ConnectionId));
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop_first()).map(|it| it.0).collect();
        assert_eq!(order, [3, 4, 5, 9]);
        assert!(queue.is_empty());
    }
}
