//! A mission computer and its peripherals, from a task file to a running system.
//!
//! [`servants`] and [`tasks`] are the program. [`threads`] runs it on threads and sockets, and [`simulation`] in virtual
//! time. Both take priorities, lanes and times from [`plan`]; what differs for the program is its [`platform`].

pub mod plan;
pub mod platform;
pub mod servants;
pub mod simulation;
pub mod tally;
pub mod tasks;
pub mod threads;

// What `avionics.idl` becomes in Rust.
ironorb::include_idl!("avionics");
