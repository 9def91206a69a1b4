//! One connection as a state machine: bytes and calls in, bytes and answers out.
//!
//! [`ClientConnection`] and [`ServerConnection`] decide everything that the protocol decides about one
//! connection. They hold no socket, lock or clock. A driver - a calling thread, a server's thread, a
//! simulator - moves the bytes:
//!
//! ```text
//! receive:  space() <- bytes, received(n), handle_input() -> replies completed | requests to serve
//! transmit: poll_transmit() -> bytes, transmitted(n)
//! ```
//!
//! The part that receives, the [`Framer`](crate::framer::Framer), can be taken out while a driver waits
//! for bytes, so that nobody holds the connection during the wait.

mod client;
mod server;
mod transmit;

pub use client::{BeginError, CallId, CallState, ClientConnection, ConnectionEnd, ProtocolError};
pub use server::{Incoming, ServerConnection};
pub use transmit::Transmit;

/// Bounds and habits of one connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionConfig {
    /// What is accepted.
    pub framer: crate::framer::FramerLimits,
    /// Calls that may wait for replies at once. Default 1,024, at most 65,535.
    pub calls_in_flight_max: usize,
    /// Messages longer than this leave in GIOP 1.2 fragments of this many bytes. Default: never, as every
    /// peer reads whole messages and each fragment costs.
    pub fragment_bytes: Option<usize>,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig { framer: Default::default(), calls_in_flight_max: 1024, fragment_bytes: None }
    }
}

#[cfg(test)]
mod tests;
