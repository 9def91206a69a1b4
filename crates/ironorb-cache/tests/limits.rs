//! What is kept has an end.

use std::time::Duration;

use ironorb_cache::{
    Answer, ClientLimits, EntryId, Filled, Kind, Members, Miss, Position, Read, ServerLimits, Terms,
};

use super::places::{LAG, Reader, Site, at};

fn site(limits: ServerLimits) -> Site {
    Site::new(limits, Terms::default(), 10)
}

fn reader_of(site: &mut Site, entries_max: usize) -> Reader {
    Reader::new(site, ClientLimits { entries_max, ..ClientLimits::default() })
}

#[test]
fn a_client_holds_so_many_objects_and_no_more() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 3);
    for object in 0..5 {
        reader.fill(&mut site, object, at(1));
    }
    assert_eq!(reader.client.len(), 3);
    let held: Vec<_> = (0..5).map(|object| reader.read(object, at(2)).is_ok()).collect();
    assert_eq!(held, [false, false, true, true, true]);
}

#[test]
fn a_book_that_is_full_drops_the_oldest_and_says_so_first() {
    let mut site = site(ServerLimits { held_max: 2, ..ServerLimits::default() });
    let mut reader = reader_of(&mut site, 10);
    for object in 0..3 {
        reader.fill(&mut site, object, at(1));
    }
    assert_eq!([0, 1, 2].map(|object| site.server.holders(&object)), [0, 1, 1]);
    // The write to what was dropped is told of to nobody, but the drop is, before anything renews the rest.
    site.write(0, Members::ALL, 1);
    reader.renew(&mut site, at(2));
    assert_eq!(reader.read(0, at(3)), Err(Miss::NotHeld));
    assert_eq!(reader.read(1, at(3)), Ok([100; 2]));
}

#[test]
fn a_session_whose_client_never_asks_ends() {
    let limits = ServerLimits { held_max: 1, dropped_max: 3, ..ServerLimits::default() };
    let mut site = site(limits);
    let mut reader = reader_of(&mut site, 10);
    for object in 0..5 {
        reader.fill(&mut site, object, at(1));
    }
    assert_eq!(site.server.sessions(), 0);
    let probe = reader.probe(at(2));
    let answer = site.probe(&probe);
    assert!(matches!(answer, Answer::Unknown { .. }));
    reader.answered(answer, at(2));
    assert_eq!((reader.client.session(), reader.client.len()), (None, 0));
}

#[test]
fn one_session_too_many_ends_the_one_that_was_silent_longest() {
    let mut site = site(ServerLimits { sessions_max: 2, ..ServerLimits::default() });
    let mut readers: Vec<_> = (0..2).map(|_| reader_of(&mut site, 10)).collect();
    for reader in &mut readers {
        reader.fill(&mut site, 0, at(1));
    }
    readers[0].renew(&mut site, at(2));
    let _third = reader_of(&mut site, 10);
    assert_eq!((site.server.sessions(), site.server.holders(&0)), (2, 1));
    for (reader, is_known) in readers.iter_mut().zip([true, false]) {
        reader.renew(&mut site, at(3));
        assert_eq!(reader.client.session().is_some(), is_known);
    }
}

/// A client remembers few probes. Those without an answer leave room for the others, so that the answer to one that waits for news
/// is taken however many come to nothing meanwhile.
#[test]
fn probes_that_come_to_nothing_are_forgotten() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    reader.fill(&mut site, 0, at(1));
    let waits = reader.probe(at(1));
    for _ in 0..1_000 {
        let probe = reader.probe(at(2));
        reader.client.give_up(probe.token);
        assert_eq!(reader.client.probes_out(), 1);
    }
    site.write(0, Members::ALL, 7);
    let (answer, late) = (site.probe(&waits), reader.probe(at(3)));
    reader.answered(answer, at(3));
    assert_eq!((reader.read(0, at(3)), reader.client.probes_out()), (Ok([7; 2]), 1));
    // What is given up has no answer.
    reader.client.give_up(late.token);
    site.write(0, Members::ALL, 8);
    let answer = site.probe(&late);
    reader.answered(answer, at(3));
    assert_eq!((reader.read(0, at(3)), reader.client.probes_out()), (Ok([7; 2]), 0));
    // Of those that nobody gives up, the last ones are remembered.
    let probes: Vec<_> = (0..1_000).map(|_| reader.probe(at(4))).collect();
    assert!(reader.client.probes_out() <= 64);
    let answer = site.probe(&probes[999]);
    reader.answered(answer, at(4));
    assert_eq!(reader.read(0, at(4)), Ok([8; 2]));
}

#[test]
fn a_clock_that_runs_backwards_proves_nothing() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    reader.fill(&mut site, 0, at(1_000));
    assert!(reader.read(0, at(1_000)).is_ok());
    let late = reader.probe(at(1_001));
    assert_eq!(reader.read(0, at(999)), Err(Miss::NotHeld));
    // Nor does an answer to what left before.
    reader.fill(&mut site, 0, at(999));
    let answer = site.probe(&late);
    reader.answered(answer, at(999));
    match reader.look(0, Duration::MAX, Position::START, at(1_002)) {
        Read::Hit { age, .. } => assert_eq!(age, Duration::from_nanos(3)),
        other @ Read::Miss(_) => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_there_is_not_held() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    assert_eq!(reader.read(3, at(1)), Err(Miss::NotHeld));
    let fill = reader.ask(77, at(1));
    assert_eq!(reader.read(77, at(1)), Err(Miss::Filling));
    assert!(!reader.take(77, (Filled::Refused { of: fill.of, token: fill.token }, None), at(2)));
    assert_eq!((reader.client.len(), reader.read(77, at(2))), (0, Err(Miss::NotHeld)));
}

/// A driver may be unable to put values into a place, because they cannot be read. Others are as they were.
#[test]
fn what_cannot_be_put_is_not_held() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    [0, 1].into_iter().for_each(|object| reader.fill(&mut site, object, at(1)));
    for (members, now) in [(Members::ALL, at(2)), (Members::one(0), at(3))] {
        for object in [0, 1] {
            site.write(object, members, 7);
        }
        let probe = reader.probe(now);
        let answer = site.probe(&probe);
        let mut wanted: Vec<_> = reader.client.wanted(&answer).iter().map(|(entry, ..)| *entry).collect();
        wanted.sort();
        assert_eq!(wanted, [EntryId(0), EntryId(1)]);
        reader.places.unreadable.insert(EntryId(0));
        reader.answered(answer.clone(), now);
        assert!(reader.client.wanted(&answer).is_empty(), "it has been taken");
        assert_eq!((reader.read(0, now), reader.client.len()), (Err(Miss::NotHeld), 1));
        assert_eq!(reader.read(1, now).unwrap()[0], 7);
        let fill = reader.ask(0, now);
        let filled = site.fill(0, &fill);
        assert!(!reader.take(0, filled, now), "it cannot be read");
        assert_eq!((reader.read(0, now), reader.client.len()), (Err(Miss::NotHeld), 1));
        reader.places.unreadable.clear();
        reader.fill(&mut site, 0, now);
        assert_eq!(reader.read(0, now).unwrap()[0], 7);
    }
}

#[test]
fn a_read_may_ask_for_what_is_at_a_position() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    reader.fill(&mut site, 0, at(1));
    let position = site.write(0, Members::ALL, 1);
    assert!(matches!(reader.look(0, LAG, Position::START, at(2)), Read::Hit { .. }));
    assert_eq!(reader.look(0, LAG, position, at(2)), Read::Miss(Miss::TooOld));
    reader.renew(&mut site, at(3));
    let read = reader.look(0, LAG, position, at(4));
    assert_eq!(read, Read::Hit { version: position, age: Duration::from_nanos(1) });
    assert_eq!(reader.read(0, at(4)), Ok([1; 2]));
}

/// What nobody holds has no place in the log, and gets one when it is asked for.
#[test]
fn writes_of_what_nobody_holds_are_not_noted() {
    let mut site = site(ServerLimits::default());
    let before = site.server.head();
    assert_eq!((site.write(0, Members::ALL, 7), site.cells[&0].0), (before, None));
    let mut reader = reader_of(&mut site, 10);
    reader.fill(&mut site, 0, at(1));
    assert!(site.cells[&0].0.is_some_and(|version| version > before));
    assert_eq!(reader.read(0, at(2)), Ok([7; 2]));
}

/// What takes more room than there is ends the oldest, of its own kind if that has limits, and at last of all.
#[test]
fn a_client_holds_so_many_bytes_and_no_more() {
    let mut site = site(ServerLimits::default());
    let limits = ClientLimits { bytes_max: 1_000, ..ClientLimits::default() };
    let mut reader = Reader::new(&mut site, limits);
    for object in 0..4 {
        reader.places.bytes.insert(EntryId(object), 300);
        reader.fill(&mut site, u32::try_from(object).expect("few"), at(1));
    }
    let held =
        |reader: &mut Reader| (0..4).map(|object| reader.read(object, at(1)).is_ok()).collect::<Vec<_>>();
    assert_eq!((held(&mut reader), reader.client.bytes()), (vec![false, true, true, true], 900));
    // An update counts, too.
    reader.places.bytes.insert(EntryId(3), 500);
    site.write(3, Members::ALL, 1);
    reader.renew(&mut site, at(1));
    assert_eq!((held(&mut reader), reader.client.bytes()), (vec![false, false, true, true], 800));
    reader.places.bytes.insert(EntryId(0), 5_000);
    reader.fill(&mut site, 0, at(1));
    assert_eq!((held(&mut reader), reader.client.bytes()), (vec![true, false, false, false], 5_000));
    reader.client.lapse(&mut reader.places);
    assert_eq!(reader.client.bytes(), 0);
}

/// What is pinned makes room for nothing, and is renewed as everything else.
#[test]
fn pinned_entries_stay() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 2);
    assert!(reader.client.pin(EntryId(0)));
    reader.fill(&mut site, 0, at(2));
    let held =
        |reader: &mut Reader| (0..4).map(|object| reader.read(object, at(2)).is_ok()).collect::<Vec<_>>();
    for (object, there) in [(1, [true, true, false, false]), (2, [true, false, true, false])] {
        reader.fill(&mut site, object, at(2));
        assert_eq!(held(&mut reader), there);
    }
    assert!(reader.client.pin(EntryId(2)) && reader.client.pin(EntryId(2)));
    assert!(!reader.client.pin(EntryId(3)), "as many are pinned as there may be");
    assert!(!reader.client.end_oldest(None, &mut reader.places));
    site.write(0, Members::ALL, 7);
    reader.renew(&mut site, at(2));
    assert_eq!(reader.read(0, at(2)), Ok([7; 2]));
    reader.client.unpin(EntryId(0));
    reader.client.unpin(EntryId(2));
    reader.fill(&mut site, 3, at(2));
    assert_eq!(held(&mut reader), [false, false, true, true], "what has been pinned twice is pinned once");
    reader.client.release(EntryId(2), &mut reader.places);
    assert!(reader.client.end_oldest(None, &mut reader.places));
    assert!(reader.client.is_empty());
}

#[test]
fn a_kind_of_entries_has_limits_of_its_own() {
    let mut site = site(ServerLimits::default());
    let mut reader = reader_of(&mut site, 10);
    let two = ClientLimits { entries_max: 2, bytes_max: 1_000 };
    reader.client.limit(Kind(1), two);
    for object in 1..6 {
        reader.places.kinds.insert(EntryId(object), Kind(1));
    }
    for object in 0..4 {
        reader.fill(&mut site, object, at(1));
    }
    let held =
        |reader: &mut Reader| (0..6).map(|object| reader.read(object, at(1)).is_ok()).collect::<Vec<_>>();
    assert_eq!(held(&mut reader), [true, false, true, true, false, false]);
    reader.client.release(EntryId(2), &mut reader.places);
    reader.places.bytes.insert(EntryId(4), 900);
    reader.fill(&mut site, 4, at(1));
    assert_eq!(held(&mut reader), [true, false, false, true, true, false]);
    reader.places.bytes.insert(EntryId(3), 200);
    site.write(3, Members::ALL, 1);
    reader.renew(&mut site, at(1));
    assert_eq!(held(&mut reader), [true, false, false, false, true, false]);
}
