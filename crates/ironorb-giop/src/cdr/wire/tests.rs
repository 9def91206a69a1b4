use super::*;
use crate::version::{ByteOrder, Encoding};

/// A struct as the IDL compiler generates it: seven bytes of padding, and one more.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Bin {
    pub(crate) s: i16,
    pub(crate) c: u8,
    pub(crate) l: i32,
    pub(crate) o: u8,
    pub(crate) d: f64,
}

/// The padding is at the end. On the wire there is none behind the last element.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Tail {
    d: f64,
    o: [u8; 3],
}

/// No padding.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Full {
    pub(crate) l: [i32; 2],
    pub(crate) d: f64,
}

/// In memory the inner struct starts at a multiple of 8, on the wire at a multiple of 4.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Apart {
    l: i32,
    inner: Full,
}

macro_rules! wire {
    ($($name:ident { $($member:ident: $ty:ty),* })*) => {$(
        // SAFETY: a struct of numbers, for which all-zero bytes are a value.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: a struct of numbers, for which every pattern of bits is a value.
        unsafe impl bytemuck::AnyBitPattern for $name {}
        // SAFETY: `IMAGE` lists the members, which are numbers and so initialised.
        unsafe impl WireLayout for $name {
            const IMAGE: WireImage = WireImage::EMPTY
                $(.with(std::mem::offset_of!($name, $member), <$ty as WireLayout>::IMAGE))*;
        }

        impl Marshal for $name {
            fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
                $(w.put(&self.$member)?;)*
                Ok(())
            }
            fn marshal_elements(items: &[Self], w: &mut Writer<'_>) -> Result<(), Misuse> {
                w.put_wire_elements(items)
            }
            fn put_blocks(items: &[Self], block: &mut crate::cdr::BlockWriter<'_>) {
                for item in items {
                    $(<$ty>::put_blocks(slice::from_ref(&item.$member), block);)*
                }
            }
        }

        impl Unmarshal for $name {
            const LAYOUT: crate::cdr::BlockLayout =
                crate::cdr::BlockLayout::EMPTY$(.then(<$ty as Unmarshal>::LAYOUT))*;
            fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok($name { $($member: r.get()?),* })
            }
            fn unmarshal_elements(r: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, Malformed> {
                match r.get_wire_elements(count) {
                    Some(items) => Ok(items),
                    None => r.get_elements(count),
                }
            }
            fn borrow_elements<'a>(r: &mut Reader<'a>, count: usize) -> Option<&'a [Self]> {
                r.borrow_wire_elements(count)
            }
            fn elements_in_memory(bytes: &[u8]) -> Option<&[Self]> {
                wire_elements_in_memory(bytes)
            }
            fn get_block(block: &mut BlockReader<'_>) -> Option<Self> {
                Some($name { $($member: <$ty>::get_block(block)?),* })
            }
        }
    )*};
}

/// Each step of 96 bytes has eight of these.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Small {
    l: i32,
    s: i16,
    o: [u8; 3],
}

wire! {
    Small { l: i32, s: i16, o: [u8; 3] }
    Bin { s: i16, c: u8, l: i32, o: u8, d: f64 }
    Tail { d: f64, o: [u8; 3] }
    Full { l: [i32; 2], d: f64 }
    Apart { l: i32, inner: Full }
}

#[test]
fn types_with_the_layout_of_the_wire_are_found() {
    const { assert!(Bin::IS_AS_ON_THE_WIRE && Tail::IS_AS_ON_THE_WIRE && Full::IS_AS_ON_THE_WIRE) };
    const { assert!(Small::HAS_STEPS && Bin::HAS_STEPS && !Apart::HAS_STEPS) };
    const { assert!(!Apart::IS_AS_ON_THE_WIRE) };
    let gaps = |gaps: Gaps| gaps.gaps[..gaps.count].to_vec();
    assert_eq!(gaps(Bin::GAPS), [(3, 1), (9, 7)]);
    assert_eq!(gaps(Tail::GAPS), [(11, 5)]);
    assert_eq!(Tail::TAIL_BYTES, 5);
    assert_eq!(gaps(Full::GAPS), []);
    const { assert!(<[Bin; 3]>::IS_AS_ON_THE_WIRE) };
    const { assert!(!<[Bin; 40]>::IS_AS_ON_THE_WIRE, "too many runs") };
    const { assert!(<[[u16; 40]; 40]>::IMAGE.count == 1) };
}

/// The bytes that the general code writes, element by element.
fn one_by_one<T: Marshal>(items: &[T], lead: usize, encoding: Encoding) -> Vec<u8> {
    let mut bytes = vec![0xEE; lead];
    let mut w = Writer::continuing(&mut bytes, 0, encoding);
    items.iter().try_for_each(|item| item.marshal(&mut w)).unwrap();
    bytes
}

fn check<T>(item: impl Fn(usize) -> T)
where
    T: WireLayout + bytemuck::AnyBitPattern + Marshal + Unmarshal + PartialEq + std::fmt::Debug,
{
    // A few elements test the same code under miri, in less time.
    for count in [0, 1, 2, 3, if cfg!(miri) { 5 } else { 200 }] {
        let items: Vec<T> = (0..count).map(&item).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let encoding = Encoding { order, ..Encoding::NATIVE };
            for lead in 0..8 {
                let expected = one_by_one(&items, lead, encoding);
                let mut bytes = vec![0xEE; lead];
                T::marshal_elements(&items, &mut Writer::continuing(&mut bytes, 0, encoding)).unwrap();
                assert_eq!(bytes, expected, "{count} from {lead}");
                // From memory that is aligned for the elements, and from memory that is not.
                for shift in [0, 1] {
                    let mut space = vec![0u64; bytes.len() / 8 + 2];
                    let space: &mut [u8] = bytemuck::cast_slice_mut(&mut space);
                    let message = &mut space[shift..shift + bytes.len()];
                    message.copy_from_slice(&bytes);
                    let mut r = Reader::at(message, lead, encoding);
                    assert_eq!(T::unmarshal_elements(&mut r, count).unwrap(), items);
                    assert_eq!(r.remaining(), 0);
                    let mut r = Reader::at(message, lead, encoding);
                    if let Some(borrowed) = T::borrow_elements(&mut r, count) {
                        assert_eq!((borrowed, r.remaining()), (&items[..], 0));
                        assert!(shift == 0 && order.is_native());
                    }
                }
            }
        }
    }
}

#[test]
fn block_image_and_element_by_element_give_the_same_bytes() {
    check(|at| Bin { s: at as i16, c: 0xC0, l: -(at as i32), o: at as u8, d: at as f64 / 3.0 });
    check(|at| Tail { d: at as f64, o: [at as u8, 2, 3] });
    check(|at| Full { l: [at as i32, -1], d: at as f64 });
    check(|at| Small { l: -(at as i32), s: at as i16, o: [at as u8, 1, 2] });
    check(|at| Apart { l: at as i32, inner: Full { l: [1, 2], d: at as f64 } });
}

#[test]
fn sequences_are_borrowed_where_they_can_be() {
    let items = [Full { l: [1, 2], d: 3.0 }; 5];
    let mut space = [0u64; 16];
    let message: &mut [u8] = bytemuck::cast_slice_mut(&mut space);
    for (lead, is_borrowed) in [(0, true), (4, false)] {
        let bytes = one_by_one(&items, lead, Encoding::NATIVE);
        message[..bytes.len()].copy_from_slice(&bytes);
        let mut r = Reader::at(&message[..bytes.len()], lead, Encoding::NATIVE);
        assert_eq!(Full::borrow_elements(&mut r, 5).is_some(), is_borrowed);
        let mut r = Reader::at(&message[..bytes.len() - 1], lead, Encoding::NATIVE);
        assert_eq!(Full::borrow_elements(&mut r, 5), None, "the last element is truncated");
        assert_eq!(r.position(), lead);
        assert!(Full::unmarshal_elements(&mut r, 5).is_err());
    }
}

/// Covers whole steps and the elements left over, for each size that is copied in steps.
#[test]
fn padding_is_cleared_in_any_number() {
    for count in 1..if cfg!(miri) { 5 } else { 40 } {
        let mut items = vec![Bin { s: -1, c: 0xFF, l: -1, o: 0xFF, d: f64::from_bits(u64::MAX) }; count];
        // Padding may have any bytes, so fill it with some.
        for item in &mut items {
            let image = std::ptr::from_mut(item).cast::<MaybeUninit<u8>>();
            for at in [3, 9, 10, 11, 12, 13, 14, 15] {
                // SAFETY: the offset is within the value, in its padding.
                unsafe { image.add(at).write(MaybeUninit::new(0xAA)) };
            }
        }
        let mut bytes = vec![0x11; 8];
        let mut w = Writer::continuing(&mut bytes, 0, Encoding::NATIVE);
        Bin::marshal_elements(&items, &mut w).unwrap();
        assert_eq!(bytes.len(), 8 + 24 * count);
        for image in bytes[8..].chunks_exact(24) {
            let mut expected = [0xFF; 24];
            expected[3] = 0;
            expected[9..16].fill(0);
            assert_eq!(image, expected);
        }
    }
}

#[test]
fn padding_is_cleared() {
    // The padding of these values has arbitrary bytes, none of which may appear on the wire.
    let mut items = vec![Bin { s: -1, c: 0xFF, l: -1, o: 0xFF, d: f64::from_bits(u64::MAX) }; 3];
    items.iter_mut().for_each(|item| item.o = 0x55);
    let mut bytes = Vec::new();
    Bin::marshal_elements(&items, &mut Writer::new(&mut bytes, Encoding::NATIVE)).unwrap();
    for image in bytes.chunks_exact(24) {
        assert_eq!(image[3], 0);
        assert_eq!(image[9..16], [0; 7]);
    }
}
