//! The server side: accepted connections, requests to servants, and replies.
//!
//! The engine never runs a servant by itself. It announces a request that has arrived, and the driver says
//! when the servant runs. So a simulator can give servants a duration and an order.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;
use ironorb_giop::message::RequestId;

use super::{ConnectionId, Time, UpcallNumber};
use crate::base::locks::LaneLock;
use crate::connection::{
    Admission, Arrival, CurrentRequest, DeferredAnswer, HELD_TIMER, Limits, OnCancel, ServerSession, Verdict,
    Work,
};
use crate::driver::adapter_threads::WithoutWaits;
use crate::driver::orb_core::OrbCore;
use crate::poa::{adapter::Session, servant::ReplySink};

/// An event for a server engine.
#[derive(Debug)]
pub enum ServerEvent<'e> {
    /// A client has connected.
    Accepted {
        /// The connection, with a number not used before.
        connection: ConnectionId,
    },
    /// Bytes have come.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// Any piece of the stream.
        bytes: &'e [u8],
    },
    /// The client has closed the connection, or it has failed. Requests that have arrived are carried out
    /// nevertheless, but their replies are lost.
    Closed {
        /// The connection.
        connection: ConnectionId,
    },
    /// The driver answers [`ServerAction::Upcall`], at once or when it is the servant's turn. The servant
    /// runs now and its reply is written. A number that no longer waits has no effect. While a POA manager
    /// holds the request, or its object is being etherealised, the event has no effect either. The first
    /// [`poll_action`](ServerEngine::poll_action) after that is over announces it again, under the same number.
    CarryOut {
        /// The request.
        upcall: UpcallNumber,
    },
    /// The server closes a connection: it sends `CloseConnection`, and requests that have not been carried
    /// out will not be (CORBA 3.3 part 2, 9.4.7). Servants that reply after their upcalls reply first.
    Retire {
        /// The connection.
        connection: ConnectionId,
    },
    /// The time of the last [`ServerAction::SetTimer`] has come.
    Timer,
    /// The server retires all its connections, and those that are accepted from now on.
    Shutdown,
}

/// An action that the driver carries out for a server.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerAction {
    /// Send bytes after those sent before.
    Transmit {
        /// The connection.
        connection: ConnectionId,
        /// Never empty.
        bytes: Vec<u8>,
    },
    /// Close after the bytes that are to be transmitted. No [`ServerEvent::Closed`] is expected for it.
    Close {
        /// The connection.
        connection: ConnectionId,
    },
    /// A request has arrived. Give [`ServerEvent::CarryOut`] when its servant may run.
    Upcall {
        /// The request.
        upcall: UpcallNumber,
        /// The connection over which it came.
        connection: ConnectionId,
    },
    /// Give [`ServerEvent::Timer`] at this time, or as soon as possible after it. Replaces a time asked for
    /// before. A timer that fires too soon does no harm.
    SetTimer {
        /// The time.
        at: Time,
    },
}

/// The server side of an ORB as a state machine.
pub struct ServerEngine {
    orb: Arc<OrbCore>,
    connections: BTreeMap<ConnectionId, Accepted>,
    upcalls: BTreeMap<UpcallNumber, (ConnectionId, Work)>,
    next_upcall: u64,
    /// Requests that were to be carried out and that an adapter or its manager does not admit yet.
    held: Vec<UpcallNumber>,
    /// Connections whose sessions have not been asked what follows from the last events.
    touched: BTreeSet<ConnectionId>,
    /// Connections whose servants have replied after their upcalls.
    answered_later: Arc<LaneLock<BTreeSet<ConnectionId>>>,
    /// When sessions want to be looked at.
    timeouts: BTreeSet<(Time, ConnectionId)>,
    /// The timer that the driver has been asked for.
    timer: Option<Time>,
    now: Time,
    actions: VecDeque<ServerAction>,
    is_shut_down: bool,
}

/// One accepted connection.
struct Accepted {
    framer: Framer,
    peer: Arc<Peer>,
    /// What the client and the server have agreed upon.
    agreements: Arc<Session>,
    /// Requests that have been announced and not carried out.
    waiting: usize,
    /// The client has closed the connection, or it has failed.
    is_client_gone: bool,
    /// When replies that wait for others leave at the latest.
    flush_at: Option<Time>,
    /// Its entry in the engine's `timeouts`.
    timeout: Option<Time>,
}

impl ServerEngine {
    pub(crate) fn of(orb: &Arc<OrbCore>) -> Self {
        ServerEngine {
            orb: orb.clone(),
            connections: BTreeMap::new(),
            upcalls: BTreeMap::new(),
            next_upcall: 0,
            held: Vec::new(),
            touched: BTreeSet::new(),
            answered_later: Arc::default(),
            timeouts: BTreeSet::new(),
            timer: None,
            now: Time::ZERO,
            actions: VecDeque::new(),
            is_shut_down: false,
        }
    }

    /// Handles an event. `now` never goes back. Runs a servant only on [`ServerEvent::CarryOut`].
    pub fn handle(&mut self, event: ServerEvent<'_>, now: Time) {
        self.now = now;
        match event {
            ServerEvent::Accepted { connection } => self.accept(connection),
            ServerEvent::Received { connection, bytes } => {
                if let Some(accepted) = self.connections.get_mut(&connection)
                    && !accepted.peer.session.is_ending()
                {
                    accepted.framer.push(bytes);
                    self.take_requests(connection);
                }
            }
            ServerEvent::Closed { connection } => {
                if let Some(accepted) = self.connections.get_mut(&connection) {
                    accepted.is_client_gone = true;
                    accepted.peer.sender.lock().handle_end();
                    let callbacks = accepted.peer.session.handle_end(true);
                    self.touched.insert(connection);
                    callbacks.into_iter().for_each(|then| then());
                }
            }
            ServerEvent::CarryOut { upcall } => self.carry_out(upcall),
            ServerEvent::Retire { connection } => self.retire(connection),
            ServerEvent::Timer => {
                self.timer = None;
                let passed = self.timeouts.iter().take_while(|(at, _)| *at <= now);
                self.touched.extend(passed.map(|(_, connection)| connection));
            }
            ServerEvent::Shutdown => {
                self.is_shut_down = true;
                let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
                all.into_iter().for_each(|connection| self.retire(connection));
            }
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        if self.actions.is_empty() {
            let answered = std::mem::take(&mut *self.answered_later.lock());
            answered.into_iter().for_each(|connection| self.take_requests(connection));
            self.announce_released();
            while let Some(connection) = self.touched.pop_first() {
                self.settle(connection);
            }
            self.set_timer();
        }
        self.actions.pop_front()
    }

    /// The number of requests that have been announced and not carried out.
    pub fn upcalls_waiting(&self) -> usize {
        self.upcalls.len()
    }

    fn accept(&mut self, connection: ConnectionId) {
        let config = &self.orb.config;
        let accepted = Accepted {
            framer: Framer::sharing(config.connection.framer, self.orb.receive_memory.clone()),
            peer: Arc::new(Peer {
                sender: LaneLock::new(ServerConnection::sending(config.connection)),
                session: ServerSession::new(self.orb.requests.is_some(), false, self.now),
                id: connection,
                answered_later: self.answered_later.clone(),
            }),
            agreements: Arc::new(Session::new(&self.orb.adapter)),
            waiting: 0,
            is_client_gone: false,
            flush_at: None,
            timeout: None,
        };
        let is_full = self.connections.len() >= config.server_connections_max;
        self.connections.insert(connection, accepted);
        self.touched.insert(connection);
        if is_full || self.is_shut_down {
            self.retire(connection);
        }
    }

    /// Announces the requests that have arrived, up to the limit of calls in flight. So a client that floods
    /// the server fills only its own connection.
    fn take_requests(&mut self, connection: ConnectionId) {
        self.touched.insert(connection);
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        let (session, mut callbacks) = (&accepted.peer.session, Vec::new());
        while !session.is_ending() && session.has_room(self.orb.config.connection.calls_in_flight_max) {
            let mut place = CurrentRequest::default();
            match session.poll_work(&mut accepted.framer, &mut place) {
                Arrival::Work => {
                    let upcall = UpcallNumber(self.next_upcall);
                    self.next_upcall += 1;
                    accepted.waiting += 1;
                    self.upcalls.insert(upcall, (connection, place.into_work()));
                    self.actions.push_back(ServerAction::Upcall { upcall, connection });
                }
                Arrival::CancelRequest(id) => callbacks.extend(session.handle_cancel(id)),
                Arrival::Reply(_) => session.handle_malformed(),
                Arrival::Unanswerable(work) => {
                    let sink = EngineSink::new(&accepted.peer, &self.orb, self.now);
                    work.take_note(&self.orb, &accepted.agreements, &sink);
                }
                Arrival::End => callbacks.extend(session.handle_end(true)),
                Arrival::Nothing => {
                    session.note_unfinished(&accepted.framer);
                    break;
                }
                Arrival::Elsewhere => break,
            }
        }
        callbacks.into_iter().for_each(|then| then());
    }

    /// Announces the requests that are no longer held, in the order in which they came to be held.
    fn announce_released(&mut self) {
        let ServerEngine { held, upcalls, actions, orb, .. } = self;
        held.retain(|upcall| {
            let Some((connection, work)) = upcalls.get(upcall) else { return false };
            let is_held = work.is_held(orb);
            if !is_held {
                actions.push_back(ServerAction::Upcall { upcall: *upcall, connection: *connection });
            }
            is_held
        });
    }

    fn carry_out(&mut self, upcall: UpcallNumber) {
        if let Some(mut upcall) = self.begin_upcall(upcall) {
            upcall.run();
            self.end_upcall(upcall);
        }
    }

    /// Begins what [`ServerEvent::CarryOut`] does whole, for a driver whose servants make calls in virtual time: the engine
    /// is free while they run. `None` where the event would have no effect. The result must be given to
    /// [`end_upcall`](Self::end_upcall).
    pub fn begin_upcall(&mut self, upcall: UpcallNumber) -> Option<EngineUpcall> {
        if self.upcalls.get(&upcall).is_some_and(|(_, work)| work.is_held(&self.orb)) {
            if !self.held.contains(&upcall) {
                self.held.push(upcall);
            }
            return None;
        }
        let (connection, work) = self.upcalls.remove(&upcall)?;
        let accepted = self.connections.get_mut(&connection)?;
        let session = &accepted.peer.session;
        if session.must_send_before_upcall(self.now) {
            session.note_sent();
            let bytes = accepted.take_bytes(self.now);
            self.actions.extend(bytes.map(|bytes| ServerAction::Transmit { connection, bytes }));
        }
        accepted.waiting -= 1;
        accepted.peer.session.note_more(accepted.waiting > 0 || accepted.framer.has_message());
        let (peer, agreements) = (accepted.peer.clone(), accepted.agreements.clone());
        let (orb, now) = (self.orb.clone(), self.now);
        Some(EngineUpcall { work, peer, agreements, orb, now, is_answered: false })
    }

    /// Ends an upcall that has been begun apart.
    pub fn end_upcall(&mut self, upcall: EngineUpcall) {
        let EngineUpcall { work, peer, is_answered, .. } = upcall;
        if peer.session.must_send_after_upcall() {
            peer.session.note_sent();
        }
        let _ = peer.session.handle_carried_out(is_answered); // `settle` sees the end
        if let Some(accepted) = self.connections.get_mut(&peer.id) {
            accepted.framer.recycle(work.into_buffer());
        }
        self.take_requests(peer.id);
    }

    /// Closes a connection in order. Requests that have been announced are dropped.
    fn retire(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        accepted.peer.session.stop();
        self.upcalls.retain(|_, (of, _)| {
            let is_dropped = *of == connection;
            if is_dropped {
                let _ = accepted.peer.session.handle_carried_out(false); // `settle` sees the end
            }
            !is_dropped
        });
        accepted.waiting = 0;
        self.touched.insert(connection);
    }

    /// Sends what is to be sent, and carries out what the time and the end of a connection demand.
    fn settle(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        let limits = Limits::of(&self.orb.config);
        match accepted.peer.session.handle_timeout(limits, self.now) {
            Verdict::Keep | Verdict::Inactive => {}
            Verdict::Idle => accepted.peer.session.stop(),
            Verdict::Unfinished => return self.cut_off(connection),
        }
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        if accepted.waiting == 0 {
            accepted.peer.session.write_error(&mut accepted.peer.sender.lock());
        }
        if accepted.peer.session.is_done() {
            return self.close(connection);
        }
        let bytes = accepted.take_bytes(self.now);
        self.actions.extend(bytes.map(|bytes| ServerAction::Transmit { connection, bytes }));
        let timeout =
            [accepted.peer.session.poll_timeout(limits), accepted.flush_at].into_iter().flatten().min();
        let before = std::mem::replace(&mut accepted.timeout, timeout);
        if before != timeout {
            before.map(|at| self.timeouts.remove(&(at, connection)));
            timeout.map(|at| self.timeouts.insert((at, connection)));
        }
    }

    /// Asks the driver for a timer if it has none that fires in time.
    fn set_timer(&mut self) {
        if let Some((at, _)) = self.timeouts.first()
            && self.timer.is_none_or(|timer| *at < timer)
        {
            self.timer = Some(*at);
            self.actions.push_back(ServerAction::SetTimer { at: *at });
        }
    }

    /// Sends the remaining bytes and closes.
    fn close(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.remove(connection) else { return };
        let mut sender = accepted.peer.sender.lock();
        accepted.peer.session.write_end(&mut sender, self.orb.config.giop_version);
        let bytes = sender.transmit().take_all();
        if !bytes.is_empty() {
            self.actions.push_back(ServerAction::Transmit { connection, bytes });
        }
        if !accepted.is_client_gone {
            self.actions.push_back(ServerAction::Close { connection });
        }
    }

    /// Ends a connection at once. Servants that ask learn that their client is gone.
    fn cut_off(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.remove(connection) else { return };
        accepted.peer.sender.lock().handle_end();
        self.upcalls.retain(|_, (of, _)| *of != connection);
        self.actions.push_back(ServerAction::Close { connection });
        accepted.peer.session.handle_end(true).into_iter().for_each(|then| then());
    }

    fn remove(&mut self, connection: ConnectionId) -> Option<Accepted> {
        let accepted = self.connections.remove(&connection)?;
        accepted.timeout.map(|at| self.timeouts.remove(&(at, connection)));
        Some(accepted)
    }
}

/// A request that is carried out apart from its engine.
pub struct EngineUpcall {
    work: Work,
    peer: Arc<Peer>,
    agreements: Arc<Session>,
    orb: Arc<OrbCore>,
    now: Time,
    is_answered: bool,
}

impl EngineUpcall {
    /// Runs the servant. Its reply is written when this returns, or later if the servant says so.
    pub fn run(&mut self) {
        let _alone = WithoutWaits::begin();
        let EngineUpcall { work, peer, agreements, orb, now, .. } = self;
        let sink = EngineSink::new(peer, orb, *now);
        match peer.session.admit() {
            Admission::Run => work.carry_out(orb, agreements, &sink),
            Admission::RunWithinLimits => work.carry_out_within_limits(orb, agreements, &sink),
            Admission::Skip => {}
        }
        self.is_answered = sink.is_answered.get();
    }
}

impl fmt::Debug for EngineUpcall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineUpcall").field("connection", &self.peer.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEngine")
            .field("connections", &self.connections.len())
            .field("upcalls_waiting", &self.upcalls.len())
            .finish_non_exhaustive()
    }
}

impl Accepted {
    /// Takes the bytes that are to be sent now.
    fn take_bytes(&mut self, now: Time) -> Option<Vec<u8>> {
        let session = &self.peer.session;
        let mut sender = self.peer.sender.lock();
        if session.holds_replies() {
            let flush_at = *self.flush_at.get_or_insert(now + HELD_TIMER);
            if now < flush_at {
                return None;
            }
        }
        if self.flush_at.take().is_some() {
            session.handle_held_timer();
        }
        session.note_sent();
        let bytes = sender.transmit().take_all();
        (!bytes.is_empty()).then_some(bytes)
    }
}

/// A connection, for the replies to its requests.
struct Peer {
    sender: LaneLock<ServerConnection>,
    session: ServerSession,
    id: ConnectionId,
    answered_later: Arc<LaneLock<BTreeSet<ConnectionId>>>,
}

/// The destination of the reply to a request during its upcall.
struct EngineSink<'p> {
    peer: &'p Arc<Peer>,
    orb: &'p OrbCore,
    now: Time,
    is_answered: Cell<bool>,
}

impl<'p> EngineSink<'p> {
    fn new(peer: &'p Arc<Peer>, orb: &'p OrbCore, now: Time) -> Self {
        EngineSink { peer, orb, now, is_answered: Cell::new(false) }
    }
}

impl ReplySink for EngineSink<'_> {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let Peer { sender, session, .. } = &**self.peer;
        let mut sender = sender.lock();
        write(&mut sender);
        if !self.is_answered.replace(true) {
            session.note_answered();
        }
        // `take_bytes` sees whether the reply waits.
        let _ = session.handle_reply_written(sender.transmit().pending_bytes(), self.now);
    }

    fn break_off(&self) {
        self.with(&mut ServerConnection::protocol_error);
        self.peer.session.stop();
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let is_let_in = self.peer.session.defer(self.orb.config.connection.calls_in_flight_max);
        is_let_in.then(|| -> Box<dyn ReplySink + Send> {
            let answer = DeferredAnswer::taking_over(self.is_answered.replace(true));
            Box::new(DeferredEngineSink { peer: self.peer.clone(), answer })
        })
    }
}

/// The destination of a reply that comes after its upcall.
struct DeferredEngineSink {
    peer: Arc<Peer>,
    answer: DeferredAnswer,
}

impl ReplySink for DeferredEngineSink {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let Peer { sender, session, .. } = &*self.peer;
        if self.answer.is_wanted(session) {
            let mut sender = sender.lock();
            write(&mut sender);
            self.answer.settle(session);
            session.note_sent();
        }
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let answer = self.answer.share(&self.peer.session);
        Some(Box::new(DeferredEngineSink { peer: self.peer.clone(), answer }))
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.answer.is_cancelled(&self.peer.session, id)
    }

    fn is_client_gone(&self) -> bool {
        self.peer.session.is_client_gone()
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        self.answer.on_cancel(&self.peer.session, id, then);
    }
}

impl Drop for DeferredEngineSink {
    fn drop(&mut self) {
        let _ = self.answer.end(&self.peer.session); // `settle` sees the end
        self.peer.answered_later.lock().insert(self.peer.id);
    }
}
