//! The paper's workload: stations that serve one request at a time, and clients whose cycles take turns among sets of them.

use std::time::Duration;

use fastrand::Rng;

use crate::row::digits;

/// What stations are asked for, and by which cycles. Model and real runs take the same demands from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Workload {
    /// The mean demand of each part of a cycle. A cycle has a request for each, to a station of its own.
    pub(crate) demands: Vec<Duration>,
    pub(crate) distribution: Distribution,
    /// The sets of stations that the cycles of a client take in turn. Each has a station for each part.
    pub(crate) sets: usize,
    /// Bytes of a request's argument, and of its result: L in the paper.
    pub(crate) size: usize,
    /// Decides demands that are not fixed.
    pub(crate) seed: u64,
}

/// How demands are distributed around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Distribution {
    Fixed,
    Exponential,
}

impl Distribution {
    pub(crate) const ALL: [Distribution; 2] = [Distribution::Fixed, Distribution::Exponential];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Distribution::Fixed => "fixed",
            Distribution::Exponential => "exponential",
        }
    }
}

impl Workload {
    /// {A, B} and {C, D} in turn, 50 and 55 ms, 50 bytes.
    pub(crate) fn of_paper(distribution: Distribution) -> Workload {
        let demands = [50, 55].map(Duration::from_millis).to_vec();
        Workload { demands, distribution, sets: 2, size: 50, seed: 1 }
    }

    pub(crate) fn is_of_paper(&self) -> bool {
        *self == Workload { seed: self.seed, ..Workload::of_paper(self.distribution) }
    }

    /// What a row says of it.
    pub(crate) fn name(&self) -> String {
        if self.is_of_paper() {
            return "paper".to_owned();
        }
        let demands = self.demands.iter().map(|demand| digits(demand.as_secs_f64() * 1e3));
        let demands = demands.collect::<Vec<_>>().join("+");
        format!("{demands} ms on {} servers with {} bytes", self.stations(), self.size)
    }

    /// The requests of a cycle.
    pub(crate) fn parts(&self) -> usize {
        self.demands.len()
    }

    pub(crate) fn stations(&self) -> usize {
        self.sets * self.parts()
    }

    /// The station that serves a part in this cycle of a client. Clients begin at different sets: with fixed demands, queues that are
    /// unequal at the beginning remain so for hundreds of cycles, and each delay of a message is one of the shorter queue's station.
    pub(crate) fn station(&self, client: usize, cycle: u64, part: usize) -> usize {
        ((client as u64 + cycle) % self.sets as u64) as usize * self.parts() + part
    }

    /// How long that station serves it. It depends on nothing else: neither on the way in which the request came nor on when.
    pub(crate) fn demand(&self, client: usize, cycle: u64, part: usize) -> Duration {
        let mean = self.demands[part];
        match self.distribution {
            Distribution::Fixed => mean,
            Distribution::Exponential => {
                let place = [client as u64, cycle, part as u64];
                let seed = place.into_iter().fold(self.seed, |seed, place| mixed(seed ^ place));
                // From 0, excluded, to 1: the logarithm is finite.
                mean.mul_f64(-(1.0 - Rng::with_seed(seed).f64()).ln())
            }
        }
    }

    /// No way to run jobs makes more cycles a second: each set has a slowest station.
    pub(crate) fn cycles_a_second_max(&self) -> f64 {
        let slowest = self.demands.iter().max().map_or(0.0, Duration::as_secs_f64);
        self.sets as f64 / slowest
    }
}

/// Spreads the bits of a number over all of it (SplitMix64's last step), so that neighbours have nothing in common.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_take_turns_among_sets() {
        let workload = Workload::of_paper(Distribution::Fixed);
        let stations = |client| {
            move |cycle| {
                [0, 1].map(|part| Workload::of_paper(Distribution::Fixed).station(client, cycle, part))
            }
        };
        assert_eq!([0, 1, 2, 3].map(stations(0)), [[0, 1], [2, 3], [0, 1], [2, 3]]);
        assert_eq!([0, 1].map(stations(1)), [[2, 3], [0, 1]]);
        assert_eq!(workload.stations(), 4);
        assert!((workload.cycles_a_second_max() - 36.36).abs() < 0.01);
    }

    #[test]
    fn exponential_demands_have_their_mean_and_deviation_and_are_the_same_for_all() {
        let workload = Workload::of_paper(Distribution::Exponential);
        for (part, mean) in [50.0, 55.0].into_iter().enumerate() {
            let places = (0..10).flat_map(|client| (0..10_000).map(move |cycle| (client, cycle)));
            let ms: Vec<f64> = places
                .map(|(client, cycle)| workload.demand(client, cycle, part).as_secs_f64() * 1e3)
                .collect();
            let found = ms.iter().sum::<f64>() / ms.len() as f64;
            let deviation = (ms.iter().map(|ms| (ms - found).powi(2)).sum::<f64>() / ms.len() as f64).sqrt();
            assert!((found / mean - 1.0).abs() < 0.01, "{found}");
            assert!((deviation / mean - 1.0).abs() < 0.01, "{deviation}");
        }
        assert_eq!(workload.demand(3, 7, 1), workload.clone().demand(3, 7, 1));
        let other = Workload { seed: 2, ..workload.clone() };
        assert_ne!(workload.demand(3, 7, 1), other.demand(3, 7, 1));
        assert_ne!(workload.demand(3, 7, 0), workload.demand(3, 8, 0));
    }
}
