//! The tests of the crate.

mod agenda;
mod queueing;
mod scenarios;
