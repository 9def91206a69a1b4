//! The levels of warnings: reported, silenced, or treated as errors.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::{Code, Diagnostic, Severity};
use crate::source::Sources;

/// The levels of warnings and notes. By default all are reported. Errors are always reported.
///
/// The level of one code takes precedence over the level for all.
#[derive(Debug, Clone, Default)]
pub struct WarningLevels {
    /// True for a code that is an error, false for one that is silent.
    by_code: BTreeMap<Code, bool>,
    all_are_errors: bool,
    included_are_silent: bool,
}

impl WarningLevels {
    /// Silences a code.
    pub fn allow(&mut self, code: Code) {
        self.by_code.insert(code, false);
    }

    /// Makes a code an error.
    pub fn deny(&mut self, code: Code) {
        self.by_code.insert(code, true);
    }

    /// Makes every warning an error; notes stay notes.
    pub fn deny_all(&mut self) {
        self.all_are_errors = true;
    }

    /// Silences the warnings and notes of included files; compiling those files reports them.
    pub fn allow_included(&mut self) {
        self.included_are_silent = true;
    }

    /// The severity that a diagnostic gets; `None` when it is silenced.
    pub(crate) fn severity(&self, diagnostic: &Diagnostic) -> Option<Severity> {
        if diagnostic.severity == Severity::Error {
            return Some(Severity::Error);
        }
        if let Some(&is_error) = self.by_code.get(&diagnostic.code) {
            return is_error.then_some(Severity::Error);
        }
        if self.included_are_silent && diagnostic.primary.span.file.index() != 0 {
            return None;
        }
        let is_error = self.all_are_errors && diagnostic.severity == Severity::Warning;
        Some(if is_error { Severity::Error } else { diagnostic.severity })
    }
}

/// The warnings that a build of several files has reported already, so that it reports those of a shared
/// included file once; see [`Outcome::drop_reported`](crate::Outcome::drop_reported).
#[derive(Debug, Clone, Default)]
pub struct ReportedWarnings {
    places: HashSet<(PathBuf, u32, Code)>,
}

impl ReportedWarnings {
    /// Records a warning or note; true if it is new at its place.
    pub(crate) fn is_new(&mut self, diagnostic: &Diagnostic, sources: &Sources) -> bool {
        let span = diagnostic.primary.span;
        let path = sources.file(span.file).path().to_path_buf();
        self.places.insert((path, span.start, diagnostic.code))
    }
}
