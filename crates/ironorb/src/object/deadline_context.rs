//! How long a caller still waits, as a request carries it. `docs/wire.md` has the bytes, and decision 065 the reasons.
//!
//! The clocks of two hosts have nothing in common but their pace. A server compares when requests were sent and when they
//! came: the smallest difference so far is a bound of the offset between the clocks, and what a later request has more
//! has been spent on its way, for instance in the queue of a socket.

use std::sync::atomic::{AtomicU64, Ordering};

use super::deadline::{Deadline, Timeout};
use super::wire_numbers::DEADLINE_CONTEXT;
use crate::base::time::Time;

/// The clock by which an ORB's requests tell how long their callers wait, as peers see it.
#[derive(Debug)]
pub(crate) struct DeadlineClock(AtomicU64);

impl DeadlineClock {
    /// `number` tells it from the clocks of other processes.
    pub(crate) fn new(number: u64) -> DeadlineClock {
        DeadlineClock(AtomicU64::new(number))
    }

    /// The number of the clock in requests.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes another number: what servers know of the clock does not hold.
    #[cold]
    pub(crate) fn renew(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the context says. Any numbers may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadlineStamp {
    /// How long the caller waited at most when it sent the request, in nanoseconds.
    pub(crate) budget_ns: u64,
    /// When it sent the request, in nanoseconds of its own clock.
    pub(crate) sent_ns: u64,
    /// The number of that clock. The same clock has another number after it has been found to have jumped.
    pub(crate) clock: u64,
}

impl DeadlineStamp {
    /// The stamp of a request that is sent now. `None` if its caller waits without limit.
    #[inline]
    pub(crate) fn of(left: Timeout, sent: Time, clock: u64) -> Option<DeadlineStamp> {
        let budget_ns = left.as_nanos();
        (left != Timeout::NONE).then_some(DeadlineStamp { budget_ns, sent_ns: sent.as_nanos(), clock })
    }

    /// The data of the context: an encapsulation with three numbers.
    #[inline]
    pub(crate) fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[0] = u8::from(cfg!(target_endian = "little"));
        bytes[8..16].copy_from_slice(&self.budget_ns.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.sent_ns.to_ne_bytes());
        bytes[24..].copy_from_slice(&self.clock.to_ne_bytes());
        bytes
    }

    /// The whole context, as an element of a list in native order.
    #[inline]
    pub(crate) fn encode_context(&self) -> [u8; STAMP_CONTEXT_BYTES] {
        let mut bytes = [0; STAMP_CONTEXT_BYTES];
        bytes[..4].copy_from_slice(&DEADLINE_CONTEXT.to_ne_bytes());
        bytes[4..8].copy_from_slice(&(STAMP_BYTES as u32).to_ne_bytes());
        bytes[8..].copy_from_slice(&self.encode());
        bytes
    }

    /// Reads the data of a context. `None` if it is too short, or of no byte order. Bytes behind the numbers are those of
    /// later versions.
    #[inline]
    pub(crate) fn decode(data: &[u8]) -> Option<DeadlineStamp> {
        let [order, _, _, _, _, _, _, _, numbers @ ..] = data.first_chunk::<STAMP_BYTES>()?;
        let number = |at: usize| {
            let bytes = *numbers.get(at..)?.first_chunk::<8>()?;
            match order {
                0 => Some(u64::from_be_bytes(bytes)),
                1 => Some(u64::from_le_bytes(bytes)),
                _ => None,
            }
        };
        Some(DeadlineStamp { budget_ns: number(0)?, sent_ns: number(8)?, clock: number(16)? })
    }
}

/// The bytes of the data: byte order and padding, and three numbers.
pub(crate) const STAMP_BYTES: usize = 32;

/// The bytes of the whole context: its number, the length of the data, and the data.
pub(crate) const STAMP_CONTEXT_BYTES: usize = 8 + STAMP_BYTES;

/// What a server has found out about the clock of a connection's client.
#[derive(Debug, Default)]
pub(crate) struct ClockBound {
    /// `None` before the first request with a stamp.
    bound: Option<Bound>,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    clock: u64,
    /// The smallest time by which the server's clock was ahead when a request came, less what the clocks may have drifted
    /// from the beginning of the server's time until then.
    least_ns: i64,
}

impl ClockBound {
    /// The deadline of a request that has come now: never earlier than the moment at which its caller gives up. A request
    /// from an unknown clock has its whole budget from now on.
    #[inline]
    pub(crate) fn deadline(&mut self, stamp: &DeadlineStamp, now: Time) -> Deadline {
        let on_its_way = self.time_on_its_way(stamp, now);
        let left = stamp.budget_ns.saturating_sub(on_its_way);
        Deadline::after(now, Timeout::from_nanos(left))
    }

    /// How long at least a request was on its way that has come now, in nanoseconds.
    #[inline]
    fn time_on_its_way(&mut self, stamp: &DeadlineStamp, now: Time) -> u64 {
        // What the difference wraps around to for numbers of no clock concerns only the client that sends them.
        let ahead = now.as_nanos().wrapping_sub(stamp.sent_ns) as i64;
        let drift = (now.as_nanos() / DRIFT) as i64;
        let least_ns = ahead.saturating_sub(drift);
        let bound = match self.bound {
            Some(bound) if bound.clock == stamp.clock && bound.least_ns <= least_ns => bound,
            _ => Bound { clock: stamp.clock, least_ns },
        };
        self.bound = Some(bound);
        let offset_max = bound.least_ns.saturating_add(drift);
        u64::try_from(ahead.saturating_sub(offset_max)).unwrap_or(0)
    }
}

/// Two clocks may run apart by one second in this many: 0.2 %. Clocks that are kept right run apart by 0.05 % each.
const DRIFT: u64 = 512;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn stamp(budget_ns: u64, sent_ns: u64) -> DeadlineStamp {
        DeadlineStamp { budget_ns, sent_ns, clock: 7 }
    }

    #[test]
    fn the_data_has_the_documented_bytes() {
        let stamp =
            DeadlineStamp { budget_ns: 0x0102_0304_0506_0708, sent_ns: 0x1112_1314_1516_1718, clock: 0x21 };
        let big = b"\0\0\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18\0\0\0\0\0\0\0\x21";
        let little = b"\x01\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\x21\0\0\0\0\0\0\0";
        assert_eq!(stamp.encode(), if cfg!(target_endian = "little") { *little } else { *big });
        for golden in [big, little] {
            assert_eq!(DeadlineStamp::decode(golden), Some(stamp));
            for cut in 0..golden.len() {
                assert_eq!(DeadlineStamp::decode(&golden[..cut]), None);
            }
            assert_eq!(DeadlineStamp::decode(&[golden, &b"more"[..]].concat()), Some(stamp));
            let no_order = [&[2], &golden[1..]].concat();
            assert_eq!(DeadlineStamp::decode(&no_order), None);
        }
    }

    #[test]
    fn the_first_request_has_its_whole_budget_and_a_delayed_one_less() {
        for offset in [0, 3 * 3_600 * SECOND, u64::MAX - 3 * 3_600 * SECOND] {
            let mut bound = ClockBound::default();
            let sent = |at: u64| (1_000 * SECOND + at).wrapping_sub(offset);
            let now = |at: u64| Time::from_nanos(1_000 * SECOND + at);
            let left = |deadline: Deadline, now: Time| deadline.left(now).as_nanos();
            // It was on its way for two seconds, which nobody can know.
            let first = bound.deadline(&stamp(5 * SECOND, sent(0)), now(2 * SECOND));
            assert_eq!(left(first, now(2 * SECOND)), 5 * SECOND);
            // This one was so for a millisecond: now the bound is better.
            let quick = bound.deadline(&stamp(5 * SECOND, sent(10 * SECOND)), now(10 * SECOND + 1_000_000));
            assert_eq!(left(quick, now(10 * SECOND + 1_000_000)), 5 * SECOND);
            let slow = bound.deadline(&stamp(5 * SECOND, sent(11 * SECOND)), now(14 * SECOND));
            let left_of_slow = left(slow, now(14 * SECOND));
            // Three seconds, less the millisecond, and less what the clocks may have run apart in four seconds.
            assert!((2 * SECOND..2 * SECOND + 10_000_000).contains(&left_of_slow), "{left_of_slow}");
            let late = bound.deadline(&stamp(SECOND, sent(15 * SECOND)), now(20 * SECOND));
            assert_eq!(left(late, now(20 * SECOND)), 0);
            // The same numbers of another clock mean nothing.
            let other = DeadlineStamp { clock: 8, ..stamp(SECOND, sent(15 * SECOND)) };
            assert_eq!(left(bound.deadline(&other, now(20 * SECOND)), now(20 * SECOND)), SECOND);
        }
    }

    /// Whatever the offset, the drift and the delays: no deadline is earlier than the moment at which the caller gives up.
    #[test]
    fn no_request_has_less_time_than_its_caller() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut bound = ClockBound::default();
            let offset = random(1 << 30) * (1 << 20);
            // Each clock is up to 0.05 % wrong.
            let (fast, slow) = (random(1_000), random(1_000));
            let client = |at: u64| offset + at + at / 2_000_000 * fast;
            let server = |at: u64| at + at / 2_000_000 * slow;
            let mut at = 0;
            for _ in 0..200 {
                at += random(20 * SECOND) + 1;
                let (delay, budget) = (random(5 * SECOND), random(10 * SECOND));
                let received = at + delay;
                let now = Time::from_nanos(server(received));
                let deadline = bound.deadline(&stamp(budget, client(at)), now);
                // The caller gives up this long after the request has come, by a right clock.
                let truly_left = budget.saturating_sub(delay);
                // The client's clock measures the budget, and runs fast at most.
                let truly_left = truly_left.saturating_sub(truly_left / 1_000 + 1_000);
                let left = deadline.left(now).as_nanos();
                assert!(
                    left >= truly_left.saturating_sub(budget / 1_000),
                    "{left} {truly_left} {budget} {delay}"
                );
                at = received;
            }
        }
    }

    #[test]
    fn no_number_does_harm() {
        let numbers = [0, 1, SECOND, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1, u64::MAX];
        let mut bound = ClockBound::default();
        for budget in numbers {
            for sent in numbers {
                for now in numbers {
                    let now = Time::from_nanos(now);
                    let deadline = bound.deadline(&stamp(budget, sent), now);
                    assert!(deadline >= Deadline::after(now, Timeout::NOTHING));
                    assert!(deadline.left(now).as_nanos() <= budget || deadline == Deadline::NEVER);
                }
            }
        }
        assert_eq!(DeadlineStamp::of(Timeout::NONE, Time::ZERO, 1), None);
        let second = DeadlineStamp::of(Some(Duration::from_secs(1)).into(), Time::ZERO, 1);
        assert_eq!(second.map(|stamp| stamp.budget_ns), Some(SECOND));
    }
}
