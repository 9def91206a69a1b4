//! What a cycle of each class takes of each resource, when nothing waits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::fork_join::{self, Part, mean};
use super::network::{Demand, Load};
use crate::scenario::{
    Architecture, Arrivals, Call, Choice, Class, Cycle, Link, Operation, OperationKind, Scenario, ServerLock,
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
    };
    collector.find_split_groups();
    let mut classes = Vec::new();
    for (index, class) in scenario.classes.iter().enumerate() {
        collector.class = index;
        classes.push(collector.class(class)?);
    }
    collector.note_servers();
    let resources = collector
        .resources
        .into_iter()
        .filter(|(_, resource)| resource.demands.iter().any(|demand| demand.seconds > 0.0))
        .map(|(_, resource)| resource)
        .collect();
    Ok(Demands { resources, classes, deviations: collector.deviations.into_iter().collect() })
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    }

    fn class(&mut self, class: &Class) -> Result<ClassDemands, Recursion> {
        self.totals = Totals::default();
        self.note_class(class);
        let home = Place { group: class.hosts, over: Over::Own };
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
            Arrivals::Trace(times) => {
                let last = times.last().map_or(0.0, |time| time.as_secs_f64());
                Load::Open { rate: if last > 0.0 { times.len() as f64 / last } else { 0.0 } }
            }
        };
        let Totals { calls, messages, octets } = self.totals;
        let name = class.name.clone();
        let least = if shortest.is_finite() { shortest } else { 0.0 };
        Ok(ClassDemands { name, load, alone, least, calls, messages, octets, forks })
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
        let scenario = self.scenario;
        let operation = self.operation(call);
        let server = &scenario.servers[call.server];
        let key = (call.server, call.operation);
        if self.stack.contains(&key) {
            return Err(Recursion { operation: format!("{} of {}", operation.name, server.name) });
        }
        self.stack.push(key);
        let there = Place { group: server.hosts, over: over(call.target) };
        let speed = scenario.hosts[there.group].speed;
        let (request, reply) = octets(operation);
        let there_and = self.message(from, there, request, often);
        let read = self.read_request(there, operation.request_octets, often);
        let executed = Length::of(&scenario.dwell.execute, speed);
        self.processors(there, executed.mean * often);
        let servant_speed = if operation.sleeps { 1.0 } else { speed };
        let servant = mean(&operation.demand) / servant_speed;
        if !operation.sleeps {
            self.processors(there, servant * often);
        }
        let mut nested = Length::default();
        for inner in &operation.calls {
            let times = f64::from(inner.times);
            nested = nested.then(self.call(there, inner, often * times, priority)?.whole().times(times));
        }
        let mut written = Length::default();
        let mut back = Length::default();
        if !operation.is_oneway {
            written = self.write(there, operation.reply_octets, &scenario.dwell.write_reply, often);
            back = self.message(there, from, reply, often);
        }
        self.stack.pop();
        let in_thread = read.then(executed).then(nested).then(written).mean + servant;
        self.hold(
            call.server,
            there.over,
            priority,
            operation,
            in_thread,
            executed.mean + nested.mean + servant,
            often,
        );
        self.totals.calls += often;
        let asked = self.find_and_write(from, operation.request_octets, often);
        if operation.is_oneway {
            return Ok(CallLength { around: asked, servant: None });
        }
        let answered = self.read_reply(from, operation.reply_octets, often);
        let around = [there_and, read, executed, nested, written, back, answered]
            .into_iter()
            .fold(asked, Length::then);
        Ok(CallLength { around, servant: Some((operation.demand.clone(), servant_speed)) })
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
        let daemon = Place { group: self.scenario.servers[job.daemon].hosts, over: Over::Any };
        match architecture {
            Architecture::Sequential => {
                let mut whole = Length::default();
                for part in parts {
                    whole = whole
                        .then(self.short_call(job.home, job.daemon, daemon, job))
                        .then(self.verified(job, part)?.0);
                }
                Ok((whole, None))
            }
            Architecture::HandleDriven => {
                let around = self.short_call(job.home, job.daemon, daemon, job);
                let parts = parts.iter().map(|part| self.verified(job, part)).collect::<Result<_, _>>()?;
                Ok(forked(around, parts))
            }
            Architecture::Synchronous => {
                let dwell = &self.scenario.dwell;
                let asked = self.find_and_write(job.home, JOB_OCTETS, job.weight);
                let there = self.message(job.home, daemon, SHORT_OCTETS + u64::from(JOB_OCTETS), job.weight);
                let read = self.read_request(daemon, JOB_OCTETS, job.weight);
                let mut joined = Vec::new();
                for part in parts {
                    joined.push(self.part(daemon, part, job)?);
                }
                let written = self.write(daemon, JOB_OCTETS, &dwell.write_reply, job.weight);
                let back = self.message(daemon, job.home, SHORT_OCTETS + u64::from(JOB_OCTETS), job.weight);
                let answered = self.read_reply(job.home, JOB_OCTETS, job.weight);
                self.totals.calls += job.weight;
                let around = [there, read, written, back, answered].into_iter().fold(asked, Length::then);
                let longest = joined.iter().map(|(length, _)| length.mean).fold(0.0, f64::max);
                self.threads(
                    job.daemon,
                    daemon.over,
                    job.class.priority,
                    (read.mean + written.mean + longest) * job.weight,
                );
                Ok(forked(around, joined))
            }
            Architecture::Forwarding => self.forwarded(job, daemon, parts),
        }
    }

    /// A job that the daemon forwards, and whose parts' servers call the client back.
    fn forwarded(
        &mut self,
        job: &Job<'_>,
        daemon: Place,
        parts: &[Call],
    ) -> Result<(Length, Option<Fork>), Recursion> {
        let asked = self.find_and_write(job.home, JOB_OCTETS, job.weight);
        let there = self.message(job.home, daemon, SHORT_OCTETS + u64::from(JOB_OCTETS), job.weight);
        let read = self.read_request(daemon, JOB_OCTETS, job.weight);
        self.totals.calls += job.weight;
        let mut in_daemon = read;
        let mut joined = Vec::new();
        for part in parts {
            let operation = self.operation(part);
            let server = Place { group: self.scenario.servers[part.server].hosts, over: over(part.target) };
            let speed = self.scenario.hosts[server.group].speed;
            let often = job.weight * f64::from(part.times);
            let sent = self.find_and_write(daemon, operation.request_octets, often);
            let forwarded = self.message(daemon, server, octets(operation).0, often);
            let taken = self.read_request(server, operation.request_octets, often);
            let executed = Length::of(&self.scenario.dwell.execute, speed);
            self.processors(server, executed.mean * often);
            let servant_speed = if operation.sleeps { 1.0 } else { speed };
            let servant = mean(&operation.demand) / servant_speed;
            if !operation.sleeps {
                self.processors(server, servant * often);
            }
            let verified = self.bare_call(server, job.home, 0, often);
            let called_back = self.bare_call(server, job.home, operation.reply_octets, often);
            self.totals.calls += often;
            let in_thread =
                [taken, executed, verified, called_back].into_iter().fold(Length::default(), Length::then);
            let locked = executed.mean + servant;
            let held = in_thread.mean + servant;
            self.hold(part.server, server.over, job.class.priority, operation, held, locked, often);
            in_daemon = in_daemon.then(sent.times(f64::from(part.times)));
            let around = [sent, forwarded, in_thread].into_iter().fold(Length::default(), Length::then);
            joined.push(of_times(
                CallLength { around, servant: Some((operation.demand.clone(), servant_speed)) },
                part.times,
            ));
        }
        self.threads(job.daemon, daemon.over, job.class.priority, in_daemon.mean * job.weight);
        let around = [asked, there, read].into_iter().fold(Length::default(), Length::then);
        Ok(forked(around, joined))
    }

    /// A part whose handle the client verifies before it calls.
    fn verified(&mut self, job: &Job<'_>, part: &Call) -> Result<(Length, Part), Recursion> {
        let server = Place { group: self.scenario.servers[part.server].hosts, over: over(part.target) };
        let mut verified = Length::default();
        for _ in 0..part.times {
            verified = verified.then(self.short_call(job.home, part.server, server, job));
        }
        let (length, called) = self.part(job.home, part, job)?;
        Ok((verified.then(length), Part { fixed: called.fixed + verified.mean, ..called }))
    }

    fn part(&mut self, from: Place, part: &Call, job: &Job<'_>) -> Result<(Length, Part), Recursion> {
        let often = job.weight * f64::from(part.times);
        Ok(of_times(self.call(from, part, often, job.class.priority)?, part.times))
    }

    /// A call without a body that a thread of the server answers at once.
    fn short_call(&mut self, from: Place, server: usize, there: Place, job: &Job<'_>) -> Length {
        let speed = self.scenario.hosts[there.group].speed;
        let dwell = &self.scenario.dwell;
        let held = [&dwell.thread_switch, &dwell.read_request, &dwell.find_object, &dwell.write_reply];
        let held: f64 = held.into_iter().map(mean).sum::<f64>() / speed;
        self.threads(server, there.over, job.class.priority, held * job.weight);
        self.bare_call(from, there, 0, job.weight)
    }

    /// A call, whoever answers it.
    fn bare_call(&mut self, from: Place, there: Place, body: u32, often: f64) -> Length {
        let request = SHORT_OCTETS + u64::from(body);
        let steps = [
            self.find_and_write(from, body, often),
            self.message(from, there, request, often),
            self.read_request(there, body, often),
            self.write(there, 0, &self.scenario.dwell.write_reply, often),
            self.message(there, from, SHORT_OCTETS, often),
            self.read_reply(from, 0, often),
        ];
        self.totals.calls += often;
        steps.into_iter().fold(Length::default(), Length::then)
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
        let seconds = self.scenario.dwell.per_octet.as_secs_f64() * f64::from(body);
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
        let link = self.link(from.group, to.group);
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

    fn link(&self, one: usize, other: usize) -> Link {
        let joins = |between: (usize, usize)| between == (one, other) || between == (other, one);
        let rule = self.scenario.links.iter().find(|rule| joins(rule.between));
        rule.map_or(self.scenario.default_link, |rule| rule.link)
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
        in_thread: f64,
        locked: f64,
        often: f64,
    ) {
        self.threads(server, over, priority, in_thread * often);
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
            Some(of_lane) => format!("threads of {} from {}", it.name, of_lane.priority),
            None => format!("threads of {}", it.name),
        };
        self.add((ResourceKind::Threads, server, lane), &name, it.hosts, over, threads, seconds);
    }

    /// The lane that serves a priority, and its threads; `None` if each connection has a thread.
    fn pool(&self, server: usize, priority: Option<i16>) -> Option<(usize, u32)> {
        let server = &self.scenario.servers[server];
        if server.lanes.is_empty() {
            return server.threads.map(|threads| (0, threads));
        }
        let priority = priority.unwrap_or(0);
        let lane = server.lanes.iter().rposition(|lane| lane.priority <= priority).unwrap_or(0);
        Some((lane, server.lanes[lane].threads))
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
            Arrivals::Trace(_) => {
                self.deviation(part(), "its cycles arrive by a trace; the model takes their mean rate")
            }
        }
        if class.priority.is_some() {
            self.deviation(part(), "its calls have a priority; the model serves in order of arrival");
        }
        if class.cache.is_some() {
            self.deviation(
                part(),
                "it caches; updates and what writes wait for are left out, and what fits is always there",
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

/// Octets of an operation's messages on a connection that has been used before.
pub(crate) fn octets(operation: &Operation) -> (u64, u64) {
    let request = SHORT_OCTETS + operation.name.len() as u64 + u64::from(operation.request_octets);
    let reply = if operation.is_oneway { 0 } else { 24 + u64::from(operation.reply_octets) };
    (request, reply)
}

/// Servers of a station that has one for each customer.
pub(crate) const UNBOUNDED: u32 = u32::MAX;
/// A message without a body.
pub(crate) const SHORT_OCTETS: u64 = 64;
/// The body of a job's request, and of its results, beside those of its parts.
pub(crate) const JOB_OCTETS: u32 = 64;
