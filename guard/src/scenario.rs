//! The scenarios: two ORBs in this process, each on a thread of its own.
//!
//! Everything that depends on a clock is off or avoided, so that equal code gives equal counts.

mod servants;
mod touched;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use ironorb::cache::{Cell, ReadOptions};
use ironorb::dynamic::{self, OperationDescription, Request};
use ironorb::poa::{IdAssignment, IdUniqueness, PoaError, PoaPolicies, RequestProcessing, ServantRetention};
use ironorb::rt::{Priority, PriorityModel, RealTimeConfig, SchedulingPolicy};
use ironorb::{
    Deferred, ExtentConfig, ExtentRange, LaneConfig, Orb, OrbBuilder, ServerConcurrency, TypedRef,
};
use ironorb_trace::{CurrentTrace, TraceContext};
use rustix::time::{ClockId, clock_gettime};

mod idl {
    ironorb::include_idl!("guard");
}

use crate::table::Tolerance;
use idl::guard::{BinStruct, Counted, CountedAsync, CountedRef, Gate, GateRef, HeldRef, HeldState, PlainRef};
use servants::{AddsContext, Closed, Described, Elements, Keeps, Passive, ReadsContext, Replies, Servant};
pub(crate) use touched::Touch;

/// A kind of call that is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    call: Call,
    server: Server,
    client: Client,
}

/// What is called, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Without parameters.
    Void,
    /// A long in both directions.
    Long,
    /// 1 KiB of octets in both directions.
    Octets,
    /// This many structs of five members. 2,000 of them are borrowed from a message that is large and yet
    /// arrives with one receive.
    Structs(usize),
    /// 48 KiB of octets: sent by a gather write, and borrowed.
    ManyOctets,
    Oneway,
    /// Without parameters, asynchronous, and waited for at once.
    Async,
    /// Without parameters, by a new dynamic request for each call.
    DiiNew,
    /// Without parameters, by one dynamic request.
    DiiReused,
    /// Without parameters, in this process.
    Collocated,
    /// The first collocated call after the ORB's binding epoch has ended.
    CollocatedAfterEpoch,
    /// The first call by a new reference, over a connection that exists.
    FirstOfReference,
    /// Without parameters, to a hundred objects in turn.
    Robin(Population),
    /// Without parameters, to a hundred elements of an extent in turn.
    Elements,
    /// At a state that clients may hold, without a call.
    Held(AtState),
    /// None: the clock is read that cached reads need.
    Clock,
}

/// What is done at a state that clients may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtState {
    /// The client reads what it holds.
    Read,
    /// The server writes, and no client holds the state.
    WriteUntold,
    /// The server writes, and a client holds the state that has not been told of the write before.
    WriteTold,
    /// The server writes for the first time since a client has taken what it was told.
    WriteAnew,
}

/// The server, where it differs from the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// A thread for the connection, over TCP.
    Default,
    /// Leader/followers with this many threads.
    Pool(usize),
    /// A hybrid server none of whose connections keeps its thread.
    Hybrid,
    /// A Unix socket.
    Unix,
    /// Rings in shared memory.
    SharedMemory,
    /// References and messages of GIOP 1.0.
    Giop10,
    /// An interceptor that does nothing.
    Interceptor,
    /// The program reads the service context that clients add.
    Context,
    /// Requests tell how long their callers wait.
    Deadlines,
    /// Servants go on with the trace of their requests.
    Trace,
    /// Servants run at the priority of their requests, on threads without one.
    Priority,
    /// Requests come to a lane of their priority.
    PriorityLane,
    /// Requests come to a lane whose priority the server has declared.
    DeclaredLane,
    /// Objects are elements of an extent.
    Extent,
    /// One servant serves all objects, of which the adapter keeps nothing.
    DefaultServant,
    /// A servant that gets a `Reply`, and answers within its upcall.
    DeferredServant,
    /// A servant that learns at run time which operation is called.
    DynamicServant,
}

/// The client, where it differs from the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Default,
    /// Oneways leave in batches.
    Batching,
    /// An interceptor that does nothing.
    Interceptor,
    /// Adds a service context of eight octets.
    Context,
    /// Tells how long it waits.
    Deadlines,
    /// Calls within a trace.
    Trace,
    /// Calls at a priority.
    Priority,
    /// Another thread waits for a reply on the same connection.
    SharedConnection,
}

/// The places of objects that are called in turn. The cost of finding them must not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Population {
    is_persistent: bool,
    /// Whether each object has an adapter of its own, with further ones beside it and far below the root.
    /// Otherwise one adapter has all objects.
    is_spread: bool,
}

impl Scenario {
    pub(crate) const ALL: &[Scenario] = &[
        Scenario::of("void", Call::Void),
        Scenario::of("long", Call::Long),
        Scenario::of("octet-1k", Call::Octets),
        Scenario::of("struct64", Call::Structs(64)),
        Scenario::of("struct2000", Call::Structs(2_000)),
        Scenario::of("octet-48k", Call::ManyOctets),
        Scenario::of("oneway", Call::Oneway),
        Scenario::of("oneway-batched", Call::Oneway).from(Client::Batching),
        Scenario::of("collocated", Call::Collocated),
        Scenario::of("collocated-epoch", Call::CollocatedAfterEpoch),
        Scenario::of("async", Call::Async),
        Scenario::of("first-call", Call::FirstOfReference),
        Scenario::of("intercepted", Call::Void).from(Client::Interceptor).to(Server::Interceptor),
        Scenario::of("context", Call::Void).from(Client::Context),
        Scenario::of("context-2000", Call::Structs(2_000)).from(Client::Context),
        Scenario::of("context-read", Call::Void).from(Client::Context).to(Server::Context),
        Scenario::of("priority", Call::Void).from(Client::Priority).to(Server::Priority),
        Scenario::of("lane", Call::Void).from(Client::Priority).to(Server::DeclaredLane),
        Scenario::of("priority-lane", Call::Void).from(Client::Priority).to(Server::PriorityLane),
        Scenario::of("deadline", Call::Void).from(Client::Deadlines).to(Server::Deadlines),
        Scenario::of("trace", Call::Void).from(Client::Trace).to(Server::Trace),
        Scenario::of("server-intercepted", Call::Void).to(Server::Interceptor),
        Scenario::of("shared", Call::Void).from(Client::SharedConnection).to(Server::Pool(2)),
        Scenario::of("pool", Call::Void).to(Server::Pool(1)),
        Scenario::of("hybrid", Call::Void).to(Server::Hybrid),
        Scenario::of("unix", Call::Void).to(Server::Unix),
        Scenario::of("shared-memory", Call::Void).to(Server::SharedMemory),
        Scenario::of("giop-1.0", Call::Void).to(Server::Giop10),
        Scenario::of("deferred", Call::Void).to(Server::DeferredServant),
        Scenario::of("dii-void", Call::DiiNew),
        Scenario::of("dii-reused", Call::DiiReused),
        Scenario::of("dsi", Call::Void).to(Server::DynamicServant),
        Scenario::of("robin", Call::Robin(Population { is_persistent: false, is_spread: false })),
        Scenario::of("robin-spread", Call::Robin(Population { is_persistent: false, is_spread: true })),
        Scenario::of("persistent", Call::Robin(Population { is_persistent: true, is_spread: false })),
        Scenario::of("persistent-spread", Call::Robin(Population { is_persistent: true, is_spread: true })),
        Scenario::of("elements", Call::Elements).to(Server::Extent),
        Scenario::of("default-servant", Call::Void).to(Server::DefaultServant),
        Scenario::of("clock", Call::Clock),
        Scenario::of("cached-read", Call::Held(AtState::Read)),
        Scenario::of("write-untold", Call::Held(AtState::WriteUntold)),
        Scenario::of("write-told", Call::Held(AtState::WriteTold)),
        Scenario::of("write-anew", Call::Held(AtState::WriteAnew)),
    ];

    const fn of(name: &'static str, call: Call) -> Scenario {
        Scenario { name, call, server: Server::Default, client: Client::Default }
    }

    const fn to(self, server: Server) -> Scenario {
        Scenario { server, ..self }
    }

    const fn from(self, client: Client) -> Scenario {
        Scenario { client, ..self }
    }

    /// Calls that are counted.
    pub(crate) fn calls(self) -> usize {
        match self.call {
            // As many as the system queues for a server that does not read.
            Call::Oneway => 500,
            // Each call has markers of its own, and callgrind writes a file for each.
            _ if self.is_prepared() => 50,
            Call::Collocated | Call::Held(_) | Call::Clock => 10_000,
            _ => 1_000,
        }
    }

    /// Whether something comes before each call that is not counted.
    fn is_prepared(self) -> bool {
        matches!(
            self.call,
            Call::CollocatedAfterEpoch | Call::FirstOfReference | Call::Held(AtState::WriteAnew)
        )
    }

    /// How steady the counts are.
    pub(crate) fn tolerance(self) -> Tolerance {
        match (self.call, self.client, self.server) {
            (_, Client::SharedConnection, _) => Tolerance::HANDED_OVER,
            (Call::Async, ..) | (.., Server::SharedMemory) => Tolerance::VARYING,
            _ => Tolerance::STEADY,
        }
    }

    /// Whether a server thread takes part.
    pub(crate) fn has_server(self) -> bool {
        !self.is_collocated() && !matches!(self.call, Call::Held(_) | Call::Clock)
    }

    fn is_collocated(self) -> bool {
        matches!(self.call, Call::Collocated | Call::CollocatedAfterEpoch)
    }

    /// Warms up, and makes the calls between the markers.
    pub(crate) fn run(self) -> Result<(), String> {
        self.run_between_two_orbs().map_err(|e| e.to_string())
    }

    fn run_between_two_orbs(self) -> Result<(), Failure> {
        let (go_on, held) = channel();
        let server = self.server.start()?;
        let served = self.server.activate(&server, Servant::new(held))?;
        // A second ORB does not know that the object is in this process.
        let client = self.client.start()?;
        let object: CountedRef = match self.is_collocated() {
            true => served,
            false => client.string_to_object(&served.object().to_ior_string())?.narrow_unchecked(),
        };
        let others = match self.call {
            Call::Robin(population) => population.make(&server, &client)?,
            Call::Elements => elements(&object),
            _ => Vec::new(),
        };
        let gate = match self.client {
            Client::SharedConnection => Some(Waiter::start(&server, &client)?),
            _ => None,
        };
        let call = self.call.steps(&server, &client, &object, others)?;
        let _trace = (self.client == Client::Trace).then(|| CurrentTrace::enter(TraceContext::begin(true)));
        if self.client == Client::Priority {
            client.rt_current().map_or(Ok(()), |current| current.set_priority(PRIORITY))?;
        }
        self.count(&object, call, &go_on)?;
        if let Some(gate) = gate {
            gate.end();
        }
        client.shutdown(false)?;
        server.shutdown(false)?;
        Ok(())
    }

    fn count(self, object: &CountedRef, mut steps: Steps, go_on: &Sender<()>) -> Result<(), Failure> {
        // Two rounds: the first fills caches that the second uses.
        for is_counted in [false, true] {
            if is_counted && self.has_server() {
                object.begin()?;
            }
            if self.call == Call::Oneway {
                // The server reads only once all requests have arrived, so that it always reads equally many
                // at once.
                object.hold()?;
            }
            match &mut steps.prepare {
                None => between_markers(is_counted, || (0..self.calls()).try_for_each(|_| (steps.call)()))?,
                Some(prepare) => {
                    for _ in 0..self.calls() {
                        prepare()?;
                        between_markers(is_counted, &mut steps.call)?;
                    }
                }
            }
            if self.call == Call::Oneway {
                // The servant waits for this signal.
                let _ = go_on.send(());
            }
            if is_counted && self.has_server() {
                object.end()?;
            } else {
                object.nothing()?;
            }
        }
        Ok(())
    }
}

fn between_markers(is_counted: bool, run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    if is_counted {
        client_begins();
    }
    run()?;
    if is_counted {
        client_ends();
    }
    Ok(())
}

impl Server {
    fn start(self) -> Result<Orb, Failure> {
        let settings: &[&str] = if self == Server::Giop10 { &["-ORBgiopVersion=1.0"] } else { &[] };
        let endpoint = match self {
            Server::Unix => "uiop://",
            Server::SharedMemory => "shm://",
            _ => "iiop://127.0.0.1:0",
        };
        let mut builder = orb_with(settings).endpoint(endpoint)?.concurrency(match self {
            Server::Pool(threads) => ServerConcurrency::LeaderFollowers { threads },
            Server::Hybrid => ServerConcurrency::Hybrid { threads_max: 1 },
            _ => ServerConcurrency::ThreadPerConnection,
        });
        // One thread counts all calls of the connection, even where another thread would help, and however
        // long the pauses.
        builder.config().threads_per_connection_max = 1;
        builder = match self {
            Server::Interceptor => builder.server_interceptor(Passive),
            Server::Context => builder.server_context(ReadsContext),
            Server::Deadlines => builder.deadline_propagation(true),
            Server::Trace => ironorb_trace::install(builder),
            Server::Priority => builder.real_time(real_time()),
            Server::PriorityLane | Server::DeclaredLane => {
                let lane = LaneConfig::new("lane").endpoint(endpoint).priority(PRIORITY);
                builder.real_time(real_time()).lane(lane)
            }
            _ => builder,
        };
        Ok(builder.build()?)
    }

    fn activate(self, server: &Orb, servant: Servant) -> Result<CountedRef, Failure> {
        let poa = server.root_poa();
        match self {
            Server::DeferredServant => {
                let plain: PlainRef = poa.activate(Deferred(Replies))?;
                Ok(plain.object().narrow_unchecked())
            }
            Server::Extent => {
                let extent = poa.create_extent("elements", ELEMENTS, ExtentConfig::in_memory(), |_| 0_u32)?;
                extent.serve::<PlainRef, _>(Elements(extent.clone()))?;
                Ok(extent.reference::<PlainRef>(0)?.object().narrow_unchecked())
            }
            Server::DefaultServant => {
                let policies = PoaPolicies {
                    id_assignment: IdAssignment::User,
                    id_uniqueness: IdUniqueness::Multiple,
                    servant_retention: ServantRetention::NonRetain,
                    request_processing: RequestProcessing::DefaultServant,
                    ..PoaPolicies::PERSISTENT
                };
                let poa = poa.create_poa("default", None, policies)?;
                poa.set_default_servant(ironorb::servant::<CountedRef, _>(Arc::new(servant)))?;
                Ok(poa.create_reference_with_id("an object", CountedRef::REPOSITORY_ID)?.narrow_unchecked())
            }
            Server::DynamicServant => {
                let id = poa.activate_object(dynamic::servant(Arc::new(Described)))?;
                Ok(poa.id_to_reference(&id)?.narrow_unchecked())
            }
            Server::Priority | Server::PriorityLane | Server::DeclaredLane => {
                let model = match self {
                    Server::DeclaredLane => PriorityModel::ServerDeclared(PRIORITY),
                    _ => PriorityModel::ClientPropagated { default: Priority::MIN },
                };
                let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
                Ok(poa.create_poa("priorities", None, policies)?.activate(servant)?)
            }
            _ => Ok(poa.activate(servant)?),
        }
    }
}

impl Client {
    fn start(self) -> Result<Orb, Failure> {
        let settings: &[&str] = match self {
            Client::Batching => &[BATCHING],
            Client::SharedConnection => &["-ORBconnectionsPerEndpointMax=1"],
            _ => &[],
        };
        let builder = orb_with(settings).no_endpoint();
        Ok(match self {
            Client::Interceptor => builder.client_interceptor(Passive),
            Client::Context => builder.client_context(AddsContext),
            Client::Deadlines => builder.deadline_propagation(true),
            Client::Trace => ironorb_trace::install(builder),
            Client::Priority => builder.real_time(real_time()),
            _ => builder,
        }
        .build()?)
    }
}

/// Priorities without those of the system, which a process may not be granted.
fn real_time() -> RealTimeConfig {
    RealTimeConfig::new().scheduling(SchedulingPolicy::Other)
}

/// The priority of calls.
const PRIORITY: Priority = Priority::MAX;

/// A thread that waits for a reply for as long as the calls last.
struct Waiter {
    open: Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Waiter {
    /// Returns when the thread's request has reached its servant.
    fn start(server: &Orb, client: &Orb) -> Result<Waiter, Failure> {
        let (open, opened) = channel();
        let (entered, has_entered) = channel();
        let gate: GateRef = server.root_poa().activate(Closed::new(entered, opened))?;
        let gate: GateRef = client.string_to_object(&gate.object().to_ior_string())?.narrow_unchecked();
        let thread = thread::spawn(move || {
            let _ = gate.pass();
        });
        has_entered.recv()?;
        Ok(Waiter { open, thread })
    }

    fn end(self) {
        let _ = self.open.send(());
        let _ = self.thread.join();
    }
}

type Step = Box<dyn FnMut() -> Result<(), Failure>>;

/// What is repeated: the call that is counted, and what comes before it.
struct Steps {
    prepare: Option<Step>,
    call: Step,
}

impl Call {
    fn steps(
        self,
        server: &Orb,
        client: &Orb,
        object: &CountedRef,
        others: Vec<CountedRef>,
    ) -> Result<Steps, Failure> {
        Ok(match self {
            Call::CollocatedAfterEpoch => {
                let (object, poa) = (object.clone(), server.root_poa());
                let prepare = move || {
                    // The end of an object that has been called here ends the epoch.
                    let other: CountedRef = poa.activate(Servant::new(channel().1))?;
                    other.nothing()?;
                    other.nothing()?;
                    poa.deactivate(&poa.reference_to_id(other.object())?)?;
                    Ok(())
                };
                Steps { prepare: Some(Box::new(prepare)), call: Box::new(move || Ok(object.nothing()?)) }
            }
            Call::FirstOfReference => {
                let (client, text) = (client.clone(), object.object().to_ior_string());
                let next = Arc::new(std::sync::Mutex::new(object.clone()));
                let (fresh, called) = (next.clone(), next);
                let prepare = move || {
                    *servants::lock(&fresh) = client.string_to_object(&text)?.narrow_unchecked();
                    Ok(())
                };
                let call = move || Ok(servants::lock(&called).nothing()?);
                Steps { prepare: Some(Box::new(prepare)), call: Box::new(call) }
            }
            Call::Held(what) => what.steps(server, client)?,
            _ => Steps { prepare: None, call: self.step(object.clone(), others) },
        })
    }

    fn step(self, object: CountedRef, others: Vec<CountedRef>) -> Step {
        match self {
            Call::Void
            | Call::Collocated
            | Call::CollocatedAfterEpoch
            | Call::FirstOfReference
            | Call::Held(_) => Box::new(move || Ok(object.nothing()?)),
            Call::Clock => Box::new(|| {
                black_box(clock_gettime(ClockId::Boottime));
                Ok(())
            }),
            Call::Long => Box::new(move || {
                black_box(object.take_long(black_box(42))?);
                Ok(())
            }),
            Call::Octets => {
                let octets = vec![0x5A; 1 << 10];
                Box::new(move || {
                    black_box(object.take_octets(black_box(&octets))?);
                    Ok(())
                })
            }
            Call::Structs(count) => {
                let structs = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; count];
                Box::new(move || Ok(object.take_structs(black_box(&structs))?))
            }
            Call::ManyOctets => {
                let octets = vec![0x5A; 48 << 10];
                Box::new(move || Ok(object.see_octets(black_box(&octets))?))
            }
            Call::Oneway => Box::new(move || Ok(object.forget()?)),
            Call::Async => Box::new(move || Ok(object.nothing_async().wait()?)),
            Call::Robin(_) | Call::Elements => {
                let mut next = 0;
                Box::new(move || {
                    next = (next + 1) % others.len();
                    Ok(others[next].nothing()?)
                })
            }
            Call::DiiNew => {
                let operation = Arc::new(OperationDescription::new("nothing"));
                Box::new(move || {
                    let mut request = Request::new(object.object(), operation.clone());
                    request.invoke()?;
                    Ok(())
                })
            }
            Call::DiiReused => {
                let mut request = Request::new(object.object(), OperationDescription::new("nothing"));
                Box::new(move || {
                    request.invoke()?;
                    Ok(())
                })
            }
        }
    }
}

/// References to elements, as a client computes them.
fn elements(first: &CountedRef) -> Vec<CountedRef> {
    ExtentRange::of(first).into_iter().flatten().skip(1).take(OBJECTS).collect()
}

impl AtState {
    fn steps(self, server: &Orb, client: &Orb) -> Result<Steps, Failure> {
        let cell = Cell::new(HeldState { value: 7 });
        let local: HeldRef = server.root_poa().activate(Keeps(cell.clone()))?;
        let held: HeldRef = client.string_to_object(&local.object().to_ior_string())?.narrow_unchecked();
        if self != AtState::WriteUntold {
            // The first read opens a session, the second is a fill.
            (0..3).try_for_each(|_| held.value().map(drop))?;
        }
        let (asks, reads) = (held.clone(), held.clone());
        let write: Step = Box::new(move || {
            let _client = &held;
            cell.update(|mut state| state.set_value(black_box(9)));
            Ok(())
        });
        Ok(match self {
            AtState::Read => {
                let read: Step = Box::new(move || {
                    black_box(black_box(&reads).value()?);
                    Ok(())
                });
                Steps { prepare: None, call: read }
            }
            AtState::WriteUntold | AtState::WriteTold => Steps { prepare: None, call: write },
            AtState::WriteAnew => {
                // The second question says that the answer to the first has come.
                let now = ReadOptions::new().lag(Duration::ZERO);
                let ask = move || Ok((0..2).try_for_each(|_| asks.value_with(&now).map(|_| ()))?);
                Steps { prepare: Some(Box::new(ask)), call: write }
            }
        })
    }
}

impl Population {
    /// Creates a hundred objects, and returns the client's references to them.
    fn make(self, server: &Orb, client: &Orb) -> Result<Vec<CountedRef>, Failure> {
        let strings = self.make_at(server)?;
        let references =
            strings.iter().map(|reference| Ok(client.string_to_object(reference)?.narrow_unchecked()));
        references.collect()
    }

    fn make_at(self, server: &Orb) -> Result<Vec<String>, PoaError> {
        let Population { is_persistent, is_spread } = self;
        let policies = if is_persistent { PoaPolicies::PERSISTENT } else { PoaPolicies::default() };
        let mut parent = server.root_poa();
        for level in 1..if is_spread { LEVELS } else { 1 } {
            parent = parent.create_poa(&format!("level {level}"), None, policies)?;
        }
        let mut adapters = Vec::new();
        for number in 0..if is_spread { ADAPTERS } else { 1 } {
            adapters.push(parent.create_poa(&format!("adapter {number}"), None, policies)?);
        }
        let mut references = Vec::new();
        for number in 0..OBJECTS {
            let poa = &adapters[number * (adapters.len() / OBJECTS).max(1) % adapters.len()];
            let servant = Servant::new(channel().1);
            let served: CountedRef = match is_persistent {
                true => poa.activate_with_id(format!("object {number}"), servant)?,
                false => poa.activate(servant)?,
            };
            references.push(served.object().to_ior_string());
        }
        Ok(references)
    }
}

const OBJECTS: usize = 100;
const ELEMENTS: u64 = 1_000;
const ADAPTERS: usize = 1_000;
const LEVELS: usize = 50;

/// Blocking waits. A thread that spins before it sleeps would spin as long as the clock allows.
const WAITING: [&str; 3] =
    ["-ORBclientWaiting=block", "-ORBserverWaiting=block", "-ORBsharedMemoryWaiting=block"];

/// Batching by number alone: neither bytes nor the clock end a batch of a hundred early.
const BATCHING: &str = "-ORBonewayBatching=64KiB,100,60s";

fn orb_with(settings: &[&str]) -> OrbBuilder {
    let mut settings = WAITING.iter().chain(settings).map(|setting| (*setting).to_owned()).collect();
    OrbBuilder::default().arguments(&mut settings)
}

/// Why a scenario failed.
type Failure = Box<dyn std::error::Error>;

// Callgrind finds these functions by name. Their bodies differ, so that the compiler does not merge them.

#[inline(never)]
fn client_begins() {
    black_box(1);
}

#[inline(never)]
fn client_ends() {
    black_box(2);
}

#[inline(never)]
fn server_begins() {
    black_box(3);
}

#[inline(never)]
fn server_ends() {
    black_box(4);
}
