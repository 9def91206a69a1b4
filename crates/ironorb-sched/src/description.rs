//! What is analysed, as plain data with names: nodes, links, lanes, resources, interrupts, operations and tasks.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;

/// All that an analysis reads. [`TaskSet::new`](crate::TaskSet::new) checks it.
///
/// Names are unique within their kind. Things refer to each other by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// How priorities are given out.
    pub assignment: Assignment,
    /// The CORBA priorities that may be given out; by default all, 0 to 32767.
    pub priorities: PriorityRange,
    /// The computers.
    pub nodes: Vec<Node>,
    /// What carries messages.
    pub links: Vec<Link>,
    /// The thread pools' lanes.
    pub lanes: Vec<Lane>,
    /// What threads lock.
    pub resources: Vec<Resource>,
    /// The loads above all priorities.
    pub interrupts: Vec<Interrupt>,
    /// What servants do when called.
    pub operations: Vec<Operation>,
    /// What is released again and again, and has deadlines.
    pub tasks: Vec<Task>,
}

/// How tasks get priorities. A task's own `priority` and its lane's come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// The shorter the period, the higher the priority.
    RateMonotonic,
    /// The shorter the deadline, the higher the priority.
    #[default]
    DeadlineMonotonic,
    /// Every task, or its lane, states a priority.
    Explicit,
    /// Audsley's search, which finds priorities that fit if any do. For tasks without calls. Others get
    /// deadline-monotonic priorities.
    Audsley,
}

/// A range of CORBA priorities, both ends included, within 0 to 32767.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityRange {
    /// The lowest.
    pub lowest: u16,
    /// The highest.
    pub highest: u16,
}

impl PriorityRange {
    /// The highest CORBA priority.
    pub const CORBA_MAX: u16 = 32767;
}

impl Default for PriorityRange {
    fn default() -> Self {
        PriorityRange { lowest: 0, highest: Self::CORBA_MAX }
    }
}

/// A computer with equal processors, numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The number of processors, 1 to 1024.
    pub processors: u32,
    /// The cost of a switch from one thread to another.
    pub context_switch: Nanos,
    /// The longest time for which the kernel, on a thread's behalf, cannot be preempted.
    pub non_preemptible: Nanos,
}

impl Node {
    /// A node with one processor, and no costs.
    pub fn new(name: impl Into<String>) -> Self {
        Node { name: name.into(), processors: 1, context_switch: Nanos::ZERO, non_preemptible: Nanos::ZERO }
    }
}

/// What carries messages one after another: a network, or one direction of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name.
    pub name: String,
    /// Bits a second, at least 1.
    pub bandwidth: u64,
    /// The longest time from the last bit sent to the message's arrival at the receiving program.
    pub delay: Nanos,
    /// The most bytes of a message that are sent without a pause for more urgent ones; `None` for whole messages.
    pub frame: Option<u64>,
    /// The bytes on the wire that each frame has in addition.
    pub frame_overhead: u64,
    /// The order of waiting messages.
    pub order: LinkOrder,
}

impl Link {
    /// A first-in, first-out link of so many bits a second, without delay.
    pub fn new(name: impl Into<String>, bandwidth: u64) -> Self {
        Link {
            name: name.into(),
            bandwidth,
            delay: Nanos::ZERO,
            frame: None,
            frame_overhead: 0,
            order: LinkOrder::Fifo,
        }
    }
}

/// The order of messages that wait for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkOrder {
    /// First in, first out.
    #[default]
    Fifo,
    /// By class: so many queues (1 to 7), each marked with a DSCP. Within a class, first in, first out.
    Priority {
        /// The number of classes.
        classes: u8,
    },
}

/// A lane of a thread pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The name.
    pub name: String,
    /// The name of its node.
    pub node: String,
    /// The processors that its threads may run on. Empty for all of the node.
    pub processors: Vec<u32>,
    /// The CORBA priority at which it serves; `None` for that of each caller.
    pub priority: Option<u16>,
    /// How it picks the next request.
    pub policy: LanePolicy,
    /// The number of threads, at least 1; `None` for as many as requests need.
    pub threads: Option<u32>,
}

impl Lane {
    /// A fixed-priority lane of a node, unpinned, that serves at the caller's priority with enough threads.
    pub fn new(name: impl Into<String>, node: impl Into<String>) -> Self {
        Lane {
            name: name.into(),
            node: node.into(),
            processors: Vec::new(),
            priority: None,
            policy: LanePolicy::FixedPriority,
            threads: None,
        }
    }

    /// Pins the lane to one processor.
    pub fn on(mut self, processor: u32) -> Self {
        self.processors = vec![processor];
        self
    }
}

/// How a lane picks the next request. A queue's upcall runs to its end before the queue's next one starts; threads
/// of higher priority still preempt it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LanePolicy {
    /// At once, at its priority.
    #[default]
    FixedPriority,
    /// Earliest deadline first.
    Edf,
    /// Maximum urgency first: by criticality, then by laxity.
    Muf,
}

/// What threads of one processor lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The name.
    pub name: String,
    /// What bounds priority inversion.
    pub protocol: Protocol,
}

/// What bounds priority inversion at a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A holder inherits the priority of the most urgent thread that waits.
    #[default]
    Inheritance,
    /// A holder runs at the highest priority of all that ever lock the resource.
    Ceiling,
}

/// A load above all priorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// The name.
    pub name: String,
    /// The name of its node.
    pub node: String,
    /// The processor that it interrupts.
    pub processor: u32,
    /// The least time between two, at least 1 ns.
    pub period: Nanos,
    /// The longest run, at least 1 ns.
    pub wcet: Nanos,
}

/// What a servant does when called: it runs, then calls others in turn, and replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The name.
    pub name: String,
    /// The name of the lane that serves it.
    pub lane: String,
    /// The longest run before the first call, with all that the ORB does for it, at least 1 ns.
    pub wcet: Nanos,
    /// The critical sections of that run.
    pub sections: Vec<Section>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// What is released again and again: it runs, then calls operations in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The name.
    pub name: String,
    /// The least time between two releases, at least 1 ns.
    pub period: Nanos,
    /// The time from a release to the end of all that it causes; `None` for the period.
    pub deadline: Option<Nanos>,
    /// The longest time from a release until the task is ready to run.
    pub jitter: Nanos,
    /// The longest run before the first call, at least 1 ns.
    pub wcet: Nanos,
    /// The critical sections of that run.
    pub sections: Vec<Section>,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// Where it runs.
    pub home: Home,
    /// The CORBA priority; `None` for its lane's, or else an assigned one.
    pub priority: Option<u16>,
    /// What is lost if it is late.
    pub criticality: Level,
    /// What is lost if it is late, among tasks of one criticality. Breaks ties of priorities.
    pub importance: Level,
}

impl Task {
    /// A task in a lane that only runs, with the period as deadline.
    pub fn new(name: impl Into<String>, home: Home, period: Nanos, wcet: Nanos) -> Self {
        Task {
            name: name.into(),
            period,
            deadline: None,
            jitter: Nanos::ZERO,
            wcet,
            sections: Vec::new(),
            calls: Vec::new(),
            home,
            priority: None,
            criticality: Level::default(),
            importance: Level::default(),
        }
    }

    /// The deadline: the stated one, or the period.
    pub fn deadline(&self) -> Nanos {
        self.deadline.unwrap_or(self.period)
    }
}

/// Where a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// In a lane.
    Lane(String),
    /// On a thread of its own, pinned to a processor.
    Processor {
        /// The name of the node.
        node: String,
        /// The processor's number.
        processor: u32,
    },
}

/// A call of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the operation.
    pub operation: String,
    /// The name of the link that carries the request; `None` within a process.
    pub link: Option<String>,
    /// The name of the link that carries the reply; `None` for that of the request.
    pub reply_link: Option<String>,
    /// The most bytes of the request.
    pub request_bytes: u64,
    /// The most bytes of the reply.
    pub reply_bytes: u64,
    /// Whether the caller goes on without a reply.
    pub is_oneway: bool,
    /// The longest run of the caller after the call, before its next call; zero for none.
    pub then: Nanos,
    /// The critical sections of that run.
    pub then_sections: Vec<Section>,
}

impl Call {
    /// A twoway call within a process, after which the caller does nothing.
    pub fn new(operation: impl Into<String>) -> Self {
        Call {
            operation: operation.into(),
            link: None,
            reply_link: None,
            request_bytes: 0,
            reply_bytes: 0,
            is_oneway: false,
            then: Nanos::ZERO,
            then_sections: Vec::new(),
        }
    }
}

/// A part of a run that holds a resource. Sections do not nest; each counts within the run's longest time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The name of the resource.
    pub resource: String,
    /// The longest time for which it is held, at least 1 ns.
    pub wcet: Nanos,
}

/// One of five levels of criticality or importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The lowest.
    VeryLow,
    /// Low.
    Low,
    /// Medium, the default.
    #[default]
    Medium,
    /// High.
    High,
    /// The highest.
    VeryHigh,
}
