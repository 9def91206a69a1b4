//! The first element of a sequence, moved within its message so that the sequence can be borrowed.
//!
//! Some structs have the same bytes in memory as on the wire ([`wire`](super::wire)). The first element of a
//! sequence of them often has another layout than the rest: it follows the length and so starts at 4 modulo
//! 8. The bytes of that element and of the length, which is no longer needed, have room for its image in
//! memory, directly before the second element. So a few bytes are moved and the rest need not be copied.
//!
//! A move never changes bytes that are borrowed. A reader only notes the move that it wants and fails. The
//! owner of the message makes the move when there are no readers, and reads the message again. Two designs
//! were weighed against it: a reader that changes its own bytes, which earlier borrows from the message
//! forbid; and one more function per operation that says where its sequences are.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use super::owned::is_worth_sharing;
use super::{Reader, WireImage};
use crate::message::Message;

/// The moves that have been made in a message, and the move that its reader wants. Also whether the reader wants to
/// share the message with what it reads, an [`OwnedSlice`](super::OwnedSlice).
///
/// The owner of a message that may be changed creates one and passes it to each reader by
/// [`Reader::with_shifts`].
#[derive(Debug, Default)]
pub struct Shifts {
    wanted: Cell<Option<Shift>>,
    done: Cell<[Option<Shift>; SHIFTS_MAX]>,
    sharing: Cell<Sharing>,
    /// The message, once it is shared.
    shared: OnceCell<Arc<Message>>,
}

/// Whether the message is to be shared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    #[default]
    Unwanted,
    /// For elements of this many bytes.
    Wanted(usize),
    /// It has been shared, or is not worth it.
    Decided,
}

/// The most sequences of a message that are moved. The others are copied.
const SHIFTS_MAX: usize = 2;

/// The most bytes of an element that is moved. A message has few larger ones.
const ELEMENT_BYTES_MAX: usize = 256;

/// One move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    /// Where the first element starts on the wire. Its length ends there or, where the element is aligned,
    /// before.
    pub(super) from: usize,
    /// Where its image in memory is to start.
    pub(super) to: usize,
    /// Elements of the sequence.
    pub(super) count: usize,
    /// Bytes of an image.
    pub(super) size: usize,
    pub(super) image: &'static WireImage,
}

impl Shifts {
    /// Makes the move that the last reader wanted, or shares the message. Returns false if it wanted neither.
    /// Otherwise the caller reads the [`whole`](Self::whole) message again, from the position where its readers
    /// started.
    pub fn apply(&mut self, message: &mut Message) -> bool {
        if let Sharing::Wanted(bytes) = self.sharing.get() {
            self.sharing.set(Sharing::Decided);
            if is_worth_sharing(bytes, message.buffer().len()) {
                self.shared = OnceCell::from(Arc::new(std::mem::take(message)));
            }
            return true;
        }
        let Some(shift) = self.wanted.take() else { return false };
        // No reader is left, so nothing that it has read shares the message.
        let message = self.shared.get_mut().map_or(Some(message), Arc::get_mut);
        let Some(message) = message else { return false };
        let mut done = self.done.get();
        let free = done.iter_mut().find(|place| place.is_none());
        match free {
            Some(place) if shift.apply(message.bytes_mut()) => *place = Some(shift),
            // Neither happens: the reader checked both before it asked.
            _ => return false,
        }
        self.done.set(done);
        true
    }

    /// The message to read: `message`, or the shared one that was taken from there.
    #[inline]
    pub fn whole<'m>(&'m self, message: &'m Message) -> &'m Message {
        self.shared.get().map_or(message, |shared| shared)
    }

    /// Puts the message back into its place, unless something that was read from it has been kept.
    #[inline]
    pub fn put_back(&mut self, place: &mut Message) {
        if let Some(message) = self.shared.take().and_then(Arc::into_inner) {
            *place = message;
        }
    }

    /// The message, if it is shared.
    pub(super) fn shared(&self) -> Option<&Arc<Message>> {
        self.shared.get()
    }

    /// Asks the owner to share the message for elements of this many bytes. False if that has been decided.
    pub(super) fn want_sharing(&self, bytes: usize) -> bool {
        let is_open = self.sharing.get() == Sharing::Unwanted;
        if is_open {
            self.sharing.set(Sharing::Wanted(bytes));
        }
        is_open
    }

    /// Whether the last reader has failed only because it wants something of the message's owner.
    fn is_wanted(&self) -> bool {
        self.wanted.get().is_some() || matches!(self.sharing.get(), Sharing::Wanted(_))
    }

    fn has_room(&self) -> bool {
        self.done.get().iter().any(Option::is_none)
    }

    /// The move of the sequence whose first element started here.
    fn done_at(&self, from: usize) -> Option<Shift> {
        self.done.get().into_iter().flatten().find(|shift| shift.from == from)
    }
}

impl Shift {
    /// Whether the element is in a message of this many bytes and can be moved.
    fn is_possible(&self, bytes: usize) -> bool {
        let elements = self.count.checked_mul(self.size).and_then(|all| self.to.checked_add(all));
        self.size <= ELEMENT_BYTES_MAX && elements.is_some_and(|end| end <= bytes)
    }

    /// Moves the element. The bytes behind its image stay as they are.
    fn apply(&self, bytes: &mut [u8]) -> bool {
        let mut value = [0; ELEMENT_BYTES_MAX];
        let mut at = self.from;
        for (offset, number_bytes, count) in self.image.numbers() {
            at = at.next_multiple_of(number_bytes);
            let length = number_bytes * count;
            let (Some(from), Some(to)) = (bytes.get(at..at + length), value.get_mut(offset..offset + length))
            else {
                return false;
            };
            to.copy_from_slice(from);
            at += length;
        }
        let (Some(to), Some(value)) = (bytes.get_mut(self.to..self.to + self.size), value.get(..self.size))
        else {
            return false;
        };
        to.copy_from_slice(value);
        true
    }
}

impl<'a> Reader<'a> {
    /// This reader, for a message that may be changed so that its sequences can be borrowed. The reader notes
    /// the move it wants in `shifts`, and fails until the owner has made it.
    #[inline]
    #[must_use]
    pub fn with_shifts(mut self, shifts: &'a Shifts) -> Self {
        self.shifts = Some(shifts);
        self
    }

    /// Asks for no more moves. For callers that cannot read the message again.
    #[inline]
    pub fn forgo_shifts(&mut self) {
        self.shifts = None;
    }

    /// Whether reading has failed only because a move is wanted, or the message is to be shared; see
    /// [`Shifts::apply`].
    #[inline]
    pub fn wants_shift(&self) -> bool {
        self.shifts.is_some_and(Shifts::is_wanted)
    }

    /// Whether reading has failed only because a move is wanted.
    #[inline]
    pub(super) fn wants_move(&self) -> bool {
        self.shifts.is_some_and(|shifts| shifts.wanted.get().is_some())
    }

    /// The length of the sequence that starts here, if its first element has been moved. The move has
    /// overwritten that length in the message.
    #[inline]
    pub(super) fn take_shifted_length(&mut self) -> Option<usize> {
        if self.shifts.is_none() { None } else { self.find_shifted_length() }
    }

    #[inline(never)]
    fn find_shifted_length(&mut self) -> Option<usize> {
        // Moved elements are not aligned beyond the end of the length: see `begin_of_shifted`.
        let from = self.at.next_multiple_of(4) + 4;
        let shift = self.shifts?.done_at(from)?;
        self.at = from;
        Some(shift.count)
    }

    /// Where the image of the first element has been moved to. If it has not been moved and can be, notes
    /// that it should be.
    #[inline(never)]
    pub(super) fn shifted_or_wanted(&self, shift: Shift, alignment: usize) -> Option<usize> {
        let shifts = self.shifts?;
        if let Some(done) = shifts.done_at(self.at) {
            let is_it = done.to == shift.to && done.count == shift.count && done.size == shift.size;
            return is_it.then_some(done.to);
        }
        let address = self.bytes.as_ptr().addr() + shift.to;
        if shifts.has_room() && shift.is_possible(self.bytes.len()) && address.is_multiple_of(alignment) {
            shifts.wanted.set(Some(shift));
        }
        None
    }
}

#[cfg(test)]
mod tests;
