//! Decides what a caching proxy may answer by itself, and what a server tells its caches. Nothing here opens a socket, reads a
//! clock or starts a thread, and there is no ORB in it: the machines take messages and moments, and give messages.
//!
//! # The promise
//!
//! A cached read with a lag is for a state that the object has had: there is an instant `t` between the call and the return of
//! the read, and an instant `u` in `[t - lag, t]`, such that the value is the object's state at `u`. It holds through lost, doubled
//! and reordered messages, partitions, suspended processes and restarts of either side, and no two clocks are compared.
//!
//! # How it is kept
//!
//! - The server puts its writes in one order, the **log**: each has a [`Position`], and that of an object's last write is the
//!   version of its state. What is sent to a client is told by positions.
//! - A **session** is one client's cache in one epoch of a server, and has a *book* of the objects that the client may hold. An
//!   object is in the book before a client gets its state.
//! - What has changed among them is kept for the session until the client says that it has taken it, one unit an object, so that
//!   a client that does not ask costs no more than what it holds.
//! - A **probe** asks for that. Its answer means: all that was committed before the probe came is in this answer, or in one that
//!   you have taken. So what a client holds is at most as old as the moment at which its newest answered probe *left*, on its own
//!   clock. That clock must run through suspension; where it runs backwards, nothing is held to be fresh.
//! - A **fill** brings a state into the cache. The entry exists before the fill leaves, with a token of its own, so that a fill
//!   that comes late replaces nothing newer, and what a probe's answer says meanwhile is heeded.
//!
//! # Writes with a bound
//!
//! A write may wait until no client would miss more than so many writes of the object in what it reads by itself. Clients read such
//! objects with a lag of the server's [`Terms`] at most. The server counts what a session has not said that it has taken. A
//! write that would be one too many waits until the session says so, or until the term of its last answer is over, the drift of its
//! clock included. A server that begins a new life waits for the terms of the last one.
//!
//! A bound of 0 makes writes linearizable: the write tells all holders to drop the object, and nobody comes to hold it before it
//! has been made.
//!
//! # News
//!
//! A probe may wait at the server. It is answered when there is **news** for its session: a write that was
//! [published](Server::publish), or an object that a write with a bound waits for. Each session has one such probe.
//!
//! [`Server`] and [`Client`] are the two machines, [`history`] checks what they have promised.

mod books;
mod client;
mod freshness;
pub mod history;
mod in_order;
mod index;
mod message;
mod server;
mod time;
mod untold;

pub use client::{Client, ClientLimits, Entries, EntryId, Kind, Miss, Read, UPDATE_BYTES};
pub use freshness::{Held, Proof};
pub use message::{
    Answer, Change, Due, Epoch, Fill, Filled, Members, Opened, Position, Probe, SessionId, Token, Unit,
};
pub use server::{Server, ServerCounts, ServerLimits, Terms, WriteId};
pub use time::Moment;
