//! How much of a resource is in use, and how many wait for it.

use std::time::Duration;

use crate::{ResourceObservations, Time};

/// Sums use and waiting over time, from the beginning of an observation on.
#[derive(Debug, Clone)]
pub struct Load {
    units: u32,
    in_use: u32,
    waiting: u32,
    waiting_max: u32,
    began: Time,
    since: Time,
    use_ns: u128,
    waiting_ns: u128,
}

impl Load {
    /// Of a resource with this many units. None of them is in use at the beginning of the run.
    pub fn new(units: u32) -> Load {
        Load {
            units,
            in_use: 0,
            waiting: 0,
            waiting_max: 0,
            began: Time::ZERO,
            since: Time::ZERO,
            use_ns: 0,
            waiting_ns: 0,
        }
    }

    /// A unit comes into use.
    pub fn take(&mut self, now: Time) {
        self.pass_to(now);
        self.in_use += 1;
    }

    /// A unit is free again.
    pub fn give_back(&mut self, now: Time) {
        self.pass_to(now);
        debug_assert!(self.in_use > 0, "more is given back than was taken");
        self.in_use -= 1;
    }

    /// One more waits.
    pub fn wait(&mut self, now: Time) {
        self.pass_to(now);
        self.waiting += 1;
        self.waiting_max = self.waiting_max.max(self.waiting);
    }

    /// One that waited does so no longer.
    pub fn wait_no_longer(&mut self, now: Time) {
        self.pass_to(now);
        debug_assert!(self.waiting > 0, "more stop waiting than have begun");
        self.waiting -= 1;
    }

    /// The resource has one more unit.
    pub fn add_unit(&mut self) {
        self.units += 1;
    }

    /// Units in use.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Forgets what was, and observes from now on.
    pub fn restart(&mut self, now: Time) {
        *self = Load {
            began: now,
            since: now,
            waiting_max: self.waiting,
            use_ns: 0,
            waiting_ns: 0,
            units: self.units,
            in_use: self.in_use,
            waiting: self.waiting,
        };
    }

    /// What has been since the beginning of the observation.
    pub fn observe(&self, now: Time, name: String) -> ResourceObservations {
        let mut until_now = self.clone();
        until_now.pass_to(now);
        let span = now.since(self.began).as_nanos().max(1) as f64;
        ResourceObservations {
            name,
            utilisation: until_now.use_ns as f64 / span / f64::from(self.units.max(1)),
            queue_mean: until_now.waiting_ns as f64 / span,
            queue_max: u64::from(self.waiting_max),
            octets: 0,
        }
    }

    /// Time in use, summed over the units.
    pub fn use_time(&self, now: Time) -> Duration {
        let mut until_now = self.clone();
        until_now.pass_to(now);
        Duration::from_nanos(u64::try_from(until_now.use_ns).unwrap_or(u64::MAX))
    }

    fn pass_to(&mut self, now: Time) {
        let passed = now.as_ns().saturating_sub(self.since.as_ns());
        if passed > 0 {
            self.use_ns += u128::from(passed) * u128::from(self.in_use);
            self.waiting_ns += u128::from(passed) * u128::from(self.waiting);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_and_waiting_are_means_over_time() {
        let at = Time::from_ns;
        let mut load = Load::new(2);
        load.take(at(0));
        load.restart(at(100));
        load.take(at(100));
        load.wait(at(150));
        load.wait_no_longer(at(175));
        load.give_back(at(175));
        let seen = load.observe(at(200), "threads".to_owned());
        assert_eq!((seen.utilisation, seen.queue_mean, seen.queue_max), (0.875, 0.25, 1));
        assert_eq!(load.use_time(at(200)), Duration::from_nanos(175));
    }
}
