//! The method of all measurements. A baseline and its entrants take turns, so that a disturbance of the
//! machine affects all of them. Ratios compare turns of one repetition.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::error::BenchError;
use crate::machine::load;
use crate::row::{Figure, Measure, Parameters, Row, parameters};
use crate::settings::Settings;
use crate::statistics::{Repeated, turns};
use crate::variant::{Invocation, Peer, ServantKind, name};

/// One call, or one batch of calls.
pub(crate) type Sample<'a> = Box<dyn FnMut() -> Result<(), BenchError> + 'a>;

/// A batch of so many of one thing, so that a sample is longer than the clock's step.
pub(crate) fn batch<'a>(size: usize, mut once: impl FnMut() -> Result<(), BenchError> + 'a) -> Sample<'a> {
    Box::new(move || (0..size).try_for_each(|_| once()))
}

/// A sample that may run on another thread.
pub(crate) type SendSample = Box<dyn FnMut() -> Result<(), BenchError> + Send>;

/// A participant that takes samples again and again. A closure that takes one sample is a side, measured by
/// the wall clock.
pub(crate) trait Side {
    /// Takes a sample for each place of `nanos` - a call, or a batch of calls - and stores its nanoseconds.
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError>;

    /// The processor time that all processes of the side have taken so far, if the report shows it.
    fn busy(&self) -> Option<Duration> {
        None
    }

    /// Whether the side belongs to another ORB. Its row then reports failures instead of ending the run.
    fn is_peer(&self) -> bool {
        false
    }
}

impl<F: FnMut() -> Result<(), BenchError>> Side for F {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        let mut before = Instant::now();
        for nanos in nanos {
            self()?;
            let after = Instant::now();
            *nanos = (after - before).as_nanos() as u64;
            before = after;
        }
        Ok(())
    }
}

/// A side whose samples are batches, measured by the thread's processor time. Code that never waits is then
/// not disturbed by other users of the processor.
pub(crate) struct OnProcessor<F> {
    pub(crate) batch: usize,
    pub(crate) work: F,
}

impl<F: FnMut() -> Result<(), BenchError>> Side for OnProcessor<F> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        for nanos in nanos {
            let before = thread_nanos();
            (0..self.batch).try_for_each(|_| (self.work)())?;
            *nanos = thread_nanos() - before;
        }
        Ok(())
    }
}

/// The calling thread's processor time.
pub(crate) fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The length of a comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest {
    /// Samples of each side in each repetition.
    pub(crate) samples: usize,
    pub(crate) repetitions: usize,
    pub(crate) calls_per_sample: usize,
    /// Samples of each side before the measurement.
    pub(crate) warm_up: usize,
    /// Approximate bound on the time of all turns together. The warm-up estimates the time; if needed, there
    /// are fewer samples.
    pub(crate) time_max: Option<Duration>,
}

/// Fewest samples in a turn; fewer say nothing.
const SAMPLES_MIN: usize = 40;

/// A side, or why there is none.
pub(crate) type Entry<'a> = Result<Box<dyn Side + 'a>, String>;

impl Contest {
    /// A comparison of single calls, with as many samples for the warm-up as in a turn.
    pub(crate) fn of(samples: usize, repetitions: usize) -> Contest {
        Contest { samples, repetitions, calls_per_sample: 1, warm_up: samples, time_max: None }
    }

    /// A comparison with one batch in each turn, and one for the warm-up.
    pub(crate) fn of_batches(repetitions: usize, batch: usize) -> Contest {
        Contest { calls_per_sample: batch, ..Contest::of(1, repetitions) }
    }

    /// Runs all turns. Returns each side's times in order, or why it took no part. The first side is the
    /// baseline.
    pub(crate) fn run(&self, sides: &mut [Entry<'_>]) -> Result<Vec<Result<Repeated, String>>, BenchError> {
        let mut nanos = vec![0; self.samples.max(self.warm_up)];
        let begun = Instant::now();
        for side in &mut *sides {
            let Ok(warmed) = side else { continue };
            match warmed.each(&mut nanos[..self.warm_up]) {
                Err(e) if warmed.is_peer() => *side = Err(e.to_string()),
                warmed => warmed?,
            }
        }
        let samples = self.samples_within(begun.elapsed());
        let new = |side: &Entry<'_>| match side {
            Ok(_) => Ok(Repeated::new(self.calls_per_sample)),
            Err(why) => Err(why.clone()),
        };
        let mut results: Vec<_> = sides.iter().map(new).collect();
        for place in turns(sides.len().saturating_sub(1), self.repetitions) {
            if let (Ok(side), Ok(result)) = (&mut sides[place], &mut results[place]) {
                let busy_before = side.busy();
                side.each(&mut nanos[..samples])?;
                result.add(&mut nanos[..samples]);
                if let (Some(before), Some(after)) = (busy_before, side.busy()) {
                    result.add_busy(after.saturating_sub(before));
                }
            }
        }
        Ok(results)
    }

    /// Samples in a turn, given the time of the warm-up of all sides.
    fn samples_within(&self, warming_up: Duration) -> usize {
        let Some(time_max) = self.time_max.filter(|_| self.warm_up > 0) else { return self.samples };
        let of_a_sample = warming_up.as_secs_f64() / self.warm_up as f64 * self.repetitions as f64;
        let affordable = (time_max.as_secs_f64() / of_a_sample.max(1e-9)) as usize;
        affordable.max(SAMPLES_MIN).min(self.samples)
    }
}

/// The ORB of a side, and how it makes calls. Rows of a group are compared by their labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Label {
    pub(crate) peer: Peer,
    pub(crate) settings: Settings,
    pub(crate) invocation: Option<Invocation>,
    pub(crate) servant: Option<ServantKind>,
    /// Whether the side calls one object where other sides call many. Such a side has no row; the other rows
    /// have a ratio to it.
    pub(crate) calls_one: bool,
}

impl Label {
    pub(crate) fn of(peer: Peer, settings: Settings) -> Label {
        Label { peer, settings, invocation: None, servant: None, calls_one: false }
    }

    /// This ORB with default settings.
    pub(crate) fn ours() -> Label {
        Label::of(Peer::Ironorb, Settings::default())
    }

    /// Whether a row is of this ORB with these settings.
    pub(crate) fn is_of(&self, row: &Row) -> bool {
        row.is(&[("peer", &name(self.peer)), ("settings", self.settings.as_str())])
    }

    fn parameters(&self) -> Parameters {
        let mut all = parameters![peer = self.peer, settings = self.settings];
        all.extend(self.invocation.map(|invocation| ("invocation", name(invocation).into())));
        all.extend(self.servant.map(|servant| ("servant", name(servant).into())));
        all
    }

    /// The sides to which this one is compared besides the baseline, and the names of the ratios.
    fn rivals(&self) -> Vec<(&'static str, Label)> {
        let static_call = |_| Invocation::Sii;
        let mut rivals = vec![
            ("sii", Label { invocation: self.invocation.map(static_call), ..self.clone() }),
            ("static", Label { servant: self.servant.map(|_| ServantKind::Static), ..self.clone() }),
            ("one", Label { calls_one: true, invocation: self.invocation.map(static_call), ..self.clone() }),
            ("default", Label { settings: Settings::default(), ..self.clone() }),
        ];
        if self.peer == Peer::Ironorb {
            let of = |peer| Label { peer, settings: Settings::default(), ..self.clone() };
            rivals.extend([
                ("omniorb", of(Peer::Omniorb)),
                ("jacorb", of(Peer::Jacorb)),
                ("tao", of(Peer::Tao)),
            ]);
        }
        rivals.retain(|(_, rival)| rival != self);
        rivals
    }
}

/// A participant in a group.
pub(crate) struct Entrant<'a> {
    pub(crate) label: Label,
    /// Further parameters that identify its row.
    pub(crate) parameters: Parameters,
    pub(crate) side: Entry<'a>,
}

/// Calls of one kind: a row for each entrant, beside a baseline.
pub(crate) struct Group<'a> {
    /// The parameters that all rows have in common.
    pub(crate) parameters: Parameters,
    pub(crate) measure: Measure,
    pub(crate) contest: Contest,
    pub(crate) baseline: Box<dyn Side + 'a>,
    pub(crate) entrants: Vec<Entrant<'a>>,
}

impl<'a> Group<'a> {
    /// A group without entrants.
    pub(crate) fn new(
        parameters: Parameters,
        measure: Measure,
        contest: Contest,
        baseline: impl Side + 'a,
    ) -> Group<'a> {
        Group { parameters, measure, contest, baseline: Box::new(baseline), entrants: Vec::new() }
    }

    /// Adds an entrant that its label identifies.
    pub(crate) fn enter(&mut self, label: Label, side: Entry<'a>) {
        self.entrants.push(Entrant { label, parameters: Parameters::new(), side });
    }

    pub(crate) fn run(self) -> Result<Vec<Row>, BenchError> {
        let load = load();
        let mut labels = Vec::new();
        let mut sides: Vec<Entry<'a>> = vec![Ok(self.baseline)];
        for Entrant { label, parameters, side } in self.entrants {
            labels.push((label, parameters));
            sides.push(side);
        }
        let results = self.contest.run(&mut sides)?;
        drop(sides);
        let result = |wanted: &Label| {
            let place = labels.iter().position(|(label, _)| label == wanted)?;
            results[place + 1].as_ref().ok()
        };
        let row = |(label, own): &(Label, Parameters), subject: &Result<Repeated, String>| {
            let figures = |subject: &Repeated, raw: &Repeated| {
                let mut figures = vec![
                    ("raw".to_owned(), self.measure.figure(raw)),
                    ("subject".to_owned(), self.measure.figure(subject)),
                    self.measure.ratio(subject, raw, "raw"),
                ];
                for (name, rival) in label.rivals() {
                    figures.extend(result(&rival).map(|rival| self.measure.ratio(subject, rival, name)));
                }
                for (name, side) in [("raw_cpu_us", raw), ("cpu_us", subject)] {
                    figures.extend(side.busy_us().map(|us| (name.to_owned(), Figure::Number(us))));
                }
                figures.push(("load".to_owned(), Figure::Number(load)));
                figures
            };
            let outcome = match (&results[0], subject) {
                (Ok(raw), Ok(subject)) => Ok(figures(subject, raw)),
                (Err(why), _) | (_, Err(why)) => Err(format!("{}: {why}", label.peer.title())),
            };
            Row { parameters: [&self.parameters[..], own, &label.parameters()].concat(), outcome }
        };
        let rows = labels.iter().zip(&results[1..]).filter(|((label, _), _)| !label.calls_one);
        Ok(rows.map(|(label, subject)| row(label, subject)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Scripted<'a>(u64, &'a RefCell<Vec<u64>>);

    impl Side for Scripted<'_> {
        fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
            if self.0 == 0 {
                return Err(BenchError::Unusable("cannot".to_owned()));
            }
            nanos.fill(self.0);
            self.1.borrow_mut().push(self.0);
            Ok(())
        }

        fn is_peer(&self) -> bool {
            self.0 == 0
        }
    }

    fn contest(samples: usize, warm_up: usize, time_max: Option<Duration>) -> Contest {
        Contest { samples, repetitions: 2, calls_per_sample: 1, warm_up, time_max }
    }

    #[test]
    fn sides_take_turns_and_a_missing_one_says_why() {
        let seen = RefCell::new(Vec::new());
        let mut sides: Vec<Entry<'_>> = vec![
            Ok(Box::new(Scripted(10, &seen))),
            Err("not installed".to_owned()),
            Ok(Box::new(Scripted(15, &seen))),
            Ok(Box::new(Scripted(0, &seen))),
        ];
        let contest = contest(4, 1, None);
        let results = contest.run(&mut sides).unwrap();
        drop(sides);
        assert_eq!(seen.into_inner(), [10, 15, 10, 15, 15, 10]);
        let [Ok(baseline), Err(missing), Ok(subject), Err(failed)] = &results[..] else {
            panic!("four results")
        };
        assert_eq!(subject.over(baseline).median, 1.5);
        assert_eq!(missing, "not installed");
        assert!(failed.contains("cannot"), "{failed}");
    }

    #[test]
    fn turns_are_no_longer_than_they_may_be() {
        let second = Duration::from_secs(1);
        let contest = |time_max| Contest { repetitions: 10, ..contest(3000, 100, time_max) };
        assert_eq!(contest(None).samples_within(600 * second), 3000);
        // A millisecond for a sample of all sides: 10 s for a thousand samples in ten repetitions.
        assert_eq!(contest(Some(10 * second)).samples_within(second / 10), 1000);
        assert_eq!(contest(Some(60 * second)).samples_within(second / 10), 3000);
        assert_eq!(contest(Some(10 * second)).samples_within(600 * second), SAMPLES_MIN);
    }

    #[test]
    fn rows_are_compared_with_those_that_differ_in_one_thing() {
        let seen = RefCell::new(Vec::new());
        let (parameters, contest) = (parameters![row = "void"], contest(4, 1, None));
        let mut group = Group::new(parameters, Measure::NANOSECONDS, contest, Scripted(64, &seen));
        let ours = |invocation| Label { invocation: Some(invocation), ..Label::ours() };
        let one = Label { calls_one: true, ..ours(Invocation::Sii) };
        let peer = Label { peer: Peer::Omniorb, ..ours(Invocation::Sii) };
        let sides = [(ours(Invocation::Sii), 128), (ours(Invocation::DiiNew), 256), (one, 64), (peer, 512)];
        for (label, nanos) in sides {
            group.enter(label, Ok(Box::new(Scripted(nanos, &seen))));
        }
        group.enter(Label::of(Peer::Jacorb, Settings::default()), Err("not built".to_owned()));
        let rows = group.run().unwrap();
        assert_eq!(rows.len(), 4, "calls of one object have no row");
        let ratios = ["over_raw", "over_sii", "over_one", "over_omniorb", "over_default"];
        let of = |row: usize| ratios.map(|name| rows[row].median(name));
        assert_eq!(of(0), [Some(2.0), None, Some(2.0), Some(0.25), None]);
        assert_eq!(of(1), [Some(4.0), Some(2.0), Some(4.0), None, None]);
        assert_eq!(rows[3].outcome.as_ref().unwrap_err(), "JacORB: not built");
        assert_eq!(rows[1].text("invocation"), "dii-new");
    }
}
