//! Computes figures from latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A subject's times over those of its baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio of the fastest repetitions.
    pub of_bests: f64,
    /// The ratio of the medians over all calls, which other load on the machine disturbs least.
    pub of_medians: f64,
    /// The median of the ratios of all repetitions, each to the baseline in the same repetition.
    pub median: f64,
    /// The smallest of these ratios.
    pub min: f64,
    /// The greatest of these ratios.
    pub max: f64,
}

/// Collects the repetitions of one side.
pub(crate) struct Collector {
    calls_per_sample: f64,
    nanos: Histogram<u64>,
    busy: Option<Duration>,
    samples: u64,
    means_us: Vec<f64>,
}

impl Collector {
    pub(crate) fn new(calls_per_sample: usize) -> Collector {
        // Three digits from 1 ns to an hour. The bounds are constants, so this cannot fail.
        let nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are in order");
        Collector {
            calls_per_sample: calls_per_sample as f64,
            nanos,
            busy: None,
            samples: 0,
            means_us: Vec::new(),
        }
    }

    /// Adds one repetition: the nanoseconds of each of its samples.
    pub(crate) fn add(&mut self, sample_nanos: &[u64]) {
        for nanos in sample_nanos {
            self.nanos.saturating_record((*nanos).max(1));
        }
        self.samples += sample_nanos.len() as u64;
        let total: u64 = sample_nanos.iter().sum();
        self.means_us.push(self.per_call(total as f64 / sample_nanos.len().max(1) as f64));
    }

    /// Adds processor time of samples.
    pub(crate) fn add_busy(&mut self, busy: Duration) {
        *self.busy.get_or_insert_default() += busy;
    }

    /// Processor time per call in microseconds, if it was collected.
    pub(crate) fn busy_us(&self) -> Option<f64> {
        Some(self.per_call(self.busy?.as_nanos() as f64 / self.samples.max(1) as f64))
    }

    fn per_call(&self, sample_nanos: f64) -> f64 {
        sample_nanos / self.calls_per_sample / 1000.0
    }

    fn best(&self) -> f64 {
        self.means_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The mean of the fastest repetition, then the median and the 99th percentile of all calls.
    pub(crate) fn times_us(&self) -> [f64; 3] {
        let at = |quantile| self.per_call(self.nanos.value_at_quantile(quantile) as f64);
        [self.best(), at(0.5), at(0.99)]
    }

    /// The slowest, the median and the fastest repetition.
    pub(crate) fn spread_us(&self) -> [f64; 3] {
        let mut sorted = self.means_us.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        [at(sorted.len().saturating_sub(1)), at(sorted.len() / 2), at(0)]
    }

    /// The ratio of this side, the subject, to its baseline.
    pub(crate) fn over(&self, baseline: &Collector) -> Ratio {
        let mut pairs: Vec<f64> = self.means_us.iter().zip(&baseline.means_us).map(|(s, b)| s / b).collect();
        pairs.sort_by(f64::total_cmp);
        Ratio {
            of_bests: self.best() / baseline.best(),
            of_medians: self.times_us()[1] / baseline.times_us()[1],
            median: pairs.get(pairs.len() / 2).copied().unwrap_or(f64::NAN),
            min: pairs.first().copied().unwrap_or(f64::NAN),
            max: pairs.last().copied().unwrap_or(f64::NAN),
        }
    }
}

/// The times of calls of one kind.
pub(crate) struct Repeated {
    pub(crate) calls: Collector,
    /// The median of each repetition, so that a ratio does not depend on the few calls that were disturbed.
    medians: Collector,
}

impl Repeated {
    /// A collection for samples of so many calls.
    pub(crate) fn new(calls_per_sample: usize) -> Repeated {
        Repeated { calls: Collector::new(calls_per_sample), medians: Collector::new(calls_per_sample) }
    }

    /// Adds one repetition.
    pub(crate) fn add(&mut self, nanos: &mut [u64]) {
        self.calls.add(nanos);
        nanos.sort_unstable();
        self.medians.add(&[nanos[nanos.len() / 2]]);
    }

    /// The median call over the baseline's median in the same repetition.
    pub(crate) fn over(&self, baseline: &Repeated) -> Ratio {
        let Ratio { of_bests, of_medians, .. } = self.calls.over(&baseline.calls);
        Ratio { of_bests, of_medians, ..self.medians.over(&baseline.medians) }
    }
}

/// The side of each turn, in all repetitions; 0 is the baseline. Each repetition begins with another side, so
/// that no side always follows the same one.
pub(crate) fn turns(sides: usize, repetitions: usize) -> impl Iterator<Item = usize> {
    (0..repetitions)
        .flat_map(move |repetition| (0..=sides).map(move |turn| (turn + repetition) % (sides + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_has_a_turn_in_every_repetition() {
        let all: Vec<usize> = turns(2, 4).collect();
        assert_eq!(all, [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
    }

    #[test]
    fn figures_follow_from_samples() {
        let mut baseline = Collector::new(1);
        let mut subject = Collector::new(1);
        for (b, s) in [(8_000, 10_000), (10_000, 11_000), (9_000, 18_000)] {
            baseline.add(&[b; 100]);
            subject.add(&[s; 100]);
        }
        let [best, median, p99] = subject.times_us();
        assert_eq!(best, 10.0);
        assert!((median - 11.0).abs() < 0.02 && (p99 - 18.0).abs() < 0.02, "{median} {p99}");
        let ratio = subject.over(&baseline);
        assert_eq!((ratio.of_bests, ratio.median, ratio.min, ratio.max), (1.25, 1.25, 1.1, 2.0));
        assert!((ratio.of_medians - 11.0 / 9.0).abs() < 0.01, "{ratio:?}");
    }

    #[test]
    fn batches_are_shown_per_call() {
        let mut collector = Collector::new(100);
        collector.add(&[100_000; 10]);
        assert_eq!(collector.times_us()[0], 1.0);
    }
}
