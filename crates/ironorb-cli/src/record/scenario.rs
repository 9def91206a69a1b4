//! `ironorb record scenario`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ironorb_model::record::{ArrivalsOf, WorkloadOptions, workload};
use ironorb_model::scenario;

use super::read;
use crate::failure::Failure;
use crate::files::cannot_write;
use crate::output;

/// Make a scenario of recordings, for `ironorb sim run`.
///
/// The recorded programs become servers, the calls that no upcall made become classes of clients, those of upcalls
/// nested calls, and what servants took samples of demands. Notes on standard error say what the recording
/// does not hold.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Recordings, or folders with files `….jsonl`.
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// The file for the scenario. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// When calls begin: `trace`, as recorded; `closed`, after their thread's thinking time; `open`, at distances as
    /// recorded, in any order.
    #[arg(long, value_enum, default_value_t = Begins::Trace)]
    arrivals: Begins,
    /// How many sizes and lists of nested calls of one operation are kept apart. An operation with more gets their means.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    variants: u32,
    /// How many samples of a distribution are kept.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// The scenario's name.
    #[arg(long, default_value = "recorded")]
    name: String,
    /// The seed of its first run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Begins {
    Trace,
    Closed,
    Open,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let recording = read(&arguments.files, arguments.output.as_ref())?;
    if recording.calls.is_empty() {
        return Err(Failure::new("the recording has no call"));
    }
    let made = workload(
        &recording,
        &WorkloadOptions {
            name: arguments.name.clone(),
            seed: arguments.seed,
            arrivals: match arguments.arrivals {
                Begins::Trace => ArrivalsOf::Trace,
                Begins::Closed => ArrivalsOf::Closed,
                Begins::Open => ArrivalsOf::Open,
            },
            variants_max: arguments.variants as usize,
            samples_max: arguments.samples as usize,
            dwell: None,
        },
    );
    for note in &made.notes {
        output::note(format_args!("note: {note}"));
    }
    let text = scenario::write(&made.scenario);
    if let Err(problems) = scenario::read(&text, &arguments.name) {
        let lines: String = problems.iter().map(|it| format!("{it}\n")).collect();
        return Err(Failure::new("the recording has what no scenario may have").with_body(lines));
    }
    match &arguments.output {
        None => output::text(text),
        Some(path) => fs::write(path, text).map_err(|e| cannot_write(path, &e)),
    }
}
