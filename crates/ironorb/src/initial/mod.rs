//! Clients of the services that an ORB finds by initial references.

pub mod ifr;
pub mod naming;
