//! Which thread may make an upcall, and when, in an adapter whose thread policy is not
//! [`ThreadModel::OrbControl`](super::ThreadModel::OrbControl).

use std::sync::Arc;

use super::{PoaInner, ThreadModel};

/// The lock held by a thread, released when this is dropped.
pub(super) struct SingleThreadGuard(Option<Arc<PoaInner>>);

impl SingleThreadGuard {
    /// Blocks until this thread may make an upcall. Returns at once if it holds the lock already, or if the
    /// thread policy needs none. `None` when another thread must make the upcall.
    pub(super) fn wait(poa: &Arc<PoaInner>) -> Option<SingleThreadGuard> {
        match poa.policies.thread {
            ThreadModel::OrbControl => return Some(SingleThreadGuard(None)),
            ThreadModel::SingleThread => poa.driver().take_turn(&poa.single_thread_lock),
            ThreadModel::MainThread if poa.orb.adapter().main_thread().enter() => {}
            ThreadModel::MainThread => return None,
        }
        Some(SingleThreadGuard(Some(poa.clone())))
    }

    /// Passes the lock to an [`Upcall`](super::Upcall), which releases it with
    /// [`PoaInner::release_single_thread`].
    pub(super) fn leave_to_upcall(mut self) {
        self.0 = None;
    }
}

impl Drop for SingleThreadGuard {
    fn drop(&mut self) {
        if let Some(poa) = &self.0 {
            poa.release_single_thread();
        }
    }
}

impl PoaInner {
    /// Releases the lock after an upcall.
    #[cold]
    pub(super) fn release_single_thread(&self) {
        match self.policies.thread {
            ThreadModel::OrbControl => {}
            ThreadModel::SingleThread => self.single_thread_lock.release(),
            ThreadModel::MainThread => self.orb.adapter().main_thread().resign(),
        }
    }
}
