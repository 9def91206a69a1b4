//! What a plan may change.

use std::time::Duration;

use crate::analysis::fork_join::stretched;
use crate::scenario::{Architecture, Arrivals, CacheMode, Cycle, Scenario};

/// Something that a plan may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, as in the file: `servers.accounts.threads`.
    pub name: String,
    /// What it can be.
    pub choices: Vec<Choice>,
}

/// One of the values of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The value, as in the file.
    pub label: String,
    /// What it costs, in whatever unit the file counts.
    pub cost: f64,
    /// What it sets.
    pub setting: Setting,
}

/// A value of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setting {
    /// Hosts of a group.
    Hosts(usize, u32),
    /// Processors of each host of a group.
    Cores(usize, u32),
    /// The speed of a group's processors.
    Speed(usize, f64),
    /// Threads of a server.
    Threads(usize, u32),
    /// Threads of a server's lane.
    LaneThreads(usize, usize, u32),
    /// The part of the objects that fits the caches of a class.
    Capacity(usize, f64),
    /// How stale reads of a class may be.
    Lag(usize, Duration),
    /// How updates for a class leave.
    Mode(usize, CacheMode),
    /// How all jobs of a class run.
    Architecture(usize, Architecture),
    /// Bits a second of a link with a rule of its own.
    LinkBandwidth(usize, u64),
    /// Bits a second of all other links.
    DefaultBandwidth(u64),
}

impl Setting {
    /// Sets the value. Indices are those of the scenario for which the setting was made.
    pub fn apply(self, scenario: &mut Scenario) {
        match self {
            Setting::Hosts(group, count) => scenario.hosts[group].count = count,
            Setting::Cores(group, cores) => scenario.hosts[group].cores = cores,
            Setting::Speed(group, speed) => scenario.hosts[group].speed = speed,
            Setting::Threads(server, threads) => scenario.servers[server].threads = Some(threads),
            Setting::LaneThreads(server, lane, threads) => {
                scenario.servers[server].lanes[lane].threads = threads
            }
            Setting::Capacity(class, capacity) => {
                if let Some(cache) = &mut scenario.classes[class].cache {
                    cache.capacity = capacity;
                }
            }
            Setting::Lag(class, lag) => {
                if let Some(cache) = &mut scenario.classes[class].cache {
                    cache.lag = lag;
                }
            }
            Setting::Mode(class, mode) => {
                // What stands beside the mode stays, where it asks already.
                if let Some(cache) = &mut scenario.classes[class].cache
                    && !matches!((cache.mode, mode), (CacheMode::Asked(_), CacheMode::Asked(_)))
                {
                    cache.mode = mode;
                }
            }
            Setting::Architecture(class, chosen) => {
                for weighted in &mut scenario.classes[class].mix {
                    if let Cycle::Job { architecture, .. } = &mut weighted.cycle {
                        *architecture = chosen;
                    }
                }
            }
            Setting::LinkBandwidth(rule, bandwidth) => scenario.links[rule].link.bandwidth = Some(bandwidth),
            Setting::DefaultBandwidth(bandwidth) => scenario.default_link.bandwidth = Some(bandwidth),
        }
    }
}

/// The scenario with so many times the load: clients, rounded up, or arrivals. Traces come so many times as fast.
pub fn with_load(scenario: &Scenario, factor: f64) -> Scenario {
    let mut loaded = scenario.clone();
    for class in &mut loaded.classes {
        match &mut class.arrivals {
            Arrivals::Closed { clients, .. } => {
                *clients = ((f64::from(*clients) * factor).ceil() as u32).max(1)
            }
            Arrivals::Open { between, .. } => *between = stretched(between, 1.0 / factor),
            Arrivals::Trace(times) => times.iter_mut().for_each(|time| *time = time.div_f64(factor)),
        }
    }
    loaded
}
