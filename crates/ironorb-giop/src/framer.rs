//! Receives bytes and gives whole messages: finds the boundaries of messages and joins fragments.

mod assembly;
mod memory;
mod plain;
mod refused;

pub use memory::{Buffer, ReceiveMemory};
pub use plain::{PLAIN_RESULTS_AT, ShortReply, ShortReplyKind};
pub use refused::{RefusalReason, Refused};

use std::sync::Arc;

use crate::connection::ForeignProtocol;
use crate::error::Malformed;
use crate::message::{HEADER_BYTES, Message, MessageHeader, MessageType};
use crate::probe;
use crate::version::TransmissionCodeSets;
use assembly::Assembly;
use memory::{Account, Whether};

/// Limits on the memory that a peer can make one connection hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramerLimits {
    /// Largest message accepted, header and all fragments included, in bytes. Default 128 MiB. A larger
    /// request is answered with IMP_LIMIT, and a larger reply ends its call with IMP_LIMIT. Their bytes are
    /// dropped as they come. A larger message in fragments ends the connection. Memory grows with the bytes
    /// that have arrived, so an announced size alone costs nothing. The worst case is about twice this limit
    /// for each connection, and 16 MiB for a moment after the last large message.
    pub message_bytes_max: usize,
    /// Number of fragmented messages that may be interleaved. Default 16. All of them together hold at most
    /// `message_bytes_max` bytes, and as much again while their buffers grow.
    pub assemblies_max: usize,
}

impl Default for FramerLimits {
    fn default() -> Self {
        FramerLimits { message_bytes_max: 128 << 20, assemblies_max: 16 }
    }
}

/// Size of a fresh receive buffer in bytes: it holds a hundred small requests.
pub const BUFFER_BYTES: usize = 16 << 10;
/// Size of the receive buffer in bytes once this many bytes of a fragmented message have come. Fragments may
/// be arbitrarily small.
const ASSEMBLY_BUFFER_BYTES: usize = 128 << 10;
/// Only one buffer larger than this is kept for the next message; see [`Framer::release`].
const KEEP_BYTES_MAX: usize = 256 << 10;
/// A buffer larger than this is not kept.
const KEEP_LARGE_BYTES_MAX: usize = 16 << 20;
/// Number of small messages behind a large one for which the large one's buffer is kept.
const WAITS_MAX: usize = 32;
/// How often an incomplete message may be searched for its request id. Each search may take time in
/// proportion to its length.
const SEARCHES_MAX: usize = 16;
/// Octets that stay free before messages that do not take the buffer along.
const APART_BYTES: usize = 8;
/// Number of buffers kept for the next messages.
const SPARES_MAX: usize = 4;

/// Splits a byte stream into messages.
///
/// The driver asks for [`space`](Framer::space), receives into it, reports the number of bytes by
/// [`received`](Framer::received) and takes messages with [`next`](Framer::next) until there is none.
/// Allocates nothing in the steady state: a message leaves with its buffer, and the driver gives the buffer
/// back by [`recycle`](Framer::recycle).
#[derive(Debug)]
pub struct Framer {
    /// All bytes are initialised; `taken <= filled <= buf.len()`.
    buf: Buffer,
    /// The bytes before this index have left in messages.
    taken: usize,
    filled: usize,
    spares: Vec<Buffer>,
    /// A buffer of more than `KEEP_BYTES_MAX` bytes.
    large: Option<Buffer>,
    /// Length in bytes of the last message that did not fit a small buffer. The next message is likely to be
    /// as long.
    expected: usize,
    /// How often the driver has waited for more bytes since that message.
    waits: usize,
    assemblies: Vec<Assembly>,
    /// Bytes of a refused message that have been dropped, and bytes of it that are still to come.
    dropped: usize,
    to_drop: usize,
    refused: Option<Refused>,
    limits: FramerLimits,
    memory: Account,
}

impl Framer {
    /// An empty framer. It allocates a buffer when the driver asks for space.
    pub fn new(limits: FramerLimits) -> Self {
        Framer::sharing(limits, None)
    }

    /// A framer that shares the memory for large messages with others. A message for which no memory is left
    /// is [refused](Self::take_refused), as a too large one is.
    pub fn sharing(limits: FramerLimits, memory: Option<Arc<ReceiveMemory>>) -> Self {
        Framer {
            buf: Buffer::default(),
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
            memory,
        }
    }

    /// Where the driver puts the next bytes; never empty. The space for a large message grows with the bytes
    /// that have arrived, not with the size that the message announces.
    #[inline(always)] // a step of every call
    pub fn space(&mut self) -> &mut [u8] {
        // One comparison tells whether there is some room but not much.
        if (self.buf.len() - self.filled).wrapping_sub(1) >= BUFFER_BYTES {
            return self.space_of_large();
        }
        &mut self.buf[self.filled..]
    }

    /// The space for the next bytes in a buffer that is full, or large. Bytes behind a large message are left
    /// to the next receive: here they would have to be copied out of the message's buffer.
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
            self.grow(Whether::InAnyCase);
        }
        let end = end.min(self.buf.len()).max(self.filled + 1);
        &mut self.buf[self.filled..end]
    }

    /// The length in bytes of a partly arrived message, if that is known and the message is not fragmented.
    fn unfinished_length(&self) -> Option<usize> {
        let arrived = &self.buf[self.taken..self.filled];
        let header = MessageHeader::parse(arrived.first_chunk()?).ok()?;
        let length = HEADER_BYTES.saturating_add(header.body_bytes as usize);
        let comes_whole = !header.more_fragments && header.kind != MessageType::Fragment;
        (comes_whole && length > arrived.len() && length <= self.limits.message_bytes_max).then_some(length)
    }

    /// Moves a large message to the start of a buffer, so that it can leave with that buffer. Changes to a
    /// kept buffer if there is one that holds the whole message.
    fn make_room(&mut self, length: usize) {
        if self.taken > 0 && length > BUFFER_BYTES && self.filled - self.taken <= BUFFER_BYTES {
            self.move_to_front();
        }
        if self.buf.len() - self.taken >= length {
            return;
        }
        let fits = |spare: &Buffer| spare.len() >= length;
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

    /// Enlarges a full buffer; false when there is no memory for it.
    fn grow(&mut self, whether: Whether) -> bool {
        if self.taken > 0 {
            self.move_to_front();
            return true;
        }
        if self.buf.is_empty()
            && let Some(mut spare) = self.spares.pop()
        {
            spare.grow(BUFFER_BYTES, &None, Whether::InAnyCase);
            self.buf = spare;
            return true;
        }
        // No more than the message needs, so that the buffer exactly fits the next message of this length.
        let needed =
            self.unfinished_length().map_or(usize::MAX, |length| length.next_multiple_of(BUFFER_BYTES));
        let length = (2 * self.buf.len()).min(needed).max(BUFFER_BYTES);
        self.buf.grow(length, &self.memory, whether)
    }

    /// Drops the first `length` bytes, which have been used.
    #[inline]
    fn take(&mut self, length: usize) {
        self.taken += length;
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
    }

    /// Notes that the driver has put `count` bytes into [`space`](Framer::space).
    #[inline]
    pub fn received(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.len());
    }

    /// Appends a copy of `bytes`, for drivers that cannot receive in place.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.received(count);
            bytes = &bytes[count..];
        }
    }

    /// Appends a copy of `bytes`, for drivers of many connections that lend one buffer to each in turn: small messages leave
    /// with copies of their own size, and the buffer stays for [`take_idle_buffer`](Self::take_idle_buffer).
    pub fn push_apart(&mut self, bytes: &[u8]) {
        if self.filled == 0 && !bytes.is_empty() {
            if self.buf.is_empty() {
                self.grow(Whether::InAnyCase);
            }
            // A small message at the very start would take the buffer along.
            (self.taken, self.filled) = (APART_BYTES, APART_BYTES);
        }
        self.push(bytes);
    }

    /// Takes a buffer of the usual size over if it has none.
    pub fn borrow_buffer(&mut self, from: &mut Option<Buffer>) {
        if self.buf.is_empty() {
            self.buf = from.take().unwrap_or_default();
        }
    }

    /// True when all bytes that have arrived have been taken.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.filled == 0 && self.to_drop == 0
    }

    /// True when the framer holds no part of a message and no memory beyond its usual buffers.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.is_drained() && self.assemblies.is_empty() && self.expected <= KEEP_BYTES_MAX
    }

    /// True when the framer holds bytes of an unfinished message.
    #[inline]
    pub fn is_mid_message(&self) -> bool {
        self.filled > self.taken || self.to_drop > 0 || !self.assemblies.is_empty() && self.has_assembly()
    }

    #[cold]
    fn has_assembly(&self) -> bool {
        self.assemblies.iter().any(|assembly| !assembly.cancelled)
    }

    /// True when the framer holds bytes that have not left in messages. Bytes of unfinished fragmented
    /// messages do not count.
    #[inline]
    pub fn holds_bytes(&self) -> bool {
        self.filled > self.taken
    }

    /// The foreign protocol of the bytes held, if they are all that is held of the peer. `None` where a
    /// broken ORB may have sent them.
    #[cold]
    pub(crate) fn foreign_protocol(&self) -> Option<ForeignProtocol> {
        let is_alone = self.to_drop == 0 && self.assemblies.is_empty();
        ForeignProtocol::of(&self.buf[self.taken..self.filled])
            .filter(|protocol| is_alone && protocol.is_certain())
    }

    /// Number of bytes held of incomplete messages.
    pub fn held_bytes(&self) -> usize {
        let assembled: usize = self.assemblies.iter().map(Assembly::held_bytes).sum();
        self.filled - self.taken + assembled
    }

    /// Number of bytes that have come of incomplete messages: those held, and those dropped of a refused
    /// message.
    pub fn unfinished_bytes(&self) -> usize {
        self.held_bytes() + if self.to_drop > 0 { self.dropped } else { 0 }
    }

    /// The next whole message, if it has arrived. After an error the driver must close the connection, unless
    /// [`take_refused`](Self::take_refused) gives a message.
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
                return self.refuse(header, length, RefusalReason::TooLarge);
            }
            if arrived.len() < length {
                return self.await_rest(header, length);
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

    /// Takes memory for the rest of a message, while the message can still be refused.
    #[cold]
    fn await_rest(&mut self, header: MessageHeader, length: usize) -> Result<Option<Message>, Malformed> {
        if self.memory.is_none() || self.filled < self.buf.len() {
            return Ok(None);
        }
        if let Some(length) = self.unfinished_length() {
            self.make_room(length);
        }
        if self.filled < self.buf.len() || self.grow(Whether::IfThereIs) {
            return Ok(None);
        }
        // Memory kept for later messages is freed first.
        self.large = None;
        self.spares.retain(|spare| spare.len() <= BUFFER_BYTES);
        if self.grow(Whether::IfThereIs) {
            return Ok(None);
        }
        if header.more_fragments || header.kind == MessageType::Fragment {
            return self.refuse_fragment(header, length);
        }
        self.refuse(header, length, RefusalReason::NoMemory)
    }

    /// True when a whole message, or the error of a malformed one, waits to be taken.
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
                    return self.refusal(header, RefusalReason::TooLarge).is_some();
                }
                arrived.len() >= length
            }
        }
    }

    /// Takes a message's buffer back.
    #[inline]
    pub fn recycle(&mut self, buffer: Buffer) {
        if buffer.len() > BUFFER_BYTES {
            return self.recycle_large(buffer);
        }
        if self.buf.is_empty() && buffer.len() == BUFFER_BYTES {
            self.buf = buffer;
            return;
        }
        if self.spares.len() < SPARES_MAX && !buffer.is_empty() {
            self.spares.push(buffer);
        }
    }

    /// Takes a large message's buffer back. It becomes the receive buffer at once if the next message is
    /// likely to be as large.
    #[cold]
    fn recycle_large(&mut self, mut buffer: Buffer) {
        if buffer.len() > KEEP_LARGE_BYTES_MAX || self.is_memory_tight() {
            return;
        }
        let (at_least, at_most) = (self.buf.len().max(BUFFER_BYTES), buffer.len());
        if self.filled == 0 && (at_least..=at_most).contains(&self.expected) {
            std::mem::swap(&mut self.buf, &mut buffer);
        }
        if buffer.len() <= KEEP_BYTES_MAX {
            if self.spares.len() < SPARES_MAX && !buffer.is_empty() {
                self.spares.push(buffer);
            }
        } else if self.large.as_ref().is_none_or(|large| large.len() < buffer.len()) {
            self.expected = self.expected.max(buffer.len()); // so that its release is considered
            self.large = Some(buffer);
        }
    }

    /// Whether the framer keeps more memory for large messages than the usual buffers, and no large message
    /// is coming. The driver asks this before it waits. After several waits without a large message the
    /// framer frees that memory.
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

    /// Frees the memory kept for large messages. For a driver that has waited for the next message in vain.
    #[cold]
    pub fn release(&mut self) {
        self.expected = 0;
        self.large = None;
        if self.filled == 0 && self.buf.len() > KEEP_BYTES_MAX {
            self.buf = self.spares.pop().unwrap_or_default();
        }
    }

    /// Whether other connections need the memory that buffers for large messages take.
    fn is_memory_tight(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_tight())
    }

    /// Gives up a small buffer that holds no bytes. The framer allocates another when it needs one.
    #[inline]
    pub fn take_idle_buffer(&mut self) -> Option<Buffer> {
        let is_idle = self.filled == 0 && self.buf.len() == BUFFER_BYTES;
        is_idle.then(|| std::mem::take(&mut self.buf))
    }

    /// Gives up all buffers of an idle connection, unless part of a message has arrived. Returns one of them
    /// for another framer's [`recycle`](Framer::recycle). The framer allocates new ones when it needs them.
    pub fn rest(&mut self) -> Option<Buffer> {
        if self.filled > self.taken || self.to_drop > 0 || !self.assemblies.is_empty() {
            return None;
        }
        (self.taken, self.filled) = (0, 0);
        (self.expected, self.large) = (0, None);
        let kept = self.spares.iter().position(|spare| spare.len() == BUFFER_BYTES);
        let kept = kept.map(|index| self.spares.swap_remove(index));
        self.spares = Vec::new();
        self.assemblies = Vec::new();
        let buf = std::mem::take(&mut self.buf);
        kept.or((buf.len() == BUFFER_BYTES).then_some(buf))
    }

    /// Takes the next `length` bytes as a message. The message takes the buffer when fewer bytes than its own
    /// follow it; else the message is copied out. So a stream of small messages costs no more than its bytes.
    #[inline(always)] // a step of every call
    fn detach(&mut self, header: MessageHeader, length: usize) -> Message {
        let rest = self.filled - self.taken - length;
        let buf = if self.taken == 0 && rest <= length {
            // Without a spare buffer and without bytes to put into it, one is allocated when it is needed.
            let mut spare = self.spares.pop().unwrap_or_default();
            if rest > 0 || !spare.is_empty() {
                spare.grow(rest.max(BUFFER_BYTES), &self.memory, Whether::InAnyCase);
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
                    spare.grow(length, &self.memory, Whether::InAnyCase);
                    spare[..length].copy_from_slice(bytes);
                    spare
                }
                // Many messages are held at once, so each takes memory for its own bytes only.
                None => Buffer::copied(bytes, &self.memory),
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
}

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod plain_tests;
#[cfg(test)]
mod tests;
