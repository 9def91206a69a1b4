//! Reads the frame of a value: its tag, its type information, its chunks and its end (CORBA 3.3 part 2,
//! 9.3.4).
//!
//! Nothing here depends on the type of a value.

use super::ids::ValueIds;
use super::known::{End, Nesting};
use super::tag;
use crate::cdr::{NO_CHUNK, Reader};
use crate::error::{Malformed, MalformedKind};

/// What the data has in place of a value.
#[derive(Debug)]
pub enum ValueStart {
    /// A null value.
    Null,
    /// The value that starts at this position of the octet stream, and that has been read or skipped before.
    Indirection(usize),
    /// A value, whose state follows.
    Value(ValueHeader),
}

/// The header of a value.
#[derive(Debug)]
pub struct ValueHeader {
    /// The position of the value in the octet stream, for indirections to it.
    pub position: usize,
    /// Its repository ids, the most derived first. Empty if the sender omitted them because the value has
    /// exactly the expected type.
    pub ids: ValueIds,
    /// Whether the state is in chunks, so that it can be skipped.
    pub chunked: bool,
    pub(super) spot: Spot,
}

/// Where a reader was before it returned to a value.
#[derive(Debug)]
pub(crate) struct Bookmark {
    at: usize,
    chunk_end: usize,
    nesting: Nesting,
}

/// Where a value starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// Position of its tag in the octet stream.
    pub(super) at: usize,
    /// How many chunked values surround it.
    pub(super) level: u32,
    /// The end of the chunk that it starts in, as some ORBs send it; else `NO_CHUNK`.
    pub(super) chunk_end: usize,
}

impl<'a> Reader<'a> {
    /// Reads everything before the state of a value, for a caller that reads the state without a Rust type
    /// for it and then passes the header to [`Reader::end_value`].
    ///
    /// From then on, the value may be the target of indirections.
    pub fn begin_value(&mut self) -> Result<ValueStart, Malformed> {
        let (spot, tag) = self.value_tag()?;
        match tag {
            tag::NULL => {
                self.after_nothing(&spot);
                Ok(ValueStart::Null)
            }
            tag::INDIRECTION => {
                let target = self.indirection()?;
                self.after_nothing(&spot);
                if self.values().lookup(target).is_none() {
                    return Err(Malformed::new(MalformedKind::BadIndirection, spot.at));
                }
                Ok(ValueStart::Indirection(target))
            }
            tag => {
                self.begin_header(&spot, tag)?;
                let ids = self.value_ids(tag)?;
                self.begin_state(&spot, tag)?;
                let chunked = tag & tag::CHUNKED != 0;
                Ok(ValueStart::Value(ValueHeader { position: spot.at, ids, chunked, spot }))
            }
        }
    }

    /// Ends a value after its state. A chunked value may be ended earlier: the rest of its state is skipped.
    pub fn end_value(&mut self, header: ValueHeader) -> Result<(), Malformed> {
        self.end_state(&header.spot, header.chunked)?;
        let end = self.stream_position();
        self.values().note_end(header.position, end);
        self.after_value(&header.spot);
        Ok(())
    }

    /// Ends a value after its state. Returns false if some of the state was unread.
    pub(crate) fn end_whole_value(&mut self, header: ValueHeader) -> Result<bool, Malformed> {
        let in_chunk = self.chunk_end() != NO_CHUNK && self.position() < self.chunk_end();
        let left = header.chunked && in_chunk && self.values().nesting().ended.is_none();
        let before = self.stream_position();
        self.end_value(header)?;
        // At most padding and the end tag of the value. Another chunk would have a length, an octet and then
        // that tag.
        Ok(!left && self.stream_position() - before < 8)
    }

    /// Continues behind a value of which only the header was read this time, but all of it before. Returns
    /// the number of bytes skipped.
    pub(crate) fn pass_value(&mut self, header: ValueHeader) -> Result<usize, Malformed> {
        match self.values().end(header.position) {
            Some(end) => {
                let skipped = (end.at as usize).saturating_sub(self.stream_position());
                self.step_over(&header.spot, end);
                Ok(skipped)
            }
            None if header.chunked => self.end_value(header).map(|()| 0),
            None => Err(Malformed::new(MalformedKind::ValueNotWhole, header.position)),
        }
    }

    /// Continues after a value whose end is known.
    pub(super) fn step_over(&mut self, spot: &Spot, end: End) {
        let state = self.values();
        let level = state.nesting().level;
        state.set_nesting(Nesting { level, ended: end.ended });
        self.set_chunk_end(NO_CHUNK);
        self.seek_stream(end.at as usize);
        self.after_value(spot);
    }

    /// Returns to the start of a value that was read or skipped before, as given by
    /// [`ValueStart::Indirection`].
    pub(crate) fn go_back_to_value(&mut self, position: usize) -> Result<Bookmark, Malformed> {
        let origin = self.stream_origin();
        let start = self.values().place_of(position).filter(|start| start.origin == origin);
        let start = start.ok_or(Malformed::new(MalformedKind::BadIndirection, position))?;
        let bookmark = self.bookmark();
        self.values().set_nesting(Nesting { level: start.level, ended: None });
        self.set_chunk_end(NO_CHUNK);
        self.seek_stream(position);
        if start.level > 0 {
            self.expect_chunk();
        }
        Ok(bookmark)
    }

    /// The reader's position among the chunks of values.
    pub(super) fn bookmark(&mut self) -> Bookmark {
        let (at, chunk_end) = (self.position(), self.chunk_end());
        Bookmark { at, chunk_end, nesting: self.values().nesting() }
    }

    /// Moves to the position before the reader returned to a value.
    pub(crate) fn return_to(&mut self, bookmark: &Bookmark) {
        self.values().set_nesting(bookmark.nesting);
        self.set_chunk_end(NO_CHUNK);
        self.seek(bookmark.at);
        self.set_chunk_end(bookmark.chunk_end);
    }

    /// A reader at the start of a value that was read or skipped before, as given by
    /// [`ValueStart::Indirection`].
    pub fn reader_at_value(&mut self, position: usize) -> Result<Reader<'a>, Malformed> {
        let bad = self.malformed(MalformedKind::BadIndirection);
        let origin = self.stream_origin();
        let start = self.values().place_of(position).filter(|start| start.origin == origin).ok_or(bad)?;
        let mut reader = self.look_back(position)?;
        reader.values().set_nesting(Nesting { level: start.level, ended: None });
        if start.level > 0 {
            reader.expect_chunk();
        }
        Ok(reader)
    }

    /// Reads the tag of a value, and notes its position.
    pub(super) fn value_tag(&mut self) -> Result<(Spot, u32), Malformed> {
        let Some(level) = self.chunk_level() else {
            let tag = self.read_u32()?;
            let spot = Spot { at: self.stream_position() - 4, level: 0, chunk_end: NO_CHUNK };
            return self.checked_tag(spot, tag);
        };
        loop {
            let chunk_end = self.chunk_end();
            if self.position_aligned(4) < chunk_end {
                let tag = self.read_u32()?;
                let spot = Spot { at: self.stream_position() - 4, level, chunk_end };
                return self.checked_tag(spot, tag);
            }
            if self.values().nesting().ended.is_some() {
                return Err(self.malformed(MalformedKind::BadChunk));
            }
            self.set_chunk_end(NO_CHUNK);
            match self.read_u32()? {
                length @ 1..tag::VALUE => self.enter_chunk(length)?,
                tag => {
                    let spot = Spot { at: self.stream_position() - 4, level, chunk_end: NO_CHUNK };
                    return self.checked_tag(spot, tag);
                }
            }
        }
    }

    fn checked_tag(&self, spot: Spot, tag: u32) -> Result<(Spot, u32), Malformed> {
        match tag {
            // 9.3.4.6: null and indirections are part of chunks. Between chunks they can mean nothing else
            // either, because a value is expected.
            tag::NULL | tag::INDIRECTION | tag::VALUE..=tag::VALUE_MAX => Ok((spot, tag)),
            _ => Err(Malformed::new(MalformedKind::BadValueTag, spot.at)),
        }
    }

    /// How many chunked values surround the next byte, if any.
    fn chunk_level(&mut self) -> Option<u32> {
        let level = self.values().nesting().level;
        (level > 0).then_some(level)
    }

    /// Continues after null or an indirection.
    pub(super) fn after_nothing(&mut self, spot: &Spot) {
        if spot.level > 0 && spot.chunk_end == NO_CHUNK {
            self.expect_chunk();
        }
    }

    /// Continues in the surrounding value.
    pub(super) fn after_value(&mut self, spot: &Spot) {
        let ended = self.values().nesting().ended;
        self.values().set_nesting(Nesting { level: spot.level, ended });
        if spot.level == 0 {
            self.set_chunk_end(NO_CHUNK);
        } else if spot.chunk_end != NO_CHUNK && self.position() < spot.chunk_end {
            self.set_chunk_end(spot.chunk_end);
        } else {
            self.expect_chunk();
        }
    }

    /// The target of an indirection whose tag has been read. It must be before the tag.
    pub(super) fn indirection(&mut self) -> Result<usize, Malformed> {
        let offset = self.read_i32()?;
        let at = self.stream_position() - 4;
        if offset >= -4 {
            return Err(Malformed::new(MalformedKind::BadIndirection, at));
        }
        at.checked_sub(offset.unsigned_abs() as usize)
            .ok_or_else(|| Malformed::new(MalformedKind::BadIndirection, at))
    }

    /// Leaves the chunk to read what follows a tag.
    pub(super) fn begin_header(&mut self, spot: &Spot, tag: u32) -> Result<(), Malformed> {
        if tag & tag::CHUNKED != 0 {
            self.set_chunk_end(NO_CHUNK);
        } else if spot.level > 0 && spot.chunk_end == NO_CHUNK {
            // All values in a chunked one must be chunked. Even so, a value that is part of a chunk can be
            // read.
            return Err(Malformed::new(MalformedKind::BadChunk, spot.at));
        }
        let origin = self.stream_origin();
        self.values().note_start(spot.at, spot.level, origin)?;
        if tag & tag::CODE_BASE != 0 {
            self.skip_string()?;
        }
        Ok(())
    }

    /// Enters the state after the header.
    pub(super) fn begin_state(&mut self, spot: &Spot, tag: u32) -> Result<(), Malformed> {
        if tag & tag::CHUNKED != 0 {
            self.values().set_nesting(Nesting { level: spot.level + 1, ended: None });
            self.expect_chunk();
        }
        Ok(())
    }

    /// Leaves the state. If it is chunked, skips the rest.
    pub(super) fn end_state(&mut self, spot: &Spot, chunked: bool) -> Result<(), Malformed> {
        if !chunked {
            return Ok(());
        }
        let level = spot.level + 1;
        let mut ended = self.values().nesting().ended;
        if ended.is_none() {
            ended = self.skip_to_end(level)?;
        }
        // Ended by the tag of a value further out, or exactly here.
        let ended = ended.filter(|outermost| *outermost < level);
        self.values().set_nesting(Nesting { level: spot.level, ended });
        Ok(())
    }

    /// Skips chunks and values up to the end tag of the value at `level`, or of a value further out, whose
    /// level it returns.
    fn skip_to_end(&mut self, level: u32) -> Result<Option<u32>, Malformed> {
        let mut inner = level;
        loop {
            let chunk_end = self.chunk_end();
            self.set_chunk_end(NO_CHUNK);
            if chunk_end != NO_CHUNK && self.position() < chunk_end {
                self.seek(chunk_end);
            }
            let tag = self.read_u32()?;
            let at = self.stream_position() - 4;
            let bad = Malformed::new(MalformedKind::BadChunk, at);
            match tag {
                1..tag::VALUE => self.enter_chunk(tag)?,
                tag::VALUE..=tag::VALUE_MAX if tag & tag::CHUNKED != 0 => {
                    let spot = Spot { at, level: inner, chunk_end: NO_CHUNK };
                    self.begin_header(&spot, tag)?;
                    self.skip_ids(tag)?;
                    inner += 1;
                }
                // 9.3.4.6: an end tag is the level of the outermost value that ends, negated.
                0x8000_0000.. => {
                    let ended = tag.wrapping_neg();
                    if ended > inner {
                        return Err(bad);
                    }
                    inner = ended - 1;
                    if inner < level {
                        return Ok(Some(ended));
                    }
                }
                _ => return Err(bad),
            }
        }
    }
}
