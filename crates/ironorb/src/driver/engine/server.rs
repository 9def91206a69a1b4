//! The server side: accepted connections, requests to servants, and replies.
//!
//! The engine never runs a servant by itself. It announces a request that has arrived, and the driver says
//! when the servant runs. So a simulator can give servants a duration and an order.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_giop::connection::ConnectionConfig;
use ironorb_giop::framer::{BUFFER_BYTES, Buffer, Framer};

use super::tables::{ConnectionQueue, NumberTable};
use super::upcall::{Announced, EngineSink, EngineUpcall, Peer, WrittenApart};
use super::{ClientEngine, ConnectionId, Time, UpcallNumber};
use crate::connection::{
    Arrival, Backlog, CurrentRequest, HELD_TIMER, Limits, ServerSession, Stall, Verdict,
};
use crate::driver::orb_core::OrbCore;
use crate::poa::adapter::Session;

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
    /// The client takes no more bytes. Replies that are written from now on stay in the engine, and it takes no more
    /// requests of the connection: bytes that come meanwhile only take memory. A client for which no
    /// [`Writable`](Self::Writable) comes within [`transmit_timeout`](crate::OrbConfig::transmit_timeout) is cut off.
    Blocked {
        /// The connection.
        connection: ConnectionId,
    },
    /// The client takes bytes again.
    Writable {
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
    /// Each in memory of its own: a table with free places costs a word for each.
    connections: NumberTable<ConnectionId, Box<Accepted>>,
    announced: Announced,
    /// The engine that may call clients over the connections that they have made.
    client: Weak<ClientEngine>,
    /// Connections whose sessions have not been asked what follows from the last events.
    touched: ConnectionQueue,
    /// Connections whose servants have replied after their upcalls, or over which calls leave.
    written: Arc<WrittenApart>,
    /// When sessions want to be looked at.
    timeouts: BTreeSet<(Time, ConnectionId)>,
    /// The timer that the driver has been asked for.
    timer: Option<Time>,
    now: Time,
    actions: VecDeque<ServerAction>,
    /// The receive buffer of whichever connection receives.
    idle_buffer: Option<Buffer>,
    is_shut_down: bool,
}

/// One accepted connection.
struct Accepted {
    framer: Framer,
    peer: Arc<Peer>,
    /// What the client and the server have agreed upon.
    agreements: Arc<Session>,
    /// Requests that have been announced and not carried out.
    waiting: Backlog,
    /// The client has closed the connection, or it has failed.
    is_client_gone: bool,
    /// Set while the client takes no bytes.
    stall: Option<Stall>,
    /// When replies that wait for others leave at the latest.
    flush_at: Option<Time>,
    /// Its entry in the engine's `timeouts`.
    timeout: Option<Time>,
}

impl ServerEngine {
    pub(crate) fn of(orb: &Arc<OrbCore>, client: Weak<ClientEngine>) -> Self {
        ServerEngine {
            orb: orb.clone(),
            connections: NumberTable::default(),
            announced: Announced::default(),
            client,
            touched: ConnectionQueue::default(),
            written: Arc::default(),
            timeouts: BTreeSet::new(),
            timer: None,
            now: Time::ZERO,
            actions: VecDeque::new(),
            idle_buffer: None,
            is_shut_down: false,
        }
    }

    /// Handles an event. `now` never goes back. Runs a servant only on [`ServerEvent::CarryOut`].
    pub fn handle(&mut self, event: ServerEvent<'_>, now: Time) {
        self.now = now;
        self.orb.adapter_threads.note_engine_time(now);
        match event {
            ServerEvent::Accepted { connection } => self.accept(connection),
            ServerEvent::Received { connection, bytes } => {
                if let Some(accepted) = self.connections.get_mut(&connection)
                    && !accepted.peer.session.is_ending()
                {
                    accepted.framer.borrow_buffer(&mut self.idle_buffer);
                    accepted.framer.push_apart(bytes);
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
            ServerEvent::Blocked { connection } => {
                if let Some(accepted) = self.connections.get_mut(&connection) {
                    accepted.peer.session.begin_stall();
                    accepted.stall = Some(Stall::default());
                    self.touched.insert(connection);
                }
            }
            ServerEvent::Writable { connection } => {
                if let Some(accepted) = self.connections.get_mut(&connection) {
                    accepted.peer.session.end_stall();
                    accepted.stall = None;
                    self.take_requests(connection);
                }
            }
            ServerEvent::CarryOut { upcall } => self.carry_out(upcall),
            ServerEvent::Retire { connection } => self.retire(connection),
            ServerEvent::Timer => {
                self.timer = None;
                let passed = self.timeouts.iter().take_while(|(at, _)| *at <= now);
                self.touched.extend(passed.map(|(_, connection)| *connection));
            }
            ServerEvent::Shutdown => {
                self.is_shut_down = true;
                let mut all: Vec<ConnectionId> = self.connections.keys().copied().collect();
                all.sort_unstable();
                all.into_iter().for_each(|connection| self.retire(connection));
            }
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        if self.actions.is_empty() {
            while let Some(connection) = self.written.take_next() {
                self.take_requests(connection);
            }
            let released = self.announced.take_released().into_iter();
            self.actions
                .extend(released.map(|(upcall, connection)| ServerAction::Upcall { upcall, connection }));
            while let Some(connection) = self.touched.pop_first() {
                self.settle(connection);
            }
            self.set_timer();
        }
        self.actions.pop_front()
    }

    /// The number of requests that have been announced and not carried out.
    pub fn upcalls_waiting(&self) -> usize {
        self.announced.len()
    }

    fn accept(&mut self, connection: ConnectionId) {
        let config = &self.orb.config;
        let accepted = Accepted {
            framer: Framer::sharing(
                config.connection.framer,
                self.orb.default_server_lane().receive_memory.clone(),
            ),
            peer: Peer::new(
                connection,
                config.connection,
                ServerSession::new(self.orb.default_server_lane().requests.is_some(), false, self.now),
                &self.written,
                &self.client,
            ),
            agreements: Arc::new(Session::new(&self.orb.adapter)),
            waiting: Backlog::default(),
            is_client_gone: false,
            stall: None,
            flush_at: None,
            timeout: None,
        };
        let is_full = self.connections.len() >= config.server_connections_max;
        self.connections.insert(connection, Box::new(accepted));
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
        let config = &self.orb.config.connection;
        while !session.is_ending() && accepted.may_take(config) {
            let mut place = CurrentRequest::default();
            match session.poll_work(&mut accepted.framer, &mut place) {
                Arrival::Work => {
                    let work = place.into_work();
                    accepted.waiting.add(work.bytes());
                    let (peer, agreements) = (&accepted.peer, &accepted.agreements);
                    let upcall = EngineUpcall::new(work, peer, agreements, &self.orb, self.now);
                    let upcall = self.announced.add(upcall);
                    self.actions.push_back(ServerAction::Upcall { upcall, connection });
                }
                Arrival::CancelRequest(id) => callbacks.extend(session.handle_cancel(id)),
                Arrival::Reply(message) => {
                    let caller = accepted.peer.caller();
                    if !caller
                        .is_some_and(|(engine, called_as)| engine.take_reply(called_as, message, self.now))
                    {
                        session.handle_malformed();
                    }
                }
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
        if let Some(buffer) = accepted.framer.take_idle_buffer() {
            self.idle_buffer = Some(buffer);
        }
        callbacks.into_iter().for_each(|then| then());
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
        let upcall = self.announced.take(upcall, self.now)?;
        let connection = upcall.peer.id;
        let accepted = self.connections.get_mut(&connection)?;
        let session = &accepted.peer.session;
        if session.must_send_before_upcall(self.now) {
            session.note_sent();
            let bytes = accepted.take_bytes(self.now);
            self.actions.extend(bytes.map(|bytes| ServerAction::Transmit { connection, bytes }));
        }
        accepted.waiting.remove(upcall.work.bytes());
        accepted.peer.session.note_more(!accepted.waiting.is_empty() || accepted.framer.has_message());
        Some(upcall)
    }

    /// Ends an upcall that has been begun apart.
    pub fn end_upcall(&mut self, upcall: EngineUpcall) {
        let EngineUpcall { work, peer, is_answered, .. } = upcall;
        if peer.session.must_send_after_upcall() {
            peer.session.note_sent();
        }
        let _ = peer.session.handle_carried_out(is_answered); // `settle` sees the end
        if let Some(accepted) = self.connections.get_mut(&peer.id) {
            let buffer = work.into_buffer();
            if buffer.len() > BUFFER_BYTES {
                accepted.framer.recycle(buffer); // small ones have their messages' size
            }
        }
        self.take_requests(peer.id);
    }

    /// Closes a connection in order. Requests that have been announced are dropped.
    fn retire(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        accepted.peer.session.stop();
        for _ in 0..self.announced.drop_of(connection) {
            let _ = accepted.peer.session.handle_carried_out(false); // `settle` sees the end
        }
        accepted.waiting = Backlog::default();
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
        if accepted.peer.session.is_ending() {
            accepted.peer.end_calls(self.now);
        }
        if accepted.waiting.is_empty() {
            accepted.peer.session.write_error(&mut accepted.peer.sender.lock());
        }
        let given_up_at = accepted.given_up_at(self.now, self.orb.config.transmit_timeout);
        if given_up_at.is_some_and(|at| at <= self.now) {
            return self.cut_off(connection);
        }
        if accepted.peer.session.is_done() && !accepted.is_kept_waiting() {
            return self.close(connection);
        }
        let bytes = accepted.take_bytes(self.now);
        self.actions.extend(bytes.map(|bytes| ServerAction::Transmit { connection, bytes }));
        let timeout = [accepted.peer.session.poll_timeout(limits), accepted.flush_at, given_up_at];
        let timeout = timeout.into_iter().flatten().min();
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
        accepted.peer.end_calls(self.now);
        self.announced.drop_of(connection);
        self.actions.push_back(ServerAction::Close { connection });
        accepted.peer.session.handle_end(true).into_iter().for_each(|then| then());
    }

    fn remove(&mut self, connection: ConnectionId) -> Option<Box<Accepted>> {
        let accepted = self.connections.remove(&connection)?;
        accepted.timeout.map(|at| self.timeouts.remove(&(at, connection)));
        Some(accepted)
    }
}

impl fmt::Debug for ServerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEngine")
            .field("connections", &self.connections.len())
            .field("upcalls_waiting", &self.announced.len())
            .finish_non_exhaustive()
    }
}

impl Accepted {
    /// Whether one more request may be announced. While a servant waits for the client more are than the client may have
    /// in flight, because the reply that ends the wait may come behind them.
    fn may_take(&self, config: &ConnectionConfig) -> bool {
        let session = &self.peer.session;
        if self.stall.is_some() {
            return false;
        }
        session.has_room(config.calls_in_flight_max)
            || session.has_room(usize::MAX) && self.waiting.has_room(0, config) && self.peer.is_called()
    }

    /// When the client is given up, if it goes on taking nothing.
    fn given_up_at(&mut self, now: Time, timeout: Duration) -> Option<Time> {
        let stall = self.stall.as_mut()?;
        let position = self.peer.sender.lock().transmit().sent_position();
        Some(stall.given_up_at(position, now, timeout))
    }

    /// Whether bytes wait until the client takes them.
    fn is_kept_waiting(&self) -> bool {
        let is_blocked = self.stall.is_some() && !self.is_client_gone;
        is_blocked && self.peer.sender.lock().transmit().pending_bytes() > 0
    }

    /// Takes the bytes that are to be sent now.
    fn take_bytes(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.stall.is_some() {
            return None;
        }
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
