//! The server's half: the log, and for each session what its client holds and has not been told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::in_order::InOrder;
use crate::message::{
    Answer, Change, Due, Epoch, Fill, Filled, Members, Opened, Position, Probe, SessionId, Unit,
};
use crate::time::Moment;

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

/// For how long clients may read linearizable objects by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long what has been proved counts for a client, on its clock. Clients read such objects with this lag.
    pub term: Duration,
    /// By how many millionths the clock of a client may run slower than the server's, below a million.
    pub drift_ppm: u32,
}

impl Terms {
    /// When the term is over for sure that begins with an answer now. The message that it answers has left before.
    fn over(self, now: Moment) -> Moment {
        // While a slow clock counts a term, the server's counts term / (1 - drift).
        let drift = u128::from(self.drift_ppm).min(999_999);
        let longer = (self.term.as_nanos() * drift).div_ceil(1_000_000 - drift);
        now.after(self.term).after(Duration::from_nanos(u64::try_from(longer).unwrap_or(u64::MAX)))
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { term: Duration::from_secs(1), drift_ppm: 1_000 }
    }
}

/// A linearizable write that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(u64);

/// The order of a server's writes, and what each session knows of them. The states are in the cells of its driver.
///
/// A driver calls what changes a cell, or lets a client hold it ([`commit`](Self::commit), [`fill`](Self::fill),
/// [`finish_write`](Self::finish_write), [`remove`](Self::remove)), while it holds the cell's lock. What an answer says of states is
/// read afterwards.
///
/// Memory: per session at most `held_max + dropped_max` objects' names and positions, and nothing for an object that no client
/// holds.
#[derive(Debug)]
pub struct Server<K> {
    epoch: Epoch,
    limits: ServerLimits,
    /// The position of the last write, or of the last drop.
    head: Position,
    /// Who may hold each object that is held.
    holders: BTreeMap<K, BTreeSet<SessionId>>,
    sessions: BTreeMap<SessionId, Session<K>>,
    sessions_made: u64,
    /// The sessions in the order in which they have been heard of.
    heard: InOrder<SessionId>,
    terms: Terms,
    /// When the terms are over of all sessions that have ended, those of the server's last life included.
    ended_terms: Moment,
    writes: VecDeque<PendingWrite<K>>,
    writes_made: u64,
}

/// A write that waits for those who may still read the state from before.
#[derive(Debug)]
struct PendingWrite<K> {
    id: WriteId,
    object: K,
    /// The sessions that have not said yet that they have dropped the object.
    waits_for: BTreeSet<SessionId>,
    /// Where the drop is in the log.
    dropped_at: Position,
    /// It waits for sessions that had ended before, too.
    not_before: Moment,
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
    /// Up to where the client has taken what it was told.
    taken: Position,
    /// When its term is over, on the server's clock.
    term_over: Moment,
}

#[derive(Debug, Clone, Copy)]
struct Untold {
    at: Position,
    /// The members that have been written; `None` for a drop.
    members: Option<Members>,
}

impl<K: Ord + Clone> Session<K> {
    fn note_write(&mut self, object: &K, at: Position, members: Members) {
        let before = self.untold.get(object).map_or(Some(Members::NONE), |before| before.members);
        // What was written between the drop and the next fill has been noted nowhere.
        let members = before.map_or(Members::ALL, |before| before.and(members));
        self.note(object, Untold { at, members: Some(members) });
    }

    fn note(&mut self, object: &K, untold: Untold) {
        let before = self.untold.insert(object.clone(), untold);
        self.dropped += usize::from(untold.members.is_none());
        self.dropped -= usize::from(before.is_some_and(|before| before.members.is_none()));
    }

    /// Whether the client may still have a state of an object that it has been told to drop.
    fn may_have_kept(&self, object: &K) -> bool {
        self.untold.get(object).is_some_and(|untold| untold.members.is_none())
    }

    /// Forgets what the client has taken.
    fn take(&mut self, taken: Position) {
        self.taken = self.taken.max(taken);
        self.untold.retain(|_, untold| untold.at > taken);
        self.dropped = self.untold.values().filter(|untold| untold.members.is_none()).count();
    }
}

impl<K: Ord + Clone> Server<K> {
    /// A server of objects that nobody holds. No two lives of a server have the same epoch. Linearizable writes wait until the
    /// terms of a life before this one are over.
    pub fn new(epoch: Epoch, limits: ServerLimits, terms: Terms, now: Moment) -> Self {
        Server {
            epoch,
            limits,
            head: Position::START,
            holders: BTreeMap::new(),
            sessions: BTreeMap::new(),
            sessions_made: 0,
            heard: InOrder::default(),
            terms,
            ended_terms: terms.over(now),
            writes: VecDeque::new(),
            writes_made: 0,
        }
    }

    /// The server's life.
    pub fn epoch(&self) -> Epoch {
        self.epoch
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
        self.holders.get(object).map_or(0, BTreeSet::len)
    }

    /// Commits a write of some members. Returns its position, which is the object's version now. `None` if nobody holds the
    /// object: its version is unknown then, until the next fill gives it one.
    pub fn commit(&mut self, object: &K, members: Members) -> Option<Position> {
        let holders = self.holders.get(object)?;
        self.head = self.head.next();
        for holder in holders {
            if let Some(session) = self.sessions.get_mut(holder) {
                session.note_write(object, self.head, members);
            }
        }
        Some(self.head)
    }

    /// Begins a linearizable write: it may be made when nobody can read the state from before any more. Until then remote
    /// calls still see that, and no client comes to hold the object. [`ready`](Self::ready) says when it may be, and
    /// [`finish_write`](Self::finish_write) says that it is. Writes of one object are made in their order.
    pub fn begin_write(&mut self, object: &K) -> WriteId {
        self.writes_made += 1;
        let id = WriteId(self.writes_made);
        let holders = self.holders.remove(object).unwrap_or_default();
        let told = self.sessions.iter().filter(|(_, session)| session.may_have_kept(object));
        let waits_for = told.map(|(session, _)| *session).chain(holders.iter().copied()).collect();
        self.head = self.head.next();
        let dropped_at = self.head;
        // A session that ends by this has a term that is waited for, too.
        for holder in holders {
            self.drop_in(holder, object);
        }
        let (object, not_before) = (object.clone(), self.ended_terms);
        self.writes.push_back(PendingWrite { id, object, waits_for, dropped_at, not_before });
        id
    }

    /// The linearizable writes for which nobody has to be waited any more, the first of each object. To be asked after each
    /// probe, and as time goes by.
    pub fn ready(&mut self, now: Moment) -> Vec<WriteId> {
        let mut ready = Vec::new();
        let mut seen = BTreeSet::new();
        for write in &mut self.writes {
            if write.waits_for.iter().any(|session| !self.sessions.contains_key(session)) {
                write.not_before = write.not_before.max(self.ended_terms);
            }
            let may_read =
                |session: &Session<K>| session.taken < write.dropped_at && session.term_over >= now;
            write.waits_for.retain(|session| self.sessions.get(session).is_some_and(may_read));
            let is_first = seen.insert(write.object.clone());
            if is_first && write.waits_for.is_empty() && write.not_before < now {
                ready.push(write.id);
            }
        }
        ready
    }

    /// A linearizable write has been made, or given up. Returns the end of the log, which is the object's version if it has been
    /// made; `None` if no such write waits.
    pub fn finish_write(&mut self, id: WriteId) -> Option<Position> {
        let at = self.writes.iter().position(|write| write.id == id)?;
        self.writes.remove(at);
        self.head = self.head.next();
        Some(self.head)
    }

    /// Removes an object: it has been deactivated or destroyed, or is elsewhere now.
    pub fn remove(&mut self, object: &K) {
        let Some(holders) = self.holders.remove(object) else { return };
        self.head = self.head.next();
        for holder in holders {
            self.drop_in(holder, object);
        }
    }

    /// Opens a session.
    pub fn open(&mut self, now: Moment) -> Opened {
        if self.sessions.len() >= self.limits.sessions_max.max(1)
            && let Some(silent) = self.heard.first().copied()
        {
            self.end(silent);
        }
        self.sessions_made += 1;
        let session = SessionId(self.sessions_made);
        let (held, untold) = (InOrder::default(), BTreeMap::new());
        let opened = Session { held, untold, dropped: 0, taken: Position::START, term_over: now };
        self.sessions.insert(session, opened);
        self.heard.move_to_end(&session);
        Opened { epoch: self.epoch, session }
    }

    /// Ends a session (`revoke`): its client holds nothing from its next probe on, or when its lag is over.
    pub fn end(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.ended_terms = self.ended_terms.max(session.term_over);
        // What is written from now on is not noted for it. So a reply to a write of its client must tell of a position that the
        // client has not seen.
        self.head = self.head.next();
        for object in session.held.iter() {
            self.release(id, object);
        }
        self.heard.remove(&id);
    }

    /// Ends all sessions, as [`end`](Self::end) does.
    pub fn end_all(&mut self) {
        while let Some(id) = self.sessions.keys().next().copied() {
            self.end(id);
        }
    }

    /// Answers a probe. What is due of states is read afterwards ([`Answer::with_values`]).
    pub fn probe(&mut self, probe: &Probe, now: Moment) -> Answer<K, Due> {
        let of = probe.of;
        if !self.knows(of) {
            return Answer::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        let Some(session) = self.sessions.get_mut(&of.session) else { return Answer::Unknown { of } };
        session.term_over = self.terms.over(now);
        // A position of the future comes from no client of ours, and says nothing.
        session.take(probe.taken.min(self.head));
        let unit = |(object, untold): (&K, &Untold)| {
            let at = untold.at;
            let due = |members| Change::Members(members, Due::new(at, members));
            Unit { object: object.clone(), at, change: untold.members.map_or(Change::Dropped, due) }
        };
        let units = session.untold.iter().map(unit).collect();
        Answer::Changes { of, token: probe.token, head: self.head, units }
    }

    /// Answers a fill. The client holds the object from then on, and the driver sends the state with the answer. `known` is the
    /// object's version, if nothing has been written since that was told.
    pub fn fill(&mut self, fill: &Fill, object: &K, known: Option<Position>, now: Moment) -> Filled<K> {
        let Fill { of, token } = *fill;
        if !self.knows(of) {
            return Filled::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        // While a write waits, nobody may come to hold the state from before.
        let is_written = self.writes.iter().any(|write| write.object == *object);
        let Some(session) = self.sessions.get_mut(&of.session).filter(|_| !is_written) else {
            return Filled::Refused { of, token };
        };
        session.term_over = self.terms.over(now);
        let version = known.unwrap_or_else(|| {
            self.head = self.head.next();
            self.head
        });
        // What the client has not been told of the object stays: this fill may be an old one that comes once more.
        let is_new = self.holders.entry(object.clone()).or_default().insert(of.session);
        let filled = Filled::State { of, token, object: object.clone(), version, head: self.head };
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
        if self.release(session, object) {
            self.head = self.head.next();
            self.drop_in(session, object);
        }
    }

    /// Takes a session out of those that hold an object. False if it was not among them.
    fn release(&mut self, session: SessionId, object: &K) -> bool {
        let Some(holders) = self.holders.get_mut(object) else { return false };
        let was_among = holders.remove(&session);
        if holders.is_empty() {
            self.holders.remove(object);
        }
        was_among
    }

    /// Notes for a session that it holds an object no more, at the end of the log.
    fn drop_in(&mut self, id: SessionId, object: &K) {
        let at = self.head;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.held.remove(object);
        session.note(object, Untold { at, members: None });
        if session.dropped > self.limits.dropped_max {
            self.end(id);
        }
    }

    fn knows(&self, of: Opened) -> bool {
        of.epoch == self.epoch && self.sessions.contains_key(&of.session)
    }
}
