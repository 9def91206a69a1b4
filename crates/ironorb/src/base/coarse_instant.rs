//! The time of the system's last tick. It is a few milliseconds behind at most. Reading it takes a few loads,
//! where the exact time costs up to a tenth of a call. For uses that need no exact time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, in nanoseconds of the system's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoarseInstant(pub(crate) u64);

impl CoarseInstant {
    /// Returns the time of the last tick.
    #[inline(always)] // a step of every call
    pub(crate) fn now() -> CoarseInstant {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        // Neither part is ever negative, and 64 bits suffice for 500 years.
        CoarseInstant((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
    }

    /// The time since an earlier moment.
    #[inline]
    pub(crate) fn since(self, earlier: CoarseInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
