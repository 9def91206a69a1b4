//! Probes: how long a thread is in which stage of a call.
//!
//! The ORB marks where its stages begin and end, one line each:
//!
//! ```
//! use ironorb_giop::probe::{self, Stage};
//!
//! {
//!     let _probe = probe::enter(Stage::Marshal);
//!     // ... writes the arguments
//! } // left
//! let times = probe::thread_snapshot().stage(Stage::Marshal);
//! assert_eq!(times.count, u64::from(probe::ENABLED));
//! ```
//!
//! Stages nest. At every change the time since the last one goes to the innermost stage of the thread and to no other, so
//! the [self times](StageTimes::self_time) of a thread add up to the time that it has been in any.
//!
//! Without the crate's feature `probes` - the ordinary build - a [`Guard`] has no size, entering and leaving are no
//! instructions, and snapshots are empty ([`ENABLED`] tells). With it each stage costs two readings of the system's
//! monotonic clock, of the order of 50 ns together; [`overhead`] measures that, and [`Snapshot::without`] takes it off.
//!
//! This is the one place in this crate that reads a clock, and the one that keeps anything for the process: what its
//! threads have counted.

use std::ops::AddAssign;
use std::time::Duration;

#[cfg(feature = "probes")]
mod on;
#[cfg(feature = "probes")]
use on as switched;

#[cfg(not(feature = "probes"))]
mod off;
#[cfg(not(feature = "probes"))]
use off as switched;

pub use switched::Guard;

/// Whether this build has the probes, that is the crate's feature `probes`.
pub const ENABLED: bool = cfg!(feature = "probes");

/// What a thread can be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// A dynamic request is made and its arguments are set.
    Populate,
    /// A client's call, what none of the other stages has: its route, connection and locks.
    Call,
    /// TypeCodes are compared with what is declared.
    TypeCode,
    /// Headers and values are written as GIOP and CDR, sequences of numbers too.
    Marshal,
    /// Blocks of at least [`COPY_BYTES_MIN`] bytes are copied as they are.
    Copy,
    /// Memory is asked for, for sequences that are read.
    Allocate,
    /// The system call that sends.
    Write,
    /// The peer takes no more bytes at present.
    WaitToWrite,
    /// Nothing has come. What of the receiving system call the thread has not been running, too.
    Wait,
    /// The system call that receives, as far as the thread has been running.
    Read,
    /// Messages and their headers are made out of what has come.
    Frame,
    /// Values are read, and given back after the upcall.
    Demarshal,
    /// A server's request, what none of the other stages has.
    Serve,
    /// From the object key to the servant, through adapters and their managers.
    ObjectLookup,
    /// From the operation's name to its skeleton or description.
    OperationLookup,
    /// The servant's own code.
    Upcall,
    /// What probes do beside the clock, such as asking how long the thread has been running.
    Probes,
}

impl Stage {
    /// All stages, in the order of their numbers.
    pub const ALL: [Stage; Stage::COUNT] = [
        Stage::Populate,
        Stage::Call,
        Stage::TypeCode,
        Stage::Marshal,
        Stage::Copy,
        Stage::Allocate,
        Stage::Write,
        Stage::WaitToWrite,
        Stage::Wait,
        Stage::Read,
        Stage::Frame,
        Stage::Demarshal,
        Stage::Serve,
        Stage::ObjectLookup,
        Stage::OperationLookup,
        Stage::Upcall,
        Stage::Probes,
    ];

    /// How many there are.
    pub const COUNT: usize = Stage::Probes as usize + 1;

    /// What it is called in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Populate => "populate",
            Stage::Call => "call",
            Stage::TypeCode => "typecode",
            Stage::Marshal => "marshal",
            Stage::Copy => "copy",
            Stage::Allocate => "allocate",
            Stage::Write => "write",
            Stage::WaitToWrite => "wait to write",
            Stage::Wait => "wait",
            Stage::Read => "read",
            Stage::Frame => "frame",
            Stage::Demarshal => "demarshal",
            Stage::Serve => "serve",
            Stage::ObjectLookup => "object lookup",
            Stage::OperationLookup => "operation lookup",
            Stage::Upcall => "upcall",
            Stage::Probes => "probes",
        }
    }

    /// The stage of a name.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// Fewer bytes are copied in less time than it takes to look at the clock twice; what copies them has their time.
pub const COPY_BYTES_MIN: usize = 1 << 10;

/// Begins a stage; it ends when the guard goes. Guards go in the reverse order, and in their own thread.
#[inline(always)]
pub fn enter(stage: Stage) -> Guard {
    switched::enter(stage)
}

/// [`Stage::Copy`] for so many bytes, if they are worth it.
#[inline(always)]
pub fn copying(bytes: usize) -> Guard {
    switched::enter_if(Stage::Copy, bytes >= COPY_BYTES_MIN)
}

/// What the calling thread has counted so far, the stage that it is in up to now.
pub fn thread_snapshot() -> Snapshot {
    switched::thread_snapshot()
}

/// The same of all threads of the process together, those that have ended as well. Of other threads it is what they had
/// counted at about this moment.
pub fn snapshot() -> Snapshot {
    switched::snapshot()
}

/// What probes themselves cost here, measured once in a process; takes a few milliseconds then, in which the calling
/// thread counts nothing. Zero in a build without them.
pub fn overhead() -> Overhead {
    switched::overhead()
}

/// What threads have counted up to a moment, or between two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    taken: Duration,
    stages: [StageTimes; Stage::COUNT],
}

/// What has been counted of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// How often it was entered.
    pub count: u64,
    /// How long threads were in it and in no stage within it.
    pub self_time: Duration,
    /// How long threads were in it, whatever else they entered from there. Grows only when it is left.
    pub total_time: Duration,
    /// How many stages were entered from it directly.
    pub entered_within: u64,
}

/// What one entering and leaving of a stage costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overhead {
    /// What of it counts as the stage's own, in nanoseconds.
    pub inside_ns: f64,
    /// What of it counts as that of the stage around, in nanoseconds.
    pub outside_ns: f64,
}

impl Snapshot {
    /// A difference of snapshots that was told by another process.
    pub fn from_parts(elapsed: Duration, stages: impl IntoIterator<Item = (Stage, StageTimes)>) -> Snapshot {
        let mut snapshot = Snapshot { taken: elapsed, ..Snapshot::default() };
        for (stage, times) in stages {
            snapshot.stages[stage as usize] = times;
        }
        snapshot
    }

    /// What was counted of one stage.
    pub fn stage(&self, stage: Stage) -> StageTimes {
        self.stages[stage as usize]
    }

    /// Every stage and what was counted of it.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, StageTimes)> + '_ {
        Stage::ALL.into_iter().zip(self.stages)
    }

    /// When it was taken, since some moment in the life of the process; of a [difference](Self::since) how long it
    /// spans.
    pub fn elapsed(&self) -> Duration {
        self.taken
    }

    /// The time in all stages together.
    pub fn accounted(&self) -> Duration {
        self.stages.iter().map(|times| times.self_time).sum()
    }

    /// What was counted between an earlier snapshot and this one of the same threads.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let mut between = Snapshot { taken: self.taken.saturating_sub(earlier.taken), ..Snapshot::default() };
        for ((to, now), before) in between.stages.iter_mut().zip(&self.stages).zip(&earlier.stages) {
            *to = StageTimes {
                count: now.count.saturating_sub(before.count),
                self_time: now.self_time.saturating_sub(before.self_time),
                total_time: now.total_time.saturating_sub(before.total_time),
                entered_within: now.entered_within.saturating_sub(before.entered_within),
            };
        }
        between
    }

    /// The same without what the probes cost: it is taken off the self times and given to [`Stage::Probes`], so that
    /// their sum stays. Total times stay as they are.
    pub fn without(&self, overhead: Overhead) -> Snapshot {
        let mut cleared = self.clone();
        let mut taken = Duration::ZERO;
        for times in &mut cleared.stages {
            let ns =
                times.count as f64 * overhead.inside_ns + times.entered_within as f64 * overhead.outside_ns;
            let ns = Duration::from_nanos(ns.max(0.0) as u64).min(times.self_time);
            times.self_time -= ns;
            taken += ns;
        }
        cleared.stages[Stage::Probes as usize].self_time += taken;
        cleared
    }
}

/// Of differences: what was counted in both, and as long as both.
impl AddAssign<&Snapshot> for Snapshot {
    fn add_assign(&mut self, other: &Snapshot) {
        self.taken += other.taken;
        for (to, from) in self.stages.iter_mut().zip(&other.stages) {
            *to += from;
        }
    }
}

impl AddAssign<&StageTimes> for StageTimes {
    fn add_assign(&mut self, other: &StageTimes) {
        self.count += other.count;
        self.self_time += other.self_time;
        self.total_time += other.total_time;
        self.entered_within += other.entered_within;
    }
}

#[cfg(test)]
mod tests;
