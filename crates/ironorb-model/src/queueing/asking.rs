//! Caching proxies that ask what has changed, as the ORB's own do.
//!
//! A client's process has a session with each server's process of which it reads objects. The server puts writes in an order, its
//! log, and notes for each session what its client has not been told of the objects that it holds.
//!
//! - A read is answered by the cache if the newest answered question has left within the lag, and all is taken up to where replies
//!   of the server have told that its log ends. Else it asks what has changed, by a probe; each thread for itself.
//! - After a read that had to ask, the next calls to that server carry probes, and their replies the answers.
//! - An answer has so many octets of updates; for the rest the client asks again, for twice as many.
//! - What is not held yet is asked for by a fill. The first one of a process finds no session, and has one opened.
//!
//! Nothing is lost here. Neither sessions nor what they hold ever end, and what does not fit is called.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::caches::Holders;
use super::calls::{Call, Caller, Exchange};
use super::jobs::Message;
use super::sizes::CacheSizes;
use super::world::{Task, World};
use crate::scenario::{Asking, Cache, CacheMode};
use crate::{CycleDraws, DrawnCall, Slab, Table, Time};

/// The sessions of caches, and what is asked now.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    numbers: Table<(u32, u32), u32>,
    all: Vec<Session>,
    /// The end of the log of each server's process.
    heads: Table<u32, u64>,
    /// The last writes of objects, where clients may yet ask for them.
    versions: Table<(u32, u64), u64>,
    /// The processes whose requests ask for the end of the log.
    asking: Table<u32, ()>,
    /// The connections whose replies have told whose log they tell of.
    told: Table<u32, ()>,
    reads: Slab<CachedRead>,
    questions: Slab<Question>,
    sizes: CacheSizes,
}

/// What a client's process has of a server's process.
#[derive(Debug)]
struct Session {
    lag: Duration,
    asking: Asking,
    sizes: UnitSizes,
    is_open: bool,
    // The client's half.
    /// When the newest answered question left.
    proved: Option<Time>,
    /// Up to where answers have been taken.
    taken: u64,
    /// Where the log ends, as far as replies have told.
    floor: u64,
    /// For how many octets of updates the next answer has room.
    room: u64,
    /// How many of the next calls carry questions.
    to_be_carried: u8,
    /// What has been asked for and is held, where not all is held from the beginning.
    held: Table<u64, Held>,
    fills_out: u32,
    /// The newest versions that answers have shown while fills were out.
    shown: Table<u64, u64>,
    // The server's half.
    /// What the client may hold, where not all is held from the beginning.
    book: Table<u64, ()>,
    untold: Untold,
    // For observers.
    unseen: Table<u64, Unseen>,
    writes: u64,
}

/// What a client holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// No earlier write is missing.
    as_of: u64,
    /// When its fill left.
    left: Time,
}

/// Writes of an object that its holder has not seen: of those that are told at once, the first.
#[derive(Debug, Default)]
struct Unseen {
    writes: VecDeque<(u64, Time)>,
    /// Whether the last one has been in no answer yet.
    is_open: bool,
}

/// The octets of an update.
#[derive(Debug, Clone, Copy)]
struct UnitSizes {
    octets: u64,
}

/// What a request asks of the log of its server.
#[derive(Debug, Clone)]
struct Question {
    asks: Asks,
    /// When it was written.
    left: Time,
    taken: u64,
    room: u64,
    /// The end of the log, as the reply tells it.
    head: u64,
    answer: Option<Answer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Where the log ends.
    End,
    /// The same, and what has changed.
    Changes,
    /// What has changed, by a message of its own.
    Probe,
    /// The state of an object, to be held if there is a session.
    Fill { object: u64, is_to_be_held: bool },
    /// For a session.
    Open,
}

/// What an answer tells.
#[derive(Debug, Clone)]
struct Answer {
    head: u64,
    /// Objects with their last writes, and up to which of its writes an observer has them seen by this.
    units: Vec<(u64, u64, u64)>,
    is_part: bool,
}

/// A read that its cache could not answer at once.
#[derive(Debug)]
struct CachedRead {
    cycle: u32,
    /// The index of the server, and its process.
    server: (u16, u32),
    session: u32,
    object: u64,
    begun: Time,
    probes: u32,
    asked: Asks,
    question: u32,
    /// Whether the answer was a part.
    is_part: bool,
}

/// What has been written of the objects of a session, and is not known to be taken by its client: the newest write of each.
#[derive(Debug, Default)]
struct Untold {
    entries: Table<u64, Entry>,
    /// By since when they are untold.
    order: BTreeSet<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    since: u64,
    /// The last write.
    at: u64,
    answered: Answered,
}

/// What of an object's writes has been in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Nothing,
    All,
    /// What came before this write.
    Before(u64),
}

impl Untold {
    fn note(&mut self, object: u64, at: u64) {
        if let Some(entry) = self.entries.get_mut(&object) {
            entry.at = at;
            if entry.answered == Answered::All {
                entry.answered = Answered::Before(at);
            }
            return;
        }
        self.entries.insert(object, Entry { since: at, at, answered: Answered::Nothing });
        self.order.insert((at, object));
    }

    /// Forgets what the client has taken.
    fn take(&mut self, taken: u64) {
        while let Some(&(since, object)) = self.order.first().filter(|(since, _)| *since <= taken) {
            self.order.remove(&(since, object));
            let Some(entry) = self.entries.get_mut(&object) else { continue };
            let rest = match entry.answered {
                _ if entry.at <= taken => None,
                Answered::All => None,
                Answered::Before(rest) => Some(rest),
                Answered::Nothing => Some(entry.since),
            };
            match rest {
                Some(rest) => {
                    entry.since = rest.max(taken + 1);
                    entry.answered = Answered::Nothing;
                    self.order.insert((entry.since, object));
                }
                None => drop(self.entries.remove(&object)),
            }
        }
    }

    /// What is untold, the oldest first, as long as there is room, and one at least; and since when what comes then is.
    fn units(&mut self, room: u64, octets: u64) -> (Vec<(u64, u64)>, Option<u64>) {
        let count = self.count(room, octets);
        let mut units = Vec::with_capacity(count);
        let mut order = self.order.iter();
        for (_, object) in order.by_ref().take(count) {
            let Some(entry) = self.entries.get_mut(object) else { continue };
            if entry.answered == Answered::Nothing {
                entry.answered = Answered::All;
            }
            units.push((*object, entry.at));
        }
        (units, order.next().map(|(since, _)| *since))
    }

    /// How many units an answer has.
    fn count(&self, room: u64, octets: u64) -> usize {
        self.order.len().min((room / octets.max(1)).max(1) as usize)
    }
}

impl UnitSizes {
    fn of(cache: &Cache) -> UnitSizes {
        UnitSizes { octets: u64::from(cache.update_octets).max(CacheSizes::UNIT_OCTETS_MIN) }
    }

    /// Octets of so many units in an answer that begins at an eighth octet.
    fn answer(self, units: usize) -> u64 {
        match units as u64 {
            0 => CacheSizes::ANSWER_OCTETS,
            units => {
                let first = CacheSizes::ANSWER_OCTETS.next_multiple_of(8);
                first + (units - 1) * self.octets.next_multiple_of(8) + self.octets
            }
        }
    }
}

impl Session {
    fn new(cache: &Cache, asking: Asking) -> Session {
        Session {
            lag: cache.lag,
            asking,
            sizes: UnitSizes::of(cache),
            is_open: asking.is_warm,
            proved: asking.is_warm.then_some(Time::ZERO),
            taken: 0,
            floor: 0,
            room: UPDATE_OCTETS,
            to_be_carried: 0,
            held: Table::default(),
            fills_out: 0,
            shown: Table::default(),
            book: Table::default(),
            untold: Untold::default(),
            unseen: Table::default(),
            writes: 0,
        }
    }

    /// What it holds of an object.
    fn held(&self, object: u64) -> Option<Held> {
        match self.asking.is_warm {
            true => Some(Held { as_of: 0, left: Time::ZERO }),
            false => self.held.get(&object).copied(),
        }
    }

    /// Whether the server takes it for a holder of an object.
    fn may_hold(&self, object: u64) -> bool {
        self.asking.is_warm || self.book.contains_key(&object)
    }

    /// The moment up to which it is proved that nothing was missing in what is held.
    fn proved_for(&self, held: &Held) -> Time {
        self.proved.map_or(held.left, |proved| proved.max(held.left))
    }

    /// Whether a read may take what is held at a moment.
    fn is_fresh(&self, held: &Held, at: Time) -> bool {
        held.as_of.max(self.taken) >= self.floor && at.since(self.proved_for(held)) <= self.lag
    }

    fn note_write(&mut self, object: u64, at: u64, now: Time) {
        self.untold.note(object, at);
        self.writes += 1;
        let unseen = self.unseen.entry(object).or_default();
        if !std::mem::replace(&mut unseen.is_open, true) {
            unseen.writes.push_back((self.writes, now));
        }
    }

    fn answer(&mut self, (taken, room): (u64, u64), head: u64) -> Answer {
        self.untold.take(taken);
        let (units, rest) = self.untold.units(room, self.sizes.octets);
        let units = units.into_iter().map(|(object, at)| (object, at, self.show(object))).collect();
        Answer { head: rest.map_or(head, |rest| rest - 1), units, is_part: rest.is_some() }
    }

    /// A message has an object's state. Gives the last of its writes in that.
    fn show(&mut self, object: u64) -> u64 {
        if let Some(unseen) = self.unseen.get_mut(&object) {
            unseen.is_open = false;
        }
        self.writes
    }

    /// The client has an object's state with its writes up to this.
    fn see(&mut self, object: u64, until: u64) {
        let Some(unseen) = self.unseen.get_mut(&object) else { return };
        while unseen.writes.front().is_some_and(|(write, _)| *write <= until) {
            unseen.writes.pop_front();
        }
        if unseen.writes.is_empty() {
            self.unseen.remove(&object);
        }
    }

    /// How old what it has of an object is.
    fn age(&self, object: u64, now: Time) -> Duration {
        let first = self.unseen.get(&object).and_then(|unseen| unseen.writes.front());
        first.map_or(Duration::ZERO, |(_, write)| now.since(*write))
    }

    fn take(&mut self, answer: &Answer, left: Time) {
        if answer.head > self.taken {
            for (object, at, until) in &answer.units {
                self.see(*object, *until);
                if self.fills_out > 0 {
                    let shown = self.shown.entry(*object).or_default();
                    *shown = (*shown).max(*at);
                }
            }
            self.taken = answer.head;
        }
        if answer.is_part {
            self.room = self.room.saturating_mul(2);
        } else {
            self.room = UPDATE_OCTETS;
            self.proved = self.proved.max(Some(left));
        }
    }

    /// The state of an object has come.
    fn take_fill(&mut self, object: u64, answer: &Answer, left: Time) {
        for (_, version, until) in &answer.units {
            self.see(object, *until);
            let is_behind = self.shown.get(&object).is_some_and(|shown| shown > version);
            if !is_behind {
                self.held.insert(object, Held { as_of: answer.head, left });
            }
        }
        self.fills_out -= 1;
        if self.fills_out == 0 {
            self.shown.clear();
        }
    }
}

impl World<'_> {
    /// The processes that hold something from the beginning.
    pub(super) fn plan_asking(&mut self) {
        for (number, class) in self.scenario.classes.iter().enumerate() {
            let mode = class.cache.map(|cache| cache.mode);
            if matches!(mode, Some(CacheMode::Asked(Asking { is_warm: true, .. }))) {
                for process in self.processes_of(number) {
                    self.sessions.asking.insert(process, ());
                }
            }
        }
    }

    /// A write is put into the log of its process, if one of the holders may have the object.
    pub(super) fn log_write<'h>(
        &mut self,
        process: u32,
        object: u64,
        holders: impl Iterator<Item = &'h Holders>,
    ) {
        let now = self.now();
        let mut position = None;
        let mut is_asked_for = false;
        let Sessions { heads, numbers, all, versions, .. } = &mut self.sessions;
        for holders in holders {
            let CacheMode::Asked(asking) = holders.cache.mode else { continue };
            is_asked_for |= !asking.is_warm;
            for holder in &holders.processes {
                let number = match numbers.get(&(*holder, process)) {
                    Some(number) => *number as usize,
                    None if asking.is_warm => {
                        all.push(Session::new(&holders.cache, asking));
                        numbers.insert((*holder, process), all.len() as u32 - 1);
                        all.len() - 1
                    }
                    None => continue,
                };
                if all[number].may_hold(object) {
                    let at = *position.get_or_insert_with(|| {
                        let head = heads.entry(process).or_default();
                        *head += 1;
                        *head
                    });
                    all[number].note_write(object, at, now);
                }
            }
        }
        if is_asked_for {
            match position {
                Some(at) => drop(versions.insert((process, object), at)),
                None => drop(versions.remove(&(process, object))),
            }
        }
    }

    /// A cycle reads an object by its cache.
    pub(super) fn read_asking(&mut self, cycle: u32, server: (u16, u32), object: u64) {
        let begun = self.now();
        let holder = self.caller_of(cycle).process;
        let class = self.class_of(cycle);
        let Some(cache) = self.scenario.classes[class].cache else { return };
        let CacheMode::Asked(asking) = cache.mode else { return };
        let Sessions { asking: processes, numbers, all, reads, .. } = &mut self.sessions;
        processes.insert(holder, ());
        let session = *numbers.entry((holder, server.1)).or_insert_with(|| {
            all.push(Session::new(&cache, asking));
            all.len() as u32 - 1
        });
        let at = &all[session as usize];
        if let Some(age) =
            at.held(object).filter(|held| at.is_fresh(held, begun)).map(|_| at.age(object, begun))
        {
            self.note_read(cycle, true);
            return self.end_cached_read(cycle, age);
        }
        let (asked, question) = (Asks::End, NO_QUESTION);
        let read =
            CachedRead { cycle, server, session, object, begun, probes: 0, asked, question, is_part: false };
        let read = reads.add(read);
        self.note_read(cycle, false);
        self.ask_for_read(read);
    }

    /// Has a read ask for what it needs.
    fn ask_for_read(&mut self, number: u32) {
        let CachedRead { session, object, probes, .. } = self.sessions.reads[number];
        let session = &mut self.sessions.all[session as usize];
        let fill = |is_to_be_held| Asks::Fill { object, is_to_be_held };
        let asks = match session.held(object) {
            _ if !session.is_open => fill(false),
            None => {
                session.fills_out += 1;
                fill(true)
            }
            Some(_) if probes < PROBES_MAX => {
                session.to_be_carried = session.asking.carried_probes;
                self.sessions.reads[number].probes += 1;
                Asks::Probe
            }
            Some(_) => fill(false),
        };
        self.ask(number, asks);
    }

    /// Sends a question for a read.
    fn ask(&mut self, number: u32, asks: Asks) {
        let scenario = self.scenario;
        let CachedRead { cycle, server: (server, to), session, .. } = self.sessions.reads[number];
        let left = self.now();
        let Session { taken, room, .. } = self.sessions.all[session as usize];
        let question = Question { asks, left, taken, room, head: 0, answer: None };
        let question = self.sessions.questions.add(question);
        let read = &mut self.sessions.reads[number];
        (read.asked, read.question) = (asks, question);
        let state = self.state_octets(server);
        let sizes = &self.sessions.sizes;
        let (message, sizes, octets) = match asks {
            Asks::Probe => {
                (Message::Probe, sizes.probe, (CacheSizes::PROBE_OCTETS, CacheSizes::ANSWER_OCTETS))
            }
            Asks::Open => (Message::Open, sizes.open, (0, CacheSizes::SESSION_OCTETS)),
            _ => (Message::Fill, sizes.fill, (CacheSizes::FILL_OCTETS, CacheSizes::FILLED_OCTETS + state)),
        };
        let mut draws = self.cycles[cycle].draws.clone();
        let steps = draws.exchange(&scenario.dwell, octets.0 as u32, Some(octets.1 as u32));
        let drawn = DrawnCall { process: 0, object: 0, demand: Duration::ZERO, steps };
        let exchange = Exchange { message, is_oneway: false, server, operation: 0, to, drawn, sizes };
        let from = self.caller_of(cycle);
        self.begin_exchange(Caller::Read(number), from, exchange, draws);
    }

    /// Octets of the state of a server's objects, as fills have it.
    fn state_octets(&self, server: u16) -> u64 {
        let server = &self.scenario.servers[usize::from(server)];
        let read = server.operations.iter().filter(|it| it.kind == crate::scenario::OperationKind::Read);
        let most = read.map(|it| it.reply_octets).max().unwrap_or(0).max(server.object_octets);
        // Behind the octet of the order of bytes.
        if most == 0 { 1 } else { 4 + u64::from(most) }
    }

    /// The answer to what a read has asked has been taken.
    pub(super) fn read_goes_on(&mut self, number: u32, draws: Option<CycleDraws>) {
        let CachedRead { cycle, session, object, begun, asked, is_part, .. } = self.sessions.reads[number];
        if let Some(draws) = draws {
            self.cycles[cycle].draws = draws;
        }
        let now = self.now();
        let at = &self.sessions.all[session as usize];
        match asked {
            Asks::Fill { .. } if !at.is_open => return self.ask(number, Asks::Open),
            Asks::Fill { .. } | Asks::Open => {
                self.sessions.reads.free(number);
                self.ready.push_back(Task::Cycle(cycle));
                return;
            }
            Asks::Probe if is_part => return self.ask(number, Asks::Probe),
            Asks::Probe | Asks::End | Asks::Changes => {}
        }
        // What has been proved since the read began is newer than it must be.
        let is_fresh = |held: &Held| at.is_fresh(held, begun.max(at.proved_for(held)));
        match at.held(object).filter(is_fresh).map(|_| at.age(object, now)) {
            Some(age) => {
                self.sessions.reads.free(number);
                self.end_cached_read(cycle, age);
            }
            None => self.ask_for_read(number),
        }
    }

    /// Has a request of a process that caches ask for the end of the log, or for what has changed.
    #[inline]
    pub(super) fn ask_with(&mut self, number: u32) {
        if self.sessions.asking.is_empty() {
            return;
        }
        let Call { from, to, wire, caller, message, is_oneway, .. } = self.calls[number];
        let (question, octets) = if message.is_of_caches() {
            let Caller::Read(read) = caller else { return };
            (self.sessions.reads[read].question, CacheSizes::QUESTION)
        } else if message == Message::Call && !is_oneway && self.sessions.asking.contains_key(&from) {
            let question = self.question_over(wire, (from, to));
            let octets = match question.asks == Asks::Changes {
                true => CacheSizes::CARRIED_PROBE,
                false => CacheSizes::QUESTION,
            };
            (self.sessions.questions.add(question), octets)
        } else {
            return;
        };
        let call = &mut self.calls[number];
        call.question = question;
        call.sizes.request += octets;
        call.sizes.introduction += octets;
    }

    /// What a call asks over a connection.
    fn question_over(&mut self, wire: u32, between: (u32, u32)) -> Question {
        let left = self.now();
        let mut question = Question { asks: Asks::End, left, taken: 0, room: 0, head: 0, answer: None };
        let Sessions { numbers, all, told, .. } = &mut self.sessions;
        if let Some(session) = numbers.get(&between)
            && told.contains_key(&wire)
        {
            let session = &mut all[*session as usize];
            if session.is_open && session.to_be_carried > 0 {
                session.to_be_carried -= 1;
                question.asks = Asks::Changes;
                (question.taken, question.room) = (session.taken, session.room.min(UPDATE_OCTETS));
            }
        }
        question
    }

    /// What it takes the server to answer what a request asks.
    pub(super) fn telling_time(&mut self, number: u32) -> Duration {
        let Call { question, from, to, object, message, .. } = self.calls[number];
        if question == NO_QUESTION {
            return Duration::ZERO;
        }
        let Question { asks, taken, room, .. } = self.sessions.questions[question];
        let scenario = self.scenario;
        let is_carried = match asks {
            Asks::Changes => true,
            Asks::Probe => false,
            Asks::End | Asks::Fill { .. } | Asks::Open => return Duration::ZERO,
        };
        // What is written by the very call is in its answer, and is put into the log when it ends.
        let writes =
            message == Message::Call && self.facts(number).is_straight && self.facts(number).tells_caches;
        let Sessions { numbers, all, .. } = &mut self.sessions;
        let Some(session) = numbers.get(&(from, to)).map(|number| &mut all[*number as usize]) else {
            return Duration::ZERO;
        };
        session.untold.take(taken);
        let is_new = writes && session.may_hold(object) && !session.untold.entries.contains_key(&object);
        let units = session.untold.count(room, session.sizes.octets) + usize::from(is_new);
        let draws = &mut self.calls[number].draws;
        let carried = if is_carried { draws.time(&scenario.dwell.carry_probe) } else { Duration::ZERO };
        (0..units).fold(carried, |sum, _| sum + draws.time(&scenario.dwell.tell_update))
    }

    /// A reply is written: it answers what its request has asked.
    pub(super) fn tell_log(&mut self, number: u32) {
        let Call { question, from, to, server, operation, priority, .. } = self.calls[number];
        if question == NO_QUESTION {
            return;
        }
        let state = self.state_octets(server);
        let Sessions { numbers, all, heads, versions, questions, .. } = &mut self.sessions;
        let head = heads.entry(to).or_default();
        let asked = &mut questions[question];
        asked.head = *head;
        let mut session = numbers.get(&(from, to)).map(|number| &mut all[*number as usize]);
        let reply = &mut self.calls[number].sizes.reply;
        match (asked.asks, &mut session) {
            (Asks::Changes, Some(session)) => {
                let answer = session.answer((asked.taken, asked.room), *head);
                let octets = CacheSizes::END_AND_PROBE + session.sizes.answer(answer.units.len());
                if octets > UPDATE_OCTETS {
                    *reply += CacheSizes::END;
                    return;
                }
                asked.answer = Some(answer);
                let first = self.first_operation[usize::from(server)];
                let operation =
                    &self.scenario.servers[usize::from(server)].operations[(operation - first) as usize];
                *reply = CacheSizes::reply_with(octets, operation.reply_octets.into(), priority.is_some());
            }
            (Asks::Probe, Some(session)) => {
                let answer = session.answer((asked.taken, asked.room), *head);
                *reply = CacheSizes::reply_of(session.sizes.answer(answer.units.len()));
                asked.answer = Some(answer);
            }
            (Asks::Fill { object, is_to_be_held: true }, Some(session)) => {
                let version = *versions.entry((to, object)).or_insert_with(|| {
                    *head += 1;
                    *head
                });
                session.book.insert(object, ());
                let units = vec![(object, version, session.show(object))];
                asked.answer = Some(Answer { head: *head, units, is_part: false });
                *reply = CacheSizes::reply_of(CacheSizes::FILLED_OCTETS + state);
            }
            (Asks::Fill { .. }, _) => *reply = CacheSizes::reply_of(CacheSizes::UNKNOWN_OCTETS + state),
            (Asks::Open, _) => *reply = CacheSizes::reply_of(CacheSizes::SESSION_OCTETS),
            (Asks::End | Asks::Changes | Asks::Probe, _) => *reply += CacheSizes::END,
        }
    }

    /// What it takes the client to take the answer in a reply.
    pub(super) fn taking_time(&mut self, number: u32) -> Duration {
        let question = self.calls[number].question;
        if question == NO_QUESTION {
            return Duration::ZERO;
        }
        let asked = &self.sessions.questions[question];
        let (Asks::Changes | Asks::Probe, Some(answer)) = (asked.asks, &asked.answer) else {
            return Duration::ZERO;
        };
        let (is_carried, units) = (asked.asks == Asks::Changes, answer.units.len());
        let dwell = &self.scenario.dwell;
        let draws = &mut self.calls[number].draws;
        let carried = if is_carried { draws.time(&dwell.carry_probe) } else { Duration::ZERO };
        (0..units).fold(carried, |sum, _| sum + draws.time(&dwell.apply_update))
    }

    /// A client has its reply: its cache takes what that tells.
    pub(super) fn take_answer(&mut self, number: u32) {
        let Call { caller, question, from, to, wire, class, .. } = self.calls[number];
        if question == NO_QUESTION {
            return;
        }
        let Sessions { numbers, all, told, questions, reads, .. } = &mut self.sessions;
        let Question { asks, left, head, answer, .. } = &mut questions[question];
        let (asks, left, head, answer) = (*asks, *left, *head, answer.take());
        questions.free(question);
        if let Caller::Read(read) = caller {
            reads[read].is_part = answer.as_ref().is_some_and(|answer| answer.is_part);
        }
        if matches!(asks, Asks::End | Asks::Changes) {
            told.insert(wire, ());
        }
        let Some(session) = numbers.get(&(from, to)).map(|number| &mut all[*number as usize]) else { return };
        match (asks, &answer) {
            (Asks::Fill { object, is_to_be_held: true }, Some(answer)) => {
                session.take_fill(object, answer, left)
            }
            (Asks::Open, _) => session.is_open = true,
            (_, Some(answer)) => session.take(answer, left),
            (_, None) => {}
        }
        if matches!(asks, Asks::End | Asks::Changes) && session.is_open {
            session.floor = session.floor.max(head);
        }
        if self.is_observing && answer.is_some() {
            let seen = &mut self.classes[usize::from(class)];
            match asks {
                Asks::Probe => seen.cache_probes += 1,
                Asks::Changes => seen.cache_probes_carried += 1,
                Asks::End | Asks::Fill { .. } | Asks::Open => {}
            }
        }
    }
}

/// That a request asks nothing.
pub(super) const NO_QUESTION: u32 = u32::MAX;

/// How often a read asks what has changed before it asks the object.
const PROBES_MAX: u32 = 2;

/// For how many octets of updates an answer has room, and how long one is at most that a reply carries. The ORB's setting is
/// `cacheUpdateBytes`.
const UPDATE_OCTETS: u64 = 1_460;
