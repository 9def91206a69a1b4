//! What is known of calls that have begun and not ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls, and as many requests that are served, that may be in progress at one time and are recorded. Further ones count as
/// dropped.
pub const CALLS_IN_PROGRESS_MAX: usize = 65_536;

/// Threads that call at the same time seldom meet in one of so many parts.
const PARTS: usize = 16;

/// By the number that the interceptors' request has.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    parts: [Mutex<HashMap<u64, T>>; PARTS],
    held: AtomicUsize,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        InFlight { parts: std::array::from_fn(|_| Mutex::default()), held: AtomicUsize::new(0) }
    }
}

impl<T> InFlight<T> {
    /// Notes a call that begins. False if there are too many.
    pub(crate) fn begin(&self, id: u64, call: T) -> bool {
        if self.held.fetch_add(1, Ordering::Relaxed) >= CALLS_IN_PROGRESS_MAX {
            self.held.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.part(id).insert(id, call);
        true
    }

    /// Changes what is known of a call.
    pub(crate) fn change(&self, id: u64, change: impl FnOnce(&mut T)) {
        if let Some(call) = self.part(id).get_mut(&id) {
            change(call);
        }
    }

    /// What is known of a call that ends.
    pub(crate) fn end(&self, id: u64) -> Option<T> {
        let call = self.part(id).remove(&id)?;
        self.held.fetch_sub(1, Ordering::Relaxed);
        Some(call)
    }

    fn part(&self, id: u64) -> MutexGuard<'_, HashMap<u64, T>> {
        self.parts[(id % PARTS as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
