//! Messages that are passed on: a header of our own before a body that stays as it came, in the byte order of whoever
//! wrote it.
//!
//! Nothing here looks into a body. So it must begin, modulo 8, where it began in the message that it came in: CDR aligns
//! by the message. GIOP 1.2 has all bodies at multiples of 8; before, the header is padded.

use super::read::{Body, ReplyStatus, Response};
use super::write::{RequestTarget, write_operation};
use super::{AddressingDisposition, HEADER_BYTES, MessageHeader, MessageType, RequestId};
use crate::cdr::Writer;
use crate::error::Misuse;
use crate::service_context::ServiceContext;
use crate::version::{ByteOrder, Encoding, Version};

/// The bytes of a body, and what they depend on.
#[derive(Debug, Clone, Copy)]
pub struct RawBody<'a> {
    /// Order of the numbers in it.
    pub order: ByteOrder,
    /// Where its first byte was in its message, modulo 8.
    pub phase: usize,
    /// The bytes, to the end of the message.
    pub bytes: &'a [u8],
}

impl<'a> RawBody<'a> {
    /// No results, or no arguments.
    pub const EMPTY: RawBody<'static> = RawBody { order: ByteOrder::NATIVE, phase: 0, bytes: &[] };

    /// Whether these bytes mean the same when they begin elsewhere. They do at the same place modulo 8; and, as long as
    /// no number of 8 bytes has room among them, at the same modulo 4.
    pub fn fits_at(&self, phase: usize) -> bool {
        // From the first multiple of 8 on there must be fewer than 8 bytes.
        let has_no_wide_number = self.bytes.len() < (self.phase.wrapping_neg() & 7) + 8;
        self.bytes.is_empty() || phase == self.phase || (phase % 4 == self.phase % 4 && has_no_wide_number)
    }
}

impl<'a> Body<'a> {
    /// The body as it came; `None` where the message was cut, in GIOP 1.1, so that what follows a cut is aligned afresh.
    pub fn raw(&self) -> Option<RawBody<'a>> {
        let (message, at) = (self.message, self.at);
        message.joints.is_empty().then(|| RawBody {
            order: message.header().order,
            phase: at % 8,
            bytes: message.bytes().get(at..).unwrap_or_default(),
        })
    }
}

/// Appends a whole Request with the body of another. On an error nothing is left of it.
///
/// Refuses a body that would have to be aligned otherwise ([`Misuse::MovedBody`]); before GIOP 1.2 there is none.
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

/// The same but for the body's bytes, which are to follow.
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
            // The principal, which nobody uses, brings the body to its place.
            w.align(4);
            let length = body.phase.wrapping_sub(w.position() + 4) % 8;
            w.write_octets(&[0; 8][..length])?;
        }
        Ok(())
    })
}

/// Appends a whole Reply with the body of another. On an error nothing is left of it.
///
/// Refuses a body that would have to be aligned otherwise ([`Misuse::MovedBody`]).
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

/// A context of ours that says nothing: those who do not know it pass it over, as the standard wants.
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
