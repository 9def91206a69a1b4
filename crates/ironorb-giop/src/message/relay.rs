//! Messages that are passed on: a new header before a body that stays unchanged, in the byte order of its
//! sender.
//!
//! Nothing here looks into a body. CDR aligns values by their position in the message, so the body must start
//! at the same position modulo 8 as in its original message. GIOP 1.2 has all bodies at multiples of 8. For
//! older versions the header is padded.

use super::read::{Body, ReplyStatus, Response};
use super::write::{RequestTarget, write_operation};
use super::{AddressingDisposition, HEADER_BYTES, MessageHeader, MessageType, RequestId};
use crate::cdr::Writer;
use crate::error::Misuse;
use crate::service_context::ServiceContext;
use crate::version::{ByteOrder, Encoding, Version};

/// The bytes of a body, with their byte order and alignment.
#[derive(Debug, Clone, Copy)]
pub struct RawBody<'a> {
    /// The byte order of its numbers.
    pub order: ByteOrder,
    /// The position of its first byte in its message, modulo 8.
    pub phase: usize,
    /// The bytes up to the end of the message.
    pub bytes: &'a [u8],
}

impl<'a> RawBody<'a> {
    /// An empty body: no results, or no arguments.
    pub const EMPTY: RawBody<'static> = RawBody { order: ByteOrder::NATIVE, phase: 0, bytes: &[] };

    /// Whether these bytes have the same meaning at this position. They do at the same position modulo 8. If
    /// they have no room for a number of 8 bytes, the same position modulo 4 is enough.
    pub fn fits_at(&self, phase: usize) -> bool {
        // From the first multiple of 8 on there must be fewer than 8 bytes.
        let has_no_wide_number = self.bytes.len() < (self.phase.wrapping_neg() & 7) + 8;
        self.bytes.is_empty() || phase == self.phase || (phase % 4 == self.phase % 4 && has_no_wide_number)
    }
}

impl<'a> Body<'a> {
    /// The body without changes. `None` if GIOP 1.1 fragments cut the message, because the data behind each
    /// cut has its own alignment.
    pub fn raw(&self) -> Option<RawBody<'a>> {
        let (message, at) = (self.message, self.at);
        message.joints.is_empty().then(|| RawBody {
            order: message.header().order,
            phase: at % 8,
            bytes: message.bytes().get(at..).unwrap_or_default(),
        })
    }
}

/// Appends a whole Request with the body of another message. On an error, no byte of it remains.
///
/// Refuses a body that would need another alignment ([`Misuse::MovedBody`]). Before GIOP 1.2 there is no such
/// error.
#[allow(clippy::too_many_arguments)] // the parts of a request
pub fn write_raw_request(
    buf: &mut Vec<u8>,
    target: &RequestTarget,
    id: RequestId,
    response: Response,
    operation: &str,
    contexts: &[ServiceContext<'_>],
    body: RawBody<'_>,
    message_bytes_max: usize,
) -> Result<(), Misuse> {
    write_raw_request_head(buf, target, id, response, operation, contexts, body, message_bytes_max)?;
    buf.extend_from_slice(body.bytes);
    Ok(())
}

/// Appends a Request without the bytes of its body, which the caller sends after it.
#[allow(clippy::too_many_arguments)] // the parts of a request
pub(crate) fn write_raw_request_head(
    buf: &mut Vec<u8>,
    target: &RequestTarget,
    id: RequestId,
    response: Response,
    operation: &str,
    contexts: &[ServiceContext<'_>],
    body: RawBody<'_>,
    message_bytes_max: usize,
) -> Result<(), Misuse> {
    let version = target.version();
    head_of(buf, version, MessageType::Request, body, message_bytes_max, |w| {
        if version == Version::V1_2 {
            w.write_u32(id.0);
            w.write_bytes(&[response.flags(), 0, 0, 0]);
            match target.disposition() {
                AddressingDisposition::Key => {
                    w.write_u16(AddressingDisposition::Key.number());
                    w.write_octets(target.object_key())?;
                }
                _ => w.write_bytes(target.address_in(body.order)),
            }
            write_operation(w, operation)?;
            w.put(contexts)?;
        } else {
            w.put(contexts)?;
            w.write_u32(id.0);
            w.write_bool(response != Response::None);
            if version == Version::V1_1 {
                w.write_bytes(&[0; 3]);
            }
            w.write_octets(target.object_key())?;
            write_operation(w, operation)?;
            // The principal, which is obsolete, serves as padding before the body.
            w.align(4);
            let length = body.phase.wrapping_sub(w.position() + 4) % 8;
            w.write_octets(&[0; 8][..length])?;
        }
        Ok(())
    })
}

/// Appends a whole Reply with the body of another message. On an error, no byte of it remains.
///
/// Refuses a body that would need another alignment ([`Misuse::MovedBody`]).
pub fn write_raw_reply(
    buf: &mut Vec<u8>,
    version: Version,
    id: RequestId,
    status: ReplyStatus,
    contexts: &[ServiceContext<'_>],
    body: RawBody<'_>,
    message_bytes_max: usize,
) -> Result<(), Misuse> {
    head_of(buf, version, MessageType::Reply, body, message_bytes_max, |w| {
        if version == Version::V1_2 {
            w.write_u32(id.0);
            w.write_u32(status as u32);
            return w.put(contexts);
        }
        let context_bytes: usize = contexts.iter().map(|c| 8 + c.data.len().next_multiple_of(4)).sum();
        let body_at = HEADER_BYTES + 4 + context_bytes + 8;
        let padding = ServiceContext { id: PADDING, data: &[0; 4] };
        match body.fits_at(body_at % 8) {
            true => w.put(contexts)?,
            false => w.put(&contexts.iter().copied().chain([padding]).collect::<Vec<_>>()[..])?,
        }
        w.align(4); // after the last context
        w.write_u32(id.0);
        w.write_u32(status as u32);
        Ok(())
    })?;
    buf.extend_from_slice(body.bytes);
    Ok(())
}

/// The tag of a service context without meaning, used as padding. The standard requires that receivers skip
/// contexts that they do not know.
pub const PADDING: u32 = 0x494F_5044;

/// Appends everything before the body.
fn head_of(
    buf: &mut Vec<u8>,
    version: Version,
    kind: MessageType,
    body: RawBody<'_>,
    message_bytes_max: usize,
    head: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), Misuse> {
    let origin = buf.len();
    let written = write_head(buf, version, kind, body, message_bytes_max, head);
    if written.is_err() {
        buf.truncate(origin);
    }
    written
}

fn write_head(
    buf: &mut Vec<u8>,
    version: Version,
    kind: MessageType,
    body: RawBody<'_>,
    message_bytes_max: usize,
    head: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), Misuse> {
    let (origin, order) = (buf.len(), body.order);
    let header = MessageHeader { version, order, more_fragments: false, kind, body_bytes: u32::MAX };
    let mut w = Writer::new(buf, Encoding { version, order, ..Encoding::NATIVE });
    w.write_bytes(&header.to_bytes());
    head(&mut w)?;
    if version == Version::V1_2 && !body.bytes.is_empty() {
        w.align(8);
    }
    if !body.fits_at(w.position() % 8) {
        return Err(Misuse::MovedBody);
    }
    let length = w.position().saturating_add(body.bytes.len());
    if length > message_bytes_max {
        return Err(Misuse::TooLarge);
    }
    let body_bytes = u32::try_from(length - HEADER_BYTES).map_err(|_| Misuse::TooLarge)?;
    let header = MessageHeader { body_bytes, ..header };
    buf[origin..origin + HEADER_BYTES].copy_from_slice(&header.to_bytes());
    Ok(())
}
