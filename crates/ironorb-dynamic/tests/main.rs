//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod interfaces;
mod json;
mod json_properties;
mod lying_repositories;
mod mock;
mod mock_corpus;
mod static_types;

// Generated code names its neighbours from the root of its crate.
use static_types::generated::external_base;
