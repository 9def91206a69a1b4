//! Stationary probabilities of small Markov chains, by brute force.

use std::collections::BTreeMap;

/// The probabilities of all states that are reached from one.
pub(super) fn stationary<S: Ord + Clone>(start: S, leaves: impl Fn(&S) -> Vec<(S, f64)>) -> Vec<(S, f64)> {
    let mut numbers = BTreeMap::from([(start.clone(), 0_usize)]);
    let mut states = vec![start];
    let mut enters: Vec<Vec<(usize, f64)>> = vec![Vec::new()];
    let mut rates = Vec::new();
    while rates.len() < states.len() {
        let from = rates.len();
        let mut rate = 0.0;
        let mut next = leaves(&states[from]);
        next.retain(|(to, at)| *at > 0.0 && *to != states[from]);
        for (to, at) in next {
            let number = *numbers.entry(to.clone()).or_insert_with(|| {
                states.push(to);
                enters.push(Vec::new());
                states.len() - 1
            });
            enters[number].push((from, at));
            rate += at;
        }
        rates.push(rate);
    }
    let mut probabilities = vec![1.0 / states.len() as f64; states.len()];
    for _ in 0..200_000 {
        let mut moved = 0.0_f64;
        for (state, from) in enters.iter().enumerate() {
            let inflow: f64 = from.iter().map(|(from, at)| probabilities[*from] * at).sum();
            let new = inflow / rates[state];
            moved = moved.max((new - probabilities[state]).abs());
            probabilities[state] = new;
        }
        let sum: f64 = probabilities.iter().sum();
        probabilities.iter_mut().for_each(|it| *it /= sum);
        if moved < 1e-14 {
            break;
        }
    }
    states.into_iter().zip(probabilities).collect()
}

/// The mean of a function of the state.
pub(super) fn mean<S>(probabilities: &[(S, f64)], of: impl Fn(&S) -> f64) -> f64 {
    probabilities.iter().map(|(state, probability)| of(state) * probability).sum()
}

/// Whether two numbers are equal but for so small a part.
#[track_caller]
pub(super) fn assert_near(left: f64, right: f64, part: f64) {
    let difference = (left - right).abs();
    assert!(difference <= part * right.abs().max(1e-300), "{left} is not {right}: {}", difference / right);
}
