//! Linearizer (Chandy and Neuse): Schweitzer's estimate of what an arrival finds, corrected by how the parts of the customers
//! that are at a station change when one customer leaves. A station of several servers is a faster one and a delay
//! (Seidmann): right when it is idle or full, and between too slow, with few customers by up to a quarter. Small networks
//! are solved exactly, so that this matters little.

use super::{populations, thinks};
use crate::analysis::network::{Method, Network, Solution, StationKind};

pub(super) fn solve(network: &Network) -> Solution {
    let customers: Vec<f64> = populations(network).into_iter().map(f64::from).collect();
    let chains = customers.len();
    let stations = network.stations.len();
    let mut fixed_point = FixedPoint {
        network,
        thinks: thinks(network),
        changes: vec![vec![vec![0.0; chains]; chains]; stations],
    };
    let mut whole = fixed_point.core(&customers, None);
    if whole.throughputs.iter().all(|x| x.is_finite()) {
        for _ in 0..ROUNDS {
            let with_one_less: Vec<Estimate> = (0..chains)
                .map(|r| {
                    let mut fewer = customers.clone();
                    fewer[r] = (fewer[r] - 1.0).max(0.0);
                    fixed_point.core(&fewer, Some(&whole))
                })
                .collect();
            for k in 0..stations {
                for (s, count) in customers.iter().enumerate() {
                    for (r, fewer) in with_one_less.iter().enumerate() {
                        let is_none_left = r == s && *count <= 1.0;
                        let change = if is_none_left { 0.0 } else { fewer.parts[s][k] - whole.parts[s][k] };
                        fixed_point.changes[k][s][r] = change;
                    }
                }
            }
            whole = fixed_point.core(&customers, Some(&whole));
        }
    }
    network.solution(Method::Linearizer, whole.residences, &whole.throughputs)
}

struct FixedPoint<'a> {
    network: &'a Network,
    thinks: Vec<f64>,
    /// By station, chain and chain that has one customer less: how the part of its customers at the station changes.
    changes: Vec<Vec<Vec<f64>>>,
}

struct Estimate {
    /// By chain and station: the part of the chain's customers that is there.
    parts: Vec<Vec<f64>>,
    residences: Vec<Vec<f64>>,
    throughputs: Vec<f64>,
}

impl FixedPoint<'_> {
    /// Residence times and what an arrival finds, until they agree.
    fn core(&self, customers: &[f64], start: Option<&Estimate>) -> Estimate {
        let stations = self.network.stations.len();
        let even = vec![vec![1.0 / stations.max(1) as f64; stations]; customers.len()];
        let mut estimate = Estimate {
            parts: start.map_or(even, |start| start.parts.clone()),
            residences: vec![vec![0.0; stations]; customers.len()],
            throughputs: vec![0.0; customers.len()],
        };
        for _ in 0..ITERATIONS_MAX {
            let mut moved = 0.0_f64;
            let mut parts = vec![vec![0.0; stations]; customers.len()];
            for r in 0..customers.len() {
                let mut cycle = self.thinks[r];
                for k in 0..stations {
                    let residence = self.residence(r, k, customers, &estimate.parts);
                    estimate.residences[r][k] = residence;
                    cycle += residence;
                }
                estimate.throughputs[r] = if customers[r] > 0.0 { customers[r] / cycle } else { 0.0 };
                for (k, part) in parts[r].iter_mut().enumerate() {
                    *part = if cycle > 0.0 { estimate.residences[r][k] / cycle } else { 0.0 };
                    moved = moved.max((*part - estimate.parts[r][k]).abs());
                }
            }
            estimate.parts = parts;
            if moved < TOLERANCE {
                break;
            }
        }
        estimate
    }

    fn residence(&self, r: usize, k: usize, customers: &[f64], parts: &[Vec<f64>]) -> f64 {
        let station = &self.network.stations[k];
        let demand = self.network.chains[r].demands[k];
        let StationKind::Queue { servers } = station.kind else { return demand.seconds };
        if demand.seconds == 0.0 {
            return 0.0;
        }
        let corrected = |s: usize| parts[s][k] + self.changes[k][s][r];
        let all: f64 = (0..parts.len()).map(|s| customers[s] * corrected(s)).sum();
        let own = corrected(r) / f64::from(demand.copies_visited);
        let found = (all / f64::from(station.copies) - own).max(0.0);
        let servers = f64::from(servers);
        demand.seconds / servers * (1.0 + found) + demand.seconds * (servers - 1.0) / servers
    }
}

/// Corrections; a third changes little.
const ROUNDS: u32 = 3;
const ITERATIONS_MAX: u32 = 10_000;
/// Of the part of a chain's customers at a station.
const TOLERANCE: f64 = 1e-10;
