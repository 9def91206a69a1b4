//! The search for the cheapest combination.

use std::fmt;

use super::{Change, NoTarget, Target};
use crate::Observations;
use crate::analysis::demands::{Recursion, demands};
use crate::scenario::{CORES_MAX, Scenario};

/// How long a search may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most combinations: 1 to 1,000,000.
    pub combinations_max: usize,
    /// The most combinations that are simulated.
    pub simulations_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { combinations_max: 1_000_000, simulations_max: 200 }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The number of combinations that there are.
    pub combinations: usize,
    /// Those that were looked at, the cheapest first. The last one keeps the target if [`found`](Self::found) is true.
    pub tried: Vec<Tried>,
    /// Whether the last one keeps the target.
    pub found: bool,
    /// Whether the search ended because it had simulated as much as it may.
    pub is_cut_short: bool,
}

/// A combination that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// By change: the index of its choice.
    pub choices: Vec<usize>,
    /// The sum of the choices' costs.
    pub cost: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a combination.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Its bounds exclude it: why.
    Excluded(String),
    /// It was simulated. By target: the value, if any cycle ended, and whether that keeps the target.
    Simulated(Vec<(Option<f64>, bool)>),
    /// Its simulation could not go on, so that it keeps no target: why.
    Stopped(String),
}

/// Why a search cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SearchError<E> {
    /// There are too many combinations.
    #[error(
        "{0} combinations are more than a search tries: write fewer `values` under `[[plan.changes]]`, or split the plan, so that \
         some of its changes are chosen before the others"
    )]
    TooMany(usize),
    /// The scenario has no demands.
    #[error(transparent)]
    Recursion(#[from] Recursion),
    /// A target is of something that the scenario does not have.
    #[error(transparent)]
    Target(#[from] NoTarget),
    /// A simulation failed.
    #[error("{0}")]
    Simulation(E),
}

/// Tries combinations, the cheapest first, until one keeps all targets. Of equal costs the earlier choices come first, so
/// that the result depends on nothing but what is passed. One whose simulation fails keeps no target, and dearer ones are tried.
///
/// # Errors
/// There are too many combinations, or the scenario has no demands or nothing that a target is of.
pub fn search<E: fmt::Display>(
    scenario: &Scenario,
    changes: &[Change],
    targets: &[Target],
    limits: Limits,
    mut simulate: impl FnMut(&Scenario) -> Result<Vec<Observations>, E>,
) -> Result<Outcome, SearchError<E>> {
    let combinations =
        changes.iter().fold(1_usize, |count, change| count.saturating_mul(change.choices.len()));
    if combinations > limits.combinations_max {
        return Err(SearchError::TooMany(combinations));
    }
    targets.iter().try_for_each(|target| target.check(scenario))?;
    let mut outcome = Outcome { combinations, tried: Vec::new(), found: false, is_cut_short: false };
    let mut simulated = 0;
    for (cost, choices) in by_cost(changes, combinations) {
        let candidate = chosen(scenario, changes, &choices);
        let demanded = demands(&candidate)?;
        let processors = candidate.processors();
        let too_many = (processors > CORES_MAX)
            .then(|| format!("it has {processors} processors, and a scenario has {CORES_MAX} at most"));
        let excluded = targets.iter().find_map(|target| target.excluded_by(&demanded));
        if let Some(why) = too_many.or(excluded) {
            outcome.tried.push(Tried { choices, cost, verdict: Verdict::Excluded(why) });
            continue;
        }
        if simulated == limits.simulations_max {
            outcome.is_cut_short = true;
            break;
        }
        simulated += 1;
        let runs = match simulate(&candidate) {
            Ok(runs) => runs,
            Err(why) => {
                outcome.tried.push(Tried { choices, cost, verdict: Verdict::Stopped(why.to_string()) });
                continue;
            }
        };
        targets.iter().try_for_each(|target| target.check_resources(&runs))?;
        let values: Vec<(Option<f64>, bool)> = targets
            .iter()
            .map(|target| {
                let value = target.measured(&runs);
                (value, value.is_some_and(|value| target.is_kept_by(value)))
            })
            .collect();
        outcome.found = values.iter().all(|(_, is_kept)| *is_kept);
        outcome.tried.push(Tried { choices, cost, verdict: Verdict::Simulated(values) });
        if outcome.found {
            break;
        }
    }
    Ok(outcome)
}

/// The scenario with one choice of each change.
pub(super) fn chosen(scenario: &Scenario, changes: &[Change], choices: &[usize]) -> Scenario {
    let mut candidate = scenario.clone();
    for (change, choice) in changes.iter().zip(choices) {
        change.choices[*choice].setting.apply(&mut candidate);
    }
    candidate
}

fn by_cost(changes: &[Change], combinations: usize) -> Vec<(f64, Vec<usize>)> {
    let mut all: Vec<(f64, Vec<usize>)> = (0..combinations)
        .map(|number| {
            let mut rest = number;
            let mut choices = vec![0; changes.len()];
            for (choice, change) in choices.iter_mut().zip(changes).rev() {
                *choice = rest % change.choices.len();
                rest /= change.choices.len();
            }
            let costs = changes.iter().zip(&choices).map(|(change, choice)| change.choices[*choice].cost);
            // The sum of no numbers is -0.
            let cost = costs.sum::<f64>() + 0.0;
            (cost, choices)
        })
        .collect();
    // Stable: those of equal cost stay in the order of their choices.
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

impl Outcome {
    /// The scenario that keeps the targets, if one was found.
    pub fn best(&self, scenario: &Scenario, changes: &[Change]) -> Option<Scenario> {
        let last = self.tried.last().filter(|_| self.found)?;
        Some(chosen(scenario, changes, &last.choices))
    }
}
