//! Interceptors of the client's side of a request (CORBA 3.3 part 1, 16.3.5).

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;
use ironorb_giop::message::Message;
use ironorb_giop::service_context::ServiceContextList;

use super::{
    BodyCount, ContextList, Interceptors, Interrupt, Outcome, PiCurrent, ReplyStatus, SlotId, next_request_id,
};
use crate::object::ObjectRef;

/// Sees the requests that this process sends. All interception points have a default body that does nothing,
/// so an interceptor implements only those that it needs.
///
/// When a request goes out, interceptors are called in the order of their registration. When it ends, those
/// that let it pass are called in the opposite order. A request that is sent again, after a forward or a
/// closed connection, ends for its interceptors and begins anew. The thread that sends or receives calls the
/// points. An interceptor may make calls of its own, which pass through the interceptors too. It should not
/// block for long.
///
/// Calls to an object in the same process send no message and pass no interceptor.
pub trait ClientInterceptor: Send + Sync + 'static {
    /// A name for messages; empty by default.
    fn name(&self) -> &str {
        ""
    }

    /// Called before a request is sent. The interceptor may add service contexts.
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called when results have come.
    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let _ = request;
        Ok(())
    }

    /// Called when an exception has come, or the request could not be sent or answered.
    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called when the request ends in another way: a oneway has been sent, a forward is followed, or the
    /// request is sent again.
    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }
}

/// What a client's interceptor can learn about a request.
#[derive(Debug)]
pub struct ClientRequestInfo {
    id: u64,
    target: ObjectRef,
    operation: Cow<'static, str>,
    response_expected: bool,
    sent: ContextList,
    received: ContextList,
    request_octets: usize,
    reply_octets: usize,
    outcome: Option<Outcome>,
}

impl ClientRequestInfo {
    /// The number of the request, unique in the process (`request_id`). It is not the one on the wire. A request that is
    /// sent again has another one.
    pub fn request_id(&self) -> u64 {
        self.id
    }

    /// The operation's name as on the wire.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The reference that the call was made with.
    pub fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// False for a oneway.
    pub fn response_expected(&self) -> bool {
        self.response_expected
    }

    /// Octets of the arguments in the request's body; 0 before it has been sent.
    pub fn request_octets(&self) -> usize {
        self.request_octets
    }

    /// Octets of the reply's body: the results, or the exception. 0 without a reply.
    pub fn reply_octets(&self) -> usize {
        self.reply_octets
    }

    /// Adds a service context to the request. False when there is one with this id and `replace` is not set
    /// (the standard's BAD_INV_ORDER 15).
    pub fn add_request_service_context(&mut self, id: u32, data: &[u8], replace: bool) -> bool {
        self.sent.add(id, data, replace)
    }

    /// The bytes of a context that an interceptor has added to the request.
    pub fn request_service_context(&self, id: u32) -> Option<&[u8]> {
        self.sent.find(id)
    }

    /// The bytes of a context of the reply; `None` if the reply has none, or has not come yet.
    pub fn reply_service_context(&self, id: u32) -> Option<&[u8]> {
        self.received.find(id)
    }

    /// How the request ended; `None` before that.
    pub fn reply_status(&self) -> Option<ReplyStatus> {
        self.outcome.as_ref().map(Outcome::status)
    }

    /// The system exception that the caller will get.
    pub fn system_exception(&self) -> Option<&SystemException> {
        self.outcome.as_ref().and_then(Outcome::system_exception)
    }

    /// The repository id of the exception that the caller will get.
    pub fn received_exception_id(&self) -> Option<&str> {
        self.outcome.as_ref().and_then(Outcome::exception_id)
    }

    /// The reference that the request is forwarded to, if it is.
    pub fn forward_reference(&self) -> Option<&ObjectRef> {
        self.outcome.as_ref().and_then(Outcome::forward)
    }

    /// The value that the calling thread has put into a slot; see [`PiCurrent`]. In an asynchronous call, the
    /// ending points see the slots of the thread that received the reply.
    pub fn slot(&self, id: SlotId) -> crate::Any {
        PiCurrent.slot(id)
    }
}

/// All client interceptors of an ORB.
#[derive(Clone, Default)]
pub(crate) struct ClientChain(Vec<Arc<dyn ClientInterceptor>>);

impl ClientChain {
    pub(crate) fn push(&mut self, interceptor: Arc<dyn ClientInterceptor>) {
        self.0.push(interceptor);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One attempt of a call, as its interceptors see it.
#[derive(Debug)]
pub(crate) struct Attempt {
    interceptors: Arc<Interceptors>,
    info: ClientRequestInfo,
    /// The number of interceptors that have let the request pass, and so see its end (the standard's flow
    /// stack).
    passed: usize,
}

impl Attempt {
    /// Calls the interceptors before a request is sent. An error is the way in which one has ended it.
    #[cold]
    pub(crate) fn begin(
        interceptors: &Arc<Interceptors>,
        target: &ObjectRef,
        operation: Cow<'static, str>,
        response_expected: bool,
    ) -> Result<Attempt, Interrupt> {
        let (sent, received) = (ContextList::default(), ContextList::default());
        let target = target.clone();
        let info = ClientRequestInfo {
            id: next_request_id(),
            target,
            operation,
            response_expected,
            sent,
            received,
            request_octets: 0,
            reply_octets: 0,
            outcome: None,
        };
        let mut attempt = Attempt { interceptors: interceptors.clone(), info, passed: 0 };
        for interceptor in &interceptors.client.0 {
            if let Err(interrupt) = interceptor.send_request(&mut attempt.info) {
                return Err(attempt.end(interrupt.clone().into(), None).unwrap_or(interrupt));
            }
            attempt.passed += 1;
        }
        Ok(attempt)
    }

    /// The contexts that interceptors have added to the request.
    pub(crate) fn contexts(&self) -> ServiceContextList {
        self.info.sent.to_send()
    }

    /// Notes how long the body of the request is that has been written.
    pub(crate) fn note_sent(&mut self, body: &BodyCount) {
        self.info.request_octets = body.octets();
    }

    fn see(&mut self, reply: &Message) {
        if let Ok(reply) = reply.parse_reply() {
            self.info.reply_octets = reply.body.reader().remaining();
            self.info.received = reply.contexts.into();
        }
    }

    /// Tells the interceptors that let the request pass how it ended, after a reply or without one. Returns what an
    /// interceptor does instead. If several object, the last one decides.
    #[cold]
    pub(crate) fn end(&mut self, outcome: Outcome, reply: Option<&Message>) -> Option<Interrupt> {
        if let Some(reply) = reply {
            self.see(reply);
        }
        let Attempt { interceptors, info, passed } = self;
        let mut instead = None;
        let mut outcome = outcome;
        for interceptor in interceptors.client.0[..*passed].iter().rev() {
            info.outcome = Some(outcome.clone());
            let result = match &outcome {
                Outcome::Results => interceptor.receive_reply(info).map_err(Interrupt::Raise),
                Outcome::SystemException(_) | Outcome::UserException(_) => {
                    interceptor.receive_exception(info)
                }
                Outcome::Oneway | Outcome::Forward(_) | Outcome::Retry => interceptor.receive_other(info),
            };
            if let Err(interrupt) = result {
                outcome = interrupt.clone().into();
                instead = Some(interrupt);
            }
        }
        instead
    }
}
