//! Errors of the naming service's operations.
//!
//! The first group are the user exceptions of CosNaming. The others become system exceptions, named at each
//! variant. The servants choose the minor codes.

use super::binding::ContextId;
use super::url::InvalidAddress;
use crate::store_error::StoreError;
use ironorb::naming::{InvalidName, Name};

/// The reason why an operation failed. A failed operation has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// `CosNaming::NamingContext::NotFound`.
    #[error("`{rest_of_name}`: {why}")]
    NotFound {
        /// Why the first component of `rest_of_name` failed.
        why: NotFoundReason,
        /// The failed component and all components after it.
        rest_of_name: Name,
    },
    /// `CosNaming::NamingContext::CannotProceed`: the first component of `rest_of_name` is bound in `context` to a
    /// context of this service that has been destroyed.
    #[error(
        "the context bound as the first component of `{rest_of_name}` was destroyed: unbind it, or bind another"
    )]
    CannotProceed {
        /// The context with the dangling binding.
        context: ContextId,
        /// The failed component and all components after it.
        rest_of_name: Name,
    },
    /// `CosNaming::NamingContext::InvalidName`.
    #[error(transparent)]
    InvalidName(InvalidName),
    /// `CosNaming::NamingContext::AlreadyBound`.
    #[error("the name is bound already: unbind it first, or use rebind")]
    AlreadyBound,
    /// `CosNaming::NamingContext::NotEmpty`.
    #[error("the context holds bindings: unbind them before you destroy it")]
    NotEmpty,
    /// `CosNaming::NamingContextExt::InvalidAddress`.
    #[error(transparent)]
    InvalidAddress(InvalidAddress),

    /// `OBJECT_NOT_EXIST`: the context that was called does not exist, or was destroyed.
    #[error("naming context {0} does not exist")]
    NoSuchContext(ContextId),
    /// `OBJECT_NOT_EXIST`: the iterator was destroyed by a client, or reclaimed because there were more than
    /// [`Limits::iterators_max`](super::Limits::iterators_max).
    #[error("the binding iterator does not exist any more: list the context again")]
    NoSuchIterator,
    /// `BAD_PARAM`: an argument is invalid, for the given reason.
    #[error("bad parameter: {0}")]
    BadParam(&'static str),
    /// `NO_PERMISSION`: the root context cannot be destroyed, because every client starts there.
    #[error("the root context cannot be destroyed")]
    RootContext,
    /// `IMP_LIMIT`: a limit of [`Limits`](super::Limits) is reached.
    #[error("the limit {what} = {max} of the naming service is reached")]
    Limit {
        /// The field of `Limits`.
        what: &'static str,
        /// Its value.
        max: u64,
    },
    /// `PERSIST_STORE`: the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// `CosNaming::NamingContext::NotFoundReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotFoundReason {
    /// Nothing is bound to the component.
    MissingNode,
    /// The component is bound to an object where a context is needed.
    NotContext,
    /// The component is bound to a context where an object is needed.
    NotObject,
}

impl std::fmt::Display for NotFoundReason {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            NotFoundReason::MissingNode => "nothing is bound by the first component",
            NotFoundReason::NotContext => "the first component is bound to an object, not to a context",
            NotFoundReason::NotObject => "the first component is bound to a context, not to an object",
        })
    }
}
