//! Typed values from bytes (CORBA 3.3 part 2, 9.3.4).
//!
//! The state of a value is nested in the state that refers to it, so reading recurses. Real data has lists of
//! any length, but the stack is limited. When values are nested [`VALUES_DEEP`] levels on the stack, the
//! reader unwinds to the outermost value. It reads a value half way down first, on a fresh stack. Then it
//! starts again from the outermost value and skips what has been read. So each value of a list is started
//! three times. A message whose values are started more than [`REREAD_MAX`] times on average is refused.

use std::sync::Arc;

use super::header::Spot;
use super::known::{CUSTOM_VALUES_DEEP, Found, Nesting, Skipped};
use super::{FormalValue, Link, Value, ValueBase, ValueFactory, ValueHeader, ValueInfo, tag};
use crate::cdr::{NO_CHUNK, Reader, Unmarshal, UnmarshalNillable};
use crate::error::{Malformed, MalformedKind};

/// Levels on the stack, of values and of sequences in them, after which values are read on a fresh stack.
pub const VALUES_DEEP: u16 = 64;
/// How many times the values of a message may be started, and their bytes read, on average, where values are
/// nested deeper than [`VALUES_DEEP`].
pub const REREAD_MAX: usize = 16;

/// The values that the type of a parameter or member admits.
#[derive(Clone, Copy)]
pub(super) struct Formal {
    id: &'static str,
    factory: Option<&'static dyn ValueFactory>,
    admits: fn(&ValueInfo) -> bool,
}

impl Formal {
    fn of<T: FormalValue + ?Sized>() -> Self {
        Formal { id: T::ID, factory: T::FACTORY, admits: |info| info.view::<T>().is_some() }
    }

    /// Identifies the formal type in caches. Two formal types with one key admit the same values.
    fn key(&self) -> usize {
        self.id.as_ptr() as usize
    }
}

/// A value that is being read.
#[derive(Clone, Copy)]
pub(super) struct Place {
    spot: Spot,
    /// Where its octet stream starts.
    origin: usize,
    formal: Formal,
}

/// How to create a value.
#[derive(Clone)]
pub(super) struct Resolved {
    factory: Factory,
    /// Whether it is created as one of its bases.
    truncates: bool,
}

#[derive(Clone)]
enum Factory {
    Formal(&'static dyn ValueFactory),
    Registered(Arc<dyn ValueFactory>),
}

impl Resolved {
    fn factory(&self) -> &dyn ValueFactory {
        match &self.factory {
            Factory::Formal(factory) => *factory,
            Factory::Registered(factory) => &**factory,
        }
    }
}

/// Reads a value, an indirection or null.
fn read_value(r: &mut Reader<'_>, formal: Formal) -> Result<Option<Found>, Malformed> {
    let (spot, tag) = r.value_tag()?;
    match tag {
        tag::NULL => {
            r.after_nothing(&spot);
            Ok(None)
        }
        tag::INDIRECTION => {
            let target = r.indirection()?;
            r.after_nothing(&spot);
            let found = match r.values().lookup(target) {
                Some(Ok(found)) => found,
                Some(Err(skipped)) => read_skipped(r, target, skipped, formal)?,
                None => return Err(Malformed::new(MalformedKind::BadIndirection, spot.at)),
            };
            check_type(r, found, formal, spot.at).map(Some)
        }
        tag => {
            let place = Place { spot, origin: r.stream_origin(), formal };
            let found = read_new(r, place, tag)?;
            check_type(r, found, formal, spot.at).map(Some)
        }
    }
}

fn check_type(r: &mut Reader<'_>, found: Found, formal: Formal, at: usize) -> Result<Found, Malformed> {
    match r.values().info(found) {
        Some(info) if (formal.admits)(info) => Ok(found),
        _ => Err(Malformed::new(MalformedKind::WrongValueType, at)),
    }
}

/// Reads a value that was skipped as part of a truncated state.
fn read_skipped(r: &mut Reader<'_>, at: usize, skipped: Skipped, formal: Formal) -> Result<Found, Malformed> {
    let origin = r.stream_origin();
    if skipped.origin != origin {
        return Err(Malformed::new(MalformedKind::BadIndirection, at));
    }
    let bookmark = r.bookmark();
    let place = Place { spot: Spot { at, level: skipped.level, chunk_end: NO_CHUNK }, origin, formal };
    let tag = go_to(r, &place)?;
    let found = read_new(r, place, tag)?;
    r.return_to(&bookmark);
    Ok(found)
}

/// Moves to the start of a value, and reads its tag again.
fn go_to(r: &mut Reader<'_>, place: &Place) -> Result<u32, Malformed> {
    r.values().set_nesting(Nesting { level: place.spot.level, ended: None });
    r.set_chunk_end(NO_CHUNK);
    r.seek_stream(place.spot.at);
    let tag = r.read_u32()?;
    r.set_chunk_end(place.spot.chunk_end);
    Ok(tag)
}

/// Reads a value whose tag has been read.
fn read_new(r: &mut Reader<'_>, place: Place, tag: u32) -> Result<Found, Malformed> {
    let depth = r.depth();
    let state = r.values();
    state.begun += 1;
    if let Some((found, end)) = state.completed(place.spot.at) {
        state.stepped_over += (end.at as usize).saturating_sub(place.spot.at);
        r.step_over(&place.spot, end);
        return Ok(found);
    }
    if state.building.is_none() {
        return read_graph(r, place, tag);
    }
    if depth >= VALUES_DEEP {
        return Err(suspend(r, place));
    }
    read_one(r, place, tag)
}

/// Reads an outermost value and everything that belongs to it.
fn read_graph(r: &mut Reader<'_>, place: Place, tag: u32) -> Result<Found, Malformed> {
    let depth = r.depth();
    r.set_depth(0);
    r.values().begin_graph();
    let found = read_tasks(r, place, tag);
    r.set_depth(depth);
    // Complete or not, the graph ends with its outermost value.
    let is_whole = r.values().end_graph();
    let found = found?;
    if !is_whole {
        return Err(Malformed::new(MalformedKind::BadIndirection, place.spot.at));
    }
    Ok(found)
}

/// Reads a value, and before it the values inside it that are too deep for the stack.
fn read_tasks(r: &mut Reader<'_>, place: Place, tag: u32) -> Result<Found, Malformed> {
    let mut result = read_one(r, place, tag);
    if r.values().suspended.is_none() {
        return result;
    }
    let bytes_max = REREAD_MAX.saturating_mul(r.remaining() + r.position());
    let mut bytes = 0;
    let mut tasks = vec![place];
    loop {
        match r.values().suspended.take() {
            Some(deeper) => tasks.push(deeper),
            None => {
                tasks.pop();
                if tasks.is_empty() {
                    return result;
                }
                result?;
            }
        }
        let Some(place) = tasks.last().copied() else { return result };
        let state = r.values();
        if bytes > bytes_max || state.begun > state.values().saturating_mul(REREAD_MAX) {
            return Err(Malformed::new(MalformedKind::TooDeep, place.spot.at));
        }
        let tag = go_to(r, &place)?;
        r.values().stepped_over = 0;
        result = read_one(r, place, tag);
        let passed = r.stream_position().saturating_sub(place.spot.at);
        bytes += passed.saturating_sub(r.values().stepped_over);
    }
}

/// Picks the value to read on a fresh stack: half way down to the value that is too deep.
fn suspend(r: &mut Reader<'_>, place: Place) -> Malformed {
    let state = r.values();
    let half = state.active.len() / 2;
    // Only values in the octet stream of the outermost value can be read from there.
    let origin = state.active.first().map(|outermost| outermost.origin);
    let candidates = state.active.iter().skip(half.max(1)).chain([&place]);
    state.suspended = candidates.copied().find(|place| Some(place.origin) == origin);
    Malformed::new(MalformedKind::TooDeep, place.spot.at)
}

/// Reads a value whose tag has been read, and everything it refers to, into the current graph.
fn read_one(r: &mut Reader<'_>, place: Place, tag: u32) -> Result<Found, Malformed> {
    let Place { spot, formal, .. } = place;
    let chunked = tag & tag::CHUNKED != 0;
    r.begin_header(&spot, tag)?;
    let resolved = resolve(r, formal, tag)?;
    let info = resolved.as_ref().map(|resolved| resolved.factory().info());
    let (resolved, info) = match (resolved, info) {
        (Some(resolved), Some(info)) if chunked || !resolved.truncates => (resolved, info),
        _ => return Err(Malformed::new(MalformedKind::NoValueFactory, spot.at)),
    };
    if !(formal.admits)(info) {
        let kind =
            if resolved.truncates { MalformedKind::NoValueFactory } else { MalformedKind::WrongValueType };
        return Err(Malformed::new(kind, spot.at));
    }
    let found = r.values().reserve(spot.at, info);
    let found = found.ok_or_else(|| Malformed::new(MalformedKind::BadIndirection, spot.at))?;
    r.begin_state(&spot, tag)?;
    r.values().active.push(place);
    let value = r.nested(|r| resolved.factory().unmarshal_state(r));
    r.values().active.pop();
    if r.values().suspended.is_some() {
        // Report this error even if the factory has changed it.
        return Err(Malformed::new(MalformedKind::TooDeep, spot.at));
    }
    let value = value?;
    r.end_state(&spot, chunked)?;
    let end = r.stream_position();
    r.values().complete(spot.at, found, value, end);
    r.after_value(&spot);
    Ok(found)
}

/// Finds out how to make a value, from the type information that its tag announces.
fn resolve(r: &mut Reader<'_>, formal: Formal, tag: u32) -> Result<Option<Resolved>, Malformed> {
    match tag & tag::TYPE_INFO {
        0 => Ok(resolve_id(r, formal, formal.id)),
        tag::SINGLE_ID => match r.read_u32()? {
            tag::INDIRECTION => resolve_indirectly(r, formal, |r, place| {
                let id = r.look_back(place)?.direct_id()?;
                Ok(resolve_id(r, formal, &id))
            }),
            length => {
                let id = r.rest_of_id(length)?;
                Ok(resolve_id(r, formal, &id))
            }
        },
        tag::ID_LIST => match r.read_u32()? {
            tag::INDIRECTION => resolve_indirectly(r, formal, |r, place| {
                let ids = r.id_list_at(place)?;
                Ok(resolve_list(r, formal, &ids))
            }),
            count => {
                let ids = r.rest_of_id_list(count)?;
                Ok(resolve_list(r, formal, &ids))
            }
        },
        _ => Err(r.malformed(MalformedKind::BadValueTag)),
    }
}

/// Finds out how to create a value whose type information is elsewhere. Once for each position, because it
/// may be long.
fn resolve_indirectly<'a>(
    r: &mut Reader<'a>,
    formal: Formal,
    read: impl FnOnce(&mut Reader<'a>, usize) -> Result<Option<Resolved>, Malformed>,
) -> Result<Option<Resolved>, Malformed> {
    let target = r.indirection()?;
    let key = (target, formal.key());
    if let Some(resolved) = r.values().types.get(&key) {
        return Ok(Some(resolved.clone()));
    }
    let resolved = read(r, target)?;
    if let Some(resolved) = &resolved {
        r.values().types.insert(key, resolved.clone());
    }
    Ok(resolved)
}

/// The first known type of a list: the type itself, or the nearest base that it may be truncated to.
fn resolve_list(r: &mut Reader<'_>, formal: Formal, ids: &[Arc<str>]) -> Option<Resolved> {
    let known = ids.iter().enumerate().find_map(|(index, id)| Some((index, resolve_id(r, formal, id)?)));
    known.map(|(index, resolved)| Resolved { truncates: index > 0, ..resolved })
}

fn resolve_id(r: &mut Reader<'_>, formal: Formal, id: &str) -> Option<Resolved> {
    let key = formal.key();
    if let Some((recent, recent_key, resolved)) = &r.values().recent
        && *recent_key == key
        && recent == id
    {
        return Some(resolved.clone());
    }
    // The factories that the program has registered precede those of the signature.
    let registered = r.environment().and_then(|environment| environment.value_factory(id));
    let factory = match (registered, formal.factory) {
        (Some(factory), _) => Factory::Registered(factory),
        (None, Some(factory)) if id == formal.id => Factory::Formal(factory),
        _ => return None,
    };
    let resolved = Resolved { factory, truncates: false };
    r.values().recent = Some((id.to_owned(), key, resolved.clone()));
    Some(resolved)
}

impl Reader<'_> {
    /// Reads a value after its header and then everything else have been read, and continues behind it.
    pub(crate) fn value_again(&mut self, header: ValueHeader) -> Result<Value<dyn ValueBase>, Malformed> {
        let not_whole = Malformed::new(MalformedKind::ValueNotWhole, header.position);
        if self.values().building.is_none() {
            let formal = Formal::of::<dyn ValueBase>();
            let place = Place { spot: header.spot, origin: self.stream_origin(), formal };
            let tag = go_to(self, &place)?;
            let found = read_new(self, place, tag)?;
            return self.values().node(found).and_then(Value::from_node).ok_or(not_whole);
        }
        // The value is in the state of a value that is not complete, so it gets a graph of its own that
        // refers to nothing outside.
        let depth = self.values().custom_depth + 1;
        if depth > CUSTOM_VALUES_DEEP {
            return Err(Malformed::new(MalformedKind::TooDeep, header.position));
        }
        let mut alone = self.reader_at_value(header.position)?;
        alone.values().custom_depth = depth;
        let value: Option<Value<dyn ValueBase>> = alone.get()?;
        if !header.chunked {
            return Err(not_whole);
        }
        self.end_value(header)?;
        value.ok_or(not_whole)
    }
}

impl<T: FormalValue + ?Sized> UnmarshalNillable for Value<T> {
    const NIL_BYTES_MIN: usize = 4;

    /// Not for members of values, which are [`Link`]s: their graph is not complete yet.
    fn unmarshal_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let at = r.position();
        match read_value(r, Formal::of::<T>())? {
            None => Ok(None),
            Some(found) => {
                let value = r.values().node(found).and_then(Value::from_node);
                value.map(Some).ok_or(Malformed::new(MalformedKind::ValueNotWhole, at))
            }
        }
    }
}

impl<T: FormalValue + ?Sized> Unmarshal for Link<T> {
    const BYTES_MIN: usize = 4;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Some(found) = read_value(r, Formal::of::<T>())? else { return Ok(Link::null()) };
        let state = r.values();
        if let Some(value) = state.node(found).and_then(Value::from_node) {
            return Ok(Link::held(value));
        }
        Ok(state.weak_node(found).map_or(Link::null(), Link::within))
    }
}
