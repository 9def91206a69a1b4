//! How long a caller still waits, as a request carries it. `docs/wire.md` has the bytes, and decision 065 the reasons.
//!
//! The clocks of two hosts have nothing in common but their pace. A server compares when requests were sent and when they
//! came: the smallest difference so far is a bound of the offset between the clocks, and what a later request has more
//! has been spent on its way, for instance in the queue of a socket.

use super::deadline::{Deadline, Timeout};
use crate::base::time::Time;

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

