//! Lanes of an ORB: kinds of work that do not wait for one another.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::Orb;
use super::settings::SettingError;
use crate::base::config::{OrbConfig, ServerConcurrency, Waiting};
use crate::base::lane::{LANES_MAX, LaneId};
use crate::base::spawner::NativePriority;
use crate::base::thread_settings::{AtStart, LaneThread, SETTINGS_MAX, ThreadSettings, ThreadSettingsId};
use crate::driver::client::{InGroup, enter_lane};
use crate::driver::orb_core::OrbCore;
use crate::driver::server::lane::{LaneParts, ServerLane};
use crate::object::ObjectRef;
use crate::object::priority::{Priority, RealTimeConfig};
use crate::object::threadpool::ThreadpoolId;
use crate::transport::{CustomTransport, Endpoint, TcpProperties, socket_options};

/// Settings of a further lane of an ORB; [`OrbBuilder::lane`](crate::OrbBuilder::lane) takes it.
///
/// A lane is what one kind of work owns, so that another kind does not delay it: connections to servers and the threads
/// that look after them, listening sockets, connections of clients and the threads that serve them, and limits. Every ORB
/// has a default lane, and nearly every ORB has no other. Objects, adapters and their managers belong to all lanes.
///
/// What is not set here is as it is for the ORB. A limit bounds this lane alone: two lanes with a limit of 1,000 connections
/// may have 2,000 together. An ORB has at most 64 lanes.
///
/// ```
/// use ironorb::{LaneConfig, Orb};
///
/// let urgent = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0").client_connections_max(16);
/// let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.lane(urgent).build()?;
/// let urgent = orb.lane("urgent").expect("it was given to the builder");
/// urgent.run(|| { /* calls made here use the lane's own connections and threads */ });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct LaneConfig {
    name: String,
    endpoints: Vec<String>,
    publish: Vec<String>,
    priority: Option<Priority>,
    threads: ThreadSettings,
    bad_threads: Option<String>,
    is_best_effort: bool,
    threadpool: Option<String>,
    tcp: Option<TcpProperties>,
    limits: Limits,
}

/// What a lane has otherwise than its ORB.
#[derive(Debug, Clone, Default)]
struct Limits {
    concurrency: Option<ServerConcurrency>,
    client_waiting: Option<Waiting>,
    server_waiting: Option<Waiting>,
    connections_per_endpoint_max: Option<usize>,
    client_connections_max: Option<usize>,
    server_connections_max: Option<usize>,
    server_threads_max: Option<usize>,
    server_threads_static: Option<usize>,
    server_requests_max: Option<Option<usize>>,
    receive_memory_max: Option<Option<usize>>,
    transmit_memory_max: Option<Option<usize>>,
    background_threads_max: Option<usize>,
    callback_threads_max: Option<usize>,
    socket_priority: Option<Option<u32>>,
    busy_poll: Option<Option<Duration>>,
    tcp_quick_ack: Option<bool>,
    tcp_user_timeout: Option<Option<Duration>>,
}

impl Limits {
    /// Has a lane with a priority make all of its threads at its start, unless the program says of its threads what it wants.
    fn be_static(&mut self, orb: &OrbConfig) {
        if self.concurrency.is_some() || orb.concurrency != ServerConcurrency::default() {
            return;
        }
        let of_orb = Some(orb.server_threads_static).filter(|threads| *threads > 0);
        let [limit, threads] = [self.server_threads_max, self.server_threads_static.or(of_orb)];
        let threads_static = threads.or(limit).unwrap_or(STATIC_THREADS);
        // A limit beside a number of static threads declares that others come and go.
        let threads_max = limit.unwrap_or(threads_static).max(1);
        self.concurrency = Some(ServerConcurrency::Hybrid { threads_max });
        self.server_threads_static = Some(threads_static);
    }

    fn apply_to(&self, config: &mut OrbConfig) {
        fn set<T: Clone>(place: &mut T, own: &Option<T>) {
            if let Some(own) = own {
                place.clone_from(own);
            }
        }
        set(&mut config.concurrency, &self.concurrency);
        set(&mut config.client_waiting, &self.client_waiting);
        set(&mut config.server_waiting, &self.server_waiting);
        set(&mut config.connections_per_endpoint_max, &self.connections_per_endpoint_max);
        set(&mut config.client_connections_max, &self.client_connections_max);
        set(&mut config.server_connections_max, &self.server_connections_max);
        set(&mut config.server_threads_max, &self.server_threads_max);
        set(&mut config.server_threads_static, &self.server_threads_static);
        set(&mut config.server_requests_max, &self.server_requests_max);
        set(&mut config.receive_memory_max, &self.receive_memory_max);
        set(&mut config.transmit_memory_max, &self.transmit_memory_max);
        set(&mut config.background_threads_max, &self.background_threads_max);
        set(&mut config.callback_threads_max, &self.callback_threads_max);
        set(&mut config.socket_priority, &self.socket_priority);
        set(&mut config.busy_poll, &self.busy_poll);
        set(&mut config.tcp_quick_ack, &self.tcp_quick_ack);
        set(&mut config.tcp_user_timeout, &self.tcp_user_timeout);
    }
}

impl LaneConfig {
    /// A lane with this name, which no other lane of its ORB may have.
    pub fn new(name: &str) -> LaneConfig {
        LaneConfig { name: name.to_owned(), ..LaneConfig::default() }
    }

    /// Listens at an address, in the notation of [`OrbBuilder::endpoint`](crate::OrbBuilder::endpoint). Requests that come
    /// there are served by the lane's threads. May be called several times. [`build`](crate::OrbBuilder::build) reports an
    /// address that cannot be understood. Without an endpoint the lane only calls.
    pub fn endpoint(mut self, address: &str) -> Self {
        self.endpoints.push(address.to_owned());
        self
    }

    /// Puts this address into the lane's references instead of the one listened at, as
    /// [`OrbBuilder::publish`](crate::OrbBuilder::publish) does for the ORB's.
    pub fn publish(mut self, address: &str) -> Self {
        self.publish.push(address.to_owned());
        self
    }

    /// Gives all threads of the lane a priority (`ThreadpoolLane::lane_priority`; RTCORBA 1.2, 5.9): they accept, receive,
    /// make upcalls, and look after the lane's connections at it. Needs [`OrbBuilder::real_time`](crate::OrbBuilder::real_time);
    /// [`build`](crate::OrbBuilder::build) reports a priority that its mapping does not map. A thread of the application that
    /// enters the lane keeps its own priority. A lane with a priority that says nothing of its threads has eight, which are made
    /// when it begins to listen, and starts no other. Default: the threads have none.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Makes the lane one of a thread pool (`create_threadpool_with_lanes`; RTCORBA 1.2, 5.9): it serves the adapters whose
    /// [policies](crate::PoaPolicies::threadpool) name the pool, and no others. Lanes of one pool lend their threads to one
    /// another if they [may](crate::ThreadPoolConfig::borrowing). A pool without a priority is one lane without one. Needs
    /// [`OrbBuilder::real_time`](crate::OrbBuilder::real_time) and an endpoint; [`build`](crate::OrbBuilder::build) reports what
    /// is missing. Default: the lane serves the adapters without a pool.
    pub fn threadpool(mut self, name: &str) -> Self {
        self.threadpool = Some(name.to_owned());
        self
    }

    /// Lets the lane's threads run on these processors only, which are counted from 0. [`build`](crate::OrbBuilder::build)
    /// reports an empty list, and one with none that the process may use. Processors that are not there are left out by the
    /// system. Default: those of the thread that makes them.
    pub fn processors(mut self, processors: impl IntoIterator<Item = usize>) -> Self {
        let mut set = CpuSet::new();
        for processor in processors {
            match processor {
                0..CpuSet::MAX_CPU => set.set(processor),
                _ => self.refuse(format!(
                    "processor {processor}: write numbers from 0 to {}",
                    CpuSet::MAX_CPU - 1
                )),
            }
        }
        self.threads.processors = Some(set);
        self
    }

    /// Sets the nice value of the lane's threads where they have no real-time class, from -20 to 19; a lower one gets more of
    /// a processor. This is what a lane can have with [`SchedulingPolicy::Other`](crate::rt::SchedulingPolicy::Other), and
    /// where the system refuses real-time priorities: it shifts shares, and bounds nothing. A value below the process's own
    /// needs RLIMIT_NICE or CAP_SYS_NICE; where the system refuses, a line on standard error says so. Default: as the thread
    /// that makes them.
    pub fn nice(mut self, nice: i8) -> Self {
        if !(-20..=19).contains(&nice) {
            self.refuse(format!("nice value {nice}: write a number from -20 to 19"));
        }
        self.threads.nice = Some(nice);
        self
    }

    /// Sets by how much timers of the lane's threads may be late where they have no real-time class (`PR_SET_TIMERSLACK`),
    /// from 1 ns to 1 s. Default: as the thread that makes them, usually 50 us.
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        match u64::try_from(slack.as_nanos()) {
            Ok(ns @ 1..=TIMER_SLACK_NS_MAX) => self.threads.timer_slack_ns = NonZeroU64::new(ns),
            _ => self.refuse(format!("timer slack {slack:?}: write a time from 1 ns to 1 s")),
        }
        self
    }

    /// Gives this many bytes of the stacks of the lane's threads memory before they begin their work, so that no call waits
    /// for a page; at most 16 MiB. A stack is at least 1 MiB larger than this. Default: 0. Locked memory
    /// ([`rt::lock_memory`](crate::rt::lock_memory)) stays once it is there.
    pub fn prefault_stack_bytes(mut self, bytes: usize) -> Self {
        if bytes > PREFAULT_STACK_BYTES_MAX {
            self.refuse(format!("{bytes} bytes of stacks: write at most 16MiB"));
        }
        self.threads.prefault_stack_bytes = bytes.min(PREFAULT_STACK_BYTES_MAX);
        self
    }

    /// Has each thread of the lane take this many bytes from the allocator, write them and give them back before it begins
    /// its work; at most 1 GiB. Connections' buffers then come from memory that is there, if the allocator keeps it: glibc's
    /// needs thresholds above this (`ironorb rt doctor` says how). Default: 0.
    pub fn prefault_heap_bytes(mut self, bytes: usize) -> Self {
        if bytes > PREFAULT_HEAP_BYTES_MAX {
            self.refuse(format!("{bytes} bytes of heap: write at most 1GiB"));
        }
        self.threads.prefault_heap_bytes = bytes.min(PREFAULT_HEAP_BYTES_MAX);
        self
    }

    /// Has each thread of the lane call this function before it begins its work, when it has its priority and the other
    /// settings: to take its memory from an area of the lane's own (the crate `ironorb-lane-alloc`), to name it for a tracer,
    /// to confine it. The threads are all that the ORB makes for the lane: those that accept, serve, receive, send and look
    /// after connections. Each waits until the function has returned, so it may block where the lane may begin late. When it
    /// panics, the thread goes on with its work. [`prefault_heap_bytes`](Self::prefault_heap_bytes) come after it. Default:
    /// none.
    ///
    /// ```
    /// use ironorb::{LaneConfig, LaneThread};
    ///
    /// let tell = |thread: &LaneThread<'_>| println!("{} is a {}", thread.name(), thread.class());
    /// let urgent = LaneConfig::new("urgent").endpoint("iiop://127.0.0.1:0").at_thread_start(tell);
    /// ```
    pub fn at_thread_start(mut self, run: fn(&LaneThread<'_>)) -> Self {
        self.threads.at_start = Some(AtStart(run));
        self
    }

    /// Keeps the first mistake, for `build` to report.
    fn refuse(&mut self, why: String) {
        self.bad_threads.get_or_insert(why);
    }

    /// The number of the settings of the lane's threads; `None` if none is set.
    fn threads(&self, priority: Option<NativePriority>) -> Result<Option<ThreadSettingsId>, String> {
        if let Some(why) = &self.bad_threads {
            return Err(why.clone());
        }
        if let Some(processors) = &self.threads.processors {
            check_processors(processors)?;
        }
        let settings = ThreadSettings { priority, ..self.threads };
        if settings == ThreadSettings::default() {
            return Ok(None);
        }
        settings.id().map(Some).ok_or_else(|| {
            format!("lanes of this process have had {SETTINGS_MAX} kinds of threads: make ORBs with settings that recur")
        })
    }

    /// Has the lane serve requests that are not scheduled: those of operations without a timing (`@rt` in IDL), to objects
    /// whose adapter has a [priority model](crate::PoaPolicies::priority_model). References lead clients of IronORB with real
    /// time there; a request that comes elsewhere is served there, and counted
    /// ([`Orb::misplaced_requests`](crate::Orb::misplaced_requests)).
    ///
    /// The lane has no priority, and its threads never take the one of a request. An ORB has at most one such lane. It needs
    /// [`OrbBuilder::real_time`](crate::OrbBuilder::real_time) and an [`endpoint`](Self::endpoint) with TCP;
    /// [`build`](crate::OrbBuilder::build) reports what is missing.
    pub fn best_effort(mut self) -> Self {
        self.is_best_effort = true;
        self
    }

    /// Sets which of the lane's threads runs a servant.
    pub fn concurrency(mut self, concurrency: ServerConcurrency) -> Self {
        self.limits.concurrency = Some(concurrency);
        self
    }

    /// Sets how callers in the lane wait for replies.
    pub fn client_waiting(mut self, waiting: Waiting) -> Self {
        self.limits.client_waiting = Some(waiting);
        self
    }

    /// Sets how the lane's serving threads wait for requests.
    pub fn server_waiting(mut self, waiting: Waiting) -> Self {
        self.limits.server_waiting = Some(waiting);
        self
    }

    /// Sets the most connections of the lane to one endpoint; see
    /// [`OrbConfig::connections_per_endpoint_max`](crate::OrbConfig::connections_per_endpoint_max).
    pub fn connections_per_endpoint_max(mut self, connections: usize) -> Self {
        self.limits.connections_per_endpoint_max = Some(connections);
        self
    }

    /// Sets the most connections of the lane to servers; see
    /// [`OrbConfig::client_connections_max`](crate::OrbConfig::client_connections_max).
    pub fn client_connections_max(mut self, connections: usize) -> Self {
        self.limits.client_connections_max = Some(connections);
        self
    }

    /// Sets the most connections that the lane accepts; see
    /// [`OrbConfig::server_connections_max`](crate::OrbConfig::server_connections_max).
    pub fn server_connections_max(mut self, connections: usize) -> Self {
        self.limits.server_connections_max = Some(connections);
        self
    }

    /// Sets the most threads that serve the lane's clients; see
    /// [`OrbConfig::server_threads_max`](crate::OrbConfig::server_threads_max).
    pub fn server_threads_max(mut self, threads: usize) -> Self {
        self.limits.server_threads_max = Some(threads);
        self
    }

    /// Sets how many of those threads are made when the lane begins to listen; see
    /// [`OrbConfig::server_threads_static`](crate::OrbConfig::server_threads_static).
    pub fn server_threads_static(mut self, threads: usize) -> Self {
        self.limits.server_threads_static = Some(threads);
        self
    }

    /// Sets the most requests of the lane's clients in flight; see
    /// [`OrbConfig::server_requests_max`](crate::OrbConfig::server_requests_max).
    pub fn server_requests_max(mut self, requests: Option<usize>) -> Self {
        self.limits.server_requests_max = Some(requests);
        self
    }

    /// Sets the most bytes of large messages of the lane's clients; see
    /// [`OrbConfig::receive_memory_max`](crate::OrbConfig::receive_memory_max).
    pub fn receive_memory_max(mut self, bytes: Option<usize>) -> Self {
        self.limits.receive_memory_max = Some(bytes);
        self
    }

    /// Sets the most bytes of replies that the lane's clients have not read; see
    /// [`OrbConfig::transmit_memory_max`](crate::OrbConfig::transmit_memory_max).
    pub fn transmit_memory_max(mut self, bytes: Option<usize>) -> Self {
        self.limits.transmit_memory_max = Some(bytes);
        self
    }

    /// Sets the most threads that connect for the lane's asynchronous calls; see
    /// [`OrbConfig::background_threads_max`](crate::OrbConfig::background_threads_max).
    pub fn background_threads_max(mut self, threads: usize) -> Self {
        self.limits.background_threads_max = Some(threads);
        self
    }

    /// Sets the most threads that serve requests which come over connections that the lane has made; see
    /// [`OrbConfig::callback_threads_max`](crate::OrbConfig::callback_threads_max).
    pub fn callback_threads_max(mut self, threads: usize) -> Self {
        self.limits.callback_threads_max = Some(threads);
        self
    }

    /// Sets the priority of the lane's packets; see [`OrbConfig::socket_priority`](crate::OrbConfig::socket_priority).
    pub fn socket_priority(mut self, priority: Option<u32>) -> Self {
        self.limits.socket_priority = Some(priority);
        self
    }

    /// Gives the TCP connections that the lane accepts these properties (`ServerProtocolPolicy` with `TCPProtocolProperties`;
    /// RTCORBA 1.2): connections belong to lanes, not to adapters. Default: as for the ORB.
    pub fn tcp_properties(mut self, properties: TcpProperties) -> Self {
        self.tcp = Some(properties);
        self
    }

    /// Changes the properties of the TCP connections that the lane accepts, for one of them in text.
    pub(super) fn change_tcp(mut self, change: impl FnOnce(&mut TcpProperties)) -> Self {
        change(self.tcp.get_or_insert_default());
        self
    }

    /// Sets for how long the lane's threads poll network devices; see [`OrbConfig::busy_poll`](crate::OrbConfig::busy_poll).
    pub fn busy_poll(mut self, time: Option<Duration>) -> Self {
        self.limits.busy_poll = Some(time);
        self
    }

    /// Sets whether the lane's TCP connections acknowledge at once; see
    /// [`OrbConfig::tcp_quick_ack`](crate::OrbConfig::tcp_quick_ack).
    pub fn tcp_quick_ack(mut self, yes: bool) -> Self {
        self.limits.tcp_quick_ack = Some(yes);
        self
    }

    /// Sets how long the lane's TCP connections wait for acknowledgements; see
    /// [`OrbConfig::tcp_user_timeout`](crate::OrbConfig::tcp_user_timeout).
    pub fn tcp_user_timeout(mut self, time: Option<Duration>) -> Self {
        self.limits.tcp_user_timeout = Some(time);
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn own_priority(&self) -> Option<Priority> {
        self.priority
    }

    pub(super) fn listens(&self) -> bool {
        !self.endpoints.is_empty()
    }

    fn into_parts(
        mut self,
        orb: &OrbConfig,
        transports: &[Arc<dyn CustomTransport>],
        real_time: Option<&RealTimeConfig>,
        pool: &dyn Fn(&str) -> Option<ThreadpoolId>,
    ) -> Result<LaneParts, SettingError> {
        let mut config = orb.clone();
        if self.priority.is_some() {
            self.limits.be_static(orb);
        }
        self.limits.apply_to(&mut config);
        let place = || format!("lane {:?}", self.name);
        let endpoints = self.endpoints.iter().map(|text| Endpoint::parse(text, transports));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>();
        let endpoints = endpoints.map_err(|e| SettingError::new(place(), e.to_string()))?;
        let priority = self.priority.map(|priority| native_of(priority, real_time)).transpose();
        let priority = priority.map_err(|why| SettingError::new(place(), why))?;
        let native = priority.and_then(|(_, native)| native);
        let priority = priority.map(|(priority, _)| priority);
        let thread_settings = self.threads(native).map_err(|why| SettingError::new(place(), why))?;
        let is_best_effort = self.is_best_effort;
        Ok(LaneParts {
            name: self.name,
            config,
            endpoints,
            publish: self.publish,
            priority,
            thread_settings,
            is_best_effort,
            threadpool: self.threadpool.as_deref().and_then(pool),
            tcp: self.tcp,
        })
    }
}

/// Checks what the system may refuse to each lane, so that no connection is the first to notice.
pub(super) fn check(lanes: &[LaneParts]) -> Result<(), SettingError> {
    lanes.iter().try_for_each(|lane| {
        let place = if lane.name.is_empty() { "the ORB".to_owned() } else { format!("lane {:?}", lane.name) };
        if let ServerConcurrency::ThreadPool(pool) = lane.config.concurrency
            && pool.static_threads == 0
        {
            let why = "has a thread pool without static threads: give `ThreadPoolConfig::new` at least 1";
            return Err(SettingError::new(place, why.to_owned()));
        }
        socket_options::check(&lane.config).map_err(|why| SettingError::new(place, why.to_string()))
    })
}

/// Fails for processors of which the process may use none.
fn check_processors(processors: &CpuSet) -> Result<(), String> {
    // A system that does not tell is asked by each thread.
    let Ok(allowed) = sched_getaffinity(Some(rustix::process::getpid())) else { return Ok(()) };
    let listed = |set: &CpuSet| {
        let numbers = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        numbers.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
    };
    if (0..CpuSet::MAX_CPU).any(|cpu| processors.is_set(cpu) && allowed.is_set(cpu)) {
        return Ok(());
    }
    Err(format!(
        "may run on processors [{}], of which this process may use none: write some of {}",
        listed(processors),
        listed(&allowed)
    ))
}

/// The threads of a lane with a priority that says nothing of its threads.
const STATIC_THREADS: usize = 8;

const TIMER_SLACK_NS_MAX: u64 = 1_000_000_000;
const PREFAULT_STACK_BYTES_MAX: usize = 16 << 20;
const PREFAULT_HEAP_BYTES_MAX: usize = 1 << 30;

/// Why a best-effort lane cannot be one, if it cannot.
fn why_no_best_effort(lanes: &[LaneConfig], lane: &LaneConfig, is_real_time: bool) -> Option<&'static str> {
    if !lane.is_best_effort {
        return None;
    }
    if !is_real_time {
        return Some(
            "is for best effort, which needs a real-time ORB: give `OrbBuilder::real_time` a configuration",
        );
    }
    if lane.priority.is_some() {
        return Some("is for best effort and has a priority; take one of the two away");
    }
    if !lane.listens() {
        return Some(
            "is for best effort and listens nowhere; give it an endpoint, to which clients send their requests",
        );
    }
    let is_second = lanes.iter().filter(|lane| lane.is_best_effort).count() > 1;
    is_second.then_some("is for best effort, as another lane is; an ORB has one such lane")
}

/// Why a lane cannot belong to its pool, if it cannot.
fn why_not_of_pool(lane: &LaneConfig, is_real_time: bool) -> Option<&'static str> {
    lane.threadpool.as_ref()?;
    if !is_real_time {
        return Some(
            "is of a thread pool, which needs a real-time ORB: give `OrbBuilder::real_time` a configuration",
        );
    }
    if lane.is_best_effort {
        return Some("is for best effort and of a thread pool; take one of the two away");
    }
    (!lane.listens()).then_some("is of a thread pool and listens nowhere; give it an endpoint")
}

/// The names of the thread pools of these lanes.
pub(super) fn threadpools(lanes: &[LaneConfig]) -> Vec<String> {
    let names: BTreeSet<&String> = lanes.iter().filter_map(|lane| lane.threadpool.as_ref()).collect();
    names.into_iter().cloned().collect()
}

/// The priority of a lane's threads, with the system's that goes with it.
fn native_of(
    priority: Priority,
    real_time: Option<&RealTimeConfig>,
) -> Result<(Priority, Option<NativePriority>), String> {
    let Some(real_time) = real_time else {
        return Err(
            "has a priority, which needs a real-time ORB: give `OrbBuilder::real_time` a configuration"
                .into(),
        );
    };
    match real_time.native(priority) {
        Ok(native) => Ok((priority, native)),
        Err(_) => Err(format!(
            "has the priority {priority}, for which the ORB's mapping has no native priority from 1 to 99"
        )),
    }
}

/// Makes the parts of further lanes. `pool` finds the number of a thread pool by its name.
pub(super) fn parts(
    lanes: Vec<LaneConfig>,
    orb: &OrbConfig,
    transports: &[Arc<dyn CustomTransport>],
    real_time: Option<&RealTimeConfig>,
    pool: &dyn Fn(&str) -> Option<ThreadpoolId>,
) -> Result<Vec<LaneParts>, SettingError> {
    let bad = |name: &str, why: String| Err(SettingError::new(format!("lane {name:?}"), why));
    let mut names = BTreeSet::new();
    for lane in &lanes {
        let name = &lane.name;
        if let Some(why) = why_no_best_effort(&lanes, lane, real_time.is_some()) {
            return bad(name, why.to_owned());
        }
        if let Some(why) = why_not_of_pool(lane, real_time.is_some()) {
            return bad(name, why.to_owned());
        }
        if name.is_empty() {
            return bad(name, "a further lane needs a name".to_owned());
        }
        if !names.insert(name.as_str()) {
            return bad(name, "another lane has this name; choose one for each lane".to_owned());
        }
        if names.len() >= LANES_MAX {
            return bad(name, format!("an ORB has at most {LANES_MAX} lanes, the default lane included"));
        }
    }
    drop(names);
    lanes.into_iter().map(|lane| lane.into_parts(orb, transports, real_time, pool)).collect()
}

/// A lane of an ORB. Cheap to clone. It does not keep the ORB serving.
#[derive(Clone)]
pub struct Lane {
    core: Arc<OrbCore>,
    id: LaneId,
}

/// The calling thread's stay in a [`Lane`]. When it is dropped, the thread is in the lane in which it was before. Stays end
/// in the opposite order of their beginnings.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub struct InLane {
    _stay: InGroup,
    of_this_thread: PhantomData<*const ()>,
}

impl Orb {
    /// The lane with this name; `None` if the ORB has none. The default lane's name is empty.
    pub fn lane(&self, name: &str) -> Option<Lane> {
        self.lanes().into_iter().find(|lane| lane.name() == name)
    }

    /// The lane of the calling thread. On a thread that is in a lane of another ORB, it is the lane with the same number of
    /// this one, or the default lane.
    pub fn current_lane(&self) -> Lane {
        Lane { core: self.core().clone(), id: self.core().this_server_lane().id }
    }

    /// All lanes, the default lane first.
    pub fn lanes(&self) -> Vec<Lane> {
        let lane = |lane: &ServerLane| Lane { core: self.core().clone(), id: lane.id };
        self.core().server_lanes().map(lane).collect()
    }
}

impl Lane {
    fn parts(&self) -> &ServerLane {
        self.core.server_lane(self.id)
    }

    /// The name; empty for the default lane.
    pub fn name(&self) -> &str {
        &self.parts().name
    }

    /// The addresses in references of the lane, as [`publish`](LaneConfig::publish) takes them. Empty if it does not listen,
    /// or not yet: an ORB listens when its root adapter is first asked for, or when it is built with an endpoint.
    pub fn addresses(&self) -> Vec<String> {
        self.parts().published().iter().map(ToString::to_string).collect()
    }

    /// Puts the calling thread into the lane until the result is dropped. Calls that the thread makes meanwhile through
    /// references of this ORB use the lane's connections and threads; those of other ORBs use the lane with the same
    /// number of theirs, or the default lane. Blocks for nothing.
    ///
    /// A thread that serves a lane's requests is in that lane already.
    pub fn enter(&self) -> InLane {
        InLane { _stay: enter_lane(self.id), of_this_thread: PhantomData }
    }

    /// Runs `body` in the lane.
    pub fn run<T>(&self, body: impl FnOnce() -> T) -> T {
        let _stay = self.enter();
        body()
    }

    /// A reference to an object of this ORB at the lane's addresses: its clients' requests are served by the lane. BAD_PARAM
    /// for an object of another ORB, and for a lane that does not listen.
    pub fn reference(&self, object: &ObjectRef) -> Result<ObjectRef, SystemException> {
        let bad = |why: String| {
            let kind = SystemExceptionKind::BadParam;
            Err(SystemException::new(kind, MinorCode::WRONG_LANE, CompletionStatus::No).with_detail(why))
        };
        let lane = self.parts();
        if lane.published().is_empty() {
            return bad(format!(
                "lane {:?} does not listen, so no client can reach an object there",
                lane.name
            ));
        }
        match self.core.reference_in(lane, object) {
            Some(reference) => Ok(reference),
            None => bad("the object is not one of this ORB's".to_owned()),
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("name", &self.name()).field("number", &self.id.index()).finish()
    }
}
