//! The builder of an ORB.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ironorb_giop::Version;
use ironorb_giop::exception::SystemException;

use super::settings::{CommandLineOption, SettingError, Settings, split_options};
use super::{LaneConfig, Orb};
use crate::base::config::OnewayBatching;
use crate::base::config::{
    Demultiplexing, ObjectLookup, OperationLookup, OrbConfig, ServerConcurrency, StatusAccess, Waiting,
};
use crate::base::locks::lane_locks_lend_from_now_on;
use crate::base::watch;
use crate::driver::orb_core::{FurnishRoot, OrbCore, OrbParts};
use crate::driver::simulated::{Simulation, SimulationSetting};
use crate::interceptor::{
    ClientContext, ClientInterceptor, ForwardedRequests, IorInterceptor, ServerContext, ServerInterceptor,
};
use crate::object::priority::RealTimeConfig;
use crate::rt::distributable::{Scheduler, SchedulerSetting};
use crate::status::furnish_root_with_watch;
use crate::transport::CustomTransport;
use crate::transport::endpoint::BadAddress;

/// Settings for a new ORB.
///
/// Each setting comes from the first of these sources that gives it: the command line
/// ([`arguments`](Self::arguments)), the program (the other methods here), the environment
/// (`IRONORB_CALL_TIMEOUT=5s`), the file that `IRONORB_CONFIG` names (`callTimeout = 5s`), the default. A
/// file named on the command line counts as the command line. [`settings`](crate::settings) lists the names.
/// An unknown name is an error in each source; in the environment that concerns all variables that begin with
/// `IRONORB_`.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct OrbBuilder {
    settings: Settings,
    options: Vec<CommandLineOption>,
    /// The error in the environment, if there is one. [`build`](OrbBuilder::build) returns it.
    environment: Option<SettingError>,
    recorder: Option<InstallRecorder>,
}

/// Adds what records calls to the file, or in the folder, that operators name.
pub type InstallRecorder = fn(OrbBuilder, &Path) -> io::Result<OrbBuilder>;

/// Why an ORB could not be made.
pub enum BuildError {
    /// A text is not an address.
    Address(BadAddress),
    /// A setting on the command line, in the environment or in a configuration file cannot be understood.
    Setting(SettingError),
    /// The system refuses a socket or thread.
    Io(io::Error),
    /// The text of an initial reference cannot be understood.
    InitialReference {
        /// The name of the initial reference.
        name: String,
        /// The reason.
        why: Box<SystemException>,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Address(e) => e.fmt(f),
            BuildError::Setting(e) => e.fmt(f),
            BuildError::Io(e) => e.fmt(f),
            BuildError::InitialReference { name, why } => {
                write!(f, "the initial reference {name} cannot be understood: {why}")
            }
        }
    }
}

/// The text of [`Display`](fmt::Display), which a program's `main` shows for an error that it returns.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Address(e) => Some(e),
            BuildError::Setting(e) => Some(e),
            BuildError::Io(e) => Some(e),
            BuildError::InitialReference { why, .. } => Some(why),
        }
    }
}

impl From<BadAddress> for BuildError {
    fn from(e: BadAddress) -> Self {
        BuildError::Address(e)
    }
}

impl From<SettingError> for BuildError {
    fn from(e: SettingError) -> Self {
        BuildError::Setting(e)
    }
}

impl From<io::Error> for BuildError {
    fn from(e: io::Error) -> Self {
        BuildError::Io(e)
    }
}

impl OrbBuilder {
    /// Begins with the settings of the environment. [`OrbBuilder::default`] ignores the environment.
    pub(super) fn from_environment() -> Self {
        let mut builder = OrbBuilder::default();
        builder.environment = builder.settings.take_environment(std::env::vars_os()).err();
        builder
    }

    /// Removes the `-ORB…` options from a command line and leaves the rest. These options override all other
    /// sources, wherever this call stands. `-ORBcallTimeout 5s` and `-ORBcallTimeout=5s` are equal, and `--`
    /// ends the options.
    ///
    /// If an option cannot be understood, [`build`](Self::build) returns the error, which names the option.
    ///
    /// ```
    /// let mut arguments: Vec<String> = std::env::args().collect();
    /// let orb = ironorb::Orb::builder().arguments(&mut arguments).build()?;
    /// # Ok::<(), ironorb::BuildError>(())
    /// ```
    pub fn arguments(mut self, arguments: &mut Vec<String>) -> Self {
        self.options.extend(split_options(arguments));
        self
    }

    /// Listens at an address: `iiop://127.0.0.1:2810`, `iiop://[::1]:0`, `iiop://:2809` for every address of
    /// the machine, `uiop:///run/bank.sock` for clients on this machine. May be called several times. With
    /// port 0 the system chooses the port. [`Endpoint`](crate::Endpoint) lists all forms.
    pub fn endpoint(mut self, address: &str) -> Result<Self, BadAddress> {
        self.settings.add_endpoint(address)?;
        Ok(self)
    }

    /// Adds a transport of the program's own. Calls prefer its addresses to others in a reference, and among
    /// several transports those of the first. Of two with one scheme the first counts.
    ///
    /// From now on [`endpoint`](Self::endpoint) and [`publish`](Self::publish) know its addresses, and so does
    /// the command line; the environment and the file it names were read before. What listens at such an
    /// endpoint needs GIOP 1.1 or 1.2, or an `iiop://` endpoint as well. Such an address has no `corbaloc:`
    /// form.
    pub fn transport(mut self, transport: Arc<dyn CustomTransport>) -> Self {
        self.settings.transports.push(transport);
        self
    }

    /// Never listens. For programs that only call, and for those that bring their own network to an
    /// [`engine`](crate::driver::engine). References to the ORB's own objects work in this process only, with two
    /// exceptions. [`publish`](Self::publish) may name the addresses, with their ports, at which clients find
    /// it. And the ORB may be bidirectional ([`OrbConfig::bidirectional`]): then servers that it calls can
    /// call it back. Otherwise [`Orb::object_to_string`] and, once there are objects, [`Orb::run`] are
    /// errors.
    pub fn no_endpoint(mut self) -> Self {
        self.settings.set_no_endpoint(true);
        self
    }

    /// Puts this address into references instead of the one listened at: `host`, `host:port`, `[ipv6]:port`.
    /// For servers behind a NAT or in a container. The first is the primary address, further ones are
    /// alternates. Without a port, the port listened at is used. Unix sockets are always published.
    pub fn publish(mut self, address: &str) -> Self {
        self.settings.publish.push(address.to_owned());
        self
    }

    /// Sets which thread runs a servant. Default: [`ServerConcurrency::default`].
    pub fn concurrency(mut self, concurrency: ServerConcurrency) -> Self {
        self.settings.config.concurrency = concurrency;
        self
    }

    /// Sets how callers wait for replies. Default: [`Waiting::Block`].
    pub fn client_waiting(mut self, waiting: Waiting) -> Self {
        self.settings.config.client_waiting = waiting;
        self
    }

    /// Sets how serving threads wait for requests. Default: [`Waiting::Block`].
    pub fn server_waiting(mut self, waiting: Waiting) -> Self {
        self.settings.config.server_waiting = waiting;
        self
    }

    /// Sets whether oneways are collected and sent in batches. Default: no.
    pub fn oneway_batching(mut self, batching: Option<OnewayBatching>) -> Self {
        self.settings.config.oneway_batching = batching;
        self
    }

    /// Sets how requests find their operations and objects; see the fields of
    /// [`OrbConfig`](crate::OrbConfig). The default is the fastest; the other choices exist for comparison.
    pub fn demultiplexing(
        mut self,
        operations: OperationLookup,
        objects: ObjectLookup,
        layers: Demultiplexing,
    ) -> Self {
        let config = &mut self.settings.config;
        config.operation_lookup = operations;
        config.object_lookup = objects;
        config.demultiplexing = layers;
        self
    }

    /// Sets how long a call may take; `None` for ever. Default: 60 s.
    pub fn call_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings.config.call_timeout = timeout;
        self
    }

    /// Sets whether requests tell servers how long their callers wait, and whether this ORB heeds it as a server: see
    /// [`OrbConfig::deadline_propagation`]. Default: no.
    pub fn deadline_propagation(mut self, yes: bool) -> Self {
        self.settings.config.deadline_propagation = yes;
        self
    }

    /// Sets how long one attempt to connect may take. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.config.connect_timeout = timeout;
        self
    }

    /// Sets the largest message that is accepted and sent, in bytes. Default: 128 MiB.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.config.connection.framer.message_bytes_max = bytes;
        self
    }

    /// Sends longer messages in GIOP 1.2 fragments of this many bytes. Default: no fragments.
    pub fn fragment_bytes(mut self, bytes: usize) -> Self {
        self.settings.config.connection.fragment_bytes = Some(bytes);
        self
    }

    /// Sends GIOP 1.1 requests and replies in fragments too, if they are longer than
    /// [`fragment_bytes`](Self::fragment_bytes). Such a fragment has at most that many bytes plus 8 KiB,
    /// except where 8-byte numbers fill a longer range. Default: they are sent whole, because JacORB does not
    /// read fragments of GIOP 1.1.
    pub fn fragments_in_giop_1_1(mut self, yes: bool) -> Self {
        self.settings.config.connection.fragments_in_giop_1_1 = yes;
        self
    }

    /// Sets the GIOP version of references made here, and the highest version spoken to peers. Default: 1.2.
    pub fn giop_version(mut self, version: Version) -> Self {
        self.settings.config.giop_version = version;
        self
    }

    /// Lets the root adapter's manager begin in the holding state, as the standard says, instead of the
    /// active one. The ORB serves nothing until `root_poa().manager().activate()`.
    pub fn hold_requests(mut self) -> Self {
        self.settings.hold_requests = true;
        self
    }

    /// Sets the base URL of initial references that no other source names: `corbaloc::host`, to which `/` and
    /// the name are added. Default: none, except for the naming service.
    pub fn default_initial_reference(mut self, url: &str) -> Self {
        self.settings.default_initial = Some(url.to_owned());
        self
    }

    /// Sets the ORB's name, which [`Orb::id`] returns. Default: empty.
    pub fn id(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.orb_id);
        self
    }

    /// Sets the server's name, which [`Orb::server_id`] returns. Default: empty.
    pub fn server_id(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.server_id);
        self
    }

    /// Sets the file to which the ORB writes, when it stops serving, which types were marshalled. Only code
    /// that was generated to record it is counted; see [`marshal_profile`](crate::base::marshal_profile). Default:
    /// none.
    pub fn marshal_profile(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.marshal_profile = Some(file.into());
        self
    }

    /// Sets the file, or the folder for a file of each process, to which calls are recorded. That needs a
    /// [recorder](Self::recorder). Default: none.
    pub fn recording(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.recording = Some(path.into());
        self
    }

    /// Sets what records calls where the setting `recording` asks for it. `ironorb_record::install` does so. An ORB whose
    /// operators do not ask has no interceptors by it. Default: none, and `recording` is an error.
    pub fn recorder(mut self, install: InstallRecorder) -> Self {
        self.recorder = Some(install);
        self
    }

    /// Sets the reference, as text, that `resolve_initial_references` returns for a name.
    pub fn initial_reference(mut self, name: &str, url: &str) -> Self {
        self.settings.set_initial(name, url);
        self
    }

    /// Adds a client interceptor, which sees each request that this ORB sends. It comes after those added
    /// before. Calls to objects in the same process send no request.
    pub fn client_interceptor(mut self, interceptor: impl ClientInterceptor) -> Self {
        self.settings.interceptors.client.push(Arc::new(interceptor));
        self
    }

    /// Adds a server interceptor, which sees each request that this ORB receives. It comes after those added
    /// before.
    pub fn server_interceptor(mut self, interceptor: impl ServerInterceptor) -> Self {
        self.settings.interceptors.server.push(Arc::new(interceptor));
        self
    }

    /// Adds a service context to the requests that this ORB sends. It comes after those added before, and after those
    /// of interceptors.
    pub fn client_context(mut self, context: impl ClientContext) -> Self {
        self.settings.interceptors.client_contexts.push(Arc::new(context));
        self
    }

    /// Has a service context of the requests read that this ORB receives. It is read after those added before.
    pub fn server_context(mut self, context: impl ServerContext) -> Self {
        self.settings.interceptors.server_contexts.push(Arc::new(context));
        self
    }

    /// Has requests carried out whose results another client waits for than the one that sends them. Default: they are carried out as
    /// oneways.
    pub fn forwarded_requests(mut self, forwarded: impl ForwardedRequests) -> Self {
        self.settings.interceptors.forwarded = Some(Arc::new(forwarded));
        self
    }

    /// Adds an IOR interceptor, which may add components to the references that this ORB makes. It comes
    /// after those added before.
    pub fn ior_interceptor(mut self, interceptor: impl IorInterceptor) -> Self {
        self.settings.interceptors.ior.push(Arc::new(interceptor));
        self
    }

    /// Adds a lane: connections, threads and limits of its own for one kind of work. Default: only the default lane, which
    /// has all endpoints and settings of this builder. [`build`](Self::build) reports lanes with equal names.
    pub fn lane(mut self, lane: LaneConfig) -> Self {
        self.settings.lanes.push(lane);
        self
    }

    /// Makes the ORB a real-time ORB (RTCORBA 1.2), which treats priorities as this says: see [`rt`](crate::rt). Default: an
    /// ORB without real time, which ignores priorities and pays nothing for them. Replaces all settings of real time of sources
    /// below, but for `watch` where the configuration does not say: operators switch that on.
    pub fn real_time(mut self, mut config: RealTimeConfig) -> Self {
        let below = self.settings.real_time.take();
        config.watch = config.watch.or_else(|| below?.watch);
        self.settings.real_time = Some(config);
        self
    }

    /// Gives the ORB distributable threads (RT-CORBA 2.0), which this scheduler schedules: see
    /// [`rt::distributable`](crate::rt::distributable). Makes it a real-time ORB, as [`real_time`](Self::real_time) with its
    /// defaults does where that is not called. Default: none; the requests of an ORB with a scheduler take the general path,
    /// as those with interceptors do.
    pub fn scheduler(mut self, scheduler: impl Scheduler) -> Self {
        self.settings.scheduler = Some(SchedulerSetting(Arc::new(scheduler)));
        self
    }

    /// Sets which clients the ORB tells its status, at the plain key `IronORBStatus`: `true` is those on this machine. See
    /// [`status`](crate::status). Default: none.
    pub fn status(mut self, access: impl Into<StatusAccess>) -> Self {
        self.settings.config.status = access.into();
        self
    }

    /// Has the process take so many bytes of memory at the start, and no more while that is enough. See [`OrbConfig::memory`].
    /// Default: memory is taken when it is needed.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.config.memory = Some(bytes);
        self
    }

    /// Has the cached reads counted that ask no server. See [`OrbConfig::count_cached_reads`]. Default: false.
    pub fn count_cached_reads(mut self, yes: bool) -> Self {
        self.settings.config.count_cached_reads = yes;
        self
    }

    /// Has the ORB's calls run in a simulation's virtual time, instead of on threads and sockets. Its calls fail with
    /// BAD_INV_ORDER until it has an [engine](crate::engine::ClientEngine::for_stubs).
    pub fn simulation(mut self, simulation: Arc<dyn Simulation>) -> Self {
        self.settings.simulation = Some(SimulationSetting(simulation));
        self
    }

    /// All fields of the configuration. The builder has a method for each of them as well.
    pub fn config(&mut self) -> &mut OrbConfig {
        &mut self.settings.config
    }

    /// Makes the ORB, and begins to listen if an endpoint was given.
    pub fn build(mut self) -> Result<Orb, BuildError> {
        if let Some(e) = self.environment.take() {
            return Err(e.into());
        }
        self.settings.take_options(&self.options)?;
        if let Some(path) = self.settings.recording.take() {
            let install = self.recorder.ok_or_else(no_recorder)?;
            self = install(self, &path).map_err(|error| {
                BuildError::Io(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            })?;
        }
        let initial = std::mem::take(&mut self.settings.initial);
        if let Some(file) = &self.settings.marshal_profile {
            // An error must show now, and not only when the program ends.
            File::options().append(true).create(true).open(file).map_err(|error| {
                BuildError::Io(io::Error::new(error.kind(), format!("{}: {error}", file.display())))
            })?;
        }
        if self.settings.config.memory.is_some() {
            ironorb_extent::keep_heap()?;
            self.settings.config.keep_to_memory();
        }
        let listens_now = self.settings.listens_now();
        let watches = self.settings.real_time.as_ref().is_some_and(|real_time| real_time.watch.is_some());
        if watches && !watch::ENABLED {
            return Err(BuildError::Io(io::Error::new(io::ErrorKind::Unsupported, watch::NOT_BUILT)));
        }
        if self.settings.real_time.is_some() || self.settings.scheduler.is_some() {
            lane_locks_lend_from_now_on();
        }
        let tells = self.settings.config.status != StatusAccess::Off || watches;
        let furnish_root: Option<FurnishRoot> = if tells { Some(furnish_root_with_watch) } else { None };
        let parts = OrbParts { furnish_root, ..self.settings.into_parts()? };
        super::lanes::check(&parts.lanes)?;
        if parts.config.lock_memory {
            crate::rt::lock_memory()?;
        }
        let core = OrbCore::new(parts);
        let orb = Orb::owning(core.clone());
        core.watch_upcalls().map_err(BuildError::Io)?;
        for (name, url) in initial {
            core.set_initial_reference(&orb, &name, &url)
                .map_err(|why| BuildError::InitialReference { name, why: Box::new(why) })?;
        }
        if listens_now {
            core.root_poa()?;
        }
        Ok(orb)
    }
}

#[cold]
fn no_recorder() -> BuildError {
    let why = "the setting `recording` needs a program that calls `ironorb_record::install`";
    BuildError::Io(io::Error::new(io::ErrorKind::Unsupported, why))
}
