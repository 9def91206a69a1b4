//! The scheduling classes of threads.

use std::io;
use std::time::Duration;

use ironorb::rt::{DeadlineSchedule, InDeadlineSchedule, SchedulingPolicy};
use preempt_rt::sched::{Pid, PreemptRtError, Scheduler, SchedulerParams, set_scheduler};

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
            Class::Fifo | Class::Deadline => enter(Scheduler::SCHED_FIFO, priority),
            Class::Rr => enter(Scheduler::SCHED_RR, priority),
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
    enter(Scheduler::SCHED_IDLE, 0)
}

fn enter(class: Scheduler, priority: i16) -> Result<(), BenchError> {
    let refused = |e| {
        let doing =
            "give a thread a real-time priority (run as root, raise RLIMIT_RTPRIO, or measure class `other`)";
        BenchError::io(doing)(match e {
            PreemptRtError::Errno(code) => io::Error::from_raw_os_error(code),
            other => io::Error::other(other),
        })
    };
    let params = SchedulerParams { priority: i32::from(priority) };
    set_scheduler(Pid::current_thread(), class, params).map_err(refused)
}
