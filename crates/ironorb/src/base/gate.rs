//! A gate for work that one thread does and others wait for: an incarnation, an etherealisation, the making
//! of an adapter. Code that decides asks whether a gate is open. Only drivers wait at one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::locks::{PiTurn, TimedTurn};
use super::monitor::Monitor;
use super::watch::Here;

/// Closed until its [`GateGuard`] is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    is_open: AtomicBool,
    opened: Monitor,
    /// Held by the thread that closed the gate, if that thread also opens it. It must not wait for itself, and it runs
    /// at the priority of the most urgent thread that waits. Before Linux 5.14 it does so only for threads that wait
    /// without a limit.
    owner: Option<PiTurn>,
}

/// Opens its gate when dropped, even if the thread panics.
#[derive(Debug)]
pub(crate) struct GateGuard(Arc<Gate>);

impl Gate {
    /// Makes a closed gate that this thread opens again.
    pub(crate) fn of_this_thread() -> GateGuard {
        let turn = PiTurn::new();
        turn.take(Here::of_caller());
        Gate::closed(Some(turn))
    }

    /// Makes a closed gate that any thread may open.
    pub(crate) fn of_any_thread() -> GateGuard {
        Gate::closed(None)
    }

    fn closed(owner: Option<PiTurn>) -> GateGuard {
        GateGuard(Arc::new(Gate { is_open: AtomicBool::new(false), opened: Monitor::default(), owner }))
    }

    /// Whether this thread must open the gate.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner.as_ref().is_some_and(PiTurn::is_ours)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Blocks until the gate is open. False when that takes longer than `at_most`.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> bool {
        let Some(owner) = &self.owner else { return self.wait_without_lending(at_most) };
        match at_most {
            None => owner.take(Here::of_caller()),
            Some(at_most) => match owner.take_within(at_most, Here::of_caller()) {
                TimedTurn::Taken => {}
                TimedTurn::Late => return self.is_open(),
                TimedTurn::NotLent => return self.wait_without_lending(Some(at_most)),
            },
        }
        owner.release();
        true
    }

    fn wait_without_lending(&self, at_most: Option<Duration>) -> bool {
        self.opened.wait(&|| self.is_open(), at_most)
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
        self.0.is_open.store(true, Ordering::SeqCst);
        self.0.opened.changed();
        if let Some(owner) = &self.0.owner {
            owner.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_wait_until_a_gate_is_open() {
        for make in [Gate::of_this_thread, Gate::of_any_thread] {
            let keeper = make();
            let gate = keeper.gate().clone();
            assert!(!gate.is_open());
            assert!(!gate.wait(Some(Duration::from_millis(1))));
            thread::scope(|scope| {
                let forever = scope.spawn(|| gate.wait(None));
                let for_long = scope.spawn(|| gate.wait(Some(Duration::from_secs(600))));
                drop(keeper);
                assert!(forever.join().unwrap());
                assert!(for_long.join().unwrap());
            });
            assert!(gate.is_open() && !gate.is_ours());
        }
    }

    #[test]
    fn a_gate_knows_the_thread_that_opens_it() {
        let keeper = Gate::of_this_thread();
        assert!(keeper.gate().is_ours());
        assert!(!thread::scope(|scope| scope.spawn(|| keeper.gate().is_ours()).join().unwrap()));
        assert!(!Gate::of_any_thread().gate().is_ours());
    }
}
