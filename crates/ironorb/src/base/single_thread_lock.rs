//! The lock that admits one upcall at a time, for adapters whose thread policy says so.

use std::sync::{Condvar, Mutex, PoisonError};

use super::sync::{ThreadMark, lock};

/// A reentrant lock: the thread that makes upcalls may make nested ones. Only drivers wait for it.
#[derive(Debug, Default)]
pub(crate) struct SingleThreadLock {
    /// The thread that holds the lock, and how often it has taken it.
    holder: Mutex<Option<(ThreadMark, usize)>>,
    given_back: Condvar,
}

impl SingleThreadLock {
    /// Takes the lock. Blocks unless this thread holds it already or it is free.
    pub(crate) fn take(&self) {
        let me = ThreadMark::of_this_thread();
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

    /// Gives the lock back, as often as it was taken.
    pub(crate) fn release(&self) {
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
