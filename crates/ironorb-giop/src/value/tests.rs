use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::test_types::{Alive, Item, Known, Named, Tail};
use super::*;
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind};
use crate::version::{ByteOrder, Encoding};

const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

fn bytes_of(value: &Option<Value<Item>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(value).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Option<Value<Item>>, Malformed> {
    let mut r = Reader::new(bytes, BIG).with_environment(&Known);
    let value = r.get();
    assert!(value.is_err() || r.remaining() == 0);
    value
}

#[test]
fn handles_to_one_value_have_one_identity_and_hash() {
    let (value, alike) = (Value::new(Item::default()), Value::new(Item::default()));
    assert_eq!(value.clone().id(), value.id());
    assert_ne!(value.id(), alike.id(), "equal states, but two values");
    let seen: std::collections::HashSet<_> = [value.clone(), value.clone(), alike.clone()].into();
    assert_eq!(seen.len(), 2);
    assert_eq!(value.downcast::<dyn ValueBase>().unwrap().id(), value.id(), "whatever its formal type");
}

#[test]
fn null_single_shared_and_cyclic() {
    assert_eq!(read(&bytes_of(&None)).unwrap(), None);

    let leaf = Value::new(Item { number: 3, ..Item::default() });
    let pair = Value::new(Item { number: 1, left: (&leaf).into(), right: (&leaf).into(), ..Item::default() });
    let pair = read(&bytes_of(&Some(pair))).unwrap().unwrap();
    assert_eq!(pair.left, pair.right);
    assert_eq!(pair.left.get().unwrap().number, 3);

    let mut graph = ValueGraph::new();
    let first = graph.reserve::<Item>();
    let second = graph.add(Named {
        base: Item { number: 2, left: graph.link(first), ..Item::default() },
        name: "second".into(),
    });
    graph.fill(first, Item { number: 1, right: graph.link(second), ..Item::default() }).unwrap();
    let first = read(&bytes_of(&Some(graph.finish(first).unwrap()))).unwrap().unwrap();
    let second = first.right.get().unwrap();
    assert!(second.left.get().unwrap().ptr_eq(&first));
    assert_eq!(second.downcast::<Named>().unwrap().name, "second");
    drop(first);
    assert_eq!(second.left.get().unwrap().number, 1, "any handle keeps the whole graph");
}

#[test]
fn graphs_are_freed_whatever_their_shape() {
    let alive = Arc::new(AtomicUsize::new(0));
    let item = |left, right| Item { number: 0, left, right, alive: Some(Alive::counted(&alive)) };
    let mut graph = ValueGraph::new();
    let first = graph.reserve::<Item>();
    let outside = Value::new(item(Link::null(), Link::null()));
    let second = graph.add(item(graph.link(first), outside.into()));
    graph.fill(first, item(graph.link(second), graph.link(first))).unwrap();
    let first = graph.finish(first).unwrap();
    let copied = first.left.clone();
    assert_eq!(alive.load(Ordering::Relaxed), 3);
    drop(first);
    assert_eq!(alive.load(Ordering::Relaxed), 3);
    drop(copied);
    assert_eq!(alive.load(Ordering::Relaxed), 0);

    let mut list = Value::new(item(Link::null(), Link::null()));
    for _ in 0..200_000 {
        list = Value::new(item(list.into(), Link::null()));
    }
    drop(list);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn indirections_that_lead_astray_are_refused() {
    let kind = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        read(&bytes).unwrap_err().kind
    };
    assert_eq!(kind(&[0xFFFF_FFFF, 0xFFFF_FFFC]), MalformedKind::BadIndirection);
    assert_eq!(kind(&[0xFFFF_FFFF, 4]), MalformedKind::BadIndirection);
    assert_eq!(kind(&[0x7FFF_FF00, 1, 0xFFFF_FFFF, 0xFFFF_FFF8]), MalformedKind::BadIndirection);
    assert_eq!(kind(&[5]), MalformedKind::BadValueTag);
}

/// The bytes of a value, words for readability.
fn check_bytes(value: Value<Item>, words: &[&str]) {
    let mut expected = Vec::new();
    for word in words {
        match word.strip_prefix('\'') {
            Some(text) => expected.extend(text.bytes().chain([0])),
            None => expected.extend(u32::from_str_radix(word, 16).unwrap().to_be_bytes()),
        }
        if word.starts_with('\'') {
            expected.resize(expected.len().next_multiple_of(4), 0);
        }
    }
    let bytes = bytes_of(&Some(value));
    assert_eq!(hex(&bytes), hex(&expected));
}

fn hex(bytes: &[u8]) -> Vec<String> {
    bytes.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

#[test]
fn chunks_close_before_values_and_end_tags_collapse() {
    let inner = Named { base: Item { number: 3, ..Item::default() }, name: "in".into() };
    let outer = Named {
        base: Item { number: 1, left: Value::new(inner).into(), ..Item::default() },
        name: "out".into(),
    };
    check_bytes(
        Value::new(Item { number: 9, right: Value::new(outer).into(), ..Item::default() }),
        &[
            "7fffff02",
            "d",
            "'IDL:Item:1.0",
            "9",
            "0", //
            "7fffff0e",
            "2",
            "e",
            "'IDL:Named:1.0",
            "ffffffff",
            "ffffffc4", // its base by indirection
            "4",
            "1", // a chunk with the number
            "7fffff0e",
            "2",
            "ffffffff",
            "ffffffd0",
            "ffffffff",
            "ffffffa4", // its ids by indirections
            "13",
            "3",
            "0",
            "0",
            "3",
            "'in",      // one chunk, and the padding after it
            "fffffffe", // its end: level 2
            "c",
            "0",
            "4",
            "'out",
            "ffffffff",
        ],
    );
    let last = Named { base: Item::default(), name: String::new() };
    let tail = Tail { base: Item { number: 1, ..Item::default() }, last: Value::new(last).into() };
    check_bytes(
        Value::new(tail).upcast(),
        &[
            "7fffff0e",
            "2",
            "d",
            "'IDL:Tail:1.0",
            "d",
            "'IDL:Item:1.0", //
            "c",
            "1",
            "0",
            "0", //
            "7fffff0e",
            "2",
            "e",
            "'IDL:Named:1.0",
            "ffffffff",
            "ffffffbc", //
            "11",
            "0",
            "0",
            "0",
            "1",
            "'",
            "ffffffff",
        ],
    );
}

/// Where the writer says so, an array ends its chunk. The value that is read is the same.
#[test]
fn a_chunk_ends_with_a_long_member() {
    let named = Named { base: Item { number: 7, ..Item::default() }, name: "name".into() };
    let write = |chunked: bool, say: bool| {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, Encoding { order: ByteOrder::Big, ..Encoding::NATIVE });
        let open = w.begin_value(&["IDL:Named:1.0"], chunked).unwrap();
        named.base.marshal_state(&mut w).unwrap();
        if say {
            w.end_long_member().unwrap();
            w.end_long_member().unwrap(); // an empty chunk is no chunk
        }
        w.put(&named.name).unwrap();
        if say {
            w.end_long_member().unwrap();
        }
        w.end_value(open).unwrap();
        bytes
    };
    let (one, two) = (write(true, false), write(true, true));
    assert_eq!(
        hex(&one[24..]),
        ["00000015", "00000007", "00000000", "00000000", "00000005", "6e616d65", "00000000", "ffffffff"]
    );
    assert_eq!(
        hex(&two[24..]),
        [
            "0000000c", "00000007", "00000000", "00000000", //
            "00000009", "00000005", "6e616d65", "00000000", "ffffffff",
        ]
    );
    for bytes in [one, two] {
        let read = read(&bytes).unwrap().unwrap();
        assert_eq!((read.number, &*read.downcast::<Named>().unwrap().name), (7, "name"));
    }
    assert_eq!(write(false, true), write(false, false), "it has no effect without chunks");
}
