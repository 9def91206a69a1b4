//! One outgoing connection over a socket: the driver in which the calling thread does everything.
//!
//! The caller marshals into the connection's buffer and sends under the lock, which it never holds while it
//! waits for the network. Then the caller takes the receiving part, if that is free, and waits for bytes
//! without the lock. It completes its own call and the calls of other threads whose answers come before.
//! Callers that find the receiving part taken sleep until their answer is there or the part is free again. So
//! a single caller never hands anything to a second thread. What calls without a waiting thread need is in
//! `async_replies`.

mod async_replies;
mod batch;
mod bidirectional;
mod fast_path;
mod gather_send;
mod lost;
mod unsent;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::Duration;

use ironorb_cache::Epoch;
use ironorb_giop::cdr::Writer;
use ironorb_giop::connection::{CallId, CallState, ClientConnection, ConnectionEnd, RequestOptions, Side};
use ironorb_giop::framer::Framer;
use ironorb_giop::message::{Message, OperationName, RequestTarget};
use ironorb_giop::real_time::PriorityBand;
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Misuse, Version};

use super::asynchronous::AsyncCall;
use super::idle_reaper::IdleReaper;
use super::lane::{ClientLane, ConnectionPermit};
use super::receiver::Receiver;
use super::remote_endpoint::RemoteEndpoint;
use crate::base::config::OnewayBatching;
use crate::base::lane::{self, LaneId};
use crate::base::locks::{Condition, LaneLock, LockGuard};
use crate::base::probe::{self, Stage};
use crate::base::time::Time;
use crate::call::invocation::CallFailure;
use crate::connection::{Batch, ClientActivity, ServerSession};
use crate::driver::cache::carried::NO_LOG;
use crate::driver::clock;
use crate::driver::waiting::{self, Waits};
use crate::lane::{Counted, Direction, Event, Key, Look, Traffic};
use crate::object::band_cell::{BandCell, PackedBand};
use crate::object::deadline::{Deadline, Passed, Timeout};
use crate::transport::{self, Moved, Shutdown, Stream};
use async_replies::AsyncReplies;
pub(crate) use batch::Added;
use bidirectional::Bidirectional;
pub(crate) use bidirectional::{Acceptor, Callbacks};
pub(crate) use fast_path::FastOutcome;

/// One outgoing connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    lane: LaneId,
    state: LaneLock<LinkState>,
    /// Notified when a gather write has made progress and threads wait for that, and when the connection has ended.
    changed: Condition,
    /// No more calls begin: a copy of the end in `state`, or the peer sends no more. Read without the lock. It may lag
    /// behind; then the request finds the end.
    ended: AtomicBool,
    /// The idle reaper tells the link when the peer sends no more.
    is_watched: AtomicBool,
    /// The socket's receive timeout as the link last set it, in microseconds; 0 is none. Only the thread that
    /// has the receiving part changes it. A caller that has more than 71 minutes waits again.
    receive_timeout_us: AtomicU32,
    /// How the thread with the receiving part waits.
    waits: Waits,
    /// The last timeout for which the socket's timeout is near enough, in nanoseconds.
    timeout_that_fits: AtomicU64,
    /// When a caller last used the connection, in the nanoseconds of [`Time`].
    used_ns: AtomicU64,
    made: Time,
    /// More than 4 GiB count as that.
    transmit_bytes_max: u32,
    /// Batched oneways that were lost, over all connections to the endpoint.
    lost_oneways: Arc<AtomicUsize>,
    receiver: Arc<Receiver>,
    idle_reaper: Arc<IdleReaper>,
    /// Counts the connection under the limit while the link lives.
    place: Option<ConnectionPermit>,
    /// The connection's key in the receiver's table.
    number: u64,
    me: Weak<Link>,
    /// `None` when only this side sends requests.
    bidirectional: Option<Box<Bidirectional>>,
    /// Written by the thread that has the receiving part.
    received_bytes: AtomicU64,
    /// The band of priorities that the connection is for, until its first request has told the server.
    band_to_tell: BandCell,
    /// The life of the server's log, once a reply has told it.
    log_epoch: AtomicU64,
}

/// The connection and its waiters.
#[derive(Debug)]
struct LinkState {
    connection: ClientConnection<Waiter>,
    /// Calls whose threads sleep because another thread receives.
    parked: Vec<CallId>,
    /// Threads that wait for a gather write.
    waiting_for_gather: u32,
    /// The state of calls without a waiting thread.
    async_replies: AsyncReplies,
    batch: Batch,
    /// When the last oneway began that was sent alone, in [ticks](oneway_tick).
    oneway_tick: u32,
}

/// What an answer wakes.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A sleeping caller.
    Thread(Thread),
    /// A call without a sleeping thread.
    Call(Arc<AsyncCall>, CallId),
}

impl Deref for LinkState {
    type Target = ClientConnection<Waiter>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.connection
    }
}

impl DerefMut for LinkState {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.connection
    }
}

/// The peer may have closed an idle connection meanwhile. After 20 ms without use a call checks a connection whose end the
/// idle reaper cannot see, and a oneway checks every connection.
const LOOK_AFTER_NS: u64 = 20_000_000;

/// The time in units of 2^20 ns, about 1 ms. It comes round: a oneway after a pause of 26 days or more may not look.
#[inline]
fn oneway_tick(now: Time) -> u32 {
    (now.as_nanos() >> 20) as u32
}

const ONEWAY_TICKS: i32 = (LOOK_AFTER_NS >> 20) as i32;

/// How long a caller that cannot send trusts that another thread receives. A server that itself waits to send
/// reads nothing.
const RECEIVER_GONE_AFTER: Duration = Duration::from_millis(20);

/// How long at least the buffer of the last large reply is kept for the next one. The idle reaper checks it.
const LARGE_FOLLOWS_WITHIN: Duration = Duration::from_secs(1);

type Guard<'l> = LockGuard<'l, LinkState>;

/// A request that has been written. What has not been sent of it waits in the connection's buffer.
struct Queued<'l, C> {
    state: Guard<'l>,
    call: C,
    /// The stream position at which the request ends.
    ends_at: u64,
}

impl<'l, C> Queued<'l, C> {
    /// Makes the entry of the last request in the buffer.
    fn last(mut state: Guard<'l>, call: C) -> Self {
        let ends_at = state.transmit().end_position();
        Queued { state, call, ends_at }
    }
}

impl Link {
    pub(super) fn new(
        stream: Stream,
        lane: &Arc<ClientLane>,
        place: ConnectionPermit,
        endpoint: &RemoteEndpoint,
    ) -> Arc<Self> {
        let bidirectional = lane.config.bidirectional.then(|| Bidirectional::originator(lane));
        let (lost_oneways, band) = (endpoint.lost_oneways().clone(), endpoint.partition().band);
        let link = Link::made(stream, lane, Some(place), lost_oneways, bidirectional, band);
        let counted: Weak<dyn Counted> = link.me.clone();
        lane.counters.of(link.lane).connections.add(link.key(), counted, link.made);
        link
    }

    fn made(
        stream: Stream,
        lane: &ClientLane,
        place: Option<ConnectionPermit>,
        lost_oneways: Arc<AtomicUsize>,
        bidirectional: Option<Bidirectional>,
        band: Option<PriorityBand>,
    ) -> Arc<Self> {
        let ClientLane { id, config, receiver, idle_reaper, spinners, .. } = lane;
        let connection = match &bidirectional {
            None => ClientConnection::new(config.connection),
            Some(bidirectional) => ClientConnection::bidirectional(
                config.connection,
                if bidirectional.acceptor_of().is_some() { Side::Acceptor } else { Side::Originator },
            ),
        };
        let state = LinkState {
            connection,
            parked: Vec::new(),
            waiting_for_gather: 0,
            async_replies: AsyncReplies::default(),
            batch: Batch::default(),
            oneway_tick: oneway_tick(clock::coarse()),
        };
        let waiting = waiting::policy(config, &stream, config.client_waiting);
        Arc::new_cyclic(|me| Link {
            stream,
            lane: *id,
            state: LaneLock::in_lane(*id, state),
            changed: Condition::new(),
            ended: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            receive_timeout_us: AtomicU32::new(0),
            waits: Waits::new(waiting, spinners),
            timeout_that_fits: AtomicU64::new(u64::MAX),
            used_ns: AtomicU64::new(clock::coarse().as_nanos()),
            made: clock::now(),
            transmit_bytes_max: config.transmit_bytes_max.try_into().unwrap_or(u32::MAX),
            lost_oneways,
            receiver: receiver.clone(),
            idle_reaper: idle_reaper.clone(),
            number: receiver.link_number(),
            me: me.clone(),
            received_bytes: AtomicU64::new(0),
            place,
            bidirectional: bidirectional.map(Box::new),
            band_to_tell: BandCell::new(PackedBand::new(band)),
            log_epoch: AtomicU64::new(NO_LOG.0),
        })
    }

    /// The band that the next request must tell, until one has. Requests that are written at the same time all tell it.
    #[inline]
    pub(crate) fn band_to_tell(&self) -> Option<PriorityBand> {
        self.band_to_tell.get().get()
    }

    /// Notes that a request has been written, which has told the band.
    #[inline]
    fn note_band_told(&self) {
        if self.band_to_tell.get() != PackedBand::NONE {
            self.band_to_tell.set(PackedBand::NONE);
        }
    }

    /// The life of the log of the server at the other end; [`NO_LOG`] until a reply has told it.
    #[inline]
    pub(crate) fn log_epoch(&self) -> Epoch {
        Epoch(self.log_epoch.load(Ordering::Relaxed))
    }

    /// Notes what a reply has told of the server's log.
    pub(crate) fn note_log_epoch(&self, epoch: Epoch) {
        self.log_epoch.store(epoch.0, Ordering::Relaxed);
    }

    /// The lane whose calls it carries.
    pub(super) fn lane(&self) -> LaneId {
        self.lane
    }

    /// False when the connection has ended, also when the peer closed it while it was idle. Marks the
    /// connection as used: a call begins now.
    #[inline(always)] // a step of every call
    pub(crate) fn is_usable(&self, now: Time) -> bool {
        let is_alive = self.is_alive(now);
        self.used_ns.store(now.as_nanos(), Ordering::Relaxed);
        is_alive
    }

    /// False when the connection has ended. Does not mark the connection as used.
    #[inline]
    pub(crate) fn is_alive(&self, now: Time) -> bool {
        if now.as_nanos().saturating_sub(self.used_ns.load(Ordering::Relaxed)) > LOOK_AFTER_NS {
            self.look_unless_watched();
        }
        #[cfg(debug_assertions)]
        if crate::base::testing::looks_at_connections_first() {
            self.look_unless_watched();
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Checks a connection whose end the idle reaper cannot see.
    #[cold]
    fn look_unless_watched(&self) {
        if self.is_watched.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if let Some(acceptor) = self.acceptor() {
            if acceptor.upgrade().is_none_or(|acceptor| acceptor.has_ended()) {
                self.end(&mut state, ConnectionEnd::Lost);
            }
            return;
        }
        self.look(&mut state);
    }

    /// Takes what came while no thread waited: a `CloseConnection` message or the end of the stream. The server receives on
    /// an accepted connection.
    fn look(&self, state: &mut Guard<'_>) {
        if self.is_accepted() {
            return;
        }
        let Some(mut framer) = state.take_framer() else { return };
        let result = transport::receive_now(&self.stream, framer.space());
        self.take_input(state, framer, result);
    }

    /// True when no oneway has begun for a while. It must then [check](Self::look_before_oneway) the connection: it has no
    /// reply, in whose place it would find a `CloseConnection` message, and would be lost.
    #[inline]
    fn is_first_oneway(&self, state: &mut Guard<'_>, now: Time) -> bool {
        let tick = oneway_tick(now);
        let before = std::mem::replace(&mut state.oneway_tick, tick);
        #[cfg(debug_assertions)]
        if crate::base::testing::looks_at_connections_first() {
            return true;
        }
        // The coarse clock may lag behind the other one.
        tick.wrapping_sub(before).cast_signed() > ONEWAY_TICKS
    }

    /// Checks a watched connection. [`is_usable`](Self::is_usable) has checked others.
    #[cold]
    fn look_before_oneway(&self, state: &mut Guard<'_>) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.look(state);
        }
    }

    /// Notes that the peer sends no more, on the idle reaper's thread. No more calls begin. Those in flight get what the
    /// peer has sent before, and the end from the thread that receives it. Never blocks.
    pub(super) fn on_hang_up(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        if state.end().is_none() && state.calls_in_flight() == 0 && state.has_framer() {
            self.lose_now(&mut state);
        }
    }

    /// Has the idle reaper report when the peer sends no more, if the connection's descriptor shows that.
    pub(super) fn watch_end(&self) {
        if self.stream.shows_end() && self.idle_reaper.watch(self.number, &self.me, &self.stream).is_ok() {
            self.is_watched.store(true, Ordering::Relaxed);
        }
    }

    fn unwatch_end(&self) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.idle_reaper.unwatch(self.number, &self.stream);
        }
    }

    /// Sends a request and waits for its answer. `arguments` writes the request's body.
    pub(crate) fn call(
        &self,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: OperationName<'_>,
        arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        now: Time,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        let mut clock = self.clock(now);
        let mut state = self.wait_for_room(&mut clock, deadline)?;
        let queued = match state.begin_gather(target, operation, options, arguments) {
            Ok(call) => Queued::last(state, call),
            Err(request) => self.send_gather(state, request, arguments, &mut clock, deadline)?,
        };
        self.note_band_told();
        self.finish_call(queued, || target.version(), clock, deadline)
    }

    /// Asks the server whether it has the object.
    pub(crate) fn locate(
        &self,
        target: &RequestTarget,
        now: Time,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        let mut clock = self.clock(now);
        let mut state = self.wait_for_room(&mut clock, deadline)?;
        let call = state.begin_locate(target)?;
        self.finish_call(Queued::last(state, call), || target.version(), clock, deadline)
    }

    /// Sends a request that wants no reply, or adds it to a batch.
    #[allow(clippy::too_many_arguments)] // the parts of a request, and how it is sent
    pub(crate) fn oneway(
        &self,
        target: &RequestTarget,
        contexts: EncodedContexts<'_>,
        operation: OperationName<'_>,
        arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        batching: Option<OnewayBatching>,
        now: Time,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        let mut clock = self.clock(now);
        let mut state = self.wait_for_room(&mut clock, deadline)?;
        if self.is_first_oneway(&mut state, clock.0) {
            self.look_before_oneway(&mut state);
        }
        let is_first = state.transmit().pending_bytes() == 0;
        let begins_at = state.transmit().end_position();
        let begun = state.begin_gather_oneway(target, operation, contexts, arguments);
        let queued = if let Err(request) = begun {
            self.send_gather(state, request, arguments, &mut clock, deadline)?
        } else if let Some(batching) = batching
            && self.hold_oneway(&mut state, is_first, &batching)
        {
            self.note_band_told();
            return Ok(());
        } else {
            Queued::last(state, ())
        };
        self.note_band_told();
        self.finish_oneway(queued, begins_at, clock, deadline)
    }

    fn finish_oneway<'l>(
        &'l self,
        queued: Queued<'l, ()>,
        begins_at: u64,
        mut clock: Clock,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        let Queued { mut state, ends_at, .. } = queued;
        state = self
            .flush_to(state, ends_at, &mut clock, deadline)
            .map_err(|Passed| CallFailure::TimedOut { written: true })?;
        let sent_position = state.transmit().sent_position();
        match state.end() {
            Some(end) if sent_position < ends_at => Err(CallFailure::ended(end, sent_position > begins_at)),
            _ => Ok(()),
        }
    }

    fn finish_call<'l>(
        &'l self,
        queued: Queued<'l, CallId>,
        version: impl Fn() -> Version,
        mut clock: Clock,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        let Queued { mut state, call, ends_at } = queued;
        // The call does not wait for requests that other threads have written behind its own. Its answer may
        // come although those cannot leave.
        while state.transmit().sent_position() < ends_at && state.is_waiting(call) {
            state = match self.push_out(state, ends_at, &mut clock, deadline) {
                Ok(state) => state,
                Err(Passed) => {
                    let mut state = self.state.lock();
                    if let CallState::Answered(message) = state.poll_call(call) {
                        return Ok(message);
                    }
                    state.abandon(call, version());
                    return Err(CallFailure::TimedOut { written: true });
                }
            };
        }
        // The call waits also when the connection has ended, because the answer may have come before.
        self.wait_for_answer(state, call, version, clock, deadline)
    }

    /// Returns the clock of a call that began at `now`. If the link was connected for the call, the clock
    /// starts when that was done.
    #[inline]
    fn clock(&self, now: Time) -> Clock {
        Clock(now.max(self.made))
    }

    /// Gives a reply's buffer back. A thread of another lane drops it, because it must not wait for this lane.
    #[inline]
    pub(crate) fn recycle(&self, message: Message) {
        if lane::current_lane() == self.lane {
            self.state.lock().recycle(message.into_buffer());
        }
    }

    /// Locks the state once the peer has read enough of the earlier requests.
    fn wait_for_room(&self, clock: &mut Clock, deadline: Deadline) -> Result<Guard<'_>, CallFailure> {
        let mut state = self.state.lock();
        while !self.has_room(state.transmit().pending_bytes()) && state.end().is_none() {
            state = self
                .push_out(state, u64::MAX, clock, deadline)
                .map_err(|Passed| CallFailure::TimedOut { written: false })?;
        }
        Ok(state)
    }

    /// Whether the peer has read enough of the earlier requests, when so many bytes of them are pending.
    fn has_room(&self, pending_bytes: usize) -> bool {
        pending_bytes <= self.transmit_bytes_max as usize
    }

    /// Sends until nothing is pending or the connection has ended.
    fn flush<'l>(
        &'l self,
        state: Guard<'l>,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> Result<Guard<'l>, Passed> {
        self.flush_to(state, u64::MAX, clock, deadline)
    }

    /// Sends until the stream position `wanted` has been sent, nothing is pending, or the connection has
    /// ended.
    fn flush_to<'l>(
        &'l self,
        mut state: Guard<'l>,
        wanted: u64,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> Result<Guard<'l>, Passed> {
        while state.transmit().pending_bytes() > 0
            && state.transmit().sent_position() < wanted
            && state.end().is_none()
        {
            state = self.push_out(state, wanted, clock, deadline)?;
        }
        Ok(state)
    }

    /// Sends once; when the socket is full, waits for it without the lock. The thread of a gather write also
    /// sends what is before its message, so during a gather write this waits until all up to the stream
    /// position `wanted` has been sent.
    #[inline]
    fn push_out<'l>(
        &'l self,
        mut state: Guard<'l>,
        wanted: u64,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> Result<Guard<'l>, Passed> {
        if let Some(acceptor) = self.acceptor() {
            return Ok(self.push_out_accepted(state, acceptor, clock));
        }
        let Some(bytes) = state.transmit().poll_buffered() else {
            return self.wait_for_gather(state, wanted, clock, deadline);
        };
        match transport::send_now(&self.stream, bytes) {
            Ok(Moved::Bytes(count)) => state.transmit().transmitted(count),
            Ok(Moved::Nothing | Moved::End) => {
                let waited;
                (state, waited) = self.wait_for_socket(state, clock, deadline);
                waited?;
            }
            Err(_) => state = self.lose(state),
        }
        Ok(state)
    }

    /// Waits without the lock until the socket takes bytes.
    #[cold]
    fn wait_for_socket<'l>(
        &'l self,
        mut state: Guard<'l>,
        clock: &mut Clock,
        deadline: Deadline,
    ) -> (Guard<'l>, Result<(), Passed>) {
        // The peer may stop reading until this side has read what it sends.
        let framer = state.take_framer();
        drop(state);
        let left = deadline.remaining(clock::now());
        // An error shows at the next send.
        let _ = match (left, &framer) {
            (Ok(left), Some(_)) => transport::wait_writable_or_readable(&self.stream, left),
            // The thread that receives may get its answer and leave before there is room.
            (Ok(left), None) => {
                let at_most = left.map_or(RECEIVER_GONE_AFTER, |left| left.min(RECEIVER_GONE_AFTER));
                transport::wait_writable(&self.stream, Some(at_most))
            }
            (Err(Passed), _) => Ok(()),
        };
        clock.has_waited();
        let mut state = self.state.lock();
        if let Some(mut framer) = framer {
            let result = transport::receive_now(&self.stream, framer.space());
            self.take_input(&mut state, framer, result);
            self.pass_receive_token(&mut state);
        }
        (state, left.map(drop))
    }

    fn wait_for_answer<'l>(
        &'l self,
        mut state: Guard<'l>,
        call: CallId,
        version: impl Fn() -> Version,
        mut clock: Clock,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        let mut has_waited = false;
        loop {
            match state.poll_call(call) {
                CallState::Waiting => {}
                CallState::Answered(message) => {
                    self.pass_receive_token(&mut state);
                    return Ok(message);
                }
                CallState::Ended { end, sent } => return Err(CallFailure::ended(end, sent)),
            }
            if has_waited {
                clock.has_waited();
            }
            let left = match deadline.remaining(clock.0) {
                Ok(left) => left,
                Err(Passed) => {
                    state.abandon(call, version());
                    self.pass_receive_token(&mut state);
                    self.flush_if_possible(&mut state);
                    return Err(CallFailure::TimedOut { written: true });
                }
            };
            match state.take_framer() {
                Some(mut framer) => {
                    drop(state);
                    let timeout = left.into();
                    let result = self.waits.receive(&self.stream, framer.space(), timeout, || {
                        self.set_receive_timeout(timeout);
                    });
                    state = self.state.lock();
                    self.take_input(&mut state, framer, result);
                    has_waited = true;
                }
                None => {
                    state.set_waker(call, Waiter::Thread(std::thread::current()));
                    state.parked.push(call);
                    drop(state);
                    self.waits.arrive();
                    let probe = probe::enter(Stage::Wait);
                    match left {
                        Some(left) => std::thread::park_timeout(left),
                        None => std::thread::park(),
                    }
                    drop(probe);
                    has_waited = true;
                    state = self.state.lock();
                    state.parked.retain(|other| *other != call);
                }
            }
        }
    }

    /// Puts the receiving part back with the bytes that came.
    #[inline]
    fn take_input(&self, state: &mut Guard<'_>, framer: Box<Framer>, result: std::io::Result<Moved>) {
        let woken = self.take_input_now(state, framer, result);
        if !woken.0.is_empty() {
            self.pass_on(state, woken);
        }
        if state.end().is_some() {
            self.has_ended(state);
        }
    }

    /// Puts the receiving part back with the bytes that came, and returns the calls without a thread that are
    /// to be notified.
    #[inline(always)] // a step of every call
    fn take_input_now(
        &self,
        state: &mut Guard<'_>,
        mut framer: Box<Framer>,
        result: std::io::Result<Moved>,
    ) -> AsyncWakeups {
        let end = match result {
            Ok(Moved::Bytes(count)) => {
                framer.received(count);
                self.note_received(count);
                None
            }
            Ok(Moved::Nothing) => None,
            Ok(Moved::End) | Err(_) => Some(ConnectionEnd::Lost),
        };
        let mut woken = AsyncWakeups::default();
        let handled = state.handle_input(framer, |waiter| woken.wake(waiter));
        if handled.is_err() {
            self.count_many(Event::StreamMalformed, 1);
            let _ = transport::send_now(&self.stream, state.transmit().poll_transmit());
        }
        if let Some(bidirectional) = &self.bidirectional {
            self.take_requests(state, bidirectional);
        }
        if let Some(end) = end {
            state.handle_end(end, |waiter| woken.wake(waiter));
        }
        woken
    }

    /// Ends the connection and all calls that wait on it.
    #[cold]
    fn end(&self, state: &mut Guard<'_>, end: ConnectionEnd) {
        let mut woken = AsyncWakeups::default();
        state.handle_end(end, |waiter| woken.wake(waiter));
        self.pass_on(state, woken);
        self.has_ended(state);
    }

    #[cold]
    fn has_ended(&self, state: &mut Guard<'_>) {
        self.ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        self.count_lost(state);
        self.settle(state);
        self.unwatch(state);
        if let Some(bidirectional) = &self.bidirectional {
            bidirectional.end().into_iter().for_each(|then| self.receiver.run_soon(then));
        }
        // An accepted connection is the server's to close.
        if !self.is_accepted() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    /// The accepted connection over which calls leave; `None` when the link has a socket of its own.
    #[inline]
    fn acceptor(&self) -> Option<&Weak<dyn Acceptor>> {
        self.bidirectional.as_ref()?.acceptor_of()
    }

    fn is_accepted(&self) -> bool {
        self.acceptor().is_some()
    }

    /// Passes the free receive token to a waiting caller, or to the receiver.
    #[inline]
    fn pass_receive_token(&self, state: &mut Guard<'_>) {
        if state.async_replies.calls > 0 || !state.parked.is_empty() {
            self.pass_receive_token_on(state);
        }
    }

    #[cold]
    fn pass_receive_token_on(&self, state: &mut Guard<'_>) {
        let LinkState { connection, parked, .. } = &mut **state;
        match parked.iter().find_map(|call| connection.take_waker(*call)) {
            Some(Waiter::Thread(thread)) => thread.unpark(),
            Some(Waiter::Call(..)) | None if state.async_replies.calls > 0 => self.engage_receiver(state),
            // All callers are awake already. The thread that sends also sends what the socket has not taken.
            Some(Waiter::Call(..)) | None => {}
        }
    }

    /// Sets the socket's own timeout, which saves a system call for the wait. A timeout that is near enough
    /// stays.
    #[inline(always)] // a step of every call
    fn set_receive_timeout(&self, left: Timeout) {
        if self.timeout_that_fits.load(Ordering::Relaxed) != left.as_nanos() {
            self.fit_receive_timeout(left);
        }
    }

    #[inline(never)]
    fn fit_receive_timeout(&self, left: Timeout) {
        self.timeout_that_fits.store(left.as_nanos(), Ordering::Relaxed);
        let now_us = u64::from(self.receive_timeout_us.load(Ordering::Relaxed));
        let want =
            left.as_duration().map_or(0, |left| u32::try_from(left.as_micros()).unwrap_or(u32::MAX).max(1));
        let want_us = u64::from(want);
        let fits = if want_us == 0 {
            now_us == 0
        } else {
            now_us >= want_us / 2 && now_us <= want_us + want_us / 8 + 1000
        };
        if !fits {
            self.receive_timeout_us.store(want, Ordering::Relaxed);
            let _ = self.stream.set_receive_timeout((want_us > 0).then(|| Duration::from_micros(want_us)));
        }
    }

    /// Sends what the socket takes at once. The next caller sends the rest.
    fn flush_if_possible(&self, state: &mut Guard<'_>) {
        if let Some(acceptor) = self.acceptor() {
            return self.send_some_accepted(state, acceptor);
        }
        if let Ok(Moved::Bytes(count)) = transport::send_now(&self.stream, state.transmit().poll_transmit()) {
            state.transmit().transmitted(count);
        }
    }

    /// How long no caller has used the connection.
    pub(super) fn idle_time(&self, now: Time) -> Duration {
        now.since(self.used_at())
    }

    fn used_at(&self) -> Time {
        Time::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    /// Closes the connection if no caller has used it for `limit` and nothing is in flight. True when it
    /// carries no more calls. A client needs no `CloseConnection` message to close: it has received all that
    /// it waited for.
    pub(super) fn close_if_idle(&self, now: Time, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if state.end().is_some() {
            return true;
        }
        let limit = if self.ended.load(Ordering::Relaxed) { Duration::ZERO } else { limit };
        if self.idle_time(now) >= LARGE_FOLLOWS_WITHIN {
            state.release_spare_memory();
        }
        self.send_rest(&mut state);
        let activity = ClientActivity {
            used_at: self.used_at(),
            calls_in_flight: state.calls_in_flight(),
            pending_bytes: state.transmit().pending_bytes(),
            is_bidirectional: self.bidirectional.is_some(),
        };
        if activity.closes_at(limit).is_none_or(|at| at > now) {
            return false;
        }
        // A call that comes now uses a new connection.
        self.count_many(Event::ConnectedIdle, 1);
        self.end(&mut state, ConnectionEnd::Closed);
        true
    }

    /// Sends what a caller that ran out of time may have left of a request. The peer must not wait for that.
    fn send_rest(&self, state: &mut Guard<'_>) {
        #[cfg(debug_assertions)]
        if crate::base::testing::sends_no_rests() {
            return;
        }
        if state.transmit().pending_bytes() > 0 && !state.transmit().is_gathering() {
            self.flush_if_possible(state);
        }
    }

    /// Sends `CloseConnection` and ends all calls that wait. Sends pending requests before, if the peer takes
    /// them within `flush_timeout`.
    pub(crate) fn close(&self, flush_timeout: Duration) {
        let now = clock::now();
        let flushed =
            self.flush(self.state.lock(), &mut Clock(now), Deadline::NEVER.at_most(now, flush_timeout));
        let mut state = flushed.unwrap_or_else(|Passed| self.state.lock());
        if self.is_accepted() {
            return self.end(&mut state, ConnectionEnd::Local);
        }
        let mut woken = AsyncWakeups::default();
        state.close(|waiter| woken.wake(waiter));
        self.pass_on(&mut state, woken);
        let _ = transport::send_now(&self.stream, state.transmit().poll_transmit());
        self.has_ended(&mut state);
    }
}

impl Link {
    /// Counts events of the connection.
    #[cold]
    fn count_many(&self, event: Event, count: u64) {
        self.receiver.counters().count_many(event, count);
    }

    /// The connection's place in the table of its lane.
    fn key(&self) -> Key {
        (Direction::Out, self.number)
    }

    /// Counts bytes that have come. The caller has the receiving part.
    #[inline(always)] // a step of every call
    fn note_received(&self, count: usize) {
        let before = self.received_bytes.load(Ordering::Relaxed);
        self.received_bytes.store(before + count as u64, Ordering::Relaxed);
    }
}

impl Counted for Link {
    fn observe(&self) -> Look {
        let mut state = self.state.lock();
        let inbound = self.bidirectional.as_ref().map(|bidirectional| bidirectional.inbound());
        let traffic = Traffic {
            calls: state.requests_begun(),
            calls_in_flight: state.calls_in_flight() as u64,
            requests: inbound.map_or(0, ServerSession::served).into(),
            requests_in_flight: inbound.map_or(0, ServerSession::unanswered) as u64,
            sent_bytes: state.transmit().sent_position(),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            unsent_bytes: state.transmit().pending_bytes() as u64,
        };
        let (word, is_open) = match state.end() {
            Some(_) => ("ended", false),
            None if traffic.calls_in_flight + traffic.requests_in_flight > 0 => ("busy", true),
            None => ("idle", true),
        };
        Look { traffic, state: word, is_open }
    }

    fn peer(&self) -> String {
        self.stream.peer()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The last reply of the connection may be dropped by a thread of another lane.
        let _its_locks = lane::enter(self.lane);
        self.send_last();
        if self.place.is_some() {
            let connections = &self.receiver.counters().of(self.lane).connections;
            connections.end(self.key(), &self.observe().traffic);
        }
        self.receiver.forget_link(self.number);
        self.unwatch_end();
    }
}

/// Calls without a thread that have been answered or have ended. They are to be notified.
#[derive(Default)]
struct AsyncWakeups(Vec<(Arc<AsyncCall>, CallId)>);

impl AsyncWakeups {
    #[inline]
    fn wake(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Thread(thread) => thread.unpark(),
            Waiter::Call(call, id) => self.0.push((call, id)),
        }
    }
}

/// The time as a call knows it. Reading the clock costs as much as marshalling, so a call reads it again only
/// after a wait.
struct Clock(Time);

impl Clock {
    #[cold]
    fn has_waited(&mut self) {
        self.0 = clock::now();
    }
}

/// The bytes of an idle connection, without and with its driver's part.
#[cfg(test)]
pub(super) const BYTES: (usize, usize) = {
    let session = size_of::<ClientConnection<Waiter>>() + size_of::<Framer>();
    (session, session - size_of::<ClientConnection<Waiter>>() + size_of::<Link>())
};
