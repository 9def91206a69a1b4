//! Following the changes of names.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ironorb::{Pending, TypedRef as _};

use super::error::AgentError;
use super::{AgentClient, Server, servers};
use crate::idl::agent_watch::{WatchError, WatchPrefixError};
use crate::idl::{Agent as _, AgentRef, AgentWatchAsync as _, AgentWatchRef, Resolved, Watched};

/// Follows names. The first answer tells all their servers; those after it tell changes. Where the agent does not know the
/// changes any more, or another agent answers, all servers are told again: no change is missed silently.
#[derive(Debug)]
pub struct Watch {
    client: AgentClient,
    selection: Selection,
    place: Option<Place>,
}

/// Which names are followed.
#[derive(Debug)]
pub(super) enum Selection {
    Names(Vec<String>),
    Prefix(String),
}

/// Up to where the changes of an agent are known.
#[derive(Debug)]
pub(super) struct Place {
    agent: usize,
    changes: AgentWatchRef,
    life: u64,
    revision: u64,
}

/// What a [`Watch`] tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// All watched names that have servers, with these; what was told before is void.
    All(Vec<(String, Vec<Server>)>),
    /// A server is new, or has other properties.
    Put {
        /// The name.
        name: String,
        /// The number of the owner: two processes may register one reference.
        owner: u64,
        /// The server.
        server: Server,
    },
    /// A server is gone.
    Removed {
        /// The name.
        name: String,
        /// The number of the owner.
        owner: u64,
        /// The server as it was.
        server: Server,
    },
}

impl Watch {
    pub(super) fn of_names(client: &AgentClient, names: Vec<String>) -> Watch {
        Watch { client: client.clone(), selection: Selection::Names(names), place: None }
    }

    pub(super) fn of_prefix(client: &AgentClient, prefix: &str) -> Watch {
        Watch { client: client.clone(), selection: Selection::Prefix(prefix.to_owned()), place: None }
    }

    /// Waits for news, at most so long and a minute, to about a quarter of a second. None if there are none. After an error
    /// it may be called again.
    pub fn next(&mut self, wait: Duration) -> Result<Vec<News>, AgentError> {
        let Some(place) = &mut self.place else { return self.begin() };
        match place.ask(&self.selection, wait, self.client.core.options.timeout).wait() {
            Ok(watched) => {
                place.go_on(&watched);
                Ok(news(watched))
            }
            Err(AgentError::Forgotten) => {
                self.place = None;
                self.begin()
            }
            Err(e) => {
                if let Some(place) = self.place.take().filter(|_| e.is_of_one_agent()) {
                    self.client.core.agents.leave(place.agent);
                }
                Err(e)
            }
        }
    }

    fn begin(&mut self) -> Result<Vec<News>, AgentError> {
        let agents = &self.client.core.agents;
        let selection = &self.selection;
        let (place, resolved) = agents.call(|agent| {
            let resolved = resolve_selected(agent, selection)?;
            let place = Place::at(agents.current().0, agent, &resolved)?;
            Ok::<_, AgentError>((place, resolved))
        })?;
        self.place = Some(place);
        let named = resolved.names.into_iter().filter(|resolution| !resolution.servers.is_empty());
        Ok(vec![News::All(named.map(|resolution| (resolution.name, servers(resolution.servers))).collect())])
    }
}

impl Place {
    /// Behind what has been resolved.
    pub(super) fn at(number: usize, agent: &AgentRef, resolved: &Resolved) -> Result<Place, AgentError> {
        let changes = agent.changes()?.ok_or(AgentError::Forgotten)?;
        Ok(Place { agent: number, changes, life: resolved.life, revision: resolved.revision })
    }

    /// Asks for the changes from here on. The agent answers when there are some, or after `wait`; what it does takes no longer than `more`.
    pub(super) fn ask(&self, selection: &Selection, wait: Duration, more: Duration) -> Asked {
        let changes = self.changes.with_timeout(Some(wait + more));
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        match selection {
            Selection::Names(names) => {
                Asked::Names(changes.watch_async(self.life, self.revision, names, wait))
            }
            Selection::Prefix(prefix) => {
                Asked::Prefix(changes.watch_prefix_async(self.life, self.revision, prefix, wait))
            }
        }
    }

    /// Changes are known up to these.
    pub(super) fn go_on(&mut self, watched: &Watched) {
        self.revision = watched.revision;
    }
}

/// Changes that an agent was asked for.
pub(super) enum Asked {
    Names(Pending<Watched, WatchError>),
    Prefix(Pending<Watched, WatchPrefixError>),
}

impl Asked {
    fn wait(self) -> Result<Watched, AgentError> {
        Ok(match self {
            Asked::Names(pending) => pending.wait()?,
            Asked::Prefix(pending) => pending.wait()?,
        })
    }
}

impl Future for Asked {
    type Output = Result<Watched, AgentError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Asked::Names(pending) => Pin::new(pending).poll(context).map_err(AgentError::from),
            Asked::Prefix(pending) => Pin::new(pending).poll(context).map_err(AgentError::from),
        }
    }
}

/// All selected names. Those of a prefix come in pages, each of which may be newer than the one before: the watch begins at the
/// first, and tells again what a later one has told.
fn resolve_selected(agent: &AgentRef, selection: &Selection) -> Result<Resolved, AgentError> {
    let prefix = match selection {
        Selection::Names(names) => return Ok(agent.resolve_many(names, &[])?),
        Selection::Prefix(prefix) => prefix,
    };
    let mut all = agent.resolve_many(&[], &[])?;
    let mut after = String::new();
    loop {
        let names = agent.list(prefix, &after, PAGE)?;
        let Some(last) = names.last() else { return Ok(all) };
        after.clone_from(last);
        all.names.extend(agent.resolve_many(&names, &[])?.names);
    }
}

fn news(watched: Watched) -> Vec<News> {
    let told = watched.changes.into_iter().map(|change| {
        let (name, owner, server) = (change.name, change.owner, change.what.into());
        match change.is_removed {
            false => News::Put { name, owner, server },
            true => News::Removed { name, owner, server },
        }
    });
    told.collect()
}

const PAGE: u32 = 500;
