//! The scheduling classes of threads.

use std::time::Duration;

use ironorb::rt::{DeadlineSchedule, InDeadlineSchedule, SchedulingPolicy};
use ironorb_threads::{Class as SystemClass, Thread};

use crate::error::BenchError;

/// The class in which the system schedules clients and servants (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Class {
    /// A thread runs until it waits or a more urgent one is ready.
    Fifo,
    /// As `fifo`; threads of equal priority take turns.
    Rr,
    /// The system reserves a share of each period for every client (SCHED_DEADLINE). Servants are as with `fifo`. Excludes a
    /// pinned processor.
    Deadline,
    /// The ordinary class: priorities choose lanes, and the system gives no thread precedence.
    Other,
}

/// The priority of the most urgent client and servant, as the system counts. The next ones are one below each.
pub(crate) const PRIORITY_MAX: i16 = 80;

/// The priority of the client and servant with this number; 0 is the most urgent.
pub(crate) fn priority(place: usize) -> i16 {
    PRIORITY_MAX - place as i16
}

impl Class {
    /// The class as the ORB names it.
    pub(crate) fn scheduling(self) -> SchedulingPolicy {
        match self {
            Class::Fifo | Class::Deadline => SchedulingPolicy::Fifo,
            Class::Rr => SchedulingPolicy::RoundRobin,
            Class::Other => SchedulingPolicy::Other,
        }
    }

    /// Puts the calling thread into the class.
    pub(crate) fn enter(self, priority: i16) -> Result<(), BenchError> {
        match self {
            Class::Fifo | Class::Deadline => enter(SystemClass::Fifo(native(priority))),
            Class::Rr => enter(SystemClass::RoundRobin(native(priority))),
            Class::Other => Ok(()),
        }
    }
}

/// The calling thread's stay in the class, where the class is of periods and not of priorities.
pub(super) struct InPeriods {
    _stay: Option<InDeadlineSchedule>,
}

/// The part of each period that is reserved for a client: what 50 of them need fits on one processor.
const RESERVED: f64 = 0.01;

/// Less is used up by a call.
const RESERVED_MIN: Duration = Duration::from_micros(250);

impl Class {
    /// Puts the calling thread, a client with this period, into the class, if that is one of periods.
    pub(super) fn enter_periods(self, period: Duration) -> Result<InPeriods, BenchError> {
        let schedule = || {
            let runtime = period.mul_f64(RESERVED).max(RESERVED_MIN).min(period);
            let schedule = DeadlineSchedule::new(runtime, period, period);
            let schedule = schedule.map_err(|e| BenchError::Unusable(e.to_string()))?;
            schedule.enter().map_err(BenchError::io("schedule a client by deadlines"))
        };
        let stay = if self == Class::Deadline { Some(schedule()?) } else { None };
        Ok(InPeriods { _stay: stay })
    }
}

/// Puts the calling thread below all others: it runs when no other thread of its processor can.
pub(crate) fn enter_idle() -> Result<(), BenchError> {
    enter(SystemClass::Idle)
}

fn enter(class: SystemClass) -> Result<(), BenchError> {
    Thread::CALLING.set_class(class).map_err(BenchError::io(
        "give a thread a real-time priority (run as root, raise RLIMIT_RTPRIO, or measure class `other`)",
    ))
}

/// A priority as the system takes it. None outside 1 to 99 is one.
fn native(priority: i16) -> u8 {
    u8::try_from(priority).unwrap_or(0)
}
