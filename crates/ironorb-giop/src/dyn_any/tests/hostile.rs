//! The cost of types and values from a peer.

use super::*;

#[test]
fn defaults_are_bounded_by_a_limit() {
    let octets = TypeCode::create_array(&tc(&TypeDef::Octet), u32::MAX).unwrap();
    let empties = TypeCode::create_array(&structure("Empty", &[]), u32::MAX).unwrap();
    let mut wide = tc(&TypeDef::Double);
    for _ in 0..10 {
        wide = TypeCode::create_array(&wide, u32::MAX).unwrap();
    }
    let mut doubled = structure("S0", &[]);
    for level in 1..100 {
        doubled = structure(&format!("S{level}"), &[("a", doubled.clone()), ("b", doubled.clone())]);
    }
    for type_code in [octets, empties, wide, doubled.clone()] {
        let value = DynAny::new(&type_code).unwrap();
        assert_eq!(value.to_any(), Err(DynAnyError::TooLarge));
        let mut value = DynAny::new(&structure("Around", &[("it", type_code)])).unwrap();
        let mut it = value.component(0).unwrap();
        let _ = it.component(0).and_then(|mut first| first.component_count());
        let _ = it.numbers::<u8>();
        assert_eq!(it.to_any(), Err(DynAnyError::TooLarge));
    }
    // Visiting costs only what is visited.
    let mut value = DynAny::new(&doubled).unwrap();
    let mut at = value.component(1).unwrap();
    assert_eq!(at.component(0).unwrap().component_count(), Ok(2));
    let mut texts = DynAny::new(&sequence(&tc(&TypeDef::String { bound: 0 }))).unwrap();
    texts.set_length(1000).unwrap();
    assert_eq!(texts.tree().nodes.len(), 1);
}

#[test]
fn nesting_takes_no_stack_and_little_time() {
    let me = TypeCode::recursive("IDL:T:1.0").unwrap();
    let tree = structure("T", &[("kids", sequence(&me)), ("number", tc(&TypeDef::Long))]);
    let depth = 100_000;
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    (0..depth).for_each(|_| w.write_u32(1));
    w.write_u32(0);
    (0..=depth).for_each(|number| w.write_i32(number));
    let any = Any::read_value(tree, &mut crate::Reader::new(&bytes, CANONICAL)).unwrap();
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!(value.member("number").unwrap().get_long(), Ok(depth));
    assert_eq!(
        value.component(0).unwrap().component(0).unwrap().component(1).unwrap().get_long(),
        Ok(depth - 1)
    );
    let mut at = value.component(0).unwrap();
    for _ in 1..depth {
        at = at.into_component(0).unwrap().into_component(0).unwrap();
    }
    assert_eq!(at.component(0).unwrap().component(1).unwrap().get_long(), Ok(0));
    value.member("number").unwrap().insert_long(-1).unwrap();
    let changed = value.copy().unwrap().to_any().unwrap();
    assert_ne!(changed, any);
    value.member("number").unwrap().insert_long(depth).unwrap();
    assert_eq!(value.to_any().unwrap(), any);
}

/// The size of a node, and of a component that was never visited.
#[test]
fn nodes_are_small() {
    assert!(size_of::<Node>() <= 72 && size_of::<tree::Part>() == 8);
}

#[test]
fn parts_without_bytes() {
    let empty = structure("Empty", &[]);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, CANONICAL).write_u32(u32::MAX);
    let many = sequence(&empty);
    assert!(Any::read_value(many.clone(), &mut crate::Reader::new(&bytes, CANONICAL)).is_err());
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, CANONICAL).write_u32(200);
    let any = Any::read_value(many, &mut crate::Reader::new(&bytes, CANONICAL)).unwrap();
    let mut value = DynAny::from_any(&any).unwrap();
    assert_eq!((value.length(), value.tree().nodes.len()), (Ok(200), 1));
    assert_eq!(check(&any), 201);
}

/// A program that changes one value again and again does not make it grow.
#[test]
fn replaced_nodes_are_freed() {
    let texts = sequence(&tc(&TypeDef::String { bound: 0 }));
    let list = structure("List", &[("texts", texts), ("any", tc(&TypeDef::Any))]);
    let mut value = DynAny::new(&list).unwrap();
    let text = [Any::new("one").unwrap(), Any::new("two").unwrap()];
    for _ in 0..5_000 {
        value.member("texts").unwrap().set_elements(&text).unwrap();
        value.member("any").unwrap().insert_any(&text[0]).unwrap();
    }
    assert!(value.tree().nodes.len() < 1_000);
    check(&value.to_any().unwrap());
}

/// Two types with one id and different shapes: a value of one is not a value of the other.
#[test]
fn types_that_are_equivalent_by_name_only() {
    let one = structure("Same", &[("a", tc(&TypeDef::Long))]);
    let other = structure("Same", &[("a", sequence(&tc(&TypeDef::Double)))]);
    let mut value = DynAny::new(&one).unwrap();
    value.insert_long(1000).unwrap();
    let any = value.to_any().unwrap();
    let mut other = DynAny::new(&other).unwrap();
    assert_eq!(other.assign_any(&any), Err(DynAnyError::TypeMismatch));
    assert_eq!(other.member("a").unwrap().length(), Ok(0));
}
