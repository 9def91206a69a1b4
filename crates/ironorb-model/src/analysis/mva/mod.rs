//! Mean values of networks of product form: exact where it is affordable, by approximation elsewhere.
//!
//! A network has product form if its queues are served in order of arrival with exponential times that are the same for all
//! chains, or share their processors evenly, and if a customer is at one station at a time. Of other networks the solution is
//! an approximation, whatever the method is called.

mod approximate;
mod convolution;
mod exact;
mod mixed;

use super::network::{Load, Network, Solution};

/// Solves a network: exactly if that takes at most a few million steps.
///
/// Closed chains with no demand and no think time never end a cycle; their throughput is infinite.
pub fn solve(network: &Network) -> Solution {
    let open = network.chains.iter().filter(|chain| matches!(chain.load, Load::Open { .. })).count();
    match open {
        0 => solve_closed(network),
        _ if open == network.chains.len() => mixed::open(network),
        _ => mixed::solve(network),
    }
}

/// Solves a network without open chains by approximation, whatever its size.
pub fn solve_approximately(network: &Network) -> Solution {
    approximate::solve(network)
}

fn solve_closed(network: &Network) -> Solution {
    exact::solve(network)
        .or_else(|| convolution::solve(network))
        .unwrap_or_else(|| approximate::solve(network))
}

/// The customers of closed chains; 0 for open ones.
fn populations(network: &Network) -> Vec<u32> {
    let of = |load| match load {
        Load::Closed { customers, .. } => customers,
        Load::Open { .. } => 0,
    };
    network.chains.iter().map(|chain| of(chain.load)).collect()
}

/// Think times of closed chains; 0 for open ones.
fn thinks(network: &Network) -> Vec<f64> {
    let of = |load| match load {
        Load::Closed { think, .. } => think,
        Load::Open { .. } => 0.0,
    };
    network.chains.iter().map(|chain| of(chain.load)).collect()
}

/// Whether each customer of each chain spreads evenly over all copies of each station that it visits.
fn all_spread_evenly(network: &Network) -> bool {
    network.chains.iter().all(|chain| {
        chain
            .demands
            .iter()
            .zip(&network.stations)
            .all(|(demand, station)| demand.seconds == 0.0 || demand.copies_visited == station.copies)
    })
}

/// Vectors of populations from zero to a greatest one, numbered by mixed radix.
struct Populations {
    most: Vec<u32>,
    /// What one more customer of each chain adds to the number of a vector.
    strides: Vec<usize>,
    count: usize,
}

impl Populations {
    /// `None` if there are more than `count_max`.
    fn new(most: Vec<u32>, count_max: usize) -> Option<Populations> {
        let mut count = 1_usize;
        let mut strides = Vec::with_capacity(most.len());
        for &of_chain in &most {
            strides.push(count);
            count = count.checked_mul(of_chain as usize + 1).filter(|&count| count <= count_max)?;
        }
        Some(Populations { most, strides, count })
    }

    /// The customers of each chain in the vector of this number.
    fn vector(&self, number: usize, into: &mut Vec<u32>) {
        into.clear();
        into.extend(
            self.strides
                .iter()
                .zip(&self.most)
                .map(|(stride, most)| (number / stride % (*most as usize + 1)) as u32),
        );
    }
}
