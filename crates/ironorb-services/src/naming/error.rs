//! What an operation of the naming service can answer instead of a result.
//!
//! The first group are the user exceptions of CosNaming; the others are system exceptions, named at each variant.
//! Choosing minor codes and marshalling is the servant's work.

use super::binding::ContextId;
use super::url::InvalidAddress;
use crate::store_error::StoreError;
use ironorb::naming::{InvalidName, Name};

/// Why an operation was not done. Nothing has been changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// `CosNaming::NamingContext::NotFound`.
    #[error("`{rest_of_name}`: {why}")]
    NotFound {
        /// What is the matter with the first component of `rest_of_name`.
        why: NotFoundReason,
        /// The component that failed and all behind it.
        rest_of_name: Name,
    },
    /// `CosNaming::NamingContext::CannotProceed`: the first component of `rest_of_name` is bound in `context` to a
    /// context of this service that has been destroyed.
    #[error(
        "the context bound as the first component of `{rest_of_name}` was destroyed: unbind it, or bind another"
    )]
    CannotProceed {
        /// Where the dangling binding is.
        context: ContextId,
        /// The component that failed and all behind it.
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

    /// `OBJECT_NOT_EXIST`: the operation was called on a context that was destroyed or never was.
    #[error("naming context {0} does not exist")]
    NoSuchContext(ContextId),
    /// `OBJECT_NOT_EXIST`: the iterator was destroyed, or given up because more than
    /// [`Limits::iterators_max`](super::Limits::iterators_max) were alive.
    #[error("the binding iterator does not exist any more: list the context again")]
    NoSuchIterator,
    /// `BAD_PARAM`: the argument cannot be meant.
    #[error("bad parameter: {0}")]
    BadParam(&'static str),
    /// `NO_PERMISSION`: the root context is where every client starts.
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
    /// `PERSIST_STORE`: the change or the answer could not be had from the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// `CosNaming::NamingContext::NotFoundReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotFoundReason {
    /// Nothing is bound by that component.
    MissingNode,
    /// An object is bound where a context is needed.
    NotContext,
    /// A context is bound where an object is needed.
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
