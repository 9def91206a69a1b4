//! The calls: the types of IDL_Cubit, oneway and twoway. A table has the types: one is added by a line of it.

use std::hint::black_box;
use std::ops::Deref;
use std::rc::Rc;

use ironorb::SystemException;

use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef, Many};
use crate::measure::Sample;
use crate::variant::Mode;

/// A row: an argument, and whether the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CubitRow {
    pub(crate) value: Value,
    pub(crate) mode: Mode,
}

/// The argument to cube: its type, and the length of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value(pub(crate) Kind, pub(crate) usize);

/// The values. The paper speaks of small and large sequences without their lengths.
pub(crate) const VALUES: [Value; 9] = [
    Value(Kind::Nothing, 0),
    Value(Kind::Octet, 0),
    Value(Kind::Short, 0),
    Value(Kind::Long, 0),
    Value(Kind::Many, 0),
    Value(Kind::Longs, 4),
    Value(Kind::Longs, 1024),
    Value(Kind::Manies, 4),
    Value(Kind::Manies, 1024),
];

/// Oneways in a batch, before a call that is answered once all have been carried out.
pub(crate) const ONEWAYS: usize = 99;

/// Computes cubes. Overflow wraps around, equally on both sides. A oneway computes the cube and discards it.
#[derive(Debug)]
pub(crate) struct CubitServant;

/// For each type: its name on the command line; the argument and the result in Rust, with a star for an argument that
/// is passed by value; the operations of both modes; and the value of so many elements that clients send.
macro_rules! types {
    ($($kind:ident $name:literal: $argument:ty => $result:ty, ($($by_value:tt)?),
       $twoway:ident $oneway:ident, $value:expr;)*) => {
        /// The type of an argument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            Nothing,
            $($kind,)*
        }

        impl Kind {
            fn name(self) -> &'static str {
                match self {
                    Kind::Nothing => "void",
                    $(Kind::$kind => $name,)*
                }
            }
        }

        impl Cubit for CubitServant {
            fn nothing(&self) -> Result<(), SystemException> {
                Ok(())
            }

            fn nothing_oneway(&self) -> Result<(), SystemException> {
                Ok(())
            }

            $(fn $twoway(&self, value: $argument) -> Result<$result, SystemException> {
                Ok(value.cube())
            }

            fn $oneway(&self, value: $argument) -> Result<(), SystemException> {
                black_box(value.cube());
                Ok(())
            })*
        }

        impl Value {
            /// One twoway call of any cubit, with a check of every element of the result, as in the paper.
            pub(crate) fn call<'a, C: Cubit + ?Sized>(self, cubit: impl Deref<Target = C> + 'a) -> Sample<'a> {
                match self.0 {
                    Kind::Nothing => Box::new(move || Ok(cubit.nothing()?)),
                    $(Kind::$kind => {
                        let value: $result = $value(self.1);
                        Box::new(move || {
                            let cube = black_box(cubit.$twoway($($by_value)? black_box(&value))?);
                            match value.has_cube(&cube) {
                                true => Ok(()),
                                false => Err(BenchError::process("cubit", "gave what is no cube")),
                            }
                        })
                    })*
                }
            }

            fn oneway(self, cubit: Rc<CubitRef>) -> Sample<'static> {
                match self.0 {
                    Kind::Nothing => Box::new(move || Ok(cubit.nothing_oneway()?)),
                    $(Kind::$kind => {
                        let value: $result = $value(self.1);
                        Box::new(move || Ok(cubit.$oneway($($by_value)? black_box(&value))?))
                    })*
                }
            }
        }
    };
}

types! {
    Octet "octet": u8 => u8, (*), cube_octet cube_octet_oneway, |_| NUMBER as u8;
    Short "short": i16 => i16, (*), cube_short cube_short_oneway, |_| NUMBER as i16;
    Long "long": i32 => i32, (*), cube_long cube_long_oneway, |_| NUMBER;
    Many "many": &Many => Many, (), cube_many cube_many_oneway, |_| Many { o: 5, l: NUMBER, s: 11 };
    Longs "longs": &[i32] => Vec<i32>, (), cube_long_sequence cube_long_sequence_oneway,
        |count| (0..count as i32).collect();
    Manies "manies": &[Many] => Vec<Many>, (), cube_many_sequence cube_many_sequence_oneway,
        |count| (0..count as i32).map(|place| Many { o: place as u8, l: place, s: place as i16 }).collect();
}

const NUMBER: i32 = 17;

/// A value that can be cubed, modulo its type's range.
trait Cube {
    type Cubed;

    /// The third power, of each element.
    fn cube(&self) -> Self::Cubed;

    /// Whether this is the third power. Allocates nothing, because clients check it in each call.
    fn has_cube(&self, cube: &Self::Cubed) -> bool;
}

macro_rules! single {
    ($($ty:ty: $cube:expr;)*) => {$(
        impl Cube for $ty {
            type Cubed = $ty;

            #[inline]
            fn cube(&self) -> $ty {
                let cube: fn(&$ty) -> $ty = $cube;
                cube(self)
            }

            #[inline]
            fn has_cube(&self, cube: &$ty) -> bool {
                self.cube() == *cube
            }
        }
    )*};
}

single! {
    u8: |number| number.wrapping_mul(*number).wrapping_mul(*number);
    i16: |number| number.wrapping_mul(*number).wrapping_mul(*number);
    i32: |number| number.wrapping_mul(*number).wrapping_mul(*number);
    Many: |many| Many { o: many.o.cube(), l: many.l.cube(), s: many.s.cube() };
}

impl<T: Cube<Cubed = T>> Cube for [T] {
    type Cubed = Vec<T>;

    fn cube(&self) -> Vec<T> {
        self.iter().map(Cube::cube).collect()
    }

    fn has_cube(&self, cubes: &Vec<T>) -> bool {
        cubes.len() == self.len() && self.iter().zip(cubes).all(|(value, cube)| value.has_cube(cube))
    }
}

impl Value {
    pub(crate) fn name(self) -> String {
        match self {
            Value(kind, 0) => kind.name().to_owned(),
            Value(kind, count) => format!("{}-{count}", kind.name()),
        }
    }

    /// The command for a peer's client.
    pub(crate) fn words(self) -> String {
        format!("{} {}", self.0.name(), self.1)
    }
}

impl CubitRow {
    /// The cheapest call.
    pub(crate) const VOID: CubitRow = CubitRow { value: VALUES[0], mode: Mode::Twoway };

    pub(crate) fn all(values: &[Value], modes: &[Mode]) -> Vec<CubitRow> {
        let each = |&mode| values.iter().map(move |&value| CubitRow { value, mode });
        modes.iter().flat_map(each).collect()
    }

    pub(crate) fn calls_per_sample(self) -> usize {
        match self.mode {
            Mode::Twoway => 1,
            Mode::Oneway => ONEWAYS + 1,
        }
    }

    /// One call, or one batch of oneways.
    pub(crate) fn sample(self, cubit: CubitRef) -> Sample<'static> {
        let cubit = Rc::new(cubit);
        match self.mode {
            Mode::Twoway => self.value.call(cubit),
            Mode::Oneway => {
                let mut once = self.value.oneway(cubit.clone());
                Box::new(move || {
                    (0..ONEWAYS).try_for_each(|_| once())?;
                    Ok(cubit.nothing()?)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cube_is_seen() {
        for value in VALUES {
            value.call(&CubitServant)().unwrap();
        }
        assert!(!7i32.has_cube(&49) && ![1i32, 2].has_cube(&vec![1]) && ![2i32].has_cube(&vec![4]));
    }
}
