//! Statistics of latencies: a percentile is only told where there are enough samples of what lies beyond it.

use crate::row::Figure;

/// Latencies of one client, or of several together, in blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// Nanoseconds, in any order.
    nanos: Vec<u64>,
    /// The mean of each block in microseconds.
    means_us: Vec<f64>,
}

/// A percentile: its name, and how many samples there are for each one beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percentile(pub(crate) &'static str, pub(crate) usize);

/// What is told of latencies.
pub(crate) const PERCENTILES: [Percentile; 5] = [
    Percentile("p50_us", 2),
    Percentile("p90_us", 10),
    Percentile("p99_us", 100),
    Percentile("p99_9_us", 1_000),
    Percentile("p99_99_us", 10_000),
];

impl Percentile {
    /// Fewest samples: of each percentile a hundred lie beyond it.
    pub(crate) fn samples_min(self) -> usize {
        100 * self.1
    }
}

impl Samples {
    /// Adds the latencies of a block.
    pub(crate) fn add_block(&mut self, nanos: impl Iterator<Item = u64>) {
        let before = self.nanos.len();
        self.nanos.extend(nanos);
        let block = &self.nanos[before..];
        self.means_us.push(mean(block.iter().map(|nanos| us(*nanos))));
    }

    pub(crate) fn count(&self) -> usize {
        self.nanos.len()
    }

    pub(crate) fn mean_us(&self) -> f64 {
        mean(self.nanos.iter().map(|nanos| us(*nanos)))
    }

    /// The standard deviation; the paper calls it jitter.
    pub(crate) fn deviation_us(&self) -> f64 {
        deviation(self.nanos.iter().map(|nanos| us(*nanos)))
    }

    pub(crate) fn max_us(&self) -> f64 {
        self.nanos.iter().max().map_or(f64::NAN, |nanos| us(*nanos))
    }

    /// The mean of each block.
    pub(crate) fn means_us(&self) -> &[f64] {
        &self.means_us
    }

    /// The percentile, or how many samples it needs.
    pub(crate) fn at(&mut self, percentile: Percentile) -> Figure {
        let needed = percentile.samples_min();
        if self.nanos.len() < needed {
            return Figure::TooFew { needed };
        }
        let beyond = self.nanos.len() / percentile.1;
        let place = self.nanos.len() - 1 - beyond;
        let (_, nanos, _) = self.nanos.select_nth_unstable(place);
        Figure::Number(us(*nanos))
    }
}

fn us(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// The mean; not a number without numbers.
pub(crate) fn mean(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    numbers.clone().sum::<f64>() / numbers.count() as f64
}

/// The standard deviation of a sample; 0 for a single number.
pub(crate) fn deviation(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let (mean, count) = (mean(numbers.clone()), numbers.clone().count());
    let squares = numbers.map(|number| (number - mean).powi(2)).sum::<f64>();
    (squares / count.saturating_sub(1).max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Samples {
        let mut samples = Samples::default();
        // In no order: 7 shares no factor with these counts.
        samples.add_block((0..count).map(|number| (number * 7 % count + 1) * 1_000));
        samples
    }

    #[test]
    fn a_percentile_needs_a_hundred_samples_beyond_it() {
        let [p50, p90, p99, p999, p9999] = PERCENTILES;
        let needed = [p50, p90, p99, p999, p9999].map(Percentile::samples_min);
        assert_eq!(needed, [200, 1_000, 10_000, 100_000, 1_000_000]);
        let mut few = samples(9_999);
        assert_eq!(few.at(p99), Figure::TooFew { needed: 10_000 });
        let mut enough = samples(10_000);
        assert_eq!(enough.at(p99), Figure::Number(9_900.0));
        assert_eq!(enough.at(p90), Figure::Number(9_000.0));
        assert_eq!(enough.at(p50), Figure::Number(5_000.0));
        assert_eq!(enough.at(p999), Figure::TooFew { needed: 100_000 });
        assert_eq!(Samples::default().at(p50), Figure::TooFew { needed: 200 });
    }

    #[test]
    fn means_and_deviations_are_those_of_all_blocks() {
        let mut samples = Samples::default();
        samples.add_block([2_000, 4_000].into_iter());
        samples.add_block([4_000, 4_000, 5_000, 5_000, 7_000, 9_000].into_iter());
        assert_eq!((samples.count(), samples.mean_us(), samples.max_us()), (8, 5.0, 9.0));
        assert!((samples.deviation_us() - (32f64 / 7.0).sqrt()).abs() < 1e-9);
        assert_eq!(samples.means_us()[0], 3.0);
        assert_eq!(deviation([3.0].into_iter()), 0.0);
        assert!(Samples::default().mean_us().is_nan());
    }
}
