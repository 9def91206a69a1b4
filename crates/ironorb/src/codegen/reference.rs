//! The contents of typed references.

use std::fmt;
use std::hash::{Hash, Hasher};

use ironorb_giop::cdr::{MarshalNillable, Reader, UnmarshalNillable, Writer};
use ironorb_giop::{Malformed, Misuse};

use crate::object::lease::LeaseCell;
use crate::object::{ObjectRef, TypedRef};

/// The contents of a typed reference: the object, and its lease on a servant in this process, seen as the
/// interface `I`. Two are equal when their objects are equal. `P` is what it has of the object's cached state, if the interface
/// has one.
pub struct Reference<I: ?Sized, P = ()> {
    /// The object.
    pub object: ObjectRef,
    /// The lease on the servant, while the object is in this process.
    pub lease_cell: LeaseCell<I>,
    /// The place of its cached state.
    pub proxy: P,
}

impl<I: ?Sized, P: Default> Reference<I, P> {
    /// Makes a reference without a check of the object's interface.
    #[inline]
    pub fn new(object: ObjectRef) -> Self {
        Reference { object, lease_cell: LeaseCell::new(), proxy: P::default() }
    }
}

impl<I: ?Sized, P: Clone> Clone for Reference<I, P> {
    fn clone(&self) -> Self {
        let (object, lease_cell) = (self.object.clone(), self.lease_cell.clone());
        Reference { object, lease_cell, proxy: self.proxy.clone() }
    }
}

impl<I: ?Sized, P> fmt::Debug for Reference<I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

impl<I: ?Sized, P> PartialEq for Reference<I, P> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl<I: ?Sized, P> Eq for Reference<I, P> {}

impl<I: ?Sized, P> Hash for Reference<I, P> {
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
