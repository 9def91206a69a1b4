//! The nodes of a dynamic value. They are created when its components are visited.
//!
//! Nothing here recurses: a list may be as deep as it is long.

use super::types::{
    case_of, component_of, discriminator_of, element_size, first_label, ids_to_write, member_count,
    number_size,
};
use super::{DEFAULT_BYTES_MAX, DynAnyError};
use crate::any::{Any, Content, CopyAgain, read_label, write_label};
use crate::cdr::{Reader, Writer};
use crate::error::Malformed;
use crate::typecode::{Shape, TcKind, TypeCode, TypeRef, ValueModifier};
use crate::value::{Value, ValueBase, ValueIds};

use super::CANONICAL;

/// The index of a node.
pub(super) type NodeId = u32;

/// A dynamic value and all its parts. Node 0 is the whole.
#[derive(Clone, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// How many nodes there were when all were in use.
    live: usize,
}

#[derive(Clone)]
pub(super) struct Node {
    pub(super) type_code: TypeCode,
    /// The current position, if there is a component with this index; no position otherwise.
    pub(super) current: u32,
    pub(super) state: State,
}

/// What is known of a value.
#[derive(Clone)]
pub(super) enum State {
    /// The default value of the type.
    Default,
    /// All of this content.
    Whole(Content),
    /// The value at this offset of the content.
    Kept(Content, u32),
    /// The elements of a sequence or array of numbers, as they are in memory.
    Numbers(Vec<u8>),
    /// The components of a struct, exception, sequence or array.
    Parts(Parts),
    /// A union.
    Union { label: i64, member: Option<NodeId> },
    /// An `any` with the value of this node.
    AnyOf(NodeId),
    /// A null value or abstract interface.
    Null,
    /// A value, by its state. Several nodes may refer to one state.
    Value(NodeId),
    /// The state of a value.
    Graph(Box<ValueState>),
    /// A value whose state only the program knows.
    Custom(Value<dyn ValueBase>),
}

/// Components, and the content of those that were never visited.
#[derive(Clone, Default)]
pub(super) struct Parts {
    pub(super) source: Content,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone)]
pub(super) struct ValueState {
    pub(super) parts: Parts,
    pub(super) ids: Ids,
}

/// The ids that a value is written with.
#[derive(Clone)]
pub(super) enum Ids {
    /// The ids that were received.
    Read(ValueIds),
    /// The ids of the type.
    OfType,
}

#[derive(Clone, Copy)]
pub(super) enum Part {
    Default,
    Kept(u32),
    Made(NodeId),
}

/// A component, or the whole.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Node(NodeId),
    /// An element of a sequence or array of numbers.
    Number(NodeId, u32),
    /// The discriminator of a union.
    Discriminator(NodeId),
}

/// The current position where there is none.
pub(super) const NO_POSITION: u32 = u32::MAX;

/// The most components that room is made for before they are read.
const PARTS_AT_ONCE: usize = 4096;

/// How many unused nodes are not worth freeing.
const DEAD_FREE: usize = 256;

impl Node {
    pub(super) fn new(type_code: TypeCode, state: State) -> Node {
        Node { type_code, current: 0, state }
    }
}

impl Tree {
    /// A tree of one node.
    pub(super) fn of(node: Node) -> Tree {
        Tree { nodes: vec![node], live: 1 }
    }

    pub(super) fn add(&mut self, node: Node) -> Result<NodeId, DynAnyError> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| DynAnyError::TooLarge)?;
        self.nodes.push(node);
        Ok(id)
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    pub(super) fn ty(&self, id: NodeId) -> TypeRef<'_> {
        self.node(id).type_code.as_type_ref()
    }

    pub(super) fn type_at(&self, place: Place) -> TypeCode {
        let (id, part) = match place {
            Place::Node(id) => return self.node(id).type_code.clone(),
            Place::Number(id, index) => (id, component_of(self.ty(id), index as usize).map(|(_, ty)| ty)),
            Place::Discriminator(id) => match self.ty(id).resolved_shape().1 {
                Shape::Union { discriminator, .. } => (id, Some(discriminator)),
                _ => (id, None),
            },
        };
        part.unwrap_or(self.ty(id)).to_type_code()
    }

    /// The node with the components: for a value, its state.
    pub(super) fn opened(&mut self, id: NodeId) -> Result<NodeId, DynAnyError> {
        self.open(id)?;
        match self.node(id).state {
            State::Value(state) => Ok(state),
            _ => Ok(id),
        }
    }

    /// Finds the components of a node.
    fn open(&mut self, id: NodeId) -> Result<(), DynAnyError> {
        let node = self.node(id);
        let opened = match &node.state {
            State::Default => self.open_default(node.type_code.as_type_ref())?.map(|state| (state, None)),
            State::Whole(source) => open_encoded(node.type_code.as_type_ref(), source, 0)?,
            State::Kept(source, at) => open_encoded(node.type_code.as_type_ref(), source, *at as usize)?,
            _ => None,
        };
        let Some((state, member)) = opened else { return Ok(()) };
        let state = match (state, member) {
            (State::Union { label, .. }, member) => {
                let member = match (member, case_of(self.ty(id), label)) {
                    (Some(state), Some((_, _, ty))) => {
                        let ty = ty.to_type_code();
                        Some(self.add(Node::new(ty, state))?)
                    }
                    _ => None,
                };
                State::Union { label, member }
            }
            (state, _) => state,
        };
        self.node_mut(id).state = state;
        Ok(())
    }

    fn open_default(&self, ty: TypeRef<'_>) -> Result<Option<State>, DynAnyError> {
        Ok(Some(match ty.resolved_shape().1 {
            Shape::Struct { members, .. } => State::Parts(Parts::default_of(members.len())?),
            Shape::Sequence { .. } if element_size(ty).is_some() => State::Numbers(Vec::new()),
            Shape::Sequence { .. } => State::Parts(Parts::default_of(0)?),
            Shape::Array { length, .. } => match element_size(ty) {
                Some(size) => State::Numbers(zeros(length as usize, size)?),
                None => State::Parts(Parts::default_of(length as usize)?),
            },
            Shape::Union { .. } => State::Union { label: first_label(ty), member: None },
            Shape::Value { .. } | Shape::ValueBox { .. } => State::Null,
            _ => return Ok(None),
        }))
    }

    /// The number of components of a node.
    pub(super) fn count(&mut self, id: NodeId) -> Result<u32, DynAnyError> {
        if let Some(length) = self.length(id) {
            return Ok(length);
        }
        let id = self.opened(id)?;
        Ok(match &self.node(id).state {
            State::Parts(parts) => parts.parts.len() as u32,
            State::Graph(value) => value.parts.parts.len() as u32,
            State::Union { label, .. } => 1 + u32::from(case_of(self.ty(id), *label).is_some()),
            _ => 0,
        })
    }

    /// The number of components, where it is known without decoding.
    fn length(&self, id: NodeId) -> Option<u32> {
        let node = self.node(id);
        match (node.type_code.as_type_ref().resolved_shape().1, &node.state) {
            (Shape::Struct { members, .. }, _) => Some(members.len() as u32),
            (Shape::Array { length, .. }, _) => Some(length),
            (Shape::Sequence { .. }, State::Parts(parts)) => Some(parts.parts.len() as u32),
            (Shape::Sequence { .. }, State::Default) => Some(0),
            (Shape::Sequence { element, .. }, State::Numbers(bytes)) => {
                Some((bytes.len() / number_size(element)?) as u32)
            }
            (Shape::Sequence { .. }, State::Whole(source)) => source.reader_at(0).read_u32().ok(),
            (Shape::Sequence { .. }, State::Kept(source, at)) => {
                source.reader_at(*at as usize).read_u32().ok()
            }
            _ => None,
        }
    }

    /// The place of a component; `None` if there are not so many.
    pub(super) fn component(&mut self, id: NodeId, index: u32) -> Result<Option<Place>, DynAnyError> {
        let id = self.opened(id)?;
        if index >= self.count(id)? {
            return Ok(None);
        }
        if element_size(self.ty(id)).is_some() {
            return Ok(Some(Place::Number(id, index)));
        }
        if let State::Union { .. } = self.node(id).state {
            return Ok(if index == 0 {
                Some(Place::Discriminator(id))
            } else {
                self.union_member(id)?.map(Place::Node)
            });
        }
        let Some((source, part)) = self.part(id, index) else { return Ok(None) };
        let state = match part {
            Part::Made(made) => return Ok(Some(Place::Node(made))),
            Part::Kept(at) => State::Kept(source.clone(), at),
            Part::Default => State::Default,
        };
        let ty = component_of(self.ty(id), index as usize).ok_or(DynAnyError::InvalidValue)?.1;
        let made = Node::new(ty.to_type_code(), state);
        let made = self.add(made)?;
        self.set_part(id, index, made);
        Ok(Some(Place::Node(made)))
    }

    /// A component in its present form, and the content that it is in.
    pub(super) fn part(&self, id: NodeId, index: u32) -> Option<(&Content, Part)> {
        let parts = match &self.node(id).state {
            State::Parts(parts) => parts,
            State::Graph(value) => &value.parts,
            _ => return None,
        };
        Some((&parts.source, *parts.parts.get(index as usize)?))
    }

    /// Sets a component to a node.
    pub(super) fn set_part(&mut self, id: NodeId, index: u32, made: NodeId) {
        if let Some(part) = self.parts_mut(id).and_then(|parts| parts.parts.get_mut(index as usize)) {
            *part = Part::Made(made);
        }
    }

    pub(super) fn parts_mut(&mut self, id: NodeId) -> Option<&mut Parts> {
        match &mut self.node_mut(id).state {
            State::Parts(parts) => Some(parts),
            State::Graph(value) => Some(&mut value.parts),
            _ => None,
        }
    }

    /// The active member of a union.
    fn union_member(&mut self, id: NodeId) -> Result<Option<NodeId>, DynAnyError> {
        let State::Union { label, member } = self.node(id).state else { return Ok(None) };
        if member.is_some() {
            return Ok(member);
        }
        let Some((_, _, ty)) = case_of(self.ty(id), label) else { return Ok(None) };
        let made = Node::new(ty.to_type_code(), State::Default);
        let member = Some(self.add(made)?);
        self.node_mut(id).state = State::Union { label, member };
        Ok(member)
    }

    /// The label of a union.
    pub(super) fn label(&mut self, id: NodeId) -> Result<i64, DynAnyError> {
        self.open(id)?;
        match self.node(id).state {
            State::Union { label, .. } => Ok(label),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Sets the label of a union. If it selects another member, that member gets its default value.
    pub(super) fn set_label(&mut self, id: NodeId, new: i64) -> Result<(), DynAnyError> {
        let old = self.label(id)?;
        let (before, after) = (case_of(self.ty(id), old), case_of(self.ty(id), new));
        let stays = match (before, after) {
            (Some(before), Some(after)) => {
                before.0 == after.0 || (!before.1.is_empty() && before.1 == after.1)
            }
            _ => false,
        };
        let has_member = after.is_some();
        let node = self.node_mut(id);
        if let State::Union { label, member } = &mut node.state {
            *label = new;
            if !stays {
                *member = None;
            }
        }
        node.current = u32::from(has_member);
        Ok(())
    }

    /// The elements of a sequence or array of numbers, as they are in memory.
    pub(super) fn numbers(&self, id: NodeId) -> Option<&[u8]> {
        let node = self.node(id);
        let size = element_size(node.type_code.as_type_ref())?;
        let (source, at) = match &node.state {
            State::Numbers(bytes) => return Some(bytes),
            State::Default => return Some(&[]),
            State::Whole(source) => (source, 0),
            State::Kept(source, at) => (source, *at as usize),
            _ => return None,
        };
        let mut r = source.reader_at(at);
        let count = match node.type_code.as_type_ref().resolved_shape().1 {
            Shape::Array { length, .. } => length,
            _ => r.read_u32().ok()?,
        };
        if count > 0 {
            r.align(size);
        }
        r.ahead(size.checked_mul(count as usize)?)
    }

    /// The elements of a sequence or array of numbers, to be changed.
    pub(super) fn numbers_mut(&mut self, id: NodeId) -> Result<&mut Vec<u8>, DynAnyError> {
        if let State::Default = self.node(id).state {
            self.open(id)?;
        }
        if !matches!(self.node(id).state, State::Numbers(_)) {
            let bytes = self.numbers(id).ok_or(DynAnyError::TypeMismatch)?.to_vec();
            self.node_mut(id).state = State::Numbers(bytes);
        }
        match &mut self.node_mut(id).state {
            State::Numbers(bytes) => Ok(bytes),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Reads the value at a place.
    pub(super) fn read_at<T>(
        &self,
        place: Place,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<T, DynAnyError> {
        match place {
            Place::Node(id) => match &self.node(id).state {
                State::Whole(source) => Ok(read(&mut source.reader_at(0))?),
                State::Kept(source, at) => Ok(read(&mut source.reader_at(*at as usize))?),
                _ => {
                    let content = self.content(id)?;
                    Ok(read(&mut content.reader_at(0))?)
                }
            },
            Place::Number(id, index) => {
                let size = element_size(self.ty(id)).ok_or(DynAnyError::TypeMismatch)?;
                let zeros = [0u8; 8];
                let bytes = match (&self.node(id).state, self.numbers(id)) {
                    (State::Default, _) => &zeros[..size],
                    (_, Some(bytes)) => {
                        bytes.get(index as usize * size..).and_then(|rest| rest.get(..size)).unwrap_or(&[])
                    }
                    (_, None) => return Err(DynAnyError::TypeMismatch),
                };
                Ok(read(&mut Reader::new(bytes, CANONICAL))?)
            }
            Place::Discriminator(id) => {
                let State::Union { label, .. } = self.node(id).state else {
                    return Err(DynAnyError::TypeMismatch);
                };
                let ty = discriminator_of(self.ty(id)).ok_or(DynAnyError::TypeMismatch)?;
                let mut bytes = Vec::new();
                write_label(&mut Writer::new(&mut bytes, CANONICAL), ty, label)?;
                Ok(read(&mut Reader::new(&bytes, CANONICAL))?)
            }
        }
    }

    /// Sets a place to the value of an `any`, whose type must be equivalent.
    pub(super) fn put(&mut self, place: Place, any: &Any) -> Result<(), DynAnyError> {
        let type_code = self.type_at(place);
        match place {
            Place::Node(id) => {
                let state = self.load(&type_code, any)?;
                let node = self.node_mut(id);
                node.state = state;
                node.current = 0;
            }
            Place::Number(id, index) => {
                let content = checked(&type_code, any)?;
                let size = content.len();
                let bytes = self.numbers_mut(id)?;
                let at = index as usize * size;
                let old = bytes.get_mut(at..at + size).ok_or(DynAnyError::InvalidValue)?;
                old.copy_from_slice(&content);
            }
            Place::Discriminator(id) => {
                let content = checked(&type_code, any)?;
                let label = read_label(&mut content.reader_at(0), type_code.as_type_ref())?;
                self.set_label(id, label)?;
            }
        }
        Ok(())
    }

    /// Decodes the value of an `any` as a value of an equivalent type.
    pub(super) fn load(&mut self, type_code: &TypeCode, any: &Any) -> Result<State, DynAnyError> {
        let content = checked(type_code, any)?;
        self.load_content(type_code, content)
    }

    /// Gives a null value a state of its own type or of a derived one.
    pub(super) fn make_value(&mut self, id: NodeId, actual: TypeCode) -> Result<(), DynAnyError> {
        let ty = actual.as_type_ref();
        match ty.resolved_shape().1 {
            Shape::Value { modifier: ValueModifier::Custom, .. } => {
                return Err(DynAnyError::InconsistentTypeCode);
            }
            Shape::Value { modifier: ValueModifier::Abstract, .. } => return Err(DynAnyError::InvalidValue),
            Shape::Value { .. } | Shape::ValueBox { .. } => {}
            _ => return Err(DynAnyError::TypeMismatch),
        }
        let parts = Parts::default_of(member_count(ty))?;
        let state = State::Graph(Box::new(ValueState { parts, ids: Ids::OfType }));
        let made = self.add(Node::new(actual, state))?;
        self.node_mut(id).state = State::Value(made);
        Ok(())
    }

    /// A copy of a node and everything below it.
    pub(super) fn extract(&self, root: NodeId) -> Tree {
        let mut numbers = std::collections::HashMap::from([(root, 0)]);
        let mut order = vec![root];
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(&id) = order.get(nodes.len()) {
            let mut node = self.node(id).clone();
            let mut renumber = |id: &mut NodeId| {
                let next = order.len() as u32;
                *id = *numbers.entry(*id).or_insert_with(|| {
                    order.push(*id);
                    next
                });
            };
            match &mut node.state {
                State::Parts(parts) => parts.made().for_each(&mut renumber),
                State::Graph(value) => value.parts.made().for_each(&mut renumber),
                State::Union { member, .. } => member.iter_mut().for_each(&mut renumber),
                State::AnyOf(id) | State::Value(id) => renumber(id),
                _ => {}
            }
            nodes.push(node);
        }
        Tree { live: nodes.len(), nodes }
    }

    /// Frees unused nodes, if there are many. Only while no caller has a place in the tree.
    pub(super) fn tidy(&mut self) {
        if self.nodes.len() > 2 * self.live + DEAD_FREE {
            *self = self.extract(0);
        }
    }

    /// Counts all nodes as used.
    pub(super) fn settle(&mut self) {
        self.live = self.nodes.len();
    }

    /// The ids that a value is written with.
    pub(super) fn ids_of(&self, id: NodeId) -> Vec<&str> {
        match &self.node(id).state {
            State::Graph(value) => match &value.ids {
                Ids::Read(ids) if !ids.is_empty() => ids.iter().map(|id| &**id).collect(),
                _ => ids_to_write(self.ty(id)),
            },
            _ => Vec::new(),
        }
    }
}

impl Parts {
    fn default_of(count: usize) -> Result<Parts, DynAnyError> {
        if count.saturating_mul(size_of::<Part>()) > DEFAULT_BYTES_MAX {
            return Err(DynAnyError::TooLarge);
        }
        Ok(Parts { source: Content::default(), parts: vec![Part::Default; count] })
    }

    fn made(&mut self) -> impl Iterator<Item = &mut NodeId> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Made(id) => Some(id),
            _ => None,
        })
    }
}

/// This many numbers that are zero.
pub(super) fn zeros(count: usize, size: usize) -> Result<Vec<u8>, DynAnyError> {
    match count.checked_mul(size) {
        Some(bytes) if bytes <= DEFAULT_BYTES_MAX => Ok(vec![0; bytes]),
        _ => Err(DynAnyError::TooLarge),
    }
}

/// The content of an `any`, checked to be valid for an equivalent type: types may be equivalent by name only.
fn checked(type_code: &TypeCode, any: &Any) -> Result<Content, DynAnyError> {
    if any.type_code() == type_code {
        return Ok(any.content().clone());
    }
    if !any.type_code().equivalent(type_code) {
        return Err(DynAnyError::TypeMismatch);
    }
    let mut r = any.content().reader_at(0);
    let copied = Any::read_value(type_code.clone(), &mut r).map_err(|_| DynAnyError::TypeMismatch)?;
    if r.remaining() > 0 {
        return Err(DynAnyError::TypeMismatch);
    }
    Ok(copied.content().clone())
}

/// The new state of a node, and the state of a union's member.
type Opened = Option<(State, Option<State>)>;

/// Finds the components of an encoded value.
fn open_encoded(ty: TypeRef<'_>, source: &Content, at: usize) -> Result<Opened, DynAnyError> {
    let mut r = source.reader_at(at);
    let kept_at = |r: &Reader<'_>| u32::try_from(r.position()).map_err(|_| DynAnyError::TooLarge);
    let (ty, shape) = ty.resolved_shape();
    let count = match shape {
        Shape::Struct { kind, members, .. } => {
            if kind == TcKind::Except {
                r.read_str()?;
            }
            members.len()
        }
        Shape::Sequence { .. } | Shape::Array { .. } if element_size(ty).is_some() => return Ok(None),
        Shape::Sequence { .. } => r.read_u32()? as usize,
        Shape::Array { length, .. } => length as usize,
        Shape::Union { discriminator, .. } => {
            let label = read_label(&mut r, discriminator)?;
            let member = State::Kept(source.clone(), kept_at(&r)?);
            return Ok(Some((State::Union { label, member: None }, Some(member))));
        }
        // Only null values are stored in this form.
        Shape::Value { .. } | Shape::ValueBox { .. } => return Ok(Some((State::Null, None))),
        Shape::Named { kind: TcKind::AbstractInterface, .. } => {
            return Ok(if r.read_bool()? { None } else { Some((State::Null, None)) });
        }
        _ => return Ok(None),
    };
    // Copied content has no more parts than its bytes can hold. Content that a program wrote may announce any
    // number.
    let mut parts = Vec::with_capacity(count.min(PARTS_AT_ONCE));
    let (mut passed, mut copy) = (Vec::new(), None);
    for index in 0..count {
        parts.push(Part::Kept(kept_at(&r)?));
        let Some((_, part)) = component_of(ty, index) else { break };
        if index + 1 == count {
            break;
        }
        match number_size(part) {
            Some(size) => {
                r.align(size);
                r.read_bytes(size)?;
            }
            None => {
                passed.clear();
                let w = &mut Writer::new(&mut passed, CANONICAL);
                copy.get_or_insert_with(CopyAgain::new).value(&mut r, w, part)?;
            }
        }
    }
    Ok(Some((State::Parts(Parts { source: source.clone(), parts }), None)))
}
