//! The table that the off-line run writes and the run time looks up.

use serde::{Deserialize, Serialize};

use crate::description::LanePolicy;
use crate::report::{Report, Verdict};
use crate::time::Nanos;

/// What a run time sets up, as fixed by an analysis. The order of everything is by name, so that equal reports give
/// equal texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The version of the format: 1.
    pub version: u32,
    /// The verdict: `fits`, `unknown` or `does-not-fit`.
    pub verdict: String,
    /// The lanes.
    #[serde(default, rename = "lane")]
    pub lanes: Vec<LaneEntry>,
    /// The tasks.
    #[serde(default, rename = "task")]
    pub tasks: Vec<TaskEntry>,
    /// The operations.
    #[serde(default, rename = "operation", skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationEntry>,
    /// The connections of tasks to lanes.
    #[serde(default, rename = "connection")]
    pub connections: Vec<ConnectionEntry>,
}

/// How a lane is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneEntry {
    /// The name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The processors that its threads are bound to; empty for all.
    pub affinity: Vec<u32>,
    /// The CORBA priority, 0 to 32767; absent for the callers'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// The order in which it serves what waits; absent for that of arrival.
    #[serde(default, skip_serializing_if = "is_of_arrival")]
    pub order: LanePolicy,
    /// The number of threads. Absent where no number suffices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The most requests in the lane at once. Absent where that has no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_max: Option<u32>,
    /// The most bytes of those requests together. Absent where that has no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes_max: Option<u32>,
}

fn is_of_arrival(order: &LanePolicy) -> bool {
    *order == LanePolicy::FixedPriority
}

/// How a task is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// The name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The processor that its thread is bound to; absent for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<u32>,
    /// The lane, if it runs in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The CORBA priority, 0 to 32767.
    pub priority: u16,
    /// The deadline.
    pub deadline: Nanos,
    /// The bound of the response; absent if nothing can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Nanos>,
}

/// Where an operation is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationEntry {
    /// The name.
    pub name: String,
    /// The lane that serves it.
    pub lane: String,
}

/// How a task's calls reach a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionEntry {
    /// The task that calls.
    pub task: String,
    /// The lane that is called.
    pub lane: String,
    /// The link between them.
    pub link: String,
    /// Whether the connection is this task's alone.
    pub private: bool,
    /// The mark of its packets, 0 to 63.
    pub dscp: u8,
}

/// The table of a report.
pub fn table(report: &Report) -> Table {
    let mut lanes: Vec<LaneEntry> = report
        .lanes
        .iter()
        .map(|lane| LaneEntry {
            name: lane.name.clone(),
            node: lane.node.clone(),
            affinity: lane.processors.clone(),
            priority: lane.priority,
            order: lane.order,
            threads: u32::try_from(lane.threads).ok(),
            requests_max: u32::try_from(lane.requests_max).ok(),
            request_bytes_max: u32::try_from(lane.request_bytes_max).ok(),
        })
        .collect();
    lanes.sort_by(|a, b| a.name.cmp(&b.name));
    let mut tasks: Vec<TaskEntry> = report
        .tasks
        .iter()
        .map(|task| TaskEntry {
            name: task.name.clone(),
            node: task.node.clone(),
            processor: task.processor,
            lane: task.lane.clone(),
            priority: task.priority,
            deadline: task.deadline,
            response: task.response,
        })
        .collect();
    tasks.sort_by(|a, b| a.name.cmp(&b.name));
    let mut operations: Vec<OperationEntry> = report
        .operations
        .iter()
        .map(|operation| OperationEntry { name: operation.name.clone(), lane: operation.lane.clone() })
        .collect();
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let connections = report
        .connections
        .iter()
        .map(|use_| ConnectionEntry {
            task: use_.task.clone(),
            lane: use_.lane.clone(),
            link: use_.link.clone(),
            private: use_.is_private,
            dscp: use_.dscp,
        })
        .collect();
    let verdict = match report.verdict {
        Verdict::Fits => "fits",
        Verdict::Unknown => "unknown",
        Verdict::DoesNotFit => "does-not-fit",
    };
    Table { version: VERSION, verdict: verdict.to_owned(), lanes, tasks, operations, connections }
}

impl Table {
    /// The table as TOML.
    pub fn to_toml(&self) -> Result<String, TableError> {
        toml::to_string(self).map_err(|error| TableError::Write(error.to_string()))
    }

    /// Reads a table that [`Table::to_toml`] wrote.
    pub fn from_toml(text: &str) -> Result<Table, TableError> {
        let table: Table = toml::from_str(text).map_err(|error| TableError::Read(error.to_string()))?;
        if table.version != VERSION {
            return Err(TableError::Version(table.version));
        }
        Ok(table)
    }

    /// What is fixed for a task.
    pub fn task(&self, name: &str) -> Option<&TaskEntry> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// What is fixed for a lane.
    pub fn lane(&self, name: &str) -> Option<&LaneEntry> {
        self.lanes.iter().find(|lane| lane.name == name)
    }
}

/// Why a table is not written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table has no form in TOML.
    #[error("the table cannot be written: {0}")]
    Write(String),
    /// The text is no table. The message has the line.
    #[error("this is no table of a schedule; write it again with `ironorb sched table`: {0}")]
    Read(String),
    /// The table has another version.
    #[error("the table has version {0}, and 1 is read; write it again with `ironorb sched table`")]
    Version(u32),
}

const VERSION: u32 = 1;
