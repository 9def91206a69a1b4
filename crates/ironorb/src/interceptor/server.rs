//! Interceptors of the server's side of a request (CORBA 3.3 part 1, 16.3.8).

use std::cell::Cell;
use std::sync::Arc;

use ironorb_giop::exception::SystemException;
use ironorb_giop::ior::Ior;
use ironorb_giop::message::{Request, Response};
use ironorb_giop::service_context::{ServiceContext, ServiceContextList};

use super::{
    BodyCount, ContextList, Interceptors, Interrupt, Outcome, PiCurrent, ReplyStatus, SlotId, next_request_id,
};
use crate::object::ObjectRef;
use crate::object::orb_shared::OrbHandle;

/// Sees the requests that this process receives. All interception points have a default body that does
/// nothing.
///
/// When a request comes in, interceptors are called in the order of their registration. When its reply goes
/// out, those that let it pass are called in the opposite order. The thread that serves the request calls the
/// points. If the servant answers later, the thread that answers calls those of the reply.
pub trait ServerInterceptor: Send + Sync + 'static {
    /// A name for messages; empty by default.
    fn name(&self) -> &str {
        ""
    }

    /// Called when a request has come. The interceptor can read its contexts and set slots. The servant is
    /// not known yet.
    fn receive_request_service_contexts(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called when the servant has been found, before it is called.
    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called before results are sent. The interceptor may add contexts. An error is sent in place of the
    /// results, but what the servant has done cannot be undone.
    fn send_reply(&self, request: &mut ServerRequestInfo) -> Result<(), SystemException> {
        let _ = request;
        Ok(())
    }

    /// Called before an exception is sent.
    fn send_exception(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called when the request ends in another way: it is forwarded, or it was a oneway.
    fn send_other(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let _ = request;
        Ok(())
    }

    /// Called when the reply has been written, with its [octets](ServerRequestInfo::reply_octets); and for a request that
    /// ends without one: a oneway, or one that is dropped unanswered because its connection has ended, which has no
    /// [`reply_status`](ServerRequestInfo::reply_status). The standard has no such point.
    ///
    /// The interceptors that the point before was for are called in the same order. The reply may not have left yet.
    fn request_ended(&self, request: &ServerRequestInfo) {
        let _ = request;
    }
}

/// What a server's interceptor can learn about a request.
#[derive(Debug)]
pub struct ServerRequestInfo {
    id: u64,
    operation: Vec<u8>,
    object_key: Vec<u8>,
    received: ContextList,
    response_expected: bool,
    target: Option<Target>,
    added: ContextList,
    request_octets: usize,
    reply_octets: usize,
    outcome: Option<Outcome>,
}

/// The target of a request, once the servant is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) object_id: Vec<u8>,
    pub(crate) adapter_name: Vec<String>,
    pub(crate) repository_id: String,
}

impl ServerRequestInfo {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        ServerRequestInfo {
            id: next_request_id(),
            operation: request.operation.to_owned(),
            object_key: request.object_key.to_owned(),
            received: request.contexts.clone().into(),
            response_expected: request.response == Response::SyncWithTarget,
            target: None,
            added: ContextList::default(),
            request_octets: request.body.reader().remaining(),
            reply_octets: 0,
            outcome: None,
        }
    }

    /// The number of the request, unique in the process (`request_id`). It is not the one on the wire.
    pub fn request_id(&self) -> u64 {
        self.id
    }

    /// The operation's name as on the wire.
    pub fn operation(&self) -> &[u8] {
        &self.operation
    }

    /// The object key as on the wire.
    pub fn object_key(&self) -> &[u8] {
        &self.object_key
    }

    /// False for a oneway.
    pub fn response_expected(&self) -> bool {
        self.response_expected
    }

    /// Octets of the arguments in the request's body.
    pub fn request_octets(&self) -> usize {
        self.request_octets
    }

    /// Octets of the reply's body: the results, or the exception. 0 without a reply, and before
    /// [`request_ended`](ServerInterceptor::request_ended).
    pub fn reply_octets(&self) -> usize {
        self.reply_octets
    }

    /// The bytes of a context of the request.
    pub fn request_service_context(&self, id: u32) -> Option<&[u8]> {
        self.received.find(id)
    }

    /// All contexts of the request.
    pub fn request_service_contexts(&self) -> impl ExactSizeIterator<Item = ServiceContext<'_>> {
        self.received.iter()
    }

    /// Adds a service context to the reply. False when there is one with this id and `replace` is not set.
    pub fn add_reply_service_context(&mut self, id: u32, data: &[u8], replace: bool) -> bool {
        self.added.add(id, data, replace)
    }

    /// The bytes of a context that an interceptor has added to the reply.
    pub fn reply_service_context(&self, id: u32) -> Option<&[u8]> {
        self.added.find(id)
    }

    /// The object's id in its adapter; `None` before the servant is known.
    pub fn object_id(&self) -> Option<&[u8]> {
        self.target.as_ref().map(|target| target.object_id.as_slice())
    }

    /// The names of the adapters, from the root's child to the object's own; `None` before the servant is
    /// known.
    pub fn adapter_name(&self) -> Option<&[String]> {
        self.target.as_ref().map(|target| target.adapter_name.as_slice())
    }

    /// The repository id of the servant's most derived interface; `None` before the servant is known.
    pub fn target_most_derived_interface(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.repository_id.as_str())
    }

    /// How the request ends; `None` before that.
    pub fn reply_status(&self) -> Option<ReplyStatus> {
        self.outcome.as_ref().map(Outcome::status)
    }

    /// The system exception that is about to be sent.
    pub fn system_exception(&self) -> Option<&SystemException> {
        self.outcome.as_ref().and_then(Outcome::system_exception)
    }

    /// The repository id of the exception that is about to be sent.
    pub fn sending_exception_id(&self) -> Option<&str> {
        self.outcome.as_ref().and_then(Outcome::exception_id)
    }

    /// The reference that the client is forwarded to, if it is.
    pub fn forward_reference(&self) -> Option<&ObjectRef> {
        self.outcome.as_ref().and_then(Outcome::forward)
    }

    /// The value in a slot; see [`PiCurrent`].
    pub fn slot(&self, id: SlotId) -> crate::Any {
        PiCurrent.slot(id)
    }

    /// Puts a value into a slot, where the servant finds it.
    pub fn set_slot(&self, id: SlotId, value: crate::Any) {
        PiCurrent.set_slot(id, value);
    }

    fn set_target(&mut self, target: Target) {
        self.target = Some(target);
    }
}

/// All server interceptors of an ORB.
#[derive(Clone, Default)]
pub(crate) struct ServerChain(Vec<Arc<dyn ServerInterceptor>>);

/// The number of interceptors that have let a request pass, and so see its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed(usize);

impl ServerChain {
    pub(crate) fn push(&mut self, interceptor: Arc<dyn ServerInterceptor>) {
        self.0.push(interceptor);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls the interceptors when a request has come. An error is the way in which the request ends instead
    /// of being served.
    pub(crate) fn begin(&self, request: &mut ServerRequestInfo) -> Result<Passed, Outcome> {
        for (passed, interceptor) in self.0.iter().enumerate() {
            if let Err(interrupt) = interceptor.receive_request_service_contexts(request) {
                return Err(self.end(Passed(passed), request, interrupt.into()));
            }
        }
        Ok(Passed(self.0.len()))
    }

    /// Calls the interceptors when the servant is known. An error is the way in which the request ends
    /// instead of being served. The interceptors have then seen its end.
    pub(crate) fn found(&self, passed: Passed, request: &mut ServerRequestInfo) -> Result<(), Outcome> {
        for interceptor in &self.0[..passed.0] {
            if let Err(interrupt) = interceptor.receive_request(request) {
                return Err(self.end(passed, request, interrupt.into()));
            }
        }
        Ok(())
    }

    /// Calls the interceptors before a reply is sent. Returns the outcome, which they may change.
    pub(crate) fn end(
        &self,
        Passed(passed): Passed,
        request: &mut ServerRequestInfo,
        outcome: Outcome,
    ) -> Outcome {
        let mut outcome = outcome;
        for interceptor in self.0[..passed].iter().rev() {
            request.outcome = Some(outcome.clone());
            let result = match &outcome {
                Outcome::Results => interceptor.send_reply(request).map_err(Interrupt::Raise),
                Outcome::SystemException(_) | Outcome::UserException(_) => {
                    interceptor.send_exception(request)
                }
                Outcome::Oneway | Outcome::Forward(_) | Outcome::Retry => interceptor.send_other(request),
            };
            if let Err(interrupt) = result {
                outcome = interrupt.into();
            }
        }
        outcome
    }

    /// Tells the interceptors that let a request pass that it is over.
    fn ended(&self, Passed(passed): Passed, request: &ServerRequestInfo) {
        for interceptor in self.0[..passed].iter().rev() {
            interceptor.request_ended(request);
        }
    }
}

/// The ORB that receives requests, as its interceptors' chain needs it.
pub(crate) trait InterceptedOrb: Send + Sync {
    fn interceptors(&self) -> &Interceptors;

    /// The ORB, as references hold it.
    fn handle(self: Arc<Self>) -> OrbHandle;
}

/// One request between its interceptors and its reply.
pub(crate) struct Interception {
    orb: Arc<dyn InterceptedOrb>,
    /// Taken out when the interceptors have been told how the request ends.
    state: Cell<State>,
    /// What was taken out then.
    told: Cell<State>,
    /// Octets of the reply's body.
    body: BodyCount,
}

/// What the interceptors of a request see, and how many do.
type State = Option<Box<(Passed, ServerRequestInfo)>>;

impl Interception {
    fn new(orb: Arc<dyn InterceptedOrb>, state: State) -> Interception {
        Interception { orb, state: Cell::new(state), told: Cell::default(), body: BodyCount::default() }
    }

    /// Counts the octets of the reply's body.
    pub(crate) fn body(&self) -> &BodyCount {
        &self.body
    }

    /// Calls the interceptors when a request has come. The second value is the way in which the request ends
    /// instead of being served, if an interceptor ends it.
    #[cold]
    pub(crate) fn begin(
        orb: Arc<dyn InterceptedOrb>,
        request: &Request<'_>,
    ) -> (Interception, Option<Outcome>) {
        let mut info = ServerRequestInfo::new(request);
        let (state, instead) = match orb.interceptors().server.begin(&mut info) {
            Ok(passed) => (Some(Box::new((passed, info))), None),
            Err(outcome) => (Some(Box::new((Passed(0), info))), Some(outcome)),
        };
        (Interception::new(orb, state), instead)
    }

    /// Calls the interceptors when the servant is known. Returns the way in which the request ends instead of
    /// being served, if an interceptor ends it.
    #[cold]
    pub(crate) fn found(&self, target: Target) -> Option<Outcome> {
        let mut state = self.state.take()?;
        state.1.set_target(target);
        let instead = self.orb.interceptors().server.found(state.0, &mut state.1).err();
        if instead.is_some() {
            state.0 = Passed(0); // they have seen the end
        }
        self.state.set(Some(state));
        instead
    }

    /// Calls the interceptors before the reply is written. Returns the outcome and the contexts of the reply.
    #[cold]
    pub(crate) fn end(&self, outcome: Outcome) -> (Outcome, ServiceContextList) {
        match self.state.take() {
            None => (outcome, ServiceContextList::default()),
            Some(mut state) => {
                let outcome = self.orb.interceptors().server.end(state.0, &mut state.1, outcome);
                let contexts = state.1.added.to_send();
                self.told.set(Some(state));
                (outcome, contexts)
            }
        }
    }

    /// Makes the reference that a request is forwarded to.
    pub(crate) fn object(&self, ior: &Ior) -> ObjectRef {
        ObjectRef::new(&self.orb.clone().handle(), ior.clone())
    }

    /// Takes the interception out, for a reply that is written later, perhaps by another thread.
    pub(crate) fn detach(&self) -> Interception {
        Interception::new(self.orb.clone(), self.state.take())
    }
}

/// The request is over: its reply has been written, or it will have none.
impl Drop for Interception {
    fn drop(&mut self) {
        if let Some(mut state) = self.told.take().or_else(|| self.state.take()) {
            state.1.reply_octets = self.body.octets();
            self.orb.interceptors().server.ended(state.0, &state.1);
        }
    }
}
