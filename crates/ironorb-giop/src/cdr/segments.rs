//! Data in several pieces: the chunks of valuetypes (CORBA 3.3 part 2, 9.3.4.6) and the fragments of GIOP
//! 1.1, each of which has its own alignment (9.4.9).
//!
//! A [`Reader`] of such data has an empty slice. Every read runs into the end of that slice and takes the
//! cold path, which is here and reads piece by piece. So reading data in one piece costs nothing extra. With
//! the pieces in the reader's own slice, the compiler must assume that each read changes the slice: a struct
//! then took a fifth more instructions.

use super::Reader;
use super::reader::Number;
use crate::error::{Malformed, MalformedKind};
use crate::value::ReadState;
use crate::version::{ByteOrder, Encoding};
use std::borrow::Cow;

/// What a reader needs besides bytes in one piece. The reader allocates it for a message with joints, for the
/// first value, and for the first sequence of elements without bytes.
#[derive(Debug)]
pub(crate) struct Beyond<'a> {
    pub(super) pieces: Pieces<'a>,
    pub(crate) values: ReadState,
    /// How many elements without bytes have been read from sequences.
    pub(super) empty_read: usize,
}

/// All of the data, and the piece that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces<'a> {
    /// All pieces and the bytes between them.
    whole: &'a [u8],
    /// The start of `whole` in the octet stream that indirections count in: not 0 in an encapsulation.
    origin: usize,
    /// Where in `whole` fragments of GIOP 1.1 start, in ascending order.
    joints: &'a [u32],
    /// How many joints are before the next byte.
    joints_passed: usize,
    /// Where in `whole` the current chunk ends; `NO_CHUNK` outside of chunks.
    chunk_end: usize,
    /// The current piece, from a position that preserves the alignment, and that position in `whole`.
    piece: &'a [u8],
    base: usize,
    /// The next byte in `piece`.
    at: usize,
}

/// A position in a message, outside of values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    whole: &'a [u8],
    joints: &'a [u32],
    at: usize,
    encoding: Encoding,
}

impl<'a> Place<'a> {
    /// A reader that continues from here.
    #[inline]
    pub(crate) fn reader(self) -> Reader<'a> {
        Reader::of_joined(self.whole, self.joints, self.at, self.encoding)
    }

    /// All of the data, and where in it fragments start that have their own alignment.
    pub(crate) fn whole(&self) -> (&'a [u8], &'a [u32]) {
        (self.whole, self.joints)
    }
}

/// The end of a chunk when there is no chunk.
pub(crate) const NO_CHUNK: usize = usize::MAX;

/// GIOP 1.1 aligns the data of a fragment by its place after the fragment's own header of 12 bytes.
const JOINT_ALIGNED_AT: usize = 12 % 8;

impl<'a> Beyond<'a> {
    #[cold]
    fn new(whole: &'a [u8], at: usize) -> Box<Self> {
        Box::new(Beyond { pieces: Pieces::new(whole, at), values: ReadState::default(), empty_read: 0 })
    }

    /// A copy of the position, without what is known of values.
    pub(super) fn without_values(&self) -> Self {
        Beyond { pieces: self.pieces, values: ReadState::default(), empty_read: self.empty_read }
    }
}

impl<'a> Pieces<'a> {
    fn new(whole: &'a [u8], at: usize) -> Self {
        let (joints, piece) = (&[], whole);
        Pieces { whole, origin: 0, joints, joints_passed: 0, chunk_end: NO_CHUNK, piece, base: 0, at }
    }

    /// Whether the reader's slice must stay empty.
    pub(super) fn is_split(&self) -> bool {
        self.chunk_end != NO_CHUNK || !self.joints.is_empty()
    }

    pub(super) fn position(&self) -> usize {
        self.base + self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.whole.len() - self.position()
    }

    /// Where the next number would start in the piece.
    fn aligned(&self, alignment: usize) -> usize {
        self.at + (self.at.wrapping_neg() & (alignment - 1))
    }

    pub(super) fn align(&mut self, alignment: usize) {
        self.at = self.aligned(alignment).min(self.piece.len());
    }

    #[cold]
    fn malformed(&self, kind: MalformedKind) -> Malformed {
        Malformed::new(kind, self.position())
    }

    fn seek(&mut self, to: usize) {
        let to = to.min(self.whole.len());
        self.joints_passed = self.joints.partition_point(|joint| *joint as usize <= to);
        self.base = match self.joints_passed.checked_sub(1).and_then(|last| self.joints.get(last)) {
            Some(joint) => (*joint as usize).saturating_sub(JOINT_ALIGNED_AT),
            None => 0,
        };
        let joint = self.joints.get(self.joints_passed).map_or(usize::MAX, |joint| *joint as usize);
        let end = self.whole.len().min(joint).min(self.chunk_end).max(to);
        self.piece = self.whole.get(self.base..end).unwrap_or_default();
        self.at = to - self.base;
    }

    fn set_chunk_end(&mut self, chunk_end: usize) {
        self.chunk_end = chunk_end;
        self.seek(self.position());
    }

    fn enter_chunk(&mut self, length: u32) -> Result<(), Malformed> {
        let end = self.position() + length as usize;
        if end > self.whole.len() {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        self.set_chunk_end(end);
        Ok(())
    }

    /// Continues after the piece, which has no room for a number whose size and alignment are `alignment`.
    fn advance(&mut self, alignment: usize, order: ByteOrder) -> Result<(), Malformed> {
        let is_padding = self.aligned(alignment) >= self.piece.len();
        let end = self.base + self.piece.len();
        if self.chunk_end == end {
            if !is_padding {
                return Err(self.malformed(MalformedKind::BadChunk)); // a number would be split
            }
            self.seek(end);
            return self.next_chunk(order);
        }
        if self.joints.get(self.joints_passed).is_none_or(|joint| *joint as usize != end) {
            return Err(self.malformed(MalformedKind::Truncated));
        }
        if !is_padding {
            return Err(self.malformed(MalformedKind::BadFragment));
        }
        self.seek(end);
        Ok(())
    }

    /// Enters the next chunk of the current value.
    fn next_chunk(&mut self, order: ByteOrder) -> Result<(), Malformed> {
        let at = self.position();
        self.set_chunk_end(NO_CHUNK);
        let length = self.take::<4>(order)?;
        let length = match order {
            ByteOrder::Big => u32::from_be_bytes(length),
            ByteOrder::Little => u32::from_le_bytes(length),
        };
        match length {
            1..0x7FFF_FF00 => self.enter_chunk(length),
            // The state is shorter than its type says, or a value is in the place of data.
            _ => Err(Malformed::new(MalformedKind::BadChunk, at)),
        }
    }

    /// Reads a number.
    pub(super) fn take<const N: usize>(&mut self, order: ByteOrder) -> Result<[u8; N], Malformed> {
        loop {
            let start = self.aligned(N);
            if let Some(chunk) = self.piece.get(start..).and_then(|rest| rest.first_chunk::<N>()) {
                self.at = start + N;
                return Ok(*chunk);
            }
            self.advance(N, order)?;
        }
    }

    /// Reads bytes from one chunk. Fragments of GIOP 1.1 are adjacent in the data, so they may span those.
    pub(super) fn bytes(&mut self, count: usize, order: ByteOrder) -> Result<&'a [u8], Malformed> {
        loop {
            let at = self.position();
            if count > self.whole.len() - at {
                return Err(self.malformed(MalformedKind::LengthBeyondData));
            }
            if self.chunk_end - at >= count {
                let bytes = self.whole.get(at..at + count).unwrap_or_default();
                self.seek(at + count);
                return Ok(bytes);
            }
            if self.chunk_end > at {
                return Err(self.malformed(MalformedKind::BadChunk));
            }
            self.next_chunk(order)?;
        }
    }

    /// Reads bytes from any number of chunks.
    pub(super) fn split_bytes(&mut self, count: usize, order: ByteOrder) -> Result<Cow<'a, [u8]>, Malformed> {
        if count > self.remaining() {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        if count > 0 && self.chunk_end <= self.position() {
            self.next_chunk(order)?;
        }
        if self.chunk_end - self.position() >= count {
            return self.bytes(count, order).map(Cow::Borrowed);
        }
        let mut gathered = Vec::with_capacity(count);
        loop {
            let rest_of_chunk = self.chunk_end.saturating_sub(self.position());
            let part = rest_of_chunk.min(count - gathered.len());
            gathered.extend_from_slice(self.bytes(part, order)?);
            if gathered.len() == count {
                return Ok(Cow::Owned(gathered));
            }
            self.next_chunk(order)?;
        }
    }

    /// Reads numbers from any number of pieces. No number may be split.
    pub(super) fn numbers<T: Number>(&mut self, count: usize, order: ByteOrder) -> Result<Vec<T>, Malformed> {
        let size = size_of::<T>();
        if count > self.remaining() / size {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        let mut items = Vec::with_capacity(count);
        while items.len() < count {
            let start = self.aligned(size);
            let part = (self.piece.len().saturating_sub(start) / size).min(count - items.len());
            match self.piece.get(start..start + part * size) {
                Some(bytes) if part > 0 => {
                    self.at = start + bytes.len();
                    items.extend(super::reader::to_numbers::<T>(bytes, order));
                }
                _ => self.advance(size, order)?,
            }
        }
        Ok(items)
    }
}

impl<'a> Reader<'a> {
    /// A reader at offset `at` of a message that may be joined from GIOP 1.1 fragments, which start at the
    /// offsets `joints`.
    #[inline]
    pub(crate) fn of_joined(bytes: &'a [u8], joints: &'a [u32], at: usize, encoding: Encoding) -> Self {
        if joints.is_empty() {
            Reader::at(bytes, at, encoding)
        } else {
            Reader::over_joints(bytes, joints, at, encoding)
        }
    }

    #[cold]
    fn over_joints(bytes: &'a [u8], joints: &'a [u32], at: usize, encoding: Encoding) -> Self {
        let mut r = Reader::at(bytes, at, encoding);
        let at = r.position();
        r.beyond().pieces.joints = joints;
        r.seek(at);
        r
    }

    /// The reader's position, as a value that can be copied.
    #[inline]
    pub(crate) fn place(&self) -> Place<'a> {
        match &self.beyond {
            None => Place { whole: self.bytes, joints: &[], at: self.at, encoding: self.encoding },
            Some(beyond) => {
                let Pieces { whole, joints, .. } = beyond.pieces;
                Place { whole, joints, at: self.position(), encoding: self.encoding }
            }
        }
    }

    /// The state besides bytes in one piece.
    pub(crate) fn beyond(&mut self) -> &mut Beyond<'a> {
        let (whole, at) = (self.bytes, self.at);
        self.beyond.get_or_insert_with(|| Beyond::new(whole, at))
    }

    /// The state of the values in these bytes.
    pub(crate) fn values(&mut self) -> &mut ReadState {
        &mut self.beyond().values
    }

    /// Reads what the reader's slice does not show. An error unless the data is in pieces.
    ///
    /// The closure does not borrow the reader, so the compiler knows that its slice stays the same.
    #[inline(always)]
    pub(super) fn go_beyond<T>(
        &mut self,
        otherwise: MalformedKind,
        read: impl FnOnce(&mut Pieces<'a>, ByteOrder) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        match self.beyond.as_deref_mut() {
            Some(beyond) => read_pieces(&mut beyond.pieces, self.at, self.encoding.order, otherwise, read),
            None => Err(Malformed::new(otherwise, self.at)),
        }
    }

    /// The position of the next byte in the stream that indirections count in.
    pub(crate) fn stream_position(&self) -> usize {
        self.position() + self.beyond.as_ref().map_or(0, |beyond| beyond.pieces.origin)
    }

    /// The position of the next value with this alignment, as far as the data continues.
    pub(crate) fn position_aligned(&self, alignment: usize) -> usize {
        match &self.beyond {
            Some(beyond) if beyond.pieces.is_split() => beyond.pieces.base + beyond.pieces.aligned(alignment),
            _ => self.at.next_multiple_of(alignment),
        }
    }

    /// Moves to a position that has been read before or is known to be in the data.
    pub(crate) fn seek(&mut self, to: usize) {
        match self.beyond.as_deref_mut() {
            None => self.at = to.min(self.bytes.len()),
            Some(Beyond { pieces, .. }) => {
                pieces.seek(to);
                (self.bytes, self.at) =
                    if pieces.is_split() { (&[][..], 0) } else { (pieces.piece, pieces.at) };
            }
        }
    }

    /// Moves to a position in the stream that indirections count in.
    pub(crate) fn seek_stream(&mut self, to: usize) {
        let origin = self.stream_origin();
        self.seek(to.saturating_sub(origin));
    }

    /// The start of these bytes in the stream that indirections count in.
    pub(crate) fn stream_origin(&mut self) -> usize {
        self.beyond().pieces.origin
    }

    /// The end of the current chunk.
    pub(crate) fn chunk_end(&mut self) -> usize {
        self.beyond().pieces.chunk_end
    }

    /// Sets the end of the chunk with the next byte: [`NO_CHUNK`] to read between chunks.
    pub(crate) fn set_chunk_end(&mut self, chunk_end: usize) {
        let at = self.position();
        self.beyond().pieces.chunk_end = chunk_end;
        self.seek(at);
    }

    /// Requires that the next read enters a chunk, which starts at the next byte.
    pub(crate) fn expect_chunk(&mut self) {
        let at = self.position();
        self.set_chunk_end(at);
    }

    /// Starts a chunk of `length` bytes at the next byte.
    pub(crate) fn enter_chunk(&mut self, length: u32) -> Result<(), Malformed> {
        if length as usize > self.remaining() {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        let end = self.position() + length as usize;
        self.set_chunk_end(end);
        Ok(())
    }

    /// A reader at an earlier position in the stream that indirections count in. It knows no values.
    pub(crate) fn look_back(&mut self, to: usize) -> Result<Reader<'a>, Malformed> {
        let at = self.stream_position();
        let mut beyond = self.beyond().without_values();
        if to < beyond.pieces.origin || to >= at {
            return Err(self.malformed(MalformedKind::BadIndirection));
        }
        beyond.pieces.chunk_end = NO_CHUNK;
        let mut reader = Reader { beyond: Some(Box::new(beyond)), shifts: None, ..*self };
        reader.seek_stream(to);
        Ok(reader)
    }

    /// How many levels are on the stack; see [`Reader::nested`].
    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }

    /// Sets how many levels are on the stack, for callers that store levels elsewhere.
    pub(crate) fn set_depth(&mut self, depth: u16) {
        self.depth = depth;
    }

    /// Reads bytes. Borrows them unless they are split over chunks, and allocates then.
    #[inline]
    pub fn read_bytes_split(&mut self, count: usize) -> Result<Cow<'a, [u8]>, Malformed> {
        match self.bytes[self.at..].get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(Cow::Borrowed(bytes))
            }
            None => self.go_beyond(MalformedKind::LengthBeyondData, |p, order| p.split_bytes(count, order)),
        }
    }

    /// Reads the frame of an encapsulation (9.3.3) and passes a reader of its contents to `body`. Unlike
    /// [`Reader::read_encapsulation`] it accepts an encapsulation that is split over chunks, and indirections
    /// outside may refer to values inside.
    pub fn within_encapsulation<T>(
        &mut self,
        body: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let length = self.read_u32()? as usize;
        let bytes = self.read_bytes_split(length)?;
        let at = self.position();
        let inner = Reader::encapsulated(&bytes, self.encoding).map_err(|e| Malformed::new(e.kind, at))?;
        let mut inner = Reader { depth: self.depth, environment: self.environment, ..inner };
        if let Some(outer) = &mut self.beyond {
            let beyond = inner.beyond();
            beyond.pieces.origin = outer.pieces.origin + at - length;
            std::mem::swap(&mut beyond.values, &mut outer.values);
            let nesting = beyond.values.nesting();
            beyond.values.set_nesting(Default::default());
            let result = body(&mut inner);
            std::mem::swap(&mut inner.beyond().values, &mut outer.values);
            outer.values.set_nesting(nesting);
            return result;
        }
        body(&mut inner)
    }
}

/// The cold path of [`Reader::go_beyond`]; `at` is the reader's position if the data is in one piece.
#[cold]
#[inline(never)]
fn read_pieces<'a, T>(
    pieces: &mut Pieces<'a>,
    at: usize,
    order: ByteOrder,
    otherwise: MalformedKind,
    read: impl FnOnce(&mut Pieces<'a>, ByteOrder) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    if pieces.is_split() { read(pieces, order) } else { Err(Malformed::new(otherwise, at)) }
}
