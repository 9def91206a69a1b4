//! The operations of the standard's `TypeCode`: questions about a type (CORBA 3.3 part 1, 8.11.1).

use std::fmt;

use super::node::{Members, Shape, TypeRef};
use super::{TcKind, TypeCode, ValueModifier, Visibility};

/// The error for a question that does not fit the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeCodeError {
    /// The operation is not for this kind: the standard's `BadKind`.
    BadKind(TcKind),
    /// The index is not below the number of members: the standard's `Bounds`.
    Bounds {
        /// The index that was asked for.
        index: u32,
        /// The number of members.
        count: u32,
    },
}

impl fmt::Display for TypeCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeCodeError::BadKind(kind) => write!(f, "a type of kind {kind:?} has no such parameter"),
            TypeCodeError::Bounds { index, count } => {
                write!(f, "member {index} of a type that has {count}")
            }
        }
    }
}

impl std::error::Error for TypeCodeError {}

use TypeCodeError::{BadKind, Bounds};

impl TypeCode {
    /// The kind. [`TcKind::Null`] for a type that is not built yet ([`TypeCode::recursive`]).
    pub fn kind(&self) -> TcKind {
        self.as_type_ref().kind()
    }

    /// The repository id; empty if the sender omitted it. Object references, structs, unions, enums,
    /// typedefs, exceptions, values, value boxes, native types and all sorts of interfaces have one.
    pub fn id(&self) -> Result<&str, TypeCodeError> {
        self.id_and_name().map(|(id, _)| id)
    }

    /// The simple name; empty if the sender omitted it. For the kinds that [`TypeCode::id`] lists.
    pub fn name(&self) -> Result<&str, TypeCodeError> {
        self.id_and_name().map(|(_, name)| name)
    }

    /// The number of members of a struct, exception, union, enum or value. A union counts a case with two
    /// labels twice.
    pub fn member_count(&self) -> Result<u32, TypeCodeError> {
        match self.shape() {
            Shape::Enum { enumerators, .. } => Ok(enumerators.len() as u32),
            shape => Ok(members(shape)?.len() as u32),
        }
    }

    /// The name of a member or enumerator.
    pub fn member_name(&self, index: u32) -> Result<&str, TypeCodeError> {
        match self.shape() {
            Shape::Enum { enumerators, .. } => {
                enumerators.get(index as usize).ok_or(Bounds { index, count: enumerators.len() as u32 })
            }
            shape => member(members(shape)?, index).map(|(name, _)| name),
        }
    }

    /// The type of a member of a struct, exception, union or value.
    pub fn member_type(&self, index: u32) -> Result<TypeCode, TypeCodeError> {
        member(members(self.shape())?, index).map(|(_, member)| member.to_type_code())
    }

    /// The label of a union's case as a number; `None` for the default case. Characters are their codes,
    /// booleans 0 and 1, enumerators their positions, and labels of `unsigned long long` their bits.
    pub fn member_label(&self, index: u32) -> Result<Option<i64>, TypeCodeError> {
        match self.shape() {
            Shape::Union { default, cases, .. } => {
                member(cases, index)?;
                Ok(if default == Some(index) { None } else { Some(cases.label(index as usize)) })
            }
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// Whether a state member of a value is public.
    pub fn member_visibility(&self, index: u32) -> Result<Visibility, TypeCodeError> {
        match self.shape() {
            Shape::Value { members, .. } => {
                member(members, index)?;
                Ok(members.visibility(index as usize))
            }
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The type of a union's discriminator.
    pub fn discriminator_type(&self) -> Result<TypeCode, TypeCodeError> {
        match self.shape() {
            Shape::Union { discriminator, .. } => Ok(discriminator.to_type_code()),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The index of a union's default case; `None` for the standard's -1.
    pub fn default_index(&self) -> Result<Option<u32>, TypeCodeError> {
        match self.shape() {
            Shape::Union { default, .. } => Ok(default),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The length of an array, or the bound of a string or sequence; 0 means no bound.
    pub fn length(&self) -> Result<u32, TypeCodeError> {
        match self.shape() {
            Shape::String { bound } | Shape::WString { bound } | Shape::Sequence { bound, .. } => Ok(bound),
            Shape::Array { length, .. } => Ok(length),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The element type of a sequence or array, the type behind a typedef, or the content type of a value
    /// box.
    pub fn content_type(&self) -> Result<TypeCode, TypeCodeError> {
        match self.shape() {
            Shape::Sequence { element: content, .. }
            | Shape::Array { element: content, .. }
            | Shape::Alias { original: content, .. }
            | Shape::ValueBox { content, .. } => Ok(content.to_type_code()),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The number of decimal digits of a `fixed`, 1 to 31.
    pub fn fixed_digits(&self) -> Result<u16, TypeCodeError> {
        match self.shape() {
            Shape::Fixed { digits, .. } => Ok(digits),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// How many digits of a `fixed` are after the point; negative for trailing zeros before it.
    pub fn fixed_scale(&self) -> Result<i16, TypeCodeError> {
        match self.shape() {
            Shape::Fixed { scale, .. } => Ok(scale),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The modifier in the declaration of a value type.
    pub fn type_modifier(&self) -> Result<ValueModifier, TypeCodeError> {
        match self.shape() {
            Shape::Value { modifier, .. } => Ok(modifier),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The value type with state that a value type inherits from, if any.
    pub fn concrete_base_type(&self) -> Result<Option<TypeCode>, TypeCodeError> {
        match self.shape() {
            Shape::Value { base, .. } => Ok(base.map(TypeRef::to_type_code)),
            shape => Err(BadKind(shape.kind())),
        }
    }

    /// The type behind all typedefs of this one.
    pub fn resolved(&self) -> TypeCode {
        self.as_type_ref().resolved().to_type_code()
    }

    fn shape(&self) -> Shape<'_> {
        self.as_type_ref().shape()
    }

    fn id_and_name(&self) -> Result<(&str, &str), TypeCodeError> {
        let shape = self.shape();
        shape.id_and_name().ok_or(BadKind(shape.kind()))
    }
}

fn members(shape: Shape<'_>) -> Result<Members<'_>, TypeCodeError> {
    match shape {
        Shape::Struct { members, .. } | Shape::Value { members, .. } => Ok(members),
        Shape::Union { cases, .. } => Ok(cases),
        shape => Err(BadKind(shape.kind())),
    }
}

fn member(members: Members<'_>, index: u32) -> Result<(&str, TypeRef<'_>), TypeCodeError> {
    members.get(index as usize).ok_or(Bounds { index, count: members.len() as u32 })
}
