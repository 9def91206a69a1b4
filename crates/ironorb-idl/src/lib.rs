//! The IDL front end: OMG IDL text to a checked, fully resolved [`Model`](model::Model).
//!
//! Knows no target language, opens no socket, and never panics on any input: what is wrong with a
//! file is told in diagnostics.

pub mod model;
pub mod source;
