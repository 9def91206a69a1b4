//! Counts the requests of a connection that are in progress. Two counts share one word, because most requests
//! change both at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are being carried out, and those among them whose replies have not been written.
///
/// The count of missing replies falls only under the lock of the connection's sending part, or after the
/// servant has returned.
#[derive(Debug, Default)]
pub(crate) struct RequestCounter(AtomicU64);

/// One request in progress, in the lower half of the word.
const CARRIED: u64 = 1;
/// One missing reply, in the upper half of the word.
const UNANSWERED: u64 = 1 << 32;

impl RequestCounter {
    /// Counts a request that begins.
    #[inline]
    pub(crate) fn begin(&self) {
        self.0.fetch_add(CARRIED + UNANSWERED, Ordering::SeqCst);
    }

    /// Counts a second holder of a request that is counted already.
    pub(crate) fn share(&self) {
        self.0.fetch_add(CARRIED, Ordering::SeqCst);
    }

    /// Records that the reply has been written, or will never be.
    #[inline]
    pub(crate) fn answer(&self) {
        self.0.fetch_sub(UNANSWERED, Ordering::SeqCst);
    }

    /// Ends a request, and with it its missing reply unless it `was_answered` before. True when it was the
    /// last request.
    #[inline]
    #[must_use]
    pub(crate) fn end(&self, was_answered: bool) -> bool {
        let both = if was_answered { CARRIED } else { CARRIED + UNANSWERED };
        carried(self.0.fetch_sub(both, Ordering::SeqCst)) == 1
    }

    pub(crate) fn carried(&self) -> usize {
        carried(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn unanswered(&self) -> usize {
        (self.0.load(Ordering::SeqCst) >> 32) as usize
    }
}

#[inline]
fn carried(both: u64) -> usize {
    both as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_counted() {
        let progress = RequestCounter::default();
        let counts = |progress: &RequestCounter| (progress.carried(), progress.unanswered());
        progress.begin();
        progress.begin();
        assert_eq!(counts(&progress), (2, 2));
        progress.answer();
        assert_eq!(counts(&progress), (2, 1));
        assert!(!progress.end(true));
        progress.share();
        assert!(!progress.end(false));
        assert_eq!(counts(&progress), (1, 0));
        assert!(progress.end(true));
        assert_eq!(counts(&progress), (0, 0));
    }
}
