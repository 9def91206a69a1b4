//! Real-time ORBs that tests make.

use std::sync::{Arc, Mutex};

use ironorb::rt::{Priority, PriorityModel, RealTimeConfig, SchedulingPolicy};
use ironorb::{LaneConfig, Orb, OrbBuilder};

use crate::Hooked;

/// The model of adapters whose servants run at the priority of the client, or else at the lowest.
pub const PROPAGATED: PriorityModel = PriorityModel::ClientPropagated { default: Priority::MIN };

/// A priority.
///
/// # Panics
///
/// For a number below 0.
pub fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not below 0")
}

/// The configuration of a real-time ORB that asks the system for nothing, so that tests pass wherever they run.
pub fn real_time() -> RealTimeConfig {
    RealTimeConfig::new().scheduling(SchedulingPolicy::Other)
}

/// A real-time ORB that listens.
///
/// # Panics
///
/// Never: the address is one.
pub fn server_of(config: RealTimeConfig) -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").expect("an address").real_time(config)
}

/// A lane that listens.
pub fn listening_lane(name: &str) -> LaneConfig {
    LaneConfig::new(name).endpoint("iiop://127.0.0.1:0")
}

/// The names of lanes in which a servant has run.
pub type Lanes = Arc<Mutex<Vec<String>>>;

/// A servant of this ORB whose `ping` notes the lane in which it runs.
pub fn noting_lanes(server: &Orb, lanes: &Lanes) -> Hooked {
    let (orb, lanes) = (server.clone(), lanes.clone());
    Hooked::new(move || {
        lanes.lock().expect("no test panics with it").push(orb.current_lane().name().to_owned());
        Ok(())
    })
}
