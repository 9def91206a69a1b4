//! Distributable threads (RT-CORBA 2.0, dynamic scheduling): one flow of control through several processes, with one id and
//! one urgency, which can be cancelled as a whole.
//!
//! [`OrbBuilder::scheduler`](crate::OrbBuilder::scheduler) gives an ORB a [`Scheduler`]; then
//! [`Orb::scheduling_current`](crate::Orb::scheduling_current) has its [`SchedulingCurrent`]. A thread becomes a
//! distributable thread when it begins a scheduling segment, and is none after the end of the outermost one. Calls that it
//! makes in between carry it on to servers: the servant's thread has its id, its names of segments and its parameter, if
//! the server's ORB has a scheduler, too.
//!
//! ```
//! use std::time::Duration;
//! use ironorb::rt::RealTimeConfig;
//! use ironorb::rt::SchedulingPolicy::Other;
//! use ironorb::rt::distributable::{EarliestDeadline, SchedulingParameter, UrgencyBands};
//!
//! let orb = ironorb::Orb::builder()
//!     .real_time(RealTimeConfig::new().scheduling(Other))
//!     .scheduler(EarliestDeadline::new(UrgencyBands::default()))
//!     .build()?;
//! let current = orb.scheduling_current().expect("the ORB has a scheduler");
//! let urgent = SchedulingParameter::new().deadline(Duration::from_millis(5));
//! current.segment("track", Some(urgent), || {
//!     assert_eq!(current.segment_names(), ["track"]);
//!     // … calls …
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cancelling
//!
//! [`DistributableThread::cancel`] ends a thread at its next **scheduling point**, with THREAD_CANCELLED: where a segment
//! begins, is updated or ends, where a request is sent or received, and where its reply is sent or received. A servant that
//! computes for long asks [`SchedulingCurrent::check`] in between.
//!
//! While a thread waits for a reply, it is in the server: cancelling tells the server by a request of its own, over a
//! connection of its own, and so on to where the thread is. The servant's reply becomes THREAD_CANCELLED there, and in each
//! process back to the first. A server that is told of a thread which has not come yet remembers it: the request is then
//! answered at once.
//!
//! A call within the process goes on in the calling thread, whose segments are the servant's, too. A servant that answers later
//! goes on without the thread.
//!
//! An asynchronous call carries the thread, too, and the thread goes on meanwhile. When such a request is sent again, because
//! it is forwarded or its connection has been closed, it carries none.
//!
//! # What peers see
//!
//! `docs/wire.md` has the bytes. Servers of other ORBs, and those without a scheduler, ignore them: a thread is unknown
//! there and behind, and a cancelled one ends when their reply comes. A client of another ORB gets THREAD_CANCELLED, a
//! system exception that TAO knows and others take for UNKNOWN, only from a servant that begins a segment itself.

mod current;
mod disciplines;
mod interceptors;
mod scheduler;
mod segments;
mod thread;

pub use current::SchedulingCurrent;
pub use disciplines::{EarliestDeadline, FixedPriority, MaximumUrgencyFirst, UrgencyBands, unsupported};
pub(crate) use interceptors::cancelling;
pub(crate) use scheduler::SchedulerSetting;
pub use scheduler::{ResourceManager, Scheduler, SegmentTerms};
pub(crate) use segments::LocalCall;
pub use segments::{SEGMENTS_MAX, Segment};
pub(crate) use thread::ThreadParts;
pub use thread::{DistributableThread, DistributableThreadState};

pub use crate::object::scheduling_context::{DistributableThreadId, SchedulingParameter};
