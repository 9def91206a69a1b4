//! What is seen of calls: their responses, and the processor time of either side.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::measure::thread_nanos;
use crate::process::Process;

/// Turns of calls one after another: the one in the middle counts, so that a disturbance of some does not.
pub(super) const TURNS: usize = 11;

/// What was seen of calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Nanoseconds of each call.
    pub(super) responses: Vec<f64>,
    /// The processor time of a call at either side, in nanoseconds.
    pub(super) client_ns: f64,
    pub(super) server_ns: f64,
    /// How long the client had slept before each call.
    pub(super) idle_ns: f64,
}

impl Seen {
    pub(super) fn response_ns(&self) -> f64 {
        mean(&self.responses)
    }

    /// Samples of so many calls each, one after another, in turns of which the one in the middle counts.
    pub(super) fn one_after_another(
        samples: usize,
        batch: usize,
        call: Call<'_>,
        server: &Process,
    ) -> Result<Seen, BenchError> {
        (0..samples).try_for_each(|_| call())?; // to warm up
        let turns = (0..TURNS).map(|_| Seen::turn(samples, batch, call, server));
        Ok(middle(turns.collect::<Result<_, _>>()?, Seen::response_ns))
    }

    fn turn(samples: usize, batch: usize, call: Call<'_>, server: &Process) -> Result<Seen, BenchError> {
        let (client_before, server_before) = (thread_nanos(), server.busy());
        let mut responses = Vec::with_capacity(samples);
        let mut before = Instant::now();
        for _ in 0..samples {
            call()?;
            let after = Instant::now();
            responses.push((after - before).as_nanos() as f64 / batch as f64);
            before = after;
        }
        let calls = (samples * batch) as f64;
        Ok(Seen {
            responses,
            client_ns: (thread_nanos() - client_before) as f64 / calls,
            server_ns: server.busy().saturating_sub(server_before).as_nanos() as f64 / calls,
            idle_ns: 0.0,
        })
    }

    /// Calls that take more.
    pub(super) fn and(&self, more: More) -> Seen {
        Seen {
            responses: self.responses.iter().map(|ns| (ns + more.response_ns).max(0.0)).collect(),
            client_ns: (self.client_ns + more.client_ns).max(0.0),
            server_ns: (self.server_ns + more.server_ns).max(0.0),
            idle_ns: self.idle_ns,
        }
    }

    /// Single calls, each after a sleep.
    pub(super) fn after(
        idle: Duration,
        samples: usize,
        call: Call<'_>,
        server: &Process,
    ) -> Result<Seen, BenchError> {
        let (mut responses, mut client, mut slept) = (Vec::new(), 0.0, 0.0);
        let clock = clock_cost();
        call()?;
        let server_before = server.busy();
        let mut ended = Instant::now();
        for _ in 0..samples {
            thread::sleep(idle);
            let busy = thread_nanos();
            let begun = Instant::now();
            call()?;
            let now = Instant::now();
            client += (thread_nanos() - busy) as f64 - clock;
            slept += (begun - ended).as_nanos() as f64;
            responses.push((now - begun).as_nanos() as f64);
            ended = now;
        }
        let calls = samples.max(1) as f64;
        Ok(Seen {
            responses: trimmed(responses),
            client_ns: client.max(0.0) / calls,
            server_ns: server.busy().saturating_sub(server_before).as_nanos() as f64 / calls,
            idle_ns: (slept / calls).round(),
        })
    }
}

pub(super) type Call<'a> = &'a mut dyn FnMut() -> Result<(), BenchError>;

/// What calls of one kind take more than those of another, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More {
    pub(super) response_ns: f64,
    pub(super) client_ns: f64,
    pub(super) server_ns: f64,
}

impl More {
    /// Turns of both kinds alternate, so that what slows the machine for a while slows both.
    pub(super) fn of(
        samples: usize,
        calls: Call<'_>,
        others: Call<'_>,
        server: &Process,
    ) -> Result<More, BenchError> {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for turn in 0..=TURNS {
            let one = Seen::turn(samples, 1, calls, server)?;
            let other = Seen::turn(samples, 1, others, server)?;
            let more = [
                one.response_ns() - other.response_ns(),
                one.client_ns - other.client_ns,
                one.server_ns - other.server_ns,
            ];
            // The first turn finds cold caches.
            if turn > 0 {
                all.iter_mut().zip(more).for_each(|(all, more)| all.push(more));
            }
        }
        let [response_ns, client_ns, server_ns] = all.map(|all| middle(all, |more| *more));
        Ok(More { response_ns, client_ns, server_ns })
    }
}

pub(super) fn mean(ns: &[f64]) -> f64 {
    ns.iter().sum::<f64>() / ns.len().max(1) as f64
}

/// The one in the middle.
pub(super) fn middle<T: Default>(mut all: Vec<T>, of: impl Fn(&T) -> f64) -> T {
    all.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let place = all.len() / 2;
    all.into_iter().nth(place).unwrap_or_default()
}

/// Without the slowest 0.5 %: other work of the machine, which a single series cannot tell from calls.
fn trimmed(mut ns: Vec<f64>) -> Vec<f64> {
    ns.sort_by(f64::total_cmp);
    ns.truncate(ns.len() - ns.len() / 200);
    ns
}

/// What reading the clock of a thread's processor time adds to it.
fn clock_cost() -> f64 {
    let mut costs: Vec<u64> = (0..101)
        .map(|_| {
            let before = thread_nanos();
            thread_nanos() - before
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(responses: &[f64]) -> Seen {
        Seen { responses: responses.to_vec(), client_ns: 4.0, server_ns: 3.0, idle_ns: 0.0 }
    }

    #[test]
    fn a_disturbed_turn_does_not_count() {
        let turns = [[9e9, 2.0], [2.0, 3.0], [1.0, 2.0]].map(|turn| seen(&turn)).to_vec();
        assert_eq!(middle(turns, Seen::response_ns).responses, [2.0, 3.0]);
        assert_eq!(trimmed((0..400).map(f64::from).collect()).len(), 398);
    }
}
