//! Tests of the crate from outside.

mod files;
mod programs;
