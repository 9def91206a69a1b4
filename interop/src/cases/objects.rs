//! Cases of objects: attributes, exceptions, references and callbacks.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use ironorb::{CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind, TypedRef};

use super::runner::{Cases, expect_exception};
use super::values::*;
use crate::interop::{self, *};
use crate::process::PEER_TIMEOUT;

const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

pub(super) fn attributes(cases: &mut Cases<'_>) {
    cases.run("attribute/count", |suite| {
        for value in [i32::MIN, 0, i32::MAX] {
            suite.set_count(value).unwrap();
            assert_eq!(suite.count().unwrap(), value);
        }
    });
    cases.run("attribute/low_high", |suite| {
        suite.set_low(-1).unwrap();
        suite.set_high(1).unwrap();
        assert_eq!((suite.low().unwrap(), suite.high().unwrap()), (-1, 1));
    });
    cases.run("attribute/title", |suite| {
        for value in ["a title", "caf\u{e9}", ""] {
            suite.set_title(value).unwrap();
            assert_eq!(suite.title().unwrap(), value);
        }
    });
    cases.run("attribute/tint", |suite| {
        suite.set_tint(Color::InfraRed).unwrap();
        assert_eq!(suite.tint().unwrap(), Color::InfraRed);
    });
    cases.run("attribute/bin", |suite| {
        suite.set_bin(&bin(123)).unwrap();
        assert_eq!(suite.bin().unwrap(), bin(123));
    });
    cases.run("attribute/compound", |suite| {
        suite.set_compound(&variable(9)).unwrap();
        assert_eq!(suite.compound().unwrap(), variable(9));
    });
    cases.run("attribute/numbers", |suite| {
        suite.set_numbers(&longs(100)).unwrap();
        assert_eq!(suite.numbers().unwrap(), longs(100));
    });
    cases.run("attribute/cells", |suite| {
        let cells = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        suite.set_cells(&cells).unwrap();
        assert_eq!(suite.cells().unwrap(), cells);
    });
    cases.run("attribute/choice", |suite| {
        let choice = ByLong::Text { label: 4, value: "chosen".to_owned() };
        suite.set_choice(&choice).unwrap();
        assert_eq!(suite.choice().unwrap(), choice);
    });
    cases.run("attribute/partner", |suite| {
        suite.set_partner(None).unwrap();
        assert_eq!(suite.partner().unwrap(), None);
        suite.set_partner(Some(&node(suite, 77))).unwrap();
        assert_eq!(id(suite.partner().unwrap()), 77);
    });
    cases.run("attribute/answer", |suite| assert_eq!(suite.answer().unwrap(), 42));
    cases.run("attribute/guarded", |suite| {
        use attributes::{GetGuardedError, SetGuardedError};
        suite.set_guarded(0).unwrap();
        assert_eq!(suite.guarded(), Err(GetGuardedError::Empty(Empty {})));
        suite.set_guarded(5).unwrap();
        assert_eq!(suite.guarded(), Ok(5));
        let refused = Refused { why: "negative".to_owned(), code: -9 };
        assert_eq!(suite.set_guarded(-9), Err(SetGuardedError::Refused(refused)));
        assert_eq!(suite.set_guarded(13), Err(SetGuardedError::Empty(Empty {})));
        assert_eq!(suite.guarded(), Ok(5));
    });
    cases.run("attribute/locked", |suite| {
        assert_eq!(suite.locked(), Err(attributes::GetLockedError::Detailed(detailed(1))));
    });
}

fn detailed(depth: i16) -> Detailed {
    let number = i32::from(depth);
    Detailed {
        at: BinStruct { s: depth, c: b'd', l: 2 * number, o: 255, d: 0.5 },
        trail: (0..depth).map(|i| i.to_string()).collect(),
        tint: Color::Green,
        pair: deep::Pair { first: "deep".to_owned(), outer: Pair { first: number, second: -number } },
    }
}

pub(super) fn faults(cases: &mut Cases<'_>) {
    cases.run("raise_empty", |suite| {
        assert_eq!(suite.raise_empty(), Err(faults::RaiseEmptyError::Empty(Empty {})));
    });
    cases.run("raise_one_of", |suite| {
        use faults::RaiseOneOfError as Raised;
        let refused = Refused { why: "asked".to_owned(), code: 2 };
        assert_eq!(suite.raise_one_of(0), Ok(1));
        assert_eq!(suite.raise_one_of(1), Err(Raised::Empty(Empty {})));
        assert_eq!(suite.raise_one_of(2), Err(Raised::Refused(refused)));
        assert_eq!(suite.raise_one_of(3), Err(Raised::Occupied(Occupied { holder: None })));
        assert_eq!(suite.raise_one_of(50), Ok(101));
    });
    cases.run("raise_detailed", |suite| {
        for depth in [0, 1, 3, 300] {
            let expected = faults::RaiseDetailedError::Detailed(detailed(depth));
            assert_eq!(suite.raise_detailed(depth), Err(expected));
        }
    });
    cases.run("raise_occupied", |suite| match suite.raise_occupied(Some(&node(suite, 31))) {
        Err(faults::RaiseOccupiedError::Occupied(e)) => assert_eq!(id(e.holder), 31),
        other => panic!("{other:?}"),
    });
    for (fault, kind) in [
        (Fault::BadParam, SystemExceptionKind::BadParam),
        (Fault::NoPermission, SystemExceptionKind::NoPermission),
        (Fault::ImpLimit, SystemExceptionKind::ImpLimit),
        (Fault::Internal, SystemExceptionKind::Internal),
        (Fault::NoResources, SystemExceptionKind::NoResources),
        (Fault::NoImplement, SystemExceptionKind::NoImplement),
        (Fault::InvPolicy, SystemExceptionKind::InvPolicy),
        (Fault::DataConversion, SystemExceptionKind::DataConversion),
    ] {
        cases.run(&format!("raise_system/{}", kind.name()), |suite| {
            for minor in [0, 0x4952_0001, u32::MAX] {
                for (completion, completed) in [
                    (Completion::CompletedYes, CompletionStatus::Yes),
                    (Completion::CompletedNo, CompletionStatus::No),
                    (Completion::CompletedMaybe, CompletionStatus::Maybe),
                ] {
                    let expected = SystemException::new(kind, MinorCode(minor), completed);
                    assert_eq!(suite.raise_system(fault, minor, completion), Err(expected));
                }
            }
        });
    }
    cases.run("known_user_exception", |suite| {
        let skewed: Option<SkewServerRef> = suite.skewed().unwrap().unwrap().narrow().unwrap();
        let expected = skew_server::SkewError::Undeclared(Undeclared { code: 4 });
        assert_eq!(skewed.unwrap().skew(4), Err(expected));
    });
    cases.run("unknown_user_exception", |suite| {
        let skewed: SkewClientRef = suite.skewed().unwrap().unwrap().narrow_unchecked();
        assert_eq!(skewed.skew(4).unwrap_err().kind, SystemExceptionKind::Unknown);
        suite.nothing().unwrap();
    });
    cases.run("bad_operation", |suite| {
        let skewed: SkewClientRef = suite.skewed().unwrap().unwrap().narrow_unchecked();
        expect_exception(skewed.missing(), SystemExceptionKind::BadOperation, CompletionStatus::No);
        suite.nothing().unwrap();
    });
}

fn node(suite: &SuiteRef, id: i32) -> NodeRef {
    suite.create_node(id).unwrap().expect("a node is never nil")
}

fn sprite(suite: &SuiteRef, name: &str, area: f64) -> SpriteRef {
    suite.create_sprite(name, area).unwrap().expect("a sprite is never nil")
}

#[track_caller]
fn id(node: Option<NodeRef>) -> i32 {
    node.expect("the reference is nil").id().unwrap()
}

pub(super) fn references(cases: &mut Cases<'_>) {
    cases.run("create_node", |suite| {
        let (a, b) = (node(suite, 1), node(suite, i32::MIN));
        assert_eq!((a.id().unwrap(), b.id().unwrap()), (1, i32::MIN));
        assert_ne!(a, b);
        assert_eq!(id(a.twin().unwrap()), 1);
    });
    cases.run("echo_node", |suite| {
        let (x, y) = (node(suite, 10), node(suite, 20));
        let (result, inout, out) = suite.echo_node(Some(&x), Some(&y)).unwrap();
        assert_eq!(result.as_ref(), Some(&x));
        assert_eq!((id(result), id(inout), id(out)), (10, 10, 20));
        let (result, inout, out) = suite.echo_node(None, Some(&y)).unwrap();
        assert_eq!((result, inout, id(out)), (None, None, 20));
    });
    cases.run("echo_object", |suite| {
        let (x, y) = (node(suite, 5), suite.object());
        let (result, inout, out) = suite.echo_object(Some(x.object()), Some(y)).unwrap();
        for object in [result, inout] {
            assert_eq!(id(object.unwrap().narrow().unwrap()), 5);
        }
        assert_eq!(out.unwrap().narrow::<SuiteRef>().unwrap().as_ref(), Some(suite));
        let (result, inout, out) = suite.echo_object(None, Some(y)).unwrap();
        assert_eq!((result, inout, out.as_ref()), (None, None, Some(y)));
    });
    cases.run("echo_nodes", |suite| {
        let x = [Some(node(suite, 1)), None, Some(node(suite, 3))];
        let (result, inout, out) = suite.echo_nodes(&x, &[]).unwrap();
        assert_eq!((&result[..], &inout[..], &out[..]), (&x[..], &x[..], &[][..]));
        assert_eq!((id(result[0].clone()), id(inout[2].clone())), (1, 3));
    });
    cases.run("echo_objects", |suite| {
        let x = [Some(node(suite, 8).into()), Some(suite.object().clone()), None];
        let (result, inout, out) = suite.echo_objects(&x, &[None]).unwrap();
        assert_eq!((&result[..], &inout[..], &out[..]), (&x[..], &x[..], &[None][..]));
    });
    cases.run("echo_link", |suite| {
        let x = Link { label: "left".to_owned(), target: Some(node(suite, 1)) };
        let y = Link { label: "right".to_owned(), target: None };
        assert_eq!(suite.echo_link(&x, &y).unwrap(), (x.clone(), x, y));
    });
    cases.run("echo_node_or_name", |suite| {
        let x = NodeOrName::Target(Some(node(suite, 6)));
        let y = NodeOrName::Name("named".to_owned());
        assert_eq!(suite.echo_node_or_name(&x, &y).unwrap(), (x.clone(), x, y));
    });
    cases.run("id_of", |suite| assert_eq!(suite.id_of(Some(&node(suite, 44))).unwrap(), 44));
    cases.run("destroy", |suite| {
        let node = node(suite, 1);
        assert!(!node.object().non_existent().unwrap());
        node.destroy().unwrap();
        expect_exception(node.id(), SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
        assert!(node.object().non_existent().unwrap());
        assert!(!node.object().locate().unwrap());
    });
    cases.run("sprite", |suite| {
        let sprite = sprite(suite, "sprite", 2.0);
        sprite.move_(1.5, -2.0).unwrap();
        sprite.move_(1.0, 1.0).unwrap();
        sprite.scale(4.0).unwrap();
        assert_eq!((sprite.x().unwrap(), sprite.y().unwrap(), sprite.area().unwrap()), (2.5, -1.0, 8.0));
        sprite.set_name("renamed").unwrap();
        assert_eq!((sprite.name().unwrap(), sprite.draw(7).unwrap()), ("renamed".into(), "renamed7".into()));
    });
    cases.run("widen", |suite| {
        let shape = suite.widen(Some(&sprite(suite, "w", 3.0))).unwrap().unwrap();
        assert_eq!(shape.area().unwrap(), 3.0);
        diamond(shape.object());
    });
    // A corbaloc has no type, so the client asks the server.
    cases.run("narrow/untyped", |suite| {
        let sprite = sprite(suite, "a", 1.0);
        let untyped = untyped(sprite.object());
        assert_eq!(untyped.type_id(), "");
        for id in [SpriteRef::REPOSITORY_ID, ShapeRef::REPOSITORY_ID, OBJECT_ID] {
            assert!(untyped.is_a(id).unwrap(), "{id}");
        }
        assert!(!untyped.is_a("IDL:no.such/Thing:1.0").unwrap());
        diamond(&untyped);
    });
    cases.run("gauge", |suite| {
        use deep::Gauge;
        let gauge = suite.create_gauge().unwrap().unwrap();
        assert_eq!(gauge.reading().unwrap(), deep::Level::Low);
        gauge.set_reading(deep::Level::High).unwrap();
        assert_eq!(gauge.reading().unwrap(), Depth::High);
    });
    cases.run("is_equivalent_hash", |suite| {
        let again = suite.object().orb().string_to_object(&suite.object().to_ior_string()).unwrap();
        assert!(suite.object().is_equivalent(&again));
        for maximum in [1, 7, 1_000_000] {
            assert_eq!(suite.object().hash_code(maximum), again.hash_code(maximum));
            assert!(again.hash_code(maximum) < maximum);
        }
        assert!(!again.is_equivalent(node(suite, 1).object()));
    });
    cases.run("non_existent", |suite| assert!(!suite.object().non_existent().unwrap()));
    cases.run("locate", |suite| assert!(suite.object().locate().unwrap()));
    cases.run("unknown_key", |suite| {
        let orb = suite.object().orb();
        let absent = orb.string_to_object(&corbaloc(suite.object(), b"no such object")).unwrap();
        assert!(absent.non_existent().unwrap());
        assert!(!absent.locate().unwrap());
        let absent: NodeRef = absent.narrow_unchecked();
        expect_exception(absent.id(), SystemExceptionKind::ObjectNotExist, CompletionStatus::No);
    });
    cases.run("forwarded", |suite| {
        let target = node(suite, 64);
        let forwarded = suite.forwarded(Some(&target)).unwrap().unwrap();
        for _ in 0..3 {
            assert_eq!(forwarded.id().unwrap(), 64);
        }
        let again = suite.forwarded(Some(&target)).unwrap().unwrap();
        assert!(!again.object().non_existent().unwrap());
        let located = suite.forwarded(Some(&target)).unwrap().unwrap();
        assert!(located.object().locate().unwrap());
        assert_eq!(located.id().unwrap(), 64);
    });
}

/// Narrows a sprite to each of its interfaces and calls it there.
fn diamond(object: &ObjectRef) {
    let movable: MovableRef = object.narrow().unwrap().expect("a sprite is movable");
    let scalable: ScalableRef = object.narrow().unwrap().expect("a sprite is scalable");
    let sprite: SpriteRef = object.narrow().unwrap().expect("a sprite is a sprite");
    let shape = ShapeRef::from(sprite.clone());
    let before = shape.area().unwrap();
    movable.move_(1.0, 0.0).unwrap();
    scalable.scale(2.0).unwrap();
    assert_eq!((sprite.x().unwrap(), sprite.area().unwrap()), (1.0, before * 2.0));
    assert_eq!(object.narrow::<NodeRef>().unwrap(), None);
}

/// The object's reference with its address and key only.
fn untyped(object: &ObjectRef) -> ObjectRef {
    let key = object.ior().iiop_profiles().next().expect("the reference has a profile").object_key().to_vec();
    object.orb().string_to_object(&corbaloc(object, &key)).unwrap()
}

/// A URL for another key at the address of an object.
fn corbaloc(object: &ObjectRef, key: &[u8]) -> String {
    let profile = object.ior().iiop_profiles().next().expect("the reference has a profile");
    let address = profile.addresses().next().expect("the reference has an address");
    let key: String = key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let minor = profile.version().minor();
    format!("corbaloc:iiop:1.{minor}@{}:{}/{key}", address.host, address.port)
}

/// Serves the callbacks of the server.
#[derive(Debug)]
struct ListenerServant {
    suite: SuiteRef,
    received: Mutex<Received>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Received {
    asked: u32,
    hints: Vec<i32>,
}

impl interop::Listener for ListenerServant {
    fn ask(&self, question: i32) -> Result<i32, listener::AskError> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).asked += 1;
        if question < 0 {
            return Err(Refused { why: "no".to_owned(), code: question }.into());
        }
        // A call from within a callback.
        self.suite.nothing()?;
        Ok(question + 1)
    }

    fn hint(&self, token: i32) -> Result<(), SystemException> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).hints.push(token);
        self.changed.notify_all();
        Ok(())
    }

    fn describe(&self, v: &Variable, text: &str) -> Result<(String, String, LongSeq), SystemException> {
        Ok((text.to_owned(), v.text.clone(), v.numbers.clone()))
    }
}

pub(super) fn callbacks(cases: &mut Cases<'_>) {
    let root = cases.target.orb.root_poa();
    let servant = Arc::new(ListenerServant {
        suite: cases.target.suite.clone(),
        received: Mutex::default(),
        changed: Condvar::new(),
    });
    let listener: ListenerRef = root.activate_shared(servant.clone()).expect("the client's adapter works");
    cases.run("call_back", |suite| {
        assert_eq!(suite.call_back(Some(&listener), 41, 1), Ok(42));
        assert_eq!(suite.call_back(Some(&listener), 1, 50), Ok(100));
        assert_eq!(suite.call_back(Some(&listener), 1, 0), Ok(0));
        assert_eq!(servant.received.lock().unwrap().asked, 51);
    });
    cases.run("call_back/exception", |suite| {
        let expected = Refused { why: "no".to_owned(), code: -5 };
        let refused = suite.call_back(Some(&listener), -5, 3);
        assert_eq!(refused, Err(references::CallBackError::Refused(expected)));
    });
    cases.run("hint_back", |suite| {
        suite.hint_back(Some(&listener), 20).unwrap();
        let received = servant.received.lock().unwrap();
        let (mut received, timeout) = servant
            .changed
            .wait_timeout_while(received, PEER_TIMEOUT, |received| received.hints.len() < 20)
            .unwrap();
        assert!(!timeout.timed_out(), "{:?}", received.hints);
        received.hints.sort_unstable();
        assert_eq!(received.hints, (1..=20).collect::<Vec<i32>>());
    });
    // The callback arrives when no thread of this client waits for a reply.
    cases.run("remind_back", |suite| {
        servant.received.lock().unwrap().hints.clear();
        super::parts::part::<LaterRef>(suite, "later").remind(Some(&listener), 41).unwrap();
        let received = servant.received.lock().unwrap();
        let (received, _) = servant
            .changed
            .wait_timeout_while(received, PEER_TIMEOUT, |received| received.hints.is_empty())
            .unwrap();
        assert_eq!(received.hints, [42]);
    });
    cases.run("describe_back", |suite| {
        let v = variable(40);
        let described = suite.describe_back(Some(&listener), &v, "before").unwrap();
        assert_eq!(described, ("before".to_owned(), v.text.clone(), v.numbers.clone()));
    });
    cases.run("echo_object/ours", |suite| {
        // The returned reference is local again: calls on it stay in this process.
        let (result, ..) = suite.echo_object(Some(listener.object()), None).unwrap();
        let result = result.unwrap();
        assert_eq!(&result, listener.object());
        assert_eq!(result.narrow::<ListenerRef>().unwrap().unwrap().ask(1), Ok(2));
    });
    let id = root.reference_to_id(listener.object()).expect("it is ours");
    root.deactivate(&id).expect("it is active");
    cases.run("call_back/gone", |suite| match suite.call_back(Some(&listener), 1, 1) {
        Err(references::CallBackError::System(e)) => {
            assert_eq!(e.kind, SystemExceptionKind::ObjectNotExist);
        }
        other => panic!("{other:?}"),
    });
}
