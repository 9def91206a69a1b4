//! The tests of the crate.

mod agenda;
mod analysis;
mod queueing;
#[path = "record/main.rs"]
mod record;
mod reports;
mod scenarios;
