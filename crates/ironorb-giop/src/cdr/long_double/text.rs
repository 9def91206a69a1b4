//! `long double` as decimal text and back, without losing a bit.
//!
//! A number is at most 2^16384, or a multiple of 2^-16494. As integers these have a few thousand digits,
//! which are multiplied and divided by small numbers only. The code is simple and slow, because no call needs
//! it.

use std::fmt;
use std::str::FromStr;

use super::{EXPONENT_BIAS, EXPONENT_MAX, FRACTION, FRACTION_BITS, LongDouble};

/// Writes 33 to 36 significant digits: as many as it takes to name this number and no other, without trailing
/// zeros. Numbers from 10^21 on, and below 10^-6, have an exponent.
impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_positive = self.0 >> 127 == 0;
        let magnitude = LongDouble(self.0 & !(1 << 127));
        if self.is_nan() {
            return f.pad("NaN");
        }
        if self.is_infinite() {
            return f.pad_integral(is_positive, "", "inf");
        }
        let exact = magnitude.decimal();
        let names_it =
            |(digits, point): &(String, i32)| format!("0.{digits}e{point}").parse() == Ok(magnitude);
        let (digits, point) =
            DIGITS.iter().find_map(|&count| Some(rounded(&exact, count)).filter(names_it)).unwrap_or(exact);
        let text = match point {
            _ if digits.is_empty() => "0".to_owned(),
            1..=21 if digits.len() <= point as usize => {
                format!("{digits}{}", "0".repeat(point as usize - digits.len()))
            }
            1..=21 => format!("{}.{}", &digits[..point as usize], &digits[point as usize..]),
            -5..=0 => format!("0.{}{digits}", "0".repeat(-point as usize)),
            _ => {
                let (first, rest) = digits.split_at(1);
                let dot = if rest.is_empty() { "" } else { "." };
                format!("{first}{dot}{rest}e{}", point - 1)
            }
        };
        f.pad_integral(is_positive, "", &text)
    }
}

impl fmt::Debug for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fewer digits may name several numbers. More are never needed to name one.
const DIGITS: &[usize] = &[33, 34, 35, 36];

impl LongDouble {
    /// All digits, and the position of the decimal point: the number is `0.DIGITS * 10^point`.
    fn decimal(self) -> (String, i32) {
        let exponent = self.biased_exponent();
        let leading = if exponent == 0 { 0 } else { 1 << FRACTION_BITS };
        let mut number = Big::new(self.0 & FRACTION | leading);
        let power = exponent.max(1) - EXPONENT_BIAS - FRACTION_BITS as i32;
        // m * 2^p is m * 5^-p / 10^-p.
        if power >= 0 {
            number.shift_left(power as u32);
        } else {
            number.times_power(5, power.unsigned_abs());
        }
        let digits = number.into_decimal();
        let point = digits.len() as i32 + power.min(0);
        (digits, point)
    }
}

/// Rounds a decimal to at most `count` digits, ties to the even one, without trailing zeros.
fn rounded((digits, point): &(String, i32), count: usize) -> (String, i32) {
    let (mut kept, mut point) = (digits.clone().into_bytes(), *point);
    if kept.len() > count {
        let is_odd = (kept[count - 1] - b'0') % 2 == 1;
        let above_half = kept[count + 1..].iter().any(|&digit| digit != b'0');
        let up = kept[count] > b'5' || (kept[count] == b'5' && (above_half || is_odd));
        kept.truncate(count);
        if up {
            while kept.last() == Some(&b'9') {
                kept.pop();
            }
            match kept.last_mut() {
                Some(digit) => *digit += 1,
                None => {
                    kept.push(b'1');
                    point += 1;
                }
            }
        }
    }
    while kept.last() == Some(&b'0') {
        kept.pop();
    }
    (kept.into_iter().map(char::from).collect(), point)
}

/// The error for text that is not a `long double`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotALongDouble;

impl fmt::Display for NotALongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a decimal number")
    }
}

impl std::error::Error for NotALongDouble {}

/// Reads the nearest number; ties go to the even one. The text has digits with at most one point, and may
/// have an exponent after `e` and a sign before each. `inf` and `NaN` are accepted. Numbers that are too
/// large become infinite, and numbers that are too small become zero.
impl FromStr for LongDouble {
    type Err = NotALongDouble;

    fn from_str(text: &str) -> Result<Self, NotALongDouble> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let sign = u128::from(is_negative) << 127;
        let infinite = LongDouble(sign | (EXPONENT_MAX as u128) << FRACTION_BITS);
        match text {
            "inf" => return Ok(infinite),
            "NaN" => return Ok(LongDouble(infinite.0 | 1 << (FRACTION_BITS - 1))),
            _ => {}
        }
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: String = whole.chars().chain(fraction.chars()).collect();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(NotALongDouble);
        }
        let digits = digits.trim_start_matches('0');
        let power = exponent.saturating_sub(fraction.len() as i64);
        // The position of the first digit. Beyond these limits the number is zero or infinite.
        let place = power.saturating_add(digits.len() as i64);
        if digits.is_empty() || place < -5000 {
            return Ok(LongDouble(sign));
        }
        if place > 5000 {
            return Ok(infinite);
        }
        // Digits behind the 12,000th only break ties, and a single sticky digit does that as well.
        let (kept, cut) = digits.split_at(digits.len().min(12_000));
        let mut number = Big::from_decimal(kept);
        let sticky = cut.bytes().any(|digit| digit != b'0');
        let power = (power + cut.len() as i64) as i32;
        Ok(LongDouble(sign | nearest(&mut number, power, sticky)))
    }
}

fn parse_exponent(text: &str) -> Result<i64, NotALongDouble> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(NotALongDouble);
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Ok(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The bits of the number nearest to `number * 10^power`, or to a slightly larger number if `sticky`.
fn nearest(number: &mut Big, power: i32, mut sticky: bool) -> u128 {
    let mut binary = power;
    if power >= 0 {
        number.times_power(5, power as u32);
    } else {
        // Enough bits for a quotient with all 113 and two more to round by.
        let wanted = power.unsigned_abs() * 7 / 3 + 120;
        let shift = wanted.saturating_sub(number.bits());
        number.shift_left(shift);
        binary -= shift as i32;
        sticky |= number.divide_power(5, power.unsigned_abs());
    }
    let bits = number.bits();
    // The exponent of the leading one. It determines how many bits the number keeps: fewer when it is
    // subnormal.
    let exponent = binary + bits as i32 - 1;
    let lowest = (exponent - FRACTION_BITS as i32).max(1 - EXPONENT_BIAS - FRACTION_BITS as i32);
    let drop = lowest - binary;
    let significand = if drop <= 0 {
        number.shift_left(drop.unsigned_abs());
        number.low_u128()
    } else {
        let (kept, half, rest) = number.split(drop as u32);
        kept + u128::from(half && (rest || sticky || kept & 1 == 1))
    };
    let biased = lowest + EXPONENT_BIAS + FRACTION_BITS as i32;
    if biased >= EXPONENT_MAX {
        return (EXPONENT_MAX as u128) << FRACTION_BITS;
    }
    // The leading one adds one to the exponent; a subnormal has none. A carry from rounding adds one too.
    let all = (((biased - 1) as u128) << FRACTION_BITS) + significand;
    all.min((EXPONENT_MAX as u128) << FRACTION_BITS)
}

/// An integer of any size, the least significant 32 bits first, without leading zeros.
struct Big(Vec<u32>);

impl Big {
    fn new(value: u128) -> Big {
        let mut big = Big((0..4).map(|i| (value >> (32 * i)) as u32).collect());
        big.trim();
        big
    }

    fn from_decimal(digits: &str) -> Big {
        let mut big = Big(Vec::new());
        for chunk in digits.as_bytes().chunks(9) {
            let value = chunk.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
            big.multiply_add(10u32.pow(chunk.len() as u32), value);
        }
        big
    }

    fn into_decimal(mut self) -> String {
        let mut chunks = Vec::new();
        while !self.0.is_empty() {
            chunks.push(self.divide(1_000_000_000));
        }
        let mut text = chunks.pop().map_or(String::new(), |first| first.to_string());
        chunks.iter().rev().for_each(|chunk| text.push_str(&format!("{chunk:09}")));
        text
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides, and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for limb in self.0.iter_mut().rev() {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / u64::from(divisor)) as u32;
            rest = value % u64::from(divisor);
        }
        self.trim();
        rest as u32
    }

    fn times_power(&mut self, base: u32, power: u32) {
        powers(base, power, |factor| self.multiply_add(factor, 0));
    }

    /// Divides by a power, and returns whether there was a remainder.
    fn divide_power(&mut self, base: u32, power: u32) -> bool {
        let mut rest = false;
        powers(base, power, |divisor| rest |= self.divide(divisor) != 0);
        rest
    }

    fn shift_left(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
        }
    }

    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |last| self.0.len() as u32 * 32 - last.leading_zeros())
    }

    fn low_u128(&self) -> u128 {
        self.0.iter().take(4).rev().fold(0, |value, limb| value << 32 | u128::from(*limb))
    }

    /// The number above the lowest `bits` bits, the highest of those bits, and whether any of the rest is
    /// set.
    fn split(&self, bits: u32) -> (u128, bool, bool) {
        let bit = |at: u32| self.0.get(at as usize / 32).is_some_and(|limb| limb >> (at % 32) & 1 == 1);
        let kept = (bits..self.bits()).rev().fold(0, |value, at| value << 1 | u128::from(bit(at)));
        (kept, bit(bits - 1), (0..bits - 1).any(bit))
    }
}

/// Calls `step` with factors whose product is `base^power`, each as large as fits into 32 bits.
fn powers(base: u32, mut power: u32, mut step: impl FnMut(u32)) {
    let most = u32::MAX.ilog(base);
    while power > 0 {
        let now = power.min(most);
        step(base.pow(now));
        power -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, bits: u128) {
        let number: LongDouble = text.parse().unwrap();
        assert_eq!(number.to_bits(), bits, "{text}: {:x}", number.to_bits());
        assert_eq!(number.to_string().parse(), Ok(number), "{number}");
    }

    #[test]
    fn decimal_text_gives_the_bits_of_binary128() {
        check("1", 0x3FFF << 112);
        check("-2.5", 0xC000_4000 << 96);
        // The bits that GCC gives its binary128 for this text.
        check("0.1", 0x3FFB_9999_9999_9999_9999_9999_9999_999A);
        check("3.14159265358979323846264338327950288", 0x4000_921F_B544_42D1_8469_898C_C517_01B8);
        check("1.18973149535723176508575932662800702e4932", 0x7FFE_FFFF_FFFF_FFFF_FFFF_FFFF_FFFF_FFFF);
        check("3.36210314311209350626267781732175260e-4932", 0x0001 << 112);
        check("6.47517511943802511092443895822764655e-4966", 1);
        check("1e-4970", 0);
        check("1e4933", 0x7FFF << 112);
        check("-0", 1 << 127);
        // Halfway between two numbers rounds to the even one; a little more rounds up.
        check("10384593717069655257060992658440193", 0x4070 << 112); // 2^113 + 1
        check("10384593717069655257060992658440193.0000000001", 0x4070 << 112 | 1);
    }

    #[test]
    fn text_is_short_where_it_can_be() {
        let text = |number: f64| LongDouble::from(number).to_string();
        assert_eq!(text(1.5), "1.5");
        assert_eq!(text(-1e20), "-100000000000000000000");
        assert_eq!(text(0.0009765625), "0.0009765625");
        assert_eq!(text(2f64.powi(200)), "1.6069380442589902755419620923411626e60");
        assert_eq!((text(f64::NAN), text(f64::NEG_INFINITY)), ("NaN".into(), "-inf".into()));
        assert_eq!("0.1".parse::<LongDouble>().unwrap().to_string(), "0.1");
    }

    #[test]
    fn text_that_is_not_a_number_is_refused() {
        for text in ["", "-", ".", "1.2.3", "1e", "e5", "0x1", "1 ", "--1", "1e+-2", "infinity"] {
            assert_eq!(text.parse::<LongDouble>(), Err(NotALongDouble), "{text:?}");
        }
        assert_eq!("9".repeat(50_000).parse::<LongDouble>().map(LongDouble::is_infinite), Ok(true));
        let tiny = format!("0.{}1e99999999999999999999", "0".repeat(50_000));
        assert_eq!(tiny.parse::<LongDouble>().map(LongDouble::is_infinite), Ok(true));
    }

    #[test]
    fn all_ways_through_f64_round_once() {
        for number in [0.1, 1.0 / 3.0, 5e-324, 2.3e-308, f64::MAX, 1e300, -7.25e-310, 1e22] {
            assert_eq!(LongDouble::from(number).to_f64(), number);
            assert_eq!(LongDouble::from(number).to_string().parse(), Ok(LongDouble::from(number)));
            // Both conversions round to nearest, and rounding twice gives the same number here.
            assert_eq!(number.to_string().parse::<LongDouble>().unwrap().to_f64(), number);
        }
        let above_half = LongDouble::from_bits(0x3FFF_0000_0000_0000_0800_0000_0000_0001);
        assert_eq!(above_half.to_f64(), 1.0 + f64::EPSILON);
        assert_eq!("1e400".parse::<LongDouble>().unwrap().to_f64(), f64::INFINITY);
    }
}
