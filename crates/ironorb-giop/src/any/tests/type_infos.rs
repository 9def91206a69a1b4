//! Type information in other positions: eight bytes can refer to 64 KiB of it, and many values can do so.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::typecode::{ValueMember, ValueModifier, Visibility};
use crate::value::test_types::{Item, Known, TC_ITEM};
use crate::value::{VALUE_IDS_MAX, Value, ValueFactory};

/// Counts the requests for factories.
#[derive(Default)]
struct Asked(AtomicUsize);

impl Environment for Asked {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Known.value_factory(id)
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(Known))
    }
}

/// An `any` with a list of values. All but the first refer to the first one's list of ids.
fn list_with_ids(count: usize, ids: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, BIG);
    w.put(&TypeCode::of(&TC_ITEM)).unwrap();
    let mut list_at = 0;
    for number in 0..count {
        w.write_u32(0x7FFF_FF0E);
        if number == 0 {
            list_at = w.position();
            w.write_u32(ids.len() as u32);
            ids.iter().try_for_each(|id| w.write_str(id)).unwrap();
            w.align(4);
        } else {
            w.write_value_indirection(list_at).unwrap();
        }
        w.write_u32(4);
        w.write_u32(number as u32);
    }
    w.write_u32(8);
    w.write_null_value();
    w.write_null_value();
    for left in (0..count).rev() {
        w.write_i32(-(left as i32) - 1);
        if left > 0 {
            w.write_u32(4);
            w.write_null_value();
        }
    }
    bytes
}

#[track_caller]
fn check_list(any: &Any, count: usize) {
    let mut at = any.extract::<Option<Value<Item>>>().unwrap();
    for number in 0..count {
        let item = at.unwrap();
        assert_eq!(item.number, number as i32);
        at = item.left.get();
    }
    assert!(at.is_none());
}

#[test]
fn a_long_list_is_read_and_written_once() {
    let count = 2000;
    // Only the last id is known.
    let long = "x".repeat(1000);
    let mut ids: Vec<String> = (1..VALUE_IDS_MAX).map(|i| format!("IDL:{long}/{i}:1.0")).collect();
    ids.push("IDL:Item:1.0".to_owned());
    for front in [VALUE_IDS_MAX - 1, 0] {
        ids.swap(0, front);
        let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
        let bytes = list_with_ids(count, &ids);
        let asked = Asked::default();
        let any = Reader::new(&bytes, BIG).with_environment(&asked).get::<Any>().unwrap();
        let asked = asked.0.load(Ordering::Relaxed);
        assert!(asked <= 2 * VALUE_IDS_MAX, "{asked} for {count} values");
        assert!(any.content.len() <= bytes.len() + 8 * count, "{} of {}", any.content.len(), bytes.len());
        check_list(&any, count);
        let again = bytes_of(&any, BIG);
        assert!(again.len() <= bytes.len() + 8 * count, "{} of {}", again.len(), bytes.len());
        let any = Reader::new(&again, BIG).with_environment(&Known).get::<Any>().unwrap();
        check_list(&any, count);
    }
}

/// Lists as long as real inheritance has are written in full, because not every ORB supports indirections to
/// lists. Each id in them is an indirection.
#[test]
fn short_lists_are_written_for_each_value() {
    let count = 500;
    for length in [2, 8] {
        let ids: Vec<String> = (1..length).map(|i| format!("IDL:Base{i}:1.0")).collect();
        let ids: Vec<&str> = ["IDL:Item:1.0"].into_iter().chain(ids.iter().map(|id| &**id)).collect();
        let bytes = list_with_ids(count, &ids);
        let any = Reader::new(&bytes, BIG).with_environment(&Known).get::<Any>().unwrap();
        check_list(&any, count);
        let again = bytes_of(&any, BIG);
        let in_full = [&0x7FFF_FF0Eu32.to_be_bytes()[..], &(length as u32).to_be_bytes()].concat();
        assert_eq!(
            again.chunks(4).collect::<Vec<_>>().windows(2).filter(|w| w.concat() == in_full).count(),
            count
        );
        assert!(again.len() <= bytes.len() + count * (8 * length + 4), "{} of {}", again.len(), bytes.len());
        check_list(&Reader::new(&again, BIG).with_environment(&Known).get::<Any>().unwrap(), count);
    }
}

/// A value without ids has the expected type, whose own id may be long too.
#[test]
fn the_expected_type_is_written_once() {
    let type_code = |length: usize| {
        let id = format!("IDL:{}:1.0", "x".repeat(length));
        let next = ValueMember {
            name: "next".into(),
            type_code: TypeCode::recursive(&id).unwrap(),
            visibility: Visibility::Public,
        };
        TypeCode::create_value(&id, "X", ValueModifier::None, None, &[next]).unwrap()
    };
    let count = 1000;
    let mut bytes = [0x7F, 0xFF, 0xFF, 0x00].repeat(count);
    bytes.extend([0; 4]);
    let any = Any::read_value(type_code(1000), &mut Reader::new(&bytes, BIG)).unwrap();
    assert!(any.content.len() <= 12 * count + 1024 + 16, "{}", any.content.len());
    let refused = Any::read_value(type_code(10_000), &mut Reader::new(&bytes, BIG));
    assert_eq!(refused.unwrap_err().kind, MalformedKind::BadTypeCode);
}

/// Padding can be the count of a list that starts there, so one list can overlap another.
#[test]
fn lists_within_lists_are_refused() {
    let region = 200;
    let mut bytes = Vec::new();
    for _ in 0..region + VALUE_IDS_MAX {
        bytes.extend(5u32.to_be_bytes());
        bytes.extend(b"IDL:\0\0\0");
        bytes.push(VALUE_IDS_MAX as u8);
    }
    let start = bytes.len();
    let mut w = Writer::continuing(&mut bytes, 0, BIG);
    w.put(&TypeCode::of(&TC_ITEM)).unwrap();
    for number in 0..region {
        w.write_u32(0x7FFF_FF0E);
        w.write_value_indirection(8 + 12 * number).unwrap();
        w.write_u32(4);
        w.write_u32(0);
    }
    struct Any4;
    impl Environment for Any4 {
        fn value_factory(&self, _: &str) -> Option<Arc<dyn ValueFactory>> {
            Known.value_factory("IDL:Item:1.0")
        }
        fn share(&self) -> Option<Arc<dyn Environment>> {
            None
        }
    }
    let error = Reader::at(&bytes, start, BIG).with_environment(&Any4).get::<Any>().unwrap_err();
    assert_eq!(error.kind, MalformedKind::OutOfProportion);
}
