//! The exact recursion over populations, for stations of one server and delays.

use super::{Populations, all_spread_evenly, populations, thinks};
use crate::analysis::network::{Method, Network, Solution, StationKind};

/// `None` if a station has several servers, if a customer does not spread evenly, or if there are too many populations.
pub(super) fn solve(network: &Network) -> Option<Solution> {
    let is_simple = |kind| !matches!(kind, StationKind::Queue { servers } if servers > 1);
    if !network.stations.iter().all(|it| is_simple(it.kind)) || !all_spread_evenly(network) {
        return None;
    }
    let stations = network.stations.len();
    let vectors = Populations::new(populations(network), NUMBERS_MAX / (stations + 1).max(1))?;
    let thinks = thinks(network);
    // Customers at one copy of each station, by vector of populations.
    let mut there = vec![0.0_f64; vectors.count * stations];
    let mut residences = vec![vec![0.0; stations]; network.chains.len()];
    let mut throughputs = vec![0.0; network.chains.len()];
    let mut vector = Vec::new();
    for number in 1..vectors.count {
        vectors.vector(number, &mut vector);
        for (r, chain) in network.chains.iter().enumerate() {
            throughputs[r] = 0.0;
            if vector[r] == 0 {
                continue;
            }
            let one_less = (number - vectors.strides[r]) * stations;
            let mut cycle = thinks[r];
            for (k, station) in network.stations.iter().enumerate() {
                // An arrival sees the network as it is without the customer that arrives.
                let found = if station.kind == StationKind::Delay { 0.0 } else { there[one_less + k] };
                residences[r][k] = chain.demands[k].seconds * (1.0 + found);
                cycle += residences[r][k];
            }
            throughputs[r] = f64::from(vector[r]) / cycle;
        }
        for k in 0..stations {
            let sum: f64 = throughputs.iter().zip(&residences).map(|(x, of)| product(*x, of[k])).sum();
            there[number * stations + k] = sum / f64::from(network.stations[k].copies);
        }
    }
    Some(network.solution(Method::ExactMeanValues, residences, &throughputs))
}

/// A chain whose cycles take no time has an infinite throughput, and is nowhere.
fn product(throughput: f64, residence: f64) -> f64 {
    if residence == 0.0 { 0.0 } else { throughput * residence }
}

/// The most numbers that the recursion holds: 32 MiB.
const NUMBERS_MAX: usize = 4 << 20;
