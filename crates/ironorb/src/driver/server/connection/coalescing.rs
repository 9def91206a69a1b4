//! Holds replies back, so that the replies to requests that arrived together leave with one system call.
//!
//! A reply must not wait for a slow servant, and the ORB cannot know how long a servant will take. So replies
//! wait only if the servants before were fast, on this connection and in a row. Before each upcall the thread
//! decides whether they wait on, and they never wait longer than [`HELD_MAX`] at that point. If a servant
//! takes long all the same, the ORB's receiver thread sends them within about a millisecond. The thread
//! receives nothing while replies wait. A request that comes alone pays for one look at a byte.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ironorb_giop::connection::ServerConnection;

use super::Connection;
use crate::base::time::Time;
use crate::driver::client::ReceiverCheck;
use crate::driver::clock;

/// What a connection knows about requests that come together.
#[derive(Debug)]
pub(super) struct Coalescing {
    /// Bits of [`State`], mostly none.
    state: AtomicU8,
    made: Time,
    /// When the last reply was written, in nanoseconds since `made`.
    turn_ended_ns: AtomicU64,
    /// When the first of the waiting replies was written, in nanoseconds since `made`.
    held_since_ns: AtomicU64,
    /// The number of replies in a row that each came soon after the one before.
    short_turns: AtomicU32,
    /// The number of short turns that it takes to trust the next servant.
    trust_at: AtomicU32,
    /// The receiver thread will check this connection.
    is_listed: AtomicBool,
}

/// The bits of `Coalescing::state`.
struct State;

impl State {
    /// A further whole request has come.
    const MORE: u8 = 1;
    /// The next request is taken directly after the last reply.
    const IN_A_ROW: u8 = 2;
    /// Replies wait. Changes only under the lock of `sender`.
    const HELD: u8 = 4;
}

/// A turn, from one reply to the next, is short if it takes no longer than this. Sending takes about as long.
const SHORT_TURN: Duration = Duration::from_micros(20);
/// The fewest short turns in a row before replies wait.
const TRUST_AT_MIN: u32 = 8;
/// The most short turns in a row before replies wait. The number grows when it has been too small.
const TRUST_AT_MAX: u32 = 1024;
/// The longest that a reply may have waited when the next upcall begins.
const HELD_MAX: Duration = Duration::from_micros(50);
/// The bytes of waiting replies from which on they are sent.
const HELD_BYTES_MAX: usize = 16 << 10;

impl Default for Coalescing {
    fn default() -> Self {
        Coalescing {
            state: AtomicU8::new(0),
            made: clock::now(),
            turn_ended_ns: AtomicU64::new(0),
            held_since_ns: AtomicU64::new(0),
            short_turns: AtomicU32::new(0),
            trust_at: AtomicU32::new(TRUST_AT_MIN),
            is_listed: AtomicBool::new(false),
        }
    }
}

impl Coalescing {
    /// Records that a request has been taken. If `has_bytes`, `has_more` says whether another whole request
    /// has come.
    #[inline]
    pub(super) fn note(&self, has_bytes: bool, has_more: impl FnOnce() -> bool) {
        if has_bytes || self.state.load(Ordering::Relaxed) & State::MORE != 0 {
            self.note_more(has_bytes && has_more());
        }
    }

    #[cold]
    fn note_more(&self, has_more: bool) {
        if has_more {
            self.state.fetch_or(State::MORE, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!State::MORE, Ordering::Relaxed);
        }
    }

    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Relaxed) & state != 0
    }

    fn now_ns(&self) -> u64 {
        #[cfg(debug_assertions)]
        if crate::base::testing::is_clock_of_replies_still() {
            return 0;
        }
        u64::try_from(clock::now().since(self.made).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether the next servant is expected to be fast.
    fn is_trusting(&self) -> bool {
        self.short_turns.load(Ordering::Relaxed) >= self.trust_at.load(Ordering::Relaxed)
    }

    /// Records that a reply has been written. Learns from the time since the last one, if that was directly
    /// before.
    fn end_turn(&self, now_ns: u64) {
        let ended_ns = self.turn_ended_ns.swap(now_ns, Ordering::Relaxed);
        let was_in_a_row = self.is(State::IN_A_ROW);
        if self.is(State::MORE) {
            self.state.fetch_or(State::IN_A_ROW, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!State::IN_A_ROW, Ordering::Relaxed);
        }
        if !was_in_a_row {
            return;
        }
        let (mut short_turns, mut trust_at) =
            (self.short_turns.load(Ordering::Relaxed), self.trust_at.load(Ordering::Relaxed));
        if u128::from(now_ns.saturating_sub(ended_ns)) <= SHORT_TURN.as_nanos() {
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

/// After this many times `trust_at` short turns, `trust_at` is halved.
const FORGIVEN_AFTER: u32 = 8;

impl Connection {
    /// Called before an upcall. Sends the waiting replies unless they may wait on.
    #[inline]
    pub(super) fn before_upcall(&self) {
        if self.coalescing.is(State::HELD) {
            self.decide();
        }
    }

    #[cold]
    fn decide(&self) {
        let held_ns =
            self.coalescing.now_ns().saturating_sub(self.coalescing.held_since_ns.load(Ordering::Relaxed));
        if !self.coalescing.is_trusting() || u128::from(held_ns) > HELD_MAX.as_nanos() {
            self.send_held();
        }
    }

    /// Called after an upcall. Sends the waiting replies if no request follows: the last request may have
    /// been a oneway.
    #[inline]
    pub(super) fn after_upcall(&self) {
        let state = self.coalescing.state.load(Ordering::Relaxed);
        if state & (State::HELD | State::MORE) == State::HELD {
            self.send_held();
        }
    }

    /// Called when a reply has been written. True when it waits for others. False when it is being sent now,
    /// with all that wait.
    #[inline]
    pub(super) fn holds(&self, sender: &mut ServerConnection) -> bool {
        self.coalescing.state.load(Ordering::Relaxed) != 0 && self.holds_or_sends(sender)
    }

    #[cold]
    fn holds_or_sends(&self, sender: &mut ServerConnection) -> bool {
        let is_held = self.hold(sender);
        if !is_held {
            self.note_sent();
        }
        is_held
    }

    fn hold(&self, sender: &mut ServerConnection) -> bool {
        let coalescing = &self.coalescing;
        let now_ns = coalescing.now_ns();
        coalescing.end_turn(now_ns);
        if !coalescing.is_trusting()
            || !coalescing.is(State::MORE)
            || sender.transmit().pending_bytes() >= HELD_BYTES_MAX
        {
            return false;
        }
        if coalescing.is(State::HELD) {
            return true;
        }
        coalescing.held_since_ns.store(now_ns, Ordering::Relaxed);
        // sync: listed-before-held. Either the receiver thread sees the held replies when it checks, or this
        // thread sees that it has checked.
        coalescing.state.fetch_or(State::HELD, Ordering::SeqCst);
        if !coalescing.is_listed.swap(true, Ordering::SeqCst) {
            let receiver = self.orb.connector.receiver();
            if receiver.start().is_err() {
                coalescing.is_listed.store(false, Ordering::SeqCst);
                return false;
            }
            let checked: Weak<dyn ReceiverCheck> = self.itself.clone();
            receiver.look_soon(&checked);
        }
        true
    }

    /// Records that everything written is being sent.
    #[inline]
    pub(super) fn note_sent(&self) {
        if self.coalescing.is(State::HELD) {
            self.coalescing.state.fetch_and(!State::HELD, Ordering::Relaxed);
        }
    }

    /// Sends the waiting replies. Must be called before the thread waits for anything.
    #[inline]
    pub(super) fn send_what_is_held(&self) {
        if self.coalescing.is(State::HELD) {
            self.send_held();
        }
    }

    /// Leaves the bytes that the peer does not read at once until the upcall is over.
    #[cold]
    pub(super) fn hold_until_after_upcall(&self) {
        let coalescing = &self.coalescing;
        coalescing.held_since_ns.store(0, Ordering::Relaxed);
        // In this order: another thread of the connection that takes a request meanwhile sees that a reply waits.
        coalescing.state.fetch_or(State::HELD, Ordering::Relaxed);
        coalescing.state.fetch_and(!State::MORE, Ordering::Relaxed);
    }

    #[cold]
    fn send_held(&self) {
        self.with(|_| {});
    }
}

/// The receiver thread checks a connection whose servant takes long.
impl ReceiverCheck for Connection {
    fn on_receiver_check(&self) {
        // sync: listed-before-held
        self.coalescing.is_listed.store(false, Ordering::SeqCst);
        if self.coalescing.state.load(Ordering::SeqCst) & State::HELD != 0 {
            self.send_held();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes replies, each with another request behind it and this many microseconds after the one before.
    /// Returns after each whether the next servant is trusted.
    fn turns(coalescing: &Coalescing, at_us: &mut u64, micros: &[u64]) -> Vec<bool> {
        let mut trusted = Vec::new();
        for turn in micros {
            *at_us += turn;
            coalescing.note(true, || true);
            coalescing.end_turn(*at_us * 1000);
            trusted.push(coalescing.is_trusting());
        }
        trusted
    }

    #[test]
    fn short_turns_in_a_row_are_trusted_until_one_is_long() {
        let (coalescing, mut at_us) = (Coalescing::default(), 0);
        let trusted = turns(&coalescing, &mut at_us, &[20; 12]);
        assert_eq!(trusted, [vec![false; 8], vec![true; 4]].concat(), "the first follows nothing");
        assert_eq!(turns(&coalescing, &mut at_us, &[21]), [false]);
        // The wrong trust doubles the number of short turns that it takes.
        let trusted = turns(&coalescing, &mut at_us, &[1; 18]);
        assert_eq!(trusted, [vec![false; 15], vec![true; 3]].concat());
        // Many short turns in a row bring the number back.
        turns(&coalescing, &mut at_us, &[1; 400]);
        turns(&coalescing, &mut at_us, &[21]);
        let trusted = turns(&coalescing, &mut at_us, &[1; 18]);
        assert_eq!(trusted, [vec![false; 15], vec![true; 3]].concat());
    }

    #[test]
    fn pauses_between_requests_that_come_together_do_not_count() {
        let (coalescing, mut at_us) = (Coalescing::default(), 0);
        let mut trusted = Vec::new();
        for _ in 0..6 {
            trusted.extend(turns(&coalescing, &mut at_us, &[1_000_000, 5, 5]));
            // No request follows the last of them.
            coalescing.note(false, || unreachable!());
            at_us += 5;
            coalescing.end_turn(at_us * 1000);
            trusted.push(coalescing.is_trusting());
        }
        assert_eq!(trusted.iter().position(|trusted| *trusted), Some(10), "three of each four count");
    }
}
