use super::super::wire::tests::{Bin, Full};
use super::super::{Elements, Marshal, Unmarshal, Writer};
use super::*;
use crate::error::Malformed;
use crate::framer::{Framer, FramerLimits};
use crate::message::{HEADER_BYTES, MessageHeader, MessageType};
use crate::version::{ByteOrder, Encoding, Version};

/// A request of which only the body matters, as a framer returns it.
fn message(encoding: Encoding, body: impl Fn(&mut Writer<'_>)) -> Message {
    let mut bytes = vec![0; HEADER_BYTES + 4];
    body(&mut Writer::continuing(&mut bytes, 0, encoding));
    let header = MessageHeader {
        version: encoding.version,
        order: encoding.order,
        more_fragments: false,
        kind: MessageType::Request,
        body_bytes: (bytes.len() - HEADER_BYTES) as u32,
    };
    bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&bytes);
    framer.next().unwrap().unwrap()
}

/// Reads as a server does. Returns how often something was moved, and the last outcome.
fn read<T>(
    message: &mut Message,
    mut read: impl for<'a> FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> (usize, Result<T, Malformed>) {
    let mut shifts = Shifts::default();
    let mut moves = 0;
    loop {
        let mut r = message.reader_at(HEADER_BYTES + 4).with_shifts(&shifts);
        let outcome = read(&mut r);
        assert!(outcome.is_err() || !r.wants_shift());
        drop(r);
        if outcome.is_ok() || !shifts.apply(message) {
            return (moves, outcome);
        }
        moves += 1;
        assert!(moves < 10, "the reader never stops asking for moves");
    }
}

fn is_borrowed<T>(elements: &Elements<'_, T>) -> bool {
    matches!(elements, Elements::Borrowed(_))
}

fn bins(count: usize) -> Vec<Bin> {
    (0..count)
        .map(|at| Bin { s: at as i16, c: 7, l: -(at as i32), o: at as u8, d: at as f64 / 3.0 })
        .collect()
}

fn put<T: Marshal>(w: &mut Writer<'_>, items: &[T]) {
    w.write_length(items.len()).unwrap();
    T::marshal_elements(items, w).unwrap();
}

/// A few elements test the same code under miri, in less time.
const MANY: usize = if cfg!(miri) { 9 } else { 500 };

/// Where the first element starts at 0 modulo 8, the length is in the way. At 4 modulo 8 nothing is.
#[test]
fn sequences_are_borrowed_wherever_they_begin() {
    for lead in 0..12 {
        for count in [1, 2, 3, MANY] {
            let items = bins(count);
            let mut whole = message(Encoding::NATIVE, |w| {
                w.write_octets(&vec![0xEE; lead]).unwrap();
                put(w, &items);
                w.write_str("behind").unwrap();
            });
            let (moves, outcome) = read(&mut whole, |r| {
                assert_eq!(r.read_octets()?, vec![0xEE; lead]);
                let elements = r.read_elements::<Bin>()?;
                assert!(is_borrowed(&elements));
                Ok((elements.to_vec(), r.read_str()?.into_owned(), r.remaining()))
            });
            assert_eq!(outcome, Ok((items, "behind".to_owned(), 0)), "{count} behind {lead}");
            // The body starts at 0 modulo 8.
            let length_at = (4 + lead).next_multiple_of(4);
            assert_eq!(moves, usize::from(length_at % 8 == 0), "{count} behind {lead}");
        }
    }
}

#[test]
fn a_first_element_that_takes_more_on_the_wire_is_moved_forward() {
    // `l` is at 4 and 8, and `d` not before 16.
    let items: Vec<Full> = (0..100).map(|at| Full { l: [at, -at], d: f64::from(at) }).collect();
    let mut whole = message(Encoding::NATIVE, |w| put(w, &items));
    let (moves, outcome) = read(&mut whole, |r| {
        let elements = r.read_elements::<Full>()?;
        assert!(is_borrowed(&elements));
        Ok((elements.to_vec(), r.remaining()))
    });
    assert_eq!((moves, outcome), (1, Ok((items, 0))));
}

#[test]
fn several_sequences_are_moved_and_the_rest_is_copied() {
    let items = bins(50);
    let mut whole = message(Encoding::NATIVE, |w| (0..SHIFTS_MAX + 2).for_each(|_| put(w, &items)));
    let (moves, outcome) = read(&mut whole, |r| {
        let mut borrowed = Vec::new();
        for _ in 0..SHIFTS_MAX + 2 {
            let elements = r.read_elements::<Bin>()?;
            assert_eq!(elements[..], items[..]);
            borrowed.push(is_borrowed(&elements));
        }
        Ok(borrowed)
    });
    assert_eq!((moves, outcome), (SHIFTS_MAX, Ok(vec![true, true, false, false])));
}

#[test]
fn the_other_byte_order_and_pieces_are_copied() {
    let items = bins(50);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let encoding = Encoding { order, version, ..Encoding::NATIVE };
            for joints in [vec![], vec![400]] {
                let mut whole = message(encoding, |w| put(w, &items));
                whole.joints = joints.into();
                let is_whole = whole.joints.is_empty();
                let (moves, outcome) = read(&mut whole, |r| {
                    let elements = r.read_elements::<Bin>()?;
                    Ok((is_borrowed(&elements), elements.to_vec()))
                });
                let moved = order.is_native() && is_whole;
                assert_eq!(moves, usize::from(moved));
                if is_whole {
                    assert_eq!(outcome, Ok((moved, items.clone())));
                }
            }
        }
    }
}

#[test]
fn a_truncated_sequence_is_refused_with_the_same_error() {
    for missing in [1, 8, 23, 24, 1180] {
        let mut whole = message(Encoding::NATIVE, |w| put(w, &bins(50)));
        whole.len -= missing;
        let expected = whole.reader_at(HEADER_BYTES + 4).read_elements::<Bin>().map(drop);
        let (moves, outcome) = read(&mut whole, |r| r.read_elements::<Bin>().map(drop));
        assert_eq!((moves, outcome), (0, expected));
        assert!(outcome.is_err());
    }
    // More elements than there can be.
    let mut whole = message(Encoding::NATIVE, |w| {
        w.write_u32(u32::MAX);
        w.write_bytes(&[0; 400]);
    });
    let (moves, outcome) = read(&mut whole, |r| r.read_elements::<Bin>().map(drop));
    assert!(moves == 0 && outcome.is_err());
}

#[test]
fn an_error_behind_a_moved_element_is_still_reported() {
    let mut whole = message(Encoding::NATIVE, |w| put(w, &bins(50)));
    let (moves, outcome) = read(&mut whole, |r| {
        r.read_elements::<Bin>()?;
        r.read_u32()
    });
    assert!(moves == 1 && outcome.is_err());
}

#[test]
fn a_reader_that_forgoes_shifts_copies() {
    let mut whole = message(Encoding::NATIVE, |w| put(w, &bins(50)));
    let (moves, outcome) = read(&mut whole, |r| {
        r.forgo_shifts();
        Ok((is_borrowed(&r.read_elements::<Bin>()?), r.wants_shift()))
    });
    assert_eq!((moves, outcome), (0, Ok((false, false))));
}

#[test]
fn empty_sequences_have_nothing_to_move() {
    let mut whole = message(Encoding::NATIVE, |w| put(w, &bins(0)));
    let (moves, outcome) = read(&mut whole, |r| Ok((r.read_elements::<Bin>()?.len(), r.remaining())));
    assert_eq!((moves, outcome), (0, Ok((0, 0))));
    assert_eq!(Bin::unmarshal_elements(&mut Reader::new(&[], Encoding::NATIVE), 0).unwrap(), []);
}
