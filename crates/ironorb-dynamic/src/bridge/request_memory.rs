//! Bounds the bytes of requests in progress. Threads wait here for room.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Counts the bytes of all requests in progress.
#[derive(Debug)]
pub(super) struct RequestMemory {
    max: usize,
    now: Mutex<Now>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    calls: usize,
    bytes: usize,
}

/// The share of one request. Dropping it frees the bytes.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<RequestMemory>,
    bytes: usize,
}

impl RequestMemory {
    pub(super) fn new(max: usize) -> Arc<RequestMemory> {
        Arc::new(RequestMemory { max, now: Mutex::default(), freed: Condvar::new() })
    }

    /// Takes room for a request of so many bytes. Blocks until there is room; `None` if there is none within
    /// `at_most`.
    pub(super) fn take(self: &Arc<Self>, bytes: usize, at_most: Option<Duration>) -> Option<Share> {
        let bytes = bytes.saturating_add(CALL_BYTES);
        let until = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        let mut now = self.now();
        while now.bytes > 0 && now.bytes.saturating_add(bytes) > self.max {
            now = match until {
                None => self.freed.wait(now).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    self.freed.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        now.calls += 1;
        now.bytes = now.bytes.saturating_add(bytes);
        Some(Share { memory: self.clone(), bytes })
    }

    /// The number of requests in progress.
    pub(super) fn calls(&self) -> usize {
        self.now().calls
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut now = self.memory.now();
        let was_full = now.bytes.saturating_add(CALL_BYTES) > self.memory.max / 2;
        now.calls -= 1;
        now.bytes = now.bytes.saturating_sub(self.bytes);
        drop(now);
        if was_full {
            self.memory.freed.notify_all();
        }
    }
}

/// Bytes that a call takes beside its body.
const CALL_BYTES: usize = 2048;
