//! The functions by which generated code makes the errors of operations.
//!
//! Generated code uses functions instead of `From` and `?`: the compiler has less to infer where a type is
//! named.

use std::error::Error;
use std::fmt;

use ironorb_giop::any::ExtractError;
use ironorb_giop::exception::{CompletionStatus, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::typecode::BadType;
use ironorb_giop::url::UrlError;
use ironorb_giop::{Malformed, Misuse, Reader, SystemException, Unmarshal, Writer};

use crate::poa::PoaError;

/// Reads the members of a user exception.
pub fn read_exception<X: Unmarshal, E>(
    r: &mut Reader<'_>,
    error: fn(X) -> E,
) -> Result<Option<E>, Malformed> {
    Ok(Some(error(r.get()?)))
}

/// Displays a user exception: its scoped name, and its members by name.
pub fn display_exception(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    members: &[(&str, &dyn fmt::Debug)],
) -> fmt::Result {
    f.write_str(name)?;
    for (at, (member, value)) in members.iter().enumerate() {
        let before = if at == 0 { " (" } else { ", " };
        write!(f, "{before}{member}: {value:?}")?;
    }
    f.write_str(if members.is_empty() { "" } else { ")" })
}

/// Displays the error of an operation as its exception, which is its source.
pub fn display_source(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    error.source().map_or(Ok(()), |exception| fmt::Display::fmt(exception, f))
}

/// The exception of an operation that a servant does not implement.
#[cold]
pub fn operation_left_out() -> SystemException {
    SystemException::new(
        SystemExceptionKind::NoImplement,
        MinorCode::OPERATION_LEFT_OUT,
        CompletionStatus::No,
    )
}

/// Reads a value that the interpreter handles as a whole.
#[inline]
pub fn read_whole<T: Unmarshal>(value: &mut T, r: &mut Reader<'_>) -> Result<(), Malformed> {
    *value = r.get()?;
    Ok(())
}

/// Writes a value that the interpreter handles as a whole.
#[inline]
pub fn write_whole<T: ironorb_giop::Marshal>(value: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.put(value)
}

macro_rules! as_system_exceptions {
    ($($name:ident: $error:ident;)*) => {
        /// Converts errors to system exceptions.
        pub mod system {
            use super::*;

            $(
                /// Converts the error to a system exception.
                pub fn $name(error: $error) -> SystemException {
                    error.into()
                }
            )*
        }
    };
}

as_system_exceptions! {
    misuse: Misuse;
    malformed: Malformed;
    extract: ExtractError;
    bad_type: BadType;
    url: UrlError;
    poa: PoaError;
}
