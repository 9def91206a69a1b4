//! A client's place for the state of one object.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ironorb_cache::{EntryId, Filled, Held, Members, Moment, Position};
use ironorb_giop::{Malformed, MalformedKind};

use super::count::ShardedCount;
use super::log::CellNumber;
use super::peer::{Clock, Peer};
use super::state::CachedState;
use super::storage::{Replaced, Storage};
use super::wire::Values;
use crate::base::locks::PiLock;
use crate::object::{ObjectRef, TypedRef};

/// A client's place for the state of one object. Readers take no lock; the session's driver writes with its lock held.
pub(crate) struct Place<S: CachedState> {
    /// Odd while a thread writes.
    sequence: AtomicU64,
    /// The position of the object's last write; 0 while the place holds nothing.
    version: AtomicU64,
    as_of: AtomicU64,
    left: AtomicU64,
    storage: S::Storage,
    pub(crate) peer: Arc<Peer>,
    pub(crate) entry: EntryId,
    /// The object, to which fills go.
    pub(crate) object: ObjectRef,
    /// About how many octets the state takes in a message.
    octets: AtomicUsize,
    /// Whether the server knows no cached state of the object, so that it is not asked again.
    has_none: AtomicBool,
    /// Counts the reads that ask no server, if they are to be counted.
    hits: Option<Arc<ShardedCount>>,
    links: PiLock<Links<S>>,
}

/// What a place has to do with others.
struct Links<S: CachedState> {
    companions: Option<Weak<dyn Companions<S>>>,
    /// How often the state is to make room for no others, as long as no place has followed.
    pins: usize,
    /// The newest place, in a session with the server to which the object has come.
    next: Option<Arc<Place<S>>>,
    /// The places that lead here.
    before: Vec<Weak<Place<S>>>,
}

impl<S: CachedState> Default for Links<S> {
    fn default() -> Self {
        Links { companions: None, pins: 0, next: None, before: Vec::new() }
    }
}

/// What is asked for where a place is filled.
pub(crate) trait Companions<S: CachedState>: Send + Sync {
    /// Places that are to be filled with this one, unless they hold something.
    fn beside(self: Arc<Self>, place: &Place<S>) -> Vec<Arc<Place<S>>>;
}

/// Where the value of a read is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From the cache of this process.
    Cache,
    /// From the object's server, by a call.
    Remote,
    /// From the object itself, which is in this process.
    Collocated,
}

/// A value, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<T> {
    /// The value.
    pub value: T,
    /// The object had this value at most so long before the end of the read.
    pub age: Duration,
    /// The position of the object's last write in its server's log; `None` if the server has told none.
    pub version: Option<u64>,
    /// Where the value is from.
    pub source: Source,
}

impl<S: CachedState> Place<S> {
    pub(crate) fn new(
        object: ObjectRef,
        entry: EntryId,
        peer: Arc<Peer>,
        hits: Option<Arc<ShardedCount>>,
    ) -> Place<S> {
        Place {
            sequence: AtomicU64::new(0),
            version: AtomicU64::new(0),
            as_of: AtomicU64::new(0),
            left: AtomicU64::new(0),
            storage: S::Storage::default(),
            peer,
            entry,
            object,
            octets: AtomicUsize::new(0),
            has_none: AtomicBool::new(false),
            hits,
            links: PiLock::default(),
        }
    }

    /// Reads, if what is held is fresh enough. Neither blocks nor allocates, beyond what `load` does. `now` gives an instant of
    /// the read, once the state has been read; it is told up to which moment the state is proved.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        lag: Duration,
        at_least: Position,
        now: impl FnOnce(Moment) -> Moment,
        load: impl FnOnce(&S::Storage) -> Option<T>,
    ) -> Option<(T, Duration, Position)> {
        let proof = self.peer.view().proof();
        let (held, value) = self.look(load)?;
        let age = proof.age_of(&held, lag, at_least, now(proof.proved_for(&held)))?;
        Some((value, age, held.version))
    }

    /// Reads what is held, however old. `None` if that is nothing, or the place is written meanwhile.
    #[inline]
    fn look<T>(&self, load: impl FnOnce(&S::Storage) -> Option<T>) -> Option<(Held, T)> {
        let before = self.sequence.load(Ordering::Acquire);
        let held = self.held()?;
        let value = load(&self.storage)?;
        fence(Ordering::Acquire);
        if !before.is_multiple_of(2) || self.sequence.load(Ordering::Relaxed) != before {
            return None;
        }
        Some((held, value))
    }

    #[inline]
    fn held(&self) -> Option<Held> {
        let version = self.version.load(Ordering::Relaxed);
        (version != 0).then(|| Held {
            version: Position(version),
            as_of: Position(self.as_of.load(Ordering::Relaxed)),
            left: Moment::from_nanos(self.left.load(Ordering::Relaxed)),
        })
    }

    /// Writes, so that readers see all of it or nothing.
    fn write(&self, held: Option<Held>, store: impl FnOnce(&S::Storage) -> Replaced) -> Replaced {
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        if let Some(held) = held {
            self.as_of.store(held.as_of.0, Ordering::Relaxed);
            self.left.store(held.left.as_nanos(), Ordering::Relaxed);
        }
        self.version.store(held.map_or(0, |held| held.version.0), Ordering::Relaxed);
        let replaced = store(&self.storage);
        self.sequence.store(before + 2, Ordering::Release);
        replaced
    }

    /// Notes how long the values of members have been.
    fn note_octets(&self, members: Members, octets: usize) {
        match members {
            Members::ALL => self.octets.store(octets, Ordering::Relaxed),
            // The other members are there as well.
            _ => {
                self.octets.fetch_max(octets, Ordering::Relaxed);
            }
        }
    }

    /// What counts the reads that ask no server, if such reads are counted.
    #[inline]
    pub(crate) fn hits(&self) -> Option<&ShardedCount> {
        self.hits.as_deref()
    }

    /// Takes the answer to a fill, and gives the state that has come with it.
    pub(crate) fn take_fill(
        &self,
        filled: Filled<CellNumber>,
        values: &Values,
        now: Clock,
    ) -> Result<Snapshot<S>, Unread> {
        let read = read_caught(|| values.read_state(self.object.environment()));
        let state = read.map(S::Storage::snapshot_of);
        let draft = match &filled {
            Filled::State { version, .. } => {
                let over = None;
                let snapshot = state.as_ref().ok().cloned();
                Some(Draft::new::<S>(*version, over, (Members::ALL, values), snapshot))
            }
            Filled::Refused { .. } | Filled::Unknown { .. } => None,
        };
        self.peer.filled(self.entry, (filled, draft), now);
        state
    }

    /// Reads some members over those that are held, and says of which version these are.
    fn read_over(&self, members: Members, values: &Values) -> (Position, Result<S, Unread>) {
        let mut over = self.held().map(|held| held.version);
        let read = read_caught(|| {
            let mut r = values.reader(self.object.environment())?;
            let looks = || self.look(S::Storage::whole);
            let Some((held, mut state)) = (0..LOOKS_MAX).find_map(|_| looks()) else {
                return Err(r.malformed(MalformedKind::BadEncapsulation));
            };
            over = Some(held.version);
            state.read_over(members, &mut r)?;
            Ok(state)
        });
        (over.unwrap_or(Position::START), read)
    }

    /// Whether it holds something, however old.
    pub(crate) fn is_held(&self) -> bool {
        self.held().is_some()
    }

    /// Has others asked for where this is filled.
    pub(crate) fn set_companions(self: &Arc<Self>, companions: Weak<dyn Companions<S>>) {
        self.with_newest(|_, links| links.companions = Some(companions));
    }

    /// What is to be filled with this.
    pub(crate) fn companions(&self) -> Vec<Arc<Place<S>>> {
        let companions = self.links.lock().companions.as_ref().and_then(Weak::upgrade);
        companions.map_or_else(Vec::new, |companions| companions.beside(self))
    }

    /// Whether the server is known to have no cached state of the object.
    pub(crate) fn has_none(&self) -> bool {
        self.has_none.load(Ordering::Relaxed)
    }

    /// Notes that the server has no cached state of the object.
    pub(crate) fn note_none(&self) {
        self.has_none.store(true, Ordering::Relaxed);
    }

    /// The place that has followed last.
    pub(crate) fn newest(self: &Arc<Self>) -> Arc<Place<S>> {
        self.with_newest(|newest, _| newest.clone())
    }

    fn with_newest<T>(self: &Arc<Self>, f: impl FnOnce(&Arc<Self>, &mut Links<S>) -> T) -> T {
        let mut place = self.clone();
        loop {
            let mut links = place.links.lock();
            let Some(next) = links.next.clone() else { return f(&place, &mut links) };
            drop(links);
            place = next;
        }
    }

    /// Has another place follow, that no thread knows of yet, with pins and companions. All places before lead to that, and this one
    /// goes unless a reference has it. Where one has followed already, that stays.
    pub(crate) fn follow(self: &Arc<Self>, next: Arc<Place<S>>) {
        // Dropped when no lock is held any more: the last owner of a place takes the lock of its session.
        let mut passed = Vec::new();
        let mut links = self.links.lock();
        if links.next.is_some() {
            return;
        }
        // It is free. Threads that come to it before all places lead there wait here: they may have another one follow it.
        let mut new = next.links.lock();
        new.companions = links.companions.take();
        new.pins = std::mem::take(&mut links.pins);
        if new.pins > 0 {
            self.peer.unpin(self.entry);
            // Where as many are pinned as may be, it takes its turn.
            let _is_pinned = next.peer.pin(next.entry);
        }
        new.before = std::mem::take(&mut links.before);
        new.before.retain(|place| place.strong_count() > 0);
        for place in new.before.iter().filter_map(Weak::upgrade) {
            passed.extend(place.links.lock().next.replace(next.clone()));
            passed.push(place);
        }
        new.before.push(Arc::downgrade(self));
        links.next = Some(next.clone());
    }

    /// Has the state make room for no others, in whichever session. False if as many are pinned there as may be.
    pub(crate) fn pin(self: &Arc<Self>) -> bool {
        self.with_newest(|place, links| {
            let is_pinned = links.pins > 0 || place.peer.pin(place.entry);
            links.pins += usize::from(is_pinned);
            is_pinned
        })
    }

    /// Takes back a [`pin`](Self::pin).
    pub(crate) fn unpin(self: &Arc<Self>) {
        self.with_newest(|place, links| {
            links.pins = links.pins.saturating_sub(1);
            if links.pins == 0 {
                place.peer.unpin(place.entry);
            }
        });
    }
}

/// A state that is shared with the place that holds it.
pub(crate) type Snapshot<S> = <<S as CachedState>::Storage as Storage>::Snapshot;

/// How often what is held is looked at that other threads write.
const LOOKS_MAX: usize = 100;

/// Why there is no state of values that have come.
pub(crate) enum Unread {
    Malformed(Malformed),
    /// The program's code has panicked.
    Panicked(Box<dyn Any + Send>),
}

/// Reads values with the program's code. That changes nothing which is used after a panic.
fn read_caught<T>(read: impl FnOnce() -> Result<T, Malformed>) -> Result<T, Unread> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(Unread::Malformed),
        Err(panicked) => Err(Unread::Panicked(panicked)),
    }
}

/// What has been made of the values that an answer has for a place.
pub(crate) struct Draft {
    /// The object's version then.
    at: Position,
    /// Which version of those that are held the values have been put over, where they are not the whole state; 0 if none is held.
    over: Option<Position>,
    members: Members,
    /// How long the values are in the message.
    octets: usize,
    /// What the storage of the place takes; `None` if it has, or the values cannot be read.
    snapshot: Option<Box<dyn Any + Send>>,
}

impl Draft {
    fn new<S: CachedState>(
        at: Position,
        over: Option<Position>,
        (members, values): (Members, &Values),
        snapshot: Option<Snapshot<S>>,
    ) -> Draft {
        let snapshot = snapshot.map(|snapshot| Box::new(snapshot) as Box<dyn Any + Send>);
        Draft { at, over, members, octets: values.octets.len(), snapshot }
    }

    /// Whether it is what a place is to hold at a version, after what it holds now.
    pub(crate) fn is_for(&self, at: Position, held: Option<Position>) -> bool {
        self.at == at && self.over.is_none_or(|over| Some(over) == held)
    }
}

/// A place without its type.
pub(crate) trait AnyPlace: Send + Sync {
    /// Makes what is put here of an object's members at a version. Runs code of the program.
    fn draft(&self, members: Members, at: Position, values: &Values) -> Draft;

    /// Puts it here. `None` if there is nothing to put, or it is not for what the place holds now: that is to be ended then.
    fn put(&self, held: Held, draft: &mut Draft) -> Option<Replaced>;

    /// About how many bytes the place takes.
    fn bytes(&self) -> usize;

    /// Whether the place holds something.
    fn holds(&self) -> bool;

    /// Has the place hold nothing.
    fn end(&self) -> Replaced;

    /// The place with its type, if it is this.
    fn with_type(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// The object.
    fn object(&self) -> &ObjectRef;
}

impl<S: CachedState> AnyPlace for Place<S> {
    fn draft(&self, members: Members, at: Position, values: &Values) -> Draft {
        let (over, read) = match members {
            Members::ALL => (None, read_caught(|| values.read_state(self.object.environment())).ok()),
            members => {
                let (over, read) = self.read_over(members, values);
                (Some(over), read.ok())
            }
        };
        Draft::new::<S>(at, over, (members, values), read.map(S::Storage::snapshot_of))
    }

    fn put(&self, held: Held, draft: &mut Draft) -> Option<Replaced> {
        let before = self.held().map(|before| before.version);
        if !draft.is_for(held.version, before) {
            return None;
        }
        let snapshot = draft.snapshot.take()?.downcast::<Snapshot<S>>().ok()?;
        self.note_octets(draft.members, draft.octets);
        Some(self.write(Some(held), |storage| storage.store(*snapshot)))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.octets.load(Ordering::Relaxed)
    }

    fn holds(&self) -> bool {
        self.is_held()
    }

    fn end(&self) -> Replaced {
        self.write(None, S::Storage::clear)
    }

    fn with_type(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn object(&self) -> &ObjectRef {
        &self.object
    }
}

/// A typed reference to objects with cached attributes. Generated code implements it.
pub trait CachedRef: TypedRef {
    /// The cached attributes.
    type State: CachedState;

    /// What the reference has of its object's place.
    #[doc(hidden)]
    fn proxy_cell(&self) -> &ProxyCell<Self::State>;
}

/// What a typed reference has of its object's place. Clones share it, once it is known.
pub struct ProxyCell<S: CachedState>(OnceLock<Arc<Place<S>>>);

impl<S: CachedState> ProxyCell<S> {
    /// The place, once the reference has been read.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Arc<Place<S>>> {
        self.0.get()
    }

    pub(crate) fn set(&self, place: Arc<Place<S>>) {
        let _lost = self.0.set(place);
    }
}

impl<S: CachedState> Default for ProxyCell<S> {
    fn default() -> Self {
        ProxyCell(OnceLock::new())
    }
}

impl<S: CachedState> Clone for ProxyCell<S> {
    fn clone(&self) -> Self {
        ProxyCell(self.0.get().map_or_else(OnceLock::new, |place| OnceLock::from(place.newest())))
    }
}

impl<S: CachedState> fmt::Debug for ProxyCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyCell").finish_non_exhaustive()
    }
}

impl<S: CachedState> Drop for Place<S> {
    fn drop(&mut self) {
        self.peer.leave(self.entry);
    }
}

#[cfg(test)]
mod tests {
    use ironorb_cache::{Client, ClientLimits};
    use ironorb_giop::ior::{IiopProfile, Ior};
    use ironorb_giop::{Misuse, Reader, Version, Writer};

    use super::*;
    use crate::cache::CachedMode;
    use crate::cache::storage::{Shared, WordState, Words};

    /// Fewer where every step is interpreted.
    const WRITES: u64 = if cfg!(miri) { 60 } else { 20_000 };

    /// A number and its double, as words.
    #[derive(Clone)]
    struct Numbers(u64, u64);

    /// A number as a text, twice.
    #[derive(Clone)]
    struct Texts(String, String);

    /// A state that shows by its members whether it has been written at once.
    trait Shown: CachedState {
        fn of(number: u64) -> Self;
        fn shown(&self) -> Option<u64>;
    }

    macro_rules! cached {
        ($state:ty: $storage:ty) => {
            impl CachedState for $state {
                type Storage = $storage;
                type Update<'s> = &'s mut $state;
                const REPOSITORY_ID: &'static str = "IDL:State:1.0";
                const MODE: CachedMode = CachedMode::Asked;

                fn write(&self, _: Members, _: &mut Writer<'_>) -> Result<(), Misuse> {
                    Ok(())
                }

                fn read(_: &mut Reader<'_>) -> Result<Self, Malformed> {
                    Ok(Shown::of(0))
                }

                fn read_over(&mut self, _: Members, _: &mut Reader<'_>) -> Result<(), Malformed> {
                    Ok(())
                }

                fn changed_since(&self, _: &Self) -> Members {
                    Members::ALL
                }

                fn update<'s>(&'s mut self, _: &'s mut Members) -> Self::Update<'s> {
                    self
                }
            }
        };
    }

    cached!(Numbers: Words<Numbers, 2>);
    cached!(Texts: Shared<Texts>);

    impl WordState<2> for Numbers {
        fn to_words(&self) -> [u64; 2] {
            [self.0, self.1]
        }

        fn of_words([number, double]: [u64; 2]) -> Self {
            Numbers(number, double)
        }
    }

    impl Shown for Numbers {
        fn of(number: u64) -> Self {
            Numbers(number, 2 * number)
        }

        fn shown(&self) -> Option<u64> {
            (self.1 == 2 * self.0).then_some(self.0)
        }
    }

    impl Shown for Texts {
        fn of(number: u64) -> Self {
            Texts(number.to_string(), number.to_string())
        }

        fn shown(&self) -> Option<u64> {
            if self.0 == self.1 { self.0.parse().ok() } else { None }
        }
    }

    /// One thread writes while two read. Each read gives a state that was written, with its own version, and goes behind none.
    fn check_reads<S: Shown>() {
        let orb = crate::OrbBuilder::default().no_endpoint().build().unwrap();
        let profile = IiopProfile::new(Version::V1_2, "127.0.0.1", 1, b"key", &[]).unwrap();
        let object = orb.ior_to_object(Ior::with_profile("IDL:State:1.0", profile)).unwrap();
        let limits = ClientLimits { entries_max: 1, bytes_max: usize::MAX };
        let place = Place::<S>::new(object, EntryId(1), Peer::new(Client::new(limits)), None);
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = || {
                let (mut newest, mut reads) = (0, 0);
                while !ends.load(Ordering::Relaxed) || reads == 0 {
                    let read = place.read(Duration::ZERO, Position::START, |at| at, S::Storage::whole);
                    let Some((state, _, version)) = read else { continue };
                    assert_eq!(state.shown(), Some(version.0), "as it was written");
                    assert!(version.0 >= newest, "{} after {newest}", version.0);
                    newest = version.0;
                    reads += 1;
                }
            };
            let readers = [scope.spawn(reader), scope.spawn(reader)];
            for number in 1..=WRITES {
                let version = Position(number);
                let held = Held { version, as_of: version, left: Moment::from_nanos(number) };
                let _replaced =
                    place.write(Some(held), |storage| storage.store(S::Storage::snapshot_of(S::of(number))));
                if number % 16 == 0 {
                    std::thread::yield_now();
                }
            }
            ends.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
    }

    #[test]
    fn reads_of_words_give_what_was_written_at_once() {
        check_reads::<Numbers>();
    }

    #[test]
    fn reads_of_shared_states_give_what_was_written_at_once() {
        check_reads::<Texts>();
    }
}
