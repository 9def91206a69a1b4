//! What generated code says of the cached state of an interface.

use std::time::Duration;

use ironorb_cache::{Members, Terms};
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use super::storage::Storage;

/// How the clients that hold a state are told of its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachedMode {
    /// When they ask.
    Asked,
    /// At once. A write waits for nobody.
    Pushed,
    /// At once. A write waits for those that would miss more than so many writes: with 0 it is linearizable.
    Missed(u32),
}

impl CachedMode {
    /// Whether clients that read have a probe waiting at the server.
    pub(crate) const fn is_told_at_once(self) -> bool {
        !matches!(self, CachedMode::Asked)
    }
}

/// How old a cached read may be, of a state with this mode whose declaration says `nanos`; 0 if it says nothing. No server waits
/// for a client beyond the term of its session.
pub const fn lag_of(mode: CachedMode, nanos: u64) -> Duration {
    const TERM_NANOS: u64 = Terms::DEFAULT.term.as_nanos() as u64;
    let is_bounded_by_term = mode.is_told_at_once();
    match nanos {
        0 => Terms::DEFAULT.term,
        nanos if is_bounded_by_term && nanos > TERM_NANOS => Terms::DEFAULT.term,
        nanos => Duration::from_nanos(nanos),
    }
}

/// The cached attributes of an interface: `AccountState` for `Account`.
pub trait CachedState: Clone + Send + Sync + 'static {
    /// How a client keeps it.
    type Storage: Storage<State = Self>;
    /// What changes it in a cell, and notes what it has changed.
    type Update<'s>;
    /// The interface's repository id.
    const REPOSITORY_ID: &'static str;
    /// How clients are told of changes.
    const MODE: CachedMode;

    /// Writes some members, in their order.
    fn write(&self, members: Members, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads all members.
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Reads some members over those that are there.
    fn read_over(&mut self, members: Members, r: &mut Reader<'_>) -> Result<(), Malformed>;

    /// Which members have other values than before.
    fn changed_since(&self, before: &Self) -> Members;

    /// Gives access to the members.
    fn update<'s>(&'s mut self, changed: &'s mut Members) -> Self::Update<'s>;
}

/// A cached attribute of an interface.
pub trait CachedMember: 'static {
    /// The state that it is a member of.
    type State: CachedState;
    /// Its type.
    type Value;
    /// How old the value of a cached read may be.
    const LAG: Duration;

    /// The value in a state.
    fn of(state: &Self::State) -> Self::Value;

    /// The value in a storage. It counts only if the storage has not been written meanwhile.
    fn load(storage: &<Self::State as CachedState>::Storage) -> Option<Self::Value>;
}
