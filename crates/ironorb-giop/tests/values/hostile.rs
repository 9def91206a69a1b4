//! Bytes as other ORBs send them, and bytes that only an attacker sends.

use std::collections::HashMap;

use ironorb_giop::cdr::Reader;
use ironorb_giop::value::{Link, Value, ValueBase, ValueStart};
use ironorb_giop::{ByteOrder, Encoding, Malformed, MalformedKind as K, Unmarshal};

use super::types::{Item, Known, Named, Text, alive};

const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

/// Hexadecimal words, strings (`'text` with length, NUL and padding), marks (`a:`) and offsets to them (`>a`).
fn bytes(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut marks = HashMap::new();
    for word in words.split_whitespace() {
        if let Some(mark) = word.strip_suffix(':') {
            marks.insert(mark, bytes.len() as u32);
        } else if let Some(mark) = word.strip_prefix('>') {
            bytes.extend(marks[mark].wrapping_sub(bytes.len() as u32).to_be_bytes());
        } else if let Some(text) = word.strip_prefix('\'') {
            bytes.extend((text.len() as u32 + 1).to_be_bytes());
            bytes.extend(text.bytes().chain([0]));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        } else {
            bytes.extend(u32::from_str_radix(word, 16).unwrap().to_be_bytes());
        }
    }
    bytes
}

fn read<T: Unmarshal>(words: &str, known: Known) -> Result<T, Malformed> {
    let bytes = bytes(words);
    let mut r = Reader::new(&bytes, BIG).with_environment(&known);
    let value = r.get()?;
    assert_eq!(r.remaining(), 0, "{words}");
    Ok(value)
}

fn item(words: &str) -> Result<Value<Item>, Malformed> {
    read::<Option<Value<Item>>>(words, Known::All).map(Option::unwrap)
}

fn refused(words: &str) -> K {
    let before = alive();
    let kind = item(words).unwrap_err().kind;
    assert_eq!(alive(), before, "{words}");
    kind
}

#[test]
fn optional_parts_may_be_omitted_or_present() {
    assert_eq!(item("7fffff00 5 0 0").unwrap().number, 5, "no type information");
    assert_eq!(item("7fffff02 'IDL:Item:1.0 5 0 0").unwrap().number, 5);
    assert_eq!(item("7fffff03 'http://x/ 'IDL:Item:1.0 5 0 0").unwrap().number, 5, "a code base");
    assert_eq!(item("7fffff06 1 'IDL:Item:1.0 5 0 0").unwrap().number, 5, "a list of one");
    assert_eq!(item("7fffff08 c 5 0 0 ffffffff").unwrap().number, 5, "chunked for no reason");
    assert_eq!(item("7fffff08 4 5 8 0 0 ffffffff").unwrap().number, 5, "two chunks");
    assert_eq!(item("7fffff08 10 5 0 0 9 ffffffff").unwrap().number, 5, "more state than the type has");
    assert_eq!(item("7fffff08 c 5 0 0 4 9 ffffffff").unwrap().number, 5, "a chunk more than the type has");
    // Code base, id and list of ids by indirection.
    let both = item("7fffff03 a: 'http://x/ b: 'IDL:Item:1.0 5 7fffff03 ffffffff >a ffffffff >b 6 0 0 0");
    assert_eq!(both.unwrap().left.get().unwrap().number, 6);
    let both = item("7fffff06 a: 1 'IDL:Item:1.0 5 7fffff06 ffffffff >a 6 0 0 0").unwrap();
    assert_eq!(both.left.get().unwrap().number, 6);
}

#[test]
fn values_in_chunks_as_other_orbs_write_them() {
    // The nested value ends the chunk of its owner.
    let outer = "7fffff08 4 5";
    let check = |words: &str| {
        let value = item(&format!("{outer} {words}")).unwrap();
        assert_eq!((value.number, value.left.get().unwrap().number), (5, 6), "{words}");
    };
    check("7fffff08 c 6 0 0 fffffffe 4 0 ffffffff");
    // The nested header is part of the chunk. The rest of the chunk follows it or does not.
    let value = item("7fffff08 8 5 7fffff08 c 6 0 0 fffffffe 4 0 ffffffff").unwrap();
    assert_eq!(value.left.get().unwrap().number, 6);
    let value = item("7fffff08 20 5 7fffff08 c 6 0 0 fffffffe 0 ffffffff").unwrap();
    assert_eq!(value.left.get().unwrap().number, 6);
    // A value that is not chunked, inside a chunk.
    let value = item("7fffff08 18 5 7fffff00 6 0 0 0 ffffffff").unwrap();
    assert_eq!(value.left.get().unwrap().number, 6);
    assert_eq!(refused("7fffff08 4 5 7fffff00 6 0 0 4 0 ffffffff"), K::BadChunk);
    // Null and an indirection between chunks.
    let value = item("7fffff08 4 5 0 4 0 ffffffff").unwrap();
    assert!(value.left.is_null() && value.right.is_null());
    let value = item("7fffff08 4 5 ffffffff fffffff0 4 0 ffffffff").unwrap();
    assert!(value.left.get().unwrap().ptr_eq(&value));
    // One end tag for both.
    let value = item("7fffff08 8 5 0 7fffff08 c 6 0 0 ffffffff").unwrap();
    assert_eq!(value.right.get().unwrap().number, 6);
    assert_eq!(
        refused("7fffff08 4 5 7fffff08 c 6 0 0 ffffffff 4 0"),
        K::BadChunk,
        "a value that has ended cannot be read"
    );
}

#[test]
fn data_that_is_split_over_chunks() {
    let named = |words: &str| read::<Option<Value<Named>>>(words, Known::All).map(Option::unwrap);
    let value = named("7fffff08 10 5 0 0 4 4 61626300 4 0 ffffffff").unwrap();
    assert_eq!(value.name, "abc", "a string apart from its length");
    let value = named("7fffff08 12 5 0 0 6 61620000 4 63646500 4 0 ffffffff").unwrap();
    assert_eq!(value.name, "abcde", "a string in two parts, with padding between the chunks");
    assert_eq!(
        named("7fffff08 e 5 0 0 00040000 4 0 ffffffff").unwrap_err().kind,
        K::BadChunk,
        "a number in two parts"
    );
    assert_eq!(
        named("7fffff08 12 5 0 0 7fffff 61620000 4 63646500 4 0").unwrap_err().kind,
        K::LengthBeyondData
    );

    let text = |words: &str| read::<Option<Value<Text>>>(words, Known::All).map(Option::unwrap);
    assert_eq!(text("7fffff08 4 2 1 61000000 1 00000000 ffffffff").unwrap().0, "a");
}

#[test]
fn chunks_that_lie() {
    for (words, kind) in [
        ("7fffff08 7ffffeff 5 0 0 ffffffff", K::LengthBeyondData),
        ("7fffff08 14 5 0 0 ffffffff", K::LengthBeyondData),
        ("7fffff08 10 5 0 0 ffffffff", K::Truncated),
        ("7fffff08 0 5 0 0 ffffffff", K::BadChunk),
        ("7fffff08 80000000 5 0 0 ffffffff", K::BadChunk),
        ("7fffff08 ffffffff", K::BadChunk),
        ("7fffff08 8 5 0 ffffffff", K::Truncated),
        ("7fffff08 c 5 0 0 fffffffe", K::BadChunk),
        ("7fffff08 c 5 0 0 0", K::BadChunk),
        ("7fffff08 c 5 0 0 7fffff00 ffffffff", K::BadChunk),
        ("7fffff08 c 5 0 0 7fffff08 c 0 0 0 fffffffd", K::BadChunk),
        ("7fffff08 c 5 0 0 80000001", K::BadChunk),
        ("7fffff08 c 5 0 0", K::Truncated),
        ("7fffff04 5 0 0", K::BadValueTag),
        ("7ffffeff 5 0 0", K::BadValueTag),
        ("80000000 5 0 0", K::BadValueTag),
        ("7fffff06 0 5 0 0", K::BadValueTag),
        ("7fffff06 41 5 0 0", K::BadValueTag),
        ("7fffff02 401 5 0 0", K::LengthBeyondData),
        ("7fffff02 4 49444c3a 5 0 0", K::StringNotTerminated),
        ("7fffff02 0 5 0 0", K::StringNotTerminated),
    ] {
        assert_eq!(refused(words), kind, "{words}");
    }
}

#[test]
fn invalid_indirections_are_refused() {
    for (words, kind) in [
        ("ffffffff fffffffc", K::BadIndirection),           // to itself
        ("ffffffff 0", K::BadIndirection),                  // to its own offset
        ("ffffffff 4 7fffff00 5 0 0", K::BadIndirection),   // forward
        ("ffffffff 80000000", K::BadIndirection),           // before the message
        ("7fffff00 a: 5 ffffffff >a 0", K::BadIndirection), // into the state
        ("7fffff00 5 a: 0 ffffffff >a", K::BadIndirection), // to null
        ("7fffff02 a: 'IDL:Item:1.0 5 ffffffff >a 0", K::BadIndirection), // to the id
        ("a: 7fffff02 ffffffff >a 5 0 0", K::LengthBeyondData), // an id that is a tag
        ("7fffff02 ffffffff fffffffc 5 0 0", K::BadIndirection),
        ("a: 7fffff06 ffffffff >a 5 0 0", K::BadValueTag), // a list that is a tag
    ] {
        assert_eq!(refused(words), kind, "{words}");
    }
    // An id by an indirection to an indirection.
    let chain = "7fffff02 a: 'IDL:Item:1.0 5 7fffff02 b: ffffffff >a 6 7fffff02 ffffffff >b 7 0 0 0 0";
    assert_eq!(refused(chain), K::LengthBeyondData);
}

#[test]
fn values_of_the_wrong_type() {
    assert_eq!(refused("7fffff02 'IDL:Text:1.0 1 0"), K::WrongValueType);
    assert_eq!(refused("7fffff02 'IDL:Other:1.0 1 0"), K::NoValueFactory);
    assert_eq!(refused("7fffff06 2 'IDL:Other:1.0 'IDL:Item:1.0 5 0 0"), K::NoValueFactory, "not chunked");
    assert_eq!(refused("7fffff0e 2 'IDL:Other:1.0 'IDL:Text:1.0 4 0 ffffffff"), K::NoValueFactory);
    let any = read::<Option<Value<dyn ValueBase>>>("7fffff00 1 0", Known::All);
    assert_eq!(any.unwrap_err().kind, K::NoValueFactory, "no type information for ValueBase");
    // By an indirection to a complete value, and to one that is being read.
    let pair = "a: 7fffff02 'IDL:Text:1.0 1 0 ffffffff >a";
    let bytes = bytes(pair);
    let mut r = Reader::new(&bytes, BIG).with_environment(&Known::All);
    let text: Option<Value<dyn ValueBase>> = r.get().unwrap();
    assert!(text.is_some_and(|text| text.downcast::<Text>().is_some()));
    assert_eq!(r.get::<Option<Value<Item>>>().unwrap_err().kind, K::WrongValueType);
    let named = "a: 7fffff02 'IDL:Item:1.0 5 0 7fffff02 'IDL:Named:1.0 6 0 0 1 0 ffffffff >a";
    assert_eq!(
        item(named).unwrap().right.get().unwrap().downcast::<Named>().unwrap().last.get().unwrap().number,
        5
    );
    // Outside of a graph, members are links.
    let nested = bytes_of_link();
    let mut r = Reader::new(&nested, BIG).with_environment(&Known::All);
    let link: Link<Item> = r.get().unwrap();
    assert_eq!(link.get().unwrap().number, 5);
}

fn bytes_of_link() -> Vec<u8> {
    bytes("7fffff00 5 0 0")
}

/// A truncated value has nested values of unknown and of known types. Later indirections refer to them.
#[test]
fn indirections_into_truncated_values() {
    let second = |strange: &str, to: &str| {
        let words = format!(
            "7fffff0e 2 'IDL:Other:1.0 'IDL:Item:1.0 c 5 0 0 4 number: 77 \
             outer: 7fffff0a 'IDL:Item:1.0 4 6 inner: 7fffff0a 'IDL:{strange}:1.0 4 7 8 0 0 fffffffd 4 0 fffffffe \
             8 78 79 ffffffff ffffffff >{to} ffffffff >outer"
        );
        let bytes = bytes(&words);
        let mut r = Reader::new(&bytes, BIG).with_environment(&Known::All);
        let mut next = || r.get::<Option<Value<Item>>>().map(Option::unwrap).map_err(|e| e.kind);
        assert_eq!(next().unwrap().number, 5);
        let (second, third) = (next(), next());
        if third.is_ok() {
            assert_eq!(r.remaining(), 0);
        }
        second.map(|second| (second, third))
    };
    assert_eq!(second("Strange", "number").unwrap_err(), K::BadIndirection);
    assert_eq!(second("Strange", "inner").unwrap_err(), K::NoValueFactory);
    assert_eq!(second("Strange", "outer").unwrap_err(), K::NoValueFactory, "a member of it is unknown");
    let (inner, outer) = second("Item", "inner").unwrap();
    assert_eq!((inner.number, inner.left.is_null()), (7, true));
    let outer = outer.unwrap();
    assert!(outer.number == 6 && outer.left.get().unwrap().ptr_eq(&inner));
    let (first, again) = second("Item", "outer").unwrap();
    assert!(first.ptr_eq(&again.unwrap()) && first.left.get().unwrap().number == 7);
    drop((inner, outer, first));
    assert_eq!(alive(), 0);
}

/// Reads values without their types, as interpreters do.
#[test]
fn frames_without_types() {
    let words =
        "7fffff0a 'IDL:A:1.0 4 5 b: 7fffff0e 2 'IDL:B:1.0 'IDL:C:1.0 8 1 2 fffffffe 8 ffffffff >b ffffffff 9";
    let data = bytes(words);
    let mut r = Reader::new(&data, BIG);
    let ValueStart::Value(outer) = r.begin_value().unwrap() else { panic!("a value") };
    assert_eq!((outer.position, outer.chunked, &outer.ids[..]), (0, true, &["IDL:A:1.0".into()][..]));
    assert_eq!(r.read_u32().unwrap(), 5);
    let ValueStart::Value(inner) = r.begin_value().unwrap() else { panic!("a value") };
    assert_eq!(inner.ids[..], ["IDL:B:1.0".into(), "IDL:C:1.0".into()]);
    assert_eq!(r.read_u32().unwrap(), 1);
    let inner_at = inner.position;
    r.end_value(inner).unwrap();
    let ValueStart::Indirection(to) = r.begin_value().unwrap() else { panic!("an indirection") };
    assert_eq!(to, inner_at);
    let mut again = r.reader_at_value(to).unwrap();
    let ValueStart::Value(inner) = again.begin_value().unwrap() else { panic!("a value") };
    assert_eq!((again.read_u32().unwrap(), again.read_u32().unwrap()), (1, 2));
    again.end_value(inner).unwrap();
    r.end_value(outer).unwrap();
    assert_eq!((r.read_u32().unwrap(), r.remaining()), (9, 0));
}
