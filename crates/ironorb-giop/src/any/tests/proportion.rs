//! Values without bytes. How many of them are accepted depends on the value alone. It does not depend on its
//! position, its byte order, its code set, or whether it has been passed on before.

use super::*;

/// A type without bytes: a struct without members.
fn empty() -> TypeCode {
    TypeCode::create_struct("IDL:E:1.0", "E", &[]).unwrap()
}

/// Numbers, text and elements without bytes, with every kind of padding.
fn mixed() -> TypeCode {
    let of = |type_def: &'static TypeDef| TypeCode::of(type_def);
    let pair = [("a", of(&TypeDef::Octet)), ("b", of(&TypeDef::LongLong))];
    let pair = TypeCode::create_struct("IDL:Pair:1.0", "Pair", &pair).unwrap();
    let members = [
        ("octet", of(&TypeDef::Octet)),
        ("pairs", TypeCode::create_sequence(&pair, 0).unwrap()),
        ("text", of(&TypeDef::String { bound: 0 })),
        ("octets", TypeCode::create_sequence(&of(&TypeDef::Octet), 0).unwrap()),
        ("wide", of(&TypeDef::WString { bound: 0 })),
        ("any", of(&TypeDef::Any)),
        ("empties", TypeCode::create_sequence(&empty(), 0).unwrap()),
        ("last", of(&TypeDef::Double)),
    ];
    TypeCode::create_struct("IDL:Mixed:1.0", "Mixed", &members).unwrap()
}

/// Writes the value of [`mixed`] with `count` elements without bytes.
fn write_mixed(w: &mut Writer<'_>, count: u32) {
    w.write_u8(1);
    w.write_u32(3);
    for i in 0..3 {
        w.write_u8(i);
        w.write_u64(u64::from(i));
    }
    w.write_str("zwyk\u{ff}y").unwrap();
    w.write_octets(&[1, 2, 3]).unwrap();
    w.write_wstr("szeroki").unwrap();
    w.put(&Any::new(&5u16).unwrap()).unwrap();
    w.write_u32(count);
    w.write_f64(0.5);
}

/// Whether an `any` of this type is accepted. Checks every position, byte order and code set. Where it is
/// accepted it must be accepted again when it is written anew, and where it is copied without being stored.
#[track_caller]
fn is_accepted(type_code: &TypeCode, write: &dyn Fn(&mut Writer<'_>)) -> bool {
    let mut verdicts = Vec::new();
    let encodings: Vec<Encoding> = [ByteOrder::Big, ByteOrder::Little]
        .into_iter()
        .flat_map(|order| [CharSet::Latin1, CharSet::Utf8].map(|char_set| (order, char_set)))
        .map(|(order, char_set)| Encoding { order, char_set, ..Encoding::NATIVE })
        .collect();
    for encoding in &encodings {
        for lead in [0, 1, 3, 4, 5, 8, 100] {
            let mut bytes = vec![0xAA; lead];
            let mut w = Writer::continuing(&mut bytes, 0, *encoding);
            w.put(type_code).unwrap();
            write(&mut w);
            let read = Reader::at(&bytes, lead, *encoding).get::<Any>();
            verdicts.push(read.is_ok());
            let any_type = TypeCode::of(&TypeDef::Any);
            let mut passed_on = vec![0xAA; 9 - lead.min(9)];
            let bridge = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };
            let mut w = Writer::continuing(&mut passed_on, 0, bridge);
            verdicts.push(copy_value(&mut Reader::at(&bytes, lead, *encoding), &mut w, &any_type).is_ok());
            let Ok(any) = read else { continue };
            for other in &encodings {
                let mut again = vec![0xAA; 9 - lead.min(9)];
                Writer::continuing(&mut again, 0, *other).put(&any).unwrap();
                let read = Reader::at(&again, 9 - lead.min(9), *other).get::<Any>();
                verdicts.push(read.as_ref() == Ok(&any));
            }
        }
    }
    let is_accepted = verdicts[0];
    assert!(verdicts.iter().all(|verdict| *verdict == is_accepted), "{verdicts:?}");
    is_accepted
}

#[test]
fn what_is_accepted_does_not_depend_on_its_place() {
    let sequence = TypeCode::create_sequence(&empty(), 0).unwrap();
    let mixed = mixed();
    let mut accepted = [0; 2];
    for count in (0..700).step_by(35).chain(270..295).chain([5000, u32::MAX]) {
        accepted[0] += u32::from(is_accepted(&sequence, &|w| w.write_u32(count)));
        accepted[1] += u32::from(is_accepted(&mixed, &|w| write_mixed(w, count)));
    }
    // The exact bound is not promised, but there is one, and the mixed value allows more elements.
    assert!(accepted[0] > 20 && accepted[1] > accepted[0] && accepted[1] < 47, "{accepted:?}");
}

/// The form of a type adds nothing to the budget: a peer may write a type long or short.
#[test]
fn the_form_of_a_type_does_not_count() {
    let long = TypeCode::create_struct(&format!("IDL:{}:1.0", "E".repeat(5000)), "E", &[]).unwrap();
    let verdict = |count: u32, element: &TypeCode| {
        let sequence = TypeCode::create_sequence(element, 0).unwrap();
        is_accepted(&sequence, &|w| w.write_u32(count))
    };
    for count in (200..400).step_by(20) {
        assert_eq!(verdict(count, &long), verdict(count, &empty()), "{count}");
    }
}

/// Sequences of a type known at compile time are limited by their message, at every position in it.
#[test]
fn typed_sequences_without_bytes_are_limited_by_their_message() {
    let verdict = |lead: usize, count: u32| {
        let mut bytes = vec![0; 64];
        bytes[lead..lead + 4].copy_from_slice(&count.to_be_bytes());
        Reader::at(&bytes, lead, BIG).read_length(0).is_ok()
    };
    for count in [0, 256, 256 + 8 * 64, 257 + 8 * 64, u32::MAX] {
        for lead in (0..64).step_by(4) {
            assert_eq!(verdict(lead, count), count <= 256 + 8 * 64, "{count} at {lead}");
        }
    }
}
