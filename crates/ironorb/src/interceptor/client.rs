//! The client's side of a request (CORBA 3.3 part 1, 16.3.5).

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;
use ironorb_giop::message::Message;
use ironorb_giop::service_context::ServiceContextList;

use super::{ContextList, Interrupt, Outcome, PiCurrent, ReplyStatus, SlotId};
use crate::invocation::Next;
use crate::object::ObjectRef;

/// Sees the requests that this process sends. All points have a body that does nothing, so that an interceptor
/// writes those it is interested in.
///
/// Interceptors are called in the order of their registration when a request goes out, and in the opposite order,
/// those that let it pass, when it ends. A request that is sent again, after a forward or a closed connection, ends
/// for its interceptors and begins anew. Points are called by the thread that sends or receives: they may make calls
/// of their own, which pass through the interceptors too, and should not block for long.
///
/// Calls to an object in the same process are not messages, and pass no interceptor.
pub trait ClientInterceptor: Send + Sync + 'static {
    /// A name for messages; empty by default.
    fn name(&self) -> &str {
        ""
    }

    /// A request is about to be sent: contexts may be added.
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Results have come.
    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let _ = request;
        Ok(())
    }

    /// An exception has come, or the request has failed on its way.
    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// The request ends otherwise: a oneway has been sent, a forward is followed, a request is sent again.
    fn receive_other(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }
}

/// What a client's interceptor can learn of a request.
#[derive(Debug)]
pub struct ClientRequestInfo {
    target: ObjectRef,
    operation: Cow<'static, str>,
    response_expected: bool,
    sent: ContextList,
    received: ContextList,
    outcome: Option<Outcome>,
}

impl ClientRequestInfo {
    /// The operation as on the wire.
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

    /// Adds a service context to the request. False when there is one of that id and `replace` is not set (the
    /// standard's BAD_INV_ORDER 15).
    pub fn add_request_service_context(&mut self, id: u32, data: &[u8], replace: bool) -> bool {
        self.sent.add(id, data, replace)
    }

    /// The bytes of a context that an interceptor has added to the request.
    pub fn request_service_context(&self, id: u32) -> Option<&[u8]> {
        self.sent.find(id)
    }

    /// The bytes of a context of the reply; `None` also before the reply is here.
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

    /// Where the request goes on.
    pub fn forward_reference(&self) -> Option<&ObjectRef> {
        self.outcome.as_ref().and_then(Outcome::forward)
    }

    /// What the calling thread has put into a slot; see [`PiCurrent`]. In a call that does not wait for its reply,
    /// the ending points see the slots of the thread that received it.
    pub fn slot(&self, id: SlotId) -> crate::Any {
        PiCurrent.slot(id)
    }
}

/// All interceptors of an ORB's clients.
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

/// One attempt of a call as its interceptors see it.
#[derive(Debug)]
pub(crate) struct Attempt {
    info: ClientRequestInfo,
    /// How many interceptors have let it pass, and so are told of its end (the standard's flow stack).
    passed: usize,
}

impl Attempt {
    /// A request is about to be sent, unless an interceptor says something else.
    #[cold]
    pub(crate) fn begin(
        target: &ObjectRef,
        operation: Cow<'static, str>,
        response_expected: bool,
    ) -> Result<Attempt, Interrupt> {
        let (sent, received) = (ContextList::default(), ContextList::default());
        let target = target.clone();
        let info = ClientRequestInfo { target, operation, response_expected, sent, received, outcome: None };
        let mut attempt = Attempt { info, passed: 0 };
        let orb = attempt.info.target.core().clone();
        for interceptor in &orb.interceptors.client.0 {
            if let Err(interrupt) = interceptor.send_request(&mut attempt.info) {
                return Err(attempt.end(interrupt.clone().into()).unwrap_or(interrupt));
            }
            attempt.passed += 1;
        }
        Ok(attempt)
    }

    /// What interceptors have added to the request.
    pub(crate) fn contexts(&self) -> ServiceContextList {
        self.info.sent.to_send()
    }

    /// Results or a user exception have come; what an interceptor makes of them.
    #[cold]
    pub(crate) fn answered(
        mut self,
        reply: &Message,
        body_at: usize,
        user_exception: bool,
    ) -> Option<Interrupt> {
        self.see_contexts(reply);
        self.end(if user_exception {
            let id = reply.reader_at(body_at).read_str().map(|id| id.into_owned());
            Outcome::UserException(id.unwrap_or_default())
        } else {
            Outcome::Results
        })
    }

    /// A oneway has been sent; what an interceptor makes of that.
    #[cold]
    pub(crate) fn sent(self) -> Option<Interrupt> {
        self.end(Outcome::Oneway)
    }

    /// The attempt has led to something else, after a reply or without one; what an interceptor makes of that.
    #[cold]
    pub(crate) fn led_to(mut self, next: &Next, reply: Option<&Message>) -> Option<Interrupt> {
        if let Some(reply) = reply {
            self.see_contexts(reply);
        }
        let outcome = match next {
            Next::Fail(e) | Next::TryNext(e) => Outcome::SystemException(e.clone()),
            Next::Follow { ior, .. } => {
                Outcome::Forward(ObjectRef::new(self.info.target.core(), (**ior).clone()))
            }
            Next::Resend | Next::Readdress(_) | Next::FallBack => Outcome::Retry,
        };
        self.end(outcome)
    }

    fn see_contexts(&mut self, reply: &Message) {
        if let Ok(reply) = reply.parse_reply() {
            self.info.received = reply.contexts.into();
        }
    }

    /// Tells those that let the request pass how it ended; the last of them to object counts.
    fn end(mut self, outcome: Outcome) -> Option<Interrupt> {
        let orb = self.info.target.core().clone();
        let mut instead = None;
        let mut outcome = outcome;
        for interceptor in orb.interceptors.client.0[..self.passed].iter().rev() {
            self.info.outcome = Some(outcome.clone());
            let told = match &outcome {
                Outcome::Results => interceptor.receive_reply(&self.info).map_err(Interrupt::Raise),
                Outcome::SystemException(_) | Outcome::UserException(_) => {
                    interceptor.receive_exception(&self.info)
                }
                Outcome::Oneway | Outcome::Forward(_) | Outcome::Retry => {
                    interceptor.receive_other(&self.info)
                }
            };
            if let Err(interrupt) = told {
                outcome = interrupt.clone().into();
                instead = Some(interrupt);
            }
        }
        instead
    }
}
