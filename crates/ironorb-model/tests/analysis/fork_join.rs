//! Jobs that fork and join, beside Markov chains of the same stations.

use std::time::Duration;

use ironorb_model::analysis::fork_join::{Closed, Open, Part, harmonic, mean_of_longest};
use ironorb_model::scenario::Spread;

use super::chains::{assert_near, mean, stationary};

fn exponential(ms: u64) -> Part {
    Part { fixed: 0.0, spread: Spread::Exponential(Duration::from_millis(ms)) }
}

fn fixed(ms: u64) -> Part {
    Part { fixed: 0.0, spread: Spread::Fixed(Duration::from_millis(ms)) }
}

#[test]
fn the_longest_of_several_is_known() {
    assert_near(mean_of_longest(&[fixed(50), fixed(55)]), 0.055, 1e-9);
    for n in 1..=5 {
        assert_near(mean_of_longest(&vec![exponential(10); n]), 0.010 * harmonic(n), 1e-6);
    }
    // 1/a + 1/b - 1/(a + b)
    let two = 0.050 + 0.055 - 1.0 / (1.0 / 0.050 + 1.0 / 0.055);
    assert_near(mean_of_longest(&[exponential(50), exponential(55)]), two, 1e-6);
    // A certain time and a varying one: t + m e^(-t/m).
    assert_near(mean_of_longest(&[fixed(20), exponential(10)]), 0.020 + 0.010 * (-2.0_f64).exp(), 1e-6);
    let even = Spread::Uniform(Duration::ZERO, Duration::from_millis(30));
    let even = Part { fixed: 0.002, spread: even };
    assert_near(mean_of_longest(&[even.clone(), even]), 0.022, 1e-6);
    let samples = Part {
        fixed: 0.0,
        spread: Spread::Samples(vec![Duration::from_millis(10), Duration::from_millis(30)]),
    };
    assert_near(mean_of_longest(&[samples.clone(), samples]), 0.025, 1e-6);
}

/// Jobs a second of customers that think, and whose parts queue in order of arrival with exponential times. A job has left
/// when its last part has: as many jobs are there as there are parts at the fullest station.
fn jobs_of_chain(customers: u32, think: f64, parts: &[f64]) -> f64 {
    let there = |state: &Vec<u32>| state.iter().copied().max().unwrap_or(0);
    let probabilities = stationary(vec![0_u32; parts.len()], |state| {
        let idle = customers - there(state);
        let mut next = vec![(state.iter().map(|n| n + 1).collect::<Vec<_>>(), f64::from(idle) / think)];
        next.retain(|_| idle > 0);
        for (k, seconds) in parts.iter().enumerate().filter(|(k, _)| state[*k] > 0) {
            let mut to = state.clone();
            to[k] -= 1;
            next.push((to, 1.0 / seconds));
        }
        next
    });
    mean(&probabilities, |state| f64::from(customers - there(state)) / think)
}

#[test]
fn closed_jobs_are_within_their_bounds_and_near_their_estimate() {
    let mut worst = 0.0_f64;
    for parts in [vec![50, 55], vec![50, 50, 50], vec![20, 80]] {
        for customers in [1, 2, 4, 8] {
            for think in [0.001, 0.1] {
                let seconds: Vec<f64> = parts.iter().map(|ms| *ms as f64 / 1e3).collect();
                let exact = jobs_of_chain(customers, think, &seconds);
                let most_demanded = seconds.iter().copied().fold(0.0, f64::max);
                let parts = parts.iter().map(|ms| exponential(*ms)).collect();
                let closed = Closed { customers, think, around: 0.0, parts, most_demanded };
                let (throughput, response) = closed.bounds();
                let slack = 1.0 + 1e-6;
                assert!(
                    throughput.lower <= exact * slack && exact <= throughput.upper * slack,
                    "{closed:?} {exact}"
                );
                let exact_response = f64::from(customers) / exact - think;
                assert!(
                    response.lower <= exact_response * slack && exact_response <= response.upper * slack,
                    "{closed:?}"
                );
                worst = worst.max((closed.estimate().0 / exact - 1.0).abs());
            }
        }
    }
    assert!(worst < 0.03, "{worst}");
}

#[test]
fn the_bounds_of_fixed_parts_are_those_of_the_longest() {
    let parts = vec![fixed(50), fixed(55)];
    let one =
        Closed { customers: 1, think: 0.0, around: 0.0, parts: parts.clone(), most_demanded: 0.055 / 2.0 };
    let (throughput, response) = one.bounds();
    assert_near(response.lower, 0.055, 1e-9);
    assert_near(response.upper, 0.055, 1e-9);
    assert_near(throughput.upper, 1.0 / 0.055, 1e-9);
    // Ten customers who alternate between two pairs of stations.
    let ten = Closed { customers: 10, ..one };
    let (throughput, response) = ten.bounds();
    assert_near(throughput.upper, 2.0 / 0.055, 1e-9);
    assert_near(response.upper, 0.55, 1e-9);
    let unknown = vec![Part { fixed: 0.0, spread: Spread::Samples(vec![Duration::from_millis(5)]) }];
    assert_eq!(Closed { parts: unknown, ..ten }.bounds().1.upper, f64::INFINITY);
}

#[test]
fn open_jobs_of_two_parts_are_exact_and_others_between_their_bounds() {
    for rate in [2.0, 5.0, 8.0] {
        for parts in [vec![0.1, 0.1], vec![0.1, 0.05]] {
            let most = 90;
            let probabilities = stationary((0_u32, 0_u32), |&(a, b)| {
                let mut next = vec![((a + 1, b + 1), rate)];
                next.retain(|((a, b), _)| *a.max(b) <= most);
                if a > 0 {
                    next.push(((a - 1, b), 1.0 / parts[0]));
                }
                if b > 0 {
                    next.push(((a, b - 1), 1.0 / parts[1]));
                }
                next
            });
            let exact = mean(&probabilities, |(a, b)| f64::from(*a.max(b))) / rate;
            let open = Open { rate, parts: parts.clone() };
            let bounds = open.bounds();
            assert!(bounds.lower < exact && exact < bounds.upper, "{open:?} {exact} {bounds:?}");
            if let Some(estimate) = open.estimate() {
                assert_near(estimate, exact, 1e-4);
            }
        }
    }
    let many = Open { rate: 5.0, parts: vec![0.1; 8] };
    let (bounds, estimate) = (many.bounds(), many.estimate().unwrap());
    assert!(bounds.lower < estimate && estimate < bounds.upper, "{bounds:?} {estimate}");
    assert_eq!(Open { rate: 11.0, parts: vec![0.1; 2] }.bounds().upper, f64::INFINITY);
}
