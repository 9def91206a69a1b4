//! The tests of the crate. All run in virtual time.

mod harness;
mod plain;
mod speed;
