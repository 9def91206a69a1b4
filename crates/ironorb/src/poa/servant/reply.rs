//! Replies after the upcall: the servant takes the arguments and a [`Reply`], returns, and replies later from
//! any thread.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Misuse, Writer};

use super::{Later, Responder, servant_panicked};
use crate::base::sync::is_panicking;
use crate::object::operation::{OperationError, Raised};

/// The obligation to answer one request, once: [`send`](Reply::send) takes it.
///
/// Until then the request is in progress. Its object is not etherealised, and a manager, an adapter or an ORB
/// that is to wait for completion waits for it. No thread is occupied. Dropping the obligation without an
/// answer gives the caller UNKNOWN, COMPLETED_MAYBE. If the caller has gone meanwhile, the answer is dropped.
pub struct Reply<T, E> {
    later: Option<Later>,
    results: fn(&mut Writer<'_>, &T) -> Result<(), Misuse>,
    error: PhantomData<fn(E)>,
}

/// A servant that replies later: `poa.activate::<AccountRef, _>(Deferred(vault))`, where `vault` implements
/// the interface's second trait, `DeferredAccount`, whose operations take a [`Reply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Deferred<S>(pub S);

impl<T, E: OperationError> Reply<T, E> {
    pub(super) fn new(later: Later, results: fn(&mut Writer<'_>, &T) -> Result<(), Misuse>) -> Self {
        Reply { later: Some(later), results, error: PhantomData }
    }

    /// Answers the request. Blocks only while the caller's connection takes no bytes. Allocates memory for
    /// the answer.
    pub fn send(mut self, answer: Result<T, E>) {
        let Some(later) = self.later.take() else { return };
        let results = self.results;
        later.answer(|responder| {
            match answer {
                Ok(value) => responder.results(results, &value),
                Err(e) => responder.raise(e.raised()),
            };
        });
    }

    /// Answers by `answer`, which receives the responder.
    pub(crate) fn answer_with(mut self, answer: impl FnOnce(&Responder<'_>)) {
        if let Some(later) = self.later.take() {
            later.answer(answer);
        }
    }

    /// Whether an answer that is sent now waits until the client has read earlier ones. A thread that others need then leaves the answer
    /// to one that may wait. Does not block.
    pub fn is_clogged(&self) -> bool {
        self.later.as_ref().is_some_and(Later::is_clogged)
    }

    /// Has the answer wait for no client: [`send`](Self::send) does not block then, not even where the caller's connection takes no
    /// bytes: what the connection does not take is kept until it does. Ask [`is_clogged`](Self::is_clogged) first, so that no client has more
    /// than one answer kept.
    pub fn never_wait(&self) {
        if let Some(later) = &self.later {
            later.never_wait();
        }
    }

    /// False when the caller does not wait for the answer, so that the servant need not work it out.
    pub fn is_wanted(&self) -> bool {
        self.later.as_ref().is_some_and(Later::is_wanted)
    }

    /// How long the caller still waits, if it has told: see [`remaining_time`](crate::remaining_time). Zero if it has given
    /// up. A thread that works for the answer and makes calls for it may give them this time:
    /// `with_timeout(reply.remaining_time(), || ...)`. Neither blocks nor allocates.
    pub fn remaining_time(&self) -> Option<Duration> {
        self.later.as_ref().and_then(Later::remaining_time)
    }

    /// True once the caller has cancelled the request (CORBA 3.3 part 2, 9.4.6), or its connection has ended.
    /// Then the servant need not work the answer out, and it is dropped. The ORB learns of it when it next
    /// reads from the connection. Always false for a oneway, for which no caller waits from the start, and
    /// for callers in this process.
    ///
    /// The first call allocates a little memory, which is held until the answer.
    pub fn is_cancelled(&self) -> bool {
        self.later.as_ref().is_some_and(Later::is_cancelled)
    }

    /// Calls `then` once, when [`is_cancelled`](Self::is_cancelled) becomes true, unless the answer has been
    /// given by then. If it is true already, this thread calls `then` at once. Otherwise the ORB's callback
    /// thread does, which `then` must not block. It replaces an earlier callback. The request must still be
    /// answered, which releases its connection and adapter.
    pub fn on_cancel(&self, then: impl FnOnce() + Send + 'static) {
        if let Some(later) = &self.later {
            later.on_cancel(Box::new(then));
        }
    }
}

impl<T, E> Drop for Reply<T, E> {
    fn drop(&mut self) {
        if let Some(later) = self.later.take() {
            let e = if is_panicking() { servant_panicked() } else { given_up() };
            later.answer(|responder| {
                responder.raise(Raised::System(&e));
            });
        }
    }
}

impl<T, E> fmt::Debug for Reply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

#[cold]
fn given_up() -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::REPLY_GIVEN_UP, CompletionStatus::Maybe)
}
