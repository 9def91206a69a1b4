//! Writes the frame of a value: its tag, its type information, its chunks and its end (CORBA 3.3 part 2,
//! 9.3.4).
//!
//! Nothing here depends on the type of a value.

use std::collections::HashMap;

use super::tag;
use crate::cdr::Writer;
use crate::error::Misuse;

/// What a writer remembers of frames.
#[derive(Default)]
pub(super) struct Frames {
    /// Where each repository id has been written.
    ids: WrittenIdTable,
    /// How many chunked values surround the next byte.
    pub(super) level: u32,
    /// Where the length of the current chunk is. There is a chunk whenever the next byte belongs to the state
    /// of a chunked value, so writing that byte needs no check here.
    chunk: Option<usize>,
    /// Where the last end tag ends.
    ended: usize,
}

/// Where each repository id has been written. The first few, which are all in most messages, are compared one
/// by one: this is faster than a hash.
#[derive(Default)]
struct WrittenIdTable {
    first: Vec<(String, usize)>,
    others: HashMap<String, usize>,
}

/// How many ids are compared one by one.
const IDS_FIRST: usize = 8;

impl WrittenIdTable {
    fn get(&self, id: &str) -> Option<usize> {
        match self.first.iter().find(|(first, _)| first == id) {
            Some((_, at)) => Some(*at),
            None => self.others.get(id).copied(),
        }
    }

    fn insert(&mut self, id: &str, at: usize) {
        if self.first.len() < IDS_FIRST {
            self.first.push((id.to_owned(), at));
        } else {
            self.others.insert(id.to_owned(), at);
        }
    }
}

/// A value whose state is being written. The caller passes it to [`Writer::end_value`].
#[derive(Debug)]
#[must_use = "a value that is not ended cannot be read"]
pub struct OpenValue {
    position: usize,
    chunked: bool,
}

/// Where ids have been written, so that indirections can repeat them.
#[derive(Debug)]
pub(crate) struct WrittenIds {
    /// Where their list is, if there are several.
    list_at: usize,
    ids: Vec<usize>,
}

/// Up to this many ids are listed for each value, each as an indirection, because JacORB does not support
/// indirections to lists. Longer lists, which no real inheritance has, are written once: otherwise a peer
/// that sends eight bytes to point at a list could make us write all of it.
const IDS_IN_FULL_MAX: usize = 8;

impl OpenValue {
    /// The position of the value in the octet stream, for indirections to it.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether the state is written in chunks.
    pub fn is_chunked(&self) -> bool {
        self.chunked
    }
}

impl Writer<'_> {
    /// Starts a value whose state the caller writes without a Rust type for it.
    ///
    /// `ids` are its repository id and those of the bases that a receiver may truncate it to, the most
    /// derived first. If there is none, the receiver assumes the type that it expects. The state is written
    /// in chunks if there are several ids, if `chunked` is true (which values that marshal themselves need),
    /// and inside of chunked values.
    pub fn begin_value(&mut self, ids: &[&str], chunked: bool) -> Result<OpenValue, Misuse> {
        let type_info = match ids {
            [] => 0,
            [_] => tag::SINGLE_ID,
            _ => tag::ID_LIST,
        };
        let open = self.begin_header(type_info, chunked || ids.len() > 1)?;
        match ids {
            [] => {}
            [id] => self.write_id(id)?,
            ids => self.write_id_list(ids)?,
        }
        self.begin_state(&open);
        Ok(open)
    }

    /// The positions of the ids that a value was started with.
    pub(crate) fn written_ids(&mut self, value: &OpenValue, ids: &[&str]) -> WrittenIds {
        let list_at = value.position + 4;
        let places = ids.iter().map(|id| self.frames().ids.get(id).unwrap_or(list_at)).collect();
        WrittenIds { list_at, ids: places }
    }

    /// Starts a value like [`Writer::begin_value`], with ids that have been written before. They are not
    /// compared again. Each takes eight bytes, but together they never take more than [`IDS_IN_FULL_MAX`] ids
    /// do.
    pub(crate) fn begin_value_like(&mut self, like: &WrittenIds) -> Result<OpenValue, Misuse> {
        match &like.ids[..] {
            [id] => {
                let open = self.begin_header(tag::SINGLE_ID, false)?;
                self.write_value_indirection(*id)?;
                self.begin_state(&open);
                Ok(open)
            }
            ids => {
                let open = self.begin_header(tag::ID_LIST, true)?;
                if ids.len() > IDS_IN_FULL_MAX {
                    self.write_value_indirection(like.list_at)?;
                } else {
                    self.write_length(ids.len())?;
                    ids.iter().try_for_each(|id| self.write_value_indirection(*id))?;
                }
                self.begin_state(&open);
                Ok(open)
            }
        }
    }

    fn begin_header(&mut self, type_info: u32, chunked: bool) -> Result<OpenValue, Misuse> {
        self.leave_chunk()?;
        self.align(4);
        let position = self.position();
        let chunked = chunked || self.frames().level > 0;
        self.write_u32(tag::VALUE | type_info | if chunked { tag::CHUNKED } else { 0 });
        Ok(OpenValue { position, chunked })
    }

    fn begin_state(&mut self, value: &OpenValue) {
        if value.chunked {
            self.frames().level += 1;
            self.enter_chunk();
        }
    }

    /// Ends a value after its state.
    pub fn end_value(&mut self, value: OpenValue) -> Result<(), Misuse> {
        self.close_value(&value)?;
        self.resume_chunk();
        Ok(())
    }

    /// Notes the end of a member that is more than one number and may end in an array or a string. In a
    /// chunked value it starts another chunk, which costs four bytes. omniORB 4.2 needs this: if an array is
    /// not in one of its buffers, it reads up to the end of the chunk, beyond the end of its memory. So the
    /// chunk must end where the array ends.
    #[inline]
    pub fn end_long_member(&mut self) -> Result<(), Misuse> {
        if self.is_in_chunked_value() { self.next_chunk() } else { Ok(()) }
    }

    #[cold]
    fn next_chunk(&mut self) -> Result<(), Misuse> {
        let position = self.position();
        match self.frames().chunk {
            // The member was a value that has ended, or nothing was written.
            Some(length_at) if length_at + 4 == position => Ok(()),
            Some(_) => {
                self.leave_chunk()?;
                self.enter_chunk();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Appends an indirection to a value that starts at this position, which [`OpenValue::position`]
    /// returned.
    pub fn write_value_indirection(&mut self, position: usize) -> Result<(), Misuse> {
        self.write_u32(tag::INDIRECTION);
        let distance = i32::try_from(self.position() - position).map_err(|_| Misuse::TooLarge)?;
        self.write_i32(-distance);
        Ok(())
    }

    /// Appends a null value.
    pub fn write_null_value(&mut self) {
        self.write_u32(tag::NULL);
    }

    /// Ends a value, without continuing in the surrounding one.
    pub(super) fn close_value(&mut self, value: &OpenValue) -> Result<(), Misuse> {
        if !value.chunked {
            return Ok(());
        }
        self.leave_chunk()?;
        let level = self.frames().level;
        let end_tag = level.wrapping_neg();
        // 9.3.4.6: one tag ends all values that end at the same position.
        if self.frames().ended == self.position() && level > 0 {
            self.patch_u32(self.position() - 4, end_tag);
        } else {
            self.write_u32(end_tag);
        }
        let position = self.position();
        let frames = self.frames();
        frames.ended = position;
        frames.level = level.saturating_sub(1);
        Ok(())
    }

    /// Continues in the state of the value around the one that has ended.
    pub(super) fn resume_chunk(&mut self) {
        if self.frames().level > 0 {
            self.enter_chunk();
        }
    }

    /// Notes that a value ends at the writer's position, with or without an end tag.
    pub(super) fn set_ended(&mut self, by_tag: bool) {
        let position = self.position();
        let frames = self.frames();
        frames.chunk = None;
        frames.ended = if by_tag { position } else { 0 };
    }

    /// Forgets the current chunk, and sets the level.
    pub(super) fn set_level(&mut self, level: u32) {
        let frames = self.frames();
        (frames.level, frames.chunk, frames.ended) = (level, None, 0);
    }

    /// The position where the next value would start.
    pub(super) fn next_value_position(&mut self) -> usize {
        let position = self.position();
        match self.frames().chunk {
            Some(length_at) if length_at + 4 == position => length_at,
            _ => position.next_multiple_of(4),
        }
    }

    fn enter_chunk(&mut self) {
        self.align(4);
        let length_at = self.position();
        self.write_u32(0); // no chunk has this length, so an interrupted encode is never valid
        self.frames().chunk = Some(length_at);
    }

    /// Ends the current chunk, if there is one. An empty chunk is removed.
    fn leave_chunk(&mut self) -> Result<(), Misuse> {
        let Some(length_at) = self.frames().chunk.take() else { return Ok(()) };
        let length = self.position() - (length_at + 4);
        if length == 0 {
            // The chunk follows a header or an end tag, so removing it leaves no padding that matters.
            self.truncate(length_at);
            return Ok(());
        }
        match u32::try_from(length) {
            Ok(length @ 1..tag::VALUE) => self.patch_u32(length_at, length),
            _ => return Err(Misuse::TooLarge),
        }
        Ok(())
    }

    fn write_id(&mut self, id: &str) -> Result<(), Misuse> {
        self.align(4);
        let at = self.position();
        match self.frames().ids.get(id) {
            // The position is the same when the id is written again.
            Some(earlier) if earlier != at => self.write_value_indirection(earlier),
            earlier => {
                if earlier.is_none() {
                    self.frames().ids.insert(id, at);
                }
                self.write_length(id.len() + 1)?;
                self.write_bytes(id.as_bytes());
                self.write_u8(0);
                Ok(())
            }
        }
    }

    /// Writes each id as an indirection where possible, but not the list: JacORB does not support
    /// indirections to lists.
    fn write_id_list(&mut self, ids: &[&str]) -> Result<(), Misuse> {
        self.write_length(ids.len())?;
        ids.iter().try_for_each(|id| self.write_id(id))
    }
}
