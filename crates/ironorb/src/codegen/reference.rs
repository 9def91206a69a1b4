//! The contents of typed references.

use std::fmt;
use std::hash::{Hash, Hasher};

use ironorb_giop::cdr::{MarshalNillable, Reader, UnmarshalNillable, Writer};
use ironorb_giop::{Malformed, Misuse};

use crate::object::lease::LeaseCell;
use crate::object::{ObjectRef, TypedRef};

/// The contents of a typed reference: the object, and its lease on a servant in this process, seen as the
/// interface `I`. Two are equal when their objects are equal.
pub struct Reference<I: ?Sized> {
    /// The object.
    pub object: ObjectRef,
    /// The lease on the servant, while the object is in this process.
    pub lease_cell: LeaseCell<I>,
}

impl<I: ?Sized> Reference<I> {
    /// Makes a reference without a check of the object's interface.
    #[inline]
    pub fn new(object: ObjectRef) -> Self {
        Reference { object, lease_cell: LeaseCell::new() }
    }
}

impl<I: ?Sized> Clone for Reference<I> {
    fn clone(&self) -> Self {
        Reference { object: self.object.clone(), lease_cell: self.lease_cell.clone() }
    }
}

impl<I: ?Sized> fmt::Debug for Reference<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

impl<I: ?Sized> PartialEq for Reference<I> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl<I: ?Sized> Eq for Reference<I> {}

impl<I: ?Sized> Hash for Reference<I> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.object.hash(state);
    }
}

/// Writes a reference.
pub fn marshal_reference(object: &ObjectRef, w: &mut Writer<'_>) -> Result<(), Misuse> {
    object.marshal_some(w)
}

/// Writes a nil reference.
pub fn marshal_nil_reference(w: &mut Writer<'_>) -> Result<(), Misuse> {
    ObjectRef::marshal_nil(w)
}

/// Reads a reference. The peer is trusted that the object has the interface.
pub fn unmarshal_reference<R: TypedRef>(r: &mut Reader<'_>) -> Result<Option<R>, Malformed> {
    Ok(ObjectRef::unmarshal_nillable(r)?.map(R::from_object))
}

/// Makes a typed reference without a check of the object's interface.
///
/// Generated code calls it, and not [`TypedRef::from_object`]: the compiler proves with each use of a method of a
/// trait what the trait demands of the type.
pub fn reference_to<R: TypedRef>(object: ObjectRef) -> R {
    R::from_object(object)
}

/// A lower bound of the bytes that a reference takes.
pub const REFERENCE_BYTES_MIN: usize = ObjectRef::NIL_BYTES_MIN;
