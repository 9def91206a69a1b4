//! What a cycle of each class takes of each resource, when nothing waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::{fmt, mem};

use super::fork_join::{self, Part, mean};
use super::network::{Demand, Load};
use super::sizes::{self, Asked};
use crate::scenario::{
    Architecture, Arrivals, Call, Choice, Class, Cycle, Operation, OperationKind, Scenario, ServerLock,
    Spread, Target, Weighted,
};

/// What a scenario asks of its resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Demands {
    /// Processors, links, threads, locks and stations.
    pub resources: Vec<Resource>,
    /// By class, in the scenario's order.
    pub classes: Vec<ClassDemands>,
    /// What keeps the scenario from having a product form, and what is left out here.
    pub deviations: Vec<Deviation>,
    /// Whether pauses make work longer than the demands say.
    pub leaves_out_pauses: bool,
}

/// What requests queue for.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// What it is.
    pub kind: ResourceKind,
    /// As in the reports of simulations, but for a whole group of equal hosts: `cpu of registry`.
    pub name: String,
    /// What can be in use at a time at each copy.
    pub servers: u32,
    /// The number of equal resources.
    pub copies: u32,
    /// By class.
    pub demands: Vec<Demand>,
}

/// Kinds of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// Processors of a host.
    Processors,
    /// One direction of a link.
    Link,
    /// What sleeps in a server, as the stations of a synthetic workload do: as many at a time as it has threads.
    Station,
    /// A server's threads, held from the request to the reply.
    Threads,
    /// The lock of a process.
    Lock,
}

impl ResourceKind {
    /// Whether a request that has it may need another resource at the same time.
    pub fn is_held_across_others(self) -> bool {
        matches!(self, ResourceKind::Threads | ResourceKind::Lock)
    }
}

/// What a cycle of a class is.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassDemands {
    /// The class's name.
    pub name: String,
    /// How many cycles are under way, or come.
    pub load: Load,
    /// Whether as many come for ever. A trace ends; its mean rate bounds nothing.
    pub is_steady: bool,
    /// Mean seconds of a cycle if nothing waits. A job lasts as long as its longest part.
    pub alone: f64,
    /// Seconds that every cycle takes, however lucky: no percentile is below.
    pub least: f64,
    /// Invocations a cycle, nested ones too.
    pub calls: f64,
    /// Messages a cycle.
    pub messages: f64,
    /// Octets of these messages.
    pub octets: f64,
    /// Cycles whose parts run at once, and the part of all cycles that they are.
    pub forks: Vec<(f64, Fork)>,
}

/// A job whose parts run at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// Mean seconds before and after the parts.
    pub around: f64,
    /// The parts.
    pub parts: Vec<Part>,
}

/// Where a scenario is not of product form, or a model of it leaves something out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deviation {
    /// The part of the scenario.
    pub part: String,
    /// What it does.
    pub what: String,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

/// Why a scenario has no demands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation} calls itself, directly or through others")]
pub struct Recursion {
    /// The operation.
    pub operation: String,
}

/// The demands of a scenario's classes.
///
/// # Errors
/// Operations call each other in a circle.
pub fn demands(scenario: &Scenario) -> Result<Demands, Recursion> {
    let mut collector = Collector {
        scenario,
        split: scenario.hosts.iter().map(|_| false).collect(),
        resources: BTreeMap::new(),
        deviations: BTreeSet::new(),
        class: 0,
        totals: Totals::default(),
        stack: Vec::new(),
        nested: BTreeMap::new(),
    };
    collector.find_split_groups();
    let mut classes = Vec::new();
    for (index, class) in scenario.classes.iter().enumerate() {
        collector.class = index;
        classes.push(collector.class(class)?);
    }
    collector.note_servers();
    collector.note_links();
    let resources = collector
        .resources
        .into_iter()
        .filter(|(_, resource)| resource.demands.iter().any(|demand| demand.seconds > 0.0))
        .map(|(_, resource)| resource)
        .collect();
    let deviations = collector.deviations.into_iter().collect();
    Ok(Demands { resources, classes, deviations, leaves_out_pauses: !scenario.dwell.pauses.is_empty() })
}

/// The parts of a class's cycles that are of each kind.
pub(crate) fn weights(class: &Class) -> Vec<f64> {
    let weight = |it: &Weighted| match class.choice {
        Choice::Random => it.weight,
        Choice::InTurn => 1.0,
    };
    let sum: f64 = class.mix.iter().map(weight).sum();
    class.mix.iter().map(|it| weight(it) / sum).collect()
}

/// The mean rate of a trace, in cycles a second; zero of one whose cycles all begin at once.
pub(crate) fn trace_rate(times: &[Duration]) -> f64 {
    match times.last() {
        Some(last) if !last.is_zero() => times.len() as f64 / last.as_secs_f64(),
        _ => 0.0,
    }
}

struct Collector<'a> {
    scenario: &'a Scenario,
    /// By group: whether calls go to objects of its first host, so that it is not like the others.
    split: Vec<bool>,
    resources: BTreeMap<Key, Resource>,
    deviations: BTreeSet<Deviation>,
    class: usize,
    totals: Totals,
    /// The operations under way, to find those that call themselves.
    stack: Vec<(usize, usize)>,
    /// What the calls of operations take, for the class: each is found once, however many ways lead to it.
    nested: BTreeMap<Executed, Nested>,
}

/// An operation of a server, and on which of its hosts it is executed.
type Executed = (usize, usize, Over);

/// What the calls take that an operation makes while it is executed once.
#[derive(Debug)]
struct Nested {
    length: Length,
    /// What they take of each resource, which has no demands yet.
    demands: Vec<(Key, Resource, Demand)>,
    totals: Totals,
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    calls: f64,
    messages: f64,
    octets: f64,
}

/// The kind, which one of the kind, and which part of it.
type Key = (ResourceKind, usize, usize, Hosts);

/// Which hosts of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hosts {
    All,
    First,
    Rest,
}

/// How the demand of one customer spreads over the hosts of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Over {
    /// It is always on one host; which one differs from customer to customer.
    Own,
    /// It is on a random one each time.
    Any,
    /// It is on the first.
    First,
}

/// A place from which calls leave.
#[derive(Debug, Clone, Copy)]
struct Place {
    group: usize,
    over: Over,
    /// Of a servant: its server, whose calls to itself may stay in its process.
    server: Option<usize>,
}

/// How long something takes without queues.
#[derive(Debug, Default, Clone, Copy)]
struct Length {
    mean: f64,
    least: f64,
}

impl Length {
    fn of(spread: &Spread, speed: f64) -> Length {
        Length { mean: mean(spread) / speed, least: least(spread) / speed }
    }

    fn always(seconds: f64) -> Length {
        Length { mean: seconds, least: seconds }
    }

    fn then(self, other: Length) -> Length {
        Length { mean: self.mean + other.mean, least: self.least + other.least }
    }

    /// Of what takes no time in the other cases.
    fn part(self, part: f64) -> Length {
        let least = if part < 1.0 { 0.0 } else { self.least };
        Length { mean: self.mean * part, least }
    }

    fn times(self, n: f64) -> Length {
        Length { mean: self.mean * n, least: self.least * n }
    }
}

/// The shortest time of a distribution, in seconds.
fn least(spread: &Spread) -> f64 {
    match spread {
        Spread::Fixed(time) | Spread::Uniform(time, _) => time.as_secs_f64(),
        Spread::Exponential(_) => 0.0,
        Spread::Samples(samples) => samples.iter().min().map_or(0.0, |time| time.as_secs_f64()),
    }
}

/// What one call adds to the time of its caller: the servant's own time by itself, since it may vary.
struct CallLength {
    around: Length,
    servant: Option<(Spread, f64)>,
}

impl CallLength {
    fn whole(&self) -> Length {
        let of = |(spread, speed): &(Spread, f64)| Length::of(spread, *speed);
        self.around.then(self.servant.as_ref().map(of).unwrap_or_default())
    }

    fn servant_mean(&self) -> f64 {
        self.servant.as_ref().map_or(0.0, |(spread, speed)| mean(spread) / speed)
    }
}

/// A request, and its reply.
struct Exchange {
    /// Octets that are marshalled.
    bodies: (u32, u32),
    /// Octets of the messages.
    octets: (u64, u64),
    is_oneway: bool,
}

/// What an exchange takes beside what the server does.
struct Way {
    /// Until the caller has sent its request.
    asked: Length,
    /// Until the server has read it.
    arrival: Length,
    /// Until the caller has the reply; of a oneway, until the server has read it.
    whole: Length,
    /// What the server's thread does.
    in_thread: f64,
}

impl<'a> Collector<'a> {
    fn find_split_groups(&mut self) {
        let scenario = self.scenario;
        let of_operations = scenario.servers.iter().flat_map(|it| &it.operations).flat_map(|it| &it.calls);
        let of_classes = scenario.classes.iter().flat_map(|it| &it.mix).flat_map(|it| match &it.cycle {
            Cycle::Calls(calls) => calls,
            Cycle::Job { parts, .. } => parts,
        });
        for call in of_operations.chain(of_classes) {
            let group = scenario.servers[call.server].hosts;
            self.split[group] |= matches!(call.target, Target::Object(_)) && scenario.hosts[group].count > 1;
        }
        for weighted in scenario.classes.iter().flat_map(|it| &it.mix) {
            if let Cycle::Job { daemon, .. } = &weighted.cycle {
                // The daemon is the first process of its server.
                let group = scenario.servers[*daemon].hosts;
                self.split[group] |= scenario.hosts[group].count > 1;
            }
        }
    }

    fn class(&mut self, class: &Class) -> Result<ClassDemands, Recursion> {
        self.totals = Totals::default();
        self.nested.clear();
        self.note_class(class);
        let home = Place { group: class.hosts, over: Over::Own, server: None };
        let (mut alone, mut shortest) = (0.0, f64::INFINITY);
        let mut forks = Vec::new();
        for (cycle, weight) in class.mix.iter().zip(weights(class)) {
            let length = match &cycle.cycle {
                Cycle::Calls(calls) => self.sequence(class, home, calls, weight)?,
                Cycle::Job { architecture, parts, daemon } => {
                    let job = Job { class, home, daemon: *daemon, weight };
                    let (length, fork) = self.job(&job, *architecture, parts)?;
                    forks.extend(fork.map(|fork| (weight, fork)));
                    length
                }
            };
            alone += weight * length.mean;
            shortest = f64::min(shortest, length.least);
        }
        let load = match &class.arrivals {
            Arrivals::Closed { clients, think } => Load::Closed { customers: *clients, think: mean(think) },
            Arrivals::Open { between, burst } => Load::Open { rate: f64::from(*burst) / mean(between) },
            Arrivals::Trace(times) => Load::Open { rate: trace_rate(times) },
        };
        let Totals { calls, messages, octets } = self.totals;
        let name = class.name.clone();
        let least = if shortest.is_finite() { shortest } else { 0.0 };
        let is_steady = !matches!(class.arrivals, Arrivals::Trace(_));
        Ok(ClassDemands { name, load, is_steady, alone, least, calls, messages, octets, forks })
    }

    fn sequence(
        &mut self,
        class: &Class,
        from: Place,
        calls: &[Call],
        often: f64,
    ) -> Result<Length, Recursion> {
        let mut whole = Length::default();
        for call in calls {
            whole = whole.then(self.calls_of_class(class, from, call, often)?);
        }
        Ok(whole)
    }

    /// Calls of a client, some of which its cache answers.
    fn calls_of_class(
        &mut self,
        class: &Class,
        from: Place,
        call: &Call,
        often: f64,
    ) -> Result<Length, Recursion> {
        let operation = self.operation(call);
        let times = f64::from(call.times);
        let hits = match class.cache {
            Some(cache) if operation.kind == OperationKind::Read => cache.capacity,
            _ => 0.0,
        };
        let speed = self.scenario.hosts[from.group].speed;
        let cached = Length::of(&self.scenario.dwell.cached_read, speed);
        self.processors(from, cached.mean * hits * times * often);
        let called = self.call(from, call, often * times * (1.0 - hits), class.priority)?.whole();
        let least = match hits {
            0.0 => called.least,
            _ => cached.least.min(called.least),
        };
        Ok(Length { mean: hits * cached.mean + (1.0 - hits) * called.mean, least }.times(times))
    }

    /// One call, which is made so often: its demands are noted, and its length is told.
    fn call(
        &mut self,
        from: Place,
        call: &Call,
        often: f64,
        priority: Option<i16>,
    ) -> Result<CallLength, Recursion> {
        let operation = self.operation(call);
        let there = self.place(call);
        // The servant of a call within a process runs on the thread of its caller, and nothing is sent.
        let remote = 1.0 - self.within_a_process(from, there);
        let executed = self.executed(there, operation, often);
        let nested = self.nested(there, call, often, priority)?;
        let exchange = Exchange {
            bodies: (operation.request_octets, operation.reply_octets),
            octets: sizes::of_call(operation, priority),
            is_oneway: operation.is_oneway,
        };
        let way = self.exchange(from, there, &exchange, often * remote);
        let servant = executed.servant_mean();
        let locked = executed.around.mean + nested.mean + servant;
        self.threads(call.server, there.over, priority, (way.in_thread + locked) * often * remote);
        self.hold(call.server, there.over, priority, operation, locked, often);
        self.totals.calls += often;
        if operation.is_oneway {
            return Ok(CallLength { around: way.asked.part(remote), servant: None });
        }
        let around = way.whole.part(remote).then(executed.around).then(nested);
        Ok(CallLength { around, ..executed })
    }

    /// The calls of an operation that is executed so often.
    fn nested(
        &mut self,
        there: Place,
        call: &Call,
        often: f64,
        priority: Option<i16>,
    ) -> Result<Length, Recursion> {
        let operation = self.operation(call);
        if operation.calls.is_empty() {
            return Ok(Length::default());
        }
        let key = (call.server, call.operation, there.over);
        let nested = match self.nested.remove(&key) {
            Some(known) => known,
            None => self.nested_of_one(there, call, priority)?,
        };
        self.add_nested(&nested, often);
        let length = nested.length;
        self.nested.insert(key, nested);
        Ok(length)
    }

    /// The calls of an operation that is executed once.
    fn nested_of_one(
        &mut self,
        there: Place,
        call: &Call,
        priority: Option<i16>,
    ) -> Result<Nested, Recursion> {
        let operation = self.operation(call);
        let key = (call.server, call.operation);
        if self.stack.contains(&key) {
            let server = &self.scenario.servers[call.server].name;
            return Err(Recursion { operation: format!("{} of {server}", operation.name) });
        }
        self.stack.push(key);
        let around = (mem::take(&mut self.resources), mem::take(&mut self.totals));
        let mut length = Length::default();
        for inner in &operation.calls {
            let times = f64::from(inner.times);
            length = length.then(self.call(there, inner, times, priority)?.whole().times(times));
        }
        self.stack.pop();
        let (resources, totals) =
            (mem::replace(&mut self.resources, around.0), mem::replace(&mut self.totals, around.1));
        let class = self.class;
        let demands = resources.into_iter().map(|(key, mut resource)| {
            let demand = mem::take(&mut resource.demands)[class];
            (key, resource, demand)
        });
        Ok(Nested { length, demands: demands.collect(), totals })
    }

    fn add_nested(&mut self, nested: &Nested, often: f64) {
        let class = self.class;
        for (key, of_one, Demand { seconds, copies_visited }) in &nested.demands {
            let resource = self.resource(*key, &of_one.name, of_one.servers, of_one.copies);
            note(resource, class, seconds * often, *copies_visited);
        }
        let Totals { calls, messages, octets } = nested.totals;
        self.totals.calls += calls * often;
        self.totals.messages += messages * often;
        self.totals.octets += octets * often;
    }

    /// What a servant does itself.
    fn executed(&mut self, there: Place, operation: &Operation, often: f64) -> CallLength {
        let around = self.step(there, &self.scenario.dwell.execute, often);
        let speed = if operation.sleeps { 1.0 } else { self.scenario.hosts[there.group].speed };
        let executed = CallLength { around, servant: Some((operation.demand.clone(), speed)) };
        if !operation.sleeps {
            self.processors(there, executed.servant_mean() * often);
        }
        executed
    }

    fn place(&self, call: &Call) -> Place {
        let group = self.scenario.servers[call.server].hosts;
        Place { group, over: over(call.target), server: Some(call.server) }
    }

    /// The part of the calls between two places that stay in one process.
    fn within_a_process(&self, from: Place, to: Place) -> f64 {
        if from.server.is_none() || from.server != to.server {
            return 0.0;
        }
        match (from.over, to.over) {
            (Over::First, Over::First) => 1.0,
            _ => 1.0 / f64::from(self.scenario.hosts[to.group].count),
        }
    }

    fn operation(&self, call: &Call) -> &'a Operation {
        &self.scenario.servers[call.server].operations[call.operation]
    }
}

/// Jobs.
impl Collector<'_> {
    fn job(
        &mut self,
        job: &Job<'_>,
        architecture: Architecture,
        parts: &[Call],
    ) -> Result<(Length, Option<Fork>), Recursion> {
        let sizes = self.job_sizes(architecture, parts);
        match architecture {
            Architecture::Sequential => {
                let mut whole = Length::default();
                for part in parts {
                    whole = whole.then(self.ask_daemon(job, sizes.resolve, 0.0));
                    whole = whole.then(self.verified(job, part)?.0);
                }
                Ok((whole, None))
            }
            Architecture::HandleDriven => {
                let around = self.ask_daemon(job, sizes.resolve, 0.0);
                let parts = parts.iter().map(|part| self.verified(job, part)).collect::<Result<_, _>>()?;
                Ok(forked(around, parts))
            }
            Architecture::Synchronous => {
                let daemon = self.daemon(job);
                let mut joined = Vec::new();
                for part in parts {
                    joined.push(self.part(daemon, part, job)?);
                }
                // Its thread waits for the last part.
                let parts: Vec<Part> = joined.iter().map(|(_, part)| part.clone()).collect();
                let around = self.ask_daemon(job, sizes.run, fork_join::mean_of_longest(&parts));
                Ok(forked(around, joined))
            }
            Architecture::Forwarding => Ok(self.forwarded(job, &sizes, parts)),
        }
    }

    fn job_sizes(&self, architecture: Architecture, parts: &[Call]) -> Asked {
        let octets = |of: fn(&Operation) -> u32| -> u64 {
            parts.iter().map(|part| u64::from(of(self.operation(part)))).sum()
        };
        let named = if architecture == Architecture::Sequential { 1 } else { parts.len() as u64 };
        Asked::of(named, octets(|it| it.request_octets), octets(|it| it.reply_octets))
    }

    /// The daemon of a job is the first process of its server.
    fn daemon(&self, job: &Job<'_>) -> Place {
        Place { group: self.scenario.servers[job.daemon].hosts, over: Over::First, server: Some(job.daemon) }
    }

    /// An exchange with the daemon, whose thread is busy for so many seconds beside.
    fn ask_daemon(&mut self, job: &Job<'_>, octets: (u64, u64), beside: f64) -> Length {
        let daemon = self.daemon(job);
        let exchange =
            Exchange { bodies: (octets.0 as u32, octets.1 as u32), octets, is_oneway: octets.1 == 0 };
        let way = self.exchange(job.home, daemon, &exchange, job.weight);
        let executed = self.step(daemon, &self.scenario.dwell.execute, job.weight);
        let held = way.in_thread + executed.mean + beside;
        self.threads(job.daemon, daemon.over, job.class.priority, held * job.weight);
        self.totals.calls += job.weight;
        way.whole.then(executed)
    }

    /// A job that the daemon forwards, and whose parts' servers call the client back.
    fn forwarded(&mut self, job: &Job<'_>, sizes: &Asked, parts: &[Call]) -> (Length, Option<Fork>) {
        let daemon = self.daemon(job);
        let around = self.ask_daemon(job, sizes.forward, 0.0);
        let mut joined = Vec::new();
        for part in parts {
            let operation = self.operation(part);
            let server = self.place(part);
            let passed_on = Exchange {
                bodies: (operation.request_octets, 0),
                octets: sizes::passed_on(operation),
                is_oneway: true,
            };
            let passed = self.exchange(daemon, server, &passed_on, job.weight);
            let executed = self.executed(server, operation, job.weight);
            let verified = self.located(server, job.home, job.weight);
            let told = Exchange {
                bodies: (operation.reply_octets, 0),
                octets: sizes::told(operation),
                is_oneway: false,
            };
            let told = self.exchange(server, job.home, &told, job.weight);
            let taken = self.step(job.home, &self.scenario.dwell.execute, job.weight);
            self.totals.calls += 2.0 * job.weight;
            let locked = executed.around.mean + executed.servant_mean();
            let held = passed.in_thread + locked + verified.mean + told.whole.mean + taken.mean;
            self.threads(part.server, server.over, job.class.priority, held * job.weight);
            self.hold(part.server, server.over, job.class.priority, operation, locked, job.weight);
            // The job is over when the client has the last result; what the server waits for beside is not part of it.
            let told = told.arrival.then(taken);
            let around = [passed.arrival, executed.around, verified].into_iter().fold(told, Length::then);
            joined.push(of_times(CallLength { around, ..executed }, 1));
        }
        forked(around, joined)
    }

    /// A part whose handle the client verifies before it calls.
    fn verified(&mut self, job: &Job<'_>, part: &Call) -> Result<(Length, Part), Recursion> {
        let verified = self.located(job.home, self.place(part), job.weight);
        let (length, called) = self.part(job.home, part, job)?;
        Ok((verified.then(length), Part { fixed: called.fixed + verified.mean, ..called }))
    }

    fn part(&mut self, from: Place, part: &Call, job: &Job<'_>) -> Result<(Length, Part), Recursion> {
        let often = job.weight * f64::from(part.times);
        Ok(of_times(self.call(from, part, often, job.class.priority)?, part.times))
    }

    /// A LocateRequest, which needs no thread of a pool.
    fn located(&mut self, from: Place, there: Place, often: f64) -> Length {
        let exchange = Exchange { bodies: (0, 0), octets: sizes::of_locate(), is_oneway: false };
        self.exchange(from, there, &exchange, often).whole
    }
}

struct Job<'a> {
    class: &'a Class,
    home: Place,
    daemon: usize,
    /// The part of the class's cycles that are this job.
    weight: f64,
}

/// A part that is made so many times, one after the other. What varies is told by itself if it comes once.
fn of_times(call: CallLength, times: u32) -> (Length, Part) {
    let whole = call.whole().times(f64::from(times));
    let part = match call.servant {
        Some((spread, speed)) if times == 1 && speed == 1.0 => Part { fixed: call.around.mean, spread },
        Some((Spread::Fixed(_), _)) | None => {
            Part { fixed: whole.mean, spread: Spread::Fixed(Default::default()) }
        }
        Some((spread, speed)) if times == 1 => {
            Part { fixed: call.around.mean, spread: fork_join::stretched(&spread, 1.0 / speed) }
        }
        Some(_) => Part { fixed: whole.mean, spread: Spread::Fixed(Default::default()) },
    };
    (whole, part)
}

fn forked(around: Length, joined: Vec<(Length, Part)>) -> (Length, Option<Fork>) {
    let least = joined.iter().map(|(length, _)| length.least).fold(0.0, f64::max);
    let parts: Vec<Part> = joined.into_iter().map(|(_, part)| part).collect();
    let mean = around.mean + fork_join::mean_of_longest(&parts);
    (Length { mean, least: around.least + least }, Some(Fork { around: around.mean, parts }))
}

/// Steps of a call. Each notes what it takes of processors and links.
impl Collector<'_> {
    fn exchange(&mut self, from: Place, there: Place, exchange: &Exchange, often: f64) -> Way {
        let Exchange { bodies, octets, is_oneway } = *exchange;
        let asked = self.find_and_write(from, bodies.0, often);
        let read = self.read_request(there, bodies.0, often);
        let arrival = asked.then(self.message(from, there, octets.0, often)).then(read);
        if is_oneway {
            return Way { asked, arrival, whole: arrival, in_thread: read.mean };
        }
        let written = self.write(there, bodies.1, &self.scenario.dwell.write_reply, often);
        let back = self.message(there, from, octets.1, often);
        let answered = self.read_reply(from, bodies.1, often);
        let whole = arrival.then(written).then(back).then(answered);
        Way { asked, arrival, whole, in_thread: read.mean + written.mean }
    }

    fn find_and_write(&mut self, at: Place, body: u32, often: f64) -> Length {
        let dwell = &self.scenario.dwell;
        let found = self.step(at, &dwell.find_proxy, often);
        found.then(self.write(at, body, &dwell.write_request, often))
    }

    fn write(&mut self, at: Place, body: u32, step: &Spread, often: f64) -> Length {
        self.step(at, step, often).then(self.body(at, body, often)).then(self.step(
            at,
            &self.scenario.dwell.channel,
            often,
        ))
    }

    fn read_request(&mut self, at: Place, body: u32, often: f64) -> Length {
        let dwell = &self.scenario.dwell;
        let steps = [&dwell.channel, &dwell.thread_switch, &dwell.read_request, &dwell.find_object];
        steps.into_iter().fold(self.body(at, body, often), |sum, step| sum.then(self.step(at, step, often)))
    }

    fn read_reply(&mut self, at: Place, body: u32, often: f64) -> Length {
        let dwell = &self.scenario.dwell;
        let steps = [&dwell.channel, &dwell.thread_switch, &dwell.read_reply];
        steps.into_iter().fold(self.body(at, body, often), |sum, step| sum.then(self.step(at, step, often)))
    }

    fn step(&mut self, at: Place, step: &Spread, often: f64) -> Length {
        let length = Length::of(step, self.scenario.hosts[at.group].speed);
        self.processors(at, length.mean * often);
        length
    }

    fn body(&mut self, at: Place, body: u32, often: f64) -> Length {
        let seconds = self.scenario.dwell.body(body).as_secs_f64();
        let length = Length::always(seconds / self.scenario.hosts[at.group].speed);
        self.processors(at, length.mean * often);
        length
    }

    /// A message from one place to another. One host does not send to itself over a link.
    fn message(&mut self, from: Place, to: Place, octets: u64, often: f64) -> Length {
        let hosts = |place: Place| f64::from(self.scenario.hosts[place.group].count);
        let remote = if from.group == to.group { 1.0 - 1.0 / hosts(from) } else { 1.0 };
        self.totals.messages += often;
        self.totals.octets += often * octets as f64;
        if remote == 0.0 {
            return Length::default();
        }
        let link = self.scenario.link_between(from.group, to.group);
        let packets = octets.div_ceil(u64::from(link.mtu.max(1))).max(1);
        let lost = f64::from(packets as u32) * link.loss;
        let mut seconds = 0.0;
        if let Some(bandwidth) = link.bandwidth {
            let on_wire = (octets + packets * u64::from(link.packet_overhead)) as f64;
            seconds = on_wire * 8.0 / bandwidth as f64;
            self.on_link(from, to, seconds * (1.0 + link.loss + link.duplicate) * remote * often);
        }
        let latency = link.latency.as_secs_f64();
        let mean = latency + link.jitter.as_secs_f64() / 2.0 + lost * link.retransmit_after.as_secs_f64();
        let least = if remote < 1.0 { 0.0 } else { latency + seconds };
        Length { mean: remote * (mean + seconds), least }
    }
}

/// Where demands are noted.
impl Collector<'_> {
    fn processors(&mut self, at: Place, seconds: f64) {
        let group = &self.scenario.hosts[at.group];
        let name = format!("cpu of {}", group.name);
        self.add((ResourceKind::Processors, at.group, 0), &name, at.group, at.over, group.cores, seconds);
    }

    fn on_link(&mut self, from: Place, to: Place, seconds: f64) {
        let groups = &self.scenario.hosts;
        let name = format!("link {} -> {}", groups[from.group].name, groups[to.group].name);
        let (there, here) = (groups[to.group].count, groups[from.group].count);
        let copies = if from.group == to.group { here * (there - 1).max(1) } else { here * there };
        let visited = match (from.over, to.over) {
            (Over::Own, _) => copies / here,
            (_, Over::Own) => copies / there,
            _ => copies,
        };
        let class = self.class;
        let resource =
            self.resource((ResourceKind::Link, from.group, to.group, Hosts::All), &name, 1, copies);
        note(resource, class, seconds, visited);
    }

    fn hold(
        &mut self,
        server: usize,
        over: Over,
        priority: Option<i16>,
        operation: &Operation,
        locked: f64,
        often: f64,
    ) {
        let it = &self.scenario.servers[server];
        if it.lock == ServerLock::Process {
            let name = format!("lock of {}", it.name);
            self.add((ResourceKind::Lock, server, 0), &name, it.hosts, over, 1, locked * often);
        }
        if operation.sleeps {
            let at_a_time = match it.lock {
                ServerLock::Process => Some(1),
                _ => self.pool(server, priority).map(|(_, threads)| threads),
            };
            let name = format!("servants of {}", it.name);
            let seconds = mean(&operation.demand) * often;
            let servers = at_a_time.unwrap_or(UNBOUNDED);
            self.add((ResourceKind::Station, server, 0), &name, it.hosts, over, servers, seconds);
        }
    }

    fn threads(&mut self, server: usize, over: Over, priority: Option<i16>, seconds: f64) {
        let Some((lane, threads)) = self.pool(server, priority) else { return };
        let it = &self.scenario.servers[server];
        let name = match it.lanes.get(lane) {
            Some(of_lane) => format!("threads of {}, lane {}", it.name, of_lane.priority),
            None => format!("threads of {}", it.name),
        };
        self.add((ResourceKind::Threads, server, lane), &name, it.hosts, over, threads, seconds);
    }

    /// The lane that serves a priority, and its threads; `None` if each connection has a thread.
    fn pool(&self, server: usize, priority: Option<i16>) -> Option<(usize, u32)> {
        let server = &self.scenario.servers[server];
        let lane = server.pool_for(priority);
        Some((lane, *server.pools().get(lane)?))
    }

    /// Notes a demand on the hosts of a group. Where calls go to objects of the first host it is a resource of its own.
    fn add(
        &mut self,
        (kind, which, part): (ResourceKind, usize, usize),
        name: &str,
        group: usize,
        over: Over,
        servers: u32,
        seconds: f64,
    ) {
        let count = self.scenario.hosts[group].count;
        let class = self.class;
        if !self.split[group] {
            let visited = if over == Over::Any { count } else { 1 };
            let resource = self.resource((kind, which, part, Hosts::All), name, servers, count);
            note(resource, class, seconds, visited);
            return;
        }
        let to_first = if over == Over::First { 1.0 } else { 1.0 / f64::from(count) };
        let first = self.resource((kind, which, part, Hosts::First), &format!("{name}[0]"), servers, 1);
        note(first, class, seconds * to_first, 1);
        let visited = if over == Over::Any { count - 1 } else { 1 };
        let others = format!("{name}[1..]");
        let rest = self.resource((kind, which, part, Hosts::Rest), &others, servers, count - 1);
        note(rest, class, seconds * (1.0 - to_first), visited);
    }

    fn resource(&mut self, key: Key, name: &str, servers: u32, copies: u32) -> &mut Resource {
        let classes = self.scenario.classes.len();
        self.resources.entry(key).or_insert_with(|| Resource {
            kind: key.0,
            name: name.to_owned(),
            servers,
            copies,
            demands: vec![Demand::NONE; classes],
        })
    }
}

fn note(resource: &mut Resource, class: usize, seconds: f64, visited: u32) {
    let demand = &mut resource.demands[class];
    demand.seconds += seconds;
    demand.copies_visited = demand.copies_visited.max(visited);
}

/// What has no product form.
impl Collector<'_> {
    fn deviation(&mut self, part: String, what: &str) {
        self.deviations.insert(Deviation { part, what: what.to_owned() });
    }

    fn note_class(&mut self, class: &Class) {
        let part = || format!("class {}", class.name);
        match &class.arrivals {
            Arrivals::Open { between: Spread::Exponential(_), burst: 1 } | Arrivals::Closed { .. } => {}
            Arrivals::Open { .. } => self.deviation(part(), "its cycles do not arrive by Poisson's law"),
            Arrivals::Trace(_) => self.deviation(
                part(),
                "its cycles arrive by a trace; the model takes their mean rate, and the bounds take no rate",
            ),
        }
        if class.priority.is_some() {
            self.deviation(part(), "its calls have a priority; the model serves in order of arrival");
        }
        if class.cache.is_some() {
            self.deviation(
                part(),
                "it caches; updates and what writes wait for are left out, and the part of its reads that hit is that of the objects that fit",
            );
        }
        let forks = |cycle: &Cycle| match cycle {
            Cycle::Job { architecture, parts, .. } => {
                *architecture != Architecture::Sequential && parts.len() > 1
            }
            Cycle::Calls(_) => false,
        };
        if class.mix.iter().any(|it| forks(&it.cycle)) {
            self.deviation(
                part(),
                "its jobs fork and join; mean value analysis takes their parts one after the other",
            );
        }
    }

    fn note_links(&mut self) {
        let scenario = self.scenario;
        let named = |(from, to): (usize, usize)| {
            format!("link {} - {}", scenario.hosts[from].name, scenario.hosts[to].name)
        };
        let rules =
            scenario.links.iter().map(|rule| (named(rule.between), &rule.link, !rule.outages.is_empty()));
        let all = rules.chain([("links without a rule".to_owned(), &scenario.default_link, false)]);
        for (part, link, has_outages) in all {
            if has_outages {
                self.deviation(part.clone(), "it has outages; what they hold up or lose is left out");
            }
            if link.loss > 0.0 || link.reorder > 0.0 {
                self.deviation(
                    part,
                    "it loses packets or has them overtaken; the time until they are there is left out",
                );
            }
        }
    }

    fn note_servers(&mut self) {
        let used: BTreeSet<usize> = self
            .resources
            .keys()
            .filter(|(kind, ..)| *kind == ResourceKind::Threads)
            .map(|key| key.1)
            .collect();
        for (index, server) in self.scenario.servers.iter().enumerate() {
            let name = &server.name;
            if used.contains(&index) {
                self.deviation(
                    format!("threads of {name}"),
                    "a request holds one while it queues for processors and waits for other servers; the model leaves that out",
                );
            }
            if server.lock != ServerLock::None {
                self.deviation(
                    format!("locks of {name}"),
                    "a request holds one while it queues for others; the model leaves that out",
                );
            }
            for operation in &server.operations {
                let varies = matches!(operation.demand, Spread::Exponential(_));
                if operation.sleeps && !varies && (server.threads.is_some() || !server.lanes.is_empty()) {
                    self.deviation(format!("servants of {name}"), "their times are not exponential");
                }
                if operation.is_oneway {
                    self.deviation(
                        format!("{} of {name}", operation.name),
                        "it is oneway: the caller goes on meanwhile",
                    );
                }
            }
        }
        if !self.scenario.dwell.pauses.is_empty() {
            self.deviation(
                "dwell".to_owned(),
                "work takes longer after pauses of threads and processors; the model leaves that out",
            );
        }
        for rule in &self.scenario.links {
            if rule.link.reorder > 0.0 {
                self.deviation(
                    "links".to_owned(),
                    "packets that overtake others hold back a stream; the model leaves that out",
                );
            }
        }
    }
}

fn over(target: Target) -> Over {
    match target {
        Target::Random | Target::Robin => Over::Any,
        Target::Object(_) => Over::First,
    }
}

/// Servers of a station that has one for each customer.
pub(crate) const UNBOUNDED: u32 = u32::MAX;
