//! The exceptions of CosNaming's operations, and the one table from the service's errors to them.

use ironorb::naming::cos_naming::naming_context::{
    self as nc, BindContextError, BindError, BindNewContextError, CannotProceed, DestroyError, NotFound,
    RebindContextError, RebindError, ResolveError, UnbindError,
};
use ironorb::naming::cos_naming::naming_context_ext::{
    self as ext, ResolveStrError, ToNameError, ToStringError, ToUrlError,
};
use ironorb::naming::{InvalidName, Name};
use ironorb::poa::PoaError;
use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

use super::Shared;
use crate::naming::{NamingError, NotFoundReason};

/// All exceptions of CosNaming. Each operation has some of them.
#[derive(Debug)]
pub(super) enum Fault {
    NotFound(NotFound),
    CannotProceed(CannotProceed),
    InvalidName(nc::InvalidName),
    AlreadyBound(nc::AlreadyBound),
    NotEmpty(nc::NotEmpty),
    InvalidAddress(ext::InvalidAddress),
    System(SystemException),
}

impl Fault {
    pub(super) fn bad_param(why: &'static str) -> Fault {
        system(SystemExceptionKind::BadParam, why.to_owned())
    }

    /// A reference in the store cannot be read. The checksum of its page should have prevented this.
    pub(super) fn damaged_reference() -> Fault {
        system(SystemExceptionKind::PersistStore, "the stored reference is damaged: bind it again".to_owned())
    }

    /// Converts an error of the service, and adds the references that the store does not have.
    pub(super) fn of(shared: &Shared, error: NamingError) -> Fault {
        match error {
            NamingError::NotFound { why, rest_of_name } => {
                Fault::NotFound(NotFound { why: reason(why), rest_of_name: components(rest_of_name) })
            }
            NamingError::CannotProceed { context, rest_of_name } => match shared.context_reference(context) {
                Ok(context) => Fault::CannotProceed(CannotProceed {
                    cxt: Some(context),
                    rest_of_name: components(rest_of_name),
                }),
                Err(e) => e.into(),
            },
            NamingError::InvalidName(_) => Fault::InvalidName(nc::InvalidName {}),
            NamingError::AlreadyBound => Fault::AlreadyBound(nc::AlreadyBound {}),
            NamingError::NotEmpty => Fault::NotEmpty(nc::NotEmpty {}),
            NamingError::InvalidAddress(_) => Fault::InvalidAddress(ext::InvalidAddress {}),
            other => Fault::System(system_exception(other)),
        }
    }
}

/// Converts errors that have no user exception in CosNaming.
pub(super) fn system_exception(error: NamingError) -> SystemException {
    let detail = error.to_string();
    let (kind, minor) = match error {
        NamingError::NoSuchContext(_) | NamingError::NoSuchIterator => {
            (SystemExceptionKind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT)
        }
        NamingError::BadParam(_) => (SystemExceptionKind::BadParam, MinorCode::NONE),
        NamingError::RootContext => (SystemExceptionKind::NoPermission, MinorCode::NONE),
        NamingError::Limit { .. } => (SystemExceptionKind::ImpLimit, MinorCode::NONE),
        NamingError::Store(_) => (SystemExceptionKind::PersistStore, MinorCode::NONE),
        // All other errors have user exceptions. They come here only from operations that cannot raise these.
        _ => (SystemExceptionKind::Internal, MinorCode::NONE),
    };
    SystemException::new(kind, minor, CompletionStatus::No).with_detail(detail)
}

pub(super) fn components(name: Name) -> Vec<ironorb::naming::cos_naming::NameComponent> {
    name.into_components().into_iter().map(Into::into).collect()
}

fn reason(why: NotFoundReason) -> nc::NotFoundReason {
    match why {
        NotFoundReason::MissingNode => nc::NotFoundReason::MissingNode,
        NotFoundReason::NotContext => nc::NotFoundReason::NotContext,
        NotFoundReason::NotObject => nc::NotFoundReason::NotObject,
    }
}

fn system(kind: SystemExceptionKind, detail: String) -> Fault {
    Fault::System(SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_detail(detail))
}

impl From<SystemException> for Fault {
    fn from(e: SystemException) -> Self {
        Fault::System(e)
    }
}

impl From<InvalidName> for Fault {
    fn from(_: InvalidName) -> Self {
        Fault::InvalidName(nc::InvalidName {})
    }
}

/// The adapter creates references until it is destroyed.
impl From<PoaError> for Fault {
    fn from(e: PoaError) -> Self {
        system(SystemExceptionKind::ObjAdapter, e.to_string())
    }
}

impl From<Fault> for SystemException {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::System(e) => e,
            // The service returns no such error for operations without user exceptions.
            _ => SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::No),
        }
    }
}

/// Converts between [`Fault`] and an operation's error, both ways: exceptions of a foreign context pass
/// through unchanged.
macro_rules! raises {
    ($($error:ident { $($exception:ident)* })*) => {$(
        impl From<$error> for Fault {
            fn from(e: $error) -> Self {
                match e {
                    $($error::$exception(e) => Fault::$exception(e),)*
                    $error::System(e) => Fault::System(e),
                }
            }
        }

        impl From<Fault> for $error {
            fn from(fault: Fault) -> Self {
                match fault {
                    $(Fault::$exception(e) => $error::$exception(e),)*
                    other => $error::System(other.into()),
                }
            }
        }
    )*};
}

raises! {
    BindError { NotFound CannotProceed InvalidName AlreadyBound }
    RebindError { NotFound CannotProceed InvalidName }
    BindContextError { NotFound CannotProceed InvalidName AlreadyBound }
    RebindContextError { NotFound CannotProceed InvalidName }
    ResolveError { NotFound CannotProceed InvalidName }
    UnbindError { NotFound CannotProceed InvalidName }
    BindNewContextError { NotFound CannotProceed InvalidName AlreadyBound }
    DestroyError { NotEmpty }
    ToStringError { InvalidName }
    ToNameError { InvalidName }
    ToUrlError { InvalidAddress InvalidName }
    ResolveStrError { NotFound CannotProceed InvalidName }
}
