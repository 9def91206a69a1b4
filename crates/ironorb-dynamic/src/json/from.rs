//! Converts JSON to values.

use std::collections::{HashMap, HashSet};

use ironorb::giop::any::CANONICAL;
use ironorb::giop::{ByteOrder, Ior, Misuse, ObjectUrl, Reader, Version, Writer};
use ironorb::{Any, Orb, TcKind, TypeCode, TypeDef};
use serde_json::{Map, Value};

use super::error::JsonError;
use super::numbers::{
    char_from, double_from, float_from, integer_from, latin1_from, long_double_from, range, write_fixed,
};
use super::to::{DISCRIMINATOR, case_of, is_octet, key, too_deep};
use super::types::TypesFrom;
use super::{DEPTH_MAX, base64};
use crate::Interfaces;

/// Converts a JSON value to a value of a type, by the rules of [this module](super).
///
/// `known` provides the types that the JSON names by their ids. With an ORB, a reference may be any URL, and
/// references inside the result can be called after they are extracted. Without an ORB, references may be
/// `IOR:` and addresses. Blocks where a URL contains a name, which is resolved.
pub fn from_json(
    type_code: &TypeCode,
    json: &Value,
    known: &Interfaces,
    orb: Option<&Orb>,
) -> Result<Any, JsonError> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    // An encapsulation, which codecs read.
    w.write_bool(CANONICAL.order == ByteOrder::Little);
    let mut reader = JsonReader { known, orb, for_any: true, asks: true, depth: 0, values: HashMap::new() };
    reader.value(&mut w, type_code, json)?;
    drop(w);
    let made = match orb {
        Some(orb) => {
            orb.create_codec(Version::V1_2).decode_value(&bytes, type_code).map_err(|error| error.to_string())
        }
        None => Any::read_value(type_code.clone(), &mut Reader::at(&bytes, 1, CANONICAL))
            .map_err(|error| error.to_string()),
    };
    made.map_err(|error| JsonError::new(format!("no value that could be sent: {error}")))
}

pub(super) struct JsonReader<'a> {
    pub(super) known: &'a Interfaces,
    pub(super) orb: Option<&'a Orb>,
    /// Whether the result is an `any`, whose values must be of expected or registered types.
    pub(super) for_any: bool,
    /// Whether missing types are asked of repositories, which blocks.
    pub(super) asks: bool,
    depth: usize,
    /// The offsets of values with numbers.
    pub(super) values: HashMap<u64, usize>,
}

impl<'a> JsonReader<'a> {
    /// Converts for a message, whose values may be of any known type. No name is resolved.
    pub(super) fn for_message(known: &'a Interfaces, asks: bool) -> Self {
        JsonReader { known, orb: None, for_any: false, asks, depth: 0, values: HashMap::new() }
    }
}

impl JsonReader<'_> {
    pub(super) fn value(&mut self, w: &mut Writer<'_>, ty: &TypeCode, json: &Value) -> Result<(), JsonError> {
        let ty = ty.resolved();
        let kind = ty.kind();
        if let Some(range) = range(kind) {
            let number = integer_from(json, range)?;
            match kind {
                TcKind::Octet => w.write_u8(number as u8),
                TcKind::Short | TcKind::UShort => w.write_u16(number as u16),
                TcKind::Long | TcKind::ULong => w.write_u32(number as u32),
                _ => w.write_u64(number as u64),
            }
            return Ok(());
        }
        match kind {
            TcKind::Null | TcKind::Void if json.is_null() => {}
            TcKind::Null | TcKind::Void => return Err(JsonError::expected("null", json)),
            TcKind::Boolean => {
                w.write_bool(json.as_bool().ok_or_else(|| JsonError::expected("true or false", json))?);
            }
            TcKind::Float => w.write_f32(float_from(json)?),
            TcKind::Double => w.write_f64(double_from(json)?),
            TcKind::LongDouble => w.put(&long_double_from(json)?).map_err(refused)?,
            TcKind::Char => w.write_u8(latin1_from(json)?),
            TcKind::WChar => w.write_wchar(char_from(json)?).map_err(refused)?,
            TcKind::String => w.write_str(text(&ty, json)?).map_err(refused)?,
            TcKind::WString => w.write_wstr(text(&ty, json)?).map_err(refused)?,
            TcKind::Fixed => {
                let digits = match json {
                    Value::String(digits) => digits.clone(),
                    Value::Number(number) if !number.is_f64() => number.to_string(),
                    _ => return Err(JsonError::expected("a decimal number as a string", json)),
                };
                write_fixed(w, &ty, &digits).map_err(|what| JsonError::expected(what, json))?;
            }
            TcKind::Enum => w.write_u32(enumerator(&ty, json)?),
            TcKind::Principal => w.write_octets(&octets(json)?).map_err(refused)?,
            TcKind::TypeCode => {
                let type_code = self.type_code(json)?;
                w.put(&type_code).map_err(refused)?;
            }
            TcKind::Any => self.any(w, json)?,
            TcKind::Struct => self.structure(w, &ty, json)?,
            TcKind::Except => {
                w.write_str(ty.id().unwrap_or_default()).map_err(refused)?;
                self.structure(w, &ty, json)?;
            }
            TcKind::Union => self.union(w, &ty, json)?,
            TcKind::Sequence => self.sequence(w, &ty, json)?,
            TcKind::Array => self.array(w, &ty, json)?,
            TcKind::ObjRef | TcKind::Component | TcKind::Home => {
                let ior = self.reference(json)?;
                w.put(&ior).map_err(refused)?;
            }
            TcKind::AbstractInterface => match json {
                Value::String(_) => {
                    let ior = self.reference(json)?;
                    w.write_bool(true);
                    w.put(&ior).map_err(refused)?;
                }
                _ => {
                    w.write_bool(false);
                    self.state(w, None, json)?;
                }
            },
            TcKind::Value | TcKind::ValueBox | TcKind::Event => self.state(w, Some(&ty), json)?,
            kind => return Err(JsonError::new(format!("a type of kind {kind:?} has no values"))),
        }
        Ok(())
    }

    fn reference(&mut self, json: &Value) -> Result<Ior, JsonError> {
        let url = match json {
            Value::Null => return Ok(Ior::nil()),
            Value::String(url) => url,
            _ => return Err(JsonError::expected("a reference as a string, or null", json)),
        };
        let converted = match (self.orb, url.parse::<ObjectUrl>()) {
            (_, Ok(ObjectUrl::Ior(ior))) => Ok(ior),
            (Some(orb), _) => match orb.string_to_object(url) {
                Ok(object) => Ok(object.ior().clone()),
                Err(error) => Err(error.to_string()),
            },
            (None, Ok(ObjectUrl::Corbaloc(corbaloc))) => {
                corbaloc.to_ior().ok_or_else(|| "it names no address".to_owned())
            }
            (None, Ok(_)) => Err("a name is looked up by an ORB, and there is none here".to_owned()),
            (None, Err(error)) => Err(error.to_string()),
        };
        converted.map_err(|why| JsonError::expected(format_args!("a reference ({why})"), json))
    }

    fn any(&mut self, w: &mut Writer<'_>, json: &Value) -> Result<(), JsonError> {
        if json.is_null() {
            return w.put(&TypeCode::default()).map_err(refused);
        }
        let expected = || {
            JsonError::expected("{\"type\": …, \"value\": …}, a number, a string, true, false or null", json)
        };
        if let Some(evident) = evident_type(json) {
            let type_code = TypeCode::of(evident);
            w.put(&type_code).map_err(refused)?;
            return self.value(w, &type_code, json);
        }
        let map = json.as_object().ok_or_else(expected)?;
        let (Some(ty), Some(value), 2) = (map.get("type"), map.get("value"), map.len()) else {
            return Err(expected());
        };
        self.nested(|reader| {
            let type_code = reader.type_code(ty).map_err(|error| error.in_member("type"))?;
            w.put(&type_code).map_err(refused)?;
            reader.value(w, &type_code, value).map_err(|error| error.in_member("value"))
        })
    }

    fn type_code(&mut self, json: &Value) -> Result<TypeCode, JsonError> {
        TypesFrom::new(self.known, self.depth, self.asks).read(json)
    }

    fn structure(&mut self, w: &mut Writer<'_>, ty: &TypeCode, json: &Value) -> Result<(), JsonError> {
        let map = object(json)?;
        self.nested(|reader| {
            let mut seen = HashSet::new();
            reader.members(w, ty, map, &mut seen)?;
            only(map, &seen)
        })
    }

    /// Writes the members of one type, and adds their keys to `seen`.
    pub(super) fn members(
        &mut self,
        w: &mut Writer<'_>,
        ty: &TypeCode,
        map: &Map<String, Value>,
        seen: &mut HashSet<String>,
    ) -> Result<(), JsonError> {
        for index in 0..ty.member_count().unwrap_or(0) {
            let name = ty.member_name(index).unwrap_or_default();
            let key = key(name, index, |key| seen.contains(key));
            let json =
                map.get(&key).ok_or_else(|| JsonError::new(format!("the member {key:?} is missing")))?;
            let member = ty.member_type(index).unwrap_or_default();
            self.value(w, &member, json).map_err(|error| error.in_member(&key))?;
            seen.insert(key);
        }
        Ok(())
    }

    fn union(&mut self, w: &mut Writer<'_>, ty: &TypeCode, json: &Value) -> Result<(), JsonError> {
        let map = object(json)?;
        let mut others = map.iter().filter(|(key, _)| *key != DISCRIMINATOR);
        let member = others.next();
        if let Some((more, _)) = others.next() {
            return Err(JsonError::new(format!("a union has one member, and {more:?} is another")));
        }
        let switch = ty.discriminator_type().unwrap_or_default().resolved();
        let label = match (map.get(DISCRIMINATOR), member) {
            (Some(json), _) => label(&switch, json).map_err(|error| error.in_member(DISCRIMINATOR))?,
            (None, Some((key, _))) => label_of(ty, &switch, key)?,
            (None, None) => return Err(JsonError::new("a union has a discriminator or a member")),
        };
        write_label(w, &switch, label)?;
        match (case_of(ty, label), member) {
            (None, None) => Ok(()),
            (None, Some((key, _))) => {
                Err(JsonError::new(format!("no member belongs to this discriminator, but {key:?} is there")))
            }
            (Some(index), member) => {
                let expected = case_key(ty, index);
                match member {
                    Some((key, json)) if *key == expected => self.nested(|reader| {
                        let member = ty.member_type(index).unwrap_or_default();
                        reader.value(w, &member, json).map_err(|error| error.in_member(key))
                    }),
                    Some((key, _)) => Err(JsonError::new(format!(
                        "the member {expected:?} belongs to this discriminator, not {key:?}"
                    ))),
                    None => Err(JsonError::new(format!("the member {expected:?} is missing"))),
                }
            }
        }
    }

    fn sequence(&mut self, w: &mut Writer<'_>, ty: &TypeCode, json: &Value) -> Result<(), JsonError> {
        let element = ty.content_type().unwrap_or_default().resolved();
        let bound = ty.length().unwrap_or(0) as usize;
        let check = |length: usize| match bound > 0 && length > bound {
            true => Err(JsonError::new(format!("{length} elements, where at most {bound} may be"))),
            false => Ok(()),
        };
        if let (Value::String(_), true) = (json, is_octet(&element)) {
            let octets = octets(json)?;
            check(octets.len())?;
            return w.write_octets(&octets).map_err(refused);
        }
        let elements = json.as_array().ok_or_else(|| {
            let what = if is_octet(&element) { "a string in base64 or an array" } else { "an array" };
            JsonError::expected(what, json)
        })?;
        check(elements.len())?;
        w.write_length(elements.len()).map_err(refused)?;
        self.elements(w, &element, elements)
    }

    fn array(&mut self, w: &mut Writer<'_>, ty: &TypeCode, json: &Value) -> Result<(), JsonError> {
        let element = ty.content_type().unwrap_or_default().resolved();
        let length = ty.length().unwrap_or(0) as usize;
        let expected = || JsonError::expected(format_args!("an array of {length}"), json);
        if let (Value::String(_), true) = (json, is_octet(&element)) {
            let octets = octets(json)?;
            if octets.len() != length {
                return Err(JsonError::expected(format_args!("{length} octets in base64"), json));
            }
            w.write_bytes(&octets);
            return Ok(());
        }
        let elements = json.as_array().filter(|elements| elements.len() == length).ok_or_else(expected)?;
        self.elements(w, &element, elements)
    }

    fn elements(&mut self, w: &mut Writer<'_>, ty: &TypeCode, elements: &[Value]) -> Result<(), JsonError> {
        self.nested(|reader| {
            elements.iter().enumerate().try_for_each(|(index, json)| {
                reader.value(w, ty, json).map_err(|error| error.in_element(index))
            })
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
}

/// The type of a plain value in an `any`: for a whole number the first of `long`, `long long` and `unsigned
/// long long` that holds it, `double` for other numbers.
fn evident_type(json: &Value) -> Option<&'static TypeDef> {
    Some(match json {
        Value::Bool(_) => &TypeDef::Boolean,
        Value::String(_) => &TypeDef::String { bound: 0 },
        Value::Number(number) => match (number.as_i64(), number.is_u64()) {
            (Some(number), _) if i32::try_from(number).is_ok() => &TypeDef::Long,
            (Some(_), _) => &TypeDef::LongLong,
            (None, true) => &TypeDef::ULongLong,
            (None, false) => &TypeDef::Double,
        },
        _ => return None,
    })
}

pub(super) fn object(json: &Value) -> Result<&Map<String, Value>, JsonError> {
    json.as_object().ok_or_else(|| JsonError::expected("an object", json))
}

/// Refuses keys that belong to no member.
pub(super) fn only(map: &Map<String, Value>, seen: &HashSet<String>) -> Result<(), JsonError> {
    if map.len() == seen.len() {
        return Ok(()); // every key was found
    }
    match map.keys().find(|key| !seen.contains(*key)) {
        Some(key) => {
            let mut names: Vec<&str> = seen.iter().map(String::as_str).collect();
            names.sort_unstable();
            Err(JsonError::new(format!("there is no member {key:?}; {}", one_of(&names))))
        }
        None => Ok(()),
    }
}

#[cold]
pub(super) fn refused(error: Misuse) -> JsonError {
    JsonError::unsendable(error)
}

fn text<'j>(ty: &TypeCode, json: &'j Value) -> Result<&'j str, JsonError> {
    let text = json.as_str().ok_or_else(|| JsonError::expected("a string", json))?;
    let bound = ty.length().unwrap_or(0) as usize;
    if bound > 0 && text.len() > bound && text.chars().count() > bound {
        return Err(JsonError::expected(format_args!("a string of at most {bound} characters"), json));
    }
    if text.contains('\0') {
        return Err(JsonError::new("a string cannot hold the character NUL"));
    }
    Ok(text)
}

fn octets(json: &Value) -> Result<Vec<u8>, JsonError> {
    let octets = json.as_str().and_then(base64::decode);
    octets.ok_or_else(|| JsonError::expected("a string in base64", json))
}

fn enumerator(ty: &TypeCode, json: &Value) -> Result<u32, JsonError> {
    let count = ty.member_count().unwrap_or(0);
    let found = match json {
        Value::String(name) => {
            (0..count).find(|&ordinal| !name.is_empty() && ty.member_name(ordinal) == Ok(name.as_str()))
        }
        json => json.as_u64().filter(|&ordinal| ordinal < u64::from(count)).map(|ordinal| ordinal as u32),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = (0..count).map_while(|ordinal| ty.member_name(ordinal).ok()).collect();
        JsonError::expected(one_of(&names), json)
    })
}

/// A few names, for a message.
fn one_of(names: &[&str]) -> String {
    const NAMES_MAX: usize = 12;
    match names {
        [] => "there is none".to_owned(),
        names if names.len() > NAMES_MAX => format!("one of {}, …", names[..NAMES_MAX].join(", ")),
        names => format!("one of {}", names.join(", ")),
    }
}

pub(super) fn label(switch: &TypeCode, json: &Value) -> Result<i64, JsonError> {
    Ok(match switch.kind() {
        TcKind::Boolean => {
            i64::from(json.as_bool().ok_or_else(|| JsonError::expected("true or false", json))?)
        }
        TcKind::Char => i64::from(latin1_from(json)?),
        TcKind::WChar => i64::from(u32::from(char_from(json)?)),
        TcKind::Enum => i64::from(enumerator(switch, json)?),
        kind => match range(kind) {
            // Labels of `unsigned long long` keep their bits.
            Some(range) => integer_from(json, range)? as i64,
            None => return Err(JsonError::new(format!("a union cannot switch on {kind:?}"))),
        },
    })
}

fn write_label(w: &mut Writer<'_>, switch: &TypeCode, label: i64) -> Result<(), JsonError> {
    match switch.kind() {
        TcKind::Boolean | TcKind::Char | TcKind::Octet => w.write_u8(label as u8),
        TcKind::Short | TcKind::UShort => w.write_u16(label as u16),
        TcKind::LongLong | TcKind::ULongLong => w.write_i64(label),
        TcKind::WChar => w.write_wchar(char::from_u32(label as u32).unwrap_or_default()).map_err(refused)?,
        _ => w.write_u32(label as u32),
    }
    Ok(())
}

pub(super) fn case_key(ty: &TypeCode, index: u32) -> String {
    key(ty.member_name(index).unwrap_or_default(), index, |key| key == DISCRIMINATOR)
}

/// The label that a member stands for without a discriminator: its first label; for the default case the
/// lowest number that no other case has.
fn label_of(ty: &TypeCode, switch: &TypeCode, member: &str) -> Result<i64, JsonError> {
    let count = ty.member_count().unwrap_or(0);
    let labels = || (0..count).filter_map(|index| ty.member_label(index).ok().flatten());
    match (0..count).find(|&index| case_key(ty, index) == member) {
        Some(index) => match ty.member_label(index).ok().flatten() {
            Some(label) => Ok(label),
            None => {
                let taken: HashSet<i64> = labels().collect();
                let most = match switch.kind() {
                    TcKind::Boolean => 1,
                    TcKind::Enum => i64::from(switch.member_count().unwrap_or(1)) - 1,
                    TcKind::Char => i64::from(u8::MAX),
                    TcKind::WChar => 0xD7FF,
                    kind => range(kind).map_or(0, |(_, most)| i64::try_from(most).unwrap_or(i64::MAX)),
                };
                (0..=most)
                    .find(|label| !taken.contains(label))
                    .ok_or_else(|| JsonError::new("the default case needs its discriminator"))
            }
        },
        None => {
            let names: Vec<String> = (0..count).map(|index| case_key(ty, index)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(JsonError::new(format!("there is no member {member:?}; {}", one_of(&names))))
        }
    }
}
