//! The connections of one lane to one endpoint. A thread uses the same connection as long as that connection lives.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ironorb_giop::message::RequestTarget;
use rustix::io::Errno;

use super::FlushFailure;
use super::asynchronous::AsyncCall;
use super::lane::{ClientLane, ConnectionPermit, OpenConnections};
use super::link::Link;
use super::remote_endpoint::RemoteEndpoint;
use super::thread_slots::CallingThread;
use crate::base::lane::{self, LaneId};
use crate::base::locks::{Condition, LaneLock};
use crate::base::time::Time;
use crate::call::remote_call::ConnectFailure;
use crate::driver::clock;
use crate::lane::Event;
use crate::object::deadline::{Deadline, Passed};
use crate::object::server_profile::{Partition, ServerEndpoint};
use crate::transport::Stream;

/// The most connections from clients that announce one and the same endpoint.
pub(crate) const ACCEPTED_MAX: usize = 64;

/// The connections of one lane to one endpoint.
#[derive(Debug)]
pub(crate) struct EndpointLinks {
    endpoint: Weak<dyn ServerEndpoint>,
    /// Places for connections, made when they are used.
    slots: Box<[OnceLock<SharedSlot>]>,
    /// Connections that have not been dropped.
    open: Arc<OpenConnections>,
    /// Notified when calls that waited for a connection have been sent.
    sent: Condition,
    /// Attempts to connect that are under way.
    attempts: AtomicU32,
    /// Connections of clients that announced this endpoint as their own.
    accepted: LaneLock<Vec<Weak<Link>>>,
    lane: Arc<ClientLane>,
}

/// A slot, which threads remember.
pub(super) type SharedSlot = Arc<LaneLock<Slot>>;

/// One connection, or an empty slot for it.
#[derive(Debug, Default)]
pub(super) struct Slot {
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
    pub(super) fn link_for_more(&self) -> Option<Arc<Link>> {
        self.link.as_ref().filter(|_| self.waiting.is_none()).cloned()
    }

    #[inline(always)] // a step of every call
    pub(super) fn open_in_turn(&self, now: Time) -> Option<Arc<Link>> {
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

impl EndpointLinks {
    pub(super) fn new(
        endpoint: Weak<dyn ServerEndpoint>,
        lane: &Arc<ClientLane>,
        partition: &Partition,
    ) -> Arc<EndpointLinks> {
        let slots_max = match partition.has_one_connection() {
            true => 1,
            false => lane.config.connections_per_endpoint_max.max(1),
        };
        Arc::new(EndpointLinks {
            endpoint,
            slots: (0..slots_max).map(|_| OnceLock::new()).collect(),
            open: lane.open_connections(),
            sent: Condition::new(),
            attempts: AtomicU32::new(0),
            accepted: LaneLock::in_lane(lane.id, Vec::new()),
            lane: lane.clone(),
        })
    }

    /// Whether they belong to this lane.
    pub(super) fn is_of_lane(&self, lane: LaneId) -> bool {
        self.lane.id == lane
    }

    /// Whether a connection is one of these.
    pub(super) fn has(&self, link: &Arc<Link>) -> bool {
        self.slots_in_use().any(|(_, slot)| slot.lock().link.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)))
            || self.accepted.lock().iter().any(|it| it.as_ptr() == Arc::as_ptr(link))
    }

    /// Whether a connection is a band's, and no request has told the server so. A band has one connection.
    pub(super) fn has_band_to_tell(&self) -> bool {
        let mut links = self.slots_in_use();
        links.any(|(_, slot)| slot.lock().link.as_ref().is_some_and(|link| link.band_to_tell().is_some()))
    }

    /// Whether there is a connection.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_any()
    }

    /// The slots that have been used.
    fn slots_in_use(&self) -> impl Iterator<Item = (usize, &SharedSlot)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.get()?)))
    }

    /// The slot with this index.
    #[cold]
    fn slot(&self, index: usize) -> &SharedSlot {
        self.slots[index].get_or_init(|| Arc::new(LaneLock::in_lane(self.lane.id, Slot::default())))
    }

    /// The slot of the thread with this number, if it has been used.
    pub(super) fn slot_in_use(&self, ordinal: usize) -> Option<&SharedSlot> {
        self.slots[self.index(ordinal)].get()
    }

    /// The index of the slot of the thread with this number.
    fn index(&self, ordinal: usize) -> usize {
        ordinal % self.slots.len()
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
        match self.endpoint.upgrade().map_or(0, |endpoint| RemoteEndpoint::of(&*endpoint).take_lost_oneways())
        {
            0 => flushed,
            count => Err(FlushFailure::Lost(count)),
        }
    }

    /// Sends as many of the pending requests as the sockets take at once.
    pub(super) fn flush_now(&self) {
        self.links().iter().for_each(|link| link.flush_now());
    }

    /// Closes all connections in order; the peers get up to `flush_timeout` to take what waits.
    pub(super) fn close(&self, flush_timeout: Duration) {
        for (_, slot) in self.slots_in_use() {
            let link = slot.lock().link.take();
            if let Some(link) = link {
                link.close(flush_timeout);
            }
        }
    }

    /// Gives all connections up. A thread of another lane leaves that to the connections' own lane.
    pub(super) fn drop_all(self: &Arc<Self>) {
        let is_elsewhere = lane::current_lane() != self.lane.id;
        let _its_locks = lane::enter(self.lane.id);
        let links = self.clone();
        let is_left = is_elsewhere
            && self.is_open()
            && self.lane.background_pool().run(move || links.drop_all_here()).is_ok();
        if !is_left {
            self.drop_all_here();
        }
    }

    fn drop_all_here(&self) {
        for (_, slot) in self.slots_in_use() {
            slot.lock().link = None;
        }
    }

    /// Tells the peers of all connections that callbacks are served.
    pub(super) fn announce_all(&self) {
        self.links().iter().for_each(|link| self.announce(link));
    }

    /// Gives up connections that have ended.
    pub(super) fn drop_ended(&self, now: Time) {
        for (_, slot) in self.slots_in_use() {
            let mut slot = slot.lock();
            let ended = slot.link.take_if(|link| !link.is_alive(now));
            drop((slot, ended));
        }
    }

    /// Returns how long each connection has been idle, with its slot.
    pub(super) fn idle_times(&self, now: Time) -> Vec<(Duration, &EndpointLinks, usize)> {
        let slots = self.slots_in_use();
        slots
            .filter_map(|(index, slot)| Some((slot.lock().link.as_ref()?.idle_time(now), self, index)))
            .collect()
    }

    /// Closes the connection of a slot if it is idle.
    pub(super) fn close_if_idle(&self, index: usize, now: Time) -> bool {
        let mut slot = self.slot(index).lock();
        let is_closed = slot.link.as_ref().is_some_and(|link| link.close_if_idle(now, Duration::ZERO));
        if is_closed {
            slot.link = None;
        }
        is_closed
    }

    /// Closes connections that have been idle for `limit`. Returns how many are left.
    pub(super) fn close_idle(&self, now: Time, limit: Duration) -> usize {
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
        thread: CallingThread,
        deadline: Deadline,
    ) -> Result<Option<Arc<Link>>, ConnectFailure> {
        let Some(slot) = self.slot_in_use(thread.ordinal) else { return Ok(None) };
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
        thread: CallingThread,
        deadline: Deadline,
    ) -> Result<Arc<Link>, ConnectFailure> {
        self.connect(self.slot(self.index(thread.ordinal)), clock::now(), deadline)
    }

    /// Returns the connection for an asynchronous call. If one is being made, the call goes on when that is done. So it
    /// does with `connect`, where the background pool makes one if there is none. Calls go on in the order in which they
    /// came here; those that find no connection `until` then learn of that.
    pub(crate) fn link_or_wait(
        self: &Arc<Self>,
        thread: CallingThread,
        connect: bool,
        (call, target, until): (&Arc<AsyncCall>, &RequestTarget, Deadline),
    ) -> LinkLookup {
        let until = until.at_most(clock::now(), self.lane.config.connect_timeout);
        let waiting_call = || WaitingCall { call: call.clone(), target: target.clone(), until };
        let index = self.index(thread.ordinal);
        let mut slot = self.slot(index).lock();
        if let Some(link) = slot.open_in_turn(clock::coarse()) {
            return LinkLookup::Open(link);
        }
        if let Some(waiting) = &mut slot.waiting {
            if waiting.len() >= self.lane.config.connection.calls_in_flight_max {
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
        match self.lane.background_pool().run(move || links.connect_for_waiting(index)) {
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
        if let Some(callbacks) = self.lane.callbacks.get() {
            link.announce(callbacks);
        }
    }

    /// Lets calls to this endpoint that find no connection use the accepted connection from now on.
    pub(super) fn add_accepted(&self, link: &Arc<Link>) {
        let mut accepted = self.accepted.lock();
        accepted.retain(|other| other.upgrade().is_some_and(|other| other.is_alive(clock::coarse())));
        if accepted.len() < ACCEPTED_MAX && !accepted.iter().any(|other| other.as_ptr() == Arc::as_ptr(link))
        {
            accepted.push(Arc::downgrade(link));
        }
    }

    fn accepted_link(&self, now: Time) -> Option<Arc<Link>> {
        // The newest comes first: an older one may have lost its client without notice.
        self.accepted.lock().iter().rev().filter_map(Weak::upgrade).find(|link| link.is_usable(now))
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
            if let Some(place) = self.lane.place(&self.open) {
                return Ok(Beginning::Make(attempt, place));
            }
            drop(attempt); // so that threads that find no place do not wait for one another
            let is_tried = self.is_tried();
            if let Some(link) = self.any_link() {
                return Ok(Beginning::Share(link));
            }
            if !is_tried {
                let place = self.lane.permit_of_another(&self.open, clock::coarse()).ok_or_else(|| {
                    self.lane.counters.count(Event::NoPlaceToConnect);
                    ConnectFailure::TooMany
                })?;
                return Ok(Beginning::Make(Attempt::begin(self), place));
            }
            let left = deadline.remaining(clock::now()).map_err(|Passed| ConnectFailure::TimedOut)?;
            let is_over = || !self.is_tried() || self.any_link().is_some();
            self.lane.attempt_ended.wait(&is_over, left);
        }
    }

    fn count_attempt(&self, connected: &io::Result<Stream>, was_connected: bool) {
        let event = match connected {
            Ok(_) if was_connected => Event::Reconnected,
            Ok(_) => return, // the connection is counted where it is listed
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Event::ConnectTimedOut,
            Err(_) => Event::ConnectFailed,
        };
        self.lane.counters.count(event);
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
        let ClientLane { config, closed, .. } = &*self.lane;
        // The caller holds a route to it.
        let Some(endpoint) = self.endpoint.upgrade() else { return Err(ConnectFailure::ShutDown) };
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
        let was_connected = endpoint.was_connected();
        let partition = RemoteEndpoint::of(&*endpoint).partition();
        let connected = self.lane.connect(endpoint.address(), partition, deadline);
        if connected.as_ref().is_err_and(is_short_of_descriptors)
            && let Some(link) = self.any_link()
        {
            return Ok(self.share(slot, link));
        }
        self.count_attempt(&connected, was_connected);
        match connected {
            Ok(_) => endpoint.note_connected(),
            Err(_) => endpoint.note_failed(clock::now()),
        }
        let stream = connected.map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => ConnectFailure::TimedOut,
            _ => ConnectFailure::Io(Arc::new(e)),
        })?;
        let link = Link::new(stream, &self.lane, place, RemoteEndpoint::of(&*endpoint));
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
                self.lane.idle_reaper.connected();
                link.watch_end();
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
        self.0.lane.attempt_ended.changed();
    }
}

/// True when the process or the system has as many files open as it may.
fn is_short_of_descriptors(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE))
}
