//! What does not fit between a table and the system that runs it.

use std::fmt;
use std::io;

use ironorb::SystemException;
use ironorb::poa::PoaError;

/// Why something cannot run as the table says. Each message names the place in the table, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The table has nothing of this name (the standard's `UnknownName`).
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The name belongs to another node than this process runs.
    #[error(
        "{kind} {name:?} belongs to node {node:?} of the table, and this process runs {own:?}: use it there"
    )]
    OtherNode {
        /// What the name is of.
        kind: NameKind,
        /// The name.
        name: String,
        /// Its node.
        node: String,
        /// The node of this process.
        own: String,
    },
    /// A priority of the table is none of CORBA.
    #[error(
        "{kind} {name:?} has priority {priority} in the table: priorities are 0 to 32767; write the table again with \
             `ironorb sched table`"
    )]
    NoPriority {
        /// What the name is of.
        kind: NameKind,
        /// The name.
        name: String,
        /// The number.
        priority: u16,
    },
    /// The table has no number of threads for a lane.
    #[error(
        "lane {lane:?} has no `threads` in the table, as the analysis found no number that suffices: set `threads` of \
             the lane in the task set, and write the table again"
    )]
    NoThreads {
        /// The lane.
        lane: String,
    },
    /// The operations of an interface are served by several lanes.
    #[error(
        "the operations of {name:?} are in the lanes {lanes:?} of the table, and an object is in one: put them into one \
             lane in the task set, or give the object the name of an operation or lane"
    )]
    SeveralLanes {
        /// The interface.
        name: String,
        /// The lanes.
        lanes: Vec<String>,
    },
    /// The ORB lacks a lane of its node.
    #[error(
        "the ORB has no lane {lane:?}, which the table has for this node: build it with `NodeSchedule::configure`"
    )]
    MissingLane {
        /// The lane.
        lane: String,
    },
    /// The ORB is no real-time ORB.
    #[error("the ORB treats no priorities: build it with `OrbBuilder::real_time`")]
    NoRealTime,
    /// The task has no connection to the lane in the table.
    #[error(
        "task {task:?} calls nothing in lane {lane:?} over a link, as the table says: it calls {called:?}"
    )]
    NoConnection {
        /// The task.
        task: String,
        /// The lane.
        lane: String,
        /// The lanes that it calls.
        called: Vec<String>,
    },
    /// The system refuses a processor.
    #[error(
        "task {task:?} runs on processor {processor} in the table, which the system refuses to this thread: {why}; let \
             the process use it, as with taskset(1), or change the task set"
    )]
    Processor {
        /// The task.
        task: String,
        /// The processor, counted from 0.
        processor: u32,
        /// What the system says.
        why: io::Error,
    },
    /// The ORB refuses a priority: the mapping has none for it, or the system does not grant it.
    #[error("{kind} {name:?} has priority {priority} in the table: {why}")]
    Priority {
        /// What the name is of.
        kind: NameKind,
        /// The name.
        name: String,
        /// The priority.
        priority: u16,
        /// Why.
        why: SystemException,
    },
    /// The adapter refuses.
    #[error("{0}")]
    Poa(#[from] PoaError),
    /// The ORB refuses.
    #[error("{0}")]
    System(#[from] SystemException),
}

/// What a name of a table is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A node.
    Node,
    /// A lane.
    Lane,
    /// A task.
    Task,
    /// An operation, an interface with operations, or a lane.
    Object,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameKind::Node => "node",
            NameKind::Lane => "lane",
            NameKind::Task => "task",
            NameKind::Object => "operation, interface or lane",
        })
    }
}

/// A name that the table does not have (`RTCosScheduling::UnknownName`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// What was looked for.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// The names that it may stand for, the nearest first: at most three, or all where none is near.
    pub near: Vec<String>,
}

impl UnknownName {
    pub(crate) fn new<'n>(kind: NameKind, name: &str, known: impl Iterator<Item = &'n str>) -> UnknownName {
        let mut all: Vec<(usize, &str)> =
            known.map(|known| (strsim::damerau_levenshtein(name, known), known)).collect();
        all.sort_unstable();
        all.dedup();
        let is_near =
            |(distance, known): &&(usize, &str)| *distance <= (name.len().min(known.len()) / 2).max(1);
        let mut near: Vec<&(usize, &str)> = all.iter().filter(is_near).take(NEAR_MAX).collect();
        if near.is_empty() {
            near = all.iter().collect();
        }
        let near = near.into_iter().map(|(_, known)| (*known).to_owned()).collect();
        UnknownName { kind, name: name.to_owned(), near }
    }
}

const NEAR_MAX: usize = 3;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { kind, name, near } = self;
        write!(f, "the table has no {kind} {name:?}")?;
        match near.as_slice() {
            [] => write!(f, ", nor any other: describe it in the task set, and write the table again"),
            near => {
                write!(f, ": take one of {near:?}, or describe it in the task set and write the table again")
            }
        }
    }
}

impl std::error::Error for UnknownName {}
