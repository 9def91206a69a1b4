//! A scenario as a layered queueing network.
//!
//! | in the scenario | in the network |
//! |---|---|
//! | hosts | a processor each, with a multiplicity of its cores; a group of more than [`EXPANDED_MAX`] is one processor with all its cores |
//! | clients that think | a reference task on each of their hosts |
//! | clients that come | an entry with an open arrival rate |
//! | a server's threads, or those of a lane | a task with that multiplicity; a thread a connection: without bound |
//! | an operation | an entry with one phase; the caller's own steps are part of the caller's phase |
//! | a servant that sleeps, the latency of a link | an entry of a task without bound, on a processor without bound |
//! | the bandwidth of a link | an entry of a task on a processor of its own, in order of arrival |
//! | the lock of a process | a task with one thread, between the server's threads and the servant |
//! | a job whose parts run at once | activities that fork and join, in the client or in the daemon |
//!
//! Locks of objects, caches' updates, priorities, bursts and traces have no place there; [`Lqn::comment`] says which.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Activity, Entry, EntryCall, Graph, Lqn, Processor, Step, Task, TaskKind};
use crate::analysis::demands::{Recursion, demands, trace_rate, weights};
use crate::analysis::fork_join::{mean, variation};
use crate::analysis::sizes::{self, Asked};
use crate::scenario::{
    Architecture, Arrivals, Call, Class, Cycle, Operation, OperationKind, Scenario, ServerLock, Spread,
    Target,
};

/// The network of a scenario.
///
/// # Errors
/// Operations call each other in a circle.
pub fn of_scenario(scenario: &Scenario) -> Result<Lqn, Recursion> {
    let left_out = demands(scenario)?.deviations;
    let mut builder = Builder {
        scenario,
        processors: BTreeMap::new(),
        tasks: BTreeMap::new(),
        entries: BTreeMap::new(),
        servants: BTreeMap::new(),
        names: BTreeSet::new(),
    };
    for (index, class) in scenario.classes.iter().enumerate() {
        builder.class(index, class);
    }
    let of_server = |text: &str| text.starts_with("threads of");
    let comment: Vec<String> =
        left_out.iter().filter(|it| !of_server(&it.part)).map(ToString::to_string).collect();
    let mut tasks = builder.tasks;
    let mut processors = Vec::new();
    for draft in builder.processors.into_values() {
        let own: Vec<TaskKey> = tasks.keys().copied().filter(|task| draft.tasks.contains(task)).collect();
        let tasks = own.into_iter().filter_map(|key| tasks.remove(&key)).collect();
        processors.push(Processor {
            name: draft.name,
            multiplicity: draft.multiplicity,
            takes_turns: draft.takes_turns,
            tasks,
        });
    }
    Ok(Lqn { name: plain(&scenario.name), comment: comment.join("; "), processors })
}

/// A group with more hosts than this is one processor.
pub(super) const EXPANDED_MAX: u32 = 8;

struct Builder<'a> {
    scenario: &'a Scenario,
    processors: BTreeMap<ProcessorKey, ProcessorDraft>,
    tasks: BTreeMap<TaskKey, Task>,
    /// Entries that exist, and their names.
    entries: BTreeMap<EntryKey, String>,
    /// What servants do that are called within their process, by server, operation, host and priority.
    servants: BTreeMap<(usize, usize, u32, Option<i16>), Rc<Work>>,
    /// All names given.
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProcessorKey {
    /// A host of a group.
    Host(usize, u32),
    /// One direction between two groups.
    Link(usize, usize),
    /// What nobody waits for.
    Delays,
}

struct ProcessorDraft {
    name: String,
    multiplicity: Option<u32>,
    takes_turns: bool,
    tasks: BTreeSet<TaskKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TaskKey {
    Class {
        class: usize,
        host: u32,
    },
    /// Jobs of a class that does other things, too.
    Jobs {
        class: usize,
        host: u32,
    },
    Threads {
        server: usize,
        host: u32,
        lane: usize,
    },
    Lock {
        server: usize,
        host: u32,
    },
    Servants {
        server: usize,
    },
    Link {
        from: usize,
        to: usize,
    },
    Way,
    /// What needs no thread of a pool.
    Located {
        server: usize,
        host: u32,
    },
    /// What servers ask and tell clients.
    Answers {
        group: usize,
        host: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKey {
    Operation { server: usize, host: u32, operation: usize, priority: Option<i16>, way: Way },
    Locked { server: usize, host: u32, operation: usize, priority: Option<i16> },
    Sleep { server: usize, operation: usize },
    Located { server: usize, host: u32 },
    Asked { server: usize, host: u32, octets: (u64, u64), priority: Option<i16> },
    Answered { group: usize, host: u32, octets: Option<u32> },
    Sent { from: usize, to: usize, octets: u64 },
    Latency { from: usize, to: usize, octets: u64 },
}

/// How an operation is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// By a call.
    Called,
    /// By a daemon that forwards: the server verifies the client on this host, and calls it back.
    Forwarded { group: usize, host: u32 },
}

/// Where an activity runs.
#[derive(Debug, Clone, Copy)]
struct Place {
    group: usize,
    host: u32,
    /// Of a servant: its server.
    server: Option<usize>,
}

/// Work under construction.
#[derive(Debug, Default)]
struct Work {
    mean: f64,
    variance: f64,
    calls: BTreeMap<(String, bool), f64>,
}

impl Work {
    fn add(&mut self, spread: &Spread, speed: f64, times: f64) {
        let one = mean(spread) / speed;
        self.mean += one * times;
        self.variance += variation(spread) * one * one * times;
    }

    /// Adds what is done so many times.
    fn join(&mut self, other: &Work, times: f64) {
        self.mean += other.mean * times;
        self.variance += other.variance * times;
        for ((entry, waits), calls) in &other.calls {
            self.call(entry.clone(), calls * times, *waits);
        }
    }

    fn call(&mut self, entry: String, times: f64, waits: bool) {
        if times > 0.0 {
            *self.calls.entry((entry, waits)).or_default() += times;
        }
    }

    fn activity(self, name: String, begins: Option<String>) -> Activity {
        let variation = if self.mean > 0.0 { self.variance / (self.mean * self.mean) } else { 0.0 };
        let calls = self.calls.into_iter().map(|((entry, waits), times)| EntryCall { entry, times, waits });
        Activity { name, demand: self.mean, variation, begins, calls: calls.collect() }
    }
}

/// Classes.
impl Builder<'_> {
    fn class(&mut self, index: usize, class: &Class) {
        let hosts = self.hosts(class.hosts);
        for host in 0..hosts {
            let key = TaskKey::Class { class: index, host };
            let (kind, open_rate) = match &class.arrivals {
                Arrivals::Closed { clients, think } => {
                    let number = clients / hosts + u32::from(host < clients % hosts);
                    (TaskKind::Clients { number, think: mean(think) }, None)
                }
                Arrivals::Open { between, burst } => {
                    let rate = f64::from(*burst) / mean(between) / f64::from(hosts);
                    (TaskKind::Unbounded, Some(rate))
                }
                Arrivals::Trace(times) => {
                    let rate = trace_rate(times) / f64::from(hosts);
                    (TaskKind::Unbounded, (rate > 0.0).then_some(rate))
                }
            };
            if matches!(kind, TaskKind::Clients { number: 0, .. }) {
                continue;
            }
            let place = Place { group: class.hosts, host, server: None };
            let name = self.unique(&numbered(&class.name, host, hosts));
            let entry = self.unique(&format!("{name}_cycle"));
            let (phase, graph) = self.cycles(index, class, place, &entry);
            let entries = vec![Entry { name: entry, open_rate, phase }];
            self.task(key, place_key(place), Task { name, kind, entries, graph });
        }
    }

    /// What a class does: one phase, or the graph of its only job. Jobs beside other cycles are entries of a task without
    /// bound, which the class calls as often as they come: solvers count what forks behind a choice of activities wrongly.
    fn cycles(
        &mut self,
        index: usize,
        class: &Class,
        place: Place,
        entry: &str,
    ) -> (Option<Activity>, Graph) {
        let mut work = Work::default();
        let is_only = class.mix.len() == 1;
        for (number, (cycle, weight)) in class.mix.iter().zip(weights(class)).enumerate() {
            match &cycle.cycle {
                Cycle::Calls(calls) => self.calls_of_class(&mut work, class, place, calls, weight),
                Cycle::Job { architecture, parts, daemon } => {
                    let job = if is_only {
                        entry.to_owned()
                    } else {
                        self.unique(&format!("{entry}_{}", number + 1))
                    };
                    let mut graph = Graph::default();
                    let first = format!("{job}_1");
                    let last = self.job(class, place, *architecture, parts, *daemon, &first, &mut graph);
                    graph.activities[0].begins = Some(job.clone());
                    if is_only {
                        return (None, graph);
                    }
                    graph.replies.push((job.clone(), last));
                    self.add_job(index, place, &job, graph);
                    work.call(job, weight, true);
                }
            }
        }
        (Some(work.activity(format!("{entry}_1"), None)), Graph::default())
    }

    fn add_job(&mut self, class: usize, place: Place, entry: &str, mut graph: Graph) {
        let key = TaskKey::Jobs { class, host: place.host };
        let name = format!(
            "{}_jobs",
            numbered(&self.scenario.classes[class].name, place.host, self.hosts(place.group))
        );
        self.task_if_new(key, place_key(place), Task { name, ..unbounded() });
        if let Some(task) = self.tasks.get_mut(&key) {
            task.entries.push(Entry { name: entry.to_owned(), open_rate: None, phase: None });
            task.graph.activities.append(&mut graph.activities);
            task.graph.steps.append(&mut graph.steps);
            task.graph.replies.append(&mut graph.replies);
        }
    }

    /// Adds a job to the graph of its client, and tells its last activity.
    #[allow(clippy::too_many_arguments, reason = "they are all the parts of a job")]
    fn job(
        &mut self,
        class: &Class,
        place: Place,
        architecture: Architecture,
        parts: &[Call],
        daemon: usize,
        name: &str,
        graph: &mut Graph,
    ) -> String {
        let mut first = Work::default();
        let priority = class.priority;
        let octets = |of: fn(&Operation) -> u32| -> u64 {
            parts.iter().map(|part| u64::from(of(self.operation(part)))).sum()
        };
        let named = if architecture == Architecture::Sequential { 1 } else { parts.len() as u64 };
        let sizes = Asked::of(named, octets(|it| it.request_octets), octets(|it| it.reply_octets));
        match architecture {
            Architecture::Sequential => {
                for part in parts {
                    self.ask_daemon(&mut first, place, daemon, sizes.resolve, priority, &[]);
                    self.verified(&mut first, place, part, priority);
                }
                graph.activities.push(first.activity(name.to_owned(), None));
                name.to_owned()
            }
            Architecture::HandleDriven => {
                self.ask_daemon(&mut first, place, daemon, sizes.resolve, priority, &[]);
                let works = parts.iter().map(|part| {
                    let mut work = Work::default();
                    self.verified(&mut work, place, part, priority);
                    work
                });
                let works = works.collect();
                fork(graph, first, works, name)
            }
            Architecture::Forwarding => {
                self.ask_daemon(&mut first, place, daemon, sizes.forward, priority, parts);
                let works = parts.iter().map(|part| {
                    let mut work = Work::default();
                    let way = Way::Forwarded { group: place.group, host: place.host };
                    self.invoke(
                        &mut work,
                        self.daemon_place(daemon),
                        part,
                        f64::from(part.times),
                        priority,
                        way,
                    );
                    // The daemon writes it, not the client.
                    work.mean = 0.0;
                    work.variance = 0.0;
                    work
                });
                let works = works.collect();
                fork(graph, first, works, name)
            }
            Architecture::Synchronous => {
                let there = self.daemon_place(daemon);
                let task = self.threads(daemon, 0, priority);
                let of_daemon = numbered(&self.scenario.servers[daemon].name, 0, self.hosts(there.group));
                let entry = self.unique(&format!("{of_daemon}_{name}"));
                let bodies = (sizes.run.0 as u32, sizes.run.1 as u32);
                let mut around = Work::default();
                self.serve(&mut around, there, bodies.0, bodies.1, false);
                let speed = self.scenario.hosts[there.group].speed;
                around.add(&self.scenario.dwell.execute, speed, 1.0);
                let works: Vec<Work> = parts
                    .iter()
                    .map(|part| {
                        let mut work = Work::default();
                        self.invoke(&mut work, there, part, f64::from(part.times), priority, Way::Called);
                        work
                    })
                    .collect();
                let mut of_daemon = Graph::default();
                let last = fork(&mut of_daemon, around, works, &entry);
                of_daemon.activities[0].begins = Some(entry.clone());
                of_daemon.replies.push((entry.clone(), last));
                if let Some(task) = self.tasks.get_mut(&task) {
                    task.entries.push(Entry { name: entry.clone(), open_rate: None, phase: None });
                    task.graph.activities.append(&mut of_daemon.activities);
                    task.graph.steps.append(&mut of_daemon.steps);
                    task.graph.replies.append(&mut of_daemon.replies);
                }
                self.client_side(&mut first, place, bodies, 1.0, false);
                self.travel(&mut first, place, there, sizes.run, 1.0, false);
                first.call(entry, 1.0, true);
                graph.activities.push(first.activity(name.to_owned(), None));
                name.to_owned()
            }
        }
    }

    /// The daemon of a job is the first process of its server.
    fn daemon_place(&self, daemon: usize) -> Place {
        Place { group: self.scenario.servers[daemon].hosts, host: 0, server: Some(daemon) }
    }

    fn verified(&mut self, work: &mut Work, place: Place, part: &Call, priority: Option<i16>) {
        let group = self.scenario.servers[part.server].hosts;
        for (host, times) in self.targets(part.server, part.target, 1.0) {
            let there = Place { group, host, server: Some(part.server) };
            self.client_side(work, place, (0, 0), times, false);
            self.travel(work, place, there, sizes::of_locate(), times, false);
            let entry = self.located(part.server, there);
            work.call(entry, times, true);
        }
        self.invoke(work, place, part, f64::from(part.times), priority, Way::Called);
    }

    fn calls_of_class(&mut self, work: &mut Work, class: &Class, place: Place, calls: &[Call], often: f64) {
        for call in calls {
            let operation = self.operation(call);
            let hits = match class.cache {
                Some(cache) if operation.kind == OperationKind::Read => cache.capacity,
                _ => 0.0,
            };
            let times = f64::from(call.times) * often;
            let speed = self.scenario.hosts[place.group].speed;
            work.add(&self.scenario.dwell.cached_read, speed, times * hits);
            self.invoke(work, place, call, times * (1.0 - hits), class.priority, Way::Called);
        }
    }
}

/// Calls.
impl<'a> Builder<'a> {
    fn operation(&self, call: &Call) -> &'a Operation {
        &self.scenario.servers[call.server].operations[call.operation]
    }

    /// So many calls to each host to which they may go.
    fn targets(&self, server: usize, target: Target, times: f64) -> Vec<(u32, f64)> {
        let hosts = self.hosts(self.scenario.servers[server].hosts);
        match target {
            Target::Object(_) => vec![(0, times)],
            Target::Random | Target::Robin => {
                (0..hosts).map(|host| (host, times / f64::from(hosts))).collect()
            }
        }
    }

    fn invoke(
        &mut self,
        work: &mut Work,
        from: Place,
        call: &Call,
        times: f64,
        priority: Option<i16>,
        way: Way,
    ) {
        if times == 0.0 {
            return;
        }
        let operation = self.operation(call);
        let group = self.scenario.servers[call.server].hosts;
        let bodies = (operation.request_octets, operation.reply_octets);
        let octets = match way {
            Way::Called => sizes::of_call(operation, priority),
            Way::Forwarded { .. } => sizes::passed_on(operation),
        };
        let is_oneway = operation.is_oneway || way != Way::Called;
        for (host, times) in self.targets(call.server, call.target, times) {
            let there = Place { group, host, server: Some(call.server) };
            if from.server == there.server && from.host == host {
                // Within a process the servant runs on its caller's thread.
                let key = (call.server, call.operation, host, priority);
                let known = self.servants.get(&key).cloned();
                let servant = known.unwrap_or_else(|| {
                    let mut servant = Work::default();
                    self.servant(&mut servant, call.server, call.operation, there, priority);
                    let servant = Rc::new(servant);
                    self.servants.insert(key, Rc::clone(&servant));
                    servant
                });
                work.join(&servant, times);
                continue;
            }
            self.client_side(work, from, bodies, times, is_oneway);
            self.travel(work, from, there, octets, times, is_oneway);
            let entry = self.entry(call, host, priority, way);
            work.call(entry, times, !operation.is_oneway);
        }
    }

    /// An exchange with a daemon that it answers at once, or after it has passed parts on.
    fn ask_daemon(
        &mut self,
        work: &mut Work,
        from: Place,
        daemon: usize,
        octets: (u64, u64),
        priority: Option<i16>,
        passes_on: &[Call],
    ) {
        let there = self.daemon_place(daemon);
        let bodies = (octets.0 as u32, octets.1 as u32);
        let is_oneway = octets.1 == 0;
        self.client_side(work, from, bodies, 1.0, is_oneway);
        self.travel(work, from, there, octets, 1.0, is_oneway);
        let lane = self.scenario.servers[daemon].pool_for(priority);
        let priority = priority.filter(|_| self.is_by_priority());
        let key = EntryKey::Asked { server: daemon, host: 0, octets, priority };
        let of_daemon = numbered(&self.scenario.servers[daemon].name, 0, self.hosts(there.group));
        let mut served = Work::default();
        self.serve(&mut served, there, bodies.0, bodies.1, is_oneway);
        served.add(&self.scenario.dwell.execute, self.scenario.hosts[there.group].speed, 1.0);
        for part in passes_on {
            let body = self.operation(part).request_octets;
            self.client_side(&mut served, there, (body, 0), f64::from(part.times), true);
        }
        let task = self.threads_of_lane(daemon, 0, lane);
        let entry = self.entry_of(key, task, &format!("{of_daemon}_asked"), served);
        work.call(entry, 1.0, true);
    }

    /// A LocateRequest needs no thread of a pool.
    fn located(&mut self, server: usize, there: Place) -> String {
        let of_server = numbered(&self.scenario.servers[server].name, there.host, self.hosts(there.group));
        let key = TaskKey::Located { server, host: there.host };
        let task = Task { name: format!("{of_server}_locates"), ..unbounded() };
        self.task_if_new(key, place_key(there), task);
        let mut served = Work::default();
        self.serve(&mut served, there, 0, 0, false);
        let entry = EntryKey::Located { server, host: there.host };
        self.entry_of(entry, key, &format!("{of_server}_located"), served)
    }

    /// What a client answers a server that asks whether it is there, or tells it a result of so many octets.
    fn answered(&mut self, there: Place, octets: Option<u32>) -> String {
        let name = numbered(&self.scenario.hosts[there.group].name, there.host, self.hosts(there.group));
        let key = TaskKey::Answers { group: there.group, host: there.host };
        let task = Task { name: format!("{name}_answers"), ..unbounded() };
        self.task_if_new(key, place_key(there), task);
        let mut served = Work::default();
        self.serve(&mut served, there, octets.unwrap_or(0), 0, false);
        if octets.is_some() {
            served.add(&self.scenario.dwell.execute, self.scenario.hosts[there.group].speed, 1.0);
        }
        let entry = EntryKey::Answered { group: there.group, host: there.host, octets };
        self.entry_of(entry, key, &format!("{name}_answered"), served)
    }

    /// The entry of a task that is there, which is made if it is new.
    fn entry_of(&mut self, key: EntryKey, task: TaskKey, wanted: &str, work: Work) -> String {
        if let Some(name) = self.entries.get(&key) {
            return name.clone();
        }
        let name = self.unique(wanted);
        self.entries.insert(key, name.clone());
        let phase = Some(work.activity(format!("{name}_1"), None));
        self.add_entry(task, Entry { name: name.clone(), open_rate: None, phase });
        name
    }

    /// What a caller's processor does.
    fn client_side(&self, work: &mut Work, at: Place, bodies: (u32, u32), times: f64, is_oneway: bool) {
        let speed = self.scenario.hosts[at.group].speed;
        let dwell = &self.scenario.dwell;
        let asks = [&dwell.find_proxy, &dwell.write_request, &dwell.channel];
        asks.into_iter().for_each(|step| work.add(step, speed, times));
        work.add(&Spread::Fixed(dwell.body(bodies.0)), speed, times);
        if !is_oneway {
            let takes = [&dwell.channel, &dwell.thread_switch, &dwell.read_reply];
            takes.into_iter().for_each(|step| work.add(step, speed, times));
            work.add(&Spread::Fixed(dwell.body(bodies.1)), speed, times);
        }
    }

    /// What a server's processor does for a request, without the servant.
    fn serve(&self, work: &mut Work, at: Place, request: u32, reply: u32, is_oneway: bool) {
        let speed = self.scenario.hosts[at.group].speed;
        let dwell = &self.scenario.dwell;
        let reads = [&dwell.channel, &dwell.thread_switch, &dwell.read_request, &dwell.find_object];
        reads.into_iter().for_each(|step| work.add(step, speed, 1.0));
        work.add(&Spread::Fixed(dwell.body(request)), speed, 1.0);
        if !is_oneway {
            [&dwell.write_reply, &dwell.channel].into_iter().for_each(|step| work.add(step, speed, 1.0));
            work.add(&Spread::Fixed(dwell.body(reply)), speed, 1.0);
        }
    }

    fn entry(&mut self, call: &Call, host: u32, priority: Option<i16>, way: Way) -> String {
        let (server, operation) = (call.server, call.operation);
        let lane = self.scenario.servers[server].pool_for(priority);
        let priority = priority.filter(|_| self.is_by_priority());
        let key = EntryKey::Operation { server, host, operation, priority, way };
        if let Some(name) = self.entries.get(&key) {
            return name.clone();
        }
        let it = &self.scenario.servers[server];
        let op = &it.operations[operation];
        let there = Place { group: it.hosts, host, server: Some(server) };
        let mut wanted = format!("{}_{}", numbered(&it.name, host, self.hosts(it.hosts)), op.name);
        if let Some(priority) = priority {
            wanted = format!("{wanted}_{priority}");
        }
        let name = self.unique(&wanted);
        self.entries.insert(key, name.clone());
        let mut work = Work::default();
        let is_oneway = op.is_oneway || way != Way::Called;
        self.serve(&mut work, there, op.request_octets, op.reply_octets, is_oneway);
        if let Way::Forwarded { group, host } = way {
            let client = Place { group, host, server: None };
            self.client_side(&mut work, there, (0, 0), 1.0, false);
            self.travel(&mut work, there, client, sizes::of_locate(), 1.0, false);
            let verified = self.answered(client, None);
            work.call(verified, 1.0, true);
            self.client_side(&mut work, there, (op.reply_octets, 0), 1.0, false);
            self.travel(&mut work, there, client, sizes::told(op), 1.0, false);
            let told = self.answered(client, Some(op.reply_octets));
            work.call(told, 1.0, true);
        }
        match it.lock {
            ServerLock::Process => {
                let locked = self.locked(call, host, priority);
                work.call(locked, 1.0, true);
            }
            ServerLock::None | ServerLock::Object => {
                self.servant(&mut work, server, operation, there, priority)
            }
        }
        let task = self.threads_of_lane(server, host, lane);
        let phase = Some(work.activity(format!("{name}_1"), None));
        self.add_entry(task, Entry { name: name.clone(), open_rate: None, phase });
        name
    }

    /// What an operation does with the lock of its process.
    fn locked(&mut self, call: &Call, host: u32, priority: Option<i16>) -> String {
        let (server, operation) = (call.server, call.operation);
        let key = EntryKey::Locked { server, host, operation, priority };
        if let Some(name) = self.entries.get(&key) {
            return name.clone();
        }
        let it = &self.scenario.servers[server];
        let hosts = self.hosts(it.hosts);
        let there = Place { group: it.hosts, host, server: Some(server) };
        let of_server = numbered(&it.name, host, hosts);
        let name = self.unique(&format!("{of_server}_{}_locked", it.operations[operation].name));
        self.entries.insert(key, name.clone());
        let mut work = Work::default();
        self.servant(&mut work, server, operation, there, priority);
        let task = TaskKey::Lock { server, host };
        let empty = Task {
            name: format!("{of_server}_lock"),
            kind: TaskKind::Threads(self.all_in_one(it.hosts)),
            entries: Vec::new(),
            graph: Graph::default(),
        };
        self.task_if_new(task, place_key(there), empty);
        let phase = Some(work.activity(format!("{name}_1"), None));
        self.add_entry(task, Entry { name: name.clone(), open_rate: None, phase });
        name
    }

    /// What the servant does: it computes or sleeps, and calls others.
    fn servant(
        &mut self,
        work: &mut Work,
        server: usize,
        operation: usize,
        there: Place,
        priority: Option<i16>,
    ) {
        let op = &self.scenario.servers[server].operations[operation];
        let speed = self.scenario.hosts[there.group].speed;
        work.add(&self.scenario.dwell.execute, speed, 1.0);
        match op.sleeps {
            false => work.add(&op.demand, speed, 1.0),
            true => {
                let sleep = self.sleep(server, operation);
                work.call(sleep, 1.0, true);
            }
        }
        for call in &op.calls {
            self.invoke(work, there, call, f64::from(call.times), priority, Way::Called);
        }
    }

    fn sleep(&mut self, server: usize, operation: usize) -> String {
        let it = &self.scenario.servers[server];
        let op = &it.operations[operation];
        let mut work = Work::default();
        work.add(&op.demand, 1.0, 1.0);
        let wanted = format!("{}_{}_servant", plain(&it.name), op.name);
        let task = Task { name: format!("{}_servants", plain(&it.name)), ..unbounded() };
        self.delay(
            EntryKey::Sleep { server, operation },
            TaskKey::Servants { server },
            ProcessorKey::Delays,
            task,
            &wanted,
            work,
        )
    }

    /// Latency and bandwidth of a request and its reply. What a group's hosts send to themselves takes no link.
    fn travel(
        &mut self,
        work: &mut Work,
        from: Place,
        to: Place,
        (request, reply): (u64, u64),
        times: f64,
        is_oneway: bool,
    ) {
        let hosts = f64::from(self.scenario.hosts[from.group].count);
        let remote = match from.group == to.group {
            true if self.hosts(from.group) > 1 => f64::from(u8::from(from.host != to.host)),
            true => 1.0 - 1.0 / hosts,
            false => 1.0,
        };
        let mut ways = vec![(from.group, to.group, request)];
        if !is_oneway {
            ways.push((to.group, from.group, reply));
        }
        for (from, to, octets) in ways {
            let link = self.scenario.link_between(from, to);
            let packets = octets.div_ceil(u64::from(link.mtu.max(1))).max(1);
            let names = (plain(&self.scenario.hosts[from].name), plain(&self.scenario.hosts[to].name));
            let mut late = Work::default();
            late.add(&Spread::Fixed(link.latency), 1.0, 1.0);
            late.add(&Spread::Uniform(Default::default(), link.jitter), 1.0, 1.0);
            late.add(&Spread::Fixed(link.retransmit_after), 1.0, link.loss * packets as f64);
            if late.mean > 0.0 {
                let wanted = format!("way_{}_{}_{octets}", names.0, names.1);
                let task = Task { name: "way".to_owned(), ..unbounded() };
                let key = EntryKey::Latency { from, to, octets };
                let entry = self.delay(key, TaskKey::Way, ProcessorKey::Delays, task, &wanted, late);
                work.call(entry, times * remote, true);
            }
            if let Some(bandwidth) = link.bandwidth {
                let on_wire = (octets + packets * u64::from(link.packet_overhead)) as f64;
                let sent = Work {
                    mean: on_wire * 8.0 / bandwidth as f64 * (1.0 + link.loss + link.duplicate),
                    ..Work::default()
                };
                let wanted = format!("sent_{}_{}_{octets}", names.0, names.1);
                let task = Task { name: format!("link_{}_{}", names.0, names.1), ..unbounded() };
                let key = EntryKey::Sent { from, to, octets };
                let entry = self.delay(
                    key,
                    TaskKey::Link { from, to },
                    ProcessorKey::Link(from, to),
                    task,
                    &wanted,
                    sent,
                );
                work.call(entry, times * remote, true);
            }
        }
    }

    /// An entry of a task without bound.
    fn delay(
        &mut self,
        key: EntryKey,
        task: TaskKey,
        processor: ProcessorKey,
        empty: Task,
        wanted: &str,
        work: Work,
    ) -> String {
        self.task_if_new(task, processor, empty);
        self.entry_of(key, task, wanted, work)
    }
}

/// Tasks and processors.
impl Builder<'_> {
    /// Into how many processors a group is expanded.
    fn hosts(&self, group: usize) -> u32 {
        let count = self.scenario.hosts[group].count;
        if count > EXPANDED_MAX { 1 } else { count }
    }

    /// How many hosts one processor stands for.
    fn all_in_one(&self, group: usize) -> u32 {
        self.scenario.hosts[group].count / self.hosts(group)
    }

    fn is_by_priority(&self) -> bool {
        self.scenario.servers.iter().any(|server| !server.lanes.is_empty())
    }

    fn threads(&mut self, server: usize, host: u32, priority: Option<i16>) -> TaskKey {
        let lane = self.scenario.servers[server].pool_for(priority);
        self.threads_of_lane(server, host, lane)
    }

    fn threads_of_lane(&mut self, server: usize, host: u32, lane: usize) -> TaskKey {
        let it = &self.scenario.servers[server];
        let key = TaskKey::Threads { server, host, lane };
        let threads = it.pools().get(lane).copied();
        let of_server = numbered(&it.name, host, self.hosts(it.hosts));
        let name = match it.lanes.get(lane) {
            Some(lane) => format!("{of_server}_lane_{}", lane.priority),
            None => of_server,
        };
        let pooled = self.all_in_one(it.hosts);
        let kind =
            threads.map_or(TaskKind::Unbounded, |threads| TaskKind::Threads(threads.saturating_mul(pooled)));
        let task = Task { name, kind, entries: Vec::new(), graph: Graph::default() };
        self.task_if_new(key, ProcessorKey::Host(it.hosts, host), task);
        key
    }

    fn task_if_new(&mut self, key: TaskKey, processor: ProcessorKey, mut task: Task) {
        if !self.tasks.contains_key(&key) {
            task.name = self.unique(&task.name);
            self.task(key, processor, task);
        }
    }

    fn task(&mut self, key: TaskKey, processor: ProcessorKey, task: Task) {
        self.tasks.insert(key, task);
        if !self.processors.contains_key(&processor) {
            let draft = self.processor(processor);
            self.processors.insert(processor, draft);
        }
        if let Some(draft) = self.processors.get_mut(&processor) {
            draft.tasks.insert(key);
        }
    }

    fn processor(&mut self, key: ProcessorKey) -> ProcessorDraft {
        let hosts = &self.scenario.hosts;
        let (wanted, multiplicity, takes_turns) = match key {
            ProcessorKey::Host(group, host) => {
                let cores = hosts[group].cores.saturating_mul(self.all_in_one(group));
                (format!("cpu_{}", numbered(&hosts[group].name, host, self.hosts(group))), Some(cores), true)
            }
            ProcessorKey::Link(from, to) => {
                let copies = hosts[from].count.saturating_mul(hosts[to].count);
                let wanted = format!("wire_{}_{}", plain(&hosts[from].name), plain(&hosts[to].name));
                (wanted, Some(copies), false)
            }
            ProcessorKey::Delays => ("delays".to_owned(), None, false),
        };
        ProcessorDraft { name: self.unique(&wanted), multiplicity, takes_turns, tasks: BTreeSet::new() }
    }

    fn add_entry(&mut self, task: TaskKey, entry: Entry) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.entries.push(entry);
        }
    }

    /// The name, or one like it if it is taken.
    fn unique(&mut self, wanted: &str) -> String {
        let wanted = plain(wanted);
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}

/// Adds activities that run at once between two others, and tells the last one.
fn fork(graph: &mut Graph, first: Work, parts: Vec<Work>, name: &str) -> String {
    let names: Vec<String> = (1..=parts.len()).map(|part| format!("{name}_part_{part}")).collect();
    let last = format!("{name}_joined");
    graph.activities.push(first.activity(name.to_owned(), None));
    for (part, name) in parts.into_iter().zip(&names) {
        graph.activities.push(part.activity(name.clone(), None));
    }
    graph.activities.push(Work::default().activity(last.clone(), None));
    match names.as_slice() {
        [only] => {
            graph.steps.push(Step::Then(name.to_owned(), only.clone()));
            graph.steps.push(Step::Then(only.clone(), last.clone()));
        }
        _ => {
            graph.steps.push(Step::Fork(name.to_owned(), names.clone()));
            graph.steps.push(Step::Join(names, last.clone()));
        }
    }
    last
}

fn unbounded() -> Task {
    Task { name: String::new(), kind: TaskKind::Unbounded, entries: Vec::new(), graph: Graph::default() }
}

fn place_key(place: Place) -> ProcessorKey {
    ProcessorKey::Host(place.group, place.host)
}

fn numbered(name: &str, host: u32, hosts: u32) -> String {
    if hosts == 1 { plain(name) } else { format!("{}_{host}", plain(name)) }
}

/// Letters, digits and underscores, with a letter in front: what all solvers take.
fn plain(name: &str) -> String {
    let mut plain: String =
        name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
    if !plain.starts_with(|first: char| first.is_ascii_alphabetic()) {
        plain.insert(0, 'n');
    }
    plain
}
