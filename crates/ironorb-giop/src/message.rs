//! GIOP messages (CORBA 3.3 part 2, 9.4): headers parsed in place, headers written into a buffer.
//!
//! Versions 1.0, 1.1 and 1.2 differ in the order of the header fields. Only this module knows the
//! differences.

mod address;
mod header_template;
mod operation;
mod read;
mod relay;
mod write;

pub use address::{AddressingDisposition, TargetAddress};
pub use header_template::{HeaderContexts, HeaderTemplate, RequestFingerprint};
pub use operation::{OperationName, OperationTail};
pub(crate) use read::PLAIN_REPLY_BYTES;
pub use read::{
    Body, LocateReply, LocateRequest, LocateStatus, PlainRequest, Reply, ReplyStatus, Request, Response,
    read_request_id,
};
pub(crate) use relay::write_raw_request_head;
pub use relay::{PADDING, RawBody, write_raw_reply, write_raw_request};
pub use write::{
    MessageStart, RequestTarget, write_cancel_request, write_close_connection, write_message_error,
};

use std::ops::Range;
use std::sync::Arc;

use crate::cdr::Reader;
use crate::error::{Malformed, MalformedKind};
use crate::framer::Buffer;
use crate::version::{ByteOrder, Encoding, TransmissionCodeSets, Version};

/// Bytes of the fixed header of every message.
pub const HEADER_BYTES: usize = 12;

/// Links a reply to its request; unique among the requests in flight on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// The kinds of message (9.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// A call.
    Request,
    /// The server's reply to a Request.
    Reply,
    /// The client no longer waits for a reply.
    CancelRequest,
    /// A question for the location of an object.
    LocateRequest,
    /// The server's reply to a LocateRequest.
    LocateReply,
    /// The server will handle nothing more on this connection.
    CloseConnection,
    /// The sender has received a message that it could not understand.
    MessageError,
    /// The next part of a message begun before.
    Fragment,
}

impl MessageType {
    const ALL: [MessageType; 8] = [
        MessageType::Request,
        MessageType::Reply,
        MessageType::CancelRequest,
        MessageType::LocateRequest,
        MessageType::LocateReply,
        MessageType::CloseConnection,
        MessageType::MessageError,
        MessageType::Fragment,
    ];

    fn from_octet(octet: u8) -> Option<MessageType> {
        Self::ALL.get(usize::from(octet)).copied()
    }
}

/// The fixed header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// GIOP version.
    pub version: Version,
    /// Order of all numbers of the message.
    pub order: ByteOrder,
    /// A Fragment message follows.
    pub more_fragments: bool,
    /// Kind of message.
    pub kind: MessageType,
    /// Bytes after the header.
    pub body_bytes: u32,
}

const FLAG_LITTLE_ENDIAN: u8 = 1;
const FLAG_MORE_FRAGMENTS: u8 = 2;
const MAGIC: [u8; 4] = *b"GIOP";

impl MessageHeader {
    /// Reads the header at the start of a message.
    #[inline]
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<MessageHeader, Malformed> {
        let [m0, m1, m2, m3, major, minor, flags, kind, size @ ..] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Malformed::new(MalformedKind::BadMagic, 0));
        }
        let version =
            Version::of_message(major, minor).ok_or_else(|| Malformed::new(MalformedKind::BadVersion, 4))?;
        let kind =
            MessageType::from_octet(kind).ok_or_else(|| Malformed::new(MalformedKind::BadMessageType, 7))?;
        let order = if flags & FLAG_LITTLE_ENDIAN != 0 { ByteOrder::Little } else { ByteOrder::Big };
        let more_fragments = flags & FLAG_MORE_FRAGMENTS != 0;
        // In GIOP 1.0 the octet is the boolean byte order and nothing else.
        if version == Version::V1_0 && flags > 1 {
            return Err(Malformed::new(MalformedKind::BadFlags, 6));
        }
        if version == Version::V1_0 && kind == MessageType::Fragment {
            return Err(Malformed::new(MalformedKind::BadMessageType, 7));
        }
        Ok(MessageHeader { version, order, more_fragments, kind, body_bytes: order.number(size) })
    }

    /// A reader for the bytes of the message after this header, for data that does not depend on code sets.
    pub(crate) fn reader(self, message: &[u8]) -> Reader<'_> {
        let encoding = Encoding { order: self.order, version: self.version, ..Encoding::NATIVE };
        Reader::at(message, HEADER_BYTES, encoding)
    }

    /// The header as bytes.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut flags = u8::from(self.order == ByteOrder::Little);
        if self.more_fragments {
            flags |= FLAG_MORE_FRAGMENTS;
        }
        let [m0, m1, m2, m3] = MAGIC;
        let [s0, s1, s2, s3] = match self.order {
            ByteOrder::Big => self.body_bytes.to_be_bytes(),
            ByteOrder::Little => self.body_bytes.to_le_bytes(),
        };
        [m0, m1, m2, m3, 1, self.version.minor(), flags, self.kind as u8, s0, s1, s2, s3]
    }
}

/// A complete message with its fragments joined, in a buffer of its own.
///
/// `len` bytes of `buf` are the message; the rest is initialised space, kept so that the buffer can be
/// used again without clearing it.
#[derive(Debug)]
pub struct Message {
    pub(crate) header: MessageHeader,
    pub(crate) code_sets: TransmissionCodeSets,
    /// Positions of GIOP 1.1 fragments that are aligned afresh; empty for nearly all messages.
    pub(crate) joints: Box<[u32]>,
    pub(crate) buf: Buffer,
    pub(crate) len: usize,
}

/// A placeholder without contents.
impl Default for Message {
    fn default() -> Self {
        Message::spent(Buffer::default())
    }
}

/// The clone has no spare space behind the message.
impl Clone for Message {
    fn clone(&self) -> Self {
        Message { buf: self.bytes().to_vec().into(), joints: self.joints.clone(), ..*self }
    }
}

impl Message {
    /// A placeholder without contents that holds a buffer for reuse.
    pub fn spent(buffer: Buffer) -> Message {
        Message {
            header: MessageHeader {
                version: Version::V1_2,
                order: ByteOrder::NATIVE,
                more_fragments: false,
                kind: MessageType::Request,
                body_bytes: 0,
            },
            code_sets: TransmissionCodeSets::UNNEGOTIATED,
            joints: Box::default(),
            buf: buffer,
            len: 0,
        }
    }

    /// Copies the message that a reader reads, with the reader's code sets. An error when the reader does not
    /// read a message.
    pub fn copied_from(r: &Reader<'_>) -> Result<Message, Malformed> {
        let (bytes, joints) = r.place().whole();
        let truncated = || Malformed::new(MalformedKind::Truncated, bytes.len());
        let header = MessageHeader::parse(bytes.first_chunk().ok_or_else(truncated)?)?;
        let code_sets = r.encoding().code_sets();
        let (len, buf) = (bytes.len(), bytes.to_vec().into());
        Ok(Message { header, code_sets, joints: joints.into(), len, buf })
    }

    /// Takes the bytes of a whole message, whose characters are in these code sets.
    pub fn from_bytes(bytes: Vec<u8>, code_sets: TransmissionCodeSets) -> Result<Message, Malformed> {
        let truncated = || Malformed::new(MalformedKind::Truncated, bytes.len());
        let header = MessageHeader::parse(bytes.first_chunk().ok_or_else(truncated)?)?;
        let is_whole = !header.more_fragments && HEADER_BYTES + header.body_bytes as usize == bytes.len();
        if !is_whole {
            return Err(truncated());
        }
        Ok(Message { header, code_sets, joints: Box::default(), len: bytes.len(), buf: bytes.into() })
    }

    /// The header; its size covers all fragments.
    #[inline]
    pub fn header(&self) -> MessageHeader {
        self.header
    }

    /// Sets the code sets of the connection; [`TransmissionCodeSets::UNNEGOTIATED`] until this is called.
    #[inline]
    pub fn set_code_sets(&mut self, code_sets: TransmissionCodeSets) {
        self.code_sets = code_sets;
    }

    /// The whole message, header included.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// A copy of the message up to an offset: its header, if the values begin there.
    pub fn copy_of_header(&self, body_at: usize) -> Message {
        let bytes = self.bytes().get(..body_at).unwrap_or_else(|| self.bytes());
        let joints = self.joints.iter().copied().filter(|joint| *joint as usize <= bytes.len()).collect();
        Message { buf: bytes.to_vec().into(), len: bytes.len(), joints, ..*self }
    }

    /// The whole message, header included, for changes behind the header.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buf[..self.len]
    }

    /// A reader at an offset, aligned as the message is; see [`Reader::position`].
    #[inline]
    pub fn reader_at(&self, at: usize) -> Reader<'_> {
        Reader::of_joined(self.bytes(), &self.joints, at, self.encoding())
    }

    /// A reader at an offset that decodes characters with these code sets; aligned as the message is, see
    /// [`Reader::position`].
    #[inline]
    pub fn reader_under(&self, code_sets: TransmissionCodeSets, at: usize) -> Reader<'_> {
        Reader::of_joined(self.bytes(), &self.joints, at, self.encoding().with_code_sets(code_sets))
    }

    #[inline]
    fn encoding(&self) -> Encoding {
        let MessageHeader { order, version, .. } = self.header;
        let TransmissionCodeSets { char_set, wide_set } = self.code_sets;
        Encoding { order, version, char_set, wide_set, bare_exceptions: false }
    }

    /// The buffer, which the caller gives back to the framer that it came from.
    #[inline]
    pub fn into_buffer(self) -> Buffer {
        self.buf
    }

    /// Some bytes of a shared message as a vector. Takes nothing from the heap if there is no other share.
    pub(crate) fn into_octets(shared: Arc<Message>, octets: Range<usize>) -> Vec<u8> {
        match Arc::try_unwrap(shared) {
            Ok(message) => message.buf.into_octets(octets),
            Err(shared) => shared.bytes().get(octets).unwrap_or_default().to_vec(),
        }
    }

    /// Takes the buffer of a message that has been processed and leaves a placeholder. `None` when there is
    /// no buffer.
    #[inline]
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        self.len = 0;
        (!self.buf.is_empty()).then(|| std::mem::take(&mut self.buf))
    }

    /// The buffer of a message that has been processed.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.buf
    }
}

#[cfg(test)]
mod plain_tests;
#[cfg(test)]
mod tests;
