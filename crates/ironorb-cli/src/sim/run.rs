//! `ironorb sim run`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use ironorb_model::report;

use super::progress::Progress;
use super::records::Records;
use super::{Level, Outputs, Read, named, read};
use crate::failure::Failure;
use crate::files::check_files;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario, as TOML: see docs/simulation.md.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only the scenario with this name, of a file with a sweep.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// What is simulated of the ORB.
    #[arg(long, value_enum, ignore_case = true, default_value_t = Level::L0)]
    level: Level,
    /// The seed of the first run, instead of the file's.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Also show how many events of the simulation happened in a second of a processor. Not in files: it is another each time.
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    records: Records,
    #[command(flatten)]
    outputs: Outputs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { file, scenario, level, seed, events, records, outputs } = arguments;
    let Read { mut scenarios, files } = read(file, *seed)?;
    if let Some(name) = scenario {
        scenarios = vec![named(scenarios, name, file)?];
    }
    records.check(*level, &scenarios, file)?;
    check_files(files.iter().map(PathBuf::as_path), outputs.files().into_iter().chain(records.files()))?;
    let progress = Progress::begin();
    let (mut experiments, mut written) = (Vec::new(), Vec::new());
    let began = processor_seconds();
    for (number, scenario) in scenarios.iter().enumerate() {
        let part = match scenarios.len() {
            1 => String::new(),
            count => format!("scenario {} of {count}, ", number + 1),
        };
        let mut recorder = Some(records.begin(*level, scenario)?);
        let experiment = report::experiment(scenario, |order| {
            progress.begin_run(&part, scenario, order);
            match recorder.take() {
                Some(recorder) => recorder.run(*level, scenario, order, &mut written),
                None => level.run(scenario, order),
            }
        });
        experiments.push(experiment?);
    }
    let took = processor_seconds() - began;
    drop(progress);
    let origin = level.origin()?;
    outputs.publish(
        &report::experiments_text(&experiments, &origin),
        || report::experiments_json(&experiments, &origin),
        || report::experiments_csv(&experiments, &origin),
        || report::experiments_html(&experiments, &origin),
    )?;
    for line in written {
        output::line(line)?;
    }
    if *events {
        let count: u64 = experiments.iter().map(report::Experiment::events).sum();
        let rate = count as f64 / took / 1e6;
        output::line(format_args!(
            "\n{count} events in {took:.3} s of a processor: {rate:.2} million events/s"
        ))?;
    }
    Ok(())
}

/// The time that this process, and those that it has started, have had a processor: other programs on this machine count
/// nothing.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9 + children_seconds().unwrap_or(0.0)
}

/// That of processes which have ended, as proc(5) has it: `cutime` and `cstime`, in hundredths.
fn children_seconds() -> Option<f64> {
    const CUTIME_BEHIND_NAME: usize = 13;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let ticks = behind_name.split(' ').skip(CUTIME_BEHIND_NAME).take(2).map(str::parse::<u64>);
    Some(ticks.sum::<Result<u64, _>>().ok()? as f64 / 100.0)
}
