//! Counts requests that wait to be served, where the thread that receives must not wait for them.

use ironorb_giop::connection::ConnectionConfig;

/// How many received requests wait to be served by other threads, and their size in bytes.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    requests: usize,
    bytes: usize,
}

/// The most requests of a peer that may wait to be served over one connection, as a multiple of the calls in
/// flight that the peer could have over a connection of its own. Their bytes together are at most those of
/// the largest message.
const BACKLOG_PER_CALL: usize = 16;

impl Backlog {
    pub(crate) fn has_room(&self, bytes: usize, config: &ConnectionConfig) -> bool {
        self.requests < requests_max(config)
            && self.bytes.saturating_add(bytes) <= config.framer.message_bytes_max
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes;
    }

    pub(crate) fn remove(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// True when there is hardly room for one more request.
    pub(crate) fn is_full(&self, config: &ConnectionConfig) -> bool {
        self.requests >= requests_max(config) || self.bytes > config.framer.message_bytes_max / 2
    }

    /// True when the backlog has shrunk so far that reading may go on.
    pub(crate) fn is_half_empty(&self, config: &ConnectionConfig) -> bool {
        self.requests <= requests_max(config) / 2 && self.bytes <= config.framer.message_bytes_max / 4
    }
}

fn requests_max(config: &ConnectionConfig) -> usize {
    BACKLOG_PER_CALL * config.calls_in_flight_max
}
