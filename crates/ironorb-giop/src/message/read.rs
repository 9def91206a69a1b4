//! Headers of incoming messages. They are parsed completely and borrow from the message.

use super::{AddressingDisposition, HEADER_BYTES, Message, MessageHeader, MessageType, RequestId, address};
use crate::cdr::Reader;
use crate::error::{Malformed, MalformedKind};
use crate::service_context::{ContextsInPlace, ServiceContexts};
use crate::version::{Encoding, TransmissionCodeSets, Version};

/// The response that the client expects (9.4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Nothing: a oneway without synchronisation.
    None,
    /// A reply as soon as the server has received the request.
    SyncWithServer,
    /// The reply of the operation.
    SyncWithTarget,
}

impl Response {
    #[inline]
    fn of_flags(flags: u8) -> Response {
        match flags & 3 {
            0 => Response::None,
            1 => Response::SyncWithServer,
            _ => Response::SyncWithTarget,
        }
    }

    pub(crate) fn flags(self) -> u8 {
        match self {
            Response::None => 0,
            Response::SyncWithServer => 1,
            Response::SyncWithTarget => 3,
        }
    }
}

/// Where the values after a header start.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    pub(super) message: &'a Message,
    pub(super) at: usize,
    encoding: Encoding,
}

impl<'a> Body<'a> {
    /// A reader of the values, with the alignment of the message.
    #[inline]
    pub fn reader(&self) -> Reader<'a> {
        Reader::of_joined(self.message.bytes(), &self.message.joints, self.at, self.encoding)
    }

    /// The offset of the first value from the start of the message; see [`Reader::position`].
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// This body, read with other code sets.
    #[inline]
    pub fn with_code_sets(self, code_sets: TransmissionCodeSets) -> Self {
        Body { encoding: self.encoding.with_code_sets(code_sets), ..self }
    }
}

/// A Request header (9.4.2).
#[derive(Debug)]
pub struct Request<'a> {
    /// The request id, which the reply repeats.
    pub id: RequestId,
    /// The GIOP version, which the reply must have too.
    pub version: Version,
    /// The response that the client expects.
    pub response: Response,
    /// How the client named the object.
    pub addressing: AddressingDisposition,
    /// The key of the target object.
    pub object_key: &'a [u8],
    /// The operation, without the final NUL.
    pub operation: &'a [u8],
    /// Service contexts.
    pub contexts: ServiceContexts<'a>,
    /// The arguments.
    pub body: Body<'a>,
}

/// A GIOP 1.2 Request header as nearly all are: the key names the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainRequest<'a> {
    /// The request id, which the reply repeats.
    pub id: RequestId,
    /// The response that the client expects.
    pub response: Response,
    /// The key of the target object.
    pub object_key: &'a [u8],
    /// The operation, without the final NUL.
    pub operation: &'a [u8],
    /// Service contexts.
    pub contexts: ContextsInPlace<'a>,
    /// Where in the message the arguments start.
    pub body_at: usize,
}

/// A Reply header (9.4.3).
#[derive(Debug)]
pub struct Reply<'a> {
    /// The id of the request that this answers.
    pub id: RequestId,
    /// What the body contains.
    pub status: ReplyStatus,
    /// Service contexts.
    pub contexts: ServiceContexts<'a>,
    /// Results, exception or reference.
    pub body: Body<'a>,
}

/// What the body of a reply contains (9.4.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyStatus {
    /// Results.
    NoException,
    /// A user exception: its repository id and members.
    UserException,
    /// A system exception.
    SystemException,
    /// An IOR to use for this and later calls, until it fails.
    LocationForward,
    /// An IOR to use permanently.
    LocationForwardPerm,
    /// A 16-bit addressing disposition.
    NeedsAddressingMode,
}

/// A LocateRequest header (9.4.5).
#[derive(Debug)]
pub struct LocateRequest<'a> {
    /// The request id, which the reply repeats.
    pub id: RequestId,
    /// GIOP version.
    pub version: Version,
    /// How the client named the object.
    pub addressing: AddressingDisposition,
    /// The key of the target object.
    pub object_key: &'a [u8],
}

/// A LocateReply header (9.4.6).
#[derive(Debug)]
pub struct LocateReply<'a> {
    /// The id of the request that this answers.
    pub id: RequestId,
    /// The answer.
    pub status: LocateStatus,
    /// The reference or exception, if the status has one.
    pub body: Body<'a>,
}

/// The answer of a LocateReply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocateStatus {
    /// The server does not know the object.
    UnknownObject,
    /// The server has the object.
    ObjectHere,
    /// An IOR follows, to use until it fails.
    ObjectForward,
    /// An IOR follows, to use permanently.
    ObjectForwardPerm,
    /// A system exception follows.
    SystemException,
    /// A 16-bit addressing disposition follows.
    NeedsAddressingMode,
}

impl Message {
    /// A reader that starts after the fixed header.
    #[inline]
    pub(super) fn reader(&self) -> Reader<'_> {
        self.reader_at(HEADER_BYTES)
    }

    /// Refuses a message of another kind. For example, a peer may answer a Request with a LocateReply.
    #[inline]
    fn expect_kind(&self, kind: MessageType) -> Result<(), Malformed> {
        if self.header().kind != kind {
            return Err(Malformed::new(MalformedKind::BadMessageType, 7));
        }
        Ok(())
    }

    fn body<'a>(&'a self, r: &Reader<'a>) -> Body<'a> {
        Body { message: self, at: r.position(), encoding: r.encoding() }
    }

    /// Parses a Request.
    pub fn parse_request(&self) -> Result<Request<'_>, Malformed> {
        match self.plain_request() {
            Some(PlainRequest { id, response, object_key, operation, contexts, body_at }) => Ok(Request {
                id,
                version: Version::V1_2,
                response,
                addressing: AddressingDisposition::Key,
                object_key,
                operation,
                contexts: contexts.into(),
                body: Body { message: self, at: body_at, encoding: self.encoding() },
            }),
            None => self.parse_any_request(),
        }
    }

    /// Parses the header of nearly every request: a GIOP 1.2 Request that names its object by the key. `None`
    /// if the message is something else or malformed.
    #[inline(always)] // a step of every call
    pub fn plain_request(&self) -> Option<PlainRequest<'_>> {
        let MessageHeader { version, order, kind, .. } = self.header;
        if version != Version::V1_2 || kind != MessageType::Request {
            return None;
        }
        let bytes = self.bytes();
        let (fixed, _) = bytes.split_first_chunk::<KEY_AT>()?;
        let [.., i0, i1, i2, i3, flags, _, _, _, 0, 0, _, _, k0, k1, k2, k3] = *fixed else { return None };
        let key_end = KEY_AT.checked_add(order.number([k0, k1, k2, k3]) as usize)?;
        let object_key = bytes.get(KEY_AT..key_end)?;
        let name_at = key_end.next_multiple_of(4) + 4;
        let size = bytes.get(name_at - 4..)?.first_chunk::<4>()?;
        let name_end = name_at.checked_add(order.number(*size) as usize)?;
        let [operation @ .., 0] = bytes.get(name_at..name_end)? else { return None };
        let contexts_at = name_end.next_multiple_of(4) + 4;
        let count = bytes.get(contexts_at - 4..)?.first_chunk::<4>()?;
        let (contexts, contexts_end) = match *count {
            [0, 0, 0, 0] => (ContextsInPlace::NONE, contexts_at),
            count => ContextsInPlace::read(bytes, contexts_at, order.number(count), order)?,
        };
        Some(PlainRequest {
            id: RequestId(order.number([i0, i1, i2, i3])),
            response: Response::of_flags(flags),
            object_key,
            operation,
            contexts,
            body_at: contexts_end.next_multiple_of(8).min(bytes.len()),
        })
    }

    pub(super) fn parse_any_request(&self) -> Result<Request<'_>, Malformed> {
        self.expect_kind(MessageType::Request)?;
        let mut r = self.reader();
        let version = self.header().version;
        if version == Version::V1_2 {
            let id = RequestId(r.read_u32()?);
            let response = Response::of_flags(r.read_u8()?);
            r.read_bytes(3)?;
            let (addressing, object_key) = address::read_target(&mut r)?;
            let operation = read_operation(&mut r)?;
            let contexts = ServiceContexts::read(&mut r)?;
            r.align(8); // 9.4.2.2: the body starts at a multiple of 8
            let body = self.body(&r);
            Ok(Request { id, version, response, addressing, object_key, operation, contexts, body })
        } else {
            let contexts = ServiceContexts::read(&mut r)?;
            let id = RequestId(r.read_u32()?);
            let response = if r.read_bool()? { Response::SyncWithTarget } else { Response::None };
            if version == Version::V1_1 {
                r.read_bytes(3)?;
            }
            let object_key = r.read_octets()?;
            let operation = read_operation(&mut r)?;
            r.read_octets()?; // the principal, which is obsolete
            let (addressing, body) = (AddressingDisposition::Key, self.body(&r));
            Ok(Request { id, version, response, addressing, object_key, operation, contexts, body })
        }
    }

    /// Parses a Reply.
    #[inline(always)] // a step of every call
    pub fn parse_reply(&self) -> Result<Reply<'_>, Malformed> {
        self.expect_kind(MessageType::Reply)?;
        match self.plain_reply() {
            Some(reply) => Ok(reply),
            None => self.parse_any_reply(),
        }
    }

    /// Parses nearly every reply: a GIOP 1.2 Reply without service contexts that ends the call. Its header
    /// has a constant size, after which the body is aligned. `None` if the message is something else or
    /// malformed.
    #[inline(always)] // a step of every call
    fn plain_reply(&self) -> Option<Reply<'_>> {
        let MessageHeader { version, order, .. } = self.header();
        let [i0, i1, i2, i3, s0, s1, s2, s3, 0, 0, 0, 0] =
            *self.bytes().get(HEADER_BYTES..)?.first_chunk()?
        else {
            return None;
        };
        let status = match order.number([s0, s1, s2, s3]) {
            _ if version != Version::V1_2 => return None,
            0 => ReplyStatus::NoException,
            1 => ReplyStatus::UserException,
            _ => return None,
        };
        let encoding = Encoding { order, version, ..Encoding::native(version, self.code_sets) };
        let body = Body { message: self, at: PLAIN_REPLY_BYTES, encoding };
        let id = RequestId(order.number([i0, i1, i2, i3]));
        Some(Reply { id, status, contexts: ServiceContexts::none(), body })
    }

    pub(super) fn parse_any_reply(&self) -> Result<Reply<'_>, Malformed> {
        let mut r = self.reader();
        if self.header().version == Version::V1_2 {
            let id = RequestId(r.read_u32()?);
            let status = read_status(&mut r)?;
            let contexts = ServiceContexts::read(&mut r)?;
            r.align(8);
            Ok(Reply { id, status, contexts, body: self.body(&r) })
        } else {
            let contexts = ServiceContexts::read(&mut r)?;
            let id = RequestId(r.read_u32()?);
            let status = read_status(&mut r)?;
            Ok(Reply { id, status, contexts, body: self.body(&r) })
        }
    }

    /// Parses a LocateRequest.
    pub fn parse_locate_request(&self) -> Result<LocateRequest<'_>, Malformed> {
        self.expect_kind(MessageType::LocateRequest)?;
        let mut r = self.reader();
        let version = self.header().version;
        let id = RequestId(r.read_u32()?);
        let (addressing, object_key) = match version {
            Version::V1_2 => address::read_target(&mut r)?,
            _ => (AddressingDisposition::Key, r.read_octets()?),
        };
        Ok(LocateRequest { id, version, addressing, object_key })
    }

    /// Parses a LocateReply. Its body follows the header without padding.
    pub fn parse_locate_reply(&self) -> Result<LocateReply<'_>, Malformed> {
        self.expect_kind(MessageType::LocateReply)?;
        let mut r = self.reader();
        let id = RequestId(r.read_u32()?);
        let status = match r.read_u32()? {
            0 => LocateStatus::UnknownObject,
            1 => LocateStatus::ObjectHere,
            2 => LocateStatus::ObjectForward,
            3 => LocateStatus::ObjectForwardPerm,
            4 => LocateStatus::SystemException,
            5 => LocateStatus::NeedsAddressingMode,
            _ => return Err(r.malformed(MalformedKind::BadStatus)),
        };
        Ok(LocateReply { id, status, body: self.body(&r) })
    }

    /// The request id of a message that is a Reply, LocateReply, CancelRequest, LocateRequest, or a
    /// Request or Fragment of GIOP 1.2.
    #[inline]
    pub fn request_id(&self) -> Result<RequestId, Malformed> {
        let MessageHeader { version, order, kind, .. } = self.header();
        match self.bytes().get(HEADER_BYTES..).and_then(|rest| rest.first_chunk()) {
            Some(id) if version == Version::V1_2 => Ok(RequestId(order.number(*id))),
            _ => read_request_id(kind, self.reader()),
        }
    }
}

/// The offset of the response flags, after the id, in a GIOP 1.2 request.
pub(super) const FLAGS_AT: usize = HEADER_BYTES + 4;

/// The offset of the object key in a GIOP 1.2 request that names its object by the key.
pub(super) const KEY_AT: usize = HEADER_BYTES + 16;

/// The size in bytes of a GIOP 1.2 header with a request id, a status and no service contexts.
pub(crate) const PLAIN_REPLY_BYTES: usize = HEADER_BYTES + 12;

/// The request id at the start of a message body. The reader `r` is after the fixed header.
pub fn read_request_id(kind: MessageType, mut r: Reader<'_>) -> Result<RequestId, Malformed> {
    // Before GIOP 1.2, the service contexts of requests and replies come first.
    if r.encoding().version < Version::V1_2 && matches!(kind, MessageType::Request | MessageType::Reply) {
        ServiceContexts::read(&mut r)?;
    }
    r.read_u32().map(RequestId)
}

/// The operation as bytes. Only a name that matches an operation needs to be text.
#[inline(always)] // a step of every call
fn read_operation<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    match r.read_octets()?.split_last() {
        Some((0, name)) => Ok(name),
        _ => Err(r.malformed(MalformedKind::StringNotTerminated)),
    }
}

fn read_status(r: &mut Reader<'_>) -> Result<ReplyStatus, Malformed> {
    Ok(match r.read_u32()? {
        0 => ReplyStatus::NoException,
        1 => ReplyStatus::UserException,
        2 => ReplyStatus::SystemException,
        3 => ReplyStatus::LocationForward,
        4 => ReplyStatus::LocationForwardPerm,
        5 => ReplyStatus::NeedsAddressingMode,
        _ => return Err(r.malformed(MalformedKind::BadStatus)),
    })
}
