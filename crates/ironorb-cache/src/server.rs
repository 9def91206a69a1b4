//! The server's half: the log, and for each session what its client holds and has not been told.

use std::collections::{BTreeMap, BTreeSet};

use crate::in_order::InOrder;
use crate::message::{Answer, Change, Epoch, Fill, Filled, Opened, Position, Probe, SessionId, Unit};

/// How much a server keeps for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The most sessions. One more ends that which has been silent for the longest time.
    pub sessions_max: usize,
    /// The most objects that a session holds. One more drops that which it has held for the longest time.
    pub held_max: usize,
    /// The most objects of which a session has not been told that it holds them no more. Beyond that the session ends.
    pub dropped_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits { sessions_max: 1_000, held_max: 1_000_000, dropped_max: 1_000_000 }
    }
}

/// The states of a server's objects, the order of their writes, and what each session knows of them.
///
/// Memory: the states, and per session at most `held_max + dropped_max` objects' keys and positions.
#[derive(Debug)]
pub struct Server<K, S> {
    epoch: Epoch,
    limits: ServerLimits,
    /// The position of the last write, or of the last drop.
    head: Position,
    objects: BTreeMap<K, Cell<S>>,
    sessions: BTreeMap<SessionId, Session<K>>,
    sessions_made: u64,
    /// The sessions in the order in which they have been heard of.
    heard: InOrder<SessionId>,
}

#[derive(Debug)]
struct Cell<S> {
    version: Position,
    state: S,
    holders: BTreeSet<SessionId>,
}

/// A session of one client.
#[derive(Debug)]
struct Session<K> {
    /// What the client may hold, in the order in which it has asked for it.
    held: InOrder<K>,
    /// What has happened to objects, and is not known to have been taken.
    untold: BTreeMap<K, Untold>,
    /// How many of these are drops.
    dropped: usize,
}

#[derive(Debug, Clone, Copy)]
struct Untold {
    at: Position,
    is_dropped: bool,
}

impl<K> Default for Session<K> {
    fn default() -> Self {
        Session { held: InOrder::default(), untold: BTreeMap::new(), dropped: 0 }
    }
}

impl<K: Ord + Clone> Session<K> {
    fn note(&mut self, object: &K, untold: Untold) {
        let before = self.untold.insert(object.clone(), untold);
        self.dropped += usize::from(untold.is_dropped);
        self.dropped -= usize::from(before.is_some_and(|before| before.is_dropped));
    }

    /// Forgets what the client has taken.
    fn take(&mut self, taken: Position) {
        self.untold.retain(|_, untold| untold.at > taken);
        self.dropped = self.untold.values().filter(|untold| untold.is_dropped).count();
    }
}

impl<K: Ord + Clone, S: Clone> Server<K, S> {
    /// A server without objects. No two lives of a server have the same epoch.
    pub fn new(epoch: Epoch, limits: ServerLimits) -> Self {
        Server {
            epoch,
            limits,
            head: Position::START,
            objects: BTreeMap::new(),
            sessions: BTreeMap::new(),
            sessions_made: 0,
            heard: InOrder::default(),
        }
    }

    /// The end of the log. A reply to a write carries it, so that the writer's cache knows what it must have seen.
    pub fn head(&self) -> Position {
        self.head
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How many sessions may hold an object.
    pub fn holders(&self, object: &K) -> usize {
        self.objects.get(object).map_or(0, |cell| cell.holders.len())
    }

    /// An object's version and state, as a remote call sees them.
    pub fn state(&self, object: &K) -> Option<(Position, &S)> {
        self.objects.get(object).map(|cell| (cell.version, &cell.state))
    }

    /// Commits a write. Returns its position. A write to an object that is not there makes it.
    pub fn commit(&mut self, object: &K, state: S) -> Position {
        self.head = self.head.next();
        let at = self.head;
        match self.objects.get_mut(object) {
            Some(cell) => {
                cell.version = at;
                cell.state = state;
                for holder in &cell.holders {
                    if let Some(session) = self.sessions.get_mut(holder) {
                        session.note(object, Untold { at, is_dropped: false });
                    }
                }
            }
            None => {
                let cell = Cell { version: at, state, holders: BTreeSet::new() };
                self.objects.insert(object.clone(), cell);
            }
        }
        at
    }

    /// Removes an object: it has been deactivated or destroyed, or is elsewhere now. Returns the position at which it was; `None`
    /// if it is not there.
    pub fn remove(&mut self, object: &K) -> Option<Position> {
        let cell = self.objects.remove(object)?;
        self.head = self.head.next();
        for holder in cell.holders {
            self.drop_in(holder, object);
        }
        Some(self.head)
    }

    /// Opens a session.
    pub fn open(&mut self) -> Opened {
        if self.sessions.len() >= self.limits.sessions_max.max(1)
            && let Some(silent) = self.heard.first().copied()
        {
            self.end(silent);
        }
        self.sessions_made += 1;
        let session = SessionId(self.sessions_made);
        self.sessions.insert(session, Session::default());
        self.heard.move_to_end(&session);
        Opened { epoch: self.epoch, session }
    }

    /// Ends a session (`revoke`): its client holds nothing from its next probe on, or when its lag is over.
    pub fn end(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        for object in session.held.iter() {
            if let Some(cell) = self.objects.get_mut(object) {
                cell.holders.remove(&id);
            }
        }
        self.heard.remove(&id);
    }

    /// Answers a probe.
    pub fn probe(&mut self, probe: &Probe) -> Answer<K, S> {
        let of = probe.of;
        if !self.knows(of) {
            return Answer::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        let Some(session) = self.sessions.get_mut(&of.session) else { return Answer::Unknown { of } };
        // A position of the future comes from no client of ours, and says nothing.
        session.take(probe.taken.min(self.head));
        let unit = |(object, untold): (&K, &Untold)| {
            // An object that is gone has a drop, so there is a state for every other.
            let state = self.objects.get(object).filter(|_| !untold.is_dropped);
            let change = state.map_or(Change::Dropped, |cell| Change::State(cell.state.clone()));
            Unit { object: object.clone(), at: untold.at, change }
        };
        let units = session.untold.iter().map(unit).collect();
        Answer::Changes { of, token: probe.token, head: self.head, units }
    }

    /// Answers a fill. The client holds the object from then on.
    pub fn fill(&mut self, fill: &Fill<K>) -> Filled<K, S> {
        let Fill { of, ref object, token } = *fill;
        if !self.knows(of) {
            return Filled::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        let (Some(session), Some(cell)) = (self.sessions.get_mut(&of.session), self.objects.get_mut(object))
        else {
            return Filled::Refused { of, token, object: object.clone() };
        };
        // What the client has not been told of the object stays: this fill may be an old one that comes once more.
        let is_new = cell.holders.insert(of.session);
        let filled = Filled::State {
            of,
            token,
            object: object.clone(),
            version: cell.version,
            head: self.head,
            state: cell.state.clone(),
        };
        if is_new {
            session.held.move_to_end(object);
            if session.held.len() > self.limits.held_max.max(1)
                && let Some(oldest) = session.held.first().cloned()
            {
                self.evict(of.session, &oldest);
            }
        }
        filled
    }

    /// Has a session hold an object no more. Its client is told before it can take anything that has happened since.
    pub fn evict(&mut self, session: SessionId, object: &K) {
        let holds = self.objects.get_mut(object).is_some_and(|cell| cell.holders.remove(&session));
        if holds {
            self.head = self.head.next();
            self.drop_in(session, object);
        }
    }

    /// Notes for a session that it holds an object no more, at the end of the log.
    fn drop_in(&mut self, id: SessionId, object: &K) {
        let at = self.head;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.held.remove(object);
        session.note(object, Untold { at, is_dropped: true });
        if session.dropped > self.limits.dropped_max {
            self.end(id);
        }
    }

    fn knows(&self, of: Opened) -> bool {
        of.epoch == self.epoch && self.sessions.contains_key(&of.session)
    }
}
