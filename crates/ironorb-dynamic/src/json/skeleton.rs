//! JSON for values that do not exist yet: skeletons to fill in, and defaults.

use ironorb::giop::typecode::ValueModifier;
use ironorb::{TcKind, TypeCode};
use serde_json::{Map, Value, json};

use super::DEPTH_MAX;
use super::error::JsonError;
use super::from::{case_key, label};
use super::to::{DISCRIMINATOR, case_of, is_octet, key, too_deep};
use super::values::{TYPE, line};
use crate::Interfaces;

/// A skeleton of a value of this type for the user to fill in. It has every member, and one element in each
/// sequence, so that the element's members show. A union has its first case. Recursive types end in `[]` or
/// `null`. [`from_json`](super::from_json) accepts the skeleton, except for cycles and natives. More than
/// [`PARTS_MAX`] parts are an error.
pub fn template(type_code: &TypeCode) -> Result<Value, JsonError> {
    Skeleton::new(true).value(type_code)
}

/// The JSON of a type's default value: 0, empty, false, nil, the first enumerator, the first case of a union.
/// More than [`PARTS_MAX`] parts are an error.
pub fn default_value(type_code: &TypeCode) -> Result<Value, JsonError> {
    Skeleton::new(false).value(type_code)
}

/// Adds the [defaults](default_value) of members that a JSON value leaves out, at any depth: members of
/// structs, exceptions and valuetypes, and of unions that have only a discriminator. Parts that do not fit
/// the type stay unchanged.
pub fn fill(type_code: &TypeCode, value: &mut Value, known: &Interfaces) -> Result<(), JsonError> {
    Filling { known, skeleton: Skeleton::new(false) }.value(type_code, value)
}

/// Most values within one skeleton: a few words can declare a long array. Default and only value.
pub const PARTS_MAX: usize = 1 << 16;

struct Skeleton {
    is_template: bool,
    parts_left: usize,
    depth: usize,
    /// The ids of the enclosing types.
    open: Vec<String>,
}

impl Skeleton {
    fn new(is_template: bool) -> Skeleton {
        Skeleton { is_template, parts_left: PARTS_MAX, depth: 0, open: Vec::new() }
    }

    fn value(&mut self, type_code: &TypeCode) -> Result<Value, JsonError> {
        self.parts_left = self.parts_left.checked_sub(1).ok_or_else(too_many)?;
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        let ty = type_code.resolved();
        self.depth += 1;
        self.open.push(ty.id().unwrap_or_default().to_owned());
        let value = self.of_kind(&ty);
        self.open.pop();
        self.depth -= 1;
        value
    }

    fn of_kind(&mut self, ty: &TypeCode) -> Result<Value, JsonError> {
        Ok(match ty.kind() {
            TcKind::Short | TcKind::UShort | TcKind::Long | TcKind::ULong | TcKind::Octet => json!(0),
            TcKind::LongLong | TcKind::ULongLong => json!(0),
            TcKind::Float | TcKind::Double => json!(0.0),
            TcKind::LongDouble | TcKind::Fixed => json!("0"),
            TcKind::Boolean => json!(false),
            TcKind::Char | TcKind::WChar => json!(if self.is_template { " " } else { "\0" }),
            TcKind::String | TcKind::WString | TcKind::Principal => json!(""),
            TcKind::Enum => json!(ty.member_name(0).unwrap_or_default()),
            TcKind::TypeCode => json!("null"),
            TcKind::Struct | TcKind::Except => Value::Object(self.members(ty, Map::new())?),
            TcKind::Union => self.union(ty)?,
            TcKind::Sequence => self.sequence(&ty.content_type().unwrap_or_default())?,
            TcKind::Array => self.array(ty)?,
            TcKind::Value | TcKind::Event | TcKind::ValueBox if self.is_template => self.state(ty)?,
            _ => Value::Null,
        })
    }

    fn members(
        &mut self,
        ty: &TypeCode,
        mut map: Map<String, Value>,
    ) -> Result<Map<String, Value>, JsonError> {
        for index in 0..ty.member_count().unwrap_or(0) {
            let key = key(ty.member_name(index).unwrap_or_default(), index, |key| map.contains_key(key));
            let member = ty.member_type(index).unwrap_or_default();
            let value = self.value(&member).map_err(|e| e.in_member(&key))?;
            map.insert(key, value);
        }
        Ok(map)
    }

    /// The first case, whose member implies the discriminator.
    fn union(&mut self, ty: &TypeCode) -> Result<Value, JsonError> {
        let key = case_key(ty, 0);
        let value = self.value(&ty.member_type(0).unwrap_or_default()).map_err(|e| e.in_member(&key))?;
        Ok(Value::Object(Map::from_iter([(key, value)])))
    }

    fn sequence(&mut self, element: &TypeCode) -> Result<Value, JsonError> {
        if is_octet(element) {
            return Ok(json!(""));
        }
        let is_endless = self.is_open(element);
        Ok(match self.is_template && !is_endless {
            true => Value::Array(vec![self.value(element)?]),
            false => json!([]),
        })
    }

    fn array(&mut self, ty: &TypeCode) -> Result<Value, JsonError> {
        let element = ty.content_type().unwrap_or_default();
        let length = ty.length().unwrap_or(0) as usize;
        if length > self.parts_left {
            return Err(too_many());
        }
        (0..length).map(|_| self.value(&element)).collect::<Result<_, _>>().map(Value::Array)
    }

    fn state(&mut self, ty: &TypeCode) -> Result<Value, JsonError> {
        let id = ty.id().unwrap_or_default();
        let is_inside_itself = self.open.iter().rev().skip(1).any(|open| open == id);
        let modifier = ty.type_modifier();
        if is_inside_itself || matches!(modifier, Ok(ValueModifier::Abstract | ValueModifier::Custom)) {
            return Ok(Value::Null);
        }
        let mut map = Map::from_iter([(TYPE.to_owned(), json!(id))]);
        if ty.kind() == TcKind::ValueBox {
            map.insert("value".to_owned(), self.value(&ty.content_type().unwrap_or_default())?);
            return Ok(Value::Object(map));
        }
        for ty in line(ty)?.iter().rev() {
            map = self.members(ty, map)?;
        }
        Ok(Value::Object(map))
    }

    fn is_open(&self, ty: &TypeCode) -> bool {
        let ty = ty.resolved();
        ty.id().is_ok_and(|id| !id.is_empty() && self.open.iter().any(|open| open == id))
    }
}

struct Filling<'k> {
    known: &'k Interfaces,
    skeleton: Skeleton,
}

impl Filling<'_> {
    fn value(&mut self, type_code: &TypeCode, value: &mut Value) -> Result<(), JsonError> {
        let ty = type_code.resolved();
        match (ty.kind(), value) {
            (TcKind::Struct | TcKind::Except, Value::Object(map)) => self.members(&ty, map),
            (TcKind::Union, Value::Object(map)) => self.union(&ty, map),
            (TcKind::Value | TcKind::Event, Value::Object(map)) => self.state(&ty, map),
            (TcKind::Sequence | TcKind::Array, Value::Array(elements)) => {
                let element = ty.content_type().unwrap_or_default();
                let mut elements = elements.iter_mut().enumerate();
                elements
                    .try_for_each(|(index, one)| self.value(&element, one).map_err(|e| e.in_element(index)))
            }
            _ => Ok(()),
        }
    }

    fn members(&mut self, ty: &TypeCode, map: &mut Map<String, Value>) -> Result<(), JsonError> {
        let mut seen = Vec::new();
        for index in 0..ty.member_count().unwrap_or(0) {
            let name = ty.member_name(index).unwrap_or_default();
            let key = key(name, index, |key| seen.iter().any(|seen| seen == key));
            let member = ty.member_type(index).unwrap_or_default();
            let filled = match map.get_mut(&key) {
                Some(value) => self.value(&member, value),
                None => self.skeleton.value(&member).map(|value| drop(map.insert(key.clone(), value))),
            };
            filled.map_err(|e| e.in_member(&key))?;
            seen.push(key);
        }
        Ok(())
    }

    fn union(&mut self, ty: &TypeCode, map: &mut Map<String, Value>) -> Result<(), JsonError> {
        let member = map.keys().find(|key| *key != DISCRIMINATOR).cloned();
        let switch = ty.discriminator_type().unwrap_or_default().resolved();
        let index = match (&member, map.get(DISCRIMINATOR)) {
            (Some(member), _) => (0..ty.member_count().unwrap_or(0)).find(|at| case_key(ty, *at) == *member),
            (None, Some(json)) => label(&switch, json).ok().and_then(|label| case_of(ty, label)),
            (None, None) => None,
        };
        let Some(index) = index else { return Ok(()) };
        let key = case_key(ty, index);
        let member = ty.member_type(index).unwrap_or_default();
        let filled = match map.get_mut(&key) {
            Some(value) => self.value(&member, value),
            None => self.skeleton.value(&member).map(|value| drop(map.insert(key.clone(), value))),
        };
        filled.map_err(|e| e.in_member(&key))
    }

    fn state(&mut self, formal: &TypeCode, map: &mut Map<String, Value>) -> Result<(), JsonError> {
        let ty = match map.get(TYPE).and_then(Value::as_str) {
            Some(id) if formal.id() != Ok(id) => self.known.type_code(id).map(|ty| ty.resolved()),
            _ if map.contains_key("@ref") => None,
            _ => Some(formal.clone()),
        };
        // The conversion reports an unknown type later, with its place.
        let Some(ty) = ty else { return Ok(()) };
        line(&ty)?.iter().rev().try_for_each(|ty| self.members(ty, map))
    }
}

#[cold]
fn too_many() -> JsonError {
    JsonError::new(format!("a value of this type has more than {PARTS_MAX} parts"))
}
