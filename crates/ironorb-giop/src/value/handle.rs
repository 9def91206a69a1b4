//! [`Value`], by which programs hold values, and [`Link`], by which values hold each other.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::info::View;
use super::node::{Node, Single, WeakNode};
use super::{DerivesFrom, ValueBase, ValueInfo, ValueType};
use crate::error::Misuse;

/// A value, held: a shared owner of a state of type `T`, or of a type derived from `T`.
///
/// Cheap to clone; all clones are the same value. As long as one handle to any value of a graph lives, so does
/// the whole graph; with the last one all of it is freed, cyclic or not.
///
/// It dereferences to the state as a `T`: for a value of a derived type, to the base inside of it.
pub struct Value<T: ?Sized + 'static> {
    node: Node,
    view: View<T>,
}

impl<T: ValueType> Value<T> {
    /// A new value. Links in its state keep what they lead to alive; to build cycles see
    /// [`ValueGraph`](super::ValueGraph).
    pub fn new(state: T) -> Self {
        Value { node: Node::new(Arc::new(Single(state)), 0), view: View(super::state::<T>) }
    }
}

impl<T: ?Sized> Value<T> {
    /// The value as a `T`, if its type is that or derived from it.
    pub(super) fn from_node(node: Node) -> Option<Self> {
        let view = node.state()?.info().view::<T>()?;
        Some(Value { node, view })
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// The state as what it really is.
    pub fn base(&self) -> &dyn ValueBase {
        // A `Value` is made only of a node whose graph is whole.
        self.node.state().unwrap_or_else(|| unreachable!("a value without a state"))
    }

    /// What is known of its most derived type.
    pub fn info(&self) -> &'static ValueInfo {
        self.base().info()
    }

    /// Which value it is: equal for all handles to one value, whatever their formal types, and for no two values that
    /// live at the same time. May be used again for another value when the last handle to this one's graph has gone.
    pub fn id(&self) -> ValueId {
        let (owner, index) = self.node.identity();
        ValueId { owner, index }
    }

    /// True when both are the same value, not merely equal ones.
    pub fn ptr_eq<U: ?Sized>(&self, other: &Value<U>) -> bool {
        self.node.identity() == other.node.identity()
    }

    /// The same value as one of a base of its formal type.
    pub fn upcast<B: ?Sized + 'static>(&self) -> Value<B>
    where
        T: DerivesFrom<B>,
    {
        // A wrong `DerivesFrom` is the generator's fault, and only that can come here without a view.
        self.downcast().unwrap_or_else(|| unreachable!("{} lacks the view of its base", self.info().id))
    }

    /// The same value as one of another type, if it is one: of a derived type, of a base, or of an abstract one.
    pub fn downcast<D: ?Sized + 'static>(&self) -> Option<Value<D>> {
        Value::from_node(self.node.clone())
    }

    /// The state seen as another type: the struct of the value's own type or of a base, or a trait that it
    /// implements, such as the one of its operations.
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

/// The same value; see [`Value::ptr_eq`]. Compare states with `*a == *b`.
impl<T: ?Sized> PartialEq for Value<T> {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other)
    }
}

impl<T: ?Sized> Eq for Value<T> {}

/// By identity, as equality is: the hash of [`Value::id`]. It does not change with the state.
impl<T: ?Sized> Hash for Value<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

/// Which value a handle leads to; made by [`Value::id`]. For tables of values that have been seen, such as the nodes of a
/// graph that is walked. Keeps no value alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId {
    owner: usize,
    index: u32,
}

/// The state; what it links to is only named, so that a cycle has an end.
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

/// A member or element of value type: leads to a value or is null.
///
/// In states that a program makes it shares in the ownership of its target. Inside a graph that was received, or
/// built with [`ValueGraph`](super::ValueGraph), it does not: the graph is owned from outside, so that cycles are
/// freed. A clone of such a link shares in the ownership of the whole graph, so that a state may be
/// cloned out of its graph and used in another.
pub struct Link<T: ?Sized + 'static>(Target<T>);

enum Target<T: ?Sized + 'static> {
    Null,
    Held(Value<T>),
    Within(WeakNode),
}

impl<T: ?Sized> Link<T> {
    /// Leads nowhere.
    pub const fn null() -> Self {
        Link(Target::Null)
    }

    /// To a value whose graph is whole.
    pub(super) fn held(value: Value<T>) -> Self {
        Link(Target::Held(value))
    }

    /// Within the graph whose state this is.
    pub(super) fn within(node: WeakNode) -> Self {
        Link(Target::Within(node))
    }

    /// True when it leads nowhere.
    pub fn is_null(&self) -> bool {
        matches!(self.0, Target::Null)
    }

    /// The value it leads to; `None` when it is null. `None` also as long as the graph is being built or
    /// received, which a factory or a custom unmarshalling may see, and after its graph is gone, which only a link
    /// that was moved out of its state can be.
    pub fn get(&self) -> Option<Value<T>> {
        match &self.0 {
            Target::Null => None,
            Target::Held(value) => Some(value.clone()),
            Target::Within(node) => Value::from_node(node.upgrade()?),
        }
    }

    /// The value it leads to, however it is held; an error when it should lead somewhere but its graph is not whole.
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

/// Both are null, or both lead to the same value.
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

/// Where it leads by name only: graphs may be cyclic.
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
