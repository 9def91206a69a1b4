//! `ironorb sim compare`.

use std::path::{Path, PathBuf};

use clap::Args;
use ironorb_model::report;
use ironorb_model::scenario::Scenario;

use super::progress::Progress;
use super::{Level, Outputs, Read, read};
use crate::failure::Failure;
use crate::files::check_files;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The first scenario, as TOML.
    #[arg(value_name = "FILE")]
    before: PathBuf,
    /// The second one. It runs with the seeds of the first.
    #[arg(value_name = "OTHER")]
    after: PathBuf,
    /// What is simulated of the ORB.
    #[arg(long, value_enum, ignore_case = true, default_value_t = Level::L0)]
    level: Level,
    /// The seed of the first run, instead of the first file's.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    #[command(flatten)]
    outputs: Outputs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { before, after, level, seed, outputs } = arguments;
    let mut files = Vec::new();
    let (mut first, mut second) = (one(before, *seed, &mut files)?, one(after, *seed, &mut files)?);
    if first.name == second.name {
        (first.name, second.name) = (before.display().to_string(), after.display().to_string());
    }
    // Both have the seeds of the first.
    second.seed = first.seed;
    check_files(files.iter().map(PathBuf::as_path), outputs.files())?;
    let progress = Progress::begin();
    let run = |scenario: &Scenario, order| {
        progress.begin_run("", scenario, order);
        level.run(scenario, order)
    };
    let compared =
        report::compare((&first, |order| run(&first, order)), (&second, |order| run(&second, order)))?;
    drop(progress);
    let origin = level.origin()?;
    outputs.publish(
        &report::comparison_text(&compared, &origin),
        || report::comparison_json(&compared, &origin),
        || report::comparison_csv(&compared, &origin),
        || report::comparison_html(&compared, &origin),
    )
}

/// The only scenario of a file. What is read is added to `files`.
fn one(file: &Path, seed: Option<u64>, files: &mut Vec<PathBuf>) -> Result<Scenario, Failure> {
    let Read { mut scenarios, files: read } = read(file, seed)?;
    files.extend(read);
    match scenarios.len() {
        1 => Ok(scenarios.remove(0)),
        count => Err(Failure::usage(format!("{} has {count} scenarios", file.display()))
            .with_help("leave `[sweep]` out: one scenario is compared with another")),
    }
}
