//! What an accepted connection needs in addition when the server calls its client over it (CORBA 3.3 part 2,
//! 9.8).
//!
//! From the server's first call on, a thread receives on the connection that does nothing else (`receiving`).
//! All threads that serve the connection may be in servants that wait for the client, and still a thread must
//! take the client's replies and notice its end. Requests reach the serving threads through an inbox. A
//! connection whose client is never called has none of this.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use ironorb_giop::connection::{ConnectionConfig, ServerConnection};
use ironorb_giop::message::{Message, RequestId};
use ironorb_giop::service_context::ListenPoint;

use super::answers::RefusedAtOnce;
use super::{Connection, SlowPathFlags, WorkLookup};
use crate::base::sync::lock;
use crate::connection::{Backlog, CurrentRequest, Other, RequestCounter, Stop, Work};
use crate::driver::client::Acceptor;
use crate::driver::server::{Shared, blocked_servant_monitor};
use crate::transport::{self, Moved};

/// Requests that have arrived and that no thread has taken.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<Waiting>,
    /// Notified for the connection's own thread when a request or the end has come.
    come: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Work>,
    backlog: Backlog,
    /// Why nothing more comes; `None` while the connection lasts.
    over: Option<Over>,
    /// The connection's own thread waits.
    is_idle: bool,
    /// The pool has been notified and has not looked yet.
    is_announced: bool,
    /// No thread receives, because too many requests wait. Never true while a call of the server waits for
    /// its reply.
    is_paused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Gone,
    ProtocolError,
}

/// The state of a connection after everything that has come was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::driver::server) enum Received {
    /// More may come.
    All,
    /// Nothing more is received for now.
    Paused,
    /// Nothing more will come.
    Over,
}

impl Inbox {
    pub(super) fn is_waiting(&self) -> bool {
        !lock(&self.state).requests.is_empty()
    }

    /// A thread is about to look into the inbox, or has been notified to.
    pub(super) fn is_announced(&self) -> bool {
        lock(&self.state).is_announced
    }

    /// Removes a request that its client no longer waits for; false when it is not in the inbox.
    pub(super) fn forget(&self, id: RequestId) -> bool {
        lock(&self.state).forget(id)
    }
}

impl Waiting {
    /// Takes the next request. Also says whether receiving should resume because it has been taken.
    fn take(&mut self, config: &ConnectionConfig, progress: &RequestCounter) -> Option<(Work, bool)> {
        let work = self.requests.pop_front()?;
        progress.begin();
        let resumes = self.has_given(&work, config);
        Some((work, resumes))
    }

    /// Records that a request has been taken out. Returns whether receiving should resume.
    fn has_given(&mut self, work: &Work, config: &ConnectionConfig) -> bool {
        self.backlog.remove(work.bytes());
        let resumes = self.is_paused && self.backlog.is_half_empty(config);
        self.is_paused &= !resumes;
        resumes
    }

    /// Removes a request that its client no longer waits for; false when it is not in the inbox.
    fn forget(&mut self, id: RequestId) -> bool {
        let Waiting { requests, backlog, .. } = self;
        match requests.iter().position(|work| work.id() == Some(id) && work.wants_answer()) {
            Some(index) => {
                requests.remove(index).iter().for_each(|work| backlog.remove(work.bytes()));
                true
            }
            None => false,
        }
    }

    /// Takes out the first request that expects a reply, in order to refuse it. Also says whether receiving
    /// should resume.
    fn take_awaited(&mut self, config: &ConnectionConfig, progress: &RequestCounter) -> Option<(Work, bool)> {
        let is_awaited = |work: &Work| matches!(work, Work::Request(_)) && work.wants_answer();
        let work = self.requests.iter().position(is_awaited).and_then(|at| self.requests.remove(at))?;
        progress.begin();
        let resumes = self.has_given(&work, config);
        Some((work, resumes))
    }

    /// Drops all requests that expect a reply, because the client is gone. Their servants would call the
    /// client, and each would keep a thread until connecting to it fails.
    fn forget_twoways(&mut self) {
        let Waiting { requests, backlog, .. } = self;
        requests.retain(|work| {
            let stays = !work.wants_answer();
            if !stays {
                backlog.remove(work.bytes());
            }
            stays
        });
    }
}

impl Connection {
    /// Takes a client's reply to one of the server's calls.
    #[cold]
    pub(super) fn take_reply(&self, message: Message) -> Result<(), Stop> {
        match self.calls.get() {
            Some(link) if link.take_reply(message) => {
                self.replies_taken.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Stop::ProtocolError),
        }
    }

    /// Lets the server call the client over this connection from now on.
    #[cold]
    pub(super) fn use_bidirectional(&self, points: &[ListenPoint]) {
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

    /// Ensures that a thread receives, for a call to the client that is about to wait for its reply. False
    /// when no thread would receive it.
    fn ensure_receiving(&self) -> bool {
        let Some(inbox) = self.inbox.get() else { return self.begin_inbox() };
        // sync: paused-or-called. The call has been counted before. Either this thread sees that receiving
        // has paused, or the thread that pauses sees the call.
        !std::mem::take(&mut lock(&inbox.state).is_paused) || self.receive_elsewhere()
    }

    /// Hands receiving over to the bidirectional receiver for good.
    fn begin_inbox(&self) -> bool {
        if self.inbox.set(Inbox::default()).is_err() {
            return true; // another call has made it
        }
        self.slow_path_flags.fetch_or(SlowPathFlags::BIDIRECTIONAL, Ordering::SeqCst);
        // The thread that holds `receiver` now may not have seen the flag. This thread must not wait for that
        // one: the caller may be the very thread that it receives for.
        if self.receiver.try_lock().is_ok() {
            return self.receive_elsewhere();
        }
        let itself = self.itself.upgrade();
        let hands_over = move || {
            if let Some(connection) = itself {
                drop(lock(&connection.receiver));
                if !connection.receive_elsewhere() {
                    connection.fail();
                }
            }
        };
        // The limit of threads does not apply: without this thread the call would never get its reply.
        self.orb.server_threads.spawn_beyond("ironorb-handover", hands_over).is_ok()
    }

    /// Gives the connection to the bidirectional receiver. False when its thread cannot be started.
    fn receive_elsewhere(&self) -> bool {
        let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade()) else {
            return true;
        };
        if let Some(pool) = server.pool_of(&itself) {
            pool.forget(&itself);
        }
        server.receiving.add(itself).is_ok()
    }

    /// Ends the connection because no thread receives on it, so that no thread waits for a reply.
    #[cold]
    pub(in crate::driver::server) fn fail(&self) {
        self.cut_off();
        self.note_over(Over::Gone);
    }

    /// Receives everything that has come. Replies are delivered at once, requests go into the inbox. Never
    /// waits.
    pub(in crate::driver::server) fn receive_all(&self) -> Received {
        let Some(inbox) = self.inbox.get() else { return Received::Over };
        let mut framer = lock(&self.receiver);
        let over = loop {
            if self.is_on(SlowPathFlags::STOPPING) {
                break Over::Gone;
            }
            if self.has_paused(inbox) {
                return Received::Paused;
            }
            match Work::next_or_reply(&mut framer, |message| self.take_reply(message)) {
                Ok(Some(work)) => {
                    self.note_request(&work);
                    if !self.put(inbox, work) {
                        self.cut_off();
                        break Over::Gone;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(Other::Cancelled(id)) => {
                    self.take_cancellation(id);
                    continue;
                }
                Err(Other::Stop(Stop::CloseConnection)) => break Over::Gone,
                Err(Other::Stop(Stop::ProtocolError)) => break Over::ProtocolError,
            }
            match transport::receive_now(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => framer.received(count),
                Ok(Moved::Nothing) if self.stream.leave_to_epoll(true, false) => {}
                Ok(Moved::Nothing) => {
                    self.note_unfinished_of(&framer);
                    return Received::All;
                }
                Ok(Moved::End) | Err(_) => break Over::Gone,
            }
        };
        drop(framer);
        self.note_over(over);
        Received::Over
    }

    /// Pauses receiving when too many requests wait, unless a call of the server waits for its reply.
    fn has_paused(&self, inbox: &Inbox) -> bool {
        {
            let mut waiting = lock(&inbox.state);
            if !waiting.backlog.is_full(&self.orb.config.connection) {
                return false;
            }
            waiting.is_paused = true;
        }
        // sync: paused-or-called
        let is_called = self.calls.get().is_some_and(|link| link.is_called());
        // The pause holds, unless a call is waiting. Then either the calling thread or this one clears the
        // flag.
        !(is_called && std::mem::take(&mut lock(&inbox.state).is_paused))
    }

    /// Puts a request into the inbox. False when the inbox is full and receiving must not pause.
    fn put(&self, inbox: &Inbox, work: Work) -> bool {
        let (bytes, config) = (work.bytes(), &self.orb.config.connection);
        if !lock(&inbox.state).backlog.has_room(bytes, config)
            && self.calls.get().is_some_and(|link| link.is_called())
        {
            return false;
        }
        let (is_awaited, is_announced) = {
            let mut waiting = lock(&inbox.state);
            waiting.backlog.add(bytes);
            waiting.requests.push_back(work);
            (waiting.is_idle, std::mem::replace(&mut waiting.is_announced, true))
        };
        self.notify_server(inbox, is_awaited, is_announced);
        true
    }

    /// Has a serving thread look into the inbox.
    fn notify_server(&self, inbox: &Inbox, is_awaited: bool, is_announced: bool) {
        let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade()) else { return };
        match server.pool_of(&itself) {
            Some(pool) if !is_announced => pool.push_ready(&itself),
            Some(_) => {}
            None if is_awaited => inbox.come.notify_one(),
            None => {
                // A servant may wait for this very request. Then the request must not wait for the monitor.
                let threads = 1 + self.helpers.load(Ordering::SeqCst);
                if self.progress.carried() >= threads && self.calls.get().is_some_and(|link| link.is_called())
                {
                    blocked_servant_monitor::help(&server, &itself);
                }
            }
        }
    }

    /// Records that nothing more comes. The server's calls to the client end at once, the connection when its
    /// requests have been served.
    fn note_over(&self, over: Over) {
        let Some(inbox) = self.inbox.get() else { return };
        let (is_awaited, is_announced) = {
            let mut waiting = lock(&inbox.state);
            if *waiting.over.get_or_insert(over) == Over::Gone {
                waiting.forget_twoways();
            }
            (waiting.is_idle, std::mem::replace(&mut waiting.is_announced, true))
        };
        self.notify_cancelled(self.cancellations.end());
        self.note_unfinished(0);
        if let Some(link) = self.calls.get() {
            link.peer_ended();
        }
        self.notify_server(inbox, is_awaited, is_announced);
    }

    /// Waits for the next request, on the connection's own thread; `None` at the end.
    pub(super) fn wait_at(&self, inbox: &Inbox) -> Option<Work> {
        loop {
            if self.is_on(SlowPathFlags::CLOGGED) {
                self.wait_until_unclogged();
            }
            let mut waiting = lock(&inbox.state);
            if let Some((work, resumes)) = waiting.take(&self.orb.config.connection, &self.progress) {
                drop(waiting);
                self.resume(resumes);
                return Some(work);
            }
            if let Some(over) = waiting.over {
                drop(waiting);
                self.answer_protocol_error(over);
                return None;
            }
            waiting.is_idle = true;
            let mut waiting = inbox.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.is_idle = false;
        }
    }

    /// Looks for a request without waiting, on any thread.
    pub(super) fn look_into(&self, inbox: &Inbox, current_request: &mut CurrentRequest) -> WorkLookup {
        if self.is_on(SlowPathFlags::CLOGGED) {
            return WorkLookup::Nothing;
        }
        let mut waiting = lock(&inbox.state);
        if let Some((work, resumes)) = waiting.take(&self.orb.config.connection, &self.progress) {
            let more = !waiting.requests.is_empty() || waiting.over.is_some();
            waiting.is_announced = more;
            drop(waiting);
            self.resume(resumes);
            current_request.work = work;
            return WorkLookup::Work { more };
        }
        waiting.is_announced = false;
        match waiting.over {
            None => WorkLookup::Nothing,
            Some(over) => {
                drop(waiting);
                self.answer_protocol_error(over);
                WorkLookup::End
            }
        }
    }

    /// Refuses one request that waits for a thread, if a servant waits for the client: the client may itself
    /// wait for that request. The monitor calls this at the limit of threads. Never waits for the peer.
    pub(in crate::driver::server) fn refuse_what_may_be_awaited(&self, server: &Shared) {
        let Some(inbox) = self.inbox.get() else { return };
        // A client that does not read its replies waits for none of them.
        if self.is_stalled() || !self.calls.get().is_some_and(|link| link.is_called()) {
            return;
        }
        let taken = lock(&inbox.state).take_awaited(&self.orb.config.connection, &self.progress);
        let Some((work, resumes)) = taken else { return };
        self.resume(resumes);
        work.refuse_for_lack_of_threads(&self.orb, &self.session, &RefusedAtOnce(self));
        if self.progress.end(false) && self.ending.load(Ordering::SeqCst) {
            server.close(self);
        }
    }

    fn resume(&self, resumes: bool) {
        if resumes && !self.receive_elsewhere() {
            self.fail();
        }
    }

    fn answer_protocol_error(&self, over: Over) {
        if over == Over::ProtocolError {
            self.with(ServerConnection::protocol_error);
        }
    }
}

/// The most listen points that are recorded for one client.
const LISTEN_POINTS_MAX: usize = 64;

impl Acceptor for Connection {
    fn send(&self, messages: Vec<u8>) -> bool {
        let is_received = self.ensure_receiving();
        self.with(|sender| {
            if !sender.is_ended() {
                sender.transmit().buffer().extend_from_slice(&messages);
            }
        });
        is_received
    }

    fn send_soon(&self, messages: Vec<u8>) -> bool {
        let is_received = self.ensure_receiving();
        let mut sender = lock(&self.sender);
        if sender.is_ended() {
            return is_received;
        }
        sender.transmit().buffer().extend_from_slice(&messages);
        self.send_soon_what_waits(&mut sender);
        is_received
    }

    fn has_ended(&self) -> bool {
        self.is_on(SlowPathFlags::STOPPING) || transport::is_hung_up(&self.stream)
    }
}
