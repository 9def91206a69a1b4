use super::super::wire::tests::Bin;
use super::super::{Marshal, Shifts, Writer};
use super::*;
use crate::framer::{Framer, FramerLimits, ReceiveMemory};
use crate::message::{HEADER_BYTES, MessageHeader, MessageType};
use crate::version::{ByteOrder, Encoding, Version};

/// Few elements test the same code under miri, in less time.
const MANY: usize = if cfg!(miri) { 40 } else { 20_000 };

/// A request of which only the body matters, as a framer returns it.
fn message(framer: &mut Framer, encoding: Encoding, body: impl Fn(&mut Writer<'_>)) -> Message {
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
    framer.push(&bytes);
    framer.next().unwrap().unwrap()
}

fn of_body(encoding: Encoding, body: impl Fn(&mut Writer<'_>)) -> Message {
    let mut whole = message(&mut Framer::new(FramerLimits::default()), encoding, body);
    // As a framer's buffer is for a message of this length that has come alone.
    whole.buf = whole.bytes().to_vec().into();
    whole
}

/// Reads as a server does. Returns how often the message was read.
fn read<T>(
    message: &mut Message,
    mut read: impl for<'a> FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> (usize, Result<T, Malformed>) {
    let mut shifts = Shifts::default();
    for times in 1..10 {
        let mut r = shifts.whole(message).reader_at(HEADER_BYTES + 4).with_shifts(&shifts);
        let outcome = read(&mut r);
        drop(r);
        if outcome.is_ok() || !shifts.apply(message) {
            shifts.put_back(message);
            return (times, outcome);
        }
    }
    panic!("the reader never stops asking");
}

fn kept<T: Unmarshal + Clone + 'static>(r: &mut Reader<'_>) -> Result<(OwnedSlice<T>, bool), Malformed> {
    let received = r.read_ownable::<T>(u32::MAX)?;
    let argument = received.lend();
    let owned = argument.into_owned();
    Ok((owned.clone(), owned.as_ptr() == argument.as_ptr() && is_shared(&owned)))
}

fn is_shared<T>(owned: &OwnedSlice<T>) -> bool {
    matches!(owned.0, Memory::Message { .. })
}

fn octets() -> Vec<u8> {
    (0..MANY).map(|at| (at * 7) as u8).collect()
}

fn bins() -> Vec<Bin> {
    (0..MANY).map(|at| Bin { s: at as i16, c: 7, l: -(at as i32), o: at as u8, d: at as f64 / 3.0 }).collect()
}

fn put<T: Marshal>(w: &mut Writer<'_>, items: &[T]) {
    w.put(items).unwrap();
}

#[test]
fn a_large_argument_keeps_the_message() {
    let (data, numbers) = (octets(), (0..MANY).map(|at| at as f64).collect::<Vec<f64>>());
    for lead in 0..9 {
        let mut whole = of_body(Encoding::NATIVE, |w| {
            w.write_octets(&vec![0xEE; lead]).unwrap();
            put(w, &data);
        });
        let address = whole.bytes().as_ptr();
        let (times, outcome) = read(&mut whole, |r| {
            r.read_octets()?;
            kept::<u8>(r)
        });
        let (owned, is_shared) = outcome.unwrap();
        assert!((times, is_shared) == (2, true) && *owned == *data, "behind {lead}");
        assert!(whole.bytes().is_empty(), "the message has left");
        let clone = owned.clone();
        assert_eq!(clone.into_vec(), data, "there is a clone, so this is a copy");
        let vec = owned.into_vec();
        assert!(vec == data && vec.as_ptr() == address, "moved in the message's own memory");

        let mut whole = of_body(Encoding::NATIVE, |w| {
            w.write_octets(&vec![0xEE; lead]).unwrap();
            put(w, &numbers);
        });
        let is_aligned = whole.bytes().as_ptr().addr() % 8 == 0;
        let (_, outcome) = read(&mut whole, |r| {
            r.read_octets()?;
            kept::<f64>(r)
        });
        let (owned, is_shared) = outcome.unwrap();
        assert!(*owned == *numbers && is_shared == is_aligned);
        assert!(owned.into_vec() == numbers);
    }
}

/// Where the first struct is moved, the message is moved in first and shared then, or the other way round.
#[test]
fn moved_structs_are_shared_too() {
    let (items, data) = (bins(), octets());
    for first in [false, true] {
        for lead in 0..9 {
            let mut whole = of_body(Encoding::NATIVE, |w| {
                w.write_octets(&vec![0xEE; lead]).unwrap();
                if first {
                    put(w, &data);
                }
                put(w, &items);
            });
            let is_aligned = whole.bytes().as_ptr().addr() % 8 == 0;
            let (_, outcome) = read(&mut whole, |r| {
                r.read_octets()?;
                if first {
                    assert_eq!(*r.read_ownable::<u8>(u32::MAX)?.lend(), *data);
                }
                kept::<Bin>(r)
            });
            let (owned, is_shared) = outcome.unwrap();
            assert!(*owned == *items && is_shared == is_aligned, "{first} {lead}");
        }
    }
}

#[test]
fn what_is_not_kept_goes_back() {
    let mut whole = of_body(Encoding::NATIVE, |w| put(w, &octets()));
    let before = whole.bytes().to_vec();
    let (times, outcome) = read(&mut whole, |r| Ok(r.read_ownable::<u8>(u32::MAX)?.lend().len()));
    assert_eq!((times, outcome), (2, Ok(MANY)));
    assert_eq!(whole.bytes(), before);
    // An error behind it is reported as without it.
    let (_, outcome) = read(&mut whole, |r| {
        r.read_ownable::<u8>(u32::MAX)?;
        r.read_u64()
    });
    assert!(outcome.is_err());
    assert_eq!(whole.bytes(), before);
}

#[test]
fn an_argument_that_is_a_small_part_of_the_buffer_is_copied() {
    let small = vec![5u8; MANY / 10];
    let mut whole = of_body(Encoding::NATIVE, |w| {
        put(w, &octets());
        put(w, &small);
        put(w, &octets());
    });
    let (times, outcome) = read(&mut whole, |r| {
        r.read_octets()?;
        Ok((kept::<u8>(r)?.1, kept::<u8>(r)?.1))
    });
    assert_eq!((times, outcome), (2, Ok((false, true))));
    // A long buffer, from a longer message before.
    let mut whole = of_body(Encoding::NATIVE, |w| put(w, &octets()));
    let mut bytes = whole.bytes().to_vec();
    bytes.resize(5 * MANY, 0);
    whole.buf = bytes.into();
    let (times, outcome) = read(&mut whole, kept::<u8>);
    let (owned, is_shared) = outcome.unwrap();
    assert!((times, is_shared) == (2, false) && *owned == *octets());
}

/// Octets have no order, so they are shared all the same.
#[test]
fn the_other_byte_order_and_pieces_are_converted() {
    let (items, data, numbers) = (bins(), octets(), vec![1.5f64; MANY]);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let encoding = Encoding { order, version, ..Encoding::NATIVE };
            let is_native = order.is_native();
            let (_, outcome) = read(&mut of_body(encoding, |w| put(w, &data)), kept::<u8>);
            assert!(outcome == Ok((data.clone().into(), true)));
            let (_, outcome) = read(&mut of_body(encoding, |w| put(w, &numbers)), kept::<f64>);
            let (owned, is_shared) = outcome.unwrap();
            assert!(*owned == *numbers && (is_native || !is_shared));
            let (_, outcome) = read(&mut of_body(encoding, |w| put(w, &items)), kept::<Bin>);
            let (owned, is_shared) = outcome.unwrap();
            assert!(*owned == *items && (is_native || !is_shared));
        }
    }
    // GIOP 1.1 aligns each fragment by itself.
    let mut whole = of_body(Encoding::NATIVE, |w| put(w, &data));
    whole.joints = vec![400].into();
    let (_, outcome) = read(&mut whole, kept::<u8>);
    assert!(outcome.is_ok_and(|(owned, is_shared)| *owned == *data && !is_shared));
}

#[test]
fn lengths_are_checked_before_memory_is_taken() {
    for length in [u32::MAX, 401, 400 / 8 + 1] {
        let body = |w: &mut Writer<'_>| {
            w.write_u32(length);
            w.write_bytes(&[0; 400]);
        };
        let (times, outcome) = read(&mut of_body(Encoding::NATIVE, body), kept::<f64>);
        assert!(times == 1 && outcome.is_err(), "{length}");
        let (times, outcome) = read(&mut of_body(Encoding::NATIVE, body), kept::<Bin>);
        assert!(times == 1 && outcome.is_err(), "{length}");
        if length > 400 {
            let (times, outcome) = read(&mut of_body(Encoding::NATIVE, body), kept::<u8>);
            assert!(times == 1 && outcome.is_err(), "{length}");
        }
    }
    let mut whole = of_body(Encoding::NATIVE, |w| put(w, &[7u8; 100]));
    let (times, outcome) = read(&mut whole, |r| r.read_ownable::<u8>(99).map(drop));
    assert_eq!((times, outcome.map_err(|e| e.kind)), (1, Err(MalformedKind::BoundExceeded)));
}

#[test]
fn without_an_owner_that_reads_again_elements_are_copied() {
    let whole = of_body(Encoding::NATIVE, |w| put(w, &octets()));
    let (owned, is_shared) = kept::<u8>(&mut whole.reader_at(HEADER_BYTES + 4)).unwrap();
    assert!(*owned == *octets() && !is_shared);
    let texts = vec!["one".to_owned(), "two".to_owned()];
    let whole = of_body(Encoding::NATIVE, |w| put(w, &texts));
    let received = whole.reader_at(HEADER_BYTES + 4).read_ownable::<String>(u32::MAX).unwrap();
    let argument = received.lend();
    assert_eq!(argument.into_owned().as_ptr(), argument.as_ptr(), "strings are not copied once more");
    assert_eq!(argument.into_owned().into_vec(), texts);
}

#[test]
fn what_is_kept_counts_for_the_memory_limit() {
    let memory = Arc::new(ReceiveMemory::new(100 * MANY));
    let mut framer = Framer::sharing(FramerLimits::default(), Some(memory.clone()));
    let data = vec![3u8; 60 * MANY.max(2_000)];
    let mut whole = message(&mut framer, Encoding::NATIVE, |w| put(w, &data));
    let taken = memory.taken_bytes();
    let (owned, is_shared) = read(&mut whole, kept::<u8>).1.unwrap();
    drop((whole, framer));
    assert!(is_shared && taken >= data.len() - crate::framer::BUFFER_BYTES);
    assert_eq!(memory.taken_bytes(), taken);
    let clone = owned.clone();
    drop(owned);
    assert_eq!(memory.taken_bytes(), taken);
    assert_eq!(clone.into_vec(), data);
    assert_eq!(memory.taken_bytes(), 0, "a vector is the program's own");
}

#[test]
fn an_owned_slice_is_passed_on_without_a_copy() {
    fn is_free<T: Send + Sync + 'static>(_: &T) {}
    let owned = OwnedSlice::from(vec![1, 2, 3]);
    is_free(&owned);
    let argument = Ownable::from(&owned);
    assert_eq!(argument.into_owned().as_ptr(), owned.as_ptr());
    assert_ne!(Ownable::from(&owned[..]).into_owned().as_ptr(), owned.as_ptr());
    assert_eq!(Ownable::from(&[1, 2, 3]).into_owned(), owned);
    assert_eq!(format!("{owned:?} {argument:?}"), "[1, 2, 3] [1, 2, 3]");
    assert_eq!(owned.into_vec(), [1, 2, 3]);
}
