//! What of a side's time belongs to which stage, and what to none.

use std::time::Duration;

use ironorb::probe::{Snapshot, Stage};
use serde::Serialize;

/// One stage's part of a side's time.
#[derive(Debug, Clone, Serialize)]
pub struct StageShare {
    /// What the thread was at.
    pub stage: &'static str,
    /// How often, for each of what the report counts in: a call, or a run.
    pub times: f64,
    /// For how long, for each of these, in microseconds.
    pub us: f64,
    /// Per cent of the side's time.
    pub percent: f64,
}

/// Where the time of one side went.
#[derive(Debug, Clone, Serialize)]
pub struct Shares {
    /// All of its time, for each of what the report counts in, in microseconds.
    pub elapsed_us: f64,
    /// The stages that were entered.
    pub stages: Vec<StageShare>,
    /// What is in no stage, in microseconds: the application, and what the ORB does where no probe is. Negative if more
    /// is accounted for than has passed, which is an error of measurement.
    pub unaccounted_us: f64,
    /// The same in per cent.
    pub unaccounted_percent: f64,
}

impl Shares {
    /// Of what was counted in so many units.
    pub(crate) fn of(snapshot: &Snapshot, units: f64) -> Shares {
        let us = |time: Duration| time.as_secs_f64() * 1e6 / units;
        let elapsed_us = us(snapshot.elapsed());
        let percent = |us: f64| if elapsed_us > 0.0 { 100.0 * us / elapsed_us } else { 0.0 };
        let stages = snapshot
            .stages()
            .filter(|(_, times)| times.count > 0 || !times.self_time.is_zero())
            .map(|(stage, times)| StageShare {
                stage: stage.name(),
                times: times.count as f64 / units,
                us: us(times.self_time),
                percent: percent(us(times.self_time)),
            });
        let unaccounted_us = elapsed_us - us(snapshot.accounted());
        Shares {
            elapsed_us,
            stages: stages.collect(),
            unaccounted_us,
            unaccounted_percent: percent(unaccounted_us),
        }
    }

    /// One stage's, if it was entered.
    pub(crate) fn find(&self, stage: Stage) -> Option<&StageShare> {
        self.stages.iter().find(|share| share.stage == stage.name())
    }
}

#[cfg(test)]
mod tests {
    use ironorb::probe::StageTimes;

    use super::*;

    #[test]
    fn shares_are_the_whole() {
        let times = |count, us| StageTimes {
            count,
            self_time: Duration::from_micros(us),
            total_time: Duration::from_micros(us),
            entered_within: 0,
        };
        let stages = [(Stage::Write, times(10, 600)), (Stage::Wait, times(10, 300))];
        let shares = Shares::of(&Snapshot::from_parts(Duration::from_millis(1), stages), 10.0);
        assert_eq!(shares.stages.len(), 2);
        assert_eq!((shares.elapsed_us, shares.unaccounted_us), (100.0, 10.0));
        let write = shares.find(Stage::Write).unwrap();
        assert_eq!((write.times, write.us, write.percent), (1.0, 60.0, 60.0));
        let all: f64 = shares.stages.iter().map(|share| share.percent).sum();
        assert!((all + shares.unaccounted_percent - 100.0).abs() < 1e-9);
        assert!(shares.find(Stage::Marshal).is_none());
    }
}
