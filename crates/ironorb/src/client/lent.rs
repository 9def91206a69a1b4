//! Bodies of requests that are sent from where they lie.

use std::time::Instant;

use ironorb_giop::connection::{CallId, RequestOptions};
use ironorb_giop::message::{Message, RequestTarget, Response};
use ironorb_giop::service_context::EncodedContexts;
use ironorb_giop::{Encoding, Misuse, Writer};

use super::Link;
use crate::deadline::Deadline;
use crate::invocation::CallFailure;
use crate::invoke::Arguments;

/// A body whose bytes are kept by the caller.
pub(crate) trait LentBody {
    /// Writes it, as any other.
    fn write(&self, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Prepares it for a message of this encoding in which it begins at a multiple of 8, and says how long it is; `None`
    /// where it must be written.
    fn prepare(&self, encoding: Encoding) -> Result<Option<usize>, Misuse>;

    /// Lends what has been prepared last.
    fn lend(&self, to: &mut dyn FnMut(&[&[u8]]));
}

/// The body of a request, and how it goes over a connection. For each sort of body there is a course of its own, so that
/// those that are written do not know of those that are lent.
pub(crate) trait Body: Copy {
    /// Sends a request over a connection and waits for its answer.
    fn call(
        self,
        link: &Link,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Message, CallFailure>;

    /// Sends a request that wants no reply.
    fn oneway(
        self,
        link: &Link,
        target: &RequestTarget,
        contexts: EncodedContexts<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<(), CallFailure>;

    /// The body as what writes it.
    fn written<T>(self, then: impl FnOnce(Arguments<'_>) -> T) -> T;
}

impl Body for Arguments<'_> {
    #[inline(always)] // a step of every call
    fn call(
        self,
        link: &Link,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        link.call(target, options, operation, self, now, deadline)
    }

    #[inline(always)] // a step of every call
    fn oneway(
        self,
        link: &Link,
        target: &RequestTarget,
        contexts: EncodedContexts<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        link.oneway(target, contexts, operation, self, now, deadline)
    }

    #[inline(always)]
    fn written<T>(self, then: impl FnOnce(Arguments<'_>) -> T) -> T {
        then(self)
    }
}

impl Body for &dyn LentBody {
    fn call(
        self,
        link: &Link,
        target: &RequestTarget,
        options: RequestOptions<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Message, CallFailure> {
        link.call_lending(target, options, operation, self, now, deadline)
    }

    fn oneway(
        self,
        link: &Link,
        target: &RequestTarget,
        contexts: EncodedContexts<'_>,
        operation: &str,
        now: Instant,
        deadline: Deadline,
    ) -> Result<(), CallFailure> {
        let options = RequestOptions { response: Response::None, contexts };
        link.oneway_lending(target, options, operation, self, now, deadline)
    }

    fn written<T>(self, then: impl FnOnce(Arguments<'_>) -> T) -> T {
        then(&|w| self.write(w))
    }
}

/// Fewer bytes are copied in less time than it takes to send them in pieces.
pub(super) const LENT_BYTES_MIN: usize = 8 << 10;

/// What the caller has to do with a request that has been begun.
pub(super) struct Begun {
    /// `None` of a oneway.
    pub(super) call: Option<CallId>,
    /// Where in the stream it begins.
    pub(super) begins_at: u64,
}
