//! Records the results of a run for the matrix of `docs/interop.md`, in the folder that the environment
//! names: one file for each test program, one line for each case.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::peer::{ClientReport, Peer};
use crate::skips::{Circumstances, Reason, skips};

/// The variable that names the folder of the results. Without it nothing is recorded.
pub const FOLDER: &str = "IRONORB_INTEROP_RESULTS";

/// IronORB's side in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The server; the peer calls.
    Server,
    /// The client; the peer serves.
    Client,
}

/// The outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It passed.
    Pass,
    /// It failed.
    Fail,
    /// It was left out, for the reason with this number.
    Skip(u32),
}

/// One case of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The ORB that IronORB is tested against.
    pub peer: Peer,
    /// IronORB's side.
    pub side: Side,
    /// The setup, such as `GIOP 1.2`.
    pub setup: String,
    /// The name of the case.
    pub case: String,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Line {
    /// Appends the line to the results, if a folder is named.
    ///
    /// # Panics
    ///
    /// If the folder cannot be written.
    pub fn record(&self) {
        static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
        let file = FILE.get_or_init(|| {
            let folder = std::env::var_os(FOLDER)?;
            let path = Path::new(&folder).join(format!("{}.txt", std::process::id()));
            let file = OpenOptions::new().create(true).append(true).open(path);
            Some(Mutex::new(file.expect("the folder of the results can be written")))
        });
        if let Some(file) = file {
            let text = self.text();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(text.as_bytes()).expect("the folder of the results can be written");
        }
    }

    fn text(&self) -> String {
        let side = if self.side == Side::Server { "server" } else { "client" };
        let outcome = match self.outcome {
            Outcome::Pass => "pass".to_owned(),
            Outcome::Fail => "fail".to_owned(),
            Outcome::Skip(number) => number.to_string(),
        };
        format!("{}\t{side}\t{}\t{}\t{outcome}\n", self.peer.name(), self.setup, self.case)
    }

    /// Parses a line that [`Line::record`] wrote.
    pub fn parse(text: &str) -> Option<Line> {
        let mut parts = text.split('\t');
        let (peer, side, setup, case, outcome) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        Some(Line {
            peer: Peer::ALL.into_iter().find(|other| other.name() == peer)?,
            side: match side {
                "server" => Side::Server,
                "client" => Side::Client,
                _ => return None,
            },
            setup: setup.to_owned(),
            case: case.to_owned(),
            outcome: match outcome {
                "pass" => Outcome::Pass,
                "fail" => Outcome::Fail,
                number => Outcome::Skip(number.parse().ok()?),
            },
        })
    }
}

/// Runs and records a case that is a test of its own.
///
/// # Panics
///
/// When the case panics.
pub fn case<T>(peer: Peer, side: Side, case: &str, body: impl FnOnce() -> T) -> T {
    let result = catch_unwind(AssertUnwindSafe(body));
    let outcome = if result.is_ok() { Outcome::Pass } else { Outcome::Fail };
    Line { peer, side, setup: String::new(), case: case.to_owned(), outcome }.record();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Records the results of the peer's client with IronORB's server, and checks that no case failed and that
/// only listed cases were left out.
///
/// # Panics
///
/// If a case failed or was left out without a reason.
#[track_caller]
pub fn check_client(of: &Circumstances, setup: &str, report: &ClientReport, skips: &[(&str, Reason)]) {
    let peer = of.peer.expect("a client's report is a peer's");
    let line = |case: &str, outcome| {
        Line { peer, side: of.side, setup: setup.to_owned(), case: case.to_owned(), outcome }.record();
    };
    report.passed.iter().for_each(|case| line(case, Outcome::Pass));
    report.failed.iter().for_each(|(case, _)| line(case, Outcome::Fail));
    for (case, _) in &report.skipped {
        let reason = skips.iter().find(|(pattern, _)| covers(pattern, case));
        let (_, reason) = reason.unwrap_or_else(|| panic!("{case} was left out without a reason"));
        line(case, Outcome::Skip(reason.number));
    }
    for (pattern, reason) in skips {
        let is_there = report.skipped.iter().any(|(case, _)| covers(pattern, case));
        assert!(is_there, "{pattern} is to be left out ({}), and does not exist", reason.text);
    }
    assert!(report.failed.is_empty() && report.is_complete, "{}", report.text);
}

/// Runs the peer's client without the cases that the list leaves out, and checks its results.
///
/// # Panics
///
/// If a case failed.
#[track_caller]
pub fn run_client(of: &Circumstances, setup: &str, arguments: &[&str]) {
    let peer = of.peer.expect("a client is a peer's");
    let skips = skips(of);
    let texts: Vec<String> = skips.iter().map(|(case, reason)| format!("{case}={}", reason.number)).collect();
    let mut all: Vec<&str> = texts.iter().flat_map(|text| ["--skip", text]).collect();
    all.extend(arguments);
    check_client(of, setup, &peer.run_client(&all), &skips);
}

/// Records the results of IronORB's client with the peer's server, and checks that no case failed.
///
/// # Panics
///
/// If a case failed.
#[track_caller]
pub fn run_cases(of: &Circumstances, setup: &str, target: &crate::cases::Target) {
    let skips = skips(of);
    let names: Vec<(&str, &str)> = skips.iter().map(|(case, reason)| (*case, reason.text)).collect();
    let report = crate::cases::run(target, &names);
    if let Some(peer) = of.peer {
        let line = |case: &str, outcome| {
            Line { peer, side: of.side, setup: setup.to_owned(), case: case.to_owned(), outcome }.record();
        };
        report.passed.iter().for_each(|case| line(case, Outcome::Pass));
        for (case, _) in &report.failed {
            line(case, Outcome::Fail);
        }
        for case in &report.skipped {
            let reason = skips.iter().find(|(pattern, _)| covers(pattern, case));
            line(case, Outcome::Skip(reason.map_or(0, |(_, reason)| reason.number)));
        }
    }
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
}

/// A pattern covers the case of its name, and the group `pattern/...`.
pub fn covers(pattern: &str, case: &str) -> bool {
    let rest = case.strip_prefix(pattern);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
