//! What a deployment consists of and what it is asked to do: plain data, with names resolved to indices and values
//! within their ranges. Times are exact to the nanosecond, sizes are octets.

mod fields;
mod keys;
mod problem;
mod read;
mod write;

use std::ops::Range;
use std::time::Duration;

use crate::PauseTimes;

pub use fields::Profiles;
pub use keys::{KEYS, Key, markdown};
pub use problem::Problem;
pub(crate) use read::{BANDWIDTHS, CACHE_MODES, SPEEDS};
pub use read::{read, read_with};
pub use write::write;

/// A deployment and its workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name in reports.
    pub name: String,
    /// The seed of the first replication. Replication `k` has seed `seed + k`.
    pub seed: u64,
    /// How long a run is observed, after its warm-up.
    pub span: Duration,
    /// What is left out at the beginning.
    pub warm_up: WarmUp,
    /// When to stop repeating.
    pub replications: Replications,
    /// Groups of equal hosts.
    pub hosts: Vec<HostGroup>,
    /// Links between hosts of two groups, both ways. Hosts that share no rule have the default link.
    pub links: Vec<LinkRule>,
    /// The link between hosts for which no rule stands.
    pub default_link: Link,
    /// Processes that serve.
    pub servers: Vec<Server>,
    /// What clients do.
    pub classes: Vec<Class>,
    /// How long each step of a call takes.
    pub dwell: DwellTimes,
}

/// What is left out at the beginning of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// This much time.
    Fixed(Duration),
    /// As much as the marginal standard error rule (MSER-5) finds in the response times.
    Found,
}

/// When to stop repeating.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replications {
    /// At least this many: 1 to 1,000.
    pub min: u32,
    /// At most this many.
    pub max: u32,
    /// Stop when the half-width of each class's confidence interval is at most this part of its mean.
    pub half_width: f64,
    /// The level of confidence, as 0.95.
    pub confidence: f64,
}

/// Equal hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct HostGroup {
    /// The group's name.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Processors of each.
    pub cores: u32,
    /// What it takes a processor to go from one thread to another.
    pub switch_time: Duration,
    /// How many times as fast as those of [`DwellTimes`] its processors are.
    pub speed: f64,
}

impl HostGroup {
    /// The processors of all its hosts.
    pub fn processors(&self) -> u64 {
        u64::from(self.count) * u64::from(self.cores)
    }
}

/// The most processors of all hosts of a scenario. Where each is a host of its own, they take half a gigabyte before anything happens,
/// and less than two when all of them have threads that wait.
pub const CORES_MAX: u64 = 1_000_000;

/// A link between hosts of two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRule {
    /// Indices of groups. Equal ones mean the link between two hosts of one group.
    pub between: (usize, usize),
    /// The link.
    pub link: Link,
    /// When nothing passes it, in the order of time.
    pub outages: Vec<Outage>,
}

/// A time in which nothing passes a link. What is under way when it begins arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, from the beginning of a run on, its warm-up included.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// What becomes of what is sent meanwhile.
    pub kind: OutageKind,
}

/// What becomes of what is sent while nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// It is lost, and leaves when TCP tries again: [`Link::retransmit_after`] after the end. Nothing else leaves before.
    Cut,
    /// It is held, and leaves at the end.
    Hold,
}

/// What carries messages between two hosts, each way by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// How long an octet is under way.
    pub latency: Duration,
    /// Added to the latency of each packet: from zero to this, evenly.
    pub jitter: Duration,
    /// Bits a second; `None` without bound.
    pub bandwidth: Option<u64>,
    /// Octets of payload of a packet.
    pub mtu: u32,
    /// Octets of headers that each packet has beside its payload.
    pub packet_overhead: u32,
    /// The part of packets that are lost. TCP sends them again after `retransmit_after`.
    pub loss: f64,
    /// The part of packets that come later than their successors. TCP holds these back meanwhile.
    pub reorder: f64,
    /// The part of packets that come twice. TCP drops the second; the link carries both.
    pub duplicate: f64,
    /// When a lost packet is sent again.
    pub retransmit_after: Duration,
}

/// A process with objects, on each host of its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The server's name.
    pub name: String,
    /// The index of its host group. Calls go to one process of them: see [`Target`].
    pub hosts: usize,
    /// Threads that carry out requests. `None`: one for each connection.
    pub threads: Option<u32>,
    /// Priority lanes, the lowest first; empty: one lane with `threads`.
    pub lanes: Vec<Lane>,
    /// Objects of each process.
    pub objects: u64,
    /// Octets of state of an object, beside what an element of an extent takes.
    pub object_octets: u32,
    /// What a request locks while it executes.
    pub lock: ServerLock,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// Threads for a range of priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The lowest CORBA priority that it serves: 0 to 32,767.
    pub priority: i16,
    /// Its threads.
    pub threads: u32,
}

/// What a request locks while it executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLock {
    /// Nothing.
    None,
    /// Its object.
    Object,
    /// All objects of the process: one request at a time.
    Process,
}

/// An operation of a server's objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Its name among those of the server. On the wire it ends before a `#`: [`wire_name`](Self::wire_name).
    pub name: String,
    /// Whether it may be answered by a caching proxy, changes state, or neither.
    pub kind: OperationKind,
    /// Octets of its request's arguments.
    pub request_octets: u32,
    /// Octets of its results.
    pub reply_octets: u32,
    /// Whether nothing is answered.
    pub is_oneway: bool,
    /// What the servant computes or sleeps.
    pub demand: Spread,
    /// Whether the servant sleeps (a station) instead of taking a processor.
    pub sleeps: bool,
    /// Calls that the servant makes before it answers, one after the other.
    pub calls: Vec<Call>,
}

/// What an operation does to state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// It returns a cached attribute.
    Read,
    /// It changes a cached attribute; updates go to the proxies that hold it.
    Write,
    /// It has nothing to do with caches.
    Plain,
}

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Always this.
    Fixed(Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
    /// Evenly from the first to the second.
    Uniform(Duration, Duration),
    /// One of these, each as likely: what was measured.
    Samples(Vec<Duration>),
}

/// Calls of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The index of the server.
    pub server: usize,
    /// The index of its operation.
    pub operation: usize,
    /// How many times, one after the other.
    pub times: u32,
    /// Which object.
    pub target: Target,
}

/// Which process and object a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A random object of a random process of the server.
    Random,
    /// The objects in turn: all of one process, then those of the next.
    Robin,
    /// The object with this number, of the first process.
    Object(u64),
}

/// Clients that do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The class's name.
    pub name: String,
    /// The index of the host group; clients are spread evenly.
    pub hosts: usize,
    /// When its cycles begin.
    pub arrivals: Arrivals,
    /// What a cycle does: one of these.
    pub mix: Vec<Weighted>,
    /// Which of them.
    pub choice: Choice,
    /// The CORBA priority of its calls.
    pub priority: Option<i16>,
    /// What its proxies cache.
    pub cache: Option<Cache>,
}

/// When cycles begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// So many clients, each of which thinks between its cycles.
    Closed {
        /// The number of clients.
        clients: u32,
        /// How long each thinks.
        think: Spread,
    },
    /// Cycles begin whatever became of those before.
    Open {
        /// The times between two.
        between: Spread,
        /// How many begin together.
        burst: u32,
    },
    /// At these times after the beginning, in order.
    Trace(Vec<Duration>),
}

/// Which cycle of a class's mix comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A random one, by weight.
    #[default]
    Random,
    /// One after the other, whatever their weights. The clients of a closed class begin at different ones.
    InTurn,
}

/// A cycle and how often it comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// Relative to the sum of the class's weights; above 0.
    pub weight: f64,
    /// What it does.
    pub cycle: Cycle,
}

/// What a client does in one cycle.
#[derive(Debug, Clone, PartialEq)]
pub enum Cycle {
    /// Calls, one after the other.
    Calls(Vec<Call>),
    /// A job of several calls at once.
    Job {
        /// How it runs.
        architecture: Architecture,
        /// Its parts.
        parts: Vec<Call>,
        /// The index of the server that is the daemon: its threads run jobs.
        daemon: usize,
    },
}

/// The ways to run a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// One part after the other, with a handle and a verification for each.
    Sequential,
    /// All handles from the daemon, then all parts at once.
    HandleDriven,
    /// The daemon forwards; servers call back.
    Forwarding,
    /// The daemon calls all servers and joins their results.
    Synchronous,
}

/// What proxies of a class hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    /// How stale a read may be.
    pub lag: Duration,
    /// The part of the objects that fits: 0 to 1. What does not fit is called.
    pub capacity: f64,
    /// Octets of an update in a message.
    pub update_octets: u32,
    /// How updates leave.
    pub mode: CacheMode,
}

/// How updates of cached state leave a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// Together, at the end of the lag or when a message is full.
    Bounded,
    /// At once; a write waits for nobody.
    Push,
    /// At once; a write waits for those that hold the object.
    Linearizable,
    /// When holders ask what has changed, as the ORB's own caching proxies do.
    Asked(Asking),
}

/// How holders ask what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// After a read that had to ask a server, so many of the next calls to it ask with their requests.
    pub carried_probes: u8,
    /// Whether all that fits is held from the beginning. Else the first read of an object asks for its state.
    pub is_warm: bool,
}

impl Asking {
    /// As the ORB's settings are; all is held from the beginning.
    pub const DEFAULT: Asking = Asking { carried_probes: 16, is_warm: true };
}

/// How long each step of a call takes on a processor of speed 1. MinORB's simulator has these states.
#[derive(Debug, Clone, PartialEq)]
pub struct DwellTimes {
    /// Client: from the stub to the request.
    pub find_proxy: Spread,
    /// Client: writing a request, and sending it.
    pub write_request: Spread,
    /// Server: receiving and reading a request.
    pub read_request: Spread,
    /// Either side, for each message: what the system's protocols take beside the send and the receive.
    pub channel: Spread,
    /// Server: from the object key to the servant.
    pub find_object: Spread,
    /// Server: the upcall, beside the operation's own demand.
    pub execute: Spread,
    /// Server: writing a reply, and sending it.
    pub write_reply: Spread,
    /// Client: receiving and reading a reply.
    pub read_reply: Spread,
    /// Either side: from the wake-up of a thread that waits to its first instruction.
    pub thread_switch: Spread,
    /// A read that a cache answers.
    pub cached_read: Spread,
    /// Client: taking one update into its cache.
    pub apply_update: Spread,
    /// Server: noting a write for a holder that asks, and having it in an answer.
    pub tell_update: Spread,
    /// Either side: a question of a cache that a call carries, and its answer, beside the updates in it.
    pub carry_probe: Spread,
    /// For each 1,000 octets of a body, marshalled or read: a single one often takes less than a nanosecond.
    pub per_kilo_octet: Duration,
    /// What the work of a thread takes longer after a pause.
    pub pauses: PauseTimes,
}

impl DwellTimes {
    /// What marshalling or reading a body of so many octets takes.
    pub fn body(&self, octets: u32) -> Duration {
        self.per_kilo_octet * octets / 1_000
    }
}

impl Scenario {
    /// The processors of all its hosts; at most [`CORES_MAX`] can be simulated.
    pub fn processors(&self) -> u64 {
        self.hosts.iter().map(HostGroup::processors).sum()
    }

    /// The name of a host, by its number over all groups: as `back`, or as `clients[3]` where its group has several.
    pub fn host_name(&self, host: u32) -> String {
        let mut number = host;
        for group in &self.hosts {
            if number >= group.count {
                number -= group.count;
            } else if group.count == 1 {
                return group.name.clone();
            } else {
                return format!("{}[{number}]", group.name);
            }
        }
        String::new()
    }

    /// The link from a host of one group to a host of another, or of the same one.
    pub fn link_between(&self, from: usize, to: usize) -> &Link {
        self.link_rule_between(from, to).map_or(&self.default_link, |rule| &self.links[rule].link)
    }

    /// The index of the rule for the link between hosts of two groups; `None` for the default link.
    pub fn link_rule_between(&self, from: usize, to: usize) -> Option<usize> {
        let is_it = |rule: &LinkRule| rule.between == (from, to) || rule.between == (to, from);
        self.links.iter().position(is_it)
    }
}

impl LinkRule {
    /// The times in which nothing leaves, from the beginning of a run on: outages, and what TCP waits after a cut. They are in their
    /// order, and none touches another.
    pub fn closed(&self) -> Vec<Range<Duration>> {
        let mut closed: Vec<Range<Duration>> = Vec::new();
        for outage in &self.outages {
            let leaves = outage.leaves(&self.link);
            match closed.last_mut() {
                Some(last) if last.end >= outage.from => last.end = last.end.max(leaves),
                _ => closed.push(outage.from..leaves),
            }
        }
        closed
    }

    /// A link that always passes what is sent.
    pub fn new(between: (usize, usize), link: Link) -> LinkRule {
        LinkRule { between, link, outages: Vec::new() }
    }
}

impl Outage {
    /// When what was sent meanwhile leaves.
    pub fn leaves(&self, link: &Link) -> Duration {
        match self.kind {
            OutageKind::Cut => self.until + link.retransmit_after,
            OutageKind::Hold => self.until,
        }
    }
}

impl Server {
    /// The threads of each pool of a process: of its lanes, or of its only one. Empty where each connection has a thread.
    pub fn pools(&self) -> Vec<u32> {
        match &self.lanes[..] {
            [] => self.threads.into_iter().collect(),
            lanes => lanes.iter().map(|lane| lane.threads).collect(),
        }
    }

    /// Which of its pools serves requests with a priority, or without: the highest lane that begins at or below it, or the lowest.
    pub fn pool_for(&self, priority: Option<i16>) -> usize {
        let priority = priority.unwrap_or(0);
        self.lanes.iter().rposition(|lane| lane.priority <= priority).unwrap_or(0)
    }
}

impl Operation {
    /// Its name on the wire. What follows a `#` only tells operations of one name apart that differ in octets or nested calls:
    /// no name of an IDL has that character.
    pub fn wire_name(&self) -> &str {
        self.name.split('#').next().unwrap_or_default()
    }
}

impl Link {
    /// What carries messages between processes of one host.
    pub const WITHIN_A_HOST: Link = Link {
        latency: Duration::ZERO,
        jitter: Duration::ZERO,
        bandwidth: None,
        mtu: u32::MAX,
        packet_overhead: 0,
        loss: 0.0,
        reorder: 0.0,
        duplicate: 0.0,
        retransmit_after: Duration::ZERO,
    };
}

impl Default for Replications {
    /// At least 5 and at most 50, until means are known to 2.5 % with a confidence of 95 %.
    fn default() -> Self {
        Replications { min: 5, max: 50, half_width: 0.025, confidence: 0.95 }
    }
}

impl Default for DwellTimes {
    /// No time at all.
    fn default() -> Self {
        let none = || Spread::Fixed(Duration::ZERO);
        DwellTimes {
            find_proxy: none(),
            write_request: none(),
            read_request: none(),
            channel: none(),
            find_object: none(),
            execute: none(),
            write_reply: none(),
            read_reply: none(),
            thread_switch: none(),
            cached_read: none(),
            apply_update: none(),
            tell_update: none(),
            carry_probe: none(),
            per_kilo_octet: Duration::ZERO,
            pauses: PauseTimes::default(),
        }
    }
}

impl Default for Spread {
    fn default() -> Self {
        Spread::Fixed(Duration::ZERO)
    }
}

impl Spread {
    /// The mean.
    pub fn mean(&self) -> Duration {
        match self {
            Spread::Fixed(mean) | Spread::Exponential(mean) => *mean,
            Spread::Uniform(low, high) => (*low + *high) / 2,
            Spread::Samples(samples) => {
                let sum: Duration = samples.iter().sum();
                sum / u32::try_from(samples.len()).unwrap_or(u32::MAX).max(1)
            }
        }
    }

    /// Whether it is always zero.
    pub fn is_zero(&self) -> bool {
        self.mean().is_zero()
    }
}

/// A link without bound, delay and loss, with the packets of TCP over Ethernet.
pub const DEFAULT_LINK: Link = Link {
    latency: Duration::ZERO,
    jitter: Duration::ZERO,
    bandwidth: None,
    mtu: 1_448,
    packet_overhead: 90,
    loss: 0.0,
    reorder: 0.0,
    duplicate: 0.0,
    retransmit_after: Duration::from_millis(200),
};
