//! Moments of one process.

use std::time::Duration;

/// A moment on the clock of one process, in nanoseconds from a beginning that means nothing. Moments of two processes are never
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The last moment of all.
    pub const LAST: Moment = Moment(u64::MAX);

    /// So many nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Moment {
        Moment(nanos)
    }

    /// The nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment. `None` if that is later: then the clock has run backwards, and says nothing.
    pub fn since(self, earlier: Moment) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// The moment so much later, or the last one.
    #[must_use]
    pub fn after(self, time: Duration) -> Moment {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(nanos))
    }
}
