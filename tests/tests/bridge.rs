//! A bridge between clients and servers. Clients and servers get what the peer has sent, and notice no
//! difference.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::giop::ior::{CodeSetComponentInfo, IiopProfile, Ior, TaggedComponent};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind, TypedRef, Version,
};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::bridge::{Bridge, BridgeOptions};
use ironorb_idl::compile_file;
use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits, Store};
use ironorb_tests::converse::{converse_dynamically, converse_statically};
use ironorb_tests::dynamics::EverythingRef;
use ironorb_tests::everything::StaticEverything;
use ironorb_tests::raw;
use ironorb_tests::testing::{self, Probe, ProbeRef};
use ironorb_tests::wires::{Exchange, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Listening, Probing, eventually};

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

fn server(version: Version) -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().giop_version(version).build().unwrap()
}

fn client() -> Orb {
    Orb::builder().no_endpoint().call_timeout(Some(Duration::from_secs(20))).build().unwrap()
}

fn bridge(options: BridgeOptions) -> (Orb, Bridge) {
    let orb = server(Version::V1_2);
    let bridge = Bridge::new(&orb, options).unwrap();
    (orb, bridge)
}

/// A bridge with one connection to each target: whichever thread serves a request, the test reads it on the
/// connection that it has accepted.
fn bridge_with_one_connection(options: BridgeOptions) -> (Orb, Bridge) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().connections_per_endpoint_max = 1;
    let orb = builder.build().unwrap();
    let bridge = Bridge::new(&orb, options).unwrap();
    (orb, bridge)
}

fn types() -> Arc<Interfaces> {
    let mut types = Interfaces::new();
    types.add_idl([concat!(env!("CARGO_MANIFEST_DIR"), "/idl/dynamic.idl")], &Default::default()).unwrap();
    Arc::new(types)
}

/// The bridge's reference, for a client of this ORB that speaks `version`.
fn seen_in(client: &Orb, reference: &ObjectRef, version: Version) -> ObjectRef {
    let profile = reference.ior().iiop_profiles().next().unwrap();
    let code_sets = TaggedComponent::new_code_sets(&CodeSetComponentInfo::ironorb()).unwrap();
    let (host, port, key) = (profile.host(), profile.port(), profile.object_key());
    let profile = IiopProfile::new(version, host, port, key, &[code_sets]).unwrap();
    client.ior_to_object(Ior::with_profile(reference.type_id(), profile)).unwrap()
}

/// Runs `test` with a client, a bridge and a server with a static servant, for all pairs of GIOP versions
/// of client and server. The bridge publishes the server's or the client's version.
fn in_all_versions(options: &BridgeOptions, test: impl Fn(&ObjectRef, Version)) {
    for theirs in VERSIONS {
        for ours in VERSIONS {
            let (server, client) = (server(theirs), client());
            let everything: EverythingRef = server.root_poa().activate(StaticEverything::default()).unwrap();
            let options = BridgeOptions { giop: Some(theirs), ..options.clone() };
            let (orb, bridge) = bridge(options);
            let target = orb.string_to_object(&everything.object().to_ior_string()).unwrap();
            let reference = bridge.publish(b"everything", &target).unwrap();
            assert_eq!(reference.type_id(), EverythingRef::REPOSITORY_ID);
            test(&seen_in(&client, &reference, ours), ours.min(theirs));
            client.shutdown(true).unwrap();
            orb.shutdown(true).unwrap();
            server.shutdown(true).unwrap();
        }
    }
}

#[test]
fn clients_with_stubs_notice_no_bridge() {
    let options = BridgeOptions { types: Some(types()), through: true, ..BridgeOptions::default() };
    in_all_versions(&options, |object, version| converse_statically(object, version, true));
}

#[test]
fn dynamic_clients_notice_no_bridge() {
    let options = BridgeOptions { types: Some(types()), through: true, ..BridgeOptions::default() };
    in_all_versions(&options, |object, version| converse_dynamically(object, version, true));
}

/// A bridge without type definitions. Bridge and server agree on the lower of their versions.
#[test]
fn a_bridge_without_types_works_where_versions_agree() {
    for theirs in VERSIONS {
        for ours in VERSIONS.into_iter().filter(|ours| *ours <= theirs) {
            let (server, client) = (server(theirs), client());
            let everything: EverythingRef = server.root_poa().activate(StaticEverything::default()).unwrap();
            let (orb, bridge) = bridge(BridgeOptions::default());
            let target = orb.string_to_object(&everything.object().to_ior_string()).unwrap();
            let reference = bridge.publish(b"everything", &target).unwrap();
            let object = seen_in(&client, &reference, ours);
            converse_statically(&object, ours, false);
            converse_dynamically(&object, ours, false);
        }
    }
}

/// A blocked call delays no other and occupies no thread. A failing call raises the object's exception.
#[test]
fn calls_return_as_they_complete() {
    let (server, client) = (server(Version::V1_2), client());
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let (orb, bridge) = bridge(BridgeOptions::default());
    let target = orb.string_to_object(&probe.object().to_ior_string()).unwrap();
    let reference = bridge.publish(b"probe", &target).unwrap();
    let through: ProbeRef = client.resolve(&reference.to_ior_string()).unwrap();
    assert!(through.object().locate().unwrap());
    let missing =
        client.string_to_object(&format!("corbaloc::{}/nobody", orb.published_addresses()[0])).unwrap();
    assert!(!missing.locate().unwrap());
    assert!(missing.non_existent().unwrap());
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (0..20).map(|_| scope.spawn(|| through.block())).collect();
        eventually("they are blocked", || probe.blocked().unwrap() >= 16);
        let other: ProbeRef = client.resolve(&reference.to_ior_string()).unwrap();
        assert_eq!(other.add(1, 2).unwrap(), 3);
        assert_eq!(
            other.with_timeout(Some(Duration::from_millis(50))).block().unwrap_err().kind,
            SystemExceptionKind::Timeout
        );
        eventually("all are let go", || {
            probe.release().unwrap();
            blocked.iter().all(|call| call.is_finished())
        });
        blocked.into_iter().for_each(|call| call.join().unwrap().unwrap());
    });
    let e = through.raise_system(0x4242_0001).unwrap_err();
    let expected = SystemException::new(
        SystemExceptionKind::NoPermission,
        MinorCode(0x4242_0001),
        CompletionStatus::Yes,
    );
    assert_eq!(e, expected);
    match through.refuse("why not") {
        Err(testing::probe::RefuseError::Refused(e)) => assert_eq!(e.why, "why not"),
        other => panic!("{other:?}"),
    }
    let data: Vec<u8> = (0..20_000_000u32).map(|i| (i % 253) as u8).collect();
    assert!(through.reflect(&data).unwrap() == data);
    let ticks = probe.ticks().unwrap();
    for _ in 0..1000 {
        through.tick().unwrap();
    }
    eventually("the oneways arrive", || probe.ticks().unwrap() == ticks + 1000);
    server.shutdown(true).unwrap();
    let e = through.ping().unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert!(bridge.withdraw(b"probe"));
    assert_eq!(through.ping().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
}

/// References lead through the bridge in both directions, and nested: a server calls its client back
/// through the bridge.
#[test]
fn callbacks_lead_through_the_bridge() {
    let mut types = Interfaces::new();
    types.add_idl([concat!(env!("CARGO_MANIFEST_DIR"), "/idl/wires.idl")], &Default::default()).unwrap();
    let operations: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = operations.clone();
    let options = BridgeOptions {
        types: Some(Arc::new(types)),
        through: true,
        observer: Some(Arc::new(move |passed| seen.lock().unwrap().push(passed.operation.to_owned()))),
        ..BridgeOptions::default()
    };
    let (server, client) = (server(Version::V1_2), server(Version::V1_2));
    let exchanging = Arc::new(Exchanging::default());
    let exchange: ExchangeRef = server.root_poa().activate_shared(exchanging.clone()).unwrap();
    *exchanging.itself.lock().unwrap() = Some(exchange.clone());
    let listening = Arc::new(Listening::default());
    let listener: ListenerRef = client.root_poa().activate_shared(listening.clone()).unwrap();
    *listening.itself.lock().unwrap() = Some(listener.clone());
    let (orb, bridge) = bridge(options);
    let target = orb.string_to_object(&exchange.object().to_ior_string()).unwrap();
    let reference = bridge.publish(b"exchange", &target).unwrap();
    let through: ExchangeRef = client.resolve(&reference.to_ior_string()).unwrap();
    // Three callbacks and three calls, each with a reference that has come through the bridge.
    assert_eq!(through.call_back(Some(&listener), 3).unwrap(), 4);
    eventually("all calls are observed", || {
        let operations = operations.lock().unwrap();
        let count = |name: &str| operations.iter().filter(|operation| *operation == name).count();
        (count("call_back"), count("nested_call")) == (4, 4)
    });
    through.keep(Some(&listener)).unwrap();
    through.notify_listener("something").unwrap();
    eventually("the oneway arrives", || *listening.notified.lock().unwrap() == ["something"]);
}

/// The bridge does not pass on a body that the alignment rules of another version would change.
#[test]
fn bodies_that_another_version_would_read_differently_are_refused() {
    let (listener, port) = raw::listen();
    let (orb, bridge) =
        bridge_with_one_connection(BridgeOptions { giop: Some(Version::V1_2), ..BridgeOptions::default() });
    bridge.pass_others_to("127.0.0.1", port);
    let mut client = TcpStream::connect(&orb.published_addresses()[0]).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for operation in ["op", "operat"] {
        let request = Wire::request(1, true, b"k", operation, &[7; 40]);
        client.write_all(&request).unwrap();
        if seen(&request).phase == 0 {
            let (mut server, _) = listener.accept().unwrap();
            let got = seen(&raw::read_message(&mut server));
            assert_eq!((got.minor, got.phase, &got.body[..]), (2, 0, &[7; 40][..]));
            server.write_all(&Wire::reply(2, false, got.id, 0, true, &[9; 24])).unwrap();
            let back = seen(&raw::read_message(&mut client));
            assert_eq!((back.minor, back.phase, &back.body[..]), (1, 0, &[9; 24][..]));
        } else {
            let back = seen(&raw::read_message(&mut client));
            assert_eq!(back.status, 2, "a system exception");
            let text = String::from_utf8_lossy(&back.body).into_owned();
            assert!(text.contains("CORBA/MARSHAL:1.0"), "{text}");
        }
    }
}

/// A client that requests large replies and reads none delays no other.
#[test]
fn clients_that_do_not_read_delay_no_others() {
    let (server, client) = (server(Version::V1_2), client());
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let (orb, bridge) = bridge(BridgeOptions::default());
    let target = orb.string_to_object(&probe.object().to_ior_string()).unwrap();
    let reference = bridge.publish(b"probe", &target).unwrap();
    let mut deaf = TcpStream::connect(&orb.published_addresses()[0]).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut octets = 1_000_000u32.to_be_bytes().to_vec();
    octets.resize(1_000_004, 1);
    let request = Wire::request(2, false, b"probe", "reflect", &octets);
    // Writes until the bridge stops reading.
    let mut written = 0;
    while deaf.write_all(&request).is_ok() {
        written += 1;
        assert!(written < 600, "the bridge reads without a limit");
    }
    let through: ProbeRef = client.resolve(&reference.to_ior_string()).unwrap();
    for _ in 0..20 {
        assert_eq!(through.add(1, 2).unwrap(), 3);
    }
}

/// Writes a message of GIOP 1.x in either byte order.
struct Wire {
    little: bool,
    bytes: Vec<u8>,
}

impl Wire {
    fn new(minor: u8, little: bool, kind: u8) -> Wire {
        let mut bytes = b"GIOP\x01".to_vec();
        bytes.extend([minor, u8::from(little), kind, 0, 0, 0, 0]);
        Wire { little, bytes }
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn long(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(if self.little { number.to_le_bytes() } else { number.to_be_bytes() });
    }

    fn octets(&mut self, bytes: &[u8]) {
        self.long(bytes.len() as u32);
        self.bytes.extend(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        let size = (self.bytes.len() - 12) as u32;
        let size = if self.little { size.to_le_bytes() } else { size.to_be_bytes() };
        self.bytes[8..12].copy_from_slice(&size);
        self.bytes
    }

    /// A request with one service context of an unknown id.
    fn request(minor: u8, little: bool, key: &[u8], operation: &str, body: &[u8]) -> Vec<u8> {
        let mut w = Wire::new(minor, little, 0);
        let contexts = |w: &mut Wire| {
            w.long(1);
            w.long(0x7465_7374);
            w.octets(b"hello");
        };
        if minor == 2 {
            w.long(9);
            w.bytes.extend([3, 0, 0, 0, 0, 0, 0, 0]);
            w.octets(key);
            w.octets(format!("{operation}\0").as_bytes());
            contexts(&mut w);
            if !body.is_empty() {
                w.align(8);
            }
        } else {
            contexts(&mut w);
            w.long(9);
            w.bytes.push(1);
            if minor == 1 {
                w.bytes.extend([0; 3]);
            }
            w.octets(key);
            w.octets(format!("{operation}\0").as_bytes());
            w.octets(b"");
        }
        w.bytes.extend(body);
        w.finish()
    }

    fn reply(minor: u8, little: bool, id: u32, status: u32, contexts: bool, body: &[u8]) -> Vec<u8> {
        let mut w = Wire::new(minor, little, 1);
        let list = |w: &mut Wire| {
            w.long(u32::from(contexts));
            if contexts {
                w.long(0x7465_7374);
                w.octets(b"back");
            }
        };
        if minor == 2 {
            w.long(id);
            w.long(status);
            list(&mut w);
            w.align(8);
        } else {
            list(&mut w);
            w.long(id);
            w.long(status);
        }
        w.bytes.extend(body);
        w.finish()
    }
}

/// The parts of a message: header, id, service contexts, the position of its body modulo 8, and the body.
#[derive(Debug)]
struct Seen {
    minor: u8,
    little: bool,
    id: u32,
    status: u32,
    contexts: Vec<(u32, Vec<u8>)>,
    operation: String,
    phase: usize,
    body: Vec<u8>,
}

/// Parses a message.
fn seen(message: &[u8]) -> Seen {
    struct R<'a>(&'a [u8], usize, bool);
    impl R<'_> {
        fn long(&mut self) -> u32 {
            self.1 = self.1.next_multiple_of(4);
            let bytes: [u8; 4] = self.0[self.1..self.1 + 4].try_into().unwrap();
            self.1 += 4;
            if self.2 { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
        }
        fn octets(&mut self) -> Vec<u8> {
            let length = self.long() as usize;
            self.1 += length;
            self.0[self.1 - length..self.1].to_vec()
        }
        fn contexts(&mut self) -> Vec<(u32, Vec<u8>)> {
            (0..self.long()).map(|_| (self.long(), self.octets())).collect()
        }
    }
    let (minor, little, is_request) = (message[5], message[6] & 1 != 0, message[7] == 0);
    let mut r = R(message, 12, little);
    let (mut contexts, mut status, mut operation) = (Vec::new(), 0, Vec::new());
    let id;
    if minor < 2 {
        contexts = r.contexts();
        id = r.long();
    } else {
        id = r.long();
    }
    if is_request {
        r.1 += 1 + if minor == 0 { 0 } else { 3 };
        if minor == 2 {
            r.1 += 2; // the addressing disposition, and the padding before the length
        }
        r.octets();
        operation = r.octets();
        operation.pop();
        if minor < 2 {
            r.octets();
        }
    } else {
        status = r.long();
    }
    if minor == 2 {
        contexts = r.contexts();
        r.1 = r.1.next_multiple_of(8).min(message.len());
    }
    let operation = String::from_utf8(operation).unwrap();
    Seen { minor, little, id, status, contexts, operation, phase: r.1 % 8, body: message[r.1..].to_vec() }
}

/// The bridge passes on bodies of an unknown interface in both byte orders: byte by byte, with the same
/// alignment and the same service contexts. This includes results and user exceptions.
#[test]
fn bodies_of_unknown_interfaces_pass_byte_by_byte() {
    let body: Vec<u8> = (0..1001u32).map(|i| (i * 7) as u8).collect();
    for minor in 0..3u8 {
        for little in [false, true] {
            for (operation, status) in [("what", 0), ("whats", 1), ("whatever_it_is", 0)] {
                let (listener, port) = raw::listen();
                let (orb, bridge) = bridge_with_one_connection(BridgeOptions::default());
                bridge.pass_others_to("127.0.0.1", port);
                let mut client = TcpStream::connect(&orb.published_addresses()[0]).unwrap();
                client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let request = Wire::request(minor, little, b"some key", operation, &body);
                client.write_all(&request).unwrap();
                let (mut server, _) = listener.accept().unwrap();
                server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let (sent, got) = (seen(&request), seen(&raw::read_message(&mut server)));
                assert_eq!((got.minor, got.little, &*got.operation), (minor, little, operation));
                assert_eq!(got.phase, sent.phase, "GIOP 1.{minor}");
                assert_eq!(got.contexts, [(0x7465_7374, b"hello".to_vec())]);
                assert_eq!(got.body, body);
                for answer_little in [little, !little] {
                    let has_contexts = operation == "what";
                    let reply = Wire::reply(
                        minor,
                        answer_little,
                        got.id,
                        status,
                        has_contexts,
                        b"whatever\0 it may be",
                    );
                    if answer_little != little {
                        client.write_all(&request).unwrap();
                        let again = seen(&raw::read_message(&mut server));
                        let reply = Wire::reply(
                            minor,
                            answer_little,
                            again.id,
                            status,
                            has_contexts,
                            b"whatever\0 it may be",
                        );
                        server.write_all(&reply).unwrap();
                    } else {
                        server.write_all(&reply).unwrap();
                    }
                    let (sent, back) = (seen(&reply), seen(&raw::read_message(&mut client)));
                    assert_eq!(
                        (back.minor, back.little, back.id, back.status),
                        (minor, answer_little, 9, status)
                    );
                    assert_eq!((back.phase, &back.body), (sent.phase, &sent.body));
                    let known: Vec<_> = back.contexts.iter().filter(|(id, _)| *id == 0x7465_7374).collect();
                    assert_eq!(known.len(), usize::from(has_contexts));
                }
            }
        }
    }
}

/// A bridge with these definitions, an object of one of the interfaces at a listener, and a connection to
/// the bridge.
fn between(idl: &str, type_id: &str, through: bool) -> (TcpListener, (Orb, Bridge), TcpStream) {
    let (listener, port) = raw::listen();
    let mut types = Interfaces::new();
    types.add_idl_text("test.idl", idl, &Default::default()).unwrap();
    let bridge = bridge_with_one_connection(BridgeOptions {
        types: Some(Arc::new(types)),
        through,
        ..BridgeOptions::default()
    });
    let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", port, b"k", &[]).unwrap();
    let target = bridge.0.ior_to_object(Ior::with_profile(type_id, profile)).unwrap();
    bridge.1.publish(b"k", &target).unwrap();
    let client = TcpStream::connect(&bridge.0.published_addresses()[0]).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (listener, bridge, client)
}

/// A value in chunks, of the first of these types and truncatable to the rest.
fn chunked_value(ids: &[&str], state: &[u8]) -> Vec<u8> {
    let mut w = Wire { little: false, bytes: Vec::new() };
    w.long(0x7FFF_FF0E);
    w.long(ids.len() as u32);
    for id in ids {
        w.octets(format!("IDL:VV/{id}:1.0\0").as_bytes());
    }
    w.octets(state);
    w.long(u32::MAX); // the end tag
    w.bytes
}

/// The bridge never truncates a value of an unknown type to a base. It passes the value on unchanged, or
/// raises an exception where it would have to encode it again.
#[test]
fn values_of_unknown_types_are_never_truncated() {
    const IDL: &str =
        "module VV { valuetype Base { public long a; }; interface T { Base id(in Base b); }; };";
    let base = chunked_value(&["Base"], &[0, 0, 0, 1]);
    let cut = [
        chunked_value(&["Tr", "Base"], &[0, 0, 0, 1, 0, 2]),
        chunked_value(&["Base"], &[0, 0, 0, 1, 0, 2]), // more members than the bridge knows of
        chunked_value(&["Base"], &[0, 0, 0, 1, 0, 0, 0, 2]),
        chunked_value(&["Tr"], &[0, 0, 0, 1, 0, 2]),
    ];
    for through in [false, true] {
        let (listener, (orb, _bridge), mut client) = between(IDL, "IDL:VV/T:1.0", through);
        client.write_all(&Wire::request(2, false, b"k", "id", &base)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut got = seen(&raw::read_message(&mut server));
        // Unchanged, or encoded again: then without chunks, in either byte order.
        let is_whole = |body: &[u8]| *body == base || body.ends_with(&1u32.to_ne_bytes());
        assert!(is_whole(&got.body), "{got:?}");
        server.write_all(&Wire::reply(2, false, got.id, 0, false, &base)).unwrap();
        let back = seen(&raw::read_message(&mut client));
        assert!(back.status == 0 && is_whole(&back.body), "{back:?}");
        for value in &cut {
            client.write_all(&Wire::request(2, false, b"k", "id", value)).unwrap();
            if through {
                assert_is_unknown_value(&seen(&raw::read_message(&mut client)), CompletionStatus::No);
                // The server gets the next request. The exception comes on the way back.
                client.write_all(&Wire::request(2, false, b"k", "id", &base)).unwrap();
            }
            got = seen(&raw::read_message(&mut server));
            assert!(through || got.body == *value, "{got:?}");
            server.write_all(&Wire::reply(2, false, got.id, 0, false, value)).unwrap();
            let back = seen(&raw::read_message(&mut client));
            match through {
                true => assert_is_unknown_value(&back, CompletionStatus::Yes),
                false => assert_eq!((back.status, &back.body), (0, value)),
            }
        }
        drop(server);
        orb.shutdown(true).unwrap();
    }
}

/// A trace shows a value of a derived type as that type, or leaves it out.
#[test]
fn traces_show_values_with_their_types() {
    const IDL: &str = "module VV { valuetype Base { public long a; }; \
        valuetype Tr : truncatable Base { public short b; }; interface T { Base id(in Base b); }; };";
    let (listener, port) = raw::listen();
    let mut types = Interfaces::new();
    types.add_idl_text("test.idl", IDL, &Default::default()).unwrap();
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen_by = shown.clone();
    let (orb, bridge) = bridge_with_one_connection(BridgeOptions {
        types: Some(Arc::new(types)),
        show_values: true,
        observer: Some(Arc::new(move |passed| {
            let values = (&passed.arguments, &passed.results);
            let text = |values: &Option<Vec<serde_json::Value>>| {
                values.as_ref().map_or("none".to_owned(), |it| it[0].to_string())
            };
            seen_by.lock().unwrap().push(format!("{} {}", text(values.0), text(values.1)));
        })),
        ..BridgeOptions::default()
    });
    let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", port, b"k", &[]).unwrap();
    let target = orb.ior_to_object(Ior::with_profile("IDL:VV/T:1.0", profile)).unwrap();
    bridge.publish(b"k", &target).unwrap();
    let mut client = TcpStream::connect(&orb.published_addresses()[0]).unwrap();
    let derived = chunked_value(&["Tr", "Base"], &[0, 0, 0, 1, 0, 2]);
    let unknown = chunked_value(&["Other", "Base"], &[0, 0, 0, 1, 0, 2]);
    client.write_all(&Wire::request(2, false, b"k", "id", &derived)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let got = seen(&raw::read_message(&mut server));
    assert_eq!(got.body, derived);
    server.write_all(&Wire::reply(2, false, got.id, 0, false, &unknown)).unwrap();
    assert_eq!(seen(&raw::read_message(&mut client)).body, unknown);
    let shown = shown.lock().unwrap();
    assert_eq!(*shown, [r#"{"@type":"IDL:VV/Tr:1.0","a":1,"b":2} none"#]);
}

fn assert_is_unknown_value(reply: &Seen, completed: CompletionStatus) {
    assert_eq!(reply.status, 2, "{reply:?}");
    let mut expected = Wire { little: reply.little, bytes: Vec::new() };
    expected.octets(b"IDL:omg.org/CORBA/MARSHAL:1.0\0");
    expected.long(MinorCode::UNKNOWN_VALUE_TYPE.0);
    expected.long(completed as u32);
    assert_eq!(reply.body, expected.bytes, "{reply:?}");
}

/// The bridge learns an object's type later if it could not ask the object at first. Each call asks once
/// until there is an answer, and the bridge does not pass on calls untyped meanwhile.
#[test]
fn objects_that_start_later_are_asked_for_their_types() {
    let (listener, (orb, _bridge), mut client) = between("interface Giver { Object give(); };", "", true);
    let request = Wire::request(2, false, b"k", "give", &[]);
    for _ in 0..2 {
        client.write_all(&request).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(seen(&raw::read_message(&mut server)).operation, "_repository_id");
        drop(server);
        let back = seen(&raw::read_message(&mut client));
        let text = String::from_utf8_lossy(&back.body).into_owned();
        assert!(back.status == 2 && text.contains("CORBA/COMM_FAILURE:1.0"), "{text}");
        let no = CompletionStatus::No as u32;
        assert!(back.body.ends_with(&if back.little { no.to_le_bytes() } else { no.to_be_bytes() }));
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the bridge asks twice for one call");
        listener.set_nonblocking(false).unwrap();
    }
    client.write_all(&request).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Serves until the bridge closes its connections. It may have one for its own questions and one for
    // calls.
    std::thread::spawn(move || {
        for server in listener.incoming() {
            let mut server = server.unwrap();
            std::thread::spawn(move || {
                loop {
                    let message = raw::read_message(&mut server);
                    if message.is_empty() {
                        return;
                    }
                    let got = seen(&message);
                    let mut w = Wire { little: false, bytes: Vec::new() };
                    w.octets(b"IDL:Giver:1.0\0");
                    if got.operation == "give" {
                        w.long(1); // an IIOP profile
                        w.long(0);
                        let mut profile = Wire { little: false, bytes: vec![0, 1, 2, 0] };
                        profile.octets(b"127.0.0.1\0");
                        profile.align(2);
                        profile.bytes.extend(port.to_be_bytes());
                        profile.octets(b"given");
                        profile.long(0);
                        w.octets(&profile.bytes);
                    }
                    server.write_all(&Wire::reply(2, false, got.id, 0, false, &w.bytes)).unwrap();
                }
            });
        }
    });
    let back = seen(&raw::read_message(&mut client));
    assert_eq!(back.status, 0, "{back:?}");
    let text = String::from_utf8_lossy(&back.body).into_owned();
    assert!(
        text.contains("IDL:Giver:1.0") && !text.contains("given"),
        "the reference leads through the bridge: {text}"
    );
    orb.shutdown(true).unwrap();
}

/// A repository is out of reach at first. Not every call asks for it, and no call is refused meanwhile.
#[test]
fn repositories_that_come_late_are_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ir");
    let socket = socket.to_str().unwrap();
    let (server, client, asking) = (server(Version::V1_2), client(), client());
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let mut types = Interfaces::new();
    let root = asking.string_to_object(&format!("corbaloc:uiop:{socket}|InterfaceRepository")).unwrap();
    types.add_repository(&root.narrow_unchecked());
    let shown: Arc<Mutex<Vec<bool>>> = Arc::default();
    let observed = shown.clone();
    let (orb, bridge) = bridge(BridgeOptions {
        types: Some(Arc::new(types)),
        show_values: true,
        observer: Some(Arc::new(move |passed| observed.lock().unwrap().push(passed.arguments.is_some()))),
        ..BridgeOptions::default()
    });
    let target = orb.string_to_object(&probe.object().to_ior_string()).unwrap();
    let reference = bridge.publish(b"probe", &target).unwrap();
    let through: ProbeRef = client.resolve(&reference.to_ior_string()).unwrap();
    let add = |times: usize| (0..times).for_each(|_| assert_eq!(through.add(40, 2).unwrap(), 42));
    add(3); // of which the first two ask the repository
    let repository = Orb::builder().endpoint(&format!("uiop://{socket}")).unwrap().build().unwrap();
    let held = InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default());
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
    held.load(&compile_file(Path::new(idl), &Default::default()).model.unwrap()).unwrap();
    let held = InterfaceRepositoryServer::start(&repository, held).unwrap();
    add(2);
    assert_eq!(*shown.lock().unwrap(), [false, false, false, true, true]);
    // The bridge keeps what it has learnt.
    drop(held);
    repository.shutdown(true).unwrap();
    add(1);
    assert_eq!(shown.lock().unwrap().last(), Some(&true));
    for orb in [client, orb, server, asking] {
        orb.shutdown(true).unwrap();
    }
}
