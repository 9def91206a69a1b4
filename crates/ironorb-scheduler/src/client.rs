//! The client's side (`RTCosScheduling::ClientScheduler`).

use std::io;
use std::marker::PhantomData;

use ironorb::rt::{
    ClientPolicies, CodePoint, NetworkPriority, PriorityStay, RtCurrent, set_thread_policies, thread_policies,
};
use ironorb::{InLane, Orb, TypedRef};
use ironorb_sched::{ConnectionEntry, TaskEntry};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::node::corba_priority;
use crate::{NameKind, NodeSchedule, ScheduleError, UnknownName};

/// Gives threads what the table has for the tasks that they carry out (`RTCosScheduling::ClientScheduler`), from
/// [`NodeSchedule::client_scheduler`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClientScheduler {
    pub(crate) schedule: NodeSchedule,
    pub(crate) orb: Orb,
    pub(crate) current: RtCurrent,
}

impl ClientScheduler {
    /// Makes the calling thread the one of a task, until the result is dropped (`schedule_activity`): it has the task's
    /// priority, runs on its processor, is in its lane if it has one, and its calls have the private connections and
    /// marks on which all connections of the task agree. [`ScheduledActivity::connect`] gives a reference those of one lane.
    ///
    /// [`ScheduleError::UnknownName`] without such a task, [`OtherNode`](ScheduleError::OtherNode),
    /// [`Priority`](ScheduleError::Priority) and [`Processor`](ScheduleError::Processor) where the ORB or the system
    /// refuses. The thread is as before then. Does not block.
    pub fn schedule_activity(&self, name: &str) -> Result<ScheduledActivity, ScheduleError> {
        let task = self.task(name)?;
        let priority = corba_priority(NameKind::Task, name, task.priority)?;
        let lane = task
            .lane
            .as_ref()
            .map(|lane| self.orb.lane(lane).ok_or_else(|| ScheduleError::MissingLane { lane: lane.clone() }));
        let lane = lane.transpose()?;
        let processor = task.processor.map(|processor| OnProcessor::enter(name, processor)).transpose()?;
        let priority = self.current.stay_at(priority).map_err(|why| ScheduleError::Priority {
            kind: NameKind::Task,
            name: name.to_owned(),
            priority: task.priority,
            why,
        })?;
        let connections: Vec<ConnectionEntry> =
            self.schedule.table.connections.iter().filter(|it| it.task == name).cloned().collect();
        Ok(ScheduledActivity {
            _policies: WithPolicies::enter(common_policies(&connections)),
            _lane: lane.map(|lane| lane.enter()),
            _priority: priority,
            _processor: processor,
            task: task.clone(),
            connections,
            of_this_thread: PhantomData,
        })
    }

    fn task(&self, name: &str) -> Result<&TaskEntry, ScheduleError> {
        let tasks = || self.schedule.table.tasks.iter();
        let task =
            self.schedule.table.task(name).ok_or_else(|| {
                UnknownName::new(NameKind::Task, name, tasks().map(|task| task.name.as_str()))
            })?;
        self.schedule.check_node(NameKind::Task, name, &task.node)?;
        Ok(task)
    }
}

/// The calling thread as a task of the table. Dropping it gives the thread back what it was. Activities end in the opposite
/// order of their beginnings.
#[derive(Debug)]
#[must_use = "the activity ends when this is dropped"]
pub struct ScheduledActivity {
    // Dropped in this order, which is the opposite of that in which they begin.
    _policies: WithPolicies,
    _lane: Option<InLane>,
    _priority: PriorityStay,
    _processor: Option<OnProcessor>,
    task: TaskEntry,
    connections: Vec<ConnectionEntry>,
    of_this_thread: PhantomData<*const ()>,
}

impl ScheduledActivity {
    /// What the table has for the task.
    pub fn task(&self) -> &TaskEntry {
        &self.task
    }

    /// A reference to the same object with the connections that the table has from the task to a lane: private where it says
    /// so, and with its mark. Calls by clones of it share them, so that no other task must have one.
    ///
    /// [`ScheduleError::NoConnection`] if the task calls nothing in the lane over a link.
    pub fn connect<R: TypedRef>(&self, object: &R, lane: &str) -> Result<R, ScheduleError> {
        let found = self.connections.iter().find(|it| it.lane == lane);
        let entry = found.ok_or_else(|| ScheduleError::NoConnection {
            task: self.task.name.clone(),
            lane: lane.to_owned(),
            called: self.connections.iter().map(|it| it.lane.clone()).collect(),
        })?;
        Ok(object.with_client_policies(policies_of(entry)))
    }
}

fn policies_of(entry: &ConnectionEntry) -> ClientPolicies {
    let mark = CodePoint::new(entry.dscp).filter(|mark| *mark != CodePoint::DEFAULT);
    ClientPolicies {
        private_connection: entry.private.then_some(true),
        network_priority: mark.map(NetworkPriority::Fixed),
        ..ClientPolicies::NONE
    }
}

/// What all connections have in common.
fn common_policies(connections: &[ConnectionEntry]) -> ClientPolicies {
    let mut all = connections.iter().map(policies_of);
    let Some(first) = all.next() else { return ClientPolicies::NONE };
    all.fold(first, |common, own| ClientPolicies {
        private_connection: common.private_connection.filter(|it| own.private_connection == Some(*it)),
        network_priority: common.network_priority.filter(|it| own.network_priority == Some(*it)),
        ..ClientPolicies::NONE
    })
}

/// The calling thread with policies of its own.
#[derive(Debug)]
struct WithPolicies(ClientPolicies);

impl WithPolicies {
    fn enter(policies: ClientPolicies) -> WithPolicies {
        let before = thread_policies();
        set_thread_policies(policies.or(before));
        WithPolicies(before)
    }
}

impl Drop for WithPolicies {
    fn drop(&mut self) {
        set_thread_policies(self.0);
    }
}

/// The calling thread on one processor.
struct OnProcessor(CpuSet);

impl std::fmt::Debug for OnProcessor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnProcessor")
    }
}

impl OnProcessor {
    fn enter(task: &str, processor: u32) -> Result<OnProcessor, ScheduleError> {
        let refused = |why| ScheduleError::Processor { task: task.to_owned(), processor, why };
        let before = sched_getaffinity(None).map_err(|e| refused(e.into()))?;
        let mut only = CpuSet::new();
        match processor as usize {
            number if number < CpuSet::MAX_CPU => only.set(number),
            _ => return Err(refused(io::ErrorKind::InvalidInput.into())),
        }
        sched_setaffinity(None, &only).map_err(|e| refused(e.into()))?;
        Ok(OnProcessor(before))
    }
}

impl Drop for OnProcessor {
    fn drop(&mut self) {
        // The processors may have been taken from the process meanwhile: then the thread stays where it is.
        let _as_before = sched_setaffinity(None, &self.0);
    }
}
