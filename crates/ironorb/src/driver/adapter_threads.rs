//! The threads of adapters, and how they wait.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use once_cell::race::OnceBox;

use crate::base::config::OrbConfig;
use crate::base::discards::{Discard, Discards};
use crate::base::gate::Gate;
use crate::base::lane::{self, LaneId, PerLane};
use crate::base::lane_table::LaneTable;
use crate::base::monitor::Monitor;
use crate::base::single_thread_lock::SingleThreadLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::base::time::Time;
use crate::driver::client::{BackgroundPool, enter_lane};
use crate::driver::clock;
use crate::driver::server::threads::ServerThreads;
use crate::driver::simulated::Simulation;
use crate::driver::upcall_watch::UpcallWatch;
use crate::poa::{AdapterDriver, Admission, PoaManager, Task, WatchedUpcall};

/// Drives the adapters of one ORB by threads.
pub(crate) struct AdapterThreads {
    /// The threads that serve clients.
    server_threads: LaneTable<Arc<ServerThreads>>,
    /// What the thread drops that is made when a thread of another lane than the default one first wants to.
    discards: OnceBox<Arc<Discards>>,
    /// The most threads of a lane that carry out requests after managers have held them, besides those of each manager.
    for_held_max: usize,
    /// These threads.
    for_held: PerLane<Arc<BackgroundPool>>,
    /// The time of the engine's last event, in nanoseconds; 0 without an engine.
    engine_ns: AtomicU64,
    simulation: Option<Arc<dyn Simulation>>,
    /// What ends upcalls that run too long, a lane each. Empty in an ORB that only counts them.
    watches: OnceBox<LaneTable<Arc<UpcallWatch>>>,
}

const NAME: &str = "ironorb-held";
const DISCARDS: &str = "ironorb-drop";

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
    /// Makes the threads of an ORB. `server_threads` are those of its lanes, at least one.
    pub(crate) fn new(
        config: &OrbConfig,
        server_threads: impl Iterator<Item = Arc<ServerThreads>>,
        simulation: Option<Arc<dyn Simulation>>,
    ) -> Arc<AdapterThreads> {
        let server_threads: LaneTable<_> = server_threads.collect();
        let for_held_max = config.concurrency.threads_for_held(config.threads_per_connection_max).max(1);
        Arc::new(AdapterThreads {
            discards: OnceBox::new(),
            for_held_max,
            for_held: PerLane::new(BackgroundPool::counted(for_held_max, server_threads.first())),
            server_threads,
            engine_ns: AtomicU64::new(0),
            simulation,
            watches: OnceBox::new(),
        })
    }

    /// Has the deadlines of requests go by an engine, which handles an event now.
    pub(crate) fn note_engine_time(&self, now: Time) {
        self.engine_ns.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    /// Managers' admissions that wait for a thread of a lane.
    pub(crate) fn waiting(&self, lane: LaneId) -> usize {
        self.for_held.get(lane).map_or(0, |pool| pool.waiting())
    }

    /// Makes the thread of the default lane that drops what calls of other lanes leave behind. An ORB with several lanes
    /// calls this before the first of such calls, lest one of these makes the thread.
    pub(crate) fn start_discarding(&self) {
        if self.discards.get().is_some() {
            return;
        }
        let discards = Box::new(Arc::new(Discards::default()));
        let worker = Arc::clone(&discards);
        if self.discards.set(discards).is_ok()
            && NewThread::new(DISCARDS, ThreadClass::Background).spawn(move || worker.work()).is_err()
            && let Some(discards) = self.discards.get()
        {
            discards.close();
        }
    }

    /// Has upcalls end that run too long, from now on. Fails when the system refuses a thread.
    pub(crate) fn start_watching(&self, lanes: impl Iterator<Item = LaneId>) -> io::Result<()> {
        let watches = lanes.map(UpcallWatch::start).collect::<Result<_, _>>()?;
        let _first = self.watches.set(Box::new(watches));
        Ok(())
    }

    /// Adds the next lane. One thread does this at a time. Fails when the system refuses the thread that ends its upcalls.
    pub(crate) fn add_lane(&self, lane: LaneId, server_threads: Arc<ServerThreads>) -> io::Result<()> {
        if let Some(watches) = self.watches.get() {
            watches.add(lane, UpcallWatch::start(lane)?);
        }
        self.server_threads.add(lane, server_threads);
        Ok(())
    }

    /// Has upcalls of a lane end that run too long, in a lane that serves again. Fails when the system refuses the thread.
    pub(crate) fn revive_lane(&self, lane: LaneId) -> io::Result<()> {
        let _its_locks = lane::enter(lane);
        self.watches.get().map_or(Ok(()), |watches| watches.of(lane).start_again(lane))
    }

    /// Lets the thread end that ends upcalls of a lane, which serves no longer.
    pub(crate) fn end_lane(&self, lane: LaneId) {
        if let Some(watches) = self.watches.get() {
            watches.of(lane).stop();
        }
    }

    /// What ends upcalls of the calling thread's lane.
    fn watch_of_lane(&self) -> Option<&Arc<UpcallWatch>> {
        self.watches.get().map(|watches| watches.of(lane::current_lane()))
    }

    fn stop_watching(&self) {
        let watches = self.watches.get().into_iter().flat_map(LaneTable::iter);
        watches.for_each(|watch| watch.stop());
    }

    /// Ends the threads after what they have begun.
    pub(crate) fn stop(&self) {
        self.stop_watching();
        if let Some(discards) = self.discards.get() {
            discards.close();
        }
        for (lane, pool) in self.for_held.iter() {
            let _lane = lane::enter(lane);
            pool.stop();
        }
    }

    /// The threads that serve a lane's clients. A lane of another ORB, whose thread is calling, has those of the default one.
    fn server_threads(&self, lane: LaneId) -> &Arc<ServerThreads> {
        self.server_threads.of(lane)
    }

    /// The threads that carry out requests of a lane after managers have held them.
    fn for_held(&self, lane: LaneId) -> &Arc<BackgroundPool> {
        self.for_held
            .get_or_init(lane, || BackgroundPool::counted(self.for_held_max, self.server_threads(lane)))
    }
}

impl Drop for AdapterThreads {
    /// Ends the thread for values that are dropped, in an ORB that nobody has shut down.
    fn drop(&mut self) {
        self.stop_watching();
        if let Some(discards) = self.discards.get() {
            discards.close();
        }
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
        self.for_held_max
    }

    fn admit_held(&self, manager: &PoaManager, lane: LaneId, is_first: bool) {
        let own = manager.clone();
        let work = move || admit(&own);
        // The thread that changes the manager's state may be of another lane.
        let _lane = enter_lane(lane);
        let is_begun = match is_first {
            // The manager has a thread of its own, because the threads of other managers may all be in servants that
            // wait for it. The limit of the server's threads does not apply: they may be in such servants too.
            true => self.server_threads(lane).spawn_beyond_in(lane, NAME, work).is_ok(),
            false => self.for_held(lane).run(work).is_ok(),
        };
        match (is_begun, is_first) {
            (true, _) => {}
            (false, true) => admit(manager), // the caller's thread does the work: late is worse than slow
            // The threads that exist admit the remaining requests.
            (false, false) => manager.end_admitting(),
        }
    }

    fn discard(&self, value: Box<dyn Discard>) {
        if lane::current_lane() != LaneId::DEFAULT {
            self.start_discarding();
        }
        if let Some(discards) = self.discards.get() {
            discards.push(value);
        }
    }

    fn watches(&self) -> bool {
        self.watches.get().is_some()
    }

    fn watch(&self, ends: Time, upcall: &Arc<WatchedUpcall>) {
        if let Some(watch) = self.watch_of_lane() {
            watch.add(ends, upcall.clone());
        }
    }

    fn unwatch(&self, upcall: &Arc<WatchedUpcall>) {
        if let Some(watch) = self.watch_of_lane() {
            watch.remove(upcall);
        }
    }

    fn run_apart(&self, lane: LaneId, task: Task) {
        // The limit of the server's threads does not apply: there is one such thread for each adapter that goes.
        let _dropped = self.server_threads(lane).spawn_beyond_in(lane, NAME, task);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn threads_for_a_lane_are_in_it_and_of_its_own_pool() {
        let config = OrbConfig::default();
        let threads = AdapterThreads::new(&config, std::iter::once(ServerThreads::new(&config)), None);
        let lane = LaneId::new(5).unwrap();
        let (tell, told) = mpsc::channel();
        let another = tell.clone();
        threads.run_apart(lane, Box::new(move || tell.send(lane::current_lane()).unwrap()));
        assert_eq!(told.recv().unwrap(), lane);
        let in_lane = lane::enter(lane);
        threads.for_held(lane).run(move || another.send(lane::current_lane()).unwrap()).unwrap();
        drop(in_lane);
        assert_eq!(told.recv().unwrap(), lane);
        assert!(!Arc::ptr_eq(threads.for_held(lane), threads.for_held(LaneId::DEFAULT)));
        threads.stop();
    }
}
