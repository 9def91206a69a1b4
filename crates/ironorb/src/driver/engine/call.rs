//! One call of a client engine: its machine, and what the machine leaves to a driver.
//!
//! Nothing here touches a connection; the engine does.

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::connection::{CallId, ClientConnection, RequestOptions};
use ironorb_giop::exception::SystemExceptionKind;
use ironorb_giop::message::{Message, OperationName, RequestTarget, Response};
use ironorb_giop::{Version, Writer};

use super::events::{Answer, Arguments, Outcome, Reply};
use super::{CallNumber, ConnectionId, Time};
use crate::base::config::OnewayBatching;
use crate::call::invocation::CallFailure;
use crate::call::remote_call::{CallEvent, Completed, RemoteCall, Step};
use crate::driver::adapter_threads::WithoutWaits;
use crate::driver::call_contexts::{KeptContexts, kept_contexts, with_kept};
use crate::driver::invoke::LOCATE;
use crate::driver::loopback::{self, WaitPolicy, loopback, loopback_oneway};
use crate::driver::orb_core::OrbCore;
use crate::interceptor::{Attempt, BodyCount};
use crate::object::ObjectRef;
use crate::object::deadline::Deadline;
use crate::object::messaging::SyncScope;
use crate::object::operation::Operation;
use crate::object::route::Route;
use crate::poa::{HoldMode, Refusal};

/// One call in progress.
pub(in crate::driver) struct EngineCall {
    pub(super) object: ObjectRef,
    pub(super) request: Request,
    /// The number of the caller. It selects one of the connections to an endpoint.
    pub(super) caller: usize,
    call: RemoteCall,
    /// The service contexts of its requests, besides those of interceptors.
    contexts: KeptContexts,
    attempt: Option<Attempt>,
    /// The reply that has come.
    reply: Option<Message>,
    pub(super) stage: Stage,
    /// The GIOP version in which the request was written.
    pub(super) version: Version,
    /// The request may wait for others to leave with.
    pub(super) batching: Option<OnewayBatching>,
    /// Gets the outcome of a stub's call, instead of the driver.
    pub(super) on_end: Option<OnEnd>,
}

/// Gets the outcome of a call.
pub(in crate::driver) type OnEnd = Box<dyn FnOnce(Outcome) + Send>;

pub(in crate::driver) enum Request {
    Call(Invoked, Arguments),
    Locate {
        /// The locate may rebind where the policies forbid calls to do so.
        is_free: bool,
    },
}

/// An operation, and what is expected of the server.
pub(in crate::driver) struct Invoked {
    operation: Cow<'static, str>,
    is_oneway: bool,
    response: Response,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Not on a connection yet.
    Begun,
    Connecting(ConnectionId),
    /// Not written yet: the server must take earlier bytes first.
    Blocked(ConnectionId),
    InFlight(ConnectionId, CallId),
}

impl EngineCall {
    pub(super) fn new(
        object: ObjectRef,
        caller: usize,
        request: Request,
        now: Time,
        deadline: Option<Time>,
    ) -> Box<EngineCall> {
        let deadline = Deadline::at_time(deadline);
        let contexts = match &request {
            Request::Call(invoked, _) => {
                let wants_results = invoked.response == Response::SyncWithTarget;
                kept_contexts(&object, &invoked.operation, wants_results, deadline.left(now))
            }
            Request::Locate { .. } => None,
        };
        let call = match &request {
            Request::Call(..) => {
                RemoteCall::new(&object, deadline, object.rebind(), object.shared().has_client_interceptors)
            }
            Request::Locate { is_free } => RemoteCall::locate(&object, deadline, object.rebind(), *is_free),
        };
        let batching = if request.wants_response() { None } else { object.oneway_batching() };
        Box::new(EngineCall {
            object,
            request,
            caller,
            call,
            contexts,
            attempt: None,
            reply: None,
            stage: Stage::Begun,
            version: Version::V1_2,
            batching,
            on_end: None,
        })
    }

    /// A call of a stub.
    pub(in crate::driver) fn of_stub(
        object: &ObjectRef,
        request: Request,
        now: Time,
        deadline: Option<Time>,
        on_end: OnEnd,
    ) -> Box<EngineCall> {
        let mut call = EngineCall::new(object.clone(), 0, request, now, deadline);
        call.on_end = Some(on_end);
        call
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.call.deadline().at()
    }

    pub(super) fn on(&mut self, event: CallEvent, now: Time) -> Step {
        self.call.on(&self.object, event, now)
    }

    pub(super) fn begin(&mut self, now: Time) -> Step {
        self.call.begin(&self.object, now)
    }

    pub(super) fn on_sent(&mut self) -> Step {
        self.call.on_sent()
    }

    pub(super) fn on_reply(&mut self, message: Message) -> Step {
        let reply = self.reply.insert(message);
        self.call.on_reply(reply)
    }

    /// Shows the attempt to the interceptors.
    pub(super) fn show(&mut self) -> CallEvent {
        self.reply = None;
        let Request::Call(invoked, _) = &self.request else { return CallEvent::Shown };
        let interceptors = &self.object.core().interceptors;
        match Attempt::begin(interceptors, &self.object, invoked.operation.clone(), !invoked.is_oneway) {
            Ok(attempt) => {
                self.attempt = Some(attempt);
                CallEvent::Shown
            }
            Err(interrupt) => CallEvent::Interrupted(interrupt),
        }
    }

    /// Tells the interceptors how the attempt has ended.
    pub(super) fn tell(&mut self) -> CallEvent {
        let outcome = self.call.outcome(&self.object, self.reply.as_ref());
        let attempt = self.attempt.take();
        CallEvent::Told(attempt.and_then(|mut attempt| attempt.end(outcome, self.reply.as_ref())))
    }

    /// Writes the request on a connection. `None` when it wants no reply.
    pub(super) fn write(
        &mut self,
        open: &mut ClientConnection<CallNumber>,
        target: &RequestTarget,
        now: Time,
    ) -> Result<Option<CallId>, CallFailure> {
        let left = self.call.deadline().left(now);
        let contexts = with_kept(self.attempt.as_ref(), &self.contexts, &self.object, || None, left, || now);
        let contexts = contexts.encoded();
        let body = BodyCount::default();
        let begun = match &self.request {
            Request::Locate { .. } => open.begin_locate(target).map(Some),
            Request::Call(invoked, arguments) => {
                let operation = OperationName::from(&*invoked.operation);
                let arguments = |w: &mut Writer<'_>| body.write(w, arguments);
                match invoked.response {
                    Response::None => {
                        open.begin_oneway_with(target, operation, contexts, arguments).map(|()| None)
                    }
                    response => {
                        let options = RequestOptions { response, contexts };
                        open.begin_request(target, operation, options, arguments).map(Some)
                    }
                }
            }
        };
        if let Some(attempt) = &mut self.attempt {
            attempt.note_sent(&body);
        }
        begun.map_err(CallFailure::from)
    }

    /// Calls an object in this process.
    pub(super) fn run_here(&mut self, orb: &Arc<OrbCore>, now: Time) -> Step {
        let _alone = WithoutWaits::begin();
        let event = match self.object.routes().current() {
            Err(e) => CallEvent::Raised(e),
            Ok(route) => match (route.route(), &self.request) {
                (Route::Remote(_), _) => CallEvent::Rerouted,
                (Route::Local(key), Request::Locate { .. }) => located(orb, key),
                (Route::Local(key), Request::Call(invoked, arguments)) => {
                    let operation = &*invoked.operation;
                    if invoked.response == Response::None {
                        match loopback_oneway(orb, key, operation, arguments) {
                            Ok(()) => return self.on_sent(),
                            Err(e) => CallEvent::Raised(e),
                        }
                    } else {
                        let encoding = loopback::encoding();
                        match loopback(orb, key, operation, encoding, arguments, WaitPolicy::None) {
                            Ok(message) => return self.on_reply(message),
                            Err(e) => CallEvent::Raised(e),
                        }
                    }
                }
            },
        };
        self.on(event, now)
    }

    /// The answer for the program.
    pub(super) fn answer(&mut self, completed: Completed, orb: &Arc<OrbCore>) -> Answer {
        match (completed, self.reply.take(), &self.request) {
            (Completed::Located(known), ..) => Answer::Located(known),
            (Completed::Reply { at, user_exception }, Some(message), Request::Call(invoked, _))
                if !invoked.is_oneway =>
            {
                Answer::Reply(Reply { message, body_at: at, user_exception, orb: orb.clone() })
            }
            _ => Answer::Sent,
        }
    }
}

/// Asks the adapter of this process for an object.
#[cold]
pub(in crate::driver) fn located(orb: &OrbCore, key: &[u8]) -> CallEvent {
    match orb.adapter.locate(key, HoldMode::Wait) {
        Ok(()) | Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => CallEvent::Located(true),
        Err(Refusal::Exception(e)) if e.kind == SystemExceptionKind::ObjectNotExist => {
            CallEvent::Located(false)
        }
        Err(Refusal::Exception(e)) => CallEvent::Raised(e),
        Err(Refusal::Forward(ior)) => CallEvent::Forwarded(ior),
    }
}

impl Request {
    pub(in crate::driver) fn call(
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments,
    ) -> Request {
        let response = match object.sync_scope() {
            _ if !operation.is_oneway() => Response::SyncWithTarget,
            SyncScope::None | SyncScope::WithTransport => Response::None,
            SyncScope::WithServer => Response::SyncWithServer,
            SyncScope::WithTarget => Response::SyncWithTarget,
        };
        let (operation, is_oneway) = (operation.lasting_name(), operation.is_oneway());
        Request::Call(Invoked { operation, is_oneway, response }, arguments)
    }

    fn wants_response(&self) -> bool {
        !matches!(self, Request::Call(Invoked { response: Response::None, .. }, _))
    }

    pub(super) fn operation(&self) -> &str {
        match self {
            Request::Call(invoked, _) => &invoked.operation,
            Request::Locate { .. } => LOCATE.name(),
        }
    }
}
