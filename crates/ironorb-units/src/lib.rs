//! Times, bandwidths and shares with units, as people write them in IDL, in task and scenario files and on command lines:
//! `250us`, `1.5 ms`, `10 Mbit/s`, `2 %`. Which of them are too small or too large is for their readers to say.

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

/// Reads a decimal number with one of the units `bit/s`, `kbit/s`, `Mbit/s` and `Gbit/s`, in bits a second. What is smaller
/// than a bit a second is cut off. `None` for any other text, and beyond 64 bits.
pub fn bits_per_second(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u128 = match unit.trim() {
        "bit/s" => 1,
        "kbit/s" => 1_000,
        "Mbit/s" => 1_000_000,
        "Gbit/s" => 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    if fraction.len() > FRACTION_DIGITS_MAX || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let fraction = fraction.bytes().fold(0, |value, byte| value * 10 + u128::from(byte - b'0'));
    u64::try_from(u128::from(whole) * unit + fraction * unit / scale).ok()
}

/// Reads a decimal number with the unit `%`, as a share: `2.5 %` is 0.025. `None` for any other text.
pub fn share(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?.trim();
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let per_cent: f64 = number.parse().ok().filter(|_| is_plain)?;
    Some(per_cent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_has_a_number_and_a_unit() {
        let bandwidths =
            [("1bit/s", 1), (" 64 kbit/s", 64_000), ("2.5 Gbit/s", 2_500_000_000), ("0.0019kbit/s", 1)];
        for (text, expected) in bandwidths {
            assert_eq!(bits_per_second(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "10",
            "Mbit/s",
            "1e3 Mbit/s",
            "-1 bit/s",
            "1.2.3 bit/s",
            "1 MB/s",
            "18446744073709551616 bit/s",
        ] {
            assert_eq!(bits_per_second(text), None, "{text}");
        }
    }

    #[test]
    fn a_share_has_a_number_and_a_percent_sign() {
        for (text, expected) in [("0%", 0.0), (" 2.5 %", 0.025), ("100 %", 1.0), ("250%", 2.5)] {
            assert_eq!(share(text), Some(expected), "{text}");
        }
        for text in ["", "%", "2", "-2 %", "inf %", "1e3 %", "1.2.3 %"] {
            assert_eq!(share(text), None, "{text}");
        }
    }

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
