//! `ironorb bench jobs`: the architectures of the paper on parallel interaction (S, HP, FP, SP) under its workload.
//!
//! Real processes run them, and a model that is fed the same demands.

mod confidence;
mod counted;
mod model;
mod observed;
mod paper;
mod site;
mod workload;

use std::cell::RefCell;
use std::time::Duration;

use crate::chart::{Axis, Chart, Plot, Scale, Series};
use crate::error::BenchError;
use crate::options::Run;
use crate::render::{Report, Table};
use crate::row::{Figure, Row, digits, parameters};

use confidence::{Mean, repeat};
use model::{Costs, Daemon, Model, Way};
use observed::{Architecture, Counted, Observed};
pub(crate) use site::ROLES;
use site::{Demand, Real};
use workload::{Distribution, Workload};

/// `ironorb bench jobs`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct JobsOptions {
    /// The ways to run a job: in sequence, driven by handles, forwarding, synchronous.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Way::ALL)]
    pub(crate) architectures: Vec<Way>,
    /// Whether the daemon runs one job at a time, or many.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Daemon::ALL)]
    pub(crate) daemons: Vec<Daemon>,
    /// Numbers of clients: N in the paper.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 7, 10])]
    pub(crate) clients: Vec<usize>,
    /// How demands are distributed.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Distribution::ALL)]
    pub(crate) distributions: Vec<Distribution>,
    /// The mean demand of each part of a job, in milliseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [50.0, 55.0])]
    pub(crate) demand: Vec<f64>,
    /// How many servers there are: as many as a job has parts for each set of them that jobs take in turn.
    #[arg(long, default_value_t = 4)]
    pub(crate) servers: usize,
    /// Decides exponential demands: a row's first run has this seed, the next one the next.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Bytes of each request and result: L in the paper.
    #[arg(long, default_value_t = 50)]
    pub(crate) size: usize,
    /// Who runs the jobs: processes, or the model.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Side::ALL)]
    pub(crate) sides: Vec<Side>,
    /// How stations spend the time of a request. As many can burn it at a time as there are processors.
    #[arg(long, value_enum, default_value = "sleep")]
    pub(crate) stations: Demand,
    /// How long a message takes in the model, in microseconds.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) message_us: f64,
    /// Cycles of each run of processes, after those in which queues find their length. Default 200.
    #[arg(long)]
    pub(crate) cycles: Option<usize>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// Names of figures.
const RESPONSE: &str = "response_ms";
const CYCLES: &str = "cycles_s";
const MESSAGES: &str = "messages";
const BYTES: &str = "bytes";
const SYSTEM_CALLS: &str = "system_calls";

/// Who runs the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Side {
    /// Processes that call each other.
    Processes,
    /// The model. No call is made.
    Model,
}

impl Side {
    const ALL: [Side; 2] = [Side::Processes, Side::Model];
}

/// The side of rows that no call was made for.
const MODEL: &str = "model";
/// That of rows of real processes.
const OURS: &str = "ironorb";

const NOTES: &str = "side ironorb: clients are threads of one process; the agent with the daemon, and each station, are processes of their own. of model:\n\
    X over that of the model for the same demands; with exponential ones, messages cost it what one client's response with fixed ones says.\n\
    messages, bytes: of a cycle of one client, counted by relays in a run of their own, the agent's and the verifications included. system calls: of all processes, where strace is installed.\n\
    side model: a discrete-event model with constant costs of messages; no call was made. response ms: R, of a cycle; cycles s:\n\
    X, of all clients together. Each is the mean of as many runs as make its 95 % interval at most 2.5 % (interval percent), or of the\n\
    most that are made. n over xr: clients / (X R), 1 by Little's law. of bound: X over the cycles a second that the slower station\n\
    of each set can serve. Only SP's daemon waits for servers: with the others its threads make no difference.";

const OVERHEAD: &str = "microseconds. by hand: two asynchronous calls of a program, and the wait for both. HP: without verification.";

const BY_PROCESS: &str = "counted by strace, with one client and parts of 2 ms: the difference of two runs of different length. daemon: with the agent. What\n\
    a process does at intervals, such as renewals of leases, is in it.";

/// Runs `ironorb bench jobs`.
pub(crate) fn measure(options: &JobsOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("jobs", "jobs of several calls on the four ways of the paper", &options.run);
    let usual = options.workload(Distribution::Fixed)?;
    if options.sides.contains(&Side::Processes) {
        let by_process = RefCell::new(Vec::new());
        let real = |way, daemon| -> Result<Box<dyn Architecture>, BenchError> {
            crate::note(format_args!("measuring {way:?} with a daemon of the kind {daemon:?}"));
            let real = Real { way, daemon, stations: options.stations, counted: Counted::default() };
            let counted = counted::count(&real, &usual, &options.run)?;
            by_process.borrow_mut().extend(of_processes(way, daemon, &counted));
            Ok(Box::new(Real { counted, ..real }))
        };
        let cycles = options.cycles.unwrap_or(options.run.choose(4, 200)).max(2);
        report.tables.extend(tables(OURS, rows(OURS, options, &real, cycles)?, &usual));
        let by_process = by_process.take();
        if !by_process.is_empty() {
            report.tables.push(
                Table::new("system-calls", "system calls of a cycle, by process", by_process)
                    .notes(BY_PROCESS),
            );
        }
        crate::note(format_args!("measuring jobs of two parts of a millisecond"));
        let overhead = site::overhead(&options.run)?;
        report
            .tables
            .push(Table::new("overhead", "a job of two parts of a millisecond", overhead).notes(OVERHEAD));
    }
    if !options.sides.contains(&Side::Model) {
        return Ok(report);
    }
    let costs = Costs { message: duration("--message-us", options.message_us, 1e6)?, ..Costs::default() };
    let modelled = |way, daemon| -> Result<Box<dyn Architecture>, BenchError> {
        Ok(Box::new(Model { way, daemon, costs }))
    };
    let rows = rows(MODEL, options, &modelled, options.run.choose(100, 2_000))?;
    report.tables.extend(tables(MODEL, rows, &usual));
    Ok(report)
}

impl JobsOptions {
    fn workload(&self, distribution: Distribution) -> Result<Workload, BenchError> {
        let unusable = |why: &str| Err(BenchError::Unusable(why.to_owned()));
        let demands: Result<Vec<Duration>, BenchError> =
            self.demand.iter().map(|ms| duration("--demand", *ms, 1e3)).collect();
        let demands = demands?;
        if demands.iter().any(Duration::is_zero) {
            return unusable("--demand has a part that takes no time");
        }
        if self.servers == 0 || !self.servers.is_multiple_of(demands.len()) {
            return unusable("--servers is no multiple of the number of parts that --demand has");
        }
        if self.clients.contains(&0) {
            return unusable("--clients has 0");
        }
        let sets = self.servers / demands.len();
        Ok(Workload { demands, distribution, sets, size: self.size, seed: self.seed })
    }
}

/// A time that was given as a number of units, of which so many are a second.
fn duration(option: &str, number: f64, units: f64) -> Result<Duration, BenchError> {
    Duration::try_from_secs_f64(number / units)
        .map_err(|_| BenchError::Unusable(format!("{option} has {number}, which is no time")))
}

/// A row for each distribution, daemon, architecture and number of clients.
fn rows(
    side: &str,
    options: &JobsOptions,
    architecture: &dyn Fn(Way, Daemon) -> Result<Box<dyn Architecture>, BenchError>,
    cycles: usize,
) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for daemon in &options.daemons {
        // Only SP's daemon waits for stations: of processes, the others are run once.
        let waits = |way: &&Way| side == MODEL || *daemon == Daemon::Multi || **way == Way::Sp;
        for way in options.architectures.iter().filter(waits) {
            let architecture = architecture(*way, *daemon)?;
            let mut model = Model { way: *way, daemon: *daemon, costs: Costs::default() };
            let mut learnt = Duration::ZERO;
            for distribution in &options.distributions {
                let workload = options.workload(*distribution)?;
                if *distribution != Distribution::Fixed {
                    model.costs.message = learnt;
                }
                for clients in &options.clients {
                    let place = parameters![
                        side = side,
                        workload = workload.name(),
                        distribution = distribution.name(),
                        daemon = daemon.name(),
                        architecture = way.name(),
                        clients = clients,
                    ];
                    let beside = (side != MODEL).then_some(&model as &dyn Architecture);
                    let run = (cycles, &options.run);
                    let figures = figures(&*architecture, beside, &workload, *clients, run)?;
                    // What messages cost is learnt where nothing else takes time, and used where demands vary.
                    if *distribution == Distribution::Fixed && *clients == 1 && side != MODEL {
                        learnt = message_cost(&model, &workload, &figures)?;
                    }
                    rows.push(Row { parameters: place, outcome: Ok(figures) });
                }
            }
        }
    }
    Ok(rows)
}

/// What a message costs in the model, so that one client's response is the measured one.
fn message_cost(
    model: &Model,
    workload: &Workload,
    figures: &[(String, Figure)],
) -> Result<Duration, BenchError> {
    let measured = figures.iter().find_map(|(name, figure)| match figure {
        Figure::Number(ms) if name == RESPONSE => Some(*ms),
        _ => None,
    });
    let response = |message_ms: u64| {
        let costs = Costs { message: Duration::from_millis(message_ms), ..model.costs };
        Model { costs, ..*model }.run(workload, 1, 20).map(|observed| observed.response_ms)
    };
    let (free, dear) = (response(0)?, response(1)?);
    let ms = measured.map_or(0.0, |measured| (measured - free) / (dear - free));
    Ok(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

/// The system calls of a cycle by process, if they were counted.
fn of_processes(way: Way, daemon: Daemon, counted: &Counted) -> Option<Row> {
    let calls = counted.system_calls?;
    let place = parameters![architecture = way.name(), daemon = daemon.name()];
    let figures = [("client", calls.client), ("daemon", calls.daemon), ("stations", calls.stations)];
    Some(Row::of_numbers(place, figures))
}

/// Runs an architecture until its figures are known well enough; and beside it, with the same demands, the model.
fn figures(
    architecture: &dyn Architecture,
    model: Option<&dyn Architecture>,
    workload: &Workload,
    clients: usize,
    (cycles, run): (usize, &Run),
) -> Result<Vec<(String, Figure)>, BenchError> {
    let run_of = |architecture: &dyn Architecture, number: usize| {
        let seed = workload.seed + number as u64;
        architecture.run(&Workload { seed, ..workload.clone() }, clients, cycles)
    };
    let of_run = |number: usize| run_of(architecture, number);
    let figures = |observed: &Observed| [observed.response_ms, observed.cycles_a_second];
    let runs = repeat(run.repetitions(100), of_run, figures)?;
    let mean = |figure: fn(&Observed) -> f64| Mean::of(&runs.iter().map(figure).collect::<Vec<_>>());
    let [response, cycles_a_second] = [mean(|run| run.response_ms), mean(|run| run.cycles_a_second)];
    let interval = response.part().max(cycles_a_second.part()) * 100.0;
    let mut named = vec![
        (RESPONSE, response.value),
        (CYCLES, cycles_a_second.value),
        ("interval_percent", interval),
        ("runs", runs.len() as f64),
        ("n_over_xr", mean(Observed::clients_over_xr).value),
        ("of_bound", cycles_a_second.value / workload.cycles_a_second_max()),
    ];
    let mut counted = |name, of: fn(&Counted) -> Option<f64>| {
        let counts: Option<Vec<f64>> = runs.iter().map(|run| of(&run.counted)).collect();
        named.extend(counts.map(|counts| (name, Mean::of(&counts).value)));
    };
    counted(MESSAGES, |counted| counted.messages);
    counted(BYTES, |counted| counted.bytes);
    counted(SYSTEM_CALLS, |counted| Some(counted.system_calls?.total()));
    if let Some(model) = model {
        let modelled: Result<Vec<f64>, BenchError> =
            (0..runs.len()).map(|number| Ok(run_of(model, number)?.cycles_a_second)).collect();
        named.push(("of_model", cycles_a_second.value / Mean::of(&modelled?).value));
    }
    Ok(named.into_iter().map(|(name, number)| (name.to_owned(), Figure::Number(number))).collect())
}

/// The rows, and beside the paper's figures what these have of its workload.
fn tables(side: &str, rows: Vec<Row>, workload: &Workload) -> Vec<Table> {
    let (bound, is_of_paper) = (workload.cycles_a_second_max(), workload.is_of_paper());
    let beside = if is_of_paper { paper::tables(side, &rows, bound) } else { Vec::new() };
    let crossings = is_of_paper.then(|| paper::crossings(side, &rows));
    let charts = charts(&rows, bound, is_of_paper);
    let runs = Table::new("runs", "clients whose jobs have several parts", rows)
        .blocks(&["workload", "distribution", "daemon"])
        .notes(NOTES)
        .charts(charts);
    std::iter::once(runs).chain(beside).chain(crossings).collect()
}

/// Figures 1 and 2 of the paper, and as much for exponential demands.
fn charts(rows: &[Row], bound: f64, is_of_paper: bool) -> Vec<Chart> {
    let plot = Plot {
        title: "cycles a second",
        apart: &["distribution", "daemon"],
        x: ("clients", Axis { name: "clients", scale: Scale::Linear, text: |it| format!("{it:.0}") }),
        y: (CYCLES, Axis { name: "cycles/s", scale: Scale::Linear, text: digits }),
        baseline: None,
        lines: &["side", "architecture"],
    };
    let mut charts = Vec::new();
    for distribution in Distribution::ALL {
        for daemon in Daemon::ALL {
            let of = [("distribution", distribution.name()), ("daemon", daemon.name())];
            let mut found = plot.charts(rows.iter().filter(|row| row.is(&of)));
            for chart in &mut found {
                let ends = chart.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
                let (least, most) = (ends.clone().fold(f64::INFINITY, f64::min), ends.fold(0.0, f64::max));
                let points = vec![(least, bound), (most, bound)];
                let color = plotters::style::BLACK;
                chart.lines.push(Series { label: "bound".to_owned(), color, points });
                if is_of_paper {
                    paper::add(chart, daemon, distribution);
                }
            }
            charts.extend(found);
        }
    }
    charts
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::goal::{Verdict, goals};

    fn options(line: &[&str]) -> JobsOptions {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            options: JobsOptions,
        }
        Alone::parse_from([&["jobs"], line].concat()).options
    }

    /// A model with costs in the place of real runs.
    fn as_if_real(costs: Costs, line: &[&str]) -> Vec<Row> {
        let options = options(line);
        let model = |way, daemon| -> Result<Box<dyn Architecture>, BenchError> {
            Ok(Box::new(Model { way, daemon, costs }))
        };
        rows(OURS, &options, &model, options.run.choose(100, 2_000)).unwrap()
    }

    fn verdicts(costs: Costs, line: &[&str]) -> Vec<Verdict> {
        let rows = as_if_real(costs, line);
        goals("jobs", "runs", &rows).iter().map(|goal| goal.verdict(false)).collect()
    }

    fn message(micros: u64) -> Costs {
        Costs { message: Duration::from_micros(micros), ..Costs::default() }
    }

    /// R(1), X(10) and the messages of each architecture, exponential demands beside the model, and Little's law.
    #[test]
    fn real_runs_have_goals_for_the_papers_workload() {
        let line = ["--clients=1,10", "--repetitions=1"];
        let quick = verdicts(message(10), &line);
        assert_eq!(quick, [Verdict::Met; 20]);
        // At 10 clients the stations do not notice what messages cost, but for FP's, which wait for the clients' answers.
        let slow = verdicts(message(2_000), &line);
        assert!(slow.iter().filter(|verdict| **verdict == Verdict::Missed).count() > 4, "{slow:?}");
        // Of other workloads only the law is known.
        let others = verdicts(message(10), &["--clients=1,10", "--demand=5,6", "--repetitions=1"]);
        assert_eq!(others, [Verdict::Met; 4]);
    }

    #[test]
    fn a_message_too_many_and_a_row_outside_the_law_are_missed_goals() {
        let rows = as_if_real(
            message(10),
            &["--clients=1,2", "--repetitions=1", "--daemons=multi", "--distributions=fixed"],
        );
        let missed = |rows: &[Row]| {
            let goals = goals("jobs", "runs", rows);
            let missed = goals.into_iter().filter(|goal| goal.verdict(false) == Verdict::Missed);
            missed.map(|goal| goal.target).collect::<Vec<_>>()
        };
        assert_eq!(missed(&rows), [""; 0]);
        let changed = |name: &str, by: f64| {
            let mut rows = rows.clone();
            let last = rows.iter_mut().rfind(|row| row.text("architecture") == "HP").unwrap();
            let figures = last.outcome.as_mut().unwrap();
            let (_, figure) = figures.iter_mut().find(|(known, _)| known == name).unwrap();
            let Figure::Number(number) = figure else { panic!("{figure:?}") };
            *number += by;
            missed(&rows)
        };
        let of_messages = "HP: messages of a job off the paper's 12, 10, 11 and 6 (S, HP, FP, SP)";
        assert_eq!(changed("messages", 0.5), [of_messages]);
        assert_eq!(changed("messages", -1.0), [of_messages]);
        for by in [0.021, -0.021] {
            assert_eq!(
                changed("n_over_xr", by),
                ["HP: N / (X R) off 1 (worst: 2 clients, daemon multi, fixed demands)"]
            );
        }
        assert_eq!(changed("n_over_xr", 0.019), [""; 0]);
    }

    #[test]
    fn real_runs_are_beside_the_model_with_the_same_demands() {
        let line = ["--clients=4", "--distributions=exponential", "--repetitions=3", "--daemons=multi"];
        for row in as_if_real(Costs::default(), &line) {
            assert_eq!(row.median("of_model"), Some(1.0));
        }
        for row in as_if_real(message(1_000), &line) {
            assert!(row.median("of_model") < Some(0.99), "{row:?}");
        }
    }

    #[test]
    fn the_model_has_no_goals_and_no_model_beside_it() {
        let report = measure(&options(&["--quick", "--sides=model"])).unwrap().with_goals();
        assert!(report.goals.is_empty());
        assert!(report.rows("runs").iter().all(|row| row.median("of_model").is_none()));
        assert_eq!(report.rows("runs").len(), 2 * 2 * 4 * 5);
        assert_eq!(["table-1", "table-2", "table-3"].map(|table| report.rows(table).len()), [8, 4, 12]);
        assert!(report.to_string().contains("no call was made"));
        let crossings = report.rows("crossings");
        assert_eq!(
            crossings.iter().find(|row| row.text("s_is_as_fast_as") == "FP").unwrap().median(MODEL),
            Some(4.0)
        );
    }

    #[test]
    fn other_workloads_stand_beside_no_figures_of_the_paper() {
        let line = [
            "--quick",
            "--sides=model",
            "--demand=1,2,3",
            "--servers=6",
            "--clients=2",
            "--distributions=fixed",
            "--daemons=multi",
        ];
        let report = measure(&options(&line)).unwrap();
        assert_eq!(report.tables.len(), 1);
        let [s, hp, ..] = report.rows("runs") else { panic!("there are four") };
        assert_eq!([s, hp].map(|row| row.median(MESSAGES)), [Some(18.0), Some(14.0)]);
        assert_eq!(hp.median(RESPONSE).map(f64::round), Some(3.0));
        for wrong in [&["--servers=3"], &["--demand=0,1"], &["--demand=-1,1"], &["--clients=0"]] {
            assert!(measure(&options(wrong)).is_err(), "{wrong:?}");
        }
    }
}
