//! The frame of a value: its tag, its type information, its chunks and its end (CORBA 3.3 part 2, 9.3.4).
//!
//! Nothing here knows the type of a value.

use std::borrow::Cow;

use super::known::Nesting;
use super::tag;
use crate::cdr::{NO_CHUNK, Reader};
use crate::error::{Malformed, MalformedKind};

/// Repository ids that one value may list: its bases, so far above real data. A default and only value.
pub const VALUE_IDS_MAX: usize = 64;
/// Bytes that a repository id of a value may have.
pub const VALUE_ID_BYTES_MAX: usize = 1024;

/// What stands where a value may stand.
#[derive(Debug)]
pub enum ValueStart<'a> {
    /// No value.
    Null,
    /// The value that starts at this position of the octet stream, which has been read or skipped before.
    Indirection(usize),
    /// A value; its state follows.
    Value(ValueHeader<'a>),
}

/// The header of a value.
#[derive(Debug)]
pub struct ValueHeader<'a> {
    /// Where the value starts in the octet stream; indirections lead there.
    pub position: usize,
    /// Its repository ids, the most derived first; empty when the sender left them out because the value is of
    /// exactly the type that is expected.
    pub ids: Vec<Cow<'a, str>>,
    /// Whether the state comes in chunks, so that it can be skipped.
    pub chunked: bool,
    pub(super) spot: Spot,
}

/// Where a value starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// Position of its tag in the octet stream.
    pub(super) at: usize,
    /// Chunked values around it.
    pub(super) level: u32,
    /// Where the chunk ends that it starts in, as some ORBs have it; else `NO_CHUNK`.
    pub(super) chunk_end: usize,
}

impl<'a> Reader<'a> {
    /// Reads what comes before the state of a value, for one who will read the state without a Rust type for it,
    /// and give the header to [`Reader::end_value`] afterwards.
    ///
    /// The value can be the target of indirections from then on, whoever reads them.
    pub fn begin_value(&mut self) -> Result<ValueStart<'a>, Malformed> {
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

    /// Ends a value after its state, or after as much of it as is wanted if it is chunked: the rest is skipped.
    pub fn end_value(&mut self, header: ValueHeader<'_>) -> Result<(), Malformed> {
        self.end_state(&header.spot, header.chunked)?;
        self.after_value(&header.spot);
        Ok(())
    }

    /// A reader at the start of a value that was read or skipped before: what [`ValueStart::Indirection`] gave.
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

    /// Reads the tag where a value may stand, and where it stands.
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
            // 9.3.4.6: null and indirections are part of chunks. Where one stands between chunks nothing else can
            // be meant, since a value is expected.
            tag::NULL | tag::INDIRECTION | tag::VALUE..=tag::VALUE_MAX => Ok((spot, tag)),
            _ => Err(Malformed::new(MalformedKind::BadValueTag, spot.at)),
        }
    }

    /// Chunked values around the next byte, if any.
    fn chunk_level(&mut self) -> Option<u32> {
        let level = self.values().nesting().level;
        (level > 0).then_some(level)
    }

    /// Goes on after null or an indirection.
    pub(super) fn after_nothing(&mut self, spot: &Spot) {
        if spot.level > 0 && spot.chunk_end == NO_CHUNK {
            self.expect_chunk();
        }
    }

    /// Goes on in the surrounding value.
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

    /// Where an indirection leads whose tag has been read: before the tag.
    pub(super) fn indirection(&mut self) -> Result<usize, Malformed> {
        let offset = self.read_i32()?;
        let at = self.stream_position() - 4;
        if offset >= -4 {
            return Err(Malformed::new(MalformedKind::BadIndirection, at));
        }
        at.checked_sub(offset.unsigned_abs() as usize)
            .ok_or(Malformed::new(MalformedKind::BadIndirection, at))
    }

    /// Goes between chunks for what follows a tag.
    pub(super) fn begin_header(&mut self, spot: &Spot, tag: u32) -> Result<(), Malformed> {
        if tag & tag::CHUNKED != 0 {
            self.set_chunk_end(NO_CHUNK);
        } else if spot.level > 0 && spot.chunk_end == NO_CHUNK {
            // All values in a chunked one must be chunked. One that is part of a chunk can be read all the same.
            return Err(Malformed::new(MalformedKind::BadChunk, spot.at));
        }
        let origin = self.stream_origin();
        self.values().note_start(spot.at, spot.level, origin)?;
        if tag & tag::CODE_BASE != 0 {
            self.skip_string()?;
        }
        Ok(())
    }

    /// Skips a string, or an indirection to one.
    fn skip_string(&mut self) -> Result<(), Malformed> {
        match self.read_u32()? {
            tag::INDIRECTION => self.read_i32().map(drop),
            length => self.read_bytes_split(length as usize).map(drop),
        }
    }

    /// Reads the type information that a tag announces.
    fn value_ids(&mut self, tag: u32) -> Result<Vec<Cow<'a, str>>, Malformed> {
        match tag & tag::TYPE_INFO {
            0 => Ok(Vec::new()),
            tag::SINGLE_ID => match self.read_u32()? {
                tag::INDIRECTION => {
                    let target = self.indirection()?;
                    Ok(vec![self.look_back(target)?.direct_id()?])
                }
                length => Ok(vec![self.rest_of_id(length)?]),
            },
            tag::ID_LIST => match self.read_u32()? {
                tag::INDIRECTION => {
                    let target = self.indirection()?;
                    self.look_back(target)?.id_list()
                }
                count => self.rest_of_id_list(count),
            },
            _ => Err(self.malformed(MalformedKind::BadValueTag)),
        }
    }

    /// Reads a list of repository ids after its count.
    pub(super) fn rest_of_id_list(&mut self, count: u32) -> Result<Vec<Cow<'a, str>>, Malformed> {
        let count = count as usize;
        if count == 0 || count > VALUE_IDS_MAX {
            return Err(self.malformed(MalformedKind::BadValueTag));
        }
        (0..count)
            .map(|_| match self.read_u32()? {
                tag::INDIRECTION => {
                    let target = self.indirection()?;
                    self.look_back(target)?.direct_id()
                }
                length => self.rest_of_id(length),
            })
            .collect()
    }

    pub(super) fn id_list(&mut self) -> Result<Vec<Cow<'a, str>>, Malformed> {
        let count = self.read_u32()?;
        self.rest_of_id_list(count)
    }

    /// Reads a repository id that is no indirection.
    pub(super) fn direct_id(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let length = self.read_u32()?;
        self.rest_of_id(length)
    }

    /// Reads a repository id after its length.
    pub(super) fn rest_of_id(&mut self, length: u32) -> Result<Cow<'a, str>, Malformed> {
        let length = length as usize;
        if length > VALUE_ID_BYTES_MAX {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        let terminated = |bytes: &[u8]| bytes.last() == Some(&0);
        let not_text = |r: &Self| r.malformed(MalformedKind::StringNotTerminated);
        match self.read_bytes_split(length)? {
            Cow::Borrowed(bytes) if terminated(bytes) => {
                let text = std::str::from_utf8(&bytes[..length - 1]);
                text.map(Cow::Borrowed).map_err(|_| self.malformed(MalformedKind::NotInCharSet))
            }
            Cow::Owned(mut bytes) if terminated(&bytes) => {
                bytes.pop();
                let text = String::from_utf8(bytes);
                text.map(Cow::Owned).map_err(|_| self.malformed(MalformedKind::NotInCharSet))
            }
            _ => Err(not_text(self)),
        }
    }

    /// Enters the state after the header.
    pub(super) fn begin_state(&mut self, spot: &Spot, tag: u32) -> Result<(), Malformed> {
        if tag & tag::CHUNKED != 0 {
            self.values().set_nesting(Nesting { level: spot.level + 1, ended: None });
            self.expect_chunk();
        }
        Ok(())
    }

    /// Leaves the state; skips what is left of it when it is chunked.
    pub(super) fn end_state(&mut self, spot: &Spot, chunked: bool) -> Result<(), Malformed> {
        if !chunked {
            return Ok(());
        }
        let level = spot.level + 1;
        let mut ended = self.values().nesting().ended;
        if ended.is_none() {
            ended = self.skip_to_end(level)?;
        }
        // Ended further out by the same tag, or just here.
        let ended = ended.filter(|outermost| *outermost < level);
        self.values().set_nesting(Nesting { level: spot.level, ended });
        Ok(())
    }

    /// Skips chunks and values up to the end tag of the value at `level`, or of one further out, whose level it
    /// returns.
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

    fn skip_ids(&mut self, tag: u32) -> Result<(), Malformed> {
        match tag & tag::TYPE_INFO {
            0 => Ok(()),
            tag::SINGLE_ID => self.skip_string(),
            tag::ID_LIST => match self.read_u32()? {
                tag::INDIRECTION => self.read_i32().map(drop),
                count if count as usize <= VALUE_IDS_MAX => (0..count).try_for_each(|_| self.skip_string()),
                _ => Err(self.malformed(MalformedKind::BadValueTag)),
            },
            _ => Err(self.malformed(MalformedKind::BadValueTag)),
        }
    }
}
