//! Places for states, as a driver has them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ironorb_cache::{
    Answer, Client, ClientLimits, Entries, EntryId, Epoch, Fill, Filled, Held, Kind, Members, Miss, Moment,
    Position, Read, Server, ServerLimits, Terms,
};

pub(crate) fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

/// A state of two members.
pub(crate) type State = [u64; 2];

/// `state` in these members, and `others` in the rest.
pub(crate) fn only(members: Members, state: State, others: State) -> State {
    [0, 1].map(|place| if members.has(place) { state[place] } else { others[place] })
}

#[derive(Debug, Default)]
pub(crate) struct Places {
    states: BTreeMap<EntryId, State>,
    /// What places take, if it is something.
    pub(crate) bytes: BTreeMap<EntryId, usize>,
    pub(crate) kinds: BTreeMap<EntryId, Kind>,
    /// Nothing can be put into these.
    pub(crate) unreadable: BTreeSet<EntryId>,
}

impl Places {
    /// What a place has that the machine has filled.
    pub(crate) fn state(&self, entry: EntryId) -> State {
        self.states[&entry]
    }
}

impl Entries<State> for Places {
    fn put(&mut self, entry: EntryId, _: Held, members: Members, values: State) -> Option<usize> {
        if self.unreadable.contains(&entry) {
            return None;
        }
        let state = match members {
            Members::ALL => values,
            _ => only(members, values, self.states[&entry]),
        };
        self.states.insert(entry, state);
        Some(self.bytes.get(&entry).copied().unwrap_or_default())
    }

    fn end(&mut self, entry: EntryId) {
        self.states.remove(&entry);
    }

    fn kind(&self, entry: EntryId) -> Kind {
        self.kinds.get(&entry).copied().unwrap_or(Kind::NONE)
    }
}

/// A server with its cells. Its clock stands.
pub(crate) struct Site {
    pub(crate) server: Server<u32>,
    pub(crate) cells: BTreeMap<u32, (Option<Position>, State)>,
    pub(crate) now: Moment,
}

impl Site {
    /// A site with objects from 0 on, each with its number times 100 in both members.
    pub(crate) fn new(limits: ServerLimits, terms: Terms, objects: u32) -> Site {
        let cell = |object: u32| (object, (None, [u64::from(object) * 100; 2]));
        let server = Server::new(Epoch(1), limits, terms, at(0));
        Site { server, cells: (0..objects).map(cell).collect(), now: at(0) }
    }

    pub(crate) fn write(&mut self, object: u32, members: Members, value: u64) -> Position {
        let (version, state) = self.cells.get_mut(&object).expect("there is such an object");
        *state = only(members, [value; 2], *state);
        *version = self.server.commit(&object, members);
        self.server.head()
    }

    pub(crate) fn fill(&mut self, object: u32, fill: &Fill) -> (Filled<u32>, Option<State>) {
        let (version, state) = self.cells.get_mut(&object).expect("there is such an object");
        let filled = self.server.fill(fill, &object, *version, self.now);
        let Filled::State { version: told, .. } = filled else { return (filled, None) };
        *version = Some(told);
        (filled, Some(*state))
    }

    pub(crate) fn probe(&mut self, probe: &ironorb_cache::Probe) -> Answer<u32, State> {
        self.server.probe(probe, self.now).with_values(|object, due| {
            let (version, state) = self.cells.get(object)?;
            let members = due.of_version((*version)?);
            Some(((*version)?, members, only(members, *state, [u64::MAX; 2])))
        })
    }
}

/// A client with its places. The place of an object has the object's number.
pub(crate) struct Reader {
    pub(crate) client: Client<u32>,
    pub(crate) places: Places,
}

pub(crate) const LAG: Duration = Duration::from_secs(1);

impl Reader {
    pub(crate) fn new(site: &mut Site, limits: ClientLimits) -> Reader {
        let mut client = Client::new(limits);
        client.opened(site.server.open(site.now));
        Reader { client, places: Places::default() }
    }

    pub(crate) fn ask(&mut self, object: u32, now: Moment) -> Fill {
        self.client.fill(EntryId(object.into()), now, &mut self.places).expect("there is a session")
    }

    pub(crate) fn take(&mut self, object: u32, filled: (Filled<u32>, Option<State>), now: Moment) -> bool {
        self.client.filled(EntryId(object.into()), filled, now, &mut self.places)
    }

    /// Fills an object, at one moment.
    pub(crate) fn fill(&mut self, site: &mut Site, object: u32, now: Moment) {
        let fill = self.ask(object, now);
        self.take(object, site.fill(object, &fill), now);
    }

    pub(crate) fn probe(&mut self, now: Moment) -> ironorb_cache::Probe {
        self.client.probe(now, &mut self.places).expect("there is a session")
    }

    pub(crate) fn answered(&mut self, answer: Answer<u32, State>, now: Moment) {
        self.client.answered(answer, now, &mut self.places);
    }

    /// Probes, at one moment.
    pub(crate) fn renew(&mut self, site: &mut Site, now: Moment) {
        let probe = self.probe(now);
        self.answered(site.probe(&probe), now);
    }

    pub(crate) fn look(&mut self, object: u32, lag: Duration, at_least: Position, now: Moment) -> Read {
        self.client.read(EntryId(object.into()), (lag, at_least), now, &mut self.places)
    }

    /// The state of an object, as it was a second ago or later.
    pub(crate) fn read(&mut self, object: u32, now: Moment) -> Result<State, Miss> {
        match self.look(object, LAG, Position::START, now) {
            Read::Hit { .. } => Ok(self.places.state(EntryId(object.into()))),
            Read::Miss(miss) => Err(miss),
        }
    }
}
