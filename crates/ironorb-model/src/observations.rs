//! What a run has shown.

mod hand_over;
mod seen_times;

use std::time::Duration;

use crate::Digest;

pub use hand_over::HandOverError;
pub use seen_times::SeenTimes;

/// What a run of one scenario with one seed has shown after its warm-up.
#[derive(Debug, Clone)]
pub struct Observations {
    /// How long was observed.
    pub span: Duration,
    /// By class, in the scenario's order.
    pub classes: Vec<ClassObservations>,
    /// Processors, locks, thread pools and links, in an order that depends on the scenario alone.
    pub resources: Vec<ResourceObservations>,
    /// GIOP messages that were sent, over all links, from the beginning of the run on.
    pub messages: u64,
    /// Octets of these messages.
    pub octets: u64,
    /// Invocations that were begun from the beginning of the run on, nested ones too.
    pub calls: u64,
    /// Events of the kernel, from the beginning of the run on.
    pub events: u64,
    /// What happened, in its order.
    pub digest: Digest,
}

/// What one class of clients has seen.
#[derive(Debug, Clone)]
pub struct ClassObservations {
    /// The class's name.
    pub name: String,
    /// Cycles (jobs, or single calls) that ended.
    pub completed: u64,
    /// Cycles that ended with an exception.
    pub failed: u64,
    /// Response times of cycles.
    pub response: SeenTimes,
    /// The sum of these times, in nanoseconds. Their own mean is rounded.
    pub response_ns: u128,
    /// How long ago cycles began that had not ended at the end, those that began before the observation among them.
    pub unfinished: SeenTimes,
    /// The response times in the order in which cycles ended, from the beginning of the run on.
    pub series: BatchMeans,
    /// How old what cached reads returned was; empty without caches.
    pub staleness: SeenTimes,
    /// Reads that a cache answered.
    pub cache_hits: u64,
    /// Reads that asked the server although the class caches.
    pub cache_misses: u64,
    /// Questions of caches what has changed, by messages of their own.
    pub cache_probes: u64,
    /// The same that calls carried, and their replies answered.
    pub cache_probes_carried: u64,
}

impl ClassObservations {
    /// Of a class that has seen nothing.
    pub fn new(name: String) -> ClassObservations {
        ClassObservations {
            name,
            completed: 0,
            failed: 0,
            response: SeenTimes::default(),
            response_ns: 0,
            unfinished: SeenTimes::default(),
            series: BatchMeans::default(),
            staleness: SeenTimes::default(),
            cache_hits: 0,
            cache_misses: 0,
            cache_probes: 0,
            cache_probes_carried: 0,
        }
    }

    /// A cycle has ended with a result.
    pub fn complete(&mut self, response: Duration) {
        let ns = u64::try_from(response.as_nanos()).unwrap_or(u64::MAX);
        self.completed += 1;
        self.response.record(ns);
        self.response_ns += u128::from(ns);
    }

    /// At the end of a run: a cycle that began so long ago has not ended.
    pub fn leave_unfinished(&mut self, age: Duration) {
        self.unfinished.record(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Cycles that had not ended at the end, and had taken longer by then than any that ended: what keeps them may keep them for ever.
    pub fn overdue(&self) -> SeenTimes {
        self.unfinished.beyond(self.response.max())
    }

    /// The mean response time of the cycles that ended; zero if none did.
    pub fn response_mean(&self) -> Duration {
        let mean = self.response_ns / u128::from(self.completed.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Forgets what has been observed, but for the series.
    pub fn restart(&mut self) {
        (self.completed, self.failed, self.response_ns) = (0, 0, 0);
        (self.cache_hits, self.cache_misses) = (0, 0);
        (self.cache_probes, self.cache_probes_carried) = (0, 0);
        self.response.reset();
        self.unfinished.reset();
        self.staleness.reset();
    }
}

/// What one resource has done.
#[derive(Debug, Clone)]
pub struct ResourceObservations {
    /// For example `cpu of registry[0]`, `threads of accounts`, `link front -> registry`.
    pub name: String,
    /// From 0 to 1: the busy part of its units' time.
    pub utilisation: f64,
    /// The mean number of those that waited.
    pub queue_mean: f64,
    /// The greatest number of those that waited.
    pub queue_max: u64,
    /// Octets that it carried, for links.
    pub octets: u64,
}

/// Numbers in their order, as means of equal batches: first of five, and of twice as many whenever there are 4,096
/// batches. So the memory stays the same, however long a run is.
#[derive(Debug, Clone)]
pub struct BatchMeans {
    size: u32,
    /// The mean of each batch, and when it ended, in nanoseconds since the beginning of the run.
    batches: Vec<(f64, u64)>,
    open_sum: f64,
    open_count: u32,
}

const FIRST_BATCH: u32 = 5;
const BATCHES_MAX: usize = 4_096;

impl Default for BatchMeans {
    fn default() -> Self {
        BatchMeans { size: FIRST_BATCH, batches: Vec::new(), open_sum: 0.0, open_count: 0 }
    }
}

impl BatchMeans {
    /// Takes the next number, at this time.
    pub fn take(&mut self, number: f64, at_ns: u64) {
        self.open_sum += number;
        self.open_count += 1;
        if self.open_count < self.size {
            return;
        }
        self.batches.push((self.open_sum / f64::from(self.size), at_ns));
        (self.open_sum, self.open_count) = (0.0, 0);
        if self.batches.len() == BATCHES_MAX {
            self.batches =
                self.batches.chunks_exact(2).map(|pair| ((pair[0].0 + pair[1].0) / 2.0, pair[1].1)).collect();
            self.size = self.size.saturating_mul(2);
        }
    }

    /// The time, in nanoseconds, before which numbers should be left out, by the marginal standard error rule: of all numbers
    /// of batches at the beginning, those are left out without which the standard error of the mean of the rest is
    /// least. At most half of the batches are; `None` if the best place lies beyond, or there are fewer than ten batches:
    /// the run is too short to tell.
    pub fn truncation_ns(&self) -> Option<u64> {
        let count = self.batches.len();
        if count < 10 {
            return None;
        }
        // Sums of the numbers behind a place, from the end on. Differences to one of them, lest the squares lose digits.
        let base = self.batches[count - 1].0;
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut best = (f64::INFINITY, 0);
        for (left_out, batch) in self.batches.iter().enumerate().rev() {
            let number = batch.0 - base;
            sum += number;
            squares += number * number;
            let rest = (count - left_out) as f64;
            if rest < 5.0 {
                continue; // so few agree by chance
            }
            let error = (squares - sum * sum / rest).max(0.0) / (rest * rest);
            if error <= best.0 {
                best = (error, left_out);
            }
        }
        match best.1 {
            0 => Some(0),
            left_out if left_out <= count / 2 => Some(self.batches[left_out - 1].1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_rule_leaves_out_what_is_not_like_the_rest() {
        let mut random = Random::stream(1, 1);
        let mut series = BatchMeans::default();
        for number in 0..10_000 {
            let start = if number < 1_000 { 10.0 } else { 1.0 };
            series.take(start + random.unit(), number);
        }
        let truncation = series.truncation_ns().unwrap();
        assert!((990..1_100).contains(&truncation), "{truncation}");
    }

    #[test]
    fn a_run_that_never_settles_is_told() {
        let mut series = BatchMeans::default();
        (0..1_000).for_each(|number| series.take(number as f64, number));
        assert_eq!(series.truncation_ns(), None);
        let mut steady = BatchMeans::default();
        (0..1_000).for_each(|number| steady.take(1.0, number));
        assert_eq!(steady.truncation_ns(), Some(0));
    }

    #[test]
    fn long_series_take_no_more_memory() {
        let mut series = BatchMeans::default();
        (0..1_000_000_u32).for_each(|number| series.take(f64::from(number), number.into()));
        assert!(series.batches.len() < BATCHES_MAX && series.size == 320, "{}", series.size);
        let (mean, _) = series.batches[0];
        assert_eq!(mean, 159.5, "of 0 to 319");
    }
}
