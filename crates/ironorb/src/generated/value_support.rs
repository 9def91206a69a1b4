//! What the macros of valuetypes call, and the questions that they ask of the structs: whether these implement what
//! a program may leave out.

use std::marker::PhantomData;

use ironorb_giop::exception::{CompletionStatus, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::value::{CustomMarshal, DataInput, DataOutput, ValueInfo};
use ironorb_giop::{Malformed, MalformedKind, Misuse, Reader, SystemException, Writer};

/// A struct that holds the state of `T`: it is one, or inherits from one.
pub trait StateOf<T> {
    /// The state of `T`.
    fn state_of(&self) -> &T;
}

/// A struct whose values may be seen by a trait.
pub trait SeenAs<T: ?Sized + 'static>: Sized {
    /// How, if its own type or that of a base implements the trait.
    const SEEN: Option<Seen<Self, T>>;
}

/// The way from a state to a trait object of it or of its base; it has an end wherever there is one.
pub type Seen<S, T> = for<'a> fn(&'a S) -> Option<&'a T>;

/// The struct of a `custom` valuetype. Its own functions are there when the struct implements [`CustomMarshal`], and go
/// before those of [`NotCustom`], which are there for any.
#[derive(Debug)]
pub struct MayBeCustom<T>(PhantomData<T>);

impl<T: CustomMarshal> MayBeCustom<T> {
    /// Writes the state as the program says.
    pub fn marshal(state: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
        state.marshal(&mut DataOutput::new(w))
    }

    /// Reads the state as the program says.
    pub fn unmarshal(r: &mut Reader<'_>) -> Result<T, Malformed> {
        T::unmarshal(&mut DataInput::new(r))
    }
}

/// What [`MayBeCustom`] does for a struct that does not say how it travels: refuses.
pub trait NotCustom<T> {
    /// [`Misuse::NoCustomMarshal`]
    fn marshal(_: &T, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Err(Misuse::NoCustomMarshal)
    }

    /// [`MalformedKind::NoValueFactory`]
    fn unmarshal(r: &mut Reader<'_>) -> Result<T, Malformed> {
        Err(r.malformed(MalformedKind::NoValueFactory))
    }
}

impl<T> NotCustom<T> for MayBeCustom<T> {}

/// After each member of a state: what is not one number may end in an array; see [`Writer::end_long_member`].
#[inline]
pub fn end_member<T>(_: &T, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let is_number = const { size_of::<T>() <= 8 && !std::mem::needs_drop::<T>() };
    if is_number { Ok(()) } else { w.end_long_member() }
}

/// What the operations of a valuetype raise when its type does not implement them.
#[cold]
pub fn not_implemented(info: &ValueInfo) -> SystemException {
    let e = SystemException::new(
        SystemExceptionKind::NoImplement,
        MinorCode::NO_IMPLEMENT_VALUE,
        CompletionStatus::No,
    );
    e.with_detail(format!("the struct of {} does not implement the trait of its operations", info.id))
}
