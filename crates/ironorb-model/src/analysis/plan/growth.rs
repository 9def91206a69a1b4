//! What breaks first when load grows.

use super::{Target, with_load};
use crate::Observations;
use crate::analysis::bounds::{Saturation, saturations};
use crate::analysis::demands::demands;
use crate::scenario::{Arrivals, Scenario};

use super::search::SearchError;

/// What happens when the load of all classes grows alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Which resources are full first, by their demands.
    pub by_bounds: Vec<Saturation>,
    /// What was simulated just below the load at which the first one is full; `None` if that has too many clients to simulate.
    pub simulated: Option<SimulatedLoad>,
    /// The load up to which the targets are kept, and from which they are not, as so many times the scenario's. The second
    /// one is `None` if they were kept as far as was looked.
    pub kept_up_to: (f64, Option<f64>),
}

/// How busy resources are at a load.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedLoad {
    /// The load, as so many times the scenario's.
    pub factor: f64,
    /// Resources and the busy part of their time, the busiest first.
    pub busiest: Vec<(String, f64)>,
}

impl Growth {
    /// Whether the simulation found the resource busiest that the demands name first, or one that is full at nearly the same
    /// load.
    ///
    /// Threads and locks are full as soon as what they wait for is: they count only where their demands name them first. But where
    /// the others are not busy, the threads wait for each other, and break before.
    pub fn is_confirmed(&self) -> bool {
        let (Some(seen), Some(first)) = (&self.simulated, self.by_bounds.first()) else { return false };
        let is_of_threads = is_held(&first.resource) || first.resource.starts_with("servants of ");
        let counts = |name: &str| is_of_threads || !is_held(name);
        let Some((busiest, part)) = seen.busiest.iter().find(|(name, _)| counts(name)) else { return false };
        if *part < BUSY {
            return false;
        }
        let is_near = |it: &&Saturation| it.factor <= first.factor * NEAR;
        self.by_bounds.iter().take_while(is_near).any(|it| is_same(busiest, &it.resource))
    }
}

/// Whether requests hold it while they wait for others.
fn is_held(resource: &str) -> bool {
    ["threads of ", "lock of ", "locked objects of "].iter().any(|start| resource.starts_with(start))
}

/// Whether a resource that a simulation reports, of one host or as a mean, is the one that demands name. What sleeps in a
/// server is as busy as its threads.
fn is_same(reported: &str, named: &str) -> bool {
    let whole = |name: &str| {
        let name = name.replace("servants of ", "threads of ");
        let name = name.split(" (mean of ").next().unwrap_or_default().to_owned();
        match (name.find('['), name.find(']')) {
            (Some(from), Some(to)) if from < to => format!("{}{}", &name[..from], &name[to + 1..]),
            _ => name,
        }
    };
    whole(reported) == whole(named)
}

/// Lets the load of a scenario that keeps its targets grow.
///
/// # Errors
/// The scenario has no demands, or a simulation fails.
pub fn growth<E>(
    scenario: &Scenario,
    targets: &[Target],
    mut simulate: impl FnMut(&Scenario) -> Result<Vec<Observations>, E>,
) -> Result<Growth, SearchError<E>> {
    let by_bounds = saturations(&demands(scenario)?);
    let mut simulated = None;
    let affordable = affordable(scenario);
    let mut most = LOOKED_AT.min(affordable);
    if let Some(first) = by_bounds.first() {
        // Open queues have a mean just below the load that fills them, and none at it.
        let factor = (first.factor * JUST_BELOW).max(1.0);
        if factor <= affordable {
            let runs = simulate(&with_load(scenario, factor)).map_err(SearchError::Simulation)?;
            simulated = Some(SimulatedLoad { factor, busiest: busiest(&runs) });
        }
        most = most.min(first.factor.max(1.0) * BEYOND);
    }
    let mut keeps = |factor: f64| -> Result<bool, SearchError<E>> {
        let runs = simulate(&with_load(scenario, factor)).map_err(SearchError::Simulation)?;
        Ok(targets.iter().all(|target| target.measured(&runs).is_some_and(|value| target.is_kept_by(value))))
    };
    let (mut kept, mut broken) = (1.0, None);
    if !keeps(most)? {
        let mut high = most;
        for _ in 0..HALVINGS {
            let between = (kept + high) / 2.0;
            match keeps(between)? {
                true => kept = between,
                false => high = between,
            }
        }
        broken = Some(high);
    } else {
        kept = most;
    }
    Ok(Growth { by_bounds, simulated, kept_up_to: (kept, broken) })
}

/// How many times the load has clients that memory and time are enough for.
fn affordable(scenario: &Scenario) -> f64 {
    let clients = scenario.classes.iter().map(|class| match class.arrivals {
        Arrivals::Closed { clients, .. } => f64::from(clients),
        Arrivals::Open { .. } | Arrivals::Trace(_) => 0.0,
    });
    (CLIENTS_MAX / clients.sum::<f64>()).max(1.0)
}

fn busiest(runs: &[Observations]) -> Vec<(String, f64)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let part = |index: usize| {
        let sum: f64 = runs.iter().filter_map(|run| run.resources.get(index)).map(|it| it.utilisation).sum();
        sum / runs.len() as f64
    };
    let mut all: Vec<(String, f64)> =
        (0..first.resources.len()).map(|index| (first.resources[index].name.clone(), part(index))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Of the load that fills a resource.
const JUST_BELOW: f64 = 0.95;
/// The busy part of a resource that is nearly full.
const BUSY: f64 = 0.75;
/// How much later than the first a resource may be full by its demands, to count as full at the same load.
const NEAR: f64 = 1.05;
/// How far beyond the load that fills a resource targets are looked at.
const BEYOND: f64 = 2.0;
/// How many times the load is looked at, where no resource is ever full.
const LOOKED_AT: f64 = 100.0;
/// The most clients of closed classes that a load is looked at with, if the scenario does not have more itself.
const CLIENTS_MAX: f64 = 1e6;
/// The load is told to a 256th of the interval.
const HALVINGS: u32 = 8;
