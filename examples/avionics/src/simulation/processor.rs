//! A processor with fixed priorities and preemption, and resources whose holders inherit priorities.

use std::time::Duration;

use ironorb::engine::Time;

/// A number for what runs: a thread of the simulation, or an interrupt.
pub(super) type Runner = usize;

/// What is to run.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) runner: Runner,
    /// Interrupts are above all threads.
    pub(super) priority: i32,
    pub(super) left: Duration,
    /// The resource that it takes when it first runs.
    pub(super) resource: Option<usize>,
    /// The place among jobs of equal priority.
    pub(super) order: u64,
    has_resource: bool,
    is_blocked: bool,
}

impl Job {
    pub(super) fn new(
        runner: Runner,
        priority: i32,
        left: Duration,
        resource: Option<usize>,
        order: u64,
    ) -> Job {
        Job { runner, priority, left, resource, order, has_resource: false, is_blocked: false }
    }
}

/// What a runner did without interruption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) runner: Runner,
    pub(super) from: Time,
    pub(super) to: Time,
}

#[derive(Debug, Default)]
pub(super) struct Processor {
    pub(super) name: String,
    pub(super) switch: Duration,
    /// Counts decisions, so that a tick of an earlier decision is known as such.
    pub(super) generation: u64,
    pub(super) bars: Vec<Bar>,
    jobs: Vec<Job>,
    running: Option<Runner>,
    last: Option<Runner>,
    since: Time,
}

impl Processor {
    pub(super) fn new(name: String, switch: Duration) -> Processor {
        Processor { name, switch, ..Processor::default() }
    }

    pub(super) fn has_job_of(&self, runner: Runner) -> bool {
        self.jobs.iter().any(|job| job.runner == runner)
    }

    pub(super) fn add(&mut self, job: Job, now: Time) {
        self.advance(now);
        self.jobs.push(job);
    }

    /// Ends the job that is done, if one is, and returns its runner.
    pub(super) fn take_done(&mut self, now: Time) -> Option<Runner> {
        self.advance(now);
        let running = self.running?;
        let at = self.jobs.iter().position(|job| job.runner == running && job.left.is_zero())?;
        let done = self.jobs.swap_remove(at);
        self.running = None;
        if done.has_resource {
            let waiting = self.jobs.iter_mut().filter(|job| job.resource == done.resource);
            waiting.for_each(|job| job.is_blocked = false);
        }
        Some(done.runner)
    }

    /// Chooses what runs from now on, and returns when it is done.
    pub(super) fn choose(&mut self, now: Time) -> Option<Time> {
        self.advance(now);
        self.generation += 1;
        self.running = None;
        loop {
            let best = self.best()?;
            if !self.take_resource(best) {
                continue;
            }
            let switch = self.switch;
            let job = &mut self.jobs[best];
            if self.last.replace(job.runner) != Some(job.runner) {
                job.left += switch;
            }
            self.running = Some(job.runner);
            return Some(now + job.left);
        }
    }

    fn advance(&mut self, now: Time) {
        let ran = now.since(self.since);
        let from = std::mem::replace(&mut self.since, now);
        let Some(runner) = self.running.filter(|_| !ran.is_zero()) else { return };
        if let Some(job) = self.jobs.iter_mut().find(|job| job.runner == runner) {
            job.left = job.left.saturating_sub(ran);
        }
        match self.bars.last_mut().filter(|bar| bar.runner == runner && bar.to == from) {
            Some(bar) => bar.to = now,
            None => self.bars.push(Bar { runner, from, to: now }),
        }
    }

    /// The most urgent job that may run; of equal ones, the first.
    fn best(&self) -> Option<usize> {
        let ready = (0..self.jobs.len()).filter(|&at| !self.jobs[at].is_blocked);
        ready.max_by_key(|&at| (self.urgency(&self.jobs[at]), std::cmp::Reverse(self.jobs[at].order)))
    }

    /// A job's priority, or that of the most urgent job that waits for what it holds.
    fn urgency(&self, job: &Job) -> i32 {
        let waits_for_it =
            |other: &&Job| job.has_resource && other.is_blocked && other.resource == job.resource;
        let inherited = self.jobs.iter().filter(waits_for_it).map(|other| other.priority).max();
        job.priority.max(inherited.unwrap_or(i32::MIN))
    }

    /// Gives a job its resource. If another one has it, the job waits.
    fn take_resource(&mut self, at: usize) -> bool {
        let Job { resource, has_resource, .. } = self.jobs[at];
        if resource.is_none() || has_resource {
            return true;
        }
        let is_free = !self.jobs.iter().any(|other| other.has_resource && other.resource == resource);
        self.jobs[at].has_resource = is_free;
        self.jobs[at].is_blocked = !is_free;
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn job(runner: Runner, priority: i32, ms: u64, resource: Option<usize>) -> Job {
        Job::new(runner, priority, Duration::from_millis(ms), resource, runner as u64)
    }

    #[test]
    fn an_urgent_job_preempts_and_the_other_goes_on_where_it_was() {
        let mut processor = Processor::new("p".to_owned(), Duration::ZERO);
        processor.add(job(1, 1, 10, None), at(0));
        assert_eq!(processor.choose(at(0)), Some(at(10)));
        processor.add(job(2, 2, 3, None), at(4));
        assert_eq!(processor.choose(at(4)), Some(at(7)));
        assert_eq!(processor.take_done(at(7)), Some(2));
        assert_eq!(processor.choose(at(7)), Some(at(13)));
        assert_eq!(processor.take_done(at(13)), Some(1));
        assert_eq!(processor.choose(at(13)), None);
    }

    #[test]
    fn the_holder_of_a_resource_runs_for_the_job_that_waits_for_it() {
        let mut processor = Processor::new("p".to_owned(), Duration::ZERO);
        processor.add(job(1, 1, 10, Some(0)), at(0));
        processor.choose(at(0));
        processor.add(job(2, 2, 50, None), at(1));
        processor.choose(at(1));
        processor.add(job(3, 3, 5, Some(0)), at(2));
        assert_eq!(
            processor.choose(at(2)),
            Some(at(11)),
            "9 ms are left of the holder, which the middle one waits for"
        );
        assert_eq!(processor.take_done(at(11)), Some(1));
        assert_eq!(processor.choose(at(11)), Some(at(16)));
        assert_eq!(processor.take_done(at(16)), Some(3));
    }
}
