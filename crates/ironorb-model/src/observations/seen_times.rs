//! Times that were seen.

use hdrhistogram::Histogram;
use hdrhistogram::iterators::HistogramIterator;
use hdrhistogram::iterators::recorded::Iter;

/// Times in nanoseconds: how often each came, to three digits, and the longest one exactly.
///
/// A percentile is the longest time of its thousandth part, but no longer than the longest that came.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenTimes {
    counts: Histogram<u64>,
    longest: u64,
}

impl Default for SeenTimes {
    fn default() -> Self {
        SeenTimes { counts: histogram(), longest: 0 }
    }
}

impl SeenTimes {
    /// A time has come. Longer ones than 10 hours count as such.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts.saturating_record(ns);
        self.longest = self.longest.max(ns);
    }

    /// Takes those of another one, too.
    pub fn add(&mut self, other: &SeenTimes) {
        let added = self.counts.add(&other.counts);
        debug_assert!(added.is_ok(), "histograms of equal bounds");
        self.longest = self.longest.max(other.longest);
    }

    /// Those that are longer than a limit, as far as their three digits tell.
    pub fn beyond(&self, limit: u64) -> SeenTimes {
        let mut beyond = SeenTimes::default();
        for it in self.counts.iter_recorded() {
            let longest = it.value_iterated_to();
            if self.counts.lowest_equivalent(longest) > limit {
                let longest = longest.min(self.longest);
                // Values of a histogram of the same bounds.
                let _ = beyond.counts.record_n(longest, it.count_at_value());
                beyond.longest = longest;
            }
        }
        beyond
    }

    /// The time that so many per cent of those that came were no longer than.
    pub fn value_at_percentile(&self, percent: f64) -> u64 {
        self.counts.value_at_percentile(percent).min(self.longest)
    }

    /// The same of a part of 1.
    pub fn value_at_quantile(&self, quantile: f64) -> u64 {
        self.counts.value_at_quantile(quantile).min(self.longest)
    }

    /// The longest; zero if none came.
    pub fn max(&self) -> u64 {
        self.longest
    }

    /// The shortest, to three digits; zero if none came.
    pub fn min(&self) -> u64 {
        self.counts.min()
    }

    /// Their mean, to three digits.
    pub fn mean(&self) -> f64 {
        self.counts.mean()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.counts.reset();
        self.longest = 0;
    }

    /// Those that came, to three digits, with how often each did.
    pub(super) fn iter_recorded(&self) -> HistogramIterator<'_, u64, Iter> {
        self.counts.iter_recorded()
    }

    /// Of counts that [`iter_recorded`](Self::iter_recorded) has given. `None` if one is out of range.
    pub(super) fn of_counts(counts: &[(u64, u64)], longest: u64) -> Option<SeenTimes> {
        let mut times = SeenTimes::default();
        for (value, count) in counts {
            times.counts.record_n(*value, *count).ok()?;
        }
        times.longest = longest;
        Some(times)
    }
}

impl<'a> FromIterator<&'a SeenTimes> for SeenTimes {
    /// All of them together.
    fn from_iter<I: IntoIterator<Item = &'a SeenTimes>>(several: I) -> SeenTimes {
        let mut all = SeenTimes::default();
        several.into_iter().for_each(|times| all.add(times));
        all
    }
}

/// Up to 10 hours, to three digits.
fn histogram() -> Histogram<u64> {
    const LONGEST_NS: u64 = 36_000_000_000_000;
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds that fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_exact_and_bounds_percentiles() {
        let mut times = SeenTimes::default();
        (0..10).for_each(|_| times.record(1_000_000));
        assert_eq!((times.max(), times.value_at_percentile(99.0)), (1_000_000, 1_000_000));
        times.record(3_000_001);
        assert_eq!(times.max(), 3_000_001);
        let mut all = SeenTimes::default();
        all.add(&times);
        assert_eq!(all, times);
        let beyond = times.beyond(1_000_000);
        assert_eq!((beyond.len(), beyond.max()), (1, 3_000_001));
        assert!(times.beyond(3_000_001).is_empty());
        times.reset();
        assert_eq!(times, SeenTimes::default());
    }
}
