//! The IDL type `fixed`: exact decimal numbers of up to 31 digits (CORBA 3.3 part 1, 7.11.3.3; on the wire
//! part 2, 9.3.2.8).
//!
//! [`Fixed`] is the type of a member or parameter, whose digits and scale IDL specifies. [`Decimal`] has
//! digits and scale at run time, and does the arithmetic. Nothing here rounds without being asked: a result
//! is exact or an error. The only exception are digits of a fraction beyond 31, which the standard truncates.

mod decimal;
mod wide;
mod wire;

use std::fmt;
use std::str::FromStr;

pub use decimal::{DIGITS_MAX, Decimal};
pub(crate) use wire::{copy as copy_digits, read as read_digits, write as write_digits};

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};

/// An IDL `fixed<DIGITS, SCALE>`: `DIGITS` decimal digits, of which `SCALE` are after the point.
///
/// `DIGITS` must be 1 to 31 and `SCALE` at most `DIGITS`; anything else does not compile.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fixed<const DIGITS: u16, const SCALE: u16> {
    /// The number times ten to the power `SCALE`. Its magnitude is below ten to the power `DIGITS`.
    unscaled: i128,
}

impl<const DIGITS: u16, const SCALE: u16> Fixed<DIGITS, SCALE> {
    const LEGAL: () = assert!(DIGITS >= 1 && DIGITS <= DIGITS_MAX && SCALE <= DIGITS, "no such fixed type");

    /// Zero.
    pub const ZERO: Self = Fixed { unscaled: 0 };

    /// The largest number.
    pub const MAX: Self = {
        let () = Self::LEGAL;
        Fixed { unscaled: 10i128.pow(DIGITS as u32) - 1 }
    };

    /// The smallest number.
    pub const MIN: Self = Fixed { unscaled: -Self::MAX.unscaled };

    /// The number `unscaled / 10^SCALE`; `None` if it has more than `DIGITS` digits.
    pub const fn from_unscaled(unscaled: i128) -> Option<Self> {
        if unscaled > Self::MAX.unscaled || unscaled < Self::MIN.unscaled {
            return None;
        }
        Some(Fixed { unscaled })
    }

    /// The number `unscaled / 10^SCALE`, for constants. Panics if it has more than `DIGITS` digits, which is
    /// a compile-time error in a constant.
    pub const fn constant(unscaled: i128) -> Self {
        match Self::from_unscaled(unscaled) {
            Some(fixed) => fixed,
            None => panic!("the constant has more digits than its fixed type"),
        }
    }

    /// The number times ten to the power `SCALE`.
    pub const fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// The number with digits and scale at run time, for arithmetic.
    pub const fn to_decimal(self) -> Decimal {
        Decimal::from_parts(self.unscaled, DIGITS, SCALE as i16)
    }

    /// A decimal truncated to this scale. [`FixedError::Overflow`] if it does not fit.
    pub fn truncated(value: Decimal) -> Result<Self, FixedError> {
        Self::try_from(value.truncate(SCALE as i16))
    }

    /// A decimal rounded to this scale, ties away from zero. [`FixedError::Overflow`] if it does not fit.
    pub fn rounded(value: Decimal) -> Result<Self, FixedError> {
        Self::try_from(value.round(SCALE as i16)?)
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        self.to_decimal().to_f64()
    }

    /// The sum, with as many digits as it needs; see [`Decimal::try_add`].
    pub fn try_add(self, other: impl Into<Decimal>) -> Result<Decimal, FixedError> {
        self.to_decimal().try_add(other.into())
    }

    /// The difference; see [`Decimal::try_sub`].
    pub fn try_sub(self, other: impl Into<Decimal>) -> Result<Decimal, FixedError> {
        self.to_decimal().try_sub(other.into())
    }

    /// The product; see [`Decimal::try_mul`].
    pub fn try_mul(self, other: impl Into<Decimal>) -> Result<Decimal, FixedError> {
        self.to_decimal().try_mul(other.into())
    }

    /// The quotient; see [`Decimal::try_div`].
    pub fn try_div(self, other: impl Into<Decimal>) -> Result<Decimal, FixedError> {
        self.to_decimal().try_div(other.into())
    }
}

impl<const DIGITS: u16, const SCALE: u16> std::ops::Neg for Fixed<DIGITS, SCALE> {
    type Output = Self;
    fn neg(self) -> Self {
        Fixed { unscaled: -self.unscaled }
    }
}

impl<const DIGITS: u16, const SCALE: u16> From<Fixed<DIGITS, SCALE>> for Decimal {
    fn from(value: Fixed<DIGITS, SCALE>) -> Self {
        value.to_decimal()
    }
}

/// Exact, or [`FixedError::Inexact`] or [`FixedError::Overflow`].
impl<const DIGITS: u16, const SCALE: u16> TryFrom<Decimal> for Fixed<DIGITS, SCALE> {
    type Error = FixedError;
    fn try_from(value: Decimal) -> Result<Self, FixedError> {
        Self::from_unscaled(value.unscaled_at(SCALE as i16)?).ok_or(FixedError::Overflow)
    }
}

macro_rules! from_integer {
    ($($ty:ty)*) => {$(
        impl<const DIGITS: u16, const SCALE: u16> TryFrom<$ty> for Fixed<DIGITS, SCALE> {
            type Error = FixedError;
            fn try_from(value: $ty) -> Result<Self, FixedError> {
                Self::try_from(Decimal::from(value))
            }
        }
    )*};
}

from_integer! { i16 u16 i32 u32 i64 u64 }

/// Rounds the shortest text that identifies the `f64` to this scale, ties away from zero.
impl<const DIGITS: u16, const SCALE: u16> TryFrom<f64> for Fixed<DIGITS, SCALE> {
    type Error = FixedError;
    fn try_from(value: f64) -> Result<Self, FixedError> {
        Self::rounded(Decimal::try_from(value)?)
    }
}

/// Exact: digits after the point that do not fit are [`FixedError::Inexact`] unless they are zeros. Accepts
/// digits, one point, a sign and IDL's final `d`.
impl<const DIGITS: u16, const SCALE: u16> FromStr for Fixed<DIGITS, SCALE> {
    type Err = FixedError;
    fn from_str(text: &str) -> Result<Self, FixedError> {
        Self::try_from(text.parse::<Decimal>()?)
    }
}

/// Shows the number with exactly `SCALE` digits after the point.
impl<const DIGITS: u16, const SCALE: u16> fmt::Display for Fixed<DIGITS, SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_decimal().fmt(f)
    }
}

impl<const DIGITS: u16, const SCALE: u16> fmt::Debug for Fixed<DIGITS, SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const DIGITS: u16, const SCALE: u16> Marshal for Fixed<DIGITS, SCALE> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        wire::write(w, self.unscaled, DIGITS);
        Ok(())
    }
}

impl<const DIGITS: u16, const SCALE: u16> Unmarshal for Fixed<DIGITS, SCALE> {
    // A peer that omits leading zeros sends at least the octet with the sign.
    const BYTES_MIN: usize = 1;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let () = Self::LEGAL;
        let unscaled = wire::read(r, DIGITS)?;
        Self::from_unscaled(unscaled).ok_or_else(|| r.malformed(MalformedKind::BadFixed))
    }
}

/// Whether a `fixed` type is legal: at most as many digits after the point as in all, and at most 31 zeros
/// before it.
pub(crate) fn is_legal(digits: u16, scale: i16) -> bool {
    let most = DIGITS_MAX as i16;
    (1..=DIGITS_MAX).contains(&digits) && (-most..=digits as i16).contains(&scale)
}

/// Why a decimal number does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedError {
    /// The number has more digits before the point than fit.
    Overflow,
    /// The number has digits after the point that do not fit.
    Inexact,
    /// A division by zero.
    DivisionByZero,
    /// The text is not a decimal number, or the `f64` is infinite or NaN.
    NotANumber,
}

impl fmt::Display for FixedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FixedError::Overflow => "the number has more digits before the point than fit",
            FixedError::Inexact => "the number has more digits after the point than fit",
            FixedError::DivisionByZero => "a division by zero",
            FixedError::NotANumber => "not a decimal number",
        })
    }
}

impl std::error::Error for FixedError {}

#[cfg(test)]
mod tests;
