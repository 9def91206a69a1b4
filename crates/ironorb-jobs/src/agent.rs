//! Names of an agent as targets of jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ironorb::{ObjectRef, SystemException, TypedRef};
use ironorb_agent::{AgentClient, AgentError, Choice, Pool};

use crate::target::{Chosen, Handles, Servers, is_among, no_server};

/// Resolves names by an agent: a request for all names of a job.
#[derive(Debug)]
pub struct AgentHandles {
    client: AgentClient,
    /// References that have been made, by their texts: their connections are found again.
    known: Mutex<BTreeMap<String, ObjectRef>>,
}

/// The most references that are kept. Beyond that all are made anew.
const KNOWN_MAX: usize = 10_000;

impl AgentHandles {
    /// Resolves by this client's agent.
    pub fn new(client: &AgentClient) -> Arc<AgentHandles> {
        Arc::new(AgentHandles { client: client.clone(), known: Mutex::default() })
    }

    fn object(&self, reference: &str) -> Option<ObjectRef> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = known.get(reference) {
            return Some(object.clone());
        }
        let object = self.client.orb().string_to_object(reference).ok()?;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(reference.to_owned(), object.clone());
        Some(object)
    }
}

impl Handles for AgentHandles {
    fn resolve(&self, names: &[&str]) -> Vec<Result<Vec<ObjectRef>, SystemException>> {
        let resolved = match names {
            [name] => self.client.resolve(name).map(|servers| vec![servers]),
            names => self.client.resolve_many(names),
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(e) => return names.iter().map(|name| Err(failed(name, &e))).collect(),
        };
        let objects = |(name, servers): (&&str, Vec<ironorb_agent::Server>)| {
            let objects: Vec<ObjectRef> =
                servers.iter().filter_map(|server| self.object(&server.reference)).collect();
            if objects.is_empty() { Err(no_server(name)) } else { Ok(objects) }
        };
        names.iter().zip(resolved).map(objects).collect()
    }
}

pub(crate) fn failed(name: &str, e: &AgentError) -> SystemException {
    match e {
        AgentError::System(e) => e.clone(),
        e => no_server(name).with_detail(e.to_string()),
    }
}

/// The servers of a name, as an agent's client keeps them: of two that it takes by chance, the one with fewer calls under way.
impl<T: TypedRef + 'static> Servers for Pool<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn choose(&self, tried: &[ObjectRef]) -> Option<Chosen> {
        let mut passed = vec![];
        let mut chosen = Pool::choose(self, Choice::PowerOfTwo)?;
        while is_among(chosen.object(), tried) {
            passed.push(chosen);
            chosen = self.choose_other(&passed.iter().collect::<Vec<_>>())?;
        }
        Some(Chosen { object: chosen.object().clone(), guard: Some(Box::new(chosen)) })
    }
}
