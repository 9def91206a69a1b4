//! One program for all tests that can share a process: it is linked once, and its tests run in parallel.

mod data;
mod hostile;
mod warnings;
