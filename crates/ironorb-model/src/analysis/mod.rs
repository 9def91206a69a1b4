//! What can be said of a scenario without simulating it: bounds that hold for every deployment, mean values of what has product
//! form, the form in which solvers of layered queueing networks take it; and the search for what a target takes.
//!
//! | module | contents |
//! |---|---|
//! | [`demands`](mod@demands) | what a cycle takes of each resource, and where product form ends |
//! | [`bounds`](mod@bounds), [`fork_join`] | what no deployment can pass |
//! | [`mva`] | mean value analysis of a [`Network`] |
//! | [`lqn`] | layered queueing networks, as LQNX |
//! | [`plan`] | what a target takes at least |

pub mod bounds;
pub mod demands;
pub mod fork_join;
pub mod lqn;
pub mod mva;
mod network;
pub mod plan;
mod sizes;

pub use network::{
    Chain, ChainSolution, Demand, Load, Method, Network, Solution, Station, StationKind, StationSolution,
};

use demands::{Demands, UNBOUNDED};

impl Demands {
    /// The network of product form that is nearest to the scenario: its processors, links and sleeping servants, and for each
    /// class the time on the way. Threads and locks have no place in it.
    pub fn network(&self) -> Network {
        let stations_of: Vec<_> =
            self.resources.iter().filter(|it| !it.kind.is_held_across_others()).collect();
        let mut stations: Vec<Station> = stations_of
            .iter()
            .map(|resource| Station {
                name: resource.name.clone(),
                kind: match resource.servers {
                    UNBOUNDED => StationKind::Delay,
                    servers => StationKind::Queue { servers },
                },
                copies: resource.copies,
            })
            .collect();
        stations.push(Station { name: "on the way".to_owned(), kind: StationKind::Delay, copies: 1 });
        let chains = self
            .classes
            .iter()
            .enumerate()
            .map(|(index, class)| {
                let mut demands: Vec<Demand> =
                    stations_of.iter().map(|resource| resource.demands[index]).collect();
                let served: f64 = demands.iter().map(|demand| demand.seconds).sum();
                demands.push(Demand { seconds: (class.alone - served).max(0.0), copies_visited: 1 });
                Chain { name: class.name.clone(), load: class.load, demands }
            })
            .collect();
        Network { stations, chains }
    }

    /// The most demanded resource of a class, in seconds a cycle for each thing that can be in use at a time.
    pub fn most_demanded(&self, class: usize) -> f64 {
        let each = |resource: &demands::Resource| {
            resource.demands[class].seconds / (f64::from(resource.servers) * f64::from(resource.copies))
        };
        self.resources.iter().map(each).fold(0.0, f64::max)
    }

    /// The scenario's jobs as customers of stations of their own, for bounds and estimates; `None` if it has other classes,
    /// too, if the class is open, or if not all of its cycles are jobs whose parts run at once.
    pub fn fork_and_join(&self) -> Option<Vec<(f64, fork_join::Closed)>> {
        let [class] = self.classes.as_slice() else { return None };
        let Load::Closed { customers, think } = class.load else { return None };
        let forked: f64 = class.forks.iter().map(|(weight, _)| weight).sum();
        if forked < 1.0 - 1e-9 {
            return None;
        }
        let most_demanded = self.most_demanded(0);
        let closed = class.forks.iter().map(|(weight, fork)| {
            let parts = fork.parts.clone();
            (*weight, fork_join::Closed { customers, think, around: fork.around, parts, most_demanded })
        });
        Some(closed.collect())
    }
}
