//! The threads of adapters, and how they wait.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::config::OrbConfig;
use crate::base::gate::Gate;
use crate::base::monitor::Monitor;
use crate::base::single_thread_lock::SingleThreadLock;
use crate::base::time::Time;
use crate::driver::client::BackgroundPool;
use crate::driver::clock;
use crate::driver::server::threads::ServerThreads;
use crate::driver::simulated::Simulation;
use crate::poa::{AdapterDriver, Admission, PoaManager, Task};

/// Drives the adapters of one ORB by threads.
pub(crate) struct AdapterThreads {
    server_threads: Arc<ServerThreads>,
    /// The threads that carry out requests after a manager has held them.
    for_held: Arc<BackgroundPool>,
    /// The time of the engine's last event, in nanoseconds; 0 without an engine.
    engine_ns: AtomicU64,
    simulation: Option<Arc<dyn Simulation>>,
}

const NAME: &str = "ironorb-held";

thread_local! {
    static MAY_WAIT: Cell<bool> = const { Cell::new(true) };
}

/// Has this thread not wait for adapters until this is dropped. A driver with one thread for everything holds it:
/// what such a thread waits for can never happen.
#[must_use]
pub(crate) struct WithoutWaits {
    before: bool,
}

impl WithoutWaits {
    pub(crate) fn begin() -> WithoutWaits {
        WithoutWaits { before: MAY_WAIT.replace(false) }
    }
}

impl Drop for WithoutWaits {
    fn drop(&mut self) {
        MAY_WAIT.set(self.before);
    }
}

impl AdapterThreads {
    pub(crate) fn new(
        config: &OrbConfig,
        server_threads: &Arc<ServerThreads>,
        simulation: Option<Arc<dyn Simulation>>,
    ) -> Arc<AdapterThreads> {
        let threads = config.concurrency.threads_for_held(config.threads_per_connection_max);
        Arc::new(AdapterThreads {
            server_threads: server_threads.clone(),
            for_held: BackgroundPool::counted(threads, server_threads),
            engine_ns: AtomicU64::new(0),
            simulation,
        })
    }

    /// Has the deadlines of requests go by an engine, which handles an event now.
    pub(crate) fn note_engine_time(&self, now: Time) {
        self.engine_ns.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    /// Ends the threads after what they have begun.
    pub(crate) fn stop(&self) {
        self.for_held.stop();
    }
}

impl AdapterDriver for AdapterThreads {
    fn now(&self) -> Time {
        clock::now()
    }

    #[inline]
    fn time_of_requests(&self) -> Time {
        match (&self.simulation, self.engine_ns.load(Ordering::Relaxed)) {
            (Some(simulation), _) => simulation.now(),
            (None, 0) => clock::now(),
            (None, nanos) => Time::from_nanos(nanos),
        }
    }

    fn wait(&self, monitor: &Monitor, is_over: &dyn Fn() -> bool, at_most: Option<Duration>) -> bool {
        if MAY_WAIT.get() { monitor.wait(is_over, at_most) } else { is_over() }
    }

    fn wait_at(&self, gate: &Gate, at_most: Option<Duration>) -> bool {
        if MAY_WAIT.get() { gate.wait(at_most) } else { gate.is_open() }
    }

    fn take_turn(&self, turn: &SingleThreadLock) {
        turn.take();
    }

    fn admitting_threads_max(&self) -> usize {
        self.for_held.threads_max()
    }

    fn admit_held(&self, manager: &PoaManager, is_first: bool) {
        let own = manager.clone();
        let work = move || admit(&own);
        let is_begun = match is_first {
            // The manager has a thread of its own, because the threads of other managers may all be in servants that
            // wait for it. The limit of the server's threads does not apply: they may be in such servants too.
            true => self.server_threads.spawn_beyond(NAME, work).is_ok(),
            false => self.for_held.run(work).is_ok(),
        };
        match (is_begun, is_first) {
            (true, _) => {}
            (false, true) => admit(manager), // the caller's thread does the work: late is worse than slow
            // The threads that exist admit the remaining requests.
            (false, false) => manager.end_admitting(),
        }
    }

    fn run_apart(&self, task: Task) {
        // The limit of the server's threads does not apply: there is one such thread for each adapter that goes.
        let _dropped = self.server_threads.spawn_beyond(NAME, task);
    }
}

/// Admits the requests that a manager has held, until there is none or the manager holds again.
fn admit(manager: &PoaManager) {
    let driver = manager.driver();
    loop {
        match manager.next_held(driver.now()) {
            Admission::Over => return,
            Admission::Wait(time) => {
                let is_over = || !manager.must_wait_to_admit(driver.now());
                driver.wait(manager.monitor(), &is_over, Some(time));
            }
            Admission::Begin(held) => manager.carry_out_held(held),
        }
    }
}
