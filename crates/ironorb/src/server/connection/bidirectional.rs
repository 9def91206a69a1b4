//! What an accepted connection has on top when its client is called over it (CORBA 3.3 part 2, 9.8).
//!
//! From our first call on, somebody receives who does nothing else (`receiving`): all threads that serve the connection
//! may be in servants that wait for the client, and somebody must take its answers and see its end. Requests then come
//! to the serving threads by way of an inbox. A connection whose client is never called has none of this.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use ironorb_giop::connection::{ConnectionConfig, ServerConnection};
use ironorb_giop::message::{Message, RequestId};
use ironorb_giop::service_context::ListenPoint;

use super::answers::RefusedAtOnce;
use super::progress::RequestCounter;
use super::{Connection, CurrentRequest, SlowPathFlags, WorkLookup};
use crate::client::{Acceptor, Backlog};
use crate::net::{self, Moved};
use crate::server::work::{Other, Stop, Work};
use crate::server::{Shared, blocked_servant_monitor};
use crate::sync::lock;

/// Requests that have come and that no thread has taken.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<Waiting>,
    /// Notified for the connection's own thread when there is something.
    come: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Work>,
    backlog: Backlog,
    /// Why nothing more comes.
    over: Option<Over>,
    /// The connection's own thread waits.
    is_idle: bool,
    /// A pool has been told and has not looked yet.
    is_announced: bool,
    /// Nobody receives, for there are too many. Never while a call of ours waits for its answer.
    is_paused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Gone,
    ProtocolError,
}

/// What has become of a connection when everything that has come was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Received {
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

    /// Somebody has said that he will look, or has been told to.
    pub(super) fn is_announced(&self) -> bool {
        lock(&self.state).is_announced
    }

    /// Takes a request out that its client no longer waits for; false when it is not there.
    pub(super) fn forget(&self, id: RequestId) -> bool {
        lock(&self.state).forget(id)
    }
}

impl Waiting {
    /// The next request, and whether receiving is to go on because it has been taken.
    fn take(&mut self, config: &ConnectionConfig, progress: &RequestCounter) -> Option<(Work, bool)> {
        let work = self.requests.pop_front()?;
        progress.begin();
        let resumes = self.has_given(&work, config);
        Some((work, resumes))
    }

    /// A request has been taken out. Whether receiving is to go on.
    fn has_given(&mut self, work: &Work, config: &ConnectionConfig) -> bool {
        self.backlog.remove(work.bytes());
        let resumes = self.is_paused && self.backlog.is_half_empty(config);
        self.is_paused &= !resumes;
        resumes
    }

    /// Takes a request out that its client no longer waits for; false when it is not there.
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

    /// Takes the first request out that its client waits for, to be refused, and whether receiving is to go on.
    fn take_awaited(&mut self, config: &ConnectionConfig, progress: &RequestCounter) -> Option<(Work, bool)> {
        let is_awaited = |work: &Work| matches!(work, Work::Request(_)) && work.wants_answer();
        let work = self.requests.iter().position(is_awaited).and_then(|at| self.requests.remove(at))?;
        progress.begin();
        let resumes = self.has_given(&work, config);
        Some((work, resumes))
    }

    /// Nobody is left to hear their answers, and their servants would call a client that is gone: threads that others need
    /// would wait for each of them until no connection can be made.
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
    /// An answer of the client to one of our calls.
    #[cold]
    pub(super) fn take_reply(&self, message: Message) -> Result<(), Stop> {
        match self.calls.get() {
            Some(link) if link.take_reply(message) => Ok(()),
            _ => Err(Stop::ProtocolError),
        }
    }

    /// The client can be called over this connection from now on.
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

    /// A call to the client is about to wait for its answer; false when nobody would receive it.
    fn see_that_somebody_receives(&self) -> bool {
        let Some(inbox) = self.inbox.get() else { return self.begin_inbox() };
        // sync: paused-or-called. The call has been counted before: either this sees that receiving has paused, or
        // whoever pauses sees the call.
        !std::mem::take(&mut lock(&inbox.state).is_paused) || self.receive_elsewhere()
    }

    /// Leaves receiving to another thread for good.
    fn begin_inbox(&self) -> bool {
        if self.inbox.set(Inbox::default()).is_err() {
            return true; // another call was quicker
        }
        self.slow_path_flags.fetch_or(SlowPathFlags::BIDIRECTIONAL, Ordering::SeqCst);
        // Whoever has the receiving part now has perhaps not seen that. It must not be waited for here: the caller
        // may be the very one that it receives for.
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
        // Else the call that is being made would never be answered.
        self.orb.server_threads.spawn_beyond("ironorb-handover", hands_over).is_ok()
    }

    /// False when there is no thread to be had.
    fn receive_elsewhere(&self) -> bool {
        let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade()) else {
            return true;
        };
        if let Some(pool) = server.pool_of(&itself) {
            pool.forget(&itself);
        }
        server.receiving.add(itself).is_ok()
    }

    /// Nobody receives: then nobody must wait for it.
    #[cold]
    pub(in crate::server) fn fail(&self) {
        self.cut_off();
        self.note_over(Over::Gone);
    }

    /// Receives everything that has come: answers are taken at once, requests go into the inbox. Never waits.
    pub(in crate::server) fn receive_all(&self) -> Received {
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
            match net::receive_now(&self.stream, framer.space()) {
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

    /// Pauses receiving when there is too much to do, unless a call of ours waits.
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
        // Unless whoever called has seen it, and has it received anew, or it has become less.
        !(is_called && std::mem::take(&mut lock(&inbox.state).is_paused))
    }

    /// Leaves a request to the serving threads; false when there are too many and yet it is no time to pause.
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
        self.tell(inbox, is_awaited, is_announced);
        true
    }

    /// Lets a serving thread look into the inbox.
    fn tell(&self, inbox: &Inbox, is_awaited: bool, is_announced: bool) {
        let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade()) else { return };
        match server.pool_of(&itself) {
            Some(pool) if !is_announced => pool.push_ready(&itself),
            Some(_) => {}
            None if is_awaited => inbox.come.notify_one(),
            None => {
                // Perhaps it is this that a servant waits for: then it must not wait for the watcher.
                let threads = 1 + self.helpers.load(Ordering::SeqCst);
                if self.progress.carried() >= threads && self.calls.get().is_some_and(|link| link.is_called())
                {
                    blocked_servant_monitor::help(&server, &itself);
                }
            }
        }
    }

    /// Nothing more comes: calls of ours end at once, the connection when its requests have been served.
    fn note_over(&self, over: Over) {
        let Some(inbox) = self.inbox.get() else { return };
        let (is_awaited, is_announced) = {
            let mut waiting = lock(&inbox.state);
            if *waiting.over.get_or_insert(over) == Over::Gone {
                waiting.forget_twoways();
            }
            (waiting.is_idle, std::mem::replace(&mut waiting.is_announced, true))
        };
        self.tell_cancelled(self.cancellations.end());
        self.note_unfinished(0);
        if let Some(link) = self.calls.get() {
            link.peer_ended();
        }
        self.tell(inbox, is_awaited, is_announced);
    }

    /// Waits for the next request, as the connection's own thread; `None` at the end.
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
                self.say_why(over);
                return None;
            }
            waiting.is_idle = true;
            let mut waiting = inbox.come.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.is_idle = false;
        }
    }

    /// Looks for a request, as any other thread.
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
                self.say_why(over);
                WorkLookup::End
            }
        }
    }

    /// Refuses the requests that wait for a thread, if servants wait for the client, which may itself wait for one of these.
    /// Called where there is no thread to be had. Never waits for the peer.
    pub(in crate::server) fn refuse_what_may_be_awaited(&self, server: &Shared) {
        let Some(inbox) = self.inbox.get() else { return };
        if !self.calls.get().is_some_and(|link| link.is_called()) {
            return;
        }
        while lock(&self.sender).transmit().pending_bytes() == 0 {
            let taken = lock(&inbox.state).take_awaited(&self.orb.config.connection, &self.progress);
            let Some((work, resumes)) = taken else { return };
            self.resume(resumes);
            work.refuse_for_lack_of_threads(&self.orb, &self.session, &RefusedAtOnce(self));
            if self.progress.end(false) && self.ending.load(Ordering::SeqCst) {
                return server.close(self);
            }
        }
    }

    fn resume(&self, resumes: bool) {
        if resumes && !self.receive_elsewhere() {
            self.fail();
        }
    }

    fn say_why(&self, over: Over) {
        if over == Over::ProtocolError {
            self.with(ServerConnection::protocol_error);
        }
    }
}

/// Addresses of one client that are taken note of.
const LISTEN_POINTS_MAX: usize = 64;

impl Acceptor for Connection {
    fn send(&self, messages: Vec<u8>) -> bool {
        let is_received = self.see_that_somebody_receives();
        self.with(|sender| {
            if !sender.is_ended() {
                sender.transmit().buffer().extend_from_slice(&messages);
            }
        });
        is_received
    }

    fn send_soon(&self, messages: Vec<u8>) -> bool {
        let is_received = self.see_that_somebody_receives();
        let mut sender = lock(&self.sender);
        if sender.is_ended() {
            return is_received;
        }
        sender.transmit().buffer().extend_from_slice(&messages);
        self.send_what_goes(&mut sender);
        if sender.transmit().pending_bytes() > 0
            && !self.leave_to_another(&sender)
            && !self.stalled.swap(true, Ordering::SeqCst)
        {
            let connection = self.itself.upgrade();
            let waits = move || connection.iter().for_each(|connection| connection.flush_stalled());
            // A pool has tried already.
            if self.on_stall.is_some() || self.orb.server_threads.spawn("ironorb-stalled", waits).is_err() {
                self.give_up(&mut sender);
            }
        }
        is_received
    }

    fn has_ended(&self) -> bool {
        self.is_on(SlowPathFlags::STOPPING) || net::is_hung_up(&self.stream)
    }
}
