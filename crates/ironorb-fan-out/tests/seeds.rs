//! Many clients, each from a seed: whatever happens, all promises are kept.

use std::ops::Range;

use ironorb_fan_out::history::{Entry, check, check_budget};
use ironorb_fan_out::{Executed, Outcome, RaisedBy, Step, Verdict};

use crate::world;

const SEEDS: u64 = 20_000;

/// How often each thing has happened: what never does is not tested.
#[derive(Debug, Default)]
struct Reached {
    met: u64,
    cannot_be_met: u64,
    deadlines: u64,
    given_up: u64,
    results: u64,
    exceptions: u64,
    not_executed: u64,
    cancelled: u64,
    never_sent: u64,
    unknown: u64,
    cancels: u64,
    further: u64,
    refused: u64,
}

#[test]
fn whatever_happens_all_promises_are_kept() {
    let mut reached = Reached::default();
    let seeds = seeds(SEEDS);
    let (number, is_one) = (seeds.end - seeds.start, seeds.end - seeds.start == 1);
    for seed in seeds {
        let course = world::run(seed);
        check_budget(course.limits, &course.steps).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        for (number, job) in course.jobs.iter().enumerate() {
            if let Err(wrong) = check(&job.plan, &job.entries) {
                let until = job.entries.iter().take(wrong.entry + 1);
                let until: String = until.map(|Entry { at, what }| format!("\n{at:?} {what:?}")).collect();
                panic!("seed {seed}, job {number}: {wrong} of {:?}{until}", job.plan);
            }
        }
        for step in &course.steps {
            reached.note(*step);
        }
        reached.further += course.budget.counts().further;
        reached.refused += course.budget.counts().refused;
    }
    let all = format!("{reached:?}");
    let Reached { met, cannot_be_met, deadlines, given_up, results, exceptions, not_executed, .. } = reached;
    let Reached { cancelled, never_sent, unknown, cancels, further, refused, .. } = reached;
    let verdicts = [met, cannot_be_met, deadlines, given_up];
    let outcomes =
        [results, exceptions, not_executed, cancelled, never_sent, unknown, cancels, further, refused];
    assert!(is_one || verdicts.into_iter().chain(outcomes).all(|times| times >= number / 40), "{all}");
}

/// The seed in `IRONORB_TEST_SEED`, or `IRONORB_TEST_SEEDS` times as many as the gate has, of which the first
/// `IRONORB_TEST_SEEDS_DONE` times as many are left out.
pub(crate) fn seeds(in_gate: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|number: String| number.parse::<u64>().ok());
    match number("IRONORB_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let done = number("IRONORB_TEST_SEEDS_DONE").unwrap_or(0);
            let end = number("IRONORB_TEST_SEEDS").unwrap_or(done + 1);
            assert!(done < end, "IRONORB_TEST_SEEDS_DONE leaves no seeds");
            in_gate * done..in_gate * end
        }
    }
}

/// What the machine says of a job when asked is what its steps have told.
#[test]
fn what_a_job_is_asked_is_what_it_has_told() {
    for seed in 0..500 {
        let course = world::run(seed);
        let mut over = 0;
        for job in &course.jobs {
            for entry in &job.entries {
                match entry.what {
                    ironorb_fan_out::history::Happened::Took(Step::Tell { part, outcome }) => {
                        assert_eq!(job.job.outcome(part), Some(outcome), "seed {seed}");
                    }
                    ironorb_fan_out::history::Happened::Took(Step::Over(verdict)) => {
                        assert_eq!(job.job.verdict(), Some(verdict), "seed {seed}");
                        assert_eq!(job.job.wakes_at(), None, "seed {seed}");
                        over += 1;
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(over, course.jobs.len(), "seed {seed}");
        let counts = course.budget.counts();
        let starts = |is_first: bool| {
            let of = |step: &&Step| matches!(step, Step::Start { attempt, .. } if (attempt.number == 0) == is_first);
            course.steps.iter().filter(of).count() as u64
        };
        assert_eq!((counts.first, counts.further), (starts(true), starts(false)), "seed {seed}");
    }
}

impl Reached {
    fn note(&mut self, step: Step) {
        let counter = match step {
            Step::Start { .. } => return,
            Step::Cancel(_) => &mut self.cancels,
            Step::Over(Verdict::Met) => &mut self.met,
            Step::Over(Verdict::CannotBeMet) => &mut self.cannot_be_met,
            Step::Over(Verdict::Deadline) => &mut self.deadlines,
            Step::Over(Verdict::GivenUp) => &mut self.given_up,
            Step::Tell { outcome, .. } => match outcome {
                Outcome::Result(_) => &mut self.results,
                Outcome::Exception(_, RaisedBy::Application) => &mut self.exceptions,
                Outcome::Exception(_, RaisedBy::System) => &mut self.not_executed,
                Outcome::Cancelled(Executed::Maybe) => &mut self.cancelled,
                Outcome::Cancelled(Executed::No) => &mut self.never_sent,
                Outcome::Unknown => &mut self.unknown,
            },
        };
        *counter += 1;
    }
}
