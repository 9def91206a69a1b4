//! Times with units, as people write them in IDL, in task files and on command lines: `250us`, `1.5 ms`. Which of them are too short or
//! too long is for their readers to say.

#![forbid(unsafe_code)]

/// Why a text is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTime {
    /// The number has a minus sign.
    Negative,
    /// The unit is missing or unknown.
    Unit,
    /// The number is missing or malformed, or has more digits than any time needs.
    Number,
}

/// The most digits behind the point: their product with a unit fits 128 bits.
const FRACTION_DIGITS_MAX: usize = 18;

/// Reads a decimal number with one of the units `ns`, `us` or `µs`, `ms` and `s`, in nanoseconds. What is smaller than a nanosecond
/// counts as one.
///
/// # Errors
/// The text is no such number, or its part before the point exceeds 64 bits.
pub fn nanos(text: &str) -> Result<u128, NoTime> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(NoTime::Negative);
    }
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u128 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(NoTime::Unit),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| NoTime::Number)?;
    if fraction.len() > FRACTION_DIGITS_MAX || fraction.contains('.') {
        return Err(NoTime::Number);
    }
    let fraction_value = fraction.bytes().fold(0, |value, byte| value * 10 + u128::from(byte - b'0'));
    let scale = 10_u128.pow(fraction.len() as u32);
    Ok(u128::from(whole) * unit + (fraction_value * unit).div_ceil(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        for (text, expected) in [
            ("0s", 0),
            ("7ns", 7),
            (" 10ms ", 10_000_000),
            ("1.5 us", 1_500),
            ("7µs", 7_000),
            ("0.1ns", 1),
            ("1.000000000000000001s", 1_000_000_001),
            ("18446744073709551615s", u128::from(u64::MAX) * 1_000_000_000),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_time_say_why() {
        for (text, why) in [
            ("-1ms", NoTime::Negative),
            ("10", NoTime::Unit),
            ("10 minutes", NoTime::Unit),
            ("1e3ms", NoTime::Unit),
            ("", NoTime::Unit),
            ("ms", NoTime::Number),
            (".5ms", NoTime::Number),
            ("1.2.3ms", NoTime::Number),
            ("1.0000000000000000001s", NoTime::Number),
            ("18446744073709551616s", NoTime::Number),
        ] {
            assert_eq!(nanos(text), Err(why), "{text}");
        }
    }
}
