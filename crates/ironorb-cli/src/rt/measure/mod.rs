//! What the system's own means cost on this machine: the floor below every call of an ORB.
//!
//! RT-99 names these of an operating system: switches of threads and processes, system calls, locks, clocks and timers.
//! All run on one thread that has a real-time priority, if the system grants one, and on threads that inherit it.

mod calls;
mod lock;
mod probe;
mod switches;
mod wakeups;

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use ironorb_threads::{Class, Thread};
use serde_json::{Value, json};

pub(super) use switches::echo;

/// Samples of one thing, in nanoseconds.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) name: String,
    /// What one sample is.
    pub(super) what: &'static str,
    times: Histogram<u64>,
}

/// What was measured, and in which scheduling class.
#[derive(Debug)]
pub(super) struct Measurements {
    pub(super) class: &'static str,
    pub(super) all: Vec<Measured>,
}

impl Measured {
    fn new(name: impl Into<String>, what: &'static str) -> Measured {
        let times = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds are in order");
        Measured { name: name.into(), what, times }
    }

    fn record(&mut self, time: Duration) {
        self.record_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    fn record_ns(&mut self, ns: u64) {
        self.times.saturating_record(ns.max(1));
    }

    pub(super) fn samples(&self) -> u64 {
        self.times.len()
    }

    pub(super) fn min_ns(&self) -> u64 {
        self.times.min()
    }

    pub(super) fn max_ns(&self) -> u64 {
        self.times.max()
    }

    /// A quantile, if there are at least a hundred samples beyond it.
    pub(super) fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let beyond = (self.samples() as f64 * (1.0 - quantile)).round();
        (beyond >= 100.0).then(|| self.times.value_at_quantile(quantile))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "what": self.what,
            "samples": self.samples(),
            "min_ns": self.min_ns(),
            "median_ns": self.quantile_ns(0.5),
            "p99_ns": self.quantile_ns(0.99),
            "max_ns": self.max_ns(),
        })
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Samples of each thing but the periodic wake-ups.
    pub(super) samples: u32,
    /// How long periodic wake-ups are measured.
    pub(super) probe: Duration,
}

/// Measures all. `program` is this program, which stands in for the other process.
pub(super) fn all(program: &Path, plan: Plan) -> io::Result<Measurements> {
    let (program, Plan { samples, probe }) = (program.to_owned(), plan);
    let measure = move || -> io::Result<Measurements> {
        let class = become_real_time();
        let mut all = calls::all(samples);
        all.extend(lock::all(samples)?);
        all.extend(switches::all(&program, samples)?);
        all.extend(wakeups::all(samples)?);
        all.extend(probe::all(probe)?);
        Ok(Measurements { class, all })
    };
    let thread = thread::Builder::new().name("ironorb-measure".to_owned()).spawn(measure)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the measuring thread has panicked")))
}

/// Gives the calling thread a priority that interrupts' threads and others may still pass.
fn become_real_time() -> &'static str {
    match Thread::CALLING.set_class(Class::Fifo(PRIORITY)) {
        Ok(()) => "SCHED_FIFO",
        Err(_) => "SCHED_OTHER",
    }
}

/// As that of a lane in the upper half. Interrupts' threads have 50.
const PRIORITY: u8 = 80;

/// Above every wait of a machine that is not stopped.
const LONGEST_NS: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_need_a_hundred_samples_beyond_them() {
        let mut some = Measured::new("x", "x");
        (1..=9_999).for_each(|ns| some.record_ns(ns));
        assert_eq!((some.quantile_ns(0.99), some.samples()), (Some(9_903), 9_999));
        let mut few = Measured::new("x", "x");
        (1..=9_000).for_each(|ns| few.record_ns(ns));
        assert_eq!(few.quantile_ns(0.99), None);
        assert!(few.quantile_ns(0.5).is_some());
    }
}
