//! Every kind of value, from its default to an `any` and back.

mod hostile;
mod kinds;
mod values;

use super::*;
use crate::cdr::{LongDouble, Writer};
use crate::fixed::Decimal;
use crate::ior::Ior;
use crate::typecode::{TypeDef, UnionCase};

pub(super) fn tc(definition: &'static TypeDef) -> TypeCode {
    TypeCode::of(definition)
}

pub(super) fn id(name: &str) -> String {
    format!("IDL:{name}:1.0")
}

pub(super) fn structure(name: &str, members: &[(&str, TypeCode)]) -> TypeCode {
    TypeCode::create_struct(&id(name), name, members).unwrap()
}

pub(super) fn sequence(element: &TypeCode) -> TypeCode {
    TypeCode::create_sequence(element, 0).unwrap()
}

/// Visits all components recursively. Returns their number.
pub(super) fn visit(value: &mut DynAny<'_>) -> usize {
    let mut seen = 1;
    for index in 0..value.component_count().unwrap() {
        seen += visit(&mut value.component(index).unwrap());
    }
    seen
}

/// A value stays equal: unchanged, after a visit to all its components, and as a copy.
#[track_caller]
pub(super) fn check(any: &Any) -> usize {
    let mut value = DynAny::from_any(any).unwrap();
    assert_eq!(&value.to_any().unwrap(), any);
    let seen = visit(&mut value);
    assert_eq!(&value.to_any().unwrap(), any);
    let mut copy = value.copy().unwrap();
    assert!(copy.equal(&value).unwrap());
    assert_eq!(visit(&mut copy), seen);
    assert_eq!(&copy.clone().to_any().unwrap(), any);
    // Read again with all checks.
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, CANONICAL).put(&copy.to_any().unwrap()).unwrap();
    assert_eq!(&crate::Reader::new(&bytes, CANONICAL).get::<Any>().unwrap(), any);
    let mut assigned = DynAny::new(any.type_code()).unwrap();
    assigned.assign(&value).unwrap();
    assert_eq!(&assigned.to_any().unwrap(), any);
    seen
}

/// The default value of a type, written by hand.
#[track_caller]
fn check_default(type_code: &TypeCode, expected: impl FnOnce(&mut Writer<'_>)) {
    let mut bytes = Vec::new();
    expected(&mut Writer::new(&mut bytes, CANONICAL));
    let expected = Any::read_value(type_code.clone(), &mut crate::Reader::new(&bytes, CANONICAL)).unwrap();
    let mut value = DynAny::new(type_code).unwrap();
    assert_eq!(value.to_any().unwrap(), expected);
    visit(&mut value);
    assert_eq!(value.to_any().unwrap(), expected, "after a visit");
    check(&expected);
}

#[test]
fn defaults_of_types_without_components() {
    for definition in [&TypeDef::Octet, &TypeDef::Char, &TypeDef::Boolean] {
        check_default(&tc(definition), |w| w.write_u8(0));
    }
    for definition in [&TypeDef::Short, &TypeDef::UShort] {
        check_default(&tc(definition), |w| w.write_u16(0));
    }
    for definition in [&TypeDef::Long, &TypeDef::ULong, &TypeDef::Float] {
        check_default(&tc(definition), |w| w.write_u32(0));
    }
    for definition in [&TypeDef::LongLong, &TypeDef::ULongLong, &TypeDef::Double] {
        check_default(&tc(definition), |w| w.write_u64(0));
    }
    check_default(&tc(&TypeDef::LongDouble), |w| w.put(&LongDouble::from(0.0)).unwrap());
    check_default(&tc(&TypeDef::WChar), |w| w.write_wchar('\0').unwrap());
    check_default(&tc(&TypeDef::Null), |_| {});
    check_default(&tc(&TypeDef::Void), |_| {});
    check_default(&TypeCode::create_string(3), |w| w.write_str("").unwrap());
    check_default(&TypeCode::create_wstring(0), |w| w.write_wstr("").unwrap());
    check_default(&tc(&TypeDef::Any), |w| w.put(&Any::default()).unwrap());
    check_default(&tc(&TypeDef::TypeCode), |w| w.put(&TypeCode::default()).unwrap());
    check_default(&TypeCode::create_interface("IDL:I:1.0", "I").unwrap(), |w| w.put(&Ior::nil()).unwrap());
    check_default(&TypeCode::create_fixed(4, 2).unwrap(), |w| w.write_bytes(&[0, 0, 0x0C]));
    check_default(&TypeCode::create_enum("IDL:E:1.0", "E", &["a", "b"]).unwrap(), |w| w.write_u32(0));
    check_default(&TypeCode::create_abstract_interface("IDL:A:1.0", "A").unwrap(), |w| {
        w.write_bool(false);
        w.write_null_value();
    });
}

#[test]
fn defaults_of_types_with_components() {
    let point = structure("Point", &[("on", tc(&TypeDef::Boolean)), ("x", tc(&TypeDef::Double))]);
    check_default(&point, |w| {
        w.write_bool(false);
        w.write_f64(0.0);
    });
    check_default(&sequence(&point), |w| w.write_u32(0));
    check_default(&sequence(&tc(&TypeDef::Octet)), |w| w.write_u32(0));
    check_default(&TypeCode::create_array(&tc(&TypeDef::Short), 3).unwrap(), |w| w.write_bytes(&[0; 6]));
    check_default(&TypeCode::create_array(&point, 2).unwrap(), |w| {
        for _ in 0..2 {
            w.write_bool(false);
            w.write_f64(0.0);
        }
    });
    let exception = TypeCode::create_exception("IDL:X:1.0", "X", &[("why", point.clone())]).unwrap();
    check_default(&exception, |w| {
        w.write_str("IDL:X:1.0").unwrap();
        w.write_bool(false);
        w.write_f64(0.0);
    });
    check_default(&TypeCode::create_exception("IDL:Y:1.0", "Y", &[]).unwrap(), |w| {
        w.write_str("IDL:Y:1.0").unwrap();
    });
    check_default(&structure("Empty", &[]), |_| {});
    let alias = TypeCode::create_alias("IDL:P:1.0", "P", &point).unwrap();
    check_default(&alias, |w| {
        w.write_bool(false);
        w.write_f64(0.0);
    });
    let union = |labels: &[Option<i64>]| {
        let cases: Vec<UnionCase> = (0..labels.len())
            .map(|at| UnionCase {
                label: labels[at],
                name: format!("m{at}"),
                type_code: [tc(&TypeDef::Short), point.clone()][at % 2].clone(),
            })
            .collect();
        TypeCode::create_union("IDL:U:1.0", "U", &tc(&TypeDef::Long), &cases).unwrap()
    };
    check_default(&union(&[Some(7), Some(1)]), |w| {
        w.write_i32(7);
        w.write_i16(0);
    });
    // The default case comes first, so its label is one that the other cases do not have.
    check_default(&union(&[None, Some(0), Some(1)]), |w| {
        w.write_i32(2);
        w.write_i16(0);
    });
}

#[test]
fn types_without_values() {
    let native = TypeCode::create_native("IDL:N:1.0", "N").unwrap();
    let local = TypeCode::create_local_interface("IDL:L:1.0", "L").unwrap();
    let open = TypeCode::recursive("IDL:R:1.0").unwrap();
    for type_code in [native, local.clone(), tc(&TypeDef::Principal), open, structure("S", &[("l", local)])] {
        assert_eq!(DynAny::new(&type_code).unwrap_err(), DynAnyError::InconsistentTypeCode);
    }
}

#[test]
fn numbers_and_texts() {
    macro_rules! both {
        ($definition:expr, $insert:ident $get:ident, $value:expr, $expected:expr) => {{
            let type_code = TypeCode::from(&$definition);
            let mut value = DynAny::new(&type_code).unwrap();
            value.$insert($value).unwrap();
            assert_eq!(value.$get().unwrap(), $expected);
            // The same at the current component, which is encoded in its owner or has a node.
            let pair = structure("Pair", &[("pad", tc(&TypeDef::Octet)), ("it", type_code)]);
            let mut pair = DynAny::new(&pair).unwrap();
            assert!(pair.next().unwrap());
            pair.$insert($value).unwrap();
            assert_eq!(pair.$get().unwrap(), $expected);
            let mut again = DynAny::from_any(&pair.to_any().unwrap()).unwrap();
            assert!(again.seek(1).unwrap());
            assert_eq!(again.$get().unwrap(), $expected);
            assert!(!again.next().unwrap());
            assert_eq!(again.$get(), Err(DynAnyError::InvalidValue));
            assert_eq!(DynAny::new(&structure("Not", &[])).unwrap().$get(), Err(DynAnyError::InvalidValue));
            check(&pair.to_any().unwrap());
        }};
    }
    both!(TypeDef::Boolean, insert_boolean get_boolean, true, true);
    both!(TypeDef::Octet, insert_octet get_octet, 200, 200);
    both!(TypeDef::Char, insert_char get_char, b'x', b'x');
    both!(TypeDef::Short, insert_short get_short, -2, -2);
    both!(TypeDef::UShort, insert_ushort get_ushort, 3, 3);
    both!(TypeDef::Long, insert_long get_long, -4, -4);
    both!(TypeDef::ULong, insert_ulong get_ulong, 5, 5);
    both!(TypeDef::LongLong, insert_longlong get_longlong, -6, -6);
    both!(TypeDef::ULongLong, insert_ulonglong get_ulonglong, 7, 7);
    both!(TypeDef::Float, insert_float get_float, 1.5, 1.5);
    both!(TypeDef::Double, insert_double get_double, 2.5, 2.5);
    both!(TypeDef::LongDouble, insert_longdouble get_longdouble, LongDouble::from(0.1), LongDouble::from(0.1));
    both!(TypeDef::WChar, insert_wchar get_wchar, 'ż', 'ż');
    both!(TypeDef::String { bound: 4 }, insert_string get_string, "abcd", "abcd");
    both!(TypeDef::WString { bound: 0 }, insert_wstring get_wstring, "żółw", "żółw");
    both!(TypeDef::TypeCode, insert_typecode get_typecode, &tc(&TypeDef::Long), tc(&TypeDef::Long));
    both!(TypeDef::Any, insert_any get_any, &Any::new("in").unwrap(), Any::new("in").unwrap());

    let mut text = DynAny::new(&TypeCode::create_string(3)).unwrap();
    assert_eq!(text.insert_string("abcd"), Err(DynAnyError::InvalidValue));
    assert_eq!(text.insert_string("a\0"), Err(DynAnyError::InvalidValue));
    assert_eq!(text.insert_long(1), Err(DynAnyError::TypeMismatch));
    assert_eq!(text.get_long(), Err(DynAnyError::TypeMismatch));
    assert_eq!(text.get_string().unwrap(), "");
    assert_eq!(text.current_component().unwrap_err(), DynAnyError::TypeMismatch);
}

#[test]
fn anys_in_anys() {
    let mut value = DynAny::new(&tc(&TypeDef::Any)).unwrap();
    let mut inner = DynAny::new(&sequence(&tc(&TypeDef::Short))).unwrap();
    inner.insert_numbers(&[1i16, 2]).unwrap();
    value.insert_dyn_any(&inner).unwrap();
    assert!(value.get_dyn_any().unwrap().equal(&inner).unwrap());
    assert_eq!(value.component_count(), Ok(0));
    check(&value.to_any().unwrap());
}

#[test]
fn an_inserted_reference_is_read_again() {
    let ior = Ior { type_id: "IDL:I:1.0".into(), ..Ior::nil() };
    let mut value = DynAny::new(&TypeCode::create_interface("IDL:I:1.0", "I").unwrap()).unwrap();
    assert!(value.get_reference::<Ior>().unwrap().is_nil());
    value.insert_reference(&ior).unwrap();
    assert_eq!(value.get_reference::<Ior>().unwrap(), ior);
    check(&value.to_any().unwrap());
}

#[test]
fn an_enumerator_is_set_by_name_and_by_position() {
    let colour = TypeCode::create_enum("IDL:C:1.0", "C", &["red", "green"]).unwrap();
    let mut value = DynAny::new(&TypeCode::create_alias("IDL:A:1.0", "A", &colour).unwrap()).unwrap();
    assert_eq!(value.enumerator().unwrap(), "red");
    value.set_enumerator("green").unwrap();
    assert_eq!(value.enum_ordinal(), Ok(1));
    assert_eq!(value.set_enumerator("blue"), Err(DynAnyError::InvalidValue));
    assert_eq!(value.set_enum_ordinal(2), Err(DynAnyError::InvalidValue));
    value.set_enum_ordinal(0).unwrap();
    assert_eq!(value.enumerator().unwrap(), "red");
    assert_eq!(value.component_count(), Ok(0));
    assert_eq!(value.fixed_text(), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.insert_ulong(1), Err(DynAnyError::TypeMismatch));
}

#[test]
fn a_fixed_is_set_by_text_and_truncated_to_its_scale() {
    let mut value = DynAny::new(&TypeCode::create_fixed(5, 2).unwrap()).unwrap();
    assert_eq!(value.fixed_text().unwrap().parse::<Decimal>(), Ok(Decimal::ZERO));
    assert_eq!(value.set_fixed_text("-123.45d"), Ok(true));
    assert_eq!(value.fixed_text().unwrap(), "-123.45");
    assert_eq!(value.set_fixed_text("1.239"), Ok(false));
    assert_eq!(value.fixed_text().unwrap(), "1.23");
    assert_eq!(value.set_fixed_text("1234"), Err(DynAnyError::InvalidValue));
    assert_eq!(value.set_fixed_text("twelve"), Err(DynAnyError::TypeMismatch));
    assert_eq!(value.fixed_text().unwrap(), "1.23");
    check(&value.to_any().unwrap());
}
