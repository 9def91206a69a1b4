//! Two rings of bytes, one each way, in memory that two processes share, and how each side sleeps until the other has
//! done something.
//!
//! Nothing here knows what the bytes mean, opens or waits on a socket, or trusts the other side: what it writes into the
//! shared memory can end a connection, and can wake us in vain, but it cannot make us read or write outside of the rings,
//! take memory, or sleep for longer than we meant to.
//!
//! - [`End`] is one side of a connection: the protocol of positions and sleep, over memory that can be anywhere ([`Area`]).
//!   So a model checker and an interpreter of Rust's memory model run the very code that serves.
//! - [`Mapping`] is memory of another process: a sealed `memfd`, mapped. The only unsafe code is there.
//! - [`Offer`] is how a server hands it to a client, over a Unix domain socket.
//!
//! All shared bytes are atomics, also the data: another process may write them at any time, which is no race in the sense
//! of the language then. Whoever reads gets a copy in memory of its own before anything looks at the bytes.

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

/// Bytes of a ring at least and at most; always a power of two.
pub const RING_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 20;
