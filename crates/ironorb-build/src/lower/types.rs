//! Rust types, codecs and parameter modes for IDL types.

use ironorb_idl::model::{Basic, DefId, DefKind, InterfaceKind, Type};

use super::{Lowerer, Place};
use crate::tree;

impl Lowerer<'_> {
    /// The Rust type of results.
    pub(super) fn rust(&self, ty: &Type, at: &Place) -> String {
        match self.value_type(ty, at) {
            Some(value) => format!("Option<{}<{value}>>", self.support("Value", at)),
            None => self.element(ty, at),
        }
    }

    /// The Rust type of members and elements.
    pub(super) fn element(&self, ty: &Type, at: &Place) -> String {
        if let Some(value) = self.value_type(ty, at) {
            return format!("{}<{value}>", self.support("Link", at));
        }
        match ty {
            Type::Void => "()".to_owned(),
            Type::Basic(basic) => self.basic(*basic, at),
            Type::String { .. } => "String".to_owned(),
            Type::WString { .. } => self.support("WString", at),
            Type::Fixed { spec } => {
                let (digits, scale) = spec.unwrap_or((1, 0));
                format!("{}<{digits}, {scale}>", self.support("Fixed", at))
            }
            // The keys of a map have an order: the front end allows no others.
            Type::Map { key, value, .. } => {
                let (key, value) = (self.element(key, at), self.element(value, at));
                format!("{}<{key}, {value}>", self.support("BTreeMap", at))
            }
            Type::Sequence { element, .. } => ["Vec<", &self.element(element, at), ">"].concat(),
            Type::Array { element, dimensions } => {
                dimensions.iter().rev().fold(self.element(element, at), |inner, n| format!("[{inner}; {n}]"))
            }
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Abstract => {
                    format!("{}<{}>", self.support("Abstract", at), self.reference(*id, at))
                }
                DefKind::Interface(_) => ["Option<", &self.reference(*id, at), ">"].concat(),
                _ => self.path(*id, at),
            },
        }
    }

    /// What stands between the brackets of `Value` and `Link`, if the type is a valuetype or an alias of one.
    pub(super) fn value_type(&self, ty: &Type, at: &Place) -> Option<String> {
        match self.model.unaliased(ty) {
            Type::Basic(Basic::ValueBase) => Some(format!("dyn {}", self.support("ValueBase", at))),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Value(value) if value.is_abstract => Some(format!("dyn {}", self.path(*id, at))),
                DefKind::Value(_) | DefKind::ValueBox(_) => Some(self.path(*id, at)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The codec of a result.
    pub(super) fn result_codec(&self, ty: &Type, at: &Place) -> String {
        if self.value_type(ty, at).is_some() { self.rust(ty, at) } else { self.codec(ty, at) }
    }

    /// The codec of a member or element: the Rust type itself, unless bounds are to be checked.
    pub(super) fn codec(&self, ty: &Type, at: &Place) -> String {
        if !self.layout.has_codec(ty) {
            return self.element(ty, at);
        }
        match ty {
            Type::String { bound: Some(n) } => format!("{}<{n}>", self.support("Str", at)),
            Type::WString { bound: Some(n) } => format!("{}<{n}>", self.support("WStr", at)),
            Type::Sequence { element, bound } => {
                let bound = bound.map_or_else(String::new, |n| format!(", {n}"));
                [&self.support("Seq", at), "<", &self.codec(element, at), &bound, ">"].concat()
            }
            Type::Map { key, value, bound } => {
                let bound = bound.map_or_else(String::new, |n| format!(", {n}"));
                let (key, value) = (self.codec(key, at), self.codec(value, at));
                format!("{}<{key}, {value}{bound}>", self.support("Map", at))
            }
            Type::Array { element, dimensions } => {
                let array = self.support("Arr", at);
                dimensions
                    .iter()
                    .rev()
                    .fold(self.codec(element, at), |inner, n| format!("{array}<{inner}, {n}>"))
            }
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Typedef(typedef) => self.codec(&typedef.ty, at),
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Local => {
                    format!("{}<dyn {}>", self.support("Local", at), self.path(*id, at))
                }
                _ => self.element(ty, at),
            },
            _ => self.element(ty, at),
        }
    }

    /// The codec of a type, and an expression for its description where the codec cannot tell.
    pub(super) fn described(&self, ty: &Type, at: &Place) -> tree::Described {
        let description = (!self.tells(ty)).then(|| self.description(ty, at));
        tree::Described { codec: self.codec(ty, at), description }
    }

    /// Whether the codec of a type tells what it is in IDL. An alias has no Rust type of its own, and `char` and
    /// `octet` share one. To check a constant that refers to a static, rustc works out all that the static reaches,
    /// so that cycles have to go from static to static.
    fn tells(&self, ty: &Type) -> bool {
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
    pub(super) fn description(&self, ty: &Type, at: &Place) -> String {
        let def = || self.support("TypeDef", at);
        match ty {
            Type::Named(id) => ["&", &self.path_to(*id, &self.names.of(*id).type_code, at)].concat(),
            Type::Basic(Basic::Char) => format!("&{}::Char", def()),
            _ if self.tells(ty) => {
                ["<", &self.codec(ty, at), " as ", &self.support("Typed", at), ">::TYPE"].concat()
            }
            Type::Sequence { element, bound } => {
                let (element, bound) = (self.description(element, at), bound.unwrap_or(0));
                format!("&{}::Sequence {{ element: {element}, bound: {bound} }}", def())
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.description(key, at), self.description(value, at));
                let members = format!("&[(\"key\", {key}), (\"value\", {value})]");
                let pair = format!("&{}::Struct {{ id: \"\", name: \"\", members: {members} }}", def());
                format!("&{}::Sequence {{ element: {pair}, bound: {} }}", def(), bound.unwrap_or(0))
            }
            Type::Array { element, dimensions } => {
                dimensions.iter().rev().fold(self.description(element, at), |element, n| {
                    format!("&{}::Array {{ element: {element}, length: {n} }}", def())
                })
            }
            _ => unreachable_type(),
        }
    }

    /// The Rust type of an `in` or `inout` parameter, and how it travels.
    pub(super) fn parameter(&self, ty: &Type, at: &Place) -> (String, String) {
        let plain = |mode: &str| {
            if self.layout.has_codec(ty) {
                ["checked(", &self.codec(ty, at), ")"].concat()
            } else {
                mode.to_owned()
            }
        };
        if let Some(value) = self.value_type(ty, at) {
            return (format!("Option<&{}<{value}>>", self.support("Value", at)), "reference".to_owned());
        }
        match self.model.unaliased(ty) {
            Type::String { .. } => ("&str".to_owned(), plain("string")),
            Type::WString { .. } => ("&str".to_owned(), plain("wide")),
            Type::Sequence { element, .. } => {
                (["&[", &self.element(element, at), "]"].concat(), plain(&self.sequence_mode(element, at)))
            }
            Type::Array { .. } | Type::Map { .. } => (["&", &self.rust(ty, at)].concat(), plain("borrowed")),
            Type::Basic(Basic::Any | Basic::TypeCode) => {
                (["&", &self.rust(ty, at)].concat(), "borrowed".to_owned())
            }
            Type::Basic(Basic::Object) => {
                (format!("Option<&{}>", self.support("ObjectRef", at)), "reference".to_owned())
            }
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Interface(interface) if interface.kind == InterfaceKind::Abstract => {
                    (["&", &self.rust(ty, at)].concat(), "borrowed".to_owned())
                }
                DefKind::Interface(_) => {
                    (["Option<&", &self.reference(*id, at), ">"].concat(), "reference".to_owned())
                }
                DefKind::Enum(_) | DefKind::Bitmask(_) => (self.rust(ty, at), "value".to_owned()),
                _ => (["&", &self.rust(ty, at)].concat(), "borrowed".to_owned()),
            },
            _ => (self.rust(ty, at), "value".to_owned()),
        }
    }

    /// Octets and numbers are borrowed from the message.
    fn sequence_mode(&self, element: &Type, at: &Place) -> String {
        match self.model.unaliased(element) {
            Type::Basic(Basic::Octet | Basic::Char | Basic::UInt8) => "octets".to_owned(),
            Type::Basic(
                number @ (Basic::Short
                | Basic::UShort
                | Basic::Long
                | Basic::ULong
                | Basic::LongLong
                | Basic::ULongLong
                | Basic::Float
                | Basic::Double),
            ) => ["numbers(", &self.basic(*number, at), ")"].concat(),
            _ => "sequence".to_owned(),
        }
    }

    pub(super) fn basic(&self, basic: Basic, at: &Place) -> String {
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
            Basic::Object => return format!("Option<{}>", self.support("ObjectRef", at)),
            Basic::Any => return self.support("Any", at),
            Basic::TypeCode => return self.support("TypeCode", at),
            Basic::ValueBase => return self.support("ValueBase", at), // only ever behind a handle
        };
        name.to_owned()
    }

    /// What stands inside the `Option` for an interface: its reference; a local interface has none, so the
    /// object itself.
    fn reference(&self, id: DefId, at: &Place) -> String {
        match &self.model.get(id).kind {
            DefKind::Interface(interface) if interface.kind == InterfaceKind::Local => {
                format!("::std::sync::Arc<dyn {}>", self.path(id, at))
            }
            _ => self.path_to(id, &self.names.of(id).reference, at),
        }
    }

    /// A name of the support module.
    pub(super) fn support(&self, name: &str, at: &Place) -> String {
        // At the top of a file there is no `use`: several files may be included side by side.
        let support = if at.0.is_empty() { self.config.support_path() } else { "g" };
        [support, "::", name].concat()
    }

    /// The path to a definition.
    pub(super) fn path(&self, id: DefId, at: &Place) -> String {
        self.path_to(id, &self.names.of(id).own, at)
    }

    /// The path to something called `name` that stands beside the definition.
    pub(super) fn path_to(&self, id: DefId, name: &str, at: &Place) -> String {
        let home = self.home(id);
        let mut whole = String::with_capacity(name.len() + 16);
        let modules = match self.config.external_of(self.model, id) {
            Some(path) => {
                whole.push_str(path);
                whole.push_str("::");
                home.as_slice()
            }
            None => {
                let shared = home.iter().zip(&at.0).take_while(|(a, b)| a == b).count();
                (shared..at.0.len()).for_each(|_| whole.push_str("super::"));
                &home[shared..]
            }
        };
        for module in modules {
            whole.push_str(module);
            whole.push_str("::");
        }
        whole.push_str(name);
        whole
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

/// For types that `unsupported` has refused before lowering.
fn unreachable_type() -> String {
    "()".to_owned()
}
