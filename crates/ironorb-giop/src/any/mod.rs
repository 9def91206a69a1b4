//! `any`: a value together with its type (CORBA 3.3 part 1, 7.11.1.9 and 8.2; on the wire part 2, 9.3.4).
//!
//! The value is stored as CDR in one form, independent of the encoding that it came in: this processor's byte
//! order, UTF-8 and UTF-16 as in GIOP 1.2, aligned from its own start, with zeros for padding. So an `any`
//! outlives its message, can be passed on without knowing the type at compile time, and costs a copy rather
//! than a tree of objects.

mod codec;
mod content;
mod copy;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub(crate) use content::Content;
pub(crate) use copy::{CopyAgain, copy_again, find_case, read_label, shown_type, write_label};
pub use copy::{CopyError, READ_AGAIN_FREE, READ_AGAIN_MAX, copy_value};

use crate::cdr::{Environment, Marshal, Number, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::probe::{self, Stage};
use crate::typecode::{Shape, TcKind, TypeCode, Typed};
use crate::value::Needs;
use crate::version::Encoding;

use copy::Copy;

/// An IDL `any`: a value of any type, with its [`TypeCode`].
///
/// Cheap to clone, because clones share the value. Two are equal when their types are `equal` and their
/// values are the same. Numbers are compared by their bits and references by their bytes.
#[derive(Clone, Default)]
pub struct Any {
    type_code: TypeCode,
    /// The value in [`CANONICAL`] form from offset 0. An exception includes its repository id.
    content: Content,
}

/// The encoding of values inside an [`Any`].
pub const CANONICAL: Encoding = Encoding::NATIVE;

impl Any {
    /// An `any` of a value with the IDL type that belongs to its Rust type.
    pub fn new<T: Typed + Marshal + ?Sized>(value: &T) -> Result<Any, Misuse> {
        let type_code = TypeCode::for_type::<T>();
        let (bytes, environment) = write_value(&type_code, value)?;
        Ok(Any { type_code, content: Content::new(bytes, environment) })
    }

    /// An `any` of a value under a type that its Rust type does not determine: a `typedef`, `char` for a
    /// `u8`, a bounded string. [`Misuse::WrongType`] if the value is not of that type.
    pub fn with_type<T: Marshal + ?Sized>(type_code: impl Into<TypeCode>, value: &T) -> Result<Any, Misuse> {
        let type_code = type_code.into();
        let (written, environment) = write_value(&type_code, value)?;
        let mut r = encoded_reader(&written, environment.as_ref());
        let mut checked = Vec::with_capacity(written.len());
        let copied =
            Copy::new().value(&mut r, &mut Writer::new(&mut checked, CANONICAL), type_code.as_type_ref());
        match copied {
            Ok(()) if r.remaining() == 0 => {
                Ok(Any { type_code, content: Content::new(checked, environment) })
            }
            Err(CopyError::Misuse(error)) => Err(error),
            Ok(()) | Err(CopyError::Malformed(_)) => Err(Misuse::WrongType),
        }
    }

    /// Reads a value whose type is known from elsewhere, as dynamic invocation does.
    pub fn read_value(type_code: impl Into<TypeCode>, r: &mut Reader<'_>) -> Result<Any, Malformed> {
        codec::read_value(type_code.into(), r)
    }

    /// Appends the value without its type.
    pub fn write_value(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        codec::write_value(self, w)
    }

    /// The bytes that [`write_value`](Self::write_value) would write in this encoding, `phase` bytes behind a
    /// multiple of 8. Borrowed from the value; `None` where they would have to be converted.
    pub fn encoded_as(&self, encoding: Encoding, phase: usize) -> Option<&[u8]> {
        (encoding == CANONICAL && phase.is_multiple_of(8)).then_some(&*self.content)
    }

    /// The type of the value.
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// Returns the value under an equivalent type, for example with a `typedef` added or removed.
    /// [`Misuse::WrongType`] if the type is not equivalent. This is how the standard's `type` attribute is
    /// set.
    pub fn retyped(&self, type_code: impl Into<TypeCode>) -> Result<Any, Misuse> {
        let type_code = type_code.into();
        if !self.type_code.equivalent(&type_code) {
            return Err(Misuse::WrongType);
        }
        Ok(Any { type_code, ..self.clone() })
    }

    /// True for an `any` that holds nothing (`tk_null` or `tk_void`).
    pub fn is_empty(&self) -> bool {
        matches!(self.type_code.kind(), TcKind::Null | TcKind::Void)
    }

    /// The value, if its type is equivalent to that of `T`.
    pub fn extract<T: Typed + Unmarshal>(&self) -> Result<T, ExtractError> {
        self.extract_as(T::TYPE)
    }

    /// The value, if its type is equivalent to `type_code`, which `T` must be able to read. The counterpart
    /// of [`Any::with_type`].
    pub fn extract_as<T: Unmarshal>(&self, type_code: impl Into<TypeCode>) -> Result<T, ExtractError> {
        self.extract_with(&type_code.into(), |r| r.get())
    }

    /// The text of a string, borrowed.
    pub fn extract_str(&self) -> Result<&str, ExtractError> {
        match self.type_code.as_type_ref().resolved().shape() {
            Shape::String { .. } => match self.reader().read_str()? {
                Cow::Borrowed(text) => Ok(text),
                Cow::Owned(_) => Err(ExtractError::WrongType), // UTF-8 is never converted
            },
            _ => Err(ExtractError::WrongType),
        }
    }

    /// The elements of a sequence of numbers, borrowed unless their bytes are not aligned in memory. For a
    /// `sequence<octet>` use [`Any::extract_octets`].
    pub fn extract_numbers<T: Typed + Number>(&self) -> Result<Cow<'_, [T]>, ExtractError> {
        self.extract_with(&TypeCode::for_type::<[T]>(), Reader::read_numbers)
    }

    /// The elements of a `sequence<octet>`, borrowed.
    pub fn extract_octets(&self) -> Result<&[u8], ExtractError> {
        self.extract_with(&TypeCode::for_type::<[u8]>(), Reader::read_octets)
    }

    fn extract_with<'a, T>(
        &'a self,
        type_code: &TypeCode,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<T, ExtractError> {
        if !self.type_code.equivalent(type_code) {
            return Err(ExtractError::WrongType);
        }
        let _probe = probe::enter(Stage::Demarshal);
        let mut r = self.reader();
        let value = read(&mut r)?;
        if r.remaining() > 0 {
            return Err(r.malformed(MalformedKind::TrailingBytes).into());
        }
        Ok(value)
    }

    /// A reader at the value; for an exception at its members, behind the repository id. It is never larger
    /// than the value.
    pub fn reader(&self) -> Reader<'_> {
        let mut r = self.raw_reader();
        if is_exception(&self.type_code) {
            // This ORB has written the id, so it is present.
            let _ = r.read_str();
        }
        r
    }

    fn raw_reader(&self) -> Reader<'_> {
        encoded_reader(&self.content, self.content.environment())
    }

    /// The stored form of the value.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// An `any` of the stored form of a value of exactly this type.
    pub(crate) fn from_content(type_code: TypeCode, content: Content) -> Any {
        Any { type_code, content }
    }

    /// Sets the environment with which references and values inside are extracted; see
    /// [`Reader::environment`]. An `any` that was received or made from references has one already.
    #[must_use]
    pub fn with_environment(self, environment: Arc<dyn Environment>) -> Any {
        let mut needs = Needs::default();
        needs.note(&environment);
        if let Some(own) = self.content.environment() {
            needs.note(own);
        }
        let content = Content::new(self.content.to_vec(), needs.into_environment());
        Any { content, type_code: self.type_code }
    }
}

/// Two are equal if their types are equal and their values are the same. Values may be the same with
/// different bytes: TypeCodes inside may or may not use indirections.
impl PartialEq for Any {
    fn eq(&self, other: &Self) -> bool {
        if self.type_code != other.type_code {
            return false;
        }
        if *self.content == *other.content {
            return true;
        }
        let mut types = Vec::new();
        let mut comparable = |any: &Any| {
            let mut bytes = Vec::new();
            let mut copy = Copy::trusted();
            copy.types = Some(&mut types);
            let mut w = Writer::new(&mut bytes, CANONICAL);
            copy.value(&mut any.raw_reader(), &mut w, any.type_code.as_type_ref()).ok().map(|()| bytes)
        };
        match (comparable(self), comparable(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        }
    }
}

/// Why a value cannot be extracted from an [`Any`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractError {
    /// The `any` holds a value of a type that is not equivalent to the requested one.
    WrongType,
    /// The types are equivalent by their repository ids, but the sender's value is not a value of the
    /// receiver's type.
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

/// A value in [`CANONICAL`] form, and the environment of the references inside.
type Written = (Vec<u8>, Option<Arc<dyn Environment>>);

fn write_value<T: Marshal + ?Sized>(type_code: &TypeCode, value: &T) -> Result<Written, Misuse> {
    let _probe = probe::enter(Stage::Marshal);
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    let (resolved, shape) = type_code.as_type_ref().resolved_shape();
    if !matches!(shape, Shape::Basic(kind) if kind != TcKind::Any) {
        w.collect_environment();
    }
    if let (TcKind::Except, Some((id, _))) = (resolved.kind(), shape.id_and_name()) {
        w.write_str(id)?;
    }
    w.put(value)?;
    let environment = w.take_environment();
    Ok((bytes, environment))
}

fn encoded_reader<'a>(bytes: &'a [u8], environment: Option<&'a Arc<dyn Environment>>) -> Reader<'a> {
    let r = Reader::new(bytes, CANONICAL);
    match environment {
        Some(environment) => r.with_environment(&**environment),
        None => r,
    }
}

fn is_exception(type_code: &TypeCode) -> bool {
    type_code.as_type_ref().resolved().kind() == TcKind::Except
}

#[cfg(test)]
mod tests;
