//! Probes: measure how long a thread is in each stage of a call.
//!
//! The ORB marks the start and end of each stage with one line:
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
//! Stages nest. At each change of stage, the time since the previous change counts for the thread's innermost
//! stage and for no other. So the [self times](StageTimes::self_time) of a thread add up to the time that it
//! has been in any stage.
//!
//! Without the crate's feature `probes` (the ordinary build), a [`Guard`] has no size, entering and leaving
//! take no instructions, and snapshots are empty ([`ENABLED`] is false). With it, each stage costs two
//! readings of the system's monotonic clock, about 50 ns together. [`overhead`] measures that cost, and
//! [`Snapshot::without`] subtracts it.
//!
//! Only this module of the crate reads a clock, and only it has process-wide state: the counters of the
//! threads.

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

/// Whether this build has probes: whether the crate's feature `probes` is on.
pub const ENABLED: bool = cfg!(feature = "probes");

/// A stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    /// A dynamic request is made and its arguments are set.
    Populate,
    /// The rest of a client's call: its route, connection and locks.
    Call,
    /// TypeCodes are compared with the declared types.
    TypeCode,
    /// Headers and values are written as GIOP and CDR, including sequences of numbers.
    Marshal,
    /// Blocks of at least [`COPY_BYTES_MIN`] bytes are copied unchanged.
    Copy,
    /// Memory is allocated for sequences that are read.
    Allocate,
    /// The system call that sends.
    Write,
    /// The peer accepts no more bytes for now.
    WaitToWrite,
    /// Nothing has arrived. Includes the part of the receiving system call in which the thread does not run.
    Wait,
    /// The receiving system call, as far as the thread runs in it.
    Read,
    /// Received bytes are cut into messages, and their headers are parsed.
    Frame,
    /// Values are read, and freed after the upcall.
    Demarshal,
    /// The rest of a server's request.
    Serve,
    /// The servant is looked up by the object key, through adapters and their managers.
    ObjectLookup,
    /// The skeleton or description is looked up by the operation's name.
    OperationLookup,
    /// The servant's own code.
    Upcall,
    /// The probes' own work besides the clock, such as measuring how long the thread has run.
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

    /// The number of stages.
    pub const COUNT: usize = Stage::Probes as usize + 1;

    /// The stage's name in tables and files.
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

    /// The stage with this name. `None` if there is none.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// Copying fewer bytes takes less time than two readings of the clock. Their time counts for the stage that
/// copies them.
pub const COPY_BYTES_MIN: usize = 1 << 10;

/// Starts a stage, which ends when the guard is dropped. Guards must be dropped in reverse order, in their
/// own thread.
#[inline(always)]
pub fn enter(stage: Stage) -> Guard {
    switched::enter(stage)
}

/// Starts [`Stage::Copy`] for this many bytes, if they are at least [`COPY_BYTES_MIN`].
#[inline(always)]
pub fn copying(bytes: usize) -> Guard {
    switched::enter_if(Stage::Copy, bytes >= COPY_BYTES_MIN)
}

/// The counters of the calling thread, including its current stage up to now.
pub fn thread_snapshot() -> Snapshot {
    switched::thread_snapshot()
}

/// The counters of all threads of the process together, including threads that have ended. Other threads'
/// counters are those of about this moment.
pub fn snapshot() -> Snapshot {
    switched::snapshot()
}

/// The cost of the probes on this machine, measured once per process. The measurement takes a few
/// milliseconds, in which the calling thread counts nothing. Zero in a build without probes.
pub fn overhead() -> Overhead {
    switched::overhead()
}

/// The counters of threads up to a moment, or between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    taken: Duration,
    stages: [StageTimes; Stage::COUNT],
}

/// The counters of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// How often the stage was entered.
    pub count: u64,
    /// How long threads were in the stage, without the stages entered from it.
    pub self_time: Duration,
    /// How long threads were in the stage, with the stages entered from it. Grows when the stage is left.
    pub total_time: Duration,
    /// How many stages were entered directly from it.
    pub entered_within: u64,
}

/// The cost of entering and leaving a stage once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overhead {
    /// The part that counts for the stage itself, in nanoseconds.
    pub inside_ns: f64,
    /// The part that counts for the surrounding stage, in nanoseconds.
    pub outside_ns: f64,
}

impl Snapshot {
    /// A difference of snapshots that another process has reported.
    pub fn from_parts(elapsed: Duration, stages: impl IntoIterator<Item = (Stage, StageTimes)>) -> Snapshot {
        let mut snapshot = Snapshot { taken: elapsed, ..Snapshot::default() };
        for (stage, times) in stages {
            snapshot.stages[stage as usize] = times;
        }
        snapshot
    }

    /// The counters of one stage.
    pub fn stage(&self, stage: Stage) -> StageTimes {
        self.stages[stage as usize]
    }

    /// Every stage with its counters.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, StageTimes)> + '_ {
        Stage::ALL.into_iter().zip(self.stages)
    }

    /// The time of the snapshot, measured from an unspecified moment in the life of the process. For a
    /// [difference](Self::since), the time that it spans.
    pub fn elapsed(&self) -> Duration {
        self.taken
    }

    /// The time in all stages together.
    pub fn accounted(&self) -> Duration {
        self.stages.iter().map(|times| times.self_time).sum()
    }

    /// The difference between an earlier snapshot of the same threads and this one.
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

    /// This snapshot without the cost of the probes. The cost is subtracted from the self times and added to
    /// [`Stage::Probes`], so that their sum stays. Total times do not change.
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

/// Adds differences: both their counters and the times that they span.
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
