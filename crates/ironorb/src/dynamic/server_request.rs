//! One request for a dynamic servant (the standard's `ServerRequest`, CORBA 3.3 part 1, 12.3).

use std::fmt;
use std::sync::Arc;

use ironorb_giop::any::{Any, CopyError, copy_value};
use ironorb_giop::exception::{CompletionStatus, SystemException};
use ironorb_giop::message::ReplyStatus;
use ironorb_giop::typecode::{TcKind, TypeCode};
use ironorb_giop::{Malformed, Marshal, Misuse, Reader, Writer};

use super::argument::fits;
use super::description::OperationDescription;
use super::relay::{parts_of_reply, unsendable};
use super::results::{RawReply, undeclared};
use crate::driver::context::{Exchanged, enter_received, read_properties};
use crate::object::operation::{OperationError, Raised};
use crate::object::received_request::ReceivedRequest;
use crate::poa::ObjectId;
use crate::poa::servant::{Call, Replied, Reply};

/// A request to a dynamic servant, which must answer it exactly once.
pub struct ServerRequest<'c> {
    call: Call<'c>,
    operation: &'c str,
    id: ObjectId,
    description: Option<Arc<OperationDescription>>,
    /// Holds the context that came with the request, for the time of the upcall.
    context: Option<Exchanged>,
}

impl<'c> ServerRequest<'c> {
    pub(super) fn new(
        call: Call<'c>,
        operation: &'c str,
        id: ObjectId,
        description: Option<Arc<OperationDescription>>,
    ) -> Self {
        ServerRequest { call, operation, id, description, context: None }
    }

    /// The operation's name on the wire, `_get_…` and `_set_…` for attributes.
    pub fn operation(&self) -> &'c str {
        self.operation
    }

    /// The object that is called.
    pub fn object_id(&self) -> &ObjectId {
        &self.id
    }

    /// A number of the client's connection, if the request has come over one. A later connection may have it again.
    pub fn client(&self) -> Option<u64> {
        self.call.client()
    }

    /// The operation's description, if the servant's interface is known or a description has been given.
    pub fn description(&self) -> Option<&Arc<OperationDescription>> {
        self.description.as_ref()
    }

    /// Sets the types of the operation, for a servant that knows the operation and not its interface.
    pub fn describe(&mut self, operation: &Arc<OperationDescription>) {
        self.description = Some(operation.clone());
    }

    /// Copies the whole request as it came, to be passed on. Must be called before arguments are read.
    pub fn keep(&mut self) -> Result<Arc<ReceivedRequest>, Malformed> {
        Ok(Arc::new(ReceivedRequest::keep(self.call.arguments(), self.operation)?))
    }

    /// The in and inout arguments, in the order of the declaration. The error is the exception for the
    /// client: MARSHAL when the bytes are not arguments of this operation, BAD_OPERATION when the operation
    /// has no description.
    ///
    /// From now on [`Context::received`](crate::Context::received) returns the properties of an operation
    /// with a `context` clause.
    pub fn arguments(&mut self) -> Result<Vec<Any>, SystemException> {
        let Some(operation) = self.description.clone() else {
            return Err(super::servant::no_such_operation());
        };
        let mut r = self.call.arguments().clone();
        let mut read = || -> Result<_, Malformed> {
            let types = operation.sent().map(|(_, parameter)| parameter.type_code.clone());
            let arguments = types.map(|ty| Any::read_value(ty, &mut r)).collect::<Result<Vec<Any>, _>>()?;
            let context = match operation.contexts.is_empty() {
                true => None,
                false => Some(read_properties(&mut r)?),
            };
            Ok((arguments, context))
        };
        let (arguments, context) =
            read().map_err(|e| SystemException::from(e).with_completed(CompletionStatus::No))?;
        self.context = None; // restores the context, which an earlier call has changed
        self.context = context.map(enter_received);
        Ok(arguments)
    }

    /// A reader at the arguments as they came. [`arguments`](Self::arguments) begins at this reader's
    /// position.
    pub fn reader(&mut self) -> &mut Reader<'c> {
        self.call.arguments()
    }

    /// Answers with results: the operation's result, if it has one, and the values of its out and inout
    /// parameters in order. If there is a description, the types are checked against it. When they differ or
    /// values lack, the client gets the exception for a result that cannot be sent.
    pub fn reply(self, result: Option<&Any>, outs: &[Any]) -> Replied {
        let description = self.description;
        self.call.reply_gather(|w| write_results(description.as_deref(), result, outs, w))
    }

    /// Answers with results that `write` writes in their wire form.
    pub fn reply_with(self, write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>) -> Replied {
        self.call.reply(write)
    }

    /// Answers with a user exception. An exception that the description does not declare becomes UNKNOWN at
    /// the client, and so does an [`Any`] without an exception.
    pub fn raise(self, exception: &Any) -> Replied {
        let answer = raised(self.description.as_deref(), exception);
        self.call.raise(&answer)
    }

    /// Answers with a user exception whose members `members` writes in their wire form.
    pub fn raise_with(
        self,
        repository_id: &str,
        members: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    ) -> Replied {
        self.call.raise_user(repository_id, members)
    }

    /// Answers with a system exception.
    pub fn raise_system(self, exception: SystemException) -> Replied {
        self.call.raise(&exception)
    }

    /// Answers that the arguments are malformed, with the error of the [`reader`](Self::reader).
    pub fn refuse_arguments(self, e: Malformed) -> Replied {
        self.call.refuse_arguments(e)
    }

    /// Defers the answer: `take` gets the obligation to answer before this returns, and may answer later on
    /// any thread. When too many answers are outstanding the client gets an exception instead, and `take` is
    /// not called.
    pub fn defer(self, take: impl FnOnce(DynamicReply)) -> Replied {
        let ServerRequest { call, description, .. } = self;
        call.deferred(
            |_| Ok(()),
            |(), reply| take(DynamicReply { reply, description }),
            |w, Answer { description, result, outs }| {
                write_results(description.as_deref(), result.as_ref(), outs, w)
            },
        )
    }
}

impl fmt::Debug for ServerRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// The obligation to answer one request of a dynamic servant, once. Dropping it without an answer raises
/// UNKNOWN at the client. See [`Reply`] for the resources that it holds.
#[derive(Debug)]
pub struct DynamicReply {
    reply: Reply<Answer, RaisedDynamically>,
    description: Option<Arc<OperationDescription>>,
}

impl DynamicReply {
    /// Answers with results, as [`ServerRequest::reply`] does.
    pub fn reply(self, result: Option<Any>, outs: Vec<Any>) {
        self.reply.send(Ok(Answer { description: self.description, result, outs }));
    }

    /// Answers with a user exception, as [`ServerRequest::raise`] does.
    pub fn raise(self, exception: &Any) {
        let answer = raised(self.description.as_deref(), exception);
        self.reply.send(Err(answer));
    }

    /// Answers with a system exception.
    pub fn raise_system(self, exception: SystemException) {
        self.reply.send(Err(exception.into()));
    }

    /// Answers with the reply of another server, as it came. That is impossible when the client uses another
    /// GIOP version with other alignment; then the client gets MARSHAL, COMPLETED_YES.
    pub fn pass_on(self, reply: &RawReply) {
        match reply.message().and_then(parts_of_reply) {
            Some((status, contexts, body)) => {
                self.reply.answer_with(|responder| responder.pass_on(status, &contexts, body));
            }
            None => self.raise_system(unsendable(Misuse::MovedBody)),
        }
    }

    /// Answers with results, or a user exception, that `write` writes in their wire form.
    pub fn reply_with(
        self,
        is_user_exception: bool,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Misuse>,
    ) {
        let status = if is_user_exception { ReplyStatus::UserException } else { ReplyStatus::NoException };
        self.reply.answer_with(|responder| responder.written(status, write));
    }

    /// False when the client does not wait for the answer, so that the servant need not work it out.
    pub fn is_wanted(&self) -> bool {
        self.reply.is_wanted()
    }

    /// True once the client no longer waits, as with [`Reply::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.reply.is_cancelled()
    }

    /// Calls `then` when the client no longer waits, as [`Reply::on_cancel`] does.
    pub fn on_cancel(&self, then: impl FnOnce() + Send + 'static) {
        self.reply.on_cancel(then);
    }
}

/// Results that are to be sent.
struct Answer {
    description: Option<Arc<OperationDescription>>,
    result: Option<Any>,
    outs: Vec<Any>,
}

fn write_results(
    description: Option<&OperationDescription>,
    result: Option<&Any>,
    outs: &[Any],
    w: &mut Writer<'_>,
) -> Result<(), Misuse> {
    let Some(operation) = description else {
        return result.into_iter().chain(outs).try_for_each(|value| value.write_value(w));
    };
    match result {
        Some(value) if operation.has_result() => write_as(&operation.result, value, w)?,
        // An empty value may stand for no result.
        None if !operation.has_result() => {}
        Some(value) if value.is_empty() => {}
        _ => return Err(Misuse::WrongType),
    }
    if operation.returned().count() != outs.len() {
        return Err(Misuse::WrongType);
    }
    operation
        .returned()
        .zip(outs)
        .try_for_each(|((_, parameter), value)| write_as(&parameter.type_code, value, w))
}

fn write_as(declared: &TypeCode, value: &Any, w: &mut Writer<'_>) -> Result<(), Misuse> {
    if !fits(declared, value.type_code()) {
        return Err(Misuse::WrongType);
    }
    value.write_value(w)
}

/// An exception that a dynamic servant raises.
enum RaisedDynamically {
    User { id: String, members: Members },
    System(SystemException),
}

/// Makes the exception that the client gets.
fn raised(description: Option<&OperationDescription>, exception: &Any) -> RaisedDynamically {
    let type_code = exception.type_code();
    let id = match type_code.id() {
        Ok(id) if type_code.kind() == TcKind::Except => id,
        _ => "something that is no exception",
    };
    let is_declared = type_code.kind() == TcKind::Except
        && description.is_none_or(|operation| operation.exception(id).is_some());
    match is_declared {
        true => RaisedDynamically::User { id: id.to_owned(), members: Members(exception.clone()) },
        false => RaisedDynamically::System(undeclared(id)),
    }
}

impl From<SystemException> for RaisedDynamically {
    fn from(e: SystemException) -> Self {
        RaisedDynamically::System(e)
    }
}

impl OperationError for RaisedDynamically {
    /// Never called: only servants make such errors.
    fn from_user_exception(_: &str, _: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        Ok(None)
    }

    fn raised(&self) -> Raised<'_> {
        match self {
            RaisedDynamically::User { id, members } => Raised::User(id, members),
            RaisedDynamically::System(e) => Raised::System(e),
        }
    }
}

/// The members of an exception, without the repository id that precedes them in an `any`.
struct Members(Any);

impl Marshal for Members {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        let type_code = self.0.type_code();
        let mut r = self.0.reader();
        for index in 0..type_code.member_count().unwrap_or(0) {
            let member = type_code.member_type(index).map_err(|_| Misuse::BadTypeCode)?;
            copy_value(&mut r, w, &member).map_err(|error| match error {
                CopyError::Misuse(misuse) => misuse,
                CopyError::Malformed(_) => Misuse::WrongType,
            })?;
        }
        Ok(())
    }
}
