//! An `any` that refers to earlier values of its message: some ORBs have one table of values per message.

use super::*;
use crate::value::test_types::{Item, Known, Noted, Secret, TC_ITEM, TC_SECRET};
use crate::value::{Link, StateFactory, Value, ValueFactory, ValueGraph};

type Nillable = Option<Value<Item>>;

/// A list of `count` values. Each refers to the value before it and to the one behind it.
fn doubly_linked(count: i32) -> Value<Item> {
    let mut graph = ValueGraph::new();
    let places: Vec<_> = (0..count).map(|_| graph.reserve::<Item>()).collect();
    for (i, place) in places.iter().enumerate() {
        let link = |at: Option<usize>| {
            at.and_then(|at| places.get(at)).map_or(Link::null(), |place| graph.link(*place))
        };
        // Linked through `right`, so that the writer reaches earlier values after it has written the rest.
        let item =
            Item { number: i as i32, left: link(i.checked_sub(1)), right: link(Some(i + 1)), alive: None };
        graph.fill(*place, item).unwrap();
    }
    graph.finish(places[0]).unwrap()
}

fn list(count: i32) -> Value<Item> {
    let mut graph = ValueGraph::new();
    let mut next = graph.add(Item { number: count - 1, ..Item::default() });
    for number in (0..count - 1).rev() {
        next = graph.add(Item { number, left: graph.link(next), ..Item::default() });
    }
    graph.finish(next).unwrap()
}

/// Where in the bytes the value with this number starts, for any ids.
fn place_of(bytes: &[u8], number: i32) -> usize {
    let state = (0..bytes.len() - 4)
        .step_by(4)
        .find(|&at| bytes[at..at + 4] == number.to_be_bytes() && bytes[at - 8..at - 4] == [0xFF; 4]);
    state.unwrap() - 12 // the tag, and an indirection to the id
}

/// Writes an `any` of a type whose value is an indirection to an earlier position.
fn put_reference(bytes: &mut Vec<u8>, ty: &'static TypeDef, place: usize) {
    let mut w = Writer::continuing(bytes, 0, BIG);
    w.put(&TypeCode::of(ty)).unwrap();
    w.write_value_indirection(place).unwrap();
}

fn value_and_any(bytes: &[u8]) -> (Value<Item>, Any) {
    let mut r = Reader::new(bytes, BIG).with_environment(&Known);
    let before = r.get::<Nillable>().unwrap().unwrap();
    let any = r.get::<Any>().unwrap();
    assert_eq!(r.remaining(), 0);
    (before, any)
}

#[test]
fn lists_of_any_length() {
    for count in [1, 2, 80, 90, 300, 100_000] {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, BIG).put(&Some(list(count))).unwrap();
        let length = bytes.len();
        put_reference(&mut bytes, &TC_ITEM, 0);
        let (_, any) = value_and_any(&bytes);
        assert!(any.content.len() <= length + 64, "{} of {length}", any.content.len());
        let mut at = any.extract::<Nillable>().unwrap();
        for number in 0..count {
            let item = at.unwrap();
            assert_eq!(item.number, number);
            at = item.left.get();
        }
        assert!(at.is_none());
    }
}

/// The value is in the middle of the graph that leads back to it. It is copied once, and stays one value.
#[test]
fn values_in_the_middle_of_their_graph() {
    for count in [3, 10_000] {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, BIG).put(&Some(doubly_linked(count))).unwrap();
        let (length, middle) = (bytes.len(), count / 2);
        let place = place_of(&bytes, middle);
        put_reference(&mut bytes, &TC_ITEM, place);
        let (_, any) = value_and_any(&bytes);
        assert!(any.content.len() <= length + 64, "{} of {length}", any.content.len());
        let item = any.extract::<Nillable>().unwrap().unwrap();
        let mut first = item.clone();
        while let Some(before) = first.left.get() {
            assert!(before.right.get().unwrap().ptr_eq(&first));
            first = before;
        }
        assert_eq!(first.number, 0);
        let mut last = item.clone();
        while let Some(after) = last.right.get() {
            assert!(after.left.get().unwrap().ptr_eq(&last));
            last = after;
        }
        assert_eq!((item.number, last.number), (middle, count - 1));
    }
}

/// Separate values, each with a link to the previous one, are nested as deeply as there are values.
#[test]
fn values_that_refer_to_ones_before_them() {
    let count = 2000;
    let mut values: Vec<Nillable> = vec![Some(Value::new(Item::default()))];
    for number in 1..count {
        let left = Link::from(values.last().unwrap().clone());
        values.push(Some(Value::new(Item { number, left, ..Item::default() })));
    }
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(&values).unwrap();
    let place = place_of(&bytes, count - 1);
    put_reference(&mut bytes, &TC_ITEM, place);
    let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
    assert_eq!(r.get::<Vec<Nillable>>().unwrap().len(), count as usize);
    let mut at = r.get::<Any>().unwrap().extract::<Nillable>().unwrap();
    for number in (0..count).rev() {
        let item = at.unwrap();
        assert_eq!(item.number, number);
        at = item.left.get();
    }
    assert!(at.is_none());
}

/// Each `any` holds its own copy. A peer that sends many references to a large graph is refused before the
/// copies are out of proportion.
#[test]
fn many_that_refer_to_much_are_refused() {
    let count = 2000;
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(&Some(list(count))).unwrap();
    let graph = bytes.len();
    for _ in 0..count {
        put_reference(&mut bytes, &TC_ITEM, 0);
    }
    let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
    r.get::<Nillable>().unwrap();
    let mut kept = Vec::new();
    let refused = loop {
        match r.get::<Any>() {
            Ok(any) => kept.push(any),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, MalformedKind::OutOfProportion);
    let held: usize = kept.iter().map(|any| any.content.len()).sum();
    let limit = READ_AGAIN_MAX * bytes.len() + READ_AGAIN_FREE;
    assert!(held <= limit + graph && held + 2 * graph > limit, "{held}, {limit}");
    // One `any` with all the references is one copy.
    let sequence = TypeCode::create_sequence(&TypeCode::of(&TC_ITEM), 0).unwrap();
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(&Some(list(count))).unwrap();
    let mut w = Writer::continuing(&mut bytes, 0, BIG);
    w.put(&sequence).unwrap();
    w.write_u32(count as u32);
    (0..count).try_for_each(|_| w.write_value_indirection(0)).unwrap();
    let (_, any) = value_and_any(&bytes);
    assert!(any.content.len() <= bytes.len());
    let items = any.extract::<Vec<Nillable>>().unwrap();
    assert_eq!(items.len(), count as usize);
    assert!(items.iter().flatten().all(|item| item.ptr_eq(items[0].as_ref().unwrap())));
}

/// A sender may omit the type of a value where that type is expected. A later reference to the value may
/// expect a base.
#[test]
fn the_type_of_a_value_is_the_one_expected_at_the_value() {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, BIG);
    let noted = w.begin_value(&[], false).unwrap();
    w.put(&7i32).unwrap();
    w.write_null_value();
    w.write_null_value();
    w.write_str("name").unwrap();
    w.put(&Any::new(&5i16).unwrap()).unwrap();
    w.end_value(noted).unwrap();
    put_reference(&mut bytes, &TC_ITEM, 0);
    let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
    r.get::<Option<Value<Noted>>>().unwrap();
    let item = r.get::<Any>().unwrap().extract::<Nillable>().unwrap().unwrap();
    let noted = item.downcast::<Noted>().unwrap();
    assert_eq!((item.number, noted.name.as_str(), noted.extra.extract()), (7, "name", Ok(5i16)));
}

struct All;

impl Environment for All {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        match id {
            "IDL:Secret:1.0" => Some(Arc::new(StateFactory::<Secret>::new())),
            id => Known.value_factory(id),
        }
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(All))
    }
}

#[test]
fn an_any_refers_to_a_custom_value_before_it() {
    let inside = Value::new(Noted { name: "inside".into(), ..Noted::default() });
    let mut bytes = Vec::new();
    let secret = Value::new(Secret { number: 5, inside: inside.upcast::<Item>().into() });
    Writer::new(&mut bytes, BIG).put(&Some(secret)).unwrap();
    put_reference(&mut bytes, &TC_SECRET, 0);
    let mut r = Reader::new(&bytes, BIG).with_environment(&All);
    r.get::<Option<Value<Secret>>>().unwrap();
    let secret = r.get::<Any>().unwrap().extract::<Option<Value<Secret>>>().unwrap().unwrap();
    assert_eq!(
        (secret.number, secret.inside.get().unwrap().downcast::<Noted>().unwrap().name.as_str()),
        (5, "inside")
    );
}

/// An `any` in the state of a value. It refers to an earlier value of the same graph, and to the value that
/// contains it.
#[test]
fn from_within_a_graph() {
    let state = |w: &mut Writer<'_>, number: i32| {
        w.put(&number).unwrap();
        w.write_null_value();
        w.write_null_value();
    };
    for to_around in [false, true] {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, BIG);
        let noted = w.begin_value(&["IDL:Noted:1.0"], false).unwrap();
        w.put(&1i32).unwrap();
        let left = w.begin_value(&["IDL:Item:1.0"], false).unwrap();
        let (around, before) = (noted.position(), left.position());
        state(&mut w, 2);
        w.end_value(left).unwrap();
        w.write_null_value();
        w.write_str("name").unwrap();
        w.put(&TypeCode::of(&TC_ITEM)).unwrap();
        w.write_value_indirection(if to_around { around } else { before }).unwrap();
        w.end_value(noted).unwrap();
        let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
        let noted = r.get::<Option<Value<Noted>>>().unwrap().unwrap();
        assert_eq!(r.remaining(), 0);
        let item = noted.extra.extract::<Nillable>().unwrap().unwrap();
        assert_eq!((noted.base.number, item.number), (1, if to_around { 1 } else { 2 }));
        if to_around {
            let again = item.downcast::<Noted>().unwrap();
            assert_eq!((again.name.as_str(), again.base.left.get().unwrap().number), ("name", 2));
        }
    }
}

#[test]
fn damaged_references_give_a_value_or_an_error() {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(&Some(doubly_linked(4))).unwrap();
    let noted = Value::new(Noted { name: "n".into(), ..Noted::default() });
    Writer::continuing(&mut bytes, 0, BIG).put(&Some(noted)).unwrap();
    let start = bytes.len();
    for number in [2, 0] {
        let place = if number == 0 { 0 } else { place_of(&bytes, number) };
        put_reference(&mut bytes, &TC_ITEM, place);
    }
    let read = |bytes: &[u8]| {
        let mut r = Reader::new(bytes, BIG).with_environment(&Known);
        r.get::<Nillable>()?;
        r.get::<Nillable>()?;
        for _ in 0..2 {
            let any = r.get::<Any>()?;
            let _ = (any.extract::<Nillable>(), format!("{any:?}"), any == any.clone());
        }
        Ok::<_, Malformed>(())
    };
    read(&bytes).unwrap();
    for at in 0..bytes.len() {
        for flip in [1, 2, 4, 8, 0x10, 0x80, 0xFF] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let _ = read(&bytes);
        }
    }
    // Every position before the references, whether a value starts there or not.
    for place in (0..start).step_by(4) {
        let mut bytes = bytes[..start].to_vec();
        put_reference(&mut bytes, &TC_ITEM, place);
        put_reference(&mut bytes, &TC_ITEM, 0);
        let _ = read(&bytes);
    }
}
