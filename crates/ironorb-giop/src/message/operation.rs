//! Operation names as requests carry them.

use super::write::PIECE_BYTES;

/// An operation name, and with it the constant bytes that follow in a request header, where they have been
/// computed.
#[derive(Debug, Clone, Copy)]
pub struct OperationName<'o> {
    pub(super) text: &'o str,
    pub(super) tail: &'o OperationTail,
}

impl<'o> OperationName<'o> {
    /// A name with the tail computed for it.
    #[inline]
    pub fn with_tail(text: &'o str, tail: &'o OperationTail) -> Self {
        OperationName { text, tail }
    }

    /// The name on the wire.
    #[inline]
    pub fn text(&self) -> &'o str {
        self.text
    }
}

impl<'o> From<&'o str> for OperationName<'o> {
    #[inline]
    fn from(text: &'o str) -> Self {
        OperationName { text, tail: &OperationTail::NONE }
    }
}

/// The second half of a GIOP 1.2 request header without service contexts: the operation, which starts at a
/// multiple of 4 for every target, and an empty list. In this processor's byte order. A constant for the
/// operations of generated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationTail {
    /// The bytes, followed by zeros for the padding before the arguments.
    pub(super) bytes: [u8; TAIL_BYTES],
    /// 0 if the name is too long. The header is then written field by field.
    pub(super) length: usize,
}

const TAIL_BYTES: usize = PIECE_BYTES + 8;

impl OperationTail {
    /// A tail without bytes.
    pub const NONE: OperationTail = OperationTail { bytes: [0; TAIL_BYTES], length: 0 };

    /// The tail of a name. Names of more than 55 bytes have none.
    pub const fn new(name: &str) -> OperationTail {
        let name = name.as_bytes();
        let length = 4 + (name.len() + 1).next_multiple_of(4) + 4;
        if length > PIECE_BYTES {
            return OperationTail::NONE;
        }
        let mut bytes = [0; TAIL_BYTES];
        let size = (name.len() as u32 + 1).to_ne_bytes();
        let mut at = 0;
        while at < size.len() {
            bytes[at] = size[at];
            at += 1;
        }
        let mut at = 0;
        while at < name.len() {
            bytes[size.len() + at] = name[at];
            at += 1;
        }
        OperationTail { bytes, length }
    }
}
