//! Replies that are still to come: asynchronous and deferred synchronous invocation, and callbacks (CORBA 3.3 part
//! 1, clause 17, in Rust's terms).
//!
//! A [`Pending`] needs no async runtime: whoever polls it may be an executor of any kind, a thread that waits, or
//! nobody, with a callback in the place of both.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use crate::client::asynchronous::{AsyncCall, Outcome};
use crate::generated::{Operation, OperationError, RefTo};
use crate::invoke::{about, about_named, call_local, direct, read_answer};
use crate::loopback::with_begun;
use crate::object::ObjectRef;
use crate::orb::OrbCore;

/// The reply of a call that has begun: a future, something to wait for, or something to be called back with.
///
/// The request has been sent, or waits for its connection, when the method that gave this has returned; what was
/// borrowed for its arguments is free again. Where four or more calls are in flight over one connection, up to a
/// quarter of them may still wait to leave together: until anybody asks for one of the replies in any way, or for
/// about a millisecond. Nothing needs to be polled for the call to go on: forwards are followed, closed connections made
/// anew and deadlines kept as for synchronous calls.
///
/// Dropping it gives the reply up: the request is sent nevertheless.
///
/// Each takes the memory of its arguments until the reply has come, for they may have to be sent again, and one
/// of the [calls in flight](ironorb_giop::connection::ConnectionConfig::calls_in_flight_max) of a connection; more
/// end at once with NO_RESOURCES.
#[must_use = "dropping it gives the reply up; for a call without a reply, declare the operation oneway"]
pub struct Pending<T, E>(State<T, E>);

enum State<T, E> {
    /// Over before it was given out: an object in this process, or a failure.
    Ended(Result<T, E>, Arc<OrbCore>),
    Begun(Arc<AsyncCall>, Results<T>),
    /// Told.
    Over,
}

/// Reads the results of an operation.
pub(crate) type Results<T> = fn(&mut Reader<'_>) -> Result<T, Malformed>;

/// Begins a twoway operation.
///
/// An object in this process is called by this thread, before this returns; only the answer of one that answers later
/// comes later. Otherwise `arguments` is called once
/// and the request sent by this thread if there is a connection; if one must be made first, another thread does
/// so. Blocks only while the server takes no bytes and more than
/// [`transmit_bytes_max`](crate::OrbConfig::transmit_bytes_max) wait for it, until the deadline at most.
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
    match object.local(operation) {
        Ok(None) => begin(object, operation, &arguments, results),
        Ok(Some(upcall)) => match direct(&upcall) {
            Some(servant) => Pending::ended(object, call_local(target, operation, upcall, &*servant, local)),
            None => with_begun(upcall, || begin(object, operation, &arguments, results)),
        },
        Err(e) => Pending::ended(object, Err(about(object, operation, e).into())),
    }
}

/// The same for an object of whatever interface, in another process or forwarded to this one.
pub(crate) fn begin<T, E: OperationError>(
    object: &ObjectRef,
    operation: &'static Operation<'static>,
    arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: Results<T>,
) -> Pending<T, E> {
    Pending(State::Begun(AsyncCall::begin(object, operation, arguments), results))
}

impl<T, E> Pending<T, E> {
    /// One that is over.
    pub(crate) fn ended(object: &ObjectRef, result: Result<T, E>) -> Self {
        Pending(State::Ended(result, object.core().clone()))
    }

    /// True when [`wait`](Self::wait) would not wait. Never blocks. Sends requests that were held back.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            State::Ended(..) => true,
            State::Begun(call, _) => call.is_ready(),
            State::Over => false,
        }
    }
}

impl<T, E: OperationError> Pending<T, E> {
    /// Waits for the reply. Blocks until the call's deadline at most, which counts from its beginning. This thread
    /// receives it, and replies to others that come before, unless another receives on the connection already.
    ///
    /// In a callback of [`on_reply`](Self::on_reply) a reply that has not come is answered by BAD_INV_ORDER: the
    /// thread has others to receive for.
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
    /// Has `callback` called with the result, on the ORB's receiver thread, which receives all asynchronous replies
    /// of the ORB: it must not block. It may begin calls, also synchronous ones if it can afford to wait for them.
    /// A panic in it is contained.
    ///
    /// The callback is never called by this method itself, also when the reply is there already.
    pub fn on_reply(mut self, callback: impl FnOnce(Result<T, E>) + Send + 'static) {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Begun(call, results) => {
                let known = call.clone();
                call.on_outcome(Box::new(move |outcome| callback(read(&known, results, outcome))));
            }
            State::Ended(result, orb) => {
                orb.connector.receiver().run_soon(Box::new(move || callback(result)));
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

/// Nothing is pinned in it: what it holds may move.
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
    let mut r = answer.message().reader_at(answer.body_at).with_environment(call.object().environment());
    let result = read_answer(&mut r, answer.user_exception, results);
    r.finish();
    answer.recycle();
    result
}

/// The reply has been told, or is not wanted any more.
#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::BadInvOrder, MinorCode::NONE, CompletionStatus::Maybe)
}
