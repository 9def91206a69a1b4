//! The tables as text, ours beside the paper's.

use std::fmt;

use ironorb::probe::Stage;
use serde::Serialize;

use super::BreakdownRow;
use super::category::{Category, Part};
use super::paper::{self, PaperColumn};
use crate::variant::{Mode, ServantKind, name};

/// Which of the paper's analyses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Table 1 for the client, Table 2 for the server.
    Oneway,
    /// Table 3 for both.
    TwowayToDsi,
    /// None of them.
    Other,
}

/// Whose time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchedSide {
    /// The thread that calls.
    Client,
    /// The thread that serves.
    Server,
}

impl WatchedSide {
    /// As in the titles of the tables.
    pub fn name(self) -> &'static str {
        match self {
            WatchedSide::Client => "client-side",
            WatchedSide::Server => "server-side",
        }
    }
}

impl Table {
    pub(super) fn of(mode: Mode, servant: ServantKind) -> Table {
        match (mode, servant) {
            (Mode::Oneway, ServantKind::Static) => Table::Oneway,
            (Mode::Twoway, ServantKind::Dsi) => Table::TwowayToDsi,
            _ => Table::Other,
        }
    }

    /// As the paper counts them.
    pub(super) fn number(self, side: WatchedSide) -> Option<u8> {
        match (self, side) {
            (Table::Oneway, WatchedSide::Client) => Some(1),
            (Table::Oneway, WatchedSide::Server) => Some(2),
            (Table::TwowayToDsi, _) => Some(3),
            (Table::Other, _) => None,
        }
    }
}

/// Writes rows that differ only in their types and invocations as one table.
pub(super) fn fmt_table(rows: &[&BreakdownRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(first) = rows.first() else { return Ok(()) };
    let number = first.table.map_or_else(String::new, |number| format!("Table {number}: "));
    writeln!(
        f,
        "\n{number}{} overheads, {} calls to {} servants, {} over {}, client and server on {}",
        first.side.name(),
        name(first.mode),
        name(first.servant),
        first.buffer,
        name(first.transport),
        first.layout
    )?;
    rows.chunk_by(|a, b| a.ty == b.ty).try_for_each(|rows| fmt_type(rows, f))
}

fn fmt_type(rows: &[&BreakdownRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(first) = rows.first() else { return Ok(()) };
    let papers: Vec<PaperColumn> =
        paper::columns(Table::of(first.mode, first.servant), first.side, first.ty).collect();
    write!(f, "\n{:<28}", name(first.ty))?;
    rows.iter().try_for_each(|row| write!(f, "{:>16}", name(row.invocation)))?;
    if !papers.is_empty() {
        write!(f, "  |")?;
    }
    papers.iter().try_for_each(|paper| write!(f, "{:>17}", paper.orb))?;
    write!(f, "\n{:<28}", "")?;
    rows.iter().try_for_each(|_| write!(f, "{:>9} {:>6}", "ms", "%"))?;
    if !papers.is_empty() {
        write!(f, "  |")?;
    }
    papers.iter().try_for_each(|_| write!(f, "{:>10} {:>6}", "ms", "%"))?;
    writeln!(f)?;
    for category in Category::ALL {
        let parts: Vec<Part> = rows.iter().map(|row| category.part_of(&row.shares)).collect();
        let of_paper: Vec<_> = papers.iter().map(|paper| paper.find(category)).collect();
        if parts.iter().all(Part::is_nothing) && of_paper.iter().all(Option::is_none) {
            continue;
        }
        write!(f, "{:<28}", category.name())?;
        parts.iter().try_for_each(|part| fmt_part(*part, f))?;
        if !papers.is_empty() {
            write!(f, "  |")?;
        }
        for part in of_paper {
            match part {
                Some((ms, percent)) => write!(f, "{ms:>10} {percent:>6.2}")?,
                None => write!(f, "{:>10} {:>6}", "-", "")?,
            }
        }
        writeln!(f)?;
        fmt_stages(category, rows, !papers.is_empty(), f)?;
    }
    write!(f, "{:<28}", "all")?;
    rows.iter().try_for_each(|row| fmt_part(Part::new(row.shares.elapsed_us, 100.0), f))?;
    writeln!(f, "{}", if papers.is_empty() { "" } else { "  |" })
}

/// The stages of a category of which more than one was entered.
fn fmt_stages(
    category: Category,
    rows: &[&BreakdownRow],
    beside_paper: bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let part_of = |row: &BreakdownRow, stage| {
        row.shares.find(stage).map_or_else(Part::default, |share| Part::new(share.us, share.percent))
    };
    let is_entered = |stage: &Stage| rows.iter().any(|row| !part_of(row, *stage).is_nothing());
    let entered: Vec<Stage> = category.stages().iter().copied().filter(is_entered).collect();
    if entered.len() < 2 {
        return Ok(());
    }
    for stage in entered {
        write!(f, "  {:<26}", stage.name())?;
        rows.iter().try_for_each(|row| fmt_part(part_of(row, stage), f))?;
        writeln!(f, "{}", if beside_paper { "  |" } else { "" })?;
    }
    Ok(())
}

fn fmt_part(part: Part, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{:>9.2} {:>6.2}", part.ms, part.percent)
}
