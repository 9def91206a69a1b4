//! Wide characters on the wire (CORBA 3.3 part 2, 9.3.1.6 and 9.3.2.7). Their form depends on the GIOP
//! version, 1.1 or 1.2, and on the code set. GIOP 1.0 has no wide characters.

use std::str::Utf8Error;

use super::{Reader, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::version::{CodeSetId, Version, WideCharSet};

impl Reader<'_> {
    /// Reads a `wchar` in the negotiated code set. GIOP 1.2 sends a length in octets and these octets, GIOP
    /// 1.1 one 16-bit unit.
    pub fn read_wchar(&mut self) -> Result<char, Malformed> {
        let only = |mut chars: std::str::Chars<'_>| chars.next().filter(|_| chars.next().is_none());
        let not_one = |r: &Self| r.malformed(MalformedKind::NotUtf16);
        match self.wide_form()? {
            (Version::V1_2, set) => {
                let length = self.read_u8()?;
                let bytes = self.read_bytes_split(usize::from(length))?;
                let text = self.wide_text(&bytes, set)?;
                only(text.chars()).ok_or_else(|| not_one(self))
            }
            _ => {
                let unit = self.read_u16()?;
                let lone = |r: &Self| Malformed::in_text(MalformedKind::NotUtf16, r.position() - 2, unit);
                char::from_u32(u32::from(unit)).ok_or_else(|| lone(self))
            }
        }
    }

    /// Reads a `wstring` in the negotiated code set. GIOP 1.2 sends a length in octets and these octets. GIOP
    /// 1.1 sends a length in 16-bit units, these units and a zero.
    pub fn read_wstr(&mut self) -> Result<String, Malformed> {
        match self.wide_form()? {
            (Version::V1_2, set) => {
                let length = self.read_u32()? as usize;
                let bytes = self.read_bytes_split(length)?;
                self.wide_text(&bytes, set)
            }
            _ => {
                let count = self.read_length(2)?;
                let mut units = self.number_vec::<u16>(count)?;
                if !matches!(units.pop(), None | Some(0)) {
                    return Err(self.malformed(MalformedKind::StringNotTerminated));
                }
                // The reader is behind the units and the final zero; this is where the units begin.
                let at = self.position().saturating_sub(2 * (units.len() + 1));
                decoded(units.iter().copied(), at)
            }
        }
    }

    /// The version and code set under which wide characters are read, if there are any.
    fn wide_form(&self) -> Result<(Version, WideCharSet), Malformed> {
        match (self.encoding().version, self.encoding().wide_set) {
            (Version::V1_0, _) => Err(self.malformed(MalformedKind::WideInGiop10)),
            (_, None) => Err(self.malformed(MalformedKind::WideNotNegotiated)),
            // The characters of this set have no 16-bit units.
            (Version::V1_1, Some(WideCharSet::Utf8)) => Err(self.malformed(MalformedKind::WideNotNegotiated)),
            (version, Some(set)) => Ok((version, set)),
        }
    }

    /// Decodes the octets of wide characters of GIOP 1.2.
    fn wide_text(&self, bytes: &[u8], set: WideCharSet) -> Result<String, Malformed> {
        if set == WideCharSet::Utf8 {
            return match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(e) => from_cesu8(bytes).ok_or_else(|| {
                    let at = self.position().saturating_sub(bytes.len());
                    not_utf8(bytes, &e, at)
                }),
            };
        }
        // 9.3.1.6: big-endian unless a byte order mark says otherwise. ORBs that send UCS-2 follow this rule
        // too.
        let (pairs, []) = bytes.as_chunks::<2>() else { return Err(self.malformed(MalformedKind::NotUtf16)) };
        let (pairs, unit): (_, fn([u8; 2]) -> u16) = match pairs {
            [[0xFE, 0xFF], rest @ ..] => (rest, u16::from_be_bytes),
            [[0xFF, 0xFE], rest @ ..] => (rest, u16::from_le_bytes),
            all => (all, u16::from_be_bytes),
        };
        decoded(pairs.iter().map(|&pair| unit(pair)), self.position().saturating_sub(2 * pairs.len()))
    }
}

/// Decodes UTF-16 units that begin at offset `at`.
fn decoded(units: impl Iterator<Item = u16>, at: usize) -> Result<String, Malformed> {
    let mut text = String::new();
    for c in char::decode_utf16(units) {
        match c {
            Ok(c) => text.push(c),
            Err(lone) => {
                let at = at + 2 * text.encode_utf16().count();
                return Err(Malformed::in_text(MalformedKind::NotUtf16, at, lone.unpaired_surrogate()));
            }
        }
    }
    Ok(text)
}

/// The error of octets at offset `at` that are not UTF-8.
#[cold]
pub(super) fn not_utf8(bytes: &[u8], error: &Utf8Error, at: usize) -> Malformed {
    let valid = error.valid_up_to();
    let octet = bytes.get(valid).copied().unwrap_or_default();
    Malformed::in_text(MalformedKind::NotInCharSet, at + valid, u16::from(octet))
}

impl Writer<'_> {
    /// Appends a `wchar` in the negotiated code set. GIOP 1.2 sends a length in octets and these octets, GIOP
    /// 1.1 one 16-bit unit.
    pub fn write_wchar(&mut self, value: char) -> Result<(), Misuse> {
        match self.wide_form()? {
            (Version::V1_2, WideCharSet::Utf8) => {
                let mut bytes = [0; 4];
                let bytes = value.encode_utf8(&mut bytes).as_bytes();
                self.write_u8(bytes.len() as u8);
                self.write_bytes(bytes);
            }
            (Version::V1_2, set) => {
                let mut units = [0; 2];
                let units = representable(value, set)?.encode_utf16(&mut units);
                let mark = byte_order_mark(value);
                self.write_u8(2 * units.len() as u8 + mark.len() as u8);
                self.write_bytes(mark);
                units.iter().for_each(|unit| self.write_bytes(&unit.to_be_bytes()));
            }
            _ => self.write_u16(
                u16::try_from(u32::from(value))
                    .map_err(|_| Misuse::WideNeedsSurrogates { character: value })?,
            ),
        }
        Ok(())
    }

    /// Appends a `wstring` in the negotiated code set. GIOP 1.2 sends a length in octets and these octets,
    /// without a terminator. GIOP 1.1 sends a length in 16-bit units, these units and a zero.
    pub fn write_wstr(&mut self, text: &str) -> Result<(), Misuse> {
        let (version, set) = self.wide_form()?;
        if (version, set) == (Version::V1_2, WideCharSet::Utf8) {
            return self.write_octets(text.as_bytes());
        }
        let mut count = 0;
        for c in text.chars() {
            count += representable(c, set)?.len_utf16();
        }
        if version == Version::V1_2 {
            let mark = text.chars().next().map_or(&[][..], byte_order_mark);
            self.write_length(count.checked_mul(2).ok_or(Misuse::TooLong)? + mark.len())?;
            self.write_bytes(mark);
            text.encode_utf16().for_each(|unit| self.write_bytes(&unit.to_be_bytes()));
        } else {
            self.write_length(count + 1)?;
            text.encode_utf16().chain([0]).for_each(|unit| self.write_u16(unit));
        }
        Ok(())
    }

    /// The version and code set under which wide characters are written, if there are any.
    fn wide_form(&self) -> Result<(Version, WideCharSet), Misuse> {
        match (self.encoding().version, self.encoding().wide_set) {
            (Version::V1_0, _) => Err(Misuse::WideInGiop10),
            (_, None) | (Version::V1_1, Some(WideCharSet::Utf8)) => Err(Misuse::WideNotNegotiated),
            (version, Some(set)) => Ok((version, set)),
        }
    }
}

#[cold]
fn not_in(set: WideCharSet, character: char) -> Misuse {
    Misuse::NotInCharSet { character, set: CodeSetId(set.registry_id()) }
}

fn representable(c: char, set: WideCharSet) -> Result<char, Misuse> {
    if set == WideCharSet::Ucs2 && c.len_utf16() > 1 { Err(not_in(set, c)) } else { Ok(c) }
}

/// The mark that precedes big-endian UTF-16 whose first character would be taken for a byte order mark
/// (9.3.1.6).
fn byte_order_mark(first: char) -> &'static [u8] {
    if matches!(first, '\u{FEFF}' | '\u{FFFE}') { &[0xFE, 0xFF] } else { &[] }
}

/// Decodes the UTF-8 of ORBs that hold strings in UTF-16 and encode each unit by itself: a character beyond
/// the first 65,536 comes as two surrogates of three octets each.
fn from_cesu8(bytes: &[u8]) -> Option<String> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, tail) = match (first, tail) {
            (0..=0x7F, tail) => (u16::from(*first), tail),
            (0xC2..=0xDF, [b, tail @ ..]) => (u16::from(first & 0x1F) << 6 | continued(*b)?, tail),
            (0xE0..=0xEF, [b, c, tail @ ..]) => {
                (u16::from(first & 0x0F) << 12 | continued(*b)? << 6 | continued(*c)?, tail)
            }
            _ => return None,
        };
        units.push(unit);
        rest = tail;
    }
    String::from_utf16(&units).ok()
}

fn continued(byte: u8) -> Option<u16> {
    (byte & 0xC0 == 0x80).then_some(u16::from(byte & 0x3F))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{ByteOrder, Encoding};

    const ALL: [WideCharSet; 3] = [WideCharSet::Utf16, WideCharSet::Ucs2, WideCharSet::Utf8];

    fn encoding(version: Version, set: WideCharSet) -> Encoding {
        Encoding { version, order: ByteOrder::Big, wide_set: Some(set), ..Encoding::NATIVE }
    }

    fn written(encoding: Encoding, text: &str) -> Result<Vec<u8>, Misuse> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, encoding).write_wstr(text)?;
        Ok(bytes)
    }

    /// Checks both writing and reading.
    fn check(version: Version, set: WideCharSet, text: &str, bytes: &[u8]) {
        let encoding = encoding(version, set);
        assert_eq!(written(encoding, text).unwrap(), bytes);
        assert_eq!(Reader::new(bytes, encoding).read_wstr().unwrap(), text);
    }

    #[test]
    fn golden_bytes_of_every_form() {
        use Version::*;
        use WideCharSet::*;
        check(V1_2, Utf16, "a\u{20AC}", b"\0\0\0\x04\0a\x20\xAC");
        check(V1_2, Ucs2, "a\u{20AC}", b"\0\0\0\x04\0a\x20\xAC");
        check(V1_2, Utf8, "a\u{20AC}", b"\0\0\0\x04a\xE2\x82\xAC");
        check(V1_1, Utf16, "a\u{20AC}", b"\0\0\0\x03\0a\x20\xAC\0\0");
        check(V1_1, Ucs2, "a\u{20AC}", b"\0\0\0\x03\0a\x20\xAC\0\0");
        check(V1_2, Utf16, "\u{1F600}", b"\0\0\0\x04\xD8\x3D\xDE\x00");
        check(V1_2, Utf16, "\u{FEFF}x", b"\0\0\0\x06\xFE\xFF\xFE\xFF\0x");
        check(V1_2, Utf16, "", b"\0\0\0\0");
    }

    #[test]
    fn byte_order_marks_are_heeded_in_each_set_of_units() {
        for set in [WideCharSet::Utf16, WideCharSet::Ucs2] {
            let read = |bytes| Reader::new(bytes, encoding(Version::V1_2, set)).read_wstr().unwrap();
            assert_eq!(read(b"\0\0\0\x04\xFF\xFE\xAC\x20"), "\u{20AC}");
            assert_eq!(read(b"\0\0\0\x04\xFE\xFF\x20\xAC"), "\u{20AC}");
            let wchar = |bytes| Reader::new(bytes, encoding(Version::V1_2, set)).read_wchar().unwrap();
            assert_eq!(wchar(b"\x04\xFF\xFE\xAC\x20"), '\u{20AC}');
        }
    }

    #[test]
    fn every_wchar_comes_back_in_each_set_that_has_it() {
        for set in ALL {
            for c in ['a', '\0', '\u{FEFF}', '\u{FFFE}', '\u{20AC}', '\u{1F600}'] {
                let encoding = encoding(Version::V1_2, set);
                let mut bytes = Vec::new();
                match Writer::new(&mut bytes, encoding).write_wchar(c) {
                    Ok(()) => assert_eq!(Reader::new(&bytes, encoding).read_wchar(), Ok(c), "{set:?}"),
                    Err(misuse) => {
                        let expected = not_in(WideCharSet::Ucs2, '\u{1F600}');
                        assert_eq!((misuse, set, c), (expected, WideCharSet::Ucs2, '\u{1F600}'));
                    }
                }
            }
        }
    }

    #[test]
    fn utf8_of_surrogates_is_decoded() {
        let read = |bytes: &[u8]| {
            let mut all = vec![0, 0, 0, bytes.len() as u8];
            all.extend_from_slice(bytes);
            Reader::new(&all, encoding(Version::V1_2, WideCharSet::Utf8)).read_wstr()
        };
        assert_eq!(read(b"x\xED\xA0\xBD\xED\xB8\x80").unwrap(), "x\u{1F600}");
        for bad in [&b"\xED\xA0\xBD"[..], b"\xED\xA0", b"\xFF", b"\xC0\x80", b"\x80"] {
            assert_eq!(read(bad).unwrap_err().kind, MalformedKind::NotInCharSet, "{bad:?}");
        }
    }

    #[test]
    fn without_an_agreement_there_are_no_wide_characters() {
        let none = Encoding { wide_set: None, ..Encoding::NATIVE };
        assert_eq!(written(none, ""), Err(Misuse::WideNotNegotiated));
        let kind = |encoding| Reader::new(&[0; 8], encoding).read_wstr().unwrap_err().kind;
        assert_eq!(kind(none), MalformedKind::WideNotNegotiated);
        let utf8_in_1_1 = encoding(Version::V1_1, WideCharSet::Utf8);
        assert_eq!(written(utf8_in_1_1, "a"), Err(Misuse::WideNotNegotiated));
        assert_eq!(kind(utf8_in_1_1), MalformedKind::WideNotNegotiated);
        for set in ALL {
            let in_1_0 = encoding(Version::V1_0, set);
            assert_eq!(written(in_1_0, "a"), Err(Misuse::WideInGiop10));
            assert_eq!(kind(in_1_0), MalformedKind::WideInGiop10);
        }
    }
}
