//! [`Value`], the handle of programs to values, and [`Link`], the reference of values to each other.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::info::View;
use super::node::{Node, Single, WeakNode};
use super::{DerivesFrom, ValueBase, ValueInfo, ValueType};
use crate::error::Misuse;

/// A handle to a value: a shared owner of a state of type `T`, or of a type derived from `T`.
///
/// Cheap to clone; all clones are the same value. A handle keeps the whole graph of its value alive. When the
/// last handle to any value of a graph is dropped, the whole graph is freed, with or without cycles.
///
/// It dereferences to the state as a `T`. For a value of a derived type, this is the base inside of it.
pub struct Value<T: ?Sized + 'static> {
    node: Node,
    view: View<T>,
}

impl<T: ValueType> Value<T> {
    /// A new value. Links in its state keep their targets alive. [`ValueGraph`](super::ValueGraph) builds
    /// cycles.
    pub fn new(state: T) -> Self {
        Value { node: Node::new(Arc::new(Single(state)), 0), view: View(super::state::<T>) }
    }
}

impl<T: ?Sized> Value<T> {
    /// The value as a `T`, if its type is `T` or derived from it.
    pub(super) fn from_node(node: Node) -> Option<Self> {
        let view = node.state()?.info().view::<T>()?;
        Some(Value { node, view })
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// The state as its own, most derived type.
    pub fn base(&self) -> &dyn ValueBase {
        // A `Value` is created only from a node whose graph is complete.
        self.node.state().unwrap_or_else(|| unreachable!("a value without a state"))
    }

    /// Information about its most derived type.
    pub fn info(&self) -> &'static ValueInfo {
        self.base().info()
    }

    /// The identity of the value. Handles to one value have equal ids, whatever their formal types, and no two values that live at
    /// the same time do. Once the last handle to the value's graph is dropped, a later value may have its id.
    pub fn id(&self) -> ValueId {
        let (owner, index) = self.node.identity();
        ValueId { owner, index }
    }

    /// Whether both are one and the same value, not merely equal.
    pub fn ptr_eq<U: ?Sized>(&self, other: &Value<U>) -> bool {
        self.node.identity() == other.node.identity()
    }

    /// This value, seen as a base of its formal type.
    pub fn upcast<B: ?Sized + 'static>(&self) -> Value<B>
    where
        T: DerivesFrom<B>,
    {
        // Only a wrong `DerivesFrom` from the code generator could leave a value without this view.
        self.downcast().unwrap_or_else(|| unreachable!("{} lacks the view of its base", self.info().id))
    }

    /// This value, seen as another type that it has: a derived type, a base, or an abstract type.
    pub fn downcast<D: ?Sized + 'static>(&self) -> Option<Value<D>> {
        Value::from_node(self.node.clone())
    }

    /// The state seen as another type: the struct of the value's own type or of a base, or a trait that it
    /// implements, such as the trait of its operations.
    pub fn view<V: ?Sized + 'static>(&self) -> Option<&V> {
        let base = self.base();
        (base.info().view::<V>()?.0)(base)
    }
}

impl<T: ?Sized> Deref for Value<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (self.view.0)(self.base()).unwrap_or_else(|| unreachable!("a value is not what its view says"))
    }
}

impl<T: ?Sized> Clone for Value<T> {
    fn clone(&self) -> Self {
        Value { node: self.node.clone(), view: self.view }
    }
}

/// Equal if both are one value; see [`Value::ptr_eq`]. Compare states with `*a == *b`.
impl<T: ?Sized> PartialEq for Value<T> {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other)
    }
}

impl<T: ?Sized> Eq for Value<T> {}

/// Hashes [`Value::id`], as equality compares it. The hash does not depend on the state.
impl<T: ?Sized> Hash for Value<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

/// The identity of a value, from [`Value::id`]. It is a key for tables, such as that of the nodes seen while a graph is walked. It keeps
/// no value alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId {
    owner: usize,
    index: u32,
}

/// Shows the state. Links in it are only named, so that the output of a cycle ends.
impl<T: ?Sized> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base().fmt(f)
    }
}

impl<T: ValueType> From<T> for Value<T> {
    fn from(state: T) -> Self {
        Value::new(state)
    }
}

/// A member or element of a value type: leads to a value or is null.
///
/// In states that a program creates, a link shares the ownership of its target. Inside a graph that was
/// received, or built with [`ValueGraph`](super::ValueGraph), it does not: handles outside own the graph, so
/// that cycles are freed. A clone of such a link shares the ownership of the whole graph, so a state may be
/// cloned out of its graph and used in another.
pub struct Link<T: ?Sized + 'static>(Target<T>);

enum Target<T: ?Sized + 'static> {
    Null,
    Held(Value<T>),
    Within(WeakNode),
}

impl<T: ?Sized> Link<T> {
    /// A null link.
    pub const fn null() -> Self {
        Link(Target::Null)
    }

    /// A link to a value whose graph is complete.
    pub(super) fn held(value: Value<T>) -> Self {
        Link(Target::Held(value))
    }

    /// A link within the graph that its state belongs to.
    pub(super) fn within(node: WeakNode) -> Self {
        Link(Target::Within(node))
    }

    /// Whether the link is null.
    pub fn is_null(&self) -> bool {
        matches!(self.0, Target::Null)
    }

    /// The value that the link leads to; `None` if it is null. `None`, too, while the graph is being built or
    /// received, when a factory or a custom unmarshalling may see it, and after the graph is gone, which
    /// needs a link that was moved out of its state.
    pub fn get(&self) -> Option<Value<T>> {
        match &self.0 {
            Target::Null => None,
            Target::Held(value) => Some(value.clone()),
            Target::Within(node) => Value::from_node(node.upgrade()?),
        }
    }

    /// The target, owned or not. An error if the link is not null but its graph is not complete.
    pub(super) fn target(&self) -> Result<Option<Node>, Misuse> {
        match &self.0 {
            Target::Null => Ok(None),
            Target::Held(value) => Ok(Some(value.node.clone())),
            Target::Within(node) => match node.upgrade() {
                Some(node) if node.state().is_some() => Ok(Some(node)),
                _ => Err(Misuse::DanglingLink),
            },
        }
    }
}

impl<T: ?Sized> Clone for Link<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Target::Null => Link::null(),
            Target::Held(value) => Link(Target::Held(value.clone())),
            Target::Within(node) => match self.get() {
                Some(value) => Link(Target::Held(value)),
                None => Link(Target::Within(node.clone())),
            },
        }
    }
}

impl<T: ?Sized> Default for Link<T> {
    fn default() -> Self {
        Link::null()
    }
}

/// Equal if both are null, or both lead to one value.
impl<T: ?Sized> PartialEq for Link<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Target::Null, Target::Null) => true,
            (Target::Within(one), Target::Within(other)) => one.is_same(other),
            (Target::Null, _) | (_, Target::Null) => false,
            _ => match (self.target(), other.target()) {
                (Ok(Some(one)), Ok(Some(other))) => one.identity() == other.identity(),
                _ => false,
            },
        }
    }
}

impl<T: ?Sized> Eq for Link<T> {}

/// Shows the target by name only, because graphs may be cyclic.
impl<T: ?Sized> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0, self.get()) {
            (Target::Null, _) => f.write_str("Link(null)"),
            (_, None) => f.write_str("Link(not there)"),
            (_, Some(value)) => write!(f, "Link({})", value.info().id),
        }
    }
}

impl<T: ?Sized, D: DerivesFrom<T> + ?Sized> From<Value<D>> for Link<T> {
    fn from(value: Value<D>) -> Self {
        Link(Target::Held(value.upcast()))
    }
}

impl<T: ?Sized, D: DerivesFrom<T> + ?Sized> From<&Value<D>> for Link<T> {
    fn from(value: &Value<D>) -> Self {
        Link(Target::Held(value.upcast()))
    }
}

impl<T: ?Sized, D: DerivesFrom<T> + ?Sized> From<Option<Value<D>>> for Link<T> {
    fn from(value: Option<Value<D>>) -> Self {
        value.map_or(Link::null(), Link::from)
    }
}

/// A new value for the state, and a link to it.
impl<T: ValueType + DerivesFrom<T>> From<T> for Link<T> {
    fn from(state: T) -> Self {
        Link(Target::Held(Value::new(state)))
    }
}
