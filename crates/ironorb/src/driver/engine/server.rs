//! The server side: accepted connections, requests to servants, and replies.
//!
//! The engine never runs a servant by itself. It announces a request that has arrived, and the driver says
//! when the servant runs. So a simulator can give servants a duration and an order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::framer::Framer;
use ironorb_giop::message::RequestId;

use super::{ConnectionId, Time, UpcallNumber};
use crate::Orb;
use crate::base::sync::lock;
use crate::connection::{Cancellations, Cancelled, OnCancel, Other, Stop, Watch, Work};
use crate::driver::adapter_threads::WithoutWaits;
use crate::orb::OrbCore;
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
    /// out will not be (CORBA 3.3 part 2, 9.4.7).
    Retire {
        /// The connection.
        connection: ConnectionId,
    },
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
}

/// The server side of an ORB as a state machine.
pub struct ServerEngine {
    orb: Arc<OrbCore>,
    connections: BTreeMap<ConnectionId, Accepted>,
    upcalls: BTreeMap<UpcallNumber, (ConnectionId, Work)>,
    next_upcall: u64,
    /// Requests that were to be carried out and that an adapter or its manager does not admit yet.
    held: Vec<UpcallNumber>,
    /// Connections that may have bytes to transmit.
    talking: BTreeSet<ConnectionId>,
    /// Connections whose servants have replied after their upcalls.
    answered_later: Arc<Mutex<BTreeSet<ConnectionId>>>,
    actions: VecDeque<ServerAction>,
    is_shut_down: bool,
}

/// One accepted connection.
struct Accepted {
    framer: Framer,
    sender: Arc<Sender>,
    session: Session,
    /// Requests that have been announced and not carried out.
    waiting: usize,
    ending: Option<Ending>,
}

/// Why no more requests are taken. It takes effect when the requests that arrived before have been carried
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The client has gone.
    Gone,
    /// The stream demands it.
    Stopped(Stop),
}

impl ServerEngine {
    /// Makes an engine that serves the objects of an ORB. The ORB itself needs no endpoint. Its references
    /// carry the addresses that its builder was given to [`publish`](crate::OrbBuilder::publish).
    pub fn new(orb: &Orb) -> Self {
        ServerEngine {
            orb: orb.core().clone(),
            connections: BTreeMap::new(),
            upcalls: BTreeMap::new(),
            next_upcall: 0,
            held: Vec::new(),
            talking: BTreeSet::new(),
            answered_later: Arc::default(),
            actions: VecDeque::new(),
            is_shut_down: false,
        }
    }

    /// Handles an event. `now` never goes back. Runs a servant only on [`ServerEvent::CarryOut`].
    pub fn handle(&mut self, event: ServerEvent<'_>, now: Time) {
        // Nothing on the server side has a deadline yet. Drivers give the time as they do to a client engine.
        let _ = now;
        match event {
            ServerEvent::Accepted { connection } => self.accept(connection),
            ServerEvent::Received { connection, bytes } => {
                if let Some(accepted) = self.connections.get_mut(&connection)
                    && accepted.ending.is_none()
                {
                    accepted.framer.push(bytes);
                    self.take_requests(connection);
                }
            }
            ServerEvent::Closed { connection } => {
                if let Some(accepted) = self.connections.get_mut(&connection) {
                    lock(&accepted.sender.connection).handle_end();
                    accepted.ending = Some(Ending::Gone);
                    let callbacks = accepted.sender.cancellations.end();
                    self.end_if_idle(connection);
                    callbacks.into_iter().for_each(|then| then());
                }
            }
            ServerEvent::CarryOut { upcall } => self.carry_out(upcall),
            ServerEvent::Retire { connection } => self.retire(connection),
            ServerEvent::Shutdown => {
                self.is_shut_down = true;
                let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
                all.into_iter().for_each(|connection| self.retire(connection));
            }
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let answered = std::mem::take(&mut *lock(&self.answered_later));
        for connection in answered {
            self.talking.insert(connection);
            self.take_requests(connection);
        }
        self.announce_released();
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some(connection) = self.talking.pop_first() {
            if let Some(accepted) = self.connections.get_mut(&connection)
                && let Some(bytes) = accepted.take_bytes()
            {
                return Some(ServerAction::Transmit { connection, bytes });
            }
        }
        None
    }

    /// The number of requests that have been announced and not carried out.
    pub fn upcalls_waiting(&self) -> usize {
        self.upcalls.len()
    }

    fn accept(&mut self, connection: ConnectionId) {
        let sender = ServerConnection::sending(self.orb.config.connection);
        let framer = Framer::sharing(self.orb.config.connection.framer, self.orb.receive_memory.clone());
        let accepted = Accepted {
            framer,
            sender: Arc::new(Sender {
                connection: Mutex::new(sender),
                id: connection,
                outstanding: AtomicUsize::new(0),
                answered_later: self.answered_later.clone(),
                cancellations: Cancellations::default(),
            }),
            session: Session::new(&self.orb.adapter),
            waiting: 0,
            ending: None,
        };
        let is_full = self.connections.len() >= self.orb.config.server_connections_max;
        self.connections.insert(connection, accepted);
        if is_full || self.is_shut_down {
            self.retire(connection);
        }
    }

    /// Announces the requests that have arrived, up to the limit of calls in flight. So a client that floods
    /// the server fills only its own connection.
    fn take_requests(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        let mut callbacks = Vec::new();
        while accepted.ending.is_none()
            && accepted.in_progress() < self.orb.config.connection.calls_in_flight_max
        {
            match Work::next(&mut accepted.framer) {
                Ok(Some(work)) => {
                    accepted.sender.cancellations.begins(work.id());
                    let upcall = UpcallNumber(self.next_upcall);
                    self.next_upcall += 1;
                    accepted.waiting += 1;
                    self.upcalls.insert(upcall, (connection, work));
                    self.actions.push_back(ServerAction::Upcall { upcall, connection });
                }
                Ok(None) => break,
                Err(Other::Cancelled(id)) => {
                    let is_in_progress = accepted.in_progress() > 0;
                    if let Cancelled::Notify(then) = accepted.sender.cancellations.cancel(id, is_in_progress)
                    {
                        callbacks.push(then);
                    }
                }
                Err(Other::Stop(stop)) => {
                    accepted.ending = Some(Ending::Stopped(stop));
                    callbacks.extend(accepted.sender.cancellations.end());
                }
            }
        }
        self.end_if_idle(connection);
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
        if self.upcalls.get(&upcall).is_some_and(|(_, work)| work.is_held(&self.orb)) {
            if !self.held.contains(&upcall) {
                self.held.push(upcall);
            }
            return;
        }
        let Some((connection, mut work)) = self.upcalls.remove(&upcall) else { return };
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        accepted.waiting -= 1;
        let _alone = WithoutWaits::begin();
        work.carry_out_within_limits(&self.orb, &accepted.session, &EngineSink(accepted.sender.clone()));
        accepted.framer.recycle(work.into_buffer());
        if lock(&accepted.sender.connection).is_ended() {
            // The request was malformed, or the client has gone.
            accepted.ending.get_or_insert(Ending::Stopped(Stop::ProtocolError));
        }
        self.talking.insert(connection);
        self.take_requests(connection);
    }

    fn retire(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        if accepted.ending != Some(Ending::Gone) {
            lock(&accepted.sender.connection).close(self.orb.config.giop_version);
            self.close(connection);
        }
    }

    /// Ends a connection when all requests from before its end have been carried out.
    fn end_if_idle(&mut self, connection: ConnectionId) {
        let Some(accepted) = self.connections.get_mut(&connection) else { return };
        match accepted.ending {
            Some(ending) if accepted.waiting == 0 && !accepted.owes_answers() => match ending {
                Ending::Gone => {
                    self.connections.remove(&connection);
                }
                Ending::Stopped(Stop::CloseConnection) => self.close(connection),
                Ending::Stopped(Stop::ProtocolError) => {
                    lock(&accepted.sender.connection).protocol_error();
                    self.close(connection);
                }
            },
            _ => {}
        }
    }

    /// Sends the remaining bytes and closes. Waiting requests are dropped.
    fn close(&mut self, connection: ConnectionId) {
        let Some(mut accepted) = self.connections.remove(&connection) else { return };
        if let Some(bytes) = accepted.take_bytes() {
            self.actions.push_back(ServerAction::Transmit { connection, bytes });
        }
        self.actions.push_back(ServerAction::Close { connection });
        self.upcalls.retain(|_, (of, _)| *of != connection);
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
    /// True when servants have taken requests and not answered them yet.
    fn owes_answers(&self) -> bool {
        self.sender.outstanding.load(Ordering::SeqCst) > 0
    }

    /// The number of requests that have been announced and not answered.
    fn in_progress(&self) -> usize {
        self.waiting + self.sender.outstanding.load(Ordering::SeqCst)
    }

    fn take_bytes(&mut self) -> Option<Vec<u8>> {
        let bytes = lock(&self.sender.connection).transmit().take_all();
        (!bytes.is_empty()).then_some(bytes)
    }
}

/// The sending part of a connection.
struct Sender {
    connection: Mutex<ServerConnection>,
    id: ConnectionId,
    /// The number of replies that come after their upcalls.
    outstanding: AtomicUsize,
    answered_later: Arc<Mutex<BTreeSet<ConnectionId>>>,
    cancellations: Cancellations,
}

/// The destination of the replies of a connection.
struct EngineSink(Arc<Sender>);

impl ReplySink for EngineSink {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        write(&mut lock(&self.0.connection));
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        self.0.outstanding.fetch_add(1, Ordering::SeqCst);
        Some(Box::new(DeferredEngineSink { sender: self.0.clone(), watch: Watch::default() }))
    }
}

/// The destination of a reply that comes after its upcall.
struct DeferredEngineSink {
    sender: Arc<Sender>,
    watch: Watch,
}

impl ReplySink for DeferredEngineSink {
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        if !self.watch.end(&self.sender.cancellations) {
            write(&mut lock(&self.sender.connection));
        }
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        EngineSink(self.sender.clone()).later()
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.watch.is_cancelled(&self.sender.cancellations, id)
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        self.watch.on_cancel(&self.sender.cancellations, id, then);
    }
}

impl Drop for DeferredEngineSink {
    fn drop(&mut self) {
        self.watch.end(&self.sender.cancellations);
        self.sender.outstanding.fetch_sub(1, Ordering::SeqCst);
        lock(&self.sender.answered_later).insert(self.sender.id);
    }
}
