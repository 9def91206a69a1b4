//! A report as text.

use std::fmt;

use crate::analysis::percent;
use crate::report::*;

impl fmt::Display for Report {
    /// The verdict, the table of tasks, the loads, the anomalies, and what to change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict.sentence())?;
        write_tasks(f, &self.tasks)?;
        writeln!(f, "\nutilisation")?;
        for unit in &self.units {
            writeln!(f, "  {:<24} {:>7}", unit.name, percent(unit.utilisation_ppm))?;
        }
        if !self.anomalies.is_empty() {
            writeln!(f, "\nanomalies")?;
        }
        for anomaly in &self.anomalies {
            writeln!(f, "  {:<8} {}", anomaly.severity.word(), anomaly.text)?;
        }
        if !self.suggestions.is_empty() {
            writeln!(f, "\nany one of these changes helps")?;
        }
        for suggestion in &self.suggestions {
            writeln!(f, "  {suggestion}")?;
        }
        Ok(())
    }
}

fn write_tasks(f: &mut fmt::Formatter<'_>, tasks: &[TaskReport]) -> fmt::Result {
    let width = tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or(4).max(4);
    writeln!(
        f,
        "\n{:<width$}  {:>8}  {:>14}  {:>14}  {:>7}  {:<10}  verdict",
        "task", "priority", "response", "deadline", "used", "bound"
    )?;
    for task in tasks {
        let response = task.response.map_or_else(|| "?".to_owned(), |response| response.to_string());
        let used =
            task.response.map_or_else(|| "?".to_owned(), |response| share(response.0, task.deadline.0));
        writeln!(
            f,
            "{:<width$}  {:>8}  {:>14}  {:>14}  {:>7}  {:<10}  {}",
            task.name,
            task.priority,
            response,
            task.deadline,
            used,
            task.proof.word(),
            task.verdict.word()
        )?;
    }
    Ok(())
}

/// A response's share of a deadline, rounded up.
fn share(response: u64, deadline: u64) -> String {
    if response == u64::MAX {
        return "-".to_owned();
    }
    let ppm = (u128::from(response) * 1_000_000).div_ceil(u128::from(deadline.max(1)));
    percent(u64::try_from(ppm).unwrap_or(u64::MAX))
}

impl Verdict {
    fn sentence(self) -> &'static str {
        match self {
            Verdict::Fits => "fits: every task meets its deadline",
            Verdict::Unknown => "unknown: the analysis cannot speak for every task",
            Verdict::DoesNotFit => "does not fit: a task may miss its deadline",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::Unknown => "unknown",
            Verdict::DoesNotFit => "does not fit",
        }
    }
}

impl Proof {
    fn word(self) -> &'static str {
        match self {
            Proof::Exact => "exact",
            Proof::Sufficient => "sufficient",
        }
    }
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Fatal => "fatal",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::None => "note",
        }
    }
}
