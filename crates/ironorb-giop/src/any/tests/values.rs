//! Valuetypes inside an `any`.

use super::*;
use crate::typecode::{ValueMember, ValueModifier, Visibility};
use crate::value::test_types::{Item, Known, Noted};
use crate::value::{Value, ValueGraph};

/// Sends the value in both byte orders and at all alignments, to a receiver that knows all types.
#[track_caller]
fn sent(any: &Any) -> Any {
    let mut last = any.clone();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for lead in 0..8 {
            let encoding = Encoding { order, ..Encoding::NATIVE };
            let mut bytes = vec![0u8; lead];
            Writer::continuing(&mut bytes, 0, encoding).put(any).unwrap();
            let mut r = Reader::at(&bytes, lead, encoding).with_environment(&Known);
            last = r.get().unwrap_or_else(|e| panic!("{e} in {bytes:x?}"));
            assert_eq!(r.remaining(), 0);
            assert_eq!(&last, any);
            for cut in lead..bytes.len().min(2000) {
                let mut r = Reader::at(&bytes[..cut], lead, encoding).with_environment(&Known);
                assert!(r.get::<Any>().is_err());
            }
        }
    }
    last
}

/// first -> second (of a derived type) -> first, second twice.
fn ring() -> Value<Item> {
    let mut graph = ValueGraph::new();
    let first = graph.reserve::<Item>();
    let second = graph.add(Noted {
        base: Item { number: 2, left: graph.link(first), ..Item::default() },
        name: "second".into(),
        extra: Any::new(&0.5f64).unwrap(),
    });
    graph
        .fill(first, Item { number: 1, left: graph.link(second), right: graph.link(second), alive: None })
        .unwrap();
    graph.finish(first).unwrap()
}

#[test]
fn graphs_keep_their_shape() {
    let any = Any::new(&Some(ring())).unwrap().with_environment(Arc::new(Known));
    for any in [sent(&any), sent(&sent(&any)), any] {
        let first = any.extract::<Option<Value<Item>>>().unwrap().unwrap();
        assert_eq!(first.left, first.right);
        let second = first.left.get().unwrap();
        assert!(second.left.get().unwrap().ptr_eq(&first));
        let second = second.downcast::<Noted>().unwrap();
        assert_eq!((second.number_and_name(), second.extra.extract()), ((2, "second"), Ok(0.5)));
    }
}

impl Noted {
    fn number_and_name(&self) -> (i32, &str) {
        (self.base.number, &self.name)
    }
}

#[test]
fn text_shows_graphs() {
    let any = Any::new(&Some(ring())).unwrap().with_environment(Arc::new(Known));
    assert_eq!(
        format!("{any:?}"),
        "Any(Item { number: 1, left: Noted : Item { number: 2, left: ^, right: null } \
         { name: \"second\", extra: Any(0.5) }, right: ^ })"
    );
    assert_eq!(format!("{:?}", Any::new(&None::<Value<Item>>).unwrap()), "Any(null)");
}

#[test]
fn null_and_lists_of_any_length() {
    let null = Any::new(&None::<Value<Item>>).unwrap();
    assert_eq!(sent(&null).extract::<Option<Value<Item>>>().unwrap(), None);

    let mut graph = ValueGraph::new();
    let mut next = graph.add(Item::default());
    for number in 1..20_000 {
        next = graph.add(Item { number, left: graph.link(next), ..Item::default() });
    }
    let any = Any::new(&Some(graph.finish(next).unwrap())).unwrap();
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, BIG).put(&any).unwrap();
    let any = Reader::new(&bytes, BIG).with_environment(&Known).get::<Any>().unwrap();
    let mut at = any.extract::<Option<Value<Item>>>().unwrap();
    let mut count = 0;
    while let Some(value) = at {
        count += 1;
        at = value.left.get();
    }
    assert_eq!(count, 20_000);
}

/// A receiver that does not know the derived type truncates the value to its base, as the sender permits.
#[test]
fn unknown_types_are_cut_to_their_bases() {
    let named = Noted { base: Item { number: 7, ..Item::default() }, name: "cut".into(), ..Noted::default() };
    let list = vec![Some(Value::new(named).upcast::<Item>()), Some(Value::new(Item::default()))];
    let any = Any::new(&list).unwrap().with_environment(Arc::new(Known));
    let bytes = bytes_of(&any, BIG);
    let any = Reader::new(&bytes, BIG).get::<Any>().unwrap();
    let list = any.extract::<Vec<Option<Value<Item>>>>().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list[0].as_ref().unwrap().number, 7);
    assert!(list[0].as_ref().unwrap().downcast::<Noted>().is_none());
}

#[test]
fn damaged_graphs_give_a_value_or_an_error() {
    let any = Any::new(&Some(ring())).unwrap().with_environment(Arc::new(Known));
    let bytes = bytes_of(&any, BIG);
    for at in 0..bytes.len() {
        for flip in [1, 2, 4, 8, 0x10, 0x80, 0xFF] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
            if let Ok(any) = r.get::<Any>() {
                let _ = (any.extract::<Option<Value<Item>>>(), format!("{any:?}"), any == any.clone());
            }
        }
    }
}

/// JacORB 3.9 omits the bases from TypeCodes of valuetypes, and marks truncatable types as plain.
#[test]
fn a_type_code_without_its_base_is_read_as_the_type_known_by_its_id() {
    let members = [("name", &TypeDef::String { bound: 0 }), ("extra", &TypeDef::Any)].map(|(name, ty)| {
        ValueMember { name: name.to_owned(), type_code: TypeCode::from(ty), visibility: Visibility::Public }
    });
    let bare = TypeCode::create_value("IDL:Noted:1.0", "Noted", ValueModifier::None, None, &members).unwrap();
    let item = Item { number: 7, ..Item::default() };
    let noted = Noted { base: item, name: "name".into(), ..Noted::default() };
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let encoding = Encoding { order, ..Encoding::NATIVE };
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, encoding);
        w.put(&bare).unwrap();
        w.put(&Some(Value::new(noted.clone()))).unwrap();
        w.put(&0x0102_0304_u32).unwrap();
        let mut r = Reader::new(&bytes, encoding).with_environment(&Known);
        let any = r.get::<Any>().unwrap();
        assert_eq!(r.get::<u32>().unwrap(), 0x0102_0304, "the value behind the any");
        let found = sent(&any).extract::<Option<Value<Noted>>>().unwrap().unwrap();
        assert_eq!((found.base.number, &*found.name), (7, "name"));
        // A receiver that does not know the type has only the TypeCode.
        assert!(Reader::new(&bytes, encoding).get::<Any>().is_err());
    }
}
