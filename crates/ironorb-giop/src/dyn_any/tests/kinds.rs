//! Structs, unions, sequences and arrays.

use super::*;
use crate::typecode::Typed;

fn trade() -> TypeCode {
    let numbers = sequence(&tc(&TypeDef::Double));
    let members =
        [("name", tc(&TypeDef::String { bound: 0 })), ("id", tc(&TypeDef::Long)), ("numbers", numbers)];
    structure("Trade", &members)
}

#[test]
fn members_by_name_and_position() {
    let mut value = DynAny::new(&trade()).unwrap();
    assert_eq!(value.component_count(), Ok(3));
    assert_eq!(value.current_position(), Ok(Some(0)));
    assert_eq!(value.current_member_name().unwrap(), "name");
    assert_eq!(value.current_member_kind(), Ok(TcKind::String));
    value.insert_string("gold").unwrap();
    assert!(value.next().unwrap());
    value.current_component().unwrap().unwrap().insert_long(-8).unwrap();
    value.member("numbers").unwrap().insert_numbers(&[0.5, 1.5]).unwrap();
    assert!(value.next().unwrap() && !value.next().unwrap());
    assert_eq!(value.current_position(), Ok(None));
    assert!(value.current_component().unwrap().is_none());
    assert_eq!(value.current_member_name(), Err(DynAnyError::InvalidValue));
    assert!(value.rewind().unwrap());
    assert_eq!(value.get_string().unwrap(), "gold");
    assert_eq!(value.member("none").unwrap_err(), DynAnyError::InvalidValue);

    let any = value.to_any().unwrap();
    check(&any);
    let members = value.get_members().unwrap();
    assert_eq!(members[1], ("id".to_owned(), Any::new(&-8i32).unwrap()));
    let mut other = DynAny::new(&trade()).unwrap();
    other.set_members(&members).unwrap();
    assert_eq!(other.to_any().unwrap(), any);
    let parts = value.get_members_as_dyn_any().unwrap();
    let mut third = DynAny::new(&trade()).unwrap();
    assert!(!third.equal(&other).unwrap());
    third.set_members_as_dyn_any(&parts).unwrap();
    assert!(third.equal(&other).unwrap());

    let before = other.to_any().unwrap();
    assert_eq!(other.set_members(&members[..2]), Err(DynAnyError::InvalidValue));
    let renamed: Vec<_> = members.iter().map(|(_, any)| ("name", any.clone())).collect();
    assert_eq!(other.set_members(&renamed), Err(DynAnyError::TypeMismatch));
    let swapped: Vec<_> = members.iter().rev().map(|(_, any)| ("", any.clone())).collect();
    assert_eq!(other.set_members(&swapped), Err(DynAnyError::TypeMismatch));
    assert_eq!(other.to_any().unwrap(), before);
    assert_eq!(
        DynAny::new(&structure("E", &[])).unwrap().current_component().unwrap_err(),
        DynAnyError::TypeMismatch
    );
}

#[test]
fn parts_of_parts_are_changed_in_place() {
    let deals = structure("Deals", &[("all", sequence(&trade())), ("other", tc(&TypeDef::Any))]);
    let mut value = DynAny::new(&deals).unwrap();
    value.member("all").unwrap().set_length(3).unwrap();
    for index in 0..3u32 {
        let mut all = value.member("all").unwrap();
        let mut one = all.component(index).unwrap();
        one.member("id").unwrap().insert_long(index as i32).unwrap();
        one.member("numbers").unwrap().set_length(2).unwrap();
        one.member("numbers").unwrap().component(1).unwrap().insert_double(0.25).unwrap();
    }
    let mut again = DynAny::from_any(&value.to_any().unwrap()).unwrap();
    let mut all = again.member("all").unwrap();
    assert_eq!(all.length(), Ok(3));
    let mut last = all.component(2).unwrap();
    assert_eq!(last.member("id").unwrap().get_long(), Ok(2));
    assert_eq!(*last.member("numbers").unwrap().numbers::<f64>().unwrap(), [0.0, 0.25]);
    last.member("name").unwrap().insert_string("last").unwrap();
    assert_eq!(again.member("all").unwrap().component(2).unwrap().get_string().unwrap(), "last");
    check(&again.to_any().unwrap());
    // A component as an independent value no longer belongs to its owner.
    let mut own = again.member("all").unwrap().component(2).unwrap().copy().unwrap();
    own.insert_string("mine").unwrap();
    assert_eq!(again.member("all").unwrap().component(2).unwrap().get_string().unwrap(), "last");
}

#[test]
fn lengths_of_sequences() {
    for element in [tc(&TypeDef::Long), tc(&TypeDef::String { bound: 0 })] {
        let mut value = DynAny::new(&TypeCode::create_sequence(&element, 4).unwrap()).unwrap();
        assert_eq!(value.current_position(), Ok(None));
        value.set_length(2).unwrap();
        assert_eq!(value.current_position(), Ok(Some(0)));
        assert!(value.seek(1).unwrap());
        value.set_length(3).unwrap();
        assert_eq!(value.current_position(), Ok(Some(1)));
        value.set_length(1).unwrap();
        assert_eq!(value.current_position(), Ok(None));
        value.set_length(4).unwrap();
        assert_eq!(value.current_position(), Ok(Some(1)));
        assert_eq!(value.set_length(5), Err(DynAnyError::InvalidValue));
        assert_eq!(value.length(), Ok(4));
        assert_eq!(value.get_elements().unwrap().len(), 4);
        check(&value.to_any().unwrap());
        value.set_length(0).unwrap();
        assert_eq!((value.current_position(), value.component_count()), (Ok(None), Ok(0)));
    }
}

#[test]
fn elements_are_set_and_read_together_or_not_at_all() {
    let text = |text: &str| Any::new(text).unwrap();
    let texts = [text("a"), text("b")];
    let mut value = DynAny::new(&sequence(&tc(&TypeDef::String { bound: 0 }))).unwrap();
    value.set_elements(&texts).unwrap();
    assert_eq!(value.get_elements().unwrap(), texts);
    assert_eq!(value.set_elements(&[text("c"), Any::new(&1i32).unwrap()]), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.get::<Vec<String>>().unwrap(), ["a", "b"]);
    let copies = value.get_elements_as_dyn_any().unwrap();
    let array = TypeCode::create_array(&tc(&TypeDef::String { bound: 0 }), 2).unwrap();
    let mut array = DynAny::new(&array).unwrap();
    assert_eq!(array.set_elements_as_dyn_any(&copies[..1]), Err(DynAnyError::InvalidValue));
    array.set_elements_as_dyn_any(&copies).unwrap();
    assert_eq!(array.get_elements().unwrap(), texts);
    assert_eq!(array.set_length(1), Err(DynAnyError::TypeMismatch));

    let number = |number: i16| Any::new(&number).unwrap();
    let mut value = DynAny::new(&sequence(&tc(&TypeDef::Short))).unwrap();
    value.set_elements(&[number(3), number(-3)]).unwrap();
    assert_eq!(*value.numbers::<i16>().unwrap(), [3, -3]);
    assert_eq!(value.set_elements(&texts), Err(DynAnyError::TypeMismatch));
    value.insert_short(9).unwrap();
    assert_eq!(value.get::<Vec<i16>>().unwrap(), [9, -3]);
    check(&value.to_any().unwrap());
}

/// 64 KiB of octets are one buffer, even after one of them was changed.
#[test]
fn numbers_in_bulk() {
    fn all<T: Typed + crate::cdr::Number + PartialEq + fmt::Debug>(numbers: &[T]) {
        let type_code = TypeCode::for_type::<[T]>();
        let mut value = DynAny::new(&type_code).unwrap();
        value.insert_numbers(numbers).unwrap();
        assert_eq!(*value.numbers::<T>().unwrap(), *numbers);
        let any = value.to_any().unwrap();
        assert_eq!(any, {
            let mut bytes = Vec::new();
            let mut w = Writer::new(&mut bytes, CANONICAL);
            w.write_length(numbers.len()).unwrap();
            if !numbers.is_empty() {
                w.align(size_of::<T>());
            }
            w.write_bytes(bytemuck::cast_slice(numbers));
            Any::read_value(type_code, &mut crate::Reader::new(&bytes, CANONICAL)).unwrap()
        });
        check(&any);
        let again = DynAny::from_any(&any).unwrap();
        assert_eq!(*again.numbers::<T>().unwrap(), *numbers);
        // Except if it is so short that it is inside the any itself, at any address.
        if numbers.len() > 100 {
            assert!(matches!(again.numbers::<T>().unwrap(), std::borrow::Cow::Borrowed(_)));
        }
    }
    all(&vec![7u8; 65_536]);
    all(&[1i16, -2]);
    all(&[1u16, 2]);
    all(&(0..1000).collect::<Vec<i32>>());
    all(&[u32::MAX]);
    all::<i64>(&[]);
    all(&[1u64 << 60; 200]);
    all(&[0.5f32; 3]);
    all(&[f64::INFINITY; 300]);

    let mut octets = DynAny::from_any(&Any::new(&vec![0u8; 65_536]).unwrap()).unwrap();
    assert_eq!(octets.component_count(), Ok(65_536));
    assert!(octets.seek(65_535).unwrap());
    octets.insert_octet(5).unwrap();
    octets.component(3).unwrap().insert_octet(6).unwrap();
    assert_eq!(octets.tree().nodes.len(), 1);
    let numbers = octets.numbers::<u8>().unwrap();
    assert_eq!((numbers[65_535], numbers[3], numbers[4]), (5, 6, 0));
    assert_eq!(octets.numbers::<i32>(), Err(DynAnyError::TypeMismatch));
    assert_eq!(octets.insert_numbers(&[1i32]), Err(DynAnyError::TypeMismatch));

    let mut letters = DynAny::new(&TypeCode::create_array(&tc(&TypeDef::Char), 3).unwrap()).unwrap();
    assert_eq!(*letters.numbers::<u8>().unwrap(), [0; 3]);
    assert_eq!(letters.component(2).unwrap().get_char(), Ok(0));
    assert_eq!(letters.insert_numbers(b"ab"), Err(DynAnyError::InvalidValue));
    letters.insert_numbers(b"abc").unwrap();
    assert_eq!(letters.get_char(), Ok(b'a'));
}

fn shape() -> TypeCode {
    let colour = TypeCode::create_enum("IDL:C:1.0", "C", &["red", "green", "blue", "grey"]).unwrap();
    let case = |label: Option<i64>, name: &str, type_code: TypeCode| UnionCase {
        label,
        name: name.into(),
        type_code,
    };
    let cases = [
        case(Some(1), "text", tc(&TypeDef::String { bound: 0 })),
        case(Some(2), "text", tc(&TypeDef::String { bound: 0 })),
        case(Some(0), "trade", trade()),
        case(None, "other", tc(&TypeDef::Short)),
    ];
    TypeCode::create_union("IDL:Shape:1.0", "Shape", &colour, &cases).unwrap()
}

#[test]
fn unions_with_a_default_case() {
    let mut value = DynAny::new(&shape()).unwrap();
    assert_eq!(value.component_count(), Ok(2));
    assert_eq!(value.discriminator_kind(), Ok(TcKind::Enum));
    assert_eq!(value.discriminator().unwrap().enumerator().unwrap(), "green");
    assert_eq!(value.active_member_name().unwrap(), "text");
    value.active_member().unwrap().insert_string("kept").unwrap();
    // A different label of the same member.
    value.discriminator().unwrap().set_enumerator("blue").unwrap();
    assert_eq!(value.current_position(), Ok(Some(1)));
    assert_eq!(value.active_member().unwrap().get_string().unwrap(), "kept");
    check(&value.to_any().unwrap());
    // A label of another member.
    let red = Any::with_type(value.discriminator().unwrap().type_code(), &0u32).unwrap();
    value.set_discriminator_any(&red).unwrap();
    assert_eq!(value.active_member_kind(), Ok(TcKind::Struct));
    value.active_member().unwrap().member("id").unwrap().insert_long(4).unwrap();
    check(&value.to_any().unwrap());
    assert!(!value.is_set_to_default_member().unwrap());
    value.set_to_default_member().unwrap();
    assert!(value.is_set_to_default_member().unwrap());
    assert_eq!(value.current_position(), Ok(Some(0)));
    assert_eq!(value.discriminator().unwrap().enum_ordinal(), Ok(3));
    assert_eq!(value.active_member().unwrap().get_short(), Ok(0));
    assert_eq!(value.set_to_no_active_member(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.discriminator().unwrap().set_enum_ordinal(4), Err(DynAnyError::InvalidValue));
    assert_eq!(value.set_discriminator_any(&Any::new(&1i32).unwrap()), Err(DynAnyError::TypeMismatch));
    check(&value.to_any().unwrap());
    let other = value.discriminator().unwrap().copy().unwrap();
    let mut third = DynAny::new(&shape()).unwrap();
    third.set_discriminator(&other).unwrap();
    assert!(third.equal(&value).unwrap());
    let clone = third.discriminator().unwrap().clone();
    assert_eq!(clone.to_any().unwrap(), other.to_any().unwrap());
}

#[test]
fn unions_without_a_default_case() {
    let octet = tc(&TypeDef::Octet);
    let case =
        |label, name: &str| UnionCase { label: Some(label), name: name.into(), type_code: octet.clone() };
    let union = |switch: &'static TypeDef, cases: &[UnionCase]| {
        DynAny::new(&TypeCode::create_union("IDL:U:1.0", "U", &tc(switch), cases).unwrap()).unwrap()
    };
    let mut value = union(&TypeDef::Boolean, &[case(1, "yes")]);
    assert!(!value.has_no_active_member().unwrap());
    value.set_to_no_active_member().unwrap();
    assert!(value.has_no_active_member().unwrap());
    assert_eq!((value.component_count(), value.current_position()), (Ok(1), Ok(Some(0))));
    assert_eq!(value.active_member().unwrap_err(), DynAnyError::InvalidValue);
    assert_eq!(value.active_member_name(), Err(DynAnyError::InvalidValue));
    assert_eq!(value.set_to_default_member(), Err(DynAnyError::TypeMismatch));
    check(&value.to_any().unwrap());
    // As if the boolean were inserted in place of the union.
    value.insert_boolean(true).unwrap();
    assert!(!value.has_no_active_member().unwrap());
    let mut full = union(&TypeDef::Boolean, &[case(0, "no"), case(1, "yes")]);
    assert_eq!(full.set_to_no_active_member(), Err(DynAnyError::TypeMismatch));
    let mut wide = union(&TypeDef::LongLong, &[case(0, "a"), case(-1, "b")]);
    wide.set_to_no_active_member().unwrap();
    assert_eq!(wide.discriminator().unwrap().get_longlong(), Ok(1));
}

#[test]
fn operations_for_other_types() {
    let mut value = DynAny::new(&trade()).unwrap();
    assert_eq!(value.length(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.discriminator().unwrap_err(), DynAnyError::TypeMismatch);
    assert_eq!(value.enumerator(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.is_null(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.get_boxed_value(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.assign_any(&Any::new(&1i32).unwrap()), Err(DynAnyError::TypeMismatch));
    assert_eq!(DynAny::new(&shape()).unwrap().get_members(), Err(DynAnyError::TypeMismatch));
}
