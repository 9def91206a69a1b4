//! States that are asked for before they are read: lists that are kept, and the next elements of an extent.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::fills::{AT_ONCE_MAX, Fills};
use super::{ask_object, place_of, take_fill};
use crate::base::locks::PiLock;
use crate::cache::{CachedRef, CachedState, Companions, NO_SESSION, Place};
use crate::object::extent_range::ExtentRange;

/// Has the cached attributes of these objects held until the result is dropped, and asks for those that are not held: many at once, so
/// that this takes about a round trip for each 256 objects of a server. Blocks as calls do.
///
/// The states do not make room for others, however long they have not been read, and stay when the references are dropped. They are
/// renewed as everything else, by reads. A read that finds one of them not held, because its server has begun a new life or has
/// dropped it, asks for up to 255 others of the list that are not held, too.
///
/// Objects of this process and of servers that keep no caches are left out ([`Warm::len`]). What cannot be asked for now is asked for
/// when it is read ([`Warm::held`] counts the others).
///
/// IMP_LIMIT if the list has more objects of one server than its cache may have entries, with those of other lists. BAD_INV_ORDER in a child of
/// the ORB's process.
///
/// ```no_run
/// # use ironorb::cache::CachedRef;
/// # use ironorb::{SystemException, warm_cached};
/// # fn of<AccountRef: CachedRef>(accounts: Vec<AccountRef>) -> Result<(), SystemException> {
/// let warm = warm_cached(accounts.iter().cloned())?;
/// println!("{} of {} accounts are held", warm.held(), accounts.len());
/// # Ok(()) }
/// ```
pub fn warm_cached<R: CachedRef>(
    references: impl IntoIterator<Item = R>,
) -> Result<Warm<R>, SystemException> {
    let mut places = Vec::new();
    for reference in references {
        let object = reference.object();
        object.core().cache.in_its_own_process()?;
        if !object.is_local_object()?
            && let Some(place) = place_of(object, reference.proxy_cell())
        {
            places.push(place);
        }
    }
    let mut pinned = Vec::with_capacity(places.len());
    let may_stay = places.iter().all(|place| {
        let may_stay = place.pin();
        pinned.extend(may_stay.then(|| place.clone()));
        may_stay
    });
    let list = Arc::new(List(pinned));
    if !may_stay {
        return Err(too_many());
    }
    let weak: Weak<dyn Companions<R::State>> = Arc::<List<R::State>>::downgrade(&list);
    places.iter().for_each(|place| place.set_companions(weak.clone()));
    let warm = Warm { list };
    warm.fill();
    Ok(warm)
}

/// States that are held. Dropping it lets them go when other references to their objects have gone, or room is needed.
#[must_use = "the states are let go when this is dropped"]
pub struct Warm<R: CachedRef> {
    list: Arc<List<R::State>>,
}

/// The places of a list. Each is pinned.
struct List<S: CachedState>(Vec<Arc<Place<S>>>);

impl<R: CachedRef> Warm<R> {
    /// How many objects the list has.
    pub fn len(&self) -> usize {
        self.list.0.len()
    }

    /// Whether the list has no object.
    pub fn is_empty(&self) -> bool {
        self.list.0.is_empty()
    }

    /// How many of them are held now, however old.
    pub fn held(&self) -> usize {
        self.list.0.iter().filter(|place| place.newest().is_held()).count()
    }

    /// Asks for those that are not held. Blocks as calls do.
    pub fn fill(&self) {
        let mut places: Vec<_> = self.list.0.iter().map(Place::newest).collect();
        places.retain(|place| !place.is_held());
        // The first question to a server opens a session with it, and brings no state to hold.
        let mut asked: Vec<*const _> = Vec::new();
        for place in &places {
            let server = Arc::as_ptr(&place.peer);
            if place.peer.session().is_none() && !asked.contains(&server) {
                match ask_object(place, &NO_SESSION) {
                    Ok(Some(results)) => drop(take_fill(place, &NO_SESSION, results)),
                    // This object has no cell; the next one may.
                    Ok(None) => continue,
                    Err(_) => {}
                }
                asked.push(server);
            }
        }
        for some in places.chunks(AT_ONCE_MAX) {
            Fills::begin(some.iter().cloned()).take();
        }
    }
}

impl<S: CachedState> Companions<S> for List<S> {
    fn beside(self: Arc<Self>, place: &Place<S>) -> Vec<Arc<Place<S>>> {
        // A read of one server waits for no other.
        let is_beside = |it: &Place<S>| Arc::ptr_eq(&it.peer, &place.peer) && it.entry != place.entry;
        let is_not_held = |it: &&Arc<Place<S>>| is_beside(&it.newest()) && !it.newest().is_held();
        self.0.iter().filter(is_not_held).take(AT_ONCE_MAX - 1).cloned().collect()
    }
}

impl<S: CachedState> Drop for List<S> {
    fn drop(&mut self) {
        self.0.iter().for_each(Place::unpin);
    }
}

impl<R: CachedRef> fmt::Debug for Warm<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warm").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cold]
fn too_many() -> SystemException {
    SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, CompletionStatus::No)
        .with_detail("more objects of one server are to stay in the cache than it may have (cacheEntriesMax)")
}

/// References to the elements of a range, of which a read that must ask for an element's cached attributes asks for those of the next
/// elements of the range, too: in about the same time, for a reader that goes from one to the next. Dropping it, and its clones,
/// lets those go that have not been read.
#[derive(Debug)]
pub struct PrefetchingRange<R: CachedRef>(Arc<Window<R>>);

struct Window<R: CachedRef> {
    range: ExtentRange<R>,
    next: usize,
    /// The places of the elements that have been asked for beside others, the oldest first.
    kept: PiLock<VecDeque<Arc<Place<R::State>>>>,
}

impl<R: CachedRef> ExtentRange<R> {
    /// The same references, of which a read that asks for one element asks for the next ones of the range, too: so many, 255 at most.
    /// It keeps twice as many states.
    pub fn prefetching(self, next: usize) -> PrefetchingRange<R> {
        let next = next.min(AT_ONCE_MAX - 1);
        PrefetchingRange(Arc::new(Window { range: self, next, kept: PiLock::default() }))
    }
}

impl<R: CachedRef> PrefetchingRange<R> {
    /// The references, without this.
    pub fn range(&self) -> &ExtentRange<R> {
        &self.0.range
    }

    /// The reference to the element with an index. `None` if that is not in the range. Calls nobody.
    pub fn get(&self, index: u64) -> Option<R> {
        let reference = self.0.range.get(index)?;
        self.0.take_in(&reference);
        Some(reference)
    }

    /// The references, one after another.
    pub fn iter(&self) -> impl Iterator<Item = R> + '_ {
        self.0.range.indices().filter_map(|index| self.get(index))
    }
}

impl<R: CachedRef> Window<R> {
    /// Has reads of a reference come to this range.
    fn take_in(self: &Arc<Self>, reference: &R) -> Option<Arc<Place<R::State>>> {
        let object = reference.object();
        if object.is_local_object().unwrap_or(true) {
            return None;
        }
        let place = place_of(object, reference.proxy_cell())?;
        let weak: Weak<dyn Companions<R::State>> = Arc::<Window<R>>::downgrade(self);
        place.set_companions(weak);
        Some(place)
    }
}

impl<R: CachedRef> Companions<R::State> for Window<R> {
    fn beside(self: Arc<Self>, place: &Place<R::State>) -> Vec<Arc<Place<R::State>>> {
        let Some(index) = self.range.index_of(&place.object) else { return Vec::new() };
        let next = (index + 1..self.range.indices().end).take(self.next);
        let places: Vec<_> = next.filter_map(|index| self.take_in(&self.range.get(index)?)).collect();
        let mut kept = self.kept.lock();
        kept.extend(places.iter().cloned());
        let surplus = kept.len().saturating_sub(2 * self.next);
        let gone: Vec<_> = kept.drain(..surplus).collect();
        drop(kept);
        drop(gone); // the last owner of a place takes the lock of its server's session
        places
    }
}

impl<R: CachedRef> Clone for PrefetchingRange<R> {
    fn clone(&self) -> Self {
        PrefetchingRange(self.0.clone())
    }
}

impl<R: CachedRef> fmt::Debug for Window<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("range", &self.range).field("next", &self.next).finish_non_exhaustive()
    }
}
