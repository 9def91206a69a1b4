//! The client's side: servers register, clients resolve, watch and choose.

mod agents;
mod choice;
mod error;
mod keeper;
mod pool;
mod registration;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ironorb::{ObjectRef, Orb, SystemException, TypedRef};

use crate::idl::{self, Agent as _, AgentStatus, OwnerStatus};
use crate::reference::to_object;
use crate::registry::{Condition, Property};
use agents::Agents;
pub use choice::Choice;
pub use error::AgentError;
use keeper::Keeper;
use pool::Pools;
pub use pool::{Chosen, Pool};
pub use registration::{Offering, Registration};
pub use watch::{News, Watch};

/// A client of one agent, or of several: servers register with all of them, and clients ask the first that answers. Clones share its threads and its leases.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let orb = ironorb::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::here/Account")?;
/// use ironorb_agent::AgentClient;
///
/// let agent = AgentClient::connect(&orb, ["agent.example.org"])?;
/// // A server: alive as long as this process, and this value.
/// let registration = agent.register_object("bank/accounts", &account)?.property("zone", "east").start()?;
/// // A client.
/// for server in agent.resolve("bank/accounts")? {
///     println!("{}", server.reference);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AgentClient {
    core: Arc<Core>,
    _end: Arc<End>,
}

/// How a client behaves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The lease to ask for; zero leaves it to the agent. Renewals come at a third of it. Default: zero.
    pub lease: Duration,
    /// How long a call of one agent may take. Default: 2 s.
    pub timeout: Duration,
    /// Whether renewals tell agents how many requests the ORB has not answered ([`Orb::requests_in_flight`]). A program that
    /// registers servers of other processes says no: their load is not its own. Default: yes.
    pub tells_load: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions { lease: Duration::ZERO, timeout: Duration::from_secs(2), tells_load: true }
    }
}

/// A server of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Server {
    /// The stringified reference.
    pub reference: String,
    /// The properties, sorted by name.
    pub properties: Vec<Property>,
}

/// What the client's threads share with it.
pub(crate) struct Core {
    orb: Orb,
    agents: Agents,
    options: ClientOptions,
    keeper: Keeper,
    pools: Pools,
}

/// Ends the threads, with the last clone of a client.
struct End(Arc<Core>);

impl AgentClient {
    /// A client of these agents: each `HOST`, `HOST:PORT`, a `corbaloc:` or an `IOR:`. Who asks asks the first until it
    /// fails, then the next. Who registers registers with all. Does not call yet.
    pub fn connect<A: AsRef<str>>(
        orb: &Orb,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<AgentClient, SystemException> {
        AgentClient::connect_with(orb, addresses, ClientOptions::default())
    }

    /// A client with options.
    pub fn connect_with<A: AsRef<str>>(
        orb: &Orb,
        addresses: impl IntoIterator<Item = A>,
        options: ClientOptions,
    ) -> Result<AgentClient, SystemException> {
        let agents = Agents::new(orb, addresses, options.timeout)?;
        let core = Arc::new(Core {
            orb: orb.clone(),
            keeper: Keeper::new(agents.all().len()),
            agents,
            options,
            pools: Pools::default(),
        });
        Ok(AgentClient { _end: Arc::new(End(core.clone())), core })
    }

    /// Begins to register a server under a name; [`Offering::start`] registers it. INV_OBJREF if no client can reach the
    /// object.
    pub fn register(&self, name: &str, server: &impl TypedRef) -> Result<Offering, SystemException> {
        self.register_object(name, server.object())
    }

    /// Begins to register an object whose type the program does not know, which may be any ORB's.
    pub fn register_object(&self, name: &str, server: &ObjectRef) -> Result<Offering, SystemException> {
        let reference = self.core.orb.object_to_string(server)?;
        Ok(Offering::new(self.clone(), name, reference))
    }

    /// Registers several at one time, all or none. Exclusive ones are registered one after another, after the others.
    pub fn register_all(&self, offerings: Vec<Offering>) -> Result<Vec<Registration>, AgentError> {
        registration::start_all(self, offerings)
    }

    /// The servers of a name; none if nothing is registered.
    pub fn resolve(&self, name: &str) -> Result<Vec<Server>, AgentError> {
        self.resolve_where(name, &[])
    }

    /// The servers of a name that meet all conditions.
    pub fn resolve_where(&self, name: &str, filter: &[Condition]) -> Result<Vec<Server>, AgentError> {
        let filter = to_idl(filter);
        let resolution = self.core.agents.call(|agent| agent.resolve(name, &filter))?;
        Ok(servers(resolution.servers))
    }

    /// The servers of several names, in one request and at one moment; in the order of the names.
    pub fn resolve_many(&self, names: &[impl AsRef<str>]) -> Result<Vec<Vec<Server>>, AgentError> {
        let names: Vec<_> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        let resolved = self.core.agents.call(|agent| agent.resolve_many(&names, &[]))?;
        Ok(resolved.names.into_iter().map(|resolution| servers(resolution.servers)).collect())
    }

    /// Names that begin with a text, in their order, after another name; at most so many, and 10,000.
    pub fn list(&self, prefix: &str, after: &str, count_max: u32) -> Result<Vec<String>, AgentError> {
        self.core.agents.call(|agent| agent.list(prefix, after, count_max))
    }

    /// Follows the changes of names.
    pub fn watch(&self, names: &[impl AsRef<str>]) -> Watch {
        Watch::of_names(self, names.iter().map(|name| name.as_ref().to_owned()).collect())
    }

    /// Follows the changes of all names that begin with a text.
    pub fn watch_prefix(&self, prefix: &str) -> Watch {
        Watch::of_prefix(self, prefix)
    }

    /// The servers of a name, kept current, to choose from. The first one starts a thread for all pools of the client.
    pub fn pool<T: TypedRef>(&self, name: &str) -> Result<Pool<T>, AgentError> {
        Pool::open(self, name)
    }

    /// What the agent holds and has done.
    pub fn status(&self) -> Result<AgentStatus, AgentError> {
        self.core.agents.call(|agent| agent.status())
    }

    /// The processes that have registered, and their leases and loads: those with numbers after this one, in their order; at
    /// most so many, and 1,000.
    pub fn owners(&self, after: u64, count_max: u32) -> Result<Vec<OwnerStatus>, AgentError> {
        self.core.agents.call(|agent| agent.owners(after, count_max))
    }

    /// Has the agent write a copy of its names, and returns the file's path on the agent's machine. NO_PERMISSION if the
    /// agent has no folder for backups.
    pub fn backup(&self) -> Result<String, AgentError> {
        self.core.agents.call(|agent| agent.backup())
    }

    /// The ORB.
    pub fn orb(&self) -> &Orb {
        &self.core.orb
    }
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentClient").field("agents", &self.core.agents).finish_non_exhaustive()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.pools.end();
        keeper::end(&self.0);
    }
}

impl Server {
    /// The reference, typed without a check. INV_OBJREF for a text that is neither `IOR:` nor `corbaloc:`.
    pub fn to<T: TypedRef>(&self, orb: &Orb) -> Result<T, SystemException> {
        Ok(to_object(orb, &self.reference)?.narrow_unchecked())
    }

    /// The value of a property.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|property| &*property.name == name).map(|property| &*property.value)
    }
}

impl From<idl::Server> for Server {
    fn from(server: idl::Server) -> Self {
        let property =
            |property: idl::Property| Property { name: property.name.into(), value: property.value.into() };
        Server {
            reference: server.reference,
            properties: server.properties.into_iter().map(property).collect(),
        }
    }
}

fn servers(servers: idl::ServerSeq) -> Vec<Server> {
    servers.into_iter().map(Server::from).collect()
}

fn to_idl(filter: &[Condition]) -> Vec<idl::Condition> {
    let condition = |condition: &Condition| {
        let (kind, name, value) = match condition {
            Condition::Equals(name, value) => (idl::ConditionKind::PropertyEquals, name, value.as_str()),
            Condition::Differs(name, value) => (idl::ConditionKind::PropertyDiffers, name, value.as_str()),
            Condition::Exists(name) => (idl::ConditionKind::PropertyExists, name, ""),
        };
        idl::Condition { kind, name: name.clone(), value: value.to_owned() }
    };
    filter.iter().map(condition).collect()
}
