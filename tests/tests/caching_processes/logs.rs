//! What processes note of their writes and reads, and the check.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment in nanoseconds, on the clock of the machine that goes on while it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment(self.0 + time.as_nanos() as u64)
    }
}

/// The moment now.
pub(crate) fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    Moment(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A file to which a process appends lines. What it has appended stays when the process is killed.
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn append_to(path: &Path) -> Log {
        Log(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    pub(crate) fn wrote(&mut self, write: Write) {
        let Write { number, begun, done } = write;
        self.line(&format!("{number} {begun} {done}\n"));
    }

    pub(crate) fn read(&mut self, read: Read) {
        let Read { from, to, outcome } = read;
        self.line(&match outcome {
            Outcome::Value { number, written_at, is_held } => {
                format!("{from} {to} {number} {written_at} {}\n", u8::from(is_held))
            }
            Outcome::NotHeld => format!("{from} {to} not-held\n"),
            Outcome::Failed => format!("{from} {to} failed\n"),
        });
    }

    fn line(&mut self, line: &str) {
        self.0.write_all(line.as_bytes()).unwrap();
    }
}

/// A write: the object had this value from some instant between these moments on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) number: u64,
    pub(crate) begun: u64,
    pub(crate) done: u64,
}

/// A read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value {
        number: u64,
        written_at: u64,
        is_held: bool,
    },
    /// It was to ask no server, and nothing fresh enough was held.
    NotHeld,
    Failed,
}

impl Read {
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.outcome, Outcome::Value { is_held: true, .. })
    }
}

/// The writes in a file.
pub(crate) fn writes(path: &Path) -> Vec<Write> {
    lines(path, |words| {
        let [number, begun, done] = words.try_into().unwrap();
        let [number, begun, done] = [number, begun, done].map(number_of);
        Write { number, begun, done }
    })
}

/// The reads in a file.
pub(crate) fn reads(path: &Path) -> Vec<Read> {
    lines(path, |words| {
        let outcome = match words[2..] {
            ["not-held"] => Outcome::NotHeld,
            ["failed"] => Outcome::Failed,
            [number, written_at, is_held] => Outcome::Value {
                number: number_of(number),
                written_at: number_of(written_at),
                is_held: is_held == "1",
            },
            _ => panic!("{words:?}"),
        };
        Read { from: number_of(words[0]), to: number_of(words[1]), outcome }
    })
}

fn number_of(word: &str) -> u64 {
    word.parse().unwrap()
}

/// A line that is not complete yet does not count.
fn lines<T>(path: &Path, parse: impl Fn(&[&str]) -> T) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    complete.map(|line| parse(&line.split_whitespace().collect::<Vec<_>>())).collect()
}

/// What the reads of one client have against the promise. A write that its process did not live to note counts as made, but
/// ends nothing.
pub(crate) fn violations(writes: &[Write], reads: &[Read], lag: Duration) -> Vec<String> {
    let mut newest = 0;
    let mut found = Vec::new();
    for read in reads {
        let Outcome::Value { number, written_at, .. } = read.outcome else { continue };
        let after = writes.partition_point(|write| write.number <= number);
        let noted = after.checked_sub(1).map(|at| writes[at]).filter(|write| write.number == number);
        let gone = writes.get(after).map(|write| Moment(write.done) + lag);
        let wrong = match (noted, gone) {
            _ if written_at > read.to => "from the future".to_owned(),
            (Some(noted), _) if noted.begun != written_at => "never written".to_owned(),
            _ if number < newest => format!("backwards from {newest}"),
            (_, Some(gone)) if Moment(read.from) > gone => format!("too old by {} ns", read.from - gone.0),
            _ => String::new(),
        };
        newest = newest.max(number);
        if !wrong.is_empty() {
            found.push(format!("{wrong}: {read:?}"));
        }
    }
    found
}
