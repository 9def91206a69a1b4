//! What suites of a few named rows say: each row beside its baseline, for each ORB and its settings.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use crate::chart::{Chart, FOOT, escape, head};
use crate::error::BenchError;
use crate::machine::Machine;
use crate::report::{Outcome, append_lines, write_text};
use crate::settings::Settings;
use crate::statistics::{Latency, Ratio, Repeated};
use crate::targets::{Target, fmt_table as fmt_targets};
use crate::variant::{Peer, name};

/// The result of a suite. Its `Display` is the table.
#[derive(Debug)]
pub struct SuiteReport {
    pub(crate) machine: Machine,
    pub(crate) suite: Suite,
    /// One for each row and ORB.
    pub rows: Vec<SuiteRow>,
    /// What was to be reached, and whether it has been.
    pub targets: Vec<Target>,
    pub(crate) charts: Vec<Chart>,
}

/// What a suite is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    /// As it is called on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// What its times are told as.
    pub(crate) measure: Measure,
    /// What the reader must know of the figures.
    pub(crate) notes: &'static str,
}

/// What times are told as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Microseconds a call.
    Micros,
    /// Nanoseconds a call.
    Nanos,
    /// Calls a second.
    Rate,
}

/// What calls of one kind took, beside a baseline that was measured in turn with them.
#[derive(Debug, Clone, Serialize)]
pub struct SuiteRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What was called, and how.
    pub row: String,
    /// Which ORB.
    pub peer: Peer,
    /// Its settings, client and server.
    pub settings: Settings,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome<Compared>,
    /// What else was found, by names that tell the unit.
    #[serde(flatten)]
    pub extra: BTreeMap<&'static str, f64>,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// Figures of a row. Each ratio is the median over repetitions of times in one repetition.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// The baseline.
    pub raw: Latency,
    /// The ORB.
    pub subject: Latency,
    /// Over the baseline.
    pub over_raw: Ratio,
    /// The baseline's over this: what of the baseline's rate it reaches.
    pub of_raw: Ratio,
    /// Over omniORB.
    pub over_omniorb: Option<Ratio>,
    /// Over JacORB.
    pub over_jacorb: Option<Ratio>,
}

/// Files that a suite writes.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Files {
    /// Write each row as a line of JSON to this file, too.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with all of it to this file, too.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Who took part in a row.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) peer: Peer,
    pub(crate) settings: Settings,
    /// Why it did not.
    pub(crate) missing: Option<String>,
}

/// The rows of one contest: the baseline's results come first.
pub(crate) fn rows(
    layout: &'static str,
    row: &str,
    who: &[Who],
    results: &[Option<Repeated>],
    load: f64,
) -> Vec<SuiteRow> {
    let of_peer = |peer: Peer| {
        let place = who.iter().position(|it| it.peer == peer)?;
        results.get(place + 1)?.as_ref()
    };
    let row_of = |(place, it): (usize, &Who)| {
        let compared = results[0].as_ref().zip(results[place + 1].as_ref()).map(|(raw, subject)| {
            let over_peer = |peer| match it.peer {
                Peer::Ironorb => of_peer(peer).map(|other| subject.over(other)),
                _ => None,
            };
            Compared {
                raw: raw.calls.latency(),
                subject: subject.calls.latency(),
                over_raw: subject.over(raw),
                of_raw: raw.over(subject),
                over_omniorb: over_peer(Peer::Omniorb),
                over_jacorb: over_peer(Peer::Jacorb),
            }
        });
        let missing = || {
            let why = it.missing.as_deref().unwrap_or("not started");
            Outcome::Missing { missing: format!("{}: {why}", it.peer.title()) }
        };
        SuiteRow {
            layout,
            row: row.to_owned(),
            peer: it.peer,
            settings: it.settings.clone(),
            outcome: compared.map_or_else(missing, Outcome::Measured),
            extra: BTreeMap::new(),
            load,
        }
    };
    who.iter().enumerate().map(row_of).collect()
}

impl Measure {
    pub(crate) fn of(self, us: f64) -> f64 {
        match self {
            Measure::Micros => us,
            Measure::Nanos => us * 1e3,
            Measure::Rate => 1e6 / us,
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Measure::Micros => "us",
            Measure::Nanos => "ns",
            Measure::Rate => "calls/s",
        }
    }

    /// With as many digits as say something.
    pub(crate) fn text(self, us: f64) -> String {
        let value = self.of(us);
        if self == Measure::Rate { format!("{value:.0}") } else { format!("{value:.2}") }
    }
}

impl SuiteRow {
    /// Whose it is.
    pub(crate) fn side(&self) -> String {
        match self.peer {
            Peer::Ironorb => self.settings.label(),
            Peer::Omniorb | Peer::Jacorb => name(self.peer),
        }
    }

    /// This ORB as it comes.
    pub(crate) fn is_ours(&self) -> bool {
        self.peer == Peer::Ironorb && self.settings == Settings::default()
    }
}

impl SuiteReport {
    pub(crate) fn new(suite: Suite) -> SuiteReport {
        let machine = Machine::this();
        SuiteReport { machine, suite, rows: Vec::new(), targets: Vec::new(), charts: Vec::new() }
    }

    /// A goal that every row of this ORB is ahead of a peer's: the worst decides.
    pub(crate) fn goal_ahead(&mut self, layout: &'static str, peer: Peer) {
        let told = self.rows.iter().filter(|row| row.is_ours() && row.layout == layout).filter_map(|row| {
            let compared = row.outcome.measured()?;
            let over = if peer == Peer::Omniorb { compared.over_omniorb } else { compared.over_jacorb };
            Some((over?.median, row.row.clone()))
        });
        let told: Vec<(f64, String)> = told.collect();
        let ahead = told.iter().filter(|(ratio, _)| *ratio < 1.0).count();
        if let Some((worst, row)) = told.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
            let (suite, all, peer) = (self.suite.name, told.len(), peer.title());
            let what = format!("{suite}: every row / {peer}'s: {ahead} of {all} ahead (worst: {row})");
            self.targets.push(Target::at_most(layout, what, *worst, 1.0));
        }
    }

    /// Writes the files that were asked for.
    pub(crate) fn write(&self, files: &Files) -> Result<(), BenchError> {
        if let Some(file) = &files.json {
            let mut text = Vec::new();
            self.append_json(&mut text)?;
            write_text(file, &text)?;
        }
        if let Some(file) = &files.html {
            let mut page = head(self.suite.title);
            let _ = writeln!(page, "<pre>{}</pre>", escape(&self.machine.to_string()));
            page.push_str(&self.html()?);
            page.push_str(FOOT);
            write_text(file, page.as_bytes())?;
        }
        Ok(())
    }

    pub(crate) fn append_json(&self, text: &mut Vec<u8>) -> Result<(), BenchError> {
        append_lines(text, self.suite.name, "row", &self.rows, &self.machine)?;
        append_lines(text, self.suite.name, "target", &self.targets, &self.machine)
    }

    /// What stands between the head and the foot of a page.
    pub(crate) fn html(&self) -> Result<String, BenchError> {
        let mut page = String::new();
        for chart in &self.charts {
            page.push_str(&chart.html()?);
        }
        let _ = writeln!(page, "<pre>{}</pre>", escape(&Body(self).to_string()));
        Ok(page)
    }
}

struct Body<'a>(&'a SuiteReport);

impl fmt::Display for SuiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        Body(self).fmt(f)
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SuiteReport { suite, rows, targets, .. } = self.0;
        let unit = suite.measure.unit();
        let mut layout = "";
        for row in rows {
            if row.layout != layout {
                layout = row.layout;
                writeln!(f, "\n{}, client and server on {layout}", suite.title)?;
                writeln!(
                    f,
                    "{:<24} {:<28} {:>10} {:>10} {:>10} {:>10}  {:>6} {:>13} {:>5}",
                    "", "", "baseline", unit, "best", "p99", "ratio", "min..max", "load"
                )?;
            }
            write!(f, "{:<24} {:<28} ", row.row, row.side())?;
            match &row.outcome {
                Outcome::Missing { missing } => writeln!(f, "{missing}")?,
                Outcome::Measured(it) => {
                    let text = |us| suite.measure.text(us);
                    let ratio = if suite.measure == Measure::Rate { it.of_raw } else { it.over_raw };
                    let spread = format!("{:.2}..{:.2}", ratio.min, ratio.max);
                    write!(
                        f,
                        "{:>10} {:>10} {:>10} {:>10}  {:>6.3} {spread:>13} {:>5.1}",
                        text(it.raw.median_us),
                        text(it.subject.median_us),
                        text(it.subject.best_us),
                        text(it.subject.p99_us),
                        ratio.median,
                        row.load
                    )?;
                    for (name, value) in &row.extra {
                        write!(f, "  {name} {value:.1}")?;
                    }
                    writeln!(f)?;
                }
            }
        }
        writeln!(f, "\n{}", suite.notes)?;
        fmt_targets(targets, f)
    }
}
