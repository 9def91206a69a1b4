//! How everything is measured: a baseline and its entrants take turns, so that whatever disturbs the machine disturbs all
//! of them, and ratios are between turns of one repetition.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::error::BenchError;
use crate::machine::load;
use crate::row::{Figure, Measure, Parameters, Row, parameters};
use crate::settings::Settings;
use crate::statistics::{Repeated, turns};
use crate::variant::{Invocation, Peer, ServantKind, name};

/// One call, or one batch of them.
pub(crate) type Sample<'a> = Box<dyn FnMut() -> Result<(), BenchError> + 'a>;

/// A sample that may be taken on another thread.
pub(crate) type SendSample = Box<dyn FnMut() -> Result<(), BenchError> + Send>;

/// Takes samples again and again. Any closure that takes one is a side, whose time is that of the wall clock.
pub(crate) trait Side {
    /// Takes as many samples - each a call, or a batch of them - as there are places, and tells the nanoseconds of each.
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError>;

    /// The processor time that all of its processes have taken so far, if that is of interest.
    fn busy(&self) -> Option<Duration> {
        None
    }

    /// Whether it is another ORB's: what that cannot do is told in its row.
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

/// A side whose samples are batches, timed by what the thread has of its processor: what waits for nothing is not disturbed
/// by other users of the processor.
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

fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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

/// A side, or why there is none.
pub(crate) type Entry<'a> = Result<Box<dyn Side + 'a>, String>;

impl Contest {
    /// One batch a turn, and one to warm up.
    pub(crate) fn of_batches(repetitions: usize, batch: usize) -> Contest {
        Contest { samples: 1, repetitions, calls_per_sample: batch, warm_up: 1, time_max: None }
    }

    /// What each side took, in their order, or why it took no part. The first is the baseline.
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
                    result.calls.add_busy(after.saturating_sub(before));
                }
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

/// Whose calls, and how they are made. Rows of one group are compared by it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Label {
    pub(crate) peer: Peer,
    pub(crate) settings: Settings,
    pub(crate) invocation: Option<Invocation>,
    pub(crate) servant: Option<ServantKind>,
    /// Calls of one object, where the others call many. Such a side has no row, but a ratio in those of the others.
    pub(crate) calls_one: bool,
}

impl Label {
    pub(crate) fn of(peer: Peer, settings: Settings) -> Label {
        Label { peer, settings, invocation: None, servant: None, calls_one: false }
    }

    /// This ORB as it comes.
    pub(crate) fn ours() -> Label {
        Label::of(Peer::Ironorb, Settings::default())
    }

    fn parameters(&self) -> Parameters {
        let mut all = parameters![peer = self.peer, settings = self.settings];
        all.extend(self.invocation.map(|invocation| ("invocation", name(invocation).into())));
        all.extend(self.servant.map(|servant| ("servant", name(servant).into())));
        all
    }

    /// With which others it is compared besides the baseline, and by which names.
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
            rivals.extend([("omniorb", of(Peer::Omniorb)), ("jacorb", of(Peer::Jacorb))]);
        }
        rivals.retain(|(_, rival)| rival != self);
        rivals
    }
}

/// Who takes part in a group.
pub(crate) struct Entrant<'a> {
    pub(crate) label: Label,
    /// What tells its row from those of the other entrants besides.
    pub(crate) parameters: Parameters,
    pub(crate) side: Entry<'a>,
}

/// Calls of one kind: a row for each entrant, beside a baseline.
pub(crate) struct Group<'a> {
    /// What its rows have in common.
    pub(crate) parameters: Parameters,
    pub(crate) measure: Measure,
    pub(crate) contest: Contest,
    pub(crate) baseline: Box<dyn Side + 'a>,
    pub(crate) entrants: Vec<Entrant<'a>>,
}

impl<'a> Group<'a> {
    /// Adds an entrant that its label tells from the others.
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
                    figures.extend(side.calls.busy_us().map(|us| (name.to_owned(), Figure::Number(us))));
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
                return Err(BenchError::Plot("cannot".to_owned()));
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
        assert_eq!(contest.calls(), 9);
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
        // A millisecond for a sample of all sides: 10 s for a thousand in ten repetitions.
        assert_eq!(contest(Some(10 * second)).samples_within(second / 10), 1000);
        assert_eq!(contest(Some(60 * second)).samples_within(second / 10), 3000);
        assert_eq!(contest(Some(10 * second)).samples_within(600 * second), SAMPLES_MIN);
    }

    #[test]
    fn rows_are_compared_with_those_that_differ_in_one_thing() {
        let seen = RefCell::new(Vec::new());
        let mut group = Group {
            parameters: parameters![row = "void"],
            measure: Measure::NANOSECONDS,
            contest: contest(4, 1, None),
            baseline: Box::new(Scripted(64, &seen)),
            entrants: Vec::new(),
        };
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
