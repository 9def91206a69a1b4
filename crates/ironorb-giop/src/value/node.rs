//! Ownership of the states of values: groups of values, each freed as a whole.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock, Weak};

use super::ValueBase;

/// Values with a common lifetime: one that a program created, or all values of one graph.
pub(crate) trait Nodes: Send + Sync {
    /// The value at an index; `None` while the graph is being built.
    fn node(&self, index: u32) -> Option<&dyn ValueBase>;
}

/// A value that a program created.
pub(crate) struct Single<T>(pub(crate) T);

impl<T: ValueBase> Nodes for Single<T> {
    fn node(&self, _: u32) -> Option<&dyn ValueBase> {
        Some(&self.0)
    }
}

/// The values of a graph. Its links to itself are weak, so only handles outside own it.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: OnceLock<Box<[Box<dyn ValueBase>]>>,
}

impl Graph {
    /// Adds the values, once.
    pub(crate) fn fill(&self, nodes: Vec<Box<dyn ValueBase>>) {
        let filled = self.nodes.set(nodes.into_boxed_slice());
        debug_assert!(filled.is_ok(), "a graph is filled once");
    }
}

impl Nodes for Graph {
    fn node(&self, index: u32) -> Option<&dyn ValueBase> {
        Some(&**self.nodes.get()?.get(index as usize)?)
    }
}

/// One value, with a share in its owner.
#[derive(Clone)]
pub(crate) struct Node {
    /// `None` only during the drop.
    owner: Option<Arc<dyn Nodes>>,
    index: u32,
}

impl Node {
    pub(crate) fn new(owner: Arc<dyn Nodes>, index: u32) -> Self {
        Node { owner: Some(owner), index }
    }

    /// The state; `None` while its graph is being built.
    pub(crate) fn state(&self) -> Option<&dyn ValueBase> {
        self.owner.as_ref()?.node(self.index)
    }

    /// A number that is the same for one value, and different for any two live values.
    pub(crate) fn identity(&self) -> (usize, u32) {
        let address = self.owner.as_ref().map_or(0, |owner| Arc::as_ptr(owner).cast::<()>() as usize);
        (address, self.index)
    }
}

/// Lists of values can be long. Dropping one value from within the drop of another would exhaust the stack.
/// So values that are freed while another is being dropped wait in a queue.
impl Drop for Node {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        if Arc::strong_count(&owner) > 1 {
            return;
        }
        // At the end of a thread its queue may be gone. The value is then dropped here.
        let _ = RELEASED.try_with(|released| released.take_over(owner));
    }
}

#[derive(Default)]
struct Released {
    is_active: Cell<bool>,
    waiting: RefCell<Vec<Arc<dyn Nodes>>>,
}

thread_local! {
    static RELEASED: Released = Released::default();
}

impl Released {
    fn take_over(&self, owner: Arc<dyn Nodes>) {
        if self.is_active.get() {
            self.waiting.borrow_mut().push(owner);
            return;
        }
        struct Active<'a>(&'a Cell<bool>);
        impl Drop for Active<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        self.is_active.set(true);
        let _active = Active(&self.is_active);
        drop(owner);
        while let Some(owner) = self.next() {
            drop(owner);
        }
        // A long list leaves a short queue, and a wide tree a long one.
        *self.waiting.borrow_mut() = Vec::new();
    }

    fn next(&self) -> Option<Arc<dyn Nodes>> {
        self.waiting.borrow_mut().pop()
    }
}

/// A reference to a value that does not keep its graph alive.
#[derive(Clone)]
pub(crate) struct WeakNode {
    owner: Weak<dyn Nodes>,
    index: u32,
}

impl WeakNode {
    pub(crate) fn new(owner: Weak<dyn Nodes>, index: u32) -> Self {
        WeakNode { owner, index }
    }

    /// `None` if the graph is gone.
    pub(crate) fn upgrade(&self) -> Option<Node> {
        Some(Node { owner: Some(self.owner.upgrade()?), index: self.index })
    }

    pub(crate) fn is_same(&self, other: &WeakNode) -> bool {
        self.index == other.index && Weak::ptr_eq(&self.owner, &other.owner)
    }
}
