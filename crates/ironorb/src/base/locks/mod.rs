//! The locks of the ORB, one type for each answer to the question who may wait for whom. Code outside `base/` and
//! `transport/` has no others; `docs/decisions/061-kinds-of-locks.md` says which lock is of which kind.
//!
//! | lock | which threads wait for one another |
//! |---|---|
//! | [`LaneLock`] | those of one lane |
//! | [`PiLock`] | those of all lanes; the holder inherits the highest priority that waits |
//! | [`ColdLock`] | those that start and stop the ORB, none with a real-time priority |
//! | [`SharedLock`], [`SharedTable`] | those of all lanes, on the way of calls; lanes make their readers wait-free |
//!
//! No lock knows poison: the ORB catches a servant's panic before it can leave data half changed.

mod cold_lock;
mod condition;
mod lane_lock;
mod pi_lock;
mod shared;

pub(crate) use cold_lock::ColdLock;
pub(crate) use condition::Condition;
pub(crate) use lane_lock::LaneLock;
pub(crate) use pi_lock::{PiGuard, PiLock, PiTurn, own_id as thread_id};
pub(crate) use shared::{ReadGuard, SharedLock, SharedTable};

/// What a thread holds of a [`LaneLock`], a [`ColdLock`] or a [`SharedLock`]. Dropping it unlocks.
pub(crate) type LockGuard<'l, T> = std::sync::MutexGuard<'l, T>;

/// Runs a body on a new thread. True if it ends without a panic.
#[cfg(test)]
fn outcome_of(thread: super::spawner::NewThread<'_>, body: impl FnOnce() + Send + 'static) -> bool {
    let (tell, told) = std::sync::mpsc::channel();
    thread
        .spawn(move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            tell.send(result.is_ok()).expect("the test waits");
        })
        .expect("a thread");
    told.recv().expect("the thread tells")
}
