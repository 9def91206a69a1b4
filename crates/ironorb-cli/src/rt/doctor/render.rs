//! The doctor's report: as a table for people, as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::finding::{Finding, Severity};

/// All that the doctor has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) preemption: Option<&'static str>,
    /// The stolen part of all processors' time, in per cent.
    pub(super) stolen: Option<f64>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    pub(super) fn worst(&self) -> Severity {
        self.findings.iter().map(|it| it.severity).max().unwrap_or(Severity::Ok)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "kernel": self.kernel,
            "preemption": self.preemption,
            "stolen_per_cent": self.stolen,
            "worst": self.worst().word(),
            "findings": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }

    /// The worst first, with what to do below each.
    pub(super) fn to_text(&self) -> String {
        let mut text = self.head();
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|it| std::cmp::Reverse(it.severity));
        let width = findings.iter().map(|it| it.name.len()).max().unwrap_or(0);
        for Finding { name, severity, seen, advice } in findings {
            let _ = writeln!(text, "{:<8} {name:<width$}  {seen}", severity.word());
            if !advice.is_empty() {
                let _ = writeln!(text, "{:<8} {:<width$}  -> {advice}", "", "");
            }
        }
        text
    }

    fn head(&self) -> String {
        let preemption = self.preemption.unwrap_or("preemption unknown");
        let stolen = self.stolen.map_or_else(|| "unknown".to_owned(), |part| format!("{part:.2} %"));
        format!("Linux {}, {preemption}, steal time {stolen}\n\n", self.kernel)
    }
}
