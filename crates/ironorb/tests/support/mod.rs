//! Engines connected by links that lose, delay and cut, in virtual time. Nothing here opens a socket, reads a
//! clock or starts a thread. Random numbers come from a seed.

#![allow(unreachable_pub)] // shared test code has no public users

pub mod counter;
mod network;
pub mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ironorb::engine::{
    CallNumber, ClientEngine, ClientEvent, ConnectionId, ServerEngine, ServerEvent, Time, UpcallNumber,
};
use ironorb::giop::Ior;
use ironorb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, Poa, RequestProcessing,
    ServantActivator, Unavailable,
};
use ironorb::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, PoaPolicies, Servant, SystemException, SystemExceptionKind,
};

use counter::{ADD, COUNTER_ID, Counter, Executions, REFUSE, TELL, expected};
use network::{Happening, Wire};
use random::Random;

/// Clients, servers and the network between them.
pub struct Pair {
    seed: u64,
    /// What else is needed to repeat a failure.
    pub label: String,
    pub random: Random,
    now: Time,
    /// Future events by time. The second number keeps the order of events at one time.
    agenda: BTreeMap<(Time, u64), Happening>,
    next_order: u64,
    /// ORBs made so far.
    orbs: u64,
    steps: usize,
    clients: Vec<Client>,
    servers: Vec<Server>,
    wires: Vec<Wire>,
    calls: BTreeMap<u64, CallRecord>,
    pub executions: Executions,
    /// How long a segment takes to arrive, in microseconds.
    pub latency_us: Range<usize>,
    /// How long a servant takes, in microseconds.
    pub service_us: Range<usize>,
    /// How many bytes a segment has.
    pub segment_bytes: Range<usize>,
    /// How late timers fire.
    pub timer_lag: Duration,
    pub cut: Option<Cut>,
    /// How many bytes of one direction of a connection may be under way before its sender learns that it must wait.
    /// Set before the first connection.
    pub window: Option<usize>,
    /// After what time the clients made from now on close idle connections.
    pub client_idle_timeout: Option<Duration>,
    /// The network loses what is sent toward the server over the first connection after this many bytes.
    pub lose_after: Option<usize>,
    /// The server retires the first connection when this many bytes have come over it.
    pub retire_after: Option<usize>,
}

/// The first connection breaks when this many bytes have been sent in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub toward: Side,
    pub after: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// The operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Add,
    Refuse,
    Tell,
    Locate,
}

/// The outcome of a call for its caller.
#[derive(Debug, PartialEq)]
pub enum Seen {
    Value(u64),
    Refused(u64),
    Sent,
    Located(bool),
    Failed(SystemException),
    /// The caller's process has been killed.
    Died,
}

#[derive(Debug)]
pub struct CallRecord {
    client: usize,
    pub kind: Kind,
    pub expected: u64,
    pub seen: Option<Seen>,
    pub ended_at: Time,
}

struct Client {
    orb: Orb,
    engine: Arc<ClientEngine>,
    wires: BTreeMap<ConnectionId, usize>,
    timer: Option<Time>,
    is_dead: bool,
}

struct Server {
    host: String,
    /// `None` while the process is dead.
    running: Option<Running>,
    incarnation: u64,
    builder: OrbBuilder,
    /// The forward target of the objects of its `moved` adapter.
    forward_to: ForwardTo,
    /// The server never answers an attempt to connect.
    pub is_black_hole: bool,
    timer: Option<Time>,
    /// Servants do not run while this is set.
    holds: bool,
    held: Vec<UpcallNumber>,
    /// The client of the same process, which may call the server's clients over their connections.
    caller: Option<usize>,
    /// Requests that have reached the server, including those that it forwards.
    upcalls: usize,
}

struct Running {
    orb: Orb,
    engine: ServerEngine,
    counters: Poa,
}

const PORT: u16 = 2809;
const COUNTER: &str = "counter";
/// A test that takes more steps than this hangs.
const STEPS_MAX: usize = 200_000;
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);

impl Pair {
    /// Makes a pair of one client and one server.
    pub fn seeded(seed: u64) -> Pair {
        let mut pair = Pair {
            seed,
            label: String::new(),
            random: Random::new(seed),
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            next_order: 0,
            orbs: 0,
            steps: 0,
            clients: Vec::new(),
            servers: Vec::new(),
            wires: Vec::new(),
            calls: BTreeMap::new(),
            executions: Executions::default(),
            latency_us: 50..2_000,
            service_us: 0..3_000,
            segment_bytes: 1..64,
            timer_lag: Duration::ZERO,
            cut: None,
            window: None,
            client_idle_timeout: None,
            lose_after: None,
            retire_after: None,
        };
        pair.add_client(Orb::builder());
        pair.add_server(Orb::builder());
        pair
    }

    pub fn add_client(&mut self, builder: OrbBuilder) -> usize {
        let builder = builder.no_endpoint().seed(Some(self.next_orb()));
        let orb = builder.client_idle_timeout(self.client_idle_timeout).build().unwrap();
        self.clients.push(Client::of(orb));
        self.clients.len() - 1
    }

    pub fn add_server(&mut self, builder: OrbBuilder) -> usize {
        self.add_process(builder, false)
    }

    /// Adds a server with a client in the same process.
    pub fn add_two_way_server(&mut self, builder: OrbBuilder) -> usize {
        self.add_process(builder, true)
    }

    /// The client in the process of a server.
    pub fn caller_of(&self, server: usize) -> Option<usize> {
        self.servers[server].caller
    }

    fn add_process(&mut self, builder: OrbBuilder, is_two_way: bool) -> usize {
        let caller = is_two_way.then(|| self.add_client(Orb::builder()));
        let index = self.servers.len();
        self.servers.push(Server {
            host: format!("server{index}"),
            running: None,
            incarnation: 0,
            builder,
            forward_to: ForwardTo::default(),
            is_black_hole: false,
            timer: None,
            holds: false,
            held: Vec::new(),
            caller,
            upcalls: 0,
        });
        self.start(index);
        index
    }

    /// Starts a server that is not running. Its persistent references are valid again.
    pub fn start(&mut self, server: usize) {
        let (executions, seed) = (self.executions.clone(), self.next_orb());
        let client_idle_timeout = self.client_idle_timeout;
        let server = &mut self.servers[server];
        if server.running.is_some() {
            return;
        }
        let address = format!("{}:{PORT}", server.host);
        let builder = server.builder.clone().no_endpoint().seed(Some(seed));
        let builder = builder.client_idle_timeout(client_idle_timeout);
        let orb = builder.publish(&address).build().unwrap();
        let counters = orb.root_poa().create_poa("counters", None, PoaPolicies::PERSISTENT).unwrap();
        let servant: Arc<dyn Servant> = Arc::new(Counter(executions));
        counters.activate_object_with_id(&ObjectId::from(COUNTER), servant).unwrap();
        let policies = PoaPolicies {
            lifespan: Lifespan::Persistent,
            id_assignment: IdAssignment::User,
            id_uniqueness: IdUniqueness::Unique,
            implicit_activation: ImplicitActivation::No,
            request_processing: RequestProcessing::ServantManager,
            ..PoaPolicies::default()
        };
        let moved = orb.root_poa().create_poa("moved", None, policies).unwrap();
        moved.set_servant_activator(Arc::new(server.forward_to.clone())).unwrap();
        let engine = match server.caller {
            None => ServerEngine::new(&orb),
            Some(caller) => {
                self.clients[caller] = Client::of(orb.clone());
                ServerEngine::with_client(&orb, &self.clients[caller].engine)
            }
        };
        server.running = Some(Running { orb, engine, counters });
    }

    /// The seed of the next ORB. Equal ones would make ORBs take each other's objects for their own.
    fn next_orb(&mut self) -> u64 {
        self.orbs += 1;
        self.seed.wrapping_mul(1 << 20).wrapping_add(self.orbs)
    }

    /// Kills the process: its connections close, and bytes that it had not sent are lost.
    pub fn kill(&mut self, server: usize) {
        self.servers[server].running = None;
        self.servers[server].held.clear();
        self.servers[server].timer = None;
        self.servers[server].incarnation += 1;
        if let Some(caller) = self.servers[server].caller {
            self.clients[caller].is_dead = true;
            let open = self.calls.values_mut().filter(|call| call.client == caller && call.seen.is_none());
            open.for_each(|call| call.seen = Some(Seen::Died));
        }
        for wire in 0..self.wires.len() {
            if self.wires[wire].server == server && self.wires[wire].accepted {
                self.close_end(wire, Side::Server);
            }
        }
    }

    pub fn black_hole(&mut self, server: usize, yes: bool) {
        self.servers[server].is_black_hole = yes;
    }

    /// Lets requests arrive without running servants, or lets the waiting servants run now.
    pub fn hold(&mut self, server: usize, yes: bool) {
        self.servers[server].holds = yes;
        if !yes {
            for upcall in std::mem::take(&mut self.servers[server].held) {
                self.schedule_upcall(server, upcall);
            }
        }
    }

    /// Makes the manager of a server's counters hold requests, or serve them.
    pub fn hold_manager(&self, server: usize, yes: bool) {
        if let Some(running) = &self.servers[server].running {
            let manager = running.counters.manager();
            if yes { manager.hold_requests(false).unwrap() } else { manager.activate().unwrap() }
        }
    }

    /// Requests that a server has not carried out because their callers had given up.
    pub fn late_requests(&self, server: usize) -> u64 {
        self.servers[server].running.as_ref().map_or(0, |running| running.orb.late_requests())
    }

    /// Requests that have reached a server's adapter, or wait for it.
    pub fn upcalls(&self, server: usize) -> usize {
        self.servers[server].upcalls
    }

    /// Closes all connections of a server in order.
    pub fn retire_connections(&mut self, server: usize) {
        let wires: Vec<usize> = (0..self.wires.len()).filter(|&w| self.wires[w].server == server).collect();
        for wire in wires {
            let connection = ConnectionId(wire as u64);
            self.server_event(server, ServerEvent::Retire { connection });
        }
    }

    /// Breaks all connections of a server.
    pub fn break_connections(&mut self, server: usize) {
        for wire in 0..self.wires.len() {
            if self.wires[wire].server == server && self.wires[wire].accepted {
                self.break_wire(wire);
            }
        }
    }

    /// Makes one end of a connection take nothing that comes, or take all of it.
    pub fn read(&mut self, wire: usize, end: Side, reads: bool) {
        self.set_reading(wire, end, reads);
    }

    /// Deactivates the object. The server goes on.
    pub fn deactivate_counter(&mut self, server: usize) {
        let running = self.servers[server].running.as_ref().unwrap();
        running.counters.deactivate(&ObjectId::from(COUNTER)).unwrap();
    }

    /// Makes the server forward calls of its `moved` objects to `target` from now on.
    pub fn forward(&mut self, server: usize, target: Ior) {
        let Some(running) = &self.servers[server].running else { return };
        let target = running.orb.string_to_object(&target.to_string()).unwrap();
        *self.servers[server].forward_to.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    /// The reference of a server's counter, with one address or with several.
    pub fn counter_ior(&self, servers: &[usize]) -> Ior {
        self.ior(servers, "counters", COUNTER)
    }

    /// The reference of an object that the server forwards.
    pub fn moved_ior(&self, server: usize) -> Ior {
        self.ior(&[server], "moved", COUNTER)
    }

    /// The reference of a counter in the client's own process.
    pub fn own_counter_ior(&self, client: usize) -> Ior {
        let poa = self.clients[client].orb.root_poa();
        let id = poa.activate_object(Arc::new(Counter(self.executions.clone()))).unwrap();
        poa.id_to_reference(&id).unwrap().ior().clone()
    }

    fn ior(&self, servers: &[usize], poa: &str, id: &str) -> Ior {
        let profiles = servers.iter().flat_map(|&server| {
            let running = self.servers[server].running.as_ref().unwrap();
            let poa = running.orb.root_poa().find_poa(poa, false).unwrap();
            poa.create_reference_with_id(id, COUNTER_ID).unwrap().ior().profiles.clone()
        });
        Ior { type_id: COUNTER_ID.to_owned(), profiles: profiles.collect() }
    }

    /// Makes a client's reference from an IOR.
    pub fn reference(&self, client: usize, ior: &Ior) -> ObjectRef {
        self.clients[client].orb.string_to_object(&ior.to_string()).unwrap()
    }

    /// Begins a call now, and returns its number.
    pub fn begin(&mut self, client: usize, object: &ObjectRef, kind: Kind, payload_bytes: usize) -> u64 {
        self.begin_with_timeout(client, object, kind, payload_bytes, Some(CALL_TIMEOUT))
    }

    pub fn begin_with_timeout(
        &mut self,
        client: usize,
        object: &ObjectRef,
        kind: Kind,
        payload_bytes: usize,
        timeout: Option<Duration>,
    ) -> u64 {
        let number = self.calls.len() as u64;
        let payload: Vec<u8> = (0..payload_bytes).map(|_| self.random.next() as u8).collect();
        let seen = self.clients[client].is_dead.then_some(Seen::Died);
        let expected = expected(number, &payload);
        let record = CallRecord { client, kind, expected, seen, ended_at: Time::ZERO };
        self.calls.insert(number, record);
        let operation = match kind {
            Kind::Add | Kind::Locate => &ADD,
            Kind::Refuse => &REFUSE,
            Kind::Tell => &TELL,
        };
        let call = CallNumber(number);
        let object = object.clone();
        let deadline = timeout.map(|timeout| self.now + timeout);
        let event = match kind {
            Kind::Locate => ClientEvent::Locate { call, caller: 0, object, deadline },
            _ => ClientEvent::Call {
                call,
                caller: 0,
                object,
                operation,
                arguments: Box::new(move |w| counter::write_arguments(number, &payload, w)),
                deadline,
            },
        };
        self.client_event(client, event);
        number
    }

    /// Begins a call, runs until no event is left, and returns the outcome.
    pub fn call(&mut self, client: usize, object: &ObjectRef, kind: Kind) -> &Seen {
        let call = self.begin(client, object, kind, 10);
        self.run_until_idle();
        self.seen(call)
    }

    pub fn seen(&self, call: u64) -> &Seen {
        match &self.calls[&call].seen {
            Some(seen) => seen,
            None => panic!("{self}: call {call} has not ended: {:?}", self.calls[&call]),
        }
    }

    /// The exception of a call that failed.
    pub fn failure(&self, call: u64) -> &SystemException {
        match self.seen(call) {
            Seen::Failed(e) => e,
            other => panic!("{self}: call {call} has not failed: {other:?}"),
        }
    }

    pub fn record(&self, call: u64) -> &CallRecord {
        &self.calls[&call]
    }

    pub fn succeeded(&self, call: u64) -> bool {
        !matches!(self.seen(call), Seen::Failed(_))
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn client_event(&mut self, client: usize, event: ClientEvent<'_>) {
        let now = self.now;
        if !self.clients[client].is_dead {
            self.clients[client].engine.handle(event, now);
        }
    }

    pub fn server_event(&mut self, server: usize, event: ServerEvent<'_>) {
        let now = self.now;
        if let Some(running) = &mut self.servers[server].running {
            running.engine.handle(event, now);
        }
    }

    /// Whether one end of a connection knows that it is closed.
    pub fn is_closed(&self, wire: usize, end: Side) -> bool {
        self.wires[wire].direction(end).is_closed
    }

    /// The bytes that have been sent over the first connection.
    pub fn sent_toward(&self, side: Side) -> usize {
        self.wires.first().map_or(0, |wire| wire.direction(side).sent)
    }

    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// All calls with their outcomes and times.
    pub fn history(&self) -> Vec<String> {
        self.calls.values().map(|call| format!("{call:?}")).collect()
    }

    pub fn connections(&self) -> usize {
        self.wires.len()
    }

    /// Sends bytes that no engine would send, between the engine's messages.
    pub fn inject(&mut self, wire: usize, toward: Side, bytes: &[u8]) {
        self.send(wire, toward, bytes);
    }

    pub fn after(&mut self, wait: Duration, script: impl FnOnce(&mut Pair) + 'static) {
        let at = self.now + wait;
        self.schedule(at, Happening::Script(Box::new(script)));
    }

    /// Runs until no event is left but timers of servers: connections stay open.
    pub fn run_until_idle(&mut self) {
        self.run_until(Time::MAX);
    }

    /// Runs until the time `end`.
    pub fn run_until(&mut self, end: Time) {
        loop {
            self.carry_out_actions();
            let is_idle = || self.agenda.values().all(|it| matches!(it, Happening::ServerTimer { .. }));
            if end == Time::MAX && is_idle() {
                break;
            }
            match self.agenda.first_entry() {
                Some(first) if first.key().0 <= end => {
                    let ((at, _), happening) = first.remove_entry();
                    self.now = at;
                    self.steps += 1;
                    assert!(self.steps < STEPS_MAX, "{self}: does not come to an end");
                    self.happen(happening);
                }
                _ => break,
            }
        }
        if end < Time::MAX {
            self.now = end;
        }
    }

    /// Checks what must hold after any failure, once no event is left.
    pub fn check_promises(&self) {
        for (number, call) in &self.calls {
            let executions = self.executions.of(*number);
            assert!(executions <= 1, "{self}: call {number} was carried out {executions} times: {call:?}");
            let right = match (call.kind, self.seen(*number)) {
                (Kind::Add, Seen::Value(value)) => executions == 1 && *value == call.expected,
                (Kind::Refuse, Seen::Refused(value)) => executions == 1 && *value == call.expected,
                (Kind::Tell, Seen::Sent) => true,
                (Kind::Locate, Seen::Located(_)) | (_, Seen::Died) => true,
                (_, Seen::Failed(e)) => match e.completed {
                    CompletionStatus::Yes => executions == 1,
                    CompletionStatus::No => executions == 0,
                    CompletionStatus::Maybe => true,
                },
                _ => false,
            };
            assert!(right, "{self}: call {number} was carried out {executions} times, but: {call:?}");
        }
        for (index, client) in self.clients.iter().enumerate().filter(|(_, client)| !client.is_dead) {
            assert_eq!(client.engine.calls_pending(), 0, "{self}: client {index} keeps calls");
        }
    }
}

impl Client {
    fn of(orb: Orb) -> Client {
        let engine = Arc::new(ClientEngine::new(&orb));
        Client { orb, engine, wires: BTreeMap::new(), timer: None, is_dead: false }
    }
}

/// Shows how to repeat a failure, in every assertion.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IRONORB_TEST_SEED={} {} at {}", self.seed, self.label, self.now)
    }
}

/// Forwards every object.
#[derive(Clone, Default)]
struct ForwardTo(Arc<Mutex<Option<ObjectRef>>>);

impl ServantActivator for ForwardTo {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Err(match target {
            Some(target) => Unavailable::Forward(target),
            None => Unavailable::Raise(SystemException::new(
                SystemExceptionKind::Transient,
                ironorb::MinorCode::NONE,
                CompletionStatus::No,
            )),
        })
    }
}

/// The kinds of outcomes of a test's calls, for tests that check that the random choices have left nothing
/// out.
pub fn kinds_seen(pair: &Pair) -> BTreeSet<String> {
    pair.calls
        .values()
        .map(|call| match &call.seen {
            Some(Seen::Failed(e)) => format!("{} {:?}", e.kind.name(), e.completed),
            Some(Seen::Value(_)) if pair.servers.iter().any(|server| server.caller == Some(call.client)) => {
                "value called back".to_owned()
            }
            Some(Seen::Value(_)) => "value".to_owned(),
            Some(Seen::Refused(_)) => "refused".to_owned(),
            Some(Seen::Sent) => "sent".to_owned(),
            Some(Seen::Died) => "died".to_owned(),
            Some(Seen::Located(known)) => format!("located {known}"),
            None => "nothing".to_owned(),
        })
        .collect()
}
