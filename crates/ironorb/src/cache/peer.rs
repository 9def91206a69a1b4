//! What a client has of one server: its session, and the places that this fills.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_cache::{
    Answer, Change, Client, Entries, EntryId, Epoch, Fill, Filled, Held, Kind, Members, Moment, Opened,
    Position, Probe, Read, Token, Unit,
};

use super::log::CellNumber;
use super::place::{AnyPlace, Draft};
use super::view::View;
use super::wire::Values;
use crate::base::locks::PiLock;
use crate::object::ObjectRef;

/// A server whose objects' states a client holds. Its session may end, and another may follow.
pub(crate) struct Peer {
    view: View,
    state: PiLock<State>,
    /// What a [`Reading`] is, as a number.
    reading: AtomicU8,
    /// How many of the next calls to the server are to carry probes.
    to_be_carried: AtomicU8,
}

/// What is read of a server's objects whose changes are told at once. Unless that is nothing, a probe waits for news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reading {
    /// Nothing, and no probe waits.
    Nothing = 0,
    /// Nothing since the last probe.
    Before = 1,
    /// Something.
    Lately = 2,
    /// The server lets no probe wait: changes are asked for when they are read.
    Never = 3,
}

impl Reading {
    fn of(number: u8) -> Reading {
        match number {
            0 => Reading::Nothing,
            1 => Reading::Before,
            2 => Reading::Lately,
            _ => Reading::Never,
        }
    }
}

/// Nothing that is done with it runs code of the program, which may panic, or read what is cached.
struct State {
    client: Client<CellNumber>,
    places: Places,
    /// What answers probes, once there was a session.
    cache: Option<ObjectRef>,
}

/// The places by their entries. A reference that is dropped drops its place.
#[derive(Default)]
struct Places {
    by_entry: BTreeMap<EntryId, (Kind, Weak<dyn AnyPlace>)>,
    /// What is to be put into places.
    drafts: Drafts,
    leavings: Leavings,
}

/// What has been made of the values of an answer, by the entries of their places.
type Drafts = BTreeMap<EntryId, Draft>;

/// A draft that is to be made.
struct Missing<'a> {
    entry: EntryId,
    place: Arc<dyn AnyPlace>,
    unit: &'a Unit<CellNumber, Values>,
}

/// What is dropped once the lock is free: that may take the lock, or run code of the program.
#[derive(Default)]
struct Leavings {
    /// Places that have been used with the lock held. The last owner of one may be gone meanwhile.
    places: Vec<Arc<dyn AnyPlace>>,
    /// States that have made room for others.
    states: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Leavings {
    fn drop_caught(self) {
        self.places.into_iter().for_each(drop_caught);
        self.states.into_iter().for_each(drop_caught);
    }
}

/// Drops what belongs to the program. A panic in that has nothing to do with what this thread does, and one thing that panics keeps no
/// other from being dropped.
fn drop_caught<T>(leaving: T) {
    let _panicked = catch_unwind(AssertUnwindSafe(|| drop(leaving)));
}

/// The values have been read before, without the lock.
impl Entries<()> for Places {
    fn put(&mut self, entry: EntryId, held: Held, _: Members, (): ()) -> Option<usize> {
        let Places { by_entry, drafts, leavings } = self;
        // What cannot be read is not held: the next read asks the object.
        let draft = drafts.get_mut(&entry)?;
        let place = by_entry.get(&entry)?.1.upgrade()?;
        let put = place.put(held, draft).map(|replaced| {
            leavings.states.extend(replaced);
            place.bytes()
        });
        leavings.places.push(place);
        put
    }

    fn end(&mut self, entry: EntryId) {
        let replaced = self.with(entry, |place| place.end()).flatten();
        self.leavings.states.extend(replaced);
    }

    fn kind(&self, entry: EntryId) -> Kind {
        self.by_entry.get(&entry).map_or(Kind::NONE, |(kind, _)| *kind)
    }
}

impl Places {
    fn with<T>(&mut self, entry: EntryId, f: impl FnOnce(&dyn AnyPlace) -> T) -> Option<T> {
        let place = self.by_entry.get(&entry)?.1.upgrade()?;
        let result = f(&*place);
        self.leavings.places.push(place);
        Some(result)
    }
}

/// What a read that found nothing is to do.
pub(crate) enum Advice {
    /// It is there: read again.
    Look,
    /// Ask the session's server what has changed.
    Probe(Probe, ObjectRef),
    /// Ask the object.
    Fill(Fill),
}

/// Tells the moment now. It is asked with the lock held: moments that threads bring along would come in another order, as if the
/// clock had run backwards.
pub(super) type Clock = fn() -> Moment;

impl Peer {
    pub(crate) fn new(client: Client<CellNumber>) -> Arc<Peer> {
        let state = State { client, places: Places::default(), cache: None };
        let (view, reading, to_be_carried) = Default::default();
        Arc::new(Peer { view, state: PiLock::new(state), reading, to_be_carried })
    }

    /// Has so many of the next calls to the server carry probes.
    pub(crate) fn have_carried(&self, calls: u8) {
        self.to_be_carried.store(calls, Ordering::Relaxed);
    }

    /// Whether calls to the server are to carry probes.
    pub(crate) fn is_to_be_carried(&self) -> bool {
        self.to_be_carried.load(Ordering::Relaxed) != 0
    }

    /// Whether the call that begins now is to carry a probe. It is one of those that are.
    pub(crate) fn takes_carried(&self) -> bool {
        let left = self.to_be_carried.load(Ordering::Relaxed);
        // Of two calls that begin together both may take the same one.
        self.to_be_carried.store(left.saturating_sub(1), Ordering::Relaxed);
        left != 0
    }

    /// Whether this is its session.
    pub(crate) fn is_in(&self, session: Opened) -> bool {
        self.view.is_of(session.epoch) && self.state.lock().client.session() == Some(session)
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Whether a read need not be noted: another one has been since the last probe, or no probe can wait.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.reading.load(Ordering::Relaxed) >= Reading::Lately as u8
    }

    /// Something is read whose changes are told at once. Gives what was before: if that is nothing, the caller begins to wait.
    pub(crate) fn note_read(&self) -> Reading {
        let note = |now| (now < Reading::Lately as u8).then_some(Reading::Lately as u8);
        let before = self.reading.fetch_update(Ordering::Relaxed, Ordering::Relaxed, note);
        Reading::of(before.unwrap_or_else(|before| before))
    }

    /// Whether something has been read since this was last called.
    pub(crate) fn take_reading(&self) -> Reading {
        self.change_reading(Reading::Lately, Reading::Before)
    }

    /// No probe waits any more, unless something has been read lately.
    pub(crate) fn end_reading_unless_read(&self) -> bool {
        self.change_reading(Reading::Before, Reading::Nothing) == Reading::Before
    }

    /// No probe waits any more: the next read begins anew.
    pub(crate) fn end_reading(&self) {
        self.change_reading(Reading::Lately, Reading::Nothing);
        self.change_reading(Reading::Before, Reading::Nothing);
    }

    /// The server lets no probe wait.
    pub(crate) fn note_no_news(&self) {
        self.reading.store(Reading::Never as u8, Ordering::Relaxed);
    }

    /// Changes what is read, if it is this. Gives what it was.
    fn change_reading(&self, from: Reading, to: Reading) -> Reading {
        let (from, to) = (from as u8, to as u8);
        let before = self.reading.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        Reading::of(before.unwrap_or_else(|before| before))
    }

    /// Changes the state, and publishes what is proved then.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        self.view.publish(state.client.proof(), state.client.session());
        let leavings = std::mem::take(&mut state.places.leavings);
        drop(state);
        leavings.drop_caught();
        result
    }

    /// Reads while no place is written.
    pub(crate) fn undisturbed<T>(&self, read: impl FnOnce() -> T) -> T {
        let _writers_wait = self.state.lock();
        read()
    }

    /// Takes a place in.
    pub(crate) fn add(&self, entry: EntryId, kind: Kind, place: Weak<dyn AnyPlace>) {
        self.state.lock().places.by_entry.insert(entry, (kind, place));
    }

    /// A place is dropped.
    pub(crate) fn leave(&self, entry: EntryId) {
        self.with(|State { client, places, .. }| {
            places.by_entry.remove(&entry);
            client.release(entry, places);
        });
    }

    /// What to do for a read that has found nothing.
    pub(crate) fn advise(&self, entry: EntryId, (lag, at_least): (Duration, Position), now: Clock) -> Advice {
        self.with(|State { client, places, cache }| {
            let now = now();
            match client.read(entry, (lag, at_least), now, places) {
                Read::Hit { .. } if places.with(entry, |place| place.holds()) == Some(true) => Advice::Look,
                Read::Miss(ironorb_cache::Miss::TooOld) if let Some(cache) = &*cache => {
                    match client.probe(now, places) {
                        Some(probe) => Advice::Probe(probe, cache.clone()),
                        None => Advice::Fill(NO_SESSION),
                    }
                }
                _ => Advice::Fill(client.fill(entry, now, places).unwrap_or(NO_SESSION)),
            }
        })
    }

    /// Asks for what a place holds, if that is nothing and nobody has asked. `None` without a session.
    pub(crate) fn begin_fill(&self, entry: EntryId, now: Clock) -> Option<Fill> {
        self.with(|State { client, places, .. }| {
            let now = now();
            match client.read(entry, (Duration::MAX, Position::START), now, places) {
                Read::Miss(ironorb_cache::Miss::NotHeld) => client.fill(entry, now, places),
                _ => None,
            }
        })
    }

    /// Has a place make room for no others. False if as many are pinned as there may be.
    pub(crate) fn pin(&self, entry: EntryId) -> bool {
        self.state.lock().client.pin(entry)
    }

    /// Takes back a [`pin`](Self::pin).
    pub(crate) fn unpin(&self, entry: EntryId) {
        self.state.lock().client.unpin(entry);
    }

    /// How many entries there are, of a kind with limits or of all, and how many bytes they take.
    pub(crate) fn uses(&self, kind: Option<Kind>) -> (usize, usize) {
        let client = &self.state.lock().client;
        kind.map_or_else(|| (client.len(), client.bytes()), |kind| client.of_kind(kind))
    }

    /// Ends the oldest entry. False if there is none that is not pinned.
    pub(crate) fn end_oldest(&self, kind: Option<Kind>) -> bool {
        self.with(|State { client, places, .. }| client.end_oldest(kind, places))
    }

    /// Takes the answer to a probe. Its values are read before the lock is taken.
    pub(crate) fn answered(&self, answer: Answer<CellNumber, Values>, now: Clock) {
        let mut drafts = Drafts::new();
        for tries in 1.. {
            let is_last = tries == DRAFTS_MAX;
            let missing = self.with(|state| {
                let missing = if is_last { Vec::new() } else { state.missing(&answer, &drafts) };
                if missing.is_empty() {
                    state.put(&mut drafts, |client, places| {
                        client.answered(answer.without_values(), now(), places);
                    });
                }
                missing
            });
            if missing.is_empty() {
                break;
            }
            for Missing { entry, place, unit } in missing {
                if let Change::Members(members, values) = &unit.change {
                    drafts.insert(entry, place.draft(*members, unit.at, values));
                }
            }
        }
        drafts.into_values().for_each(drop_caught);
    }

    /// Takes the answer to a fill, and what has been made of the state in it.
    pub(crate) fn filled(
        &self,
        entry: EntryId,
        (filled, draft): (Filled<CellNumber>, Option<Draft>),
        now: Clock,
    ) {
        let mut drafts: Drafts = draft.map(|draft| (entry, draft)).into_iter().collect();
        self.with(|state| {
            state.put(&mut drafts, |client, places| {
                client.filled(entry, (filled, Some(())), now(), places);
            });
        });
        drafts.into_values().for_each(drop_caught);
    }

    /// A fill has come to nothing.
    pub(crate) fn fill_failed(&self, entry: EntryId, token: Token) {
        self.with(|State { client, places, .. }| client.fill_failed(entry, token, places));
    }

    /// The session, and what answers its probes.
    pub(crate) fn session(&self) -> Option<(Opened, ObjectRef)> {
        let state = self.state.lock();
        Some((state.client.session()?, state.cache.clone()?))
    }

    /// A probe of a session that may be over.
    pub(crate) fn probe(&self, now: Clock) -> Option<(Probe, ObjectRef)> {
        self.with(|State { client, places, cache, .. }| Some((client.probe(now(), places)?, cache.clone()?)))
    }

    /// A probe has not been sent, or will have no answer.
    pub(crate) fn give_up(&self, probe: &Probe) {
        self.state.lock().client.give_up(probe.token);
    }

    /// Whether there is a session, and how many objects it holds or asks for.
    pub(crate) fn holds(&self) -> (bool, usize) {
        let state = self.state.lock();
        (state.client.session().is_some(), state.client.len())
    }

    /// The server has opened a session. Ignored while there is one.
    pub(crate) fn opened(&self, opened: Opened, cache: ObjectRef) {
        self.with(|state| {
            if state.client.session().is_none() {
                state.client.opened(opened);
                state.cache = Some(cache);
            }
        });
    }

    /// Ends the session, unless it is of this epoch.
    pub(crate) fn lapse_unless(&self, epoch: Option<Epoch>) {
        self.with(|State { client, places, .. }| {
            if client.session().is_some_and(|session| Some(session.epoch) != epoch) {
                client.lapse(places);
            }
        });
    }

    /// A reply has told the end of the server's log. No read that begins later goes behind it.
    pub(crate) fn told(&self, epoch: Epoch, head: Position) {
        self.with(|State { client, places, .. }| client.wrote(epoch, head, places));
    }
}

impl State {
    /// The places into which an answer would put what these drafts have not.
    fn missing<'a>(&self, answer: &'a Answer<CellNumber, Values>, drafts: &Drafts) -> Vec<Missing<'a>> {
        let mut missing = Vec::new();
        for (entry, held, unit) in self.client.wanted(answer) {
            let version = held.map(|held| held.version);
            let is_there = drafts.get(&entry).is_some_and(|draft| draft.is_for(unit.at, version));
            let place = self.places.by_entry.get(&entry).filter(|_| !is_there);
            missing
                .extend(place.and_then(|(_, place)| Some(Missing { entry, place: place.upgrade()?, unit })));
        }
        missing
    }

    /// Has the machine put drafts into places. Those that it does not put stay.
    fn put(&mut self, drafts: &mut Drafts, take: impl FnOnce(&mut Client<CellNumber>, &mut Places)) {
        std::mem::swap(&mut self.places.drafts, drafts);
        take(&mut self.client, &mut self.places);
        std::mem::swap(&mut self.places.drafts, drafts);
    }
}

/// How often the values of an answer are read again because another thread has written their place meanwhile. After that the place
/// holds nothing.
const DRAFTS_MAX: usize = 8;

/// What a client asks with that has no session, or leaves its place as it is. No server opens such a one.
pub(crate) const NO_SESSION: Fill =
    Fill { of: Opened { epoch: Epoch(0), session: ironorb_cache::SessionId(0) }, token: Token(0) };

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("session", &self.state.lock().client.session()).finish_non_exhaustive()
    }
}
