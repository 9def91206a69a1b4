//! One accepted connection: the state that the threads which serve it share.
//!
//! The request that a thread carries out is in `current_request`, the way of bytes to the peer in `sending`,
//! the destinations of replies in `answers`, cancellations in `cancelled`, and the additions for a
//! bidirectional connection in `bidirectional`.

mod answers;
mod bidirectional;
mod cancelled;
mod coalescing;
mod sending;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;

use crate::base::sync::lock;
use crate::connection::{Cancellations, CurrentRequest, Other, RequestCounter, Stop, UnreadPart, Work};
use crate::driver::client::Link;
use crate::driver::waiting::Waits;
use crate::orb::OrbCore;
use crate::poa::adapter::Session;
use crate::transport::{self, Moved, Shutdown, Stream};

use super::Shared;
use super::connection_reaper::Activity;
use answers::PendingReply;
use bidirectional::Inbox;
pub(super) use bidirectional::Received;
use coalescing::Coalescing;
pub(super) use sending::Stall;

/// One accepted connection. Receiving and sending have a lock each, so that one thread can write a reply
/// while another waits for requests.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) stream: Stream,
    orb: Arc<OrbCore>,
    /// For replies that come after the upcall.
    itself: Weak<Connection>,
    server: Weak<Shared>,
    receiver: Mutex<Framer>,
    /// How the thread that holds `receiver` waits.
    waits: Waits,
    sender: Mutex<ServerConnection>,
    session: Session,
    /// Bits of [`SlowPathFlags`], mostly none. A call checks all of them with one load.
    slow_path_flags: AtomicU8,
    /// Messages carried out. The count stands still while a servant blocks.
    pub(super) served: AtomicU64,
    /// Replies of the client to calls of the server.
    pub(super) replies_taken: AtomicU64,
    /// Threads that serve the connection now, beside its own.
    pub(super) helpers: AtomicUsize,
    /// A thread of the hybrid pool should serve the connection, beside the thread that keeps to it.
    pub(super) wants_help: AtomicBool,
    /// Requests that are in progress, and those among them that have no reply yet. A thread counts a request
    /// under the lock of the place from which it takes it.
    progress: RequestCounter,
    coalescing: Coalescing,
    /// No more requests will come. The thread that finishes the last one closes the connection.
    ending: AtomicBool,
    /// A thread receives from this connection alone, for as long as it lasts. It waits itself for a peer that
    /// does not read.
    has_own_thread: bool,
    /// The server's writer thread sends what waits. Changes only under the lock of `sender`.
    stalled: AtomicBool,
    /// Bytes of replies that the peer does not read.
    pub(super) unread: UnreadPart,
    /// Received bytes of incomplete messages, as the last receiving thread saw them.
    unfinished_bytes: AtomicUsize,
    /// When a thread last checked whether the client is connected, in
    /// [`Time`](crate::base::time::Time) time.
    client_seen: AtomicU64,
    /// Requests that the client no longer waits for.
    cancellations: Cancellations,
    /// The link for calls to the client, if the client has said that it can be called over this connection.
    calls: OnceLock<Arc<Link>>,
    /// Requests that another thread has received. Present once the server has called the client.
    inbox: OnceLock<Inbox>,
    /// How many addresses the client says that it listens at.
    listen_points: AtomicUsize,
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

/// Why the fast path found no work.
enum NoWork {
    /// The connection is over.
    End,
    /// A flag of [`SlowPathFlags`] is set.
    SlowPath,
    /// Something else has come and has been dealt with. There may be more.
    Again,
}

/// The reasons that keep threads from the fast path, as bits of `Connection::slow_path_flags`.
struct SlowPathFlags;

impl SlowPathFlags {
    /// The connection takes no more requests.
    const STOPPING: u8 = 1;
    /// The bidirectional receiver receives, and puts requests into the inbox. Never cleared.
    const BIDIRECTIONAL: u8 = 2;
    /// The peer does not read, and more than `transmit_bytes_max` bytes wait for it. Changes only under the
    /// lock of `sender`, and only if the connection has a thread of its own.
    const CLOGGED: u8 = 4;
    /// The client has cancelled a request that is in progress, and the servant has not asked yet. Threads
    /// keep serving, and check each request. Changes only under the lock of `receiver`.
    const CANCELLED: u8 = 8;
    /// The ORB limits the requests in flight. Never changes, and does not concern receiving.
    const COUNTED: u8 = 16;
    /// The client has closed the connection. Requests that expect a reply are no longer carried out. Never
    /// cleared.
    const CLIENT_GONE: u8 = 32;
    /// All flags that concern receiving.
    const OF_RECEIVING: u8 = SlowPathFlags::STOPPING
        | SlowPathFlags::BIDIRECTIONAL
        | SlowPathFlags::CLOGGED
        | SlowPathFlags::CANCELLED
        | SlowPathFlags::CLIENT_GONE;
}

impl Connection {
    pub(super) fn new(
        id: u64,
        stream: Stream,
        server: &Arc<Shared>,
        itself: Weak<Connection>,
        has_own_thread: bool,
    ) -> Self {
        let orb = server.orb.clone();
        let sender = ServerConnection::sending(orb.config.connection);
        let receiver = Framer::sharing(orb.config.connection.framer, orb.receive_memory.clone());
        let slow_path_flags = if orb.requests.is_some() { SlowPathFlags::COUNTED } else { 0 };
        let waiting = orb.config.waiting_on(&stream, orb.config.server_waiting);
        let waits = Waits::new(waiting, orb.connector.spinners());
        let unread = UnreadPart::of(orb.unread_replies.clone());
        Connection {
            id,
            stream,
            orb,
            itself,
            server: Arc::downgrade(server),
            receiver: Mutex::new(receiver),
            waits,
            sender: Mutex::new(sender),
            session: Session::new(&server.orb.adapter),
            slow_path_flags: AtomicU8::new(slow_path_flags),
            served: AtomicU64::new(0),
            replies_taken: AtomicU64::new(0),
            helpers: AtomicUsize::new(0),
            wants_help: AtomicBool::new(false),
            progress: RequestCounter::default(),
            coalescing: Coalescing::default(),
            ending: AtomicBool::new(false),
            has_own_thread,
            stalled: AtomicBool::new(false),
            unread,
            unfinished_bytes: AtomicUsize::new(0),
            client_seen: AtomicU64::new(0),
            cancellations: Cancellations::default(),
            calls: OnceLock::new(),
            inbox: OnceLock::new(),
            listen_points: AtomicUsize::new(0),
        }
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
        timeout: Option<Duration>,
    ) -> Result<(), Nothing> {
        let mut framer = lock(&self.receiver);
        current_request.give_large_to(&mut framer);
        // Mostly nothing has come yet, and then a whole request comes at once.
        if framer.is_idle() && !self.has_slow_path_flag() {
            self.send_what_is_held();
            match self.waits.receive(&self.stream, framer.space(), timeout, || {}) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) if timeout.is_some() => return Err(Nothing::Yet),
                Ok(Moved::Nothing) => {}
                Ok(Moved::End) | Err(_) => return Err(Nothing::Ever),
            }
            if !self.has_slow_path_flag() && current_request.take_plain_request(&mut framer) {
                self.begin_plain(&framer);
                return Ok(());
            }
        }
        self.wait_for_any_work(framer, current_request, timeout)
    }

    #[inline(never)]
    fn wait_for_any_work<'c>(
        &'c self,
        mut framer: MutexGuard<'c, Framer>,
        current_request: &mut CurrentRequest,
        timeout: Option<Duration>,
    ) -> Result<(), Nothing> {
        self.look_for_client(&framer);
        loop {
            match self.next_arrived(&mut framer, current_request) {
                Ok(true) => {
                    self.note_unfinished(0);
                    return Ok(());
                }
                Ok(false) => {}
                Err(NoWork::Again) => continue,
                Err(NoWork::End) => return Err(Nothing::Ever),
                Err(NoWork::SlowPath) => {
                    drop(framer);
                    match self.wait_elsewhere(current_request, timeout) {
                        Some(found) => return found,
                        None => framer = lock(&self.receiver),
                    }
                    continue;
                }
            }
            self.note_unfinished_of(&framer);
            if timeout.is_none() && !framer.is_mid_message() && framer.holds_spare_memory() {
                self.release_if_idle(&mut framer);
            }
            self.send_what_is_held();
            match self.waits.receive(&self.stream, framer.space(), timeout, || {}) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) if timeout.is_some() => return Err(Nothing::Yet),
                Ok(Moved::Nothing) => {}
                Ok(Moved::End) | Err(_) => return Err(Nothing::Ever),
            }
        }
    }

    /// Waits for the next work while a slow-path flag is set; `None` when it is cleared.
    #[cold]
    fn wait_elsewhere(
        &self,
        current_request: &mut CurrentRequest,
        timeout: Option<Duration>,
    ) -> Option<Result<(), Nothing>> {
        if self.is_on(SlowPathFlags::STOPPING) {
            return Some(Err(Nothing::Ever));
        }
        self.send_what_is_held();
        if let Some(inbox) = self.inbox.get() {
            return Some(match timeout {
                None => self.wait_at(inbox).map(|work| current_request.work = work).ok_or(Nothing::Ever),
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
        current_request.give_to(&mut lock(&self.receiver));
    }

    /// Gives up the connection's empty buffers; the thread keeps one. Returns true when something received
    /// still waits to be looked at: no socket shows it.
    pub(super) fn release_buffers(&self, current_request: &mut CurrentRequest) -> bool {
        if let Some(inbox) = self.inbox.get() {
            return inbox.is_announced();
        }
        let mut framer = lock(&self.receiver);
        if framer.has_message() {
            return true;
        }
        if let Some(buffer) = framer.rest() {
            current_request.keep(buffer);
        }
        drop(framer);
        lock(&self.sender).rest();
        false
    }

    /// Gives up the connection's empty buffers, for the reaper. A thread that waits for bytes keeps the
    /// buffer that it receives into.
    pub(super) fn release_buffers_if_idle(&self) {
        if let Ok(mut framer) = self.receiver.try_lock() {
            framer.rest();
        }
        if let Ok(mut sender) = self.sender.try_lock() {
            sender.rest();
        }
    }

    /// Takes a large buffer back from a thread that turns to other connections, because the thread might keep
    /// it without need.
    #[inline]
    pub(super) fn take_large_back(&self, current_request: &mut CurrentRequest) {
        if current_request.holds_large()
            && let Some(large) = current_request.take_buffer()
            && let Ok(mut framer) = self.receiver.try_lock()
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
        if let Ok(mut framer) = self.receiver.try_lock()
            && framer.holds_spare_memory()
        {
            framer.release();
        }
    }

    /// Looks for the next work without waiting for bytes. For drivers in which no thread waits with the lock
    /// of `receiver`.
    pub(super) fn look_for_work(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        self.look(&mut lock(&self.receiver), current_request)
    }

    /// Looks for the next work without waiting for bytes. Finds nothing if another thread holds `receiver`:
    /// that thread may be waiting for bytes.
    pub(super) fn try_look_for_work(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        match self.receiver.try_lock() {
            Ok(mut framer) => self.look(&mut framer, current_request),
            Err(_) => WorkLookup::Nothing,
        }
    }

    fn look(&self, framer: &mut Framer, current_request: &mut CurrentRequest) -> WorkLookup {
        current_request.give_to(framer);
        self.look_for_client(framer);
        loop {
            match self.next_arrived(framer, current_request) {
                Ok(true) => {
                    self.note_unfinished(0);
                    let more = framer.has_message();
                    if !more {
                        drop(framer.take_idle_buffer()); // an idle connection keeps none
                    }
                    return WorkLookup::Work { more };
                }
                Ok(false) => {}
                Err(NoWork::Again) => continue,
                Err(NoWork::End) => return WorkLookup::End,
                Err(NoWork::SlowPath) => return self.look_elsewhere(current_request),
            }
            self.send_what_is_held();
            match transport::receive_now(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) => {
                    self.note_unfinished_of(framer);
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
            _ if self.is_on(SlowPathFlags::STOPPING) => WorkLookup::End,
            Some(inbox) => self.look_into(inbox, current_request),
            None => WorkLookup::Nothing,
        }
    }

    /// Whether a flag keeps threads from receiving on the fast path.
    #[inline]
    fn has_slow_path_flag(&self) -> bool {
        self.slow_path_flags.load(Ordering::Relaxed) & SlowPathFlags::OF_RECEIVING != 0
    }

    #[inline]
    fn is_on(&self, flags: u8) -> bool {
        self.slow_path_flags.load(Ordering::SeqCst) & flags != 0
    }

    fn note_unfinished_of(&self, framer: &Framer) {
        self.note_unfinished(if framer.is_mid_message() { framer.unfinished_bytes() } else { 0 });
    }

    #[inline]
    fn note_unfinished(&self, bytes: usize) {
        if self.unfinished_bytes.load(Ordering::Relaxed) != bytes {
            self.unfinished_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// What the connection has been doing, for the reaper.
    pub(super) fn activity(&self) -> Activity {
        Activity {
            served: self.served.load(Ordering::Relaxed),
            // The server may call this client, which may have no other connection.
            is_busy: self.progress.carried() > 0 || self.is_stalled() || self.calls.get().is_some(),
            // The server itself does not read while replies wait for the client.
            unfinished_bytes: match self.is_stalled() || self.is_on(SlowPathFlags::CLOGGED) {
                true => 0,
                false => self.unfinished_bytes.load(Ordering::Relaxed),
            },
        }
    }

    /// Ends the connection at once. The receiving thread finds the end.
    pub(super) fn cut_off(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Records and counts a plain request that the thread has taken.
    #[inline(always)] // a step of every call
    fn begin_plain(&self, framer: &Framer) {
        self.coalescing.note(framer.holds_bytes(), || framer.has_message());
        self.progress.begin();
    }

    /// Takes and counts what has arrived; false when more bytes are needed.
    #[inline]
    fn next_arrived(
        &self,
        framer: &mut Framer,
        current_request: &mut CurrentRequest,
    ) -> Result<bool, NoWork> {
        if self.has_slow_path_flag() {
            return self.next_on_slow_path(framer).map(|work| current_request.take(work));
        }
        if current_request.take_plain_request(framer) {
            self.begin_plain(framer);
            return Ok(true);
        }
        self.next_of_any_kind(framer, current_request).map(|work| current_request.take(work))
    }

    #[inline(never)]
    fn next_of_any_kind(
        &self,
        framer: &mut Framer,
        current_request: &mut CurrentRequest,
    ) -> Result<Option<Work>, NoWork> {
        current_request.give_to(framer);
        match Work::next_or_reply(framer, |message| self.take_reply(message)) {
            Ok(work) => {
                self.coalescing.note(framer.holds_bytes(), || framer.has_message());
                work.iter().for_each(|_| self.progress.begin());
                Ok(work)
            }
            Err(other) => Err(self.deal_with(other)),
        }
    }

    #[cold]
    fn deal_with(&self, other: Other) -> NoWork {
        match other {
            Other::Cancelled(id) => {
                self.take_cancellation(id);
                NoWork::Again
            }
            Other::Stop(Stop::CloseConnection) => NoWork::End,
            Other::Stop(Stop::ProtocolError) => {
                self.with(ServerConnection::protocol_error);
                self.take_no_more();
                NoWork::End
            }
        }
    }

    /// True when requests wait that no thread looks at, and one more may be carried out.
    pub(super) fn is_waiting_for_a_thread(&self) -> bool {
        if self.is_on(SlowPathFlags::CLOGGED) || self.is_stalled() {
            return false; // its reply would only wait behind earlier ones
        }
        if let Some(inbox) = self.inbox.get() {
            return inbox.is_waiting();
        }
        match self.receiver.try_lock() {
            Ok(framer) => framer.has_message() || transport::is_readable(&self.stream),
            Err(_) => false,
        }
    }

    /// Takes note of the service contexts of a client's first requests, before another thread may serve the
    /// next request: they hold for that one as well.
    pub(super) fn take_note(&self, current_request: &CurrentRequest) {
        if self.served.load(Ordering::Relaxed) < INTRODUCTIONS_MAX {
            current_request.work.take_note(&self.orb, &self.session, &PendingReply::of(self));
        }
    }

    /// Carries out a request that the thread has taken. True when the connection has ended meanwhile and this
    /// was its last request: the caller closes it.
    #[inline]
    #[must_use]
    pub(super) fn carry_out(&self, current_request: &mut CurrentRequest) -> bool {
        let work = &mut current_request.work;
        self.before_upcall();
        let request = PendingReply::of(self);
        // sync: carried-before-close. Either this thread sees that the connection is stopping and leaves the
        // request to be sent again, or the thread that stops the connection sees the request.
        if !self.is_on(SlowPathFlags::STOPPING | SlowPathFlags::COUNTED) {
            work.carry_out(&self.orb, &self.session, &request);
        } else if !self.is_on(SlowPathFlags::STOPPING) {
            work.carry_out_within_limits(&self.orb, &self.session, &request);
        }
        self.served.fetch_add(1, Ordering::Relaxed);
        self.after_upcall();
        self.progress.end(request.is_settled()) && self.ending.load(Ordering::SeqCst)
    }

    /// Records that nothing more will be received. True when no request is in progress: the caller closes.
    #[must_use]
    fn end(&self) -> bool {
        if let Some(link) = self.calls.get() {
            link.peer_ended(); // servants may be waiting
        }
        self.ending.store(true, Ordering::SeqCst);
        self.progress.carried() == 0
    }

    /// Takes no more requests after an error of the protocol. The thread that ends the last request in progress
    /// closes, or the one that finds this end.
    fn take_no_more(&self) {
        if let Some(link) = self.calls.get() {
            link.peer_ended(); // servants may be waiting
        }
        self.slow_path_flags.fetch_or(SlowPathFlags::STOPPING, Ordering::SeqCst);
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Takes no more requests. Those in progress are answered, and the thread that answers the last one
    /// closes.
    ///
    /// The receiving side is not shut down on its own: a client over a Unix socket would see that before the
    /// CloseConnection message.
    pub(super) fn stop_receiving(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::STOPPING, Ordering::SeqCst);
        // sync: ending-or-stalled. Either this thread sees that nothing is left to send, or the writer thread
        // sees that the connection ends.
        if self.end() && !self.is_stalled() {
            self.close(true); // the receiving thread sees it as the end
        }
    }

    /// Nothing more will be received, and no request is in progress.
    pub(super) fn is_done(&self) -> bool {
        // sync: ending-or-stalled
        self.ending.load(Ordering::SeqCst) && self.progress.carried() == 0
    }

    /// Sends CloseConnection and closes. While requests in progress lack their replies, the connection closes
    /// without that message: it would promise that an unanswered request was not carried out (CORBA 3.3 part
    /// 2, 9.4.7), and the client would send the request again.
    pub(super) fn close_now(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::STOPPING, Ordering::SeqCst);
        self.close(false);
    }

    /// Sends CloseConnection if no request lacks its reply, and closes. With `only_if_answered` it does
    /// nothing if a request has come meanwhile: the thread that takes that request leaves it and closes
    /// afterwards.
    fn close(&self, only_if_answered: bool) {
        let version = self.orb.config.giop_version;
        {
            let mut sender = lock(&self.sender);
            // sync: carried-before-close
            if self.progress.unanswered() == 0 {
                sender.close(version);
            } else if only_if_answered {
                return;
            }
            self.send_what_goes(&mut sender);
            sender.handle_end();
            self.unread.set(0);
        }
        if let Some(link) = self.calls.get() {
            link.peer_ended();
        }
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

/// How long a thread keeps the buffer of a large message while it waits for the next one. Clients that send
/// large messages one by one send faster.
const LARGE_FOLLOWS_WITHIN: Duration = Duration::from_millis(20);

/// The number of requests after which a client is expected to have sent every service context that concerns
/// its whole connection. A later one still counts, when its request is served.
const INTRODUCTIONS_MAX: u64 = 8;

/// The most reads of 4 KiB after CloseConnection, so that a peer that never stops sending does not keep the
/// thread.
const DRAIN_READS_MAX: usize = 256;

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).finish_non_exhaustive()
    }
}
