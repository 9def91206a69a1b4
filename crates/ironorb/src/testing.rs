//! What the ORB's own tests must know of it or have it do, to see that something happens which shows in nothing but speed.
//! Exists in builds with debug assertions only, and is no part of the public interface.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOCK_STILL: AtomicBool = AtomicBool::new(false);

thread_local!(static IS_REQUEST_KNOWN: Cell<bool> = const { Cell::new(false) });

/// Has every servant of this process look quick to the code that lets replies wait for others, however slow the machine
/// is. Cannot be undone.
pub fn stop_clock_of_replies() {
    IS_CLOCK_STILL.store(true, Ordering::Relaxed);
}

pub(crate) fn is_clock_of_replies_still() -> bool {
    IS_CLOCK_STILL.load(Ordering::Relaxed)
}

/// Whether the request that this thread carries out has been recognised by its bytes, as one like many before.
pub fn is_request_known() -> bool {
    IS_REQUEST_KNOWN.get()
}

/// Marks the request as known until it is dropped.
pub(crate) struct RequestKnown {
    before: bool,
}

impl RequestKnown {
    pub(crate) fn begin() -> RequestKnown {
        RequestKnown { before: IS_REQUEST_KNOWN.replace(true) }
    }
}

impl Drop for RequestKnown {
    fn drop(&mut self) {
        IS_REQUEST_KNOWN.set(self.before);
    }
}
