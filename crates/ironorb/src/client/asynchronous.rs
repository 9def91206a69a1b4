//! One asynchronous call as those see it who have begun it: how far it is, and who is told of its end.
//!
//! Three sorts of threads push it on, none of which waits for another: the caller who begins it, whoever receives its
//! answer, and an errand when an address must be connected first. How they do is in `course`.

mod progress;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::thread::Thread;
use std::time::Instant;

use ironorb_giop::Version;
use ironorb_giop::connection::CallId;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, Response};
use ironorb_giop::minor::MinorCode;

use super::Link;
use super::receiver::TimerKey;
use super::retry_body::RetryBody;
use crate::deadline::{Deadline, Passed};
use crate::dynamic::ReceivedRequest;
use crate::generated::Operation;
use crate::interceptor::Attempt;
use crate::invocation::{Next, RemoteCallState};
use crate::invoke::Arguments;
use crate::object::ObjectRef;
use crate::probe;
use crate::remote_call::Refused;
use crate::route::Attempts;
use crate::sync::lock;

/// One asynchronous call.
pub(crate) struct AsyncCall {
    object: ObjectRef,
    /// Empty where a request is passed on, which has it.
    operation: Cow<'static, str>,
    /// The request that is passed on with it.
    on_behalf: Option<Arc<ReceivedRequest>>,
    /// Nobody hears of it once it has begun.
    is_oneway: bool,
    /// Its reply was given up before it was sent.
    is_given_up: AtomicBool,
    deadline: Deadline,
    /// Which of the connections to an endpoint it uses: that of the thread that began it.
    ordinal: usize,
    /// Nothing was known of the way when it began that the caller could rely on.
    is_free: bool,
    progress: Mutex<Progress>,
}

struct Progress {
    invocation: RemoteCallState,
    arguments: Option<RetryBody>,
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
    /// In flight, and its caller receives the answer himself.
    Waited,
}

/// Where a call is that waits for its answer.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) link: Arc<Link>,
    pub(super) id: CallId,
    /// In which the request was written.
    pub(super) version: Version,
    /// Where in the stream it ends.
    pub(super) ends_at: u64,
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
    /// Who sleeps until there is an end, or something to wait for himself.
    Thread(Thread),
    Task(Waker),
    Callback(Callback),
}

/// What has become of a request that was to be written.
pub(super) enum Written {
    /// Its call is over already.
    Nothing,
    Oneway,
    Request {
        /// Somebody is to be told of its answer without waiting for it.
        is_asked_for: bool,
    },
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

    /// The same as a synchronous call gives it.
    pub(crate) fn into_remote_call(self) -> crate::remote_call::Answer {
        let Answer { message, body_at, user_exception, link } = self;
        crate::remote_call::Answer { message, link, body_at, user_exception }
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
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Arc<AsyncCall> {
        let _probe = probe::enter(probe::Stage::Call);
        let now = Instant::now();
        let call = AsyncCall::new(object, operation.lasting_name(), false, now);
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
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let now = Instant::now();
        AsyncCall::new(object, operation.lasting_name(), true, now).start(arguments, now)
    }

    /// A call that will pass this request on, to be begun by [`relay`](Self::relay).
    pub(crate) fn on_behalf_of(object: &ObjectRef, request: &Arc<ReceivedRequest>) -> Arc<AsyncCall> {
        let operation = Cow::Borrowed(""); // the request has it
        let is_oneway = request.response() == Response::None;
        Arc::new(AsyncCall {
            on_behalf: Some(request.clone()),
            ..AsyncCall::before(object, operation, is_oneway, Instant::now())
        })
    }

    /// Passes its request on, with its own body or with what `arguments` write, and has the receiver's thread told what it
    /// has brought; of one that wants no reply only how its sending has failed, if this thread finds that out. Waits only
    /// while the target takes no bytes.
    pub(crate) fn relay(
        self: &Arc<Self>,
        arguments: Option<Arguments<'_>>,
        callback: Callback,
    ) -> Result<(), SystemException> {
        {
            let mut progress = self.lock();
            if let Some(outcome) = progress.take_outcome() {
                drop(progress);
                self.run_soon(callback, outcome);
                return Ok(());
            }
            if arguments.is_none() {
                progress.arguments = self.on_behalf.clone().map(RetryBody::Raw);
            }
            if !self.is_oneway {
                progress.listener = Listener::Callback(callback);
            }
        }
        let begun = match self.object.core().connector.receiver().start() {
            Ok(()) => self.advance(arguments, Instant::now()),
            Err(e) => Err(no_thread(&e)),
        };
        match begun {
            Ok(()) => self.set_timer(),
            Err(e) if self.is_oneway => return Err(e),
            Err(e) => self.complete(self.lock(), Err(e)),
        }
        Ok(())
    }

    /// Ends the call before its answer, and tells whoever has asked.
    pub(crate) fn cut_short(&self) {
        let e = match self.after_interceptors(Next::Fail(given_up()), None) {
            Next::Fail(e) => e,
            _ => given_up(), // nobody waits for anything else
        };
        self.complete(self.lock(), Err(e));
    }

    fn new(
        object: &ObjectRef,
        operation: Cow<'static, str>,
        is_oneway: bool,
        now: Instant,
    ) -> Arc<AsyncCall> {
        Arc::new(AsyncCall::before(object, operation, is_oneway, now))
    }

    fn before(object: &ObjectRef, operation: Cow<'static, str>, is_oneway: bool, now: Instant) -> AsyncCall {
        let core = object.core();
        // A reference without a way says so when the call goes its first step.
        let is_free = object.routes().begin(object).is_ok_and(|(_, is_first)| is_first);
        let progress = Progress {
            invocation: RemoteCallState::new(core.config.forwards_max, core.config.resends_max, false),
            arguments: None,
            attempts: Attempts::default(),
            refused: Refused::new(),
            stage: Stage::Begun,
            timer: None,
            end: End::NotYet,
            listener: Listener::Nobody,
            attempt: None,
        };
        AsyncCall {
            object: object.clone(),
            operation,
            on_behalf: None,
            is_oneway,
            is_given_up: AtomicBool::new(false),
            deadline: Deadline::for_call(now, object.timeout(), || core.call_timeout()),
            ordinal: super::thread_ordinal(),
            is_free,
            progress: Mutex::new(progress),
        }
    }

    fn start(self: &Arc<Self>, arguments: Arguments<'_>, now: Instant) -> Result<(), SystemException> {
        self.object.core().connector.receiver().start().map_err(|e| no_thread(&e))?;
        self.advance(Some(arguments), now)
    }

    pub(crate) fn object(&self) -> &ObjectRef {
        &self.object
    }

    pub(crate) fn operation(&self) -> &str {
        self.on_behalf.as_ref().map_or(&self.operation, |request| request.operation())
    }

    pub(super) fn is_oneway(&self) -> bool {
        self.is_oneway
    }

    /// Whether nobody would hear of a reply.
    pub(super) fn wants_no_reply(&self) -> bool {
        self.is_oneway || self.is_given_up.load(Ordering::Relaxed)
    }

    /// The request that is passed on with it: of another, who is kept waiting where this one would be.
    pub(super) fn on_behalf(&self) -> Option<&ReceivedRequest> {
        self.on_behalf.as_deref()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether the end has come and not been told.
    pub(crate) fn is_ready(&self) -> bool {
        let progress = self.lock();
        let is_ready = matches!(progress.end, End::Come(_));
        if !is_ready {
            self.ask(progress);
        }
        is_ready
    }

    /// The outcome, if it is there; else the waker is called when it is.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Outcome> {
        let mut progress = self.lock();
        let outcome = progress.take_outcome();
        if outcome.is_none() {
            match &mut progress.listener {
                Listener::Task(known) => known.clone_from(waker),
                listener => {
                    *listener = Listener::Task(waker.clone());
                    self.ask(progress);
                }
            }
        }
        outcome
    }

    /// Calls the waker when the outcome is there, at once if it is.
    pub(crate) fn tell_when_ready(&self, waker: &Waker) {
        let mut progress = self.lock();
        if matches!(progress.end, End::NotYet) {
            progress.listener = Listener::Task(waker.clone());
            self.ask(progress);
        } else {
            drop(progress);
            waker.wake_by_ref();
        }
    }

    /// Waits for the outcome, and receives it where nobody else does. The receiver's own thread would keep others
    /// waiting, and is told so.
    pub(crate) fn wait(self: &Arc<Self>) -> Outcome {
        let _probe = probe::enter(probe::Stage::Call);
        let mut progress = self.lock();
        loop {
            if let Some(outcome) = progress.take_outcome() {
                return outcome;
            }
            let receiver = self.object.core().connector.receiver();
            if receiver.is_current_thread() {
                return Err(would_deadlock());
            }
            let in_flight = match &progress.stage {
                Stage::InFlight(in_flight) => Some(in_flight.clone()),
                Stage::Begun | Stage::Waited => None,
            };
            progress.listener = Listener::Thread(std::thread::current());
            // The deadline is kept by this thread now.
            let timer = progress.timer.take();
            drop(progress);
            if let Some(timer) = timer {
                receiver.forget_timer(timer);
            }
            let answered = in_flight.and_then(|InFlight { link, id, version, ends_at }| {
                link.wait_for(self, id, version, ends_at).map(|answered| (answered, link))
            });
            match answered {
                Some((Ok(message), link)) => self.on_message(self.lock(), message, Some(link)),
                Some((Err(failure), _)) => self.on_failure(failure),
                None => self.sleep(),
            }
            progress = self.lock();
        }
    }

    /// Sleeps until it is worth another look.
    fn sleep(self: &Arc<Self>) {
        let _probe = probe::enter(probe::Stage::Wait);
        match self.deadline.remaining(Instant::now()) {
            Ok(None) => std::thread::park(),
            Ok(Some(left)) => std::thread::park_timeout(left),
            Err(Passed) => self.time_out(),
        }
    }

    /// True if the call is in flight there; then whoever waits for it takes care of it from now on.
    pub(super) fn is_taken_on_by_its_caller(&self, link: &Link, id: CallId) -> bool {
        let mut progress = self.lock();
        let is_there = match &progress.stage {
            Stage::InFlight(in_flight) => in_flight.id == id && std::ptr::eq(&*in_flight.link, link),
            Stage::Begun | Stage::Waited => false,
        };
        if is_there {
            progress.stage = Stage::Waited;
            progress.listener = Listener::Nobody;
        }
        is_there
    }

    /// Lets the receiver's thread call `callback` with the outcome.
    pub(crate) fn on_outcome(&self, callback: Callback) {
        let mut progress = self.lock();
        match progress.take_outcome() {
            Some(outcome) => {
                drop(progress);
                self.run_soon(callback, outcome);
            }
            None => {
                progress.listener = Listener::Callback(callback);
                self.ask(progress);
            }
        }
    }

    /// The answer is wanted, and nobody waits for it: the receiver is to see to it.
    fn ask(&self, progress: MutexGuard<'_, Progress>) {
        let link = match &progress.stage {
            Stage::InFlight(InFlight { link, .. }) => link.clone(),
            Stage::Begun | Stage::Waited => return, // whoever sends it sees who listens
        };
        drop(progress);
        link.ask();
    }

    /// Nobody wants the reply. A request that waits for its connection will be sent all the same, but asks for none.
    pub(crate) fn give_up_reply(&self) {
        let progress = self.lock();
        let is_to_be_sent = matches!((&progress.end, &progress.stage), (End::NotYet, Stage::Begun));
        self.is_given_up.store(is_to_be_sent, Ordering::Relaxed);
        drop(progress);
        if !is_to_be_sent {
            self.give_up();
        }
    }

    /// Nobody wants the outcome any more.
    pub(crate) fn give_up(&self) {
        let mut progress = self.lock();
        let end = std::mem::replace(&mut progress.end, End::Gone);
        // What a callback holds is not let go under the lock.
        let _listener = std::mem::replace(&mut progress.listener, Listener::Nobody);
        let attempt = progress.attempt.take();
        self.forget(progress);
        if let Some(attempt) = attempt {
            let _nobody_cares = attempt.led_to(&Next::Fail(given_up()), None);
        }
        if let End::Come(Ok(answer)) = end {
            answer.recycle();
        }
    }

    /// The deadline has passed.
    pub(super) fn time_out(&self) {
        let progress = self.lock();
        let written = matches!(progress.stage, Stage::InFlight(..) | Stage::Waited);
        let timeout = progress.invocation.on_timeout(written);
        drop(progress);
        let e = match self.after_interceptors(Next::Fail(timeout.clone()), None) {
            Next::Fail(e) => e,
            _ => timeout, // there is no time left for anything else
        };
        self.complete(self.lock(), Err(e));
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
            // Callbacks of answers that came later may stand in the receiver's queue already.
            return match self.object.core().connector.receiver().is_current_thread() {
                true => callback(outcome),
                false => self.run_soon(callback, outcome),
            };
        }
        progress.end = End::Come(outcome);
        self.forget(progress);
        match listener {
            Listener::Task(waker) => waker.wake(),
            Listener::Thread(thread) => thread.unpark(),
            Listener::Nobody | Listener::Callback(_) => {}
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
        if let Stage::InFlight(InFlight { link, id, version, .. }) = stage {
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
            .field("operation", &self.operation())
            .finish_non_exhaustive()
    }
}

#[cold]
fn no_thread(e: &std::io::Error) -> SystemException {
    SystemException::new(SystemExceptionKind::NoResources, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the system has no thread for asynchronous calls: {e}"))
}

#[cold]
fn would_deadlock() -> SystemException {
    SystemException::new(
        SystemExceptionKind::BadInvOrder,
        MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK,
        CompletionStatus::Maybe,
    )
    .with_detail("a callback cannot wait for another reply: the thread that runs it receives them")
}

/// Nobody waits for the reply any more.
#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::REPLY_GIVEN_UP, CompletionStatus::Maybe)
}
