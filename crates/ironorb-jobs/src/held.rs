//! Names of an agent whose servers are held, and kept current by the agent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::{ObjectRef, SystemException, TypedRef as _};
use ironorb_agent::{AgentClient, Pool, Server};

use crate::agent::failed;
use crate::generated::iron_orb::JobDaemonRef;
use crate::parallel::PART_PROPERTY;
use crate::target::{Handles, no_server};

/// Holds the servers of the names that jobs have named, for a daemon: a name is asked for once, and the agent tells what changes
/// ([`AgentClient::pool`]). While no agent answers, the servers that are known stay.
///
/// Each resolution begins with another server of the name.
pub struct HeldHandles {
    client: AgentClient,
    held: Mutex<BTreeMap<String, Arc<Held>>>,
}

/// The servers of a name. The type of their references says nothing about them: nobody calls them by it.
struct Held {
    pool: Pool<JobDaemonRef>,
    turn: AtomicUsize,
}

/// The most names that are held. Beyond that all are asked for anew.
const HELD_MAX: usize = 10_000;

impl HeldHandles {
    /// Holds names of this client's agent.
    pub fn new(client: &AgentClient) -> Arc<HeldHandles> {
        Arc::new(HeldHandles { client: client.clone(), held: Mutex::default() })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pool(&self, name: &str) -> Result<Arc<Held>, SystemException> {
        let known = self.held().get(name).cloned();
        match known {
            Some(held) => Ok(held),
            // Without the lock: this calls the agent.
            None => {
                let pool = self.client.pool(name).map_err(|e| failed(name, &e))?;
                Ok(Arc::new(Held { pool, turn: AtomicUsize::new(0) }))
            }
        }
    }

    /// Keeps the servers of a name that has some.
    fn hold(&self, name: &str, held: Arc<Held>) {
        let mut all = self.held();
        if all.len() >= HELD_MAX && !all.contains_key(name) {
            all.clear();
        }
        all.entry(name.to_owned()).or_insert(held);
    }

    fn servers(&self, name: &str) -> Result<Vec<ObjectRef>, SystemException> {
        let held = self.pool(name)?;
        let Some(servers) = held.servers() else {
            // Names that clients guess must not fill the table.
            self.held().remove(name);
            return Err(no_server(name));
        };
        self.hold(name, held);
        Ok(servers)
    }
}

impl Held {
    /// The servers, if there are any.
    fn servers(&self) -> Option<Vec<ObjectRef>> {
        let servers = self.pool.references().into_iter();
        let mut servers: Vec<ObjectRef> = servers.map(|server| server.object().clone()).collect();
        let first = self.turn.fetch_add(1, Ordering::Relaxed).checked_rem(servers.len())?;
        servers.rotate_left(first);
        Some(servers)
    }
}

impl Handles for HeldHandles {
    fn resolve(&self, names: &[&str]) -> Vec<Result<Vec<ObjectRef>, SystemException>> {
        names.iter().map(|name| self.servers(name)).collect()
    }

    fn knows(&self, name: &str) -> bool {
        self.held().contains_key(name)
    }

    fn part_servers(&self, name: &str) -> Result<Vec<(ObjectRef, Option<String>)>, SystemException> {
        let held = self.pool(name)?;
        let servers = held.pool.servers();
        if servers.is_empty() {
            self.held().remove(name);
            return Err(no_server(name));
        }
        self.hold(name, held);
        let known = |server: &Server| {
            let object = server.to::<JobDaemonRef>(self.client.orb()).ok()?.object().clone();
            Some((object, server.property(PART_PROPERTY).map(str::to_owned)))
        };
        Ok(servers.iter().filter_map(known).collect())
    }
}

impl fmt::Debug for HeldHandles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldHandles").field("names", &self.held().len()).finish_non_exhaustive()
    }
}
