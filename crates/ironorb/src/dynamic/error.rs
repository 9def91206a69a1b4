//! The errors of dynamic calls, by fault.

use std::fmt;

use ironorb_giop::Misuse;
use ironorb_giop::any::Any;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

/// The reason why a dynamic call gave no results.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DynamicError {
    /// The object raised a user exception that the operation declares.
    User(Any),
    /// The call failed, or the object raised a system exception. A user exception that the operation does not
    /// declare becomes UNKNOWN (CORBA 3.3 part 1, annex A).
    System(SystemException),
    /// The caller made a mistake. Nothing was sent.
    Request(RequestError),
}

/// A mistake of the caller in a dynamic call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The operation has no parameter with this index.
    NoSuchParameter {
        /// The index that was asked for, counted from 0.
        index: usize,
        /// The number of parameters.
        count: usize,
    },
    /// The operation has no parameter with this name.
    NoSuchName(String),
    /// An argument that must be sent has not been set.
    MissingArgument {
        /// The parameter's index.
        index: usize,
        /// The parameter's name.
        name: String,
    },
    /// A value has another type than the parameter or the result.
    WrongType {
        /// The parameter or the result.
        of: String,
        /// The declared type.
        expected: String,
        /// The type that was given or asked for.
        given: String,
    },
    /// A value was set for an `out` parameter, which is never sent.
    NotSent(String),
    /// A value was asked for of an `in` parameter, which is never returned.
    NotReturned(String),
    /// A value cannot be sent to any peer.
    Unsendable {
        /// The parameter.
        name: String,
        /// The reason.
        misuse: Misuse,
    },
    /// A oneway was described with a result, with returned parameters, or with exceptions.
    OnewayReturns(String),
    /// A response was asked for, but the operation is oneway.
    NoResponse(String),
    /// The response has not come yet.
    NotYet,
    /// The response has been taken already.
    Taken,
}

impl std::error::Error for DynamicError {}

impl fmt::Display for DynamicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DynamicError::User(exception) => {
                write!(f, "the object raised {}", exception.type_code().id().unwrap_or("a user exception"))
            }
            DynamicError::System(e) => e.fmt(f),
            DynamicError::Request(e) => e.fmt(f),
        }
    }
}

impl From<SystemException> for DynamicError {
    fn from(e: SystemException) -> Self {
        DynamicError::System(e)
    }
}

impl From<RequestError> for DynamicError {
    fn from(e: RequestError) -> Self {
        DynamicError::Request(e)
    }
}

impl std::error::Error for RequestError {}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::NoSuchParameter { index, count } => {
                write!(f, "parameter {index} of an operation that has {count}")
            }
            RequestError::NoSuchName(name) => write!(f, "the operation has no parameter {name}"),
            RequestError::MissingArgument { name, .. } => write!(f, "the argument {name} has not been set"),
            RequestError::WrongType { of, expected, given } => {
                write!(f, "{of} is of type {expected}, not {given}")
            }
            RequestError::NotSent(name) => write!(f, "{name} is an out parameter, which is not sent"),
            RequestError::NotReturned(name) => {
                write!(f, "{name} is an in parameter, which does not come back")
            }
            RequestError::Unsendable { name, misuse } => write!(f, "{name} cannot be sent: {misuse}"),
            RequestError::OnewayReturns(name) => {
                write!(f, "{name} is oneway, and so cannot have results or exceptions")
            }
            RequestError::NoResponse(name) => write!(f, "{name} is oneway, and so has no response"),
            RequestError::NotYet => f.write_str("the response has not come yet"),
            RequestError::Taken => f.write_str("the response has been taken already"),
        }
    }
}

/// Makes the exception that a servant raises to its own caller when it passes a call on and gets this error
/// (BAD_PARAM or BAD_INV_ORDER).
impl From<RequestError> for SystemException {
    fn from(e: RequestError) -> Self {
        let kind = match e {
            RequestError::NotYet | RequestError::Taken | RequestError::NoResponse(_) => {
                SystemExceptionKind::BadInvOrder
            }
            _ => SystemExceptionKind::BadParam,
        };
        SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_detail(e.to_string())
    }
}
