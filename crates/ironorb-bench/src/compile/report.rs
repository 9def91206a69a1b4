//! What `ironorb bench idl` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::Facts;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::write_lines;
use crate::statistics::{Collector, Ratio};

/// The result of `ironorb bench idl`. Its `Display` is the table.
#[derive(Debug)]
pub struct IdlReport {
    machine: Machine,
    /// One for each size and extent of the work.
    pub rows: Vec<IdlRow>,
}

/// What the compilation of one input took.
#[derive(Debug, Clone, Serialize)]
pub struct IdlRow {
    /// `front end` or `with generator`.
    pub row: &'static str,
    /// Of the input.
    pub lines: usize,
    /// Of the input.
    pub bytes: usize,
    /// Of the Rust that was made.
    pub rust_bytes: Option<usize>,
    /// Of the median repetition.
    pub lines_per_second: f64,
    /// Of the slowest.
    pub lines_per_second_min: f64,
    /// Of the fastest.
    pub lines_per_second_max: f64,
    ratio: Ratio,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

impl IdlRow {
    pub(super) fn new(
        row: &'static str,
        facts: Facts,
        rust_bytes: Option<usize>,
        baseline: &Collector,
        subject: &Collector,
        load: f64,
    ) -> IdlRow {
        let [slowest, median, fastest] = subject.spread_us().map(|us| facts.lines as f64 / us * 1e6);
        IdlRow {
            row,
            lines: facts.lines,
            bytes: facts.bytes,
            rust_bytes,
            lines_per_second: median,
            lines_per_second_min: slowest,
            lines_per_second_max: fastest,
            ratio: subject.over(baseline),
            load,
        }
    }
}

impl IdlReport {
    pub(super) fn new(machine: Machine) -> IdlReport {
        IdlReport { machine, rows: Vec::new() }
    }

    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        write_lines(file, "idl", "compile", &self.rows, &self.machine)
    }
}

impl fmt::Display for IdlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        writeln!(f, "\nlines of IDL a second, in thousands")?;
        writeln!(
            f,
            "{:<15} {:>7} {:>8} {:>9}  {:>8} {:>13} {:>7} {:>5}",
            "row", "lines", "bytes", "of Rust", "median", "min..max", "ratio", "load"
        )?;
        for row in &self.rows {
            let spread =
                format!("{:.0}..{:.0}", row.lines_per_second_min / 1e3, row.lines_per_second_max / 1e3);
            writeln!(
                f,
                "{:<15} {:>7} {:>8} {:>9}  {:>8.0} {:>13} {:>7.1} {:>5.1}",
                row.row,
                row.lines,
                row.bytes,
                row.rust_bytes.map_or("-".to_owned(), |bytes| bytes.to_string()),
                row.lines_per_second / 1e3,
                spread,
                row.ratio.median,
                row.load,
            )?;
        }
        writeln!(
            f,
            "\nratio: the time over that of finding the words of the same text, the median of the repetitions."
        )
    }
}
