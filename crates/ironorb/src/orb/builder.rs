//! What a program decides about its ORB.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ironorb_giop::Version;
use ironorb_giop::exception::SystemException;

use super::Orb;
use super::core::OrbCore;
use super::settings::{CommandLineOption, SettingError, Settings, split_options};
use crate::config::{Demultiplexing, ObjectLookup, OperationLookup, OrbConfig, ServerConcurrency, Waiting};
use crate::endpoint::BadAddress;
use crate::interceptor::{ClientInterceptor, IorInterceptor, ServerInterceptor};
use crate::messaging::OnewayBatching;

/// Settings for a new ORB.
///
/// Each comes from the first of these that gives it: the command line ([`arguments`](Self::arguments)), the program
/// (the other methods here), the environment (`IRONORB_CALL_TIMEOUT=5s`), the file that `IRONORB_CONFIG` names
/// (`callTimeout = 5s`), the default. A file named on the command line counts as the command line. The names are in
/// [`settings`](crate::settings). A name that is none of them is an error in each source, in the environment for all
/// variables that begin with `IRONORB_`.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct OrbBuilder {
    settings: Settings,
    options: Vec<CommandLineOption>,
    /// What is wrong with the environment; told when the ORB is made.
    environment: Option<SettingError>,
}

/// Why an ORB could not be made.
pub enum BuildError {
    /// A text is not an address.
    Address(BadAddress),
    /// A setting on the command line, in the environment or in a configuration file cannot be understood.
    Setting(SettingError),
    /// The system refuses a socket or thread.
    Io(io::Error),
    /// An initial reference cannot be understood.
    InitialReference {
        /// Its name.
        name: String,
        /// Why.
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

/// As a program's `main` shows it: the text.
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
    /// Begins with the settings of the environment; [`OrbBuilder::default`] begins without.
    pub(super) fn from_environment() -> Self {
        let mut builder = OrbBuilder::default();
        builder.environment = builder.settings.take_environment(std::env::vars_os()).err();
        builder
    }

    /// Takes the `-ORB…` options out of a command line and leaves the rest; what they say comes before everything
    /// else, wherever this stands. `-ORBcallTimeout 5s` and `-ORBcallTimeout=5s` are the same, and `--` ends them.
    ///
    /// What cannot be understood is told by [`build`](Self::build), with the option that says it.
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

    /// Listens at an address: `iiop://127.0.0.1:2810`, `iiop://[::1]:0`, `iiop://:2809` for every address of the
    /// machine; `uiop:///run/bank.sock` for clients on this one. May be given several times. Port 0 lets the system
    /// choose. [`Endpoint`](crate::Endpoint) has all forms.
    pub fn endpoint(mut self, address: &str) -> Result<Self, BadAddress> {
        self.settings.add_endpoint(address.parse()?);
        Ok(self)
    }

    /// Never listens: for programs that only call, and for those that bring their own network to an
    /// [`engine`](crate::engine). References to its own objects work in this process only, unless
    /// [`publish`](Self::publish) names the addresses, with their ports, at which others find it, or the ORB is
    /// bidirectional ([`OrbConfig::bidirectional`]): then servers that it calls can call it back. Until then
    /// [`Orb::object_to_string`] and, once there are objects, [`Orb::run`] are errors.
    pub fn no_endpoint(mut self) -> Self {
        self.settings.set_no_endpoint(true);
        self
    }

    /// Puts another address into references than the one listened at: `host`, `host:port`, `[ipv6]:port`. For
    /// servers behind a NAT or in a container. The first is the address proper, others are alternates; without
    /// a port, the port listened at. Unix domain sockets are published in any case.
    pub fn publish(mut self, address: &str) -> Self {
        self.settings.publish.push(address.to_owned());
        self
    }

    /// Which thread runs a servant.
    pub fn concurrency(mut self, concurrency: ServerConcurrency) -> Self {
        self.settings.config.concurrency = concurrency;
        self
    }

    /// How callers wait for replies. Default: [`Waiting::Block`].
    pub fn client_waiting(mut self, waiting: Waiting) -> Self {
        self.settings.config.client_waiting = waiting;
        self
    }

    /// How threads that serve wait for requests. Default: [`Waiting::Block`].
    pub fn server_waiting(mut self, waiting: Waiting) -> Self {
        self.settings.config.server_waiting = waiting;
        self
    }

    /// Whether oneways wait for others to leave with. Default: no.
    pub fn oneway_batching(mut self, batching: Option<OnewayBatching>) -> Self {
        self.settings.config.oneway_batching = batching;
        self
    }

    /// How requests find their operations and objects; see the fields of [`OrbConfig`](crate::OrbConfig). The default is the
    /// fastest, the others are there to be compared with it.
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

    /// How long a call may take; `None` for ever. Default 60 s.
    pub fn call_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.settings.config.call_timeout = timeout;
        self
    }

    /// How long one attempt to connect may take. Default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.config.connect_timeout = timeout;
        self
    }

    /// Largest message accepted and sent, in bytes. Default 128 MiB.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.config.connection.framer.message_bytes_max = bytes;
        self
    }

    /// Sends longer messages in GIOP 1.2 fragments of this many bytes. Default: never.
    pub fn fragment_bytes(mut self, bytes: usize) -> Self {
        self.settings.config.connection.fragment_bytes = Some(bytes);
        self
    }

    /// Sends requests and replies of GIOP 1.1 that are longer than [`fragment_bytes`](Self::fragment_bytes) in
    /// fragments, too: of at most so many bytes and 8 KiB, but where numbers of 8 bytes stand side by side for longer.
    /// Default: they leave whole, as JacORB knows no fragments of GIOP 1.1.
    pub fn fragments_in_giop_1_1(mut self, yes: bool) -> Self {
        self.settings.config.connection.fragments_in_giop_1_1 = yes;
        self
    }

    /// GIOP version of references made here, and the highest spoken to others. Default 1.2.
    pub fn giop_version(mut self, version: Version) -> Self {
        self.settings.config.giop_version = version;
        self
    }

    /// The root adapter's manager begins in the holding state, as the standard has it, and not in the active one:
    /// nothing is served until `root_poa().manager().activate()`.
    pub fn hold_requests(mut self) -> Self {
        self.settings.hold_requests = true;
        self
    }

    /// Where initial references are that nothing else names: `corbaloc::host`, to which `/` and the name are added. Default:
    /// nowhere, but for the naming service.
    pub fn default_initial_reference(mut self, url: &str) -> Self {
        self.settings.default_initial = Some(url.to_owned());
        self
    }

    /// The ORB's own name, which [`Orb::id`] gives. Default: empty.
    pub fn id(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.orb_id);
        self
    }

    /// The server's name, which [`Orb::server_id`] gives. Default: empty.
    pub fn server_id(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.server_id);
        self
    }

    /// The file to which is written what was marshalled, by code that was generated to record it, when the ORB stops serving;
    /// see [`marshal_profile`](crate::marshal_profile). Default: none.
    pub fn marshal_profile(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.marshal_profile = Some(file.into());
        self
    }

    /// What `resolve_initial_references` gives for a name: the text of a reference.
    pub fn initial_reference(mut self, name: &str, url: &str) -> Self {
        self.settings.set_initial(name, url);
        self
    }

    /// Shows each request that this ORB sends to an interceptor, after those registered before. Calls to objects in
    /// the same process are not messages.
    pub fn client_interceptor(mut self, interceptor: impl ClientInterceptor) -> Self {
        self.settings.interceptors.client.push(Arc::new(interceptor));
        self
    }

    /// Shows each request that comes to this ORB to an interceptor, after those registered before.
    pub fn server_interceptor(mut self, interceptor: impl ServerInterceptor) -> Self {
        self.settings.interceptors.server.push(Arc::new(interceptor));
        self
    }

    /// Lets an interceptor add to the references that this ORB makes, after those registered before.
    pub fn ior_interceptor(mut self, interceptor: impl IorInterceptor) -> Self {
        self.settings.interceptors.ior.push(Arc::new(interceptor));
        self
    }

    /// All settings of the configuration at once. Each has a method of its own as well.
    pub fn config(&mut self) -> &mut OrbConfig {
        &mut self.settings.config
    }

    /// Makes the ORB and begins to listen, if an endpoint was given.
    pub fn build(mut self) -> Result<Orb, BuildError> {
        if let Some(e) = self.environment {
            return Err(e.into());
        }
        self.settings.take_options(&self.options)?;
        let initial = std::mem::take(&mut self.settings.initial);
        if let Some(file) = &self.settings.marshal_profile {
            // Told now rather than when all has been counted.
            File::options().append(true).create(true).open(file).map_err(|error| {
                BuildError::Io(io::Error::new(error.kind(), format!("{}: {error}", file.display())))
            })?;
        }
        let listens_now = self.settings.listens_now();
        let core = OrbCore::new(self.settings);
        let orb = Orb::owning(core.clone());
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
