//! The IDL type `long double`.

mod text;

pub use text::NotALongDouble;

use super::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};
use crate::version::ByteOrder;

/// An IDL `long double`: IEEE 754 binary128, stored as its bits because stable Rust has no such type.
///
/// On the wire it takes 16 bytes and is aligned to 8 (CORBA 3.3 part 2, 9.3.1.4).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LongDouble(u128);

const EXPONENT_BIAS: i32 = 16383;
const EXPONENT_MAX: i32 = 0x7FFF;
const FRACTION_BITS: u32 = 112;
const FRACTION: u128 = (1 << FRACTION_BITS) - 1;

impl LongDouble {
    /// The number with these binary128 bits.
    pub const fn from_bits(bits: u128) -> Self {
        LongDouble(bits)
    }

    /// The binary128 bits.
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// The nearest `f64`. Ties go to the even one, and numbers out of range become infinite.
    pub fn to_f64(self) -> f64 {
        let sign = ((self.0 >> 127) as u64) << 63;
        let exponent = self.biased_exponent() - EXPONENT_BIAS;
        let fraction = self.0 & FRACTION;
        let bits = match self.biased_exponent() {
            EXPONENT_MAX if fraction != 0 => f64::NAN.to_bits(),
            EXPONENT_MAX => f64::INFINITY.to_bits(),
            _ if exponent > 1023 => f64::INFINITY.to_bits(),
            // The leading one adds one to the exponent, and so does a carry from rounding.
            _ if exponent >= -1022 => {
                let significand = round_shift((1 << FRACTION_BITS) | fraction, FRACTION_BITS - 52);
                (((exponent + 1022) as u64) << 52) + significand
            }
            // Subnormal or zero. Numbers that are subnormal as binary128 are far below this range.
            _ if exponent >= -1076 => {
                let shift = FRACTION_BITS - 52 + (-1022 - exponent) as u32;
                round_shift((1 << FRACTION_BITS) | fraction, shift)
            }
            _ => 0,
        };
        f64::from_bits(sign | bits)
    }

    /// Whether this is not a number (NaN).
    pub fn is_nan(self) -> bool {
        self.biased_exponent() == EXPONENT_MAX && self.0 & FRACTION != 0
    }

    /// Whether this is infinity, of either sign.
    pub fn is_infinite(self) -> bool {
        self.biased_exponent() == EXPONENT_MAX && self.0 & FRACTION == 0
    }

    fn biased_exponent(self) -> i32 {
        ((self.0 >> FRACTION_BITS) & 0x7FFF) as i32
    }
}

/// Shifts right and rounds; ties go to the even number.
fn round_shift(value: u128, shift: u32) -> u64 {
    if shift > 120 {
        return 0;
    }
    let (kept, half) = (value >> shift, 1u128 << (shift - 1));
    let lost = value & ((1 << shift) - 1);
    (kept + u128::from(lost > half || (lost == half && kept & 1 == 1))) as u64
}

impl From<f64> for LongDouble {
    /// Exact: every `f64` is a binary128.
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = ((bits >> 52) & 0x7FF) as i32;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let magnitude = match exponent {
            0 if fraction == 0 => 0,
            0 => {
                // Subnormal: shift the leading one to the position of the implicit one.
                let shift = fraction.leading_zeros() - (128 - 53);
                let exponent = (EXPONENT_BIAS - 1022 - shift as i32) as u128;
                let fraction = (fraction << shift) & ((1 << 52) - 1);
                (exponent << FRACTION_BITS) | (fraction << (FRACTION_BITS - 52))
            }
            0x7FF => (0x7FFF << FRACTION_BITS) | (fraction << (FRACTION_BITS - 52)),
            e => (((e - 1023 + EXPONENT_BIAS) as u128) << FRACTION_BITS) | (fraction << (FRACTION_BITS - 52)),
        };
        LongDouble(sign | magnitude)
    }
}

impl Marshal for LongDouble {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.note_number(8, 16);
        w.align(8);
        w.write_bytes(&match w.encoding().order {
            ByteOrder::Big => self.0.to_be_bytes(),
            ByteOrder::Little => self.0.to_le_bytes(),
        });
        Ok(())
    }
}

impl Unmarshal for LongDouble {
    const BYTES_MIN: usize = 16;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (first, second) = (u128::from(r.read_u64()?), u128::from(r.read_u64()?));
        Ok(LongDouble(match r.encoding().order {
            ByteOrder::Big => first << 64 | second,
            ByteOrder::Little => second << 64 | first,
        }))
    }
}
