//! Values: null, shared, in cycles, boxed, derived, custom, behind abstract interfaces.

use std::sync::Arc;

use super::*;
use crate::typecode::{ValueMember, ValueModifier, Visibility};
use crate::value::test_types::{Item, Known, Noted, Secret, TC_SECRET};
use crate::value::{Value, ValueGraph};

fn value_type(name: &str, base: Option<&TypeCode>, members: &[(&str, TypeCode)]) -> TypeCode {
    let members: Vec<_> = members
        .iter()
        .map(|(name, type_code)| ValueMember {
            name: (*name).into(),
            type_code: type_code.clone(),
            visibility: Visibility::Public,
        })
        .collect();
    let modifier = if base.is_some() { ValueModifier::Truncatable } else { ValueModifier::None };
    TypeCode::create_value(&id(name), name, modifier, base, &members).unwrap()
}

/// valuetype Node { public long number; public Node left; public Node right; };
fn node() -> TypeCode {
    let me = TypeCode::recursive("IDL:Node:1.0").unwrap();
    value_type("Node", None, &[("number", tc(&TypeDef::Long)), ("left", me.clone()), ("right", me)])
}

#[test]
fn null_and_not() {
    let mut value = DynAny::new(&node()).unwrap();
    assert_eq!((value.is_null(), value.component_count()), (Ok(true), Ok(0)));
    assert_eq!(value.current_position(), Ok(None));
    assert!(value.current_component().unwrap().is_none());
    assert_eq!(value.get_members(), Err(DynAnyError::InvalidValue));
    assert_eq!(value.member("number").unwrap_err(), DynAnyError::InvalidValue);
    check(&value.to_any().unwrap());
    value.set_to_value().unwrap();
    assert_eq!((value.is_null(), value.component_count()), (Ok(false), Ok(3)));
    value.insert_long(5).unwrap();
    let left = &mut value.member("left").unwrap();
    left.set_to_value().unwrap();
    left.member("number").unwrap().insert_long(6).unwrap();
    let any = value.to_any().unwrap();
    assert_eq!(check(&any), 1 + 3 + 3);
    let mut again = DynAny::from_any(&any).unwrap();
    assert_eq!(again.member("left").unwrap().get_long(), Ok(6));
    let members = again.get_members().unwrap();
    assert_eq!(members.len(), 3);
    let mut third = DynAny::new(&node()).unwrap();
    third.set_members(&members).unwrap();
    assert_eq!(third.to_any().unwrap(), any);
    again.set_to_null().unwrap();
    assert_eq!(again.to_any().unwrap(), DynAny::new(&node()).unwrap().to_any().unwrap());
}

#[test]
fn a_value_that_refers_to_itself() {
    let mut value = DynAny::new(&node()).unwrap();
    value.set_to_value().unwrap();
    value.insert_long(1).unwrap();
    value.member("left").unwrap().set_to_value().unwrap();
    value.member("right").unwrap().set_to_shared(&[1]).unwrap();
    value.member("left").unwrap().member("left").unwrap().set_to_shared(&[]).unwrap();
    let any = value.to_any().unwrap();

    let mut again = DynAny::from_any(&any).unwrap();
    assert_eq!(again.to_any().unwrap(), any);
    // Through the cycle: a change through one path is visible through all, and no node is made for the path.
    again.member("left").unwrap().member("number").unwrap().insert_long(2).unwrap();
    assert_eq!(again.member("right").unwrap().member("number").unwrap().get_long(), Ok(2));
    let made = again.tree().nodes.len();
    let mut at = again.component(1).unwrap();
    for expected in [2, 1].repeat(1000) {
        assert_eq!(at.member("number").unwrap().get_long(), Ok(expected));
        at = at.into_component(1).unwrap();
    }
    at.member("left").unwrap().member("number").unwrap().insert_long(11).unwrap();
    assert_eq!(again.member("number").unwrap().get_long(), Ok(11));
    assert!(again.tree().nodes.len() <= made + 8);
    // A component of a cycle, as an independent value, is the whole cycle.
    let copy = again.member("left").unwrap().copy().unwrap();
    let mut copy = DynAny::from_any(&copy.to_any().unwrap()).unwrap();
    assert_eq!(copy.member("number").unwrap().get_long(), Ok(2));
    assert_eq!(copy.member("left").unwrap().member("number").unwrap().get_long(), Ok(11));
    assert_eq!(again.member("left").unwrap().set_to_shared(&[0]), Err(DynAnyError::InvalidValue));
}

/// first -> second (of a derived type) -> first, second twice.
fn ring() -> Any {
    let mut graph = ValueGraph::new();
    let first = graph.reserve::<Item>();
    let second = graph.add(Noted {
        base: Item { number: 2, left: graph.link(first), ..Item::default() },
        name: "second".into(),
        extra: Any::new(&0.5f64).unwrap(),
    });
    let item = Item { number: 1, left: graph.link(second), right: graph.link(second), alive: None };
    graph.fill(first, item).unwrap();
    Any::new(&Some(graph.finish(first).unwrap())).unwrap().with_environment(Arc::new(Known))
}

#[test]
fn graphs_of_generated_values() {
    let any = ring();
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!(value.to_any().unwrap(), any);
    let mut left = value.component(1).unwrap();
    let derived = left.value_type().unwrap().unwrap();
    assert_eq!(derived.id(), Ok("IDL:Noted:1.0"));
    assert_eq!(left.member_names().unwrap().len(), 5);
    left.component(3).unwrap().insert_string("changed").unwrap();
    left.component(4).unwrap().insert_any(&Any::new("extra").unwrap()).unwrap();

    let first = value.to_any().unwrap().extract::<Option<Value<Item>>>().unwrap().unwrap();
    assert_eq!(first.left, first.right);
    let second = first.left.get().unwrap();
    assert!(second.left.get().unwrap().ptr_eq(&first));
    let second = second.downcast::<Noted>().unwrap();
    assert_eq!((second.name.as_str(), second.extra.extract_str()), ("changed", Ok("extra")));
    assert_eq!(value.get_val::<Option<Value<Item>>>().unwrap().unwrap().number, 1);

    // Into a component, and among other values: in an any in a sequence.
    let mut list = DynAny::new(&sequence(&tc(&TypeDef::Any))).unwrap();
    list.set_elements(&[Any::new(&any).unwrap(), Any::new(&Any::new(&7i32).unwrap()).unwrap()]).unwrap();
    let any_of_list = list.to_any().unwrap();
    let mut list = DynAny::from_any(&any_of_list).unwrap();
    assert_eq!(list.to_any().unwrap(), any_of_list);
    assert_eq!(list.component(0).unwrap().get_any().unwrap(), any);
    assert_eq!(list.component(1).unwrap().get_any().unwrap(), Any::new(&7i32).unwrap());
    let mut inner = list.component(0).unwrap().get_dyn_any().unwrap();
    assert_eq!(inner.component(0).unwrap().get_long(), Ok(1));
}

#[test]
fn derived_types_and_truncation() {
    let base = value_type("Base", None, &[("a", tc(&TypeDef::Long))]);
    let derived = value_type("Derived", Some(&base), &[("b", tc(&TypeDef::String { bound: 0 }))]);
    let mut value = DynAny::new(&derived).unwrap();
    value.set_to_value().unwrap();
    assert_eq!(value.member_names().unwrap(), ["a", "b"]);
    value.member("b").unwrap().insert_string("text").unwrap();
    check(&value.to_any().unwrap());
    let mut value = DynAny::new(&base).unwrap();
    value.set_to_value_of(&derived).unwrap();
    assert_eq!(value.component_count(), Ok(2));
    assert_eq!(value.value_type().unwrap().unwrap(), derived);
    let mut other = DynAny::new(&derived).unwrap();
    assert_eq!(other.set_to_value_of(&base), Err(DynAnyError::TypeMismatch));
    assert_eq!(other.set_to_value_of(&tc(&TypeDef::Long)), Err(DynAnyError::TypeMismatch));
    // The id and its base's are written, so that a receiver that knows only the base can read it.
    let bytes = value.to_any().unwrap();
    let text = String::from_utf8_lossy(bytes.content()).into_owned();
    assert!(text.contains("IDL:Derived:1.0") && text.contains("IDL:Base:1.0"));
}

#[test]
fn a_box_is_null_until_its_value_is_set() {
    let boxed = TypeCode::create_value_box("IDL:Box:1.0", "Box", &tc(&TypeDef::String { bound: 0 })).unwrap();
    let mut value = DynAny::new(&boxed).unwrap();
    assert_eq!(value.get_boxed_value(), Err(DynAnyError::InvalidValue));
    assert_eq!(value.set_boxed_value(&Any::new(&1i32).unwrap()), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.is_null(), Ok(true));
    value.set_boxed_value(&Any::new("in").unwrap()).unwrap();
    assert_eq!(value.get_boxed_value().unwrap(), Any::new("in").unwrap());
    assert_eq!(check(&value.to_any().unwrap()), 2);
    value.boxed_value().unwrap().insert_string("other").unwrap();
    assert_eq!(value.get_string().unwrap(), "other");
    let mut other = DynAny::new(&boxed).unwrap();
    other.set_boxed_value_as_dyn_any(&value.boxed_value().unwrap()).unwrap();
    assert!(other.equal(&value).unwrap());
}

#[test]
fn an_abstract_interface_holds_a_value_or_a_reference() {
    let mut value = DynAny::new(&TypeCode::create_abstract_interface("IDL:A:1.0", "A").unwrap()).unwrap();
    assert_eq!((value.is_null(), value.component_count()), (Ok(true), Ok(0)));
    value.set_to_value_of(&node()).unwrap();
    assert_eq!(value.component_count(), Ok(3));
    value.member("number").unwrap().insert_long(3).unwrap();
    let holder = structure("Holder", &[("it", value.type_code()), ("again", value.type_code())]);
    let mut holder = DynAny::new(&holder).unwrap();
    holder.member("again").unwrap().insert_abstract(&Referred(Ior::nil())).unwrap();
    let any = holder.to_any().unwrap();
    check(&any);
    // The TypeCode does not name the value's type. Only a program that knows the type by its id can read it.
    assert_eq!(DynAny::from_any(&value.to_any().unwrap()).unwrap_err(), DynAnyError::InvalidValue);
    let known = Any::with_type(value.type_code(), &Valued(Value::new(Item { number: 8, ..Item::default() })))
        .unwrap();
    let mut value = DynAny::from_any(&known).unwrap();
    assert_eq!(value.component(0).unwrap().get_long(), Ok(8));
    assert_eq!(value.to_any().unwrap(), known);
}

struct Referred(Ior);
impl crate::Marshal for Referred {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), crate::Misuse> {
        w.write_bool(true);
        w.put(&self.0)
    }
}

struct Valued(Value<Item>);
impl crate::Marshal for Valued {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), crate::Misuse> {
        w.write_bool(false);
        w.put(&Some(self.0.clone()))
    }
}

#[test]
fn custom_values_stay_whole() {
    let inside = Value::new(Item { number: 4, ..Item::default() });
    let secret = Value::new(Secret { number: 3, inside: inside.into() });
    let any = Any::new(&Some(secret)).unwrap().with_environment(Arc::new(Known));
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!((value.is_null(), value.component_count()), (Ok(false), Ok(0)));
    assert_eq!(value.value_type().unwrap(), Some(TypeCode::of(&TC_SECRET)));
    assert_eq!(value.to_any().unwrap(), any);
    assert_eq!(value.get_val::<Option<Value<Secret>>>().unwrap().unwrap().number, 3);
    let mut fresh = DynAny::new(&TypeCode::of(&TC_SECRET)).unwrap();
    assert_eq!(fresh.set_to_value(), Err(DynAnyError::InconsistentTypeCode));
}

/// A list longer than any stack is deep.
#[test]
fn a_list_of_50_000_values_is_copied_and_changed() {
    let mut graph = ValueGraph::new();
    let end = graph.add(Item::default());
    let first = (0..50_000).fold(end, |next, number| {
        let item = Item { number, left: graph.link(next), ..Item::default() };
        graph.add(item)
    });
    let any = Any::new(&Some(graph.finish(first).unwrap())).unwrap();
    let mut value = DynAny::from_any(&any).unwrap();
    value.component(1).unwrap().component(0).unwrap().insert_long(-1).unwrap();
    let changed = value.copy().unwrap().to_any().unwrap();
    let list = changed.extract::<Option<Value<Item>>>().unwrap().unwrap();
    let second = list.left.get().unwrap();
    assert_eq!((list.number, second.number, second.left.get().unwrap().number), (49_999, -1, 49_997));
}
