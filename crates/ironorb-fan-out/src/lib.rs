//! Decides what a job of several calls does next. Nothing here opens a socket, reads a clock or starts a thread, and there is no
//! ORB in it: the machine takes events and moments, and gives steps.
//!
//! # The promise
//!
//! - Each part of a job is told once: it has a result, it has raised an exception, it was cancelled, or nobody knows.
//! - A part is executed at most once, unless it may be repeated.
//! - When the job has enough, or cannot get it, what is left is cancelled. Nothing is started after that. Every job ends that has a
//!   deadline, or whose attempts end.
//! - Retries and hedges of all jobs of a client together are a small share of its first attempts.
//!
//! # How it is kept
//!
//! - A [`Plan`] says what the parts are, how many of them are enough, and how long that may take. A [`Job`] begins **attempts** of
//!   its parts. The first one of a part goes to the server that its driver likes best, each further one to another.
//! - A **retry** follows when all attempts of a part have failed: where no server has executed it, or where it may be repeated.
//! - A **hedge** is an attempt beside one that takes long, of a part that may be repeated. The first answer is the part's, and the
//!   other attempts are cancelled. What they answer later is dropped.
//! - A [`Budget`] is shared by all jobs of a client. First attempts earn, retries and hedges spend.
//! - [`Latencies`] say from what calls have taken when a hedge pays.
//!
//! # What is told
//!
//! | attempts of the part | the caller is told |
//! |---|---|
//! | one has brought a result | `Result` |
//! | one has brought an application's exception | `Exception`, by the application: an answer, which no retry follows |
//! | all have failed, and certainly no server has executed the part | `Exception`, by the system (COMPLETED_NO) |
//! | all have failed, and a server may have executed the part | `Unknown` |
//! | some were under way when the part's or the job's time was over, or the job had enough | `Cancelled`, maybe executed |
//! | none was sent when the job ended | `Cancelled`, not executed |
//!
//! An answer counts if it comes before the deadline; at the deadline it is late.
//!
//! # A driver
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use ironorb_fan_out::{Attempt, Budget, Ended, Job, Moment, Order, Outcome, Part, Plan, Quorum, Step, Verdict};
//!
//! // Two calls, of which one answer is enough, in at most a second.
//! let second = Some(Duration::from_secs(1));
//! let plan = Plan { parts: vec![Part::ONE; 2], quorum: Quorum::Any, order: Order::AtOnce, time: second };
//! let mut job = Job::new(&plan, Arc::new(Budget::default()));
//! job.begin(Moment::from_nanos(0));
//! let mut sent = Vec::new();
//! while let Some(Step::Start { attempt, .. }) = job.poll_step() {
//!     sent.push(attempt);
//! }
//! assert_eq!(sent.len(), 2);
//! assert_eq!(job.wakes_at(), Some(Moment::from_nanos(1_000_000_000)));
//!
//! // The second one answers. The first one is cancelled, and the job is over.
//! let second = Attempt { part: 1, number: 0 };
//! job.handle_end(second, Ended::Result, Moment::from_nanos(5_000_000));
//! assert_eq!(job.outcome(1), Some(Outcome::Result(second)));
//! assert_eq!(job.verdict(), Some(Verdict::Met));
//! ```
//!
//! # Beside the machine
//!
//! - A [`Trip`] says which attempts go through a daemon, and what the daemon's word or its failure means for a part.
//! - [`Expected`] knows who waits for results that servers tell, and [`SeenTokens`] which forwarded parts a server has had.
//! - A [`Desk`] is a daemon's: which jobs its threads carry out, which wait, and which are refused.
//!
//! [`history`] checks a record of what a job has done, [`ledger`] one of all clients, servers and the daemon.

#![forbid(unsafe_code)]

mod budget;
mod desk;
pub mod history;
mod job;
mod latencies;
pub mod ledger;
mod plan;
mod time;
mod tokens;
mod way;

pub use budget::{Budget, BudgetCounts, BudgetLimits};
pub use desk::{Begun, Desk, DeskCounts, DeskLimits, Taken};
pub use job::{Attempt, Ended, Executed, Job, Outcome, RaisedBy, Server, Step, Verdict};
pub use latencies::{FLOOR, Latencies, SAMPLES_KEPT, SAMPLES_MIN};
pub use plan::{HEDGES_MAX, Order, Part, Plan, Quorum};
pub use time::Moment;
pub use tokens::{Attendance, Attended, Deaths, Expected, SeenTokens, Token};
pub use way::{Completed, Failure, Next, Start, Starts, Told, Trip, Way, daemons_share, is_nearly_over};
