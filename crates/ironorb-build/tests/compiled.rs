//! Generated code compiles without warnings. Its values survive CDR in both byte orders and from every
//! alignment. Values that violate the IDL are refused.

#![deny(warnings)]

use ironorb::generated as g;
use ironorb::giop::error::MalformedKind;
use ironorb::giop::version::{ByteOrder, Encoding};
use ironorb::giop::{Malformed, Marshal, Misuse, Reader, Unmarshal, Writer};
use proptest::prelude::*;

macro_rules! cases {
    ($($case:ident)*) => {$(
        pub(crate) mod $case {
            include!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/emit/", stringify!($case), "/out.rs"));
        }
    )*};
}

cases! {
    abstract_interfaces any bounds boxes building_blocks custom_values docs enums_constants external external_base file_scope fixed inheritance letters local_native many_results marshalling names
    operations owned parallel recursion structs timing unions value_operations values
}

use bounds::bounds::{Choice, Holder};
use building_blocks::blocks::{
    self, BOTH, ByByte, BySmall, ByUint8, ByWide, Derived, Header, Marks, One, Rights, Settings, Wide,
};
use recursion::recursion::{Chain, Expr, Tree};
use structs::shapes::{Everything, Nothing, Outer, Point, Refused, Sparse, outer};
use unions::unions::{ByBoolean, ByChar, ByColor, ByLong, Color, OnlyDefault, by_long};

fn written<T: Marshal>(value: &T, lead: usize, encoding: Encoding) -> Result<Vec<u8>, Misuse> {
    let mut bytes = vec![0; lead];
    Writer::continuing(&mut bytes, 0, encoding).put(value)?;
    Ok(bytes)
}

fn read<T: Unmarshal>(bytes: &[u8]) -> Result<T, Malformed> {
    Reader::new(bytes, Encoding::NATIVE).get()
}

/// Checks round trips from every alignment in both byte orders. Each prefix is an error and not a panic.
fn check<T: Marshal + Unmarshal + PartialEq + std::fmt::Debug>(value: &T) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let encoding = Encoding { order, ..Encoding::NATIVE };
        for lead in 0..8 {
            let bytes = written(value, lead, encoding).unwrap();
            assert!(bytes.len() - lead >= T::BYTES_MIN.min(bytes.len()), "BYTES_MIN is a lower bound");
            let mut r = Reader::at(&bytes, lead, encoding);
            assert_eq!(&r.get::<T>().unwrap(), value);
            assert_eq!(r.remaining(), 0);
        }
        let bytes = written(value, 0, encoding).unwrap();
        for cut in 0..bytes.len() {
            assert!(Reader::new(&bytes[..cut], encoding).get::<T>().is_err(), "cut at {cut}");
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    "[^\u{0}]{0,12}"
}

/// UTF-16 text without a byte order mark at its start, which the tests of the CDR code cover.
fn wide() -> impl Strategy<Value = String> {
    "[^\u{0}\u{feff}]{0,12}"
}

fn float() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("a NaN equals nothing", |x| !x.is_nan())
}

fn point() -> impl Strategy<Value = Point> {
    (float(), float()).prop_map(|(x, y)| Point { x, y })
}

fn everything() -> impl Strategy<Value = Everything> {
    let numbers = (
        any::<i16>(),
        any::<u16>(),
        any::<i32>(),
        any::<u32>(),
        any::<i64>(),
        any::<u64>(),
        float(),
        any::<u128>(),
    );
    let others = (
        any::<u8>(),
        any::<char>().prop_filter("a byte order mark", |&c| c != '\u{feff}'),
        any::<bool>(),
        text(),
        wide(),
        prop::collection::vec(text(), 0..4),
        point(),
        prop::collection::vec(any::<u8>(), 0..20),
        any::<[u8; 16]>(),
    );
    (numbers, others).prop_map(
        |((s, us, l, ul, ll, ull, d, ld), (c, wc, b, text, wide, list, at, raw, key))| Everything {
            s,
            us,
            l,
            ul,
            ll,
            ull,
            f: l as f32,
            d,
            ld: g::LongDouble::from_bits(ld),
            c,
            wc,
            b,
            o: c,
            text,
            wide: wide.into(),
            list,
            cells: [[d, 0.5, f64::from(l)], [f64::from(ul), -d, 1e300]],
            at,
            anything: None,
            raw,
            key,
            many: [c; 40],
        },
    )
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = text().prop_map(|label| Tree { label, children: Vec::new() });
    leaf.prop_recursive(5, 24, 4, |inner| {
        (text(), prop::collection::vec(inner, 0..4)).prop_map(|(label, children)| Tree { label, children })
    })
}

fn by_long() -> impl Strategy<Value = ByLong> {
    let is_default = |label: &i32| ![1, 2, -3, 5].contains(label);
    prop_oneof![
        (prop::sample::select(vec![1, 2, -3]), any::<i32>())
            .prop_map(|(label, value)| ByLong::Number { label, value }),
        (any::<i32>().prop_filter("", is_default), text())
            .prop_map(|(label, value)| ByLong::Text { label, value }),
        any::<[i32; 2]>().prop_map(|[first, second]| ByLong::Both(by_long::Pair { first, second })),
    ]
}

fn holder() -> impl Strategy<Value = Holder> {
    let code = || "[^\u{0}]{0,5}";
    let codes = move || prop::collection::vec(code(), 0..=3);
    let cells = prop::collection::vec(prop::collection::vec("[a-z]{0,2}", 0..4), 0..4);
    (code(), "[a-zé€]{0,4}", prop::collection::vec(any::<u8>(), 0..=8), codes(), codes(), cells).prop_map(
        |(tag, wide, raw, tags, more, cells)| Holder {
            tag,
            wide: wide.into(),
            raw,
            tags: tags.clone(),
            both: [more, tags],
            cells,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn structs_survive(value in everything()) {
        check(&value);
    }

    #[test]
    fn nested_structs_survive(tag: u8, at in point(), others in prop::collection::vec(point(), 0..5)) {
        let inner = |at| outer::Inner { tag, at };
        check(&Outer {
            within: inner(at),
            hand: outer::Side::Right,
            others: others.into_iter().map(inner).collect(),
        });
        check(&Refused { why: "no".to_owned(), at });
    }

    #[test]
    fn bounded_values_survive(value in holder()) {
        check(&value);
    }

    #[test]
    fn unions_survive(value in by_long(), number: i32, line in float()) {
        check(&value);
        check(&ByBoolean::No(number));
        check(&ByBoolean::Yes(number.to_string()));
        check(&ByColor::R(number));
        check(&ByColor::Unlisted { label: Color::Green });
        check(&ByChar::Line(line));
        check(&ByChar::Unlisted { label: b'b' });
        check(&OnlyDefault::Value { label: number as i16, value: 7 });
    }

    #[test]
    fn recursive_values_survive(value in tree(), number in float()) {
        check(&value);
        check(&Chain { value: number, next: vec![Chain { value: 1.0, next: Vec::new() }] });
        check(&Expr::Sum(vec![Expr::Literal(1), Expr::Sum(vec![Expr::Unlisted { label: 9 }])]));
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read::<Everything>(&bytes);
        let _ = read::<Holder>(&bytes);
        let _ = read::<Choice>(&bytes);
        let _ = read::<ByLong>(&bytes);
        let _ = read::<Tree>(&bytes);
        let _ = read::<Expr>(&bytes);
    }
}

#[test]
fn the_bytes_are_those_of_cdr() {
    let encoding = Encoding { order: ByteOrder::Big, ..Encoding::NATIVE };
    let value = ByLong::Both(by_long::Pair { first: 1, second: -1 });
    assert_eq!(written(&value, 0, encoding).unwrap(), [0, 0, 0, 5, 0, 0, 0, 1, 255, 255, 255, 255]);
    assert_eq!(written(&Color::Blue, 0, encoding).unwrap(), [0, 0, 0, 2]);
    let inner = outer::Inner { tag: b'x', at: Point { x: 1.0, y: 0.0 } };
    let mut expected = vec![b'x', 0, 0, 0, 0, 0, 0, 0, 0x3F, 0xF0];
    expected.resize(24, 0);
    assert_eq!(written(&inner, 0, encoding).unwrap(), expected);
}

#[test]
fn values_beyond_a_bound_are_not_sent() {
    let refused = |change: fn(&mut Holder)| {
        let mut holder = Holder::default();
        change(&mut holder);
        written(&holder, 0, Encoding::NATIVE).unwrap_err()
    };
    let beyond = |bound, length| Misuse::BoundExceeded { bound, length };
    assert_eq!(refused(|h| h.tag = "sixsix".to_owned()), beyond(5, 6));
    assert_eq!(refused(|h| h.wide = "fünf5".into()), beyond(4, 5));
    assert_eq!(refused(|h| h.raw = vec![0; 9]), beyond(8, 9));
    assert_eq!(refused(|h| h.tags = vec![String::new(); 4]), beyond(3, 4));
    assert_eq!(refused(|h| h.tags = vec!["sixsix".to_owned()]), beyond(5, 6));
    assert_eq!(refused(|h| h.both[1] = vec!["sixsix".to_owned()]), beyond(5, 6));
    assert_eq!(refused(|h| h.cells = vec![vec![], vec!["abc".to_owned()]]), beyond(2, 3));
    let choice = Choice::Numbers { label: 2, value: vec![1, 2, 3] };
    assert_eq!(written(&choice, 0, Encoding::NATIVE).unwrap_err(), beyond(2, 3));
    assert!(written(&Holder { tag: "fünf5".to_owned(), ..Holder::default() }, 0, Encoding::NATIVE).is_ok());
}

#[test]
fn values_beyond_a_bound_are_not_accepted() {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
    w.put("sixsix").unwrap();
    assert_eq!(read::<Holder>(&bytes).unwrap_err().kind, MalformedKind::BoundExceeded);

    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
    w.write_i16(3);
    w.put(&vec![1i32, 2, 3]).unwrap();
    assert_eq!(read::<Choice>(&bytes).unwrap_err().kind, MalformedKind::BoundExceeded);
}

#[test]
fn a_label_must_belong_to_its_case() {
    let refused = |value: &dyn Marshal| {
        let mut bytes = Vec::new();
        value.marshal(&mut Writer::new(&mut bytes, Encoding::NATIVE)).unwrap_err()
    };
    assert_eq!(refused(&ByLong::Number { label: 5, value: 0 }), Misuse::WrongLabel);
    assert_eq!(refused(&ByLong::Text { label: 1, value: String::new() }), Misuse::WrongLabel);
    assert_eq!(refused(&ByColor::Unlisted { label: Color::Red }), Misuse::WrongLabel);
    assert_eq!(refused(&ByChar::Edge { label: b'\n', value: 0 }), Misuse::WrongLabel);
    assert_eq!(ByLong::Number { label: -3, value: 0 }.discriminator(), -3);
    assert!(ByBoolean::Yes(String::new()).discriminator());
    assert_eq!(ByColor::B(vec![]).discriminator(), Color::Blue);
}

#[test]
fn numbers_outside_an_enum_are_refused() {
    let bytes = 3u32.to_ne_bytes();
    assert_eq!(read::<Color>(&bytes).unwrap_err().kind, MalformedKind::NoSuchEnumerator);
    assert_eq!(read::<ByColor>(&bytes).unwrap_err().kind, MalformedKind::NoSuchEnumerator);
}

#[test]
fn exceptions_are_errors() {
    use operations::bank::account::TransferError;
    use operations::bank::{Frozen, Insufficient};

    let error = TransferError::from(Insufficient { missing: 3 });
    assert_eq!(error.to_string(), "bank::Insufficient (missing: 3)");
    assert!(std::error::Error::source(&error).unwrap().is::<Insufficient>());
    assert_eq!(TransferError::from(Frozen {}).to_string(), "bank::Frozen");

    let mut bytes = Vec::new();
    let g::Raised::User(id, body) = g::OperationError::raised(&error) else { panic!() };
    assert_eq!(id, "IDL:example.org/bank/Insufficient:1.0");
    body.marshal(&mut Writer::new(&mut bytes, Encoding::NATIVE)).unwrap();
    let mut r = Reader::new(&bytes, Encoding::NATIVE);
    let back = <TransferError as g::OperationError>::from_user_exception(id, &mut r).unwrap();
    assert_eq!(back, Some(error));
    let unknown = <TransferError as g::OperationError>::from_user_exception("IDL:other:1.0", &mut r);
    assert_eq!(unknown, Ok(None));
}

/// A servant compiles and runs without an ORB.
#[test]
fn servants_are_plain_rust() {
    use inheritance::base::{Shape, shape};
    use inheritance::shapes::deep::Sprite;
    use inheritance::shapes::{Movable, MovableRef, Scalable};

    struct Square;
    impl Shape for Square {
        fn name(&self) -> Result<String, g::SystemException> {
            Ok("square".to_owned())
        }
        fn set_name(&self, _value: &str) -> Result<(), g::SystemException> {
            Ok(())
        }
        fn area(&self) -> Result<f64, shape::AreaError> {
            Err(shape::Flat {}.into())
        }
    }
    impl Movable for Square {
        fn move_(&self, _dx: f64, _to: shape::Side) -> Result<(), g::SystemException> {
            Ok(())
        }
    }
    impl Scalable for Square {
        fn scale(&self, _factor: f64) -> Result<(), g::SystemException> {
            Ok(())
        }
    }
    impl Sprite for Square {
        fn draw(
            &self,
            _on: Option<&MovableRef>,
        ) -> Result<String, inheritance::shapes::deep::sprite::DrawError> {
            Ok(self.name()?)
        }
    }
    let sprite: &dyn Sprite = &Square;
    assert_eq!(sprite.draw(None).unwrap(), "square");
    assert_eq!(sprite.area(), Err(shape::AreaError::Flat(shape::Flat {})));
}

/// A reference to a derived interface converts to references to its bases, across modules too.
#[test]
fn references_know_their_bases() {
    use inheritance::base::{Shape, ShapeRef};
    use inheritance::shapes::deep::TagRef;

    fn takes<R: g::RefTo<dyn Shape> + Shape>() {}
    takes::<ShapeRef>();
    takes::<TagRef>();
    let _widen: fn(TagRef) -> ShapeRef = ShapeRef::from;
    let _narrow: fn(external::app::CircleRef) -> external_base::base::ShapeRef = From::from;
}

#[test]
fn the_building_blocks_of_idl_4_survive() {
    let header = Header { version: 7, last: true, offset: -2048 };
    let tail = Wide { version: 1, last: false, offset: 2047, serial: (1 << 40) - 1 };
    let point = blocks::Point { x: 0.5, y: -1.0 };
    let nested = [(blocks::Color::Green, [(7, point), (9, point)].into())];
    check(&Derived {
        small: -128,
        byte: 255,
        e: i64::MIN,
        many: vec![-1, 0, 1],
        some: [-128, 127, 0],
        bytes: vec![1, 2, 3],
        years: [("Ada".to_owned(), 36), (String::new(), -1)].into(),
        these: [("12345".to_owned(), vec![1, 2])].into(),
        deep: nested.into(),
        some_letters: [('€', b'e'), ('a', 0xE9)].into(),
        some_labels: [(u64::MAX, "xy".to_owned())].into(),
        allowed: [("wide".into(), BOTH)].into(),
        head: header,
        tail,
        ..Derived::default()
    });
    check(&Header::default());
    check(&ByByte::Number { label: 2, value: 5 });
    check(&ByByte::Text { label: 0, value: "zero".to_owned() });
    check(&BySmall::Minus(3));
    check(&BySmall::Unlisted { label: -128 });
    check(&ByWide::Euro(1));
    check(&ByWide::Other { label: '𝄞', value: 2 });
    check(&ByUint8::All { label: 200, value: 2 });

    // The fields of a bitset begin at the lowest bit: 7 | last << 3 | offset << 8.
    assert_eq!(written(&header, 0, Encoding::NATIVE).unwrap(), 0x0008_000Fu32.to_ne_bytes());
    let refused = |header: Header| written(&header, 0, Encoding::NATIVE).unwrap_err();
    let wide = Header { version: 8, ..Header::default() };
    assert_eq!(refused(wide), Misuse::BoundExceeded { bound: 3, length: 4 });
    assert!(matches!(refused(Header { offset: 2048, ..header }), Misuse::BoundExceeded { .. }));

    let mut few: blocks::Few = (0..4).map(|n| (n.to_string(), vec![])).collect();
    let derived = |few| Derived { these: few, ..Derived::default() };
    assert!(written(&derived(few.clone()), 0, Encoding::NATIVE).is_err(), "a map of three at most");
    few.clear();
    few.insert("sixsix".to_owned(), vec![]);
    assert!(written(&derived(few), 0, Encoding::NATIVE).is_err(), "a key of five at most");
}

#[test]
fn bitmasks_are_sets_of_flags() {
    assert_eq!(BOTH, Rights::MAY_READ | Rights::MAY_WRITE);
    assert!(BOTH.contains(Rights::MAY_READ) && !Rights::MAY_READ.contains(BOTH));
    assert_eq!(!BOTH, Rights::ALL_OF_IT);
    assert_eq!(BOTH ^ Rights::MAY_READ, Rights::MAY_WRITE);
    assert!((BOTH & Rights::ALL_OF_IT).is_empty());
    let mut rights = Rights::NONE;
    rights.set(Rights::ALL, true);
    rights.set(Rights::MAY_READ, false);
    assert_eq!(rights.0, 0x8002);
    assert_eq!(
        format!("{rights:?} {:?}", Rights(0x11)),
        "Rights(MAY_WRITE | ALL_OF_IT) Rights(MAY_READ | 0x10)"
    );
    assert_eq!(written(&rights, 0, Encoding::NATIVE).unwrap(), 0x8002u16.to_ne_bytes());
    // A bitmask without a bound has 32 bits. A bit without a name is kept.
    assert_eq!(read::<Marks>(&4u32.to_ne_bytes()), Ok(Marks(4)));
}

#[test]
fn default_values_are_those_of_the_idl() {
    let settings = Settings::default();
    assert_eq!((settings.retries, settings.owner.as_str(), settings.enabled), (5, "nobody", true));
    assert_eq!((settings.ratio, settings.paint, settings.comment.as_str()), (0.5, blocks::Color::Green, ""));
    assert_eq!(settings.granted, blocks::Rights::MAY_READ | blocks::Rights::MAY_WRITE);
    assert_eq!((settings.price.to_string().as_str(), &*settings.sign), ("1.50", "\u{20ac}"));
    assert!(settings.third.to_string().starts_with(&format!("0.{}", "3".repeat(32))), "{}", settings.third);
    assert_eq!(settings.least, i32::MIN);
    assert_eq!(One::default().n, 3);
    // Valuetypes and exceptions have the defaults of the IDL too.
    let weighed = blocks::Weighed::default();
    assert_eq!((weighed.base.size, weighed.base.unit.as_str(), weighed.weight), (7, "m", 2.0));
    assert_eq!(blocks::Late::default().seconds, 60);

    // The default of a union is that of its first member.
    assert_eq!(ByBoolean::default(), ByBoolean::Yes(String::new()));
    assert_eq!(ByLong::default(), ByLong::Number { label: 1, value: 0 });
    assert_eq!(ByChar::default(), ByChar::Edge { label: b'a', value: 0 });
    assert_eq!(OnlyDefault::default(), OnlyDefault::Value { label: 0, value: 0 });
    check(&OnlyDefault::default());
    assert_eq!(Choice::default(), Choice::Tag(String::new()));
}

/// IDL 4.2, 7.4.13.4.1: a struct may have no members. Such structs have no bytes, in any number.
#[test]
fn empty_structs_take_no_bytes() {
    let nothing = || vec![Nothing {}; 3];
    let sparse = |deep| Sparse {
        before: Nothing {},
        mark: 7,
        two: [Nothing {}; 2],
        many: nothing(),
        few: nothing(),
        deep,
    };
    let value = sparse(vec![sparse(Vec::new()), sparse(Vec::new())]);
    check(&value);
    let bytes =
        written(&sparse(Vec::new()), 0, Encoding { order: ByteOrder::Big, ..Encoding::NATIVE }).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0]);
    assert_eq!(written(&Nothing {}, 0, Encoding::NATIVE).unwrap(), [0_u8; 0]);
    assert_eq!((Nothing::BYTES_MIN, Sparse::BYTES_MIN), (0, 13));

    let too_many = Sparse { few: vec![Nothing {}; 4], ..sparse(Vec::new()) };
    assert_eq!(written(&too_many, 0, Encoding::NATIVE), Err(Misuse::BoundExceeded { bound: 3, length: 4 }));

    // An `any` keeps the value, and its TypeCode has no members.
    let any = g::Any::new(&value).unwrap();
    assert_eq!(any.extract::<Sparse>().unwrap(), value);
    assert_eq!(g::TypeCode::from(&structs::shapes::TC_NOTHING).member_count(), Ok(0));
}

/// Four bytes can announce elements that would occupy a processor for seconds, or without end when nested.
#[test]
fn elements_without_bytes_are_limited() {
    let kind = |result: Result<Vec<Vec<Nothing>>, Malformed>| result.unwrap_err().kind;
    let lists = |lists: usize, each: u32| {
        let mut bytes = (lists as u32).to_ne_bytes().to_vec();
        (0..lists).for_each(|_| bytes.extend(each.to_ne_bytes()));
        bytes
    };
    assert_eq!(read::<Vec<Nothing>>(&256u32.to_ne_bytes()).unwrap().len(), 256);
    assert_eq!(read::<Vec<Vec<Nothing>>>(&lists(1000, 32)).unwrap().len(), 1000);
    assert_eq!(kind(read(&lists(1, u32::MAX))), MalformedKind::OutOfProportion);
    assert_eq!(kind(read(&lists(1000, 250))), MalformedKind::OutOfProportion);
}

/// The name of a type, or its text if it has none.
fn named(code: &g::TypeCode) -> String {
    code.name().map_or_else(|_| code.to_string(), str::to_owned)
}

/// The description of a type at run time is that of the IDL, not of the Rust type.
#[test]
fn types_are_described_as_in_idl() {
    let text = |def: &'static g::TypeDef| named(&g::TypeCode::from(def));
    let members = |code: &g::TypeCode| -> Vec<String> {
        (0..code.member_count().unwrap())
            .map(|at| format!("{} {}", named(&code.member_type(at).unwrap()), code.member_name(at).unwrap()))
            .collect()
    };
    let everything = g::TypeCode::from(&structs::shapes::TC_EVERYTHING);
    let found = members(&everything);
    for expected in [
        "Metres l",
        "char c",
        "octet o",
        "wchar wc",
        "long double ld",
        "wstring wide",
        "Words list",
        "Matrix cells",
        "Point at",
        "Object anything",
        "sequence<octet> raw",
    ] {
        assert!(found.contains(&expected.to_owned()), "{expected} is not in {found:#?}");
    }
    assert_eq!(g::TypeCode::from(&structs::shapes::TC_METRES).content_type().unwrap().to_string(), "long");

    let by_long = g::TypeCode::from(&unions::unions::TC_BY_LONG);
    assert_eq!(members(&by_long), ["long number", "long number", "long number", "string text", "Pair both"]);
    assert_eq!(by_long.default_index().unwrap(), Some(3));
    let by_color = g::TypeCode::from(&unions::unions::TC_BY_COLOR);
    assert_eq!(named(&by_color.discriminator_type().unwrap()), "Paint");
    assert_eq!(g::TypeCode::from(&unions::unions::TC_COLOR).member_name(2).unwrap(), "blue");

    // Recursive types refer to themselves.
    let tree = g::TypeCode::from(&recursion::recursion::TC_TREE);
    let children = tree.member_type(1).unwrap().content_type().unwrap().content_type().unwrap();
    assert_eq!(children, tree);
    assert_eq!(text(&bounds::bounds::TC_CODE), "Code");
    assert_eq!(text(<g::Seq<g::Str<5>, 3> as g::Typed>::TYPE), "sequence<string<5>, 3>");

    assert_eq!(g::TypeCode::from(&names::type_::TC_FOO_BAR).name().unwrap(), "foo_bar");
    assert_eq!(g::TypeCode::from(&operations::bank::TC_INSUFFICIENT).name().unwrap(), "Insufficient");
    assert_eq!(
        g::TypeCode::from(&operations::bank::TC_ACCOUNT).id().unwrap(),
        "IDL:example.org/bank/Account:1.0"
    );
}
