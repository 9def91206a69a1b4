//! Several agents, of which clients that ask call one until it fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
            let object = orb.string_to_object(&url(address.as_ref()))?;
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

/// Completes `host` and `host:port` to a reference to the agent there.
fn url(address: &str) -> String {
    let lower = address.to_ascii_lowercase();
    if ["ior:", "corbaloc:", "corbaname:", "file:"].iter().any(|scheme| lower.starts_with(scheme)) {
        return address.to_owned();
    }
    let behind_host = address.rsplit(']').next().unwrap_or(address);
    match behind_host.contains(':') {
        true => format!("corbaloc::1.2@{address}/{AGENT_KEY}"),
        false => format!("corbaloc::1.2@{address}:{AGENT_PORT}/{AGENT_KEY}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_completed_with_the_agents_port_and_key() {
        assert_eq!(url("a.org"), "corbaloc::1.2@a.org:2811/IronORBAgent");
        assert_eq!(url("a.org:5"), "corbaloc::1.2@a.org:5/IronORBAgent");
        assert_eq!(url("[::1]"), "corbaloc::1.2@[::1]:2811/IronORBAgent");
        assert_eq!(url("[::1]:5"), "corbaloc::1.2@[::1]:5/IronORBAgent");
        assert_eq!(url("corbaloc::h/X"), "corbaloc::h/X");
    }
}
