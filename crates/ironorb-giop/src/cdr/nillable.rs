//! Types that have a nil on the wire: object references and values. In Rust, nil is `None`.

use super::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};

/// A type whose `Option` can be written.
pub trait MarshalNillable {
    /// Appends a value that is not nil.
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse>;

    /// Appends nil.
    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse>;
}

/// A type whose `Option` can be read.
pub trait UnmarshalNillable: Sized {
    /// A lower bound of the bytes of nil; see [`Unmarshal::BYTES_MIN`].
    const NIL_BYTES_MIN: usize;

    /// Reads a value or nil.
    fn unmarshal_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed>;
}

impl<T: MarshalNillable> MarshalNillable for &T {
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        (**self).marshal_some(w)
    }

    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse> {
        T::marshal_nil(w)
    }
}

impl<T: MarshalNillable> Marshal for Option<T> {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self {
            Some(value) => value.marshal_some(w),
            None => T::marshal_nil(w),
        }
    }
}

impl<T: UnmarshalNillable> Unmarshal for Option<T> {
    const BYTES_MIN: usize = T::NIL_BYTES_MIN;

    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::unmarshal_nillable(r)
    }
}
