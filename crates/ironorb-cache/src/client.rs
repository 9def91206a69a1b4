//! The client's half: what it holds of one server's objects, and how fresh that is.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::in_order::InOrder;
use crate::message::{Answer, Change, Epoch, Fill, Filled, Opened, Position, Probe, Token, Unit};
use crate::time::Moment;

/// How much a client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// The most objects. One more takes the place of that which was filled the longest time ago.
    pub entries_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits { entries_max: 1_000_000 }
    }
}

/// The most probes that are remembered while their answers are out. The answer to an older one renews nothing.
const PROBES_MAX: usize = 64;

/// What a client holds of the objects of one server.
///
/// Its moments are those of a clock that runs through suspension. Memory: at most `entries_max` objects with their states.
#[derive(Debug)]
pub struct Client<K, S> {
    limits: ClientLimits,
    session: Option<Opened>,
    /// Up to where the answers to probes have been taken.
    taken: Position,
    /// When the newest answered probe left.
    proved: Option<Moment>,
    /// What a read must not be older than: where the client's own writes are in the log.
    floor: Position,
    entries: BTreeMap<K, Entry<S>>,
    /// The objects in the order in which they were asked for.
    order: InOrder<K>,
    /// When the probes left that have no answer yet.
    probes: BTreeMap<Token, Moment>,
    tokens: u64,
    /// The latest moment that the client has seen.
    latest: Option<Moment>,
}

/// An object that is held or asked for.
#[derive(Debug)]
struct Entry<S> {
    /// The fill that is out, and when it left.
    asked: Option<(Token, Moment)>,
    held: Option<Held<S>>,
    /// The version of the newest state that the client has seen, in the answer to whichever fill: no read goes behind it.
    seen: Position,
}

#[derive(Debug)]
struct Held<S> {
    version: Position,
    /// No write to the object up to here is missing.
    as_of: Position,
    /// When the message left that this state answers.
    left: Moment,
    state: S,
}

/// The result of a cached read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<'c, S> {
    /// The object has had this state within the lag.
    Hit {
        /// The state.
        state: &'c S,
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

impl<K: Ord + Clone, S> Client<K, S> {
    /// A client that holds nothing.
    pub fn new(limits: ClientLimits) -> Self {
        Client {
            limits,
            session: None,
            taken: Position::START,
            proved: None,
            floor: Position::START,
            entries: BTreeMap::new(),
            order: InOrder::default(),
            probes: BTreeMap::new(),
            tokens: 0,
            latest: None,
        }
    }

    /// The session, if there is one.
    pub fn session(&self) -> Option<Opened> {
        self.session
    }

    /// How many objects it holds or asks for.
    pub fn len(&self) -> usize {
        self.entries.len()
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
    pub fn lapse(&mut self) {
        self.session = None;
        self.taken = Position::START;
        self.floor = Position::START;
        self.forget();
    }

    /// Forgets all states and what they were proved by. The session stays.
    fn forget(&mut self) {
        self.proved = None;
        self.entries.clear();
        self.order.clear();
        self.probes.clear();
    }

    /// Takes note of the time. Where the clock has run backwards, no age can be told, and nothing is held any more.
    fn see(&mut self, now: Moment) {
        if self.latest.is_some_and(|latest| now < latest) {
            self.forget();
        }
        self.latest = Some(now);
    }

    /// Reads an object as it was at most `lag` ago, with the writes of this client in it, and all up to `at_least`.
    pub fn read(&mut self, object: &K, lag: Duration, at_least: Position, now: Moment) -> Read<'_, S> {
        self.see(now);
        if self.session.is_none() {
            return Read::Miss(Miss::NoSession);
        }
        let Some(entry) = self.entries.get(object) else { return Read::Miss(Miss::NotHeld) };
        let Some(held) = &entry.held else { return Read::Miss(Miss::Filling) };
        let has_all = held.as_of.max(self.taken) >= self.floor.max(at_least).max(entry.seen);
        let proved = self.proved.map_or(held.left, |proved| proved.max(held.left));
        match now.since(proved) {
            Some(age) if age <= lag && has_all => {
                Read::Hit { state: &held.state, version: held.version, age }
            }
            _ => Read::Miss(Miss::TooOld),
        }
    }

    /// Asks for an object. What the client holds of it is held no more. `None` without a session.
    pub fn fill(&mut self, object: &K, now: Moment) -> Option<Fill<K>> {
        self.see(now);
        let of = self.session?;
        let token = self.token();
        let seen = self.entries.get(object).map_or(Position::START, |entry| entry.seen);
        self.entries.insert(object.clone(), Entry { asked: Some((token, now)), held: None, seen });
        self.order.move_to_end(object);
        if self.entries.len() > self.limits.entries_max.max(1)
            && let Some(first) = self.order.first().cloned()
        {
            self.drop_entry(&first);
        }
        Some(Fill { of, object: object.clone(), token })
    }

    /// Takes the answer to a fill.
    pub fn filled(&mut self, filled: Filled<K, S>, now: Moment) {
        self.see(now);
        if self.session != Some(filled.session()) {
            return;
        }
        match filled {
            Filled::Unknown { .. } => self.lapse(),
            Filled::Refused { token, object, .. } => {
                if self.asks(&object, token).is_some() {
                    self.drop_entry(&object);
                }
            }
            Filled::State { token, object, version, head, state, .. } => {
                let asked = self.asks(&object, token);
                let Some(entry) = self.entries.get_mut(&object) else { return };
                entry.seen = entry.seen.max(version);
                let Some(left) = asked else { return };
                entry.asked = None;
                // A probe's answer may have brought a state meanwhile, and either can be the newer one.
                if entry.held.as_ref().is_none_or(|held| held.version < version) {
                    entry.held = Some(Held { version, as_of: head, left, state });
                }
            }
        }
    }

    /// When the fill with this token left, if its state is still wanted.
    fn asks(&self, object: &K, token: Token) -> Option<Moment> {
        let (asked, left) = self.entries.get(object)?.asked?;
        (asked == token).then_some(left)
    }

    /// Asks what has changed. `None` without a session.
    pub fn probe(&mut self, now: Moment) -> Option<Probe> {
        self.see(now);
        let of = self.session?;
        let token = self.token();
        self.probes.insert(token, now);
        if self.probes.len() > PROBES_MAX {
            self.probes.pop_first();
        }
        Some(Probe { of, taken: self.taken, token })
    }

    /// Takes the answer to a probe. Answers may come in any order, and more than once.
    pub fn answered(&mut self, answer: Answer<K, S>, now: Moment) {
        self.see(now);
        if self.session != Some(answer.session()) {
            return;
        }
        let (token, head, units) = match answer {
            Answer::Unknown { .. } => return self.lapse(),
            Answer::Changes { token, head, units, .. } => (token, head, units),
        };
        let Some(left) = self.probes.remove(&token) else { return };
        // One that was made before another which has been taken has nothing new, but was asked for later perhaps.
        if head > self.taken {
            for unit in units {
                self.take(unit, head, left);
            }
            self.taken = head;
        }
        self.proved = self.proved.max(Some(left));
    }

    fn take(&mut self, unit: Unit<K, S>, head: Position, left: Moment) {
        let Unit { object, at, change } = unit;
        let Some(entry) = self.entries.get_mut(&object) else { return };
        match change {
            // A fill that is out was perhaps carried out before this: its state is not wanted any more.
            Change::Dropped => self.drop_entry(&object),
            Change::State(state) => {
                if entry.held.as_ref().is_none_or(|held| held.version < at) {
                    entry.held = Some(Held { version: at, as_of: head, left, state });
                }
            }
        }
    }

    /// A reply of the server has told where this client's write is in its log.
    pub fn wrote(&mut self, epoch: Epoch, at: Position) {
        match self.session {
            Some(session) if session.epoch == epoch => self.floor = self.floor.max(at),
            Some(_) => self.lapse(), // the server has begun a new life
            None => {}
        }
    }

    fn drop_entry(&mut self, object: &K) {
        self.entries.remove(object);
        self.order.remove(object);
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
}
