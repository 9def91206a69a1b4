//! What is known of a valuetype besides its members: ids, bases, and the Rust types that it can be seen as.

use std::any::Any;
use std::fmt;

use super::{Link, Value};
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, Misuse};
use crate::typecode::{TypeDef, Typed, TypedNillable, ValueModifier};

/// The state of a value of any type: IDL's `ValueBase`.
///
/// Implemented by the state structs of valuetypes. `Value<dyn ValueBase>` is a value of any type.
pub trait ValueBase: Any + fmt::Debug + Send + Sync {
    /// Its most derived type.
    fn info(&self) -> &'static ValueInfo;

    /// Appends the state: that of the base first, then the members in the order of their declaration.
    fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse>;
}

/// A valuetype with state: the constants and functions that its struct has.
pub trait ValueType: ValueBase + Sized {
    /// Information about the type.
    const INFO: &'static ValueInfo;

    /// Reads what [`ValueBase::marshal_state`] writes.
    fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A type parameter of [`Value`](super::Value) and [`Link`](super::Link): the struct of a valuetype, `dyn
/// ValueBase`, or the trait of an abstract valuetype.
pub trait FormalValue: 'static {
    /// Its repository id.
    const ID: &'static str;

    /// Creates a value whose type information was omitted because it has exactly this type. `None` for a type
    /// that has no state of its own.
    const FACTORY: Option<&'static dyn ValueFactory>;

    /// The description of the type.
    const TYPE: &'static TypeDef;
}

impl<T: ValueType> FormalValue for T {
    const ID: &'static str = T::INFO.id;
    const FACTORY: Option<&'static dyn ValueFactory> =
        Some(&StateFactory(std::marker::PhantomData::<fn() -> T>));
    const TYPE: &'static TypeDef = T::INFO.type_def;
}

impl FormalValue for dyn ValueBase {
    const ID: &'static str = "IDL:omg.org/CORBA/ValueBase:1.0";
    const FACTORY: Option<&'static dyn ValueFactory> = None;
    const TYPE: &'static TypeDef = &TypeDef::Value {
        id: Self::ID,
        name: "ValueBase",
        modifier: ValueModifier::None,
        base: None,
        members: &[],
    };
}

/// The type of `Option<Value<T>>`, where null is `None`.
impl<T: FormalValue + ?Sized> TypedNillable for Value<T> {
    const TYPE: &'static TypeDef = T::TYPE;
}

impl<T: FormalValue + ?Sized> Typed for Link<T> {
    const TYPE: &'static TypeDef = T::TYPE;
}

/// `Self` is `B` or inherits from it, so a value of `Self` is a value of `B`.
///
/// Every valuetype implements it for itself, for each of its bases, concrete or abstract, and for
/// `dyn ValueBase`.
pub trait DerivesFrom<B: ?Sized>: FormalValue {}

impl DerivesFrom<dyn ValueBase> for dyn ValueBase {}

/// Creates values of one type from their state on the wire (CORBA 3.3 part 1, 9.4).
pub trait ValueFactory: Send + Sync {
    /// The type of the values.
    fn info(&self) -> &'static ValueInfo;

    /// Reads the state of one value. Called twice for one value where values are nested very deeply.
    fn unmarshal_state(&self, r: &mut Reader<'_>) -> Result<Box<dyn ValueBase>, Malformed>;
}

impl fmt::Debug for dyn ValueFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueFactory({})", self.info().id)
    }
}

/// The factory of a valuetype that needs only its state.
pub struct StateFactory<T>(std::marker::PhantomData<fn() -> T>);

impl<T: ValueType> StateFactory<T> {
    /// The factory.
    pub const fn new() -> Self {
        StateFactory(std::marker::PhantomData)
    }
}

impl<T: ValueType> Default for StateFactory<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for StateFactory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateFactory")
    }
}

impl<T: ValueType> ValueFactory for StateFactory<T> {
    fn info(&self) -> &'static ValueInfo {
        T::INFO
    }

    fn unmarshal_state(&self, r: &mut Reader<'_>) -> Result<Box<dyn ValueBase>, Malformed> {
        Ok(Box::new(T::unmarshal_state(r)?))
    }
}

/// Information about a concrete valuetype.
#[derive(Debug, Clone, Copy)]
pub struct ValueInfo {
    /// Repository id.
    pub id: &'static str,
    /// Repository ids of the concrete bases, the nearest first.
    pub bases: &'static [&'static str],
    /// To how many of `bases` a receiver that does not know the type may truncate a value.
    pub truncatable: usize,
    /// How the state travels.
    pub kind: ValueKind,
    /// The description of the type.
    pub type_def: &'static TypeDef,
    /// Creates values of the type from their state alone, where the program has registered no factory:
    /// `&StateFactory::<Self>::new()`.
    pub factory: &'static dyn ValueFactory,
    /// One [`View`] for each Rust type that a value can be seen as: the struct itself, the structs of its bases,
    /// and the traits of its abstract bases and of its operations.
    pub views: &'static [&'static (dyn Any + Send + Sync)],
}

impl ValueInfo {
    /// How to see a value of this type as a `T`.
    pub(super) fn view<T: ?Sized + 'static>(&self) -> Option<View<T>> {
        let as_base: &(dyn Any + Send + Sync) = &View::<dyn ValueBase>(|value| Some(value));
        self.views.iter().copied().chain([as_base]).find_map(|view| view.downcast_ref::<View<T>>().copied())
    }
}

/// How the state of a valuetype travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Member by member.
    Plain,
    /// As the program marshals it; see [`CustomMarshal`](super::CustomMarshal).
    Custom,
    /// A value box: its one member.
    Boxed,
}

/// How to see a value of some type as a `T`: a projection to the struct of a base, or a trait object.
pub struct View<T: ?Sized + 'static>(pub for<'a> fn(&'a dyn ValueBase) -> Option<&'a T>);

impl<T: ?Sized> Clone for View<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for View<T> {}

impl<T: ?Sized> fmt::Debug for View<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>", std::any::type_name::<T>())
    }
}

/// The struct itself, when the value is of that very type. For the projections of [`View`].
pub fn state<T: ValueBase>(value: &dyn ValueBase) -> Option<&T> {
    (value as &dyn Any).downcast_ref()
}
