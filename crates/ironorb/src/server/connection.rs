//! One accepted connection: what the threads that serve it share.

use std::cell::Cell;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Instant;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;
use ironorb_giop::message::Message;
use ironorb_giop::service_context::ListenPoint;

use crate::adapter::{ReplySink, Session};
use crate::client::{Acceptor, Link};
use crate::net::{self, Moved};
use crate::orb::OrbCore;
use crate::sync::lock;

use super::watchdog::Activity;
use super::work::{Stop, Work};
use super::{Shared, spawn, thread_per_connection};

/// One accepted connection. Receiving and sending have a lock each, so that a reply can be written while
/// another thread waits for requests.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) stream: TcpStream,
    orb: Arc<OrbCore>,
    /// For answers that come after the upcall.
    itself: Weak<Connection>,
    server: Weak<Shared>,
    receiver: Mutex<Framer>,
    sender: Mutex<ServerConnection>,
    session: Session,
    stopping: AtomicBool,
    /// Messages carried out; stands still while a servant blocks.
    pub(super) served: AtomicU64,
    /// Threads that receive and serve until it ends.
    pub(super) threads: AtomicUsize,
    /// Threads beyond those that serve it now.
    pub(super) helpers: AtomicUsize,
    /// Requests being carried out.
    carried: AtomicUsize,
    /// Those among them whose replies have not been written. Falls only under the lock of `sender` or after the
    /// servant is done.
    unanswered: AtomicUsize,
    /// No more requests will come; whoever finishes the last one closes.
    ending: AtomicBool,
    /// What a thread of a pool does with a peer that takes no more bytes; `None` where threads wait themselves.
    on_stall: Option<OnStall>,
    /// A thread of its own waits for the peer to take bytes. Changes only under the lock of `sender`.
    stalled: AtomicBool,
    /// Bytes that have come of messages that are not complete, as whoever received saw it last.
    unfinished_bytes: AtomicUsize,
    /// Our calls to the client, where the connection is used both ways.
    calls: OnceLock<Arc<Link>>,
    /// Addresses at which the client says it listens.
    listen_points: AtomicUsize,
}

/// Starts a thread that calls [`Connection::flush_stalled`]; false when there is none to be had.
pub(super) type OnStall = Box<dyn Fn() -> bool + Send + Sync>;

/// What a look for work gave.
#[derive(Debug)]
pub(super) enum Found {
    /// Something to carry out; `more` says that another whole message has arrived already.
    Work { work: Work, more: bool },
    /// More bytes are needed.
    Nothing,
    /// The connection is over.
    End,
}

/// What to do when the peer takes no more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stalled {
    Wait,
    LeaveIfPossible,
}

/// The buffer of the message that a thread carried out last, to be used again when it next has a receiving part:
/// it must not wait for that only to give a buffer back.
#[derive(Debug, Default)]
pub(super) struct Spare(Option<Vec<u8>>);

impl Spare {
    #[inline]
    fn give_to(&mut self, framer: &mut Framer) {
        if let Some(buffer) = self.0.take() {
            framer.recycle(buffer);
        }
    }
}

impl Connection {
    pub(super) fn new(
        id: u64,
        stream: TcpStream,
        server: &Arc<Shared>,
        itself: Weak<Connection>,
        on_stall: Option<OnStall>,
    ) -> Self {
        let orb = server.orb.clone();
        let (sender, receiver) = ServerConnection::new(orb.config.connection);
        Connection {
            id,
            stream,
            orb,
            itself,
            server: Arc::downgrade(server),
            receiver: Mutex::new(receiver),
            sender: Mutex::new(sender),
            session: Session::default(),
            stopping: AtomicBool::new(false),
            served: AtomicU64::new(0),
            threads: AtomicUsize::new(0),
            helpers: AtomicUsize::new(0),
            carried: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            on_stall,
            stalled: AtomicBool::new(false),
            unfinished_bytes: AtomicUsize::new(0),
            calls: OnceLock::new(),
            listen_points: AtomicUsize::new(0),
        }
    }

    /// Waits for the next thing to do; `None` at the end. Takes the buffer of the last one back.
    #[inline]
    pub(super) fn wait_for_work(&self, spare: &mut Spare) -> Option<Work> {
        let mut framer = lock(&self.receiver);
        spare.give_to(&mut framer);
        let mut is_unfinished = false;
        loop {
            if let Some(work) = self.next_arrived(&mut framer)? {
                if is_unfinished {
                    self.unfinished_bytes.store(0, Ordering::Relaxed);
                }
                return Some(work);
            }
            if framer.is_mid_message() {
                is_unfinished = true;
                self.unfinished_bytes.store(framer.held_bytes(), Ordering::Relaxed);
            }
            match net::receive(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) => {}
                Ok(Moved::End) | Err(_) => return None,
            }
        }
    }

    /// Looks for the next thing to do without waiting for bytes. For drivers in which nobody waits for bytes with
    /// the receiving part.
    pub(super) fn look_for_work(&self, spare: &mut Spare) -> Found {
        self.look(&mut lock(&self.receiver), spare)
    }

    /// The same beside a thread that may be waiting for bytes: then there is nothing to do.
    pub(super) fn try_look_for_work(&self, spare: &mut Spare) -> Found {
        match self.receiver.try_lock() {
            Ok(mut framer) => self.look(&mut framer, spare),
            Err(_) => Found::Nothing,
        }
    }

    fn look(&self, framer: &mut Framer, spare: &mut Spare) -> Found {
        spare.give_to(framer);
        loop {
            match self.next_arrived(framer) {
                None => return Found::End,
                Some(Some(work)) => {
                    self.note_unfinished(0);
                    return Found::Work { work, more: framer.has_message() };
                }
                Some(None) => {}
            }
            match net::receive_now(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) => {
                    self.note_unfinished(if framer.is_mid_message() { framer.held_bytes() } else { 0 });
                    return Found::Nothing;
                }
                Ok(Moved::End) | Err(_) => return Found::End,
            }
        }
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
            is_busy: self.carried.load(Ordering::SeqCst) > 0
                || self.is_stalled()
                || self.calls.get().is_some(),
            unfinished_bytes: self.unfinished_bytes.load(Ordering::Relaxed),
        }
    }

    /// Ends it at once: whoever receives finds the end.
    pub(super) fn cut_off(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// What has arrived: `Some(None)` when more bytes are needed, `None` at the end.
    #[inline(always)] // a step of every call
    fn next_arrived(&self, framer: &mut Framer) -> Option<Option<Work>> {
        if self.stopping.load(Ordering::Relaxed) {
            return None;
        }
        match Work::next_or_reply(framer, |message| self.take_reply(message)) {
            Ok(work) => Some(work),
            Err(Stop::Goodbye) => None,
            Err(Stop::ProtocolError) => {
                self.with(ServerConnection::protocol_error);
                None
            }
        }
    }

    /// True when nobody is receiving and bytes have come.
    pub(super) fn is_waiting_for_a_thread(&self) -> bool {
        match self.receiver.try_lock() {
            Ok(framer) => framer.has_message() || net::is_readable(&self.stream),
            Err(_) => false,
        }
    }

    /// Carries out a request and keeps its buffer. True when the connection has ended meanwhile and this was the last
    /// one: the caller closes it.
    #[inline]
    #[must_use]
    pub(super) fn carry_out(&self, work: Work, spare: &mut Spare) -> bool {
        self.carried.fetch_add(1, Ordering::SeqCst);
        self.unanswered.fetch_add(1, Ordering::SeqCst);
        let request = Unanswered { connection: self, answered: Cell::new(false) };
        // sync: carried-before-goodbye. Either this sees that the connection is stopping and leaves the request
        // to be sent again, or whoever stops it sees the request.
        let message = if self.stopping.load(Ordering::SeqCst) {
            work.into_message()
        } else {
            work.carry_out(&self.orb, &self.session, &request)
        };
        self.served.fetch_add(1, Ordering::Relaxed);
        spare.0 = Some(message.into_buffer());
        request.settle();
        self.carried.fetch_sub(1, Ordering::SeqCst) == 1 && self.ending.load(Ordering::SeqCst)
    }

    /// An answer of the client to one of our calls.
    #[cold]
    fn take_reply(&self, message: Message) -> Result<(), Stop> {
        match self.calls.get() {
            Some(link) if link.take_reply(message) => Ok(()),
            _ => Err(Stop::ProtocolError),
        }
    }

    /// Calls the client over this connection from now on.
    #[cold]
    fn use_both_ways(&self, points: &[ListenPoint]) {
        let room =
            LISTEN_POINTS_MAX.saturating_sub(self.listen_points.fetch_add(points.len(), Ordering::SeqCst));
        let Some(itself) = self.itself.upgrade() else { return };
        if self.calls.get().is_none() {
            let Ok(stream) = self.stream.try_clone() else { return };
            let acceptor: Weak<dyn Acceptor> = Arc::downgrade(&(itself.clone() as Arc<dyn Acceptor>));
            let link = self.orb.connector.accepted(stream, acceptor);
            let _ = self.calls.set(link);
        }
        if let Some(link) = self.calls.get() {
            self.orb.connector.use_accepted(&points[..points.len().min(room)], link);
        }
    }

    /// A call to the client is about to wait for its answer. If all the connection's threads are in servants, of which
    /// the caller is one, nobody would receive it.
    fn see_that_somebody_receives(&self) {
        let threads = self.threads.load(Ordering::SeqCst);
        if self.carried.load(Ordering::SeqCst) >= threads
            && threads < self.orb.config.threads_per_connection_max
            && let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade())
            && server.pool.is_none()
        {
            // If the system has no thread, the watcher finds another way, later.
            let _ = thread_per_connection::start(&server, &itself);
        }
    }

    /// Nothing more will be received. True when nothing is being carried out: the caller closes.
    #[must_use]
    pub(super) fn end(&self) -> bool {
        if let Some(link) = self.calls.get() {
            link.peer_ended(); // servants may be waiting
        }
        self.ending.store(true, Ordering::SeqCst);
        self.carried.load(Ordering::SeqCst) == 0
    }

    /// Lets no more requests in. Those being carried out are answered.
    pub(super) fn stop_receiving(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = self.stream.shutdown(Shutdown::Read);
    }

    /// Says goodbye and closes. While requests that are being carried out lack their replies there is no goodbye: it
    /// would promise that what is not answered was not carried out (CORBA 3.3 part 2, 9.4.7), and the client would
    /// ask again.
    pub(super) fn close_now(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        let version = self.orb.config.giop_version;
        {
            let mut sender = lock(&self.sender);
            // sync: carried-before-goodbye
            if self.unanswered.load(Ordering::SeqCst) == 0 {
                sender.close(version);
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

    /// True while a thread of its own waits for the peer; requests are not to be received meanwhile, or their
    /// replies would pile up.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::SeqCst)
    }

    /// Sends everything that waits, for a thread that may be kept waiting.
    pub(super) fn flush_stalled(&self) {
        let _sender = self.flush(lock(&self.sender), Stalled::Wait);
        self.stalled.store(false, Ordering::SeqCst);
    }

    /// Leaves the waiting for the peer to a thread of its own, if that is the way here.
    #[cold]
    fn leave_to_another(&self, _sender: &ServerConnection) -> bool {
        let Some(on_stall) = &self.on_stall else { return false };
        if self.stalled.swap(true, Ordering::SeqCst) {
            return true; // it sends ours as well
        }
        let started = on_stall();
        self.stalled.store(started, Ordering::SeqCst);
        started
    }

    /// Sends everything that waits, or what the peer takes now if the rest is left to another thread. Gives up when
    /// the peer takes nothing for the configured time.
    #[inline]
    fn flush<'c>(
        &'c self,
        mut sender: MutexGuard<'c, ServerConnection>,
        stalled: Stalled,
    ) -> MutexGuard<'c, ServerConnection> {
        let mut stuck_since = None;
        loop {
            let bytes = sender.transmit().poll_transmit();
            if bytes.is_empty() {
                return sender;
            }
            match net::send_now(&self.stream, bytes) {
                Ok(Moved::Bytes(count)) => {
                    sender.transmit().transmitted(count);
                    stuck_since = None;
                }
                Ok(Moved::Nothing | Moved::End) => {
                    if stalled == Stalled::LeaveIfPossible && self.leave_to_another(&sender) {
                        return sender;
                    }
                    drop(sender);
                    let since = *stuck_since.get_or_insert_with(Instant::now);
                    let left = self.orb.config.transmit_timeout.saturating_sub(since.elapsed());
                    let _ = net::wait_writable(&self.stream, Some(left));
                    sender = lock(&self.sender);
                    if left.is_zero() {
                        self.give_up(&mut sender);
                    }
                }
                Err(_) => self.give_up(&mut sender),
            }
        }
    }

    /// Sends until nothing waits or the socket takes no more.
    fn send_what_goes(&self, sender: &mut ServerConnection) {
        while sender.transmit().pending_bytes() > 0
            && let Ok(Moved::Bytes(count)) = net::send_now(&self.stream, sender.transmit().poll_transmit())
        {
            sender.transmit().transmitted(count);
        }
    }

    #[cold]
    fn give_up(&self, sender: &mut ServerConnection) {
        sender.handle_end();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Addresses of one client that are taken note of.
const LISTEN_POINTS_MAX: usize = 64;

/// Reads of 4 KiB after a goodbye, so that a peer that never stops sending is not listened to for ever.
const DRAIN_READS_MAX: usize = 256;

/// A request that is being carried out, as the place where its reply goes.
struct Unanswered<'c> {
    connection: &'c Connection,
    answered: Cell<bool>,
}

impl Unanswered<'_> {
    /// It need not keep the connection from an orderly end any longer.
    #[inline]
    fn settle(&self) {
        if !self.answered.replace(true) {
            self.connection.unanswered.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl ReplySink for Unanswered<'_> {
    #[inline]
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        self.connection.with(|sender| {
            write(sender);
            self.settle();
        });
    }

    fn use_both_ways(&self, listen_points: &[ListenPoint]) {
        self.connection.use_both_ways(listen_points);
    }

    #[cold]
    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let connection = self.connection.itself.upgrade()?;
        if connection.carried.load(Ordering::SeqCst) > connection.orb.config.connection.calls_in_flight_max {
            return None;
        }
        connection.carried.fetch_add(1, Ordering::SeqCst);
        // The count of what is unanswered goes over.
        let answered = self.answered.replace(true);
        Some(Box::new(AnswersLater { connection, answered: AtomicBool::new(answered) }))
    }
}

/// A request whose answer comes after its upcall.
struct AnswersLater {
    connection: Arc<Connection>,
    answered: AtomicBool,
}

impl AnswersLater {
    fn settle(&self) {
        if !self.answered.swap(true, Ordering::SeqCst) {
            self.connection.unanswered.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl ReplySink for AnswersLater {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        self.connection.with(|sender| {
            write(sender);
            self.settle();
        });
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        self.connection.carried.fetch_add(1, Ordering::SeqCst);
        let answered = AtomicBool::new(self.answered.swap(true, Ordering::SeqCst));
        Some(Box::new(AnswersLater { connection: self.connection.clone(), answered }))
    }
}

impl Drop for AnswersLater {
    fn drop(&mut self) {
        self.settle();
        let connection = &self.connection;
        // As in `Connection::carry_out`: whoever finishes the last request of a connection that has ended closes it.
        if connection.carried.fetch_sub(1, Ordering::SeqCst) == 1 && connection.ending.load(Ordering::SeqCst)
        {
            match connection.server.upgrade() {
                Some(server) => server.close(connection),
                None => connection.close_now(),
            }
        }
    }
}

impl Acceptor for Connection {
    fn send(&self, messages: Vec<u8>) {
        self.with(|sender| {
            if !sender.is_ended() {
                sender.transmit().buffer().extend_from_slice(&messages);
            }
        });
        self.see_that_somebody_receives();
    }

    fn send_soon(&self, messages: Vec<u8>) {
        let mut sender = lock(&self.sender);
        if sender.is_ended() {
            return;
        }
        sender.transmit().buffer().extend_from_slice(&messages);
        self.send_what_goes(&mut sender);
        if sender.transmit().pending_bytes() > 0
            && !self.leave_to_another(&sender)
            && !self.stalled.swap(true, Ordering::SeqCst)
        {
            let connection = self.itself.upgrade();
            let waits = move || connection.iter().for_each(|connection| connection.flush_stalled());
            if spawn("ironorb-stalled", waits).is_err() {
                self.give_up(&mut sender);
            }
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Connection {
    /// Writes to the peer and sends what has been written.
    #[inline]
    fn with(&self, write: impl FnOnce(&mut ServerConnection)) {
        let mut sender = lock(&self.sender);
        write(&mut sender);
        drop(self.flush(sender, Stalled::LeaveIfPossible));
    }
}
