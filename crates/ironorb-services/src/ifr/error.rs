//! Errors of the repository's operations. The servants choose the minor codes.

use ironorb::giop::typecode::BadType;

use crate::store_error::StoreError;

/// The reason why an operation failed. A failed operation has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// OBJECT_NOT_EXIST: the definition has been destroyed.
    #[error("the definition does not exist any more")]
    NoSuchDefinition,
    /// BAD_PARAM 2: the repository id is in use.
    #[error("the repository id `{0}` is in use")]
    IdInUse(String),
    /// BAD_PARAM 3: the name is in use in the container.
    #[error("the name `{0}` is in use in this container")]
    NameInUse(String),
    /// BAD_PARAM 4: the container cannot contain a definition of this kind.
    #[error("{0} cannot be defined in {1}")]
    NotAContainer(&'static str, &'static str),
    /// BAD_PARAM 5: the name is inherited.
    #[error("the name `{0}` is inherited")]
    InheritedName(String),
    /// BAD_PARAM 31: a oneway operation has a result, out parameters or exceptions.
    #[error("a oneway operation has no result, no out parameters and no exceptions")]
    Oneway,
    /// BAD_INV_ORDER 1: another definition refers to the definition.
    #[error("`{0}` refers to the definition")]
    InUse(String),
    /// BAD_INV_ORDER 2: the repository and its basic types cannot be destroyed.
    #[error("the repository and its basic types cannot be destroyed")]
    Permanent,
    /// BAD_PARAM or BAD_TYPECODE with the minor code of the TypeCode operations.
    #[error("{0}")]
    Type(#[from] BadType),
    /// BAD_PARAM: an argument is wrong, for the given reason.
    #[error("{0}")]
    BadParam(String),
    /// IMP_LIMIT: a limit is reached.
    #[error("more than {max} {what}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The bound.
        max: u64,
    },
    /// PERSIST_STORE: the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn bad_param(why: impl Into<String>) -> RepositoryError {
    RepositoryError::BadParam(why.into())
}
