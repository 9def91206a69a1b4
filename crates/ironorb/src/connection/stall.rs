//! How long a peer that reads nothing is waited for.

use std::time::Duration;

use crate::base::time::Time;

/// How far a peer has read, and since when it reads nothing.
#[derive(Debug, Default)]
pub(crate) struct Stall(Option<(u64, Time)>);

impl Stall {
    /// The position in the stream up to which the peer had taken bytes at the last look.
    pub(crate) fn position(&self) -> Option<u64> {
        self.0.map(|(position, _)| position)
    }

    /// Records how far the bytes have gone and returns when the peer is given up. All bytes count as progress,
    /// whichever thread has sent them.
    pub(crate) fn given_up_at(&mut self, position: u64, now: Time, timeout: Duration) -> Time {
        let since = match self.0 {
            Some((before, since)) if before == position => since,
            _ => now,
        };
        self.0 = Some((position, since));
        since + timeout.min(PATIENCE_MAX)
    }
}

/// Longer timeouts count as this one, because the system's timers have an end.
const PATIENCE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_begins_anew_with_each_byte_that_leaves() {
        let (mut stall, second) = (Stall::default(), Duration::from_secs(1));
        let at = |n: u32| Time::ZERO + n * second;
        assert_eq!(stall.given_up_at(7, at(1), 5 * second), at(6));
        assert_eq!(stall.given_up_at(7, at(4), 5 * second), at(6));
        assert_eq!(stall.given_up_at(8, at(5), 5 * second), at(10));
        assert_eq!(
            (stall.position(), stall.given_up_at(9, at(5), Duration::MAX)),
            (Some(8), at(5) + PATIENCE_MAX)
        );
    }
}
