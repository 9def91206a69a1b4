//! The support for bitsets and bitmasks of IDL 4.2 (7.4.13.4.3): integers whose bits have names.

pub use crate::{__ironorb_bitmask as bitmask, __ironorb_bitset as bitset};

use ironorb_giop::Misuse;

/// A type of the fields of a bitset.
pub trait Bits: Copy {
    /// Returns the value in the `width` lowest bits of a number, or an error when it does not fit.
    fn to_bits(self, width: u32) -> Result<u64, Misuse>;

    /// Returns the value of the `width` lowest bits.
    fn from_bits(bits: u64, width: u32) -> Self;
}

macro_rules! unsigned {
    ($($ty:ty)*) => {$(
        impl Bits for $ty {
            #[inline]
            fn to_bits(self, width: u32) -> Result<u64, Misuse> {
                let bits = u64::from(self);
                let needed = u64::BITS - bits.leading_zeros();
                if needed > width { Err(too_wide(needed, width)) } else { Ok(bits) }
            }
            #[inline]
            fn from_bits(bits: u64, width: u32) -> Self {
                (bits & mask(width)) as $ty
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 }

macro_rules! signed {
    ($($ty:ty)*) => {$(
        impl Bits for $ty {
            #[inline]
            fn to_bits(self, width: u32) -> Result<u64, Misuse> {
                let value = i64::from(self);
                let magnitude = if value < 0 { !value } else { value };
                let needed = 1 + i64::BITS - magnitude.leading_zeros();
                if needed > width { Err(too_wide(needed, width)) } else { Ok(value.cast_unsigned() & mask(width)) }
            }
            #[inline]
            fn from_bits(bits: u64, width: u32) -> Self {
                // The shift up and back extends the sign bit.
                let unused = u64::BITS - width.clamp(1, u64::BITS);
                ((bits << unused).cast_signed() >> unused) as $ty
            }
        }
    )*};
}

signed! { i8 i16 i32 i64 }

impl Bits for bool {
    #[inline]
    fn to_bits(self, _: u32) -> Result<u64, Misuse> {
        Ok(u64::from(self))
    }
    #[inline]
    fn from_bits(bits: u64, _: u32) -> Self {
        bits & 1 != 0
    }
}

/// The `width` lowest bits.
#[inline]
const fn mask(width: u32) -> u64 {
    if width >= u64::BITS { u64::MAX } else { (1 << width) - 1 }
}

#[cold]
fn too_wide(needed: u32, width: u32) -> Misuse {
    Misuse::BoundExceeded { bound: width, length: needed as usize }
}

/// A bitset: a struct of plain fields, packed into one number on the wire.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_bitset {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal $storage:ty
        { $($field:ident: $type:ty = $offset:literal, $width:literal);* $(;)? }
    ) => {
        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Alias {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                original: <$storage as $crate::generated::Typed>::TYPE,
            }
        }

        $crate::__ironorb_whole! { $name = $name { $($field: $crate::generated::Blank::blank()),* } }

        impl $crate::generated::Marshal for $name {
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                let bits: u64 = 0 $(| $crate::generated::Bits::to_bits(self.$field, $width)? << $offset)*;
                w.put(&(bits as $storage))
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = <$storage as $crate::generated::Unmarshal>::BYTES_MIN;

            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                let _bits = u64::from(r.get::<$storage>()?);
                ::std::result::Result::Ok($name {
                    $($field: $crate::generated::Bits::from_bits(_bits >> $offset, $width),)*
                })
            }
        }
    };
}

/// A bitmask: a number whose bits are flags. Bits without a name are preserved.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_bitmask {
    (
        $name:ident $($idl:literal)?: $type_code:ident = $id:literal $storage:ty
        { $($(#[$meta:meta])* $flag:ident $($idl_flag:literal)? = $position:literal),* $(,)? }
    ) => {
        $crate::__ironorb_type_code! {
            $name: $type_code = $crate::generated::TypeDef::Alias {
                id: $id,
                name: $crate::__ironorb_idl_name!($name $($idl)?),
                original: <$storage as $crate::generated::Typed>::TYPE,
            }
        }

        impl $name {
            /// No flag.
            pub const NONE: Self = $name(0);
            /// Every flag that has a name.
            pub const ALL: Self = $name(0 $(| 1 << $position)*);
            $(
                $(#[$meta])*
                #[doc = ::std::concat!(
                    "The flag `", $crate::__ironorb_idl_name!($flag $($idl_flag)?), "`, bit ", $position, ".",
                )]
                pub const $flag: Self = $name(1 << $position);
            )*

            /// True when all of these flags are set.
            #[inline]
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// True when no flag is set.
            #[inline]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Sets or clears these flags.
            #[inline]
            pub const fn set(&mut self, flags: Self, on: bool) {
                self.0 = if on { self.0 | flags.0 } else { self.0 & !flags.0 };
            }
        }

        impl ::std::ops::BitOr for $name {
            type Output = Self;
            #[inline]
            fn bitor(self, other: Self) -> Self {
                $name(self.0 | other.0)
            }
        }

        impl ::std::ops::BitOrAssign for $name {
            #[inline]
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl ::std::ops::BitAnd for $name {
            type Output = Self;
            #[inline]
            fn bitand(self, other: Self) -> Self {
                $name(self.0 & other.0)
            }
        }

        impl ::std::ops::BitXor for $name {
            type Output = Self;
            #[inline]
            fn bitxor(self, other: Self) -> Self {
                $name(self.0 ^ other.0)
            }
        }

        /// The flags that have a name and are not set.
        impl ::std::ops::Not for $name {
            type Output = Self;
            #[inline]
            fn not(self) -> Self {
                $name(!self.0 & Self::ALL.0)
            }
        }

        /// Shows the names of the flags that are set.
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let mut _before = "";
                f.write_str(::std::concat!(::std::stringify!($name), "("))?;
                $(
                    if self.contains(Self::$flag) {
                        ::std::write!(f, "{_before}{}", ::std::stringify!($flag))?;
                        _before = " | ";
                    }
                )*
                let unnamed = self.0 & !Self::ALL.0;
                if unnamed != 0 {
                    ::std::write!(f, "{_before}{unnamed:#x}")?;
                }
                f.write_str(")")
            }
        }

        $crate::__ironorb_whole! { $name = $name(0) }

        impl $crate::generated::Marshal for $name {
            #[inline]
            fn marshal(
                &self,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                w.put(&self.0)
            }
        }

        impl $crate::generated::Unmarshal for $name {
            const BYTES_MIN: usize = <$storage as $crate::generated::Unmarshal>::BYTES_MIN;

            #[inline]
            fn unmarshal(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                r.get().map($name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_checked_against_their_width() {
        assert_eq!(7u8.to_bits(3), Ok(7));
        assert_eq!(8u8.to_bits(3), Err(Misuse::BoundExceeded { bound: 3, length: 4 }));
        assert_eq!(u64::MAX.to_bits(64), Ok(u64::MAX));
        assert_eq!((-4i16).to_bits(3), Ok(0b100));
        assert_eq!((-5i16).to_bits(3), Err(Misuse::BoundExceeded { bound: 3, length: 4 }));
        assert_eq!(3i8.to_bits(3), Ok(3));
        assert!(4i8.to_bits(3).is_err());
        assert_eq!(i64::MIN.to_bits(64), Ok(1 << 63));
        for value in -2048..2048i16 {
            assert_eq!(i16::from_bits(value.to_bits(12).unwrap(), 12), value);
        }
        assert_eq!(i64::from_bits(1 << 63, 64), i64::MIN);
        assert_eq!(u8::from_bits(0xFFF, 3), 7);
    }
}
