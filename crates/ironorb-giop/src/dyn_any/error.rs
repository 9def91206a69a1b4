//! Errors of operations on dynamic values. The caller is always at fault.

use std::fmt;

use crate::any::CopyError;
use crate::error::{Malformed, Misuse};

/// Why an operation on a [`DynAny`](super::DynAny) was refused. A refused operation changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The value or an argument has a type that the operation does not accept: the standard's `TypeMismatch`.
    TypeMismatch,
    /// The type is right but the value is not allowed there, or there is no current component: the standard's
    /// `InvalidValue`.
    InvalidValue,
    /// The type has no values that an `any` could contain (a native type, a local interface, `Principal`, a
    /// type not built yet), or only a program knows their content: the standard's `InconsistentTypeCode`.
    InconsistentTypeCode,
    /// The value is larger than [`DEFAULT_BYTES_MAX`](super::DEFAULT_BYTES_MAX) because of its type alone, or
    /// larger than the memory.
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
