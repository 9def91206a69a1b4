//! The client's half: what it holds of one server's objects, and how fresh that is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::freshness::{Held, Proof};
use crate::in_order::InOrder;
use crate::message::{Answer, Change, Epoch, Fill, Filled, Members, Opened, Position, Probe, Token, Unit};
use crate::time::Moment;

/// How much a client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientLimits {
    /// The most entries. One more takes the place of that which was filled the longest time ago.
    pub entries_max: usize,
    /// The most bytes of all entries, as their driver counts them ([`Entries::put`]). Beyond that the oldest go.
    pub bytes_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits { entries_max: 1_000_000, bytes_max: usize::MAX }
    }
}

/// For how many bytes of units an answer to a probe has room where nothing else is set: what a TCP segment carries over Ethernet.
pub const UPDATE_BYTES: usize = 1_460;

/// The most probes that are remembered while their answers are out. The answer to an older one renews nothing.
const PROBES_MAX: usize = 64;

/// The name that a client's driver gives to a place for one object's state. None is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// The places for states, which a driver keeps. The machine says what is put there; a place that it has not filled, or has
/// ended, is never read.
pub trait Entries<S> {
    /// Puts values into a place: the whole state if the members are all, and else over the state that is there. Gives how many
    /// bytes the place takes now; 0 if these do not count. `None` if they cannot be put there: what is there is ended then.
    fn put(&mut self, entry: EntryId, held: Held, members: Members, values: S) -> Option<usize>;

    /// Ends what a place holds.
    fn end(&mut self, entry: EntryId);

    /// The kind of a place, which never changes. Asked when it is filled.
    fn kind(&self, entry: EntryId) -> Kind {
        let _ = entry;
        Kind::NONE
    }
}

/// A kind of entries that has limits of its own: the number that a driver gives to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u32);

impl Kind {
    /// That of entries without one.
    pub const NONE: Kind = Kind(0);
}

/// The entries of a kind that has limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OfKind {
    limits: ClientLimits,
    /// In the order in which they were asked for.
    order: InOrder<EntryId>,
    entries: usize,
    bytes: usize,
}

/// What a client holds of the objects of one server. The states themselves are in its driver's [`Entries`].
///
/// Its moments are those of a clock that runs through suspension. Memory: at most `entries_max` entries, and their
/// objects' names; what answers show while a fill is out, and the fills after it that have begun by its end; and a few words for each kind with limits. A driver has at most `bytes_max` bytes of states, or one state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client<K> {
    limits: ClientLimits,
    session: Option<Opened>,
    proof: Proof,
    entries: BTreeMap<EntryId, Entry<K>>,
    /// The entries of each object: a client may have several places for one.
    places: BTreeSet<(K, EntryId)>,
    /// The entries in the order in which they were asked for.
    order: InOrder<EntryId>,
    /// What the entries take.
    bytes: usize,
    kinds: BTreeMap<Kind, OfKind>,
    /// The entries that make room for no others, and how often each has been pinned.
    pinned: BTreeMap<EntryId, usize>,
    /// The fills that are out.
    fills_out: BTreeSet<Token>,
    /// What answers have shown of objects while fills were out. Such a fill may be for one of them, and its answer may be older.
    early: BTreeMap<K, Early>,
    /// The same, as it was when all fills were out that have come to an end since.
    early_before: BTreeMap<K, Early>,
    /// The last fill that had been asked for when the one became the other.
    early_since: Token,
    /// When the probes left that have no answer yet.
    probes: BTreeMap<Token, Moment>,
    /// For how many bytes an answer has room, unless it follows a part.
    update_bytes: usize,
    /// For how many the next one has. It doubles with each part, so that whoever asks until nothing is left comes to an end, however
    /// fast objects are written.
    room: usize,
    tokens: u64,
    /// The latest moment that the client has seen.
    latest: Option<Moment>,
}

/// An object that is held or asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry<K> {
    /// The fill that is out, and when it left.
    asked: Option<(Token, Moment)>,
    /// The object, once an answer has told it.
    object: Option<K>,
    held: Option<Held>,
    kind: Kind,
    /// Whether it counts among those of its kind: that has limits.
    is_of_kind: bool,
    bytes: usize,
}

/// What answers have shown of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Early {
    /// The newest version.
    version: Position,
    /// The last drop.
    dropped: Position,
}

/// The result of a cached read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The object has had the state in this place within the lag.
    Hit {
        /// The position of its last write.
        version: Position,
        /// The object had this state at most so long ago.
        age: Duration,
    },
    /// The client does not know of a state that is fresh enough.
    Miss(Miss),
}

/// What would help. A remote call always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// There is no session.
    NoSession,
    /// The object is not held.
    NotHeld,
    /// The object's fill is out.
    Filling,
    /// What is held must be renewed by a probe.
    TooOld,
}

impl<K: Ord + Clone> Client<K> {
    /// A client that holds nothing.
    pub fn new(limits: ClientLimits) -> Self {
        Client {
            limits,
            session: None,
            proof: Proof { proved: None, taken: Position::START, floor: Position::START },
            entries: BTreeMap::new(),
            places: BTreeSet::new(),
            order: InOrder::default(),
            bytes: 0,
            kinds: BTreeMap::new(),
            pinned: BTreeMap::new(),
            fills_out: BTreeSet::new(),
            early: BTreeMap::new(),
            early_before: BTreeMap::new(),
            early_since: Token(0),
            probes: BTreeMap::new(),
            update_bytes: UPDATE_BYTES,
            room: UPDATE_BYTES,
            tokens: 0,
            latest: None,
        }
    }

    /// Has answers to probes come in parts of so many bytes of units, or of one unit that is longer. [`UPDATE_BYTES`] if this is not
    /// called.
    pub fn set_update_bytes(&mut self, bytes: usize) {
        // From 0 it would not double.
        self.update_bytes = bytes.max(1);
        self.room = self.update_bytes;
    }

    /// The session, if there is one.
    pub fn session(&self) -> Option<Opened> {
        self.session
    }

    /// What the answers to probes have proved.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// How many objects it holds or asks for.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes its entries take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the limits of a kind, for entries that are filled from now on.
    pub fn limit(&mut self, kind: Kind, limits: ClientLimits) {
        let new = OfKind { limits, order: InOrder::default(), entries: 0, bytes: 0 };
        self.kinds.entry(kind).or_insert(new).limits = limits;
    }

    /// How many entries of a kind with limits there are, and how many bytes they take.
    pub fn of_kind(&self, kind: Kind) -> (usize, usize) {
        self.kinds.get(&kind).map_or((0, 0), |of_kind| (of_kind.entries, of_kind.bytes))
    }

    /// Has an entry make room for no others until it is unpinned as often. Its server may still drop it. False if as many are pinned
    /// as there may be entries.
    pub fn pin(&mut self, entry: EntryId) -> bool {
        if !self.pinned.contains_key(&entry) && self.pinned.len() >= self.limits.entries_max {
            return false;
        }
        *self.pinned.entry(entry).or_default() += 1;
        self.order.remove(&entry);
        self.kinds.values_mut().for_each(|of_kind| of_kind.order.remove(&entry));
        true
    }

    /// Takes back a [`pin`](Self::pin).
    pub fn unpin(&mut self, entry: EntryId) {
        let Some(count) = self.pinned.get_mut(&entry) else { return };
        *count -= 1;
        if *count == 0 {
            self.pinned.remove(&entry);
            self.put_in_order(entry);
        }
    }

    /// Makes an entry the newest one, if it is there and not pinned.
    fn put_in_order(&mut self, id: EntryId) {
        let Some(entry) = self.entries.get(&id).filter(|_| !self.pinned.contains_key(&id)) else { return };
        self.order.move_to_end(&id);
        if let Some(of_kind) = self.kinds.get_mut(&entry.kind).filter(|_| entry.is_of_kind) {
            of_kind.order.move_to_end(&id);
        }
    }

    /// Ends the oldest entry of a kind with limits, or of all. False if there is none that is not pinned.
    pub fn end_oldest<S>(&mut self, kind: Option<Kind>, entries: &mut impl Entries<S>) -> bool {
        let order = kind.map_or(Some(&self.order), |kind| self.kinds.get(&kind).map(|it| &it.order));
        let oldest = order.and_then(|order| order.first()).copied();
        oldest.inspect(|oldest| self.drop_entry(*oldest, entries)).is_some()
    }

    /// Whether it holds nothing and asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The server has opened a session for this client. Ignored while there is one.
    pub fn opened(&mut self, opened: Opened) {
        if self.session.is_none() {
            self.session = Some(opened);
        }
    }

    /// Forgets the session and all that it held: after a fork in the child, or when the server may not be the same any more.
    pub fn lapse<S>(&mut self, entries: &mut impl Entries<S>) {
        self.session = None;
        self.proof.taken = Position::START;
        self.proof.floor = Position::START;
        self.forget(entries);
    }

    /// Forgets all states and what they were proved by. The session stays.
    fn forget<S>(&mut self, entries: &mut impl Entries<S>) {
        self.proof.proved = None;
        self.entries.keys().for_each(|entry| entries.end(*entry));
        self.entries.clear();
        self.places.clear();
        self.order.clear();
        self.bytes = 0;
        for of_kind in self.kinds.values_mut() {
            of_kind.order.clear();
            (of_kind.entries, of_kind.bytes) = (0, 0);
        }
        self.fills_out.clear();
        self.early.clear();
        self.early_before.clear();
        self.probes.clear();
    }

    /// Takes note of the time. Where the clock has run backwards, no age can be told, and nothing is held any more.
    fn see<S>(&mut self, now: Moment, entries: &mut impl Entries<S>) {
        if self.latest.is_some_and(|latest| now < latest) {
            self.forget(entries);
        }
        self.latest = Some(now);
    }

    /// Reads an object as it was at most `lag` ago, with the writes of this client in it, and all up to `at_least`.
    pub fn read<S>(
        &mut self,
        entry: EntryId,
        (lag, at_least): (Duration, Position),
        now: Moment,
        entries: &mut impl Entries<S>,
    ) -> Read {
        self.see(now, entries);
        if self.session.is_none() {
            return Read::Miss(Miss::NoSession);
        }
        let Some(entry) = self.entries.get(&entry) else { return Read::Miss(Miss::NotHeld) };
        let Some(held) = &entry.held else { return Read::Miss(Miss::Filling) };
        match self.proof.age_of(held, lag, at_least, now) {
            Some(age) => Read::Hit { version: held.version, age },
            None => Read::Miss(Miss::TooOld),
        }
    }

    /// Asks for an object. What the client holds of it is held no more. `None` without a session.
    pub fn fill<S>(&mut self, entry: EntryId, now: Moment, entries: &mut impl Entries<S>) -> Option<Fill> {
        self.see(now, entries);
        let of = self.session?;
        let token = self.token();
        let before = self.entries.remove(&entry);
        match &before {
            Some(before) if before.held.is_some() => entries.end(entry),
            _ => {}
        }
        self.fills_out.insert(token);
        if let Some((given_up, _)) = before.as_ref().and_then(|before| before.asked) {
            self.end_fill(given_up);
        }
        let kind = entries.kind(entry);
        if let Some(before) = &before {
            self.uncount(entry, before);
        }
        let object = before.and_then(|before| before.object);
        let is_of_kind = self.kinds.contains_key(&kind);
        let new = Entry { asked: Some((token, now)), object, held: None, kind, is_of_kind, bytes: 0 };
        if let Some(of_kind) = self.kinds.get_mut(&kind) {
            of_kind.entries += 1;
        }
        self.entries.insert(entry, new);
        self.put_in_order(entry);
        self.end_beyond_limits(kind, entries);
        Some(Fill { of, token })
    }

    /// An entry is there no longer.
    fn uncount(&mut self, id: EntryId, entry: &Entry<K>) {
        self.order.remove(&id);
        self.bytes -= entry.bytes;
        if let Some(of_kind) = self.kinds.get_mut(&entry.kind).filter(|_| entry.is_of_kind) {
            of_kind.order.remove(&id);
            of_kind.entries -= 1;
            of_kind.bytes -= entry.bytes;
        }
    }

    /// Something has been put into a place: it takes other bytes now.
    fn count_bytes<S>(&mut self, id: EntryId, bytes: usize, entries: &mut impl Entries<S>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        self.bytes = self.bytes - before + entry.bytes;
        let (kind, is_of_kind) = (entry.kind, entry.is_of_kind);
        if let Some(of_kind) = self.kinds.get_mut(&kind).filter(|_| is_of_kind) {
            of_kind.bytes = of_kind.bytes - before + entry.bytes;
        }
        self.end_beyond_limits(kind, entries);
    }

    /// Ends the oldest entries, as long as there are too many of a kind or of all. One stays, whatever it takes, and what is pinned.
    fn end_beyond_limits<S>(&mut self, kind: Kind, entries: &mut impl Entries<S>) {
        let is_beyond = |limits: &ClientLimits, count: usize, bytes: usize| {
            count > 1 && (count > limits.entries_max || bytes > limits.bytes_max)
        };
        while let Some(of_kind) = self.kinds.get(&kind)
            && is_beyond(&of_kind.limits, of_kind.entries, of_kind.bytes)
            && let Some(first) = of_kind.order.first().copied()
        {
            self.drop_entry(first, entries);
        }
        while is_beyond(&self.limits, self.entries.len(), self.bytes)
            && let Some(first) = self.order.first().copied()
        {
            self.drop_entry(first, entries);
        }
    }

    /// Takes the answer to a fill, and the state that came with it. Says whether the entry holds that now.
    pub fn filled<S>(
        &mut self,
        entry: EntryId,
        (filled, state): (Filled<K>, Option<S>),
        now: Moment,
        entries: &mut impl Entries<S>,
    ) -> bool {
        self.see(now, entries);
        if self.session != Some(filled.session()) {
            return false;
        }
        match (filled, state) {
            (Filled::Unknown { .. }, _) => {
                self.lapse(entries);
                false
            }
            (Filled::Refused { token, .. }, _) | (Filled::State { token, .. }, None) => {
                self.fill_failed(entry, token, entries);
                false
            }
            (Filled::State { token, object, version, head, .. }, Some(state)) => {
                self.take_fill(entry, (token, object), (version, head), state, entries)
            }
        }
    }

    /// A fill has come to nothing: the object is not there, or the answer was lost.
    pub fn fill_failed<S>(&mut self, entry: EntryId, token: Token, entries: &mut impl Entries<S>) {
        let asked = self.entries.get(&entry).and_then(|entry| entry.asked);
        if asked.is_some_and(|(asked, _)| asked == token) {
            self.drop_entry(entry, entries);
        }
    }

    fn take_fill<S>(
        &mut self,
        id: EntryId,
        (token, object): (Token, K),
        (version, head): (Position, Position),
        state: S,
        entries: &mut impl Entries<S>,
    ) -> bool {
        let early = self.shown(&object).copied().unwrap_or_default();
        if let Some(early) = self.shown(&object) {
            early.version = early.version.max(version);
        }
        self.end_older(&object, version, entries);
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let Some((_, left)) = entry.asked.filter(|(asked, _)| *asked == token) else { return false };
        if early.version > version || early.dropped > head {
            self.drop_entry(id, entries);
            return false;
        }
        // A probe's answer may have brought a state meanwhile, and either can be the newer one.
        let is_newer = entry.held.is_none_or(|held| held.version < version);
        let mut bytes = None;
        if is_newer {
            let held = Held { version, as_of: head, left };
            bytes = entries.put(id, held, Members::ALL, state);
            if bytes.is_none() {
                self.drop_entry(id, entries);
                return false;
            }
            entry.held = Some(held);
        }
        entry.asked = None;
        if let Some(before) = entry.object.replace(object.clone()) {
            self.places.remove(&(before, id));
        }
        self.places.insert((object, id));
        self.end_fill(token);
        if let Some(bytes) = bytes {
            self.count_bytes(id, bytes, entries);
        }
        is_newer && self.entries.contains_key(&id)
    }

    /// No read goes behind a version that an answer has shown, in whichever place of the object.
    fn end_older<S>(&mut self, object: &K, version: Position, entries: &mut impl Entries<S>) {
        for id in self.places_of(object) {
            let held = self.entries.get(&id).and_then(|entry| entry.held);
            if held.is_some_and(|held| held.version < version) {
                self.drop_entry(id, entries);
            }
        }
    }

    fn places_of(&self, object: &K) -> Vec<EntryId> {
        let of_object = (object.clone(), EntryId(0))..=(object.clone(), EntryId(u64::MAX));
        self.places.range(of_object).map(|(_, entry)| *entry).collect()
    }

    /// What has been shown of an object, as long as fills are out.
    fn shown(&mut self, object: &K) -> Option<&mut Early> {
        if self.fills_out.is_empty() {
            return None;
        }
        let before = self.early_before.remove(object).unwrap_or_default();
        Some(self.early.entry(object.clone()).or_insert(before))
    }

    /// A fill is out no longer. What was shown before all that are out were asked for is of no use to them.
    fn end_fill(&mut self, fill: Token) {
        self.fills_out.remove(&fill);
        if self.fills_out.is_empty() {
            self.early.clear();
            self.early_before.clear();
        } else if self.fills_out.first().is_some_and(|oldest| *oldest > self.early_since) {
            self.early_before = std::mem::take(&mut self.early);
            self.early_since = Token(self.tokens);
        }
    }

    /// Asks what has changed. `None` without a session. A driver says so ([`give_up`](Self::give_up)) if it has no answer, so that
    /// the answers that come late are known.
    pub fn probe<S>(&mut self, now: Moment, entries: &mut impl Entries<S>) -> Option<Probe> {
        self.see(now, entries);
        let of = self.session?;
        let token = self.token();
        self.probes.insert(token, now);
        if self.probes.len() > PROBES_MAX {
            self.probes.pop_first();
        }
        Some(Probe { of, taken: self.proof.taken, room: self.room, token })
    }

    /// A probe has not been sent, or will have no answer: it is remembered no longer.
    pub fn give_up(&mut self, probe: Token) {
        self.probes.remove(&probe);
    }

    /// How many probes are out, as far as they are remembered.
    pub fn probes_out(&self) -> usize {
        self.probes.len()
    }

    /// Takes the answer to a probe. Answers may come in any order, and more than once. After a part the client asks again at once.
    pub fn answered<S: Clone>(&mut self, answer: Answer<K, S>, now: Moment, entries: &mut impl Entries<S>) {
        let is_part = answer.is_part();
        let Some(left) = self.take_answer(answer, now, entries) else { return };
        if is_part {
            self.room = self.room.saturating_mul(2);
        } else {
            self.room = self.update_bytes;
            self.proof.proved = self.proof.proved.max(Some(left));
        }
    }

    /// The entries into which an answer would put values now, with what they hold: for a driver that makes what it puts beforehand.
    /// At least these.
    pub fn wanted<'a, S>(&self, answer: &'a Answer<K, S>) -> Vec<(EntryId, Option<Held>, &'a Unit<K, S>)> {
        let Answer::Changes { of, token, head, units, .. } = answer else { return Vec::new() };
        if self.session != Some(*of) || !self.probes.contains_key(token) || *head <= self.proof.taken {
            return Vec::new();
        }
        let mut wanted = Vec::new();
        for unit in units {
            let Change::Members(members, _) = &unit.change else { continue };
            for id in self.places_of(&unit.object) {
                let Some(entry) = self.entries.get(&id) else { continue };
                let is_wanted = entry.held.map_or(*members == Members::ALL, |held| held.version < unit.at);
                wanted.extend(is_wanted.then_some((id, entry.held, unit)));
            }
        }
        wanted
    }

    /// Takes what an answer has, and says when its probe left.
    fn take_answer<S: Clone>(
        &mut self,
        answer: Answer<K, S>,
        now: Moment,
        entries: &mut impl Entries<S>,
    ) -> Option<Moment> {
        self.see(now, entries);
        if self.session != Some(answer.session()) {
            return None;
        }
        let (token, head, units) = match answer {
            Answer::Unknown { .. } => {
                self.lapse(entries);
                return None;
            }
            Answer::Changes { token, head, units, .. } => (token, head, units),
        };
        let left = self.probes.remove(&token)?;
        // One that was made before another which has been taken has nothing new, but was asked for later perhaps.
        if head > self.proof.taken {
            for unit in units {
                self.take(unit, (head, left), entries);
            }
            self.proof.taken = head;
        }
        Some(left)
    }

    fn take<S: Clone>(
        &mut self,
        unit: Unit<K, S>,
        (head, left): (Position, Moment),
        entries: &mut impl Entries<S>,
    ) {
        let Unit { object, at, change } = unit;
        let mut is_behind = false;
        if let Some(early) = self.shown(&object) {
            is_behind = early.version > at;
            match change {
                Change::Members(..) => early.version = early.version.max(at),
                Change::Dropped => early.dropped = early.dropped.max(at),
            }
        }
        for id in self.places_of(&object) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            match (&change, entry.held) {
                // A fill of another place has shown a later one. That which is out for this place may bring it.
                (Change::Members(..), None) if is_behind => {}
                (Change::Members(members, values), held)
                    if held.is_none_or(|held| held.version < at)
                        && (held.is_some() || *members == Members::ALL) =>
                {
                    let held = Held { version: at, as_of: head.max(at), left };
                    match entries.put(id, held, *members, values.clone()) {
                        Some(bytes) => {
                            entry.held = Some(held);
                            self.count_bytes(id, bytes, entries);
                        }
                        None => self.drop_entry(id, entries),
                    }
                }
                (Change::Members(..), Some(_)) => {}
                // A fill that is out was perhaps carried out before this: its state is not wanted any more.
                (Change::Members(..) | Change::Dropped, _) => self.drop_entry(id, entries),
            }
        }
    }

    /// A reply of the server has told where this client's write is in its log.
    pub fn wrote<S>(&mut self, epoch: Epoch, at: Position, entries: &mut impl Entries<S>) {
        match self.session {
            Some(session) if session.epoch == epoch => self.proof.floor = self.proof.floor.max(at),
            Some(_) => self.lapse(entries), // the server has begun a new life
            None => {}
        }
    }

    /// Forgets an entry that nobody reads any more.
    pub fn release<S>(&mut self, entry: EntryId, entries: &mut impl Entries<S>) {
        self.pinned.remove(&entry);
        self.drop_entry(entry, entries);
    }

    fn drop_entry<S>(&mut self, id: EntryId, entries: &mut impl Entries<S>) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.uncount(id, &entry);
        if let Some(object) = entry.object {
            self.places.remove(&(object, id));
        }
        entries.end(id);
        if let Some((asked, _)) = entry.asked {
            self.end_fill(asked);
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
}
