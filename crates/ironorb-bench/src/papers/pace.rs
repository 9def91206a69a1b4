//! How long parts take, and how many runs of each there is time for.

use std::collections::BTreeMap;

use super::catalogue::Configuration;
use super::state::Head;

/// How long parts take: as those of the same configuration took, else as estimated, at the pace of all so far.
pub(super) struct Pace {
    is_quick: bool,
    /// The seconds of each configuration's stored parts, had they had all runs.
    took: BTreeMap<&'static str, Vec<f64>>,
    /// The runs of configurations that have begun. All of their parts have as many, so that they can be compared.
    begun: BTreeMap<&'static str, u32>,
    /// Of those whose time depends on the machine.
    estimated: f64,
    measured: f64,
}

/// What is planned for a part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Planned {
    /// Its runs, where a whole run has an option for their number.
    pub(super) runs: Option<u32>,
    pub(super) seconds: f64,
    /// The seconds of it and of all parts after it.
    pub(super) seconds_of_all: f64,
}

impl Pace {
    pub(super) fn new(is_quick: bool) -> Pace {
        let (took, begun) = Default::default();
        Pace { is_quick, took, begun, estimated: 0.0, measured: 0.0 }
    }

    /// These are all parts of a configuration that are stored.
    pub(super) fn took(&mut self, configuration: &Configuration, parts: &[Head]) {
        let of_all_runs = |head: &Head| match (configuration.runs, head.runs) {
            (Some(runs), Some(number)) => runs.seconds_of_all(number, head.seconds),
            _ => head.seconds,
        };
        let seconds: Vec<f64> = parts.iter().map(of_all_runs).collect();
        if let Some(number) = parts.iter().find_map(|head| head.runs) {
            self.begun.entry(configuration.name).or_insert(number);
        }
        let (number, sum) = (seconds.len(), seconds.iter().sum::<f64>());
        let before = self.took.insert(configuration.name, seconds).unwrap_or_default();
        if !configuration.keeps_time {
            self.estimated += configuration.seconds(self.is_quick) * (number as f64 - before.len() as f64);
            self.measured += sum - before.iter().sum::<f64>();
        }
    }

    /// Plans the first of some parts, each by its configuration, so that all take no longer than so many seconds, if that can be.
    /// A quick run has no bound: its parts have runs of their own.
    pub(super) fn plan(&mut self, parts: &[&Configuration], seconds: Option<f64>) -> Planned {
        let share = seconds.map(|seconds| self.share(parts, seconds));
        let runs = self.runs(parts[0], share);
        if let Some(runs) = runs {
            self.begun.insert(parts[0].name, runs);
        }
        let seconds_of_all = parts.iter().map(|it| self.seconds(it, share)).sum();
        Planned { runs, seconds: self.seconds(parts[0], share), seconds_of_all }
    }

    /// The seconds of these parts with the fewest runs that tell something.
    pub(super) fn least(&self, parts: &[&Configuration]) -> f64 {
        parts.iter().map(|it| self.seconds(it, Some(0.0))).sum()
    }

    /// The seconds of a part with all runs.
    fn of(&self, configuration: &Configuration) -> f64 {
        let is_known = self.estimated > 0.0 && !configuration.keeps_time;
        let pace = if is_known { self.measured / self.estimated } else { 1.0 };
        match self.took.get(configuration.name).map(Vec::as_slice) {
            None | Some([]) => configuration.seconds(self.is_quick) * pace,
            Some(seconds) => seconds.iter().sum::<f64>() / seconds.len() as f64,
        }
    }

    /// The share of their time that parts which have not begun can have within so many seconds.
    fn share(&self, parts: &[&Configuration], seconds: f64) -> f64 {
        let is_open = |it: &&&Configuration| it.runs.is_some() && !self.begun.contains_key(it.name);
        let open: f64 = parts.iter().filter(is_open).map(|it| self.of(it)).sum();
        let others = parts.iter().filter(|it| !is_open(it)).map(|it| self.seconds(it, Some(1.0)));
        let left = seconds - others.sum::<f64>();
        if open > 0.0 { (left / open).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn runs(&self, configuration: &Configuration, share: Option<f64>) -> Option<u32> {
        let (runs, share) = (configuration.runs?, share?);
        let begun = self.begun.get(configuration.name).copied();
        Some(begun.unwrap_or_else(|| runs.within(share)))
    }

    fn seconds(&self, configuration: &Configuration, share: Option<f64>) -> f64 {
        let all = self.of(configuration);
        match (configuration.runs, self.runs(configuration, share)) {
            (Some(runs), Some(number)) => runs.seconds_of(number, all),
            _ => all,
        }
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
    const TEN: Configuration = Configuration { runs: Some(Runs { wanted: 10, least: 2 }), ..of("ten", 110) };

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
        pace.took(&TEN, &[head(25.0, Some(4))]);
        assert_eq!(pace.of(&TEN), 55.0, "as with all runs");
    }

    #[test]
    fn runs_are_as_many_as_there_is_time_for() {
        let parts = [&TEN, &TEN, &FIRST];
        let planned = |seconds: f64| {
            let planned = Pace::new(false).plan(&parts, Some(seconds));
            assert_eq!(planned.seconds_of_all, 2.0 * planned.seconds + 10.0);
            (planned.runs, planned.seconds)
        };
        assert_eq!(planned(1_000.0), (Some(10), 110.0));
        assert_eq!(planned(230.0), (Some(10), 110.0));
        assert_eq!(planned(229.0), (Some(9), 100.0));
        assert_eq!(planned(130.0), (Some(5), 60.0));
        assert_eq!(planned(5.0), (Some(2), 30.0), "fewer tell nothing");
        assert_eq!(planned(-5.0), (Some(2), 30.0));
        assert_eq!(planned(f64::INFINITY), (Some(10), 110.0));
        assert_eq!(Pace::new(false).least(&parts), 70.0);
        let quick = Pace::new(true).plan(&parts, None);
        assert_eq!((quick.runs, quick.seconds), (None, 1.0), "a quick run has runs of its own");
    }

    #[test]
    fn all_parts_of_a_configuration_have_as_many_runs() {
        let mut pace = Pace::new(false);
        assert_eq!(pace.plan(&[&TEN, &TEN, &FIRST], Some(130.0)).runs, Some(5));
        pace.took(&TEN, &[head(10.0, Some(5))]);
        assert_eq!(pace.plan(&[&TEN, &FIRST], Some(130.0)).runs, Some(5), "though there is time for more");
        assert_eq!(pace.plan(&[&TEN, &FIRST], Some(1.0)).runs, Some(5), "and though there is none");
        let mut again = Pace::new(false);
        again.took(&TEN, &[head(10.0, Some(7))]);
        assert_eq!(again.plan(&[&TEN], Some(1.0)).runs, Some(7), "as those that are stored");
    }
}
