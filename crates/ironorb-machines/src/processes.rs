//! Processes: their engines, and the ORBs of these, made when the first call needs them.
//!
//! A process that serves has an ORB. The calls to other processes are all of one further ORB, with an engine for each process
//! that calls: what an ORB keeps of a server, its profile and its address, is the same in all of them, and a network of a
//! thousand processes would have it a million times. Nothing that is sent depends on it: connections are the engines'.

use std::sync::Arc;

use ironorb::engine::{
    self, CallNumber, ClientAction, ClientEngine, ClientEvent, ConnectionId, ServerAction, ServerEngine,
    ServerEvent, UpcallNumber,
};
use ironorb::giop::Ior;
use ironorb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, RequestProcessing, ServantRetention,
};
use ironorb::rt::{Priority, PriorityMapping, PriorityModel, RealTimeConfig, RtCurrent, SchedulingPolicy};
use ironorb::{ObjectRef, Orb, OrbBuilder, PoaPolicies};
use ironorb_model::resources;
use ironorb_model::scenario;
use ironorb_model::{Happening, Place, Pool, ResourceObservations, Time, Turns};

use super::bodies::{self, Bodies};
use super::calls::Call;
use super::hosts::HostNumber;
use super::wires::{Segment, Toward, Wire};
use super::world::{Event, World};
use crate::MachinesError;

/// A process of a server or of a class's clients.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) host: HostNumber,
    /// The index of its server, if it serves.
    pub(super) server: Option<usize>,
    /// Its first pool of threads, if it has pools.
    pub(super) first_pool: Option<u32>,
    /// Which objects its servants call in turn.
    pub(super) turns: Turns,
    /// What makes its calls to other processes. `None` until it is needed.
    calling: Option<Box<Calling>>,
    /// What serves calls of its objects. `None` until it is needed.
    serving: Option<Box<Serving>>,
}

/// What makes the calls of a process to others.
#[derive(Debug)]
struct Calling {
    engine: ClientEngine,
    /// The numbers of the connections that it has made.
    wires: Vec<u32>,
}

/// What serves calls of a process's objects.
#[derive(Debug)]
struct Serving {
    engine: ServerEngine,
    /// What makes the calls within the process.
    within: ClientEngine,
    /// Its objects, as its own calls have them.
    objects: Objects,
    /// The ORB serves as long as this is there.
    _orb: Orb,
}

/// The ORB by which all processes call others.
#[derive(Debug)]
pub(super) struct Callers {
    orb: Orb,
    /// What gives calls their priorities, if some class has one.
    current: Option<RtCurrent>,
    /// The objects of each process that has been called.
    known: Vec<Option<Objects>>,
}

/// References to the objects of one process.
#[derive(Debug)]
struct Objects {
    /// The object that was called last, and the reference to it.
    last: u64,
    reference: ObjectRef,
}

impl World<'_> {
    pub(super) fn add_servers(&mut self) -> Result<(), MachinesError> {
        for (index, server) in self.scenario.servers.iter().enumerate() {
            self.first_process.push(self.processes.len() as u32);
            self.operations.push(server.operations.iter().map(bodies::operation).collect());
            for number in 0..self.scenario.hosts[server.hosts].count {
                let first_pool = self.add_pools(index);
                let host = self.first_host[server.hosts] + number;
                self.add_process(host, Some(index), first_pool);
            }
        }
        Ok(())
    }

    pub(super) fn add_process(
        &mut self,
        host: HostNumber,
        server: Option<usize>,
        first_pool: Option<u32>,
    ) -> u32 {
        let turns = Turns::default();
        self.processes.push(Process { host, server, first_pool, turns, calling: None, serving: None });
        (self.processes.len() - 1) as u32
    }

    fn add_pools(&mut self, server: usize) -> Option<u32> {
        let sizes = self.scenario.servers[server].pools();
        let first = (!sizes.is_empty()).then_some(self.pools.len() as u32);
        for size in sizes {
            let pool = Pool::new((0..size.max(1)).map(|_| self.add_thread()));
            self.pools.push(pool);
        }
        first
    }

    pub(super) fn observe_pools(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        resources::observe_pools(self.scenario, into, |server, number, lane, name| {
            let pool = self.processes[(self.first_process[server] + number) as usize].first_pool?;
            Some(self.pools[(pool + lane) as usize].observe(now, name))
        });
    }

    /// What serves the objects of a process. It is made now if there is none.
    fn serving(&mut self, process: u32) -> Result<&mut Serving, MachinesError> {
        let Process { server, serving, .. } = &mut self.processes[process as usize];
        if serving.is_none() {
            let server = server.ok_or(MachinesError::Gone)?;
            let server = &self.scenario.servers[server];
            *serving = Some(Box::new(Serving::new(process, server, self.seed, self.has_priorities)?));
        }
        serving.as_deref_mut().ok_or(MachinesError::Gone)
    }

    /// A reference to an object of `to` as `from` has it.
    fn reference(&mut self, from: u32, to: u32, object: u64) -> Result<ObjectRef, MachinesError> {
        if from == to {
            return self.serving(to)?.objects.get(object);
        }
        if let Some(Some(known)) = self.callers.known.get_mut(to as usize) {
            return known.get(object);
        }
        let ior = self.serving(to)?.objects.reference.to_ior();
        let mut objects = Objects::of(&self.callers.orb, ior)?;
        let reference = objects.get(object)?;
        let known = &mut self.callers.known;
        known.resize_with(known.len().max(to as usize + 1), || None);
        known[to as usize] = Some(objects);
        Ok(reference)
    }

    /// Gives a call to its client's engine, which writes the request or has the servant of the same process run.
    pub(super) fn begin_at_engine(&mut self, call: u32) -> Result<(), MachinesError> {
        let Call { from, to, from_thread, .. } = self.calls[call];
        // A call within the process needs no connection, and does not number its thread.
        let known = (from != to).then(|| self.connections.of_thread(from, from_thread, to));
        let caller = match known {
            Some(Ok(wire)) => self.wires[wire as usize].place.number as usize,
            Some(Err(place)) => place.number as usize,
            None => 0,
        };
        let object = self.reference(from, to, self.calls[call].drawn.object)?;
        let (server, operation) = self.calls[call].names();
        let octets = self.scenario.servers[server].operations[operation].request_octets;
        let event = ClientEvent::Call {
            call: CallNumber(u64::from(call)),
            caller,
            object,
            operation: self.operations[server][operation],
            arguments: bodies::arguments(octets),
            deadline: None,
        };
        let now = engine_time(self.now());
        let priority = self.priority_of(call).and_then(Priority::new);
        // It travels with the request.
        let at_priority = match (&self.callers.current, priority) {
            (Some(current), Some(priority)) => Some(current.stay_at(priority)?),
            _ => None,
        };
        let Some(known) = known else {
            self.serving(from)?.within.handle(event, now);
            drop(at_priority);
            self.drain_within(from);
            return Ok(());
        };
        let calling = &mut self.processes[from as usize].calling;
        let calling = calling.get_or_insert_with(|| {
            Box::new(Calling { engine: ClientEngine::new(&self.callers.orb), wires: Vec::new() })
        });
        calling.engine.handle(event, now);
        drop(at_priority);
        self.drain_client(from, known.err());
        if self.calls[call].is_written() {
            let wire = known.or_else(|place| self.connections.at(place)).map_err(|_| MachinesError::Gone)?;
            self.wires[wire as usize].written.push(&mut self.calls, call);
        }
        Ok(())
    }

    pub(super) fn arrives(&mut self, segment: &Segment) {
        let Segment { wire, toward, bytes } = segment;
        self.digest.note(self.now(), Happening::Arrival, *wire);
        let Wire { place: Place { client, server, .. }, connection, .. } = self.wires[*wire as usize];
        match toward {
            Toward::Server => {
                let event = ServerEvent::Received { connection: ConnectionId(u64::from(*wire)), bytes };
                self.server_event(server, event);
            }
            Toward::Client => self.client_event(client, ClientEvent::Received { connection, bytes }),
        }
    }

    pub(super) fn client_timer(&mut self, process: u32) {
        self.client_event(process, ClientEvent::Timer);
    }

    pub(super) fn server_timer(&mut self, process: u32) {
        self.server_event(process, ServerEvent::Timer);
    }

    fn client_event(&mut self, process: u32, event: ClientEvent<'_>) {
        let now = engine_time(self.now());
        if let Some(calling) = &self.processes[process as usize].calling {
            calling.engine.handle(event, now);
            self.drain_client(process, None);
        }
    }

    fn server_event(&mut self, process: u32, event: ServerEvent<'_>) {
        let now = engine_time(self.now());
        if let Some(serving) = &mut self.processes[process as usize].serving {
            serving.engine.handle(event, now);
            self.drain_server(process);
        }
    }

    /// A thread takes a request.
    pub(super) fn begin_upcall(&mut self, call: u32) {
        let process = self.calls[call].to;
        let upcall = self.calls[call].upcall;
        let Some(serving) = &mut self.processes[process as usize].serving else { return };
        let begun = serving.engine.begin_upcall(upcall);
        if self.upcalls.len() <= call as usize {
            self.upcalls.resize_with(call as usize + 1, || None);
        }
        self.upcalls[call as usize] = begun;
        self.drain_server(process);
    }

    /// A servant answers.
    pub(super) fn end_upcall(&mut self, call: u32) {
        let process = self.calls[call].to;
        let now = engine_time(self.now());
        let upcall = self.upcalls.get_mut(call as usize).and_then(Option::take);
        let Some(serving) = &mut self.processes[process as usize].serving else { return };
        if let Some(mut upcall) = upcall {
            upcall.run_at(now);
            serving.engine.end_upcall(upcall);
        }
        self.drain_server(process);
    }

    /// Carries out what a server's engine wants. Threads that take the requests which it announces meanwhile leave what
    /// they cause to the same loop.
    fn drain_server(&mut self, process: u32) {
        if std::mem::replace(&mut self.is_draining, true) {
            return;
        }
        while let Some(serving) = &mut self.processes[process as usize].serving {
            match serving.engine.poll_action() {
                None => break,
                Some(ServerAction::Transmit { connection, bytes }) => {
                    self.transmit(connection.0 as u32, Toward::Client, bytes);
                }
                Some(ServerAction::Upcall { upcall, connection }) => {
                    self.announced(connection.0 as u32, upcall);
                }
                Some(ServerAction::SetTimer { at }) => {
                    self.timers += 1;
                    self.agenda.enter(model_time(at), Event::ServerTimer { process });
                }
                Some(ServerAction::Close { connection }) => {
                    self.failure.get_or_insert(MachinesError::Closed(connection));
                }
            }
        }
        self.is_draining = false;
    }

    /// Carries out what a client's engine wants. `place` is that of the connection that the call needs, if there is none.
    fn drain_client(&mut self, process: u32, place: Option<Place>) {
        loop {
            let Some(calling) = &self.processes[process as usize].calling else { return };
            match calling.engine.poll_action() {
                None => return,
                Some(ClientAction::Transmit { connection, bytes }) => {
                    let wire = calling.wires[connection.0 as usize];
                    self.transmit(wire, Toward::Server, bytes);
                }
                Some(ClientAction::Complete { call, outcome }) => {
                    self.completed(call.0 as u32, outcome);
                }
                Some(ClientAction::Connect { connection, .. }) => match place {
                    Some(place) => self.connect(place, connection),
                    None => drop(self.failure.get_or_insert(MachinesError::Gone)),
                },
                Some(ClientAction::SetTimer { at }) => {
                    self.timers += 1;
                    self.agenda.enter(model_time(at), Event::ClientTimer { process });
                }
                Some(ClientAction::Close { connection }) => {
                    self.failure.get_or_insert(MachinesError::Closed(connection));
                }
                Some(ClientAction::Upcall { .. }) => {} // connections are not bidirectional
            }
        }
    }

    /// Carries out what becomes of calls within a process: they end.
    fn drain_within(&mut self, process: u32) {
        while let Some(serving) = &self.processes[process as usize].serving {
            match serving.within.poll_action() {
                None => return,
                Some(ClientAction::Complete { call, outcome }) => self.completed(call.0 as u32, outcome),
                Some(_) => drop(self.failure.get_or_insert(MachinesError::Gone)),
            }
        }
    }

    fn connect(&mut self, place: Place, connection: ConnectionId) {
        let wire = self.add_wire(place, connection);
        let Place { client, server, .. } = place;
        let Some(calling) = &mut self.processes[client as usize].calling else { return };
        debug_assert_eq!(calling.wires.len() as u64, connection.0, "engines number connections in turn");
        calling.wires.push(wire);
        // The other levels' connections are there at once, too.
        self.server_event(server, ServerEvent::Accepted { connection: ConnectionId(u64::from(wire)) });
        let now = engine_time(self.now());
        if let Some(calling) = &self.processes[client as usize].calling {
            calling.engine.handle(ClientEvent::Connected { connection }, now);
        }
    }

    /// A request has come.
    fn announced(&mut self, wire: u32, upcall: UpcallNumber) {
        match self.wires[wire as usize].written.pop(&mut self.calls) {
            Some(call) => {
                self.calls[call].upcall = upcall;
                self.calls[call].wire = wire;
                self.enqueue(call);
            }
            None => drop(self.failure.get_or_insert(MachinesError::Gone)),
        }
    }
}

impl Callers {
    pub(super) fn new(seed: u64, has_priorities: bool) -> Result<Callers, MachinesError> {
        let orb = orb(seed, 0, has_priorities).build()?;
        Ok(Callers { current: orb.rt_current(), orb, known: Vec::new() })
    }
}

impl Serving {
    /// Makes an ORB with an adapter for a server's objects.
    fn new(
        process: u32,
        server: &scenario::Server,
        seed: u64,
        has_priorities: bool,
    ) -> Result<Serving, MachinesError> {
        let publish = format!("p{process}:2809");
        let orb = orb(seed, u64::from(process) + 1, has_priorities).publish(&publish).build()?;
        let policies = PoaPolicies {
            lifespan: Lifespan::Persistent,
            id_assignment: IdAssignment::User,
            id_uniqueness: IdUniqueness::Multiple,
            implicit_activation: ImplicitActivation::No,
            servant_retention: ServantRetention::NonRetain,
            request_processing: RequestProcessing::DefaultServant,
            priority_model: has_priorities
                .then_some(PriorityModel::ClientPropagated { default: Priority::MIN }),
            ..PoaPolicies::default()
        };
        // A name that no other process has: else callers with such an adapter would compare addresses to tell whose it is.
        let poa = orb.root_poa().create_poa(&format!("{process:07x}"), None, policies)?;
        poa.set_default_servant(Arc::new(Bodies::of(server)))?;
        let id = ObjectId::from(&0_u64.to_be_bytes()[..]);
        let first = poa.create_reference_with_id(id, bodies::REPOSITORY_ID)?;
        let objects = Objects::of(&orb, first.to_ior())?;
        Ok(Serving { engine: ServerEngine::new(&orb), within: ClientEngine::new(&orb), objects, _orb: orb })
    }
}

impl Objects {
    /// The objects of a server, by a reference to the one with number 0.
    fn of(orb: &Orb, ior: Ior) -> Result<Objects, MachinesError> {
        Ok(Objects { last: 0, reference: orb.ior_to_object(ior)? })
    }

    /// The reference to one of them. Its id are the last octets of its key.
    fn get(&mut self, object: u64) -> Result<ObjectRef, MachinesError> {
        if self.last != object {
            let mut key = [0; KEY_BYTES_MAX];
            let before = engine::object_key(&self.reference);
            let key = key.get_mut(..before.len()).ok_or(MachinesError::Gone)?;
            key.copy_from_slice(before);
            let (_, id) = key.split_last_chunk_mut().ok_or(MachinesError::Gone)?;
            *id = object.to_be_bytes();
            self.reference = engine::reference_with_key(&self.reference, key).ok_or(MachinesError::Gone)?;
            self.last = object;
        }
        Ok(self.reference.clone())
    }
}

/// The settings of an ORB, without the environment of the simulator's own process.
fn orb(seed: u64, number: u64, has_priorities: bool) -> OrbBuilder {
    // Equal seeds would make ORBs take each other's objects for their own.
    let seed = seed.wrapping_mul(1 << 32).wrapping_add(number);
    let mut builder = OrbBuilder::default().no_endpoint().seed(Some(seed));
    let config = builder.config();
    (config.server_idle_timeout, config.client_idle_timeout) = (None, None);
    // Levels that know no machines have no such limits, either.
    config.server_connections_max = usize::MAX;
    config.connection.calls_in_flight_max = usize::from(u16::MAX);
    match has_priorities {
        true => {
            let config = RealTimeConfig::new().scheduling(SchedulingPolicy::Other);
            builder.real_time(config.mapping(NoNativePriorities))
        }
        false => builder,
    }
}

/// The threads of the simulator's own process have no part in the scenario's priorities.
#[derive(Debug)]
struct NoNativePriorities;

impl PriorityMapping for NoNativePriorities {
    fn to_native(&self, _: Priority) -> Option<i16> {
        Some(1)
    }

    fn to_corba(&self, _: i16) -> Option<Priority> {
        None
    }
}

/// The time of the machines.
pub(super) fn engine_time(time: Time) -> engine::Time {
    engine::Time::from_nanos(time.as_ns())
}

fn model_time(time: engine::Time) -> Time {
    Time::from_ns(time.as_nanos())
}

/// More than a key of that adapter has.
const KEY_BYTES_MAX: usize = 64;
