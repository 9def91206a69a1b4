//! One accepted connection: what the threads that serve it share.
//!
//! What a thread does for it is in `current_request`, how its bytes leave in `sending`, where replies go in `answers`, who is told
//! that the client no longer waits in `cancelled`, and what it has on top when the client is called over it in `bidirectional`.

mod answers;
mod bidirectional;
mod cancelled;
mod coalescing;
mod current_request;
mod progress;
mod sending;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;

use crate::adapter::Session;
use crate::cancellations::Cancellations;
use crate::client::Link;
use crate::net::{self, Moved, Shutdown, Stream};
use crate::orb::OrbCore;
use crate::sync::lock;
use crate::waiting::Waits;

use super::Shared;
use super::connection_reaper::Activity;
use super::unread::{UnreadPart, UnreadReplies};
use super::work::{Other, Stop, Work};
use answers::PendingReply;
use bidirectional::Inbox;
pub(super) use bidirectional::Received;
use coalescing::Coalescing;
pub(super) use current_request::CurrentRequest;
use progress::RequestCounter;

/// One accepted connection. Receiving and sending have a lock each, so that a reply can be written while
/// another thread waits for requests.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) stream: Stream,
    orb: Arc<OrbCore>,
    /// For answers that come after the upcall.
    itself: Weak<Connection>,
    server: Weak<Shared>,
    receiver: Mutex<Framer>,
    /// Of whoever has the receiving part.
    waits: Waits,
    sender: Mutex<ServerConnection>,
    session: Session,
    /// Why threads must not simply receive, serve and answer: [`SlowPathFlags`]s, mostly none. One look tells a call that
    /// nothing is the matter.
    slow_path_flags: AtomicU8,
    /// Messages carried out; stands still while a servant blocks.
    pub(super) served: AtomicU64,
    /// Threads that serve it now beside its own.
    pub(super) helpers: AtomicUsize,
    /// A thread of the hybrid is to go on with it, beside the thread that keeps to it.
    pub(super) wants_help: AtomicBool,
    /// Requests that have been taken and are not done, and those among them that have not been answered. They are counted
    /// under the lock of the place where they are taken from.
    progress: RequestCounter,
    coalescing: Coalescing,
    /// No more requests will come; whoever finishes the last one closes.
    ending: AtomicBool,
    /// What a thread of a pool does with a peer that takes no more bytes; `None` where threads wait themselves.
    on_stall: Option<OnStall>,
    /// A thread of its own waits for the peer to take bytes. Changes only under the lock of `sender`.
    stalled: AtomicBool,
    /// Bytes of replies that the peer does not read.
    pub(super) unread: UnreadPart,
    /// Bytes that have come of messages that are not complete, as whoever received saw it last.
    unfinished_bytes: AtomicUsize,
    /// When a look was last taken whether the client is there, in [`CoarseInstant`](crate::coarse_instant::CoarseInstant) time.
    client_seen: AtomicU64,
    /// Requests that the client no longer waits for.
    cancellations: Cancellations,
    /// Our calls to the client, where it says that it can be called.
    calls: OnceLock<Arc<Link>>,
    /// Requests that another thread has received, once we have called the client.
    inbox: OnceLock<Inbox>,
    /// Addresses at which the client says it listens.
    listen_points: AtomicUsize,
}

/// Starts a thread that calls [`Connection::flush_stalled`]; false when there is none to be had.
pub(super) type OnStall = Box<dyn Fn() -> bool + Send + Sync>;

/// What a look for work gave.
#[derive(Debug)]
pub(super) enum WorkLookup {
    /// Something to carry out is in hand; `more` says that another whole message has arrived already.
    Work { more: bool },
    /// More bytes are needed.
    Nothing,
    /// The connection is over.
    End,
}

/// Why a wait for work gave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    /// None has come for as long as was to be waited.
    Yet,
    /// The connection is over.
    Ever,
}

/// Why there is no work to be had in the ordinary way.
enum NoWork {
    /// The connection is over.
    End,
    /// There is a [`SlowPathFlags`].
    SlowPath,
    /// Something else has come and been dealt with; there may be more.
    Again,
}

/// What keeps threads from the straight way, as bits of `Connection::slow_path_flags`.
struct SlowPathFlags;

impl SlowPathFlags {
    /// No more requests are let in.
    const STOPPING: u8 = 1;
    /// Another thread receives, and leaves requests in the inbox. Never ends.
    const BIDIRECTIONAL: u8 = 2;
    /// The peer takes no bytes, and more than `transmit_bytes_max` of them wait. Changes only under the lock of
    /// `sender`; only where threads wait themselves.
    const CLOGGED: u8 = 4;
    /// The client has cancelled a request that is in progress, and nobody has asked yet. The straight way goes on, and is
    /// watched. Changes only under the lock of `receiver`.
    const CANCELLED: u8 = 8;
    /// Only so many requests may be in flight. Never changes, and does not concern receiving.
    const COUNTED: u8 = 16;
    /// The client has closed the connection: requests that it would wait for are not carried out any more. Never ends.
    const CLIENT_GONE: u8 = 32;
    /// All that concern receiving.
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
        on_stall: Option<OnStall>,
    ) -> Self {
        let orb = server.orb.clone();
        let sender = ServerConnection::sending(orb.config.connection);
        let receiver = Framer::sharing(orb.config.connection.framer, orb.receive_memory.clone());
        let slow_path_flags = if orb.requests.is_some() { SlowPathFlags::COUNTED } else { 0 };
        let waiting = orb.config.waiting_on(&stream, orb.config.server_waiting);
        let waits = Waits::new(waiting, orb.connector.spinners());
        Connection {
            id,
            stream,
            orb,
            itself,
            server: Arc::downgrade(server),
            receiver: Mutex::new(receiver),
            waits,
            sender: Mutex::new(sender),
            session: Session::new(&server.orb),
            slow_path_flags: AtomicU8::new(slow_path_flags),
            served: AtomicU64::new(0),
            helpers: AtomicUsize::new(0),
            wants_help: AtomicBool::new(false),
            progress: RequestCounter::default(),
            coalescing: Coalescing::default(),
            ending: AtomicBool::new(false),
            on_stall,
            stalled: AtomicBool::new(false),
            unread: UnreadPart::default(),
            unfinished_bytes: AtomicUsize::new(0),
            client_seen: AtomicU64::new(0),
            cancellations: Cancellations::default(),
            calls: OnceLock::new(),
            inbox: OnceLock::new(),
            listen_points: AtomicUsize::new(0),
        }
    }

    /// A thread receives from it, and from nothing else, for as long as it lasts.
    pub(super) fn has_own_thread(&self) -> bool {
        self.on_stall.is_none()
    }

    /// Waits for the next thing to do, for ever or about as long as `patience` says, which is to be the socket's timeout.
    /// Takes the buffer of the last one back.
    #[inline]
    pub(super) fn wait_for_work(
        &self,
        current_request: &mut CurrentRequest,
        patience: Option<Duration>,
    ) -> Result<(), Nothing> {
        let mut framer = lock(&self.receiver);
        current_request.give_large_to(&mut framer);
        // Mostly nothing has come yet, and what comes then is a whole request.
        if framer.is_at_rest() && !self.has_slow_path_flag() {
            self.send_what_is_held();
            match self.waits.receive(&self.stream, framer.space(), patience, || {}) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) if patience.is_some() => return Err(Nothing::Yet),
                Ok(Moved::Nothing) => {}
                Ok(Moved::End) | Err(_) => return Err(Nothing::Ever),
            }
            if !self.has_slow_path_flag() && current_request.take_plain_request(&mut framer) {
                self.begin_plain(&framer);
                return Ok(());
            }
        }
        self.wait_for_any_work(framer, current_request, patience)
    }

    #[inline(never)]
    fn wait_for_any_work<'c>(
        &'c self,
        mut framer: MutexGuard<'c, Framer>,
        current_request: &mut CurrentRequest,
        patience: Option<Duration>,
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
                    match self.wait_elsewhere(current_request, patience) {
                        Some(found) => return found,
                        None => framer = lock(&self.receiver),
                    }
                    continue;
                }
            }
            self.note_unfinished_of(&framer);
            if patience.is_none() && !framer.is_mid_message() && framer.holds_spare_memory() {
                self.release_if_idle(&mut framer);
            }
            self.send_what_is_held();
            match self.waits.receive(&self.stream, framer.space(), patience, || {}) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) if patience.is_some() => return Err(Nothing::Yet),
                Ok(Moved::Nothing) => {}
                Ok(Moved::End) | Err(_) => return Err(Nothing::Ever),
            }
        }
    }

    /// The same where there is a [`SlowPathFlags`]; `None` when there is none any more.
    #[cold]
    fn wait_elsewhere(
        &self,
        current_request: &mut CurrentRequest,
        patience: Option<Duration>,
    ) -> Option<Result<(), Nothing>> {
        if self.is_on(SlowPathFlags::STOPPING) {
            return Some(Err(Nothing::Ever));
        }
        self.send_what_is_held();
        if let Some(inbox) = self.inbox.get() {
            return Some(match patience {
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

    /// Brings the thread's buffer to a connection that has been at rest.
    pub(super) fn wake(&self, current_request: &mut CurrentRequest) {
        current_request.give_to(&mut lock(&self.receiver));
    }

    /// Gives up the buffers, if nothing is in them; the thread keeps one. True when something has been received that
    /// somebody is still to look at: it shows in no socket.
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

    /// The same for whoever has seen that nothing has come for a while. A thread that waits for bytes keeps the buffer that
    /// they go to.
    pub(super) fn release_buffers_if_idle(&self) {
        if let Ok(mut framer) = self.receiver.try_lock() {
            framer.rest();
        }
        if let Ok(mut sender) = self.sender.try_lock() {
            sender.rest();
        }
    }

    /// Gives a large buffer back, for a thread that goes on with other connections: nobody knows for how long it would keep
    /// it.
    #[inline]
    pub(super) fn take_large_back(&self, current_request: &mut CurrentRequest) {
        if current_request.holds_large()
            && let Some(large) = current_request.take_buffer()
            && let Ok(mut framer) = self.receiver.try_lock()
        {
            framer.recycle(large);
        }
    }

    /// Gives back memory for large messages where none follows soon.
    #[cold]
    fn release_if_idle(&self, framer: &mut Framer) {
        if !net::wait_readable(&self.stream, LARGE_FOLLOWS_WITHIN).unwrap_or(true) {
            framer.release();
        }
    }

    /// The same, for whoever has seen that nothing has been asked for a while. A thread that waits sees to it itself.
    pub(super) fn release_spare_memory(&self) {
        if let Ok(mut framer) = self.receiver.try_lock()
            && framer.holds_spare_memory()
        {
            framer.release();
        }
    }

    /// Looks for the next thing to do without waiting for bytes. For drivers in which nobody waits for bytes with
    /// the receiving part.
    pub(super) fn look_for_work(&self, current_request: &mut CurrentRequest) -> WorkLookup {
        self.look(&mut lock(&self.receiver), current_request)
    }

    /// The same beside a thread that may be waiting for bytes: then there is nothing to do.
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
                        drop(framer.take_idle_buffer()); // a connection at rest has none
                    }
                    return WorkLookup::Work { more };
                }
                Ok(false) => {}
                Err(NoWork::Again) => continue,
                Err(NoWork::End) => return WorkLookup::End,
                Err(NoWork::SlowPath) => return self.look_elsewhere(current_request),
            }
            self.send_what_is_held();
            match net::receive_now(&self.stream, framer.space()) {
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

    /// Whether there is anything that keeps from receiving in the straight way.
    #[inline]
    fn has_slow_path_flag(&self) -> bool {
        self.slow_path_flags.load(Ordering::Relaxed) & SlowPathFlags::OF_RECEIVING != 0
    }

    #[inline]
    fn is_on(&self, detour: u8) -> bool {
        self.slow_path_flags.load(Ordering::SeqCst) & detour != 0
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

    /// How it stands, for the watchdog.
    pub(super) fn activity(&self) -> Activity {
        Activity {
            served: self.served.load(Ordering::Relaxed),
            // A client that may be called may have no other connection.
            is_busy: self.progress.carried() > 0 || self.is_stalled() || self.calls.get().is_some(),
            unfinished_bytes: self.unfinished_bytes.load(Ordering::Relaxed),
        }
    }

    /// Ends it at once: whoever receives finds the end.
    pub(super) fn cut_off(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Notes and counts a plain request that has been taken.
    #[inline(always)] // a step of every call
    fn begin_plain(&self, framer: &Framer) {
        self.coalescing.note(framer.holds_bytes(), || framer.has_message());
        self.progress.begin();
    }

    /// Takes what has arrived, counted; false when more bytes are needed.
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
                NoWork::End
            }
        }
    }

    /// True when there are requests that nobody looks at, and one more may be carried out.
    pub(super) fn is_waiting_for_a_thread(&self) -> bool {
        if self.is_on(SlowPathFlags::CLOGGED) {
            return false; // its reply would only wait behind the others
        }
        if let Some(inbox) = self.inbox.get() {
            return inbox.is_waiting();
        }
        match self.receiver.try_lock() {
            Ok(framer) => framer.has_message() || net::is_readable(&self.stream),
            Err(_) => false,
        }
    }

    /// Takes note of what a client tells of itself with its first requests, before another thread may serve the next:
    /// it holds for that one as well.
    pub(super) fn take_note(&self, current_request: &CurrentRequest) {
        if self.served.load(Ordering::Relaxed) < INTRODUCTIONS_MAX {
            current_request.work.take_note(&self.orb, &self.session, &PendingReply::of(self));
        }
    }

    /// Carries out a request that has been taken. True when the connection has ended meanwhile and this was the last one: the
    /// caller closes it.
    #[inline]
    #[must_use]
    pub(super) fn carry_out(&self, current_request: &mut CurrentRequest) -> bool {
        let work = &mut current_request.work;
        self.before_upcall();
        let request = PendingReply::of(self);
        // sync: carried-before-goodbye. Either this sees that the connection is stopping and leaves the request
        // to be sent again, or whoever stops it sees the request.
        if !self.is_on(SlowPathFlags::STOPPING | SlowPathFlags::COUNTED) {
            work.carry_out(&self.orb, &self.session, &request);
        } else if !self.is_on(SlowPathFlags::STOPPING) {
            work.carry_out_within_limits(&self.orb, &self.session, &request);
        }
        self.served.fetch_add(1, Ordering::Relaxed);
        self.after_upcall();
        self.progress.end(request.is_settled()) && self.ending.load(Ordering::SeqCst)
    }

    /// Nothing more will be received. True when nothing is being carried out: the caller closes.
    #[must_use]
    fn end(&self) -> bool {
        if let Some(link) = self.calls.get() {
            link.peer_ended(); // servants may be waiting
        }
        self.ending.store(true, Ordering::SeqCst);
        self.progress.carried() == 0
    }

    /// Lets no more requests in. Those being carried out are answered; who answers the last one closes.
    ///
    /// The receiving side is not shut for itself: a client over a Unix domain socket would see that before the goodbye.
    pub(super) fn stop_receiving(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::STOPPING, Ordering::SeqCst);
        // In a pool, the thread that waits for the peer to take its replies brings the connection back.
        let is_brought_back = self.on_stall.is_some() && self.is_stalled();
        if self.end() && !is_brought_back {
            self.close(true); // which whoever receives sees as the end
        }
    }

    /// Says goodbye and closes. While requests that are being carried out lack their replies there is no goodbye: it
    /// would promise that what is not answered was not carried out (CORBA 3.3 part 2, 9.4.7), and the client would
    /// ask again.
    pub(super) fn close_now(&self) {
        self.slow_path_flags.fetch_or(SlowPathFlags::STOPPING, Ordering::SeqCst);
        self.close(false);
    }

    /// The same, or nothing if a request has come that whoever carries it out will leave and close after.
    fn close(&self, only_if_answered: bool) {
        let version = self.orb.config.giop_version;
        {
            let mut sender = lock(&self.sender);
            // sync: carried-before-goodbye
            if self.progress.unanswered() == 0 {
                sender.close(version);
            } else if only_if_answered {
                return;
            }
            self.send_what_goes(&mut sender);
            sender.handle_end();
        }
        if let Some(link) = self.calls.get() {
            link.peer_ended();
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        self.drain();
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Ends it for the replies that its client does not read. They count no longer, though the thread that waits for the
    /// client gives their memory back only when it sees the end.
    pub(super) fn cut_off_reader(&self, account: &UnreadReplies) {
        self.unread.set(0, account);
        self.cut_off();
    }

    /// Takes what has come and will not be served: closing over it would reset the connection, and the reset could
    /// overtake the goodbye.
    fn drain(&self) {
        let mut scrap = [0; 4096];
        for _ in 0..DRAIN_READS_MAX {
            if !matches!(net::receive_now(&self.stream, &mut scrap), Ok(Moved::Bytes(_))) {
                return;
            }
        }
    }
}

/// How long a large message is waited for with the buffer of the last one. Clients that send them one by one are faster.
const LARGE_FOLLOWS_WITHIN: Duration = Duration::from_millis(20);

/// Requests served after which a client is expected to have told everything that concerns its whole connection. What it
/// tells later is heard all the same, when that request is served.
const INTRODUCTIONS_MAX: u64 = 8;

/// Reads of 4 KiB after a goodbye, so that a peer that never stops sending is not listened to for ever.
const DRAIN_READS_MAX: usize = 256;

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).finish_non_exhaustive()
    }
}
