//! The relay of the benchmarks, for tests: it panics where that one has errors.

use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

use ironorb::ObjectRef;
use ironorb_baseline::relay::{self, RelayPort};

/// Passes bytes on in both directions. It counts connections, cuts them, and holds back what they carry.
pub struct Relay(relay::Relay);

impl Relay {
    /// A relay to the address of an object.
    ///
    /// # Panics
    ///
    /// When the system refuses, or the object has no address.
    pub fn to(object: &ObjectRef) -> Relay {
        Relay(relay::Relay::to(object).unwrap())
    }

    /// A relay to an address. A connection that comes while no process listens there is closed.
    ///
    /// # Panics
    ///
    /// When the system refuses.
    pub fn to_address(target: SocketAddr) -> Relay {
        let port = RelayPort::listen().unwrap();
        Relay(port.to(target, Duration::ZERO).unwrap())
    }

    /// The object's reference with the address of the relay.
    ///
    /// # Panics
    ///
    /// When the object has no address.
    pub fn ior_of(&self, object: &ObjectRef) -> String {
        self.0.reference_to(object).unwrap().to_string()
    }
}

impl Deref for Relay {
    type Target = relay::Relay;

    fn deref(&self) -> &relay::Relay {
        &self.0
    }
}
