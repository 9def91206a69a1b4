//! From latencies to figures.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What one side of a row took, in microseconds per call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// The mean of the fastest repetition: what it costs when nothing disturbs.
    pub best_us: f64,
    /// Over all calls.
    pub median_us: f64,
    /// Over all calls.
    pub p99_us: f64,
}

/// Subject over baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Of the fastest repetitions.
    pub of_bests: f64,
    /// Of the medians over all calls; the least shaken by whatever else the machine does.
    pub of_medians: f64,
    /// The median of the repetitions' own ratios, each to the baseline's of the same repetition.
    pub median: f64,
    /// The least of those.
    pub min: f64,
    /// The greatest of those.
    pub max: f64,
}

/// Collects one side's repetitions.
pub(crate) struct Collector {
    calls_per_sample: f64,
    nanos: Histogram<u64>,
    means_us: Vec<f64>,
}

impl Collector {
    pub(crate) fn new(calls_per_sample: usize) -> Collector {
        // Three digits from 1 ns to an hour: the bounds are constants, so that this cannot fail.
        let nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are in order");
        Collector { calls_per_sample: calls_per_sample as f64, nanos, means_us: Vec::new() }
    }

    /// One repetition: how long each of its samples took.
    pub(crate) fn add(&mut self, sample_nanos: &[u64]) {
        for nanos in sample_nanos {
            self.nanos.saturating_record((*nanos).max(1));
        }
        let total: u64 = sample_nanos.iter().sum();
        self.means_us.push(self.per_call(total as f64 / sample_nanos.len().max(1) as f64));
    }

    fn per_call(&self, sample_nanos: f64) -> f64 {
        sample_nanos / self.calls_per_sample / 1000.0
    }

    fn best(&self) -> f64 {
        self.means_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn latency(&self) -> Latency {
        Latency {
            best_us: self.best(),
            median_us: self.per_call(self.nanos.value_at_quantile(0.5) as f64),
            p99_us: self.per_call(self.nanos.value_at_quantile(0.99) as f64),
        }
    }

    /// The slowest, the median and the fastest repetition.
    pub(crate) fn spread_us(&self) -> [f64; 3] {
        let mut sorted = self.means_us.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        [at(sorted.len().saturating_sub(1)), at(sorted.len() / 2), at(0)]
    }

    /// This, the subject, over its baseline.
    pub(crate) fn over(&self, baseline: &Collector) -> Ratio {
        let mut pairs: Vec<f64> = self.means_us.iter().zip(&baseline.means_us).map(|(s, b)| s / b).collect();
        pairs.sort_by(f64::total_cmp);
        Ratio {
            of_bests: self.best() / baseline.best(),
            of_medians: self.latency().median_us / baseline.latency().median_us,
            median: pairs.get(pairs.len() / 2).copied().unwrap_or(f64::NAN),
            min: pairs.first().copied().unwrap_or(f64::NAN),
            max: pairs.last().copied().unwrap_or(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_samples() {
        let mut baseline = Collector::new(1);
        let mut subject = Collector::new(1);
        for (b, s) in [(8_000, 10_000), (10_000, 11_000), (9_000, 18_000)] {
            baseline.add(&[b; 100]);
            subject.add(&[s; 100]);
        }
        let latency = subject.latency();
        assert_eq!(latency.best_us, 10.0);
        assert!((latency.median_us - 11.0).abs() < 0.02, "{latency:?}");
        assert!((latency.p99_us - 18.0).abs() < 0.02, "{latency:?}");
        let ratio = subject.over(&baseline);
        assert_eq!((ratio.of_bests, ratio.median, ratio.min, ratio.max), (1.25, 1.25, 1.1, 2.0));
        assert!((ratio.of_medians - 11.0 / 9.0).abs() < 0.01, "{ratio:?}");
    }

    #[test]
    fn batches_are_told_per_call() {
        let mut collector = Collector::new(100);
        collector.add(&[100_000; 10]);
        assert_eq!(collector.latency().best_us, 1.0);
    }
}
