//! What was to be reached, and whether it has been: the last table of a report.

use std::fmt;

use serde::Serialize;

/// One goal, on one placement and transport.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What is compared.
    pub target: String,
    /// At least so much, or at most.
    pub bound: f64,
    /// `at least` or `at most`.
    pub sense: &'static str,
    /// The figure: the worst of all rows that the goal is about, each the median of its repetitions.
    pub figure: f64,
    /// Whether the figure keeps to the bound.
    pub met: bool,
}

impl Target {
    /// One that a figure must not pass.
    pub(crate) fn at_most(
        layout: &'static str,
        target: impl Into<String>,
        figure: f64,
        bound: f64,
    ) -> Target {
        Target { layout, target: target.into(), bound, sense: "at most", figure, met: figure <= bound }
    }

    /// One that a figure must reach.
    pub(crate) fn at_least(
        layout: &'static str,
        target: impl Into<String>,
        figure: f64,
        bound: f64,
    ) -> Target {
        Target { layout, target: target.into(), bound, sense: "at least", figure, met: figure >= bound }
    }
}

pub(crate) fn fmt_table(targets: &[Target], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if targets.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{:<82} {:>6} {:>14}  {:<6} on", "target", "figure", "bound", "")?;
    for target in targets {
        writeln!(
            f,
            "{:<82} {:>6.3} {:>9} {:<4.2}  {:<6} {}",
            target.target,
            target.figure,
            target.sense,
            target.bound,
            if target.met { "met" } else { "missed" },
            target.layout,
        )?;
    }
    Ok(())
}
