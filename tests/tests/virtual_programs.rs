//! Whole programs in virtual time: generated stubs and servants, a naming service, and servants that call. One thread
//! runs all of it, without a socket, a clock or a wait.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ironorb::engine::{
    ClientAction, ClientEngine, ClientEvent, ConnectionId, ServerAction, ServerEngine, ServerEvent,
    Simulation, Time, UpcallNumber,
};
use ironorb::naming::Naming;
use ironorb::{
    CompletionStatus, OnewayBatching, Orb, OrbBuilder, SystemExceptionKind, TypedRef as _, remaining_time,
    with_timeout,
};
use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
use ironorb_tests::testing::{Probe as _, ProbeAsync as _, ProbeRef};
use ironorb_tests::wires::{Exchange as _, ExchangeRef, ListenerRef};
use ironorb_tests::{Exchanging, Hooked, Listening, Probing};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long bytes take.
const LATENCY: Duration = Duration::from_micros(100);
/// How long a request waits for its servant.
const SERVICE: Duration = Duration::from_micros(30);
const PORT: u16 = 2809;

/// The ORBs, and the network between them.
struct World {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Time,
    agenda: BTreeMap<(Time, u64), Event>,
    next_order: u64,
    hosts: Vec<Host>,
    wires: Vec<Wire>,
    /// Every segment, with its time.
    log: String,
}

struct Host {
    name: &'static str,
    client: Arc<ClientEngine>,
    server: Arc<Mutex<ServerEngine>>,
}

/// A connection. Its number names it to the server.
#[derive(Clone, Copy)]
struct Wire {
    client: usize,
    connection: ConnectionId,
    server: usize,
}

enum Event {
    Connected(usize),
    Refused { host: usize, connection: ConnectionId },
    ToServer(usize, Vec<u8>),
    ToClient(usize, Vec<u8>),
    ClosedAtServer(usize),
    ClosedAtClient(usize),
    ClientTimer(usize),
    ServerTimer(usize),
    CarryOut(usize, UpcallNumber),
    CallBack(usize, UpcallNumber),
}

/// The world as its ORBs hold it.
struct InWorld(Weak<World>);

impl Simulation for InWorld {
    fn now(&self) -> Time {
        self.0.upgrade().map_or(Time::ZERO, |world| world.lock().now)
    }

    fn run_until(&self, is_over: &dyn Fn() -> bool) {
        if let Some(world) = self.0.upgrade() {
            world.run_until(is_over);
        }
    }
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World { state: Mutex::default() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an ORB, which publishes its objects at a host of its own.
    fn add(self: &Arc<Self>, name: &'static str) -> Orb {
        self.add_with(name, Orb::builder().publish(&format!("{name}:{PORT}")))
    }

    /// Adds an ORB whose connections may be used both ways.
    fn add_bidirectional(self: &Arc<Self>, name: &'static str, mut builder: OrbBuilder) -> Orb {
        builder.config().bidirectional = true;
        self.add_with(name, builder)
    }

    fn add_with(self: &Arc<Self>, name: &'static str, builder: OrbBuilder) -> Orb {
        let simulation = Arc::new(InWorld(Arc::downgrade(self)));
        // Equal seeds would make the ORBs take each other's objects for their own.
        let seed = self.lock().hosts.len() as u64;
        let builder = builder.no_endpoint().seed(Some(seed)).oneway_batching(Some(OnewayBatching::DEFAULT));
        let orb = builder.simulation(simulation).build().unwrap();
        let client = ClientEngine::for_stubs(&orb);
        let server = Arc::new(Mutex::new(ServerEngine::with_client(&orb, &client)));
        self.lock().hosts.push(Host { name, client, server });
        orb
    }

    fn run_until(&self, is_over: &dyn Fn() -> bool) {
        loop {
            self.carry_out_actions();
            if is_over() {
                return;
            }
            let next = {
                let mut state = self.lock();
                let Some(((at, _), event)) = state.agenda.pop_first() else { return };
                state.now = at;
                event
            };
            self.happen(next);
        }
    }

    fn carry_out_actions(&self) {
        let hosts = self.lock().hosts.len();
        for host in 0..hosts {
            let (client, server) = self.engines(host);
            let actions: VecDeque<_> = std::iter::from_fn(|| lock(&server).poll_action()).collect();
            actions.into_iter().for_each(|action| self.lock().server_action(host, action));
            while let Some(action) = client.poll_action() {
                self.lock().client_action(host, action);
            }
        }
    }

    fn engines(&self, host: usize) -> (Arc<ClientEngine>, Arc<Mutex<ServerEngine>>) {
        let state = self.lock();
        (state.hosts[host].client.clone(), state.hosts[host].server.clone())
    }

    /// Nothing is locked while an engine handles an event or a servant runs: both may make calls.
    fn happen(&self, event: Event) {
        let wire = |number: usize| self.lock().wires[number];
        let id = |number: usize| ConnectionId(number as u64);
        match event {
            Event::Connected(number) => {
                let Wire { client, connection, server } = wire(number);
                self.server_event(server, ServerEvent::Accepted { connection: id(number) });
                self.client_event(client, ClientEvent::Connected { connection });
            }
            Event::Refused { host, connection } => {
                self.client_event(host, ClientEvent::ConnectFailed { connection, timed_out: false });
            }
            Event::ToServer(number, bytes) => {
                let received = ServerEvent::Received { connection: id(number), bytes: &bytes };
                self.server_event(wire(number).server, received);
            }
            Event::ToClient(number, bytes) => {
                let Wire { client, connection, .. } = wire(number);
                self.client_event(client, ClientEvent::Received { connection, bytes: &bytes });
            }
            Event::ClosedAtServer(number) => {
                self.server_event(wire(number).server, ServerEvent::Closed { connection: id(number) });
            }
            Event::ClosedAtClient(number) => {
                let Wire { client, connection, .. } = wire(number);
                self.client_event(client, ClientEvent::Closed { connection });
            }
            Event::ClientTimer(host) => self.client_event(host, ClientEvent::Timer),
            Event::ServerTimer(host) => self.server_event(host, ServerEvent::Timer),
            Event::CarryOut(host, upcall) => {
                let (_, server) = self.engines(host);
                let begun = lock(&server).begin_upcall(upcall);
                if let Some(mut upcall) = begun {
                    upcall.run();
                    lock(&server).end_upcall(upcall);
                }
            }
            Event::CallBack(host, upcall) => {
                let (client, _) = self.engines(host);
                if let Some(mut upcall) = client.begin_upcall(upcall) {
                    upcall.run();
                    client.end_upcall(upcall);
                }
            }
        }
    }

    fn client_event(&self, host: usize, event: ClientEvent<'_>) {
        let now = self.lock().now;
        self.engines(host).0.handle(event, now);
    }

    fn server_event(&self, host: usize, event: ServerEvent<'_>) {
        let now = self.lock().now;
        lock(&self.engines(host).1).handle(event, now);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn schedule(&mut self, at: Time, event: Event) {
        self.agenda.insert((at.max(self.now), self.next_order), event);
        self.next_order += 1;
    }

    fn later(&mut self, event: Event) {
        self.schedule(self.now + LATENCY, event);
    }

    fn note(&mut self, what: &str, wire: usize, bytes: &[u8]) {
        let now = self.now;
        writeln!(self.log, "{now} {what} {wire} {bytes:02x?}").unwrap();
    }

    fn client_action(&mut self, host: usize, action: ClientAction) {
        let wire_of = |state: &State, connection: ConnectionId| {
            state.wires.iter().position(|wire| (wire.client, wire.connection) == (host, connection))
        };
        match action {
            ClientAction::Connect { connection, host: to, port } => {
                let server = self.hosts.iter().position(|host| host.name == to);
                match server.filter(|_| port == PORT) {
                    Some(server) => {
                        self.wires.push(Wire { client: host, connection, server });
                        self.later(Event::Connected(self.wires.len() - 1));
                    }
                    None => self.later(Event::Refused { host, connection }),
                }
            }
            ClientAction::Transmit { connection, bytes } => {
                let wire = wire_of(self, connection).expect("a connection");
                self.note("->", wire, &bytes);
                self.later(Event::ToServer(wire, bytes));
            }
            ClientAction::Close { connection } => {
                if let Some(wire) = wire_of(self, connection) {
                    self.later(Event::ClosedAtServer(wire));
                }
            }
            ClientAction::SetTimer { at } => self.schedule(at, Event::ClientTimer(host)),
            ClientAction::Upcall { upcall, .. } => {
                self.schedule(self.now + SERVICE, Event::CallBack(host, upcall));
            }
            ClientAction::Complete { .. } => panic!("all calls are of stubs"),
        }
    }

    fn server_action(&mut self, host: usize, action: ServerAction) {
        match action {
            ServerAction::Transmit { connection, bytes } => {
                self.note("<-", connection.0 as usize, &bytes);
                self.later(Event::ToClient(connection.0 as usize, bytes));
            }
            ServerAction::Close { connection } => self.later(Event::ClosedAtClient(connection.0 as usize)),
            ServerAction::Upcall { upcall, .. } => {
                self.schedule(self.now + SERVICE, Event::CarryOut(host, upcall))
            }
            ServerAction::SetTimer { at } => self.schedule(at, Event::ServerTimer(host)),
        }
    }
}

/// Runs a program: a server binds a name, a client resolves it and calls, and the servant calls an object of the client
/// before it replies. Returns the time at which it ended, and every byte that was sent.
fn run() -> (Time, String) {
    let world = World::new();
    let (names, server, client) = (world.add("names"), world.add("server"), world.add("client"));
    let service = NamingService::new(Store::in_memory().unwrap(), Limits::default());
    let _naming = NamingServer::start(&names, service).unwrap();
    let corbaname = format!("corbaname::names:{PORT}#probe");

    // The server's servant calls back.
    let callback: Arc<OnceLock<ProbeRef>> = Arc::default();
    let nested = callback.clone();
    let hook = move || {
        let sum = nested.get().expect("the client has given it").add(20, 22);
        assert_eq!(sum?, 42);
        Ok(())
    };
    let probe: ProbeRef = server.root_poa().activate(Hooked::new(hook)).unwrap();
    let naming = server.string_to_object(&format!("corbaloc::names:{PORT}/NameService")).unwrap();
    let naming = Naming::of(naming.narrow_unchecked());
    naming.rebind("probe", &probe).unwrap();

    let own: ProbeRef = client.root_poa().activate(Probing::default()).unwrap();
    // As if it had come in a message.
    let sent = server.string_to_object(&own.object().to_ior_string()).unwrap();
    callback.set(sent.narrow_unchecked()).unwrap();
    let found: ProbeRef = client.resolve(&corbaname).unwrap();
    found.ping().unwrap();
    assert!(found.object().locate().unwrap());
    let segments = |world: &World| world.lock().log.lines().count();
    let before = segments(&world);
    found.tick().unwrap();
    found.tick().unwrap();
    assert_eq!(segments(&world), before, "oneways wait for others to leave with");
    client.flush().unwrap();
    assert_eq!(segments(&world), before + 1, "they leave together");
    let pending = (found.echo_async("one"), found.echo_async("two"));
    assert_eq!((pending.1.wait().unwrap(), pending.0.wait().unwrap()), ("two".to_owned(), "one".to_owned()));
    let nowhere = client.string_to_object(&format!("corbaloc::nowhere:{PORT}/key")).unwrap();
    let e = nowhere.narrow_unchecked::<ProbeRef>().ping().unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Transient, "{e}");

    let state = world.lock();
    (state.now, state.log.clone())
}

/// Each call waits for the next one in the opposite direction, over the one connection, whose client no server can reach.
#[test]
fn servants_call_clients_back_over_their_connections_in_virtual_time() {
    let world = World::new();
    let server = world.add_bidirectional("server", Orb::builder().publish(&format!("server:{PORT}")));
    let client = world.add_bidirectional("client", Orb::builder());
    let exchanging = Arc::new(Exchanging::default());
    let exchange: ExchangeRef = server.root_poa().activate_shared(exchanging.clone()).unwrap();
    *exchanging.itself.lock().unwrap() = Some(exchange.clone());
    let listening = Arc::new(Listening::default());
    let listener: ListenerRef = client.root_poa().activate_shared(listening.clone()).unwrap();
    *listening.itself.lock().unwrap() = Some(listener.clone());
    let remote: ExchangeRef = client.resolve(&exchange.object().to_ior_string()).unwrap();
    for depth in 0..4 {
        assert_eq!(remote.call_back(Some(&listener), depth).unwrap(), depth + 1);
    }
    remote.keep(Some(&listener)).unwrap();
    exchange.notify_listener("hello").unwrap();
    server.flush().unwrap();
    world.run_until(&|| !listening.notified.lock().unwrap().is_empty());
    assert_eq!(*listening.notified.lock().unwrap(), ["hello"]);
    let connections = world.lock().wires.len();
    assert_eq!(connections, 1);
    // Without the connection the client cannot be reached.
    let now = world.lock().now;
    world.engines(1).0.handle(ClientEvent::Shutdown, now);
    world.run_until(&|| false);
    let e = exchange.fill(b"").unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Transient, "{e}");
}

#[test]
fn stubs_servants_and_nested_calls_run_in_virtual_time_the_same_way_each_time() {
    let (ended, log) = run();
    assert!(ended > Time::ZERO + 10 * LATENCY && ended < Time::ZERO + Duration::from_secs(1), "{ended}");
    assert!(log.lines().count() > 10, "{log}");
    assert_eq!(run(), (ended, log.clone()));
    // On another thread too, whose number and random hash keys differ.
    let elsewhere = std::thread::spawn(run).join().unwrap();
    assert_eq!(elsewhere, (ended, log));
}

/// Deadlines go by the simulation's time: a nested call has the rest of its caller's time, to the nanosecond.
#[test]
fn deadlines_shrink_on_their_way() {
    let world = World::new();
    let add = |name: &'static str| {
        let builder = Orb::builder().publish(&format!("{name}:{PORT}")).deadline_propagation(true);
        world.add_with(name, builder)
    };
    let (client, middle, last) = (add("client"), add("middle"), add("last"));
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let note = |seen: &Mutex<Vec<Duration>>| lock(seen).push(remaining_time().expect("the caller has told"));
    let noted = seen.clone();
    let hooked = Hooked::new(move || {
        note(&noted);
        Ok(())
    });
    let served: ProbeRef = last.root_poa().activate(hooked).unwrap();
    let far: ProbeRef = middle.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked();
    let noted = seen.clone();
    let hooked = Hooked::new(move || {
        note(&noted);
        far.ping()?;
        note(&noted);
        with_timeout(Some(Duration::from_millis(1)), || far.ping())?;
        far.ping_async().wait()
    });
    let served: ProbeRef = middle.root_poa().activate(hooked).unwrap();
    let probe: ProbeRef =
        client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked();
    let all = Duration::from_millis(10);
    for round in 0..100 {
        with_timeout(Some(all), || probe.ping()).unwrap();
        let [first, nested, back, own, later] = std::mem::take(&mut *lock(&seen))[..] else { panic!() };
        if round > 0 {
            // All are connected, and each request takes as long as the least that is known.
            let there_and_back = 2 * LATENCY + SERVICE;
            assert_eq!((first, nested), (all, all), "{round}");
            assert_eq!((back, own), (all - there_and_back, Duration::from_millis(1)), "{round}");
            assert_eq!(later, all - 2 * there_and_back, "{round}");
        }
    }
    // In 1 ms there is time for four calls, and the fifth is not sent.
    let outcomes: Arc<Mutex<Vec<CompletionStatus>>> = Arc::default();
    let far: ProbeRef = middle.string_to_object(&last_reference(&last, &seen)).unwrap().narrow_unchecked();
    let noted = outcomes.clone();
    let hooked = Hooked::new(move || {
        for _ in 0..8 {
            if let Err(e) = far.ping() {
                assert_eq!(e.kind, SystemExceptionKind::Timeout);
                lock(&noted).push(e.completed);
            }
        }
        Ok(())
    });
    let served: ProbeRef = middle.root_poa().activate(hooked).unwrap();
    let probe: ProbeRef =
        client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked();
    let e = with_timeout(Some(Duration::from_millis(1)), || probe.ping()).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::Timeout);
    // Four are served in time. The fifth is served too, because its caller gives up only while it is on its way.
    world.run_until(&|| lock(&outcomes).len() == 4 && lock(&seen).len() == 5);
    assert_eq!((lock(&outcomes).len(), lock(&seen).len()), (4, 5));
    let [first, rest @ ..] = &lock(&outcomes)[..] else { panic!() };
    assert_eq!(*first, CompletionStatus::Maybe);
    assert_eq!(rest, [CompletionStatus::No; 3]);
}

/// A further object that notes how much time its callers have.
fn last_reference(last: &Orb, seen: &Arc<Mutex<Vec<Duration>>>) -> String {
    let noted = seen.clone();
    let hooked = Hooked::new(move || {
        lock(&noted).push(remaining_time().unwrap_or_default());
        Ok(())
    });
    let served: ProbeRef = last.root_poa().activate(hooked).unwrap();
    served.object().to_ior_string()
}

/// Names the file into which a second process of this test writes what it has seen.
const HISTORY: &str = "IRONORB_TEST_HISTORY";

#[test]
fn programs_run_the_same_way_with_one_processor_and_another_environment() {
    let history = || {
        let (ended, log) = run();
        format!("{ended}\n{log}")
    };
    if let Some(file) = std::env::var_os(HISTORY) {
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&it| sched_getaffinity(None).unwrap().is_set(it)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        return std::fs::write(file, history()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let itself = "virtual_programs::programs_run_the_same_way_with_one_processor_and_another_environment";
    let mut elsewhere = Command::new(std::env::current_exe().unwrap());
    elsewhere.args(["--exact", itself]).current_dir(&folder).env_clear();
    elsewhere.envs([("HOME", "/nonexistent"), ("LANG", "tr_TR.UTF-8"), ("TZ", "Asia/Kolkata")]);
    let ended = elsewhere.env(HISTORY, &file).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), history());
}
