//! Why a scenario does not run at this level.

/// A scenario that level L2 does not simulate, or a run that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramsError {
    /// A class has caching proxies.
    #[error(
        "class {class}: `cache` is simulated at L0; at L2 no program is made of it, because cached attributes need an interface \
         in IDL. Tests with `#[ironorb_sim::test]` run programs that have them"
    )]
    Caches {
        /// The class.
        class: String,
    },
    /// A class runs jobs.
    #[error(
        "class {class}: `job` is simulated at L0; at L2 no program is made of it. Tests with `#[ironorb_sim::test]` run programs \
         that run jobs"
    )]
    Jobs {
        /// The class.
        class: String,
    },
    /// A class calls at a priority that no lane of a server has.
    #[error(
        "class {class}: `priority` {priority} belongs to lane {lane} of server {server}; at L2 it does not, because the ORB serves \
         in a lane the calls of exactly its priority. Give the class the priority of the lane"
    )]
    Lane {
        /// The class.
        class: String,
        /// Its priority.
        priority: i16,
        /// The server.
        server: String,
        /// The priority of the lane that serves it at other levels.
        lane: i16,
    },
    /// The scenario has more of something than this level can run.
    #[error(
        "the scenario has more {what} than the {most} that this level runs: lower {mend}, or take level L0 or L1"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: u64,
        /// What to lower.
        mend: &'static str,
    },
    /// Cycles follow each other, and take no time.
    #[error(
        "at {at} s cycles begin and end without end: give the closed class a think time, or a call a demand"
    )]
    NoTime {
        /// The virtual time.
        at: String,
    },
    /// More cycles of open classes are under way than there are threads for: more begin than end.
    #[error(
        "after {at} s more than {most} cycles of class {class} are under way on a host: more begin than end. Look which resource \
         of a shorter run is fully used"
    )]
    Unstable {
        /// The virtual time.
        at: String,
        /// The class.
        class: String,
        /// How many there may be.
        most: usize,
    },
    /// A program, or the simulation of all of them, has failed.
    #[error("{0}")]
    Failed(String),
}
