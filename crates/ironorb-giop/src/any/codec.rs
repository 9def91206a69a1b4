//! An `any` on the wire: its TypeCode, then its value (CORBA 3.3 part 2, 9.3.4.4).

use super::content::Content;
use super::copy::{Copy, CopyError};
use super::{Any, CANONICAL};
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::probe::{self, Stage};
use crate::typecode::{Shape, TcKind, TypeCode};

impl Marshal for Any {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.type_code)?;
        write_value(self, w)
    }
}

impl Unmarshal for Any {
    const BYTES_MIN: usize = 4;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let type_code = r.get()?;
        read_value(type_code, r)
    }
}

/// Reads a value.
pub(super) fn read_value(type_code: TypeCode, r: &mut Reader<'_>) -> Result<Any, Malformed> {
    let _probe = probe::enter(Stage::Demarshal);
    if let Some(content) = read_number(&type_code, r)? {
        return Ok(Any { type_code, content });
    }
    let mut bytes = Vec::with_capacity(64);
    let mut copy = Copy::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    copy.value(r, &mut w, type_code.as_type_ref()).map_err(|error| match error {
        CopyError::Malformed(error) => error,
        CopyError::Misuse(Misuse::TooDeep) => r.malformed(MalformedKind::TooDeep),
        // Values that cannot be written to memory are of a type that has no values on the wire.
        CopyError::Misuse(_) => r.malformed(MalformedKind::BadTypeCode),
    })?;
    let environment = if copy.environment_needed {
        r.environment().and_then(|environment| environment.share())
    } else {
        None
    };
    Ok(Any { type_code, content: Content::new(bytes, environment) })
}

/// Reads a number by a short path, because most properties are numbers.
fn read_number(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<Option<Content>, Malformed> {
    let Shape::Basic(kind) = type_code.as_type_ref().resolved().shape() else { return Ok(None) };
    Ok(Some(match kind {
        TcKind::Octet | TcKind::Char => Content::few([r.read_u8()?]),
        TcKind::Boolean => Content::few([u8::from(r.read_bool()?)]),
        TcKind::Short | TcKind::UShort => Content::few(r.read_u16()?.to_ne_bytes()),
        TcKind::Long | TcKind::ULong | TcKind::Float => Content::few(r.read_u32()?.to_ne_bytes()),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => Content::few(r.read_u64()?.to_ne_bytes()),
        _ => return Ok(None),
    }))
}

pub(super) fn write_value(any: &Any, w: &mut Writer<'_>) -> Result<(), Misuse> {
    if let Some(environment) = any.content.environment() {
        w.note_stored_environment(environment);
    }
    // Values inside chunked values must be chunked too. Nothing else depends on the surrounding data.
    if w.encoding() == CANONICAL && w.position().is_multiple_of(8) && !w.is_in_chunked_value() {
        w.write_encoded(&any.content);
        return Ok(());
    }
    // The budget limits the work for values of peers. This value has been checked already.
    let mut copy = Copy::trusted();
    copy.value(&mut any.raw_reader(), w, any.type_code.as_type_ref()).map_err(|error| match error {
        CopyError::Misuse(error) => error,
        CopyError::Malformed(error) if error.kind == MalformedKind::TooDeep => Misuse::TooDeep,
        CopyError::Malformed(_) => Misuse::WrongType,
    })
}
