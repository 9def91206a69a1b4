//! A walk over types and all their parts.
//!
//! The walk neither recurses nor visits a type twice. A peer's TypeCode may nest as deep as it is long, and
//! has far more paths through it than bytes, so a walk along every path would never end.

use std::collections::HashSet;
use std::hash::Hash;

use super::TypeCode;
use super::node::{Shape, TypeKey, TypeRef};

/// Types that are still to be visited, each once per note that it is added with.
///
/// The caller decides for each type whether its parts are walked too, so a walk can end at named types. Two
/// types are the same here if they are one in memory, whatever their ids. Work and memory are proportional to
/// the types that were added, and never to the paths through them.
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
    /// All types that were added, in order. Visited types stay, so that no other type can get their keys.
    types: Vec<(TypeCode, N)>,
    next: usize,
    seen: HashSet<(TypeKey, N)>,
}

impl TypeWalk {
    /// A walk that starts at one type.
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
    /// Adds a type, unless it has been added with this note before.
    pub fn add(&mut self, type_code: &TypeCode, note: N) {
        self.add_ref(type_code.as_type_ref(), note);
    }

    /// Adds the parts of a type: the element of a sequence or array, the type behind a typedef, the content
    /// of a box, discriminators, members, and the base of a value type. Nothing for types without parts.
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

    /// The next type and its note, in the order of their addition. `None` when all types have been visited.
    pub fn next_type(&mut self) -> Option<(TypeCode, N)> {
        let next = self.types.get(self.next)?.clone();
        self.next += 1;
        Some(next)
    }

    /// How many types have been added so far. A type counts once per note.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether no type has been added.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    fn add_ref(&mut self, ty: TypeRef<'_>, note: N) {
        if self.seen.insert((ty.key(), note)) {
            self.types.push((ty.to_type_code(), note));
        }
    }
}
