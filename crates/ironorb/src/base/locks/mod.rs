//! The locks of the ORB, one type for each answer to the question who may wait for whom. Code outside `base/` and
//! `transport/` has no others; `docs/decisions/061-kinds-of-locks.md` says which lock is of which kind.
//!
//! | lock | which threads wait for one another |
//! |---|---|
//! | [`LaneLock`] | those of one lane; in a process with a real-time ORB the holder inherits the highest priority that waits |
//! | [`PiLock`] | those of all lanes; the holder inherits the highest priority that waits |
//! | [`SmallPiLock`] | as for a [`PiLock`], and those that hold some other such lock |
//! | [`ColdLock`] | those that start and stop the ORB, none with a real-time priority |
//! | [`Snapshot`], [`SnapshotMap`] | readers never wait; threads that change the value do, as for a [`PiLock`] |
//! | [`Handoff`] | none: the order in which threads count themselves out says which of them takes the value |
//!
//! No lock knows poison: the ORB catches a servant's panic before it can leave data half changed.

mod cold_lock;
mod condition;
mod handoff;
#[cfg(test)]
mod inheritance_tests;
mod lane_lock;
mod pi_lock;
mod small_pi_lock;
mod snapshot;

pub(crate) use cold_lock::ColdLock;
pub(crate) use condition::Condition;
pub(crate) use handoff::Handoff;
pub(super) use ironorb_locks::system;
pub(crate) use ironorb_locks::{Circle, LockGuard, PiTurn, TimedTurn, lends_priorities, thread_id};
pub(crate) use lane_lock::{LaneLock, lane_locks_lend_from_now_on};
pub(crate) use pi_lock::PiLock;
pub(crate) use small_pi_lock::{SmallPiGuard, SmallPiLock};
pub(crate) use snapshot::{PARTS, Snapshot, SnapshotMap};

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
