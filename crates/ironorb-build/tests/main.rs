//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod calls;
mod compiled;
mod dynamic;
mod emit;
mod errors;
mod rustc;
mod values;

// Generated code names its neighbours from the root of its crate.
use compiled::external_base;
