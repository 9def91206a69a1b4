//! The baselines of benchmarks: plain sockets and rings that carry as many bytes as a call, and a relay that
//! counts these bytes.
//!
//! The benchmarks and the demo use this crate. It starts no process and knows no interface. It measures only
//! the duration of a stream.
//!
//! A server thread and a client exchange as many bytes as a call without arguments:
//!
//! ```
//! use std::net::TcpListener;
//!
//! use ironorb_baseline::raw::{self, Exchange, RawClient};
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! std::thread::spawn(move || raw::serve(&listener));
//!
//! let call = Exchange { requests: 1, request_bytes: 92, reply_bytes: 24 };
//! let mut client = RawClient::connect(address, call)?;
//! for _ in 0..1000 {
//!     client.exchange()?; // one send and one receive on each side
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod paced;
pub mod raw;
pub mod relay;
pub mod ring;
pub mod stream;
