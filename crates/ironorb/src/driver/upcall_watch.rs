//! Ends upcalls that run too long: a thread in each lane waits for the next moment at which one of the lane's upcalls does.
//!
//! The thread is one priority above its lane's, because it must run while the servant does. It runs for as long as it takes
//! to answer one request. It shares a lock with the threads of its own lane only.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::base::lane::LaneId;
use crate::base::locks::{Condition, LaneLock};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::time::Time;
use crate::driver::clock;
use crate::poa::WatchedUpcall;

/// The upcalls of a lane that have a time limit, and the way to the thread that ends them.
pub(crate) struct UpcallWatch {
    state: LaneLock<State>,
    changed: Condition,
}

struct State {
    /// The upcalls that go on: as many as the lane has threads.
    upcalls: Vec<(Time, Arc<WatchedUpcall>)>,
    /// When the thread looks next. While this is early enough, a new upcall need not wake it.
    looks_at: Time,
    /// Grows when the thread is to end. A thread goes on while it is as when it began.
    run: u32,
}

impl UpcallWatch {
    /// Starts the thread of a lane.
    pub(crate) fn start(lane: LaneId) -> io::Result<Arc<UpcallWatch>> {
        let state = State { upcalls: Vec::with_capacity(UPCALLS), looks_at: Time::ZERO, run: 0 };
        let watch =
            Arc::new(UpcallWatch { state: LaneLock::in_lane(lane, state), changed: Condition::new() });
        watch.start_again(lane)?;
        Ok(watch)
    }

    /// Starts the thread of the lane, after [`stop`](Self::stop).
    pub(crate) fn start_again(self: &Arc<Self>, lane: LaneId) -> io::Result<()> {
        let (own, run) = (self.clone(), self.state.lock().run);
        let thread = NewThread::new("ironorb-overrun", ThreadClass::Timer).in_lane(lane).one_above();
        thread.spawn(move || own.work(run)).map(drop)
    }

    /// Ends an upcall at this moment, unless it is taken out before.
    pub(crate) fn add(&self, ends: Time, upcall: Arc<WatchedUpcall>) {
        let mut state = self.state.lock();
        state.upcalls.push((ends, upcall));
        let is_first = ends < state.looks_at;
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Takes an upcall out that has ended.
    pub(crate) fn remove(&self, upcall: &Arc<WatchedUpcall>) {
        let mut state = self.state.lock();
        if let Some(at) = state.upcalls.iter().position(|(_, it)| Arc::ptr_eq(it, upcall)) {
            state.upcalls.swap_remove(at);
        }
    }

    /// Lets the thread end.
    pub(crate) fn stop(&self) {
        self.state.lock().run += 1;
        self.changed.notify_one();
    }

    fn work(&self, run: u32) {
        while let Some(upcall) = self.next(run) {
            upcall.end();
        }
        // The next thread may be waiting already, and this one has been woken in its place.
        self.changed.notify_one();
    }

    /// Waits for the next upcall that runs too long; `None` at the end. The lock is free when this returns.
    fn next(&self, run: u32) -> Option<Arc<WatchedUpcall>> {
        let mut state = self.state.lock();
        loop {
            if state.run != run {
                return None;
            }
            let now = clock::now();
            if let Some(at) = state.upcalls.iter().position(|(ends, _)| *ends <= now) {
                return Some(state.upcalls.swap_remove(at).1);
            }
            state.looks_at = state.upcalls.iter().map(|(ends, _)| *ends).min().unwrap_or(Time::MAX);
            // A wait that no thread ends is cut, too, so that the time fits what the system takes.
            let at_most = state.looks_at.since(now).min(LOOKS_EVERY);
            state = self.changed.wait_for(state, at_most).0;
        }
    }
}

/// The upcalls of a lane for which the first memory suffices.
const UPCALLS: usize = 16;

/// The longest wait between two looks.
const LOOKS_EVERY: Duration = Duration::from_secs(3_600);
