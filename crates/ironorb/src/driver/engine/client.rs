//! The client side: calls over connections, from their beginning to their outcome.
//!
//! Nothing here decides what follows a reply or a failure;
//! [`RemoteCallState`](crate::call::invocation::RemoteCallState) does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use ironorb_giop::connection::{CallState, ClientConnection, ConnectionEnd};

use super::call::{CallTarget, EngineCall, Request, Stage, Step};
use super::events::{Answer, ClientAction, ClientEvent, Outcome};
use super::{CallNumber, ConnectionId, Time};
use crate::Orb;
use crate::call::invocation::{CallFailure, Next};
use crate::call::route::RemoteTarget;
use crate::driver::invoke::about;
use crate::object::ObjectRef;
use crate::orb::{OrbCore, shut_down};

/// The client side of an ORB as a state machine: any number of calls at once, and one connection to each
/// endpoint, which all calls share. So requests to an endpoint keep their order, as those of one thread do.
pub struct ClientEngine {
    orb: Arc<OrbCore>,
    calls: BTreeMap<CallNumber, EngineCall>,
    links: BTreeMap<ConnectionId, Link>,
    /// Each connection of `links`, by its endpoint.
    endpoints: BTreeMap<Endpoint, ConnectionId>,
    /// When the last attempt to connect to an endpoint failed, if none has succeeded since.
    failed: BTreeMap<Endpoint, Time>,
    next_connection: u64,
    deadlines: BTreeSet<(Time, Due)>,
    /// The time to which the driver's timer is set.
    timer: Option<Time>,
    /// Connections that may have bytes to transmit.
    talking: BTreeSet<ConnectionId>,
    actions: VecDeque<ClientAction>,
    is_shut_down: bool,
}

type Endpoint = (String, u16);

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Call(CallNumber),
    Connect(ConnectionId),
}

/// A connection, or an attempt to make one.
struct Link {
    endpoint: Endpoint,
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
    /// Makes an engine for the calls of an ORB, with its settings.
    pub fn new(orb: &Orb) -> Self {
        ClientEngine {
            orb: orb.core().clone(),
            calls: BTreeMap::new(),
            links: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            failed: BTreeMap::new(),
            next_connection: 0,
            deadlines: BTreeSet::new(),
            timer: None,
            talking: BTreeSet::new(),
            actions: VecDeque::new(),
            is_shut_down: false,
        }
    }

    /// Handles an event. `now` never goes back. Events for connections that have been closed meanwhile have
    /// no effect.
    pub fn handle(&mut self, event: ClientEvent<'_>, now: Time) {
        match event {
            ClientEvent::Call { call, object, operation, arguments, deadline } => {
                self.begin(call, object, Request::Call(operation, arguments), deadline, now);
            }
            ClientEvent::Locate { call, object, deadline } => {
                self.begin(call, object, Request::Locate, deadline, now);
            }
            ClientEvent::Connected { connection } => self.connected(connection, now),
            ClientEvent::ConnectFailed { connection, timed_out } => {
                self.not_connected(connection, timed_out, now);
            }
            ClientEvent::Received { connection, bytes } => self.received(connection, bytes, now),
            ClientEvent::Closed { connection } => {
                self.not_connected(connection, false, now);
                self.end(
                    connection,
                    |connection, wake| connection.handle_end(ConnectionEnd::Lost, wake),
                    now,
                );
            }
            ClientEvent::Timer => self.timer = None,
            ClientEvent::Shutdown => self.shut_down(now),
        }
        // After the event, because what has arrived at the last moment counts.
        self.expire(now);
    }

    /// Returns the next action for the driver.
    pub fn poll_action(&mut self) -> Option<ClientAction> {
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

    /// The number of calls that have not completed.
    pub fn calls_pending(&self) -> usize {
        self.calls.len()
    }

    fn begin(
        &mut self,
        call: CallNumber,
        object: ObjectRef,
        request: Request,
        deadline: Option<Time>,
        now: Time,
    ) {
        debug_assert!(!self.calls.contains_key(&call), "the number of a call that has not completed");
        let mut engine_call = EngineCall::new(object, request, deadline, &self.orb.config);
        if let Some(at) = deadline {
            self.deadlines.insert((at, Due::Call(call)));
        }
        match engine_call.look_up(now) {
            Ok(()) => self.advance(call, engine_call, now),
            Err(e) => self.complete(call, engine_call, Err(e)),
        }
    }

    /// Advances a call until it waits or is done. The loop ends because
    /// [`RemoteCallState`](crate::call::invocation::RemoteCallState) bounds the number of decisions.
    fn advance(&mut self, call: CallNumber, mut engine_call: EngineCall, now: Time) {
        loop {
            match self.step(call, &mut engine_call, now) {
                Step::Wait => {
                    self.calls.insert(call, engine_call);
                    return;
                }
                Step::Done(answer) => return self.complete(call, engine_call, Ok(answer)),
                Step::Decide(next) => {
                    if let Err(e) = engine_call.take(next, now) {
                        return self.complete(call, engine_call, Err(e));
                    }
                }
            }
        }
    }

    fn step(&mut self, call: CallNumber, engine_call: &mut EngineCall, now: Time) -> Step {
        if self.is_shut_down {
            return Step::Decide(Next::Fail(shut_down()));
        }
        let targets = match &engine_call.target {
            CallTarget::Local(key) => {
                let key = key.clone();
                return engine_call.step_here(&key, &self.orb);
            }
            CallTarget::Remote(targets) => targets,
        };
        if let Stage::Begun = engine_call.stage {
            let pause = self.orb.config.failed_address_pause;
            let is_failing = |index: usize| {
                let failed = self.failed.get(&endpoint_of(&targets[index]));
                failed.is_some_and(|&failed| now < failed + pause)
            };
            let Some(attempt) = engine_call.attempts.next(targets.len(), is_failing) else {
                return Step::Decide(engine_call.invocation.on_connect_failed(engine_call.all_timed_out));
            };
            engine_call.attempt = attempt;
        }
        let target = &targets[engine_call.attempt];
        let endpoint = endpoint_of(target);
        let found = self.endpoints.get(&endpoint).and_then(|id| Some((*id, self.links.get_mut(id)?)));
        let (connection, open) = match found {
            Some((connection, Link { state: LinkState::Open(open), .. })) => (connection, open),
            Some((connection, Link { state: LinkState::Connecting { waiting, .. }, .. })) => {
                waiting.push(call);
                engine_call.stage = Stage::Connecting(connection);
                return Step::Wait;
            }
            None => {
                engine_call.stage = Stage::Connecting(self.connect(endpoint, call, now));
                return Step::Wait;
            }
        };
        let begun = match &engine_call.request {
            Request::Call(operation, arguments) if operation.is_oneway() => {
                open.begin_oneway(&target.request, operation.name(), arguments).map(|()| None)
            }
            Request::Call(operation, arguments) => {
                open.begin_call(&target.request, operation.name(), arguments).map(Some)
            }
            Request::Locate => open.begin_locate(&target.request).map(Some),
        };
        self.talking.insert(connection);
        match begun {
            Ok(None) => Step::Done(Answer::Sent),
            Ok(Some(id)) => {
                open.set_waker(id, call);
                engine_call.stage = Stage::InFlight(connection, id);
                Step::Wait
            }
            Err(error) => Step::Decide(engine_call.invocation.on_failure(CallFailure::from(error))),
        }
    }

    fn complete(&mut self, call: CallNumber, engine_call: EngineCall, outcome: Outcome) {
        if let Some(at) = engine_call.deadline {
            self.deadlines.remove(&(at, Due::Call(call)));
        }
        let outcome = outcome.map_err(|e| about(&engine_call.object, engine_call.request.operation(), e));
        self.actions.push_back(ClientAction::Complete { call, outcome });
    }

    fn connect(&mut self, endpoint: Endpoint, call: CallNumber, now: Time) -> ConnectionId {
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let until = now + self.orb.config.connect_timeout;
        self.deadlines.insert((until, Due::Connect(connection)));
        self.endpoints.insert(endpoint.clone(), connection);
        let (host, port) = endpoint.clone();
        self.actions.push_back(ClientAction::Connect { connection, host, port });
        let state = LinkState::Connecting { until, waiting: vec![call] };
        self.links.insert(connection, Link { endpoint, state });
        connection
    }

    fn connected(&mut self, connection: ConnectionId, now: Time) {
        let Some(link) = self.links.get_mut(&connection) else { return };
        let LinkState::Connecting { until, waiting } = &mut link.state else { return };
        let (until, waiting) = (*until, std::mem::take(waiting));
        link.state = LinkState::Open(Box::new(ClientConnection::new(self.orb.config.connection)));
        self.failed.remove(&link.endpoint);
        self.deadlines.remove(&(until, Due::Connect(connection)));
        for call in waiting {
            if let Some(engine_call) = self.calls.remove(&call) {
                self.advance(call, engine_call, now);
            }
        }
    }

    /// Fails a connection attempt. The calls that wait for it try their next addresses.
    fn not_connected(&mut self, connection: ConnectionId, timed_out: bool, now: Time) {
        let Some(Link { state: LinkState::Connecting { until, waiting }, .. }) =
            self.links.get_mut(&connection)
        else {
            return;
        };
        let (until, waiting) = (*until, std::mem::take(waiting));
        self.deadlines.remove(&(until, Due::Connect(connection)));
        if let Some(link) = self.forget(connection) {
            let pause = self.orb.config.failed_address_pause;
            self.failed.retain(|_, failed| now < *failed + pause);
            self.failed.insert(link.endpoint, now);
        }
        for call in waiting {
            if let Some(mut engine_call) = self.calls.remove(&call) {
                engine_call.stage = Stage::Begun;
                engine_call.all_timed_out &= timed_out;
                self.advance(call, engine_call, now);
            }
        }
    }

    fn forget(&mut self, connection: ConnectionId) -> Option<Link> {
        let link = self.links.remove(&connection)?;
        self.endpoints.remove(&link.endpoint);
        Some(link)
    }

    fn received(&mut self, connection: ConnectionId, bytes: &[u8], now: Time) {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else { return };
        let Some(mut framer) = open.take_framer() else { return };
        framer.push(bytes);
        let mut woken = Vec::new();
        // After an error the connection has ended, and its last message waits to be sent.
        let handled = open.handle_input(framer, |call| woken.push(call));
        let has_ended = open.end().is_some();
        let answers = self.take_answers(connection, woken);
        if has_ended && let Some(Link { state: LinkState::Open(mut open), .. }) = self.forget(connection) {
            if handled.is_err()
                && let Some(bytes) = take_bytes(&mut open)
            {
                self.actions.push_back(ClientAction::Transmit { connection, bytes });
            }
            self.actions.push_back(ClientAction::Close { connection });
        }
        self.go_on(answers, now);
    }

    /// Ends an open connection. Its calls go on as their states decide.
    fn end(
        &mut self,
        connection: ConnectionId,
        end: impl FnOnce(&mut ClientConnection<CallNumber>, &mut dyn FnMut(CallNumber)),
        now: Time,
    ) -> Option<Box<ClientConnection<CallNumber>>> {
        let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection) else {
            return None;
        };
        let mut woken = Vec::new();
        end(open, &mut |call| woken.push(call));
        let answers = self.take_answers(connection, woken);
        let link = self.forget(connection);
        self.go_on(answers, now);
        match link {
            Some(Link { state: LinkState::Open(open), .. }) => Some(open),
            _ => None,
        }
    }

    /// Removes calls from a connection, with their states.
    fn take_answers(
        &mut self,
        connection: ConnectionId,
        woken: Vec<CallNumber>,
    ) -> Vec<(CallNumber, EngineCall, CallState)> {
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

    fn go_on(&mut self, answers: Vec<(CallNumber, EngineCall, CallState)>, now: Time) {
        for (call, mut engine_call, state) in answers {
            match engine_call.on_state(state, &self.orb) {
                Step::Wait => {
                    self.calls.insert(call, engine_call);
                }
                Step::Done(answer) => self.complete(call, engine_call, Ok(answer)),
                Step::Decide(next) => match engine_call.take(next, now) {
                    Ok(()) => self.advance(call, engine_call, now),
                    Err(e) => self.complete(call, engine_call, Err(e)),
                },
            }
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(at, due)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            match due {
                Due::Call(call) => self.time_out(call),
                Due::Connect(connection) => {
                    self.actions.push_back(ClientAction::Close { connection });
                    self.not_connected(connection, true, now);
                }
            }
        }
    }

    fn time_out(&mut self, call: CallNumber) {
        let Some(engine_call) = self.calls.remove(&call) else { return };
        let written = match engine_call.stage {
            Stage::InFlight(connection, id) => {
                if let Some(Link { state: LinkState::Open(open), .. }) = self.links.get_mut(&connection)
                    && let Some(version) = engine_call.version()
                {
                    open.abandon(id, version);
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
        let e = engine_call.invocation.on_timeout(written);
        self.complete(call, engine_call, Err(e));
    }

    fn shut_down(&mut self, now: Time) {
        self.is_shut_down = true;
        let all: Vec<ConnectionId> = self.links.keys().copied().collect();
        for connection in all {
            // For a connection attempt, its calls see that the engine is shut down.
            self.not_connected(connection, false, now);
            if let Some(mut open) = self.end(connection, |connection, wake| connection.close(wake), now)
                && let Some(bytes) = take_bytes(&mut open)
            {
                self.actions.push_back(ClientAction::Transmit { connection, bytes });
            }
            self.actions.push_back(ClientAction::Close { connection });
        }
    }
}

impl fmt::Debug for ClientEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEngine")
            .field("calls_pending", &self.calls.len())
            .field("connections", &self.links.len())
            .finish_non_exhaustive()
    }
}

/// The endpoint of a target. The targets of an engine's calls have TCP addresses only.
fn endpoint_of(target: &RemoteTarget) -> Endpoint {
    let (host, port) = target.links.address().tcp().unwrap_or_default();
    (host.to_owned(), port)
}

/// Takes the bytes that wait to be sent on a connection.
fn take_bytes(open: &mut ClientConnection<CallNumber>) -> Option<Vec<u8>> {
    let bytes = open.transmit().take_all();
    (!bytes.is_empty()).then_some(bytes)
}
