//! A call, hop by hop, driven by the calling thread.
//!
//! The part that depends on the operation's types ([`invoke`], [`invoke_oneway`]) is a few lines around a
//! concrete core that is compiled once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, RequestTarget};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use crate::client::{ConnectFailure, Link};
use crate::deadline::{Deadline, Passed};
use crate::generated::{LocalSlot, Operation, OperationError, RefTo};
use crate::invocation::{Answered, CallFailure, Invocation, Located, Next, bad_reply};
use crate::loopback::{self, Patience, loopback, loopback_oneway};
use crate::object::ObjectRef;
use crate::poa::Refusal;
use crate::route::{CurrentRoute, RemoteTarget, Route};

pub(crate) type Arguments<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>;

/// Calls a twoway operation and waits for its results. Blocks until the deadline at most.
///
/// `local` is used when the object is in this process; else `arguments` writes the request's body, perhaps
/// more than once, and `results` reads the reply's.
#[inline]
pub fn invoke<I, R, T, E>(
    target: &R,
    operation: &'static Operation,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
    E: OperationError,
{
    let object = target.object();
    match object.local(operation) {
        Ok(None) => remote(object, operation, &arguments, results),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => call_local(object, operation, &upcall, &*servant, local),
            None => {
                drop(upcall);
                remote(object, operation, &arguments, results)
            }
        },
        Err(e) => Err(about(object, operation, e).into()),
    }
}

/// Calls a oneway operation. Blocks only while the connection takes no bytes, or is being made.
#[inline]
pub fn invoke_oneway<I, R>(
    target: &R,
    operation: &'static Operation,
    local: impl FnOnce(&I) -> Result<(), SystemException>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
{
    let object = target.object();
    let by_message = || {
        Course::begin(object, operation, &arguments)
            .and_then(|mut course| course.oneway())
            .map_err(|e| about(object, operation, e))
    };
    match object.local(operation) {
        Ok(None) => by_message(),
        Ok(Some(upcall)) => match direct(&upcall) {
            // As over the wire: the caller of a oneway hears nothing of what the servant says.
            Some(servant) => {
                let _unheard = call_local(object, operation, &upcall, &*servant, local);
                Ok(())
            }
            None => {
                drop(upcall);
                by_message()
            }
        },
        Err(e) => Err(about(object, operation, e)),
    }
}

/// The servant as the caller's interface, if it can be called directly. One that answers later or is dynamic cannot, nor
/// one that lacks the interface, and gets the call as a message.
#[inline]
pub(crate) fn direct<I: ?Sized + 'static>(upcall: &crate::poa::Upcall) -> Option<Arc<I>> {
    let mut found: Option<Arc<I>> = None;
    upcall.servant().provide(&mut LocalSlot::new(&mut found));
    found
}

#[inline]
pub(crate) fn call_local<I, T, E>(
    object: &ObjectRef,
    operation: &Operation,
    upcall: &crate::poa::Upcall,
    servant: &I,
    local: impl FnOnce(&I) -> Result<T, E>,
) -> Result<T, E>
where
    I: ?Sized + 'static,
    E: OperationError,
{
    let _current = upcall.enter();
    match catch_unwind(AssertUnwindSafe(|| local(servant))) {
        Ok(result) => result,
        Err(_) => Err(about(object, operation, servant_panicked()).into()),
    }
}

#[cold]
pub(crate) fn servant_panicked() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::SERVANT_PANICKED, CompletionStatus::Maybe)
}

/// Calls a twoway operation of an object in another process.
#[inline]
pub(crate) fn remote<T, E: OperationError>(
    object: &ObjectRef,
    operation: &Operation,
    arguments: Arguments<'_>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    let answer = match Course::begin(object, operation, arguments).and_then(|mut course| course.twoway()) {
        Ok(answer) => answer,
        Err(e) => return Err(about(object, operation, e).into()),
    };
    let r = answer.message.reader_at(answer.body_at).with_environment(&**object.core());
    let result = read_answer(r, answer.user_exception, results);
    if let Some(link) = answer.link {
        link.recycle(answer.message);
    }
    result
}

/// Reads what the caller asked for, or the user exception.
#[inline]
pub(crate) fn read_answer<T, E: OperationError>(
    mut r: Reader<'_>,
    user_exception: bool,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, E> {
    if user_exception {
        read_user_exception(&mut r)
    } else {
        results(&mut r).map_err(|e| bad_reply(e).into())
    }
}

#[cold]
fn read_user_exception<T, E: OperationError>(r: &mut Reader<'_>) -> Result<T, E> {
    let read = r.read_str().and_then(|id| match E::from_user_exception(&id, r)? {
        Some(e) => Ok(e),
        None => Ok(SystemException::new(
            SystemExceptionKind::Unknown,
            MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION,
            CompletionStatus::Maybe,
        )
        .with_detail(format!("the server raised {id}, which the operation does not declare"))
        .into()),
    });
    Err(read.unwrap_or_else(|e| bad_reply(e).into()))
}

/// Adds the object and operation to what is said about a failure.
#[cold]
pub(crate) fn about(object: &ObjectRef, operation: &Operation, e: SystemException) -> SystemException {
    let place = format!("{} of {object:?}", operation.name());
    let detail = match e.detail() {
        Some(detail) => format!("{place}: {detail}"),
        None => place,
    };
    e.with_detail(detail)
}

/// Asks where an object is.
pub(crate) fn locate(object: &ObjectRef) -> Result<bool, SystemException> {
    Course::begin(object, &LOCATE, &|_| Ok(())).and_then(|mut course| course.locate())
}

pub(crate) static LOCATE: Operation = Operation::twoway("LocateRequest");

/// An answer to be read by the caller.
struct Answer {
    message: Message,
    /// `None` when the answer came from this process.
    link: Option<Arc<Link>>,
    body_at: usize,
    user_exception: bool,
}

/// One call on its way: the invocation's decisions carried out with real connections and a real clock.
struct Course<'c> {
    object: &'c ObjectRef,
    operation: &'c Operation,
    arguments: Arguments<'c>,
    now: Instant,
    deadline: Deadline,
    invocation: Invocation,
    route: CurrentRoute<'c>,
}

impl<'c> Course<'c> {
    #[inline]
    fn begin(
        object: &'c ObjectRef,
        operation: &'c Operation,
        arguments: Arguments<'c>,
    ) -> Result<Self, SystemException> {
        let config = &object.core().config;
        let now = Instant::now();
        let deadline = Deadline::for_call(now, object.timeout(), config.call_timeout);
        let route = object.routes().current(object)?;
        let invocation = Invocation::new(config.forwards_max, config.resends_max, route.is_forwarded());
        Ok(Course { object, operation, arguments, now, deadline, invocation, route })
    }

    #[inline]
    fn twoway(&mut self) -> Result<Answer, SystemException> {
        loop {
            let (message, link) = match self.request() {
                Ok(answered) => answered,
                Err(next) => {
                    self.follow(next)?;
                    continue;
                }
            };
            match self.invocation.on_reply(&message) {
                Answered::Body { at, user_exception } => {
                    return Ok(Answer { message, link, body_at: at, user_exception });
                }
                Answered::Next(next) => self.follow(next)?,
            }
        }
    }

    /// Sends the request once and waits for its reply.
    #[inline]
    fn request(&mut self) -> Result<(Message, Option<Arc<Link>>), Next> {
        if let Route::Local(key) = self.route.route() {
            // Forwarded into this very process, which the typed caller could not know.
            let orb = self.object.core();
            let encoding = loopback::encoding();
            let patience = Patience::Until(self.deadline);
            return loopback(orb, key, self.operation.name(), encoding, self.arguments, patience)
                .map(|message| (message, None));
        }
        let (operation, arguments) = (self.operation.name(), self.arguments);
        let (message, link) =
            self.send(|link, target, now, deadline| link.call(target, operation, arguments, now, deadline))?;
        Ok((message, Some(link)))
    }

    fn oneway(&mut self) -> Result<(), SystemException> {
        let (operation, arguments) = (self.operation.name(), self.arguments);
        loop {
            let sent = match self.route.route() {
                Route::Local(key) => loopback_oneway(self.object.core(), key, operation, arguments),
                Route::Remote(_) => self
                    .send(|link, target, now, deadline| {
                        link.oneway(target, operation, arguments, now, deadline)
                    })
                    .map(drop),
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(next) => self.follow(next)?,
            }
        }
    }

    fn locate(&mut self) -> Result<bool, SystemException> {
        loop {
            if let Route::Local(key) = self.route.route() {
                match self.object.core().adapter.locate(key) {
                    Ok(()) | Err(Refusal::NotThisThread(_)) => return Ok(true),
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

    /// Sends once, over the first address that answers.
    #[inline]
    fn send<T>(
        &mut self,
        send: impl FnOnce(&Link, &RequestTarget, Instant, Deadline) -> Result<T, CallFailure>,
    ) -> Result<(T, Arc<Link>), Next> {
        let (target, link) = match connect(self.route.route(), self.now, self.deadline) {
            Ok(found) => found,
            Err(refused) => return Err(not_connected(&mut self.invocation, self.deadline, &refused)),
        };
        match send(&link, &target.request, self.now, self.deadline) {
            Ok(sent) => Ok((sent, link)),
            Err(failure) => {
                let address = target.links.address();
                Err(self.on_failure(failure, &address))
            }
        }
    }

    #[cold]
    fn on_failure(&mut self, failure: CallFailure, address: &str) -> Next {
        let misused = matches!(failure, CallFailure::Misuse(_));
        match self.invocation.on_failure(failure) {
            Next::Fail(e) if !misused => Next::Fail(e.with_detail(format!("at {address}"))),
            next => next,
        }
    }

    /// Carries out a decision; an error ends the call.
    #[cold]
    fn follow(&mut self, next: Next) -> Result<(), SystemException> {
        let routes = self.object.routes();
        routes.take(self.object.core(), next)?;
        self.now = Instant::now();
        if self.deadline.remaining(self.now) == Err(Passed) {
            return Err(self.invocation.on_timeout(false));
        }
        self.route = routes.current(self.object)?;
        self.invocation.on_route(self.route.is_forwarded());
        Ok(())
    }
}

/// Each address that could not be connected, and why.
pub(crate) type Refused = Vec<(String, ConnectFailure)>;

/// The first address that answers, or why none did.
#[inline]
fn connect(route: &Route, now: Instant, deadline: Deadline) -> Result<(&RemoteTarget, Arc<Link>), Refused> {
    let targets = match route {
        Route::Remote(targets) => targets.as_slice(),
        // Forwarded into this process while a locate or oneway was under way; the next call sees it.
        Route::Local(_) => &[],
    };
    let mut refused = Vec::new();
    for target in targets {
        match target.links.link(now, deadline) {
            Ok(link) => return Ok((target, link)),
            Err(failure) => refused.push((target.links.address(), failure)),
        }
    }
    Err(refused)
}

#[cold]
pub(crate) fn not_connected(
    invocation: &mut Invocation,
    deadline: Deadline,
    refused: &[(String, ConnectFailure)],
) -> Next {
    if refused.iter().any(|(_, failure)| matches!(failure, ConnectFailure::ShutDown)) {
        return Next::Fail(crate::orb::shut_down());
    }
    if deadline.remaining(Instant::now()) == Err(Passed) {
        return Next::Fail(invocation.on_timeout(false).with_detail("the connection was not made in time"));
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
