//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod any_properties;
mod equal_paths;
mod fragments;
mod gather;
mod golden;
mod golden_real_time;
mod golden_types;
mod properties;
#[path = "values/main.rs"]
mod values;
