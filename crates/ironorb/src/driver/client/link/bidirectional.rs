//! Bidirectional connections (CORBA 3.3 part 2, 9.8): requests of the peer over a connection that this ORB
//! has made, and calls of this ORB over a connection that the peer has made.
//!
//! On a connection of its own, the ORB hands the peer's requests to other threads at once: the thread that
//! receives may be a caller that waits for a reply which depends on them. On an accepted connection the
//! server's threads receive; calls of this ORB only wait.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::connection::{ConnectionEnd, ServerConnection};
use ironorb_giop::message::{Message, RequestId};
use ironorb_giop::service_context::ServiceContextList;

use super::{AsyncWakeups, Clock, Guard, Link};
use crate::base::locks::LaneLock;
use crate::connection::{Arrival, Backlog, DeferredAnswer, OnCancel, ServerSession, Work};
use crate::driver::client::ClientLane;
use crate::driver::clock;
use crate::driver::orb_core::OrbCore;
use crate::object::deadline::Deadline;
use crate::poa::{adapter::Session, servant::ReplySink};
use crate::transport::Stream;

/// The ORB that serves requests which come over its outgoing connections.
#[derive(Debug)]
pub(crate) struct Callbacks {
    pub(crate) orb: Weak<OrbCore>,
    pub(crate) listen_points: ServiceContextList,
}

/// An accepted connection over which calls go to its client.
pub(crate) trait Acceptor: Send + Sync + fmt::Debug {
    /// Sends whole messages, and blocks while the socket takes no more. False when no answer could be
    /// received.
    fn send(&self, messages: Vec<u8>) -> bool;
    /// Sends or queues whole messages without blocking. False when no answer could be received.
    fn send_soon(&self, messages: Vec<u8>) -> bool;
    /// True when the client has gone or the server is about to close the connection. Never blocks.
    fn has_ended(&self) -> bool;
}

/// What a bidirectional connection has in addition to a link.
#[derive(Debug)]
pub(super) struct Bidirectional {
    role: Role,
    /// What this ORB and the peer have agreed upon for the peer's requests.
    agreements: OnceLock<Session>,
    has_announced: AtomicBool,
    /// The peer's first request has come, with what it says about the peer.
    has_heard: AtomicBool,
    /// Requests of the peer that wait to be served.
    backlog: LaneLock<Backlog>,
    /// Decides about the peer's requests.
    inbound: ServerSession,
}

#[derive(Debug)]
enum Role {
    Originator(Arc<ClientLane>),
    Acceptor(Weak<dyn Acceptor>),
}

impl Bidirectional {
    pub(super) fn originator(lane: &Arc<ClientLane>) -> Bidirectional {
        Bidirectional::new(Role::Originator(lane.clone()))
    }

    pub(super) fn acceptor(acceptor: Weak<dyn Acceptor>) -> Bidirectional {
        Bidirectional::new(Role::Acceptor(acceptor))
    }

    fn new(role: Role) -> Bidirectional {
        Bidirectional {
            role,
            agreements: OnceLock::new(),
            has_announced: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            backlog: LaneLock::default(),
            inbound: ServerSession::new(false, false, clock::now()),
        }
    }

    /// What the peer's requests to this ORB have agreed upon.
    fn agreements(&self, orb: &OrbCore) -> &Session {
        self.agreements.get_or_init(|| Session::new(&orb.adapter))
    }

    /// The accepted connection over which calls leave; `None` on an outgoing connection.
    pub(super) fn acceptor_of(&self) -> Option<&Weak<dyn Acceptor>> {
        match &self.role {
            Role::Originator(_) => None,
            Role::Acceptor(acceptor) => Some(acceptor),
        }
    }

    /// The session of the peer's requests.
    pub(super) fn inbound(&self) -> &ServerSession {
        &self.inbound
    }

    fn lane(&self) -> Option<&Arc<ClientLane>> {
        match &self.role {
            Role::Originator(lane) => Some(lane),
            Role::Acceptor(_) => None,
        }
    }
}

impl Bidirectional {
    /// Ends the session of the peer, and returns the cancellation callbacks that are to run.
    pub(super) fn end(&self) -> Vec<OnCancel> {
        self.inbound.handle_end(true)
    }
}

impl Link {
    /// Makes the link over a connection that the peer has made.
    pub(crate) fn accepted(stream: Stream, lane: &ClientLane, acceptor: Weak<dyn Acceptor>) -> Arc<Link> {
        Link::made(stream, lane, None, Arc::default(), Some(Bidirectional::acceptor(acceptor)), None)
    }

    /// Announces this ORB's listen points with the next request, and serves the peer's requests from now on.
    pub(in crate::driver::client) fn announce(&self, callbacks: &Callbacks) {
        let Some(bidirectional) = &self.bidirectional else { return };
        if bidirectional.lane().is_none() || bidirectional.has_announced.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.receiver.start().is_err() {
            return; // no thread would see the peer's requests, so the link does not invite them
        }
        let mut state = self.state.lock();
        state.announce(callbacks.listen_points.clone());
        // The receiver looks after the connection as for a call that never ends.
        state.async_replies.calls += 1;
        state.async_replies.is_asked_for = true;
        self.engage_receiver(&mut state);
    }

    /// Sends what is pending over the server's connection. Waits without the lock.
    #[cold]
    pub(super) fn push_out_accepted<'l>(
        &'l self,
        mut state: Guard<'l>,
        acceptor: &Weak<dyn Acceptor>,
        clock: &mut Clock,
    ) -> Guard<'l> {
        let messages = state.transmit().take_all();
        drop(state);
        if !acceptor.upgrade().is_some_and(|acceptor| acceptor.send(messages)) {
            self.peer_ended();
        }
        clock.has_waited();
        self.state.lock()
    }

    /// Sends what is pending over the server's connection, without waiting.
    #[cold]
    pub(super) fn send_some_accepted(&self, state: &mut Guard<'_>, acceptor: &Weak<dyn Acceptor>) {
        let messages = state.transmit().take_all();
        if !messages.is_empty() && !acceptor.upgrade().is_some_and(|acceptor| acceptor.send_soon(messages)) {
            self.end(state, ConnectionEnd::Lost);
        }
    }

    /// Takes a reply that has come on the accepted connection. False when it answers no call of this link.
    pub(crate) fn take_reply(&self, message: Message) -> bool {
        let mut state = self.state.lock();
        let mut woken = AsyncWakeups::default();
        let handled = state.handle_reply(message, |waiter| woken.wake(waiter));
        self.pass_on(&mut state, woken);
        handled.is_ok()
    }

    /// True while a call waits for its answer.
    pub(crate) fn is_called(&self) -> bool {
        self.state.lock().calls_in_flight() > 0
    }

    /// Ends the link because the accepted connection has ended.
    pub(crate) fn peer_ended(&self) {
        self.end(&mut self.state.lock(), ConnectionEnd::Lost);
    }

    /// Hands the peer's requests to other threads.
    #[cold]
    pub(super) fn take_requests(&self, state: &mut Guard<'_>, bidirectional: &Bidirectional) {
        let Some(lane) = bidirectional.lane() else { return };
        while let Some(incoming) = state.poll_incoming() {
            let work = match bidirectional.inbound.handle_incoming(incoming) {
                Ok(work) => work,
                Err(Arrival::CancelRequest(id)) => {
                    let callback = bidirectional.inbound.handle_cancel(id);
                    callback.into_iter().for_each(|then| self.receiver.run_soon(then));
                    continue;
                }
                Err(_) => continue,
            };
            let has_room = {
                let mut backlog = bidirectional.backlog.lock();
                let has_room = backlog.has_room(work.bytes(), &lane.config.connection);
                backlog.add(work.bytes());
                has_room
            };
            let link = self.me.upgrade().filter(|_| has_room);
            let Some(link) = link else { return self.end(state, ConnectionEnd::Lost) };
            bidirectional.inbound.begin_later();
            // The note must be taken before other requests, which other threads may serve concurrently.
            if !bidirectional.has_heard.swap(true, Ordering::SeqCst)
                && let Some(orb) = lane.callbacks.get().and_then(|callbacks| callbacks.orb.upgrade())
            {
                work.take_note(&orb, bidirectional.agreements(&orb), &CallbackSink::of(link.clone(), None));
            }
            if lane.callback_threads.run(move || link.serve(work)).is_err() {
                return self.end(state, ConnectionEnd::Lost);
            }
        }
    }

    /// Serves one request of the peer.
    fn serve(self: Arc<Self>, mut work: Work) {
        let Some(bidirectional) = &self.bidirectional else { return };
        let (bytes, sink) = (work.bytes(), CallbackSink::begun(self.clone()));
        let callbacks = bidirectional.lane().and_then(|lane| lane.callbacks.get());
        if let Some(orb) = callbacks.and_then(|callbacks| callbacks.orb.upgrade()) {
            work.carry_out_within_limits(&orb, bidirectional.agreements(&orb), &sink);
        }
        bidirectional.backlog.lock().remove(bytes);
    }
}

/// The bit that separates the numbers of outgoing connections from those of accepted ones.
const CALLED_BACK: u64 = 1 << 63;

/// Where the replies to a peer's requests go.
struct CallbackSink {
    link: Arc<Link>,
    /// `None` for what is no reply.
    answer: Option<DeferredAnswer>,
    /// The thread that answers waits for no peer.
    never_waits: Cell<bool>,
}

impl CallbackSink {
    fn of(link: Arc<Link>, answer: Option<DeferredAnswer>) -> CallbackSink {
        CallbackSink { link, answer, never_waits: Cell::new(false) }
    }

    /// The sink of a request that is counted already.
    fn begun(link: Arc<Link>) -> CallbackSink {
        CallbackSink::of(link, Some(DeferredAnswer::default()))
    }

    /// The reply, and the session to which it belongs.
    fn answer(&self) -> Option<(&DeferredAnswer, &ServerSession)> {
        Some((self.answer.as_ref()?, &self.link.bidirectional.as_ref()?.inbound))
    }
}

impl Drop for CallbackSink {
    fn drop(&mut self) {
        if let Some((answer, inbound)) = self.answer() {
            let _ = answer.end(inbound); // the link closes itself
        }
    }
}

impl ReplySink for CallbackSink {
    fn client(&self) -> Option<u64> {
        Some(CALLED_BACK | self.link.number)
    }

    fn is_from_this_machine(&self) -> bool {
        self.link.stream.is_from_this_machine()
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        if self.answer().is_some_and(|(answer, inbound)| !answer.is_wanted(inbound)) {
            return; // the client would not read it
        }
        let link = &self.link;
        let Some(lane) = link.bidirectional.as_ref().and_then(|bidirectional| bidirectional.lane()) else {
            return;
        };
        let mut reply = ServerConnection::sending(lane.config.connection);
        write(&mut reply);
        let is_over = reply.is_ended();
        let bytes = reply.transmit().take_all();
        let now = clock::now();
        let deadline = Deadline::NEVER.at_most(now, lane.config.transmit_timeout);
        let state = match self.never_waits.get() {
            true => Ok(link.state.lock()),
            false => link.wait_for_room(&mut Clock(now), deadline),
        };
        match state {
            Ok(mut state) if state.end().is_none() => {
                state.transmit().buffer().extend_from_slice(&bytes);
                link.send_some(&mut state);
                if is_over {
                    link.end(&mut state, ConnectionEnd::Local);
                } else {
                    link.engage_receiver(&mut state);
                }
            }
            Ok(_) => {}
            Err(_) => link.peer_ended(),
        }
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let (answer, inbound) = self.answer()?;
        Some(Box::new(CallbackSink::of(self.link.clone(), Some(answer.share(inbound)))))
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.answer().is_some_and(|(answer, inbound)| answer.is_cancelled(inbound, id))
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        if let Some((answer, inbound)) = self.answer() {
            answer.on_cancel(inbound, id, then);
        }
    }

    fn is_clogged(&self) -> bool {
        let mut state = self.link.state.lock();
        !self.link.has_room(state.transmit().pending_bytes())
    }

    fn never_wait(&self) {
        self.never_waits.set(true);
    }
}
