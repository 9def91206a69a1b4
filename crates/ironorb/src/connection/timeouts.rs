//! The time that a connection may be idle, and the time that a message may take to arrive.

use std::time::Duration;

use crate::base::config::OrbConfig;
use crate::base::time::Time;

/// The time limits that connections must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest time without a request.
    pub(crate) idle: Option<Duration>,
    /// The longest time for a message, or for each [`PROGRESS_BYTES`] of it.
    pub(crate) unfinished: Option<Duration>,
}

impl Limits {
    /// The limits of a server's connections.
    pub(crate) fn of(config: &OrbConfig) -> Limits {
        Limits { idle: config.server_idle_timeout, unfinished: config.message_timeout }
    }

    /// The shorter limit.
    pub(crate) fn shortest(self) -> Option<Duration> {
        [self.idle, self.unfinished].into_iter().flatten().min()
    }
}

/// What a connection has been doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Activity {
    /// Requests carried out so far, modulo 2^24.
    pub(crate) served: u32,
    /// A request is in progress, or the connection never counts as idle.
    pub(crate) is_busy: bool,
    /// Received bytes of messages that are not complete.
    pub(crate) unfinished_bytes: u32,
}

/// What the driver does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
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
const PROGRESS_BYTES: u32 = 64 << 10;

/// What looks at a connection have shown. A driver looks as often as it likes: periodically, or after each event.
#[derive(Debug)]
pub(crate) struct Timeouts {
    activity: Activity,
    /// When the connection was last active.
    idle_since: Time,
    /// When the message in progress was first seen; [`Time::MAX`] while there is none.
    unfinished_since: Time,
    /// How many bytes of it had come by then.
    unfinished_from: u32,
    /// There has been a look.
    is_known: bool,
    /// A look has found that the connection is to end. That may take a while, and is found once.
    is_over: bool,
}

impl Timeouts {
    /// Makes the state of a connection that begins now.
    pub(crate) fn new(now: Time) -> Timeouts {
        Timeouts {
            activity: Activity::default(),
            idle_since: now,
            unfinished_since: Time::MAX,
            unfinished_from: 0,
            is_known: false,
            is_over: false,
        }
    }

    /// Looks at what the connection has done by now.
    pub(crate) fn look(&mut self, limits: Limits, activity: Activity, now: Time) -> Verdict {
        let is_new = !std::mem::replace(&mut self.is_known, true);
        let is_active = is_new
            || activity.is_busy
            || activity.served != self.activity.served
            || activity.unfinished_bytes != self.activity.unfinished_bytes;
        if is_active {
            self.idle_since = now;
        }
        self.activity = activity;
        let has_passed =
            |since: Time, limit: Option<Duration>| limit.is_some_and(|limit| now.since(since) >= limit);
        if activity.unfinished_bytes == 0 {
            self.unfinished_since = Time::MAX;
            return match is_active {
                false if has_passed(self.idle_since, limits.idle) => self.end(Verdict::Idle),
                false => Verdict::Inactive,
                true => Verdict::Keep,
            };
        }
        let is_first = self.unfinished_since == Time::MAX;
        if !is_first && !has_passed(self.unfinished_since, limits.unfinished) {
            return Verdict::Keep;
        }
        if is_first || activity.unfinished_bytes >= self.unfinished_from.saturating_add(PROGRESS_BYTES) {
            (self.unfinished_since, self.unfinished_from) = (now, activity.unfinished_bytes);
            return Verdict::Keep;
        }
        self.end(Verdict::Unfinished)
    }

    /// Ends the connection for this reason, unless it has been ended before.
    fn end(&mut self, verdict: Verdict) -> Verdict {
        match std::mem::replace(&mut self.is_over, true) {
            true => Verdict::Keep,
            false => verdict,
        }
    }

    /// When the next look is due, if nothing happens before. `None` when time alone changes nothing.
    pub(crate) fn poll_timeout(&self, limits: Limits) -> Option<Time> {
        match self.unfinished_since {
            Time::MAX if self.activity.is_busy => None,
            Time::MAX => Some(self.idle_since + limits.idle?),
            since => Some(since + limits.unfinished?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Activity = Activity { served: 3, is_busy: false, unfinished_bytes: 0 };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    const LIMITS: Limits =
        Limits { idle: Some(Duration::from_secs(10)), unfinished: Some(Duration::from_secs(4)) };

    /// Looks at one connection at these seconds and gives the verdicts.
    fn verdicts(looks: &[(u64, Activity)]) -> Vec<Verdict> {
        let mut timeouts = Timeouts::new(Time::ZERO);
        looks
            .iter()
            .map(|&(at, activity)| timeouts.look(LIMITS, activity, Time::ZERO + seconds(at)))
            .collect()
    }

    #[test]
    fn a_connection_without_requests_is_idle() {
        use Verdict::*;
        // Once, though the connection is still there.
        assert_eq!(verdicts(&[(0, IDLE), (9, IDLE), (10, IDLE), (11, IDLE)]), [Keep, Inactive, Idle, Keep]);
        let busy = Activity { is_busy: true, ..IDLE };
        assert_eq!(verdicts(&[(0, IDLE), (9, busy), (10, IDLE), (19, IDLE)]), [Keep, Keep, Inactive, Idle]);
        let served = Activity { served: 4, ..IDLE };
        assert_eq!(verdicts(&[(0, IDLE), (9, served), (10, served)]), [Keep, Keep, Inactive]);
    }

    #[test]
    fn a_message_must_end_or_go_on() {
        use Verdict::*;
        let part = |unfinished_bytes| Activity { unfinished_bytes, ..IDLE };
        let parts = [(0, part(1)), (3, part(2)), (4, part(3)), (5, part(3))];
        assert_eq!(verdicts(&parts), [Keep, Keep, Unfinished, Keep]);
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
    fn a_driver_with_timers_need_look_only_when_told() {
        let mut timeouts = Timeouts::new(Time::ZERO);
        let at = |n| Time::ZERO + seconds(n);
        let mut look = |activity, now| (timeouts.look(LIMITS, activity, now), timeouts.poll_timeout(LIMITS));
        assert_eq!(look(IDLE, at(0)), (Verdict::Keep, Some(at(10))));
        assert_eq!(look(Activity { is_busy: true, ..IDLE }, at(1)), (Verdict::Keep, None));
        assert_eq!(look(Activity { served: 4, ..IDLE }, at(3)), (Verdict::Keep, Some(at(13))));
        let part = Activity { served: 4, unfinished_bytes: 5, ..IDLE };
        assert_eq!(look(part, at(5)), (Verdict::Keep, Some(at(9))));
        assert_eq!(look(Activity { unfinished_bytes: 7, ..part }, at(8)), (Verdict::Keep, Some(at(9))));
        assert_eq!(look(Activity { unfinished_bytes: 7, ..part }, at(9)).0, Verdict::Unfinished);
    }
}
