//! TypeCodes that are created at run time: the standard's `create_…_tc` operations of the ORB (CORBA 3.3 part
//! 1, 8.11.3).
//!
//! They need no ORB here. [`TypeCode::recursive`] creates a placeholder for a type inside itself, by its
//! repository id. When the type with that id is created around the placeholder, it replaces the placeholder.

use std::collections::HashSet;
use std::fmt;

use super::copy::Copying;
use super::node::{Arena, Child, Member, Node, Shape};
use super::{TcKind, TypeCode, TypeDef, ValueModifier, Visibility, recursion};
use crate::cdr::NESTING_MAX;
use crate::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use crate::fixed::{DIGITS_MAX, is_legal};
use crate::minor::{MinorCode, OMG_VMCID};

/// A case of a union that is to be created.
#[derive(Debug, Clone)]
pub struct UnionCase {
    /// The label as a number (see [`TypeCode::member_label`]); `None` for the default case.
    pub label: Option<i64>,
    /// The member's name. Adjacent cases with one name and type are labels of one member.
    pub name: String,
    /// The member's type.
    pub type_code: TypeCode,
}

/// A state member of a value type that is to be created.
#[derive(Debug, Clone)]
pub struct ValueMember {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_code: TypeCode,
    /// Whether it is public.
    pub visibility: Visibility,
}

/// Why a TypeCode cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadType {
    /// A name is not an IDL identifier.
    Name,
    /// A repository id has no format before its first colon.
    Id,
    /// Two members have the same name, ignoring case.
    DuplicateName,
    /// A type of this kind cannot be inside another.
    Content(TcKind),
    /// A union cannot switch on a type of this kind.
    Discriminator(TcKind),
    /// A label is not a value of the discriminator's type.
    Label(i64),
    /// Two cases have the same label, or there are two default cases.
    DuplicateLabel,
    /// A `fixed` must have 1 to 31 digits, and at most as many after the point.
    Digits,
    /// The type would contain itself in a way that has no finite values.
    Recursion,
    /// Types are nested deeper than the limit of 128.
    TooDeep,
}

impl fmt::Display for BadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadType::Name => f.write_str("a name is no IDL identifier"),
            BadType::Id => f.write_str("a repository id has no format before a colon"),
            BadType::DuplicateName => f.write_str("two members have one name"),
            BadType::Content(kind) => write!(f, "a type of kind {kind:?} cannot be inside another"),
            BadType::Discriminator(kind) => write!(f, "a union cannot switch on a type of kind {kind:?}"),
            BadType::Label(label) => write!(f, "{label} is no value of the discriminator's type"),
            BadType::DuplicateLabel => f.write_str("two cases of a union have one label"),
            BadType::Digits => write!(f, "a fixed has 1 to {DIGITS_MAX} digits, and no more after the point"),
            BadType::Recursion => f.write_str("the type contains itself without an end"),
            BadType::TooDeep => f.write_str("the type is nested deeper than the limit"),
        }
    }
}

impl std::error::Error for BadType {}

/// The exceptions and minor codes that the standard specifies for the operations of the ORB.
impl From<BadType> for SystemException {
    #[cold]
    fn from(error: BadType) -> Self {
        use SystemExceptionKind as S;
        let (kind, minor) = match error {
            BadType::Name => (S::BadParam, 15),
            BadType::Id => (S::BadParam, 16),
            BadType::DuplicateName => (S::BadParam, 17),
            BadType::DuplicateLabel => (S::BadParam, 18),
            BadType::Label(_) => (S::BadParam, 19),
            BadType::Discriminator(_) => (S::BadParam, 20),
            BadType::Content(_) | BadType::Recursion => (S::BadTypecode, 2),
            BadType::Digits => (S::BadParam, 0),
            BadType::TooDeep => (S::ImpLimit, 0),
        };
        let minor = if minor == 0 { MinorCode::NONE } else { MinorCode(OMG_VMCID | minor) };
        SystemException::new(kind, minor, CompletionStatus::No).with_detail(error.to_string())
    }
}

impl TypeCode {
    /// A string; bound 0 means none.
    pub fn create_string(bound: u32) -> TypeCode {
        one(Node::Simple(TypeDef::String { bound }))
    }

    /// A wide string; bound 0 means none.
    pub fn create_wstring(bound: u32) -> TypeCode {
        one(Node::Simple(TypeDef::WString { bound }))
    }

    /// A decimal number of 1 to 31 digits, of which `scale` are after the point. A negative scale means as
    /// many zeros before it.
    pub fn create_fixed(digits: u16, scale: i16) -> Result<TypeCode, BadType> {
        if !is_legal(digits, scale) {
            return Err(BadType::Digits);
        }
        Ok(one(Node::Simple(TypeDef::Fixed { digits, scale })))
    }

    /// A sequence; bound 0 means none.
    pub fn create_sequence(element: &TypeCode, bound: u32) -> Result<TypeCode, BadType> {
        content(element)?;
        Ok(one(Node::Sequence { element: Child::Other(element.clone()), bound }))
    }

    /// An array of one dimension.
    pub fn create_array(element: &TypeCode, length: u32) -> Result<TypeCode, BadType> {
        content(element)?;
        Ok(one(Node::Array { element: Child::Other(element.clone()), length }))
    }

    /// A `typedef`.
    pub fn create_alias(id: &str, name: &str, original: &TypeCode) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        // IDL allows a typedef of a native type and of an interface. Everything else is checked where the
        // alias is used.
        if !matches!(original.kind(), TcKind::Native) {
            content(original)?;
        }
        Ok(one(Node::Alias { id, name, original: Child::Other(original.clone()) }))
    }

    /// An enum.
    pub fn create_enum(id: &str, name: &str, enumerators: &[&str]) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        enumerators.iter().try_for_each(|name| check_name(name))?;
        distinct(enumerators.iter().copied())?;
        Ok(one(Node::Enum { id, name, enumerators: enumerators.iter().map(|&name| name.into()).collect() }))
    }

    /// A struct; members by name and type.
    pub fn create_struct(id: &str, name: &str, members: &[(&str, TypeCode)]) -> Result<TypeCode, BadType> {
        TypeCode::structure(TcKind::Struct, id, name, members)
    }

    /// An exception; members by name and type.
    pub fn create_exception(id: &str, name: &str, members: &[(&str, TypeCode)]) -> Result<TypeCode, BadType> {
        TypeCode::structure(TcKind::Except, id, name, members)
    }

    fn structure(
        kind: TcKind,
        id: &str,
        name: &str,
        members: &[(&str, TypeCode)],
    ) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        distinct(members.iter().map(|member| member.0))?;
        let members = members.iter().map(|(name, member)| {
            content(member)?;
            Ok(new_member(name, member, 0, Visibility::Private))
        });
        enclose(Node::Struct { kind, id, name, members: members.collect::<Result<_, _>>()? })
    }

    /// A union.
    pub fn create_union(
        id: &str,
        name: &str,
        discriminator: &TypeCode,
        cases: &[UnionCase],
    ) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        let switch = discriminator.as_type_ref().resolved().shape();
        let range = labels(switch).ok_or(BadType::Discriminator(switch.kind()))?;
        let mut seen = HashSet::new();
        let mut default = None;
        let mut members = Vec::with_capacity(cases.len());
        let mut names = Vec::with_capacity(cases.len());
        for (index, case) in cases.iter().enumerate() {
            content(&case.type_code)?;
            match case.label {
                Some(label) if !range.contains(&label) => return Err(BadType::Label(label)),
                Some(label) if !seen.insert(label) => return Err(BadType::DuplicateLabel),
                None if default.is_some() => return Err(BadType::DuplicateLabel),
                None => default = Some(index as u32),
                Some(_) => {}
            }
            if index == 0 || cases[index - 1].name != case.name {
                names.push(case.name.as_str());
            }
            members.push(new_member(
                &case.name,
                &case.type_code,
                case.label.unwrap_or(0),
                Visibility::Private,
            ));
        }
        distinct(names.into_iter())?;
        let discriminator = Child::Other(discriminator.clone());
        enclose(Node::union(id, name, discriminator, default, members.into()))
    }

    /// A value type. Its base, if any, is a value type with state.
    pub fn create_value(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&TypeCode>,
        members: &[ValueMember],
    ) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        if let Some(base) = base
            && !matches!(
                base.as_type_ref().resolved().shape(),
                Shape::Value { .. } | Shape::Placeholder { .. }
            )
        {
            return Err(BadType::Content(base.kind()));
        }
        distinct(members.iter().map(|member| member.name.as_str()))?;
        let members = members.iter().map(|member| {
            content(&member.type_code)?;
            Ok(new_member(&member.name, &member.type_code, 0, member.visibility))
        });
        let (kind, base) = (TcKind::Value, base.map(|base| Child::Other(base.clone())));
        enclose(Node::Value { kind, id, name, modifier, base, members: members.collect::<Result<_, _>>()? })
    }

    /// A boxed value.
    pub fn create_value_box(id: &str, name: &str, boxed: &TypeCode) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        content(boxed)?;
        enclose(Node::ValueBox { id, name, content: Child::Other(boxed.clone()) })
    }

    /// A reference to an interface.
    pub fn create_interface(id: &str, name: &str) -> Result<TypeCode, BadType> {
        TypeCode::create_named(TcKind::ObjRef, id, name)
    }

    /// An abstract interface.
    pub fn create_abstract_interface(id: &str, name: &str) -> Result<TypeCode, BadType> {
        TypeCode::create_named(TcKind::AbstractInterface, id, name)
    }

    /// A local interface.
    pub fn create_local_interface(id: &str, name: &str) -> Result<TypeCode, BadType> {
        TypeCode::create_named(TcKind::LocalInterface, id, name)
    }

    /// A native type.
    pub fn create_native(id: &str, name: &str) -> Result<TypeCode, BadType> {
        TypeCode::create_named(TcKind::Native, id, name)
    }

    fn create_named(kind: TcKind, id: &str, name: &str) -> Result<TypeCode, BadType> {
        let (id, name) = named(id, name)?;
        Ok(one(Node::Named { kind, id, name }))
    }

    /// A group of types that contain one another. Each was created with placeholders
    /// ([`TypeCode::recursive`]) for itself and for other types of the group. Returns the types in order,
    /// with the placeholders replaced. The standard has no such operation. If such types were created one
    /// around the other, their size would grow with the number of paths through them.
    ///
    /// If several types have one id, placeholders with that id stand for the first. Placeholders with other
    /// ids stay. [`BadType::Recursion`] if one of the types contains itself in a way that has no finite
    /// values.
    pub fn create_group(types: &[TypeCode]) -> Result<Vec<TypeCode>, BadType> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let mut copying = Copying::binding(types.iter().map(|ty| ty.id().unwrap_or_default()));
        for (index, ty) in types.iter().enumerate() {
            copying.fill(index as u32, ty.as_type_ref());
        }
        copying.run();
        if !recursion::is_legal(&copying.nodes) {
            return Err(BadType::Recursion);
        }
        let first = Arena::seal(copying.nodes, Child::Here(0));
        let at = |index| first.beside(index);
        Ok((0..types.len() as u32).map(at).collect())
    }

    /// A placeholder for the struct, exception, union or value with this id, for use inside its own members.
    /// The standard's `create_recursive_tc`.
    ///
    /// Until the type with this id has been created around it, a type that contains the placeholder cannot be
    /// sent and equals no other type.
    pub fn recursive(id: &str) -> Result<TypeCode, BadType> {
        let (id, _) = named(id, "")?;
        if id.is_empty() {
            return Err(BadType::Id);
        }
        Ok(one(Node::placeholder(id)))
    }
}

fn one(node: Node) -> TypeCode {
    Arena::seal(vec![node], Child::Here(0))
}

/// Creates the type of a node. Placeholders with its id lead back to it.
fn enclose(node: Node) -> Result<TypeCode, BadType> {
    let shell = one(node);
    if !shell.as_type_ref().is_open() {
        return Ok(shell);
    }
    let id = shell.id().unwrap_or_default();
    let mut copying = Copying::binding(std::iter::once(id));
    copying.fill(0, shell.as_type_ref());
    copying.run();
    if !recursion::is_legal(&copying.nodes) {
        return Err(BadType::Recursion);
    }
    Ok(Arena::seal(copying.nodes, Child::Here(0)))
}

fn new_member(name: &str, type_code: &TypeCode, label: i64, visibility: Visibility) -> Member {
    Member { name: name.into(), type_code: Child::Other(type_code.clone()), label, visibility }
}

/// Whether a type may be a member or element.
fn content(type_code: &TypeCode) -> Result<(), BadType> {
    if type_code.as_type_ref().below().0 >= NESTING_MAX {
        return Err(BadType::TooDeep);
    }
    match type_code.as_type_ref().resolved().shape() {
        Shape::Placeholder { .. } => Ok(()),
        shape => match shape.kind() {
            kind @ (TcKind::Null | TcKind::Void | TcKind::Except | TcKind::Native) => {
                Err(BadType::Content(kind))
            }
            _ => Ok(()),
        },
    }
}

fn named(id: &str, name: &str) -> Result<(Box<str>, Box<str>), BadType> {
    if !id.is_empty() && (!id.contains(':') || id.contains('\0')) {
        return Err(BadType::Id);
    }
    check_name(name)?;
    Ok((id.into(), name.into()))
}

/// Names may be empty. Any other name is an identifier.
fn check_name(name: &str) -> Result<(), BadType> {
    let mut chars = name.chars();
    let legal = chars.next().is_none_or(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if legal { Ok(()) } else { Err(BadType::Name) }
}

fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), BadType> {
    let mut seen = HashSet::new();
    for name in names {
        check_name(name)?;
        if !name.is_empty() && !seen.insert(name.to_ascii_lowercase()) {
            return Err(BadType::DuplicateName);
        }
    }
    Ok(())
}

/// The labels of a union whose discriminator has this shape.
pub(crate) fn labels(switch: Shape<'_>) -> Option<std::ops::RangeInclusive<i64>> {
    Some(match switch {
        Shape::Enum { enumerators, .. } => 0..=enumerators.len() as i64 - 1,
        Shape::Basic(kind) => match kind {
            TcKind::Boolean => 0..=1,
            TcKind::Char | TcKind::Octet => 0..=i64::from(u8::MAX),
            TcKind::WChar => 0..=i64::from(u32::from(char::MAX)),
            TcKind::Short => i64::from(i16::MIN)..=i64::from(i16::MAX),
            TcKind::UShort => 0..=i64::from(u16::MAX),
            TcKind::Long => i64::from(i32::MIN)..=i64::from(i32::MAX),
            TcKind::ULong => 0..=i64::from(u32::MAX),
            TcKind::LongLong | TcKind::ULongLong => i64::MIN..=i64::MAX,
            _ => return None,
        },
        _ => return None,
    })
}
