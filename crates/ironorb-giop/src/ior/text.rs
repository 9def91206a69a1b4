//! The `IOR:` form: a reference as an encapsulation in hexadecimal (CORBA 3.3 part 2, 7.6.9).

use std::fmt;
use std::str::FromStr;

use super::{ENCODING, Ior};
use crate::cdr::{Reader, Writer};
use crate::url::{UrlError, UrlErrorKind};
use crate::version::ByteOrder;

/// Shows `IOR:` and lower-case digits, in this processor's byte order. A type id is cut at a NUL, which
/// references that were read never contain.
impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let type_id = self.type_id.split('\0').next().unwrap_or_default();
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, ENCODING);
        w.write_bool(ENCODING.order == ByteOrder::Little);
        w.write_str(type_id).and_then(|()| w.put(&self.profiles)).map_err(|_| fmt::Error)?; // over 4 GiB
        let mut text = String::with_capacity(PREFIX.len() + 2 * bytes.len());
        text.push_str(PREFIX);
        for byte in bytes {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        f.pad(&text)
    }
}

impl Ior {
    /// Reads the `IOR:` form and returns the reference with the number of octets that follow it. Zeros directly behind the reference do
    /// not count, because some ORBs pad with them; Orbix leaves other octets. Accepts digits and prefix in either case, and
    /// ignores white space around the text.
    pub fn parse_text(text: &str) -> Result<(Ior, usize), UrlError> {
        let from = text.len() - text.trim_ascii_start().len();
        let text = text.trim_ascii_end();
        let is_ior =
            text.as_bytes()[from..].get(..PREFIX.len()).is_some_and(|p| p.eq_ignore_ascii_case(b"IOR:"));
        if !is_ior {
            return Err(UrlError::new(UrlErrorKind::UnknownScheme, from));
        }
        let digits_at = from + PREFIX.len();
        let bytes =
            hex(&text.as_bytes()[digits_at..]).map_err(|(kind, at)| UrlError::new(kind, digits_at + at))?;
        let refuse = |kind, at: usize| UrlError::new(UrlErrorKind::IorData(kind), digits_at + 2 * at);
        let read = || {
            let mut r = Reader::encapsulated(&bytes, ENCODING)?;
            let ior: Ior = r.get()?;
            Ok((ior, r.position()))
        };
        let (ior, end) = read().map_err(|e: crate::error::Malformed| refuse(e.kind, e.at as usize))?;
        let padding = bytes[end..].iter().take_while(|&&byte| byte == 0).count();
        Ok((ior, bytes.len() - end - padding))
    }
}

/// Reads as [`Ior::parse_text`] does, and ignores octets behind the reference.
impl FromStr for Ior {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Ior, UrlError> {
        Ior::parse_text(text).map(|(ior, _)| ior)
    }
}

/// The bytes, or the error and the index of the wrong digit.
fn hex(digits: &[u8]) -> Result<Vec<u8>, (UrlErrorKind, usize)> {
    let value = |at: usize| {
        let digit = char::from(digits[at]).to_digit(16);
        digit.map(|d| d as u8).ok_or((UrlErrorKind::BadHexDigit, at))
    };
    let bytes = (0..digits.len() / 2)
        .map(|i| Ok((value(2 * i)? << 4) | value(2 * i + 1)?))
        .collect::<Result<Vec<u8>, _>>()?;
    match digits.len() % 2 {
        0 => Ok(bytes),
        _ => {
            value(digits.len() - 1)?;
            Err((UrlErrorKind::OddHexLength, digits.len()))
        }
    }
}

const PREFIX: &str = "IOR:";
const DIGITS: &[u8; 16] = b"0123456789abcdef";
