//! What `ironorb bench latency` says.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::goals;
use super::lookups::{self, LookupRow};
use super::order::Algorithm;
use super::paper;
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::{Outcome, append_lines, write_text};
use crate::settings::Settings;
use crate::statistics::{Latency, Ratio};
use crate::targets::{Target, fmt_table as fmt_targets};
use crate::variant::{CallType, Invocation, Mode, Peer, Transport, name};

/// The result of `ironorb bench latency`. Its `Display` is the tables.
#[derive(Debug)]
pub struct LatencyReport {
    pub(super) machine: Machine,
    /// What calls took: one for each way to make the calls of each group.
    pub rows: Vec<CellRow>,
    /// What objects cost where there are many.
    pub activations: Vec<ActivationRow>,
    /// What finding operations and objects takes, strategy by strategy.
    pub lookups: Vec<LookupRow>,
}

/// What calls of one kind took, beside a plain socket and the others of their group.
#[derive(Debug, Clone, Serialize)]
pub struct CellRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What carried the bytes.
    pub transport: Transport,
    /// In which order objects were called.
    pub algorithm: Algorithm,
    /// Whether the client waited. Of oneways, one of a hundred is answered, when all before it have been carried out.
    pub mode: Mode,
    /// What a call carried.
    #[serde(rename = "type")]
    pub ty: CallType,
    /// Elements of the sequence.
    pub units: usize,
    /// Objects that were called.
    pub objects: usize,
    /// Which ORB.
    pub peer: Peer,
    /// Its settings, client and server.
    pub settings: Settings,
    /// How the client called.
    pub invocation: Invocation,
    /// Bytes of a request on the wire.
    pub request_bytes: usize,
    /// Bytes of a reply on the wire.
    pub reply_bytes: usize,
    /// Calls that were measured.
    pub calls: usize,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome<Measured>,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// What calls took. Each ratio is the median over repetitions of the median call over the other's in the same repetition.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The plain socket, with as many bytes.
    pub raw: Latency,
    /// The ORB.
    pub subject: Latency,
    /// Over the plain socket.
    pub over_raw: Ratio,
    /// Over the same ORB's static calls.
    pub over_sii: Option<Ratio>,
    /// Over the same calls of one object among as many.
    pub over_one: Option<Ratio>,
    /// Over this ORB without settings.
    pub over_default: Option<Ratio>,
    /// Over omniORB's calls.
    pub over_omniorb: Option<Ratio>,
    /// Over JacORB's calls.
    pub over_jacorb: Option<Ratio>,
}

/// What it took to activate many objects.
#[derive(Debug, Clone, Serialize)]
pub struct ActivationRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// Which ORB.
    pub peer: Peer,
    /// Its settings.
    pub settings: Settings,
    /// Objects there were afterwards.
    pub objects: usize,
    /// Objects that were activated meanwhile.
    pub activated: u32,
    /// Microseconds for each.
    pub us_each: f64,
    /// By which the server's resident memory grew for each, its servant included.
    pub resident_bytes_each: f64,
    /// The servant's part of it; 0 where it is not known.
    pub servant_bytes: u32,
}

impl LatencyReport {
    pub(super) fn new(machine: Machine) -> LatencyReport {
        LatencyReport { machine, rows: Vec::new(), activations: Vec::new(), lookups: Vec::new() }
    }

    /// What was to be reached, and whether it has been, as far as these rows tell.
    pub fn targets(&self) -> Vec<Target> {
        goals::targets(self)
    }

    /// Writes each row as a line of JSON, with where it was measured: kinds `latency`, `activation`,
    /// `lookup`, `target`, `paper`.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        let mut text = Vec::new();
        self.append_json(&mut text)?;
        write_text(file, &text)
    }

    pub(crate) fn append_json(&self, text: &mut Vec<u8>) -> Result<(), BenchError> {
        append_lines(text, "latency", "latency", &self.rows, &self.machine)?;
        append_lines(text, "latency", "activation", &self.activations, &self.machine)?;
        append_lines(text, "latency", "lookup", &self.lookups, &self.machine)?;
        append_lines(text, "latency", "target", &self.targets(), &self.machine)?;
        append_lines(text, "latency", "paper", &paper::CLAIMS, &paper::MACHINE)
    }

    /// The rows, those that are compared with one another together.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[CellRow]> {
        self.rows.chunk_by(|a, b| a.group() == b.group())
    }
}

/// All that the rows of one group have in common.
type Key = (&'static str, Transport, Algorithm, Mode, CallType, usize, usize);

impl CellRow {
    pub(super) fn group(&self) -> Key {
        let CellRow { layout, transport, algorithm, mode, ty, units, objects, .. } = self;
        (layout, *transport, *algorithm, *mode, *ty, *units, *objects)
    }

    /// Who called, and how.
    pub(super) fn side(&self) -> String {
        let who = match self.peer {
            Peer::Ironorb => self.settings.label(),
            Peer::Omniorb | Peer::Jacorb => name(self.peer),
        };
        format!("{who} {}", name(self.invocation))
    }
}

impl fmt::Display for LatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        self.fmt_body(f)
    }
}

impl LatencyReport {
    pub(super) fn fmt_body(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block =
            |row: &CellRow| (row.layout, row.transport, row.mode, row.algorithm, String::from(row.ty));
        let mut blocks: Vec<(_, Vec<&[CellRow]>)> = Vec::new();
        for group in self.groups() {
            let key = block(&group[0]);
            match blocks.iter_mut().find(|(known, _)| *known == key) {
                Some((_, groups)) => groups.push(group),
                None => blocks.push((key, vec![group])),
            }
        }
        for (_, groups) in &blocks {
            fmt_block(groups, f)?;
        }
        if !self.rows.is_empty() {
            writeln!(
                f,
                "\nus: microseconds of the median call; of oneways a hundredth of a batch whose last call is answered. ratio: to the\n\
                 plain socket of the same bytes in the same repetition, the median of all and half of their spread. /one: to calls\n\
                 of one object among as many. dii-new: a request a call; dii-reused: one an object, its data set anew for each call;\n\
                 the peers' requests cannot be sent again."
            )?;
        }
        fmt_activations(&self.activations, f)?;
        lookups::fmt_table(&self.lookups, f)?;
        if !self.rows.is_empty() {
            paper::fmt_table(&self.rows, f)?;
        }
        fmt_targets(&self.targets(), f)
    }
}

fn fmt_block(groups: &[&[CellRow]], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(first) = groups.first().and_then(|group| group.first()) else { return Ok(()) };
    let mut sides: Vec<String> = Vec::new();
    for row in groups.iter().flat_map(|group| group.iter()) {
        if row.outcome.measured().is_some() && !sides.contains(&row.side()) {
            sides.push(row.side());
        }
    }
    writeln!(
        f,
        "\n{} {}, {} over {}, client and server on {}",
        name(first.mode),
        first.ty,
        name(first.algorithm),
        name(first.transport),
        first.layout
    )?;
    write!(f, "{:>7} {:>5} {:>6} {:>7}", "objects", "units", "bytes", "plain")?;
    for side in &sides {
        write!(f, "  {side:>20}")?;
    }
    write!(f, "\n{:>7} {:>5} {:>6} {:>7}", "", "", "out", "us")?;
    for _ in &sides {
        write!(f, "  {:>8} {:>11}", "us", "ratio")?;
    }
    writeln!(f)?;
    for group in groups {
        let row = &group[0];
        let raw = group.iter().find_map(|row| row.outcome.measured());
        write!(
            f,
            "{:>7} {:>5} {:>6} {:>7}",
            row.objects,
            row.units,
            row.request_bytes,
            raw.map_or_else(|| "-".to_owned(), |measured| format!("{:.2}", measured.raw.median_us))
        )?;
        for side in &sides {
            let row = group.iter().find(|row| row.side() == *side);
            match row.and_then(|row| row.outcome.measured()) {
                Some(Measured { subject, over_raw, .. }) => {
                    write!(f, "  {:>8.2} {:>11}", subject.median_us, spread(over_raw))?;
                }
                None => write!(f, "  {:>8} {:>11}", "-", "")?,
            }
        }
        for row in *group {
            if let Some(Measured { over_one: Some(over_one), .. }) = row.outcome.measured() {
                write!(f, "  {} /one {}", row.side(), spread(over_one))?;
            }
        }
        writeln!(f)?;
    }
    let mut told: Vec<&str> = Vec::new();
    for row in groups.iter().flat_map(|group| group.iter()) {
        if let Outcome::Missing { missing } = &row.outcome
            && !told.contains(&missing.as_str())
        {
            writeln!(f, "        {missing}")?;
            told.push(missing);
        }
    }
    Ok(())
}

/// A ratio with half of what lies between its least and its greatest.
pub(super) fn spread(ratio: &Ratio) -> String {
    format!("{:.3}±{:.2}", ratio.median, (ratio.max - ratio.min) / 2.0)
}

fn fmt_activations(rows: &[ActivationRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nactivating objects in the server")?;
    writeln!(
        f,
        "{:>8}  {:<24} {:>9} {:>9} {:>14} {:>14}",
        "objects", "", "activated", "us each", "resident bytes", "servant's part"
    )?;
    for row in rows {
        let who = match row.peer {
            Peer::Ironorb => row.settings.label(),
            Peer::Omniorb | Peer::Jacorb => name(row.peer),
        };
        let servant = match row.servant_bytes {
            0 => "-".to_owned(),
            bytes => bytes.to_string(),
        };
        writeln!(
            f,
            "{:>8}  {who:<24} {:>9} {:>9.3} {:>14.1} {servant:>14}",
            row.objects, row.activated, row.us_each, row.resident_bytes_each
        )?;
    }
    Ok(())
}
