//! TypeCodes to bytes (CORBA 3.3 part 2, 9.3.5.1).

use std::collections::HashMap;

use super::node::{Members, Shape, TypeKey, TypeRef};
use super::{TcKind, TypeCode};
use crate::cdr::{Marshal, NESTING_MAX, Writer};
use crate::error::Misuse;

impl Marshal for TypeCode {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        write_type(w, self.as_type_ref())
    }
}

/// Appends a TypeCode. A repeated type becomes an indirection to its first position, so the bytes are
/// proportional to the types and not to the paths through them.
pub(crate) fn write_type(w: &mut Writer<'_>, ty: TypeRef<'_>) -> Result<(), Misuse> {
    match ty.shape() {
        // Most values have such a type, and it needs no table, not even an empty one.
        Shape::Basic(kind) => w.write_u32(kind.number()),
        Shape::String { bound } | Shape::WString { bound } => {
            w.write_u32(ty.kind().number());
            w.write_u32(bound);
        }
        _ => Writing::default().write(w, ty, 0)?,
    }
    Ok(())
}

/// Precedes the offset of an indirection, in place of a kind.
pub(super) const INDIRECTION: u32 = u32::MAX;

#[derive(Default)]
struct Writing {
    /// Where the kinds of types with parameters have been written, from the start of the outermost stream.
    seen: HashMap<TypeKey, usize>,
    depth: u16,
}

impl Writing {
    /// `base` is the writer's position 0 in the outermost stream.
    fn write(&mut self, w: &mut Writer<'_>, ty: TypeRef<'_>, base: usize) -> Result<(), Misuse> {
        let shape = ty.shape();
        match shape {
            Shape::Basic(kind) => {
                w.write_u32(kind.number());
                return Ok(());
            }
            Shape::String { bound } | Shape::WString { bound } => {
                w.write_u32(shape.kind().number());
                w.write_u32(bound);
                return Ok(());
            }
            Shape::Fixed { digits, scale } => {
                w.write_u32(TcKind::Fixed.number());
                w.write_u16(digits);
                w.write_i16(scale);
                return Ok(());
            }
            Shape::Placeholder { .. } => return Err(Misuse::BadTypeCode),
            _ => {}
        }
        w.align(4);
        let at = base + w.position();
        if let Some(first) = self.seen.get(&ty.key()) {
            // The offset counts from its own position, and is never positive.
            let back = i32::try_from(at + 4 - first).map_err(|_| Misuse::TooLong)?;
            w.write_u32(INDIRECTION);
            w.write_i32(-back);
            return Ok(());
        }
        self.seen.insert(ty.key(), at);
        if self.depth >= NESTING_MAX {
            return Err(Misuse::TooDeep);
        }
        self.depth += 1;
        w.write_u32(shape.kind().number());
        let base = at + 8; // the kind and the encapsulation's length
        w.write_encapsulation(|w| self.parameters(w, shape, base))?;
        self.depth -= 1;
        Ok(())
    }

    fn parameters(&mut self, w: &mut Writer<'_>, shape: Shape<'_>, base: usize) -> Result<(), Misuse> {
        if let Some((id, name)) = shape.id_and_name() {
            write_name(w, id)?;
            write_name(w, name)?;
        }
        match shape {
            Shape::Sequence { element, bound: number } | Shape::Array { element, length: number } => {
                self.write(w, element, base)?;
                w.write_u32(number);
            }
            Shape::Alias { original: content, .. } | Shape::ValueBox { content, .. } => {
                self.write(w, content, base)?;
            }
            Shape::Enum { enumerators, .. } => {
                w.write_length(enumerators.len())?;
                for index in 0..enumerators.len() {
                    write_name(w, enumerators.get(index).unwrap_or_default())?;
                }
            }
            Shape::Struct { members, .. } => {
                self.members(w, members, base, |_, _| Ok(()), |_, _| Ok(()))?;
            }
            Shape::Union { discriminator, default, cases, .. } => {
                self.write(w, discriminator, base)?;
                w.write_i32(default.map_or(-1, |index| index as i32));
                let kind = discriminator.resolved().kind();
                let label = |w: &mut Writer<'_>, index| {
                    // The default case has a label of the right size without a meaning.
                    let label = if default == Some(index as u32) { 0 } else { cases.label(index) };
                    write_label(w, kind, label)
                };
                self.members(w, cases, base, label, |_, _| Ok(()))?;
            }
            Shape::Value { modifier, base: base_type, members, .. } => {
                w.write_i16(modifier.number());
                match base_type {
                    Some(base_type) => self.write(w, base_type, base)?,
                    None => w.write_u32(TcKind::Null.number()),
                }
                let visibility = |w: &mut Writer<'_>, index| {
                    w.write_i16(members.visibility(index) as i16);
                    Ok(())
                };
                self.members(w, members, base, |_, _| Ok(()), visibility)?;
            }
            _ => {} // only an id and a name
        }
        Ok(())
    }

    fn members(
        &mut self,
        w: &mut Writer<'_>,
        members: Members<'_>,
        base: usize,
        before: impl Fn(&mut Writer<'_>, usize) -> Result<(), Misuse>,
        after: impl Fn(&mut Writer<'_>, usize) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        w.write_length(members.len())?;
        for (index, (name, member)) in members.iter().enumerate() {
            before(w, index)?;
            write_name(w, name)?;
            self.write(w, member, base)?;
            after(w, index)?;
        }
        Ok(())
    }
}

/// Ids and names are text of an encapsulation, for which no code set is negotiated. In practice they are
/// ASCII. Other text is sent as UTF-8.
fn write_name(w: &mut Writer<'_>, name: &str) -> Result<(), Misuse> {
    if name.as_bytes().contains(&0) {
        return Err(Misuse::StringHoldsNul);
    }
    w.write_length(name.len() + 1)?;
    w.write_bytes(name.as_bytes());
    w.write_u8(0);
    Ok(())
}

/// A label as a value of the discriminator's type.
fn write_label(w: &mut Writer<'_>, kind: TcKind, label: i64) -> Result<(), Misuse> {
    match kind {
        TcKind::Boolean | TcKind::Char | TcKind::Octet => w.write_u8(label as u8),
        TcKind::Short | TcKind::UShort => w.write_u16(label as u16),
        TcKind::Long | TcKind::ULong | TcKind::Enum => w.write_u32(label as u32),
        TcKind::LongLong | TcKind::ULongLong => w.write_i64(label),
        TcKind::WChar => {
            let c = u32::try_from(label).ok().and_then(char::from_u32).ok_or(Misuse::BadTypeCode)?;
            w.write_wchar(c)?;
        }
        _ => return Err(Misuse::BadTypeCode),
    }
    Ok(())
}
