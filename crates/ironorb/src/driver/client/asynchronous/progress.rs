//! The progress of an asynchronous call. The call's [`RemoteCall`](crate::call::remote_call::RemoteCall) decides, and the
//! thread that has an event for it carries the steps out. Nothing here reports the end to the caller: `complete` does.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use ironorb_giop::connection::{BeginError, CallState};
use ironorb_giop::exception::SystemException;
use ironorb_giop::message::{Message, RequestTarget};
use ironorb_giop::service_context::{EncodedContexts, ServiceContextList};
use ironorb_giop::{Encoding, Misuse, Writer};

use super::{
    Answer, AsyncCall, End, Ended, InFlight, Listener, Progress, Stage, Written, given_up, no_thread,
};
use crate::base::locks::LockGuard;
use crate::base::time::Time;
use crate::cache::wire::{FILL, LogQuestion};
use crate::call::invocation::CallFailure;
use crate::call::remote_call::{CallEvent, Completed, ConnectFailure, Step};
use crate::driver::cache::carried::question_over;
use crate::driver::cache::note_reply_to;
use crate::driver::call_contexts::{tell_band, with_kept};
use crate::driver::client::retry_body::{BodySource, RetryArguments, RetryBody, expected_encoding};
use crate::driver::client::{Link, LinkLookup};
use crate::driver::clock;
use crate::driver::engine;
use crate::driver::invoke::{Arguments, or_call_in_update};
use crate::driver::loopback::{self, loopback_later, loopback_oneway};
use crate::driver::simulated::{self, Simulated};
use crate::interceptor::{self, Attempt, BodyCount};
use crate::object::deadline::Timeout;
use crate::object::operation::Operation;
use crate::object::route::Route;

impl AsyncCall {
    /// Writes the request with `send`, which returns where the request is in flight. Writes nothing when the
    /// call is over already. `link` is the connection that it goes over.
    pub(in crate::driver::client) fn send_by(
        &self,
        link: &Link,
        send: impl FnOnce(&str, EncodedContexts<'_>, BodySource<'_>) -> Result<Option<InFlight>, BeginError>,
    ) -> Result<Written, CallFailure> {
        let mut progress = self.lock();
        if !matches!(progress.end, End::NotYet) {
            return Ok(Written::Nothing);
        }
        let Some(arguments) = &progress.arguments else { return Ok(Written::Nothing) };
        let fits = Cell::new(true);
        let mut contexts = self.contexts_now(progress.attempt.as_deref(), link);
        tell_band(&mut contexts, link.band_to_tell());
        let body = BodyCount::default();
        let written = match arguments {
            RetryBody::Raw(request) => {
                body.note(request.body_bytes());
                send(self.operation(), contexts.encoded(), BodySource::Raw(request))
            }
            RetryBody::Written(arguments) => {
                let write = |w: &mut Writer<'_>| {
                    body.write(w, |w| {
                        fits.set(arguments.write(w));
                        // The connection takes back what has been written of the message.
                        if fits.get() { Ok(()) } else { Err(Misuse::MovedBody) }
                    })
                };
                send(self.operation(), contexts.encoded(), BodySource::Written(&write))
            }
        };
        if !fits.get() {
            return Err(CallFailure::EncodingChanged);
        }
        if let Some(attempt) = &mut progress.attempt {
            attempt.note_sent(&body);
        }
        let Some(in_flight) = written? else {
            let is_waited_for = matches!(progress.listener, Listener::Sent(_));
            if is_waited_for {
                progress.stage = Stage::Leaving;
            }
            return Ok(Written::Oneway { is_waited_for });
        };
        progress.stage = Stage::InFlight(in_flight);
        if let Listener::Thread(thread) = &progress.listener {
            thread.unpark(); // it can wait for the answer itself now
        }
        let is_asked_for = matches!(progress.listener, Listener::Task(_) | Listener::Callback(_));
        Ok(Written::Request { is_asked_for })
    }

    /// The service contexts of the request that is written now.
    fn contexts_now(&self, attempt: Option<&Attempt>, link: &Link) -> ServiceContextList {
        let left = match self.object.shared().deadline_clock {
            Some(_) => self.deadline.left(clock::now()),
            None => Timeout::NONE,
        };
        let asks = || match self.operation() {
            _ if self.is_oneway => None,
            FILL => Some(LogQuestion::End),
            _ => Some(question_over(&self.object, link)),
        };
        with_kept(attempt, &self.contexts, &self.object, asks, left, clock::steady)
    }

    /// Gives the call to the engine of a simulation.
    pub(super) fn start_simulated(
        self: &Arc<Self>,
        simulated: &Simulated,
        arguments: Option<Arguments<'_>>,
    ) -> Result<(), SystemException> {
        let operation = Operation::named(self.operation(), self.is_oneway);
        let body: engine::Arguments = match arguments {
            Some(arguments) => simulated::written(&self.object, arguments)?,
            None => {
                let request = self.on_behalf.clone();
                Box::new(move |w| request.as_ref().map_or(Ok(()), |request| request.write_here(w)))
            }
        };
        let request = engine::Request::call(&self.object, &operation, body);
        let call = self.clone();
        let on_end = move |outcome: engine::Outcome| call.finish(outcome.map(Answer::of_engine));
        simulated.begin(&self.object, request, Box::new(on_end))
    }

    /// Carries out steps in this thread, which may block, until the call waits or is over. Returns how it has ended.
    /// `arguments` are given the first time only.
    pub(super) fn carry_out(
        self: &Arc<Self>,
        mut step: Step,
        arguments: Option<Arguments<'_>>,
        mut now: Time,
    ) -> Option<Ended> {
        loop {
            let event = match step {
                Step::Send(index) => self.send(index, false, arguments, now)?,
                Step::Connect { index, .. } => self.send(index, true, arguments, now)?,
                Step::Done(outcome) => return Some(outcome.map(|_| None).map_err(or_call_in_update)),
                Step::RunHere => self.run_here(arguments)?,
                Step::Show => self.show(),
                Step::Tell => self.tell(None),
                Step::GoOn => CallEvent::GoOn,
            };
            now = clock::now();
            step = self.on(event, now)?;
        }
    }

    /// Takes an event of a thread that may block, and ends the call if that follows.
    fn go_on(self: &Arc<Self>, event: CallEvent) {
        let now = clock::now();
        let step = self.on(event, now);
        if let Some(ended) = step.and_then(|step| self.carry_out(step, None, now)) {
            self.finish(ended);
        }
    }

    /// Carries out a step in a thread that must not block, with the reply that has come. What may block goes to the
    /// background pool.
    fn carry_out_quickly(self: &Arc<Self>, mut step: Step, reply: Option<(Message, Option<Arc<Link>>)>) {
        if let Step::Tell = step {
            let told = self.tell(reply.as_ref().map(|(message, _)| message));
            let Some(next) = self.on(told, clock::now()) else { return };
            step = next;
        }
        match (step, reply) {
            (Step::Done(Ok(Completed::Reply { at, user_exception })), Some((message, link))) => {
                let answer = Answer { message, body_at: at, user_exception, link };
                self.complete(self.lock(), Ok(answer));
            }
            (Step::Done(outcome), _) => self.finish(outcome.map(|_| None)),
            _ => self.go_on_in_background(),
        }
    }

    /// Takes an event without a reply in a thread that must not block.
    fn take_quickly(self: &Arc<Self>, event: CallEvent) {
        if let Some(step) = self.on(event, clock::now()) {
            self.carry_out_quickly(step, None);
        }
    }

    fn go_on_in_background(self: &Arc<Self>) {
        let call = self.clone();
        let task = move || call.go_on(CallEvent::GoOn);
        if let Err(e) = self.lane.background_pool().run(task) {
            self.finish(Err(no_thread(&e)));
        }
    }

    /// Takes an event after which the call makes no further attempt.
    pub(super) fn end_by(&self, event: CallEvent) {
        let mut step = self.on(event, clock::now());
        if let Some(Step::Tell) = step {
            step = self.on(self.tell(None), clock::now());
        }
        if let Some(Step::Done(Err(e))) = step {
            self.complete(self.lock(), Err(e.clone()));
            // Another thread may have shown the next attempt meanwhile.
            self.end_attempt(self.lock().attempt.take(), e);
        }
    }

    /// Tells the interceptors that an attempt which they have seen comes to nothing.
    pub(super) fn end_attempt(&self, attempt: Option<Box<Attempt>>, e: SystemException) {
        if let Some(mut attempt) = attempt {
            let _the_call_is_over = attempt.end(interceptor::Outcome::SystemException(e), None);
        }
    }

    /// Gives the machine an event. `None` when the call is over already.
    #[inline]
    fn on(&self, event: CallEvent, now: Time) -> Option<Step> {
        let mut progress = self.lock();
        matches!(progress.end, End::NotYet).then(|| progress.call.on(&self.object, event, now))
    }

    /// Begins the call on a connection that has been made for the calls that waited for it.
    pub(in crate::driver::client) fn connected(self: &Arc<Self>, link: &Link, target: &RequestTarget) {
        if let Some(event) = self.begin_on(link, target, clock::now()) {
            self.take_quickly(event);
        }
    }

    /// Takes the news that an address could not be connected.
    pub(in crate::driver::client) fn not_connected(self: &Arc<Self>, failure: ConnectFailure) {
        self.go_on(CallEvent::NotConnected(failure));
    }

    /// Takes the news that the socket has taken the oneway, or that the request of a call that waited could not be sent. On the
    /// receiver's thread.
    pub(in crate::driver::client) fn take_news_of_sending(self: &Arc<Self>, event: CallEvent) {
        self.lock().stage = Stage::Begun;
        self.take_quickly(event);
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

    pub(super) fn on_message<'c>(
        self: &'c Arc<Self>,
        mut progress: LockGuard<'c, Progress>,
        message: Message,
        link: Option<Arc<Link>>,
    ) {
        if !matches!(progress.end, End::NotYet) {
            drop(progress);
            if let Some(link) = link {
                link.recycle(message);
            }
            return;
        }
        note_reply_to(self.operation(), &self.object, &message, link.as_ref());
        match progress.call.on_reply(&message) {
            Step::Done(Ok(Completed::Reply { at, user_exception })) => {
                self.complete(progress, Ok(Answer { message, body_at: at, user_exception, link }));
            }
            step => {
                drop(progress);
                self.carry_out_quickly(step, Some((message, link)));
            }
        }
    }

    pub(super) fn on_failure(self: &Arc<Self>, failure: CallFailure) {
        self.take_quickly(CallEvent::Failed(failure));
    }

    /// Shows the interceptors the request before it is sent.
    #[cold]
    fn show(&self) -> CallEvent {
        match Attempt::begin(
            &self.object.core().interceptors,
            &self.object,
            self.lasting_operation(),
            !self.is_oneway,
        ) {
            Ok(attempt) => {
                let mut progress = self.lock();
                progress.attempt = Some(Box::new(attempt));
                // Its time may have passed, or its caller have given it up, while the interceptors saw it.
                let e = match &progress.end {
                    End::NotYet => return CallEvent::Shown,
                    End::Come(Err(e)) => e.clone(),
                    End::Come(Ok(_)) | End::Gone => given_up(),
                };
                let attempt = progress.attempt.take();
                drop(progress);
                self.end_attempt(attempt, e);
                CallEvent::Shown
            }
            Err(interrupt) => CallEvent::Interrupted(interrupt),
        }
    }

    /// Tells the interceptors of the outcome of an attempt.
    #[cold]
    fn tell(&self, reply: Option<&Message>) -> CallEvent {
        let mut progress = self.lock();
        let outcome = progress.call.outcome(&self.object, reply);
        let attempt = progress.attempt.take();
        drop(progress);
        CallEvent::Told(attempt.and_then(|mut attempt| attempt.end(outcome, reply)))
    }

    #[cold]
    fn lasting_operation(&self) -> Cow<'static, str> {
        match &self.on_behalf {
            None => self.operation.clone(),
            Some(request) => Cow::Owned(request.operation().to_owned()),
        }
    }

    /// Sends the request to an address of the route. With `connect` a connection is made for it, if there is none. `None`
    /// when the call waits: for its answer, or for a connection.
    fn send(
        self: &Arc<Self>,
        index: usize,
        connect: bool,
        arguments: Option<Arguments<'_>>,
        now: Time,
    ) -> Option<CallEvent> {
        let route = match self.object.routes().current() {
            Ok(route) => route,
            Err(e) => return Some(CallEvent::Raised(e)),
        };
        let Some(target) = route.target(index) else {
            return Some(CallEvent::Rerouted);
        };
        if let Some(link) = target.server.open_link_of(self.thread, clock::coarse()) {
            return self.send_over(&link, target.request, arguments, now);
        }
        if let Err(misuse) = self.keep(arguments, || expected_encoding(target.request)) {
            return Some(misuse);
        }
        let until = self.lock().call.share(&self.object, now);
        match target.server.links(self.thread).link_or_wait(
            self.thread,
            connect,
            (self, target.request, until),
        ) {
            LinkLookup::Open(link) => self.begin_on(&link, target.request, now),
            LinkLookup::Waiting => None,
            LinkLookup::Refused(failure) => Some(CallEvent::NotConnected(failure)),
            LinkLookup::TooMany => Some(CallEvent::Failed(CallFailure::TooManyCalls)),
            LinkLookup::Unconnected => Some(CallEvent::Unconnected),
        }
    }

    /// Writes the request on an open connection.
    fn send_over(
        self: &Arc<Self>,
        link: &Link,
        target: &RequestTarget,
        arguments: Option<Arguments<'_>>,
        now: Time,
    ) -> Option<CallEvent> {
        let mut is_first = true;
        loop {
            if let Err(misuse) = self.keep(arguments, || link.encoding_for(target)) {
                return Some(misuse);
            }
            match self.begin_on(link, target, now) {
                // Another call's request has settled the code set meanwhile.
                Some(CallEvent::Failed(CallFailure::EncodingChanged)) if arguments.is_some() && is_first => {
                    self.lock().arguments = None;
                    is_first = false;
                }
                begun => return begun,
            }
        }
    }

    /// Writes the request on a connection. `None` when the call waits for its answer, or is over.
    fn begin_on(self: &Arc<Self>, link: &Link, target: &RequestTarget, now: Time) -> Option<CallEvent> {
        match link.begin(self, target, now) {
            Ok(Written::Oneway { .. }) => Some(CallEvent::Sent),
            Ok(Written::Request { .. } | Written::Later | Written::Nothing) => None,
            Err(failure) => {
                if self.is_oneway {
                    self.lock().stage = Stage::Begun;
                }
                Some(CallEvent::Failed(failure))
            }
        }
    }

    /// Writes the arguments into memory of their own, unless that has been done.
    fn keep(
        &self,
        arguments: Option<Arguments<'_>>,
        encoding: impl FnOnce() -> Encoding,
    ) -> Result<(), CallEvent> {
        let Some(arguments) = arguments else { return Ok(()) };
        let encoding = encoding();
        let mut progress = self.lock();
        if progress.arguments.is_none() {
            let copy = RetryArguments::write_down(arguments, encoding);
            let copy = copy.map_err(|misuse| CallEvent::Failed(CallFailure::Misuse(misuse)))?;
            progress.arguments = Some(RetryBody::Written(copy));
        }
        Ok(())
    }

    /// Calls an object of this process that cannot be called directly: the servant gets the call as a
    /// message. A call that begins runs in the caller's thread, as direct calls do, if that may wait. Otherwise a thread of the
    /// background pool runs it. A servant that replies later occupies no thread meanwhile.
    fn run_here(self: &Arc<Self>, arguments: Option<Arguments<'_>>) -> Option<CallEvent> {
        if let Err(misuse) = self.keep(arguments, loopback::encoding) {
            return Some(misuse);
        }
        if !self.may_wait_from_now_on() {
            return self.run_here_later();
        }
        let route = match self.object.routes().current() {
            Ok(route) => route,
            Err(e) => return Some(CallEvent::Raised(e)),
        };
        let Route::Local(key) = route.route() else { return Some(CallEvent::Rerouted) };
        let core = self.object.core();
        // A copy, because the servant must not run under the lock.
        let arguments = self.lock().arguments.clone()?;
        let encoding = arguments.encoding();
        let write = |w: &mut Writer<'_>| match &arguments {
            RetryBody::Raw(request) => request.write_here(w),
            RetryBody::Written(arguments) if arguments.write(w) => Ok(()),
            RetryBody::Written(_) => Err(Misuse::MovedBody),
        };
        if self.is_oneway {
            let _unheard = loopback_oneway(core, key, self.operation(), &write);
            return Some(CallEvent::Sent);
        }
        let call = self.clone();
        let on_reply = move |outcome: Result<Message, SystemException>| match outcome {
            Ok(message) => call.on_message(call.lock(), message, None),
            Err(e) => call.take_quickly(CallEvent::Raised(e)),
        };
        loopback_later(core, key, self.operation(), encoding, &write, Box::new(on_reply));
        None
    }

    /// Has a thread of the background pool call the object of this process.
    #[cold]
    fn run_here_later(self: &Arc<Self>) -> Option<CallEvent> {
        let call = self.clone();
        let task = move || {
            if let Some(ended) = call.carry_out(Step::RunHere, None, clock::now()) {
                call.finish(ended);
            }
        };
        self.lane.background_pool().run(task).err().map(|e| CallEvent::Raised(no_thread(&e)))
    }
}
