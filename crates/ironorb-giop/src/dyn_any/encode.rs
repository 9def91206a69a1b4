//! Converts nodes back to an `any`. Components that were never visited are copied encoded.

use std::collections::HashMap;

use super::CANONICAL;
use super::tree::{NodeId, Part, Place, State, Tree, zeros};
use super::types::{case_of, component_of, discriminator_of, element_size, first_label};
use super::{DEFAULT_BYTES_MAX, DynAnyError};
use crate::any::{Any, Content, CopyAgain, write_label};
use crate::cdr::{LongDouble, Writer};
use crate::fixed;
use crate::ior::Ior;
use crate::typecode::{Members, Shape, TcKind, TypeCode, TypeRef};
use crate::value::OpenValue;

impl Tree {
    /// The value at a place.
    pub(super) fn any_at(&self, place: Place) -> Result<Any, DynAnyError> {
        let content = match place {
            Place::Node(id) => self.content(id)?,
            _ => self.read_at(place, |r| {
                let bytes = r.read_bytes(r.remaining())?;
                Ok(Content::new(bytes.to_vec(), None))
            })?,
        };
        Ok(Any::from_content(self.type_at(place), content))
    }

    /// The content of an `any` with a node's value.
    pub(super) fn content(&self, id: NodeId) -> Result<Content, DynAnyError> {
        if let State::Whole(content) = &self.node(id).state {
            return Ok(content.clone());
        }
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, CANONICAL);
        w.collect_environment();
        let mut encoder = Encoder {
            tree: self,
            copy: CopyAgain::new(),
            written: HashMap::new(),
            left: DEFAULT_BYTES_MAX,
            work: Vec::new(),
        };
        encoder.run(&mut w, id)?;
        let environment = w.take_environment();
        Ok(Content::new(bytes, environment))
    }
}

struct Encoder<'t> {
    tree: &'t Tree,
    copy: CopyAgain,
    /// The positions where values start that have been written.
    written: HashMap<NodeId, usize>,
    /// The budget for default values: bytes that they may still take, with a charge for each part without
    /// bytes.
    left: usize,
    work: Vec<Frame>,
}

/// A part that is still to be written.
enum Frame {
    /// The components of a node from `next` on, and the value to end after them if they are its state.
    Parts { node: NodeId, next: u32, open: Option<OpenValue> },
    /// A whole node.
    One(NodeId),
}

impl<'t> Encoder<'t> {
    fn run(&mut self, w: &mut Writer<'_>, id: NodeId) -> Result<(), DynAnyError> {
        self.work.push(Frame::One(id));
        while let Some(frame) = self.work.last_mut() {
            let part = match frame {
                Frame::One(_) => None,
                Frame::Parts { node, next, .. } => {
                    *next += 1;
                    self.tree.part(*node, *next - 1).map(|part| (*node, *next - 1, part))
                }
            };
            if let Some((node, index, (source, part))) = part {
                self.part(w, node, index, source, part)?;
                continue;
            }
            match self.work.pop() {
                Some(Frame::One(id)) => self.node(w, id)?,
                Some(Frame::Parts { open: Some(open), .. }) => w.end_value(open)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn part(
        &mut self,
        w: &mut Writer<'_>,
        owner: NodeId,
        index: u32,
        source: &Content,
        part: Part,
    ) -> Result<(), DynAnyError> {
        if let Part::Made(id) = part {
            self.work.push(Frame::One(id));
            return Ok(());
        }
        let tree = self.tree;
        let (_, ty) = component_of(tree.ty(owner), index as usize).ok_or(DynAnyError::InvalidValue)?;
        match part {
            Part::Kept(at) => self.copy_encoded(w, source, at, ty),
            _ => write_default(w, ty, &mut self.left),
        }
    }

    /// Writes a node, or starts to.
    fn node(&mut self, w: &mut Writer<'_>, id: NodeId) -> Result<(), DynAnyError> {
        let tree = self.tree;
        let ty = tree.ty(id);
        let (resolved, shape) = ty.resolved_shape();
        match &tree.node(id).state {
            State::Default => write_default(w, ty, &mut self.left)?,
            State::Whole(source) => self.copy_encoded(w, source, 0, ty)?,
            State::Kept(source, at) => self.copy_encoded(w, source, *at, ty)?,
            State::Numbers(bytes) => {
                let size = element_size(ty).ok_or(DynAnyError::TypeMismatch)?;
                if let Shape::Sequence { .. } = shape {
                    w.write_length(bytes.len() / size)?;
                }
                if !bytes.is_empty() {
                    w.align(size);
                    w.write_bytes(bytes);
                }
            }
            State::Parts(parts) => {
                match shape {
                    Shape::Struct { kind: TcKind::Except, id, .. } => w.write_str(id)?,
                    Shape::Sequence { .. } => w.write_length(parts.parts.len())?,
                    _ => {}
                }
                self.work.push(Frame::Parts { node: id, next: 0, open: None });
            }
            State::Union { label, member } => {
                let switch = discriminator_of(ty).ok_or(DynAnyError::TypeMismatch)?;
                write_label(w, switch, *label)?;
                match (member, case_of(resolved, *label)) {
                    (Some(member), Some(_)) => self.work.push(Frame::One(*member)),
                    (None, Some((_, _, ty))) => write_default(w, ty, &mut self.left)?,
                    (_, None) => {}
                }
            }
            State::AnyOf(inner) => {
                w.put(&tree.node(*inner).type_code)?;
                self.work.push(Frame::One(*inner));
            }
            State::Null => {
                before_value(w, shape);
                w.write_null_value();
            }
            State::Custom(value) => {
                before_value(w, shape);
                w.put(&Some(value.clone()))?;
            }
            State::Value(state) => {
                before_value(w, shape);
                if let Some(position) = self.written.get(state) {
                    w.write_value_indirection(*position)?;
                    return Ok(());
                }
                if let State::Graph(value) = &tree.node(*state).state
                    && let Some(environment) = value.parts.source.environment()
                {
                    w.note_stored_environment(environment);
                }
                let open = w.begin_value(&tree.ids_of(*state), false)?;
                self.written.insert(*state, open.position());
                self.work.push(Frame::Parts { node: *state, next: 0, open: Some(open) });
            }
            State::Graph(_) => return Err(DynAnyError::TypeMismatch),
        }
        Ok(())
    }

    fn copy_encoded(
        &mut self,
        w: &mut Writer<'_>,
        source: &Content,
        at: u32,
        ty: TypeRef<'_>,
    ) -> Result<(), DynAnyError> {
        if let Some(environment) = source.environment() {
            w.note_stored_environment(environment);
        }
        Ok(self.copy.value(&mut source.reader_at(at as usize), w, ty)?)
    }
}

fn before_value(w: &mut Writer<'_>, shape: Shape<'_>) {
    if let Shape::Named { .. } = shape {
        w.write_bool(false);
    }
}

/// The charge for each part of a default value, in addition to its bytes.
const PART_BYTES: usize = size_of::<Part>();

/// A part of a default value that is still to be written.
enum Pending<'a> {
    Members(Members<'a>, usize),
    Elements(TypeRef<'a>, usize),
}

/// Writes the default value of a type; see [`DynAny::new`](super::DynAny::new).
pub(super) fn write_default(
    w: &mut Writer<'_>,
    ty: TypeRef<'_>,
    left: &mut usize,
) -> Result<(), DynAnyError> {
    let mut work = vec![Pending::Elements(ty, 1)];
    while let Some(pending) = work.last_mut() {
        let next = match pending {
            Pending::Members(members, next) => {
                *next += 1;
                members.get(*next - 1).map(|(_, ty)| ty)
            }
            Pending::Elements(ty, count) => {
                let more = count.checked_sub(1);
                *count = more.unwrap_or(0);
                more.map(|_| *ty)
            }
        };
        let Some(ty) = next else {
            work.pop();
            continue;
        };
        let before = w.position();
        let mut looked_at = 0;
        match ty.resolved_shape().1 {
            Shape::Struct { kind, id, members, .. } => {
                if kind == TcKind::Except {
                    w.write_str(id)?;
                }
                work.push(Pending::Members(members, 0));
            }
            Shape::Array { element, length } => match element_size(ty) {
                Some(size) if length > 0 => {
                    let bytes = zeros(length as usize, size)?;
                    w.align(size);
                    w.write_bytes(&bytes);
                }
                _ => work.push(Pending::Elements(element, length as usize)),
            },
            Shape::Union { cases, .. } => {
                looked_at = cases.len();
                let label = first_label(ty);
                write_label(w, discriminator_of(ty).ok_or(DynAnyError::TypeMismatch)?, label)?;
                if let Some((_, _, member)) = case_of(ty, label) {
                    work.push(Pending::Elements(member, 1));
                }
            }
            shape => write_default_leaf(w, shape)?,
        }
        // Parts without bytes cost time too, and a short type can have any number of them.
        let spent = PART_BYTES + looked_at + w.position() - before;
        *left = left.checked_sub(spent).ok_or(DynAnyError::TooLarge)?;
    }
    Ok(())
}

fn write_default_leaf(w: &mut Writer<'_>, shape: Shape<'_>) -> Result<(), DynAnyError> {
    match shape {
        Shape::Basic(kind) => match kind {
            TcKind::Null | TcKind::Void => {}
            TcKind::Octet | TcKind::Char | TcKind::Boolean => w.write_u8(0),
            TcKind::Short | TcKind::UShort => w.write_u16(0),
            TcKind::Long | TcKind::ULong | TcKind::Float => w.write_u32(0),
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => w.write_u64(0),
            TcKind::LongDouble => w.put(&LongDouble::from(0.0))?,
            TcKind::WChar => w.write_wchar('\0')?,
            TcKind::TypeCode => w.put(&TypeCode::default())?,
            TcKind::Any => w.put(&Any::default())?,
            _ => return Err(DynAnyError::InconsistentTypeCode),
        },
        Shape::String { .. } => w.write_str("")?,
        Shape::WString { .. } => w.write_wstr("")?,
        Shape::Fixed { digits, .. } => fixed::write_digits(w, 0, digits),
        Shape::Sequence { .. } | Shape::Enum { .. } => w.write_u32(0),
        Shape::Named { kind: TcKind::ObjRef | TcKind::Component | TcKind::Home, .. } => {
            w.put(&Ior::nil())?;
        }
        Shape::Named { kind: TcKind::AbstractInterface, .. } => {
            w.write_bool(false);
            w.write_null_value();
        }
        Shape::Value { .. } | Shape::ValueBox { .. } => w.write_null_value(),
        _ => return Err(DynAnyError::InconsistentTypeCode),
    }
    Ok(())
}
