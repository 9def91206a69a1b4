//! The timing of operations: what the annotation `@rt` says.

use std::fmt;
use std::time::Duration;

/// The timing of an operation or attribute, from `@rt(period, wcet, deadline, criticality, importance, probability)`. What
/// the text does not give is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// The least time between two calls. More than 0.
    pub period: Option<Duration>,
    /// The longest time that the servant may run. More than 0, and not more than the deadline.
    pub wcet: Option<Duration>,
    /// The longest time from the call to its reply. More than 0.
    pub deadline: Option<Duration>,
    /// How bad it is to miss the deadline.
    pub criticality: Option<Level>,
    /// What is more worth of two operations that are equally urgent.
    pub importance: Option<Level>,
    /// The share of calls that must end within the deadline, between 0 and 1. `None`: every call. Comes with a deadline.
    pub probability: Option<f64>,
}

/// A criticality or an importance, from the least to the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `very_low`
    VeryLow,
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`
    High,
    /// `very_high`
    VeryHigh,
}

impl Level {
    /// All levels, from the least on.
    pub const ALL: [Level; 5] = [Level::VeryLow, Level::Low, Level::Medium, Level::High, Level::VeryHigh];

    /// The level as IDL has it.
    pub fn word(self) -> &'static str {
        match self {
            Level::VeryLow => "very_low",
            Level::Low => "low",
            Level::Medium => "medium",
            Level::High => "high",
            Level::VeryHigh => "very_high",
        }
    }

    /// The level with this word.
    pub(crate) fn of_word(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.word() == word)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a text is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTime {
    Negative,
    Zero,
    Unit,
    Number,
    TooLong,
}

impl NoTime {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            NoTime::Negative => "a time cannot be negative",
            NoTime::Zero => "the time must be more than 0",
            NoTime::Unit => "the unit is missing or unknown",
            NoTime::Number => "the number cannot be read",
            NoTime::TooLong => "the time is longer than 1,000,000 s",
        }
    }
}

/// Reads a number with a unit, such as `1.5ms`. What is smaller than a nanosecond counts as one.
pub(crate) fn time(text: &str) -> Result<Duration, NoTime> {
    let nanos = ironorb_units::nanos(text).map_err(|why| match why {
        ironorb_units::NoTime::Negative => NoTime::Negative,
        ironorb_units::NoTime::Unit => NoTime::Unit,
        ironorb_units::NoTime::Number => NoTime::Number,
    })?;
    match u64::try_from(nanos) {
        Ok(0) => Err(NoTime::Zero),
        Ok(nanos @ ..=NANOS_MAX) => Ok(Duration::from_nanos(nanos)),
        _ => Err(NoTime::TooLong),
    }
}

/// The longest time, which the analysis of task sets has, too.
const NANOS_MAX: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        let read = |text| time(text).map(|time| time.as_nanos());
        for (text, nanos) in
            [("10ms", 10_000_000), ("1.5 us", 1_500), ("0.1ns", 1), ("2s", 2_000_000_000), ("7µs", 7_000)]
        {
            assert_eq!(read(text), Ok(nanos), "{text}");
        }
        for (text, why) in [
            ("-1ms", NoTime::Negative),
            ("0s", NoTime::Zero),
            ("0.000ms", NoTime::Zero),
            ("10", NoTime::Unit),
            ("10 minutes", NoTime::Unit),
            ("ms", NoTime::Number),
            ("1.2.3ms", NoTime::Number),
            ("99999999999999999999s", NoTime::Number),
            ("1000001s", NoTime::TooLong),
        ] {
            assert_eq!(read(text), Err(why), "{text}");
        }
    }
}
