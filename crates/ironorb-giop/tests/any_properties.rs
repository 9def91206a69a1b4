//! Properties of anys: a random value of a random type survives every encoding, and damage to its bytes gives
//! a value or an error.

use ironorb_giop::any::CANONICAL;
use ironorb_giop::cdr::LongDouble;
use ironorb_giop::typecode::{BadType, TcKind, UnionCase};
use ironorb_giop::{Any, ByteOrder, CharSet, DynAny, Encoding, Reader, TypeCode, TypeDef, Version, Writer};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_survives_every_encoding(seed in any::<u64>()) {
        let any = random_any(&mut Random(seed), 4);
        prop_assert_eq!(&any, &any.clone());
        for encoding in encodings() {
            for lead in [0, 1, 4, 6] {
                let mut bytes = vec![0xEE; lead];
                if Writer::continuing(&mut bytes, 0, encoding).put(&any).is_err() {
                    continue; // this encoding cannot represent the value
                }
                let mut r = Reader::at(&bytes, lead, encoding);
                let read = r.get::<Any>();
                prop_assert_eq!(read.as_ref(), Ok(&any), "under {:?}", encoding);
                prop_assert_eq!(r.remaining(), 0);
                let mut again = vec![0xEE; lead];
                let read = read.unwrap();
                Writer::continuing(&mut again, 0, encoding).put(&read).unwrap();
                prop_assert_eq!(&again, &bytes);
                prop_assert_eq!(format!("{read:?}"), format!("{any:?}"));
            }
        }
    }

    #[test]
    fn a_dynamic_value_equals_its_any_however_it_is_visited(seed in any::<u64>()) {
        let mut random = Random(seed);
        let any = random_any(&mut random, 4);
        let mut value = DynAny::from_any(&any).unwrap();
        prop_assert_eq!(&value.to_any().unwrap(), &any);
        look(&mut value, &mut random, 1);
        prop_assert_eq!(&value.to_any().unwrap(), &any);
        // Built again from its parts.
        let mut made = DynAny::new(any.type_code()).unwrap();
        rebuild(&mut value, &mut made);
        prop_assert_eq!(&made.to_any().unwrap(), &any);
        prop_assert!(made.equal(&value).unwrap());
        // A change that is undone restores the old value.
        let other = DynAny::new(any.type_code()).unwrap();
        let before = made.copy().unwrap();
        made.assign(&other).unwrap();
        prop_assert!(made.equal(&other).unwrap());
        look(&mut made, &mut random, 2);
        made.assign(&before).unwrap();
        prop_assert_eq!(&made.to_any().unwrap(), &any);
    }

    #[test]
    fn types_agree_with_themselves_and_their_compact_forms(seed in any::<u64>()) {
        let mut random = Random(seed);
        let (one, other) = (random_type(&mut random, 4), random_type(&mut random, 4));
        for ty in [&one, &other] {
            prop_assert!(ty.compact().equivalent(ty));
            prop_assert!(ty.equivalent(&ty.resolved()));
            let mut bytes = Vec::new();
            Writer::new(&mut bytes, CANONICAL).put(ty).unwrap();
            prop_assert_eq!(&Reader::new(&bytes, CANONICAL).get::<TypeCode>().unwrap(), ty);
        }
        prop_assert_eq!(one == other, other == one);
        prop_assert_eq!(one.equivalent(&other), other.equivalent(&one));
        if one == other {
            prop_assert!(one.equivalent(&other));
        }
    }

    #[test]
    fn damage_gives_a_value_or_an_error(seed in any::<u64>(), at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let any = random_any(&mut Random(seed), 4);
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, CANONICAL).put(&any).unwrap();
        for cut in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            let _ = Reader::new(&bytes[..cut], CANONICAL).get::<Any>();
        }
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(read) = Reader::new(&bytes, CANONICAL).get::<Any>() {
            if let Ok(mut value) = DynAny::from_any(&read) {
                prop_assert_eq!(&value.to_any().unwrap(), &read);
                look(&mut value, &mut Random(seed), 1);
                prop_assert_eq!(&value.to_any().unwrap(), &read);
            }
            let _ = (format!("{read:?}"), read == any, read.extract::<Vec<Any>>());
        }
    }
}

/// Visits one in `one_in` components.
fn look(value: &mut DynAny<'_>, random: &mut Random, one_in: usize) {
    let count = value.component_count().unwrap();
    for index in 0..count {
        if random.below(one_in) == 0 {
            look(&mut value.component(index).unwrap(), random, one_in);
        }
    }
}

/// Makes `to` equal to `from`, from the leaves up.
fn rebuild(from: &mut DynAny<'_>, to: &mut DynAny<'_>) {
    let count = from.component_count().unwrap();
    if from.type_code().resolved().kind() == TcKind::Sequence {
        to.set_length(count).unwrap();
    }
    if count == 0 {
        to.assign(from).unwrap();
    }
    for index in 0..count {
        rebuild(&mut from.component(index).unwrap(), &mut to.component(index).unwrap());
    }
    assert_eq!(from.to_any().unwrap(), to.to_any().unwrap());
}

fn encodings() -> impl Iterator<Item = Encoding> {
    [ByteOrder::Big, ByteOrder::Little].into_iter().flat_map(|order| {
        [Version::V1_0, Version::V1_1, Version::V1_2].into_iter().flat_map(move |version| {
            [CharSet::Latin1, CharSet::Utf8].map(|char_set| Encoding {
                order,
                version,
                char_set,
                ..CANONICAL
            })
        })
    })
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

/// A type with values. Some are recursive.
fn random_type(random: &mut Random, depth: u32) -> TypeCode {
    random_composite(random, depth).expect("a legal type")
}

fn random_composite(random: &mut Random, depth: u32) -> Result<TypeCode, BadType> {
    const BASIC: &[TypeDef] = &[
        TypeDef::Short,
        TypeDef::ULong,
        TypeDef::LongLong,
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
        TypeDef::WString { bound: 0 },
        TypeDef::ObjRef { id: "IDL:omg.org/CORBA/Object:1.0", name: "Object" },
    ];
    let id = |name: &str| format!("IDL:{name}:1.0");
    let below = depth.saturating_sub(1);
    let name = format!("T{}", random.below(1000));
    let choice = if depth == 0 { 0 } else { random.below(12) };
    match choice {
        0..=2 => Ok(TypeCode::of(&BASIC[random.below(BASIC.len())])),
        3 => TypeCode::create_sequence(&random_type(random, below), [0, 0, 5][random.below(3)]),
        4 => TypeCode::create_array(&random_type(random, below), random.below(4) as u32),
        5 => TypeCode::create_alias(&id(&name), &name, &random_type(random, below)),
        6 => TypeCode::create_enum(&id(&name), &name, &["a", "b", "c"]),
        7 => {
            let digits = 1 + random.below(31) as u16;
            TypeCode::create_fixed(digits, random.below(usize::from(digits) + 1) as i16)
        }
        8 => {
            let switch = match random.below(4) {
                0 => TypeCode::create_enum(&id("Switch"), "Switch", &["x", "y", "z"])?,
                1 => TypeCode::of(&TypeDef::Long),
                2 => TypeCode::of(&TypeDef::Boolean),
                _ => TypeCode::of(&TypeDef::ULongLong),
            };
            let cases: Vec<UnionCase> = (0..2)
                .map(|label| UnionCase {
                    label: Some(label),
                    name: format!("m{label}"),
                    type_code: random_type(random, below),
                })
                .collect();
            TypeCode::create_union(&id(&name), &name, &switch, &cases)
        }
        9 => {
            // Recursive through a sequence.
            let me = TypeCode::recursive(&id(&name))?;
            let kids = TypeCode::create_sequence(&me, 0)?;
            let members = [("kids", kids), ("more", random_type(random, below))];
            TypeCode::create_struct(&id(&name), &name, &members)
        }
        _ => {
            let shared = random_type(random, below);
            let mut members = vec![("a", shared.clone()), ("b", random_type(random, below)), ("c", shared)];
            members.truncate(1 + random.below(3));
            if random.below(4) == 0 {
                TypeCode::create_exception(&id(&name), &name, &members)
            } else {
                TypeCode::create_struct(&id(&name), &name, &members)
            }
        }
    }
    .or_else(|error| match error {
        // An exception cannot be a member.
        BadType::Content(_) => Ok(TypeCode::of(&TypeDef::Octet)),
        error => Err(error),
    })
}

fn write_value(w: &mut Writer<'_>, ty: &TypeCode, random: &mut Random, depth: u32) {
    let resolved = ty.resolved();
    let below = depth.saturating_sub(1);
    match resolved.kind() {
        TcKind::Short => w.write_i16(random.next() as i16),
        TcKind::ULong | TcKind::Float => w.write_u32(random.next() as u32),
        TcKind::LongLong | TcKind::Double => w.write_u64(random.next()),
        TcKind::LongDouble => w.put(&LongDouble::from(random.next() as f64 / 3.0)).unwrap(),
        TcKind::Boolean => w.write_bool(random.below(2) == 1),
        TcKind::Char | TcKind::Octet => w.write_u8(random.next() as u8),
        TcKind::WChar => w.write_wchar(TEXT[random.below(TEXT.len())]).unwrap(),
        TcKind::String => w.write_str(&random.text()).unwrap(),
        TcKind::WString => w.write_wstr(&random.text()).unwrap(),
        TcKind::Any => w.put(&random_any(random, below)).unwrap(),
        TcKind::TypeCode => w.put(&random_type(random, below)).unwrap(),
        TcKind::ObjRef => {
            w.write_str("").unwrap();
            w.write_u32(0);
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
            let label = resolved.member_label(index).unwrap().unwrap();
            match resolved.discriminator_type().unwrap().kind() {
                TcKind::Boolean => w.write_u8(label as u8),
                TcKind::ULongLong => w.write_i64(label),
                _ => w.write_u32(label as u32),
            }
            write_value(w, &resolved.member_type(index).unwrap(), random, depth);
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

const TEXT: &[char] = &['a', 'Z', '0', ' ', 'é', 'ż', '日', '𝄞'];

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
}
