//! Gather writes: long runs of bytes that are sent from the caller's memory. Every position and size, peers
//! that read slowly or not at all, and arguments that change between two encodings.

use std::cell::Cell;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::dynamic::{self, OperationDescription, ParameterMode, Request};
use ironorb::interceptor::ClientInterceptor;
use ironorb::{
    Any, MinorCode, Orb, OrbBuilder, ServerConcurrency, SystemException, SystemExceptionKind, TypeDef,
    TypedRef, Version,
};
use ironorb_tests::bulk::{Everything, Frame, Pixel, Sample, Store, StoreAsync, StoreRef};
use ironorb_tests::relay::Relay;
use ironorb_tests::{ThreadNumber, eventually, raw};

#[derive(Default)]
struct StoreServant(Mutex<(Vec<u8>, Vec<f64>)>);

impl Store for StoreServant {
    fn all(&self, lead: u8, value: &Everything, last: f64) -> Result<Everything, SystemException> {
        assert_eq!((lead, last), (LEAD, LAST));
        Ok(value.clone())
    }

    fn exchange(&self, data: &[u8], last: f64, lead: u8) -> Result<(Vec<u8>, f64, Vec<u8>), SystemException> {
        assert_eq!((lead, last), (LEAD, LAST));
        Ok((data.to_vec(), last, data.to_vec()))
    }

    fn put(&self, lead: u8, values: &[f64], data: &[u8]) -> Result<(), SystemException> {
        assert_eq!(lead, LEAD);
        let mut stored = self.0.lock().unwrap();
        stored.0.extend(data);
        stored.1.extend(values);
        Ok(())
    }

    fn taken(&self) -> Result<(Vec<u8>, Vec<f64>), SystemException> {
        Ok(std::mem::take(&mut *self.0.lock().unwrap()))
    }

    fn length(&self, data: &[u8]) -> Result<u32, SystemException> {
        Ok(data.len() as u32)
    }

    fn mirror(
        &self,
        pixels: &[Pixel],
        lead: u8,
        samples: &[Sample],
    ) -> Result<(Vec<Pixel>, Vec<Sample>), SystemException> {
        assert_eq!(lead, LEAD);
        Ok((pixels.to_vec(), samples.to_vec()))
    }
}

const LEAD: u8 = 7;
const LAST: f64 = 0.1;

/// Below, at and above the threshold for a gather write (8192 bytes), and more than a socket takes at once.
const SIZES: [usize; 8] = [0, 1, 8191, 8192, 8193, 30_001, 65_536, 3_000_001];

fn octets(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 256) as u8).collect()
}

fn doubles(bytes: usize) -> Vec<f64> {
    (0..bytes / 8).map(|i| i as f64 * 0.5).collect()
}

fn pixels(bytes: usize) -> Vec<Pixel> {
    (0..bytes / 12).map(|i| Pixel { x: i as f32, y: -0.5, tint: i as i32 ^ 0x55 }).collect()
}

fn samples(bytes: usize) -> Vec<Sample> {
    (0..bytes / 16).map(|i| Sample { channel: i as i16, quality: 0xFF, value: i as f64 / 3.0 }).collect()
}

fn everything(sizes: [usize; 7]) -> Everything {
    let [octets_, flags, shorts, longs_, doubles_, frames, other] = sizes;
    let frame = |size| Frame { kind: 3, data: octets(size), scale: 2.5, name: "a frame".to_owned() };
    let longs: Vec<i32> = (0..longs_ as i32 / 4).collect();
    Everything {
        octets: octets(octets_),
        flags: octets(flags).iter().map(|octet| octet % 3 == 0).collect(),
        shorts: (0..shorts / 2).map(|i| i as i16).collect(),
        other: if other == 0 { Any::default() } else { Any::new(&octets(other)).unwrap() },
        longs,
        doubles: doubles(doubles_),
        frames: vec![frame(frames), frame(10), frame(frames)],
        pixels: pixels(longs_),
        samples: samples(doubles_),
    }
}

fn client(set: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Orb {
    let builder = Orb::builder().no_endpoint().call_timeout(Some(Duration::from_secs(60)));
    set(builder).build().unwrap()
}

/// A client whose threads share one connection and send without a limit.
fn client_with_one_connection() -> Orb {
    client(|mut orb| {
        orb.config().connections_per_endpoint_max = 1;
        orb.config().transmit_bytes_max = 64 << 20;
        orb
    })
}

/// A server, a client with these settings, and the client's reference.
fn pair(concurrency: ServerConcurrency, set: impl Fn(OrbBuilder) -> OrbBuilder) -> (Orb, Orb, StoreRef) {
    let server = set(Orb::builder()).endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    let server = server.build().unwrap();
    let store: StoreRef = server.root_poa().activate(StoreServant::default()).unwrap();
    let client = client(set);
    let remote = client.string_to_object(&store.object().to_ior_string()).unwrap().narrow_unchecked();
    (server, client, remote)
}

fn check_all(store: &StoreRef, sizes: [usize; 7]) {
    let value = everything(sizes);
    assert!(store.all(LEAD, &value, LAST).unwrap() == value, "{sizes:?}");
}

/// The data of the oneways, once as much as `length` has arrived. Later requests may overtake a oneway.
fn taken(store: &StoreRef, length: usize) -> (Vec<u8>, Vec<f64>) {
    let mut all = store.taken().unwrap();
    eventually("all has come", || {
        let (data, values) = store.taken().unwrap();
        all.0.extend(data);
        all.1.extend(values);
        all.0.len() >= length
    });
    all
}

fn check_sizes(store: &StoreRef, sizes: &[usize]) {
    for (i, &size) in sizes.iter().enumerate() {
        let data = octets(size);
        let (data_back, last, again) = store.exchange(&data, LAST, LEAD).unwrap();
        assert!(data_back == data && last == LAST && again == data, "{size}");
        store.put(LEAD, &doubles(size), &data).unwrap();
        assert!(taken(store, size) == (data, doubles(size)), "{size}");
        let (some, others) = (pixels(size), samples(size));
        assert!(store.mirror(&some, LEAD, &others).unwrap() == (some, others), "{size}");
        // Every size in every position, between other members.
        check_all(store, std::array::from_fn(|at| sizes[(i * (at + 1) + at) % sizes.len()]));
    }
}

#[test]
fn data_of_every_size_arrives_in_every_version() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let (server, client, store) =
            pair(ServerConcurrency::ThreadPerConnection, |orb| orb.giop_version(version));
        check_sizes(&store, &SIZES);
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}

/// The server's request cache recognises repeated requests by their bytes. The gathered part differs in
/// each.
#[test]
fn repeated_large_requests_carry_their_own_data() {
    let (server, client, store) = pair(ServerConcurrency::ThreadPerConnection, |orb| orb);
    for round in 0..100 {
        let (some, others) = (pixels(20_000 + 12 * round), samples(17_000 + 16 * round));
        assert!(store.mirror(&some, LEAD, &others).unwrap() == (some, others), "{round}");
    }
    for round in 0..100 {
        assert_eq!(store.length(&octets(30_000 + round)).unwrap(), 30_000 + round as u32);
    }
    let id = server.root_poa().reference_to_id(store.object());
    server.root_poa().deactivate(&id.unwrap()).unwrap();
    assert!(store.length(&octets(30_000)).is_err());
    client.shutdown(false).unwrap();
    server.shutdown(false).unwrap();
}

#[test]
fn data_arrives_in_fragments() {
    for version in [Version::V1_1, Version::V1_2] {
        let (server, client, store) = pair(ServerConcurrency::LeaderFollowers { threads: 2 }, |mut orb| {
            orb.config().connection.fragment_bytes = Some(9_000);
            orb.config().connection.fragments_in_giop_1_1 = true;
            orb.giop_version(version)
        });
        check_sizes(&store, &SIZES[3..7]);
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}

/// An interceptor that does nothing.
struct Silent;

impl ClientInterceptor for Silent {
    fn name(&self) -> &str {
        "silent"
    }
}

#[test]
fn data_arrives_with_interceptors() {
    let (server, _, store) = pair(ServerConcurrency::ThreadPerConnection, |orb| orb);
    let client = client(|orb| orb.client_interceptor(Silent));
    let store: StoreRef =
        client.string_to_object(&store.object().to_ior_string()).unwrap().narrow_unchecked();
    check_sizes(&store, &SIZES[3..7]);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// Many threads share one connection, and the server reads little at a time. A request that waits for
/// another thread's long message is sent after it. Replies come meanwhile.
#[test]
fn threads_share_a_slow_connection() {
    let (server, _, store) = pair(ServerConcurrency::LeaderFollowers { threads: 2 }, |orb| orb);
    let relay = Relay::to(store.object());
    let client = client(|mut orb| {
        orb.config().connections_per_endpoint_max = 1;
        orb
    });
    let store: StoreRef = client.string_to_object(&relay.ior_of(store.object())).unwrap().narrow_unchecked();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let long = octets(2_000_000 + thread);
                for i in 0..8 {
                    assert_eq!(store.length(&long).unwrap() as usize, 2_000_000 + thread);
                    assert_eq!(store.length(&long[..i]).unwrap() as usize, i);
                    check_all(store, [9_000 * i, 0, 0, 20_000, 0, 300_000, 0]);
                }
            });
        }
        let store = &store;
        scope.spawn(move || {
            // Asynchronous calls, whose requests are written while long ones are being sent.
            for round in 0..20 {
                let data = octets(10_000);
                let calls: Vec<_> = (0..5).map(|i| store.length_async(&data[..i * 2_000])).collect();
                for (i, call) in calls.into_iter().enumerate() {
                    assert_eq!(call.wait().unwrap() as usize, i * 2_000, "{round}");
                }
            }
        });
    });
    assert_eq!(relay.connections(), 1);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// A request whose deadline expires stays whole. The next request sends the rest of it.
#[test]
fn a_long_request_past_its_deadline_is_finished() {
    let (listener, port) = raw::listen();
    let client = client(|orb| orb.call_timeout(Some(Duration::from_secs(1))));
    let store: StoreRef =
        client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let data = octets(20_000_000);
    let e = store.length(&data).unwrap_err();
    assert_eq!((e.kind, e.minor), (SystemExceptionKind::Timeout, MinorCode::CALL_TIMEOUT), "{e}");
    let (mut stream, _) = listener.accept().unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let long = raw::read_message(&mut stream);
            let short = raw::read_message(&mut stream);
            raw::write(&mut stream, &raw::reply(raw::id_of(&short), 0, &[0, 0, 0, 5]));
            (long, short)
        });
        // The rest of the first request may still delay the second.
        let answered = (0..10).any(|_| store.length(&data[..5]).is_ok());
        let (long, short) = reader.join().unwrap();
        assert!(long.ends_with(&data) && short.ends_with(&data[..5]));
        let _ = answered;
    });
}

/// A long request that begins while another is being sent follows it and is not mixed into it.
#[test]
fn a_long_message_waits_for_another() {
    let (listener, port) = raw::listen();
    let client = client_with_one_connection();
    let store: StoreRef =
        client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    // More than the sockets' buffers take, so that sending does not end before the peer reads.
    let (first, second) = (vec![0xAA; 6_000_000], vec![0xBB; 6_000_000]);
    std::thread::scope(|scope| {
        let begun = scope.spawn(|| store.length(&first));
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.peek(&mut [0; 12]).unwrap() > 0);
        let e = store.with_timeout(Some(Duration::from_millis(300))).length(&second).unwrap_err();
        assert_eq!(e.kind, SystemExceptionKind::Timeout, "{e}");
        let message = raw::read_message(&mut stream);
        assert!(message.ends_with(&first));
        raw::write(&mut stream, &raw::reply(raw::id_of(&message), 0, &6_000_000u32.to_be_bytes()));
        assert_eq!(begun.join().unwrap().unwrap(), 6_000_000);
        // The second request was withdrawn, or follows whole.
        scope.spawn(|| client.shutdown(true).unwrap());
        let message = raw::read_message(&mut stream);
        assert!(message.is_empty() || message.ends_with(&second) || message[7] != 0, "{}", message.len());
    });
}

/// A caller gets its reply even if requests behind its own cannot be sent.
#[test]
fn an_answered_call_does_not_wait_for_requests_behind_it() {
    let (listener, port) = raw::listen();
    let client = client_with_one_connection();
    let store: StoreRef =
        client.string_to_object(&format!("corbaloc::1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let (late, behind) = (octets(20_000_000), octets(30_000_000));
    let e = store.with_timeout(Some(Duration::from_millis(500))).length(&late).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Timeout, "{e}");
    let (mut stream, _) = listener.accept().unwrap();
    // Skips CancelRequests.
    let request = |stream: &mut std::net::TcpStream| loop {
        let message = raw::read_message(stream);
        if message[7] == 0 {
            break message;
        }
    };
    let answer = |stream: &mut std::net::TcpStream, message: &[u8]| {
        raw::write(stream, &raw::reply(raw::id_of(message), 0, &[0, 0, 0, 7]));
    };
    std::thread::scope(|scope| {
        let (thread, number) = std::sync::mpsc::channel();
        let (store, late) = (&store, &late);
        let short = scope.spawn(move || {
            thread.send(ThreadNumber::own()).unwrap();
            store.length(&late[..5])
        });
        // Its request cannot leave before the first, of which the peer has read nothing.
        let number = number.recv().unwrap();
        eventually("it waits", || number.is_asleep());
        let long = scope.spawn(|| store.length(&behind));
        assert!(request(&mut stream).ends_with(late));
        let mut message = request(&mut stream);
        if message.len() > 1000 {
            answer(&mut stream, &message);
            message = request(&mut stream);
            answer(&mut stream, &message);
            assert_eq!(short.join().unwrap().unwrap(), 7);
        } else {
            answer(&mut stream, &message);
            assert_eq!(short.join().unwrap().unwrap(), 7);
            message = request(&mut stream);
            answer(&mut stream, &message);
        }
        assert_eq!(long.join().unwrap().unwrap(), 7);
    });
}

/// When the peer sends CloseConnection, the client sends the request again on the next connection: whole,
/// and once.
#[test]
fn a_long_request_is_sent_again_after_close_connection() {
    let (listener, port) = raw::listen();
    let client = client(|orb| orb);
    let store: StoreRef =
        client.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let data = octets(500_000);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            let before = raw::read_message(&mut first);
            raw::write(&mut first, &raw::reply(raw::id_of(&before), 0, &[0, 0, 0, 1]));
            raw::write(&mut first, &raw::message(raw::CLOSE, &[]));
            let (mut second, _) = listener.accept().unwrap();
            let request = raw::read_message(&mut second);
            raw::write(&mut second, &raw::reply(raw::id_of(&request), 0, &[0, 7, 161, 32]));
            let mut rest = Vec::new();
            second.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let _ = second.read_to_end(&mut rest);
            drop(first);
            (request, rest)
        });
        assert_eq!(store.length(&data[..1]).unwrap(), 1);
        assert_eq!(store.length(&data).unwrap(), 500_000);
        let (request, rest) = server.join().unwrap();
        assert!(request.ends_with(&data) && rest.is_empty());
    });
}

/// A call whose arguments come out differently in its second encoding fails, and its connection closes. No
/// wrong data arrives.
#[test]
fn arguments_that_change_between_encodings_are_refused() {
    let (server, client, store) = pair(ServerConcurrency::ThreadPerConnection, |orb| orb);
    let data = octets(100_000);
    let times = Cell::new(0);
    for change in [1, 2] {
        times.set(0);
        let e = dynamic::call_raw(store.object(), "length", &|w| {
            times.set(times.get() + 1);
            let length = if times.get() == change { 100_000 } else { 50_000 };
            w.write_octets(&data[..length])
        })
        .unwrap_err();
        assert_eq!((e.kind, times.get()), (SystemExceptionKind::BadParam, 2), "{e}");
        assert_eq!(store.length(&data).unwrap(), 100_000, "the next call uses a new connection");
    }
    // A panic in the second encoding closes the connection too.
    times.set(0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        dynamic::call_raw(store.object(), "length", &|w| {
            times.set(times.get() + 1);
            assert_eq!(times.get(), 1, "the panic comes in the second encoding");
            w.write_octets(&data)
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(store.length(&data).unwrap(), 100_000);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// Requests built at run time use gather writes too.
#[test]
fn dynamic_requests_use_gather_writes() {
    let octets_type = || &TypeDef::Sequence { element: &TypeDef::Octet, bound: 0 };
    let doubles_type = || &TypeDef::Sequence { element: &TypeDef::Double, bound: 0 };
    let put = Arc::new(
        OperationDescription::new("put")
            .parameter("lead", ParameterMode::In, &TypeDef::Octet)
            .parameter("value", ParameterMode::In, doubles_type())
            .parameter("data", ParameterMode::In, octets_type())
            .oneway(),
    );
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let (server, client, store) =
            pair(ServerConcurrency::ThreadPerConnection, |orb| orb.giop_version(version));
        for size in SIZES {
            let (data, values) = (octets(size), doubles(size));
            let mut request = Request::new(store.object(), put.clone());
            request.set(0, &LEAD).unwrap();
            request.borrow(1, &values).unwrap();
            request.set_any(2, &Any::new(&data).unwrap()).unwrap();
            for _ in 0..2 {
                request.send_oneway().unwrap();
            }
            let twice = ([&data[..], &data].concat(), [&values[..], &values].concat());
            assert!(taken(&store, 2 * size) == twice, "{size}");
        }
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}
