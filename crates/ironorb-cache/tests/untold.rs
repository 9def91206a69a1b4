//! What a session is told, against a server that keeps each write for each of its holders.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use ironorb_cache::{
    Answer, Change, Epoch, Fill, Filled, Members, Opened, Position, Probe, Server, ServerLimits, Terms, Token,
};

use super::places::at;

const OBJECTS: u64 = 6;
const MEMBERS: usize = 4;

/// What has happened to an object that a session held.
#[derive(Debug, Clone, Copy)]
struct Event {
    at: Position,
    object: u64,
    /// `None` for a drop.
    members: Option<Members>,
}

struct Session {
    of: Opened,
    held: BTreeSet<u64>,
    events: Vec<Event>,
    taken: Position,
    /// Whether a probe of it waits.
    waits: bool,
}

/// What is told of an object: the last position, and the members; `None` for a drop.
type Told = BTreeMap<u64, (Position, Option<Members>)>;

impl Session {
    /// What it must be told.
    fn untold(&self) -> Told {
        let mut told = Told::new();
        for event in self.events.iter().filter(|event| event.at > self.taken) {
            let members = match (told.get(&event.object), event.members) {
                (_, None) => None,
                (None, members) => members,
                (Some((_, Some(before))), Some(members)) => Some(before.and(members)),
                // What was written between a drop and the next fill was noted nowhere.
                (Some((_, None)), Some(_)) => Some(Members::ALL),
            };
            told.insert(event.object, (event.at, members));
        }
        told
    }

    /// Takes an answer, or loses it.
    fn take(&mut self, answer: Answer<u64, ironorb_cache::Due>, is_lost: bool) {
        let must = self.untold();
        let Answer::Changes { head, units, .. } = answer else { panic!("there is a session") };
        let is_told = |version| {
            move |change: Change<ironorb_cache::Due>| match change {
                Change::Dropped => None,
                Change::Members(_, due) => Some(due.of_version(version)),
            }
        };
        let told: Told =
            units.into_iter().map(|unit| (unit.object, (unit.at, is_told(unit.at)(unit.change)))).collect();
        let ends = |told: &Told| -> Vec<_> {
            told.iter().map(|(object, (at, members))| (*object, *at, members.is_none())).collect()
        };
        assert_eq!(ends(&told), ends(&must), "{:?}", self.of);
        // There may be more, which an answer has told that was perhaps lost.
        for (object, (_, members)) in must {
            let all = told[&object].1.unwrap_or_default();
            assert_eq!(all.and(members.unwrap_or_default()), all, "{object}");
        }
        if !is_lost {
            self.taken = head;
        }
    }
}

#[derive(Default)]
struct Seen {
    told: usize,
    lost: usize,
    due: usize,
}

struct World {
    server: Server<u64>,
    sessions: Vec<Session>,
    rng: Rng,
    seen: Seen,
}

impl World {
    fn new(seed: u64) -> World {
        let limits = ServerLimits { held_max: 4, ..ServerLimits::default() };
        let server = Server::new(Epoch(1), limits, Terms::default(), at(0));
        World { server, sessions: Vec::new(), rng: Rng::with_seed(seed), seen: Seen::default() }
    }

    fn members(&mut self) -> Members {
        match self.rng.u8(0..8) {
            0 => Members::ALL,
            1 => Members::one(self.rng.usize(0..MEMBERS)).and(Members::one(self.rng.usize(0..MEMBERS))),
            _ => Members::one(self.rng.usize(0..MEMBERS)),
        }
    }

    fn open(&mut self) {
        let (of, held, events) = (self.server.open(at(0)), BTreeSet::new(), Vec::new());
        self.sessions.push(Session { of, held, events, taken: Position::START, waits: false });
    }

    fn write(&mut self, object: u64) {
        let (members, is_news) = (self.members(), self.rng.u8(0..4) == 0);
        let written = match is_news {
            true => self.server.publish(&object, members),
            false => self.server.commit(&object, members),
        };
        let holders = self.sessions.iter_mut().filter(|session| session.held.contains(&object));
        let mut due = Vec::new();
        let mut count = 0;
        for session in holders {
            let at = written.expect("it is held");
            session.events.push(Event { at, object, members: Some(members) });
            due.extend((is_news && std::mem::take(&mut session.waits)).then_some(session.of.session));
            count += 1;
        }
        assert_eq!((written.is_some(), self.server.holders(&object)), (count > 0, count));
        let mut told = self.server.take_due();
        told.sort();
        due.sort();
        assert_eq!(told, due);
        self.seen.due += due.len();
    }

    fn fill(&mut self, of: usize, object: u64) {
        let fill = Fill { of: self.sessions[of].of, token: Token(1) };
        // A version that nobody compares.
        let filled = self.server.fill(&fill, &object, Some(Position::START), at(0));
        assert!(matches!(filled, Filled::State { .. }), "{filled:?}");
        self.sessions[of].held.insert(object);
        self.note_evicted(of);
    }

    /// What it holds no more was dropped just now.
    fn note_evicted(&mut self, of: usize) {
        let head = self.server.head();
        let session = &mut self.sessions[of];
        let is_held = |object: &u64| self.server.holds(session.of.session, object);
        let dropped: Vec<u64> = session.held.iter().copied().filter(|object| !is_held(object)).collect();
        for object in dropped {
            session.held.remove(&object);
            session.events.push(Event { at: head, object, members: None });
        }
    }

    fn probe(&mut self, of: usize) {
        let session = &mut self.sessions[of];
        let probe = Probe { of: session.of, taken: session.taken, room: usize::MAX, token: Token(2) };
        if self.rng.u8(0..4) == 0 && self.server.wait(&probe) {
            session.waits = true;
            return;
        }
        let is_lost = self.rng.u8(0..4) == 0;
        let answer = self.server.probe(&probe, at(0));
        session.take(answer, is_lost);
        (self.seen.told, self.seen.lost) =
            (self.seen.told + usize::from(!is_lost), self.seen.lost + usize::from(is_lost));
    }

    fn step(&mut self) {
        let (object, of) = (self.rng.u64(0..OBJECTS), self.rng.usize(0..self.sessions.len().max(1)));
        match self.rng.u16(0..1_000) {
            _ if self.sessions.is_empty() => self.open(),
            0..10 if self.sessions.len() < 6 => self.open(),
            10..13 => {
                let session = self.sessions.swap_remove(of);
                self.server.end(session.of.session);
                assert_eq!(self.server.take_due().len(), usize::from(session.waits));
            }
            13..20 => {
                self.server.remove(&object);
                (0..self.sessions.len()).for_each(|of| self.note_evicted(of));
            }
            20..40 => {
                self.server.evict(self.sessions[of].of.session, &object);
                self.note_evicted(of);
            }
            40..150 => self.fill(of, object),
            150..400 => self.probe(of),
            // One object is written again and again.
            400..700 => self.write(0),
            _ => self.write(object),
        }
    }
}

#[test]
fn a_session_is_told_what_it_has_not_taken() {
    let mut seen = Seen::default();
    for seed in 0..40 {
        let mut world = World { seen, ..World::new(seed) };
        (0..5_000).for_each(|_| world.step());
        seen = world.seen;
    }
    assert!(
        seen.told > 10_000 && seen.lost > 5_000 && seen.due > 1_000,
        "histories in which nothing happens"
    );
}

/// A client that takes much at last does not leave its server with the memory of that, nor in another order.
#[test]
fn memory_of_what_is_taken_is_given_back() {
    let mut server = Server::new(Epoch(1), ServerLimits::default(), Terms::default(), at(0));
    let of = server.open(at(0));
    let fill = Fill { of, token: Token(1) };
    for object in 0..4_000 {
        server.fill(&fill, &object, Some(Position::START), at(0));
    }
    let before = server.bytes();
    let write = |server: &mut Server<u64>, object| {
        server.commit(&object, Members::ALL).expect("it is held");
    };
    let answer = |server: &mut Server<u64>, taken| {
        let probe = Probe { of, taken, room: 3_500, token: Token(2) };
        let answer = server.probe_part(&probe, at(0), |_, _| 1);
        let Answer::Changes { head, units, is_part, .. } = answer else { panic!("there is a session") };
        (units.into_iter().map(|unit| unit.object).collect::<Vec<_>>(), head, is_part)
    };
    (0..4_000).for_each(|object| write(&mut server, object));
    let full = server.bytes();
    let (told, taken, is_part) = answer(&mut server, Position::START);
    assert_eq!((told, is_part), ((0..3_500).collect(), true));
    // Those have been told once.
    [7, 3].into_iter().for_each(|object| write(&mut server, object));
    let (told, taken, is_part) = answer(&mut server, taken);
    assert_eq!((told, is_part), ((3_500..4_000).chain([7, 3]).collect(), false));
    assert!(server.bytes() - before < (full - before) / 2, "{before} {full} {}", server.bytes());
    let (told, _, is_part) = answer(&mut server, taken);
    assert_eq!((told, is_part, server.counts().untold), (vec![], false, 0));
    assert!(server.bytes() - before < (full - before) / 100, "{before} {full} {}", server.bytes());
}
