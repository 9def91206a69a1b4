//! What a client engine knows: its calls, its connections, and what is due. Nothing here runs code of the program.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ironorb_giop::connection::{CallState, ClientConnection, ConnectionEnd, Side};
use ironorb_giop::framer::Buffer;
use ironorb_giop::message::{Message, RequestTarget};

use super::callbacks::{Callbacks, Unserved};
use super::refused;
use crate::base::config::OnewayBatching;
use crate::base::time::Time;
use crate::call::remote_call::{CallEvent, ConnectFailure};
use crate::connection::{Batch, BatchDue, ClientActivity, OnCancel};
use crate::driver::engine::call::{EngineCall, Stage};
use crate::driver::engine::events::ClientAction;
use crate::driver::engine::tables::{ConnectionQueue, NumberTable};
use crate::driver::engine::upcall::{Announced, Peer, WrittenApart};
use crate::driver::engine::{CallNumber, ConnectionId};
use crate::driver::orb_core::OrbCore;
use crate::object::server_profile::{ServerEndpoint, ServerTarget};

#[derive(Default)]
pub(super) struct State {
    pub(super) calls: NumberTable<CallNumber, Box<EngineCall>>,
    pub(super) links: NumberTable<ConnectionId, Link>,
    /// Each connection of `links`, by its endpoint.
    pub(super) endpoints: NumberTable<Endpoint, ConnectionId>,
    /// Connections that clients of this ORB have made, by the addresses at which their objects are called over them. The
    /// newest is the last.
    pub(super) accepted: BTreeMap<(String, u16), Vec<ConnectionId>>,
    pub(super) next_connection: u64,
    /// How many calls of stubs have begun.
    pub(super) stub_calls: u64,
    pub(super) deadlines: BTreeSet<(Time, Due)>,
    /// The time to which the driver's timer is set.
    pub(super) timer: Option<Time>,
    /// Connections that may have bytes to transmit.
    pub(super) talking: ConnectionQueue,
    /// Requests of peers over connections of this engine.
    pub(super) announced: Announced,
    /// Connections on which such a request was answered after its upcall.
    pub(super) written: Arc<WrittenApart>,
    /// What follows from events that came to the server engine.
    pub(super) aftermath: Aftermath,
    pub(super) actions: VecDeque<ClientAction>,
    /// The receive buffer of whichever connection receives.
    idle_buffer: Option<Buffer>,
    /// The time of the last event.
    pub(super) now: Time,
    pub(super) is_shut_down: bool,
}

/// What follows from an event while nothing is locked.
#[derive(Default)]
pub(super) struct Aftermath {
    /// The answers of calls that are on no connection any more.
    pub(super) answers: Vec<(CallNumber, Box<EngineCall>, CallState)>,
    /// Callbacks of servants whose callers no longer wait.
    pub(super) cancelled: Vec<OnCancel>,
    /// Calls that need not wait any longer until a server has taken earlier bytes.
    pub(super) unblocked: Vec<CallNumber>,
}

/// The number of an endpoint, and which of the connections to it.
pub(super) type Endpoint = (u64, usize);

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Call(CallNumber),
    Connect(ConnectionId),
    /// Oneways that wait to leave together.
    Batch(ConnectionId),
    /// A connection may have been idle for long enough.
    Idle(ConnectionId),
}

/// A connection, or an attempt to make one.
pub(super) struct Link {
    pub(super) origin: Origin,
    pub(super) batch: Batch,
    pub(super) state: LinkState,
    pub(super) callbacks: Option<Box<Callbacks>>,
    /// When a call was sent or answered last.
    pub(super) used_at: Time,
    /// The server takes no bytes.
    pub(super) is_blocked: bool,
    /// Calls that wait until it has taken some.
    blocked_calls: Vec<CallNumber>,
}

/// Who has made a connection.
pub(super) enum Origin {
    /// This engine. All drivers share what is known of an endpoint.
    Own { endpoint: Endpoint, known: Arc<dyn ServerEndpoint> },
    /// A client of this ORB: the server engine sends what calls write.
    Accepted(Arc<Peer>),
}

pub(super) enum LinkState {
    Connecting {
        until: Time,
        /// The calls in the order in which they came.
        waiting: Vec<CallNumber>,
    },
    /// A connection that has not ended. One that ends is removed at once.
    Open(Box<ClientConnection<CallNumber>>),
}

impl State {
    pub(super) fn poll_action(&mut self) -> Option<ClientAction> {
        if self.actions.is_empty() {
            while let Some(connection) = self.written.take_next() {
                self.pass_on_replies(connection);
            }
            let released = self.announced.take_released().into_iter();
            self.actions
                .extend(released.map(|(upcall, connection)| ClientAction::Upcall { upcall, connection }));
        }
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some(connection) = self.talking.pop_first() {
            if let Some(Link { state: LinkState::Open(open), is_blocked: false, blocked_calls, .. }) =
                self.links.get_mut(&connection)
                && let Some(bytes) = take_bytes(open)
            {
                self.aftermath.unblocked.append(blocked_calls);
                return Some(ClientAction::Transmit { connection, bytes });
            }
        }
        let next = match self.aftermath.is_empty() {
            true => self.deadlines.first().map(|(at, _)| *at),
            false => Some(self.now),
        };
        if next == self.timer {
            return None;
        }
        self.timer = next;
        next.map(|at| ClientAction::SetTimer { at })
    }

    /// Begins to handle an event.
    pub(super) fn begin(&mut self, now: Time) -> Aftermath {
        self.now = now;
        std::mem::take(&mut self.aftermath)
    }

    /// Leaves what follows to the next event, for which it asks.
    pub(super) fn put_off(&mut self, aftermath: Aftermath, now: Time) {
        self.now = now;
        self.aftermath.answers.extend(aftermath.answers);
        self.aftermath.cancelled.extend(aftermath.cancelled);
        self.aftermath.unblocked.extend(aftermath.unblocked);
    }

    /// Has a connection send what is pending: with the next action, or through the server engine.
    pub(super) fn talk(&mut self, connection: ConnectionId) {
        match self.links.get_mut(&connection) {
            Some(Link { state: LinkState::Open(open), origin: Origin::Accepted(peer), .. }) => {
                take_bytes(open).inspect(|bytes| peer.send(bytes));
            }
            _ => self.talking.insert(connection),
        }
    }

    /// Keeps a call that waits.
    pub(super) fn keep(&mut self, call: CallNumber, engine_call: Box<EngineCall>) {
        if let Some(at) = engine_call.deadline() {
            self.deadlines.insert((at, Due::Call(call)));
        }
        self.calls.insert(call, engine_call);
    }

    pub(super) fn next_due(&mut self, now: Time) -> Option<Due> {
        match self.deadlines.first() {
            Some(&(at, due)) if at <= now => {
                self.deadlines.pop_first();
                Some(due)
            }
            _ => None,
        }
    }

    /// Sends a request. `None` when the call waits, for its answer or for a connection.
    pub(super) fn send(
        &mut self,
        orb: &Arc<OrbCore>,
        call: CallNumber,
        engine_call: &mut EngineCall,
        index: usize,
        now: Time,
    ) -> Option<CallEvent> {
        if self.is_shut_down {
            return Some(CallEvent::NotConnected(ConnectFailure::ShutDown));
        }
        let (server, request) = match target_of(engine_call, index) {
            Ok(target) => target,
            Err(event) => return Some(event),
        };
        let endpoint = endpoint_of(orb, &server, engine_call);
        let found = self.connection_to(endpoint, &server).and_then(|id| Some((id, self.links.get_mut(&id)?)));
        let Some((connection, link)) = found else { return Some(CallEvent::Unconnected) };
        let open = match &mut link.state {
            LinkState::Open(open) => open,
            LinkState::Connecting { waiting, .. } => {
                waiting.push(call);
                engine_call.stage = Stage::Connecting(connection);
                return None;
            }
        };
        if open.transmit().pending_bytes() > orb.config.transmit_bytes_max {
            link.blocked_calls.push(call);
            engine_call.stage = Stage::Blocked(connection);
            return None;
        }
        link.used_at = now;
        if let Some(callbacks) = &mut link.callbacks {
            callbacks.invite(open, orb);
        }
        let is_first = open.transmit().pending_bytes() == 0;
        let written = engine_call.write(open, &request, now);
        if let Ok(Some(id)) = written {
            open.set_waker(id, call);
        }
        let batching = engine_call.batching.filter(|_| matches!(written, Ok(None)));
        if !batching.is_some_and(|batching| self.hold_oneway(connection, is_first, &batching, now)) {
            self.talk(connection);
        }
        match written {
            Ok(None) => Some(CallEvent::Sent),
            Ok(Some(id)) => {
                engine_call.stage = Stage::InFlight(connection, id);
                engine_call.version = request.version();
                None
            }
            Err(failure) => Some(CallEvent::Failed(failure)),
        }
    }

    /// Lets a oneway that has been written wait for others; `is_first` says that nothing was pending. False when it must
    /// be sent now.
    pub(super) fn hold_oneway(
        &mut self,
        connection: ConnectionId,
        is_first: bool,
        batching: &OnewayBatching,
        now: Time,
    ) -> bool {
        let Some(Link { state: LinkState::Open(open), batch, origin: Origin::Own { .. }, .. }) =
            self.links.get_mut(&connection)
        else {
            return false;
        };
        if is_first {
            batch.start();
        }
        if batch.is_full(open.transmit().pending_bytes(), batching) {
            return false;
        }
        if is_first || batch.is_overtaken(batching) {
            let due = batch.set_due(now, batching);
            self.deadlines.extend(due.map(|at| (at, Due::Batch(connection))));
        }
        batch.add(open.transmit().end_position());
        true
    }

    pub(super) fn batch_is_due(&mut self, connection: ConnectionId, now: Time) {
        let Some(Link { state: LinkState::Open(open), batch, .. }) = self.links.get_mut(&connection) else {
            return;
        };
        let waits = batch.waits(open.transmit().sent_position());
        let BatchDue { is_sent, again_at } = batch.on_time(waits, now);
        if is_sent {
            self.talk(connection);
        }
        self.deadlines.extend(again_at.map(|at| (at, Due::Batch(connection))));
    }

    /// Lets the bytes for a server leave, or keeps them.
    pub(super) fn set_blocked(&mut self, connection: ConnectionId, is_blocked: bool) {
        if let Some(link) = self.links.get_mut(&connection) {
            link.is_blocked = is_blocked && matches!(link.origin, Origin::Own { .. });
            self.talk(connection);
        }
    }

    /// Closes a connection if it has been idle for so long, and otherwise looks again later.
    pub(super) fn close_if_idle(&mut self, connection: ConnectionId, limit: Duration, now: Time) {
        let Some(link) = self.links.get_mut(&connection) else { return };
        let LinkState::Open(open) = &mut link.state else { return };
        let activity = ClientActivity {
            used_at: link.used_at,
            calls_in_flight: open.calls_in_flight(),
            pending_bytes: open.transmit().pending_bytes(),
            is_bidirectional: link.callbacks.is_some(),
        };
        match activity.closes_at(limit) {
            Some(at) if at <= now => {
                let ended =
                    self.end(connection, |open, wake| open.handle_end(ConnectionEnd::Closed, wake), true);
                self.put_off(ended, now);
                self.actions.push_back(ClientAction::Close { connection });
            }
            closes_at => {
                let at = closes_at.unwrap_or(now + limit);
                self.deadlines.insert((at, Due::Idle(connection)));
            }
        }
    }

    /// Has all connections send what is pending.
    pub(super) fn flush(&mut self) {
        self.talking.extend(self.links.keys().copied());
    }

    /// Connects to an address, for a call that waits until then.
    pub(super) fn connect(
        &mut self,
        orb: &OrbCore,
        call: CallNumber,
        engine_call: &mut EngineCall,
        index: usize,
        until: Option<Time>,
        now: Time,
    ) -> Option<CallEvent> {
        let (server, _) = match target_of(engine_call, index) {
            Ok(target) => target,
            Err(event) => return Some(event),
        };
        let endpoint = endpoint_of(orb, &server, engine_call);
        let limit = now + orb.config.connect_timeout;
        let until = until.map_or(limit, |until| until.min(limit));
        let (host, port) = server.endpoint.address().tcp().unwrap_or_default();
        let host = host.to_owned();
        let origin = Origin::Own { endpoint, known: server.endpoint };
        let state = LinkState::Connecting { until, waiting: vec![call] };
        let connection = self.add(Link::new(origin, state, now));
        self.deadlines.insert((until, Due::Connect(connection)));
        self.endpoints.insert(endpoint, connection);
        self.actions.push_back(ClientAction::Connect { connection, host, port });
        engine_call.stage = Stage::Connecting(connection);
        None
    }

    /// Takes the news that a connection is there. Returns the calls that have waited for it.
    pub(super) fn open(
        &mut self,
        connection: ConnectionId,
        orb: &Arc<OrbCore>,
        now: Time,
    ) -> Vec<CallNumber> {
        let Some(link) = self.links.get_mut(&connection) else { return Vec::new() };
        let LinkState::Connecting { until, waiting } = &mut link.state else { return Vec::new() };
        let (until, waiting) = (*until, std::mem::take(waiting));
        let open = match orb.config.bidirectional {
            true => ClientConnection::bidirectional(orb.config.connection, Side::Originator),
            false => ClientConnection::new(orb.config.connection),
        };
        link.callbacks = open.is_bidirectional().then(|| Callbacks::new(connection, orb, &self.written, now));
        link.state = LinkState::Open(Box::new(open));
        link.used_at = now;
        link.known().inspect(|known| known.note_connected());
        self.deadlines.remove(&(until, Due::Connect(connection)));
        if let Some(limit) = orb.config.client_idle_timeout
            && link.callbacks.is_none()
        {
            self.deadlines.insert((now + limit, Due::Idle(connection)));
        }
        waiting
    }

    /// Gives up a connection attempt. Returns the calls that have waited for it.
    pub(super) fn give_up_connecting(&mut self, connection: ConnectionId, now: Time) -> Vec<CallNumber> {
        let Some(Link { state: LinkState::Connecting { until, waiting }, .. }) =
            self.links.get_mut(&connection)
        else {
            return Vec::new();
        };
        let (until, waiting) = (*until, std::mem::take(waiting));
        self.deadlines.remove(&(until, Due::Connect(connection)));
        if let Some(link) = self.forget(connection) {
            link.known().inspect(|known| known.note_failed(now));
        }
        waiting
    }

    pub(super) fn forget(&mut self, connection: ConnectionId) -> Option<Link> {
        let link = self.links.remove(&connection)?;
        match &link.origin {
            Origin::Own { endpoint, .. } => drop(self.endpoints.remove(endpoint)),
            Origin::Accepted(_) => self.accepted.retain(|_, connections| {
                connections.retain(|other| *other != connection);
                !connections.is_empty()
            }),
        }
        Some(link)
    }

    pub(super) fn receive(
        &mut self,
        orb: &Arc<OrbCore>,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Aftermath {
        let Some(Link { state: LinkState::Open(open), callbacks, .. }) = self.links.get_mut(&connection)
        else {
            return Aftermath::default();
        };
        let Some(mut framer) = open.take_framer() else { return Aftermath::default() };
        framer.borrow_buffer(&mut self.idle_buffer);
        framer.push_apart(bytes);
        let mut woken = Vec::new();
        // After an error the connection has ended, and its last message waits to be sent.
        let handled = open.handle_input(framer, |call| woken.push(call));
        let mut cancelled = Vec::new();
        while let Some(incoming) = open.poll_incoming()
            && let Some(callbacks) = callbacks
        {
            match callbacks.handle_incoming(incoming, orb, self.now) {
                Ok(upcall) => {
                    let upcall = self.announced.add(upcall);
                    self.actions.push_back(ClientAction::Upcall { upcall, connection });
                }
                Err(Unserved::Cancel(then)) => cancelled.push(then),
                Err(Unserved::Nothing) => {}
                Err(Unserved::TooMany) => open.handle_end(ConnectionEnd::Lost, |call| woken.push(call)),
            }
        }
        let has_ended = open.end().is_some();
        if let Some(buffer) = open.take_idle_buffer() {
            self.idle_buffer = Some(buffer);
        }
        let answers = self.take_answers(connection, woken);
        if has_ended {
            cancelled.extend(self.remove_ended(connection, handled.is_err()));
            self.actions.push_back(ClientAction::Close { connection });
        }
        Aftermath { answers, cancelled, ..Aftermath::default() }
    }

    pub(super) fn take_reply(&mut self, connection: ConnectionId, reply: Message, now: Time) -> bool {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return false;
        };
        let mut woken = Vec::new();
        let handled = open.handle_reply(reply, |call| woken.push(call));
        let answers = self.take_answers(connection, woken);
        self.put_off(Aftermath { answers, ..Aftermath::default() }, now);
        handled.is_ok()
    }

    /// Passes on the replies to the peer's requests over a connection of this engine.
    pub(super) fn pass_on_replies(&mut self, connection: ConnectionId) {
        let Some(Link { state: LinkState::Open(open), callbacks: Some(callbacks), .. }) =
            self.links.get_mut(&connection)
        else {
            return;
        };
        let mut sender = callbacks.peer.sender.lock();
        callbacks.peer.session.note_sent();
        let (replies, is_over) = (sender.transmit().take_all(), sender.is_ended());
        drop(sender);
        open.transmit().buffer().extend_from_slice(&replies);
        self.talk(connection);
        if is_over {
            let ended = self.end(connection, |open, wake| open.handle_end(ConnectionEnd::Local, wake), true);
            self.put_off(ended, self.now);
            self.actions.push_back(ClientAction::Close { connection });
        }
    }

    /// Numbers a connection.
    pub(super) fn add(&mut self, link: Link) -> ConnectionId {
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.links.insert(connection, link);
        connection
    }

    pub(super) fn is_own(&self, connection: ConnectionId) -> bool {
        matches!(self.links.get(&connection), Some(Link { origin: Origin::Own { .. }, .. }))
    }

    /// The connection for calls to an endpoint. One that the endpoint itself has made serves where there is no other.
    pub(super) fn connection_to(&self, endpoint: Endpoint, target: &ServerTarget) -> Option<ConnectionId> {
        let is_usable = |connection: &&ConnectionId| match self.links.get(connection).map(|link| &link.origin)
        {
            Some(Origin::Accepted(peer)) => !peer.session.is_ending(),
            _ => false,
        };
        let own = self.endpoints.get(&endpoint);
        own.or_else(|| {
            if self.accepted.is_empty() {
                return None;
            }
            // An older one may have lost its client without notice.
            let (host, port) = target.endpoint.address().tcp()?;
            let accepted = self.accepted.get(&(host.to_owned(), port))?;
            accepted.iter().rev().find(is_usable)
        })
        .copied()
    }

    pub(super) fn end(
        &mut self,
        connection: ConnectionId,
        end: impl FnOnce(&mut ClientConnection<CallNumber>, &mut dyn FnMut(CallNumber)),
        is_writable: bool,
    ) -> Aftermath {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return Aftermath::default();
        };
        let mut woken = Vec::new();
        end(open, &mut |call| woken.push(call));
        let answers = self.take_answers(connection, woken);
        let cancelled = self.remove_ended(connection, is_writable);
        Aftermath { answers, cancelled, ..Aftermath::default() }
    }

    /// Removes a connection that has ended. What is pending is sent if that is still possible. Returns the callbacks of
    /// servants whose caller was the peer.
    pub(super) fn remove_ended(&mut self, connection: ConnectionId, is_writable: bool) -> Vec<OnCancel> {
        let Some(link) = self.forget(connection) else { return Vec::new() };
        let known = link.known().cloned();
        let Link { state: LinkState::Open(mut open), mut batch, callbacks, blocked_calls, .. } = link else {
            return Vec::new();
        };
        self.aftermath.unblocked.extend(blocked_calls);
        if is_writable && let Some(bytes) = take_bytes(&mut open) {
            self.actions.push_back(ClientAction::Transmit { connection, bytes });
        }
        let lost = batch.take_lost(open.transmit().sent_position());
        known.inspect(|known| known.note_lost_oneways(lost));
        callbacks.map_or_else(Vec::new, |callbacks| {
            callbacks.peer.sender.lock().handle_end();
            callbacks.peer.session.handle_end(true)
        })
    }

    /// Removes calls from a connection, with their states.
    pub(super) fn take_answers(
        &mut self,
        connection: ConnectionId,
        woken: Vec<CallNumber>,
    ) -> Vec<(CallNumber, Box<EngineCall>, CallState)> {
        let now = self.now;
        let Some(Link { state: LinkState::Open(open), used_at, .. }) = self.links.get_mut(&connection) else {
            return Vec::new();
        };
        if !woken.is_empty() {
            *used_at = now;
        }
        let mut answers = Vec::with_capacity(woken.len());
        for call in woken {
            let Some(engine_call) = self.calls.remove(&call) else { continue };
            let Stage::InFlight(_, id) = engine_call.stage else { continue };
            let state = open.poll_call(id);
            answers.push((call, engine_call, state));
        }
        answers
    }

    /// Takes a call whose deadline has passed, and whether its request had been written.
    pub(super) fn take_late(&mut self, call: CallNumber) -> Option<(Box<EngineCall>, bool)> {
        let engine_call = self.calls.remove(&call)?;
        let written = match engine_call.stage {
            Stage::InFlight(connection, id) => {
                if let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) {
                    open.abandon(id, engine_call.version);
                    self.talk(connection);
                }
                true
            }
            Stage::Connecting(connection) => {
                if let Some(Link { state: LinkState::Connecting { waiting, .. }, .. }) =
                    self.links.get_mut(&connection)
                {
                    waiting.retain(|other| *other != call);
                }
                false
            }
            Stage::Blocked(connection) => {
                if let Some(link) = self.links.get_mut(&connection) {
                    link.blocked_calls.retain(|other| *other != call);
                }
                false
            }
            Stage::Begun => false,
        };
        Some((engine_call, written))
    }
}

impl Aftermath {
    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.cancelled.is_empty() && self.unblocked.is_empty()
    }
}

impl Link {
    pub(super) fn new(origin: Origin, state: LinkState, now: Time) -> Link {
        Link {
            origin,
            batch: Batch::default(),
            state,
            callbacks: None,
            used_at: now,
            is_blocked: false,
            blocked_calls: Vec::new(),
        }
    }

    /// What is known of the endpoint to which this engine has connected.
    fn known(&self) -> Option<&Arc<dyn ServerEndpoint>> {
        match &self.origin {
            Origin::Own { known, .. } => Some(known),
            Origin::Accepted(_) => None,
        }
    }
}

/// A copy of the target that a call tries, and of what its requests begin with.
fn target_of(engine_call: &EngineCall, index: usize) -> Result<(ServerTarget, RequestTarget), CallEvent> {
    let route = engine_call.object.routes().current().map_err(CallEvent::Raised)?;
    let target = route.target(index).ok_or(CallEvent::Rerouted)?;
    match target.server.endpoint.address().tcp() {
        Some(_) => Ok((target.server.clone(), target.request.clone())),
        // The driver's network has no files, and so no sockets in them.
        None => Err(CallEvent::NotConnected(refused())),
    }
}

/// The connection that a call uses to a target.
fn endpoint_of(orb: &OrbCore, target: &ServerTarget, engine_call: &EngineCall) -> Endpoint {
    (target.endpoint.number(), engine_call.caller % orb.config.connections_per_endpoint_max.max(1))
}

/// Takes the bytes that wait to be sent on a connection.
fn take_bytes(open: &mut ClientConnection<CallNumber>) -> Option<Vec<u8>> {
    let bytes = open.transmit().take_all();
    (!bytes.is_empty()).then_some(bytes)
}
