//! What an accepted connection needs in addition when the server calls its client over it (CORBA 3.3 part 2,
//! 9.8).
//!
//! From the server's first call on, a thread receives on the connection that does nothing else (`receiving`).
//! All threads that serve the connection may be in servants that wait for the client, and still a thread must
//! take the client's replies and notice its end. Requests reach the serving threads through an inbox. A
//! connection whose client is never called has none of this.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use ironorb_giop::message::{Message, RequestId};
use ironorb_giop::service_context::ListenPoint;

use super::answers::RefusedAtOnce;
use super::{Connection, WorkLookup};
use crate::base::locks::{Condition, LaneLock};
use crate::connection::{Arrival, CurrentRequest, Flags, Inbox, Taken, Work};
use crate::driver::client::{Acceptor, Link};
use crate::driver::server::in_flight::Lack;
use crate::driver::server::{Shared, blocked_servant_monitor};
use crate::transport::{self, Moved};

/// The inbox of a connection, and how the serving threads look into it.
#[derive(Debug, Default)]
pub(super) struct SharedInbox {
    state: LaneLock<State>,
    /// Notified for the connection's own thread when a request or the end has come.
    come: Condition,
}

#[derive(Debug, Default)]
struct State {
    inbox: Inbox,
    /// The connection's own thread waits.
    is_idle: bool,
    /// The pool has been notified and has not looked yet.
    is_announced: bool,
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

impl SharedInbox {
    pub(super) fn is_waiting(&self) -> bool {
        !self.state.lock().inbox.is_empty()
    }

    /// A thread is about to look into the inbox, or has been notified to.
    pub(super) fn is_announced(&self) -> bool {
        self.state.lock().is_announced
    }

    /// Removes a request that its client no longer waits for; false when it is not in the inbox.
    pub(super) fn forget(&self, id: RequestId) -> bool {
        self.state.lock().inbox.forget(id)
    }
}

impl Connection {
    /// Takes a client's reply to one of the server's calls.
    #[cold]
    pub(super) fn take_reply(&self, message: Message) {
        match self.calls.get() {
            Some(link) if link.take_reply(message) => {
                self.replies_taken.fetch_add(1, Ordering::Relaxed);
            }
            _ => self.session.handle_malformed(),
        }
    }

    /// Lets the server call the client over this connection from now on.
    #[cold]
    pub(super) fn use_bidirectional(&self, points: &[ListenPoint]) {
        let counted = self.session.handle_listen_points(points.len());
        let Some(itself) = self.itself.upgrade() else { return };
        if self.calls.get().is_none() {
            let Ok(stream) = self.stream.try_clone() else { return };
            let acceptor: Weak<dyn Acceptor> = Arc::downgrade(&(itself.clone() as Arc<dyn Acceptor>));
            let link = Link::accepted(stream, self.client_lane(), acceptor);
            let _ = self.calls.set(link);
        }
        if let Some(link) = self.calls.get() {
            self.orb.connector.use_accepted(&points[..counted], link);
        }
    }

    /// Ensures that a thread receives, for a call to the client that is about to wait for its reply. False
    /// when no thread would receive it.
    fn ensure_receiving(&self) -> bool {
        let Some(inbox) = self.inbox.get() else { return self.begin_inbox() };
        // sync: paused-or-called. The call has been counted before. Either this thread sees that receiving
        // has paused, or the thread that pauses sees the call.
        !inbox.state.lock().inbox.end_pause() || self.receive_elsewhere()
    }

    /// Hands receiving over to the bidirectional receiver for good.
    fn begin_inbox(&self) -> bool {
        if self.inbox.set(Box::default()).is_err() {
            return true; // another call has made it
        }
        self.session.begin_inbox();
        // The thread that holds `receiver` now may not have seen the flag. This thread must not wait for that
        // one: the caller may be the very thread that it receives for.
        if self.receiver.try_lock().is_some() {
            return self.receive_elsewhere();
        }
        let itself = self.itself.upgrade();
        let hands_over = move || {
            if let Some(connection) = itself {
                drop(connection.receiver.lock());
                if !connection.receive_elsewhere() {
                    connection.fail();
                }
            }
        };
        // The limit of threads does not apply: without this thread the call would never get its reply.
        self.lane().threads.spawn_beyond("ironorb-handover", hands_over).is_ok()
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
        self.note_over(true);
    }

    /// Receives everything that has come. Replies are delivered at once, requests go into the inbox. Never
    /// waits.
    pub(in crate::driver::server) fn receive_all(&self) -> Received {
        let Some(inbox) = self.inbox.get() else { return Received::Over };
        let mut framer = self.receiver.lock();
        loop {
            if self.has_paused(inbox) {
                return Received::Paused;
            }
            match self.session.poll_for_inbox(&mut framer) {
                Ok(work) => match self.put(inbox, work) {
                    true => continue,
                    false => {
                        self.cut_off();
                        break;
                    }
                },
                Err(Arrival::End) => break,
                Err(Arrival::Nothing) => {}
                Err(other) => {
                    self.handle_arrival(&mut framer, other);
                    continue;
                }
            }
            match transport::receive_now(&self.stream, framer.space()) {
                Ok(Moved::Bytes(count)) => {
                    framer.received(count);
                    self.note_received(count);
                }
                Ok(Moved::Nothing) if self.stream.leave_to_epoll(true, false) => {}
                Ok(Moved::Nothing) => {
                    self.session.note_unfinished(&framer);
                    return Received::All;
                }
                Ok(Moved::End) | Err(_) => break,
            }
        }
        drop(framer);
        self.note_over(!self.session.is_on(Flags::MALFORMED));
        Received::Over
    }

    /// Pauses receiving when too many requests wait, unless a call of the server waits for its reply.
    fn has_paused(&self, inbox: &SharedInbox) -> bool {
        if !inbox.state.lock().inbox.pause_if_full(&self.orb.config.connection) {
            return false;
        }
        // sync: paused-or-called. The pause holds, unless a call is waiting. Then either the calling thread or
        // this one clears the flag.
        !(self.is_called() && inbox.state.lock().inbox.end_pause())
    }

    /// Whether a call to the client waits for its reply.
    fn is_called(&self) -> bool {
        self.calls.get().is_some_and(|link| link.is_called())
    }

    /// Puts a request into the inbox. False when the inbox is full and receiving must not pause.
    fn put(&self, inbox: &SharedInbox, work: Work) -> bool {
        let is_called = self.is_called();
        let (is_awaited, is_announced) = {
            let mut state = inbox.state.lock();
            if state.inbox.put(work, &self.orb.config.connection, is_called).is_err() {
                return false;
            }
            (state.is_idle, std::mem::replace(&mut state.is_announced, true))
        };
        self.notify_server(inbox, is_awaited, is_announced);
        true
    }

    /// Has a serving thread look into the inbox.
    fn notify_server(&self, inbox: &SharedInbox, is_awaited: bool, is_announced: bool) {
        let (Some(itself), Some(server)) = (self.itself.upgrade(), self.server.upgrade()) else { return };
        match server.pool_of(&itself) {
            Some(pool) if !is_announced => pool.push_ready(&itself),
            Some(_) => {}
            None if is_awaited => inbox.come.notify_one(),
            None => {
                // A servant may wait for this very request. Then the request must not wait for the monitor.
                let threads = 1 + self.helpers.load(Ordering::SeqCst) as usize;
                if self.session.carried() >= threads && self.is_called() {
                    blocked_servant_monitor::help(&server, &itself);
                }
            }
        }
    }

    /// Records that nothing more comes. The server's calls to the client end at once, the connection when its
    /// requests have been served.
    fn note_over(&self, is_client_gone: bool) {
        let Some(inbox) = self.inbox.get() else { return };
        let (is_awaited, is_announced) = {
            let mut state = inbox.state.lock();
            state.inbox.handle_end(is_client_gone);
            (state.is_idle, std::mem::replace(&mut state.is_announced, true))
        };
        self.notify_cancelled(self.session.handle_inbox_end());
        self.end_calls();
        self.notify_server(inbox, is_awaited, is_announced);
    }

    /// Waits for the next request, on the connection's own thread; `None` at the end.
    pub(super) fn wait_at(&self, inbox: &SharedInbox) -> Option<Work> {
        loop {
            if self.session.is_on(Flags::CLOGGED) {
                self.wait_until_unclogged();
            }
            let mut state = inbox.state.lock();
            if let Some(Taken { work, resumes }) =
                state.inbox.take(&self.orb.config.connection, &self.session)
            {
                drop(state);
                self.resume(resumes);
                return Some(work);
            }
            if state.inbox.is_over() {
                return None;
            }
            state.is_idle = true;
            let mut state = inbox.come.wait(state);
            state.is_idle = false;
        }
    }

    /// Looks for a request without waiting, on any thread.
    pub(super) fn look_into(&self, inbox: &SharedInbox, current_request: &mut CurrentRequest) -> WorkLookup {
        if self.session.is_on(Flags::CLOGGED) {
            return WorkLookup::Nothing;
        }
        let mut state = inbox.state.lock();
        if let Some(Taken { work, resumes }) = state.inbox.take(&self.orb.config.connection, &self.session) {
            let more = !state.inbox.is_empty() || state.inbox.is_over();
            state.is_announced = more;
            drop(state);
            self.resume(resumes);
            current_request.take(work);
            return WorkLookup::Work { more };
        }
        state.is_announced = false;
        if state.inbox.is_over() { WorkLookup::End } else { WorkLookup::Nothing }
    }

    /// Refuses one request that waits for a thread, if a servant waits for the client: the client may itself
    /// wait for that request. The monitor calls this at the limit of threads. Never waits for the peer.
    pub(in crate::driver::server) fn refuse_what_may_be_awaited(&self, server: &Shared) {
        let Some(inbox) = self.inbox.get() else { return };
        // A client that does not read its replies waits for none of them.
        if self.is_stalled() || !self.is_called() {
            return;
        }
        let taken = inbox.state.lock().inbox.take_awaited(&self.orb.config.connection, &self.session);
        let Some(Taken { work, resumes }) = taken else { return };
        self.resume(resumes);
        if self.refuse(&work, Lack::Threads) {
            server.close(self);
        }
    }

    /// Refuses a request that has been taken and waits for a thread. Never waits for the peer. True when the
    /// connection has ended meanwhile and this was its last request: the caller closes it.
    #[must_use]
    pub(in crate::driver::server) fn refuse(&self, work: &Work, lack: Lack) -> bool {
        work.refuse_waiting(lack, &self.orb, &self.agreements, &RefusedAtOnce(self));
        self.session.handle_carried_out(false)
    }

    fn resume(&self, resumes: bool) {
        if resumes && !self.receive_elsewhere() {
            self.fail();
        }
    }
}

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
        let mut sender = self.sender.lock();
        if sender.is_ended() {
            return is_received;
        }
        sender.transmit().buffer().extend_from_slice(&messages);
        self.send_soon_what_waits(&mut sender);
        is_received
    }

    fn has_ended(&self) -> bool {
        self.session.takes_no_more() || transport::is_hung_up(&self.stream)
    }
}
