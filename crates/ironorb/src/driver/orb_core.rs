//! What the drivers of one ORB share: the connector, the adapters, the server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use ironorb_giop::Version;
use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{SystemException, SystemExceptionKind};
use ironorb_giop::ior::{
    IRONORB_ORB_TYPE, IiopAddress, IiopProfile, Ior, Profile, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS,
    TAG_IRONORB_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS, TAG_ORB_TYPE, TAG_TAO_ENDPOINTS, TaggedComponent,
};
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;

use crate::base::config::{OrbConfig, Transport};
use crate::base::forks::{OfProcess, tell_children_of};
use crate::base::lane::{LaneId, current_lane};
use crate::base::lane_table::LaneTable;
use crate::base::locks::{ColdLock, PiLock, Snapshot};
use crate::base::marshal_profile::MarshalProfile;
use crate::base::randomness::Randomness;
use crate::base::time::Time;
use crate::call::remote_call::shut_down;
use crate::driver::adapter_threads::AdapterThreads;
use crate::driver::cache::ClientCache;
use crate::driver::cache::desk::NewsDesk;
use crate::driver::client::Connector;
use crate::driver::clock;
use crate::driver::real_time::Listed;
use crate::driver::server::Server;
use crate::driver::server::lane::{LaneParts, ServerLane};
use crate::driver::simulated::{Simulated, SimulationSetting};
use crate::interceptor::{InterceptedOrb, Interceptors};
use crate::lane::Counters;
use crate::object::ObjectRef;
use crate::object::deadline_context::DeadlineClock;
use crate::object::orb_shared::{OrbDriver, OrbHandle, OrbShared, SharedParts};
use crate::object::priority::{OverrunPolicy, Priority, RealTimeConfig};
use crate::object::protocols::Protocols;
use crate::object::server_profile::{Partition, ServerEndpoint};
use crate::object::threadpool::{ReachedBy, ThreadpoolId};
use crate::poa::adapter::{Adapter, Ownership, Threadpools};
use crate::poa::{AdapterHost, ManagerState, ObjectId, Poa, PoaError};
use crate::rt::RtOrb;
use crate::rt::distributable::SchedulingCurrent;
use crate::transport::tcp::HostPort;
use crate::transport::{Address, CustomTransport, Stream, unix};

pub(crate) struct OrbCore {
    /// The ORB itself, for methods that make references from `&self`.
    pub(super) this: Weak<OrbCore>,
    /// What all layers read.
    shared: Arc<OrbShared>,
    pub(crate) adapter: Adapter,
    pub(crate) adapter_threads: Arc<AdapterThreads>,
    pub(crate) connector: Connector,
    /// What its lanes count.
    pub(crate) counters: Arc<Counters>,
    /// When it was made.
    pub(crate) begun: Time,
    /// What the root adapter gets before a client can connect.
    furnish_root: Option<FurnishRoot>,
    /// Where clients' probes wait for news.
    pub(crate) news_desk: Arc<NewsDesk>,
    /// The object that opens sessions for clients' caches, once one has asked for it.
    pub(crate) cache_object: PiLock<Option<ObjectId>>,
    /// What the ORB holds of other servers' objects.
    pub(crate) cache: ClientCache,
    pub(crate) interceptors: Arc<Interceptors>,
    /// What runs the calls of stubs in virtual time, if they do not run on threads.
    pub(crate) simulated: Option<Simulated>,
    /// What each lane owns for clients.
    pub(super) server_lanes: LaneTable<ServerLane>,
    /// What a real-time ORB has beside its configuration.
    pub(crate) rt_orb: RtOrb,
    pub(crate) initial: Snapshot<BTreeMap<String, ObjectRef>>,
    /// The base URL of initial references that no other source names.
    pub(crate) default_initial: Option<String>,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    /// The file for the profile of marshalled types.
    marshal_profile: Option<PathBuf>,
    hold_requests: bool,
    /// The servers of the lanes that listen. Their threads hold the ORB, so they are taken out when the ORB stops serving.
    /// The thread that makes or takes the root adapter holds the lock.
    pub(super) servers: ColdLock<Vec<Server>>,
    /// Whether a reference was made without an address.
    has_made_nowhere: AtomicBool,
    pub(super) root: Snapshot<Poa>,
    is_shut_down: AtomicBool,
}

/// Puts objects of the ORB's own beside those of the program, when the root adapter is made. It must not ask for
/// references: the ORB does not listen yet.
pub(crate) type FurnishRoot = fn(&Arc<OrbCore>, &Poa) -> Result<(), PoaError>;

/// What an ORB is made of.
pub(crate) struct OrbParts {
    pub(crate) config: OrbConfig,
    pub(crate) interceptors: Interceptors,
    /// Its lanes, the default lane first, with at most [`LANES_MAX`](crate::base::lane::LANES_MAX) in all.
    pub(crate) lanes: Vec<LaneParts>,
    /// The program's own.
    pub(crate) transports: Vec<Arc<dyn CustomTransport>>,
    pub(crate) hold_requests: bool,
    pub(crate) default_initial: Option<String>,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    pub(crate) marshal_profile: Option<PathBuf>,
    pub(crate) simulation: Option<SimulationSetting>,
    /// How the ORB treats priorities, if it is a real-time ORB.
    pub(crate) real_time: Option<RealTimeConfig>,
    /// The names of its thread pools, in the order of their numbers.
    pub(crate) threadpools: Vec<String>,
    pub(crate) furnish_root: Option<FurnishRoot>,
    /// How its distributable threads are scheduled, if it has any.
    pub(crate) scheduling: Option<SchedulingCurrent>,
}

/// The drivers read what all layers read as if it were theirs.
impl Deref for OrbCore {
    type Target = OrbShared;

    #[inline]
    fn deref(&self) -> &OrbShared {
        &self.shared
    }
}

impl Environment for OrbCore {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.shared.value_factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.shared.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.this().map(|this| -> Arc<dyn Environment> { this })
    }

    fn base(&self) -> Option<&(dyn Environment + 'static)> {
        Some(&*self.shared)
    }
}

impl OrbDriver for OrbCore {
    fn shared(&self) -> &Arc<OrbShared> {
        &self.shared
    }

    fn is_local(&self, key: &[u8], profile: &IiopProfile) -> bool {
        match self.adapter.knows(key) {
            Ownership::Ours => true,
            Ownership::NotOurs => false,
            Ownership::IfAtOurAddress => self.has_address_of(profile),
        }
    }

    fn calls_directly(&self) -> bool {
        self.config.collocation
    }

    fn endpoint(&self, address: Address, partition: Partition) -> Arc<dyn ServerEndpoint> {
        self.connector.endpoint(address, partition)
    }

    fn is_a(&self, object: &ObjectRef, repository_id: &str) -> Result<bool, SystemException> {
        object.is_a(repository_id)
    }
}

impl InterceptedOrb for OrbCore {
    fn interceptors(&self) -> &Interceptors {
        &self.interceptors
    }

    fn handle(self: Arc<Self>) -> OrbHandle {
        OrbHandle::new(self)
    }
}

impl ObjectRef {
    /// What the drivers share of the reference's ORB.
    #[inline]
    pub(crate) fn core(&self) -> &OrbCore {
        self.handle().driver_as().expect("an ORB has one kind of driver")
    }

    /// The simulated driver, if calls of the reference's ORB go to it.
    #[inline]
    pub(crate) fn simulated(&self) -> Option<&Simulated> {
        if self.shared().is_simulated { self.core().simulated.as_ref() } else { None }
    }

    /// The time by which calls of the reference go.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.simulated().map_or_else(clock::now, Simulated::now)
    }

    /// A further handle of what the drivers share.
    pub(crate) fn shared_core(&self) -> Arc<OrbCore> {
        self.core().this().expect("a reference keeps its ORB")
    }
}

impl OfProcess for OrbCore {
    fn begin_in_child(&self) {
        self.shared.begin_in_child();
        self.cache.begin_in_child();
    }
}

impl OrbCore {
    pub(crate) fn new(parts: OrbParts) -> Arc<Self> {
        let OrbParts { config, lanes, interceptors, simulation, transports, real_time, .. } = parts;
        let client_lanes: Vec<_> =
            lanes.iter().enumerate().map(|(index, lane)| (lane.id(index), lane.config.clone())).collect();
        let server_lanes: LaneTable<ServerLane> = lanes.into_iter().enumerate().map(server_lane).collect();
        let lane_facts = server_lanes.iter().map(ServerLane::facts).collect();
        let threadpools = Arc::new(Threadpools::new(parts.threadpools));
        let simulated = simulation.as_ref().map(|setting| setting.0.clone());
        let server_threads = server_lanes.iter().map(|lane| lane.threads.clone());
        let adapter_threads = AdapterThreads::new(&config, server_threads, simulated);
        if server_lanes.len() > 1 {
            adapter_threads.start_discarding();
        }
        let randomness = Randomness::new(config.seed);
        // Without it nothing is drawn, so that equal seeds go on to give equal references.
        let deadline_clock = config.deadline_propagation.then(|| DeadlineClock::new(randomness.draw()));
        let shared = Arc::new(OrbShared::new(SharedParts {
            config: config.clone(),
            transports,
            has_client_interceptors: !interceptors.client.is_empty(),
            client_contexts: interceptors.client_contexts.clone(),
            deadline_clock,
            real_time: real_time.clone(),
            is_simulated: simulation.is_some(),
            hash_keys: randomness.hash_keys(),
        }));
        let watch = real_time.as_ref().and_then(|real_time| real_time.watch).filter(|_| !shared.is_simulated);
        let counters = Counters::new(shared.measures_calls, watch);
        let connector = Connector::new(client_lanes.into_iter(), &counters);
        let news_desk = NewsDesk::new();
        let orb = Arc::new_cyclic(|this: &Weak<OrbCore>| {
            shared.set_driver(this.clone());
            OrbCore {
                this: this.clone(),
                adapter: Adapter::new(
                    randomness,
                    &config,
                    &interceptors,
                    (real_time, lane_facts, threadpools.clone()),
                    adapter_threads.clone(),
                    (this.clone(), news_desk.clone()),
                ),
                news_desk,
                adapter_threads,
                shared: shared.clone(),
                connector,
                server_lanes,
                counters,
                furnish_root: parts.furnish_root,
                cache_object: PiLock::default(),
                cache: ClientCache::new(&config),
                begun: clock::now(),
                rt_orb: RtOrb::new(shared, threadpools, parts.scheduling),
                initial: Snapshot::nothing(),
                interceptors: Arc::new(interceptors),
                simulated: simulation.map(Simulated::new),
                default_initial: parts.default_initial,
                orb_id: parts.orb_id,
                server_id: parts.server_id,
                marshal_profile: parts.marshal_profile,
                hold_requests: parts.hold_requests,
                servers: ColdLock::new(Vec::new()),
                has_made_nowhere: AtomicBool::new(false),
                root: Snapshot::nothing(),
                is_shut_down: AtomicBool::new(false),
            }
        });
        let of_this_process: Weak<OrbCore> = Arc::downgrade(&orb);
        tell_children_of(of_this_process);
        orb
    }

    /// Has upcalls end that run too long, if the program wants that. In virtual time no thread waits for a time. Fails when
    /// the system refuses a thread.
    pub(crate) fn watch_upcalls(&self) -> io::Result<()> {
        let ends_upcalls = self
            .real_time
            .as_ref()
            .is_some_and(|real_time| real_time.overrun_policy == OverrunPolicy::EndCall);
        match ends_upcalls && !self.is_simulated {
            true => self.adapter_threads.start_watching(self.server_lanes.iter().map(|lane| lane.id)),
            false => Ok(()),
        }
    }

    /// The ORB, as its references hold it.
    pub(crate) fn handle(self: &Arc<Self>) -> OrbHandle {
        OrbHandle::new(self.clone())
    }

    /// The ORB of the environment with which values are read. `None` where there is none, and while it is
    /// being dropped.
    pub(crate) fn of_environment(environment: &dyn Environment) -> Option<Arc<OrbCore>> {
        match environment.downcast_ref::<OrbCore>() {
            Some(orb) => orb.this(),
            None => OrbHandle::of_environment(environment)?.driver_as::<OrbCore>()?.this(),
        }
    }

    /// A further handle. `None` only while the last handle is being dropped.
    pub(crate) fn this(&self) -> Option<Arc<OrbCore>> {
        self.this.upgrade()
    }

    /// The ORB, as its adapters see it.
    fn host(self: &Arc<Self>) -> Arc<dyn AdapterHost> {
        self.clone()
    }

    /// The root adapter. The first call begins to listen.
    pub(crate) fn root_poa(self: &Arc<Self>) -> io::Result<Poa> {
        if let Some(poa) = self.present_root() {
            return Ok(poa);
        }
        let mut servers = self.servers.lock();
        if let Some(poa) = self.present_root() {
            return Ok(poa); // another thread was quicker
        }
        let (listening, silent): (Vec<_>, Vec<_>) = self.server_lanes().partition(|lane| lane.listens());
        silent.iter().try_for_each(|lane| self.publish(lane, Vec::new()))?;
        let state = if self.hold_requests { ManagerState::Holding } else { ManagerState::Active };
        // The adapter is made before a client can connect. A client may find its object held, but never no
        // adapter at all.
        let poa = Poa::root(&self.host(), state).map_err(io::Error::other)?;
        if let Some(furnish) = self.furnish_root {
            furnish(self, &poa).map_err(io::Error::other)?;
        }
        for lane in listening {
            match Server::start(self, lane) {
                Ok(started) => servers.push(started),
                Err(e) => {
                    servers.drain(..).for_each(|server| server.stop(false));
                    // Only a call that waits can be refused.
                    let _ = poa.destroy(false, false);
                    return Err(e);
                }
            }
        }
        self.server_lanes.iter().for_each(|lane| self.serve_callbacks_of(lane));
        let before = self.root.set(Some(poa.clone()));
        drop(before);
        Ok(poa)
    }

    /// The root adapter, if it has been made or no longer can be. Never blocks for long.
    pub(crate) fn present_root(self: &Arc<Self>) -> Option<Poa> {
        let root = self.root.cloned();
        root.or_else(|| self.is_shut_down().then(|| Poa::destroyed_root(&self.host())))
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::SeqCst)
    }

    /// Fixes the addresses in references, for a lane that listens at `bound`.
    pub(crate) fn publish(&self, lane: &ServerLane, bound: Vec<Address>) -> io::Result<()> {
        let mut published = lane.addresses_to_publish(&self.transports, bound)?;
        let has_tcp = published.iter().any(|address| address.tcp().is_some());
        if !has_tcp && self.config.bidirectional && lane.id == LaneId::DEFAULT {
            published.push(made_up_address(self.adapter.randomness()));
        } else if !has_tcp && !published.is_empty() && self.config.giop_version == Version::V1_0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "references of GIOP 1.0 have no place for an address without host and port: listen at an iiop:// address \
                 as well, or let the GIOP version be 1.1 or 1.2",
            ));
        }
        lane.set_published(published);
        Ok(())
    }

    /// The addresses in references, unless a program asks for those of another lane.
    pub(super) fn published(&self) -> &[Address] {
        self.default_server_lane().published()
    }

    /// The addresses of all lanes.
    pub(crate) fn published_by_all(&self) -> impl Iterator<Item = &Address> {
        self.server_lanes().flat_map(ServerLane::published)
    }

    /// What a lane owns for clients. A lane that the ORB lacks belongs to another ORB, whose thread is calling: the default
    /// lane is taken.
    pub(crate) fn server_lane(&self, lane: LaneId) -> &ServerLane {
        self.server_lanes.of(lane)
    }

    /// What the calling thread's lane owns for clients.
    pub(crate) fn this_server_lane(&self) -> &ServerLane {
        self.server_lane(current_lane())
    }

    pub(crate) fn default_server_lane(&self) -> &ServerLane {
        self.server_lanes.first()
    }

    /// The lanes that have not ended, the default lane first.
    pub(crate) fn server_lanes(&self) -> impl Iterator<Item = &ServerLane> {
        self.server_lanes.iter().filter(|lane| !lane.has_ended())
    }

    /// The highest priority that the peer of an accepted connection may ask for. Calls the system if any peer has a limit.
    pub(super) fn priority_limit_of(&self, stream: &Stream) -> Priority {
        match self.real_time.as_ref().filter(|real_time| !real_time.peer_limits.is_empty()) {
            Some(real_time) => real_time.peer_limits.of(stream.peer_ip()),
            None => Priority::MAX,
        }
    }

    /// The lanes of a pool, or those without a pool.
    pub(super) fn lanes_of(&self, threadpool: Option<ThreadpoolId>) -> impl Iterator<Item = &ServerLane> {
        self.server_lanes.iter().filter(move |lane| lane.threadpool == threadpool)
    }

    /// The lane to which clients send that name no priority: the first of the pool without a priority, or else the first
    /// that listens.
    pub(super) fn first_lane_of(&self, threadpool: Option<ThreadpoolId>) -> &ServerLane {
        let listening = || self.lanes_of(threadpool).filter(|lane| !lane.published().is_empty());
        let first = listening().find(|lane| lane.priority.is_none() && !lane.is_best_effort);
        match threadpool {
            None => self.default_server_lane(),
            Some(_) => first.or_else(|| listening().next()).unwrap_or(self.default_server_lane()),
        }
    }

    pub(crate) fn tcp_addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        self.published().iter().filter_map(Address::tcp)
    }

    /// The addresses without host and port: those on this machine, and those of the program's own transports.
    pub(crate) fn local_addresses(&self) -> impl Iterator<Item = &Address> {
        self.published().iter().filter(|address| address.is_local())
    }

    pub(crate) fn published_addresses(&self) -> Vec<String> {
        self.published().iter().map(Address::to_string).collect()
    }

    /// Whether only this process can call the objects of the ORB, and none of them waits for a thread in
    /// [`Orb::run`](crate::Orb::run).
    pub(crate) fn is_unreachable(&self) -> bool {
        self.has_made_nowhere.load(Ordering::Relaxed) && !self.adapter.main_thread().is_wanted()
    }

    /// Makes a reference to an object of this ORB, at these of its addresses. Without an address it has port 0, to which no client can connect.
    pub(crate) fn reference(
        self: &Arc<Self>,
        repository_id: &str,
        key: &[u8],
        added: &[TaggedComponent<'static>],
        reached_by: ReachedBy,
    ) -> ObjectRef {
        self.reference_for_priorities(repository_id, key, added, reached_by).unwrap_or_else(|| {
            let published = published_for(self.first_lane_of(reached_by.threadpool), reached_by.protocols);
            self.reference_at(&published, &[], repository_id, key, added)
        })
    }

    /// Makes a reference to an object of this ORB at the addresses of a lane. `None` if the object is not of this ORB.
    pub(crate) fn reference_in(self: &Arc<Self>, lane: &ServerLane, object: &ObjectRef) -> Option<ObjectRef> {
        let key = object.local_key(&**self)?;
        let ior = object.to_ior();
        let components = ior.iiop_profiles().next()?.components();
        let owned =
            |it: TaggedComponent<'_>| TaggedComponent { tag: it.tag, data: it.data.into_owned().into() };
        let added: Vec<_> = components.filter(|it| !self.makes(it)).map(owned).collect();
        Some(self.reference_at(lane.published(), &[], object.type_id(), &key, &added))
    }

    /// Whether a component is one of those that the ORB puts into its references.
    fn makes(&self, component: &TaggedComponent<'_>) -> bool {
        let own = [TAG_ORB_TYPE, TAG_CODE_SETS, TAG_ALTERNATE_IIOP_ADDRESS, TAG_TAO_ENDPOINTS];
        let local = [TAG_OMNIORB_UNIX_TRANS, TAG_IRONORB_SHARED_MEMORY];
        own.contains(&component.tag)
            || local.contains(&component.tag)
            || self.transports.iter().any(|transport| transport.component_tag() == component.tag)
    }

    /// Makes a reference to an object of this ORB at some of its addresses. `listed` are those for requests of one priority each.
    pub(super) fn reference_at(
        self: &Arc<Self>,
        published: &[Address],
        listed: &[Listed<'_>],
        repository_id: &str,
        key: &[u8],
        added: &[TaggedComponent<'static>],
    ) -> ObjectRef {
        let version = self.config.giop_version;
        let local_addresses = || published.iter().filter(|address| address.is_local());
        let machine = local_addresses().next().map(|_| unix::machine_name());
        let mut addresses: Vec<(&str, u16)> = published.iter().filter_map(Address::tcp).collect();
        if addresses.is_empty() {
            // A server that listens only at local sockets says so by port 0, as omniORB's servers do.
            addresses.push((machine.as_deref().unwrap_or_default(), 0));
            if machine.is_none() {
                self.has_made_nowhere.store(true, Ordering::Relaxed);
            }
        }
        let (first, others) = addresses.split_at(1);
        let mut components = vec![TaggedComponent::new_orb_type(IRONORB_ORB_TYPE)];
        components.extend(TaggedComponent::new_code_sets(&self.config.code_sets()));
        // CORBA 3.3 part 2, 9.7.3: further addresses are components of IIOP 1.2; before, each has a profile.
        let (alternates, profiles) =
            if version == Version::V1_2 { (others, [].as_slice()) } else { ([].as_slice(), others) };
        for &(host, port) in alternates {
            components.extend(TaggedComponent::new_alternate_address(host, port));
        }
        components.extend(local_addresses().filter_map(Address::component));
        components.extend_from_slice(added);
        let unix_profiles = self.uiop_profiles(published, listed, key, &components);
        components.extend(Listed::component(listed));
        // A host name that contains a NUL can neither be written nor listened at.
        let iiop = |&(host, port): &(&str, u16)| IiopProfile::new(version, host, port, key, &components).ok();
        let profiles = first.iter().chain(profiles).filter_map(iiop);
        let are_first = published.first().is_some_and(|address| address.unix_path().is_some());
        let (before, after) = if are_first { (unix_profiles, vec![]) } else { (vec![], unix_profiles) };
        let profiles = before.into_iter().chain(profiles).chain(after).map(Profile::Iiop).collect();
        ObjectRef::new(&self.handle(), Ior { type_id: repository_id.to_owned(), profiles })
    }

    /// The profiles of the Unix sockets among some addresses, if the ORB writes such profiles.
    fn uiop_profiles(
        &self,
        published: &[Address],
        listed: &[Listed<'_>],
        key: &[u8],
        components: &[TaggedComponent<'static>],
    ) -> Vec<IiopProfile> {
        if !self.config.uiop_profiles {
            return Vec::new();
        }
        let components: Vec<_> = components.iter().cloned().chain(Listed::unix_component(listed)).collect();
        let paths = published.iter().filter_map(Address::unix_path);
        let profile = |path| IiopProfile::new_uiop(self.config.giop_version, path, key, &components).ok();
        paths.filter_map(profile).collect()
    }

    /// Whether the ORB listens at one of the addresses that a profile names.
    fn has_address_of(&self, profile: &IiopProfile) -> bool {
        let is_ours = |address: &IiopAddress<'_>| {
            let mut ours = self.published_by_all().filter_map(Address::tcp);
            ours.any(|(host, port)| port == address.port && host == address.host)
        };
        profile.addresses().any(|address| address.is_unspecified() || is_ours(&address))
            || self.has_socket_of(profile)
    }

    /// Whether the ORB listens at one of the local sockets that a profile names.
    fn has_socket_of(&self, profile: &IiopProfile) -> bool {
        let is_ours =
            |address: Address| self.published_by_all().any(|ours| ours.is_local() && *ours == address);
        let all_in = |transport| Address::all_in(profile, transport);
        all_in(Transport::Unix)
            .into_iter()
            .chain(all_in(Transport::SharedMemory))
            .chain(Address::all_custom_in(profile, &self.transports))
            .any(is_ours)
    }

    /// Makes the calling thread the main thread. Blocks until the ORB has been shut down.
    pub(crate) fn run(&self) {
        self.adapter.main_thread().run();
    }

    pub(crate) fn shut_down(&self, wait: bool) {
        self.stop_serving(wait);
        self.connector.close(wait);
        // Initial references hold the ORB, which holds them.
        drop(self.initial.set(None));
    }

    /// Stops listening, closes the connections of clients and destroys the adapters.
    pub(crate) fn stop_serving(&self, wait: bool) {
        // A shutdown must not wait for the probes that wait, and refuses requests that are held.
        self.news_desk.close();
        self.adapter.managers().begin_close();
        self.adapter.main_thread().begin_close();
        let servers = std::mem::take(&mut *self.servers.lock());
        servers.iter().for_each(|server| server.stop(wait));
        let (root, late) = {
            // A thread that makes the root adapter or a thread pool now ends first, or finds the ORB shut down.
            let mut servers = self.servers.lock();
            self.is_shut_down.store(true, Ordering::SeqCst);
            (self.root.set(None), std::mem::take(&mut *servers))
        };
        late.iter().for_each(|server| server.stop(wait));
        if let Some(root) = root {
            // An upcall cannot wait, so this is refused there. The adapter is destroyed without a wait.
            if root.destroy(true, wait).is_err() {
                let _ = root.destroy(true, false);
            }
        }
        self.adapter.managers().close();
        self.adapter.main_thread().close();
        self.adapter_threads.stop();
        if let Some(file) = &self.marshal_profile {
            // The builder has checked that the file can be written. If that fails now, no caller is left to
            // get the error.
            let _ = MarshalProfile::recorded().write(file);
        }
    }

    /// The exception for a local object that does not exist. After a shutdown, no object exists, and the
    /// exception names the shutdown as the reason.
    #[cold]
    pub(crate) fn explain_absence(&self, e: SystemException) -> SystemException {
        match e.kind {
            SystemExceptionKind::ObjectNotExist if self.is_shut_down() => shut_down(),
            _ => e,
        }
    }
}

/// The addresses of a lane for these protocols, or all if the list is empty.
pub(super) fn published_for(lane: &ServerLane, protocols: Protocols) -> Cow<'_, [Address]> {
    let published = lane.published();
    match protocols.is_empty() {
        true => Cow::Borrowed(published),
        false => published.iter().filter(|address| protocols.has(address.transport())).cloned().collect(),
    }
}

fn server_lane((index, parts): (usize, LaneParts)) -> ServerLane {
    ServerLane::new(parts.id(index), parts)
}

/// Makes the address in references of a bidirectional ORB that does not listen. A server uses it to find the
/// connection over which it was announced, so no other host may have it. It is a random address from the
/// range that is never assigned (240.0.0.0/4, RFC 1112), so that an attempt to connect fails at once.
fn made_up_address(randomness: &Randomness) -> Address {
    let [a, b, c, d, e, f, ..] = randomness.nonce().to_le_bytes();
    let host = Ipv4Addr::new(240 | (a & 7), b, c, d).to_string();
    Address::Tcp(HostPort { host, port: u16::from_le_bytes([e, f]).max(1) })
}
