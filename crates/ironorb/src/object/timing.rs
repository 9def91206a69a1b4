//! The timing of operations, as `@rt` in IDL gives it: what generated code says of an operation, and what the calls of the
//! operation make of it.

use std::cell::Cell;
use std::time::Duration;

use super::deadline::{Timeout, note_thread_limits};

/// The timing of an operation: the annotation `@rt` in IDL. What the IDL does not give is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Timing {
    /// The least time between two calls.
    pub period: Option<Duration>,
    /// The longest time that the servant may run (worst-case execution time).
    pub wcet: Option<Duration>,
    /// The longest time from the call to its reply.
    pub deadline: Option<Duration>,
    /// How bad it is to miss the deadline.
    pub criticality: Option<Level>,
    /// What is more worth of two operations that are equally urgent.
    pub importance: Option<Level>,
    /// The share of calls that must meet the deadline, between 0 and 1. `None`: every call.
    pub probability: Option<f64>,
}

/// A criticality or an importance, from the least to the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Level {
    VeryLow,
    Low,
    Medium,
    High,
    VeryHigh,
}

/// What the calls of an operation promise about their deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guarantee {
    /// Every call meets the deadline.
    Deterministic,
    /// A share of the calls meets the deadline: [`Timing::probability`].
    Statistical,
    /// None: there is no deadline.
    BestEffort,
}

impl Timing {
    /// The timing that generated code tells: times in nanoseconds, levels from 1 to 5. 0 stands for what the IDL does not
    /// give.
    #[doc(hidden)]
    pub const fn of_idl(
        [period, wcet, deadline]: [u64; 3],
        [criticality, importance]: [u8; 2],
        probability: f64,
    ) -> Timing {
        Timing {
            period: time(period),
            wcet: time(wcet),
            deadline: time(deadline),
            criticality: level(criticality),
            importance: level(importance),
            probability: if probability > 0.0 { Some(probability) } else { None },
        }
    }

    /// What the calls promise about their deadlines.
    pub const fn guarantee(&self) -> Guarantee {
        match (self.deadline, self.probability) {
            (None, _) => Guarantee::BestEffort,
            (Some(_), None) => Guarantee::Deterministic,
            (Some(_), Some(_)) => Guarantee::Statistical,
        }
    }
}

const fn time(nanos: u64) -> Option<Duration> {
    if nanos == 0 { None } else { Some(Duration::from_nanos(nanos)) }
}

const fn level(number: u8) -> Option<Level> {
    match number {
        1 => Some(Level::VeryLow),
        2 => Some(Level::Low),
        3 => Some(Level::Medium),
        4 => Some(Level::High),
        5 => Some(Level::VeryHigh),
        _ => None,
    }
}

/// An upcall, or a window of upcalls, that did not keep to the timing of its operation.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TimingFault<'f> {
    /// What went wrong.
    pub kind: TimingFaultKind,
    /// The name of the operation on the wire, `_get_…` and `_set_…` for attributes.
    pub operation: &'f str,
    /// The operation's timing.
    pub timing: &'f Timing,
    /// How long the upcall has run by now.
    pub ran: Duration,
}

/// What an upcall did against the timing of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimingFaultKind {
    /// It ran longer than the `wcet`.
    Overrun,
    /// It ended after the deadline of a deterministic operation.
    DeadlineMissed,
    /// More calls of a statistical operation than its `probability` allows have missed their deadlines. Told once in each
    /// window of calls.
    PromiseBroken,
}

thread_local! {
    /// The timing of the operation that this thread calls now, if it has one.
    static CALLED: Cell<Option<&'static Timing>> = const { Cell::new(None) };
}

/// The calling thread's call of an operation with a timing, until this is dropped.
#[must_use]
pub(crate) struct TimedCall {
    before: Option<&'static Timing>,
}

impl TimedCall {
    /// Begins a call. `None`: what the thread does now belongs to no such call, as in an upcall within the process.
    pub(crate) fn enter(timing: Option<&'static Timing>) -> TimedCall {
        if timing.is_some() {
            note_thread_limits();
        }
        TimedCall { before: CALLED.replace(timing) }
    }
}

impl Drop for TimedCall {
    fn drop(&mut self) {
        CALLED.set(self.before);
    }
}

/// Whether the operation that this thread calls has a timing.
pub(crate) fn is_timed_call() -> bool {
    CALLED.get().is_some()
}

thread_local! {
    /// Whether the operation of the request that this thread carries out has a timing, as far as is known yet.
    static SERVED_IS_TIMED: Cell<bool> = const { Cell::new(false) };
}

/// Notes that the operation of the request that this thread carries out has a timing.
pub(crate) fn note_timed_upcall() {
    SERVED_IS_TIMED.set(true);
}

/// Begins a request, of whose operation nothing is known yet. Returns what was known of the one around it.
pub(crate) fn begin_untimed_upcall() -> bool {
    SERVED_IS_TIMED.replace(false)
}

/// Ends a request: whether its operation has a timing. `before` is what [`begin_untimed_upcall`] has returned.
pub(crate) fn end_upcall(before: bool) -> bool {
    SERVED_IS_TIMED.replace(before)
}

/// How long the call that this thread makes may take, as its operation's deadline says; without limit for an operation that
/// has none.
pub(crate) fn timeout_of_operation() -> Timeout {
    CALLED.get().and_then(|timing| timing.deadline).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_stands_for_what_is_not_given() {
        assert_eq!(Timing::of_idl([0; 3], [0; 2], 0.0), Timing::default());
        let timing = Timing::of_idl([1, 2, 3], [1, 5], 0.5);
        assert_eq!(timing.deadline, Some(Duration::from_nanos(3)));
        assert_eq!((timing.criticality, timing.importance), (Some(Level::VeryLow), Some(Level::VeryHigh)));
        assert_eq!(timing.guarantee(), Guarantee::Statistical);
        assert_eq!(Timing { probability: None, ..timing }.guarantee(), Guarantee::Deterministic);
        assert_eq!(Timing { deadline: None, ..timing }.guarantee(), Guarantee::BestEffort);
    }

    #[test]
    fn a_call_has_the_deadline_of_its_operation_and_calls_of_its_servant_have_not() {
        static TIMING: Timing = Timing::of_idl([0, 0, 7], [0; 2], 0.0);
        let _call = TimedCall::enter(Some(&TIMING));
        assert_eq!(timeout_of_operation(), Timeout::from_nanos(7));
        let upcall = TimedCall::enter(None);
        assert_eq!(timeout_of_operation(), Timeout::NONE);
        drop(upcall);
        assert_eq!(timeout_of_operation(), Timeout::from_nanos(7));
    }
}
