//! The standard services as servant libraries.
//!
//! What decides is plain code: nothing in this crate opens a socket, reads a clock or spawns a thread. The only
//! input and output are the services' stores, one file each. See ARCHITECTURE.md for the house.
#![forbid(unsafe_code)]

mod database;
#[cfg(test)]
mod power_cut;
mod store_error;

pub mod ifr;
pub mod naming;
