//! One call of a client engine: its target and its progress.
//!
//! Nothing here touches a connection; the engine does.

use std::sync::Arc;

use ironorb_giop::connection::{CallId, CallState};
use ironorb_giop::exception::SystemException;
use ironorb_giop::message::Message;

use super::events::{Answer, Arguments, Reply};
use super::{ConnectionId, Time};
use crate::base::config::OrbConfig;
use crate::call::invocation::{Answered, CallFailure, Located, Next, RemoteCallState};
use crate::call::route::{Attempts, RemoteTarget, Route};
use crate::driver::invoke::LOCATE;
use crate::driver::loopback::{self, WaitPolicy, loopback, loopback_oneway};
use crate::generated::Operation;
use crate::object::ObjectRef;
use crate::orb::OrbCore;
use crate::poa::{HoldMode, Refusal};

/// One call in progress.
pub(super) struct EngineCall {
    pub(super) object: ObjectRef,
    pub(super) request: Request,
    pub(super) deadline: Option<Time>,
    pub(super) invocation: RemoteCallState,
    pub(super) target: CallTarget,
    /// The index of the address that is being tried.
    pub(super) attempt: usize,
    pub(super) attempts: Attempts,
    /// True while no address has refused.
    pub(super) all_timed_out: bool,
    pub(super) stage: Stage,
}

pub(super) enum Request {
    Call(&'static Operation<'static>, Arguments),
    Locate,
}

/// The target of a call. It is looked up again after every decision.
pub(super) enum CallTarget {
    Local(Vec<u8>),
    Remote(Vec<RemoteTarget>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Not on a connection yet.
    Begun,
    Connecting(ConnectionId),
    InFlight(ConnectionId, CallId),
}

/// The result of one step.
pub(super) enum Step {
    Wait,
    Decide(Next),
    Done(Answer),
}

impl EngineCall {
    /// Makes a call without a target.
    pub(super) fn new(
        object: ObjectRef,
        request: Request,
        deadline: Option<Time>,
        config: &OrbConfig,
    ) -> EngineCall {
        EngineCall {
            object,
            request,
            deadline,
            invocation: RemoteCallState::new(config.forwards_max, config.resends_max, false),
            target: CallTarget::Remote(Vec::new()),
            attempt: 0,
            attempts: Attempts::default(),
            all_timed_out: true,
            stage: Stage::Begun,
        }
    }

    /// Carries out a decision. An error ends the call.
    pub(super) fn take(&mut self, next: Next, now: Time) -> Result<(), SystemException> {
        let next = match next {
            Next::TryNext(e) => {
                if let CallTarget::Remote(targets) = &self.target
                    && self.attempts.pass_over(targets)
                {
                    self.stage = Stage::Begun;
                    return if self.is_late(now) { Err(e) } else { Ok(()) };
                }
                self.invocation.on_no_alternative(e)
            }
            next => next,
        };
        self.object.routes().take(&self.object, next)?;
        self.look_up(now)
    }

    fn is_late(&self, now: Time) -> bool {
        self.deadline.is_some_and(|at| at <= now)
    }

    /// Looks up the target. Fails when the deadline has passed, or when there is no target.
    pub(super) fn look_up(&mut self, now: Time) -> Result<(), SystemException> {
        if self.is_late(now) {
            return Err(self.invocation.on_timeout(false));
        }
        self.stage = Stage::Begun;
        self.attempts = Attempts::default();
        self.all_timed_out = true;
        let route = self.object.routes().current(&self.object)?;
        self.invocation.on_route(route.is_forwarded());
        self.target = match route.route() {
            Route::Local(key) => CallTarget::Local(key.clone()),
            // The driver's network has no files, and so no sockets in them.
            Route::Remote(targets) => CallTarget::Remote(
                targets
                    .as_slice()
                    .iter()
                    .filter(|target| !target.links.address().is_local())
                    .cloned()
                    .collect(),
            ),
        };
        Ok(())
    }

    /// Calls an object in this process.
    pub(super) fn step_here(&mut self, key: &[u8], orb: &Arc<OrbCore>) -> Step {
        match &self.request {
            Request::Call(operation, arguments) if operation.is_oneway() => {
                match loopback_oneway(orb, key, operation.name(), arguments) {
                    Ok(()) => Step::Done(Answer::Sent),
                    Err(next) => Step::Decide(next),
                }
            }
            Request::Call(operation, arguments) => {
                match loopback(orb, key, operation.name(), loopback::encoding(), arguments, WaitPolicy::None)
                {
                    Ok(message) => self.on_reply(message, orb),
                    Err(next) => Step::Decide(next),
                }
            }
            Request::Locate => match orb.adapter.locate(key, HoldMode::Wait) {
                Ok(()) | Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => {
                    Step::Done(Answer::Located(true))
                }
                Err(Refusal::Exception(_)) => Step::Done(Answer::Located(false)),
                Err(Refusal::Forward(ior)) => Step::Decide(self.invocation.on_forward(ior)),
            },
        }
    }

    /// Handles the state of the request on its connection.
    pub(super) fn on_state(&mut self, state: CallState, orb: &Arc<OrbCore>) -> Step {
        match state {
            CallState::Answered(message) => self.on_reply(message, orb),
            CallState::Ended { end, sent } => {
                Step::Decide(self.invocation.on_failure(CallFailure::ended(end, sent)))
            }
            CallState::Waiting => Step::Wait, // a wake in vain
        }
    }

    fn on_reply(&mut self, message: Message, orb: &Arc<OrbCore>) -> Step {
        match &self.request {
            Request::Call(..) => match self.invocation.on_reply(&message) {
                Answered::Body { at, user_exception } => {
                    let orb = orb.clone();
                    Step::Done(Answer::Reply(Reply { message, body_at: at, user_exception, orb }))
                }
                Answered::Next(next) => Step::Decide(next),
            },
            Request::Locate => match self.invocation.on_locate_reply(&message) {
                Located::Known(known) => Step::Done(Answer::Located(known)),
                Located::Next(next) => Step::Decide(next),
            },
        }
    }

    /// The GIOP version in which the request was written.
    pub(super) fn version(&self) -> Option<ironorb_giop::Version> {
        match &self.target {
            CallTarget::Remote(targets) => targets.get(self.attempt).map(|target| target.request.version()),
            CallTarget::Local(_) => None,
        }
    }
}

impl Request {
    pub(super) fn operation(&self) -> &'static Operation<'static> {
        match self {
            Request::Call(operation, _) => operation,
            Request::Locate => &LOCATE,
        }
    }
}
