//! Messages that are larger than the limit, or for which memory is lacking. The framer drops their bytes as
//! they arrive, and the caller that waits for an answer gets an exception. The connection continues. Closing
//! it instead would fail the other calls on it without telling their callers why.

use super::{BUFFER_BYTES, Buffer, Framer};
use crate::error::{Malformed, MalformedKind};
use crate::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use crate::message::{
    HEADER_BYTES, Message, MessageHeader, MessageStart, MessageType, ReplyStatus, RequestId, read_request_id,
};
use crate::minor::MinorCode;
use crate::service_context::ServiceContexts;
use crate::version::{ByteOrder, Encoding, TransmissionCodeSets, Version};

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The message is larger than [`message_bytes_max`](super::FramerLimits::message_bytes_max).
    TooLarge,
    /// The [memory](super::ReceiveMemory) for large messages is in use.
    NoMemory,
}

/// A message that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The kind of the message: Request or Reply.
    pub kind: MessageType,
    /// The id of the request, or of the request that the reply answers.
    pub id: RequestId,
    /// The GIOP version, which the answer must have too.
    pub version: Version,
    /// Whether the sender waits for an answer.
    pub wants_answer: bool,
    /// Why the message is refused.
    pub why: RefusalReason,
}

impl Refused {
    /// The exception for the caller.
    pub fn exception(&self) -> SystemException {
        let completed = match self.kind {
            MessageType::Request => CompletionStatus::No,
            _ => CompletionStatus::Yes,
        };
        // IMP_LIMIT is for requests that will not succeed the next time either.
        let (kind, minor) = match (self.why, self.kind) {
            (RefusalReason::NoMemory, _) => (SystemExceptionKind::NoMemory, MinorCode::RECEIVE_MEMORY_TAKEN),
            (_, MessageType::Request) => (SystemExceptionKind::ImpLimit, MinorCode::REQUEST_TOO_LARGE),
            _ => (SystemExceptionKind::ImpLimit, MinorCode::REPLY_TOO_LARGE),
        };
        SystemException::new(kind, minor, completed)
    }

    /// A reply with the exception, in place of the reply that was refused.
    pub(crate) fn reply(&self) -> Message {
        let encoding = Encoding::native(self.version, TransmissionCodeSets::UNNEGOTIATED);
        let mut buf = Vec::new();
        let start = MessageStart::reply(&mut buf, encoding, self.id, ReplyStatus::SystemException);
        // Neither can fail: an exception without text is short.
        let _ = start.body(&mut buf).put(&self.exception());
        let _ = start.finish(&mut buf, usize::MAX);
        let header = MessageHeader {
            version: self.version,
            order: ByteOrder::NATIVE,
            more_fragments: false,
            kind: MessageType::Reply,
            body_bytes: (buf.len() - HEADER_BYTES) as u32,
        };
        let (len, code_sets) = (buf.len(), TransmissionCodeSets::UNNEGOTIATED);
        Message { header, code_sets, joints: Box::default(), len, buf: buf.into() }
    }
}

/// Before GIOP 1.2, the request id follows the service contexts. The framer waits for it until this many
/// bytes have arrived.
const HEAD_BYTES_MAX: usize = 64 << 10;

impl Framer {
    /// The message that caused the last error of [`next`](Framer::next), if the stream can continue behind
    /// it.
    pub fn take_refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Refuses the message that has started to arrive, once its request id is known.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        header: MessageHeader,
        length: usize,
        why: RefusalReason,
    ) -> Result<Option<Message>, Malformed> {
        let refused = match self.refusal(header, why) {
            Some(refused) => refused?,
            None if why == RefusalReason::TooLarge => return Ok(None),
            None => return Err(too_large()), // memory is lacking even for its header
        };
        self.refused = Some(refused);
        self.drop_next(length);
        Err(too_large())
    }

    /// Drops a message of `length` bytes: those that have arrived and those still to come.
    pub(super) fn drop_next(&mut self, length: usize) {
        let there = length.min(self.filled - self.taken);
        (self.dropped, self.to_drop) = (there, length - there);
        self.take(there);
        if self.filled == 0 && self.buf.len() > BUFFER_BYTES {
            self.buf = Buffer::default(); // dropped bytes need no large buffer
        }
    }

    /// The refusal of the too large message that has started to arrive; `None` until its request id has
    /// arrived. A fragmented message is an error: its sender did not need to announce the size.
    #[cold]
    pub(super) fn refusal(
        &self,
        header: MessageHeader,
        why: RefusalReason,
    ) -> Option<Result<Refused, Malformed>> {
        let arrived = &self.buf[self.taken..self.filled];
        let head = &arrived[..arrived.len().min(HEAD_BYTES_MAX)];
        let is_answerable = matches!(header.kind, MessageType::Request | MessageType::Reply);
        match refused(header, head, why) {
            Ok(refused) if is_answerable && !header.more_fragments => Some(Ok(refused)),
            Err(_) if is_answerable && !header.more_fragments && arrived.len() < HEAD_BYTES_MAX => None,
            _ => Some(Err(too_large())),
        }
    }

    /// Drops the arrived bytes of a refused message. False if more of it is to come.
    #[cold]
    pub(super) fn drop_arrived(&mut self) -> bool {
        let there = self.to_drop.min(self.filled - self.taken);
        self.take(there);
        self.to_drop -= there;
        self.dropped += there;
        self.to_drop == 0
    }
}

pub(super) fn too_large() -> Malformed {
    Malformed::new(MalformedKind::TooLarge, 8)
}

/// The refusal of the message that starts with these bytes.
pub(super) fn refused(header: MessageHeader, head: &[u8], why: RefusalReason) -> Result<Refused, Malformed> {
    let mut r = header.reader(head);
    let id = read_request_id(header.kind, r.clone())?;
    let wants_answer = match (header.kind, header.version) {
        (MessageType::Request, Version::V1_2) => {
            r.read_u32()?;
            r.read_u8()? & RESPONSE_EXPECTED != 0
        }
        (MessageType::Request, _) => {
            ServiceContexts::read(&mut r)?;
            r.read_u32()?;
            r.read_u8()? != 0
        }
        _ => false,
    };
    Ok(Refused { kind: header.kind, id, version: header.version, wants_answer, why })
}

/// The response flag of a Request that expects a reply (9.4.2).
const RESPONSE_EXPECTED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::super::FramerLimits;
    use super::*;
    use crate::message::{RequestTarget, Response};
    use crate::service_context::EncodedContexts;

    const LIMITS: FramerLimits = FramerLimits { message_bytes_max: 2000, assemblies_max: 16 };

    fn request(version: Version, id: u32, response: Response, body: usize) -> Vec<u8> {
        let target = RequestTarget::new(version, None, b"key");
        let mut buf = Vec::new();
        let sets = TransmissionCodeSets::UNNEGOTIATED;
        let contexts = [EncodedContexts::EMPTY];
        let id = RequestId(id);
        let start =
            MessageStart::request(&mut buf, &target, sets, id, response, "operation".into(), &contexts)
                .unwrap();
        start.body(&mut buf).write_bytes(&vec![7; body]);
        start.finish(&mut buf, usize::MAX).unwrap();
        buf
    }

    #[test]
    fn a_message_that_is_too_large_is_reported_and_dropped() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for (response, wants_answer) in [(Response::SyncWithTarget, true), (Response::None, false)] {
                let large = request(version, 5, response, 100_000);
                let small = request(version, 6, response, 100);
                for step in [1, 7, 4096, 300_000] {
                    let mut framer = Framer::new(LIMITS);
                    let (mut refused, mut taken) = (Vec::new(), Vec::new());
                    for part in [&small[..], &large, &large, &small].concat().chunks(step) {
                        framer.push(part);
                        loop {
                            match framer.next() {
                                Ok(None) => break,
                                Ok(Some(message)) => taken.push(message.bytes().to_vec()),
                                Err(_) => refused.push(framer.take_refused().unwrap()),
                            }
                        }
                        assert!(framer.buf.len() <= 600_000 && !framer.has_message());
                    }
                    assert_eq!(taken, [&small[..], &small]);
                    let expected = Refused {
                        kind: MessageType::Request,
                        id: RequestId(5),
                        version,
                        wants_answer,
                        why: RefusalReason::TooLarge,
                    };
                    assert_eq!(refused, [expected, expected]);
                    assert!(!framer.is_mid_message() && framer.unfinished_bytes() == 0);
                }
            }
        }
    }

    #[test]
    fn dropped_bytes_take_no_memory_and_count_as_progress() {
        let large = request(Version::V1_2, 1, Response::SyncWithTarget, 1 << 20);
        let mut framer = Framer::new(LIMITS);
        let mut came = 0;
        for part in large[..1 << 20].chunks(4096) {
            framer.push(part);
            let _ = framer.next();
            came += part.len();
            assert!(framer.is_mid_message() && framer.unfinished_bytes() == came);
            assert!(framer.buf.len() <= 32 << 10);
        }
    }

    #[test]
    fn the_request_id_must_arrive_in_time() {
        // A list of service contexts without an end.
        let mut bytes =
            b"GIOP\x01\x00\x01\x00\xff\xff\xff\x7f\x01\x00\x00\x00\x09\x00\x00\x00\xff\xff\xff\x3f".to_vec();
        bytes.resize(1 << 20, 0);
        let mut framer = Framer::new(LIMITS);
        let error = bytes.chunks(4096).find_map(|part| {
            framer.push(part);
            framer.next().err()
        });
        assert_eq!(error.unwrap().kind, MalformedKind::TooLarge);
        assert!(framer.take_refused().is_none() && framer.buf.len() <= 256 << 10);
    }
}
