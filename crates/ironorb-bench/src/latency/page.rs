//! The page of the suite: the paper's figures with what was measured here.

use std::fmt::Write as _;
use std::path::Path;

use plotters::style::{BLACK, RGBColor};

use super::lookups::LookupRow;
use super::order::Algorithm;
use super::report::{CellRow, LatencyReport, Measured};
use crate::chart::{Axis, Chart, FOOT, Scale, Series, escape, head};
use crate::error::BenchError;
use crate::report::{Outcome, write_text};
use crate::variant::{CallType, Invocation, Mode, Peer, name};

/// Writes the page.
pub(super) fn write(report: &LatencyReport, file: &Path) -> Result<(), BenchError> {
    let mut page = head("Latency of calls");
    let _ = writeln!(page, "<pre>{}</pre>", escape(&report.machine.to_string()));
    page.push_str(&body(report)?);
    page.push_str(FOOT);
    write_text(file, page.as_bytes())
}

/// What stands between the head and the foot. A String takes everything that is written to it.
pub(crate) fn body(report: &LatencyReport) -> Result<String, BenchError> {
    let mut page = String::from(
        "<p>Microseconds of the median call, and beside it a plain socket that carries the same bytes in the same run. The \
         paper's figures 4 to 7 are those without parameters against the number of objects, figures 9 to 16 those with octets \
         and structs against the number of units; it has no numbers beside the lines but those of the table below.</p>\n",
    );
    let calls = by_objects(&report.rows).into_iter().chain(by_units(&report.rows));
    for chart in calls.chain(by_count(&report.lookups)) {
        page.push_str(&chart.html()?);
    }
    let text = Body(report).to_string();
    let _ = writeln!(page, "<h2>Figures</h2>\n<pre>{}</pre>", escape(&text));
    Ok(page)
}

struct Body<'a>(&'a LatencyReport);

impl std::fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt_body(f)
    }
}

/// Calls without parameters against the number of objects.
fn by_objects(rows: &[CellRow]) -> Vec<Chart> {
    let is_void = |row: &&CellRow| row.ty == CallType(None);
    let key = |row: &CellRow| (row.layout, row.transport, row.algorithm, row.mode);
    let mut charts = Vec::new();
    for plot in partition(rows.iter().filter(is_void), key) {
        let first = plot[0];
        let is_wide = plot.iter().any(|row| row.objects > 1000);
        let figure = match (first.algorithm, is_wide) {
            (Algorithm::Train, _) => "figures 4 and 5: ",
            (Algorithm::Robin, _) => "figures 6 and 7: ",
            (Algorithm::Random, _) => "",
        };
        charts.push(Chart {
            title: format!(
                "{figure}void {}, {}, over {}, on {}",
                name(first.mode),
                name(first.algorithm),
                name(first.transport),
                first.layout
            ),
            x: Axis {
                name: "objects",
                scale: if is_wide { Scale::Log10 } else { Scale::Linear },
                text: |objects| format!("{objects:.0}"),
            },
            y: MICROSECONDS,
            lines: lines(&plot, |row| row.objects as f64),
            crosses: Vec::new(),
            notes: notes(&plot),
        });
    }
    charts
}

/// What finding takes against how many there are.
fn by_count(rows: &[LookupRow]) -> Vec<Chart> {
    rows.chunk_by(|a, b| (a.sought, a.among) == (b.sought, b.among))
        .map(|table| Chart {
            title: format!("finding an {} among {}, in one process", table[0].sought, table[0].among),
            x: Axis { name: table[0].among, scale: Scale::Log10, text: |count| format!("{count:.0}") },
            y: Axis { name: "ns", scale: Scale::Log10, text: |ns| format!("{ns:.0}") },
            lines: table
                .chunk_by(|a, b| a.strategy == b.strategy)
                .zip(STRATEGY_COLORS.iter().cycle())
                .map(|(strategy, color)| Series {
                    label: strategy[0].strategy.clone(),
                    color: *color,
                    points: strategy.iter().map(|row| (row.count as f64, row.ns)).collect(),
                })
                .collect(),
            crosses: Vec::new(),
            notes: Vec::new(),
        })
        .collect()
}

/// The default one is as our calls are.
const STRATEGY_COLORS: [RGBColor; 4] =
    [RGBColor(0, 40, 200), RGBColor(0, 150, 130), RGBColor(230, 90, 0), RGBColor(170, 0, 0)];

/// Calls with sequences against their length: for one object and for many.
fn by_units(rows: &[CellRow]) -> Vec<Chart> {
    let has_units = |row: &&CellRow| row.units > 0;
    let key = |row: &CellRow| (row.layout, row.transport, row.algorithm, row.mode, row.ty, row.objects);
    let mut charts = Vec::new();
    for plot in partition(rows.iter().filter(has_units), key) {
        let first = plot[0];
        charts.push(Chart {
            title: format!(
                "{}s {}, {} objects, {}, over {}, on {}",
                first.ty,
                name(first.mode),
                first.objects,
                name(first.algorithm),
                name(first.transport),
                first.layout
            ),
            x: Axis { name: "units", scale: Scale::Log2, text: |units| format!("{units:.0}") },
            y: Axis { scale: Scale::Log10, ..MICROSECONDS },
            lines: lines(&plot, |row| row.units as f64),
            crosses: Vec::new(),
            notes: notes(&plot),
        });
    }
    charts
}

const MICROSECONDS: Axis = Axis {
    name: "us",
    scale: Scale::Linear,
    text: |us| if us < 10.0 { format!("{us:.1}") } else { format!("{us:.0}") },
};

fn partition<'a, K: PartialEq>(
    rows: impl Iterator<Item = &'a CellRow>,
    key: impl Fn(&CellRow) -> K,
) -> Vec<Vec<&'a CellRow>> {
    let mut parts: Vec<Vec<&CellRow>> = Vec::new();
    for row in rows {
        match parts.iter_mut().find(|part| key(part[0]) == key(row)) {
            Some(part) => part.push(row),
            None => parts.push(vec![row]),
        }
    }
    parts
}

/// The plain socket's line and each side's.
fn lines(rows: &[&CellRow], x: impl Fn(&CellRow) -> f64) -> Vec<Series> {
    let mut all = vec![Series { label: "plain socket".to_owned(), color: BLACK, points: Vec::new() }];
    let mut variants: Vec<String> = Vec::new();
    for row in rows {
        let Some(Measured { raw, subject, .. }) = row.outcome.measured() else { continue };
        let x = x(row);
        if !all[0].points.iter().any(|(known, _)| *known == x) {
            all[0].points.push((x, raw.median_us));
        }
        if !variants.iter().any(|known| known == row.settings.as_str()) {
            variants.push(row.settings.as_str().to_owned());
        }
        let variant = variants.iter().position(|known| known == row.settings.as_str()).unwrap_or(0);
        match all.iter_mut().find(|series| series.label == row.side()) {
            Some(series) => series.points.push((x, subject.median_us)),
            None => all.push(Series {
                label: row.side(),
                color: color(row, variant),
                points: vec![(x, subject.median_us)],
            }),
        }
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// Blue for ours, with other settings towards green; orange for omniORB, red for JacORB; lighter for dynamic calls.
fn color(row: &CellRow, variant: usize) -> RGBColor {
    let shade = match row.invocation {
        Invocation::Sii => 0,
        Invocation::DiiNew => 80,
        Invocation::DiiReused => 130,
        Invocation::DiiUnchanged => 170,
    };
    match row.peer {
        Peer::Ironorb => RGBColor(shade, (shade + 40 * variant.min(3) as u8).min(220), 200),
        Peer::Omniorb => RGBColor(230, 90 + shade / 2, shade / 2),
        Peer::Jacorb => RGBColor(170, shade, shade),
    }
}

fn notes(rows: &[&CellRow]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for row in rows {
        if let Outcome::Missing { missing } = &row.outcome
            && !notes.contains(missing)
        {
            notes.push(missing.clone());
        }
    }
    if rows.first().is_some_and(|row| row.mode == Mode::Oneway) {
        notes.push("a hundredth of a batch whose last call is answered".to_owned());
    }
    notes
}
