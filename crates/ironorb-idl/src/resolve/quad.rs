//! Numbers of 113 binary digits for `long double` constants: IEEE 754 binary128 with rounding to the
//! nearest, ties to even, of decimal text and of the four operations.
//!
//! It has neither infinity nor NaN: an overflow gives no value.

use std::cmp::Ordering;

/// Zero, or a number whose top bit is bit 112 of `mantissa` unless it is subnormal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quad {
    negative: bool,
    /// The exponent of the last bit of `mantissa`: the value is `mantissa * 2^exponent`.
    exponent: i32,
    mantissa: u128,
}

impl Quad {
    /// Reads text such as `1.5`, `.5e-3` or `12e4000`, whose form the lexer has checked. `None` when it is
    /// too large.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.find(['e', 'E']) {
            // More digits than an i32 has are far out of range either way.
            Some(at) => {
                let (sign, digits) = match text[at + 1..].strip_prefix('-') {
                    Some(digits) => (-1, digits),
                    None => (1, text[at + 1..].trim_start_matches('+')),
                };
                let size: i64 = digits.parse::<u32>().map_or(i64::from(u32::MAX), i64::from);
                (&text[..at], sign * size)
            }
            None => (text, 0),
        };
        let point = number.find('.').map_or(0, |at| number.len() - at - 1);
        let mut exponent = exponent - point as i64;
        let digits = number.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0');
        let mut digits: Vec<u8> = digits.skip_while(|&digit| digit == 0).collect();
        if digits.is_empty() {
            return Some(Self::ZERO);
        }
        // Further digits only decide on which side of a tie the number lies.
        if digits.len() > DIGITS_MAX {
            exponent += (digits.len() - DIGITS_MAX) as i64;
            let inexact = digits[DIGITS_MAX..].iter().any(|&digit| digit != 0);
            digits.truncate(DIGITS_MAX);
            if inexact && let Some(last @ (0 | 5)) = digits.last_mut() {
                *last += 1;
            }
        }
        let size = digits.len() as i64 + exponent;
        if size > 4940 {
            return None;
        }
        if size < -5000 {
            return Some(Self::ZERO);
        }
        let mut number = Big::from_digits(&digits);
        if exponent >= 0 {
            number.times_power_of_ten(exponent as u32);
            return number.top_bits().and_then(|(top, shift)| Self::rounded(false, top, shift));
        }
        let mut divisor = Big::one();
        divisor.times_power_of_ten(exponent.unsigned_abs() as u32);
        // The quotient gets 120 bits or one more.
        let shift = divisor.bits() as i32 - number.bits() as i32 + 120;
        match shift {
            0.. => number.shift_left(shift as u32),
            _ => divisor.shift_left(shift.unsigned_abs()),
        }
        let (quotient, exact) = number.divide(&divisor);
        Self::rounded(false, quotient << 1 | u128::from(!exact), -shift - 1)
    }

    pub(super) fn from_integer(value: i128) -> Self {
        Self::rounded(value < 0, value.unsigned_abs(), 0).unwrap_or(Self::ZERO)
    }

    /// A finite number.
    pub(super) fn from_f64(value: f64) -> Self {
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let (mantissa, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Self::rounded(value.is_sign_negative(), mantissa, exponent).unwrap_or(Self::ZERO)
    }

    /// The nearest double, infinite when there is none.
    pub(super) fn to_f64(self) -> f64 {
        if self.mantissa == 0 {
            return if self.negative { -0.0 } else { 0.0 };
        }
        // Of the 113 bits the double keeps 53, or fewer when it is subnormal.
        let top = 127 - self.mantissa.leading_zeros() as i32;
        let last = (top - 52).max(-1074 - self.exponent);
        let kept = match last {
            1..=127 => round_shift(self.mantissa, last as u32),
            _ => 0,
        };
        let exponent = self.exponent + last;
        // At most 2^53, so both steps are exact unless the result overflows.
        let size = kept as f64;
        let size = if exponent > 971 {
            if exponent > 1024 { f64::INFINITY } else { size * 2f64.powi(exponent - 900) * 2f64.powi(900) }
        } else if exponent < -1000 {
            size * 2f64.powi(-1000) * 2f64.powi(exponent + 1000)
        } else {
            size * 2f64.powi(exponent)
        };
        if self.negative { -size } else { size }
    }

    /// The sixteen octets as one number, the sign in its top bit.
    pub(super) fn to_bits(self) -> u128 {
        let sign = u128::from(self.negative) << 127;
        if self.mantissa < HIDDEN {
            return sign | self.mantissa;
        }
        let field = (self.exponent - EXPONENT_MIN + 1) as u128;
        sign | field << 112 | (self.mantissa & (HIDDEN - 1))
    }

    pub(super) fn from_bits(bits: u128) -> Self {
        let field = (bits >> 112 & 0x7fff) as i32;
        let fraction = bits & (HIDDEN - 1);
        let (mantissa, exponent) = match field {
            0 => (fraction, EXPONENT_MIN),
            _ => (fraction | HIDDEN, EXPONENT_MIN + field - 1),
        };
        Self { negative: bits >> 127 == 1, exponent, mantissa }
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(super) fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if self.is_zero() {
            return Some(if other.is_zero() && self.negative != other.negative { Self::ZERO } else { other });
        }
        if other.is_zero() {
            return Some(self);
        }
        let (large, small) = match self.magnitude(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        // Three bits below the last are enough to round by, the lowest of them standing for all beyond.
        let (large, small) = (large.spread(), small.spread());
        let gap = (large.exponent - small.exponent) as u32;
        let top = large.mantissa << 3;
        let low = shift_right_sticky(small.mantissa << 3, gap);
        let sum = if large.negative == small.negative { top + low } else { top - low };
        let negative = large.negative && sum != 0;
        Self::rounded(negative, sum, large.exponent - 3)
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        let negative = self.negative != other.negative;
        let (high, low) = wide_product(self.mantissa, other.mantissa);
        if (high, low) == (0, 0) {
            return Some(Self { negative, ..Self::ZERO });
        }
        // The product has 226 bits at most; the top 128 of them and a sticky bit are kept.
        let exponent = self.exponent + other.exponent;
        if high == 0 {
            return Self::rounded(negative, low, exponent);
        }
        let spare = high.leading_zeros();
        let top = if spare == 0 { high } else { high << spare | low >> (128 - spare) };
        let rest = if spare == 0 { low } else { low << spare };
        Self::rounded(negative, top | u128::from(rest != 0), exponent + 128 - spare as i32)
    }

    /// `other` is not zero.
    pub(super) fn divided_by(self, other: Self) -> Option<Self> {
        let negative = self.negative != other.negative;
        if self.is_zero() || other.is_zero() {
            return Some(Self { negative, ..Self::ZERO });
        }
        let (left, right) = (self.spread(), other.spread());
        let mut rest = left.mantissa;
        let mut quotient = 0u128;
        // Both have 113 bits, so the quotient's first bit comes at once or one step later.
        for _ in 0..118 {
            quotient <<= 1;
            if rest >= right.mantissa {
                rest -= right.mantissa;
                quotient |= 1;
            }
            rest <<= 1;
        }
        let quotient = quotient << 1 | u128::from(rest != 0);
        Self::rounded(negative, quotient, left.exponent - right.exponent - 118)
    }

    fn magnitude(self, other: Self) -> Ordering {
        let (left, right) = (self.spread(), other.spread());
        left.exponent.cmp(&right.exponent).then(left.mantissa.cmp(&right.mantissa))
    }

    /// The number with its top bit at bit 112 even if it is subnormal. It must not be zero.
    fn spread(self) -> Self {
        let shift = self.mantissa.leading_zeros().saturating_sub(15);
        Self { mantissa: self.mantissa << shift, exponent: self.exponent - shift as i32, ..self }
    }

    /// `number * 2^exponent` rounded; `None` when it overflows.
    fn rounded(negative: bool, number: u128, exponent: i32) -> Option<Self> {
        if number == 0 {
            return Some(Self { negative, ..Self::ZERO });
        }
        let excess = 15 - number.leading_zeros() as i32;
        let shift = excess.max(EXPONENT_MIN - exponent);
        let mut exponent = exponent + shift;
        let mut mantissa = match shift {
            ..=0 => number << shift.unsigned_abs(),
            1..=127 => round_shift(number, shift as u32),
            // Less than half of the smallest, or a tie with it that goes to zero.
            _ => 0,
        };
        if mantissa == HIDDEN << 1 {
            mantissa >>= 1;
            exponent += 1;
        }
        (exponent <= EXPONENT_MAX).then_some(Self { negative, exponent, mantissa })
    }

    pub(super) const ZERO: Self = Self { negative: false, exponent: EXPONENT_MIN, mantissa: 0 };
}

/// A natural number of any size, in words of 32 bits from the least significant on.
struct Big {
    limbs: Vec<u32>,
}

impl Big {
    fn one() -> Self {
        Self { limbs: vec![1] }
    }

    fn from_digits(digits: &[u8]) -> Self {
        let mut number = Self { limbs: Vec::new() };
        for chunk in digits.chunks(9) {
            let value = chunk.iter().fold(0, |value, &digit| value * 10 + u32::from(digit));
            number.times_plus(10u32.pow(chunk.len() as u32), value);
        }
        number
    }

    fn times_power_of_ten(&mut self, mut exponent: u32) {
        while exponent > 0 {
            let step = exponent.min(9);
            self.times_plus(10u32.pow(step), 0);
            exponent -= step;
        }
    }

    fn times_plus(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.limbs {
            let value = u64::from(*limb) * u64::from(factor) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry > 0 {
            self.limbs.push(carry as u32);
        }
    }

    fn bits(&self) -> u32 {
        match self.limbs.last() {
            Some(last) => self.limbs.len() as u32 * 32 - last.leading_zeros(),
            None => 0,
        }
    }

    fn shift_left(&mut self, count: u32) {
        let bits = count % 32;
        if bits > 0 {
            let mut carry = 0;
            for limb in &mut self.limbs {
                let value = u64::from(*limb) << bits | carry;
                *limb = value as u32;
                carry = value >> 32;
            }
            if carry > 0 {
                self.limbs.push(carry as u32);
            }
        }
        self.limbs.splice(0..0, std::iter::repeat_n(0, count as usize / 32));
    }

    /// The top 127 bits, with the last one set if any lower bit is, and their exponent.
    fn top_bits(&self) -> Option<(u128, i32)> {
        let shift = self.bits().saturating_sub(126);
        let (words, bits) = (shift as usize / 32, shift % 32);
        let mut top = 0u128;
        for (place, &limb) in self.limbs[words..].iter().enumerate() {
            let place = place as u32 * 32;
            let limb = u128::from(limb);
            top |= if place >= bits { limb << (place - bits) } else { limb >> (bits - place) };
        }
        let below = self.limbs[..words].iter().any(|&limb| limb != 0)
            || self.limbs.get(words).is_some_and(|limb| limb & ((1u32 << bits) - 1) != 0);
        Some((top << 1 | u128::from(below), shift as i32 - 1))
    }

    /// The quotient, which has no more than 122 bits, and whether nothing remains.
    fn divide(mut self, divisor: &Big) -> (u128, bool) {
        let mut quotient = 0u128;
        let mut place = self.bits().saturating_sub(divisor.bits());
        let mut shifted = Self { limbs: divisor.limbs.clone() };
        shifted.shift_left(place);
        loop {
            if self.at_least(&shifted) {
                self.subtract(&shifted);
                quotient |= 1 << place;
            }
            if place == 0 {
                return (quotient, self.limbs.is_empty());
            }
            place -= 1;
            shifted.halve();
        }
    }

    fn at_least(&self, other: &Big) -> bool {
        let order = self.limbs.len().cmp(&other.limbs.len());
        order.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let (value, first) = limb.overflowing_sub(other.limbs.get(at).copied().unwrap_or(0));
            let (value, second) = value.overflowing_sub(u32::from(borrow));
            *limb = value;
            borrow = first || second;
        }
        self.trim();
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for limb in self.limbs.iter_mut().rev() {
            let value = *limb >> 1 | carry;
            carry = *limb << 31;
            *limb = value;
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}

/// `number / 2^shift` to the nearest, ties to even.
fn round_shift(number: u128, shift: u32) -> u128 {
    let kept = number >> shift;
    let rest = number & ((1u128 << shift) - 1);
    let half = 1u128 << (shift - 1);
    kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
}

fn shift_right_sticky(number: u128, shift: u32) -> u128 {
    if shift >= 128 {
        return u128::from(number != 0);
    }
    number >> shift | u128::from(number & ((1u128 << shift) - 1) != 0)
}

/// The product as high and low half.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low) = (a >> 64, a & LOW);
    let (b_high, b_low) = (b >> 64, b & LOW);
    let low = a_low * b_low;
    let middle = a_high * b_low + (low >> 64);
    let other = a_low * b_high + (middle & LOW);
    (a_high * b_high + (middle >> 64) + (other >> 64), other << 64 | low & LOW)
}

const HIDDEN: u128 = 1 << 112;
/// The exponents of the last bit, for the smallest and the largest numbers.
const EXPONENT_MIN: i32 = -16494;
const EXPONENT_MAX: i32 = 16383 - 112;
/// The most digits read. A number half way between two representable ones has at most about 11,600 digits,
/// which no text has. A text cut here is off by less than one part in 10^1000.
const DIGITS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actual: Option<Quad>, bits: u128) {
        assert_eq!(format!("{:032x}", actual.expect("a value").to_bits()), format!("{bits:032x}"));
    }

    #[test]
    fn decimal_text_is_rounded_once() {
        check(Quad::parse("1.0"), 0x3fff_0000_0000_0000_0000_0000_0000_0000);
        check(Quad::parse("0.1"), 0x3ffb_9999_9999_9999_9999_9999_9999_999a);
        check(Quad::parse("2.5e-1"), 0x3ffd_0000_0000_0000_0000_0000_0000_0000);
        check(
            Quad::parse("3.14159265358979323846264338327950288"),
            0x4000_921f_b544_42d1_8469_898c_c517_01b8,
        );
        check(
            Quad::parse("1.18973149535723176508575932662800702e4932"),
            0x7ffe_ffff_ffff_ffff_ffff_ffff_ffff_ffff,
        );
        assert_eq!(Quad::parse("1.2e4932"), None);
        assert_eq!(Quad::parse("1e99999999999"), None);
        check(Quad::parse("1e-99999999999"), 0);
        check(Quad::parse("6.4751751194380251109244389582276466e-4966"), 1);
        check(Quad::parse("3.2e-4966"), 0);
        check(Quad::parse("0.000"), 0);
    }

    #[test]
    fn a_tie_is_broken_by_a_digit_far_behind() {
        // 1 + 2^-113 is half way between 1 and the next.
        let tie = "1.00000000000000000000000000000000009629649721936179265279889712924636592690508241076940976199693977832794189453125";
        check(Quad::parse(tie), 0x3fff << 112);
        check(Quad::parse(&format!("{tie}{}1", "0".repeat(2_000))), (0x3fff << 112) + 1);
    }

    #[test]
    fn operations_round_to_the_nearest() {
        let quad = |text| Quad::parse(text).expect("in range");
        let third = quad("1.0").divided_by(quad("3.0"));
        check(third, 0x3ffd_5555_5555_5555_5555_5555_5555_5555);
        check(third.and_then(|third| third.times(quad("3.0"))), 0x3fff << 112);
        // As with doubles: a tie between 0.3 and the next, of which the next is even.
        check(quad("0.1").plus(quad("0.2")), quad("0.3").to_bits() + 1);
        check(quad("1.0").plus(quad("1.0").negated()), 0);
        check(quad("1.0").plus(quad("1e-40")), 0x3fff << 112);
        check(quad("1e4000").times(quad("1e-4000")), (0x3fff << 112) + 1);
        assert_eq!(quad("1e4000").times(quad("1e4000")), None);
        check(quad("1e-4000").times(quad("1e-4000")), 0);
        check(quad("1.5").negated().plus(quad("0.25")), (1 << 127) | (0x3fff << 112) | (1 << 110));
        check(Some(Quad::from_integer(-3)), 0xc000 << 112 | 1 << 111);
        check(Some(Quad::from_integer(i128::MIN)), 0xc07e << 112);
    }

    #[test]
    fn doubles_come_back_as_they_went() {
        for value in [0.1, -2.5e300, 5e-324, 2.2250738585072014e-308, f64::MAX, 1.0, 0.0, 3e-310] {
            assert_eq!(Quad::from_f64(value).to_f64(), value);
            assert_eq!(Quad::from_bits(Quad::from_f64(value).to_bits()).to_f64(), value);
        }
        assert_eq!(Quad::parse("0.1").map(Quad::to_f64), Some(0.1));
        assert_eq!(Quad::parse("1e400").map(Quad::to_f64), Some(f64::INFINITY));
        assert_eq!(Quad::parse("1e-400").map(Quad::to_f64), Some(0.0));
    }
}
