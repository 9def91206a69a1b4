//! In which order a pool serves the requests that wait, and which it admits. Part of the program of [`super`], whose tests run
//! one at a time. No test waits for a time: the servant waits at a gate, and the differences between deadlines are far greater
//! than the time that a test takes.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::rt::distributable::{MaximumUrgencyFirst, UrgencyBands};
use ironorb::rt::{Priority, PriorityModel};
use ironorb::{
    Deferred, MinorCode, Orb, OrbBuilder, PoaPolicies, Reply, RequestBuffering, RequestOrder,
    ServerConcurrency, SystemException, ThreadPoolConfig, TypedRef,
};
use ironorb_tests::real_time::{real_time, server_of};
use ironorb_tests::timing::{DeferredErrands, DeferredJobs, Errands, Jobs, JobsRef};
use ironorb_tests::{eventually, raw};

use super::{Barrier, alone, buffered, client_in_rounds};

const PRIORITY: u32 = 10;
const BAND: u32 = 11;
const DEADLINE: u32 = 0x494F_5202;
const THREAD: u32 = 0x494F_5204;

type Contexts = Vec<(u32, Vec<u8>)>;

/// A servant that notes which operations it carries out, and waits in `held` at a gate.
#[derive(Clone, Default)]
struct Log {
    gate: Arc<Barrier>,
    carried_out: Arc<Mutex<Vec<&'static str>>>,
}

impl Log {
    fn note(&self, operation: &'static str) -> Result<i32, SystemException> {
        self.carried_out.lock().unwrap().push(operation);
        Ok(0)
    }
}

impl Errands for Log {
    fn soon(&self) -> Result<i32, SystemException> {
        self.note("soon")
    }
}

impl Jobs for Log {
    fn held(&self) -> Result<i32, SystemException> {
        self.gate.pass();
        Ok(0)
    }
    fn untimed(&self) -> Result<i32, SystemException> {
        self.note("untimed")
    }
    fn tight(&self) -> Result<i32, SystemException> {
        self.note("tight")
    }
    fn vital(&self) -> Result<i32, SystemException> {
        self.note("vital")
    }
    fn bulky(&self) -> Result<i32, SystemException> {
        self.note("bulky")
    }
    fn at_once(&self) -> Result<i32, SystemException> {
        self.note("at_once")
    }
}

/// The same, for a servant that answers later.
struct Later(Log);

type Answer = Reply<i32, SystemException>;

impl DeferredErrands for Later {
    fn soon(&self, reply: Answer) {
        reply.send(self.0.soon());
    }
}

impl DeferredJobs for Later {
    fn held(&self, reply: Answer) {
        reply.send(self.0.held());
    }
    fn untimed(&self, reply: Answer) {
        reply.send(self.0.untimed());
    }
    fn tight(&self, reply: Answer) {
        reply.send(self.0.tight());
    }
    fn vital(&self, reply: Answer) {
        reply.send(self.0.vital());
    }
    fn bulky(&self, reply: Answer) {
        reply.send(self.0.bulky());
    }
    fn at_once(&self, reply: Answer) {
        reply.send(self.0.at_once());
    }
}

/// A server whose one thread is in `held`, and clients.
struct Held {
    orb: Orb,
    jobs: JobsRef,
    log: Log,
    /// Connections over which the server has answered, and receives.
    spare: Vec<TcpStream>,
    clients: Vec<TcpStream>,
    replies: usize,
}

/// More connections than a test needs.
const CONNECTIONS: usize = 12;

impl Held {
    fn new(pool: ThreadPoolConfig) -> Held {
        Held::with(pool, |poa, log| poa.activate(log).unwrap())
    }

    fn with(pool: ThreadPoolConfig, activate: impl FnOnce(&ironorb::Poa, Log) -> JobsRef) -> Held {
        Held::of(server_of(real_time()), pool, activate)
    }

    fn of(
        builder: OrbBuilder,
        pool: ThreadPoolConfig,
        activate: impl FnOnce(&ironorb::Poa, Log) -> JobsRef,
    ) -> Held {
        let orb = builder.concurrency(ServerConcurrency::ThreadPool(pool)).build().unwrap();
        let model = Some(PriorityModel::ClientPropagated { default: Priority::MIN });
        let policies = PoaPolicies { priority_model: model, ..PoaPolicies::default() };
        let poa = orb.root_poa().create_poa("jobs", None, policies).unwrap();
        poa.manager().activate().unwrap();
        let log = Log::default();
        let jobs = activate(&poa, log.clone());
        let spare = (0..CONNECTIONS).map(|_| answering(&jobs)).collect();
        let mut held = Held { orb, jobs, log, spare, clients: Vec::new(), replies: 0 };
        let connection = held.connect();
        held.send(connection, "held", vec![]);
        eventually("the thread is in the servant", || held.log.gate.entered() == 1);
        held
    }

    fn connect(&mut self) -> usize {
        self.clients.push(self.spare.pop().expect("there are enough"));
        self.clients.len() - 1
    }

    /// Sends a request over a connection.
    fn send(&mut self, connection: usize, operation: &str, contexts: Contexts) {
        let request = raw::request_with(self.jobs.object(), operation, &contexts, &[]);
        raw::write(&mut self.clients[connection], &request);
        self.replies += 1;
    }

    /// Sends requests over a connection, all of which arrive at once.
    fn send_at_once(&mut self, connection: usize, operations: &[(&str, (u32, Vec<u8>))]) {
        let request = |(operation, context): &(&str, _)| {
            raw::request_with(self.jobs.object(), operation, std::slice::from_ref(context), &[])
        };
        let requests: Vec<u8> = operations.iter().flat_map(request).collect();
        raw::write(&mut self.clients[connection], &requests);
        self.replies += operations.len();
    }

    /// Sends requests over a connection each. They have arrived at the server, in this order.
    fn send_each(&mut self, operations: &[(&str, Contexts)]) {
        for (operation, contexts) in operations {
            let connection = self.connect();
            self.send(connection, operation, contexts.clone());
            self.arrived(connection);
        }
    }

    /// Waits until the server's system has what was sent, or the server has read it.
    fn arrived(&self, connection: usize) {
        let client = &self.clients[connection];
        eventually("the request arrives", || is_acknowledged(client));
    }

    fn refused(&self) -> u64 {
        self.orb.status().total("requests_refused_total")
    }

    fn waiting(&self) -> u64 {
        buffered(&self.orb)
    }

    /// Lets the thread go on, reads all replies and returns in which order the servant has carried out what waited.
    fn carried_out(mut self) -> Vec<&'static str> {
        self.log.gate.open();
        let expected = self.replies as u64 - self.refused() - 1;
        let log = self.log.clone();
        eventually("all have been carried out", || log.carried_out.lock().unwrap().len() as u64 == expected);
        self.clients.clear();
        self.spare.clear();
        self.orb.shutdown(true).unwrap();
        let carried_out = log.carried_out.lock().unwrap();
        carried_out.clone()
    }
}

/// A connection to a server, which has answered over it. The system acknowledges what is sent over a new one before the server has accepted
/// it, and the server does not see it then.
fn answering(jobs: &JobsRef) -> TcpStream {
    let mut stream = raw::connect(jobs.object());
    raw::write(&mut stream, &raw::request_with(jobs.object(), "_non_existent", &[], &[]));
    assert!(!raw::read_message(&mut stream).is_empty());
    stream
}

/// Whether the other end of a connection on this machine has received all that was sent.
fn is_acknowledged(client: &TcpStream) -> bool {
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let (own, peer) = (port(client.local_addr().unwrap()), port(client.peer_addr().unwrap()));
    let mut table = String::new();
    std::fs::File::open("/proc/net/tcp").unwrap().read_to_string(&mut table).unwrap();
    table.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let ends = [columns.next(), columns.next()].map(|end| end.unwrap_or_default());
        let unsent = columns.nth(1).unwrap_or_default();
        ends[0].ends_with(&own) && ends[1].ends_with(&peer) && unsent.starts_with("00000000:")
    })
}

fn plain<'o>(operations: &[&'o str]) -> Vec<(&'o str, Contexts)> {
    operations.iter().map(|operation| (*operation, vec![])).collect()
}

fn priority(number: i16) -> (u32, Vec<u8>) {
    (PRIORITY, [&[0, 0][..], &number.to_be_bytes()].concat())
}

fn band(low: i16, high: i16) -> (u32, Vec<u8>) {
    (BAND, [&[0, 0][..], &low.to_be_bytes(), &high.to_be_bytes()].concat())
}

/// Says that the caller waits this long.
fn budget(limit: Duration) -> (u32, Vec<u8>) {
    let numbers = [limit.as_nanos() as u64, 1, 1].map(u64::to_be_bytes);
    (DEADLINE, [&[0; 8][..], &numbers.concat()].concat())
}

/// A distributable thread with this criticality, from 1 to 5, and a deadline.
fn thread(number: u8, criticality: u8, deadline: Duration) -> (u32, Vec<u8>) {
    let deadline = (deadline.as_nanos() as u64).to_be_bytes();
    let head = [&[0, 1][..], &[number; 16], &[criticality, 0], &(-1_i16).to_be_bytes()].concat();
    (THREAD, [&head[..], &deadline, &[u8::MAX; 8], &[0, 0]].concat())
}

fn in_memory(requests_max: usize) -> RequestBuffering {
    RequestBuffering::UpTo { requests_max, bytes_max: 1 << 20 }
}

const SENT: [&str; 5] = ["untimed", "vital", "tight", "soon", "bulky"];

const ORDERS: [(RequestOrder, [&str; 5]); 4] = [
    (RequestOrder::Arrival, SENT),
    (RequestOrder::EarliestDeadline, ["soon", "bulky", "tight", "vital", "untimed"]),
    (RequestOrder::LeastLaxity, ["tight", "bulky", "soon", "vital", "untimed"]),
    (RequestOrder::UrgencyFirst, ["vital", "tight", "bulky", "soon", "untimed"]),
];

/// The thread that is done reads what waits in the sockets, with nothing else to read it, and takes the most urgent.
#[test]
fn a_thread_that_is_done_takes_the_most_urgent_request_of_all_sockets() {
    let _alone = alone();
    for (order, expected) in ORDERS {
        let mut held = Held::new(ThreadPoolConfig::new(1).order(order));
        held.send_each(&plain(&SENT));
        assert_eq!((held.waiting(), super::threads_named("overflow")), (0, 0), "all wait in sockets");
        assert_eq!(held.carried_out(), expected, "{order:?}");
    }
}

#[test]
fn buffered_requests_are_served_in_order() {
    let _alone = alone();
    for (order, expected) in ORDERS {
        let mut held = Held::new(ThreadPoolConfig::new(1).buffering(in_memory(9)).order(order));
        for (count, operation) in SENT.iter().enumerate() {
            held.send_each(&plain(&[operation]));
            eventually("the request is in the queue", || held.waiting() == count as u64 + 1);
        }
        assert_eq!(held.carried_out(), expected, "{order:?}");
    }
}

/// Requests of one connection are reordered, too, and servants that answer later have timings as well.
#[test]
fn requests_of_one_connection_are_put_in_order() {
    let _alone = alone();
    let (order, expected) = ORDERS[1];
    let pool = ThreadPoolConfig::new(1).order(order);
    let mut held = Held::with(pool, |poa, log| poa.activate(Deferred(Later(log))).unwrap());
    let connection = held.connect();
    SENT.iter().for_each(|operation| held.send(connection, operation, vec![]));
    held.arrived(connection);
    assert_eq!(held.carried_out(), expected);
}

/// The thread is done while the overflow thread reads: what that has in its hands has arrived, too.
#[test]
fn no_request_overtakes_one_that_the_overflow_thread_is_reading() {
    let _alone = alone();
    const URGENT: [&str; 4] = ["soon", "tight", "vital", "bulky"];
    for round in 0..200 {
        let pool = ThreadPoolConfig::new(1).buffering(in_memory(64)).order(RequestOrder::Priority);
        let mut held = Held::new(pool);
        let all = held.connect();
        let low = ["untimed"; 4].map(|operation| (operation, priority(10)));
        let urgent = URGENT.map(|operation| (operation, priority(100)));
        held.send_at_once(all, &[low, urgent].concat());
        assert_eq!(held.carried_out(), [&URGENT[..], &["untimed"; 4]].concat(), "round {round}");
    }
}

#[test]
fn requests_are_served_by_the_priority_that_they_ask_for() {
    let _alone = alone();
    let mut held = Held::new(ThreadPoolConfig::new(1).order(RequestOrder::Priority));
    let asks = |operation, number| (operation, vec![priority(number)]);
    held.send_each(&[
        ("untimed", vec![]),
        asks("soon", 7),
        asks("tight", 9),
        asks("vital", 8),
        asks("bulky", 9),
    ]);
    assert_eq!(held.carried_out(), ["tight", "bulky", "vital", "soon", "untimed"]);
}

/// What a distributable thread says of itself counts before what the operation says, where the server has a scheduler of such
/// threads. Elsewhere its context is one like any other.
#[test]
fn requests_are_served_by_the_urgency_of_their_distributable_threads() {
    let _alone = alone();
    let long = Duration::from_secs(1_000);
    for (has_scheduler, order, expected) in [
        (true, RequestOrder::UrgencyFirst, ["untimed", "vital", "soon"]),
        (false, RequestOrder::UrgencyFirst, ["vital", "soon", "untimed"]),
        (true, RequestOrder::EarliestDeadline, ["untimed", "soon", "vital"]),
        (false, RequestOrder::EarliestDeadline, ["soon", "vital", "untimed"]),
    ] {
        let mut builder = server_of(real_time());
        if has_scheduler {
            builder = builder.scheduler(MaximumUrgencyFirst::new(UrgencyBands::default()));
        }
        let pool = ThreadPoolConfig::new(1).order(order);
        let mut held = Held::of(builder, pool, |poa, log| poa.activate(log).unwrap());
        held.send_each(&[
            ("vital", vec![]),
            ("soon", vec![thread(1, 1, 10 * long)]),
            ("untimed", vec![thread(2, 5, long)]),
        ]);
        assert_eq!(held.carried_out(), expected, "{has_scheduler} {order:?}");
    }
}

/// Two connections with a band each, and no lanes: what comes over the urgent one passes all that wait over the other
/// (`Priority_Inversion_With_Bands`). In the order of arrival it waits behind them.
#[test]
fn a_pool_without_lanes_serves_the_more_urgent_band_first() {
    let _alone = alone();
    for order in [RequestOrder::Priority, RequestOrder::Arrival] {
        let mut held = Held::new(ThreadPoolConfig::new(1).order(order));
        let (low, high) = (held.connect(), held.connect());
        held.send(low, "untimed", vec![band(0, 999)]);
        held.send(low, "untimed", vec![]);
        held.send(low, "untimed", vec![]);
        held.arrived(low);
        held.send(high, "vital", vec![band(30_000, 32_767)]);
        held.arrived(high);
        let first = if order == RequestOrder::Priority { "vital" } else { "untimed" };
        assert_eq!(held.carried_out()[0], first, "{order:?}");
    }
}

#[test]
fn the_deadline_of_a_request_counts_before_that_of_its_operation() {
    let _alone = alone();
    let mut held = Held::new(ThreadPoolConfig::new(1).order(RequestOrder::EarliestDeadline));
    let within = |seconds| vec![budget(Duration::from_secs(seconds))];
    held.send_each(&[
        ("soon", within(8_000)),
        ("vital", vec![]),
        ("untimed", within(1_000)),
        ("tight", vec![]),
    ]);
    assert_eq!(held.carried_out(), ["untimed", "tight", "soon", "vital"]);
}

/// The exception in a reply, as its id, its minor code and what was completed.
fn refusal(stream: &mut TcpStream) -> (String, u32, u32) {
    let reply = raw::read_message(stream);
    let is_little = reply[6] & 1 != 0;
    let number = |at: usize| {
        let bytes: [u8; 4] = reply[at..at + 4].try_into().unwrap();
        if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    assert_eq!((reply[7], number(16)), (1, 2), "a Reply with a system exception");
    let end = 28 + number(24) as usize;
    let id = String::from_utf8(reply[28..end - 1].to_vec()).unwrap();
    let numbers = end.next_multiple_of(4);
    (id, number(numbers), number(numbers + 4))
}

const TRANSIENT: &str = "IDL:omg.org/CORBA/TRANSIENT:1.0";
const COMPLETED_NO: u32 = 1;

#[test]
fn a_more_urgent_request_takes_the_place_of_the_least_urgent_one() {
    let _alone = alone();
    let pool = ThreadPoolConfig::new(1).buffering(in_memory(2)).order(RequestOrder::EarliestDeadline);
    let mut held = Held::new(pool);
    held.send_each(&plain(&["vital"]));
    eventually("one waits", || held.waiting() == 1);
    held.send_each(&plain(&["untimed"]));
    eventually("two wait", || held.waiting() == 2);
    held.send_each(&plain(&["soon"]));
    let minor = MinorCode::TRANSIENT_DISCARDED.0;
    assert_eq!(refusal(&mut held.clients[2]), (TRANSIENT.to_owned(), minor, COMPLETED_NO));
    // Nothing that waits is less urgent than this one.
    held.send_each(&plain(&["untimed"]));
    assert_eq!(refusal(&mut held.clients[4]), (TRANSIENT.to_owned(), minor, COMPLETED_NO));
    assert_eq!((held.refused(), held.waiting()), (2, 2));
    assert_eq!(held.carried_out(), ["soon", "vital"]);
}

/// The upcall that runs takes up to 100 seconds, as far as is known.
#[test]
fn what_cannot_end_in_time_is_refused_at_once() {
    let _alone = alone();
    let unknown = Duration::from_secs(100);
    let pool = ThreadPoolConfig::new(1).order(RequestOrder::EarliestDeadline).admit(unknown);
    let mut held = Held::new(pool);
    let refused = |held: &mut Held, operation| {
        held.send_each(&plain(&[operation]));
        let minor = MinorCode::NOT_IN_TIME.0;
        let last = held.clients.last_mut().unwrap();
        assert_eq!(refusal(last), (TRANSIENT.to_owned(), minor, COMPLETED_NO), "{operation}");
    };
    refused(&mut held, "at_once");
    for (count, operation) in ["tight", "soon", "untimed"].into_iter().enumerate() {
        held.send_each(&plain(&[operation]));
        eventually("it is admitted", || held.waiting() == count as u64 + 1);
    }
    // It would have the admitted `tight` end too late, and another `tight` would end too late itself.
    refused(&mut held, "bulky");
    refused(&mut held, "tight");
    assert_eq!(held.refused(), 3);
    assert_eq!(held.carried_out(), ["soon", "tight", "untimed"]);
}

/// Several threads take from one queue, while it is full at times.
#[test]
fn no_request_is_lost_among_several_threads() {
    const CLIENTS: usize = 6;
    const EACH: usize = 100;
    let _alone = alone();
    for pool in [
        ThreadPoolConfig::new(2).dynamic_threads(2),
        ThreadPoolConfig::new(3).borrowing(true),
        ThreadPoolConfig::new(2).buffering(in_memory(3)),
    ] {
        let held = Held::new(pool.order(RequestOrder::UrgencyFirst));
        held.log.gate.open();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let request = raw::request(held.jobs.object(), SENT[client % SENT.len()], &[]);
                client_in_rounds(raw::connect(held.jobs.object()), request, EACH)
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let carried_out = held.log.carried_out.lock().unwrap().len() as u64;
        assert_eq!(carried_out + held.refused(), (CLIENTS * (EACH * 2 - 1)) as u64, "each request once");
        held.orb.shutdown(true).unwrap();
    }
}
