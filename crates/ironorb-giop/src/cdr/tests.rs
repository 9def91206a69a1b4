use super::*;
use crate::version::{ByteOrder, Encoding, Version};

fn round_trip<T: Marshal + Unmarshal + PartialEq + std::fmt::Debug>(value: &T) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let encoding = Encoding { order, ..Encoding::NATIVE };
        for lead in 0..8 {
            let mut bytes = vec![0u8; lead];
            Writer::continuing(&mut bytes, 0, encoding).put(value).unwrap();
            let mut r = Reader::at(&bytes, lead, encoding);
            assert_eq!(&r.get::<T>().unwrap(), value);
            assert_eq!(r.remaining(), 0);
            for cut in lead..bytes.len() {
                assert!(Reader::at(&bytes[..cut], lead, encoding).get::<T>().is_err(), "cut at {cut}");
            }
        }
    }
}

#[test]
fn primitives_and_sequences() {
    round_trip(&-2i16);
    round_trip(&0x0102_0304u32);
    round_trip(&1.5f64);
    round_trip(&vec![1i32, -2, 3]);
    round_trip(&vec![1.0f64]);
    round_trip(&vec![true, false]);
    round_trip(&vec!["a".to_owned(), String::new(), "żółw".to_owned()]);
    round_trip(&WString::from("wide 𝄞"));
    round_trip(&'ż');
    round_trip(&[[1u16, 2], [3, 4]]);
    round_trip(&LongDouble::from(1.5));
}

#[test]
fn a_length_beyond_the_data_takes_no_memory() {
    let bytes = [0xFFu8; 8];
    let e = Reader::new(&bytes, Encoding::NATIVE).get::<Vec<f64>>().unwrap_err();
    assert_eq!(e.kind, MalformedKind::LengthBeyondData);
}

#[test]
fn wide_text_of_giop_1_1_has_a_terminator() {
    let encoding = Encoding { version: Version::V1_1, order: ByteOrder::Big, ..Encoding::NATIVE };
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, encoding).write_wstr("hé").unwrap();
    assert_eq!(bytes, [0, 0, 0, 3, 0, b'h', 0, 0xE9, 0, 0]);
    assert_eq!(Reader::new(&bytes, encoding).read_wstr().unwrap(), "hé");
}

#[test]
fn long_double_keeps_every_double() {
    for value in [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, 1e-310] {
        assert_eq!(LongDouble::from(value).to_f64().to_bits(), value.to_bits(), "{value}");
    }
    assert!(LongDouble::from(f64::NAN).to_f64().is_nan());
}
