//! The checker finds what is wrong, and nothing else.

use std::time::Duration;

use ironorb_cache::Moment;
use ironorb_cache::history::{History, SeenRead, Wrong};

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn read(reader: usize, value: u32, from: u64, to: u64, lag: u64) -> SeenRead<u8, u32> {
    let (from, to, lag) = (at(from), at(to), Duration::from_nanos(lag));
    SeenRead { reader, object: 0, value, from, to, lag, missed_max: None }
}

/// Values 1, 2 and 3 from 10, 20 and 30 on.
fn written() -> History<u8, u32> {
    let mut history = History::default();
    for value in 1..=3 {
        history.wrote(&0, value, at(u64::from(value) * 10));
    }
    history
}

fn wrong(reads: &[SeenRead<u8, u32>]) -> Vec<Wrong> {
    let mut history = written();
    reads.iter().for_each(|one| history.read(one.clone()));
    history.violations().iter().map(|violation| violation.what).collect()
}

#[test]
fn a_value_may_be_as_old_as_the_lag_and_no_older() {
    // The value 1 was there before 20, and not at 20.
    assert_eq!(wrong(&[read(0, 1, 24, 24, 5)]), []);
    assert_eq!(wrong(&[read(0, 1, 25, 25, 5)]), [Wrong::TooOld(Duration::ZERO)]);
    assert_eq!(wrong(&[read(0, 1, 28, 28, 5)]), [Wrong::TooOld(Duration::from_nanos(3))]);
    // A read without a lag, from before to after the next write.
    assert_eq!(wrong(&[read(0, 1, 19, 22, 0)]), []);
    assert_eq!(wrong(&[read(0, 2, 19, 22, 0)]), []);
    assert_eq!(wrong(&[read(0, 1, 20, 22, 0)]), [Wrong::TooOld(Duration::ZERO)]);
}

#[test]
fn a_value_misses_so_many_writes_and_no_more() {
    let missing = |value, from, most| {
        let bounded = SeenRead { missed_max: Some(most), ..read(0, value, from, from, 99) };
        wrong(&[bounded])
    };
    // At 19 there is one write, and at 30 there are three.
    assert_eq!((missing(1, 19, 0), missing(1, 29, 1), missing(1, 30, 2)), (vec![], vec![], vec![]));
    assert_eq!((missing(1, 20, 0), missing(1, 30, 1)), (vec![Wrong::Missed(1)], vec![Wrong::Missed(1)]));
    assert_eq!((missing(1, 30, 0), missing(2, 30, 0)), (vec![Wrong::Missed(2)], vec![Wrong::Missed(1)]));
}

#[test]
fn a_value_is_from_no_future_and_from_nowhere() {
    assert_eq!(wrong(&[read(0, 2, 15, 19, 99)]), [Wrong::FromTheFuture]);
    assert_eq!(wrong(&[read(0, 7, 15, 19, 99)]), [Wrong::NeverWritten]);
    assert_eq!(wrong(&[read(0, 3, 1_000, 1_000, 0)]), [], "the last value lasts");
}

#[test]
fn a_removed_object_has_no_value() {
    let mut history = written();
    history.removed(&0, at(40));
    history.read(read(0, 3, 45, 45, 10));
    history.read(read(0, 3, 45, 45, 5));
    let wrong: Vec<_> = history.violations().iter().map(|violation| violation.what).collect();
    assert_eq!(wrong, [Wrong::TooOld(Duration::ZERO)]);
}

#[test]
fn a_reader_goes_backwards_only_by_itself_and_one_after_the_other() {
    assert_eq!(wrong(&[read(0, 2, 25, 25, 99), read(0, 1, 26, 26, 99)]), [Wrong::Backwards]);
    assert_eq!(wrong(&[read(0, 2, 25, 25, 99), read(1, 1, 26, 26, 99)]), []);
    // At the same time.
    assert_eq!(wrong(&[read(0, 2, 20, 30, 99), read(0, 1, 25, 31, 99)]), []);
}

#[test]
fn a_writer_reads_its_own_write() {
    let with = |told: u64, reader| {
        let mut history = written();
        history.told(7, &0, 2, at(told));
        history.read(read(reader, 1, 25, 25, 99));
        history.violations().iter().map(|violation| violation.what).collect::<Vec<_>>()
    };
    assert_eq!(with(24, 7), [Wrong::NotOwnWrite]);
    assert_eq!((with(26, 7), with(24, 8)), (vec![], vec![]));
}

/// Against a search of all instants.
#[test]
fn the_bound_is_what_a_search_of_all_instants_finds() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut kinds = [0; 2];
    for _ in 0..20_000 {
        let mut history = History::default();
        let mut instant = 0;
        let writes: Vec<_> = (0..rng.u32(1..5))
            .map(|value| {
                instant += rng.u64(1..6);
                history.wrote(&0, value, at(instant));
                (value, instant)
            })
            .collect();
        let (value, from, lag) = (rng.u32(0..5), rng.u64(0..25), rng.u64(0..8));
        let to = from + rng.u64(0..4);
        history.read(read(0, value, from, to, lag));
        let state =
            |instant: u64| writes.iter().rev().find(|(_, at)| *at <= instant).map(|(value, _)| *value);
        let is_good = (from.saturating_sub(lag)..=to).any(|instant| state(instant) == Some(value));
        assert_eq!(history.violations().is_empty(), is_good, "{writes:?} {value} [{from} - {lag}, {to}]");
        kinds[usize::from(is_good)] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 1_000), "{kinds:?}");
}
