//! The state of the model: the two machines, what is on the way between them, and what has happened to the objects.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher as _};
use std::time::Duration;

use ironorb_cache::{
    Answer, Client, ClientLimits, Entries, EntryId, Epoch, Fill, Filled, Held, Members, Moment, Opened,
    Position, Probe, Read, Server, ServerLimits, Terms, WriteId,
};

/// The nanoseconds of the server's clock in a tick. The first client's clock runs at half its speed, which is the drift bound; the
/// second one's is exact.
const SERVER_RATE: u64 = 2;
const CLIENT_RATES: [u64; 2] = [1, 2];
/// Where the clients' clocks begin: nothing compares them with the server's.
const CLIENT_CLOCKS: [u64; 2] = [1_000, 0];
/// Two ticks of the slow clock, and one of the server's.
pub(crate) const TERMS: Terms = Terms { term: Duration::from_nanos(2), drift_ppm: 500_000 };
/// The lags of reads, in nanoseconds of the client's clock.
const LAGS: [Duration; 3] = [Duration::ZERO, Duration::from_nanos(1), TERMS.term];
/// A term that a server has begun is over when so many ticks have passed, and one more has begun.
pub(crate) const TERM_TICKS: u8 = 2;
/// The terms of the server's life before are over by then.
const START: u8 = TERM_TICKS + 1;

/// What may happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    pub(crate) clients: u8,
    pub(crate) objects: u8,
    /// The places of a client. Those beyond the objects are second places of the first ones.
    pub(crate) entries: u8,
    /// Whether all clients hold all objects in the beginning.
    pub(crate) is_filled: bool,
    pub(crate) server_limits: ServerLimits,
    pub(crate) client_limits: ClientLimits,
    /// How many units an answer has room for.
    pub(crate) room: usize,
    pub(crate) ticks: u8,
    pub(crate) left: Left,
}

/// How often each may happen still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) opens: u8,
    pub(crate) fills: u8,
    pub(crate) probes: u8,
    /// Writes of the server's program.
    pub(crate) writes: u8,
    pub(crate) client_writes: u8,
    /// Writes that wait, and how many of them a client may miss.
    pub(crate) bounded_writes: u8,
    pub(crate) missed_max: u32,
    pub(crate) copies: u8,
    pub(crate) evictions: u8,
    pub(crate) removals: u8,
    /// Sessions that the server ends.
    pub(crate) ends: u8,
    /// Sessions that a client forgets.
    pub(crate) lapses: u8,
    pub(crate) restarts: u8,
}

/// Two members. Odd writes change the first one, even writes the second one, so that a state tells whether both are of one version.
pub(crate) type State = [u8; 2];

fn state_of(number: u8) -> State {
    match number % 2 {
        0 => [number.saturating_sub(1), number],
        _ => [number, number - 1],
    }
}

fn members_of(number: u8) -> Members {
    Members::one(usize::from(number.is_multiple_of(2)))
}

/// The number of the write that made a state. `None` if no write did.
pub(crate) fn number_of(state: State) -> Option<u8> {
    let number = state[0].max(state[1]);
    (state_of(number) == state).then_some(number)
}

fn only(members: Members, state: State, others: State) -> State {
    [0, 1].map(|place| if members.has(place) { state[place] } else { others[place] })
}

/// An object, as the server's driver has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    /// How often it has been written.
    pub(crate) number: u8,
    is_there: bool,
    version: Option<Position>,
    /// For each state: at which tick the object had it no more.
    pub(crate) ended: Vec<u8>,
}

/// A place of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) state: State,
    /// The session whose answer has put it there.
    pub(crate) of: Opened,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Places {
    places: BTreeMap<EntryId, Place>,
    /// The session of the answer that is being taken.
    of: Opened,
}

impl Entries<State> for Places {
    fn put(&mut self, entry: EntryId, _: Held, members: Members, values: State) -> Option<usize> {
        let before = self.places.get(&entry).map_or([u8::MAX; 2], |place| place.state);
        self.places.insert(entry, Place { state: only(members, values, before), of: self.of });
        Some(0)
    }

    fn end(&mut self, entry: EntryId) {
        self.places.remove(&entry);
    }
}

/// A client, and what it must not fall behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reader {
    pub(crate) cache: Client<u8>,
    places: Places,
    /// By object: the last write that it could read, that it was told of as its own, and that had been made when the server answered
    /// the newest probe.
    pub(crate) seen: Vec<u8>,
    pub(crate) own: Vec<u8>,
    pub(crate) answered: Vec<u8>,
    /// Whether a place went behind what it had shown before.
    pub(crate) went_back: bool,
}

/// What is on the way. The numbers are those of a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Message {
    Open(u8),
    Opened(u8, Opened),
    Fill(u8, EntryId, Fill),
    Filled(u8, EntryId, Fill, Option<(Filled<u8>, Option<State>)>),
    Probe(u8, Probe),
    /// With the numbers of the objects' last writes when it was made.
    Answer(u8, Answer<u8, State>, Vec<u8>),
    Write(u8, u8),
    Written(u8, u8, u8, Epoch, Position),
}

/// What can happen next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Tick,
    /// A message comes.
    Comes(Message),
    /// A message comes, and will come again.
    ComesFirst(Message),
    /// A probe comes, and before the values for its answer are read, an object is written.
    ComesBefore(Message, u8),
    Opens(u8),
    Fills(u8, EntryId),
    Probes(u8),
    Writes(u8),
    ClientWrites(u8, u8),
    BeginsWrite(u8),
    Evicts(u8, u8),
    Removes(u8),
    Ends(u8),
    Lapses(u8),
    Restarts,
}

/// A write that waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Begun {
    pub(crate) id: WriteId,
    object: u8,
    /// Since when it waits for clients.
    pub(crate) since: u8,
}

/// A read that hits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hit {
    pub(crate) client: u8,
    pub(crate) object: u8,
    pub(crate) lag: Duration,
    pub(crate) state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) time: u8,
    pub(crate) server: Server<u8>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) clients: Vec<Reader>,
    /// In an order that only its members decide.
    network: Vec<Message>,
    pub(crate) begun: Vec<Begun>,
    /// All reads that would hit now.
    pub(crate) hits: Vec<Hit>,
    /// When the server's life began, or a session last ended: its term is waited for.
    pub(crate) ended: u8,
    room: usize,
    left: Left,
}

impl Left {
    pub(crate) const NOTHING: Left = Left {
        opens: 0,
        fills: 0,
        probes: 0,
        writes: 0,
        client_writes: 0,
        bounded_writes: 0,
        missed_max: 0,
        copies: 0,
        evictions: 0,
        removals: 0,
        ends: 0,
        lapses: 0,
        restarts: 0,
    };
}

impl World {
    pub(crate) fn new(scope: &Scope) -> World {
        let server = Server::new(Epoch(1), scope.server_limits, TERMS, server_moment(0));
        let cell = || Cell { number: 0, is_there: true, version: None, ended: Vec::new() };
        let mut world = World {
            time: START,
            server,
            cells: (0..scope.objects).map(|_| cell()).collect(),
            clients: Vec::new(),
            network: Vec::new(),
            begun: Vec::new(),
            hits: Vec::new(),
            ended: 0,
            room: scope.room,
            left: scope.left,
        };
        for client in 0..scope.clients {
            world.enter(client, scope);
        }
        world
    }

    /// A client comes, with a session, and with states if the scope says so.
    fn enter(&mut self, client: u8, scope: &Scope) {
        let of = self.server.open(self.server_now());
        let mut cache = Client::new(scope.client_limits);
        // The server's room is set below; one that doubles would only be more to explore.
        cache.set_update_bytes(usize::MAX);
        cache.opened(of);
        let none = vec![0; scope.objects.into()];
        let places = Places { places: BTreeMap::new(), of };
        let (seen, own, answered) = (none.clone(), none.clone(), none);
        self.clients.push(Reader { cache, places, seen, own, answered, went_back: false });
        for entry in (0..scope.objects).filter(|_| scope.is_filled).map(|it| EntryId(it.into())) {
            self.send_fill(client, entry);
            let message = self.network.pop().expect("it has been sent");
            self.take(message, None);
            let message = self.network.pop().expect("it has been answered");
            self.take(message, None);
        }
    }

    pub(crate) fn server_now(&self) -> Moment {
        server_moment(self.time)
    }

    pub(crate) fn client_now(&self, client: u8) -> Moment {
        let client = usize::from(client);
        Moment::from_nanos(CLIENT_CLOCKS[client] + CLIENT_RATES[client] * u64::from(self.time))
    }

    /// The ticks since a tick, in nanoseconds of a client's clock.
    pub(crate) fn since(&self, tick: u8, client: u8) -> Duration {
        Duration::from_nanos(CLIENT_RATES[usize::from(client)] * u64::from(self.time - tick))
    }

    pub(crate) fn object_of(&self, entry: EntryId) -> u8 {
        u8::try_from(entry.0).expect("few places") % u8::try_from(self.cells.len()).expect("few objects")
    }

    pub(crate) fn is_last_tick(&self, scope: &Scope) -> bool {
        self.time == START + scope.ticks
    }

    /// What a client would read now.
    fn read(&mut self, client: u8, entry: EntryId, lag: Duration) -> Option<State> {
        let now = self.client_now(client);
        let Reader { cache, places, .. } = &mut self.clients[usize::from(client)];
        let read = cache.read(entry, (lag, Position::START), now, places);
        matches!(read, Read::Hit { .. }).then(|| places.places[&entry].state)
    }

    /// The places of a client that hold something.
    pub(crate) fn places(&self, client: u8) -> impl Iterator<Item = (EntryId, Place)> {
        self.clients[usize::from(client)].places.places.iter().map(|(entry, place)| (*entry, *place))
    }

    pub(crate) fn steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        if !self.is_last_tick(scope) {
            steps.push(Step::Tick);
        }
        self.deliveries(steps);
        for client in 0..scope.clients {
            self.steps_of(client, scope, steps);
        }
        let left = &self.left;
        let objects = 0..scope.objects;
        if left.writes > 0 {
            steps.extend(objects.clone().map(Step::Writes));
        }
        if left.bounded_writes > 0 && self.time + self.longest_wait() <= START + scope.ticks {
            steps.extend(objects.clone().map(Step::BeginsWrite));
        }
        if left.removals > 0 {
            steps.extend(objects.filter(|it| self.cells[usize::from(*it)].is_there).map(Step::Removes));
        }
        if left.restarts > 0 {
            steps.push(Step::Restarts);
        }
    }

    /// The ticks until a write is made for sure that begins now. Those of which clients may miss some wait one after another.
    fn longest_wait(&self) -> u8 {
        let one = TERM_TICKS + 1;
        if self.left.missed_max == 0 { one } else { one * u8::try_from(self.begun.len() + 1).expect("few") }
    }

    /// A message that does not come before the end is a lost one.
    fn deliveries(&self, steps: &mut Vec<Step>) {
        for message in &self.network {
            steps.push(Step::Comes(message.clone()));
            // The ORB sends a call once.
            if self.left.copies > 0 && !matches!(message, Message::Write(..) | Message::Written(..)) {
                steps.push(Step::ComesFirst(message.clone()));
            }
            if self.left.writes > 0 && matches!(message, Message::Probe(..)) {
                let before = |object| Step::ComesBefore(message.clone(), object);
                steps.extend((0..self.cells.len()).map(|it| before(u8::try_from(it).expect("few"))));
            }
        }
    }

    fn steps_of(&self, client: u8, scope: &Scope, steps: &mut Vec<Step>) {
        let left = &self.left;
        let has_session = self.clients[usize::from(client)].cache.session().is_some();
        if has_session && left.fills > 0 {
            steps.extend((0..scope.entries).map(|entry| Step::Fills(client, EntryId(entry.into()))));
        }
        if has_session && left.probes > 0 {
            steps.push(Step::Probes(client));
        }
        if !has_session && left.opens > 0 {
            steps.push(Step::Opens(client));
        }
        if left.client_writes > 0 {
            steps.extend((0..scope.objects).map(|object| Step::ClientWrites(client, object)));
        }
        if has_session && left.evictions > 0 {
            steps.extend((0..scope.objects).map(|object| Step::Evicts(client, object)));
        }
        if has_session && left.ends > 0 {
            steps.push(Step::Ends(client));
        }
        if has_session && left.lapses > 0 {
            steps.push(Step::Lapses(client));
        }
    }

    pub(crate) fn make(&mut self, step: Step) {
        match step {
            Step::Tick => self.time += 1,
            Step::Comes(message) => self.come(message, None),
            Step::ComesFirst(message) => {
                self.left.copies -= 1;
                self.take(message, None);
            }
            Step::ComesBefore(message, object) => self.come(message, Some(object)),
            Step::Opens(client) => {
                self.left.opens -= 1;
                self.post(Message::Open(client));
            }
            Step::Fills(client, entry) => {
                self.left.fills -= 1;
                self.send_fill(client, entry);
            }
            Step::Probes(client) => {
                self.left.probes -= 1;
                self.send_probe(client);
            }
            Step::Writes(object) => {
                self.left.writes -= 1;
                self.write(object);
            }
            Step::ClientWrites(client, object) => {
                self.left.client_writes -= 1;
                self.post(Message::Write(client, object));
            }
            Step::BeginsWrite(object) => {
                self.left.bounded_writes -= 1;
                let id = self.server.begin_write(&object, self.left.missed_max);
                self.begun.push(Begun { id, object, since: self.time });
            }
            Step::Evicts(..) | Step::Removes(_) | Step::Ends(_) | Step::Lapses(_) | Step::Restarts => {
                self.fail(&step);
            }
        }
        self.end_writes();
        self.note_seen();
    }

    /// Something that is not as usual.
    fn fail(&mut self, step: &Step) {
        match *step {
            Step::Evicts(client, object) => {
                self.left.evictions -= 1;
                let of = self.clients[usize::from(client)].cache.session();
                self.server.evict(of.expect("it has one").session, &object);
            }
            Step::Removes(object) => {
                self.left.removals -= 1;
                let time = self.time;
                let cell = &mut self.cells[usize::from(object)];
                cell.is_there = false;
                cell.version = None;
                cell.ended.push(time);
                self.server.remove(&object);
            }
            Step::Ends(client) => {
                self.left.ends -= 1;
                let of = self.clients[usize::from(client)].cache.session();
                self.server.end(of.expect("it has one").session);
                self.ended = self.time;
            }
            Step::Lapses(client) => {
                self.left.lapses -= 1;
                let Reader { cache, places, .. } = &mut self.clients[usize::from(client)];
                cache.lapse(places);
            }
            Step::Restarts => self.restart(),
            _ => unreachable!("the others are usual"),
        }
    }

    /// The server begins a new life, with the states of the old one.
    fn restart(&mut self) {
        self.left.restarts -= 1;
        let epoch = Epoch(self.server.epoch().0 + 1);
        self.server = Server::new(epoch, self.server.limits(), TERMS, self.server_now());
        self.cells.iter_mut().for_each(|cell| cell.version = None);
        self.begun.clear();
        self.ended = self.time;
    }

    fn come(&mut self, message: Message, write: Option<u8>) {
        self.network.retain(|other| *other != message);
        self.take(message, write);
    }

    fn post(&mut self, message: Message) {
        if !self.network.contains(&message) {
            self.network.push(message);
            self.network.sort_by_cached_key(|message| {
                let mut hasher = DefaultHasher::new();
                message.hash(&mut hasher);
                hasher.finish()
            });
        }
    }

    fn send_fill(&mut self, client: u8, entry: EntryId) {
        let now = self.client_now(client);
        let Reader { cache, places, .. } = &mut self.clients[usize::from(client)];
        let fill = cache.fill(entry, now, places).expect("it has a session");
        self.post(Message::Fill(client, entry, fill));
    }

    fn send_probe(&mut self, client: u8) {
        let now = self.client_now(client);
        let Reader { cache, places, .. } = &mut self.clients[usize::from(client)];
        let probe = cache.probe(now, places).expect("it has a session");
        self.post(Message::Probe(client, probe));
    }

    /// A message is taken by whom it is for. While a probe is answered, an object may be written.
    fn take(&mut self, message: Message, write: Option<u8>) {
        match message {
            Message::Open(client) => {
                let opened = self.server.open(self.server_now());
                self.post(Message::Opened(client, opened));
            }
            Message::Fill(client, entry, fill) => {
                let filled = self.answer_fill(self.object_of(entry), &fill);
                self.post(Message::Filled(client, entry, fill, filled));
            }
            Message::Probe(client, probe) => {
                let numbers = self.numbers();
                let answer = self.answer_probe(&probe, write);
                self.post(Message::Answer(client, answer, numbers));
            }
            Message::Write(client, object) => {
                let number = self.write(object);
                let (epoch, at) = (self.server.epoch(), self.server.head());
                self.post(Message::Written(client, object, number, epoch, at));
            }
            reply => self.take_reply(reply),
        }
    }

    fn take_reply(&mut self, reply: Message) {
        match reply {
            Message::Opened(client, opened) => self.clients[usize::from(client)].cache.opened(opened),
            Message::Filled(client, entry, fill, filled) => self.take_filled(client, entry, &fill, filled),
            Message::Answer(client, answer, _) if answer.is_part() => self.take_part(client, answer),
            Message::Answer(client, answer, numbers) => self.take_answer(client, answer, &numbers),
            Message::Written(client, object, number, epoch, at) => {
                let Reader { cache, places, own, .. } = &mut self.clients[usize::from(client)];
                cache.wrote(epoch, at, places);
                let own = &mut own[usize::from(object)];
                *own = number.max(*own);
            }
            _ => unreachable!("a client gets no requests"),
        }
    }

    fn take_filled(
        &mut self,
        client: u8,
        entry: EntryId,
        fill: &Fill,
        filled: Option<(Filled<u8>, Option<State>)>,
    ) {
        let now = self.client_now(client);
        let object = usize::from(self.object_of(entry));
        let Reader { cache, places, seen, .. } = &mut self.clients[usize::from(client)];
        let Some((filled, state)) = filled else { return cache.fill_failed(entry, fill.token, places) };
        places.of = filled.session();
        let is_asked = cache.session() == Some(places.of);
        cache.filled(entry, (filled, state), now, places);
        // It is also the answer to a remote call, if that still waits.
        if let Some(number) = state.and_then(number_of).filter(|_| is_asked) {
            seen[object] = number.max(seen[object]);
        }
    }

    fn take_part(&mut self, client: u8, answer: Answer<u8, State>) {
        let now = self.client_now(client);
        let Reader { cache, places, .. } = &mut self.clients[usize::from(client)];
        places.of = answer.session();
        cache.answered(answer, now, places);
    }

    fn take_answer(&mut self, client: u8, answer: Answer<u8, State>, numbers: &[u8]) {
        let now = self.client_now(client);
        let Reader { cache, places, answered, .. } = &mut self.clients[usize::from(client)];
        let before = cache.proof();
        places.of = answer.session();
        cache.answered(answer, now, places);
        if cache.session().is_some() && cache.proof() != before {
            answered
                .iter_mut()
                .zip(numbers)
                .for_each(|(answered, number)| *answered = (*answered).max(*number));
        }
    }

    fn numbers(&self) -> Vec<u8> {
        self.cells.iter().map(|cell| cell.number).collect()
    }

    /// Writes an object, which is made if it is not there.
    fn write(&mut self, object: u8) -> u8 {
        let version = self.server.commit(&object, members_of(self.cells[usize::from(object)].number + 1));
        self.written(object, version)
    }

    fn written(&mut self, object: u8, version: Option<Position>) -> u8 {
        let cell = &mut self.cells[usize::from(object)];
        if cell.is_there {
            cell.ended.push(self.time);
        }
        cell.number += 1;
        cell.is_there = true;
        cell.version = version;
        cell.number
    }

    /// Makes the writes for which nobody has to be waited any more.
    fn end_writes(&mut self) {
        while let Some(id) = self.server.ready(self.server_now()).first().copied() {
            let place = self.begun.iter().position(|it| it.id == id).expect("it has begun");
            let object = self.begun.remove(place).object;
            let members = members_of(self.cells[usize::from(object)].number + 1);
            let version = self.server.finish_write(id, members);
            self.written(object, version);
            // The next write with misses waits from now on.
            if self.left.missed_max > 0 {
                let time = self.time;
                self.begun.iter_mut().filter(|it| it.object == object).for_each(|next| next.since = time);
            }
        }
    }

    /// What a driver answers to a fill: it has the object's lock meanwhile.
    fn answer_fill(&mut self, object: u8, fill: &Fill) -> Option<(Filled<u8>, Option<State>)> {
        let now = self.server_now();
        let cell = &mut self.cells[usize::from(object)];
        if !cell.is_there {
            return None;
        }
        let filled = self.server.fill(fill, &object, cell.version, now);
        let Filled::State { version, .. } = filled else { return Some((filled, None)) };
        cell.version = Some(version);
        Some((filled, Some(state_of(cell.number))))
    }

    /// What a driver answers to a probe. An object may be written before it has read the states.
    fn answer_probe(&mut self, probe: &Probe, write: Option<u8>) -> Answer<u8, State> {
        let probe = Probe { room: self.room, ..*probe };
        let answer = self.server.probe_part(&probe, self.server_now(), |_, _| 1);
        if let Some(object) = write {
            self.left.writes -= 1;
            self.write(object);
        }
        answer.with_values(|object, due| {
            let cell = &self.cells[usize::from(*object)];
            let version = cell.version.filter(|_| cell.is_there)?;
            let members = due.of_version(version);
            Some((version, members, only(members, state_of(cell.number), [u8::MAX; 2])))
        })
    }

    /// Notes what the clients can read now. A read changes nothing but the client's last moment.
    fn note_seen(&mut self) {
        let mut hits = Vec::new();
        for client in 0..u8::try_from(self.clients.len()).expect("few") {
            let entries: Vec<_> = self.places(client).map(|(entry, _)| entry).collect();
            for entry in entries {
                let object = self.object_of(entry);
                let read = |lag| Some(Hit { client, object, lag, state: self.read(client, entry, lag)? });
                hits.extend(LAGS.into_iter().filter_map(read));
                self.note_seen_in(client, entry);
            }
        }
        self.hits = hits;
    }

    fn note_seen_in(&mut self, client: u8, entry: EntryId) {
        let number = self.read(client, entry, Duration::MAX).and_then(number_of);
        let object = usize::from(self.object_of(entry));
        let Reader { seen, went_back, .. } = &mut self.clients[usize::from(client)];
        if let Some(number) = number {
            *went_back |= number < seen[object];
            seen[object] = number.max(seen[object]);
        }
    }

    /// Whether a read of an object ends that nothing disturbs from here on.
    pub(crate) fn read_ends(&self, client: u8, entry: EntryId) -> bool {
        let mut world = World { network: Vec::new(), ..self.clone() };
        // A session, a fill, and probes if the session was there and has ended, or answers are cut.
        for _ in 0..6 {
            if world.read(client, entry, Duration::ZERO).is_some() {
                return true;
            }
            let has_session = world.clients[usize::from(client)].cache.session().is_some();
            match has_session {
                false => world.post(Message::Open(client)),
                true if world.places(client).any(|(held, _)| held == entry) => world.send_probe(client),
                true => world.send_fill(client, entry),
            }
            let asked = world.network.pop().expect("it has been sent");
            world.take(asked, None);
            let answer = world.network.pop().expect("it has been answered");
            if let Message::Filled(_, _, _, None | Some((Filled::Refused { .. }, _))) = answer {
                return true; // the object is not there, or the read is a remote one
            }
            world.take(answer, None);
        }
        false
    }

    /// Whether all writes are made as soon as all clients have answered, which may be once for each write.
    pub(crate) fn writes_end(&self) -> bool {
        let mut world = World { network: Vec::new(), ..self.clone() };
        for _ in 0..self.begun.len() {
            (0..u8::try_from(world.clients.len()).expect("few")).for_each(|client| world.answer_all(client));
            world.end_writes();
        }
        world.begun.is_empty()
    }

    /// A client takes all that it has not been told, and says so.
    fn answer_all(&mut self, client: u8) {
        for _ in 0..=self.cells.len() + 1 {
            if self.clients[usize::from(client)].cache.session().is_some() {
                self.send_probe(client);
                let probe = self.network.pop().expect("it has been sent");
                self.take(probe, None);
                let answer = self.network.pop().expect("it has been answered");
                self.take(answer, None);
            }
        }
    }
}

fn server_moment(tick: u8) -> Moment {
    Moment::from_nanos(SERVER_RATE * u64::from(tick))
}
