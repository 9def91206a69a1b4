//! All tests of the crate.

mod machines;
mod records;
