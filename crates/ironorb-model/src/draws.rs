//! The random numbers of a scenario, drawn in one order by all levels of simulation.
//!
//! Each client has a stream, which gives its think times, and a stream of its own to each of its cycles. All that is random
//! in a cycle is drawn from that stream, in the order of the calls: so it depends on the seed, the class, the client and
//! the number of the cycle, and not on what else happens meanwhile, nor on the level.

use std::time::Duration;

use crate::Random;
use crate::scenario::{Call, Choice, Class, DwellTimes, Operation, Scenario, Spread, Target};

/// The stream of one client, or of the arrivals of an open class.
#[derive(Debug, Clone)]
pub struct ClientDraws(Random);

impl ClientDraws {
    /// The stream of a client by its number in its class. Open classes and traces have the stream of client 0.
    pub fn of(seed: u64, class: usize, client: u32) -> ClientDraws {
        ClientDraws(Random::stream(seed, ((class as u64) << 32 | u64::from(client)) + 1))
    }

    /// The next think time, or time between arrivals.
    pub fn wait(&mut self, spread: &Spread) -> Duration {
        drawn(spread, &mut self.0)
    }

    /// Begins the next cycle.
    pub fn cycle(&mut self) -> CycleDraws {
        CycleDraws(Random::stream(self.0.bits(), 0))
    }
}

/// The stream of one cycle.
#[derive(Debug, Clone)]
pub struct CycleDraws(Random);

/// What is random in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawnCall {
    /// The process that is called, among those of its server.
    pub process: u32,
    /// The object in that process.
    pub object: u64,
    /// What the servant computes or sleeps.
    pub demand: Duration,
    /// What the steps take on processors of speed 1.
    pub steps: CallSteps,
}

/// How long the processors work for one call between two of its events. The servant's demand and nested calls come between
/// `find` with `execute` and `reply`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CallSteps {
    /// At the client until the request leaves: find proxy, write request, channel.
    pub request: Duration,
    /// At the server, on a thread, until the object is found: channel, thread switch, read request, find object.
    pub find: Duration,
    /// At the server, with the lock: the upcall beside the demand.
    pub execute: Duration,
    /// At the server until the reply leaves: write reply, channel. Nothing for oneways.
    pub reply: Duration,
    /// At the client until its thread goes on: channel, thread switch, read reply. Nothing for oneways.
    pub receive: Duration,
}

impl CallSteps {
    /// The steps of an operation's calls, if no dwell time is random. They take no numbers from a stream.
    pub fn fixed(dwell: &DwellTimes, operation: &Operation) -> Option<CallSteps> {
        let all = [
            &dwell.find_proxy,
            &dwell.write_request,
            &dwell.read_request,
            &dwell.channel,
            &dwell.find_object,
            &dwell.execute,
            &dwell.write_reply,
            &dwell.read_reply,
            &dwell.thread_switch,
        ];
        let are_fixed = all.iter().all(|spread| matches!(spread, Spread::Fixed(_)));
        are_fixed.then(|| CycleDraws(Random::stream(0, 0)).steps(dwell, operation))
    }
}

/// How many objects a caller has called in turn, by server.
#[derive(Debug, Default, Clone)]
pub struct Turns(Vec<u64>);

impl Turns {
    fn take(&mut self, server: usize) -> u64 {
        if self.0.len() <= server {
            self.0.resize(server + 1, 0);
        }
        self.0[server] += 1;
        self.0[server] - 1
    }
}

impl CycleDraws {
    /// Chooses what the cycle does: the index of one of the class's mix. `turn` counts the cycles of a client, from the
    /// client's number on.
    pub fn choose(&mut self, class: &Class, turn: u64) -> usize {
        let [first, others @ ..] = &class.mix[..] else { return 0 };
        if others.is_empty() {
            return 0;
        }
        if class.choice == Choice::InTurn {
            return (turn % class.mix.len() as u64) as usize;
        }
        let total: f64 = others.iter().fold(first.weight, |sum, weighted| sum + weighted.weight);
        let mut left = self.0.unit() * total;
        for (index, weighted) in class.mix.iter().enumerate() {
            left -= weighted.weight;
            if left < 0.0 {
                return index;
            }
        }
        class.mix.len() - 1
    }

    /// Draws a call: first its target, then the demand, then the steps in their order. `turns` are those of the caller.
    pub fn call(&mut self, scenario: &Scenario, call: &Call, turns: &mut Turns) -> DrawnCall {
        self.call_with(scenario, call, turns, None)
    }

    /// Draws a call whose steps may be known: those of an operation for which [`CallSteps::fixed`] tells them.
    #[inline]
    pub fn call_with(
        &mut self,
        scenario: &Scenario,
        call: &Call,
        turns: &mut Turns,
        steps: Option<CallSteps>,
    ) -> DrawnCall {
        let server = &scenario.servers[call.server];
        let operation = &server.operations[call.operation];
        let (processes, objects) = (scenario.hosts[server.hosts].count, server.objects);
        let (process, object) = match call.target {
            Target::Random => (self.0.below(u64::from(processes)), self.0.below(objects)),
            Target::Robin => {
                let turn = turns.take(call.server);
                let objects = objects.max(1);
                (turn / objects % u64::from(processes.max(1)), turn % objects)
            }
            Target::Object(object) => (0, object),
        };
        let demand = drawn(&operation.demand, &mut self.0);
        let steps = steps.unwrap_or_else(|| self.steps(&scenario.dwell, operation));
        DrawnCall { process: process as u32, object, demand, steps }
    }

    fn steps(&mut self, dwell: &DwellTimes, operation: &Operation) -> CallSteps {
        let reply_octets = (!operation.is_oneway).then_some(operation.reply_octets);
        self.exchange(dwell, operation.request_octets, reply_octets)
    }

    /// Draws the steps of an exchange of messages with bodies of so many octets; `None` for a oneway.
    pub fn exchange(
        &mut self,
        dwell: &DwellTimes,
        request_octets: u32,
        reply_octets: Option<u32>,
    ) -> CallSteps {
        let mut draw = |spread: &Spread| drawn(spread, &mut self.0);
        let request_octets = dwell.body(request_octets);
        let request =
            draw(&dwell.find_proxy) + draw(&dwell.write_request) + draw(&dwell.channel) + request_octets;
        let find = draw(&dwell.channel)
            + draw(&dwell.thread_switch)
            + draw(&dwell.read_request)
            + draw(&dwell.find_object)
            + request_octets;
        let execute = draw(&dwell.execute);
        let Some(reply_octets) = reply_octets else {
            return CallSteps { request, find, execute, ..CallSteps::default() };
        };
        let reply_octets = dwell.body(reply_octets);
        let reply = draw(&dwell.write_reply) + draw(&dwell.channel) + reply_octets;
        let receive =
            draw(&dwell.channel) + draw(&dwell.thread_switch) + draw(&dwell.read_reply) + reply_octets;
        CallSteps { request, find, execute, reply, receive }
    }

    /// A stream for what goes on beside its caller: the request of a oneway, or a part of a job.
    pub fn split(&mut self) -> CycleDraws {
        CycleDraws(Random::stream(self.0.bits(), 1))
    }

    /// A time of this cycle.
    pub fn time(&mut self, spread: &Spread) -> Duration {
        drawn(spread, &mut self.0)
    }
}

/// A time from the distribution. A fixed one takes no number from the stream.
fn drawn(spread: &Spread, random: &mut Random) -> Duration {
    match spread {
        Spread::Fixed(time) => *time,
        Spread::Exponential(mean) => random.exponential(*mean),
        Spread::Uniform(from, to) => {
            let range = to.saturating_sub(*from).as_nanos() as u64;
            *from + Duration::from_nanos(random.below(range.saturating_add(1)))
        }
        Spread::Samples(samples) => {
            let index = random.below(samples.len() as u64) as usize;
            samples.get(index).copied().unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Arrivals, Cycle, Weighted};

    #[test]
    fn cycles_of_a_client_differ_and_do_not_hang_on_what_others_draw() {
        let mean = Spread::Exponential(Duration::from_millis(1));
        let mut alone = ClientDraws::of(7, 0, 3);
        let first = alone.cycle().time(&mean);
        let second = alone.cycle().time(&mean);
        assert_ne!(first, second);
        let mut again = ClientDraws::of(7, 0, 3);
        let mut cycle = again.cycle();
        assert_eq!(cycle.time(&mean), first);
        for _ in 0..5 {
            cycle.time(&mean); // more numbers of the first cycle
        }
        assert_eq!(again.cycle().time(&mean), second);
        assert_ne!(ClientDraws::of(7, 0, 4).cycle().time(&mean), first);
        assert_ne!(ClientDraws::of(7, 1, 3).cycle().time(&mean), first);
        assert_ne!(ClientDraws::of(8, 0, 3).cycle().time(&mean), first);
    }

    #[test]
    fn cycles_come_by_weight_or_in_turn() {
        let weighted = |weight| Weighted { weight, cycle: Cycle::Calls(Vec::new()) };
        let mut class = Class {
            name: "class".to_owned(),
            hosts: 0,
            arrivals: Arrivals::Trace(Vec::new()),
            mix: vec![weighted(1.0), weighted(3.0)],
            choice: Choice::Random,
            priority: None,
            cache: None,
        };
        let mut client = ClientDraws::of(1, 0, 0);
        let chosen: usize = (0..10_000).map(|turn| client.cycle().choose(&class, turn)).sum();
        // Five standard deviations are 217.
        assert!(chosen.abs_diff(7_500) < 217, "{chosen}");
        class.choice = Choice::InTurn;
        let chosen: Vec<usize> = (5..8).map(|turn| client.cycle().choose(&class, turn)).collect();
        assert_eq!(chosen, [1, 0, 1]);
    }

    #[test]
    fn spreads_keep_their_means_and_their_bounds() {
        let mut random = Random::stream(1, 1);
        let (from, to) = (Duration::from_micros(10), Duration::from_micros(20));
        let spreads = [
            (Spread::Uniform(from, to), 15_000.0),
            (Spread::Exponential(to), 20_000.0),
            (Spread::Samples(vec![from, to]), 15_000.0),
        ];
        for (spread, mean) in spreads {
            let drawn: Vec<Duration> = (0..100_000).map(|_| drawn(&spread, &mut random)).collect();
            let found = drawn.iter().sum::<Duration>().as_nanos() as f64 / drawn.len() as f64;
            // Five standard errors of the widest, the exponential one.
            assert!((found - mean).abs() < 5.0 * 20_000.0 / 100_000_f64.sqrt(), "{spread:?}: {found}");
            if !matches!(spread, Spread::Exponential(_)) {
                assert!(drawn.iter().all(|time| (from..=to).contains(time)), "{spread:?}");
            }
        }
    }
}
