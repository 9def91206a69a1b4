//! The names of an ORB's thread pools.

use crate::base::locks::PiLock;
use crate::object::threadpool::ThreadpoolId;

/// The names, in the order of the pools' numbers. The name of a pool that has ended is free; its number is not.
#[derive(Debug)]
pub(crate) struct ThreadpoolNames(PiLock<Vec<Option<Name>>>);

#[derive(Debug)]
struct Name {
    text: String,
    /// Whether the pool has its lanes.
    serves: bool,
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
        let name = |text| Some(Name { text, serves: true });
        ThreadpoolNames(PiLock::new(names.into_iter().map(name).collect()))
    }

    /// The pool with this name that serves.
    pub(super) fn find(&self, name: &str) -> Option<ThreadpoolId> {
        let is_it = |it: &Option<Name>| it.as_ref().is_some_and(|it| it.serves && it.text == name);
        self.0.lock().iter().position(is_it).and_then(ThreadpoolId::new)
    }

    /// Gives a name and a number to a pool that is about to be made.
    pub(crate) fn reserve(&self, name: &str) -> Result<ReservedName<'_>, CannotReserve> {
        let mut names = self.0.lock();
        if names.iter().flatten().any(|it| it.text == name) {
            return Err(CannotReserve::IsTaken);
        }
        let pool = ThreadpoolId::new(names.len()).ok_or(CannotReserve::TooMany)?;
        names.push(Some(Name { text: name.to_owned(), serves: false }));
        Ok(ReservedName { names: self, pool })
    }

    /// Frees the name of a pool that has ended.
    pub(crate) fn forget(&self, pool: ThreadpoolId) {
        let forgotten = self.0.lock().get_mut(pool.index()).and_then(Option::take);
        drop(forgotten);
    }
}

impl ReservedName<'_> {
    pub(crate) fn id(&self) -> ThreadpoolId {
        self.pool
    }

    /// Has the pool be found from now on.
    pub(crate) fn keep(self) -> ThreadpoolId {
        if let Some(Some(name)) = self.names.0.lock().get_mut(self.pool.index()) {
            name.serves = true;
        }
        self.pool
    }
}

impl Drop for ReservedName<'_> {
    fn drop(&mut self) {
        let mut names = self.names.0.lock();
        if let Some(name) = names.get_mut(self.pool.index()) {
            name.take_if(|it| !it.serves);
        }
    }
}
