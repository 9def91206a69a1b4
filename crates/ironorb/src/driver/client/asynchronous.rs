//! One asynchronous call as its callers see it: its stage, and the listener that learns of its end.
//!
//! Three sorts of threads drive a call, and none of them waits for another: the caller that begins it, the
//! thread that receives its answer, and a thread of the background pool when an address must be connected
//! first. The steps are in `progress`.

mod progress;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::thread::Thread;

use ironorb_giop::Version;
use ironorb_giop::connection::CallId;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, Response};
use ironorb_giop::minor::MinorCode;

use super::receiver::{Receiver, TimerKey};
use super::retry_body::RetryBody;
use super::thread_slots::{InGroup, enter_group};
use super::{CallingThread, ClientLane, ConnectionGroup, Link};
use crate::base::locks::{LaneLock, LockGuard};
use crate::base::probe;
use crate::base::time::Time;
use crate::call::remote_call::{CallEvent, RemoteCall};
use crate::driver::call_contexts::{KeptContexts, kept_contexts};
use crate::driver::call_policies::{call_timeout, deadline_of};
use crate::driver::clock;
use crate::driver::counting;
use crate::driver::engine;
use crate::driver::invoke::Arguments;
use crate::driver::written;
use crate::interceptor::Attempt;
use crate::object::ObjectRef;
use crate::object::deadline::{Deadline, Passed};
use crate::object::operation::Operation;
use crate::object::received_request::ReceivedRequest;

/// One asynchronous call.
pub(crate) struct AsyncCall {
    object: ObjectRef,
    /// Empty for a request that is passed on: the request has its own operation name.
    operation: Cow<'static, str>,
    /// The request that this call passes on.
    on_behalf: Option<Arc<ReceivedRequest>>,
    /// The service contexts of its requests, besides those of interceptors.
    contexts: KeptContexts,
    /// The caller learns nothing once the request has been sent.
    is_oneway: bool,
    /// The caller gave up the reply before the request was sent.
    is_given_up: AtomicBool,
    /// The server is told when the call ends before its answer.
    is_cancelled: AtomicBool,
    /// The thread that begins the call must not wait.
    never_waits: AtomicBool,
    deadline: Deadline,
    /// The thread that receives where no caller waits.
    receiver: Arc<Receiver>,
    /// The thread that began the call. It selects one of the connections to an endpoint.
    thread: CallingThread,
    /// The lane of that thread.
    lane: Arc<ClientLane>,
    progress: LaneLock<Progress>,
}

struct Progress {
    call: RemoteCall,
    arguments: Option<RetryBody>,
    stage: Stage,
    timer: Option<TimerKey>,
    end: End,
    listener: Listener,
    /// What the client interceptors see; `None` without interceptors.
    attempt: Option<Box<Attempt>>,
}

enum Stage {
    /// No connection has the request yet.
    Begun,
    InFlight(InFlight),
    /// In flight; the caller receives the answer itself.
    Waited,
    /// A oneway has been written to a connection, whose socket has not taken all of it.
    Leaving,
}

/// The connection and the id of a call that waits for its answer.
#[derive(Clone)]
pub(super) struct InFlight {
    pub(super) link: Arc<Link>,
    pub(super) id: CallId,
    /// The GIOP version in which the request was written.
    pub(super) version: Version,
    /// The stream position at which the request ends.
    pub(super) ends_at: u64,
}

enum End {
    NotYet,
    /// The call has ended, and the caller has not taken the outcome yet.
    Come(Outcome),
    /// The caller has taken the outcome, or has given it up.
    Gone,
}

/// Where the end of a call is reported.
enum Listener {
    Nobody,
    /// A thread that sleeps until the call has ended, or until the thread can receive the answer itself.
    Thread(Thread),
    Task(Waker),
    Callback(Callback),
    /// What a oneway calls when the socket has taken it, or will not.
    Sent(OnSent),
}

/// The result of writing a request.
pub(in crate::driver::client) enum Written {
    /// Nothing was written: the call is over already.
    Nothing,
    /// The connection goes on with the call when its socket takes more.
    Later,
    Oneway {
        /// The caller learns whether the socket has taken it.
        is_waited_for: bool,
    },
    Request {
        /// A task or a callback waits for the answer.
        is_asked_for: bool,
    },
}

/// The result of a call.
pub(crate) type Outcome = Result<Answer, SystemException>;

/// How a call has ended: without an answer if its caller wants none.
type Ended = Result<Option<Answer>, SystemException>;

/// Receives the outcome on the receiver's thread.
pub(crate) type Callback = Box<dyn FnOnce(Outcome) + Send>;

/// Learns whether a oneway has been sent.
pub(crate) type OnSent = Box<dyn FnOnce(Result<(), SystemException>) + Send>;

/// A reply. The caller that knows the operation reads it.
pub(crate) struct Answer {
    message: Message,
    pub(crate) body_at: usize,
    pub(crate) user_exception: bool,
    /// Takes the message's buffer back. `None` when the answer came from this process.
    link: Option<Arc<Link>>,
}

impl Answer {
    /// The connection that has carried the reply.
    pub(crate) fn link(&self) -> Option<&Arc<Link>> {
        self.link.as_ref()
    }

    /// The reply message.
    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    /// The answer of another call.
    pub(crate) fn of_other(
        message: Message,
        (body_at, user_exception): (usize, bool),
        link: Option<Arc<Link>>,
    ) -> Answer {
        Answer { message, body_at, user_exception, link }
    }

    /// Converts the answer to the form that synchronous calls use.
    pub(crate) fn into_remote_call(self, object: &ObjectRef) -> crate::driver::blocking::Answer {
        let Answer { message, body_at, user_exception, link } = self;
        crate::driver::blocking::Answer::new(object, message, link, body_at, user_exception)
    }

    /// The answer of a simulated call; `None` if it has no reply.
    fn of_engine(answer: engine::Answer) -> Option<Answer> {
        match answer {
            engine::Answer::Reply(engine::Reply { message, body_at, user_exception, .. }) => {
                Some(Answer { message, body_at, user_exception, link: None })
            }
            engine::Answer::Sent | engine::Answer::Located(_) => None,
        }
    }

    /// Gives the buffer back after the answer has been read.
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
        if written::writes_down() {
            return written::write_call_down(object, operation, arguments);
        }
        let _probe = probe::enter(probe::Stage::Call);
        let now = object.now();
        let call = AsyncCall::new(object, operation.lasting_name(), false, now);
        match call.start(Some(arguments), now) {
            None => call.set_timer(),
            Some(ended) => call.finish(ended),
        }
        call
    }

    /// Makes a call that sends nothing, and waits until it is ended.
    pub(crate) fn written(object: &ObjectRef, operation: &Operation<'_>) -> Arc<AsyncCall> {
        let call = AsyncCall::before(object, operation.lasting_name(), false, object.now());
        Arc::new(AsyncCall { deadline: Deadline::NEVER, ..call })
    }

    /// Ends a call that sends nothing.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.finish(outcome.map(Some));
    }

    /// Sends a oneway without waiting for anything. The error is what this thread finds out; failures that
    /// other threads find later are not reported.
    pub(crate) fn send_oneway(
        object: &ObjectRef,
        operation: &Operation<'_>,
        arguments: Arguments<'_>,
    ) -> Result<(), SystemException> {
        let now = object.now();
        let call = AsyncCall::new(object, operation.lasting_name(), true, now);
        call.start(Some(arguments), now).unwrap_or(Ok(None)).map(drop)
    }

    /// Makes a call that will pass the request on. [`relay`](Self::relay) begins it.
    pub(crate) fn on_behalf_of(object: &ObjectRef, request: &Arc<ReceivedRequest>) -> Arc<AsyncCall> {
        let operation = Cow::Borrowed(""); // the request has it
        let is_oneway = request.response() == Response::None;
        let call = AsyncCall::before(object, operation, is_oneway, object.now());
        let wants_results = request.response() == Response::SyncWithTarget;
        let contexts = kept_contexts(object, request.operation(), wants_results, call_timeout(object));
        Arc::new(AsyncCall { on_behalf: Some(request.clone()), contexts, ..call })
    }

    /// Passes the request on, with its own body or with what `arguments` write. The receiver's thread gives
    /// the outcome to `callback`. When the request wants no reply, the callback learns only of a failure to
    /// send that this thread finds out. Blocks only while the target takes no bytes.
    pub(crate) fn relay(
        self: &Arc<Self>,
        arguments: Option<Arguments<'_>>,
        callback: Callback,
    ) -> Result<(), SystemException> {
        let listener = if self.is_oneway { Listener::Nobody } else { Listener::Callback(callback) };
        match self.relay_for(listener, arguments) {
            Some(Err(e)) if self.is_oneway => return Err(e),
            Some(ended) => self.finish(ended),
            None => {}
        }
        Ok(())
    }

    /// Passes a oneway on. `then` learns whether the socket has taken it: on this thread before this returns, or on
    /// another one.
    pub(crate) fn relay_oneway(self: &Arc<Self>, then: OnSent) {
        let listener = match self.is_oneway {
            true => Listener::Sent(then),
            false => Listener::Callback(Box::new(move |outcome| then(outcome.map(Answer::recycle)))),
        };
        if let Some(ended) = self.relay_for(listener, None) {
            self.finish(ended);
        }
    }

    /// Begins to pass the request on. Returns how that has ended, if it has.
    fn relay_for(self: &Arc<Self>, listener: Listener, arguments: Option<Arguments<'_>>) -> Option<Ended> {
        let mut progress = self.lock();
        if let Some(outcome) = progress.take_outcome() {
            drop(progress);
            if let Some(callback) = listener.into_callback() {
                self.run_soon(callback, outcome);
            }
            return None;
        }
        if arguments.is_none() {
            progress.arguments = self.on_behalf.clone().map(RetryBody::Raw);
        }
        progress.listener = listener;
        drop(progress);
        let ended = self.start(arguments, clock::now());
        if ended.is_none() {
            self.set_timer();
        }
        ended
    }

    /// From now on no thread waits that begins the call or goes on with it.
    pub(crate) fn never_wait(&self) {
        self.never_waits.store(true, Ordering::Relaxed);
    }

    /// Whether the thread that goes on with the call must not wait.
    pub(super) fn never_waits(&self) -> bool {
        self.never_waits.load(Ordering::Relaxed)
    }

    /// Lets threads wait from now on. Returns whether they might before.
    fn may_wait_from_now_on(&self) -> bool {
        !self.never_waits.swap(false, Ordering::Relaxed)
    }

    /// Ends the call before its answer and notifies the listener.
    pub(crate) fn cut_short(&self) {
        let _in_its_lane = self.enter_lane();
        self.end_by(CallEvent::GivenUp(given_up()));
    }

    /// The same, and tells the server, whatever the ORB's configuration says.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.cut_short();
    }

    fn new(object: &ObjectRef, operation: Cow<'static, str>, is_oneway: bool, now: Time) -> Arc<AsyncCall> {
        // The engine of a simulation asks for those of its calls.
        let contexts = match object.shared().is_simulated {
            true => None,
            false => kept_contexts(object, &operation, !is_oneway, call_timeout(object)),
        };
        Arc::new(AsyncCall { contexts, ..AsyncCall::before(object, operation, is_oneway, now) })
    }

    #[inline(always)] // the call is long, and is moved less often so
    fn before(object: &ObjectRef, operation: Cow<'static, str>, is_oneway: bool, now: Time) -> AsyncCall {
        let orb = object.shared();
        let deadline = deadline_of(object, now);
        let lane = object.core().connector.this_lane().clone();
        let progress = Progress {
            call: RemoteCall::new(object, deadline, object.rebind(), orb.has_client_interceptors),
            arguments: None,
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
            contexts: None,
            is_oneway,
            is_given_up: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            never_waits: AtomicBool::new(false),
            deadline,
            receiver: lane.receiver().clone(),
            thread: CallingThread::this(),
            progress: LaneLock::in_lane(lane.id, progress),
            lane,
        }
    }

    /// Puts a thread of another lane into the call's lane: whoever waits for the call waits for that lane.
    #[inline]
    fn enter_lane(&self) -> Option<InGroup> {
        let is_elsewhere = self.thread.group != ConnectionGroup::of_this_thread();
        is_elsewhere.then(|| enter_group(self.thread.group))
    }

    /// Begins the call in this thread, which may block. Returns how it has ended, if it has.
    fn start(self: &Arc<Self>, arguments: Option<Arguments<'_>>, now: Time) -> Option<Ended> {
        if let Some(simulated) = self.object.simulated() {
            return self.start_simulated(simulated, arguments).err().map(Err);
        }
        if let Err(e) = self.object.shared().in_its_own_process() {
            return Some(Err(e));
        }
        if let Err(e) = self.receiver.start() {
            return Some(Err(no_thread(&e)));
        }
        let step = self.lock().call.begin(&self.object, now);
        self.carry_out(step, arguments, now)
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

    /// True when the caller would not read a reply.
    pub(super) fn wants_no_reply(&self) -> bool {
        self.is_oneway || self.is_given_up.load(Ordering::Relaxed)
    }

    /// The request that is passed on. Its own client waits for the reply.
    pub(super) fn on_behalf(&self) -> Option<&ReceivedRequest> {
        self.on_behalf.as_deref()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// True when the caller of a oneway learns whether it has been sent.
    pub(super) fn is_told_when_sent(&self) -> bool {
        matches!(self.lock().listener, Listener::Sent(_))
    }

    /// True when the call has ended. It needs its connection no more.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.lock().end, End::NotYet)
    }

    /// True when the call has ended and the caller has not taken the outcome.
    pub(crate) fn is_ready(&self) -> bool {
        let _in_its_lane = self.enter_lane();
        let progress = self.lock();
        let is_ready = matches!(progress.end, End::Come(_));
        if !is_ready {
            self.ask(progress);
        }
        is_ready
    }

    /// Returns the outcome if there is one. Otherwise the call wakes the waker at its end.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Outcome> {
        let _in_its_lane = self.enter_lane();
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

    /// Wakes the waker when the outcome is there, at once if it is there already.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let _in_its_lane = self.enter_lane();
        let mut progress = self.lock();
        if matches!(progress.end, End::NotYet) {
            progress.listener = Listener::Task(waker.clone());
            self.ask(progress);
        } else {
            drop(progress);
            waker.wake_by_ref();
        }
    }

    /// Waits for the outcome, and receives it when no other thread does. On the receiver's own thread this is
    /// an error: the wait would keep all other calls waiting.
    pub(crate) fn wait(self: &Arc<Self>) -> Outcome {
        let _in_its_lane = self.enter_lane();
        let _probe = probe::enter(probe::Stage::Call);
        let mut progress = self.lock();
        loop {
            if let Some(outcome) = progress.take_outcome() {
                return outcome;
            }
            if let Some(simulated) = self.object.simulated() {
                drop(progress);
                simulated.run_until(&|| !matches!(self.lock().end, End::NotYet));
                return self.lock().take_outcome().unwrap_or_else(|| Err(would_deadlock()));
            }
            let receiver = &self.receiver;
            if receiver.is_current_thread() {
                return Err(would_deadlock());
            }
            let in_flight = match &progress.stage {
                Stage::InFlight(in_flight) => Some(in_flight.clone()),
                Stage::Begun | Stage::Waited | Stage::Leaving => None,
            };
            progress.listener = Listener::Thread(std::thread::current());
            // This thread keeps the deadline from now on.
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

    /// Sleeps until there is news of the call.
    fn sleep(self: &Arc<Self>) {
        let _probe = probe::enter(probe::Stage::Wait);
        match self.deadline.remaining(clock::now()) {
            Ok(None) => std::thread::park(),
            Ok(Some(left)) => std::thread::park_timeout(left),
            Err(Passed) => self.time_out(),
        }
    }

    /// True if the call is in flight on this connection. Its caller then receives the answer from now on.
    pub(super) fn claim_for_caller(&self, link: &Link, id: CallId) -> bool {
        let mut progress = self.lock();
        let is_there = match &progress.stage {
            Stage::InFlight(in_flight) => in_flight.id == id && std::ptr::eq(&*in_flight.link, link),
            Stage::Begun | Stage::Waited | Stage::Leaving => false,
        };
        if is_there {
            progress.stage = Stage::Waited;
            progress.listener = Listener::Nobody;
        }
        is_there
    }

    /// Lets the receiver's thread call `callback` with the outcome.
    pub(crate) fn on_outcome(&self, callback: Callback) {
        let _in_its_lane = self.enter_lane();
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

    /// Asks the receiver to take the answer, because no thread waits for it.
    fn ask(&self, progress: LockGuard<'_, Progress>) {
        let link = match &progress.stage {
            Stage::InFlight(InFlight { link, .. }) => link.clone(),
            Stage::Begun | Stage::Waited | Stage::Leaving => return, // the thread that sends it sees the listener
        };
        drop(progress);
        link.ask();
    }

    /// Gives up the reply. A request that still waits for its connection is sent nevertheless, but asks for
    /// no reply.
    pub(crate) fn give_up_reply(&self) {
        let progress = self.lock();
        let is_to_be_sent = matches!((&progress.end, &progress.stage), (End::NotYet, Stage::Begun));
        self.is_given_up.store(is_to_be_sent, Ordering::Relaxed);
        drop(progress);
        if !is_to_be_sent {
            self.give_up();
        }
    }

    /// Gives up the outcome.
    pub(crate) fn give_up(&self) {
        let mut progress = self.lock();
        let end = std::mem::replace(&mut progress.end, End::Gone);
        // Dropping a callback runs the program's code, so it happens outside the lock.
        let _listener = std::mem::replace(&mut progress.listener, Listener::Nobody);
        let attempt = progress.attempt.take();
        self.forget(progress);
        self.end_attempt(attempt, given_up());
        if let End::Come(Ok(answer)) = end {
            answer.recycle();
        }
    }

    /// Ends the call because its deadline has passed.
    pub(super) fn time_out(&self) {
        let progress = self.lock();
        let written = matches!(progress.stage, Stage::InFlight(..) | Stage::Waited | Stage::Leaving);
        drop(progress);
        self.end_by(CallEvent::TimedOut { written });
    }

    /// Records how the call has ended, if that was not done before.
    fn finish(&self, ended: Ended) {
        let mut progress = self.lock();
        match ended {
            Ok(Some(answer)) => self.complete(progress, Ok(answer)),
            Err(e) => self.complete(progress, Err(e)),
            Ok(None) => {
                if matches!(progress.end, End::NotYet) {
                    counting::count_call(&self.object, &progress.call, None);
                    progress.end = End::Gone;
                    let listener = std::mem::replace(&mut progress.listener, Listener::Nobody);
                    self.forget(progress);
                    if let Listener::Sent(then) = listener {
                        then(Ok(()));
                    }
                }
            }
        }
    }

    /// Records the outcome and notifies the listener. Only the first outcome counts.
    fn complete(&self, mut progress: LockGuard<'_, Progress>, outcome: Outcome) {
        if !matches!(progress.end, End::NotYet) {
            if let Ok(answer) = outcome {
                drop(progress);
                answer.recycle();
            }
            return;
        }
        counting::count_call(&self.object, &progress.call, outcome.as_ref().err());
        let callback = match std::mem::replace(&mut progress.listener, Listener::Nobody) {
            listener @ (Listener::Callback(_) | Listener::Sent(_)) => listener.into_callback(),
            listener => {
                progress.end = End::Come(outcome);
                self.forget(progress);
                return listener.wake();
            }
        };
        progress.end = End::Gone;
        self.forget(progress);
        let Some(callback) = callback else { return };
        // The receiver's queue may already hold callbacks of answers that came later.
        match self.object.simulated().is_some() || self.receiver.is_current_thread() {
            true => callback(outcome),
            false => self.run_soon(callback, outcome),
        }
    }

    /// Removes the call from the receiver's timers and from its connection.
    fn forget(&self, mut progress: LockGuard<'_, Progress>) {
        let stage = std::mem::replace(&mut progress.stage, Stage::Begun);
        let timer = progress.timer.take();
        progress.arguments = None;
        drop(progress);
        if let Some(timer) = timer {
            self.receiver.forget_timer(timer);
        }
        if let Stage::InFlight(InFlight { link, id, version, .. }) = stage {
            link.abandon(id, version, self.is_cancelled.load(Ordering::Relaxed));
        }
    }

    fn set_timer(self: &Arc<Self>) {
        let Some(at) = self.deadline.at() else { return };
        if self.object.simulated().is_some() {
            return; // the engine sees to it
        }
        let mut progress = self.lock();
        if matches!(progress.end, End::NotYet) {
            progress.timer = Some(self.receiver.set_timer(at, self));
        }
    }

    fn run_soon(&self, callback: Callback, outcome: Outcome) {
        match self.object.simulated() {
            None => self.receiver.run_soon(Box::new(move || callback(outcome))),
            Some(_) => callback(outcome),
        }
    }

    fn lock(&self) -> LockGuard<'_, Progress> {
        self.progress.lock()
    }
}

impl Listener {
    /// Wakes a thread or a task.
    fn wake(self) {
        match self {
            Listener::Task(waker) => waker.wake(),
            Listener::Thread(thread) => thread.unpark(),
            Listener::Nobody | Listener::Callback(_) | Listener::Sent(_) => {}
        }
    }

    fn into_callback(self) -> Option<Callback> {
        match self {
            Listener::Callback(callback) => Some(callback),
            Listener::Sent(then) => Some(Box::new(move |outcome| then(outcome.map(Answer::recycle)))),
            Listener::Nobody | Listener::Thread(_) | Listener::Task(_) => None,
        }
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

/// The error of a call whose reply was given up.
#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::REPLY_GIVEN_UP, CompletionStatus::Maybe)
}
