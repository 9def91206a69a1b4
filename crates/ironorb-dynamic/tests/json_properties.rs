//! A random value of a random type converts to JSON text and back without a change. Random JSON gives a value
//! or an error.

use ironorb::giop::any::CANONICAL;
use ironorb::giop::typecode::{BadType, UnionCase, ValueMember, ValueModifier, Visibility};
use ironorb::giop::{Ior, Reader, Writer};
use ironorb::{Any, LongDouble, TcKind, TypeCode, TypeDef};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::json::{from_json, to_json, type_from_json, type_to_json};
use proptest::prelude::*;
use serde_json::Value;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_comes_back_as_it_was(seed in any::<u64>()) {
        let any = random_any(&mut Random(seed), 4);
        let json = match to_json(&any) {
            // Random types have few names, so two of them sometimes get one id.
            Err(error) if error.what().starts_with("two types have the id") => return Ok(()),
            json => json.unwrap(),
        };
        let read: Value = serde_json::from_str(&json.to_string()).unwrap();
        prop_assert_eq!(&read, &json);
        let back = from_json(any.type_code(), &read, &Interfaces::new(), None);
        prop_assert_eq!(back.map_err(|error| error.to_string()), Ok(any));
    }

    #[test]
    fn a_type_comes_back_as_it_was(seed in any::<u64>()) {
        let ty = random_type(&mut Random(seed), 5);
        let json = match type_to_json(&ty, &Interfaces::new()) {
            Err(error) if error.what().starts_with("two types have the id") => return Ok(()),
            json => json.unwrap(),
        };
        let back = type_from_json(&json, &Interfaces::new());
        prop_assert_eq!(back.map_err(|error| format!("{error} in {json}")), Ok(ty));
    }

    #[test]
    fn json_of_another_value_gives_a_value_or_an_error(seed in any::<u64>()) {
        let mut random = Random(seed);
        let (one, other) = (random_any(&mut random, 3), random_any(&mut random, 3));
        let Ok(json) = to_json(&other) else { return Ok(()) };
        if let Ok(made) = from_json(one.type_code(), &json, &Interfaces::new(), None) {
            prop_assert_eq!(made.type_code(), one.type_code());
            prop_assert!(to_json(&made).is_ok());
        }
        let _ = type_from_json(&json, &Interfaces::new());
    }
}

fn random_any(random: &mut Random, depth: u32) -> Any {
    let ty = random_type(random, depth);
    let mut bytes = Vec::new();
    write_value(&mut Writer::new(&mut bytes, CANONICAL), &ty, random, depth);
    let mut r = Reader::new(&bytes, CANONICAL);
    let any = Any::read_value(ty, &mut r).expect("a value of the type");
    assert_eq!(r.remaining(), 0);
    any
}

/// A random type that has values. Some are recursive.
fn random_type(random: &mut Random, depth: u32) -> TypeCode {
    const BASIC: &[TypeDef] = &[
        TypeDef::Short,
        TypeDef::UShort,
        TypeDef::Long,
        TypeDef::ULong,
        TypeDef::LongLong,
        TypeDef::ULongLong,
        TypeDef::Float,
        TypeDef::Double,
        TypeDef::LongDouble,
        TypeDef::Boolean,
        TypeDef::Char,
        TypeDef::WChar,
        TypeDef::Octet,
        TypeDef::Any,
        TypeDef::TypeCode,
        TypeDef::String { bound: 0 },
        TypeDef::WString { bound: 15 },
        TypeDef::ObjRef { id: "IDL:omg.org/CORBA/Object:1.0", name: "Object" },
        TypeDef::AbstractInterface { id: "IDL:Either:1.0", name: "Either" },
    ];
    let id = |name: &str| format!("IDL:{name}:1.0");
    let below = depth.saturating_sub(1);
    let name = format!("T{}", random.below(100_000));
    let choice = if depth == 0 { 0 } else { random.below(14) };
    let made = match choice {
        0..=2 => Ok(TypeCode::of(&BASIC[random.below(BASIC.len())])),
        3 => TypeCode::create_sequence(&random_type(random, below), [0, 0, 5][random.below(3)]),
        4 => TypeCode::create_array(&random_type(random, below), random.below(4) as u32),
        5 => TypeCode::create_alias(&id(&name), &name, &random_type(random, below)),
        6 => TypeCode::create_enum(&id(&name), &name, &["a", "b", "c"]),
        7 => {
            let digits = 1 + random.below(31) as u16;
            TypeCode::create_fixed(digits, random.below(usize::from(digits) + 1) as i16)
        }
        8 => random_union(random, below, &id(&name), &name),
        // Recursive through a sequence.
        9 => TypeCode::recursive(&id(&name)).and_then(|me| {
            let kids = TypeCode::create_sequence(&me, 0)?;
            let members = [("kids", kids), ("more", random_type(random, below))];
            TypeCode::create_struct(&id(&name), &name, &members)
        }),
        10 => TypeCode::recursive(&id(&name)).and_then(|me| {
            let member = |name: &str, type_code| ValueMember {
                name: name.to_owned(),
                type_code,
                visibility: [Visibility::Public, Visibility::Private][name.len() % 2],
            };
            let members = [member("next", me), member("it", random_type(random, below))];
            TypeCode::create_value(&id(&name), &name, ValueModifier::None, None, &members)
        }),
        11 => TypeCode::create_value_box(&id(&name), &name, &random_type(random, below)),
        _ => {
            let shared = random_type(random, below);
            let mut members = vec![("a", shared.clone()), ("b", random_type(random, below)), ("c", shared)];
            members.truncate(1 + random.below(3));
            match random.below(4) {
                0 => TypeCode::create_exception(&id(&name), &name, &members),
                1 => TypeCode::create_struct("", "", &members),
                _ => TypeCode::create_struct(&id(&name), &name, &members),
            }
        }
    };
    match made {
        // An exception cannot be a member.
        Err(BadType::Content(_)) => TypeCode::of(&TypeDef::Octet),
        made => made.expect("a legal type"),
    }
}

fn random_union(random: &mut Random, depth: u32, id: &str, name: &str) -> Result<TypeCode, BadType> {
    let (switch, most) = match random.below(6) {
        0 => (TypeCode::create_enum("IDL:Switch:1.0", "Switch", &["x", "y", "z"])?, 2),
        1 => (TypeCode::of(&TypeDef::Long), 2),
        2 => (TypeCode::of(&TypeDef::Boolean), 1),
        3 => (TypeCode::of(&TypeDef::Char), 2),
        4 => (TypeCode::of(&TypeDef::WChar), 2),
        _ => (TypeCode::of(&TypeDef::ULongLong), 2),
    };
    let mut cases: Vec<UnionCase> = (0..2)
        .map(|label| UnionCase {
            label: Some(label),
            name: ["discriminator", "other"][label as usize].to_owned(),
            type_code: random_type(random, depth),
        })
        .collect();
    if most > 1 && random.below(2) == 0 {
        cases.push(UnionCase { label: None, name: "rest".to_owned(), type_code: random_type(random, depth) });
    }
    TypeCode::create_union(id, name, &switch, &cases)
}

fn write_value(w: &mut Writer<'_>, ty: &TypeCode, random: &mut Random, depth: u32) {
    let resolved = ty.resolved();
    let below = depth.saturating_sub(1);
    match resolved.kind() {
        TcKind::Short | TcKind::UShort => w.write_u16(random.next() as u16),
        TcKind::Long | TcKind::ULong => w.write_u32(random.next() as u32),
        TcKind::LongLong | TcKind::ULongLong => w.write_u64(random.next() >> random.below(64)),
        TcKind::Float => w.write_f32(random.float() as f32),
        TcKind::Double => w.write_f64(random.float()),
        TcKind::LongDouble => {
            let bits = u128::from(random.next()) << 64 | u128::from(random.next());
            w.put(&[LongDouble::from(random.float()), LongDouble::from_bits(bits)][random.below(2)]).unwrap();
        }
        TcKind::Boolean => w.write_bool(random.below(2) == 1),
        TcKind::Char | TcKind::Octet => w.write_u8(random.next() as u8),
        TcKind::WChar => w.write_wchar(TEXT[random.below(TEXT.len())]).unwrap(),
        TcKind::String => w.write_str(&random.text()).unwrap(),
        TcKind::WString => w.write_wstr(&random.text()).unwrap(),
        TcKind::Any if depth == 0 => w.put(&Any::default()).unwrap(),
        TcKind::Any => w.put(&random_any(random, below)).unwrap(),
        TcKind::TypeCode => w.put(&random_type(random, below)).unwrap(),
        TcKind::ObjRef => w.put(&random.reference()).unwrap(),
        TcKind::AbstractInterface => {
            // A nil reference and a null value are the same.
            let reference = Some(random.reference()).filter(|reference| !reference.is_nil());
            w.write_bool(reference.is_some());
            if let Some(reference) = reference {
                w.put(&reference).unwrap();
            } else {
                w.write_null_value();
            }
        }
        TcKind::Fixed => {
            let digits = usize::from(resolved.fixed_digits().unwrap());
            let mut nibbles: Vec<u8> = (0..digits).map(|_| random.below(10) as u8).collect();
            if digits % 2 == 0 {
                nibbles.insert(0, 0);
            }
            let is_zero = nibbles.iter().all(|&nibble| nibble == 0);
            nibbles.push(if random.below(2) == 0 && !is_zero { 0xD } else { 0xC });
            nibbles.chunks(2).for_each(|pair| w.write_u8(pair[0] << 4 | pair[1]));
        }
        TcKind::Enum => w.write_u32(random.below(resolved.member_count().unwrap() as usize) as u32),
        TcKind::Sequence | TcKind::Array => {
            let element = resolved.content_type().unwrap();
            let length = match (resolved.kind(), depth) {
                (TcKind::Array, _) => resolved.length().unwrap() as usize,
                (_, 0) => 0,
                (_, _) => random.below(6),
            };
            if resolved.kind() == TcKind::Sequence {
                w.write_u32(length as u32);
            }
            (0..length).for_each(|_| write_value(w, &element, random, below));
        }
        TcKind::Union => {
            let index = random.below(resolved.member_count().unwrap() as usize) as u32;
            let label = resolved.member_label(index).unwrap().unwrap_or(2);
            match resolved.discriminator_type().unwrap().kind() {
                TcKind::Boolean | TcKind::Char => w.write_u8(label as u8),
                TcKind::WChar => w.write_wchar(char::from(label as u8)).unwrap(),
                TcKind::ULongLong => w.write_i64(label),
                _ => w.write_u32(label as u32),
            }
            write_value(w, &resolved.member_type(index).unwrap(), random, depth);
        }
        TcKind::Value | TcKind::ValueBox if depth == 0 || random.below(4) == 0 => w.write_null_value(),
        TcKind::ValueBox => {
            let open = w.begin_value(&[resolved.id().unwrap()], false).unwrap();
            write_value(w, &resolved.content_type().unwrap(), random, below);
            w.end_value(open).unwrap();
        }
        TcKind::Value => {
            let open = w.begin_value(&[resolved.id().unwrap()], false).unwrap();
            match random.below(3) {
                0 => w.write_value_indirection(open.position()).unwrap(),
                _ => write_value(w, &resolved.member_type(0).unwrap(), random, below),
            }
            write_value(w, &resolved.member_type(1).unwrap(), random, below);
            w.end_value(open).unwrap();
        }
        kind => {
            if kind == TcKind::Except {
                w.write_str(resolved.id().unwrap()).unwrap();
            }
            for index in 0..resolved.member_count().unwrap() {
                write_value(w, &resolved.member_type(index).unwrap(), random, below);
            }
        }
    }
}

const TEXT: &[char] = &['a', 'Z', '0', ' ', 'é', 'ż', '日', '𝄞', '"', '\\', '\n'];

/// A generator whose numbers follow from its seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn text(&mut self) -> String {
        let length = self.below(12);
        (0..length).map(|_| TEXT[self.below(TEXT.len())]).collect()
    }

    /// Random bits, and special values.
    fn float(&mut self) -> f64 {
        const SPECIAL: &[f64] =
            &[0.0, -0.0, 0.1, 1e300, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 16_777_217.0];
        match self.below(2) {
            0 => SPECIAL[self.below(SPECIAL.len())],
            _ => f64::from_bits(self.next()),
        }
    }

    fn reference(&mut self) -> Ior {
        match self.below(2) {
            0 => Ior::nil(),
            _ => match "corbaloc:iiop:1.2@example.org:2809/Some%20Key".parse() {
                Ok(ironorb::giop::ObjectUrl::Corbaloc(at)) => at.to_ior().expect("it has an address"),
                other => panic!("{other:?}"),
            },
        }
    }
}
