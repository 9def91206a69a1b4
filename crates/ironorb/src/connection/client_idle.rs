//! When a client closes a connection that nobody uses.

use std::time::Duration;

use crate::base::time::Time;

/// What a client's connection has been doing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientActivity {
    /// When a caller used it last.
    pub(crate) used_at: Time,
    /// Calls that wait for their replies.
    pub(crate) calls_in_flight: usize,
    /// Bytes that the peer has not taken.
    pub(crate) pending_bytes: usize,
    /// The peer may send requests over the connection, and has no other route.
    pub(crate) is_bidirectional: bool,
}

impl ClientActivity {
    /// When the connection is closed, if it stays as it is: after it has not been used for `limit`. `None` while it may
    /// not be closed.
    pub(crate) fn closes_at(self, limit: Duration) -> Option<Time> {
        let is_needed = self.is_bidirectional || self.calls_in_flight > 0 || self.pending_bytes > 0;
        (!is_needed).then_some(self.used_at + limit)
    }
}
