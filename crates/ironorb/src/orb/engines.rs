//! How a program makes the engines of an ORB.

use std::sync::{Arc, Weak};

use super::Orb;
use crate::driver::engine::{ClientEngine, ServerEngine};

impl ClientEngine {
    /// Makes an engine for the calls of an ORB, with its settings.
    pub fn new(orb: &Orb) -> Self {
        ClientEngine::of(orb.core())
    }

    /// Makes the engine for the calls that the program makes by stubs. The ORB must have been built with a
    /// [`simulation`](crate::OrbBuilder::simulation), and has one such engine: the first.
    pub fn for_stubs(orb: &Orb) -> Arc<Self> {
        ClientEngine::attached_to(orb.core())
    }
}

impl ServerEngine {
    /// Makes an engine that serves the objects of an ORB. The ORB itself needs no endpoint. Its references
    /// carry the addresses that its builder was given to [`publish`](crate::OrbBuilder::publish).
    pub fn new(orb: &Orb) -> Self {
        ServerEngine::of(orb.core(), Weak::new())
    }

    /// Makes an engine that lets another of the same ORB call clients over the connections that they have made, where
    /// [`OrbConfig::bidirectional`](crate::OrbConfig::bidirectional) allows it (CORBA 3.3 part 2, 9.8). Whenever the driver polls for
    /// actions, it polls this engine first, and then the client engine.
    pub fn with_client(orb: &Orb, client: &Arc<ClientEngine>) -> Self {
        ServerEngine::of(orb.core(), Arc::downgrade(client))
    }
}
