//! The checker against records with known faults: it must notice each.

use std::time::Duration;

use ironorb_fan_out::history::{Entry, Happened, Wrong, check, check_budget};
use ironorb_fan_out::{
    Attempt, BudgetLimits, Ended, Executed, Moment, Order, Outcome, Part, Plan, Quorum, RaisedBy, Server,
    Step, Verdict,
};

use crate::world;

const SEEDS: u64 = 600;

/// In how many records at least a fault must have had a place.
const PLACES_MIN: u32 = 10;

/// Puts a fault into each record that has a place for it: the checker must find one of those expected.
#[track_caller]
fn notices(expected: &[Wrong], put: impl Fn(&mut Plan, &mut Vec<Entry>) -> Option<()>) {
    let mut places = 0;
    for seed in 0..SEEDS {
        let course = world::run(seed);
        for job in course.jobs.iter().filter(|_| course.is_eager) {
            let (mut plan, mut entries) = (job.plan.clone(), job.entries.clone());
            if put(&mut plan, &mut entries).is_some() {
                places += 1;
                let found = check(&plan, &entries).expect_err("a fault was put there").what;
                assert!(expected.contains(&found), "seed {seed}: {found:?} is not among {expected:?}");
            }
        }
    }
    assert!(places >= PLACES_MIN, "{places} places");
}

fn took(entry: &Entry) -> Option<Step> {
    match entry.what {
        Happened::Took(step) => Some(step),
        _ => None,
    }
}

/// The place of the first step of a kind.
fn first(entries: &[Entry], is_wanted: impl Fn(Step) -> bool) -> Option<usize> {
    entries.iter().position(|entry| took(entry).is_some_and(&is_wanted))
}

fn is_over(step: Step) -> bool {
    matches!(step, Step::Over(_))
}

/// The first part that was told something of a kind, and the place of that.
fn first_told(entries: &[Entry], is_wanted: impl Fn(Outcome) -> bool) -> Option<(usize, usize)> {
    entries.iter().enumerate().find_map(|(place, entry)| match took(entry) {
        Some(Step::Tell { part, outcome }) if is_wanted(outcome) => Some((place, part)),
        _ => None,
    })
}

#[test]
fn parts_that_are_told_twice() {
    notices(&[Wrong::ToldTwice], |_, entries| {
        let (place, _) = first_told(entries, |_| true)?;
        entries.insert(place, entries[place]);
        Some(())
    });
}

#[test]
fn parts_that_are_not_told() {
    notices(&[Wrong::NotTold, Wrong::CancelledWrongly], |_, entries| {
        // The last one: else what follows would have no cause.
        let place = entries.iter().rposition(|entry| matches!(took(entry), Some(Step::Tell { .. })))?;
        entries.remove(place);
        Some(())
    });
}

#[test]
fn attempts_that_are_left_uncancelled() {
    notices(&[Wrong::NotCancelled], |_, entries| {
        let place = first(entries, |step| matches!(step, Step::Cancel(_)))?;
        entries.remove(place);
        Some(())
    });
}

#[test]
fn attempts_that_are_cancelled_twice_or_too_early() {
    notices(&[Wrong::CancelledWrongly], |_, entries| {
        let place = first(entries, |step| matches!(step, Step::Cancel(_)))?;
        entries.insert(place, entries[place]);
        Some(())
    });
    notices(&[Wrong::CancelledWrongly], |_, entries| {
        let place = first(entries, |step| matches!(step, Step::Start { .. }))?;
        let Some(Step::Start { attempt, .. }) = took(&entries[place]) else { return None };
        entries.insert(place + 1, Entry { what: Happened::Took(Step::Cancel(attempt)), ..entries[place] });
        Some(())
    });
}

#[test]
fn attempts_that_start_after_the_end() {
    let late = |number| {
        Happened::Took(Step::Start { attempt: Attempt { part: 0, number }, server: Server::Another })
    };
    notices(&[Wrong::EndedTwice], |_, entries| {
        let place = first(entries, is_over)?;
        entries.insert(place + 1, Entry { what: late(1), ..entries[place] });
        Some(())
    });
    notices(&[Wrong::StartedLate], |plan, entries| {
        let place = first(entries, is_over).filter(|_| !plan.parts.is_empty())?;
        entries.insert(place, Entry { what: late(1), ..entries[place] });
        Some(())
    });
}

#[test]
fn jobs_that_do_not_end() {
    notices(&[Wrong::NotEnded], |_, entries| {
        let place = first(entries, is_over)?;
        entries.remove(place);
        Some(())
    });
}

#[test]
fn verdicts_that_nothing_bears_out() {
    for (was, says) in [
        (Verdict::Met, Verdict::CannotBeMet),
        (Verdict::Met, Verdict::Deadline),
        (Verdict::CannotBeMet, Verdict::Met),
        (Verdict::CannotBeMet, Verdict::GivenUp),
        (Verdict::Deadline, Verdict::Met),
        (Verdict::Deadline, Verdict::CannotBeMet),
        (Verdict::GivenUp, Verdict::Deadline),
    ] {
        notices(&[Wrong::WrongVerdict], |_, entries| {
            let place = first(entries, |step| step == Step::Over(was))?;
            // Given up and decided otherwise at once may be told either way.
            let given_up = entries[..place].iter().any(|entry| entry.what == Happened::GivenUp);
            let is_clear = given_up == (was == Verdict::GivenUp);
            entries[place].what = Happened::Took(Step::Over(says));
            is_clear.then_some(())
        });
    }
}

#[test]
fn outcomes_that_have_not_happened() {
    let is = |wanted: Outcome| move |outcome: Outcome| outcome == wanted;
    let with = |change: fn(Outcome) -> Option<Outcome>| {
        notices(&[Wrong::WrongOutcome], move |_, entries| {
            let (place, part) = first_told(entries, |outcome| change(outcome).is_some())?;
            let Some(Step::Tell { outcome, .. }) = took(&entries[place]) else { return None };
            entries[place].what = Happened::Took(Step::Tell { part, outcome: change(outcome)? });
            Some(())
        });
    };
    with(|outcome| match outcome {
        Outcome::Result(attempt) => Some(Outcome::Exception(attempt, RaisedBy::Application)),
        _ => None,
    });
    with(|outcome| match outcome {
        Outcome::Result(attempt) => Some(Outcome::Result(Attempt { number: attempt.number + 1, ..attempt })),
        _ => None,
    });
    with(|outcome| match outcome {
        Outcome::Exception(_, RaisedBy::System) => Some(Outcome::Unknown),
        Outcome::Exception(_, RaisedBy::Application) => Some(Outcome::Unknown),
        _ => None,
    });
    with(|outcome| {
        (outcome == Outcome::Cancelled(Executed::Maybe)).then_some(Outcome::Cancelled(Executed::No))
    });
    with(|outcome| {
        (outcome == Outcome::Cancelled(Executed::No)).then_some(Outcome::Cancelled(Executed::Maybe))
    });
    // A part that has failed for certain, and one of which nobody knows.
    notices(&[Wrong::WrongOutcome], |_, entries| {
        let (place, part) = first_told(entries, is(Outcome::Unknown))?;
        let outcome = Outcome::Exception(Attempt { part, number: 0 }, RaisedBy::System);
        entries[place].what = Happened::Took(Step::Tell { part, outcome });
        Some(())
    });
}

#[test]
fn answers_that_count_though_they_are_late() {
    notices(&[Wrong::WrongOutcome, Wrong::NotEnded, Wrong::StartedLate], |plan, entries| {
        let (place, _) = first_told(entries, |outcome| matches!(outcome, Outcome::Result(_)))?;
        let begun = entries.iter().find(|entry| entry.what == Happened::Begun)?.at;
        let taken = entries[place].at.as_nanos() - begun.as_nanos();
        // The earlier ones end the job before.
        plan.quorum = Quorum::All;
        plan.time = Some(Duration::from_nanos(taken));
        Some(())
    });
}

#[test]
fn parts_that_are_executed_twice() {
    notices(&[Wrong::ExecutedTwice], |plan, entries| {
        let place = entries.iter().position(|entry| match entry.what {
            Happened::Executed(attempt) => !plan.parts[attempt.part].may_be_repeated,
            _ => false,
        })?;
        entries.insert(place, entries[place]);
        Some(())
    });
}

/// A retry of a part that must not be repeated follows an attempt that was certainly not executed.
#[test]
fn parts_that_are_repeated_though_they_may_have_been_executed() {
    notices(&[Wrong::Repeated], |plan, entries| {
        let place = first(entries, |step| match step {
            Step::Start { attempt, .. } => attempt.number > 0 && !plan.parts[attempt.part].may_be_repeated,
            _ => false,
        })?;
        let Some(Step::Start { attempt, .. }) = took(&entries[place]) else { return None };
        let failed = entries[..place].iter_mut().find(|entry| match entry.what {
            Happened::Ended(ended, _) => ended.part == attempt.part,
            _ => false,
        })?;
        let Happened::Ended(ended, _) = failed.what else { return None };
        failed.what = Happened::Ended(ended, Ended::MaybeExecuted);
        Some(())
    });
}

/// The place and the attempt of a hedge: one that starts while another attempt of its part is under way.
fn hedge(entries: &[Entry]) -> Option<Attempt> {
    entries.iter().enumerate().find_map(|(place, entry)| match took(entry) {
        Some(Step::Start { attempt, .. }) if attempt.number > 0 => {
            let has_ended = |number| {
                let is_it = |entry: &Entry| match entry.what {
                    Happened::Ended(ended, _) => ended == Attempt { number, ..attempt },
                    _ => false,
                };
                entries[..place].iter().any(is_it)
            };
            (0..attempt.number).any(|number| !has_ended(number)).then_some(attempt)
        }
        _ => None,
    })
}

#[test]
fn hedges_that_are_not_allowed_or_too_early() {
    notices(&[Wrong::Repeated], |plan, entries| {
        let hedge = hedge(entries)?;
        plan.parts[hedge.part].may_be_repeated = false;
        Some(())
    });
    notices(&[Wrong::HedgedEarly], |plan, entries| {
        let hedge = hedge(entries)?;
        plan.parts[hedge.part].hedge_after = None;
        Some(())
    });
    notices(&[Wrong::HedgedEarly], |plan, entries| {
        let hedge = hedge(entries)?;
        plan.parts[hedge.part].hedge_after = Some(Duration::from_secs(1));
        Some(())
    });
}

#[test]
fn more_attempts_than_servers() {
    notices(&[Wrong::ServersUsedUp], |plan, entries| {
        let place = first(entries, |step| matches!(step, Step::Start { attempt, .. } if attempt.number > 0))?;
        let Some(Step::Start { attempt, .. }) = took(&entries[place]) else { return None };
        plan.parts[attempt.part].servers = attempt.number;
        Some(())
    });
}

#[test]
fn attempts_with_wrong_numbers_or_servers() {
    let with = |change: fn(Attempt, Server) -> Step| {
        notices(&[Wrong::Misnumbered], move |_, entries| {
            let place = first(entries, |step| matches!(step, Step::Start { .. }))?;
            let Some(Step::Start { attempt, server }) = took(&entries[place]) else { return None };
            entries[place].what = Happened::Took(change(attempt, server));
            Some(())
        });
    };
    with(|attempt, _| Step::Start { attempt, server: Server::Another });
    with(|attempt, server| Step::Start { attempt: Attempt { number: 1, ..attempt }, server });
}

#[test]
fn parts_that_are_out_of_turn() {
    notices(&[Wrong::OutOfTurn], |plan, entries| {
        let second = first(entries, |step| matches!(step, Step::Start { attempt, .. } if attempt.part == 1))?;
        let (told, _) = first_told(entries, |_| true)?;
        (plan.order == Order::AtOnce && second < told).then(|| plan.order = Order::InTurn)
    });
    notices(&[Wrong::OutOfTurn], |plan, entries| {
        let parts = plan.parts.len();
        let _ = first(entries, |step| matches!(step, Step::Start { .. }))?;
        (plan.order == Order::InTurn && parts > 1).then(|| plan.order = Order::AtOnce)
    });
}

#[test]
fn a_third_hedge() {
    let part = Part { may_be_repeated: true, servers: 9, hedge_after: Some(Duration::ZERO), time: None };
    let plan = Plan { parts: vec![part], quorum: Quorum::All, order: Order::AtOnce, time: None };
    let at = Moment::from_nanos(0);
    let start = |number: u32| {
        let server = if number == 0 { Server::FirstChoice } else { Server::Another };
        Entry { at, what: Happened::Took(Step::Start { attempt: Attempt { part: 0, number }, server }) }
    };
    let entries = [Entry { at, what: Happened::Begun }, start(0), start(1), start(2), start(3)];
    let found = check(&plan, &entries).expect_err("there are three hedges");
    assert_eq!((found.entry, found.what), (4, Wrong::HedgedTooOften));
}

#[test]
fn clients_that_exceed_their_budget() {
    let mut places = 0;
    for seed in 0..SEEDS {
        let course = world::run(seed);
        let further = course.budget.counts().further;
        if further > 0 {
            places += 1;
            let less = BudgetLimits { share: 0.0, burst: further as u32 - 1 };
            let found = check_budget(less, &course.steps).expect_err("there is one too many");
            assert_eq!(found.what, Wrong::OverBudget);
        }
    }
    assert!(places >= PLACES_MIN, "{places} places");
}
