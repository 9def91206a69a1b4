//! What is known of a request before its upcall that says how urgent it is.

use std::time::Duration;

use super::deadline::Deadline;
use super::priority::Priority;
use super::scheduling_context::SchedulingParameter;
use super::timing::{Level, Timing};

/// How urgent a request is, as far as it and its operation tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SchedulingFacts {
    /// The priority that the request asks for, or that its object has.
    pub(crate) priority: Option<Priority>,
    pub(crate) deadline: Deadline,
    /// The longest time that the servant runs.
    pub(crate) wcet: Option<Duration>,
    pub(crate) criticality: Option<Level>,
    pub(crate) importance: Option<Level>,
}

impl SchedulingFacts {
    /// Nothing is known.
    pub(crate) const NOTHING: SchedulingFacts = SchedulingFacts {
        priority: None,
        deadline: Deadline::NEVER,
        wcet: None,
        criticality: None,
        importance: None,
    };

    /// The facts of a request for an operation with this timing, which the request's own deadline and priority complete.
    pub(crate) fn of_operation(timing: Option<&Timing>) -> SchedulingFacts {
        let Some(timing) = timing else { return SchedulingFacts::NOTHING };
        let &Timing { wcet, criticality, importance, .. } = timing;
        SchedulingFacts { wcet, criticality, importance, ..SchedulingFacts::NOTHING }
    }

    /// Puts what the distributable thread of the request says before what its operation does. The longest run stays that of the
    /// operation: the thread's is that of its whole segment.
    pub(crate) fn in_thread(self, thread: &SchedulingParameter) -> SchedulingFacts {
        SchedulingFacts {
            criticality: thread.criticality.or(self.criticality),
            importance: thread.importance.or(self.importance),
            ..self
        }
    }
}
