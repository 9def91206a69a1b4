//! `fixed` on the wire: packed decimal digits, two to an octet, the sign in the last half (CORBA 3.3 part 2, 9.3.2.8).

use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind};

const PLUS: u8 = 0xC;
const MINUS: u8 = 0xD;

/// Appends a number of at most `digits` digits in `digits / 2 + 1` octets.
pub(crate) fn write(w: &mut Writer<'_>, unscaled: i128, digits: u16) {
    let mut octets = [0u8; 32];
    let mut rest = unscaled.unsigned_abs();
    let mut low = if unscaled < 0 { MINUS } else { PLUS };
    let count = usize::from(digits / 2 + 1).min(octets.len());
    for octet in octets[..count].iter_mut().rev() {
        *octet = ((rest % 10) as u8) << 4 | low;
        low = (rest / 10 % 10) as u8;
        rest /= 100;
    }
    w.write_bytes(&octets[..count]);
}

/// Reads a number of at most `digits` digits.
///
/// Some peers leave out leading zeros and with them whole octets. Where the number ends is certain all the same:
/// only the last octet has a sign in its lower half, and a sign is no digit.
pub(crate) fn read(r: &mut Reader<'_>, digits: u16) -> Result<i128, Malformed> {
    let mut unscaled = 0i128;
    let mut push = |r: &Reader<'_>, digit: u8| -> Result<(), Malformed> {
        let value = unscaled.checked_mul(10).and_then(|ten| ten.checked_add(i128::from(digit)));
        unscaled = value.filter(|_| digit < 10).ok_or_else(|| r.malformed(MalformedKind::BadFixed))?;
        Ok(())
    };
    for _ in 0..digits / 2 + 1 {
        let octet = r.read_u8()?;
        push(r, octet >> 4)?;
        match octet & 0xF {
            PLUS => return Ok(unscaled),
            MINUS => return Ok(-unscaled),
            digit => push(r, digit)?,
        }
    }
    Err(r.malformed(MalformedKind::BadFixed))
}
