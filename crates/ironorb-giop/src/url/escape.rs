//! `%` escapes (RFC 2396, as CORBA 3.3 part 2, 7.6.10.2 uses them).

use std::fmt;

use super::{UrlError, UrlErrorKind};

/// The octets of an escaped text that starts at byte `at` of the URL.
pub(super) fn unescape(text: &str, at: usize) -> Result<Vec<u8>, UrlError> {
    let bytes = text.as_bytes();
    let mut octets = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'%' => {
                let digit = |i: usize| bytes.get(i).and_then(|&b| char::from(b).to_digit(16));
                let (Some(high), Some(low)) = (digit(i + 1), digit(i + 2)) else {
                    return Err(UrlError::new(UrlErrorKind::BadEscape, at + i));
                };
                octets.push((high * 16 + low) as u8);
                i += 3;
            }
            _ if byte.is_ascii_control() => {
                return Err(UrlError::new(UrlErrorKind::ControlCharacter, at + i));
            }
            _ => {
                octets.push(byte);
                i += 1;
            }
        }
    }
    Ok(octets)
}

/// Writes octets, and escapes all that the standard does not permit.
pub(super) fn write_escaped(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    octets.iter().try_for_each(|&octet| match octet {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => write!(f, "{}", char::from(octet)),
        _ if UNESCAPED.contains(&octet) => write!(f, "{}", char::from(octet)),
        _ => write!(f, "%{octet:02x}"),
    })
}

/// Writes the path of a socket, and escapes the characters that would end it.
pub(super) fn write_escaped_path(f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
    path.bytes().try_for_each(|octet| match octet {
        b':' | b',' => write!(f, "%{octet:02x}"),
        _ => write_escaped(f, &[octet]),
    })
}

const UNESCAPED: &[u8] = b";/:?@&=+$,-_!~*'().";
