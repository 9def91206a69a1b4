//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod embedded;
mod ifr;
mod ifr_load;
#[path = "ifr_operations/main.rs"]
mod ifr_operations;
