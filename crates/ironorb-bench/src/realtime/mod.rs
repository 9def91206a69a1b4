//! `ironorb bench realtime`: the test of latency and jitter of the paper on real-time ORBs (RT-99, figure 2). A client of the
//! highest priority calls its servant while up to 50 clients of lower priorities call theirs.
//!
//! Blocks with different numbers of clients follow one another at random. In each block, plain sockets with the same threads
//! and priorities take turns with the ORB: what the ORB adds to the system's own delays is the difference. A control without
//! lanes shows that the benchmark sees inversions.

mod options;
mod paper;
mod rows;
mod schedule;

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::chart::{Axis, Chart, Plot, Scale};
use crate::error::BenchError;
use crate::machine::{on_one_core, steal};
use crate::paced::class::Class;
use crate::paced::participant::{Participant, never_idle};
use crate::paced::setup::Setup;
use crate::paced::task::{Block, Served};
use crate::render::{Report, Table};
use crate::row::Row;
pub(crate) use options::RealtimeOptions;
use options::{Configuration, Regime, Runs, Side};
pub(crate) use paper::MACHINE as PAPER_MACHINE;
use rows::{Cell, Cells};
use schedule::{Shape, Turn, turns};

const NOTES: &str = "since: latency from the beginning of the client's period (release), and from its call. over 0: means with clients over means\n\
    without, of blocks of one round; their median and spread. A percentile needs a hundred samples beyond it; \"needs\" says how many that\n\
    are. sides: lanes: a lane for each priority; twin: plain sockets with the same threads, priorities and bytes; shared: one thread serves\n\
    all (the control: inversions must show). sd of bound: standard deviation over the twin's and a tenth of its mean.";

const LOW_NOTES: &str = "all clients of low priorities together. starving: clients of a block that were served less than half of their calls a second.";

/// Runs `ironorb bench realtime`.
pub(crate) fn measure(options: &RealtimeOptions) -> Result<Report, BenchError> {
    let seed = options.seed.unwrap_or_else(seed_of_time);
    let mut report =
        Report::new("realtime", "latency and jitter beside clients of low priorities", &options.run);
    report.machine.seed = Some(seed);
    report.machine.orbs = foreign(&options.sides)?;
    let (mut high, mut low) = (Vec::new(), Vec::new());
    for configuration in options.configurations() {
        let cells = measure_one(options, configuration, seed)?;
        high.extend(cells.high());
        low.extend(cells.low());
    }
    warn_if_blind(&high);
    const BLOCKS: &[&str] = &["layout", "seed", "since"];
    let paper = paper::table(&high);
    let charts = charts(&high, &low);
    let title = "the client of the highest priority, microseconds";
    report.tables.push(Table {
        hidden: HIDDEN,
        ..Table::new("high", title, high).blocks(BLOCKS).notes(NOTES).charts(charts)
    });
    let title = "clients of low priorities, microseconds";
    report
        .tables
        .push(Table { hidden: HIDDEN, ..Table::new("low", title, low).blocks(BLOCKS).notes(LOW_NOTES) });
    report.tables.push(paper);
    Ok(report)
}

/// Parameters that the layout names, which tables need not repeat.
const HIDDEN: &[&str] = &["regime", "load_percent", "phases", "transport", "class"];

fn seed_of_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_millis() as u64)
}

/// Without lanes the high client must be delayed at least this much, or the benchmark is blind.
pub(crate) const CONTROL_MIN: f64 = 3.0;

/// A benchmark whose control shows no inversion would not see those of the ORB either.
fn warn_if_blind(high: &[Row]) {
    for place in blind_places(high) {
        crate::note(format_args!(
            "BLIND: the control without lanes shows no inversion ({place}): this run proves nothing about the ORB"
        ));
    }
}

/// The configurations whose control should show inversions and does not: with the most clients, at a load of 60 per cent.
fn blind_places(high: &[Row]) -> Vec<String> {
    let control = [("side", "shared"), ("regime", "pinned"), ("load_percent", "60"), ("since", "call")];
    let rows = || high.iter().filter(|row| row.is(&control));
    let most = rows().filter_map(|row| row.count("clients")).fold(0.0, f64::max);
    let is_blind = |row: &&Row| {
        row.count("clients") == Some(most) && row.median("over_0").is_some_and(|ratio| ratio < CONTROL_MIN)
    };
    rows().filter(is_blind).map(|row| row.text("layout")).collect()
}

fn measure_one(options: &RealtimeOptions, of: Configuration, seed: u64) -> Result<Cells, BenchError> {
    let numbers = options.numbers()?;
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
    // It ends when it is dropped.
    let _burner = if of.regime == Regime::Busy { Some(never_idle()?) } else { None };
    let (mut entrants, mut missing) = (Vec::new(), Vec::new());
    for &side in &options.sides {
        let servants = numbers.last().map_or(1, |most| most + 1);
        match start(side, of, servants, folder.path()) {
            Ok(participant) => entrants.push(Entrant { side, participant: participant?, lost: None }),
            Err(why) => missing.push((side, why)),
        }
    }
    let shape = options.shape(of, numbers.len() * entrants.len())?;
    let plan = turns(&numbers, entrants.len(), options.rounds(), seed);
    say_how_long(of, &shape, plan.len());
    let steal_before = steal();
    let mut cells = run(&plan, &numbers, &mut entrants, &shape)?;
    let steal_ms = (steal() - steal_before).as_secs_f64() * 1e3;
    let lost = entrants.into_iter().filter_map(|entrant| Some((entrant.side, entrant.lost?)));
    missing.extend(lost);
    cells.retain(|cell| !missing.iter().any(|(side, _)| *side == cell.side));
    Ok(Cells { parameters: of.parameters(seed), cells, missing, steal_ms })
}

/// Runs all turns, and returns a cell for each number of clients and entrant.
fn run(
    plan: &[Turn],
    numbers: &[usize],
    entrants: &mut [Entrant],
    shape: &Shape,
) -> Result<Vec<Cell>, BenchError> {
    let of_number = |&low: &usize| entrants.iter().map(move |it| Cell::new(low, it.side, shape.low_period));
    let mut cells: Vec<Cell> = numbers.iter().flat_map(of_number).collect();
    for turn in plan {
        let entrant = &mut entrants[turn.side];
        let cell = cells.iter_mut().find(|cell| (cell.low, cell.side) == (turn.low, entrant.side));
        if let (Some(cell), Some(served)) = (cell, entrant.run(&shape.block(turn.low))?) {
            cell.add(&served);
        }
    }
    Ok(cells)
}

/// A side that takes part.
struct Entrant {
    side: Side,
    participant: Participant,
    /// Why it takes part no more.
    lost: Option<String>,
}

impl Entrant {
    /// Runs a block; `None` where another ORB's programs have failed.
    fn run(&mut self, block: &Block) -> Result<Option<Vec<Served>>, BenchError> {
        if self.lost.is_some() {
            return Ok(None);
        }
        match self.participant.run(block) {
            Err(e) if self.side.is_foreign() => {
                self.lost = Some(e.to_string());
                Ok(None)
            }
            served => served.map(Some),
        }
    }
}

/// Starts a side; else says why it takes no part.
fn start(
    side: Side,
    of: Configuration,
    servants: usize,
    folder: &Path,
) -> Result<Result<Participant, BenchError>, String> {
    if (of.class, of.regime) == (Class::Deadline, Regime::Pinned) {
        return Err("the system schedules no thread of one processor by deadlines".to_owned());
    }
    let start = |kind| move || Participant::start(Setup { kind, way: of.way, class: of.class, servants });
    match side.runs() {
        Runs::Ours(kind) => Ok(of.regime.start(start(kind))),
        Runs::Foreign(orb) => {
            let (program, transport) = (orb.program()?, of.way.transport());
            if let Some(why) = orb.lacks(transport, of.class) {
                return Err(why.to_owned());
            }
            Ok(of.regime.start(|| program.start(servants, of.class, transport, folder)))
        }
    }
}

/// The names and versions of other ORBs that take part.
fn foreign(sides: &[Side]) -> Result<Vec<String>, BenchError> {
    let program = |side: &Side| match side.runs() {
        Runs::Foreign(orb) => orb.program().ok(),
        Runs::Ours(_) => None,
    };
    sides.iter().filter_map(program).map(|program| program.version()).collect()
}

impl Regime {
    /// Starts processes where the regime has them.
    fn start<T>(self, start: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
        match self {
            Regime::Pinned => on_one_core(start),
            Regime::Paper | Regime::Busy => start(),
        }
    }
}

fn say_how_long(of: Configuration, shape: &Shape, turns: usize) {
    let time: Duration = shape.block_time() * turns as u32;
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    crate::note(format_args!("measuring {of}: {turns} blocks, {minutes} min {seconds} s"));
}

fn charts(high: &[Row], low: &[Row]) -> Vec<Chart> {
    let clients = Axis {
        name: "clients of low priorities",
        scale: Scale::Linear,
        text: |number| format!("{number:.0}"),
    };
    let us = |scale| Axis { name: "us", scale, text: |us| format!("{us:.0}") };
    let plot = |title, figure, scale| Plot {
        title,
        apart: &["layout"],
        x: ("clients", clients),
        y: (figure, us(scale)),
        baseline: None,
        lines: &["side"],
    };
    let since_call =
        |rows: &'_ [Row]| rows.iter().filter(|row| row.is(&[("since", "call")])).cloned().collect::<Vec<_>>();
    let (high, low) = (since_call(high), since_call(low));
    let mut latency = plot("mean latency of the high client", "mean_us", Scale::Log10).charts(&high);
    latency.iter_mut().for_each(paper::add_curves);
    let mut jitter = plot("jitter of the high client", "sd_us", Scale::Log10).charts(&high);
    jitter.iter_mut().for_each(paper::add_jitter);
    latency.extend(jitter);
    latency.extend(plot("mean latency of clients of low priorities", "mean_us", Scale::Log10).charts(&low));
    latency.extend(plot("jitter of clients of low priorities", "sd_us", Scale::Log10).charts(&low));
    latency
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::goals;
    use crate::row::{Figure, parameters};

    fn row(kind: &str, side: &str, clients: u64, figures: &[(&str, f64)]) -> Row {
        let parameters = parameters![
            layout = "pinned 60 %",
            regime = "pinned",
            load_percent = 60,
            since = "call",
            clients = clients,
            side = side
        ];
        let figures = figures.iter().map(|(name, number)| ((*name).to_owned(), Figure::Number(*number)));
        assert!(["high", "low"].contains(&kind));
        Row { parameters, outcome: Ok(figures.collect()) }
    }

    #[test]
    fn a_control_without_inversions_is_told_loudly() {
        let high = |ratio| {
            [row("high", "shared", 5, &[("over_0", 1.1)]), row("high", "shared", 50, &[("over_0", ratio)])]
        };
        assert_eq!(blind_places(&high(2.9)), ["pinned 60 %"]);
        assert!(blind_places(&high(3.1)).is_empty(), "few clients decide nothing");
        let judged = goals("realtime", "high", &high(2.9));
        assert!(judged.iter().any(|goal| goal.target.contains("blind") && goal.figure == 2.9), "{judged:?}");
    }

    #[test]
    fn the_most_clients_decide_about_growth_and_the_worst_number_about_jitter_and_rates() {
        let figures = |over_0, growth, sd| {
            [("over_0", over_0), ("p99_growth_over_twin_us", growth), ("sd_of_bound", sd)]
        };
        let rows = [
            row("high", "lanes", 5, &figures(2.0, 90.0, 1.4)),
            row("high", "lanes", 50, &figures(1.2, -3.0, 0.9)),
            row("high", "twin", 50, &figures(9.0, 99.0, 9.0)),
        ];
        let judged: Vec<f64> = goals("realtime", "high", &rows).iter().map(|goal| goal.figure).collect();
        assert_eq!(judged, [1.2, 0.0, 1.4]);
        let rates = |rate, starving| [("rate_of_previous", rate), ("starving", starving)];
        let rows = [
            row("low", "lanes", 5, &[("starving", 0.0)]),
            row("low", "lanes", 10, &rates(0.9, 0.0)),
            row("low", "lanes", 50, &rates(0.99, 1.0)),
            row("low", "shared", 50, &rates(0.1, 9.0)),
        ];
        let judged: Vec<f64> = goals("realtime", "low", &rows).iter().map(|goal| goal.figure).collect();
        assert_eq!(judged, [0.9, 1.0]);
    }

    #[test]
    fn without_enough_samples_the_percentile_is_not_judged() {
        let [mut row] = [row("high", "lanes", 50, &[("over_0", 1.0)])];
        row.outcome.as_mut().unwrap().push(("p99_us".to_owned(), Figure::TooFew { needed: 10_000 }));
        let judged = goals("realtime", "high", &[row]);
        assert!(judged.iter().any(|goal| goal.target.contains("p99") && goal.figure.is_nan()), "{judged:?}");
    }
}
