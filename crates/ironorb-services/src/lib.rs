//! The standard services as servant libraries.
//!
//! What decides is plain code: nothing in this crate opens a socket, reads a clock or spawns a thread. The only
//! input and output is the naming service's store, one file. See ARCHITECTURE.md for the house.
#![forbid(unsafe_code)]

pub mod naming;
