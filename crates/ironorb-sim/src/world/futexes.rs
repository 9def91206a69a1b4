//! Futexes: threads that wait at a word of memory, in their order.

use std::collections::{BTreeMap, VecDeque};

use ironorb_model::Time;

use super::{State, ThreadId, Why};

/// Threads by the address at which they wait. The order of addresses decides nothing.
#[derive(Default)]
pub(super) struct Futexes(BTreeMap<usize, VecDeque<Waiter>>);

struct Waiter {
    thread: ThreadId,
    mask: u32,
}

/// What unlocking a lock that lends priorities comes to.
pub(crate) enum PiAnswer {
    /// The lock is free.
    Free,
    /// The lock is that of the thread with this number of the system; whether others wait.
    Passed(i32, bool),
}

impl State {
    /// Has the running thread wait at a word.
    pub(crate) fn wait_at(&mut self, address: usize, mask: u32, until: Option<Time>) {
        let thread = self.running;
        self.futexes.0.entry(address).or_default().push_back(Waiter { thread, mask });
        self.block("waiting for a lock, a condition or to be unparked", &[], until);
    }

    /// Ends the wait of the running thread at a word: whether it was woken there.
    pub(crate) fn end_wait_at(&mut self, address: usize) -> bool {
        let me = self.running;
        if let Some(waiters) = self.futexes.0.get_mut(&address) {
            waiters.retain(|waiter| waiter.thread != me);
            if waiters.is_empty() {
                self.futexes.0.remove(&address);
            }
        }
        self.why() == Why::Happened
    }

    /// Wakes up to so many of those that wait at a word.
    pub(crate) fn wake_at(&mut self, address: usize, most: u32, mask: u32) -> u32 {
        let mut woken = 0;
        while woken < most {
            let Some(thread) = self.next_waiter(address, mask) else { break };
            self.wake(thread, Why::Happened);
            woken += 1;
        }
        woken
    }

    /// Moves those that wait at one word to another, but for the first `wakes`, which go on.
    pub(crate) fn requeue(&mut self, from: usize, to: usize, wakes: u32, most: u32) -> u32 {
        let woken = self.wake_at(from, wakes, u32::MAX);
        let mut moved = 0;
        while moved < most {
            let Some(thread) = self.next_waiter(from, u32::MAX) else { break };
            self.futexes.0.entry(to).or_default().push_back(Waiter { thread, mask: u32::MAX });
            moved += 1;
        }
        woken + moved
    }

    /// Unlocks a lock that lends priorities: it passes to the thread that has waited longest.
    pub(crate) fn pass_lock(&mut self, address: usize) -> PiAnswer {
        let Some(next) = self.next_waiter(address, u32::MAX) else { return PiAnswer::Free };
        self.wake(next, Why::Happened);
        let others = self.futexes.0.get(&address).is_some_and(|waiters| !waiters.is_empty());
        PiAnswer::Passed(self.threads[next.0].kernel_id, others)
    }

    fn next_waiter(&mut self, address: usize, mask: u32) -> Option<ThreadId> {
        let waiters = self.futexes.0.get_mut(&address)?;
        let threads = &self.threads;
        waiters.retain(|waiter| threads[waiter.thread.0].is_waiting());
        let place = waiters.iter().position(|waiter| waiter.mask & mask != 0);
        let next = place.and_then(|place| waiters.remove(place)).map(|waiter| waiter.thread);
        if waiters.is_empty() {
            self.futexes.0.remove(&address);
        }
        next
    }
}
