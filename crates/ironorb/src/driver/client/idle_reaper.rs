//! The thread that looks after outgoing connections which no caller uses: it learns that peers have closed them, and
//! closes what has been idle for too long.
//!
//! The thread waits in an `epoll` for the ends alone, edge-triggered. Bytes that come do not wake it, so a call pays
//! nothing for it. It looks for idle connections at intervals of an eighth of the limit, between 5 ms and 5 s. It runs
//! while there are connections.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};

use super::link::Link;
use super::links::EndpointLinks;
use crate::base::lane::{LaneId, current_lane};
use crate::base::locks::LaneLock;
use crate::base::spawner::{NewThread, ThreadClass};
use crate::driver::clock;
use crate::driver::wakeable_epoll::{WAKE, WakeableEpoll, timespec};
use crate::lane::Counters;

/// Lists the connections of a lane, and looks after those that are idle.
#[derive(Debug)]
pub(super) struct IdleReaper {
    /// `None` when connections stay open however long they are idle.
    limit: Option<Duration>,
    lane: LaneId,
    counters: Arc<Counters>,
    /// Shows the ends of connections. Made with the first connection.
    sockets: OnceLock<WakeableEpoll>,
    state: LaneLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that are gone stay listed until the vector is full.
    endpoints: Vec<Weak<EndpointLinks>>,
    /// The connections whose ends `sockets` shows.
    links: BTreeMap<u64, Weak<Link>>,
    is_running: bool,
    is_stopping: bool,
    /// Connections made so far. The thread ends only when none has been made since its look began.
    connects: u64,
}

impl IdleReaper {
    /// The reaper of the calling thread's lane.
    pub(super) fn new(limit: Option<Duration>, counters: Arc<Counters>) -> Arc<IdleReaper> {
        let (lane, sockets, state) = (current_lane(), OnceLock::new(), LaneLock::default());
        Arc::new(IdleReaper { limit, lane, counters, sockets, state })
    }

    /// Adds an endpoint to look at.
    pub(super) fn add(&self, endpoint: &Arc<EndpointLinks>) {
        let mut state = self.state.lock();
        if state.endpoints.len() == state.endpoints.capacity() {
            state.endpoints.retain(|endpoint| endpoint.strong_count() > 0);
        }
        state.endpoints.push(Arc::downgrade(endpoint));
    }

    /// The lane's connections to all endpoints.
    pub(super) fn endpoints(&self) -> Vec<Arc<EndpointLinks>> {
        self.state.lock().endpoints.iter().filter_map(Weak::upgrade).collect()
    }

    /// Notes a new connection, and starts the thread if it does not run.
    pub(super) fn connected(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.connects += 1;
        if state.is_running || state.is_stopping {
            return;
        }
        // Without a thread connections stay open, as they do without a limit, and calls look for their ends.
        state.is_running = self.start().is_ok();
    }

    fn start(self: &Arc<Self>) -> io::Result<()> {
        if self.sockets.get().is_none() {
            let _ = self.sockets.set(WakeableEpoll::new()?);
        }
        let idle_reaper = self.clone();
        let thread = NewThread::new("ironorb-idle", ThreadClass::Timer).in_lane(self.lane);
        thread.spawn(move || idle_reaper.run()).map(drop)
    }

    /// Reports to the link once when its peer sends no more, also if that is so already. Fails while no thread runs.
    pub(super) fn watch(&self, number: u64, link: &Weak<Link>, socket: impl AsFd) -> io::Result<()> {
        let Some(sockets) = self.sockets.get() else { return Err(io::ErrorKind::NotConnected.into()) };
        let mut state = self.state.lock();
        if !state.is_running || state.is_stopping {
            return Err(io::ErrorKind::NotConnected.into());
        }
        epoll::add(&sockets.epoll, socket, EventData::new_u64(number), EventFlags::RDHUP | EventFlags::ET)?;
        state.links.insert(number, link.clone());
        Ok(())
    }

    /// Forgets a link that is dropped. Its socket may live on in another handle.
    pub(super) fn unwatch(&self, number: u64, socket: impl AsFd) {
        if let Some(sockets) = self.sockets.get() {
            let _ = epoll::delete(&sockets.epoll, socket);
        }
        self.state.lock().links.remove(&number);
    }

    /// Ends the thread. Does not wait for the end.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopping = true;
        if let Some(sockets) = self.sockets.get() {
            sockets.wake();
        }
    }

    fn run(&self) {
        let Some(sockets) = self.sockets.get() else { return };
        let every = self.limit.map_or(EVERY_MAX, |limit| (limit / 8).clamp(EVERY_MIN, EVERY_MAX));
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut look_at = clock::now() + every;
        while !self.state.lock().is_stopping {
            let left = look_at.since(clock::now());
            if left.is_zero() {
                if !self.close_idle() {
                    return;
                }
                look_at = clock::now() + every;
                continue;
            }
            events.clear();
            // An interrupted wait counts as one without events.
            let _ = epoll::wait(&sockets.epoll, spare_capacity(&mut events), Some(&timespec(left)));
            if self.take_events(sockets, &events) {
                // The look that comes drops the connections, and with them their descriptors.
                look_at = look_at.min(clock::now() + EVERY_MIN);
            }
        }
    }

    /// True when connections have ended.
    fn take_events(&self, sockets: &WakeableEpoll, events: &[Event]) -> bool {
        let mut have_ended = false;
        for event in events {
            match event.data.u64() {
                WAKE => sockets.clear(),
                number => {
                    let link = self.state.lock().links.get(&number).and_then(Weak::upgrade);
                    link.inspect(|link| link.on_hang_up());
                    have_ended = true;
                }
            }
        }
        have_ended
    }

    /// Closes what has been idle for too long, and drops what has ended. False when there are no connections, and the
    /// thread ends.
    fn close_idle(&self) -> bool {
        let connects = self.state.lock().connects;
        let endpoints = self.endpoints();
        let (now, limit) = (clock::coarse(), self.limit.unwrap_or(Duration::MAX));
        let connected: usize = endpoints.iter().map(|endpoint| endpoint.close_idle(now, limit)).sum();
        drop(endpoints);
        self.counters.show_connections(self.lane);
        let mut state = self.state.lock();
        state.is_running = connected > 0 || state.connects != connects;
        state.is_running
    }
}

/// How often the thread looks at most, and how soon after a connection has ended.
const EVERY_MIN: Duration = Duration::from_millis(5);

/// How often the thread looks at least.
const EVERY_MAX: Duration = Duration::from_secs(5);

/// Ends taken at once.
const EVENTS_MAX: usize = 64;
