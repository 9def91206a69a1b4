//! A probe in the manner of cyclictest: a thread on each processor wakes each millisecond, and notes how late it is.

use std::io;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::Timespec;

use super::Measured;
use super::wakeups::{lateness, now};
use crate::cores::CorePin;

pub(super) fn all(time: Duration) -> io::Result<Vec<Measured>> {
    let allowed = sched_getaffinity(None)?;
    thread::scope(|scope| {
        let processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
        let threads: Vec<_> = processors.map(|processor| scope.spawn(move || on(processor, time))).collect();
        threads.into_iter().map(join).collect()
    })
}

fn join(thread: ScopedJoinHandle<'_, io::Result<Measured>>) -> io::Result<Measured> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the probe has panicked")))
}

/// A period that is missed is not made up for: the next one is the first that still lies ahead.
fn on(processor: usize, time: Duration) -> io::Result<Measured> {
    let mut measured = Measured::new(
        format!("periodic wake-up, processor {processor}"),
        "later than each millisecond's beginning",
    );
    let _pin = CorePin::on(processor);
    let (end, mut next) = (Instant::now() + time, now() + PERIOD);
    while Instant::now() < end {
        measured.record(lateness(next)?);
        next += PERIOD;
        while next < now() {
            next += PERIOD;
        }
    }
    Ok(measured)
}

const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
