//! Responses that the program takes after it has sent the requests: deferred synchronous invocation, of one
//! request or of several (CORBA 3.3 part 1, 11.2.4 and 11.3).

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::description::OperationDescription;
use super::error::{DynamicError, RequestError};
use super::request::Request;
use super::results::{RawReply, Results};
use crate::base::locks::PiLock;
use crate::base::monitor::Monitor;
use crate::driver::client::asynchronous::{AsyncCall, Outcome};
use crate::driver::invoke::about_named;

/// The response of a request that has been sent. The program can poll it, wait for it, or await it as a
/// future.
///
/// The response no longer needs the request, which may be sent again meanwhile. Dropping it gives the
/// response up.
#[must_use = "dropping it gives the response up"]
pub struct DeferredResponse {
    call: Arc<AsyncCall>,
    operation: Arc<OperationDescription>,
    taken: bool,
}

impl DeferredResponse {
    pub(super) fn new(call: Arc<AsyncCall>, operation: Arc<OperationDescription>) -> Self {
        DeferredResponse { call, operation, taken: false }
    }

    /// True when the response has come (`poll_response`). Never blocks.
    pub fn poll_response(&self) -> bool {
        self.call.is_ready()
    }

    /// Waits for the response (`get_response`). Blocks until the call's deadline at most, which counts from
    /// the beginning of the call.
    pub fn get_response(mut self) -> Result<Results, DynamicError> {
        if self.taken {
            return Err(RequestError::Taken.into());
        }
        let outcome = self.call.wait();
        self.take(outcome)
    }

    /// Returns the response if it has come, otherwise [`RequestError::NotYet`]. Never blocks.
    pub fn take_response(&mut self) -> Result<Results, DynamicError> {
        if self.taken {
            return Err(RequestError::Taken.into());
        }
        if !self.call.is_ready() {
            return Err(RequestError::NotYet.into());
        }
        let outcome = self.call.wait();
        self.take(outcome)
    }

    fn take(&mut self, outcome: Outcome) -> Result<Results, DynamicError> {
        self.taken = true;
        match outcome {
            Ok(answer) => Results::of(
                &self.operation,
                RawReply::new(answer.into_remote_call(self.call.object()), self.call.object()),
            ),
            Err(e) => {
                self.call.give_up();
                Err(about_named(self.call.object(), self.call.operation(), e).into())
            }
        }
    }
}

impl Future for DeferredResponse {
    type Output = Result<Results, DynamicError>;

    /// A poll after the response was taken gives [`RequestError::Taken`].
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.taken {
            return Poll::Ready(Err(RequestError::Taken.into()));
        }
        match self.call.poll(context.waker()) {
            Some(outcome) => Poll::Ready(self.take(outcome)),
            None => Poll::Pending,
        }
    }
}

impl Drop for DeferredResponse {
    fn drop(&mut self) {
        if !self.taken {
            self.call.give_up();
        }
    }
}

impl fmt::Debug for DeferredResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredResponse").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Sends several requests without their responses (`send_multiple_requests_oneway`). It tries all of them,
/// and returns the first failure with the index of its request.
pub fn send_multiple_oneway<'r, 'a: 'r>(
    requests: impl IntoIterator<Item = &'r mut Request<'a>>,
) -> Result<(), (usize, DynamicError)> {
    let mut first = Ok(());
    for (index, request) in requests.into_iter().enumerate() {
        if let Err(e) = request.send_oneway()
            && first.is_ok()
        {
            first = Err((index, e));
        }
    }
    first
}

/// Sends several requests, whose responses are taken as they come (`send_multiple_requests_deferred`). The
/// response of a request that could not be sent is its failure.
pub fn send_multiple_deferred<'r, 'a: 'r>(
    requests: impl IntoIterator<Item = &'r mut Request<'a>>,
) -> DeferredResponses {
    let mut responses =
        DeferredResponses { waiting: Vec::new(), begun: false, ready: Arc::default(), left: 0 };
    for request in requests {
        responses.waiting.push(Some(request.send_deferred()));
        responses.left += 1;
    }
    responses
}

/// The responses of several requests that have been sent together.
#[must_use = "dropping it gives the responses up"]
pub struct DeferredResponses {
    /// Responses by the index of the request; `None` once taken.
    waiting: Vec<Option<Result<DeferredResponse, DynamicError>>>,
    /// True once each response notifies `ready` when it comes.
    begun: bool,
    ready: Arc<Ready>,
    left: usize,
}

/// The indices of responses that may have come. Each comes at least once after its response.
#[derive(Default)]
struct Ready {
    indices: PiLock<VecDeque<usize>>,
    more: Monitor,
}

struct OneReady {
    ready: Arc<Ready>,
    index: usize,
}

impl Wake for OneReady {
    fn wake(self: Arc<Self>) {
        self.ready.indices.lock().push_back(self.index);
        self.ready.more.changed();
    }
}

impl DeferredResponses {
    /// How many responses have not been taken.
    pub fn len(&self) -> usize {
        self.left
    }

    /// True when all responses have been taken.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// True when [`get_next_response`](Self::get_next_response) would not block (`poll_next_response`). Never
    /// blocks.
    pub fn poll_next_response(&mut self) -> bool {
        self.begin();
        let mut indices = self.ready.indices.lock();
        while let Some(&index) = indices.front() {
            match &self.waiting[index] {
                Some(_) => return true,
                None => indices.pop_front(),
            };
        }
        self.left == 0
    }

    /// Waits for the next response to come, and returns it with the index of its request
    /// (`get_next_response`); `None` when all have been taken. Blocks until the deadline of the calls at
    /// most.
    pub fn get_next_response(&mut self) -> Option<(usize, Result<Results, DynamicError>)> {
        self.begin();
        while self.left > 0 {
            let index = self.next_index();
            let Some(response) = self.waiting[index].take() else { continue };
            let mut response = match response {
                Ok(response) => response,
                Err(e) => return Some(self.taken(index, Err(e))),
            };
            match response.call.poll(&self.waker(index)) {
                Some(outcome) => {
                    let result = response.take(outcome);
                    return Some(self.taken(index, result));
                }
                None => self.waiting[index] = Some(Ok(response)),
            }
        }
        None
    }

    fn taken(
        &mut self,
        index: usize,
        result: Result<Results, DynamicError>,
    ) -> (usize, Result<Results, DynamicError>) {
        self.left -= 1;
        (index, result)
    }

    /// Makes every response notify `ready`. Those that have come do so at once.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for (index, response) in self.waiting.iter().enumerate() {
            let waker = self.waker(index);
            match response {
                Some(Ok(response)) => response.call.set_waker(&waker),
                Some(Err(_)) => waker.wake(),
                None => {}
            }
        }
    }

    fn waker(&self, index: usize) -> Waker {
        Arc::new(OneReady { ready: self.ready.clone(), index }).into()
    }

    fn next_index(&self) -> usize {
        let next = || self.ready.indices.lock().pop_front();
        loop {
            if let Some(index) = next() {
                return index;
            }
            self.ready.more.wait(&|| !self.ready.indices.lock().is_empty(), None);
        }
    }
}

impl fmt::Debug for DeferredResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredResponses").field("left", &self.left).finish_non_exhaustive()
    }
}
