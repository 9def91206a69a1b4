//! Counts the requests of a connection. Three counts share one word, because most requests change all of them at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are in progress, those among them whose replies have not been written, and requests that have ended.
///
/// The count of missing replies falls only under the lock of the connection's sending half, or after the servant has
/// returned.
#[derive(Debug, Default)]
pub(crate) struct RequestCounter(AtomicU64);

/// The width in bits of each of the first two counts.
const WIDTH: u32 = 20;
/// One request in progress.
const CARRIED: u64 = 1;
/// One missing reply.
const UNANSWERED: u64 = 1 << WIDTH;
/// One request that has ended. The count has the rest of the word and wraps.
const SERVED: u64 = 1 << (2 * WIDTH);

impl RequestCounter {
    /// The most requests in progress that are ever let in, far from the end of the count.
    pub(crate) const CARRIED_MAX: usize = 1 << (WIDTH - 1);

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
        carried(self.0.fetch_add(SERVED - both, Ordering::SeqCst)) == 1
    }

    /// Ends the second holder of a request, which has ended already or will. True when it was the last of all.
    #[must_use]
    pub(crate) fn end_shared(&self) -> bool {
        carried(self.0.fetch_sub(CARRIED, Ordering::SeqCst)) == 1
    }

    /// Requests in progress.
    pub(crate) fn carried(&self) -> usize {
        carried(self.0.load(Ordering::SeqCst))
    }

    /// Requests in progress without a reply.
    pub(crate) fn unanswered(&self) -> usize {
        carried(self.0.load(Ordering::SeqCst) >> WIDTH)
    }

    /// Requests that have ended, modulo 2^24. The count stands still while servants block.
    pub(crate) fn served(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> (2 * WIDTH)) as u32
    }
}

#[inline]
fn carried(counts: u64) -> usize {
    (counts & (UNANSWERED - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted() {
        let progress = RequestCounter::default();
        let counts =
            |progress: &RequestCounter| (progress.carried(), progress.unanswered(), progress.served());
        progress.begin();
        progress.begin();
        assert_eq!(counts(&progress), (2, 2, 0));
        progress.answer();
        assert_eq!(counts(&progress), (2, 1, 0));
        assert!(!progress.end(true));
        progress.share();
        assert!(!progress.end(false));
        assert_eq!(counts(&progress), (1, 0, 2));
        assert!(progress.end_shared(), "a second holder is no request");
        assert_eq!(counts(&progress), (0, 0, 2));
    }

    #[test]
    fn the_count_of_served_requests_wraps_alone() {
        let progress = RequestCounter(AtomicU64::new(u64::MAX << (2 * WIDTH)));
        progress.begin();
        assert!(progress.end(false));
        assert_eq!((progress.carried(), progress.unanswered(), progress.served()), (0, 0, 0));
    }
}
