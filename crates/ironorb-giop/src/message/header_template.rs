//! Requests that say the same as one before, but for their numbers and arguments, and perhaps for the object: recognised by
//! their bytes, and not read again. Clients write the same header for each call of an operation of an object.

use std::ops::Range;

use super::read::{FLAGS_AT, KEY_AT, PlainRequest};
use super::{Message, MessageHeader, RequestId, Response};
use crate::cdr::Reader;
use crate::version::{Encoding, Version};

/// What a request has said that had no more than it must, as a [`PlainRequest`] tells it.
#[derive(Debug)]
pub struct HeaderTemplate {
    header: MessageHeader,
    response: Response,
    /// From the response flags to the end of the list of service contexts.
    bytes: Box<[u8]>,
    /// Where in it is what others may say in another way: the end of the object key.
    open: Range<usize>,
    operation: Box<[u8]>,
    /// Where in the message it ends, and where the arguments begin if there are any.
    end: usize,
    body_at: usize,
}

impl HeaderTemplate {
    /// What a message says, in whose object key so many octets at the end tell objects apart. `None` when it is not a plain
    /// request, or is longer than is worth keeping.
    pub fn of(message: &Message, open: usize) -> Option<HeaderTemplate> {
        let PlainRequest { response, operation, object_key, .. } = message.plain_request()?;
        let begin = operation.as_ptr().addr() - message.bytes().as_ptr().addr();
        let end = (begin + operation.len() + 1).next_multiple_of(4) + 4;
        let bytes = message.bytes().get(FLAGS_AT..end).filter(|bytes| bytes.len() <= HEAD_BYTES_MAX)?;
        let key_end = KEY_AT - FLAGS_AT + object_key.len();
        let open = key_end - open.min(object_key.len())..key_end;
        let (header, body_at) = (message.header(), end.next_multiple_of(8));
        let (bytes, operation) = (bytes.into(), operation.into());
        Some(HeaderTemplate { header, response, bytes, open, operation, end, body_at })
    }

    /// Whether a message is a request that says the same.
    #[inline(always)] // a step of every call
    pub fn is_of(&self, message: &Message) -> bool {
        self.said_by(message).is_some_and(|said| said == &*self.bytes)
    }

    /// Whether a message is a request that says the same, perhaps of another object; gives what it says of that.
    #[inline(always)] // a step of every call
    pub fn object_of<'m>(&self, message: &'m Message) -> Option<&'m [u8]> {
        let (said, known) = (self.said_by(message)?, &*self.bytes);
        let Range { start, end } = self.open;
        let is_like = said.get(..start)? == known.get(..start)? && said.get(end..)? == known.get(end..)?;
        said.get(start..end).filter(|_| is_like)
    }

    /// What a message has where the head is, if its header is like that of this.
    #[inline(always)] // a step of every call
    fn said_by<'m>(&self, message: &'m Message) -> Option<&'m [u8]> {
        let MessageHeader { version, order, kind, .. } = message.header;
        let is_like = (version, order, kind) == (Version::V1_2, self.header.order, self.header.kind);
        message.bytes().get(FLAGS_AT..self.end).filter(|_| is_like)
    }

    /// What the caller wants to hear.
    #[inline]
    pub fn response(&self) -> Response {
        self.response
    }

    /// The operation, without the final NUL.
    #[inline]
    pub fn operation(&self) -> &[u8] {
        &self.operation
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

/// Numbers by which requests that say the same are found; those of others are seldom the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFingerprint {
    /// Of all but the object's own part of the key.
    pub shape: u64,
    /// Of the end of the key.
    pub object: u64,
}

impl Message {
    /// The print of a request; `None` of what is too short to be one of an object of ours. It is made of the bytes in which
    /// keys of IronORB have the adapter, and of the operation; those of other keys may be alike for many objects.
    #[inline(always)] // a step of every call
    pub fn fingerprint(&self) -> Option<RequestFingerprint> {
        let bytes = self.bytes();
        let fixed = bytes.first_chunk::<{ ADAPTER_AT + 12 }>()?;
        let [.., a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3] = *fixed;
        let adapter = u64::from_ne_bytes([a0, a1, a2, a3, a4, a5, a6, a7])
            .wrapping_add(u64::from(u32::from_ne_bytes([b0, b1, b2, b3])) << 24);
        let (_, size) = fixed.first_chunk::<KEY_AT>()?.split_last_chunk::<4>()?;
        let key_end = KEY_AT + self.header.order.number(*size) as usize;
        let object = bytes.get(key_end.checked_sub(8)?..key_end)?.first_chunk()?;
        // Behind the name are four more, so eight are there and none is an argument's.
        let named = bytes.get(key_end.next_multiple_of(4)..)?.first_chunk::<12>()?;
        let [n0, n1, n2, n3, o0, o1, o2, o3, o4, o5, o6, o7] = *named;
        let operation = u64::from_ne_bytes([o0, o1, o2, o3, o4, o5, o6, o7])
            ^ u64::from(u32::from_ne_bytes([n0, n1, n2, n3])).rotate_right(8);
        let shape = (adapter ^ operation).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Some(RequestFingerprint { shape, object: u64::from_ne_bytes(*object) })
    }
}

/// Where in a request to an object of ours its key begins to tell the adapter.
const ADAPTER_AT: usize = KEY_AT + 3;
