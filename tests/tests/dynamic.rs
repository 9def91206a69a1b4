//! Dynamic invocation and dynamic skeletons, with each other and with generated code: over every GIOP
//! version, and within the process.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::dynamic::{
    self, DynamicError, DynamicServant, InterfaceDescription, OperationDescription, ParameterMode, Request,
    RequestError, ServerRequest, send_multiple_deferred, send_multiple_oneway,
};
use ironorb::giop::any::CANONICAL;
use ironorb::giop::ior::{
    CodeSetComponentInfo, IiopProfile, Ior, OMNIORB_ORB_TYPE, Profile, TaggedComponent,
};
use ironorb::giop::{ByteOrder, CharSet, Encoding, Reader, TypeCode, Writer};
use ironorb::interceptor::{
    ClientInterceptor, ClientRequestInfo, Interrupt, ServerInterceptor, ServerRequestInfo,
};
use ironorb::poa::ObjectId;
use ironorb::{
    Any, BareExceptions, MinorCode, ObjectRef, Orb, Replied, SystemExceptionKind, TypeDef, TypedRef, Version,
    WString,
};
use ironorb_tests::converse::{converse_dynamically, converse_statically, request, shape};
use ironorb_tests::dynamics::{Base, Everything, EverythingRef, Odd, Point, everything as errors};
use ironorb_tests::everything::{DynamicEverything, StaticEverything, everything, refused};
use ironorb_tests::wires::{Passer, PasserAsync, PasserRef};
use ironorb_tests::{eventually, raw};

fn server(version: Version) -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().giop_version(version).build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().call_timeout(Some(Duration::from_secs(20))).build().unwrap()
}

fn elsewhere(client: &Orb, object: &ObjectRef) -> ObjectRef {
    client.string_to_object(&object.to_ior_string()).unwrap()
}

/// Activates a static and a dynamic servant of `Everything`, and runs `test` on each, by a remote and by a
/// local reference.
fn on_all(version: Version, test: impl Fn(&ObjectRef)) {
    let (server, client) = (server(version), client());
    let poa = server.root_poa();
    let by_skeleton: EverythingRef = poa.activate(StaticEverything::default()).unwrap();
    let id = poa.activate_object(dynamic::servant(Arc::new(DynamicEverything::default()))).unwrap();
    let by_hand = poa.id_to_reference(&id).unwrap();
    assert_eq!(by_hand.type_id(), EverythingRef::REPOSITORY_ID);
    for object in [by_skeleton.object(), &by_hand] {
        test(&elsewhere(&client, object));
        test(object);
    }
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn clients_see_no_difference_between_dynamic_servants_and_skeletons() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        on_all(version, |object| converse_statically(object, version, true));
    }
}

#[test]
fn dynamic_invocation_gives_the_results_of_static_stubs() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        on_all(version, |object| converse_dynamically(object, version, true));
    }
}

#[test]
fn arguments_are_marshalled_once_until_they_change() {
    on_all(Version::V1_2, |object| {
        let (numbers, points) = (vec![1; 1000], shape().points);
        let mut sum = request(object, "sum");
        sum.set_any(0, &Any::with_type(&TypeDef::Char, &b'!').unwrap()).unwrap();
        sum.set(1, "abc").unwrap();
        sum.borrow(2, &numbers).unwrap();
        sum.borrow(3, &points).unwrap();
        sum.set(4, &WString::from("w")).unwrap();
        // The number of values that the request had marshalled before this call.
        let mut known = 0;
        let mut call = |sum: &mut Request<'_>, expected: f64| {
            assert_eq!(sum.invoke().unwrap().result_as::<f64>().unwrap(), expected);
            sum.marshalled() - std::mem::replace(&mut known, sum.marshalled())
        };
        let all = 33.0 + 3.0 + 1000.0 + 12.5 + 1.0;
        // The first request of a connection may use another code set than the requests after it.
        call(&mut sum, all);
        call(&mut sum, all);
        assert_eq!(call(&mut sum, all), 0);
        assert_eq!(call(&mut sum, all), 0);
        // The new string has the same length, so the following arguments keep their positions.
        sum.set(1, "def").unwrap();
        assert_eq!(call(&mut sum, all), 1);
        sum.set(1, "a").unwrap();
        assert_eq!(call(&mut sum, all - 2.0), 1);
        // The following numbers of 4 bytes are only moved. The points, of doubles, change their alignment,
        // and what follows them stays in place.
        sum.set(1, "abcdefg").unwrap();
        assert_eq!(call(&mut sum, all + 4.0), 2);
        assert_eq!(call(&mut sum, all + 4.0), 0);
    });
}

#[test]
fn a_request_is_sent_to_targets_of_different_versions() {
    let (old, new) = (server(Version::V1_1), server(Version::V1_2));
    let client = client();
    let of = |server: &Orb| {
        let reference: EverythingRef = server.root_poa().activate(StaticEverything::default()).unwrap();
        elsewhere(&client, reference.object())
    };
    let (one, other) = (of(&old), of(&new));
    let points = shape().points;
    let mut sum = request(&one, "sum");
    sum.set_any(0, &Any::with_type(&TypeDef::Char, &b'!').unwrap()).unwrap();
    sum.set(1, "é").unwrap();
    sum.borrow(2, &[7]).unwrap();
    sum.borrow(3, &points).unwrap();
    sum.set(4, &WString::from("żółw")).unwrap();
    for target in [&one, &other, &one, &other] {
        sum.set_target(target);
        assert_eq!(sum.invoke().unwrap().result_as::<f64>().unwrap(), 57.5);
    }
}

/// Gather writes, with all sizes around the limit for copying and around what the socket takes at once.
#[test]
fn large_arguments_use_gather_writes() {
    for version in [Version::V1_1, Version::V1_2] {
        on_all(version, |object| {
            for length in [0, 1, 8000, 8191, 8192, 8193, 100_000, 4_000_001] {
                let data: Vec<u8> = (0..length).map(|i: u32| (i % 251) as u8).collect();
                let mut reflect = request(object, "reflect");
                reflect.borrow(0, &data).unwrap();
                for _ in 0..2 {
                    let results = reflect.invoke().unwrap();
                    assert!(results.reader().read_octets().unwrap() == data, "{length} bytes");
                }
                reflect.set(0, &data).unwrap();
                assert!(reflect.invoke().unwrap().result_as::<Vec<u8>>().unwrap() == data);
            }
            let (numbers, points) = (vec![3; 10_001], vec![Point { x: 0.5, y: 0.25 }; 20_000]);
            let mut sum = request(object, "sum");
            sum.set_any(0, &Any::with_type(&TypeDef::Char, &b'!').unwrap()).unwrap();
            sum.borrow(2, &numbers).unwrap();
            sum.borrow(3, &points).unwrap();
            sum.set(4, &WString::from("żółw")).unwrap();
            for text in ["", "abc", "abcdefg", "abcd"] {
                sum.set(1, text).unwrap();
                let expected = 33.0 + text.len() as f64 + 30_003.0 + 15_000.0 + 4.0;
                assert_eq!(sum.invoke().unwrap().result_as::<f64>().unwrap(), expected);
                let response = sum.send_deferred().unwrap().get_response();
                assert_eq!(response.unwrap().result_as::<f64>().unwrap(), expected);
            }
            let text = "x".repeat(100_000);
            let mut note = request(object, "note");
            note.borrow_value(0, text.as_str()).unwrap();
            note.invoke().unwrap();
            note.invoke().unwrap();
            let everything = EverythingRef::from_object(object.clone());
            eventually("the oneway arrives", || everything.label().unwrap() == text);
        });
    }
}

/// Several threads use one connection.
#[test]
fn gather_writes_of_several_threads_share_a_connection() {
    on_all(Version::V1_2, |object| {
        std::thread::scope(|scope| {
            for thread in 0..6u8 {
                scope.spawn(move || {
                    let data = vec![thread; 50_000 + 100_000 * usize::from(thread)];
                    let mut reflect = request(object, "reflect");
                    reflect.borrow(0, &data).unwrap();
                    let everything = EverythingRef::from_object(object.clone());
                    for number in 0..20 {
                        let response = reflect.send_deferred().unwrap();
                        assert!(reflect.invoke().unwrap().result_as::<Vec<u8>>().unwrap() == data);
                        assert_eq!(everything.add(number, 1).unwrap(), number + 1);
                        assert!(response.get_response().unwrap().result_as::<Vec<u8>>().unwrap() == data);
                    }
                });
            }
        });
    });
}

#[test]
fn requests_are_sent_in_fragments() {
    for version in [Version::V1_1, Version::V1_2] {
        let settings = |builder: ironorb::OrbBuilder| {
            builder.fragment_bytes(200).fragments_in_giop_1_1(true).giop_version(version).build().unwrap()
        };
        let server = settings(Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap());
        let client = settings(Orb::builder().no_endpoint());
        let reference: EverythingRef = server.root_poa().activate(StaticEverything::default()).unwrap();
        let object = elsewhere(&client, reference.object());
        let points: Vec<Point> = (0..500).map(|i| Point { x: f64::from(i), y: 0.25 }).collect();
        let mut sum = request(&object, "sum");
        sum.set_any(0, &Any::with_type(&TypeDef::Char, &b'!').unwrap()).unwrap();
        sum.set(1, "abc").unwrap();
        sum.set(2, &vec![1i32; 999]).unwrap();
        sum.borrow(3, &points).unwrap();
        sum.set(4, &WString::from("żółw")).unwrap();
        let expected = 33.0 + 3.0 + 999.0 + 499.0 * 250.0 + 125.0 + 4.0;
        for _ in 0..3 {
            assert_eq!(sum.invoke().unwrap().result_as::<f64>().unwrap(), expected);
            let response = sum.send_deferred().unwrap().get_response();
            assert_eq!(response.unwrap().result_as::<f64>().unwrap(), expected);
        }
        converse_dynamically(&object, version, true);
    }
}

#[test]
fn deferred_responses_are_collected_later() {
    on_all(Version::V1_2, |object| {
        let mut add = request(object, "add");
        add.set(0, &1i32).unwrap();
        let mut responses: Vec<_> = (0..10i32)
            .map(|b| {
                add.set(1, &b).unwrap();
                add.send_deferred().unwrap()
            })
            .collect();
        let mut last = responses.pop().unwrap();
        eventually("the response comes", || last.poll_response());
        assert_eq!(last.take_response().unwrap().result_as::<i32>().unwrap(), 10);
        assert_eq!(last.take_response().unwrap_err(), RequestError::Taken.into());
        for (b, response) in responses.into_iter().enumerate() {
            assert_eq!(response.get_response().unwrap().result_as::<i32>().unwrap(), 1 + b as i32);
        }
        let mut fail = request(object, "fail");
        fail.set(0, &1i32).unwrap();
        let response = fail.send_deferred().unwrap();
        drop(fail);
        match response.get_response() {
            Err(DynamicError::User(odd)) => assert_eq!(odd.extract::<Odd>().unwrap().why, "odd"),
            other => panic!("{other:?}"),
        }
        let mut note = request(object, "note");
        note.set(0, "text").unwrap();
        let refused = DynamicError::from(RequestError::NoResponse("note".to_owned()));
        assert_eq!(note.send_deferred().unwrap_err(), refused);
    });
}

#[test]
fn several_requests_are_sent_together() {
    on_all(Version::V1_2, |object| {
        let mut requests: Vec<Request<'_>> = (0..20i32)
            .map(|index| {
                let mut add = request(object, "add");
                add.set(0, &index).unwrap();
                add.set(1, &100i32).unwrap();
                add
            })
            .collect();
        requests[7].unset(1).unwrap();
        let mut responses = send_multiple_deferred(&mut requests);
        assert_eq!(responses.len(), 20);
        eventually("some response comes", || responses.poll_next_response());
        let mut seen = [false; 20];
        while let Some((index, response)) = responses.get_next_response() {
            assert!(!std::mem::replace(&mut seen[index], true));
            match response {
                Ok(sum) => assert_eq!(sum.result_as::<i32>().unwrap(), 100 + index as i32),
                Err(e) => assert!(index == 7, "{e}"),
            }
        }
        assert!(responses.is_empty() && seen.iter().all(|seen| *seen));
        assert!(responses.poll_next_response(), "the response is there");

        let mut notes: Vec<Request<'_>> = (0..3).map(|_| request(object, "note")).collect();
        notes[0].set(0, "first").unwrap();
        notes[2].set(0, "last").unwrap();
        let (index, e) = send_multiple_oneway(&mut notes).unwrap_err();
        assert_eq!(
            (index, matches!(e, DynamicError::Request(RequestError::MissingArgument { .. }))),
            (1, true)
        );
        let everything = EverythingRef::from_object(object.clone());
        eventually("the others arrive", || everything.label().unwrap() == "last");
    });
}

#[test]
fn mistakes_are_reported_before_a_request_is_sent() {
    on_all(Version::V1_2, |object| {
        let mut turn = request(object, "turn");
        let missing = RequestError::MissingArgument { index: 0, name: "given".to_owned() };
        assert_eq!(turn.invoke().unwrap_err(), missing.into());
        match turn.set(0, &1i32) {
            Err(RequestError::WrongType { of, .. }) => assert_eq!(of, "given"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(turn.set_any(1, &Any::new("x").unwrap()), Err(RequestError::WrongType { .. })));
        assert_eq!(turn.set(2, &true), Err(RequestError::NotSent("something".to_owned())));
        assert_eq!(turn.set(4, &true), Err(RequestError::NoSuchParameter { index: 4, count: 4 }));
        let nobody = RequestError::NoSuchName("nobody".to_owned());
        assert_eq!(turn.set_named("nobody", &Any::default()), Err(nobody));
        let mut note = request(object, "note");
        assert!(matches!(note.set(0, "a\0b"), Err(RequestError::Unsendable { .. })));

        let bad = OperationDescription::new("note").oneway().returns(&TypeDef::Long);
        let refused = DynamicError::from(RequestError::OnewayReturns("note".to_owned()));
        assert_eq!(Request::new(object, bad).invoke().unwrap_err(), refused);

        let mut add = request(object, "add");
        add.set(0, &1i32).unwrap();
        add.set(1, &2i32).unwrap();
        let results = add.invoke().unwrap();
        match results.result_as::<String>() {
            Err(DynamicError::Request(RequestError::WrongType { .. })) => {}
            other => panic!("{other:?}"),
        }
        let not_returned = DynamicError::from(RequestError::NotReturned("a".to_owned()));
        assert_eq!(results.out(0).unwrap_err(), not_returned);
        let none = DynamicError::from(RequestError::NoSuchParameter { index: 2, count: 2 });
        assert_eq!(results.out(2).unwrap_err(), none);

        // With a wrong description, the object gets too few bytes, and the reply has another type.
        let wrong = OperationDescription::new("add").parameter("a", ParameterMode::In, &TypeDef::Long);
        let mut wrong = Request::new(object, wrong);
        wrong.set(0, &1i32).unwrap();
        match wrong.invoke() {
            Err(DynamicError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::Marshal),
            other => panic!("{other:?}"),
        }
        let wrong = OperationDescription::new("nothing").returns(&TypeDef::String { bound: 0 });
        let results = Request::new(object, wrong).invoke().unwrap();
        match (results.result(), results.result_as::<String>()) {
            (Err(DynamicError::System(one)), Err(DynamicError::System(other))) => {
                assert_eq!(
                    (one.minor, other.minor),
                    (MinorCode::MALFORMED_REPLY, MinorCode::MALFORMED_REPLY)
                );
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn undeclared_exceptions_are_unknown() {
    on_all(Version::V1_2, |object| {
        // The object declares the exception. The caller's description does not.
        let fail = OperationDescription::new("fail").parameter("how", ParameterMode::In, &TypeDef::Long);
        let mut fail = Request::new(object, fail);
        fail.set(0, &1i32).unwrap();
        match fail.invoke() {
            Err(DynamicError::System(e)) => assert_eq!(e.minor, MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION),
            other => panic!("{other:?}"),
        }
    });
    let server = server(Version::V1_2);
    let poa = server.root_poa();
    let id = poa.activate_object(dynamic::servant(Arc::new(DynamicEverything::default()))).unwrap();
    let object = elsewhere(&client(), &poa.id_to_reference(&id).unwrap());
    match EverythingRef::from_object(object).fail(-1) {
        Err(errors::FailError::System(e)) => {
            assert_eq!(e.kind, SystemExceptionKind::Unknown);
            assert_eq!(e.minor, MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION);
        }
        other => panic!("{other:?}"),
    }
}

/// Serves any operation with a closure, without a description of its interface.
struct UntypedServant<F>(F);

impl<F> DynamicServant for UntypedServant<F>
where
    F: Fn(ServerRequest<'_>) -> Replied + Send + Sync + 'static,
{
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        None
    }

    fn invoke(&self, request: ServerRequest<'_>) -> Replied {
        (self.0)(request)
    }
}

/// Runs `test` on a servant without an interface, by a remote and by a local reference.
fn on_untyped_servant(
    serve: impl Fn(ServerRequest<'_>) -> Replied + Send + Sync + 'static,
    test: impl Fn(&EverythingRef),
) {
    let (server, client) = (server(Version::V1_2), client());
    let poa = server.root_poa();
    let id = poa.activate_object(dynamic::servant(Arc::new(UntypedServant(serve)))).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    test(&EverythingRef::from_object(elsewhere(&client, &object)));
    test(&EverythingRef::from_object(object));
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn a_servant_without_an_interface_gets_every_operation() {
    let serve = |mut request: ServerRequest<'_>| match request.operation() {
        "add" => {
            // Reads and writes the bytes without a description.
            let sum = (|| Ok(request.reader().read_i32()? + request.reader().read_i32()?))();
            match sum {
                Ok(sum) => request.reply_with(|w| w.put(&sum)),
                Err(e) => request.refuse_arguments(e),
            }
        }
        "reflect" => {
            assert!(request.arguments().is_err(), "the operation has no description");
            request.describe(everything().find("reflect").unwrap());
            let arguments = request.arguments().unwrap();
            request.reply(arguments.first(), &[])
        }
        "fail" => request.raise_with("IDL:dynamics/Odd:1.0", |w| {
            w.put(&Odd { why: "raw".to_owned(), at: Point { x: 0.0, y: 0.0 } })
        }),
        "_get_calls" => request.reply(Some(&Any::new(&3u32).unwrap()), &[]),
        _ => request.raise_system(refused()),
    };
    on_untyped_servant(serve, |object| {
        assert_eq!(object.add(3, 4).unwrap(), 7);
        assert_eq!(object.calls().unwrap(), 3);
        assert_eq!(object.reflect(b"bytes").unwrap(), b"bytes");
        match object.fail(0) {
            Err(errors::FailError::Odd(odd)) => assert_eq!(odd.why, "raw"),
            other => panic!("{other:?}"),
        }
        assert_eq!(object.nothing().unwrap_err(), refused());
        assert!(!object.object().non_existent().unwrap());
    });
}

#[test]
fn dynamic_servants_reply_later_from_any_thread() {
    let (obligations, answers) = std::sync::mpsc::channel::<(String, dynamic::DynamicReply)>();
    let obligations = Mutex::new(obligations);
    let worker = std::thread::spawn(move || {
        for (operation, reply) in answers {
            assert!(reply.is_wanted());
            match operation.as_str() {
                "_get_label" => reply.reply(Some(Any::new("later").unwrap()), vec![]),
                "fail" => {
                    let odd = Odd { why: "late".to_owned(), at: Point { x: 0.0, y: 0.0 } };
                    reply.raise(&Any::new(&odd).unwrap());
                }
                "nothing" => reply.raise_system(refused()),
                _ => drop(reply),
            }
        }
    });
    let serve = move |request: ServerRequest<'_>| {
        let operation = request.operation().to_owned();
        request.defer(|reply| obligations.lock().unwrap().send((operation, reply)).unwrap())
    };
    on_untyped_servant(serve, |object| {
        assert_eq!(object.label().unwrap(), "later");
        match object.fail(0) {
            Err(errors::FailError::Odd(odd)) => assert_eq!(odd.why, "late"),
            other => panic!("{other:?}"),
        }
        assert_eq!(object.nothing().unwrap_err(), refused());
        assert_eq!(object.add(1, 2).unwrap_err().minor, MinorCode::REPLY_GIVEN_UP);
    });
    worker.join().unwrap();
}

#[test]
fn results_that_do_not_fit_their_description_are_not_sent() {
    let serve = |mut request: ServerRequest<'_>| {
        let operation = request.operation().to_owned();
        request.describe(everything().find(&operation).unwrap());
        match operation.as_str() {
            "add" => request.reply(Some(&Any::new("three").unwrap()), &[]),
            "_get_label" => request.reply(None, &[]),
            "nothing" => request.reply(Some(&Any::new(&1i32).unwrap()), &[]),
            "myself" => request.reply(Some(&Any::new(&None::<EverythingRef>).unwrap()), &[]),
            _ => request.raise(&Any::new(&1i32).unwrap()),
        }
    };
    on_untyped_servant(serve, |object| {
        let unsendable = MinorCode::UNSENDABLE_RESULT;
        assert_eq!(object.add(1, 2).unwrap_err().minor, unsendable);
        assert_eq!(object.label().unwrap_err().minor, unsendable);
        assert_eq!(object.nothing().unwrap_err().minor, unsendable);
        assert_eq!(object.myself(None).unwrap_err().minor, unsendable);
        assert_eq!(object.calls().unwrap_err().kind, SystemExceptionKind::Unknown);
    });
}

/// An interceptor that records what it sees.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<String>>>);

impl Witness {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl ClientInterceptor for Witness {
    fn send_request(&self, request: &mut ClientRequestInfo) -> Result<(), Interrupt> {
        self.note(format!("send {} {}", request.operation(), request.response_expected()));
        Ok(())
    }

    fn receive_exception(&self, request: &ClientRequestInfo) -> Result<(), Interrupt> {
        self.note(format!("caught {}", request.received_exception_id().unwrap()));
        Ok(())
    }
}

impl ServerInterceptor for Witness {
    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        let operation = String::from_utf8_lossy(request.operation()).into_owned();
        let interface = request.target_most_derived_interface().unwrap();
        self.note(format!("serve {operation} of {interface}"));
        Ok(())
    }
}

#[test]
fn interceptors_see_dynamic_requests() {
    let (sent, served) = (Witness::default(), Witness::default());
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .unwrap()
        .server_interceptor(served.clone())
        .build()
        .unwrap();
    let client = Orb::builder().no_endpoint().client_interceptor(sent.clone()).build().unwrap();
    let poa = server.root_poa();
    let id = poa.activate_object(dynamic::servant(Arc::new(DynamicEverything::default()))).unwrap();
    let object = elsewhere(&client, &poa.id_to_reference(&id).unwrap());
    let mut fail = request(&object, "fail");
    fail.set(0, &1i32).unwrap();
    fail.invoke().unwrap_err();
    fail.send_deferred().unwrap().get_response().unwrap_err();
    let mut note = request(&object, "note");
    note.set(0, "x").unwrap();
    note.invoke().unwrap();
    request(&object, "nothing").invoke().unwrap();
    let odd = "caught IDL:dynamics/Odd:1.0";
    let seen = ["send fail true", odd, "send fail true", odd, "send note false", "send nothing true"];
    assert_eq!(*sent.0.lock().unwrap(), seen);
    let of = |operation| format!("serve {operation} of IDL:dynamics/Everything:1.0");
    let seen = [of("fail"), of("fail"), of("note"), of("nothing")];
    assert_eq!(*served.0.lock().unwrap(), seen);
}

#[test]
fn borrowed_octets_are_sent_as_the_declared_octets_or_chars() {
    const CHARS: TypeDef = TypeDef::Sequence { element: &TypeDef::Char, bound: 0 };
    const OCTETS: TypeDef = TypeDef::Sequence { element: &TypeDef::Octet, bound: 0 };
    let client = client();
    let object = client.string_to_object("corbaloc::1.2@127.0.0.1:1/nobody").unwrap();
    let text = *b"chars";
    for (sequence, is_chars) in [(&CHARS, true), (&OCTETS, false)] {
        let operation = OperationDescription::new("take").parameter("it", ParameterMode::In, sequence);
        let mut request = Request::new(&object, operation);
        let (chars, octets) = (request.borrow_chars(0, &text), request.borrow(0, &text));
        assert_eq!((chars.is_ok(), octets.is_ok()), (is_chars, !is_chars));
        let refused = chars.and(octets).unwrap_err();
        assert!(matches!(refused, RequestError::WrongType { .. }), "{refused}");
    }
    client.shutdown(true).unwrap();
}

/// `any pass(in any given)`.
fn pass() -> OperationDescription {
    OperationDescription::new("pass")
        .parameter("given", ParameterMode::In, &TypeDef::Any)
        .returns(&TypeDef::Any)
}

/// An exception in an `any`. Its repository id is in its TypeCode and, in the standard's form, again before
/// its members.
fn exception() -> Any {
    let id = "IDL:forms/E:1.0";
    let members = [("code", TypeCode::of(&TypeDef::Long))];
    let type_code = TypeCode::create_exception(id, "E", &members).unwrap();
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    w.write_str(id).unwrap();
    w.write_i32(7);
    Any::read_value(type_code, &mut Reader::new(&bytes, CANONICAL)).unwrap()
}

/// The exception in the body of a big-endian message, with or without the second id.
fn written(bare: bool) -> Vec<u8> {
    let encoding = Encoding { order: ByteOrder::Big, bare_exceptions: bare, ..Encoding::NATIVE };
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, encoding).put(&exception()).unwrap();
    bytes
}

/// Whether a message has the exception without the second id.
fn is_bare(message: &[u8]) -> bool {
    match message.windows(15).filter(|bytes| bytes == b"IDL:forms/E:1.0").count() {
        1 => true,
        2 => false,
        count => panic!("the id stands there {count} times"),
    }
}

/// A client with this setting sends the exception to a server with this ORB type (0 for none), by one
/// reference or another, and gets it back in these forms. Returns the forms that the client sent.
fn forms_sent(setting: BareExceptions, orb_type: u32, replies: &[(usize, bool)]) -> Vec<bool> {
    let (listener, port) = raw::listen();
    let mut builder = Orb::builder().no_endpoint();
    builder.config().bare_exceptions = setting;
    let client = builder.build().unwrap();
    let components = [TaggedComponent::new_orb_type(orb_type)];
    let components = if orb_type == 0 { &[][..] } else { &components[..] };
    let reference = |key: &[u8]| {
        let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", port, key, components).unwrap();
        client.string_to_object(&Ior::with_profile("", profile).to_string()).unwrap()
    };
    let objects = [reference(b"a"), reference(b"b")];
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let serve = |(_, bare): &(usize, bool)| {
                let request = raw::read_message(&mut stream);
                raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &written(*bare)));
                is_bare(&request)
            };
            replies.iter().map(serve).collect()
        });
        for (object, _) in replies {
            let mut request = Request::new(&objects[*object], pass());
            request.set(0, &exception()).unwrap();
            assert_eq!(request.invoke().unwrap().result_as::<Any>().unwrap(), exception());
        }
        server.join().unwrap()
    })
}

#[test]
fn a_client_learns_how_a_server_writes_exceptions_in_anys() {
    use BareExceptions::{Auto, No, Yes};
    // The client begins with the standard's form, and then uses the server's, for all references to it.
    let replies = [(0, true), (0, true), (0, false), (0, false), (1, true), (1, true)];
    assert_eq!(forms_sent(Auto, 0, &replies), [false, true, true, false, false, true]);
    // With omniORB's ORB type the client assumes its C++ library, and finds its Python library.
    assert_eq!(forms_sent(Auto, OMNIORB_ORB_TYPE, &[(0, true), (1, true)]), [true, true]);
    assert_eq!(
        forms_sent(Auto, OMNIORB_ORB_TYPE, &[(0, false), (0, false), (1, false)]),
        [true, false, false]
    );
    for orb_type in [0, OMNIORB_ORB_TYPE] {
        assert_eq!(forms_sent(No, orb_type, &[(0, true), (0, true), (1, true)]), [false; 3]);
        assert_eq!(forms_sent(Yes, orb_type, &[(0, false), (0, false), (1, false)]), [true; 3]);
    }
}

/// A reference leads to two servers. One answers, and the client learns nothing about the other.
#[test]
fn a_client_learns_the_form_of_the_server_that_answers() {
    let [(first, first_port), (second, second_port)] = [raw::listen(), raw::listen()];
    let client = Orb::builder().no_endpoint().build().unwrap();
    let profile =
        |port| Profile::Iiop(IiopProfile::new(Version::V1_2, "127.0.0.1", port, b"a", &[]).unwrap());
    let reference = |ports: &[u16]| {
        let ior = Ior { type_id: String::new(), profiles: ports.iter().map(|port| profile(*port)).collect() };
        client.string_to_object(&ior.to_string()).unwrap()
    };
    let (both, other) = (reference(&[first_port, second_port]), reference(&[second_port]));
    let call = |object: &ObjectRef| {
        let mut request = Request::new(object, pass());
        request.set(0, &exception()).unwrap();
        assert_eq!(request.invoke().unwrap().result_as::<Any>().unwrap(), exception());
    };
    let serve = |listener: TcpListener, requests: usize| {
        let (mut stream, _) = listener.accept().unwrap();
        let forms: Vec<bool> = (0..requests)
            .map(|_| {
                let request = raw::read_message(&mut stream);
                raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &written(true)));
                is_bare(&request)
            })
            .collect();
        raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
        forms
    };
    std::thread::scope(|scope| {
        let (first, second) = (scope.spawn(|| serve(first, 2)), scope.spawn(|| serve(second, 2)));
        call(&both);
        call(&both);
        assert_eq!(first.join().unwrap(), [false, true]);
        // The first server has gone, so that calls go to the second.
        call(&other);
        call(&both);
        assert_eq!(second.join().unwrap(), [false, false]);
    });
}

/// Of two servers the first is down.
#[test]
fn a_client_learns_the_form_of_a_second_server() {
    form_of_second_server(false);
    form_of_second_server(true);
}

fn form_of_second_server(is_asynchronous: bool) {
    let [(first, first_port), (second, second_port)] = [raw::listen(), raw::listen()];
    drop(first);
    let client = Orb::builder().no_endpoint().build().unwrap();
    let profile =
        |port| Profile::Iiop(IiopProfile::new(Version::V1_2, "127.0.0.1", port, b"a", &[]).unwrap());
    let ior = Ior { type_id: String::new(), profiles: vec![profile(first_port), profile(second_port)] };
    let object = client.string_to_object(&ior.to_string()).unwrap();
    let call = || match is_asynchronous {
        true => object.narrow_unchecked::<PasserRef>().pass_async(&exception()).wait().unwrap(),
        false => object.narrow_unchecked::<PasserRef>().pass(&exception()).unwrap(),
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = second.accept().unwrap();
            [0; 3].map(|_| {
                let request = raw::read_message(&mut stream);
                raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &written(true)));
                is_bare(&request)
            })
        });
        (0..3).for_each(|_| assert_eq!(call(), exception()));
        assert_eq!(server.join().unwrap(), [false, true, true], "asynchronous: {is_asynchronous}");
    });
}

/// A server with this setting gets the exception in these forms over one connection. Returns the forms of
/// its replies.
fn forms_answered(setting: BareExceptions, requests: &[bool]) -> Vec<bool> {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().bare_exceptions = setting;
    let server = builder.build().unwrap();
    let poa = server.root_poa();
    let serve = |mut request: ServerRequest<'_>| {
        request.describe(&Arc::new(pass()));
        let arguments = request.arguments().unwrap();
        request.reply(arguments.first(), &[])
    };
    let id = poa.activate_object(dynamic::servant(Arc::new(UntypedServant(serve)))).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    let key = object.ior().iiop_profiles().next().unwrap().object_key();
    let mut stream = std::net::TcpStream::connect(&server.published_addresses()[0]).unwrap();
    let ask = |bare: &bool| {
        let mut body = b"\0\0\0\x07\x03\0\0\0\0\0\0\0".to_vec();
        body.extend_from_slice(&(key.len() as u32).to_be_bytes());
        body.extend_from_slice(key);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(b"\0\0\0\x05pass\0\0\0\0\0\0\0\0");
        body.resize((12 + body.len()).next_multiple_of(8) - 12, 0);
        body.extend_from_slice(&written(*bare));
        raw::write(&mut stream, &raw::message(0, &body));
        is_bare(&raw::read_message(&mut stream))
    };
    requests.iter().map(ask).collect()
}

#[test]
fn a_server_learns_how_a_client_writes_exceptions_in_anys() {
    use BareExceptions::{Auto, No, Yes};
    // The server begins its reply before it reads the arguments, so what it learns applies from the next
    // request on.
    assert_eq!(forms_answered(Auto, &[true, true, false, false]), [false, true, true, false]);
    assert_eq!(forms_answered(No, &[true, true]), [false, false]);
    assert_eq!(forms_answered(Yes, &[false, false]), [true, true]);
}

/// Sun's ORB works in ISO 8859-1 and converts UTF-8. By the standard's order the two sides agree on ISO
/// 8859-1.
#[test]
fn a_client_may_prefer_utf8() {
    let mut sets = CodeSetComponentInfo::ironorb();
    sets.for_char_data.native_code_set = CharSet::Latin1.registry_id();
    sets.for_char_data.conversion_code_sets = vec![CharSet::Utf8.registry_id()];
    let send = |prefers: bool| {
        let (listener, port) = raw::listen();
        let mut builder = Orb::builder().no_endpoint();
        builder.config().prefer_utf8 = prefers;
        let client = builder.build().unwrap();
        let components = [TaggedComponent::new_code_sets(&sets).unwrap()];
        let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", port, b"key", &components).unwrap();
        let object = client.string_to_object(&Ior::with_profile("", profile).to_string()).unwrap();
        let note = OperationDescription::new("note").parameter("text", ParameterMode::In, &STRING);
        let mut note = Request::new(&object, note);
        note.set(0, "5 \u{20AC}").unwrap();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = raw::read_message(&mut stream);
                if request.get(7) == Some(&0) {
                    raw::write(&mut stream, &raw::reply(raw::id_of(&request), 0, &[]));
                }
                request
            });
            let sent = note.invoke().map(drop);
            client.shutdown(true).unwrap(); // closes the connection if no request was sent
            (sent, server.join().unwrap())
        })
    };
    let (sent, request) = send(true);
    sent.unwrap();
    assert!(request.windows(6).any(|bytes| bytes == "5 \u{20AC}\0".as_bytes()));
    let chosen = CharSet::Utf8.registry_id().to_ne_bytes();
    assert!(request.windows(4).any(|bytes| bytes == chosen), "the request names the code set");
    match send(false).0 {
        Err(DynamicError::System(e)) => {
            assert_eq!(e.kind, SystemExceptionKind::DataConversion);
            let text = e.to_string();
            assert!(text.contains("U+20AC '\u{20AC}'") && text.contains("ISO 8859-1"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

static STRING: TypeDef = TypeDef::String { bound: 0 };
