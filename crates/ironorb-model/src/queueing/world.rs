//! What there is, and what happens.

use std::collections::VecDeque;
use std::time::Duration;

use super::asking::Sessions;
use super::caches::{Batch, CachePlan, Outbox, StaleObject};
use super::calls::Call;
use super::clients::{Client, CycleState, Source};
use super::hosts::Host;
use super::jobs::Job;
use super::sizes::MessageSizes;
use super::wires::Wire;
use super::{CALLS_MAX, QueueingError};
use crate::record::Timeline;
use crate::scenario::{CacheMode, OperationKind, Scenario, ServerLock};
use crate::{
    Agenda, CallSteps, ClassObservations, Connections, Digest, Links, Locks, Observations, Pool,
    ResourceObservations, Slab, Stepping, Table, Time, Turns, resources, run_to,
};

/// A scenario on the way.
#[derive(Debug)]
pub(super) struct World<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) seed: u64,
    pub(super) agenda: Agenda<Event>,
    /// What goes on before the next event: its step took no time.
    pub(super) ready: VecDeque<Task>,
    pub(super) hosts: Vec<Host>,
    /// The first host of each group.
    pub(super) first_host: Vec<u32>,
    /// What each thread works for.
    pub(super) threads: Vec<Task>,
    pub(super) spare_threads: Vec<u32>,
    /// Those of servers, and then those of clients.
    pub(super) processes: Vec<Process>,
    /// The first process of each server.
    pub(super) first_process: Vec<u32>,
    pub(super) pools: Vec<Pool>,
    pub(super) operations: Vec<OperationFacts>,
    /// The first operation of each server.
    pub(super) first_operation: Vec<u32>,
    pub(super) links: Links,
    pub(super) wires: Vec<Wire>,
    /// The numbers of `wires`, by those that use them.
    pub(super) connections: Connections,
    pub(super) calls: Slab<Call>,
    pub(super) locks: Locks,
    pub(super) clients: Vec<Client>,
    pub(super) sources: Vec<Source>,
    pub(super) cycles: Slab<CycleState>,
    pub(super) jobs: Slab<Job>,
    pub(super) cache_plan: CachePlan,
    pub(super) sessions: Sessions,
    pub(super) outboxes: Vec<Outbox>,
    pub(super) batches: Slab<Batch>,
    pub(super) stale: Table<(u32, u32, u64), StaleObject>,
    pub(super) classes: Vec<ClassObservations>,
    pub(super) observed_from: Time,
    pub(super) is_observing: bool,
    pub(super) digest: Digest,
    pub(super) messages: u64,
    pub(super) octets: u64,
    pub(super) calls_begun: u64,
    /// Is told what threads do.
    pub(super) timeline: Option<&'s mut Timeline>,
    events: u64,
}

/// Something that goes on when its step is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Nothing,
    Call(u32),
    /// A request has reached its server.
    Request(u32),
    /// A reply has reached its client.
    Reply(u32),
    /// The next call of a cycle.
    Cycle(u32),
    /// A cache has answered a read of a cycle.
    Read(u32),
    /// Updates on their way to a holder.
    Batch(u32),
    /// A holder's answer has come.
    Told(u32),
}

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A processor has something to decide.
    Tick { host: u32, core: u16, generation: u32 },
    /// A message arrives.
    Arrives(Task),
    /// A servant has slept.
    Slept { call: u32 },
    /// A client has thought.
    Begins { client: u32 },
    /// The next cycles of an open class begin.
    Source { source: u32 },
    /// The lag of an outbox is over.
    Lag { outbox: u32, generation: u32 },
}

/// A process of a server or of a class's clients.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) host: u32,
    /// Its first pool of threads, if it has pools.
    pub(super) first_pool: Option<u32>,
    /// Which objects its servants call in turn.
    pub(super) turns: Turns,
}

/// What is the same for all calls of an operation.
#[derive(Debug)]
pub(super) struct OperationFacts {
    /// Without and with a priority.
    pub(super) sizes: [MessageSizes; 2],
    /// If they are not random.
    pub(super) steps: Option<CallSteps>,
    pub(super) is_oneway: bool,
    pub(super) sleeps: bool,
    pub(super) lock: ServerLock,
    /// Whether a thread carries it out without a pause: nothing to lock, to sleep, to call or to send.
    pub(super) is_straight: bool,
    pub(super) tells_caches: bool,
}

impl<'s> World<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        seed: u64,
        warm_up: Duration,
    ) -> Result<World<'s>, QueueingError> {
        const MOST: usize = u16::MAX as usize;
        for (what, count, mend) in [
            ("servers", scenario.servers.len(), "leave some of `[[servers]]` out"),
            ("classes", scenario.classes.len(), "leave some of `[[classes]]` out"),
        ] {
            if count > MOST {
                return Err(QueueingError::TooMany { what, most: MOST as u64, mend });
            }
        }
        let mut world = World {
            scenario,
            seed,
            agenda: Agenda::default(),
            ready: VecDeque::new(),
            hosts: Vec::new(),
            first_host: Vec::new(),
            threads: Vec::new(),
            spare_threads: Vec::new(),
            processes: Vec::new(),
            first_process: Vec::new(),
            pools: Vec::new(),
            operations: Vec::new(),
            first_operation: Vec::new(),
            links: Links::of(scenario, seed),
            wires: Vec::new(),
            connections: Connections::default(),
            calls: Slab::default(),
            locks: Locks::of(scenario),
            clients: Vec::new(),
            sources: Vec::new(),
            cycles: Slab::default(),
            jobs: Slab::default(),
            cache_plan: CachePlan::default(),
            sessions: Sessions::default(),
            outboxes: Vec::new(),
            batches: Slab::default(),
            stale: Table::default(),
            classes: scenario
                .classes
                .iter()
                .map(|class| ClassObservations::new(class.name.clone()))
                .collect(),
            observed_from: Time::ZERO + warm_up,
            is_observing: false,
            digest: Digest::default(),
            messages: 0,
            octets: 0,
            calls_begun: 0,
            timeline: None,
            events: 0,
        };
        world.add_hosts()?;
        world.add_servers()?;
        world.add_clients()?;
        world.plan_caches();
        world.plan_asking();
        world.add_operations();
        Ok(world)
    }

    fn add_servers(&mut self) -> Result<(), QueueingError> {
        const MOST: u64 = 1 << 28;
        let threads_of = |server: &crate::scenario::Server| {
            let each: u64 = server.pools().into_iter().map(u64::from).sum();
            each * u64::from(self.scenario.hosts[server.hosts].count)
        };
        if self.scenario.servers.iter().map(threads_of).sum::<u64>() > MOST {
            let mend = "lower `threads` of `[[servers]]` or of their lanes, or `count` of their `[[hosts]]`";
            return Err(QueueingError::TooMany { what: "threads", most: MOST, mend });
        }
        for server in &self.scenario.servers {
            self.first_process.push(self.processes.len() as u32);
            for number in 0..self.scenario.hosts[server.hosts].count {
                let sizes = server.pools();
                let first_pool = (!sizes.is_empty()).then_some(self.pools.len() as u32);
                for size in sizes {
                    let pool = Pool::new((0..size).map(|_| self.add_thread()));
                    self.pools.push(pool);
                }
                self.add_process(self.first_host[server.hosts] + number, first_pool);
            }
        }
        Ok(())
    }

    pub(super) fn add_process(&mut self, host: u32, first_pool: Option<u32>) -> u32 {
        self.processes.push(Process { host, first_pool, turns: Turns::default() });
        (self.processes.len() - 1) as u32
    }

    fn add_operations(&mut self) {
        for (number, server) in self.scenario.servers.iter().enumerate() {
            self.first_operation.push(self.operations.len() as u32);
            for operation in &server.operations {
                let sizes = [false, true].map(|has_priority| {
                    let (request, reply) = (operation.request_octets.into(), operation.reply_octets.into());
                    MessageSizes::of(operation.wire_name(), request, reply, has_priority)
                });
                let holders = &self.cache_plan.holders[number];
                let tells_caches = operation.kind == OperationKind::Write && !holders.is_empty();
                // A write waits for none that asks.
                let sends_updates =
                    tells_caches && holders.iter().any(|it| !matches!(it.cache.mode, CacheMode::Asked(_)));
                self.operations.push(OperationFacts {
                    sizes,
                    steps: CallSteps::fixed(&self.scenario.dwell, operation),
                    is_oneway: operation.is_oneway,
                    sleeps: operation.sleeps,
                    lock: server.lock,
                    is_straight: server.lock == ServerLock::None
                        && !operation.sleeps
                        && operation.calls.is_empty()
                        && !sends_updates,
                    tells_caches,
                });
            }
        }
    }

    pub(super) fn now(&self) -> Time {
        self.agenda.now()
    }

    pub(super) fn run(&mut self) -> Result<(), QueueingError> {
        run_to(self, self.observed_from + self.scenario.span)
    }

    pub(super) fn observe(mut self) -> Observations {
        let now = self.now();
        self.observe_unfinished(now);
        let mut resources = Vec::new();
        self.observe_hosts(now, &mut resources);
        self.observe_pools(now, &mut resources);
        self.locks.observe(self.scenario, now, &mut resources);
        self.links.observe(self.scenario, now, &mut resources);
        Observations {
            span: now.since(self.observed_from),
            classes: self.classes,
            resources,
            messages: self.messages,
            octets: self.octets,
            calls: self.calls_begun,
            events: self.events,
            digest: self.digest,
        }
    }

    fn observe_pools(&self, now: Time, into: &mut Vec<ResourceObservations>) {
        resources::observe_pools(self.scenario, into, |server, number, lane, name| {
            let pool = self.processes[(self.first_process[server] + number) as usize].first_pool?;
            Some(self.pools[(pool + lane) as usize].observe(now, name))
        });
    }
}

impl Stepping for World<'_> {
    type Event = Event;
    type Task = Task;
    type Error = QueueingError;

    #[inline]
    fn agenda(&mut self) -> &mut Agenda<Event> {
        &mut self.agenda
    }

    #[inline]
    fn happen(&mut self, event: Event) {
        self.events += 1;
        match event {
            Event::Tick { host, core, generation } => self.tick(host, core.into(), generation),
            Event::Arrives(task) => self.go_on(task),
            Event::Slept { call } => {
                self.tell(|timeline, now| timeline.end_pause(now, call));
                self.go_on_with_call(call);
            }
            Event::Begins { client } => self.begin_cycle_of(client),
            Event::Source { source } => self.source_is_due(source),
            Event::Lag { outbox, generation } => self.lag_is_over(outbox, generation),
        }
    }

    #[inline]
    fn next_task(&mut self) -> Option<Task> {
        self.ready.pop_front()
    }

    #[inline]
    fn go_on(&mut self, task: Task) {
        match task {
            Task::Nothing => {}
            Task::Call(call) => self.go_on_with_call(call),
            Task::Request(call) => self.request_arrives(call),
            Task::Reply(call) => self.reply_arrives(call),
            Task::Cycle(cycle) => self.next_call_of_cycle(cycle),
            Task::Read(cycle) => self.cache_has_answered(cycle),
            Task::Batch(batch) => self.go_on_with_batch(batch),
            Task::Told(batch) => self.holder_has_answered(batch),
        }
    }

    #[inline]
    fn observes_from(&self) -> Option<Time> {
        (!self.is_observing).then_some(self.observed_from)
    }

    fn begin_observation(&mut self) {
        self.is_observing = true;
        let now = self.now();
        self.restart_hosts(now);
        self.links.restart_observation(now);
        self.pools.iter_mut().for_each(|pool| pool.restart_observation(now));
        self.locks.restart_observation(now);
        self.classes.iter_mut().for_each(ClassObservations::restart);
    }

    #[inline]
    fn check(&mut self) -> Result<(), QueueingError> {
        match self.calls.len() > CALLS_MAX {
            true => Err(QueueingError::Unstable { at: self.now().to_string() }),
            false => Ok(()),
        }
    }

    fn steps_max(&self) -> u64 {
        STEPS_MAX + 1_000 * self.clients.len() as u64
    }

    fn calls(&self) -> usize {
        self.calls.len()
    }

    fn idle_events(&self) -> usize {
        0
    }
}

/// The most steps at one point of time, beside a thousand for each client: what takes more never ends.
const STEPS_MAX: u64 = 1_000_000;
