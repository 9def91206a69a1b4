//! Locks of servants, in the order of arrival: those of the system's library have no order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use ironorb_model::scenario::{Scenario, ServerLock};
use ironorb_model::{Load, ResourceObservations, Time, resources};

use crate::deployment::Deployment;

/// What a request locks: an object of a process, or all of them.
pub(crate) type LockKey = (u32, Option<u64>);

/// The locks of all servers.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Those that are taken, and who waits.
    taken: BTreeMap<LockKey, VecDeque<Waiting>>,
    /// The use of each server's locks.
    loads: Vec<Load>,
}

#[derive(Debug)]
struct Waiting {
    thread: Thread,
    is_passed: Arc<AtomicBool>,
}

/// A lock that the calling thread has.
pub(crate) struct Locked<'d> {
    deployment: &'d Deployment,
    server: usize,
    key: LockKey,
}

impl Locks {
    pub(crate) fn of(scenario: &Scenario) -> Locks {
        Locks { taken: BTreeMap::new(), loads: scenario.servers.iter().map(|_| Load::new(1)).collect() }
    }

    pub(crate) fn restart(&mut self, now: Time) {
        self.loads.iter_mut().for_each(|load| load.restart(now));
    }

    pub(crate) fn observe(&self, now: Time, scenario: &Scenario, into: &mut Vec<ResourceObservations>) {
        resources::observe_locks(scenario, &self.loads, now, into);
    }
}

impl Deployment {
    /// Locks what a request of a server locks, and waits for it. `None` if that is nothing.
    pub(crate) fn lock(&self, server: usize, process: u32, object: u64) -> Option<Locked<'_>> {
        let key = match self.scenario.servers[server].lock {
            ServerLock::None => return None,
            ServerLock::Object => (process, Some(object)),
            ServerLock::Process => (process, None),
        };
        let now = self.now();
        let passed = {
            let mut board = self.board();
            let Locks { taken, loads } = &mut board.locks;
            match taken.get_mut(&key) {
                None => {
                    loads[server].take(now);
                    taken.insert(key, VecDeque::new());
                    None
                }
                Some(others) => {
                    loads[server].wait(now);
                    let is_passed = Arc::new(AtomicBool::new(false));
                    others.push_back(Waiting { thread: thread::current(), is_passed: is_passed.clone() });
                    Some(is_passed)
                }
            }
        };
        if let Some(is_passed) = passed {
            while !is_passed.load(Ordering::Acquire) {
                thread::park();
            }
        }
        Some(Locked { deployment: self, server, key })
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let now = self.deployment.now();
        let next = {
            let mut board = self.deployment.board();
            let Locks { taken, loads } = &mut board.locks;
            let next = taken.get_mut(&self.key).and_then(VecDeque::pop_front);
            match next {
                Some(_) => loads[self.server].wait_no_longer(now),
                None => {
                    loads[self.server].give_back(now);
                    taken.remove(&self.key);
                }
            }
            next
        };
        if let Some(Waiting { thread, is_passed }) = next {
            is_passed.store(true, Ordering::Release);
            thread.unpark();
        }
    }
}
