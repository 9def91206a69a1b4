//! One view of all types: of statics in generated code, and of nodes in arenas that are created at run time.
//!
//! All code that walks types uses [`TypeRef`] and [`Shape`], which borrow and copy nothing.

use std::sync::Arc;

use super::{TcKind, TypeCode, TypeDef, ValueModifier, Visibility};

/// Types created at run time. A recursion is an index into the arena, so nothing here owns itself.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(super) nodes: Box<[Node]>,
    /// The most arenas below this one. Bounds the stack that dropping takes.
    pub(super) depth: u16,
    /// Whether the arena contains a placeholder for a type that is not built yet.
    pub(super) open: bool,
}

/// One type of an arena.
#[derive(Debug)]
pub(super) enum Node {
    /// A type whose parameters are numbers. Never a type with names.
    Simple(TypeDef),
    Sequence {
        element: Child,
        bound: u32,
    },
    Array {
        element: Child,
        length: u32,
    },
    /// References, native types and the placeholder of a recursive type.
    Named {
        kind: TcKind,
        id: Box<str>,
        name: Box<str>,
    },
    Alias {
        id: Box<str>,
        name: Box<str>,
        original: Child,
    },
    Enum {
        id: Box<str>,
        name: Box<str>,
        enumerators: Box<[Box<str>]>,
    },
    /// Structs and exceptions.
    Struct {
        kind: TcKind,
        id: Box<str>,
        name: Box<str>,
        members: Box<[Member]>,
    },
    Union {
        id: Box<str>,
        name: Box<str>,
        discriminator: Child,
        default: Option<u32>,
        cases: Box<[Member]>,
        /// The cases in the order of their labels, without the default.
        by_label: Box<[u32]>,
    },
    /// Value types and event types.
    Value {
        kind: TcKind,
        id: Box<str>,
        name: Box<str>,
        modifier: ValueModifier,
        base: Option<Child>,
        members: Box<[Member]>,
    },
    ValueBox {
        id: Box<str>,
        name: Box<str>,
        content: Child,
    },
}

/// A member of a struct, a case of a union, a state member of a value.
#[derive(Debug)]
pub(crate) struct Member {
    pub(super) name: Box<str>,
    pub(super) type_code: Child,
    /// The label of a case; 0 elsewhere.
    pub(super) label: i64,
    /// The visibility of a state member; private elsewhere.
    pub(super) visibility: Visibility,
}

/// A part of a type.
#[derive(Debug, Clone)]
pub(crate) enum Child {
    /// A node of the same arena.
    Here(u32),
    /// A static, or a type of an earlier arena.
    Other(TypeCode),
}

/// A borrowed type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TypeRef<'a> {
    Static(&'static TypeDef),
    Shared(&'a Arc<Arena>, u32),
}

/// A type and its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// A type without parameters.
    Basic(TcKind),
    String {
        bound: u32,
    },
    WString {
        bound: u32,
    },
    Fixed {
        digits: u16,
        scale: i16,
    },
    Sequence {
        element: TypeRef<'a>,
        bound: u32,
    },
    Array {
        element: TypeRef<'a>,
        length: u32,
    },
    Named {
        kind: TcKind,
        id: &'a str,
        name: &'a str,
    },
    /// A type that is not built yet; see [`TypeCode::recursive`].
    Placeholder {
        id: &'a str,
    },
    Alias {
        id: &'a str,
        name: &'a str,
        original: TypeRef<'a>,
    },
    Enum {
        id: &'a str,
        name: &'a str,
        enumerators: Names<'a>,
    },
    Struct {
        kind: TcKind,
        id: &'a str,
        name: &'a str,
        members: Members<'a>,
    },
    Union {
        id: &'a str,
        name: &'a str,
        discriminator: TypeRef<'a>,
        default: Option<u32>,
        cases: Members<'a>,
        /// The cases in the order of their labels. Empty for a static, whose cases are searched in order.
        by_label: &'a [u32],
    },
    Value {
        kind: TcKind,
        id: &'a str,
        name: &'a str,
        modifier: ValueModifier,
        base: Option<TypeRef<'a>>,
        members: Members<'a>,
    },
    ValueBox {
        id: &'a str,
        name: &'a str,
        content: TypeRef<'a>,
    },
}

/// The enumerators of an enum.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names<'a> {
    Static(&'static [&'static str]),
    Shared(&'a [Box<str>]),
}

/// The members of a struct, union or value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members<'a> {
    Fields(&'static [(&'static str, &'static TypeDef)]),
    Cases(&'static [(i64, &'static str, &'static TypeDef)]),
    State(&'static [(&'static str, &'static TypeDef, Visibility)]),
    Shared(&'a Arc<Arena>, &'a [Member]),
}

/// The identity of a type, for tables of types: equal keys mean one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeKey(usize, u32);

impl<'a> TypeRef<'a> {
    /// This type as an owned TypeCode.
    pub(crate) fn to_type_code(self) -> TypeCode {
        match self {
            TypeRef::Static(definition) => TypeCode::of(definition),
            TypeRef::Shared(arena, index) => TypeCode::shared(arena.clone(), index),
        }
    }

    pub(crate) fn key(self) -> TypeKey {
        match self {
            TypeRef::Static(definition) => TypeKey(std::ptr::from_ref(definition).addr(), u32::MAX),
            TypeRef::Shared(arena, index) => TypeKey(Arc::as_ptr(arena).addr(), index),
        }
    }

    /// The type's shape and parameters.
    #[inline]
    pub(crate) fn shape(self) -> Shape<'a> {
        match self {
            TypeRef::Static(definition) => Shape::of(definition),
            TypeRef::Shared(arena, index) => arena.nodes[index as usize].shape(arena),
        }
    }

    /// The type behind any typedefs. A chain of more than [`ALIASES_MAX`] ends early: such a type is an alias
    /// of itself, which only a wrong static can be.
    #[inline]
    pub(crate) fn resolved(self) -> TypeRef<'a> {
        self.resolved_shape().0
    }

    /// The type behind any typedefs, and its shape.
    #[inline]
    pub(crate) fn resolved_shape(self) -> (TypeRef<'a>, Shape<'a>) {
        let (ty, shape, _) = self.resolved_counting();
        (ty, shape)
    }

    /// The type behind any typedefs, its shape, and the number of typedefs.
    #[inline]
    pub(crate) fn resolved_counting(mut self) -> (TypeRef<'a>, Shape<'a>, u32) {
        let mut shape = self.shape();
        for aliases in 0..ALIASES_MAX {
            let Shape::Alias { original, .. } = shape else { return (self, shape, aliases) };
            self = original;
            shape = self.shape();
        }
        (self, shape, ALIASES_MAX)
    }

    pub(crate) fn kind(self) -> TcKind {
        self.shape().kind()
    }

    /// How many levels of arenas this type has, and whether any contains placeholders.
    pub(super) fn below(self) -> (u16, bool) {
        match self {
            TypeRef::Static(_) => (0, false),
            TypeRef::Shared(arena, _) => (arena.depth, arena.open),
        }
    }

    /// Whether the type may contain a type that is not built yet.
    pub(super) fn is_open(self) -> bool {
        self.below().1
    }
}

/// The most typedefs in a chain. A type with more has no values.
pub(crate) const ALIASES_MAX: u32 = 512;

impl Arena {
    /// Creates an arena of these nodes, and returns the type that is `top` in it. Types without parts need no
    /// arena.
    pub(super) fn seal(nodes: Vec<Node>, top: Child) -> TypeCode {
        match top {
            Child::Other(type_code) => type_code,
            Child::Here(index) => {
                let (mut depth, mut open) = (0, false);
                for node in &nodes {
                    open |= matches!(node, Node::Named { kind: TcKind::Null, .. });
                    node.children(|child| {
                        if let Child::Other(other) = child {
                            let (below, others) = other.as_type_ref().below();
                            depth = depth.max(below);
                            open |= others;
                        }
                    });
                }
                let arena = Arena { nodes: nodes.into(), depth: depth.saturating_add(1), open };
                TypeCode::shared(Arc::new(arena), index)
            }
        }
    }
}

impl Child {
    #[inline]
    pub(super) fn as_ref<'a>(&'a self, arena: &'a Arc<Arena>) -> TypeRef<'a> {
        match self {
            Child::Here(index) => TypeRef::Shared(arena, *index),
            Child::Other(type_code) => type_code.as_type_ref(),
        }
    }
}

impl Node {
    pub(super) fn union(
        id: Box<str>,
        name: Box<str>,
        discriminator: Child,
        default: Option<u32>,
        cases: Box<[Member]>,
    ) -> Node {
        // A peer's union may have a million cases, and its sequence a million unions.
        let mut by_label: Box<[u32]> =
            (0..cases.len() as u32).filter(|&index| default != Some(index)).collect();
        by_label.sort_by_key(|&index| cases[index as usize].label);
        Node::Union { id, name, discriminator, default, cases, by_label }
    }

    pub(super) fn placeholder(id: Box<str>) -> Node {
        Node::Named { kind: TcKind::Null, id, name: Box::default() }
    }

    #[inline]
    fn shape<'a>(&'a self, arena: &'a Arc<Arena>) -> Shape<'a> {
        match self {
            Node::Simple(definition) => Shape::of(definition),
            Node::Sequence { element, bound } => {
                Shape::Sequence { element: element.as_ref(arena), bound: *bound }
            }
            Node::Array { element, length } => {
                Shape::Array { element: element.as_ref(arena), length: *length }
            }
            Node::Named { kind: TcKind::Null, id, .. } => Shape::Placeholder { id },
            Node::Named { kind, id, name } => Shape::Named { kind: *kind, id, name },
            Node::Alias { id, name, original } => Shape::Alias { id, name, original: original.as_ref(arena) },
            Node::Enum { id, name, enumerators } => {
                Shape::Enum { id, name, enumerators: Names::Shared(enumerators) }
            }
            Node::Struct { kind, id, name, members } => {
                Shape::Struct { kind: *kind, id, name, members: Members::Shared(arena, members) }
            }
            Node::Union { id, name, discriminator, default, cases, by_label } => Shape::Union {
                id,
                name,
                discriminator: discriminator.as_ref(arena),
                default: *default,
                cases: Members::Shared(arena, cases),
                by_label,
            },
            Node::Value { kind, id, name, modifier, base, members } => Shape::Value {
                kind: *kind,
                id,
                name,
                modifier: *modifier,
                base: base.as_ref().map(|base| base.as_ref(arena)),
                members: Members::Shared(arena, members),
            },
            Node::ValueBox { id, name, content } => {
                Shape::ValueBox { id, name, content: content.as_ref(arena) }
            }
        }
    }

    /// Calls `visit` with each part of this type.
    pub(super) fn children(&self, mut visit: impl FnMut(&Child)) {
        match self {
            Node::Simple(_) | Node::Named { .. } | Node::Enum { .. } => {}
            Node::Sequence { element: child, .. }
            | Node::Array { element: child, .. }
            | Node::Alias { original: child, .. }
            | Node::ValueBox { content: child, .. } => visit(child),
            Node::Struct { members, .. } => members.iter().for_each(|member| visit(&member.type_code)),
            Node::Union { discriminator, cases, .. } => {
                visit(discriminator);
                cases.iter().for_each(|case| visit(&case.type_code));
            }
            Node::Value { base, members, .. } => {
                base.iter().for_each(&mut visit);
                members.iter().for_each(|member| visit(&member.type_code));
            }
        }
    }
}

impl Shape<'_> {
    #[inline]
    pub(crate) fn of(definition: &TypeDef) -> Shape<'static> {
        use TypeDef as D;
        Shape::Basic(match *definition {
            D::Null => TcKind::Null,
            D::Void => TcKind::Void,
            D::Short => TcKind::Short,
            D::Long => TcKind::Long,
            D::UShort => TcKind::UShort,
            D::ULong => TcKind::ULong,
            D::LongLong => TcKind::LongLong,
            D::ULongLong => TcKind::ULongLong,
            D::Float => TcKind::Float,
            D::Double => TcKind::Double,
            D::LongDouble => TcKind::LongDouble,
            D::Boolean => TcKind::Boolean,
            D::Char => TcKind::Char,
            D::WChar => TcKind::WChar,
            D::Octet => TcKind::Octet,
            D::Any => TcKind::Any,
            D::TypeCode => TcKind::TypeCode,
            D::Principal => TcKind::Principal,
            D::String { bound } => return Shape::String { bound },
            D::WString { bound } => return Shape::WString { bound },
            D::Fixed { digits, scale } => return Shape::Fixed { digits, scale },
            D::Sequence { element, bound } => {
                return Shape::Sequence { element: TypeRef::Static(element), bound };
            }
            D::Array { element, length } => {
                return Shape::Array { element: TypeRef::Static(element), length };
            }
            D::Alias { id, name, original } => {
                return Shape::Alias { id, name, original: TypeRef::Static(original) };
            }
            D::Enum { id, name, enumerators } => {
                return Shape::Enum { id, name, enumerators: Names::Static(enumerators) };
            }
            D::Struct { id, name, members } => {
                return Shape::Struct { kind: TcKind::Struct, id, name, members: Members::Fields(members) };
            }
            D::Except { id, name, members } => {
                return Shape::Struct { kind: TcKind::Except, id, name, members: Members::Fields(members) };
            }
            D::Union { id, name, discriminator, default, cases } => {
                let discriminator = TypeRef::Static(discriminator);
                let cases = Members::Cases(cases);
                return Shape::Union { id, name, discriminator, default, cases, by_label: &[] };
            }
            D::ObjRef { id, name } => return Shape::Named { kind: TcKind::ObjRef, id, name },
            D::AbstractInterface { id, name } => {
                return Shape::Named { kind: TcKind::AbstractInterface, id, name };
            }
            D::LocalInterface { id, name } => {
                return Shape::Named { kind: TcKind::LocalInterface, id, name };
            }
            D::Native { id, name } => return Shape::Named { kind: TcKind::Native, id, name },
            D::Value { id, name, modifier, base, members } => {
                return Shape::Value {
                    kind: TcKind::Value,
                    id,
                    name,
                    modifier,
                    base: base.map(TypeRef::Static),
                    members: Members::State(members),
                };
            }
            D::ValueBox { id, name, content } => {
                return Shape::ValueBox { id, name, content: TypeRef::Static(content) };
            }
        })
    }

    pub(crate) fn kind(&self) -> TcKind {
        match self {
            Shape::Basic(kind)
            | Shape::Named { kind, .. }
            | Shape::Struct { kind, .. }
            | Shape::Value { kind, .. } => *kind,
            Shape::Placeholder { .. } => TcKind::Null,
            Shape::String { .. } => TcKind::String,
            Shape::WString { .. } => TcKind::WString,
            Shape::Fixed { .. } => TcKind::Fixed,
            Shape::Sequence { .. } => TcKind::Sequence,
            Shape::Array { .. } => TcKind::Array,
            Shape::Alias { .. } => TcKind::Alias,
            Shape::Enum { .. } => TcKind::Enum,
            Shape::Union { .. } => TcKind::Union,
            Shape::ValueBox { .. } => TcKind::ValueBox,
        }
    }
}

impl<'a> Shape<'a> {
    /// The repository id and name, for kinds that have them.
    pub(crate) fn id_and_name(&self) -> Option<(&'a str, &'a str)> {
        match *self {
            Shape::Named { id, name, .. }
            | Shape::Alias { id, name, .. }
            | Shape::Enum { id, name, .. }
            | Shape::Struct { id, name, .. }
            | Shape::Union { id, name, .. }
            | Shape::Value { id, name, .. }
            | Shape::ValueBox { id, name, .. } => Some((id, name)),
            Shape::Placeholder { id } => Some((id, "")),
            _ => None,
        }
    }
}

impl<'a> Names<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Names::Static(names) => names.len(),
            Names::Shared(names) => names.len(),
        }
    }

    pub(crate) fn get(self, index: usize) -> Option<&'a str> {
        match self {
            Names::Static(names) => names.get(index).copied(),
            Names::Shared(names) => names.get(index).map(|name| &**name),
        }
    }
}

impl<'a> Members<'a> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Members::Fields(members) => members.len(),
            Members::Cases(members) => members.len(),
            Members::State(members) => members.len(),
            Members::Shared(_, members) => members.len(),
        }
    }

    /// The name and type of a member.
    #[inline]
    pub(crate) fn get(self, index: usize) -> Option<(&'a str, TypeRef<'a>)> {
        Some(match self {
            Members::Fields(members) => members.get(index).map(|m| (m.0, TypeRef::Static(m.1)))?,
            Members::Cases(members) => members.get(index).map(|m| (m.1, TypeRef::Static(m.2)))?,
            Members::State(members) => members.get(index).map(|m| (m.0, TypeRef::Static(m.1)))?,
            Members::Shared(arena, members) => {
                members.get(index).map(|m| (&*m.name, m.type_code.as_ref(arena)))?
            }
        })
    }

    pub(crate) fn label(self, index: usize) -> i64 {
        match self {
            Members::Cases(members) => members[index].0,
            Members::Shared(_, members) => members[index].label,
            Members::Fields(_) | Members::State(_) => 0,
        }
    }

    pub(crate) fn visibility(self, index: usize) -> Visibility {
        match self {
            Members::State(members) => members[index].2,
            Members::Shared(_, members) => members[index].visibility,
            Members::Fields(_) | Members::Cases(_) => Visibility::Private,
        }
    }

    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, TypeRef<'a>)> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}
