//! The scenario as a deployment: hosts, links, processes, and the course of a run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use ironorb_model::scenario::{Arrivals, Cycle, HostGroup, Link, Scenario};
use ironorb_model::{Digest, Observations, ResourceObservations, Time, Turns, resources};
use ironorb_sim::{Counts, Fault, Host, Sim};

use crate::ProgramsError;
use crate::board::Board;
use crate::orbs::OwnReference;
use crate::pools::Pool;
use crate::priorities::{Ranks, check_lanes};

/// What all programs of a run know.
#[derive(Debug)]
pub(crate) struct Deployment {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// The names by which others reach hosts, one group after the other.
    pub(crate) hosts: Vec<String>,
    /// Those of servers, then those of classes.
    pub(crate) processes: Vec<Process>,
    /// The first process of each server.
    pub(crate) first_process: Vec<u32>,
    /// `None` if no class has a priority.
    pub(crate) ranks: Option<Ranks>,
    /// When the scenario begins, in the simulation's time.
    epoch: OnceLock<Duration>,
    /// When observation begins.
    observed_from: Time,
    board: Mutex<Board>,
}

/// A process of a server or of a class's clients.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) host: usize,
    pub(crate) role: Role,
    /// Which objects its servants call in turn.
    pub(crate) turns: Mutex<Turns>,
    /// How peers call it, once it serves.
    pub(crate) own: OnceLock<OwnReference>,
}

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It serves.
    Server {
        /// The index of the server.
        server: usize,
        /// The first port that it listens at; each lane has one.
        port: u16,
        /// Its first pool, if it has pools.
        first_pool: Option<usize>,
    },
    /// It calls.
    Clients {
        /// The index of the class.
        class: usize,
        /// Which of the class's processes it is.
        number: u32,
        /// How many there are.
        of: u32,
    },
}

/// The hosts of all groups, one group after the other.
struct Hosts {
    all: Vec<Host>,
    /// The first host of each group.
    first: Vec<usize>,
}

/// The most hosts and the most threads that make calls or serve: each is a thread of the system.
const HOSTS_MAX: u64 = 2_000;
const THREADS_MAX: u64 = 10_000;
/// How long the programs have to get ready before the scenario begins.
const PREPARATION: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_nanos(1);

/// Runs a scenario.
pub(crate) fn run(
    sim: &mut Sim,
    scenario: &Scenario,
    warm_up: Duration,
) -> Result<Observations, ProgramsError> {
    let deployment = Arc::new(Deployment::of(scenario, sim.seed(), warm_up)?);
    // Steps of code take no time, so what they do in another order makes no difference that a clock shows.
    sim.set_preemption(0.0);
    sim.set_clock_cost(Duration::ZERO);
    sim.set_connects_at_once(true);
    sim.set_pauses(scenario.dwell.pauses.clone());
    let hosts = Hosts::make(sim, scenario, &deployment.hosts);
    let course = catch_unwind(AssertUnwindSafe(|| deployment.live(sim, &hosts, warm_up)));
    let board = deployment.board();
    if let Some(why) = &board.stopped {
        return Err(why.clone());
    }
    let before = course.unwrap_or_else(|panic| resume_unwind(panic));
    let counts = sim.counts();
    let mut digest = Digest::default();
    digest.take(sim.digest());
    Ok(Observations {
        span: scenario.span,
        classes: board.observe_classes(deployment.end()),
        resources: deployment.observe(sim, &hosts, &board),
        messages: counts.messages - before.messages,
        octets: counts.octets - before.octets,
        calls: board.calls,
        events: counts.events - before.events,
        digest,
    })
}

impl Deployment {
    /// Starts all programs, and lets the time of the scenario pass. Returns what had been counted before.
    fn live(self: &Arc<Self>, sim: &mut Sim, hosts: &Hosts, warm_up: Duration) -> Counts {
        self.start_servers(sim, hosts);
        let epoch = sim.elapsed() + PREPARATION;
        self.epoch.get_or_init(|| epoch);
        hosts.plan_outages(sim, &self.scenario);
        let before = sim.counts();
        self.start_clients(sim, hosts);
        // What happens at a moment comes in any order. So observation begins a little before its first moment, and ends a
        // little after its last one.
        sim.run_for(PREPARATION + warm_up - MOMENT);
        sim.restart_observation();
        self.restart_observation();
        sim.run_for(self.scenario.span + MOMENT * 2);
        before
    }

    fn of(scenario: &Scenario, seed: u64, warm_up: Duration) -> Result<Deployment, ProgramsError> {
        check(scenario)?;
        let mut pools = Vec::new();
        let mut processes = Vec::new();
        let mut first_process = Vec::new();
        let mut next_port = vec![FIRST_PORT; scenario.hosts.len()];
        let mut first_host = Vec::new();
        let mut hosts = 0;
        for group in &scenario.hosts {
            first_host.push(hosts);
            hosts += group.count as usize;
        }
        let process = |host, role| Process { host, role, turns: Mutex::default(), own: OnceLock::new() };
        for (index, server) in scenario.servers.iter().enumerate() {
            first_process.push(processes.len() as u32);
            let port = next_port[server.hosts];
            next_port[server.hosts] = u16::try_from(server.lanes.len().max(1))
                .ok()
                .and_then(|ports| port.checked_add(ports))
                .filter(|port| *port < FIRST_EPHEMERAL_PORT)
                .ok_or(ProgramsError::TooMany {
                    what: "lanes on a host",
                    most: LANES_MAX,
                    mend: "the number of lanes or servers there",
                })?;
            let sizes = server.pools();
            for number in 0..scenario.hosts[server.hosts].count as usize {
                let first_pool = (!sizes.is_empty()).then_some(pools.len());
                pools.extend(sizes.iter().map(|size| Pool::new((*size).max(1))));
                let role = Role::Server { server: index, port, first_pool };
                processes.push(process(first_host[server.hosts] + number, role));
            }
        }
        for (index, class) in scenario.classes.iter().enumerate() {
            let count = scenario.hosts[class.hosts].count;
            let of = match class.arrivals {
                Arrivals::Closed { clients, .. } => count.min(clients),
                Arrivals::Open { .. } | Arrivals::Trace(_) => count,
            };
            for number in 0..of {
                let role = Role::Clients { class: index, number, of };
                processes.push(process(first_host[class.hosts] + number as usize, role));
            }
        }
        Ok(Deployment {
            scenario: scenario.clone(),
            seed,
            hosts: host_names(scenario),
            processes,
            first_process,
            ranks: Ranks::of(scenario)?,
            epoch: OnceLock::new(),
            observed_from: Time::ZERO + warm_up,
            board: Mutex::new(Board::of(scenario, pools)),
        })
    }

    /// The last moment that is observed.
    fn end(&self) -> Time {
        self.observed_from + self.scenario.span
    }

    /// The scenario's time.
    pub(crate) fn now(&self) -> Time {
        self.time_at(ironorb_sim::elapsed())
    }

    /// The scenario's time so long after the simulation has begun.
    pub(crate) fn time_at(&self, since_beginning: Duration) -> Time {
        let epoch = self.epoch.get().copied().unwrap_or(Duration::MAX);
        Time::ZERO + since_beginning.saturating_sub(epoch)
    }

    /// Has the calling thread sleep until this time of the scenario.
    pub(crate) fn sleep_until(&self, at: Time) {
        let epoch = self.epoch.get().copied().unwrap_or_default();
        let since_beginning = epoch + at.since(Time::ZERO);
        let left = since_beginning.saturating_sub(ironorb_sim::elapsed());
        if !left.is_zero() {
            thread::sleep(left);
        }
    }

    /// Has the calling thread work in a process. `time` is that of a processor of speed 1.
    pub(crate) fn compute(&self, process: u32, time: Duration) {
        let speed = self.group_of(process).speed;
        ironorb_sim::compute(if speed == 1.0 { time } else { time.div_f64(speed) });
    }

    fn group_of(&self, process: u32) -> &HostGroup {
        let group = match self.processes[process as usize].role {
            Role::Server { server, .. } => self.scenario.servers[server].hosts,
            Role::Clients { class, .. } => self.scenario.classes[class].hosts,
        };
        &self.scenario.hosts[group]
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cycle has ended.
    pub(crate) fn end_cycle(&self, class: usize, began: Time, has_results: bool) {
        let now = self.now();
        if now > self.end() {
            return;
        }
        let is_observed = now >= self.observed_from;
        let mut board = self.board();
        board.end_cycle(class, began);
        let seen = &mut board.classes[class];
        if !has_results {
            seen.failed += u64::from(is_observed);
            return;
        }
        let response = now.since(began);
        seen.series.take(response.as_nanos() as f64, now.as_ns());
        if is_observed {
            seen.complete(response);
        }
    }

    fn start_servers(self: &Arc<Self>, sim: &mut Sim, hosts: &Hosts) {
        let mut count = 0;
        for (number, process) in self.processes.iter().enumerate() {
            let Role::Server { server, .. } = process.role else { continue };
            count += 1;
            let deployment = self.clone();
            let name = format!("{} {number}", self.scenario.servers[server].name);
            let program = move || deployment.serve(number as u32);
            let started = sim.process(&hosts.all[process.host], &name, program);
            sim.start(&started);
        }
        let deployment = self.clone();
        sim.run_until("all servers are ready", move || {
            deployment.processes[..count].iter().all(|process| process.own.get().is_some())
        });
    }

    fn start_clients(self: &Arc<Self>, sim: &mut Sim, hosts: &Hosts) {
        for (number, process) in self.processes.iter().enumerate() {
            let Role::Clients { class, .. } = process.role else { continue };
            let deployment = self.clone();
            let name = format!("{} {number}", self.scenario.classes[class].name);
            let program = move || deployment.call(number as u32);
            let started = sim.process(&hosts.all[process.host], &name, program);
            sim.start(&started);
        }
    }

    fn restart_observation(&self) {
        let now = self.now();
        let mut board = self.board();
        board.pools.iter_mut().for_each(|pool| pool.restart(now));
        board.locks.restart(now);
    }

    fn observe(&self, sim: &mut Sim, hosts: &Hosts, board: &Board) -> Vec<ResourceObservations> {
        let mut resources = Vec::new();
        hosts.observe_processors(sim, &self.scenario, &mut resources);
        self.observe_pools(board, &mut resources);
        board.locks.observe(self.now(), &self.scenario, &mut resources);
        hosts.observe_links(sim, &self.scenario, &mut resources);
        resources
    }
}

impl Hosts {
    fn make(sim: &mut Sim, scenario: &Scenario, names: &[String]) -> Hosts {
        sim.set_default_link(scenario.default_link);
        let (mut all, mut first) = (Vec::new(), Vec::new());
        for group in &scenario.hosts {
            first.push(all.len());
            for _ in 0..group.count {
                let host = sim.host(&names[all.len()], || {});
                sim.set_cores(&host, group.cores);
                sim.set_switch_time(&host, group.switch_time);
                sim.set_link(&host, &host, Link::WITHIN_A_HOST);
                all.push(host);
            }
        }
        let hosts = Hosts { all, first };
        // Where rules contradict each other, the first one counts.
        for rule in scenario.links.iter().rev() {
            let (from, to) = rule.between;
            for (number, a) in hosts.of_group(from, scenario) {
                for (_, b) in hosts.of_group(to, scenario).filter(|(other, _)| *other != number) {
                    sim.set_link(a, b, rule.link);
                }
            }
        }
        hosts
    }

    /// Has links cut and joined, from the beginning of the scenario on. Hosts of this level hold what is sent meanwhile; where TCP would
    /// have to send it again, the link is joined as much later.
    fn plan_outages(&self, sim: &mut Sim, scenario: &Scenario) {
        for (number, rule) in scenario.links.iter().enumerate() {
            let (from, to) = rule.between;
            // Where rules contradict each other, the first one counts.
            if scenario.link_rule_between(from, to) != Some(number) {
                continue;
            }
            for (place, a) in self.of_group(from, scenario) {
                for (_, b) in self.of_group(to, scenario).filter(|(other, _)| *other != place) {
                    for closed in rule.closed() {
                        sim.inflict_after(PREPARATION + closed.start, &Fault::Cut(a.clone(), b.clone()));
                        sim.inflict_after(PREPARATION + closed.end, &Fault::Join(a.clone(), b.clone()));
                    }
                }
            }
        }
    }

    fn of_group(&self, group: usize, scenario: &Scenario) -> impl Iterator<Item = (usize, &Host)> {
        let first = self.first[group];
        let hosts = &self.all[first..first + scenario.hosts[group].count as usize];
        hosts.iter().enumerate().map(move |(number, host)| (first + number, host))
    }

    fn observe_processors(&self, sim: &mut Sim, scenario: &Scenario, into: &mut Vec<ResourceObservations>) {
        resources::observe_processors(scenario, into, |group, number, name| {
            sim.observe_processors(&self.all[self.first[group] + number as usize], name)
        });
    }

    fn observe_links(&self, sim: &mut Sim, scenario: &Scenario, into: &mut Vec<ResourceObservations>) {
        let groups = scenario.hosts.len();
        let pairs = (0..groups).flat_map(|from| (0..groups).map(move |to| (from, to)));
        let between = pairs.flat_map(|(from, to)| {
            self.of_group(from, scenario).flat_map(move |(number, a)| {
                let others = self.of_group(to, scenario).filter(move |(other, _)| *other != number);
                others.map(move |(_, b)| ((from, to), a, b))
            })
        });
        let used =
            between.filter_map(|(groups, a, b)| Some((groups, sim.observe_link(a, b, String::new())?)));
        resources::observe_links(scenario, into, used);
    }
}

/// The names of hosts in addresses: those of their groups, with a number where there are several, and others where these are no
/// names of hosts or not unique.
fn host_names(scenario: &Scenario) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for group in &scenario.hosts {
        for number in 0..group.count {
            let name = if group.count == 1 { group.name.clone() } else { format!("{}-{number}", group.name) };
            let is_one = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
            // `test` is the host of whoever simulates.
            let is_taken = ["localhost", "test"].contains(&&*name) || names.contains(&name);
            let is_good = is_one && !name.is_empty() && !is_taken;
            let other = format!("host--{}", names.len());
            names.push(if is_good { name } else { other });
        }
    }
    names
}

/// Whether the scenario is one for this level.
fn check(scenario: &Scenario) -> Result<(), ProgramsError> {
    for class in &scenario.classes {
        if class.cache.is_some() {
            return Err(ProgramsError::Caches { class: class.name.clone() });
        }
        if class.mix.iter().any(|weighted| matches!(weighted.cycle, Cycle::Job { .. })) {
            return Err(ProgramsError::Jobs { class: class.name.clone() });
        }
    }
    check_lanes(scenario)?;
    let hosts: u64 = scenario.hosts.iter().map(|group| u64::from(group.count)).sum();
    if hosts > HOSTS_MAX {
        return Err(ProgramsError::TooMany {
            what: "hosts",
            most: HOSTS_MAX,
            mend: "`count` of `[[hosts]]`",
        });
    }
    let clients = scenario.classes.iter().map(|class| match class.arrivals {
        Arrivals::Closed { clients, .. } => u64::from(clients),
        Arrivals::Open { .. } | Arrivals::Trace(_) => scenario.hosts[class.hosts].count.into(),
    });
    let servers = scenario.servers.iter().map(|server| {
        let of_each: u64 = server.pools().into_iter().map(u64::from).sum();
        of_each * u64::from(scenario.hosts[server.hosts].count)
    });
    if clients.chain(servers).sum::<u64>() > THREADS_MAX {
        return Err(ProgramsError::TooMany {
            what: "threads of clients and pools",
            most: THREADS_MAX,
            mend: "`clients` or `threads`",
        });
    }
    Ok(())
}

const FIRST_PORT: u16 = 2_810;
/// From here on the simulated system gives ports to clients.
const FIRST_EPHEMERAL_PORT: u16 = 32_768;
const LANES_MAX: u64 = (FIRST_EPHEMERAL_PORT - FIRST_PORT) as u64;
