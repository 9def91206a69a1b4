//! A walk over types and all that they are made of.
//!
//! Nothing here recurses or takes a type twice: a peer's TypeCode may nest as deep as it is long, and has far more
//! ways through it than bytes, so a walk that follows each of them never ends.

use std::collections::HashSet;
use std::hash::Hash;

use super::TypeCode;
use super::node::{Shape, TypeKey, TypeRef};

/// Types that are still to be looked at, each once for each note that it is added with.
///
/// The caller decides for each type whether what it is made of is walked too, so a walk can end at types with names. Two
/// types are the same here if they are one in memory, whatever their ids: work and memory are in proportion to the types
/// that were added, and never to the ways through them.
///
/// ```
/// use ironorb_giop::typecode::{TcKind, TypeCode, TypeWalk};
///
/// let names = TypeCode::create_sequence(&TypeCode::create_string(0), 0)?;
/// let mut walk = TypeWalk::of(&names);
/// let mut kinds = Vec::new();
/// while let Some((type_code, ())) = walk.next_type() {
///     kinds.push(type_code.kind());
///     walk.add_parts(&type_code, ());
/// }
/// assert_eq!(kinds, [TcKind::Sequence, TcKind::String]);
/// # Ok::<(), ironorb_giop::typecode::BadType>(())
/// ```
#[derive(Debug, Clone)]
pub struct TypeWalk<N = ()> {
    /// All that were added, in order. Those that were looked at stay, so that no other type can come to have their keys.
    types: Vec<(TypeCode, N)>,
    next: usize,
    seen: HashSet<(TypeKey, N)>,
}

impl TypeWalk {
    /// A walk that begins at one type.
    pub fn of(type_code: &TypeCode) -> Self {
        let mut walk = TypeWalk::default();
        walk.add(type_code, ());
        walk
    }
}

impl<N> Default for TypeWalk<N> {
    fn default() -> Self {
        TypeWalk { types: Vec::new(), next: 0, seen: HashSet::new() }
    }
}

impl<N: Copy + Eq + Hash> TypeWalk<N> {
    /// Adds a type, unless it was added with this note before.
    pub fn add(&mut self, type_code: &TypeCode, note: N) {
        self.add_ref(type_code.as_type_ref(), note);
    }

    /// Adds what a type is made of: the element of a sequence or array, the type behind a typedef, what is in a box,
    /// discriminators, members, and the base of a value type. Nothing for types that have no parts.
    pub fn add_parts(&mut self, type_code: &TypeCode, note: N) {
        let ty = type_code.as_type_ref();
        match ty.shape() {
            Shape::Sequence { element: part, .. }
            | Shape::Array { element: part, .. }
            | Shape::Alias { original: part, .. }
            | Shape::ValueBox { content: part, .. } => self.add_ref(part, note),
            Shape::Struct { members, .. } => members.iter().for_each(|(_, part)| self.add_ref(part, note)),
            Shape::Union { discriminator, cases, .. } => {
                self.add_ref(discriminator, note);
                cases.iter().for_each(|(_, part)| self.add_ref(part, note));
            }
            Shape::Value { base, members, .. } => {
                base.into_iter().for_each(|part| self.add_ref(part, note));
                members.iter().for_each(|(_, part)| self.add_ref(part, note));
            }
            Shape::Basic(_)
            | Shape::String { .. }
            | Shape::WString { .. }
            | Shape::Fixed { .. }
            | Shape::Named { .. }
            | Shape::Placeholder { .. }
            | Shape::Enum { .. } => {}
        }
    }

    /// The next type that was added and its note, in the order in which they were; none when all have been looked at.
    pub fn next_type(&mut self) -> Option<(TypeCode, N)> {
        let next = self.types.get(self.next)?.clone();
        self.next += 1;
        Some(next)
    }

    /// How many types were added so far, with each note.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    fn add_ref(&mut self, ty: TypeRef<'_>, note: N) {
        if self.seen.insert((ty.key(), note)) {
            self.types.push((ty.to_type_code(), note));
        }
    }
}
