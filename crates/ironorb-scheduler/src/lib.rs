//! Runs a system as a scheduling table says (`RTCosScheduling`; RTCORBA 1.2, 5.18): the table that `ironorb sched table` has
//! written, or [`ironorb_sched::table`]. Nothing here decides anything: lanes, priorities, processors and connections are
//! the table's, and what is not in it is an error.
//!
//! One process runs one node of the table. [`NodeSchedule::configure`] gives the lanes of the node to the builder of its
//! ORB. A [`ServerScheduler`] gives adapters and objects their lanes by names, a [`ClientScheduler`] the calling thread its
//! priority, its processor and its connections.
//!
//! ```no_run
//! use ironorb::rt::RealTimeConfig;
//! use ironorb::{Orb, PoaPolicies};
//! use ironorb_sched::Table;
//! use ironorb_scheduler::NodeSchedule;
//!
//! let table = Table::from_toml(&std::fs::read_to_string("table.toml")?)?;
//! let node = NodeSchedule::new(table, "server")?;
//! let builder = Orb::builder().endpoint("iiop://:2810")?.real_time(RealTimeConfig::new());
//! let orb = node.configure(builder, |_lane| Some("iiop://:0".to_owned()))?.build()?;
//! let scheduler = node.server_scheduler(&orb)?;
//! let poa = scheduler.create_poa(&orb.root_poa(), "requests", None, PoaPolicies::default())?;
//! // … `scheduler.schedule_object(&poa, object, "sample")`; in a client's thread, as long as the result lives:
//! let _activity = node.client_scheduler(&orb)?.schedule_activity("loop")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod client;
mod error;
mod node;
mod server;

pub use client::{ClientScheduler, ScheduledActivity};
pub use error::{NameKind, ScheduleError, UnknownName};
pub use node::NodeSchedule;
pub use server::ServerScheduler;
