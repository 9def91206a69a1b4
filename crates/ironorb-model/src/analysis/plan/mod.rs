//! What a target takes at least: the cheapest of the changes that a file allows, and what breaks first when load grows.
//!
//! The search tries all combinations, the cheapest first. What the bounds of [`bounds`](mod@super::bounds) exclude is not
//! simulated. The first one that keeps the target in simulation is the answer, so no cheaper one keeps it.

mod change;
mod growth;
mod read;
mod search;
mod target;

pub use change::{Change, Choice, Setting, with_load};
pub use growth::{Growth, SimulatedLoad, growth};
pub use read::{Plan, read};
pub use search::{Limits, Outcome, SearchError, Tried, Verdict, search};
pub use target::{Measure, NoTarget, Seconds, Target};
