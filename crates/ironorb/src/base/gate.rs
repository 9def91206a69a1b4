//! A gate for work that one thread does and others wait for: an incarnation, an etherealisation, the making
//! of an adapter. Code that decides asks whether a gate is open. Only drivers wait at one.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::sync::{ThreadMark, lock};

/// Closed until its [`GateGuard`] is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// The thread that closed the gate, if that thread also opens it. It must not wait for itself.
    owner: Option<ThreadMark>,
}

/// Opens its gate when dropped, even if the thread panics.
#[derive(Debug)]
pub(crate) struct GateGuard(Arc<Gate>);

impl Gate {
    /// Makes a closed gate that this thread opens again.
    pub(crate) fn of_this_thread() -> GateGuard {
        Gate::closed(Some(ThreadMark::of_this_thread()))
    }

    /// Makes a closed gate that any thread may open.
    pub(crate) fn of_any_thread() -> GateGuard {
        Gate::closed(None)
    }

    fn closed(owner: Option<ThreadMark>) -> GateGuard {
        GateGuard(Arc::new(Gate { is_open: Mutex::new(false), opened: Condvar::new(), owner }))
    }

    /// Whether this thread must open the gate.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner == Some(ThreadMark::of_this_thread())
    }

    pub(crate) fn is_open(&self) -> bool {
        *lock(&self.is_open)
    }

    /// Blocks until the gate is open. False when that takes longer than `at_most`.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> bool {
        let guard = lock(&self.is_open);
        let closed = |is_open: &mut bool| !*is_open;
        match at_most {
            None => {
                drop(self.opened.wait_while(guard, closed).unwrap_or_else(PoisonError::into_inner));
                true
            }
            Some(at_most) => {
                let waited = self.opened.wait_timeout_while(guard, at_most, closed);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

impl GateGuard {
    /// The gate, for threads that wait.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.0
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        *lock(&self.0.is_open) = true;
        self.0.opened.notify_all();
    }
}
