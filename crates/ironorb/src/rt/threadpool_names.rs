//! The names of an ORB's thread pools.

use crate::base::locks::PiLock;
use crate::object::threadpool::ThreadpoolId;

/// The names, in the order of the pools' numbers. A pool that is made again has the number of before.
#[derive(Debug)]
pub(crate) struct ThreadpoolNames(PiLock<Vec<Name>>);

#[derive(Debug)]
struct Name {
    text: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The pool is being made.
    Reserved,
    /// It has its lanes.
    Serving,
    /// It has been destroyed, or could not be made.
    Ended,
}

/// A name for a pool that is being made. Dropping it frees the name.
pub(crate) struct ReservedName<'a> {
    names: &'a ThreadpoolNames,
    pool: ThreadpoolId,
}

/// Why a pool cannot have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotReserve {
    IsTaken,
    /// There is no further number for a pool.
    TooMany,
}

impl ThreadpoolNames {
    /// The names of pools that serve.
    pub(super) fn new(names: Vec<String>) -> ThreadpoolNames {
        let name = |text| Name { text, state: State::Serving };
        ThreadpoolNames(PiLock::new(names.into_iter().map(name).collect()))
    }

    /// The pool with this name that serves.
    pub(super) fn find(&self, name: &str) -> Option<ThreadpoolId> {
        let is_it = |it: &Name| it.state == State::Serving && it.text == name;
        self.0.lock().iter().position(is_it).and_then(ThreadpoolId::new)
    }

    /// The pool with this number that serves.
    pub(crate) fn numbered(&self, number: u32) -> Option<ThreadpoolId> {
        let pool = ThreadpoolId::new(usize::try_from(number).ok()?)?;
        let is_serving = self.0.lock().get(pool.index())?.state == State::Serving;
        is_serving.then_some(pool)
    }

    /// Gives a name and a number to a pool that is about to be made.
    pub(crate) fn reserve(&self, name: &str) -> Result<ReservedName<'_>, CannotReserve> {
        let mut names = self.0.lock();
        let known = names.iter().position(|it| it.text == name);
        let pool = ThreadpoolId::new(known.unwrap_or(names.len())).ok_or(CannotReserve::TooMany)?;
        match names.get_mut(pool.index()) {
            None => names.push(Name { text: name.to_owned(), state: State::Reserved }),
            Some(ended) if ended.state == State::Ended => ended.state = State::Reserved,
            Some(_) => return Err(CannotReserve::IsTaken),
        }
        Ok(ReservedName { names: self, pool })
    }

    /// Frees the name of a pool that has ended.
    pub(crate) fn forget(&self, pool: ThreadpoolId) {
        self.set(pool, State::Ended);
    }

    fn set(&self, pool: ThreadpoolId, state: State) {
        if let Some(name) = self.0.lock().get_mut(pool.index()) {
            name.state = state;
        }
    }
}

impl ReservedName<'_> {
    pub(crate) fn id(&self) -> ThreadpoolId {
        self.pool
    }

    /// Has the pool be found from now on.
    pub(crate) fn keep(self) -> ThreadpoolId {
        self.names.set(self.pool, State::Serving);
        let pool = self.pool;
        // From now on another thread may destroy the pool and make it again.
        std::mem::forget(self);
        pool
    }
}

impl Drop for ReservedName<'_> {
    fn drop(&mut self) {
        let mut names = self.names.0.lock();
        if let Some(name) = names.get_mut(self.pool.index()).filter(|name| name.state == State::Reserved) {
            name.state = State::Ended;
        }
    }
}
