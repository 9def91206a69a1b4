//! An `any` created from values before it had an ORB's factories. It is sent with the types that its values
//! know themselves.

use super::*;
use crate::cdr::{MarshalNillable, UnmarshalNillable};
use crate::ior::Ior;
use crate::typecode::TypedNillable;
use crate::value::test_types::{Item, Known, Noted, Secret, TC_SECRET};
use crate::value::{Abstract, Link, StateFactory, Value, ValueBase, ValueFactory, ValueInfo, ValueType};

static TC_THING: TypeDef = TypeDef::AbstractInterface { id: "IDL:Thing:1.0", name: "Thing" };

/// A reference that knows its environment, like an ORB's references.
#[derive(Debug, Clone)]
struct Reference {
    ior: Ior,
    belongs: bool,
}

impl MarshalNillable for Reference {
    fn marshal_some(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.note_environment(|| Some(Arc::new(Receiver)));
        self.ior.marshal(w)
    }
    fn marshal_nil(w: &mut Writer<'_>) -> Result<(), Misuse> {
        Ior::nil().marshal(w)
    }
}

impl UnmarshalNillable for Reference {
    const NIL_BYTES_MIN: usize = 8;
    fn unmarshal_nillable(r: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        let belongs = r.environment().is_some_and(|found| found.downcast_ref::<Receiver>().is_some());
        Ok(Some(Reference { ior: r.get()?, belongs }))
    }
}

impl TypedNillable for Reference {
    const TYPE: &'static TypeDef = &TC_THING;
}

type Thing = Abstract<Reference>;

struct Receiver;

impl Environment for Receiver {
    fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
        match id {
            "IDL:Secret:1.0" => Some(Arc::new(StateFactory::<Secret>::new())),
            id => Known.value_factory(id),
        }
    }
    fn share(&self) -> Option<Arc<dyn Environment>> {
        Some(Arc::new(Receiver))
    }
}

/// Sends the value in both byte orders, at every alignment and in a chunked value, and checks that it arrives
/// unchanged.
#[track_caller]
fn sent(any: &Any) -> Any {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for lead in 0..8 {
            let encoding = Encoding { order, ..Encoding::NATIVE };
            let mut bytes = vec![0; lead];
            let mut w = Writer::continuing(&mut bytes, 0, encoding);
            w.put(any).unwrap();
            w.put(&Some(Value::new(Noted { extra: any.clone(), ..Noted::default() }))).unwrap();
            let mut r = Reader::at(&bytes, lead, encoding).with_environment(&Receiver);
            assert_eq!(r.get::<Any>().as_ref(), Ok(any));
            let around = r.get::<Option<Value<Noted>>>().unwrap().unwrap();
            assert_eq!(&around.extra, any);
            assert_eq!(r.remaining(), 0);
        }
    }
    let bytes = bytes_of(any, BIG);
    Reader::new(&bytes, BIG).with_environment(&Receiver).get().unwrap()
}

fn secret() -> Value<Secret> {
    let inside = Noted { name: "inside".into(), ..Noted::default() };
    Value::new(Secret { number: 5, inside: Link::from(Value::new(inside)) })
}

#[track_caller]
fn check_secret(secret: &Secret) {
    let inside = secret.inside.get().unwrap().downcast::<Noted>().unwrap();
    assert_eq!((secret.number, inside.name.as_str()), (5, "inside"));
}

#[test]
fn a_custom_value_is_extracted_after_it_was_sent() {
    let any = Any::new(&Some(secret())).unwrap();
    for any in [sent(&any), sent(&sent(&any)), any] {
        check_secret(&any.extract::<Option<Value<Secret>>>().unwrap().unwrap());
    }
    let checked = Any::with_type(&TC_SECRET, &Some(secret())).unwrap();
    check_secret(&sent(&checked).extract::<Option<Value<Secret>>>().unwrap().unwrap());
}

#[test]
fn values_behind_abstract_interfaces() {
    for (value, custom) in
        [(secret().upcast::<dyn ValueBase>(), true), (Value::new(Item::default()).upcast(), false)]
    {
        let any = Any::new(&Thing::from(&value)).unwrap();
        for any in [sent(&any), any] {
            let value = any.extract::<Thing>().unwrap().value().unwrap();
            assert_eq!(value.downcast::<Secret>().is_some(), custom);
            assert_eq!(value.downcast::<Item>().is_some(), !custom);
        }
    }
}

/// No TypeCode describes the derived value behind a base, either.
#[test]
fn values_of_derived_types_behind_their_bases() {
    let named = Noted { name: "derived".into(), ..Noted::default() };
    let any = Any::new(&Some(Value::new(named).upcast::<Item>())).unwrap();
    for any in [sent(&any), any] {
        let item = any.extract::<Option<Value<Item>>>().unwrap().unwrap();
        assert_eq!(item.downcast::<Noted>().unwrap().name, "derived");
    }
}

/// Several values of different types in an `any` in an `any`, with references among them.
#[test]
fn in_sequences_and_in_other_anys() {
    let reference = Abstract::Object(Reference { ior: Ior::nil(), belongs: false });
    let things = Any::new(&vec![reference, Thing::from(&secret().upcast::<dyn ValueBase>())]).unwrap();
    let item = Any::new(&Some(Value::new(Item { number: 9, ..Item::default() }))).unwrap();
    let any = Any::new(&Any::new(&vec![things, item]).unwrap()).unwrap();
    for any in [sent(&any), any.clone(), any.with_environment(Arc::new(Known))] {
        let inner = any.extract::<Any>().unwrap().extract::<Vec<Any>>().unwrap();
        let things = sent(&inner[0]).extract::<Vec<Thing>>().unwrap();
        assert!(things[0].object().unwrap().belongs);
        check_secret(&things[1].value().unwrap().downcast::<Secret>().unwrap());
        assert!(inner[0].extract::<Vec<Thing>>().is_ok());
        let item = sent(&inner[1]).extract::<Option<Value<Item>>>().unwrap().unwrap();
        assert_eq!(item.number, 9);
    }
}

/// In a chunk that starts with a TypeCode, indirections do not count the chunk's length.
#[test]
fn recursive_types_behind_values() {
    let item = Any::new(&Some(Value::new(Item { number: 9, ..Item::default() }))).unwrap();
    let any = Any::new(&vec![item.clone(), item]).unwrap();
    assert_eq!(sent(&any), any);
}

/// Without the limit, each level would double the work.
#[test]
fn custom_values_in_anys_in_custom_values_are_bounded() {
    let nest = |any: &Any| {
        let inside = Value::new(Noted { extra: any.clone(), ..Noted::default() });
        Any::new(&Some(Value::new(Secret { number: 1, inside: Link::from(inside) })))
    };
    let mut any = nest(&Any::new(&1i32).unwrap()).unwrap();
    for _ in 1..5 {
        any = nest(&any).unwrap();
        let bytes = bytes_of(&any, BIG);
        assert_eq!(Reader::new(&bytes, BIG).with_environment(&Receiver).get::<Any>().as_ref(), Ok(&any));
    }
    let deep = nest(&any).unwrap();
    assert_eq!(Writer::new(&mut Vec::new(), BIG).put(&deep), Err(Misuse::TooDeep));
    // Sending it unchanged needs no copy. Reading it does.
    let bytes = bytes_of(&deep, CANONICAL);
    let refused = Reader::new(&bytes, CANONICAL).with_environment(&Receiver).get::<Any>().unwrap_err();
    assert_eq!(refused.kind, MalformedKind::TooDeep);
}

/// A custom value with an `any` that leads back to the value. Reading it must end.
#[test]
fn circles_through_anys_are_refused() {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, BIG);
    w.put(&TypeCode::of(&TC_SECRET)).unwrap();
    let secret = w.begin_value(&["IDL:Secret:1.0"], true).unwrap();
    w.put(&-5i32).unwrap();
    let named = w.begin_value(&["IDL:Noted:1.0", "IDL:Item:1.0"], true).unwrap();
    w.put(&2i32).unwrap();
    w.write_null_value();
    w.write_null_value();
    w.write_str("round").unwrap();
    w.put(&TypeCode::of(&TC_SECRET)).unwrap();
    w.write_value_indirection(secret.position()).unwrap();
    w.end_value(named).unwrap();
    w.end_value(secret).unwrap();
    let refused = Reader::new(&bytes, BIG).with_environment(&Receiver).get::<Any>().unwrap_err();
    assert_eq!(refused.kind, MalformedKind::TooDeep);
    let mut typed = Reader::new(&bytes, BIG).with_environment(&Receiver);
    typed.get::<TypeCode>().unwrap();
    let refused = typed.get::<Option<Value<Secret>>>().unwrap_err();
    assert_eq!(refused.kind, MalformedKind::TooDeep);
}

/// Registered factories precede the types that values know themselves.
#[test]
fn registered_factories_come_first() {
    struct Twice;
    impl ValueFactory for Twice {
        fn info(&self) -> &'static ValueInfo {
            Secret::INFO
        }
        fn unmarshal_state(&self, r: &mut Reader<'_>) -> Result<Box<dyn ValueBase>, Malformed> {
            let secret = Secret::unmarshal_state(r)?;
            Ok(Box::new(Secret { number: 2 * secret.number, ..secret }))
        }
    }
    struct Registered;
    impl Environment for Registered {
        fn value_factory(&self, id: &str) -> Option<Arc<dyn ValueFactory>> {
            (id == Secret::INFO.id).then(|| -> Arc<dyn ValueFactory> { Arc::new(Twice) })
        }
        fn share(&self) -> Option<Arc<dyn Environment>> {
            Some(Arc::new(Registered))
        }
    }
    let any = Any::new(&Thing::from(&secret().upcast::<dyn ValueBase>())).unwrap();
    let number = |any: &Any| {
        let value = any.extract::<Thing>().unwrap().value().unwrap();
        value.downcast::<Secret>().unwrap().number
    };
    assert_eq!(number(&any), 5);
    assert_eq!(number(&any.with_environment(Arc::new(Registered))), 10);
}

/// Numbers, texts and null need no environment.
#[test]
fn other_values_need_no_environment() {
    let texts = vec!["long enough for memory of its own".to_owned(); 2];
    for any in [Any::new(&1i32), Any::new(&texts), Any::new(&None::<Value<Secret>>), Any::new(&Thing::Nil)] {
        assert!(any.unwrap().content.environment().is_none());
    }
}
