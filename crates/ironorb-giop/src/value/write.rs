//! Values to bytes (CORBA 3.3 part 2, 9.3.4).

use std::collections::HashMap;
use std::sync::Arc;

use super::node::Node;
use super::{Link, Value, tag};
use crate::cdr::{Environment, Marshal, MarshalNillable, Writer};
use crate::error::Misuse;

/// What a writer remembers of the values in its message. Made when the first value is written.
#[derive(Default)]
pub(crate) struct WriteState {
    /// Where each value starts. Holding them keeps their identities from being used again.
    values: HashMap<(usize, u32), (usize, Node)>,
    /// Where each repository id starts.
    ids: HashMap<&'static str, usize>,
    /// For the one who keeps the bytes.
    pub(crate) environment: EnvironmentSlot,
}

/// Whether the one who writes wants to know the environment of what is written, and what it is.
#[derive(Default)]
pub(crate) enum EnvironmentSlot {
    #[default]
    Unwanted,
    Wanted,
    Kept(Arc<dyn Environment>),
}

impl std::fmt::Debug for WriteState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteState({} values)", self.values.len())
    }
}

pub(super) fn write_node(node: &Node, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.align(4);
    let at = w.position();
    let state = node.state().ok_or(Misuse::DanglingLink)?;
    let identity = node.identity();
    if let Some((target, _)) = w.values().values.get(&identity) {
        let target = *target;
        w.write_u32(tag::INDIRECTION);
        return write_offset(target, w);
    }
    w.values().values.insert(identity, (at, node.clone()));
    w.write_u32(tag::VALUE | tag::SINGLE_ID);
    write_id(state.info().id, w)?;
    state.marshal_state(w)
}

fn write_id(id: &'static str, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.align(4);
    let at = w.position();
    match w.values().ids.get(id).copied() {
        Some(target) => {
            w.write_u32(tag::INDIRECTION);
            write_offset(target, w)
        }
        None => {
            w.values().ids.insert(id, at);
            w.write_str(id)
        }
    }
}

/// Appends the distance from here back to `target`.
fn write_offset(target: usize, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let distance = i32::try_from(w.position() - target).map_err(|_| Misuse::TooLarge)?;
    w.write_i32(-distance);
    Ok(())
}

impl<T: ?Sized> MarshalNillable for Value<T> {
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        write_node(self.node(), w)
    }

    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u32(tag::NULL);
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
