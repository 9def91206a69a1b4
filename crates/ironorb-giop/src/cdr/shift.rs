//! The first element of a sequence, moved in its message so that all elements lie as they would in memory and can be borrowed.
//!
//! Of structs that lie as on the wire ([`wire`](super::wire)) the first element often lies otherwise than all others: it
//! follows the length, which puts it at 4 modulo 8. But its bytes and the length's, which is not needed any more, are room
//! enough for it as it is in memory, and there it is before the second. So a few bytes are moved instead of all being copied.
//!
//! Nothing here changes what somebody has borrowed: a reader only takes note of what it would like to have moved, and gives
//! up. Whoever has the message moves it when nobody reads, and has it read again. Weighed against it: a reader that can
//! change its bytes, which all that has been borrowed before stands in the way of; and a function more for each operation,
//! that says where its sequences are.

use std::cell::Cell;

use super::{Reader, WireImage};
use crate::message::Message;

/// What has been moved in a message, and what its reader would like to have moved.
///
/// One is made for a message that its owner would change, and given to each of its readers by
/// [`Reader::with_shifts`].
#[derive(Debug, Default)]
pub struct Shifts {
    wanted: Cell<Option<Shift>>,
    done: Cell<[Option<Shift>; SHIFTS_MAX]>,
}

/// Sequences of a message that are moved; others are copied.
const SHIFTS_MAX: usize = 2;

/// Bytes of an element that is moved. Of larger ones there are few in a message.
const ELEMENT_BYTES_MAX: usize = 256;

/// One move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    /// Where the first element begins on the wire; its length ends there or, where it is aligned, before.
    pub(super) from: usize,
    /// Where its image in memory is to begin.
    pub(super) to: usize,
    /// Elements of the sequence.
    pub(super) count: usize,
    /// Bytes of an image.
    pub(super) size: usize,
    pub(super) image: &'static WireImage,
}

impl Shifts {
    /// Moves what the last reader wanted. False when it wanted nothing; else the message is to be read again, from the
    /// beginning of what the readers were for.
    pub fn apply(&self, message: &mut Message) -> bool {
        let Some(shift) = self.wanted.take() else { return false };
        let mut done = self.done.get();
        let free = done.iter_mut().find(|place| place.is_none());
        match free {
            Some(place) if shift.apply(message.bytes_mut()) => *place = Some(shift),
            // Neither happens: it was looked at before it was asked for.
            _ => return false,
        }
        self.done.set(done);
        true
    }

    fn has_room(&self) -> bool {
        self.done.get().iter().any(Option::is_none)
    }

    /// The sequence that has been moved whose first element began here.
    fn done_at(&self, from: usize) -> Option<Shift> {
        self.done.get().into_iter().flatten().find(|shift| shift.from == from)
    }
}

impl Shift {
    /// Whether the element is there, in a message of so many bytes, and can be moved.
    fn is_possible(&self, bytes: usize) -> bool {
        let elements = self.count.checked_mul(self.size).and_then(|all| self.to.checked_add(all));
        self.size <= ELEMENT_BYTES_MAX && elements.is_some_and(|end| end <= bytes)
    }

    /// The bytes behind the image of the first element stay what they are.
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
    /// The same reader of a message that is changed where that lets sequences be borrowed: what it wants to have moved is
    /// noted there, and reading fails until it has been.
    #[inline]
    #[must_use]
    pub fn with_shifts(mut self, shifts: &'a Shifts) -> Self {
        self.shifts = Some(shifts);
        self
    }

    /// Asks for no more moves: for whoever may not read again.
    #[inline]
    pub fn forgo_shifts(&mut self) {
        self.shifts = None;
    }

    /// Whether reading has failed only since something is to be moved, see [`Shifts::apply`].
    #[inline]
    pub fn wants_shift(&self) -> bool {
        self.shifts.is_some_and(|shifts| shifts.wanted.get().is_some())
    }

    /// The elements of the sequence that begins here, if its first has been moved; then its length cannot be read any more.
    #[inline]
    pub(super) fn take_shifted_length(&mut self) -> Option<usize> {
        if self.shifts.is_none() { None } else { self.find_shifted_length() }
    }

    #[inline(never)]
    fn find_shifted_length(&mut self) -> Option<usize> {
        // What is moved is no longer aligned than to the length's end: see `want_shift`.
        let from = self.at.next_multiple_of(4) + 4;
        let shift = self.shifts?.done_at(from)?;
        self.at = from;
        Some(shift.count)
    }

    /// Where the image of the first element has been moved to; if it has not, that it should be is noted, where it can be.
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
