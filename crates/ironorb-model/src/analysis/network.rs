//! Queueing networks as data.

/// Stations, and chains of customers that visit them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// What customers queue for.
    pub stations: Vec<Station>,
    /// Who the customers are. Each has a demand for each station.
    pub chains: Vec<Chain>,
}

/// One station, or several equal ones among which customers spread evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// The station's name.
    pub name: String,
    /// Whether customers wait there.
    pub kind: StationKind,
    /// The number of equal stations.
    pub copies: u32,
}

/// Whether customers wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationKind {
    /// A queue before so many servers.
    Queue {
        /// The servers of each copy: at least 1.
        servers: u32,
    },
    /// A server for each customer.
    Delay,
}

/// Customers with equal demands.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The chain's name.
    pub name: String,
    /// How many customers there are, or how often one comes.
    pub load: Load,
    /// By station.
    pub demands: Vec<Demand>,
}

/// How many customers a chain has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Always the same ones.
    Closed {
        /// Their number.
        customers: u32,
        /// Seconds that each spends outside all stations, a cycle.
        think: f64,
    },
    /// New ones.
    Open {
        /// Customers a second.
        rate: f64,
    },
}

/// What one cycle takes of a station.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Seconds of service a cycle, over all copies of the station.
    pub seconds: f64,
    /// The number of copies over which *one* customer spreads its demand. A client that has one of many hosts to itself
    /// visits one copy: it is never in its own way elsewhere.
    pub copies_visited: u32,
}

impl Demand {
    /// No demand.
    pub const NONE: Demand = Demand { seconds: 0.0, copies_visited: 1 };
}

/// What a solver found.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// How it was found.
    pub method: Method,
    /// By chain.
    pub chains: Vec<ChainSolution>,
    /// By station.
    pub stations: Vec<StationSolution>,
}

/// How a solution was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact mean value analysis: recursion over all populations.
    ExactMeanValues,
    /// Exact, by normalization constants: stations of several servers.
    ExactConvolution,
    /// Linearizer, an approximation; stations of several servers by Seidmann's.
    Linearizer,
    /// Exact, for open chains alone.
    Open,
    /// Open chains take their part of the stations, and closed ones queue for the rest; the closed part as told by
    /// `exact`.
    Mixed {
        /// Whether all of it is exact.
        exact: bool,
    },
}

impl Method {
    /// Whether the solution is exact for a network of product form.
    pub fn is_exact(self) -> bool {
        !matches!(self, Method::Linearizer | Method::Mixed { exact: false })
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Method::ExactMeanValues => "exact mean value analysis",
            Method::ExactConvolution => "exact convolution",
            Method::Linearizer => "linearizer (approximate)",
            Method::Open => "open queues (exact)",
            Method::Mixed { exact: true } => "mixed mean value analysis (exact)",
            Method::Mixed { exact: false } => "mixed mean value analysis (approximate)",
        }
    }
}

/// What a chain sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainSolution {
    /// Cycles a second.
    pub throughput: f64,
    /// Mean seconds of a cycle, without thinking; infinite if a station cannot carry its open chains.
    pub response: f64,
    /// Mean seconds at each station, a cycle.
    pub residence: Vec<f64>,
}

/// What a station sees.
#[derive(Debug, Clone, PartialEq)]
pub struct StationSolution {
    /// The busy part of its servers' time: 0 to 1 and, where open chains demand more than there is, above.
    pub utilisation: f64,
    /// The mean number of customers at each copy, in service or waiting.
    pub customers: f64,
}

impl Network {
    /// The part of its servers' time for which a station is demanded at these throughputs.
    pub fn utilisation(&self, station: usize, throughputs: &[f64]) -> f64 {
        let demanded: f64 =
            self.chains.iter().zip(throughputs).map(|(chain, x)| x * chain.demands[station].seconds).sum();
        let Station { kind, copies, .. } = &self.stations[station];
        match kind {
            StationKind::Queue { servers } => demanded / (f64::from(*servers) * f64::from(*copies)),
            StationKind::Delay => 0.0,
        }
    }

    /// The solution that follows from residence times of all chains.
    pub(crate) fn solution(
        &self,
        method: Method,
        residences: Vec<Vec<f64>>,
        throughputs: &[f64],
    ) -> Solution {
        let stations = (0..self.stations.len())
            .map(|k| {
                let there: f64 = residences.iter().zip(throughputs).map(|(of, x)| x * of[k]).sum();
                let copies = f64::from(self.stations[k].copies);
                StationSolution { utilisation: self.utilisation(k, throughputs), customers: there / copies }
            })
            .collect();
        let chains = residences
            .into_iter()
            .zip(throughputs)
            .map(|(residence, &throughput)| ChainSolution {
                throughput,
                response: residence.iter().sum(),
                residence,
            })
            .collect();
        Solution { method, chains, stations }
    }
}
