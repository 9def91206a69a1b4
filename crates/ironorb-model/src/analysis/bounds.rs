//! What no deployment of a scenario can pass, however its queues are served; and which resource is full first when load
//! grows.

use super::demands::{Demands, Resource, UNBOUNDED};
use super::fork_join::Bounds;
use super::network::Load;

/// Bounds of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassBounds {
    /// The class's name.
    pub name: String,
    /// Cycles a second. The upper bound is proven: it follows from the demands for each resource alone (asymptotic bounds).
    /// The lower one holds for a closed class alone, if nothing is served by priority and pauses make nothing longer: at worst
    /// each customer waits for a whole cycle of each other.
    pub throughput: Bounds,
    /// Mean seconds of a cycle. The lower bound is proven.
    pub response: Bounds,
    /// Seconds that no percentile is below: those that even a cycle takes that meets nobody and finds each time at its
    /// shortest.
    pub least: f64,
    /// What limits the throughput: a resource, or the class's own cycle.
    pub limited_by: String,
}

/// How full a resource is when load grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Saturation {
    /// The resource's name.
    pub resource: String,
    /// How many times the scenario's load it takes to fill it, if cycles lasted no longer than alone. Below 1: the scenario
    /// asks for more than there is.
    pub factor: f64,
}

/// Bounds of all classes.
pub fn bounds(demands: &Demands) -> Vec<ClassBounds> {
    // What pauses add is part of no demand: then nothing is known of the slowest.
    let is_slowest_known = demands.classes.len() == 1 && !demands.leaves_out_pauses;
    demands
        .classes
        .iter()
        .enumerate()
        .map(|(index, class)| {
            let full = demands.resources.iter().filter_map(|resource| {
                let demand = resource.demands[index].seconds;
                (demand > 0.0 && resource.servers != UNBOUNDED)
                    .then(|| (capacity(resource) / demand, &resource.name))
            });
            let (most, resource) = full.min_by(|a, b| a.0.total_cmp(&b.0)).unzip();
            let most = most.unwrap_or(f64::INFINITY);
            let (limit, own, think, customers) = match class.load {
                Load::Closed { customers, think } => {
                    let customers = f64::from(customers);
                    (most, customers / (think + class.alone), think, customers)
                }
                Load::Open { rate } if class.is_steady => (most, rate, 0.0, f64::INFINITY),
                Load::Open { .. } => (most, f64::INFINITY, 0.0, f64::INFINITY),
            };
            let upper = limit.min(own);
            let limited_by = match resource {
                Some(resource) if limit < own => resource.clone(),
                _ if matches!(class.load, Load::Open { .. }) => "its arrivals".to_owned(),
                _ => "its own cycle".to_owned(),
            };
            let is_closed = customers.is_finite();
            let slowest = if is_closed && is_slowest_known { customers * class.alone } else { f64::INFINITY };
            let lower_throughput = if is_closed { customers / (think + slowest) } else { 0.0 };
            let queued = if is_closed { customers / upper - think } else { 0.0 };
            ClassBounds {
                name: class.name.clone(),
                throughput: Bounds { lower: lower_throughput, upper },
                response: Bounds { lower: class.alone.max(queued), upper: slowest },
                least: class.least,
                limited_by,
            }
        })
        .collect()
}

/// Which resources are full first when the load of all classes grows alike, the first one first.
pub fn saturations(demands: &Demands) -> Vec<Saturation> {
    let rate = |index: usize| {
        let class = &demands.classes[index];
        match class.load {
            Load::Open { rate } => rate,
            Load::Closed { customers, think } => f64::from(customers) / (think + class.alone),
        }
    };
    let rates: Vec<f64> = (0..demands.classes.len()).map(rate).collect();
    let factor = |resource: &Resource| {
        let asked: f64 =
            resource.demands.iter().zip(&rates).map(|(demand, rate)| demand.seconds * rate).sum();
        capacity(resource) / asked
    };
    let mut all: Vec<Saturation> = demands
        .resources
        .iter()
        .filter(|resource| resource.servers != UNBOUNDED)
        .map(|resource| Saturation { resource: resource.name.clone(), factor: factor(resource) })
        .filter(|saturation| saturation.factor.is_finite())
        .collect();
    all.sort_by(|a, b| a.factor.total_cmp(&b.factor));
    all
}

/// Balanced job bounds (Zahorjan and others) of the cycles a second of customers that think and then visit stations of one
/// server, for networks of product form with one chain: tighter than asymptotic ones, because queues are shortest when all
/// demands are equal and longest when one station has all of it.
pub fn balanced_job(demands: &[f64], customers: u32, think: f64) -> Bounds {
    let customers = f64::from(customers);
    let whole: f64 = demands.iter().sum();
    let most = demands.iter().copied().fold(0.0, f64::max);
    let mean = whole / demands.len().max(1) as f64;
    let best = whole + think + (customers - 1.0) * mean / (1.0 + think / whole);
    let worst = whole + think + (customers - 1.0) * most / (1.0 + think / (customers * whole));
    Bounds { lower: customers / worst, upper: (1.0 / most).min(customers / best) }
}

fn capacity(resource: &Resource) -> f64 {
    f64::from(resource.servers) * f64::from(resource.copies)
}
