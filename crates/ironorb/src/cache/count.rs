//! A count of what takes nanoseconds, and happens in many threads at once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A count in several lines of memory. Threads are spread over them, so that those that count at the same time seldom
/// share one.
#[derive(Debug, Default)]
pub(crate) struct ShardedCount([Shard; SHARDS]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(AtomicU64);

/// Each takes a line of memory.
const SHARDS: usize = 16;

impl ShardedCount {
    /// Counts one: an atomic addition. Out of line, because most programs do not count.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_one(&self) {
        self.0[own_shard()].0.fetch_add(1, Ordering::Relaxed);
    }

    /// What has been counted. What threads count meanwhile may be in it or not.
    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

/// The calling thread's shard.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    let own = OWN.try_with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        own.get()
    });
    own.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_what_all_threads_have_counted() {
        let count = ShardedCount::default();
        std::thread::scope(|scope| {
            for _ in 0..SHARDS + 3 {
                scope.spawn(|| (0..100).for_each(|_| count.add_one()));
            }
        });
        assert_eq!(count.get(), 100 * (SHARDS as u64 + 3));
    }
}
