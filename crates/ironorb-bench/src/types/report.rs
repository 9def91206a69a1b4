//! What `ironorb bench types` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::write_lines;
use crate::statistics::Collector;

/// The result of `ironorb bench types`. Its `Display` is the table.
#[derive(Debug)]
pub struct TypesReport {
    machine: Machine,
    /// One for each construct.
    pub rows: Vec<TypesRow>,
}

/// How fast one construct is marshalled.
#[derive(Debug, Clone, Serialize)]
pub struct TypesRow {
    /// Which construct.
    pub row: &'static str,
    /// Bytes of the value on the wire, on which the rates count.
    pub bytes: usize,
    /// A plain copy of these bytes.
    pub copy: Rate,
    /// From the Rust value to bytes.
    pub write: Rate,
    /// From bytes to the Rust value.
    pub read: Rate,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// Gigabytes (10^9 bytes) a second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Rate {
    /// The median of the repetitions.
    pub median_gb_s: f64,
    /// The slowest of them.
    pub min_gb_s: f64,
    /// The fastest of them.
    pub max_gb_s: f64,
}

impl TypesRow {
    pub(super) fn new(row: &'static str, bytes: usize, sides: &[Collector; 3], load: f64) -> TypesRow {
        let rate = |side: &Collector| {
            let [min_gb_s, median_gb_s, max_gb_s] = side.spread_us().map(|us| bytes as f64 / us / 1000.0);
            Rate { median_gb_s, min_gb_s, max_gb_s }
        };
        let [copy, write, read] = sides;
        TypesRow { row, bytes, copy: rate(copy), write: rate(write), read: rate(read), load }
    }
}

impl TypesReport {
    pub(super) fn new(machine: Machine) -> TypesReport {
        TypesReport { machine, rows: Vec::new() }
    }

    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        write_lines(file, "types", "rate", &self.rows, &self.machine)
    }
}

impl fmt::Display for TypesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        writeln!(f, "\ngigabytes a second, of the bytes on the wire")?;
        writeln!(
            f,
            "{:<28} {:>7}  {:>6} {:>13}  {:>6} {:>13} {:>6}  {:>6} {:>13} {:>6}  {:>5}",
            "row",
            "bytes",
            "copy",
            "min..max",
            "write",
            "min..max",
            "/copy",
            "read",
            "min..max",
            "/copy",
            "load"
        )?;
        for row in &self.rows {
            let spread = |rate: Rate| format!("{:.2}..{:.2}", rate.min_gb_s, rate.max_gb_s);
            let over = |rate: Rate| rate.median_gb_s / row.copy.median_gb_s;
            writeln!(
                f,
                "{:<28} {:>7}  {:>6.2} {:>13}  {:>6.2} {:>13} {:>6.3}  {:>6.2} {:>13} {:>6.3}  {:>5.1}",
                row.row,
                row.bytes,
                row.copy.median_gb_s,
                spread(row.copy),
                row.write.median_gb_s,
                spread(row.write),
                over(row.write),
                row.read.median_gb_s,
                spread(row.read),
                over(row.read),
                row.load
            )?;
        }
        writeln!(
            f,
            "\ncopy: the same bytes from one buffer to another, in turn with the others. write: into a buffer\n\
             that is large enough. read: makes the value, with its memory; an any keeps its value as bytes.\n\
             medians of the repetitions and their spread; /copy: the median over the copy's."
        )
    }
}
