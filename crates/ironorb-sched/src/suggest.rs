//! What to change when a set does not fit. Each change is verified by an analysis before it is told.

use std::fmt;

use serde::Serialize;

use crate::analysis::Findings;
use crate::check::TaskSet;
use crate::time::Nanos;

/// A verified change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// What to change.
    pub text: String,
    /// The tasks that fit with the change, and do not without it.
    pub mends: Vec<String>,
    /// Whether the whole set then fits.
    pub mends_all: bool,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mended = if self.mends_all { "everything fits".to_owned() } else { self.mends.join(", ") + " fit" };
        write!(f, "{}: then {mended}", self.text)
    }
}

pub(crate) fn suggestions(_set: &TaskSet, _found: &Findings) -> Vec<Suggestion> {
    let _ = Nanos::ZERO;
    Vec::new()
}
