//! Cases of valuetypes: plain, inherited, truncated, null, shared, cyclic, chunked, boxed.

use std::fmt::Debug;

use ironorb::generated::ValueBase;
use ironorb::giop::value::ValueType;
use ironorb::{Any, Link, SystemException, Value, ValueGraph};

use super::parts::part;
use super::runner::Cases;
use super::values::*;
use crate::interop::*;
use crate::suite::{TicketOffice, length, ring};

type Echoed<T> = Result<(Option<Value<T>>, Option<Value<T>>, Option<Value<T>>), SystemException>;

/// Echoes a value, null and back, and compares states.
fn echo<T: ValueType + PartialEq + Debug + Clone>(
    cases: &mut Cases<'_>,
    name: &str,
    state: T,
    call: impl Fn(&SuiteRef, Option<&Value<T>>, Option<&Value<T>>) -> Echoed<T>,
) {
    cases.run(name, |suite| {
        let value = Value::new(state.clone());
        let (result, inout, out) = call(suite, Some(&value), None).unwrap();
        assert_eq!(*result.unwrap(), state);
        assert_eq!(*inout.unwrap(), state);
        assert!(out.is_none(), "null came back as {out:?}");
        let (result, inout, out) = call(suite, None, Some(&value)).unwrap();
        assert!(result.is_none() && inout.is_none(), "null came back as {result:?}");
        assert_eq!(*out.unwrap(), state);
    });
}

pub(super) fn values(cases: &mut Cases<'_>) {
    let values = |suite: &SuiteRef| part::<ValuesRef>(suite, "values");
    let point = Point { x: 1, y: -2 };
    let spot = Spot { base: point.clone(), color: "blue".to_owned() };
    echo(cases, "value/echo_point", point.clone(), |s, x, y| values(s).echo_point(x, y));
    echo(cases, "value/echo_spot", spot.clone(), |s, x, y| values(s).echo_spot(x, y));
    let account = Account { owner: "me".to_owned(), balance: -5, level: 200 };
    echo(cases, "value/echo_account", account, |s, x, y| values(s).echo_account(x, y));
    let tag = Tag { text: "label".to_owned(), size: 2.5 };
    echo(cases, "value/echo_tag", tag.clone(), |s, x, y| values(s).echo_tag(x, y));
    let mixed = Mixed {
        tag: 9,
        amount: 0.25,
        text: "mixed".to_owned(),
        numbers: vec![1, 2, 3],
        bin: bin(4),
        choice: ByLong::Number { label: 2, value: 7 },
        holder: None,
        tint: Color::Green,
        extra: Any::new(&5_i32).unwrap(),
    };
    echo(cases, "value/echo_mixed", mixed, |s, x, y| values(s).echo_mixed(x, y));
    cases.run("value/derived", |suite| {
        let hot = HotSpot { base: spot.clone(), heat: 36.6 };
        let sent = Value::new(hot.clone()).upcast::<Point>();
        let (result, ..) = values(suite).echo_point(Some(&sent), None).unwrap();
        assert_eq!(*result.unwrap().downcast::<HotSpot>().expect("it is one still"), hot);
    });
    cases.run("value/kind_of", |suite| {
        let values = values(suite);
        assert_eq!(values.kind_of(None).unwrap(), "");
        let sent = Value::new(spot.clone()).upcast::<Point>();
        assert_eq!(values.kind_of(Some(&sent)).unwrap(), "IDL:ironorb.example/interop/Spot:1.0");
        assert_eq!(values.sum_of(Some(&sent)).unwrap(), -1);
    });
    cases.run("value/truncated_by_them", |suite| {
        let secret = Secret { base: spot.clone(), code: 1 };
        let sent = Value::new(secret).upcast::<Point>();
        let kind = values(suite).kind_of(Some(&sent)).unwrap();
        assert_eq!(kind, "IDL:ironorb.example/interop/Spot:1.0");
        assert_eq!(values(suite).sum_of(Some(&sent)).unwrap(), -1);
    });
    cases.run("value/truncated_by_us", |suite| {
        let got = values(suite).secret(3, 4).unwrap().unwrap();
        assert_eq!((got.base.x, got.base.y, &*got.color), (3, 4, "red"));
    });
    cases.run("value/shared", |suite| {
        let (a, b) = (Value::new(point.clone()), Value::new(point.clone()));
        let values = values(suite);
        assert!(values.same_point(Some(&a), Some(&a)).unwrap());
        assert!(!values.same_point(Some(&a), Some(&b)).unwrap());
        let pair = PointPair { first: Link::from(&a), second: Link::from(&a) };
        let (result, inout, out) = values.echo_point_pair(&pair, &PointPair::default()).unwrap();
        for pair in [result, inout] {
            assert!(pair.first.get().unwrap().ptr_eq(&pair.second.get().unwrap()), "no longer shared");
        }
        assert!(out.first.is_null() && out.second.is_null());
    });
    cases.run("value/tree", |suite| {
        let leaf = |label: &str| Value::new(Twig { label: label.to_owned(), ..Twig::default() });
        let (left, right) = (leaf("left"), leaf("right"));
        let root = Twig { label: "root".to_owned(), left: (&left).into(), right: (&right).into() };
        let (result, ..) = values(suite).echo_twig(Some(&Value::new(root)), None).unwrap();
        let result = result.unwrap();
        assert_eq!(result.left.get().unwrap().label, "left");
        assert_eq!(result.right.get().unwrap().label, "right");
        assert!(result.left.get().unwrap().left.is_null());
    });
    cases.run("value/sequence", |suite| {
        let cell = Value::new(Cell { number: 5, next: Link::null() });
        let x = [Link::from(&cell), Link::null(), Link::from(&cell)];
        let (result, _, out) = values(suite).echo_cells(&x, &[]).unwrap();
        assert_eq!(result.len(), 3);
        assert!(result[0].get().unwrap().ptr_eq(&result[2].get().unwrap()), "no longer shared");
        assert!(result[1].is_null() && out.is_empty());
    });
    cases.run("value/union", |suite| {
        let sent = PointOrNumber::Place(Link::from(&Value::new(point.clone())));
        let (result, ..) = values(suite).echo_point_or_number(&sent, &PointOrNumber::Number(1)).unwrap();
        match result {
            PointOrNumber::Place(link) => assert_eq!(*link.get().unwrap(), point),
            other => panic!("{other:?}"),
        }
    });
    cases.run("value/cycle", |suite| {
        let values = values(suite);
        for count in [1, 2, 5, 300] {
            assert_eq!(values.length_of(Some(&ring(count))).unwrap(), count);
            assert_eq!(length(values.ring(count).unwrap().as_ref()), count);
            let (result, inout, _) = values.echo_cell(Some(&ring(count)), None).unwrap();
            assert_eq!((length(result.as_ref()), length(inout.as_ref())), (count, count));
        }
        let chain = Value::new(Cell { number: 1, next: Link::null() });
        assert_eq!(values.length_of(Some(&chain)).unwrap(), -1);
        assert_eq!(values.length_of(None).unwrap(), 0);
    });
    cases.run("value/raise_spoilt", |suite| {
        match values(suite).raise_spoilt(Some(&Value::new(point.clone()))) {
            Err(values::RaiseSpoiltError::Spoilt(e)) => assert_eq!(*e.where_.get().unwrap(), point),
            other => panic!("{other:?}"),
        }
    });
    cases.run("value/operations", |suite| {
        let tag = Value::new(tag.clone());
        assert_eq!(values(suite).label_of(Some(&tag)).unwrap(), "label");
        let measured = tag.upcast::<dyn Measured>();
        assert_eq!(values(suite).measure_of(Some(&measured)).unwrap(), 2.5);
    });
    cases.run("value/as_object", |suite| {
        let object = values(suite).object_of(Some(&Value::new(tag.clone()))).unwrap();
        assert_eq!(object.unwrap().label().unwrap(), "label");
    });
    cases.run("value/initialiser", |suite| {
        let ticket = TicketOffice.issue(7, "you").unwrap();
        assert_eq!(values(suite).face_of(Some(&ticket)).unwrap(), "7 for you");
        let (result, ..) = values(suite).echo_ticket(Some(&ticket), None).unwrap();
        assert_eq!(result.unwrap().face().unwrap(), "7 for you");
    });
    cases.run("value/base/pass", |suite| {
        let spot: Value<dyn ValueBase> = Value::new(spot.clone()).upcast();
        let result = values(suite).pass_base(Some(&spot)).unwrap().unwrap();
        assert_eq!(result.downcast::<Spot>().unwrap().color, "blue");
        assert!(values(suite).pass_base(None).unwrap().is_none());
    });
    cases.run("value/base/pass_box", |suite| {
        let boxed: Value<dyn ValueBase> = Value::new(BoxedString("boxed".to_owned())).upcast();
        let result = values(suite).pass_base(Some(&boxed)).unwrap().unwrap();
        assert_eq!(result.downcast::<BoxedString>().unwrap().0, "boxed");
    });
    cases.run("value/base/member", |suite| {
        for held in [Link::from(&Value::new(spot.clone())), Link::null()] {
            let anything = Value::new(Anything { held: held.clone() });
            let (result, ..) = values(suite).echo_anything(Some(&anything), None).unwrap();
            let found =
                result.unwrap().held.get().and_then(|held: Value<dyn ValueBase>| held.downcast::<Spot>());
            assert_eq!(found.map(|spot| spot.color.clone()), held.get().map(|_| "blue".to_owned()));
        }
    });
}

/// Values in chunks, one within the other.
pub(super) fn chunks(cases: &mut Cases<'_>) {
    let values = |suite: &SuiteRef| part::<ValuesRef>(suite, "values");
    let spot = || Spot { base: Point { x: 3, y: 4 }, color: "blue".to_owned() };
    let parcel = |label: &str, weights: usize| Parcel {
        base: Point { x: 1, y: 2 },
        label: label.to_owned(),
        weights: doubles(weights),
        inner: Link::null(),
        contents: Vec::new(),
    };
    cases.run("value/chunks/long", |suite| {
        let sent = parcel(&"l".repeat(9000), 4000);
        let value = Value::new(sent.clone()).upcast::<Point>();
        let (result, inout, out) = values(suite).echo_point(Some(&value), None).unwrap();
        for found in [result, inout] {
            assert!(*found.unwrap().downcast::<Parcel>().expect("a Parcel") == sent);
        }
        assert!(out.is_none());
    });
    cases.run("value/chunks/nested", |suite| {
        let mut sent = parcel("outermost", 1);
        for depth in 0..20 {
            let inner = Value::new(sent);
            sent = parcel(&format!("level {depth}"), depth);
            sent.contents = vec![Link::from(&Value::new(spot())), Link::from(&inner), Link::null()];
            sent.inner = Link::from(&inner);
        }
        let (result, ..) = values(suite).echo_parcel(Some(&Value::new(sent)), None).unwrap();
        let mut at = result.unwrap();
        for depth in (0..20).rev() {
            assert_eq!((&*at.label, &at.weights), (&*format!("level {depth}"), &doubles(depth)));
            assert_eq!(*at.contents[0].get().unwrap().downcast::<Spot>().expect("a Spot"), spot());
            let inner = at.inner.get().unwrap();
            assert!(at.contents[1].get().unwrap().ptr_eq(&inner.upcast::<Point>()), "no longer shared");
            assert!(at.contents[2].is_null());
            at = inner;
        }
        assert_eq!(at.label, "outermost");
    });
    cases.run("value/chunks/cycle", |suite| {
        let mut graph = ValueGraph::new();
        let place = graph.reserve::<Parcel>();
        let itself = Parcel { inner: graph.link(place), ..parcel("itself", 3) };
        graph.fill(place, itself).unwrap();
        let (result, ..) = values(suite).echo_parcel(Some(&graph.finish(place).unwrap()), None).unwrap();
        let result = result.unwrap();
        assert!(result.inner.get().unwrap().ptr_eq(&result), "no longer a cycle");
    });
    cases.run("value/chunks/kinds", |suite| {
        let secret = Secret { base: spot(), code: 1 };
        let sealed = Sealed { base: parcel("sealed", 2), treasure: Link::from(&Value::new(spot())) };
        let hot = HotSpot { base: spot(), heat: 1.5 };
        let points = [
            Link::from(&Value::new(secret.clone())),
            Link::from(&Value::new(sealed)),
            Link::null(),
            Link::from(&Value::new(hot)),
            Link::from(&Value::new(secret)),
            Link::from(&Value::new(Point { x: 1, y: 2 })),
        ];
        let id = |name: &str| format!("IDL:ironorb.example/interop/{name}:1.0");
        let expected = ["Spot", "Parcel", "", "HotSpot", "Spot", "Point"];
        let expected = expected.map(|name| if name.is_empty() { String::new() } else { id(name) });
        assert_eq!(values(suite).kinds_of(&points).unwrap(), expected.join(" "));
    });
    cases.run("value/chunks/cut_off", |suite| {
        let treasure = Value::new(Point { x: 20, y: 22 });
        let sealed = Sealed { base: parcel("sealed", 2), treasure: Link::from(&treasure) };
        let sealed = Value::new(sealed).upcast::<Parcel>();
        assert_eq!(values(suite).sum_of_second(Some(&sealed), Some(&treasure)).unwrap(), 42);
    });
}

pub(super) fn boxes(cases: &mut Cases<'_>) {
    let boxes = |suite: &SuiteRef| part::<BoxesRef>(suite, "boxes");
    let (text, long) = (BoxedString("boxed".to_owned()), BoxedLong(-7));
    let (longs, bin) = (BoxedLongs(vec![1, 2, 3]), BoxedBin(bin(5)));
    echo(cases, "box/echo_string", text.clone(), |s, x, y| boxes(s).echo_boxed_string(x, y));
    echo(cases, "box/echo_long", long.clone(), |s, x, y| boxes(s).echo_boxed_long(x, y));
    echo(cases, "box/echo_longs", longs.clone(), |s, x, y| boxes(s).echo_boxed_longs(x, y));
    echo(cases, "box/echo_bin", bin.clone(), |s, x, y| boxes(s).echo_boxed_bin(x, y));
    cases.run("box/pass", |suite| {
        let boxes = boxes(suite);
        assert_eq!(*boxes.pass_boxed_string(Some(&Value::new(text.clone()))).unwrap().unwrap(), text);
        assert_eq!(*boxes.pass_boxed_long(Some(&Value::new(long.clone()))).unwrap().unwrap(), long);
        assert_eq!(*boxes.pass_boxed_longs(Some(&Value::new(longs.clone()))).unwrap().unwrap(), longs);
        assert_eq!(*boxes.pass_boxed_bin(Some(&Value::new(bin.clone()))).unwrap().unwrap(), bin);
        assert!(boxes.pass_boxed_string(None).unwrap().is_none());
    });
}

/// Boxes that are members of values.
pub(super) fn boxed_members(cases: &mut Cases<'_>) {
    let values = |suite: &SuiteRef| part::<ValuesRef>(suite, "values");
    let text = || Value::new(BoxedString("name".to_owned()));
    let sizes = Value::new(BoxedLongs(vec![4, 5]));
    cases.run("box/members", |suite| {
        let crated = Crate { name: Link::from(&text()), again: Link::null(), sizes: Link::from(&sizes) };
        let (result, inout, out) = values(suite).echo_crate(Some(&Value::new(crated)), None).unwrap();
        for found in [result, inout] {
            let found = found.unwrap();
            assert_eq!(found.name.get().unwrap().0, "name");
            assert_eq!(found.sizes.get().unwrap().0, [4, 5]);
            assert!(found.again.is_null());
        }
        assert!(out.is_none());
    });
    cases.run("box/shared", |suite| {
        let name = text();
        let crated = Crate { name: Link::from(&name), again: Link::from(&name), sizes: Link::null() };
        let (result, ..) = values(suite).echo_crate(Some(&Value::new(crated)), None).unwrap();
        let found = result.unwrap();
        assert_eq!(found.name.get().unwrap().0, "name");
        assert!(found.name.get().unwrap().ptr_eq(&found.again.get().unwrap()), "no longer shared");
    });
}
