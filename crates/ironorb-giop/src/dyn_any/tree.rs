//! The nodes of a dynamic value, and how they are made as its components are visited.
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

/// Which node.
pub(super) type NodeId = u32;

/// A dynamic value and all that it consists of. Node 0 is the whole.
#[derive(Clone, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// How many there were when none was out of use.
    live: usize,
}

#[derive(Clone)]
pub(super) struct Node {
    pub(super) type_code: TypeCode,
    /// The current position, if there is a component; else there is none.
    pub(super) current: u32,
    pub(super) state: State,
}

/// What is known of a value.
#[derive(Clone)]
pub(super) enum State {
    /// It has the default value of its type.
    Default,
    /// It is all of this.
    Whole(Content),
    /// It begins at this place.
    Kept(Content, u32),
    /// The elements of a sequence or array of numbers, as they lie in memory.
    Numbers(Vec<u8>),
    /// The components of a struct, exception, sequence or array.
    Parts(Parts),
    /// A union.
    Union { label: i64, member: Option<NodeId> },
    /// An `any` that holds this.
    AnyOf(NodeId),
    /// A value or abstract interface that is null.
    Null,
    /// A value: the state, which others may refer to, too.
    Value(NodeId),
    /// The state of a value.
    Graph(Box<ValueState>),
    /// A value whose state only the program knows.
    Custom(Value<dyn ValueBase>),
}

/// Components, and where they are kept that nobody has visited.
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

/// The ids with which a value is written.
#[derive(Clone)]
pub(super) enum Ids {
    /// As it came.
    Read(ValueIds),
    /// As its type has them.
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
    /// Of a union.
    Discriminator(NodeId),
}

/// No position.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Components of which room is made before they were seen.
const PARTS_AT_ONCE: usize = 4096;

/// Nodes out of use that are not worth a look.
const DEAD_FREE: usize = 256;

impl Node {
    pub(super) fn new(type_code: TypeCode, state: State) -> Node {
        Node { type_code, current: 0, state }
    }
}

impl Tree {
    /// A tree of one node, which is the whole.
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

    /// The node that has the components: of a value that is its state.
    pub(super) fn opened(&mut self, id: NodeId) -> Result<NodeId, DynAnyError> {
        self.open(id)?;
        match self.node(id).state {
            State::Value(state) => Ok(state),
            _ => Ok(id),
        }
    }

    /// Finds out where the components of a node are.
    fn open(&mut self, id: NodeId) -> Result<(), DynAnyError> {
        let node = self.node(id);
        let opened = match &node.state {
            State::Default => self.open_default(node.type_code.as_type_ref())?.map(|state| (state, None)),
            State::Whole(source) => open_kept(node.type_code.as_type_ref(), source, 0)?,
            State::Kept(source, at) => open_kept(node.type_code.as_type_ref(), source, *at as usize)?,
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

    /// How many components a node has.
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

    /// How many components there are where that takes no look.
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

    /// A component as it is known, and where it is kept.
    pub(super) fn part(&self, id: NodeId, index: u32) -> Option<(&Content, Part)> {
        let parts = match &self.node(id).state {
            State::Parts(parts) => parts,
            State::Graph(value) => &value.parts,
            _ => return None,
        };
        Some((&parts.source, *parts.parts.get(index as usize)?))
    }

    /// Puts a node in the place of a component.
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

    /// The member of a union that is active.
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

    /// The label that a union has.
    pub(super) fn label(&mut self, id: NodeId) -> Result<i64, DynAnyError> {
        self.open(id)?;
        match self.node(id).state {
            State::Union { label, .. } => Ok(label),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Gives a union a label, and with it another member unless it selects the one that is there.
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

    /// The elements of a sequence or array of numbers, as they lie in memory.
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

    /// The same, to be changed.
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

    /// Reads what is at a place.
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

    /// Puts what an `any` holds at a place. Its type must be equivalent.
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

    /// What an `any` holds, of a type that it must be equivalent to.
    pub(super) fn load(&mut self, type_code: &TypeCode, any: &Any) -> Result<State, DynAnyError> {
        let content = checked(type_code, any)?;
        self.load_content(type_code, content)
    }

    /// Gives a null value its state, of a type that is its own or derived.
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

    /// A copy of a node and what is below it.
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

    /// Lets go of nodes that are out of use, if there are many. Only when nobody holds a place in the tree.
    pub(super) fn tidy(&mut self) {
        if self.nodes.len() > 2 * self.live + DEAD_FREE {
            *self = self.extract(0);
        }
    }

    /// Counts all nodes as in use.
    pub(super) fn settle(&mut self) {
        self.live = self.nodes.len();
    }

    /// The ids with which a value is written.
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

/// So many numbers that are zero.
pub(super) fn zeros(count: usize, size: usize) -> Result<Vec<u8>, DynAnyError> {
    match count.checked_mul(size) {
        Some(bytes) if bytes <= DEFAULT_BYTES_MAX => Ok(vec![0; bytes]),
        _ => Err(DynAnyError::TooLarge),
    }
}

/// What an `any` holds, made sure to be of a type that its own is equivalent to: equivalence may be by name only.
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

/// What a node turns into, and the member of a union.
type Opened = Option<(State, Option<State>)>;

/// Finds the components of a value that is kept.
fn open_kept(ty: TypeRef<'_>, source: &Content, at: usize) -> Result<Opened, DynAnyError> {
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
        // What is not null is never kept so.
        Shape::Value { .. } | Shape::ValueBox { .. } => return Ok(Some((State::Null, None))),
        Shape::Named { kind: TcKind::AbstractInterface, .. } => {
            return Ok(if r.read_bool()? { None } else { Some((State::Null, None)) });
        }
        _ => return Ok(None),
    };
    // What has been copied has no more parts than its bytes could mean; what a program wrote may announce any number.
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
