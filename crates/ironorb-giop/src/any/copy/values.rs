//! Valuetypes, copied with their graphs: nulls, sharing and cycles stay what they are; ids, chunks and the lists of
//! what a value may be truncated to are written as the value needs them.
//!
//! A value that is of a derived type is copied as that type if the environment knows it, else as the first base in its
//! list that is known, if its sender and the environment allow that.

use std::collections::BTreeMap;

use super::{Copy, CopyError, Frame, LENGTH_BYTES};
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind};
use crate::typecode::{Shape, TypeCode, TypeRef, ValueModifier};
use crate::value::{Bookmark, OpenValue, VALUE_ID_BYTES_MAX, ValueHeader, ValueIds, ValueStart, WrittenIds};

/// Bytes of a message that may be read again because an `any` in it refers to values before it: so many times its length,
/// and [`READ_AGAIN_FREE`] whatever its length. Each `any` holds a copy of its own of what it refers to, in at most
/// three bytes for each byte read. Default and only value.
pub const READ_AGAIN_MAX: usize = 8;
/// Bytes; see [`READ_AGAIN_MAX`].
pub const READ_AGAIN_FREE: usize = 64 << 10;

/// A value whose state is being copied: what ends it on both sides.
pub(super) type OpenCopy = (ValueHeader, OpenValue);

/// Type information that stands for many values.
pub(super) struct TypeInfo {
    /// The types of the ids that the environment knows.
    known: Vec<Option<TypeRef<'static>>>,
    /// Where the ids were written, from which on.
    written: BTreeMap<usize, WrittenIds>,
}

/// Where values start that were copied: in what is read, and in what has been written.
#[derive(Default)]
pub(super) struct Places {
    /// In ascending order.
    in_order: Vec<(usize, usize)>,
    /// Those that came when later ones had.
    late: BTreeMap<usize, usize>,
}

impl Places {
    fn get(&self, read: usize) -> Option<usize> {
        match self.in_order.binary_search_by_key(&read, |(read, _)| *read) {
            Ok(index) => self.in_order.get(index).map(|(_, written)| *written),
            Err(_) => self.late.get(&read).copied(),
        }
    }

    fn insert(&mut self, read: usize, written: usize) {
        if self.in_order.last().is_none_or(|(last, _)| *last < read) {
            self.in_order.push((read, written));
        } else {
            self.late.insert(read, written);
        }
    }
}

/// The type as which a value is copied.
struct Actual<'a> {
    ty: TypeRef<'a>,
    /// Which of the value's ids is the first that is written.
    index: usize,
}

impl Copy<'_> {
    /// Begins to copy a value whose formal type is this one, if it is known.
    pub(super) fn begin_value<'a>(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        formal: Option<TypeRef<'a>>,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        self.paid += LENGTH_BYTES;
        let mut header = match r.begin_value()? {
            ValueStart::Null => {
                w.write_null_value();
                return Ok(());
            }
            ValueStart::Indirection(position) => match self.values.get(position) {
                Some(written) => return Ok(w.write_value_indirection(written)?),
                None => return self.begin_outside(r, w, position, formal, work),
            },
            ValueStart::Value(header) => header,
        };
        if self.outside > 0
            && let Some(written) = self.values.get(header.position)
        {
            // Something in it led to what it is in.
            self.start += r.pass_value(header)?;
            return Ok(w.write_value_indirection(written)?);
        }
        self.environment_needed = true;
        // Not for as long as the value is open: lists of values are long.
        let ids = std::mem::take(&mut header.ids);
        let Actual { ty, index } = self.actual(r, &ids, &header, formal)?;
        let mut shape = ty.resolved_shape().1;
        if let (0, Shape::Value { modifier: ValueModifier::Custom, .. }) = (index, &shape) {
            if self.outside > 0 && r.values().is_in_graph() {
                return Err(r.malformed(MalformedKind::TooDeep).into()); // it would be read for each who refers to it
            }
            // Only the program knows what is in its state, so it becomes a value for the moment.
            let value = r.value_again(header)?;
            return Ok(w.put(&Some(value))?);
        }
        let own_id = shape.id_and_name().map_or("", |(id, _)| id);
        let open = self.write_header(r, w, &ids, index, own_id)?;
        self.values.insert(header.position, open.position());
        work.push(Frame::Value((header, open)));
        loop {
            match shape {
                Shape::Value { modifier: ValueModifier::Custom, .. } => {
                    return Err(r.malformed(MalformedKind::NoValueFactory).into());
                }
                Shape::Value { base, members, .. } => {
                    // The list of work is worked off from its end: the state of bases comes first.
                    work.push(Frame::Members { members, next: 0 });
                    let Some(base) = base else { return Ok(()) };
                    self.step(r)?;
                    shape = base.resolved_shape().1;
                }
                Shape::ValueBox { content, .. } => {
                    work.push(Frame::Elements { element: content, left: 1 });
                    return Ok(());
                }
                _ => return Err(r.malformed(MalformedKind::WrongValueType).into()),
            }
        }
    }

    /// The type to copy a value as.
    fn actual<'a>(
        &mut self,
        r: &mut Reader<'_>,
        ids: &ValueIds,
        header: &ValueHeader,
        formal: Option<TypeRef<'a>>,
    ) -> Result<Actual<'a>, CopyError> {
        if ids.is_empty() && self.outside > 0 {
            // What it was taken for where it stands need not be what is expected of who refers to it.
            let known = r.values().type_at(header.position);
            let ty = known.map(|info| TypeRef::Static(info.type_def)).or(formal);
            return ty.map(|ty| Actual { ty, index: 0 }).ok_or_else(|| not_known(r));
        }
        let Some(place) = ids.elsewhere() else {
            return actual_type(r, ids, header.chunked, formal);
        };
        let may_be_cut = header.chunked && truncates(r);
        let info = self.type_infos.entry(place).or_insert_with(|| TypeInfo {
            known: ids.iter().map(|id| known_type(r, id)).collect(),
            written: BTreeMap::new(),
        });
        find_actual(ids, may_be_cut, formal, |index| info.known.get(index).copied().flatten())
            .ok_or_else(|| not_known(r))
    }

    /// Writes what comes before the state of a value. Ids that were written before are not looked at again: short values
    /// can have long ones.
    fn write_header(
        &mut self,
        r: &Reader<'_>,
        w: &mut Writer<'_>,
        ids: &ValueIds,
        index: usize,
        own_id: &str,
    ) -> Result<OpenValue, CopyError> {
        let ids_from: Vec<&str>;
        match ids.get(index..) {
            // Where the sender left the id out it is that of the formal type; without one it stays out.
            None | Some([]) if own_id.is_empty() => Ok(w.begin_value(&[], false)?),
            None | Some([]) => {
                if let Some((id, written)) = &self.assumed
                    && id == own_id
                {
                    return Ok(w.begin_value_like(written)?);
                }
                if own_id.len() >= VALUE_ID_BYTES_MAX {
                    return Err(r.malformed(MalformedKind::BadTypeCode).into());
                }
                let open = w.begin_value(&[own_id], false)?;
                self.assumed = Some((own_id.to_owned(), w.written_ids(&open, &[own_id])));
                Ok(open)
            }
            Some(from) => {
                let info = ids.elsewhere().and_then(|place| self.type_infos.get_mut(&place));
                if let Some(written) = info.as_ref().and_then(|info| info.written.get(&index)) {
                    return Ok(w.begin_value_like(written)?);
                }
                ids_from = from.iter().map(|id| &**id).collect();
                let open = w.begin_value(&ids_from, false)?;
                if let Some(info) = info {
                    info.written.insert(index, w.written_ids(&open, &ids_from));
                }
                Ok(open)
            }
        }
    }

    /// Begins to copy a value that stands in the same message before what is being copied. Some ORBs have one table of
    /// values for a message, and what is in an `any` is no exception.
    fn begin_outside<'a>(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        position: usize,
        formal: Option<TypeRef<'a>>,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        // Never from within what is itself read apart: it could lead to what is around it, time and again.
        if r.values().custom_depth > 0 {
            return Err(r.malformed(MalformedKind::TooDeep).into());
        }
        self.end_stretch(r)?;
        let bookmark = r.go_back_to_value(position)?;
        self.start = r.position();
        self.outside += 1;
        work.push(Frame::Outside(Box::new(bookmark)));
        self.begin_value(r, w, formal, work)
    }

    pub(super) fn end_outside(&mut self, r: &mut Reader<'_>, bookmark: &Bookmark) -> Result<(), Malformed> {
        self.end_stretch(r)?;
        r.return_to(bookmark);
        self.start = r.position();
        self.outside -= 1;
        Ok(())
    }

    /// Counts what was read since the reader was last elsewhere.
    fn end_stretch(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let read = r.position().saturating_sub(self.start);
        if self.outside > 0 {
            r.values().read_again += read;
            let message = r.position() + r.remaining();
            if r.values().read_again > READ_AGAIN_FREE + READ_AGAIN_MAX.saturating_mul(message) {
                return Err(r.malformed(MalformedKind::OutOfProportion));
            }
        }
        Ok(())
    }
}

/// Ends a value that has been copied. What is left of its state is cut off, or is an error where nothing may be lost.
pub(super) fn end_copied(r: &mut Reader<'_>, header: ValueHeader) -> Result<(), CopyError> {
    if truncates(r) {
        return Ok(r.end_value(header)?);
    }
    if !r.end_whole_value(header)? {
        return Err(not_known(r)); // of a type that has more members than is known here
    }
    Ok(())
}

/// The type to show a value as.
pub(crate) fn shown_type<'a>(
    r: &Reader<'_>,
    header: &ValueHeader,
    formal: Option<TypeRef<'a>>,
) -> Result<TypeRef<'a>, CopyError> {
    actual_type(r, &header.ids, header.chunked, formal).map(|actual| actual.ty)
}

fn actual_type<'a>(
    r: &Reader<'_>,
    ids: &ValueIds,
    chunked: bool,
    formal: Option<TypeRef<'a>>,
) -> Result<Actual<'a>, CopyError> {
    let may_be_cut = chunked && truncates(r);
    find_actual(ids, may_be_cut, formal, |index| known_type(r, ids.get(index)?)).ok_or_else(|| not_known(r))
}

fn find_actual<'a>(
    ids: &ValueIds,
    may_be_cut: bool,
    formal: Option<TypeRef<'a>>,
    known: impl Fn(usize) -> Option<TypeRef<'static>>,
) -> Option<Actual<'a>> {
    if ids.is_empty() {
        return Some(Actual { ty: formal?, index: 0 });
    }
    let formal = formal.and_then(|ty| Some((ty.shape().id_and_name()?.0, ty)));
    // What is left of a state that is cut short must be skipped, which only chunks allow.
    let candidates = if may_be_cut { ids.len() } else { 1 };
    ids.iter().take(candidates).enumerate().find_map(|(index, id)| {
        let ty = match formal {
            Some((formal_id, ty)) if formal_id == &**id => {
                with_base(ty, index + 1 < ids.len(), || known(index))?
            }
            _ => known(index)?,
        };
        Some(Actual { ty, index })
    })
}

/// The type that is known by the same id, where it has a base and this one, which has arrived, has none: JacORB 3.9
/// leaves bases out of TypeCodes, and not out of states. `None` where the value has bases (it says what it may be cut
/// to) and nobody knows them.
fn with_base<'a>(
    ty: TypeRef<'a>,
    has_bases: bool,
    known: impl FnOnce() -> Option<TypeRef<'static>>,
) -> Option<TypeRef<'a>> {
    let lacks_base =
        !matches!(ty, TypeRef::Static(_)) && matches!(ty.resolved_shape().1, Shape::Value { base: None, .. });
    if !lacks_base {
        return Some(ty);
    }
    match known() {
        Some(known) if matches!(known.resolved_shape().1, Shape::Value { base: Some(_), .. }) => Some(known),
        None if has_bases => None,
        _ => Some(ty),
    }
}

fn known_type(r: &Reader<'_>, id: &str) -> Option<TypeRef<'static>> {
    let environment = r.environment()?;
    match environment.value_factory(id) {
        Some(factory) => Some(TypeRef::Static(factory.info().type_def)),
        None => environment.value_type(id).map(TypeCode::as_type_ref),
    }
}

fn truncates(r: &Reader<'_>) -> bool {
    r.environment().is_none_or(|environment| environment.truncates_values())
}

#[cold]
fn not_known(r: &Reader<'_>) -> CopyError {
    r.malformed(MalformedKind::NoValueFactory).into()
}
