//! The progress of an asynchronous call. The call's [`RemoteCallState`](crate::call::invocation::RemoteCallState)
//! decides, and the thread that finds something to do carries the decision out. Nothing here reports the end
//! to the caller: `complete` does.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

use ironorb_giop::connection::{BeginError, CallState};
use ironorb_giop::exception::SystemException;
use ironorb_giop::message::{Message, RequestTarget};
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Encoding, Misuse, Writer};

use super::{Answer, AsyncCall, End, InFlight, Listener, Progress, Stage, Written, no_thread};
use crate::base::time::Time;
use crate::call::invocation::{Answered, CallFailure, Next};
use crate::call::route::{Attempts, Route};
use crate::driver::client::retry_body::{BodySource, RetryArguments, RetryBody, expected_encoding};
use crate::driver::client::{ConnectFailure, Link, LinkLookup};
use crate::driver::clock;
use crate::driver::invoke::Arguments;
use crate::driver::loopback::{self, loopback_later, loopback_oneway};
use crate::driver::remote_call::{may_connect, not_connected};
use crate::interceptor::Attempt;
use crate::object::deadline::Passed;
use crate::object::messaging::Rebind;

impl AsyncCall {
    /// Writes the request with `send`, which returns where the request is in flight. Writes nothing when the
    /// call is over already.
    pub(in crate::driver::client) fn send_by(
        &self,
        send: impl FnOnce(&str, EncodedContexts<'_>, BodySource<'_>) -> Result<Option<InFlight>, BeginError>,
    ) -> Result<Written, CallFailure> {
        let mut progress = self.lock();
        if !matches!(progress.end, End::NotYet) {
            return Ok(Written::Nothing);
        }
        let Some(arguments) = &progress.arguments else { return Ok(Written::Nothing) };
        let fits = Cell::new(true);
        let contexts = progress.attempt.as_ref().map(Attempt::contexts).unwrap_or_default();
        let written = match arguments {
            RetryBody::Raw(request) => send(self.operation(), contexts.encoded(), BodySource::Raw(request)),
            RetryBody::Written(arguments) => {
                let write = |w: &mut Writer<'_>| {
                    fits.set(arguments.write(w));
                    // The connection takes back what has been written of the message.
                    if fits.get() { Ok(()) } else { Err(Misuse::MovedBody) }
                };
                send(self.operation(), contexts.encoded(), BodySource::Written(&write))
            }
        };
        if !fits.get() {
            return Err(CallFailure::EncodingChanged);
        }
        let Some(in_flight) = written? else {
            // A oneway ends when it has been written.
            progress.end = End::Gone;
            self.forget(progress);
            return Ok(Written::Oneway);
        };
        progress.stage = Stage::InFlight(in_flight);
        if let Listener::Thread(thread) = &progress.listener {
            thread.unpark(); // it can wait for the answer itself now
        }
        let is_asked_for = matches!(progress.listener, Listener::Task(_) | Listener::Callback(_));
        Ok(Written::Request { is_asked_for })
    }

    /// Begins the call on a connection that has been made for the calls that waited for it.
    pub(in crate::driver::client) fn connected(self: &Arc<Self>, link: &Link, target: &RequestTarget) {
        let now = clock::now();
        match link.begin(self, target, now) {
            Ok(()) => self.note_sent(),
            Err(failure) => self.on_failure(failure),
        }
    }

    /// Records that an address could not be connected, and goes on to the next one.
    pub(in crate::driver::client) fn not_connected(
        self: &Arc<Self>,
        address: String,
        failure: ConnectFailure,
    ) {
        self.lock().refused.push((address, failure));
        self.go_on(Ok(clock::now()));
    }

    /// Takes an answer, or the end of the connection.
    pub(in crate::driver::client) fn deliver(self: &Arc<Self>, state: CallState) {
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

    /// Takes an answer if that runs no code of the program; otherwise gives it back. The caller holds the
    /// connection's lock, so this must not call the connection.
    pub(in crate::driver::client) fn try_complete_quietly(
        self: &Arc<Self>,
        state: CallState,
    ) -> Result<(), CallState> {
        let CallState::Answered(message) = state else { return Err(state) };
        let mut progress = self.lock();
        let is_quiet = matches!(progress.listener, Listener::Nobody | Listener::Thread(_))
            && matches!(progress.end, End::NotYet)
            && progress.attempt.is_none();
        if !is_quiet {
            return Err(CallState::Answered(message));
        }
        match std::mem::replace(&mut progress.stage, Stage::Begun) {
            Stage::InFlight(InFlight { link, .. }) => self.on_message(progress, message, Some(link)),
            stage => progress.stage = stage,
        }
        Ok(())
    }

    /// Shows the interceptors the request before it is sent. An error is what the interceptors decide
    /// instead.
    #[inline]
    fn before_interceptors(&self) -> Result<(), Next> {
        if self.object.core().interceptors.client.is_empty() {
            return Ok(());
        }
        if self.lock().attempt.is_some() {
            return Ok(()); // the attempt goes on at another address
        }
        match Attempt::begin(&self.object, self.lasting_operation(), !self.is_oneway) {
            Ok(attempt) => {
                self.lock().attempt = Some(attempt);
                Ok(())
            }
            Err(interrupt) => Err(self.lock().invocation.on_interrupt(interrupt)),
        }
    }

    #[cold]
    fn lasting_operation(&self) -> Cow<'static, str> {
        match &self.on_behalf {
            None => self.operation.clone(),
            Some(request) => Cow::Owned(request.operation().to_owned()),
        }
    }

    /// Tells the interceptors of the outcome of an attempt, and returns what follows from it.
    pub(super) fn after_interceptors(&self, next: Next, reply: Option<&Message>) -> Next {
        let attempt = self.lock().attempt.take();
        match attempt.and_then(|attempt| attempt.led_to(&next, reply)) {
            None => next,
            Some(interrupt) => self.lock().invocation.on_interrupt(interrupt),
        }
    }

    /// Ends the attempt of a oneway that has been sent. The call is then over, so it ignores what
    /// interceptors decide. Does nothing for calls that wait for a reply.
    fn note_sent(&self) {
        if !self.wants_no_reply() {
            return;
        }
        let mut progress = self.lock();
        // A call that has not ended still waits for its connection.
        if matches!(progress.end, End::Gone) {
            let attempt = progress.attempt.take();
            drop(progress);
            let _too_late = attempt.and_then(Attempt::sent);
        }
    }

    pub(super) fn on_message<'c>(
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
                        return self.follow_in_background(next);
                    }
                }
                self.complete(progress, Ok(Answer { message, body_at: at, user_exception, link }));
            }
            Answered::Next(next) => {
                drop(progress);
                let next = self.after_interceptors(next, Some(&message));
                self.follow_in_background(next);
            }
        }
    }

    pub(super) fn on_failure(self: &Arc<Self>, failure: CallFailure) {
        let next = self.lock().invocation.on_failure(failure);
        let next = self.after_interceptors(next, None);
        self.follow_in_background(next);
    }

    /// Carries out a decision. Work that may block goes to the background pool.
    fn follow_in_background(self: &Arc<Self>, next: Next) {
        if let Next::Fail(e) = next {
            return self.complete(self.lock(), Err(e));
        }
        let call = self.clone();
        let task = move || call.go_on(call.follow(next));
        if let Err(e) = self.object.core().connector.background_pool().run(task) {
            self.complete(self.lock(), Err(no_thread(&e)));
        }
    }

    /// Advances the call after a decision.
    fn go_on(self: &Arc<Self>, followed: Result<Time, SystemException>) {
        if let Err(e) = followed.and_then(|now| self.advance(None, now)) {
            self.complete(self.lock(), Err(e));
        }
    }

    fn follow(&self, next: Next) -> Result<Time, SystemException> {
        let next = match next {
            Next::TryNext(e) => {
                if self.pass_over() {
                    return Ok(clock::now()); // the call's timer sees to its deadline
                }
                self.lock().invocation.on_no_alternative(e)
            }
            Next::Follow { .. } if !self.is_free && self.object.rebind() > Rebind::Transparent => {
                self.lock().invocation.on_rebind_forbidden()
            }
            next => next,
        };
        self.object.routes().take(&self.object, next)?;
        let now = clock::now();
        let mut progress = self.lock();
        progress.attempts = Attempts::default();
        progress.refused.clear();
        match self.deadline.remaining(now) {
            Err(Passed) => Err(progress.invocation.on_timeout(false)),
            Ok(_) => Ok(now),
        }
    }

    /// True when an untried server is left.
    fn pass_over(&self) -> bool {
        match self.object.routes().current(&self.object) {
            Ok(route) => match route.route() {
                Route::Remote(targets) => self.lock().attempts.pass_over(targets.as_slice()),
                Route::Local(_) => false,
            },
            Err(_) => false,
        }
    }

    /// Advances the call until it is in flight, waits for a connection, or is over. An error is its end.
    /// `arguments` are given the first time only. The loop ends because
    /// [`RemoteCallState`](crate::call::invocation::RemoteCallState) bounds the number of decisions.
    pub(super) fn advance(
        self: &Arc<Self>,
        arguments: Option<Arguments<'_>>,
        mut now: Time,
    ) -> Result<(), SystemException> {
        loop {
            let next = match self.before_interceptors().and_then(|()| self.step(arguments, now)) {
                Ok(()) => {
                    self.note_sent();
                    return Ok(());
                }
                Err(next) => next,
            };
            now = self.follow(self.after_interceptors(next, None))?;
        }
    }

    fn step(self: &Arc<Self>, arguments: Option<Arguments<'_>>, now: Time) -> Result<(), Next> {
        let route = self.object.routes().current(&self.object).map_err(Next::Fail)?;
        self.lock().invocation.on_route(route.is_forwarded());
        let targets = match route.route() {
            Route::Remote(targets) => targets.as_slice(),
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
            if let Some(link) = target.links.open_link(self.ordinal, clock::coarse()) {
                self.keep(arguments, link.encoding_for(&target.request))?;
                let begun = match link.begin(self, &target.request, now) {
                    // Another call's request has settled the code set meanwhile.
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
            match target.links.link_or_wait(self.ordinal, may_connect, (self, &target.request)) {
                LinkLookup::Open(link) => {
                    return link
                        .begin(self, &target.request, now)
                        .map_err(|e| self.lock().invocation.on_failure(e));
                }
                LinkLookup::Waiting => return Ok(()),
                LinkLookup::Refused(failure) => {
                    let address = target.links.address().to_string();
                    self.lock().refused.push((address, failure));
                }
                LinkLookup::TooMany => {
                    return Err(self.lock().invocation.on_failure(CallFailure::TooManyCalls));
                }
                LinkLookup::Forbidden => return Err(self.lock().invocation.on_rebind_forbidden()),
            }
        }
    }

    /// Writes the arguments into memory of their own, unless that has been done.
    fn keep(&self, arguments: Option<Arguments<'_>>, encoding: Encoding) -> Result<(), Next> {
        let mut progress = self.lock();
        if let (None, Some(arguments)) = (&progress.arguments, arguments) {
            let copy = RetryArguments::write_down(arguments, encoding);
            progress.arguments = Some(RetryBody::Written(copy.map_err(|misuse| Next::Fail(misuse.into()))?));
        }
        Ok(())
    }

    /// Calls an object of this process that cannot be called directly: the servant gets the call as a
    /// message. A call that begins runs in the caller's thread, as direct calls do. Otherwise a thread of the
    /// background pool runs it. A servant that replies later occupies no thread meanwhile.
    fn call_here(self: &Arc<Self>, key: Vec<u8>, is_beginning: bool) -> Result<(), Next> {
        if is_beginning {
            self.call_by_message(&key);
            return Ok(());
        }
        let call = self.clone();
        let sent = self.object.core().connector.background_pool().run(move || call.call_by_message(&key));
        sent.map_err(|e| Next::Fail(no_thread(&e)))
    }

    fn call_by_message(self: &Arc<Self>, key: &[u8]) {
        let core = self.object.core();
        // A copy, because the servant must not run under the lock.
        let Some(arguments) = self.lock().arguments.clone() else { return };
        let encoding = arguments.encoding();
        let write = |w: &mut Writer<'_>| match &arguments {
            RetryBody::Raw(request) => request.write_here(w),
            RetryBody::Written(arguments) if arguments.write(w) => Ok(()),
            RetryBody::Written(_) => Err(Misuse::MovedBody),
        };
        if self.is_oneway {
            let _unheard = loopback_oneway(core, key, self.operation(), &write);
            return;
        }
        let call = self.clone();
        let on_reply = move |outcome| match outcome {
            Ok(message) => call.on_message(call.lock(), message, None),
            Err(next) => call.follow_in_background(next),
        };
        loopback_later(core, key, self.operation(), encoding, &write, Box::new(on_reply));
    }
}
