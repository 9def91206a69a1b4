//! Which requests a pool admits, so that each that it has admitted ends in time.
//!
//! The test lays out all that is known: the upcalls that run, to their longest end, and behind them the requests that wait, in
//! their order, each on the thread that is free first. Nothing that comes later can make it worse, because what comes later is
//! tested too, and because the layout only moves forward when an upcall is shorter than it may be: with the order fixed and
//! requests that do not depend on one another, earlier free threads give earlier beginnings. A thread that has begun is not
//! interrupted, so an upcall that runs blocks for as long as it may still take, however urgent it is.
//!
//! What is assumed: no upcall takes longer than the `wcet` of its operation, which includes what the ORB and more urgent
//! lanes take from the thread; and each static thread has a processor when it has a request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::base::time::Time;
use crate::object::deadline::Deadline;

/// What the admission knows of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    /// The longest time that its upcall takes, if that is known.
    pub(crate) wcet: Option<Duration>,
    pub(crate) deadline: Deadline,
}

/// The upcalls of a pool that run, and its threads.
#[derive(Debug)]
pub(crate) struct Admission {
    threads: usize,
    longest_unknown: Duration,
    running: Vec<(RunningUpcall, Time)>,
    begun: u64,
}

/// An upcall that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunningUpcall(u64);

impl Admission {
    /// For a pool with this many static threads. An upcall of which nothing is known takes at most `longest_unknown`.
    pub(crate) fn new(threads: usize, longest_unknown: Duration) -> Admission {
        Admission { threads: threads.max(1), longest_unknown, running: Vec::new(), begun: 0 }
    }

    /// Records that an upcall begins.
    pub(crate) fn begin(&mut self, job: &Job, now: Time) -> RunningUpcall {
        let upcall = RunningUpcall(self.begun);
        self.begun += 1;
        self.running.push((upcall, now + self.longest(job)));
        upcall
    }

    /// Records that an upcall has ended.
    pub(crate) fn end(&mut self, upcall: RunningUpcall) {
        self.running.retain(|(other, _)| *other != upcall);
    }

    /// Whether a request that comes now ends in time behind those `before` it, and so do those `behind` it.
    pub(crate) fn admits<'j>(
        &self,
        now: Time,
        before: impl Iterator<Item = &'j Job>,
        newcomer: &'j Job,
        behind: impl Iterator<Item = &'j Job>,
    ) -> bool {
        let mut threads = self.free_threads(now);
        for job in before {
            self.lay_out(&mut threads, job);
        }
        std::iter::once(newcomer).chain(behind).all(|job| {
            let end = self.lay_out(&mut threads, job);
            job.deadline.at().is_none_or(|deadline| end <= deadline)
        })
    }

    /// When each static thread is free at the latest. Of more upcalls than that, which dynamic and borrowed threads carry
    /// out, the latest count: the other threads may go before they take a request.
    fn free_threads(&self, now: Time) -> BinaryHeap<Reverse<Time>> {
        let mut ends: Vec<Time> = self.running.iter().map(|(_, end)| (*end).max(now)).collect();
        ends.sort_by_key(|end| Reverse(*end));
        ends.resize(self.threads, now);
        ends.into_iter().map(Reverse).collect()
    }

    /// Gives a request to the thread that is free first. Returns when it ends at the latest.
    fn lay_out(&self, threads: &mut BinaryHeap<Reverse<Time>>, job: &Job) -> Time {
        let Some(mut first) = threads.peek_mut() else { return Time::MAX };
        first.0 += self.longest(job);
        first.0
    }

    fn longest(&self, job: &Job) -> Duration {
        job.wcet.unwrap_or(self.longest_unknown)
    }
}
