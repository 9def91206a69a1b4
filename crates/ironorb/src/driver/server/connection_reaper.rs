//! Finds connections that only cost memory. An idle connection first gives up its buffers and is later
//! closed. A connection is cut off if a message on it has begun and does not end in time.
//!
//! One thread looks at all connections periodically, so that calls pay nothing for it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Shared;
use super::connection::Connection;
use crate::base::config::OrbConfig;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::sync::lock;
use crate::base::time::Time;
use crate::driver::clock;

/// Starts the reaper's thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let limits = Limits::of(&shared.orb.config);
    let every = limits.look_every();
    let shared = shared.clone();
    let run = move || {
        let mut connection_reaper = ConnectionReaper::new(limits);
        // The vector lives across rounds, so that an idle server allocates nothing.
        let mut connections: Vec<Arc<Connection>> = Vec::new();
        while !shared.is_stopping() {
            wait(&shared, every);
            {
                let all = lock(&shared.connections);
                connection_reaper.keep(|id| all.contains_key(&id));
                connections.extend(all.values().cloned());
            }
            let now = clock::now();
            for connection in connections.drain(..) {
                match connection_reaper.look(connection.id, connection.activity(), now) {
                    Verdict::Keep => connection.release_spare_memory(),
                    Verdict::Inactive => connection.release_buffers_if_idle(),
                    // The receiving thread finds the end and closes in order. If a request has come
                    // meanwhile, its reply goes out before the CloseConnection message.
                    Verdict::Idle => connection.stop_receiving(),
                    Verdict::Unfinished => connection.cut_off(),
                }
            }
        }
    };
    NewThread::new("ironorb-reaper", ThreadClass::Timer).spawn(run).map(drop)
}

/// Sleeps for `every`, and longer while there is no connection.
fn wait(shared: &Shared, every: Duration) {
    let until = clock::now() + every;
    let mut connections = lock(&shared.connections);
    while !shared.is_stopping() {
        let left = until.since(clock::now());
        if connections.is_empty() {
            connections = shared.come.wait(connections).unwrap_or_else(PoisonError::into_inner);
        } else if left.is_zero() {
            return;
        } else {
            connections =
                shared.come.wait_timeout(connections, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The time limits that connections must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) idle: Option<Duration>,
    pub(super) unfinished: Option<Duration>,
}

impl Limits {
    fn of(config: &OrbConfig) -> Limits {
        Limits { idle: config.server_idle_timeout, unfinished: config.message_timeout }
    }

    /// The pause between looks: an eighth of the shorter limit, so that a limit is exact to an eighth of
    /// itself.
    fn look_every(self) -> Duration {
        let shortest = [self.idle, self.unfinished].into_iter().flatten().min().unwrap_or(Duration::MAX);
        (shortest / 8).clamp(Duration::from_millis(5), LOOK_EVERY_MAX)
    }
}

/// The longest pause between looks. A connection gives up its buffers when no request has come between two
/// looks.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);

/// What a connection has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity {
    /// Requests carried out so far.
    pub(super) served: u64,
    /// A request is in progress, or the connection never counts as idle.
    pub(super) is_busy: bool,
    /// Received bytes of messages that are not complete.
    pub(super) unfinished_bytes: usize,
}

/// What the reaper does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    /// Nothing has happened since the last look. The connection gives up its buffers.
    Inactive,
    /// The connection has had no request for too long. It is closed in order.
    Idle,
    /// A message has not ended in time. The connection is cut off.
    Unfinished,
}

/// The number of bytes after which a message in progress gets its full time again. Large messages over slow
/// lines are legitimate. A client that sends less could occupy a connection without end.
const PROGRESS_BYTES: usize = 64 << 10;

/// Decides about connections from what each look shows. Time is an argument.
pub(super) struct ConnectionReaper {
    limits: Limits,
    seen: HashMap<u64, Seen>,
}

struct Seen {
    activity: Activity,
    /// When the connection was last active.
    idle_since: Time,
    /// When the message in progress was first seen, and how many bytes had come by then.
    unfinished_since: Option<(Time, usize)>,
}

impl ConnectionReaper {
    pub(super) fn new(limits: Limits) -> Self {
        ConnectionReaper { limits, seen: HashMap::new() }
    }

    /// Forgets connections that are gone.
    fn keep(&mut self, exists: impl Fn(u64) -> bool) {
        self.seen.retain(|&id, _| exists(id));
    }

    pub(super) fn look(&mut self, id: u64, activity: Activity, now: Time) -> Verdict {
        let is_new = !self.seen.contains_key(&id);
        let seen = self.seen.entry(id).or_insert(Seen { activity, idle_since: now, unfinished_since: None });
        let is_active = activity.is_busy
            || activity.served != seen.activity.served
            || activity.unfinished_bytes != seen.activity.unfinished_bytes;
        if is_active {
            seen.idle_since = now;
        }
        seen.activity = activity;
        let has_passed =
            |since: Time, limit: Option<Duration>| limit.is_some_and(|limit| now.since(since) >= limit);
        if activity.unfinished_bytes == 0 {
            seen.unfinished_since = None;
            return match !is_active && has_passed(seen.idle_since, self.limits.idle) {
                true => Verdict::Idle,
                false if is_active || is_new => Verdict::Keep,
                false => Verdict::Inactive,
            };
        }
        let (since, bytes) = *seen.unfinished_since.get_or_insert((now, activity.unfinished_bytes));
        if !has_passed(since, self.limits.unfinished) {
            return Verdict::Keep;
        }
        if activity.unfinished_bytes >= bytes + PROGRESS_BYTES {
            seen.unfinished_since = Some((now, activity.unfinished_bytes));
            return Verdict::Keep;
        }
        Verdict::Unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Activity = Activity { served: 3, is_busy: false, unfinished_bytes: 0 };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Looks at one connection at these seconds and gives the verdicts.
    fn verdicts(looks: &[(u64, Activity)]) -> Vec<Verdict> {
        let limits = Limits { idle: Some(seconds(10)), unfinished: Some(seconds(4)) };
        let (mut connection_reaper, start) = (ConnectionReaper::new(limits), clock::now());
        looks.iter().map(|&(at, activity)| connection_reaper.look(1, activity, start + seconds(at))).collect()
    }

    #[test]
    fn a_connection_without_requests_is_idle() {
        use Verdict::*;
        assert_eq!(verdicts(&[(0, IDLE), (9, IDLE), (10, IDLE)]), [Keep, Inactive, Idle]);
        let busy = Activity { is_busy: true, ..IDLE };
        assert_eq!(verdicts(&[(0, IDLE), (9, busy), (10, IDLE), (19, IDLE)]), [Keep, Keep, Inactive, Idle]);
        let served = Activity { served: 4, ..IDLE };
        assert_eq!(verdicts(&[(0, IDLE), (9, served), (10, served)]), [Keep, Keep, Inactive]);
    }

    #[test]
    fn a_message_must_end_or_go_on() {
        use Verdict::*;
        let part = |unfinished_bytes| Activity { unfinished_bytes, ..IDLE };
        assert_eq!(verdicts(&[(0, part(1)), (3, part(2)), (4, part(3))]), [Keep, Keep, Unfinished]);
        // One message ends and another begins.
        assert_eq!(verdicts(&[(0, part(1)), (3, IDLE), (4, part(1)), (7, part(1))]), [Keep; 4]);
        // A large message comes slowly and then stops.
        let large = |n| part(n * PROGRESS_BYTES);
        assert_eq!(
            verdicts(&[(0, large(1)), (4, large(2)), (8, large(3)), (12, large(3))]),
            [Keep, Keep, Keep, Unfinished]
        );
    }

    #[test]
    fn looks_are_as_frequent_as_the_limits_ask() {
        let look_every = |idle, unfinished| Limits { idle, unfinished }.look_every();
        assert_eq!(look_every(None, None), LOOK_EVERY_MAX);
        assert_eq!(look_every(Some(seconds(800)), None), LOOK_EVERY_MAX);
        assert_eq!(look_every(Some(seconds(800)), Some(seconds(8))), seconds(1));
    }
}
