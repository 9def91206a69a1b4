//! Synchronous calls: the calling thread carries out the steps of its [`RemoteCall`] with real connections and a real
//! clock, and waits.

use std::sync::Arc;

use ironorb_giop::connection::RequestOptions;
use ironorb_giop::exception::{SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, Response};
use ironorb_giop::service_context::ServiceContextList;
use ironorb_giop::{Reader, Writer};

use crate::base::time::Time;
use crate::call::invocation::{CallFailure, results_at};
use crate::call::remote_call::{CallEvent, Completed, RemoteCall, Step};
use crate::driver::cache::note_reply;
use crate::driver::call_contexts::{contexts_of, tell_band};
use crate::driver::call_policies::deadline_of;
use crate::driver::client::asynchronous::AsyncCall;
use crate::driver::client::{CallingThread, Link};
use crate::driver::clock;
use crate::driver::counting;
use crate::driver::engine::located;
use crate::driver::invoke::{Arguments, LOCATE, NO_ARGUMENTS};
use crate::driver::loopback::{self, WaitPolicy, loopback, loopback_oneway};
use crate::driver::reference::ReplyEnvironment;
use crate::interceptor::{Attempt, BodyCount, Interrupt, Outcome};
use crate::object::ObjectRef;
use crate::object::deadline::{CallTime, Deadline, Passed, deadline_of_request};
use crate::object::messaging::SyncScope;
use crate::object::operation::Operation;
use crate::object::route::Route;

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
        note_reply(object, &message, link.as_ref());
        let server = object.environment_of_reply(link.as_ref());
        Answer { message, link, body_at, user_exception, server }
    }

    /// The results that the fast path has received.
    pub(crate) fn results(object: &ObjectRef, message: Message, at: usize, link: Arc<Link>) -> Answer {
        Answer::new(object, message, Some(link), at, false)
    }

    /// A reader at the body.
    #[inline(never)]
    pub(crate) fn reader<'a>(&'a self, object: &'a ObjectRef) -> Reader<'a> {
        object.reader_of_reply(&self.message, self.body_at, self.server.as_ref())
    }
}

/// Makes a twoway call, and blocks until its deadline at most.
pub(crate) fn twoway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<Answer, SystemException> {
    object.shared().in_its_own_process()?;
    if object.settled().is_some() {
        return straight(object, operation, arguments);
    }
    if let Some(simulated) = object.simulated() {
        return simulated.twoway(object, operation, arguments);
    }
    let now = clock::now();
    let mut call = BlockingCall::new(object, operation, arguments, TWOWAY, now, deadline_of(object, now));
    let step = call.begin();
    call.answer(step)
}

/// Makes a twoway call at the first address of a reference that has been called before. It decides nothing: where anything
/// is unusual, it builds the machine in the state that the call has reached.
fn straight(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<Answer, SystemException> {
    let mut now = clock::now();
    let deadline = deadline_of(object, now);
    let not_sent = |attempt, event: Option<CallEvent>| {
        let mut call = BlockingCall::new(object, operation, arguments, TWOWAY, clock::now(), deadline);
        call.attempt = attempt;
        let step = event.map(|event| call.on(event));
        let step = step.unwrap_or_else(|| call.begin());
        call.answer(step)
    };
    if deadline_of_request().at().is_some_and(|at| at <= now) {
        return not_sent(None, None); // the machine ends the call
    }
    let mut attempt = None;
    if object.shared().has_client_interceptors {
        match begin_attempt(object, operation) {
            Ok(begun) => attempt = Some(begun),
            Err(interrupt) => return not_sent(None, Some(CallEvent::Interrupted(interrupt))),
        }
        // The interceptors have taken time of the call.
        now = clock::now();
        if deadline.remaining(now) == Err(Passed) {
            return not_sent(attempt, Some(CallEvent::Shown));
        }
    }
    // The interceptors may have changed the route by calls of their own.
    let target = object.settled().and_then(|to| to.target_now(object));
    let open = target.and_then(|target| Some((target, target.server.open_link(clock::coarse())?)));
    let Some((target, link)) = open else {
        let shown = attempt.as_ref().map(|_| CallEvent::Shown);
        return not_sent(attempt, shown);
    };
    let left = deadline.left(now);
    let contexts = contexts_of(object, operation.name(), &link, true, left, attempt.as_ref());
    let options = RequestOptions { response: Response::SyncWithTarget, contexts: contexts.encoded() };
    let sent = {
        let body = BodyCount::default();
        let counted = |w: &mut Writer<'_>| body.write(w, arguments);
        let arguments: Arguments<'_> = if attempt.is_some() { &counted } else { arguments };
        let sent = link.call(target.request, options, operation.wire_name(), arguments, now, deadline);
        if let Some(attempt) = &mut attempt {
            attempt.note_sent(&body);
        }
        sent
    };
    let mut at = None;
    let mut instead = None;
    if let Ok(message) = &sent {
        at = results_at(message);
        if let (Some(_), Some(attempt)) = (at, &mut attempt) {
            instead = attempt.end(Outcome::Results, Some(message));
        }
    }
    match (sent, at, instead) {
        (Ok(message), Some(at), None) => Ok(Answer::new(object, message, Some(link), at, false)),
        (sent, _, instead) => {
            let time = (clock::now(), deadline);
            let mut call = BlockingCall::resumed(object, operation, arguments, TWOWAY, time);
            call.attempt = attempt;
            let mut step = call.sent(link, sent);
            if instead.is_some() {
                // The interceptors have been told already, as the machine now wishes.
                call.attempt = None;
                step = call.on(CallEvent::Told(instead));
            }
            call.answer(step)
        }
    }
}

/// Makes a call without results. Blocks for what the caller's `SyncScope` says.
pub(crate) fn oneway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
) -> Result<(), SystemException> {
    object.shared().in_its_own_process()?;
    if let Some(simulated) = object.simulated() {
        return simulated.oneway(object, operation, arguments);
    }
    let request = match object.sync_scope() {
        SyncScope::None => return AsyncCall::send_oneway(object, operation, arguments),
        SyncScope::WithTransport => Request::Oneway,
        SyncScope::WithServer => Request::Call(Response::SyncWithServer),
        SyncScope::WithTarget => Request::Call(Response::SyncWithTarget),
    };
    // The caller calls an object of this process at once, so no wait remains; the object still answers.
    let now = clock::now();
    let mut call = BlockingCall::new(object, operation, arguments, request, now, deadline_of(object, now));
    let step = call.begin();
    call.carry_out(step)?;
    if let Some(Received { message, link: Some(link) }) = call.reply {
        link.recycle(message);
    }
    Ok(())
}

/// Finishes a twoway call whose request the fast path sent to the first address, starting with the outcome of that.
#[cold]
pub(crate) fn resume(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    time: CallTime,
    link: Arc<Link>,
    outcome: Result<Message, CallFailure>,
) -> Result<Answer, SystemException> {
    match (outcome.as_ref().ok().and_then(results_at), outcome) {
        (Some(at), Ok(message)) => Ok(Answer::new(object, message, Some(link), at, false)),
        (_, outcome) => {
            let mut call = BlockingCall::resumed(object, operation, arguments, TWOWAY, time.settle());
            let step = call.sent(link, outcome);
            call.answer(step)
        }
    }
}

/// Finishes a oneway call whose request the fast path could not send to the first address.
#[cold]
pub(crate) fn resume_oneway(
    object: &ObjectRef,
    operation: &Operation<'_>,
    arguments: Arguments<'_>,
    time: CallTime,
    failure: CallFailure,
) -> Result<(), SystemException> {
    let mut call = BlockingCall::resumed(object, operation, arguments, Request::Oneway, time.settle());
    let step = call.on(CallEvent::Failed(failure));
    call.carry_out(step).map(drop)
}

/// Asks where an object is. `false` when it does not exist. With `is_free` it rebinds also where the policies forbid calls
/// to do so.
pub(crate) fn locate(object: &ObjectRef, is_free: bool) -> Result<bool, SystemException> {
    object.shared().in_its_own_process()?;
    if let Some(simulated) = object.simulated() {
        return simulated.locate(object, is_free);
    }
    let now = clock::now();
    let deadline = deadline_of(object, now);
    let call = RemoteCall::locate(object, deadline, object.rebind(), is_free);
    let mut call = BlockingCall::of(object, &LOCATE, NO_ARGUMENTS, Request::Locate, call, now);
    let step = call.begin();
    match call.carry_out(step)? {
        Completed::Located(known) => Ok(known),
        Completed::Reply { .. } | Completed::Sent => Ok(true),
    }
}

/// Binds the connection of a band to it by a call of `operation`. `false` if the server does not know that.
pub(crate) fn bind_band(object: &ObjectRef, operation: &Operation<'_>) -> Result<bool, SystemException> {
    if object.simulated().is_some() {
        return Ok(false);
    }
    object.shared().in_its_own_process()?;
    let now = clock::now();
    let call = RemoteCall::bind(object, deadline_of(object, now), object.rebind());
    let mut call = BlockingCall::of(object, operation, NO_ARGUMENTS, TWOWAY, call, now);
    let step = call.begin();
    match call.answer(step) {
        Err(e) if e.kind == SystemExceptionKind::BadOperation => Ok(false),
        answer => answer.map(|_| true),
    }
}

/// Shows an attempt to the interceptors.
fn begin_attempt(object: &ObjectRef, operation: &Operation<'_>) -> Result<Attempt, Interrupt> {
    let (name, wants_results) = (operation.lasting_name(), !operation.is_oneway());
    Attempt::begin(&object.core().interceptors, object, name, wants_results)
}

/// What a call sends.
#[derive(Clone, Copy)]
enum Request {
    Call(Response),
    Oneway,
    Locate,
}

const TWOWAY: Request = Request::Call(Response::SyncWithTarget);

/// One synchronous call in progress.
struct BlockingCall<'c> {
    object: &'c ObjectRef,
    operation: &'c Operation<'c>,
    arguments: Arguments<'c>,
    request: Request,
    call: RemoteCall,
    attempt: Option<Attempt>,
    /// The connection that has just been made for the call.
    connected: Option<Arc<Link>>,
    /// The reply that has come.
    reply: Option<Received>,
    now: Time,
}

/// A reply as it came.
struct Received {
    message: Message,
    /// `None` when it came from this process.
    link: Option<Arc<Link>>,
}

/// What a request has led to: perhaps a reply, or the event that there is none.
type Sent = Result<Option<Received>, CallEvent>;

impl<'c> BlockingCall<'c> {
    fn new(
        object: &'c ObjectRef,
        operation: &'c Operation<'c>,
        arguments: Arguments<'c>,
        request: Request,
        now: Time,
        deadline: Deadline,
    ) -> Self {
        let call =
            RemoteCall::new(object, deadline, object.rebind(), object.shared().has_client_interceptors);
        BlockingCall::of(object, operation, arguments, request, call, now)
    }

    /// A call whose request has been sent to the first address. `time` is now and the deadline.
    #[cold]
    fn resumed(
        object: &'c ObjectRef,
        operation: &'c Operation<'c>,
        arguments: Arguments<'c>,
        request: Request,
        time: (Time, Deadline),
    ) -> Self {
        let (now, deadline) = time;
        let call = RemoteCall::resumed(object, deadline, object.rebind());
        BlockingCall::of(object, operation, arguments, request, call, now)
    }

    fn of(
        object: &'c ObjectRef,
        operation: &'c Operation<'c>,
        arguments: Arguments<'c>,
        request: Request,
        call: RemoteCall,
        now: Time,
    ) -> Self {
        let (attempt, connected, reply) = (None, None, None);
        BlockingCall { object, operation, arguments, request, call, attempt, connected, reply, now }
    }

    fn answer(&mut self, step: Step) -> Result<Answer, SystemException> {
        match (self.carry_out(step)?, self.reply.take()) {
            (Completed::Reply { at, user_exception }, Some(Received { message, link })) => {
                Ok(Answer::new(self.object, message, link, at, user_exception))
            }
            _ => unreachable!("a twoway call ends with its reply"),
        }
    }

    /// Takes what the first address has led to.
    fn sent(&mut self, link: Arc<Link>, outcome: Result<Message, CallFailure>) -> Step {
        match outcome {
            Ok(message) => self.received(Received { message, link: Some(link) }),
            Err(failure) => self.on(CallEvent::Failed(failure)),
        }
    }

    #[inline]
    fn begin(&mut self) -> Step {
        self.call.begin(self.object, self.now)
    }

    #[cold]
    fn on(&mut self, event: CallEvent) -> Step {
        self.call.on(self.object, event, self.now)
    }

    #[inline]
    fn received(&mut self, reply: Received) -> Step {
        let reply = self.reply.insert(reply);
        note_reply(self.object, &reply.message, reply.link.as_ref());
        self.call.on_reply(&reply.message)
    }

    /// Carries out steps until the call is over.
    fn carry_out(&mut self, mut step: Step) -> Result<Completed, SystemException> {
        loop {
            step = match step {
                Step::Send(index) => match self.send(index) {
                    Ok(Some(received)) => self.received(received),
                    Ok(None) => self.call.on_sent(),
                    Err(event) => self.later(event),
                },
                Step::Done(outcome) => {
                    counting::count_call(self.object, &self.call, outcome.as_ref().err());
                    return outcome;
                }
                other => self.carry_out_rarity(other),
            };
        }
    }

    #[cold]
    fn carry_out_rarity(&mut self, step: Step) -> Step {
        let event = match step {
            Step::RunHere => match self.run_here() {
                Ok(Some(received)) => return self.received(received),
                Ok(None) => return self.call.on_sent(),
                Err(event) => event,
            },
            Step::Connect { index, until } => self.connect(index, until),
            Step::Show => self.show(),
            Step::Tell => {
                let event = self.tell();
                return self.on(event);
            }
            Step::GoOn => CallEvent::GoOn,
            Step::Send(_) | Step::Done(_) => return step,
        };
        self.later(event)
    }

    /// Shows the attempt to the interceptors.
    fn show(&mut self) -> CallEvent {
        self.reply = None;
        match begin_attempt(self.object, self.operation) {
            Ok(attempt) => {
                self.attempt = Some(attempt);
                CallEvent::Shown
            }
            Err(interrupt) => CallEvent::Interrupted(interrupt),
        }
    }

    /// Tells the interceptors how the attempt has ended.
    fn tell(&mut self) -> CallEvent {
        let message = self.reply.as_ref().map(|reply| &reply.message);
        let outcome = self.call.outcome(self.object, message);
        CallEvent::Told(self.attempt.take().and_then(|mut attempt| attempt.end(outcome, message)))
    }

    /// Takes an event after which time has passed.
    #[cold]
    fn later(&mut self, event: CallEvent) -> Step {
        self.now = clock::now();
        self.on(event)
    }

    /// Sends the request over the connection to an address of the route, and waits for what it wants.
    #[inline]
    fn send(&mut self, index: usize) -> Sent {
        let route = self.object.routes().current().map_err(CallEvent::Raised)?;
        let target = route.target(index).ok_or(CallEvent::Rerouted)?;
        let connected = self.connected.take();
        let link = match connected.or_else(|| target.server.open_link(clock::coarse())) {
            Some(link) => link,
            None => {
                let until = self.call.share(self.object, self.now);
                let thread = CallingThread::this();
                let in_turn = target.server.links(thread).link_in_turn(thread, until);
                in_turn.map_err(CallEvent::NotConnected)?.ok_or(CallEvent::Unconnected)?
            }
        };
        let mut contexts = self.contexts(&link);
        tell_band(&mut contexts, link.band_to_tell());
        let contexts = contexts.encoded();
        let (to, now, deadline) = (target.request, self.now, self.call.deadline());
        let operation = self.operation.wire_name();
        let body = BodyCount::default();
        let counted = |w: &mut Writer<'_>| body.write(w, self.arguments);
        let arguments: Arguments<'_> = if self.attempt.is_some() { &counted } else { self.arguments };
        let message = match self.request {
            Request::Call(response) => {
                let options = RequestOptions { response, contexts };
                link.call(to, options, operation, arguments, now, deadline).map(Some)
            }
            Request::Oneway => {
                let batching = self.object.oneway_batching();
                link.oneway(to, contexts, operation, arguments, batching, now, deadline).map(|()| None)
            }
            Request::Locate => link.locate(to, now, deadline).map(Some),
        };
        if let Some(attempt) = &mut self.attempt {
            attempt.note_sent(&body);
        }
        let message = message.map_err(CallEvent::Failed)?;
        Ok(message.map(|message| Received { message, link: Some(link) }))
    }

    /// The service contexts of the request that is sent now.
    fn contexts(&self, link: &Link) -> ServiceContextList {
        let wants_results = match self.request {
            Request::Call(response) => response == Response::SyncWithTarget,
            Request::Oneway => false,
            Request::Locate => return ServiceContextList::default(),
        };
        let left = self.call.deadline().left(self.now);
        contexts_of(self.object, self.operation.name(), link, wants_results, left, self.attempt.as_ref())
    }

    #[cold]
    fn connect(&mut self, index: usize, until: Deadline) -> CallEvent {
        let route = match self.object.routes().current() {
            Ok(route) => route,
            Err(e) => return CallEvent::Raised(e),
        };
        let Some(target) = route.target(index) else {
            return CallEvent::Rerouted;
        };
        let thread = CallingThread::this();
        match target.server.links(thread).connect_for(thread, until) {
            Ok(link) => {
                self.connected = Some(link);
                CallEvent::Connected
            }
            Err(failure) => CallEvent::NotConnected(failure),
        }
    }

    /// Calls an object of this process: a forward has led here, which the typed caller could not know.
    #[cold]
    fn run_here(&self) -> Sent {
        let route = self.object.routes().current().map_err(CallEvent::Raised)?;
        let Route::Local(key) = route.route() else { return Err(CallEvent::Rerouted) };
        let (orb, operation) = (self.object.core(), self.operation.name());
        match self.request {
            Request::Call(_) => {
                let wait_policy = WaitPolicy::Until(self.call.deadline());
                let encoding = loopback::encoding();
                let replied = loopback(orb, key, operation, encoding, self.arguments, wait_policy);
                let message = replied.map_err(CallEvent::Raised)?;
                Ok(Some(Received { message, link: None }))
            }
            Request::Oneway => {
                loopback_oneway(orb, key, operation, self.arguments).map(|()| None).map_err(CallEvent::Raised)
            }
            Request::Locate => Err(located(orb, key)),
        }
    }
}
