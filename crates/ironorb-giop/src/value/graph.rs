//! [`ValueGraph`]: builds values that refer to each other in cycles.

use std::marker::PhantomData;
use std::sync::Arc;

use super::node::{Graph, Node, Nodes, WeakNode};
use super::{DerivesFrom, Link, Value, ValueBase, ValueType};
use crate::error::Misuse;

/// Builds a graph of values, which may have cycles.
///
/// ```
/// # use ironorb_giop::value::*;
/// # use ironorb_giop::{Malformed, Misuse, Reader, Writer};
/// # #[derive(Debug)] struct Node { number: i32, next: Link<Node> }
/// # impl ValueBase for Node {
/// #     fn info(&self) -> &'static ValueInfo { Self::INFO }
/// #     fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse> { w.put(&self.number)?; w.put(&self.next) }
/// # }
/// # impl ValueType for Node {
/// #     const INFO: &'static ValueInfo = &ValueInfo { id: "IDL:Node:1.0", bases: &[], truncatable: 0,
/// #         kind: ValueKind::Plain, type_def: &ironorb_giop::typecode::TypeDef::Null,
/// #         factory: &ironorb_giop::value::StateFactory::<Node>::new(), views: &[&View::<Node>(state::<Node>)] };
/// #     fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed> {
/// #         Ok(Node { number: r.get()?, next: r.get()? })
/// #     }
/// # }
/// # impl DerivesFrom<Node> for Node {}
/// let mut graph = ValueGraph::new();
/// let first = graph.reserve::<Node>();
/// let second = graph.add(Node { number: 2, next: graph.link(first) });
/// graph.fill(first, Node { number: 1, next: graph.link(second) })?;
/// let first: Value<Node> = graph.finish(first)?;
/// assert_eq!(first.next.get().unwrap().next.get().unwrap().number, 1);
/// # Ok::<(), Misuse>(())
/// ```
#[derive(Default)]
pub struct ValueGraph {
    graph: Arc<Graph>,
    nodes: Vec<Option<Box<dyn ValueBase>>>,
}

/// The place of a value of type `T` in the [`ValueGraph`] that created it.
pub struct Place<T: ?Sized>(u32, PhantomData<fn() -> T>);

impl<T: ?Sized> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Place<T> {}

impl<T: ?Sized> std::fmt::Debug for Place<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({})", self.0)
    }
}

impl ValueGraph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// A place for a value whose state [`fill`](ValueGraph::fill) adds later.
    pub fn reserve<T: ValueType>(&mut self) -> Place<T> {
        self.nodes.push(None);
        Place(self.nodes.len() as u32 - 1, PhantomData)
    }

    /// Adds a value.
    pub fn add<T: ValueType>(&mut self, state: T) -> Place<T> {
        self.nodes.push(Some(Box::new(state)));
        Place(self.nodes.len() as u32 - 1, PhantomData)
    }

    /// Fills a reserved place. [`Misuse::UnfinishedGraph`] if it is not an empty place of this graph.
    pub fn fill<T: ValueType>(&mut self, place: Place<T>, state: T) -> Result<(), Misuse> {
        match self.nodes.get_mut(place.0 as usize) {
            Some(node @ None) => {
                *node = Some(Box::new(state));
                Ok(())
            }
            _ => Err(Misuse::UnfinishedGraph),
        }
    }

    /// A link to a value of this graph. It belongs in the state of such a value.
    pub fn link<B: ?Sized, T: DerivesFrom<B> + ?Sized>(&self, place: Place<T>) -> Link<B> {
        let graph: Arc<dyn Nodes> = self.graph.clone();
        Link::within(WeakNode::new(Arc::downgrade(&graph), place.0))
    }

    /// Finishes the graph and returns one of its values. [`Misuse::UnfinishedGraph`] if a reserved place is
    /// empty, or if `place` is not a place of this graph.
    pub fn finish<T: ValueType>(self, place: Place<T>) -> Result<Value<T>, Misuse> {
        let nodes = self.nodes.into_iter().collect::<Option<Vec<_>>>().ok_or(Misuse::UnfinishedGraph)?;
        self.graph.fill(nodes);
        Value::from_node(Node::new(self.graph, place.0)).ok_or(Misuse::UnfinishedGraph)
    }
}

impl std::fmt::Debug for ValueGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueGraph({} values)", self.nodes.len())
    }
}
