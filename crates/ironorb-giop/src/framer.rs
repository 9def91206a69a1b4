//! Bytes in, whole messages out: finds message boundaries and joins fragments.

mod assembly;
mod memory;
mod plain;
mod refused;

pub use memory::{Buffer, ReceiveMemory};
pub use plain::{PLAIN_RESULTS_AT, ShortReply};
pub use refused::{RefusalReason, Refused};

use std::sync::Arc;

use crate::connection::ForeignProtocol;
use crate::error::Malformed;
use crate::message::{HEADER_BYTES, Message, MessageHeader, MessageType};
use crate::probe;
use crate::version::TransmissionCodeSets;
use assembly::Assembly;
use memory::{Account, Whether};

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
    buf: Buffer,
    /// Bytes before have left in messages.
    taken: usize,
    filled: usize,
    spares: Vec<Buffer>,
    /// One of more than `KEEP_BYTES_MAX` bytes.
    large: Option<Buffer>,
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
    memory: Account,
}

impl Framer {
    /// An empty framer. It takes a buffer when the first bytes are to come.
    pub fn new(limits: FramerLimits) -> Self {
        Framer::sharing(limits, None)
    }

    /// The same where the memory for large messages is shared with others. A message for which there is none left is
    /// [refused](Self::take_refused) as one that is too large.
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
            self.grow(Whether::InAnyCase);
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

    /// Makes room in a full buffer; false when there is no memory for it.
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
        // No more than the message needs: the next that is as long fits exactly.
        let needed =
            self.unfinished_length().map_or(usize::MAX, |length| length.next_multiple_of(BUFFER_BYTES));
        let length = (2 * self.buf.len()).min(needed).max(BUFFER_BYTES);
        self.buf.grow(length, &self.memory, whether)
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

    /// The protocol of a peer of which nothing is held but bytes of it; `None` where they may be a broken ORB's.
    #[cold]
    pub(crate) fn foreign_protocol(&self) -> Option<ForeignProtocol> {
        let is_alone = self.to_drop == 0 && self.assemblies.is_empty();
        ForeignProtocol::of(&self.buf[self.taken..self.filled])
            .filter(|protocol| is_alone && protocol.is_certain())
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

    /// More of a message is to come: takes the memory for it, as long as it can be refused.
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
        // What is kept for later goes first.
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
                    return self.refusal(header, RefusalReason::TooLarge).is_some();
                }
                arrived.len() >= length
            }
        }
    }

    /// Gives a message's buffer back.
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

    /// The same for one that a large message has come in. If the next is likely as large it goes there at once.
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
            self.buf = self.spares.pop().unwrap_or_default();
        }
    }

    /// Whether others need the memory that buffers for large messages take.
    fn is_memory_tight(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.is_tight())
    }

    /// Gives a small buffer up in which nothing is; another is taken when bytes come.
    #[inline]
    pub fn take_idle_buffer(&mut self) -> Option<Buffer> {
        let is_idle = self.filled == 0 && self.buf.len() == BUFFER_BYTES;
        is_idle.then(|| std::mem::take(&mut self.buf))
    }

    /// Gives up all buffers of a connection at rest, unless something has arrived that is incomplete; one of them is given
    /// to the caller, for another framer's [`recycle`](Framer::recycle). New ones are taken when bytes come.
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

    /// Takes the next `length` bytes as a message: with their buffer when what follows them is less, else by
    /// copying them out, so that a stream of small messages costs no more than its bytes.
    #[inline(always)] // a step of every call
    fn detach(&mut self, header: MessageHeader, length: usize) -> Message {
        let rest = self.filled - self.taken - length;
        let buf = if self.taken == 0 && rest <= length {
            // Without a spare one, and nothing to put into it, another is taken when bytes are to come.
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
                // Many are held at once: each takes its own bytes and no more.
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
