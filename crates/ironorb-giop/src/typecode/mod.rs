//! TypeCodes: types as values (CORBA 3.3 part 1, 8.11; on the wire part 2, 9.3.5).
//!
//! A [`TypeCode`] is a constant of generated code ([`TypeDef`]) or a node of a shared arena that was read
//! from a peer or built at run time; only this module knows which. Nothing here handles values:
//! [`any`](crate::any) does. A recursive type refers to itself by index, so no type owns itself. Every walk
//! over a type is bounded by its size, never by the number of paths through it.

mod access;
mod build;
mod compare;
mod copy;
mod definition;
mod kind;
mod node;
mod read;
mod recursion;
mod text;
mod typed;
mod walk;
mod write;

use std::sync::Arc;

pub use access::TypeCodeError;
pub use build::{BadType, UnionCase, ValueMember};
pub use definition::{TypeDef, ValueModifier, Visibility};
pub use kind::TcKind;
pub use typed::{Typed, TypedNillable};
pub use walk::TypeWalk;

pub(crate) use build::labels;
pub(crate) use node::{ALIASES_MAX, Arena, Members, Shape, TypeKey, TypeRef};
pub(crate) use write::write_type;

/// A type as a value: IDL's `CORBA::TypeCode`.
///
/// Cheap to clone: a pointer to a constant, or a counted pointer to types that were read or built at run
/// time. `==` is the standard's `equal`.
#[derive(Clone)]
pub struct TypeCode(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static TypeDef),
    Shared(Arc<Arena>, u32),
}

impl TypeCode {
    /// The TypeCode of a constant description.
    #[inline]
    pub const fn of(definition: &'static TypeDef) -> TypeCode {
        TypeCode(Repr::Static(definition))
    }

    /// The TypeCode of a Rust type.
    #[inline]
    pub const fn for_type<T: Typed + ?Sized>() -> TypeCode {
        TypeCode::of(T::TYPE)
    }

    fn shared(arena: Arc<Arena>, index: u32) -> TypeCode {
        debug_assert!((index as usize) < arena.nodes.len());
        TypeCode(Repr::Shared(arena, index))
    }

    /// A type of this type's arena.
    fn beside(&self, index: u32) -> TypeCode {
        match &self.0 {
            Repr::Static(_) => self.clone(),
            Repr::Shared(arena, _) => TypeCode::shared(arena.clone(), index),
        }
    }

    #[inline]
    pub(crate) fn as_type_ref(&self) -> TypeRef<'_> {
        match &self.0 {
            Repr::Static(definition) => TypeRef::Static(definition),
            Repr::Shared(arena, index) => TypeRef::Shared(arena, *index),
        }
    }
}

/// `tk_null`
impl Default for TypeCode {
    fn default() -> Self {
        TypeCode::of(&TypeDef::Null)
    }
}

#[cfg(test)]
mod tests;
