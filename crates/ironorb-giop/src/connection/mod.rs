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
mod foreign;
mod gather;
mod server;
mod transmit;

pub use client::{
    BeginError, CallId, CallState, ClientConnection, ConnectionEnd, NotWhole, ProtocolError, RequestOptions,
    Side,
};
pub use foreign::ForeignProtocol;
pub use gather::{GatherMessage, SparseMessage, WriteBody};
pub use server::{Incoming, ServerConnection};
pub use transmit::Transmit;

/// Bounds and habits of one connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionConfig {
    /// What is accepted.
    pub framer: crate::framer::FramerLimits,
    /// Calls that may wait for replies at once. Default 1,024, at most 65,535.
    pub calls_in_flight_max: usize,
    /// Messages of GIOP 1.2 that are longer than this leave in fragments of this many bytes. Default: never, as
    /// every peer reads whole messages and each fragment costs.
    pub fragment_bytes: Option<usize>,
    /// Requests and replies of GIOP 1.1 that are longer leave in fragments, too: of at most
    /// [`fragment_bytes`](Self::fragment_bytes) and 8 KiB, but where numbers of 8 bytes stand side by side for longer
    /// than that. Default: no, as JacORB and others read no fragments of GIOP 1.1 (CORBA 3.3 part 2, 9.4.9).
    pub fragments_in_giop_1_1: bool,
    /// Tells servers of calls that nobody waits for any more (CancelRequest, CORBA 3.3 part 2, 9.4.4). Default:
    /// no. It is advice that servers may leave unheeded, and one that omniORB 4.2 does not survive: a server of
    /// it that gets a cancellation while it serves the request reads the same message for ever, with a whole
    /// processor, and nothing that follows on the connection.
    pub cancel_requests: bool,
    /// Sends what the detail of a system exception says to the client as well (the service context
    /// ExceptionDetailMessage). Default: no, for it may tell strangers more of a server than they should know.
    pub exception_details: bool,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig {
            framer: Default::default(),
            calls_in_flight_max: 1024,
            fragment_bytes: None,
            fragments_in_giop_1_1: false,
            cancel_requests: false,
            exception_details: false,
        }
    }
}

#[cfg(test)]
mod tests;
