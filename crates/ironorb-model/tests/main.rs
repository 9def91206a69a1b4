//! The tests of the crate.

mod agenda;
mod analysis;
mod queueing;
mod reports;
mod scenarios;
