//! The ORB as two state machines, one that calls and one that serves, for drivers that bring their own
//! network and clock: a simulator, or a test that wants the same course of events every time.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or waits. Bytes and time come in with events;
//! what is to be done goes out as actions:
//!
//! ```text
//! engine.handle(event, now);
//! while let Some(action) = engine.poll_action() { carry it out }
//! ```
//!
//! The same events at the same times give the same actions: an engine holds no random number and no table
//! with a random order. What it decides it does not decide itself: the calls are
//! [`RemoteCallState`](crate::invocation::RemoteCallState)s, the connections those of
//! [`ironorb_giop::connection`], the routes and adapters those of the [`Orb`](crate::Orb) - the parts that
//! the ORB's own threads use.
//!
//! One thing is left to the driver. What an engine has written waits in memory until it is taken: who cannot send
//! for long should begin no more calls.

mod call;
mod client;
mod events;
mod server;

pub use client::ClientEngine;
pub use events::{Answer, Arguments, ClientAction, ClientEvent, Outcome, Reply};
pub use server::{ServerAction, ServerEngine, ServerEvent};

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A moment: the time since some beginning that the driver chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub Duration);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(Duration::ZERO);
}

impl Add<Duration> for Time {
    type Output = Time;

    /// The moment `duration` later; the end of time when there is none.
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A connection of one engine. A client engine numbers its own, the driver of a server engine those that it
/// accepts; a number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A call, numbered by the driver. The number must be unlike those of calls that have not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// A request that waits to be carried out, numbered by the server engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpcallNumber(pub u64);
