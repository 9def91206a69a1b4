//! What the suite was to show, and whether it has.

use super::order::Algorithm;
use super::report::{CellRow, LatencyReport};
use crate::settings::Settings;
use crate::statistics::Ratio;
use crate::targets::Target;
use crate::variant::{Invocation, Mode, Peer};

/// The goals that these rows tell about.
pub(super) fn targets(report: &LatencyReport) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut layouts: Vec<&'static str> = report.rows.iter().map(|row| row.layout).collect();
    layouts.dedup();
    for layout in layouts {
        let rows: Vec<&CellRow> = report.rows.iter().filter(|row| row.layout == layout).collect();
        targets.extend(ahead(layout, &rows, "omniORB", |row| row.outcome.measured()?.over_omniorb));
        targets.extend(ahead(layout, &rows, "JacORB", |row| row.outcome.measured()?.over_jacorb));
        targets.extend(scale(layout, &rows));
        targets.extend(activation(layout, report));
    }
    targets.extend(super::lookups::targets(&report.lookups));
    targets
}

fn is_default(row: &&&CellRow) -> bool {
    row.peer == Peer::Ironorb && row.settings == Settings::default()
}

/// Every row ahead of a peer: the worst decides.
fn ahead(
    layout: &'static str,
    rows: &[&CellRow],
    peer: &str,
    over: fn(&CellRow) -> Option<Ratio>,
) -> Option<Target> {
    let told: Vec<(f64, &CellRow)> =
        rows.iter().filter(is_default).filter_map(|row| Some((over(row)?.median, *row))).collect();
    let ahead = told.iter().filter(|(ratio, _)| *ratio < 1.0).count();
    let (worst, row) = told.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let what = format!("every row / {peer}'s: {ahead} of {} ahead (worst: {})", told.len(), short(row));
    Some(Target::at_most(layout, what, *worst, 1.0))
}

fn short(row: &CellRow) -> String {
    let (mode, invocation) = (crate::variant::name(row.mode), crate::variant::name(row.invocation));
    format!("{} {} {mode} {invocation} x{}", row.units, row.ty, row.objects)
}

/// The most objects over one of them, static calls, round robin.
fn scale(layout: &'static str, rows: &[&CellRow]) -> Option<Target> {
    let is_it = |row: &&&CellRow| {
        (row.mode, row.algorithm, row.invocation) == (Mode::Twoway, Algorithm::Robin, Invocation::Sii)
            && row.ty.0.is_none()
    };
    let row = rows.iter().filter(is_default).filter(is_it).max_by_key(|row| row.objects)?;
    let over_one = row.outcome.measured()?.over_one?;
    let what = format!("void, {} objects / one of them", row.objects);
    Some(Target::at_most(layout, what, over_one.median, 1.02))
}

/// Memory and time of an object, where there are most.
fn activation(layout: &'static str, report: &LatencyReport) -> Vec<Target> {
    let is_it = |row: &&super::ActivationRow| {
        row.peer == Peer::Ironorb && row.settings == Settings::default() && row.layout == layout
    };
    let Some(row) = report.activations.iter().filter(is_it).max_by_key(|row| row.objects) else {
        return Vec::new();
    };
    let bytes = row.resident_bytes_each - f64::from(row.servant_bytes);
    vec![
        Target::at_most(
            layout,
            format!("bytes an object beside its servant, {} objects", row.objects),
            bytes,
            64.0,
        ),
        Target::at_most(
            layout,
            format!("us to activate an object, {} objects", row.objects),
            row.us_each,
            0.3,
        ),
    ]
}
