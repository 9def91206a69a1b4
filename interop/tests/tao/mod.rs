//! Real time with TAO. These tests need a built tree of TAO and real-time priorities of the system, so the gate leaves
//! them out: `TAO_TREE=... cargo xtask interop --tao` runs them. `docs/interop.md` says what passed.

mod benchmarks;
mod dynamic_threads;
mod marks;
mod oneways;
mod our_client;
mod our_policies;
mod their_client;
mod their_policies;
mod their_pools;
mod unix_sockets;

use ironorb::rt::{LinearMapping, Priority, PriorityMapping, RealTimeConfig};
use ironorb::{Orb, OrbBuilder};

const fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not below 0")
}

/// TAO's linear mapping goes over all priorities of the class.
const MAPPING: LinearMapping = LinearMapping { min: 1, max: 99 };

/// The system's priority for one of CORBA's.
fn native(number: i16) -> i16 {
    MAPPING.to_native(priority(number)).expect("the mapping is linear")
}

fn real_time() -> OrbBuilder {
    Orb::builder().real_time(RealTimeConfig::new().mapping(MAPPING))
}

/// Priorities across the whole range, and both of its ends.
const PRIORITIES: [i16; 6] = [0, 1, 1_000, 16_384, 30_000, 32_767];

/// The priorities of lanes.
const LANES: [i16; 3] = [1_000, 16_384, 30_000];
