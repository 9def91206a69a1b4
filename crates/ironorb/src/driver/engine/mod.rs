//! The ORB as two state machines, one for clients and one for servers. They are for drivers with a network
//! and a clock of their own: a simulator, or a test that needs the same sequence of events every time.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or waits. Bytes and time come in with events;
//! actions for the driver go out:
//!
//! ```text
//! engine.handle(event, now);
//! while let Some(action) = engine.poll_action() { carry it out }
//! ```
//!
//! Equal events at equal times give equal actions: an engine holds no random number and no table
//! with a random order. The decisions are made by the parts that the ORB's own threads use: by
//! [`RemoteCallState`](crate::call::invocation::RemoteCallState) for calls, by [`ironorb_giop::connection`] for
//! connections, and by the routes and adapters of the [`Orb`](crate::Orb).
//!
//! Bytes that the driver has taken count as sent. A driver whose network takes no more says so (`Blocked`, `Writable`):
//! then the bytes of that connection stay in the engine, within its limits.

mod call;
mod client;
mod events;
mod server;
mod tables;
mod upcall;

pub use crate::driver::simulated::Simulation;
pub(in crate::driver) use call::{EngineCall, OnEnd, Request, located};
pub use client::ClientEngine;
pub use events::{Answer, Arguments, ClientAction, ClientEvent, Outcome, Reply};
pub use server::{ServerAction, ServerEngine, ServerEvent};
pub use upcall::EngineUpcall;

pub use crate::base::time::Time;
use crate::object::ObjectRef;

/// The key of the object that a reference is to.
pub fn object_key(reference: &ObjectRef) -> &[u8] {
    reference.routes().key()
}

/// A reference to another object of the same server, with the same policies, for drivers that know the keys there: it takes
/// no IOR, and costs less than to read one. `None` if the reference has no object key, or several.
pub fn reference_with_key(reference: &ObjectRef, object_key: &[u8]) -> Option<ObjectRef> {
    reference.with_key(object_key)
}

/// A connection of one engine. A client engine numbers its own connections; the driver of a server engine
/// numbers those that it accepts. A number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A call, numbered by the driver. The number must differ from those of calls that have not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// A request that waits to be carried out, numbered by the server engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpcallNumber(pub u64);
