//! Models of distributed programs in virtual time: what a deployment is and is asked to do ([`scenario`]), and what the
//! simulation levels share: events in their order ([`Agenda`]), random numbers by stream ([`Random`]), what a run has
//! shown ([`Observations`]); and what programs have done and do ([`record`]).
//!
//! Nothing here makes a call, opens a socket, reads a clock or starts a thread. Equal scenarios and equal seeds give equal
//! results: no decision depends on addresses, on the number of processors or on the system's mathematical library.

mod agenda;
pub mod analysis;
mod connections;
mod digest;
mod draws;
mod link;
mod links;
mod load;
mod observations;
mod outputs;
mod pauses;
mod processor;
pub mod profile;
pub mod queueing;
mod random;
pub mod record;
pub mod report;
pub mod resources;
pub mod scenario;
mod serving;
mod shares;
mod slab;
mod stepping;
mod table;
mod time;

pub use agenda::Agenda;
pub use connections::{CONNECTIONS_MAX, CONNECTIONS_PER_SERVER_MAX, Connections, Place};
pub use digest::{Digest, Happening};
pub use draws::{CallSteps, ClientDraws, CycleDraws, DrawnCall, Turns};
pub use link::{LinkState, Stream};
pub use links::{LinkEnd, LinkNumber, Links};
pub use load::Load;
pub use observations::{
    BatchMeans, ClassObservations, HandOverError, Observations, ResourceObservations, SeenTimes,
};
pub use outputs::{OutputError, check_outputs};
pub use pauses::{PauseTimes, Pauses};
pub use processor::{Processor, SchedulingClass, ThreadId, Tick};
pub use random::Random;
pub use serving::{ConnectionThread, LockKey, Locks, Pool};
pub use shares::TIME_SLICE;
pub use slab::{Queue, Queued, Slab};
pub use stepping::{Halt, Stepping, run_to};
pub use table::{Mixer, Table};
pub use time::Time;
