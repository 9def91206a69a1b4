//! The samples of `ValueAnys` in `idl/values.idl`: anys with values, under names that all peers know.

use ironorb::generated::{Abstract, ValueBase, ValueType};
use ironorb::{Any, Link, Value};

use crate::interop::*;
use crate::suite::{length, ring};

/// An any of the sample, or `None` for an unknown name.
pub fn make(sample: &str) -> Option<Any> {
    SAMPLES.iter().find(|known| known.name == sample).map(|known| (known.make)())
}

/// Checks that an any holds the sample. The error says what is wrong.
pub fn check(sample: &str, any: &Any) -> Result<(), String> {
    let known = SAMPLES.iter().find(|known| known.name == sample).ok_or("the sample is unknown")?;
    let expected = (known.make)();
    if !any.type_code().equivalent(expected.type_code()) {
        return Err(format!("its type is {} for {}", any.type_code(), expected.type_code()));
    }
    (known.check)(any)
}

/// The names of all samples.
pub fn names() -> impl Iterator<Item = &'static str> {
    SAMPLES.iter().map(|sample| sample.name)
}

struct Sample {
    name: &'static str,
    make: fn() -> Any,
    check: fn(&Any) -> Result<(), String>,
}

const SAMPLES: &[Sample] = &[
    Sample { name: "point", make: || any(&Some(point())), check: |any| state_is(any, &*point()) },
    Sample { name: "null_point", make: || any(&None::<Value<Point>>), check: is_null::<Point> },
    Sample { name: "spot", make: || any(&Some(spot())), check: |any| state_is(any, &*spot()) },
    Sample {
        name: "point3",
        make: || any(&Some(Value::new(point3()))),
        check: |any| state_is(any, &point3()),
    },
    Sample {
        name: "spot_as_point",
        make: || any(&Some(spot().upcast::<Point>())),
        check: |any| {
            let found: Option<Value<Point>> = extract(any)?;
            let found = found.ok_or("it is null")?.downcast::<Spot>().ok_or("it is no Spot any more")?;
            expect_equal(&*found, &*spot())
        },
    },
    Sample {
        name: "boxed_string",
        make: || any(&Some(Value::new(BoxedString("boxed".to_owned())))),
        check: |any| state_is(any, &BoxedString("boxed".to_owned())),
    },
    Sample {
        name: "boxed_longs",
        make: || any(&Some(Value::new(BoxedLongs(vec![1, 2, 3])))),
        check: |any| state_is(any, &BoxedLongs(vec![1, 2, 3])),
    },
    Sample {
        name: "boxed_bin",
        make: || any(&Some(Value::new(BoxedBin(BIN)))),
        check: |any| state_is(any, &BoxedBin(BIN)),
    },
    Sample { name: "null_box", make: || any(&None::<Value<BoxedString>>), check: is_null::<BoxedString> },
    Sample {
        name: "pair",
        make: || {
            let point = point();
            any(&PointPair { first: Link::from(&point), second: Link::from(&point) })
        },
        check: |any| {
            let found: PointPair = extract(any)?;
            let (first, second) = (found.first.get(), found.second.get());
            twice(first, second, &*point())
        },
    },
    Sample {
        name: "points",
        make: || {
            let point = point();
            let points: PointSeq = vec![Link::from(&point), Link::null(), Link::from(&point)];
            Any::with_type(&TC_POINT_SEQ, &points).expect("the sample is a value of its type")
        },
        check: |any| {
            let found: PointSeq = any.extract_as(&TC_POINT_SEQ).map_err(|e| format!("{any:?}: {e}"))?;
            match &found[..] {
                [first, second, third] if second.is_null() => twice(first.get(), third.get(), &*point()),
                _ => Err(format!("{} points", found.len())),
            }
        },
    },
    Sample {
        name: "ring",
        make: || any(&Some(ring(2))),
        check: |any| {
            let found: Option<Value<Cell>> = extract(any)?;
            match length(found.as_ref()) {
                2 => Ok(()),
                other => Err(format!("a ring of {other}")),
            }
        },
    },
    Sample {
        name: "account",
        make: || any(&Some(Value::new(account()))),
        check: |any| state_is(any, &account()),
    },
    Sample {
        name: "parcel",
        make: || any(&Some(Value::new(parcel()))),
        check: |any| {
            let found: Option<Value<Parcel>> = extract(any)?;
            let found = found.ok_or("it is null")?;
            expect_equal(&found.base, &*point())?;
            let plain = (&*found.label, &found.weights[..], found.inner.is_null());
            expect_equal(&plain, &("parcel", &[0.5][..], true))?;
            match &found.contents[..] {
                [first, second] => {
                    let (first, second) = (first.get(), second.get());
                    twice(first.and_then(|p| p.downcast()), second.and_then(|p| p.downcast()), &*spot())
                }
                contents => Err(format!("{} points", contents.len())),
            }
        },
    },
    Sample {
        name: "card",
        make: || any(&Abstract::<DescribableRef>::from(&Value::new(card()))),
        check: |any| {
            let found: Abstract<DescribableRef> = extract(any)?;
            let found = found.value().and_then(|value: Value<dyn ValueBase>| value.downcast::<Card>());
            expect_equal(&*found.ok_or("it is no Card")?, &card())
        },
    },
    Sample {
        name: "nobody",
        make: || any(&Abstract::<DescribableRef>::Nil),
        check: |any| {
            let found: Abstract<DescribableRef> = extract(any)?;
            if found.is_nil() { Ok(()) } else { Err("it is not nil".to_owned()) }
        },
    },
];

const BIN: BinStruct = BinStruct { s: 1, c: b'b', l: 2, o: 3, d: 4.5 };

fn point() -> Value<Point> {
    Value::new(Point { x: 1, y: -2 })
}

fn spot() -> Value<Spot> {
    Value::new(Spot { base: Point { x: 1, y: -2 }, color: "blue".to_owned() })
}

fn point3() -> Point3 {
    Point3 { base: Point { x: 1, y: -2 }, depth: 3 }
}

fn account() -> Account {
    Account { owner: "me".to_owned(), balance: -5, level: 200 }
}

fn card() -> Card {
    Card { line: "line".to_owned() }
}

fn parcel() -> Parcel {
    let spot = spot().upcast::<Point>();
    Parcel {
        base: Point { x: 1, y: -2 },
        label: "parcel".to_owned(),
        weights: vec![0.5],
        inner: Link::null(),
        contents: vec![Link::from(&spot), Link::from(&spot)],
    }
}

fn any<T: ironorb::generated::Typed + ironorb::giop::Marshal>(value: &T) -> Any {
    Any::new(value).expect("the sample is a value of its type")
}

fn extract<T: ironorb::generated::Typed + ironorb::giop::Unmarshal>(any: &Any) -> Result<T, String> {
    any.extract().map_err(|e| format!("{any:?} cannot be extracted: {e}"))
}

/// Checks that the any holds a value of exactly this type, with this state.
fn state_is<T: ValueType + PartialEq + std::fmt::Debug>(any: &Any, expected: &T) -> Result<(), String> {
    let found: Option<Value<T>> = extract(any)?;
    expect_equal(&*found.ok_or("it is null")?, expected)
}

fn is_null<T: ValueType>(any: &Any) -> Result<(), String> {
    let found: Option<Value<T>> = extract(any)?;
    if found.is_none() { Ok(()) } else { Err("it is not null".to_owned()) }
}

/// Checks that both anys hold one value with this state.
fn twice<T: ValueType + PartialEq + std::fmt::Debug>(
    first: Option<Value<T>>,
    second: Option<Value<T>>,
    expected: &T,
) -> Result<(), String> {
    let (first, second) = first.zip(second).ok_or("there is no value")?;
    if !first.ptr_eq(&second) {
        return Err("one value has become two".to_owned());
    }
    expect_equal(&*first, expected)
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} is not {expected:?}")) }
}
