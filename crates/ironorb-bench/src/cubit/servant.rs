//! The cubit object, and cubes of each type.

use ironorb::SystemException;

use crate::generated_cubit::idl_cubit::{Cubit, Many};

/// Computes cubes. Overflow wraps around, equally on both sides.
#[derive(Debug)]
pub(crate) struct CubitServant;

/// A value that can be cubed.
pub(crate) trait Cube {
    /// The third power, modulo the type's range.
    fn cube(&self) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Cube for $number {
            #[inline]
            fn cube(&self) -> $number {
                self.wrapping_mul(*self).wrapping_mul(*self)
            }
        }
    )*};
}

numbers!(u8 i16 i32);

impl Cube for Many {
    #[inline]
    fn cube(&self) -> Many {
        Many { o: self.o.cube(), l: self.l.cube(), s: self.s.cube() }
    }
}

fn cubes<T: Cube>(values: &[T]) -> Vec<T> {
    values.iter().map(Cube::cube).collect()
}

/// The operations of each type; the oneway computes the cube and discards it.
macro_rules! operations {
    ($($twoway:ident $oneway:ident: $argument:ty => $result:ty, $cube:expr;)*) => {
        impl Cubit for CubitServant {
            fn nothing(&self) -> Result<(), SystemException> {
                Ok(())
            }

            fn nothing_oneway(&self) -> Result<(), SystemException> {
                Ok(())
            }

            $(fn $twoway(&self, value: $argument) -> Result<$result, SystemException> {
                Ok($cube(value))
            }

            fn $oneway(&self, value: $argument) -> Result<(), SystemException> {
                std::hint::black_box($cube(value));
                Ok(())
            })*
        }
    };
}

operations! {
    cube_octet cube_octet_oneway: u8 => u8, |value: u8| value.cube();
    cube_short cube_short_oneway: i16 => i16, |value: i16| value.cube();
    cube_long cube_long_oneway: i32 => i32, |value: i32| value.cube();
    cube_many cube_many_oneway: &Many => Many, Many::cube;
    cube_long_sequence cube_long_sequence_oneway: &[i32] => Vec<i32>, cubes;
    cube_many_sequence cube_many_sequence_oneway: &[Many] => Vec<Many>, cubes;
}
