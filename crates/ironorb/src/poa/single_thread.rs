//! One upcall at a time: a thread's right to make one in an adapter whose thread policy is not
//! [`ThreadModel::OrbControl`](super::ThreadModel::OrbControl).

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use super::{PoaInner, ThreadModel};
use crate::sync::lock;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct SingleThreadLock {
    /// The thread that has it, and how often it has taken it.
    holder: Mutex<Option<(ThreadId, usize)>>,
    given_back: Condvar,
}

impl SingleThreadLock {
    /// Blocks until it is this thread's turn; at once when it is already.
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

    fn give_back(&self) {
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

/// A thread's turn, given back when dropped.
pub(super) struct SingleThreadGuard(Option<Arc<PoaInner>>);

impl SingleThreadGuard {
    /// Blocks until it is this thread's turn; at once when it is already, and where upcalls need none. `None` when another
    /// thread must make the upcall.
    pub(super) fn wait(poa: &Arc<PoaInner>) -> Option<SingleThreadGuard> {
        match poa.policies.thread {
            ThreadModel::OrbControl => return Some(SingleThreadGuard(None)),
            ThreadModel::SingleThread => poa.single_thread_lock.take(),
            ThreadModel::MainThread if poa.orb.adapter.main_thread().enter() => {}
            ThreadModel::MainThread => return None,
        }
        Some(SingleThreadGuard(Some(poa.clone())))
    }

    /// From now on an [`Upcall`](super::Upcall) has it, which gives it back by [`PoaInner::release_single_thread`].
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
    /// An upcall is over.
    #[cold]
    pub(super) fn release_single_thread(&self) {
        match self.policies.thread {
            ThreadModel::OrbControl => {}
            ThreadModel::SingleThread => self.single_thread_lock.give_back(),
            ThreadModel::MainThread => self.orb.adapter.main_thread().resign(),
        }
    }
}
