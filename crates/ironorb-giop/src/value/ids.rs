//! Reads the repository ids of a value: none, one, or a list, in place or by indirection (CORBA 3.3 part 2,
//! 9.3.4.3 and 9.3.4.4).
//!
//! Ids at one position are read only once, even if many values point at them: eight bytes can point at a list
//! of 64 KiB.

use std::borrow::Cow;
use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use super::tag;
use crate::cdr::Reader;
use crate::error::{Malformed, MalformedKind};

/// Number of repository ids that one value may list. They are its bases, so this is far above real data.
/// Default and only value.
pub const VALUE_IDS_MAX: usize = 64;
/// Size in bytes that a repository id of a value may have.
pub const VALUE_ID_BYTES_MAX: usize = 1024;

/// The repository ids of a value as a slice, the most derived first. Values that point at the same ids in a
/// message share them.
#[derive(Debug, Clone, Default)]
pub struct ValueIds {
    ids: Ids,
    /// The position of the ids, if they do not stand with their value.
    elsewhere: Option<usize>,
}

#[derive(Debug, Clone, Default)]
enum Ids {
    #[default]
    None,
    One(Arc<str>),
    List(Arc<[Arc<str>]>),
}

impl Deref for ValueIds {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        match &self.ids {
            Ids::None => &[],
            Ids::One(id) => slice::from_ref(id),
            Ids::List(ids) => ids,
        }
    }
}

impl ValueIds {
    /// The position of the ids in the octet stream, if they were found by an indirection. Then other values
    /// may have the same ids.
    pub(crate) fn elsewhere(&self) -> Option<usize> {
        self.elsewhere
    }
}

impl<'a> Reader<'a> {
    /// Reads the type information that a tag announces.
    pub(super) fn value_ids(&mut self, tag: u32) -> Result<ValueIds, Malformed> {
        match tag & tag::TYPE_INFO {
            0 => Ok(ValueIds::default()),
            tag::SINGLE_ID => match self.read_u32()? {
                tag::INDIRECTION => {
                    let target = self.indirection()?;
                    Ok(ValueIds { ids: Ids::One(self.id_at(target)?), elsewhere: Some(target) })
                }
                length => {
                    let id = self.rest_of_id(length)?;
                    Ok(ValueIds { ids: Ids::One(id.into()), elsewhere: None })
                }
            },
            tag::ID_LIST => match self.read_u32()? {
                tag::INDIRECTION => {
                    let target = self.indirection()?;
                    Ok(ValueIds { ids: Ids::List(self.id_list_at(target)?), elsewhere: Some(target) })
                }
                count => Ok(ValueIds { ids: Ids::List(self.rest_of_id_list(count)?), elsewhere: None }),
            },
            _ => Err(self.malformed(MalformedKind::BadValueTag)),
        }
    }

    /// Skips the type information that a tag announces.
    pub(super) fn skip_ids(&mut self, tag: u32) -> Result<(), Malformed> {
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

    /// Skips a string, or an indirection to one.
    pub(super) fn skip_string(&mut self) -> Result<(), Malformed> {
        match self.read_u32()? {
            tag::INDIRECTION => self.read_i32().map(drop),
            length => self.read_bytes_split(length as usize).map(drop),
        }
    }

    /// Reads a list of repository ids after its count.
    pub(super) fn rest_of_id_list(&mut self, count: u32) -> Result<Arc<[Arc<str>]>, Malformed> {
        self.checked_count(count)?;
        let ids = (0..count).map(|_| match self.read_u32()? {
            tag::INDIRECTION => {
                let target = self.indirection()?;
                self.id_at(target)
            }
            length => Ok(self.rest_of_id(length)?.into()),
        });
        ids.collect()
    }

    /// The list of repository ids at another position.
    pub(super) fn id_list_at(&mut self, place: usize) -> Result<Arc<[Arc<str>]>, Malformed> {
        if let Some(ids) = self.values().id_lists.get(&place) {
            return Ok(ids.clone());
        }
        let mut there = self.look_back(place)?;
        let count = there.read_u32()?;
        there.checked_count(count)?;
        // Each id takes at least eight bytes. Only overlapping lists can exceed this limit.
        let ids_listed = self.values().ids_listed + count as usize;
        if ids_listed > (self.position() + self.remaining()) / 4 {
            return Err(self.malformed(MalformedKind::OutOfProportion));
        }
        self.values().ids_listed = ids_listed;
        let ids = (0..count).map(|_| match there.read_u32()? {
            tag::INDIRECTION => {
                let target = there.indirection()?;
                self.id_at(target)
            }
            length => Ok(there.rest_of_id(length)?.into()),
        });
        let ids = ids.collect::<Result<Arc<[_]>, Malformed>>()?;
        self.values().id_lists.insert(place, ids.clone());
        Ok(ids)
    }

    fn checked_count(&self, count: u32) -> Result<(), Malformed> {
        match count as usize {
            1..=VALUE_IDS_MAX => Ok(()),
            _ => Err(self.malformed(MalformedKind::BadValueTag)),
        }
    }

    /// The repository id at another position, where no second indirection may stand.
    fn id_at(&mut self, place: usize) -> Result<Arc<str>, Malformed> {
        if let Some(id) = self.values().ids.get(&place) {
            return Ok(id.clone());
        }
        let id: Arc<str> = self.look_back(place)?.direct_id()?.into();
        self.values().ids.insert(place, id.clone());
        Ok(id)
    }

    /// Reads a repository id in place, without indirections.
    pub(super) fn direct_id(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let length = self.read_u32()?;
        self.rest_of_id(length)
    }

    /// Reads a repository id after its length.
    ///
    /// An id holds no NUL, so it cannot contain the length of another id. So ids at different positions do
    /// not overlap, and storing them takes no more memory than the message.
    pub(super) fn rest_of_id(&mut self, length: u32) -> Result<Cow<'a, str>, Malformed> {
        let length = length as usize;
        if length > VALUE_ID_BYTES_MAX {
            return Err(self.malformed(MalformedKind::LengthBeyondData));
        }
        let kind = match self.read_bytes_split(length)? {
            Cow::Borrowed(bytes) => match id_text(bytes) {
                Ok(text) => return Ok(Cow::Borrowed(text)),
                Err(kind) => kind,
            },
            Cow::Owned(bytes) => match id_text(&bytes) {
                Ok(text) => return Ok(Cow::Owned(text.to_owned())),
                Err(kind) => kind,
            },
        };
        Err(self.malformed(kind))
    }
}

fn id_text(bytes: &[u8]) -> Result<&str, MalformedKind> {
    let text = bytes.strip_suffix(&[0]).ok_or(MalformedKind::StringNotTerminated)?;
    if text.contains(&0) {
        return Err(MalformedKind::StringHoldsNul);
    }
    std::str::from_utf8(text).map_err(|_| MalformedKind::NotInCharSet)
}
