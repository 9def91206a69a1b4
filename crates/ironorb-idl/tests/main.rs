//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod data;
mod hostile;
mod warnings;
