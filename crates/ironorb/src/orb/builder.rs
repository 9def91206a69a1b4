//! What a program decides about its ORB.

use std::fmt;
use std::io;
use std::time::Duration;

use ironorb_giop::Version;
use ironorb_giop::exception::SystemException;

use super::Orb;
use super::core::OrbCore;
use crate::config::{OrbConfig, ServerConcurrency};
use crate::endpoint::{BadAddress, Endpoint};

/// Settings for a new ORB. What is not set here is taken from the environment, and then from the defaults.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct OrbBuilder {
    config: OrbConfig,
    endpoints: Vec<Endpoint>,
    publish: Vec<String>,
    no_endpoint: bool,
    hold_requests: bool,
    initial: Vec<(String, String)>,
}

/// Why an ORB could not be made.
#[derive(Debug)]
pub enum BuildError {
    /// A text is not an address.
    Address(BadAddress),
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
            BuildError::Io(e) => e.fmt(f),
            BuildError::InitialReference { name, why } => {
                write!(f, "the initial reference {name} cannot be understood: {why}")
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Address(e) => Some(e),
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

impl From<io::Error> for BuildError {
    fn from(e: io::Error) -> Self {
        BuildError::Io(e)
    }
}

/// Names an initial reference in the environment: `IRONORB_INIT_REF="NameService=corbaloc::host/NameService"`;
/// several are separated by spaces. The builder's own settings come before it.
pub const INIT_REF_VARIABLE: &str = "IRONORB_INIT_REF";

impl OrbBuilder {
    /// Listens at an address: `iiop://127.0.0.1:2810`, `iiop://[::1]:0`, `iiop://:2809` for every address of the
    /// machine. May be given several times. Port 0 lets the system choose.
    pub fn endpoint(mut self, address: &str) -> Result<Self, BadAddress> {
        self.endpoints.push(address.parse()?);
        Ok(self)
    }

    /// Never listens: for programs that only call, and for those that bring their own network to an
    /// [`engine`](crate::engine). References to its own objects work in this process only, unless
    /// [`publish`](Self::publish) names the addresses, with their ports, at which others find it.
    pub fn no_endpoint(mut self) -> Self {
        self.no_endpoint = true;
        self
    }

    /// Puts another address into references than the one listened at: `host`, `host:port`, `[ipv6]:port`. For
    /// servers behind a NAT or in a container. The first is the address proper, others are alternates; without
    /// a port, the port listened at.
    pub fn publish(mut self, address: &str) -> Self {
        self.publish.push(address.to_owned());
        self
    }

    /// Which thread runs a servant.
    pub fn concurrency(mut self, concurrency: ServerConcurrency) -> Self {
        self.config.concurrency = concurrency;
        self
    }

    /// How long a call may take; `None` for ever. Default 60 s.
    pub fn call_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.config.call_timeout = timeout;
        self
    }

    /// How long one attempt to connect may take. Default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// Largest message accepted and sent, in bytes. Default 128 MiB.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.config.connection.framer.message_bytes_max = bytes;
        self
    }

    /// Sends longer messages in GIOP 1.2 fragments of this many bytes. Default: never.
    pub fn fragment_bytes(mut self, bytes: usize) -> Self {
        self.config.connection.fragment_bytes = Some(bytes);
        self
    }

    /// GIOP version of references made here, and the highest spoken to others. Default 1.2.
    pub fn giop_version(mut self, version: Version) -> Self {
        self.config.giop_version = version;
        self
    }

    /// The root adapter's manager begins in the holding state, as the standard has it, and not in the active one:
    /// nothing is served until `root_poa().manager().activate()`.
    pub fn hold_requests(mut self) -> Self {
        self.hold_requests = true;
        self
    }

    /// What `resolve_initial_references` gives for a name: the text of a reference.
    pub fn initial_reference(mut self, name: &str, url: &str) -> Self {
        self.initial.push((name.to_owned(), url.to_owned()));
        self
    }

    /// All settings at once, for those that have no method of their own.
    pub fn config(&mut self) -> &mut OrbConfig {
        &mut self.config
    }

    /// Makes the ORB and begins to listen, if an endpoint was given.
    pub fn build(mut self) -> Result<Orb, BuildError> {
        if let Ok(text) = std::env::var(INIT_REF_VARIABLE) {
            let from_environment = text.split_whitespace().filter_map(|part| part.split_once('='));
            for (name, url) in from_environment {
                if !self.initial.iter().any(|(known, _)| known == name) {
                    self.initial.push((name.to_owned(), url.to_owned()));
                }
            }
        }
        let listens_now = !self.endpoints.is_empty();
        let endpoints = match (self.endpoints.is_empty(), self.no_endpoint) {
            (true, false) => vec![Endpoint::anywhere()],
            (_, true) => Vec::new(),
            (false, false) => self.endpoints,
        };
        let core = OrbCore::new(self.config, endpoints, self.publish, self.hold_requests);
        let orb = Orb::owning(core.clone());
        for (name, url) in self.initial {
            core.set_initial_reference(&orb, &name, &url)
                .map_err(|why| BuildError::InitialReference { name, why: Box::new(why) })?;
        }
        if listens_now {
            core.root_poa()?;
        }
        Ok(orb)
    }
}
