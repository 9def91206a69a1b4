//! One connection as a state machine: bytes and calls in, bytes and answers out.
//!
//! [`ClientConnection`] and [`ServerConnection`] make every decision of the protocol about one connection.
//! They hold no socket, lock or clock. A driver - a calling thread, a server's thread, a simulator - moves
//! the bytes:
//!
//! ```text
//! receive:  space() <- bytes, received(n), handle_input() -> replies completed | requests to serve
//! transmit: poll_transmit() -> bytes, transmitted(n)
//! ```
//!
//! A driver can take out the receiving part, the [`Framer`](crate::framer::Framer), while it waits for bytes.
//! Other threads can then use the connection.

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

/// Limits and options of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Limits on received messages.
    pub framer: crate::framer::FramerLimits,
    /// Calls that may wait for replies at once. Default 1,024, at most 65,535.
    pub calls_in_flight_max: usize,
    /// Messages of GIOP 1.2 that are longer than this leave in fragments of this many bytes. Default: never, as
    /// every peer reads whole messages and each fragment costs.
    pub fragment_bytes: Option<usize>,
    /// Requests and replies of GIOP 1.1 that are longer than [`fragment_bytes`](Self::fragment_bytes) leave in fragments,
    /// too. A fragment has at most `fragment_bytes` bytes and at most 8 KiB. It is longer where numbers of 8
    /// bytes stand side by side for longer than that. Default: no, because JacORB and others read no
    /// fragments of GIOP 1.1 (CORBA 3.3 part 2, 9.4.9).
    pub fragments_in_giop_1_1: bool,
    /// Sends a CancelRequest to the server for each call that its caller has given up (CORBA 3.3 part 2,
    /// 9.4.4). Default: no. A server may ignore it, and omniORB 4.2 does not survive it: an omniORB server
    /// that gets one while it serves the request reads that message for ever. It then uses a whole processor
    /// and reads nothing that follows on the connection.
    pub cancel_requests: bool,
    /// Sends the detail text of a system exception to the client (service context ExceptionDetailMessage).
    /// Default: no, because the text may disclose details of the server.
    pub exception_details: bool,
}

/// What each connection keeps of its [`ConnectionConfig`], in a third of the bytes.
#[derive(Debug, Clone, Copy)]
struct CompactConfig {
    message_bytes_max: u32,
    /// `u32::MAX` stands for never.
    fragment_bytes: u32,
    calls_in_flight_max: u16,
    fragments_in_giop_1_1: bool,
    cancel_requests: bool,
    exception_details: bool,
}

impl CompactConfig {
    fn of(config: &ConnectionConfig) -> CompactConfig {
        let compact = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        CompactConfig {
            message_bytes_max: compact(config.framer.message_bytes_max),
            fragment_bytes: config.fragment_bytes.map_or(u32::MAX, compact),
            calls_in_flight_max: u16::try_from(config.calls_in_flight_max).unwrap_or(u16::MAX),
            fragments_in_giop_1_1: config.fragments_in_giop_1_1,
            cancel_requests: config.cancel_requests,
            exception_details: config.exception_details,
        }
    }

    #[inline(always)] // a step of every call
    fn message_bytes_max(&self) -> usize {
        self.message_bytes_max as usize
    }

    #[inline(always)] // a step of every call
    fn fragment_bytes(&self) -> Option<usize> {
        (self.fragment_bytes != u32::MAX).then_some(self.fragment_bytes as usize)
    }
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
