//! What there is, and what happens.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use ironorb::engine::EngineUpcall;
use ironorb::generated::Operation;
use ironorb_model::record::Timeline;
use ironorb_model::scenario::{Arrivals, Cycle, Scenario};
use ironorb_model::{
    Agenda, ClassObservations, Connections, Digest, Links, Locks, Observations, Pool, Slab, Stepping, Time,
};

use super::calls::Call;
use super::clients::{Client, CycleState, Source};
use super::hosts::{Host, HostNumber, Thread};
use super::packets::Packets;
use super::processes::{Callers, Process};
use super::wires::{Segment, Wire};
use crate::MachinesError;

/// The ORBs of a scenario, what is between them, and what they have to do.
pub(super) struct World<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) seed: u64,
    pub(super) agenda: Agenda<Event>,
    /// What goes on before the next event: its step took no time.
    pub(super) ready: VecDeque<Task>,
    pub(super) hosts: Vec<Host>,
    /// The first host of each group.
    pub(super) first_host: Vec<u32>,
    pub(super) threads: Slab<Thread>,
    pub(super) processes: Vec<Process>,
    pub(super) callers: Callers,
    /// The first process of each server.
    pub(super) first_process: Vec<u32>,
    pub(super) pools: Vec<Pool>,
    /// The operations of each server as stubs have them.
    pub(super) operations: Vec<Vec<&'static Operation<'static>>>,
    pub(super) links: Links,
    pub(super) wires: Vec<Wire>,
    /// The numbers of `wires`, by those that use them.
    pub(super) connections: Connections,
    pub(super) calls: Slab<Call>,
    /// The upcalls that threads have begun, by call.
    pub(super) upcalls: Vec<Option<EngineUpcall>>,
    pub(super) locks: Locks,
    /// Whether calls of some class tell their priorities.
    pub(super) has_priorities: bool,
    pub(super) clients: Vec<Client>,
    pub(super) sources: Vec<Source>,
    pub(super) cycles: Slab<CycleState>,
    pub(super) classes: Vec<ClassObservations>,
    /// The actions of a server's engine are being carried out.
    pub(super) is_draining: bool,
    /// When observation begins.
    pub(super) observed_from: Time,
    pub(super) is_observing: bool,
    pub(super) digest: Digest,
    pub(super) messages: u64,
    pub(super) octets: u64,
    pub(super) calls_begun: u64,
    pub(super) events: u64,
    /// Is told what threads do.
    pub(super) timeline: Option<&'s mut Timeline>,
    /// Takes what machines send.
    pub(super) packets: Option<&'s mut Packets>,
    /// Events that only tell machines the time.
    pub(super) timers: usize,
    /// What has gone wrong with the world itself.
    pub(super) failure: Option<MachinesError>,
}

/// Something that goes on when its step is over.
pub(super) enum Task {
    Call(u32),
    /// The next call of a cycle.
    Cycle(u32),
    Arrives(Segment),
}

/// What happens at a time.
pub(super) enum Event {
    /// A segment comes to one end of a connection.
    Arrives(Segment),
    /// A processor has something to decide.
    Tick { host: HostNumber, core: u32, generation: u32 },
    /// A servant has slept.
    Slept { call: u32 },
    /// A client has thought.
    Begins { client: u32 },
    /// The next cycles of an open class begin.
    Source { source: u32 },
    /// An engine wants to be told the time.
    ClientTimer { process: u32 },
    /// An engine wants to be told the time.
    ServerTimer { process: u32 },
}

impl<'s> World<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        seed: u64,
        warm_up: Duration,
    ) -> Result<World<'s>, MachinesError> {
        for class in &scenario.classes {
            if class.cache.is_some() {
                return Err(MachinesError::Caches { class: class.name.clone() });
            }
            if class.mix.iter().any(|weighted| matches!(weighted.cycle, Cycle::Job { .. })) {
                return Err(MachinesError::Jobs { class: class.name.clone() });
            }
        }
        for server in &scenario.servers {
            if let Some(variant) = server.operations.iter().find(|it| it.wire_name() != it.name) {
                let (server, operation) = (server.name.clone(), variant.name.clone());
                return Err(MachinesError::Variants { server, operation });
            }
        }
        let has_priorities = scenario.classes.iter().any(|class| class.priority.is_some());
        let mut world = World {
            scenario,
            seed,
            agenda: Agenda::default(),
            ready: VecDeque::new(),
            hosts: Vec::new(),
            first_host: Vec::new(),
            threads: Slab::default(),
            processes: Vec::new(),
            callers: Callers::new(seed, has_priorities)?,
            first_process: Vec::new(),
            pools: Vec::new(),
            operations: Vec::new(),
            links: Links::of(scenario, seed),
            wires: Vec::new(),
            connections: Connections::default(),
            calls: Slab::default(),
            upcalls: Vec::new(),
            locks: Locks::of(scenario),
            has_priorities,
            clients: Vec::new(),
            sources: Vec::new(),
            cycles: Slab::default(),
            classes: scenario
                .classes
                .iter()
                .map(|class| ClassObservations::new(class.name.clone()))
                .collect(),
            is_draining: false,
            observed_from: Time::ZERO + warm_up,
            is_observing: false,
            digest: Digest::default(),
            messages: 0,
            octets: 0,
            calls_begun: 0,
            events: 0,
            timeline: None,
            packets: None,
            timers: 0,
            failure: None,
        };
        world.add_hosts()?;
        world.add_servers()?;
        world.add_clients()?;
        Ok(world)
    }

    pub(super) fn end(&self) -> Time {
        self.observed_from + self.scenario.span
    }

    pub(super) fn now(&self) -> Time {
        self.agenda.now()
    }

    /// Has everything happen that is due until then.
    pub(super) fn run_to(&mut self, to: Time) -> Result<(), MachinesError> {
        ironorb_model::run_to(self, to)
    }

    pub(super) fn connections(&self) -> usize {
        self.wires.len()
    }

    pub(super) fn calls_begun(&self) -> u64 {
        self.calls_begun
    }

    pub(super) fn observe(&self) -> Observations {
        let now = self.now();
        let mut resources = Vec::new();
        self.observe_hosts(now, &mut resources);
        self.observe_pools(now, &mut resources);
        self.locks.observe(self.scenario, now, &mut resources);
        self.links.observe(self.scenario, now, &mut resources);
        let mut classes = self.classes.clone();
        self.observe_unfinished(now, &mut classes);
        Observations {
            span: now.since(self.observed_from),
            classes,
            resources,
            messages: self.messages,
            octets: self.octets,
            calls: self.calls_begun,
            events: self.events,
            digest: self.digest.clone(),
        }
    }
}

impl Stepping for World<'_> {
    type Event = Event;
    type Task = Task;
    type Error = MachinesError;

    fn agenda(&mut self) -> &mut Agenda<Event> {
        &mut self.agenda
    }

    fn happen(&mut self, event: Event) {
        self.events += 1;
        match event {
            Event::Arrives(segment) => self.arrives(&segment),
            Event::Tick { host, core, generation } => self.tick(host, core, generation),
            Event::Slept { call } => {
                self.tell(|timeline, now| timeline.end_pause(now, call));
                self.go_on_with_call(call);
            }
            Event::Begins { client } => self.begin_cycle(client),
            Event::Source { source } => self.source_is_due(source),
            Event::ClientTimer { process } => {
                self.timers -= 1;
                self.client_timer(process);
            }
            Event::ServerTimer { process } => {
                self.timers -= 1;
                self.server_timer(process);
            }
        }
    }

    fn next_task(&mut self) -> Option<Task> {
        self.ready.pop_front()
    }

    fn go_on(&mut self, task: Task) {
        match task {
            Task::Call(call) => self.go_on_with_call(call),
            Task::Cycle(cycle) => self.next_call_of_cycle(cycle),
            Task::Arrives(segment) => self.arrives(&segment),
        }
    }

    fn observes_from(&self) -> Option<Time> {
        (!self.is_observing).then_some(self.observed_from)
    }

    fn begin_observation(&mut self) {
        self.is_observing = true;
        let now = self.now();
        self.hosts.iter_mut().for_each(|host| host.processor.restart_observation(now));
        self.pools.iter_mut().for_each(|pool| pool.restart_observation(now));
        self.locks.restart_observation(now);
        self.links.restart_observation(now);
        self.classes.iter_mut().for_each(ClassObservations::restart);
    }

    fn check(&mut self) -> Result<(), MachinesError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn steps_max(&self) -> u64 {
        const FOR_EACH: u64 = 1_000;
        let at_once = self.scenario.classes.iter().map(|class| match &class.arrivals {
            Arrivals::Closed { .. } => 0,
            Arrivals::Open { burst, .. } => u64::from(*burst),
            Arrivals::Trace(times) => times.len() as u64,
        });
        FOR_EACH * (10 + self.clients.len() as u64 + at_once.sum::<u64>())
    }

    fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Engines that are only told the time.
    fn idle_events(&self) -> usize {
        self.timers
    }
}

impl fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("scenario", &self.scenario.name)
            .field("now", &self.now())
            .field("connections", &self.wires.len())
            .field("calls_begun", &self.calls_begun)
            .finish_non_exhaustive()
    }
}
