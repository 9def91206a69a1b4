//! Headers of outgoing messages. This ORB sends in the byte order of this processor.

use std::sync::atomic::{AtomicBool, Ordering};

use super::read::{LocateStatus, PLAIN_REPLY_BYTES, ReplyStatus, Response};
use super::{
    AddressingDisposition, HEADER_BYTES, MessageHeader, MessageType, OperationName, RequestId, TargetAddress,
};
use crate::cdr::Writer;
use crate::error::Misuse;
use crate::real_time::{PRIORITY_ELEMENT_BYTES, encoded_priority_context};
use crate::service_context::{EncodedContexts, RequestContexts};
use crate::version::{ByteOrder, Encoding, TransmissionCodeSets, Version};

/// The parts of a request header that are equal for all calls on one reference, encoded once. Nearly every
/// target is a key that fits into `head`, and takes no memory elsewhere.
#[derive(Debug, Clone)]
pub struct RequestTarget {
    /// GIOP 1.2: the message up to the target with its padding. Request id, flags and size are patched. The
    /// size is fixed so that the compiler knows it when `head` is copied.
    head: [u8; PIECE_BYTES],
    /// Number of bytes used in `head`; 0 where the template does not fit.
    head_length: u8,
    /// Where in `head` the key ends and the padding begins.
    key_end: u8,
    version: Version,
    code_sets: Option<TransmissionCodeSets>,
    bare_exceptions: Flag,
    disposition: AddressingDisposition,
    /// `None` where `head` has the whole target.
    rest: Option<Box<Rest>>,
}

/// May change while requests are written. Each request uses the state in which it found the flag when it
/// began.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Clone for Flag {
    fn clone(&self) -> Self {
        Flag(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

/// The rest of a target that does not fit into `head`, is more than a key, or is of a version before GIOP
/// 1.2.
#[derive(Debug, Clone)]
struct Rest {
    object_key: Vec<u8>,
    /// The whole template, with the bytes that `head` would have.
    template: Vec<u8>,
    /// Where in the template the target ends and the padding begins.
    target_end: usize,
    /// The target in the byte order that is not this processor's, where it is more than the key.
    swapped_address: Vec<u8>,
}

const ID_AT: usize = HEADER_BYTES;
const FLAGS_AT: usize = HEADER_BYTES + 4;
const TARGET_AT: usize = HEADER_BYTES + 8;
/// Where the key begins: after the disposition, its padding and the length.
const KEY_AT: usize = TARGET_AT + 8;

/// Halves of headers up to this size are copied with this constant length, which is cheaper than their true
/// length.
pub(super) const PIECE_BYTES: usize = 64;

impl RequestTarget {
    /// A template for requests to one object, named by its key. `code_sets` are the sets chosen from those
    /// that the server lists in its reference; `None` when it lists none.
    pub fn new(version: Version, code_sets: Option<TransmissionCodeSets>, object_key: &[u8]) -> Self {
        let mut template = Vec::with_capacity(PIECE_BYTES);
        let mut w = begin_template(&mut template, version);
        w.write_u16(AddressingDisposition::Key.number());
        w.write_u32(object_key.len() as u32);
        w.write_bytes(object_key);
        RequestTarget::of(version, code_sets, AddressingDisposition::Key, object_key, template, Vec::new())
    }

    /// A template for requests that name the object in the way that a server has asked for with
    /// NEEDS_ADDRESSING_MODE. Requests before GIOP 1.2 always name it by its key, because those versions know
    /// nothing else.
    ///
    /// Refuses a profile that is not one of IIOP ([`Misuse::NotAReference`]).
    pub fn addressed(
        version: Version,
        code_sets: Option<TransmissionCodeSets>,
        address: TargetAddress<'_>,
    ) -> Result<Self, Misuse> {
        let key = address.object_key().ok_or(Misuse::NotAReference)?;
        let disposition = address.disposition();
        if version != Version::V1_2 || disposition == AddressingDisposition::Key {
            return Ok(RequestTarget::new(version, code_sets, key));
        }
        let mut template = Vec::new();
        begin_template(&mut template, version).put(&address)?;
        let swapped_address = swapped_address(version, address)?;
        Ok(RequestTarget::of(version, code_sets, disposition, key, template, swapped_address))
    }

    /// The target of a template that ends with it.
    fn of(
        version: Version,
        code_sets: Option<TransmissionCodeSets>,
        disposition: AddressingDisposition,
        object_key: &[u8],
        mut template: Vec<u8>,
        swapped_address: Vec<u8>,
    ) -> RequestTarget {
        let target_end = template.len();
        template.resize(target_end.next_multiple_of(4), 0);
        let mut head = [0; PIECE_BYTES];
        let fits = version == Version::V1_2 && template.len() <= PIECE_BYTES;
        if fits {
            head[..template.len()].copy_from_slice(&template);
        }
        let is_all = fits && disposition == AddressingDisposition::Key;
        RequestTarget {
            head,
            head_length: if fits { template.len() as u8 } else { 0 },
            key_end: if is_all { target_end as u8 } else { 0 },
            version,
            code_sets,
            bare_exceptions: Flag::default(),
            disposition,
            rest: (!is_all).then(|| {
                Box::new(Rest { object_key: object_key.to_vec(), template, target_end, swapped_address })
            }),
        }
    }

    /// Returns the target with the form of exceptions in an `any` changed; see [`Encoding::bare_exceptions`].
    #[must_use]
    pub fn with_bare_exceptions(self, bare_exceptions: bool) -> Self {
        self.set_bare_exceptions(bare_exceptions);
        self
    }

    /// Sets the form of exceptions in an `any` from the next request on; see [`Encoding::bare_exceptions`].
    /// Does not affect clones.
    pub fn set_bare_exceptions(&self, bare_exceptions: bool) {
        self.bare_exceptions.0.store(bare_exceptions, Ordering::Relaxed);
    }

    /// The encoding of arguments under code sets that have been agreed on.
    #[inline]
    pub fn encoding(&self, code_sets: TransmissionCodeSets) -> Encoding {
        Encoding {
            bare_exceptions: self.bare_exceptions.0.load(Ordering::Relaxed),
            ..Encoding::native(self.version, code_sets)
        }
    }

    /// Whether the header of a request for this operation consists of two constants, apart from service
    /// contexts.
    #[inline]
    pub(crate) fn is_plain(&self, operation: OperationName<'_>) -> bool {
        self.head_length > 0 && operation.tail.length > 0
    }

    /// The GIOP version spoken to this target.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The object key.
    pub fn object_key(&self) -> &[u8] {
        match &self.rest {
            None => &self.head[KEY_AT..usize::from(self.key_end)],
            Some(rest) => &rest.object_key,
        }
    }

    /// How requests name the object.
    pub fn disposition(&self) -> AddressingDisposition {
        self.disposition
    }

    /// The target as it stands in requests of GIOP 1.2 in this byte order, where it is more than the key.
    pub(super) fn address_in(&self, order: ByteOrder) -> &[u8] {
        match &self.rest {
            Some(rest) if !order.is_native() => &rest.swapped_address,
            _ => self.address(),
        }
    }

    /// The target as it stands in requests of this processor's byte order.
    fn address(&self) -> &[u8] {
        match &self.rest {
            None => &self.head[TARGET_AT..usize::from(self.key_end)],
            Some(rest) => &rest.template[TARGET_AT..rest.target_end],
        }
    }

    /// The message up to the target with its padding.
    fn template(&self) -> &[u8] {
        match &self.rest {
            None => &self.head[..usize::from(self.head_length)],
            Some(rest) => &rest.template,
        }
    }

    /// The code sets that were chosen for this target, if it lists its own.
    pub fn code_sets(&self) -> Option<TransmissionCodeSets> {
        self.code_sets
    }
}

/// Appends the bytes before the target.
fn begin_template(template: &mut Vec<u8>, version: Version) -> Writer<'_> {
    let mut w = Writer::new(template, Encoding { version, ..Encoding::NATIVE });
    w.write_bytes(&header(version, MessageType::Request));
    w.write_u32(0); // request id, patched
    w.write_bytes(&[0; 4]); // response flags, patched, and three reserved octets
    w
}

#[cold]
fn swapped_address(version: Version, address: TargetAddress<'_>) -> Result<Vec<u8>, Misuse> {
    let order = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    let mut bytes = vec![0; TARGET_AT]; // aligned as in the template
    Writer::continuing(&mut bytes, 0, Encoding { order, version, ..Encoding::NATIVE }).put(&address)?;
    Ok(bytes.split_off(TARGET_AT))
}

/// A message being written at the end of a buffer. Until [`MessageStart::finish`] the size in its header is
/// impossible, so a half-written message cannot be taken for a whole one.
#[derive(Debug)]
#[must_use = "a message that is not finished must be taken off the buffer"]
pub struct MessageStart {
    origin: usize,
    /// Where the body starts, after its padding.
    body_at: usize,
    padding: usize,
    encoding: Encoding,
}

impl MessageStart {
    /// Appends a Request header with the service contexts of all these lists, one after the other.
    #[inline(always)] // a step of every call
    pub fn request(
        buf: &mut Vec<u8>,
        target: &RequestTarget,
        code_sets: TransmissionCodeSets,
        id: RequestId,
        response: Response,
        operation: OperationName<'_>,
        contexts: &[EncodedContexts<'_>],
    ) -> Result<MessageStart, Misuse> {
        let encoding = target.encoding(code_sets);
        if target.is_plain(operation) && contexts.iter().all(EncodedContexts::is_empty) {
            let message =
                MessageStart::plain_request(buf, target, operation, encoding, RequestContexts::None);
            message.identify(buf, id, response);
            return Ok(message);
        }
        MessageStart::any_request(buf, target, encoding, id, response, operation, contexts)
    }

    /// Appends the header of a plain request, as nearly every request is: two constants, the reference's and
    /// the operation's, and service contexts, if there are any. [`identify`](Self::identify) adds the rest.
    /// Only where [`RequestTarget::is_plain`] is true.
    #[inline(always)] // a step of every call
    pub(crate) fn plain_request(
        buf: &mut Vec<u8>,
        target: &RequestTarget,
        operation: OperationName<'_>,
        encoding: Encoding,
        contexts: RequestContexts<'_>,
    ) -> MessageStart {
        let origin = buf.len();
        // Both constants are copied as a whole and the surplus is taken off: a copy of constant length is no
        // call.
        buf.extend_from_slice(&target.head);
        let head_length = usize::from(target.head_length);
        buf.truncate(origin + head_length);
        buf.extend_from_slice(&operation.tail.bytes);
        let mut end = head_length + operation.tail.length;
        match contexts {
            RequestContexts::None => {}
            RequestContexts::Priority(priority) => {
                buf.truncate(origin + end - COUNT_BYTES);
                buf.extend_from_slice(&one_priority(priority));
                end += PRIORITY_ELEMENT_BYTES;
            }
            RequestContexts::Encoded(contexts) if contexts.is_empty() => {}
            RequestContexts::Encoded(contexts) => {
                buf.truncate(origin + end);
                end += put_contexts(buf, contexts);
            }
        }
        let body_at = end.next_multiple_of(8);
        buf.truncate(origin + body_at);
        MessageStart { origin, body_at: origin + body_at, padding: body_at - end, encoding }
    }

    /// Writes the id and the response flags of a request of GIOP 1.2.
    pub(crate) fn identify(&self, buf: &mut [u8], id: RequestId, response: Response) {
        buf[self.origin + ID_AT..self.origin + FLAGS_AT].copy_from_slice(&id.0.to_ne_bytes());
        buf[self.origin + FLAGS_AT] = response.flags();
    }

    /// Does the work of [`identify`](Self::identify) and of [`finish`](Self::finish). Returns the bytes of
    /// the message; the caller checks their limit.
    #[inline(always)] // a step of every call
    pub(crate) fn finish_plain_request(
        &self,
        buf: &mut Vec<u8>,
        id: RequestId,
        response: Response,
    ) -> Result<usize, Misuse> {
        if buf.len() == self.body_at {
            buf.truncate(self.body_at - self.padding); // a body that is empty needs no padding before it
        }
        let message = buf.get_mut(self.origin..).unwrap_or_default();
        let length = message.len();
        let Some(fixed) = message.first_chunk_mut::<TARGET_AT>() else { return Err(Misuse::TooLarge) };
        let size = u32::try_from(length - HEADER_BYTES).map_err(|_| Misuse::TooLarge)?;
        fixed[SIZE_AT..HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
        fixed[ID_AT..FLAGS_AT].copy_from_slice(&id.0.to_ne_bytes());
        fixed[FLAGS_AT] = response.flags();
        Ok(length)
    }

    #[inline(never)]
    fn any_request(
        buf: &mut Vec<u8>,
        target: &RequestTarget,
        encoding: Encoding,
        id: RequestId,
        response: Response,
        operation: OperationName<'_>,
        contexts: &[EncodedContexts<'_>],
    ) -> Result<MessageStart, Misuse> {
        if let [contexts] = contexts
            && target.is_plain(operation)
        {
            let contexts = RequestContexts::Encoded(contexts);
            let message = MessageStart::plain_request(buf, target, operation, encoding, contexts);
            message.identify(buf, id, response);
            return Ok(message);
        }
        let operation = operation.text;
        let origin = buf.len();
        if target.version == Version::V1_2 {
            buf.extend_from_slice(target.template());
            buf[origin + ID_AT..origin + ID_AT + 4].copy_from_slice(&id.0.to_ne_bytes());
            buf[origin + FLAGS_AT] = response.flags();
            let mut w = Writer::continuing(buf, origin, encoding);
            write_operation(&mut w, operation)?;
            EncodedContexts::write_all(contexts, &mut w);
            Ok(Self::body_aligned(buf, origin, encoding))
        } else {
            let mut w = Writer::continuing(buf, origin, encoding);
            w.write_bytes(&header(target.version, MessageType::Request));
            EncodedContexts::write_all(contexts, &mut w);
            w.write_u32(id.0);
            w.write_bool(response != Response::None);
            if target.version == Version::V1_1 {
                w.write_bytes(&[0; 3]);
            }
            w.write_octets(target.object_key())?;
            write_operation(&mut w, operation)?;
            w.write_u32(0); // an empty principal
            Ok(Self::body_here(buf, origin, encoding))
        }
    }

    /// Appends a Reply header without service contexts.
    #[inline]
    pub fn reply(buf: &mut Vec<u8>, encoding: Encoding, id: RequestId, status: ReplyStatus) -> MessageStart {
        MessageStart::reply_with(buf, encoding, id, status, EncodedContexts::EMPTY)
    }

    /// Appends a Reply header.
    #[inline(always)] // a step of every call
    pub fn reply_with(
        buf: &mut Vec<u8>,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        contexts: EncodedContexts<'_>,
    ) -> MessageStart {
        if encoding.version == Version::V1_2 && contexts.is_empty() {
            // Nearly every reply: the whole header is a constant, and the body begins at its end.
            let origin = buf.len();
            buf.extend_from_slice(&plain_reply(id, status));
            return Self::body_here(buf, origin, encoding);
        }
        if encoding.version == Version::V1_2
            && let Some(priority) = contexts.only_priority()
        {
            return MessageStart::reply_with_priority(buf, encoding, id, status, priority);
        }
        MessageStart::any_reply(buf, encoding, id, status, contexts)
    }

    /// Appends the header of a Reply of GIOP 1.2 whose one context is a priority: nearly every reply of a real-time ORB.
    #[inline(always)] // a step of every call with a priority
    fn reply_with_priority(
        buf: &mut Vec<u8>,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        priority: &[u8; PRIORITY_ELEMENT_BYTES],
    ) -> MessageStart {
        const END: usize = PLAIN_REPLY_BYTES + PRIORITY_ELEMENT_BYTES;
        const BODY_AT: usize = END.next_multiple_of(8);
        let origin = buf.len();
        let mut bytes = [0; BODY_AT];
        bytes[..PLAIN_REPLY_BYTES].copy_from_slice(&plain_reply(id, status));
        bytes[PLAIN_REPLY_BYTES - 4..PLAIN_REPLY_BYTES].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[PLAIN_REPLY_BYTES..END].copy_from_slice(priority);
        buf.extend_from_slice(&bytes);
        MessageStart { origin, body_at: origin + BODY_AT, padding: BODY_AT - END, encoding }
    }

    #[inline(never)]
    fn any_reply(
        buf: &mut Vec<u8>,
        encoding: Encoding,
        id: RequestId,
        status: ReplyStatus,
        contexts: EncodedContexts<'_>,
    ) -> MessageStart {
        let origin = buf.len();
        if encoding.version == Version::V1_2 {
            buf.extend_from_slice(&plain_reply(id, status));
            let end = PLAIN_REPLY_BYTES + put_contexts(buf, &contexts);
            let body_at = end.next_multiple_of(8);
            buf.truncate(origin + body_at);
            return MessageStart { origin, body_at: origin + body_at, padding: body_at - end, encoding };
        }
        buf.extend_from_slice(&header(encoding.version, MessageType::Reply));
        let mut w = Writer::continuing(buf, origin, encoding);
        EncodedContexts::write_all(&[contexts], &mut w);
        w.write_u32(id.0);
        w.write_u32(status as u32);
        Self::body_here(buf, origin, encoding)
    }

    /// Appends a LocateRequest; it has no body.
    pub fn locate_request(
        buf: &mut Vec<u8>,
        target: &RequestTarget,
        id: RequestId,
    ) -> Result<MessageStart, Misuse> {
        let origin = buf.len();
        let encoding = Encoding { version: target.version, ..Encoding::NATIVE };
        buf.extend_from_slice(&header(encoding.version, MessageType::LocateRequest));
        let mut w = Writer::continuing(buf, origin, encoding);
        w.write_u32(id.0);
        if encoding.version == Version::V1_2 {
            // The distance from a multiple of 4 is that of the template, and the target needs no other
            // alignment.
            w.write_bytes(target.address());
        } else {
            w.write_octets(target.object_key())?;
        }
        Ok(Self::body_here(buf, origin, encoding))
    }

    /// Appends a LocateReply header; its body follows without alignment.
    pub fn locate_reply(
        buf: &mut Vec<u8>,
        encoding: Encoding,
        id: RequestId,
        status: LocateStatus,
    ) -> MessageStart {
        let origin = buf.len();
        buf.extend_from_slice(&header(encoding.version, MessageType::LocateReply));
        let mut w = Writer::continuing(buf, origin, encoding);
        w.write_u32(id.0);
        w.write_u32(status as u32);
        Self::body_here(buf, origin, encoding)
    }

    #[inline]
    fn body_aligned(buf: &mut Vec<u8>, origin: usize, encoding: Encoding) -> MessageStart {
        let before = buf.len();
        Writer::continuing(buf, origin, encoding).align(8);
        MessageStart { origin, body_at: buf.len(), padding: buf.len() - before, encoding }
    }

    #[inline]
    fn body_here(buf: &mut [u8], origin: usize, encoding: Encoding) -> MessageStart {
        MessageStart { origin, body_at: buf.len(), padding: 0, encoding }
    }

    /// Where in the buffer the message begins.
    pub(crate) fn origin(&self) -> usize {
        self.origin
    }

    /// Whether GIOP 1.1 has fragments for the message: true for a Request or a Reply (9.4.9).
    pub(crate) fn may_be_cut_in_giop_1_1(&self, buf: &[u8]) -> bool {
        let kinds = [MessageType::Request as u8, MessageType::Reply as u8];
        self.encoding.version == Version::V1_1 && kinds.contains(&buf[self.origin + KIND_AT])
    }

    /// Where in the message its body begins.
    pub(crate) fn body_position(&self) -> usize {
        self.body_at - self.origin
    }

    /// The encoding of the message.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Removes the written part of the body, so that it can be written again.
    pub(crate) fn forget_body(&self, buf: &mut Vec<u8>) {
        buf.truncate(self.body_at);
    }

    /// A writer for the body that leaves out long runs of bytes.
    #[inline]
    pub(crate) fn sparse_body<'b>(&self, buf: &'b mut Vec<u8>) -> Writer<'b> {
        Writer::sparse(buf, self.origin, self.encoding)
    }

    /// A writer for the body.
    #[inline]
    pub fn body<'b>(&self, buf: &'b mut Vec<u8>) -> Writer<'b> {
        Writer::continuing(buf, self.origin, self.encoding)
    }

    /// Writes the true size. Removes a message that is larger than `message_bytes_max` bytes, header
    /// included, with an error.
    #[inline]
    pub fn finish(self, buf: &mut Vec<u8>, message_bytes_max: usize) -> Result<(), Misuse> {
        if buf.len() == self.body_at {
            buf.truncate(self.body_at - self.padding); // a body that is empty needs no padding before it
        }
        let length = buf.len() - self.origin;
        self.write_size(buf, length, message_bytes_max)
    }

    /// Writes the true size of a message that lacks `more_bytes` bytes of its body, which must not be empty.
    /// Removes a message that is larger than `message_bytes_max` bytes, header included, with an error.
    pub(crate) fn finish_sparse(
        &self,
        buf: &mut Vec<u8>,
        more_bytes: usize,
        message_bytes_max: usize,
    ) -> Result<(), Misuse> {
        let length = (buf.len() - self.origin).saturating_add(more_bytes);
        self.write_size(buf, length, message_bytes_max)
    }

    #[inline]
    fn write_size(&self, buf: &mut Vec<u8>, length: usize, message_bytes_max: usize) -> Result<(), Misuse> {
        if length > message_bytes_max || u32::try_from(length).is_err() {
            buf.truncate(self.origin);
            return Err(Misuse::TooLarge);
        }
        let size = (length - HEADER_BYTES) as u32;
        buf[self.origin + SIZE_AT..self.origin + HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
        Ok(())
    }

    /// Removes the message from the buffer.
    #[cold]
    pub fn abandon(self, buf: &mut Vec<u8>) {
        buf.truncate(self.origin);
    }
}

/// The header of a Reply of GIOP 1.2 without service contexts.
#[inline(always)] // a step of every call
fn plain_reply(id: RequestId, status: ReplyStatus) -> [u8; PLAIN_REPLY_BYTES] {
    let mut bytes = [0; PLAIN_REPLY_BYTES];
    bytes[..HEADER_BYTES].copy_from_slice(&header(Version::V1_2, MessageType::Reply));
    bytes[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&id.0.to_ne_bytes());
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&(status as u32).to_ne_bytes());
    bytes
}

/// A list of service contexts with a priority alone, and zeros for the padding that may follow.
#[inline(always)] // a step of every call with a priority
fn one_priority(priority: i16) -> [u8; COUNT_BYTES + PRIORITY_ELEMENT_BYTES + 8] {
    let mut bytes = [0; COUNT_BYTES + PRIORITY_ELEMENT_BYTES + 8];
    let (list, _padding) = bytes.split_at_mut(COUNT_BYTES + PRIORITY_ELEMENT_BYTES);
    let (count, element) = list.split_at_mut(COUNT_BYTES);
    count.copy_from_slice(&1u32.to_ne_bytes());
    element.copy_from_slice(&encoded_priority_context(priority));
    bytes
}

/// The bytes of the number of service contexts.
const COUNT_BYTES: usize = 4;

/// Writes service contexts at the end of a header that ends with an empty list of them, and zeros for the padding
/// that follows. Returns the number of bytes without that padding.
#[inline(always)] // a step of every call with contexts
fn put_contexts(buf: &mut Vec<u8>, contexts: &EncodedContexts<'_>) -> usize {
    if let Some(place) = buf.last_chunk_mut::<4>() {
        *place = contexts.count().to_ne_bytes();
    }
    match contexts.padded() {
        // A copy of constant length is no call.
        Some((length, padded)) => {
            buf.extend_from_slice(padded);
            length
        }
        None => put_long_contexts(buf, contexts.bytes()),
    }
}

#[inline(never)]
fn put_long_contexts(buf: &mut Vec<u8>, contexts: &[u8]) -> usize {
    buf.extend_from_slice(contexts);
    buf.extend_from_slice(&[0; 8]);
    contexts.len()
}

/// Appends a CancelRequest.
pub fn write_cancel_request(buf: &mut Vec<u8>, version: Version, id: RequestId) {
    buf.extend_from_slice(&with_size(version, MessageType::CancelRequest, 4));
    buf.extend_from_slice(&id.0.to_ne_bytes());
}

/// Appends a CloseConnection.
pub fn write_close_connection(buf: &mut Vec<u8>, version: Version) {
    buf.extend_from_slice(&with_size(version, MessageType::CloseConnection, 0));
}

/// Appends a MessageError.
pub fn write_message_error(buf: &mut Vec<u8>, version: Version) {
    buf.extend_from_slice(&with_size(version, MessageType::MessageError, 0));
}

#[inline(always)] // a step of every call
pub(super) fn write_operation(w: &mut Writer<'_>, operation: &str) -> Result<(), Misuse> {
    w.write_length(operation.len() + 1)?;
    w.write_bytes(operation.as_bytes());
    w.write_u8(0);
    Ok(())
}

/// A header whose size is impossible until it is patched.
#[inline]
fn header(version: Version, kind: MessageType) -> [u8; HEADER_BYTES] {
    with_size(version, kind, u32::MAX)
}

#[inline]
fn with_size(version: Version, kind: MessageType, body_bytes: u32) -> [u8; HEADER_BYTES] {
    MessageHeader { version, order: ByteOrder::NATIVE, more_fragments: false, kind, body_bytes }.to_bytes()
}

const KIND_AT: usize = 7;
const SIZE_AT: usize = 8;
