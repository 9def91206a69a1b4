//! What a thread does by itself: it reads the clock, calls the system, yields.

use std::hint::black_box;
use std::time::Instant;

use super::Measured;

pub(super) fn all(samples: u32) -> Vec<Measured> {
    vec![
        batches("clock", "one reading, mean of 100", samples, || {
            black_box(Instant::now());
        }),
        batches("system call", "getppid, mean of 100", samples, || {
            black_box(rustix::process::getppid());
        }),
        batches(
            "yield",
            "sched_yield without another thread, mean of 100",
            samples,
            rustix::thread::sched_yield,
        ),
    ]
}

/// What is shorter than a reading of the clock is measured a hundred at a time.
pub(super) fn batches(name: &str, what: &'static str, samples: u32, mut act: impl FnMut()) -> Measured {
    let mut measured = Measured::new(name, what);
    for _ in 0..samples {
        let before = Instant::now();
        (0..BATCH).for_each(|_| act());
        measured.record(before.elapsed() / BATCH);
    }
    measured
}

const BATCH: u32 = 100;
