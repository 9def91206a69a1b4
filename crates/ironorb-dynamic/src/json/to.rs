//! Converts values to JSON.

use std::collections::{BTreeMap, BTreeSet};

use ironorb::giop::{Ior, Malformed, Reader};
use ironorb::{Any, LongDouble, TcKind, TypeCode};
use serde_json::{Map, Value};

use super::error::JsonError;
use super::numbers::{double_to, float_to, long_double_to, read_fixed, signed_to, unsigned_to};
use super::types::TypesTo;
use super::{BYTES_FREE, BYTES_PER_BYTE, DEPTH_MAX, base64};
use crate::Interfaces;

/// Converts a value to JSON, by the rules of [this module](super). TypeCodes in the value are described in
/// full.
///
/// Fails for values that are nested too deeply, whose names are out of proportion to their contents, that are
/// custom valuetypes, or that are valuetypes of unknown types.
pub fn to_json(any: &Any) -> Result<Value, JsonError> {
    to_json_with(any, &Interfaces::new())
}

/// Converts a value to JSON, by the rules of [this module](super), with known types. TypeCodes in the value
/// that are known are given by their repository ids. Values of known types are converted where one of their
/// bases is expected.
pub fn to_json_with(any: &Any, known: &Interfaces) -> Result<Value, JsonError> {
    let bytes = any.reader().remaining();
    let mut writer = JsonWriter::of_bytes(known, bytes, &BTreeSet::new());
    let json = writer.whole(any)?;
    if writer.met_again.is_empty() {
        return Ok(json);
    }
    // A second pass, now that the values that need a number are known.
    JsonWriter::of_bytes(known, bytes, &writer.met_again).whole(any)
}

pub(super) struct JsonWriter<'k> {
    pub(super) known: &'k Interfaces,
    /// Whether missing types are asked of repositories, which blocks.
    pub(super) asks: bool,
    /// Bytes that the JSON may still take.
    left: usize,
    depth: usize,
    /// The offsets of values that occur again.
    pub(super) met_again: BTreeSet<usize>,
    /// The numbers of these values, in the second pass.
    pub(super) numbers: BTreeMap<usize, u64>,
}

impl<'k> JsonWriter<'k> {
    /// A converter for a value of so many bytes. The values at the offsets in `numbered` get numbers.
    pub(super) fn of_bytes(known: &'k Interfaces, bytes: usize, numbered: &BTreeSet<usize>) -> Self {
        let left = BYTES_FREE + BYTES_PER_BYTE.saturating_mul(bytes);
        let numbers = numbered.iter().zip(1..).map(|(position, number)| (*position, number)).collect();
        JsonWriter { known, asks: false, left, depth: 0, met_again: BTreeSet::new(), numbers }
    }

    fn whole(&mut self, any: &Any) -> Result<Value, JsonError> {
        let ty = any.type_code().resolved();
        let mut r = any.reader();
        match ty.kind() {
            // The reader has passed the repository id.
            TcKind::Except => self.structure(&mut r, &ty),
            _ => self.value(&mut r, &ty),
        }
    }

    pub(super) fn value(&mut self, r: &mut Reader<'_>, ty: &TypeCode) -> Result<Value, JsonError> {
        let ty = ty.resolved();
        Ok(match ty.kind() {
            TcKind::Null | TcKind::Void => Value::Null,
            TcKind::Boolean => r.read_bool().map_err(damaged)?.into(),
            TcKind::Octet => r.read_u8().map_err(damaged)?.into(),
            TcKind::Short => r.read_i16().map_err(damaged)?.into(),
            TcKind::UShort => r.read_u16().map_err(damaged)?.into(),
            TcKind::Long => r.read_i32().map_err(damaged)?.into(),
            TcKind::ULong => r.read_u32().map_err(damaged)?.into(),
            TcKind::LongLong => signed_to(r.read_i64().map_err(damaged)?),
            TcKind::ULongLong => unsigned_to(r.read_u64().map_err(damaged)?),
            TcKind::Float => float_to(r.read_f32().map_err(damaged)?),
            TcKind::Double => double_to(r.read_f64().map_err(damaged)?),
            TcKind::LongDouble => long_double_to(r.get::<LongDouble>().map_err(damaged)?),
            TcKind::Char => char::from(r.read_u8().map_err(damaged)?).to_string().into(),
            TcKind::WChar => r.read_wchar().map_err(damaged)?.to_string().into(),
            TcKind::String => r.read_str().map_err(damaged)?.into_owned().into(),
            TcKind::WString => r.read_wstr().map_err(damaged)?.into(),
            TcKind::Fixed => match read_fixed(r, &ty).map_err(damaged)? {
                Some(number) => number.to_string().into(),
                None => return Err(JsonError::new("the value is no decimal number")),
            },
            TcKind::Enum => {
                let ordinal = r.read_u32().map_err(damaged)?;
                match ty.member_name(ordinal) {
                    Ok(name) if !name.is_empty() => name.into(),
                    _ => ordinal.into(),
                }
            }
            TcKind::Principal => base64::encode(r.read_octets().map_err(damaged)?).into(),
            TcKind::TypeCode => {
                let type_code = r.get::<TypeCode>().map_err(damaged)?;
                self.type_code(&type_code)?
            }
            TcKind::Any => self.any(r)?,
            TcKind::Struct => self.structure(r, &ty)?,
            TcKind::Except => {
                r.read_str().map_err(damaged)?;
                self.structure(r, &ty)?
            }
            TcKind::Union => self.union(r, &ty)?,
            TcKind::Sequence => self.sequence(r, &ty)?,
            TcKind::Array => {
                let length = ty.length().unwrap_or(0);
                self.elements(r, &ty, length)?
            }
            TcKind::ObjRef | TcKind::Component | TcKind::Home => self.reference(r)?,
            TcKind::AbstractInterface => match r.read_bool().map_err(damaged)? {
                true => self.reference(r)?,
                false => self.state(r, None)?,
            },
            TcKind::Value | TcKind::ValueBox | TcKind::Event => self.state(r, Some(&ty))?,
            kind @ (TcKind::Native | TcKind::LocalInterface | TcKind::Alias) => {
                return Err(JsonError::new(format!("a type of kind {kind:?} has no values")));
            }
        })
    }

    fn reference(&mut self, r: &mut Reader<'_>) -> Result<Value, JsonError> {
        let ior = r.get::<Ior>().map_err(damaged)?;
        Ok(if ior.is_nil() { Value::Null } else { ior.to_string().into() })
    }

    fn any(&mut self, r: &mut Reader<'_>) -> Result<Value, JsonError> {
        let type_code = r.get::<TypeCode>().map_err(damaged)?;
        if type_code.kind() == TcKind::Null {
            return Ok(Value::Null);
        }
        self.nested(|writer| {
            let mut map = Map::new();
            let ty = writer.type_code(&type_code).map_err(|error| error.in_member("type"))?;
            map.insert("type".to_owned(), ty);
            let value = writer.value(r, &type_code).map_err(|error| error.in_member("value"))?;
            map.insert("value".to_owned(), value);
            Ok(Value::Object(map))
        })
    }

    fn type_code(&mut self, type_code: &TypeCode) -> Result<Value, JsonError> {
        let mut types = TypesTo::new(self.known, self.left, self.depth);
        let json = types.describe(type_code)?;
        self.left = types.left();
        Ok(json)
    }

    fn structure(&mut self, r: &mut Reader<'_>, ty: &TypeCode) -> Result<Value, JsonError> {
        self.nested(|writer| {
            let mut map = Map::new();
            writer.members(r, ty, &mut map)?;
            Ok(Value::Object(map))
        })
    }

    pub(super) fn members(
        &mut self,
        r: &mut Reader<'_>,
        ty: &TypeCode,
        map: &mut Map<String, Value>,
    ) -> Result<(), JsonError> {
        for index in 0..ty.member_count().unwrap_or(0) {
            let name = ty.member_name(index).unwrap_or_default();
            self.spend(name.len())?;
            let member = ty.member_type(index).unwrap_or_default();
            let value = self.value(r, &member).map_err(|error| error.in_member(name))?;
            map.insert(key(name, index, |key| map.contains_key(key)), value);
        }
        Ok(())
    }

    fn union(&mut self, r: &mut Reader<'_>, ty: &TypeCode) -> Result<Value, JsonError> {
        // Finding the case takes a step for each member.
        self.spend(ty.member_count().unwrap_or(0) as usize)?;
        self.nested(|writer| {
            let discriminator = ty.discriminator_type().unwrap_or_default().resolved();
            let label = read_label(&mut r.clone(), &discriminator).map_err(damaged)?;
            let mut map = Map::new();
            map.insert(DISCRIMINATOR.to_owned(), writer.value(r, &discriminator)?);
            if let Some(index) = case_of(ty, label) {
                let name = ty.member_name(index).unwrap_or_default();
                writer.spend(name.len())?;
                let member = ty.member_type(index).unwrap_or_default();
                let value = writer.value(r, &member).map_err(|error| error.in_member(name))?;
                map.insert(key(name, index, |key| key == DISCRIMINATOR), value);
            }
            Ok(Value::Object(map))
        })
    }

    fn sequence(&mut self, r: &mut Reader<'_>, ty: &TypeCode) -> Result<Value, JsonError> {
        if is_octet(&ty.content_type().unwrap_or_default()) {
            return Ok(base64::encode(r.read_octets().map_err(damaged)?).into());
        }
        let length = r.read_u32().map_err(damaged)?;
        self.elements(r, ty, length)
    }

    fn elements(&mut self, r: &mut Reader<'_>, ty: &TypeCode, length: u32) -> Result<Value, JsonError> {
        let element = ty.content_type().unwrap_or_default().resolved();
        self.nested(|writer| {
            let mut array = Vec::new();
            for index in 0..length as usize {
                writer.spend(1)?;
                array.push(writer.value(r, &element).map_err(|error| error.in_element(index))?);
            }
            Ok(Value::Array(array))
        })
    }

    /// Calls `body` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, JsonError>,
    ) -> Result<T, JsonError> {
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    /// Counts a name of so many bytes with its value, or an element.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), JsonError> {
        spend(&mut self.left, bytes)
    }
}

/// Bytes that a name or element takes besides its text.
const OVERHEAD: usize = 8;

pub(super) fn spend(left: &mut usize, bytes: usize) -> Result<(), JsonError> {
    *left = left
        .checked_sub(bytes + OVERHEAD)
        .ok_or_else(|| JsonError::new("its JSON would be out of proportion to the value"))?;
    Ok(())
}

pub(super) const DISCRIMINATOR: &str = "discriminator";

#[cold]
pub(super) fn too_deep() -> JsonError {
    JsonError::new(format!("nested deeper than {DEPTH_MAX} levels"))
}

#[cold]
pub(super) fn damaged(error: Malformed) -> JsonError {
    JsonError::new(format!("the value is not of its type: {error}"))
}

/// The key of a member: its name; with its index if it has no name or a name that is taken.
pub(super) fn key(name: &str, index: u32, is_taken: impl Fn(&str) -> bool) -> String {
    if name.is_empty() || is_taken(name) { format!("{name}#{index}") } else { name.to_owned() }
}

pub(super) fn is_octet(ty: &TypeCode) -> bool {
    ty.resolved().kind() == TcKind::Octet
}

/// The case that a label selects.
pub(super) fn case_of(ty: &TypeCode, label: i64) -> Option<u32> {
    let is_meant = |index: &u32| ty.member_label(*index) == Ok(Some(label));
    (0..ty.member_count().unwrap_or(0)).find(is_meant).or(ty.default_index().ok().flatten())
}

/// Reads a discriminator as a number, as TypeCodes have it.
fn read_label(r: &mut Reader<'_>, ty: &TypeCode) -> Result<i64, Malformed> {
    Ok(match ty.kind() {
        TcKind::Boolean => i64::from(r.read_bool()?),
        TcKind::Char | TcKind::Octet => i64::from(r.read_u8()?),
        TcKind::WChar => i64::from(u32::from(r.read_wchar()?)),
        TcKind::Short => i64::from(r.read_i16()?),
        TcKind::UShort => i64::from(r.read_u16()?),
        TcKind::Long => i64::from(r.read_i32()?),
        TcKind::LongLong | TcKind::ULongLong => r.read_i64()?,
        _ => i64::from(r.read_u32()?),
    })
}
