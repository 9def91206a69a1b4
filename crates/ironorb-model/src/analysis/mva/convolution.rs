//! Normalization constants, for stations of several servers. All terms are positive, so that nothing cancels: the recursion
//! over marginal probabilities, which exact mean value analysis uses for such stations, loses all digits under load.

use super::{Populations, all_spread_evenly, approximate, populations, thinks};
use crate::analysis::network::{Method, Network, Solution, StationKind};

/// `None` if a customer does not spread evenly, or if there are too many populations.
pub(super) fn solve(network: &Network) -> Option<Solution> {
    let all = populations(network);
    if !all_spread_evenly(network) || all.iter().sum::<u32>() > CUSTOMERS_MAX {
        return None;
    }
    let vectors = Populations::new(all, VECTORS_MAX)?;
    let servers_of = |k: usize| match network.stations[k].kind {
        StationKind::Queue { servers } => Some(servers),
        StationKind::Delay => None,
    };
    let several: usize = (0..network.stations.len())
        .filter(|&k| servers_of(k).is_some_and(|servers| servers > 1))
        .map(|k| network.stations[k].copies as usize)
        .sum();
    let copies: usize = network.stations.iter().map(|station| station.copies as usize).sum();
    if vectors.count * vectors.count * several * (several + 1) + vectors.count * copies * copies > STEPS_MAX {
        return None;
    }
    // Demands are scaled by throughputs that are nearly right, so that the constants neither vanish nor overflow.
    let scale: Vec<f64> = approximate::solve(network)
        .chains
        .iter()
        .map(|chain| chain.throughput.max(f64::MIN_POSITIVE))
        .collect();
    if !scale.iter().all(|scale| scale.is_finite()) {
        return None;
    }
    let mut algorithm = Algorithm { network, vectors, scale, thinks: thinks(network) };
    algorithm.solve()
}

struct Algorithm<'a> {
    network: &'a Network,
    vectors: Populations,
    scale: Vec<f64>,
    thinks: Vec<f64>,
}

impl Algorithm<'_> {
    fn solve(&mut self) -> Option<Solution> {
        let constants = self.constants(None);
        let last = self.vectors.count - 1;
        let whole = constants[last];
        if !(whole.is_finite() && whole > 0.0) {
            return None;
        }
        let throughputs: Vec<f64> = (0..self.scale.len())
            .map(|r| match self.vectors.most[r] {
                0 => 0.0,
                _ => self.scale[r] * constants[last - self.vectors.strides[r]] / whole,
            })
            .collect();
        let mut residences = vec![vec![0.0; self.network.stations.len()]; self.scale.len()];
        for (k, station) in self.network.stations.iter().enumerate() {
            let at_one = self.customers_of_chains(k, &constants, whole);
            for (r, customers) in at_one.into_iter().enumerate() {
                if throughputs[r] > 0.0 {
                    residences[r][k] = customers * f64::from(station.copies) / throughputs[r];
                }
            }
        }
        Some(self.network.solution(Method::ExactConvolution, residences, &throughputs))
    }

    /// The scaled demand for one copy of a station.
    fn demands(&self, k: usize) -> Vec<f64> {
        let copies = f64::from(self.network.stations[k].copies);
        self.network
            .chains
            .iter()
            .zip(&self.scale)
            .map(|(chain, scale)| chain.demands[k].seconds / copies * scale)
            .collect()
    }

    /// The constants of the network, without one copy of a station if so asked.
    fn constants(&self, without: Option<usize>) -> Vec<f64> {
        let mut delays: Vec<f64> =
            self.thinks.iter().zip(&self.scale).map(|(think, scale)| think * scale).collect();
        for (k, station) in self.network.stations.iter().enumerate() {
            if station.kind == StationKind::Delay {
                for (sum, one) in delays.iter_mut().zip(self.demands(k)) {
                    *sum += one * f64::from(station.copies);
                }
            }
        }
        // With delays alone the constants are those of the delays.
        let mut constants = self.factors(&delays, u32::MAX);
        for (k, station) in self.network.stations.iter().enumerate() {
            let StationKind::Queue { servers } = station.kind else { continue };
            let demands = self.demands(k);
            let factors = if servers > 1 { self.factors(&demands, servers) } else { Vec::new() };
            for _ in u32::from(without == Some(k))..station.copies {
                match servers {
                    1 => self.add_single(&mut constants, &demands),
                    _ => constants = self.convolved(&constants, &factors),
                }
            }
        }
        constants
    }

    /// The weight of each vector of customers at one station.
    fn factors(&self, demands: &[f64], servers: u32) -> Vec<f64> {
        let mut factors = vec![0.0; self.vectors.count];
        factors[0] = 1.0;
        let mut vector = Vec::new();
        for number in 1..self.vectors.count {
            self.vectors.vector(number, &mut vector);
            let there: u32 = vector.iter().sum();
            let sum: f64 = (0..demands.len())
                .filter(|&r| vector[r] > 0)
                .map(|r| demands[r] * factors[number - self.vectors.strides[r]])
                .sum();
            factors[number] = sum / f64::from(there.min(servers));
        }
        factors
    }

    fn add_single(&self, constants: &mut [f64], demands: &[f64]) {
        let mut vector = Vec::new();
        for number in 1..constants.len() {
            self.vectors.vector(number, &mut vector);
            for r in (0..demands.len()).filter(|&r| vector[r] > 0) {
                constants[number] += demands[r] * constants[number - self.vectors.strides[r]];
            }
        }
    }

    fn convolved(&self, left: &[f64], right: &[f64]) -> Vec<f64> {
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        (0..left.len())
            .map(|number| {
                self.vectors.vector(number, &mut whole);
                let parts = 0..=number;
                parts
                    .filter(|&of_right| {
                        self.vectors.vector(of_right, &mut part);
                        part.iter().zip(&whole).all(|(part, whole)| part <= whole)
                    })
                    .map(|of_right| left[number - of_right] * right[of_right])
                    .sum()
            })
            .collect()
    }

    /// The mean customers of each chain at one copy of a station.
    fn customers_of_chains(&self, k: usize, constants: &[f64], whole: f64) -> Vec<f64> {
        let demands = self.demands(k);
        let last = self.vectors.count - 1;
        let chains = 0..demands.len();
        let is_there = |r: usize| self.vectors.most[r] > 0;
        match self.network.stations[k].kind {
            StationKind::Delay => chains
                .map(|r| {
                    if is_there(r) {
                        demands[r] * constants[last - self.vectors.strides[r]] / whole
                    } else {
                        0.0
                    }
                })
                .collect(),
            StationKind::Queue { servers: 1 } => {
                // As many as there would be arrivals at a second copy of the station.
                let mut with_another = constants.to_vec();
                self.add_single(&mut with_another, &demands);
                chains
                    .map(|r| match is_there(r) {
                        true => demands[r] * with_another[last - self.vectors.strides[r]] / whole,
                        false => 0.0,
                    })
                    .collect()
            }
            StationKind::Queue { servers } => {
                let factors = self.factors(&demands, servers);
                let others = self.constants(Some(k));
                let mut vector = Vec::new();
                let mut customers = vec![0.0; demands.len()];
                for number in 1..=last {
                    self.vectors.vector(number, &mut vector);
                    let probability = factors[number] * others[last - number] / whole;
                    for (sum, there) in customers.iter_mut().zip(&vector) {
                        *sum += probability * f64::from(*there);
                    }
                }
                customers
            }
        }
    }
}

/// Beyond it, constants of thinking customers leave the range of numbers.
const CUSTOMERS_MAX: u32 = 400;
/// Vectors of populations.
const VECTORS_MAX: usize = 20_000;
/// Products of two constants.
const STEPS_MAX: usize = 200_000_000;
