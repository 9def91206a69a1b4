//! Moments of whatever clock drives the code.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A moment: the nanoseconds since a beginning that the driver chooses. The drivers with threads count in the system's
/// monotonic clock, a simulation in its own.
///
/// 64 bits reach for 584 years. Sums saturate at [`Time::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The beginning of the driver's time.
    pub const ZERO: Time = Time(0);
    /// A moment that never comes.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `nanos` nanoseconds after the beginning.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The nanoseconds since the beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment. Zero when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `duration` earlier, and not before the beginning.
    #[inline]
    pub fn back(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(duration)))
    }
}

/// The nanoseconds of a duration, saturating.
#[inline]
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;

    /// The moment `duration` later.
    #[inline]
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({self})")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A clock that a driver hands to code which must wait and may not know how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// The time now.
    pub(crate) now: fn() -> Time,
    /// Lets the calling thread rest.
    pub(crate) rest: fn(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_saturate() {
        let second = Duration::from_secs(1);
        assert_eq!(Time::MAX + second, Time::MAX);
        assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
        assert_eq!(Time::ZERO.back(second), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::ZERO + second), Duration::ZERO);
        assert_eq!((Time::ZERO + second).since(Time::ZERO), second);
    }
}
