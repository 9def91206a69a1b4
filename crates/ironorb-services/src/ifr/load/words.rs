//! Maps kinds of IDL definitions to the repository's.

use ironorb::Any;
use ironorb::ifr::corba::{AttributeMode, OperationMode, PrimitiveKind};
use ironorb_idl::model::{Basic, ConstValue, Constant, DefId, DefKind, InterfaceKind, Type};

use crate::ifr::record::{Attribute, Body, DefinitionNumber, Operation, Value};

/// Whether the repository has an object for this kind of definition.
pub(super) fn has_record(kind: &DefKind) -> bool {
    !matches!(kind, DefKind::Enumerator { .. } | DefKind::Flag { .. } | DefKind::Annotation(_))
}

pub(super) fn items(kind: &DefKind) -> &[DefId] {
    match kind {
        DefKind::Module(module) => &module.items,
        DefKind::Interface(interface) => &interface.items,
        DefKind::Value(value) => &value.items,
        DefKind::Struct(s) | DefKind::Exception(s) => &s.items,
        DefKind::Union(u) => &u.items,
        _ => &[],
    }
}

/// Whether a definition is declared and not defined in the translation unit. The store's own definition then
/// counts.
pub(super) fn is_only_declared(kind: &DefKind) -> bool {
    match kind {
        DefKind::Interface(interface) => !interface.defined,
        DefKind::Value(value) => !value.defined,
        DefKind::Struct(s) => !s.defined,
        DefKind::Union(u) => !u.defined,
        _ => false,
    }
}

/// Whether no other definition can refer to this kind.
pub(super) fn is_leaf(body: &Body) -> bool {
    matches!(
        body,
        Body::Attribute { .. } | Body::Operation { .. } | Body::Constant { .. } | Body::ValueMember { .. }
    )
}

/// The type of a constant. A `fixed` type gets the digits and scale of the value.
pub(super) fn digits_of(constant: &Constant) -> Type {
    let (Type::Fixed { spec: None }, ConstValue::Fixed(text)) = (&constant.ty, &constant.value) else {
        return constant.ty.clone();
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches(['-', '+', '0']);
    let digits = u16::try_from(whole.len() + fraction.len()).unwrap_or(u16::MAX).max(1);
    Type::Fixed { spec: Some((digits, i16::try_from(fraction.len()).unwrap_or(i16::MAX))) }
}

/// An empty definition of this kind, before it is filled in.
pub(super) fn empty(kind: &DefKind) -> Body {
    match kind {
        DefKind::Module(_) => Body::Module {},
        DefKind::Interface(interface) => match interface.kind {
            InterfaceKind::Remote => Body::Interface { bases: Vec::new() },
            InterfaceKind::Abstract => Body::AbstractInterface { bases: Vec::new() },
            InterfaceKind::Local => Body::LocalInterface { bases: Vec::new() },
        },
        DefKind::Operation(_) => Body::Operation {
            operation: Operation {
                result: NULL,
                mode: OperationMode::OpNormal,
                parameters: Vec::new(),
                exceptions: Vec::new(),
                contexts: Vec::new(),
            },
        },
        DefKind::Attribute(_) => Body::Attribute {
            attribute: Attribute {
                ty: NULL,
                mode: AttributeMode::AttrNormal,
                get_exceptions: Vec::new(),
                set_exceptions: Vec::new(),
            },
        },
        DefKind::Struct(_) => Body::Struct { members: Vec::new() },
        DefKind::Exception(_) => Body::Exception { members: Vec::new() },
        DefKind::Union(_) => Body::Union { discriminator: NULL, cases: Vec::new() },
        DefKind::Enum(_) => Body::Enum { enumerators: Vec::new() },
        DefKind::Constant(_) => Body::Constant { ty: NULL, value: Any::default() },
        DefKind::Value(value) => Body::Value {
            value: Value {
                is_abstract: value.is_abstract,
                is_custom: value.custom,
                is_truncatable: value.truncatable,
                base: Vec::new(),
                abstract_bases: Vec::new(),
                supported: Vec::new(),
                initializers: Vec::new(),
            },
        },
        DefKind::ValueBox(_) => Body::ValueBox { original: NULL },
        DefKind::Native => Body::Native {},
        _ => Body::Alias { original: NULL },
    }
}

pub(super) fn basic(ty: Basic) -> PrimitiveKind {
    match ty {
        Basic::Short => PrimitiveKind::PkShort,
        Basic::UShort => PrimitiveKind::PkUshort,
        Basic::Long => PrimitiveKind::PkLong,
        Basic::ULong => PrimitiveKind::PkUlong,
        Basic::LongLong => PrimitiveKind::PkLonglong,
        Basic::ULongLong => PrimitiveKind::PkUlonglong,
        Basic::Float => PrimitiveKind::PkFloat,
        Basic::Double => PrimitiveKind::PkDouble,
        Basic::LongDouble => PrimitiveKind::PkLongdouble,
        Basic::Char => PrimitiveKind::PkChar,
        Basic::WChar => PrimitiveKind::PkWchar,
        Basic::Boolean => PrimitiveKind::PkBoolean,
        Basic::Octet | Basic::Int8 | Basic::UInt8 => PrimitiveKind::PkOctet,
        Basic::Any => PrimitiveKind::PkAny,
        Basic::Object => PrimitiveKind::PkObjref,
        Basic::ValueBase => PrimitiveKind::PkValueBase,
        Basic::TypeCode => PrimitiveKind::PkTypeCode,
    }
}

/// The version in a repository id of the IDL format.
pub(super) fn version_of(id: &str) -> &str {
    match id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')) {
        Some((_, version)) if !version.is_empty() => version,
        _ => "1.0",
    }
}

/// The repository id of a state member, for which IDL defines none.
pub(super) fn within(id: &str, name: &str) -> String {
    match id.rsplit_once(':') {
        Some((scope, version)) if id.starts_with("IDL:") => format!("{scope}/{name}:{version}"),
        _ => format!("{id}/{name}"),
    }
}

/// A placeholder for a type that is filled in later.
pub(super) const NULL: DefinitionNumber = DefinitionNumber::primitive(PrimitiveKind::PkNull);
