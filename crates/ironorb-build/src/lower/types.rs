//! Rust types, codecs and parameter modes for IDL types.

use ironorb_idl::model::{Basic, DefId, DefKind, InterfaceKind, Type};

use super::{Lowerer, Place};
use crate::tree::{self, Text};

impl<'a> Lowerer<'a> {
    /// The Rust type of results.
    pub(super) fn rust(&'a self, ty: &'a Type, at: &Place<'a>) -> Text<'a> {
        match self.value_type(ty, at) {
            Some(value) => format!("Option<{}<{value}>>", self.support("Value", at)).into(),
            None => self.element(ty, at),
        }
    }

    /// The Rust type of members and elements.
    pub(super) fn element(&'a self, ty: &'a Type, at: &Place<'a>) -> Text<'a> {
        if let Some(value) = self.value_type(ty, at) {
            return format!("{}<{value}>", self.support("Link", at)).into();
        }
        match ty {
            Type::Void => "()".into(),
            Type::Basic(basic) => self.basic(*basic, at),
            Type::String { .. } => "String".into(),
            Type::WString { .. } => self.support("WString", at),
            Type::Fixed { spec } => {
                let (digits, scale) = spec.unwrap_or((1, 0));
                format!("{}<{digits}, {scale}>", self.support("Fixed", at)).into()
            }
            // The keys of a map have an order: the front end allows no others.
            Type::Map { key, value, .. } => {
                let (key, value) = (self.element(key, at), self.element(value, at));
                format!("{}<{key}, {value}>", self.support("BTreeMap", at)).into()
            }
            Type::Sequence { element, .. } => joined(&["Vec<", &self.element(element, at), ">"]),
            Type::Array { element, dimensions } => dimensions
                .iter()
                .rev()
                .fold(self.element(element, at), |inner, n| format!("[{inner}; {n}]").into()),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Abstract => {
                    format!("{}<{}>", self.support("Abstract", at), self.reference(*id, at)).into()
                }
                DefKind::Interface(_) => joined(&["Option<", &self.reference(*id, at), ">"]),
                _ => self.path(*id, at),
            },
        }
    }

    /// The type argument of `Value` and `Link`, if the type is a valuetype or an alias of one.
    pub(super) fn value_type(&'a self, ty: &'a Type, at: &Place<'a>) -> Option<Text<'a>> {
        match self.model.unaliased(ty) {
            Type::Basic(Basic::ValueBase) => Some(format!("dyn {}", self.support("ValueBase", at)).into()),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Value(value) if value.is_abstract => {
                    Some(format!("dyn {}", self.path(*id, at)).into())
                }
                DefKind::Value(_) | DefKind::ValueBox(_) => Some(self.path(*id, at)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The codec of a result.
    pub(super) fn result_codec(&'a self, ty: &'a Type, at: &Place<'a>) -> Text<'a> {
        if self.value_type(ty, at).is_some() { self.rust(ty, at) } else { self.codec(ty, at) }
    }

    /// The codec of a member or element: the Rust type itself, unless bounds are to be checked.
    pub(super) fn codec(&'a self, ty: &'a Type, at: &Place<'a>) -> Text<'a> {
        if !self.layout.has_codec(ty) {
            return self.element(ty, at);
        }
        match ty {
            Type::String { bound: Some(n) } => format!("{}<{n}>", self.support("Str", at)).into(),
            Type::WString { bound: Some(n) } => format!("{}<{n}>", self.support("WStr", at)).into(),
            Type::Sequence { element, bound } => {
                let bound = bound.map_or_else(String::new, |n| format!(", {n}"));
                joined(&[&self.support("Seq", at), "<", &self.codec(element, at), &bound, ">"])
            }
            Type::Map { key, value, bound } => {
                let bound = bound.map_or_else(String::new, |n| format!(", {n}"));
                let (key, value) = (self.codec(key, at), self.codec(value, at));
                format!("{}<{key}, {value}{bound}>", self.support("Map", at)).into()
            }
            Type::Array { element, dimensions } => {
                let array = self.support("Arr", at);
                dimensions
                    .iter()
                    .rev()
                    .fold(self.codec(element, at), |inner, n| format!("{array}<{inner}, {n}>").into())
            }
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Typedef(typedef) => self.codec(&typedef.ty, at),
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Local => {
                    format!("{}<dyn {}>", self.support("Local", at), self.path(*id, at)).into()
                }
                _ => self.element(ty, at),
            },
            _ => self.element(ty, at),
        }
    }

    /// The codec of a type, and an expression for its description if the codec does not imply it.
    pub(super) fn described(&'a self, ty: &'a Type, at: &Place<'a>) -> tree::Described<'a> {
        let description = (!self.tells(ty)).then(|| self.description(ty, at));
        tree::Described { codec: self.codec(ty, at), description }
    }

    /// Whether the codec of a type implies the IDL type. It does not for an alias, which has no Rust type of
    /// its own, nor for `char` and `octet`, which share one. When rustc checks a constant that refers to a
    /// static, it evaluates everything that the static reaches, so cycles must go from static to static.
    fn tells(&'a self, ty: &'a Type) -> bool {
        match ty {
            Type::Basic(Basic::Char) => false,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.tells(element),
            Type::Map { key, value, .. } => self.tells(key) && self.tells(value),
            Type::Named(id) => {
                !matches!(self.model.get(*id).kind, DefKind::Typedef(_) | DefKind::Native)
                    && self.layout.definition(*id).acyclic
            }
            _ => true,
        }
    }

    /// The description of a type, a reference to a `TypeDef`.
    pub(super) fn description(&'a self, ty: &'a Type, at: &Place<'a>) -> Text<'a> {
        let def = || self.support("TypeDef", at);
        match ty {
            Type::Named(id) => joined(&["&", &self.path_to(*id, &self.names.of(*id).type_code, at)]),
            Type::Basic(Basic::Char) => format!("&{}::Char", def()).into(),
            _ if self.tells(ty) => {
                joined(&["<", &self.codec(ty, at), " as ", &self.support("Typed", at), ">::TYPE"])
            }
            Type::Sequence { element, bound } => {
                let (element, bound) = (self.description(element, at), bound.unwrap_or(0));
                format!("&{}::Sequence {{ element: {element}, bound: {bound} }}", def()).into()
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.description(key, at), self.description(value, at));
                let members = format!("&[(\"key\", {key}), (\"value\", {value})]");
                let pair = format!("&{}::Struct {{ id: \"\", name: \"\", members: {members} }}", def());
                format!("&{}::Sequence {{ element: {pair}, bound: {} }}", def(), bound.unwrap_or(0)).into()
            }
            Type::Array { element, dimensions } => {
                dimensions.iter().rev().fold(self.description(element, at), |element, n| {
                    format!("&{}::Array {{ element: {element}, length: {n} }}", def()).into()
                })
            }
            _ => unreachable_type(),
        }
    }

    /// The Rust type of an `in` or `inout` parameter, and the support type that says how it is passed.
    pub(super) fn parameter(&'a self, ty: &'a Type, at: &Place<'a>) -> (Text<'a>, Text<'a>) {
        let of = |way: &str, ty: &str| joined(&[&self.support(way, at), "<", ty, ">"]);
        let plain = |way: Text<'a>| {
            if self.layout.has_codec(ty) { of("Checked", &self.codec(ty, at)) } else { way }
        };
        let borrowed = || {
            let rust = self.rust(ty, at);
            (joined(&["&", &rust]), of("Borrowed", &rust))
        };
        let nillable = |rust: &str| (joined(&["Option<&", rust, ">"]), of("Nillable", rust));
        let copied = || {
            let rust = self.rust(ty, at);
            let way = of("Copied", &rust);
            (rust, way)
        };
        if let Some(value) = self.value_type(ty, at) {
            return nillable(&of("Value", &value));
        }
        match self.model.unaliased(ty) {
            Type::String { .. } => ("&str".into(), plain(self.support("Text", at))),
            Type::WString { .. } => ("&str".into(), plain(self.support("WideText", at))),
            Type::Sequence { element, .. } => {
                (joined(&["&[", &self.element(element, at), "]"]), plain(self.sequence_way(element, at)))
            }
            Type::Array { .. } | Type::Map { .. } => {
                let (rust, way) = borrowed();
                (rust, plain(way))
            }
            Type::Basic(Basic::Any | Basic::TypeCode) => borrowed(),
            Type::Basic(Basic::Object) => nillable(&self.support("ObjectRef", at)),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Abstract => borrowed(),
                DefKind::Interface(_) => nillable(&self.reference(*id, at)),
                DefKind::Enum(_) | DefKind::Bitmask(_) => copied(),
                _ => borrowed(),
            },
            _ => copied(),
        }
    }

    /// The same for an `in` parameter that the servant may keep, which is a sequence.
    pub(super) fn owned_parameter(&'a self, ty: &'a Type, at: &Place<'a>) -> (Text<'a>, Text<'a>) {
        let Type::Sequence { element, bound } = self.model.unaliased(ty) else {
            return self.parameter(ty, at);
        };
        let rust = self.element(element, at);
        let way = match (self.layout.has_codec(element), bound) {
            (true, _) => format!("{}<{}, {rust}>", self.support("CheckedOwnable", at), self.codec(ty, at)),
            (false, Some(bound)) => format!("{}<{rust}, {bound}>", self.support("OwnableElements", at)),
            (false, None) => format!("{}<{rust}>", self.support("OwnableElements", at)),
        };
        (format!("{}<'_, {rust}>", self.support("Ownable", at)).into(), way.into())
    }

    /// Octets and numbers are borrowed from the message.
    fn sequence_way(&'a self, element: &'a Type, at: &Place<'a>) -> Text<'a> {
        match self.model.unaliased(element) {
            Type::Basic(Basic::Octet | Basic::Char | Basic::UInt8) => self.support("Octets", at),
            Type::Basic(
                number @ (Basic::Short
                | Basic::UShort
                | Basic::Long
                | Basic::ULong
                | Basic::LongLong
                | Basic::ULongLong
                | Basic::Float
                | Basic::Double),
            ) => joined(&[&self.support("Numbers", at), "<", &self.basic(*number, at), ">"]),
            _ => joined(&[&self.support("Elements", at), "<", &self.element(element, at), ">"]),
        }
    }

    pub(super) fn basic(&'a self, basic: Basic, at: &Place<'a>) -> Text<'a> {
        let name = match basic {
            Basic::Short => "i16",
            Basic::UShort => "u16",
            Basic::Long => "i32",
            Basic::ULong => "u32",
            Basic::LongLong => "i64",
            Basic::ULongLong => "u64",
            Basic::Float => "f32",
            Basic::Double => "f64",
            Basic::Char | Basic::Octet | Basic::UInt8 => "u8",
            Basic::Int8 => "i8",
            Basic::WChar => "char",
            Basic::Boolean => "bool",
            Basic::LongDouble => return self.support("LongDouble", at),
            Basic::Object => return format!("Option<{}>", self.support("ObjectRef", at)).into(),
            Basic::Any => return self.support("Any", at),
            Basic::TypeCode => return self.support("TypeCode", at),
            Basic::ValueBase => return self.support("ValueBase", at), // only ever behind a handle
        };
        name.into()
    }

    /// The type inside the `Option` for an interface: its reference, or for a local interface, which has
    /// none, the object itself.
    fn reference(&'a self, id: DefId, at: &Place<'a>) -> Text<'a> {
        match &self.model.get(id).kind {
            DefKind::Interface(interface) if interface.kind == InterfaceKind::Local => {
                format!("::std::sync::Arc<dyn {}>", self.path(id, at)).into()
            }
            _ => self.path_to(id, &self.names.of(id).reference, at),
        }
    }

    /// A name of the support module.
    pub(super) fn support(&'a self, name: &str, at: &Place<'a>) -> Text<'a> {
        // At the top of a file there is no `use`: several files may be included side by side.
        let support = if at.path.is_empty() { self.config.support_path() } else { "g" };
        joined(&[support, "::", name])
    }

    /// The path to a definition.
    pub(super) fn path(&'a self, id: DefId, at: &Place<'a>) -> Text<'a> {
        self.path_to(id, &self.names.of(id).own, at)
    }

    /// The path to the item `name` in the module of the definition.
    pub(super) fn path_to(&'a self, id: DefId, name: &'a str, at: &Place<'a>) -> Text<'a> {
        let external = self.config.external_of(self.model, id);
        if external.is_none() && self.model.get(id).parent == at.owner {
            return name.into();
        }
        let home = self.home(id);
        let mut whole = String::with_capacity(name.len() + 16);
        let modules = match external {
            Some(path) => {
                whole.push_str(path);
                whole.push_str("::");
                home.as_slice()
            }
            None => {
                let shared = home.iter().zip(&at.path).take_while(|(a, b)| a == b).count();
                (shared..at.path.len()).for_each(|_| whole.push_str("super::"));
                &home[shared..]
            }
        };
        for module in modules {
            whole.push_str(module);
            whole.push_str("::");
        }
        whole.push_str(name);
        whole.into()
    }

    /// The Rust module that a definition stands in.
    fn home(&self, id: DefId) -> Vec<&str> {
        let mut path = Vec::new();
        let mut parent = self.model.get(id).parent;
        while let Some(id) = parent {
            let names = self.names.of(id);
            path.push(match self.model.get(id).kind {
                DefKind::Module(_) => names.own.as_str(),
                _ => names.inner.as_str(),
            });
            parent = self.model.get(id).parent;
        }
        path.reverse();
        path
    }
}

/// Pieces as one text.
pub(super) fn joined<'a>(pieces: &[&str]) -> Text<'a> {
    Text::Owned(pieces.concat())
}

/// The panic for types that `unsupported` refuses before lowering.
fn unreachable_type() -> Text<'static> {
    "()".into()
}
