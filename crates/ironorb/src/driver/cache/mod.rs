//! Caching proxies: what an ORB holds of the objects of other servers, and the calls that fill and renew it.
//!
//! A read that finds nothing fresh enough does the work itself, in its own thread: it asks the server what has changed, or
//! the object for its state. [`Peer`] says which.

pub(crate) mod carried;
mod changes;
pub(crate) mod desk;
mod fills;
mod limits;
mod news;
pub(crate) mod warm;
pub(crate) mod watch;

use std::any::TypeId;
use std::borrow::Borrow;
use std::cell::Cell as StdCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_cache::{Answer, EntryId, Epoch, Fill, Filled, Moment, Position, Probe};
use ironorb_giop::exception::{SystemException, SystemExceptionKind};
use ironorb_giop::ior::{IRONORB_ORB_TYPE, Ior};
use ironorb_giop::message::Message;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use self::changes::Changes;
use self::fills::Fills;
use crate::base::config::OrbConfig;
use crate::base::locks::{PiLock, Snapshot};
use crate::cache::wire::{self, FILL, FillResults, OPEN, PROBE};
use crate::cache::{
    Advice, AnyPlace, CachedState, CellNumber, NO_SESSION, Peer, Place, ProxyCell, Seen, ShardedCount,
    Snapshot as StateSnapshot, Source, Storage, Unread,
};
use crate::call::invocation::bad_reply;
use crate::driver::client::Link;
use crate::driver::clock;
use crate::driver::invoke::remote;
use crate::lane::Event;
use crate::object::ObjectRef;
use crate::object::operation::Operation;
use crate::object::orb_shared::of_the_parent;

/// What an ORB holds of the objects of other servers.
pub(crate) struct ClientCache {
    /// The process that has made the ORB. A child of a fork has its memory and its sockets, and must leave both alone.
    process: u32,
    limits: limits::Limits,
    /// The servers, by their first addresses. The places of one keep it.
    peers: Snapshot<BTreeMap<String, Weak<Peer>>>,
    places: PiLock<Places>,
    entries: AtomicU64,
    /// Tells those who watch what is held.
    changes: Changes,
    /// Whether calls carry probes.
    carrying: carried::Carrying,
    /// Counts the reads that ask no server, if they are to be counted.
    hits: Option<Arc<ShardedCount>>,
}

/// What a client's cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClientCounts {
    /// Its sessions with servers.
    pub(crate) sessions: u64,
    /// The objects that it holds or asks for.
    pub(crate) entries: u64,
    /// The reads that have asked no server; `None` where they are not counted.
    pub(crate) hits: Option<u64>,
}

/// The places by the hashes of their objects, so that references to one object share its place.
#[derive(Default)]
struct Places {
    by_hash: BTreeMap<(TypeId, u32), Vec<Weak<dyn AnyPlace>>>,
    /// With so many hashes those go whose places are gone.
    swept_at: usize,
}

/// Which values a read takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How old they may be.
    pub(crate) lag: Duration,
    /// Which writes they must have in them.
    pub(crate) at_least: Position,
}

pub(crate) static FILL_OPERATION: Operation<'static> = Operation::twoway(FILL);
pub(crate) static OPEN_OPERATION: Operation<'static> = Operation::twoway(OPEN);
pub(crate) static PROBE_OPERATION: Operation<'static> = Operation::twoway(PROBE);

/// How often a read asks what has changed, and finds what it needs changed again meanwhile, before it asks the object.
const PROBES_MAX: usize = 2;

/// The most parts that a read asks for. Each may be twice as long as the one before, so that a server that has more sends no end.
const PARTS_MAX: usize = 64;

/// How often a read looks again at a place that other threads write, before it asks the object.
const LOOKS_MAX: usize = 100;

/// The moment now, for caches: on the clock that goes on while the system sleeps.
#[inline]
pub(crate) fn moment() -> Moment {
    Moment::from_nanos(clock::steady().as_nanos())
}

/// Reads what a place holds, if it is fresh enough.
#[inline]
pub(crate) fn read_held<S: CachedState, T>(
    place: &Place<S>,
    bounds: Bounds,
    load: impl FnOnce(&S::Storage) -> Option<T>,
) -> Option<Seen<T>> {
    let (value, age, version) = place.read(bounds.lag, bounds.at_least, |_| moment(), load)?;
    note_read(place);
    // The question alone would cost 2 ns, a tenth of the read.
    if cfg!(feature = "count-cached-reads")
        && let Some(hits) = place.hits()
    {
        hits.add_one();
    }
    Some(Seen { value, age, version: Some(version.0), source: Source::Cache })
}

/// Reads what an object's place holds, if that is fresh enough, and waits while it is being written: for a read that must not ask
/// the server, and has found nothing, or no place.
pub(crate) fn read_settled<S: CachedState, T>(
    object: &ObjectRef,
    proxy: &ProxyCell<S>,
    bounds: Bounds,
    load: impl FnOnce(&S::Storage) -> Option<T>,
) -> Option<Seen<T>> {
    // A child of a fork may find the lock taken by a thread that it has not.
    object.core().cache.in_its_own_process().ok()?;
    let place = place_of(object, proxy)?;
    // What `load` does with the state is the program's code, and has no lock.
    let read = || place.read(bounds.lag, bounds.at_least, |_| moment(), S::Storage::snapshot);
    let (snapshot, age, version) = place.peer.undisturbed(read)?;
    let own = S::Storage::default();
    let _empty = own.store(snapshot);
    let value = load(&own)?;
    note_read(&place);
    Some(Seen { value, age, version: Some(version.0), source: Source::Cache })
}

/// Has a probe wait for news of a place, if its changes are told at once.
#[inline]
fn note_read<S: CachedState>(place: &Place<S>) {
    if S::MODE.is_told_at_once() && !place.peer.is_read() {
        news::begin(&place.peer);
    }
}

/// Reads what a place holds, if it was fresh enough when the read began or has been since. What has been proved since then is
/// newer than the read.
fn read_held_since<S: CachedState, T>(
    place: &Place<S>,
    bounds: Bounds,
    begun: Moment,
    load: impl FnOnce(&S::Storage) -> Option<T>,
) -> Option<Seen<T>> {
    let mut proved = begun;
    let at = |proved_for: Moment| {
        proved = proved_for;
        begun.max(proved_for)
    };
    let (value, _, version) = place.read(bounds.lag, bounds.at_least, at, load)?;
    note_read(place);
    let age = moment().since(proved).unwrap_or_default();
    Some(Seen { value, age, version: Some(version.0), source: Source::Cache })
}

/// Reads a state that no place holds fresh enough. `None` if the object's server keeps no caches. Blocks as a call does.
#[cold]
pub(crate) fn read_anew<S: CachedState, T>(
    object: &ObjectRef,
    proxy: &ProxyCell<S>,
    bounds: Bounds,
    load: impl Fn(&S::Storage) -> Option<T>,
    of: impl Fn(&S) -> T,
) -> Result<Option<Seen<T>>, SystemException> {
    object.core().cache.in_its_own_process()?;
    let Some(place) = place_of(object, proxy).filter(|place| !place.has_none()) else { return Ok(None) };
    let counters = &object.core().counters;
    counters.count(Event::CachedReadMissed);
    let gives = |seen: Seen<T>| {
        if let Some(latencies) = counters.latencies() {
            latencies.cached_reads.add(seen.age.as_nanos() as u64);
        }
        Ok(Some(seen))
    };
    let begun = moment();
    let asks = || (bounds.lag, bounds.at_least);
    let (mut probes, mut looks) = (0, 0);
    loop {
        if let Some(seen) = read_held_since(&place, bounds, begun, &load) {
            return gives(seen);
        }
        let fill = match place.peer.advise(place.entry, asks(), moment) {
            // A thread has just filled or renewed it.
            Advice::Look if looks < LOOKS_MAX => {
                looks += 1;
                continue;
            }
            Advice::Probe(probe, cache) if probes < PROBES_MAX => {
                probes += 1;
                object.core().cache.carrying.begin(&place.peer);
                match ask_for_changes(&place.peer, &probe, &cache) {
                    Ok(()) => continue,
                    // The object itself may still answer. What is held stays, for those who take it as it is.
                    Err(_) => NO_SESSION,
                }
            }
            Advice::Look => NO_SESSION,
            Advice::Probe(probe, _) => {
                place.peer.give_up(&probe);
                NO_SESSION
            }
            Advice::Fill(fill) => fill,
        };
        let asked = moment();
        let others = match fill == NO_SESSION {
            true => Fills::NONE,
            false => Fills::begin(place.companions()),
        };
        let answer = ask_object(&place, &fill);
        others.take();
        let Some(results) = answer? else { return Ok(None) };
        let version = match results.filled {
            Filled::State { version, .. } => Some(version.0),
            Filled::Refused { .. } | Filled::Unknown { .. } => None,
        };
        counters.count_many(Event::CacheFilled, u64::from(version.is_some()));
        let state = take_fill(&place, &fill, results);
        note_read(&place);
        let state = state.map_err(|unread| match unread {
            Unread::Malformed(e) => bad_reply(e),
            Unread::Panicked(panicked) => resume_unwind(panicked),
        });
        let (value, now) = (of(state?.borrow()), moment());
        let age = now.since(asked).unwrap_or_default();
        return gives(Seen { value, age, version, source: Source::Remote });
    }
}

/// Asks an object for its state. `None` if its server keeps no caches.
fn ask_object<S: CachedState>(place: &Place<S>, fill: &Fill) -> Result<Option<FillResults>, SystemException> {
    let arguments = |w: &mut Writer<'_>| wire::write_fill(S::REPOSITORY_ID, fill.of, w);
    // Only a fill of a session leaves a state in the place, or nothing. Another is a call as any other: no read goes
    // behind what it shows.
    let answer = match *fill == NO_SESSION {
        true => remote(&place.object, &FILL_OPERATION, &arguments, wire::read_filled),
        false => ask(&place.object, &FILL_OPERATION, arguments, wire::read_filled),
    };
    match answer {
        Ok(results) => Ok(Some(results.of(fill))),
        Err(e) => {
            fills::not_filled(place, fill, &e);
            if e.kind == SystemExceptionKind::BadOperation { Ok(None) } else { Err(e) }
        }
    }
}

/// Asks the server what has changed, until nothing is left.
fn ask_for_changes(peer: &Peer, probe: &Probe, cache: &ObjectRef) -> Result<(), SystemException> {
    let mut probe = *probe;
    for _ in 0..PARTS_MAX {
        let arguments = |w: &mut Writer<'_>| {
            wire::write_probe(&probe, w);
            Ok(())
        };
        let answer = ask(cache, &PROBE_OPERATION, arguments, |r| wire::read_answer(&probe, r));
        let answer = answer.inspect_err(|_| peer.give_up(&probe))?;
        if let Answer::Changes { units, .. } = &answer {
            let counters = &cache.core().counters;
            counters.count(Event::CacheProbed);
            counters.count_many(Event::CacheUpdated, units.len() as u64);
        }
        let is_part = answer.is_part();
        take_answer(peer, answer, cache);
        match is_part.then(|| peer.probe(moment)).flatten() {
            Some((next, _)) => probe = next,
            None => return Ok(()),
        }
    }
    peer.give_up(&probe);
    Ok(())
}

/// Takes the answer to a probe, and tells those who watch if it brings changes.
fn take_answer(peer: &Peer, answer: Answer<CellNumber, wire::Values>, cache: &ObjectRef) {
    let brings_changes = !matches!(&answer, Answer::Changes { units, .. } if units.is_empty());
    peer.answered(answer, moment);
    if brings_changes {
        cache.core().cache.keep_limits();
        cache.core().cache.changes.note();
    }
}

/// Takes the answer to a fill, and opens a session where there is none. Where that cannot be done, the next read tries again. Gives the
/// state that has come.
fn take_fill<S: CachedState>(
    place: &Arc<Place<S>>,
    fill: &Fill,
    results: FillResults,
) -> Result<StateSnapshot<S>, Unread> {
    let FillResults { mut filled, server, state } = results;
    // What another server does not know of this session says nothing about it.
    if let Some((epoch, _)) = &server
        && place.peer.session().is_some_and(|(session, _)| session.epoch != *epoch)
    {
        filled = Filled::Refused { of: fill.of, token: fill.token };
    }
    let state = place.take_fill(filled, &state, moment);
    place.object.core().cache.keep_limits();
    if let Some(server) = server {
        begin_session(place, fill, server);
    }
    state
}

fn begin_session<S: CachedState>(place: &Arc<Place<S>>, fill: &Fill, (epoch, opener): (Epoch, ObjectRef)) {
    if is_session_over(&place.peer, fill, epoch) {
        open(&place.peer, opener);
    } else if place.peer.session().is_some_and(|(session, _)| session.epoch != epoch) {
        // The object has come to another server, and has its place in a session with that from now on.
        let cache = &place.object.core().cache;
        let peer = cache.peer_at(format!("epoch {:016x}", epoch.0));
        open(&peer, opener);
        place.follow(cache.new_place(&place.object, peer));
    }
}

/// Whether a session must be opened, because there is none with the server of this epoch, which does not know that of a fill.
fn is_session_over(peer: &Peer, fill: &Fill, epoch: Epoch) -> bool {
    let Some((session, opener)) = peer.session() else { return true };
    if session.epoch == epoch {
        if session == fill.of {
            peer.lapse_unless(None);
        }
        return session == fill.of; // else another thread has opened one meanwhile
    }
    // The object has come to another server, or the server has begun a new life: its old session shows which.
    if let Some((probe, _)) = peer.probe(moment)
        && ask_for_changes(peer, &probe, &opener).is_err()
    {
        peer.lapse_unless(None);
    }
    peer.session().is_none()
}

fn open(peer: &Peer, opener: ObjectRef) {
    if peer.session().is_none()
        && let Ok(opened) = ask(&opener, &OPEN_OPERATION, |_| Ok(()), wire::read_open)
    {
        peer.opened(opened, opener);
    }
}

thread_local! {
    /// Whether the call of this thread is one for the cache itself. What its answer says is heeded by itself.
    static IS_FOR_CACHE: StdCell<bool> = const { StdCell::new(false) };
}

/// Calls for the cache itself.
pub(crate) fn ask<T>(
    object: &ObjectRef,
    operation: &Operation<'static>,
    arguments: impl Fn(&mut Writer<'_>) -> Result<(), Misuse>,
    results: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, SystemException> {
    struct ForCache;
    impl Drop for ForCache {
        fn drop(&mut self) {
            IS_FOR_CACHE.set(false);
        }
    }
    IS_FOR_CACHE.set(true);
    let _until_answered = ForCache;
    remote(object, operation, &arguments, results)
}

/// Heeds what the reply to a call of this thread tells of the log of the server at the other end of the connection.
#[inline]
pub(crate) fn note_reply(object: &ObjectRef, message: &Message, link: Option<&Arc<Link>>) {
    if object.shared().caches() && !IS_FOR_CACHE.get() {
        carried::note_log(object, message, link);
    }
}

/// Heeds what the reply to a call that did not wait tells of the server's log. The thread that receives it may be asking for
/// the cache meanwhile.
#[inline]
pub(crate) fn note_reply_to(
    operation: &str,
    object: &ObjectRef,
    message: &Message,
    link: Option<&Arc<Link>>,
) {
    if object.shared().caches() && operation != FILL {
        carried::note_log(object, message, link);
    }
}

/// The place for an object's state. `None` if its server keeps no caches, as far as its reference says.
fn place_of<S: CachedState>(object: &ObjectRef, proxy: &ProxyCell<S>) -> Option<Arc<Place<S>>> {
    if let Some(place) = proxy.get() {
        return Some(place.newest());
    }
    if object.shared().is_simulated || !is_of_ironorb(object) {
        return None;
    }
    object.shared().begin_caching();
    let place = object.core().cache.place_of::<S>(object)?;
    proxy.set(place.clone());
    Some(place.newest())
}

/// Whether an object's reference, or the one to which it is forwarded, is of this kind of ORB.
fn is_of_ironorb(object: &ObjectRef) -> bool {
    let is_ours = |ior: &Ior| ior.iiop_profiles().any(|profile| profile.orb_type() == Some(IRONORB_ORB_TYPE));
    object.forwarded_to().as_ref().map_or_else(|| object.with_ior(is_ours), is_ours)
}

impl ClientCache {
    /// A cache that holds nothing, of an ORB of this process.
    pub(crate) fn new(config: &OrbConfig) -> ClientCache {
        let (peers, places, entries) = Default::default();
        let hits = (config.count_cached_reads && cfg!(feature = "count-cached-reads")).then(Arc::default);
        let limits = limits::Limits::of(config);
        let (changes, carrying) = (Changes::default(), carried::Carrying::of(config));
        ClientCache { process: std::process::id(), limits, peers, places, entries, changes, carrying, hits }
    }

    /// What it holds. Takes the lock of each server's session, one after the other.
    pub(crate) fn counts(&self) -> ClientCounts {
        let hits = self.hits.as_ref().map(|hits| hits.get());
        let mut counts = ClientCounts { hits, ..ClientCounts::default() };
        for (has_session, entries) in self.peers().iter().map(|peer| peer.holds()) {
            counts.sessions += u64::from(has_session);
            counts.entries += entries as u64;
        }
        counts
    }

    /// The servers of which something is held.
    fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.with(|peers| {
            peers.map(|peers| peers.values().filter_map(Weak::upgrade).collect()).unwrap_or_default()
        })
    }

    /// Something has been put into places: ends what is beyond the limits.
    fn keep_limits(&self) {
        self.limits.keep(&self.peers());
    }

    /// This process is a child of the ORB's: what its parent holds is not read here. Nobody tells the child what changes. Takes no
    /// lock.
    pub(crate) fn begin_in_child(&self) {
        self.peers.with(|peers| {
            for peer in peers.into_iter().flat_map(BTreeMap::values).filter_map(Weak::upgrade) {
                peer.view().end();
                // A thread of the parent may have been about to drop it.
                std::mem::forget(peer);
            }
        });
    }

    /// Refuses to ask in a child of the ORB's process. A question of the child over the parent's connection would have its
    /// answer read by either, and the parent would take what the child has asked for.
    fn in_its_own_process(&self) -> Result<(), SystemException> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(of_the_parent()),
        }
    }

    fn place_of<S: CachedState>(&self, object: &ObjectRef) -> Option<Arc<Place<S>>> {
        let peer = self.peer_at(object.address()?);
        let key = (TypeId::of::<S>(), object.hash_code(u32::MAX));
        // The last owner of a place may be gone meanwhile, and dropping it runs code of the program.
        let mut others = Vec::new();
        let mut places = self.places.lock();
        let Places { by_hash, swept_at } = &mut *places;
        if by_hash.len() >= *swept_at {
            by_hash.retain(|_, of_key| of_key.iter().any(|place| place.strong_count() > 0));
            *swept_at = 2 * by_hash.len() + 16;
        }
        let of_key = by_hash.entry(key).or_default();
        of_key.retain(|place| place.strong_count() > 0);
        let of_object = |place: &Weak<dyn AnyPlace>| {
            let place = place.upgrade()?;
            if place.object().is_equivalent(object) {
                return Some(place);
            }
            others.push(place);
            None
        };
        let known = of_key.iter().find_map(of_object);
        if let Some(place) = known.and_then(|place| place.with_type().downcast().ok()) {
            return Some(place);
        }
        let place = self.new_place(object, peer);
        of_key.push(untyped(&place));
        Some(place)
    }

    fn new_place<S: CachedState>(&self, object: &ObjectRef, peer: Arc<Peer>) -> Arc<Place<S>> {
        let entry = EntryId(self.entries.fetch_add(1, Ordering::Relaxed));
        let kind = self.limits.kind_of(S::REPOSITORY_ID);
        let place = Arc::new(Place::new(object.clone(), entry, peer, self.hits.clone()));
        place.peer.add(entry, kind, untyped(&place));
        place
    }

    /// The server with this address.
    fn peer_at(&self, address: String) -> Arc<Peer> {
        let known =
            |peers: Option<&BTreeMap<String, Weak<Peer>>>| peers?.get(&address).and_then(Weak::upgrade);
        if let Some(peer) = self.peers.with(known) {
            return peer;
        }
        let mut peer = Peer::new(self.limits.client());
        let _before: Result<_, ()> = self.peers.change(|peers| {
            let mut all = peers.map(|peers| BTreeMap::clone(peers)).unwrap_or_default();
            match all.get(&address).and_then(Weak::upgrade) {
                Some(known) => peer = known,
                None => drop(all.insert(address, Arc::downgrade(&peer))),
            }
            all.retain(|_, peer| peer.strong_count() > 0);
            Ok(Some(all))
        });
        peer
    }

    /// A server has told the end of its log with a reply to a call of `object`. No cached read that begins later goes
    /// behind it.
    pub(crate) fn told(&self, epoch: Epoch, head: Position, object: &ObjectRef) {
        self.peers.with(|peers| {
            let Some(peers) = peers else { return };
            let mut is_known = false;
            let peers_now = peers.values().filter_map(Weak::upgrade);
            for peer in peers_now.filter(|peer| peer.view().is_of(epoch)) {
                is_known = true;
                if !peer.view().is_beyond(head) {
                    peer.told(epoch, head);
                }
            }
            // The server has begun a new life, if it is one that there is a session with.
            if !is_known
                && let Some(peer) = object.address().and_then(|address| peers.get(&address)?.upgrade())
            {
                peer.lapse_unless(Some(epoch));
            }
        });
    }
}

fn untyped<S: CachedState>(place: &Arc<Place<S>>) -> Weak<dyn AnyPlace> {
    let place: Weak<Place<S>> = Arc::downgrade(place);
    place
}
