//! What the doctor says of one thing.

use std::fmt;

use serde_json::{Value, json};

/// How much a finding matters to threads with priorities. Ordered: the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// As a real-time system wants it.
    Ok,
    /// It costs some microseconds, or is to be known. Bounds hold.
    Note,
    /// It could not be seen. Counts less than a warning: a missing file is no fault.
    Unknown,
    /// Threads with priorities are late at times.
    Warning,
    /// Priorities have no effect.
    Problem,
}

impl Severity {
    pub(super) fn word(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Note => "note",
            Severity::Unknown => "unknown",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }
}

/// What was seen of one thing, and what to do.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// The thing's name, as `docs/rt-doctor.md` has it.
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    pub(super) seen: String,
    /// What to do; empty if nothing.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn ok(name: &'static str, seen: impl fmt::Display) -> Finding {
        Finding { name, severity: Severity::Ok, seen: seen.to_string(), advice: String::new() }
    }

    pub(super) fn note(name: &'static str, seen: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { severity: Severity::Note, advice: advice.to_string(), ..Finding::ok(name, seen) }
    }

    pub(super) fn unknown(name: &'static str, seen: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { severity: Severity::Unknown, ..Finding::note(name, seen, advice) }
    }

    pub(super) fn warning(name: &'static str, seen: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::note(name, seen, advice) }
    }

    pub(super) fn problem(name: &'static str, seen: impl fmt::Display, advice: impl fmt::Display) -> Finding {
        Finding { severity: Severity::Problem, ..Finding::note(name, seen, advice) }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "severity": self.severity.word(),
            "seen": self.seen,
            "advice": self.advice,
        })
    }
}
