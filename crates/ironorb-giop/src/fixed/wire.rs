//! `fixed` on the wire: packed decimal digits, two per octet, with the sign in the last half octet (CORBA 3.3
//! part 2, 9.3.2.8).

use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind};

const PLUS: u8 = 0xC;
const MINUS: u8 = 0xD;

/// The number of octets for this many digits.
fn octets_of(digits: u16) -> usize {
    usize::from(digits / 2 + 1)
}

/// Appends a number of at most `digits` digits in `digits / 2 + 1` octets.
pub(crate) fn write(w: &mut Writer<'_>, unscaled: i128, digits: u16) {
    let mut octets = [0u8; 32];
    let octets = &mut octets[..octets_of(digits).min(32)];
    let mut low = if unscaled < 0 { MINUS } else { PLUS };
    let mut put = |octet: &mut u8, pair: u64| {
        *octet = ((pair % 10) as u8) << 4 | low;
        low = (pair / 10) as u8;
    };
    match u64::try_from(unscaled.unsigned_abs()) {
        // Divisions of more than 64 bits are many times slower.
        Ok(mut rest) => {
            for octet in octets.iter_mut().rev() {
                put(octet, rest % 100);
                rest /= 100;
            }
        }
        Err(_) => {
            let mut rest = unscaled.unsigned_abs();
            for octet in octets.iter_mut().rev() {
                put(octet, (rest % 100) as u64);
                rest /= 100;
            }
        }
    }
    w.write_bytes(octets);
}

/// Copies a number. A complete number is copied as it is; omitted leading zeros are restored.
pub(crate) fn copy(r: &mut Reader<'_>, w: &mut Writer<'_>, digits: u16) -> Result<(), Malformed> {
    if let Some(octets) = r.ahead(octets_of(digits))
        && is_whole(octets, digits)
    {
        w.write_bytes(r.read_bytes(octets.len())?);
        return Ok(());
    }
    let unscaled = read(r, digits)?;
    write(w, unscaled, digits);
    Ok(())
}

/// Whether the octets are digits up to a sign in the last half octet, without an excess digit in front.
fn is_whole(octets: &[u8], digits: u16) -> bool {
    let Some((last, rest)) = octets.split_last() else { return false };
    let first = octets[0] >> 4;
    rest.iter().all(|octet| octet >> 4 < 10 && octet & 0xF < 10)
        && last >> 4 < 10
        && matches!(last & 0xF, PLUS | MINUS)
        && (first == 0 || digits % 2 == 1)
}

/// Reads a number of at most `digits` digits.
///
/// Some peers omit leading zeros, and whole octets with them. The end of the number is still certain: only
/// the last octet has a sign in its lower half, and a sign is not a digit.
pub(crate) fn read(r: &mut Reader<'_>, digits: u16) -> Result<i128, Malformed> {
    let mut number = Number::default();
    for _ in 0..octets_of(digits) {
        let octet = r.read_u8()?;
        let bad = |r: &Reader<'_>| r.malformed(MalformedKind::BadFixed);
        number.push(octet >> 4).ok_or_else(|| bad(r))?;
        match octet & 0xF {
            PLUS => return number.within(digits).ok_or_else(|| bad(r)),
            MINUS => return number.within(digits).map(|number| -number).ok_or_else(|| bad(r)),
            digit => number.push(digit).ok_or_else(|| bad(r))?,
        }
    }
    Err(r.malformed(MalformedKind::BadFixed))
}

/// Collects digits: the last up to 18 in one word, which is fast, and the digits before them.
#[derive(Default)]
struct Number {
    before: i128,
    word: u64,
    digits: u32,
}

impl Number {
    fn push(&mut self, digit: u8) -> Option<()> {
        if self.digits == 18 {
            self.before = self.whole()?;
            (self.word, self.digits) = (0, 0);
        }
        self.word = self.word * 10 + u64::from(digit);
        self.digits += 1;
        (digit < 10).then_some(())
    }

    fn whole(&self) -> Option<i128> {
        if self.before == 0 {
            return Some(i128::from(self.word));
        }
        self.before.checked_mul(10i128.pow(self.digits))?.checked_add(i128::from(self.word))
    }

    /// The number, if it has at most `digits` digits.
    fn within(&self, digits: u16) -> Option<i128> {
        self.whole().filter(|number| *number < 10i128.pow(u32::from(digits.min(31))))
    }
}
