//! Level L0: a scenario as a network of queues, without octets.
//!
//! What is simulated: processors with their threads, links, pools, lanes, locks, and what the ORB's messages cost there. A
//! call is one state after another, as in MinORB's simulator: find proxy, write request, channel, read request, find
//! object, execute, write reply, read reply, and the switch to the thread that is woken. Which messages there are, and how
//! long they are, is what the ORB's own encoders say ([`MessageSizes`]): the first request of a connection names the code
//! sets, calls within a process send nothing.
//!
//! - **Threads.** A client is a thread; a cycle of an open class has one of its own. A thread has a connection of its own to each
//!   process that it calls, as far as the ORB allows ([`Connections`](crate::Connections)). A server has a pool of threads, of which the one that
//!   has been free for the longest time serves next; or one for each lane; or a thread for each connection. A thread is busy
//!   until its reply has been written, also while its servant sleeps or calls others.
//! - **Locks.** A request that finds its object (or its process) locked waits with its thread, in the order of arrival. No
//!   priorities are inherited.
//! - **Caches** are those of MinORB: a proxy that holds an object answers its reads, and servers send updates to those
//!   that hold what is written. All objects that fit are held from the beginning. Or they are the ORB's own, which ask what has
//!   changed, by messages and with calls.
//! - **Jobs** send the messages of the four architectures: for two parts 12, 10, 11 and 6.
//!
//! What random numbers decide is drawn by [`ClientDraws`](crate::ClientDraws), as at level L1: so both levels make the same
//! calls. One run of one scenario and one seed is always the same, and has the same digest.

mod asking;
mod caches;
mod calls;
mod clients;
mod hosts;
mod jobs;
mod sizes;
mod timeline;
mod wires;
mod world;

use std::time::Duration;

use crate::record::Timeline;
use crate::scenario::Scenario;
use crate::{Halt, Observations};

pub(crate) use sizes::JobSizes;
pub use sizes::{MessageSizes, OBJECT_KEY_OCTETS};
use world::World;

/// The name of the level in outputs.
pub const LEVEL: &str = "L0";

/// Runs a scenario once: through the warm-up, which is not observed, and then for the scenario's span.
///
/// # Errors
/// The scenario is too large, stands still, or grows without bound: see [`QueueingError`].
pub fn run(scenario: &Scenario, seed: u64, warm_up: Duration) -> Result<Observations, QueueingError> {
    run_recorded(scenario, seed, warm_up, None)
}

/// Runs a scenario once, as [`run`] does, and tells a timeline what threads do.
///
/// # Errors
/// As of [`run`]. The timeline has what happened before.
pub fn run_recorded<'r>(
    scenario: &'r Scenario,
    seed: u64,
    warm_up: Duration,
    timeline: Option<&'r mut Timeline>,
) -> Result<Observations, QueueingError> {
    let mut world = World::new(scenario, seed, warm_up)?;
    world.timeline = timeline;
    let outcome = world.run();
    world.tell(|timeline, now| timeline.end_run(now));
    outcome.map(|()| world.observe())
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueingError {
    /// The scenario has more of something than the simulator can number.
    #[error("the scenario has more than {most} {what}: {mend}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The most there may be.
        most: u64,
        /// What to change.
        mend: &'static str,
    },
    /// More calls are in flight than the memory is made for: more begin than end.
    #[error(
        "after {at} s more than {CALLS_MAX} calls are in flight: more begin than end. Look which resource of a shorter run is \
         fully used"
    )]
    Unstable {
        /// The virtual time.
        at: String,
    },
    /// Nothing goes on, or nothing ends.
    #[error(transparent)]
    Halt(#[from] Halt),
}

/// The most calls in flight: some 3 GB.
pub const CALLS_MAX: usize = 10_000_000;
