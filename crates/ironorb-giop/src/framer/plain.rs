//! Recognises the messages of nearly every call by their bytes. All other messages are left to the general
//! path.

use super::{BUFFER_BYTES, Framer};
use crate::cdr::Reader;
use crate::message::{HEADER_BYTES, Message, MessageHeader, MessageType, PLAIN_REPLY_BYTES, RequestId};
use crate::probe::{self, Stage};
use crate::real_time::{PRIORITY_CONTEXT_BYTES, PRIORITY_ELEMENT_BYTES};
use crate::service_context::{RT_CORBA_PRIORITY, pass_contexts};
use crate::version::{ByteOrder, Encoding, TransmissionCodeSets, Version};

/// Where the results of a plain reply start. A plain reply is a Reply of GIOP 1.2 in this processor's byte
/// order, with results and without service contexts.
pub const PLAIN_RESULTS_AT: usize = PLAIN_REPLY_BYTES;

/// Where the results of a plain reply start that tells a priority: behind that context and the padding.
const RESULTS_AFTER_PRIORITY_AT: usize = (PLAIN_REPLY_BYTES + PRIORITY_ELEMENT_BYTES).next_multiple_of(8);

/// The kind of short reply that a call expects; any other kind takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortReplyKind {
    /// A plain one.
    Plain,
    /// One that tells the priority of the request, and is plain but for this: what a real-time ORB answers to a request
    /// with a priority (RTCORBA 1.2, 5.4).
    WithPriority,
}

/// Space for a reply so short that copying it is cheaper than exchanging buffers.
#[derive(Debug)]
pub struct ShortReply {
    bytes: Aligned,
    length: usize,
    code_sets: TransmissionCodeSets,
}

/// Aligned like receive buffers, so that values can be borrowed from it in the same way.
#[derive(Debug)]
#[repr(align(8))]
struct Aligned([u8; SHORT_BYTES]);

/// Bytes of the longest reply that is copied.
const SHORT_BYTES: usize = 64;

/// The first bytes of every plain request, but for its byte order.
const REQUEST: [u8; 8] = [b'G', b'I', b'O', b'P', 1, 2, 0, MessageType::Request as u8];

/// The bit that gives the byte order.
const ORDER: [u8; 8] = [0, 0, 0, 0, 0, 0, 1, 0];

/// The first bytes of every plain reply.
const START: [u8; 8] =
    [b'G', b'I', b'O', b'P', 1, 2, cfg!(target_endian = "little") as u8, MessageType::Reply as u8];

/// What stands behind the id in a reply with results whose one context is a priority: the status, the number of
/// contexts, the number of that one, and its length.
const RESULTS_WITH_PRIORITY: [u8; 16] = {
    let ([c0, c1, c2, c3], [p0, p1, p2, p3]) = (1_u32.to_ne_bytes(), RT_CORBA_PRIORITY.to_ne_bytes());
    let [l0, l1, l2, l3] = (PRIORITY_CONTEXT_BYTES as u32).to_ne_bytes();
    [0, 0, 0, 0, c0, c1, c2, c3, p0, p1, p2, p3, l0, l1, l2, l3]
};

impl Default for ShortReply {
    #[inline]
    fn default() -> Self {
        let code_sets = TransmissionCodeSets::UNNEGOTIATED;
        ShortReply { bytes: Aligned([0; SHORT_BYTES]), length: 0, code_sets }
    }
}

impl ShortReply {
    /// Sets the code sets of the connection.
    #[inline]
    pub fn set_code_sets(&mut self, code_sets: TransmissionCodeSets) {
        self.code_sets = code_sets;
    }

    /// A reader for the results.
    #[inline]
    pub fn results(&self) -> Reader<'_> {
        let bytes = self.bytes.0.get(..self.length).unwrap_or_default();
        Reader::at(bytes, PLAIN_REPLY_BYTES, Encoding::native(Version::V1_2, self.code_sets))
    }
}

impl Framer {
    /// Copies the reply to this request, if it is the next message, has arrived completely, and is short and of this
    /// kind. False, with no effect, if not.
    #[inline(always)] // a step of every call
    pub fn take_short_reply(&mut self, id: RequestId, kind: ShortReplyKind, short: &mut ShortReply) -> bool {
        let _probe = probe::enter(Stage::Frame);
        match kind {
            ShortReplyKind::Plain => self.take_short_plain_reply(id, short),
            ShortReplyKind::WithPriority => self.take_short_reply_with_priority(id, short),
        }
    }

    #[inline(always)] // a step of every call
    fn take_short_plain_reply(&mut self, id: RequestId, short: &mut ShortReply) -> bool {
        let Some(length) = self.plain_reply_length(id).filter(|length| *length <= SHORT_BYTES) else {
            return false;
        };
        let Some(bytes) = self.buf[self.taken..].first_chunk::<SHORT_BYTES>() else { return false };
        short.bytes.0 = *bytes;
        short.length = length;
        self.take(length);
        true
    }

    /// The caller knows the priority that it has sent, so the context is compared in kind and length, and not read.
    #[inline(always)] // a step of every call with a priority
    fn take_short_reply_with_priority(&mut self, id: RequestId, short: &mut ShortReply) -> bool {
        /// What the reply has more than a plain one.
        const MORE: usize = RESULTS_AFTER_PRIORITY_AT - PLAIN_REPLY_BYTES;
        const NUMBERS_AT: usize = PLAIN_REPLY_BYTES - 8;
        let arrived = self.filled - self.taken;
        let Some(bytes) = self.buf[self.taken..].first_chunk::<{ SHORT_BYTES + MORE }>() else {
            return false;
        };
        let [m0, m1, m2, m3, m4, m5, m6, m7, n0, n1, n2, n3, i0, i1, i2, i3, ..] = *bytes;
        let numbers = bytes[NUMBERS_AT..].first_chunk();
        let is_ours = [m0, m1, m2, m3, m4, m5, m6, m7] == START
            && u32::from_ne_bytes([i0, i1, i2, i3]) == id.0
            && numbers == Some(&RESULTS_WITH_PRIORITY);
        let length = HEADER_BYTES + u32::from_ne_bytes([n0, n1, n2, n3]) as usize;
        let has_context = length >= PLAIN_REPLY_BYTES + PRIORITY_ELEMENT_BYTES;
        let is_whole = self.to_drop == 0 && has_context && length <= arrived.min(SHORT_BYTES + MORE);
        if !is_ours || !is_whole || length > self.limits.message_bytes_max {
            return false;
        }
        // The results come to stand where those of a plain reply do.
        if let Some(end) = bytes.last_chunk() {
            short.bytes.0 = *end;
        }
        short.length = length.max(RESULTS_AFTER_PRIORITY_AT) - MORE;
        self.take(length);
        true
    }

    /// Takes the reply to this request with its buffer, if it is the next message, has arrived completely and
    /// is plain. It may have any length.
    #[inline(never)]
    pub fn take_plain_reply(&mut self, id: RequestId) -> Option<Message> {
        let length = self.plain_reply_length(id)?;
        let header = MessageHeader {
            version: Version::V1_2,
            order: ByteOrder::NATIVE,
            more_fragments: false,
            kind: MessageType::Reply,
            body_bytes: (length - HEADER_BYTES) as u32,
        };
        Some(self.detach(header, length))
    }

    /// Takes the reply to this request with its buffer, if it is the next message, has arrived completely and
    /// would be plain without its service contexts. Returns the reply, and where its results start.
    #[inline(never)]
    pub fn take_reply_with_contexts(&mut self, id: RequestId) -> Option<(Message, usize)> {
        let arrived = &self.buf[self.taken..self.filled];
        let [m0, m1, m2, m3, m4, m5, m6, m7, n0, n1, n2, n3, i0, i1, i2, i3, 0, 0, 0, 0, c0, c1, c2, c3] =
            *arrived.first_chunk::<PLAIN_REPLY_BYTES>()?
        else {
            return None;
        };
        let is_ours = [m0, m1, m2, m3, m4, m5, m6, m7] == START && [i0, i1, i2, i3] == id.0.to_ne_bytes();
        let body_bytes = u32::from_ne_bytes([n0, n1, n2, n3]);
        let length = HEADER_BYTES.saturating_add(body_bytes as usize);
        let may_be = PLAIN_REPLY_BYTES..=self.limits.message_bytes_max;
        if !is_ours || self.to_drop > 0 || !may_be.contains(&length) {
            return None;
        }
        let count = u32::from_ne_bytes([c0, c1, c2, c3]);
        let end = pass_contexts(arrived.get(..length)?, PLAIN_REPLY_BYTES, count, ByteOrder::NATIVE)?;
        let header = MessageHeader {
            version: Version::V1_2,
            order: ByteOrder::NATIVE,
            more_fragments: false,
            kind: MessageType::Reply,
            body_bytes,
        };
        Some((self.detach(header, length), end.next_multiple_of(8).min(length)))
    }

    /// The length of the next message, if it is the reply to this request, complete and plain.
    #[inline(always)] // a step of every call
    fn plain_reply_length(&self, id: RequestId) -> Option<usize> {
        let arrived = &self.buf[self.taken..self.filled];
        let [m0, m1, m2, m3, m4, m5, m6, m7, n0, n1, n2, n3, i0, i1, i2, i3, rest @ ..] =
            arrived.first_chunk::<PLAIN_REPLY_BYTES>()?;
        let is_plain = [*m0, *m1, *m2, *m3, *m4, *m5, *m6, *m7] == START
            && u32::from_ne_bytes([*i0, *i1, *i2, *i3]) == id.0
            && *rest == [0; 8];
        let length = HEADER_BYTES + u32::from_ne_bytes([*n0, *n1, *n2, *n3]) as usize;
        let is_whole = self.to_drop == 0 && (PLAIN_REPLY_BYTES..=arrived.len()).contains(&length);
        (is_plain && is_whole && length <= self.limits.message_bytes_max).then_some(length)
    }

    /// Takes the next message, if it has arrived completely and is a Request of GIOP 1.2 in one piece. It
    /// replaces the message in `place`, which is no longer needed and whose buffer the framer uses next.
    /// False, with no effect, if there is no such message.
    #[inline(always)] // a step of every call
    pub fn take_plain_request(&mut self, place: &mut Message) -> bool {
        let _probe = probe::enter(Stage::Frame);
        let arrived = &self.buf[self.taken..self.filled];
        let Some((start, rest)) = arrived.split_first_chunk::<8>() else { return false };
        let Some(size) = rest.first_chunk::<4>() else { return false };
        let start = u64::from_ne_bytes(*start);
        if start & !u64::from_ne_bytes(ORDER) != u64::from_ne_bytes(REQUEST) {
            return false;
        }
        let order = if start == u64::from_ne_bytes(REQUEST) { ByteOrder::Big } else { ByteOrder::Little };
        let body_bytes = order.number(*size);
        let length = HEADER_BYTES.saturating_add(body_bytes as usize);
        if length > arrived.len() || length > self.limits.message_bytes_max || self.to_drop > 0 {
            return false;
        }
        let header = MessageHeader {
            version: Version::V1_2,
            order,
            more_fragments: false,
            kind: MessageType::Request,
            body_bytes,
        };
        // The message is alone in a small buffer, as usual when a thread waits for it.
        if self.filled == length
            && length <= BUFFER_BYTES
            && place.buf.len() >= BUFFER_BYTES
            && place.joints.is_empty()
        {
            self.filled = 0;
            std::mem::swap(&mut self.buf, &mut place.buf);
            (place.header, place.code_sets) = (header, TransmissionCodeSets::UNNEGOTIATED);
            place.len = length;
        } else {
            self.detach_one_of_many(place, header, length);
        }
        true
    }

    #[inline(never)]
    fn detach_one_of_many(&mut self, place: &mut Message, header: MessageHeader, length: usize) {
        if let Some(spare) = place.take_buffer() {
            self.recycle(spare);
        }
        *place = self.detach(header, length);
    }
}
