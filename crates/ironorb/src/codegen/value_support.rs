//! The functions that the macros of valuetypes call, and the traits by which they find out what a program's
//! structs implement.

use std::marker::PhantomData;

use ironorb_giop::exception::{CompletionStatus, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::value::{CustomMarshal, DataInput, DataOutput, ValueInfo};
use ironorb_giop::{Malformed, MalformedKind, Misuse, Reader, SystemException, Writer};

/// A struct that holds the state of `T`: it is `T`, or inherits from it.
pub trait StateOf<T> {
    /// The state of `T`.
    fn state_of(&self) -> &T;
}

/// A struct whose values may be seen as a trait.
pub trait SeenAs<T: ?Sized + 'static>: Sized {
    /// The view, if the struct or a base implements the trait.
    const SEEN: Option<Seen<Self, T>>;
}

/// A function from a state to a trait object of it or of its base; `None` when there is none.
pub type Seen<S, T> = for<'a> fn(&'a S) -> Option<&'a T>;

/// The struct of a `custom` valuetype. Its own functions exist when the struct implements [`CustomMarshal`].
/// They take precedence over those of [`NotCustom`], which exist for every struct.
#[derive(Debug)]
pub struct MayBeCustom<T>(PhantomData<T>);

impl<T: CustomMarshal> MayBeCustom<T> {
    /// Writes the state by the program's own code.
    pub fn marshal(state: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
        state.marshal(&mut DataOutput::new(w))
    }

    /// Reads the state by the program's own code.
    pub fn unmarshal(r: &mut Reader<'_>) -> Result<T, Malformed> {
        T::unmarshal(&mut DataInput::new(r))
    }
}

/// Refuses a struct that has no marshalling code of its own, in place of [`MayBeCustom`].
pub trait NotCustom<T> {
    /// Always fails with [`Misuse::NoCustomMarshal`].
    fn marshal(_: &T, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Err(Misuse::NoCustomMarshal)
    }

    /// Always fails with [`MalformedKind::NoValueFactory`].
    fn unmarshal(r: &mut Reader<'_>) -> Result<T, Malformed> {
        Err(r.malformed(MalformedKind::NoValueFactory))
    }
}

impl<T> NotCustom<T> for MayBeCustom<T> {}

/// Ends a member of a state. A member that is not one number may end in an array; see
/// [`Writer::end_long_member`].
#[inline]
pub fn end_member<T>(_: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let is_number = const { size_of::<T>() <= 8 && !std::mem::needs_drop::<T>() };
    if is_number { Ok(()) } else { w.end_long_member() }
}

/// The exception of a valuetype's operations when its type does not implement them.
#[cold]
pub fn not_implemented(info: &ValueInfo) -> SystemException {
    let e = SystemException::new(
        SystemExceptionKind::NoImplement,
        MinorCode::NO_IMPLEMENT_VALUE,
        CompletionStatus::No,
    );
    e.with_detail(format!("the struct of {} does not implement the trait of its operations", info.id))
}
