//! Level L1: the ORB's real machines run a scenario in virtual time.
//!
//! Each process of the [`Scenario`] has client and server [engines](ironorb::engine) of [`Orb`](ironorb::Orb)s. All of them run in
//! the calling thread, on one agenda. What is real: references and keys,
//! routes, request and reply headers, service contexts, connections, framing, the choice of replies that leave together,
//! object adapters, limits. What is modelled, by the same rules as level L0: the time of processors and links, the threads
//! of pools and lanes and who of them serves which request, and the locks of servants.
//!
//! Bodies are synthetic. A request and a reply have as many octets of arguments and results as the scenario says. All of
//! them are zeros, which the servants take and never look at. One generic servant in one adapter with a default servant
//! serves all objects of a process, so a billion of them take no memory.
//!
//! A request reaches its servant when its thread has worked through the demand and the nested calls: the engine begins the
//! upcall when a thread takes the request, and runs it when the reply is due. A call to an object in the caller's own
//! process sends nothing, as in the ORB.
//!
//! Clients with a priority make their calls with it: then all ORBs are real-time ORBs with propagated priorities, whose
//! requests and replies tell them. Threads of this process keep theirs.
//!
//! The random numbers are those of [`ClientDraws`](ironorb_model::ClientDraws). Every segment's time, connection, direction
//! and octets enter the digest, and the times at which segments arrive, calls end, and cycles begin and end. One run of one
//! scenario and one seed is always the same.
//!
//! Not simulated at this level, and refused ([`MachinesError`]): caching proxies, whose reads and updates wait on threads,
//! and jobs.

mod bodies;
mod calls;
mod clients;
mod error;
mod hosts;
mod packets;
mod processes;
mod timeline;
mod wires;
mod world;

use std::time::Duration;

use ironorb_model::record::Timeline;
use ironorb_model::scenario::Scenario;
use ironorb_model::{Observations, Time};

pub use error::MachinesError;
pub use packets::Packets;
use world::World;

/// The name of the level in outputs.
pub const LEVEL: &str = "L1";

/// Runs a scenario once: through the warm-up, which is not observed, and then for the scenario's span.
///
/// # Errors
/// The scenario has what this level does not simulate, or stands still, or never gets on: see [`MachinesError`].
pub fn run(scenario: &Scenario, seed: u64, warm_up: Duration) -> Result<Observations, MachinesError> {
    run_recorded(scenario, seed, warm_up, Records::default())
}

/// What a run writes down, beside what it shows.
#[derive(Debug, Default)]
pub struct Records<'r> {
    /// Is told what threads do.
    pub timeline: Option<&'r mut Timeline>,
    /// Takes what machines send.
    pub packets: Option<&'r mut Packets>,
}

/// Runs a scenario once, as [`run`] does, and writes down what is asked for.
///
/// # Errors
/// As of [`run`]. The records have what happened before.
pub fn run_recorded<'r>(
    scenario: &'r Scenario,
    seed: u64,
    warm_up: Duration,
    records: Records<'r>,
) -> Result<Observations, MachinesError> {
    let mut machines = Machines::new(scenario, seed, warm_up)?;
    let world = &mut machines.0;
    (world.timeline, world.packets) = (records.timeline, records.packets);
    let outcome = world.run_to(world.end());
    world.end_records();
    outcome.map(|()| machines.observe())
}

/// A scenario on the way, for those who want to look at it meanwhile.
#[derive(Debug)]
pub struct Machines<'s>(World<'s>);

impl<'s> Machines<'s> {
    /// Makes a world at the beginning of its time.
    pub fn new(scenario: &'s Scenario, seed: u64, warm_up: Duration) -> Result<Machines<'s>, MachinesError> {
        World::new(scenario, seed, warm_up).map(Machines)
    }

    /// When the run is over.
    pub fn end(&self) -> Time {
        self.0.end()
    }

    /// Has everything happen that is due until then.
    pub fn run_to(&mut self, to: Time) -> Result<(), MachinesError> {
        self.0.run_to(to)
    }

    /// The connections that have been made.
    pub fn connections(&self) -> usize {
        self.0.connections()
    }

    /// Calls that have been begun, nested ones too.
    pub fn calls(&self) -> u64 {
        self.0.calls_begun()
    }

    /// What the run has shown so far.
    pub fn observe(&self) -> Observations {
        self.0.observe()
    }
}
