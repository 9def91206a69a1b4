//! Deadlines that requests carry: servers drop what is too late, and servants and their calls know the rest. Whether a
//! request is late is decided by what it says, so no test waits for time to pass.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ironorb::interceptor::{RequestFacts, ServerContext, ServerInterceptor};
use ironorb::{
    CompletionStatus, Deferred, MinorCode, Orb, OrbBuilder, Reply, ServerConcurrency, SystemException,
    SystemExceptionKind, TypedRef, remaining_time, with_timeout,
};
use ironorb_tests::bulk::{Everything, Pixel, Sample, Store, StoreRef};
use ironorb_tests::testing::{DeferredUnrelated, Probe, ProbeAsync, ProbeRef, Unrelated, UnrelatedRef};
use ironorb_tests::{Hooked, Probing, eventually, raw};

/// The number of the context (`docs/wire.md`).
const DEADLINE: u32 = 0x494F_5202;

const SECOND: u64 = 1_000_000_000;

/// A context with a deadline, big-endian.
fn deadline(budget_ns: u64, sent_ns: u64, clock: u64) -> (u32, Vec<u8>) {
    let numbers = [0, budget_ns, sent_ns, clock].map(u64::to_be_bytes);
    (DEADLINE, numbers.concat())
}

fn listening() -> OrbBuilder {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap()
}

fn reference_in<R: TypedRef>(client: &Orb, served: &R) -> R {
    client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked()
}

/// What a servant learns.
type Seen = Arc<Mutex<Vec<Option<Duration>>>>;

fn noting(seen: &Seen) -> Hooked {
    let seen = seen.clone();
    Hooked::new(move || {
        seen.lock().unwrap().push(remaining_time());
        Ok(())
    })
}

fn taken(seen: &Seen) -> Vec<Option<Duration>> {
    std::mem::take(&mut seen.lock().unwrap())
}

/// The status and the minor code of the answer to a request.
fn answer(stream: &mut TcpStream, request: &[u8]) -> (u32, u32, u32) {
    raw::write(stream, request);
    let reply = raw::read_message(stream);
    let number = |at: usize| {
        let bytes: [u8; 4] = reply[at..at + 4].try_into().unwrap();
        if reply[6] & 1 != 0 { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    let status = number(16);
    let end = reply.len();
    if status == 2 { (status, number(end - 8), number(end - 4)) } else { (status, 0, 0) }
}

const SERVED: (u32, u32, u32) = (0, 0, 0);
/// A system exception, COMPLETED_NO.
const LATE: (u32, u32, u32) = (2, MinorCode::REQUEST_TOO_LATE.0, 1);

/// All ways to a servant.
fn servers() -> Vec<OrbBuilder> {
    struct Passive;
    impl ServerInterceptor for Passive {}
    struct Reads;
    impl ServerContext for Reads {
        fn id(&self) -> u32 {
            0x494F_0046
        }
        fn serve(&self, _: &RequestFacts<'_>, _: Option<&[u8]>, upcall: &mut dyn FnMut()) {
            upcall();
        }
    }
    let propagating = || listening().deadline_propagation(true);
    vec![
        propagating(),
        propagating().concurrency(ServerConcurrency::LeaderFollowers { threads: 1 }),
        propagating().concurrency(ServerConcurrency::Hybrid { threads_max: 2 }),
        propagating().server_context(Reads),
        propagating().server_interceptor(Passive),
    ]
}

/// A client whose clock is hours away, and behind as well as ahead. Its requests are parsed first, and then recognised.
#[test]
fn requests_that_waited_in_the_socket_are_dropped_whatever_the_clocks_show() {
    for (builder, base) in servers()
        .into_iter()
        .flat_map(|builder| [20_000 * SECOND, u64::MAX / 4, 1_000_000].map(|base| (builder.clone(), base)))
    {
        let server = builder.build().unwrap();
        let seen = Seen::default();
        let served: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
        let mut stream = raw::connect(served.object());
        let mut ping = |budget: u64, sent: u64| {
            let contexts = [deadline(budget, sent, 1)];
            answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[]))
        };
        // Nothing is known of the clock: all of the budget is left.
        assert_eq!(ping(5 * SECOND, base + 100 * SECOND), SERVED);
        assert_eq!(taken(&seen).len(), 1);
        for round in 0..150 {
            // It was sent a minute before the one above by the client's clock, and came after it.
            let earlier = base + 40 * SECOND;
            assert_eq!(ping(5 * SECOND, earlier), LATE, "{round}");
            assert_eq!(ping(600 * SECOND, earlier), SERVED, "{round}");
            let [Some(left)] = taken(&seen)[..] else {
                panic!("the servant sees the second alone, with its time")
            };
            assert!(left <= Duration::from_secs(541), "a minute has gone: {left:?}");
            assert!(left >= Duration::from_secs(300), "{left:?}");
        }
        assert_eq!(server.late_requests(), 150);
        // Another clock is not known again.
        let contexts = [deadline(5 * SECOND, base, 2)];
        assert_eq!(answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[])), SERVED);
        server.shutdown(true).unwrap();
    }
}

#[test]
fn late_oneways_are_dropped_in_silence_and_counted() {
    for builder in servers() {
        let server = builder.build().unwrap();
        let served: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let mut stream = raw::connect(served.object());
        let mut tick = |sent: u64| {
            let contexts = [deadline(60 * SECOND, sent, 1)];
            let mut request = raw::request_with(served.object(), "tick", &contexts, &[]);
            request[16] = 0; // no response
            raw::write(&mut stream, &request);
        };
        tick(100 * SECOND);
        for _ in 0..20 {
            tick(SECOND);
        }
        tick(100 * SECOND + 1);
        eventually("all have come", || served.ticks().unwrap() == 2 && server.late_requests() == 20);
        server.shutdown(true).unwrap();
    }
}

#[test]
fn contexts_that_cannot_be_read_count_as_none() {
    let server = listening().deadline_propagation(true).build().unwrap();
    let seen = Seen::default();
    let served: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
    let mut stream = raw::connect(served.object());
    let whole = deadline(0, 0, 0).1;
    let mut data: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    data.push([&[7], &whole[1..]].concat());
    for data in data {
        let contexts = [(DEADLINE, data)];
        assert_eq!(answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[])), SERVED);
        assert_eq!(taken(&seen), [None]);
    }
    // No budget at all is late even if nothing is known of the clock.
    for numbers in [(0, 0, 0), (0, u64::MAX, u64::MAX), (0, 1, 1)] {
        let contexts = [deadline(numbers.0, numbers.1, numbers.2)];
        assert_eq!(answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[])), LATE);
    }
    // Budgets without end are none.
    for budget in [u64::MAX, u64::MAX - 1] {
        let contexts = [deadline(budget, 5, 9)];
        assert_eq!(answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[])), SERVED);
    }
    server.shutdown(true).unwrap();
}

#[test]
fn servants_learn_how_long_their_callers_wait() {
    for builder in servers() {
        let server = builder.build().unwrap();
        let seen = Seen::default();
        let served: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
        let client = Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
        let probe = reference_in(&client, &served);
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
        for _ in 0..150 {
            probe.ping().unwrap();
            with_timeout(Some(hour), || probe.ping()).unwrap();
            with_timeout(None, || probe.ping()).unwrap();
            with_timeout(Some(hour), || probe.ping_async()).wait().unwrap();
            let [plain, long, none, later] = taken(&seen)[..] else { panic!("four calls") };
            assert!(plain.is_some_and(|left| left <= minute), "the default: {plain:?}");
            assert!(long.is_some_and(|left| left <= hour && left > minute), "{long:?}");
            assert_eq!(none, None);
            assert!(later.is_some_and(|left| left <= hour && left > minute), "{later:?}");
        }
        assert_eq!(server.late_requests(), 0);
        assert_eq!(remaining_time(), None);
        // A client without the setting tells nothing.
        let silent = Orb::builder().no_endpoint().build().unwrap();
        reference_in(&silent, &served).ping().unwrap();
        assert_eq!(taken(&seen), [None]);
        for orb in [client, silent, server] {
            orb.shutdown(true).unwrap();
        }
    }
}

#[test]
fn a_server_without_the_setting_ignores_the_context() {
    let server = listening().build().unwrap();
    let seen = Seen::default();
    let served: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
    let mut stream = raw::connect(served.object());
    for _ in 0..150 {
        let contexts = [deadline(0, 0, 0)];
        assert_eq!(answer(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[])), SERVED);
    }
    assert_eq!(taken(&seen), vec![None; 150]);
    assert_eq!(server.late_requests(), 0);
    server.shutdown(true).unwrap();
}

/// Nested calls have the rest of the time, or their own if that is nearer; so have calls by message within the process.
#[test]
fn calls_in_an_upcall_have_the_rest_of_its_time() {
    struct Later(Seen);
    impl DeferredUnrelated for Later {
        fn nothing(&self, reply: Reply<(), SystemException>) {
            self.0.lock().unwrap().push(reply.remaining_time());
            reply.send(Ok(()));
        }
    }
    let server = listening().deadline_propagation(true).build().unwrap();
    let middle = listening().deadline_propagation(true).build().unwrap();
    let client = Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
    let (seen, here) = (Seen::default(), Seen::default());
    let last: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
    let last = reference_in(&middle, &last);
    let beside: UnrelatedRef = middle.root_poa().activate(Deferred(Later(here.clone()))).unwrap();
    let hooked = Hooked::new(move || {
        last.ping()?;
        with_timeout(Some(Duration::from_secs(5)), || last.ping())?;
        with_timeout(None, || last.ping())?;
        last.ping_async().wait()?;
        beside.nothing()
    });
    let served: ProbeRef = middle.root_poa().activate(hooked).unwrap();
    let probe = reference_in(&client, &served);
    let most = Duration::from_secs(20);
    for _ in 0..100 {
        with_timeout(Some(most), || probe.ping()).unwrap();
        let [rest, own, without, later] = taken(&seen)[..] else { panic!("four calls") };
        let is_rest = |left: Option<Duration>| left.is_some_and(|left| left <= most);
        assert!(is_rest(rest) && is_rest(without) && is_rest(later), "{rest:?} {without:?} {later:?}");
        assert!(own.is_some_and(|left| left <= Duration::from_secs(5)), "{own:?}");
        let [beside] = taken(&here)[..] else { panic!("one call") };
        assert!(is_rest(beside), "{beside:?}");
    }
    for orb in [client, middle, server] {
        orb.shutdown(true).unwrap();
    }
}

/// A server that takes a request for late although its caller still waits is wrong about the caller's clock. The request
/// is sent again, by a clock with another number.
#[test]
fn a_request_that_is_not_late_is_sent_again() {
    let (listener, port) = raw::listen();
    let client = Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
    let probe: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let clocks = thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut clocks = Vec::new();
            for round in 0..3 {
                let request = raw::read_message(&mut stream);
                clocks.push(clock_of(&request));
                let id = raw::id_of(&request);
                let late = late_exception();
                let (status, body) = if round == 1 { (2, &late[..]) } else { (0, &[][..]) };
                raw::write(&mut stream, &raw::reply(id, status, body));
            }
            clocks
        });
        probe.ping().unwrap();
        probe.ping().unwrap(); // late, and again
        server.join().unwrap()
    });
    assert_eq!(clocks[0], clocks[1]);
    assert_ne!(clocks[1], clocks[2]);
    client.shutdown(true).unwrap();
}

/// Only a client that sends deadlines doubts a server that takes its request for late, and only once a call.
#[test]
fn a_server_that_insists_is_believed() {
    for (sends_deadlines, requests) in [(false, 1), (true, 2)] {
        let (listener, port) = raw::listen();
        let client = Orb::builder().no_endpoint().deadline_propagation(sends_deadlines).build().unwrap();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x");
        let probe: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                for _ in 0..requests {
                    let request = raw::read_message(&mut stream);
                    raw::write(&mut stream, &raw::reply(raw::id_of(&request), 2, &late_exception()));
                }
                stream
            });
            let late = probe.ping().unwrap_err();
            assert_eq!((late.kind, late.minor), (SystemExceptionKind::Timeout, MinorCode::REQUEST_TOO_LATE));
            client.shutdown(true).unwrap();
            server.join().expect("all these requests have come");
        });
    }
}

/// A TIMEOUT in big-endian octets.
fn late_exception() -> Vec<u8> {
    let id = b"IDL:omg.org/CORBA/TIMEOUT:1.0\0";
    let mut body = (id.len() as u32).to_be_bytes().to_vec();
    body.extend(id);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(MinorCode::REQUEST_TOO_LATE.0.to_be_bytes());
    body.extend(1_u32.to_be_bytes());
    body
}

/// The number of the clock in the deadline of a request.
fn clock_of(request: &[u8]) -> [u8; 8] {
    let id = DEADLINE.to_ne_bytes();
    let at = (0..request.len()).find(|&at| request[at..].starts_with(&id)).expect("it has a deadline");
    request[at + 8 + 24..at + 8 + 32].try_into().unwrap()
}

/// Requests with long sequences are dropped too, before their arguments are read.
#[test]
fn large_requests_have_deadlines_too() {
    struct Takes(Seen);
    #[rustfmt::skip]
    impl Store for Takes {
        fn all(&self, _: u8, value: &Everything, _: f64)
            -> Result<Everything, SystemException> { Ok(value.clone()) }
        fn exchange(&self, data: &[u8], last: f64, _: u8)
            -> Result<(Vec<u8>, f64, Vec<u8>), SystemException> { Ok((data.to_vec(), last, data.to_vec())) }
        fn put(&self, _: u8, _: &[f64], _: &[u8]) -> Result<(), SystemException> { Ok(()) }
        fn taken(&self) -> Result<(Vec<u8>, Vec<f64>), SystemException> { Ok((Vec::new(), Vec::new())) }
        fn length(&self, data: &[u8]) -> Result<u32, SystemException> {
            self.0.lock().unwrap().push(remaining_time());
            Ok(data.len() as u32)
        }
        fn mirror(&self, pixels: &[Pixel], _: u8, samples: &[Sample])
            -> Result<(Vec<Pixel>, Vec<Sample>), SystemException>
        {
            self.0.lock().unwrap().push(remaining_time());
            Ok((pixels.to_vec(), samples.to_vec()))
        }
    }
    let samples: Vec<Sample> =
        (0..3000).map(|i| Sample { channel: i as i16, quality: 1, value: f64::from(i) }).collect();
    for builder in servers() {
        let server = builder.build().unwrap();
        let client = Orb::builder().no_endpoint().deadline_propagation(true).build().unwrap();
        let seen = Seen::default();
        let served: StoreRef = server.root_poa().activate(Takes(seen.clone())).unwrap();
        let store = reference_in(&client, &served);
        for _ in 0..100 {
            assert!(store.mirror(&[], 7, &samples).unwrap().1 == samples);
        }
        let told = taken(&seen);
        assert!(told.len() == 100 && told.iter().all(Option::is_some), "{told:?}");
        let mut stream = raw::connect(served.object());
        let mut length = |announced: u32, budget: u64, sent: u64| {
            let arguments = [&announced.to_be_bytes()[..], &vec![7; OCTETS as usize]].concat();
            let contexts = [deadline(budget, sent, 1)];
            answer(&mut stream, &raw::request_with(served.object(), "length", &contexts, &arguments))
        };
        // Parsed first, and then recognised. What is late is so by 100 seconds.
        for round in 0..150 {
            let (now, earlier) = ((1_000 + round) * SECOND, (900 + round) * SECOND);
            assert_eq!(length(OCTETS, 600 * SECOND, now), SERVED, "{round}");
            assert_eq!(taken(&seen).len(), 1);
            assert_eq!(length(OCTETS, SECOND, earlier), LATE, "{round}");
            // Arguments that cannot be read show whether they are.
            assert_eq!(length(OCTETS + 1, SECOND, earlier), LATE, "{round}");
            let (status, minor, _) = length(OCTETS + 1, 600 * SECOND, now);
            assert!(status == 2 && minor != LATE.1, "{status} {minor}");
            assert!(taken(&seen).is_empty(), "neither is passed to the servant");
        }
        assert_eq!(server.late_requests(), 300);
        for orb in [client, server] {
            orb.shutdown(true).unwrap();
        }
    }
}

/// More than a message may have that is served as a small one.
const OCTETS: u32 = 50_000;

#[test]
fn a_call_that_has_no_time_left_is_not_made() {
    let server = listening().deadline_propagation(true).build().unwrap();
    let seen = Seen::default();
    let last: ProbeRef = server.root_poa().activate(noting(&seen)).unwrap();
    let middle = listening().deadline_propagation(true).build().unwrap();
    let last = reference_in(&middle, &last);
    let failures: Arc<Mutex<Vec<SystemException>>> = Arc::default();
    let noted = failures.clone();
    let hooked = Hooked::new(move || {
        // The caller's time goes by while the servant looks at it.
        eventually("the time is over", || remaining_time() == Some(Duration::ZERO));
        let failed = [last.ping(), last.tick(), last.ping_async().wait()];
        noted.lock().unwrap().extend(failed.into_iter().filter_map(Result::err));
        Ok(())
    });
    let served: ProbeRef = middle.root_poa().activate(hooked).unwrap();
    let mut stream = raw::connect(served.object());
    // A raw client, so that no end of its own call disturbs.
    let contexts = [deadline(300_000_000, 1, 1)];
    raw::write(&mut stream, &raw::request_with(served.object(), "ping", &contexts, &[]));
    let _reply = raw::read_message(&mut stream);
    let failures = failures.lock().unwrap();
    assert!(failures.len() >= 2, "{failures:?}");
    for e in failures.iter() {
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No), "{e}");
    }
    assert!(taken(&seen).is_empty());
    drop(stream);
    for orb in [middle, server] {
        orb.shutdown(true).unwrap();
    }
}
