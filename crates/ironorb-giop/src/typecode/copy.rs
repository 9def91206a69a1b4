//! Types created from other types, node by node: the compact form, and types that close a recursion.

use std::collections::HashMap;

use super::node::{Arena, Child, Member, Members, Node, Shape, TypeKey, TypeRef};
use super::read::basic;
use super::{TypeCode, TypeDef};

impl TypeCode {
    /// This type without the names of types, members and enumerators, which are only for human readers. Ids
    /// and typedefs stay. The standard's `get_compact_typecode`.
    #[must_use]
    pub fn compact(&self) -> TypeCode {
        let mut copying = Copying { names: false, ..Copying::default() };
        let top = copying.import(self.as_type_ref());
        copying.run();
        Arena::seal(copying.nodes, top)
    }
}

/// Copies the graph of a type into one arena. Uses a work list instead of recursion, because a path can be as
/// long as there are types.
pub(super) struct Copying<'a> {
    pub(super) nodes: Vec<Node>,
    numbers: HashMap<TypeKey, u32>,
    work: Vec<(u32, TypeRef<'a>)>,
    /// Whether names are copied.
    names: bool,
    /// Placeholders with these ids become these nodes. Only types that contain placeholders are copied.
    binding: Option<HashMap<&'a str, u32>>,
}

impl Default for Copying<'_> {
    fn default() -> Self {
        Copying { nodes: Vec::new(), numbers: HashMap::new(), work: Vec::new(), names: true, binding: None }
    }
}

impl<'a> Copying<'a> {
    /// A copier whose first nodes are the types that placeholders with these ids stand for, in order. The
    /// caller fills them in. No placeholder has an empty id.
    pub(super) fn binding(ids: impl Iterator<Item = &'a str>) -> Self {
        let mut copying = Copying::default();
        let mut binding = HashMap::new();
        for id in ids {
            if !id.is_empty() {
                binding.entry(id).or_insert(copying.nodes.len() as u32);
            }
            copying.nodes.push(Node::Simple(TypeDef::Null));
        }
        copying.binding = Some(binding);
        copying
    }

    /// The copy of a type. [`Copying::run`] may have to fill it in.
    pub(super) fn import(&mut self, ty: TypeRef<'a>) -> Child {
        let shape = ty.shape();
        if let Shape::Basic(kind) = shape
            && let Some(definition) = basic(kind)
        {
            return Child::Other(TypeCode::of(definition));
        }
        if let Some(binding) = &self.binding {
            if let Shape::Placeholder { id } = shape
                && let Some(index) = binding.get(id)
            {
                return Child::Here(*index);
            }
            if !ty.is_open() {
                return Child::Other(ty.to_type_code());
            }
        }
        let next = self.nodes.len() as u32;
        let number = *self.numbers.entry(ty.key()).or_insert(next);
        if number == next {
            self.nodes.push(Node::Simple(TypeDef::Null));
            self.work.push((number, ty));
        }
        Child::Here(number)
    }

    /// Copies all imported types and their parts.
    pub(super) fn run(&mut self) {
        while let Some((index, ty)) = self.work.pop() {
            let node = self.node(ty.shape());
            self.nodes[index as usize] = node;
        }
    }

    /// Fills in a node for a type, whatever placeholder the type itself is bound to.
    pub(super) fn fill(&mut self, index: u32, ty: TypeRef<'a>) {
        self.work.push((index, ty));
    }

    fn node(&mut self, shape: Shape<'a>) -> Node {
        let (id, name) = shape.id_and_name().unwrap_or_default();
        let (id, name) = (id.into(), self.name(name));
        match shape {
            Shape::Basic(kind) => Node::Simple(basic(kind).copied().unwrap_or(TypeDef::Null)),
            Shape::String { bound } => Node::Simple(TypeDef::String { bound }),
            Shape::WString { bound } => Node::Simple(TypeDef::WString { bound }),
            Shape::Fixed { digits, scale } => Node::Simple(TypeDef::Fixed { digits, scale }),
            Shape::Sequence { element, bound } => Node::Sequence { element: self.import(element), bound },
            Shape::Array { element, length } => Node::Array { element: self.import(element), length },
            Shape::Named { kind, .. } => Node::Named { kind, id, name },
            Shape::Placeholder { .. } => Node::placeholder(id),
            Shape::Alias { original, .. } => Node::Alias { id, name, original: self.import(original) },
            Shape::Enum { enumerators, .. } => {
                let enumerators =
                    (0..enumerators.len()).map(|i| self.name(enumerators.get(i).unwrap_or_default()));
                Node::Enum { id, name, enumerators: enumerators.collect() }
            }
            Shape::Struct { kind, members, .. } => {
                Node::Struct { kind, id, name, members: self.members(members) }
            }
            Shape::Union { discriminator, default, cases, .. } => {
                let (discriminator, cases) = (self.import(discriminator), self.members(cases));
                Node::union(id, name, discriminator, default, cases)
            }
            Shape::Value { kind, modifier, base, members, .. } => {
                let base = base.map(|base| self.import(base));
                Node::Value { kind, id, name, modifier, base, members: self.members(members) }
            }
            Shape::ValueBox { content, .. } => Node::ValueBox { id, name, content: self.import(content) },
        }
    }

    fn members(&mut self, members: Members<'a>) -> Box<[Member]> {
        members
            .iter()
            .enumerate()
            .map(|(index, (name, member))| Member {
                name: self.name(name),
                type_code: self.import(member),
                label: members.label(index),
                visibility: members.visibility(index),
            })
            .collect()
    }

    fn name(&self, name: &str) -> Box<str> {
        if self.names { name.into() } else { Box::default() }
    }
}
