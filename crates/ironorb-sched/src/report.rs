//! What an analysis finds, as data.

use serde::Serialize;

use crate::description::{LanePolicy, Level};
use crate::suggest::Suggestion;
use crate::time::Nanos;
use crate::timeline::Timeline;

/// The result of an analysis. It prints as text; serde makes it JSON; [`Report::to_svg`] and [`Report::to_html`] draw
/// it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The verdict on the set: the worst of all tasks.
    pub verdict: Verdict,
    /// The tasks, in the order of the description.
    pub tasks: Vec<TaskReport>,
    /// The processors and links.
    pub units: Vec<UnitReport>,
    /// The lanes.
    pub lanes: Vec<LaneReport>,
    /// The operations, in the order of the description, for the table.
    pub operations: Vec<OperationReport>,
    /// The calls that leave a process, for the table.
    pub connections: Vec<ConnectionReport>,
    /// What is odd, the worst first.
    pub anomalies: Vec<Anomaly>,
    /// What to change when the set does not fit. Each is verified.
    pub suggestions: Vec<Suggestion>,
    /// The passes of the holistic analysis.
    pub passes: u32,
    /// The start of a run in which all tasks are released at once.
    pub timeline: Timeline,
}

/// Whether deadlines are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every deadline is met.
    Fits,
    /// The analysis cannot say.
    Unknown,
    /// A deadline may be missed. With [`Proof::Exact`], it is missed in the worst case.
    DoesNotFit,
}

/// How sharp a bound is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The bound is reached in the worst case.
    Exact,
    /// The bound is never exceeded, and may never be reached.
    Sufficient,
}

/// The result for a task.
#[derive(Debug, Clone, Serialize)]
pub struct TaskReport {
    /// The name.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// How sharp the bound is.
    pub proof: Proof,
    /// Why the verdict is unknown.
    pub reason: Option<String>,
    /// The bound of the response; `None` if nothing can be said. [`Nanos::MAX`] is "unbounded".
    pub response: Option<Nanos>,
    /// The deadline.
    pub deadline: Nanos,
    /// The period.
    pub period: Nanos,
    /// The CORBA priority, given or assigned.
    pub priority: u16,
    /// The criticality.
    pub criticality: Level,
    /// The lane that the task runs in.
    pub lane: Option<String>,
    /// The node that the task runs on.
    pub node: String,
    /// The processor, unless the lane is not pinned to one.
    pub processor: Option<u32>,
    /// The steps of its chain, in order.
    pub steps: Vec<StepReport>,
}

/// The result for a step of a chain: a run on a processor, or a message on a link.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    /// What it is: the task, the operation, or the message.
    pub name: String,
    /// Where: `node/processor`, or the link.
    pub unit: String,
    /// Its longest run or transfer, with the switches between threads.
    pub cost: Nanos,
    /// How long less urgent work keeps it waiting.
    pub blocking: Nanos,
    /// The latest end, from the task's release.
    pub end: Nanos,
}

/// The load of a processor or link.
#[derive(Debug, Clone, Serialize)]
pub struct UnitReport {
    /// `node/processor`, or the link.
    pub name: String,
    /// The share of time in use, in millionths, rounded up. 1,000,000 is all.
    pub utilisation_ppm: u64,
    /// The number of steps that it serves.
    pub steps: usize,
}

/// What a lane needs.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// The name.
    pub name: String,
    /// The node.
    pub node: String,
    /// The processors that it may run on.
    pub processors: Vec<u32>,
    /// The priority at which it serves; `None` for the callers'.
    pub priority: Option<u16>,
    /// The order in which it serves what waits.
    pub order: LanePolicy,
    /// The threads: as described, or else as many as are needed.
    pub threads: u64,
    /// The requests that may be in the lane at once.
    pub requests_max: u64,
    /// The bytes that those requests have together.
    pub request_bytes_max: u64,
}

/// Where an operation is served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OperationReport {
    /// The name.
    pub name: String,
    /// The lane that serves it.
    pub lane: String,
}

/// A use of a connection: a task whose calls go from a node to a lane over a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ConnectionReport {
    /// The task.
    pub task: String,
    /// The lane that is called.
    pub lane: String,
    /// The link.
    pub link: String,
    /// Whether the task needs a connection of its own, as tasks of other priorities call the lane too.
    pub is_private: bool,
    /// The mark of its packets: 0 to 63.
    pub dscp: u8,
}

/// Something odd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anomaly {
    /// How bad it is.
    pub severity: Severity,
    /// What is odd, in a sentence.
    pub text: String,
}

/// How bad an anomaly is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The set cannot run so: a processor or link has more to do than it can.
    Fatal,
    /// A deadline may be missed.
    Error,
    /// Something is unknown, or close to a limit.
    Warning,
    /// Good to know.
    None,
}
