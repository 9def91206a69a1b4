//! `ironorb bench idl`: the number of lines of IDL per second that the front end reads, alone and with the
//! generator.
//!
//! The text is generated, not read from a disk, and is equal in every run. The baseline is a pass over the
//! text that only finds words: a program that examines every byte cannot do less.

mod input;
mod rustc;

use std::cell::Cell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ironorb_build::{Config, generate_outcome};
use ironorb_idl::{MapLoader, Options, Outcome, compile_with};

use crate::error::BenchError;
use crate::measure::{Contest, Entrant, Group, Label, Side};
use crate::options::Run;
use crate::render::{Report, Table};
use crate::row::{Measure, Row, parameters};

/// `ironorb bench idl`
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct IdlOptions {
    /// Lines of each input, separated by commas. Default 10000,100000.
    #[arg(long, value_delimiter = ',')]
    pub(crate) lines: Vec<usize>,
    /// Measure instead how long `cargo check` takes for the generated Rust, from nothing and after an
    /// operation is added. Needs this project's sources, cargo and Linux.
    #[arg(long)]
    pub(crate) rustc: bool,
    /// Check these IDL files instead of the standard's and a generated one. May be given several times.
    #[arg(long = "idl", value_name = "FILE", requires = "rustc")]
    pub(crate) files: Vec<PathBuf>,
    /// Search these folders for included files. May be given several times.
    #[arg(long = "include", short = 'I', value_name = "DIR", requires = "rustc")]
    pub(crate) include_dirs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "baseline: a pass that only finds the words of the text, in turns. of baseline: the fraction of its rate in the same repetition.";

const RUSTC_NOTES: &str = "lines without blank ones; processor time of all processes in seconds, from nothing and after one operation is added.";

/// Runs `ironorb bench idl`.
pub(crate) fn measure(options: &IdlOptions) -> Result<Report, BenchError> {
    if options.rustc {
        let mut report = Report::new("idl", "what cargo check takes for generated code", &options.run);
        let rows = rustc::measure(&options.files, &options.include_dirs)?;
        let title = "cargo check of generated code";
        report.tables.push(Table::new("rustc", title, rows).notes(RUSTC_NOTES));
        return Ok(report);
    }
    let mut report = Report::new("idl", "lines of IDL a second", &options.run);
    let usual: &[usize] = options.run.choose(&[1_000], &[10_000, 100_000]);
    let mut rows = Vec::new();
    for &lines in if options.lines.is_empty() { usual } else { &options.lines } {
        rows.extend(front_end_and_generator(lines, &options.run)?);
    }
    let title = "lines of IDL a second";
    report.tables.push(Table::new("compile", title, rows).notes(NOTES));
    Ok(report)
}

fn front_end_and_generator(lines: usize, run: &Run) -> Result<Vec<Row>, BenchError> {
    let text = input::text(lines);
    let lines = text.lines().count();
    let files = MapLoader::new().with(FILE, text.as_str());
    let rust_bytes = Cell::new(0);
    let both = || {
        let outcome = front_end(&files)?;
        let rust = generated(&outcome)?;
        rust_bytes.set(rust.len());
        Ok((outcome, rust))
    };
    let entrant = |row: &str, side| Entrant {
        label: Label::ours(),
        parameters: parameters![row = row],
        side: Ok(side),
    };
    let group = Group {
        parameters: parameters![lines = lines, bytes = text.len()],
        measure: Measure::Rate("lines_s", lines as f64 * 1e6),
        contest: Contest::of_batches(run.repetitions(11), 1),
        baseline: Box::new(TimedBuild(|| Ok(black_box(text.split_whitespace().count())))),
        entrants: vec![
            entrant("front end", Box::new(TimedBuild(|| front_end(&files)))),
            entrant("with generator", Box::new(TimedBuild(both))),
        ],
    };
    let mut rows = group.run()?;
    rows[1].add_number("rust_bytes", rust_bytes.get() as f64);
    Ok(rows)
}

/// Times a function, and drops its result outside of the measured time.
struct TimedBuild<F>(F);

impl<T, F: FnMut() -> Result<T, BenchError>> Side for TimedBuild<F> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        for nanos in nanos {
            let start = Instant::now();
            let made = (self.0)()?;
            *nanos = start.elapsed().as_nanos() as u64;
            drop(made);
        }
        Ok(())
    }
}

fn front_end(files: &MapLoader) -> Result<Outcome, BenchError> {
    let outcome = compile_with(Path::new(FILE), &Options::default(), files);
    match outcome.model {
        Some(_) => Ok(outcome),
        None => Err(refused(outcome.render(false))),
    }
}

fn generated(outcome: &Outcome) -> Result<String, BenchError> {
    generate_outcome(outcome, &Config::new()).map_err(refused)
}

fn refused(why: impl std::fmt::Display) -> BenchError {
    BenchError::Unusable(format!("the IDL of the benchmark was refused:\n{why}"))
}

const FILE: &str = "bench.idl";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_correct_the_same_each_time_and_as_long_as_asked_for() {
        for lines in [100, 1_000, 5_000] {
            let text = input::text(lines);
            assert_eq!(text, input::text(lines));
            let counted = text.lines().count();
            assert!((lines..lines + 100).contains(&counted), "{counted} lines instead of {lines}");
            let files = MapLoader::new().with(FILE, text.as_str());
            let outcome = front_end(&files).expect("it is correct");
            assert_eq!(outcome.render(false), "", "nor is there anything to warn of");
            let rust = generated(&outcome).expect("all of it is generated");
            assert!(rust.len() > text.len(), "the generator made {} bytes", rust.len());
        }
    }

    #[test]
    fn each_size_gives_a_row_alone_and_with_the_generator() {
        let run = Run { repetitions: Some(1), ..Run::default() };
        let report =
            measure(&IdlOptions { lines: vec![200], run, ..IdlOptions::default() }).expect("a report");
        let rows = report.rows("compile");
        assert_eq!(
            rows.iter().map(|row| row.text("row")).collect::<Vec<_>>(),
            ["front end", "with generator"]
        );
        assert!(rows.iter().all(|row| row.best("subject").is_some_and(|rate| rate > 0.0)));
        assert!(rows[1].median("rust_bytes").is_some() && report.to_string().contains("with generator"));
    }
}
