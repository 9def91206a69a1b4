//! A front end: it values portfolios, and waits no longer than it may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ironorb::Orb;
use ironorb_agent::{AgentClient, Pool};
use ironorb_jobs::{Job, JobCounts, Jobs, PartEnd, PartOptions, Quorum, Verdict};

use crate::exchange;
use crate::quotes::{PricesAsync as _, PricesRef};

type Failure = Box<dyn std::error::Error>;

/// What a front end has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Prices that came in time.
    pub prices: u64,
    /// Prices that did not, and were given up.
    pub late: u64,
    /// Prices that failed.
    pub failed: u64,
    /// Prices that were not those of the market: there must be none.
    pub wrong: u64,
    /// Jobs whose quorum was not met.
    pub unmet: u64,
    /// Time of all jobs.
    pub took: Duration,
    /// The slowest job.
    pub slowest: Duration,
}

impl Seen {
    fn part<E>(&mut self, end: PartEnd<i64, E>, market: usize, instrument: i32) {
        match end {
            PartEnd::Result(price) if price == exchange::price(market, instrument) => self.prices += 1,
            PartEnd::Result(_) => self.wrong += 1,
            PartEnd::Cancelled { .. } => self.late += 1,
            PartEnd::Exception(_) | PartEnd::Unknown(_) => self.failed += 1,
        }
    }

    fn job(&mut self, verdict: Verdict, begun: Instant) {
        self.unmet += u64::from(verdict != Verdict::Met);
        let took = begun.elapsed();
        self.took += took;
        self.slowest = self.slowest.max(took);
    }
}

/// A front end with an ORB of its own.
#[derive(Debug)]
pub struct FrontEnd {
    orb: Orb,
    jobs: Jobs,
    /// The servers of each market, as the agent tells them.
    pools: Vec<Arc<Pool<PricesRef>>>,
}

impl FrontEnd {
    /// Opens it, by the address of an agent.
    pub fn open(agent: &str) -> Result<FrontEnd, Failure> {
        let orb = Orb::builder().no_endpoint().build()?;
        let client = AgentClient::connect(&orb, [agent])?;
        let pools = (0..exchange::MARKETS).map(|market| Ok(Arc::new(client.pool(&exchange::name(market))?)));
        let pools = pools.collect::<Result<_, Failure>>()?;
        Ok(FrontEnd { jobs: Jobs::builder(&orb).build(), orb, pools })
    }

    /// Asks each of the servers for a price, and takes what has come when the time is over.
    pub fn ask_all(
        &self,
        servers: &[(usize, String)],
        within: Duration,
        rounds: i32,
    ) -> Result<Seen, Failure> {
        let reference = |(market, text): &(usize, String)| {
            Ok((*market, self.orb.string_to_object(text)?.narrow_unchecked::<PricesRef>()))
        };
        let servers = servers.iter().map(reference).collect::<Result<Vec<_>, Failure>>()?;
        let mut seen = Seen::default();
        for instrument in 0..rounds {
            let begun = Instant::now();
            let calls = servers.iter().map(|(_, server)| move || server.price_async(instrument));
            let end = Job::all(calls).quorum(Quorum::BestEffort).within(within).run();
            seen.job(end.verdict, begun);
            for ((market, _), part) in servers.iter().zip(end.parts) {
                seen.part(part, *market, instrument);
            }
        }
        Ok(seen)
    }

    /// Asks one server of each market for a price, and its other one if the first has not answered after a while.
    pub fn ask_hedged(&self, after: Duration, rounds: i32) -> Seen {
        let mut seen = Seen::default();
        // A price may be asked for twice.
        let hedged = PartOptions::new().idempotent().hedged_after(after);
        for instrument in 0..rounds {
            let begun = Instant::now();
            let job = self.jobs.job();
            let [a, b, c, d] = [0, 1, 2, 3].map(|market| self.pools[market].clone());
            let price = |server: &PricesRef| server.price_async(instrument);
            let end = job
                .call_any(a, hedged, price)
                .call_any(b, hedged, price)
                .call_any(c, hedged, price)
                .call_any(d, hedged, price)
                .run();
            seen.job(end.verdict, begun);
            let (a, b, c, d) = end.parts;
            for (market, part) in [a, b, c, d].into_iter().enumerate() {
                seen.part(part, market, instrument);
            }
        }
        seen
    }

    /// What its hedged jobs have done.
    pub fn counts(&self) -> JobCounts {
        self.jobs.counts()
    }
}
