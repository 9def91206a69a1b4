mod made_here;
mod outside;
mod proportion;
mod type_infos;
mod values;

use super::*;
use crate::cdr::{LongDouble, WString};
use crate::fixed::Fixed;
use crate::typecode::{TypeDef, UnionCase};
use crate::version::{ByteOrder, CharSet, Version};

const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

fn bytes_of(any: &Any, encoding: Encoding) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, encoding).put(any).unwrap();
    bytes
}

/// Passes an `any` through every encoding that can carry it, at every alignment.
#[track_caller]
fn check(any: &Any) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for char_set in [CharSet::Latin1, CharSet::Utf8] {
                let encoding = Encoding { order, version, char_set, ..Encoding::NATIVE };
                for lead in 0..8 {
                    let mut bytes = vec![0u8; lead];
                    if Writer::continuing(&mut bytes, 0, encoding).put(any).is_err() {
                        continue; // GIOP 1.0 has no wide characters
                    }
                    let mut r = Reader::at(&bytes, lead, encoding);
                    let read = r.get::<Any>().unwrap_or_else(|e| panic!("{e} in {bytes:?} of {any:?}"));
                    assert_eq!(&read, any);
                    assert_eq!(r.remaining(), 0);
                    for cut in lead..bytes.len() {
                        // A value without bytes is complete before its last padding.
                        let _ = Reader::at(&bytes[..cut], lead, encoding).get::<Any>();
                    }
                }
            }
        }
    }
    assert_eq!(any, &any.clone());
}

static TC_POINT: TypeDef = TypeDef::Struct {
    id: "IDL:Point:1.0",
    name: "Point",
    members: &[("tag", &TypeDef::Octet), ("x", &TypeDef::Double), ("colour", &TC_COLOUR)],
};
static TC_COLOUR: TypeDef =
    TypeDef::Enum { id: "IDL:Colour:1.0", name: "Colour", enumerators: &["red", "green"] };
static TC_TREE: TypeDef = TypeDef::Struct {
    id: "IDL:Tree:1.0",
    name: "Tree",
    members: &[
        ("label", &TypeDef::String { bound: 0 }),
        ("kids", &TypeDef::Sequence { element: &TC_TREE, bound: 0 }),
    ],
};

#[derive(Debug, Clone, PartialEq)]
struct Point(u8, f64, u32);

impl Marshal for Point {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.write_u8(self.0);
        w.write_f64(self.1);
        w.write_u32(self.2);
        Ok(())
    }
}

impl Unmarshal for Point {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Point(r.read_u8()?, r.read_f64()?, r.read_u32()?))
    }
}

impl Typed for Point {
    const TYPE: &'static TypeDef = &TC_POINT;
}

#[derive(Debug, Clone, PartialEq)]
struct Tree(String, Vec<Tree>);

impl Marshal for Tree {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(&self.0)?;
        w.put(&self.1)
    }
}

impl Unmarshal for Tree {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Tree(r.get()?, r.get()?))
    }
}

impl Typed for Tree {
    const TYPE: &'static TypeDef = &TC_TREE;
}

/// Puts a value into an `any`, passes it through every encoding and extracts it.
#[track_caller]
fn check_value<T: Typed + Marshal + Unmarshal + PartialEq + fmt::Debug>(value: T) {
    let any = Any::new(&value).unwrap();
    check(&any);
    assert_eq!(any.extract::<T>().unwrap(), value);
    let read = Reader::new(&bytes_of(&any, BIG), BIG).get::<Any>().unwrap();
    assert_eq!(read.extract::<T>().unwrap(), value);
}

#[test]
fn values_of_rusts_types() {
    check_value(-5i16);
    check_value(7u64);
    check_value(1.5f32);
    check_value(true);
    check_value(LongDouble::from(-0.1));
    check_value('ż');
    check_value("zwykły tekst".to_owned());
    check_value(WString::from("szeroki 𝄞"));
    check_value(Fixed::<7, 2>::try_from(-12.5).unwrap());
    check_value(vec![1.0f64, -2.0, f64::INFINITY]);
    check_value(vec![true, false]);
    check_value(vec!["a".to_owned(), String::new()]);
    check_value([[1i32, 2], [3, 4]]);
    check_value(Any::new(&Any::new(&1i32).unwrap()).unwrap());
    check_value(TypeCode::of(&TC_TREE));
    check_value((0..20).map(|i| Point(i, f64::from(i) / 3.0, 1)).collect::<Vec<_>>());
    check_value(Tree("root".into(), vec![Tree("leaf".into(), vec![]), Tree("twig".into(), vec![])]));
    check(&Any::default());
}

#[test]
fn types_without_a_rust_type_of_their_own() {
    let char = Any::with_type(&TypeDef::Char, &b'x').unwrap();
    assert_eq!(char.extract::<u8>(), Err(ExtractError::WrongType));
    assert_eq!(char.extract_as::<u8>(&TypeDef::Char), Ok(b'x'));
    check(&char);

    static ALIAS: TypeDef =
        TypeDef::Alias { id: "IDL:Code:1.0", name: "Code", original: &TypeDef::String { bound: 4 } };
    let code = Any::with_type(&ALIAS, "abcd").unwrap();
    assert_eq!(code.extract_str().unwrap(), "abcd");
    assert_eq!(code.extract_as::<String>(&TypeDef::String { bound: 4 }).unwrap(), "abcd");
    assert_eq!(Any::with_type(&ALIAS, "abcde"), Err(Misuse::WrongType));
    assert_eq!(Any::with_type(&TypeDef::Long, &1i64), Err(Misuse::WrongType));
    assert_eq!(Any::with_type(&TC_COLOUR, &2u32), Err(Misuse::WrongType));
    check(&code);
}

#[test]
fn unions_take_the_case_of_their_label() {
    let case = |label, name: &str, ty: &'static TypeDef| UnionCase {
        label,
        name: name.into(),
        type_code: ty.into(),
    };
    let many = (10..40).map(|label| case(Some(label), &format!("c{label}"), &TypeDef::Short));
    let cases: Vec<_> = [
        case(Some(1), "text", &TypeDef::String { bound: 0 }),
        case(Some(-2), "text", &TypeDef::String { bound: 0 }),
        case(None, "other", &TypeDef::Double),
    ]
    .into_iter()
    .chain(many)
    .collect();
    let union = TypeCode::create_union("IDL:U:1.0", "U", &TypeCode::of(&TypeDef::Long), &cases).unwrap();
    for (label, body) in [(1, 0), (-2, 0), (9, 1), (10, 2), (39, 2)] {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, CANONICAL);
        w.write_i32(label);
        match body {
            0 => w.write_str("x").unwrap(),
            1 => w.write_f64(0.5),
            _ => w.write_i16(3),
        }
        let mut r = Reader::new(&bytes, CANONICAL);
        let any = Any::read_value(union.clone(), &mut r).unwrap();
        assert_eq!(r.remaining(), 0);
        check(&any);
    }
}

#[test]
fn exceptions_carry_their_id_but_may_lack_it() {
    static TC: TypeDef = TypeDef::Except {
        id: "IDL:Oops:1.0",
        name: "Oops",
        members: &[("why", &TypeDef::String { bound: 0 }), ("code", &TypeDef::Long)],
    };
    struct Oops;
    impl Marshal for Oops {
        fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
            w.write_str("because")?;
            w.write_i32(3);
            Ok(())
        }
    }
    let any = Any::with_type(&TC, &Oops).unwrap();
    check(&any);
    assert_eq!(any.reader().read_str().unwrap(), "because");
    let mut short = Vec::new();
    let mut w = Writer::new(&mut short, BIG);
    w.put(&TypeCode::of(&TC)).unwrap();
    w.put(&Oops).unwrap();
    assert_eq!(Reader::new(&short, BIG).get::<Any>().unwrap(), any);
    // The form for the one peer that reads no other.
    let mut bare = Vec::new();
    Writer::new(&mut bare, Encoding { bare_exceptions: true, ..BIG }).put(&any).unwrap();
    assert_eq!(bare, short);
}

#[test]
fn equal_values_may_differ_in_their_bytes() {
    // One type twice, written with an indirection or in full.
    let shared = TypeCode::create_struct(
        "IDL:Pair:1.0",
        "Pair",
        &[("a", TypeCode::of(&TC_POINT)), ("b", TypeCode::of(&TC_POINT))],
    )
    .unwrap();
    let copy = |tc: &TypeCode| {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, BIG).put(tc).unwrap();
        Reader::new(&bytes, BIG).get::<TypeCode>().unwrap()
    };
    let apart = TypeCode::create_struct(
        "IDL:Pair:1.0",
        "Pair",
        &[("a", copy(&TypeCode::of(&TC_POINT))), ("b", TypeCode::of(&TC_POINT))],
    )
    .unwrap();
    let (one, other) = (Any::new(&shared).unwrap(), Any::new(&apart).unwrap());
    assert_ne!(*one.content, *other.content);
    assert_eq!(one, other);
    assert_ne!(one, Any::new(&TypeCode::of(&TC_POINT)).unwrap());
}

#[test]
fn values_without_bytes_have_an_end() {
    let empty = TypeCode::create_struct("IDL:E:1.0", "E", &[]).unwrap();
    let mut pair = empty.clone();
    for _ in 0..60 {
        pair = TypeCode::create_struct("IDL:P:1.0", "P", &[("a", pair.clone()), ("b", pair)]).unwrap();
    }
    let array = TypeCode::create_array(&empty, u32::MAX).unwrap();
    let sequence = TypeCode::create_sequence(&empty, 0).unwrap();
    let octets = TypeCode::create_array(&TypeCode::of(&TypeDef::Octet), u32::MAX).unwrap();
    for type_code in [&pair, &array, &sequence] {
        let bytes = [0xFF; 8];
        let result = Any::read_value(type_code.clone(), &mut Reader::new(&bytes, BIG));
        assert_eq!(result.unwrap_err().kind, MalformedKind::OutOfProportion);
    }
    let result = Any::read_value(octets, &mut Reader::new(&[0; 8], BIG));
    assert_eq!(result.unwrap_err().kind, MalformedKind::LengthBeyondData);
    // A few are accepted.
    let few = TypeCode::create_array(&empty, 100).unwrap();
    assert!(Any::read_value(few, &mut Reader::new(&[], BIG)).is_ok());
}

/// A plan made for the type of one inner `any` is not used for the type of the next one, which may get the
/// same address in memory.
#[test]
fn plans_of_inner_types_are_not_confused() {
    let types: Vec<TypeCode> = [TypeDef::Long, TypeDef::Double, TypeDef::Octet, TypeDef::Short]
        .iter()
        .map(|member| {
            let member = TypeCode::of(Box::leak(Box::new(*member)));
            let pair = TypeCode::create_struct("IDL:P:1.0", "P", &[("a", member.clone()), ("b", member)]);
            TypeCode::create_sequence(&pair.unwrap(), 0).unwrap()
        })
        .collect();
    let anys: Vec<Any> = (0..40)
        .map(|i| {
            let mut bytes = 8u32.to_be_bytes().to_vec();
            bytes.extend((4..140).map(|b| b ^ i));
            Any::read_value(types[usize::from(i) % 4].clone(), &mut Reader::new(&bytes, BIG)).unwrap()
        })
        .collect();
    let outer = Any::new(&anys).unwrap();
    let read: Any = Reader::new(&bytes_of(&outer, BIG), BIG).get().unwrap();
    assert_eq!(read.extract::<Vec<Any>>().unwrap(), anys);
}

#[test]
fn text_shows_type_and_value() {
    let text = |any: Any| format!("{any:?}");
    assert_eq!(text(Any::default()), "Any(null)");
    assert_eq!(text(Any::new(&Point(1, 0.5, 1)).unwrap()), "Any(Point { tag: 1, x: 0.5, colour: green })");
    let tree = Tree("a".into(), vec![Tree("b".into(), vec![])]);
    let shown = r#"Any(Tree { label: "a", kids: [Tree { label: "b", kids: [] }] })"#;
    assert_eq!(text(Any::new(&tree).unwrap()), shown);
    assert!(text(Any::new(&vec![1u32; 100_000]).unwrap()).len() < 3000);
    let fixed = Fixed::<5, 2>::try_from(1.25).unwrap();
    assert_eq!(text(Any::new(&fixed).unwrap()), "Any(1.25d)");
    assert_eq!(text(Any::new(&TypeCode::of(&TC_COLOUR)).unwrap()), "Any(enum Colour { red, green })");
}

#[test]
fn an_any_is_small() {
    assert!(size_of::<Any>() <= 32, "{}", size_of::<Any>());
}
