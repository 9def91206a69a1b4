//! `DynAny`: reads and builds values of any type at run time (CORBA 3.3 part 1, clause 16).
//!
//! Nothing here needs an ORB, and nothing recurses: a list may be as deep as it is long.
//!
//! # How a value is stored
//!
//! Two designs were weighed. *An eager tree* has one node per component. It is simple, but a
//! `sequence<octet>` of 64 KiB becomes 65,536 nodes of some 70 bytes. A caller that wants one number of a
//! large struct pays for all of it, and a peer's `sequence<struct {}>` costs a node for next to no bytes. *A
//! tree that is built as it is visited* stores each value as the bytes of its `any`. They are CDR in one
//! form, so a component is an offset, and a component gets a node when a caller visits it. This has a price.
//! To find the start of a component, the code must pass over the components before it, and do so again on
//! each level. This is quadratic for types that nest in themselves. And an offset is not an identity, which
//! values have.
//!
//! So the second design is used where it works, which is nearly everywhere, and the first where it does not.
//! Content without values, whose type does not nest in itself, stays encoded until it is visited. Numbers in
//! sequences and arrays never become nodes. Graphs of values, and types that nest in themselves, are decoded
//! in one pass, and their flat parts stay encoded. Nodes are in a table and values refer to each other by
//! number. So a cycle is freed with its table, and cloning, freeing and writing a tree need no deep stack.
//!
//! Content from a peer takes memory in proportion to its bytes, because the [`Any`] that contains it does.
//! The memory for a type alone is bounded by [`DEFAULT_BYTES_MAX`].
//!
//! # Components
//!
//! The standard's component objects live on in their owner. Here a component is a `DynAny` that borrows its
//! owner:
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
use tree::{NO_POSITION, Node, NodeId, Place, State, Tree};

/// The most bytes of a default value whose size depends on its type alone: of arrays, and of structs of
/// structs. Each part counts 8 more, except for numbers in an array. Not configurable: 16 MiB, so that a type
/// of a few bytes costs no more.
pub const DEFAULT_BYTES_MAX: usize = 16 << 20;

/// A value of any type that a program can read and change: the standard's `DynAny`, `DynStruct`, `DynUnion`,
/// `DynSequence`, `DynArray`, `DynEnum`, `DynFixed`, `DynValue` and `DynValueBox` in one.
///
/// Operations that do not fit its type return [`DynAnyError::TypeMismatch`]. The value is a copy of the
/// [`Any`] that it was created from. `DynAny<'static>` owns its value; any other is a component of one. A
/// clone of a component is an independent value.
pub struct DynAny<'t> {
    tree: TreeRef<'t>,
    place: Place,
}

enum TreeRef<'t> {
    Owned(Tree),
    Borrowed(&'t mut Tree),
}

impl DynAny<'static> {
    /// The default value of a type. Numbers and characters are 0, booleans false, texts and sequences empty,
    /// references nil, values null, and an `any` or TypeCode is `tk_null`. An enum has its first enumerator
    /// and a union its first case. All members and elements follow the same rule.
    /// [`DynAnyError::InconsistentTypeCode`] if the type has no values. Allocates no memory for the value
    /// before it is visited.
    pub fn new(type_code: &TypeCode) -> Result<DynAny<'static>, DynAnyError> {
        types::check_has_values(type_code)?;
        Ok(DynAny::owned(Tree::of(Node::new(type_code.clone(), State::Default))))
    }

    /// A copy of the value in an `any`, of the same type. Allocates little: the bytes are shared until they
    /// are changed, except for graphs of values and types that nest in themselves.
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
        DynAny { tree: TreeRef::Owned(tree), place: Place::Node(0) }
    }
}

impl<'t> DynAny<'t> {
    /// The component with this index, in place of its owner: for descending step by step.
    /// [`DynAnyError::InvalidValue`] if there are not so many.
    pub fn into_component(mut self, index: u32) -> Result<DynAny<'t>, DynAnyError> {
        let place = self.component(index)?.place;
        Ok(DynAny { tree: self.tree, place })
    }
}

impl DynAny<'_> {
    /// The type. For a value it is the type of its place; see [`DynAny::value_type`].
    pub fn type_code(&self) -> TypeCode {
        self.tree().type_at(self.place)
    }

    /// The kind behind any typedefs.
    fn kind(&self) -> TcKind {
        self.type_code().as_type_ref().resolved().kind()
    }

    /// The value as an `any`. Copies nothing if nothing was changed.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        self.tree().any_at(self.place)
    }

    /// Assigns the value of another, of an equivalent type. The current position becomes that of a new value.
    pub fn assign(&mut self, other: &DynAny<'_>) -> Result<(), DynAnyError> {
        self.assign_any(&other.to_any()?)
    }

    /// Assigns the value of an `any` of an equivalent type: the standard's `from_any`.
    pub fn assign_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.tidy();
        let place = self.place;
        self.tree_mut().put(place, any)
    }

    /// Whether both have equal values and equivalent types. Current positions do not count.
    pub fn equal(&self, other: &DynAny<'_>) -> Result<bool, DynAnyError> {
        let (one, other) = (self.to_any()?, other.to_any()?);
        Ok(match other.retyped(one.type_code().clone()) {
            Ok(other) => one == other,
            Err(_) => false,
        })
    }

    /// An independent, equal value: the standard's `copy`.
    pub fn copy(&self) -> Result<DynAny<'static>, DynAnyError> {
        match self.place {
            Place::Node(id) => Ok(DynAny::owned(self.tree().extract(id))),
            _ => DynAny::from_any(&self.to_any()?),
        }
    }

    /// The number of components: members or elements; for a union, the discriminator and the active member. 0
    /// for null and for values that cannot have any.
    pub fn component_count(&mut self) -> Result<u32, DynAnyError> {
        match self.place {
            Place::Node(id) => self.tree_mut().count(id),
            _ => Ok(0),
        }
    }

    /// The index of the current component; `None` if there is none. A new value is at its first component, if
    /// it has any.
    pub fn current_position(&mut self) -> Result<Option<u32>, DynAnyError> {
        let Place::Node(id) = self.place else { return Ok(None) };
        let tree = self.tree_mut();
        let count = tree.count(id)?;
        let id = tree.opened(id)?;
        Ok(Some(tree.node(id).current).filter(|current| *current < count))
    }

    /// Moves to the component with this index. If there is none, returns false and leaves no current
    /// component.
    pub fn seek(&mut self, index: u32) -> Result<bool, DynAnyError> {
        let Place::Node(id) = self.place else { return Ok(false) };
        let tree = self.tree_mut();
        let there = index < tree.count(id)?;
        let id = tree.opened(id)?;
        tree.node_mut(id).current = if there { index } else { NO_POSITION };
        Ok(there)
    }

    /// Moves to the first component. False if there is none.
    pub fn rewind(&mut self) -> Result<bool, DynAnyError> {
        self.seek(0)
    }

    /// Moves to the next component, or to the first if there is no current one. Behind the last, returns
    /// false and leaves no current component.
    #[allow(clippy::should_implement_trait)] // the standard's name; it returns no item
    pub fn next(&mut self) -> Result<bool, DynAnyError> {
        let next = self.current_position()?.map_or(0, |position| position + 1);
        self.seek(next)
    }

    /// The current component, to read and change; `None` if there is none. [`DynAnyError::TypeMismatch`] if
    /// values of this type cannot have components.
    pub fn current_component(&mut self) -> Result<Option<DynAny<'_>>, DynAnyError> {
        if !self.can_have_components() {
            return Err(DynAnyError::TypeMismatch);
        }
        match self.current_position()? {
            Some(position) => self.component(position).map(Some),
            None => Ok(None),
        }
    }

    /// The component with this index. [`DynAnyError::InvalidValue`] if there are not so many.
    pub fn component(&mut self, index: u32) -> Result<DynAny<'_>, DynAnyError> {
        self.tidy();
        let Place::Node(id) = self.place else { return Err(DynAnyError::InvalidValue) };
        let tree = self.tree_mut();
        let place = tree.component(id, index)?.ok_or(DynAnyError::InvalidValue)?;
        Ok(DynAny { tree: TreeRef::Borrowed(tree), place })
    }

    /// Structs without members cannot. An abstract interface can if it is a value.
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
            TreeRef::Owned(tree) => tree,
            TreeRef::Borrowed(tree) => tree,
        }
    }

    fn tree_mut(&mut self) -> &mut Tree {
        match &mut self.tree {
            TreeRef::Owned(tree) => tree,
            TreeRef::Borrowed(tree) => tree,
        }
    }

    /// Called before a component is visited or changed. No component of an owned value is borrowed then.
    fn tidy(&mut self) {
        if let TreeRef::Owned(tree) = &mut self.tree
            && self.place == Place::Node(0)
        {
            tree.tidy();
        }
    }

    /// The node of this value, if it has one of these kinds.
    fn node_of_kind(&self, kinds: &[TcKind]) -> Result<NodeId, DynAnyError> {
        match self.place {
            Place::Node(id) if kinds.contains(&self.kind()) => Ok(id),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }
}

/// Clones the value; a clone of a component is independent. Cloning a number of a sequence needs the sequence
/// as well.
impl Clone for DynAny<'_> {
    fn clone(&self) -> Self {
        match self.place {
            Place::Node(id) => {
                DynAny { tree: TreeRef::Owned(self.tree().extract(id)), place: Place::Node(0) }
            }
            // A number or a discriminator has no meaning without the rest of the value, so the clone has all
            // of it.
            place => DynAny { tree: TreeRef::Owned(self.tree().clone()), place },
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
