//! Who holds what, against a server that keeps lists; and what it costs.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ironorb_cache::{
    Epoch, Fill, Filled, Members, Opened, Position, Probe, Server, ServerLimits, SessionId, Terms, Token,
};

use super::places::at;

fn server(limits: ServerLimits) -> Server<u64> {
    Server::new(Epoch(1), limits, Terms::default(), at(0))
}

fn fill(server: &mut Server<u64>, of: Opened, object: u64) {
    let fill = Fill { of, token: Token(1) };
    let filled = server.fill(&fill, &object, Some(Position::START), at(0));
    assert!(matches!(filled, Filled::State { .. }), "{filled:?}");
}

/// What each session holds, in the order in which it came to hold it.
type Lists = BTreeMap<SessionId, VecDeque<u64>>;

fn fill_list(lists: &mut Lists, of: Opened, object: u64, held_max: usize) {
    let list = lists.get_mut(&of.session).expect("there is such a session");
    if !list.contains(&object) {
        list.push_back(object);
        if list.len() > held_max {
            list.pop_front();
        }
    }
}

#[test]
fn books_have_what_lists_have() {
    const OBJECTS: u64 = 40;
    let limits = ServerLimits { sessions_max: 200, held_max: 20, ..ServerLimits::default() };
    let mut rng = Rng::with_seed(7);
    let (mut server, mut lists) = (server(limits), Lists::new());
    let mut sessions = Vec::new();
    for step in 0..60_000 {
        let object = rng.u64(0..OBJECTS);
        match rng.u16(0..1_000) {
            _ if sessions.is_empty() => sessions.push(server.open(at(0))),
            0..20 if sessions.len() < limits.sessions_max => sessions.push(server.open(at(0))),
            20..25 => {
                let ended: Opened = sessions.swap_remove(rng.usize(0..sessions.len()));
                server.end(ended.session);
                lists.remove(&ended.session);
            }
            25..30 => {
                server.remove(&object);
                lists.values_mut().for_each(|list| list.retain(|held| *held != object));
            }
            30..200 => {
                let of = sessions[rng.usize(0..sessions.len())];
                server.evict(of.session, &object);
                lists.entry(of.session).or_default().retain(|held| *held != object);
            }
            _ => {
                let of = sessions[rng.usize(0..sessions.len())];
                lists.entry(of.session).or_default();
                fill(&mut server, of, object);
                fill_list(&mut lists, of, object, limits.held_max);
            }
        }
        if step % 100 == 0 {
            is_same(&server, &lists, &sessions, OBJECTS);
        }
    }
    assert!(sessions.len() > 64, "bitmaps of several words");
}

fn is_same(server: &Server<u64>, lists: &Lists, sessions: &[Opened], objects: u64) {
    for object in 0..objects {
        let holders = lists.values().filter(|list| list.contains(&object)).count();
        assert_eq!(server.holders(&object), holders, "{object}");
        for of in sessions {
            let holds = lists.get(&of.session).is_some_and(|list| list.contains(&object));
            assert_eq!(server.holds(of.session, &object), holds, "{of:?} {object}");
        }
    }
}

/// A session whose order has too many runs drops what has its turn, and never what it has just asked for.
#[test]
fn what_has_no_order_goes_round() {
    const HELD_MAX: u64 = 3_000;
    let limits = ServerLimits { held_max: HELD_MAX as usize, ..ServerLimits::default() };
    let mut server = server(limits);
    // The objects are in the order of their numbers for the one, and every second one for the other: so many runs.
    let (one, other) = (server.open(at(0)), server.open(at(0)));
    let early = || (0..HELD_MAX).step_by(2);
    (0..HELD_MAX).for_each(|object| fill(&mut server, one, object));
    early().for_each(|object| fill(&mut server, other, object));
    let held = |server: &Server<u64>, of: Opened, objects: &mut dyn Iterator<Item = u64>| {
        objects.filter(|object| server.holds(of.session, object)).count() as u64
    };
    assert_eq!(held(&server, other, &mut early()), HELD_MAX / 2);
    for object in HELD_MAX..4 * HELD_MAX {
        fill(&mut server, other, object);
        assert!(server.holds(other.session, &object), "{object}");
    }
    // All have had their turn, and what was dropped is not counted any more.
    let mut all = 0..4 * HELD_MAX;
    assert_eq!((held(&server, other, &mut early()), held(&server, other, &mut all)), (0, HELD_MAX));
    early().for_each(|object| fill(&mut server, other, object));
    assert_eq!(held(&server, other, &mut (0..4 * HELD_MAX)), HELD_MAX);
    server.end(other.session);
    let holders = (0..4 * HELD_MAX).map(|object| server.holders(&object) as u64).sum::<u64>();
    assert_eq!((holders, held(&server, one, &mut (0..HELD_MAX))), (HELD_MAX, HELD_MAX));
}

/// More that nobody takes than a server keeps ends the sessions that are silent, and not those that take what they are told.
#[test]
fn what_nobody_takes_ends_silent_sessions() {
    let limits = ServerLimits { untold_max: 10, ..ServerLimits::default() };
    let mut server = server(limits);
    let (silent, heard, idle) = (server.open(at(0)), server.open(at(0)), server.open(at(0)));
    for object in 0..8 {
        fill(&mut server, silent, object);
        fill(&mut server, heard, object);
    }
    fill(&mut server, idle, 100);
    for object in 0..8 {
        server.commit(&object, Members::ALL);
        let probe = Probe { of: heard, taken: server.head(), room: usize::MAX, token: Token(2) };
        server.probe(&probe, at(0));
    }
    assert_eq!(server.sessions(), 3, "8 are untold");
    for object in 0..3 {
        server.commit(&object, Members::ALL);
    }
    let known = [silent, heard, idle].map(|of| server.knows(of));
    assert_eq!((known, server.holders(&0)), ([false, true, true], 1));
}

/// Fills a server with objects that all sessions hold.
fn full(objects: u64, sessions: u64) -> Server<u64> {
    let mut server = server(ServerLimits::default());
    let opened: Vec<_> = (0..sessions).map(|_| server.open(at(0))).collect();
    for object in 0..objects {
        opened.iter().for_each(|of| fill(&mut server, *of, object));
    }
    server
}

/// A million objects would take a thousand times as much, and the sessions no more.
#[test]
fn a_thousand_sessions_hold_a_thousand_objects_in_256_kilobytes() {
    let per_session = full(1, 1_000).bytes();
    let bytes = full(1_000, 1_000).bytes();
    assert!(bytes - per_session <= 256_000 - per_session / 1_000, "{bytes} bytes, {per_session} of sessions");
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_sessions_hold_a_million_objects_in_256_megabytes() {
    let server = full(1_000_000, 1_000);
    println!("{} bytes", server.bytes());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
        .for_each(|it| println!("{it}"));
    assert_eq!((server.holders(&0), server.holders(&999_999)), (1_000, 1_000));
    assert!(server.bytes() <= 256_000_000);
}
