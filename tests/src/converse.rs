//! Calls of clients to an object of the interface `Everything`, for objects of every kind and place.

use ironorb::dynamic::{self, DynamicError, Request};
use ironorb::{
    Any, Context, Link, MinorCode, ObjectRef, SystemExceptionKind, TypeDef, TypedRef, Value, Version, WString,
};

use crate::dynamics::{
    Base, Choice, Colour, Everything, EverythingRef, Node, Odd, Point, Shape, everything as errors,
};
use crate::eventually;
use crate::everything::{everything, refused};

/// Calls every operation with generated stubs and checks the results. They do not depend on the kind of
/// servant.
///
/// `knows_itself`: the server passes on references to the object in the form in which it knows them.
///
/// # Panics
///
/// When a result is wrong.
pub fn converse_statically(object: &ObjectRef, version: Version, knows_itself: bool) {
    let everything: EverythingRef = object.narrow().unwrap().expect("it has the interface");
    let calls = everything.calls().unwrap();
    everything.nothing().unwrap();
    assert_eq!(everything.calls().unwrap(), calls + 1);
    everything.set_label("a label").unwrap();
    assert_eq!(everything.label().unwrap(), "a label");
    assert_eq!(everything.add(20, 22).unwrap(), 42);
    let (turned, chosen, something, count) = everything.turn(&shape(), &Choice::Number(17), 5).unwrap();
    assert_eq!((turned.points[0].x, turned.tint, count), (4.0, Colour::Blue, -5));
    assert_eq!(chosen, Choice::Text("17".to_owned()));
    assert_eq!(something.extract::<Vec<Point>>().unwrap(), shape().points);
    assert_eq!(numbers_of(everything.reversed(list(&[1, 2, 3]).as_ref()).unwrap()), [3, 2, 1]);
    let (own, same) = everything.myself(Some(&everything)).unwrap();
    assert_eq!(same, knows_itself);
    assert!(!knows_itself || own.unwrap() == everything);
    if version > Version::V1_0 {
        assert_eq!(everything.sum(b'!', "abc", &[1, 2], &shape().points, "żółw").unwrap(), 55.5);
    }
    let data: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
    assert!(everything.reflect(&data).unwrap() == data);
    match everything.fail(1) {
        Err(errors::FailError::Odd(odd)) => assert_eq!((odd.why.as_str(), odd.at.x), ("odd", 1.5)),
        other => panic!("{other:?}"),
    }
    match everything.fail(2) {
        Err(errors::FailError::System(e)) => assert_eq!(e, refused()),
        other => panic!("{other:?}"),
    }
    match everything.fail(3) {
        Err(errors::FailError::System(e)) => assert_eq!(e.minor, MinorCode::SERVANT_PANICKED),
        other => panic!("{other:?}"),
    }
    let context = Context::new().with("region", "north").with("colours", "red").with("other", "x");
    assert_eq!(context.enter(|| everything.region("more")).unwrap(), "colours=red region=north more");
    everything.note("noted").unwrap();
    eventually("the oneway arrives", || everything.label().unwrap() == "noted");
    assert!(object.is_a("IDL:dynamics/Base:1.0").unwrap());
    assert!(!object.is_a("IDL:dynamics/Other:1.0").unwrap());
    assert!(!object.non_existent().unwrap());
    assert_eq!(object.repository_id().unwrap(), EverythingRef::REPOSITORY_ID);
    assert_eq!(object.interface().unwrap_err().kind, SystemExceptionKind::IntfRepos);
    assert_eq!(object.component().unwrap(), None);
    match dynamic::call_raw(object, "missing", &|_| Ok(())) {
        Err(e) => {
            assert_eq!((e.kind, e.minor), (SystemExceptionKind::BadOperation, MinorCode::NO_SUCH_OPERATION))
        }
        other => panic!("{other:?}"),
    }
    match dynamic::call_raw(object, "add", &|w| w.put(&1i32)) {
        Err(e) => assert_eq!(e.kind, SystemExceptionKind::Marshal),
        other => panic!("{other:?}"),
    }
}

/// Calls every operation by dynamic invocation and checks the results.
///
/// `knows_itself`: the server passes on references to the object in the form in which it knows them.
///
/// # Panics
///
/// When a result is wrong.
pub fn converse_dynamically(object: &ObjectRef, version: Version, knows_itself: bool) {
    assert!(request(object, "nothing").invoke().unwrap().result().unwrap().is_empty());
    let mut set = request(object, "_set_label");
    set.set(0, "a label").unwrap();
    set.invoke().unwrap();
    let label = request(object, "_get_label").invoke().unwrap();
    assert_eq!(label.result_as::<String>().unwrap(), "a label");
    assert_eq!(label.result().unwrap().extract_str().unwrap(), "a label");

    let mut turn = request(object, "turn");
    turn.set(0, &shape()).unwrap();
    turn.set_any(1, &Any::new(&Choice::Text("four".to_owned())).unwrap()).unwrap();
    turn.set_named("count", &Any::new(&7i32).unwrap()).unwrap();
    let results = turn.invoke().unwrap();
    assert_eq!(results.result_as::<Shape>().unwrap().points[0].x, 4.0);
    assert_eq!(results.out_as::<Choice>(1).unwrap(), Choice::Number(4));
    assert_eq!(results.out_as::<i32>(3).unwrap(), -7);
    let something = results.out_named("something").unwrap().extract::<Any>().unwrap();
    assert_eq!(something.extract::<Vec<Point>>().unwrap(), shape().points);
    let names: Vec<&str> = results.outs().unwrap().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["chosen", "something", "count"]);

    let mut reversed = request(object, "reversed");
    reversed.set(0, &list(&[1, 2, 3])).unwrap();
    let results = reversed.invoke().unwrap();
    assert_eq!(numbers_of(results.result_as().unwrap()), [3, 2, 1]);
    assert_eq!(numbers_of(results.result().unwrap().extract().unwrap()), [3, 2, 1]);

    let mut myself = request(object, "myself");
    myself.set(0, &Some(object.clone())).unwrap();
    let results = myself.invoke().unwrap();
    assert_eq!(results.out_as::<bool>(1).unwrap(), knows_itself);
    let own = results.result_as::<Option<ObjectRef>>().unwrap();
    assert!(!knows_itself || own.as_ref() == Some(object));

    let points = shape().points;
    let numbers = [1, 2];
    let mut sum = request(object, "sum");
    sum.set_any(0, &Any::with_type(&TypeDef::Char, &b'!').unwrap()).unwrap();
    sum.borrow_value(1, "abc").unwrap();
    sum.borrow(2, &numbers).unwrap();
    sum.borrow(3, &points).unwrap();
    sum.set(4, &WString::from("żółw")).unwrap();
    match sum.invoke() {
        Ok(results) => assert_eq!(results.result_as::<f64>().unwrap(), 55.5),
        Err(e) => assert!(version == Version::V1_0, "{e}"),
    }

    let mut fail = request(object, "fail");
    fail.set(0, &1i32).unwrap();
    match fail.invoke() {
        Err(DynamicError::User(odd)) => assert_eq!(odd.extract::<Odd>().unwrap().at.y, -2.0),
        other => panic!("{other:?}"),
    }
    fail.set(0, &2i32).unwrap();
    assert_eq!(fail.invoke().unwrap_err(), DynamicError::System(refused()));
    fail.set(0, &0i32).unwrap();
    fail.invoke().unwrap();

    let mut region = request(object, "region");
    region.set(0, "more").unwrap();
    region.set_context(Context::new().with("region", "south").with("other", "x"));
    assert_eq!(region.invoke().unwrap().result_as::<String>().unwrap(), "region=south more");

    let mut note = request(object, "note");
    note.set(0, "noted").unwrap();
    note.invoke().unwrap();
    let labelled = |text: &str| {
        let mut label = request(object, "_get_label");
        label.invoke().unwrap().result_as::<String>().unwrap() == text
    };
    eventually("the oneway arrives", || labelled("noted"));
    set.set(0, "set without waiting").unwrap();
    set.send_oneway().unwrap();
    eventually("the request arrives", || labelled("set without waiting"));
}

/// A request for an operation of `Everything`.
///
/// # Panics
///
/// When there is no such operation.
pub fn request<'a>(object: &ObjectRef, operation: &str) -> Request<'a> {
    Request::new(object, everything().find(operation).unwrap().clone())
}

/// The shape that the calls send.
pub fn shape() -> Shape {
    let points = (0..5).map(|i| Point { x: f64::from(i), y: 0.5 }).collect();
    Shape { name: "forme é".to_owned(), tint: Colour::Blue, points }
}

/// A linked list of `numbers`.
pub fn list(numbers: &[i32]) -> Option<Value<Node>> {
    let mut list = None;
    for &number in numbers.iter().rev() {
        list = Some(Value::new(Node { number, next: Link::from(list) }));
    }
    list
}

/// The numbers of a linked list.
pub fn numbers_of(list: Option<Value<Node>>) -> Vec<i32> {
    let mut numbers = Vec::new();
    let mut rest = list;
    while let Some(node) = rest {
        numbers.push(node.number);
        rest = node.next.get();
    }
    numbers
}
