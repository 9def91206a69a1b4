//! Shared-memory transport of IronORB: two rings of bytes, one for each direction, in memory that two
//! processes share.
//!
//! [`Mapping`] is the memory: a sealed `memfd`, mapped into both processes. [`Offer`] passes its descriptor
//! from the server to the client over a Unix domain socket. [`End`] is one side of the connection: it copies
//! bytes into one ring and out of the other, and sleeps while there is nothing to do.
//!
//! ```
//! use ironorb_shm::{End, Mapping, Side};
//!
//! // The server creates the memory. The client maps it by the descriptor that the server sends.
//! const RING_BYTES: usize = 4096;
//! let (created, descriptor) = Mapping::create(RING_BYTES)?;
//! let opened = Mapping::open(&descriptor, RING_BYTES)?;
//! let (server, client) = (End::new(created, Side::Server), End::new(opened, Side::Client));
//!
//! let sent = client.write(b"ping")?;
//! assert_eq!(sent.bytes, 4);
//! let mut space = [0; 16];
//! let received = server.read(&mut space)?;
//! assert_eq!(&space[..received.bytes], b"ping");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What the crate does not do
//!
//! The crate does not interpret the bytes. It waits on no socket: a bell is the caller's business, and
//! [`Moved::ring_bell`] says when to ring it. Reads and writes never block; only [`End::sleep`] does.
//!
//! # Trust
//!
//! An end does not trust its peer. By writing into the shared memory, a peer can end a connection
//! ([`Broken`]) and can wake this process in vain. It cannot make this process access memory outside of the
//! rings, allocate memory, or sleep longer than the caller asked for.
//!
//! All shared bytes are atomics, the data included. So the peer may write them at any time without a data
//! race in the sense of the language. A reader first copies bytes into private memory and only then looks at
//! them.
//!
//! # Testing
//!
//! The protocol of positions and sleep works over any [`Area`]. So a model checker and an interpreter of
//! Rust's memory model run the code that serves real connections. The unsafe code is in [`Mapping`] alone.

mod area;
mod copy;
mod end;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod offer;
mod sync;

pub use area::{Area, CONTROL_BYTES, Control, Heap, Side};
pub use end::{Broken, End, Moved, Wanted};
#[cfg(not(loom))]
pub use mapping::Mapping;
#[cfg(not(loom))]
pub use offer::{Offer, RefusedOffer};

/// The range of the size of a ring, in bytes. The size must be a power of two.
pub const RING_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 20;
