//! From Rust types to their TypeCodes.

use super::{TypeCode, TypeDef};
use crate::any::Any;
use crate::cdr::{LongDouble, WString};
use crate::fixed::Fixed;

/// A Rust type that represents one IDL type.
///
/// Generated types implement it. In a few places two IDL types share a Rust type: `octet` and `char` are
/// `u8`, and a `typedef` has no type of its own. The description is then that of the plainer IDL type, and
/// [`Any::with_type`] accepts the other.
pub trait Typed {
    /// The description of the IDL type.
    const TYPE: &'static TypeDef;
}

/// A Rust type whose `Option` represents one IDL type, with `None` for nil: references and values.
pub trait TypedNillable {
    /// The description of the IDL type.
    const TYPE: &'static TypeDef;
}

impl<T: TypedNillable> Typed for Option<T> {
    const TYPE: &'static TypeDef = T::TYPE;
}

macro_rules! typed {
    ($($ty:ty: $def:expr;)*) => {$(
        impl Typed for $ty {
            const TYPE: &'static TypeDef = &$def;
        }
    )*};
}

typed! {
    (): TypeDef::Void;
    i16: TypeDef::Short;
    u16: TypeDef::UShort;
    i32: TypeDef::Long;
    u32: TypeDef::ULong;
    i64: TypeDef::LongLong;
    u64: TypeDef::ULongLong;
    f32: TypeDef::Float;
    f64: TypeDef::Double;
    LongDouble: TypeDef::LongDouble;
    bool: TypeDef::Boolean;
    u8: TypeDef::Octet;
    char: TypeDef::WChar;
    str: TypeDef::String { bound: 0 };
    String: TypeDef::String { bound: 0 };
    WString: TypeDef::WString { bound: 0 };
    Any: TypeDef::Any;
    TypeCode: TypeDef::TypeCode;
}

impl<T: Typed> Typed for [T] {
    const TYPE: &'static TypeDef = &TypeDef::Sequence { element: T::TYPE, bound: 0 };
}

impl<T: Typed> Typed for Vec<T> {
    const TYPE: &'static TypeDef = <[T] as Typed>::TYPE;
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    const TYPE: &'static TypeDef = &TypeDef::Array { element: T::TYPE, length: N as u32 };
}

impl<T: Typed + ?Sized> Typed for Box<T> {
    const TYPE: &'static TypeDef = T::TYPE;
}

impl<T: Typed + ?Sized> Typed for &T {
    const TYPE: &'static TypeDef = T::TYPE;
}

impl<const DIGITS: u16, const SCALE: u16> Typed for Fixed<DIGITS, SCALE> {
    const TYPE: &'static TypeDef = &TypeDef::Fixed { digits: DIGITS, scale: SCALE as i16 };
}
