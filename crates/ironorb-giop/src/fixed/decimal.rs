//! Decimal numbers whose digits and scale are known at run time.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use super::FixedError;
use super::wide::Wide;

/// The most digits of a `fixed`.
pub const DIGITS_MAX: u16 = 31;

/// A decimal number of at most 31 digits, with the digits and the scale of its `fixed` type.
///
/// Equality and order are those of the numbers: 1.50 equals 1.5. Arithmetic follows the standard's rules for
/// constants (CORBA 3.3 part 1, 7.8.8.1) and the C++ mapping. A result has the digits and the scale that it
/// needs. Digits after the point are truncated if the result has more than 31 digits. More than 31 digits
/// before the point are [`FixedError::Overflow`].
#[derive(Clone, Copy)]
pub struct Decimal {
    unscaled: i128,
    digits: u16,
    scale: i16,
}

impl Decimal {
    /// Zero, a `fixed<1, 0>`.
    pub const ZERO: Decimal = Decimal { unscaled: 0, digits: 1, scale: 0 };

    /// The caller ensures that the number has at most `digits` digits, and that `digits` is 1 to 31.
    pub(super) const fn from_parts(unscaled: i128, digits: u16, scale: i16) -> Decimal {
        Decimal { unscaled, digits, scale }
    }

    /// The number `unscaled / 10^scale` as a `fixed<digits, scale>`. [`FixedError`] if it does not fit.
    pub fn new(unscaled: i128, digits: u16, scale: i16) -> Result<Decimal, FixedError> {
        if digits == 0 || digits > DIGITS_MAX || digit_count(unscaled.unsigned_abs()) > digits {
            return Err(FixedError::Overflow);
        }
        Ok(Decimal { unscaled, digits, scale })
    }

    /// The number of digits of its type, 1 to 31.
    pub fn fixed_digits(self) -> u16 {
        self.digits
    }

    /// How many of the digits are after the point; negative for zeros before it.
    pub fn fixed_scale(self) -> i16 {
        self.scale
    }

    /// The number times ten to the power of its scale.
    pub fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// The number times ten to the power `scale`, if that is an integer of at most 31 digits.
    pub fn unscaled_at(self, scale: i16) -> Result<i128, FixedError> {
        if self.unscaled == 0 {
            return Ok(0);
        }
        let up = i32::from(scale) - i32::from(self.scale);
        let magnitude = self.unscaled.unsigned_abs();
        let magnitude = if up >= 0 {
            let wide = Wide::new(magnitude).scaled(up as u32).ok_or(FixedError::Overflow)?;
            wide.in_31_digits().ok_or(FixedError::Overflow)?
        } else {
            let power = 10u128.checked_pow(up.unsigned_abs()).ok_or(FixedError::Inexact)?;
            if !magnitude.is_multiple_of(power) {
                return Err(FixedError::Inexact);
            }
            magnitude / power
        };
        Ok(self.signed(magnitude))
    }

    /// The number truncated to at most `scale` digits after the point.
    pub fn truncate(self, scale: i16) -> Decimal {
        self.cut_to(scale).0
    }

    /// The number rounded to at most `scale` digits after the point, ties away from zero.
    pub fn round(self, scale: i16) -> Result<Decimal, FixedError> {
        let (cut, first_lost) = self.cut_to(scale);
        if first_lost < 5 {
            return Ok(cut);
        }
        let unscaled = cut.unscaled + if self.unscaled < 0 { -1 } else { 1 };
        let digits = cut.digits.max(digit_count(unscaled.unsigned_abs()));
        Decimal::new(unscaled, digits, cut.scale)
    }

    /// The number at a scale of at most `scale`, and the first digit that was removed.
    fn cut_to(self, scale: i16) -> (Decimal, u8) {
        let cut = i32::from(self.scale) - i32::from(scale);
        if cut <= 0 {
            return (self, 0);
        }
        let magnitude = self.unscaled.unsigned_abs();
        let power = |exponent: i32| u32::try_from(exponent).ok().and_then(|e| 10u128.checked_pow(e));
        let kept = power(cut).map_or(0, |power| magnitude / power);
        let lost = power(cut - 1).map_or(0, |power| (magnitude / power % 10) as u8);
        let digits = (i32::from(self.digits) - cut).max(1) as u16;
        (Decimal { unscaled: self.signed(kept), digits, scale }, lost)
    }

    /// The sum: `max(d1-s1, d2-s2) + max(s1, s2) + 1` digits, scale `max(s1, s2)`.
    pub fn try_add(self, other: Decimal) -> Result<Decimal, FixedError> {
        let scale = self.scale.max(other.scale);
        let whole = self.whole_digits().max(other.whole_digits());
        let (a, b) = (self.wide_at(scale)?, other.wide_at(scale)?);
        let (negative, sum) = match (self.unscaled < 0, other.unscaled < 0) {
            (n, m) if n == m => (n, a.plus(b)),
            (n, _) if a >= b => (n, a.minus(b)),
            (_, m) => (m, b.minus(a)),
        };
        Decimal::trimmed(negative, sum, whole + i32::from(scale) + 1, i32::from(scale))
    }

    /// The difference, with the digits and scale of a sum.
    pub fn try_sub(self, other: Decimal) -> Result<Decimal, FixedError> {
        self.try_add(-other)
    }

    /// The product: `d1 + d2` digits, scale `s1 + s2`.
    pub fn try_mul(self, other: Decimal) -> Result<Decimal, FixedError> {
        let product = Wide::product(self.unscaled.unsigned_abs(), other.unscaled.unsigned_abs());
        let scale = i32::from(self.scale) + i32::from(other.scale);
        let negative = (self.unscaled < 0) != (other.unscaled < 0);
        Decimal::trimmed(negative, product, i32::from(self.digits) + i32::from(other.digits), scale)
    }

    /// The quotient, with digits after the point until it is exact or has 31 digits.
    /// [`FixedError::DivisionByZero`] for a zero divisor.
    pub fn try_div(self, other: Decimal) -> Result<Decimal, FixedError> {
        let divisor = other.unscaled.unsigned_abs();
        if divisor == 0 {
            return Err(FixedError::DivisionByZero);
        }
        let magnitude = self.unscaled.unsigned_abs();
        // Long division, one digit per step. The remainder stays below the divisor, which has at most 31
        // digits.
        let (mut quotient, mut rest) = (magnitude / divisor, magnitude % divisor);
        let mut scale = i32::from(self.scale) - i32::from(other.scale);
        while (rest != 0 || scale < 0) && digit_count(quotient) < DIGITS_MAX {
            rest *= 10;
            quotient = quotient * 10 + rest / divisor;
            rest %= divisor;
            scale += 1;
        }
        if scale < 0 {
            return Err(FixedError::Overflow);
        }
        let negative = (self.unscaled < 0) != (other.unscaled < 0);
        let whole = self.whole_digits() + i32::from(other.scale);
        Decimal::trimmed(negative, Wide::new(quotient), whole + scale, scale)
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        // Parsing text gives the correctly rounded `f64`. No division here would.
        format!("{}e{}", self.unscaled, -i32::from(self.scale)).parse().unwrap_or(f64::NAN)
    }

    fn whole_digits(self) -> i32 {
        i32::from(self.digits) - i32::from(self.scale)
    }

    fn signed(self, magnitude: u128) -> i128 {
        // The magnitude has at most 31 digits, so it fits.
        if self.unscaled < 0 { -(magnitude as i128) } else { magnitude as i128 }
    }

    fn wide_at(self, scale: i16) -> Result<Wide, FixedError> {
        let up = (i32::from(scale) - i32::from(self.scale)) as u32;
        // At most 62 digits for scales that a fixed can have. With scales further apart, the sum does not fit
        // in 31 digits.
        let wide = Wide::new(self.unscaled.unsigned_abs());
        if self.unscaled == 0 {
            return Ok(wide);
        }
        wide.scaled(up).filter(|_| up <= 32).ok_or(FixedError::Overflow)
    }

    /// A result in 31 digits: excess digits after the point are truncated. `digits` is the size of the
    /// result's type without that limit.
    fn trimmed(
        negative: bool,
        mut value: Wide,
        mut digits: i32,
        mut scale: i32,
    ) -> Result<Decimal, FixedError> {
        let most = i32::from(DIGITS_MAX);
        let magnitude = loop {
            match value.in_31_digits() {
                Some(magnitude) if scale <= most => break magnitude,
                None if scale <= 0 => return Err(FixedError::Overflow),
                _ => {}
            }
            value.cut();
            scale -= 1;
            digits -= 1;
        };
        let digits = digits.max(scale).max(i32::from(digit_count(magnitude))).min(most);
        let unscaled = if negative { -(magnitude as i128) } else { magnitude as i128 };
        let scale = i16::try_from(scale).map_err(|_| FixedError::Overflow)?;
        Decimal::new(unscaled, digits as u16, scale)
    }
}

/// The number of decimal digits of a number; 1 for zero.
fn digit_count(value: u128) -> u16 {
    value.checked_ilog10().unwrap_or(0) as u16 + 1
}

impl std::ops::Neg for Decimal {
    type Output = Decimal;
    fn neg(self) -> Decimal {
        Decimal { unscaled: -self.unscaled, ..self }
    }
}

macro_rules! from_integer {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Decimal {
            fn from(value: $ty) -> Self {
                let unscaled = i128::from(value);
                Decimal { unscaled, digits: digit_count(unscaled.unsigned_abs()), scale: 0 }
            }
        }

        /// Exact, or [`FixedError::Inexact`] or [`FixedError::Overflow`].
        impl TryFrom<Decimal> for $ty {
            type Error = FixedError;
            fn try_from(value: Decimal) -> Result<Self, FixedError> {
                <$ty>::try_from(value.unscaled_at(0)?).map_err(|_| FixedError::Overflow)
            }
        }
    )*};
}

from_integer! { i16 u16 i32 u32 i64 u64 }

/// The shortest decimal number that identifies this `f64`, truncated to 31 digits.
impl TryFrom<f64> for Decimal {
    type Error = FixedError;
    fn try_from(value: f64) -> Result<Self, FixedError> {
        if !value.is_finite() {
            return Err(FixedError::NotANumber);
        }
        // Display never uses an exponent.
        parse(&value.to_string(), true)
    }
}

/// Accepts digits with at most one point, a sign before them and IDL's `d` after them. More than 31 digits
/// are an error, not counting leading zeros and zeros at the end of a fraction.
impl FromStr for Decimal {
    type Err = FixedError;
    fn from_str(text: &str) -> Result<Self, FixedError> {
        let text = text.strip_suffix(['d', 'D']).unwrap_or(text);
        parse(text, false)
    }
}

fn parse(text: &str, cut: bool) -> Result<Decimal, FixedError> {
    let (negative, number) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let point = number.iter().position(|&c| c == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&number[..point], &number[point + 1..]),
        None => (number, &number[..0]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(FixedError::NotANumber);
    }
    let all = || whole.iter().chain(fraction);
    if !all().all(u8::is_ascii_digit) {
        return Err(FixedError::NotANumber);
    }
    let mut magnitude = 0u128;
    let (mut digits, mut scale) = (0u16, 0i16);
    for (index, &c) in all().enumerate() {
        let after_point = index >= whole.len();
        // Zeros at the end of a fraction count only while there is room for them.
        let full = digits == DIGITS_MAX || scale == DIGITS_MAX as i16;
        if full && after_point {
            if cut || fraction[index - whole.len()..].iter().all(|&c| c == b'0') {
                break;
            }
            return Err(FixedError::Inexact);
        }
        if digits == DIGITS_MAX {
            return Err(FixedError::Overflow);
        }
        magnitude = magnitude * 10 + u128::from(c - b'0');
        digits += u16::from(magnitude != 0);
        scale += i16::from(after_point);
    }
    let digits = digits.max(scale as u16).max(1);
    let unscaled = if negative { -(magnitude as i128) } else { magnitude as i128 };
    Decimal::new(unscaled, digits, scale)
}

/// Shows plain digits, with as many after the point as the scale says.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.unscaled.unsigned_abs().to_string();
        match usize::try_from(self.scale) {
            Ok(0) => {}
            Ok(scale) => {
                if text.len() <= scale {
                    text.insert_str(0, &"0".repeat(scale + 1 - text.len()));
                }
                text.insert(text.len() - scale, '.');
            }
            Err(_) if self.unscaled == 0 => {}
            Err(_) => text.push_str(&"0".repeat(usize::from(self.scale.unsigned_abs()))),
        }
        f.pad_integral(self.unscaled >= 0, "", &text)
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}d")
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |d: &Decimal| d.unscaled.signum();
        sign(self).cmp(&sign(other)).then_with(|| {
            if self.unscaled == 0 {
                return Ordering::Equal;
            }
            // The position of the first digit decides. If it is the same, the scales differ by less than 31.
            let place = |d: &Decimal| i32::from(digit_count(d.unscaled.unsigned_abs())) - i32::from(d.scale);
            let magnitude = place(self).cmp(&place(other)).then_with(|| {
                let scale = self.scale.max(other.scale);
                let at = |d: &Decimal| {
                    let up = (i32::from(scale) - i32::from(d.scale)) as u32;
                    Wide::new(d.unscaled.unsigned_abs()).scaled(up)
                };
                at(self).cmp(&at(other))
            });
            if self.unscaled < 0 { magnitude.reverse() } else { magnitude }
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal numbers have one form without trailing zeros.
        let (mut unscaled, mut scale) = (self.unscaled, self.scale);
        while unscaled != 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale = scale.wrapping_sub(1);
        }
        (unscaled, if unscaled == 0 { 0 } else { scale }).hash(state);
    }
}
