//! Data that does not lie in one piece: the chunks of valuetypes (CORBA 3.3 part 2, 9.3.4.6), and the fragments
//! of GIOP 1.1, each of which is aligned afresh (9.4.9).
//!
//! A [`Reader`] sees one piece at a time as a plain slice, so whoever reads data in one piece pays nothing. Running
//! into the end of the piece is the cold path, which is here.

use super::Reader;
use super::reader::Number;
use crate::error::{Malformed, MalformedKind};
use crate::value::ReadState;
use crate::version::Encoding;
use std::borrow::Cow;

/// What a reader needs beyond the visible piece. Made when the first value is read, or for a message with joints.
#[derive(Debug)]
pub(crate) struct Beyond<'a> {
    /// All pieces, with what lies between them.
    whole: &'a [u8],
    /// Where `whole` begins in the octet stream in which indirections count: not at 0 in an encapsulation.
    origin: usize,
    /// Where in `whole` the visible bytes begin.
    base: usize,
    /// Where in `whole` fragments of GIOP 1.1 begin, in ascending order.
    joints: &'a [u32],
    /// How many joints are before the next byte.
    joints_passed: usize,
    /// Where in `whole` the chunk ends that is being read; `usize::MAX` outside of chunks.
    chunk_end: usize,
    pub(crate) values: ReadState,
}

/// A place in a message, outside of values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    whole: &'a [u8],
    joints: &'a [u32],
    at: usize,
    encoding: Encoding,
}

impl<'a> Place<'a> {
    /// A reader that goes on from here.
    #[inline]
    pub(crate) fn reader(self) -> Reader<'a> {
        Reader::at(self.whole, self.at, self.encoding).with_joints(self.joints)
    }
}

/// Where a chunk ends when there is none.
pub(crate) const NO_CHUNK: usize = usize::MAX;

/// GIOP 1.1 aligns the data of a fragment by its place after the fragment's own header of 12 bytes.
const JOINT_ALIGNED_AT: usize = 12 % 8;

impl<'a> Beyond<'a> {
    pub(super) fn new(whole: &'a [u8]) -> Self {
        Beyond {
            whole,
            origin: 0,
            base: 0,
            joints: &[],
            joints_passed: 0,
            chunk_end: NO_CHUNK,
            values: ReadState::default(),
        }
    }

    /// The same place, without what is known of values.
    pub(super) fn without_values(&self) -> Self {
        Beyond { values: ReadState::default(), ..*self }
    }

    pub(super) fn base(&self) -> usize {
        self.base
    }

    /// Bytes after the visible ones.
    pub(super) fn hidden(&self, visible: usize) -> usize {
        self.whole.len() - (self.base + visible)
    }
}

impl<'a> Reader<'a> {
    /// The same reader, for a message joined of GIOP 1.1 fragments that begin at these offsets.
    #[inline]
    pub(crate) fn with_joints(self, joints: &'a [u32]) -> Self {
        if joints.is_empty() { self } else { self.joined_at(joints) }
    }

    /// Where this reader stands, as something that can be copied.
    #[inline]
    pub(crate) fn place(&self) -> Place<'a> {
        match &self.beyond {
            None => Place { whole: self.bytes, joints: &[], at: self.at, encoding: self.encoding },
            Some(beyond) => {
                let (whole, joints) = (beyond.whole, beyond.joints);
                Place { whole, joints, at: self.position(), encoding: self.encoding }
            }
        }
    }

    #[cold]
    fn joined_at(mut self, joints: &'a [u32]) -> Self {
        let at = self.position();
        self.beyond().joints = joints;
        self.seek(at);
        self
    }

    /// What is beyond the visible piece.
    #[cold]
    pub(crate) fn beyond(&mut self) -> &mut Beyond<'a> {
        let whole = self.bytes;
        self.beyond.get_or_insert_with(|| Box::new(Beyond::new(whole)))
    }

    /// What is known of the values in these bytes.
    pub(crate) fn values(&mut self) -> &mut ReadState {
        &mut self.beyond().values
    }

    /// Where the next byte is in the stream in which indirections count.
    pub(crate) fn stream_position(&self) -> usize {
        self.position() + self.beyond.as_ref().map_or(0, |beyond| beyond.origin)
    }

    /// Where the next value with this alignment is, as long as the data goes on.
    pub(crate) fn position_aligned(&self, alignment: usize) -> usize {
        self.position() + (self.at.wrapping_neg() & (alignment - 1))
    }

    /// Goes to a place in the data that has been read before, or that is known to be in it.
    pub(crate) fn seek(&mut self, to: usize) {
        let Some(beyond) = &mut self.beyond else {
            self.at = to.min(self.bytes.len());
            return;
        };
        let to = to.min(beyond.whole.len());
        beyond.joints_passed = beyond.joints.partition_point(|joint| *joint as usize <= to);
        beyond.base = match beyond.joints_passed.checked_sub(1).and_then(|last| beyond.joints.get(last)) {
            Some(joint) => (*joint as usize).saturating_sub(JOINT_ALIGNED_AT),
            None => 0,
        };
        let joint = beyond.joints.get(beyond.joints_passed).map_or(usize::MAX, |joint| *joint as usize);
        let end = beyond.whole.len().min(joint).min(beyond.chunk_end).max(to);
        self.bytes = beyond.whole.get(beyond.base..end).unwrap_or_default();
        self.at = to - beyond.base;
    }

    /// Goes to a place given in the stream in which indirections count.
    pub(crate) fn seek_stream(&mut self, to: usize) {
        let origin = self.beyond().origin;
        self.seek(to.saturating_sub(origin));
    }

    /// Where the chunk ends that is being read.
    pub(crate) fn chunk_end(&mut self) -> usize {
        self.beyond().chunk_end
    }

    /// Says where the chunk ends that the next byte is in: [`NO_CHUNK`] to read between chunks.
    pub(crate) fn set_chunk_end(&mut self, chunk_end: usize) {
        self.beyond().chunk_end = chunk_end;
        let at = self.position();
        self.seek(at);
    }

    /// Between chunks at the next byte: whatever is read next must be in a chunk that starts here.
    pub(crate) fn expect_chunk(&mut self) {
        let at = self.position();
        self.set_chunk_end(at);
    }

    /// Begins a chunk of `length` bytes at the next byte.
    pub(crate) fn enter_chunk(&mut self, length: u32) -> Result<(), Malformed> {
        let at = self.position();
        let end = at + length as usize;
        if end > self.beyond().whole.len() {
            return Err(Malformed::new(MalformedKind::LengthBeyondData, at));
        }
        self.set_chunk_end(end);
        Ok(())
    }

    /// A reader at a place before this one, given in the stream in which indirections count, that knows no values.
    pub(crate) fn look_back(&mut self, to: usize) -> Result<Reader<'a>, Malformed> {
        let at = self.stream_position();
        let mut beyond = self.beyond().without_values();
        if to < beyond.origin || to >= at {
            return Err(self.malformed(MalformedKind::BadIndirection));
        }
        beyond.chunk_end = NO_CHUNK;
        let mut reader = Reader { beyond: Some(Box::new(beyond)), ..*self };
        reader.seek_stream(to);
        Ok(reader)
    }

    /// Where the stream in which indirections count has the start of these bytes.
    pub(crate) fn stream_origin(&mut self) -> usize {
        self.beyond().origin
    }

    /// Levels that lie on the stack; see [`Reader::nested`].
    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }

    /// Says how many levels lie on the stack: for one who keeps them elsewhere.
    pub(crate) fn set_depth(&mut self, depth: u16) {
        self.depth = depth;
    }

    /// Goes on after the visible piece, which cannot hold a number that is aligned to and as long as `alignment`.
    #[cold]
    pub(super) fn advance(&mut self, alignment: usize) -> Result<(), Malformed> {
        let start = self.at + (self.at.wrapping_neg() & (alignment - 1));
        let visible = self.bytes.len();
        let Some(beyond) = &self.beyond else { return Err(self.malformed(MalformedKind::Truncated)) };
        let end = beyond.base + visible;
        let is_joint = beyond.joints.get(beyond.joints_passed).is_some_and(|joint| *joint as usize == end);
        if beyond.chunk_end == end {
            if start < visible {
                return Err(self.malformed(MalformedKind::BadChunk)); // a number would be split
            }
            self.seek(end);
            return self.next_chunk();
        }
        if !is_joint {
            return Err(self.malformed(MalformedKind::Truncated));
        }
        if start < visible {
            return Err(self.malformed(MalformedKind::BadFragment));
        }
        self.seek(end);
        Ok(())
    }

    /// Enters the next chunk of the same value.
    fn next_chunk(&mut self) -> Result<(), Malformed> {
        let at = self.position();
        self.set_chunk_end(NO_CHUNK);
        match self.read_u32()? {
            length @ 1..0x7FFF_FF00 => self.enter_chunk(length),
            // The state is shorter than its type, or a value stands where data should.
            _ => Err(Malformed::new(MalformedKind::BadChunk, at)),
        }
    }

    /// Bytes that lie together although a joint is between them; for those that do not, see
    /// [`Reader::read_bytes_split`].
    #[cold]
    pub(super) fn read_bytes_beyond(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        loop {
            let at = self.position();
            let Some(beyond) = &self.beyond else {
                return Err(self.malformed(MalformedKind::LengthBeyondData));
            };
            if count > beyond.whole.len() - at {
                return Err(self.malformed(MalformedKind::LengthBeyondData));
            }
            if beyond.chunk_end - at >= count {
                let bytes = beyond.whole.get(at..at + count).unwrap_or_default();
                self.seek(at + count);
                return Ok(bytes);
            }
            if beyond.chunk_end > at {
                return Err(self.malformed(MalformedKind::BadChunk));
            }
            self.next_chunk()?;
        }
    }

    /// Reads bytes, borrowed unless they are split over chunks.
    #[inline]
    pub fn read_bytes_split(&mut self, count: usize) -> Result<Cow<'a, [u8]>, Malformed> {
        match self.bytes[self.at..].get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(Cow::Borrowed(bytes))
            }
            None => self.gather_bytes(count),
        }
    }

    #[cold]
    fn gather_bytes(&mut self, count: usize) -> Result<Cow<'a, [u8]>, Malformed> {
        if count > self.remaining() {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        if self.chunk_end() <= self.position() {
            self.next_chunk()?;
        }
        if self.chunk_end() - self.position() >= count {
            return self.read_bytes_beyond(count).map(Cow::Borrowed);
        }
        let mut gathered = Vec::with_capacity(count);
        loop {
            let rest_of_chunk = self.chunk_end().saturating_sub(self.position());
            let part = rest_of_chunk.min(count - gathered.len());
            gathered.extend_from_slice(self.read_bytes_beyond(part)?);
            if gathered.len() == count {
                return Ok(Cow::Owned(gathered));
            }
            self.next_chunk()?;
        }
    }

    /// Numbers that are split over pieces. No one number may be.
    #[cold]
    pub(super) fn gather_numbers<T: Number>(&mut self, count: usize) -> Result<Vec<T>, Malformed> {
        let size = size_of::<T>();
        if count > self.remaining() / size {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        let mut items = Vec::with_capacity(count);
        while items.len() < count {
            let start = self.at + (self.at.wrapping_neg() & (size - 1));
            let whole = self.bytes.len().saturating_sub(start) / size;
            let part = whole.min(count - items.len());
            match self.number_bytes::<T>(part) {
                Some(bytes) if part > 0 => items.extend(self.to_numbers::<T>(bytes)),
                _ => self.advance(size)?,
            }
        }
        Ok(items)
    }

    /// Reads the frame of an encapsulation (9.3.3) and hands a reader for what is in it to `body`. Unlike
    /// [`Reader::read_encapsulation`] this serves where chunks split it, and values inside may be referred to by
    /// indirections outside.
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
            beyond.origin = outer.origin + at - length;
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
