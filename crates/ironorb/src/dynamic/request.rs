//! A request that is built at run time (CORBA 3.3 part 1, 11.2).

use std::fmt;
use std::sync::Arc;

use ironorb_giop::any::Any;
use ironorb_giop::typecode::{TypeCode, TypeDef, Typed};
use ironorb_giop::{Marshal, Misuse, SystemException, Writer};

use super::argument::{Arguments, Lent, check_type, parameter};
use super::deferred::DeferredResponse;
use super::description::OperationDescription;
use super::error::{DynamicError, RequestError};
use super::results::{RawReply, Results};
use crate::client::asynchronous::AsyncCall;
use crate::context::{Context, put_properties};
use crate::generated::Operation;
use crate::invoke::{self, about};
use crate::loopback;
use crate::object::ObjectRef;
use crate::probe::{self, Stage};
use crate::remote_call::RemoteCall;

/// A request to an object, for an operation that is described at run time (the standard's `Request` with its `NVList`).
///
/// It can be sent any number of times, in any of the ways, also while earlier responses are still to come. Arguments stay
/// as they were set: their marshalled bytes are kept, and only those set anew since, or moved by others of another
/// length, are marshalled again. What is kept is one copy of each argument's bytes, until the request is dropped.
///
/// Values that are shared between two arguments arrive as two.
///
/// ```no_run
/// use std::sync::Arc;
/// use ironorb::dynamic::{DynamicError, OperationDescription, ParameterMode, Request};
/// use ironorb::{Orb, TypeDef};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let orb = Orb::builder().no_endpoint().build()?;
/// let calculator = orb.string_to_object("corbaloc::localhost:2809/calculator")?;
/// let add = OperationDescription::new("add")
///     .parameter("a", ParameterMode::In, &TypeDef::Long)
///     .parameter("b", ParameterMode::In, &TypeDef::Long)
///     .returns(&TypeDef::Long);
/// let mut request = Request::new(&calculator, Arc::new(add));
/// request.set(0, &1i32)?;
/// request.set(1, &2i32)?;
/// let sum: i32 = request.invoke()?.result_as()?;
/// # Ok(()) }
/// ```
pub struct Request<'a> {
    target: ObjectRef,
    operation: Arc<OperationDescription>,
    arguments: Arguments<'a>,
    context: Option<Context>,
}

impl<'a> Request<'a> {
    /// A request without arguments yet.
    pub fn new(target: &ObjectRef, operation: impl Into<Arc<OperationDescription>>) -> Self {
        let _probe = probe::enter(Stage::Populate);
        let operation = operation.into();
        let arguments = Arguments::new(&operation);
        Request { target: target.clone(), operation, arguments, context: None }
    }

    /// The object.
    pub fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Sends from now on to another object with the same operation; arguments stay.
    pub fn set_target(&mut self, target: &ObjectRef) {
        self.target = target.clone();
    }

    /// The operation.
    pub fn operation(&self) -> &Arc<OperationDescription> {
        &self.operation
    }

    /// Sets an argument to a copy of a value whose Rust type is equivalent to the parameter's. References of all
    /// interfaces are taken. For a type that Rust does not tell - `char`, a bound - there is
    /// [`set_any`](Self::set_any) with [`Any::with_type`].
    pub fn set<T: Typed + Marshal + ?Sized>(&mut self, index: usize, value: &T) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        let type_code = self.check_sent(index, || T::TYPE.into())?;
        let unsendable = |misuse| {
            let name = self.operation.parameters[index].name.clone();
            RequestError::Unsendable { name, misuse }
        };
        let value = Any::new(value).map_err(unsendable)?;
        // Under the parameter's own type, which may name more of what is in it.
        let value = value.retyped(type_code).unwrap_or(value);
        self.arguments.own(index, value);
        Ok(())
    }

    /// Sets an argument to the value in an [`Any`], whose type must be equivalent to the parameter's; a reference of
    /// whatever interface for another. For a parameter of type `any` it is an `any` in an [`Any`]: see
    /// [`set`](Self::set).
    pub fn set_any(&mut self, index: usize, value: &Any) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || value.type_code().clone())?;
        self.arguments.copy(index, value.clone());
        Ok(())
    }

    /// The same by the parameter's name.
    pub fn set_named(&mut self, name: &str, value: &Any) -> Result<(), RequestError> {
        self.set_any(self.position(name)?, value)
    }

    /// Sets an argument to a sequence that stays where it is: nothing is copied before the request is sent.
    pub fn borrow<T: Typed + Marshal + Sync>(
        &mut self,
        index: usize,
        elements: &'a [T],
    ) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || <[T]>::TYPE.into())?;
        self.arguments.borrow_elements(index, elements);
        Ok(())
    }

    /// The same for a sequence of `char`, which to Rust are octets.
    pub fn borrow_chars(&mut self, index: usize, chars: &'a [u8]) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || (&CHARS).into())?;
        self.arguments.borrow_elements(index, chars);
        Ok(())
    }

    /// Sets an argument to a value that stays where it is: nothing is copied before the request is sent.
    pub fn borrow_value<T: Typed + Marshal + Sync + ?Sized>(
        &mut self,
        index: usize,
        value: &'a T,
    ) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || T::TYPE.into())?;
        self.arguments.borrow(index, Box::new(Lent(value)));
        Ok(())
    }

    /// Sets an argument to whatever `value` marshals: for who knows better than Rust's types and an [`Any`]. It is the caller's
    /// word that these are the bytes of a value of the parameter's type; a server that finds them to be others answers
    /// MARSHAL. They may be written more than once, in any encoding.
    pub fn set_unchecked(
        &mut self,
        index: usize,
        value: Box<dyn Marshal + Send + Sync + 'a>,
    ) -> Result<(), RequestError> {
        let parameter = parameter(&self.operation, index)?;
        if !parameter.mode.is_sent() {
            return Err(RequestError::NotSent(parameter.name.clone()));
        }
        self.arguments.borrow(index, value);
        Ok(())
    }

    /// Takes an argument back; it must be set again before the request is sent.
    pub fn unset(&mut self, index: usize) -> Result<(), RequestError> {
        parameter(&self.operation, index)?;
        self.arguments.clear(index);
        Ok(())
    }

    /// The properties for an operation with a `context` clause, instead of the thread's [current](Context::current).
    pub fn set_context(&mut self, context: Context) {
        self.context = Some(context);
    }

    /// How many times an argument has been marshalled so far, by [`set`](Self::set) or for sending. Taking one over from
    /// the last request, or as it lies in an [`Any`], is not.
    pub fn marshalled(&self) -> u64 {
        self.arguments.marshalled()
    }

    /// Calls the operation and waits for its results; of a oneway it waits for what the policies say. Blocks until the
    /// deadline at most.
    pub fn invoke(&mut self) -> Result<Results, DynamicError> {
        if self.operation.oneway {
            self.send_oneway()?;
            return Ok(Results::nothing(&self.operation));
        }
        self.check()?;
        let name = Operation::named(&self.operation.name, false);
        let reply = twoway(&self.target, &name, &|w| self.write(w))?;
        Results::of(&self.operation, reply)
    }

    /// Sends the request and hears nothing more of it, also where the operation would answer. Waits for what the
    /// policies say: see [`SyncScope`](crate::SyncScope).
    pub fn send_oneway(&mut self) -> Result<(), DynamicError> {
        self.check()?;
        let name = Operation::named(&self.operation.name, true);
        Ok(oneway(&self.target, &name, &|w| self.write(w))?)
    }

    /// Sends the request and lets the caller ask for the response later. What was borrowed has been read when this
    /// returns. Blocks only while the server takes no bytes.
    pub fn send_deferred(&mut self) -> Result<DeferredResponse, DynamicError> {
        if self.operation.oneway {
            return Err(RequestError::NoResponse(self.operation.name.clone()).into());
        }
        self.check()?;
        let name = Operation::named(&self.operation.name, false);
        let begin = || AsyncCall::begin(&self.target, &name, &|w| self.write(w));
        let call = match self.target.local(&name).map_err(|e| about(&self.target, &name, e))? {
            None => begin(),
            Some(upcall) => loopback::with_begun(upcall, begin),
        };
        Ok(DeferredResponse::new(call, self.operation.clone()))
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        self.arguments.write(w)?;
        if self.operation.contexts.is_empty() {
            return Ok(());
        }
        let patterns: Vec<&str> = self.operation.contexts.iter().map(String::as_str).collect();
        let properties = match &self.context {
            Some(context) => context.matching(&patterns),
            None => Context::current().matching(&patterns),
        };
        put_properties(&properties, w)
    }

    fn check(&self) -> Result<(), RequestError> {
        let operation = &*self.operation;
        let returns = operation.has_result()
            || operation.returned().next().is_some()
            || !operation.exceptions.is_empty();
        if operation.oneway && returns {
            return Err(RequestError::OnewayReturns(operation.name.clone()));
        }
        self.arguments.check(operation)
    }

    /// The type of a parameter that is sent, if a value of another type may be passed for it.
    fn check_sent(&self, index: usize, given: impl FnOnce() -> TypeCode) -> Result<TypeCode, RequestError> {
        let parameter = parameter(&self.operation, index)?;
        if !parameter.mode.is_sent() {
            return Err(RequestError::NotSent(parameter.name.clone()));
        }
        check_type(|| parameter.name.clone(), &parameter.type_code, &given())?;
        Ok(parameter.type_code.clone())
    }

    fn position(&self, name: &str) -> Result<usize, RequestError> {
        self.operation.position(name).ok_or_else(|| RequestError::NoSuchName(name.to_owned()))
    }
}

const CHARS: TypeDef = TypeDef::Sequence { element: &TypeDef::Char, bound: 0 };

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("target", &self.target)
            .field("operation", &self.operation.name)
            .finish_non_exhaustive()
    }
}

/// Calls an operation whose types the caller does not know: `arguments` writes the request's body, perhaps more than
/// once, in whatever encoding the connection has. What comes back are the bytes of results or of a user exception.
/// Blocks until the deadline at most.
pub fn call_raw(
    target: &ObjectRef,
    operation: &str,
    arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<RawReply, SystemException> {
    twoway(target, &Operation::named(operation, false), arguments)
}

/// The same for a oneway, or where the answer does not matter.
pub fn send_raw(
    target: &ObjectRef,
    operation: &str,
    arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<(), SystemException> {
    oneway(target, &Operation::named(operation, true), arguments)
}

fn twoway(
    target: &ObjectRef,
    operation: &Operation<'_>,
    arguments: invoke::Arguments<'_>,
) -> Result<RawReply, SystemException> {
    let _probe = probe::enter(Stage::Call);
    let call = || RemoteCall::twoway(target, operation, arguments);
    let answer = match target.local(operation) {
        Ok(None) => call(),
        Ok(Some(upcall)) => loopback::with_begun(upcall, call),
        Err(e) => Err(e),
    };
    match answer {
        Ok(answer) => Ok(RawReply::new(answer, target)),
        Err(e) => Err(about(target, operation, e)),
    }
}

fn oneway(
    target: &ObjectRef,
    operation: &Operation<'_>,
    arguments: invoke::Arguments<'_>,
) -> Result<(), SystemException> {
    let _probe = probe::enter(Stage::Call);
    let call =
        || RemoteCall::begin(target, operation, arguments).and_then(|mut remote_call| remote_call.oneway());
    let sent = match target.local(operation) {
        Ok(None) => call(),
        Ok(Some(upcall)) => loopback::with_begun(upcall, call),
        Err(e) => Err(e),
    };
    sent.map_err(|e| about(target, operation, e))
}
