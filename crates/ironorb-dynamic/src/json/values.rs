//! Converts valuetypes in both directions: `null`, `{"@type": …}`, and `{"@ref": …}` for a value that
//! occurred before.

use std::collections::HashSet;

use ironorb::giop::typecode::ValueModifier;
use ironorb::giop::value::{ValueHeader, ValueStart};
use ironorb::giop::{Reader, Writer};
use ironorb::{Orb, TcKind, TypeCode};
use serde_json::{Map, Value, json};

use super::error::JsonError;
use super::from::{JsonReader, object, only, refused};
use super::to::{JsonWriter, damaged};

pub(super) const TYPE: &str = "@type";
const ID: &str = "@id";
const REF: &str = "@ref";
/// The key of a box's content.
const CONTENT: &str = "value";
const VALUE_BASE: &str = "IDL:omg.org/CORBA/ValueBase:1.0";

impl JsonWriter<'_> {
    /// Converts a value where one of type `formal` is expected. Behind an abstract interface no type is
    /// expected.
    pub(super) fn state(
        &mut self,
        r: &mut Reader<'_>,
        formal: Option<&TypeCode>,
    ) -> Result<Value, JsonError> {
        let header = match r.begin_value().map_err(damaged)? {
            ValueStart::Null => return Ok(Value::Null),
            ValueStart::Indirection(position) => {
                self.met_again.insert(position);
                return Ok(json!({ REF: self.numbers.get(&position).copied().unwrap_or(0) }));
            }
            ValueStart::Value(header) => header,
        };
        let ty = self.actual(r, &header, formal)?;
        let value = self.nested(|writer| {
            let mut map = Map::new();
            if let Some(number) = writer.numbers.get(&header.position) {
                map.insert(ID.to_owned(), (*number).into());
            }
            let id = ty.id().unwrap_or_default();
            writer.spend(id.len())?;
            map.insert(TYPE.to_owned(), id.into());
            if ty.kind() == TcKind::ValueBox {
                let content = ty.content_type().unwrap_or_default();
                let value = writer.value(r, &content).map_err(|error| error.in_member(CONTENT))?;
                map.insert(CONTENT.to_owned(), value);
            } else {
                for ty in line(&ty)?.iter().rev() {
                    writer.members(r, ty, &mut map)?;
                }
            }
            Ok(Value::Object(map))
        })?;
        r.end_value(header).map_err(damaged)?;
        Ok(value)
    }

    /// The type of a value in a message.
    fn actual(
        &self,
        r: &Reader<'_>,
        header: &ValueHeader,
        formal: Option<&TypeCode>,
    ) -> Result<TypeCode, JsonError> {
        let known = |id: &str| {
            self.known.type_code(id).or_else(|| {
                let factory = r.environment()?.value_factory(id)?;
                Some(TypeCode::of(factory.info().type_def))
            })
        };
        let known =
            |id: &str| known(id).or_else(|| if self.asks { self.known.fetch_type(id).ok()? } else { None });
        let has_bases = header.ids.iter().count() > 1;
        // The rest of a truncated state must be skipped, which needs chunks.
        let candidates = if header.chunked { usize::MAX } else { 1 };
        for id in header.ids.iter().take(candidates) {
            let found = match formal {
                // JacORB leaves bases out of TypeCodes, but not out of states.
                Some(formal) if formal.id() == Ok(id) => match formal.concrete_base_type() {
                    Ok(None) if has_bases => known(id).or_else(|| Some(formal.clone())),
                    _ => Some(formal.clone()),
                },
                _ => known(id),
            };
            if let Some(ty) = found {
                return Ok(ty.resolved());
            }
        }
        match (header.ids.iter().next(), formal) {
            (None, Some(formal)) => Ok(formal.clone()),
            (Some(id), _) => Err(JsonError::new(format!("the valuetype {id} is not known"))),
            (None, None) => Err(JsonError::new("a value does not carry its type")),
        }
    }
}

impl JsonReader<'_> {
    /// Writes a value where one of type `formal` is expected.
    pub(super) fn state(
        &mut self,
        w: &mut Writer<'_>,
        formal: Option<&TypeCode>,
        json: &Value,
    ) -> Result<(), JsonError> {
        if json.is_null() {
            w.write_null_value();
            return Ok(());
        }
        let map = object(json)?;
        if let Some(number) = map.get(REF) {
            let before = number.as_u64().and_then(|number| self.values.get(&number).copied());
            return match before {
                Some(position) if map.len() == 1 => w.write_value_indirection(position).map_err(refused),
                _ => Err(JsonError::expected("the \"@id\" of a value before", number).in_member(REF)),
            };
        }
        let ty = self.type_of(formal, map).map_err(|error| error.in_member(TYPE))?;
        if ty.type_modifier() == Ok(ValueModifier::Custom) {
            return Err(JsonError::new("a custom valuetype is marshalled by the program's own code"));
        }
        let line = line(&ty)?;
        let truncatable = |ty: &&TypeCode| ty.type_modifier() == Ok(ValueModifier::Truncatable);
        let bases = line.iter().take_while(truncatable).count();
        let ids: Vec<&str> = line.iter().take(bases + 1).filter_map(|ty| ty.id().ok()).collect();
        self.nested(|reader| {
            let open = w.begin_value(&ids, false).map_err(refused)?;
            let mut seen = HashSet::new();
            if map.contains_key(TYPE) {
                seen.insert(TYPE.to_owned());
            }
            if let Some(json) = map.get(ID) {
                let number = json.as_u64().filter(|number| !reader.values.contains_key(number));
                let number =
                    number.ok_or_else(|| JsonError::expected("a number of its own", json).in_member(ID))?;
                reader.values.insert(number, open.position());
                seen.insert(ID.to_owned());
            }
            if ty.kind() == TcKind::ValueBox {
                let json =
                    map.get(CONTENT).ok_or_else(|| JsonError::new("the member \"value\" is missing"))?;
                let content = ty.content_type().unwrap_or_default();
                reader.value(w, &content, json).map_err(|error| error.in_member(CONTENT))?;
                seen.insert(CONTENT.to_owned());
            } else {
                for ty in line.iter().rev() {
                    reader.members(w, ty, map, &mut seen)?;
                }
            }
            only(map, &seen)?;
            w.end_value(open).map_err(refused)
        })
    }

    /// The type of a JSON value where one of type `formal` is expected.
    fn type_of(&self, formal: Option<&TypeCode>, map: &Map<String, Value>) -> Result<TypeCode, JsonError> {
        let formal_id = formal.and_then(|formal| formal.id().ok()).unwrap_or_default();
        let is_abstract =
            |ty: &TypeCode| ty.type_modifier() == Ok(ValueModifier::Abstract) || ty.id() == Ok(VALUE_BASE);
        let Some(named) = map.get(TYPE) else {
            return match formal {
                Some(formal) if !is_abstract(formal) => Ok(formal.clone()),
                _ => Err(JsonError::new("is missing, and several types may stand here")),
            };
        };
        let called = named.as_str().ok_or_else(|| JsonError::expected("a repository id", named))?;
        let ty = match formal {
            Some(formal) if formal_id == called => formal.clone(),
            _ => self
                .type_called(called)
                .ok_or_else(|| JsonError::expected("the repository id or name of a known valuetype", named))?
                .resolved(),
        };
        let id = ty.id().unwrap_or_default();
        // The expected TypeCode may contain more than the known one.
        let ty = formal.filter(|_| formal_id == id).unwrap_or(&ty);
        let is_value = matches!(ty.kind(), TcKind::Value | TcKind::ValueBox | TcKind::Event);
        if !is_value || is_abstract(ty) {
            return Err(JsonError::expected("the repository id of a valuetype with state", named));
        }
        // TypeCodes do not list abstract bases, so the receiver of the value checks them.
        if formal.is_some_and(|formal| !is_abstract(formal))
            && !line(ty)?.iter().any(|ty| ty.id() == Ok(formal_id))
        {
            return Err(JsonError::expected(format_args!("{formal_id} or what inherits from it"), named));
        }
        // An `any` copies such a value by the types of its environment, which would truncate or refuse it.
        let is_registered =
            |orb: &Orb| orb.lookup_value_factory(id).is_some() || orb.lookup_value_type(id).is_some();
        if self.for_any && formal_id != id && !self.orb.is_some_and(is_registered) {
            let what = "a valuetype that is registered with the ORB, or the one that is expected";
            return Err(JsonError::expected(what, named));
        }
        Ok(ty.clone())
    }

    /// A type by its repository id or scoped name.
    fn type_called(&self, called: &str) -> Option<TypeCode> {
        if self.asks {
            let id = self.known.fetch_id(called).ok()??;
            return self.known.fetch_type(&id).ok()?;
        }
        self.known.type_code(called).or_else(|| self.known.type_code(&self.known.known_id(called)?))
    }
}

/// A valuetype and its bases with state, the most derived first.
pub(super) fn line(ty: &TypeCode) -> Result<Vec<TypeCode>, JsonError> {
    let mut line = vec![ty.clone()];
    while let Some(base) = line.last().and_then(|ty| ty.concrete_base_type().ok()?) {
        if line.len() >= BASES_MAX {
            return Err(JsonError::new("the valuetype has too many bases"));
        }
        line.push(base.resolved());
    }
    Ok(line)
}

/// Longest chain of bases with state: as many as the IDL front end accepts. Default and only value.
const BASES_MAX: usize = 1000;
