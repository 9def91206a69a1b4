//! `ironorb bench idl`: how many lines of IDL a second the front end reads, alone and with the generator.
//!
//! The text is made, not read from a disk, and is the same in every run. The baseline is a pass over it that
//! only finds its words: less than that nothing can do that looks at every byte.

mod input;
mod report;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ironorb_build::{Config, generate_outcome};
use ironorb_idl::{MapLoader, Options, Outcome, compile_with};

pub use report::{IdlReport, IdlRow};

use crate::error::BenchError;
use crate::machine::{Machine, load};
use crate::options::IdlOptions;
use crate::statistics::Collector;

/// Carries out `ironorb bench idl`.
pub fn idl(options: &IdlOptions) -> Result<IdlReport, BenchError> {
    let mut report = IdlReport::new(Machine::this());
    for &lines in options.lines() {
        let text = input::text(lines);
        let facts = Facts { lines: text.lines().count(), bytes: text.len() };
        let files = MapLoader::new().with(FILE, text.as_str());
        let load = load();
        let mut sides = [Collector::new(1), Collector::new(1), Collector::new(1)];
        let mut rust_bytes = 0;
        for _ in 0..options.repetitions() {
            sides[0].add(&[nanos(|| Ok(black_box(text.split_whitespace().count())))?.0]);
            sides[1].add(&[nanos(|| front_end(&files))?.0]);
            let (time, (_, rust)) = nanos(|| {
                let outcome = front_end(&files)?;
                generated(&outcome).map(|rust| (outcome, rust))
            })?;
            sides[2].add(&[time]);
            rust_bytes = rust.len();
        }
        let [baseline, front_end, both] = &sides;
        report.rows.push(IdlRow::new("front end", facts, None, baseline, front_end, load));
        report.rows.push(IdlRow::new("with generator", facts, Some(rust_bytes), baseline, both, load));
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(report)
}

/// What is known of an input.
#[derive(Debug, Clone, Copy)]
struct Facts {
    lines: usize,
    bytes: usize,
}

/// How long something takes, and what comes of it; that is dropped outside of the time.
fn nanos<T>(work: impl FnOnce() -> Result<T, BenchError>) -> Result<(u64, T), BenchError> {
    let start = Instant::now();
    let made = work()?;
    let nanos = start.elapsed().as_nanos() as u64;
    Ok((nanos, made))
}

fn front_end(files: &MapLoader) -> Result<Outcome, BenchError> {
    let outcome = compile_with(Path::new(FILE), &Options::default(), files);
    match outcome.model {
        Some(_) => Ok(outcome),
        None => Err(BenchError::Idl(outcome.render(false))),
    }
}

fn generated(outcome: &Outcome) -> Result<String, BenchError> {
    generate_outcome(outcome, &Config::new()).map_err(|errors| BenchError::Idl(errors.to_string()))
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
        let options = IdlOptions { lines: vec![200], repetitions: Some(1), ..IdlOptions::default() };
        let report = idl(&options).expect("a report");
        let rows: Vec<&str> = report.rows.iter().map(|row| row.row).collect();
        assert_eq!(rows, ["front end", "with generator"]);
        assert!(report.rows.iter().all(|row| row.lines_per_second > 0.0));
        assert!(report.to_string().contains("with generator"));
    }
}
