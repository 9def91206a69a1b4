//! Short texts in place, for records that are made without memory of their own.

use std::fmt;

/// At most `N` bytes of a text. What is longer is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortText<const N: usize> {
    bytes: [u8; N],
    length: u8,
}

impl<const N: usize> ShortText<N> {
    /// No text.
    pub(crate) const EMPTY: ShortText<N> = ShortText { bytes: [0; N], length: 0 };

    /// The beginning of a text.
    pub(crate) fn of(text: &[u8]) -> ShortText<N> {
        let length = text.len().min(N).min(usize::from(u8::MAX));
        let mut short = ShortText::EMPTY;
        short.bytes[..length].copy_from_slice(&text[..length]);
        short.length = length as u8;
        short
    }
}

impl<const N: usize> fmt::Display for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes[..usize::from(self.length)]))
    }
}

impl<const N: usize> fmt::Debug for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(ShortText::<4>::of(b"valves").to_string(), "valv");
        assert_eq!(ShortText::<8>::of(b"valves").to_string(), "valves");
        assert_eq!(ShortText::<8>::EMPTY.to_string(), "");
    }
}
