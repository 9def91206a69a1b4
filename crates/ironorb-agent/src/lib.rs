//! An agent: names of servers that are alive.
#![forbid(unsafe_code)]

pub mod registry;
