//! What a reader remembers of the values in its message.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::{Graph, Node, Nodes, WeakNode};
use super::read::{Place, Resolved};
use super::{ValueBase, ValueInfo};
use crate::error::{Malformed, MalformedKind};

/// The most values in one message. Not configurable: 4 Mi. A value that is empty on the wire takes about 200
/// bytes in memory, so the values take 800 MiB at worst, and only after 16 MiB of them have arrived.
pub const VALUES_MAX: usize = 4 << 20;

/// How deeply custom values may be nested, each in an `any` in the state of the next one. Each is read and
/// then written to be stored, which is twice the work of the value inside it. Not configurable.
pub(crate) const CUSTOM_VALUES_DEEP: u8 = 4;

/// What a reader remembers of the values in its message.
#[derive(Default)]
pub(crate) struct ReadState {
    /// Where values start, in ascending order of position.
    starts: Vec<(u32, Start)>,
    /// The start that was looked up last. The next lookup is mostly for its neighbour.
    recent_start: usize,
    /// Starts that were found after later ones.
    late: BTreeMap<u32, Start>,
    graphs: Vec<Arc<Graph>>,
    /// The values of the last of `graphs`, while it is being read.
    pub(super) building: Option<Vec<Slot>>,
    nesting: Nesting,
    /// The values that are being read, the outermost first.
    pub(super) active: Vec<Place>,
    /// The value from which reading must start again because the stack is deep; see `read.rs`.
    pub(super) suspended: Option<Place>,
    /// How many times values were started, and how many bytes were skipped that had been read before; see
    /// `read.rs`.
    pub(super) begun: usize,
    pub(super) stepped_over: usize,
    /// Bytes that were read again because an `any` refers to an earlier value.
    pub(crate) read_again: usize,
    /// How many custom values, each in an `any` in a value, surround the reader; see [`CUSTOM_VALUES_DEEP`].
    pub(crate) custom_depth: u8,
    /// Repository ids that indirections refer to, by position; see `ids.rs`.
    pub(super) ids: BTreeMap<usize, Arc<str>>,
    /// Lists of such ids by position, and how many ids they have together.
    pub(super) id_lists: BTreeMap<usize, Arc<[Arc<str>]>>,
    pub(super) ids_listed: usize,
    /// Types that were found through indirections, by position and formal type.
    pub(super) types: BTreeMap<(usize, usize), Resolved>,
    /// The type that was found last, with its repository id and formal type.
    pub(super) recent: Option<(String, usize, Resolved)>,
}

/// The position of the next byte in chunked values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    /// How many chunked values surround it.
    pub(super) level: u32,
    /// The level of the outermost value that one end tag has ended together with others, until that value is
    /// left.
    pub(super) ended: Option<u32>,
}

/// A value of a graph that is being read.
pub(super) enum Slot {
    Reading(&'static ValueInfo),
    Read(Box<dyn ValueBase>),
}

/// The start of a value.
#[derive(Clone, Copy)]
struct Start {
    /// The value, once its type is known.
    found: Option<Found>,
    /// For reading it: how many chunked values surround it, and where its octet stream starts.
    level: u32,
    origin: u32,
    /// Where it ends, once known.
    end: Option<End>,
}

/// A value that the reader has found: the index of its graph, and its own index in the graph.
#[derive(Clone, Copy)]
pub(super) struct Found {
    graph: u32,
    index: u32,
}

/// Where a value ends.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) at: u32,
    pub(super) ended: Option<u32>,
}

/// What a reader needs in order to read a value at a known position: how many chunked values surround it, and
/// where its octet stream starts.
#[derive(Clone, Copy)]
pub(super) struct Skipped {
    pub(super) level: u32,
    pub(super) origin: usize,
}

impl std::fmt::Debug for ReadState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadState({} values)", self.starts.len() + self.late.len())
    }
}

impl ReadState {
    pub(crate) fn nesting(&self) -> Nesting {
        self.nesting
    }

    pub(crate) fn set_nesting(&mut self, nesting: Nesting) {
        self.nesting = nesting;
    }

    /// Whether a graph is being read.
    pub(crate) fn is_in_graph(&self) -> bool {
        self.building.is_some()
    }

    /// How many values are known.
    pub(super) fn values(&self) -> usize {
        self.starts.len() + self.late.len()
    }

    fn start(&mut self, at: usize) -> Option<&mut Start> {
        let at = u32::try_from(at).ok()?;
        match self.index_of(at) {
            Some(index) => self.starts.get_mut(index).map(|(_, start)| start),
            None if self.late.is_empty() => None,
            None => self.late.get_mut(&at),
        }
    }

    fn index_of(&mut self, at: u32) -> Option<usize> {
        if self.starts.last().is_none_or(|(last, _)| *last < at) {
            return None;
        }
        let recent = self.recent_start;
        let near = [recent, recent + 1, recent.wrapping_sub(1)];
        let is_there = |index: &usize| self.starts.get(*index).is_some_and(|(there, _)| *there == at);
        let index = match near.into_iter().find(is_there) {
            Some(index) => index,
            None => self.starts.binary_search_by_key(&at, |(at, _)| *at).ok()?,
        };
        self.recent_start = index;
        Some(index)
    }

    /// Notes that a value starts here. Its type need not be known.
    pub(super) fn note_start(&mut self, at: usize, level: u32, origin: usize) -> Result<(), Malformed> {
        if self.start(at).is_some() {
            return Ok(());
        }
        let too_large = Malformed::new(MalformedKind::TooLarge, at);
        if self.starts.len() + self.late.len() >= VALUES_MAX {
            return Err(too_large);
        }
        let (at, origin) = match (u32::try_from(at), u32::try_from(origin)) {
            (Ok(at), Ok(origin)) => (at, origin),
            _ => return Err(too_large),
        };
        let start = Start { found: None, level, origin, end: None };
        if self.starts.last().is_none_or(|(last, _)| *last < at) {
            self.starts.push((at, start));
        } else {
            self.late.insert(at, start);
        }
        Ok(())
    }

    /// Reserves a place in the current graph for a value whose start has been noted.
    pub(super) fn reserve(&mut self, at: usize, info: &'static ValueInfo) -> Option<Found> {
        if let Some(found) = self.start(at)?.found {
            return Some(found); // it is being read again
        }
        let graph = u32::try_from(self.graphs.len().checked_sub(1)?).ok()?;
        let slots = self.building.as_mut()?;
        let found = Found { graph, index: u32::try_from(slots.len()).ok()? };
        slots.push(Slot::Reading(info));
        let start = self.start(at)?;
        // The end of an earlier reading without the type does not say how far this reading has got.
        (start.found, start.end) = (Some(found), None);
        Some(found)
    }

    /// Stores the state of a value that has been read, and its end.
    pub(super) fn complete(&mut self, at: usize, found: Found, value: Box<dyn ValueBase>, end: usize) {
        if let Some(slot) = self.building.as_mut().and_then(|slots| slots.get_mut(found.index as usize)) {
            *slot = Slot::Read(value);
        }
        let end = End { at: u32::try_from(end).unwrap_or(u32::MAX), ended: self.nesting.ended };
        if let Some(start) = self.start(at) {
            start.end = Some(end);
        }
    }

    /// The value that starts here, and its end, if it has been read completely.
    pub(super) fn completed(&mut self, at: usize) -> Option<(Found, End)> {
        let start = self.start(at)?;
        Some((start.found?, start.end?))
    }

    /// Notes the end of a value that was read without its type.
    pub(super) fn note_end(&mut self, at: usize, end: usize) {
        let Ok(end) = u32::try_from(end) else { return };
        let end = End { at: end, ended: self.nesting.ended };
        if let Some(start) = self.start(at).filter(|start| start.found.is_none()) {
            start.end = Some(end);
        }
    }

    /// The end of the value that starts here, if it has been read completely, with its type or without.
    pub(super) fn end(&mut self, at: usize) -> Option<End> {
        self.start(at)?.end
    }

    /// The type of the value that starts here, if it has been read with its type.
    pub(crate) fn type_at(&mut self, at: usize) -> Option<&'static ValueInfo> {
        let found = self.start(at)?.found?;
        self.info(found)
    }

    /// The value that starts here: either known or skipped.
    pub(super) fn lookup(&mut self, at: usize) -> Option<Result<Found, Skipped>> {
        let start = self.start(at)?;
        Some(start.found.ok_or(Skipped { level: start.level, origin: start.origin as usize }))
    }

    /// What a reader needs in order to read the value that starts here.
    pub(super) fn place_of(&mut self, at: usize) -> Option<Skipped> {
        let start = self.start(at)?;
        Some(Skipped { level: start.level, origin: start.origin as usize })
    }

    /// What is known of the type of a value.
    pub(super) fn info(&self, found: Found) -> Option<&'static ValueInfo> {
        if let Some(node) = self.graphs.get(found.graph as usize)?.node(found.index) {
            return Some(node.info());
        }
        Some(match self.building.as_ref()?.get(found.index as usize)? {
            Slot::Reading(info) => info,
            Slot::Read(value) => value.info(),
        })
    }

    /// Starts a graph.
    pub(super) fn begin_graph(&mut self) {
        self.graphs.push(Arc::default());
        self.building = Some(Vec::new());
    }

    /// Ends the current graph. False if a value is missing.
    pub(super) fn end_graph(&mut self) -> bool {
        let slots = self.building.take().into_iter().flatten();
        let nodes = slots.map(|slot| match slot {
            Slot::Reading(_) => None,
            Slot::Read(value) => Some(value),
        });
        match (nodes.collect::<Option<Vec<_>>>(), self.graphs.last()) {
            (Some(nodes), Some(graph)) => {
                graph.fill(nodes);
                true
            }
            _ => false,
        }
    }

    /// A handle to a value whose graph is complete.
    pub(super) fn node(&self, found: Found) -> Option<Node> {
        let graph = self.graphs.get(found.graph as usize)?;
        graph.node(found.index)?;
        Some(Node::new(graph.clone(), found.index))
    }

    /// The weak reference of a value to another value of the graph that is being read.
    pub(super) fn weak_node(&self, found: Found) -> Option<WeakNode> {
        let graph = Arc::downgrade(self.graphs.get(found.graph as usize)?);
        Some(WeakNode::new(graph, found.index))
    }
}
