//! Where the requests of a part go.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::{CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind};

/// Servers of which any may carry out a call.
pub trait Servers: Send + Sync + 'static {
    /// How many there are now.
    fn count(&self) -> usize;

    /// Chooses one for a request, but for those that have been `tried`. `None` if no other is left. Must not block: receivers of replies
    /// call it. If it panics, the attempt fails with INTERNAL, COMPLETED_NO.
    fn choose(&self, tried: &[ObjectRef]) -> Option<Chosen>;
}

/// A server that was chosen for a request.
pub struct Chosen {
    /// Its object.
    pub object: ObjectRef,
    /// Kept until the request has ended: who counts what is outstanding notices its drop.
    pub guard: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen").field("object", &self.object).finish_non_exhaustive()
    }
}

/// Servers that do not change, each asked in its turn.
#[derive(Debug)]
pub struct InTurn {
    servers: Vec<ObjectRef>,
    next: AtomicUsize,
}

impl InTurn {
    /// These servers, beginning with the first.
    pub fn new(servers: impl IntoIterator<Item = ObjectRef>) -> Arc<InTurn> {
        Arc::new(InTurn { servers: servers.into_iter().collect(), next: AtomicUsize::new(0) })
    }

    /// The same, beginning with any of them: jobs that each have a list of their own do not all begin with the same.
    pub(crate) fn anywhere(servers: Vec<ObjectRef>) -> Arc<InTurn> {
        let first = if servers.is_empty() { 0 } else { fastrand::usize(..servers.len()) };
        Arc::new(InTurn { servers, next: AtomicUsize::new(first) })
    }
}

impl Servers for InTurn {
    fn count(&self) -> usize {
        self.servers.len()
    }

    fn choose(&self, tried: &[ObjectRef]) -> Option<Chosen> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let all =
            (0..self.servers.len()).map(|step| &self.servers[first.wrapping_add(step) % self.servers.len()]);
        let mut left = all.filter(|server| !is_among(server, tried));
        left.next().map(|object| Chosen { object: object.clone(), guard: None })
    }
}

/// Tells the servers of names: an agent, a naming service, a table.
pub trait Handles: Send + Sync + 'static {
    /// The servers of each of these names, the best first. May block as a call does.
    fn resolve(&self, names: &[&str]) -> Vec<Result<Vec<ObjectRef>, SystemException>>;

    /// Whether [`resolve`](Self::resolve) does not block for this name, because its servers are known here. A daemon then hands its job to
    /// no other thread.
    fn knows(&self, name: &str) -> bool {
        let _it_asks = name;
        false
    }

    /// The servers of a name, each with what it says in its property [`PART_PROPERTY`](crate::PART_PROPERTY). May block as a call does.
    ///
    /// Where servers have no properties, they are equals that each have the whole object.
    fn part_servers(&self, name: &str) -> Result<Vec<(ObjectRef, Option<String>)>, SystemException> {
        let resolved = self.resolve(&[name]).pop().unwrap_or_else(|| Err(no_server(name)))?;
        Ok(resolved.into_iter().map(|object| (object, None)).collect())
    }
}

/// A table of names.
impl Handles for BTreeMap<String, Vec<ObjectRef>> {
    fn resolve(&self, names: &[&str]) -> Vec<Result<Vec<ObjectRef>, SystemException>> {
        names.iter().map(|name| self.get(*name).cloned().ok_or_else(|| no_server(name))).collect()
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}

/// Where the requests of a part go.
#[derive(Clone)]
pub(crate) enum Target {
    Object(ObjectRef),
    Servers(Arc<dyn Servers>),
    Name(String),
}

impl Target {
    /// How many servers could carry the part out, as far as that is known.
    pub(crate) fn servers(&self) -> usize {
        match self {
            Target::Object(_) => 1,
            Target::Servers(servers) => servers.count(),
            Target::Name(_) => usize::MAX,
        }
    }

    /// Chooses where a request goes, but for servers that have been tried. A name must have been resolved. `what` is for the message
    /// where there is none.
    pub(crate) fn choose(&self, tried: &[ObjectRef], what: &str) -> Result<Chosen, SystemException> {
        let chosen = match self {
            Target::Object(object) => Some(Chosen { object: object.clone(), guard: None }),
            Target::Servers(servers) => servers.choose(tried),
            Target::Name(_) => None,
        };
        chosen.ok_or_else(|| no_server(what))
    }

    /// The target as a text for a daemon.
    pub(crate) fn text(&self) -> Result<String, SystemException> {
        match self {
            Target::Object(object) => Ok(object.to_ior_string()),
            Target::Name(name) => Ok(name.clone()),
            Target::Servers(servers) => servers
                .choose(&[])
                .map(|chosen| chosen.object.to_ior_string())
                .ok_or_else(|| no_server("the part")),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Object(object) => object.fmt(f),
            Target::Name(name) => name.fmt(f),
            Target::Servers(servers) => write!(f, "{} servers", servers.count()),
        }
    }
}

/// Whether an object is one of these.
pub(crate) fn is_among(object: &ObjectRef, these: &[ObjectRef]) -> bool {
    these.iter().any(|one| one.is_equivalent(object))
}

#[cold]
pub(crate) fn no_server(name: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("no server is known for {name}"))
}
