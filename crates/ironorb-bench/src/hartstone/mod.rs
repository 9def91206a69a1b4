//! `ironorb bench hartstone`: how much of a processor periodic calls can use before one misses its deadline (Distributed
//! Hartstone: Mercer, Ishikawa and Tokuda, 1990; PolyORB has a benchmark after it).
//!
//! Clients call servants with a lane each; the shorter the period, the higher the priority (rate-monotonic). The load grows in
//! steps until the answer to a call comes after the end of its period. What the servants had used in the last step without a
//! miss is the breakdown utilization.

mod series;

use std::time::Duration;

use crate::error::BenchError;
use crate::machine::{on_one_core, steal};
use crate::options::Run;
use crate::paced::class::Class;
use crate::paced::participant::Participant;
use crate::paced::setup::{Kind, Setup, Way};
use crate::paced::task::{Block, Served};
use crate::render::{Report, Table};
use crate::row::{Figure, Row, parameters};
use crate::samples::{deviation, mean};
use crate::variant::name;
use series::{Experiment, SERVANTS_MAX, Step, TaskSet};

/// `ironorb bench hartstone`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HartstoneOptions {
    /// The sets of tasks.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [TaskSet::Harmonic, TaskSet::NonHarmonic])]
    pub(crate) sets: Vec<TaskSet>,
    /// What grows in each step.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Experiment::Work, Experiment::Rates])]
    pub(crate) experiments: Vec<Experiment>,
    /// Who takes part.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Kind::Lanes, Kind::Shared, Kind::Twin])]
    pub(crate) sides: Vec<Kind>,
    /// The scheduling class of clients and servants.
    #[arg(long, value_enum, default_value_t = Class::Fifo)]
    pub(crate) class: Class,
    /// The transport between clients and servants.
    #[arg(long, value_enum, default_value_t = Way::Tcp)]
    pub(crate) transport: Way,
    /// Seconds of each step: twice the longest period at first.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "Clients and servants share one processor. utilization: what the servants used of it in the last step in which every call was answered\n\
    within its period, per cent, without what calls cost; mean and deviation of repetitions. steps: how many such steps there were.\n\
    twin: plain sockets with the same threads and priorities; shared: one thread serves all. In the paper's experiments the load\n\
    grows by a higher rate of the fastest task, by higher rates of all, by more work in each call, or by more tasks. bound: what\n\
    rate-monotonic analysis guarantees to this set of periods: 100 for harmonic periods, else n(2^(1/n) - 1).";

/// Runs `ironorb bench hartstone`.
pub(crate) fn measure(options: &HartstoneOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("hartstone", "breakdown utilization of periodic calls", &options.run);
    let mut sides = options.sides.iter().map(|&kind| start(kind, options)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for &set in &options.sets {
        for &experiment in &options.experiments {
            rows.extend(one(set, experiment, &mut sides, options)?);
        }
    }
    let table = Table::new("row", "breakdown utilization of one processor, per cent", rows);
    report.tables.push(table.blocks(&["layout"]).notes(NOTES));
    Ok(report)
}

fn start(kind: Kind, options: &HartstoneOptions) -> Result<(Kind, Participant), BenchError> {
    let setup = Setup { kind, way: options.transport, class: options.class, servants: SERVANTS_MAX };
    Ok((kind, on_one_core(|| Participant::start(setup))?))
}

/// How far a side got in the repetitions of an experiment.
#[derive(Debug, Default)]
struct Breakdowns {
    utilizations: Vec<f64>,
    steps: Vec<f64>,
}

fn one(
    set: TaskSet,
    experiment: Experiment,
    sides: &mut [(Kind, Participant)],
    options: &HartstoneOptions,
) -> Result<Vec<Row>, BenchError> {
    crate::note(format_args!("measuring {}, {}", name(set), name(experiment)));
    let mut found: Vec<Breakdowns> = sides.iter().map(|_| Breakdowns::default()).collect();
    let steal_before = steal();
    let length = Duration::from_secs_f64(options.run.choose(0.1, options.seconds.max(0.5)));
    // A quick run shows one step, and takes a hundredth of the time.
    let (hurry, steps_max) = options.run.choose((100.0, 1), (1.0, usize::MAX));
    for _ in 0..options.run.repetitions(2) {
        for ((_, participant), found) in sides.iter_mut().zip(&mut found) {
            let run = |block: &Block| participant.run(block);
            let (utilization, steps) = breakdown(set, experiment, length, (hurry, steps_max), run)?;
            found.utilizations.push(utilization * 100.0);
            found.steps.push(steps as f64);
        }
    }
    let steal_ms = (steal() - steal_before).as_secs_f64() * 1e3;
    let row = |((kind, _), found): (&(Kind, Participant), Breakdowns)| {
        let of = parameters![
            layout = format!("one core, {}, {}", name(options.transport), name(options.class)),
            set = name(set),
            experiment = name(experiment),
            side = name(*kind),
        ];
        let figure = |name: &str, number| (name.to_owned(), Figure::Number(number));
        let numbers = || found.utilizations.iter().copied();
        let figures = vec![
            figure("utilization", mean(numbers())),
            figure("sd", deviation(numbers())),
            figure("steps", mean(found.steps.iter().copied())),
            figure("bound", 100.0 * set.guaranteed()),
            figure("steal_ms", steal_ms),
        ];
        Row { parameters: of, outcome: Ok(figures) }
    };
    Ok(sides.iter().zip(found).map(row).collect())
}

/// Runs step after step until a call misses its deadline. Returns the utilization of the last step without a miss, and how
/// many there were.
fn breakdown(
    set: TaskSet,
    experiment: Experiment,
    length: Duration,
    (hurry, steps_max): (f64, usize),
    mut run: impl FnMut(&Block) -> Result<Vec<Served>, BenchError>,
) -> Result<(f64, usize), BenchError> {
    let mut reached = (0.0, 0);
    for number in 0..steps_max {
        let step = Step::new(set, experiment, number);
        let Some(block) = step.block(length, hurry) else { break };
        if misses(&block, &run(&block)?) {
            break;
        }
        reached = (step.utilization(), number + 1);
    }
    Ok(reached)
}

/// Whether a call was answered after the end of its period, or was not made.
fn misses(block: &Block, served: &[Served]) -> bool {
    block.tasks.iter().zip(served).any(|(task, served)| {
        let late = served.latencies.iter().any(|[release, _]| Duration::from_nanos(*release) > task.period);
        late || served.latencies.len() < task.calls
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// Servants that answer at once as long as they are not asked for more of a processor than this.
    fn capacity(most: f64) -> impl FnMut(&Block) -> Result<Vec<Served>, BenchError> {
        move |block| {
            let load: f64 =
                block.tasks.iter().map(|task| task.burn.as_secs_f64() / task.period.as_secs_f64()).sum();
            let served = |task: &crate::paced::task::Task| {
                let nanos = if load > most { task.period.as_nanos() as u64 + 1 } else { 1 };
                Served { elapsed: Duration::from_secs(1), latencies: vec![[nanos, nanos]; task.calls] }
            };
            Ok(block.tasks.iter().map(served).collect())
        }
    }

    #[test]
    fn the_load_grows_until_the_first_miss() {
        for set in [TaskSet::Harmonic, TaskSet::NonHarmonic] {
            for &experiment in Experiment::value_variants() {
                let second = Duration::from_secs(1);
                let (utilization, steps) =
                    breakdown(set, experiment, second, (1.0, usize::MAX), capacity(0.7)).unwrap();
                assert!(steps > 1, "{set:?} {experiment:?}");
                assert!((0.5..=0.7001).contains(&utilization), "{set:?} {experiment:?}: {utilization}");
                let none = breakdown(set, experiment, second, (1.0, usize::MAX), capacity(0.1)).unwrap();
                assert_eq!(none, (0.0, 0));
            }
        }
    }

    #[test]
    fn a_call_that_was_not_made_is_a_miss() {
        let block =
            Step::new(TaskSet::Harmonic, Experiment::Work, 0).block(Duration::from_secs(1), 1.0).unwrap();
        let mut served = capacity(1.0)(&block).unwrap();
        assert!(!misses(&block, &served));
        served[1].latencies.pop();
        assert!(misses(&block, &served));
    }
}
