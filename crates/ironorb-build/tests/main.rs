//! One program for all tests that can share a process: it is linked once, and its tests run in parallel.

mod calls;
mod compiled;
mod dynamic;
mod emit;
mod errors;
mod rustc;
mod values;

// Generated code names its neighbours by paths from the root of its crate.
use compiled::external_base;
