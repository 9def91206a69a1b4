//! The time that the system has noted at its last tick: behind by some milliseconds at most, and asked for by a few
//! loads, where the true time costs as much as a tenth of a call. For what need not be exact.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, in nanoseconds of the system's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoarseInstant(pub(crate) u64);

impl CoarseInstant {
    /// The last tick.
    #[inline(always)] // a step of every call
    pub(crate) fn now() -> CoarseInstant {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        // Neither is ever negative, and 64 bits are enough for 500 years.
        CoarseInstant((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
    }

    /// How long after an earlier moment.
    #[inline]
    pub(crate) fn since(self, earlier: CoarseInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
