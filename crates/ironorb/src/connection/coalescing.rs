//! Holds replies back, so that the replies to requests that arrived together leave with one system call.
//!
//! A reply must not wait for a slow servant, and the ORB cannot know how long a servant will take. So replies
//! wait only if the servants before were fast, on this connection and in a row. Before each upcall the session
//! decides whether they wait on, and they never wait longer than [`HELD_MAX`] at that point. If a servant
//! takes long all the same, the driver's timer sends them after [`HELD_TIMER`]. The driver receives nothing while
//! replies wait. A request that comes alone pays for one look at the session's flags.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::server::{Flags, ServerSession};
use crate::base::time::Time;

/// What a session knows about requests that come together, beside its flags.
#[derive(Debug)]
pub(super) struct Coalescing {
    /// When the last reply was written, or had been sent if it did not wait, in nanoseconds of [`Time`].
    turn_began_ns: AtomicU64,
    /// When the first of the waiting replies was written, in nanoseconds of [`Time`].
    held_since_ns: AtomicU64,
    /// The number of replies in a row that each came soon after the one before.
    short_turns: AtomicU32,
    /// The number of short turns that it takes to trust the next servant.
    trust_at: AtomicU32,
    /// The driver's timer runs.
    has_timer: AtomicBool,
}

/// A turn, from one reply to the next without its sending, is short if it takes no longer than this. Sending takes about as
/// long.
const SHORT_TURN: Duration = Duration::from_micros(20);
/// The fewest short turns in a row before replies wait.
const TRUST_AT_MIN: u32 = 8;
/// The most short turns in a row before replies wait. The number grows when it has been too small. On a busy machine a thread
/// loses its processor once in a thousand turns, which looks like a slow servant. A greater number would then keep replies
/// apart for good.
const TRUST_AT_MAX: u32 = 64;
/// After this many times `trust_at` short turns, `trust_at` is halved.
const FORGIVEN_AFTER: u32 = 8;
/// The longest that a reply may have waited when the next upcall begins.
const HELD_MAX: Duration = Duration::from_micros(50);
/// The bytes of waiting replies from which on they are sent.
const HELD_BYTES_MAX: usize = 16 << 10;
/// About how long replies wait for a servant that takes long.
pub(crate) const HELD_TIMER: Duration = Duration::from_millis(1);

impl Default for Coalescing {
    fn default() -> Self {
        Coalescing {
            turn_began_ns: AtomicU64::new(0),
            held_since_ns: AtomicU64::new(0),
            short_turns: AtomicU32::new(0),
            trust_at: AtomicU32::new(TRUST_AT_MIN),
            has_timer: AtomicBool::new(false),
        }
    }
}

impl Coalescing {
    /// Whether the next servant is expected to be fast.
    fn is_trusting(&self) -> bool {
        self.short_turns.load(Ordering::Relaxed) >= self.trust_at.load(Ordering::Relaxed)
    }

    /// Learns from the time since the last reply, which was directly before.
    fn learn(&self, turn: Duration) {
        let (mut short_turns, mut trust_at) =
            (self.short_turns.load(Ordering::Relaxed), self.trust_at.load(Ordering::Relaxed));
        if turn <= SHORT_TURN {
            short_turns = short_turns.saturating_add(1);
            if short_turns >= FORGIVEN_AFTER * trust_at {
                (short_turns, trust_at) = (trust_at, (trust_at / 2).max(TRUST_AT_MIN));
            }
        } else {
            if short_turns >= trust_at {
                trust_at = (2 * trust_at).min(TRUST_AT_MAX); // the servant was trusted wrongly
            }
            short_turns = 0;
        }
        self.short_turns.store(short_turns, Ordering::Relaxed);
        self.trust_at.store(trust_at, Ordering::Relaxed);
    }
}

/// What happens to a reply that has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyFate {
    /// The driver sends it now, with all that wait.
    Send,
    /// It waits for others.
    Wait,
    /// It waits for others. The driver starts a timer of [`HELD_TIMER`], and then calls
    /// [`ServerSession::handle_held_timer`].
    WaitWithTimer,
}

impl ServerSession {
    /// Records that a request has been taken, and whether another whole request has come.
    pub(crate) fn note_more(&self, has_more: bool) {
        self.set(Flags::MORE, has_more);
    }

    /// Whether replies wait.
    #[inline]
    pub(crate) fn holds_replies(&self) -> bool {
        self.is_on(Flags::HELD)
    }

    /// Whether the next request is taken directly after the last reply.
    pub(crate) fn is_in_a_row(&self) -> bool {
        self.is_on(Flags::IN_A_ROW)
    }

    /// Whether the waiting replies must leave before the next upcall.
    pub(crate) fn must_send_before_upcall(&self, now: Time) -> bool {
        let held_since = Time::from_nanos(self.coalescing.held_since_ns.load(Ordering::Relaxed));
        self.holds_replies() && (!self.coalescing.is_trusting() || now.since(held_since) > HELD_MAX)
    }

    /// Whether the waiting replies must leave after an upcall, because no request follows: the last request
    /// may have been a oneway.
    #[inline]
    pub(crate) fn must_send_after_upcall(&self) -> bool {
        self.flags() & (Flags::HELD | Flags::MORE) == Flags::HELD
    }

    /// Decides about a reply that has been written. `pending_bytes` wait to be sent, with it. The caller has
    /// the sending half.
    pub(crate) fn handle_reply_written(&self, pending_bytes: usize, now: Time) -> ReplyFate {
        let (coalescing, has_more) = (&self.coalescing, self.is_on(Flags::MORE));
        let began = Time::from_nanos(coalescing.turn_began_ns.swap(now.as_nanos(), Ordering::Relaxed));
        let was_in_a_row = self.is_on(Flags::IN_A_ROW);
        self.set(Flags::IN_A_ROW, has_more);
        if was_in_a_row {
            coalescing.learn(now.since(began));
        }
        if !coalescing.is_trusting() || !has_more || pending_bytes >= HELD_BYTES_MAX {
            self.note_sent();
            return ReplyFate::Send;
        }
        if self.holds_replies() {
            return ReplyFate::Wait;
        }
        coalescing.held_since_ns.store(now.as_nanos(), Ordering::Relaxed);
        // sync: timer-before-held. Either the timer sees the held replies when it fires, or this thread sees
        // that it has fired.
        self.set(Flags::HELD, true);
        match coalescing.has_timer.swap(true, Ordering::SeqCst) {
            true => ReplyFate::Wait,
            false => ReplyFate::WaitWithTimer,
        }
    }

    /// Records that a thread which goes on to the next request has sent what was written: the next turn begins now. What the
    /// send has taken, and the client that it has woken, say nothing about the next servant.
    pub(crate) fn note_turn_begins(&self, now: Time) {
        self.coalescing.turn_began_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Records that the driver has no timer. The reply that should wait must be sent.
    pub(crate) fn handle_no_timer(&self) {
        self.coalescing.has_timer.store(false, Ordering::SeqCst);
        self.note_sent();
    }

    /// Records that the timer has fired. True when replies wait: the driver sends them.
    pub(crate) fn handle_held_timer(&self) -> bool {
        // sync: timer-before-held
        self.coalescing.has_timer.store(false, Ordering::SeqCst);
        self.holds_replies()
    }

    /// Records that everything written is being sent. The caller has the sending half.
    #[inline]
    pub(crate) fn note_sent(&self) {
        if self.holds_replies() {
            self.set(Flags::HELD, false);
        }
    }

    /// Leaves the bytes that the peer does not read at once until the upcall is over. The caller has the sending
    /// half.
    pub(crate) fn hold_until_after_upcall(&self) {
        self.coalescing.held_since_ns.store(0, Ordering::Relaxed);
        // In this order: another thread of the connection that takes a request meanwhile sees that a reply waits.
        self.set(Flags::HELD, true);
        self.set(Flags::MORE, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes replies, each with another request behind it and this many microseconds after the one before.
    /// Returns after each whether the next servant is trusted.
    fn turns(session: &ServerSession, at: &mut Time, micros: &[u64]) -> Vec<bool> {
        let mut trusted = Vec::new();
        for turn in micros {
            *at += Duration::from_micros(*turn);
            session.note_more(true);
            session.handle_reply_written(1, *at);
            trusted.push(session.coalescing.is_trusting());
        }
        trusted
    }

    #[test]
    fn short_turns_in_a_row_are_trusted_until_one_is_long() {
        let (session, mut at) = (ServerSession::default(), Time::ZERO);
        let trusted = turns(&session, &mut at, &[20; 12]);
        assert_eq!(trusted, [vec![false; 8], vec![true; 4]].concat(), "the first follows nothing");
        assert_eq!(turns(&session, &mut at, &[21]), [false]);
        // The wrong trust doubles the number of short turns that it takes.
        let trusted = turns(&session, &mut at, &[1; 18]);
        assert_eq!(trusted, [vec![false; 15], vec![true; 3]].concat());
        // Many short turns in a row bring the number back.
        turns(&session, &mut at, &[1; 400]);
        turns(&session, &mut at, &[21]);
        let trusted = turns(&session, &mut at, &[1; 18]);
        assert_eq!(trusted, [vec![false; 15], vec![true; 3]].concat());
    }

    /// A server whose client runs on the same processor loses it with each send.
    #[test]
    fn slow_sends_say_nothing_about_servants() {
        let (session, mut at) = (ServerSession::default(), Time::ZERO);
        let mut fates = Vec::new();
        for _ in 0..10 {
            session.note_more(true);
            at += Duration::from_micros(2);
            fates.push(session.handle_reply_written(1, at));
            if fates.last() == Some(&ReplyFate::Send) {
                at += Duration::from_micros(500);
                session.note_turn_begins(at);
            }
        }
        let expected = [vec![ReplyFate::Send; 8], vec![ReplyFate::WaitWithTimer, ReplyFate::Wait]].concat();
        assert_eq!(fates, expected);
    }

    /// What costs a thread its processor comes in clusters, and then rarely.
    #[test]
    fn a_rare_long_turn_costs_few_sends() {
        let (session, mut at) = (ServerSession::default(), Time::ZERO);
        let mut of_last = Vec::new();
        for short in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            of_last = turns(&session, &mut at, &[vec![1_000], vec![1; short]].concat());
        }
        let distrusted = of_last.iter().filter(|trusted| !**trusted).count();
        assert!(distrusted <= 64, "{distrusted} of {}", of_last.len());
    }

    #[test]
    fn pauses_between_requests_that_come_together_do_not_count() {
        let (session, mut at) = (ServerSession::default(), Time::ZERO);
        let mut trusted = Vec::new();
        for _ in 0..6 {
            trusted.extend(turns(&session, &mut at, &[1_000_000, 5, 5]));
            // No request follows the last of them.
            session.note_more(false);
            at += Duration::from_micros(5);
            session.handle_reply_written(1, at);
            trusted.push(session.coalescing.is_trusting());
        }
        assert_eq!(trusted.iter().position(|trusted| *trusted), Some(10), "three of each four count");
    }

    #[test]
    fn replies_wait_for_the_next_upcall_and_no_longer() {
        let (session, mut at) = (ServerSession::default(), Time::ZERO);
        turns(&session, &mut at, &[5; 8]);
        assert!(!session.holds_replies());
        session.note_more(true);
        assert_eq!(session.handle_reply_written(1, at), ReplyFate::WaitWithTimer);
        assert_eq!(session.handle_reply_written(2, at), ReplyFate::Wait);
        assert!(!session.must_send_before_upcall(at + HELD_MAX));
        assert!(session.must_send_before_upcall(at + HELD_MAX + Duration::from_nanos(1)));
        assert!(!session.must_send_after_upcall());
        assert_eq!(session.handle_reply_written(HELD_BYTES_MAX, at), ReplyFate::Send);
        assert!(!session.holds_replies() && !session.handle_held_timer());
        assert_eq!(session.handle_reply_written(1, at), ReplyFate::WaitWithTimer);
        session.note_more(false);
        assert!(session.must_send_after_upcall() && session.handle_held_timer());
    }
}
