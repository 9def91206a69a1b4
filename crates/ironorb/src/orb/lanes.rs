//! Lanes of an ORB: kinds of work that do not wait for one another.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::Orb;
use super::settings::SettingError;
use crate::base::config::{OrbConfig, ServerConcurrency, Waiting};
use crate::base::lane::{LANES_MAX, LaneId};
use crate::base::spawner::NativePriority;
use crate::driver::client::{InGroup, enter_lane};
use crate::driver::orb_core::OrbCore;
use crate::driver::server::lane::{LaneParts, ServerLane};
use crate::object::ObjectRef;
use crate::object::priority::{Priority, RealTimeConfig};
use crate::transport::{CustomTransport, Endpoint};

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
    server_requests_max: Option<Option<usize>>,
    receive_memory_max: Option<Option<usize>>,
    transmit_memory_max: Option<Option<usize>>,
    background_threads_max: Option<usize>,
    callback_threads_max: Option<usize>,
}

impl Limits {
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
        set(&mut config.server_requests_max, &self.server_requests_max);
        set(&mut config.receive_memory_max, &self.receive_memory_max);
        set(&mut config.transmit_memory_max, &self.transmit_memory_max);
        set(&mut config.background_threads_max, &self.background_threads_max);
        set(&mut config.callback_threads_max, &self.callback_threads_max);
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
    /// enters the lane keeps its own priority. Default: the threads have none.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
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

    pub(super) fn listens(&self) -> bool {
        !self.endpoints.is_empty()
    }

    fn into_parts(
        self,
        orb: &OrbConfig,
        transports: &[Arc<dyn CustomTransport>],
        real_time: Option<&RealTimeConfig>,
    ) -> Result<LaneParts, SettingError> {
        let mut config = orb.clone();
        self.limits.apply_to(&mut config);
        let place = || format!("lane {:?}", self.name);
        let endpoints = self.endpoints.iter().map(|text| Endpoint::parse(text, transports));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>();
        let endpoints = endpoints.map_err(|e| SettingError::new(place(), e.to_string()))?;
        let priority = self.priority.map(|priority| native_of(priority, real_time)).transpose();
        let priority = priority.map_err(|why| SettingError::new(place(), why))?;
        Ok(LaneParts { name: self.name, config, endpoints, publish: self.publish, priority })
    }
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

/// Makes the parts of further lanes.
pub(super) fn parts(
    lanes: Vec<LaneConfig>,
    orb: &OrbConfig,
    transports: &[Arc<dyn CustomTransport>],
    real_time: Option<&RealTimeConfig>,
) -> Result<Vec<LaneParts>, SettingError> {
    let bad = |name: &str, why: String| Err(SettingError::new(format!("lane {name:?}"), why));
    let mut names = BTreeSet::new();
    for LaneConfig { name, .. } in &lanes {
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
    lanes.into_iter().map(|lane| lane.into_parts(orb, transports, real_time)).collect()
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
        self.core().server_lanes().iter().map(lane).collect()
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
