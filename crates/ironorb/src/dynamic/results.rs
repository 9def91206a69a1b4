//! The results of a dynamic call.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::any::{Any, copy_value};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{Message, RawBody, ReplyStatus, RequestId, write_raw_reply};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::typecode::{TypeCode, Typed};
use ironorb_giop::{Encoding, Malformed, Misuse, Reader, TransmissionCodeSets, Unmarshal, Version, Writer};

use super::argument::{check_type, parameter};
use super::description::OperationDescription;
use super::error::{DynamicError, RequestError};
use crate::base::probe::{self, Stage};
use crate::call::invocation::bad_reply;
use crate::driver::blocking::Answer;
use crate::driver::client::{Link, asynchronous};
use crate::driver::reference::ReplyEnvironment;
use crate::object::ObjectRef;

/// A reply whose body has not been read: results, or a user exception.
pub struct RawReply {
    /// `None` only during the drop.
    message: Option<Message>,
    body_at: usize,
    user_exception: bool,
    /// Takes the message's buffer back.
    link: Option<Arc<Link>>,
    /// The object whose server sent the reply.
    object: ObjectRef,
    /// Which server that was, if the object has several.
    server: Option<ReplyEnvironment>,
}

impl RawReply {
    pub(super) fn new(answer: Answer, object: &ObjectRef) -> Self {
        let Answer { message, link, body_at, user_exception, server } = answer;
        RawReply { message: Some(message), body_at, user_exception, link, object: object.clone(), server }
    }

    /// Makes a reply of a body: of results, or of a user exception. Its characters are in these code sets. `object` is that whose
    /// server has sent it. An error if the body does not fit a message.
    pub fn of_body(
        object: &ObjectRef,
        user_exception: bool,
        body: RawBody<'_>,
        code_sets: TransmissionCodeSets,
    ) -> Result<RawReply, Misuse> {
        let status = if user_exception { ReplyStatus::UserException } else { ReplyStatus::NoException };
        let mut bytes = Vec::with_capacity(32 + body.bytes.len());
        write_raw_reply(&mut bytes, Version::V1_2, RequestId(0), status, &[], body, usize::MAX)?;
        let message = Message::from_bytes(bytes, code_sets).map_err(|_| Misuse::TooLarge)?;
        let body_at = message.parse_reply().map_or(0, |reply| reply.body.position());
        let (link, server, object) = (None, None, object.clone());
        Ok(RawReply { message: Some(message), body_at, user_exception, link, object, server })
    }

    /// The code sets of its characters.
    pub fn code_sets(&self) -> TransmissionCodeSets {
        self.reader().encoding().code_sets()
    }

    pub(super) fn into_answer(mut self) -> asynchronous::Answer {
        let message = self.message.take().unwrap_or_default();
        asynchronous::Answer::of_other(message, (self.body_at, self.user_exception), self.link.take())
    }

    /// True when the body is a user exception: its repository id, then its members. Otherwise the body is the
    /// operation's result, then its out and inout parameters in order.
    pub fn is_user_exception(&self) -> bool {
        self.user_exception
    }

    /// The GIOP version of the reply.
    pub fn version(&self) -> Version {
        self.message.as_ref().map_or(Version::V1_2, |message| message.header().version)
    }

    /// The bytes of the body; `None` when it came in fragments of GIOP 1.1, each aligned by itself.
    pub fn body(&self) -> Option<RawBody<'_>> {
        self.message.as_ref()?.parse_reply().ok()?.body.raw()
    }

    pub(super) fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// A reader at the body.
    pub fn reader(&self) -> Reader<'_> {
        match &self.message {
            Some(message) => self.object.reader_of_reply(message, self.body_at, self.server.as_ref()),
            None => Reader::new(&[], Encoding::NATIVE),
        }
    }
}

impl Drop for RawReply {
    fn drop(&mut self) {
        if let (Some(link), Some(message)) = (self.link.take(), self.message.take()) {
            link.recycle(message);
        }
    }
}

impl fmt::Debug for RawReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawReply").field("user_exception", &self.user_exception).finish_non_exhaustive()
    }
}

/// The results of a dynamic call, in the reply's buffer. They are read on demand: all of them into [`Any`]s
/// at the first such request, or one directly into a Rust value.
pub struct Results {
    operation: Arc<OperationDescription>,
    /// `None` for a oneway.
    reply: Option<RawReply>,
    /// The result, if there is one, then the returned parameters.
    values: OnceCell<Vec<Any>>,
}

impl Results {
    /// Makes the results of a reply, or returns the exception in it.
    pub(super) fn of(operation: &Arc<OperationDescription>, reply: RawReply) -> Result<Self, DynamicError> {
        if reply.is_user_exception() {
            return Err(exception(operation, &reply));
        }
        Ok(Results { operation: operation.clone(), reply: Some(reply), values: OnceCell::new() })
    }

    /// Makes the results of a oneway.
    pub(super) fn nothing(operation: &Arc<OperationDescription>) -> Self {
        Results { operation: operation.clone(), reply: None, values: OnceCell::new() }
    }

    /// The operation that was called.
    pub fn operation(&self) -> &Arc<OperationDescription> {
        &self.operation
    }

    /// The operation's result; an empty [`Any`] if it has none.
    pub fn result(&self) -> Result<Any, DynamicError> {
        let values = self.values()?;
        Ok(if self.operation.has_result() { values[0].clone() } else { Any::default() })
    }

    /// The value of an out or inout parameter, by its index among all parameters.
    pub fn out(&self, index: usize) -> Result<Any, DynamicError> {
        let place = self.place(index)?;
        Ok(self.values()?[place].clone())
    }

    /// The value of an out or inout parameter, by its name.
    pub fn out_named(&self, name: &str) -> Result<Any, DynamicError> {
        let unknown = || RequestError::NoSuchName(name.to_owned());
        self.out(self.operation.position(name).ok_or_else(unknown)?)
    }

    /// The values of all returned parameters, with their names.
    pub fn outs(&self) -> Result<Vec<(&str, Any)>, DynamicError> {
        let values = &self.values()?[usize::from(self.operation.has_result())..];
        let names = self.operation.returned().map(|(_, parameter)| parameter.name.as_str());
        Ok(names.zip(values.iter().cloned()).collect())
    }

    /// The operation's result as a Rust value of an equivalent type, read directly from the reply.
    pub fn result_as<T: Typed + Unmarshal>(&self) -> Result<T, DynamicError> {
        let what = || format!("the result of {}", self.operation.name);
        check_type(what, &self.operation.result, &T::TYPE.into())?;
        match &self.reply {
            Some(reply) => {
                let _probe = probe::enter(Stage::Demarshal);
                Ok(reply.reader().get().map_err(bad_reply)?)
            }
            None => Err(RequestError::NoResponse(self.operation.name.clone()).into()),
        }
    }

    /// The value of an out or inout parameter as a Rust value of an equivalent type. Skips the values before
    /// it.
    pub fn out_as<T: Typed + Unmarshal>(&self, index: usize) -> Result<T, DynamicError> {
        let place = self.place(index)?;
        let parameter = &self.operation.parameters[index];
        check_type(|| parameter.name.clone(), &parameter.type_code, &T::TYPE.into())?;
        let Some(reply) = &self.reply else {
            return Err(RequestError::NoResponse(self.operation.name.clone()).into());
        };
        let _probe = probe::enter(Stage::Demarshal);
        let mut r = reply.reader();
        let mut stepped_over = Vec::new();
        for type_code in self.types().take(place) {
            stepped_over.clear();
            let mut w = Writer::new(&mut stepped_over, Encoding::NATIVE);
            if copy_value(&mut r, &mut w, type_code).is_err() {
                // Reports what is wrong with the value.
                self.values()?;
            }
        }
        Ok(r.get().map_err(bad_reply)?)
    }

    /// A reader at the results, for a program that reads them by itself.
    pub fn reader(&self) -> Reader<'_> {
        match &self.reply {
            Some(reply) => reply.reader(),
            None => Reader::new(&[], Encoding::NATIVE),
        }
    }

    fn values(&self) -> Result<&[Any], DynamicError> {
        if let Some(values) = self.values.get() {
            return Ok(values);
        }
        let Some(reply) = &self.reply else { return Ok(&[]) };
        let mut r = reply.reader();
        let read: Result<Vec<Any>, Malformed> =
            self.types().map(|type_code| Any::read_value(type_code.clone(), &mut r)).collect();
        let read = read.map_err(bad_reply)?;
        Ok(self.values.get_or_init(|| read))
    }

    fn types(&self) -> impl Iterator<Item = &TypeCode> {
        let result = self.operation.has_result().then_some(&self.operation.result);
        result.into_iter().chain(self.operation.returned().map(|(_, parameter)| &parameter.type_code))
    }

    /// The position of a parameter among the values of the reply.
    fn place(&self, index: usize) -> Result<usize, RequestError> {
        let wanted = parameter(&self.operation, index)?;
        if !wanted.mode.is_returned() {
            return Err(RequestError::NotReturned(wanted.name.clone()));
        }
        let before = self.operation.returned().take_while(|(at, _)| *at < index).count();
        Ok(usize::from(self.operation.has_result()) + before)
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("operation", &self.operation.name).finish_non_exhaustive()
    }
}

#[cold]
fn exception(operation: &OperationDescription, reply: &RawReply) -> DynamicError {
    let read = || -> Result<DynamicError, Malformed> {
        let id = reply.reader().read_str()?;
        match operation.exception(&id) {
            Some(declared) => Ok(DynamicError::User(Any::read_value(declared.clone(), &mut reply.reader())?)),
            None => Ok(undeclared(&id).into()),
        }
    };
    read().unwrap_or_else(|e| bad_reply(e).into())
}

/// Makes the exception for a user exception that the operation does not declare (CORBA 3.3 part 1, annex A:
/// UNKNOWN, minor code 1).
#[cold]
pub(super) fn undeclared(id: &str) -> SystemException {
    SystemException::new(
        SystemExceptionKind::Unknown,
        MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION,
        CompletionStatus::Maybe,
    )
    .with_detail(format!("the server raised {id}, which the operation does not declare"))
}
