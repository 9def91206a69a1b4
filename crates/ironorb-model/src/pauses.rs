//! What a thread's work takes longer after a pause.

use std::time::Duration;

/// What work takes longer by the length of the pause before it, from points that were measured. Between two of them a
/// logarithmic axis of pauses leads from one to the next; before the first nothing is longer, and beyond the last all is as there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pauses(Vec<(Duration, Duration)>);

impl Pauses {
    /// From points: a pause, and what it makes longer. They are put in order of their pauses. Of several for one pause, as profiles
    /// may have them, the greatest counts.
    pub fn new(mut points: Vec<(Duration, Duration)>) -> Pauses {
        points.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        points.dedup_by_key(|(pause, _)| *pause);
        Pauses(points)
    }

    /// The points, by their pauses.
    pub fn points(&self) -> &[(Duration, Duration)] {
        &self.0
    }

    /// Whether no pause makes anything longer.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What work takes longer after a pause.
    pub fn more(&self, pause: Duration) -> Duration {
        let behind = self.0.partition_point(|(point, _)| *point <= pause);
        let Some(&(from, low)) = behind.checked_sub(1).and_then(|place| self.0.get(place)) else {
            return Duration::ZERO;
        };
        let Some(&(to, high)) = self.0.get(behind) else { return low };
        // The mathematical library of the system would give every machine its own digits.
        let [from, to, at] = [from, to, pause].map(|time| libm::log(time.as_nanos().max(1) as f64));
        let part = (at - from) / (to - from);
        let [low, high] = [low, high].map(|time| time.as_nanos() as f64);
        Duration::from_nanos((low + (high - low) * part).max(0.0) as u64)
    }
}

/// What pauses make longer: the caches of memory have lost what a thread needs, and a processor that has slept wakes up slowly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PauseTimes {
    /// By how long a thread has not run.
    pub of_thread: Pauses,
    /// By how long the processor on which it begins has run no thread.
    pub of_processor: Pauses,
}

impl PauseTimes {
    /// Whether no pause makes anything longer.
    pub fn is_empty(&self) -> bool {
        self.of_thread.is_empty() && self.of_processor.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_pauses_lead_from_point_to_point() {
        let us = Duration::from_micros;
        let pauses = Pauses::new(vec![(us(10_000), us(50)), (us(10), us(0)), (us(100), us(20))]);
        for (pause, more) in [(0, 0), (10, 0), (100, 20), (1_000, 35), (10_000, 50), (1_000_000, 50)] {
            let found = pauses.more(us(pause));
            assert!(found.abs_diff(us(more)) <= Duration::from_nanos(1), "{pause}: {found:?}");
        }
        let found = pauses.more(us(31));
        assert!(us(9) < found && found < us(11), "{found:?}");
        let twice = Pauses::new(vec![(us(10), us(2)), (us(10), us(3)), (us(10), us(1))]);
        assert_eq!(twice.points(), [(us(10), us(3))]);
        assert_eq!(Pauses::default().more(us(1)), Duration::ZERO);
        assert!(Pauses::default().is_empty() && pauses.points().is_sorted());
    }
}
