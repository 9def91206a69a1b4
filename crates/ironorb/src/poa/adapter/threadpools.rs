//! The thread pools of an ORB: their names, which of them serve, and how many adapters each of these has.

use crate::base::locks::PiLock;
use crate::object::threadpool::ThreadpoolId;

/// All pools, in the order of their numbers. A pool that is made again has the number of before.
#[derive(Debug)]
pub(crate) struct Threadpools(PiLock<Vec<Pool>>);

#[derive(Debug)]
struct Pool {
    name: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is being made, or destroyed: no adapter can name it, and no other pool can have its name.
    Changing,
    /// It has its lanes, and serves so many adapters.
    Serving { adapters: usize },
    /// It has been destroyed, or could not be made.
    Ended,
}

/// A pool that is being made or destroyed. It has ended when this is dropped.
pub(crate) struct ChangingPool<'a> {
    pools: &'a Threadpools,
    pool: ThreadpoolId,
}

/// Why a pool cannot have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotReserve {
    IsTaken,
    /// There is no further number for a pool.
    TooMany,
}

/// Why a pool cannot end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotEnd {
    /// The ORB has no such pool, or no longer.
    Unknown,
    /// So many adapters name it.
    InUse { adapters: usize },
}

impl Threadpools {
    /// Pools with these names, which serve.
    pub(crate) fn new(names: Vec<String>) -> Threadpools {
        let pool = |name| Pool { name, state: State::Serving { adapters: 0 } };
        Threadpools(PiLock::new(names.into_iter().map(pool).collect()))
    }

    /// The pool with this name that serves.
    pub(crate) fn find(&self, name: &str) -> Option<ThreadpoolId> {
        let is_it = |pool: &Pool| matches!(pool.state, State::Serving { .. }) && pool.name == name;
        self.0.lock().iter().position(is_it).and_then(ThreadpoolId::new)
    }

    /// The pool with this number that serves.
    pub(crate) fn numbered(&self, number: u32) -> Option<ThreadpoolId> {
        let pool = ThreadpoolId::new(usize::try_from(number).ok()?)?;
        self.serves(pool).then_some(pool)
    }

    pub(super) fn serves(&self, pool: ThreadpoolId) -> bool {
        self.with_adapters(pool, |_| ()).is_some()
    }

    /// Gives a name and a number to a pool that is about to be made.
    pub(crate) fn reserve(&self, name: &str) -> Result<ChangingPool<'_>, CannotReserve> {
        let mut pools = self.0.lock();
        let known = pools.iter().position(|it| it.name == name);
        let pool = ThreadpoolId::new(known.unwrap_or(pools.len())).ok_or(CannotReserve::TooMany)?;
        match pools.get_mut(pool.index()) {
            None => pools.push(Pool { name: name.to_owned(), state: State::Changing }),
            Some(ended) if ended.state == State::Ended => ended.state = State::Changing,
            Some(_) => return Err(CannotReserve::IsTaken),
        }
        Ok(ChangingPool { pools: self, pool })
    }

    /// Takes a pool away, so that no adapter can name it from now on.
    pub(crate) fn end(&self, pool: ThreadpoolId) -> Result<ChangingPool<'_>, CannotEnd> {
        let mut pools = self.0.lock();
        let state = pools.get_mut(pool.index()).map(|pool| &mut pool.state);
        match state {
            Some(state @ State::Serving { adapters: 0 }) => *state = State::Changing,
            Some(&mut State::Serving { adapters }) => return Err(CannotEnd::InUse { adapters }),
            _ => return Err(CannotEnd::Unknown),
        }
        Ok(ChangingPool { pools: self, pool })
    }

    /// Counts an adapter of a pool. False if the pool does not serve; nothing is counted then.
    #[must_use]
    pub(super) fn begin_use(&self, pool: Option<ThreadpoolId>) -> bool {
        pool.is_none_or(|pool| self.with_adapters(pool, |adapters| *adapters += 1).is_some())
    }

    /// Ends a count of [`begin_use`](Self::begin_use).
    pub(super) fn end_use(&self, pool: Option<ThreadpoolId>) {
        let _none_without_a_pool = pool.map(|pool| self.with_adapters(pool, |adapters| *adapters -= 1));
    }

    /// Looks at the number of adapters of a pool that serves.
    fn with_adapters<R>(&self, pool: ThreadpoolId, look: impl FnOnce(&mut usize) -> R) -> Option<R> {
        match &mut self.0.lock().get_mut(pool.index())?.state {
            State::Serving { adapters } => Some(look(adapters)),
            State::Changing | State::Ended => None,
        }
    }

    fn set(&self, pool: ThreadpoolId, state: State) {
        if let Some(pool) = self.0.lock().get_mut(pool.index()) {
            pool.state = state;
        }
    }
}

impl ChangingPool<'_> {
    pub(crate) fn id(&self) -> ThreadpoolId {
        self.pool
    }

    /// Has adapters find the pool from now on.
    pub(crate) fn serve(self) -> ThreadpoolId {
        let pool = self.pool;
        self.pools.set(pool, State::Serving { adapters: 0 });
        std::mem::forget(self);
        pool
    }
}

impl Drop for ChangingPool<'_> {
    fn drop(&mut self) {
        self.pools.set(self.pool, State::Ended);
    }
}
