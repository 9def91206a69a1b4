//! One program of all tests that can share a process: agents and their clients over sockets.

mod loads;
mod naming_face;
mod serving;
mod sharing;

use std::time::{Duration, Instant};

use ironorb::Orb;
use ironorb_agent::{Agent, AgentBuilder, AgentClient, ClientOptions};

/// An agent in an ORB of its own. The agent is dropped first.
struct Served {
    agent: Agent,
    orb: Orb,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(false);
    }
}

impl Served {
    fn start(builder: AgentBuilder) -> Served {
        Served::start_at("127.0.0.1:0", builder)
    }

    fn start_at(address: &str, builder: AgentBuilder) -> Served {
        // The port may still be in the hands of the agent before this one.
        let began = Instant::now();
        let orb = loop {
            match Orb::builder().endpoint(&format!("iiop://{address}")).unwrap().build() {
                Ok(orb) => break orb,
                Err(e) if began.elapsed() > PATIENCE => panic!("{e}"),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Served { agent: builder.serve(&orb).unwrap(), orb }
    }

    fn address(&self) -> String {
        self.orb.published_addresses()[0].clone()
    }
}

/// A client of these agents, with the shortest lease.
fn client(agents: &[&Served]) -> AgentClient {
    client_at(&agents.iter().map(|served| served.agent.corbaloc()).collect::<Vec<_>>())
}

fn client_at(addresses: &[String]) -> AgentClient {
    let mut options = ClientOptions::default();
    options.lease = Duration::from_secs(1);
    client_with(addresses, options)
}

fn client_with(addresses: &[String], options: ClientOptions) -> AgentClient {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    AgentClient::connect_with(&orb, addresses, options).unwrap()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);
