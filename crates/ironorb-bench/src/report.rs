//! What a benchmark says, for people and for programs.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::breakdown::CallBreakdown;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::rows::Row;
use crate::statistics::{Collector, Latency, Ratio};
use ironorb_baseline::raw::Exchange;

/// The result of `ironorb bench echo`. Its `Display` is the table.
#[derive(Debug)]
pub struct EchoReport {
    machine: Machine,
    /// What calls took, unless counts were asked for.
    pub latencies: Vec<LatencyRow>,
    /// What calls did, if counts were asked for.
    pub counts: Vec<CountsRow>,
    /// Where their time went, if that was asked for.
    pub breakdowns: Vec<CallBreakdown>,
}

/// What one kind of call took, beside its baseline.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What was called.
    pub row: &'static str,
    /// Bytes of a request on the wire; `None` when there is no wire.
    pub request_bytes: Option<usize>,
    /// Bytes of a reply on the wire.
    pub reply_bytes: Option<usize>,
    /// The plain socket, or the plain call.
    pub baseline: Latency,
    /// The ORB.
    pub subject: Latency,
    ratio: Ratio,
    /// Processor time that both sides of the baseline take a call, in microseconds, looks of waiting threads included.
    pub baseline_busy_us: f64,
    /// The same of the ORB.
    pub subject_busy_us: f64,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

impl LatencyRow {
    pub(crate) fn new(
        layout: &'static str,
        row: Row,
        exchange: Option<Exchange>,
        baseline: &Collector,
        subject: &Collector,
        load: f64,
    ) -> LatencyRow {
        LatencyRow {
            layout,
            row: row.name,
            request_bytes: exchange.map(|exchange| exchange.request_bytes),
            reply_bytes: exchange.map(|exchange| exchange.reply_bytes),
            baseline: baseline.latency(),
            subject: subject.latency(),
            ratio: subject.over(baseline),
            baseline_busy_us: baseline.busy_us(),
            subject_busy_us: subject.busy_us(),
            load,
        }
    }

    /// The fastest repetition over the baseline's fastest.
    pub fn ratio_of_bests(&self) -> f64 {
        self.ratio.of_bests
    }

    /// The median of all calls over the baseline's.
    pub fn ratio_of_medians(&self) -> f64 {
        self.ratio.of_medians
    }

    /// The median of the repetitions' ratios, each to the baseline taken just before it.
    pub fn ratio_median(&self) -> f64 {
        self.ratio.median
    }
}

/// What one side of one kind of call does per call, the start and end of the process left out.
#[derive(Debug, Clone, Serialize)]
pub struct CountsRow {
    /// What was called.
    pub row: &'static str,
    /// `raw` or `ironorb`.
    pub peer: &'static str,
    /// `client` or `server`.
    pub side: &'static str,
    /// Each system call that is made at least once in a hundred calls, and how often per call.
    pub system_calls: Vec<(String, f64)>,
    /// Calls to malloc, calloc and realloc.
    pub heap_calls: f64,
    /// Bytes that they asked for.
    pub heap_bytes: f64,
    /// Instructions in user space.
    pub instructions: f64,
    /// The same of omniORB 4.2.5, measured once on a machine like the one that the targets were set on.
    pub omniorb_instructions: Option<u32>,
}

impl EchoReport {
    pub(crate) fn new(machine: Machine) -> EchoReport {
        EchoReport { machine, latencies: Vec::new(), counts: Vec::new(), breakdowns: Vec::new() }
    }

    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        let mut text = Vec::new();
        self.append_json(&mut text)?;
        write_text(file, &text)
    }

    pub(crate) fn append_json(&self, text: &mut Vec<u8>) -> Result<(), BenchError> {
        match (self.counts.as_slice(), self.breakdowns.as_slice()) {
            ([], []) => append_lines(text, "echo", "latency", &self.latencies, &self.machine),
            ([], breakdowns) => append_lines(text, "echo", "breakdown", breakdowns, &self.machine),
            (counts, _) => append_lines(text, "echo", "counts", counts, &self.machine),
        }
    }
}

/// What came of a row.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Outcome<T> {
    /// Figures.
    Measured(T),
    /// The ORB could not take part.
    Missing {
        /// Why.
        missing: String,
    },
}

impl<T> Outcome<T> {
    /// The figures, if there are any.
    pub fn measured(&self) -> Option<&T> {
        match self {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Missing { .. } => None,
        }
    }
}

/// Writes rows as lines of JSON, with where they were measured.
pub(crate) fn write_lines<T: Serialize>(
    file: &Path,
    bench: &str,
    kind: &str,
    rows: &[T],
    machine: &Machine,
) -> Result<(), BenchError> {
    let mut text = Vec::new();
    append_lines(&mut text, bench, kind, rows, machine)?;
    write_text(file, &text)
}

/// The same into a text with other lines.
pub(crate) fn append_lines<T: Serialize, M: Serialize>(
    text: &mut Vec<u8>,
    bench: &str,
    kind: &str,
    rows: &[T],
    machine: &M,
) -> Result<(), BenchError> {
    for row in rows {
        serde_json::to_writer(&mut *text, &Line { bench, kind, row, machine })
            .map_err(|error| BenchError::io("write a row as JSON")(error.into()))?;
        text.push(b'\n');
    }
    Ok(())
}

/// Writes a file that was asked for.
pub(crate) fn write_text(file: &Path, text: &[u8]) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(BenchError::io(format!("write {}", file.display())))
}

#[derive(Serialize)]
struct Line<'a, T, M> {
    bench: &'a str,
    kind: &'a str,
    #[serde(flatten)]
    row: &'a T,
    machine: &'a M,
}

impl fmt::Display for EchoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        if !self.latencies.is_empty() {
            self.fmt_latencies(f)?;
        }
        if !self.counts.is_empty() {
            self.fmt_counts(f)?;
        }
        self.breakdowns.iter().try_for_each(|breakdown| breakdown.fmt(f))?;
        Ok(())
    }
}

impl EchoReport {
    fn fmt_latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layout = "";
        for row in &self.latencies {
            if row.layout != layout {
                layout = row.layout;
                writeln!(f, "\nmicroseconds a call, client and server on {layout}")?;
                writeln!(
                    f,
                    "{:<14} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>6}  {:>8} {:>8} {:>8} {:>6}  {:>6} {:>6} {:>6} {:>11} {:>5}",
                    "",
                    "bytes",
                    "bytes",
                    "baseline",
                    "",
                    "",
                    "",
                    "ironorb",
                    "",
                    "",
                    "",
                    "ratio",
                    "",
                    "",
                    "",
                    ""
                )?;
                writeln!(
                    f,
                    "{:<14} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>6}  {:>8} {:>8} {:>8} {:>6}  {:>6} {:>6} {:>6} {:>11} {:>5}",
                    "row",
                    "out",
                    "back",
                    "best",
                    "median",
                    "p99",
                    "cpu",
                    "best",
                    "median",
                    "p99",
                    "cpu",
                    "best",
                    "median",
                    "pairs",
                    "min..max",
                    "load"
                )?;
            }
            let bytes = |count: Option<usize>| count.map_or("-".to_owned(), |count| count.to_string());
            let spread = format!("{:.2}..{:.2}", row.ratio.min, row.ratio.max);
            writeln!(
                f,
                "{:<14} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>6}  {:>8} {:>8} {:>8} {:>6}  {:>6.2} {:>6.2} {:>6.2} {:>11} {:>5.1}",
                row.row,
                bytes(row.request_bytes),
                bytes(row.reply_bytes),
                micros(row.baseline.best_us),
                micros(row.baseline.median_us),
                micros(row.baseline.p99_us),
                micros(row.baseline_busy_us),
                micros(row.subject.best_us),
                micros(row.subject.median_us),
                micros(row.subject.p99_us),
                micros(row.subject_busy_us),
                row.ratio.of_bests,
                row.ratio.of_medians,
                row.ratio.median,
                spread,
                row.load,
            )?;
        }
        writeln!(
            f,
            "\nbaseline: a plain blocking socket carries the same bytes; for collocated, a call through a\n\
             trait object. best: the mean of the fastest repetition; median, p99: of all calls; cpu: processor\n\
             time of both sides. ratios: of the bests, of the medians, and of repetitions, each over the\n\
             baseline just before it: their median and spread. oneway: a hundred, of which the last is\n\
             answered; batched, ten thousand."
        )
    }

    fn fmt_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nper call, the start and end of each process left out")?;
        writeln!(
            f,
            "{:<11} {:<8} {:<7} {:>7} {:>9} {:>13} {:>13}  system calls",
            "row", "peer", "side", "heap", "bytes", "instructions", "omniORB's"
        )?;
        for row in &self.counts {
            let calls: Vec<String> =
                row.system_calls.iter().map(|(name, count)| format!("{name} {count:.2}")).collect();
            writeln!(
                f,
                "{:<11} {:<8} {:<7} {:>7.2} {:>9.0} {:>13.0} {:>13}  {}",
                row.row,
                row.peer,
                row.side,
                row.heap_calls,
                row.heap_bytes,
                row.instructions,
                row.omniorb_instructions.map_or("-".to_owned(), |count| count.to_string()),
                calls.join(", "),
            )?;
        }
        writeln!(
            f,
            "\nheap, instructions: by valgrind (memcheck, callgrind); user space only. system calls: by strace.\n\
             Each is the difference of two runs of different length, divided by the difference in calls."
        )
    }
}

/// A time with as many digits as say something.
fn micros(us: f64) -> String {
    if us < 1.0 { format!("{us:.4}") } else { format!("{us:.2}") }
}
