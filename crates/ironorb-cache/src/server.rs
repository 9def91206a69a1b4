//! The server's half: the log, and for each session what its client holds and has not been told.

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::books::{Books, HeldOrder, Holders, ObjectSlot, SessionSlot, bytes_of_tree};
use crate::in_order::InOrder;
use crate::message::{Answer, Due, Epoch, Fill, Filled, Members, Opened, Position, Probe, SessionId};
use crate::time::Moment;
use crate::untold::{Untold, Write};

/// How much a server keeps for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerLimits {
    /// The most sessions. One more ends that which has been silent for the longest time.
    pub sessions_max: usize,
    /// The most objects that a session holds. One more drops that which it has held for the longest time.
    pub held_max: usize,
    /// The most objects of which a session has not been told that it holds them no more. Beyond that the session ends.
    pub dropped_max: usize,
    /// The most changes that sessions have not taken, all together. Beyond that the session ends that has some and has been silent for
    /// the longest time.
    pub untold_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits { sessions_max: 1_000, held_max: 1_000_000, dropped_max: 1_000_000, untold_max: 500_000 }
    }
}

/// For how long clients may read linearizable objects by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How long what has been proved counts for a client, on its clock. Clients read such objects with this lag.
    pub term: Duration,
    /// By how many millionths the clock of a client may run slower than the server's, below a million.
    pub drift_ppm: u32,
}

impl Terms {
    /// A second, and clocks that differ by a thousandth.
    pub const DEFAULT: Terms = Terms { term: Duration::from_secs(1), drift_ppm: 1_000 };

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
        Terms::DEFAULT
    }
}

/// A write with a bound that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(u64);

/// What a server has done for its clients, and keeps for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounts {
    /// The sessions.
    pub sessions: u64,
    /// The sessions that have been opened.
    pub sessions_opened: u64,
    /// The objects that sessions hold, once for each session.
    pub held: u64,
    /// The changes that sessions are not known to have taken, once for each session and object.
    pub untold: u64,
    /// The objects that sessions held no more because they held too many.
    pub evicted: u64,
}

/// The order of a server's writes, and what each session knows of them. The states are in the cells of its driver.
///
/// A driver calls what changes a cell, or lets a client hold it ([`commit`](Self::commit), [`fill`](Self::fill),
/// [`finish_write`](Self::finish_write), [`remove`](Self::remove)), while it holds the cell's lock. What an answer says of states is
/// read afterwards.
///
/// Memory: a bit for each object and session that holds it, 70 bytes and its name for each object that is held, 8 KB for each
/// session, and some 100 bytes and a name for each of `untold_max` changes. Nothing for an object that no client holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server<K> {
    epoch: Epoch,
    limits: ServerLimits,
    /// The position of the last write, or of the last drop.
    head: Position,
    /// Who may hold each object that is held.
    books: Books<K>,
    sessions: Sessions<K>,
    /// How much is untold to all sessions.
    untold: usize,
    sessions_made: u64,
    /// The sessions in the order in which they have been heard of.
    heard: InOrder<SessionId>,
    terms: Terms,
    /// When the terms are over of all sessions that have ended, those of the server's last life included.
    ended_terms: Moment,
    writes: VecDeque<PendingWrite<K>>,
    writes_made: u64,
    /// The sessions whose probe has waited for news that there is now.
    due: Vec<SessionId>,
    evicted: u64,
}

/// A write that waits for sessions whose clients would otherwise read what they may not read any more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PendingWrite<K> {
    id: WriteId,
    object: K,
    missed_max: u32,
    /// What it waits for; `None` while another write of the object is before it.
    waits: Option<Waits>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Waits {
    /// Up to where each session must have taken what it was told, and when its term is over. What answers after this moment bring
    /// has the object's change in it, so that they lengthen no term.
    sessions: BTreeMap<SessionId, (Position, Moment)>,
    /// When the terms of the sessions are over that had ended before.
    not_before: Moment,
}

/// A session of one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Session<K> {
    id: SessionId,
    /// In which order it has asked for what it may hold.
    held: HeldOrder,
    untold: Untold<K>,
    /// Up to where the client has taken what it was told.
    taken: Position,
    /// When its term is over, on the server's clock.
    term_over: Moment,
    /// A probe of it waits for news.
    waits: bool,
}

impl<K: Ord + Clone + Hash> Session<K> {
    /// Lengthens the term. Moments of two messages may come in another order than they were taken.
    fn have_term(&mut self, over: Moment) {
        self.term_over = self.term_over.max(over);
    }

    /// The client has taken what it was told, up to a position. Says how much less is untold.
    fn take(&mut self, taken: Position, books: &mut Books<K>) -> usize {
        self.taken = self.taken.max(taken);
        self.untold.take(taken, books)
    }
}

/// The sessions, by their slots and by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sessions<K> {
    in_slots: Vec<Option<Session<K>>>,
    slots: BTreeMap<SessionId, SessionSlot>,
}

impl<K> Default for Sessions<K> {
    fn default() -> Self {
        Sessions { in_slots: Vec::new(), slots: BTreeMap::new() }
    }
}

impl<K> Sessions<K> {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn has(&self, id: SessionId) -> bool {
        self.slots.contains_key(&id)
    }

    fn slot_of(&self, id: SessionId) -> Option<SessionSlot> {
        self.slots.get(&id).copied()
    }

    fn get(&self, id: SessionId) -> Option<&Session<K>> {
        self.in_slots[self.slot_of(id)?.0 as usize].as_ref()
    }

    fn get_mut(&mut self, id: SessionId) -> Option<&mut Session<K>> {
        let slot = self.slot_of(id)?;
        self.at(slot)
    }

    fn at(&mut self, slot: SessionSlot) -> Option<&mut Session<K>> {
        self.in_slots[slot.0 as usize].as_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &Session<K>> {
        self.in_slots.iter().flatten()
    }

    /// Puts a session into the first free slot, so that sets of holders stay short.
    fn add(&mut self, session: Session<K>) {
        let free = self.in_slots.iter().position(Option::is_none).unwrap_or(self.in_slots.len());
        self.in_slots.resize_with(self.in_slots.len().max(free + 1), || None);
        let slot = SessionSlot(u32::try_from(free).expect("there are fewer sessions than bytes of memory"));
        self.slots.insert(session.id, slot);
        self.in_slots[free] = Some(session);
    }

    fn remove(&mut self, id: SessionId) -> Option<(SessionSlot, Session<K>)> {
        let slot = self.slots.remove(&id)?;
        Some((slot, self.in_slots[slot.0 as usize].take()?))
    }
}

impl<K: Ord + Clone + Hash> Server<K> {
    /// A server of objects that nobody holds. No two lives of a server have the same epoch. Linearizable writes wait until the
    /// terms of a life before this one are over.
    pub fn new(epoch: Epoch, limits: ServerLimits, terms: Terms, now: Moment) -> Self {
        Server {
            epoch,
            limits,
            head: Position::START,
            books: Books::default(),
            sessions: Sessions::default(),
            untold: 0,
            sessions_made: 0,
            heard: InOrder::default(),
            terms,
            ended_terms: terms.over(now),
            writes: VecDeque::new(),
            writes_made: 0,
            due: Vec::new(),
            evicted: 0,
        }
    }

    /// The server's life.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How much it keeps.
    pub fn limits(&self) -> ServerLimits {
        self.limits
    }

    /// The end of the log. A reply to a write carries it, so that the writer's cache knows what it must have seen.
    pub fn head(&self) -> Position {
        self.head
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// What it has done, and keeps. Takes time for each session.
    pub fn counts(&self) -> ServerCounts {
        let sum = |of: fn(&Session<K>) -> usize| self.sessions.iter().map(|it| of(it) as u64).sum();
        ServerCounts {
            sessions: self.sessions.len() as u64,
            sessions_opened: self.sessions_made,
            held: sum(|session| session.held.len()),
            untold: sum(|session| session.untold.len()),
            evicted: self.evicted,
        }
    }

    /// How many sessions may hold an object.
    pub fn holders(&self, object: &K) -> usize {
        self.books.holders(object).map_or(0, Holders::len)
    }

    /// Whether a session may hold an object.
    pub fn holds(&self, session: SessionId, object: &K) -> bool {
        let slot = self.sessions.slot_of(session);
        slot.is_some_and(|slot| self.books.holders(object).is_some_and(|holders| holders.has(slot)))
    }

    /// About how many bytes its tables take.
    pub fn bytes(&self) -> usize {
        let of_session = |session: &Session<K>| session.held.bytes() + session.untold.bytes();
        let slots = self.sessions.in_slots.capacity() * size_of::<Option<Session<K>>>();
        let sessions = slots + bytes_of_tree::<(SessionId, SessionSlot)>(self.sessions.len());
        self.books.bytes() + sessions + self.sessions.iter().map(of_session).sum::<usize>()
    }

    /// Commits a write of some members. Returns its position, which is the object's version now. `None` if nobody holds the
    /// object: its version is unknown then, until the next fill gives it one. Sessions are told when they ask.
    pub fn commit(&mut self, object: &K, members: Members) -> Option<Position> {
        self.commit_as(object, members, false)
    }

    /// Commits a write as [`commit`](Self::commit) does, as news: a session whose probe waits is [`due`](Self::take_due) an answer.
    pub fn publish(&mut self, object: &K, members: Members) -> Option<Position> {
        self.commit_as(object, members, true)
    }

    /// Takes a handful of steps where all holders have noted the members already, and have not been told of them: what they have
    /// noted says that the last write is untold, whichever that is.
    #[inline]
    fn commit_as(&mut self, object: &K, members: Members, is_news: bool) -> Option<Position> {
        let slot = self.books.slot_of(object)?;
        self.head = self.head.next();
        let at = self.head;
        let (count, is_noted) = self.books.write(slot, at, members, is_news);
        if !is_noted {
            self.note(object, &Write { object: slot, at, count, members, is_news });
        }
        Some(at)
    }

    /// Has all holders of an object note a write.
    #[inline(never)]
    fn note(&mut self, object: &K, write: &Write) {
        for slot in self.books.holders_at(write.object).iter() {
            let Some(session) = self.sessions.at(slot) else { continue };
            self.untold += session.untold.note_write(object, write);
            if write.is_news && session.waits {
                session.waits = false;
                self.due.push(session.id);
            }
        }
        self.books.note(write.object, write.members, write.is_news);
        self.end_silent();
    }

    /// Ends sessions until no more is untold than may be.
    fn end_silent(&mut self) {
        while self.untold > self.limits.untold_max {
            let has_untold =
                |id: &&SessionId| self.sessions.get(**id).is_some_and(|it| !it.untold.is_empty());
            let Some(silent) = self.heard.iter().find(has_untold).copied() else { return };
            self.end(silent);
        }
    }

    /// The sessions that hold an object.
    fn holders_of(&self, holders: &Holders) -> Vec<SessionId> {
        let id_in = |slot: SessionSlot| self.sessions.in_slots[slot.0 as usize].as_ref().map(|it| it.id);
        holders.iter().filter_map(id_in).collect()
    }

    /// Begins a write that lets no client miss more than `missed_max` writes of the object in what it reads by itself. It may be
    /// made when no client would. Until then remote calls still see the state from before. [`waits_until`](Self::waits_until) says
    /// when it may be, and [`finish_write`](Self::finish_write) says that it is. Writes of one object are made in their order.
    ///
    /// With 0 the write is linearizable: all clients drop the object, and meanwhile none comes to hold it.
    pub fn begin_write(&mut self, object: &K, missed_max: u32) -> WriteId {
        self.writes_made += 1;
        let id = WriteId(self.writes_made);
        let is_first = self.writes.iter().all(|write| write.object != *object);
        // Without misses nobody comes to hold the object until the last of its writes has been made.
        let waits = (is_first || missed_max == 0).then(|| self.waits_of(object, missed_max));
        self.writes.push_back(PendingWrite { id, object: object.clone(), missed_max, waits });
        id
    }

    /// For whom a write waits that is the first of its object, or a linearizable one. Those have news.
    fn waits_of(&mut self, object: &K, missed_max: u32) -> Waits {
        let not_before = self.ended_terms;
        let mut sessions = BTreeMap::new();
        for session in self.sessions.iter() {
            if let Some(dropped_at) = session.untold.may_have_kept(object) {
                sessions.insert(session.id, (dropped_at, session.term_over));
            }
        }
        if missed_max == 0 {
            self.drop_everywhere(object, &mut sessions);
        } else {
            for holder in self.books.holders(object).map_or_else(Vec::new, |it| self.holders_of(it)) {
                let Some(session) = self.sessions.get(holder) else { continue };
                if let Some(position) = session.untold.has_missed(object, missed_max, &self.books) {
                    sessions.insert(holder, (position, session.term_over));
                }
            }
        }
        sessions.keys().for_each(|id| self.hurry(*id, object));
        Waits { sessions, not_before }
    }

    /// Has nobody hold an object any more. Adds the sessions that held it, with what they must take and their terms.
    fn drop_everywhere(&mut self, object: &K, sessions: &mut BTreeMap<SessionId, (Position, Moment)>) {
        let Some((slot, holders)) = self.books.release(object) else { return };
        self.head = self.head.next();
        let holders = self.holders_of(&holders);
        let held =
            holders.iter().filter_map(|id| Some((*id, (self.head, self.sessions.get(*id)?.term_over))));
        sessions.extend(held);
        // A session that ends by this has a term that is waited for, too.
        holders.into_iter().for_each(|holder| self.drop_in(holder, slot, object));
    }

    /// What is untold of an object is news for a session.
    fn hurry(&mut self, id: SessionId, object: &K) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.untold.hurry(object) && session.waits {
            session.waits = false;
            self.due.push(id);
        }
    }

    /// Until when a write waits if no session answers before. `None` if it may be made now, or is not there. To be asked after each
    /// probe, after the end of another write, and as time goes by.
    pub fn waits_until(&mut self, id: WriteId, now: Moment) -> Option<Moment> {
        let at = self.writes.iter().position(|write| write.id == id)?;
        let object = &self.writes[at].object;
        if self.writes.iter().take(at).any(|before| before.object == *object) {
            return Some(Moment::LAST);
        }
        let Some(waits) = &mut self.writes[at].waits else { return Some(Moment::LAST) };
        let may_read = |id: &SessionId, (must_take, term_over): &mut (Position, Moment)| {
            let has_taken = self.sessions.get(*id).is_some_and(|session| session.taken >= *must_take);
            !has_taken && *term_over >= now
        };
        waits.sessions.retain(may_read);
        let terms = waits.sessions.values().map(|(_, term_over)| *term_over);
        let last = terms.fold(waits.not_before, Moment::max);
        (last >= now).then(|| last.after(Duration::from_nanos(1)))
    }

    /// The writes for which nobody has to be waited any more, the first of each object.
    pub fn ready(&mut self, now: Moment) -> Vec<WriteId> {
        let writes: Vec<_> = self.writes.iter().map(|write| write.id).collect();
        writes.into_iter().filter(|id| self.waits_until(*id, now).is_none()).collect()
    }

    /// Whether writes wait.
    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// A write has been made, of these members; or given up, if they are none. Returns the object's version as
    /// [`commit`](Self::commit) does.
    pub fn finish_write(&mut self, id: WriteId, members: Members) -> Option<Position> {
        let at = self.writes.iter().position(|write| write.id == id)?;
        let object = self.writes.remove(at)?.object;
        let version = if members == Members::NONE { None } else { self.publish(&object, members) };
        if let Some(next) = self.writes.iter().position(|write| write.object == object)
            && self.writes[next].waits.is_none()
        {
            let waits = self.waits_of(&object, self.writes[next].missed_max);
            self.writes[next].waits = Some(waits);
        }
        version
    }

    /// Removes an object: it has been deactivated or destroyed, or is elsewhere now.
    pub fn remove(&mut self, object: &K) {
        let Some((slot, holders)) = self.books.release(object) else { return };
        self.head = self.head.next();
        for holder in self.holders_of(&holders) {
            self.drop_in(holder, slot, object);
        }
    }

    /// Opens a session, with the next number. Where clients must not know one another's sessions, [`open_as`](Self::open_as).
    pub fn open(&mut self, now: Moment) -> Opened {
        self.open_as(SessionId(self.sessions_made + 1), now)
    }

    /// Opens a session with this name, which none has had.
    pub fn open_as(&mut self, id: SessionId, now: Moment) -> Opened {
        self.end(id);
        if self.sessions.len() >= self.limits.sessions_max.max(1)
            && let Some(silent) = self.heard.first().copied()
        {
            self.end(silent);
        }
        self.sessions_made += 1;
        self.sessions.add(Session {
            id,
            held: HeldOrder::default(),
            untold: Untold::default(),
            taken: Position::START,
            term_over: now,
            waits: false,
        });
        self.heard.move_to_end(&id);
        Opened { epoch: self.epoch, session: id }
    }

    /// Ends a session (`revoke`): its client holds nothing from its next probe on, or when its lag is over.
    pub fn end(&mut self, id: SessionId) {
        let Some((slot, session)) = self.sessions.remove(id) else { return };
        self.ended_terms = self.ended_terms.max(session.term_over);
        self.due.extend(session.waits.then_some(id));
        // What is written from now on is not noted for it. So a reply to a write of its client must tell of a position that the
        // client has not seen.
        self.head = self.head.next();
        for object in session.held.objects(slot, &self.books) {
            self.books.remove(&object, slot);
        }
        self.untold -= session.untold.len();
        self.heard.remove(&id);
    }

    /// Ends all sessions, as [`end`](Self::end) does.
    pub fn end_all(&mut self) {
        while let Some(id) = self.sessions.slots.keys().next().copied() {
            self.end(id);
        }
    }

    /// Answers a probe with all that is due. What is due of states is read afterwards ([`Answer::with_values`]).
    pub fn probe(&mut self, probe: &Probe, now: Moment) -> Answer<K, Due> {
        self.probe_part(probe, now, |_, _| 0)
    }

    /// Answers a probe with as many bytes of units as it has room for, or with one unit that is longer. `bytes_of` says how many a
    /// unit takes that has these members.
    pub fn probe_part(
        &mut self,
        probe: &Probe,
        now: Moment,
        bytes_of: impl Fn(&K, Members) -> usize,
    ) -> Answer<K, Due> {
        let of = probe.of;
        if !self.knows(of) {
            return Answer::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        let Some(session) = self.sessions.get_mut(of.session) else { return Answer::Unknown { of } };
        session.have_term(self.terms.over(now));
        // A position of the future comes from no client of ours, and says nothing.
        self.untold -= session.take(probe.taken.min(self.head), &mut self.books);
        let units = session.untold.units(probe.room, bytes_of, &mut self.books);
        // All that has happened before what is untold first of the rest is in this answer.
        let rest = session.untold.since_after(units.len());
        let head = rest.map_or(self.head, Position::before);
        Answer::Changes { of, token: probe.token, head, units, is_part: rest.is_some() }
    }

    /// Takes a probe that waits for news. It says up to where the client has taken what it was told; and it is to be answered by
    /// [`probe`](Self::probe) when its session is [`due`](Self::take_due), or after a time. False if it is to be answered at once.
    /// A session has one such probe: the one before it waits no more.
    pub fn wait(&mut self, probe: &Probe) -> bool {
        if !self.knows(probe.of) {
            return false;
        }
        let id = probe.of.session;
        self.heard.move_to_end(&id);
        let Some(session) = self.sessions.get_mut(id) else { return false };
        self.untold -= session.take(probe.taken.min(self.head), &mut self.books);
        session.waits |= !session.untold.has_news();
        !session.untold.has_news()
    }

    /// Whether there are [`due`](Self::take_due) sessions.
    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The sessions whose waiting probes are to be answered now, each once. Those wait no more.
    pub fn take_due(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.due)
    }

    /// Answers a fill. The client holds the object from then on, and the driver sends the state with the answer. `known` is the
    /// object's version, if nothing has been written since that was told.
    pub fn fill(&mut self, fill: &Fill, object: &K, known: Option<Position>, now: Moment) -> Filled<K> {
        let Fill { of, token } = *fill;
        if !self.knows(of) {
            return Filled::Unknown { of };
        }
        self.heard.move_to_end(&of.session);
        // While a linearizable write waits, nobody may come to hold the state from before.
        let is_written = self.writes.iter().any(|write| write.missed_max == 0 && write.object == *object);
        let slot = self.sessions.slot_of(of.session).filter(|_| !is_written);
        let Some((holder, session)) = slot.and_then(|slot| Some((slot, self.sessions.at(slot)?))) else {
            return Filled::Refused { of, token };
        };
        session.have_term(self.terms.over(now));
        let version = known.unwrap_or_else(|| {
            self.head = self.head.next();
            self.head
        });
        // What the client has not been told of the object stays: this fill may be an old one that comes once more.
        let new = self.books.add(object, holder);
        let filled = Filled::State { of, token, object: object.clone(), version, head: self.head };
        if let Some(slot) = new {
            session.held.push(slot);
            if session.held.len() > self.limits.held_max.max(1)
                && let Some(oldest) = session.held.first(holder, slot, &self.books)
            {
                self.evicted += 1;
                self.evict(of.session, &oldest);
            }
        }
        filled
    }

    /// Has a session hold an object no more. Its client is told before it can take anything that has happened since.
    pub fn evict(&mut self, session: SessionId, object: &K) {
        let Some(holder) = self.sessions.slot_of(session) else { return };
        if let Some(slot) = self.books.remove(object, holder) {
            self.head = self.head.next();
            self.drop_in(session, slot, object);
        }
    }

    /// Notes for a session that it holds an object no more, at the end of the log.
    fn drop_in(&mut self, id: SessionId, slot: ObjectSlot, object: &K) {
        let at = self.head;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.held.remove(slot);
        self.untold += session.untold.note_drop(object, at);
        if session.untold.dropped() > self.limits.dropped_max {
            self.end(id);
        }
        self.end_silent();
    }

    /// Whether there is such a session.
    pub fn knows(&self, of: Opened) -> bool {
        of.epoch == self.epoch && self.sessions.has(of.session)
    }
}
