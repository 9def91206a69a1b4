//! Valuetypes, copied with their graphs: nulls, sharing and cycles stay what they are; ids, chunks and the lists of
//! what a value may be truncated to are written as the value needs them.
//!
//! A value that is of a derived type is copied as that type if the environment knows it, else as the first base in its
//! list that is known, if its sender allows that.

use super::{Copy, CopyError, Frame};
use crate::cdr::{Reader, Writer};
use crate::error::MalformedKind;
use crate::typecode::{Shape, TypeRef, ValueModifier};
use crate::value::{CUSTOM_VALUES_DEEP, OpenValue, REREAD_MAX, ValueHeader, ValueStart};

/// A value whose state is being copied: what ends it on both sides.
pub(super) type OpenCopy<'r> = (ValueHeader<'r>, OpenValue);

impl Copy<'_> {
    /// Begins to copy a value whose formal type is this one, if it is known.
    pub(super) fn begin_value<'a, 'r>(
        &mut self,
        r: &mut Reader<'r>,
        w: &mut Writer<'_>,
        formal: Option<TypeRef<'a>>,
        work: &mut Vec<Frame<'a, 'r>>,
    ) -> Result<(), CopyError> {
        let header = match r.begin_value()? {
            ValueStart::Null => {
                w.write_null_value();
                return Ok(());
            }
            ValueStart::Indirection(position) => match self.values.get(&position) {
                Some(&written) => return Ok(w.write_value_indirection(written)?),
                None => return self.outside_value(r, w, position, formal),
            },
            ValueStart::Value(header) => header,
        };
        self.environment_needed = true;
        let (index, ty) = actual_type(r, &header, formal)?;
        let mut shape = ty.resolved_shape().1;
        if let (0, Shape::Value { modifier: ValueModifier::Custom, .. }) = (index, &shape) {
            // Only the program knows what is in its state, so it becomes a value for the moment.
            let value = r.value_again(header)?;
            return Ok(w.put(&Some(value))?);
        }
        let own_id = shape.id_and_name().map_or("", |(id, _)| id);
        let open = match &header.ids[index..] {
            [id] => w.begin_value(&[id], false)?,
            // Where the sender left the id out it is that of the formal type; without one it stays out.
            [] if own_id.is_empty() => w.begin_value(&[], false)?,
            [] => w.begin_value(&[own_id], false)?,
            ids => w.begin_value(&ids.iter().map(|id| &**id).collect::<Vec<_>>(), false)?,
        };
        self.values.insert(header.position, open.position());
        work.push(Frame::Value(Box::new((header, open))));
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

    /// Copies a value that stands in the same message before what is being copied.
    fn outside_value(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        position: usize,
        formal: Option<TypeRef<'_>>,
    ) -> Result<(), CopyError> {
        // Never from within what is itself read apart: it could lead to what is around it, time and again.
        if r.values().custom_depth > 0 {
            return Err(r.malformed(MalformedKind::TooDeep).into());
        }
        let mut back = r.reader_at_value(position)?;
        back.values().custom_depth = CUSTOM_VALUES_DEEP;
        let from = back.position();
        super::nested(r, |_| match formal {
            Some(formal) => self.value(&mut back, w, formal),
            None => Err(back.malformed(MalformedKind::BadIndirection).into()),
        })?;
        // Many short values may refer to one that is long; in all they may take some times the message.
        let taken = back.position().saturating_sub(from);
        r.values().copied_again += taken;
        if r.values().copied_again > REREAD_MAX.saturating_mul(r.position() + r.remaining()) {
            return Err(r.malformed(MalformedKind::OutOfProportion).into());
        }
        Ok(())
    }
}

/// The type to copy a value as, and the place of its id in the value's list.
pub(in crate::any) fn actual_type<'a>(
    r: &Reader<'_>,
    header: &ValueHeader<'_>,
    formal: Option<TypeRef<'a>>,
) -> Result<(usize, TypeRef<'a>), CopyError> {
    let formal_id = formal.and_then(|ty| ty.shape().id_and_name()).map(|(id, _)| id);
    if let (Some(formal), true) = (formal, header.ids.is_empty()) {
        return Ok((0, formal));
    }
    for (index, id) in header.ids.iter().enumerate() {
        let known = match formal {
            Some(formal) if formal_id == Some(id) => Some(formal),
            _ => r
                .environment()
                .and_then(|environment| environment.value_factory(id))
                .map(|factory| TypeRef::Static(factory.info().type_def)),
        };
        match known {
            // What is left of a state that is cut short must be skipped, which only chunks allow.
            Some(known) if index == 0 || header.chunked => return Ok((index, known)),
            _ => {}
        }
    }
    Err(r.malformed(MalformedKind::NoValueFactory).into())
}
