//! The system's monotonic clock, which all drivers with threads go by.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::base::time::{Clock, Time};
use crate::object::deadline::{CallTime, Deadline};

/// The clock for transports.
pub(crate) const CLOCK: Clock = Clock { now, rest: std::thread::sleep };

/// The time now.
#[inline]
pub(crate) fn now() -> Time {
    time_of(clock_gettime(ClockId::Monotonic))
}

/// The time now on the clock that goes on while the system sleeps. Only its differences mean anything.
#[inline]
pub(crate) fn steady() -> Time {
    time_of(clock_gettime(ClockId::Boottime))
}

/// The time of the system's last tick, which is a few milliseconds behind at most. Reading it takes a few loads, where
/// the exact time costs up to a tenth of a call. For uses that need no exact time.
#[inline(always)] // a step of every call
pub(crate) fn coarse() -> Time {
    time_of(clock_gettime(ClockId::MonotonicCoarse))
}

#[inline(always)]
fn time_of(time: Timespec) -> Time {
    // Neither part is ever negative, and 64 bits suffice for 500 years.
    Time::from_nanos((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

impl CallTime {
    /// Returns the exact time and the deadline, for a call that has waited or may have to wait.
    #[cold]
    pub(crate) fn settle(self) -> (Time, Deadline) {
        let exact = now();
        let begun = exact.back(coarse().since(self.begun));
        (exact, Deadline::after(begun, self.timeout))
    }
}
