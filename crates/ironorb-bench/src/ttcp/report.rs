//! What `ironorb bench ttcp` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::latency::{self, CallRow};
use super::paper::{PaperFigure, paper};
use super::targets;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::{Outcome, append_lines, write_text};
use crate::statistics::{Collector, Ratio};
use crate::targets::{Target, fmt_table as fmt_targets};
use crate::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport, name};

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
    pub outcome: Outcome<Rates>,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// What a kind of call carried.
#[derive(Debug, Clone, Serialize)]
pub struct Rates {
    /// Elements that the receiver counted, in all runs.
    pub elements_received: u64,
    /// The plain stream, with as many bytes.
    pub raw: Throughput,
    /// The ORB.
    pub subject: Throughput,
    /// The ORB's rate over the plain stream's, in the same repetition.
    pub of_raw: Ratio,
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
    /// Of the median run, if there was one.
    fn median_mbit_s(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Measured(Rates { subject, .. }) => Some(subject.median_mbit_s),
            Outcome::Missing { .. } => None,
        }
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
        self.append_json(&mut text)?;
        write_text(file, &text)
    }

    pub(crate) fn append_json(&self, text: &mut Vec<u8>) -> Result<(), BenchError> {
        append_lines(text, "ttcp", "rate", &self.rows, &self.machine)?;
        append_lines(text, "ttcp", "latency", &self.calls, &self.machine)?;
        append_lines(text, "ttcp", "target", &self.targets(), &self.machine)?;
        append_lines(text, "ttcp", "paper", &paper(), &"two SPARCstation 20, ATM 155 Mbit/s")
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
            fmt_paper(&self.rows, f)?;
        }
        latency::fmt_table(&self.calls, f)?;
        fmt_targets(&self.targets(), f)
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
            Outcome::Measured(Rates { raw, subject, of_raw, .. }) => {
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

/// The paper's figures, with those of the same calls here.
fn fmt_paper(rows: &[TtcpRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\nMbit/s in the paper (two SPARCstation 20 of 70 MHz, 155 Mbit/s ATM), and here over the first transport"
    )?;
    writeln!(
        f,
        "{:<6} {:>6}  {:<6} {:<13} {:<6}  {:>7} {:<24}  {:>8} {:>8}",
        "type", "buffer", "", "invocation", "to", "paper", "", "ironorb", "omniorb"
    )?;
    for PaperFigure { orb, ty, buffer, mode, invocation, servant, mbit_s, from } in paper() {
        let here = |peer: Peer| {
            let same = |row: &&TtcpRow| {
                (row.peer, row.ty, row.buffer) == (peer, ty, buffer)
                    && (row.mode, row.invocation, row.servant) == (mode, invocation, servant)
            };
            rows.iter()
                .find(same)
                .and_then(TtcpRow::median_mbit_s)
                .map_or("-".to_owned(), |rate| format!("{rate:.0}"))
        };
        writeln!(
            f,
            "{:<6} {buffer:>6}  {:<6} {:<13} {:<6}  {mbit_s:>7.1} {:<24}  {:>8} {:>8}",
            name(ty),
            name(mode),
            name(invocation),
            name(servant),
            format!("{orb}, {from}"),
            here(Peer::Ironorb),
            here(Peer::Omniorb),
        )?;
    }
    write!(f, "twoway over oneway: about 0.80 in the paper")?;
    let [least, most] = twoway_over_oneway(rows);
    if least <= most {
        write!(f, ", {least:.2} to {most:.2} here (static calls of static skeletons, all types at 128K)")?;
    }
    writeln!(f)
}

/// The least and the greatest, of this ORB's static calls of static skeletons with the paper's largest buffer.
fn twoway_over_oneway(rows: &[TtcpRow]) -> [f64; 2] {
    let counts = |row: &&TtcpRow| {
        row.peer == Peer::Ironorb
            && row.buffer.0 == 128 << 10
            && (row.invocation, row.servant) == (Invocation::Sii, ServantKind::Static)
    };
    let mut bounds = [f64::INFINITY, f64::NEG_INFINITY];
    for twoway in rows.iter().filter(counts).filter(|row| row.mode == Mode::Twoway) {
        let place = |row: &TtcpRow| (row.layout, row.transport, row.ty);
        let oneway =
            rows.iter().filter(counts).find(|row| row.mode == Mode::Oneway && place(row) == place(twoway));
        let rates = (twoway.median_mbit_s(), oneway.and_then(TtcpRow::median_mbit_s));
        if let (Some(twoway), Some(oneway)) = rates {
            let ratio = twoway / oneway;
            bounds = [bounds[0].min(ratio), bounds[1].max(ratio)];
        }
    }
    bounds
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn collector(nanos: &[u64]) -> Collector {
        let mut collector = Collector::new(2);
        nanos.iter().for_each(|nanos| collector.add(&[*nanos]));
        collector
    }

    /// What runs of two sequences of octets would give.
    pub(in crate::ttcp) fn row(mode: Mode, buffer: usize, nanos: &[u64], raw: &[u64]) -> TtcpRow {
        let (raw, subject) = (collector(raw), collector(nanos));
        TtcpRow {
            layout: "one core",
            transport: Transport::Tcp,
            mode,
            ty: DataType::Octet,
            buffer: Bytes(buffer),
            queue: None,
            peer: Peer::Ironorb,
            invocation: Invocation::Sii,
            servant: ServantKind::Static,
            sequences_a_run: 2,
            bytes_a_run: 2 * buffer,
            elements_a_run: 2 * buffer,
            repetitions: nanos.len(),
            outcome: Outcome::Measured(Rates {
                elements_received: (2 * buffer * nanos.len()) as u64,
                raw: Throughput::of(&raw, buffer),
                subject: Throughput::of(&subject, buffer),
                of_raw: raw.over(&subject),
            }),
            load: 0.0,
        }
    }

    #[test]
    fn rates_are_bits_of_the_payload_and_ratios_are_of_pairs() {
        // Two sequences of 1,000 bytes in 1,000 ns: 16 bits a ns.
        let row = row(Mode::Oneway, 1000, &[1_000, 2_000, 4_000], &[500, 2_000, 3_000]);
        let Outcome::Measured(Rates { subject, of_raw, .. }) = &row.outcome else { panic!("measured") };
        assert_eq!(
            (subject.best_mbit_s, subject.median_mbit_s, subject.worst_mbit_s),
            (16_000.0, 8_000.0, 4_000.0)
        );
        assert_eq!((of_raw.min, of_raw.median, of_raw.max), (0.5, 0.75, 1.0));
    }

    #[test]
    fn the_worst_large_buffer_decides_whether_the_goal_is_met() {
        let mut report = TtcpReport::new(Machine::this());
        report.rows.push(row(Mode::Oneway, 1 << 10, &[100], &[10]));
        report.rows.push(row(Mode::Oneway, 64 << 10, &[100], &[97]));
        report.rows.push(row(Mode::Oneway, 128 << 10, &[100], &[94]));
        report.rows.push(row(Mode::Twoway, 128 << 10, &[200], &[196]));
        let targets = report.targets();
        let found: Vec<(f64, bool)> = targets.iter().map(|target| (target.figure, target.met)).collect();
        assert_eq!(found, [(0.94, false), (0.98, true)]);
        assert!(targets[0].target.contains("worst: 128K"), "{targets:?}");
        assert_eq!(twoway_over_oneway(&report.rows), [0.5, 0.5]);
        let table = report.to_string();
        assert!(table.contains("missed") && table.contains("0.50 to 0.50 here"), "{table}");
    }
}
