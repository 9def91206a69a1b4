//! Replies that are still to come: asynchronous and deferred synchronous invocation, and callbacks (CORBA 3.3
//! part 1, clause 17, in Rust's terms).
//!
//! A [`Pending`] needs no async runtime. An executor of any kind can poll it, a thread can wait for it, and a
//! callback can take the place of both.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use crate::driver::client::asynchronous::{AsyncCall, Outcome};
use crate::driver::invoke::{about, about_named, call_local, direct, read_answer};
use crate::driver::loopback::with_begun;
use crate::driver::orb_core::OrbCore;
use crate::driver::written::writes_down;
use crate::object::ObjectRef;
use crate::object::operation::{Operation, OperationError, RefTo};

/// The reply of a call that has begun: a future, a result to wait for, or a result for a callback.
///
/// When the method that returned it has returned, the request has been sent or waits for its connection, and
/// the arguments are no longer borrowed. With eight or more calls in flight over one connection, up to half
/// of them may still wait to leave together: until the program asks for one of the replies in any way, or
/// for about 1 ms. Not so a call that has less than 100 ms left, or one of a thread with a real-time
/// priority. The call goes on without a poll: the ORB follows forwards, makes closed connections anew and
/// keeps deadlines as for synchronous calls.
///
/// Dropping it gives the reply up; the request is sent nevertheless.
///
/// Each `Pending` takes the memory of its arguments until the reply has come, because they may have to be
/// sent again. It also takes one of the [calls in
/// flight](ironorb_giop::connection::ConnectionConfig::calls_in_flight_max) of a connection. A call beyond
/// that limit ends at once with NO_RESOURCES.
#[must_use = "dropping it gives the reply up; for a call without a reply, declare the operation oneway"]
pub struct Pending<T, E>(State<T, E>);

enum State<T, E> {
    /// The call ended before this was returned: the object is in this process, or the call failed.
    Ended(Result<T, E>, Arc<OrbCore>),
    Begun(Arc<AsyncCall>, Results<T>),
    /// The result has been taken.
    Over,
}

/// Reads the results of an operation.
pub(crate) type Results<T> = fn(&mut Reader<'_>) -> Result<T, Malformed>;

/// Begins a twoway operation.
///
/// An object of this process is called by this thread, before this returns. Only a servant that replies later
/// completes the call later. Otherwise `arguments` is called once, and this thread sends the request if there
/// is a connection. If a connection must be made first, another thread makes it and sends the request. Blocks
/// only while the server takes no bytes and more than
/// [`transmit_bytes_max`](crate::OrbConfig::transmit_bytes_max) bytes are pending, until the deadline at
/// most.
pub(crate) fn invoke_async<I, R, T, E>(
    target: &R,
    operation: &'static Operation<'static>,
    local: impl FnOnce(&I) -> Result<T, E>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Pending<T, E>
where
    I: ?Sized + 'static,
    R: RefTo<I>,
    E: OperationError,
{
    let object = target.object();
    if writes_down() {
        return begin(object, operation, &arguments, results);
    }
    match object.local(operation) {
        Ok(None) => begin(object, operation, &arguments, results),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => Pending::ended(object, call_local(target, operation, upcall, &*servant, local)),
            None => with_begun(upcall, || begin(object, operation, &arguments, results)),
        },
        Err(e) => Pending::ended(object, Err(about(object, operation, e).into())),
    }
}

/// Begins a twoway operation of an object in another process, or of one that a forward has led into this
/// process.
pub(crate) fn begin<T, E: OperationError>(
    object: &ObjectRef,
    operation: &'static Operation<'static>,
    arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: Results<T>,
) -> Pending<T, E> {
    Pending(State::Begun(AsyncCall::begin(object, operation, arguments), results))
}

impl<T, E> Pending<T, E> {
    /// Makes a `Pending` that has ended already.
    pub(crate) fn ended(object: &ObjectRef, result: Result<T, E>) -> Self {
        Pending(State::Ended(result, object.shared_core()))
    }

    /// True when [`wait`](Self::wait) would not block. Never blocks. Sends requests that were held back.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            State::Ended(..) => true,
            State::Begun(call, _) => call.is_ready(),
            State::Over => false,
        }
    }

    /// Returns a handle that can end the call before its reply, also once a callback or another thread has this.
    pub fn handle(&self) -> PendingHandle {
        PendingHandle(match &self.0 {
            State::Begun(call, _) => Arc::downgrade(call),
            State::Ended(..) | State::Over => Weak::new(),
        })
    }
}

/// Ends a call before its reply. Holds nothing of the call.
#[derive(Debug, Clone)]
pub struct PendingHandle(Weak<AsyncCall>);

impl PendingHandle {
    /// Ends the call if it is not over, and tells the server (CancelRequest; CORBA 3.3 part 2, 9.4.5). A request that has not been
    /// sent is not sent. Whoever waits for the reply gets UNKNOWN, COMPLETED_MAYBE, with the minor code
    /// [`REPLY_GIVEN_UP`](crate::MinorCode::REPLY_GIVEN_UP). Never blocks.
    pub fn cancel(&self) {
        if let Some(call) = self.0.upgrade() {
            call.cancel();
        }
    }
}

impl<T, E: OperationError> Pending<T, E> {
    /// Waits for the reply. Blocks until the call's deadline at most, which counts from the beginning of the
    /// call. This thread receives the reply, and replies to other calls that come before, unless another
    /// thread already receives on the connection.
    ///
    /// In a callback of [`on_reply`](Self::on_reply) the wait for a reply that has not come fails with
    /// BAD_INV_ORDER: the callback's thread must receive other replies.
    pub fn wait(mut self) -> Result<T, E> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Ended(result, _) => result,
            State::Begun(call, results) => {
                let outcome = call.wait();
                if outcome.is_err() {
                    call.give_up();
                }
                read(&call, results, outcome)
            }
            State::Over => Err(given_up().into()),
        }
    }
}

impl<T, E> Pending<T, E>
where
    T: Send + 'static,
    E: OperationError + Send + 'static,
{
    /// Calls `callback` with the result, on the ORB's receiver thread. That thread receives all asynchronous
    /// replies of the ORB, so the callback must not block. The callback may begin calls, also synchronous
    /// ones if the program can afford the wait. The ORB contains a panic in the callback.
    ///
    /// This method itself never calls the callback, not even when the reply is there already.
    pub fn on_reply(mut self, callback: impl FnOnce(Result<T, E>) + Send + 'static) {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Begun(call, results) => {
                let known = call.clone();
                call.on_outcome(Box::new(move |outcome| callback(read(&known, results, outcome))));
            }
            State::Ended(result, orb) => {
                orb.connector.this_lane().receiver().run_soon(Box::new(move || callback(result)));
            }
            State::Over => {}
        }
    }
}

impl<T, E: OperationError> Future for Pending<T, E> {
    type Output = Result<T, E>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Ended(result, _) => Poll::Ready(result),
            State::Begun(call, results) => match call.poll(context.waker()) {
                Some(outcome) => Poll::Ready(read(&call, results, outcome)),
                None => {
                    self.0 = State::Begun(call, results);
                    Poll::Pending
                }
            },
            State::Over => panic!("a Pending was polled after it was ready"),
        }
    }
}

/// Nothing is pinned: the contents may move.
impl<T, E> Unpin for Pending<T, E> {}

impl<T, E> Drop for Pending<T, E> {
    fn drop(&mut self) {
        if let State::Begun(call, _) = &self.0 {
            call.give_up_reply();
        }
    }
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Ended(..) => f.write_str("Pending(ended)"),
            State::Begun(call, _) => f.debug_tuple("Pending").field(call).finish(),
            State::Over => f.write_str("Pending(over)"),
        }
    }
}

fn read<T, E: OperationError>(call: &AsyncCall, results: Results<T>, outcome: Outcome) -> Result<T, E> {
    let answer = outcome.map_err(|e| about_named(call.object(), call.operation(), e))?;
    let server = call.object().environment_of_reply(answer.link());
    let mut r = call.object().reader_of_reply(answer.message(), answer.body_at, server.as_ref());
    let result = read_answer(&mut r, answer.user_exception, results);
    r.finish();
    answer.recycle();
    result
}

/// The error of a reply that has been taken already or was given up.
#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::Maybe)
}
