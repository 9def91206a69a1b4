//! The doctor's report: as a table for people, as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::finding::{Finding, Severity};
use crate::rt::measure::{Measured, Measurements};

/// All that the doctor has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) preemption: Option<&'static str>,
    /// The stolen part of all processors' time, in per cent.
    pub(super) stolen: Option<f64>,
    pub(super) findings: Vec<Finding>,
    /// `None` unless they were asked for.
    pub(super) measurements: Option<Measurements>,
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
            "scheduling_class": self.measurements.as_ref().map(|them| them.class),
            "measured": self.measurements.as_ref().map(|them| them.all.iter().map(Measured::to_json).collect::<Vec<_>>()),
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
        if let Some(measurements) = &self.measurements {
            text += &table(measurements);
        }
        text
    }

    fn head(&self) -> String {
        let preemption = self.preemption.unwrap_or("preemption unknown");
        let stolen = self.stolen.map_or_else(|| "unknown".to_owned(), |part| format!("{part:.2} %"));
        format!("Linux {}, {preemption}, steal time {stolen}\n\n", self.kernel)
    }
}

fn table(measurements: &Measurements) -> String {
    let mut text = format!("\nMeasured in {}, in microseconds:\n\n", measurements.class);
    let width = measurements.all.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let head = ["MIN", "MEDIAN", "P99", "MAX", "SAMPLES"].map(|word| format!("{word:>9}")).concat();
    let _ = writeln!(text, "{:<width$}{head}  OF", "");
    for it in &measurements.all {
        let times = [Some(it.min_ns()), it.quantile_ns(0.5), it.quantile_ns(0.99), Some(it.max_ns())];
        let cells =
            times.map(|ns| format!("{:>9}", ns.map(microseconds).unwrap_or_else(|| "-".to_owned()))).concat();
        let _ = writeln!(text, "{:<width$}{cells}{:>9}  {}", it.name, it.samples(), it.what);
    }
    text
}

fn microseconds(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{:.3}", ns as f64 / 1e3),
        _ => format!("{:.1}", ns as f64 / 1e3),
    }
}
