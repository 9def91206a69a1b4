//! The tests of the crate. All run in virtual time.

mod giving_up;
mod harness;
mod plain;
mod speed;
