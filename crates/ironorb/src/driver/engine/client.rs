//! The client side: calls over connections, from their beginning to their outcome.
//!
//! Nothing here decides what a call does next; its [`RemoteCall`](crate::call::remote_call::RemoteCall) does.

mod callbacks;
mod state;

use std::sync::Arc;
use std::{fmt, io};

use ironorb_giop::connection::{CallState, ClientConnection, ConnectionEnd, Side};
use ironorb_giop::message::Message;
use ironorb_giop::service_context::ListenPoint;

use super::call::{EngineCall, Request, Stage};
use super::events::{ClientAction, ClientEvent, Outcome};
use super::upcall::{EngineUpcall, Peer};
use super::{CallNumber, ConnectionId, Time, UpcallNumber};
use crate::base::locks::{LaneLock, LockGuard};
use crate::call::invocation::CallFailure;
use crate::call::remote_call::{CallEvent, ConnectFailure, Step};
use crate::driver::client::ACCEPTED_MAX;
use crate::driver::invoke::about_named;
use crate::driver::orb_core::OrbCore;
use state::{Aftermath, Due, Link, LinkState, Origin, State};

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
    pub(in crate::driver) fn begin_for_stub(&self, stub_call: Box<EngineCall>, now: Time) {
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
        self.orb.adapter_threads.note_engine_time(now);
        let aftermath = self.lock().begin(now);
        self.go_on_after(aftermath, now);
        match event {
            ClientEvent::Call { call, caller, object, operation, arguments, deadline } => {
                let request = Request::call(&object, operation, arguments);
                self.begin(call, EngineCall::new(object, caller, request, now, deadline), now);
            }
            ClientEvent::Locate { call, caller, object, deadline } => {
                self.begin(
                    call,
                    EngineCall::new(object, caller, Request::Locate { is_free: false }, now, deadline),
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
            ClientEvent::Blocked { connection } => self.lock().set_blocked(connection, true),
            ClientEvent::Writable { connection } => self.lock().set_blocked(connection, false),
            ClientEvent::Timer => self.lock().timer = None,
            ClientEvent::Flush => self.lock().flush(),
            ClientEvent::CarryOut { upcall } => {
                if let Some(mut upcall) = self.begin_upcall(upcall) {
                    upcall.run();
                    self.end_upcall(upcall);
                }
            }
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
        let state = self.lock();
        state.calls.len() + state.aftermath.answers.len()
    }

    /// Begins what [`ClientEvent::CarryOut`] does whole, as
    /// [`ServerEngine::begin_upcall`](super::ServerEngine::begin_upcall) does.
    pub fn begin_upcall(&self, upcall: UpcallNumber) -> Option<EngineUpcall> {
        let mut state = self.lock();
        let now = state.now;
        state.announced.take(upcall, now)
    }

    /// Ends an upcall that has been begun apart.
    pub fn end_upcall(&self, upcall: EngineUpcall) {
        let EngineUpcall { work, peer, is_answered, .. } = upcall;
        let _ = peer.session.handle_carried_out(is_answered); // its end is the connection's
        let mut state = self.lock();
        if let Some(Link { callbacks: Some(callbacks), .. }) = state.links.get_mut(&peer.id) {
            callbacks.backlog.remove(work.bytes());
        }
        state.pass_on_replies(peer.id);
    }

    /// Takes over a connection that a client of the server engine has made, for calls to that client.
    pub(super) fn add_accepted(&self, peer: &Arc<Peer>) -> ConnectionId {
        let open = ClientConnection::bidirectional(self.orb.config.connection, Side::Acceptor);
        let (origin, link) = (Origin::Accepted(peer.clone()), LinkState::Open(Box::new(open)));
        let mut state = self.lock();
        let now = state.now;
        state.add(Link::new(origin, link, now))
    }

    /// Routes calls to objects at these addresses over an accepted connection.
    pub(super) fn use_accepted(&self, points: &[ListenPoint], connection: ConnectionId) {
        let mut state = self.lock();
        for point in points.iter().filter(|point| point.port != 0 && !point.host.is_empty()) {
            let accepted = state.accepted.entry((point.host.clone(), point.port)).or_default();
            if accepted.len() < ACCEPTED_MAX && !accepted.contains(&connection) {
                accepted.push(connection);
            }
        }
    }

    /// Takes a reply that has come on an accepted connection. False when it answers no call. The call goes on with the
    /// next event.
    pub(super) fn take_reply(&self, connection: ConnectionId, reply: Message, now: Time) -> bool {
        self.lock().take_reply(connection, reply, now)
    }

    /// Whether a call over an accepted connection waits for its reply.
    pub(super) fn is_called(&self, connection: ConnectionId) -> bool {
        let state = self.lock();
        let link = state.links.get(&connection);
        matches!(link, Some(Link { state: LinkState::Open(open), .. }) if open.calls_in_flight() > 0)
    }

    /// Ends an accepted connection. Its calls go on with the next event.
    pub(super) fn end_accepted(&self, connection: ConnectionId, now: Time) {
        let mut state = self.lock();
        let ended = state.end(connection, |open, wake| open.handle_end(ConnectionEnd::Lost, wake), false);
        state.put_off(ended, now);
    }

    fn begin(&self, call: CallNumber, mut engine_call: Box<EngineCall>, now: Time) {
        debug_assert!(!self.lock().calls.contains_key(&call), "the number of a call that has not completed");
        let step = match engine_call.deadline() {
            Some(at) if at <= now => engine_call.on(CallEvent::TimedOut { written: false }, now),
            _ => engine_call.begin(now),
        };
        self.carry_out(call, engine_call, step, now);
    }

    /// Carries out steps until the call waits or is over. The loop ends because the call's machine bounds the number of
    /// attempts.
    fn carry_out(&self, call: CallNumber, mut engine_call: Box<EngineCall>, mut step: Step, now: Time) {
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

    fn complete(&self, call: CallNumber, mut engine_call: Box<EngineCall>, outcome: Outcome) {
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
        let waiting = self.lock().open(connection, &self.orb, now);
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
        let aftermath = self.lock().receive(&self.orb, connection, bytes);
        self.go_on_after(aftermath, now);
    }

    /// Ends an open connection. Its calls go on as their states decide.
    fn end(
        &self,
        connection: ConnectionId,
        end: impl FnOnce(&mut ClientConnection<CallNumber>, &mut dyn FnMut(CallNumber)),
        is_writable: bool,
        now: Time,
    ) {
        let aftermath = self.lock().end(connection, end, is_writable);
        self.go_on_after(aftermath, now);
    }

    fn go_on_after(&self, aftermath: Aftermath, now: Time) {
        aftermath.cancelled.into_iter().for_each(|then| then());
        for (call, mut engine_call, state) in aftermath.answers {
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
        // Each goes to its connection anew, or to another if that has ended.
        for call in aftermath.unblocked {
            self.go_on(call, CallEvent::Connected, now);
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
                Some(Due::Idle(connection)) => {
                    if let Some(limit) = self.orb.config.client_idle_timeout {
                        self.lock().close_if_idle(connection, limit, now);
                    }
                }
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
            let mut all: Vec<_> = state.links.keys().copied().collect();
            all.sort_unstable();
            all
        };
        for connection in all {
            // For a connection attempt, its calls see that the engine is shut down.
            self.not_connected(connection, &ConnectFailure::ShutDown, now);
            let is_own = self.lock().is_own(connection);
            self.end(connection, |connection, wake| connection.close(wake), is_own, now);
            if is_own {
                self.lock().actions.push_back(ClientAction::Close { connection });
            }
        }
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

fn refused() -> ConnectFailure {
    ConnectFailure::Io(Arc::new(io::ErrorKind::ConnectionRefused.into()))
}
