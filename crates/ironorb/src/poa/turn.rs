//! One at a time: upcalls of an adapter with [`ThreadModel::SingleThread`](super::ThreadModel::SingleThread).

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use super::PoaInner;
use crate::sync::lock;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The thread that has it, and how often it has taken it.
    holder: Mutex<Option<(ThreadId, usize)>>,
    given_back: Condvar,
}

/// A thread's turn, given back when dropped.
pub(super) struct Turn(Arc<PoaInner>);

impl Turn {
    /// Blocks until it is this thread's turn; at once when it is already.
    pub(super) fn wait(poa: &Arc<PoaInner>) -> Turn {
        let me = std::thread::current().id();
        let mut holder = lock(&poa.turns.holder);
        loop {
            match &mut *holder {
                None => {
                    *holder = Some((me, 1));
                    break;
                }
                Some((thread, times)) if *thread == me => {
                    *times += 1;
                    break;
                }
                Some(_) => {
                    holder = poa.turns.given_back.wait(holder).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        Turn(poa.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut holder = lock(&self.0.turns.holder);
        match &mut *holder {
            Some((_, times)) if *times > 1 => *times -= 1,
            _ => {
                *holder = None;
                self.0.turns.given_back.notify_one();
            }
        }
    }
}
