//! Generated code compiles without a warning, its values survive CDR in both byte orders and from every
//! alignment, and values that break the IDL are refused.

#![deny(warnings)]

use ironorb::generated as g;
use ironorb::giop::error::MalformedKind;
use ironorb::giop::version::{ByteOrder, Encoding};
use ironorb::giop::{Malformed, Marshal, Misuse, Reader, Unmarshal, Writer};
use proptest::prelude::*;

macro_rules! cases {
    ($($case:ident)*) => {$(
        mod $case {
            include!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/emit/", stringify!($case), "/out.rs"));
        }
    )*};
}

cases! {
    bounds boxes docs enums_constants external external_base file_scope fixed inheritance local_native names operations
    recursion structs unions value_operations values
}

use bounds::bounds::{Choice, Holder};
use recursion::recursion::{Chain, Expr, Tree};
use structs::shapes::{Everything, Outer, Point, Refused, outer};
use unions::unions::{ByBoolean, ByChar, ByColor, ByLong, Color, OnlyDefault, by_long};

fn written<T: Marshal>(value: &T, lead: usize, encoding: Encoding) -> Result<Vec<u8>, Misuse> {
    let mut bytes = vec![0; lead];
    Writer::continuing(&mut bytes, 0, encoding).put(value)?;
    Ok(bytes)
}

fn read<T: Unmarshal>(bytes: &[u8]) -> Result<T, Malformed> {
    Reader::new(bytes, Encoding::NATIVE).get()
}

/// Round trips from every alignment in both orders; each prefix is an error and not a panic.
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

/// UTF-16 text that starts with a byte order mark is its own matter, of the CDR code.
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
fn the_wire_is_as_cdr_has_it() {
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
fn what_breaks_a_bound_is_not_sent() {
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
fn what_breaks_a_bound_is_not_accepted() {
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

/// Code that is written against the trait needs no ORB.
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

/// A reference to a derived interface is one to its bases, also across modules.
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
