//! What generated code says of the cached state of an interface.

use std::time::Duration;

use ironorb_cache::Members;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use super::storage::Storage;

/// The cached attributes of an interface: `AccountState` for `Account`.
pub trait CachedState: Clone + Send + Sync + 'static {
    /// How a client keeps it.
    type Storage: Storage<State = Self>;
    /// What changes it in a cell, and notes what it has changed.
    type Update<'s>;
    /// The interface's repository id.
    const REPOSITORY_ID: &'static str;

    /// Writes some members, in their order.
    fn write(&self, members: Members, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Reads all members.
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Reads some members over those that are there.
    fn read_over(&mut self, members: Members, r: &mut Reader<'_>) -> Result<(), Malformed>;

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
