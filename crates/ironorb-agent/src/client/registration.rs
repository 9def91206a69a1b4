//! What a server registers, and holds as long as it is to stay registered.

use std::fmt;

use super::AgentClient;
use super::error::AgentError;
use super::keeper;
use crate::idl::{Offer, Property};

/// A server that is to be registered.
#[must_use = "start() registers it"]
#[derive(Debug, Clone)]
pub struct Offering {
    client: AgentClient,
    offer: Offer,
    is_exclusive: bool,
}

impl Offering {
    pub(super) fn new(client: AgentClient, name: &str, reference: String) -> Offering {
        let offer = Offer { name: name.to_owned(), reference, properties: Vec::new() };
        Offering { client, offer, is_exclusive: false }
    }

    /// Adds a property, which clients may ask for.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.offer.properties.push(Property { name: name.to_owned(), value: value.to_owned() });
        self
    }

    /// Registers the server only if nothing is registered under the name; then nothing else can be.
    pub fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// Registers the server. Blocks until the agent has answered, or no agent has in time. From then on a thread of the
    /// client renews the lease.
    pub fn start(self) -> Result<Registration, AgentError> {
        let client = self.client.clone();
        let mut started = start_all(&client, vec![self])?;
        started.pop().ok_or(AgentError::UnknownOwner)
    }
}

pub(super) fn start_all(
    client: &AgentClient,
    offerings: Vec<Offering>,
) -> Result<Vec<Registration>, AgentError> {
    let offers = offerings.into_iter().map(|offering| (offering.offer, offering.is_exclusive)).collect();
    let numbers = keeper::register(&client.core, offers)?;
    Ok(numbers.into_iter().map(|number| Registration { client: client.clone(), number }).collect())
}

/// A server that is registered, until this is dropped or the process ends. Dropping it blocks for a call of the agent.
#[must_use = "dropping it removes the server from its name"]
pub struct Registration {
    client: AgentClient,
    number: u64,
}

impl Registration {
    /// Whether another process has taken the exclusive name. That happens only where this process did not renew its lease in
    /// time, or the agent was started anew without a store.
    pub fn is_lost(&self) -> bool {
        keeper::is_lost(&self.client.core, self.number)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        keeper::remove(&self.client.core, self.number);
    }
}
