//! What a watched lane measures of each request: its parts, and what its upcall did with the processor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Histogram;
use crate::base::time::Time;
use crate::base::watch::MeasuredUpcall;

/// What a lane measures of requests. Some 71 KiB.
#[derive(Debug, Default)]
pub(crate) struct LaneWatch {
    /// From a request's arrival, as far as the server knows it, until a thread has taken it.
    pub(crate) queueing: Histogram,
    /// From then until its servant is called.
    pub(crate) dispatch: Histogram,
    /// From then until the servant has given its results, or has returned.
    pub(crate) upcall: Histogram,
    /// From then until the reply is written and the system has it, or does not take it now.
    pub(crate) reply: Histogram,
    /// From the sending of a request until a thread has taken it, of requests that tell when they were sent, by this machine's
    /// clock.
    pub(crate) since_sending: Histogram,
    switches: SwitchCounts,
}

/// What the upcalls of a lane did together.
#[derive(Debug, Default)]
struct SwitchCounts {
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    system_calls: AtomicU64,
    /// Upcalls whose system calls are known.
    with_system_calls: AtomicU64,
}

/// Sums over the upcalls of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UpcallSums {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) system_calls: u64,
    pub(crate) with_system_calls: u64,
}

/// The moments of a request around its upcall.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimes {
    pub(crate) arrived: Time,
    pub(crate) taken: Time,
    /// How long before `taken` the client sent it; `None` where that is not known.
    pub(crate) since_sending: Option<Duration>,
    /// `None` if no reply was written.
    pub(crate) replied: Option<Time>,
}

impl LaneWatch {
    /// Adds a request whose upcall is over.
    pub(crate) fn add(&self, times: &RequestTimes, upcall: &MeasuredUpcall) {
        let between = |from: u64, to: u64| to.saturating_sub(from);
        let taken = times.taken.as_nanos();
        self.queueing.add(between(times.arrived.as_nanos(), taken));
        self.dispatch.add(between(taken, upcall.begun_ns));
        if let Some(since_sending) = times.since_sending {
            self.since_sending.add(since_sending.as_nanos() as u64);
        }
        self.upcall.add(between(upcall.begun_ns, upcall.ended_ns));
        if let Some(replied) = times.replied {
            self.reply.add(between(upcall.ended_ns, replied.as_nanos()));
        }
        self.switches.add(upcall);
    }

    /// What the upcalls did together.
    pub(crate) fn sums(&self) -> UpcallSums {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        UpcallSums {
            voluntary: read(&self.switches.voluntary),
            involuntary: read(&self.switches.involuntary),
            system_calls: read(&self.switches.system_calls),
            with_system_calls: read(&self.switches.with_system_calls),
        }
    }
}

impl SwitchCounts {
    fn add(&self, upcall: &MeasuredUpcall) {
        let add = |count: &AtomicU64, more: u64| {
            if more > 0 {
                count.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.voluntary, upcall.switches.voluntary);
        add(&self.involuntary, upcall.switches.involuntary);
        if let Some(calls) = upcall.switches.system_calls {
            add(&self.system_calls, calls);
            add(&self.with_system_calls, 1);
        }
    }
}
