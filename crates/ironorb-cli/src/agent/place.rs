//! The agent that a command uses.

use std::time::Duration;

use clap::Args;
use ironorb::Orb;
use ironorb_agent::{AgentClient, AgentError, ClientOptions};

use crate::calling;
use crate::failure::Failure;
use crate::job::DaemonStatus;
use crate::seconds::seconds;

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The agent: HOST or HOST:PORT (port 2811 when left out), a corbaloc or an IOR. If it is given several times, the first
    /// that answers is used.
    #[arg(long, value_name = "ADDRESS", default_value = "localhost")]
    agent: Vec<String>,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

impl Place {
    pub(super) fn open(&self) -> Result<AgentClient, Failure> {
        let orb = calling::orb(Orb::builder(), self.timeout)?;
        let mut options = ClientOptions::default();
        options.timeout = self.timeout;
        // The servers are other processes.
        options.tells_load = false;
        AgentClient::connect_with(&orb, &self.agent, options)
            .map_err(|e| Failure::usage(format!("--agent: {e}")))
    }

    /// The daemon beside the first of the agents that answers, if there is one.
    pub(super) fn daemon(&self, orb: &Orb) -> Option<DaemonStatus> {
        let mut answers =
            self.agent.iter().filter_map(|address| DaemonStatus::beside(orb, address, self.timeout).ok());
        answers.next().flatten()
    }

    pub(super) fn failed(&self, what: &str, e: &AgentError) -> Failure {
        let failure = Failure::new(format!("cannot {what}: {e}"));
        match e {
            AgentError::System(_) => failure.with_help(format!(
                "is an agent at {}? `ironorb agent serve` starts one; --agent HOST:PORT names another",
                self.agent.join(" or ")
            )),
            _ => failure,
        }
    }
}
