//! Names of an agent as targets of jobs.

use std::sync::Arc;

use ironorb::{ObjectRef, SystemException, TypedRef};
use ironorb_agent::{AgentClient, AgentError, Choice, Pool};

use crate::parallel::PART_PROPERTY;
use crate::references::References;
use crate::target::{Chosen, Handles, Servers, is_among, no_server};

/// Resolves names by an agent: a request for all names of a job.
#[derive(Debug)]
pub struct AgentHandles {
    client: AgentClient,
    references: References,
}

impl AgentHandles {
    /// Resolves by this client's agent.
    pub fn new(client: &AgentClient) -> Arc<AgentHandles> {
        Arc::new(AgentHandles { client: client.clone(), references: References::default() })
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
            let object = |server: &ironorb_agent::Server| {
                self.references.object(self.client.orb(), &server.reference).ok()
            };
            let objects: Vec<ObjectRef> = servers.iter().filter_map(object).collect();
            if objects.is_empty() { Err(no_server(name)) } else { Ok(objects) }
        };
        names.iter().zip(resolved).map(objects).collect()
    }

    fn part_servers(&self, name: &str) -> Result<Vec<(ObjectRef, Option<String>)>, SystemException> {
        let servers = self.client.resolve(name).map_err(|e| failed(name, &e))?;
        let known = |server: &ironorb_agent::Server| {
            let object = self.references.object(self.client.orb(), &server.reference).ok()?;
            Some((object, server.property(PART_PROPERTY).map(str::to_owned)))
        };
        Ok(servers.iter().filter_map(known).collect())
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
