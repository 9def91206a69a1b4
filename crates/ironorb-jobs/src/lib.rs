//! Jobs: several independent calls that are made as one, and take as long as the slowest that is needed.
//!
//! ```no_run
//! # mod bank { ironorb::include_idl!("ironorb_jobs"); }
//! # use bank::iron_orb::{JobDaemonAsync, JobDaemonRef};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let orb = ironorb::Orb::builder().build()?;
//! # let [left, right]: [JobDaemonRef; 2] = [orb.resolve("x")?, orb.resolve("y")?];
//! use std::time::Duration;
//! use ironorb_jobs::{Job, PartEnd};
//!
//! let end = Job::new()
//!     .call(|| left.facts_async())
//!     .call(|| right.facts_async())
//!     .within(Duration::from_millis(50))
//!     .run();
//! if let (PartEnd::Result(left), PartEnd::Result(right)) = end.parts {
//!     println!("{} and {}", left.len(), right.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | make several calls at once | [`Job::call`], [`Job::all`], [`Job::run`], [`Job::begin`] |
//! | say how many are enough, and in which time | [`Job::quorum`], [`Job::within`], [`PartOptions::within`] |
//! | call servers by names, several of one name, through a daemon | [`Jobs`], [`Job::call_named`], [`Job::call_any`] |
//! | call an object that is several parts, each with its share of a sequence | [`Jobs::parallel`] |
//! | choose how the requests travel | [`Job::architecture`], [`Architecture`] |
//! | ask another server when one is late | [`PartOptions::idempotent`], [`PartOptions::hedged`] |
//! | serve jobs | [`Daemon`] |
//! | tell results to other clients than the caller | [`accept_forwarded`], [`Networks`] |
//!
//! # What is promised
//!
//! Each part ends once ([`PartEnd`]). It is carried out at most once, unless it is [idempotent](PartOptions::idempotent). What nobody
//! needs any more is cancelled, and its server told (CancelRequest). Retries and hedges of all jobs of [`Jobs`] are at most 5 % of the
//! first requests, and ten ([`BudgetLimits`]). Which attempts start when is decided by [`ironorb_fan_out`], without an ORB.
//!
//! # How it works
//!
//! The closure of a part begins its call as ever, by an `…_async` method; the ORB writes the request down and sends nothing
//! ([`write_down`](ironorb::dynamic::write_down)). The job sends it where and as often as it decides, or hands its bytes to the daemon, which
//! reads neither arguments nor results. The reply, wherever it comes from, ends the call.
//!
//! No thread waits with a job but the caller who blocks: the threads that bring replies, and the clock, carry it on.

#![forbid(unsafe_code)]

mod agent;
mod attended;
mod clock;
mod counts;
mod daemon;
mod forward;
mod held;
mod job;
mod jobs;
mod parallel;
mod part;
mod references;
mod run;
mod target;
mod threads;
mod way;
mod wire;

#[allow(missing_docs, missing_debug_implementations, unreachable_pub, clippy::all, clippy::pedantic)]
mod generated {
    ironorb::include_idl!("ironorb_jobs");
}

pub use agent::AgentHandles;
pub use counts::{JobCounts, JobWay, WayCounts};
pub use daemon::{DAEMON_KEY, Daemon, DaemonBuilder};
pub use forward::{Networks, accept_forwarded};
pub use generated::iron_orb::{JobDaemon, JobDaemonRef, JobFact};
pub use held::HeldHandles;
pub use ipnet::IpNet;
pub use ironorb_fan_out::{BudgetCounts, BudgetLimits, HEDGES_MAX, Quorum, Verdict};
pub use job::{Job, JobEnd, PartTime, Running};
pub use jobs::{Jobs, JobsBuilder};
pub use parallel::{NotAPart, PART_PROPERTY, PartNumber};
pub use part::{And, PartDone, PartEnd, PartOptions, Replies, Reply};
pub use target::{Chosen, Handles, InTurn, Servers};
pub use way::Architecture;
