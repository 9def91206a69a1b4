//! How many bytes of requests in progress are held, and who waits for room.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The bytes of all requests in progress.
#[derive(Debug)]
pub(super) struct Held {
    max: usize,
    bytes: Mutex<usize>,
    freed: Condvar,
}

/// The share of one request, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    held: Arc<Held>,
    bytes: usize,
}

impl Held {
    pub(super) fn new(max: usize) -> Arc<Held> {
        Arc::new(Held { max, bytes: Mutex::new(0), freed: Condvar::new() })
    }

    /// Room for a request of so many bytes, which waits until there is some; `None` if there is none in time.
    pub(super) fn take(self: &Arc<Self>, bytes: usize, at_most: Option<Duration>) -> Option<Share> {
        let bytes = bytes.saturating_add(CALL_BYTES);
        let until = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && held.saturating_add(bytes) > self.max {
            held = match until {
                None => self.freed.wait(held).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *held = held.saturating_add(bytes);
        Some(Share { held: self.clone(), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.held.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let was_full = held.saturating_add(CALL_BYTES) > self.held.max / 2;
        *held = held.saturating_sub(self.bytes);
        drop(held);
        if was_full {
            self.held.freed.notify_all();
        }
    }
}

/// What a call takes beside its body.
const CALL_BYTES: usize = 2048;
