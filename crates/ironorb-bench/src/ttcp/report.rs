//! What `ironorb bench ttcp` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::variant::{Bytes, DataType, Invocation, Mode, ServantKind, Transport, name};
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::write_lines;
use crate::statistics::{Collector, Ratio};

/// The result of `ironorb bench ttcp`. Its `Display` is the table.
#[derive(Debug)]
pub struct TtcpReport {
    machine: Machine,
    /// One for each kind of call of each group.
    pub rows: Vec<TtcpRow>,
}

/// What calls of one kind carried, beside the plain stream of their group.
#[derive(Debug, Clone, Serialize)]
pub struct TtcpRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What carried the bytes.
    pub transport: Transport,
    /// Whether the client waited.
    pub mode: Mode,
    /// Of the elements.
    #[serde(rename = "type")]
    pub ty: DataType,
    /// Bytes that a sequence has room for.
    #[serde(rename = "buffer_bytes")]
    pub buffer: Bytes,
    /// Which ORB.
    pub peer: &'static str,
    /// How the client called.
    pub invocation: Invocation,
    /// What it called.
    pub servant: ServantKind,
    /// Sequences, each in a message of its own.
    pub sequences_a_run: usize,
    /// Bytes of all elements that one run sent; headers are not counted.
    pub bytes_a_run: usize,
    /// Runs of each side.
    pub repetitions: usize,
    /// Elements that the receiver counted, in all runs.
    pub elements_received: u64,
    /// The plain stream, with as many bytes.
    pub raw: Throughput,
    /// The ORB.
    pub subject: Throughput,
    pub(super) of_raw: Ratio,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// Megabits (10^6 bits) a second of what is in the sequences, at the sender.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Throughput {
    /// Of the fastest run.
    pub best_mbit_s: f64,
    /// Of the median run.
    pub median_mbit_s: f64,
    /// Of the slowest run.
    pub worst_mbit_s: f64,
}

impl Throughput {
    pub(super) fn of(collector: &Collector, payload_bytes: usize) -> Throughput {
        let [worst_mbit_s, median_mbit_s, best_mbit_s] =
            collector.spread_us().map(|us| payload_bytes as f64 * 8.0 / us);
        Throughput { best_mbit_s, median_mbit_s, worst_mbit_s }
    }
}

impl TtcpRow {
    /// The rate over the plain stream's of the same repetition: the median of all repetitions.
    pub fn of_raw(&self) -> f64 {
        self.of_raw.median
    }
}

impl TtcpReport {
    pub(super) fn new(machine: Machine) -> TtcpReport {
        TtcpReport { machine, rows: Vec::new() }
    }

    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        write_lines(file, "ttcp", "rate", &self.rows, &self.machine)
    }
}

impl fmt::Display for TtcpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        let block = |row: &TtcpRow| (row.layout, row.transport, row.mode);
        for rows in self.rows.chunk_by(|a, b| block(a) == block(b)) {
            fmt_block(rows, f)?;
        }
        writeln!(
            f,
            "\nMbit/s at the sender, of what is in the sequences; best and median run. of raw: over the plain stream of\n\
             the same repetition, the median of them and their spread. oneway: a run's sequences, then one answer."
        )
    }
}

fn fmt_block(rows: &[TtcpRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(first) = rows.first() else { return Ok(()) };
    writeln!(
        f,
        "\nMbit/s, {} over {}, client and server on {}",
        name(first.mode),
        name(first.transport),
        first.layout
    )?;
    writeln!(
        f,
        "{:<6} {:>6}  {:<7} {:<13} {:<6}  {:>8} {:>8}  {:>8} {:>8}  {:>6} {:>11} {:>5}",
        "type",
        "buffer",
        "",
        "invocation",
        "to",
        "raw best",
        "median",
        "best",
        "median",
        "of raw",
        "min..max",
        "load"
    )?;
    for row in rows {
        let spread = format!("{:.2}..{:.2}", row.of_raw.min, row.of_raw.max);
        writeln!(
            f,
            "{:<6} {:>6}  {:<7} {:<13} {:<6}  {:>8.0} {:>8.0}  {:>8.0} {:>8.0}  {:>6.3} {:>11} {:>5.1}",
            name(row.ty),
            row.buffer,
            row.peer,
            name(row.invocation),
            name(row.servant),
            row.raw.best_mbit_s,
            row.raw.median_mbit_s,
            row.subject.best_mbit_s,
            row.subject.median_mbit_s,
            row.of_raw.median,
            spread,
            row.load,
        )?;
    }
    Ok(())
}
