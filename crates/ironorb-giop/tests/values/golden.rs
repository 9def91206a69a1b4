//! Values that omniORB and JacORB wrote. `testdata/omniorb-values/README.md` and
//! `testdata/jacorb-values/README.md` say how.

use std::path::Path;

use ironorb_giop::cdr::{Reader, Writer};
use ironorb_giop::value::{DerivesFrom, Value, ValueBase, ValueType};
use ironorb_giop::{ByteOrder, Encoding};

use super::graphs::describe;
use super::types::{Deep, Item, Known, Named, Text};

const LITTLE: Encoding = Encoding { order: ByteOrder::Little, ..Encoding::NATIVE };

const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

fn golden(name: &str) -> Vec<u8> {
    golden_of("omniorb", "little", name)
}

fn golden_of(orb: &str, order: &str, name: &str) -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/{orb}-values/values.hex"));
    let text = std::fs::read_to_string(file).unwrap();
    let start = format!("> {order} {name}");
    let lines =
        text.lines().skip_while(|line| **line != start).skip(1).take_while(|line| !line.starts_with('>'));
    let hex: String = lines.collect();
    assert!(!hex.is_empty(), "no {name}");
    let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Reads values of these formal types one after another, up to the end of the bytes.
fn read<T: ValueType + DerivesFrom<dyn ValueBase>>(
    name: &str,
    count: usize,
    known: Known,
) -> Vec<Option<Value<T>>> {
    let bytes = golden(name);
    let mut r = Reader::new(&bytes, LITTLE).with_environment(&known);
    let values = (0..count).map(|_| r.get().unwrap_or_else(|e| panic!("{name}: {e}"))).collect();
    assert_eq!(r.remaining(), 0, "{name}");
    values
}

fn check(name: &str, lines: &[&str]) {
    let read = read::<Item>(name, 1, Known::All)[0].clone().unwrap();
    assert_eq!(describe(&read, Known::All), lines, "{name}");
}

#[test]
fn values_of_omniorb() {
    assert_eq!(read::<Item>("null", 1, Known::All), [None]);
    check("single", &["1 null null"]);
    check("any value", &["1 null null"]);
    check("shared", &["2 #1 #1", "1 null null"]);
    check("cycle", &["3 #0 #0"]);
    check("truncatable", &["4 #1 #2", "5 null null five null", "6 null null six null"]);
    check("ends", &["9 null null outermost #1", "7 null null outer #2", "8 null null inner null"]);
    check(
        "deep",
        &[
            "10 #1 null deep #2 [0.0, 0.5, 1.0] [\"#1\", \"#3\", \"null\", \"#0\"]",
            "1 null null",
            "7 null null outer #3",
            "8 null null inner null",
        ],
    );
    let parameters = read::<Item>("parameters", 3, Known::All);
    assert!(parameters[0] == parameters[2] && parameters[1].as_ref().unwrap().left.get() == parameters[0]);

    let formal = read::<Deep>("formal type", 1, Known::Few)[0].clone();
    assert!(
        formal.is_none()
            || formal.is_some_and(|deep| deep.numbers == [0.0, 0.5, 1.0] && deep.items.len() == 4)
    );
    let boxes = read::<Text>("boxes", 3, Known::All);
    assert!(boxes[0] == boxes[1] && boxes[1] == boxes[2]);
    assert_eq!(boxes[0].as_ref().unwrap().0, "boxed");
}

#[test]
fn chunks_that_omniorb_split() {
    let value = read::<Item>("large", 1, Known::All)[0].clone().unwrap();
    let deep = value.downcast::<Deep>().unwrap();
    assert_eq!(deep.base.name, "x".repeat(3000));
    assert!(deep.numbers.iter().copied().eq((0..1500).map(f64::from)));
    assert_eq!(deep.items[0].get().unwrap().downcast::<Named>().unwrap().name, "after");
}

#[test]
fn values_of_omniorb_are_truncated() {
    for (name, line) in
        [("truncatable", "4 #1 #2"), ("ends", "9 null null"), ("deep", "10 #1 null"), ("large", "11")]
    {
        let value = read::<Item>(name, 1, Known::Few)[0].clone().unwrap();
        assert!(describe(&value, Known::Few)[0].starts_with(line), "{name}");
        assert!(value.downcast::<Named>().is_none());
    }
}

/// JacORB writes the ids of all values, like IronORB. Values that end at the same position have an end tag
/// each in JacORB.
#[test]
fn values_of_jacorb_are_read_and_written() {
    for (name, count) in
        [("null", 1), ("single", 1), ("shared", 1), ("cycle", 1), ("parameters", 3), ("truncatable", 1)]
    {
        let bytes = golden_of("jacorb", "big", name);
        let mut r = Reader::new(&bytes, BIG).with_environment(&Known::All);
        let values: Vec<Option<Value<Item>>> = (0..count).map(|_| r.get().unwrap()).collect();
        assert_eq!(r.remaining(), 0);
        let mut again = Vec::new();
        let mut w = Writer::new(&mut again, BIG);
        values.iter().for_each(|value| w.put(value).unwrap());
        assert_eq!(again, bytes, "{name}");
    }
    for (name, values) in [("ends", 3), ("deep", 4), ("large", 2)] {
        let bytes = golden_of("jacorb", "big", name);
        let mut r = Reader::new(&bytes, BIG).with_environment(&Known::All);
        let value = r.get::<Option<Value<Item>>>().unwrap().unwrap();
        assert_eq!((r.remaining(), describe(&value, Known::All).len()), (0, values), "{name}");
        let mut r = Reader::new(&bytes, BIG).with_environment(&Known::Few);
        let value = r.get::<Option<Value<Item>>>().unwrap().unwrap();
        assert!(r.remaining() == 0 && value.downcast::<Named>().is_none(), "{name}");
    }
}
