//! Bytes in, whole messages out: finds message boundaries and joins fragments.

mod plain;
mod refused;

pub use plain::{PlainReply, ShortReply};
pub use refused::Refused;

use crate::error::{Malformed, MalformedKind};
use crate::message::{HEADER_BYTES, Message, MessageHeader, MessageType, RequestId, read_request_id};
use crate::probe;
use crate::version::{TransmissionCodeSets, Version};

/// Bounds on what a peer can make us hold for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramerLimits {
    /// Largest message accepted, header and all fragments included, in bytes. Default 128 MiB. A larger request is
    /// answered with IMP_LIMIT, a larger reply ends its call with it, and their bytes are dropped as they come; one in
    /// fragments ends the connection. Memory follows
    /// what has arrived, so an announced size alone costs nothing; worst case about twice this per connection, and
    /// 16 MiB for a moment after the last large message.
    pub message_bytes_max: usize,
    /// Messages whose fragments may be interleaved. Default 16. All of them together hold at most
    /// `message_bytes_max` bytes, and as much again while their buffers grow.
    pub assemblies_max: usize,
}

impl Default for FramerLimits {
    fn default() -> Self {
        FramerLimits { message_bytes_max: 128 << 20, assemblies_max: 16 }
    }
}

/// Bytes of a fresh receive buffer: holds a hundred small requests.
pub const BUFFER_BYTES: usize = 16 << 10;
/// Bytes of the receive buffer once as many have come of a message in fragments, each of which may be as small as it
/// likes.
const ASSEMBLY_BUFFER_BYTES: usize = 128 << 10;
/// Buffers larger than this are not kept for the next message, but one; see [`Framer::release`].
const KEEP_BYTES_MAX: usize = 256 << 10;
/// No buffer is kept that is larger than this.
const KEEP_LARGE_BYTES_MAX: usize = 16 << 20;
/// Small messages behind a large one for which its buffer is kept.
const WAITS_MAX: usize = 32;
/// How often a message may be searched for a request id that has not come, each time in its length.
const SEARCHES_MAX: usize = 16;
/// Buffers kept for the next messages.
const SPARES_MAX: usize = 4;

/// Splits a byte stream into messages.
///
/// The driver asks for [`space`](Framer::space), receives into it, says how much came with
/// [`received`](Framer::received) and takes messages with [`next`](Framer::next) until there is none.
/// Takes no memory in the steady state: a message leaves with its buffer, which comes back by
/// [`recycle`](Framer::recycle).
#[derive(Debug)]
pub struct Framer {
    /// All bytes are initialised; `taken <= filled <= buf.len()`.
    buf: Vec<u8>,
    /// Bytes before have left in messages.
    taken: usize,
    filled: usize,
    spares: Vec<Vec<u8>>,
    /// One of more than `KEEP_BYTES_MAX` bytes.
    large: Option<Vec<u8>>,
    /// Length of the last message that did not fit a small buffer: the next is likely as long.
    expected: usize,
    /// How often more has been waited for since.
    waits: usize,
    assemblies: Vec<Assembly>,
    /// What of a refused message has been dropped, and what of it is still to come.
    dropped: usize,
    to_drop: usize,
    refused: Option<Refused>,
    limits: FramerLimits,
}

/// A message whose last fragment has not come.
#[derive(Debug)]
struct Assembly {
    /// `None` in GIOP 1.1, whose fragments carry no id and so cannot be interleaved.
    id: Option<RequestId>,
    header: MessageHeader,
    bytes: Vec<u8>,
    /// Where fragments begin, from the first on whose alignment its place in the joined bytes does not tell.
    joints: Vec<u32>,
    /// The peer has cancelled it: what still comes of it is dropped.
    cancelled: bool,
    /// The request id, once somebody wanted to know it.
    request_id: Option<RequestId>,
    /// Bytes that were searched for the request id in vain.
    searched_bytes: usize,
}

impl Assembly {
    /// Bytes held.
    fn held_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.joints.as_slice())
    }

    /// The request id, if it has come. In GIOP 1.1 it stands behind service contexts, as many as the peer likes: they
    /// are not looked through for each message that asks, of which the peer may send as many again.
    fn request_id(&mut self) -> Option<RequestId> {
        let length = self.bytes.len();
        if self.request_id.is_none() && self.searched_bytes <= SEARCHES_MAX * length {
            self.request_id = read_request_id(self.header.kind, self.header.reader(&self.bytes)).ok();
            self.searched_bytes += length;
        }
        self.request_id
    }
}

impl Framer {
    /// An empty framer.
    pub fn new(limits: FramerLimits) -> Self {
        Framer {
            buf: vec![0; BUFFER_BYTES],
            taken: 0,
            filled: 0,
            spares: Vec::new(),
            large: None,
            expected: 0,
            waits: 0,
            assemblies: Vec::new(),
            dropped: 0,
            to_drop: 0,
            refused: None,
            limits,
        }
    }

    /// Where the next bytes go; never empty. Grows with what has arrived of a large message, not with what
    /// it announces.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        // One look at whether there is some room but not much.
        if (self.buf.len() - self.filled).wrapping_sub(1) >= BUFFER_BYTES {
            return self.space_of_large();
        }
        &mut self.buf[self.filled..]
    }

    /// The same in a buffer that is full, or large. What comes behind a large message is left to the next receive: here
    /// it would have to be copied out of the message's buffer.
    #[cold]
    fn space_of_large(&mut self) -> &mut [u8] {
        let end = match self.unfinished_length() {
            Some(length) => {
                self.make_room(length);
                self.taken + length
            }
            None => self.filled + self.expected.max(BUFFER_BYTES),
        };
        if self.filled == self.buf.len() {
            self.grow();
        }
        let end = end.min(self.buf.len()).max(self.filled + 1);
        &mut self.buf[self.filled..end]
    }

    /// The length of a message of which a part has arrived, if that is known and it comes whole.
    fn unfinished_length(&self) -> Option<usize> {
        let arrived = &self.buf[self.taken..self.filled];
        let header = MessageHeader::parse(arrived.first_chunk()?).ok()?;
        let length = HEADER_BYTES.saturating_add(header.body_bytes as usize);
        let comes_whole = !header.more_fragments && header.kind != MessageType::Fragment;
        (comes_whole && length > arrived.len() && length <= self.limits.message_bytes_max).then_some(length)
    }

    /// Has a large message lie at the start of a buffer, with which it can leave. Goes over to one that is kept and
    /// holds the whole message, if there is one.
    fn make_room(&mut self, length: usize) {
        if self.taken > 0 && length > BUFFER_BYTES && self.filled - self.taken <= BUFFER_BYTES {
            self.move_to_front();
        }
        if self.buf.len() - self.taken >= length {
            return;
        }
        let fits = |spare: &Vec<u8>| spare.len() >= length;
        let spare = match self.spares.iter().position(fits) {
            Some(index) => self.spares.swap_remove(index),
            None => match self.large.take_if(|large| fits(large)) {
                Some(large) => large,
                None => return,
            },
        };
        let small = std::mem::replace(&mut self.buf, spare);
        let arrived = &small[self.taken..self.filled];
        self.buf[..arrived.len()].copy_from_slice(arrived);
        (self.taken, self.filled) = (0, arrived.len());
        self.recycle(small);
    }

    fn move_to_front(&mut self) {
        self.buf.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
    }

    /// Makes room in a full buffer.
    fn grow(&mut self) {
        if self.taken > 0 {
            return self.move_to_front();
        }
        if self.buf.is_empty()
            && let Some(spare) = self.spares.pop()
        {
            self.buf = spare;
            return;
        }
        // No more than the message needs: the next that is as long fits exactly.
        let needed =
            self.unfinished_length().map_or(usize::MAX, |length| length.next_multiple_of(BUFFER_BYTES));
        let length = (2 * self.buf.len()).min(needed).max(BUFFER_BYTES);
        self.buf.resize(length, 0);
    }

    /// Says that the first `length` bytes are done with.
    #[inline]
    fn take(&mut self, length: usize) {
        self.taken += length;
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
    }

    /// Says that `count` bytes have been put into [`space`](Framer::space).
    #[inline]
    pub fn received(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.len());
    }

    /// Takes bytes from elsewhere, for drivers that cannot receive in place.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.received(count);
            bytes = &bytes[count..];
        }
    }

    /// True when all that has arrived has been taken.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.filled == 0 && self.to_drop == 0
    }

    /// True when nothing is held, of messages or for them, but the buffers that there always are.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.is_drained() && self.assemblies.is_empty() && self.expected <= KEEP_BYTES_MAX
    }

    /// True when bytes of an unfinished message are held.
    #[inline]
    pub fn is_mid_message(&self) -> bool {
        self.filled > self.taken || self.to_drop > 0 || !self.assemblies.is_empty() && self.has_assembly()
    }

    #[cold]
    fn has_assembly(&self) -> bool {
        self.assemblies.iter().any(|assembly| !assembly.cancelled)
    }

    /// True when bytes have arrived that have not left in messages, but for those of unfinished fragments.
    #[inline]
    pub fn holds_bytes(&self) -> bool {
        self.filled > self.taken
    }

    /// Bytes held of messages that are not complete.
    pub fn held_bytes(&self) -> usize {
        let assembled: usize = self.assemblies.iter().map(Assembly::held_bytes).sum();
        self.filled - self.taken + assembled
    }

    /// Bytes that have come of messages that are not complete: those held, and those dropped of one that is refused.
    pub fn unfinished_bytes(&self) -> usize {
        self.held_bytes() + if self.to_drop > 0 { self.dropped } else { 0 }
    }

    /// The next whole message, if it has arrived. After an error the stream is lost and the connection is to
    /// be closed, unless [`take_refused`](Self::take_refused) gives something.
    #[inline(always)] // a step of every call
    #[allow(clippy::should_implement_trait)] // fallible, and the driver feeds it between calls
    pub fn next(&mut self) -> Result<Option<Message>, Malformed> {
        loop {
            if self.to_drop > 0 && !self.drop_arrived() {
                return Ok(None);
            }
            let arrived = &self.buf[self.taken..self.filled];
            let Some(header) = arrived.first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let header = MessageHeader::parse(header)?;
            let length = HEADER_BYTES.saturating_add(header.body_bytes as usize);
            if length > self.limits.message_bytes_max {
                return self.refuse(header, length);
            }
            if arrived.len() < length {
                return Ok(None);
            }
            if header.more_fragments || header.kind == MessageType::Fragment {
                match self.join(header, length)? {
                    Some(whole) => return Ok(Some(whole)),
                    None => continue,
                }
            }
            return Ok(Some(self.detach(header, length)));
        }
    }

    /// True when a whole message, or the error that a malformed one is, waits to be taken.
    pub fn has_message(&self) -> bool {
        if self.to_drop > 0 {
            return self.filled - self.taken > self.to_drop;
        }
        let arrived = &self.buf[self.taken..self.filled];
        match arrived.first_chunk::<HEADER_BYTES>().map(MessageHeader::parse) {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(header)) => {
                let length = HEADER_BYTES.saturating_add(header.body_bytes as usize);
                if length > self.limits.message_bytes_max {
                    return self.refusal(header).is_some();
                }
                arrived.len() >= length
            }
        }
    }

    /// Gives a message's buffer back.
    #[inline]
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.len() > BUFFER_BYTES {
            return self.recycle_large(buffer);
        }
        if self.spares.len() < SPARES_MAX && !buffer.is_empty() {
            self.spares.push(buffer);
        }
    }

    /// The same for one that a large message has come in. If the next is likely as large it goes there at once.
    #[cold]
    fn recycle_large(&mut self, mut buffer: Vec<u8>) {
        if buffer.len() > KEEP_LARGE_BYTES_MAX {
            return;
        }
        if self.filled == 0 && (self.buf.len()..=buffer.len()).contains(&self.expected) {
            std::mem::swap(&mut self.buf, &mut buffer);
        }
        if buffer.len() <= KEEP_BYTES_MAX {
            if self.spares.len() < SPARES_MAX {
                self.spares.push(buffer);
            }
        } else if self.large.as_ref().is_none_or(|large| large.len() < buffer.len()) {
            self.expected = self.expected.max(buffer.len()); // so that it is looked at
            self.large = Some(buffer);
        }
    }

    /// Whether more memory is kept for large messages than others need, and none is coming. To be asked before waiting;
    /// after some times without a large message it is given back.
    #[inline]
    pub fn holds_spare_memory(&mut self) -> bool {
        self.expected > KEEP_BYTES_MAX && self.still_holds_spare_memory()
    }

    #[cold]
    fn still_holds_spare_memory(&mut self) -> bool {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            self.release();
        }
        self.expected > 0 && self.filled == 0
    }

    /// Gives back what is kept for large messages: for a driver that has waited for the next one, in vain.
    #[cold]
    pub fn release(&mut self) {
        self.expected = 0;
        self.large = None;
        if self.filled == 0 && self.buf.len() > KEEP_BYTES_MAX {
            self.buf = self.spares.pop().unwrap_or_else(|| vec![0; BUFFER_BYTES]);
        }
    }

    /// Gives up all buffers of a connection at rest, unless something has arrived that is incomplete; one of them is given
    /// to the caller, for another framer's [`recycle`](Framer::recycle). New ones are taken when bytes come.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        if self.filled > self.taken || self.to_drop > 0 || !self.assemblies.is_empty() {
            return None;
        }
        (self.taken, self.filled) = (0, 0);
        (self.expected, self.large) = (0, None);
        let kept = self.spares.iter().position(|spare| spare.len() <= BUFFER_BYTES);
        let kept = kept.map(|index| self.spares.swap_remove(index));
        self.spares = Vec::new();
        self.assemblies = Vec::new();
        let buf = std::mem::take(&mut self.buf);
        kept.or((buf.len() <= BUFFER_BYTES).then_some(buf))
    }

    /// Takes the next `length` bytes as a message: with their buffer when what follows them is less, else by
    /// copying them out, so that a stream of small messages costs no more than its bytes.
    #[inline(always)] // a step of every call
    fn detach(&mut self, header: MessageHeader, length: usize) -> Message {
        let rest = self.filled - self.taken - length;
        let buf = if self.taken == 0 && rest <= length {
            let mut spare = self.spares.pop().unwrap_or_else(|| vec![0; BUFFER_BYTES]);
            if spare.len() < rest.max(BUFFER_BYTES) {
                spare.resize(rest.max(BUFFER_BYTES), 0);
            }
            let _probe = probe::copying(rest);
            spare[..rest].copy_from_slice(&self.buf[length..self.filled]);
            self.filled = rest;
            if length > BUFFER_BYTES {
                (self.expected, self.waits) = (length, 0);
            }
            std::mem::replace(&mut self.buf, spare)
        } else {
            let _probe = probe::copying(length);
            let bytes = &self.buf[self.taken..self.taken + length];
            let copy = match self.spares.pop() {
                Some(mut spare) => {
                    if spare.len() < length {
                        spare.resize(length, 0);
                    }
                    spare[..length].copy_from_slice(bytes);
                    spare
                }
                // Many are held at once: each takes its own bytes and no more.
                None => bytes.to_vec(),
            };
            self.take(length);
            copy
        };
        Message {
            header,
            code_sets: TransmissionCodeSets::UNNEGOTIATED,
            joints: Box::default(),
            buf,
            len: length,
        }
    }

    /// Adds the next `length` bytes, a fragment, to their message, or begins one. Gives the message when it is whole.
    #[cold]
    fn join(&mut self, header: MessageHeader, length: usize) -> Result<Option<Message>, Malformed> {
        let bad = |at| Malformed::new(MalformedKind::BadFragment, at);
        let part = self.taken..self.taken + length;
        let id = match header.version {
            Version::V1_2 => Some(read_request_id(header.kind, header.reader(&self.buf[part.clone()]))?),
            _ => None,
        };
        let found = self.assemblies.iter().position(|a| a.id == id && a.header.version == header.version);
        let index = match (header.kind, found) {
            (MessageType::Fragment, Some(index)) => {
                // 9.4.9: in 1.2 a fragment repeats the request id before its data.
                let data_at = if id.is_some() { HEADER_BYTES + 4 } else { HEADER_BYTES };
                self.check_assembled(length - data_at)?;
                let assembly = &mut self.assemblies[index];
                if assembly.header.order != header.order {
                    return Err(bad(6));
                }
                // In 1.1 data is aligned by its place in its own fragment.
                let joint = assembly.bytes.len();
                if id.is_none() && (joint % 8 != data_at % 8 || !assembly.joints.is_empty()) {
                    let joint = u32::try_from(joint).map_err(|_| bad(8))?;
                    // A fragment without data begins where the next does.
                    assembly.joints.pop_if(|last| *last == joint);
                    assembly.joints.push(joint);
                }
                if !assembly.cancelled {
                    let _probe = probe::copying(length - data_at);
                    assembly.bytes.extend_from_slice(&self.buf[part][data_at..]);
                }
                index
            }
            (
                MessageType::Request
                | MessageType::Reply
                | MessageType::LocateRequest
                | MessageType::LocateReply,
                found,
            ) => {
                match found {
                    // The peer need not send the rest of what it has cancelled, and may use its id again.
                    Some(index) if self.assemblies[index].cancelled => drop(self.assemblies.remove(index)),
                    Some(_) => return Err(bad(7)),
                    None => {}
                }
                self.check_assembled(length)?;
                if self.assemblies.len() >= self.limits.assemblies_max {
                    match self.assemblies.iter().position(|assembly| assembly.cancelled) {
                        Some(index) => drop(self.assemblies.remove(index)),
                        None => return Err(Malformed::new(MalformedKind::TooLarge, 0)),
                    }
                }
                self.assemblies.push(Assembly {
                    id,
                    header,
                    bytes: self.buf[part].to_vec(),
                    joints: Vec::new(),
                    cancelled: false,
                    request_id: None,
                    searched_bytes: 0,
                });
                self.assemblies.len() - 1
            }
            _ => return Err(bad(7)),
        };
        self.take(length);
        if header.more_fragments {
            let is_large = self.assemblies[index].bytes.len() >= ASSEMBLY_BUFFER_BYTES;
            if is_large && self.buf.len() < ASSEMBLY_BUFFER_BYTES {
                self.buf.resize(ASSEMBLY_BUFFER_BYTES, 0);
            }
            return Ok(None);
        }
        self.give_back();
        let Assembly { header, mut bytes, joints, cancelled, .. } = self.assemblies.swap_remove(index);
        if cancelled {
            return Ok(None);
        }
        let body_bytes = (bytes.len() - HEADER_BYTES) as u32;
        let header = MessageHeader { more_fragments: false, body_bytes, ..header };
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let (len, code_sets) = (bytes.len(), TransmissionCodeSets::UNNEGOTIATED);
        Ok(Some(Message { header, code_sets, joints: joints.into(), len, buf: bytes }))
    }

    fn check_assembled(&self, more: usize) -> Result<(), Malformed> {
        let held: usize = self.assemblies.iter().map(Assembly::held_bytes).sum();
        if held + more > self.limits.message_bytes_max {
            return Err(Malformed::new(MalformedKind::TooLarge, 8));
        }
        Ok(())
    }

    /// Drops what has arrived, and what may still come, of a fragmented message that the peer has cancelled (9.4.9).
    pub fn cancel(&mut self, id: RequestId) {
        for assembly in &mut self.assemblies {
            if !assembly.cancelled && assembly.request_id() == Some(id) {
                assembly.cancelled = true;
                // Its fixed header stays, as the place that its size would go to.
                assembly.bytes.truncate(HEADER_BYTES);
                assembly.bytes.shrink_to_fit();
                assembly.joints = Vec::new();
            }
        }
        self.give_back();
    }

    /// Gives back what the receive buffer has grown to, as fragments are copied out of it: messages that come whole
    /// take it with them.
    fn give_back(&mut self) {
        let rest = self.filled - self.taken;
        if self.buf.len() > KEEP_BYTES_MAX && rest <= BUFFER_BYTES {
            let mut buf = vec![0; BUFFER_BYTES];
            buf[..rest].copy_from_slice(&self.buf[self.taken..self.filled]);
            (self.buf, self.taken, self.filled) = (buf, 0, rest);
        }
    }
}

#[cfg(test)]
mod plain_tests;
#[cfg(test)]
mod tests;
