//! The resources of a scenario in reports: their names, and which of them are listed one by one. All levels have them alike.

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

/// Lists resources one by one, or as one if there are many: its use and queue are the means, and its greatest queue is the greatest of all.
fn add_each_or_all(
    into: &mut Vec<ResourceObservations>,
    each: Vec<ResourceObservations>,
    name: impl FnOnce() -> String,
) {
    if each.len() <= LISTED_MAX {
        into.extend(each);
        return;
    }
    let count = each.len() as f64;
    into.push(ResourceObservations {
        name: format!("{} (mean of {})", name(), each.len()),
        utilisation: each.iter().map(|it| it.utilisation).sum::<f64>() / count,
        queue_mean: each.iter().map(|it| it.queue_mean).sum::<f64>() / count,
        queue_max: each.iter().map(|it| it.queue_max).max().unwrap_or(0),
        octets: each.iter().map(|it| it.octets).sum(),
    });
}
