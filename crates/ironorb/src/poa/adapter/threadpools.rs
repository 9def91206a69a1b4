//! Which thread pools an ORB has, and how many adapters each of them serves. A pool ends only when none does.

use std::collections::BTreeMap;

use crate::base::locks::PiLock;
use crate::object::threadpool::ThreadpoolId;

/// The pools that have not ended, with the number of their adapters.
#[derive(Debug, Default)]
pub(crate) struct Threadpools(PiLock<BTreeMap<ThreadpoolId, usize>>);

/// Why a pool cannot end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotEnd {
    /// The ORB has no such pool, or no longer.
    Unknown,
    /// So many adapters name it.
    InUse { adapters: usize },
}

impl FromIterator<ThreadpoolId> for Threadpools {
    fn from_iter<I: IntoIterator<Item = ThreadpoolId>>(pools: I) -> Threadpools {
        let pools: BTreeMap<_, _> = pools.into_iter().map(|pool| (pool, 0)).collect();
        Threadpools(PiLock::new(pools))
    }
}

impl Threadpools {
    /// Adds a pool, whose lanes serve from now on.
    pub(crate) fn add(&self, pool: ThreadpoolId) {
        self.0.lock().insert(pool, 0);
    }

    pub(crate) fn has(&self, pool: ThreadpoolId) -> bool {
        self.0.lock().contains_key(&pool)
    }

    /// Counts an adapter of a pool. False if the pool has ended; nothing is counted then.
    #[must_use]
    pub(super) fn begin_use(&self, pool: Option<ThreadpoolId>) -> bool {
        let Some(pool) = pool else { return true };
        match self.0.lock().get_mut(&pool) {
            Some(adapters) => {
                *adapters += 1;
                true
            }
            None => false,
        }
    }

    /// Ends a count of [`begin_use`](Self::begin_use).
    pub(super) fn end_use(&self, pool: Option<ThreadpoolId>) {
        if let Some(pool) = pool
            && let Some(adapters) = self.0.lock().get_mut(&pool)
        {
            *adapters -= 1;
        }
    }

    /// Takes a pool away, so that no adapter can name it from now on.
    pub(crate) fn end(&self, pool: ThreadpoolId) -> Result<(), CannotEnd> {
        let mut pools = self.0.lock();
        let _ended = match pools.get(&pool) {
            None => return Err(CannotEnd::Unknown),
            Some(0) => pools.remove(&pool),
            Some(&adapters) => return Err(CannotEnd::InUse { adapters }),
        };
        Ok(())
    }
}
