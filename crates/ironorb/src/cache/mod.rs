//! Caching proxies: what a client holds of objects' states, and the cells from which servants answer.
//!
//! [`ironorb_cache`] decides what may be answered; this folder holds the states, and `driver/cache` carries the messages.
//!
//! - `state`: what generated code says of an object's cached state
//! - `storage`: how a client keeps a state that many threads read
//! - `place`: a client's place for the state of one object; `peer`: its session with a server, and all places of that; `view`:
//!   what they are proved by
//! - `cell`: a servant's state; `elements`: those of an extent; `log`: the order of writes, and who holds what
//! - `wire`: the messages; `count`: how often something happens that is done in nanoseconds

mod cell;
mod count;
mod elements;
mod log;
mod options;
mod peer;
mod place;
#[cfg(test)]
mod program_code_tests;
mod state;
mod storage;
mod view;
pub(crate) mod wire;

pub(crate) use cell::CellHandle;
pub use cell::{Cell, CellRef, CellVisitor};
pub(crate) use count::ShardedCount;
pub(crate) use elements::{HeldElements, WithdrawElements};
pub(crate) use log::CellNumber;
pub(crate) use log::{LogHost, ServerCache};
pub use options::ReadOptions;
pub(crate) use peer::{Advice, NO_SESSION, Peer, Reading};
pub(crate) use place::{AnyPlace, Companions, Place, Snapshot, Unread};
pub use place::{CachedRef, ProxyCell, Seen, Source};
pub use state::{CachedMember, CachedMode, CachedState, lag_of};
pub use storage::{Replaced, Shared, Storage, Word, WordState, Words};
