//! How long a call takes.

use std::time::{Duration, Instant};

use ironorb::dynamic::{DynamicError, Request, Results};

use crate::output;

/// Most calls that one command times. It keeps their durations: 16 MB at worst.
pub(super) const CALLS_MAX: i64 = 1_000_000;

/// Calls `calls` times, at least once, and prints how long the calls took. Ends with the first call that
/// fails.
pub(super) fn repeat(request: &mut Request<'_>, calls: u32) -> Result<Results, DynamicError> {
    let mut times = Vec::with_capacity(calls as usize);
    loop {
        let begun = Instant::now();
        let results = request.invoke()?;
        times.push(begun.elapsed());
        if times.len() >= calls as usize {
            output::note(summary(times));
            return Ok(results);
        }
    }
}

/// A summary of the durations. The first call is shown apart, because it may include connecting.
fn summary(mut times: Vec<Duration>) -> String {
    let first = times[0];
    let count = times.len();
    times.sort_unstable();
    // The nearest rank: the smallest duration that this percentage of the calls did not exceed.
    let percentile = |percent: usize| shown(times[(count * percent).div_ceil(100).max(1) - 1]);
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "{count} call{plural}: min {}, median {}, p99 {} (the first {})",
        shown(times[0]),
        percentile(50),
        percentile(99),
        shown(first)
    )
}

fn shown(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        ..1e4 => format!("{us:.1} us"),
        ..1e7 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.1} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up_by_nearest_rank() {
        let ms = |numbers: &[u64]| numbers.iter().map(|ms| Duration::from_millis(*ms)).collect();
        assert_eq!(
            summary(ms(&[70])),
            "1 call: min 70.0 ms, median 70.0 ms, p99 70.0 ms (the first 70.0 ms)"
        );
        assert_eq!(
            summary(ms(&[40, 1, 30, 20_000])),
            "4 calls: min 1000.0 us, median 30.0 ms, p99 20.0 s (the first 40.0 ms)"
        );
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(
            summary(ms(&hundred)),
            "100 calls: min 1000.0 us, median 50.0 ms, p99 99.0 ms (the first 100.0 ms)"
        );
    }
}
