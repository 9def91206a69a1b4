//! What became of a task's releases, and the table of it.

use std::fmt;
use std::time::Duration;

use ironorb::{SystemException, SystemExceptionKind};

/// What became of the releases of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The task.
    pub task: String,
    /// The releases a second, in thousandths.
    pub rate_mhz: u64,
    /// The time from a release to the end of all that it causes.
    pub deadline: Duration,
    /// The bound of the analysis; `None` if it has none.
    pub bound: Option<Duration>,
    /// Releases that have ended, in time or not.
    pub calls: u64,
    /// The longest response of calls that have succeeded.
    pub longest: Duration,
    /// Calls that succeeded after the task's deadline.
    pub late: u64,
    /// Calls that the stub ended at their deadline, or the server refused because they were late: TIMEOUT.
    pub timeouts: u64,
    /// Releases that found the task still busy, and were left out.
    pub skipped: u64,
    /// Calls that failed otherwise.
    pub failures: u64,
}

impl Tally {
    /// Counts a release that has ended after this time.
    pub fn add(&mut self, outcome: &Result<(), SystemException>, response: Duration) {
        self.calls += 1;
        match outcome {
            Ok(()) => {
                self.longest = self.longest.max(response);
                self.late += u64::from(response > self.deadline);
            }
            Err(e) if e.kind == SystemExceptionKind::Timeout => self.timeouts += 1,
            Err(_) => self.failures += 1,
        }
    }

    /// Releases that did not meet the deadline, for any reason.
    pub fn misses(&self) -> u64 {
        self.late + self.timeouts + self.skipped + self.failures
    }
}

/// The tallies of all tasks, as text.
pub struct Summary<'t>(pub &'t [Tally]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<10} {:>6} {:>6} {:>11} {:>11} {:>9} {:>7} {:>5} {:>8} {:>8} {:>7}",
            "task",
            "rate",
            "calls",
            "longest",
            "bound",
            "deadline",
            "misses",
            "late",
            "timeouts",
            "skipped",
            "failed"
        )?;
        self.0.iter().try_for_each(|tally| line(f, tally))
    }
}

fn line(f: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    writeln!(
        f,
        "{:<10} {:>3} Hz {:>6} {:>11} {:>11} {:>9} {:>7} {:>5} {:>8} {:>8} {:>7}",
        tally.task,
        tally.rate_mhz / 1_000,
        tally.calls,
        milliseconds(tally.longest),
        tally.bound.map_or_else(|| "unbounded".to_owned(), milliseconds),
        milliseconds(tally.deadline),
        tally.misses(),
        tally.late,
        tally.timeouts,
        tally.skipped,
        tally.failures
    )
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3}ms", time.as_secs_f64() * 1e3)
}
