//! The baseline of every comparison: plain sockets and rings that carry as many bytes as a call, and a relay that counts these
//! bytes.
//!
//! The benchmarks and the demo use it. Nothing here measures time but what a stream takes, starts processes or knows an
//! interface.

#![forbid(unsafe_code)]

pub mod raw;
pub mod relay;
pub mod ring;
pub mod stream;
