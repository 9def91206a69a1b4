//! Numbers, which are copied in bulk.

use super::{Blank, Interpret, Label, Type};
use crate::cdr::{Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, Misuse};

macro_rules! number {
    ($($ty:ty)*) => {$(
        impl Interpret for $ty {
            fn write_as(&self, _: Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
                w.put(self)
            }

            fn read_as(&mut self, _: Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
                *self = r.get()?;
                Ok(())
            }

            fn write_elements_as(
                items: &[Self],
                _: Type,
                w: &mut Writer<'_>,
            ) -> Result<(), Misuse> {
                <$ty>::marshal_elements(items, w)
            }

            fn read_elements_as(
                items: &mut Vec<Self>,
                count: usize,
                _: Type,
                r: &mut Reader<'_>,
            ) -> Result<(), Malformed> {
                *items = <$ty>::unmarshal_elements(r, count)?;
                Ok(())
            }

            fn read_array_as(
                items: &mut [Self],
                _: Type,
                r: &mut Reader<'_>,
            ) -> Result<(), Malformed> {
                let read = <$ty>::unmarshal_elements(r, items.len())?;
                items.iter_mut().zip(read).for_each(|(item, number)| *item = number);
                Ok(())
            }
        }

        impl Blank for $ty {
            #[inline]
            fn blank() -> Self {
                Default::default()
            }
        }
    )*};
}

number! { u8 i8 bool i16 u16 i32 u32 i64 u64 f32 f64 }

macro_rules! label {
    ($($ty:ty)*) => {$(
        impl Label for $ty {
            fn number(self) -> i64 {
                self as i64
            }
        }
    )*};
}

label! { u8 bool i16 u16 i32 u32 i64 u64 }

/// TypeCodes have no type for `int8` but `octet`, and -1 is not an octet.
impl Label for i8 {
    fn number(self) -> i64 {
        i64::from(self.cast_unsigned())
    }
}

impl Label for char {
    fn number(self) -> i64 {
        i64::from(u32::from(self))
    }
}
