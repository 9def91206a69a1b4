//! Clients with jobs, a daemon, servers and the names of an agent in virtual time. Connections end, callbacks come late and twice,
//! the daemon is full, drains, dies and comes back, servers die, come back and register twice, and their leases end.
//!
//! This is a driver and no more: each decision is the crate's, or the agent's registry's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use ironorb_agent::Limits;
use ironorb_agent::registry::{Offer, OwnerKey, Registry, Start};
use ironorb_fan_out::ledger::{Entry, ExecutionId, Happened, JobId, Left, PartId, TaskId, ToldAs};
use ironorb_fan_out::{
    Attempt, Attendance, Attended, Begun, Budget, BudgetLimits, Completed, Deaths, Desk, DeskLimits, Ended,
    Executed, Expected, Failure, Moment, Next, Order, Outcome, Part, Plan, Quorum, RaisedBy, SeenTokens,
    Starts, Step, Taken, Token, Told, Trip, Way, daemons_share, is_nearly_over,
};

use crate::driven::Driven;

const MS: u64 = 1_000_000;

/// A message is under way at most so long.
const TRAVEL_MAX: u64 = 3 * MS;

/// How long the daemon keeps the request of a client that wants to know when it ends.
const ATTENDS: u64 = 40 * MS;

/// Nothing fails and no lease is renewed after this.
const LAST: u64 = 400 * MS;

/// What has come of a seed.
pub(crate) struct Course {
    pub(crate) entries: Vec<Entry>,
    pub(crate) left: Left,
    /// The machines of all jobs, those of daemons, too.
    pub(crate) machines: Vec<Driven>,
    /// The steps of each client's jobs, as they were taken.
    pub(crate) steps: Vec<(BudgetLimits, Vec<Step>)>,
    pub(crate) reached: Reached,
}

/// How often each thing has happened.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) refused: u64,
    pub(crate) queued: u64,
    pub(crate) went_directly: u64,
    pub(crate) passed_over: u64,
    pub(crate) lost_with_daemon: u64,
    pub(crate) attended_again: u64,
    pub(crate) passed_on: u64,
    pub(crate) carried_alone: u64,
    pub(crate) seen_before: u64,
    pub(crate) told_twice: u64,
    pub(crate) killed_with_jobs: u64,
    pub(crate) drained: u64,
    pub(crate) late_at_daemon: u64,
    pub(crate) given_up_at_daemon: u64,
    pub(crate) registered_twice: u64,
    pub(crate) leases_ended: u64,
}

impl Reached {
    pub(crate) fn add(&mut self, other: Reached) {
        self.each_mut().into_iter().zip(other.each()).for_each(|(sum, more)| *sum += more);
    }

    pub(crate) fn each(mut self) -> Vec<u64> {
        self.each_mut().into_iter().map(|times| *times).collect()
    }

    fn each_mut(&mut self) -> Vec<&mut u64> {
        vec![
            &mut self.refused,
            &mut self.queued,
            &mut self.went_directly,
            &mut self.passed_over,
            &mut self.lost_with_daemon,
            &mut self.attended_again,
            &mut self.passed_on,
            &mut self.carried_alone,
            &mut self.seen_before,
            &mut self.told_twice,
            &mut self.killed_with_jobs,
            &mut self.drained,
            &mut self.late_at_daemon,
            &mut self.given_up_at_daemon,
            &mut self.registered_twice,
            &mut self.leases_ended,
        ]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Client(usize),
    Daemon,
    Server(usize),
}

/// The lesser one first.
type Link = (Node, Node);

/// A request that its sender waits for.
#[derive(Clone, Copy)]
struct Pending {
    link: Link,
    from: Node,
    then: Then,
}

/// Who waits.
#[derive(Debug, Clone, Copy)]
enum Then {
    Direct { job: usize, attempt: Attempt },
    Run { job: usize },
    Attend { client: usize },
    OfTask { task: TaskId, attempt: Attempt },
}

#[derive(Debug, Clone)]
enum Answer {
    Served(Served),
    Reports(Vec<Report>),
    Attended(Attendance),
    Failed(Failure),
}

#[derive(Debug, Clone, Copy)]
struct Served {
    ended: Ended,
    execution: Option<ExecutionId>,
}

#[derive(Debug, Clone, Copy)]
struct Report {
    told: Told,
    execution: Option<ExecutionId>,
}

/// A job as it travels to the daemon.
#[derive(Debug, Clone)]
struct Listed {
    parts: Vec<ListedPart>,
    quorum: Quorum,
    time: Option<Duration>,
    at_once: bool,
}

#[derive(Debug, Clone, Copy)]
struct ListedPart {
    part: PartId,
    target: Target,
    may_be_repeated: bool,
    time: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Name(usize),
    Server(usize),
}

#[derive(Debug, Clone)]
enum Message {
    Call { request: u64, part: PartId, may_be_repeated: bool },
    Run { request: u64, listed: Listed },
    Forward { listed: Listed, tokens: Vec<Token> },
    Attend { request: u64 },
    GivesUp { request: u64 },
    PassedOn { part: PartId, token: Token, client: usize, may_be_repeated: bool },
    Done { token: Token, report: Report },
    Reply { request: u64, answer: Answer },
}

enum Event {
    Arrives {
        from: Node,
        to: Node,
        epoch: u64,
        message: Message,
    },
    Ends(Then, Answer),
    /// A server has carried out a forwarded part.
    Tells {
        server: usize,
        life: u64,
        client: usize,
        token: Token,
        report: Report,
    },
    TellsJob {
        job: usize,
        attempt: Attempt,
        report: Report,
    },
    Begins(usize),
    GivesUp(usize),
    /// A thread takes what waits to be started.
    Starts(usize),
    Forwards {
        job: usize,
        listed: Listed,
        through: Vec<Attempt>,
        deaths: Deaths,
    },
    AttendedEnough(u64),
    Breaks(Link),
    DaemonDies,
    DaemonDrains,
    DaemonLeaves(u64),
    DaemonStarts,
    ServerDies(usize),
    ServerStarts(usize),
    ServerRegisters(usize),
    ServerRenews(usize, u64),
}

struct Client {
    limits: BudgetLimits,
    budget: Arc<Budget>,
    expected: Expected<(usize, Attempt)>,
    steps: Vec<Step>,
}

/// A job of a client, before and after its beginning.
struct ClientJob {
    client: usize,
    plan: Plan,
    way: Way,
    targets: Vec<Target>,
    run: Option<ClientRun>,
}

struct ClientRun {
    begun: u64,
    driven: Driven,
    trip: Trip,
    tried: Vec<Vec<usize>>,
    /// When the time of each part is over, or the job's.
    ends_by: Vec<Option<u64>>,
    /// What has decided each part.
    answers: Vec<Option<ExecutionId>>,
    /// The parts that the daemon has.
    through: Vec<Attempt>,
    tokens: Vec<Token>,
    /// Requests that are under way.
    requests: BTreeMap<Attempt, u64>,
    at_daemon: Option<u64>,
    is_over: bool,
}

struct Daemon {
    is_alive: bool,
    life: u64,
    limits: DeskLimits,
    desk: Desk<Task>,
    running: BTreeMap<TaskId, TaskRun>,
    /// Requests whose clients have given up.
    given_up: BTreeSet<u64>,
    attending: Vec<u64>,
    has_drained: bool,
    next_task: u64,
}

impl Daemon {
    /// One that has not started.
    fn new(limits: DeskLimits) -> Daemon {
        Daemon {
            is_alive: false,
            life: 0,
            limits,
            desk: Desk::new(limits),
            running: BTreeMap::new(),
            given_up: BTreeSet::new(),
            attending: Vec::new(),
            has_drained: false,
            next_task: 0,
        }
    }
}

#[derive(Debug)]
struct Task {
    id: TaskId,
    listed: Listed,
    to: To,
    come: u64,
}

#[derive(Debug)]
enum To {
    Caller(u64),
    Client(usize, Vec<Token>),
}

/// A task that a thread carries out.
struct TaskRun {
    task: Task,
    /// What is forwarded next.
    next: usize,
    /// The calls that the daemon makes itself: of all parts, or of one that its server cannot tell.
    calls: Option<Calls>,
}

struct Calls {
    driven: Driven,
    parts: Vec<ListedPart>,
    servers: Vec<Vec<usize>>,
    tried: Vec<Vec<usize>>,
    answers: Vec<Option<ExecutionId>>,
    reports: Vec<Report>,
    requests: BTreeMap<Attempt, u64>,
}

struct Server {
    is_alive: bool,
    life: u64,
    name: usize,
    is_slow: bool,
    takes_forwarded: bool,
    seen: SeenTokens,
    key: Option<OwnerKey>,
}

pub(crate) struct World {
    rng: Rng,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
    epochs: BTreeMap<Link, u64>,
    pending: BTreeMap<u64, Pending>,
    clients: Vec<Client>,
    jobs: Vec<ClientJob>,
    daemon: Daemon,
    daemon_budget: Arc<Budget>,
    servers: Vec<Server>,
    registry: Registry,
    entries: Vec<Entry>,
    machines: Vec<Driven>,
    reached: Reached,
}

const FULL: Failure = Failure { completed: Completed::No, of_server: true };
const LOST: Failure = Failure { completed: Completed::Maybe, of_server: true };

/// Runs a world until nothing happens any more.
pub(crate) fn run(seed: u64) -> Course {
    let mut world = World::new(seed);
    world.run();
    world.course()
}

fn nanos(moment: u64) -> Moment {
    Moment::from_nanos(moment)
}

fn link(a: Node, b: Node) -> Link {
    (a.min(b), a.max(b))
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::with_seed(seed);
        let names = rng.usize(1..4);
        let server = |rng: &mut Rng| Server {
            is_alive: true,
            life: 0,
            name: rng.usize(0..names),
            is_slow: rng.u32(0..4) == 0,
            takes_forwarded: rng.u32(0..4) > 0,
            seen: SeenTokens::new(1_000),
            key: None,
        };
        let servers: Vec<Server> = (0..rng.usize(1..6)).map(|_| server(&mut rng)).collect();
        let client = |rng: &mut Rng| {
            let limits = BudgetLimits { share: f64::from(rng.u32(0..30)) / 100.0, burst: rng.u32(0..6) };
            let budget = Arc::new(Budget::new(limits));
            Client { limits, budget, expected: Expected::default(), steps: Vec::new() }
        };
        let clients: Vec<Client> = (0..rng.usize(1..4)).map(|_| client(&mut rng)).collect();
        let job = |rng: &mut Rng| any_job(rng, clients.len(), names, servers.len());
        let jobs = (0..rng.usize(1..10)).map(|_| job(&mut rng)).collect();
        // A task has so many octets as parts.
        let (threads, queue_max, queue_octets_max) = (rng.usize(1..3), rng.usize(0..4), rng.usize(0..12));
        let limits = DeskLimits { threads, queue_max, queue_octets_max };
        let mut agent = Limits::default();
        agent.lease_min = Duration::from_millis(5);
        let daemon = Daemon::new(limits);
        let registry = Registry::new(Start { life: seed, ..Start::default() }, agent);
        let mut world = World {
            rng,
            now: 0,
            events: BTreeMap::new(),
            number: 0,
            epochs: BTreeMap::new(),
            pending: BTreeMap::new(),
            clients,
            jobs,
            daemon,
            daemon_budget: Arc::default(),
            servers,
            registry,
            entries: Vec::new(),
            machines: Vec::new(),
            reached: Reached::default(),
        };
        world.prepare();
        world
    }

    /// What will happen, beside what follows from it.
    fn prepare(&mut self) {
        for job in 0..self.jobs.len() {
            let begins = self.rng.u64(0..12 * MS);
            self.put(begins, Event::Begins(job));
            if self.chance(10) {
                let gives_up = begins + self.rng.u64(0..40) * MS;
                self.put(gives_up, Event::GivesUp(job));
            }
        }
        if !self.chance(10) {
            self.put(0, Event::DaemonStarts);
        }
        if self.chance(50) {
            let dies = self.rng.u64(0..60 * MS);
            self.put(dies, Event::DaemonDies);
        }
        if self.chance(20) {
            let drains = self.rng.u64(0..60 * MS);
            self.put(drains, Event::DaemonDrains);
        }
        for server in 0..self.servers.len() {
            self.register(server);
            if self.chance(30) {
                let dies = self.rng.u64(0..60 * MS);
                self.put(dies, Event::ServerDies(server));
            }
            if self.chance(20) {
                let again = self.rng.u64(0..60 * MS);
                self.put(again, Event::ServerRegisters(server));
            }
        }
        for client in 0..self.clients.len() {
            if self.chance(20) {
                let breaks = self.rng.u64(0..60 * MS);
                self.put(breaks, Event::Breaks(link(Node::Client(client), Node::Daemon)));
            }
            if self.chance(20) {
                let (breaks, server) = (self.rng.u64(0..60 * MS), self.rng.usize(0..self.servers.len()));
                self.put(breaks, Event::Breaks(link(Node::Client(client), Node::Server(server))));
            }
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn put(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.events.insert((at.max(self.now), self.number), event);
    }

    fn note(&mut self, what: Happened) {
        self.entries.push(Entry { at: nanos(self.now), what });
    }

    fn run(&mut self) {
        loop {
            let event = self.events.first_key_value().map(|(key, _)| *key);
            let of_client = |job: &ClientJob| job.run.as_ref()?.driven.machine.wakes_at();
            let of_task = |task: &TaskRun| task.calls.as_ref()?.driven.machine.wakes_at();
            let clients = self.jobs.iter().filter_map(of_client);
            let wakes = clients.chain(self.daemon.running.values().filter_map(of_task)).min();
            let wakes = wakes.map(|at| at.as_nanos().max(self.now));
            match (event, wakes) {
                (Some((at, _)), Some(wakes)) if wakes <= at => self.wake(wakes),
                (None, Some(wakes)) => self.wake(wakes),
                (Some(key), _) => {
                    self.now = key.0;
                    let event = self.events.remove(&key).expect("it is the first");
                    self.happens(event);
                }
                (None, None) => return,
            }
        }
    }

    fn wake(&mut self, at: u64) {
        self.now = at;
        let is_due = |driven: &Driven| driven.machine.wakes_at().is_some_and(|due| due.as_nanos() <= at);
        for job in 0..self.jobs.len() {
            if let Some(run) = self.jobs[job].run.as_mut().filter(|run| is_due(&run.driven)) {
                run.driven.time(nanos(at));
                self.carry_out(job);
            }
        }
        let tasks: Vec<TaskId> = self.daemon.running.keys().copied().collect();
        for task in tasks {
            let calls = self.daemon.running.get_mut(&task).and_then(|run| run.calls.as_mut());
            if let Some(calls) = calls.filter(|calls| is_due(&calls.driven)) {
                calls.driven.time(nanos(at));
                self.carry_out_task(task);
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrives { from, to, epoch, message } => {
                if self.epoch(link(from, to)) == epoch {
                    self.arrives(from, to, message);
                }
            }
            Event::Ends(then, answer) => self.ends(then, answer),
            Event::Tells { server, life, client, token, report } => {
                if self.servers[server].is_alive && self.servers[server].life == life {
                    self.tell_client(Node::Server(server), client, token, report);
                }
            }
            Event::TellsJob { job, attempt, report } => self.told(job, attempt, report),
            Event::Begins(job) => self.begin(job),
            Event::GivesUp(job) => {
                let now = nanos(self.now);
                if let Some(run) = self.jobs[job].run.as_mut().filter(|run| !run.is_over) {
                    run.driven.give_up(now);
                    self.carry_out(job);
                }
            }
            Event::Starts(job) => self.start(job),
            Event::Forwards { job, listed, through, deaths } => self.forwards(job, listed, through, deaths),
            Event::AttendedEnough(request) => {
                if let Some(at) = self.daemon.attending.iter().position(|kept| *kept == request) {
                    self.daemon.attending.swap_remove(at);
                    self.reply(Node::Daemon, request, Answer::Attended(Attendance::Again), 0);
                }
            }
            Event::Breaks(link) => self.break_link(link),
            Event::DaemonDies => {
                if self.daemon.is_alive {
                    self.daemon_dies();
                }
            }
            Event::DaemonDrains => {
                if self.daemon.is_alive {
                    self.daemon.desk.drain();
                    self.look_whether_drained();
                }
            }
            Event::DaemonLeaves(life) => {
                if self.daemon.is_alive && self.daemon.life == life {
                    self.daemon_dies();
                }
            }
            Event::DaemonStarts => {
                let Daemon { limits, life, next_task, .. } = self.daemon;
                self.daemon = Daemon { is_alive: true, life: life + 1, next_task, ..Daemon::new(limits) };
            }
            Event::ServerDies(server) => {
                self.servers[server].is_alive = false;
                self.servers[server].key = None;
                self.break_links_of(Node::Server(server));
                if self.chance(70) {
                    let back = self.now + self.rng.u64(0..30 * MS);
                    self.put(back, Event::ServerStarts(server));
                }
            }
            Event::ServerStarts(server) => {
                let life = self.servers[server].life + 1;
                let seen = SeenTokens::new(1_000);
                let server_state = &mut self.servers[server];
                (server_state.is_alive, server_state.life, server_state.seen) = (true, life, seen);
                self.register(server);
            }
            Event::ServerRegisters(server) => {
                if self.servers[server].is_alive {
                    self.reached.registered_twice += 1;
                    self.register(server);
                }
            }
            Event::ServerRenews(server, life) => self.renew(server, life),
        }
    }

    // The agent.

    /// A server opens a lease and registers its name. What it had before lives until its lease ends.
    fn register(&mut self, server: usize) {
        let now = Duration::from_nanos(self.now);
        let lease = Duration::from_millis(self.rng.u64(5..40));
        let (key, lease) = self.registry.open(self.rng.u128(..), lease, now).expect("there is room");
        let name = format!("n{}", self.servers[server].name);
        let offer = Offer { name, reference: server.to_string(), properties: Vec::new() };
        self.registry.register(key, vec![offer], now).expect("the lease is new");
        self.servers[server].key = Some(key);
        let renews = self.now + lease.as_nanos() as u64 / 3;
        self.put(renews, Event::ServerRenews(server, self.servers[server].life));
    }

    fn renew(&mut self, server: usize, life: u64) {
        let state = &self.servers[server];
        let Some(key) = state.key.filter(|_| state.is_alive && state.life == life) else { return };
        if self.now > LAST || self.chance(10) {
            // It has stopped for a while, longer than its lease.
            return;
        }
        if let Ok(lease) = self.registry.renew(key, Duration::from_nanos(self.now)) {
            let again = self.now + lease.as_nanos() as u64 / 3;
            self.put(again, Event::ServerRenews(server, life));
        }
    }

    fn resolve(&mut self, target: Target) -> Vec<usize> {
        match target {
            Target::Server(server) => vec![server],
            Target::Name(name) => {
                self.reached.leases_ended += self.registry.expire(Duration::from_nanos(self.now)) as u64;
                let name = format!("n{name}");
                let (_, entries) = self.registry.resolve(&name, &[]);
                let mut servers: Vec<usize> =
                    entries.map(|entry| entry.reference.parse().expect("it is a number")).collect();
                if !servers.is_empty() {
                    let first = self.rng.usize(0..servers.len());
                    servers.rotate_left(first);
                }
                servers
            }
        }
    }

    // The network.

    fn epoch(&self, link: Link) -> u64 {
        self.epochs.get(&link).copied().unwrap_or_default()
    }

    fn is_alive(&self, node: Node) -> bool {
        match node {
            Node::Client(_) => true,
            Node::Daemon => self.daemon.is_alive,
            Node::Server(server) => self.servers[server].is_alive,
        }
    }

    /// Gives whether there is anybody to send it to.
    fn send(&mut self, from: Node, to: Node, message: Message, after: u64) -> bool {
        if !self.is_alive(to) {
            return false;
        }
        let at = self.now + after + self.rng.u64(0..TRAVEL_MAX);
        let epoch = self.epoch(link(from, to));
        self.put(at, Event::Arrives { from, to, epoch, message });
        true
    }

    /// Sends a request that is answered, or fails.
    fn request(
        &mut self,
        (from, to): (Node, Node),
        then: Then,
        message: impl FnOnce(u64) -> Message,
    ) -> Option<u64> {
        self.number += 1;
        let request = self.number;
        if !self.send(from, to, message(request), 0) {
            self.put(self.now + MS / 10, Event::Ends(then, Answer::Failed(FULL)));
            return None;
        }
        self.pending.insert(request, Pending { link: link(from, to), from, then });
        Some(request)
    }

    fn reply(&mut self, from: Node, request: u64, answer: Answer, after: u64) {
        if let Some(pending) = self.pending.get(&request) {
            let to = pending.from;
            self.send(from, to, Message::Reply { request, answer }, after);
        }
    }

    /// All that is under way is lost, and all that wait for answers learn it.
    fn break_link(&mut self, link: Link) {
        *self.epochs.entry(link).or_default() += 1;
        let lost: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| pending.link == link).map(|(id, _)| *id).collect();
        for request in lost {
            let pending = self.pending.remove(&request).expect("it was there");
            let at = self.now + self.rng.u64(0..MS);
            if self.is_alive(pending.from) {
                self.put(at, Event::Ends(pending.then, Answer::Failed(LOST)));
            }
        }
        // A client's daemon learns it, too, and gives up what it does for it.
        if let (Node::Client(client), Node::Daemon) = link {
            self.give_up_tasks_of(client);
        }
    }

    fn break_links_of(&mut self, node: Node) {
        let clients = (0..self.clients.len()).map(Node::Client);
        let all: Vec<Node> =
            clients.chain([Node::Daemon]).chain((0..self.servers.len()).map(Node::Server)).collect();
        for other in all.into_iter().filter(|other| *other != node) {
            self.break_link(link(node, other));
        }
    }

    fn arrives(&mut self, from: Node, to: Node, message: Message) {
        match (to, message) {
            (_, Message::Reply { request, answer }) => {
                if let Some(pending) = self.pending.remove(&request) {
                    self.ends(pending.then, answer);
                }
            }
            (Node::Server(server), Message::Call { request, part, may_be_repeated }) => {
                // It was cancelled in time, or not.
                if !self.pending.contains_key(&request) && self.rng.bool() {
                    return;
                }
                let (served, after) = self.serve(server, part, may_be_repeated);
                self.reply(to, request, Answer::Served(served), after);
            }
            (Node::Server(server), Message::PassedOn { part, token, client, may_be_repeated }) => {
                if !self.servers[server].seen.note(token) {
                    self.reached.seen_before += 1;
                    return;
                }
                let (served, after) = self.serve(server, part, may_be_repeated);
                let told = match served.ended {
                    Ended::Result => Told::Result,
                    Ended::Exception => Told::Exception,
                    Ended::NotExecuted => Told::Failed(FULL),
                    Ended::MaybeExecuted | Ended::Cancelled => Told::Lost,
                };
                let report = Report { told, execution: served.execution };
                let life = self.servers[server].life;
                self.put(self.now + after, Event::Tells { server, life, client, token, report });
            }
            (Node::Client(client), Message::Done { token, report }) => {
                match self.clients[client].expected.told(token) {
                    Some((job, attempt)) => {
                        self.put(self.now, Event::TellsJob { job, attempt, report });
                    }
                    None => self.reached.told_twice += 1,
                }
            }
            (Node::Daemon, message) => self.daemon_gets(from, message),
            (to, message) => panic!("{message:?} is not for {to:?}"),
        }
    }

    /// A server carries a part out. Gives what comes of it, and after which time.
    fn serve(&mut self, server: usize, part: PartId, may_be_repeated: bool) -> (Served, u64) {
        let scale = if self.servers[server].is_slow { 40 } else { 1 };
        let after = self.rng.u64(1..=2 * MS) * scale;
        let what = self.rng.u32(0..20);
        match what {
            0 | 1 => return (Served { ended: Ended::NotExecuted, execution: None }, 0),
            // NO_PERMISSION, COMPLETED_NO: the server has spoken, and has executed nothing.
            2 if !may_be_repeated => return (Served { ended: Ended::Exception, execution: None }, 0),
            _ => {}
        }
        self.number += 1;
        let execution = ExecutionId(self.number);
        self.note(Happened::Executed(part, execution));
        let served = match what {
            3 => Served { ended: Ended::MaybeExecuted, execution: None },
            4 => Served { ended: Ended::Exception, execution: Some(execution) },
            _ => Served { ended: Ended::Result, execution: Some(execution) },
        };
        (served, after)
    }

    fn tell_client(&mut self, from: Node, client: usize, token: Token, report: Report) {
        let times = if self.chance(15) { 2 } else { 1 };
        for _ in 0..times {
            self.send(from, Node::Client(client), Message::Done { token, report }, 0);
        }
    }

    // Clients.

    fn begin(&mut self, job: usize) {
        let now = nanos(self.now);
        let ClientJob { plan, way, .. } = &self.jobs[job];
        let (plan, way) = (plan.clone(), *way);
        let ends_by = plan.time.map(|time| now.after(time));
        let id = JobId(job as u64);
        self.note(Happened::JobBegun { job: id, ends_by });
        for (part, of_plan) in plan.parts.iter().enumerate() {
            let may_be_repeated = of_plan.may_be_repeated;
            self.note(Happened::PartBegun { part: PartId { job: id, part }, may_be_repeated });
        }
        let parts = plan.parts.len();
        let ends_by = |part: &Part| {
            [part.time, plan.time].into_iter().flatten().min().map(|time| now.after(time).as_nanos())
        };
        let ends_by = plan.parts.iter().map(ends_by).collect();
        let driven = Driven::begin(plan, &self.clients[self.jobs[job].client].budget, now);
        self.jobs[job].run = Some(ClientRun {
            begun: self.now,
            driven,
            trip: Trip::new(way, parts),
            tried: vec![Vec::new(); parts],
            ends_by,
            answers: vec![None; parts],
            through: Vec::new(),
            tokens: Vec::new(),
            requests: BTreeMap::new(),
            at_daemon: None,
            is_over: false,
        });
        self.carry_out(job);
    }

    fn carry_out(&mut self, job: usize) {
        let (client, id) = (self.jobs[job].client, JobId(job as u64));
        let Some(run) = self.jobs[job].run.as_mut() else { return };
        let steps = run.driven.steps();
        self.clients[client].steps.extend(&steps);
        for step in steps {
            let run = self.jobs[job].run.as_mut().expect("it has begun");
            match step {
                Step::Start { attempt, .. } => run.trip.start(attempt),
                Step::Cancel(attempt) => {
                    if let Some(request) = run.requests.remove(&attempt) {
                        self.pending.remove(&request);
                    }
                }
                Step::Tell { part, outcome } => {
                    let told = told_as(outcome, run.answers[part]);
                    self.note(Happened::Told(PartId { job: id, part }, told));
                }
                Step::Over(_) => self.over(job),
            }
        }
        // At once, or by another thread that may wait.
        if self.chance(70) {
            return self.start(job);
        }
        let later = self.now + self.rng.u64(0..MS);
        self.put(later, Event::Starts(job));
    }

    fn start(&mut self, job: usize) {
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        let Starts { through_daemon, directly } = run.trip.take_starts(&run.driven.machine);
        if !through_daemon.is_empty() {
            self.send_to_daemon(job, through_daemon);
        }
        directly.into_iter().for_each(|attempt| self.start_directly(job, attempt));
    }

    fn over(&mut self, job: usize) {
        let client = self.jobs[job].client;
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        run.is_over = true;
        self.clients[client].expected.forget(&run.tokens);
        if let Some(request) = run.at_daemon.take()
            && self.pending.remove(&request).is_some()
        {
            self.send(Node::Client(client), Node::Daemon, Message::GivesUp { request }, 0);
        }
        self.note(Happened::JobOver(JobId(job as u64)));
    }

    fn send_to_daemon(&mut self, job: usize, through: Vec<Attempt>) {
        let ClientJob { client, plan, way, targets, .. } = &self.jobs[job];
        let (client, way, id) = (*client, *way, JobId(job as u64));
        let part = |attempt: &Attempt| ListedPart {
            part: PartId { job: id, part: attempt.part },
            target: targets[attempt.part],
            may_be_repeated: plan.parts[attempt.part].may_be_repeated,
            time: plan.parts[attempt.part].time,
        };
        let parts: Vec<ListedPart> = through.iter().map(part).collect();
        let begun = self.jobs[job].run.as_ref().expect("it has begun").begun;
        let left = plan.time.map(|time| time.saturating_sub(Duration::from_nanos(self.now - begun)));
        let at_once = matches!(way, Way::Daemon { at_once: true, .. });
        let listed = Listed { parts, quorum: plan.quorum, time: left.map(daemons_share), at_once };
        for attempt in &through {
            self.note(Happened::Sent(PartId { job: id, part: attempt.part }));
        }
        let (from, to) = (Node::Client(client), Node::Daemon);
        if matches!(way, Way::Daemon { .. }) {
            self.jobs[job].run.as_mut().expect("it has begun").through = through;
            let request =
                self.request((from, to), Then::Run { job }, |request| Message::Run { request, listed });
            self.jobs[job].run.as_mut().expect("it has begun").at_daemon = request;
            return;
        }
        let mut tokens = Vec::new();
        for attempt in &through {
            loop {
                let token = Token { high: self.rng.u64(..), low: self.rng.u64(..) };
                if self.clients[client].expected.expect(token, (job, *attempt)) {
                    tokens.push(token);
                    break;
                }
            }
        }
        let deaths = self.clients[client].expected.deaths();
        if self.clients[client].expected.must_attend() {
            self.attend(client);
        }
        self.jobs[job].run.as_mut().expect("it has begun").tokens = tokens;
        let at = self.now + self.rng.u64(0..MS);
        self.put(at, Event::Forwards { job, listed, through, deaths });
    }

    fn forwards(&mut self, job: usize, listed: Listed, through: Vec<Attempt>, deaths: Deaths) {
        let client = self.jobs[job].client;
        let tokens = self.jobs[job].run.as_ref().expect("it has begun").tokens.clone();
        let message = Message::Forward { listed, tokens: tokens.clone() };
        if self.send(Node::Client(client), Node::Daemon, message, 0) {
            let attended = self.clients[client].expected.sent(&tokens, deaths);
            return self.follow(client, attended);
        }
        self.clients[client].expected.forget(&tokens);
        let report = Report { told: Told::DaemonFailed(FULL), execution: None };
        for attempt in through {
            self.put(self.now, Event::TellsJob { job, attempt, report });
        }
    }

    fn follow(&mut self, client: usize, attended: Attended<(usize, Attempt)>) {
        self.reached.lost_with_daemon += attended.lost.len() as u64;
        for (job, attempt) in attended.lost {
            let report = Report { told: Told::DaemonFailed(LOST), execution: None };
            self.put(self.now, Event::TellsJob { job, attempt, report });
        }
        if attended.asks {
            self.reached.attended_again += 1;
            self.attend(client);
        }
    }

    fn attend(&mut self, client: usize) {
        let link = (Node::Client(client), Node::Daemon);
        self.request(link, Then::Attend { client }, |request| Message::Attend { request });
    }

    fn start_directly(&mut self, job: usize, attempt: Attempt) {
        let ClientJob { client, targets, plan, .. } = &self.jobs[job];
        let (client, target) = (*client, targets[attempt.part]);
        let may_be_repeated = plan.parts[attempt.part].may_be_repeated;
        let servers = self.resolve(target);
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        let tried = &mut run.tried[attempt.part];
        let then = Then::Direct { job, attempt };
        let is_fixed = matches!(target, Target::Server(_));
        let Some(server) = servers.into_iter().find(|server| is_fixed || !tried.contains(server)) else {
            let none = Served { ended: Ended::NotExecuted, execution: None };
            return self.put(self.now, Event::Ends(then, Answer::Served(none)));
        };
        tried.push(server);
        let part = PartId { job: JobId(job as u64), part: attempt.part };
        self.note(Happened::Sent(part));
        let link = (Node::Client(client), Node::Server(server));
        let call = |request| Message::Call { request, part, may_be_repeated };
        if let Some(request) = self.request(link, then, call) {
            self.jobs[job].run.as_mut().expect("it has begun").requests.insert(attempt, request);
        }
    }

    /// A request has been answered, or has failed.
    fn ends(&mut self, then: Then, answer: Answer) {
        match (then, answer) {
            (Then::Direct { job, attempt }, Answer::Served(served)) => self.ended(job, attempt, served),
            (Then::Direct { job, attempt }, Answer::Failed(failure)) => {
                self.ended(job, attempt, Served { ended: failure.ended(), execution: None });
            }
            (Then::Run { job }, answer) => self.answered(job, answer),
            (Then::Attend { client }, answer) => {
                let how = match answer {
                    Answer::Attended(how) => how,
                    _ => Attendance::Died,
                };
                let attended = self.clients[client].expected.attended(how);
                self.follow(client, attended);
            }
            (Then::OfTask { task, attempt }, Answer::Served(served)) => {
                self.ended_of_task(task, attempt, served);
            }
            (Then::OfTask { task, attempt }, Answer::Failed(failure)) => {
                self.ended_of_task(task, attempt, Served { ended: failure.ended(), execution: None });
            }
            (then, answer) => panic!("{answer:?} is not for {then:?}"),
        }
    }

    fn ended(&mut self, job: usize, attempt: Attempt, served: Served) {
        let now = nanos(self.now);
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        if run.is_over {
            return;
        }
        run.requests.remove(&attempt);
        if run.driven.end(attempt, served.ended, now) {
            run.answers[attempt.part] = served.execution;
        }
        self.carry_out(job);
    }

    fn answered(&mut self, job: usize, answer: Answer) {
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        run.at_daemon = None;
        let through = std::mem::take(&mut run.through);
        let reports = match answer {
            Answer::Reports(reports) => reports,
            Answer::Failed(failure) => {
                vec![Report { told: Told::DaemonFailed(failure), execution: None }; through.len()]
            }
            other => panic!("{other:?} is no answer to a job"),
        };
        for (attempt, report) in through.into_iter().zip(reports) {
            self.told(job, attempt, report);
        }
    }

    fn told(&mut self, job: usize, attempt: Attempt, report: Report) {
        let now = self.now;
        let run = self.jobs[job].run.as_mut().expect("it has begun");
        if run.is_over {
            return;
        }
        // The daemon's time is a little shorter.
        let is_late = report.told == Told::Cancelled
            && run.ends_by[attempt.part]
                .is_some_and(|by| is_nearly_over(Duration::from_nanos(by.saturating_sub(now))));
        let told = if is_late { Told::Late } else { report.told };
        match run.trip.told(attempt, told, &run.driven.machine) {
            Next::Ended(ended) => self.ended(job, attempt, Served { ended, execution: report.execution }),
            Next::Directly => {
                self.reached.went_directly += 1;
                self.carry_out(job);
            }
            Next::Nothing => self.reached.passed_over += 1,
        }
    }

    // The daemon.

    fn daemon_gets(&mut self, from: Node, message: Message) {
        let Node::Client(client) = from else { panic!("{from:?} is no client") };
        match message {
            Message::Run { request, listed } => self.take(listed, To::Caller(request)),
            Message::Forward { listed, tokens } => self.take(listed, To::Client(client, tokens)),
            Message::Attend { request } => {
                if self.daemon.has_drained {
                    return self.reply(Node::Daemon, request, Answer::Attended(Attendance::Over), 0);
                }
                self.daemon.attending.push(request);
                self.put(self.now + ATTENDS, Event::AttendedEnough(request));
            }
            Message::GivesUp { request } => self.give_up_task(request),
            other => panic!("{other:?} is not for a daemon"),
        }
    }

    fn take(&mut self, listed: Listed, to: To) {
        let id = TaskId(self.daemon.next_task);
        self.daemon.next_task += 1;
        let ends_by = listed.time.map(|time| nanos(self.now).after(time));
        let at_once = listed.at_once;
        let task = Task { id, listed, to, come: self.now };
        let octets = task.listed.parts.len();
        match self.daemon.desk.take(task, octets, at_once, nanos(self.now)) {
            Taken::Begins(begun) => {
                self.note(Happened::Taken { task: id, ends_by });
                self.begin_task(begun);
            }
            Taken::Waits => {
                self.reached.queued += 1;
                self.note(Happened::Taken { task: id, ends_by });
            }
            Taken::Refused(task) => {
                self.reached.refused += 1;
                match task.to {
                    To::Caller(request) => self.reply(Node::Daemon, request, Answer::Failed(FULL), 0),
                    To::Client(client, tokens) => {
                        let report = Report { told: Told::Failed(FULL), execution: None };
                        for token in tokens {
                            self.tell_client(Node::Daemon, client, token, report);
                        }
                    }
                }
            }
        }
    }

    fn begin_task(&mut self, begun: Begun<Task>) {
        let left = begun.left(begun.task.listed.time);
        self.reached.late_at_daemon += u64::from(left == Some(Duration::ZERO));
        let listed = begun.task.listed.parts.iter();
        let parts: Vec<ListedPart> =
            listed.map(|part| ListedPart { time: begun.left(part.time), ..*part }).collect();
        let id = begun.task.id;
        let quorum = begun.task.listed.quorum;
        let mut run = TaskRun { task: begun.task, next: 0, calls: None };
        match run.task.to {
            To::Caller(request) if self.daemon.given_up.contains(&request) => {
                self.reached.given_up_at_daemon += 1;
                self.daemon.running.insert(id, run);
                self.finish_task(id);
            }
            To::Caller(_) => {
                run.calls = Some(self.calls(parts, quorum, left));
                self.daemon.running.insert(id, run);
                self.carry_out_task(id);
            }
            To::Client(..) => {
                run.task.listed.parts = parts;
                self.daemon.running.insert(id, run);
                self.forward(id);
            }
        }
    }

    fn calls(&mut self, parts: Vec<ListedPart>, quorum: Quorum, time: Option<Duration>) -> Calls {
        let servers: Vec<Vec<usize>> = parts.iter().map(|part| self.resolve(part.target)).collect();
        let planned = |(part, servers): (&ListedPart, &Vec<usize>)| Part {
            time: part.time,
            may_be_repeated: part.may_be_repeated,
            servers: servers.len() as u32,
            // Of those alone that may be repeated.
            hedge_after: Some(Duration::from_millis(2)),
        };
        let planned: Vec<Part> = parts.iter().zip(&servers).map(planned).collect();
        let plan = Plan { parts: planned, quorum, order: Order::AtOnce, time };
        let number = parts.len();
        Calls {
            driven: Driven::begin(plan, &self.daemon_budget, nanos(self.now)),
            parts,
            servers,
            tried: vec![Vec::new(); number],
            answers: vec![None; number],
            reports: vec![Report { told: Told::Cancelled, execution: None }; number],
            requests: BTreeMap::new(),
        }
    }

    fn carry_out_task(&mut self, task: TaskId) {
        let Some(run) = self.daemon.running.get_mut(&task) else { return };
        let Some(calls) = run.calls.as_mut() else { return };
        let steps = calls.driven.steps();
        let mut is_over = false;
        for step in steps {
            let Some(calls) = self.daemon.running.get_mut(&task).and_then(|run| run.calls.as_mut()) else {
                return;
            };
            match step {
                Step::Start { attempt, .. } => self.start_of_task(task, attempt),
                Step::Cancel(attempt) => {
                    if let Some(request) = calls.requests.remove(&attempt) {
                        self.pending.remove(&request);
                    }
                }
                Step::Tell { part, outcome } => {
                    let execution = calls.answers[part];
                    calls.reports[part] = Report { told: told(outcome), execution };
                }
                Step::Over(_) => is_over = true,
            }
        }
        if !is_over {
            return;
        }
        let run = self.daemon.running.get_mut(&task).expect("it runs");
        let Calls { driven, reports, .. } = run.calls.take().expect("it has made calls");
        self.machines.push(driven);
        match &run.task.to {
            To::Caller(request) => {
                let request = *request;
                self.reply(Node::Daemon, request, Answer::Reports(reports), 0);
                self.finish_task(task);
            }
            To::Client(client, tokens) => {
                let (client, token) = (*client, tokens[run.next]);
                run.next += 1;
                self.tell_client(Node::Daemon, client, token, reports[0]);
                self.forward(task);
            }
        }
    }

    fn start_of_task(&mut self, task: TaskId, attempt: Attempt) {
        let run = self.daemon.running.get_mut(&task).expect("it runs");
        let calls = run.calls.as_mut().expect("it makes calls");
        let ListedPart { part, may_be_repeated, .. } = calls.parts[attempt.part];
        let then = Then::OfTask { task, attempt };
        let tried = &mut calls.tried[attempt.part];
        let free = calls.servers[attempt.part].iter().find(|server| !tried.contains(server));
        let Some(server) = free.copied() else {
            let none = Served { ended: Ended::NotExecuted, execution: None };
            return self.put(self.now, Event::Ends(then, Answer::Served(none)));
        };
        tried.push(server);
        self.note(Happened::Asked(task));
        let link = (Node::Daemon, Node::Server(server));
        let call = |request| Message::Call { request, part, may_be_repeated };
        if let Some(request) = self.request(link, then, call)
            && let Some(calls) = self.daemon.running.get_mut(&task).and_then(|run| run.calls.as_mut())
        {
            calls.requests.insert(attempt, request);
        }
    }

    fn ended_of_task(&mut self, task: TaskId, attempt: Attempt, served: Served) {
        let now = nanos(self.now);
        let Some(calls) = self.daemon.running.get_mut(&task).and_then(|run| run.calls.as_mut()) else {
            return;
        };
        calls.requests.remove(&attempt);
        if calls.driven.end(attempt, served.ended, now) {
            calls.answers[attempt.part] = served.execution;
        }
        self.carry_out_task(task);
    }

    /// Has servers carry out the rest of a task's parts.
    fn forward(&mut self, task: TaskId) {
        loop {
            let run = &self.daemon.running[&task];
            let To::Client(client, tokens) = &run.task.to else { panic!("it is answered") };
            let (client, Some(token)) = (*client, tokens.get(run.next).copied()) else {
                return self.finish_task(task);
            };
            let ListedPart { part, target, may_be_repeated, time } = run.task.listed.parts[run.next];
            let passed = Duration::from_nanos(self.now - run.task.come);
            let left = run.task.listed.time.map(|time| time.saturating_sub(passed));
            let servers = self.resolve(target);
            let told = match servers.first().copied() {
                _ if left == Some(Duration::ZERO) => Told::Cancelled,
                None => Told::Failed(FULL),
                Some(server) if !self.servers[server].takes_forwarded => {
                    self.reached.carried_alone += 1;
                    let alone = ListedPart { part, target, may_be_repeated, time };
                    let calls = self.calls(vec![alone], Quorum::All, left);
                    self.daemon.running.get_mut(&task).expect("it runs").calls = Some(calls);
                    return self.carry_out_task(task);
                }
                Some(server) => {
                    let message = Message::PassedOn { part, token, client, may_be_repeated };
                    self.note(Happened::Asked(task));
                    self.daemon.running.get_mut(&task).expect("it runs").next += 1;
                    let to = Node::Server(server);
                    if self.send(Node::Daemon, to, message.clone(), 0) {
                        self.reached.passed_on += 1;
                        if self.chance(10) {
                            self.send(Node::Daemon, to, message, 0);
                        }
                    } else {
                        let report = Report { told: Told::Failed(FULL), execution: None };
                        self.tell_client(Node::Daemon, client, token, report);
                    }
                    continue;
                }
            };
            self.daemon.running.get_mut(&task).expect("it runs").next += 1;
            self.tell_client(Node::Daemon, client, token, Report { told, execution: None });
        }
    }

    fn finish_task(&mut self, task: TaskId) {
        self.daemon.running.remove(&task).expect("it runs");
        self.note(Happened::Answered(task));
        if let Some(begun) = self.daemon.desk.finish(nanos(self.now)) {
            self.begin_task(begun);
        }
        self.look_whether_drained();
    }

    fn look_whether_drained(&mut self) {
        if !self.daemon.desk.is_drained() || self.daemon.has_drained {
            return;
        }
        self.daemon.has_drained = true;
        self.reached.drained += 1;
        self.note(Happened::Drained);
        for request in std::mem::take(&mut self.daemon.attending) {
            self.reply(Node::Daemon, request, Answer::Attended(Attendance::Over), 0);
        }
        // Once what it has told has come.
        let leaves = self.now + 2 * TRAVEL_MAX;
        self.put(leaves, Event::DaemonLeaves(self.daemon.life));
    }

    /// A client does not wait for the answer any more.
    fn give_up_task(&mut self, request: u64) {
        let now = nanos(self.now);
        self.daemon.given_up.insert(request);
        let is_it = |run: &TaskRun| matches!(run.task.to, To::Caller(caller) if caller == request);
        let running = self.daemon.running.iter_mut().find(|(_, run)| is_it(run));
        if let Some((task, run)) = running
            && let Some(calls) = run.calls.as_mut()
        {
            let task = *task;
            calls.driven.give_up(now);
            self.reached.given_up_at_daemon += 1;
            self.carry_out_task(task);
        }
    }

    fn give_up_tasks_of(&mut self, client: usize) {
        let of_client = |run: &TaskRun| match run.task.to {
            To::Caller(request) => {
                let is_its = run
                    .task
                    .listed
                    .parts
                    .first()
                    .is_some_and(|part| self.jobs[part.part.job.0 as usize].client == client);
                is_its.then_some(request)
            }
            To::Client(..) => None,
        };
        let requests: Vec<u64> = self.daemon.running.values().filter_map(of_client).collect();
        requests.into_iter().for_each(|request| self.give_up_task(request));
    }

    fn daemon_dies(&mut self) {
        let has_jobs = !self.daemon.running.is_empty();
        self.reached.killed_with_jobs += u64::from(has_jobs);
        self.daemon.is_alive = false;
        for (_, run) in std::mem::take(&mut self.daemon.running) {
            drop(run);
        }
        self.daemon.desk = Desk::new(self.daemon.limits);
        self.daemon.attending.clear();
        self.note(Happened::Killed);
        self.break_links_of(Node::Daemon);
        if self.chance(80) {
            let back = self.now + self.rng.u64(0..20 * MS);
            self.put(back, Event::DaemonStarts);
        }
    }

    fn course(self) -> Course {
        let counts = self.daemon.desk.counts();
        let unmade = |client: &Client| {
            let is_further = |step: &&Step| matches!(step, Step::Start { attempt, .. } if attempt.number > 0);
            let made = client.steps.iter().filter(is_further).count() as u64;
            client.budget.counts().further - made
        };
        let left = Left {
            queued: counts.queued,
            busy: counts.busy,
            tokens: self.clients.iter().map(|client| client.expected.len()).sum(),
            unmade_attempts: self.clients.iter().map(unmade).sum(),
        };
        let mut machines = self.machines;
        machines.extend(self.jobs.into_iter().filter_map(|job| Some(job.run?.driven)));
        let steps = self.clients.into_iter().map(|client| (client.limits, client.steps)).collect();
        Course { entries: self.entries, left, machines, steps, reached: self.reached }
    }
}

fn any_job(rng: &mut Rng, clients: usize, names: usize, servers: usize) -> ClientJob {
    let falls_back = rng.bool();
    let way = match rng.u32(0..10) {
        0..=2 => Way::Direct { verifies: false },
        3..=6 => Way::Daemon { falls_back, at_once: rng.u32(0..4) == 0 },
        _ => Way::Forwarded { falls_back },
    };
    let limit = |rng: &mut Rng| Duration::from_micros(rng.u64(0..90_000));
    let is_forwarded = matches!(way, Way::Forwarded { .. });
    let time = (is_forwarded || rng.bool()).then(|| limit(rng));
    let (mut parts, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rng.usize(0..5) {
        let target = match rng.u32(0..3) {
            0 => Target::Server(rng.usize(0..servers)),
            _ => Target::Name(rng.usize(0..names)),
        };
        let known = if matches!(target, Target::Server(_)) { 1 } else { usize::MAX };
        parts.push(Part {
            time: (rng.u32(0..4) == 0).then(|| limit(rng)),
            may_be_repeated: rng.bool(),
            servers: u32::try_from(way.servers(known)).unwrap_or(u32::MAX),
            hedge_after: (rng.u32(0..3) == 0).then(|| Duration::from_micros(rng.u64(100..8_000))),
        });
        targets.push(target);
    }
    let quorum = match rng.u32(0..4) {
        0 => Quorum::All,
        1 => Quorum::Any,
        2 => Quorum::AtLeast(rng.usize(0..parts.len() + 2)),
        _ => Quorum::BestEffort,
    };
    let is_in_turn = matches!(way, Way::Direct { .. }) && rng.bool();
    let order = if is_in_turn { Order::InTurn } else { Order::AtOnce };
    let plan = Plan { parts, quorum, order, time };
    ClientJob { client: rng.usize(0..clients), plan, way, targets, run: None }
}

/// What the daemon reports of a part.
fn told(outcome: Outcome) -> Told {
    match outcome {
        Outcome::Result(_) => Told::Result,
        Outcome::Exception(_, RaisedBy::Application) => Told::Exception,
        Outcome::Exception(_, RaisedBy::System) => Told::Failed(FULL),
        Outcome::Unknown => Told::Lost,
        Outcome::Cancelled(_) => Told::Cancelled,
    }
}

/// What the caller can tell from it.
fn told_as(outcome: Outcome, execution: Option<ExecutionId>) -> ToldAs {
    match (outcome, execution) {
        (Outcome::Result(_) | Outcome::Exception(_, RaisedBy::Application), Some(execution)) => {
            ToldAs::Answer(execution)
        }
        // NO_PERMISSION and its like, COMPLETED_NO.
        (Outcome::Exception(..) | Outcome::Cancelled(Executed::No), _) => ToldAs::NotExecuted,
        (Outcome::Cancelled(Executed::Maybe) | Outcome::Unknown, _) => ToldAs::MayBeExecuted,
        (Outcome::Result(_), None) => panic!("a result is of an execution"),
    }
}
