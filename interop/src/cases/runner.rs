//! Runs and reports cases, and tests echoes in every direction of parameters. Knows no case by name.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ironorb::giop::Version;
use ironorb::{CompletionStatus, Orb, SystemException, SystemExceptionKind};

use crate::interop::SuiteRef;
use crate::results::covers;

/// The server under test and the circumstances.
#[derive(Debug)]
pub struct Target {
    /// The client's ORB, with an endpoint for callbacks.
    pub orb: Orb,
    /// The suite.
    pub suite: SuiteRef,
    /// The GIOP version of the calls.
    pub version: Version,
    /// Whether the reference offers code sets to choose from.
    pub code_sets: bool,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that passed.
    pub passed: Vec<String>,
    /// Cases that failed, each with what went wrong.
    pub failed: Vec<(String, String)>,
    /// Cases that were left out.
    pub skipped: Vec<String>,
}

/// A run in progress.
pub(super) struct Cases<'t> {
    pub(super) target: &'t Target,
    skips: Vec<(&'t str, bool)>,
    report: Report,
}

impl<'t> Cases<'t> {
    pub(super) fn new(target: &'t Target, skips: &[(&'t str, &'t str)]) -> Self {
        let skips = skips.iter().map(|(name, _)| (*name, false)).collect();
        Cases { target, skips, report: Report::default() }
    }

    /// Runs one case. It fails by a panic.
    pub(super) fn run(&mut self, name: &str, body: impl FnOnce(&SuiteRef)) {
        let mut is_skipped = false;
        for (pattern, used) in &mut self.skips {
            if covers(pattern, name) {
                *used = true;
                is_skipped = true;
            }
        }
        if is_skipped {
            self.report.skipped.push(name.to_owned());
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| body(&self.target.suite))) {
            Ok(()) => self.report.passed.push(name.to_owned()),
            Err(panic) => self.report.failed.push((name.to_owned(), message(&*panic))),
        }
    }

    /// Sends each value as `x` with its neighbour as `y`, and expects `x`, `x` and `y`.
    pub(super) fn echo<T: PartialEq + Debug>(
        &mut self,
        name: &str,
        values: &[T],
        call: impl Fn(&SuiteRef, &T, &T) -> Result<(T, T, T), SystemException>,
    ) {
        self.run(name, |suite| {
            for (at, x) in values.iter().enumerate() {
                let y = &values[(at + 1) % values.len()];
                let (result, inout, out) = call(suite, x, y).unwrap_or_else(|e| panic!("value {at}: {e}"));
                // The values may take megabytes, so the message has their first lines only.
                assert!(result == *x, "the result of value {at} is {}", shortened(&result));
                assert!(inout == *x, "the inout of value {at} is {}", shortened(&inout));
                assert!(out == *y, "the out of value {at} is {}", shortened(&out));
            }
        });
    }

    pub(super) fn finish(mut self) -> Report {
        for (name, used) in self.skips {
            if !used {
                let why = "is to be left out, and does not exist";
                self.report.failed.push((name.to_owned(), why.to_owned()));
            }
        }
        self.report
    }
}

/// Expects a system exception of one kind.
#[track_caller]
pub(super) fn expect_exception<T: Debug>(
    result: Result<T, SystemException>,
    kind: SystemExceptionKind,
    completed: CompletionStatus,
) {
    match result {
        Err(e) if (e.kind, e.completed) == (kind, completed) => {}
        Err(e) => panic!("{} {completed:?} expected, and not {e}", kind.name()),
        Ok(value) => panic!("{} expected, and not {}", kind.name(), shortened(&value)),
    }
}

fn shortened(value: &impl Debug) -> String {
    let mut text = format!("{value:?}");
    if let Some((end, _)) = text.char_indices().nth(300) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "panicked".to_owned(),
    }
}
