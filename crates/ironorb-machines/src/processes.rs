//! Processes: each has an ORB and its engines, made when the first call needs them.

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
use ironorb_model::queueing::add_each_or_all;
use ironorb_model::scenario::{self, ServerLock};
use ironorb_model::{Load, Place, ResourceObservations, Table, Time, Turns};

use super::bodies::{self, Bodies};
use super::calls::Call;
use super::hosts::HostNumber;
use super::list::CallQueue;
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
    /// `None` until it is needed.
    machines: Option<Box<Machines>>,
}

/// The ORB of a process.
#[derive(Debug)]
pub(super) struct Machines {
    orb: Orb,
    pub(super) client: ClientEngine,
    pub(super) server: ServerEngine,
    /// What is known of the processes that it calls.
    peers: Table<u32, Peer>,
    /// The numbers of the connections that it has made.
    wires: Vec<u32>,
    /// A reference to one of its own objects, for peers.
    own: Option<OwnReference>,
    /// What gives calls their priorities, if some class has one.
    current: Option<RtCurrent>,
}

/// A process that another one calls.
#[derive(Debug)]
struct Peer {
    /// The object that was called last, and the reference to it.
    object: u64,
    reference: ObjectRef,
}

/// A reference to one object of a process, as peers get it.
#[derive(Debug)]
struct OwnReference {
    ior: Ior,
    /// The object's key. Its id are the last octets.
    key: Vec<u8>,
}

/// Threads that serve requests of one lane of a process.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) free: Vec<u32>,
    pub(super) waiting: CallQueue,
    pub(super) load: Load,
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
        self.processes.push(Process { host, server, first_pool, turns: Turns::default(), machines: None });
        (self.processes.len() - 1) as u32
    }

    fn add_pools(&mut self, server: usize) -> Option<u32> {
        let server = &self.scenario.servers[server];
        let sizes: Vec<u32> = match (&server.lanes[..], server.threads) {
            ([], Some(threads)) => vec![threads],
            ([], None) => return None,
            (lanes, _) => lanes.iter().map(|lane| lane.threads).collect(),
        };
        let first = self.pools.len() as u32;
        for size in sizes {
            // The thread that has been free for the shortest time is the next one: the last.
            let mut free: Vec<u32> = (0..size.max(1)).map(|_| self.add_thread()).collect();
            free.reverse();
            self.pools.push(Pool { free, waiting: CallQueue::default(), load: Load::new(size.max(1)) });
        }
        Some(first)
    }

    pub(super) fn observe_pools(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        for (server, first) in self.scenario.servers.iter().zip(&self.first_process) {
            let count = self.scenario.hosts[server.hosts].count;
            for lane in 0..server.lanes.len().max(1) as u32 {
                let of_lane = match server.lanes.get(lane as usize) {
                    Some(lane) => format!(", lane {}", lane.priority),
                    None => String::new(),
                };
                let each = (0..count).filter_map(|number| {
                    let pool = self.processes[(first + number) as usize].first_pool?;
                    let number = if count == 1 { String::new() } else { format!("[{number}]") };
                    let name = format!("threads of {}{number}{of_lane}", server.name);
                    Some(self.pools[(pool + lane) as usize].load.observe(now, name))
                });
                let title = || format!("threads of {}{of_lane}", server.name);
                add_each_or_all(into, each.collect(), title);
            }
        }
    }

    /// Of the locks of objects, the use is the mean number of those that are locked at a time.
    pub(super) fn observe_locks(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        for (server, load) in self.scenario.servers.iter().zip(&self.lock_loads) {
            let name = match server.lock {
                ServerLock::None => continue,
                ServerLock::Object => format!("locked objects of {}", server.name),
                ServerLock::Process => format!("lock of {}", server.name),
            };
            let mut seen = load.observe(now, name);
            if server.lock == ServerLock::Process {
                seen.utilisation /= f64::from(self.scenario.hosts[server.hosts].count);
            }
            into.push(seen);
        }
    }

    /// The ORB of a process, which is made now if there is none.
    pub(super) fn machines(&mut self, process: u32) -> Result<&mut Machines, MachinesError> {
        let index = process as usize;
        if self.processes[index].machines.is_none() {
            let server = self.processes[index].server.map(|server| &self.scenario.servers[server]);
            // Equal seeds would make ORBs take each other's objects for their own.
            let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(u64::from(process) + 1);
            let machines = Machines::new(process, server, seed, self.has_priorities)?;
            self.processes[index].machines = Some(Box::new(machines));
        }
        self.processes[index].machines.as_deref_mut().ok_or(MachinesError::Gone)
    }

    /// A reference to an object of `to` as `from` has it.
    fn reference(&mut self, from: u32, to: u32, object: u64) -> Result<ObjectRef, MachinesError> {
        if let Some(peer) = self.machines(from)?.peers.get(&to)
            && peer.object == object
        {
            return Ok(peer.reference.clone());
        }
        if !self.machines(from)?.peers.contains_key(&to) {
            let ior = self.machines(to)?.own()?.ior.clone();
            let reference = self.machines(from)?.orb.ior_to_object(ior)?;
            let peer = Peer { object: 0, reference };
            self.machines(from)?.peers.insert(to, peer);
        }
        let mut key = [0; KEY_BYTES_MAX];
        let own = &self.machines(to)?.own()?.key;
        let key = &mut key[..own.len()];
        key.copy_from_slice(own);
        let id_at = key.len() - size_of::<u64>();
        key[id_at..].copy_from_slice(&object.to_be_bytes());
        let peer = self.machines(from)?.peers.get_mut(&to).ok_or(MachinesError::Gone)?;
        peer.reference = engine::reference_with_key(&peer.reference, key).ok_or(MachinesError::Gone)?;
        peer.object = object;
        Ok(peer.reference.clone())
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
        let machines = self.machines(from)?;
        // It travels with the request.
        let at_priority = match (&machines.current, priority) {
            (Some(current), Some(priority)) => Some(current.stay_at(priority)?),
            _ => None,
        };
        machines.client.handle(event, now);
        drop(at_priority);
        self.drain_client(from, known.and_then(Result::err));
        if let Some(known) = known
            && self.calls[call].is_written()
        {
            let wire = known.or_else(|place| self.connections.at(place)).map_err(|_| MachinesError::Gone)?;
            self.wires[wire as usize].written.push(&mut self.calls, call);
        }
        Ok(())
    }

    pub(super) fn arrives(&mut self, segment: &Segment) {
        let Segment { wire, toward, bytes } = segment;
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
        if let Some(machines) = &self.processes[process as usize].machines {
            machines.client.handle(event, now);
            self.drain_client(process, None);
        }
    }

    fn server_event(&mut self, process: u32, event: ServerEvent<'_>) {
        let now = engine_time(self.now());
        if let Some(machines) = &mut self.processes[process as usize].machines {
            machines.server.handle(event, now);
            self.drain_server(process);
        }
    }

    /// A thread takes a request.
    pub(super) fn begin_upcall(&mut self, call: u32) {
        let process = self.calls[call].to;
        let upcall = self.calls[call].upcall;
        let Some(machines) = &mut self.processes[process as usize].machines else { return };
        let begun = machines.server.begin_upcall(upcall);
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
        let Some(machines) = &mut self.processes[process as usize].machines else { return };
        if let Some(mut upcall) = upcall {
            upcall.run_at(now);
            machines.server.end_upcall(upcall);
        }
        self.drain_server(process);
    }

    /// Carries out what a server's engine wants. Threads that take the requests which it announces meanwhile leave what
    /// they cause to the same loop.
    fn drain_server(&mut self, process: u32) {
        if std::mem::replace(&mut self.is_draining, true) {
            return;
        }
        while let Some(machines) = &mut self.processes[process as usize].machines {
            match machines.server.poll_action() {
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
            let Some(machines) = &self.processes[process as usize].machines else { return };
            match machines.client.poll_action() {
                None => return,
                Some(ClientAction::Transmit { connection, bytes }) => {
                    let wire = machines.wires[connection.0 as usize];
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

    fn connect(&mut self, place: Place, connection: ConnectionId) {
        let wire = self.add_wire(place, connection);
        let Place { client, server, .. } = place;
        let Some(machines) = &mut self.processes[client as usize].machines else { return };
        debug_assert_eq!(machines.wires.len() as u64, connection.0, "engines number connections in turn");
        machines.wires.push(wire);
        // The other levels' connections are there at once, too.
        self.server_event(server, ServerEvent::Accepted { connection: ConnectionId(u64::from(wire)) });
        let now = engine_time(self.now());
        if let Some(machines) = &self.processes[client as usize].machines {
            machines.client.handle(ClientEvent::Connected { connection }, now);
        }
    }

    /// A request has come.
    fn announced(&mut self, wire: u32, upcall: UpcallNumber) {
        match self.wires[wire as usize].written.pop(&self.calls) {
            Some(call) => {
                self.calls[call].upcall = upcall;
                self.calls[call].wire = wire;
                self.enqueue(call);
            }
            None => drop(self.failure.get_or_insert(MachinesError::Gone)),
        }
    }
}

impl Machines {
    fn new(
        process: u32,
        server: Option<&scenario::Server>,
        seed: u64,
        has_priorities: bool,
    ) -> Result<Machines, MachinesError> {
        // Without the environment of the simulator's own process.
        let mut builder = OrbBuilder::default().no_endpoint().seed(Some(seed));
        let config = builder.config();
        (config.server_idle_timeout, config.client_idle_timeout) = (None, None);
        // Levels that know no machines have no such limits, either.
        config.server_connections_max = usize::MAX;
        config.connection.calls_in_flight_max = usize::from(u16::MAX);
        if server.is_some() {
            builder = builder.publish(&format!("p{process}:2809"));
        }
        if has_priorities {
            let config = RealTimeConfig::new().scheduling(SchedulingPolicy::Other);
            builder = builder.real_time(config.mapping(NoNativePriorities));
        }
        let orb = builder.build()?;
        let own =
            server.map(|server| OwnReference::new(&orb, process, server, has_priorities)).transpose()?;
        Ok(Machines {
            client: ClientEngine::new(&orb),
            server: ServerEngine::new(&orb),
            current: orb.rt_current(),
            orb,
            peers: Table::default(),
            wires: Vec::new(),
            own,
        })
    }

    fn own(&self) -> Result<&OwnReference, MachinesError> {
        self.own.as_ref().ok_or(MachinesError::Gone)
    }
}

impl OwnReference {
    /// Makes the adapter of a server's objects, and a reference to the first of them.
    fn new(
        orb: &Orb,
        process: u32,
        server: &scenario::Server,
        has_priorities: bool,
    ) -> Result<OwnReference, MachinesError> {
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
        let reference = poa.create_reference_with_id(id, bodies::REPOSITORY_ID)?;
        let key = engine::object_key(&reference).to_vec();
        debug_assert!(key.len() <= KEY_BYTES_MAX && key.ends_with(&[0; size_of::<u64>()]));
        Ok(OwnReference { ior: reference.to_ior(), key })
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
