//! Says before a system runs whether its deadlines hold: schedulability analysis of task sets over nodes, links and
//! lanes. Nothing here opens a socket, reads a clock or starts a thread, and there is no ORB in it.
//!
//! A [`TaskSet`] comes from TOML or from a [`description::Description`] made in code. [`analyze`] gives a [`Report`]: a
//! verdict, a bound for every task, anomalies, verified changes, a timeline. [`table`] turns the report into what a run
//! time looks up. [`sensitivity`] says how much longer something may run.
//!
//! # The model
//!
//! A **task** is released at most once in each period `T`, and is ready at most its jitter `J` later. It runs for at
//! most its worst-case execution time (WCET), then calls operations in turn. All that a release causes must end within
//! the deadline `D`, counted from the release. Releases may overlap; each has threads of its own.
//!
//! A task is a tree of **steps**. A step is a run on a processor or a message on a link. A twoway call over a link is
//! four steps: request, operation, reply, and the caller's run afterwards, if there is one. After a oneway call, the
//! caller's run follows its own run. A message of `b` bytes in `n` frames takes `(b + n * overhead) * 8 / bandwidth`,
//! rounded up, and arrives at most `delay` later.
//!
//! A **processor** is preemptive, with fixed priorities: the task's or, for operations, the lane's if it has one
//! (server-declared), and else the caller's (client-propagated). Interrupts are above. Steps of equal priority delay
//! each other in any order. A **link** sends one frame after the other, first in, first out, or by class.
//!
//! A lane with the policy `edf` or `muf` and one thread serves its queue without preemption among its upcalls. All its
//! upcalls run at the lane's priority. EDF orders by absolute deadlines of tasks; MUF by criticality, then by laxity:
//! the absolute deadline less the WCET.
//!
//! A **resource** is held within one run. Sections do not nest, and no call is made within one. Their lengths include
//! the kernel's work of locking and unlocking.
//!
//! # The formulas
//!
//! All numbers are whole nanoseconds. Divisions round up, and sums saturate at "unbounded". For a step `i` of a unit:
//!
//! * Cost: `C = wcet + 2 s + 2 s * (sections with inheritance)`, with the switch cost `s` of the node.
//! * Blocking on processors: `B = (kernel's longest section) + s + (for each resource with inheritance that `i` or
//!   something more urgent uses, the longest less urgent section, + 2 s) + (the longest less urgent section of all
//!   resources with a ceiling at or above `i`)`. On links: the longest less urgent frame.
//! * Window of the release `q = 0, 1, ...` in a busy period, by Joseph and Pandya, Audsley, Lehoczky, Tindell: the least
//!   `w = B + (q + 1) C + sum over the others at least as urgent of ceil((w + J_k) / T_k) C_k`. The response is the most
//!   of `w - q T + J`, up to the first `q` with `w + J <= (q + 1) T`.
//! * If releases may overtake each other (`J >= T`, or they overlap and lock resources): the whole busy period, plus `J`.
//! * Holistic, by Tindell and Clark: the jitter of a step is the latest end of its predecessor, counted from the task's
//!   release, with the link's delay. The analysis repeats until no end grows. What grows beyond 32 times the longest
//!   deadline or period, or for more than 1,000 passes, is unbounded.
//! * EDF queue: for every span `t` at which demand changes, from `D - J` to the busy period: the least `w = B + (longest
//!   other upcall) + sum over the queue of (floor((t + J_k - D_k) / T_k) + 1) C_k + sum over more urgent steps of
//!   ceil((w + J_k) / T_k) C_k` is at most `t`. For MUF, laxities stand for deadlines, and higher criticality counts as
//!   more urgent. A queue that fails the test has the busy period as bound.
//! * Utilisation: the sum of `C / T`, in millionths, rounded up.
//!
//! # What is exact
//!
//! For independent tasks of one processor with priorities of their own and no blocking or switch costs, the bound is
//! reached ([`Proof::Exact`]), with constrained and arbitrary deadlines alike. All else is [`Proof::Sufficient`]: never
//! exceeded.
//!
//! # What is unknown
//!
//! The analysis speaks for lanes that are pinned to one processor. The verdict is [`Verdict::Unknown`], with the reason,
//! for steps in other lanes, for users of a resource of several processors, for lanes with fewer threads than requests
//! may hold if a request may then wait for a less urgent one, and for all that these may delay.
//!
//! # A description in TOML
//!
//! ```
//! use ironorb_sched::{Nanos, TaskSet, Verdict, analyze, sensitivity, table};
//!
//! let set = TaskSet::from_toml(r#"
//!     [[node]]
//!     name = "board"
//!     non_preemptible = "50us"
//!
//!     [[lane]]
//!     name = "control"
//!     node = "board"
//!
//!     [[operation]]
//!     name = "set_valve"
//!     lane = "control"
//!     wcet = "400us"
//!
//!     [[task]]
//!     name = "pressure"
//!     lane = "control"
//!     period = "10ms"
//!     deadline = "5ms"
//!     wcet = "1ms"
//!     calls = [{ operation = "set_valve", then = "100us" }]
//! "#).unwrap();
//! let report = analyze(&set);
//! assert_eq!(report.verdict, Verdict::Fits);
//! println!("{report}");
//! assert!(sensitivity(&set, "set_valve").unwrap().wcet_max > Some(Nanos::from_micros(400)));
//! println!("{}", table(&report).to_toml().unwrap());
//! ```

#![forbid(unsafe_code)]

mod analysis;
mod audsley;
mod check;
pub mod description;
mod holistic;
mod model;
mod priority;
mod problem;
mod read;
mod report;
mod response;
mod sensitivity;
#[doc(hidden)]
pub mod simulation;
mod suggest;
mod table;
mod text;
mod time;
mod timeline;

pub use analysis::analyze;
pub use check::TaskSet;
pub use problem::{Place, Problem};
pub use report::*;
pub use sensitivity::{Sensitivity, sensitivity};
pub use suggest::Suggestion;
pub use table::{ConnectionEntry, LaneEntry, OperationEntry, Table, TableError, TaskEntry, table};
pub use time::{Nanos, TimeError};
pub use timeline::{Row, Timeline, TimelineBar};
