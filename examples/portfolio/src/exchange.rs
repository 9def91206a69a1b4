//! The price servers: four markets with two servers each, of which the first of two markets are slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ironorb::{Orb, SystemException};
use ironorb_agent::{Agent, AgentClient, Registration};

use crate::quotes::{Prices, PricesRef};

type Failure = Box<dyn std::error::Error>;

/// How many markets there are.
pub const MARKETS: usize = 4;
/// How many servers each has.
pub const SERVERS_OF_A_MARKET: usize = 2;

/// The name of a market at the agent.
pub fn name(market: usize) -> String {
    format!("prices/{market}")
}

/// The price that the servers of a market tell: front ends check their answers by it.
pub fn price(market: usize, instrument: i32) -> i64 {
    (market as i64 + 1) * 1_000 + i64::from(instrument)
}

/// An agent and all price servers, each with an ORB of its own, until this is dropped.
#[derive(Debug)]
pub struct Exchange {
    servers: Vec<Server>,
    agent: Agent,
    _orb: Orb,
}

#[derive(Debug)]
struct Server {
    _registration: Registration,
    _orb: Orb,
    reference: String,
    calls: Arc<AtomicU64>,
}

/// A servant.
struct Market {
    number: usize,
    takes: Duration,
    calls: Arc<AtomicU64>,
}

impl Prices for Market {
    fn price(&self, instrument: i32) -> Result<i64, SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        thread::sleep(self.takes);
        Ok(price(self.number, instrument))
    }
}

impl Exchange {
    /// Opens it: a price takes `fast`, and `slow` at the first server of each of two markets.
    pub fn open(fast: Duration, slow: Duration) -> Result<Exchange, Failure> {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
        let agent = Agent::builder().serve(&orb)?;
        let mut servers = Vec::new();
        for market in 0..MARKETS {
            for number in 0..SERVERS_OF_A_MARKET {
                let is_slow = number == 0 && market < 2;
                servers.push(Server::open(&agent.corbaloc(), market, if is_slow { slow } else { fast })?);
            }
        }
        Ok(Exchange { servers, agent, _orb: orb })
    }

    /// Where the agent is.
    pub fn agent(&self) -> String {
        self.agent.corbaloc()
    }

    /// The references of all servers, each with its market.
    pub fn references(&self) -> Vec<(usize, String)> {
        let numbered = self.servers.iter().enumerate();
        numbered.map(|(number, server)| (number / SERVERS_OF_A_MARKET, server.reference.clone())).collect()
    }

    /// How often each server has been called.
    pub fn calls(&self) -> Vec<u64> {
        self.servers.iter().map(|server| server.calls.load(Ordering::Relaxed)).collect()
    }
}

impl Server {
    fn open(agent: &str, market: usize, takes: Duration) -> Result<Server, Failure> {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
        let calls = Arc::new(AtomicU64::new(0));
        let servant = Market { number: market, takes, calls: calls.clone() };
        let prices: PricesRef = orb.root_poa().activate(servant)?;
        let registration = AgentClient::connect(&orb, [agent])?.register(&name(market), &prices)?.start()?;
        let reference = orb.object_to_string(ironorb::TypedRef::object(&prices))?;
        Ok(Server { _registration: registration, _orb: orb, reference, calls })
    }
}
