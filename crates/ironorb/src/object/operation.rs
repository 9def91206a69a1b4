//! Operations, their errors, and what connects a typed reference with the servants of its interface.

use std::borrow::Cow;

use ironorb_giop::exception::SystemException;
use ironorb_giop::message::{OperationName, OperationTail};
use ironorb_giop::{Malformed, Marshal, Reader, Unmarshal};

use super::TypedRef;

/// An operation of an interface.
#[derive(Debug)]
pub struct Operation<'o> {
    name: &'o str,
    oneway: bool,
    /// It is said to be idempotent. Others are by their names.
    is_idempotent: bool,
    /// The name as a constant, if it is one, for uses that outlive the operation.
    constant: Option<&'static str>,
    /// The bytes of requests that begin with the name.
    tail: OperationTail,
}

impl Operation<'static> {
    /// An operation with a reply. `name` is the name on the wire, `_get_…` and `_set_…` for attributes.
    pub const fn twoway(name: &'static str) -> Self {
        Operation {
            name,
            oneway: false,
            is_idempotent: false,
            constant: Some(name),
            tail: OperationTail::new(name),
        }
    }

    /// An operation without a reply.
    pub const fn oneway(name: &'static str) -> Self {
        Operation {
            name,
            oneway: true,
            is_idempotent: false,
            constant: Some(name),
            tail: OperationTail::new(name),
        }
    }
}

impl<'o> Operation<'o> {
    /// An operation whose name is known only at run time.
    pub(crate) fn named(name: &'o str, oneway: bool) -> Self {
        Operation { name, oneway, is_idempotent: false, constant: None, tail: OperationTail::NONE }
    }

    /// The operation, which may be carried out twice: the object is then as if it had been carried out once (`@idempotent`).
    #[must_use]
    pub const fn idempotent(self) -> Self {
        self.idempotent_if(true)
    }

    /// The operation, which may be carried out twice if the condition holds.
    #[must_use]
    pub const fn idempotent_if(mut self, holds: bool) -> Self {
        self.is_idempotent |= holds;
        self
    }

    /// True when the operation may be carried out twice: where the IDL says so, where it reads an attribute, and for those of
    /// every object, such as `_is_a`.
    pub fn is_idempotent(&self) -> bool {
        self.is_idempotent || only_reads(self.name)
    }

    /// The name on the wire.
    #[inline]
    pub fn name(&self) -> &'o str {
        self.name
    }

    /// The name on the wire, where it is kept.
    #[inline]
    pub(crate) fn name_in_place(&self) -> &&'o str {
        &self.name
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

/// Whether an operation only reads, as its name says. No operation of an IDL begins with an underscore but those of attributes.
/// CORBA 3.3 part 2, 9.4.2.
fn only_reads(name: &str) -> bool {
    name.starts_with("_get_") || OF_EVERY_OBJECT.contains(&name)
}

const OF_EVERY_OBJECT: [&str; 6] =
    ["_is_a", "_non_existent", "_not_existent", "_interface", "_repository_id", "_component"];

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
