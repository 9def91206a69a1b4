//! A call of all parts of an object, which generated code makes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::{
    Distribution, Join, NotJoined, ParallelRef, PartEnd, PartsBegun, PartsCalled, Share, ShareOfCall, Target,
};
use crate::driver::pending::Pending;
use crate::driver::written::with_context;
use crate::object::operation::{OperationError, Raised};
use crate::object::wire_numbers::SHARE_CONTEXT;
use crate::object::{ObjectRef, TypedRef};

/// Calls all parts, or the one object. `lengths` are those of the parallel arguments; `begin` begins the call of a part with its share.
///
/// For generated code.
#[doc(hidden)]
pub fn call_in_parallel<T, R, E, J>(
    target: &ParallelRef<T>,
    distribution: Distribution,
    lengths: &[usize],
    begin: &dyn Fn(&T, Share) -> Pending<R, E>,
) -> Result<R, E>
where
    T: TypedRef,
    E: OperationError,
    J: Join<R>,
{
    let length = one_length(lengths)?;
    let parts = match &target.target {
        Target::Object(object) => return begin(&object.narrow_unchecked(), Share::whole()).wait(),
        Target::Parts(parts) => parts,
    };
    let mut begun = Vec::new();
    let called = parts.call(length, &mut |object: &ObjectRef, part, of| {
        begun.push(begin_part(object, Share::new(distribution, part, of), length, begin));
    })?;
    Begun { calls: begun, distribution, join: J::join, name: parts.name() }.end(called)
}

/// Begins the calls of all parts, or of the one object, and does not wait for their ends.
///
/// For generated code.
#[doc(hidden)]
pub fn begin_in_parallel<T, R, E, J>(
    target: &ParallelRef<T>,
    distribution: Distribution,
    lengths: &[usize],
    begin: &dyn Fn(&T, Share) -> Pending<R, E>,
) -> ParallelPending<R, E>
where
    T: TypedRef,
    E: OperationError,
    J: Join<R>,
{
    let length = match one_length(lengths) {
        Ok(length) => length,
        Err(e) => return ParallelPending::failed(e),
    };
    let parts = match &target.target {
        Target::Object(object) => {
            return ParallelPending(State::One(begin(&object.narrow_unchecked(), Share::whole())));
        }
        Target::Parts(parts) => parts,
    };
    let mut calls = Vec::new();
    let ends = parts.begin(length, &mut |object: &ObjectRef, part, of| {
        calls.push(begin_part(object, Share::new(distribution, part, of), length, begin));
    });
    match ends {
        Ok(ends) => ParallelPending(State::Parts(
            ends,
            Begun { calls, distribution, join: J::join, name: parts.name() },
        )),
        Err(e) => ParallelPending::failed(e),
    }
}

/// Begins the call of a part, which is told its share.
fn begin_part<T: TypedRef, R, E>(
    object: &ObjectRef,
    share: Share,
    length: usize,
    begin: &dyn Fn(&T, Share) -> Pending<R, E>,
) -> Pending<R, E> {
    let told = ShareOfCall::new(share, length);
    with_context(SHARE_CONTEXT, told.encode(), || begin(&object.narrow_unchecked(), share))
}

/// The result of a call of all parts that is still to come: a future, or a result to wait for. The arguments are no longer borrowed.
///
/// Dropping it gives the call up: what is under way is cancelled, and parts may have been executed.
#[must_use = "dropping it gives the call up"]
pub struct ParallelPending<R, E>(State<R, E>);

enum State<R, E> {
    /// A plain call.
    One(Pending<R, E>),
    /// What becomes of the calls of the parts.
    Parts(PartsBegun, Begun<R, E>),
    /// Nothing was called.
    Failed(E),
    /// The result has been taken.
    Over,
}

impl<R, E: OperationError> ParallelPending<R, E> {
    #[cold]
    fn failed(e: SystemException) -> ParallelPending<R, E> {
        ParallelPending(State::Failed(e.into()))
    }

    /// Waits for the result.
    pub fn wait(mut self) -> Result<R, E> {
        /// Wakes the thread that waits.
        struct Thread(std::thread::Thread);
        impl Wake for Thread {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        if let State::One(_) = self.0
            && let State::One(pending) = std::mem::replace(&mut self.0, State::Over)
        {
            return pending.wait();
        }
        let waker = Waker::from(Arc::new(Thread(std::thread::current())));
        loop {
            match Pin::new(&mut self).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<R, E: OperationError> Future for ParallelPending<R, E> {
    type Output = Result<R, E>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::One(mut pending) => match Pin::new(&mut pending).poll(context) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => {
                    self.0 = State::One(pending);
                    Poll::Pending
                }
            },
            State::Parts(mut ends, begun) => match ends.as_mut().poll(context) {
                Poll::Ready(called) => Poll::Ready(begun.end(called)),
                Poll::Pending => {
                    self.0 = State::Parts(ends, begun);
                    Poll::Pending
                }
            },
            State::Failed(e) => Poll::Ready(Err(e)),
            State::Over => panic!("a ParallelPending was polled after it was ready"),
        }
    }
}

/// Nothing is pinned: the contents may move.
impl<R, E> Unpin for ParallelPending<R, E> {}

impl<R, E> fmt::Debug for ParallelPending<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::One(pending) => f.debug_tuple("ParallelPending").field(pending).finish(),
            State::Parts(_, begun) => f.debug_tuple("ParallelPending").field(&begun.name).finish(),
            State::Failed(_) => f.write_str("ParallelPending(failed)"),
            State::Over => f.write_str("ParallelPending(over)"),
        }
    }
}

/// The calls of parts that have begun, and how their results become one.
struct Begun<R, E> {
    calls: Vec<Pending<R, E>>,
    distribution: Distribution,
    join: fn(Vec<R>, Distribution) -> Result<R, NotJoined>,
    name: String,
}

impl<R, E: OperationError> Begun<R, E> {
    /// What the calls, which have ended so, come to.
    fn end(self, called: PartsCalled) -> Result<R, E> {
        let Begun { calls, distribution, join, name } = self;
        if calls.len() != called.ends.len() || calls.is_empty() {
            return Err(not_called(&name).into());
        }
        let mut results = Vec::with_capacity(calls.len());
        let mut fate = Fate::default();
        let mut failed: Option<(usize, E)> = None;
        for (part, (pending, end)) in calls.into_iter().zip(called.ends).enumerate() {
            let e = match end {
                PartEnd::Answered => match pending.wait() {
                    Ok(result) => {
                        fate.executed += 1;
                        results.push(result);
                        continue;
                    }
                    Err(e) => e,
                },
                PartEnd::Unknown(e) => e.into(),
                PartEnd::Cancelled { may_be_executed } => {
                    fate.executed += usize::from(may_be_executed);
                    fate.cancelled.get_or_insert(part);
                    continue;
                }
            };
            let is_executed = match e.raised() {
                Raised::User(..) => true,
                Raised::System(e) => e.completed != CompletionStatus::No,
            };
            fate.executed += usize::from(is_executed);
            if failed.is_none() {
                fate.is_failed_executed = is_executed;
                failed = Some((part, e));
            }
        }
        match (failed, fate.cancelled) {
            (Some((part, e)), _) => Err(told(e, part, called.parts, &fate, &name)),
            (None, Some(part)) => {
                Err(told(time_is_over(fate.executed > 0).into(), part, called.parts, &fate, &name))
            }
            (None, None) if results.len() == 1 => results.pop().ok_or_else(|| not_called(&name).into()),
            (None, None) => join(results, distribution).map_err(|why| not_joined(why, &name).into()),
        }
    }
}

/// What is known of all parts.
#[derive(Default)]
struct Fate {
    /// How many have been executed, or may have been.
    executed: usize,
    /// Whether the one whose exception the caller gets is among them.
    is_failed_executed: bool,
    /// The first that was given up.
    cancelled: Option<usize>,
}

/// Says in a system exception which part it is of, and that others may have been executed. Exceptions of the application stay.
fn told<E: OperationError>(e: E, part: usize, parts: usize, fate: &Fate, name: &str) -> E {
    let Raised::System(told) = e.raised() else { return e };
    if parts == 1 {
        return e;
    }
    let why = told.detail().unwrap_or("it has failed");
    let detail = format!("part {} of {parts} of {name}: {why}", part + 1);
    let mut told = told.clone().with_detail(detail);
    let others = fate.executed - usize::from(fate.is_failed_executed);
    if others > 0 {
        // With COMPLETED_NO the caller would call all parts again.
        told = told.with_completed(CompletionStatus::Maybe);
    }
    told.into()
}

fn one_length(lengths: &[usize]) -> Result<usize, SystemException> {
    let (first, rest) = lengths.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
    if rest.iter().any(|length| *length != first) {
        return Err(SystemException::new(
            SystemExceptionKind::BadParam,
            MinorCode::NONE,
            CompletionStatus::No,
        )
        .with_detail(format!("the parallel arguments have several lengths: {lengths:?}")));
    }
    Ok(first)
}

#[cold]
fn not_joined(why: NotJoined, name: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::DataConversion, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(format!("{name}: {why}"))
}

#[cold]
fn time_is_over(may_be_executed: bool) -> SystemException {
    let completed = if may_be_executed { CompletionStatus::Maybe } else { CompletionStatus::No };
    SystemException::new(SystemExceptionKind::Timeout, MinorCode::CALL_TIMEOUT, completed)
        .with_detail("the time was over")
}

#[cold]
fn not_called(name: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail(format!("{name}: not all parts were called"))
}
