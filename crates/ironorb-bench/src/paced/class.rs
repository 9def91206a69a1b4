//! The scheduling classes of threads.

use std::io;

use ironorb::rt::SchedulingPolicy;
use preempt_rt::sched::{Pid, PreemptRtError, Scheduler, SchedulerParams, set_scheduler};

use crate::error::BenchError;

/// The class in which the system schedules clients and servants (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Class {
    /// A thread runs until it waits or a more urgent one is ready.
    Fifo,
    /// As `fifo`; threads of equal priority take turns.
    Rr,
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
            Class::Fifo => SchedulingPolicy::Fifo,
            Class::Rr => SchedulingPolicy::RoundRobin,
            Class::Other => SchedulingPolicy::Other,
        }
    }

    /// Puts the calling thread into the class.
    pub(crate) fn enter(self, priority: i16) -> Result<(), BenchError> {
        match self {
            Class::Fifo => enter(Scheduler::SCHED_FIFO, priority),
            Class::Rr => enter(Scheduler::SCHED_RR, priority),
            Class::Other => Ok(()),
        }
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
