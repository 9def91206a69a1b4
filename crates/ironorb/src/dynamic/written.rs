//! Calls that are written down and not sent: whoever began them decides later where their requests go, how often, and what ends them.

use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::results::RawReply;
use crate::driver::written::{self, Written};
use crate::object::ObjectRef;
use crate::object::received_request::ReceivedRequest;

/// Has the asynchronous calls that `begin` begins written down, in their order: those by the `…_async` methods of references, and by
/// [`Request::send_deferred`](crate::dynamic::Request::send_deferred), also of objects in this process. No server is called,
/// and none is connected. Other calls of the thread are made as ever.
///
/// A request has its arguments in GIOP 1.2 and this machine's byte order, with characters in the code sets that the reference asks
/// for, or else in UTF-8 and UTF-16. Calls of `begin` that write down calls themselves keep them to themselves.
pub fn write_down<T>(begin: impl FnOnce() -> T) -> (T, Vec<WrittenCall>) {
    let (begun, written) = written::write_down(begin);
    (begun, written.into_iter().map(WrittenCall).collect())
}

/// A call that has been written down. Whoever waits for its results waits until it is [ended](Self::end); one that is dropped ends
/// with BAD_INV_ORDER, not executed.
pub struct WrittenCall(Written);

impl WrittenCall {
    /// The reference by which the call was begun.
    pub fn target(&self) -> &ObjectRef {
        self.0.call.object()
    }

    /// The request. [`passing_to`](ReceivedRequest::passing_to) sends it to an object, as often as that is called.
    pub fn request(&self) -> &Arc<ReceivedRequest> {
        &self.0.request
    }

    /// True when the object is the same whether the request is carried out once or twice (`@idempotent`), so that it may be sent
    /// again, or to another object, where nobody knows whether it has been.
    pub fn is_idempotent(&self) -> bool {
        self.0.is_idempotent
    }

    /// Ends the call. Only the first end counts. Does not block; runs a callback of the program if one waits for the call.
    pub fn end(&self, outcome: Result<RawReply, SystemException>) {
        self.0.call.end(outcome.map(RawReply::into_answer));
    }
}

impl Drop for WrittenCall {
    fn drop(&mut self) {
        self.0.call.end(Err(SystemException::new(
            SystemExceptionKind::BadInvOrder,
            MinorCode::NONE,
            CompletionStatus::No,
        )
        .with_detail("the call was written down, and never sent")));
    }
}

impl fmt::Debug for WrittenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrittenCall").field("operation", &self.0.request.operation()).finish_non_exhaustive()
    }
}
