//! The checker of clients, daemon and servers against records with known faults: it must notice each.

use std::time::Duration;

use ironorb_fan_out::ledger::{Entry, ExecutionId, Happened, Left, PartId, ToldAs, Wrong, check};

use crate::network;

const SEEDS: u64 = 300;

/// In how many records at least a fault must have had a place.
const PLACES_MIN: u32 = 10;

/// Puts a fault into each record that has a place for it: the checker must find what is expected.
#[track_caller]
fn notices(expected: Wrong, put: impl Fn(&mut Vec<Entry>, &mut Left) -> Option<()>) {
    let mut places = 0;
    for seed in 0..SEEDS {
        let course = network::run(seed);
        let (mut entries, mut left) = (course.entries, course.left);
        assert_eq!(check(&entries, left), Ok(()), "seed {seed}");
        if put(&mut entries, &mut left).is_some() {
            places += 1;
            let found = check(&entries, left).expect_err("a fault was put there").what;
            assert_eq!(found, expected, "seed {seed}");
        }
    }
    assert!(places >= PLACES_MIN, "{places} places");
}

/// The first entry of a kind, and its place.
fn first<T>(entries: &[Entry], wanted: impl Fn(Happened) -> Option<T>) -> Option<(usize, T)> {
    entries.iter().enumerate().find_map(|(place, entry)| Some((place, wanted(entry.what)?)))
}

fn told(what: Happened) -> Option<(PartId, ToldAs)> {
    match what {
        Happened::Told(part, told) => Some((part, told)),
        _ => None,
    }
}

fn executed(what: Happened) -> Option<(PartId, ExecutionId)> {
    match what {
        Happened::Executed(part, execution) => Some((part, execution)),
        _ => None,
    }
}

fn after(entries: &mut Vec<Entry>, place: usize, what: Happened) {
    entries.insert(place + 1, Entry { what, ..entries[place] });
}

#[test]
fn parts_that_are_told_twice_or_not() {
    notices(Wrong::ToldTwice, |entries, _| {
        let (place, _) = first(entries, told)?;
        entries.insert(place, entries[place]);
        Some(())
    });
    notices(Wrong::NotTold, |entries, _| {
        let (place, _) = first(entries, told)?;
        entries.remove(place);
        Some(())
    });
}

#[test]
fn jobs_that_end_late_or_not() {
    let is_over = |what| matches!(what, Happened::JobOver(_)).then_some(());
    notices(Wrong::NotTold, |entries, _| {
        let (place, ()) = first(entries, is_over)?;
        entries.remove(place);
        Some(())
    });
    notices(Wrong::Late, |entries, _| {
        let place = entries.iter().position(|entry| match entry.what {
            Happened::JobBegun { ends_by: Some(by), .. } => by > entry.at,
            _ => false,
        })?;
        let Happened::JobBegun { job, .. } = entries[place].what else { return None };
        let over = entries.iter().position(|entry| entry.what == Happened::JobOver(job))?;
        // One tick less than it has taken.
        let taken = entries[over].at.as_nanos().checked_sub(entries[place].at.as_nanos() + 1)?;
        let ends_by = Some(entries[place].at.after(Duration::from_nanos(taken)));
        entries[place].what = Happened::JobBegun { job, ends_by };
        Some(())
    });
}

#[test]
fn parts_that_are_sent_after_they_were_told() {
    notices(Wrong::SentAfterTold, |entries, _| {
        let (place, (part, _)) = first(entries, told)?;
        after(entries, place, Happened::Sent(part));
        Some(())
    });
}

#[test]
fn parts_that_are_executed_twice() {
    let once = |entries: &[Entry], part| {
        let begun = Happened::PartBegun { part, may_be_repeated: false };
        entries.iter().any(|entry| entry.what == begun)
    };
    notices(Wrong::ExecutedTwice, |entries, _| {
        let (place, (part, _)) =
            first(entries, |what| executed(what).filter(|(part, _)| once(entries, *part)))?;
        after(entries, place, Happened::Executed(part, ExecutionId(u64::MAX)));
        Some(())
    });
}

#[test]
fn answers_from_nowhere() {
    notices(Wrong::AnswerFromNowhere, |entries, _| {
        let answer = |what| told(what).filter(|(_, told)| matches!(told, ToldAs::Answer(_)));
        let (place, (part, _)) = first(entries, answer)?;
        entries[place].what = Happened::Told(part, ToldAs::Answer(ExecutionId(u64::MAX)));
        Some(())
    });
}

/// Before the caller was told, or after.
#[test]
fn parts_that_are_executed_though_they_were_told_not_to_be() {
    let not = |what| told(what).filter(|(_, told)| *told == ToldAs::NotExecuted);
    notices(Wrong::ExecutedAllTheSame, |entries, _| {
        let (place, (part, _)) = first(entries, not)?;
        after(entries, place, Happened::Executed(part, ExecutionId(0)));
        Some(())
    });
    notices(Wrong::ExecutedAllTheSame, |entries, _| {
        let (place, (part, _)) = first(entries, not)?;
        entries.insert(place, Entry { what: Happened::Executed(part, ExecutionId(0)), ..entries[place] });
        Some(())
    });
}

#[test]
fn daemons_that_ask_late() {
    notices(Wrong::AskedLate, |entries, _| {
        let asked = |what| match what {
            Happened::Asked(task) => Some(task),
            _ => None,
        };
        let (place, asked) = first(entries, asked)?;
        let at = entries[place].at;
        let taken = entries.iter_mut().find_map(|entry| match &mut entry.what {
            Happened::Taken { task, ends_by } if *task == asked => Some(ends_by),
            _ => None,
        })?;
        *taken = Some(at);
        Some(())
    });
}

#[test]
fn daemons_that_do_not_answer() {
    let answered = |what| matches!(what, Happened::Answered(_)).then_some(());
    notices(Wrong::NotAnswered, |entries, _| {
        let dies = entries.iter().any(|entry| matches!(entry.what, Happened::Killed | Happened::Drained));
        let (place, ()) = first(entries, answered).filter(|_| !dies)?;
        entries.remove(place);
        Some(())
    });
    notices(Wrong::DrainedTooEarly, |entries, _| {
        let drained = entries.iter().position(|entry| entry.what == Happened::Drained)?;
        let before = |what: Happened| matches!(what, Happened::Answered(_) | Happened::Killed);
        let last = entries[..drained].iter().rposition(|entry| before(entry.what))?;
        if !matches!(entries[last].what, Happened::Answered(_)) {
            return None;
        }
        entries.remove(last);
        Some(())
    });
}

#[test]
fn what_is_left_at_the_end() {
    for leak in [
        |left: &mut Left| left.queued += 1,
        |left: &mut Left| left.busy += 1,
        |left: &mut Left| left.tokens += 1,
        |left: &mut Left| left.unmade_attempts += 1,
    ] {
        notices(Wrong::LeftOver, |_, left| {
            leak(left);
            Some(())
        });
    }
}
