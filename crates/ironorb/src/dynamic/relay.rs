//! Requests and replies that are passed on. They are kept as they came, and their bodies are sent byte for
//! byte.
//!
//! Nothing here knows a type, or changes a byte of a body. A body whose bytes would have to change for the
//! receiver is refused ([`Misuse::MovedBody`]). A program that knows the types can read and write it instead.

use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException};
use ironorb_giop::message::{Message, RawBody, ReplyStatus};
use ironorb_giop::service_context::ServiceContext;
use ironorb_giop::{Misuse, Writer};

use super::results::RawReply;
use crate::driver::client::asynchronous::{AsyncCall, Callback};
use crate::object::ObjectRef;
use crate::object::received_request::{ReceivedRequest, is_about_the_call};

impl ReceivedRequest {
    /// Prepares to pass the request on to an object. Nothing is sent before the result is begun, but the
    /// call's time runs.
    pub fn passing_to(self: &Arc<Self>, target: &ObjectRef) -> Passing {
        Passing(AsyncCall::on_behalf_of(target, self))
    }
}

/// A request that is about to be passed on to an object.
#[derive(Debug)]
pub struct Passing(Arc<AsyncCall>);

impl Passing {
    /// Sends the request and returns. The thread that receives for all such calls gives the outcome to
    /// `then`, which must not block. For a request without a reply `then` is dropped. The call follows
    /// forwards and the reference's policies: its deadline, and its
    /// [`WireProfile`](crate::object::WireProfile).
    ///
    /// Blocks only while the target takes no bytes, unless it is [`never_waiting`](Self::never_waiting). An error is the failure to
    /// send a request without a reply that is known at once; [`begin_oneway`](Self::begin_oneway) tells all.
    pub fn begin(
        self,
        then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static,
    ) -> Result<(), SystemException> {
        self.0.relay(None, self.callback(then))
    }

    /// Sends the request with arguments that `write` writes before this returns, in the encoding of the
    /// connection. Otherwise it is like [`begin`](Self::begin).
    pub fn begin_written(
        self,
        write: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static,
    ) -> Result<(), SystemException> {
        self.0.relay(Some(write), self.callback(then))
    }

    /// Sends a request that wants no reply, and tells `then` once the transport has taken it (`SYNC_WITH_TRANSPORT`; CORBA 3.3 part
    /// 1, clause 17), or that it has not: COMPLETED_NO if nothing of it has left, COMPLETED_MAYBE if a part of it has. `then` runs
    /// on this thread before this returns, or on one of the ORB's, and must not block.
    ///
    /// Requests to servers that have gone fail so, where [`begin`](Self::begin) tells nobody. A server that goes after
    /// that does not: nobody answers. If the request wants a reply, `then` learns whether it has come.
    pub fn begin_oneway(self, then: impl FnOnce(Result<(), SystemException>) + Send + 'static) {
        self.0.relay_oneway(Box::new(then));
    }

    /// Has no thread wait that begins the call or goes on with it, for threads that others need. While the target takes no
    /// bytes, the call waits at the connection, in its turn and until its deadline; at most 1,024 calls do so, and more get NO_RESOURCES.
    /// An object of this process is called by another thread. Interceptors run as ever.
    #[must_use]
    pub fn never_waiting(self) -> Passing {
        self.0.never_wait();
        self
    }

    /// Returns a handle that can end the call before its answer.
    pub fn handle(&self) -> PassingHandle {
        PassingHandle(Arc::downgrade(&self.0))
    }

    fn callback(&self, then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static) -> Callback {
        let object = self.0.object().clone();
        Box::new(move |outcome| {
            then(outcome.map(|answer| RawReply::new(answer.into_remote_call(&object), &object)))
        })
    }
}

/// Ends a call that passes a request on. Holds nothing of the request.
#[derive(Debug, Clone)]
pub struct PassingHandle(Weak<AsyncCall>);

impl PassingHandle {
    /// Ends the call if it is not over. A request that has not been sent is not sent. The target learns of
    /// the cancellation where [`cancel_requests`](crate::giop::connection::ConnectionConfig::cancel_requests)
    /// says so. The callback of the call gets UNKNOWN, with the minor code
    /// [`REPLY_GIVEN_UP`](crate::MinorCode::REPLY_GIVEN_UP). Never blocks.
    pub fn give_up(&self) {
        if let Some(call) = self.0.upgrade() {
            call.cut_short();
        }
    }

    /// Ends the call as [`give_up`](Self::give_up) does, and tells the target in any case (CancelRequest; CORBA 3.3 part 2, 9.4.5).
    pub fn cancel(&self) {
        if let Some(call) = self.0.upgrade() {
            call.cancel();
        }
    }
}

/// The parts of a reply that is passed on.
pub(super) fn parts_of_reply(
    message: &Message,
) -> Option<(ReplyStatus, Vec<ServiceContext<'_>>, RawBody<'_>)> {
    let reply = message.parse_reply().ok()?;
    Some((reply.status, reply.contexts.filter(is_about_the_call).collect(), reply.body.raw()?))
}

/// Makes the exception for a client whose reply cannot be passed on as it came.
#[cold]
pub(super) fn unsendable(misuse: Misuse) -> SystemException {
    SystemException::from(misuse).with_completed(CompletionStatus::Yes)
}
