//! Why a scenario does not run at this level.

use ironorb::poa::PoaError;
use ironorb::{SystemException, engine::ConnectionId};
use ironorb_model::Halt;

/// A scenario that level L1 does not simulate, or a run that cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachinesError {
    /// A class has caching proxies.
    #[error(
        "class {class}: caches are simulated at L0; at L1 they are not, because a cached read that asks its server \
         waits on the thread that reads (driver/cache of the ORB) and has no engine"
    )]
    Caches {
        /// The class.
        class: String,
    },
    /// A class runs jobs.
    #[error(
        "class {class}: jobs are simulated at L0; at L1 they are not, because a job's parts are called by threads \
         of the ORB (Jobs::run of ironorb-jobs), and not by an engine"
    )]
    Jobs {
        /// The class.
        class: String,
    },
    /// A server has several operations of one name.
    #[error(
        "server {server}: `{operation}` is simulated at L0; at L1 it is not, because a servant knows operations by their names \
         alone. Make the recording's scenario with `--variants 1`, or give the operations names of their own"
    )]
    Variants {
        /// The server.
        server: String,
        /// The operation.
        operation: String,
    },
    /// The scenario has more of something than this level can number.
    #[error("the scenario has more than {most} {what}: {mend}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The most there may be.
        most: u64,
        /// What to change.
        mend: &'static str,
    },
    /// An ORB could not be built.
    #[error("the ORB of a process: {0}")]
    Orb(#[from] ironorb::BuildError),
    /// An adapter could not be made.
    #[error("the object adapter of a process: {0}")]
    Adapter(#[from] PoaError),
    /// A reference could not be used.
    #[error("a reference to a server: {0}")]
    Reference(#[from] SystemException),
    /// Nothing goes on, or nothing ends.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// Something that must be there is not: a defect of this level.
    #[error("a defect of the simulator: a process, a connection or a request is not where it must be")]
    Gone,
    /// A machine has closed a connection. No scenario has a reason for it.
    #[error("a machine has closed connection {} of a process", .0.0)]
    Closed(ConnectionId),
}
