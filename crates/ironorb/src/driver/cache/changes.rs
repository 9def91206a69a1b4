//! What threads of caches wait for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::monitor::Monitor;

/// Counts changes, for threads that wait until there are more.
#[derive(Debug, Default)]
pub(super) struct Changes {
    count: AtomicU64,
    monitor: Monitor,
}

impl Changes {
    pub(super) fn note(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.monitor.changed();
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until there are more changes than `seen`, for so long at most.
    pub(super) fn wait_beyond(&self, seen: u64, at_most: Duration) {
        self.monitor.wait(&|| self.count() != seen, Some(at_most));
    }
}
