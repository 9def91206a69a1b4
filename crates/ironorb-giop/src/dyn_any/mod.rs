//! `DynAny`: values of any type, looked into and put together at run time (CORBA 3.3 part 1, clause 16).
//!
//! Nothing here needs an ORB, and nothing recurses: a list may be as deep as it is long.
//!
//! # How a value is kept
//!
//! Two designs were weighed. *An eager tree* has a node a component. It is the simple one, but a `sequence<octet>` of
//! 64 KiB becomes 65,536 nodes of some 70 bytes, whoever only wants one number of a large struct pays for all of it, and
//! a peer's `sequence<struct {}>` costs a node for next to nothing. *A tree made as it is visited* keeps each value as
//! the bytes that its `any` has - they are CDR in one form, so a component is an offset - and makes a node for a
//! component when somebody comes to it. Its price: to find where a component begins one has to walk over those before
//! it, on each level again, which is quadratic for types that nest in themselves; and an offset is no identity, which
//! values have.
//!
//! So it is the second wherever it works, which is nearly everywhere, and the first where it does not. What has no values
//! in it, and whose type does not nest in itself, is kept and looked into when it is visited; numbers in sequences and
//! arrays never become nodes. Graphs of values, and types that nest in themselves, are taken apart in one pass, with what
//! is flat in them kept as bytes. Nodes lie in a table, so values that refer to each other are numbers, a cycle frees
//! itself with its table, and to clone, to free or to write a tree needs no stack.
//!
//! What came from a peer takes memory in proportion to its bytes, since the [`Any`] that holds it does; what a type alone
//! asks for is bounded by [`DEFAULT_BYTES_MAX`].
//!
//! # Components
//!
//! The standard's component objects live on in their owner. Here a component is a `DynAny` that borrows it:
//!
//! ```
//! use ironorb_giop::{DynAny, TypeCode, TypeDef};
//!
//! let long = TypeCode::of(&TypeDef::Long);
//! let numbers = TypeCode::create_sequence(&long, 0)?;
//! let point = TypeCode::create_struct("IDL:Point:1.0", "Point", &[("x", long), ("trace", numbers)])?;
//!
//! let mut value = DynAny::new(&point)?;
//! value.insert_long(7)?; // at the current component, which is the first
//! value.member("trace")?.insert_numbers(&[1i32, 2, 3])?;
//! let any = value.to_any()?;
//!
//! let mut again = DynAny::from_any(&any)?;
//! assert_eq!(again.get_long()?, 7);
//! assert!(again.next()?);
//! assert_eq!(again.current_member_name()?, "trace");
//! assert_eq!(*again.member("trace")?.numbers::<i32>()?, [1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod basic;
mod decode;
mod elements;
mod encode;
mod error;
mod members;
mod tree;
mod types;
mod union;
mod value;

use std::fmt;

pub use error::DynAnyError;

use crate::any::{Any, CANONICAL};
use crate::typecode::{TcKind, TypeCode};
use tree::{NOWHERE, Node, NodeId, Place, State, Tree};

/// Bytes that a default value may take, where only its type says how large it is: of arrays, and of structs of structs.
/// Each part counts 8 more, but for numbers in an array. Default and only value: 16 MiB, so that a type of a few bytes
/// costs no more.
pub const DEFAULT_BYTES_MAX: usize = 16 << 20;

/// A value of any type that can be looked into and changed: the standard's `DynAny`, `DynStruct`, `DynUnion`,
/// `DynSequence`, `DynArray`, `DynEnum`, `DynFixed`, `DynValue` and `DynValueBox` in one.
///
/// Operations that are not for its type give [`DynAnyError::TypeMismatch`]. It is a copy of the [`Any`] that it came
/// from. `DynAny<'static>` owns its value; others are components of one. To clone a component gives a value of its own.
pub struct DynAny<'t> {
    tree: Held<'t>,
    place: Place,
}

enum Held<'t> {
    Owned(Tree),
    Borrowed(&'t mut Tree),
}

impl DynAny<'static> {
    /// The default value of a type: numbers and characters 0, booleans false, texts and sequences empty, references
    /// nil, values null, an `any` or TypeCode of `tk_null`, the first enumerator, the first case of a union, and all
    /// members and elements by the same rule. [`DynAnyError::InconsistentTypeCode`] if the type has no values.
    /// Takes no memory for the value before it is visited.
    pub fn new(type_code: &TypeCode) -> Result<DynAny<'static>, DynAnyError> {
        types::check_has_values(type_code)?;
        Ok(DynAny::owned(Tree::of(Node::new(type_code.clone(), State::Default))))
    }

    /// A copy of what an `any` holds, of the same type. Allocates little: the bytes are shared until they are changed,
    /// but for graphs of values and types that nest in themselves.
    pub fn from_any(any: &Any) -> Result<DynAny<'static>, DynAnyError> {
        match any.type_code().as_type_ref().resolved().kind() {
            TcKind::Principal | TcKind::Native | TcKind::LocalInterface => {
                return Err(DynAnyError::InconsistentTypeCode);
            }
            _ => {}
        }
        let type_code = any.type_code().clone();
        let mut tree = Tree::of(Node::new(type_code.clone(), State::Null));
        let state = tree.load(&type_code, any)?;
        tree.node_mut(0).state = state;
        tree.settle();
        Ok(DynAny::owned(tree))
    }

    fn owned(tree: Tree) -> DynAny<'static> {
        DynAny { tree: Held::Owned(tree), place: Place::Node(0) }
    }
}

impl<'t> DynAny<'t> {
    /// The component with an index, in the place of what it is a component of: to go down step by step.
    /// [`DynAnyError::InvalidValue`] if there are not so many.
    pub fn into_component(mut self, index: u32) -> Result<DynAny<'t>, DynAnyError> {
        let place = self.component(index)?.place;
        Ok(DynAny { tree: self.tree, place })
    }
}

impl DynAny<'_> {
    /// The type. Of a value it is the type of where it stands; see [`DynAny::value_type`].
    pub fn type_code(&self) -> TypeCode {
        self.tree().type_at(self.place)
    }

    /// The kind behind any typedefs.
    fn kind(&self) -> TcKind {
        self.type_code().as_type_ref().resolved().kind()
    }

    /// The value as an `any`. Copies nothing where nothing was changed.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        self.tree().any_at(self.place)
    }

    /// Takes another's value, of an equivalent type. The current position becomes that of a new one.
    pub fn assign(&mut self, other: &DynAny<'_>) -> Result<(), DynAnyError> {
        self.assign_any(&other.to_any()?)
    }

    /// Takes the value of an `any` of an equivalent type: the standard's `from_any`.
    pub fn assign_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.tidy();
        let place = self.place;
        self.tree_mut().put(place, any)
    }

    /// Whether both have the same value, and equivalent types; current positions do not count.
    pub fn equal(&self, other: &DynAny<'_>) -> Result<bool, DynAnyError> {
        let (one, other) = (self.to_any()?, other.to_any()?);
        Ok(match other.retyped(one.type_code().clone()) {
            Ok(other) => one == other,
            Err(_) => false,
        })
    }

    /// A value of its own that is the same: the standard's `copy`.
    pub fn copy(&self) -> Result<DynAny<'static>, DynAnyError> {
        match self.place {
            Place::Node(id) => Ok(DynAny::owned(self.tree().extract(id))),
            _ => DynAny::from_any(&self.to_any()?),
        }
    }

    /// How many components there are: members, elements, of a union the discriminator and the member that is active.
    /// 0 for values that cannot have any, and for null.
    pub fn component_count(&mut self) -> Result<u32, DynAnyError> {
        match self.place {
            Place::Node(id) => self.tree_mut().count(id),
            _ => Ok(0),
        }
    }

    /// The index of the current component. It is that of the first after the value was made, if there is one.
    pub fn current_position(&mut self) -> Result<Option<u32>, DynAnyError> {
        let Place::Node(id) = self.place else { return Ok(None) };
        let tree = self.tree_mut();
        let count = tree.count(id)?;
        let id = tree.opened(id)?;
        Ok(Some(tree.node(id).current).filter(|current| *current < count))
    }

    /// Goes to a component. False, and at none, if there is none with this index.
    pub fn seek(&mut self, index: u32) -> Result<bool, DynAnyError> {
        let Place::Node(id) = self.place else { return Ok(false) };
        let tree = self.tree_mut();
        let there = index < tree.count(id)?;
        let id = tree.opened(id)?;
        tree.node_mut(id).current = if there { index } else { NOWHERE };
        Ok(there)
    }

    /// Goes to the first component. False if there is none.
    pub fn rewind(&mut self) -> Result<bool, DynAnyError> {
        self.seek(0)
    }

    /// Goes to the component after the current one; from nowhere to the first. False, and at none, behind the last.
    #[allow(clippy::should_implement_trait)] // the standard's name; it gives no item
    pub fn next(&mut self) -> Result<bool, DynAnyError> {
        let next = self.current_position()?.map_or(0, |position| position + 1);
        self.seek(next)
    }

    /// The component at the current position, to look at and to change; `None` at none.
    /// [`DynAnyError::TypeMismatch`] if values of this type cannot have components.
    pub fn current_component(&mut self) -> Result<Option<DynAny<'_>>, DynAnyError> {
        if !self.can_have_components() {
            return Err(DynAnyError::TypeMismatch);
        }
        match self.current_position()? {
            Some(position) => self.component(position).map(Some),
            None => Ok(None),
        }
    }

    /// The component with an index. [`DynAnyError::InvalidValue`] if there are not so many.
    pub fn component(&mut self, index: u32) -> Result<DynAny<'_>, DynAnyError> {
        self.tidy();
        let Place::Node(id) = self.place else { return Err(DynAnyError::InvalidValue) };
        let tree = self.tree_mut();
        let place = tree.component(id, index)?.ok_or(DynAnyError::InvalidValue)?;
        Ok(DynAny { tree: Held::Borrowed(tree), place })
    }

    /// Structs without members cannot; an abstract interface can if it is a value.
    fn can_have_components(&self) -> bool {
        let Place::Node(id) = self.place else { return false };
        let ty = self.tree().ty(id);
        match ty.resolved().kind() {
            TcKind::Struct | TcKind::Except => types::member_count(ty) > 0,
            TcKind::AbstractInterface => matches!(self.tree().node(id).state, State::Value(_)),
            _ => types::is_composite(ty),
        }
    }

    fn tree(&self) -> &Tree {
        match &self.tree {
            Held::Owned(tree) => tree,
            Held::Borrowed(tree) => tree,
        }
    }

    fn tree_mut(&mut self) -> &mut Tree {
        match &mut self.tree {
            Held::Owned(tree) => tree,
            Held::Borrowed(tree) => tree,
        }
    }

    /// Before something is visited or changed. Nobody holds a component of a value that is owned.
    fn tidy(&mut self) {
        if let Held::Owned(tree) = &mut self.tree
            && self.place == Place::Node(0)
        {
            tree.tidy();
        }
    }

    /// The node that this is, if it is of one of these kinds.
    fn node_of_kind(&self, kinds: &[TcKind]) -> Result<NodeId, DynAnyError> {
        match self.place {
            Place::Node(id) if kinds.contains(&self.kind()) => Ok(id),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }
}

/// A value of its own, also of a component. A number of a sequence that could not be copied would be a fault here.
impl Clone for DynAny<'_> {
    fn clone(&self) -> Self {
        match self.place {
            Place::Node(id) => DynAny { tree: Held::Owned(self.tree().extract(id)), place: Place::Node(0) },
            // The rest of the value is kept along: a number, or a discriminator, is nothing without it.
            place => DynAny { tree: Held::Owned(self.tree().clone()), place },
        }
    }
}

impl fmt::Debug for DynAny<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_any() {
            Ok(any) => write!(f, "Dyn{any:?}"),
            Err(error) => write!(f, "DynAny({error})"),
        }
    }
}

#[cfg(test)]
mod tests;
