//! How a program makes the engines of an ORB.

use std::sync::Arc;

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
        ServerEngine::of(orb.core())
    }
}
