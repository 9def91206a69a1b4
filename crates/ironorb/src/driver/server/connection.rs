//! One accepted connection: moves its bytes for the threads that serve it. Its [`ServerSession`] decides.
//!
//! The way of bytes to the peer is in `sending`, the destinations of replies in `answers`, cancellations in
//! `cancelled`, the timer of replies that wait in `coalescing`, and the additions for a bidirectional connection in
//! `bidirectional`.

mod answers;
mod bidirectional;
mod cancelled;
mod coalescing;
mod scheduling;
mod sending;
mod watched;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;

use crate::base::lane::LaneId;
use crate::base::locks::{LaneLock, LockGuard};
use crate::connection::{Admission, Arrival, CurrentRequest, Flags, ServerSession, UnreadPart};
use crate::driver::client::{ClientLane, Link};
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::driver::waiting::{self, Waits};
use crate::lane::{Connections, Counted, Direction, Key, Look, Traffic};
use crate::object::deadline::Timeout;
use crate::object::priority::Priority;
use crate::poa::adapter::Session;
use crate::transport::{self, CodePoint, Moved, Shutdown, Stream};

use super::Shared;
use super::lane::ServerLane;
use answers::PendingReply;
pub(super) use bidirectional::Received;
use bidirectional::SharedInbox;

/// One accepted connection. Receiving and sending have a lock each, so that one thread can write a reply
/// while another waits for requests.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) stream: Stream,
    orb: Arc<OrbCore>,
    /// For replies that come after the upcall.
    itself: Weak<Connection>,
    server: Weak<Shared>,
    receiver: LaneLock<Framer>,
    /// How the thread that holds `receiver` waits.
    waits: Waits,
    sender: LaneLock<ServerConnection>,
    lane: LaneId,
    /// What clients and the server have agreed upon.
    agreements: Session,
    /// Decides what happens on the connection.
    pub(super) session: ServerSession,
    /// Replies of the client to calls of the server.
    pub(super) replies_taken: AtomicU64,
    /// Threads that serve the connection now, beside its own.
    pub(super) helpers: AtomicU32,
    /// A thread of the hybrid pool should serve the connection, beside the thread that keeps to it.
    pub(super) wants_help: AtomicBool,
    /// A thread receives from this connection alone, for as long as it lasts. It waits itself for a peer that
    /// does not read.
    has_own_thread: bool,
    /// The code point of its packets.
    code_point: AtomicU8,
    /// Bytes of replies that the peer does not read.
    pub(super) unread: UnreadPart,
    /// When a thread last checked whether the client is connected, in
    /// [`Time`](crate::base::time::Time) time.
    client_seen: AtomicU64,
    /// The link for calls to the client, if the client has said that it can be called over this connection.
    calls: OnceLock<Arc<Link>>,
    /// Requests that another thread has received. Present once the server has called the client.
    inbox: OnceLock<Box<SharedInbox>>,
    /// Written by the thread that holds `receiver`.
    received_bytes: AtomicU64,
    /// When bytes last came, or the connection was found to have some, in [`Time`](crate::base::time::Time) time. Only where
    /// requests are watched.
    arrived: AtomicU64,
}

/// The result of a look for work.
#[derive(Debug)]
pub(super) enum WorkLookup {
    /// `current_request` has work to carry out. `more` says that another whole message has arrived already.
    Work { more: bool },
    /// More bytes are needed.
    Nothing,
    /// The connection is over.
    End,
}

/// Why a wait for work gave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    /// Nothing has come in the given time.
    Yet,
    /// The connection is over.
    Ever,
}

/// Why a thread takes no work now.
enum NoWork {
    /// The connection is over.
    End,
    /// Requests come another way, or not now.
    Elsewhere,
}

impl Connection {
    pub(super) fn new(
        id: u64,
        stream: Stream,
        server: &Arc<Shared>,
        itself: Weak<Connection>,
        has_own_thread: bool,
        priority_limit: Priority,
    ) -> Self {
        let (orb, lane, now) = (server.orb.clone(), server.lane(), clock::now());
        let counted: Weak<dyn Counted> = itself.clone();
        orb.counters.of(lane.id).connections.add((Direction::In, id), counted, now);
        let sender = ServerConnection::sending(orb.config.connection);
        let receiver = Framer::sharing(orb.config.connection.framer, lane.receive_memory.clone());
        let waiting = waiting::policy(&lane.config, &stream, lane.config.server_waiting);
        let waits = Waits::new(waiting, orb.connector.lane(lane.id).spinners());
        let unread = UnreadPart::of(lane.unread_replies.clone());
        Connection {
            id,
            stream,
            itself,
            server: Arc::downgrade(server),
            receiver: LaneLock::new(receiver),
            waits,
            sender: LaneLock::new(sender),
            lane: lane.id,
            agreements: Session::new(&server.orb.adapter).with_priority_limit(priority_limit),
            session: ServerSession::new(lane.requests.is_some(), has_own_thread, now)
                .measured(orb.measures_calls)
                .watched(orb.counters.watching().is_some()),
            orb,
            replies_taken: AtomicU64::new(0),
            helpers: AtomicU32::new(0),
            wants_help: AtomicBool::new(false),
            has_own_thread,
            code_point: AtomicU8::new(CodePoint::DEFAULT.number()),
            unread,
            client_seen: AtomicU64::new(0),
            calls: OnceLock::new(),
            inbox: OnceLock::new(),
            received_bytes: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        }
    }

    /// What its lane owns for clients.
    fn lane(&self) -> &ServerLane {
        self.orb.server_lane(self.lane)
    }

    /// What its lane owns for calls.
    fn client_lane(&self) -> &ClientLane {
        self.orb.connector.lane(self.lane)
    }

    /// Whether a thread receives from this connection alone, for as long as it lasts.
    pub(super) fn has_own_thread(&self) -> bool {
        self.has_own_thread
    }

    /// Waits for the next work, for ever or about as long as `timeout` says. `timeout` must equal the
    /// socket's receive timeout. Takes back the buffer of the last request.
    #[inline]
    pub(super) fn wait_for_work(
        &self,
        current_request: &mut CurrentRequest,
        timeout: Timeout,
    ) -> Result<(), Nothing> {
        let mut framer = self.receiver.lock();
        current_request.give_large_to(&mut framer);
        // Mostly nothing has come yet, and then a whole request comes at once.
        if framer.is_idle() && self.session.is_plain_receiving() {
            match self.waits.receive(&self.stream, framer.space(), timeout, || {}) {
                Ok(Moved::Bytes(count)) => {
                    framer.received(count);
                    self.note_received(count);
                }
                other => received_nothing(other, timeout)?,
            }
            if self.session.take_plain_request(&mut framer, current_request) {
                return Ok(());
            }
        }
        self.wait_for_any_work(framer, current_request, timeout)
    }

    #[inline(never)]
    fn wait_for_any_work<'c>(
        &'c self,
        mut framer: LockGuard<'c, Framer>,
        current_request: &mut CurrentRequest,
        timeout: Timeout,
    ) -> Result<(), Nothing> {
        self.look_for_client(&framer);
        loop {
            match self.next_arrived(&mut framer, current_request) {
                Ok(true) => {
                    self.session.note_whole();
                    current_request.arrived = self.arrived_now();
                    return Ok(());
                }
                Ok(false) => {}
                Err(NoWork::End) => return Err(Nothing::Ever),
                Err(NoWork::Elsewhere) => {
                    drop(framer);
                    match self.wait_elsewhere(current_request, timeout.as_duration()) {
                        Some(found) => return found,
                        None => framer = self.receiver.lock(),
                    }
                    continue;
                }
            }
            self.session.note_unfinished(&framer);
            if timeout == Timeout::NONE && !framer.is_mid_message() && framer.holds_spare_memory() {
                self.release_if_idle(&mut framer);
            }
            self.send_what_is_held();
            match self.waits.receive(&self.stream, framer.space(), timeout, || {}) {
                Ok(Moved::Bytes(count)) => {
                    framer.received(count);
                    self.note_received(count);
                    self.note_arrived();
                }
                other => received_nothing(other, timeout)?,
            }
        }
    }

    /// Waits for the next work while it comes another way or not now; `None` when that is over.
    #[cold]
    fn wait_elsewhere(
        &self,
        current_request: &mut CurrentRequest,
        timeout: Option<Duration>,
    ) -> Option<Result<(), Nothing>> {
        if self.session.takes_no_more() {
            return Some(Err(Nothing::Ever));
        }
        self.send_what_is_held();
        if let Some(inbox) = self.inbox.get() {
            return Some(match timeout {
                None => self.wait_at(inbox).map(|work| current_request.take(work)).ok_or(Nothing::Ever),
                Some(_) => match self.look_into(inbox, current_request) {
                    WorkLookup::Work { .. } => Ok(()),
                    WorkLookup::Nothing => Err(Nothing::Yet),
                    WorkLookup::End => Err(Nothing::Ever),
                },
            });
        }
        self.wait_until_unclogged();
        None
    }

    /// Gives the thread's buffer to a connection that has been idle.
    pub(super) fn wake(&self, current_request: &mut CurrentRequest) {
        current_request.give_to(&mut self.receiver.lock());
    }

    /// Gives up the connection's empty buffers; the thread keeps one. Returns true when something received
    /// still waits to be looked at: no socket shows it.
    pub(super) fn release_buffers(&self, current_request: &mut CurrentRequest) -> bool {
        if let Some(inbox) = self.inbox.get() {
            return inbox.is_announced();
        }
        let mut framer = self.receiver.lock();
        if framer.has_message() {
            return true;
        }
        if let Some(buffer) = framer.rest() {
            current_request.keep(buffer);
        }
        drop(framer);
        self.sender.lock().rest();
        false
    }

    /// Gives up the connection's empty buffers, for the reaper. A thread that waits for bytes keeps the
    /// buffer that it receives into.
    pub(super) fn release_buffers_if_idle(&self) {
        if let Some(mut framer) = self.receiver.try_lock() {
            framer.rest();
        }
        if let Some(mut sender) = self.sender.try_lock() {
            sender.rest();
        }
    }

    /// Takes a large buffer back from a thread that turns to other connections, because the thread might keep
    /// it without need.
    #[inline]
    pub(super) fn take_large_back(&self, current_request: &mut CurrentRequest) {
        if current_request.holds_large()
            && let Some(large) = current_request.take_buffer()
            && let Some(mut framer) = self.receiver.try_lock()
        {
            framer.recycle(large);
        }
    }

    /// Frees memory for large messages if none follows soon.
    #[cold]
    fn release_if_idle(&self, framer: &mut Framer) {
        if !transport::wait_readable(&self.stream, LARGE_FOLLOWS_WITHIN).unwrap_or(true) {
            framer.release();
        }
    }

    /// Frees memory for large messages, for the reaper. A thread that waits for bytes does so itself.
    pub(super) fn release_spare_memory(&self) {
        if let Some(mut framer) = self.receiver.try_lock()
            && framer.holds_spare_memory()
        {
            framer.release();
        }
    }

    /// Looks for the next work without waiting for bytes. For drivers in which no thread waits with the lock
    /// of `receiver`.
    pub(super) fn look_for_work(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        self.look(&mut self.receiver.lock(), current_request)
    }

    /// Looks for the next work without waiting for bytes. Finds nothing if another thread holds `receiver`:
    /// that thread may be waiting for bytes.
    pub(super) fn try_look_for_work(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        match self.receiver.try_lock() {
            Some(mut framer) => self.look(&mut framer, current_request),
            None => WorkLookup::Nothing,
        }
    }

    fn look(&self, framer: &mut Framer, current_request: &mut CurrentRequest) -> WorkLookup {
        current_request.give_to(framer);
        self.look_for_client(framer);
        loop {
            match self.next_arrived(framer, current_request) {
                Ok(true) => {
                    self.session.note_whole();
                    current_request.arrived = self.arrived_now();
                    let more = framer.has_message();
                    if !more {
                        drop(framer.take_idle_buffer()); // an idle connection keeps none
                    }
                    return WorkLookup::Work { more };
                }
                Ok(false) => {}
                Err(NoWork::End) => return WorkLookup::End,
                Err(NoWork::Elsewhere) => return self.look_elsewhere(current_request),
            }
            self.send_what_is_held();
            match transport::receive_now(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => {
                    framer.received(count);
                    self.note_received(count);
                    self.note_arrived();
                }
                Ok(Moved::Nothing) => {
                    self.session.note_unfinished(framer);
                    current_request.take_from(framer);
                    return WorkLookup::Nothing;
                }
                Ok(Moved::End) | Err(_) => return WorkLookup::End,
            }
        }
    }

    #[cold]
    fn look_elsewhere(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        match self.inbox.get() {
            _ if self.session.takes_no_more() => WorkLookup::End,
            Some(inbox) => self.look_into(inbox, current_request),
            None => WorkLookup::Nothing,
        }
    }

    /// Ends the connection at once. The receiving thread finds the end.
    pub(super) fn cut_off(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Takes and counts what has arrived; false when more bytes are needed.
    #[inline]
    fn next_arrived(
        &self,
        framer: &mut Framer,
        current_request: &mut CurrentRequest,
    ) -> Result<bool, NoWork> {
        match self.session.take_plain_request(framer, current_request) {
            true => Ok(true),
            false => self.next_of_any_kind(framer, current_request),
        }
    }

    #[inline(never)]
    fn next_of_any_kind(
        &self,
        framer: &mut Framer,
        current_request: &mut CurrentRequest,
    ) -> Result<bool, NoWork> {
        current_request.give_to(framer);
        loop {
            match self.session.poll_work(framer, current_request) {
                Arrival::Work => return Ok(true),
                Arrival::Nothing => return Ok(false),
                Arrival::Elsewhere => return Err(NoWork::Elsewhere),
                Arrival::End => {
                    self.send_what_is_held();
                    return Err(NoWork::End);
                }
                other => self.handle_arrival(framer, other),
            }
        }
    }

    /// True when requests wait that no thread looks at, and one more may be carried out.
    pub(super) fn is_waiting_for_a_thread(&self) -> bool {
        if self.session.is_on(Flags::CLOGGED | Flags::STALLED) {
            return false; // its reply would only wait behind earlier ones
        }
        if let Some(inbox) = self.inbox.get() {
            return inbox.is_waiting();
        }
        match self.receiver.try_lock() {
            Some(framer) => framer.has_message() || transport::is_readable(&self.stream),
            None => false,
        }
    }

    /// Takes note of the service contexts of a client's first requests, before another thread may serve the
    /// next request: they hold for that one as well.
    pub(super) fn take_note(&self, current_request: &CurrentRequest) {
        if self.session.served() < INTRODUCTIONS_MAX {
            current_request.work.take_note(&self.orb, &self.agreements, &PendingReply::of(self));
        }
    }

    /// Carries out a request that the thread has taken. True when the connection has ended meanwhile and this
    /// was its last request: the caller closes it.
    #[inline]
    #[must_use]
    pub(super) fn carry_out(&self, current_request: &mut CurrentRequest) -> bool {
        let request = PendingReply::of(self);
        if self.session.is_plain_upcall() {
            current_request.work.carry_out(&self.orb, &self.agreements, &request);
        } else {
            self.carry_out_unless_stopping(current_request, &request);
        }
        if self.session.must_send_after_upcall() {
            self.send_held();
        }
        self.session.handle_carried_out(request.is_settled())
    }

    #[cold]
    fn carry_out_unless_stopping(&self, current_request: &mut CurrentRequest, request: &PendingReply<'_>) {
        let (arrived, work) = (current_request.arrived.take(), &mut current_request.work);
        let came = self.note_coming(arrived, work);
        let begun = self.session.is_on(Flags::MEASURED).then(clock::now);
        self.before_upcall();
        match self.session.admit() {
            Admission::Skip => return,
            admitted => self.watching(came, request, |sink| match admitted {
                Admission::RunWithinLimits => work.carry_out_within_limits(&self.orb, &self.agreements, sink),
                _ => work.carry_out(&self.orb, &self.agreements, sink),
            }),
        }
        if let (Some(begun), Some(latencies)) = (begun, self.orb.counters.latencies()) {
            latencies.upcalls.add(clock::now().since(begun).as_nanos() as u64);
        }
    }

    /// Ends what depends on further messages of the client.
    fn end_calls(&self) {
        if let Some(link) = self.calls.get() {
            link.peer_ended(); // servants may be waiting
        }
    }

    /// Takes no more requests, because a request that is in progress makes no sense. The client knows already.
    fn take_no_more(&self) {
        self.end_calls();
        self.session.stop();
    }

    /// Takes no more requests. Those in progress are answered, and the thread that answers the last one
    /// closes.
    ///
    /// The receiving side is not shut down on its own: a client over a Unix socket would see that before the
    /// CloseConnection message.
    pub(super) fn stop_receiving(&self) {
        self.session.stop();
        self.end_calls();
        // sync: ending-or-stalled. Either this thread sees that nothing is left to send, or the writer thread
        // sees that the connection ends.
        if self.session.is_done() && !self.is_stalled() {
            self.close(true); // the receiving thread sees it as the end
        }
    }

    /// Sends CloseConnection and closes. While requests in progress lack their replies, the connection closes
    /// without that message: it would promise that an unanswered request was not carried out (CORBA 3.3 part
    /// 2, 9.4.7), and the client would send the request again.
    pub(super) fn close_now(&self) {
        self.session.stop();
        self.close(false);
    }

    /// Sends CloseConnection if no request lacks its reply, and closes. With `only_if_answered` it does
    /// nothing if a request has come meanwhile: the thread that takes that request leaves it and closes
    /// afterwards.
    fn close(&self, only_if_answered: bool) {
        let version = self.orb.config.giop_version;
        {
            let mut sender = self.sender.lock();
            if !self.session.write_end(&mut sender, version) && only_if_answered {
                return;
            }
            self.send_what_goes(&mut sender);
            sender.handle_end();
            self.unread.set(0);
        }
        self.end_calls();
        let _ = self.stream.shutdown(Shutdown::Write);
        self.drain();
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Ends the connection because its client does not read its replies. They count no longer from now on.
    /// The thread that waits for the client frees their memory when it sees the end.
    pub(super) fn cut_off_reader(&self) {
        self.unread.set(0);
        self.cut_off();
    }

    /// Reads and drops bytes that will not be served. Closing with unread bytes would reset the connection,
    /// and the reset could overtake the CloseConnection message.
    fn drain(&self) {
        let mut scrap = [0; 4096];
        for _ in 0..DRAIN_READS_MAX {
            if !matches!(transport::receive_now(&self.stream, &mut scrap), Ok(Moved::Bytes(_))) {
                return;
            }
        }
    }
}

impl Connection {
    /// Counts bytes that have come. The caller holds the lock of `receiver`.
    #[inline(always)] // a step of every call
    fn note_received(&self, count: usize) {
        let before = self.received_bytes.load(Ordering::Relaxed);
        self.received_bytes.store(before + count as u64, Ordering::Relaxed);
    }
}

impl Connection {
    /// Says how many requests have been carried out, before the count wraps.
    pub(super) fn note_requests(&self) {
        self.listed().note_requests(self.key(), self.session.served());
    }

    fn listed(&self) -> &Connections {
        &self.orb.counters.of(self.lane).connections
    }

    /// The connection's place in the table of its lane.
    fn key(&self) -> Key {
        (Direction::In, self.id)
    }
}

impl Counted for Connection {
    fn observe(&self) -> Look {
        let calls = self.calls.get().map(|link| link.observe().traffic).unwrap_or_default();
        let mut sender = self.sender.lock();
        let traffic = Traffic {
            calls: calls.calls,
            calls_in_flight: calls.calls_in_flight,
            requests: self.session.served().into(),
            requests_in_flight: self.session.unanswered() as u64,
            sent_bytes: sender.transmit().sent_position(),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            unsent_bytes: sender.transmit().pending_bytes() as u64,
        };
        let (state, is_open) = self.session.state();
        Look { traffic, state, is_open: is_open && !sender.is_ended() }
    }

    fn peer(&self) -> String {
        self.stream.peer()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.listed().end(self.key(), &self.observe().traffic);
    }
}

/// Whether a wait goes on that has brought no bytes.
#[cold]
fn received_nothing(moved: io::Result<Moved>, timeout: Timeout) -> Result<(), Nothing> {
    match moved {
        Ok(Moved::Nothing) if timeout != Timeout::NONE => Err(Nothing::Yet),
        Ok(Moved::Nothing | Moved::Bytes(_)) => Ok(()),
        Ok(Moved::End) | Err(_) => Err(Nothing::Ever),
    }
}

/// How long a thread keeps the buffer of a large message while it waits for the next one. Clients that send
/// large messages one by one send faster.
const LARGE_FOLLOWS_WITHIN: Duration = Duration::from_millis(20);

/// The number of requests after which a client is expected to have sent every service context that concerns
/// its whole connection. A later one still counts, when its request is served.
const INTRODUCTIONS_MAX: u32 = 8;

/// The most reads of 4 KiB after CloseConnection, so that a peer that never stops sending does not keep the
/// thread.
const DRAIN_READS_MAX: usize = 256;

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    #[test]
    fn an_idle_connection_takes_little_memory() {
        // Two counts of an `Arc`.
        let shared = 2 * size_of::<usize>();
        let session = size_of::<ServerSession>() + size_of::<ServerConnection>() + size_of::<Framer>();
        let connection = shared + size_of::<Connection>();
        let (client_session, link) = crate::driver::client::link_bytes();
        // Both ends without their drivers' parts: sockets, locks, and references to their ORBs.
        assert!(session + client_session <= 720, "{session} + {client_session}");
        // With them, and with a count of received bytes at each end. A lock knows its lane in builds with debug assertions
        // only.
        let lane = size_of::<LaneLock<u64>>() - size_of::<std::sync::Mutex<u64>>();
        // When bytes came last, for an ORB that watches.
        let arrival = size_of::<u64>();
        // The pointer to what is known of the client's clock, which most servers never set.
        let clock = size_of::<std::sync::OnceLock<Box<u8>>>();
        // Each end knows the connection's band of priorities.
        let bands = 2 * size_of::<u64>();
        // The client knows whose log the server tells.
        let log = size_of::<u64>();
        assert!(
            connection + shared + link <= 1224 + arrival + clock + bands + log + 4 * lane,
            "{connection} + {link}, {lane}"
        );
    }
}
