//! The state that all handles of one ORB share.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::Duration;

use ironorb_giop::Version;
use ironorb_giop::cdr::Environment;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::framer::ReceiveMemory;
use ironorb_giop::ior::{IRONORB_ORB_TYPE, IiopProfile, Ior, Profile, TaggedComponent};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::ListenPoint;
use ironorb_giop::url::{Corbaloc, CorbalocAddress};

use super::settings::Settings;
use super::values::{ValueFactories, ValueTypes};
use crate::base::config::{OrbConfig, Transport};
use crate::base::marshal_profile::MarshalProfile;
use crate::base::randomness::Randomness;
use crate::base::sync::{lock, write};
use crate::base::time::Time;
use crate::call::remote_call::shut_down;
use crate::connection::UnreadReplies;
use crate::driver::adapter_threads::AdapterThreads;
use crate::driver::client::Connector;
use crate::driver::clock;
use crate::driver::server::in_flight::InFlight;
use crate::driver::server::threads::ServerThreads;
use crate::driver::server::{self, Server};
use crate::driver::simulated::Simulated;
use crate::interceptor::Interceptors;
use crate::object::ObjectRef;
use crate::object::messaging::OrbPolicies;
use crate::poa::adapter::{Adapter, Ownership};
use crate::poa::{AdapterHost, ManagerState, Poa};
use crate::transport::tcp::HostPort;
use crate::transport::{Address, Endpoint, unix};

pub(crate) struct OrbCore {
    /// The ORB itself, for methods that make references from `&self`.
    this: Weak<OrbCore>,
    pub(crate) config: OrbConfig,
    pub(crate) adapter: Adapter,
    adapter_threads: Arc<AdapterThreads>,
    pub(crate) connector: Connector,
    /// The policies set by [`Orb::set_policies`](super::Orb::set_policies).
    pub(crate) policies: OrbPolicies,
    pub(crate) interceptors: Interceptors,
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
    pub(super) initial: RwLock<BTreeMap<String, ObjectRef>>,
    /// The base URL of initial references that no other source names.
    pub(super) default_initial: Option<String>,
    pub(super) orb_id: String,
    pub(super) server_id: String,
    /// The file for the profile of marshalled types.
    marshal_profile: Option<PathBuf>,
    pub(super) value_factories: ValueFactories,
    pub(super) value_types: ValueTypes,
    endpoints: Vec<Endpoint>,
    publish: Vec<String>,
    hold_requests: bool,
    /// The server. Its threads hold the ORB, so it is taken out when the ORB stops serving.
    server: Mutex<Option<Server>>,
    /// The addresses in references of this ORB.
    published: OnceLock<Vec<Address>>,
    /// Whether a reference was made without an address.
    has_made_nowhere: AtomicBool,
    root: Mutex<Option<Poa>>,
    is_shut_down: Mutex<bool>,
}

impl OrbCore {
    pub(super) fn new(mut settings: Settings) -> Arc<Self> {
        let endpoints = settings.listening();
        let Settings {
            config,
            publish,
            hold_requests,
            default_initial,
            orb_id,
            server_id,
            interceptors,
            simulation,
            marshal_profile,
            ..
        } = settings;
        let server_threads = ServerThreads::new(&config);
        let adapter_threads = AdapterThreads::new(&config, &server_threads);
        Arc::new_cyclic(|this| OrbCore {
            this: this.clone(),
            adapter: Adapter::new(
                Randomness::new(config.seed),
                &config,
                !interceptors.server.is_empty(),
                adapter_threads.clone(),
                this.clone(),
            ),
            adapter_threads,
            connector: Connector::new(config.clone()),
            policies: OrbPolicies::default(),
            requests: config.server_requests_max.map(InFlight::new),
            server_threads: server_threads.clone(),
            unread_replies: config.transmit_memory_max.map(UnreadReplies::new),
            receive_memory: config.receive_memory_max.map(|bytes| Arc::new(ReceiveMemory::new(bytes))),
            config,
            initial: RwLock::default(),
            interceptors,
            simulated: simulation.map(Simulated::new),
            default_initial,
            orb_id,
            server_id,
            marshal_profile,
            value_factories: ValueFactories::default(),
            value_types: ValueTypes::default(),
            endpoints,
            publish: publish.into_items(),
            hold_requests,
            server: Mutex::new(None),
            published: OnceLock::new(),
            has_made_nowhere: AtomicBool::new(false),
            root: Mutex::new(None),
            is_shut_down: Mutex::new(false),
        })
    }

    /// The ORB of the environment with which values are read. `None` where there is none, and while it is
    /// being dropped.
    pub(crate) fn of_environment(environment: &dyn Environment) -> Option<Arc<OrbCore>> {
        match environment.downcast_ref::<OrbCore>() {
            Some(orb) => orb.this(),
            None => environment.share()?.downcast_ref::<OrbCore>()?.this(),
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
    pub(super) fn root_poa(self: &Arc<Self>) -> io::Result<Poa> {
        let mut root = lock(&self.root);
        if let Some(poa) = &*root {
            return Ok(poa.clone());
        }
        if *lock(&self.is_shut_down) {
            return Ok(Poa::destroyed_root(&self.host()));
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
                Ok(server) => *lock(&self.server) = Some(server),
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
        *root = Some(poa.clone());
        Ok(poa)
    }

    /// Fixes the addresses in references, for a server that listens at `bound`.
    pub(crate) fn publish(&self, bound: Vec<Address>) -> io::Result<()> {
        let mut published = server::published(&self.publish, bound)?;
        let has_tcp = published.iter().any(|address| address.tcp().is_some());
        if !has_tcp && self.config.bidirectional {
            published.push(made_up_address(self.adapter.randomness()));
        } else if !has_tcp && !published.is_empty() && self.config.giop_version == Version::V1_0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "references of GIOP 1.0 have no place for a Unix socket or shared memory: listen at an iiop:// address \
                 as well, or let the GIOP version be 1.1 or 1.2",
            ));
        }
        let _ = self.published.set(published);
        Ok(())
    }

    /// The timeout of a call for which neither the reference nor the thread has one.
    #[inline]
    pub(crate) fn call_timeout(&self) -> Option<Duration> {
        self.policies.get().roundtrip_timeout.unwrap_or(self.config.call_timeout)
    }

    /// The time by which the ORB's calls go.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        match &self.simulated {
            None => clock::now(),
            Some(simulated) => simulated.now(),
        }
    }

    fn published(&self) -> &[Address] {
        self.published.get().map_or(&[], Vec::as_slice)
    }

    fn tcp_addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        self.published().iter().filter_map(Address::tcp)
    }

    /// The addresses that only clients on this machine can use.
    fn local_addresses(&self) -> impl Iterator<Item = &Address> {
        self.published().iter().filter(|address| address.is_local())
    }

    pub(super) fn published_addresses(&self) -> Vec<String> {
        self.published().iter().map(Address::to_string).collect()
    }

    pub(super) fn corbaloc_for(&self, plain_key: &str) -> String {
        let tcp = self.tcp_addresses().map(|(host, port)| CorbalocAddress::Iiop {
            version: self.config.giop_version,
            host: host.to_owned(),
            port,
        });
        let version = self.config.giop_version;
        let sockets = self.local_addresses().filter_map(|address| match address {
            Address::Tcp(_) => None,
            Address::Unix(path) => Some(CorbalocAddress::Unix { version, path: path.as_str().to_owned() }),
            Address::SharedMemory(path) => {
                Some(CorbalocAddress::SharedMemory { version, path: path.as_str().to_owned() })
            }
        });
        let mut addresses: Vec<_> = tcp.collect();
        if addresses.is_empty() {
            addresses.extend(sockets);
        }
        if addresses.is_empty() {
            return String::new();
        }
        Corbaloc { addresses, object_key: plain_key.as_bytes().to_vec() }.to_string()
    }

    /// Whether only this process can call the objects of the ORB, and none of them waits for a thread in
    /// [`Orb::run`](super::Orb::run).
    pub(super) fn is_unreachable(&self) -> bool {
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
        ObjectRef::new(self, ior)
    }

    /// The object key of a profile that leads to an object in this process.
    pub(crate) fn local_key(&self, profile: &IiopProfile) -> Option<Vec<u8>> {
        let key = profile.object_key();
        let is_local = match self.adapter.knows(key) {
            Ownership::Ours => true,
            Ownership::NotOurs => false,
            Ownership::IfAtOurAddress => {
                profile.addresses().any(|address| {
                    address.is_unspecified()
                        || self
                            .tcp_addresses()
                            .any(|(host, port)| port == address.port && host == address.host)
                }) || self.has_socket_of(profile)
            }
        };
        is_local.then(|| key.to_vec())
    }

    /// Whether the ORB listens at one of the local sockets that a profile names.
    fn has_socket_of(&self, profile: &IiopProfile) -> bool {
        let is_ours = |address: Address| self.local_addresses().any(|ours| *ours == address);
        let all_in = |transport| Address::all_in(profile, transport);
        all_in(Transport::Unix).into_iter().chain(all_in(Transport::SharedMemory)).any(is_ours)
    }

    pub(super) fn corbaloc(self: &Arc<Self>, corbaloc: &Corbaloc) -> Result<ObjectRef, SystemException> {
        match (corbaloc.initial_reference(), corbaloc.to_ior_on(Some(&unix::machine_name()))) {
            (Some(name), _) => self.initial_reference(&name),
            (None, Some(ior)) => Ok(ObjectRef::new(self, ior)),
            (None, None) => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::BAD_PARAM_URL_ADDRESS,
                CompletionStatus::No,
            )),
        }
    }

    pub(super) fn bind_key(&self, plain_key: &str, object: &ObjectRef) -> Result<(), SystemException> {
        match object.ior().iiop_profiles().find_map(|profile| self.local_key(profile)) {
            Some(key) => {
                self.adapter.set_alias(plain_key.as_bytes().to_vec(), key);
                Ok(())
            }
            None => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::NO_SUCH_OBJECT,
                CompletionStatus::No,
            )
            .with_detail("only an object of this ORB can have a plain key")),
        }
    }

    /// Makes the calling thread the main thread. Blocks until the ORB has been shut down.
    pub(super) fn run(&self) {
        self.adapter.main_thread().run();
    }

    pub(super) fn shut_down(&self, wait: bool) {
        self.stop_serving(wait);
        self.connector.close(wait);
        // Initial references hold the ORB, which holds them.
        write(&self.initial).clear();
    }

    /// Stops listening, closes the connections of clients and destroys the adapters.
    pub(super) fn stop_serving(&self, wait: bool) {
        // Held requests are refused, because a shutdown must not wait for them.
        self.adapter.managers().begin_close();
        self.adapter.main_thread().begin_close();
        let server = lock(&self.server).take();
        if let Some(server) = server {
            server.stop(wait);
        }
        let root = {
            let mut root = lock(&self.root);
            *lock(&self.is_shut_down) = true;
            root.take()
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
            SystemExceptionKind::ObjectNotExist if *lock(&self.is_shut_down) => shut_down(),
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
