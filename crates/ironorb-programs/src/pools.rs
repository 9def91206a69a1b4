//! Threads of servers, as reports have them: how many serve, and how many requests wait for one.
//!
//! Requests wait in the ORB, which tells nobody of each. But it is known when they arrive, and when their servants begin.

use ironorb_model::{Load, ResourceObservations, Time, resources};

use crate::board::{Board, Told};
use crate::deployment::{Deployment, Role};

/// The threads of one lane of a process.
#[derive(Debug)]
pub(crate) struct Pool {
    load: Load,
    /// From when to when requests have waited.
    waits: Vec<(Time, Time)>,
    /// When observation began.
    since: Time,
}

impl Pool {
    pub(crate) fn new(threads: u32) -> Pool {
        Pool { load: Load::new(threads), waits: Vec::new(), since: Time::ZERO }
    }

    /// A thread begins with a request that arrived then.
    pub(crate) fn begin(&mut self, arrived: Time, now: Time) {
        self.load.take(now);
        if arrived < now {
            self.waits.push((arrived, now));
        }
    }

    /// A thread is done.
    pub(crate) fn end(&mut self, now: Time) {
        self.load.give_back(now);
    }

    pub(crate) fn restart(&mut self, now: Time) {
        self.load.restart(now);
        self.waits.clear();
        self.since = now;
    }

    /// What it has done. Some requests still wait, since these times.
    fn observe(&self, now: Time, name: String, still: impl Iterator<Item = Time>) -> ResourceObservations {
        let mut seen = self.load.observe(now, name);
        let still = still.filter(|arrived| *arrived < now).map(|arrived| (arrived, now));
        let waits: Vec<(Time, Time)> =
            self.waits.iter().copied().chain(still).map(|(from, to)| (from.max(self.since), to)).collect();
        let waited: u128 = waits.iter().map(|(from, to)| to.since(*from).as_nanos()).sum();
        seen.queue_mean = waited as f64 / now.since(self.since).as_nanos().max(1) as f64;
        seen.queue_max = most_at_once(&waits);
        seen
    }
}

/// The most that overlap. One that ends when another begins does not overlap it.
fn most_at_once(waits: &[(Time, Time)]) -> u64 {
    let mut changes: Vec<(Time, i64)> = waits.iter().flat_map(|(from, to)| [(*from, 1), (*to, -1)]).collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most.unsigned_abs()
}

impl Deployment {
    /// The pool whose thread serves a call, if a pool does. A call within a process is served by its caller's thread.
    pub(crate) fn pool_of(&self, told: &Told) -> Option<usize> {
        let Role::Server { server, first_pool, .. } = self.processes[told.to as usize].role else {
            return None;
        };
        let lane = self.scenario.servers[server].pool_for(self.scenario.classes[told.class].priority);
        first_pool.filter(|_| told.from != told.to).map(|first| first + lane)
    }

    /// When the request of a call arrives at its server's host.
    pub(crate) fn arrival(&self, told: &Told) -> Time {
        let arrival = told.sender.and_then(ironorb_sim::Sender::last_arrival);
        arrival.map_or(Time::NEVER, |since_beginning| self.time_at(since_beginning))
    }

    pub(crate) fn observe_pools(&self, board: &Board, into: &mut Vec<ResourceObservations>) {
        let now = self.now();
        resources::observe_pools(&self.scenario, into, |server, number, lane, name| {
            let process = &self.processes[(self.first_process[server] + number) as usize];
            let Role::Server { first_pool: Some(first), .. } = process.role else { return None };
            let pool = first + lane as usize;
            let still = board.waiting().filter(|told| self.pool_of(told) == Some(pool));
            Some(board.pools[pool].observe(now, name, still.map(|told| self.arrival(told))))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_summed_and_the_most_at_once_are_told() {
        let at = Time::from_ns;
        let mut pool = Pool::new(1);
        pool.begin(at(0), at(0));
        pool.end(at(100));
        pool.begin(at(50), at(100)); // 50, of which 40 are observed
        pool.restart(at(60));
        pool.waits.push((at(50), at(100)));
        pool.end(at(200));
        pool.begin(at(90), at(200));
        let still = [at(100), at(250), at(400)].into_iter(); // the last one has not arrived
        let seen = pool.observe(at(300), "threads".to_owned(), still);
        assert_eq!(seen.queue_max, 2, "one ends when another begins");
        let waited = 40.0 + 110.0 + 200.0 + 50.0;
        assert_eq!(seen.queue_mean, waited / 240.0);
    }
}
