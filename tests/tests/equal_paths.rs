//! Calls on a fast path end as they do on the general path, whatever the messages are.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use ironorb::generated::{Call, Replied};
use ironorb::interceptor::{ClientInterceptor, RequestFacts, ServerContext, ServerInterceptor};
use ironorb::poa::{IdAssignment, ObjectId, PoaPolicies};
use ironorb::{
    CompletionStatus, Demultiplexing, MinorCode, Orb, OrbBuilder, Servant, ServerConcurrency,
    SystemException, SystemExceptionKind, TypedRef,
};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, raw};
use proptest::prelude::*;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// One octet of a message that is changed: the position modulo the length, and what is xored.
type Change = (usize, u8);

/// Changes a message, but for the number and byte order of its size: a reader would wait for octets that never come.
fn apply(changes: &[Change], message: &mut [u8]) {
    const BYTE_ORDER: (usize, u8) = (6, 1);
    for &(at, bits) in changes {
        match at % message.len() {
            8..12 => {}
            at if at == BYTE_ORDER.0 => message[at] ^= bits & !BYTE_ORDER.1,
            at => message[at] ^= bits,
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    // Most messages are whole, or differ in their first octets, where the headers are.
    let change =
        (prop_oneof![3 => 0..40usize, 1 => 0..200usize], prop_oneof![Just(1u8), Just(2), any::<u8>()]);
    prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(change, 1..3)]
}

// The client: the fast path, and `RemoteCall` with `Link::call`.

/// An interceptor that does nothing. With it, calls take the general path.
struct Passive;

impl ClientInterceptor for Passive {}

/// What a server answers to one request.
#[derive(Debug, Clone)]
struct Answer {
    is_little: bool,
    minor: u8,
    id_offset: u32,
    status: u32,
    /// Octets of a service context; `None` for no context.
    context: Option<Vec<u8>>,
    body: Vec<u8>,
    changes: Vec<Change>,
    /// A message of this type, without a body, follows at once.
    followed_by: Option<u8>,
    /// Where the octets are parted into two writes.
    cut: usize,
}

fn answers() -> impl Strategy<Value = Answer> {
    let exception =
        [&[0, 0, 0, 31], &b"IDL:omg.org/CORBA/NO_MEMORY:1.0"[..30], &[0, 0, 0, 0, 0, 7, 0, 0, 0, 1]];
    let body = prop_oneof![
        4 => any::<u32>().prop_map(|sum| sum.to_be_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..80),
        1 => Just(exception.concat()),
    ];
    let status = prop_oneof![5 => Just(0u32), 1 => 1..7u32, 1 => any::<u32>()];
    let head =
        (any::<bool>(), prop_oneof![6 => Just(2u8), 1 => 0..5u8], prop_oneof![8 => Just(0u32), 1 => 1..3u32]);
    let context = prop::option::weighted(0.3, prop::collection::vec(any::<u8>(), 0..20));
    let followed_by = prop::option::weighted(0.3, 0..9u8);
    (head, status, context, body, changes(), followed_by, 0..120usize).prop_map(
        |((is_little, minor, id_offset), status, context, body, changes, followed_by, cut)| Answer {
            is_little,
            minor,
            id_offset,
            status,
            context,
            body,
            changes,
            followed_by,
            cut,
        },
    )
}

impl Answer {
    /// The octets of the answer to a request with this id.
    fn bytes(&self, id: [u8; 4]) -> Vec<u8> {
        let number = |value: u32| if self.is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let mut body = Vec::new();
        let id = number(u32::from_be_bytes(id).wrapping_add(self.id_offset));
        let contexts = match &self.context {
            None => number(0).to_vec(),
            Some(data) => {
                let mut list = [number(1), number(0x494F_0099), number(data.len() as u32)].concat();
                list.extend(data);
                list
            }
        };
        let fields: [&[u8]; 3] = match self.minor {
            0 | 1 => [&contexts, &id, &number(self.status)],
            _ => [&id, &number(self.status), &contexts],
        };
        for field in fields {
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend(field);
        }
        if !self.body.is_empty() {
            let alignment = if self.minor < 2 { 4 } else { 8 };
            body.resize((body.len() + 12).next_multiple_of(alignment) - 12, 0);
            body.extend(&self.body);
        }
        let message = |kind: u8, body: &[u8]| {
            let mut bytes = vec![b'G', b'I', b'O', b'P', 1, self.minor, u8::from(self.is_little), kind];
            bytes.extend(number(body.len() as u32));
            bytes.extend(body);
            bytes
        };
        let mut bytes = message(1, &body);
        apply(&self.changes, &mut bytes);
        if let Some(kind) = self.followed_by {
            bytes.extend(message(kind, &[]));
        }
        bytes
    }

    /// Answers one request and then closes the connection. Returns the request, but for its id.
    fn give(&self, stream: &mut TcpStream) -> Vec<u8> {
        let mut request = raw::read_message(stream);
        if request.len() >= 16 {
            let bytes = self.bytes(raw::id_of(&request));
            let (first, second) = bytes.split_at(self.cut.min(bytes.len()));
            // The client may have closed the connection after the first part.
            let _ = stream.write_all(first).and_then(|()| stream.write_all(second));
            request[12..16].fill(0);
        }
        request
    }
}

/// What the caller sees, and what the server sees.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Result<i32, (SystemExceptionKind, MinorCode, CompletionStatus)>,
    requests: Vec<Vec<u8>>,
}

impl Seen {
    /// True when this may come of an answer after which the client sends its request again. The server has closed the
    /// connection meanwhile, and perhaps sent something else before. Whether the client knows that when it sends, and connects
    /// again, is a matter of time. The answer may also have the client name the object in another way from then on.
    fn has_been_sent_again(&self) -> bool {
        const ENDS: [MinorCode; 3] =
            [MinorCode::CONNECTION_LOST, MinorCode::MALFORMED_REPLY, MinorCode::PEER_MESSAGE_ERROR];
        let later = self.requests.get(1..).unwrap_or_default();
        let are_alike = later.windows(2).all(|two| two[0] == two[1]);
        are_alike
            && self.outcome.is_err_and(|end| match end {
                (SystemExceptionKind::CommFailure, minor, CompletionStatus::Maybe) => ENDS.contains(&minor),
                (SystemExceptionKind::Transient, minor, CompletionStatus::No) => {
                    ENDS.contains(&minor)
                        || [MinorCode::FORWARD_LOOP, MinorCode::PEER_CLOSED].contains(&minor)
                }
                _ => false,
            })
    }
}

/// Calls an operation over a connection that has carried a call before. The server gives this answer, and closes the
/// connection; it does so also on further connections.
fn call_answered(client: &Orb, answer: &Answer) -> Seen {
    let (listener, port) = raw::listen();
    let probe: ProbeRef =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x")).unwrap().narrow_unchecked();
    let requests = Mutex::new(Vec::new());
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_first = true;
            while let Ok((mut stream, _)) = listener.accept() {
                if std::mem::take(&mut is_first) {
                    // Without an open connection no call takes the fast path.
                    let ping = raw::read_message(&mut stream);
                    raw::write(&mut stream, &raw::reply(raw::id_of(&ping), 0, &[]));
                }
                let request = answer.give(&mut stream);
                if request.is_empty() {
                    return; // the caller below has ended
                }
                requests.lock().unwrap().push(without_port(request));
            }
        });
        probe.ping().unwrap();
        let outcome = probe.add(2, 3);
        drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
        outcome
    });
    let outcome = outcome.map_err(|e: SystemException| (e.kind, e.minor, e.completed));
    Seen { outcome, requests: requests.into_inner().unwrap() }
}

/// A request that names the object by its profile has the server's port in it, and each server has another one.
fn without_port(mut request: Vec<u8>) -> Vec<u8> {
    const HOST: &[u8] = b"127.0.0.1\0";
    let hosts: Vec<usize> = (0..request.len()).filter(|&at| request[at..].starts_with(HOST)).collect();
    for at in hosts {
        request.iter_mut().skip(at + HOST.len()).take(2).for_each(|octet| *octet = 0);
    }
    request
}

#[test]
fn a_reply_leads_to_one_outcome_on_the_fast_path_and_with_an_interceptor() {
    let fast = Orb::builder().no_endpoint().build().unwrap();
    let general = Orb::builder().no_endpoint().client_interceptor(Passive).build().unwrap();
    proptest!(cases(300), |(answer in answers())| {
        let (by_fast, by_general) = (call_answered(&fast, &answer), call_answered(&general, &answer));
        let is_of_time = by_fast.has_been_sent_again() && by_general.has_been_sent_again();
        if !is_of_time || by_fast.requests.len().max(by_general.requests.len()) < 2 {
            prop_assert_eq!(by_fast, by_general);
        }
    });
}

/// The client is told to name the object by its key, as it has, and does so again. What follows that answer comes before the
/// next request, or after it.
#[test]
fn what_follows_an_answer_is_a_matter_of_time() {
    let fast = Orb::builder().no_endpoint().build().unwrap();
    let general = Orb::builder().no_endpoint().client_interceptor(Passive).build().unwrap();
    const NEEDS_ADDRESSING_MODE: u32 = 5;
    let answer = Answer {
        is_little: false,
        minor: 2,
        id_offset: 0,
        status: NEEDS_ADDRESSING_MODE,
        context: None,
        body: vec![0, 0],
        changes: Vec::new(),
        followed_by: None,
        cut: 0,
    };
    let behind_the_answer = answer.bytes([0; 4]).len();
    let followed_by = [None, Some(0), Some(2), Some(5), Some(6), Some(7)];
    for (followed_by, cut) in followed_by.into_iter().flat_map(|it| [(it, 0), (it, behind_the_answer)]) {
        let answer = Answer { followed_by, cut, ..answer.clone() };
        for client in [&fast, &general] {
            let seen = call_answered(client, &answer);
            assert!(seen.has_been_sent_again(), "{answer:?}: {:?}", seen.outcome);
        }
    }
}

// The server: the request cache, and parsed requests.

/// Counts the requests that have been recognised by their bytes.
struct Watched {
    inner: Arc<dyn Servant>,
    known: Arc<AtomicUsize>,
}

impl Servant for Watched {
    fn repository_ids(&self) -> &[&'static str] {
        self.inner.repository_ids()
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        self.known.fetch_add(usize::from(ironorb::testing::is_request_cached()), Ordering::Relaxed);
        self.inner.dispatch(call)
    }
}

/// A server with one thread, so that all connections share a request cache.
struct Server {
    orb: Orb,
    object: ProbeRef,
    /// How many requests the server has recognised.
    known: Arc<AtomicUsize>,
    /// How many of them were the last ones of connections.
    last: AtomicUsize,
}

impl Server {
    fn start(demultiplexing: Demultiplexing) -> Server {
        Server::start_as(demultiplexing, Orb::builder())
    }

    fn start_as(demultiplexing: Demultiplexing, builder: OrbBuilder) -> Server {
        let mut builder = builder
            .endpoint("iiop://127.0.0.1:0")
            .unwrap()
            .concurrency(ServerConcurrency::LeaderFollowers { threads: 1 });
        builder.config().demultiplexing = demultiplexing;
        let orb = builder.build().unwrap();
        let policies = PoaPolicies { id_assignment: IdAssignment::User, ..PoaPolicies::default() };
        let poa = orb.root_poa().create_poa("user", None, policies).unwrap();
        let known = Arc::new(AtomicUsize::new(0));
        let inner = ironorb::servant::<ProbeRef, _>(Arc::new(Probing::default()));
        let watched = Watched { inner, known: known.clone() };
        let id = ObjectId::from("object");
        poa.activate_object_with_id(&id, Arc::new(watched)).unwrap();
        let object = poa.id_to_reference(&id).unwrap().narrow_unchecked();
        let _: ProbeRef = poa.activate_with_id("fellow", Probing::default()).unwrap();
        Server { orb, object, known, last: AtomicUsize::default() }
    }

    /// How many requests the server has recognised, apart from the last ones of connections.
    fn recognised(&self) -> usize {
        self.known.load(Ordering::Relaxed).saturating_sub(self.last.load(Ordering::Relaxed))
    }

    /// A request to this server's object.
    fn request(&self, operation: &str, arguments: &[u8]) -> Vec<u8> {
        raw::request(self.object.object(), operation, arguments)
    }

    fn request_with(&self, operation: &str, contexts: &Contexts, arguments: &[u8]) -> Vec<u8> {
        raw::request_with(self.object.object(), operation, contexts, arguments)
    }

    fn connect(&self) -> TcpStream {
        let profile = self.object.object().ior().iiop_profiles().next().unwrap();
        TcpStream::connect((profile.host(), profile.port())).unwrap()
    }

    /// Sends a request, and then one that is answered in any case: `last`, which is of the form that the server knows, lest
    /// it get to know another in its place. Returns what comes before that answer.
    fn answers(&self, request: &[u8], mut last: Vec<u8>) -> Vec<Vec<u8>> {
        let mut stream = self.connect();
        last[12..16].copy_from_slice(&LAST);
        let _ = stream.write_all(request).and_then(|()| stream.write_all(&last));
        let mut answers = Vec::new();
        loop {
            match read(&mut stream) {
                Some(answer) if answer.len() >= 16 && raw::id_of(&answer) == LAST => {
                    self.last.fetch_add(1, Ordering::Relaxed);
                    return answers;
                }
                Some(answer) => answers.push(answer),
                None => {
                    answers.push(b"closed".to_vec());
                    return answers;
                }
            }
        }
    }
}

/// The id of the last request.
const LAST: [u8; 4] = [0x4C, 0x41, 0x53, 0x54];

/// Reads a message; `None` at the end of the stream. A server that closes with unread octets may reset it.
fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut message = vec![0; 12];
    stream.read_exact(&mut message).ok()?;
    let size: [u8; 4] = message[8..12].try_into().unwrap();
    let size = if message[6] & 1 != 0 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    message.resize(12 + size as usize, 0);
    stream.read_exact(&mut message[12..]).ok()?;
    Some(message)
}

/// Two longs, sometimes with octets behind them, or fewer octets.
fn arguments() -> impl Strategy<Value = Vec<u8>> {
    let count = prop_oneof![4 => Just(8usize), 1 => 0..8usize, 1 => 9..30usize];
    count.prop_flat_map(|count| prop::collection::vec(any::<u8>(), count))
}

/// Ids and data of service contexts.
type Contexts = Vec<(u32, Vec<u8>)>;

/// Mostly few contexts, of kinds that a server ignores, looks at or reads, with whatever data.
fn contexts() -> impl Strategy<Value = Contexts> {
    let id = prop_oneof![3 => Just(READ), 2 => Just(99u32), 1 => 0..20u32, 1 => Just(0x494F_5202u32)];
    let data = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..24),
        1 => prop::collection::vec(0..3u8, 12),
        1 => Just(vec![0, 0, 0, 0, 5, 1, 0, 1, 0, 1, 1, 9]), // UTF-8 and UTF-16
    ];
    prop_oneof![
        1 => Just(Contexts::new()),
        // A short name lies with the number of contexts in what tells requests apart. So most have the number that the
        // servers know.
        6 => prop::collection::vec((id.clone(), data.clone()), 1),
        2 => prop::collection::vec((id.clone(), data.clone()), 2),
        1 => prop::collection::vec((id, data), 3..6),
    ]
}

/// A context that a server of the test reads.
const READ: u32 = 0x494F_0044;

/// Reads it, and does nothing with it.
struct Reads;

impl ServerContext for Reads {
    fn id(&self) -> u32 {
        READ
    }

    fn serve(&self, _request: &RequestFacts<'_>, _data: Option<&[u8]>, upcall: &mut dyn FnMut()) {
        upcall();
    }
}

impl ServerInterceptor for Passive {}

const ADD: [u8; 8] = [0, 0, 0, 2, 0, 0, 0, 3];

#[test]
fn a_request_has_one_answer_whether_it_is_cached_or_parsed() {
    let caching = Server::start(Demultiplexing::Delayered);
    let parsing = Server::start(Demultiplexing::Layered);
    for server in [&caching, &parsing] {
        let (mut stream, request) = (server.connect(), server.request("add", &ADD));
        for _ in 0..300 {
            raw::write(&mut stream, &request);
            assert_eq!(raw::read_message(&mut stream)[24..], 5u32.to_ne_bytes());
        }
    }
    let (before, cases_count) = (caching.recognised(), 400);
    assert!(before > 0);
    proptest!(cases(cases_count), |(changes in changes(), arguments in arguments())| {
        let answers = [&caching, &parsing].map(|server| {
            let mut request = server.request("add", &arguments);
            apply(&changes, &mut request);
            server.answers(&request, server.request("add", &ADD))
        });
        prop_assert_eq!(&answers[0], &answers[1]);
    });
    assert!(
        caching.recognised() - before > cases_count as usize / 4,
        "otherwise this compares parsed requests"
    );
    assert_eq!(parsing.known.load(Ordering::Relaxed), 0);
    for server in [caching, parsing] {
        server.orb.shutdown(true).unwrap();
    }
}

#[test]
fn a_request_with_contexts_has_one_answer_in_every_way_to_its_servant() {
    use Demultiplexing::{Delayered, Layered};
    let servers = [
        Server::start(Delayered),
        Server::start(Layered),
        Server::start_as(Delayered, Orb::builder().server_context(Reads)),
        Server::start_as(Delayered, Orb::builder().server_interceptor(Passive)),
        Server::start_as(Layered, Orb::builder().server_context(Reads).server_interceptor(Passive)),
    ];
    for server in &servers {
        let mut stream = server.connect();
        let request = server.request_with("add", &vec![(READ, vec![1, 2, 3])], &ADD);
        for _ in 0..300 {
            raw::write(&mut stream, &request);
            assert_eq!(raw::read_message(&mut stream)[24..], 5u32.to_ne_bytes());
        }
    }
    let (before, cases_count) = (servers.each_ref().map(Server::recognised), 300);
    assert!(before[0] > 0 && before[2] > 0 && before[3] > 0, "{before:?}");
    proptest!(cases(cases_count), |(changes in changes(), contexts in contexts(), arguments in arguments())| {
        let answers = servers.each_ref().map(|server| {
            let mut request = server.request_with("add", &contexts, &arguments);
            apply(&changes, &mut request);
            server.answers(&request, server.request_with("add", &vec![(READ, vec![1, 2, 3])], &ADD))
        });
        for other in &answers[1..] {
            prop_assert_eq!(&answers[0], other);
        }
    });
    for (server, before) in [(&servers[0], before[0]), (&servers[2], before[2]), (&servers[3], before[3])] {
        let recognised = server.recognised() - before;
        assert!(
            recognised > cases_count as usize / 10,
            "{recognised}: otherwise this compares parsed requests"
        );
    }
    assert_eq!([&servers[1], &servers[4]].map(|server| server.known.load(Ordering::Relaxed)), [0, 0]);
    for server in servers {
        server.orb.shutdown(true).unwrap();
    }
}
