//! What can go wrong with a dynamic value: always the caller's doing.

use std::fmt;

use crate::any::CopyError;
use crate::error::{Malformed, Misuse};

/// Why an operation on a [`DynAny`](super::DynAny) was refused. It changed nothing then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The operation is not for a value of this type, or what was given is of another: the standard's `TypeMismatch`.
    TypeMismatch,
    /// The type is right and the value is none that could stand there, or there is no current component: the standard's
    /// `InvalidValue`.
    InvalidValue,
    /// The type has no values that an `any` could hold - native, a local interface, `Principal`, still to be built -
    /// or only a program knows what is in them: the standard's `InconsistentTypeCode`.
    InconsistentTypeCode,
    /// The value is larger than [`DEFAULT_BYTES_MAX`](super::DEFAULT_BYTES_MAX) by its type alone, or than memory.
    TooLarge,
}

impl fmt::Display for DynAnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DynAnyError::TypeMismatch => "the value is of another type than the operation is for",
            DynAnyError::InvalidValue => {
                "the value cannot stand there, or nothing is at the current position"
            }
            DynAnyError::InconsistentTypeCode => "the type has no values that can be looked into",
            DynAnyError::TooLarge => "the value is larger than the limit",
        })
    }
}

impl std::error::Error for DynAnyError {}

impl From<Misuse> for DynAnyError {
    fn from(error: Misuse) -> Self {
        match error {
            Misuse::BadTypeCode => DynAnyError::InconsistentTypeCode,
            Misuse::TooLong | Misuse::TooLarge => DynAnyError::TooLarge,
            _ => DynAnyError::InvalidValue,
        }
    }
}

impl From<Malformed> for DynAnyError {
    fn from(_: Malformed) -> Self {
        DynAnyError::InvalidValue
    }
}

impl From<CopyError> for DynAnyError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Misuse(error) => error.into(),
            CopyError::Malformed(error) => error.into(),
        }
    }
}
