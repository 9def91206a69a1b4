//! Sets of tasks, and how their load grows.

use std::time::Duration;

use clap::ValueEnum;

use crate::paced::task::{Block, Task};

/// A set of five tasks, as Hartstone has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskSet {
    /// 2, 4, 8, 16 and 32 Hz.
    Harmonic,
    /// 2, 3, 5, 7 and 11 Hz.
    NonHarmonic,
}

/// What grows in each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// The rate of the task with the highest rate: by that of the next one.
    FastestRate,
    /// The rates of all tasks: by a tenth.
    Rates,
    /// The work of each call of every task: by as much for all.
    Work,
    /// The number of tasks: by one more like the third.
    Tasks,
}

/// The part of a processor that each task of a set uses at first. All together use a quarter.
const PART: f64 = 0.05;

/// The part of a processor by which a step of [`Experiment::Work`] raises the load of a set.
const WORK_STEP: f64 = 0.025;

/// Most tasks of a step: more than fit on a processor.
pub(super) const SERVANTS_MAX: usize = 5 + 20;

impl TaskSet {
    fn rates_hz(self) -> [f64; 5] {
        match self {
            TaskSet::Harmonic => [2.0, 4.0, 8.0, 16.0, 32.0],
            TaskSet::NonHarmonic => [2.0, 3.0, 5.0, 7.0, 11.0],
        }
    }

    /// The part of a processor that rate-monotonic priorities guarantee to the periods of the set.
    pub(super) fn guaranteed(self) -> f64 {
        match self {
            TaskSet::Harmonic => 1.0,
            TaskSet::NonHarmonic => 5.0 * (2f64.powf(1.0 / 5.0) - 1.0),
        }
    }
}

/// The tasks of a step: their rates in Hz, and the processor time of each call in seconds. The highest rate comes first.
pub(super) struct Step(Vec<(f64, f64)>);

impl Step {
    /// The step with this number, from 0.
    pub(super) fn new(set: TaskSet, experiment: Experiment, number: usize) -> Step {
        let rates = set.rates_hz();
        let steps = number as f64;
        let mut tasks: Vec<(f64, f64)> = rates.iter().map(|rate| (*rate, PART / rate)).collect();
        match experiment {
            Experiment::FastestRate => tasks[4].0 += steps * rates[3],
            Experiment::Rates => tasks.iter_mut().for_each(|task| task.0 *= 1.0 + steps / 10.0),
            Experiment::Work => {
                let more = WORK_STEP / rates.iter().sum::<f64>();
                tasks.iter_mut().for_each(|task| task.1 += steps * more);
            }
            Experiment::Tasks => tasks.extend(std::iter::repeat_n(tasks[2], number)),
        }
        tasks.sort_by(|a, b| b.0.total_cmp(&a.0));
        Step(tasks)
    }

    /// The part of a processor that the servants use.
    pub(super) fn utilization(&self) -> f64 {
        self.0.iter().map(|(rate, seconds)| rate * seconds).sum()
    }

    /// The tasks for about this long, each for whole periods and at least one; all begin together. Rates are `hurry` times as
    /// high, with as much less work. `None` if there are more tasks than servants.
    pub(super) fn block(&self, length: Duration, hurry: f64) -> Option<Block> {
        let task = |&(rate, seconds): &(f64, f64)| {
            let rate = rate * hurry;
            let calls = (length.as_secs_f64() * rate).round().max(1.0) as usize;
            let [period, burn] = [1.0 / rate, seconds / hurry].map(Duration::from_secs_f64);
            Task { period, phase: Duration::ZERO, burn, calls }
        };
        let tasks: Vec<Task> = self.0.iter().map(task).collect();
        (tasks.len() <= SERVANTS_MAX).then(|| Block { time_max: length * 2 + Duration::from_secs(1), tasks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_begins_with_the_same_set_and_raises_its_load() {
        for set in [TaskSet::Harmonic, TaskSet::NonHarmonic] {
            for &experiment in Experiment::value_variants() {
                let utilizations: Vec<f64> =
                    (0..8).map(|number| Step::new(set, experiment, number).utilization()).collect();
                assert!((utilizations[0] - 0.25).abs() < 1e-9, "{utilizations:?}");
                assert!(utilizations.windows(2).all(|two| two[1] > two[0] + 0.015), "{utilizations:?}");
            }
        }
    }

    #[test]
    fn tasks_are_ordered_by_their_rates_and_use_what_the_step_says() {
        let step = Step::new(TaskSet::Harmonic, Experiment::Tasks, 3);
        let block = step.block(Duration::from_secs(2), 1.0).unwrap();
        let periods: Vec<u128> = block.tasks.iter().map(|task| task.period.as_micros()).collect();
        assert_eq!(periods, [31_250, 62_500, 125_000, 125_000, 125_000, 125_000, 250_000, 500_000]);
        let calls: Vec<usize> = block.tasks.iter().map(|task| task.calls).collect();
        assert_eq!(calls, [64, 32, 16, 16, 16, 16, 8, 4]);
        let used: f64 =
            block.tasks.iter().map(|task| task.burn.as_secs_f64() / task.period.as_secs_f64()).sum();
        assert!((used - step.utilization()).abs() < 1e-6);
    }

    #[test]
    fn there_are_no_more_tasks_than_servants() {
        let step = |number| Step::new(TaskSet::Harmonic, Experiment::Tasks, number);
        assert!(step(20).utilization() > 1.0, "more than a processor has");
        assert!(step(20).block(Duration::from_secs(1), 1.0).is_some());
        assert!(step(21).block(Duration::from_secs(1), 1.0).is_none());
    }
}
