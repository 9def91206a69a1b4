//! The thread that closes idle outgoing connections.
//!
//! It looks at intervals of an eighth of the limit, between 5 ms and 5 s, so that calls pay nothing for it.
//! It runs while there are connections.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::links::EndpointLinks;
use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::{Condition, LaneLock};
use crate::base::spawner::{NewThread, ThreadClass};
use crate::driver::clock;

/// Looks for idle connections.
#[derive(Debug)]
pub(super) struct IdleReaper {
    limit: Option<Duration>,
    lane: LaneId,
    state: LaneLock<State>,
    stop: Condition,
}

#[derive(Debug, Default)]
struct State {
    endpoints: Vec<Weak<EndpointLinks>>,
    is_running: bool,
    is_stopping: bool,
    /// Connections made so far. The thread ends only when none has been made since its look began.
    connects: u64,
}

impl IdleReaper {
    pub(super) fn new(limit: Option<Duration>) -> Arc<IdleReaper> {
        Arc::new(IdleReaper {
            limit,
            lane: current_lane(),
            state: LaneLock::default(),
            stop: Condition::new(),
        })
    }

    /// Adds an endpoint to look at.
    pub(super) fn add(&self, endpoint: &Arc<EndpointLinks>) {
        if self.limit.is_some() {
            let mut state = self.state.lock();
            if state.endpoints.len() == state.endpoints.capacity() {
                state.endpoints.retain(|endpoint| endpoint.strong_count() > 0);
            }
            state.endpoints.push(Arc::downgrade(endpoint));
        }
    }

    /// Notes a new connection, and starts the thread if it does not run.
    pub(super) fn connected(self: &Arc<Self>) {
        let Some(limit) = self.limit else { return };
        let mut state = self.state.lock();
        state.connects += 1;
        if state.is_running || state.is_stopping {
            return;
        }
        let idle_reaper = self.clone();
        let spawned = NewThread::new("ironorb-idle", ThreadClass::Timer)
            .in_lane(self.lane)
            .spawn(move || idle_reaper.run(limit));
        // Without a thread connections stay open, as they do without a limit.
        state.is_running = spawned.is_ok();
    }

    pub(super) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.stop.notify_all();
    }

    fn run(&self, limit: Duration) {
        let every = (limit / 8).clamp(Duration::from_millis(5), Duration::from_secs(5));
        loop {
            let mut state = self.state.lock();
            let until = clock::now() + every;
            while !state.is_stopping {
                let left = until.since(clock::now());
                if left.is_zero() {
                    break;
                }
                state = self.stop.wait_for(state, left).0;
            }
            if state.is_stopping {
                return;
            }
            let connects = state.connects;
            let endpoints: Vec<_> = state.endpoints.iter().filter_map(Weak::upgrade).collect();
            drop(state);
            let now = clock::coarse();
            let connected: usize = endpoints.iter().map(|endpoint| endpoint.close_idle(now, limit)).sum();
            drop(endpoints);
            let mut state = self.state.lock();
            if connected == 0 && state.connects == connects {
                state.is_running = false;
                return;
            }
        }
    }
}
