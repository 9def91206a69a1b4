//! What `ironorb bench ttcp` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::latency::{self, CallRow};
use super::paper::{PaperFigure, paper};
use super::targets::{self, Target};
use super::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport, name};
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::{append_lines, write_text};
use crate::statistics::{Collector, Ratio};

/// The result of `ironorb bench ttcp`. Its `Display` is the tables.
#[derive(Debug)]
pub struct TtcpReport {
    pub(super) machine: Machine,
    /// How many bytes a second: one for each kind of call of each group.
    pub rows: Vec<TtcpRow>,
    /// What single calls take.
    pub calls: Vec<CallRow>,
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
    /// Bytes of the system's queues of each connection, if not the system chose.
    #[serde(rename = "queue_bytes")]
    pub queue: Option<Bytes>,
    /// Which ORB.
    pub peer: Peer,
    /// How the client called.
    pub invocation: Invocation,
    /// What it called.
    pub servant: ServantKind,
    /// Sequences, each in a message of its own.
    pub sequences_a_run: usize,
    /// Bytes of all elements that one run sent; headers are not counted.
    pub bytes_a_run: usize,
    /// Elements that one run sent.
    pub elements_a_run: usize,
    /// Runs of each side.
    pub repetitions: usize,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// What came of a row.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Figures.
    Measured {
        /// Elements that the receiver counted, in all runs.
        elements_received: u64,
        /// The plain stream, with as many bytes.
        raw: Throughput,
        /// The ORB.
        subject: Throughput,
        /// The ORB's rate over the plain stream's, in the same repetition.
        of_raw: Ratio,
    },
    /// The ORB could not take part.
    Missing {
        /// Why.
        missing: String,
    },
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

impl TtcpReport {
    pub(super) fn new(machine: Machine) -> TtcpReport {
        TtcpReport { machine, rows: Vec::new(), calls: Vec::new() }
    }

    /// What was to be reached, and whether it has been, as far as these rows tell.
    pub fn targets(&self) -> Vec<Target> {
        targets::targets(&self.rows, &self.calls)
    }

    /// Writes each row as a line of JSON, with where it was measured: kinds `rate`, `latency`, `target` and `paper`.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        let mut text = Vec::new();
        append_lines(&mut text, "ttcp", "rate", &self.rows, &self.machine)?;
        append_lines(&mut text, "ttcp", "latency", &self.calls, &self.machine)?;
        append_lines(&mut text, "ttcp", "target", &self.targets(), &self.machine)?;
        append_lines(&mut text, "ttcp", "paper", &paper(), &"two SPARCstation 20, ATM 155 Mbit/s")?;
        write_text(file, &text)
    }
}

impl fmt::Display for TtcpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        let block = |row: &TtcpRow| (row.layout, row.transport, row.mode);
        for rows in self.rows.chunk_by(|a, b| block(a) == block(b)) {
            fmt_block(rows, f)?;
        }
        if !self.rows.is_empty() {
            writeln!(
                f,
                "\nMbit/s at the sender, of what is in the sequences; best and median run. of raw: over the plain\n\
                 stream of the same repetition, the median of them and their spread. oneway: a run's sequences,\n\
                 then one answer. dii-new: a request a call; dii-reused: one request, its data set anew for each\n\
                 call; omniORB's requests cannot be sent again."
            )?;
            fmt_paper(f)?;
        }
        latency::fmt_table(&self.calls, f)?;
        targets::fmt_table(&self.targets(), f)
    }
}

fn fmt_block(rows: &[TtcpRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(first) = rows.first() else { return Ok(()) };
    writeln!(
        f,
        "\nMbit/s, {} over {}, client and server on {}{}",
        name(first.mode),
        name(first.transport),
        first.layout,
        first.queue.map_or(String::new(), |bytes| format!(", socket queues of {bytes}")),
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
        write!(
            f,
            "{:<6} {:>6}  {:<7} {:<13} {:<6}  ",
            name(row.ty),
            row.buffer,
            name(row.peer),
            name(row.invocation),
            name(row.servant)
        )?;
        match &row.outcome {
            Outcome::Missing { missing } => writeln!(f, "{missing}")?,
            Outcome::Measured { raw, subject, of_raw, .. } => {
                let spread = format!("{:.2}..{:.2}", of_raw.min, of_raw.max);
                writeln!(
                    f,
                    "{:>8.0} {:>8.0}  {:>8.0} {:>8.0}  {:>6.3} {:>11} {:>5.1}",
                    raw.best_mbit_s,
                    raw.median_mbit_s,
                    subject.best_mbit_s,
                    subject.median_mbit_s,
                    of_raw.median,
                    spread,
                    row.load,
                )?;
            }
        }
    }
    Ok(())
}

fn fmt_paper(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nthe paper's, two SPARCstation 20 (70 MHz), 155 Mbit/s ATM, buffers of 128K: Mbit/s")?;
    for PaperFigure { orb, ty, mode, invocation, servant, mbit_s, from, .. } in paper() {
        writeln!(
            f,
            "{:<6} {:<6}  {orb:<12} {:<13} {:<6} {mbit_s:>6.1}  {from}",
            name(ty),
            name(mode),
            name(invocation),
            name(servant)
        )?;
    }
    writeln!(f, "twoway about 80 % of oneway")
}
