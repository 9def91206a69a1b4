//! One program of all tests that can share a process: it is linked once, and its tests run side by side.

mod busy_objects;
mod close_connection;
mod support;
mod virtual_back_pressure;
mod virtual_batching;
mod virtual_bidirectional;
mod virtual_deadlines;
mod virtual_sessions;
mod virtual_time;
