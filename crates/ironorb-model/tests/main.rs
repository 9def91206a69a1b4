//! The tests of the crate.

mod agenda;
mod scenarios;
