//! All tests of the crate.

mod machines;
