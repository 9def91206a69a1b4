//! `ironorb sim`: what a distributed program would do, before there are machines for it.

mod bounds;
mod calibrate;
mod compare;
mod export;
mod plan;
mod programs;
mod progress;
mod records;
mod run;
mod validate;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use ironorb_model::report::{Origin, RunOrder};
use ironorb_model::scenario::{self, Scenario};
use ironorb_model::{Observations, queueing};

use crate::failure::Failure;
use crate::files::cannot_write;
use crate::output;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the scenarios of a file, each until its means are known, and show times, use and queues.
    Run(run::Arguments),
    /// Run two scenarios with the same seeds, and show how they differ.
    Compare(compare::Arguments),
    /// Say which of the changes that a scenario file allows a target takes at least, and what breaks first.
    Plan(plan::Arguments),
    /// Say what no deployment of a scenario can pass, and which resource is full first, without simulating it.
    Bounds(bounds::Arguments),
    /// Write a scenario as a layered queueing network, for other solvers.
    Export(export::Arguments),
    /// Measure what the steps of calls take on this machine, as a profile that scenarios name.
    ///
    /// Client and server are pinned. Where the kernel places threads that are not pinned is not measured, and not modelled. A
    /// build with `--features probes` divides calls by the ORB's own probes; another one by differences to plain sockets.
    Calibrate(calibrate::Arguments),
    /// Run benchmarks twice, simulate them by a profile, and show how far off the simulation is.
    Validate(validate::Arguments),
}

/// What is simulated of the ORB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Queues of processors, threads, locks and links. No octets: millions of events a second.
    L0,
    /// The ORB's real machines on bodies of zeros: headers, connections, framing, adapters. Without caches and jobs.
    L1,
    /// Programs with the whole ORB on simulated hosts, by `ironorb-programs`: threads, sockets and locks too. Without caches and
    /// jobs.
    L2,
}

/// Where the report goes.
#[derive(Debug, Args)]
struct Outputs {
    /// The file to write the report to, as one JSON object.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The file to write the report to, as CSV: a line for each figure.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The file to write the report to, as a page that refers to no other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Bounds(arguments) => bounds::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Calibrate(arguments) => calibrate::run(arguments),
        Command::Validate(arguments) => validate::run(arguments),
    }
}

impl Level {
    /// One run of a scenario.
    fn run(self, scenario: &Scenario, order: RunOrder) -> Result<Observations, Failure> {
        self.run_recorded(scenario, order, ironorb_machines::Records::default())
    }

    /// One run of a scenario, with what it writes down. Level L0 has no packets, and level L2 writes nothing down.
    fn run_recorded(
        self,
        scenario: &Scenario,
        order: RunOrder,
        records: ironorb_machines::Records<'_>,
    ) -> Result<Observations, Failure> {
        let RunOrder { seed, warm_up } = order;
        let told = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", scenario.name));
        match self {
            Level::L0 => {
                queueing::run_recorded(scenario, seed, warm_up, records.timeline).map_err(|why| told(&why))
            }
            Level::L1 => {
                ironorb_machines::run_recorded(scenario, seed, warm_up, records).map_err(|why| told(&why))
            }
            Level::L2 => programs::run(scenario, order),
        }
    }

    /// What has run scenarios.
    fn origin(self) -> Result<Origin, Failure> {
        let own_commit = || env!("IRONORB_SIM_COMMIT").to_owned();
        let (level, commit) = match self {
            Level::L0 => (queueing::LEVEL, own_commit()),
            Level::L1 => (ironorb_machines::LEVEL, own_commit()),
            Level::L2 => (programs::LEVEL, programs::commit()?),
        };
        Ok(Origin { level: level.to_owned(), commit })
    }
}

/// One scenario of a file.
#[derive(Debug, Args)]
struct OneScenario {
    /// The scenario, as TOML: see docs/simulation.md.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The name of the one that is meant, of a file with a sweep; without, the first one.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
}

impl OneScenario {
    /// The scenario, and the files that it was read from.
    fn read(&self) -> Result<(Scenario, Vec<PathBuf>), Failure> {
        let Read { mut scenarios, files } = read(&self.file, None)?;
        let scenario = match &self.scenario {
            None => scenarios.remove(0), // there is one at least
            Some(name) => named(scenarios, name, &self.file)?,
        };
        Ok((scenario, files))
    }
}

/// The scenario with a name, of those of a file.
fn named(scenarios: Vec<Scenario>, name: &str, file: &Path) -> Result<Scenario, Failure> {
    let names: Vec<String> = scenarios.iter().map(|it| it.name.clone()).collect();
    scenarios.into_iter().find(|it| it.name == name).ok_or_else(|| {
        Failure::usage(format!("{} has no such scenario", file.display()))
            .with_help(format!("it has {}", names.join(", ")))
    })
}

fn text_of(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())).of_usage())
}

/// What a file says.
struct Read {
    scenarios: Vec<Scenario>,
    /// The file, and those that it names.
    files: Vec<PathBuf>,
}

/// The scenarios of a file. `seed` replaces theirs.
fn read(file: &Path, seed: Option<u64>) -> Result<Read, Failure> {
    let text = text_of(file)?;
    let files = RefCell::new(vec![file.to_owned()]);
    let name = file.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let profiles = |name: &str| {
        let profile = folder.join(name);
        let text = fs::read_to_string(&profile).map_err(|e| e.to_string())?;
        files.borrow_mut().push(profile);
        Ok(text)
    };
    let mut scenarios = scenario::read_with(&text, &name, &profiles).map_err(|problems| {
        let lines: String = problems.iter().map(|it| format!("{}:{it}\n", file.display())).collect();
        Failure::usage(format!("{} is no scenario", file.display())).with_body(lines)
    })?;
    for scenario in &mut scenarios {
        scenario.seed = seed.unwrap_or(scenario.seed);
    }
    Ok(Read { scenarios, files: files.into_inner() })
}

impl Outputs {
    fn files(&self) -> [Option<&PathBuf>; 3] {
        [self.json.as_ref(), self.csv.as_ref(), self.html.as_ref()]
    }

    /// Prints the report, and writes the files that are asked for.
    fn publish(
        &self,
        text: &str,
        json: impl FnOnce() -> String,
        csv: impl FnOnce() -> String,
        html: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        write(self.json.as_deref(), json)?;
        write(self.csv.as_deref(), csv)?;
        write(self.html.as_deref(), html)?;
        output::text(text)
    }
}

fn write(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    fs::write(file, text()).map_err(|e| cannot_write(file, &e))
}
