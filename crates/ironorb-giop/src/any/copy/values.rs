//! Copies valuetypes with their graphs. Nulls, sharing and cycles are kept. Ids, chunks and the lists of
//! bases to which a value may be truncated are written as the value needs them.
//!
//! A value of a derived type is copied as that type if the environment knows it. Else it is copied as the
//! first known base in its list, if its sender and the environment allow that.

use std::collections::BTreeMap;

use super::{Copy, CopyError, Frame, LENGTH_BYTES};
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind};
use crate::typecode::{Shape, TypeCode, TypeRef, ValueModifier};
use crate::value::{Bookmark, OpenValue, VALUE_ID_BYTES_MAX, ValueHeader, ValueIds, ValueStart, WrittenIds};

/// Limit on the bytes of a message that are read again because an `any` in it refers to values before it:
/// this factor times the length of the message, plus [`READ_AGAIN_FREE`] bytes. Each `any` holds its own copy
/// of the values that it refers to, in at most three bytes for each byte read. Default and only value.
pub const READ_AGAIN_MAX: usize = 8;
/// The fixed part of the limit in bytes; see [`READ_AGAIN_MAX`].
pub const READ_AGAIN_FREE: usize = 64 << 10;

/// A value whose state is being copied: the data needed to end it in the reader and in the writer.
pub(super) type OpenCopy = (ValueHeader, OpenValue);

/// Type information that several values share.
pub(super) struct TypeInfo {
    /// The types of the ids that the environment knows.
    known: Vec<Option<TypeRef<'static>>>,
    /// Where the ids were written, by the index of the first id.
    written: BTreeMap<usize, WrittenIds>,
}

/// Start positions of copied values, in the input and in the output.
#[derive(Default)]
pub(super) struct Places {
    /// Positions in ascending order.
    in_order: Vec<(usize, usize)>,
    /// Positions that were added after greater ones.
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
    /// Index of the first of the value's ids that is written.
    index: usize,
}

impl Copy<'_> {
    /// Begins to copy a value of this formal type, if the type is known.
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
            // A member of the value has led to the value itself.
            self.start += r.pass_value(header)?;
            return Ok(w.write_value_indirection(written)?);
        }
        self.environment_needed = true;
        // The ids are dropped while the value is open, because linked lists of values are long.
        let ids = std::mem::take(&mut header.ids);
        let Actual { ty, index } = self.actual(r, &ids, &header, formal)?;
        let mut shape = ty.resolved_shape().1;
        if let (0, Shape::Value { modifier: ValueModifier::Custom, .. }) = (index, &shape) {
            if self.outside > 0 && r.values().is_in_graph() {
                return Err(r.malformed(MalformedKind::TooDeep).into()); // each reference to it would read it again
            }
            // Only the program can read its state, so it becomes a value in memory for the moment.
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
                    // The list of work is processed from its end, so that the state of bases comes first.
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

    /// The type as which a value is copied.
    fn actual<'a>(
        &mut self,
        r: &mut Reader<'_>,
        ids: &ValueIds,
        header: &ValueHeader,
        formal: Option<TypeRef<'a>>,
    ) -> Result<Actual<'a>, CopyError> {
        if ids.is_empty() && self.outside > 0 {
            // The formal type at the value's own position may differ from the formal type at the reference to
            // it.
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

    /// Writes the header before the state of a value. Refers to ids that were written before without reading
    /// them again, because short values can have long ids.
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
            // An id that the sender has left out is that of the formal type. If that type has no id, none is
            // written.
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

    /// Begins to copy a value that stands in the same message before the copied value. Some ORBs have one
    /// table of values for a message, and it includes the values in an `any`.
    fn begin_outside<'a>(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        position: usize,
        formal: Option<TypeRef<'a>>,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        // Not from within a custom value, which is read apart: it could lead to an enclosing value again and
        // again.
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

    /// Counts the bytes read since the reader's last jump.
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

/// Ends a value that has been copied. The rest of its state is cut off, or is an error where nothing may be
/// lost.
pub(super) fn end_copied(r: &mut Reader<'_>, header: ValueHeader) -> Result<(), CopyError> {
    if truncates(r) {
        return Ok(r.end_value(header)?);
    }
    if !r.end_whole_value(header)? {
        return Err(not_known(r)); // its type has more members than the known type
    }
    Ok(())
}

/// The type with which a value is displayed.
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
    // The rest of a truncated state must be skipped, which is possible only with chunks.
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

/// The type known by the same id, where that type has a base and the received type `ty` has none: JacORB 3.9
/// leaves bases out of TypeCodes, but not out of states. `None` where the value has bases (its ids list them)
/// and no known type has them.
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
