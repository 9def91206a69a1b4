//! Open chains, alone and beside closed ones.

use super::solve_closed;
use crate::analysis::network::{Chain, Demand, Load, Method, Network, Solution, StationKind};

/// Open chains alone: each station is a queue of its own (Jackson).
pub(super) fn open(network: &Network) -> Solution {
    let throughputs: Vec<f64> = network.chains.iter().map(|chain| rate(chain).unwrap_or(0.0)).collect();
    let stretch: Vec<f64> = (0..network.stations.len())
        .map(|k| match network.stations[k].kind {
            StationKind::Queue { servers } => 1.0 + waiting(servers, network.utilisation(k, &throughputs)),
            StationKind::Delay => 1.0,
        })
        .collect();
    let residences = network
        .chains
        .iter()
        .map(|chain| {
            chain.demands.iter().zip(&stretch).map(|(demand, stretch)| stretched(*demand, *stretch)).collect()
        })
        .collect();
    network.solution(Method::Open, residences, &throughputs)
}

/// Closed chains find the stations slower by what open ones take; these find the closed customers that are there. Exact for
/// stations of one server.
pub(super) fn solve(network: &Network) -> Solution {
    let open_rates: Vec<f64> = network.chains.iter().map(|chain| rate(chain).unwrap_or(0.0)).collect();
    let open_parts: Vec<f64> =
        (0..network.stations.len()).map(|k| network.utilisation(k, &open_rates)).collect();
    let is_closed = |chain: &&Chain| rate(chain).is_none();
    let slower = |chain: &Chain| Chain {
        demands: chain
            .demands
            .iter()
            .zip(&open_parts)
            .map(|(demand, part)| Demand {
                seconds: stretched(*demand, 1.0 / (1.0 - part).max(0.0)),
                ..*demand
            })
            .collect(),
        ..chain.clone()
    };
    let closed = Network {
        stations: network.stations.clone(),
        chains: network.chains.iter().filter(is_closed).map(slower).collect(),
    };
    let can_carry = open_parts.iter().all(|part| *part < 1.0);
    let of_closed = can_carry.then(|| solve_closed(&closed));
    let mut next_closed = of_closed.iter().flat_map(|solution| solution.chains.clone());
    let mut residences = Vec::new();
    let mut throughputs = Vec::new();
    for chain in &network.chains {
        match rate(chain) {
            Some(rate) => {
                throughputs.push(rate);
                let of_station =
                    |k: usize| open_residence(network, &open_parts, of_closed.as_ref(), chain, k);
                residences.push((0..network.stations.len()).map(of_station).collect());
            }
            None => {
                let solution = next_closed.next();
                throughputs.push(solution.as_ref().map_or(0.0, |it| it.throughput));
                let starved = || vec![f64::INFINITY; network.stations.len()];
                residences.push(solution.map_or_else(starved, |it| it.residence));
            }
        }
    }
    let is_shared =
        |k: usize| closed.chains.iter().any(|chain| chain.demands[k].seconds > 0.0) && open_parts[k] > 0.0;
    let several =
        |k: usize| matches!(network.stations[k].kind, StationKind::Queue { servers } if servers > 1);
    let exact = of_closed.as_ref().is_some_and(|solution| solution.method.is_exact())
        && !(0..network.stations.len()).any(|k| is_shared(k) && several(k));
    network.solution(Method::Mixed { exact }, residences, &throughputs)
}

fn open_residence(
    network: &Network,
    parts: &[f64],
    closed: Option<&Solution>,
    chain: &Chain,
    k: usize,
) -> f64 {
    let StationKind::Queue { servers } = network.stations[k].kind else { return chain.demands[k].seconds };
    let found = closed.map_or(0.0, |solution| solution.stations[k].customers);
    if found == 0.0 || servers == 1 {
        let alone = 1.0 + waiting(servers, parts[k]);
        return stretched(chain.demands[k], alone * (1.0 + found));
    }
    let servers = f64::from(servers);
    let faster = (1.0 + found) / (1.0 - parts[k]).max(0.0) / servers;
    stretched(chain.demands[k], faster + (servers - 1.0) / servers)
}

fn rate(chain: &Chain) -> Option<f64> {
    match chain.load {
        Load::Open { rate } => Some(rate),
        Load::Closed { .. } => None,
    }
}

fn stretched(demand: Demand, factor: f64) -> f64 {
    if demand.seconds == 0.0 { 0.0 } else { demand.seconds * factor }
}

/// The mean wait before so many servers, in mean services (Erlang's C); infinite from full utilisation on.
pub(crate) fn waiting(servers: u32, utilisation: f64) -> f64 {
    if utilisation >= 1.0 {
        return f64::INFINITY;
    }
    let servers_f = f64::from(servers);
    let offered = utilisation * servers_f;
    // Erlang's B by recursion, which neither overflows nor cancels; then C.
    let mut blocked = 1.0;
    for n in 1..=servers {
        blocked = offered * blocked / (f64::from(n) + offered * blocked);
    }
    let waits = blocked / (1.0 - utilisation * (1.0 - blocked));
    waits / (servers_f * (1.0 - utilisation))
}
