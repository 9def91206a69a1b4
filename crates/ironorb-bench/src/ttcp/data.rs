//! What is sent, and how a receiver sees that it is what was sent.

use super::variant::DataType;
use crate::generated_ttcp::ttcp::PerfStruct;

/// A sequence to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    /// Of an operation without parameters.
    Nothing,
    Shorts(Vec<i16>),
    Chars(Vec<u8>),
    Longs(Vec<i32>),
    Octets(Vec<u8>),
    Doubles(Vec<f64>),
    Structs(Vec<PerfStruct>),
}

impl Data {
    /// As many elements as fit into a buffer.
    pub(super) fn filling(ty: DataType, buffer_bytes: usize) -> Data {
        Data::of(ty, buffer_bytes / ty.element_bytes())
    }

    pub(super) fn of(ty: DataType, count: usize) -> Data {
        match ty {
            DataType::Short => Data::Shorts(elements(count)),
            DataType::Char => Data::Chars(elements(count)),
            DataType::Long => Data::Longs(elements(count)),
            DataType::Octet => Data::Octets(elements(count)),
            DataType::Double => Data::Doubles(elements(count)),
            DataType::Struct => Data::Structs(elements(count)),
        }
    }

    /// Elements of it.
    pub(super) fn len(&self) -> usize {
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

/// An element whose value its place tells.
pub(super) trait Element: Copy + PartialEq {
    fn at(place: usize) -> Self;
}

impl Element for u8 {
    /// Printable, for it may be a `char`.
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

impl Element for PerfStruct {
    fn at(place: usize) -> PerfStruct {
        PerfStruct {
            s: i16::at(place),
            c: u8::at(place),
            l: i32::at(place),
            o: u8::at(place + 1),
            d: f64::at(place),
        }
    }
}

fn elements<T: Element>(count: usize) -> Vec<T> {
    (0..count).map(T::at).collect()
}

/// How many of the elements that are looked at - the first, the middle one and the last - are not what is sent. To look
/// at all would cost more than to receive them.
pub(super) fn wrong<T: Element>(elements: &[T]) -> u64 {
    let Some(last) = elements.len().checked_sub(1) else { return 0 };
    [0, last / 2, last].into_iter().filter(|&place| elements[place] != T::at(place)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_as_many_as_fit() {
        for ty in DataType::ALL {
            assert_eq!(Data::filling(ty, 128 << 10).len(), (128 << 10) / ty.element_bytes());
        }
        assert_eq!(Data::filling(DataType::Struct, 1024).len(), 42);
        assert_eq!(Data::filling(DataType::Struct, 8).len(), 0);
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
