//! Values from bytes (CORBA 3.3 part 2, 9.3.4).

use std::sync::Arc;

use super::node::{Graph, Node, Nodes, WeakNode};
use super::{FormalValue, Link, Value, ValueBase, ValueFactory, ValueInfo, tag};
use crate::cdr::{Reader, Unmarshal, UnmarshalNillable};
use crate::error::{Malformed, MalformedKind};

/// What a reader remembers of the values in its message. Made when the first value is read.
#[derive(Default)]
pub(crate) struct ReadState {
    /// Where values start, in ascending order.
    starts: Vec<(usize, Found)>,
    /// The graph of the outermost value that is being read.
    building: Option<Building>,
}

/// A value that has been met in the message.
#[derive(Clone)]
enum Found {
    /// Its graph is whole.
    Whole(Node),
    /// In the graph that is being read, by index.
    Building(u32),
}

/// A graph that is being read.
struct Building {
    graph: Arc<Graph>,
    nodes: Vec<Option<Box<dyn ValueBase>>>,
    infos: Vec<&'static ValueInfo>,
    /// How many entries `ReadState::starts` had before.
    first_start: usize,
}

impl std::fmt::Debug for ReadState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadState({} values)", self.starts.len())
    }
}

/// What the type of a parameter or member says of the values that may stand there.
#[derive(Clone, Copy)]
struct Formal {
    id: &'static str,
    factory: Option<&'static dyn ValueFactory>,
    admits: fn(&ValueInfo) -> bool,
}

impl Formal {
    fn of<T: FormalValue + ?Sized>() -> Self {
        Formal { id: T::ID, factory: T::FACTORY, admits: |info| info.view::<T>().is_some() }
    }
}

enum Factory {
    Formal(&'static dyn ValueFactory),
    Registered(Arc<dyn ValueFactory>),
}

impl Factory {
    fn get(&self) -> &dyn ValueFactory {
        match self {
            Factory::Formal(factory) => *factory,
            Factory::Registered(factory) => &**factory,
        }
    }
}

/// Reads a value, an indirection or null.
fn read_value(r: &mut Reader<'_>, formal: Formal) -> Result<Option<Found>, Malformed> {
    r.align(4);
    let at = r.position();
    match r.read_u32()? {
        tag::NULL => Ok(None),
        tag::INDIRECTION => read_indirection(r, formal, at).map(Some),
        tag if (tag::VALUE..=tag::VALUE_MAX).contains(&tag) => read_new_value(r, formal, at, tag).map(Some),
        _ => Err(Malformed::new(MalformedKind::BadValueTag, at)),
    }
}

fn read_indirection(r: &mut Reader<'_>, formal: Formal, at: usize) -> Result<Found, Malformed> {
    let bad = Malformed::new(MalformedKind::BadIndirection, at);
    let from = r.position();
    let target = read_target(r, from)?;
    let state = r.values();
    let index = state.starts.binary_search_by_key(&target, |(start, _)| *start).map_err(|_| bad)?;
    let (_, found) = state.starts.get(index).ok_or(bad)?;
    let info = match found {
        Found::Whole(node) => node.state().map(ValueBase::info),
        Found::Building(index) => state.building.as_ref().and_then(|b| b.infos.get(*index as usize).copied()),
    };
    match info {
        Some(info) if (formal.admits)(info) => Ok(found.clone()),
        _ => Err(Malformed::new(MalformedKind::WrongValueType, at)),
    }
}

/// Where an indirection leads whose offset stands at `from`: before its own tag.
fn read_target(r: &mut Reader<'_>, from: usize) -> Result<usize, Malformed> {
    let offset = r.read_i32()?;
    if offset >= -4 {
        return Err(Malformed::new(MalformedKind::BadIndirection, from));
    }
    from.checked_sub(offset.unsigned_abs() as usize)
        .ok_or(Malformed::new(MalformedKind::BadIndirection, from))
}

fn read_new_value(r: &mut Reader<'_>, formal: Formal, at: usize, tag: u32) -> Result<Found, Malformed> {
    let outermost = r.values().building.is_none();
    if outermost {
        let first_start = r.values().starts.len();
        r.values().building =
            Some(Building { graph: Arc::default(), nodes: Vec::new(), infos: Vec::new(), first_start });
    }
    let found = read_state(r, formal, at, tag);
    if !outermost {
        return found;
    }
    // Whole or broken, the graph ends with its outermost value.
    let state = r.values();
    let Some(building) = state.building.take() else { return found };
    let found = found?;
    let nodes = building.nodes.into_iter().collect::<Option<Vec<_>>>();
    building.graph.fill(nodes.ok_or(Malformed::new(MalformedKind::BadIndirection, at))?);
    let graph: Arc<dyn Nodes> = building.graph;
    let whole = |found: &Found| match found {
        Found::Building(index) => Found::Whole(Node::new(graph.clone(), *index)),
        Found::Whole(node) => Found::Whole(node.clone()),
    };
    for (_, found) in &mut state.starts[building.first_start..] {
        *found = whole(found);
    }
    Ok(whole(&found))
}

fn read_state(r: &mut Reader<'_>, formal: Formal, at: usize, tag: u32) -> Result<Found, Malformed> {
    let factory = match tag & tag::TYPE_INFO {
        0 => formal.factory.map(Factory::Formal),
        tag::SINGLE_ID => find_factory(r, formal)?,
        _ => return Err(Malformed::new(MalformedKind::BadValueTag, at)),
    };
    let factory = factory.ok_or(Malformed::new(MalformedKind::NoValueFactory, at))?;
    let info = factory.get().info();
    if !(formal.admits)(info) {
        return Err(Malformed::new(MalformedKind::WrongValueType, at));
    }
    let state = r.values();
    let Some(building) = &mut state.building else {
        return Err(Malformed::new(MalformedKind::BadValueTag, at));
    };
    let index = building.nodes.len();
    building.nodes.push(None);
    building.infos.push(info);
    state.starts.push((at, Found::Building(index as u32)));
    let value = r.nested(|r| factory.get().unmarshal_state(r))?;
    if let Some(place) = r.values().building.as_mut().and_then(|b| b.nodes.get_mut(index)) {
        *place = Some(value);
    }
    Ok(Found::Building(index as u32))
}

fn find_factory(r: &mut Reader<'_>, formal: Formal) -> Result<Option<Factory>, Malformed> {
    let id = read_id(r)?;
    if id == formal.id
        && let Some(factory) = formal.factory
    {
        return Ok(Some(Factory::Formal(factory)));
    }
    Ok(r.environment().and_then(|e| e.value_factory(&id)).map(Factory::Registered))
}

/// A repository id, or an indirection to one.
fn read_id<'a>(r: &mut Reader<'a>) -> Result<std::borrow::Cow<'a, str>, Malformed> {
    r.align(4);
    let mut peek = r.clone();
    if peek.read_u32()? != tag::INDIRECTION {
        return r.read_str();
    }
    r.read_u32()?;
    let from = r.position();
    let target = read_target(r, from)?;
    r.look_back(target).read_str()
}

impl<T: FormalValue + ?Sized> UnmarshalNillable for Value<T> {
    const NIL_BYTES_MIN: usize = 4;

    /// Not for members of values, which are [`Link`]s: their graph is not whole yet.
    fn unmarshal_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let at = r.position();
        match read_value(r, Formal::of::<T>())? {
            None => Ok(None),
            Some(Found::Whole(node)) => Ok(Value::from_node(node)),
            Some(Found::Building(_)) => Err(Malformed::new(MalformedKind::ValueNotWhole, at)),
        }
    }
}

impl<T: FormalValue + ?Sized> Unmarshal for Link<T> {
    const BYTES_MIN: usize = 4;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match read_value(r, Formal::of::<T>())? {
            None => Link::null(),
            Some(Found::Whole(node)) => Value::from_node(node).map_or(Link::null(), Link::held),
            Some(Found::Building(index)) => match &r.values().building {
                Some(building) => {
                    let graph: Arc<dyn Nodes> = building.graph.clone();
                    Link::within(WeakNode::new(Arc::downgrade(&graph), index))
                }
                None => Link::null(),
            },
        })
    }
}
