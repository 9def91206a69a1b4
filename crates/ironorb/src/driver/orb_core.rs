//! What the drivers of one ORB share: the connector, the adapters, the server.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::Version;
use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{SystemException, SystemExceptionKind};
use ironorb_giop::framer::ReceiveMemory;
use ironorb_giop::ior::{IRONORB_ORB_TYPE, IiopAddress, IiopProfile, Ior, Profile, TaggedComponent};
use ironorb_giop::service_context::ListenPoint;
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;

use crate::base::config::{OrbConfig, Transport};
use crate::base::locks::{ColdLock, SharedTable};
use crate::base::marshal_profile::MarshalProfile;
use crate::base::randomness::Randomness;
use crate::base::time::Time;
use crate::call::remote_call::shut_down;
use crate::connection::UnreadReplies;
use crate::driver::adapter_threads::AdapterThreads;
use crate::driver::client::Connector;
use crate::driver::clock;
use crate::driver::server::in_flight::InFlight;
use crate::driver::server::threads::ServerThreads;
use crate::driver::server::{self, Server};
use crate::driver::simulated::{Simulated, SimulationSetting};
use crate::interceptor::{InterceptedOrb, Interceptors};
use crate::object::ObjectRef;
use crate::object::deadline_context::DeadlineClock;
use crate::object::orb_shared::{OrbDriver, OrbHandle, OrbShared};
use crate::object::server_profile::ServerEndpoint;
use crate::poa::adapter::{Adapter, Ownership};
use crate::poa::{AdapterHost, ManagerState, Poa};
use crate::transport::tcp::HostPort;
use crate::transport::{Address, CustomTransport, Endpoint, unix};

pub(crate) struct OrbCore {
    /// The ORB itself, for methods that make references from `&self`.
    this: Weak<OrbCore>,
    /// What all layers read.
    shared: Arc<OrbShared>,
    pub(crate) adapter: Adapter,
    pub(crate) adapter_threads: Arc<AdapterThreads>,
    pub(crate) connector: Connector,
    pub(crate) interceptors: Arc<Interceptors>,
    /// What runs the calls of stubs in virtual time, if they do not run on threads.
    pub(crate) simulated: Option<Simulated>,
    /// The count of requests in flight, if they are limited.
    pub(crate) requests: Option<Arc<InFlight>>,
    /// The threads that serve clients, and their limit.
    pub(crate) server_threads: Arc<ServerThreads>,
    /// The bytes of replies that clients have not read, if they are limited.
    pub(crate) unread_replies: Option<Arc<UnreadReplies>>,
    /// The memory for large messages of all clients, if it is limited.
    pub(crate) receive_memory: Option<Arc<ReceiveMemory>>,
    pub(crate) initial: SharedTable<BTreeMap<String, ObjectRef>>,
    /// The base URL of initial references that no other source names.
    pub(crate) default_initial: Option<String>,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    /// The file for the profile of marshalled types.
    marshal_profile: Option<PathBuf>,
    endpoints: Vec<Endpoint>,
    publish: Vec<String>,
    hold_requests: bool,
    /// The server. Its threads hold the ORB, so it is taken out when the ORB stops serving. The thread that makes or
    /// takes the root adapter holds the lock.
    server: ColdLock<Option<Server>>,
    /// The addresses in references of this ORB.
    published: OnceLock<Vec<Address>>,
    /// Whether a reference was made without an address.
    has_made_nowhere: AtomicBool,
    root: SharedTable<Option<Poa>>,
    is_shut_down: AtomicBool,
}

/// What an ORB is made of.
pub(crate) struct OrbParts {
    pub(crate) config: OrbConfig,
    pub(crate) interceptors: Interceptors,
    /// Where it listens.
    pub(crate) endpoints: Vec<Endpoint>,
    /// The addresses in references, if they are not those at which it listens.
    pub(crate) publish: Vec<String>,
    /// The program's own.
    pub(crate) transports: Vec<Arc<dyn CustomTransport>>,
    pub(crate) hold_requests: bool,
    pub(crate) default_initial: Option<String>,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    pub(crate) marshal_profile: Option<PathBuf>,
    pub(crate) simulation: Option<SimulationSetting>,
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

    fn endpoint(&self, address: Address, partition: u8) -> Arc<dyn ServerEndpoint> {
        self.connector.endpoint_in_partition(address, partition)
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

impl OrbCore {
    pub(crate) fn new(parts: OrbParts) -> Arc<Self> {
        let OrbParts { config, interceptors, simulation, transports, .. } = parts;
        let server_threads = ServerThreads::new(&config);
        let simulated = simulation.as_ref().map(|setting| setting.0.clone());
        let adapter_threads = AdapterThreads::new(&config, &server_threads, simulated);
        let randomness = Randomness::new(config.seed);
        // Without it nothing is drawn, so that equal seeds go on to give equal references.
        let deadline_clock = config.deadline_propagation.then(|| DeadlineClock::new(randomness.draw()));
        let shared = Arc::new(OrbShared::new(
            config.clone(),
            transports,
            !interceptors.client.is_empty(),
            interceptors.client_contexts.clone(),
            deadline_clock,
            simulation.is_some(),
            randomness.hash_keys(),
        ));
        Arc::new_cyclic(|this: &Weak<OrbCore>| {
            shared.set_driver(this.clone());
            OrbCore {
                this: this.clone(),
                adapter: Adapter::new(
                    randomness,
                    shared.binding_epoch.clone(),
                    &config,
                    &interceptors,
                    adapter_threads.clone(),
                    this.clone(),
                ),
                adapter_threads,
                shared,
                connector: Connector::new(config.clone()),
                requests: config.server_requests_max.map(InFlight::new),
                server_threads: server_threads.clone(),
                unread_replies: config.transmit_memory_max.map(UnreadReplies::new),
                receive_memory: config.receive_memory_max.map(|bytes| Arc::new(ReceiveMemory::new(bytes))),
                initial: SharedTable::default(),
                interceptors: Arc::new(interceptors),
                simulated: simulation.map(Simulated::new),
                default_initial: parts.default_initial,
                orb_id: parts.orb_id,
                server_id: parts.server_id,
                marshal_profile: parts.marshal_profile,
                endpoints: parts.endpoints,
                publish: parts.publish,
                hold_requests: parts.hold_requests,
                server: ColdLock::new(None),
                published: OnceLock::new(),
                has_made_nowhere: AtomicBool::new(false),
                root: SharedTable::default(),
                is_shut_down: AtomicBool::new(false),
            }
        })
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
        let mut server = self.server.lock();
        if let Some(poa) = self.present_root() {
            return Ok(poa); // another thread was quicker
        }
        if self.endpoints.is_empty() {
            self.publish(Vec::new())?;
        }
        let state = if self.hold_requests { ManagerState::Holding } else { ManagerState::Active };
        // The adapter is made before a client can connect. A client may find its object held, but never no
        // adapter at all.
        let poa = Poa::root(&self.host(), state).map_err(io::Error::other)?;
        if !self.endpoints.is_empty() {
            match Server::start(self, &self.endpoints) {
                Ok(started) => *server = Some(started),
                Err(e) => {
                    // Only a call that waits can be refused.
                    let _ = poa.destroy(false, false);
                    return Err(e);
                }
            }
        }
        let listen_points: Vec<ListenPoint> =
            self.tcp_addresses().map(|(host, port)| ListenPoint { host: host.to_owned(), port }).collect();
        self.connector.serve_callbacks(&self.this, &listen_points);
        *self.root.write() = Some(poa.clone());
        Ok(poa)
    }

    /// The root adapter, if it has been made or no longer can be. Never blocks for long.
    fn present_root(self: &Arc<Self>) -> Option<Poa> {
        let root = self.root.read().clone();
        root.or_else(|| self.is_shut_down().then(|| Poa::destroyed_root(&self.host())))
    }

    fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::SeqCst)
    }

    /// Fixes the addresses in references, for a server that listens at `bound`.
    pub(crate) fn publish(&self, bound: Vec<Address>) -> io::Result<()> {
        let mut published = server::published(&self.publish, &self.transports, bound)?;
        let has_tcp = published.iter().any(|address| address.tcp().is_some());
        if !has_tcp && self.config.bidirectional {
            published.push(made_up_address(self.adapter.randomness()));
        } else if !has_tcp && !published.is_empty() && self.config.giop_version == Version::V1_0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "references of GIOP 1.0 have no place for an address without host and port: listen at an iiop:// address \
                 as well, or let the GIOP version be 1.1 or 1.2",
            ));
        }
        let _ = self.published.set(published);
        Ok(())
    }

    fn published(&self) -> &[Address] {
        self.published.get().map_or(&[], Vec::as_slice)
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

    /// Makes a reference to an object of this ORB. Without an address it has port 0, to which no client can
    /// connect.
    pub(crate) fn reference(
        self: &Arc<Self>,
        repository_id: &str,
        key: &[u8],
        added: &[TaggedComponent<'static>],
    ) -> ObjectRef {
        let version = self.config.giop_version;
        let machine = self.local_addresses().next().map(|_| unix::machine_name());
        let mut addresses: Vec<(&str, u16)> = self.tcp_addresses().collect();
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
        components.extend(self.local_addresses().filter_map(Address::component));
        components.extend_from_slice(added);
        let profiles = first.iter().chain(profiles);
        let ior = Ior {
            type_id: repository_id.to_owned(),
            // A host name that contains a NUL can neither be written nor listened at.
            profiles: profiles
                .filter_map(|&(host, port)| IiopProfile::new(version, host, port, key, &components).ok())
                .map(Profile::Iiop)
                .collect(),
        };
        ObjectRef::new(&self.handle(), ior)
    }

    /// Whether the ORB listens at one of the addresses that a profile names.
    fn has_address_of(&self, profile: &IiopProfile) -> bool {
        let is_ours = |address: &IiopAddress<'_>| {
            self.tcp_addresses().any(|(host, port)| port == address.port && host == address.host)
        };
        profile.addresses().any(|address| address.is_unspecified() || is_ours(&address))
            || self.has_socket_of(profile)
    }

    /// Whether the ORB listens at one of the local sockets that a profile names.
    fn has_socket_of(&self, profile: &IiopProfile) -> bool {
        let is_ours = |address: Address| self.local_addresses().any(|ours| *ours == address);
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
        self.initial.write().clear();
    }

    /// Stops listening, closes the connections of clients and destroys the adapters.
    pub(crate) fn stop_serving(&self, wait: bool) {
        // Held requests are refused, because a shutdown must not wait for them.
        self.adapter.managers().begin_close();
        self.adapter.main_thread().begin_close();
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.stop(wait);
        }
        let root = {
            // A thread that makes the root adapter now ends first, or finds the ORB shut down.
            let _starting = self.server.lock();
            self.is_shut_down.store(true, Ordering::SeqCst);
            self.root.write().take()
        };
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

/// Makes the address in references of a bidirectional ORB that does not listen. A server uses it to find the
/// connection over which it was announced, so no other host may have it. It is a random address from the
/// range that is never assigned (240.0.0.0/4, RFC 1112), so that an attempt to connect fails at once.
fn made_up_address(randomness: &Randomness) -> Address {
    let [a, b, c, d, e, f, ..] = randomness.nonce().to_le_bytes();
    let host = Ipv4Addr::new(240 | (a & 7), b, c, d).to_string();
    Address::Tcp(HostPort { host, port: u16::from_le_bytes([e, f]).max(1) })
}
