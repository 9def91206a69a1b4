//! Base64 (RFC 4648, clause 4).

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes octets, with `=` padding.
pub(super) fn encode(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, octet| bits << 8 | u32::from(*octet)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Decodes text. Padding may be missing. Other characters, and bits that would be lost, are errors.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let padding = text.len() - letters.len();
    if letters.len() % 4 == 1 || padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut octets = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for &letter in group {
            bits = bits << 6 | value(letter)?;
        }
        bits <<= 6 * (4 - group.len());
        let whole = group.len() - 1;
        if bits & (0xFF_FFFF >> (8 * whole)) != 0 {
            return None;
        }
        octets.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Some(octets)
}

fn value(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in examples {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
            assert_eq!(decode(coded.trim_end_matches('=')).as_deref(), Some(plain.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for wrong in ["Z", "Zg=", "Zh==", "Zm9=", "Zm9v====", "====", "Z g=", "Zm9v\n", "=Zm9"] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
    }
}
