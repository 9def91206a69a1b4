//! The workload that a recording is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::hosts::Hosts;
use super::recording::{Call as Recorded, Client, Recording, ServedBy, Service};
use crate::Time;
use crate::scenario::{
    Arrivals, Call, Choice, Class, Cycle, DEFAULT_LINK, DwellTimes, Link, LinkRule, Operation, OperationKind,
    Replications, Scenario, Server, ServerLock, Spread, Target, WarmUp, Weighted,
};

/// What a scenario is to take from a recording.
#[derive(Debug, Clone)]
pub struct WorkloadOptions {
    /// The scenario's name.
    pub name: String,
    /// The seed of its first run.
    pub seed: u64,
    /// When calls begin.
    pub arrivals: ArrivalsOf,
    /// Sizes and nested calls of one operation that are kept apart, each exactly. An operation with more of them gets their
    /// means. 1 to 10,000.
    pub variants_max: usize,
    /// Samples of a distribution that are kept, evenly by their rank.
    pub samples_max: usize,
    /// What each step of a call takes, if it has been measured. Otherwise wake-ups of threads and latencies of links have what
    /// calls took beside their services, and other steps take no time.
    pub dwell: Option<DwellTimes>,
}

impl Default for WorkloadOptions {
    fn default() -> Self {
        WorkloadOptions {
            name: "recorded".to_owned(),
            seed: 1,
            arrivals: ArrivalsOf::Trace,
            variants_max: 64,
            samples_max: 2_000,
            dwell: None,
        }
    }
}

/// When the calls of a workload begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalsOf {
    /// When they began in the recording, whatever becomes of them now. Each operation of a client is a class of its own, so that
    /// there are exactly as many calls as were recorded.
    Trace,
    /// After the thinking time of their thread, which waits for its calls: a class for each client. Clients of which nothing
    /// is recorded have a trace.
    Closed,
    /// With times in between as in the recording, in any order: a class for each operation of a client.
    Open,
}

/// A scenario, and what it does not take from the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The scenario.
    pub scenario: Scenario,
    /// What to know before its results are trusted.
    pub notes: Vec<String>,
}

/// The workload that a recording is: its programs as servers, the calls that no upcall made as classes, those of upcalls as
/// nested ones, and services as samples of demands.
pub fn workload(recording: &Recording, options: &WorkloadOptions) -> Workload {
    let calls: Vec<&Recorded> = recording.calls.iter().collect();
    let mut notes = recording.notes.clone();
    let hosts = Hosts::of(recording, &mut notes);
    let servers = Servers::of(recording, &hosts);
    let children = children_of(&calls);
    let variants = Variants::of(&calls, &servers, &children, options, &mut notes, recording);
    let begin = calls.iter().map(|call| call.begin).min().unwrap_or(Time::ZERO);
    let end = calls.iter().map(|call| call.end()).max().unwrap_or(Time::ZERO);
    let mut objects: Vec<HashMap<u64, u64>> = vec![HashMap::new(); servers.keys.len()];
    for call in &calls {
        let objects = &mut objects[servers.index(call)];
        let next = objects.len() as u64;
        objects.entry(call.object).or_insert(next);
    }
    let (hosts, servers, variants) = (&hosts, &servers, &variants);
    let are_crowded = are_crowded(&calls, &children, servers, hosts);
    let context = Context { recording, options, hosts, servers, variants, objects, are_crowded, begin };
    let classes = context.classes(&calls, &mut notes);
    let (dwell, links) = context.ways(&calls);
    let scenario = Scenario {
        name: options.name.clone(),
        seed: options.seed,
        span: (end - begin + context.time_to_end(&calls)).max(Duration::from_nanos(1)),
        warm_up: WarmUp::Fixed(Duration::ZERO),
        replications: Replications { min: 3, max: 30, half_width: 0.05, confidence: 0.95 },
        hosts: hosts.groups.clone(),
        default_link: DEFAULT_LINK,
        links,
        servers: context.servers(&calls, &children, &mut notes),
        classes,
        dwell,
    };
    notes.push("locks of servants are not recorded: the servers have none".to_owned());
    Workload { scenario, notes }
}

/// The servers of a scenario: programs, or addresses.
struct Servers {
    keys: Vec<ServedBy>,
    names: Vec<String>,
    hosts: Vec<usize>,
}

impl Servers {
    fn of(recording: &Recording, hosts: &Hosts) -> Servers {
        let keys: BTreeSet<ServedBy> = recording.calls.iter().map(|call| call.server).collect();
        let mut servers = Servers { keys: Vec::new(), names: Vec::new(), hosts: Vec::new() };
        let mut names = Distinct::default();
        for key in keys {
            servers.keys.push(key);
            servers.names.push(names.make(recording.server_name(key)));
            servers.hosts.push(match key {
                ServedBy::Section(section) => hosts.by_section[section],
                ServedBy::Address(address) => hosts.by_address[address],
            });
        }
        servers
    }

    fn index(&self, call: &Recorded) -> usize {
        self.keys.binary_search(&call.server).unwrap_or(0)
    }
}

/// Octets of a name in a scenario, with room for a number behind it.
const NAME_OCTETS_MAX: usize = 180;

/// The name as scenarios may have it: a point stands between a server's name and an operation's.
pub(super) fn plain(name: &str) -> String {
    let allowed = name.chars().map(|char| if char == '.' || char.is_control() { '-' } else { char });
    let mut plain = String::new();
    for char in allowed {
        if plain.len() + char.len_utf8() > NAME_OCTETS_MAX {
            break;
        }
        plain.push(char);
    }
    if plain.is_empty() { "-".to_owned() } else { plain }
}

/// Makes names that differ.
#[derive(Default)]
struct Distinct(HashSet<String>);

impl Distinct {
    fn make(&mut self, name: &str) -> String {
        let name = plain(name);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

/// The calls that each call's upcall made, by their begins.
fn children_of(calls: &[&Recorded]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); calls.len()];
    for (index, call) in calls.iter().enumerate() {
        if let Some(parent) = call.parent {
            children[parent].push(index);
        }
    }
    children
}

/// The operations of the scenario: each has one size and one list of nested calls.
struct Variants {
    /// By server and, within it, by index of the operation.
    of_server: Vec<Vec<Variant>>,
    /// For each call, the index among those of its server.
    of_call: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Variant {
    operation: usize,
    request_octets: u32,
    reply_octets: u32,
    nested: Vec<Nested>,
    calls: Vec<usize>,
}

/// Nested calls one after the other: server, operation there, how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Nested {
    server: usize,
    variant: usize,
    times: u32,
}

/// What makes an operation one of its own.
type VariantKey = (usize, usize, Option<(u32, u32, Vec<Nested>)>);

impl Variants {
    fn of(
        calls: &[&Recorded],
        servers: &Servers,
        children: &[Vec<usize>],
        options: &WorkloadOptions,
        notes: &mut Vec<String>,
        recording: &Recording,
    ) -> Variants {
        // Operations with too many variants, which have one of means.
        let mut averaged: HashSet<(usize, usize)> = HashSet::new();
        let order = innermost_first(calls, children);
        loop {
            let mut found = Variants::divide(calls, servers, children, &order, &averaged);
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for (server, variants) in found.of_server.iter().enumerate() {
                for variant in variants {
                    *counts.entry((server, variant.operation)).or_default() += 1;
                }
            }
            let before = averaged.len();
            let max = options.variants_max.max(1);
            averaged
                .extend(counts.iter().filter(|(_, count)| **count > max).map(|(operation, _)| *operation));
            if averaged.len() == before {
                found.average(calls, servers, children, &averaged);
                if found.break_circles() {
                    notes.push(
                        "calls of operations with means that lead back to them are left out".to_owned(),
                    );
                }
                for (server, operation) in averaged.iter().collect::<BTreeSet<_>>() {
                    notes.push(format!(
                        "{}: `{}` has more than {max} sizes or lists of nested calls: their means are taken",
                        servers.names[*server], recording.operations[*operation].name
                    ));
                }
                return found;
            }
        }
    }

    fn divide(
        calls: &[&Recorded],
        servers: &Servers,
        children: &[Vec<usize>],
        order: &[usize],
        averaged: &HashSet<(usize, usize)>,
    ) -> Variants {
        let mut variants =
            Variants { of_server: vec![Vec::new(); servers.keys.len()], of_call: vec![0; calls.len()] };
        let mut known: HashMap<VariantKey, usize> = HashMap::new();
        for &index in order {
            let call = calls[index];
            let server = servers.index(call);
            let (request_octets, reply_octets) = (octets(call.request_octets), octets(call.reply_octets));
            let nested = variants.in_turn(calls, servers, &children[index]);
            let exact = (!averaged.contains(&(server, call.operation)))
                .then(|| (request_octets, reply_octets, nested.clone()));
            let of_server = &mut variants.of_server[server];
            let variant = *known.entry((server, call.operation, exact)).or_insert_with(|| {
                let (operation, calls) = (call.operation, Vec::new());
                of_server.push(Variant { operation, request_octets, reply_octets, nested, calls });
                of_server.len() - 1
            });
            of_server[variant].calls.push(index);
            variants.of_call[index] = variant;
        }
        variants
    }

    /// Nested calls in their order; equal ones that follow one another are counted.
    fn in_turn(&self, calls: &[&Recorded], servers: &Servers, children: &[usize]) -> Vec<Nested> {
        let mut nested: Vec<Nested> = Vec::new();
        for &child in children {
            let (server, variant) = (servers.index(calls[child]), self.of_call[child]);
            match nested.last_mut() {
                Some(last) if (last.server, last.variant) == (server, variant) => last.times += 1,
                _ => nested.push(Nested { server, variant, times: 1 }),
            }
        }
        nested
    }

    /// Gives operations that are averaged the means of their calls.
    fn average(
        &mut self,
        calls: &[&Recorded],
        servers: &Servers,
        children: &[Vec<usize>],
        averaged: &HashSet<(usize, usize)>,
    ) {
        for server in 0..self.of_server.len() {
            for variant in 0..self.of_server[server].len() {
                let it = &self.of_server[server][variant];
                if !averaged.contains(&(server, it.operation)) {
                    continue;
                }
                let mean = |of: fn(&Recorded) -> u64| {
                    let sum: u128 = it.calls.iter().map(|call| u128::from(of(calls[*call]))).sum();
                    rounded(sum, it.calls.len())
                };
                let (request_octets, reply_octets) =
                    (mean(|it| it.request_octets), mean(|it| it.reply_octets));
                let mut counts: BTreeMap<(usize, usize), u128> = BTreeMap::new();
                for child in it.calls.iter().flat_map(|call| &children[*call]) {
                    *counts.entry((servers.index(calls[*child]), self.of_call[*child])).or_default() += 1;
                }
                let nested = counts.into_iter().map(|((server, variant), count)| Nested {
                    server,
                    variant,
                    times: rounded(count, it.calls.len()),
                });
                let nested = nested.filter(|nested| nested.times > 0).collect();
                let it = &mut self.of_server[server][variant];
                (it.request_octets, it.reply_octets, it.nested) = (request_octets, reply_octets, nested);
            }
        }
    }
}

impl Variants {
    /// Leaves out nested calls that lead back to the operation that makes them: they would never end. Operations that are kept
    /// apart have none, because each is of calls that have ended. True if there were any.
    fn break_circles(&mut self) -> bool {
        let mut done: HashSet<(usize, usize)> = HashSet::new();
        let mut has_circles = false;
        for server in 0..self.of_server.len() {
            for variant in 0..self.of_server[server].len() {
                // What is on the way, each with the number of its nested calls that have been followed.
                let mut way = vec![((server, variant), 0)];
                while let Some(((server, variant), followed)) = way.last_mut() {
                    let at = (*server, *variant);
                    let nested = &mut self.of_server[at.0][at.1].nested;
                    let Some(next) = nested.get(*followed).map(|next| (next.server, next.variant)) else {
                        done.insert(at);
                        way.pop();
                        continue;
                    };
                    if way.iter().any(|(on_the_way, _)| *on_the_way == next) {
                        if let Some((_, followed)) = way.last() {
                            self.of_server[at.0][at.1].nested.remove(*followed);
                        }
                        has_circles = true;
                        continue;
                    }
                    if let Some((_, followed)) = way.last_mut() {
                        *followed += 1;
                    }
                    if !done.contains(&next) {
                        way.push((next, 0));
                    }
                }
            }
        }
        has_circles
    }
}

/// The mean, rounded to the next whole number.
fn rounded(sum: u128, count: usize) -> u32 {
    let count = count.max(1) as u128;
    u32::try_from((sum + count / 2) / count).unwrap_or(u32::MAX)
}

/// As many as a scenario may have: a GiB.
fn octets(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX).min(1 << 30)
}

/// Calls in an order in which each comes after those that its upcall made.
fn innermost_first(calls: &[&Recorded], children: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(calls.len());
    let roots = (0..calls.len()).filter(|index| calls[*index].parent.is_none());
    let mut open: Vec<(usize, bool)> = roots.map(|root| (root, false)).collect();
    open.reverse();
    while let Some((index, is_done)) = open.pop() {
        if is_done {
            order.push(index);
            continue;
        }
        open.push((index, true));
        open.extend(children[index].iter().rev().map(|child| (*child, false)));
    }
    order
}

/// What the parts of a scenario are made of.
struct Context<'r> {
    recording: &'r Recording,
    options: &'r WorkloadOptions,
    hosts: &'r Hosts,
    servers: &'r Servers,
    variants: &'r Variants,
    /// By server, the objects' numbers: in the order in which they were called first.
    objects: Vec<HashMap<u64, u64>>,
    /// By call, whether its servant may have waited for a processor.
    are_crowded: Vec<bool>,
    /// When the first call began.
    begin: Time,
}

impl Context<'_> {
    /// How much longer a replay is observed than the recording was. The last calls of a trace may take longer than they did: they
    /// have four times as long as the longest one took.
    fn time_to_end(&self, calls: &[&Recorded]) -> Duration {
        match self.options.arrivals {
            ArrivalsOf::Trace => {
                calls.iter().map(|call| call.end() - call.begin).max().unwrap_or_default() * 4
            }
            ArrivalsOf::Closed | ArrivalsOf::Open => Duration::ZERO,
        }
    }

    fn servers(&self, calls: &[&Recorded], children: &[Vec<usize>], notes: &mut Vec<String>) -> Vec<Server> {
        let mut overlapping = 0;
        let mut servers = Vec::new();
        for (index, key) in self.servers.keys.iter().enumerate() {
            let served = calls.iter().filter(|call| call.server == *key);
            let threads: HashSet<_> =
                served.clone().filter_map(|call| call.service.as_ref()).map(|it| it.thread).collect();
            let mut operations: Vec<Operation> = Vec::new();
            for variant in &self.variants.of_server[index] {
                let mut operation = self.operation(variant, calls, children, &mut overlapping);
                let equal = operations.iter().filter(|other| other.wire_name() == operation.name).count();
                if equal > 0 {
                    operation.name = format!("{}#{}", operation.name, equal + 1);
                }
                operations.push(operation);
            }
            let unknown = served.clone().filter(|call| call.service.is_none()).count();
            if unknown > 0 {
                notes.push(format!(
                    "{}: {unknown} of {} calls have no record of their server: their whole time counts as its own",
                    self.servers.names[index],
                    served.count()
                ));
            }
            servers.push(Server {
                name: self.servers.names[index].clone(),
                hosts: self.servers.hosts[index],
                threads: u32::try_from(threads.len()).ok().filter(|threads| *threads > 0),
                lanes: Vec::new(),
                objects: self.objects[index].len() as u64,
                object_octets: 0,
                lock: ServerLock::None,
                operations,
            });
        }
        if overlapping > 0 {
            notes.push(format!(
                "{overlapping} nested calls ran beside others of their upcall: they follow one another"
            ));
        }
        servers
    }

    fn operation(
        &self,
        variant: &Variant,
        calls: &[&Recorded],
        children: &[Vec<usize>],
        overlapping: &mut usize,
    ) -> Operation {
        let name = &self.recording.operations[variant.operation];
        let mut all = Vec::new();
        // Servants that may have waited for a processor tell little of whether they sleep, if others of the operation tell it.
        let is_told = variant.calls.iter().any(|call| !self.are_crowded[*call]);
        let (mut own, mut on_processor) = (Duration::ZERO, Some(Duration::ZERO));
        for &index in &variant.calls {
            let nested: Vec<&Recorded> = children[index].iter().map(|child| calls[*child]).collect();
            let demand = Demand::of(calls[index], &nested);
            *overlapping += demand.overlapping;
            let is_crowded = self.are_crowded[index];
            if !(is_told && is_crowded) {
                own += demand.own;
                on_processor = on_processor.zip(demand.processor).map(|(sum, more)| sum + more);
            }
            all.push((demand, is_crowded));
        }
        // A servant that waits for something else than a processor occupies none.
        let sleeps = on_processor.is_none_or(|on_processor| on_processor * 2 < own);
        let demands = all.into_iter().map(|(Demand { own, processor, .. }, is_crowded)| match processor {
            // The scenario has others to wait for.
            Some(processor) if is_crowded && !sleeps => own.min(processor),
            _ => own,
        });
        let demands = demands.collect();
        let kind = match name.name.split_at_checked(5) {
            _ if name.is_oneway => OperationKind::Plain,
            Some(("_get_", _)) => OperationKind::Read,
            Some(("_set_", _)) => OperationKind::Write,
            _ => OperationKind::Plain,
        };
        Operation {
            name: plain(&name.name).replace('#', "-"),
            kind,
            request_octets: variant.request_octets,
            reply_octets: if name.is_oneway { 0 } else { variant.reply_octets },
            is_oneway: name.is_oneway,
            demand: self.spread(demands),
            sleeps,
            calls: variant.nested.iter().map(|it| self.call(it.server, it.variant, it.times)).collect(),
        }
    }

    fn call(&self, server: usize, variant: usize, times: u32) -> Call {
        let calls = &self.variants.of_server[server][variant].calls;
        let objects: HashSet<u64> =
            calls.iter().map(|call| self.recording.calls[*call].object).take(1_000).collect();
        let target = match objects.len() {
            0 | 1 => {
                let number = objects.iter().next().and_then(|object| self.objects[server].get(object));
                Target::Object(number.copied().unwrap_or(0))
            }
            _ => Target::Random,
        };
        Call { server, operation: variant, times, target }
    }

    fn classes(&self, calls: &[&Recorded], notes: &mut Vec<String>) -> Vec<Class> {
        let mut names = Distinct::default();
        let mut classes = Vec::new();
        let roots: Vec<usize> = (0..calls.len()).filter(|index| calls[*index].parent.is_none()).collect();
        let (closed, others): (Vec<usize>, Vec<usize>) = roots
            .into_iter()
            .partition(|index| self.options.arrivals == ArrivalsOf::Closed && calls[*index].client.is_some());
        let mut clients: BTreeMap<usize, BTreeMap<Client, Vec<usize>>> = BTreeMap::new();
        for index in closed {
            if let Some(client) = calls[index].client {
                clients.entry(client.section).or_default().entry(client).or_default().push(index);
            }
        }
        for (section, threads) in clients {
            let name = names.make(&self.recording.sections[section].name);
            classes.push(self.closed(name, self.hosts.by_section[section], &threads, calls, notes));
        }
        let mut groups: BTreeMap<(Option<usize>, usize, usize), Vec<usize>> = BTreeMap::new();
        for index in others {
            let section = calls[index].client.map(|client| client.section);
            let (server, variant) = (self.servers.index(calls[index]), self.variants.of_call[index]);
            groups.entry((section, server, variant)).or_default().push(index);
        }
        for ((section, server, variant), group) in groups {
            let program = section.map_or("clients", |section| &self.recording.sections[section].name);
            let operation = self.variants.of_server[server][variant].operation;
            let name = format!("{program}: {}", self.recording.operations[operation].name);
            classes.push(Class {
                name: names.make(&name),
                hosts: self.hosts.of_client(calls[group[0]]),
                arrivals: self.arrivals(&group, calls),
                mix: vec![self.single(server, variant, 1.0)],
                choice: Choice::Random,
                priority: None,
                cache: None,
            });
        }
        classes
    }

    fn arrivals(&self, group: &[usize], calls: &[&Recorded]) -> Arrivals {
        let begins = group.iter().map(|index| calls[*index].begin - self.begin);
        let begins: Vec<Duration> = begins.collect();
        let between: Vec<Duration> = begins.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        match self.options.arrivals {
            ArrivalsOf::Open if !between.is_empty() => {
                Arrivals::Open { between: self.spread(between), burst: 1 }
            }
            ArrivalsOf::Open | ArrivalsOf::Trace | ArrivalsOf::Closed => Arrivals::Trace(begins),
        }
    }

    fn closed(
        &self,
        name: String,
        hosts: usize,
        threads: &BTreeMap<Client, Vec<usize>>,
        calls: &[&Recorded],
        notes: &mut Vec<String>,
    ) -> Class {
        let mut thinks = Vec::new();
        let mut weights: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut overlapping = 0;
        for group in threads.values() {
            for pair in group.windows(2) {
                let (end, next) = (calls[pair[0]].end(), calls[pair[1]].begin);
                overlapping += usize::from(next < end);
                thinks.push(next - end);
            }
            for index in group {
                let key = (self.servers.index(calls[*index]), self.variants.of_call[*index]);
                *weights.entry(key).or_default() += 1.0;
            }
        }
        if overlapping > 0 {
            notes.push(format!(
                "{name}: {overlapping} calls began before the one before had ended: they follow it"
            ));
        }
        let think = if thinks.is_empty() { Spread::Fixed(Duration::ZERO) } else { self.spread(thinks) };
        let mix = weights.into_iter().map(|((server, variant), weight)| self.single(server, variant, weight));
        let clients = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        let arrivals = Arrivals::Closed { clients, think };
        Class {
            name,
            hosts,
            arrivals,
            mix: mix.collect(),
            choice: Choice::Random,
            priority: None,
            cache: None,
        }
    }

    fn single(&self, server: usize, variant: usize, weight: f64) -> Weighted {
        Weighted { weight, cycle: Cycle::Calls(vec![self.call(server, variant, 1)]) }
    }

    /// What calls took beside their services, by the groups of the hosts at both ends, the lower one first. Oneways are not
    /// waited for, so nothing is known of them. Waiting for others is no part of it, because the scenario has others to wait for: the
    /// time until a thread of the server was free is taken off, and where enough calls met no other client's, those alone count.
    fn beside_services(&self, calls: &[&Recorded]) -> BTreeMap<(usize, usize), Vec<Duration>> {
        let (waits, are_alone) = (self.waits_for_threads(calls), are_alone(calls));
        let mut beside: BTreeMap<(usize, usize), [Vec<Duration>; 2]> = BTreeMap::new();
        for (index, call) in calls.iter().enumerate() {
            let (Some(time), Some(service)) = (call.time, &call.service) else { continue };
            if !self.recording.operations[call.operation].is_oneway {
                let ends = (self.hosts.of_client(call), self.servers.hosts[self.servers.index(call)]);
                let ends = (ends.0.min(ends.1), ends.0.max(ends.1));
                let took = time.saturating_sub(service.time).saturating_sub(waits[index]);
                beside.entry(ends).or_default()[usize::from(are_alone[index])].push(took);
            }
        }
        let undisturbed = |[others, alone]: [Vec<Duration>; 2]| {
            if others.is_empty() || alone.len() >= ALONE_MIN {
                return alone;
            }
            // The slower half has waited most for processors.
            let mut all = [others, alone].concat();
            all.sort_unstable();
            all.truncate(all.len().div_ceil(2));
            all
        };
        beside.into_iter().map(|(ends, times)| (ends, undisturbed(times))).collect()
    }

    /// How long each call waited until the thread that served it had ended what it served before.
    fn waits_for_threads(&self, calls: &[&Recorded]) -> Vec<Duration> {
        let mut waits = vec![Duration::ZERO; calls.len()];
        for Turn { call, ended, .. } in self.turns(calls) {
            waits[call] = ended - calls[call].begin;
        }
        waits
    }

    /// Calls that were served by threads which had served others before, with the time at which they had ended. Clocks of two
    /// machines tell nothing of it.
    fn turns(&self, calls: &[&Recorded]) -> Vec<Turn> {
        let mut served: Vec<(usize, &Service)> = Vec::new();
        served.extend(
            calls.iter().enumerate().filter_map(|(index, call)| Some((index, call.service.as_ref()?))),
        );
        served.sort_by_key(|(_, service)| service.begin);
        let boot = |section: usize| &self.recording.sections[section].head.boot;
        let mut before: HashMap<(usize, u32), (usize, Time)> = HashMap::new();
        let mut turns = Vec::new();
        for (call, service) in served {
            let thread = (service.section, service.thread);
            let before = before.insert(thread, (call, service.begin + service.time));
            let Some(client) = calls[call].client else { continue };
            let (here, there) = (boot(client.section), boot(service.section));
            if here == there && !here.is_empty() {
                let before = before.filter(|(_, ended)| *ended <= service.begin);
                let turn = |(before, ended)| Turn { call, before, ended, begins: service.begin };
                turns.extend(before.map(turn));
            }
        }
        turns
    }

    /// What a thread does between two services if the next request is there already: it writes a reply and reads a request, and
    /// nobody has to wake it. `None` if too few calls tell it.
    fn turnaround(&self, calls: &[&Recorded]) -> Option<Duration> {
        // A oneway tells nothing of how long it is under way, and nobody replies to it.
        let is_oneway = |call: usize| self.recording.operations[calls[call].operation].is_oneway;
        let mut turns = self.turns(calls);
        turns.retain(|turn| !is_oneway(turn.call) && !is_oneway(turn.before));
        let beside = turns.iter().filter_map(|turn| {
            let call = calls[turn.call];
            let wait = turn.ended - call.begin;
            Some(call.time?.saturating_sub(call.service.as_ref()?.time).saturating_sub(wait))
        });
        // A request comes in about half of it: the whole is on the safe side.
        let under_way = quantile(beside.collect(), 2);
        let waiting = turns.iter().filter(|turn| calls[turn.call].begin + under_way <= turn.ended);
        let gaps: Vec<Duration> = waiting.map(|turn| turn.begins - turn.ended).collect();
        (gaps.len() >= ALONE_MIN).then(|| quantile(gaps, 2))
    }

    /// What calls took beside their services goes to where it is spent. Among programs that share their processors that is mostly the
    /// wake-up of either side's thread: half of it each. Between others of a machine threads do no more for a call than what those do
    /// for whom the next one waits, or than the fastest calls show; what the rest took beyond is the wake-up of processors that were
    /// idle, during which nobody works: the latency of a link.
    /// Calls between machines have these wake-ups too, and links have the rest, half each way.
    fn ways(&self, calls: &[&Recorded]) -> (DwellTimes, Vec<LinkRule>) {
        if let Some(dwell) = &self.options.dwell {
            return (dwell.clone(), Vec::new());
        }
        let beside = self.beside_services(calls);
        let both_turn = self.turnaround(calls).map_or(Duration::MAX, |turnaround| 2 * turnaround);
        let (mut each, mut latencies) = (Vec::new(), Vec::new());
        for (ends, times) in beside.iter().filter(|(ends, _)| self.hosts.is_within(**ends)) {
            let work_max = if ends.0 == ends.1 { Duration::MAX } else { tenth(times).min(both_turn) };
            let work: Vec<Duration> = times.iter().map(|time| *time.min(&work_max)).collect();
            latencies.push((*ends, mean(times).saturating_sub(mean(&work)) / 2));
            each.extend(work.into_iter().map(|time| time / 2));
        }
        let (wake_up, thread_switch) = (mean(&each), self.spread(each));
        let dwell = DwellTimes { thread_switch, ..DwellTimes::default() };
        latencies.retain(|(_, latency)| !latency.is_zero());
        let between = beside.iter().filter(|(ends, _)| !self.hosts.is_within(**ends));
        latencies.extend(between.map(|(ends, times)| (*ends, (mean(times) / 2).saturating_sub(wake_up))));
        let rule = |(between, latency)| LinkRule::new(between, Link { latency, ..DEFAULT_LINK });
        (dwell, latencies.into_iter().map(rule).collect())
    }

    fn spread(&self, mut samples: Vec<Duration>) -> Spread {
        samples.sort_unstable();
        let (first, last) = (samples.first().copied(), samples.last().copied());
        if first == last {
            return Spread::Fixed(first.unwrap_or_default());
        }
        let max = self.options.samples_max.max(1);
        if samples.len() > max {
            let rank = |number: usize| (2 * number + 1) * samples.len() / (2 * max);
            samples = (0..max).map(|number| samples[rank(number)]).collect();
        }
        Spread::Samples(samples)
    }
}

/// Whether each call's servant was in progress while more of those that compute were than their host has processors.
fn are_crowded(calls: &[&Recorded], children: &[Vec<usize>], servers: &Servers, hosts: &Hosts) -> Vec<bool> {
    let mut computing: Vec<Vec<(Time, Time, usize)>> = vec![Vec::new(); hosts.groups.len()];
    for (index, call) in calls.iter().enumerate() {
        let nested: Vec<&Recorded> = children[index].iter().map(|child| calls[*child]).collect();
        let Demand { own, processor, .. } = Demand::of(call, &nested);
        // One that waits for its turn has a processor for a small part of its time, one that sleeps hardly ever.
        if let (Some(service), Some(processor)) = (&call.service, processor)
            && processor * 10 >= own
        {
            let group = servers.hosts[servers.index(call)];
            computing[group].push((service.begin, service.begin + service.time, index));
        }
    }
    let mut are_crowded = vec![false; calls.len()];
    for (group, mut services) in computing.into_iter().enumerate() {
        services.sort_unstable();
        let mut in_progress: Vec<(Time, usize)> = Vec::new();
        for (begin, end, index) in services {
            in_progress.retain(|(end, _)| *end > begin);
            in_progress.push((end, index));
            if in_progress.len() > hosts.groups[group].cores as usize {
                in_progress.iter().for_each(|(_, index)| are_crowded[*index] = true);
            }
        }
    }
    are_crowded
}

/// So many calls that met no other ones tell enough of what a call takes.
const ALONE_MIN: usize = 20;

/// Whether each call, or the one whose upcalls led to it, met none that another client began.
fn are_alone(calls: &[&Recorded]) -> Vec<bool> {
    let roots: Vec<usize> = (0..calls.len()).filter(|index| calls[*index].parent.is_none()).collect();
    let mut are_alone = vec![true; calls.len()];
    // They are in the order of their begins.
    let mut longest: Option<usize> = None;
    for &root in &roots {
        if let Some(before) = longest {
            if calls[root].begin < calls[before].end() {
                (are_alone[root], are_alone[before]) = (false, false);
            }
            if calls[root].end() < calls[before].end() {
                continue;
            }
        }
        longest = Some(root);
    }
    let outermost = |mut index: usize| {
        while let Some(parent) = calls[index].parent {
            index = parent;
        }
        index
    };
    (0..calls.len()).map(|index| are_alone[outermost(index)]).collect()
}

/// A call that a thread served after another one.
struct Turn {
    call: usize,
    /// The one before, and when it had ended.
    before: usize,
    ended: Time,
    begins: Time,
}

/// What a servant did for one call.
struct Demand {
    /// Its time without that of nested calls.
    own: Duration,
    processor: Option<Duration>,
    /// Nested calls that began before one before had ended.
    overlapping: usize,
}

impl Demand {
    fn of(call: &Recorded, nested: &[&Recorded]) -> Demand {
        let Some(service) = &call.service else {
            return Demand { own: call.time.unwrap_or_default(), processor: None, overlapping: 0 };
        };
        let (begin, end) = (service.begin, service.begin + service.time);
        let (mut until, mut away, mut overlapping) = (begin, Duration::ZERO, 0);
        // They are in the order of their begins.
        for nested in nested {
            let (from, to) = (nested.begin.max(begin), nested.end().min(end));
            overlapping += usize::from(from < until);
            away += to - from.max(until);
            until = until.max(to);
        }
        Demand { own: service.time.saturating_sub(away), processor: service.processor, overlapping }
    }
}

/// The time that a tenth of all do not exceed.
fn tenth(times: &[Duration]) -> Duration {
    quantile(times.to_vec(), 10)
}

/// The time that one of so many equal parts of all does not exceed; zero of none.
fn quantile(mut times: Vec<Duration>, parts: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len().div_ceil(parts).saturating_sub(1)).copied().unwrap_or_default()
}

fn mean(times: &[Duration]) -> Duration {
    let sum: u128 = times.iter().map(Duration::as_nanos).sum();
    let mean = sum / times.len().max(1) as u128;
    Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
}
