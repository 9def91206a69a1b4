//! What an operation of the repository can answer instead of a result. Minor codes are the servant's work.

use ironorb::giop::typecode::BadType;

use crate::store_error::StoreError;

/// Why an operation was not done. Nothing has been changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// OBJECT_NOT_EXIST: the definition has been destroyed.
    #[error("the definition does not exist any more")]
    NoSuchDefinition,
    /// BAD_PARAM 2.
    #[error("the repository id `{0}` is in use")]
    IdInUse(String),
    /// BAD_PARAM 3.
    #[error("the name `{0}` is in use in this container")]
    NameInUse(String),
    /// BAD_PARAM 4.
    #[error("{0} cannot be defined in {1}")]
    NotAContainer(&'static str, &'static str),
    /// BAD_PARAM 5.
    #[error("the name `{0}` is inherited")]
    InheritedName(String),
    /// BAD_PARAM 31.
    #[error("a oneway operation has no result, no out parameters and no exceptions")]
    Oneway,
    /// BAD_INV_ORDER 1.
    #[error("`{0}` refers to the definition")]
    InUse(String),
    /// BAD_INV_ORDER 2.
    #[error("the repository and its basic types cannot be destroyed")]
    Permanent,
    /// BAD_PARAM or BAD_TYPECODE with the minor code of the TypeCode operations.
    #[error("{0}")]
    Type(#[from] BadType),
    /// BAD_PARAM: what is wrong with an argument.
    #[error("{0}")]
    BadParam(String),
    /// IMP_LIMIT.
    #[error("more than {max} {what}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// The bound.
        max: u64,
    },
    /// PERSIST_STORE.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn bad_param(why: impl Into<String>) -> RepositoryError {
    RepositoryError::BadParam(why.into())
}
