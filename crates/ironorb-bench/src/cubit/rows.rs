//! The calls: the types of IDL_Cubit, oneway and twoway.

use std::hint::black_box;
use std::ops::Deref;
use std::rc::Rc;

use ironorb::SystemException;

use super::servant::Cube;
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::{Cubit, CubitRef, Many};
use crate::measure::Sample;
use crate::variant::Mode;

/// A row: a type, and whether the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CubitRow {
    pub(crate) value: Value,
    pub(crate) mode: Mode,
}

impl CubitRow {
    /// The cheapest call.
    pub(crate) const VOID: CubitRow = CubitRow { value: Value::Nothing, mode: Mode::Twoway };
}

/// The argument to cube. Numbers are lengths of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Nothing,
    Octet,
    Short,
    Long,
    Many,
    Longs(usize),
    Manies(usize),
}

/// The values. The paper speaks of small and large sequences without their lengths.
pub(crate) const VALUES: [Value; 9] = [
    Value::Nothing,
    Value::Octet,
    Value::Short,
    Value::Long,
    Value::Many,
    Value::Longs(4),
    Value::Longs(1024),
    Value::Manies(4),
    Value::Manies(1024),
];

/// Oneways in a batch, before a call that is answered once all have been carried out.
pub(crate) const ONEWAYS: usize = 99;

impl Value {
    /// The name on the command line, and the number of elements.
    fn kind(self) -> (&'static str, usize) {
        match self {
            Value::Nothing => ("void", 0),
            Value::Octet => ("octet", 0),
            Value::Short => ("short", 0),
            Value::Long => ("long", 0),
            Value::Many => ("many", 0),
            Value::Longs(count) => ("longs", count),
            Value::Manies(count) => ("manies", count),
        }
    }

    pub(crate) fn name(self) -> String {
        match self.kind() {
            (kind, 0) => kind.to_owned(),
            (kind, count) => format!("{kind}-{count}"),
        }
    }

    /// The command for a peer's client.
    pub(crate) fn words(self) -> String {
        let (kind, count) = self.kind();
        format!("{kind} {count}")
    }

    /// One twoway call of any cubit, with a check of the result.
    pub(crate) fn call<'a, C: Cubit + ?Sized>(self, cubit: impl Deref<Target = C> + 'a) -> Sample<'a> {
        match self {
            Value::Nothing => Box::new(move || Ok(cubit.nothing()?)),
            Value::Octet => one(NUMBER as u8, move |value| Ok(cubit.cube_octet(*value)?)),
            Value::Short => one(NUMBER as i16, move |value| Ok(cubit.cube_short(*value)?)),
            Value::Long => one(NUMBER, move |value| Ok(cubit.cube_long(*value)?)),
            Value::Many => one(MANY, move |value| Ok(cubit.cube_many(value)?)),
            Value::Longs(count) => all(numbers(count), move |values| Ok(cubit.cube_long_sequence(values)?)),
            Value::Manies(count) => all(manies(count), move |values| Ok(cubit.cube_many_sequence(values)?)),
        }
    }

    fn oneway(self, cubit: Rc<CubitRef>) -> Sample<'static> {
        match self {
            Value::Nothing => Box::new(move || Ok(cubit.nothing_oneway()?)),
            Value::Octet => sent(NUMBER as u8, move |value| cubit.cube_octet_oneway(*value)),
            Value::Short => sent(NUMBER as i16, move |value| cubit.cube_short_oneway(*value)),
            Value::Long => sent(NUMBER, move |value| cubit.cube_long_oneway(*value)),
            Value::Many => sent(MANY, move |value| cubit.cube_many_oneway(value)),
            Value::Longs(count) => {
                sent(numbers(count), move |values| cubit.cube_long_sequence_oneway(values))
            }
            Value::Manies(count) => {
                sent(manies(count), move |values| cubit.cube_many_sequence_oneway(values))
            }
        }
    }
}

fn sent<'a, T: 'a>(value: T, mut call: impl FnMut(&T) -> Result<(), SystemException> + 'a) -> Sample<'a> {
    Box::new(move || Ok(call(black_box(&value))?))
}

impl CubitRow {
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

const NUMBER: i32 = 17;
const MANY: Many = Many { o: 5, l: NUMBER, s: 11 };

fn numbers(count: usize) -> Vec<i32> {
    (0..count as i32).collect()
}

fn manies(count: usize) -> Vec<Many> {
    (0..count as i32).map(|place| Many { o: place as u8, l: place, s: place as i16 }).collect()
}

fn one<'a, T: Cube + PartialEq + 'a>(
    value: T,
    mut call: impl FnMut(&T) -> Result<T, BenchError> + 'a,
) -> Sample<'a> {
    Box::new(move || check(black_box(call(black_box(&value))?) == value.cube()))
}

/// Checks every element, as the paper's client does.
fn all<'a, T: Cube + PartialEq + 'a>(
    values: Vec<T>,
    mut call: impl FnMut(&[T]) -> Result<Vec<T>, BenchError> + 'a,
) -> Sample<'a> {
    Box::new(move || {
        let cubes = call(black_box(&values))?;
        check(
            cubes.len() == values.len()
                && cubes.iter().zip(&values).all(|(cube, value)| *cube == value.cube()),
        )
    })
}

fn check(is_right: bool) -> Result<(), BenchError> {
    if is_right { Ok(()) } else { Err(BenchError::process("cubit", "gave what is no cube")) }
}

#[cfg(test)]
mod tests {
    use super::super::servant::CubitServant;
    use super::*;

    #[test]
    fn what_is_no_cube_is_seen() {
        for value in VALUES {
            let servant = CubitServant;
            value.call(&servant)().unwrap();
        }
        let mut wrong = one(7i32, |value| Ok(value * value));
        assert!(wrong().is_err());
        let mut short = all(vec![1i32, 2], |values| Ok(values[..1].to_vec()));
        assert!(short().is_err());
    }
}
