//! Sides of a comparison take turns, so that whatever disturbs the machine disturbs all of them.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::role::raw_sample;
use crate::rows::Sample;
use crate::statistics::{Repeated, each, turns};
use ironorb_baseline::raw::Exchange;

/// Who can make calls again and again.
pub(crate) trait Side {
    /// Makes as many samples - each a call, or a batch of them - as there are places, and tells the nanoseconds of each.
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError>;
}

/// How long a comparison is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest {
    /// Samples of each side in each repetition.
    pub(crate) samples: usize,
    pub(crate) repetitions: usize,
    pub(crate) calls_per_sample: usize,
    /// Samples before anything is measured.
    pub(crate) warm_up: usize,
    /// How long all turns may take together, about, as the warming up tells: else there are fewer samples.
    pub(crate) time_max: Option<Duration>,
}

/// Fewer samples of a turn say nothing.
const SAMPLES_MIN: usize = 40;

impl Contest {
    /// What each side took, in their order; of a side that is missing, nothing. The first is the baseline.
    pub(crate) fn run(
        &self,
        sides: &mut [Option<Box<dyn Side + '_>>],
    ) -> Result<Vec<Option<Repeated>>, BenchError> {
        let mut nanos = vec![0; self.samples.max(self.warm_up)];
        let mut results: Vec<Option<Repeated>> =
            sides.iter().map(|side| side.as_ref().map(|_| Repeated::new(self.calls_per_sample))).collect();
        let begun = Instant::now();
        for side in sides.iter_mut().flatten() {
            side.each(&mut nanos[..self.warm_up])?;
        }
        let samples = self.samples_within(begun.elapsed());
        let nanos = &mut nanos[..samples];
        for place in turns(sides.len().saturating_sub(1), self.repetitions) {
            if let (Some(side), Some(result)) = (&mut sides[place], &mut results[place]) {
                side.each(nanos)?;
                result.add(nanos);
            }
        }
        Ok(results)
    }

    /// Samples of a turn, where warming up all sides took so long.
    fn samples_within(&self, warming_up: Duration) -> usize {
        let Some(time_max) = self.time_max.filter(|_| self.warm_up > 0) else { return self.samples };
        let of_a_sample = warming_up.as_secs_f64() / self.warm_up as f64 * self.repetitions as f64;
        let affordable = (time_max.as_secs_f64() / of_a_sample.max(1e-9)) as usize;
        affordable.max(SAMPLES_MIN).min(self.samples)
    }

    /// Calls that each side has made when all is done.
    pub(crate) fn calls(&self) -> usize {
        (self.samples * self.repetitions + self.warm_up) * self.calls_per_sample
    }
}

/// The baseline: a plain socket that carries the same bytes.
pub(crate) struct RawSide(Sample<'static>);

impl RawSide {
    /// Connects to a plain server that told its address.
    pub(crate) fn connect(address: &str, exchange: Exchange) -> Result<RawSide, BenchError> {
        Ok(RawSide(raw_sample(address, exchange)?))
    }
}

impl Side for RawSide {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        each(nanos, &mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Scripted<'a>(u64, &'a RefCell<Vec<u64>>);

    impl Side for Scripted<'_> {
        fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
            nanos.fill(self.0);
            self.1.borrow_mut().push(self.0);
            Ok(())
        }
    }

    #[test]
    fn sides_take_turns_and_one_that_is_missing_has_none() {
        let seen = RefCell::new(Vec::new());
        let mut sides: Vec<Option<Box<dyn Side + '_>>> =
            vec![Some(Box::new(Scripted(10, &seen))), None, Some(Box::new(Scripted(15, &seen)))];
        let contest = Contest { samples: 4, repetitions: 2, calls_per_sample: 1, warm_up: 1, time_max: None };
        let results = contest.run(&mut sides).unwrap();
        drop(sides);
        assert_eq!(seen.into_inner(), [10, 15, 10, 15, 15, 10]);
        assert_eq!(contest.calls(), 9);
        let [Some(baseline), None, Some(subject)] = &results[..] else { panic!("{}", results.len()) };
        assert_eq!(subject.over(baseline).median, 1.5);
    }

    #[test]
    fn turns_are_no_longer_than_they_may_be() {
        let second = Duration::from_secs(1);
        let contest = |time_max| Contest {
            samples: 3000,
            repetitions: 10,
            calls_per_sample: 1,
            warm_up: 100,
            time_max,
        };
        assert_eq!(contest(None).samples_within(600 * second), 3000);
        // A millisecond for a sample of all sides: 10 s for a thousand in ten repetitions.
        assert_eq!(contest(Some(10 * second)).samples_within(second / 10), 1000);
        assert_eq!(contest(Some(60 * second)).samples_within(second / 10), 3000);
        assert_eq!(contest(Some(10 * second)).samples_within(600 * second), SAMPLES_MIN);
    }
}
