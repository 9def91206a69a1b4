//! When oneways that wait to leave together do leave. They wait in the connection's buffer, like all requests, so the
//! next request takes them along.

use std::time::Duration;

use crate::base::config::OnewayBatching;
use crate::base::time::Time;

/// The oneways that wait on one connection.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// How many have been written since nothing was waiting.
    count: usize,
    /// The stream position at which the last of them ends.
    ends_at: u64,
    /// When the batch is to be sent.
    due: Option<Time>,
    /// The delay limit of the last oneway that set `due`: the first of a batch, or one that is due sooner
    /// than the others.
    delay_max: Duration,
    /// The driver will ask what is due.
    is_timed: bool,
    /// Times in a row at which nothing was due.
    vain_times: u32,
}

/// What the driver does when it has been told to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchDue {
    /// Whether what is pending is sent now.
    pub(crate) is_sent: bool,
    /// When the driver asks again; `None` until [`Batch::set_due`] says so.
    pub(crate) again_at: Option<Time>,
}

/// The driver is no longer asked for after this many times in vain. To have it wait for the next batch costs about as
/// much.
const VAIN_TIMES_MAX: u32 = 4;

impl Batch {
    /// Whether one more oneway has the batch sent at once. `pending_bytes` are those of the connection, with it.
    #[inline]
    pub(crate) fn is_full(&self, pending_bytes: usize, batching: &OnewayBatching) -> bool {
        pending_bytes >= batching.bytes_max || self.count + 1 >= batching.count_max
    }

    /// Whether a oneway with these limits is due sooner than those that wait.
    #[inline]
    pub(crate) fn is_overtaken(&self, batching: &OnewayBatching) -> bool {
        batching.delay_max < self.delay_max
    }

    /// Forgets the oneways of the batch before, which have left.
    pub(crate) fn start(&mut self) {
        self.count = 0;
        self.due = None;
    }

    /// Notes that a oneway waits from now on. Returns when the driver asks what is due, if it must be told.
    pub(crate) fn set_due(&mut self, now: Time, batching: &OnewayBatching) -> Option<Time> {
        let due = now + batching.delay_max;
        self.due = Some(self.due.map_or(due, |other| other.min(due)));
        // The time at which the driver asks next may be too late.
        let must_tell = !self.is_timed || self.is_overtaken(batching);
        self.delay_max = batching.delay_max;
        if must_tell {
            self.is_timed = true;
            self.vain_times = 0;
        }
        must_tell.then_some(due)
    }

    /// Notes that the driver cannot ask.
    pub(crate) fn cannot_be_timed(&mut self) {
        self.is_timed = false;
    }

    /// Counts one more oneway that waits, and ends at this position of the stream.
    #[inline]
    pub(crate) fn add(&mut self, ends_at: u64) {
        self.count += 1;
        self.ends_at = ends_at;
    }

    /// Whether oneways wait on a connection that has sent its stream up to this position.
    pub(crate) fn waits(&self, sent_position: u64) -> bool {
        self.ends_at > sent_position
    }

    /// Says what is due now. `waits` is false when nothing of the batch is left to be sent.
    pub(crate) fn on_time(&mut self, waits: bool, now: Time) -> BatchDue {
        let due = self.due.filter(|_| waits);
        if let Some(due) = due.filter(|due| *due > now) {
            return BatchDue { is_sent: false, again_at: Some(due) };
        }
        self.vain_times = if due.is_some() { 0 } else { self.vain_times + 1 };
        self.is_timed = self.vain_times < VAIN_TIMES_MAX;
        BatchDue { is_sent: due.is_some(), again_at: self.is_timed.then_some(now + self.delay_max) }
    }

    /// The oneways that are lost with a connection that has sent its stream up to this position.
    pub(crate) fn take_lost(&mut self, sent_position: u64) -> usize {
        let count = std::mem::take(&mut self.count);
        if self.waits(sent_position) { count } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batching(delay_ms: u64) -> OnewayBatching {
        OnewayBatching { count_max: 3, delay_max: Duration::from_millis(delay_ms), ..OnewayBatching::DEFAULT }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_first_oneway_sets_the_time_and_a_more_urgent_one_brings_it_forward() {
        let mut batch = Batch::default();
        batch.start();
        assert_eq!(batch.set_due(at(0), &batching(10)), Some(at(10)));
        batch.add(100);
        assert!(!batch.is_overtaken(&batching(10)) && batch.is_overtaken(&batching(2)));
        assert_eq!(batch.set_due(at(1), &batching(2)), Some(at(3)));
        batch.add(200);
        assert!(batch.is_full(200, &batching(10)), "the third of three");
        assert_eq!(batch.on_time(batch.waits(0), at(2)), BatchDue { is_sent: false, again_at: Some(at(3)) });
        assert_eq!(batch.on_time(batch.waits(0), at(3)), BatchDue { is_sent: true, again_at: Some(at(5)) });
        // It has been sent. The driver asks a few times more, and then no longer.
        let asked: Vec<_> = (1..=4).map(|time| batch.on_time(batch.waits(200), at(3 + 2 * time))).collect();
        assert!(asked[..3].iter().all(|due| !due.is_sent && due.again_at.is_some()), "{asked:?}");
        assert_eq!(asked[3], BatchDue { is_sent: false, again_at: None });
        assert_eq!(batch.set_due(at(20), &batching(2)), Some(at(22)), "the driver must be told again");
    }

    #[test]
    fn what_has_left_is_not_lost() {
        let mut batch = Batch::default();
        (1..=3).for_each(|number| batch.add(100 * number));
        assert_eq!(batch.take_lost(300), 0);
        batch.add(400);
        batch.add(500);
        assert_eq!(batch.take_lost(450), 2, "both may be lost");
        assert_eq!(batch.take_lost(450), 0, "told once");
    }
}
