//! A request that is built at run time (CORBA 3.3 part 1, 11.2).

use std::fmt;
use std::sync::Arc;

use ironorb_giop::any::Any;
use ironorb_giop::typecode::{TypeCode, TypeDef, Typed};
use ironorb_giop::{Marshal, Misuse, SystemException, Writer};

use super::argument::{Arguments, BorrowedValue, check_type, parameter};
use super::deferred::DeferredResponse;
use super::description::OperationDescription;
use super::error::{DynamicError, RequestError};
use super::results::{RawReply, Results};
use crate::base::probe::{self, Stage};
use crate::driver::blocking;
use crate::driver::client::asynchronous::AsyncCall;
use crate::driver::context::{Context, put_properties};
use crate::driver::counting;
use crate::driver::invoke::{self, about};
use crate::driver::loopback;
use crate::driver::written::writes_down;
use crate::object::ObjectRef;
use crate::object::operation::Operation;

/// A request to an object, for an operation that is described at run time (the standard's `Request` with its
/// `NVList`).
///
/// It can be sent any number of times, by any of the methods, also while earlier responses are still to come.
/// Arguments stay as they were set. The request keeps their marshalled bytes, and marshals again only
/// arguments that were set anew or moved by others of another length. It holds one copy of each argument's
/// bytes until it is dropped.
///
/// A value that two arguments share arrives as two values.
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
    /// Makes a request without arguments.
    pub fn new(target: &ObjectRef, operation: impl Into<Arc<OperationDescription>>) -> Self {
        let _probe = probe::enter(Stage::Populate);
        let operation = operation.into();
        let arguments = Arguments::new(&operation);
        Request { target: target.clone(), operation, arguments, context: None }
    }

    /// The target object.
    pub fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Sends to another object with the same operation from now on. The arguments stay.
    pub fn set_target(&mut self, target: &ObjectRef) {
        self.target = target.clone();
    }

    /// The operation.
    pub fn operation(&self) -> &Arc<OperationDescription> {
        &self.operation
    }

    /// Sets an argument to a copy of a value whose Rust type is equivalent to the parameter's. References of
    /// all interfaces are accepted. For an IDL type that Rust types do not express - `char`, a bound - use
    /// [`set_any`](Self::set_any) with [`Any::with_type`].
    pub fn set<T: Typed + Marshal + ?Sized>(&mut self, index: usize, value: &T) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        let type_code = self.check_sent(index, || T::TYPE.into())?;
        let unsendable = |misuse| {
            let name = self.operation.parameters[index].name.clone();
            RequestError::Unsendable { name, misuse }
        };
        let value = Any::new(value).map_err(unsendable)?;
        // The value gets the parameter's own type, which may have more names for its parts.
        let value = value.retyped(type_code).unwrap_or(value);
        self.arguments.own(index, value);
        Ok(())
    }

    /// Sets an argument to the value in an [`Any`], whose type must be equivalent to the parameter's. A
    /// reference of any interface may be passed for another. For a parameter of type `any` the [`Any`] must
    /// hold an `any`; see [`set`](Self::set).
    pub fn set_any(&mut self, index: usize, value: &Any) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || value.type_code().clone())?;
        self.arguments.copy(index, value.clone());
        Ok(())
    }

    /// Sets an argument by the parameter's name to the value in an [`Any`].
    pub fn set_named(&mut self, name: &str, value: &Any) -> Result<(), RequestError> {
        self.set_any(self.position(name)?, value)
    }

    /// Sets an argument to a sequence that the caller still owns. Nothing is copied before the request is
    /// sent.
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

    /// Sets an argument to a sequence of `char` that the caller still owns. In Rust these are octets.
    pub fn borrow_chars(&mut self, index: usize, chars: &'a [u8]) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || (&CHARS).into())?;
        self.arguments.borrow_elements(index, chars);
        Ok(())
    }

    /// Sets an argument to a value that the caller still owns. Nothing is copied before the request is sent.
    pub fn borrow_value<T: Typed + Marshal + Sync + ?Sized>(
        &mut self,
        index: usize,
        value: &'a T,
    ) -> Result<(), RequestError> {
        let _probe = probe::enter(Stage::Populate);
        self.check_sent(index, || T::TYPE.into())?;
        self.arguments.borrow(index, Box::new(BorrowedValue(value)));
        Ok(())
    }

    /// Sets an argument to the bytes that `value` marshals, for programs that know more than Rust's types and
    /// an [`Any`] express. The caller guarantees that these are the bytes of a value of the parameter's type;
    /// otherwise the server answers MARSHAL. They may be written more than once, in any encoding.
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

    /// Removes an argument. It must be set again before the request is sent.
    pub fn unset(&mut self, index: usize) -> Result<(), RequestError> {
        parameter(&self.operation, index)?;
        self.arguments.clear(index);
        Ok(())
    }

    /// Sets the properties for an operation with a `context` clause, in place of the thread's
    /// [current](Context::current) ones.
    pub fn set_context(&mut self, context: Context) {
        self.context = Some(context);
    }

    /// How many times an argument has been marshalled so far, by [`set`](Self::set) or for sending. Bytes
    /// that are reused from the last request or from an [`Any`] do not count.
    pub fn marshalled(&self) -> u64 {
        self.arguments.marshalled()
    }

    /// Calls the operation and waits for its results. A oneway waits as the policies say. Blocks until the
    /// deadline at most.
    pub fn invoke(&mut self) -> Result<Results, DynamicError> {
        if self.operation.oneway {
            self.send_oneway()?;
            return Ok(Results::nothing(&self.operation));
        }
        self.check()?;
        let name = self.operation.named(false);
        let reply = twoway(&self.target, &name, &|w| self.write(w))?;
        Results::of(&self.operation, reply)
    }

    /// Sends the request without a response, also when the operation has one. Waits as the policies say: see
    /// [`SyncScope`](crate::SyncScope).
    pub fn send_oneway(&mut self) -> Result<(), DynamicError> {
        self.check()?;
        let name = self.operation.named(true);
        Ok(oneway(&self.target, &name, &|w| self.write(w))?)
    }

    /// Sends the request, whose response the caller takes later. Borrowed values have been read when this
    /// returns. Blocks only while the server takes no bytes.
    pub fn send_deferred(&mut self) -> Result<DeferredResponse, DynamicError> {
        if self.operation.oneway {
            return Err(RequestError::NoResponse(self.operation.name.clone()).into());
        }
        self.check()?;
        let name = self.operation.named(false);
        let begin = || AsyncCall::begin(&self.target, &name, &|w| self.write(w));
        if writes_down() {
            return Ok(DeferredResponse::new(begin(), self.operation.clone()));
        }
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

    /// The type of a parameter that is sent, if a value of the given type may be passed for it.
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

/// Calls an operation whose types the caller does not know. `arguments` writes the request's body, perhaps
/// more than once, in the encoding of the connection. The reply holds the bytes of results or of a user
/// exception. Blocks until the deadline at most.
pub fn call_raw(
    target: &ObjectRef,
    operation: &str,
    arguments: &dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>,
) -> Result<RawReply, SystemException> {
    twoway(target, &Operation::named(operation, false), arguments)
}

/// Sends a oneway, or a request whose answer does not matter, without knowing its types. `arguments` writes
/// the body, perhaps more than once.
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
    let call = || match target.shared().observes_calls {
        true => counting::measured_twoway(target, operation, arguments),
        false => blocking::twoway(target, operation, arguments),
    };
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
    let call = || blocking::oneway(target, operation, arguments);
    let sent = match target.local(operation) {
        Ok(None) => call(),
        Ok(Some(upcall)) => loopback::with_begun(upcall, call),
        Err(e) => Err(e),
    };
    sent.map_err(|e| about(target, operation, e))
}
