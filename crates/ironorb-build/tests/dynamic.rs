//! Generated types and dynamic values convert into each other without change.

#![deny(warnings)]

use std::fmt::Debug;

use ironorb::dyn_any::{DynAny, DynAnyError};
use ironorb::generated::{Any, Value, ValueBase, value::ValueGraph};
use ironorb::giop::{Marshal, Unmarshal};
use ironorb::{Orb, TcKind, TypeCode, Typed};

use crate::compiled::{any, boxes, building_blocks, fixed, unions, values};

use any::dynamic::{Either, Property, Unfit};
use boxes::boxes::{Labels, Names, Place, Point, Text};
use building_blocks::blocks::{BySmall, ByUint8, ByWide, Color, Derived, Late, Settings};
use fixed::money::{Cost, Line};
use unions::unions::{ByBoolean, ByColor, ByLong, by_long::Pair};
use values::graphs::{Apart, Deep, Edge, Maybe, Named, Node};

/// Visits all components, each of which becomes a node of the dynamic value.
fn visit(value: &mut DynAny<'_>) {
    for index in 0..value.component_count().unwrap() {
        visit(&mut value.component(index).unwrap());
    }
}

/// Checks that a value is unchanged after a visit, after assembly from its components and after assignment.
#[track_caller]
fn check<T: Typed + Marshal + Unmarshal + PartialEq + Debug>(value: T) {
    let any = Any::new(&value).unwrap();
    let mut dynamic = DynAny::from_any(&any).unwrap();
    assert_eq!(dynamic.get::<T>().unwrap(), value);
    visit(&mut dynamic);
    assert_eq!(dynamic.to_any().unwrap(), any);
    assert_eq!(dynamic.get::<T>().unwrap(), value);
    let mut made = DynAny::new(&TypeCode::for_type::<T>()).unwrap();
    assert_eq!(made.to_any().unwrap().type_code(), any.type_code());
    made.insert(&value).unwrap();
    assert!(made.equal(&dynamic).unwrap());
    assert_eq!(made.to_any().unwrap().extract::<T>().unwrap(), value);
}

#[test]
fn structs_unions_and_exceptions() {
    let derived = Derived {
        many: vec![-1, 2],
        some: [3, -4, 5],
        years: [("ann".to_owned(), 40), ("bob".to_owned(), 50)].into(),
        deep: [(Color::Green, [(7, Default::default())].into())].into(),
        some_letters: [('ż', b'z')].into(),
        some_labels: [(9, "nn".to_owned())].into(),
        e: -5,
        ..Derived::default()
    };
    check(derived);
    check(Settings { owner: "somebody".to_owned(), ..Settings::default() });
    check(Late { seconds: 5 });
    check(ByBoolean::Yes("yes".to_owned()));
    check(ByColor::B(vec![1, 2, 3]));
    check(ByLong::Both(Pair { first: 1, second: 2 }));
    check(BySmall::Minus(5));
    check(ByWide::Euro(6));
    check(ByUint8::All { label: 200, value: 7 });
    check(vec![Either::Value(Any::new(&3i16).unwrap()), Either::Type(TypeCode::for_type::<Color>())]);
    check(Unfit { value: Any::new("text").unwrap(), wanted: TypeCode::for_type::<i32>() });
    check(Property { name: "n".to_owned(), value: Any::new(&Late { seconds: 1 }).unwrap() });
    check(Line { price: "12.50".parse().unwrap(), more: vec!["-0.01".parse().unwrap()], ..Line::default() });
}

#[test]
fn values_assembled_by_name_are_read_as_their_type() {
    let mut value = DynAny::new(&TypeCode::for_type::<Derived>()).unwrap();
    value.member("small").unwrap().insert_octet(0xFE).unwrap();
    value.member("bytes").unwrap().insert_numbers(&[1u8, 2, 3]).unwrap();
    let mut years = value.member("years").unwrap();
    years.set_length(1).unwrap();
    let mut year = years.component(0).unwrap();
    year.member("key").unwrap().insert_string("eve").unwrap();
    year.member("value").unwrap().insert_long(30).unwrap();
    let derived: Derived = value.get().unwrap();
    assert_eq!((derived.small, &derived.bytes[..]), (-2, &[1, 2, 3][..]));
    assert_eq!(derived.years["eve"], 30);
    assert_eq!(
        derived,
        Derived { small: -2, bytes: vec![1, 2, 3], years: derived.years.clone(), ..Derived::default() }
    );

    let mut cost = DynAny::new(&TypeCode::for_type::<Cost>()).unwrap();
    assert_eq!(cost.active_member_name().unwrap(), "rough");
    assert_eq!(cost.active_member().unwrap().set_fixed_text("1.25"), Ok(false));
    assert_eq!(cost.get::<Cost>().unwrap(), Cost::Rough("1.2".parse().unwrap()));
    cost.set_to_default_member().unwrap();
    cost.active_member().unwrap().set_fixed_text("1.25").unwrap();
    assert!(matches!(cost.get::<Cost>().unwrap(), Cost::Exact { value, .. } if value.to_string() == "1.25"));

    let mut long = DynAny::new(&TypeCode::for_type::<ByLong>()).unwrap();
    long.discriminator().unwrap().insert_long(5).unwrap();
    long.active_member().unwrap().insert(&7i32).unwrap(); // its first member
    assert_eq!(long.get::<ByLong>().unwrap(), ByLong::Both(Pair { first: 7, second: 0 }));
    assert_eq!(long.active_member().unwrap().insert(&7i64), Err(DynAnyError::TypeMismatch));
}

/// A cycle: first -> second, which is of a derived type, -> first. An edge holds both.
fn graph() -> Value<Node> {
    let mut graph = ValueGraph::new();
    let first = graph.reserve::<Node>();
    let base = Node { label: "second".to_owned(), next: vec![graph.link(first)], ..Node::default() };
    let named = Named { base, name: "name".to_owned(), ..Named::default() };
    let second = graph.reserve::<Deep>();
    let edges = vec![Edge { from: graph.link(first), to: graph.link(second), weight: 0.5 }];
    graph.fill(second, Deep { base_: named, edges, ..Deep::default() }).unwrap();
    let next = vec![graph.link(second), graph.link(second)];
    graph.fill(first, Node { label: "first".to_owned(), next, ..Node::default() }).unwrap();
    graph.finish(first).unwrap()
}

#[test]
fn graphs_keep_their_shape() {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    values::register_in_values(&orb);
    let any = Any::new(&Some(graph())).unwrap();
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!(value.to_any().unwrap(), any);
    let mut next = value.member("next").unwrap();
    let mut second = next.component(1).unwrap();
    assert_eq!(second.value_type().unwrap(), Some(TypeCode::for_type::<Option<Value<Deep>>>()));
    assert_eq!(second.member("label").unwrap().get_string().unwrap(), "second");
    second.member("label").unwrap().insert_string("changed").unwrap();
    second
        .member("edges")
        .unwrap()
        .component(0)
        .unwrap()
        .member("weight")
        .unwrap()
        .insert_double(2.0)
        .unwrap();
    second.member("extra").unwrap().set_to_value_of(&TypeCode::for_type::<Option<Value<Apart>>>()).unwrap();
    second.member("extra").unwrap().member("anything").unwrap().insert_any(&any).unwrap();
    // A value made from its TypeCode alone cannot become a Rust value, because no factory is known. One that
    // was a Rust value brings its factory along.
    let made = second.member("extra").unwrap().copy().unwrap();
    let apart = Apart { anything: any.clone(), ..Apart::default() };
    second.member("extra").unwrap().insert_val(&Some(Value::new(apart))).unwrap();
    assert!(second.member("extra").unwrap().equal(&made).unwrap());
    assert_eq!(made.clone().get::<Option<Value<dyn ValueBase>>>().unwrap_err(), DynAnyError::InvalidValue);

    let first: Value<Node> = value.get::<Option<Value<Node>>>().unwrap().unwrap();
    assert_eq!(first.next[0], first.next[1]);
    let second = first.next[0].get().unwrap().downcast::<Deep>().unwrap();
    assert_eq!((second.base_.base.label.as_str(), second.edges[0].weight), ("changed", 2.0));
    assert!(second.edges[0].from.get().unwrap().ptr_eq(&first));
    assert!(second.edges[0].to.get().unwrap().ptr_eq(&second));
    let extra = second.base_.extra.get().unwrap().downcast::<Apart>().unwrap();
    let inner = extra.anything.extract::<Option<Value<Node>>>().unwrap().unwrap();
    assert_eq!((inner.label.as_str(), inner.next.len()), ("first", 2));

    let any = Any::new(&Maybe::It((&graph()).into())).unwrap();
    let mut maybe = DynAny::from_any(&any).unwrap();
    assert_eq!(maybe.active_member_kind(), Ok(TcKind::Value));
    assert_eq!(maybe.to_any().unwrap(), any);
    maybe.set_to_no_active_member().unwrap();
    assert_eq!(maybe.component_count(), Ok(1));
}

#[test]
fn boxed_values() {
    let text = Value::new(Text("text".to_owned()));
    let labels = Labels {
        first: (&text).into(),
        all: (&Value::new(Names(vec!["a".to_owned()]))).into(),
        more: vec![(&text).into(), Default::default()],
        ..Labels::default()
    };
    let any = Any::new(&labels).unwrap();
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!(value.to_any().unwrap(), any);
    // Two links to one value.
    value.member("first").unwrap().boxed_value().unwrap().insert_string("new").unwrap();
    let mut more = value.member("more").unwrap();
    assert_eq!(more.component(0).unwrap().get_boxed_value().unwrap(), Any::new("new").unwrap());
    assert_eq!(more.component(1).unwrap().is_null(), Ok(true));

    let mut place = DynAny::new(&TypeCode::for_type::<Option<Value<Place>>>()).unwrap();
    place.set_boxed_value(&Any::new(&Point { x: 1, y: 2 }).unwrap()).unwrap();
    place.boxed_value().unwrap().member("y").unwrap().insert_long(3).unwrap();
    let place: Value<Place> = place.get::<Option<Value<Place>>>().unwrap().unwrap();
    assert_eq!(place.0, Point { x: 1, y: 3 });
    let base: Value<dyn ValueBase> = text.upcast();
    assert_eq!(DynAny::from_any(&Any::new(&Some(base)).unwrap()).unwrap().is_null(), Ok(false));
}
