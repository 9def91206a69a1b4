//! The data to send, and the receiver's check of it.

use ironorb::Typed;
use ironorb::dynamic::{DynamicError, Request, RequestError};
use ironorb::giop::cdr::Marshal;

use crate::generated_latency::latency::BinStruct;
use crate::generated_ttcp::ttcp::PerfStruct;
use crate::variant::{DataType, Mode};

/// A sequence to send. `S` is the suite's struct.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data<S> {
    /// No parameter.
    Nothing,
    Shorts(Vec<i16>),
    Chars(Vec<u8>),
    Longs(Vec<i32>),
    Octets(Vec<u8>),
    Doubles(Vec<f64>),
    Structs(Vec<S>),
}

impl<S: Element> Data<S> {
    /// A sequence with as many elements as fit into a buffer.
    pub(crate) fn filling(ty: DataType, buffer_bytes: usize) -> Self {
        Data::of(ty, buffer_bytes / ty.element_bytes())
    }

    pub(crate) fn of(ty: DataType, count: usize) -> Self {
        match ty {
            DataType::Short => Data::Shorts(elements(count)),
            DataType::Char => Data::Chars(elements(count)),
            DataType::Long => Data::Longs(elements(count)),
            DataType::Octet => Data::Octets(elements(count)),
            DataType::Double => Data::Doubles(elements(count)),
            DataType::Struct => Data::Structs(elements(count)),
        }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        match self {
            Data::Nothing => 0,
            Data::Shorts(elements) => elements.len(),
            Data::Chars(elements) | Data::Octets(elements) => elements.len(),
            Data::Longs(elements) => elements.len(),
            Data::Doubles(elements) => elements.len(),
            Data::Structs(elements) => elements.len(),
        }
    }
}

/// An element whose value follows from its index.
pub(crate) trait Element: Copy + PartialEq {
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
        (place as u32).wrapping_mul(2_654_435_761) as i16
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

/// Implements [`Element`] for the suite's struct of all scalars; suites name it as their papers do.
macro_rules! struct_of_all {
    ($($name:ident),*) => {$(
        impl Element for $name {
            fn at(place: usize) -> $name {
                $name {
                    s: i16::at(place),
                    c: u8::at(place),
                    l: i32::at(place),
                    o: u8::at(place + 1),
                    d: f64::at(place),
                }
            }
        }
    )*};
}

struct_of_all!(BinStruct, PerfStruct);

fn elements<T: Element>(count: usize) -> Vec<T> {
    (0..count).map(T::at).collect()
}

/// The number of wrong elements among the first, the middle and the last one. Checking all elements would
/// cost more than receiving them.
pub(crate) fn wrong<T: Element>(elements: &[T]) -> u64 {
    let Some(last) = elements.len().checked_sub(1) else { return 0 };
    [0, last / 2, last].into_iter().filter(|&place| elements[place] != T::at(place)).count() as u64
}

/// Sets the argument, which is borrowed and not copied.
pub(crate) fn fill<'a, S: Typed + Marshal + Sync>(
    request: &mut Request<'a>,
    data: &'a Data<S>,
) -> Result<(), RequestError> {
    match data {
        Data::Nothing => Ok(()),
        Data::Shorts(elements) => request.borrow(0, elements),
        Data::Chars(elements) => request.borrow_chars(0, elements),
        Data::Longs(elements) => request.borrow(0, elements),
        Data::Octets(elements) => request.borrow(0, elements),
        Data::Doubles(elements) => request.borrow(0, elements),
        Data::Structs(elements) => request.borrow(0, elements),
    }
}

/// Sends a request in one of the modes. A twoway waits for its reply.
pub(crate) fn send(request: &mut Request<'_>, mode: Mode) -> Result<(), DynamicError> {
    match mode {
        Mode::Oneway => request.send_oneway(),
        Mode::Twoway => request.invoke().map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_as_many_as_fit() {
        for ty in DataType::ALL {
            assert_eq!(Data::<PerfStruct>::filling(ty, 128 << 10).len(), (128 << 10) / ty.element_bytes());
        }
        assert_eq!(Data::<PerfStruct>::filling(DataType::Struct, 1024).len(), 42);
        assert_eq!(Data::<PerfStruct>::filling(DataType::Struct, 8).len(), 0);
    }

    #[test]
    fn what_was_changed_or_moved_is_seen() {
        let mut shorts: Vec<i16> = elements(101);
        assert_eq!(wrong(&shorts), 0);
        for place in [0, 50, 100] {
            let right = shorts[place];
            shorts[place] = !right;
            assert_eq!(wrong(&shorts), 1);
            shorts[place] = right;
        }
        let structs: Vec<PerfStruct> = elements(64);
        assert_eq!(wrong(&structs[1..]), 3);
        assert_eq!(wrong::<f64>(&[]), 0);
        assert_eq!(wrong(&[7u8]), 3, "one element is looked at thrice");
    }
}
