//! Converts an `any` to nodes. Most values stay encoded and are decoded when they are visited. Only graphs of
//! values, and types that nest in themselves, are decoded at once, in one pass.

use std::collections::HashMap;

use super::CANONICAL;
use super::tree::{Ids, Node, NodeId, Part, Parts, State, Tree, ValueState};
use super::types::{FlatTypes, case_of, component_of, member_count};
use super::{DynAnyError, types};
use crate::any::{Content, copy_again, read_label, shown_type};
use crate::cdr::{Reader, Writer};
use crate::ior::Ior;
use crate::typecode::{Shape, TcKind, TypeCode, TypeRef, ValueModifier};
use crate::value::{ValueHeader, ValueStart};

/// Decodes values into nodes.
struct Decoder<'t> {
    tree: &'t mut Tree,
    flat: FlatTypes,
    /// Values without components. Each starts at a multiple of 8, because it may have been in chunks.
    kept: Vec<u8>,
    /// Nodes made here. They need to know where `kept` is.
    made: Vec<NodeId>,
    /// The states of values, by the positions where they start.
    values: HashMap<usize, NodeId>,
    work: Vec<Frame>,
}

/// A node whose components are being read.
struct Frame {
    node: NodeId,
    next: usize,
    count: usize,
    header: Option<ValueHeader>,
}

impl Tree {
    /// Decodes the content of an `any`.
    pub(super) fn load_content(
        &mut self,
        type_code: &TypeCode,
        content: Content,
    ) -> Result<State, DynAnyError> {
        let ty = type_code.as_type_ref();
        if FlatTypes::default().is_flat(ty) || !types::nests(ty) && !needs_environment(ty, &content)? {
            return Ok(State::Whole(content));
        }
        let mut decoder = Decoder {
            tree: self,
            flat: FlatTypes::default(),
            kept: Vec::new(),
            made: Vec::new(),
            values: HashMap::new(),
            work: Vec::new(),
        };
        let part = decoder.run(&mut content.reader_at(0), ty)?;
        let Decoder { kept, made, .. } = decoder;
        let kept = Content::new(kept, content.environment().cloned());
        for id in made {
            match &mut self.node_mut(id).state {
                State::Parts(parts) => parts.source = kept.clone(),
                State::Graph(value) => value.parts.source = kept.clone(),
                State::Kept(source, _) => *source = kept.clone(),
                _ => {}
            }
        }
        Ok(match part {
            Part::Made(id) => std::mem::replace(&mut self.node_mut(id).state, State::Null),
            Part::Kept(at) => State::Kept(kept, at),
            Part::Default => State::Default,
        })
    }
}

/// Whether the content may contain values.
fn needs_environment(ty: TypeRef<'_>, content: &Content) -> Result<bool, DynAnyError> {
    let mut passed = Vec::new();
    Ok(copy_again(&mut content.reader_at(0), &mut Writer::new(&mut passed, CANONICAL), ty)?)
}

impl Decoder<'_> {
    fn run(&mut self, r: &mut Reader<'_>, ty: TypeRef<'_>) -> Result<Part, DynAnyError> {
        let whole = self.part(r, ty)?;
        while let Some(frame) = self.work.last_mut() {
            let (node, index) = (frame.node, frame.next);
            if index == frame.count {
                if let Some(Frame { header: Some(header), .. }) = self.work.pop() {
                    r.end_value(header)?;
                }
                continue;
            }
            frame.next += 1;
            let owner = self.tree.node(node).type_code.clone();
            let owner_ty = owner.as_type_ref();
            match self.tree.node(node).state {
                State::Union { label, .. } => {
                    let (_, _, ty) = case_of(owner_ty, label).ok_or(DynAnyError::InvalidValue)?;
                    let part = self.part(r, ty)?;
                    let made = self.node_of(part, ty)?;
                    self.tree.node_mut(node).state = State::Union { label, member: Some(made) };
                }
                State::AnyOf(holder) => {
                    let type_code = self.tree.node(holder).type_code.clone();
                    let part = self.part(r, type_code.as_type_ref())?;
                    let made = self.node_of(part, type_code.as_type_ref())?;
                    self.tree.node_mut(node).state = State::AnyOf(made);
                }
                _ => {
                    let (_, ty) = component_of(owner_ty, index).ok_or(DynAnyError::InvalidValue)?;
                    let part = self.part(r, ty)?;
                    if let Some(parts) = self.tree.parts_mut(node) {
                        parts.parts.push(part);
                    }
                }
            }
        }
        Ok(whole)
    }

    /// Reads a value, or starts to.
    fn part(&mut self, r: &mut Reader<'_>, ty: TypeRef<'_>) -> Result<Part, DynAnyError> {
        if self.flat.is_flat(ty) {
            return self.keep(r, ty, None);
        }
        let (resolved, shape) = ty.resolved_shape();
        match shape {
            Shape::Basic(TcKind::Any) => {
                let type_code = r.get::<TypeCode>()?;
                let inner = type_code.as_type_ref();
                // Asked with a separate table: this type may be dropped, and another type at its address,
                // before the next question.
                if FlatTypes::default().is_flat(inner) {
                    return self.keep(r, inner, Some(&type_code));
                }
                let any = self.make(ty, State::Null)?;
                let holder = self.make(inner, State::Null)?;
                self.tree.node_mut(any).state = State::AnyOf(holder);
                self.work.push(Frame { node: any, next: 0, count: 1, header: None });
                Ok(Part::Made(any))
            }
            Shape::Struct { kind, members, .. } => {
                if kind == TcKind::Except {
                    r.read_str()?;
                }
                self.parts(ty, members.len())
            }
            Shape::Sequence { .. } => {
                let count = r.read_u32()? as usize;
                self.parts(ty, count)
            }
            Shape::Array { length, .. } => self.parts(ty, length as usize),
            Shape::Union { discriminator, .. } => {
                let label = read_label(r, discriminator)?;
                let node = self.make(ty, State::Union { label, member: None })?;
                let count = usize::from(case_of(resolved, label).is_some());
                self.work.push(Frame { node, next: 0, count, header: None });
                Ok(Part::Made(node))
            }
            Shape::Named { kind: TcKind::AbstractInterface, .. } => {
                if r.read_bool()? {
                    return self.keep_reference(r);
                }
                self.value(r, ty, None)
            }
            Shape::Value { .. } | Shape::ValueBox { .. } => self.value(r, ty, Some(ty)),
            _ => Err(DynAnyError::InconsistentTypeCode),
        }
    }

    fn value(
        &mut self,
        r: &mut Reader<'_>,
        ty: TypeRef<'_>,
        formal: Option<TypeRef<'_>>,
    ) -> Result<Part, DynAnyError> {
        let header = match r.begin_value()? {
            ValueStart::Null => return Ok(Part::Made(self.make(ty, State::Null)?)),
            ValueStart::Indirection(position) => {
                let state = *self.values.get(&position).ok_or(DynAnyError::InvalidValue)?;
                return Ok(Part::Made(self.make(ty, State::Value(state))?));
            }
            ValueStart::Value(header) => header,
        };
        let actual = shown_type(r, &header, formal)?.to_type_code();
        if let Shape::Value { modifier: ValueModifier::Custom, .. } = actual.as_type_ref().resolved_shape().1
        {
            let value = r.value_again(header)?;
            return Ok(Part::Made(self.make(ty, State::Custom(value))?));
        }
        let count = member_count(actual.as_type_ref());
        let state = ValueState { parts: Parts::default(), ids: Ids::Read(header.ids.clone()) };
        let node = self.make(actual.as_type_ref(), State::Graph(Box::new(state)))?;
        self.values.insert(header.position, node);
        let reference = self.make(ty, State::Value(node))?;
        self.work.push(Frame { node, next: 0, count, header: Some(header) });
        Ok(Part::Made(reference))
    }

    fn parts(&mut self, ty: TypeRef<'_>, count: usize) -> Result<Part, DynAnyError> {
        let node = self.make(ty, State::Parts(Parts::default()))?;
        self.work.push(Frame { node, next: 0, count, header: None });
        Ok(Part::Made(node))
    }

    fn make(&mut self, ty: TypeRef<'_>, state: State) -> Result<NodeId, DynAnyError> {
        let id = self.tree.add(Node::new(ty.to_type_code(), state))?;
        self.made.push(id);
        Ok(id)
    }

    fn node_of(&mut self, part: Part, ty: TypeRef<'_>) -> Result<NodeId, DynAnyError> {
        match part {
            Part::Made(id) => Ok(id),
            Part::Kept(at) => self.make(ty, State::Kept(Content::default(), at)),
            Part::Default => self.make(ty, State::Default),
        }
    }

    /// Stores the reference of an abstract interface.
    fn keep_reference(&mut self, r: &mut Reader<'_>) -> Result<Part, DynAnyError> {
        let (at, mut w) = self.begin_encoded()?;
        w.write_bool(true);
        w.put(&r.get::<Ior>()?)?;
        Ok(Part::Kept(at))
    }

    fn begin_encoded(&mut self) -> Result<(u32, Writer<'_>), DynAnyError> {
        self.kept.resize(self.kept.len().next_multiple_of(8), 0);
        let at = u32::try_from(self.kept.len()).map_err(|_| DynAnyError::TooLarge)?;
        Ok((at, Writer::new(&mut self.kept, CANONICAL)))
    }

    /// Stores a value encoded, with its type in front if it is in an `any`.
    fn keep(
        &mut self,
        r: &mut Reader<'_>,
        ty: TypeRef<'_>,
        in_any: Option<&TypeCode>,
    ) -> Result<Part, DynAnyError> {
        let (at, mut w) = self.begin_encoded()?;
        if let Some(type_code) = in_any {
            w.put(type_code)?;
        }
        copy_again(r, &mut w, ty)?;
        Ok(Part::Kept(at))
    }
}
