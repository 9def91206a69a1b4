//! How a request ended, for client and server interceptors.

use ironorb_giop::exception::SystemException;

use super::{Interrupt, ReplyStatus};
use crate::object::ObjectRef;

/// How a request ended.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Results,
    /// The oneway has been sent; no reply is expected.
    Oneway,
    SystemException(SystemException),
    /// The user exception's repository id.
    UserException(String),
    Forward(ObjectRef),
    /// The request is sent again. Only clients see this outcome.
    Retry,
}

impl Outcome {
    pub(super) fn status(&self) -> ReplyStatus {
        match self {
            Outcome::Results | Outcome::Oneway => ReplyStatus::Successful,
            Outcome::SystemException(_) => ReplyStatus::SystemException,
            Outcome::UserException(_) => ReplyStatus::UserException,
            Outcome::Forward(_) => ReplyStatus::LocationForward,
            Outcome::Retry => ReplyStatus::TransportRetry,
        }
    }

    pub(super) fn system_exception(&self) -> Option<&SystemException> {
        match self {
            Outcome::SystemException(e) => Some(e),
            _ => None,
        }
    }

    pub(super) fn exception_id(&self) -> Option<&str> {
        match self {
            Outcome::SystemException(e) => Some(e.kind.repository_id()),
            Outcome::UserException(id) => Some(id),
            _ => None,
        }
    }

    pub(super) fn forward(&self) -> Option<&ObjectRef> {
        match self {
            Outcome::Forward(object) => Some(object),
            _ => None,
        }
    }
}

impl From<Interrupt> for Outcome {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::Raise(e) => Outcome::SystemException(e),
            Interrupt::Forward(object) => Outcome::Forward(object),
        }
    }
}
