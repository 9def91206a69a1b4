//! Computes figures from latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A subject's times over those of its baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The ratio of the fastest repetitions.
    pub(crate) of_bests: f64,
    /// The ratio of the medians over all calls, which other load on the machine disturbs least.
    pub(crate) of_medians: f64,
    /// The median of the ratios of all repetitions, each to the baseline in the same repetition.
    pub(crate) median: f64,
    /// The smallest of these ratios.
    pub(crate) min: f64,
    /// The greatest of these ratios.
    pub(crate) max: f64,
}

impl Ratio {
    /// The ratios of pairs, each of a subject and its baseline in one repetition.
    pub(crate) fn of_pairs(pairs: &[(f64, f64)]) -> Ratio {
        let [min, median, max] = spread(pairs.iter().map(|(subject, baseline)| subject / baseline).collect());
        let [best, middle, _] = spread(pairs.iter().map(|(subject, _)| *subject).collect());
        let [best_of, middle_of, _] = spread(pairs.iter().map(|(_, baseline)| *baseline).collect());
        Ratio { of_bests: best / best_of, of_medians: middle / middle_of, median, min, max }
    }
}

/// The times of calls of one kind, in repetitions.
pub(crate) struct Repeated {
    calls_per_sample: f64,
    /// Nanoseconds of all samples.
    nanos: Histogram<u64>,
    /// The mean of each repetition, in microseconds a call.
    means_us: Vec<f64>,
    /// The median of each repetition, so that a ratio does not depend on the few calls that were disturbed.
    medians_us: Vec<f64>,
    busy: Option<Duration>,
}

impl Repeated {
    /// A collection for samples of so many calls.
    pub(crate) fn new(calls_per_sample: usize) -> Repeated {
        // Three digits from 1 ns to an hour. The bounds are constants, so this cannot fail.
        let nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are in order");
        let calls_per_sample = calls_per_sample as f64;
        Repeated { calls_per_sample, nanos, means_us: Vec::new(), medians_us: Vec::new(), busy: None }
    }

    /// Adds one repetition: the nanoseconds of each of its samples.
    pub(crate) fn add(&mut self, sample_nanos: &mut [u64]) {
        for nanos in &*sample_nanos {
            self.nanos.saturating_record((*nanos).max(1));
        }
        let total: u64 = sample_nanos.iter().sum();
        self.means_us.push(self.per_call(total as f64 / sample_nanos.len() as f64));
        sample_nanos.sort_unstable();
        self.medians_us.push(self.per_call(sample_nanos[sample_nanos.len() / 2] as f64));
    }

    /// Adds processor time of samples.
    pub(crate) fn add_busy(&mut self, busy: Duration) {
        *self.busy.get_or_insert_default() += busy;
    }

    /// Processor time per call in microseconds, if it was collected.
    pub(crate) fn busy_us(&self) -> Option<f64> {
        Some(self.per_call(self.busy?.as_nanos() as f64 / self.nanos.len().max(1) as f64))
    }

    fn per_call(&self, sample_nanos: f64) -> f64 {
        sample_nanos / self.calls_per_sample / 1000.0
    }

    /// The mean of the fastest repetition, then the median and the 99th percentile of all calls.
    pub(crate) fn times_us(&self) -> [f64; 3] {
        let at = |quantile| self.per_call(self.nanos.value_at_quantile(quantile) as f64);
        [self.spread_us()[2], at(0.5), at(0.99)]
    }

    /// The slowest, the median and the fastest repetition.
    pub(crate) fn spread_us(&self) -> [f64; 3] {
        let [fastest, median, slowest] = spread(self.means_us.clone());
        [slowest, median, fastest]
    }

    /// The ratio of this side, the subject, to its baseline: of the median calls of each repetition.
    pub(crate) fn over(&self, baseline: &Repeated) -> Ratio {
        let pairs = self.medians_us.iter().zip(&baseline.medians_us);
        let [min, median, max] = spread(pairs.map(|(subject, baseline)| subject / baseline).collect());
        let [(best, all), (best_of, all_of)] = [self, baseline].map(|side| {
            let [best, median, _] = side.times_us();
            (best, median)
        });
        Ratio { of_bests: best / best_of, of_medians: all / all_of, median, min, max }
    }
}

/// The least, the median and the greatest number.
fn spread(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len().saturating_sub(1);
    [0, numbers.len() / 2, last].map(|place| numbers.get(place).copied().unwrap_or(f64::NAN))
}

/// The median; of an even number the mean of the middle two. `None` of nothing.
pub(crate) fn middle(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        length if length.is_multiple_of(2) => Some(f64::midpoint(numbers[half - 1], numbers[half])),
        _ => Some(numbers[half]),
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
        let (mut baseline, mut subject) = (Repeated::new(1), Repeated::new(1));
        for (b, s) in [(8_000, 10_000), (10_000, 11_000), (9_000, 18_000)] {
            baseline.add(&mut [b; 100]);
            subject.add(&mut [s; 100]);
        }
        let [best, median, p99] = subject.times_us();
        assert_eq!(best, 10.0);
        assert!((median - 11.0).abs() < 0.02 && (p99 - 18.0).abs() < 0.02, "{median} {p99}");
        assert_eq!(subject.spread_us(), [18.0, 11.0, 10.0]);
        let ratio = subject.over(&baseline);
        assert_eq!((ratio.of_bests, ratio.median, ratio.min, ratio.max), (1.25, 1.25, 1.1, 2.0));
        assert!((ratio.of_medians - 11.0 / 9.0).abs() < 0.01, "{ratio:?}");
        let mut batches = Repeated::new(100);
        batches.add(&mut [100_000; 10]);
        assert_eq!(batches.times_us()[0], 1.0);
    }
}
