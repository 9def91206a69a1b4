//! Summarizes durations for the report.

use std::time::Duration;

/// Median and 99th percentile, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) median_us: f64,
    pub(super) p99_us: f64,
}

impl Summary {
    /// Percentiles by nearest rank: the smallest sample that the percentage of all samples does not exceed.
    /// NaN without samples.
    pub(super) fn of(samples: &mut [Duration]) -> Summary {
        samples.sort_unstable();
        let at_percent = |percent: usize| {
            let rank = (samples.len() * percent).div_ceil(100).max(1);
            samples.get(rank - 1).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e6)
        };
        Summary { median_us: at_percent(50), p99_us: at_percent(99) }
    }

    /// The time of one call, where each sample was `calls` calls.
    pub(super) fn per(self, calls: usize) -> Summary {
        let calls = calls as f64;
        Summary { median_us: self.median_us / calls, p99_us: self.p99_us / calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_rank() {
        let mut samples: Vec<Duration> = (1..=100).rev().map(Duration::from_micros).collect();
        let summary = Summary::of(&mut samples);
        assert!(
            (summary.median_us - 50.0).abs() < 1e-9 && (summary.p99_us - 99.0).abs() < 1e-9,
            "{summary:?}"
        );
        let one = Summary::of(&mut [Duration::from_micros(10)]).per(10);
        assert!((one.median_us - 1.0).abs() < 1e-9 && (one.p99_us - 1.0).abs() < 1e-9, "{one:?}");
        assert!(Summary::of(&mut []).median_us.is_nan());
    }
}
