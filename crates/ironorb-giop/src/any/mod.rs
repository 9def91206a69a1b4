//! `any`: a value together with its type (CORBA 3.3 part 1, 7.11.1.9 and 8.2; on the wire part 2, 9.3.4).
//!
//! The value is kept as CDR in one form whatever encoding it came in: this processor's byte order, UTF-8 and
//! UTF-16 as in GIOP 1.2, aligned from its own start, padding zero. So an `any` outlives its message, can be passed on
//! without knowing the type at compile time, and costs a copy rather than a tree of objects.

use std::fmt;
use std::sync::Arc;

use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::typecode::{TcKind, TypeCode, Typed};
use crate::version::Encoding;

/// An IDL `any`: a value of any type, with its [`TypeCode`].
///
/// Cheap to clone: the value is shared. Two are equal when their types are `equal` and their values are the
/// same, numbers compared by their bits.
#[derive(Clone, Default)]
pub struct Any {
    type_code: TypeCode,
    /// The value in [`CANONICAL`] form from offset 0; empty for types without content.
    bytes: Arc<[u8]>,
}

/// The encoding of values inside an [`Any`].
pub const CANONICAL: Encoding = Encoding::NATIVE;

impl Any {
    /// An `any` of a value whose Rust type says which IDL type it is.
    pub fn new<T: Typed + Marshal + ?Sized>(value: &T) -> Result<Any, Misuse> {
        Any::with_type(T::TYPE, value)
    }

    /// An `any` of a value under a type that its Rust type does not tell: a `typedef`, `char` for a `u8`, a bounded
    /// string.
    pub fn with_type<T: Marshal + ?Sized>(type_code: impl Into<TypeCode>, value: &T) -> Result<Any, Misuse> {
        let type_code = type_code.into();
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, CANONICAL);
        if let (TcKind::Except, Ok(id)) = (type_code.resolved().kind(), type_code.resolved().id()) {
            w.write_str(id)?;
        }
        w.put(value)?;
        Ok(Any { type_code, bytes: bytes.into() })
    }

    /// The type of the value.
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// True for an `any` that holds nothing (`tk_null` or `tk_void`).
    pub fn is_empty(&self) -> bool {
        matches!(self.type_code.kind(), TcKind::Null | TcKind::Void)
    }

    /// The value, if its type is equivalent to that of `T`.
    pub fn extract<T: Typed + Unmarshal>(&self) -> Result<T, ExtractError> {
        self.extract_as(T::TYPE)
    }

    /// The value, if its type is equivalent to the one given, which `T` reads: what [`Any::with_type`] is for writing.
    pub fn extract_as<T: Unmarshal>(&self, type_code: impl Into<TypeCode>) -> Result<T, ExtractError> {
        if !self.type_code.equivalent(&type_code.into()) {
            return Err(ExtractError::WrongType);
        }
        let mut r = Reader::new(&self.bytes, CANONICAL);
        if self.type_code.resolved().kind() == TcKind::Except {
            r.read_str()?;
        }
        let value = r.get()?;
        if r.remaining() > 0 {
            return Err(r.malformed(MalformedKind::TrailingBytes).into());
        }
        Ok(value)
    }
}

/// A value cannot be had from an [`Any`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractError {
    /// The `any` holds a value of a type that is not equivalent.
    WrongType,
    /// The types are equivalent by their repository ids, but the sender's value is not one of the receiver's.
    Malformed(Malformed),
}

impl From<Malformed> for ExtractError {
    fn from(error: Malformed) -> Self {
        ExtractError::Malformed(error)
    }
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractError::WrongType => f.write_str("the any holds a value of another type"),
            ExtractError::Malformed(error) => write!(f, "the any's value is not of its type: {error}"),
        }
    }
}

impl std::error::Error for ExtractError {}
