//! The object that cubes, and what cubes are.

use ironorb::SystemException;

use crate::generated_cubit::idl_cubit::{Cubit, Many};

/// Gives cubes; what does not fit wraps around, on both sides alike.
#[derive(Debug)]
pub(crate) struct CubitServant;

/// What is cubed.
pub(crate) trait Cube {
    /// To the third power, modulo what the type holds.
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

/// Worked out, and for nobody.
fn for_nobody<T>(value: T) -> Result<(), SystemException> {
    std::hint::black_box(value);
    Ok(())
}

impl Cubit for CubitServant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_octet(&self, value: u8) -> Result<u8, SystemException> {
        Ok(value.cube())
    }

    fn cube_short(&self, value: i16) -> Result<i16, SystemException> {
        Ok(value.cube())
    }

    fn cube_long(&self, value: i32) -> Result<i32, SystemException> {
        Ok(value.cube())
    }

    fn cube_many(&self, value: &Many) -> Result<Many, SystemException> {
        Ok(value.cube())
    }

    fn cube_long_sequence(&self, values: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(cubes(values))
    }

    fn cube_many_sequence(&self, values: &[Many]) -> Result<Vec<Many>, SystemException> {
        Ok(cubes(values))
    }

    fn nothing_oneway(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_octet_oneway(&self, value: u8) -> Result<(), SystemException> {
        for_nobody(value.cube())
    }

    fn cube_short_oneway(&self, value: i16) -> Result<(), SystemException> {
        for_nobody(value.cube())
    }

    fn cube_long_oneway(&self, value: i32) -> Result<(), SystemException> {
        for_nobody(value.cube())
    }

    fn cube_many_oneway(&self, value: &Many) -> Result<(), SystemException> {
        for_nobody(value.cube())
    }

    fn cube_long_sequence_oneway(&self, values: &[i32]) -> Result<(), SystemException> {
        for_nobody(cubes(values))
    }

    fn cube_many_sequence_oneway(&self, values: &[Many]) -> Result<(), SystemException> {
        for_nobody(cubes(values))
    }
}
