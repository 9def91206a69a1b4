//! Real-time ORBs that tests make.

use ironorb::rt::{Priority, RealTimeConfig, SchedulingPolicy};
use ironorb::{Orb, OrbBuilder};

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
