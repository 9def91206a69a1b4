//! The baselines of benchmarks: plain sockets and rings that carry as many bytes as a call, and a relay that
//! counts these bytes.
//!
//! The benchmarks and the demo use this crate. It starts no process and knows no interface. It measures only
//! the duration of a stream.

#![forbid(unsafe_code)]

pub mod raw;
pub mod relay;
pub mod ring;
pub mod stream;
