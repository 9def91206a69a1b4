//! Has sessions look at the time: an idle connection first gives up its buffers and is later closed. A connection is
//! cut off if a message on it has begun and does not end in time.
//!
//! The server's keeper looks at all connections periodically, so that calls pay nothing for it.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::connection::Connection;
use crate::base::config::OrbConfig;
use crate::connection::{Limits, Verdict};
use crate::driver::clock;
use crate::lane::Event;

/// Looks for connections that are idle, or do not end a message.
pub(super) struct ConnectionReaper {
    limits: Limits,
    /// Lives across looks, so that an idle server allocates nothing.
    connections: Vec<Arc<Connection>>,
}

impl ConnectionReaper {
    pub(super) fn new(config: &OrbConfig) -> ConnectionReaper {
        ConnectionReaper { limits: Limits::of(config), connections: Vec::new() }
    }

    /// The pause between two looks.
    pub(super) fn every(&self) -> Duration {
        look_every(self.limits)
    }

    /// Looks at all connections.
    pub(super) fn look(&mut self, shared: &Shared) {
        self.connections.extend(shared.connections.lock().values().cloned());
        let now = clock::now();
        for connection in self.connections.drain(..) {
            connection.note_requests();
            match connection.session.handle_timeout(self.limits, now) {
                Verdict::Keep => connection.release_spare_memory(),
                Verdict::Inactive => connection.release_buffers_if_idle(),
                // The receiving thread finds the end and closes in order. If a request has come
                // meanwhile, its reply goes out before the CloseConnection message.
                Verdict::Idle => {
                    shared.orb.counters.count(Event::AcceptedIdle);
                    connection.stop_receiving();
                }
                Verdict::Unfinished => {
                    shared.orb.counters.count(Event::MessageUnfinished);
                    connection.cut_off();
                }
            }
        }
        shared.orb.counters.show_connections(shared.lane);
    }
}

/// The pause between looks: an eighth of the shorter limit, so that a limit is exact to an eighth of itself.
fn look_every(limits: Limits) -> Duration {
    (limits.shortest().unwrap_or(Duration::MAX) / 8).clamp(Duration::from_millis(5), LOOK_EVERY_MAX)
}

/// The longest pause between looks. A connection gives up its buffers when no request has come between two
/// looks.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_as_frequent_as_the_limits_ask() {
        let seconds = Duration::from_secs;
        let look_every = |idle, unfinished| look_every(Limits { idle, unfinished });
        assert_eq!(look_every(None, None), LOOK_EVERY_MAX);
        assert_eq!(look_every(Some(seconds(800)), None), LOOK_EVERY_MAX);
        assert_eq!(look_every(Some(seconds(800)), Some(seconds(8))), seconds(1));
    }
}
