//! Scenarios of what suites measure, and what they show at level L0.

use std::time::Duration;

use ironorb_model::profile::{Placement, Profile, Situation};
use ironorb_model::report::{Experiment, experiment};
use ironorb_model::scenario::{
    Arrivals, Call, Choice, Class, Cycle, DEFAULT_LINK, DwellTimes, HostGroup, Operation, OperationKind,
    Replications, Scenario, Server, ServerLock, Spread, Target, WarmUp, Weighted,
};
use ironorb_model::{queueing, report::RunOrder};

use crate::error::BenchError;
use crate::machine::ONE_CORE;

/// What a class of a scenario has seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// The mean response of a cycle, in seconds.
    pub(super) mean: f64,
    /// Its 99th percentile, in seconds.
    pub(super) p99: f64,
    /// Cycles a second.
    pub(super) rate: f64,
}

/// Simulates a scenario, and gives what each class has seen.
pub(super) fn simulate(scenario: &Scenario) -> Result<Vec<Seen>, BenchError> {
    let run = |order: RunOrder| queueing::run(scenario, order.seed, order.warm_up);
    let experiment: Experiment = experiment(scenario, run)
        .map_err(|e| BenchError::Unusable(format!("the simulation of {}: {e}", scenario.name)))?;
    let runs = experiment.runs.len().max(1) as f64;
    let of_class = |class: usize| {
        let seen = experiment.runs.iter().map(|run| (&run.classes[class], run.span.as_secs_f64()));
        let p99 = seen.clone().map(|(seen, _)| seen.response.value_at_quantile(0.99) as f64 / 1e9);
        let rate = seen.clone().map(|(seen, span)| seen.completed as f64 / span);
        let [count, sum] = seen.fold([0.0, 0.0], |[count, sum], (seen, _)| {
            [count + seen.completed as f64, sum + seen.response_ns as f64 / 1e9]
        });
        Seen { mean: sum / count, p99: p99.sum::<f64>() / runs, rate: rate.sum::<f64>() / runs }
    };
    Ok((0..scenario.classes.len()).map(of_class).collect())
}

/// A scenario of nothing yet.
pub(super) fn empty(name: &str, dwell: DwellTimes, span: Duration) -> Scenario {
    Scenario {
        name: name.to_owned(),
        seed: 1,
        span,
        warm_up: WarmUp::Fixed(span / 20),
        replications: Replications { min: 3, max: 3, ..Replications::default() },
        hosts: Vec::new(),
        links: Vec::new(),
        default_link: DEFAULT_LINK,
        servers: Vec::new(),
        classes: Vec::new(),
        dwell,
    }
}

pub(super) fn host(name: &str, cores: u32) -> HostGroup {
    HostGroup { name: name.to_owned(), count: 1, cores, switch_time: Duration::ZERO, speed: 1.0 }
}

pub(super) fn server(name: &str, hosts: usize, threads: Option<u32>, operations: Vec<Operation>) -> Server {
    Server {
        name: name.to_owned(),
        hosts,
        threads,
        lanes: Vec::new(),
        objects: 1,
        object_octets: 4,
        lock: ServerLock::None,
        operations,
    }
}

pub(super) fn operation(name: &str, request_octets: u32, reply_octets: u32) -> Operation {
    Operation {
        name: name.to_owned(),
        kind: OperationKind::Plain,
        request_octets,
        reply_octets,
        is_oneway: false,
        demand: Spread::Fixed(Duration::ZERO),
        sleeps: false,
        calls: Vec::new(),
    }
}

/// Clients that begin a cycle as soon as the last one has ended.
pub(super) fn clients(name: &str, hosts: usize, clients: u32, mix: Vec<Weighted>) -> Class {
    Class {
        name: name.to_owned(),
        hosts,
        arrivals: Arrivals::Closed { clients, think: Spread::Fixed(Duration::ZERO) },
        mix,
        choice: Choice::Random,
        priority: None,
        cache: None,
    }
}

/// A cycle of one call.
pub(super) fn one_call(server: usize, operation: usize, weight: f64) -> Weighted {
    let call = Call { server, operation, times: 1, target: Target::Random };
    Weighted { weight, cycle: Cycle::Calls(vec![call]) }
}

/// The placement of a layout of the suites.
pub(super) fn placement(layout: &str) -> Placement {
    if layout == ONE_CORE { Placement::OneCore } else { Placement::CoreEach }
}

/// The hosts of a placement: one processor for both sides, or two.
pub(super) fn machine(placement: Placement) -> HostGroup {
    host("machine", if placement == Placement::OneCore { 1 } else { 2 })
}

pub(super) fn dwell(profile: &Profile, situation: &Situation) -> Result<DwellTimes, BenchError> {
    profile.dwell(situation).map_err(|e| BenchError::Unusable(e.to_string()))
}

/// One client that makes one call after another, of one operation.
pub(super) fn calls(
    profile: &Profile,
    situation: &Situation,
    (request_octets, reply_octets): (u32, u32),
) -> Result<Seen, BenchError> {
    let mut scenario = empty("calls", dwell(profile, situation)?, Duration::from_millis(500));
    scenario.hosts = vec![machine(situation.placement)];
    scenario.servers =
        vec![server("server", 0, Some(1), vec![operation("call", request_octets, reply_octets)])];
    scenario.classes = vec![clients("client", 0, 1, vec![one_call(0, 0, 1.0)])];
    simulate(&scenario)?.pop().ok_or_else(|| BenchError::Unusable("no class was simulated".to_owned()))
}
