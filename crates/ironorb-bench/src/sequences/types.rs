//! The types of the sequences. A table has what differs between them: a type is added by a line of it.

use std::hint::black_box;

use ironorb::dynamic::{ParameterMode, Request, RequestError};
use ironorb::{Any, ExtractError, SystemException, TypeDef};

use super::server::{Counts, Sequence};
use crate::generated_latency::latency::{self, BinStruct, TtcpSequence, TtcpSequenceRef};
use crate::variant::{DataType, Mode};

/// For each type: its element in Rust; the method that sets the argument of a dynamic request; the sequence's
/// type; the name of its operations; the stubs and skeletons of both modes; and how a dynamic servant gets the
/// elements out of an `any`.
macro_rules! types {
    ($($ty:ident $element:ty, $set:ident, $sequence:ident, $name:literal, $oneway:ident $twoway:ident,
       $any:ident => $extracted:expr;)*) => {
        /// A sequence to send.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) enum Data {
            /// No parameter.
            Void,
            $($ty(Vec<$element>),)*
        }

        impl Data {
            pub(crate) fn of(ty: DataType, count: usize) -> Data {
                match ty {
                    DataType::Void => Data::Void,
                    $(DataType::$ty => Data::$ty((0..count).map(Element::at).collect()),)*
                }
            }

            /// Calls an object by its stub.
            #[inline]
            pub(super) fn call(&self, object: &TtcpSequenceRef, mode: Mode) -> Result<(), SystemException> {
                match (self, mode) {
                    (Data::Void, Mode::Oneway) => object.send_no_params_1way(),
                    (Data::Void, Mode::Twoway) => object.send_no_params_2way(),
                    $((Data::$ty(elements), Mode::Oneway) => object.$oneway(black_box(elements)),
                    (Data::$ty(elements), Mode::Twoway) => object.$twoway(black_box(elements)),)*
                }
            }

            /// Sets the argument of a request, which borrows it.
            pub(super) fn fill<'a>(&'a self, request: &mut Request<'a>) -> Result<(), RequestError> {
                match black_box(self) {
                    Data::Void => Ok(()),
                    $(Data::$ty(elements) => request.$set(0, elements),)*
                }
            }
        }

        /// The name of a type's operations, and their parameter.
        pub(super) fn described(ty: DataType) -> (&'static str, Option<&'static TypeDef>) {
            match ty {
                DataType::Void => ("NoParams", None),
                $(DataType::$ty => ($name, Some(&latency::$sequence)),)*
            }
        }

        impl TtcpSequence for Sequence {
            fn send_no_params_1way(&self) -> Result<(), SystemException> {
                self.take::<u8>(&[])
            }

            fn send_no_params_2way(&self) -> Result<(), SystemException> {
                self.take::<u8>(&[])
            }

            $(fn $oneway(&self, elements: &[$element]) -> Result<(), SystemException> {
                self.take(elements)
            }

            fn $twoway(&self, elements: &[$element]) -> Result<(), SystemException> {
                self.take(elements)
            })*
        }

        /// Counts the argument of a dynamic servant.
        pub(super) fn extract(ty: DataType, argument: &Any, counts: &Counts) -> Result<(), ExtractError> {
            match ty {
                DataType::Void => counts.add::<u8>(&[]),
                $(DataType::$ty => {
                    let $any = argument;
                    counts.add(&$extracted[..]);
                })*
            }
            Ok(())
        }
    };
}

types! {
    Short i16, borrow, TC_SHORT_SEQ, "ShortSeq", send_short_seq_1way send_short_seq_2way,
        any => any.extract_numbers::<i16>()?;
    Char u8, borrow_chars, TC_CHAR_SEQ, "CharSeq", send_char_seq_1way send_char_seq_2way,
        any => any.reader().read_octets()?;
    Long i32, borrow, TC_LONG_SEQ, "LongSeq", send_long_seq_1way send_long_seq_2way,
        any => any.extract_numbers::<i32>()?;
    Octet u8, borrow, TC_OCTET_SEQ, "OctetSeq", send_octet_seq_1way send_octet_seq_2way,
        any => any.extract_octets()?;
    Double f64, borrow, TC_DOUBLE_SEQ, "DoubleSeq", send_double_seq_1way send_double_seq_2way,
        any => any.extract_numbers::<f64>()?;
    Struct BinStruct, borrow, TC_STRUCT_SEQ, "StructSeq", send_struct_seq_1way send_struct_seq_2way,
        any => any.extract::<Vec<BinStruct>>()?;
}

/// The parameter of an operation that has one.
pub(super) const PARAMETER: (&str, ParameterMode) = ("ttcp_seq", ParameterMode::In);

/// An element whose value follows from its index.
pub(super) trait Element: Copy + PartialEq {
    fn at(place: usize) -> Self;
}

impl Element for u8 {
    /// A printable character, because the element may be a `char`.
    fn at(place: usize) -> u8 {
        b' ' + (place % 95) as u8
    }
}

impl Element for i16 {
    fn at(place: usize) -> i16 {
        i32::at(place) as i16
    }
}

impl Element for i32 {
    fn at(place: usize) -> i32 {
        (place as u32).wrapping_mul(2_654_435_761) as i32
    }
}

impl Element for f64 {
    fn at(place: usize) -> f64 {
        place as f64 * 0.37
    }
}

impl Element for BinStruct {
    fn at(place: usize) -> BinStruct {
        let (o, d) = (u8::at(place + 1), f64::at(place));
        BinStruct { s: i16::at(place), c: u8::at(place), l: i32::at(place), o, d }
    }
}

/// The number of wrong elements among the first, the middle and the last one. Checking all elements would
/// cost more than receiving them.
pub(super) fn wrong<T: Element>(elements: &[T]) -> u64 {
    let Some(last) = elements.len().checked_sub(1) else { return 0 };
    [0, last / 2, last].into_iter().filter(|&place| elements[place] != T::at(place)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_or_moved_is_seen() {
        let Data::Short(mut shorts) = Data::of(DataType::Short, 101) else { panic!("shorts") };
        assert_eq!(wrong(&shorts), 0);
        for place in [0, 50, 100] {
            let right = shorts[place];
            shorts[place] = !right;
            assert_eq!(wrong(&shorts), 1);
            shorts[place] = right;
        }
        let Data::Struct(structs) = Data::of(DataType::Struct, 64) else { panic!("structs") };
        assert_eq!(wrong(&structs[1..]), 3);
        assert_eq!(wrong::<f64>(&[]), 0);
        assert_eq!(wrong(&[7u8]), 3, "one element is looked at thrice");
    }
}
