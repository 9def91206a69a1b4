//! Converts TypeCodes to JSON and back: names where types have some, and objects that describe types.
//!
//! A type with a repository id is described once. After that, and inside itself, its id stands for it.

use std::collections::HashMap;

use ironorb::giop::typecode::{BadType, UnionCase, ValueMember, ValueModifier, Visibility};
use ironorb::{
    ObjectRef, SystemException, TcKind, TypeCode, TypeDef, Typed, Value as ValueHandle, ValueBase,
};
use serde_json::{Map, Value, json};

use super::error::JsonError;
use super::from::object;
use super::to::{spend, too_deep};
use super::{BYTES_FREE, DEPTH_MAX};
use crate::Interfaces;

/// A type as JSON: a name (`"long"`, `"sequence<octet>"`), the repository id of a known type, or an object:
///
/// - `{"kind": "struct", "id": …, "name": …, "members": [{"name": …, "type": …}]}`, and `"exception"` in the
///   same form
/// - `{"kind": "union", "id", "name", "discriminator": type, "members": [{"label": 1, "name", "type"}]}`, labels as
///   the numbers of enumerators, characters and booleans, `null` for the default case
/// - `{"kind": "enum", "id", "name", "enumerators": ["red", …]}`
/// - `{"kind": "sequence", "element": type, "bound": 4}`, `{"kind": "array", "element": type, "length": 4}`
/// - `{"kind": "alias", "id", "name", "type": type}`, and `"valuebox"` in the same form
/// - `{"kind": "valuetype", "id", "name", "modifier": "none", "base": type, "members": [{"access": "public", …}]}`;
///   `"custom"`, `"abstract"`, `"truncatable"`; `"base"` only where there is one
/// - `{"kind": "interface", "id", "name"}`, and `"abstract interface"`, `"local interface"` and `"native"` in
///   the same form
///
/// Fails for types that are nested too deeply, for types of CORBA components, and where two types inside have
/// one id.
pub fn type_to_json(type_code: &TypeCode, known: &Interfaces) -> Result<Value, JsonError> {
    TypesTo::new(known, BYTES_FREE, 0).describe(type_code)
}

/// Reads a type from JSON: the forms that [`type_to_json`] writes, and scoped names of known types.
pub fn type_from_json(json: &Value, known: &Interfaces) -> Result<TypeCode, JsonError> {
    TypesFrom::new(known, 0, true).read(json)
}

const BASIC: &[(&str, &TypeDef)] = &[
    ("null", &TypeDef::Null),
    ("void", &TypeDef::Void),
    ("short", &TypeDef::Short),
    ("long", &TypeDef::Long),
    ("unsigned short", &TypeDef::UShort),
    ("unsigned long", &TypeDef::ULong),
    ("long long", &TypeDef::LongLong),
    ("unsigned long long", &TypeDef::ULongLong),
    ("float", &TypeDef::Float),
    ("double", &TypeDef::Double),
    ("long double", &TypeDef::LongDouble),
    ("boolean", &TypeDef::Boolean),
    ("char", &TypeDef::Char),
    ("wchar", &TypeDef::WChar),
    ("octet", &TypeDef::Octet),
    ("any", &TypeDef::Any),
    ("CORBA::TypeCode", &TypeDef::TypeCode),
    ("CORBA::Principal", &TypeDef::Principal),
    ("Object", <Option<ObjectRef> as Typed>::TYPE),
    ("ValueBase", <Option<ValueHandle<dyn ValueBase>> as Typed>::TYPE),
];

/// Kinds of types that consist of an id and a name.
const NAMED: &[(&str, TcKind)] = &[
    ("interface", TcKind::ObjRef),
    ("abstract interface", TcKind::AbstractInterface),
    ("local interface", TcKind::LocalInterface),
    ("native", TcKind::Native),
];

const MODIFIERS: &[(&str, ValueModifier)] = &[
    ("none", ValueModifier::None),
    ("custom", ValueModifier::Custom),
    ("abstract", ValueModifier::Abstract),
    ("truncatable", ValueModifier::Truncatable),
];

pub(super) struct TypesTo<'k> {
    known: &'k Interfaces,
    left: usize,
    depth: usize,
    /// Types that are described already, or are being described.
    described: HashMap<String, TypeCode>,
}

impl<'k> TypesTo<'k> {
    /// A converter that may write `left` bytes, and starts at this depth.
    pub(super) fn new(known: &'k Interfaces, left: usize, depth: usize) -> Self {
        TypesTo { known, left, depth, described: HashMap::new() }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn describe(&mut self, ty: &TypeCode) -> Result<Value, JsonError> {
        let id = ty.id().unwrap_or_default();
        let name = ty.name().unwrap_or_default();
        spend(&mut self.left, id.len() + name.len())?;
        if let Some(name) = basic_name(ty) {
            return Ok(name.into());
        }
        match (ty.kind(), ty.length().unwrap_or(0)) {
            (TcKind::String, 0) => return Ok("string".into()),
            (TcKind::WString, 0) => return Ok("wstring".into()),
            (TcKind::String, bound) => return Ok(format!("string<{bound}>").into()),
            (TcKind::WString, bound) => return Ok(format!("wstring<{bound}>").into()),
            (TcKind::Fixed, _) => {
                let (digits, scale) = (ty.fixed_digits().unwrap_or(1), ty.fixed_scale().unwrap_or(0));
                return Ok(format!("fixed<{digits},{scale}>").into());
            }
            _ => {}
        }
        if !id.is_empty() {
            if self.known.type_code(id).as_ref() == Some(ty) {
                return Ok(id.into());
            }
            match self.described.get(id) {
                Some(earlier) if earlier == ty => return Ok(id.into()),
                Some(_) => return Err(JsonError::new(format!("two types have the id {id}"))),
                None => self.described.insert(id.to_owned(), ty.clone()),
            };
        }
        // One level for an object; three for an object with a list of members, which are objects.
        let levels = if ty.member_count().is_ok() { 3 } else { 1 };
        if self.depth + levels > DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += levels;
        let described = self.spell(ty, id, name);
        self.depth -= levels;
        described
    }

    fn spell(&mut self, ty: &TypeCode, id: &str, name: &str) -> Result<Value, JsonError> {
        if let Some((kind, _)) = NAMED.iter().find(|(_, kind)| *kind == ty.kind()) {
            return Ok(json!({ "kind": kind, "id": id, "name": name }));
        }
        let content = ty.content_type().unwrap_or_default();
        Ok(match ty.kind() {
            TcKind::Sequence => {
                let bound = ty.length().unwrap_or(0);
                match self.describe(&content)? {
                    // Ids may contain any character.
                    Value::String(element) if !element.contains(':') && bound == 0 => {
                        format!("sequence<{element}>").into()
                    }
                    Value::String(element) if !element.contains(':') => {
                        format!("sequence<{element},{bound}>").into()
                    }
                    element => json!({ "kind": "sequence", "element": element, "bound": bound }),
                }
            }
            TcKind::Array => {
                json!({ "kind": "array", "element": self.describe(&content)?, "length": ty.length().unwrap_or(0) })
            }
            TcKind::Alias => {
                json!({ "kind": "alias", "id": id, "name": name, "type": self.describe(&content)? })
            }
            TcKind::ValueBox => {
                json!({ "kind": "valuebox", "id": id, "name": name, "type": self.describe(&content)? })
            }
            TcKind::Enum => {
                let mut enumerators = Vec::new();
                for index in 0..ty.member_count().unwrap_or(0) {
                    let name = ty.member_name(index).unwrap_or_default();
                    spend(&mut self.left, name.len())?;
                    enumerators.push(name);
                }
                json!({ "kind": "enum", "id": id, "name": name, "enumerators": enumerators })
            }
            kind @ (TcKind::Struct | TcKind::Except) => {
                let kind = if kind == TcKind::Struct { "struct" } else { "exception" };
                json!({ "kind": kind, "id": id, "name": name, "members": self.members(ty, |_, _| {})? })
            }
            TcKind::Union => {
                let discriminator = self.describe(&ty.discriminator_type().unwrap_or_default())?;
                let members = self.members(ty, |index, member| {
                    let label = ty.member_label(index).ok().flatten();
                    member.insert("label".to_owned(), label.into());
                })?;
                json!({
                    "kind": "union", "id": id, "name": name, "discriminator": discriminator, "members": members
                })
            }
            TcKind::Value => {
                let modifier = ty.type_modifier().unwrap_or_default();
                let modifier = MODIFIERS.iter().find(|(_, known)| *known == modifier).map(|(name, _)| name);
                let mut expanded =
                    json!({ "kind": "valuetype", "id": id, "name": name, "modifier": modifier });
                if let Ok(Some(base)) = ty.concrete_base_type() {
                    expanded["base"] = self.describe(&base)?;
                }
                expanded["members"] = self.members(ty, |index, member| {
                    let is_public = ty.member_visibility(index) == Ok(Visibility::Public);
                    member.insert("access".to_owned(), if is_public { "public" } else { "private" }.into());
                })?;
                expanded
            }
            kind => return Err(JsonError::new(format!("a type of kind {kind:?} cannot be written as JSON"))),
        })
    }

    fn members(
        &mut self,
        ty: &TypeCode,
        more: impl Fn(u32, &mut Map<String, Value>),
    ) -> Result<Value, JsonError> {
        let mut members = Vec::new();
        for index in 0..ty.member_count().unwrap_or(0) {
            let name = ty.member_name(index).unwrap_or_default();
            spend(&mut self.left, name.len())?;
            let mut member = Map::new();
            member.insert("name".to_owned(), name.into());
            let json = self.describe(&ty.member_type(index).unwrap_or_default());
            member.insert("type".to_owned(), json.map_err(|error| error.in_member(name))?);
            more(index, &mut member);
            members.push(Value::Object(member));
        }
        Ok(Value::Array(members))
    }
}

/// The name of a type without parameters.
fn basic_name(ty: &TypeCode) -> Option<&'static str> {
    let kind = ty.kind();
    let found = BASIC.iter().find(|(_, definition)| {
        let basic = TypeCode::of(definition);
        // The whole types are compared only if their ids are equal.
        kind == basic.kind() && ty.id() == basic.id() && *ty == basic
    });
    found.map(|(name, _)| *name)
}

pub(super) struct TypesFrom<'k> {
    known: &'k Interfaces,
    depth: usize,
    asks: bool,
    by_id: HashMap<String, Stage>,
    /// Types with ids that contain placeholders.
    open: Vec<TypeCode>,
}

/// How far the conversion of a type with an id is.
enum Stage {
    Begun,
    /// The type contains placeholders.
    Open,
    Whole(TypeCode),
}

/// The name of a member, its type, and the member's JSON object.
type ReadMember<'j> = (&'j str, TypeCode, &'j Map<String, Value>);

/// A type, and whether it contains placeholders.
type Read = (TypeCode, bool);

impl<'k> TypesFrom<'k> {
    /// A converter that starts at this depth. `asks` is whether repositories are asked for missing types,
    /// which blocks.
    pub(super) fn new(known: &'k Interfaces, depth: usize, asks: bool) -> Self {
        TypesFrom { known, depth, asks, by_id: HashMap::new(), open: Vec::new() }
    }

    pub(super) fn read(mut self, json: &Value) -> Result<TypeCode, JsonError> {
        let (ty, is_open) = self.ty(json)?;
        if !is_open {
            return Ok(ty);
        }
        self.open.push(ty);
        let group = TypeCode::create_group(&self.open).map_err(bad)?;
        group.into_iter().last().ok_or_else(|| bad(BadType::Recursion))
    }

    fn ty(&mut self, json: &Value) -> Result<Read, JsonError> {
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let read = match json {
            Value::String(text) => self.text(text),
            Value::Object(map) => self.read_described(map, json),
            _ => Err(JsonError::expected("a type's name or an object", json)),
        };
        self.depth -= 1;
        read
    }

    fn text(&mut self, text: &str) -> Result<Read, JsonError> {
        if let Some((_, definition)) = BASIC.iter().find(|(name, _)| *name == text) {
            return Ok((TypeCode::of(definition), false));
        }
        match self.by_id.get(text) {
            Some(Stage::Whole(ty)) => return Ok((ty.clone(), false)),
            Some(Stage::Begun | Stage::Open) => return Ok((TypeCode::recursive(text).map_err(bad)?, true)),
            None => {}
        }
        let known = self.known.type_code(text).or_else(|| self.known.type_code(&self.known.known_id(text)?));
        if let Some(ty) = known {
            return Ok((ty, false));
        }
        match self.with_parameters(text)? {
            Some(read) => Ok(read),
            None if self.asks => Ok((self.asked(text)?, false)),
            None => Err(JsonError::expected("a known type", &text.into())),
        }
    }

    /// Asks the repositories for a type by its id or scoped name. Blocks.
    fn asked(&self, text: &str) -> Result<TypeCode, JsonError> {
        let expected = || JsonError::expected("a known type", &text.into());
        let cannot =
            |e: SystemException| JsonError::expected(format_args!("a known type ({e})"), &text.into());
        let id = self.known.fetch_id(text).map_err(cannot)?;
        self.known.fetch_type(&id.ok_or_else(expected)?).map_err(cannot)?.ok_or_else(expected)
    }

    /// Types such as `string<8>`, `sequence<long, 4>` and `fixed<5,2>`.
    fn with_parameters(&mut self, text: &str) -> Result<Option<Read>, JsonError> {
        let (word, inside) = match text.split_once('<') {
            Some((word, rest)) => match rest.strip_suffix('>') {
                Some(inside) => (word.trim(), Some(inside)),
                None => return Ok(None),
            },
            None => (text, None),
        };
        let number = |text: &str| text.trim().parse::<u32>().ok();
        Ok(match (word, inside) {
            ("string", None) => Some((TypeCode::create_string(0), false)),
            ("wstring", None) => Some((TypeCode::create_wstring(0), false)),
            ("string", Some(inside)) => number(inside).map(|bound| (TypeCode::create_string(bound), false)),
            ("wstring", Some(inside)) => number(inside).map(|bound| (TypeCode::create_wstring(bound), false)),
            ("fixed", Some(inside)) => {
                let parts = inside.split_once(',');
                let parts = parts.and_then(|(digits, scale)| {
                    Some((digits.trim().parse().ok()?, scale.trim().parse().ok()?))
                });
                match parts {
                    Some((digits, scale)) => {
                        Some((TypeCode::create_fixed(digits, scale).map_err(bad)?, false))
                    }
                    None => None,
                }
            }
            ("sequence", Some(inside)) => {
                let bounded = inside.rsplit_once(',').and_then(|(element, n)| Some((element, number(n)?)));
                let (element, bound) = bounded.unwrap_or((inside, 0));
                let (element, is_open) = self.ty(&element.trim().into())?;
                Some((TypeCode::create_sequence(&element, bound).map_err(bad)?, is_open))
            }
            _ => None,
        })
    }

    fn read_described(&mut self, map: &Map<String, Value>, json: &Value) -> Result<Read, JsonError> {
        let kind = string(map, "kind")?;
        let (id, name) = match kind {
            "sequence" | "array" => ("", ""),
            _ => (string(map, "id")?, string(map, "name")?),
        };
        if !id.is_empty() && self.by_id.insert(id.to_owned(), Stage::Begun).is_some() {
            return Err(JsonError::new(format!("{id} is described twice")));
        }
        let (ty, is_open) = self.made(kind, id, name, map, json)?;
        if !id.is_empty() {
            let stage = if is_open { Stage::Open } else { Stage::Whole(ty.clone()) };
            self.by_id.insert(id.to_owned(), stage);
            if is_open {
                self.open.push(ty.clone());
            }
        }
        Ok((ty, is_open))
    }

    fn made(
        &mut self,
        kind: &str,
        id: &str,
        name: &str,
        map: &Map<String, Value>,
        json: &Value,
    ) -> Result<Read, JsonError> {
        if let Some((_, kind)) = NAMED.iter().find(|(word, _)| *word == kind) {
            let made = match kind {
                TcKind::AbstractInterface => TypeCode::create_abstract_interface(id, name),
                TcKind::LocalInterface => TypeCode::create_local_interface(id, name),
                TcKind::Native => TypeCode::create_native(id, name),
                _ => TypeCode::create_interface(id, name),
            };
            return Ok((made.map_err(bad)?, false));
        }
        let mut is_open = false;
        let made = match kind {
            "sequence" => {
                let element = self.inner(map, "element", &mut is_open)?;
                TypeCode::create_sequence(&element, count(map, "bound")?)
            }
            "array" => {
                let element = self.inner(map, "element", &mut is_open)?;
                TypeCode::create_array(&element, count(map, "length")?)
            }
            "alias" => TypeCode::create_alias(id, name, &self.inner(map, "type", &mut is_open)?),
            "valuebox" => TypeCode::create_value_box(id, name, &self.inner(map, "type", &mut is_open)?),
            "enum" => {
                let names = list(map, "enumerators")?.iter().map(|json| {
                    json.as_str().ok_or_else(|| JsonError::expected("an enumerator's name", json))
                });
                let names = names.collect::<Result<Vec<_>, _>>().map_err(|e| e.in_member("enumerators"))?;
                TypeCode::create_enum(id, name, &names)
            }
            "struct" | "exception" => {
                let members = self.members(map, &mut is_open)?;
                let members: Vec<_> = members.iter().map(|(name, ty, _)| (*name, ty.clone())).collect();
                match kind {
                    "struct" => TypeCode::create_struct(id, name, &members),
                    _ => TypeCode::create_exception(id, name, &members),
                }
            }
            "union" => {
                let discriminator = self.inner(map, "discriminator", &mut is_open)?;
                let mut cases = Vec::new();
                for (name, type_code, member) in self.members(map, &mut is_open)? {
                    let label = match member.get("label") {
                        None | Some(Value::Null) => None,
                        Some(label) => Some(
                            label
                                .as_i64()
                                .ok_or_else(|| JsonError::expected("a whole number or null", label))?,
                        ),
                    };
                    cases.push(UnionCase { label, name: name.to_owned(), type_code });
                }
                TypeCode::create_union(id, name, &discriminator, &cases)
            }
            "valuetype" => {
                let modifier = string(map, "modifier")?;
                let modifier = MODIFIERS.iter().find(|(word, _)| *word == modifier).map(|(_, known)| *known);
                let modifier = modifier.ok_or_else(|| {
                    JsonError::new("expected one of none, custom, abstract, truncatable")
                        .in_member("modifier")
                })?;
                let base = match map.get("base") {
                    None | Some(Value::Null) => None,
                    Some(_) => Some(self.inner(map, "base", &mut is_open)?),
                };
                let members =
                    self.members(map, &mut is_open)?.into_iter().map(|(name, type_code, member)| {
                        let visibility = match member.get("access").and_then(Value::as_str) {
                            Some("public") => Visibility::Public,
                            Some("private") => Visibility::Private,
                            _ => return Err(JsonError::new("the access of a member is public or private")),
                        };
                        Ok(ValueMember { name: name.to_owned(), type_code, visibility })
                    });
                let members = members.collect::<Result<Vec<_>, _>>()?;
                TypeCode::create_value(id, name, modifier, base.as_ref(), &members)
            }
            _ => return Err(JsonError::expected("a type with a kind that JSON can describe", json)),
        };
        Ok((made.map_err(bad)?, is_open))
    }

    fn inner(
        &mut self,
        map: &Map<String, Value>,
        key: &str,
        is_open: &mut bool,
    ) -> Result<TypeCode, JsonError> {
        let json = map.get(key).ok_or_else(|| missing(key))?;
        let (ty, open) = self.ty(json).map_err(|error| error.in_member(key))?;
        *is_open |= open;
        Ok(ty)
    }

    fn members<'j>(
        &mut self,
        map: &'j Map<String, Value>,
        is_open: &mut bool,
    ) -> Result<Vec<ReadMember<'j>>, JsonError> {
        let mut members = Vec::new();
        for (index, json) in list(map, "members")?.iter().enumerate() {
            let read = object(json).and_then(|member| {
                Ok((string(member, "name")?, self.inner(member, "type", is_open)?, member))
            });
            members.push(read.map_err(|error| error.in_element(index).in_member("members"))?);
        }
        Ok(members)
    }
}

fn string<'j>(map: &'j Map<String, Value>, key: &str) -> Result<&'j str, JsonError> {
    let json = map.get(key).ok_or_else(|| missing(key))?;
    json.as_str().ok_or_else(|| JsonError::expected("a string", json).in_member(key))
}

fn list<'j>(map: &'j Map<String, Value>, key: &str) -> Result<&'j [Value], JsonError> {
    let json = map.get(key).ok_or_else(|| missing(key))?;
    match json.as_array() {
        Some(list) => Ok(list),
        None => Err(JsonError::expected("an array", json).in_member(key)),
    }
}

fn count(map: &Map<String, Value>, key: &str) -> Result<u32, JsonError> {
    let json = map.get(key).ok_or_else(|| missing(key))?;
    let count = json.as_u64().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| JsonError::expected("a number from 0 to 4294967295", json).in_member(key))
}

fn missing(key: &str) -> JsonError {
    JsonError::new(format!("the member {key:?} is missing"))
}

fn bad(error: BadType) -> JsonError {
    JsonError::new(format!("no type: {error}"))
}
