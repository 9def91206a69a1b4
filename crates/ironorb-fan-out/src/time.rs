//! Moments of one process.

use std::time::Duration;

/// A moment on the clock of one process, in nanoseconds from a beginning that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// So many nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Moment {
        Moment(nanos)
    }

    /// The nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment so much later, or the last one of all.
    #[must_use]
    pub fn after(self, time: Duration) -> Moment {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(nanos))
    }
}
