//! One asynchronous call: where it goes, how far it is, and who is told of its end.
//!
//! Decides nothing of what a reply or a failure leads to: [`Invocation`] does, as for every other call. Three sorts
//! of threads push it on, none of which waits for another: the caller who begins it, the receiver when an answer
//! has come, and an errand when an address must be connected first.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use ironorb_giop::connection::{BeginError, CallId, CallState};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, RequestTarget};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Encoding, Misuse, Version, Writer};

use super::kept::{KeptArguments, expected_encoding};
use super::receiver::TimerKey;
use super::{ConnectFailure, Link, Way};
use crate::course::{Refused, may_connect, not_connected};
use crate::deadline::{Deadline, Passed};
use crate::generated::Operation;
use crate::interceptor::Attempt;
use crate::invocation::{Answered, CallFailure, Invocation, Next};
use crate::invoke::Arguments;
use crate::loopback::{self, loopback_later, loopback_oneway};
use crate::messaging::Rebind;
use crate::object::ObjectRef;
use crate::route::{Attempts, Route};
use crate::sync::lock;

/// One asynchronous call.
pub(crate) struct AsyncCall {
    object: ObjectRef,
    operation: &'static str,
    /// Nobody hears of it once it has begun.
    is_oneway: bool,
    deadline: Deadline,
    /// Which of the connections to an endpoint it uses: that of the thread that began it.
    ordinal: usize,
    /// Nothing was known of the way when it began that the caller could rely on.
    is_free: bool,
    progress: Mutex<Progress>,
    is_over: Condvar,
}

struct Progress {
    invocation: Invocation,
    arguments: Option<KeptArguments>,
    attempts: Attempts,
    refused: Refused,
    stage: Stage,
    timer: Option<TimerKey>,
    end: End,
    listener: Listener,
    /// What its interceptors see, where there are any.
    attempt: Option<Attempt>,
}

enum Stage {
    /// With nobody, or on its way to a connection.
    Begun,
    InFlight(InFlight),
}

/// Where a call is that waits for its answer.
pub(super) struct InFlight {
    pub(super) link: Arc<Link>,
    pub(super) id: CallId,
    /// In which the request was written.
    pub(super) version: Version,
}

enum End {
    NotYet,
    /// Not told yet.
    Come(Outcome),
    /// Told, or nobody wants to know.
    Gone,
}

/// Who is told of the end.
enum Listener {
    Nobody,
    Task(Waker),
    Callback(Callback),
}

/// What a call has brought.
pub(crate) type Outcome = Result<Answer, SystemException>;

/// Is given the outcome on the receiver's thread.
pub(crate) type Callback = Box<dyn FnOnce(Outcome) + Send>;

/// An answer to be read by whoever knows the operation.
pub(crate) struct Answer {
    message: Message,
    pub(crate) body_at: usize,
    pub(crate) user_exception: bool,
    /// Gets the message's buffer back. `None` when the answer came from this process.
    link: Option<Arc<Link>>,
}

impl Answer {
    /// The reply.
    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    /// It has been read.
    pub(crate) fn recycle(self) {
        if let Some(link) = self.link {
            link.recycle(self.message);
        }
    }
}

impl AsyncCall {
    /// Begins a call. `arguments` writes the request's body before this returns.
    pub(crate) fn begin(
        object: &ObjectRef,
        operation: &'static Operation,
        arguments: Arguments<'_>,
    ) -> Arc<AsyncCall> {
        let now = Instant::now();
        let call = AsyncCall::new(object, operation.name(), false, now);
        match call.start(arguments, now) {
            Ok(()) => call.set_timer(),
            Err(e) => call.complete(call.lock(), Err(e)),
        }
        call
    }

    /// Sends a oneway without waiting for anything. An error says what this thread has found: nobody hears what
    /// others find later.
    pub(crate) fn tell(
        object: &ObjectRef,
        operation: &'static str,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let now = Instant::now();
        AsyncCall::new(object, operation, true, now).start(arguments, now)
    }

    fn new(object: &ObjectRef, operation: &'static str, is_oneway: bool, now: Instant) -> Arc<AsyncCall> {
        let core = object.core();
        // A reference without a way says so when the call goes its first step.
        let is_free = object.routes().begin(object).is_ok_and(|(_, is_first)| is_first);
        let progress = Progress {
            invocation: Invocation::new(core.config.forwards_max, core.config.resends_max, false),
            arguments: None,
            attempts: Attempts::default(),
            refused: Refused::new(),
            stage: Stage::Begun,
            timer: None,
            end: End::NotYet,
            listener: Listener::Nobody,
            attempt: None,
        };
        Arc::new(AsyncCall {
            object: object.clone(),
            operation,
            is_oneway,
            deadline: Deadline::for_call(now, object.timeout(), || core.call_timeout()),
            ordinal: super::thread_ordinal(),
            is_free,
            progress: Mutex::new(progress),
            is_over: Condvar::new(),
        })
    }

    fn start(self: &Arc<Self>, arguments: Arguments<'_>, now: Instant) -> Result<(), SystemException> {
        self.object.core().connector.receiver().start().map_err(|e| no_thread(&e))?;
        self.advance(Some(arguments), now)
    }

    pub(crate) fn object(&self) -> &ObjectRef {
        &self.object
    }

    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    pub(super) fn is_oneway(&self) -> bool {
        self.is_oneway
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether the end has come and not been told.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.lock().end, End::Come(_))
    }

    /// The outcome, if it is there; else the waker is called when it is.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Outcome> {
        let mut progress = self.lock();
        let outcome = progress.take_outcome();
        if outcome.is_none() {
            match &mut progress.listener {
                Listener::Task(known) => known.clone_from(waker),
                listener => *listener = Listener::Task(waker.clone()),
            }
        }
        outcome
    }

    /// Waits for the outcome. The receiver's own thread would wait for ever, and is told so.
    pub(crate) fn wait(&self) -> Outcome {
        let on_receiver = self.object.core().connector.receiver().is_current_thread();
        let mut progress = self.lock();
        loop {
            if let Some(outcome) = progress.take_outcome() {
                return outcome;
            }
            if on_receiver {
                return Err(SystemException::new(
                    SystemExceptionKind::BadInvOrder,
                    MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK,
                    CompletionStatus::Maybe,
                )
                .with_detail(
                    "a callback cannot wait for another reply: the thread that runs it receives them",
                ));
            }
            progress = self.is_over.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the receiver's thread call `callback` with the outcome.
    pub(crate) fn on_outcome(&self, callback: Callback) {
        let mut progress = self.lock();
        match progress.take_outcome() {
            Some(outcome) => {
                drop(progress);
                self.run_soon(callback, outcome);
            }
            None => progress.listener = Listener::Callback(callback),
        }
    }

    /// Nobody wants the outcome any more.
    pub(crate) fn give_up(&self) {
        let mut progress = self.lock();
        let end = std::mem::replace(&mut progress.end, End::Gone);
        progress.listener = Listener::Nobody;
        let attempt = progress.attempt.take();
        self.forget(progress);
        if let Some(attempt) = attempt {
            let _nobody_cares = attempt.led_to(&Next::Fail(given_up()), None);
        }
        if let End::Come(Ok(answer)) = end {
            answer.recycle();
        }
    }

    /// Writes the request with `send`, which says where it is then. False when the call is over already, and
    /// nothing was written.
    pub(super) fn send_by(
        &self,
        send: impl FnOnce(
            &str,
            EncodedContexts<'_>,
            &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        ) -> Result<Option<InFlight>, BeginError>,
    ) -> Result<bool, CallFailure> {
        let mut progress = self.lock();
        if !matches!(progress.end, End::NotYet) {
            return Ok(false);
        }
        let Some(arguments) = &progress.arguments else { return Ok(false) };
        let fits = Cell::new(true);
        let contexts = progress.attempt.as_ref().map(Attempt::contexts).unwrap_or_default();
        let written = send(self.operation, contexts.encoded(), &|w| {
            fits.set(arguments.write(w));
            // What is written of the message is taken back.
            if fits.get() { Ok(()) } else { Err(Misuse::NotInCharSet) }
        });
        if !fits.get() {
            return Err(CallFailure::EncodingChanged);
        }
        match written? {
            Some(in_flight) => progress.stage = Stage::InFlight(in_flight),
            None => {
                // A oneway: this is all that there is to it.
                progress.end = End::Gone;
                self.forget(progress);
            }
        }
        Ok(true)
    }

    /// An address has been connected, for this call among others.
    pub(super) fn connected(self: &Arc<Self>, link: &Link, target: &RequestTarget) {
        let now = Instant::now();
        match link.begin(self, target, now) {
            Ok(()) => self.told(),
            Err(failure) => self.on_failure(failure),
        }
    }

    /// An address has not been connected.
    pub(super) fn not_connected(self: &Arc<Self>, address: String, failure: ConnectFailure) {
        self.lock().refused.push((address, failure));
        self.go_on(Ok(Instant::now()));
    }

    /// An answer has come, or the connection has ended.
    pub(super) fn deliver(self: &Arc<Self>, state: CallState) {
        let mut progress = self.lock();
        let Stage::InFlight(InFlight { link, .. }) = std::mem::replace(&mut progress.stage, Stage::Begun)
        else {
            return; // given up meanwhile
        };
        match state {
            CallState::Answered(message) => self.on_message(progress, message, Some(link)),
            CallState::Ended { end, sent } => {
                drop(progress);
                self.on_failure(CallFailure::ended(end, sent));
            }
            CallState::Waiting => {}
        }
    }

    /// The deadline has passed.
    pub(super) fn time_out(&self) {
        let progress = self.lock();
        let written = matches!(progress.stage, Stage::InFlight(..));
        let next = Next::Fail(progress.invocation.on_timeout(written));
        drop(progress);
        // There is no time left for anything else.
        if let Next::Fail(e) = self.after_interceptors(next, None) {
            self.complete(self.lock(), Err(e));
        }
    }

    /// Shows what is about to be sent to the interceptors. An error is what they make of it.
    #[inline]
    fn before_interceptors(&self) -> Result<(), Next> {
        if self.object.core().interceptors.client.is_empty() {
            return Ok(());
        }
        if self.lock().attempt.is_some() {
            return Ok(()); // it goes on, to another address
        }
        match Attempt::begin(&self.object, self.operation, !self.is_oneway) {
            Ok(attempt) => {
                self.lock().attempt = Some(attempt);
                Ok(())
            }
            Err(interrupt) => Err(self.lock().invocation.on_interrupt(interrupt)),
        }
    }

    /// What an attempt has led to, when its interceptors have been told.
    fn after_interceptors(&self, next: Next, reply: Option<&Message>) -> Next {
        let attempt = self.lock().attempt.take();
        match attempt.and_then(|attempt| attempt.led_to(&next, reply)) {
            None => next,
            Some(interrupt) => self.lock().invocation.on_interrupt(interrupt),
        }
    }

    /// A oneway is on its way; other calls are not over. What interceptors say to that comes too late.
    fn told(&self) {
        if !self.is_oneway {
            return;
        }
        let mut progress = self.lock();
        // Otherwise it still waits for its connection.
        if matches!(progress.end, End::Gone) {
            let attempt = progress.attempt.take();
            drop(progress);
            let _too_late = attempt.and_then(Attempt::sent);
        }
    }

    fn on_message<'c>(
        self: &'c Arc<Self>,
        mut progress: MutexGuard<'c, Progress>,
        message: Message,
        link: Option<Arc<Link>>,
    ) {
        match progress.invocation.on_reply(&message) {
            Answered::Body { at, user_exception } => {
                if let Some(attempt) = progress.attempt.take() {
                    drop(progress);
                    let instead = attempt.answered(&message, at, user_exception);
                    progress = self.lock();
                    if let Some(interrupt) = instead {
                        let next = progress.invocation.on_interrupt(interrupt);
                        drop(progress);
                        return self.follow_elsewhere(next);
                    }
                }
                self.complete(progress, Ok(Answer { message, body_at: at, user_exception, link }));
            }
            Answered::Next(next) => {
                drop(progress);
                let next = self.after_interceptors(next, Some(&message));
                self.follow_elsewhere(next);
            }
        }
    }

    fn on_failure(self: &Arc<Self>, failure: CallFailure) {
        let next = self.lock().invocation.on_failure(failure);
        let next = self.after_interceptors(next, None);
        self.follow_elsewhere(next);
    }

    /// Carries out a decision. What may wait is left to an errand.
    fn follow_elsewhere(self: &Arc<Self>, next: Next) {
        if let Next::Fail(e) = next {
            return self.complete(self.lock(), Err(e));
        }
        let call = self.clone();
        let errand = move || call.go_on(call.follow(next));
        if let Err(e) = self.object.core().connector.errands().run(errand) {
            self.complete(self.lock(), Err(no_thread(&e)));
        }
    }

    /// Takes the call on, when it has been decided how.
    fn go_on(self: &Arc<Self>, followed: Result<Instant, SystemException>) {
        if let Err(e) = followed.and_then(|now| self.advance(None, now)) {
            self.complete(self.lock(), Err(e));
        }
    }

    fn follow(&self, next: Next) -> Result<Instant, SystemException> {
        let next = match next {
            Next::TryNext(e) => {
                if self.pass_over() {
                    return Ok(Instant::now()); // the call's timer sees to its deadline
                }
                self.lock().invocation.on_no_alternative(e)
            }
            Next::Follow { .. } if !self.is_free && self.object.rebind() > Rebind::Transparent => {
                self.lock().invocation.on_rebind_forbidden()
            }
            next => next,
        };
        self.object.routes().take(&self.object, next)?;
        let now = Instant::now();
        let mut progress = self.lock();
        progress.attempts = Attempts::default();
        progress.refused.clear();
        match self.deadline.remaining(now) {
            Err(Passed) => Err(progress.invocation.on_timeout(false)),
            Ok(_) => Ok(now),
        }
    }

    /// Whether another server than those tried is left.
    fn pass_over(&self) -> bool {
        match self.object.routes().current(&self.object) {
            Ok(route) => match route.route() {
                Route::Remote(targets) => self.lock().attempts.pass_over(targets),
                Route::Local(_) => false,
            },
            Err(_) => false,
        }
    }

    /// Takes the call on until it is in flight, waits for a connection, or is over; an error is its end. `arguments`
    /// are given the first time. Ends, for an invocation decides only so often.
    fn advance(
        self: &Arc<Self>,
        arguments: Option<Arguments<'_>>,
        mut now: Instant,
    ) -> Result<(), SystemException> {
        loop {
            let next = match self.before_interceptors().and_then(|()| self.step(arguments, now)) {
                Ok(()) => {
                    self.told();
                    return Ok(());
                }
                Err(next) => next,
            };
            now = self.follow(self.after_interceptors(next, None))?;
        }
    }

    fn step(self: &Arc<Self>, arguments: Option<Arguments<'_>>, now: Instant) -> Result<(), Next> {
        let route = self.object.routes().current(&self.object).map_err(Next::Fail)?;
        self.lock().invocation.on_route(route.is_forwarded());
        let targets = match route.route() {
            Route::Remote(targets) => targets,
            Route::Local(key) => {
                self.keep(arguments, loopback::encoding())?;
                return self.call_here(key.clone(), arguments.is_some());
            }
        };
        loop {
            let mut progress = self.lock();
            if !matches!(progress.end, End::NotYet) {
                return Ok(());
            }
            let attempt = progress.attempts.next(targets.len(), |index| targets[index].links.is_failing(now));
            let Some(index) = attempt else {
                let Progress { invocation, refused, .. } = &mut *progress;
                return Err(not_connected(invocation, self.deadline, refused));
            };
            drop(progress);
            let target = &targets[index];
            if let Some(link) = target.links.open_link_in_turn(self.ordinal, now) {
                self.keep(arguments, link.encoding_for(&target.request))?;
                let begun = match link.begin(self, &target.request, now) {
                    // Another's request has told the code set meanwhile.
                    Err(CallFailure::EncodingChanged) if arguments.is_some() => {
                        self.lock().arguments = None;
                        self.keep(arguments, link.encoding_for(&target.request))?;
                        link.begin(self, &target.request, now)
                    }
                    begun => begun,
                };
                return begun.map_err(|e| self.lock().invocation.on_failure(e));
            }
            self.keep(arguments, expected_encoding(&target.request))?;
            let may_connect = || may_connect(&self.object, self.is_free, &target.links);
            match target.links.link_or_wait(self.ordinal, now, may_connect, (self, &target.request)) {
                Way::Open(link) => {
                    return link
                        .begin(self, &target.request, now)
                        .map_err(|e| self.lock().invocation.on_failure(e));
                }
                Way::Waiting => return Ok(()),
                Way::Refused(failure) => {
                    let address = target.links.address();
                    self.lock().refused.push((address, failure));
                }
                Way::TooMany => return Err(self.lock().invocation.on_failure(CallFailure::TooManyCalls)),
                Way::Forbidden => return Err(self.lock().invocation.on_rebind_forbidden()),
            }
        }
    }

    /// Writes the arguments down, if that has not been done.
    fn keep(&self, arguments: Option<Arguments<'_>>, encoding: Encoding) -> Result<(), Next> {
        let mut progress = self.lock();
        if let (None, Some(arguments)) = (&progress.arguments, arguments) {
            let kept = KeptArguments::write_down(arguments, encoding);
            progress.arguments = Some(kept.map_err(|misuse| Next::Fail(misuse.into()))?);
        }
        Ok(())
    }

    /// The object is in this process and cannot be called directly, so its servant gets the call as a message: in this
    /// thread where the call begins, as servants that can be called directly do, else in an errand. One that answers
    /// later keeps no thread meanwhile.
    fn call_here(self: &Arc<Self>, key: Vec<u8>, is_beginning: bool) -> Result<(), Next> {
        if is_beginning {
            self.call_by_message(&key);
            return Ok(());
        }
        let call = self.clone();
        let sent = self.object.core().connector.errands().run(move || call.call_by_message(&key));
        sent.map_err(|e| Next::Fail(no_thread(&e)))
    }

    fn call_by_message(self: &Arc<Self>, key: &[u8]) {
        let core = self.object.core();
        // A copy, for the servant must not run under the lock.
        let Some(arguments) = self.lock().arguments.clone() else { return };
        let write = |w: &mut Writer<'_>| match arguments.write(w) {
            true => Ok(()),
            false => Err(Misuse::NotInCharSet),
        };
        if self.is_oneway {
            let _unheard = loopback_oneway(core, key, self.operation, &write);
            return;
        }
        let call = self.clone();
        let heard = move |heard| match heard {
            Ok(message) => call.on_message(call.lock(), message, None),
            Err(next) => call.follow_elsewhere(next),
        };
        loopback_later(core, key, self.operation, arguments.encoding, &write, Box::new(heard));
    }

    /// Tells whoever has asked, once.
    fn complete(&self, mut progress: MutexGuard<'_, Progress>, outcome: Outcome) {
        if !matches!(progress.end, End::NotYet) {
            if let Ok(answer) = outcome {
                drop(progress);
                answer.recycle();
            }
            return;
        }
        let listener = std::mem::replace(&mut progress.listener, Listener::Nobody);
        if let Listener::Callback(callback) = listener {
            progress.end = End::Gone;
            self.forget(progress);
            return self.run_soon(callback, outcome);
        }
        progress.end = End::Come(outcome);
        self.is_over.notify_all();
        self.forget(progress);
        if let Listener::Task(waker) = listener {
            waker.wake();
        }
    }

    /// Takes the call off whatever still knows it.
    fn forget(&self, mut progress: MutexGuard<'_, Progress>) {
        let stage = std::mem::replace(&mut progress.stage, Stage::Begun);
        let timer = progress.timer.take();
        progress.arguments = None;
        drop(progress);
        if let Some(timer) = timer {
            self.object.core().connector.receiver().forget_timer(timer);
        }
        if let Stage::InFlight(InFlight { link, id, version }) = stage {
            link.abandon(id, version);
        }
    }

    fn set_timer(self: &Arc<Self>) {
        let Some(at) = self.deadline.at() else { return };
        let mut progress = self.lock();
        if matches!(progress.end, End::NotYet) {
            progress.timer = Some(self.object.core().connector.receiver().set_timer(at, self));
        }
    }

    fn run_soon(&self, callback: Callback, outcome: Outcome) {
        let receiver = self.object.core().connector.receiver();
        receiver.run_soon(Box::new(move || callback(outcome)));
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }
}

impl Progress {
    fn take_outcome(&mut self) -> Option<Outcome> {
        match std::mem::replace(&mut self.end, End::Gone) {
            End::Come(outcome) => Some(outcome),
            other => {
                self.end = other;
                None
            }
        }
    }
}

impl fmt::Debug for AsyncCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncCall")
            .field("object", &self.object)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

#[cold]
fn no_thread(e: &std::io::Error) -> SystemException {
    SystemException::new(SystemExceptionKind::NoResources, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the system has no thread for asynchronous calls: {e}"))
}

/// Nobody waits for the reply any more.
#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::REPLY_GIVEN_UP, CompletionStatus::Maybe)
}
