//! How long parts take, and how many runs of each there is time for.

use std::collections::BTreeMap;

use super::catalogue::Configuration;
use super::state::Head;

/// How long parts take: as those of the same configuration took, else as estimated, at the pace of all so far.
pub(super) struct Pace {
    is_quick: bool,
    /// The seconds of each configuration's stored parts, had they had all runs.
    took: BTreeMap<&'static str, Vec<f64>>,
    /// Of those whose time depends on the machine.
    estimated: f64,
    measured: f64,
}

impl Pace {
    pub(super) fn new(is_quick: bool) -> Pace {
        Pace { is_quick, took: BTreeMap::new(), estimated: 0.0, measured: 0.0 }
    }

    /// These are all parts of a configuration that are stored.
    pub(super) fn took(&mut self, configuration: &Configuration, parts: &[Head]) {
        let of_all_runs = |head: &Head| match (configuration.runs, head.runs) {
            (Some(all), Some(runs)) => head.seconds * f64::from(all.wanted) / f64::from(runs.max(1)),
            _ => head.seconds,
        };
        let seconds: Vec<f64> = parts.iter().map(of_all_runs).collect();
        let (number, sum) = (seconds.len(), seconds.iter().sum::<f64>());
        let before = self.took.insert(configuration.name, seconds).unwrap_or_default();
        if !configuration.keeps_time {
            self.estimated += configuration.seconds(self.is_quick) * (number as f64 - before.len() as f64);
            self.measured += sum - before.iter().sum::<f64>();
        }
    }

    /// The seconds of a part with all runs.
    pub(super) fn of(&self, configuration: &Configuration) -> f64 {
        let is_known = self.estimated > 0.0 && !configuration.keeps_time;
        let pace = if is_known { self.measured / self.estimated } else { 1.0 };
        match self.took.get(configuration.name).map(Vec::as_slice) {
            None | Some([]) => configuration.seconds(self.is_quick) * pace,
            Some(seconds) => seconds.iter().sum::<f64>() / seconds.len() as f64,
        }
    }

    /// The share of their runs that these parts can have within so many seconds.
    pub(super) fn share<'a>(
        &self,
        parts: impl Iterator<Item = &'a Configuration> + Clone,
        seconds: f64,
    ) -> Share {
        let sum = |has_runs: bool| -> f64 {
            parts.clone().filter(|it| it.runs.is_some() == has_runs).map(|it| self.of(it)).sum()
        };
        let (with_runs, others) = (sum(true), sum(false));
        let is_short = !self.is_quick && with_runs > 0.0;
        Share(if is_short { ((seconds - others) / with_runs).clamp(0.0, 1.0) } else { 1.0 })
    }
}

/// The share of their runs that parts can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share(f64);

impl Share {
    /// The runs of a part, where their number is an option.
    pub(super) fn runs(self, configuration: &Configuration) -> Option<u32> {
        let runs = configuration.runs?;
        // Rounded down, but for what rounding has made of a whole number.
        let shared = (f64::from(runs.wanted) * self.0 + 1e-9) as u32;
        Some(shared.clamp(runs.least, runs.wanted))
    }

    /// The seconds of a part with these runs.
    pub(super) fn seconds(self, configuration: &Configuration, pace: &Pace) -> f64 {
        let part = match (configuration.runs, self.runs(configuration)) {
            (Some(all), Some(runs)) if !pace.is_quick => f64::from(runs) / f64::from(all.wanted),
            _ => 1.0,
        };
        pace.of(configuration) * part
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::Runs;
    use super::*;

    const fn of(name: &'static str, seconds: u32) -> Configuration {
        Configuration::new(name, "echo", [seconds, 1])
    }

    const FIRST: Configuration = of("first", 10);
    const SECOND: Configuration = of("second", 30);
    const TEN: Configuration = Configuration { runs: Some(Runs { wanted: 10, least: 2 }), ..of("ten", 100) };

    fn head(seconds: f64, runs: Option<u32>) -> Head {
        Head { command: "bench".to_owned(), seconds, runs }
    }

    #[test]
    fn parts_take_as_long_as_others_of_their_configuration_or_as_estimated_at_the_pace_of_all() {
        let mut pace = Pace::new(false);
        assert_eq!(pace.of(&SECOND), 30.0);
        pace.took(&FIRST, &[head(4.0, None)]);
        pace.took(&FIRST, &[head(4.0, None), head(6.0, None)]);
        assert_eq!((pace.of(&FIRST), pace.of(&SECOND)), (5.0, 15.0), "half as long as estimated");
        let at_times = Configuration { keeps_time: true, ..of("at-times", 40) };
        assert_eq!(pace.of(&at_times), 40.0, "its calls come at their times");
        pace.took(&at_times, &[head(41.0, None)]);
        assert_eq!((pace.of(&at_times), pace.of(&SECOND)), (41.0, 15.0));
        pace.took(&TEN, &[head(20.0, Some(4))]);
        assert_eq!(pace.of(&TEN), 50.0, "as with all runs");
    }

    #[test]
    fn runs_are_as_many_as_there_is_time_for() {
        let pace = Pace::new(false);
        let parts = [&FIRST, &TEN, &TEN];
        let runs = |seconds: f64| {
            let share = pace.share(parts.into_iter(), seconds);
            let all: f64 = parts.iter().map(|it| share.seconds(it, &pace)).sum();
            (share.runs(&FIRST), share.runs(&TEN), all)
        };
        assert_eq!(runs(1_000.0), (None, Some(10), 210.0));
        assert_eq!(runs(210.0), (None, Some(10), 210.0));
        assert_eq!(runs(209.0), (None, Some(9), 190.0));
        assert_eq!(runs(110.0), (None, Some(5), 110.0));
        assert_eq!(runs(5.0), (None, Some(2), 50.0), "fewer tell nothing");
        assert_eq!(runs(-5.0), (None, Some(2), 50.0));
        assert_eq!(runs(f64::INFINITY), (None, Some(10), 210.0));
        let quick = Pace::new(true);
        let share = quick.share(parts.into_iter(), 1.0);
        assert_eq!(share.seconds(&TEN, &quick), 1.0, "a quick run has runs of its own");
    }
}
