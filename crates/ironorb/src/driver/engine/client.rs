//! The client side: calls over connections, from their beginning to their outcome.
//!
//! Nothing here decides what a call does next; its [`RemoteCall`](crate::call::remote_call::RemoteCall) does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::{fmt, io};

use ironorb_giop::connection::{CallState, ClientConnection, ConnectionEnd};
use ironorb_giop::message::RequestTarget;

use super::call::{EngineCall, Request, Stage};
use super::events::{ClientAction, ClientEvent, Outcome};
use super::{CallNumber, ConnectionId, Time};
use crate::base::config::OnewayBatching;
use crate::base::locks::{LaneLock, LockGuard};
use crate::call::invocation::CallFailure;
use crate::call::remote_call::{CallEvent, ConnectFailure, Step};
use crate::connection::{Batch, BatchDue};
use crate::driver::invoke::about_named;
use crate::driver::orb_core::OrbCore;
use crate::object::server_profile::{ServerEndpoint, ServerTarget};

/// The client side of an ORB as a state machine: any number of calls at once, and for each caller a connection to each
/// endpoint, up to [`connections_per_endpoint_max`](crate::OrbConfig::connections_per_endpoint_max) that callers share. So
/// the requests of one caller to an endpoint keep their order.
///
/// Interceptors, and servants of this process, run within [`handle`](Self::handle). They may make calls of their own,
/// whose events come in meanwhile.
pub struct ClientEngine {
    orb: Arc<OrbCore>,
    /// Never locked while code of the program runs.
    state: LaneLock<State>,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<CallNumber, EngineCall>,
    links: BTreeMap<ConnectionId, Link>,
    /// Each connection of `links`, by its endpoint.
    endpoints: BTreeMap<Endpoint, ConnectionId>,
    next_connection: u64,
    /// How many calls of stubs have begun.
    stub_calls: u64,
    deadlines: BTreeSet<(Time, Due)>,
    /// The time to which the driver's timer is set.
    timer: Option<Time>,
    /// Connections that may have bytes to transmit.
    talking: BTreeSet<ConnectionId>,
    actions: VecDeque<ClientAction>,
    is_shut_down: bool,
}

/// A host, a port, and which of the connections to them.
type Endpoint = (String, u16, usize);

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Call(CallNumber),
    Connect(ConnectionId),
    /// Oneways that wait to leave together.
    Batch(ConnectionId),
}

/// A connection, or an attempt to make one.
struct Link {
    endpoint: Endpoint,
    /// What all drivers know of the endpoint.
    known: Arc<dyn ServerEndpoint>,
    batch: Batch,
    state: LinkState,
}

enum LinkState {
    Connecting {
        until: Time,
        /// The calls in the order in which they came.
        waiting: Vec<CallNumber>,
    },
    /// A connection that has not ended. One that ends is removed at once.
    Open(Box<ClientConnection<CallNumber>>),
}

impl ClientEngine {
    pub(crate) fn of(orb: &Arc<OrbCore>) -> Self {
        ClientEngine { orb: orb.clone(), state: LaneLock::default() }
    }

    /// The engine of an ORB for the calls of stubs.
    pub(crate) fn attached_to(orb: &Arc<OrbCore>) -> Arc<Self> {
        let engine = Arc::new(ClientEngine::of(orb));
        if let Some(simulated) = &engine.orb.simulated {
            simulated.attach(&engine);
        }
        engine
    }

    /// Begins a call of a stub. `on_end` gets its outcome.
    pub(in crate::driver) fn begin_for_stub(&self, stub_call: EngineCall, now: Time) {
        let mut state = self.lock();
        // The driver's own numbers count from below.
        let call = CallNumber(u64::MAX - state.stub_calls);
        state.stub_calls += 1;
        drop(state);
        self.begin(call, stub_call, now);
        self.expire(now);
    }

    fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }

    /// Handles an event. `now` never goes back. Events for connections that have been closed meanwhile have
    /// no effect.
    pub fn handle(&self, event: ClientEvent<'_>, now: Time) {
        match event {
            ClientEvent::Call { call, caller, object, operation, arguments, deadline } => {
                let request = Request::call(&object, operation, arguments);
                self.begin(call, EngineCall::new(object, caller, request, deadline), now);
            }
            ClientEvent::Locate { call, caller, object, deadline } => {
                self.begin(
                    call,
                    EngineCall::new(object, caller, Request::Locate { is_free: false }, deadline),
                    now,
                );
            }
            ClientEvent::Connected { connection } => self.connected(connection, now),
            ClientEvent::ConnectFailed { connection, timed_out: true } => {
                self.not_connected(connection, &ConnectFailure::TimedOut, now);
            }
            ClientEvent::ConnectFailed { connection, timed_out: false } => {
                self.not_connected(connection, &refused(), now);
            }
            ClientEvent::Received { connection, bytes } => self.received(connection, bytes, now),
            ClientEvent::Closed { connection } => {
                self.not_connected(connection, &refused(), now);
                self.end(
                    connection,
                    |connection, wake| connection.handle_end(ConnectionEnd::Lost, wake),
                    false,
                    now,
                );
            }
            ClientEvent::Timer => self.lock().timer = None,
            ClientEvent::Flush => self.lock().flush(),
            ClientEvent::Shutdown => self.shut_down(now),
        }
        // After the event, because what has arrived at the last moment counts.
        self.expire(now);
    }

    /// Returns the next action for the driver.
    pub fn poll_action(&self) -> Option<ClientAction> {
        self.lock().poll_action()
    }

    /// Whether bytes wait for [`poll_action`](Self::poll_action) to take them.
    pub(in crate::driver) fn is_talking(&self) -> bool {
        !self.lock().talking.is_empty()
    }

    /// The number of calls that have not completed.
    pub fn calls_pending(&self) -> usize {
        self.lock().calls.len()
    }

    fn begin(&self, call: CallNumber, mut engine_call: EngineCall, now: Time) {
        debug_assert!(!self.lock().calls.contains_key(&call), "the number of a call that has not completed");
        let step = match engine_call.deadline() {
            Some(at) if at <= now => engine_call.on(CallEvent::TimedOut { written: false }, now),
            _ => engine_call.begin(now),
        };
        self.carry_out(call, engine_call, step, now);
    }

    /// Carries out steps until the call waits or is over. The loop ends because the call's machine bounds the number of
    /// attempts.
    fn carry_out(&self, call: CallNumber, mut engine_call: EngineCall, mut step: Step, now: Time) {
        loop {
            let event = match step {
                Step::Send(index) => {
                    let mut state = self.lock();
                    match state.send(&self.orb, call, &mut engine_call, index, now) {
                        Some(event) => event,
                        None => return state.keep(call, engine_call),
                    }
                }
                Step::Connect { index, until } => {
                    let mut state = self.lock();
                    match state.connect(&self.orb, call, &mut engine_call, index, until.at(), now) {
                        Some(event) => event,
                        None => return state.keep(call, engine_call),
                    }
                }
                Step::Done(Ok(completed)) => {
                    let answer = engine_call.answer(completed, &self.orb);
                    return self.complete(call, engine_call, Ok(answer));
                }
                Step::Done(Err(e)) => return self.complete(call, engine_call, Err(e)),
                Step::RunHere => {
                    step = engine_call.run_here(&self.orb, now);
                    continue;
                }
                Step::Show => engine_call.show(),
                Step::Tell => engine_call.tell(),
                Step::GoOn => CallEvent::GoOn,
            };
            step = engine_call.on(event, now);
        }
    }

    fn complete(&self, call: CallNumber, mut engine_call: EngineCall, outcome: Outcome) {
        let outcome =
            outcome.map_err(|e| about_named(&engine_call.object, engine_call.request.operation(), e));
        let mut state = self.lock();
        if let Some(at) = engine_call.deadline() {
            state.deadlines.remove(&(at, Due::Call(call)));
        }
        match engine_call.on_end.take() {
            Some(on_end) => {
                drop(state);
                on_end(outcome);
            }
            None => state.actions.push_back(ClientAction::Complete { call, outcome }),
        }
    }

    fn connected(&self, connection: ConnectionId, now: Time) {
        let waiting = self.lock().open(connection, &self.orb);
        for call in waiting {
            self.go_on(call, CallEvent::Connected, now);
        }
    }

    /// Fails a connection attempt. The calls that wait for it try their next addresses.
    fn not_connected(&self, connection: ConnectionId, failure: &ConnectFailure, now: Time) {
        let waiting = self.lock().give_up_connecting(connection, now);
        for call in waiting {
            self.go_on(call, CallEvent::NotConnected(failure.clone()), now);
        }
    }

    /// Goes on with a call that has waited for a connection.
    fn go_on(&self, call: CallNumber, event: CallEvent, now: Time) {
        let waiting = self.lock().calls.remove(&call);
        if let Some(mut engine_call) = waiting {
            engine_call.stage = Stage::Begun;
            let step = engine_call.on(event, now);
            self.carry_out(call, engine_call, step, now);
        }
    }

    fn received(&self, connection: ConnectionId, bytes: &[u8], now: Time) {
        let answers = self.lock().receive(connection, bytes);
        self.take_answers(answers, now);
    }

    /// Ends an open connection. Its calls go on as their states decide.
    fn end(
        &self,
        connection: ConnectionId,
        end: impl FnOnce(&mut ClientConnection<CallNumber>, &mut dyn FnMut(CallNumber)),
        is_writable: bool,
        now: Time,
    ) {
        let answers = self.lock().end(connection, end, is_writable);
        self.take_answers(answers, now);
    }

    fn take_answers(&self, answers: Vec<(CallNumber, EngineCall, CallState)>, now: Time) {
        for (call, mut engine_call, state) in answers {
            let step = match state {
                CallState::Answered(message) => engine_call.on_reply(message),
                CallState::Ended { end, sent } => {
                    engine_call.stage = Stage::Begun;
                    engine_call.on(CallEvent::Failed(CallFailure::ended(end, sent)), now)
                }
                CallState::Waiting => {
                    self.lock().keep(call, engine_call); // a wake in vain
                    continue;
                }
            };
            self.carry_out(call, engine_call, step, now);
        }
    }

    fn expire(&self, now: Time) {
        loop {
            let due = self.lock().next_due(now);
            match due {
                None => return,
                Some(Due::Call(call)) => self.time_out(call, now),
                Some(Due::Connect(connection)) => {
                    self.lock().actions.push_back(ClientAction::Close { connection });
                    self.not_connected(connection, &ConnectFailure::TimedOut, now);
                }
                Some(Due::Batch(connection)) => self.lock().batch_is_due(connection, now),
            }
        }
    }

    fn time_out(&self, call: CallNumber, now: Time) {
        let ended = self.lock().take_late(call);
        if let Some((mut engine_call, written)) = ended {
            let step = engine_call.on(CallEvent::TimedOut { written }, now);
            self.carry_out(call, engine_call, step, now);
        }
    }

    fn shut_down(&self, now: Time) {
        let all: Vec<ConnectionId> = {
            let mut state = self.lock();
            state.is_shut_down = true;
            state.links.keys().copied().collect()
        };
        for connection in all {
            // For a connection attempt, its calls see that the engine is shut down.
            self.not_connected(connection, &ConnectFailure::ShutDown, now);
            self.end(connection, |connection, wake| connection.close(wake), true, now);
            self.lock().actions.push_back(ClientAction::Close { connection });
        }
    }
}

/// The answers of calls that are on no connection any more.
type Answers = Vec<(CallNumber, EngineCall, CallState)>;

impl State {
    fn poll_action(&mut self) -> Option<ClientAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        while let Some(connection) = self.talking.pop_first() {
            if let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection)
                && let Some(bytes) = take_bytes(open)
            {
                return Some(ClientAction::Transmit { connection, bytes });
            }
        }
        let next = self.deadlines.first().map(|(at, _)| *at);
        if next == self.timer {
            return None;
        }
        self.timer = next;
        next.map(|at| ClientAction::SetTimer { at })
    }

    /// Keeps a call that waits.
    fn keep(&mut self, call: CallNumber, engine_call: EngineCall) {
        if let Some(at) = engine_call.deadline() {
            self.deadlines.insert((at, Due::Call(call)));
        }
        self.calls.insert(call, engine_call);
    }

    fn next_due(&mut self, now: Time) -> Option<Due> {
        match self.deadlines.first() {
            Some(&(at, due)) if at <= now => {
                self.deadlines.pop_first();
                Some(due)
            }
            _ => None,
        }
    }

    /// Sends a request. `None` when the call waits, for its answer or for a connection.
    fn send(
        &mut self,
        orb: &OrbCore,
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
        let found = self.endpoints.get(&endpoint).and_then(|id| Some((*id, self.links.get_mut(id)?)));
        let (connection, open) = match found {
            Some((connection, Link { state: LinkState::Open(open), .. })) => (connection, open),
            Some((connection, Link { state: LinkState::Connecting { waiting, .. }, .. })) => {
                waiting.push(call);
                engine_call.stage = Stage::Connecting(connection);
                return None;
            }
            None => return Some(CallEvent::Unconnected),
        };
        let is_first = open.transmit().pending_bytes() == 0;
        let written = engine_call.write(open, &request);
        if let Ok(Some(id)) = written {
            open.set_waker(id, call);
        }
        let batching = engine_call.batching.filter(|_| matches!(written, Ok(None)));
        if !batching.is_some_and(|batching| self.hold_oneway(connection, is_first, &batching, now)) {
            self.talking.insert(connection);
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
    fn hold_oneway(
        &mut self,
        connection: ConnectionId,
        is_first: bool,
        batching: &OnewayBatching,
        now: Time,
    ) -> bool {
        let Some(Link { state: LinkState::Open(open), batch, .. }) = self.links.get_mut(&connection) else {
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

    fn batch_is_due(&mut self, connection: ConnectionId, now: Time) {
        let Some(Link { state: LinkState::Open(open), batch, .. }) = self.links.get_mut(&connection) else {
            return;
        };
        let waits = batch.waits(open.transmit().sent_position());
        let BatchDue { is_sent, again_at } = batch.on_time(waits, now);
        if is_sent {
            self.talking.insert(connection);
        }
        self.deadlines.extend(again_at.map(|at| (at, Due::Batch(connection))));
    }

    /// Has all connections send what is pending.
    fn flush(&mut self) {
        self.talking.extend(self.links.keys());
    }

    /// Connects to an address, for a call that waits until then.
    fn connect(
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
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let limit = now + orb.config.connect_timeout;
        let until = until.map_or(limit, |until| until.min(limit));
        self.deadlines.insert((until, Due::Connect(connection)));
        self.endpoints.insert(endpoint.clone(), connection);
        let (host, port, _) = endpoint.clone();
        self.actions.push_back(ClientAction::Connect { connection, host, port });
        let state = LinkState::Connecting { until, waiting: vec![call] };
        self.links
            .insert(connection, Link { endpoint, known: server.endpoint, batch: Batch::default(), state });
        engine_call.stage = Stage::Connecting(connection);
        None
    }

    /// Takes the news that a connection is there. Returns the calls that have waited for it.
    fn open(&mut self, connection: ConnectionId, orb: &OrbCore) -> Vec<CallNumber> {
        let Some(link) = self.links.get_mut(&connection) else { return Vec::new() };
        let LinkState::Connecting { until, waiting } = &mut link.state else { return Vec::new() };
        let (until, waiting) = (*until, std::mem::take(waiting));
        link.state = LinkState::Open(Box::new(ClientConnection::new(orb.config.connection)));
        link.known.note_connected();
        self.deadlines.remove(&(until, Due::Connect(connection)));
        waiting
    }

    /// Gives up a connection attempt. Returns the calls that have waited for it.
    fn give_up_connecting(&mut self, connection: ConnectionId, now: Time) -> Vec<CallNumber> {
        let Some(Link { state: LinkState::Connecting { until, waiting }, .. }) =
            self.links.get_mut(&connection)
        else {
            return Vec::new();
        };
        let (until, waiting) = (*until, std::mem::take(waiting));
        self.deadlines.remove(&(until, Due::Connect(connection)));
        if let Some(link) = self.forget(connection) {
            link.known.note_failed(now);
        }
        waiting
    }

    fn forget(&mut self, connection: ConnectionId) -> Option<Link> {
        let link = self.links.remove(&connection)?;
        self.endpoints.remove(&link.endpoint);
        Some(link)
    }

    fn receive(&mut self, connection: ConnectionId, bytes: &[u8]) -> Answers {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return Vec::new();
        };
        let Some(mut framer) = open.take_framer() else { return Vec::new() };
        framer.push(bytes);
        let mut woken = Vec::new();
        // After an error the connection has ended, and its last message waits to be sent.
        let handled = open.handle_input(framer, |call| woken.push(call));
        let has_ended = open.end().is_some();
        let answers = self.take_answers(connection, woken);
        if has_ended {
            self.remove_ended(connection, handled.is_err());
            self.actions.push_back(ClientAction::Close { connection });
        }
        answers
    }

    fn end(
        &mut self,
        connection: ConnectionId,
        end: impl FnOnce(&mut ClientConnection<CallNumber>, &mut dyn FnMut(CallNumber)),
        is_writable: bool,
    ) -> Answers {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return Vec::new();
        };
        let mut woken = Vec::new();
        end(open, &mut |call| woken.push(call));
        let answers = self.take_answers(connection, woken);
        self.remove_ended(connection, is_writable);
        answers
    }

    /// Removes a connection that has ended. What is pending is sent if that is still possible.
    fn remove_ended(&mut self, connection: ConnectionId, is_writable: bool) {
        let Some(Link { state: LinkState::Open(mut open), known, mut batch, .. }) = self.forget(connection)
        else {
            return;
        };
        if is_writable && let Some(bytes) = take_bytes(&mut open) {
            self.actions.push_back(ClientAction::Transmit { connection, bytes });
        }
        known.note_lost_oneways(batch.take_lost(open.transmit().sent_position()));
    }

    /// Removes calls from a connection, with their states.
    fn take_answers(&mut self, connection: ConnectionId, woken: Vec<CallNumber>) -> Answers {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return Vec::new();
        };
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
    fn take_late(&mut self, call: CallNumber) -> Option<(EngineCall, bool)> {
        let engine_call = self.calls.remove(&call)?;
        let written = match engine_call.stage {
            Stage::InFlight(connection, id) => {
                if let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) {
                    open.abandon(id, engine_call.version);
                    self.talking.insert(connection);
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
            Stage::Begun => false,
        };
        Some((engine_call, written))
    }
}

impl fmt::Debug for ClientEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEngine")
            .field("calls_pending", &self.lock().calls.len())
            .field("connections", &self.lock().links.len())
            .finish_non_exhaustive()
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
    let (host, port) = target.links().address().tcp().unwrap_or_default();
    (host.to_owned(), port, engine_call.caller % orb.config.connections_per_endpoint_max.max(1))
}

fn refused() -> ConnectFailure {
    ConnectFailure::Io(Arc::new(io::ErrorKind::ConnectionRefused.into()))
}

/// Takes the bytes that wait to be sent on a connection.
fn take_bytes(open: &mut ClientConnection<CallNumber>) -> Option<Vec<u8>> {
    let bytes = open.transmit().take_all();
    (!bytes.is_empty()).then_some(bytes)
}
