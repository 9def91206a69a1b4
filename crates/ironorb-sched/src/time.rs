//! Spans of time: whole nanoseconds, written with a unit.

use std::fmt;
use std::str::FromStr;

use ironorb_units::NoTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time in nanoseconds, from 0 to [`Nanos::MAX`]. Sums saturate there.
///
/// As text it is a number with a unit: `250us`, `1.5ms`, `2 s`. The units are `ns`, `us`, `ms` and `s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);

    /// The longest span that a description may contain: 10^15 ns, eleven and a half days. Results may be longer.
    pub const DESCRIBED_MAX: Nanos = Nanos(1_000_000_000_000_000);

    /// The longest span that can be told. The analysis uses it for "without bound".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// The sum, at most [`Nanos::MAX`].
    pub const fn plus(self, other: Nanos) -> Self {
        Nanos(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    pub const fn minus(self, other: Nanos) -> Self {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    /// The longest unit in which the number is at least one, with all digits: nothing is rounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Nanos::MAX {
            return f.pad("unbounded");
        }
        let (unit, word) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return f.pad(&format!("{whole}{word}"));
        }
        let digits = if unit == 1_000 { 3 } else { unit.ilog10() as usize };
        let fraction = format!("{rest:0digits$}");
        f.pad(&format!("{whole}.{}{word}", fraction.trim_end_matches('0')))
    }
}

impl FromStr for Nanos {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let text = text.trim();
        if text == "unbounded" {
            return Ok(Nanos::MAX);
        }
        let nanos = ironorb_units::nanos(text).map_err(|why| match why {
            NoTime::Negative => TimeError::Negative,
            NoTime::Unit => TimeError::Unit,
            NoTime::Number => TimeError::Number,
        })?;
        u64::try_from(nanos).map(Nanos).map_err(|_| TimeError::TooLong)
    }
}

/// Why a text is no span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The number has a minus sign.
    #[error("a time cannot be negative")]
    Negative,
    /// The unit is missing or unknown.
    #[error("a time needs one of the units `ns`, `us`, `ms` and `s`")]
    Unit,
    /// The number is missing or malformed.
    #[error("a time is a decimal number with a unit")]
    Number,
    /// The span exceeds [`Nanos::MAX`].
    #[error("the time is too long")]
    TooLong,
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_spans_convert_both_ways() {
        for (nanos, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_050, "1.05us"),
            (1_500_000, "1.5ms"),
            (2_000_000_001, "2.000000001s"),
            (u64::MAX, "unbounded"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
            assert_eq!(text.parse(), Ok(Nanos(nanos)));
        }
    }

    #[test]
    fn fractions_of_a_nanosecond_round_up() {
        assert_eq!("1.0001us".parse(), Ok(Nanos(1_001)));
    }

    #[test]
    fn texts_that_are_no_time_say_why() {
        assert_eq!("-1ms".parse::<Nanos>(), Err(TimeError::Negative));
        assert_eq!("5".parse::<Nanos>(), Err(TimeError::Unit));
        assert_eq!("5min".parse::<Nanos>(), Err(TimeError::Unit));
        assert_eq!("ms".parse::<Nanos>(), Err(TimeError::Number));
        assert_eq!("1.2.3ms".parse::<Nanos>(), Err(TimeError::Number));
        assert_eq!("99999999999s".parse::<Nanos>(), Err(TimeError::TooLong));
    }
}
