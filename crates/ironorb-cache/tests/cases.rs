//! Single courses of events that are rare in histories.

use std::time::Duration;

use ironorb_cache::{ClientLimits, EntryId, Members, Miss, Moment, Position, Read, ServerLimits, Terms};

use super::places::{LAG, Reader, Site, at};

fn pair() -> (Site, Reader) {
    let mut site = Site::new(ServerLimits::default(), Terms::default(), 1);
    let reader = Reader::new(&mut site, ClientLimits::default());
    (site, reader)
}

#[test]
fn an_answer_that_comes_late_replaces_no_newer_fill() {
    let (mut site, mut reader) = pair();
    reader.fill(&mut site, 0, at(1));
    site.write(0, Members::ALL, 2);
    let probe = reader.probe(at(3));
    let late = site.probe(&probe);
    site.write(0, Members::ALL, 3);
    reader.fill(&mut site, 0, at(4));
    reader.answered(late, at(6));
    assert_eq!(reader.read(0, at(7)), Ok([3; 2]));
}

/// Whichever of two fills comes first, a reader that has seen the newer state by it sees no older one afterwards.
#[test]
fn no_read_goes_behind_what_a_fill_has_shown() {
    let (mut site, mut reader) = pair();
    let first = reader.ask(0, at(1));
    let second = reader.ask(0, at(2));
    let older = site.fill(0, &second);
    site.write(0, Members::ALL, 2);
    let newer = site.fill(0, &first);
    assert!(!reader.take(0, newer, at(3)), "the state of a fill that is not awaited is not held");
    assert_eq!(reader.read(0, at(4)), Err(Miss::Filling));
    assert!(!reader.take(0, older, at(5)));
    assert_eq!(reader.read(0, at(6)), Err(Miss::NotHeld));
}

/// A state that a late fill has shown is newer than what is held: that is not read any more.
#[test]
fn a_late_fill_ends_what_is_older() {
    let (mut site, mut reader) = pair();
    let first = reader.ask(0, at(1));
    reader.fill(&mut site, 0, at(2));
    site.write(0, Members::ALL, 2);
    let newer = site.fill(0, &first);
    assert!(!reader.take(0, newer, at(3)));
    assert_eq!(reader.read(0, at(4)), Err(Miss::NotHeld));
}

/// Only what has been written is sent, and what a client has not taken adds up.
#[test]
fn members_are_put_over_the_state_that_is_held() {
    let (mut site, mut reader) = pair();
    reader.fill(&mut site, 0, at(1));
    site.write(0, Members::one(0), 7);
    let lost = reader.probe(at(2));
    drop(site.probe(&lost));
    site.write(0, Members::one(1), 8);
    reader.renew(&mut site, at(3));
    assert_eq!(reader.read(0, at(4)), Ok([7, 8]));
}

/// A place whose fill is out takes no state from an answer that is older than what another place of the object has shown.
#[test]
fn no_answer_goes_behind_what_another_place_has_shown() {
    let (mut site, mut reader) = pair();
    let other = EntryId(1);
    reader.fill(&mut site, 0, at(1));
    let first = reader.ask(0, at(2));
    let probe = reader.probe(at(3));
    site.write(0, Members::ALL, 1);
    let answer = site.probe(&probe);
    site.write(0, Members::ALL, 2);
    let second = reader.client.fill(other, at(4), &mut reader.places).expect("there is a session");
    assert!(reader.client.filled(other, site.fill(0, &second), at(5), &mut reader.places));
    reader.answered(answer, at(6));
    assert_eq!(reader.read(1, at(7)), Ok([2; 2]));
    assert_eq!(reader.read(0, at(7)), Err(Miss::Filling));
    assert!(reader.take(0, site.fill(0, &first), at(8)));
}

/// Some members alone are no state: a place whose fill is out has to be filled anew.
#[test]
fn members_are_not_put_where_no_state_is() {
    let (mut site, mut reader) = pair();
    reader.fill(&mut site, 0, at(1));
    site.write(0, Members::one(0), 7);
    reader.ask(0, at(2));
    reader.renew(&mut site, at(3));
    assert_eq!(reader.read(0, at(4)), Err(Miss::NotHeld));
}

/// The driver reads states after the answer has been made. What was written in between need not be due by the answer.
#[test]
fn a_write_before_the_values_are_read_makes_the_state_due() {
    let (mut site, mut reader) = pair();
    reader.fill(&mut site, 0, at(1));
    site.write(0, Members::one(0), 7);
    let probe = reader.probe(at(2));
    let answer = site.server.probe(&probe, at(0));
    site.write(0, Members::one(1), 8);
    let (version, state) = site.cells[&0];
    let answer = answer.with_values(|_, due| Some((version?, due.of_version(version?), state)));
    reader.answered(answer, at(3));
    assert_eq!(reader.read(0, at(4)), Ok([7, 8]));
}

/// Between a drop and the next fill nobody notes what is written. So what is written after that fill is not put over
/// a state from before.
#[test]
fn after_a_drop_the_whole_state_is_due() {
    let (mut site, mut reader) = pair();
    let first = reader.ask(0, at(1));
    reader.take(0, site.fill(0, &first), at(2));
    site.server.evict(first.of.session, &0);
    site.write(0, Members::one(0), 7);
    // The first fill comes once more, and its answer is lost.
    site.fill(0, &first);
    site.write(0, Members::one(1), 8);
    reader.renew(&mut site, at(3));
    assert_eq!(reader.read(0, at(4)), Ok([7, 8]));
}

/// An answer that names an object whose fill is out for the first time is heeded when the fill comes.
#[test]
fn a_fill_is_no_newer_than_an_answer_that_came_before_it() {
    let changes: [fn(&mut Site, &ironorb_cache::Fill); 2] = [
        |site, _| {
            site.write(0, Members::one(1), 8);
        },
        |site, fill| site.server.evict(fill.of.session, &0),
    ];
    for change in changes {
        let (mut site, mut reader) = pair();
        let fill = reader.ask(0, at(1));
        let filled = site.fill(0, &fill);
        change(&mut site, &fill);
        reader.renew(&mut site, at(2));
        assert!(!reader.take(0, filled, at(3)));
        assert_eq!(reader.read(0, at(4)), Err(Miss::NotHeld));
        reader.fill(&mut site, 0, at(5));
        assert!(reader.read(0, at(6)).is_ok());
    }
}

#[test]
fn an_entry_is_as_old_as_the_message_that_it_answers_was_sent() {
    let (mut site, mut reader) = pair();
    let fill = reader.ask(0, at(10));
    reader.take(0, site.fill(0, &fill), at(1_000));
    let age = |reader: &mut Reader, now| match reader.look(0, LAG, Position::START, now) {
        Read::Hit { age, .. } => age.as_nanos(),
        other @ Read::Miss(_) => panic!("{other:?}"),
    };
    assert_eq!(age(&mut reader, at(1_000)), 990);
    let probe = reader.probe(at(1_100));
    let answer = site.probe(&probe);
    assert_eq!(age(&mut reader, at(1_200)), 1_190);
    reader.answered(answer.clone(), at(1_300));
    assert_eq!(age(&mut reader, at(1_300)), 200);
    // The same answer again, and it proves nothing more.
    reader.answered(answer, at(1_400));
    assert_eq!(age(&mut reader, at(1_400)), 300);
}

/// An answer that comes after a later one has nothing new, not even for a place that waits for its fill.
#[test]
fn an_answer_that_comes_after_a_later_one_is_not_taken() {
    let (mut site, mut reader) = pair();
    let first = reader.ask(0, at(1));
    reader.take(0, site.fill(0, &first), at(2));
    site.server.evict(first.of.session, &0);
    let lost = reader.ask(0, at(3));
    site.fill(0, &lost);
    site.write(0, Members::one(0), 7);
    let probe = reader.probe(at(4));
    let late = site.probe(&probe);
    site.write(0, Members::one(0), 8);
    reader.renew(&mut site, at(5));
    assert_eq!(reader.read(0, at(6)), Ok([8, 0]));
    reader.ask(0, at(7));
    let taken = reader.client.proof().taken;
    reader.answered(late, at(8));
    assert_eq!(reader.client.proof().taken, taken);
    assert_eq!(reader.read(0, at(9)), Err(Miss::Filling));
}

/// A client that was revoked, or whose server is gone, reads for as long as its lag, and no longer.
#[test]
fn a_session_that_has_ended_renews_nothing() {
    let (mut site, mut reader) = pair();
    let fill = reader.ask(0, at(1));
    reader.take(0, site.fill(0, &fill), at(2));
    site.server.end(fill.of.session);
    site.write(0, Members::ALL, 2);
    assert_eq!(site.server.holders(&0), 0);
    assert_eq!(reader.read(0, at(3)), Ok([0; 2]));
    assert_eq!(reader.read(0, at(2).after(LAG)), Err(Miss::TooOld));
    reader.renew(&mut site, at(4).after(LAG));
    assert_eq!(reader.read(0, at(6).after(LAG)), Err(Miss::NoSession));
}

/// A client whose session has ended does not know it. Its own writes are noted nowhere, and yet it reads nothing from before.
#[test]
fn a_write_after_the_end_of_a_session_is_read_by_its_client() {
    let (mut site, mut reader) = pair();
    let fill = reader.ask(0, at(1));
    reader.take(0, site.fill(0, &fill), at(2));
    reader.renew(&mut site, at(3));
    site.server.end(fill.of.session);
    let position = site.write(0, Members::ALL, 2);
    reader.client.wrote(site.server.epoch(), position, &mut reader.places);
    assert_eq!(reader.read(0, at(4)), Err(Miss::TooOld));
}

#[test]
fn a_child_process_holds_nothing() {
    let (mut site, mut reader) = pair();
    reader.fill(&mut site, 0, at(1));
    reader.client.lapse(&mut reader.places);
    assert_eq!((reader.read(0, at(3)), reader.client.len()), (Err(Miss::NoSession), 0));
    let places = &mut reader.places;
    assert!(reader.client.probe(at(4), places).is_none());
    assert!(reader.client.fill(EntryId(0), at(4), places).is_none());
}

/// The clocks of clients may run slower than the server's, by the drift.
#[test]
fn a_linearizable_write_waits_for_the_term_of_a_slow_clock() {
    let terms = Terms { term: Duration::from_secs(1), drift_ppm: 1_000 };
    let mut site = Site::new(ServerLimits::default(), terms, 1);
    let start = 2_000_000_000;
    site.now = at(start);
    let mut reader = Reader::new(&mut site, ClientLimits::default());
    let fill = reader.ask(0, at(7));
    reader.take(0, site.fill(0, &fill), at(8));
    let write = site.server.begin_write(&0, 0);
    // A thousandth slower, its second ends after 1,001,001,001 of the server's nanoseconds and a part of one.
    let last = start + 1_001_001_002;
    assert_eq!(site.server.waits_until(write, at(last)), Some(at(last + 1)));
    assert_eq!(site.server.ready(at(last)), []);
    assert_eq!(site.server.ready(at(last + 1)), [write]);
    site.server.finish_write(write, Members::ALL);
    assert_eq!(site.server.waits_until(write, at(last)), None, "there is no such write");
    let read = reader.look(0, terms.term, Position::START, at(1_000_000_008));
    assert_eq!(read, Read::Miss(Miss::TooOld));
}

#[test]
fn a_linearizable_write_waits_no_longer_than_until_all_have_dropped() {
    let (mut site, mut reader) = pair();
    let now = at(5_000_000_000);
    site.now = now;
    reader.fill(&mut site, 0, at(1));
    let writes = [site.server.begin_write(&0, 0), site.server.begin_write(&0, 0)];
    let ready = |site: &mut Site, now: Moment| site.server.ready(now);
    assert_eq!(ready(&mut site, now), []);
    // Nobody comes to hold the object meanwhile.
    let mut other = Reader::new(&mut site, ClientLimits::default());
    other.fill(&mut site, 0, at(1));
    assert_eq!((other.read(0, at(3)), site.server.holders(&0)), (Err(Miss::NotHeld), 0));
    // The answer says that the object is to be dropped, and the next probe that it has been.
    reader.renew(&mut site, at(4));
    assert_eq!((reader.read(0, at(5)), ready(&mut site, now)), (Err(Miss::NotHeld), vec![]));
    reader.renew(&mut site, at(6));
    for write in writes {
        assert_eq!(ready(&mut site, now), [write], "one after another");
        site.server.finish_write(write, Members::ALL);
    }
    assert_eq!(ready(&mut site, now), []);
}

/// A third write would be one too many for a client that has taken none of the two before.
#[test]
fn a_write_waits_for_those_that_would_miss_too_many() {
    let (mut site, mut reader) = pair();
    let now = at(5_000_000_000);
    site.now = now;
    reader.fill(&mut site, 0, at(1));
    let write = |site: &mut Site| {
        let write = site.server.begin_write(&0, 2);
        let is_ready = site.server.ready(now) == [write];
        is_ready.then(|| site.server.finish_write(write, Members::ALL))
    };
    assert!(write(&mut site).is_some() && write(&mut site).is_some());
    assert_eq!(write(&mut site), None);
    // The next write of the object comes after it.
    assert_eq!(write(&mut site), None);
    let waiting = reader.probe(at(3));
    assert!(!site.server.wait(&waiting), "it has news");
    site.cells.insert(0, (Some(site.server.head()), [7; 2]));
    reader.answered(site.probe(&waiting), at(4));
    assert_eq!(site.server.ready(now), [], "the client has not said that it has taken them");
    reader.renew(&mut site, at(5));
    let ready = site.server.ready(now);
    assert_eq!(ready.len(), 1);
    site.server.finish_write(ready[0], Members::ALL);
    assert_eq!(site.server.ready(now).len(), 1, "the next one is no longer too many");
}

/// A client that was dropped may have its old copy still, although it has asked anew: its misses were not counted.
#[test]
fn what_was_written_after_a_drop_counts_as_missed() {
    let (mut site, mut reader) = pair();
    site.now = at(5_000_000_000);
    reader.fill(&mut site, 0, at(1));
    let fill = reader.ask(0, at(2));
    site.server.evict(fill.of.session, &0);
    site.write(0, Members::ALL, 1);
    // The answer is lost.
    site.fill(0, &fill);
    site.write(0, Members::ALL, 2);
    let write = site.server.begin_write(&0, 5);
    assert_eq!(site.server.ready(site.now), []);
    reader.renew(&mut site, at(3));
    reader.renew(&mut site, at(4));
    assert_eq!(site.server.ready(site.now), [write]);
}

/// A probe that waits is answered for news, and for nothing else.
#[test]
fn a_waiting_probe_is_due_when_there_is_news() {
    let mut site = Site::new(ServerLimits::default(), Terms::default(), 2);
    let mut reader = Reader::new(&mut site, ClientLimits::default());
    reader.fill(&mut site, 0, at(1));
    reader.fill(&mut site, 1, at(1));
    let waiting = reader.probe(at(2));
    let session = waiting.of.session;
    assert!(site.server.wait(&waiting));
    site.write(1, Members::ALL, 1);
    assert_eq!(site.server.take_due(), []);
    site.server.publish(&0, Members::ALL);
    site.server.publish(&0, Members::ALL);
    assert_eq!((site.server.take_due(), site.server.take_due()), (vec![session], vec![]));
    assert!(!site.server.wait(&waiting), "the news has not been taken");
    site.cells.insert(0, (Some(site.server.head()), [2; 2]));
    reader.answered(site.probe(&waiting), at(3));
    assert_eq!(reader.read(0, at(4)), Ok([2; 2]));
    let waiting = reader.probe(at(5));
    assert!(site.server.wait(&waiting));
    site.server.begin_write(&0, 0);
    assert_eq!(site.server.take_due(), [session], "the client is to drop the object");
    let later = ironorb_cache::Probe { taken: site.server.head(), ..reader.probe(at(6)) };
    assert!(site.server.wait(&later));
    site.server.end(session);
    assert_eq!(site.server.take_due(), [session]);
    assert!(!site.server.wait(&later), "no such session");
}

/// Nobody knows what the client of a session that has ended still reads, as long as its term lasts.
#[test]
fn a_bounded_write_waits_for_the_term_of_a_session_that_has_ended() {
    for missed_max in [0, 3] {
        let (mut site, mut reader) = pair();
        site.now = at(5_000_000_000);
        reader.fill(&mut site, 0, at(1));
        site.server.end(reader.client.session().expect("there is one").session);
        let write = site.server.begin_write(&0, missed_max);
        assert_eq!(site.server.ready(at(6_000_000_000)), []);
        assert_eq!(site.server.ready(at(6_002_000_000)), [write]);
    }
}

/// Moments of two messages may reach the machine in another order than they were taken. A term never becomes shorter.
#[test]
fn a_late_moment_ends_no_term() {
    let terms = Terms { term: Duration::from_nanos(100), drift_ppm: 0 };
    let mut site = Site::new(ServerLimits::default(), terms, 2);
    site.now = at(1_000);
    let mut reader = Reader::new(&mut site, ClientLimits::default());
    reader.fill(&mut site, 0, at(1_000));
    let probe = reader.probe(at(1_050));
    site.now = at(1_050);
    site.probe(&probe);
    // The fill was asked for before that, and has waited for its object.
    site.now = at(1_010);
    let fill = reader.ask(1, at(1_051));
    site.fill(1, &fill);
    let write = site.server.begin_write(&0, 0);
    assert_eq!(site.server.waits_until(write, at(1_120)), Some(at(1_151)));
    assert_eq!(site.server.waits_until(write, at(1_151)), None);
}

/// What answers show of objects while fills are out is kept no longer than for those fills, though others are always out.
#[test]
fn what_is_shown_while_fills_are_out_is_let_go() {
    let mut site = Site::new(ServerLimits::default(), Terms::default(), 4_000);
    let mut reader = Reader::new(&mut site, ClientLimits { entries_max: 10, ..ClientLimits::default() });
    let mut out = None;
    let mut longest = 0;
    for object in 0..4_000 {
        let next = (object, reader.ask(object, at(1)));
        if let Some((before, fill)) = out.replace(next) {
            let filled = site.fill(before, &fill);
            reader.take(before, filled, at(1));
        }
        longest = longest.max(format!("{:?}", reader.client).len());
    }
    assert!(longest < 20_000, "{longest}");
}
