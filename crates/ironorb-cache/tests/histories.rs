//! A server and clients in virtual time, on a network that loses, doubles, delays and reorders messages and is cut now and then;
//! clients that stop for a while, and a server that begins new lives. Every history is checked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use fastrand::Rng;
use ironorb_cache::history::{History, SeenRead};
use ironorb_cache::{
    Answer, Client, ClientLimits, Due, EntryId, Epoch, Fill, Filled, Members, Miss, Moment, Opened, Position,
    Probe, Read, Server, ServerLimits, SessionId, Terms, WriteId,
};

use super::places::{Places, State, only};

const OBJECTS: u8 = 4;
const CLIENTS: usize = 3;
const LASTS: Duration = Duration::from_millis(400);
/// After so long without an answer a client asks again.
const PATIENCE: Duration = Duration::from_millis(8);
/// A read that takes longer is given up.
const READ_MAX: Duration = Duration::from_millis(60);

const LAGS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(40)];

/// Writes of this object are linearizable; the server's program removes it never.
const LINEARIZABLE: u8 = 0;
/// Clients miss at most so many writes of this object, which is removed never either.
const BOUNDED: u8 = 1;
const MISSED_MAX: u32 = 2;
/// Writes of this object are news.
const PUSHED: u8 = 2;
const TERMS: Terms = Terms { term: Duration::from_millis(3), drift_ppm: 1_000 };

/// How many writes of an object a client may miss, where that is bounded.
fn missed_max(object: u8) -> Option<u32> {
    match object {
        LINEARIZABLE => Some(0),
        BOUNDED => Some(MISSED_MAX),
        _ => None,
    }
}

/// What goes over the network.
#[derive(Debug, Clone)]
enum Message {
    Open,
    Opened(Opened),
    Fill {
        object: u8,
        entry: EntryId,
        fill: Fill,
    },
    /// No answer of the machine, if there is no such object.
    Filled {
        object: u8,
        entry: EntryId,
        fill: Fill,
        filled: Option<(Filled<u8>, Option<State>)>,
    },
    Probe(Probe),
    /// A probe that waits for news.
    Wait(Probe),
    /// True if there is more.
    Answer(Answer<u8, State>),
    Write {
        object: u8,
        value: u64,
    },
    Written {
        epoch: Epoch,
        object: u8,
        value: u64,
        at: Position,
    },
}

#[derive(Debug, Clone)]
enum Event {
    ToServer {
        from: usize,
        message: Message,
    },
    ToClient {
        to: usize,
        message: Message,
    },
    /// A client goes on with what it does, or begins something.
    Turn {
        of: usize,
    },
    /// The server's own program does something.
    ServerTurn,
    /// The server looks whether writes need to wait no more.
    WriteTurn,
}

/// A read that a client is at.
#[derive(Debug, Clone, Copy)]
struct Reading {
    object: u8,
    entry: EntryId,
    lag: Duration,
    from: Moment,
    asked: Option<Moment>,
}

/// An object, as the server's driver has it.
#[derive(Debug, Clone, Copy)]
struct Cell {
    version: Option<Position>,
    state: State,
}

/// A state as one value. No two states of an object are equal, because no number is written twice.
fn value_of([first, second]: State) -> u64 {
    first << 32 | second
}

struct Reader {
    cache: Client<u8>,
    places: Places,
    /// Its clock is so much ahead of the time, and runs faster by so many millionths.
    clock: u64,
    drift_ppm: i64,
    /// It does nothing before this.
    stopped_until: Moment,
    /// No message passes before this.
    cut_until: Moment,
    reading: Option<Reading>,
    /// The tokens of the fills of this read.
    fills: Vec<ironorb_cache::Token>,
}

/// What happened, for the test that all of it does.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    hits: usize,
    fills: usize,
    renewals: usize,
    lives: usize,
    evictions: usize,
    removals: usize,
    linearizable_writes: usize,
    linearizable_hits: usize,
    bounded_writes: usize,
    bounded_hits: usize,
    /// Writes that wait for a client.
    waited: usize,
    /// Waiting probes that were answered for news.
    news: usize,
    /// Answers that were cut.
    parts: usize,
    given_up: usize,
}

struct World {
    rng: Rng,
    now: Moment,
    events: BinaryHeap<Reverse<(Moment, u64)>>,
    pending: BTreeMap<u64, Event>,
    sequence: u64,
    server: Server<u8>,
    cells: BTreeMap<u8, Cell>,
    epoch: u64,
    values: u64,
    /// The writes that have begun: the object and the value, and the client that waits for a reply.
    begun: BTreeMap<WriteId, ((u8, u64), Option<usize>)>,
    /// The last value of such a write.
    last_begun: u64,
    /// The probes that wait, and whose they are.
    waiting: BTreeMap<SessionId, (usize, Probe)>,
    clients: Vec<Reader>,
    history: History<u8, u64>,
    counts: Counts,
}

impl World {
    /// A world that counts on from here.
    fn new(seed: u64, counts: Counts) -> World {
        let mut rng = Rng::with_seed(seed);
        let reader = |rng: &mut Rng| Reader {
            cache: Client::new(ClientLimits {
                entries_max: rng.usize(2..=OBJECTS as usize),
                ..ClientLimits::default()
            }),
            places: Places::default(),
            clock: rng.u64(1_000_000..1_000_000_000),
            drift_ppm: [-1_000, 0, 1_000][rng.usize(0..3)],
            stopped_until: Moment::from_nanos(0),
            cut_until: Moment::from_nanos(0),
            reading: None,
            fills: Vec::new(),
        };
        let clients = (0..CLIENTS).map(|_| reader(&mut rng)).collect();
        let mut world = World {
            server: Server::new(Epoch(1), World::limits(&mut rng), TERMS, Moment::from_nanos(1)),
            cells: BTreeMap::new(),
            rng,
            now: Moment::from_nanos(1),
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            epoch: 1,
            values: 0,
            begun: BTreeMap::new(),
            last_begun: 0,
            waiting: BTreeMap::new(),
            clients,
            history: History::default(),
            counts,
        };
        for object in 0..OBJECTS {
            world.commit(object);
        }
        (0..CLIENTS).for_each(|of| world.at(Duration::ZERO, Event::Turn { of }));
        world.at(Duration::ZERO, Event::ServerTurn);
        world.at(Duration::ZERO, Event::WriteTurn);
        world
    }

    fn limits(rng: &mut Rng) -> ServerLimits {
        ServerLimits {
            sessions_max: rng.usize(2..6),
            held_max: rng.usize(2..8),
            dropped_max: rng.usize(1..6),
            untold_max: rng.usize(4..20),
        }
    }

    fn at(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now.after(after), self.sequence)));
        self.pending.insert(self.sequence, event);
    }

    fn micros(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_micros(self.rng.u64(range))
    }

    /// Sends a message: it comes once, twice or never, soon or late.
    fn send(&mut self, client: usize, event: impl Fn() -> Event) {
        let is_cut = self.clients[client].cut_until > self.now;
        let copies = if is_cut { 0 } else { [0, 1, 1, 1, 1, 1, 1, 2][self.rng.usize(0..8)] };
        for _ in 0..copies {
            let is_late = self.rng.u8(0..16) == 0;
            let delay = if is_late { self.micros(1_000..30_000) } else { self.micros(20..900) };
            self.at(delay, event());
        }
    }

    fn ask(&mut self, from: usize, message: &Message) {
        self.send(from, || Event::ToServer { from, message: message.clone() });
    }

    fn answer(&mut self, to: usize, message: &Message) {
        self.send(to, || Event::ToClient { to, message: message.clone() });
    }

    fn run(mut self) -> (History<u8, u64>, Counts) {
        let end = self.now.after(LASTS);
        while let Some(Reverse((at, sequence))) = self.events.pop() {
            if at > end {
                break;
            }
            // Two events never fall on one instant, so that the order of a write and a read is never in doubt.
            self.now = at.max(self.now.after(Duration::from_nanos(1)));
            match self.pending.remove(&sequence).expect("each event comes once") {
                Event::ToServer { from, message } => self.serve(from, message),
                Event::ToClient { to, message } => self.receive(to, message),
                Event::Turn { of } => self.turn(of),
                Event::ServerTurn => self.server_turn(),
                Event::WriteTurn => self.at(Duration::from_micros(100), Event::WriteTurn),
            }
            self.end_writes();
            self.tell_news();
        }
        (self.history, self.counts)
    }

    /// Writes a new number into some members of an object, which is made if it is not there.
    fn commit(&mut self, object: u8) -> (u64, Position) {
        self.values += 1;
        self.commit_value(object, self.values)
    }

    fn commit_value(&mut self, object: u8, value: u64) -> (u64, Position) {
        let members = [Members::one(0), Members::one(1), Members::ALL][self.rng.usize(0..3)];
        // Two commits never fall on one instant.
        self.now = self.now.after(Duration::from_nanos(1));
        let cell = self.cells.entry(object).or_insert(Cell { version: None, state: [0; 2] });
        cell.state = only(members, [value; 2], cell.state);
        cell.version = match object {
            PUSHED => self.server.publish(&object, members),
            _ => self.server.commit(&object, members),
        };
        let value = value_of(cell.state);
        self.history.wrote(&object, value, self.now);
        (value, self.server.head())
    }

    fn begin_write(&mut self, object: u8, value: u64, client: Option<usize>) {
        let id = self.server.begin_write(&object, missed_max(object).expect("it has a bound"));
        self.counts.waited += usize::from(self.server.waits_until(id, self.now).is_some());
        self.begun.insert(id, ((object, value), client));
        self.last_begun = value;
    }

    /// Answers the probes that wait and have news.
    fn tell_news(&mut self) {
        for session in self.server.take_due() {
            self.counts.news += 1;
            self.answer_waiting(session);
        }
    }

    fn answer_waiting(&mut self, session: SessionId) {
        if let Some((client, probe)) = self.waiting.remove(&session) {
            let answer = self.probe(&probe);
            self.answer(client, &answer);
        }
    }

    /// Makes the writes for which nobody has to be waited any more.
    fn end_writes(&mut self) {
        loop {
            let ready = self.server.ready(self.now);
            if ready.is_empty() {
                return;
            }
            for id in ready {
                self.end_write(id);
            }
        }
    }

    fn end_write(&mut self, id: WriteId) {
        let ((object, number), client) = self.begun.remove(&id).expect("each write is made once");
        let members = [Members::one(0), Members::one(1), Members::ALL][self.rng.usize(0..3)];
        let before = self.cells[&object].state;
        let state = only(members, [number; 2], before);
        let version = self.server.finish_write(id, members);
        self.cells.insert(object, Cell { version, state });
        let (value, at) = (value_of(state), self.server.head());
        self.history.wrote(&object, value, self.now);
        match object {
            LINEARIZABLE => self.counts.linearizable_writes += 1,
            _ => self.counts.bounded_writes += 1,
        }
        if let Some(client) = client {
            let epoch = Epoch(self.epoch);
            self.answer(client, &Message::Written { epoch, object, value, at });
        }
        self.now = self.now.after(Duration::from_nanos(1));
    }

    fn server_turn(&mut self) {
        let object = self.rng.u8(0..OBJECTS);
        match self.rng.u16(0..1_000) {
            0..850 if missed_max(object).is_some() => {
                self.values += 1;
                self.begin_write(object, self.values, None);
            }
            0..850 => drop(self.commit(object)),
            850..880 => {
                if missed_max(object).is_none() && self.cells.remove(&object).is_some() {
                    self.server.remove(&object);
                    self.history.removed(&object, self.now);
                    self.counts.removals += 1;
                }
            }
            880..950 => {
                let session = self.clients[self.rng.usize(0..CLIENTS)].cache.session();
                if let Some(of) = session {
                    self.server.evict(of.session, &object);
                    self.counts.evictions += 1;
                }
            }
            950..965 => {
                if let Some(of) = self.clients[self.rng.usize(0..CLIENTS)].cache.session() {
                    self.server.end(of.session);
                }
            }
            965..970 => self.restart(),
            970..985 => {
                let client = self.rng.usize(0..CLIENTS);
                self.clients[client].cut_until = self.now.after(self.micros(1_000..40_000));
            }
            _ => {
                let client = self.rng.usize(0..CLIENTS);
                self.clients[client].stopped_until = self.now.after(self.micros(1_000..40_000));
            }
        }
        // A probe does not wait for ever.
        if self.rng.u8(0..4) == 0
            && let Some(session) = self.waiting.keys().next().copied()
        {
            self.answer_waiting(session);
        }
        let pause = self.micros(50..1_500);
        self.at(pause, Event::ServerTurn);
    }

    /// The server begins a new life with the states of the old one.
    fn restart(&mut self) {
        self.epoch += 1;
        self.server = Server::new(Epoch(self.epoch), World::limits(&mut self.rng), TERMS, self.now);
        self.begun.clear();
        self.waiting.clear();
        self.cells.values_mut().for_each(|cell| cell.version = None);
        self.counts.lives += 1;
    }

    fn serve(&mut self, from: usize, message: Message) {
        let reply = match message {
            Message::Open => Message::Opened(self.server.open(self.now)),
            Message::Fill { object, entry, fill } => {
                let filled = self.fill(object, &fill);
                Message::Filled { object, entry, fill, filled }
            }
            Message::Probe(probe) => self.probe(&probe),
            Message::Wait(probe) => {
                if self.server.wait(&probe) {
                    let before = self.waiting.insert(probe.of.session, (from, probe));
                    if let Some((client, probe)) = before {
                        let answer = self.probe(&probe);
                        self.answer(client, &answer);
                    }
                    return;
                }
                self.probe(&probe)
            }
            Message::Write { object, value } => {
                // A copy that comes again is not carried out again: the ORB sends a call once.
                if self.cells.get(&object).is_none_or(|cell| cell.state.iter().any(|it| *it >= value)) {
                    return;
                }
                if missed_max(object).is_some() {
                    if value > self.last_begun {
                        self.begin_write(object, value, Some(from));
                    }
                    return;
                }
                let (value, at) = self.commit_value(object, value);
                Message::Written { epoch: Epoch(self.epoch), object, value, at }
            }
            _ => unreachable!("a server gets no replies"),
        };
        self.answer(from, &reply);
    }

    /// What a driver answers to a fill: it has the object's lock meanwhile.
    fn fill(&mut self, object: u8, fill: &Fill) -> Option<(Filled<u8>, Option<State>)> {
        let cell = self.cells.get_mut(&object)?;
        let filled = self.server.fill(fill, &object, cell.version, self.now);
        let state = match filled {
            Filled::State { version, .. } => {
                cell.version = Some(version);
                Some(cell.state)
            }
            Filled::Refused { .. } | Filled::Unknown { .. } => None,
        };
        Some((filled, state))
    }

    /// What a driver answers to a probe. Others may write before it has read the states.
    fn probe(&mut self, probe: &Probe) -> Message {
        // One object, or all but one, or all.
        let room = [1, usize::from(OBJECTS) - 1, usize::MAX][self.rng.usize(0..3)];
        let answer = self.server.probe_part(&Probe { room, ..*probe }, self.now, |_, _| 1);
        self.counts.parts += usize::from(answer.is_part());
        if self.rng.u8(0..4) == 0 {
            let object = self.rng.u8(PUSHED..OBJECTS);
            self.commit(object);
        }
        let answer = answer.with_values(|object, due: Due| {
            let cell = self.cells.get(object)?;
            let members = due.of_version(cell.version?);
            Some((cell.version?, members, only(members, cell.state, [u64::MAX; 2])))
        });
        Message::Answer(answer)
    }

    fn local(&self, of: usize) -> Moment {
        let Reader { clock, drift_ppm, .. } = self.clients[of];
        let nanos = self.now.as_nanos();
        let drift = i64::try_from(nanos).expect("a short time") * drift_ppm / 1_000_000;
        Moment::from_nanos((nanos + clock).saturating_add_signed(drift))
    }

    fn receive(&mut self, to: usize, message: Message) {
        if self.clients[to].stopped_until > self.now {
            // It waits in the socket.
            let until = self.clients[to].stopped_until.since(self.now).unwrap_or_default();
            return self.at(until, Event::ToClient { to, message });
        }
        let local = self.local(to);
        match message {
            Message::Opened(opened) => self.clients[to].cache.opened(opened),
            Message::Filled { object, entry, fill, filled } => {
                let Reader { cache, places, .. } = &mut self.clients[to];
                match filled {
                    None => cache.fill_failed(entry, fill.token, places),
                    Some(filled) => {
                        cache.filled(entry, filled, local, places);
                        if let (_, Some(state)) = filled {
                            self.read_by_fill(to, object, fill.token, state);
                        }
                    }
                }
            }
            Message::Answer(answer) => {
                let is_part = answer.is_part();
                self.counts.renewals += usize::from(!is_part && matches!(answer, Answer::Changes { .. }));
                let Reader { cache, places, .. } = &mut self.clients[to];
                cache.answered(answer, local, places);
                if is_part && let Some(probe) = cache.probe(local, places) {
                    self.ask(to, &Message::Probe(probe));
                }
            }
            Message::Written { epoch, object, value, at } => {
                let Reader { cache, places, .. } = &mut self.clients[to];
                cache.wrote(epoch, at, places);
                self.history.told(to, &object, value, self.now);
            }
            _ => unreachable!("a client gets no requests"),
        }
        self.go_on(to);
    }

    /// The answer to a fill is also that of a remote call.
    fn read_by_fill(&mut self, of: usize, object: u8, token: ironorb_cache::Token, state: State) {
        let client = &mut self.clients[of];
        let Some(reading) = client.reading.filter(|it| it.object == object) else { return };
        if client.fills.contains(&token) {
            client.reading = None;
            self.counts.fills += 1;
            self.note(of, reading, value_of(state));
        }
    }

    fn note(&mut self, of: usize, reading: Reading, value: u64) {
        let Reading { object, lag, from, .. } = reading;
        // A lag on a slow clock is a little more, and a linearizable read has none.
        let lag = if object == LINEARIZABLE { Duration::ZERO } else { lag + lag / 900 };
        let missed_max = missed_max(object).map(|most| most as usize);
        self.history.read(SeenRead { reader: of, object, value, from, to: self.now, lag, missed_max });
    }

    fn turn(&mut self, of: usize) {
        if self.clients[of].stopped_until <= self.now {
            // A client may renew before it must, and so while fills are out.
            let local = self.local(of);
            let Reader { cache, places, .. } = &mut self.clients[of];
            if self.rng.bool()
                && let Some(probe) = cache.probe(local, places)
            {
                let waits = self.rng.bool();
                self.ask(of, &if waits { Message::Wait(probe) } else { Message::Probe(probe) });
            }
            match self.clients[of].reading {
                Some(_) => self.go_on(of),
                None if self.rng.u8(0..12) == 0 => {
                    // Values grow with time, so that the server tells copies of old writes.
                    self.values += 1;
                    let message = Message::Write { object: self.rng.u8(0..OBJECTS), value: self.values };
                    self.ask(of, &message);
                }
                None => {
                    let (object, lag) = (self.rng.u8(0..OBJECTS), LAGS[self.rng.usize(0..LAGS.len())]);
                    let lag = if missed_max(object).is_some() { TERMS.term } else { lag };
                    self.clients[of].fills.clear();
                    // A client may have two places for one object.
                    let entry = EntryId(u64::from(object + OBJECTS * self.rng.u8(0..2)));
                    self.clients[of].reading =
                        Some(Reading { object, entry, lag, from: self.now, asked: None });
                    self.go_on(of);
                }
            }
        }
        let pause = self.micros(20..1_000);
        self.at(pause, Event::Turn { of });
    }

    /// Tries the read again that a client is at.
    fn go_on(&mut self, of: usize) {
        let local = self.local(of);
        let Some(reading) = self.clients[of].reading else { return };
        let Reader { cache, places, .. } = &mut self.clients[of];
        let miss = match cache.read(reading.entry, (reading.lag, Position::START), local, places) {
            Read::Hit { .. } => {
                let state = places.state(reading.entry);
                self.clients[of].reading = None;
                self.counts.hits += 1;
                self.counts.linearizable_hits += usize::from(reading.object == LINEARIZABLE);
                self.counts.bounded_hits += usize::from(reading.object == BOUNDED);
                // A read that has waited is one from now on: what it found is at most as old as its lag now.
                return self.note(of, reading, value_of(state));
            }
            Read::Miss(miss) => miss,
        };
        if self.now.since(reading.from).is_some_and(|waited| waited > READ_MAX) {
            self.clients[of].reading = None;
            self.counts.given_up += 1;
            return;
        }
        let is_asked = |asked: Moment| self.now.since(asked).is_some_and(|waited| waited < PATIENCE);
        if reading.asked.is_some_and(is_asked) {
            return;
        }
        let message = match miss {
            Miss::NoSession => Some(Message::Open),
            Miss::TooOld => cache.probe(local, places).map(Message::Probe),
            Miss::NotHeld | Miss::Filling => {
                let Reading { object, entry, .. } = reading;
                let fill = cache.fill(entry, local, places);
                self.clients[of].fills.extend(fill.map(|fill| fill.token));
                fill.map(|fill| Message::Fill { object, entry, fill })
            }
        };
        self.clients[of].reading = Some(Reading { asked: Some(self.now), ..reading });
        if let Some(message) = message {
            self.ask(of, &message);
        }
    }
}

/// The seed in `IRONORB_TEST_SEED`, or `IRONORB_TEST_SEEDS` times as many as the gate has, of which the first
/// `IRONORB_TEST_SEEDS_DONE` times as many are left out.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|number: String| number.parse::<u64>().ok());
    match number("IRONORB_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let done = number("IRONORB_TEST_SEEDS_DONE").unwrap_or(0);
            let end = number("IRONORB_TEST_SEEDS").unwrap_or(done + 1);
            assert!(done < end, "IRONORB_TEST_SEEDS_DONE leaves no seeds");
            200 * done..200 * end
        }
    }
}

#[test]
fn no_read_breaks_the_promise() {
    let mut all = Counts::default();
    let mut reads = 0;
    for seed in seeds() {
        let history;
        (history, all) = World::new(seed, all).run();
        let violations = history.violations();
        assert!(
            violations.is_empty(),
            "IRONORB_TEST_SEED={seed}: {} of {} reads: {}",
            violations.len(),
            history.reads(),
            violations[0]
        );
        reads += history.reads();
    }
    // Histories in which nothing happens prove nothing. One alone need not have all.
    if seeds().count() == 1 {
        return;
    }
    let linearizable = [all.linearizable_writes, all.linearizable_hits];
    let bounded = [all.bounded_writes, all.bounded_hits, all.waited, all.news, all.parts];
    let each = [all.hits, all.fills, all.renewals, all.lives, all.evictions, all.removals];
    let mut each = each.iter().chain(&linearizable).chain(&bounded);
    assert!(each.all(|count| *count > seeds().count()), "{all:?}, {reads} reads");
    assert!(all.given_up * 10 < reads, "{all:?}, {reads} reads");
}

/// The same seed gives the same history.
#[test]
fn a_seed_is_a_history() {
    let run = || {
        let (history, counts) = World::new(42, Counts::default()).run();
        (history.reads(), format!("{counts:?}"))
    };
    assert_eq!(run(), run());
}
