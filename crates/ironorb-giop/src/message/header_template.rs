//! Recognises requests whose header equals that of an earlier request, except for the request id and perhaps
//! the object and the service contexts. Clients write equal headers for all calls of one operation of an
//! object, so the server compares bytes instead of parsing the header again. Service contexts are read in each
//! request, because they differ from call to call. Where a priority is the only one, all but its number is constant.

use std::num::NonZeroUsize;
use std::ops::Range;

use super::read::{FLAGS_AT, KEY_AT, PlainRequest};
use super::{Message, RequestId, Response};
use crate::cdr::Reader;
use crate::real_time::PRIORITY_CONTEXT_BYTES;
use crate::service_context::{ContextsInPlace, RT_CORBA_PRIORITY, ServiceContext, ServiceContexts};
use crate::version::{ByteOrder, Encoding};

/// The constant part of a plain request's header; see [`PlainRequest`].
#[derive(Debug)]
pub struct HeaderTemplate {
    order: ByteOrder,
    /// The bytes from the version to the message type (CORBA 3.3 part 2, 9.4.1).
    fixed: [u8; 4],
    response: Response,
    /// The bytes from the response flags to the end of the operation with its padding; in a template without service
    /// contexts to the end of their number, which is 0; in one with a priority to the length of that context.
    bytes: Box<[u8]>,
    /// The part of `bytes` that may differ: the end of the object key.
    open: Range<usize>,
    operation: Box<[u8]>,
    /// Where in the message `bytes` end.
    end: usize,
    contexts: HeaderContexts,
    /// Where in the message that number stands. Few bits, so that a sum cannot overflow.
    count_at: u32,
    /// Where the arguments start if there are no contexts.
    body_at: NonZeroUsize,
}

/// The service contexts of requests with the same header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderContexts {
    /// None.
    None,
    /// A priority, and no other: [`HeaderTemplate::priority_of`] reads it.
    Priority,
    /// Any, or none: [`HeaderTemplate::contexts_of`] tells which.
    Any,
}

impl HeaderTemplate {
    /// The template of a message whose object key has `open` octets at its end that tell objects apart. The template of a
    /// message with service contexts is also that of messages with others or none, unless it has a priority alone; the
    /// template of a message without is not that of messages with some.
    /// `None` if the message is not a plain request, or if its header is too long to be worth keeping.
    pub fn of(message: &Message, open: usize) -> Option<HeaderTemplate> {
        let PlainRequest { response, operation, object_key, contexts, .. } = message.plain_request()?;
        let begin = operation.as_ptr().addr() - message.bytes().as_ptr().addr();
        let named = (begin + operation.len() + 1).next_multiple_of(4);
        let kind = kind_of(contexts.into());
        let end = named
            + match kind {
                HeaderContexts::None => COUNT_BYTES,
                HeaderContexts::Priority => COUNT_BYTES + CONTEXT_HEAD_BYTES,
                HeaderContexts::Any => 0,
            };
        let bytes = message.bytes().get(FLAGS_AT..end).filter(|bytes| bytes.len() <= HEAD_BYTES_MAX)?;
        let key_end = KEY_AT - FLAGS_AT + object_key.len();
        let open = key_end - open.min(object_key.len())..key_end;
        let (order, fixed) = (message.header().order, *message.bytes().get(VERSION_AT..)?.first_chunk()?);
        let (bytes, operation, count_at) = (bytes.into(), operation.into(), u32::try_from(named).ok()?);
        let arguments_at = match kind {
            HeaderContexts::Priority => end + PRIORITY_CONTEXT_BYTES,
            HeaderContexts::None | HeaderContexts::Any => named + COUNT_BYTES,
        };
        let body_at = NonZeroUsize::new(arguments_at.next_multiple_of(8))?;
        Some(HeaderTemplate {
            order,
            fixed,
            response,
            bytes,
            open,
            operation,
            end,
            contexts: kind,
            count_at,
            body_at,
        })
    }

    /// Whether a message is a request with this header, to the same object.
    #[inline(always)] // a step of every call
    pub fn is_of(&self, message: &Message) -> bool {
        self.said_by(message).is_some_and(|said| said == &*self.bytes)
    }

    /// The object's octets in the key, if the message is a request with this header, perhaps to another
    /// object. `None` if it is not.
    #[inline(always)] // a step of every call
    pub fn object_of<'m>(&self, message: &'m Message) -> Option<&'m [u8]> {
        let (said, known) = (self.said_by(message)?, &*self.bytes);
        let Range { start, end } = self.open;
        let is_like = said.get(..start)? == known.get(..start)? && said.get(end..)? == known.get(end..)?;
        said.get(start..end).filter(|_| is_like)
    }

    /// The bytes in place of the header, if the message's fixed header matches.
    #[inline(always)] // a step of every call
    fn said_by<'m>(&self, message: &'m Message) -> Option<&'m [u8]> {
        let (head, said) = message.bytes().get(..self.end)?.split_first_chunk::<FLAGS_AT>()?;
        let [_, _, _, _, v0, v1, flags, kind, ..] = *head;
        (self.fixed == [v0, v1, flags, kind]).then_some(said)
    }

    /// Which service contexts requests with this header have.
    #[inline(always)] // a step of every call
    pub fn contexts(&self) -> HeaderContexts {
        self.contexts
    }

    /// The data of the context of a request with this header, where a priority is the only one. `None` if it is incomplete.
    #[inline(always)] // a step of every call with a priority
    pub fn priority_of<'m>(&self, message: &'m Message) -> Option<&'m [u8; PRIORITY_CONTEXT_BYTES]> {
        message.bytes().get(self.end..)?.first_chunk()
    }

    #[inline(always)] // a step of every call with contexts
    fn count_of<'m>(&self, message: &'m Message) -> Option<&'m [u8; 4]> {
        message.bytes().get(self.count_at as usize..self.contexts_at())?.first_chunk()
    }

    #[inline(always)] // a step of every call with contexts
    fn contexts_at(&self) -> usize {
        self.count_at as usize + 4
    }

    /// The service contexts of a request with this header, for which [`pass_over_contexts`](Self::pass_over_contexts) has
    /// found them complete. None if the template is one without contexts.
    #[inline]
    pub fn contexts_of<'m>(&self, message: &'m Message) -> ContextsInPlace<'m> {
        if self.contexts == HeaderContexts::None {
            return ContextsInPlace::NONE;
        }
        let count = self.count_of(message).map_or(0, |count| self.order.number(*count));
        ContextsInPlace::unread(message.bytes(), self.contexts_at(), count, self.order)
    }

    /// Where the arguments of a request with this header start behind its service contexts, if there are any. `None` if
    /// `concerns` is true of the id of one of them, or if they are incomplete.
    #[inline(always)] // a step of every call with contexts
    pub fn pass_over_contexts(
        &self,
        message: &Message,
        concerns: impl Fn(u32) -> bool,
    ) -> Option<NonZeroUsize> {
        let (bytes, is_native) = (message.bytes(), self.order.is_native());
        let number = |bytes: [u8; 4]| match u32::from_ne_bytes(bytes) {
            number if is_native => number,
            number => number.swap_bytes(),
        };
        let mut at = self.contexts_at();
        for _ in 0..number(*self.count_of(message)?) {
            let [i0, i1, i2, i3, n0, n1, n2, n3] = *bytes.get(at..)?.first_chunk()?;
            let end = (at + 8).saturating_add(number([n0, n1, n2, n3]) as usize);
            if end > bytes.len() || concerns(number([i0, i1, i2, i3])) {
                return None;
            }
            at = end.next_multiple_of(4);
        }
        NonZeroUsize::new(at.next_multiple_of(8))
    }

    /// The response that the client expects.
    #[inline]
    pub fn response(&self) -> Response {
        self.response
    }

    /// The operation, without the final NUL.
    #[inline]
    pub fn operation(&self) -> &[u8] {
        &self.operation
    }

    /// The request id of a request with this header.
    #[inline(always)] // a step of every call
    pub fn id_of(&self, message: &Message) -> RequestId {
        let head = message.bytes().first_chunk::<FLAGS_AT>();
        let id = head.map_or([0; 4], |[.., i0, i1, i2, i3]| [*i0, *i1, *i2, *i3]);
        RequestId(self.order.number(id))
    }

    /// Where the arguments of a request without service contexts start if there are any.
    #[inline(always)] // a step of every call
    pub fn plain_body_at(&self) -> NonZeroUsize {
        self.body_at
    }

    /// A reader of the arguments of a request with this header, which start where
    /// [`plain_body_at`](Self::plain_body_at) or [`pass_over_contexts`](Self::pass_over_contexts) says.
    #[inline(always)] // a step of every call
    pub fn arguments_at<'m>(&self, message: &'m Message, body_at: usize, encoding: Encoding) -> Reader<'m> {
        // Messages of GIOP 1.2 have no joints.
        Reader::at(message.bytes(), body_at, Encoding { order: self.order, ..encoding })
    }
}

/// Which contexts the template of a message with these is for.
fn kind_of(contexts: ServiceContexts<'_>) -> HeaderContexts {
    let (mut each, count) = (contexts.clone(), contexts.len());
    match (each.next(), count) {
        (None, _) => HeaderContexts::None,
        (Some(ServiceContext { id: RT_CORBA_PRIORITY, data }), 1) if data.len() == PRIORITY_CONTEXT_BYTES => {
            HeaderContexts::Priority
        }
        (Some(_), _) => HeaderContexts::Any,
    }
}

/// The number of contexts.
const COUNT_BYTES: usize = 4;

/// The number of a context, and the length of its data.
const CONTEXT_HEAD_BYTES: usize = 8;

/// The offset of the version in a message.
const VERSION_AT: usize = 4;

/// Longer headers are parsed each time.
const HEAD_BYTES_MAX: usize = 512;

/// Numbers that find requests with the same header. Requests with other headers seldom have the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFingerprint {
    /// Covers everything but the object's own part of the key.
    pub shape: u64,
    /// Covers the end of the key.
    pub object: u64,
}

impl Message {
    /// The fingerprint of a request. `None` if the message is too short for a request to an IronORB object.
    /// It covers the operation and the bytes where IronORB keys have the adapter. Requests with keys of other
    /// ORBs may have the same fingerprint for many objects.
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
        // Four more bytes follow the name. So these eight exist, and none belongs to an argument.
        let named = bytes.get(key_end.next_multiple_of(4)..)?.first_chunk::<12>()?;
        let [n0, n1, n2, n3, o0, o1, o2, o3, o4, o5, o6, o7] = *named;
        let operation = u64::from_ne_bytes([o0, o1, o2, o3, o4, o5, o6, o7])
            ^ u64::from(u32::from_ne_bytes([n0, n1, n2, n3])).rotate_right(8);
        let shape = (adapter ^ operation).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Some(RequestFingerprint { shape, object: u64::from_ne_bytes(*object) })
    }
}

/// The offset in a request of the bytes of an IronORB key that identify the adapter.
const ADAPTER_AT: usize = KEY_AT + 3;
