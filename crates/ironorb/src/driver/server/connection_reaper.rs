//! Has sessions look at the time: an idle connection first gives up its buffers and is later closed. A connection is
//! cut off if a message on it has begun and does not end in time.
//!
//! One thread looks at all connections periodically, so that calls pay nothing for it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::connection::Connection;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::connection::{Limits, Verdict};
use crate::driver::clock;
use crate::lane::Event;

/// Starts the reaper's thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let limits = Limits::of(&shared.orb.config);
    let every = look_every(limits);
    let shared = shared.clone();
    let counters = shared.orb.counters.clone();
    let run = move || {
        // The vector lives across rounds, so that an idle server allocates nothing.
        let mut connections: Vec<Arc<Connection>> = Vec::new();
        while !shared.is_stopping() {
            wait(&shared, every);
            connections.extend(shared.connections.lock().values().cloned());
            let now = clock::now();
            for connection in connections.drain(..) {
                connection.note_requests();
                match connection.session.handle_timeout(limits, now) {
                    Verdict::Keep => connection.release_spare_memory(),
                    Verdict::Inactive => connection.release_buffers_if_idle(),
                    // The receiving thread finds the end and closes in order. If a request has come
                    // meanwhile, its reply goes out before the CloseConnection message.
                    Verdict::Idle => {
                        counters.count(Event::AcceptedIdle);
                        connection.stop_receiving();
                    }
                    Verdict::Unfinished => {
                        counters.count(Event::MessageUnfinished);
                        connection.cut_off();
                    }
                }
            }
        }
    };
    NewThread::new("ironorb-reaper", ThreadClass::Timer).spawn(run).map(drop)
}

/// Sleeps for `every`, and longer while there is no connection.
fn wait(shared: &Shared, every: Duration) {
    let until = clock::now() + every;
    let mut connections = shared.connections.lock();
    while !shared.is_stopping() {
        let left = until.since(clock::now());
        if connections.is_empty() {
            connections = shared.come.wait(connections);
        } else if left.is_zero() {
            return;
        } else {
            connections = shared.come.wait_for(connections, left).0;
        }
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
