//! The memory of a process that is to have all of it at the start (`OrbConfig::memory`).

use std::sync::atomic::{AtomicU64, Ordering};

/// How the memory is planned: so much for extents, and the rest for everything else.
#[derive(Debug)]
pub(crate) struct MemoryPlan {
    total: u64,
    /// Bytes of extents.
    extents: AtomicU64,
}

/// The part of the memory that buffers of one kind, or a side's caches, may take: a divisor.
const SHARE: usize = 8;

/// What an entry of a cache takes, with its place and its key, about.
const ENTRY_BYTES: usize = 512;

impl MemoryPlan {
    pub(crate) fn new(total: usize) -> MemoryPlan {
        MemoryPlan { total: total as u64, extents: AtomicU64::new(0) }
    }

    /// Takes memory for an extent. An error says how much is left.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), u64> {
        let taken = |extents: u64| extents.checked_add(bytes).filter(|sum| *sum <= self.total);
        let before = self.extents.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        before.map(drop).map_err(|extents| self.total - extents)
    }

    /// Gives back what was taken for an extent that has not been made.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.extents.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is to be taken for the heap; `None` from the second time on. No extent is made after that.
    pub(crate) fn settle(&self) -> Option<u64> {
        let before = self.extents.swap(self.total, Ordering::Relaxed);
        (before < self.total).then(|| self.total - before)
    }
}

/// The bytes that buffers of one kind may take of so much memory.
pub(crate) fn buffers_of(total: usize) -> usize {
    total / SHARE
}

/// The entries that a side's caches may have in so much memory.
pub(crate) fn entries_of(total: usize) -> usize {
    (total / SHARE / ENTRY_BYTES).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_take_no_more_than_there_is() {
        let plan = MemoryPlan::new(1_000);
        assert_eq!([plan.take(600), plan.take(401), plan.take(u64::MAX)], [Ok(()), Err(400), Err(400)]);
        plan.give_back(600);
        assert_eq!((plan.take(300), plan.take(701)), (Ok(()), Err(700)));
        assert_eq!((plan.settle(), plan.settle(), plan.take(1)), (Some(700), None, Err(0)));
    }
}
