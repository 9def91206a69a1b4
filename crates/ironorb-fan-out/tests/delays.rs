//! When a hedge pays.

use std::time::Duration;

use fastrand::Rng;
use ironorb_fan_out::{FLOOR, Latencies, SAMPLES_KEPT, SAMPLES_MIN};

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn without_floor(samples: impl IntoIterator<Item = Duration>) -> Latencies {
    let mut latencies = Latencies::new(Duration::ZERO);
    samples.into_iter().for_each(|sample| latencies.record(sample));
    latencies
}

#[test]
fn there_is_no_delay_before_there_are_enough_samples() {
    let mut latencies = without_floor((1..SAMPLES_MIN).map(|_| micros(500)));
    assert_eq!(latencies.hedge_after(), None);
    latencies.record(micros(500));
    assert!(latencies.hedge_after().is_some());
}

#[test]
fn no_delay_is_below_the_floor() {
    let mut latencies = Latencies::default();
    (0..SAMPLES_MIN).for_each(|_| latencies.record(micros(50)));
    assert_eq!(latencies.hedge_after(), Some(FLOOR));
}

/// At most one in 32 longer than the 97th percentile, and never shorter.
#[test]
fn the_delay_is_at_or_just_above_the_97th_percentile() {
    let mut rng = Rng::with_seed(97);
    for _ in 0..500 {
        let number = rng.usize(SAMPLES_MIN as usize..=SAMPLES_KEPT as usize);
        let most = 1 << rng.u32(1..27);
        let mut samples: Vec<Duration> = (0..number).map(|_| micros(rng.u64(1..=most))).collect();
        let delay = without_floor(samples.iter().copied()).hedge_after().expect("there are enough");
        samples.sort();
        let percentile = samples[number - 1 - number * 3 / 100];
        assert!(delay >= percentile, "{delay:?} is below {percentile:?}");
        assert!(
            delay <= percentile + percentile / 32 + Duration::from_nanos(128),
            "{delay:?} above {percentile:?}"
        );
    }
}

#[test]
fn one_straggler_in_a_hundred_does_not_move_the_delay() {
    let with_stragglers =
        (0..1_000).map(|sample| if sample % 100 == 0 { micros(100_000) } else { micros(1_000) });
    let delay = without_floor(with_stragglers).hedge_after().expect("there are enough");
    assert!(delay < micros(1_050), "{delay:?}");
}

#[test]
fn old_samples_leave() {
    let mut latencies = without_floor((0..2 * SAMPLES_KEPT).map(|_| micros(80_000)));
    assert!(latencies.samples() <= 2 * SAMPLES_KEPT);
    (0..2 * SAMPLES_KEPT).for_each(|_| latencies.record(micros(2_000)));
    assert!(latencies.hedge_after().expect("there are enough") < micros(2_100));
    assert!(latencies.samples() >= SAMPLES_KEPT && latencies.samples() <= 2 * SAMPLES_KEPT);
}

/// No request is sent again after minutes.
#[test]
fn calls_that_take_longer_than_all_delays_have_none() {
    assert_eq!(without_floor((0..SAMPLES_MIN).map(|_| Duration::from_secs(200))).hedge_after(), None);
    assert_eq!(without_floor((0..SAMPLES_MIN).map(|_| Duration::MAX)).hedge_after(), None);
}

/// The share of calls that have hedges, if at each server one call in 16 takes from 50 to 150 ms, and the others from 1 to 2 ms.
fn share_with_hedges(records_those_that_lose: bool) -> f64 {
    let mut rng = Rng::with_seed(3);
    let mut latencies = Latencies::default();
    let calls = 100_000;
    let mut hedges = 0;
    for _ in 0..calls {
        let [first, hedge] = [0, 1].map(|_| match rng.u32(0..16) {
            0 => micros(rng.u64(50_000..150_000)),
            _ => micros(rng.u64(1_000..2_000)),
        });
        match latencies.hedge_after().filter(|delay| *delay < first) {
            Some(delay) => {
                hedges += 1;
                if first <= delay + hedge || records_those_that_lose {
                    latencies.record(first.min(delay + hedge));
                }
            }
            None => latencies.record(first),
        }
    }
    f64::from(hedges) / f64::from(calls)
}

#[test]
fn about_three_calls_in_a_hundred_have_hedges_where_those_that_lose_are_recorded() {
    let share = share_with_hedges(true);
    assert!((0.025..=0.04).contains(&share), "{share}");
    let share = share_with_hedges(false);
    assert!(share > 0.05, "without them the slowest are missing, and the delay sinks: {share}");
}
