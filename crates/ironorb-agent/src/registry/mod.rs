//! The registry: names, the servers behind them, and the leases of their owners. Plain code: time, tokens and the number
//! of a life are arguments.
//!
//! [`Registry`] decides. An owner is a process with a secret token and one lease; all its entries live as long as the
//! lease. Every change has a revision, and the last changes are kept, so that a watcher that comes back learns what it
//! missed or that it missed something. [`Waiters`] holds watchers that wait for changes.
//!
//! Agents may share their names through a store of their own: [`SharedStore`] is what it has to do, and [`Sharing`] decides
//! what an agent asks of it.

mod changes;
mod entry;
mod error;
mod filter;
mod limits;
mod names;
mod others;
mod owners;
mod sharing;
mod waiters;

pub use changes::{Change, ChangeKind, Selection, TooOld};
pub use entry::{Entry, Offer, OwnerKey, Property};
pub use error::RegistryError;
pub use filter::Condition;
pub use limits::Limits;
pub use names::{Record, Registry, Restored, Start};
pub use others::{SharedEntry, SharedKey, Told};
pub use owners::OwnerSeen;
pub use sharing::{
    Answer, Claim, Claimed, ShareFault, SharedLease, SharedStore, Sharing, Task, Watching, Write, Written,
};
pub use waiters::{Waiters, Woken};

#[cfg(test)]
mod seeds_tests;
#[cfg(test)]
mod sharing_tests;
