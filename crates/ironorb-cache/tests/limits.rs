//! What is kept has an end.

use std::time::Duration;

use ironorb_cache::{
    Answer, Client, ClientLimits, Epoch, Filled, Miss, Moment, Position, Read, Server, ServerLimits, Terms,
};

const LAG: Duration = Duration::from_millis(1);

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn server(limits: ServerLimits) -> Server<u32, u32> {
    let mut server = Server::new(Epoch(1), limits, Terms::default(), at(0));
    for object in 0..10 {
        server.commit(&object, object * 100);
    }
    server
}

fn client_of(server: &mut Server<u32, u32>, entries_max: usize) -> Client<u32, u32> {
    let mut client = Client::new(ClientLimits { entries_max });
    client.opened(server.open(at(0)));
    client
}

fn fill(client: &mut Client<u32, u32>, server: &mut Server<u32, u32>, object: u32, now: Moment) {
    let fill = client.fill(&object, now).unwrap();
    client.filled(server.fill(&fill, at(0)), now);
}

fn renew(client: &mut Client<u32, u32>, server: &mut Server<u32, u32>, now: Moment) {
    let probe = client.probe(now).unwrap();
    client.answered(server.probe(&probe, at(0)), now);
}

#[test]
fn a_client_holds_so_many_objects_and_no_more() {
    let mut server = server(ServerLimits::default());
    let mut client = client_of(&mut server, 3);
    for object in 0..5 {
        fill(&mut client, &mut server, object, at(1));
    }
    assert_eq!(client.len(), 3);
    let held: Vec<_> = (0..5)
        .map(|object| matches!(client.read(&object, LAG, Position::START, at(2)), Read::Hit { .. }))
        .collect();
    assert_eq!(held, [false, false, true, true, true]);
}

#[test]
fn a_book_that_is_full_drops_the_oldest_and_says_so_first() {
    let mut server = server(ServerLimits { held_max: 2, ..ServerLimits::default() });
    let mut client = client_of(&mut server, 10);
    for object in 0..3 {
        fill(&mut client, &mut server, object, at(1));
    }
    assert_eq!([0, 1, 2].map(|object| server.holders(&object)), [0, 1, 1]);
    // The write to what was dropped is told of to nobody, but the drop is, before anything renews the rest.
    server.commit(&0, 1);
    renew(&mut client, &mut server, at(2));
    assert_eq!(client.read(&0, LAG, Position::START, at(3)), Read::Miss(Miss::NotHeld));
    assert!(matches!(client.read(&1, LAG, Position::START, at(3)), Read::Hit { state: 100, .. }));
}

#[test]
fn a_session_whose_client_never_asks_ends() {
    let limits = ServerLimits { held_max: 1, dropped_max: 3, ..ServerLimits::default() };
    let mut server = server(limits);
    let mut client = client_of(&mut server, 10);
    for object in 0..5 {
        fill(&mut client, &mut server, object, at(1));
    }
    assert_eq!(server.sessions(), 0);
    let probe = client.probe(at(2)).unwrap();
    let answer = server.probe(&probe, at(0));
    assert!(matches!(answer, Answer::Unknown { .. }));
    client.answered(answer, at(2));
    assert_eq!((client.session(), client.len()), (None, 0));
}

#[test]
fn one_session_too_many_ends_the_one_that_was_silent_longest() {
    let mut server = server(ServerLimits { sessions_max: 2, ..ServerLimits::default() });
    let mut clients: Vec<_> = (0..2).map(|_| client_of(&mut server, 10)).collect();
    for client in &mut clients {
        fill(client, &mut server, 0, at(1));
    }
    renew(&mut clients[0], &mut server, at(2));
    let _third = client_of(&mut server, 10);
    assert_eq!((server.sessions(), server.holders(&0)), (2, 1));
    for (client, is_known) in clients.iter_mut().zip([true, false]) {
        renew(client, &mut server, at(3));
        assert_eq!(client.session().is_some(), is_known);
    }
}

#[test]
fn a_clock_that_runs_backwards_proves_nothing() {
    let mut server = server(ServerLimits::default());
    let mut client = client_of(&mut server, 10);
    fill(&mut client, &mut server, 0, at(1_000));
    assert!(matches!(client.read(&0, LAG, Position::START, at(1_000)), Read::Hit { .. }));
    let late = client.probe(at(1_001)).unwrap();
    assert_eq!(client.read(&0, LAG, Position::START, at(999)), Read::Miss(Miss::NotHeld));
    // Nor does an answer to what left before.
    fill(&mut client, &mut server, 0, at(999));
    client.answered(server.probe(&late, at(0)), at(999));
    match client.read(&0, Duration::MAX, Position::START, at(1_002)) {
        Read::Hit { age, .. } => assert_eq!(age, Duration::from_nanos(3)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_there_is_not_held() {
    let mut server = server(ServerLimits::default());
    let mut client = client_of(&mut server, 10);
    assert_eq!(client.read(&3, LAG, Position::START, at(1)), Read::Miss(Miss::NotHeld));
    let fill = client.fill(&77, at(1)).unwrap();
    assert_eq!(client.read(&77, LAG, Position::START, at(1)), Read::Miss(Miss::Filling));
    let filled = server.fill(&fill, at(0));
    assert!(matches!(filled, Filled::Refused { .. }));
    client.filled(filled, at(2));
    assert_eq!((client.len(), client.read(&77, LAG, Position::START, at(2))), (0, Read::Miss(Miss::NotHeld)));
}

#[test]
fn a_read_may_ask_for_what_is_at_a_position() {
    let mut server = server(ServerLimits::default());
    let mut client = client_of(&mut server, 10);
    fill(&mut client, &mut server, 0, at(1));
    let position = server.commit(&0, 1);
    assert!(matches!(client.read(&0, LAG, Position::START, at(2)), Read::Hit { state: 0, .. }));
    assert_eq!(client.read(&0, LAG, position, at(2)), Read::Miss(Miss::TooOld));
    renew(&mut client, &mut server, at(3));
    let read = client.read(&0, LAG, position, at(4));
    assert_eq!(read, Read::Hit { state: &1, version: position, age: Duration::from_nanos(1) });
}
