//! Every order of what can happen to few clients and objects in a short time, with the machines themselves.
//!
//! Reads are no steps: in each state all reads are tried that clients could make. A message that does not come is a lost one.

mod world;

use ironorb_cache::{Answer, ClientLimits, Probe, ServerLimits};
use stateright::{Checker as _, Model, Property};

use world::{Hit, Left, Reader, Scope, Step, TERM_TICKS, World, number_of};

impl Model for Scope {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(self, steps);
    }

    fn next_state(&self, last: &World, step: Step) -> Option<World> {
        let mut world = last.clone();
        world.make(step);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no read is staler than its lag", |_, world: &World| {
                world.all_reads(|read| world.was_so_within(read))
            }),
            Property::always("all members read at once are of one version", |_, world: &World| {
                world.all_reads(|read| number_of(read.state).is_some())
            }),
            Property::always("no client reads backwards", |_, world: &World| {
                world.clients.iter().all(|client| !client.went_back)
            }),
            Property::always("clients read their own writes", |_, world: &World| {
                world.all_reads(|read| read.is_not_behind(&world.client(read).own))
            }),
            Property::always("no answer overtakes a commit", |_, world: &World| {
                world.all_reads(|read| read.is_not_behind(&world.client(read).answered))
            }),
            Property::always("no reader misses too many bounded writes", |scope: &Scope, world: &World| {
                !scope.is_bounded() || world.all_reads(|read| world.has_missed_few(scope, read))
            }),
            Property::always(
                "what is held is in the book, or its drop is ahead",
                |scope: &Scope, world: &World| scope.all_clients(|client| world.book_has_all(client)),
            ),
            Property::always("no old epoch lives under new answers", |scope: &Scope, world: &World| {
                scope.all_clients(|client| {
                    let session = world.clients[usize::from(client)].cache.session();
                    world.places(client).all(|(_, place)| Some(place.of) == session)
                })
            }),
            Property::always("memory is bounded by the limits", |scope: &Scope, world: &World| {
                world.is_within_limits(scope)
            }),
            Property::always("a write waits for a term at most", |_, world: &World| {
                world.begun.iter().all(|write| world.time - write.since <= TERM_TICKS)
            }),
            Property::always("a write ends when all have answered", |_, world: &World| {
                world.begun.is_empty() || world.has_term_of_no_session() || world.writes_end()
            }),
            Property::always("a read that nothing disturbs ends", |scope: &Scope, world: &World| {
                scope.all_clients(|client| {
                    (0..scope.entries)
                        .all(|entry| world.read_ends(client, ironorb_cache::EntryId(entry.into())))
                })
            }),
            Property::eventually("every write ends", |scope: &Scope, world: &World| {
                world.is_last_tick(scope) && world.begun.is_empty()
            }),
            Property::sometimes(
                "a client reads an old value, or a write waits",
                |scope: &Scope, world: &World| match scope.is_bounded() {
                    true => !world.begun.is_empty(),
                    false => !world.all_reads(|read| world.is_last(read)),
                },
            ),
        ]
    }
}

impl Hit {
    fn is_not_behind(&self, least: &[u8]) -> bool {
        number_of(self.state).is_none_or(|number| number >= least[usize::from(self.object)])
    }
}

impl Scope {
    fn all_clients(&self, is_right: impl FnMut(u8) -> bool) -> bool {
        (0..self.clients).all(is_right)
    }

    fn is_bounded(&self) -> bool {
        self.left.bounded_writes > 0
    }
}

impl World {
    /// Whether all reads are right that hit.
    fn all_reads(&self, is_right: impl FnMut(&Hit) -> bool) -> bool {
        self.hits.iter().all(is_right)
    }

    fn client(&self, read: &Hit) -> &Reader {
        &self.clients[usize::from(read.client)]
    }

    fn is_last(&self, read: &Hit) -> bool {
        number_of(read.state) == Some(self.cells[usize::from(read.object)].number)
    }

    /// Whether the object had the state within the lag.
    fn was_so_within(&self, read: &Hit) -> bool {
        let Some(number) = number_of(read.state) else { return true };
        match self.cells[usize::from(read.object)].ended.get(usize::from(number)) {
            Some(ended) => self.since(*ended, read.client) <= read.lag,
            None => true,
        }
    }

    /// How many writes a read has missed is bounded where all writes wait and the lag is a term at most.
    fn has_missed_few(&self, scope: &Scope, read: &Hit) -> bool {
        let number = number_of(read.state).map_or(0, u32::from);
        let last = u32::from(self.cells[usize::from(read.object)].number);
        last.saturating_sub(number) <= scope.left.missed_max
    }

    /// Whether the client's next probe would tell of a write of each object that it holds, if it was made now.
    fn book_has_all(&self, client: u8) -> bool {
        let cache = &self.clients[usize::from(client)].cache;
        let Some(of) = cache.session() else { return true };
        self.places(client).all(|(entry, _)| {
            let object = self.object_of(entry);
            let mut server = self.server.clone();
            server.commit(&object, ironorb_cache::Members::ALL);
            let taken = cache.proof().taken;
            let probe = Probe { of, taken, room: usize::MAX, token: ironorb_cache::Token(0) };
            match server.probe(&probe, self.server_now()) {
                Answer::Unknown { .. } => true,
                Answer::Changes { units, .. } => units.iter().any(|unit| unit.object == object),
            }
        })
    }

    fn is_within_limits(&self, scope: &Scope) -> bool {
        let ServerLimits { sessions_max, held_max, dropped_max, .. } = scope.server_limits;
        let holders: usize = (0..scope.objects).map(|object| self.server.holders(&object)).sum();
        self.server.sessions() <= sessions_max
            && holders <= sessions_max * held_max
            && self.clients.iter().all(|client| {
                let Some(of) = client.cache.session() else { return true };
                let taken = client.cache.proof().taken;
                let probe = Probe { of, taken, room: usize::MAX, token: ironorb_cache::Token(0) };
                let untold = match self.server.clone().probe(&probe, self.server_now()) {
                    Answer::Unknown { .. } => 0,
                    Answer::Changes { units, .. } => units.len(),
                };
                untold <= held_max + dropped_max && client.cache.len() <= scope.client_limits.entries_max
            })
    }

    /// Whether a term is waited for of which no client can say that it is over.
    fn has_term_of_no_session(&self) -> bool {
        let are_known =
            self.clients.iter().all(|client| client.cache.session().is_some_and(|of| self.server.knows(of)));
        !are_known || self.server.sessions() > self.clients.len() || self.time - self.ended <= TERM_TICKS
    }
}

const SERVER_LIMITS: ServerLimits =
    ServerLimits { sessions_max: 3, held_max: 2, dropped_max: 2, untold_max: 10 };

/// Nothing happens in this but what is added to it.
const QUIET: Scope = Scope {
    clients: 1,
    objects: 1,
    entries: 1,
    is_filled: true,
    server_limits: SERVER_LIMITS,
    client_limits: ClientLimits { entries_max: 2, bytes_max: usize::MAX },
    room: usize::MAX,
    ticks: 1,
    left: Left::NOTHING,
};

/// Answers, fills and commits in every order.
const ANSWERS: Scope =
    Scope { left: Left { fills: 1, probes: 2, writes: 2, copies: 1, ..Left::NOTHING }, ..QUIET };
const TWO_CLIENTS: Scope =
    Scope { clients: 2, left: Left { fills: 1, probes: 2, writes: 1, ..Left::NOTHING }, ..QUIET };
/// Two places of one object, and fills that come late.
const TWO_PLACES: Scope =
    Scope { entries: 2, left: Left { fills: 2, probes: 1, writes: 2, ..Left::NOTHING }, ..QUIET };
/// Own writes, and sessions that end.
const OWN_WRITES: Scope = Scope {
    left: Left { fills: 1, probes: 1, client_writes: 2, ends: 1, opens: 1, ..Left::NOTHING },
    ..QUIET
};
/// Two objects, and answers with room for one.
const PARTS: Scope =
    Scope { objects: 2, entries: 2, room: 1, left: Left { probes: 2, writes: 3, ..Left::NOTHING }, ..QUIET };
/// Two objects, and room for one.
const FULL_BOOKS: Scope = Scope {
    objects: 2,
    entries: 2,
    is_filled: false,
    server_limits: ServerLimits { sessions_max: 1, held_max: 1, dropped_max: 1, untold_max: 10 },
    ticks: 0,
    left: Left { fills: 2, probes: 2, writes: 1, opens: 1, ..Left::NOTHING },
    ..QUIET
};
/// New lives of the server, and clients that forget.
const NEW_LIVES: Scope = Scope {
    left: Left { opens: 1, fills: 1, probes: 1, writes: 1, lapses: 1, restarts: 1, ..Left::NOTHING },
    ..QUIET
};
/// Objects that go and come.
const REMOVALS: Scope =
    Scope { left: Left { fills: 1, probes: 1, writes: 1, removals: 1, copies: 1, ..Left::NOTHING }, ..QUIET };
/// Linearizable writes of what two clients hold, whose clocks differ by as much as they may.
const LINEARIZABLE: Scope =
    Scope { clients: 2, ticks: 4, left: Left { probes: 2, bounded_writes: 1, ..Left::NOTHING }, ..QUIET };
/// Linearizable writes, fills, sessions that end and new lives.
const LINEARIZABLE_IN_NEW_LIVES: Scope = Scope {
    ticks: 4,
    left: Left { fills: 1, probes: 1, bounded_writes: 1, restarts: 1, opens: 1, ends: 1, ..Left::NOTHING },
    ..QUIET
};
/// Writes of which a client may miss one.
const BOUNDED: Scope = Scope {
    ticks: 6,
    left: Left { fills: 1, probes: 1, bounded_writes: 2, missed_max: 1, evictions: 1, ..Left::NOTHING },
    ..QUIET
};

/// What the gate has no time for.
const DEEP: [Scope; 6] = [
    Scope { ticks: 2, ..ANSWERS },
    Scope { left: Left { evictions: 1, ..TWO_PLACES.left }, ..TWO_PLACES },
    Scope { ticks: 1, ..FULL_BOOKS },
    Scope { left: Left { copies: 1, ..NEW_LIVES.left }, ..NEW_LIVES },
    Scope { left: Left { probes: 2, writes: 2, ..REMOVALS.left }, ..REMOVALS },
    Scope { left: Left { bounded_writes: 2, fills: 1, ..LINEARIZABLE.left }, ..LINEARIZABLE },
];

fn check(scope: Scope) {
    let checker = scope.checker().spawn_dfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

#[test]
fn answers_and_commits() {
    check(ANSWERS);
}

#[test]
fn two_clients() {
    check(TWO_CLIENTS);
}

#[test]
fn two_places() {
    check(TWO_PLACES);
}

#[test]
fn own_writes() {
    check(OWN_WRITES);
}

#[test]
fn full_books() {
    check(FULL_BOOKS);
}

#[test]
fn answers_in_parts() {
    check(PARTS);
}

#[test]
fn new_lives() {
    check(NEW_LIVES);
}

#[test]
fn removals() {
    check(REMOVALS);
}

#[test]
fn linearizable_writes() {
    check(LINEARIZABLE);
}

#[test]
fn linearizable_writes_in_new_lives() {
    check(LINEARIZABLE_IN_NEW_LIVES);
}

#[test]
fn bounded_writes() {
    check(BOUNDED);
}

/// What `cargo xtask soak` runs.
#[test]
#[ignore = "takes minutes"]
fn deeper() {
    DEEP.into_iter().for_each(check);
}
