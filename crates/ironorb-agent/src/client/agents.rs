//! Several agents, of which clients that ask call one until it fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::giop::url::completed;
use ironorb::{CompletionStatus, MinorCode, Orb, SystemException, SystemExceptionKind, TypedRef as _};

use super::error::AgentError;
use crate::idl::AgentRef;
use crate::server::{AGENT_KEY, AGENT_PORT};

#[derive(Debug)]
pub(super) struct Agents {
    agents: Vec<AgentRef>,
    current: AtomicUsize,
}

impl Agents {
    pub(super) fn new<A: AsRef<str>>(
        orb: &Orb,
        addresses: impl IntoIterator<Item = A>,
        timeout: Duration,
    ) -> Result<Agents, SystemException> {
        let agent = |address: A| -> Result<AgentRef, SystemException> {
            let object = orb.string_to_object(&completed(address.as_ref(), AGENT_PORT, AGENT_KEY))?;
            Ok(object.narrow_unchecked::<AgentRef>().with_timeout(Some(timeout)))
        };
        let agents = addresses.into_iter().map(agent).collect::<Result<Vec<_>, _>>()?;
        if agents.is_empty() {
            let e =
                SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No);
            return Err(e.with_detail("no address of an agent is given".to_owned()));
        }
        Ok(Agents { agents, current: AtomicUsize::new(0) })
    }

    /// All agents, in the order in which they were given.
    pub(super) fn all(&self) -> &[AgentRef] {
        &self.agents
    }

    /// The agent that is called now, and its number.
    pub(super) fn current(&self) -> (usize, &AgentRef) {
        let number = self.current.load(Ordering::Relaxed) % self.agents.len();
        (number, &self.agents[number])
    }

    /// Goes on to the next agent, unless another thread has gone on from this one already.
    pub(super) fn leave(&self, number: usize) {
        let next = (number + 1) % self.agents.len();
        let _ = self.current.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Calls the current agent, and then each other until one answers. Every request may be repeated: the agent replaces
    /// an entry by itself.
    pub(super) fn call<T, E: Into<AgentError>>(
        &self,
        request: impl Fn(&AgentRef) -> Result<T, E>,
    ) -> Result<T, AgentError> {
        let mut tries = self.agents.len();
        loop {
            let (number, agent) = self.current();
            match request(agent).map_err(Into::into) {
                Err(e) if e.is_of_one_agent() => {
                    self.leave(number);
                    tries -= 1;
                    if tries == 0 {
                        return Err(e);
                    }
                }
                outcome => return outcome,
            }
        }
    }
}
