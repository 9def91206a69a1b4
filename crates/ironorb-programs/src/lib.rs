//! Level L2 of scenario files: each process of a [`Scenario`] is a program on a simulated host, with an ORB of its own.
//!
//! The programs run in virtual time under [`ironorb_sim`], which answers what they ask of the system. What is real: the whole
//! ORB with its threads, locks, sockets and timers, on both sides. What is modelled: hosts with processors, links, TCP's
//! windows, clocks. What the scenario says of work is said by the programs: clients and servants
//! [compute](ironorb_sim::compute) and sleep as long as the other levels have it, and bodies are zeros.
//!
//! - **Clients** are threads: one for each client of a closed class, as many as there are cycles at a time for an open class or
//!   a trace. Each thread that calls has a connection of its own to each process, also threads of servers.
//! - **Servers** have one default servant for all objects of a process. With `threads` and `lanes` they have pools that keep
//!   requests in the order of arrival; else a thread for each connection.
//! - **Locks** of servants are in the order of arrival.
//! - **Times of steps** are computed at the client before the request is written and after the reply has been read, and at the
//!   servant before and after its work. The ORB's own code takes no time.
//! - **Priorities** are those of real-time ORBs, with propagated priorities; threads have the system's that follow from them.
//!
//! What is random in a call is drawn by its client, and told to the servant by the side. On the wire there is nothing of it but
//! the upper digits of the object's id, which say whose call it is. So all levels draw the same numbers.
//!
//! Not simulated at this level, and refused ([`ProgramsError`]): caching proxies and jobs.

mod board;
mod clients;
mod deployment;
mod error;
mod locks;
mod orbs;
mod pools;
mod priorities;
mod servant;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ironorb_model::Observations;
use ironorb_model::scenario::Scenario;
use ironorb_sim::Sim;

pub use error::ProgramsError;

/// The name of the level in outputs.
pub const LEVEL: &str = "L2";

/// Runs a scenario once, with the simulation's seed: through the warm-up, which is not observed, and then for the scenario's
/// span. The simulation is for nothing else: programs still wait in it at the end.
///
/// # Errors
/// The scenario has what this level does not simulate, or a program fails: see [`ProgramsError`].
pub fn run(sim: &mut Sim, scenario: &Scenario, warm_up: Duration) -> Result<Observations, ProgramsError> {
    let run = || deployment::run(sim, scenario, warm_up);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&it| it.to_owned()));
        Err(ProgramsError::Failed(said.unwrap_or_default()))
    })
}
