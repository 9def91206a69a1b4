//! Requests that say the same as one before, but for their numbers and arguments: recognised by their bytes, and not read
//! again. Clients write the same header for each call of an operation of an object.

use std::ops::Range;

use super::read::{FLAGS_AT, PlainRequest};
use super::{Message, MessageHeader, RequestId, Response};
use crate::cdr::Reader;
use crate::version::{Encoding, Version};

/// What a request has said that had no more than it must, as a [`PlainRequest`] tells it.
#[derive(Debug)]
pub struct RequestHead {
    header: MessageHeader,
    response: Response,
    /// From the response flags to the end of the list of service contexts.
    bytes: Box<[u8]>,
    /// Where in it the operation is.
    operation: Range<usize>,
    /// Where in the message it ends, and where the arguments begin if there are any.
    end: usize,
    body_at: usize,
}

/// Bytes that are looked at for a [`Message::print`]. No request to an object of ours is shorter.
const PRINT_BYTES: usize = 64;

impl RequestHead {
    /// What a message says; `None` when it is not a plain request, or is longer than is worth keeping.
    pub fn of(message: &Message) -> Option<RequestHead> {
        let PlainRequest { response, operation, .. } = message.plain_request()?;
        let begin = operation.as_ptr().addr() - message.bytes().as_ptr().addr();
        let end = (begin + operation.len() + 1).next_multiple_of(4) + 4;
        let bytes = message.bytes().get(FLAGS_AT..end).filter(|bytes| bytes.len() <= HEAD_BYTES_MAX)?;
        let operation = begin - FLAGS_AT..begin - FLAGS_AT + operation.len();
        let (header, body_at) = (message.header(), end.next_multiple_of(8));
        Some(RequestHead { header, response, bytes: bytes.into(), operation, end, body_at })
    }

    /// Whether a message is a request that says the same.
    #[inline(always)] // a step of every call
    pub fn is_of(&self, message: &Message) -> bool {
        let MessageHeader { version, order, kind, .. } = message.header;
        (version, order, kind) == (Version::V1_2, self.header.order, self.header.kind)
            && message.bytes().get(FLAGS_AT..self.end) == Some(&*self.bytes)
    }

    /// What the caller wants to hear.
    #[inline]
    pub fn response(&self) -> Response {
        self.response
    }

    /// The operation, without the final NUL.
    #[inline]
    pub fn operation(&self) -> &[u8] {
        self.bytes.get(self.operation.clone()).unwrap_or_default()
    }

    /// The number of a request that says the same.
    #[inline(always)] // a step of every call
    pub fn id_of(&self, message: &Message) -> RequestId {
        let id = message.bytes().get(FLAGS_AT - 4..).and_then(|id| id.first_chunk());
        RequestId(self.header.order.number(id.copied().unwrap_or_default()))
    }

    /// A reader for the arguments of a request that says the same.
    #[inline(always)] // a step of every call
    pub fn arguments_of<'m>(&self, message: &'m Message, encoding: Encoding) -> Reader<'m> {
        // No message of GIOP 1.2 has joints.
        Reader::at(message.bytes(), self.body_at, Encoding { order: self.header.order, ..encoding })
    }
}

/// Longer ones are read each time.
const HEAD_BYTES_MAX: usize = 512;

impl Message {
    /// A number by which requests that say the same are found: two that differ seldom have the same one. It is made of the
    /// bytes in which keys of IronORB have the object, and behind them the operation; those of other keys may be alike for
    /// many objects.
    #[inline(always)] // a step of every call
    pub fn print(&self) -> u64 {
        let Some(bytes) = self.bytes().first_chunk::<PRINT_BYTES>() else { return 0 };
        let [.., o0, o1, o2, o3, o4, o5, o6, o7, _, n0, n1, n2, n3, n4, n5, n6, n7] = *bytes;
        let object = u64::from_ne_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let operation = u64::from_ne_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        (object ^ operation).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
