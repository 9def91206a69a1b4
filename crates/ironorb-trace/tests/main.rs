//! Tests of the crate from outside.

mod hops;
mod texts;
