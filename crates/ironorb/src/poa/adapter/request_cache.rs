//! The request cache: a serving thread recognises requests that equal earlier ones by their bytes. Such
//! requests are not parsed, and their targets are not looked up.
//!
//! A request that differs from an earlier one only in its object, in the same adapter, reaches that object by
//! a lease of the adapter: the object is looked up and counts the request. A request to an object that is
//! called repeatedly reaches its servant by a lease of the object, as calls within a process do
//! ([`lease`](crate::object::lease)). Then no count changes that other threads see.
//!
//! The cache decides nothing. It records where such a request has gone on the general path, and any change of
//! that ends the lease. A request that is not in the cache pays a few instructions.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use ironorb_giop::message::{HeaderContexts, HeaderTemplate, Message, RequestFingerprint, Response};

use super::Adapter;
use super::priorities::{CachedPriority, Precedence};
use crate::base::config::{Demultiplexing, ObjectLookup, OrbConfig};
use crate::base::lease::BindingLease;
use crate::base::probe::{self, Stage};
use crate::object::operation_table::Found;
use crate::poa::key::{self, ParsedKey};
use crate::poa::servant::{LeasedServant, Servant};
use crate::poa::{AdapterLease, ObjectSelector, Upcall};

thread_local! {
    /// The candidates, apart from the cache itself, so that a miss costs one comparison.
    static CANDIDATES: [Candidate; CACHE_SLOTS] = const { [const { Candidate::nothing() }; CACHE_SLOTS] };
    static CACHE: [CacheSlot; CACHE_SLOTS] = const { [const { RefCell::new(None) }; CACHE_SLOTS] };
}

type CacheSlot = RefCell<Option<Box<CachedTarget>>>;

/// The slots of the cache. A request's fingerprint determines its slot. They suffice for the operations of an
/// interface or two. An entry takes some 400 bytes, so a thread that uses all slots has 13 KB in them.
const CACHE_SLOTS: usize = 32;

/// How many equal requests must come in a row before they are cached. A lease costs some memory and time, and
/// so does its end: it does not pay for short-lived objects.
const ALIKE_MIN: u32 = 64;

/// What the recent requests with the same slot were.
struct Candidate {
    /// The shape of the cached request; 0 where none is cached.
    known: Cell<u64>,
    /// Counts equal shapes of requests that were not cached.
    shape: RepeatCounter,
    /// Counts equal objects.
    object: RepeatCounter,
}

/// Counts how often a number repeats.
struct RepeatCounter {
    last: Cell<u64>,
    /// How many times in a row it has come again.
    times: Cell<u32>,
}

impl Candidate {
    const fn nothing() -> Candidate {
        Candidate { known: Cell::new(0), shape: RepeatCounter::new(), object: RepeatCounter::new() }
    }
}

impl RepeatCounter {
    const fn new() -> RepeatCounter {
        RepeatCounter { last: Cell::new(0), times: Cell::new(0) }
    }

    /// Records that a number has come; true when it has repeated [`ALIKE_MIN`] times.
    #[inline(always)] // a step of many calls
    fn note(&self, number: u64) -> bool {
        let times = if self.last.replace(number) == number { self.times.get() + 1 } else { 0 };
        self.times.set(times);
        times >= ALIKE_MIN
    }

    fn forget(&self) {
        self.times.set(0);
    }
}

/// The cache's entry for equal requests.
struct CachedTarget {
    /// The template of the requests' header, with the object of the entry.
    head: HeaderTemplate,
    operation: Cell<Found>,
    adapter: AdapterLease,
    object: Option<(BindingLease, LeasedServant)>,
    /// The requests have neither service contexts nor a priority.
    is_plain: bool,
    priority: Option<CachedPriority>,
}

/// A cached request that has been admitted to its object.
#[derive(Clone, Copy)]
pub(super) struct CachedUpcall<'k> {
    target: &'k CachedTarget,
    pub(super) servant: &'k dyn Servant,
}

impl<'k> CachedUpcall<'k> {
    #[inline(always)] // a step of every call
    pub(super) fn head(self) -> &'k HeaderTemplate {
        &self.target.head
    }

    /// Where the skeleton has found its operation.
    #[inline(always)] // a step of every call
    pub(super) fn operation(self) -> &'k Cell<Found> {
        &self.target.operation
    }

    /// Whether the request has neither service contexts nor a priority.
    #[inline(always)] // a step of every call
    pub(super) fn is_plain(self) -> bool {
        self.target.is_plain
    }

    #[inline(always)] // a step of every call with a priority
    pub(super) fn priority(self) -> Option<&'k CachedPriority> {
        self.target.priority.as_ref()
    }

    /// Where its priority comes from, and how its replies are marked.
    #[inline(always)] // a step of every call with contexts
    pub(super) fn precedence(self) -> Option<&'k Precedence> {
        self.priority().map(|priority| &priority.precedence)
    }
}

impl Adapter {
    /// Whether requests may be cached at all. They may not where the configuration asks for a certain kind of
    /// look-up.
    pub(super) fn may_cache(config: &OrbConfig) -> bool {
        config.demultiplexing == Demultiplexing::Delayered && config.object_lookup == ObjectLookup::Active
    }

    /// Carries out a request if it is cached; false where nothing has been done.
    #[inline(always)] // a step of every call
    pub(super) fn if_cached(
        &self,
        fingerprint: Option<RequestFingerprint>,
        message: &mut Message,
        carry_out: impl FnOnce(CachedUpcall<'_>, &mut Message),
    ) -> bool {
        let Some(fingerprint) = fingerprint else { return false };
        let place = cache_slot_of(fingerprint);
        CANDIDATES.with(|candidates| candidates[place].known.get() == fingerprint.shape)
            && CACHE.try_with(|known| self.carry_out_cached(&known[place], fingerprint, message, carry_out))
                == Ok(Some(()))
    }

    #[inline(always)] // a step of every call
    fn carry_out_cached(
        &self,
        place: &CacheSlot,
        fingerprint: RequestFingerprint,
        message: &mut Message,
        carry_out: impl FnOnce(CachedUpcall<'_>, &mut Message),
    ) -> Option<()> {
        let known = place.try_borrow().ok()?;
        let target = known.as_deref()?;
        let CachedTarget { head, adapter, object, .. } = target;
        if !Arc::ptr_eq(adapter.bindings(), self.bindings()) {
            return None;
        }
        // These live until the request is over. They are dropped in reverse order, so the upgraded servant
        // goes first.
        let (_in_progress, poa, leased, mut upgraded);
        let probe = probe::enter(Stage::Frame);
        let servant = match object {
            Some((hold, servant)) if head.is_of(message) => {
                drop(probe);
                let _probe = probe::enter(Stage::ObjectLookup);
                _in_progress = hold.enter()?;
                upgraded = None;
                servant.get(&mut upgraded)?
            }
            _ => {
                let object = head.object_of(message)?;
                drop(probe);
                let _probe = probe::enter(Stage::ObjectLookup);
                if CANDIDATES
                    .with(|candidates| candidates[cache_slot_of(fingerprint)].object.note(fingerprint.object))
                {
                    return None; // the object should be cached
                }
                poa = adapter.poa()?;
                leased = adapter.enter(&poa, object)?;
                leased.servant().get()
            }
        };
        #[cfg(debug_assertions)]
        let _known = crate::base::testing::RequestCached::begin();
        carry_out(CachedUpcall { target, servant }, message);
        Some(())
    }

    /// Records a plain request that has reached its servant on the general path.
    #[inline(always)] // a step of many calls
    pub(super) fn note(
        &self,
        fingerprint: Option<RequestFingerprint>,
        message: &Message,
        key: &[u8],
        upcall: &Upcall,
    ) {
        let Some(fingerprint) = fingerprint else { return };
        let is_enough = CANDIDATES.with(|candidates| {
            let candidate = &candidates[cache_slot_of(fingerprint)];
            let has_object_come_often = candidate.object.note(fingerprint.object);
            candidate.shape.note(fingerprint.shape)
                || has_object_come_often && candidate.known.get() == fingerprint.shape
        });
        if is_enough {
            self.store(fingerprint, message, key, upcall);
        }
    }

    #[cold]
    #[inline(never)]
    fn store(&self, fingerprint: RequestFingerprint, message: &Message, key: &[u8], upcall: &Upcall) {
        let place = cache_slot_of(fingerprint);
        // The counters restart whether caching succeeds or not, so that it is not tried for each request.
        let has_object_come_often = CANDIDATES.with(|candidates| {
            let Candidate { shape, object, .. } = &candidates[place];
            let is_often = object.times.get() >= ALIKE_MIN;
            shape.forget();
            object.forget();
            is_often
        });
        // Elements are found by their indices, default servants without a look-up, and locators are asked for each request.
        if !self.caches_requests || !upcall.is_to_active_object() {
            return;
        }
        let known = || {
            let (naming, open) = match key::parse(key) {
                ParsedKey::Slot { object, .. } => (ObjectSelector::Slot(object), key::SLOT_BYTES),
                ParsedKey::Path { id, .. } => (ObjectSelector::Id(id), id.len()),
                ParsedKey::Foreign => return None,
            };
            let head = HeaderTemplate::of(message, open)?;
            if head.response() == Response::SyncWithServer {
                return None;
            }
            let epoch = upcall.binding_epoch().begin()?;
            let adapter = AdapterLease::of(epoch, upcall, naming)?;
            let object = || Some((upcall.lease(epoch)?, LeasedServant::of(upcall.servant())));
            let object = if has_object_come_often { object() } else { None };
            let priority = upcall.precedence().map(|precedence| self.cached_priority(precedence));
            let is_plain = head.contexts() == HeaderContexts::None && priority.is_none();
            let operation = Cell::default();
            Some(Box::new(CachedTarget { head, operation, adapter, object, is_plain, priority }))
        };
        let keep = |places: &[CacheSlot; CACHE_SLOTS]| {
            // During an upcall of the cached request the entry is in use and stays.
            let Ok(mut kept) = places[place].try_borrow_mut() else { return };
            let Some(known) = known() else { return };
            let before = kept.replace(known);
            drop(kept);
            drop(before);
            CANDIDATES.with(|candidates| candidates[place].known.set(fingerprint.shape));
        };
        let _thread_is_ending = CACHE.try_with(keep);
    }
}

#[inline(always)]
fn cache_slot_of(fingerprint: RequestFingerprint) -> usize {
    (fingerprint.shape >> (u64::BITS - CACHE_SLOTS.ilog2())) as usize % CACHE_SLOTS
}
