//! The lock that admits one upcall at a time, in an adapter whose thread policy is not
//! [`ThreadModel::OrbControl`](super::ThreadModel::OrbControl).

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use super::{PoaInner, ThreadModel};
use crate::base::sync::lock;

/// A reentrant lock: the thread that makes upcalls may make nested ones.
#[derive(Debug, Default)]
pub(super) struct SingleThreadLock {
    /// The thread that holds the lock, and how often it has taken it.
    holder: Mutex<Option<(ThreadId, usize)>>,
    given_back: Condvar,
}

impl SingleThreadLock {
    /// Takes the lock. Blocks unless this thread holds it already or it is free.
    fn take(&self) {
        let me = std::thread::current().id();
        let mut holder = lock(&self.holder);
        loop {
            match &mut *holder {
                None => {
                    *holder = Some((me, 1));
                    return;
                }
                Some((thread, times)) if *thread == me => {
                    *times += 1;
                    return;
                }
                Some(_) => {
                    holder = self.given_back.wait(holder).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn release(&self) {
        let mut holder = lock(&self.holder);
        match &mut *holder {
            Some((_, times)) if *times > 1 => *times -= 1,
            _ => {
                *holder = None;
                self.given_back.notify_one();
            }
        }
    }
}

/// The lock held by a thread, released when this is dropped.
pub(super) struct SingleThreadGuard(Option<Arc<PoaInner>>);

impl SingleThreadGuard {
    /// Blocks until this thread may make an upcall. Returns at once if it holds the lock already, or if the
    /// thread policy needs none. `None` when another thread must make the upcall.
    pub(super) fn wait(poa: &Arc<PoaInner>) -> Option<SingleThreadGuard> {
        match poa.policies.thread {
            ThreadModel::OrbControl => return Some(SingleThreadGuard(None)),
            ThreadModel::SingleThread => poa.single_thread_lock.take(),
            ThreadModel::MainThread if poa.orb.adapter.main_thread().enter() => {}
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
            ThreadModel::MainThread => self.orb.adapter.main_thread().resign(),
        }
    }
}
