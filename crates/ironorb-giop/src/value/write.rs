//! Typed values to bytes (CORBA 3.3 part 2, 9.3.4).
//!
//! Lists of values can be longer than the stack is deep; see `read.rs`. The writer unwinds in the same
//! situation and writes a value half way down first. Then it writes the surrounding values again into a
//! buffer that is discarded, up to the position of that value.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::frame::Frames;
use super::needs::Needs;
use super::node::Node;
use super::read::VALUES_DEEP;
use super::{Link, Value, ValueInfo, ValueKind};
use crate::cdr::{Cuts, Marshal, MarshalNillable, Run, Writer};
use crate::error::Misuse;

/// What a writer remembers of the values in its message. Allocated for the first value.
#[derive(Default)]
pub(crate) struct WriteState {
    /// The values that have been started, and the number of each.
    written: Vec<Written>,
    numbers: HashMap<(usize, u32), usize, BuildHasherDefault<IdentityHasher>>,
    pub(super) frames: Frames,
    /// The values that are being written, the outermost first.
    active: Vec<Place>,
    /// The value from which writing must start again because the stack is deep.
    suspended: Option<Place>,
    /// The real message, while the output is discarded, and where it starts in its buffer.
    real: Option<(Vec<u8>, usize)>,
    /// What is needed to read the bytes again, if they will be stored.
    pub(crate) needs: Option<Needs>,
    /// Where the message may be cut into fragments, if it must be.
    pub(crate) cuts: Option<Cuts>,
    /// The runs omitted before the first value, if the writer omits runs.
    pub(crate) runs: Vec<Run>,
}

impl WriteState {
    /// Whether the output is discarded.
    pub(crate) fn is_rehearsing(&self) -> bool {
        self.real.is_some()
    }
}

/// A value that has been started.
struct Written {
    /// Held so that its identity is not used again.
    node: Node,
    at: usize,
    /// Where it ends, and whether it ends with an end tag, once known.
    end: Option<(usize, bool)>,
}

/// A value that is being written: its number, and how many chunked values surround it.
#[derive(Clone, Copy)]
struct Place {
    number: usize,
    level: u32,
}

/// Hashes identities of values. These are addresses, which no peer chooses, so the hash need not resist
/// guessing.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_u32(&mut self, index: u32) {
        self.write_usize(index as usize);
    }

    fn write_usize(&mut self, part: usize) {
        // An odd number without a pattern: 2^64 divided by the golden ratio.
        let product = u128::from(self.0 ^ part as u64) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl WriteState {
    /// Whether the next byte belongs to the state of a chunked value.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.frames.level > 0
    }
}

impl std::fmt::Debug for WriteState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteState({} values)", self.written.len())
    }
}

/// Writes a value, or an indirection to its position if it has been written.
fn write_node(node: &Node, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let at = w.next_value_position();
    let state = w.values();
    let number = state.numbers.get(&node.identity()).copied();
    match number.map(|number| &state.written[number]) {
        Some(written) if written.at != at => {
            let earlier = written.at;
            return w.write_value_indirection(earlier);
        }
        // Noted here again, because the surrounding values are written again.
        Some(Written { end: Some((end, by_tag)), .. }) => {
            let (end, by_tag) = (*end, *by_tag);
            w.go_on_at(end);
            w.set_ended(by_tag);
            w.resume_chunk();
            return Ok(());
        }
        _ => {}
    }
    let active = state.active.len();
    if active >= usize::from(VALUES_DEEP) {
        state.suspended = state.active.get(active / 2).copied();
        return Err(Misuse::DanglingLink); // never returned to the caller, because `suspended` is set
    }
    let number = number.unwrap_or_else(|| {
        state.numbers.insert(node.identity(), state.written.len());
        state.written.push(Written { node: node.clone(), at, end: None });
        state.written.len() - 1
    });
    let place = Place { number, level: state.frames.level };
    if active == 0 {
        write_graph(node, place, w)?
    } else {
        write_one(node, place, w)?
    }
    w.resume_chunk();
    Ok(())
}

/// Writes an outermost value and everything that belongs to it.
fn write_graph(node: &Node, outermost: Place, w: &mut Writer<'_>) -> Result<(), Misuse> {
    /// On every exit, puts the message back into its buffer: earlier messages may precede it there.
    struct Restoring<'w, 'b>(&'w mut Writer<'b>);
    impl Drop for Restoring<'_, '_> {
        fn drop(&mut self) {
            self.0.end_rehearsal();
            self.0.values().active.clear();
        }
    }
    let mut result = write_one(node, outermost, w);
    if w.values().suspended.is_none() {
        w.values().active.clear();
        return result;
    }
    let w = Restoring(w);
    let mut tasks = vec![outermost];
    loop {
        match w.0.values().suspended.take() {
            Some(deeper) => {
                w.0.end_rehearsal();
                let at = w.0.values().written[deeper.number].at;
                w.0.truncate(at);
                tasks.push(deeper);
            }
            None => {
                result?;
                tasks.pop();
                let Some(around) = tasks.last() else { return Ok(()) };
                let at = w.0.values().written[around.number].at;
                w.0.begin_rehearsal(at);
            }
        }
        let Some(place) = tasks.last() else { return Ok(()) };
        w.0.set_level(place.level);
        w.0.values().active.clear();
        let node = w.0.values().written[place.number].node.clone();
        result = write_one(&node, *place, w.0);
    }
}

/// Writes a value and everything it refers to. The caller continues in the surrounding value.
fn write_one(node: &Node, place: Place, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let state = node.state().ok_or(Misuse::DanglingLink)?;
    let info = state.info();
    let known = w.values();
    known.written[place.number].end = None;
    known.active.push(place);
    if let Some(needs) = &mut known.needs {
        needs.note_type(info);
    }
    let open = match info.truncatable {
        0 => w.begin_value(&[info.id], info.kind == ValueKind::Custom)?,
        _ => w.begin_value(&ids(info), true)?,
    };
    let result = state.marshal_state(w);
    if w.values().suspended.is_some() {
        return Err(Misuse::DanglingLink); // even if the error of the suspension was replaced
    }
    result?;
    w.close_value(&open)?;
    let end = (w.position(), open.is_chunked());
    let known = w.values();
    known.active.pop();
    known.written[place.number].end = Some(end);
    Ok(())
}

/// The id of a type, and those of the bases that it may be truncated to.
fn ids(info: &ValueInfo) -> Vec<&'static str> {
    [info.id].into_iter().chain(info.bases.iter().copied().take(info.truncatable)).collect()
}

impl Writer<'_> {
    pub(super) fn frames(&mut self) -> &mut Frames {
        &mut self.values().frames
    }

    /// Discards all output from here on. It would start at `position` of the message.
    fn begin_rehearsal(&mut self, position: usize) {
        let (buf, origin) = self.exchange(Vec::new(), 0usize.wrapping_sub(position));
        self.values().real = Some((buf, origin));
    }

    /// Returns to the end of the message.
    fn end_rehearsal(&mut self) {
        if let Some((buf, origin)) = self.values().real.take() {
            self.exchange(buf, origin);
        }
    }

    /// Moves to the end of a value that has been written before.
    fn go_on_at(&mut self, position: usize) {
        let Some((buf, origin)) = &self.values().real else { return };
        if buf.len() == origin.wrapping_add(position) {
            self.end_rehearsal();
        } else {
            self.exchange(Vec::new(), 0usize.wrapping_sub(position));
        }
    }
}

impl<T: ?Sized> MarshalNillable for Value<T> {
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        write_node(self.node(), w)
    }

    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_null_value();
        Ok(())
    }
}

impl<T: ?Sized> Marshal for Link<T> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self.target()? {
            Some(node) => write_node(&node, w),
            None => Value::<T>::marshal_nil(w),
        }
    }
}
