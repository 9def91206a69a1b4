//! What `ironorb bench marshal` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::sizes::SizeRow;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::write_lines;
use crate::statistics::Collector;

/// The result of `ironorb bench marshal`. Its `Display` is the table.
#[derive(Debug)]
pub struct MarshalReport {
    machine: Machine,
    /// Writing and reading of each value.
    pub rows: Vec<MarshalRow>,
    /// One for each part of a program.
    pub sizes: Vec<SizeRow>,
}

/// How long one value takes in each way.
#[derive(Debug, Clone, Serialize)]
pub struct MarshalRow {
    /// Which value.
    pub row: &'static str,
    /// `write` or `read`.
    pub direction: &'static str,
    /// Bytes of the value on the wire.
    pub bytes: usize,
    /// Nanoseconds a value by code of its own: the median of the repetitions.
    pub compiled_ns: f64,
    /// The same by the interpreter.
    pub interpreted_ns: f64,
    /// Megabytes (10^6 bytes) a second by code of its own.
    pub compiled_mb_s: f64,
    /// The same by the interpreter.
    pub interpreted_mb_s: f64,
    /// Interpreted over compiled: the median of the repetitions' ratios, each to the one just before it.
    pub ratio: f64,
    /// The least of these ratios.
    pub ratio_min: f64,
    /// The greatest of them.
    pub ratio_max: f64,
    /// The load average after, which tells whether others disturbed the figures.
    pub load: f64,
}

impl MarshalRow {
    pub(super) fn new(
        row: &'static str,
        direction: &'static str,
        bytes: usize,
        [compiled, interpreted]: &[Collector; 2],
        load: f64,
    ) -> MarshalRow {
        let ns = |side: &Collector| side.spread_us()[1] * 1000.0;
        let mb_s = |side: &Collector| bytes as f64 / side.spread_us()[1];
        let ratio = interpreted.over(compiled);
        MarshalRow {
            row,
            direction,
            bytes,
            compiled_ns: ns(compiled),
            interpreted_ns: ns(interpreted),
            compiled_mb_s: mb_s(compiled),
            interpreted_mb_s: mb_s(interpreted),
            ratio: ratio.median,
            ratio_min: ratio.min,
            ratio_max: ratio.max,
            load,
        }
    }
}

impl MarshalReport {
    pub(super) fn new(machine: Machine) -> MarshalReport {
        MarshalReport { machine, rows: Vec::new(), sizes: Vec::new() }
    }

    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        if self.sizes.is_empty() {
            write_lines(file, "marshal", "speed", &self.rows, &self.machine)
        } else {
            write_lines(file, "marshal", "size", &self.sizes, &self.machine)
        }
    }
}

impl fmt::Display for MarshalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        if self.sizes.is_empty() { self.speed(f) } else { self.size(f) }
    }
}

impl MarshalReport {
    fn speed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<26} {:<5} {:>6}  {:>10} {:>12}  {:>9} {:>12}  {:>6} {:>11}  {:>5}",
            "row",
            "",
            "bytes",
            "compiled",
            "interpreted",
            "compiled",
            "interpreted",
            "ratio",
            "min..max",
            "load"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:<26} {:<5} {:>6}  {:>7.0} ns {:>9.0} ns  {:>4.0} MB/s {:>7.0} MB/s  {:>6.2} {:>11}  {:>5.1}",
                row.row,
                row.direction,
                row.bytes,
                row.compiled_ns,
                row.interpreted_ns,
                row.compiled_mb_s,
                row.interpreted_mb_s,
                row.ratio,
                format!("{:.2}..{:.2}", row.ratio_min, row.ratio_max),
                row.load
            )?;
        }
        writeln!(
            f,
            "\nns: a value, the median of the repetitions. ratio: interpreted over compiled, each repetition to the one\n\
             just before it; their median and spread. read: makes the value, with its memory.\n\
             `--sizes` compares what the two ways take of a program."
        )
    }

    fn size(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<34} {:>12} {:>12} {:>12}  {:>6}",
            "bytes that the types add", "without", "compiled", "interpreted", "ratio"
        )?;
        for row in &self.sizes {
            writeln!(
                f,
                "{:<34} {:>12} {:>12} {:>12}  {:>6.2}",
                row.part,
                row.without,
                format!("{:+}", row.compiled),
                format!("{:+}", row.interpreted),
                row.interpreted as f64 / row.compiled as f64
            )?;
        }
        writeln!(
            f,
            "\nThree programs that differ in nothing but marshalling the {} types of marshal.idl and ir.idl, or not.\n\
             without: the program without them, which has an ORB and what they are made of; then what they add. What\n\
             they add has their values' drop glue, which is the same for both, and the interpreter, which is there once.",
            super::sizes::TYPES
        )
    }
}
