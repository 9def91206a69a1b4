//! What a lane owns for calls to servers: its threads, its budget of connections, and the list of these.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::idle_reaper::IdleReaper;
use super::link::Callbacks;
use super::receiver::Receiver;
use super::resolver::Resolver;
use super::{BackgroundPool, FlushFailure};
use crate::base::config::OrbConfig;
use crate::base::lane::{self, LaneId};
use crate::base::monitor::Monitor;
use crate::base::time::Time;
use crate::driver::clock;
use crate::driver::waiting::{Spinners, Waits};
use crate::lane::Counters;
use crate::object::deadline::Deadline;
use crate::object::server_profile::Partition;
use crate::transport::{Address, ConnectAttempt, Stream};

/// A lane, as its calls to servers see it.
#[derive(Debug)]
pub(crate) struct ClientLane {
    pub(super) id: LaneId,
    pub(super) closed: AtomicBool,
    pub(super) config: OrbConfig,
    pub(super) receiver: Arc<Receiver>,
    background_pool: Arc<BackgroundPool>,
    pub(super) idle_reaper: Arc<IdleReaper>,
    resolver: Arc<Resolver>,
    /// Connections that are open.
    connected: Arc<AtomicUsize>,
    /// Where threads wait for others that connect.
    pub(super) attempt_ended: Monitor,
    /// Serves requests that come over outgoing connections, where these are bidirectional.
    pub(super) callbacks: OnceLock<Callbacks>,
    pub(super) callback_threads: Arc<BackgroundPool>,
    pub(super) spinners: Arc<Spinners>,
    pub(super) counters: Arc<Counters>,
}

/// The connections of a lane to one endpoint that have not been dropped.
#[derive(Debug)]
pub(super) struct OpenConnections {
    here: AtomicUsize,
    of_lane: Arc<AtomicUsize>,
}

/// The permit for one open connection. Dropping it makes room for the next.
#[derive(Debug)]
pub(super) struct ConnectionPermit(Arc<OpenConnections>);

impl OpenConnections {
    pub(super) fn is_any(&self) -> bool {
        self.here.load(Ordering::SeqCst) > 0
    }

    /// Counts one more connection. The second value says how many the lane had before.
    fn count(self: &Arc<Self>) -> (ConnectionPermit, usize) {
        self.here.fetch_add(1, Ordering::SeqCst);
        // sync: place-after-attempt. Who finds no place sees the attempts of those who have one.
        let before = self.of_lane.fetch_add(1, Ordering::SeqCst);
        (ConnectionPermit(self.clone()), before)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.of_lane.fetch_sub(1, Ordering::Relaxed);
        self.0.here.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ClientLane {
    /// Makes the lane with this number. `config` has its limits.
    pub(super) fn new(id: LaneId, config: OrbConfig, counters: Arc<Counters>) -> Arc<ClientLane> {
        let _its_locks_belong_to_it = lane::enter(id);
        let spinners = Spinners::new();
        Arc::new(ClientLane {
            id,
            closed: AtomicBool::new(false),
            receiver: Receiver::new(Waits::new(config.client_waiting, &spinners), counters.clone()),
            background_pool: BackgroundPool::new(config.background_threads_max),
            idle_reaper: IdleReaper::new(config.client_idle_timeout, counters.clone()),
            resolver: Resolver::new(),
            connected: Arc::default(),
            attempt_ended: Monitor::default(),
            callbacks: OnceLock::new(),
            callback_threads: BackgroundPool::new(config.callback_threads_max),
            spinners,
            counters,
            config,
        })
    }

    /// The thread that receives where no caller waits.
    pub(crate) fn receiver(&self) -> &Arc<Receiver> {
        &self.receiver
    }

    /// The threads for work that may block while no caller waits.
    pub(crate) fn background_pool(&self) -> &Arc<BackgroundPool> {
        &self.background_pool
    }

    /// Tasks that wait for threads: those of the background pool, those that resolve names, and requests that have come
    /// over connections that the lane has made.
    pub(crate) fn waiting_tasks(&self) -> [(&'static str, usize); 3] {
        [
            ("background", self.background_pool.waiting()),
            ("resolver", self.resolver.waiting()),
            ("callbacks", self.callback_threads.waiting()),
        ]
    }

    /// Connections to servers that are open or being made.
    pub(crate) fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// The limit on threads of this lane that poll instead of sleeping.
    pub(crate) fn spinners(&self) -> &Arc<Spinners> {
        &self.spinners
    }

    /// The count of the lane's connections to one more endpoint.
    pub(super) fn open_connections(&self) -> Arc<OpenConnections> {
        Arc::new(OpenConnections { here: AtomicUsize::new(0), of_lane: self.connected.clone() })
    }

    /// Connects to an address, with the properties that calls of a partition ask for.
    pub(super) fn connect(
        &self,
        address: &Address,
        partition: &Partition,
        deadline: Deadline,
    ) -> io::Result<Stream> {
        let until = deadline.at().unwrap_or(Time::MAX);
        let attempt = ConnectAttempt { until, clock: clock::CLOCK, hosts: &self.resolver };
        let stream = address.connect(&attempt)?.with_options(&self.config)?;
        if let Some(properties) = partition.tcp.as_ref().filter(|_| address.tcp().is_some()) {
            stream.set_tcp(properties)?;
        }
        if let Some(code_point) = partition.code_point {
            stream.set_code_point(code_point)?;
        }
        Ok(stream)
    }

    /// Returns a permit for one more connection, if the lane has fewer than `client_connections_max`.
    pub(super) fn place(&self, open: &Arc<OpenConnections>) -> Option<ConnectionPermit> {
        let (place, before) = open.count();
        (before < self.config.client_connections_max).then_some(place)
    }

    /// Closes an idle connection of the lane and returns a permit in its place; `None` when all are in use.
    #[cold]
    pub(super) fn permit_of_another(
        &self,
        open: &Arc<OpenConnections>,
        now: Time,
    ) -> Option<ConnectionPermit> {
        let (place, _) = open.count();
        self.close_an_idle_one(now).then_some(place)
    }

    #[cold]
    fn close_an_idle_one(&self, now: Time) -> bool {
        let all = self.idle_reaper.endpoints();
        let mut idle: Vec<_> = all.iter().flat_map(|links| links.idle_times(now)).collect();
        idle.sort_unstable_by_key(|(idle, ..)| std::cmp::Reverse(*idle));
        // The most idle connection goes first, because one that was used a moment ago may be about to carry a
        // call.
        idle.iter().any(|(_, links, index)| links.close_if_idle(*index, now))
    }

    /// Closes the lane's idle connections.
    pub(crate) fn close_idle(&self) {
        let _its_locks = lane::enter(self.id);
        let now = clock::now();
        self.idle_reaper.endpoints().iter().for_each(|links| {
            links.close_idle(now, Duration::ZERO);
        });
    }

    /// Serves callbacks from now on, and says so on all connections.
    pub(super) fn serve_callbacks(&self, callbacks: Callbacks) {
        let _its_locks = lane::enter(self.id);
        let _ = self.callbacks.set(callbacks);
        self.idle_reaper.endpoints().iter().for_each(|links| links.announce_all());
    }

    /// Sends all batched requests of the lane's connections.
    pub(super) fn flush(&self, deadline: Deadline) -> Result<(), FlushFailure> {
        // Flushes each endpoint, whether or not a flush before it has failed.
        let flushed: Vec<_> =
            self.idle_reaper.endpoints().iter().map(|links| links.flush(deadline)).collect();
        flushed.into_iter().collect()
    }

    /// Sends as many of the pending requests as the sockets take at once.
    pub(super) fn flush_now(&self) {
        let _its_locks = lane::enter(self.id);
        self.idle_reaper.endpoints().iter().for_each(|links| links.flush_now());
    }

    /// Sends `CloseConnection` on every connection and ends the calls that wait. Sends pending requests before; the peers
    /// get up to `flush_timeout` to take them.
    pub(super) fn close(&self, flush_timeout: Duration) {
        let _its_locks = lane::enter(self.id);
        self.closed.store(true, Ordering::Release);
        self.idle_reaper.endpoints().iter().for_each(|links| links.close(flush_timeout));
        self.stop_threads();
    }

    /// Ends the lane's threads. The ORB's end takes locks of all its lanes, from whichever thread it comes.
    pub(super) fn stop_threads(&self) {
        let _its_locks = lane::enter(self.id);
        self.receiver.stop();
        self.background_pool.stop();
        self.idle_reaper.stop();
        self.resolver.stop();
        self.callback_threads.stop();
    }
}
