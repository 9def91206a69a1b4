use super::*;
use crate::cdr::{Reader, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::version::{ByteOrder, Encoding};

const BIG: Encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };

static TC_TREE: TypeDef = TypeDef::Struct {
    id: "IDL:Tree:1.0",
    name: "Tree",
    members: &[
        ("label", &TypeDef::String { bound: 16 }),
        ("kids", &TypeDef::Sequence { element: &TC_TREE, bound: 0 }),
        ("more", &TypeDef::Alias { id: "IDL:Trees:1.0", name: "Trees", original: &TC_SEQUENCE }),
    ],
};
static TC_SEQUENCE: TypeDef = TypeDef::Sequence { element: &TC_TREE, bound: 4 };
static TC_UNION: TypeDef = TypeDef::Union {
    id: "IDL:U:1.0",
    name: "U",
    discriminator: &TypeDef::Char,
    default: Some(2),
    cases: &[
        (b'a' as i64, "x", &TypeDef::Fixed { digits: 5, scale: 2 }),
        (b'b' as i64, "x", &TypeDef::Fixed { digits: 5, scale: 2 }),
        (0, "y", &TypeDef::Array { element: &TypeDef::Array { element: &TC_TREE, length: 3 }, length: 2 }),
    ],
};
static TC_VALUE: TypeDef = TypeDef::Value {
    id: "IDL:V:1.0",
    name: "V",
    modifier: ValueModifier::Truncatable,
    base: Some(&TypeDef::Value {
        id: "IDL:B:1.0",
        name: "B",
        modifier: ValueModifier::None,
        base: None,
        members: &[("next", &TC_VALUE, Visibility::Private)],
    }),
    members: &[("self_", &TC_VALUE, Visibility::Public)],
};
static ALL: &[&TypeDef] = &[
    &TypeDef::Null,
    &TypeDef::LongDouble,
    &TypeDef::WString { bound: 9 },
    &TC_TREE,
    &TC_SEQUENCE,
    &TC_UNION,
    &TC_VALUE,
    &TypeDef::ValueBox { id: "IDL:Box:1.0", name: "Box", content: &TypeDef::String { bound: 0 } },
    &TypeDef::Enum { id: "IDL:E:1.0", name: "E", enumerators: &["a", "b", "c"] },
    &TypeDef::Except { id: "IDL:X:1.0", name: "X", members: &[] },
    &TypeDef::ObjRef { id: "IDL:omg.org/CORBA/Object:1.0", name: "Object" },
    &TypeDef::AbstractInterface { id: "IDL:A:1.0", name: "A" },
    &TypeDef::LocalInterface { id: "IDL:L:1.0", name: "L" },
    &TypeDef::Native { id: "IDL:N:1.0", name: "N" },
];

fn bytes_of(type_code: &TypeCode, encoding: Encoding, lead: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; lead];
    Writer::continuing(&mut bytes, 0, encoding).put(type_code).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<TypeCode, Malformed> {
    Reader::new(bytes, BIG).get()
}

#[test]
fn every_kind_is_written_and_read() {
    for definition in ALL {
        let type_code = TypeCode::of(definition);
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let encoding = Encoding { order, ..BIG };
            for lead in 0..8 {
                let bytes = bytes_of(&type_code, encoding, lead);
                let mut r = Reader::at(&bytes, lead, encoding);
                let read: TypeCode = r.get().unwrap();
                assert_eq!(r.remaining(), 0);
                assert_eq!(read, type_code);
                assert!(read.equivalent(&type_code));
                assert_eq!(read.to_string(), type_code.to_string());
                assert_eq!(bytes_of(&read, encoding, lead), bytes, "{read}");
                for cut in lead..bytes.len() {
                    assert!(Reader::at(&bytes[..cut], lead, encoding).get::<TypeCode>().is_err());
                }
                for at in lead..bytes.len() {
                    let mut bytes = bytes.clone();
                    for flip in [1, 0x80, 0xFF] {
                        bytes[at] ^= flip;
                        if let Ok(changed) = Reader::at(&bytes, lead, encoding).get::<TypeCode>() {
                            let _ = (changed == type_code, changed.to_string(), changed.compact());
                        }
                        bytes[at] ^= flip;
                    }
                }
            }
        }
    }
}

#[test]
fn types_differ_from_each_other() {
    for (i, a) in ALL.iter().enumerate() {
        for (j, b) in ALL.iter().enumerate() {
            assert_eq!(TypeCode::of(a) == TypeCode::of(b), i == j);
            assert_eq!(TypeCode::of(a).equivalent(&TypeCode::of(b)), i == j);
        }
    }
}

#[test]
fn text_is_idl() {
    let text = |definition| TypeCode::of(definition).to_string();
    assert_eq!(text(&TC_TREE), "struct Tree { string<16> label; sequence<Tree> kids; Trees more; }");
    assert_eq!(text(&TC_SEQUENCE), "sequence<Tree, 4>");
    assert_eq!(
        text(&TC_UNION),
        "union U switch (char) { case 'a': case 'b': fixed<5, 2> x; default: Tree[2][3] y; }"
    );
    assert_eq!(text(&TC_VALUE), "valuetype V : truncatable B { public V self_; }");
    assert_eq!(format!("{TC_TREE:?}"), text(&TC_TREE));
}

#[test]
fn accessors_give_bad_kind_and_bounds() {
    let tree = TypeCode::of(&TC_TREE);
    assert_eq!(tree.member_count(), Ok(3));
    assert_eq!(tree.member_type(1).unwrap().content_type().unwrap(), tree);
    assert_eq!(tree.member_name(3), Err(TypeCodeError::Bounds { index: 3, count: 3 }));
    assert_eq!(tree.length(), Err(TypeCodeError::BadKind(TcKind::Struct)));
    let union = TypeCode::of(&TC_UNION);
    assert_eq!(union.member_label(1), Ok(Some(98)));
    assert_eq!(union.member_label(2), Ok(None));
    assert_eq!(union.default_index(), Ok(Some(2)));
    assert_eq!(union.discriminator_type().unwrap().kind(), TcKind::Char);
    let value = TypeCode::of(&TC_VALUE);
    assert_eq!(value.member_visibility(0), Ok(Visibility::Public));
    assert_eq!(value.concrete_base_type().unwrap().unwrap().name(), Ok("B"));
    assert_eq!(TypeCode::of(&TypeDef::Long).id(), Err(TypeCodeError::BadKind(TcKind::Long)));
}

#[test]
fn compact_forms_keep_ids_and_typedefs() {
    let compact = TypeCode::of(&TC_TREE).compact();
    assert_eq!((compact.id(), compact.name(), compact.member_name(0)), (Ok("IDL:Tree:1.0"), Ok(""), Ok("")));
    assert_eq!(compact.member_type(2).unwrap().kind(), TcKind::Alias);
    assert_ne!(compact, TypeCode::of(&TC_TREE));
    assert!(compact.equivalent(&TypeCode::of(&TC_TREE)));
    assert_eq!(compact.compact(), compact);
}

#[test]
fn equivalence_looks_through_typedefs_and_at_ids_first() {
    let long = TypeCode::of(&TypeDef::Long);
    let alias = TypeCode::create_alias("IDL:A:1.0", "A", &long).unwrap();
    assert!(alias.equivalent(&long) && alias != long);
    let one = TypeCode::create_struct("IDL:S:1.0", "S", &[("a", long.clone())]).unwrap();
    let same_id = TypeCode::create_struct("IDL:S:1.0", "T", &[]).unwrap();
    let no_id = TypeCode::create_struct("", "", &[("", alias)]).unwrap();
    assert!(one.equivalent(&same_id) && one.equivalent(&no_id) && no_id.equivalent(&one));
    assert!(!same_id.equivalent(&no_id));
}

/// `struct Node { sequence<Node> kids; }` created at run time.
fn node() -> TypeCode {
    let me = TypeCode::recursive("IDL:Node:1.0").unwrap();
    let kids = TypeCode::create_sequence(&me, 0).unwrap();
    TypeCode::create_struct("IDL:Node:1.0", "Node", &[("kids", kids)]).unwrap()
}

#[test]
fn recursive_types_are_built_compared_and_sent() {
    let node = node();
    assert_eq!(node.member_type(0).unwrap().content_type().unwrap(), node);
    assert_eq!(read(&bytes_of(&node, BIG, 0)).unwrap(), node);
    // Unrolled once: another graph, but the same infinite tree.
    let kids = TypeCode::create_sequence(&node, 0).unwrap();
    let unrolled = TypeCode::create_struct("IDL:Node:1.0", "Node", &[("kids", kids)]).unwrap();
    assert_eq!(unrolled, node);
    assert_eq!(read(&bytes_of(&unrolled, BIG, 0)).unwrap(), node);

    // Two types that contain each other.
    let a = TypeCode::recursive("IDL:A:1.0").unwrap();
    let b = TypeCode::recursive("IDL:B:1.0").unwrap();
    let of = |t: &TypeCode| TypeCode::create_sequence(t, 0).unwrap();
    let b = TypeCode::create_struct("IDL:B:1.0", "B", &[("a", of(&a)), ("b", of(&b))]).unwrap();
    assert_eq!(Writer::new(&mut Vec::new(), BIG).put(&b), Err(Misuse::BadTypeCode));
    let a = TypeCode::create_struct("IDL:A:1.0", "A", &[("b", of(&b)), ("c", of(&b))]).unwrap();
    let b = a.member_type(0).unwrap().content_type().unwrap();
    assert_eq!(b.member_type(0).unwrap().content_type().unwrap(), a);
    assert_eq!(read(&bytes_of(&b, BIG, 0)).unwrap(), b);
    assert_eq!(read(&bytes_of(&a, BIG, 4)[4..]).unwrap(), a);
}

#[test]
fn types_that_idl_forbids_are_not_built() {
    let long = TypeCode::of(&TypeDef::Long);
    let bad = |result: Result<TypeCode, BadType>| result.unwrap_err();
    assert_eq!(bad(TypeCode::create_struct("IDL:S:1.0", "1S", &[])), BadType::Name);
    assert_eq!(bad(TypeCode::create_struct("S", "S", &[])), BadType::Id);
    let twice = [("a", long.clone()), ("A", long.clone())];
    assert_eq!(bad(TypeCode::create_struct("IDL:S:1.0", "S", &twice)), BadType::DuplicateName);
    let void = TypeCode::of(&TypeDef::Void);
    assert_eq!(bad(TypeCode::create_sequence(&void, 0)), BadType::Content(TcKind::Void));
    for (digits, scale) in [(32, 0), (0, 0), (5, 6), (5, -32)] {
        assert_eq!(bad(TypeCode::create_fixed(digits, scale)), BadType::Digits);
    }
    let case = |label| UnionCase { label, name: String::new(), type_code: long.clone() };
    let union = |switch: &'static TypeDef, cases: &[UnionCase]| {
        bad(TypeCode::create_union("IDL:U:1.0", "U", &switch.into(), cases))
    };
    assert_eq!(union(&TypeDef::Double, &[]), BadType::Discriminator(TcKind::Double));
    assert_eq!(union(&TypeDef::Short, &[case(Some(40_000))]), BadType::Label(40_000));
    assert_eq!(union(&TypeDef::Short, &[case(Some(1)), case(Some(1))]), BadType::DuplicateLabel);
    let me = TypeCode::recursive("IDL:Me:1.0").unwrap();
    assert_eq!(bad(TypeCode::create_struct("IDL:Me:1.0", "Me", &[("me", me)])), BadType::Recursion);
    let mut deep = long.clone();
    let failed = (0..1000).find_map(|_| match TypeCode::create_sequence(&deep, 0) {
        Ok(deeper) => {
            deep = deeper;
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(failed, Some(BadType::TooDeep));
}

/// Bytes by hand: words in big-endian order, and encapsulations.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A complex type with an empty id and name, then these words.
fn complex(kind: TcKind, parameters: &[u32]) -> Vec<u8> {
    let names = if matches!(kind, TcKind::Sequence | TcKind::Array) { vec![] } else { vec![1, 0, 1, 0] };
    let body = words(&[&names[..], parameters].concat());
    [words(&[kind.number(), body.len() as u32 + 4]), vec![0; 4], body].concat()
}

#[track_caller]
fn refused(bytes: &[u8], kind: MalformedKind) {
    assert_eq!(read(bytes).map(|t| t.to_string()).unwrap_err().kind, kind);
}

#[test]
fn illegal_recursion_is_refused() {
    let back = |offset: i32| [u32::MAX, offset as u32];
    // A typedef of itself, a sequence of itself, a struct that contains itself, and a value that is its own
    // base.
    refused(&complex(TcKind::Alias, &back(-32)), MalformedKind::BadTypeCode);
    refused(&complex(TcKind::Sequence, &[u32::MAX, -16i32 as u32, 0]), MalformedKind::BadTypeCode);
    refused(&complex(TcKind::Struct, &[1, 1, 0, u32::MAX, -44i32 as u32]), MalformedKind::BadTypeCode);
    // (The value modifier, a short, is in the padding after the name.)
    refused(&complex(TcKind::Value, &[u32::MAX, -32i32 as u32, 0]), MalformedKind::BadTypeCode);
    // Offsets without a type: forwards, to itself, before the message, and into the middle of a type.
    for offset in [4, 0, -4, -8, -12, -28, -36, i32::MIN] {
        refused(&complex(TcKind::Alias, &back(offset)), MalformedKind::BadTypeCode);
    }
    refused(&words(&[u32::MAX, -4i32 as u32]), MalformedKind::BadTypeCode);
}

#[test]
fn counts_beyond_the_data_take_no_memory() {
    refused(&complex(TcKind::Struct, &[u32::MAX]), MalformedKind::LengthBeyondData);
    refused(&complex(TcKind::Struct, &[1000, 1, 0]), MalformedKind::LengthBeyondData);
    refused(&complex(TcKind::Enum, &[u32::MAX]), MalformedKind::LengthBeyondData);
    refused(&complex(TcKind::Union, &[3, u32::MAX, 0x1000_0000]), MalformedKind::LengthBeyondData);
    refused(&words(&[99]), MalformedKind::BadTypeCode);
    refused(&words(&[TcKind::Fixed.number(), 0x0020_0000]), MalformedKind::BadTypeCode);
    // Digits and scale: a scale of thousands would be a text of thousands of zeros.
    refused(&words(&[TcKind::Fixed.number(), 0x0009_9903]), MalformedKind::BadTypeCode);
    refused(&words(&[TcKind::Fixed.number(), 0x0009_000A]), MalformedKind::BadTypeCode);
    // A union whose discriminator is a double, or whose default case is missing.
    refused(&complex(TcKind::Union, &[7, u32::MAX, 0]), MalformedKind::BadTypeCode);
    refused(&complex(TcKind::Union, &[3, 1, 0]), MalformedKind::BadTypeCode);
}

#[test]
fn nesting_is_bounded() {
    let mut bytes = Vec::new();
    for _ in 0..10_000 {
        // Each level is an encapsulation as long as the rest.
        bytes.extend(words(&[TcKind::Sequence.number(), 0, 0]));
    }
    let total = bytes.len();
    for level in 0..10_000 {
        let at = level * 12 + 4;
        bytes[at..at + 4].copy_from_slice(&((total - at - 4) as u32).to_be_bytes());
    }
    refused(&bytes, MalformedKind::TooDeep);
}

/// A type whose members have one type twice, over sixty levels: 2^60 paths through 60 types.
fn bomb() -> TypeCode {
    let mut pair = TypeCode::of(&TypeDef::Octet);
    for _ in 0..60 {
        pair = TypeCode::create_struct("", "", &[("a", pair.clone()), ("b", pair)]).unwrap();
    }
    pair
}

#[test]
fn walks_are_bounded_by_types_and_not_by_paths_through_them() {
    let (one, other) = (bomb(), bomb());
    assert_eq!(one, other);
    assert!(one.equivalent(&other));
    let bytes = bytes_of(&one, BIG, 0);
    assert!(bytes.len() < 8000);
    let read = read(&bytes).unwrap();
    assert_eq!(read, one);
    assert!(read.compact().equivalent(&one));
    assert!(one.to_string().len() < 100);
}

/// Through indirections, a peer can chain typedefs without nesting. A chain may have [`ALIASES_MAX`]
/// typedefs. Longer ones are not followed, so a lookup for each of many types ends soon.
#[test]
fn chains_of_typedefs_are_followed_up_to_the_limit() {
    /// struct { member 0: typedef long; member i: typedef of member i - 1; last: a union with the last
    /// typedef as discriminator }
    fn chain_and_union(aliases: usize, unions: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, BIG);
        w.write_u32(15);
        w.write_encapsulation(|w| {
            w.write_str("")?;
            w.write_str("")?;
            w.write_u32((aliases + unions) as u32);
            // Where the previous type starts, from the start of the surrounding struct.
            let mut before: Option<usize> = None;
            for number in 0..aliases + unions {
                w.write_str("")?;
                w.align(4);
                let at = w.position();
                w.write_u32(if number < aliases { 21 } else { 16 });
                w.write_encapsulation(|w| {
                    w.write_str("")?;
                    w.write_str("")?;
                    w.align(4);
                    match before {
                        None => w.write_u32(3),
                        Some(before) => {
                            w.write_u32(0xFFFF_FFFF);
                            // This encapsulation starts after a kind and a length.
                            w.write_i32(before as i32 - (at + 8 + w.position()) as i32);
                        }
                    }
                    if number >= aliases {
                        w.write_i32(-1);
                        w.write_u32(0);
                    }
                    Ok(())
                })?;
                if number < aliases {
                    before = Some(at);
                }
            }
            Ok(())
        })
        .unwrap();
        bytes
    }

    let read = |bytes: &[u8]| Reader::new(bytes, BIG).get::<TypeCode>();
    let most = node::ALIASES_MAX - 1;
    let whole = read(&chain_and_union(most as usize, 3)).unwrap();
    assert_eq!(whole.member_count(), Ok(most + 3));
    let last = whole.member_type(most - 1).unwrap();
    assert_eq!(last.as_type_ref().resolved().kind(), TcKind::Long);
    assert_eq!(read(&chain_and_union(most as usize + 1, 1)).unwrap_err().kind, MalformedKind::BadTypeCode);
    assert_eq!(read(&chain_and_union(20_000, 20_000)).unwrap_err().kind, MalformedKind::BadTypeCode);

    // A chain without a union is a type that can be shown, compared and written, but it has no values.
    let value_of = |type_code| crate::any::Any::read_value(type_code, &mut Reader::new(&[0; 20_000], BIG));
    let longer = read(&chain_and_union(5000, 0)).unwrap();
    assert_eq!(read(&bytes_of(&longer, BIG, 0)).unwrap(), longer);
    assert!(longer.equivalent(&longer.compact()));
    assert!(value_of(longer).is_err());
    // A value with fewer bytes than typedefs to follow is out of proportion to them.
    let none = read(&chain_and_union(1, 0)).unwrap();
    value_of(none).unwrap();
    let deep = read(&chain_and_union(500, 0)).unwrap().member_type(499).unwrap();
    let text = TypeCode::of(&TypeDef::String { bound: 0 });
    let members = [("text", text), ("a", deep.clone()), ("b", deep.clone()), ("c", deep)];
    let element = TypeCode::create_struct("", "", &members).unwrap();
    let sequence = TypeCode::create_sequence(&element, 0).unwrap();
    let mut bytes = 1000u32.to_be_bytes().to_vec();
    bytes.resize(4 + 16 * 1000, 0);
    let refused = crate::any::Any::read_value(sequence, &mut Reader::new(&bytes, BIG)).unwrap_err();
    assert_eq!(refused.kind, MalformedKind::OutOfProportion);
}

#[test]
fn a_group_closes_types_that_contain_one_another() {
    let (a, b) = (TypeCode::recursive("IDL:A:1.0").unwrap(), TypeCode::recursive("IDL:B:1.0").unwrap());
    let many = |element: &TypeCode| TypeCode::create_sequence(element, 0).unwrap();
    let member = |name, ty: &TypeCode| (name, ty.clone());
    let open_a =
        TypeCode::create_struct("IDL:A:1.0", "A", &[member("b", &b), member("bs", &many(&b))]).unwrap();
    let open_b = TypeCode::create_struct("IDL:B:1.0", "B", &[member("x", &many(&a))]).unwrap();
    let group = TypeCode::create_group(&[open_a.clone(), open_b.clone(), many(&a)]).unwrap();
    let [closed_a, closed_b, list] = &group[..] else { panic!("the group has three types") };
    assert_eq!(closed_a.member_type(0).as_ref(), Ok(closed_b));
    assert_eq!(closed_b.member_type(0).unwrap().content_type().as_ref(), Ok(closed_a));
    assert_eq!(list.content_type().as_ref(), Ok(closed_a));
    // Equal to the type created around the other one.
    let inner = TypeCode::create_struct("IDL:B:1.0", "B", &[member("x", &many(&a))]).unwrap();
    let nested =
        TypeCode::create_struct("IDL:A:1.0", "A", &[member("b", &inner), member("bs", &many(&inner))])
            .unwrap();
    assert_eq!(closed_a, &nested);
    let bytes = bytes_of(closed_a, BIG, 0);
    assert_eq!(&Reader::new(&bytes, BIG).get::<TypeCode>().unwrap(), closed_a);
    // Placeholders for other types stay.
    let left = TypeCode::create_group(&[open_a]).unwrap();
    assert_eq!(left[0].member_type(0).unwrap().kind(), TcKind::Null);
    assert_eq!(TypeCode::create_group(&[]), Ok(Vec::new()));
    // Types A and B that contain each other have no finite values.
    let endless = TypeCode::create_struct("IDL:B:1.0", "B", &[member("a", &a)]).unwrap();
    let around = TypeCode::create_struct("IDL:A:1.0", "A", &[member("b", &b)]).unwrap();
    assert_eq!(TypeCode::create_group(&[around, endless]), Err(BadType::Recursion));
}

#[test]
fn a_walk_looks_at_each_type_once() {
    // A struct whose 10,000 members are all one recursive type.
    let mut bytes = Vec::new();
    Writer::continuing(&mut bytes, 0, BIG).put(&TypeCode::of(&TC_TREE)).unwrap();
    let tree = read(&bytes).unwrap();
    let members: Vec<(&str, TypeCode)> = (0..10_000).map(|_| ("", tree.clone())).collect();
    let many = TypeCode::create_struct("", "", &members).unwrap();
    let mut walk = TypeWalk::of(&many);
    let mut kinds = Vec::new();
    while let Some((ty, ())) = walk.next_type() {
        kinds.push(ty.kind());
        walk.add_parts(&ty, ());
        assert!(walk.len() <= 6);
    }
    use TcKind::{Alias, Sequence, String, Struct};
    assert_eq!(kinds, [Struct, Struct, String, Sequence, Alias, Sequence]);
    let mut walk = TypeWalk::default();
    [1, 2, 1].iter().for_each(|note| walk.add(&tree, *note));
    assert_eq!(walk.len(), 2);
    assert!(!walk.is_empty());
}
