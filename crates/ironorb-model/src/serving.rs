//! Who serves a request that has reached its server, and who has a lock: the threads of pools and of connections, and the locks of
//! servants, as levels L0 and L1 have them.

use std::collections::VecDeque;

use crate::scenario::{Scenario, ServerLock};
use crate::slab::{Queue, Queued, Slab};
use crate::{Load, ResourceObservations, Table, Time, resources};

/// The threads of one lane of a process, and the requests that wait for one.
#[derive(Debug)]
pub struct Pool {
    free: VecDeque<u32>,
    waiting: Queue,
    load: Load,
}

impl Pool {
    /// A pool of these threads, all of them free.
    pub fn new(threads: impl IntoIterator<Item = u32>) -> Pool {
        let free: VecDeque<u32> = threads.into_iter().collect();
        let load = Load::new(free.len() as u32);
        Pool { free, waiting: Queue::default(), load }
    }

    /// A request has come. Gives the thread that serves it: the one that has been free for the longest time, since the system wakes
    /// threads that wait for one condition in this order. `None` if the request waits for a thread.
    #[inline]
    pub fn take<T: Queued>(&mut self, now: Time, requests: &mut Slab<T>, request: u32) -> Option<u32> {
        let thread = self.free.pop_front();
        match thread {
            Some(_) => self.load.take(now),
            None => {
                self.load.wait(now);
                self.waiting.push(requests, request);
            }
        }
        thread
    }

    /// A thread has served a request. Gives the one that it serves next. `None` if none waits: then the thread is free.
    #[inline]
    pub fn give_back<T: Queued>(&mut self, now: Time, requests: &mut Slab<T>, thread: u32) -> Option<u32> {
        let next = self.waiting.pop(requests);
        match next {
            Some(_) => self.load.wait_no_longer(now),
            None => {
                self.load.give_back(now);
                self.free.push_back(thread);
            }
        }
        next
    }

    /// What its threads have done, under this name.
    pub fn observe(&self, now: Time, name: String) -> ResourceObservations {
        self.load.observe(now, name)
    }

    /// Forgets what was observed.
    pub fn restart_observation(&mut self, now: Time) {
        self.load.restart(now);
    }
}

/// The thread that serves a connection where each has one, and the requests that wait for it.
#[derive(Debug, Default)]
pub struct ConnectionThread {
    thread: Option<u32>,
    is_busy: bool,
    waiting: Queue,
}

impl ConnectionThread {
    /// The thread, if a request has come.
    pub fn thread(&self) -> Option<u32> {
        self.thread
    }

    /// A request has come to this thread, which serves it if it is free. `None` if the request waits.
    #[inline]
    pub fn take<T: Queued>(&mut self, requests: &mut Slab<T>, request: u32, thread: u32) -> Option<u32> {
        self.thread = Some(thread);
        if std::mem::replace(&mut self.is_busy, true) {
            self.waiting.push(requests, request);
            return None;
        }
        Some(thread)
    }

    /// The thread has served a request. Gives the one that it serves next.
    #[inline]
    pub fn give_back<T: Queued>(&mut self, requests: &mut Slab<T>) -> Option<u32> {
        let next = self.waiting.pop(requests);
        self.is_busy = next.is_some();
        next
    }
}

/// What a request locks: all objects of a process, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockKey {
    process: u32,
    object: u64,
}

impl LockKey {
    /// What a request to an object of a process locks, if anything.
    pub fn of(lock: ServerLock, process: u32, object: u64) -> Option<LockKey> {
        match lock {
            ServerLock::None => None,
            ServerLock::Object => Some(LockKey { process, object }),
            ServerLock::Process => Some(LockKey { process, object: u64::MAX }),
        }
    }
}

/// The locks that requests have, and the requests that wait for them.
#[derive(Debug)]
pub struct Locks {
    held: Table<LockKey, Queue>,
    /// Of each server.
    loads: Vec<Load>,
}

impl Locks {
    /// Those of the servers of a scenario. Nobody has any.
    pub fn of(scenario: &Scenario) -> Locks {
        Locks { held: Table::default(), loads: scenario.servers.iter().map(|_| Load::new(1)).collect() }
    }

    /// A request to a server locks. False if it waits for the lock.
    #[inline]
    pub fn lock<T: Queued>(
        &mut self,
        now: Time,
        requests: &mut Slab<T>,
        request: u32,
        (server, key): (usize, LockKey),
    ) -> bool {
        let load = &mut self.loads[server];
        match self.held.get_mut(&key) {
            Some(waiting) => {
                load.wait(now);
                waiting.push(requests, request);
                false
            }
            None => {
                load.take(now);
                self.held.insert(key, Queue::default());
                true
            }
        }
    }

    /// A request gives its lock back. Gives the one that has it from now on.
    #[inline]
    pub fn unlock<T: Queued>(
        &mut self,
        now: Time,
        requests: &mut Slab<T>,
        (server, key): (usize, LockKey),
    ) -> Option<u32> {
        let next = self.held.get_mut(&key).and_then(|waiting| waiting.pop(requests));
        let load = &mut self.loads[server];
        match next {
            Some(_) => load.wait_no_longer(now),
            None => {
                load.give_back(now);
                self.held.remove(&key);
            }
        }
        next
    }

    /// What they have done.
    pub fn observe(&self, scenario: &Scenario, now: Time, into: &mut Vec<ResourceObservations>) {
        resources::observe_locks(scenario, &self.loads, now, into);
    }

    /// Forgets what was observed.
    pub fn restart_observation(&mut self, now: Time) {
        self.loads.iter_mut().for_each(|load| load.restart(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Request(u32);

    impl Queued for Request {
        fn next(&mut self) -> &mut u32 {
            &mut self.0
        }
    }

    fn requests() -> (Slab<Request>, [u32; 4]) {
        let mut requests = Slab::default();
        let numbers = [(); 4].map(|()| requests.add(Request::default()));
        (requests, numbers)
    }

    #[test]
    fn threads_and_requests_take_turns_in_the_order_in_which_they_have_come() {
        let (mut requests, [first, second, third, fourth]) = requests();
        let now = Time::ZERO;
        let mut pool = Pool::new([10, 11]);
        assert_eq!(pool.take(now, &mut requests, first), Some(10));
        assert_eq!(pool.take(now, &mut requests, second), Some(11));
        assert_eq!(pool.take(now, &mut requests, third), None);
        assert_eq!(pool.take(now, &mut requests, fourth), None);
        assert_eq!(pool.give_back(now, &mut requests, 11), Some(third));
        assert_eq!(pool.give_back(now, &mut requests, 10), Some(fourth));
        assert_eq!(pool.give_back(now, &mut requests, 11), None);
        assert_eq!(pool.give_back(now, &mut requests, 10), None);
        assert_eq!(pool.take(now, &mut requests, first), Some(11), "free for the longest time");
    }

    #[test]
    fn the_thread_of_a_connection_serves_one_request_at_a_time() {
        let (mut requests, [first, second, third, _]) = requests();
        let mut served = ConnectionThread::default();
        assert_eq!(served.thread(), None);
        assert_eq!(served.take(&mut requests, first, 10), Some(10));
        assert_eq!(served.thread(), Some(10));
        assert_eq!(served.take(&mut requests, second, 10), None);
        assert_eq!(served.take(&mut requests, third, 10), None);
        assert_eq!(served.give_back(&mut requests), Some(second));
        assert_eq!(served.give_back(&mut requests), Some(third));
        assert_eq!(served.give_back(&mut requests), None);
        assert_eq!(served.take(&mut requests, first, 10), Some(10));
    }

    #[test]
    fn a_lock_passes_to_the_request_that_has_waited_longest() {
        let (mut requests, [first, second, third, other]) = requests();
        let now = Time::ZERO;
        let mut locks = Locks { held: Table::default(), loads: vec![Load::new(1)] };
        let of = |object| (0, LockKey::of(ServerLock::Object, 7, object).unwrap());
        assert!(locks.lock(now, &mut requests, first, of(1)));
        assert!(!locks.lock(now, &mut requests, second, of(1)));
        assert!(!locks.lock(now, &mut requests, third, of(1)));
        assert!(locks.lock(now, &mut requests, other, of(2)), "another object");
        assert_eq!(locks.unlock(now, &mut requests, of(1)), Some(second));
        assert_eq!(locks.unlock(now, &mut requests, of(1)), Some(third));
        assert_eq!(locks.unlock(now, &mut requests, of(1)), None);
        assert!(locks.lock(now, &mut requests, first, of(1)));
        // One lock for all objects of a process, and none.
        let key = |lock, object| LockKey::of(lock, 7, object);
        assert_eq!(key(ServerLock::Process, 1), key(ServerLock::Process, 2));
        assert_eq!(key(ServerLock::None, 1), None);
    }
}
