//! One synchronous call. The call's [`RemoteCallState`] decides, and the calling thread carries the decisions
//! out with real connections and a real clock.

use std::sync::Arc;

use ironorb_giop::Reader;
use ironorb_giop::connection::RequestOptions;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, RequestTarget, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::EncodedContexts;

use crate::base::time::Time;
use crate::call::invocation::{Answered, CallFailure, Located, Next, RemoteCallState};
use crate::call::route::{Attempts, CurrentRoute, RemoteTarget, Route};
use crate::driver::client::asynchronous::AsyncCall;
use crate::driver::client::{ConnectFailure, EndpointLinks, Link, thread_ordinal};
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::driver::loopback::{self, WaitPolicy, loopback, loopback_oneway};
use crate::generated::Operation;
use crate::interceptor::Attempt;
use crate::object::deadline::{CallTime, Deadline, Passed};
use crate::object::messaging::{Rebind, SyncScope};
use crate::object::{ObjectRef, ReplyEnvironment};
use crate::poa::{HoldMode, Refusal};

/// A reply. The caller reads it.
pub(crate) struct Answer {
    pub(crate) message: Message,
    /// `None` when the answer came from this process.
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) body_at: usize,
    pub(crate) user_exception: bool,
    /// Which server has sent it, if the object has several.
    pub(crate) server: Option<ReplyEnvironment>,
}

impl Answer {
    pub(crate) fn new(
        object: &ObjectRef,
        message: Message,
        link: Option<Arc<Link>>,
        body_at: usize,
        user_exception: bool,
    ) -> Answer {
        let server = object.environment_of_reply(link.as_ref());
        Answer { message, link, body_at, user_exception, server }
    }

    /// A reader at the body.
    #[inline(never)]
    pub(crate) fn reader<'a>(&'a self, object: &'a ObjectRef) -> Reader<'a> {
        object.reader_of_reply(&self.message, self.body_at, self.server.as_ref())
    }
}

/// One synchronous call in progress.
pub(crate) struct RemoteCall<'c> {
    object: &'c ObjectRef,
    operation: &'c Operation<'c>,
    arguments: Arguments<'c>,
    now: Time,
    deadline: Deadline,
    invocation: RemoteCallState,
    route: CurrentRoute<'c>,
    attempts: Attempts,
    /// True when the caller could not rely on any route at the beginning of the call.
    is_free: bool,
}

impl<'c> RemoteCall<'c> {
    pub(crate) fn begin(
        object: &'c ObjectRef,
        operation: &'c Operation<'c>,
        arguments: Arguments<'c>,
    ) -> Result<Self, SystemException> {
        let core = object.core();
        let now = clock::now();
        let deadline = Deadline::for_call(now, object.timeout(), || core.call_timeout());
        let (route, is_first) = object.routes().begin(object)?;
        let config = &core.config;
        let invocation = RemoteCallState::new(config.forwards_max, config.resends_max, route.is_forwarded());
        Ok(RemoteCall {
            object,
            operation,
            arguments,
            now,
            deadline,
            invocation,
            route,
            attempts: Attempts::default(),
            is_free: is_first,
        })
    }

    /// Finishes a twoway call whose request the fast path sent to the first address, starting with the
    /// outcome of that.
    #[cold]
    pub(crate) fn resume(
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
        time: CallTime,
        link: Arc<Link>,
        outcome: Result<Message, CallFailure>,
    ) -> Result<Answer, SystemException> {
        let mut remote_call = RemoteCall::begun(object, operation, arguments, time)?;
        let next = match outcome {
            Ok(message) => match remote_call.invocation.on_reply(&message) {
                Answered::Body { at, user_exception } => {
                    return Ok(Answer::new(object, message, Some(link), at, user_exception));
                }
                Answered::Next(next) => next,
            },
            Err(failure) => remote_call.failed(failure),
        };
        drop(link);
        remote_call.follow(next)?;
        remote_call.answered(Response::SyncWithTarget)
    }

    /// Finishes a oneway call whose request the fast path sent to the first address, starting with the
    /// outcome of that.
    #[cold]
    pub(crate) fn resume_oneway(
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
        time: CallTime,
        failure: CallFailure,
    ) -> Result<(), SystemException> {
        let mut remote_call = RemoteCall::begun(object, operation, arguments, time)?;
        let next = remote_call.failed(failure);
        remote_call.follow(next)?;
        remote_call.complete_oneway()
    }

    /// Makes the state of a call that the fast path has begun.
    fn begun(
        object: &'c ObjectRef,
        operation: &'c Operation<'c>,
        arguments: Arguments<'c>,
        time: CallTime,
    ) -> Result<Self, SystemException> {
        let config = &object.core().config;
        let (now, deadline) = time.settle();
        let mut attempts = Attempts::default();
        attempts.mark(0);
        Ok(RemoteCall {
            object,
            operation,
            arguments,
            now,
            deadline,
            invocation: RemoteCallState::new(config.forwards_max, config.resends_max, false),
            route: CurrentRoute::Original(object.routes().original(object)?),
            attempts,
            is_free: false,
        })
    }

    /// Decides what follows the failure at the first address.
    fn failed(&mut self, failure: CallFailure) -> Next {
        match self.route.route() {
            Route::Remote(targets) => failed(&mut self.invocation, failure, &targets.as_slice()[0].links),
            Route::Local(_) => self.invocation.on_failure(failure),
        }
    }

    /// Runs a whole twoway call.
    pub(crate) fn twoway(
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        RemoteCall::begin(object, operation, arguments)?.answered(Response::SyncWithTarget)
    }

    fn answered(&mut self, response: Response) -> Result<Answer, SystemException> {
        if !self.object.core().interceptors.client.is_empty() {
            return self.answered_before_interceptors(response);
        }
        loop {
            let (message, link) = match self.request(response, EncodedContexts::EMPTY) {
                Ok(answered) => answered,
                Err(next) => {
                    self.follow(next)?;
                    continue;
                }
            };
            match self.invocation.on_reply(&message) {
                Answered::Body { at, user_exception } => {
                    return Ok(Answer::new(self.object, message, link, at, user_exception));
                }
                Answered::Next(next) => self.follow(next)?,
            }
        }
    }

    /// Sends the request until it is answered, and shows each attempt to the interceptors.
    #[cold]
    fn answered_before_interceptors(&mut self, response: Response) -> Result<Answer, SystemException> {
        loop {
            let wants_results = !self.operation.is_oneway();
            let attempt = match Attempt::begin(self.object, self.operation.lasting_name(), wants_results) {
                Ok(attempt) => attempt,
                Err(interrupt) => {
                    let next = self.invocation.on_interrupt(interrupt);
                    self.follow(next)?;
                    continue;
                }
            };
            let contexts = attempt.contexts();
            let (next, instead) = match self.request(response, contexts.encoded()) {
                Err(next) => {
                    let instead = attempt.led_to(&next, None);
                    (next, instead)
                }
                Ok((message, link)) => match self.invocation.on_reply(&message) {
                    Answered::Body { at, user_exception } => {
                        match attempt.answered(&message, at, user_exception) {
                            None => {
                                return Ok(Answer::new(self.object, message, link, at, user_exception));
                            }
                            Some(interrupt) => (Next::Resend, Some(interrupt)),
                        }
                    }
                    Answered::Next(next) => {
                        let instead = attempt.led_to(&next, Some(&message));
                        (next, instead)
                    }
                },
            };
            let next = match instead {
                None => next,
                Some(interrupt) => self.invocation.on_interrupt(interrupt),
            };
            self.follow(next)?;
        }
    }

    /// Sends the request once and waits for its reply.
    fn request(
        &mut self,
        response: Response,
        contexts: EncodedContexts<'_>,
    ) -> Result<(Message, Option<Arc<Link>>), Next> {
        if let Route::Local(key) = self.route.route() {
            // A forward has led into this very process, which the typed caller could not know.
            let orb = self.object.core();
            let encoding = loopback::encoding();
            let wait_policy = WaitPolicy::Until(self.deadline);
            let operation = self.operation.name();
            return loopback(orb, key, operation, encoding, self.arguments, wait_policy)
                .map(|message| (message, None));
        }
        let options = RequestOptions { response, contexts };
        let (operation, arguments) = (self.operation.wire_name(), self.arguments);
        let (message, link) = self.send(|link, target, now, deadline| {
            link.call(target, options, operation, arguments, now, deadline)
        })?;
        Ok((message, Some(link)))
    }

    /// Runs a call without results. It waits for what the caller's `SyncScope` says.
    pub(crate) fn oneway(&mut self) -> Result<(), SystemException> {
        let response = match self.object.sync_scope() {
            SyncScope::None => return AsyncCall::send_oneway(self.object, self.operation, self.arguments),
            SyncScope::WithTransport => return self.complete_oneway(),
            SyncScope::WithServer => Response::SyncWithServer,
            SyncScope::WithTarget => Response::SyncWithTarget,
        };
        // The caller calls an object of this process at once, so no wait remains; the object still answers.
        let answer = self.answered(response)?;
        if let Some(link) = answer.link {
            link.recycle(answer.message);
        }
        Ok(())
    }

    fn complete_oneway(&mut self) -> Result<(), SystemException> {
        if !self.object.core().interceptors.client.is_empty() {
            return self.complete_oneway_intercepted();
        }
        loop {
            match self.send_oneway(EncodedContexts::EMPTY) {
                Ok(()) => return Ok(()),
                Err(next) => self.follow(next)?,
            }
        }
    }

    /// Sends a oneway until that succeeds, and shows each attempt to the interceptors.
    #[cold]
    fn complete_oneway_intercepted(&mut self) -> Result<(), SystemException> {
        loop {
            let next = match Attempt::begin(self.object, self.operation.lasting_name(), false) {
                Err(interrupt) => self.invocation.on_interrupt(interrupt),
                Ok(attempt) => match self.send_oneway(attempt.contexts().encoded()) {
                    Ok(()) => match attempt.sent() {
                        None => return Ok(()),
                        Some(interrupt) => self.invocation.on_interrupt(interrupt),
                    },
                    Err(next) => match attempt.led_to(&next, None) {
                        None => next,
                        Some(interrupt) => self.invocation.on_interrupt(interrupt),
                    },
                },
            };
            self.follow(next)?;
        }
    }

    #[inline]
    fn send_oneway(&mut self, contexts: EncodedContexts<'_>) -> Result<(), Next> {
        let (operation, arguments) = (self.operation.wire_name(), self.arguments);
        let batching = self.object.oneway_batching();
        match self.route.route() {
            Route::Local(key) => loopback_oneway(self.object.core(), key, operation.text(), arguments),
            Route::Remote(_) => self
                .send(|link, target, now, deadline| {
                    link.oneway(target, contexts, operation, arguments, batching, now, deadline)
                })
                .map(drop),
        }
    }

    /// Asks the server where the object is, and follows forwards.
    pub(crate) fn locate(&mut self) -> Result<bool, SystemException> {
        loop {
            if let Route::Local(key) = self.route.route() {
                match self.object.core().adapter.locate(key, HoldMode::Wait) {
                    Ok(()) | Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => return Ok(true),
                    Err(Refusal::Exception(e)) if e.kind == SystemExceptionKind::ObjectNotExist => {
                        return Ok(false);
                    }
                    Err(Refusal::Exception(e)) => return Err(e),
                    Err(Refusal::Forward(ior)) => {
                        let next = self.invocation.on_forward(ior);
                        self.follow(next)?;
                        continue;
                    }
                }
            }
            let message = match self.send(Link::locate) {
                Ok((message, _)) => message,
                Err(next) => {
                    self.follow(next)?;
                    continue;
                }
            };
            match self.invocation.on_locate_reply(&message) {
                Located::Known(known) => return Ok(known),
                Located::Next(next) => self.follow(next)?,
            }
        }
    }

    /// Asks where the object is, and rebinds also where the policy forbids calls to do so.
    pub(crate) fn bind(mut self) -> Result<bool, SystemException> {
        self.is_free = true;
        self.locate()
    }

    /// Sends the request once, over the first address that answers.
    fn send<T>(
        &mut self,
        send: impl FnOnce(&Link, &RequestTarget, Time, Deadline) -> Result<T, CallFailure>,
    ) -> Result<(T, Arc<Link>), Next> {
        let RemoteCall { route, attempts, invocation, now, deadline, object, is_free, .. } = self;
        let targets = match route.route() {
            Route::Remote(targets) => targets.as_slice(),
            // A forward has led into this process while a locate was under way. The next call sees it.
            Route::Local(_) => &[],
        };
        // Usually the first address is connected.
        let first = match targets.first() {
            Some(target) if attempts.is_fresh() => target.links.open_link(thread_ordinal(), clock::coarse()),
            _ => None,
        };
        let (target, link) = match first {
            Some(link) => {
                attempts.mark(0);
                (&targets[0], link)
            }
            None => {
                let scope = ConnectScope { object, is_free: *is_free, deadline: *deadline };
                scope.connect(targets, attempts, invocation)?
            }
        };
        match send(&link, &target.request, *now, *deadline) {
            Ok(sent) => Ok((sent, link)),
            Err(failure) => Err(failed(invocation, failure, &target.links)),
        }
    }

    /// Carries out a decision. An error ends the call.
    #[cold]
    fn follow(&mut self, next: Next) -> Result<(), SystemException> {
        let next = match next {
            Next::TryNext(e) if self.pass_over() => {
                self.now = clock::now();
                // The call tries further servers only while there is time. After that the first failure is as
                // good as any.
                return if self.deadline.remaining(self.now).is_ok() { Ok(()) } else { Err(e) };
            }
            Next::TryNext(e) => self.invocation.on_no_alternative(e),
            Next::Follow { .. } if !self.is_free && self.object.rebind() > Rebind::Transparent => {
                self.invocation.on_rebind_forbidden()
            }
            next => next,
        };
        let routes = self.object.routes();
        routes.take(self.object, next)?;
        self.now = clock::now();
        if self.deadline.remaining(self.now) == Err(Passed) {
            return Err(self.invocation.on_timeout(false));
        }
        self.attempts = Attempts::default();
        self.route = routes.current(self.object)?;
        self.invocation.on_route(self.route.is_forwarded());
        Ok(())
    }

    fn pass_over(&mut self) -> bool {
        match self.route.route() {
            Route::Remote(targets) => self.attempts.pass_over(targets.as_slice()),
            Route::Local(_) => false,
        }
    }
}

/// How far a call may go to get a connection.
struct ConnectScope<'w> {
    object: &'w ObjectRef,
    is_free: bool,
    deadline: Deadline,
}

impl ConnectScope<'_> {
    /// Returns a connection to the first address that answers.
    #[cold]
    fn connect<'t>(
        &self,
        targets: &'t [RemoteTarget],
        attempts: &mut Attempts,
        invocation: &mut RemoteCallState,
    ) -> Result<(&'t RemoteTarget, Arc<Link>), Next> {
        let ordinal = thread_ordinal();
        let mut refused = Refused::new();
        loop {
            let now = clock::now();
            let Some(index) = attempts.next(targets.len(), |index| targets[index].links.is_failing(now))
            else {
                return Err(not_connected(invocation, self.deadline, &refused));
            };
            let target = &targets[index];
            // An address that does not answer must not use up the time of the others.
            let deadline = self.deadline.share(now, 1 + attempts.left(targets.len()));
            let connected = match target.links.link_in_turn(ordinal, deadline) {
                Ok(Some(link)) => return Ok((target, link)),
                Ok(None) if !may_connect(self.object, self.is_free, &target.links) => {
                    return Err(invocation.on_rebind_forbidden());
                }
                Ok(None) => target.links.connect_for(ordinal, deadline),
                Err(failure) => Err(failure),
            };
            match connected {
                Ok(link) => return Ok((target, link)),
                Err(failure) => refused.push((target.links.address().to_string(), failure)),
            }
        }
    }
}

/// Whether the caller's policy allows a connection: NO_RECONNECT forbids a second one to an endpoint.
#[cold]
pub(crate) fn may_connect(object: &ObjectRef, is_free: bool, links: &EndpointLinks) -> bool {
    is_free || !links.was_connected() || object.rebind() < Rebind::NoReconnect
}

#[cold]
fn failed(invocation: &mut RemoteCallState, failure: CallFailure, links: &EndpointLinks) -> Next {
    let misused = matches!(failure, CallFailure::Misuse(_));
    match invocation.on_failure(failure) {
        Next::Fail(e) if !misused => Next::Fail(at_address(e, links)),
        Next::TryNext(e) => Next::TryNext(at_address(e, links)),
        next => next,
    }
}

#[cold]
fn at_address(e: SystemException, links: &EndpointLinks) -> SystemException {
    let detail = match e.detail() {
        Some(detail) => format!("at {}: {detail}", links.address()),
        None => format!("at {}", links.address()),
    };
    e.with_detail(detail)
}

/// The addresses that could not be connected, with the reasons.
pub(crate) type Refused = Vec<(String, ConnectFailure)>;

/// Decides what follows when no address could be connected.
#[cold]
pub(crate) fn not_connected(
    invocation: &mut RemoteCallState,
    deadline: Deadline,
    refused: &[(String, ConnectFailure)],
) -> Next {
    if refused.iter().any(|(_, failure)| matches!(failure, ConnectFailure::ShutDown)) {
        return Next::Fail(crate::orb::shut_down());
    }
    if deadline.remaining(clock::now()) == Err(Passed) {
        return Next::Fail(invocation.on_timeout(false).with_detail("the connection was not made in time"));
    }
    if refused.iter().any(|(_, failure)| matches!(failure, ConnectFailure::TooMany)) {
        return Next::Fail(SystemException::new(
            SystemExceptionKind::NoResources,
            MinorCode::TOO_MANY_CONNECTIONS,
            CompletionStatus::No,
        ));
    }
    let timed_out = refused.iter().all(|(_, failure)| matches!(failure, ConnectFailure::TimedOut));
    let reasons: Vec<String> = refused
        .iter()
        .map(|(address, failure)| match failure {
            ConnectFailure::Io(e) => format!("{address}: {e}"),
            _ => format!("{address}: no answer in time"),
        })
        .collect();
    match invocation.on_connect_failed(timed_out) {
        Next::Fail(e) => Next::Fail(e.with_detail(format!(
            "{}; is the server running, and is the address right?",
            reasons.join(", ")
        ))),
        next => next,
    }
}
