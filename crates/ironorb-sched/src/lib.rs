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
mod suggest;
mod text;
mod time;
mod timeline;

pub use analysis::analyze;
pub use check::TaskSet;
pub use problem::{Place, Problem};
pub use report::*;
pub use suggest::Suggestion;
pub use time::{Nanos, TimeError};
