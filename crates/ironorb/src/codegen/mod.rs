//! The module on which generated code is built; generated code names no other.
//!
//! Not for use by hand, except in bounds of generic code: its contents may change with the generator.

mod bits;
pub(crate) mod call;
mod codec;
mod errors;
mod interface_macros;
mod interpreted_macros;
mod macros;
pub(crate) mod operations;
mod reference;
mod remote_operation;
mod reply;
mod value_macros;
mod value_support;

pub use bits::*;
pub(crate) use call::in_upcall;
pub use call::{Call, Replied};
pub use codec::*;
pub use errors::*;
pub use interface_macros::*;
pub use macros::*;
pub use operations::*;
pub use reference::*;
pub use remote_operation::{
    Answer, Argument, ArgumentList, Borrowed, Checked, Copied, Elements, Lent, Nillable, Numbers, Octets,
    RemoteOperation, Text, WideText, deferred, numbers::*, skeleton, stub,
};
pub use reply::{Deferred, Reply};
pub use value_macros::*;
pub use value_support::*;

pub use crate::base::config::OperationLookup;
pub use crate::base::marshal_profile::Use;
pub use crate::driver::pending::Pending;
pub use crate::object::context::{get_context, pass_context, put_context};
pub use crate::object::lease::LeaseCell;
pub use crate::object::{ObjectRef, TypedRef, nil_reference};
pub use crate::orb::Orb;
pub use crate::poa::PoaError;
pub use ironorb_giop::any::{Any, ExtractError};
pub use ironorb_giop::cdr::{
    AnyBitPattern, Block, BlockLayout, BlockReader, BlockWriter, LongDouble, MarshalNillable,
    UnmarshalNillable, WString, WireImage, WireLayout, Zeroable, bounded, check_bound,
};
pub use ironorb_giop::fixed::Fixed;
pub use ironorb_giop::interpret::{self, Blank, Interpret, Label};
pub use ironorb_giop::typecode::{
    BadType, TypeCode, TypeDef, Typed, TypedNillable, ValueModifier, Visibility,
};
pub use ironorb_giop::url::UrlError;
pub use ironorb_giop::value::{self, Abstract, DerivesFrom, FormalValue, Link, Value, ValueBase, ValueType};
pub use ironorb_giop::{
    Malformed, MalformedKind, Marshal, Misuse, Reader, SystemException, Unmarshal, Writer,
};

use ironorb_giop::message::{OperationName, OperationTail};
use std::borrow::Cow;
pub use std::collections::BTreeMap;
use std::sync::Arc;

/// An operation of an interface.
#[derive(Debug)]
pub struct Operation<'o> {
    name: &'o str,
    oneway: bool,
    /// The name as a constant, if it is one, for uses that outlive the operation.
    constant: Option<&'static str>,
    /// The bytes of requests that begin with the name.
    tail: OperationTail,
}

impl Operation<'static> {
    /// An operation with a reply. `name` is the name on the wire, `_get_…` and `_set_…` for attributes.
    pub const fn twoway(name: &'static str) -> Self {
        Operation { name, oneway: false, constant: Some(name), tail: OperationTail::new(name) }
    }

    /// An operation without a reply.
    pub const fn oneway(name: &'static str) -> Self {
        Operation { name, oneway: true, constant: Some(name), tail: OperationTail::new(name) }
    }
}

impl<'o> Operation<'o> {
    /// An operation whose name is known only at run time.
    pub(crate) fn named(name: &'o str, oneway: bool) -> Self {
        Operation { name, oneway, constant: None, tail: OperationTail::NONE }
    }

    /// The name on the wire.
    #[inline]
    pub fn name(&self) -> &'o str {
        self.name
    }

    /// The name in the form with which a request is begun.
    #[inline]
    pub(crate) fn wire_name(&self) -> OperationName<'_> {
        OperationName::with_tail(self.name, &self.tail)
    }

    /// The name for a use that outlives the call; a copy if it is no constant.
    pub(crate) fn lasting_name(&self) -> Cow<'static, str> {
        match self.constant {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(self.name.to_owned()),
        }
    }

    /// True when the operation has no reply.
    pub fn is_oneway(&self) -> bool {
        self.oneway
    }
}

/// A typed reference to an object with the interface `I`, also as a base. It is the bound for code that is
/// generic over references to an interface. Generated types implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a servant of `{I}` nor a reference to an object that has it",
    label = "does not have the interface `{I}`",
    note = "a servant implements the interface's trait with every operation, and the traits of its base interfaces",
    note = "a servant that answers later implements the `Deferred` traits, and is activated as `Deferred(servant)`",
    note = "an untyped or a base reference becomes a typed one by `narrow`, as in `object.narrow::<AccountRef>()?`",
    note = "an `Option` of a reference may be nil: take the reference out of it first"
)]
pub trait RefTo<I: ?Sized>: TypedRef {
    /// Converts a servant of the reference's own interface to the interface `I`.
    fn widen(servant: &Self::Interface) -> &I;
}

#[diagnostic::do_not_recommend]
impl<R, I> RefTo<I> for R
where
    R: TypedRef + Widen<I, Derived = <R as TypedRef>::Interface>,
    I: ?Sized,
{
    #[inline(always)]
    fn widen(servant: &R::Interface) -> &I {
        <R as Widen<I>>::widen(servant)
    }
}

/// Converts servants of a typed reference's own interface to the interface `I`, which is the same or a base.
///
/// Generated types implement this trait instead of [`RefTo`], because it has no `Send` bound. The compiler takes
/// long to prove that bound for each implementation.
#[doc(hidden)]
pub trait Widen<I: ?Sized> {
    /// The reference's own interface.
    type Derived: ?Sized;

    /// Converts a servant.
    fn widen(servant: &Self::Derived) -> &I;
}

/// Connects an interface, `dyn Account`, with an implementation of its trait.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a servant of `{Self}`",
    label = "not a servant of this interface",
    note = "a servant implements the interface's trait with every operation, and the traits of its base interfaces",
    note = "a servant that answers later implements the `Deferred` traits, and is activated as `Deferred(servant)`"
)]
pub trait InterfaceOf<S>: 'static {
    /// The interface and all its bases, the most derived first.
    const REPOSITORY_IDS: &'static [&'static str];

    /// Carries out one request.
    fn dispatch(servant: &S, call: Call<'_>) -> Replied;

    /// Carries out one request, with the operation found by `lookup`. Interfaces without that lookup do as
    /// [`dispatch`](Self::dispatch).
    fn dispatch_by(lookup: OperationLookup, servant: &S, call: Call<'_>) -> Replied {
        let _ = lookup;
        Self::dispatch(servant, call)
    }

    /// Carries out a request for an operation that the interface itself declares, by its number. For derived
    /// interfaces.
    #[doc(hidden)]
    fn own(position: u16, servant: &S, call: Call<'_>) -> Replied;

    /// Offers the servant, as each of its interfaces, to a caller in the same process.
    fn provide(servant: &Arc<S>, slot: &mut LocalSlot<'_>);
}

/// The trait of servants of an interface that reply later, `dyn DeferredAccount`.
pub trait DeferredServant {
    /// Gives the servant a request for an operation that the interface itself declares, by its number.
    fn own(&self, position: u16, call: Call<'_>) -> Replied;
}

/// A user exception.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a user exception",
    note = "user exceptions are the structs that are generated from `exception` in IDL"
)]
pub trait UserException: std::error::Error + Marshal + Unmarshal {
    /// The exception's repository id.
    const REPOSITORY_ID: &'static str;
}

/// The error of an operation: one of its user exceptions or a system exception.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the error of an operation",
    note = "operations fail with the generated `…Error` of their `raises` clause, or with `SystemException` without one"
)]
pub trait OperationError: From<SystemException> {
    /// Reads the exception with this repository id; `None` when the operation does not declare it.
    fn from_user_exception(id: &str, r: &mut Reader<'_>) -> Result<Option<Self>, Malformed>;

    /// The exception in the form for a reply.
    fn raised(&self) -> Raised<'_>;
}

/// An exception that is to be written into a reply.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub enum Raised<'e> {
    /// The repository id and the members.
    User(&'e str, &'e dyn Marshal),
    /// A system exception.
    System(&'e SystemException),
}

/// The error of an operation without a raises clause.
impl OperationError for SystemException {
    fn from_user_exception(_: &str, _: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        Ok(None)
    }

    fn raised(&self) -> Raised<'_> {
        Raised::System(self)
    }
}

/// The slot into which a servant puts itself for a caller in this process that knows its interface.
#[allow(missing_debug_implementations)]
pub struct LocalSlot<'s>(&'s mut dyn std::any::Any);

impl<'s> LocalSlot<'s> {
    pub(crate) fn new<I: ?Sized + 'static>(slot: &'s mut Option<Arc<I>>) -> Self {
        LocalSlot(slot)
    }

    /// True when the caller asks for the interface `I` and the slot is empty.
    #[inline]
    pub fn wants<I: ?Sized + 'static>(&self) -> bool {
        self.0.downcast_ref::<Option<Arc<I>>>().is_some_and(Option::is_none)
    }

    /// Fills the slot, if the caller asks for the interface `I`.
    #[inline]
    pub fn put<I: ?Sized + 'static>(&mut self, servant: Arc<I>) {
        if let Some(slot) = self.0.downcast_mut::<Option<Arc<I>>>() {
            *slot = Some(servant);
        }
    }
}

/// A value of an IDL `native` type, which the process defines. Two values are equal when they are the same
/// object. It is never sent.
#[derive(Debug, Clone)]
pub struct Native(pub Arc<dyn std::any::Any + Send + Sync>);

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Native {}

impl std::hash::Hash for Native {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl Marshal for Native {
    fn marshal(&self, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Err(Misuse::LocalObject)
    }
}

impl Unmarshal for Native {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Err(r.malformed(MalformedKind::LocalObject))
    }
}

impl Interpret for Native {
    fn write_as(&self, _: interpret::Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(self)
    }

    fn read_as(&mut self, _: interpret::Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        *self = r.get()?;
        Ok(())
    }
}

impl Blank for Native {
    fn blank() -> Self {
        Native(Arc::new(()))
    }
}

/// The part of a scoped name behind the last `::`, the IDL name of an item.
pub const fn last_name(scoped: &'static str) -> &'static str {
    let bytes = scoped.as_bytes();
    let mut at = bytes.len();
    while at > 0 && bytes[at - 1] != b':' {
        at -= 1;
    }
    scoped.split_at(at).1
}
