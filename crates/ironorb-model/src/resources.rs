//! The resources of a scenario in reports: their names, and which of them are listed one by one. All levels have them alike.

use std::collections::BTreeMap;

use crate::scenario::{Scenario, ServerLock};
use crate::{Load, ResourceObservations, Time};

/// The processors of hosts. `of` observes those of one host, by the index of its group and its number there, under a name.
pub fn observe_processors(
    scenario: &Scenario,
    into: &mut Vec<ResourceObservations>,
    mut of: impl FnMut(usize, u32, String) -> ResourceObservations,
) {
    for (index, group) in scenario.hosts.iter().enumerate() {
        let each = (0..group.count)
            .map(|number| of(index, number, format!("cpu of {}{}", group.name, place(number, group.count))));
        add_each_or_all(into, each.collect(), || format!("cpu of {}", group.name));
    }
}

/// The links between hosts of two groups, in each direction, as one: the mean of those that have been used. `used` has each of these
/// with the indices of its groups; its name does not count.
pub fn observe_links(
    scenario: &Scenario,
    into: &mut Vec<ResourceObservations>,
    used: impl IntoIterator<Item = ((usize, usize), ResourceObservations)>,
) {
    let mut between: BTreeMap<(usize, usize), Vec<ResourceObservations>> = BTreeMap::new();
    for (groups, link) in used {
        between.entry(groups).or_default().push(link);
    }
    for ((from, to), each) in between {
        let name = |group: usize| &scenario.hosts[group].name;
        into.push(mean_of(&each, format!("link {} -> {}", name(from), name(to))));
    }
}

/// The threads of servers' pools. `of` observes those of one process, by the index of its server, its number there and its lane,
/// under a name; `None` for a process without pools.
pub fn observe_pools(
    scenario: &Scenario,
    into: &mut Vec<ResourceObservations>,
    mut of: impl FnMut(usize, u32, u32, String) -> Option<ResourceObservations>,
) {
    for (index, server) in scenario.servers.iter().enumerate() {
        let count = scenario.hosts[server.hosts].count;
        for lane in 0..server.lanes.len().max(1) as u32 {
            let of_lane = match server.lanes.get(lane as usize) {
                Some(lane) => format!(", lane {}", lane.priority),
                None => String::new(),
            };
            let each = (0..count).filter_map(|number| {
                of(
                    index,
                    number,
                    lane,
                    format!("threads of {}{}{of_lane}", server.name, place(number, count)),
                )
            });
            add_each_or_all(into, each.collect(), || format!("threads of {}{of_lane}", server.name));
        }
    }
}

/// The locks of servers, by server. Of the locks of objects, the use is the mean number of those that are locked at a time.
pub fn observe_locks(scenario: &Scenario, loads: &[Load], now: Time, into: &mut Vec<ResourceObservations>) {
    for (server, load) in scenario.servers.iter().zip(loads) {
        let name = match server.lock {
            ServerLock::None => continue,
            ServerLock::Object => format!("locked objects of {}", server.name),
            ServerLock::Process => format!("lock of {}", server.name),
        };
        let mut seen = load.observe(now, name);
        if server.lock == ServerLock::Process {
            seen.utilisation /= f64::from(scenario.hosts[server.hosts].count);
        }
        into.push(seen);
    }
}

/// Which of several it is.
fn place(number: u32, count: u32) -> String {
    if count == 1 { String::new() } else { format!("[{number}]") }
}

/// The most equal resources that reports list one by one.
const LISTED_MAX: usize = 16;

/// Lists resources one by one, or as one if there are many.
fn add_each_or_all(
    into: &mut Vec<ResourceObservations>,
    each: Vec<ResourceObservations>,
    name: impl FnOnce() -> String,
) {
    if each.len() <= LISTED_MAX {
        into.extend(each);
        return;
    }
    into.push(mean_of(&each, name()));
}

/// Many as one: its use and queue are the means, its greatest queue is the greatest of all, and its octets are those of all.
fn mean_of(each: &[ResourceObservations], name: String) -> ResourceObservations {
    // The sum of sorted numbers does not depend on the order in which a level has its resources.
    let mean = |of: fn(&ResourceObservations) -> f64| {
        let mut all: Vec<f64> = each.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.iter().sum::<f64>() / all.len() as f64
    };
    ResourceObservations {
        name: if each.len() == 1 { name } else { format!("{name} (mean of {})", each.len()) },
        utilisation: mean(|it| it.utilisation),
        queue_mean: mean(|it| it.queue_mean),
        queue_max: each.iter().map(|it| it.queue_max).max().unwrap_or(0),
        octets: each.iter().map(|it| it.octets).sum(),
    }
}
