//! Connections to servers: one set for each endpoint, shared by all references to it.

pub(crate) mod asynchronous;
mod background_pool;
mod idle_reaper;
mod link;
mod receiver;
mod resolver;
mod retry_body;
mod thread_slots;

pub(crate) use background_pool::BackgroundPool;
pub(crate) use link::{Acceptor, Added, FastOutcome, Link};
pub(in crate::driver) use retry_body::{RetryArguments, expected_encoding};

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ironorb_giop::message::RequestTarget;
use ironorb_giop::service_context::{ListenPoint, ServiceContextList};
use rustix::io::Errno;

use self::asynchronous::AsyncCall;
use self::idle_reaper::IdleReaper;
use self::link::Callbacks;
use self::receiver::Receiver;
pub(crate) use self::receiver::ReceiverCheck;
pub(crate) use self::resolver::Resolver;
use crate::base::config::OrbConfig;
use crate::base::locks::{Condition, LaneLock};
use crate::base::monitor::Monitor;
use crate::base::time::Time;
use crate::call::remote_call::ConnectFailure;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::driver::waiting::{Spinners, Waits};
use crate::lane::{Counters, Event};
use crate::object::deadline::{Deadline, Passed};
use crate::object::server_profile::ServerEndpoint;
use crate::transport::tcp::HostPort;
use crate::transport::{Address, ConnectAttempt, Stream};

/// All outgoing connections of an ORB.
#[derive(Debug)]
pub(crate) struct Connector {
    endpoints: Arc<LaneLock<Endpoints>>,
    /// The state that all endpoints share.
    common: Arc<ConnectorShared>,
}

#[derive(Debug)]
struct ConnectorShared {
    closed: AtomicBool,
    config: OrbConfig,
    receiver: Arc<Receiver>,
    background_pool: Arc<BackgroundPool>,
    idle_reaper: Arc<IdleReaper>,
    resolver: Arc<Resolver>,
    /// Connections that are open.
    connected: Arc<AtomicUsize>,
    /// Where to look for a connection to close when there are too many.
    endpoints: Weak<LaneLock<Endpoints>>,
    /// Where threads wait for others that connect.
    attempt_ended: Monitor,
    /// Serves requests that come over outgoing connections, where these are bidirectional.
    callbacks: OnceLock<Callbacks>,
    callback_threads: Arc<BackgroundPool>,
    spinners: Arc<Spinners>,
    pub(super) counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Endpoints {
    /// One address may have several entries: references that must negotiate other code sets use connections
    /// of their own.
    links: BTreeMap<(Address, u8), Arc<EndpointLinks>>,
    /// The number of entries at which the next sweep removes unused ones.
    sweep_at: usize,
}

/// The most connections from clients that announce one and the same endpoint.
pub(crate) const ACCEPTED_MAX: usize = 64;

/// With fewer endpoints than this there is no sweep.
const SWEEP_MIN: usize = 32;

impl Endpoints {
    /// Closes connections whose peers have gone, and forgets endpoints without a reference and without a
    /// connection. A sweep runs when the number of entries has doubled. So it costs a constant time for each
    /// entry, and peers that come and go leave at most as many entries as are in use.
    fn sweep(&mut self, now: Time) {
        self.links.retain(|_, links| {
            let connected = links.drop_ended(now);
            connected > 0 || Arc::strong_count(links) > 1
        });
        self.sweep_at = 2 * self.links.len();
    }
}

impl Connector {
    pub(crate) fn new(config: OrbConfig, counters: Arc<Counters>) -> Self {
        let endpoints: Arc<LaneLock<Endpoints>> = Arc::default();
        let spinners = Spinners::new();
        let common = ConnectorShared {
            closed: AtomicBool::new(false),
            receiver: Receiver::new(Waits::new(config.client_waiting, &spinners), counters.clone()),
            background_pool: BackgroundPool::new(config.background_threads_max),
            idle_reaper: IdleReaper::new(config.client_idle_timeout),
            attempt_ended: Monitor::default(),
            resolver: Resolver::new(),
            connected: Arc::default(),
            endpoints: Arc::downgrade(&endpoints),
            callbacks: OnceLock::new(),
            callback_threads: BackgroundPool::new(config.callback_threads_max),
            spinners,
            counters,
            config,
        };
        Connector { endpoints, common: Arc::new(common) }
    }

    /// The thread that receives where no caller waits.
    pub(crate) fn receiver(&self) -> &Arc<Receiver> {
        &self.common.receiver
    }

    /// The threads for work that may block while no caller waits.
    pub(crate) fn background_pool(&self) -> &Arc<BackgroundPool> {
        &self.common.background_pool
    }

    /// Tasks that wait for threads: those of the background pool, those that resolve names, and requests that have come
    /// over connections of this ORB's own.
    pub(crate) fn waiting_tasks(&self) -> [(&'static str, usize); 3] {
        let ConnectorShared { background_pool, resolver, callback_threads, .. } = &*self.common;
        [
            ("background", background_pool.waiting()),
            ("resolver", resolver.waiting()),
            ("callbacks", callback_threads.waiting()),
        ]
    }

    /// Connections to servers that are open or being made.
    pub(crate) fn connected(&self) -> usize {
        self.common.connected.load(Ordering::Relaxed)
    }

    /// The limit on threads of this ORB that poll instead of sleeping.
    pub(crate) fn spinners(&self) -> &Arc<Spinners> {
        &self.common.spinners
    }

    /// Returns the connections to an endpoint. Does not connect.
    pub(crate) fn endpoint(&self, address: Address) -> Arc<EndpointLinks> {
        self.endpoint_in_partition(address, 0)
    }

    /// Returns the connections to an endpoint that all callers with the same partition number share. The
    /// default partition is 0.
    pub(crate) fn endpoint_in_partition(&self, address: Address, partition: u8) -> Arc<EndpointLinks> {
        let mut endpoints = self.endpoints.lock();
        let key = (address.clone(), partition);
        if let Some(links) = endpoints.links.get(&key) {
            return links.clone();
        }
        if endpoints.links.len() >= endpoints.sweep_at.max(SWEEP_MIN) {
            endpoints.sweep(clock::coarse());
        }
        let links = Arc::new(EndpointLinks {
            address,
            number: thread_slots::fresh_number(),
            slots: OnceLock::new(),
            failed_ns: AtomicU64::new(0),
            attempts: AtomicU32::new(0),
            was_connected: AtomicBool::new(false),
            bare_exceptions: AtomicU8::new(UNKNOWN_FORM),
            accepted: OnceLock::new(),
            sent: Condition::new(),
            lost_oneways: OnceLock::new(),
            common: self.common.clone(),
        });
        self.common.idle_reaper.add(&links);
        endpoints.links.insert(key, links.clone());
        links
    }

    /// Serves requests that come over outgoing connections from now on, and announces that to the peer on
    /// each of them.
    pub(crate) fn serve_callbacks(&self, orb: &Weak<OrbCore>, listen_points: &[ListenPoint]) {
        let mut list = ServiceContextList::default();
        if !self.common.config.bidirectional
            || listen_points.is_empty()
            || list.push_listen_points(listen_points).is_err()
        {
            return;
        }
        let _ = self.common.callbacks.set(Callbacks { orb: orb.clone(), listen_points: list });
        for endpoint in self.all_endpoints() {
            endpoint.links().iter().for_each(|link| endpoint.announce(link));
        }
    }

    /// The service context that invites peers to send requests over connections of this ORB, if they may.
    pub(crate) fn listen_points(&self) -> Option<&ServiceContextList> {
        Some(&self.common.callbacks.get()?.listen_points)
    }

    /// Makes the link for calls to the client of an accepted connection.
    pub(crate) fn accepted(&self, stream: Stream, acceptor: Weak<dyn Acceptor>) -> Arc<Link> {
        Link::accepted(stream, &self.common, acceptor)
    }

    /// Routes calls to objects at these addresses over the accepted connection of their server.
    pub(crate) fn use_accepted(&self, points: &[ListenPoint], link: &Arc<Link>) {
        for point in points.iter().filter(|point| point.port != 0 && !point.host.is_empty()) {
            let address = Address::Tcp(HostPort { host: point.host.clone(), port: point.port });
            self.endpoint(address).add_accepted(link);
        }
    }

    /// Sends `CloseConnection` on every connection and ends the calls that wait. Sends pending requests
    /// before; with `wait` the peers get up to `transmit_timeout` to take them.
    pub(crate) fn close(&self, wait: bool) {
        self.common.closed.store(true, Ordering::Release);
        let flush_timeout = if wait { self.common.config.transmit_timeout } else { Duration::ZERO };
        for endpoint in self.all_endpoints() {
            for (_, slot) in endpoint.slots_in_use() {
                let link = slot.lock().link.take();
                if let Some(link) = link {
                    link.close(flush_timeout);
                }
            }
        }
        self.common.stop_threads();
    }

    fn all_endpoints(&self) -> Vec<Arc<EndpointLinks>> {
        self.endpoints.lock().links.values().cloned().collect()
    }

    /// Sends all batched requests, as [`EndpointLinks::flush`] does.
    pub(crate) fn flush(&self, deadline: Deadline) -> Result<(), FlushFailure> {
        // Flushes each endpoint, whether or not a flush before it has failed.
        let flushed: Vec<_> = self.all_endpoints().iter().map(|endpoint| endpoint.flush(deadline)).collect();
        flushed.into_iter().collect()
    }

    /// Sends as many of the pending requests as the sockets take at once.
    pub(crate) fn flush_now(&self) {
        for endpoint in self.all_endpoints() {
            endpoint.links().iter().for_each(|link| link.flush_now());
        }
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.common.stop_threads();
    }
}

/// The permit for one open connection. Dropping it makes room for the next.
#[derive(Debug)]
struct ConnectionPermit(Arc<AtomicUsize>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectorShared {
    fn connect(&self, address: &Address, deadline: Deadline) -> io::Result<Stream> {
        let until = deadline.at().unwrap_or(Time::MAX);
        let attempt = ConnectAttempt { until, clock: clock::CLOCK, hosts: &self.resolver };
        let stream = address.connect(&attempt)?;
        stream.set_queues(&self.config)?;
        Ok(stream)
    }

    /// Returns a permit for one more connection, if there are fewer than `client_connections_max`.
    fn place(&self) -> Option<ConnectionPermit> {
        let place = ConnectionPermit(self.connected.clone());
        // sync: place-after-attempt. Who finds no place sees the attempts of those who have one.
        let is_free = self.connected.fetch_add(1, Ordering::SeqCst) < self.config.client_connections_max;
        is_free.then_some(place)
    }

    /// Closes an idle connection and returns a permit in its place; `None` when all connections are in use.
    #[cold]
    fn permit_of_another(&self, now: Time) -> Option<ConnectionPermit> {
        let place = ConnectionPermit(self.connected.clone());
        self.connected.fetch_add(1, Ordering::Relaxed);
        self.close_an_idle_one(now).then_some(place)
    }

    #[cold]
    fn close_an_idle_one(&self, now: Time) -> bool {
        let Some(endpoints) = self.endpoints.upgrade() else { return false };
        let all: Vec<Arc<EndpointLinks>> = endpoints.lock().links.values().cloned().collect();
        let mut idle: Vec<_> = all.iter().flat_map(|links| links.idle_times(now)).collect();
        idle.sort_unstable_by_key(|(idle, ..)| std::cmp::Reverse(*idle));
        // The most idle connection goes first, because one that was used a moment ago may be about to carry a
        // call.
        idle.iter().any(|(_, links, index)| links.close_if_idle(*index, now))
    }

    fn stop_threads(&self) {
        self.receiver.stop();
        self.background_pool.stop();
        self.idle_reaper.stop();
        self.resolver.stop();
        self.callback_threads.stop();
    }
}

/// The connections to one endpoint. A thread uses the same connection as long as that connection lives.
#[derive(Debug)]
pub(crate) struct EndpointLinks {
    address: Address,
    number: u64,
    /// Places for connections, made when they are used: most endpoints that references name are never called.
    slots: OnceLock<Box<[OnceLock<SharedSlot>]>>,
    /// Notified when calls that waited for a connection have been sent.
    sent: Condition,
    /// When an attempt to connect failed last, in nanoseconds and at least 1; 0 when none has failed since one
    /// succeeded.
    failed_ns: AtomicU64,
    /// Attempts to connect that are under way.
    attempts: AtomicU32,
    /// Whether there has ever been a connection.
    was_connected: AtomicBool,
    /// Whether the server writes exceptions in an `any` without their ids (1) or with them (0), or
    /// [`UNKNOWN_FORM`].
    bare_exceptions: AtomicU8,
    /// Batched oneways that were lost.
    lost_oneways: OnceLock<Arc<AtomicUsize>>,
    /// Connections of clients that announced this endpoint as their own.
    accepted: OnceLock<Box<LaneLock<Vec<Weak<Link>>>>>,
    common: Arc<ConnectorShared>,
}

/// No exception in an `any` has come from the server.
const UNKNOWN_FORM: u8 = 2;

impl EndpointLinks {
    /// The endpoint of a route.
    pub(crate) fn of(endpoint: &dyn ServerEndpoint) -> &EndpointLinks {
        (endpoint as &dyn Any).downcast_ref().expect("the driver has made all endpoints")
    }

    /// The endpoint of a route, to hold.
    pub(crate) fn shared(endpoint: Arc<dyn ServerEndpoint>) -> Arc<EndpointLinks> {
        let endpoint: Arc<dyn Any + Send + Sync> = endpoint;
        endpoint.downcast().expect("the driver has made all endpoints")
    }

    /// Whether a connection leads to this endpoint.
    pub(crate) fn has(&self, link: &Arc<Link>) -> bool {
        self.slots_in_use().any(|(_, slot)| slot.lock().link.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)))
            || self
                .accepted
                .get()
                .is_some_and(|all| all.lock().iter().any(|it| it.as_ptr() == Arc::as_ptr(link)))
    }
}

impl Drop for EndpointLinks {
    /// Threads remember slots for longer; the connections end now.
    fn drop(&mut self) {
        for (_, slot) in self.slots_in_use() {
            slot.lock().link = None;
        }
    }
}

impl ServerEndpoint for EndpointLinks {
    fn number(&self) -> u64 {
        self.number
    }

    fn note_connected(&self) {
        self.failed_ns.store(0, Ordering::Relaxed);
        self.was_connected.store(true, Ordering::Relaxed);
    }

    fn note_failed(&self, now: Time) {
        self.failed_ns.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    fn address(&self) -> &Address {
        &self.address
    }

    #[inline]
    fn is_failing(&self, now: Time) -> bool {
        let failed_ns = self.failed_ns.load(Ordering::Relaxed);
        failed_ns != 0 && now.since(Time::from_nanos(failed_ns)) < self.common.config.failed_address_pause
    }

    fn was_connected(&self) -> bool {
        self.was_connected.load(Ordering::Relaxed)
    }

    fn note_lost_oneways(&self, count: usize) {
        if count > 0 {
            self.lost_oneways.get_or_init(Arc::default).fetch_add(count, Ordering::Relaxed);
        }
    }

    fn sends_bare_exceptions(&self) -> Option<bool> {
        match self.bare_exceptions.load(Ordering::Relaxed) {
            UNKNOWN_FORM => None,
            bare => Some(bare != 0),
        }
    }

    fn note_bare_exceptions(&self, bare: bool) {
        self.bare_exceptions.store(u8::from(bare), Ordering::Relaxed);
    }
}

/// A slot, which threads remember.
type SharedSlot = Arc<LaneLock<Slot>>;

/// One connection, or an empty slot for it.
#[derive(Debug, Default)]
struct Slot {
    link: Option<Arc<Link>>,
    /// Asynchronous calls that wait for the connection, while one is being made for them.
    waiting: Option<Vec<WaitingCall>>,
}

/// An asynchronous call that waits for a connection.
#[derive(Debug)]
struct WaitingCall {
    call: Arc<AsyncCall>,
    target: RequestTarget,
    /// When it tries its next address instead.
    until: Deadline,
}

impl Slot {
    /// The connection, so that a oneway can be added to a batch. Checks less than
    /// [`open_in_turn`](Self::open_in_turn) does.
    #[inline]
    fn link_for_more(&self) -> Option<Arc<Link>> {
        self.link.as_ref().filter(|_| self.waiting.is_none()).cloned()
    }

    #[inline(always)] // a step of every call
    fn open_in_turn(&self, now: Time) -> Option<Arc<Link>> {
        self.link.as_ref().filter(|link| self.waiting.is_none() && link.is_usable(now)).cloned()
    }
}

/// What an asynchronous call finds at an endpoint.
pub(crate) enum LinkLookup {
    /// A connection.
    Open(Arc<Link>),
    /// None yet. The call goes on when the connection attempt has ended.
    Waiting,
    /// None, and no connection can be made.
    Refused(ConnectFailure),
    /// None yet, and more calls wait for the connection than it can carry.
    TooMany,
    /// None, and none is being made.
    Unconnected,
}

/// The reason why pending requests have not all been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushFailure {
    /// The number of oneways that were lost, or may have been lost, when connections ended since the last
    /// flush.
    Lost(usize),
    /// The peer has not taken the requests in time. They are still pending.
    TimedOut,
}

impl EndpointLinks {
    /// The slots that have been used.
    fn slots_in_use(&self) -> impl Iterator<Item = (usize, &SharedSlot)> {
        let slots = self.slots.get().map_or(&[][..], |slots| slots).iter().enumerate();
        slots.filter_map(|(index, slot)| Some((index, slot.get()?)))
    }

    /// The slot with this index.
    #[cold]
    fn slot(&self, index: usize) -> &SharedSlot {
        let slots = self.slots.get_or_init(|| (0..self.slots_max()).map(|_| OnceLock::new()).collect());
        slots[index].get_or_init(Arc::default)
    }

    /// The slot of the thread with this number, if it has been used.
    fn slot_in_use(&self, ordinal: usize) -> Option<&SharedSlot> {
        self.slots.get()?[self.index(ordinal)].get()
    }

    fn slots_max(&self) -> usize {
        self.common.config.connections_per_endpoint_max.max(1)
    }

    /// The index of the slot of the thread with this number.
    fn index(&self, ordinal: usize) -> usize {
        ordinal % self.slots_max()
    }

    /// The connections that exist now.
    fn links(&self) -> Vec<Arc<Link>> {
        self.slots_in_use().filter_map(|(_, slot)| slot.lock().link.clone()).collect()
    }

    /// Sends all pending requests, and waits until the system has taken them. Reports the oneways that were
    /// lost since the last flush.
    pub(crate) fn flush(&self, deadline: Deadline) -> Result<(), FlushFailure> {
        let mut flushed = Ok(());
        for link in self.links() {
            if link.flush_all(clock::now(), deadline).is_err() {
                flushed = Err(FlushFailure::TimedOut);
            }
        }
        match self.lost_oneways.get().map_or(0, |count| count.swap(0, Ordering::Relaxed)) {
            0 => flushed,
            count => Err(FlushFailure::Lost(count)),
        }
    }

    /// Closes connections that have ended. Returns how many are left.
    fn drop_ended(&self, now: Time) -> usize {
        let mut connected = 0;
        for (_, slot) in self.slots_in_use() {
            let mut slot = slot.lock();
            match &slot.link {
                Some(link) if link.is_alive(now) => connected += 1,
                _ => slot.link = None,
            }
        }
        connected
    }

    /// Returns how long each connection has been idle, with its slot.
    fn idle_times(&self, now: Time) -> Vec<(Duration, &EndpointLinks, usize)> {
        let slots = self.slots_in_use();
        slots
            .filter_map(|(index, slot)| Some((slot.lock().link.as_ref()?.idle_time(now), self, index)))
            .collect()
    }

    /// Closes the connection of a slot if it is idle.
    fn close_if_idle(&self, index: usize, now: Time) -> bool {
        let mut slot = self.slot(index).lock();
        let is_closed = slot.link.as_ref().is_some_and(|link| link.close_if_idle(now, Duration::ZERO));
        if is_closed {
            slot.link = None;
        }
        is_closed
    }

    /// Closes connections that have been idle for `limit`. Returns how many are left.
    fn close_idle(&self, now: Time, limit: Duration) -> usize {
        let mut connected = 0;
        for (_, slot) in self.slots_in_use() {
            // Under the slot's lock, so that no caller takes the connection for a new call meanwhile.
            let mut slot = slot.lock();
            match &slot.link {
                Some(link) if link.close_if_idle(now, limit) => slot.link = None,
                Some(_) => connected += 1,
                None => {}
            }
        }
        connected
    }

    /// Returns the open connection of a thread. `None` also while calls wait for the connection or are being
    /// sent over it, since a new call must not overtake them. Does not connect.
    pub(crate) fn open_link(&self, ordinal: usize, now: Time) -> Option<Arc<Link>> {
        self.slot_in_use(ordinal)?.lock().open_in_turn(now)
    }

    /// Returns the open connection of a thread, after the calls that wait for it have been sent.
    #[cold]
    pub(crate) fn link_in_turn(
        &self,
        ordinal: usize,
        deadline: Deadline,
    ) -> Result<Option<Arc<Link>>, ConnectFailure> {
        let Some(slot) = self.slot_in_use(ordinal) else { return Ok(None) };
        let mut slot = slot.lock();
        loop {
            if slot.waiting.is_none() {
                return Ok(slot.open_in_turn(clock::coarse()));
            }
            let woken = match deadline.remaining(clock::now()) {
                Ok(None) => self.sent.wait(slot),
                Ok(Some(left)) => self.sent.wait_for(slot, left).0,
                Err(Passed) => return Err(ConnectFailure::TimedOut),
            };
            slot = woken;
        }
    }

    /// Makes the connection of a thread.
    #[cold]
    pub(crate) fn connect_for(
        &self,
        ordinal: usize,
        deadline: Deadline,
    ) -> Result<Arc<Link>, ConnectFailure> {
        self.connect(self.slot(self.index(ordinal)), clock::now(), deadline)
    }

    /// Returns the connection for an asynchronous call. If one is being made, the call goes on when that is done. So it
    /// does with `connect`, where the background pool makes one if there is none. Calls go on in the order in which they
    /// came here; those that find no connection `until` then learn of that.
    pub(crate) fn link_or_wait(
        self: &Arc<Self>,
        ordinal: usize,
        connect: bool,
        (call, target, until): (&Arc<AsyncCall>, &RequestTarget, Deadline),
    ) -> LinkLookup {
        let until = until.at_most(clock::now(), self.common.config.connect_timeout);
        let waiting_call = || WaitingCall { call: call.clone(), target: target.clone(), until };
        let index = self.index(ordinal);
        let mut slot = self.slot(index).lock();
        if let Some(link) = slot.open_in_turn(clock::coarse()) {
            return LinkLookup::Open(link);
        }
        if let Some(waiting) = &mut slot.waiting {
            if waiting.len() >= self.common.config.connection.calls_in_flight_max {
                return LinkLookup::TooMany;
            }
            waiting.push(waiting_call());
            return LinkLookup::Waiting;
        }
        if !connect {
            return LinkLookup::Unconnected;
        }
        slot.waiting = Some(vec![waiting_call()]);
        drop(slot);
        let links = self.clone();
        match self.common.background_pool.run(move || links.connect_for_waiting(index)) {
            Ok(()) => LinkLookup::Waiting,
            Err(e) => {
                // Calls that have come meanwhile learn of the same failure.
                let waiting = self.slot(index).lock().waiting.take().unwrap_or_default();
                let failure = ConnectFailure::Io(Arc::new(e));
                for other in waiting.into_iter().filter(|other| !Arc::ptr_eq(&other.call, call)) {
                    other.call.not_connected(failure.clone());
                }
                LinkLookup::Refused(failure)
            }
        }
    }

    fn connect_for_waiting(self: &Arc<Self>, index: usize) {
        let slot = self.slot(index);
        // Calls that come while earlier calls are being sent, or are sent again, stay behind those.
        while let Some(until) = self.waited_until(slot) {
            let open = slot.lock().link.clone().filter(|link| link.is_usable(clock::coarse()));
            let connected = open.map_or_else(|| self.connect(slot, clock::now(), until), Ok);
            let waiting = slot.lock().waiting.as_mut().map(std::mem::take).unwrap_or_default();
            for waiting in waiting {
                match &connected {
                    Ok(link) => waiting.call.connected(link, &waiting.target),
                    // It came during the attempt, and has time for another.
                    Err(ConnectFailure::TimedOut) if waiting.until > until => {
                        slot.lock().waiting.get_or_insert_default().push(waiting);
                    }
                    Err(failure) => waiting.call.not_connected(failure.clone()),
                }
            }
        }
    }

    /// How long the calls that wait for a connection do so. When there are none, new calls need not wait.
    fn waited_until(&self, slot: &LaneLock<Slot>) -> Option<Deadline> {
        let mut slot = slot.lock();
        let until = slot.waiting.iter().flatten().map(|waiting| waiting.until).max();
        if until.is_none() {
            slot.waiting = None;
            self.sent.notify_all();
        }
        until
    }

    fn announce(&self, link: &Link) {
        if let Some(callbacks) = self.common.callbacks.get() {
            link.announce(callbacks);
        }
    }

    /// Lets calls to this endpoint that find no connection use the accepted connection from now on.
    fn add_accepted(&self, link: &Arc<Link>) {
        let mut accepted = self.accepted.get_or_init(Box::default).lock();
        accepted.retain(|other| other.upgrade().is_some_and(|other| other.is_alive(clock::coarse())));
        if accepted.len() < ACCEPTED_MAX && !accepted.iter().any(|other| other.as_ptr() == Arc::as_ptr(link))
        {
            accepted.push(Arc::downgrade(link));
        }
    }

    fn accepted_link(&self, now: Time) -> Option<Arc<Link>> {
        // The newest comes first: an older one may have lost its client without notice.
        self.accepted.get()?.lock().iter().rev().filter_map(Weak::upgrade).find(|link| link.is_usable(now))
    }

    /// Returns a connection of any slot.
    #[cold]
    fn any_link(&self) -> Option<Arc<Link>> {
        self.links().into_iter().find(|link| link.is_usable(clock::coarse()))
    }

    /// Lets the threads of a slot use a connection of another slot from now on.
    #[cold]
    fn share(&self, slot: &LaneLock<Slot>, link: Arc<Link>) -> Arc<Link> {
        let mut slot = slot.lock();
        match &slot.link {
            Some(own) if own.is_usable(clock::coarse()) => own.clone(), // another thread was faster
            _ => {
                slot.link = Some(link.clone());
                link
            }
        }
    }

    /// Finds a place for a connection. When there are as many as may be, the thread uses one of another thread, and waits
    /// for those that connect to this endpoint; or it closes an idle one.
    fn begin_attempt(&self, deadline: Deadline) -> Result<Beginning<'_>, ConnectFailure> {
        loop {
            let attempt = Attempt::begin(self);
            if let Some(place) = self.common.place() {
                return Ok(Beginning::Make(attempt, place));
            }
            drop(attempt); // so that threads that find no place do not wait for one another
            let is_tried = self.is_tried();
            if let Some(link) = self.any_link() {
                return Ok(Beginning::Share(link));
            }
            if !is_tried {
                let place = self.common.permit_of_another(clock::coarse()).ok_or_else(|| {
                    self.common.counters.count(Event::NoPlaceToConnect);
                    ConnectFailure::TooMany
                })?;
                return Ok(Beginning::Make(Attempt::begin(self), place));
            }
            let left = deadline.remaining(clock::now()).map_err(|Passed| ConnectFailure::TimedOut)?;
            let is_over = || !self.is_tried() || self.any_link().is_some();
            self.common.attempt_ended.wait(&is_over, left);
        }
    }

    fn count_attempt(&self, connected: &io::Result<Stream>, was_connected: bool) {
        let event = match connected {
            Ok(_) if was_connected => Event::Reconnected,
            Ok(_) => return, // the connection is counted where it is listed
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Event::ConnectTimedOut,
            Err(_) => Event::ConnectFailed,
        };
        self.common.counters.count(event);
    }

    /// Whether a thread connects to this endpoint.
    fn is_tried(&self) -> bool {
        self.attempts.load(Ordering::SeqCst) > 0
    }

    #[cold]
    fn connect(
        &self,
        slot: &LaneLock<Slot>,
        now: Time,
        deadline: Deadline,
    ) -> Result<Arc<Link>, ConnectFailure> {
        let ConnectorShared { config, closed, .. } = &*self.common;
        if closed.load(Ordering::Acquire) {
            return Err(ConnectFailure::ShutDown);
        }
        if config.bidirectional
            && let Some(link) = self.accepted_link(clock::coarse())
        {
            slot.lock().link = Some(link.clone());
            return Ok(link);
        }
        let deadline = deadline.at_most(now, config.connect_timeout);
        // Not under the lock: threads that share the slot must not wait past their own deadlines.
        let (_attempt, place) = match self.begin_attempt(deadline)? {
            Beginning::Share(link) => return Ok(self.share(slot, link)),
            Beginning::Make(attempt, place) => (attempt, place),
        };
        let was_connected = self.was_connected();
        let connected = self.common.connect(&self.address, deadline);
        if connected.as_ref().is_err_and(is_short_of_descriptors)
            && let Some(link) = self.any_link()
        {
            return Ok(self.share(slot, link));
        }
        self.count_attempt(&connected, was_connected);
        match connected {
            Ok(_) => self.note_connected(),
            Err(_) => self.note_failed(clock::now()),
        }
        let stream = connected.map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => ConnectFailure::TimedOut,
            _ => ConnectFailure::Io(Arc::new(e)),
        })?;
        let link = Link::new(stream, &self.common, place, self.lost_oneways.get_or_init(Arc::default));
        self.announce(&link);
        let mut slot = slot.lock();
        match &slot.link {
            Some(other) if other.is_usable(clock::coarse()) => Ok(other.clone()), // another thread was faster
            _ => {
                if closed.load(Ordering::Acquire) {
                    return Err(ConnectFailure::ShutDown);
                }
                slot.link = Some(link.clone());
                drop(slot);
                self.announce(&link); // again, because the ORB may have begun to listen meanwhile
                self.common.idle_reaper.connected();
                Ok(link)
            }
        }
    }
}

/// How a thread that needs a connection begins.
enum Beginning<'e> {
    /// It uses another thread's.
    Share(Arc<Link>),
    /// It makes one.
    Make(Attempt<'e>, ConnectionPermit),
}

/// An attempt to connect, as long as it lives. It ends after its connection has come into its slot.
struct Attempt<'e>(&'e EndpointLinks);

impl Attempt<'_> {
    fn begin(endpoint: &EndpointLinks) -> Attempt<'_> {
        endpoint.attempts.fetch_add(1, Ordering::SeqCst);
        Attempt(endpoint)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.attempts.fetch_sub(1, Ordering::SeqCst);
        self.0.common.attempt_ended.changed();
    }
}

/// True when the process or the system has as many files open as it may.
fn is_short_of_descriptors(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE))
}

/// Numbers the threads of the process in the order in which they first call.
#[inline]
pub(crate) fn thread_ordinal() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static ORDINAL: Cell<usize> = const { Cell::new(usize::MAX) });
    match ORDINAL.get() {
        usize::MAX => {
            let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
            ORDINAL.set(ordinal);
            ordinal
        }
        ordinal => ordinal,
    }
}

/// The bytes of an idle connection to a server: of its session, and with its driver's part.
#[cfg(test)]
pub(crate) fn link_bytes() -> (usize, usize) {
    link::BYTES
}
