//! Points of virtual time.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point of virtual time: nanoseconds since the beginning of a run. The last one is 584 years later.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning of a run.
    pub const ZERO: Time = Time(0);
    /// A point that no run reaches.
    pub const NEVER: Time = Time(u64::MAX);

    /// The point this many nanoseconds after the beginning.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or zero if it is later.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// A point beyond the last one is [`Time::NEVER`].
    fn add(self, later: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    /// Seconds with nine digits behind the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
