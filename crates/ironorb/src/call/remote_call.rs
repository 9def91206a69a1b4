//! One remote call, from its beginning to its outcome: what it does next, for every driver.
//!
//! ```text
//! let mut step = call.begin(object, now);
//! loop { step = call.on(object, carry_out(step), now) }     until the step is Done, or there is nothing to carry out yet
//! ```
//!
//! A driver has the object, the arguments, the connections, the interceptors' attempt and the reply. The machine has
//! what the call knows of itself: which addresses it has tried, how often it may go on, what its policies allow. It runs
//! no application code. An event that ends an attempt changes nothing but the machine, so a driver may give it with a
//! connection locked; `GoOn` changes the route.

use std::sync::Arc;
use std::{fmt, io};

use ironorb_giop::connection::ConnectionEnd;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::Ior;
use ironorb_giop::message::Message;
use ironorb_giop::minor::MinorCode;

use super::invocation::{Answered, CallFailure, Located, Next, RemoteCallState};
use super::route::Attempts;
use crate::base::time::Time;
use crate::interceptor::{Interrupt, Outcome};
use crate::object::ObjectRef;
use crate::object::deadline::{Deadline, Passed, deadline_of_request};
use crate::object::messaging::Rebind;
use crate::object::route::{Route, Selected, Targets};
use crate::object::selection::{ConnectionWish, InconsistentPolicies};
use crate::object::server_profile::ServerTarget;

/// A call in progress. Plain data.
#[derive(Debug)]
pub(crate) struct RemoteCall {
    limits: RemoteCallState,
    is_locate: bool,
    deadline: Deadline,
    rebind: Rebind,
    /// True when the caller could not rely on any route at the beginning of the call, or asks to be bound anew.
    is_free: bool,
    interception: Interception,
    /// The version of the route to which the next three belong. Another call may change the route.
    route: u32,
    attempts: Attempts,
    /// What the call asks of its connection, beside the server.
    wish: ConnectionWish,
    /// The index of the first of the route's addresses that the call may take.
    first: usize,
    /// The address of the route that is being tried.
    index: usize,
    /// The addresses that could not be connected since the route was looked up.
    refused: Vec<Refused>,
    lateness: Lateness,
    /// What the attempt has led to, while the interceptors are told of it and until the call goes on.
    verdict: Option<Verdict>,
}

/// How far the interceptors know of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interception {
    /// There are none, or they are not asked.
    None,
    /// They have not seen the next attempt.
    Due,
    /// They have let the attempt pass, and must learn how it ends.
    Passed,
}

/// Whether a server took the request for too late, although the call still has time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lateness {
    /// Requests carry no deadline, or one has come back as too late. A server that says so is believed.
    Final,
    /// The next server that says so may be wrong about the client's clock.
    Doubtful,
    /// One has said so just now.
    Claimed,
}

/// An address that could not be connected.
#[derive(Debug)]
struct Refused {
    address: String,
    failure: ConnectFailure,
}

/// The reason why there is no connection.
#[derive(Debug, Clone)]
pub(crate) enum ConnectFailure {
    /// The ORB has been shut down.
    ShutDown,
    /// The deadline of the call or of the attempt passed.
    TimedOut,
    /// As many connections as allowed are open, and in use.
    TooMany,
    /// The system's error.
    Io(Arc<io::Error>),
}

/// What has happened to a call, besides its [reply](RemoteCall::on_reply).
pub(crate) enum CallEvent {
    /// The interceptors have let the attempt pass.
    Shown,
    /// An interceptor has ended the attempt before the request was sent.
    Interrupted(Interrupt),
    /// There is no connection to the address, and none is being made.
    Unconnected,
    /// There is a connection to the address now.
    Connected,
    /// The address could not be connected.
    NotConnected(ConnectFailure),
    /// The route has changed, and has no such address any more.
    Rerouted,
    /// The request has been written, and wants no reply.
    Sent,
    /// The request was not answered.
    Failed(CallFailure),
    /// An object of this process has been found, or not.
    Located(bool),
    /// The adapter of this process forwards the call.
    Forwarded(Ior),
    /// The call failed in this process.
    Raised(SystemException),
    /// The deadline has passed. `written` says whether the request had been written to a connection.
    TimedOut {
        /// Whether the request had been written to a connection.
        written: bool,
    },
    /// The caller has given the call up.
    GivenUp(SystemException),
    /// The interceptors have been told the outcome, and one may have put another in its place.
    Told(Option<Interrupt>),
    /// The call may go on.
    GoOn,
}

/// What a driver does next. It answers with one of the events that each step names.
#[derive(Debug)]
pub(crate) enum Step {
    /// Show the attempt to the interceptors: `Shown`, `Interrupted`.
    Show,
    /// Send the request to the address of the current route with this index, over a connection that is there or is being
    /// made for other calls: `on_sent`, `on_reply`, `Failed`, `Unconnected`, `NotConnected`, `Rerouted`.
    Send(usize),
    /// Connect to this address: `Connected`, `NotConnected`, `Rerouted`.
    Connect {
        /// The address of the current route.
        index: usize,
        /// When to give up, so that time is left for other addresses.
        until: Deadline,
    },
    /// Call the object in this process that the current route leads to: `on_sent`, `on_reply`, `Located`, `Forwarded`,
    /// `Raised`.
    RunHere,
    /// Tell the interceptors the [`outcome`](RemoteCall::outcome) of the attempt: `Told`.
    Tell,
    /// Go on where locks may be taken and threads may block, for the call needs another attempt: `GoOn`.
    GoOn,
    /// The call is over.
    Done(Result<Completed, SystemException>),
}

/// How a call has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completed {
    /// The reply that has come has results or a user exception.
    Reply {
        /// The position in the message at which they begin.
        at: usize,
        /// True for a user exception.
        user_exception: bool,
    },
    /// The request has been sent.
    Sent,
    /// Whether the object is known.
    Located(bool),
}

/// What an attempt has led to.
#[derive(Debug)]
enum Verdict {
    Completed(Completed),
    Next(Next),
    /// The call ends with this, and only an interceptor's exception may take its place.
    Over(SystemException),
}

impl RemoteCall {
    /// A call that begins. `is_intercepted` says whether interceptors are asked.
    #[inline]
    pub(crate) fn new(
        object: &ObjectRef,
        deadline: Deadline,
        rebind: Rebind,
        is_intercepted: bool,
    ) -> RemoteCall {
        RemoteCall {
            is_free: object.routes().is_first_call(),
            ..RemoteCall::at_first_address(object, deadline, rebind, is_intercepted)
        }
    }

    /// A locate that begins. With `is_free` it may rebind where the policies forbid calls to do so.
    pub(crate) fn locate(
        object: &ObjectRef,
        deadline: Deadline,
        rebind: Rebind,
        is_free: bool,
    ) -> RemoteCall {
        let call = RemoteCall::new(object, deadline, rebind, false);
        RemoteCall { is_locate: true, is_free: is_free || call.is_free, ..call }
    }

    /// A call that binds the object: it may rebind where the policies forbid calls to do so.
    pub(crate) fn bind(object: &ObjectRef, deadline: Deadline, rebind: Rebind) -> RemoteCall {
        let call = RemoteCall::new(object, deadline, rebind, false);
        RemoteCall { is_free: true, ..call }
    }

    /// A call whose request has been sent to the first address of the reference, or to that for its priority, by a way
    /// that needs no decision. The interceptors have let it pass.
    #[cold]
    pub(crate) fn resumed(object: &ObjectRef, deadline: Deadline, rebind: Rebind) -> RemoteCall {
        let mut call = RemoteCall::at_first_address(object, deadline, rebind, false);
        if object.shared().has_client_interceptors {
            call.interception = Interception::Passed;
        }
        call.resume_at(object);
        call
    }

    /// Takes the address that a way without decisions has taken.
    fn resume_at(&mut self, object: &ObjectRef) {
        if object.shared().real_time.is_none() {
            return self.attempts.mark(0);
        }
        let Ok(route) = object.routes().current() else { return };
        let Some(Ok(selected)) = route.targets().map(|targets| targets.select(&self.wish)) else { return };
        self.take_preferred(selected).unwrap_or_else(|| {
            self.attempts.mark(0);
            self.index = selected.first;
        });
    }

    /// Goes to the address that comes before all, once.
    fn take_preferred(&mut self, selected: Selected) -> Option<()> {
        self.first = selected.first;
        self.index = selected.preferred.filter(|_| self.attempts.take_lane())?;
        // It may be one of the others, too.
        self.attempts.mark(self.index.wrapping_sub(self.first));
        Some(())
    }

    #[inline]
    fn at_first_address(
        object: &ObjectRef,
        deadline: Deadline,
        rebind: Rebind,
        is_intercepted: bool,
    ) -> RemoteCall {
        let config = &object.shared().config;
        RemoteCall {
            limits: RemoteCallState::new(config.forwards_max, config.resends_max, false),
            is_locate: false,
            deadline,
            rebind,
            is_free: false,
            interception: if is_intercepted { Interception::Due } else { Interception::None },
            route: object.routes().version(),
            attempts: Attempts::default(),
            wish: ConnectionWish::now(object),
            first: 0,
            index: 0,
            refused: Vec::new(),
            lateness: match object.shared().deadline_clock {
                None => Lateness::Final,
                Some(_) => Lateness::Doubtful,
            },
            verdict: None,
        }
    }

    /// Forwards that the call has followed, and times that it was sent again.
    pub(crate) fn detours(&self, object: &ObjectRef) -> (u8, u8) {
        let config = &object.shared().config;
        let (forwards_left, resends_left) = self.limits.left();
        (config.forwards_max.saturating_sub(forwards_left), config.resends_max.saturating_sub(resends_left))
    }

    /// When the call gives up.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Begins the call, and returns what to do first.
    #[inline]
    pub(crate) fn begin(&mut self, object: &ObjectRef, now: Time) -> Step {
        if deadline_of_request().at().is_some_and(|at| at <= now) {
            // The caller of the request that makes this call has given up.
            return Step::Done(Err(self.limits.on_timeout(false)));
        }
        self.attempt(object, now)
    }

    /// Takes the news that the request has been written and wants no reply, and returns what to do next.
    #[inline]
    pub(crate) fn on_sent(&mut self) -> Step {
        self.conclude(Verdict::Completed(Completed::Sent))
    }

    /// Takes the reply, and returns what to do next.
    #[inline]
    pub(crate) fn on_reply(&mut self, message: &Message) -> Step {
        let verdict = if self.is_locate {
            match self.limits.on_locate_reply(message) {
                Located::Known(known) => Verdict::Completed(Completed::Located(known)),
                Located::Next(next) => Verdict::Next(next),
            }
        } else {
            match self.limits.on_reply(message) {
                Answered::Body { at, user_exception } => {
                    Verdict::Completed(Completed::Reply { at, user_exception })
                }
                Answered::Next(Next::Fail(e)) if self.lateness == Lateness::Doubtful && is_too_late(&e) => {
                    self.lateness = Lateness::Claimed;
                    Verdict::Next(self.limits.on_too_late(e))
                }
                Answered::Next(next) => Verdict::Next(next),
            }
        };
        self.conclude(verdict)
    }

    /// Takes an event that is neither of these, and returns what to do next.
    #[cold]
    pub(crate) fn on(&mut self, object: &ObjectRef, event: CallEvent, now: Time) -> Step {
        let verdict = match event {
            CallEvent::Shown => {
                self.interception = Interception::Passed;
                if self.deadline.remaining(now) != Err(Passed) {
                    return self.reach(object, now);
                }
                Verdict::Over(self.limits.on_timeout(false))
            }
            CallEvent::Interrupted(interrupt) => {
                let next = self.limits.on_interrupt(interrupt);
                return self.follow(object, next, now);
            }
            CallEvent::Connected => return Step::Send(self.index),
            CallEvent::NotConnected(failure) => {
                if let Some(address) = self.with_target(object, ServerTarget::address_text) {
                    self.refused.push(Refused { address, failure });
                }
                return self.reach(object, now);
            }
            CallEvent::Unconnected => match self.with_target(object, |target| target.was_connected()) {
                Some(true) if !self.is_free && self.rebind >= Rebind::NoReconnect => {
                    Verdict::Next(self.limits.on_rebind_forbidden())
                }
                _ => return Step::Connect { index: self.index, until: self.share(object, now) },
            },
            CallEvent::Rerouted => Verdict::Next(self.limits.on_not_sent(ConnectionEnd::Lost)),
            CallEvent::Sent => return self.on_sent(),
            CallEvent::Failed(CallFailure::TimedOut { written }) | CallEvent::TimedOut { written } => {
                Verdict::Over(self.limits.on_timeout(written))
            }
            CallEvent::Failed(failure) => Verdict::Next(self.failed(object, failure)),
            CallEvent::Located(known) => Verdict::Completed(Completed::Located(known)),
            CallEvent::Forwarded(ior) => Verdict::Next(self.limits.on_forward(ior)),
            CallEvent::Raised(e) => Verdict::Next(Next::Fail(e)),
            CallEvent::GivenUp(e) => Verdict::Over(e),
            CallEvent::Told(interrupt) => return self.told(interrupt),
            CallEvent::GoOn => {
                return match self.verdict.take() {
                    Some(Verdict::Next(next)) => self.follow(object, next, now),
                    _ => self.attempt(object, now),
                };
            }
        };
        self.conclude(verdict)
    }

    /// The outcome of the attempt, for the interceptors. `reply` is the reply, if one has come.
    pub(crate) fn outcome(&self, object: &ObjectRef, reply: Option<&Message>) -> Outcome {
        match &self.verdict {
            Some(Verdict::Completed(Completed::Reply { at, user_exception: true })) => {
                let id = reply.and_then(|reply| Some(reply.reader_at(*at).read_str().ok()?.into_owned()));
                Outcome::UserException(id.unwrap_or_default())
            }
            Some(Verdict::Completed(Completed::Sent)) => Outcome::Oneway,
            Some(Verdict::Completed(_)) => Outcome::Results,
            Some(Verdict::Over(e) | Verdict::Next(Next::Fail(e) | Next::TryNext(e))) => {
                Outcome::SystemException(e.clone())
            }
            Some(Verdict::Next(Next::Follow { ior, .. })) => {
                Outcome::Forward(ObjectRef::new(object.handle(), (**ior).clone()))
            }
            Some(Verdict::Next(Next::Resend | Next::Readdress(_) | Next::FallBack)) | None => Outcome::Retry,
        }
    }

    /// Ends an attempt. The interceptors learn of it first.
    #[inline]
    fn conclude(&mut self, verdict: Verdict) -> Step {
        if self.interception == Interception::Passed {
            self.interception = Interception::Due;
            self.verdict = Some(verdict);
            return Step::Tell;
        }
        self.accept(verdict)
    }

    #[cold]
    fn told(&mut self, interrupt: Option<Interrupt>) -> Step {
        let verdict = match (self.verdict.take(), interrupt) {
            (Some(Verdict::Over(_)), Some(Interrupt::Raise(e))) => Verdict::Over(e),
            (Some(Verdict::Over(e)), _) => Verdict::Over(e),
            (_, Some(interrupt)) => Verdict::Next(self.limits.on_interrupt(interrupt)),
            (Some(verdict), None) => verdict,
            (None, None) => return Step::GoOn,
        };
        self.accept(verdict)
    }

    #[inline]
    fn accept(&mut self, verdict: Verdict) -> Step {
        match verdict {
            Verdict::Completed(completed) => Step::Done(Ok(completed)),
            Verdict::Over(e) | Verdict::Next(Next::Fail(e)) => Step::Done(Err(e)),
            Verdict::Next(_) => {
                self.verdict = Some(verdict);
                Step::GoOn
            }
        }
    }

    /// Applies a decision to the route, and goes on.
    #[cold]
    fn follow(&mut self, object: &ObjectRef, next: Next, now: Time) -> Step {
        let next = match next {
            Next::TryNext(e) if self.pass_over(object) => {
                // The call tries further servers only while there is time. After that the first failure is as good as
                // any.
                return match self.deadline.remaining(now) {
                    Ok(_) => self.attempt(object, now),
                    Err(Passed) => Step::Done(Err(e)),
                };
            }
            Next::TryNext(e) => self.limits.on_no_alternative(e),
            Next::Follow { .. } if !self.is_free && self.rebind > Rebind::Transparent => {
                self.limits.on_rebind_forbidden()
            }
            next => next,
        };
        if self.lateness == Lateness::Claimed
            && let Some(clock) = &object.shared().deadline_clock
        {
            self.lateness = Lateness::Final;
            // The call still has time. So the server was wrong about the client's clock, which may have stood still.
            if self.deadline.remaining(now) != Err(Passed) {
                clock.renew();
            }
        }
        if let Err(e) = object.routes().take(next) {
            return Step::Done(Err(e));
        }
        if self.deadline.remaining(now) == Err(Passed) {
            return Step::Done(Err(self.limits.on_timeout(false)));
        }
        self.start_over(object);
        self.attempt(object, now)
    }

    /// Forgets which addresses have been tried.
    #[cold]
    fn start_over(&mut self, object: &ObjectRef) {
        self.route = object.routes().version();
        self.attempts = Attempts::default();
        self.refused.clear();
    }

    /// Begins an attempt. The interceptors see it first.
    #[inline]
    fn attempt(&mut self, object: &ObjectRef, now: Time) -> Step {
        if self.interception == Interception::Due {
            return Step::Show;
        }
        self.reach(object, now)
    }

    /// Goes to the next address of the route.
    #[inline]
    fn reach(&mut self, object: &ObjectRef, now: Time) -> Step {
        if self.route != object.routes().version() {
            self.start_over(object);
        }
        let route = match object.routes().current() {
            Ok(route) => route,
            Err(e) => return self.conclude(Verdict::Next(Next::Fail(e))),
        };
        self.limits.on_route(route.is_forwarded());
        let Route::Remote(targets) = route.route() else { return Step::RunHere };
        if object.shared().real_time.is_some() {
            match self.reach_preferred(targets, now) {
                Ok(None) => {}
                Ok(Some(step)) => return step,
                Err(e) => return self.conclude(Verdict::Next(Next::Fail(e.into()))),
            }
        }
        let servers = targets.servers_from(self.first);
        match self.attempts.next(servers.len(), |place| servers[place].is_failing(now)) {
            Some(place) => {
                self.index = self.first + place;
                Step::Send(self.index)
            }
            None => {
                let next = self.unreachable(now);
                self.conclude(Verdict::Next(next))
            }
        }
    }

    /// Goes to the address that comes before all in a real-time ORB, once.
    #[cold]
    fn reach_preferred(
        &mut self,
        targets: Targets<'_>,
        now: Time,
    ) -> Result<Option<Step>, InconsistentPolicies> {
        let selected = targets.select(&self.wish)?;
        let is_there = |index| targets.get(index).is_some_and(|target| !target.server.is_failing(now));
        let preferred = selected.preferred.filter(|index| is_there(*index));
        Ok(self.take_preferred(Selected { preferred, ..selected }).map(|()| Step::Send(self.index)))
    }

    /// When an attempt to connect must end, so that time is left for the addresses that have not been tried.
    pub(crate) fn share(&self, object: &ObjectRef, now: Time) -> Deadline {
        let left = match object.routes().current() {
            Ok(route) => route
                .targets()
                .map_or(0, |targets| self.attempts.left(targets.servers_from(self.first).len())),
            Err(_) => 0,
        };
        self.deadline.share(now, 1 + left)
    }

    /// True when an untried server is left.
    fn pass_over(&mut self, object: &ObjectRef) -> bool {
        let route = object.routes().current();
        route.is_ok_and(|route| {
            let first = self.first;
            route.targets().is_some_and(|targets| self.attempts.pass_over(targets.servers_from(first)))
        })
    }

    /// Looks at the address that is being tried; `None` when another call has changed the route.
    fn with_target<T>(&self, object: &ObjectRef, of: impl FnOnce(&ServerTarget) -> T) -> Option<T> {
        if self.route != object.routes().version() {
            return None;
        }
        let route = object.routes().current().ok()?;
        route.target(self.index).map(|target| of(target.server))
    }

    /// Decides after a failure at the address that is being tried.
    #[cold]
    fn failed(&mut self, object: &ObjectRef, failure: CallFailure) -> Next {
        let is_the_callers = matches!(failure, CallFailure::Misuse(_));
        match self.limits.on_failure(failure) {
            Next::Fail(e) if !is_the_callers => Next::Fail(self.at_address(object, e)),
            Next::TryNext(e) => Next::TryNext(self.at_address(object, e)),
            next => next,
        }
    }

    fn at_address(&self, object: &ObjectRef, e: SystemException) -> SystemException {
        let Some(address) = self.with_target(object, ServerTarget::address_text) else { return e };
        let detail = match e.detail() {
            Some(detail) => format!("at {address}: {detail}"),
            None => format!("at {address}"),
        };
        e.with_detail(detail)
    }

    /// Decides when no address could be connected.
    #[cold]
    fn unreachable(&mut self, now: Time) -> Next {
        let has = |which: fn(&ConnectFailure) -> bool| self.refused.iter().any(|it| which(&it.failure));
        if has(|failure| matches!(failure, ConnectFailure::ShutDown)) {
            return Next::Fail(shut_down());
        }
        if self.deadline.remaining(now) == Err(Passed) {
            let timeout = self.limits.on_timeout(false);
            return Next::Fail(timeout.with_detail("the connection was not made in time"));
        }
        if has(|failure| matches!(failure, ConnectFailure::TooMany)) {
            return Next::Fail(SystemException::new(
                SystemExceptionKind::NoResources,
                MinorCode::TOO_MANY_CONNECTIONS,
                CompletionStatus::No,
            ));
        }
        let timed_out = self.refused.iter().all(|it| matches!(it.failure, ConnectFailure::TimedOut));
        let reasons: Vec<String> = self.refused.iter().map(Refused::to_string).collect();
        match self.limits.on_connect_failed(timed_out) {
            Next::Fail(e) => Next::Fail(e.with_detail(format!(
                "{}; is the server running, and is the address right?",
                reasons.join(", ")
            ))),
            next => next,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            ConnectFailure::Io(e) => write!(f, "{}: {e}", self.address),
            _ => write!(f, "{}: no answer in time", self.address),
        }
    }
}

/// Whether a server has not carried out a request because it took the caller to have given up.
#[cold]
fn is_too_late(e: &SystemException) -> bool {
    e.kind == SystemExceptionKind::Timeout
        && e.minor == MinorCode::REQUEST_TOO_LATE
        && e.completed == CompletionStatus::No
}

/// The exception of calls after the ORB has been shut down.
#[cold]
pub(crate) fn shut_down() -> SystemException {
    SystemException::new(
        SystemExceptionKind::BadInvOrder,
        MinorCode::BAD_INV_ORDER_SHUT_DOWN,
        CompletionStatus::No,
    )
    .with_detail("the ORB has been shut down")
}
