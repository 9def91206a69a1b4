//! Schedulability analysis.

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
pub use table::{ConnectionEntry, LaneEntry, Table, TableError, TaskEntry, table};
pub use time::{Nanos, TimeError};
pub use timeline::{Row, Timeline, TimelineBar};
