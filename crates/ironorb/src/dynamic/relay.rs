//! Requests and replies that are passed on: kept as they came, sent with the bytes of their bodies as these are.
//!
//! Nothing here knows a type, or changes a byte of a body. Where a body cannot be the same to the receiver it is refused
//! ([`Misuse::MovedBody`]); who knows its types can read and write it instead.

use std::fmt;
use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException};
use ironorb_giop::message::{Message, PADDING, RawBody, ReplyStatus, Request, Response};
use ironorb_giop::service_context::{
    BI_DIR_IIOP, CODE_SETS, RT_CORBA_PRIORITY_RANGE, SENDING_CONTEXT_RUN_TIME, ServiceContext,
    ServiceContexts,
};
use ironorb_giop::{Encoding, Malformed, Misuse, Reader, TransmissionCodeSets, Version, Writer};

use super::results::RawReply;
use crate::client::asynchronous::{AsyncCall, Callback};
use crate::object::ObjectRef;

/// A request as it came, in memory of its own.
pub struct ReceivedRequest {
    /// One that has been parsed before.
    message: Message,
    operation: String,
    response: Response,
    code_sets: TransmissionCodeSets,
}

impl ReceivedRequest {
    /// A copy of the request whose arguments are about to be read.
    pub(super) fn keep(arguments: &Reader<'_>, operation: &str) -> Result<Self, Malformed> {
        let message = Message::copied_from(arguments)?;
        let response = message.parse_request()?.response;
        let code_sets = arguments.encoding().code_sets();
        Ok(ReceivedRequest { message, operation: operation.to_owned(), response, code_sets })
    }

    fn parsed<T>(&self, then: impl FnOnce(Request<'_>) -> T, otherwise: T) -> T {
        match self.message.parse_request() {
            Ok(request) => then(request),
            Err(_) => otherwise, // it has been parsed before
        }
    }

    /// The operation as on the wire.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The GIOP version.
    pub fn version(&self) -> Version {
        self.message.header().version
    }

    /// What the client wants to hear.
    pub fn response(&self) -> Response {
        self.response
    }

    /// The code sets that the client has chosen; `None` where it has not told any, or could not in GIOP 1.0.
    pub fn code_sets(&self) -> Option<TransmissionCodeSets> {
        (self.code_sets != TransmissionCodeSets::UNNEGOTIATED).then_some(self.code_sets)
    }

    /// Its service contexts.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        match self.message.parse_request() {
            Ok(request) => request.contexts,
            Err(_) => ServiceContexts::none(),
        }
    }

    /// Those that are about the call, and not about the connection it came over.
    pub(crate) fn contexts_to_pass_on(&self) -> impl Iterator<Item = ServiceContext<'_>> {
        self.contexts().filter(is_about_the_call)
    }

    /// The same and the body, looked for once.
    pub(crate) fn parts_to_pass_on(
        &self,
    ) -> Option<(impl Iterator<Item = ServiceContext<'_>>, Option<RawBody<'_>>)> {
        let request = self.message.parse_request().ok()?;
        Some((request.contexts.filter(is_about_the_call), request.body.raw()))
    }

    /// The bytes of its arguments; `None` where they came in fragments of GIOP 1.1 that are aligned each by itself.
    pub fn body(&self) -> Option<RawBody<'_>> {
        self.message.parse_request().ok()?.body.raw()
    }

    /// How long the whole message is, in bytes.
    pub fn message_bytes(&self) -> usize {
        self.message.bytes().len()
    }

    /// How long its arguments are, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.parsed(|request| self.message.bytes().len().saturating_sub(request.body.position()), 0)
    }

    /// A reader at its arguments.
    pub fn reader(&self) -> Option<Reader<'_>> {
        Some(self.message.parse_request().ok()?.body.reader())
    }

    /// What its arguments are written in.
    pub(crate) fn encoding_here(&self) -> Encoding {
        let order = self.message.header().order;
        Encoding { order, ..Encoding::native(self.version(), self.code_sets) }
    }

    /// Writes the body where it must be the same.
    pub(crate) fn write_here(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self.body() {
            Some(body) if body.order == w.encoding().order && body.fits_at(w.position() % 8) => {
                w.write_kept(body.bytes);
                Ok(())
            }
            _ => Err(Misuse::MovedBody),
        }
    }

    /// What will pass the request on to an object. Nothing is sent before it is begun; the time for the answer runs.
    pub fn passing_to(self: &Arc<Self>, target: &ObjectRef) -> Passing {
        Passing(AsyncCall::on_behalf_of(target, self))
    }
}

/// A request that is about to be passed on to an object.
#[derive(Debug)]
pub struct Passing(Arc<AsyncCall>);

impl Passing {
    /// Sends the request and returns; `then` is given what it brings, on the thread that receives for all such calls, which
    /// it must not keep. Of a request that nobody waits for it is dropped. A forward is followed, and what the reference's
    /// policies say holds: its deadline, and its [`WireProfile`](crate::object::WireProfile).
    ///
    /// Waits only while the target takes no bytes. An error is how a request without a reply could not be sent.
    pub fn begin(
        self,
        then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static,
    ) -> Result<(), SystemException> {
        self.0.relay(None, self.callback(then))
    }

    /// The same with arguments that `write` writes, in whatever encoding the connection has, before this returns.
    pub fn begin_written(
        self,
        write: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
        then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static,
    ) -> Result<(), SystemException> {
        self.0.relay(Some(write), self.callback(then))
    }

    /// To end the call before its answer.
    pub fn handle(&self) -> PassingHandle {
        PassingHandle(Arc::downgrade(&self.0))
    }

    fn callback(&self, then: impl FnOnce(Result<RawReply, SystemException>) + Send + 'static) -> Callback {
        let object = self.0.object().clone();
        Box::new(move |outcome| then(outcome.map(|answer| RawReply::new(answer.into_remote_call(), &object))))
    }
}

/// A request that is passed on, for whoever may want to end that. Keeps nothing of it.
#[derive(Debug, Clone)]
pub struct PassingHandle(Weak<AsyncCall>);

impl PassingHandle {
    /// Ends the call if it is not over: nothing is sent if nothing has been, the target is told that nobody waits where
    /// [`cancel_requests`](crate::giop::connection::ConnectionConfig::cancel_requests) says so, and whoever was to hear
    /// of the answer hears
    /// UNKNOWN, with the minor code [`REPLY_GIVEN_UP`](crate::MinorCode::REPLY_GIVEN_UP). Never waits.
    pub fn give_up(&self) {
        if let Some(call) = self.0.upgrade() {
            call.cut_short();
        }
    }
}

impl fmt::Debug for ReceivedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedRequest").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// A reply that is passed on.
pub(super) fn parts_of_reply(
    message: &Message,
) -> Option<(ReplyStatus, Vec<ServiceContext<'_>>, RawBody<'_>)> {
    let reply = message.parse_reply().ok()?;
    Some((reply.status, reply.contexts.filter(is_about_the_call).collect(), reply.body.raw()?))
}

/// What a client is told whose reply cannot be passed on as it came.
#[cold]
pub(super) fn unsendable(misuse: Misuse) -> SystemException {
    SystemException::from(misuse).with_completed(CompletionStatus::Yes)
}

fn is_about_the_call(context: &ServiceContext<'_>) -> bool {
    ![CODE_SETS, BI_DIR_IIOP, SENDING_CONTEXT_RUN_TIME, RT_CORBA_PRIORITY_RANGE, PADDING]
        .contains(&context.id)
}
