//! Where the time goes, by the ORB's own probes: of calls stage by stage, and of the throughput suite in the categories of
//! the paper's tables.
//!
//! Needs a build with the feature `probes`; in any other it says so. What the probes cost is measured, taken off each
//! stage and shown as their own; what is in no stage is shown as well, so that what a table has is all of the time.

mod calls;
mod shares;
mod watch;

pub use calls::CallBreakdown;
pub(crate) use calls::calls;
pub use shares::{Shares, StageShare};
pub(crate) use watch::{Sides, Watch, teller};
