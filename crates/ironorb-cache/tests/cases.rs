//! Single courses of events that are rare in histories.

use std::time::Duration;

use ironorb_cache::{Client, ClientLimits, Epoch, Miss, Moment, Position, Read, Server, ServerLimits, Terms};

const LAG: Duration = Duration::from_secs(1);

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn pair() -> (Server<u8, u32>, Client<u8, u32>) {
    let mut server = Server::new(Epoch(1), ServerLimits::default(), Terms::default(), at(0));
    server.commit(&0, 1);
    let mut client = Client::new(ClientLimits::default());
    client.opened(server.open(at(0)));
    (server, client)
}

fn read(client: &mut Client<u8, u32>, now: Moment) -> Result<u32, Miss> {
    match client.read(&0, LAG, Position::START, now) {
        Read::Hit { state, .. } => Ok(*state),
        Read::Miss(miss) => Err(miss),
    }
}

#[test]
fn an_answer_that_comes_late_replaces_no_newer_fill() {
    let (mut server, mut client) = pair();
    let fill = client.fill(&0, at(1)).unwrap();
    client.filled(server.fill(&fill, at(0)), at(2));
    server.commit(&0, 2);
    let probe = client.probe(at(3)).unwrap();
    let late = server.probe(&probe, at(0));
    server.commit(&0, 3);
    let fill = client.fill(&0, at(4)).unwrap();
    client.filled(server.fill(&fill, at(0)), at(5));
    client.answered(late, at(6));
    assert_eq!(read(&mut client, at(7)), Ok(3));
}

/// Whichever of two fills comes first, a reader that has seen the newer state by it sees no older one afterwards.
#[test]
fn no_read_goes_behind_what_a_fill_has_shown() {
    let (mut server, mut client) = pair();
    let first = client.fill(&0, at(1)).unwrap();
    let second = client.fill(&0, at(2)).unwrap();
    let older = server.fill(&second, at(0));
    server.commit(&0, 2);
    let newer = server.fill(&first, at(0));
    client.filled(newer, at(3));
    assert_eq!(
        read(&mut client, at(4)),
        Err(Miss::Filling),
        "the state of a fill that is not awaited is not held"
    );
    client.filled(older, at(5));
    assert_eq!(read(&mut client, at(6)), Err(Miss::TooOld));
    let probe = client.probe(at(7)).unwrap();
    client.answered(server.probe(&probe, at(0)), at(8));
    assert_eq!(read(&mut client, at(9)), Ok(2));
}

#[test]
fn an_entry_is_as_old_as_the_message_that_it_answers_was_sent() {
    let (mut server, mut client) = pair();
    let fill = client.fill(&0, at(10)).unwrap();
    let filled = server.fill(&fill, at(0));
    client.filled(filled, at(1_000));
    let age = |client: &mut Client<u8, u32>, now| match client.read(&0, LAG, Position::START, now) {
        Read::Hit { age, .. } => age.as_nanos(),
        other @ Read::Miss(_) => panic!("{other:?}"),
    };
    assert_eq!(age(&mut client, at(1_000)), 990);
    let probe = client.probe(at(1_100)).unwrap();
    let answer = server.probe(&probe, at(0));
    assert_eq!(age(&mut client, at(1_200)), 1_190);
    client.answered(answer.clone(), at(1_300));
    assert_eq!(age(&mut client, at(1_300)), 200);
    // The same answer again, and it proves nothing more.
    client.answered(answer, at(1_400));
    assert_eq!(age(&mut client, at(1_400)), 300);
}

/// A client that was revoked, or whose server is gone, reads for as long as its lag, and no longer.
#[test]
fn a_session_that_has_ended_renews_nothing() {
    let (mut server, mut client) = pair();
    let fill = client.fill(&0, at(1)).unwrap();
    client.filled(server.fill(&fill, at(0)), at(2));
    server.end(fill.of.session);
    server.commit(&0, 2);
    assert_eq!(server.holders(&0), 0);
    assert_eq!(read(&mut client, at(3)), Ok(1));
    assert_eq!(read(&mut client, at(2).after(LAG)), Err(Miss::TooOld));
    let probe = client.probe(at(4).after(LAG)).unwrap();
    client.answered(server.probe(&probe, at(0)), at(5).after(LAG));
    assert_eq!(read(&mut client, at(6).after(LAG)), Err(Miss::NoSession));
}

#[test]
fn a_child_process_holds_nothing() {
    let (mut server, mut client) = pair();
    let fill = client.fill(&0, at(1)).unwrap();
    client.filled(server.fill(&fill, at(0)), at(2));
    client.lapse();
    assert_eq!((read(&mut client, at(3)), client.len()), (Err(Miss::NoSession), 0));
    assert!(client.probe(at(4)).is_none() && client.fill(&0, at(4)).is_none());
}

/// The clocks of clients may run slower than the server's, by the drift.
#[test]
fn a_linearizable_write_waits_for_the_term_of_a_slow_clock() {
    let terms = Terms { term: Duration::from_secs(1), drift_ppm: 1_000 };
    let mut server = Server::new(Epoch(1), ServerLimits::default(), terms, at(0));
    server.commit(&0, 1);
    let mut client = Client::new(ClientLimits::default());
    let start = 2_000_000_000;
    client.opened(server.open(at(start)));
    let fill = client.fill(&0, at(7)).unwrap();
    client.filled(server.fill(&fill, at(start)), at(8));
    let write = server.begin_write(&0, 2);
    // A thousandth slower, its second ends after 1,001,001,001 of the server's nanoseconds and a part of one.
    let last = start + 1_001_001_002;
    assert_eq!(server.committed(at(last)), []);
    assert_eq!(server.state(&0), Some((Position(1), &1)), "a remote call sees no write that waits");
    let done = server.committed(at(last + 1));
    assert_eq!(done.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [write]);
    assert_eq!(server.state(&0).map(|(_, state)| *state), Some(2));
    let read = client.read(&0, terms.term, Position::START, at(1_000_000_008));
    assert_eq!(read, Read::Miss(Miss::TooOld));
}

#[test]
fn a_linearizable_write_waits_no_longer_than_until_all_have_dropped() {
    let (mut server, mut client) = pair();
    let now = at(5_000_000_000);
    let fill = client.fill(&0, at(1)).unwrap();
    client.filled(server.fill(&fill, now), at(2));
    let writes = [server.begin_write(&0, 2), server.begin_write(&0, 3)];
    assert_eq!(server.committed(now), []);
    // Nobody comes to hold the object meanwhile.
    let mut other = Client::new(ClientLimits::default());
    other.opened(server.open(now));
    let refused = other.fill(&0, at(1)).unwrap();
    other.filled(server.fill(&refused, now), at(2));
    assert_eq!((read(&mut other, at(3)), server.holders(&0)), (Err(Miss::NotHeld), 0));
    let renew = |client: &mut Client<u8, u32>, server: &mut Server<u8, u32>, at| {
        let probe = client.probe(at).unwrap();
        client.answered(server.probe(&probe, now), at);
    };
    // The answer says that the object is to be dropped, and the next probe that it has been.
    renew(&mut client, &mut server, at(4));
    assert_eq!((read(&mut client, at(5)), server.committed(now)), (Err(Miss::NotHeld), vec![]));
    renew(&mut client, &mut server, at(6));
    let done = server.committed(now);
    assert_eq!(done.iter().map(|(id, _)| *id).collect::<Vec<_>>(), writes);
    assert!(done[0].1 < done[1].1 && server.state(&0).map(|(_, state)| *state) == Some(3));
}
