//! The part of a table that one process runs.

use std::sync::Arc;

use ironorb::rt::{Priority, RtCurrent};
use ironorb::{
    LaneConfig, Orb, OrbBuilder, RequestBuffering, RequestOrder, ServerConcurrency, ThreadPoolConfig,
};
use ironorb_sched::description::LanePolicy;
use ironorb_sched::{LaneEntry, Table};

use crate::{ClientScheduler, NameKind, ScheduleError, ServerScheduler, UnknownName};

/// What a table says of the node that this process runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NodeSchedule {
    pub(crate) table: Arc<Table>,
    pub(crate) node: Arc<str>,
}

impl NodeSchedule {
    /// The part of a table for a node. [`ScheduleError::UnknownName`] if the table has no such node.
    ///
    /// The verdict of the table is not asked: [`Table::verdict`] says whether the analysis found that all deadlines hold.
    pub fn new(table: Table, node: &str) -> Result<NodeSchedule, ScheduleError> {
        let lanes = table.lanes.iter().map(|lane| lane.node.as_str());
        let nodes = || lanes.clone().chain(table.tasks.iter().map(|task| task.node.as_str()));
        if !nodes().any(|known| known == node) {
            return Err(UnknownName::new(NameKind::Node, node, nodes()).into());
        }
        Ok(NodeSchedule { node: node.into(), table: Arc::new(table) })
    }

    /// The lanes of the node.
    pub fn lanes(&self) -> impl Iterator<Item = &LaneEntry> {
        self.table.lanes.iter().filter(|lane| *lane.node == *self.node)
    }

    /// Adds the lanes of the node to an ORB that is to be built, each with the table's priority, processors, threads and
    /// limits of buffers. `endpoint` gives the address at which a lane listens, in the notation of
    /// [`OrbBuilder::endpoint`]; a lane without one only calls.
    ///
    /// [`ScheduleError::NoThreads`] and [`NoPriority`](ScheduleError::NoPriority), with the lane.
    /// [`OrbBuilder::build`] reports processors that the process may not use and priorities that the mapping does not map.
    pub fn configure(
        &self,
        builder: OrbBuilder,
        endpoint: impl Fn(&str) -> Option<String>,
    ) -> Result<OrbBuilder, ScheduleError> {
        self.lanes().try_fold(builder, |builder, entry| {
            let lane = lane_config(entry)?;
            Ok(builder.lane(match endpoint(&entry.name) {
                Some(address) => lane.endpoint(&address),
                None => lane,
            }))
        })
    }

    /// What gives the adapters and objects of an ORB their lanes. [`ScheduleError::MissingLane`] if the ORB has not all lanes
    /// of the node, and [`NoRealTime`](ScheduleError::NoRealTime).
    pub fn server_scheduler(&self, orb: &Orb) -> Result<ServerScheduler, ScheduleError> {
        self.check(orb)?;
        Ok(ServerScheduler { schedule: self.clone(), orb: orb.clone() })
    }

    /// What gives the threads of a process their priorities. Fails as [`server_scheduler`](Self::server_scheduler) does.
    pub fn client_scheduler(&self, orb: &Orb) -> Result<ClientScheduler, ScheduleError> {
        let current = self.check(orb)?;
        Ok(ClientScheduler { schedule: self.clone(), orb: orb.clone(), current })
    }

    fn check(&self, orb: &Orb) -> Result<RtCurrent, ScheduleError> {
        if let Some(missing) = self.lanes().find(|lane| orb.lane(&lane.name).is_none()) {
            return Err(ScheduleError::MissingLane { lane: missing.name.clone() });
        }
        orb.rt_current().ok_or(ScheduleError::NoRealTime)
    }

    /// Fails for a name of another node.
    pub(crate) fn check_node(&self, kind: NameKind, name: &str, node: &str) -> Result<(), ScheduleError> {
        if *node == *self.node {
            return Ok(());
        }
        let (name, node, own) = (name.to_owned(), node.to_owned(), self.node.to_string());
        Err(ScheduleError::OtherNode { kind, name, node, own })
    }
}

/// A request has a header and service contexts beside the bytes that a task set counts: this many at most, in a system
/// whose object keys, operations and contexts are not unusually long.
const HEADER_BYTES: usize = 512;

fn lane_config(entry: &LaneEntry) -> Result<LaneConfig, ScheduleError> {
    let threads = entry.threads.ok_or_else(|| ScheduleError::NoThreads { lane: entry.name.clone() })?;
    let order = match entry.order {
        LanePolicy::FixedPriority => RequestOrder::Arrival,
        LanePolicy::Edf => RequestOrder::EarliestDeadline,
        LanePolicy::Muf => RequestOrder::UrgencyFirst,
    };
    let pool = ThreadPoolConfig::new(threads.max(1) as usize).order(order).buffering(buffering(entry));
    let mut lane = LaneConfig::new(&entry.name).concurrency(ServerConcurrency::ThreadPool(pool));
    if let Some(priority) = entry.priority {
        lane = lane.priority(corba_priority(NameKind::Lane, &entry.name, priority)?);
    }
    if !entry.affinity.is_empty() {
        lane = lane.processors(entry.affinity.iter().map(|processor| *processor as usize));
    }
    Ok(lane)
}

/// The limits count the requests that threads serve, too. A thread that has replied may not wait for the next request yet
/// when that comes, so as many may wait.
fn buffering(entry: &LaneEntry) -> RequestBuffering {
    match (entry.requests_max, entry.request_bytes_max) {
        (Some(requests), Some(bytes)) => {
            let requests_max = requests.max(1) as usize;
            let bytes_max = (bytes as usize).saturating_add(requests_max.saturating_mul(HEADER_BYTES));
            RequestBuffering::UpTo { requests_max, bytes_max }
        }
        _ => RequestBuffering::InSockets,
    }
}

/// A priority of the table as CORBA's.
pub(crate) fn corba_priority(kind: NameKind, name: &str, priority: u16) -> Result<Priority, ScheduleError> {
    let known = i16::try_from(priority).ok().and_then(Priority::new);
    known.ok_or_else(|| ScheduleError::NoPriority { kind, name: name.to_owned(), priority })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane is analyzed by its order, so it must serve by it.
    #[test]
    fn a_lane_serves_in_the_order_by_which_it_was_analyzed() {
        for (policy, order) in [
            ("", RequestOrder::Arrival),
            ("policy = \"edf\"", RequestOrder::EarliestDeadline),
            ("policy = \"muf\"", RequestOrder::UrgencyFirst),
        ] {
            let set = format!(
                "[[node]]\nname = \"n\"\nprocessors = 1\n\n\
                 [[lane]]\nname = \"l\"\nnode = \"n\"\nprocessor = 0\npriority = 9\nthreads = 1\n{policy}\n"
            );
            let set = ironorb_sched::TaskSet::from_toml(&set).unwrap();
            let text = ironorb_sched::table(&ironorb_sched::analyze(&set)).to_toml().unwrap();
            let table = Table::from_toml(&text).unwrap();
            let config = lane_config(table.lane("l").unwrap()).unwrap();
            let pool = ThreadPoolConfig::new(1).order(order).buffering(buffering(table.lane("l").unwrap()));
            let expected = LaneConfig::new("l")
                .concurrency(ServerConcurrency::ThreadPool(pool))
                .priority(Priority::new(9).unwrap())
                .processors([0]);
            assert_eq!(format!("{config:?}"), format!("{expected:?}"), "{text}");
        }
    }
}
