//! Valuetypes inside an `any`.

use super::*;
use crate::typecode::{ValueModifier, Visibility};
use crate::value::{
    DerivesFrom, Link, StateFactory, Value, ValueBase, ValueFactory, ValueGraph, ValueInfo, ValueKind,
    ValueType, View, state,
};

/// valuetype Item { public long number; public Item left; public Item right; };
#[derive(Debug, Default, Clone)]
pub(super) struct Item {
    pub(super) number: i32,
    pub(super) left: Link<Item>,
    pub(super) right: Link<Item>,
}

/// valuetype Named : truncatable Item { public string name; public any extra; };
#[derive(Debug, Default, Clone)]
pub(super) struct Named {
    pub(super) base: Item,
    pub(super) name: String,
    pub(super) extra: Any,
}

static TC_ITEM: TypeDef = TypeDef::Value {
    id: "IDL:Item:1.0",
    name: "Item",
    modifier: ValueModifier::None,
    base: None,
    members: &[
        ("number", &TypeDef::Long, Visibility::Public),
        ("left", &TC_ITEM, Visibility::Public),
        ("right", &TC_ITEM, Visibility::Public),
    ],
};
static TC_NAMED: TypeDef = TypeDef::Value {
    id: "IDL:Named:1.0",
    name: "Named",
    modifier: ValueModifier::Truncatable,
    base: Some(&TC_ITEM),
    members: &[
        ("name", &TypeDef::String { bound: 0 }, Visibility::Public),
        ("extra", &TypeDef::Any, Visibility::Public),
    ],
};

impl ValueBase for Item {
    fn info(&self) -> &'static ValueInfo {
        Self::INFO
    }
    fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.number)?;
        w.put(&self.left)?;
        w.put(&self.right)
    }
}

impl ValueType for Item {
    const INFO: &'static ValueInfo = &ValueInfo {
        id: "IDL:Item:1.0",
        bases: &[],
        truncatable: 0,
        kind: ValueKind::Plain,
        type_def: &TC_ITEM,
        factory: &StateFactory::<Self>::new(),
        views: &[&View::<Item>(state::<Item>)],
    };
    fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Item { number: r.get()?, left: r.get()?, right: r.get()? })
    }
}

impl ValueBase for Named {
    fn info(&self) -> &'static ValueInfo {
        Self::INFO
    }
    fn marshal_state(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        self.base.marshal_state(w)?;
        w.put(&self.name)?;
        w.put(&self.extra)
    }
}

impl ValueType for Named {
    const INFO: &'static ValueInfo = &ValueInfo {
        id: "IDL:Named:1.0",
        bases: &["IDL:Item:1.0"],
        truncatable: 1,
        kind: ValueKind::Plain,
        type_def: &TC_NAMED,
        factory: &StateFactory::<Self>::new(),
        views: &[&View::<Named>(state::<Named>), &View::<Item>(|v| Some(&state::<Named>(v)?.base))],
    };
    fn unmarshal_state(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Named { base: Item::unmarshal_state(r)?, name: r.get()?, extra: r.get()? })
    }
}

impl DerivesFrom<Item> for Item {}
impl DerivesFrom<dyn ValueBase> for Item {}
impl DerivesFrom<Named> for Named {}
impl DerivesFrom<Item> for Named {}
impl DerivesFrom<dyn ValueBase> for Named {}

pub(super) struct Known;

impl Environment for Known {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        match id {
            "IDL:Item:1.0" => Some(Arc::new(StateFactory::<Item>::new())),
            "IDL:Named:1.0" => Some(Arc::new(StateFactory::<Named>::new())),
            _ => None,
        }
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(Known))
    }
}

/// Through both orders and all alignments, by one who knows all types.
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
    let second = graph.add(Named {
        base: Item { number: 2, left: graph.link(first), right: Link::null() },
        name: "second".into(),
        extra: Any::new(&0.5f64).unwrap(),
    });
    graph.fill(first, Item { number: 1, left: graph.link(second), right: graph.link(second) }).unwrap();
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
        let second = second.downcast::<Named>().unwrap();
        assert_eq!((second.number_and_name(), second.extra.extract()), ((2, "second"), Ok(0.5)));
    }
}

impl Named {
    fn number_and_name(&self) -> (i32, &str) {
        (self.base.number, &self.name)
    }
}

#[test]
fn text_shows_graphs() {
    let any = Any::new(&Some(ring())).unwrap().with_environment(Arc::new(Known));
    assert_eq!(
        format!("{any:?}"),
        "Any(Item { number: 1, left: Named : Item { number: 2, left: ^, right: null } \
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
        next = graph.add(Item { number, left: graph.link(next), right: Link::null() });
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

/// One who does not know the derived type takes it for its base, because its sender allows that.
#[test]
fn unknown_types_are_cut_to_their_bases() {
    let named = Named { base: Item { number: 7, ..Item::default() }, name: "cut".into(), ..Named::default() };
    let list = vec![Some(Value::new(named).upcast::<Item>()), Some(Value::new(Item::default()))];
    let any = Any::new(&list).unwrap().with_environment(Arc::new(Known));
    let bytes = bytes_of(&any, BIG);
    let any = Reader::new(&bytes, BIG).get::<Any>().unwrap();
    let list = any.extract::<Vec<Option<Value<Item>>>>().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list[0].as_ref().unwrap().number, 7);
    assert!(list[0].as_ref().unwrap().downcast::<Named>().is_none());
}

/// A value that stands in the message before the any.
#[test]
fn values_before_the_any_are_copied_into_it() {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, BIG);
    w.put(&Some(Value::new(Item { number: 3, ..Item::default() }))).unwrap();
    w.put(&TypeCode::of(&TC_ITEM)).unwrap();
    w.write_value_indirection(0).unwrap();
    let mut r = Reader::new(&bytes, BIG).with_environment(&Known);
    let before = r.get::<Option<Value<Item>>>().unwrap().unwrap();
    let any = r.get::<Any>().unwrap();
    assert_eq!(r.remaining(), 0);
    assert_eq!(any.extract::<Option<Value<Item>>>().unwrap().unwrap().number, before.number);
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
