//! Thread pools: lanes that serve some adapters and no others (RTCORBA 1.2, 5.9).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::priority::Priority;
use super::protocols::Protocols;

/// A thread pool of an ORB (`RTCORBA::ThreadpoolId`; RTCORBA 1.2, 5.9), from [`RtOrb::threadpool`](crate::rt::RtOrb::threadpool)
/// and [`create_threadpool`](crate::rt::RtOrb::create_threadpool): the lanes that name it. Means nothing to other ORBs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadpoolId(u8);

impl ThreadpoolId {
    /// The pool with this index among those of its ORB.
    pub(crate) fn new(index: usize) -> Option<ThreadpoolId> {
        u8::try_from(index).ok().map(ThreadpoolId)
    }

    /// The number of the pool among those of its ORB: the value of a `ThreadpoolPolicy` for
    /// [`Orb::create_policy`](crate::Orb::create_policy).
    pub fn number(self) -> u32 {
        self.0.into()
    }

    /// The index of the pool among those of its ORB, also the ones that have ended.
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

impl fmt::Display for ThreadpoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What adapters know of a lane.
#[derive(Debug, Clone)]
pub(crate) struct LaneFacts {
    pub(crate) priority: Option<Priority>,
    /// The pool that it belongs to; `None` for the lanes that serve adapters without a pool.
    pub(crate) threadpool: Option<ThreadpoolId>,
    /// Whether it serves requests that are not scheduled.
    pub(crate) is_best_effort: bool,
    /// Shared with the lane itself.
    pub(crate) has_ended: Arc<AtomicBool>,
}

impl LaneFacts {
    /// Whether its thread pool has been destroyed. It may come back.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// By which addresses of an ORB clients reach the objects of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReachedBy {
    /// The addresses of these protocols, or of all if the list is empty.
    pub(crate) protocols: Protocols,
    /// Those of the lanes of this pool, or of the lanes without a pool.
    pub(crate) threadpool: Option<ThreadpoolId>,
    /// The highest priority that requests may ask for, if there is a limit.
    pub(crate) propagated_max: Option<Priority>,
}
