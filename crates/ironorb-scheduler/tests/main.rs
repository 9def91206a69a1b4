//! One program of all tests.

mod two_nodes;
